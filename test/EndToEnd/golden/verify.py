#!/usr/bin/env python3
"""meshwright verify of golden models, each on strategies in turn: verify.py WORK FIRST COUNT CONFIG...

Strategies FIRST .. FIRST+COUNT-1 of the list below for the first model, the next ones for the second, and so on."""
import json
import pathlib
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import check, flags, fresh, strategy

STRATEGIES = [
    "data=2+zero=3", "tensor=2+sequence-parallel", "pipe=2/4", "context=2,data=2", "data=2,tensor=2+zero=1+precision=bf16",
    "data=2/2+precision=fp16+zero=2", "pipe=2,tensor=2/4+schedule=zb-h1", "tensor=2x2+tensor-2d", "data=4/2+zero=2+remat=full",
    "context=4+context-parallel=gather", "pipe=4/8+schedule=1f1b", "replica=2,data=2+zero=3", "data=2+optimizer=lion",
    "tensor=4+optimizer=muon", "data=2,pipe=2/2+zero=1+optimizer=sgd-momentum", "data=2,tensor=2,pipe=2/2+remat=selective",
    "tensor=3", "pipe=2/4+schedule=interleaved:2", "data=2+offload=optimizer+zero=1", "data=2+optimizer=adafactor",
]

work, first, count, configs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
fresh(work)
proven = refused = 0
for number, config in enumerate(configs):
    model = json.loads(pathlib.Path(config).read_text())
    masked = ["--mlm", "0.3", "--mask-id", "3"] if model["model_type"] in ("bert", "roberta", "modernbert") else []
    for item in range(first + number * count, first + (number + 1) * count):
        options = strategy(STRATEGIES[item % len(STRATEGIES)])
        options["mesh"] = options["mesh"] or None
        # Microbatches see a part of the batch that a router's loss is of.
        if model.get("router_aux_loss_coef") or model.get("output_router_logits"):
            options["aux_loss"] = "none"
        command = ["meshwright", "verify", config, *masked, *flags(options)]
        done = subprocess.run(command, capture_output=True, text=True)
        name = f"{pathlib.Path(config).parent.name} {STRATEGIES[item % len(STRATEGIES)]}"
        if done.returncode == 2:
            # The compiler refuses the strategy for this model, as docs/limits.md says.
            check("meshwright: error: " in done.stderr, f"{name}: {done.stderr}")
            print(f"{name}: refused: {done.stderr.strip().splitlines()[0][:160]}")
            refused += 1
            continue
        check(done.returncode == 0, f"{name}: {done.stdout}{done.stderr}")
        check("quantities agree with the sequential program in float64" in done.stdout, f"{name}: {done.stdout}")
        proven += 1
print(f"{proven} agree, {refused} refused")
check(proven > 2 * refused, "most strategies run")
