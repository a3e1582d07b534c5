#!/usr/bin/env python3
"""The first step begins within a second and the time that the weights take: start.py CONFIG WORK"""
import json
import pathlib
import sys
import time

sys.path.append(sys.path[0] + "/..")
from harness import check, compile, fresh, train

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


def best(measure):
    """What other processes take from a run is not its own: the first of a few that is fast enough, or the last."""
    for _ in range(5):
        first, weights = measure()
        if first - weights < 1:
            break
    return first, weights


first, weights = best(start)
print(f"new weights: first step after {first:.3f} s, of which making them takes {weights:.3f} s")
check(first - weights < 1, f"the first step begins {first - weights:.2f} s after its weights could be there")

file = "save/latest/model.safetensors"
read = reading(file)
first, _ = best(lambda: (start(init=file)[0], read))
print(f"weights of a file: first step after {first:.3f} s, reading {pathlib.Path(file).stat().st_size:,} bytes {read:.3f} s")
check(first - read < 1, f"the first step begins {first - read:.2f} s after the file could be read")
