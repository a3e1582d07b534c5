#!/usr/bin/env python3
"""Whether `meshwright plan` chooses the fastest layout of two CPU ranks of one thread: plan_cpu.py WORK [--cluster FILE] [--rounds N] [--model NAME]

Measures this machine for a cluster file, unless one is given: products of OpenBLAS by size on one core, copies, and a launch taken for nothing. Then searches
all layouts of three small models, compiles and trains each, in alternating rounds, and prints the step that was measured for the chosen
layout beside the fastest one, and the rank correlation of predicted with measured steps. The least median of a round's steps counts, which
other load on the machine disturbs least. Writes bench/results/plan-cpu.json.
"""
import argparse
import ctypes
import ctypes.util
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

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


def best_seconds(work, rounds=5):
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return min(taken)


def measure():
    """A cluster file of this machine, from the fastest of a few calls each."""
    blas = ctypes.CDLL(ctypes.util.find_library("openblas") or "libopenblas.so.0")
    blas.openblas_set_num_threads(1)
    rates = []
    for n in (64, 128, 256, 512, 1024):
        matrices = [(ctypes.c_float * (n * n))(*([0.5] * (n * n))) for _ in range(3)]
        repeats = max(1, 1024**3 // (n**3 * 8))
        one, zero = ctypes.c_float(1), ctypes.c_float(0)

        def multiply():
            for _ in range(repeats):
                blas.cblas_sgemm(101, 111, 111, n, n, n, one, matrices[0], n, matrices[1], n, zero, matrices[2], n)

        rates.append([2 * n**3, 2 * n**3 * repeats / best_seconds(multiply)])
    size = 64 << 20
    source, target = ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)
    copy = size / best_seconds(lambda: ctypes.memmove(target, source, size))
    pathlib.Path("here.toml").write_text(f"""
name = "here"
target = "cpu"
[[devices]]
name = "a core"
memory = 1e12
products = {{f32 = {rates}, bf16 = {rates}}}
kernels = {rates[-1][1] / 10}
memory_bandwidth = {2 * copy}
launch = 0
host = {{latency = 0, bandwidth = {copy}}}
source = "bench/plan_cpu.py"
[[levels]]
name = "memory"
count = 2
latency = 10e-6
bandwidth = {copy / 2}
source = "bench/plan_cpu.py: a copy into shared memory and one out of it"
""")
    return "here.toml", {"products": rates, "copy": copy}


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    return [float(order.index(i)) for i in range(len(values))]


fresh(options.work)
os.environ["OMP_NUM_THREADS"] = "1"
cluster, machine = (options.cluster, None) if options.cluster else measure()
print(f"{cluster}: {machine}", flush=True)
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
    {"commit": commit, "date": datetime.date.today().isoformat(), "machine": machine, "batch": BATCH, "seq": SEQ, "rounds": options.rounds, "rows": rows}, indent=1))
