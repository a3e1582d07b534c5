#!/usr/bin/env python3
"""The batches of GPT-2 XL in docs/offload.md are what `meshwright fit` finds: offload_page.py PAGE EXAMPLE WORK [--all]

Without --all the first row alone, without its searches: what the batches in it need, and that one more does not fit."""
import argparse
import json
import pathlib
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import check, fresh

parser = argparse.ArgumentParser()
parser.add_argument("page", type=pathlib.Path)
parser.add_argument("example", type=pathlib.Path)
parser.add_argument("work")
parser.add_argument("--all", action="store_true")
options = parser.parse_args()
page, config = options.page.read_text(), json.loads(options.example.read_text())
fresh(options.work)

sizes = re.search(r"is `examples/gpt2-124m.json` with `n_embd` (\d+), `n_layer` (\d+) and `n_head` (\d+)", page)
check(sizes, "the page does not say what gpt2-xl.json is")
config.update(zip(("n_embd", "n_layer", "n_head"), map(int, sizes.groups())))
json.dump(config, open("gpt2-xl.json", "w"))
command = re.search(r"^    (meshwright fit gpt2-xl.json .*) \[--zero N\] \[--offload WHAT\]$", page, re.MULTILINE)
check(command, "the page has no command")
rows = re.findall(r"^\| (data parallel|`--zero \d`) \| (.*?) \| (\d+) \| (\d+) \| ([\d.]+), ([\d.]+) \|$", page, re.MULTILINE)
check(len(rows) == 3, f"rows of the page: {rows}")
KEPT = ("optimizer", "optimizer,parameters")
CARDS = 2


def bytes_of(text):
    return int(text.replace(",", ""))


def gigabytes(count):
    return f"{count / 1e9:.1f}"


def fit(zero, kept):
    """What fit prints, errors too."""
    words = [*command[1].split(), *zero, *(["--offload", kept] if kept else [])]
    return subprocess.run(words, capture_output=True, text=True, timeout=1200)


def largest(text, prefix=""):
    found = re.search(rf"^{prefix}largest batch: (\d+), [\d,]+ bytes a rank(?: and ([\d,]+) on the host)?; \d+ would be", text, re.MULTILINE)
    check(found, f"no largest batch with '{prefix}' in:\n{text}")
    return int(found[1]) // CARDS, bytes_of(found[2] or "0")


def fits(zero, kept, batch):
    words = command[1].replace("--largest batch ", "").split()
    words[1] = "compile"
    done = subprocess.run([*words, *zero, "--offload", kept, "--batch", str(batch * CARDS), "--emit", "exec", "-o", "exec.mlir"],
                          capture_output=True, text=True, timeout=1200)
    check(done.returncode == 0 or "more than --memory-limit" in done.stderr, done.stderr[-2000:])
    return done.returncode == 0


for label, plain, *batches, host, more_host in rows if options.all else rows[:1]:
    zero = label.strip("`").split() if label != "data parallel" else []
    if not options.all:
        for kept, batch in zip(KEPT, map(int, batches)):
            check(fits(zero, kept, batch), f"{label}, {kept}: {batch} sequences do not fit")
            check(not fits(zero, kept, batch + 1), f"{label}, {kept}: more than {batch} sequences fit")
        print(f"{label}: {batches} are the largest")
        continue
    done = fit(zero, None)
    if found := re.fullmatch(r"none: one sequence needs ([\d.]+) GB", plain):
        least = re.search(r"no batch fits: 2, the smallest, needs ([\d,]+) bytes a rank", done.stderr)
        check(done.returncode and least and gigabytes(bytes_of(least[1])) == found[1], f"{label}: {done.stderr}")
        check("; --offload optimizer makes it fit" in done.stderr, f"{label}: {done.stderr}")
        have = [largest(fit(zero, kept).stdout) for kept in KEPT]
    else:
        check(done.returncode == 0, done.stderr)
        check(largest(done.stdout)[0] == int(plain), f"{label}: not {plain}:\n{done.stdout}")
        have = [largest(done.stdout, f"with --offload {kept}: ") for kept in KEPT]
    want = list(zip(map(int, batches), (host, more_host)))
    check([(batch, gigabytes(count)) for batch, count in have] == want, f"{label}: {have}, the page has {want}")
    print(f"{label}: {plain}; {have}")
