#!/usr/bin/env python3
"""How long models take to compile: compile_time.py CONFIG WORK, or compile_time.py models WORK

CONFIG: how much longer 96 layers take than 12, to IR and to an executable; processor time, alternating; medians of 15.
models: large models of examples/models to IR, most with layers that differ; fails where one takes longer than it may.
"""
import json
import pathlib
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


def compile_models():
    slow = []
    for name, (most, options) in MODELS.items():
        begin = time.perf_counter()
        used = seconds(ROOT / f"examples/models/{name}.json", f"{name}.mlir", target="cuda", precision="bf16", emit="exec", **options)
        took = time.perf_counter() - begin
        print(f"{name}: {took:.1f} s, {used:.1f} s of processors; {most} s at most")
        if took > most:
            slow.append(name)
    check(not slow, f"{', '.join(slow)} took longer")


model = None if sys.argv[1] == "models" else json.load(open(sys.argv[1]))
fresh(sys.argv[2])
compare(model) if model else compile_models()
