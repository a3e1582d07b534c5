#!/usr/bin/env python3
"""How long models take to compile: compile_time.py CONFIG|models|distinct WORK

CONFIG: how much longer 96 layers take than 12, to IR and to an executable; processor time, alternating; medians of 15.
models: large models of examples/models, most with layers that differ, to IR and to an executable; fails where one takes
longer to IR than it may, or more than 20 s to an executable.
distinct: gpt-oss-20b with 16 to 128 layers whose kinds follow no pattern, to IR and to an executable.
The last two write WORK/results.json.
"""
import json
import pathlib
import random
import resource
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "test/EndToEnd"))
from harness import check, compile, fresh

LAYERS = (12, 96)
ROUNDS = 15
SHARDED = dict(mesh="data=8", zero=3, batch=8, seq=4096)
# Sequences are longer than windows, so that layers with and without are two kinds.
MODELS = {
    "yi-6b": (10, SHARDED),
    "gemma-2-2b": (10, dict(SHARDED, seq=8192)),
    "smollm3-3b": (10, SHARDED),
    "olmo-3.1-32b": (10, dict(SHARDED, seq=8192)),
    "gpt-oss-20b": (10, SHARDED),
    "gpt-oss-120b": (10, SHARDED),
    "llama-4-scout-17b-16e": (10, SHARDED),
    "step-3.5-flash": (10, SHARDED),
    "mimo-v2-flash": (10, SHARDED),
    "deepseek-v3": (5, dict(mesh="pipe=16,data=2,expert=64", seq=4096)),
}


def seconds(model, output, **options):
    """Processor time of a compilation, which other processes disturb less than time on the clock."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    compile(model, output, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(model):
    key = "n_layer" if "n_layer" in model else "num_hidden_layers"
    for layers in LAYERS:
        json.dump(dict(model, **{key: layers}), open(f"{layers}.json", "w"))
    for what, options in {"IR": {"emit": "exec"}, "an executable": {}}.items():
        times = {layers: [] for layers in LAYERS}
        for turn in range(ROUNDS + 1):
            for layers in LAYERS if turn % 2 else reversed(LAYERS):
                took = seconds(f"{layers}.json", f"{layers}.out", batch=4, seq=64, **options)
                if turn:  # The first is a warm-up.
                    times[layers].append(took)
        few, many = (statistics.median(times[layers]) for layers in LAYERS)
        print(f"to {what}: 12 layers {few:.3f} s, 96 layers {many:.3f} s, {many / few:.3f} times as long")


def both(model, name, **options):
    """Seconds on the clock and of processors, to IR and to an executable."""
    row = {}
    for what, more in {"IR": {"emit": "exec"}, "executable": {}}.items():
        begin = time.perf_counter()
        used = seconds(model, "out", target="cuda", precision="bf16", **options, **more)
        row[what] = {"seconds": round(time.perf_counter() - begin, 2), "processor_seconds": round(used, 2)}
    print(f"{name}: " + "; ".join(f"to {what} {took['seconds']:.1f} s, {took['processor_seconds']:.1f} s of processors" for what, took in row.items()), flush=True)
    return row


def write(results):
    json.dump(results, open("results.json", "w"), indent=2)


def compile_models():
    results = {}
    for name, (most, options) in MODELS.items():
        results[name] = {"most_seconds": {"IR": most, "executable": 20}, **both(ROOT / f"examples/models/{name}.json", name, **options)}
    write(results)
    slow = [name for name, row in results.items() if any(row[what]["seconds"] > most for what, most in row["most_seconds"].items())]
    check(not slow, f"{', '.join(slow)} took longer")


def compile_distinct():
    """Time is near linear in layers of which a model repeats no run."""
    model = json.load(open(ROOT / "examples/models/gpt-oss-20b.json"))
    pick = random.Random(7)
    kinds = [pick.choice(["sliding_attention", "full_attention"]) for _ in range(128)]
    results = {}
    for layers in (16, 32, 64, 128):
        json.dump(dict(model, num_hidden_layers=layers, layer_types=kinds[:layers]), open("config.json", "w"))
        results[layers] = both("config.json", f"{layers} layers", **SHARDED)
    write(results)


what, work = sys.argv[1:]
special = {"models": compile_models, "distinct": compile_distinct}
model = None if what in special else json.load(open(what))
fresh(work)
special[what]() if what in special else compare(model)
