#!/usr/bin/env python3
"""Whether `meshwright plan` chooses the fastest layout of two CPU ranks of one thread: plan_cpu.py WORK [--cluster FILE] [--rounds N] [--model NAME]

Measures this machine by `meshwright calibrate`, unless a cluster file is given. Then searches all layouts of three small models, compiles and trains each, in alternating rounds, and prints the step that was measured for the chosen
layout beside the fastest one, and the rank correlation of predicted with measured steps. The least median of a round's steps counts, which
other load on the machine disturbs least. Writes bench/results/plan-cpu.json.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "test/EndToEnd"))
from harness import call, compile, fresh, train

parser = argparse.ArgumentParser()
parser.add_argument("work")
parser.add_argument("--cluster")
parser.add_argument("--rounds", type=int, default=4)
parser.add_argument("--model")
options = parser.parse_args()
STEPS, BATCH, SEQ, RANKS = 4, 8, 128, 2
LLAMA = {"model_type": "llama", "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_position_embeddings": SEQ, "tie_word_embeddings": False}
MODELS = {
    "gpt2": {"model_type": "gpt2", "n_layer": 6, "n_embd": 384, "n_head": 6, "n_positions": SEQ, "vocab_size": 8192, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0},
    "llama-deep": {**LLAMA, "num_hidden_layers": 12, "hidden_size": 256, "intermediate_size": 704, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 2048},
    "llama-wide": {**LLAMA, "num_hidden_layers": 2, "hidden_size": 768, "intermediate_size": 2048, "num_attention_heads": 12, "num_key_value_heads": 4, "vocab_size": 16384}}


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    return [float(order.index(i)) for i in range(len(values))]


fresh(options.work)
os.environ["OMP_NUM_THREADS"] = "1"
cluster = options.cluster
if not cluster:
    cluster = "here.toml"
    print(call(["meshwright", "calibrate", "-o", cluster, "--ranks", RANKS], timeout=600), flush=True)
rows = []
for name, config in MODELS.items():
    if options.model not in (None, name):
        continue
    pathlib.Path(f"{name}.json").write_text(json.dumps(config))
    pathlib.Path("data.bin").write_bytes(b"".join((i * i % 2039).to_bytes(2, "little") for i in range(BATCH * SEQ * 8 + 1)))
    sizes = {"batch": BATCH, "seq": SEQ}
    found = json.loads(subprocess.run(["meshwright", "plan", f"{name}.json", "--cluster", cluster, "--devices", str(RANKS), "--batch", str(BATCH), "--seq", str(SEQ),
                                       "--json", "--exhaustive", "--seconds", "600"], check=True, capture_output=True, text=True).stdout)
    layouts = found["all"]
    times = [[] for _ in layouts]
    for number, layout in enumerate(layouts):
        compile(f"{name}.json", f"exe{number}", **sizes, **{flag: True if value == "true" else value for flag, value in layout["flags"].items()})
    for _ in range(options.rounds):
        for number in range(len(layouts)):
            train(f"./exe{number}", RANKS, data="data.bin", steps=STEPS)
            times[number].append(statistics.median([json.loads(line)["step_ms"] for line in open("metrics.jsonl")][1:]))
    measured = [min(taken) for taken in times]
    predicted = [layout["step_s"] * 1e3 for layout in layouts]
    fastest = min(range(len(layouts)), key=measured.__getitem__)
    correlation = statistics.correlation(ranks(predicted), ranks(measured))
    print(f"{name}: {len(layouts)} layouts; chosen {layouts[0]['flags']} {measured[0]:.1f} ms (predicted {predicted[0]:.1f}), fastest {layouts[fastest]['flags']} "
          f"{measured[fastest]:.1f} ms (predicted {predicted[fastest]:.1f}): {measured[0] / measured[fastest] - 1:.1%} slower; rank correlation {correlation:.3f}", flush=True)
    rows.append({"model": name, "correlation": correlation, "layouts": [
        {"flags": layout["flags"], "predicted_ms": p, "measured_ms": m, "raw_ms": raw} for layout, p, m, raw in zip(layouts, predicted, measured, times)]})
commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
(ROOT / "bench/results/plan-cpu.json").write_text(json.dumps(
    {"commit": commit, "date": datetime.date.today().isoformat(), "machine": pathlib.Path(cluster).read_text(), "batch": BATCH, "seq": SEQ, "rounds": options.rounds, "rows": rows}, indent=1))
