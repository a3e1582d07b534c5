#!/usr/bin/env python3
"""Flags that would change nothing are refused, by the compiler and by executables; values that ask for nothing are not.

  effects.py CONFIG WORK
"""
import json
import pathlib
import subprocess
import sys

from harness import INPUTS, call, check, compile, flags, fresh

config = pathlib.Path(sys.argv[1]).resolve()
fresh(sys.argv[2])
SIZE = {"batch": 4, "seq": 16}
RUN = {"data": INPUTS / "golden/corpus.txt", "tokens": "u8", "steps": 1, "lr": 0.01}


def refused(command, flag, *words):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60)
    check(done.returncode == 1 and all(word in done.stderr for word in ("error: --" + flag, *words)),
          f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")


# What an executable reads depends on what it was compiled for.
compile(config, "sgd", optimizer="sgd", **SIZE)
compile(config, "adamw", **SIZE)
for exe, flag, value, why in (("sgd", "weight-decay", 0.1, "--optimizer adamw"), ("sgd", "beta1", 0.9, "--optimizer adamw"),
                              ("sgd", "beta2", 0.9, "--optimizer adamw"), ("sgd", "eps", 1e-8, "optimizer is sgd"),
                              ("adamw", "min-lr", 1e-4, "--lr-schedule cosine"), ("adamw", "hysteresis", 2, "--precision fp16"),
                              ("adamw", "initial-loss-scale", 2, "--precision fp16"),
                              ("adamw", "min-loss-scale", 1, "--precision fp16"),
                              ("adamw", "loss-scale-window", 3, "--precision fp16"),
                              ("adamw", "cuda-graphs", "off", "--target cuda"), ("adamw", "tune", "file", "--target cuda")):
    refused([f"./{exe}", *flags(dict(RUN, **{flag: value}))], flag, why)
refused(["./adamw", *flags(dict(RUN, trace="trace", trace_from=1))], "trace-from", "before step 1")
for exe, more in (("sgd", {"weight_decay": 0, "min_lr": 0}), ("adamw", {"min_lr": 0, "weight_decay": 0.1}),
                  ("adamw", {"lr_schedule": "linear", "min_lr": 1e-4}), ("adamw", {"trace": "trace", "trace_from": 0})):
    call([f"./{exe}", *flags(dict(RUN, **more))])
