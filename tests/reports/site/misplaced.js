// What is wider than the window, outside of what scrolls; texts over each other; charts not at their axis.
() => {
  const wrong = [], seen = [];
  const shown = (e) => e.checkVisibility({ visibilityProperty: true });
  const isPhone = matchMedia("(max-width: 48rem)").matches;  // there, tables are cards and do not scroll
  const scrolls = (e) => e.closest(isPhone ? ".chart, .scroll:not(.as-cards), pre" : ".chart, .scroll, pre");
  for (const e of document.querySelectorAll("body *")) {
    if (!shown(e) || e.closest(".skip") || e.matches("style, noscript, option")) continue;
    const box = e.getBoundingClientRect();
    if (!box.width || e.closest("svg")) continue;
    if (!scrolls(e) && (box.left < -1 || box.right > innerWidth + 1)) wrong.push(`outside: ${e.outerHTML.slice(0, 90)}`);
    if (!scrolls(e) && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === "hidden") wrong.push(`cut: ${e.outerHTML.slice(0, 90)}`);
  }
  for (const e of document.querySelectorAll("main :is(h1, h2, h3, p, li, dt, dd, td, small, summary, label, select)")) {
    if (!shown(e) || scrolls(e) || e.closest(".tools details > div")) continue;
    const range = document.createRange();
    range.selectNodeContents(e);
    for (const box of range.getClientRects()) if (box.width > 1) seen.push([e, box]);
  }
  seen.sort(([, a], [, b]) => a.top - b.top);
  for (let i = 0; i < seen.length; i += 1) {
    const [one, a] = seen[i];
    for (let k = i + 1; k < seen.length && seen[k][1].top < a.bottom - 3; k += 1) {
      const [other, b] = seen[k];
      if (one.contains(other) || other.contains(one)) continue;
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 3) wrong.push(`over each other: ${one.textContent.slice(0, 40)} | ${other.textContent.slice(0, 40)}`);
    }
  }
  for (const chart of document.querySelectorAll(".chart")) if (chart.scrollLeft) wrong.push(`not at its axis: ${chart.dataset.chart}`);
  return wrong;
}
