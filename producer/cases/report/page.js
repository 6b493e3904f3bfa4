/* A dot of a cell opens its answer in the panel. */
(() => {
  let wanted = "", cell = null, panel = null;

  function choose() {
    for (const answer of panel.querySelectorAll("[data-repeat]")) answer.open = answer.dataset.repeat === wanted;
    const open = panel.querySelector("[data-repeat][open]");
    if (open) open.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("click", (event) => {
    const dot = event.target.closest("[data-dot]");
    wanted = dot ? dot.dataset.dot : "";
    if (!dot || dot.closest(".cell") !== cell) return;
    event.preventDefault(); // the cell is open, and a click on it would close it
    event.stopPropagation();
    choose();
  }, true);
  document.addEventListener("view:open", ({ detail }) => {
    ({ cell, panel } = detail);
    if (wanted) choose();
  });
  document.addEventListener("view:close", () => { cell = null; });
})();
