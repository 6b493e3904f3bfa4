/* Live parts, filters without a reload, keys, marks, the panel and actions of `proctor view`. Pages are read without it. */
"use strict";
(() => {
  const $ = (selector, within) => (within || document).querySelector(selector);
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));
  const token = new URLSearchParams(location.search).get("token"), topic = document.body.dataset.topic;
  const panel = $("#panel"), split = $("#split"), toast = $("[data-toast]"), help = $("dialog.keys"), link = $("[data-link]");
  const MOST_MARKED = 8, AGAIN = 2000; // milliseconds after which a stream that was refused is asked for again

  let quiet = 0;
  function say(text) {
    toast.textContent = text;
    toast.hidden = false;
    clearTimeout(quiet);
    quiet = setTimeout(() => { toast.hidden = true; }, 4000);
  }

  /* ---- Live parts: the server sends the whole of them; what is the same stays, so that nothing moves under the pointer. */

  let stream = null, later = 0, state = null, wasLive = false;

  function listen() {
    clearTimeout(later);
    if (stream || topic === undefined || document.hidden) return;
    stream = new EventSource(`/live?${new URLSearchParams({ topic, token })}`);
    stream.onmessage = (event) => show(JSON.parse(event.data));
    stream.onerror = () => {
      link.textContent = "no connection, trying again";
      if (stream.readyState !== EventSource.CLOSED) return; // the browser asks again by itself
      stream = null;
      later = setTimeout(listen, AGAIN);
    };
  }

  function show({ parts, state: now, away }) {
    link.textContent = away || "live";
    link.classList.toggle("e", !!away);
    if (away) return;
    wasLive = true;
    let isOld = false; // the page, when its first news came
    for (const [name, html] of Object.entries(parts)) {
      const place = $(`[data-part="${name}"]`);
      if (!place || place.dataset.html === html) continue;
      const held = place.contains(document.activeElement) && document.activeElement.dataset.post;
      const fresh = place.cloneNode(false);
      fresh.innerHTML = html; // as the templates of the server have escaped it
      isOld = isOld || !place.isEqualNode(fresh);
      renew(place, fresh);
      place.dataset.html = html;
      if (held) { const again = all("[data-post]", place).find((each) => each.dataset.post === held); if (again) again.focus(); }
    }
    if (state === null ? isOld : now !== state) news();
    state = now;
  }

  /* What is the same stays the same element: a button that was replaced under a pressed pointer would not be clicked. */
  function renew(old, fresh) {
    const mine = Array.from(old.childNodes), theirs = Array.from(fresh.childNodes);
    if (mine.length !== theirs.length) return old.replaceChildren(...theirs);
    mine.forEach((each, at) => {
      const other = theirs[at];
      if (each.isEqualNode(other)) return;
      if (each.childNodes.length && each.cloneNode(false).isEqualNode(other.cloneNode(false))) renew(each, other);
      else each.replaceWith(other);
    });
  }

  /* The list has changed: rows that are there are renewed in their places, and more wait behind a button. */
  let renewing = 0;
  function news() {
    clearTimeout(renewing);
    renewing = setTimeout(async () => {
      const fresh = await part(location.href);
      if (!fresh) return;
      const rows = new Map(all("[data-row]").map((row) => [row.dataset.id, row]));
      let more = 0;
      for (const row of all("[data-row]", fresh)) {
        const old = rows.get(row.dataset.id);
        if (!old) more++;
        else if (old.outerHTML !== row.outerHTML && !isMarked(old)) {
          if (old.hasAttribute("aria-current")) row.setAttribute("aria-current", "true");
          old.replaceWith(row);
        }
      }
      const button = $("[data-news]");
      if (!rows.size && more) return put(fresh);
      if (button) { button.hidden = !more; button.textContent = more === 1 ? "1 new" : `${more} new`; }
    }, 300);
  }

  const isMarked = (row) => { const box = $("input[type=checkbox]", row); return box && box.checked; };

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return listen();
    if (stream) stream.close(); // a browser has few connections for all tabs
    stream = null;
  });

  /* ---- The list of a page, fetched anew: a filter changes the address and not the page. */

  async function part(address) {
    try {
      const answer = await fetch(address);
      if (!answer.ok) return null;
      return new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-list]");
    } catch (away) { return null; }
  }

  /* Marks stay when other runs are listed: those that are not in sight go with the form as hidden fields. */
  const marked = () => all("input[name=run]").filter((box) => box.checked || box.type === "hidden");
  function count() {
    const button = $("[data-compare]"), number = marked().length;
    if (button) button.textContent = number ? `Compare ${number} marked` : "Compare marked";
  }
  addEventListener("pageshow", count); // a browser that goes back has marked the boxes again
  function keepMarks(runs) {
    const form = $("#marked");
    for (const run of form ? runs : []) {
      const box = all("input[name=run]").find((each) => each.value === run);
      if (box) box.checked = true;
      else form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "run", value: run }));
    }
    count();
  }

  function put(fresh) {
    const runs = marked().map((box) => box.value);
    const list = $("[data-list]"), field = document.activeElement, had = field.matches("[data-search] input[type=search]");
    const typed = had ? field.value : null, at = had ? field.selectionStart : 0;
    list.replaceWith(fresh);
    keepMarks(runs);
    goOn();
    if (had) { const again = $(`[data-search] input[name=${field.name}]`); again.focus(); again.value = typed; again.setSelectionRange(at, at); }
  }

  /* A search of many rows comes in parts, each of which is shown. */
  function goOn() {
    if ($("[data-unfinished]")) setTimeout(() => { if ($("[data-unfinished]")) go(location.href, false); }, 50);
  }

  let asked = 0;
  async function go(address, isStep) {
    const mine = ++asked, fresh = await part(address);
    if (mine !== asked) return;
    if (!fresh) return location.assign(address);
    if (isStep) history.pushState(null, "", address); else history.replaceState(null, "", address);
    put(fresh);
  }
  addEventListener("popstate", () => go(location.href, false));

  const addressOf = (form) => {
    const words = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value) words.append(name, value);
    return `${form.getAttribute("action")}?${words}`;
  };

  let soon = 0;
  document.addEventListener("input", (event) => {
    const form = event.target.closest("[data-search]");
    if (!form) return;
    clearTimeout(soon);
    soon = setTimeout(() => go(addressOf(form), false), 120);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("[data-search], [data-jump]")) { event.preventDefault(); go(addressOf(form), true); }
    if (form.id === "marked" && !(marked().length > 1 && marked().length <= MOST_MARKED)) { event.preventDefault(); say(`Mark 2 to ${MOST_MARKED} runs to compare.`); }
  });
  document.addEventListener("change", (event) => { if (event.target.name === "run") count(); });

  /* ---- The panel: everything about one item, beside the rows. */

  async function open(row) {
    choose(row);
    if (!panel) return location.assign(row.href || $("a", row).href);
    const address = new URL(row.href);
    address.searchParams.set("part", "1");
    let html = "";
    try { const answer = await fetch(address); html = await answer.text(); } catch (away) { return say("The server does not answer."); }
    if (!row.hasAttribute("aria-current")) return; // another one was chosen meanwhile
    $(".panelbody", panel).innerHTML = html;
    panel.hidden = false;
    panel.scrollTop = 0;
    split.classList.add("open");
    keep(row.dataset.id);
  }

  function close() {
    if (!panel || panel.hidden) return;
    panel.hidden = true;
    split.classList.remove("open");
    keep("");
    const row = current();
    if (row) row.focus();
  }

  function keep(id) {
    history.replaceState(history.state, "", `${location.pathname}${location.search}${id && "#open=" + id}`);
  }

  /* ---- Moving about. */

  const rows = () => all("[data-row]");
  const current = () => $("[data-row][aria-current]");

  function choose(row) {
    for (const each of rows()) each.removeAttribute("aria-current");
    if (!row) return;
    row.setAttribute("aria-current", "true");
    (row.matches("a") ? row : $("a", row)).focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  function move(step, fits) {
    const found = rows(), at = found.indexOf(current());
    let next = at < 0 ? (step > 0 ? 0 : found.length - 1) : at + step;
    while (found[next] && !fits(found[next])) next += step;
    if (!found[next]) return;
    if (panel && !panel.hidden) open(found[next]); else choose(found[next]);
  }

  const isBad = (row) => "fe".includes(row.dataset.letter);

  /* ---- Actions: asked for with the token in a header, which no other page can do. */

  async function post(button) {
    if (button.dataset.sure && !confirm(button.dataset.sure)) return;
    button.disabled = true;
    try {
      const answer = await fetch(button.dataset.post, { method: "POST", headers: { "X-Proctor-Token": token } });
      const { said, hint } = await answer.json();
      say(hint ? `${said}; ${hint}` : said);
    } catch (away) { say("The server does not answer."); }
    button.disabled = false;
  }

  document.addEventListener("click", (event) => {
    const target = event.target, act = target.closest("[data-act]"), button = target.closest("[data-post]");
    if (button) return post(button);
    if (act && act.dataset.act === "help") return help.showModal();
    if (act && act.dataset.act === "close-help") return help.close();
    if (act && act.dataset.act === "close") return close();
    if (target.closest("[data-news]")) return go(location.href, false);
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const place = target.closest("[data-list] .chip, [data-list] .pager a, [data-list] .none a");
    if (place) { event.preventDefault(); return go(place.href, true); }
    const row = target.closest("a[data-row]");
    if (row && panel) { event.preventDefault(); open(row); }
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    const field = $("[data-search] input[type=search]");
    if (event.key === "Escape") { if (event.target.matches("[data-search] input")) event.target.blur(); else close(); return; }
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox") return;
    const box = current() && $("input[type=checkbox]", current());
    const acts = {
      "/": () => field && field.focus(), "?": () => help.showModal(),
      j: () => move(1, () => true), k: () => move(-1, () => true), f: () => move(1, isBad), F: () => move(-1, isBad),
      x: () => { if (box) { box.checked = !box.checked; count(); } },
      y: () => { const text = $("[data-copy]"); if (text) navigator.clipboard.writeText(text.textContent).then(() => say(`Copied: ${text.textContent}`)); },
      c: () => { const form = $("#marked"); if (form) form.requestSubmit(); },
      Enter: () => { if (current() && !event.target.closest("button, summary")) open(current()); },
    };
    if (!acts[event.key] || (event.key === "Enter" && (!current() || event.target.closest("button, summary")))) return;
    event.preventDefault();
    acts[event.key]();
  });

  /* Each check of an item has a name of its own in the address. */
  function nameChecks(within) {
    all(".checks li", within).forEach((check, at) => { check.id = `check-${at + 1}`; });
    if (/^#check-/.test(location.hash)) { const check = $(location.hash); if (check) { location.hash = ""; location.hash = check.id; } }
  }

  listen();
  goOn();
  nameChecks($("#main .detail"));
  const opened = new URLSearchParams(location.hash.slice(1)).get("open");
  if (opened && panel) { const row = rows().find((each) => each.dataset.id === opened); if (row) open(row); }
})();
