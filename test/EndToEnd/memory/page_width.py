#!/usr/bin/env python3
"""Measures pages in headless Chromium at several widths: page_width.py PAGE...

A script behind each page names the elements that end right of the window and are in nothing that scrolls by itself. The page is in a frame,
because windows are at least 500 pixels wide."""
import json
import pathlib
import re
import subprocess
import sys

MEASURE = """<script>addEventListener("load", () => {
  document.querySelectorAll("details").forEach(e => e.open = true);
  const width = document.documentElement.clientWidth, wide = [];
  const scrolls = e => { for (; e && e !== document.body; e = e.parentElement) if (/auto|scroll/.test(getComputedStyle(e).overflowX)) return true; return false; };
  for (const e of document.querySelectorAll("body *"))
    if (e.getBoundingClientRect().right > width + 1 && !e.closest("svg *") && !scrolls(e.parentElement)) wide.push(e.tagName + "." + e.className);
  document.title = "MEASURED " + JSON.stringify({width, whole: document.documentElement.scrollWidth, elements: document.querySelectorAll("body *").length, wide: wide.slice(0, 5)});
})</script>"""
FRAME = """<body style="margin:0"><iframe src="{page}" style="border:0;width:{width}px;height:1200px"></iframe>
<script>addEventListener("load", () => setTimeout(() => document.title = document.querySelector("iframe").contentDocument.title, 200))</script>"""

for page in map(pathlib.Path, sys.argv[1:]):
    measured = page.with_suffix(".measured.html")
    measured.write_text(page.read_text() + MEASURE)
    frame = page.with_suffix(".frame.html")
    for width in (1400, 800, 500, 390):
        frame.write_text(FRAME.format(page=measured.name, width=width))
        dom = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--virtual-time-budget=20000",
                              "--dump-dom", "--window-size=1500,1300", frame.resolve().as_uri()], capture_output=True, text=True, timeout=120).stdout
        found = re.search(r"<title>MEASURED (.*?)</title>", dom)
        assert found, f"{page} at {width}: not measured\n{dom[:500]}"
        said = json.loads(found[1].replace("&gt;", ">").replace("&lt;", "<"))
        assert width - 20 <= said["width"] <= width and said["elements"] > 20, said
        assert said["whole"] <= said["width"] and not said["wide"], f"{page} at {width}: {said}"
        print(page, width, said["elements"], "elements fit")
