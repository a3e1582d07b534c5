#!/usr/bin/env python3
"""What checkpoints cost: the time of steps with none, with ones that training waits for, and with --async-save, which alternate:
async_save.py CONFIG WORK [--every K] [--steps N] [--runs N] [compile flags as NAME=VALUE...]

A run is timed from the line of its metrics for step K to that for step K + N, so that start and end do not count. The processor time
of the thread that trains depends less on what else the machine does; it has what a checkpoint takes of a step but for waiting for
the disk."""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "test/EndToEnd"))
from harness import compile, flags, fresh

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("config", type=pathlib.Path)
parser.add_argument("work")
parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
parser.add_argument("--steps", type=int, default=40, help="steps that are timed")
parser.add_argument("--runs", type=int, default=5, help="of each kind; medians are compared")
parser.add_argument("compile", nargs="*")
given = parser.parse_intermixed_args()
config = given.config.resolve()
fresh(given.work)
pathlib.Path("data.bin").write_bytes(bytes(i * i // 7 % 251 for i in range(1_000_000)))
compile(config, "exe", **dict(flag.split("=", 1) for flag in given.compile))
save = dict(save="save", save_every=given.every, keep=1)
KINDS = {"none": {}, "waiting": save, "async": dict(save, async_save=True)}


def lines():
    return open("m.jsonl", "rb").read().count(b"\n") if os.path.exists("m.jsonl") else 0


def seconds(kind):
    """Of `given.steps` steps, on the clock and of the processor in the thread that trains."""
    if os.path.exists("m.jsonl"):
        os.remove("m.jsonl")
    subprocess.run(["rm", "-rf", "save"], check=True)
    run = flags(dict(data="data.bin", tokens="u8", steps=10**7, metrics="m.jsonl", **KINDS[kind]))
    process = subprocess.Popen(["./exe", *run], stdout=subprocess.DEVNULL)
    times = {}
    try:
        while given.every + given.steps not in times:
            if process.poll() is not None:
                sys.exit(f"{kind}: the run ended after {lines()} steps")
            if (done := lines()) not in times:
                fields = open(f"/proc/{process.pid}/task/{process.pid}/stat").read().rpartition(")")[2].split()
                ticks = int(fields[11]) + int(fields[12])  # in user and in kernel mode
                times[done] = time.monotonic(), ticks / os.sysconf("SC_CLK_TCK")
            time.sleep(0.001)
    finally:
        process.kill()
        process.wait()
    return tuple(end - begin for end, begin in zip(times[given.every + given.steps], times[given.every]))


found = {kind: [] for kind in KINDS}
for _ in range(given.runs):
    for kind, times in found.items():
        times.append(seconds(kind))
bytes_saved = sum(file.stat().st_size for file in pathlib.Path("save/latest").iterdir())
print(f"{given.steps} steps, a checkpoint of {bytes_saved:,} bytes every {given.every}:")
for which, clock in enumerate(("on the clock", "of the training thread's processor time")):
    medians = {kind: statistics.median(times[which] for times in runs) for kind, runs in found.items()}
    for kind, runs in found.items():
        print(f"{kind:8} {medians[kind] / given.steps * 1e3:8.1f} ms a step {clock}, {medians[kind] / medians['none'] - 1:+7.1%}   "
              f"{' '.join(f'{times[which]:.2f}' for times in runs)} s")
