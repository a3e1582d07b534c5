#!/usr/bin/env python3
"""Trains random models of all families on random meshes against the interpreter in f64.

  random_models.py WORK FIRST COUNT      seeds FIRST .. FIRST+COUNT-1

Random sizes make some gradients small differences of large numbers: theirs is a wider tolerance than that of the
golden runs. Some models change by more than that if weights change by the last bit of an f32: what the interpreter makes
of such weights says how much.
"""
import array
import json
import random
import re
import struct
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from compare import momentum_error
from harness import INPUTS, call, check, compile, distance, flags, fresh, ranks_of, train
from random_configs import APART, FAMILIES, PAIRED, RECURRENT, UNDRAWN, random_config, task_of

STEPS = 3


def pairs_of(pick, size):
    """Files of sources and targets of random lengths, some longer than what is read, or of none that is shorter."""
    text, files = (INPUTS / "golden/corpus.txt").read_bytes(), {}
    if pick([True, False]):
        for part, length in (("source", size["source_seq"]), ("data", size["seq"])):
            open(f"{part}.bin", "wb").write(text[:60 * length])
        return dict(source="source.bin", data="data.bin")
    for part, length in (("source", size["source_seq"]), ("data", size["seq"])):
        starts, at = [], 0
        for _ in range(60):
            starts.append(at)
            at += pick(range(1, length + 3))
        open(f"{part}.bin", "wb").write(text[:at])
        open(f"{part}-starts.bin", "wb").write(struct.pack("<60Q", *starts))
        files |= {part: f"{part}.bin", "source_documents" if part == "source" else "documents": f"{part}-starts.bin"}
    return files


def judge(weights, run, gradients, name):
    """What steps of the interpreter say."""
    command = ["meshwright-interpret", "step.mlir", "--gradients-out", gradients, "--train", *map(str, flags(dict(run, init=weights)))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, f"{name}\n{done.stderr[:1000]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def move_last_bits(source, destination):
    """Weights of which each is the number after, or before, or as it was."""
    data = open(source, "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    del header["__metadata__"]  # Checksums of the values.
    bits, choice = array.array("i", data[8 + size:]), random.Random(0).choice
    moved = array.array("i", (value + choice((-1, 0, 1)) if value & 0x7FFFFFFF else value for value in bits))
    text = json.dumps(header).encode()
    open(destination, "wb").write(struct.pack("<Q", len(text)) + text + moved.tobytes())


def try_seed(seed):
    pick = random.Random(seed).choice
    # Every fourth is one of an encoder and a decoder.
    config = random_config(pick, family=pick(list(PAIRED)) if seed % 4 == 3 else None)
    json.dump(config, open("config.json", "w"))
    mesh, microbatches = pick([("", 1), ("", 3), ("data=2", 1), ("data=2", 2), ("data=3", 1), ("replica=2,data=2", 1)])
    parts = ranks_of(mesh) * microbatches
    size = dict(task_of(config), batch=parts * pick([1, 2, 3]), seq=pick([1, 2, 7, 16, 33, 48]))
    data = dict(data=INPUTS / "golden/corpus.txt", tokens="u8")
    if config["model_type"] in PAIRED:
        size["source_seq"] = pick([1, 2, 9, 16, 40])
        data |= pairs_of(pick, size)
    # With this eps AdamW does not make whole steps of gradients that are but rounding errors.
    run = dict(data, steps=STEPS, lr=1e-3, eps=1e-4)
    name = f"seed {seed}: {json.dumps(config)} --mesh '{mesh}' --microbatches {microbatches} {size}"

    ranks = ranks_of(mesh)
    compile("config.json", "adamw", mesh=mesh, microbatches=microbatches, **size)
    train("./adamw", ranks, save="start", steps=0, seed=seed, **data)
    weights = "start/latest/model.safetensors"
    have = train("./adamw", ranks, init=weights, **run)
    compile("config.json", "train.mlir", emit="train", **size)
    # Not `--emit step`, which keeps nothing that a step does not call: the interpreter takes its gradients there.
    call(["meshwright-opt", "train.mlir", "--train-autodiff", "--train-accumulate", "--train-build-optimizer", "-o",
          "step.mlir"])
    want = judge(weights, run, "gradients.safetensors", name)
    loss, norm = distance(have, want), distance(have, want, "grad_norm")
    train("./adamw", ranks, save="first", **dict(run, init=weights, beta1=0.9, grad_clip=0, steps=1))
    error, where = momentum_error("first/latest/optimizer.safetensors", "gradients.safetensors", 0.9, least=1e-2)
    print(f"{name}\n  loss {loss:.1e}, grad_norm {norm:.1e}, gradients {error:.1e} at {where}")
    sys.stdout.flush()
    allowed = {"loss": 1e-5, "grad_norm": 5e-5}
    if loss > allowed["loss"] or norm > allowed["grad_norm"]:
        move_last_bits(weights, "moved.safetensors")
        moved = judge("moved.safetensors", run, "moved-gradients.safetensors", name)
        allowed = {key: max(most, distance(moved, want, key)) for key, most in allowed.items()}
        print(f"  the last bits of weights change {', '.join(f'{key} by {most:.1e}' for key, most in allowed.items())}")
    return loss <= allowed["loss"] and norm <= allowed["grad_norm"] and error <= 1e-4


def check_families():
    """Every family that the compiler has is drawn, or listed as one that is not, and no other."""
    listed = re.findall(r"^([\w-]+)(?: with(?:out)? \w+(?: true| false)?)*\n  judge", call(["meshwright", "models"]), re.M)
    known = set(FAMILIES | RECURRENT | PAIRED | APART) | UNDRAWN
    check(set(listed) == known, f"not in random_configs.py, or not of the compiler: {set(listed) ^ known}")


def main():
    check_families()
    fresh(sys.argv[1])
    first, count = int(sys.argv[2]), int(sys.argv[3])
    bad = [seed for seed in range(first, first + count) if not try_seed(seed)]
    check(not bad, f"seeds {bad}")


if __name__ == "__main__":
    main()
