#!/usr/bin/env python3
"""Interprets a model's training step before and after it is placed on meshes, in float64.

  strategies.py CONFIG WORK BATCH SEQ MICROBATCHES[/FLAG=VALUE]...  STRATEGY...

FLAG: one of the compiler's, as in 2/dropout=0.2/packed.
A strategy is the options of dist-apply-strategy joined by +, e.g. data=2,tensor=2+zero=3+sequence-parallel, and
perhaps remat=POLICY and row-bytes=N of dist-pad. Without a mesh, none: one device.
Both @step and @eval must compute what they computed on one device.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "EndToEnd"))
from harness import call, compile, fresh, ranks_of

config, work, batch, sequence, microbatches, *strategies = sys.argv[1:]
fresh(work)

microbatches, *given = microbatches.split("/")
flags = {flag: value or True for flag, _, value in (word.partition("=") for word in given)}
compile(config, "step.mlir", batch=batch, seq=sequence, microbatches=microbatches, emit="step", **flags)
for strategy in strategies:
    mesh, *options = strategy.split("+")
    remat = [option.removeprefix("remat=") for option in options if option.startswith("remat=")] or ["none"]
    options = [option for option in options if not option.startswith("remat=")]
    rows = [option for option in options if option.startswith("row-bytes=")]
    options = [option for option in options if option not in rows]
    balance = "".join(f"={option}" for option in options if option.startswith("context-balance="))
    options = [option for option in options if f"={option}" != balance]
    options = [f"mesh={mesh}"] + [option if "=" in option else option + "=true" for option in options]
    call(["meshwright-opt", "step.mlir", f"--dist-apply-strategy={' '.join(options)}", "--dist-split-reductions",
          "--dist-pad" + "".join("=" + row for row in rows), "--dist-propagate",
          "--dist-verify", "--dist-partition", f"--dist-ring-attention{balance}", f"--dist-balance-attention{balance}", "--canonicalize",
          f"--dist-rematerialize=policy={'+'.join(remat)}", "--dist-optimize-collectives", "--dist-verify-communication", "-o", "local.mlir"])
    for function in ("step", "eval"):
        said = call(["meshwright-interpret", "--compare", "step.mlir", "local.mlir", "--function", function, "--ranks",
                     ranks_of(mesh)])
        print(f"{strategy}: {said.strip()}", flush=True)
