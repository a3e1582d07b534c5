#!/usr/bin/env python3
"""Compares a run's --metrics with a golden run's or another's, and gradients with golden ones.

  compare.py losses METRICS.jsonl GOLDEN.json [LOSS_TOLERANCE NORM_TOLERANCE]
  compare.py runs METRICS.jsonl METRICS.jsonl TOLERANCE
  compare.py falls ABOVE BELOW LAST METRICS.jsonl...

Tolerances are relative; a gradient's error is the norm of the difference over the norm, or over the largest tensor's where
its own is but a rounding error. Prints the largest errors and fails if one is beyond its tolerance.
"""
import array
import json
import math
import struct
import sys


def read_safetensors(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", (name, entry["dtype"])
        begin, end = entry["data_offsets"]
        values = array.array("f")
        values.frombytes(data[begin:end])
        tensors[name.removeprefix("transformer.")] = (entry["shape"], values)
    return tensors


def largest(errors):
    """The largest error; not-a-number counts as the worst, where max() would lose it."""
    return max(errors, key=lambda error: math.inf if math.isnan(error) else error)


def losses(metrics, golden, loss_tolerance="1e-5", norm_tolerance="5e-5"):
    rows = [json.loads(line) for line in open(metrics)]
    wanted = json.load(open(golden))
    assert len(rows) == len(wanted["loss"]), f"{len(rows)} steps, golden has {len(wanted['loss'])}"
    worst = {}
    for key in ("loss", "grad_norm"):
        worst[key] = largest(abs(row[key] - want) / abs(want) for row, want in zip(rows, wanted[key]))
    print(f"loss {worst['loss']:.2e} grad_norm {worst['grad_norm']:.2e}")
    return worst["loss"] <= float(loss_tolerance) and worst["grad_norm"] <= float(norm_tolerance)


def momentum_error(states, golden, beta1, least=0):
    """The largest error of a tensor's gradient, taken from the momentum after one step of AdamW of unclipped gradients, and that
    tensor. A gradient that is the rounding error of a float64 run is none: that of keys' biases, where keys do not turn. It is measured
    by the largest gradient. One that is less than `least` times the largest is a difference of large numbers, and measured as if it
    were that."""
    states, golden = map(read_safetensors, (states, golden))
    most = max((math.hypot(*want) for _, want in golden.values()), default=0)
    worst, where = 0, ""
    for name, (shape, want) in golden.items():
        # What is not trained has no momentum.
        found, momentum = states.get(f"{name}.momentum", (shape, [0.0] * len(want)))
        assert found == shape, f"{name}: shape {found}, golden {shape}"
        # Where nothing flows back, nothing may come: there is no scale but that of the values.
        norm = math.hypot(*want)
        error = math.dist([value / (1 - beta1) for value in momentum], want) / ((max(norm, least * most) if norm > 1e-14 * most else most) or 1)
        if not error <= worst:
            worst, where = error, name
    return worst, where


def runs(first, second, tolerance):
    first, second = ([json.loads(line)["loss"] for line in open(path)] for path in (first, second))
    assert len(first) == len(second) > 0, f"{len(first)} and {len(second)} steps"
    worst = largest(abs(a - b) / abs(b) for a, b in zip(first, second))
    print(f"loss {worst:.2e}")
    return worst <= float(tolerance)


def falls(above, below, last, *paths):
    """From between `above` and `below` to less than `last`."""
    good = True
    for path in paths:
        all = [json.loads(line)["loss"] for line in open(path)]
        print(f"{path}: {all[0]:.4f} -> {all[-1]:.4f}")
        good = good and float(above) < all[0] < float(below) and all[-1] < float(last)
    return good


if __name__ == "__main__":
    commands = {"losses": losses, "runs": runs, "falls": falls}
    sys.exit(0 if commands[sys.argv[1]](*sys.argv[2:]) else 1)
