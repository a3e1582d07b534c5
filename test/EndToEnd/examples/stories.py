#!/usr/bin/env python3
"""The pages of examples/ do what they say:

  stories.py WORK STORY...

Runs the commands of examples/STORY/README.md as they are there (blocks of `sh`), in a copy of the folder. Each line of a block of
`text` is a line of what the commands before it have printed, whatever numbers it has; "..." stands for some lines, or for the rest
of one. Of "N of M are right" at least half of the page's N must be. Blocks of `python` run where transformers is installed.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import ROOT, check, fresh

NUMBER = r"\d[\d,.:e+-]*"
RIGHT = r"(\d+) of \d+ are right"


def blocks(page):
    return re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(), re.M | re.S)


def matches(line, said):
    """Whether `line` of the page is in `said`, whatever numbers it has."""
    parts = [r"[\s\S]*" if part == "..." else NUMBER if re.fullmatch(NUMBER, part) else re.escape(part)
             for part in re.split(rf"(\.\.\.|{NUMBER})", line)]
    return re.search("^" + "".join(parts) + "$", said, re.M)


work = fresh(sys.argv[1])
os.symlink(ROOT / "docs", work / "docs")
has_transformers = subprocess.run([sys.executable, "-c", "import transformers"], capture_output=True).returncode == 0
for name in sys.argv[2:]:
    folder = work / "examples" / name
    shutil.copytree(ROOT / "examples" / name, folder)
    said, told = "", 0
    for kind, text in blocks(folder / "README.md"):
        if kind == "sh" or kind == "python" and has_transformers:
            command = ["bash", "-euo", "pipefail", "-c", text] if kind == "sh" else [sys.executable, "-c", text]
            done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=2500)
            check(done.returncode == 0, f"{name}:\n{text}\nexited with {done.returncode}:\n{done.stdout}")
            said = done.stdout
            print(said, flush=True)
        elif kind == "text":
            for line in text.splitlines():
                found = re.search("", line) if line == "..." else matches(line, said)
                check(found, f"{name}: the page has the line\n{line}\nbut the commands printed\n{said}")
                for wanted, right in zip(re.findall(RIGHT, line), re.findall(RIGHT, found[0])):
                    check(2 * int(right) >= int(wanted), f"{name}: {found[0]}, on the page {wanted}")
                told += 1
    check(told > 0, f"{name}: the page shows nothing of what its commands print")
    print(f"{name}: {told} lines are as on the page", flush=True)
