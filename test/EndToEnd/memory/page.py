#!/usr/bin/env python3
"""Reads pages as people do, in headless Chromium: page.py WORK PAGE...

At four widths nothing is wider than the window but what scrolls by itself; in light and dark text has contrast; a screen reader finds a name for
each picture and control; the page's script throws nothing. On reports the picture of memory says what is live at its peak, tables sort, fold and
filter, and timelines zoom. Pictures of what was seen are left in WORK."""
import json
import pathlib
import re
import sys

from browser import Browser

WIDE = """(() => {
  document.querySelectorAll("details").forEach(e => e.open = true);
  const width = document.documentElement.clientWidth;
  const scrolls = e => { for (; e && e !== document.body; e = e.parentElement) if (/auto|scroll/.test(getComputedStyle(e).overflowX)) return true; return false; };
  return [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > width + 1 && !e.closest("svg *") && !scrolls(e.parentElement))
    .map(e => e.tagName + "." + e.className).slice(0, 5).concat(document.documentElement.scrollWidth > width ? ["the page"] : []);
})()"""


def check(holds, message):
    if not holds:
        sys.exit(f"wrong: {message}")


def use(browser, page):
    """What the script of a report answers."""
    plan = json.load(open(page.parent / "report.json"))
    said = browser.evaluate("""(() => [...document.querySelectorAll("script[type='application/json']")].map(data => {
      const picture = data.previousElementSibling, m = JSON.parse(data.textContent), box = picture.getBoundingClientRect();
      picture.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + (m.left + m.width * (m.peak + .5) / m.at.length) * box.width / picture.viewBox.baseVal.width }));
      const at = data.nextElementSibling.textContent;
      picture.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
      return [m.peak, at, data.nextElementSibling.textContent, picture.querySelector("path.axis:last-child").getAttribute("d")];
    }))()""")
    steps = {entry["peak_op"]: entry for entry in plan["memory_over_time"] if entry["program"] == "step"}
    check(said, "there is no picture of memory")
    for peak, at, behind, cursor in said:
        entry = steps[peak]
        check(at.startswith(f"op {peak} of {entry['ops']}: ") and " Live: " in at, f"at the peak the page says {at}")
        live = next(point for point in reversed(entry["points"]) if point["op"] <= peak)
        largest = max((name for name in live if name != "op"), key=live.get)
        number, unit, name = re.search(r"Live: .*?\((\w+) ([\d.]+) (\w+)", at).group(2, 3, 1)
        scale = 1024 ** ["B", "KiB", "MiB", "GiB", "TiB"].index(unit)
        check(name == largest and abs(float(number) * scale / live[largest] - 1) < 1e-2, f"most at the peak is {largest}, {live[largest]}, said is {at}")
        check(behind != at or peak + 1 == entry["ops"], "the arrow key does nothing")
        check(cursor.startswith("M"), f"the cursor is {cursor}")
    check(browser.evaluate('document.querySelectorAll("h2[id]:not(main > h2)").length') == 0, "a section is inside of another")
    # Legends name what is drawn, and nothing else; what an axis of time has is drawn with a title.
    legends = browser.evaluate("""[...document.querySelectorAll("svg.memory, svg.timeline")].map(picture => {
      const kinds = query => [...new Set([...picture.querySelectorAll(query)].map(e => e.getAttribute("class").split(" ")[0]))].sort().join();
      return picture.matches(".memory") ? [kinds("rect"), kinds("path:has(title)")] : [kinds("[data-legend] rect"), kinds("g:not([data-legend]) rect")];
    })""")
    check(legends and all(named == drawn and drawn for named, drawn in legends), f"legends name and pictures have {legends}")
    sorted_ = browser.evaluate("""(() => {
      const table = document.querySelector("#shardings ~ .wide > table"), heads = table.rows[0].cells, i = heads.length - 1;
      const read = () => [...table.rows].slice(1).map(row => +row.cells[i].querySelector("span").title.replace(/[^0-9]/g, ""));
      const before = read(); heads[i].click(); const down = read(); heads[i].click(); const up = read(); heads[i].click();
      return [before, down, up, read()];
    })()""")
    before, down, up, again = sorted_
    check(down == sorted(before, reverse=True) and up == sorted(before) and again == before and len(set(before)) > 2, f"sorted are {sorted_}")
    folded = browser.evaluate("""[...document.querySelectorAll(".tools input")].map(input => {
      const table = input.closest(".tools").nextElementSibling.querySelector("table"), rows = [...table.rows].slice(1), shown = () => rows.filter(r => !r.hidden).length;
      const first = shown(); input.value = rows.at(-1).cells[1].textContent; input.dispatchEvent(new Event("input"));
      const found = !rows.at(-1).hidden && rows.filter(r => !r.hidden).every(r => r.textContent.includes(input.value)); input.value = ""; input.dispatchEvent(new Event("input"));
      input.nextElementSibling.click(); const all = shown(); input.nextElementSibling.click();
      return [rows.length, first, found, all, shown()];
    })""")
    for rows, first, found, all_, last in folded:
        check(rows > 24 and first == last == 24 and found and all_ == rows, f"of {rows} rows {first} are shown, then {all_}, {last}; filter: {found}")
    zoomed = browser.evaluate("""[...document.querySelectorAll("svg.timeline")].map(picture => {
      const span = picture.querySelector("g g rect"), width = () => +span.getAttribute("width"), before = width();
      picture.closest(".wide").previousElementSibling.querySelector("[aria-label='zoom in']").click();
      const after = width(); picture.closest(".wide").previousElementSibling.querySelector("[aria-label='whole step']").click();
      return [before, after, width()];
    })""")
    check(len(zoomed) == ("timeline" in plan and plan["timeline"] is not None), f"there are {len(zoomed)} timelines")
    for one, two, back in zoomed:
        check(abs(two / one - 2) < 1e-6 and one == back, f"zoomed: {one}, {two}, {back}")
    return len(said), len(folded), len(zoomed)


work = pathlib.Path(sys.argv[1])
browser = Browser()
for page in map(pathlib.Path, sys.argv[2:]):
    for width in (1400, 800, 500, 390):
        browser.open(page, width)
        check(not browser.evaluate(WIDE), f"{page} at {width}: wider than the window are {browser.evaluate(WIDE)}")
        check(not browser.errors(), f"{page}: {browser.errors()}")
        browser.shoot(work / f"{page.parent.name}-{width}.png")
    if (page.parent / "report.json").exists():
        for dark in (False, True):
            browser.open(page, 1400, dark=dark)
            check(not browser.evaluate(Browser.CONTRAST), f"{page}: too little contrast: {browser.evaluate(Browser.CONTRAST)}")
        check(not browser.unnamed(), f"{page}: without a name are {browser.unnamed()}")
        print(page.parent.name, "memory, folded tables, timelines:", *use(browser, page))
        check(not browser.errors(), f"{page}: {browser.errors()}")
    print(page.parent.name, "is as people need it")
browser.close()
