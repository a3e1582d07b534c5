#!/usr/bin/env python3
"""Plans of models that no test could run: how tight they are, and what it takes to make them.

  plans.py WORK
"""
import json
import math
import os
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/..")
from harness import ROOT, check, flags, fresh

fresh(sys.argv[1])
SECONDS, BYTES = 60, 4 << 30
EIGHT_B, SEVENTY_B, LARGEST = (ROOT / f"examples/llama3-{size}.json" for size in ("8b", "70b", "405b"))
staged = dict(precision="bf16", seq=4096, microbatches=8, remat="selective")


def plan(config, **options):
    """The report; seconds and bytes resident at most of the compiler."""
    command = ["meshwright", "compile", config, *flags(dict(options, emit="exec", output="exec.mlir", report="report"))]
    begin = time.monotonic()
    process = subprocess.Popen([str(word) for word in command])
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    check(process.returncode == 0, f"{command} exits with {process.returncode}")
    return json.load(open("report/report.json")), seconds, used.ru_maxrss * 1024


# Each program's arena is what lives at its fullest moment, but for alignment and what offsets cannot avoid.
for name, config, options in (
        ("GPT-2 124M", ROOT / "examples/gpt2-124m.json", dict(batch=4, seq=1024)),
        ("GPT-2 124M", ROOT / "examples/gpt2-124m.json", dict(batch=8, seq=1024, microbatches=2, precision="bf16")),
        ("Llama 3 8B", EIGHT_B, dict(seq=4096, precision="bf16")),
        ("Llama 3 8B", EIGHT_B, dict(mesh="data=8", zero=3, seq=4096, precision="bf16")),
        ("Llama 3 8B", EIGHT_B, dict(mesh="data=8", zero=3, seq=4096, precision="bf16", remat="full", microbatches=2)),
        ("Llama 3 70B", SEVENTY_B, dict(staged, mesh="pipe=4")),
        ("Llama 3 70B", SEVENTY_B, dict(staged, mesh="pipe=4,tensor=8")),
        ("Llama 3 70B", SEVENTY_B, dict(staged, mesh="pipe=4,tensor=8", sequence_parallel=True, schedule="zb-h1", remat="every:4"))):
    report, seconds, _ = plan(config, **options)
    words = " ".join(map(str, flags(options)))
    for program in report["programs"]:
        arena, live = program["arena_bytes"], program["live_bytes"]
        print(f"{name} {words} {program['name']}: arena {arena:,}, live {live:,}, {arena / live - 1:.3%} more")
        check(live <= arena <= 1.02 * live, f"{name} {words}: the arena of {arena} is more than 2% over {live} live bytes")

# What a device has does not depend on how many there are along data, and stages of 1F1B need less the later they are.
report, seconds, resident = plan(LARGEST, mesh="pipe=16,data=128,tensor=8", precision="bf16", seq=8192, microbatches=32,
                                 batch=128 * 32, zero=1, sequence_parallel=True, schedule="1f1b", remat="selective")
arenas = [program["arena_bytes"] for program in report["programs"]]
print(f"Llama 3 405B on {16 * 128 * 8} devices: {seconds:.1f} s, {resident / 2**20:.0f} MiB; the stages need "
      f"{' '.join(f'{arena / 2**30:.1f}' for arena in arenas)} GiB")
check(len(arenas) == 16, f"{len(arenas)} programs")
check(arenas[1] > arenas[8] > arenas[14], "a stage that holds more microbatches needs no more")
# A step of it is more operations than 64 bits count: two for each parameter, token and product, of which there are three, and attention.
tokens = 128 * 32 * 8192
parameters = sum(math.prod(v["shape"]) for v in report["variables"] if v["role"] == "parameter")
check(6 * parameters * tokens > 2**64, f"{parameters} parameters and {tokens} tokens are too few to tell")
check(1 <= report["flops"] / (6 * parameters * tokens) <= 1.3, f"{report['flops']} operations for {parameters} parameters and {tokens} tokens")
check(abs(sum(program["flops"] for program in report["programs"]) / report["flops"] - 1) < 1e-12, "the stages' operations do not add up")
page = open("report/index.html").read()
for count in (report["flops"], report["recomputed_flops"], *(program["flops"] for program in report["programs"])):
    check(f'title="{count:,.0f}' in page or f">{count:,.0f}" in page, f"the page does not say {count:,.0f} operations")
check(all(row["bytes"] >= row["rank_bytes"] >= 0 for row in report["communication"]), f"{report['communication']}")
check(seconds <= SECONDS, f"{seconds:.1f} s, allowed are {SECONDS}")
check(resident <= BYTES, f"{resident} bytes resident, allowed are {BYTES}")
