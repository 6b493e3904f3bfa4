/* A link of a table below filters the queries above: shows them. Search and filters are in viewer.js. */
"use strict";
document.addEventListener("click", (event) => {
  const link = event.target.closest('.more a[href*="="]'), tools = document.querySelector("[data-tools]");
  if (link && tools) setTimeout(() => tools.scrollIntoView());
});
