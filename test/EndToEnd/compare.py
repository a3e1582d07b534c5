#!/usr/bin/env python3
"""Compares a run's --metrics with a golden run, and gradients taken from an SGD step with golden gradients.

  compare.py losses METRICS.jsonl GOLDEN.json [LOSS_TOLERANCE NORM_TOLERANCE]
  compare.py gradients BEFORE.safetensors AFTER.safetensors GRADIENTS.safetensors LR [TOLERANCE]
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


# The rate of a step of SGD that shows gradients, beside which weights are small: the step rounds their sum to float32.
GRADIENT_LR = 1e6


def worst_gradient(have, golden):
    """The largest error of a tensor's gradient, `have(name)`, and that tensor. A gradient that is the rounding error
    of a float64 run is none: that of keys' biases, where keys do not turn. It is measured by the largest gradient."""
    most = max((math.hypot(*want) for _, want in golden.values()), default=0)
    worst, where = 0, ""
    for name, (shape, want) in golden.items():
        found, values = have(name)
        assert found == shape, f"{name}: shape {found}, golden {shape}"
        # Where nothing flows back, nothing may come: there is no scale but that of the values.
        norm = math.hypot(*want)
        error = math.dist(values, want) / ((norm if norm > 1e-14 * most else most) or 1)
        if not error <= worst:
            worst, where = error, name
    return worst, where


def gradient_error(before, after, golden, lr):
    """What one step of SGD says of gradients."""
    before, after, golden = map(read_safetensors, (before, after, golden))
    return worst_gradient(lambda name: (after[name][0], [(x - y) / float(lr) for x, y in zip(before[name][1], after[name][1])]), golden)


def momentum_error(states, golden, beta1):
    """What the momentum after one step of AdamW, of unclipped gradients, says of them."""
    states, golden = map(read_safetensors, (states, golden))
    moments = {name.removesuffix(".momentum"): state for name, state in states.items() if name.endswith(".momentum")}
    # What is not trained has none.
    moments = {name: moments.get(name, (shape, [0.0] * len(want))) for name, (shape, want) in golden.items()}
    return worst_gradient(lambda name: (moments[name][0], [x / (1 - beta1) for x in moments[name][1]]), golden)


def gradients(before, after, golden, lr, tolerance="2e-5"):
    worst, where = gradient_error(before, after, golden, lr)
    print(f"gradients {worst:.2e} at {where}")
    return worst <= float(tolerance)


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
    commands = {"losses": losses, "gradients": gradients, "runs": runs, "falls": falls}
    sys.exit(0 if commands[sys.argv[1]](*sys.argv[2:]) else 1)
