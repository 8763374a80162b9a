// Tables that sort and filter, charts that open. The address keeps the view of each table.
"use strict";
const root = document.body.dataset.root;
const hasCards = matchMedia("(max-width: 48rem)").matches; // in place of rows of wide tables
const MANY_ROWS = hasCards ? 12 : 40;
const FIRST_ROWS = hasCards ? 8 : 25;

// The fragment has one part per table: #name?sort=column,-1&find=text;other?…
function readState() {
  const parts = decodeURIComponent(location.hash.slice(1)).split(";");
  return new Map(parts.filter(Boolean).map((part) => {
    const [name, query = ""] = part.split("?");
    return [name, new URLSearchParams(query)];
  }));
}

function writeState(name, state, how = "replaceState") {
  const all = readState();
  all.delete(name);
  const others = [...all].filter(([, query]) => query.size);
  const mine = state.size ? [[name, state]] : [];
  const text = [...mine, ...others].map(([key, query]) => `${key}?${query}`).join(";");
  history[how](null, "", "#" + encodeURI(text || name).replaceAll("%252C", ","));
}

function element(kind, properties = {}, ...children) {
  const made = Object.assign(document.createElement(kind), properties);
  made.append(...children);
  return made;
}

// a, b, … z, aa, ab and so on, from 0 on.
function letters(number) {
  const rest = Math.floor(number / 26);
  return (rest ? letters(rest - 1) : "") + String.fromCharCode(97 + (number % 26));
}

class Table {
  constructor(table) {
    this.table = table;
    this.name = table.dataset.table;
    this.heads = [...table.tHead.rows[0].cells];
    this.rows = [...table.tBodies[0].rows];
    this.original = [...this.rows];
    this.state = readState().get(this.name) ?? new URLSearchParams();
    if (this.rows.length < 2) return;
    this.tools = element("div", { className: "tools" });
    this.addSort();
    if (table.dataset.parts) this.addParts(JSON.parse(table.dataset.parts));
    if (this.rows.length > 7) this.addFilters();
    this.addColumns();
    this.addMore();
    if (this.tools.children.length) table.parentElement.before(this.tools);
    this.apply();
    if (readState().has(this.name) && this.state.size) table.closest("figure").scrollIntoView();
  }

  addSort() {
    this.heads.forEach((head, index) => {
      const [name, ...others] = head.childNodes;
      const button = element("button", { type: "button" }, element("span", {}, name.textContent.trim()), ...others);
      button.addEventListener("click", () => {
        const [column, order] = (this.state.get("sort") ?? "").split(",");
        const isSame = column === head.dataset.column;
        this.set("sort", `${head.dataset.column},${isSame && order === "1" ? "-1" : "1"}`);
      });
      head.replaceChildren(button);
    });
  }

  // Months or a source: the part's file has the cells as the page shows them.
  addParts(names) {
    const select = element("select", {}, element("option", { value: "" }, "the months named above, all sources"));
    for (const group of new Set(names.map((name) => name.split("/")[0]))) {
      const members = names.filter((name) => name.startsWith(`${group}/`));
      select.append(element("optgroup", { label: group }, ...members.map((value) => element("option", { value }, value.slice(group.length + 1)))));
    }
    select.setAttribute("aria-label", "months or source");
    select.value = this.state.get("part") ?? "";
    select.addEventListener("change", () => this.set("part", select.value));
    this.tools.append(select);
    this.title = this.table.closest("figure").querySelector("h2 a");
    this.about = this.table.closest("figure").querySelector("figcaption p");
    this.whole = { title: this.title.textContent, about: this.about.textContent, cells: this.rows.map((row) => [...row.cells].map((cell) => [cell.innerHTML, cell.dataset.value, cell.title])) };
  }

  async showPart(name) {
    this.part = name;
    this.parts ??= name && await loadData("parts", `figures/${this.name}.parts.js`);
    const part = this.parts?.[name];
    if (this.part !== name) return; // another one was chosen meanwhile
    this.title.textContent = part?.title ?? this.whole.title;
    this.about.textContent = part?.about ?? this.whole.about;
    const columns = new Set(Object.keys(Object.values(part?.rows ?? {})[0] ?? {}));
    this.original.forEach((row, number) => {
      const found = part?.rows[row.cells[0].textContent.trim()];
      [...row.cells].forEach((cell, index) => {
        const [html, value, why] = this.whole.cells[number][index];
        const column = this.heads[index].dataset.column;
        if (!columns.has(column)) {
          cell.innerHTML = html;
          cell.title = why;
          cell.classList.toggle("none", cell.textContent.trim() === "–");
          if (value) cell.dataset.value = value;
          return;
        }
        const [text, interval, raw, reason] = found?.[column] ?? ["–", "", "", "no text of these months or of this source"];
        cell.textContent = text;
        cell.title = reason;
        cell.classList.toggle("none", text === "–");
        if (interval) cell.append(" ", element("small", {}, interval));
        if (raw && cell.classList.contains("number")) cell.dataset.value = raw;
        else delete cell.dataset.value;
      });
    });
    this.apply();
  }

  // Marks shown cells with a reason, and lists the reasons below the table, as the page does.
  addReasons() {
    const cells = this.original.flatMap((row) => [...row.cells]).filter((cell) => !cell.hidden);
    const reasons = [...new Set(cells.map((cell) => cell.title).filter(Boolean))];
    const marks = new Map(reasons.map((reason, number) => [reason, letters(number)]));
    for (const cell of cells) {
      if (cell.title) cell.dataset.why = marks.get(cell.title);
      else delete cell.dataset.why;
    }
    const list = [...marks].flatMap(([reason, mark], number) => [number ? "; " : "", element("b", {}, mark), `: ${reason}`]);
    this.table.closest("figure").querySelector(".reasons")?.replaceChildren(...list);
  }

  addFilters() {
    const find = element("input", { type: "search", placeholder: "find rows: one, other", value: this.state.get("find") ?? "" });
    find.setAttribute("aria-label", "find rows; a comma separates several texts");
    find.addEventListener("input", () => this.set("find", find.value));
    this.tools.append(find);
    this.heads.forEach((head, index) => {
      if (!("facet" in head.dataset)) return;
      const values = [...new Set(this.rows.map((row) => row.cells[index].textContent.trim()))].sort();
      if (values.length < 2) return;
      const label = head.textContent.trim();
      const select = element("select", {}, element("option", { value: "" }, `any ${label}`), ...values.map((value) => element("option", { value }, value)));
      select.setAttribute("aria-label", label);
      select.value = this.state.get(`is.${head.dataset.column}`) ?? "";
      select.addEventListener("change", () => this.set(`is.${head.dataset.column}`, select.value));
      this.tools.append(select);
    });
    if (this.rows.some((row) => this.lacks(row))) {
      const box = element("input", { type: "checkbox", checked: this.state.get("complete") === "1" });
      box.addEventListener("change", () => this.set("complete", box.checked ? "1" : ""));
      this.tools.append(element("label", {}, box, "complete rows only"));
    }
  }

  addColumns() {
    if (!this.heads.some((head) => "optional" in head.dataset)) return;
    const boxes = this.heads.slice(1).map((head, index) => {
      const box = element("input", { type: "checkbox" });
      box.checked = this.isShown(index + 1);
      box.addEventListener("change", () => {
        const shown = this.heads.map((_, i) => i).filter((i) => (i === index + 1 ? box.checked : this.isShown(i)));
        this.set("columns", shown.map((i) => this.heads[i].dataset.column).join("."));
      });
      return element("label", {}, box, head.textContent.trim());
    });
    this.tools.append(element("details", {}, element("summary", {}, "columns"), element("div", {}, ...boxes)));
  }

  // The first rows, in the chosen order; a button shows all.
  addMore() {
    if (this.rows.length < MANY_ROWS) return;
    this.more = element("button", { type: "button" });
    this.more.addEventListener("click", () => this.set("rows", this.state.has("rows") ? "" : "all"));
    this.table.parentElement.after(element("p", { className: "tools" }, this.more));
  }

  isShown(index) {
    const head = this.heads[index];
    const chosen = this.state.get("columns");
    return chosen ? chosen.split(".").includes(head.dataset.column) : !("optional" in head.dataset);
  }

  lacks(row) {
    return [...row.cells].some((cell, index) => !("optional" in this.heads[index].dataset) && cell.textContent.trim() === "–");
  }

  set(key, value) {
    if (value) this.state.set(key, value);
    else this.state.delete(key);
    writeState(this.name, this.state);
    this.apply();
  }

  value(row, index) {
    const cell = row.cells[index];
    const text = cell.dataset.value ?? cell.textContent.trim();
    if (text === "–") return null;
    return cell.matches(".number, .trend") ? Number(text) : text.toLowerCase();
  }

  apply() {
    const part = this.state.get("part") ?? "";
    if (this.whole && part !== (this.part ?? "")) {
      this.showPart(part);
      return;
    }
    // A part is in its own order, that of the level.
    const [column, order] = (this.state.get("sort") ?? (part ? "bits_per_byte,1" : "")).split(",");
    const index = this.heads.findIndex((head) => head.dataset.column === column);
    this.heads.forEach((head, i) => {
      if (i === index) head.setAttribute("aria-sort", order === "-1" ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.rows = [...this.original];
    if (index >= 0) {
      const keyed = this.rows.map((row) => [this.value(row, index), row]);
      // Missing values come last in both orders.
      keyed.sort(([a], [b]) => (a === null) - (b === null) || (a < b ? -order : a > b ? Number(order) : 0));
      this.rows = keyed.map(([, row]) => row);
    }
    this.table.tBodies[0].append(...this.rows);
    const wanted = (this.state.get("find") ?? "").toLowerCase().split(",").map((text) => text.trim()).filter(Boolean);
    const most = this.more && !this.state.has("rows") ? FIRST_ROWS : Infinity;
    let num = 0;
    for (const row of this.rows) {
      const isFound = !wanted.length || wanted.some((text) => row.textContent.toLowerCase().includes(text));
      const fits = this.heads.every((head, i) => {
        const wanted = this.state.get(`is.${head.dataset.column}`);
        return !wanted || row.cells[i].textContent.trim() === wanted;
      });
      const isOut = !isFound || !fits || (this.state.get("complete") === "1" && this.lacks(row));
      num += !isOut;
      row.hidden = isOut || num > most;
    }
    if (this.more) {
      this.more.hidden = num <= FIRST_ROWS;
      this.more.textContent = num > most ? `Show all ${num} rows` : `Show the first ${FIRST_ROWS} rows`;
    }
    for (const row of [this.table.tHead.rows[0], ...this.rows]) {
      [...row.cells].forEach((cell, i) => { cell.hidden = !this.isShown(i); });
    }
    this.addReasons();
  }
}

// Charts: the picture is there without a script; the first touch loads the interactive one.
const scripts = new Map();
function load(path) {
  if (!scripts.has(path)) {
    scripts.set(path, new Promise((resolve, reject) => {
      const script = element("script", { src: root + path, onload: resolve, onerror: reject });
      document.head.append(script);
    }));
  }
  return scripts.get(path);
}

// A file of data is a script that calls tidemark[name], so that pages work from disk, too.
function loadData(name, path) {
  return new Promise((resolve, reject) => {
    globalThis.tidemark[name] = resolve;
    load(path).catch(reject);
  });
}

// Two models chosen on the page of comparisons: their rows of all pairs, best known overall first.
// The page itself has the first pair. Each choice is an entry of the history, so that Back undoes it.
class Comparison {
  constructor(form) {
    this.form = form;
    this.place = document.querySelector("[data-compared]");
    const { one, other } = form.elements;
    other.append(...[...one.options].map((option) => option.cloneNode(true)));
    this.usual = { one: one.value, other: form.dataset.other };
    for (const select of [one, other]) {
      select.addEventListener("change", () => {
        writeState("pair", new URLSearchParams({ one: one.value, other: other.value }), "pushState");
        this.show();
      });
    }
    addEventListener("popstate", () => this.read());
    form.hidden = false;
    this.read();
  }

  read() {
    const state = readState().get("pair");
    const unknown = [];
    for (const [name, usual] of Object.entries(this.usual)) {
      const select = this.form.elements[name];
      const wanted = state?.get(name) ?? usual;
      const isKnown = [...select.options].some((option) => option.value === wanted);
      if (!isKnown) unknown.push(wanted);
      select.value = isKnown ? wanted : usual;
    }
    if (unknown.length) this.tell(`There is no model ${unknown.join(" and no model ")} here. Choose two from the lists.`);
    else if (state || this.isChanged) this.show();
  }

  tell(text) {
    this.isChanged = true;
    this.place.replaceChildren(element("p", { className: "note" }, text));
  }

  async show() {
    const [one, other] = ["one", "other"].map((name) => this.form.elements[name].value);
    if (one === other) {
      this.tell(`${one} is on both sides. Choose another model to compare it with.`);
      return;
    }
    this.isChanged = true;
    this.showMonths(one, other);
    this.data ??= await loadData("pairs", "figures/pairs.data.js");
    const data = this.data;
    if (this.form.elements.one.value !== one || this.form.elements.other.value !== other) return; // another pair meanwhile
    const isPair = (i) => (data.model[i] === one && data.other[i] === other) || (data.model[i] === other && data.other[i] === one);
    const found = data.model.map((_, i) => i).filter(isPair);
    if (!found.length) {
      this.place.replaceChildren(element("p", { className: "note" }, "These two have no documents in common."));
      return;
    }
    const head = ["source", "difference, bits per byte", "95 % interval of this pair", "p, for all pairs", "documents"];
    const [overall] = found;
    // The text above the table has the reason of the first row.
    const hasOwnReason = (i) => data.p[i] === null && data.reason[i] && (data.p[overall] !== null || data.reason[i] !== data.reason[overall]);
    const rows = found.map((i) => {
      const isTurned = data.model[i] !== one;
      const signed = (value) => (value === null ? "–" : (isTurned ? -value : value).toFixed(4).replace("-", "\u2212"));
      const ends = [data.low[i], data.high[i]];
      if (isTurned) ends.reverse();
      const p = data.p[i] === null ? "–" : data.p[i] < 0.001 ? "< 0.001" : data.p[i].toFixed(3);
      const cells = [data.source[i] ?? "all sources", signed(data.difference[i]), ends.map(signed).join(" to "), p, data.n[i].toLocaleString("en")];
      return element("tr", {}, ...cells.map((text, k) => element(k ? "td" : "th", { className: k ? "number" : "" }, text, ...(k === 3 && hasOwnReason(i) ? [" ", element("small", {}, data.reason[i])] : []))));
    });
    if (data.difference[overall] === null) {
      this.place.replaceChildren(element("p", { className: "note" }, `${one} and ${other} cannot be compared: ${data.reason[overall]}.`));
      return;
    }
    const isOverTime = data.p[overall] !== null;
    const isSure = isOverTime ? data.p[overall] <= 0.05 : data.low[overall] * data.high[overall] > 0;
    const isBetter = data.difference[overall] < 0 === (data.model[overall] === one);
    const isSeen = data.basis[overall].startsWith("months that may have been seen");
    const verdict = isSure ? `${isBetter ? one : other} is better than ${isBetter ? other : one}${isOverTime ? "" : " on these documents"}${isSeen ? ", maybe seen in training" : ""}` : `${one} and ${other} cannot be told apart`;
    const reason = (data.reason[overall] ?? "").replace(/^no interval: /, "");
    const ofDocuments = data.low[overall] === null ? "" : " The interval is what other documents of these months may give.";
    const untested = isOverTime ? "" : ` No p-value${reason && `: ${reason}`}.${ofDocuments}`;
    const table = element("table", {}, element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { scope: "col" }, text)))), element("tbody", {}, ...rows));
    this.place.replaceChildren(element("h2", {}, verdict), element("p", { className: "soft" }, `Over ${data.basis[overall]}. Negative: ${one} is better.${untested}`), element("div", { className: "scroll as-cards", tabIndex: 0 }, table));
  }

  // The chart of months is drawn again for the two, if the page has their rows.
  async showMonths(one, other) {
    const chart = document.querySelector("[data-chart=pair-months]");
    if (!chart) return;
    this.months ??= loadData("pair-months", "figures/pair-months.data.js");
    const data = await this.months;
    const rows = data.model.map((_, i) => i).filter((i) => [data.model[i], data.other[i]].sort().join() === [one, other].sort().join());
    const sign = rows.length && data.model[rows[0]] === one ? 1 : -1;
    const figure = chart.closest("figure");
    figure.hidden = !rows.length;
    if (!rows.length) return;
    globalThis.tidemark.pair = rows.map((i) => {
      const ends = [data.low[i], data.high[i]].map((end) => (end === null ? null : sign * end));
      if (sign < 0) ends.reverse();
      return { source: data.source[i], month: data.month[i], difference: sign * data.difference[i], low: ends[0], high: ends[1] };
    });
    const lower = [-1, 1].map((way) => globalThis.tidemark.pair.filter((row) => way * row.difference > 0).length);
    const [first, last] = 2 * lower[0] < rows.length ? [other, one] : [one, other];
    const found = `${first} has a lower loss than ${last} in ${lower[first === one ? 0 : 1]} of ${rows.length} months of sources`;
    figure.querySelector("h2 a").textContent = lower[0] + lower[1] ? found : `${one} and ${other} have equal losses in all months of sources`;
    const about = figure.querySelector("figcaption p");
    about.textContent = `Bits per byte of ${one} less those of ${other}, on the documents${about.textContent.split(", on the documents").at(-1)}`;
    delete chart.dataset.open;
    scripts.delete("figures/pair-months.chart.js");
    await open(chart);
  }
}

globalThis.tidemark = {
  pair: null, // rows of the pair that was chosen, by month
  draw(name, spec) {
    if (name === "pair-months" && this.pair) spec.data.find((each) => each.name === "rows").values = this.pair;
    const place = document.querySelector(`[data-chart="${CSS.escape(name)}"]`);
    const vega = globalThis.vega;
    if ("months" in place.dataset) new Months(place, spec);
    const view = new vega.View(vega.parse(spec, null, { ast: true }), { expr: vega.expressionInterpreter, renderer: "svg", hover: true });
    const box = element("div", { ariaHidden: "true" }); // the place around it describes the chart
    const watermark = place.querySelector(".watermark");
    const drawnHeight = place.querySelector("svg").getAttribute("height");
    view.initialize(box).runAsync().then(() => {
      place.replaceChildren(box);
      if (!watermark) return;
      const svg = box.querySelector("svg");
      svg.append(watermark);
      if (watermark.hasAttribute("transform")) return;
      svg.setAttribute("height", drawnHeight); // a sentence has a line of its own
      svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${drawnHeight}`);
    });
  },
};

// The months that a chart shows: the same points on a shorter axis. The specification is changed in
// place and drawn again.
class Months {
  constructor(place, spec) {
    if (place.previousElementSibling?.className === "tools") return;
    const scale = spec.scales.find((each) => each.name === "x");
    const rows = spec.data.find((each) => each.name === "rows").values;
    const months = [...new Set(rows.map((row) => row.month.slice(0, 7)))].sort();
    const state = readState().get(place.dataset.chart) ?? new URLSearchParams();
    const selects = ["from", "to"].map((key, isTo) => {
      const select = element("select", {}, ...months.map((month) => element("option", {}, month)));
      select.value = months.includes(state.get(key)) ? state.get(key) : months.at(isTo ? -1 : 0);
      select.addEventListener("change", () => show(true));
      return select;
    });
    const show = (isChosen) => {
      const [first, last] = selects.map((select) => select.value).sort();
      scale.domain = [first, last].map((month) => Date.parse(`${month}-01T00:00:00Z`));
      setTicks(spec, months.indexOf(last) - months.indexOf(first));
      if (!isChosen) return;
      const isAll = first === months[0] && last === months.at(-1);
      writeState(place.dataset.chart, new URLSearchParams(isAll ? {} : { from: first, to: last }));
      globalThis.tidemark.draw(place.dataset.chart, spec);
    };
    const labels = selects.map((select, isTo) => element("label", {}, isTo ? "to" : "months from", select));
    place.before(element("div", { className: "tools" }, ...labels));
    if (state.size) show(false);
  }
}

// Labels of a time axis: years on more than two, and at most eight months otherwise.
function setTicks(part, numMonths) {
  if (part?.scale === "x" && part.orient === "bottom" && part.format) {
    const isYears = numMonths > 24;
    part.format = isYears ? "%Y" : "%Y-%m";
    part.tickCount = { interval: isYears ? "year" : "month", step: isYears ? 1 : Math.ceil((numMonths + 1) / 8) };
  }
  if (part && typeof part === "object") Object.entries(part).forEach(([key, value]) => key !== "data" && setTicks(value, numMonths));
}

// The facts and tables of a page as Markdown, without figures' addresses.
function markdown() {
  const text = (node) => node.innerText.replace(/\s+/g, " ").trim().replaceAll("|", "\\|");
  const line = (cells) => `| ${[...cells].filter((cell) => !cell.hidden).map(text).join(" | ")} |`;
  const parts = [`# ${text(document.querySelector("h1"))}`, ""];
  const simulated = document.querySelector(".simulated");
  if (simulated) parts.push(text(simulated), "");
  for (const name of document.querySelectorAll("main > dl dt")) parts.push(`- ${text(name)}: ${text(name.nextElementSibling)}`);
  for (const figure of document.querySelectorAll("figure")) {
    parts.push("", `## ${text(figure.querySelector("h2"))}`, "");
    const table = figure.querySelector("table");
    if (!table) continue;
    const [head, ...rows] = [...table.rows].filter((row) => !row.hidden).map((row) => line(row.cells));
    parts.push(head, head.replace(/[^|]+/g, "---"), ...rows);
  }
  return [...parts, "", text(document.querySelector("footer p")), ""].join("\n");
}

function addCopy(place) {
  const button = element("button", { type: "button" }, "Copy as Markdown");
  button.addEventListener("click", async () => {
    const copied = markdown();
    try {
      await navigator.clipboard.writeText(copied);
      button.textContent = "Copied";
    } catch {  // a browser without permission shows the text instead
      place.after(element("pre", { tabIndex: 0 }, copied));
    }
  });
  place.append(button);
}

async function open(chart) {
  if (chart.dataset.open) return;
  chart.dataset.open = "1";
  await load("assets/vega.min.js");
  await load(`figures/${chart.dataset.chart}.chart.js`);
}

// Rows beyond those of the page are in a file of their own.
async function openTable(table) {
  if ("more" in table.dataset) {
    const name = table.dataset.table;
    table.tBodies[0].insertAdjacentHTML("beforeend", await loadData(`rows:${name}`, `figures/${name}.rows.js`));
    table.closest("figure").querySelector("[data-rest]").remove();
  }
  new Table(table);
}

// A link to a part that is folded opens it.
function unfold() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (place?.matches("details")) place.open = true;
}

for (const table of document.querySelectorAll("table[data-table]")) openTable(table);
addEventListener("hashchange", unfold);
unfold();
for (const chart of document.querySelectorAll("[data-chart]")) {
  for (const event of ["pointerenter", "focusin", "click"]) chart.addEventListener(event, () => open(chart), { once: true });
  if (readState().has(chart.dataset.chart) && "months" in chart.dataset) open(chart);
}
for (const place of document.querySelectorAll("[data-copy]")) addCopy(place);
for (const form of document.querySelectorAll("[data-compare]")) new Comparison(form);
