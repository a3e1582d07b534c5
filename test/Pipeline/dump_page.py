#!/usr/bin/env python3
"""Applies the changes that index.html of a dump shows, pass by pass, and compares with the files: dump_page.py DIR.

A hunk's kept and removed lines are found in the text before it, in order; kept and added ones take their place."""
import html
import pathlib
import re
import sys

folder = pathlib.Path(sys.argv[1])
page = (folder / "index.html").read_text()
# The module's own attributes say the phase, and in files the pass: what marks them is no pass of the page.
of_module = re.compile(r"module attributes \{|    (train|meshwright|exec|dist)\.\w+ = ")
strip = lambda text: [line for line in text.rstrip("\n").split("\n") if not of_module.match(line)]
before = strip((folder / "00-import.mlir").read_text())
passes = re.findall(r'<details id="([^"]*)">.*?<pre>(.*?)</pre>', page, re.S)
assert len(passes) > 5, [name for name, _ in passes]
for name, body in passes:
    result, at = [], 0
    for hunk in body.split("<hr>"):
        lines = [(tag, html.unescape(re.sub(r"<[^>]*>", "", text))[2:])
                 for tag, text in re.findall(r"<(ins|del|span)(?: class=same)?>(.*?)</\1>", hunk, re.S)]
        lines = [(tag, text) for tag, text in lines if not of_module.match(text)]
        old, new = [t for tag, t in lines if tag != "ins"], [t for tag, t in lines if tag != "del"]
        if not lines:
            continue
        while before[at:at + len(old)] != old:
            assert at < len(before), f"{name}: no such lines: {old[:3]}"
            result.append(before[at])
            at += 1
        result += new
        at += len(old)
    result += before[at:]
    after = strip((folder / f"{name}.mlir").read_text())
    assert result == after, (name, [p for p in zip(result, after) if p[0] != p[1]][:2], len(result), len(after))
    before = result
