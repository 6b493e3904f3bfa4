/* Rows in sight, filters, search, order, keys and the panel of an HTML report. Its first rows are read without it. */
"use strict";
(() => {
  const $ = (selector, within) => (within || document).querySelector(selector);
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));
  const MARKS = { p: "✓", f: "✗", e: "!" };
  const ALL_DRAWN = 300; // with fewer rows, all are drawn: the browser's own search finds them
  const LONG = 4000; // characters of a text after which the panel folds it
  const list = $("[data-rows]"), panel = $("#panel"), split = $("#split"), main = $("#main"), tools = $("[data-tools]");
  const field = $("[data-q]"), ordering = $("[data-order]"), shownText = $("[data-shown]"), help = $("dialog.keys");
  const headScroll = $("[data-headscroll]"), toast = $("[data-toast]");

  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  /* ---- The state: pairs in the part of the address that no server sees, so that it works from a file. */

  let state = new URLSearchParams();
  const get = (key) => state.get(key) || "";

  function read() {
    const hash = location.hash.slice(1);
    state = new URLSearchParams(hash.includes("=") ? hash : "");
  }

  function keep(changes, isStep) {
    for (const [key, value] of Object.entries(changes)) if (value) state.set(key, value); else state.delete(key);
    const hash = state.toString(), address = hash ? "#" + hash : location.pathname + location.search;
    try {
      if (isStep) history.pushState({ isStep }, "", address);
      else history.replaceState(history.state, "", address);
    } catch (refused) { location.hash = hash; }
  }

  /* ---- Values: numbers before words, and what is not known last, whichever way it is sorted. */

  const collator = new Intl.Collator(undefined, { numeric: true });

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "string" && typeof b === "string") return collator.compare(a, b);
    return typeof a === "number" ? -1 : 1;
  }

  function sorted(items, key, valueOf) {
    const sign = key.startsWith("-") ? -1 : 1, known = [], unknown = [];
    for (const item of items) {
      const value = valueOf(item);
      if (value === null || value === "") unknown.push(item); else known.push([value, item]);
    }
    known.sort((one, other) => sign * compare(one[0], other[0]));
    return known.map((each) => each[1]).concat(unknown);
  }

  /* ---- Tables below: a click on a heading sorts by its column. */

  const tables = all("table[data-sort]");

  function sortTable(table, key) {
    const column = Math.abs(Number(key)) - 1, heads = all("thead th", table), body = table.tBodies[0];
    if (!heads[column]) return;
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", key.startsWith("-") ? "descending" : "ascending");
    body.append(...sorted(body.rows, key, ({ cells: { [column]: cell } }) => {
      const value = cell.dataset.value === undefined ? cell.textContent.trim() : cell.dataset.value;
      return value === "" || Number.isNaN(Number(value)) ? value : Number(value);
    }));
  }

  for (const table of all("table.data")) {
    const labels = all("thead th", table).map((head) => head.textContent.trim());
    for (const row of table.tBodies[0].rows) all("td", row).forEach((cell) => { cell.dataset.label = labels[cell.cellIndex] || ""; });
  }
  for (const table of tables) {
    all("thead th", table).forEach((head, column) => {
      if (!head.textContent.trim()) return;
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        // Numbers are first sorted from the highest, words from the first letter.
        const now = head.getAttribute("aria-sort"), first = head.classList.contains("n") ? "-" : "";
        const key = (now === "descending" ? "" : now === "ascending" ? "-" : first) + (column + 1);
        sortTable(table, key);
        keep({ [table.id]: key });
      });
    });
  }

  /* ---- The index, and the markup of rows: elements first, then compressed blocks, unpacked where they are needed. */

  const index = list ? JSON.parse($("script[data-index]").textContent) : { rows: [], facets: [], names: [], orders: [], groups: [] };
  const first = list ? all(":scope > [data-row]", list) : [];
  // A browser that cannot unpack the others has only the first ones, and the note below them.
  const packed = list && window.DecompressionStream ? all(":scope > script[data-block]", list) : [];
  const rows = packed.length ? index.rows : index.rows.slice(0, first.length);
  const facets = index.facets, GROUP = 2, FACET = 3, ORDER = 3 + facets.length;
  const place = new Map(rows.map((row, at) => [row[0], at]));
  const numbers = index.names.map((names) => new Map(names.map((name, at) => [name, at])));
  const BLOCK = 100, END = "<!--row-->"; // rows of a block, and what divides them
  const blocks = packed.map(() => null); // the markup of those that are unpacked
  const unpacking = new Map();
  const divided = new Map(); // the last blocks that were taken apart

  const blockOf = (at) => Math.floor((at - first.length) / BLOCK); // below 0: an element from the start
  const isThere = (at) => blocks[blockOf(at)] !== null;

  async function unpack(block) {
    const bytes = Uint8Array.from(atob(packed[block].textContent), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    blocks[block] = await new Response(stream).text();
    packed[block] = null;
    unpacking.delete(block);
  }

  function unpacked(numbers) {
    const missing = [...new Set(numbers)].filter((block) => blocks[block] === null);
    for (const block of missing) if (!unpacking.has(block)) unpacking.set(block, unpack(block));
    return Promise.all(missing.map((block) => unpacking.get(block)));
  }

  const ready = (some) => unpacked(some.map(blockOf));

  function markupOf(at) {
    const block = blockOf(at);
    if (!divided.has(block)) {
      if (divided.size > 30) divided.delete(divided.keys().next().value);
      divided.set(block, blocks[block].split(END));
    }
    return divided.get(block)[(at - first.length) % BLOCK];
  }

  function elementOf(at) { // once its block is unpacked
    if (at < first.length) return first[at];
    const box = document.createElement("template");
    box.innerHTML = markupOf(at); // as it was escaped on the way into this file
    return $("[data-row]", box.content);
  }

  /* ---- Search: in the markup of rows, as it is escaped there. Escaped text has no bracket of its own, so what a
     closing one follows stands in a tag; labels are no text either, nor are the names of entities. */

  const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;" };
  const LABEL = '<(?:h[34]|span class="vh")[^>]*>[^<]*';
  const textOf = (row) => {
    const nodes = document.createTreeWalker(row, NodeFilter.SHOW_TEXT), texts = [];
    while (nodes.nextNode()) if (!nodes.currentNode.parentElement.matches("h3, h4, .vh")) texts.push(nodes.currentNode.data);
    return texts.join("\n");
  };
  const AT_ONCE = 8; // blocks that are unpacked together for a search
  const OFTEN = 250; // milliseconds after which a search shows what it has found so far
  let firstTexts = null, marks = null, lastWords = "", share = 1; // of the blocks that were searched

  async function search(words) {
    const found = new Uint8Array(rows.length), literal = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
    marks = found;
    firstTexts ||= first.map(textOf);
    const inText = new RegExp(literal(words), "i"), written = literal(words.replace(/[&<>"']/g, (sign) => ENTITIES[sign]));
    firstTexts.forEach((text, at) => { found[at] = inText.test(text); });
    // The words come first in the pattern: only then the browser looks for them at the speed of memory.
    const inMarkup = new RegExp(`${written}(?<!&[#\\w]*${written})(?![^<>]*>)(?<!${LABEL}${written})`, "gi");
    let shown = performance.now();
    for (let number = 0; number < blocks.length; number++) {
      if (blocks[number] === null) {
        share = number / blocks.length;
        if (performance.now() - shown > OFTEN) { filter(); shown = performance.now(); }
        await unpacked(Array.from({ length: Math.min(AT_ONCE, blocks.length - number) }, (_, next) => number + next));
        if (found !== marks) return; // other words are searched for
      }
      const block = blocks[number];
      let row = first.length + BLOCK * number - 1, end = -1;
      inMarkup.lastIndex = 0;
      for (let match = inMarkup.exec(block); match; match = inMarkup.exec(block)) {
        for (; end < match.index; row++) {
          const next = block.indexOf(END, end + 1);
          end = next < 0 ? block.length : next;
        }
        found[row] = 1;
        inMarkup.lastIndex = end;
      }
    }
    if (share < 1) { share = 1; filter(); }
  }

  /* What is searched for: words, and conditions as `results --where` has them, such as latency > 2s, cost > 0.01, tag = json
     and reason ~ city, all of which must hold. A colon is as good as ~. */

  const HOLDS = { "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b };
  const CONDITION = /(?:^|\s)(?:and\s+)?(\w+)\s*(?:([<>]=?)\s*(\d+(?:\.\d+)?)(ms|s|m)?|([:=~])\s*("[^"]*"|\S+))(?=\s|$)/g;
  const MS = { s: 1000, m: 60000 };

  function parse(text) {
    const conditions = [];
    const words = text.replace(CONDITION, (token, name, sign, number, unit, how, given) => {
      const order = index.orders.indexOf(name), facet = facets.indexOf(name);
      if (sign && order >= 0) {
        const bound = Number(number) * (MS[unit] || 1); // times are in milliseconds
        conditions.push((row) => row[ORDER + order] !== null && HOLDS[sign](row[ORDER + order], bound));
      } else if (given && facet >= 0) {
        const value = given.replace(/^"(.*)"$/, "$1"), fits = (each) => (how === "=" ? each === value : each.includes(value));
        const fitting = new Set(index.names[facet].flatMap((each, at) => (fits(each.toLowerCase()) ? [at] : [])));
        conditions.push((row) => row[FACET + facet].some((each) => fitting.has(each)));
      } else return token;
      return "";
    });
    return { words: words.trim(), conditions };
  }

  function examples() {
    const numbers = ["latency > 2s", "cost > 0.01", "affect > 0.8"].filter((each) => index.orders.includes(each.split(" ")[0]));
    const values = facets.flatMap((facet, at) => index.names[at].filter((name) => /^\S+$/.test(name)).slice(0, 1).map((name) => `${facet} = ${name}`));
    return [...numbers, ...values.slice(0, 2)].flatMap((each, at) => [at ? ", " : "; also ", make("code", {}, each)]);
  }

  /* ---- Filters: every chip counts what it would show beside what else is chosen. */

  const chips = all("[data-facet]").map((element) => ({ element, facet: facets.indexOf(element.dataset.facet), value: element.dataset.value }));
  let view = [], conditions = [];

  function wanted() {
    return facets.map((name, at) => { const value = get(name); return value ? numbers[at].get(value) ?? -1 : null; });
  }

  function choose() {
    const sought = parse(get("q").trim().toLowerCase()), isNew = sought.words !== lastWords;
    lastWords = sought.words;
    conditions = sought.conditions;
    if (isNew) {
      marks = null;
      share = 1;
      if (lastWords) search(lastWords);
    }
    filter();
  }

  function filter() {
    const want = wanted(), active = want.flatMap((each, at) => (each === null ? [] : [at]));
    const counts = index.names.map((names) => new Float64Array(names.length));
    const isCounted = facets.map((_, at) => chips.some((chip) => chip.facet === at && chip.value !== undefined));
    view = [];
    for (let at = 0; at < rows.length; at++) {
      if (marks && !marks[at]) continue;
      const row = rows[at];
      if (!conditions.every((holds) => holds(row))) continue;
      let missing = -1, misses = 0;
      for (const facet of active) if (!row[FACET + facet].includes(want[facet])) { missing = facet; misses++; }
      if (!misses) view.push(at);
      if (misses > 1) continue;
      for (let facet = 0; facet < facets.length; facet++) {
        if (!isCounted[facet] || (misses && facet !== missing)) continue;
        for (const number of row[FACET + facet]) counts[facet][number]++;
      }
    }
    const key = get("order"), column = ORDER + index.orders.indexOf(key.replace("-", ""));
    if (key && column >= ORDER) view = sorted(view, key, (at) => rows[at][column]);
    for (const { element, facet, value } of chips) {
      if (element.tagName === "SELECT") { element.value = get(element.dataset.facet); continue; }
      const number = numbers[facet].get(value), count = number === undefined ? 0 : counts[facet][number];
      $("[data-number]", element).textContent = count.toLocaleString("en");
      element.setAttribute("aria-pressed", String(get(element.dataset.facet) === value));
      element.toggleAttribute("data-none", !count);
    }
    if (ordering) ordering.value = key;
    if (field && field !== document.activeElement) field.value = get("q");
    if (shownText) {
      const noun = rows.length === 1 ? tools.dataset.one : tools.dataset.many, total = rows.length.toLocaleString("en");
      const some = view.length === rows.length ? `${total} ${noun}` : `${view.length.toLocaleString("en")} of ${total} ${noun}`;
      shownText.textContent = share < 1 ? `${some}, ${Math.floor(100 * share)}% searched` : some;
    }
    layOut();
    document.dispatchEvent(new CustomEvent("view:choose"));
  }

  /* ---- The list: rows in sight and a screen either side are elements; spacers keep the scroll bar true. */

  const above = make("div", { class: "space", "aria-hidden": "true" }), below = make("div", { class: "space", "aria-hidden": "true" });
  const nothing = make("p", { class: "none" }, `No ${tools ? tools.dataset.one : "row"} matches. `, make("button", { type: "button", class: "btn", "data-act": "clear" }, "Clear filters"));
  const heights = new Float64Array(rows.length);
  let tops = new Float64Array(1), drawn = new Map(), from = 0, to = 0, guess = 104, isPrinting = false;

  function headingOf(at) {
    if (!index.groups.length || get("order")) return null;
    const group = rows[view[at]][GROUP];
    if (at && rows[view[at - 1]][GROUP] === group) return null;
    const [one, many, name] = index.groups[group], count = view.reduce((sum, each) => sum + (rows[each][GROUP] === group), 0);
    const lead = name ? [make("bdi", {}, name), " "] : [];
    return make("h2", { class: "group" }, ...lead, make("span", { class: "num" }, count.toLocaleString("en")), " " + (count === 1 ? one : many));
  }

  function sumUp() {
    tops = new Float64Array(view.length + 1);
    for (let at = 0; at < view.length; at++) tops[at + 1] = tops[at] + (heights[view[at]] || guess);
  }

  function atHeight(y) {
    let low = 0, high = Math.max(0, view.length - 1);
    while (low < high) { const middle = (low + high + 1) >> 1; if (tops[middle] <= y) low = middle; else high = middle - 1; }
    return low;
  }

  /* What keeps the place of a row until its block is unpacked. */
  function waiting() {
    const made = make("div", { class: "space", "aria-hidden": "true" });
    made.style.height = guess + "px";
    return made;
  }

  const waits = (elements) => elements.at(-1).matches(".space");

  function layOut() {
    for (const elements of drawn.values()) elements.forEach((each) => each.remove());
    drawn = new Map();
    nothing.hidden = view.length > 0 || share < 1;
    sumUp();
    draw();
  }

  function draw() {
    if (!list) return;
    const top = -above.getBoundingClientRect().top, screen = innerHeight;
    const isAll = view.length <= ALL_DRAWN || isPrinting;
    from = isAll ? 0 : atHeight(top - screen);
    to = isAll ? view.length : Math.min(view.length, atHeight(top + 2 * screen) + 1);
    for (const [at, elements] of drawn) {
      if (at >= from && at < to && !(waits(elements) && isThere(view[at]))) continue;
      elements.forEach((each) => each.remove());
      drawn.delete(at);
    }
    const wanted = view.slice(from, to);
    if (!wanted.every(isThere)) ready(wanted).then(drawSoon);
    let next = above.nextSibling, isNew = false;
    for (let at = from; at < to; at++) {
      if (!drawn.has(at)) {
        const heading = headingOf(at), row = isThere(view[at]) ? elementOf(view[at]) : waiting();
        row.dataset.at = at;
        drawn.set(at, heading ? [heading, row] : [row]);
        for (const each of drawn.get(at)) list.insertBefore(each, next);
        isNew = true;
      }
      next = drawn.get(at).at(-1).nextSibling;
    }
    above.style.height = tops[from] + "px";
    below.style.height = tops[view.length] - tops[to] + "px";
    if (isNew) { measure(); dress(); }
  }

  /* Heights replace guesses; what the reader looks at stays where it is. */
  function measure() {
    const anchor = Math.max(from, Math.min(to - 1, atHeight(-above.getBoundingClientRect().top + 1))), before = tops[anchor];
    const ys = [];
    for (let at = from; at < to; at++) ys.push(drawn.get(at)[0].getBoundingClientRect().top);
    ys.push(below.getBoundingClientRect().top);
    const isAtEnd = scrollY > 0 && scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
    for (let at = from; at < to; at++) heights[view[at]] = ys[at - from + 1] - ys[at - from];
    guess = (ys[to - from] - ys[0]) / Math.max(1, to - from);
    sumUp();
    above.style.height = tops[from] + "px";
    below.style.height = tops[view.length] - tops[to] + "px";
    const moved = tops[anchor] - before;
    if (isAtEnd && !isPrinting) scrollTo(0, document.documentElement.scrollHeight);
    else if (Math.abs(moved) > 1 && -list.getBoundingClientRect().top > 0 && !isPrinting) scrollBy(0, moved);
  }

  let isAsked = false;
  function drawSoon() {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => { isAsked = false; draw(); });
  }

  /* What is searched for is marked, and what is open is, without changing the elements. */
  function dress() {
    const open = get("open"), dot = open.lastIndexOf("."), id = open.slice(0, dot), cell = Number(open.slice(dot + 1));
    for (const each of all("[data-current]", list)) each.removeAttribute("data-current");
    const row = open && document.getElementById(id);
    if (row && list.contains(row)) {
      row.setAttribute("data-current", "");
      const current = all(".cell", row)[cell];
      if (current) current.setAttribute("data-current", "");
    }
    if (!window.Highlight || !CSS.highlights) return;
    CSS.highlights.delete("found");
    const words = lastWords, ranges = [];
    if (words.length > 1) {
      for (const root of [list, panel]) {
        const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
        for (let node = walker.nextNode(); node && ranges.length < 2000; node = walker.nextNode()) {
          const text = node.data.toLowerCase();
          if (text.length !== node.data.length) continue;
          for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + words.length)) {
            const range = new Range();
            range.setStart(node, at);
            range.setEnd(node, at + words.length);
            ranges.push(range);
          }
        }
      }
      CSS.highlights.set("found", new Highlight(...ranges));
    }
  }

  /* ---- The panel: everything about one cell. */

  function opened() {
    const open = get("open"), dot = open.lastIndexOf("."), at = place.get(open.slice(0, dot));
    return open && at !== undefined ? { at, cell: Number(open.slice(dot + 1)) || 0 } : null;
  }

  function open(at, cell, { focus = true } = {}) {
    const isStep = !get("open");
    keep({ open: `${rows[at][0]}.${cell}` }, isStep);
    show(focus);
  }

  function close() {
    const now = opened();
    if (history.state && history.state.isStep) { history.back(); return; }
    keep({ open: "" });
    show();
    if (now) focusOn(now.at, now.cell);
  }

  function focusOn(at, cell) {
    const where = view.indexOf(at);
    if (where < 0) return;
    if (!drawn.has(where) || waits(drawn.get(where))) {
      scrollTo(0, scrollY + list.getBoundingClientRect().top + tops[where] - innerHeight / 3);
      draw();
    }
    const row = drawn.has(where) && drawn.get(where).at(-1);
    if (!row) return;
    row.scrollIntoView({ block: "nearest" });
    const summary = $("summary", all(".cell", row)[cell] || row);
    if (summary && headScroll) summary.parentElement.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (summary) summary.focus({ preventScroll: true });
  }

  /* A button with a sign, and the key that does the same: no phone has one. */
  function button(label, sign, key, act) {
    const made = make("button", { type: "button", class: "btn bare", "aria-label": label }, sign, make("span", { class: "key" }, ` ${key}`));
    made.addEventListener("click", act);
    return made;
  }

  /* A row and those around it, which are in sight with it. */
  function around(at) {
    const where = view.indexOf(at);
    return where < 0 ? [at] : view.slice(Math.max(0, where - 40), where + 40);
  }

  let lastPanel = "";
  async function show(focus) {
    const now = opened(), wanted = get("open");
    if (now && !around(now.at).every(isThere)) {
      await ready(around(now.at));
      if (wanted !== get("open")) return; // something else is shown
      draw();
    }
    const wasOpen = !panel.hidden;
    panel.hidden = !now;
    split.classList.toggle("open", !!now);
    if (now) {
      const row = elementOf(now.at), cells = all(".cell", row), cell = cells[now.cell], body = cell && $(".body", cell);
      if (lastPanel !== get("open")) {
        lastPanel = get("open");
        fillPanel(row, cells, cell, body, now);
        panel.scrollTop = 0;
      }
      if (focus) focusOn(now.at, now.cell);
      document.dispatchEvent(new CustomEvent("view:open", { detail: { row, cell, panel } }));
    } else if (wasOpen) {
      lastPanel = "";
      panel.replaceChildren();
      document.dispatchEvent(new CustomEvent("view:close"));
    }
    const isOver = !!now && innerWidth <= 1100; // it lies over the page, as a dialog does
    main.inert = isOver;
    if (isOver) panel.setAttribute("role", "dialog"); else panel.removeAttribute("role");
    if (!!now !== wasOpen) { heights.fill(0); layOut(); if (now && focus) focusOn(now.at, now.cell); }
    if (isOver) panel.focus();
    dress();
  }

  function fillPanel(row, cells, cell, body, { at, cell: number }) {
    const title = make("h2", { dir: "auto" }, row.dataset.title || row.id);
    if (cell && cell.dataset.name) title.append(make("small", {}, cell.dataset.name));
    const ends = make("span", { class: "end" }, button("Previous", "↑", "k", () => move(-1, 0)), button("Next", "↓", "j", () => move(1, 0)), button("Close", "✕", "esc", close));
    const head = make("header", {}, make("div", { class: "row1" }, title, ends));
    const content = body ? Array.from(body.cloneNode(true).childNodes) : [make("section", {}, make("p", { class: "dim" }, "Nothing here."))];
    const box = make("div", { class: "panelbody" }, ...content);
    for (const hole of all("[data-from]", box)) {
      const part = $(`[data-part="${CSS.escape(hole.dataset.from)}"]`, row);
      if (part) { const copy = part.cloneNode(true); copy.hidden = false; hole.replaceWith(...copy.childNodes); }
    }
    for (const link of all("a[data-figure]", box)) {
      const figure = document.getElementById(link.dataset.figure).cloneNode(true);
      figure.removeAttribute("id");
      link.replaceWith(figure);
    }
    const others = $("[data-others]", box), made = cells.flatMap((each, other) => (other === number || !$("summary", each) ? [] : [otherCell(each, at, other)]));
    if (others && made.length) { others.hidden = false; others.append(make("div", { class: "others" }, ...made)); }
    for (const text of all("[data-copy]", box)) {
      const copy = make("button", { type: "button", class: "btn copy" }, "Copy");
      text.after(copy);
    }
    for (const text of all("[data-long], [data-copy]", box)) {
      if (text.textContent.length <= LONG) continue;
      text.classList.add("clamped");
      const more = make("button", { type: "button", class: "btn" }, `Show all ${text.textContent.length.toLocaleString("en")} characters`);
      more.addEventListener("click", () => { text.classList.remove("clamped"); more.remove(); });
      (text.nextElementSibling || text).after(more);
    }
    panel.replaceChildren(head, box);
  }

  function otherCell(cell, at, number) {
    const letter = (cell.className.match(/is-(\w)/) || ["", ""])[1];
    const made = make("button", { type: "button", class: `other is-${letter}` }, ...$("summary", cell).cloneNode(true).childNodes);
    made.addEventListener("click", () => open(at, number));
    return made;
  }

  /* ---- Moving about: rows, cells, failures. */

  function move(byRow, byCell) {
    const now = opened();
    if (!view.length) return;
    let where = now ? view.indexOf(now.at) : -1, cell = now ? now.cell : 0;
    where = where < 0 ? 0 : Math.max(0, Math.min(view.length - 1, where + byRow));
    const letters = rows[view[where]][1];
    cell = Math.max(0, Math.min(letters.length - 1, cell));
    for (let next = cell + byCell; byCell && next >= 0 && next < letters.length; next += byCell) if (letters[next] !== "-") { cell = next; break; }
    if (letters[cell] === "-") cell = Math.max(0, letters.search(/[^-]/));
    open(view[where], cell);
  }

  function failure(step) {
    const now = opened(), bad = (letter) => letter === "f" || letter === "e";
    let where = now ? view.indexOf(now.at) : step > 0 ? 0 : view.length - 1, cell = now && where >= 0 ? now.cell + step : step > 0 ? 0 : Infinity;
    for (let tries = 0; tries <= view.length; tries++) {
      where = (where + view.length) % view.length;
      const letters = rows[view[where]] ? rows[view[where]][1] : "";
      for (let at = step > 0 ? cell : Math.min(cell, letters.length - 1); at >= 0 && at < letters.length; at += step) if (bad(letters[at])) return open(view[where], at);
      where += step;
      cell = step > 0 ? 0 : Infinity;
    }
  }

  async function copy(text, copyButton) {
    let word = "Copied";
    try { await navigator.clipboard.writeText(text.textContent); } catch (refused) {
      getSelection().selectAllChildren(text);
      word = document.execCommand("copy") ? "Copied" : "Selected";
    }
    say(`${word}: ${text.textContent}`);
    if (!copyButton) return;
    copyButton.textContent = word;
    setTimeout(() => { copyButton.textContent = "Copy"; }, 1500);
  }

  let quiet = 0;
  function say(text) {
    toast.textContent = text.slice(0, 200);
    toast.hidden = false;
    clearTimeout(quiet);
    quiet = setTimeout(() => { toast.hidden = true; }, 2500);
  }

  /* ---- Events. */

  const change = (changes) => { keep(changes); choose(); };

  document.addEventListener("click", (event) => {
    const target = event.target, act = target.closest("[data-act]"), chip = target.closest("button[data-facet]");
    if (act && act.dataset.act === "help") return help.showModal();
    if (act && act.dataset.act === "close-help") return help.close();
    if (act && act.dataset.act === "clear") {
      if (field) field.value = "";
      return change({ q: "", ...Object.fromEntries(facets.map((name) => [name, ""])) });
    }
    if (target.matches("button.copy")) return copy(target.previousElementSibling, target);
    if (chip) return change({ [chip.dataset.facet]: chip.getAttribute("aria-pressed") === "true" ? "" : chip.dataset.value });
    const row = list && target.closest("[data-row]");
    if (!row || !list.contains(row) || target.closest("a, button, input, select, label")) return;
    const cells = all(".cell", row), cell = target.closest(".cell") || (cells.length === 1 && cells[0]);
    if (!cell || !$(".body", cell) || target.closest(".body")) return;
    event.preventDefault();
    if (String(getSelection())) return;
    const now = opened(), at = place.get(row.id), number = cells.indexOf(cell);
    if (now && now.at === at && now.cell === number) close(); else open(at, number);
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("select[data-facet]")) change({ [event.target.dataset.facet]: event.target.value });
    if (event.target.matches("[data-order]")) change({ order: event.target.value });
  });

  let soon = 0;
  if (field) field.addEventListener("input", () => {
    clearTimeout(soon);
    const typed = field.value.trim(); // a click elsewhere meanwhile writes the old words into the field
    soon = setTimeout(() => change({ q: typed }), 60);
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.key === "Escape") {
      if (event.target === field) field.blur(); else if (!panel.hidden) close();
      return;
    }
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const acts = {
      "/": () => field && field.focus(), "?": () => help.showModal(),
      j: () => move(1, 0), k: () => move(-1, 0), h: () => move(0, -1), l: () => move(0, 1),
      f: () => failure(1), F: () => failure(-1),
      y: () => { const text = $("[data-key=y]", panel); if (text) copy(text, text.nextElementSibling); },
    };
    if (!acts[event.key] || (!rows.length && event.key !== "?")) return;
    event.preventDefault();
    acts[event.key]();
  });

  if (headScroll) for (const [from, to] of [[list, headScroll], [headScroll, list]]) {
    from.addEventListener("scroll", () => { if (to.scrollLeft !== from.scrollLeft) to.scrollLeft = from.scrollLeft; }, { passive: true });
  }

  addEventListener("scroll", drawSoon, { passive: true });
  addEventListener("resize", () => { heights.fill(0); layOut(); });
  addEventListener("popstate", () => {
    if (location.hash && !location.hash.includes("=")) return;
    const before = opened();
    restore();
    if (before && !opened()) focusOn(before.at, before.cell);
  });

  /* On paper, failures stand whole; thousands of rows would be a book. Nothing can be waited for when printing
     begins, so its rows are unpacked a moment after they were chosen. */
  const PRINTED = 1000, RESTS = 500, PREPARED = 20; // rows, milliseconds after the last choice, rows at a time
  let kept = null, rest = 0;

  async function prepare() {
    const now = kept || view;
    for (let at = 0; at < Math.min(now.length, PRINTED) && (kept || view) === now; at += PREPARED) await ready(now.slice(at, at + PREPARED));
  }

  document.addEventListener("view:choose", () => {
    clearTimeout(rest);
    rest = setTimeout(prepare, RESTS);
  });
  addEventListener("beforeprint", () => {
    if (!list) return;
    isPrinting = true;
    kept = view;
    view = view.slice(0, PRINTED).filter(isThere);
    layOut();
    for (const each of all(".cell.is-f, .cell.is-e", list)) if (each.matches("details")) each.open = true;
    for (const each of all("details.about")) each.open = true;
  });
  addEventListener("afterprint", () => {
    if (!kept) return;
    for (const each of all(".cell[open]", list)) each.open = false;
    view = kept;
    kept = null;
    isPrinting = false;
    layOut();
  });

  /* The browser's own search opens what it finds in: that belongs into the panel. */
  document.addEventListener("toggle", (event) => {
    const cell = event.target;
    if (isPrinting || !cell.open || !cell.matches || !cell.matches("[data-row] > .cell")) return;
    cell.open = false;
    open(place.get(cell.parentElement.id), all(".cell", cell.parentElement).indexOf(cell), { focus: false });
  }, true);

  function restore() {
    read();
    for (const table of tables) if (state.has(table.id)) sortTable(table, get(table.id));
    choose();
    return show(false);
  }

  /* What the script of a page may use, as a property of the list: rows are numbers from 0, in the order of the page. */
  if (list) {
    const column = (name) => facets.indexOf(name);
    list.report = {
      get, change, open, opened, shown: () => view, count: (name) => index.names[column(name)].length,
      values: (at, name) => rows[at][FACET + column(name)].map((number) => index.names[column(name)][number]),
      has: (at, name, value) => rows[at][FACET + column(name)].includes(numbers[column(name)].get(value)),
      element: async (id) => { if (place.has(id)) { await ready([place.get(id)]); return elementOf(place.get(id)); } },
      replace: (at, cell = 0) => { keep({ open: `${rows[at][0]}.${cell}` }); show(false); }, // opens without a step in the history
    };
  }

  document.documentElement.classList.add("script");
  for (const each of list ? all("[data-examples]", help) : []) each.append(...examples());
  if (list) {
    for (const each of [...packed, ...all(":scope > .group", list), ...first]) each.remove();
    list.append(above, below, nothing);
    const note = $("[data-packed]", list);
    if (packed.length) note.remove(); else if (note) list.append(note);
  }
  restore().then(() => {
    const now = opened();
    if (now) focusOn(now.at, now.cell);
  });
})();
