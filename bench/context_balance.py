#!/usr/bin/env python3
"""How long the rank with most attention computes it, without and with --context-balance zigzag: context_balance.py WORK [SEQ [RANKS]]

A small Llama whose sequences are divided among ranks of one thread, which run in turn with and without. Of each call of attention counts the
shortest of all steps, so that other programs on the machine disturb little where calls are short.
"""
import collections
import json
import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "test/EndToEnd"))
from harness import compile, fresh, train

sequence = int(sys.argv[2]) if len(sys.argv) > 2 else 8192
ranks = int(sys.argv[3]) if len(sys.argv) > 3 else 2
examples = pathlib.Path(__file__).resolve().parents[1] / "examples"
fresh(sys.argv[1])
config = json.loads((examples / "llama-bytes.json").read_text())
json.dump({**config, "num_hidden_layers": 1, "max_position_embeddings": sequence}, open("config.json", "w"))
pathlib.Path("data.bin").write_bytes(bytes(i * i % 251 for i in range(sequence + 1)))
os.environ["OMP_NUM_THREADS"] = "1"
for balance in ("none", "zigzag"):
    compile("config.json", balance, mesh=f"context={ranks}", context_parallel="gather", context_balance=balance, batch=1, seq=sequence)


def calls(exe):
    """The milliseconds of each call of attention, by rank and number in the step, in each step of a run."""
    train(f"./{exe}", ranks, trace="trace.json", data="data.bin", tokens="u8", steps=10)
    spans = sorted((event for event in json.load(open("trace.json"))["traceEvents"] if event["ph"] == "X"), key=lambda event: event["ts"])
    times = collections.defaultdict(list)
    for step in (span for span in spans if span["name"] == "step"):
        inside = [span for span in spans if span["pid"] == step["pid"] and step["ts"] <= span["ts"] < step["ts"] + step["dur"]
                  and span["name"].startswith("attention")]
        for number, span in enumerate(inside):
            times[step["pid"], number].append(span["dur"] / 1e3)
    return times


shortest = {balance: {} for balance in ("none", "zigzag")}
for _ in range(4):
    for balance, found in shortest.items():
        for call, times in calls(balance).items():
            found[call] = min(times + [found.get(call, times[0])])
longest = {}
for balance, found in shortest.items():
    of_rank = collections.Counter()
    for (rank, _), time in found.items():
        of_rank[rank] += time
    longest[balance] = max(of_rank.values())
    print(f"{balance:8}" + "".join(f"  rank {rank}: {time:.1f} ms" for rank, time in sorted(of_rank.items())))
print(f"S = {sequence}, context={ranks}: attention without balance takes {longest['none'] / longest['zigzag']:.2f} times as long")
