#!/usr/bin/env python3
"""What reading 1,000 shards costs a step: shards.py WORK [--rounds N]

Trains examples/gpt2-bytes.json on random bytes in one file, and shuffled in 1,000 shards of the same size together, in turn. Prints the medians of
step times after the first ten steps, and their ratio."""
import argparse
import json
import pathlib
import random
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "test/EndToEnd"))
from harness import ROOT, compile, fresh, train

parser = argparse.ArgumentParser()
parser.add_argument("work")
parser.add_argument("--rounds", type=int, default=5)
options = parser.parse_args()
fresh(options.work)
draw = random.Random(1)
pathlib.Path("shards").mkdir()
SHARDS, BYTES = 1000, 64 * 1024
with open("one.bin", "wb") as whole:
    for number in range(SHARDS):
        data = draw.randbytes(BYTES)
        whole.write(data)
        pathlib.Path(f"shards/{number:04}.bin").write_bytes(data)
compile(ROOT / "examples/gpt2-bytes.json", "exe", batch=16, seq=64)
times = {"one.bin": [], "shards": []}
for _ in range(options.rounds):
    for data, found in times.items():
        train("./exe", data=data, tokens="u8", steps=60, lr=1e-3, shuffle=True)
        found += [json.loads(line)["step_ms"] for line in open("metrics.jsonl")][10:]
one, shards = (statistics.median(found) for found in times.values())
print(f"one file {one:.3f} ms, {SHARDS} shards {shards:.3f} ms a step: {shards / one:.4f}")
