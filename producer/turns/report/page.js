/* The page of a turns run: the list of threads, keys for freezes and threads, and mementos that a turn left as they were. */
"use strict";
(() => {
  const list = document.querySelector("[data-rows]"), report = list && list.report;
  if (!report) return;
  const nav = document.querySelector("[data-threads]"), WIDE = 1280;
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));

  /* ---- The list of threads: a hundred are elements, the next hundred become some when they are scrolled to. */

  const held = nav ? all("noscript", nav) : [];
  if (held.length) {
    const more = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      unfold();
      if (held.length) { more.unobserve(held[0]); more.observe(sentinel()); } else more.disconnect();
    });
    const sentinel = () => nav.querySelector("li:last-of-type");
    more.observe(sentinel());
  }

  function unfold() {
    const block = held.shift(), box = document.createElement("template");
    box.innerHTML = block.textContent; // as it was escaped on the way into this file
    block.replaceWith(box.content);
    mark();
  }

  /* The thread that is shown alone, or else that of the open turn. */
  function mark() {
    const open = report.opened(), now = report.get("thread") || (open ? report.values(open.at, "thread")[0] : "");
    for (const link of nav ? all("a[data-thread]", nav) : []) {
      if (link.dataset.thread === now) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
  }

  function linkOf(name) {
    const find = () => nav.querySelector(`a[data-thread="${CSS.escape(name)}"]`);
    while (!find() && held.length) unfold();
    return find();
  }

  /* A thread alone, and its first freeze beside it where the panel is open; again: all threads. */
  function choose(name) {
    report.change({ thread: report.get("thread") === name ? "" : name });
    if (report.opened()) {
      const shown = report.shown(), at = shown.find((row) => report.has(row, "freeze", "frozen"));
      if (shown.length) report.replace(at === undefined ? shown[0] : at);
    }
    const top = list.getBoundingClientRect().top - 60;
    if (top < 0) scrollBy(0, top);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-thread]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(link.dataset.thread);
  });

  /* ---- Keys: the next freeze, the next must, the next thread. */

  function jump(step, isWanted) {
    const shown = report.shown(), now = report.opened(), start = now ? shown.indexOf(now.at) : step > 0 ? -1 : shown.length;
    for (let tries = 1; tries <= shown.length; tries++) {
      const at = shown[(start + step * tries + shown.length * (tries + 1)) % shown.length];
      if (isWanted(at)) return report.open(at, 0);
    }
  }

  function turnThread(step) {
    const shown = report.count("thread"), now = report.get("thread"), open = report.opened();
    const current = now || (open ? report.values(open.at, "thread")[0] : ""), at = Number(current.slice(1)) || (step > 0 ? 0 : 2);
    const next = `t${Math.max(1, Math.min(shown, at + step))}`;
    if (next === now) return;
    choose(next);
    const link = nav && linkOf(next);
    if (link) link.scrollIntoView({ block: "nearest" });
  }

  const KEYS = {
    f: () => jump(1, (at) => report.has(at, "freeze", "frozen")), F: () => jump(-1, (at) => report.has(at, "freeze", "frozen")),
    m: () => jump(1, (at) => report.has(at, "decision", "must")), M: () => jump(-1, (at) => report.has(at, "decision", "must")),
    e: () => jump(1, (at) => report.has(at, "show", "errors")), "[": () => turnThread(-1), "]": () => turnThread(1),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    if (!KEYS[event.key]) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    KEYS[event.key]();
  }, true);
  const keys = document.querySelector("dialog.keys dl");
  for (const term of all("dt", keys)) if (/^[fF ]+$/.test(term.textContent)) { term.nextElementSibling.remove(); term.remove(); }
  for (const [names, words] of [["f F", "next, previous freeze"], ["m M", "next, previous must"], ["e", "next failed turn"], ["[ ]", "previous, next thread"]]) {
    const term = document.createElement("dt"), description = document.createElement("dd");
    for (const name of names.split(" ")) { const key = document.createElement("kbd"); key.textContent = name; term.append(key, " "); }
    description.textContent = words;
    keys.append(term, description);
  }

  /* ---- A memento that a turn left as it was is that of an earlier turn, without what changed then. */

  document.addEventListener("view:open", async ({ detail: { panel } }) => {
    const hole = panel.querySelector("[data-memento]"), source = hole && (await report.element(hole.dataset.memento));
    const fields = source && source.querySelector(".fields");
    if (!fields) return;
    const copy = fields.cloneNode(true);
    for (const gone of all("dd > div:has(del), dd > div:has(.c)", copy)) gone.remove();
    for (const each of all("ins", copy)) each.replaceWith(...each.childNodes);
    for (const field of all("dd", copy)) if (!field.childElementCount) { field.textContent = "none"; field.classList.add("dim"); }
    hole.replaceWith(copy);
  });

  for (const change of ["view:choose", "view:open", "view:close"]) document.addEventListener(change, mark);
  mark();

  const open = report.opened();
  if (open) report.replace(open.at); // it was opened before this script could listen
  /* On a wide screen the first turn to look at is open from the start, so that the memento stands beside it. */
  if (!location.hash && innerWidth >= WIDE && report.shown().length) {
    const shown = report.shown(), at = shown.find((row) => report.has(row, "show", "errors") || report.has(row, "freeze", "frozen"));
    report.replace(at === undefined ? shown[0] : at);
  }
})();
