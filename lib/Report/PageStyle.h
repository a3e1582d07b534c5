//===- PageStyle.h - how a report's page looks and answers ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The page stands alone: one style, one script, nothing from elsewhere. Without the script all of it is shown.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_PAGESTYLE_H
#define MESHWRIGHT_LIB_REPORT_PAGESTYLE_H

#include "llvm/ADT/StringRef.h"

namespace meshwright::report {

/// Columns of numbers have classes n1, n2, ..; `.s` is a tensor whose filled part one rank has.
inline constexpr llvm::StringLiteral pageStyle = R"css(:root{color-scheme:light dark;--ink:#1f2328;--soft:#59636e;--line:#d1d9e0;--card:#f6f8fa;--paper:#fff;--mark:#0072b2}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,sans-serif;max-width:84em;margin:0 auto;padding:1.5em 1em 4em;color:var(--ink);background:var(--paper)}
h1{font-size:1.8em;margin:0}h2{font-size:1.25em;margin:2.4em 0 .6em}h3{font-size:1em;margin:1.4em 0 .3em}a{color:var(--mark)}
.sub,.note{color:var(--soft)}.sub{margin:.2em 0 1.2em}.note{font-size:.9em}
nav{margin:1em 0 0;font-size:.9em;display:flex;flex-wrap:wrap;gap:0 1.2em}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(14em,1fr));gap:.8em}
.tile{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.8em 1em}
.tile h2{font-size:.87em;font-weight:600;color:var(--soft);margin:0}.tile b{display:block;font-size:1.45em;font-weight:600;line-height:1.3;overflow-wrap:anywhere}
.tile p{margin:.2em 0 0;font-size:.87em;color:var(--soft)}
.meter{height:.7em;border-radius:.35em;background:var(--line);overflow:hidden;display:flex;margin:.45em 0}.meter i{display:block}
.meter .used{background:var(--mark)}.meter .over{background:#d55e00}
.meter .parameter{background:#0072b2}.meter .optimizer{background:#d55e00}.meter .activation{background:#009e73}.meter .gradient{background:#cc79a7}
.meter .temporary{background:#e69f00}.meter .workspace{background:#56b4e9}.meter .other{background:#8c959f}
table{border-collapse:collapse;margin:.6em 0}td,th{padding:.2em .6em;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
th[aria-sort]{cursor:pointer}th[aria-sort=ascending]::after{content:" ▴"}th[aria-sort=descending]::after{content:" ▾"}
.facts th{font-weight:600}.wide{overflow-x:auto}td span{white-space:nowrap}.wide table{min-width:52em}.axes table{min-width:34em}td details{margin:0}
.s{--r:1;--c:1;display:inline-block;width:2.6em;height:1.5em;border:1px solid var(--soft);vertical-align:middle;background:linear-gradient(var(--mark) 0 0) 0 0/calc(100%/var(--c)) calc(100%/var(--r)) no-repeat,repeating-linear-gradient(90deg,#0000 0 calc(100%/var(--c) - 1px),var(--soft) 0 calc(100%/var(--c))),repeating-linear-gradient(#0000 0 calc(100%/var(--r) - 1px),var(--soft) 0 calc(100%/var(--r)))}
svg{max-width:100%;height:auto}.zoomed svg{max-width:none}.bars{width:min(100%,46em);table-layout:fixed}.bars th{font-weight:400;text-align:right;width:36%;overflow-wrap:anywhere}.bars td,.bars th{border:0;vertical-align:middle;padding:.2em .4em}.bars td:nth-child(3){width:6em}.bars i{display:block;height:1.1em;background:var(--mark)}.mesh text{font:12px system-ui,sans-serif}.mesh rect{fill:var(--card);stroke:var(--soft)}
.tools{display:flex;gap:.5em;align-items:center;flex-wrap:wrap;margin:.4em 0}button,input{font:inherit;color:inherit;background:var(--card);border:1px solid var(--soft);border-radius:6px;padding:.1em .6em}
output{display:block;min-height:3em;color:var(--soft);font-size:.9em}details{margin:.8em 0}summary{cursor:pointer}
:focus-visible{outline:2px solid var(--mark);outline-offset:2px}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--line:#3d444d;--card:#151b23;--paper:#0d1117;--mark:#56b4e9}}
@media (max-width:700px){.wide>svg{max-width:none}}
@media print{.tools,nav,output{display:none}tr[hidden]{display:table-row}.wide{overflow:visible}h2,.tile,svg{break-inside:avoid}}
)css";

/// Sorts tables by a column, folds long ones, filters their rows, says what runs and what is live under the cursor of a
/// picture of memory, and zooms timelines.
inline constexpr llvm::StringLiteral pageScript = R"js(<script>
const most = 24, all = (e, q) => [...e.querySelectorAll(q)], make = (name, set) => Object.assign(document.createElement(name), set);
const sizes = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const size = n => { let u = 0; while (n >= 1024 && u < 5) { n /= 1024; u++; } return (u ? n.toFixed(n >= 100 ? 0 : n >= 10 ? 1 : 2) : n) + " " + sizes[u]; };
for (const table of all(document, ".wide > table")) {
  const [head, ...rows] = table.rows, first = rows.map(r => r);
  if (rows.length < 2) continue;
  const value = (row, i) => {
    const cell = row.cells[i], text = (cell?.querySelector("[title]")?.title ?? cell?.textContent ?? "").replace(/,/g, "");
    return isNaN(parseFloat(text)) ? text : parseFloat(text);
  };
  all(head, "th").forEach((th, i) => {
    th.tabIndex = 0; th.ariaSort = "none";
    const sort = () => {
      const next = { none: "descending", descending: "ascending", ascending: "none" }[th.ariaSort];
      all(head, "th").forEach(t => t.ariaSort = "none"); th.ariaSort = next;
      const order = next == "none" ? first : [...first].sort((a, b) => {
        const x = value(a, i), y = value(b, i), by = x < y ? -1 : x > y ? 1 : 0;
        return next == "ascending" ? by : -by;
      });
      table.tBodies[0].append(...order);
      show();
    };
    th.onclick = sort;
    th.onkeydown = e => { if (e.key == "Enter" || e.key == " ") { e.preventDefault(); sort(); } };
  });
  let open = rows.length <= most, wanted = "";
  const button = make("button", { type: "button" }), filter = make("input", { type: "search", placeholder: "filter rows", ariaLabel: "filter rows" });
  const show = () => {
    let shown = 0;
    for (const row of [...table.rows].slice(1)) row.hidden = !row.textContent.toLowerCase().includes(wanted) || (!open && !wanted && ++shown > most);
    button.textContent = open ? "Show the first " + most : "Show all " + rows.length + " rows";
  };
  if (!open) {
    button.onclick = () => { open = !open; show(); };
    filter.oninput = () => { wanted = filter.value.toLowerCase(); show(); };
    const tools = make("div", { className: "tools" });
    tools.append(filter, button);
    table.parentElement.before(tools);
  }
  show();
}
for (const data of all(document, "script[type='application/json']")) {
  const picture = data.previousElementSibling, out = data.nextElementSibling, m = JSON.parse(data.textContent);
  const cursor = document.createElementNS("http://www.w3.org/2000/svg", "path");
  cursor.setAttribute("class", "axis"); picture.append(cursor); picture.tabIndex = 0;
  let op = m.peak;
  const say = () => {
    op = Math.max(0, Math.min(m.at.length - 1, op));
    const x = m.left + m.width * (op + .5) / m.at.length;
    cursor.setAttribute("d", `M${x} ${m.top}V${m.bottom}`);
    const live = m.live.map(p => p.findLast(q => q[0] <= op)?.[1] ?? 0), total = live.reduce((a, b) => a + b, 0);
    const task = m.tasks.findLast(t => t[0] <= op), phase = m.phases.findLast(t => t[0] <= op), begins = m.begins[op];
    out.textContent = `op ${op} of ${m.at.length}: ${m.calls[m.at[op]]}` + (task ? `, in ${task[1]}` : phase ? `, ${phase[1]}` : "") + `. Live: ${size(total)} (`
      + m.names.map((n, i) => [live[i], n]).filter(p => p[0]).sort((a, b) => b[0] - a[0]).map(p => p[1] + " " + size(p[0])).join(", ") + ")"
      + (begins ? `. The largest buffer that begins here is ${begins[0]}, ${begins[1].toLocaleString("en")} bytes.` : ".");
  };
  picture.onpointermove = e => {
    const box = picture.getBoundingClientRect(), x = (e.clientX - box.left) * picture.viewBox.baseVal.width / box.width;
    op = Math.floor((x - m.left) / m.width * m.at.length); say();
  };
  picture.onkeydown = e => { const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: 20, PageUp: -20 }[e.key]; if (by) { e.preventDefault(); op += by; say(); } };
}
for (const picture of all(document, "svg.timeline")) {
  const around = make("div", { className: "wide", tabIndex: 0, ariaLabel: "timeline, scrolls sideways" }), tools = make("div", { className: "tools" });
  around.setAttribute("role", "region");
  picture.replaceWith(around); around.append(picture); around.before(tools);
  const left = 70, width = picture.viewBox.baseVal.width, height = picture.viewBox.baseVal.height;
  const parts = all(picture, "rect[x],line").map(e => [e, ["x", "x1", "x2", "width"].filter(a => e.hasAttribute(a)).map(a => [a, +e.getAttribute(a)])]);
  const texts = all(picture, "text.on").map(e => [e, +e.getAttribute("x")]);
  let k = 1;
  const zoom = to => {
    const at = (around.scrollLeft + around.clientWidth / 2 - left) / k;
    k = Math.max(1, Math.min(64, to));
    for (const [e, attributes] of parts) if (!e.closest("[data-legend]"))
      for (const [a, v] of attributes) e.setAttribute(a, a == "width" ? v * k : left + (v - left) * k);
    for (const [e, x] of texts) e.setAttribute("x", left + (x - left) * k);
    const wide = left + (width - left) * k;
    picture.setAttribute("viewBox", `0 0 ${wide} ${height}`); picture.setAttribute("width", wide);
    around.classList.toggle("zoomed", k > 1);
    around.scrollLeft = at * k + left - around.clientWidth / 2;
  };
  for (const [name, label, by] of [["+", "zoom in", 2], ["−", "zoom out", .5], ["1:1", "whole step", 0]]) {
    const button = make("button", { type: "button", textContent: name, ariaLabel: label });
    button.onclick = () => zoom(by ? k * by : 1); tools.append(button);
  }
  around.onkeydown = e => { if (e.key == "+" || e.key == "-") { e.preventDefault(); zoom(k * (e.key == "+" ? 2 : .5)); } };
  around.addEventListener("wheel", e => { if (e.ctrlKey) { e.preventDefault(); zoom(k * (e.deltaY < 0 ? 1.25 : .8)); } }, { passive: false });
  let from = null;
  around.onpointerdown = e => { from = [e.clientX, around.scrollLeft]; };
  around.onpointermove = e => { if (from && e.buttons) around.scrollLeft = from[1] + from[0] - e.clientX; else from = null; };
}
</script>
)js";

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_PAGESTYLE_H
