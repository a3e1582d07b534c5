#!/usr/bin/env python3
"""`meshwright plan` finds what trying everything finds: plan.py CONFIG WORK"""
import itertools
import json
import pathlib
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import call, check, fresh

config = pathlib.Path(sys.argv[1]).resolve()
fresh(sys.argv[2])
DEVICES, BATCH, SEQ = 4, 8, 16


def cluster(memory, outside, latency=1e-6):
    pathlib.Path("c.toml").write_text(f"""
name = "test"
target = "cuda"
[[devices]]
name = "device"
memory = {memory}
products = {{f32 = 1e11, bf16 = 1e11}}
kernels = 1e15
memory_bandwidth = 1e10
launch = 1e-6
host = {{latency = 0, bandwidth = 1e10}}
source = "a test"
[[levels]]
name = "inside"
count = 2
latency = {latency}
bandwidth = 1e9
source = "a test"
[[levels]]
name = "outside"
latency = {latency}
bandwidth = {outside}
source = "a test"
""")


def plan(*words):
    command = ["meshwright", "plan", config, "--cluster", "c.toml", "--devices", DEVICES, "--batch", BATCH, "--seq", SEQ, "--json", *words]
    found = json.loads(subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout)
    steps = [one["step_s"] for one in found["best"]]
    check(steps == sorted(steps) and found["complete"], f"{found['compiled']} of {found['layouts']} layouts, {steps}")
    front = [(one["step_s"], one["peak_bytes"]) for one in found["pareto"]]
    check(front == sorted(front) and sorted(bytes for _, bytes in front) == [bytes for _, bytes in front][::-1], f"fastest with less memory: {front}")
    return found


def everything(capacity):
    """The fastest step of all layouts of two layers that fit, with the least activation checkpointing that does."""
    best = None
    for pipe, data, tensor in itertools.product((1, 2), (1, 2, 4), (1, 2, 4)):
        if pipe * data * tensor != DEVICES or BATCH % data:
            continue
        for micro, zero, schedule in itertools.product((1, 2, 4, 8), (0, 1, 2, 3), (None, "zb-h1")):
            microbatches = BATCH // data // micro
            if (zero and data == 1) or microbatches * micro * data != BATCH or (schedule and (pipe == 1 or microbatches < pipe)):
                continue
            mesh = ",".join(f"{axis}={size}" for axis, size in (("pipe", pipe), ("data", data), ("tensor", tensor)) if size > 1)
            flags = ["--mesh", mesh, "--microbatches", microbatches] + (["--zero", zero] if zero else [])
            flags += (["--sequence-parallel"] if tensor > 1 else []) + (["--schedule", schedule] if schedule else [])
            for remat in ("none", "selective", "full"):
                command = ["meshwright", "predict", config, "--cluster", "c.toml", "--json", "--batch", BATCH, "--seq", SEQ, "--remat", remat, *flags]
                done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
                if done.returncode:
                    break
                result = json.loads(done.stdout)
                if result["peak_bytes"] <= capacity:
                    best = min(best or (9, ""), (result["step_s"], " ".join(map(str, flags))))
                    break
    return best


# The optimum of the whole space, on fast links.
cluster(memory=1e12, outside=1e9)
found, (seconds, flags) = plan(), everything(1e12)
check(abs(found["best"][0]["step_s"] / seconds - 1) < 1e-3, f"plan finds {found['best'][0]}, but {flags} takes {seconds}")
largest = found["best"][0]["peak_bytes"]

# Less memory needs other layouts, and they fit.
smallest = found["pareto"][-1]["peak_bytes"]
check(smallest < largest, f"{smallest} of {largest} bytes")
limit = (smallest + largest) / 2
cluster(memory=limit, outside=1e9)
less = plan()
check(less["best"][0]["peak_bytes"] <= limit and less["best"][0]["step_s"] >= found["best"][0]["step_s"], less["best"][0])

# Slow links between machines: nothing that is sent within layers goes there.
cluster(memory=1e12, outside=1e6)
slow = plan("--zero", 0)["best"][0]
check("tensor=4" not in slow["flags"].get("mesh", ""), slow)

# The recipe is what was found, and compiles.
call(["meshwright", "plan", config, "--cluster", "c.toml", "--devices", DEVICES, "--batch", BATCH, "--seq", SEQ, "-o", "r.toml"])
recipe = pathlib.Path("r.toml").read_text()
again = json.loads(call(["meshwright", "predict", "--recipe", "r.toml", "--json"]))
check(f"{again['step_s']:.4f} s a step" in recipe, f"{recipe} takes {again['step_s']}")

for words, why in (
        (["--devices", 4], "--cluster is missing"),
        (["--cluster", "c.toml"], "--devices is missing"),
        (["--cluster", "c.toml", "--devices", 0], "is not a whole number"),
        (["--cluster", "c.toml", "--devices", 4, "--mesh", "data=4"], "--mesh is what plan looks for"),
        (["--cluster", "c.toml", "--devices", 4, "--assert", "peak<=1GiB"], "plan checks nothing"),
        (["--cluster", "c.toml", "--devices", 4, "--seconds", "soon"], "is not a positive number"),
        (["--cluster", "c.toml", "--devices", 7], "none divides the model")):
    done = subprocess.run(["meshwright", "plan", config, "--batch", str(BATCH), "--seq", str(SEQ), *map(str, words)], capture_output=True, text=True)
    check(done.returncode == 1 and why in done.stderr, f"{words}: {done.stderr}")
cluster(memory=1e5, outside=1e9)
done = subprocess.run(["meshwright", "plan", config, "--cluster", "c.toml", "--devices", "4", "--batch", "8", "--seq", "16"], capture_output=True, text=True)
check(done.returncode == 1 and ("do not fit" in done.stderr or "GB more" in done.stderr), done.stderr)
