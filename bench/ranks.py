#!/usr/bin/env python3
"""A step of GPT-2 124M on two ranks of one thread, by each way to divide it, beside one rank with two threads:
ranks.py WORK [BATCH SEQ]

All take turns for ROUNDS rounds of STEPS steps; of each the median of all steps counts, without the first of a round. A pipeline of two
stages has a bubble: of M microbatches it takes (M + 1) / M of a step at best, and the ratio is to that. Writes bench/results/ranks-cpu.json.
"""
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "test/EndToEnd"))
from harness import compile, fresh, train

ROUNDS, STEPS, MICROBATCHES = 5, 5, 4
batch, seq = map(int, sys.argv[2:4]) if len(sys.argv) > 3 else (4, 128)
fresh(sys.argv[1])
pathlib.Path("data.bin").write_bytes(b"".join((i * i % 50257).to_bytes(2, "little") for i in range(batch * seq * 64 + 1)))
WAYS = {"one rank, 2 threads": {}, "data=2": {"mesh": "data=2"}, "data=2, zero 3": {"mesh": "data=2", "zero": 3},
        "tensor=2": {"mesh": "tensor=2"}, f"pipe=2, {MICROBATCHES} microbatches": {"mesh": "pipe=2", "microbatches": MICROBATCHES}}
times = {way: [] for way in WAYS}
for number, (way, options) in enumerate(WAYS.items()):
    compile(ROOT / "examples/gpt2-124m.json", f"exe{number}", batch=batch, seq=seq, dropout=0, **options)
for _ in range(ROUNDS):
    for number, (way, options) in enumerate(WAYS.items()):
        ranks = 2 if options else 1
        os.environ["OMP_NUM_THREADS"] = str(2 // ranks)
        train(f"./exe{number}", ranks, data="data.bin", steps=STEPS, lr=6e-4)
        times[way] += [json.loads(line)["step_ms"] for line in open("metrics.jsonl")][1:]
one = statistics.median(times["one rank, 2 threads"])
rows = []
for way, taken in times.items():
    bubble = (MICROBATCHES + 1) / MICROBATCHES if way.startswith("pipe") else 1
    median = statistics.median(taken)
    print(f"{way}: {median:.0f} ms, {median / one / bubble:.3f} of one rank" + (f" with a bubble, {one * bubble:.0f} ms" if bubble > 1 else ""))
    rows.append({"way": way, "step_ms": median, "of_one_rank": median / one, "bubble": bubble, "raw_ms": taken})
about = dict(reversed([[part.strip() for part in line.split(":")] for line in open("/proc/cpuinfo") if line.count(":") == 1]))
commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
result = {"device": f"{about.get('model name')} (family {about.get('cpu family')}, model {about.get('model')}), 2 cores",
          "commit": commit, "date": datetime.date.today().isoformat(), "model": "gpt2-124m", "batch": batch, "seq": seq, "rows": rows}
(ROOT / "bench/results/ranks-cpu.json").write_text(json.dumps(result, indent=1))
