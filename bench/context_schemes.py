#!/usr/bin/env python3
"""A step of a small Llama on four ranks of one thread that divide its sequence, by each scheme, beside one rank with two threads:
context_schemes.py WORK [SEQ [RANKS]]

All take turns for ROUNDS rounds of STEPS steps; of each the median step counts, without the first of a round.
"""
import json
import os
import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "test/EndToEnd"))
from harness import compile, fresh, train

ROUNDS, STEPS = 3, 4
sequence = int(sys.argv[2]) if len(sys.argv) > 2 else 8192
ranks = int(sys.argv[3]) if len(sys.argv) > 3 else 4
examples = pathlib.Path(__file__).resolve().parents[1] / "examples"
fresh(sys.argv[1])
config = json.loads((examples / "llama-bytes.json").read_text())
json.dump({**config, "max_position_embeddings": sequence}, open("config.json", "w"))
pathlib.Path("data.bin").write_bytes(bytes(i * i % 251 for i in range(sequence + 1)))
print(f"hidden {config['hidden_size']}, {config['num_hidden_layers']} layers, {config['num_attention_heads']} heads, "
      f"{config['num_key_value_heads']} key heads, S = {sequence}")
SCHEMES = ("one", "ring", "gather", "ulysses")
for scheme in SCHEMES:
    mesh = {} if scheme == "one" else {"mesh": f"context={ranks}", "context_parallel": scheme}
    compile("config.json", scheme, batch=1, seq=sequence, **mesh)


def steps(scheme):
    """Milliseconds of the steps of a run."""
    os.environ["OMP_NUM_THREADS"] = "2" if scheme == "one" else "1"
    train(f"./{scheme}", 1 if scheme == "one" else ranks, trace="trace.json", data="data.bin", tokens="u8", steps=STEPS)
    spans = [event for event in json.load(open("trace.json"))["traceEvents"]
             if event["ph"] == "X" and event["name"] == "step" and event["pid"] == 0]
    return [span["dur"] / 1e3 for span in sorted(spans, key=lambda span: span["ts"])][1:]


times = {scheme: [] for scheme in SCHEMES}
for _ in range(ROUNDS):
    for scheme in SCHEMES:
        times[scheme] += steps(scheme)
one = statistics.median(times["one"])
print(f"one rank, 2 threads: {one:.0f} ms")
for scheme in SCHEMES[1:]:
    median = statistics.median(times[scheme])
    print(f"{scheme}, {ranks} ranks of one thread: {median:.0f} ms, {median / one:.3f} of that")
