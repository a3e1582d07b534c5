#!/usr/bin/env python3
"""How long an executable takes from its start to the first step, beside what its weights take: start.py CONFIG WORK"""
import json
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "test/EndToEnd"))
from harness import compile, fresh, train

config = pathlib.Path(sys.argv[1]).resolve()
fresh(sys.argv[2])
pathlib.Path("data.bin").write_bytes(bytes(2000))
run = {"data": "data.bin", "tokens": "u8"}
# The smallest step of the largest example: all of the weights, little to compute.
compile(config, "exe", batch=1, seq=8)
compile(config, "sgd", batch=1, seq=8, optimizer="sgd")
train("./sgd", steps=0, save="save", **run)


def start(**more):
    """Seconds from the call to the first step, and those of them that went into the weights. Traces and Python read
    the same clock."""
    began = time.monotonic()
    train("./exe", steps=1, trace="trace.json", **run, **more)
    spans = {event["name"]: event for event in reversed(json.load(open("trace.json"))["traceEvents"]) if "ts" in event}
    return spans["step"]["ts"] / 1e6 - began, spans["load weights"]["dur"] / 1e6


def reading(path):
    """Seconds that reading the file takes, with nothing done to it."""
    began = time.monotonic()
    pathlib.Path(path).read_bytes()
    return time.monotonic() - began


def median(measure):
    """Of several runs, the first of which warms up; the median by the first number."""
    return sorted([measure() for _ in range(6)][1:])[2]


first, weights = median(start)
print(f"new weights: first step after {first:.3f} s, of which making them takes {weights:.3f} s")
file = "save/latest/model.safetensors"
read, _ = median(lambda: (reading(file), 0))
first, _ = median(lambda: start(init=file))
print(f"weights of a file: first step after {first:.3f} s, reading {pathlib.Path(file).stat().st_size:,} bytes {read:.3f} s")
