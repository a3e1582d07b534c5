#!/usr/bin/env python3
"""The step that a schedule predicts from the times of its tasks is the step measured: predict.py CORPUS WORK [SCHEDULE]

Two ranks, one a core. Prints how far apart the two are. Whoever else uses the cores interrupts tasks of most steps: so the
median task is held against the step that was interrupted least, the fastest; within 15% in one of a few attempts."""
import json
import pathlib
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import call, check, compile, fresh, train

corpus = pathlib.Path(sys.argv[1]).resolve()
fresh(sys.argv[2])
schedule = sys.argv[3] if len(sys.argv) > 3 else "1f1b"
ATTEMPTS, BOUND = 6, 15.0

# Tasks of some milliseconds.
json.dump({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 256, "n_head": 4, "n_layer": 4,
           "n_positions": 128, "vocab_size": 256, "activation_function": "gelu_new", "resid_pdrop": 0, "embd_pdrop": 0,
           "attn_pdrop": 0, "layer_norm_epsilon": 1e-5, "initializer_range": 0.02, "tie_word_embeddings": False},
          open("config.json", "w"))
compile("config.json", "exe", mesh="pipe=2", batch=8, microbatches=8, seq=128, schedule=schedule)
apart = []
while len(apart) < ATTEMPTS and (not apart or min(apart) > BOUND):
    train("./exe", 2, data=corpus, tokens="u8", steps=24, lr=1e-4, trace="trace.json")
    said = call(["meshwright", "schedule", schedule, "--stages", 2, "--microbatches", 8, "--trace", "trace.json"])
    print(said.split("\n  0 |")[0], flush=True)
    longest = {}
    for event in json.load(open("trace.json"))["traceEvents"]:
        if event["name"] == "step":
            number = event["args"]["index"]
            longest[number] = max(longest.get(number, 0), event["dur"] / 1000)
    fastest = min(longest.values())
    apart.append(round(100 * abs(float(re.search(r"step: ([0-9.]+) ms predicted", said)[1]) / fastest - 1), 1))
    print(f"the fastest step took {fastest:.3f} ms: {apart[-1]}% apart", flush=True)
check(min(apart) <= BOUND, f"{schedule}: predicted and measured steps are {apart} percent apart")

# A trace of another schedule is refused.
done = subprocess.run(["meshwright", "schedule", "naive", "--stages", "2", "--microbatches", "8", "--trace", "trace.json"],
                      capture_output=True, text=True)
check(done.returncode and "is of another schedule: rank 0 did F1.0 as task 1, which is B0.0" in done.stderr, done.stderr)
open("none.json", "w").write("{}")
done = subprocess.run(["meshwright", "schedule", "1f1b", "--stages", "2", "--microbatches", "8", "--trace", "none.json"],
                      capture_output=True, text=True)
check(done.returncode and "'none.json' is no trace" in done.stderr, done.stderr)
