#!/usr/bin/env python3
"""The memory that the compiler prints is what a run takes, and little more than what lives at once.

  arena.py WORK
"""
import itertools
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/..")
from harness import INPUTS, ROOT, arena_printed, call, check, compile, flags, fresh, ir


def mappings(pid):
    """Anonymous memory as (bytes mapped, bytes present, flags)."""
    found, fields, anonymous = [], {}, False
    for line in open(f"/proc/{pid}/smaps"):
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            anonymous = len(line.split()) == 5
            continue
        key, value = line.split(":", 1)
        fields[key] = value.split()
        if key == "VmFlags" and anonymous:
            found.append((int(fields["Size"][0]) << 10, int(fields["Rss"][0]) << 10, fields["VmFlags"]))
    return found


def measure(exe):
    """Bytes of the arena as the kernel sees it while training, and of all other anonymous memory present."""
    command = [exe, *flags({"data": "data.bin", "tokens": "u8", "steps": 10**6, "lr": 0.001, "metrics": "m.jsonl"})]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    started = process.stdout.readline()
    try:
        deadline = time.monotonic() + 60
        while not os.path.exists("m.jsonl") or len(open("m.jsonl").readlines()) < 3:
            check(process.poll() is None and time.monotonic() < deadline, f"no steps: {started}")
            time.sleep(0.05)
        arenas = [m for m in mappings(process.pid) if "hg" in m[2]]
        others = sum(m[1] for m in mappings(process.pid) if "hg" not in m[2])
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.remove("m.jsonl")
    check(len(arenas) == 1, f"expected one arena, found {arenas}")
    return arena_printed(started), arenas[0][0], arenas[0][1], others


def whole_live(path):
    """The most that is live at once in a program if each buffer is held as a whole, from its first use to its last."""
    sizes = {"f32": 4, "i32": 4, "i8": 1}
    programs = call(["meshwright-opt", "--annotate-memory", path]).split("exec.program @")[1:]
    lasting, most = {}, 0
    for program in programs:
        changes = {}
        for name, text, first, last, shape, kind in re.findall(
                r'exec\.buffer "(\S+)" (.*?)exec\.live = array<i64: (\d+), (\d+)>.*? : memref<([\dx]*?)x?(f32|i32|i8)>', program):
            size = (math.prod(int(n) for n in shape.split("x") if n) * sizes[kind] + 63) // 64 * 64
            if re.search(r"\b(variable|input|output) [@\"]", text):
                lasting[name] = size
                continue
            changes[int(first)] = changes.get(int(first), 0) + size
            changes[int(last) + 1] = changes.get(int(last) + 1, 0) - size
        most = max(most, max(itertools.accumulate(changes[at] for at in sorted(changes))))
    return sum(lasting.values()) + most


directory = fresh(sys.argv[1])
pathlib.Path("data.bin").write_bytes((INPUTS / "golden/corpus.txt").read_bytes() * 4)
page = os.sysconf("SC_PAGE_SIZE")
beside = {}
for config, batch, seq in (("golden/gpt2-tiny", 8, 64), ("golden/gpt2-tiny", 128, 64), ("golden/llama-tiny", 8, 64)):
    printed = arena_printed(compile(INPUTS / config / "config.json", "exe", batch=batch, seq=seq, report="report"))
    plan = json.loads(call(["meshwright", "inspect", "exe", "--json"]))
    said, mapped, present, others = measure("./exe")
    check(printed == plan["arena_bytes"], f"compile says {printed}, inspect {plan['arena_bytes']}")
    check(printed == json.load(open("report/report.json"))["arena_bytes"], "the report says something else")
    check(printed == said, f"compile says {printed}, the executable {said}")
    peak = sum(line["bytes"] for line in plan["memory"])
    check(peak <= printed <= 1.03 * peak, f"the lines of the plan add up to {peak}, not about {printed}")
    check(mapped == -(-printed // page) * page, f"{printed} bytes are planned, {mapped} mapped")
    check(present <= mapped, f"{present} bytes present of {mapped}")
    check(present >= 0.9 * mapped, f"only {present} bytes of {mapped} are ever touched")
    beside[batch] = others
    print(f"{config} batch {batch}: arena {printed:,} bytes, present {present:,}, other memory {others:,}")
# Sixteen times the batch is all in the arena.
check(abs(beside[128] - beside[8]) < 2 << 20, f"memory beside the arena grows with the batch: {beside}")

# Of stages that need unlike much both say what the largest takes.
printed = arena_printed(compile(INPUTS / "golden/gpt2-tiny/config.json", "staged", batch=4, seq=16, mesh="pipe=2", microbatches=4))
arenas = [program["arena_bytes"] for program in json.loads(call(["meshwright", "inspect", "staged", "--json"]))["programs"]]
check(arenas[0] != arenas[1], f"the stages have the same arena: {arenas}")
said = call(["meshwright", "run", "-n", 2, "./staged", *flags({"data": "data.bin", "tokens": "u8", "steps": 1})]).splitlines()[0]
check(f"arena up to {max(arenas):,} bytes" in said and printed == max(arenas), f"compile says {printed} of {arenas}, a run {said}")

for config, batch, seq in ((INPUTS / "golden/gpt2-tiny/config.json", 8, 64),
                           (INPUTS / "golden/gpt2-tiny/config.json", 64, 64),
                           (INPUTS / "golden/llama-tiny/config.json", 8, 64),
                           (ROOT / "examples/llama-bytes.json", 16, 64),
                           (ROOT / "examples/gpt2-124m.json", 4, 64),
                           (ROOT / "examples/gpt2-124m.json", 4, 512)):
    for microbatches in (1, 2):
        compile(config, "exec.mlir", batch=batch, seq=seq, microbatches=microbatches, dropout=0, emit="exec")
        head = ir("exec.mlir")
        arena, live = (int(re.search(rf"exec.{name}_bytes = (\d+)", head)[1]) for name in ("arena", "live"))
        name, whole = f"{config.parent.name}/{config.name} {batch}x{seq}/{microbatches}", whole_live("exec.mlir")
        print(f"{name}: arena {arena:,}, live {live:,}, {arena / live - 1:.2%} more; with whole stacks {whole:,}")
        check(live <= whole, f"{name}: {live} bytes are live, with whole stacks {whole}")
        # A slot that a loop has emptied lies inside of its stack, where no other buffer may fit: so some memory beside
        # what is live may be left, as long as sharing slots saves more.
        check(arena <= max(1.02 * live, 0.9 * whole), f"{name}: the arena of {arena} is more than 2% over {live} live bytes")
