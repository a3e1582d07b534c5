#!/usr/bin/env python3
"""How near the step that a schedule predicts from the times of its tasks is to the step measured:
predict.py CORPUS WORK [SCHEDULE]

Two ranks, one a core; needs a machine that nobody else uses, since whoever does interrupts some tasks of most steps. Prints
medians, and the fastest step beside the prediction."""
import json
import pathlib
import re
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "test/EndToEnd"))
from harness import call, compile, fresh, train

corpus = pathlib.Path(sys.argv[1]).resolve()
fresh(sys.argv[2])
schedule = sys.argv[3] if len(sys.argv) > 3 else "1f1b"

# Tasks of some milliseconds.
json.dump({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 256, "n_head": 4, "n_layer": 4,
           "n_positions": 128, "vocab_size": 256, "activation_function": "gelu_new", "resid_pdrop": 0, "embd_pdrop": 0,
           "attn_pdrop": 0, "layer_norm_epsilon": 1e-5, "initializer_range": 0.02, "tie_word_embeddings": False},
          open("config.json", "w"))
compile("config.json", "exe", mesh="pipe=2", batch=8, microbatches=8, seq=128, schedule=schedule)
for _ in range(3):
    train("./exe", 2, data=corpus, tokens="u8", steps=24, lr=1e-4, trace="trace.json")
    said = call(["meshwright", "schedule", schedule, "--stages", 2, "--microbatches", 8, "--trace", "trace.json"])
    print(said.split("\n  0 |")[0])
    longest = {}
    for event in json.load(open("trace.json"))["traceEvents"]:
        if event["name"] == "step":
            step = event["args"]["index"]
            longest[step] = max(longest.get(step, 0), event["dur"] / 1000)
    fastest = min(longest.values())
    apart = 100 * abs(float(re.search(r"step: ([0-9.]+) ms predicted", said)[1]) / fastest - 1)
    print(f"the fastest step took {fastest:.3f} ms: {apart:.1f}% apart", flush=True)
