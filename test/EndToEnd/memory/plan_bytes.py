#!/usr/bin/env python3
"""The bytes of golden models' plans are those of test/Inputs/plan-bytes.txt: plan_bytes.py WORK CONFIG... [--all] [--write]

One strategy for each model, by its name, so that a new model changes no other line. A line has the bytes of the arena, those on the host, those that a rank sends in a step by
collective, and FLOPs. A change that means to change plans runs it with --write and commits what changes. Without --all and --write every fourth model is
compared."""
import collections
import difflib
import json
import pathlib
import subprocess
import sys
import zlib

sys.path.append(sys.path[0] + "/..")
from harness import ROOT, check, flags, fresh, strategy

STRATEGIES = ["one+remat=full", "data=2+zero=3", "tensor=2+sequence-parallel", "pipe=2/2", "data=2,tensor=2+zero=1+precision=bf16",
              "data=2/2+zero=2+offload=optimizer", "tensor=4+loss-parts=2"]

known = ROOT / "test/Inputs/plan-bytes.txt"
configs = sorted(word for word in sys.argv[2:] if not word.startswith("--"))
sample = not {"--all", "--write"} & set(sys.argv)
configs = configs[::4] if sample else configs
fresh(sys.argv[1])
lines = ["# Written by test/EndToEnd/memory/plan_bytes.py --write: bytes of plans, and FLOPs.\n"]
for config in configs:
    name = pathlib.Path(config).parent.name
    model = json.loads(pathlib.Path(config).read_text())
    item = STRATEGIES[zlib.crc32(name.encode()) % len(STRATEGIES)]
    options = strategy(item)
    options["mesh"] = options["mesh"] or None
    masked = ["--mlm", "0.3", "--mask-id", "3"] if model["model_type"] in ("bert", "roberta", "modernbert") else []
    command = ["meshwright", "compile", config, "--batch", "8", "--seq", "8", *masked, *flags(options), "--emit", "exec", "--report", "report", "-o", "exec.mlir"]
    done = subprocess.run(command, capture_output=True, text=True)
    # Microbatches see a part of the batch that a router's loss is of.
    if "the routers' part of the loss is of the whole batch" in done.stderr:
        done = subprocess.run([*command, "--aux-loss", "none"], capture_output=True, text=True)
    if done.returncode:
        # What a family does not support is refused, and stays refused.
        lines.append(f"{name} {item}: {done.stderr.strip().splitlines()[0].split(':', 4)[-1].strip()[:100]}\n")
        continue
    plan = json.loads(pathlib.Path("report/report.json").read_text())
    sent = collections.Counter()
    for row in plan["collectives"]:
        if row["program"] == "step":
            sent[row["op"]] += row["bytes"] * row["times"]
    words = [f"arena {plan['arena_bytes']}", *(f"{space} {bytes_['bytes']}" for space, bytes_ in sorted(plan.get("offloaded", {}).items()) if bytes_),
             *(f"{op} {count}" for op, count in sorted(sent.items())), f"flops {plan['flops']:.0f}"]
    lines.append(f"{name} {item}: {', '.join(words)}\n")
if "--write" in sys.argv:
    known.write_text("".join(lines))
    sys.exit()
before = known.read_text().splitlines(keepends=True) if known.exists() else []
if sample:
    names = {pathlib.Path(config).parent.name for config in configs}
    before = [line for line in before if line.startswith("#") or line.split()[0] in names]
changes = list(difflib.unified_diff(before, lines, str(known.relative_to(ROOT)), "now", n=0))
check(not changes, "plans have other bytes; where that is meant, run plan_bytes.py with --write and commit\n" + "".join(changes))
print(f"{len(lines) - 1} plans have the bytes that they had")
