/* Keys and labels of a review: 1 pass, 2 fail, 3 defer, n note, u the answer before. */
"use strict";
(() => {
  const $ = (selector) => document.querySelector(selector);
  const token = new URLSearchParams(location.search).get("token"), toast = $("[data-toast]");
  const said = sessionStorage.getItem("said");
  if (said) { toast.textContent = said; toast.hidden = false; sessionStorage.removeItem("said"); setTimeout(() => { toast.hidden = true; }, 4000); }

  const form = $("form.labelform");
  if (!form) return;

  async function label(verdict) {
    for (const button of form.querySelectorAll("button")) button.disabled = true;
    const body = JSON.stringify({ verdict, note: form.note.value, tags: form.tags.value, answer: form.dataset.answer });
    try {
      const answer = await fetch(form.dataset.label, { method: "POST", body, headers: { "X-Proctor-Token": token } });
      const { said, hint, next } = await answer.json();
      if (!answer.ok) throw new Error(hint ? `${said}; ${hint}` : said);
      sessionStorage.setItem("said", said);
      location.assign(next);
    } catch (error) {
      toast.textContent = error.message || "The server does not answer.";
      toast.hidden = false;
      for (const button of form.querySelectorAll("button")) button.disabled = false;
    }
  }

  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); }); // its label is newer than the page
  form.addEventListener("submit", (event) => { event.preventDefault(); if (event.submitter) label(event.submitter.value); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("dialog.keys").open) return;
    if (event.key === "Escape" && form.contains(document.activeElement)) { document.activeElement.blur(); return; }
    if (/^(INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
    const verdict = { 1: "pass", 2: "fail", 3: "defer" }[event.key];
    if (verdict) { event.preventDefault(); label(verdict); }
    if (event.key === "n") { event.preventDefault(); form.note.focus(); }
    if (event.key === "u") history.back();
  });
})();
