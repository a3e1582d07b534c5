#!/usr/bin/env python3
"""Runs the commands of a page: tutorials.py ROOT WORK PAGE...

A block of ```console has lines "$ command" and, behind each, what it prints, in which ... stands for any text of a line, and a
line of its own for any lines. All of a page's commands run in one folder, which has the source tree's examples, test and build. Flags in
the last column of a page's tables are those of the compiler or of executables."""
import os
import pathlib
import re
import subprocess
import sys

root, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def lines_of(text):
    return [line.rstrip() for line in text.rstrip("\n").split("\n")] if text.strip() else []


def matches(pattern, printed):
    """Whether the printed lines are those of the pattern."""
    if not pattern:
        return not printed
    if pattern[0] == "...":
        return any(matches(pattern[1:], printed[i:]) for i in range(len(printed) + 1))
    one = ".*".join(re.escape(part) for part in pattern[0].split("..."))
    return bool(printed) and re.fullmatch(one, printed[0]) is not None and matches(pattern[1:], printed[1:])


def helps(*command):
    return set(re.findall(r"--[a-z][a-z0-9-]*", subprocess.run(command, capture_output=True, text=True).stdout))


build = pathlib.Path(os.environ["MESHWRIGHT_BUILD"])
known = helps("meshwright", "compile", "--help") | helps(str(build / "runtime/test/fake_program"), "--help")
ran = 0
for page in map(pathlib.Path, sys.argv[3:]):
    text = page.read_text()
    for row in re.findall(r"^\|.*\|$", text, re.M):
        for flag in re.findall(r"--[a-z][a-z0-9-]*", row.strip("|").split("|")[-1]):
            assert flag in known, f"{page}: there is no flag {flag}"
    folder = work / page.stem
    folder.mkdir(parents=True)
    for name in ("examples", "test"):
        (folder / name).symlink_to(root / name)
    (folder / "build").symlink_to(build)
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            done = subprocess.run(command, shell=True, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  executable="/bin/bash", timeout=500)
            assert done.returncode == 0, f"{page}: {command} exits with {done.returncode}\n{done.stdout}"
            assert matches(lines_of(expected), lines_of(done.stdout)), f"{page}: {command} prints\n{done.stdout}instead of\n{expected}"
            ran += 1
print(f"{ran} commands")
assert ran
