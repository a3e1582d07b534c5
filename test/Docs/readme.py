#!/usr/bin/env python3
"""The README's commands work as they stand there, after ./quickstart: readme.py ROOT WORK"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

root, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
(work / "examples").symlink_to(root / "examples")


def shell(line, timeout=300):
    done = subprocess.run(["bash", "-c", line], cwd=work, capture_output=True, text=True, errors="replace", timeout=timeout)
    if done.returncode not in ((0, 1) if " diff " in line else (0,)):
        sys.exit(f"FAILED: {line}\nexits with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


# What quickstart leaves, by its own commands but for the training.
script = (root / "quickstart").read_text()
flags = re.search(r'compile "examples/\$model.json" (--mesh.*?) \\', script)[1]
shell("mkdir -p build/quickstart/gpt2-bytes && cat examples/*.json > build/quickstart/train.txt")
shell(f"meshwright compile examples/gpt2-bytes.json {flags} -o build/quickstart/gpt2-bytes/train")
for path in ("train.txt", "eval.txt"):
    assert f"$out/{path}" in script, path

section = (root / "README.md").read_text().split("## By hand")[1]
commands = [line.strip() for line in section.split("**On GPUs")[0].splitlines() if line.startswith("    ")]
assert len(commands) > 5, commands
for command in commands[1:]:  # The first sets PATH.
    said = shell(command)
    assert said or " diff " not in command, f"{command} finds no difference"
for file in re.findall(r"-o (\S+)|--metrics (\S+)", "\n".join(commands)):
    assert (work / (file[0] or file[1])).exists(), file

# What it says of commands and files.
for command in re.findall(r"^ +meshwright (\w+)", section, re.M):
    shell(f"meshwright help {command}")
for link in re.findall(r"\]\(([^)#]+)", (root / "README.md").read_text()):
    assert (root / link).exists(), link
