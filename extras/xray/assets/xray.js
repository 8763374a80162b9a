// Show the figures of the piece of text that is pointed at, or chosen with the arrow keys.
(() => {
  const text = document.querySelector("[data-xray]");
  if (!text) return;
  const output = document.querySelector("[data-piece]");
  const pieces = [...text.querySelectorAll("span[title]")];
  const [one, other] = [text.dataset.one, text.dataset.other];
  let current = -1;

  const show = (index) => {
    const piece = pieces[index];
    if (!piece) return;
    pieces[current]?.removeAttribute("data-current");
    current = index;
    piece.setAttribute("data-current", "");
    const [bytes, a, b] = piece.title.split(" · ");
    const bits = (Number(a) - Number(b)) / Math.LN2;
    const more = Math.abs(bits) < 0.05 ? "no difference" : `${bits > 0 ? one : other} is ${Math.abs(bits).toFixed(1)} bits more surprised`;
    output.textContent = `“${piece.textContent.trim() || "space"}”, bytes ${bytes}: ${one} ${a} nats, ${other} ${b} nats; ${more}`;
  };

  const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  text.addEventListener("keydown", (event) => {
    let next;
    if (event.key in moves) next = Math.min(Math.max(current + moves[event.key], 0), pieces.length - 1);
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = pieces.length - 1;
    else return;
    event.preventDefault();
    show(next);
    pieces[next]?.scrollIntoView({ block: "nearest" });
  });
  for (const kind of ["mouseover", "click"]) {
    text.addEventListener(kind, (event) => {
      const index = pieces.indexOf(event.target);
      if (index >= 0) show(index);
    });
  }
})();
