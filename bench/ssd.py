#!/usr/bin/env python3
"""How close a step with tensors on an SSD comes to what the disk allows: ssd.py MODEL TOKENS FOLDER [--steps N] [--rounds N] [flags of compile]

Compiles MODEL with the flags, by default --offload optimizer=ssd, and without offload. Each round measures the disk, by as many reads and writes of 512 KiB
past the page cache as a step has and in as many threads as the runtime has requests under way, then runs some steps with the states on the SSD and some
without. Prints the medians of all rounds: the time of a step, and how much longer it takes than the longer of what the disk needs for its bytes and of the
step without offload, which is what a perfect overlap would take."""
import argparse
import json
import mmap
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PIECE, DEPTH = 512 << 10, 8

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("tokens")
parser.add_argument("folder")
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--rounds", type=int, default=3)
options, flags = parser.parse_known_args()
if "--offload" not in flags:
    flags += ["--offload", "optimizer=ssd"]
at = flags.index("--offload")
plain = flags[:at] + flags[at + 2:]
work = pathlib.Path(tempfile.mkdtemp(dir=options.folder))


def move(file, begin, bytes, write):
    """Reads or writes the pieces of a range, one after the other."""
    piece = mmap.mmap(-1, PIECE)
    for offset in range(begin, begin + bytes, PIECE):
        (os.pwritev if write else os.preadv)(file, [piece], offset)


def disk_seconds(read, written):
    """To read and write so many bytes at once."""
    path = work / "bytes"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    whole = 1 << 30  # Larger transfers take as long in proportion.
    scale = max(read, written) / whole
    share = whole // DEPTH
    os.posix_fallocate(file, 0, whole)
    for i in range(DEPTH):  # So that reads are of something.
        move(file, i * share, share, True)
    threads = [threading.Thread(target=move, args=(file, i * share, int(share * bytes / max(read, written)) // PIECE * PIECE, write))
               for bytes, write in ((read, False), (written, True)) for i in range(DEPTH)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = (time.monotonic() - begin) * scale
    os.close(file)
    os.unlink(path)
    return seconds


def step_seconds(exe, *more):
    """The times of steps but the first, whose file has not been written yet, and the losses."""
    subprocess.run([exe, "--data", options.tokens, "--steps", str(options.steps), "--lr", "1e-4", "--metrics", work / "m.jsonl", *more],
                   check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in open(work / "m.jsonl")]
    return [line["step_ms"] / 1e3 for line in lines[1:]], [(line["loss"], line["grad_norm"]) for line in lines]


for exe, given in (("with", flags), ("without", plain)):
    subprocess.run(["meshwright", "compile", options.model, "-o", work / exe, *given], check=True, stdout=subprocess.DEVNULL)
plan = json.loads(subprocess.run(["meshwright", "inspect", "--json", work / "with"], check=True, capture_output=True, text=True).stdout)
other = json.loads(subprocess.run(["meshwright", "inspect", "--json", work / "without"], check=True, capture_output=True, text=True).stdout)
copied = plan["programs"][0]["copied_bytes"]["step"]
read, written = copied["from_ssd"], copied["to_ssd"]
print(f"arena {plan['arena_bytes']:,} bytes and {plan['host_bytes']:,} on the host, without offload {other['arena_bytes']:,}; on the SSD {plan['ssd_bytes']:,}; "
      f"a step reads {read:,} and writes {written:,}", flush=True)
disk, have, alone = [], [], []
for _ in range(options.rounds):
    disk.append(disk_seconds(read, written))
    seconds, losses = step_seconds(work / "with", "--ssd", options.folder)
    have += seconds
    seconds, want = step_seconds(work / "without")
    alone += seconds
    if losses != want:
        sys.exit(f"losses and norms {losses}, without offload {want}")
    print(f"  disk {disk[-1]:.2f} s, steps {', '.join(f'{s:.2f}' for s in have[-options.steps + 1:])} s, "
          f"without offload {', '.join(f'{s:.2f}' for s in alone[-options.steps + 1:])} s", flush=True)
print("losses and gradient norms are equal:", want)
disk, have, alone = map(statistics.median, (disk, have, alone))
print(f"medians: a step {have:.2f} s; its bytes {disk:.2f} s, {(read + written) / disk / 1e9:.2f} GB/s; without offload {alone:.2f} s; "
      f"{100 * (have / max(disk, alone) - 1):+.0f}% above the longer of both, {100 * (have / (disk + alone) - 1):+.0f}% above their sum")
subprocess.run(["rm", "-r", work], check=True)
