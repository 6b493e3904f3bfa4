/* Sorting, search and filters of an HTML report. Nothing is needed to read it; the state is in the address. */
"use strict";
(() => {
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));
  const CHUNK = 100;
  const tables = all("table[data-sort]");
  const scopes = all("[data-scope]").map(scopeOf);
  let state = new URLSearchParams();

  /* ---- The state: pairs in the part of the address that no server sees, so that it works from a file. */

  function read() {
    const hash = location.hash.slice(1);
    return new URLSearchParams(hash.includes("=") ? hash : "");
  }

  function keep(key, value) {
    if (value) state.set(key, value);
    else state.delete(key);
    const hash = state.toString();
    try {
      history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
    } catch (refused) {
      location.hash = hash;
    }
  }

  function restore() {
    state = read();
    for (const table of tables) if (state.has(table.id)) sortTable(table, state.get(table.id));
    for (const scope of scopes) {
      for (const field of scope.fields) field.value = state.get(field.dataset.key) || "";
      order(scope);
      filter(scope);
    }
    for (const id of (state.get("open") || "").split(",")) {
      const item = id && document.getElementById(id);
      if (item && item.matches("details")) item.open = true;
    }
  }

  /* ---- Values: numbers before words, and what is not known last, whichever way it is sorted. */

  const collator = new Intl.Collator(undefined, { numeric: true });

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "string" && typeof b === "string") return collator.compare(a, b);
    return typeof a === "number" ? -1 : 1;
  }

  function sorted(elements, key, valueOf) {
    const sign = key.startsWith("-") ? -1 : 1;
    const known = [], unknown = [];
    for (const element of elements) {
      const value = valueOf(element), number = Number(value);
      if (value === "") unknown.push(element);
      else known.push({ value: Number.isNaN(number) ? value : number, element });
    }
    known.sort((one, other) => sign * compare(one.value, other.value));
    return known.map((each) => each.element).concat(unknown);
  }

  /* ---- Tables: a click on a heading sorts by its column. */

  function sortTable(table, key) {
    const column = Math.abs(Number(key)) - 1, heads = all("thead th", table), body = table.tBodies[0];
    if (!heads[column]) return;
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", key.startsWith("-") ? "descending" : "ascending");
    const rows = sorted(body.rows, key, ({ cells: { [column]: cell } }) => {
      return cell.dataset.value === undefined ? cell.textContent.trim() : cell.dataset.value;
    });
    for (const row of rows) body.append(row);
  }

  tables.forEach((table, at) => {
    if (!table.id) table.id = "table" + (at + 1);
    all("thead th", table).forEach((head, column) => {
      if (!head.textContent.trim()) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        // Numbers are first sorted from the highest, words from the first letter.
        const now = head.getAttribute("aria-sort"), first = head.classList.contains("n") ? "-" : "";
        const sign = now === "descending" ? "" : now === "ascending" ? "-" : first;
        sortTable(table, sign + (column + 1));
        keep(table.id, sign + (column + 1));
      });
    });
  });

  /* ---- Items: rows or cards that can be searched, filtered and put in order. */

  function scopeOf(element) {
    const lists = all("[data-list]", element).map((list) => ({
      list, items: all("[data-item]", list), chunks: all(":scope > [data-chunk]", list),
    }));
    return {
      element, lists,
      items: lists.flatMap((each) => each.items),
      fields: all("[data-key]", element),
      count: element.querySelector("[data-count]"),
      texts: new Map(),
      order: "",
    };
  }

  function order(scope) {
    const field = scope.fields.find((each) => each.dataset.key === "order");
    const key = field ? field.value : "";
    if (key === scope.order) return;
    scope.order = key;
    const name = key.replace("-", "");
    for (const { list, items, chunks } of scope.lists) {
      const found = key ? sorted(items, key, (item) => item.dataset[name] || "") : items;
      const place = list.nextSibling, parent = list.parentNode;
      list.remove(); // moving thousands of elements is quick where nobody sees them
      found.forEach((item, at) => (chunks[Math.floor(at / CHUNK)] || list).append(item));
      parent.insertBefore(list, place);
    }
  }

  const ENTITIES = [["&", "&amp;"], ["<", "&lt;"], [">", "&gt;"], ['"', "&#34;"], ["'", "&#39;"]];

  /* A closed item's details are the text of its <noscript>: markup that has not become elements yet. It is only
     taken apart where the words are in it, as they are written there: few items of thousands. */
  function holds(scope, item, words, written) {
    let known = scope.texts.get(item);
    if (!known) {
      const held = item.querySelector(":scope > noscript");
      known = held
        ? { text: item.firstElementChild.textContent.toLowerCase(), markup: held.textContent.toLowerCase() }
        : { text: item.textContent.toLowerCase(), markup: "" };
      scope.texts.set(item, known);
    }
    if (known.markup && !known.text.includes(words) && known.markup.includes(written)) {
      let text = known.markup.replace(/<[^>]*>/g, "\n");
      for (const [sign, name] of [...ENTITIES].reverse()) text = text.replaceAll(name, sign);
      known.text += "\n" + text;
      known.markup = "";
    }
    return known.text.includes(words);
  }

  function filter(scope) {
    const wanted = {};
    let words = "";
    for (const { dataset, value } of scope.fields) {
      if (dataset.key === "q") words = value.trim().toLowerCase();
      else if (dataset.key !== "order" && value) wanted[dataset.key] = value;
    }
    const written = ENTITIES.reduce((text, [sign, name]) => text.replaceAll(sign, name), words);
    const keys = Object.keys(wanted);
    const fits = (element) => keys.every((key) => element.dataset[key] === undefined || element.dataset[key] === wanted[key]);
    let shown = 0;
    for (const { list, items, chunks } of scope.lists) {
      const before = shown;
      for (const item of items) {
        let is = fits(item) && (!words || holds(scope, item, words, written));
        if (is && item.dataset.parts !== undefined) {
          let any = false;
          for (const part of all("[data-part]", item)) any = !(part.hidden = !fits(part)) || any;
          is = any;
        }
        if (item.hidden === is) item.hidden = !is;
        shown += is;
      }
      for (const chunk of chunks) {
        const number = all(":scope > [data-item]:not([hidden])", chunk).length;
        chunk.hidden = !number;
        chunk.style.containIntrinsicSize = number === CHUNK ? "" : `auto ${4.6 * number}rem`;
      }
      const none = list.parentElement.querySelector(":scope > [data-none]");
      if (none) none.hidden = shown > before;
    }
    if (scope.count) scope.count.textContent = `${shown.toLocaleString("en")} of ${scope.items.length.toLocaleString("en")} shown`;
  }

  function changed(scope, field) {
    keep(field.dataset.key, field.value);
    if (field.dataset.key === "order") order(scope);
    filter(scope);
  }

  for (const scope of scopes) {
    for (const field of scope.fields) {
      let soon = 0;
      field.addEventListener(field.tagName === "SELECT" ? "change" : "input", () => {
        clearTimeout(soon);
        if (field.tagName === "SELECT") changed(scope, field);
        else soon = setTimeout(() => changed(scope, field), 150);
      });
    }
    for (const button of all(".reset", scope.element)) {
      button.addEventListener("click", () => {
        for (const field of scope.fields) {
          field.value = "";
          keep(field.dataset.key, "");
        }
        order(scope);
        filter(scope);
      });
    }
    for (const tools of all(".tools", scope.element)) tools.hidden = false;
  }

  /* ---- Details become elements when they are opened. */

  function copyButton() {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    return button;
  }

  function unfold(item) {
    const held = item.querySelector(":scope > noscript");
    if (!held) return;
    const box = document.createElement("div");
    box.innerHTML = held.textContent; // as it was escaped on the way into this file
    for (const said of all(".said > pre", box)) said.after(copyButton());
    held.replaceWith(box);
  }

  document.addEventListener("toggle", (event) => {
    const item = event.target;
    if (!item.matches || !item.matches("details[data-item]")) return;
    if (item.open) unfold(item);
    if (!item.id) return;
    const open = new Set((state.get("open") || "").split(",").filter(Boolean));
    if (item.open) open.add(item.id);
    else open.delete(item.id);
    keep("open", Array.from(open).slice(-20).join(","));
  }, true);

  /* ---- Copying, keys and printing. */

  document.addEventListener("click", async (event) => {
    const button = event.target.closest && event.target.closest("button.copy");
    if (!button) return;
    let said = button.previousElementSibling;
    while (said && said.tagName !== "PRE") said = said.previousElementSibling;
    if (!said) return;
    try {
      await navigator.clipboard.writeText(said.textContent);
      button.textContent = "Copied";
    } catch (refused) {
      getSelection().selectAllChildren(said);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });

  document.addEventListener("keydown", (event) => {
    const field = document.querySelector("[data-key=q]");
    if (!field || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      field.focus();
    }
  });

  /* A link to a place has no pairs and changes no filter, but opens what is closed or hidden there. */
  function visit() {
    const place = document.getElementById(location.hash.slice(1));
    if (!place || !place.matches("details[data-item]")) return;
    for (let each = place; each; each = each.parentElement) each.hidden = false;
    place.open = true;
    place.scrollIntoView();
  }

  /* One to a filter goes to what it leaves. */
  addEventListener("hashchange", () => {
    if (!location.hash.includes("=")) return visit();
    restore();
    const scope = scopes.find(({ fields }) => fields.some((field) => field.value));
    if (scope) scope.element.scrollIntoView();
  });
  document.documentElement.classList.add("script");
  restore();
  visit();
})();
