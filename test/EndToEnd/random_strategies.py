#!/usr/bin/env python3
"""Trains random models with random combinations of strategies, on threads or MPI, against the same model on one rank: losses,
norms of gradients, losses on evaluation data, and each goes on from the other's checkpoint.

  random_strategies.py WORK FIRST COUNT           seeds FIRST .. FIRST+COUNT-1
  random_strategies.py WORK FIRST COUNT cuda      the many ranks are those of an executable for GPUs; without one in
                                                  the environment of test/Runtime/Cuda/FakeGpu.cpp, as threads
"""
import json
import math
import random
import subprocess
import sys

from harness import INPUTS, check, compile, distance, flags, fresh, ranks_of, train
from random_models import random_config

STEPS, RANKS = 3, 8


def random_mesh(pick):
    while True:
        sizes = {"pipe": pick([1, 1, 2, 3]), "replica": pick([1, 1, 1, 2]), "data": pick([1, 1, 2, 3, 4]),
                 "tensor": pick([1, 1, 2, 3, 4, 5])}
        if 1 < math.prod(sizes.values()) <= RANKS:
            return sizes


def random_strategy(pick):
    """The mesh's sizes, options that go together on it, and the fewest layers they need."""
    sizes = random_mesh(pick)
    data, tensor, pipe = sizes["data"] * sizes["replica"], sizes["tensor"], sizes["pipe"]
    rows, precision = pick([1, 2]), pick(["f32", "f32", "f32", "bf16"])
    square = tensor in (2, 4) and pick([True, False])
    options = {"microbatches": pick([1, 2, 4]), "seq": pick([1, 2, 7, 16, 33]), "optimizer": pick(["adamw", "sgd"]),
               "remat": pick(["none", "full", "selective", "price:100", "every:2", "sqrt"])}
    if square:
        options["tensor_2d"] = True
    elif tensor > 1 and options["seq"] > 1:
        options["sequence_parallel"] = pick([True, False])
    if sizes["data"] > 1:
        options["zero"] = pick([0, 1, 2, 3])
    chunks = pipe
    if pipe > 1:
        schedule = pick(["naive", "gpipe", "1f1b", "interleaved:2", "zb-h1", "zb-h2", "zb-v"])
        options["schedule"] = schedule
        if schedule in ("interleaved:2", "zb-v"):
            chunks = 2 * pipe
        if schedule == "interleaved:2":
            options["microbatches"] = pipe * pick([1, 2])
        elif schedule.startswith("zb"):
            options["microbatches"] = 2 * pipe + pick([-1, 0, 1])
    else:
        if data > 1 and not options.get("zero") and not square and pick([True, False]):
            options["data_sync"] = "parameter-server"
    options["precision"] = precision
    options["collective_algorithm"] = pick(["native", "ring", "doubling"])
    options["collective_matmul"] = pick(["on", "off"])
    options["overlap"] = pick(["on", "off"])
    kept = pick([None, None, "optimizer", "activations", "optimizer,activations"])
    if kept and (options["optimizer"] == "adamw" or precision != "f32" or "optimizer" not in kept):
        options["offload"] = kept
        if "optimizer" in kept:
            options["offload_buffer"] = pick(["256B", "4KiB", "1MiB"])
    options["batch"] = data * options["microbatches"] * pick([1, 2])
    mesh = ",".join(f"{axis}={f'{rows}x{tensor // rows}' if axis == 'tensor' and square else size}" for axis, size in sizes.items() if size > 1)
    return mesh, options, chunks


def try_seed(seed, target):
    pick = random.Random(seed).choice
    config = random_config(pick)
    mesh, options, chunks = random_strategy(pick)
    config["n_layer" if config["model_type"] == "gpt2" else "num_hidden_layers"] = chunks + pick([0, 1, 2])
    json.dump(config, open("config.json", "w"))
    # With this eps AdamW does not make whole steps of gradients that are but rounding errors.
    eps = {"eps": 1e-4} if options["optimizer"] == "adamw" else {}
    run = dict(eps, data=INPUTS / "golden/corpus.txt", tokens="u8", steps=STEPS, lr=1e-3, seed=seed)
    mpi = pick([True, False, False]) and target == "cpu"
    print(f"seed {seed}: {json.dumps(config)} --mesh {mesh} {' '.join(flags(options))}{', MPI' if mpi else ''}", flush=True)

    compile("config.json", "one", **{key: options[key] for key in ("batch", "seq", "optimizer", "precision")})
    compile("config.json", "many", mesh=mesh, target=target, **options)
    ranks = {"one": 1, "many": ranks_of(mesh)}

    def go(exe, metrics, **more):
        return train(f"./{exe}", ranks[exe], mpi=mpi and exe == "many", metrics=f"{seed}-{metrics}.jsonl", **run, **more)

    saved = f"{seed}-{{}}/step-{STEPS - 1:08d}"
    # Three batches and a rest: the drivers for tests take long over more.
    open("eval.bin", "wb").write(run["data"].read_bytes()[-(3 * options["batch"] + 1) * options["seq"] - 2:])
    evaluate = dict(eval_data="eval.bin", eval_every=1, save_every=STEPS - 1)
    want = go("one", "one", save=f"{seed}-one", **evaluate)
    pairs = [(want, go("many", "many", save=f"{seed}-many", **evaluate)),
             (want[-1:], go("one", "one-on", resume=saved.format("many"))),
             (want[-1:], go("many", "many-on", resume=saved.format("one")))]
    loss, norm = (max(distance(have, rows, key) for rows, have in pairs) for key in ("loss", "grad_norm"))
    evaluated = distance(pairs[0][1], want, "eval_loss")
    print(f"  loss {loss:.1e}, grad_norm {norm:.1e}, eval_loss {evaluated:.1e}", flush=True)
    # bf16 rounds sums, whose order is the mesh's.
    return max(loss, norm / 5, evaluated) <= (1e-5 if options["precision"] == "f32" else 2e-2)


def main():
    fresh(sys.argv[1])
    first, count = int(sys.argv[2]), int(sys.argv[3])
    target = sys.argv[4] if len(sys.argv) > 4 else "cpu"
    bad = [seed for seed in range(first, first + count) if not try_seed(seed, target)]
    check(not bad, f"seeds {bad}")


main()
