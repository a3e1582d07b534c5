#!/usr/bin/env python3
"""Interprets a model's training step before and after it is placed on meshes, in float64.

  strategies.py CONFIG WORK BATCH SEQ MICROBATCHES[/DROPOUT]  STRATEGY...

A strategy is the options of dist-apply-strategy joined by +, e.g. data=2,tensor=2+zero=3+sequence-parallel.
Both @step and @eval must compute what they computed on one device.
"""
import os
import subprocess
import sys

config, work, batch, sequence, microbatches, *strategies = sys.argv[1:]
os.makedirs(work, exist_ok=True)
os.chdir(work)


def call(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"FAILED: {' '.join(command)}\n{done.stdout[:4000]}")
    return done.stdout


microbatches, _, dropout = microbatches.partition("/")
call("meshwright", "compile", config, "--batch", batch, "--seq", sequence, "--microbatches", microbatches,
     *(["--dropout", dropout] if dropout else []), "--emit", "step", "-o", "step.mlir")
for strategy in strategies:
    mesh, *options = strategy.split("+")
    options = [f"mesh={mesh}"] + [option if "=" in option else option + "=true" for option in options]
    call("meshwright-opt", "step.mlir", f"--dist-apply-strategy={' '.join(options)}", "--dist-propagate", "--dist-verify",
         "--dist-partition", "--canonicalize", "--dist-optimize-collectives", "--dist-verify-communication", "-o", "local.mlir")
    ranks = 1
    for size in mesh.replace("x", ",x=").split(","):
        ranks *= int(size.split("=")[1])
    for function in ("step", "eval"):
        said = call("meshwright-interpret", "--compare", "step.mlir", "local.mlir", "--function", function, "--ranks", str(ranks))
        print(f"{strategy}: {said.strip()}", flush=True)
