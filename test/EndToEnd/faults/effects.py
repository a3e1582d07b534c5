#!/usr/bin/env python3
"""Flags that would change nothing are refused, by the compiler and by executables; values that ask for nothing are not.

  effects.py CONFIG WORK
"""
import json
import pathlib
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
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
compile(config, "narrow", moments_dtype="bf16", **SIZE)
compile(config, "signs", grad_compression="onebit,blocks=2", **SIZE)
for exe, flag, value, why in (("sgd", "weight-decay", 0.1, "sgd decays no parameters"), ("narrow", "beta2", 0.999, "0.99 or less"),
                              ("signs", "grad-clip", 1, "signs alone"), ("sgd", "freeze-variance", 3, "with a second moment"),
                              ("adamw", "min-lr", 1e-4, "--lr-schedule cosine"),
                              ("adamw", "decay-fraction", 0.5, "--lr-schedule wsd"), ("adamw", "decay-shape", "cosine", "--lr-schedule wsd"),
                              ("adamw", "lr-milestones", "1", "--lr-schedule multi-step"), ("adamw", "lr-gamma", 0.5, "--lr-schedule multi-step"),
                              ("adamw", "reschedule", True, "begins anew"), ("adamw", "batch-ramp", "2+2:8", "compile with --batch-ramp"), ("adamw", "hysteresis", 2, "--precision fp16"),
                              ("adamw", "initial-loss-scale", 2, "--precision fp16"),
                              ("adamw", "min-loss-scale", 1, "--precision fp16"),
                              ("adamw", "loss-scale-window", 3, "--precision fp16"),
                              ("adamw", "reference-log-probs", "file", "compiled with --loss dpo"),
                              ("adamw", "idle-expert-steps", 3, "mixture-of-experts models"),
                              ("adamw", "expert-loads", "file", "compile with --redundant-experts"),
                              ("adamw", "place-experts-every", 3, "compile with --redundant-experts"),
                              ("adamw", "check-replicas", 1, "this executable has one rank"), ("adamw", "stragglers", 1, "no two ranks of this executable do"), ("adamw", "cuda-graphs", "off", "--target cuda"), ("adamw", "buddy", "memory", "needs --save"), ("adamw", "ssd", ".", "keeps nothing there"), ("adamw", "tune", "file", "--target cuda")):
    refused([f"./{exe}", *flags(dict(RUN, **{flag: value}))], flag, why)
refused(["./adamw", *flags(dict(RUN, metrics="m.jsonl", expert_tokens_every=1))], "expert-tokens-every", "mixture-of-experts models")
refused(["./adamw", *flags(dict(RUN, expert_tokens_every=1))], "expert-tokens-every", "--metrics")
refused(["./adamw", *flags(dict(RUN, trace="trace", trace_from=1))], "trace-from", "before step 1")
for exe, more in (("sgd", {"weight_decay": 0, "min_lr": 0}), ("adamw", {"min_lr": 0, "weight_decay": 0.1}),
                  ("narrow", {"beta2": 0.99}), ("adamw", {"lr_schedule": "linear", "min_lr": 1e-4}), ("adamw", {"trace": "trace", "trace_from": 0})):
    call([f"./{exe}", *flags(dict(RUN, **more))])

# What the compiler does depends on its other flags.
TWO = {"mesh": "data=2"}
for flag, value, why, more in (("gpu-arch", "sm_80", "--target cuda", {}), ("attention", "auto", "--target cuda", {}),
                               ("epilogues", "none", "--target cuda", {}), ("deterministic", "on", "--target cuda", {}),
                               ("deterministic", "on", "same bits", {"target": "cuda", "attention": "generated"}),
                               ("cpu", "x86-64", "--target cpu", {"target": "cuda"}),
                               ("dpo-beta", 0.2, "it is the beta of --loss dpo", {}),
                               ("loss-parts", 2, "more --microbatches", {"loss": "dpo"}),
                               ("batch-ramp", True, "give --microbatches M", {}),
                               ("batch-ramp", True, "a mesh without the axis `pipe`", {"microbatches": 2, "mesh": "pipe=2"}),
                               ("offload-buffer", "1MiB", "--offload optimizer", {"offload": "activations"}),
                               ("moments-dtype", "bf16", "keeps no moments", {"optimizer": "sgd"}),
                               ("moments-dtype", "bf16", "keeps its averages in f32", {"optimizer": "adafactor"}),
                               ("moments-dtype", "bf16", "stores its moments in 8 bits", {"optimizer": "adamw-8bit"}),
                               ("moments-dtype", "bf16", "which bf16 would round away", {"optimizer": "schedule-free-adamw"}),
                               ("fp8-recipe", "tensor", "scales the products of --precision fp8", {"precision": "bf16"}),
                               ("frozen-weights", "int8", "give --lora", {"freeze": "*wte*"}),
                               ("masters", "halves", "reads master weights twice", {"optimizer": "schedule-free-adamw", "precision": "bf16"}),
                               ("muon-scale", "keller", "orthogonalizes nothing", {}),
                               ("eval-ema", True, "there are no averages", {}),
                               ("eval-ema", True, "parameters that they serve", {"ema": True, "mesh": "data=2", "data-sync": "parameter-server"}),
                               ("eval-ema", True, "keeps averages off the device", {"ema": True, "offload": "optimizer"}),
                               ("muon-coefficients", "polar-express", "orthogonalizes nothing", {"optimizer": "lion"}),
                               ("masters", "whole", "the master weights of --precision bf16 and fp8 only", {}),
                               ("masters", "halves", "--replay needs --masters whole", {"precision": "bf16", "replay": True}),
                               ("context-balance", "zigzag", "--context-parallel gather, ring and hybrid, which divide queries", {"mesh": "data=2"}),
                               ("context-balance", "striped", "--context-parallel gather, ring and hybrid, which divide queries", {"mesh": "data=2"}),
                               ("memory-limit", "1GiB", "names the bytes already", {"remat": "auto:1GiB"}),
                               ("collective-algorithm", "ring", "no collectives", {}),
                               ("grad-reduce-dtype", "bf16", "no collectives", {}),
                               ("grad-compression", "powersgd:1", "one data-parallel rank, which sends no gradients", {}),
                               ("collective-matmul", "on", "no collectives", {"mesh": "data=1"}),
                               ("overlap", "on", "no collectives", {})):
    refused(["meshwright", "compile", config, "-o", "out.mlir", *flags(dict(SIZE, emit="exec", **{flag: value}, **more))],
            f"{flag}{'' if value is True else f' {value}'} changes nothing", why)
# Defaults, and what asks for nothing.
compile(config, "out.mlir", emit="exec", collective_algorithm="native", collective_matmul="off", overlap="off",
        schedule="1f1b", zero=0, data_sync="all-reduce", remat="none", grad_dtype="f32", grad_reduce_dtype="grad-dtype", grad_compression="none", **SIZE)
compile(config, "out.mlir", emit="exec", collective_algorithm="ring", collective_matmul="on", overlap="on", **TWO, **SIZE)

# IR holds what was decided: a flag that would decide it again is refused.
DECIDED = {"train": {"mup-base": config, "dropout": 0, "batch-ramp": True},
           "step": {"cuts": "1", "grad-compression": "powersgd:1", "residuals": "written", "moments-dtype": "bf16", "optimizer-groups": "*:lr=1"},
           "dist": {"zero": 0, "data-sync": "all-reduce", "sequence-parallel": True, "explain-sharding": "tokens", "grad-reduce-dtype": "bf16"},
           "stages": {"remat": "none"},
           "schedule": {"schedule": "1f1b", "collective-algorithm": "ring", "collective-matmul": "on"},
           "exec": {"overlap": "on", "replay": True, "masters": "whole", "offload": "optimizer", "target": "cuda"}}
for stage, decided in DECIDED.items():
    compile(config, f"{stage}.mlir", emit=stage, mesh="pipe=2", **SIZE)
    for flag, value in decided.items():
        refused(["meshwright", "compile", f"{stage}.mlir", "-o", "out", *flags({flag: value})], flag, "cannot change")
# Nor can IR of floor 3 for GPUs become a program for processors because nothing was said.
compile(config, "cuda.mlir", emit="exec", target="cuda", **SIZE)
refused(["meshwright", "compile", "cuda.mlir", "-o", "out"], "target cpu cannot change", "give --target cuda")
