#!/usr/bin/env python3
"""A run that stops and goes on is the run that does not stop.

  resume.py GOLDEN WORK [FLAG=VALUE...]     flags for the compiler, e.g. dropout=0.1
"""
import filecmp
import json
import os
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from compare import read_safetensors
from harness import Golden, call, check, compile, distance, flags, fresh, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
size = dict(golden.size, **dict(flag.split("=", 1) for flag in sys.argv[3:]))
compile(golden.config, "two", mesh="data=2", **size)
compile(golden.config, "one", microbatches=2, **size)
run = dict(golden.run, lr_schedule="cosine", warmup=5, shuffle=True, seed=3)
del run["init"]

whole = train("./two", 2, metrics="whole.jsonl", save="whole", **dict(run, steps=20))
check(len(whole) == 20 and whole[-1]["loss"] < whole[0]["loss"], "20 steps with a falling loss")

# The schedule's end is --steps, so the half is cut from a run of 20 steps by its checkpoint at step 10.
train("./two", 2, metrics="parts.jsonl", save="parts", save_every=10, **dict(run, steps=20))
resumed = train("./two", 2, metrics="parts.jsonl", save="resumed", resume="parts/step-00000010", **dict(run, steps=20))
check(resumed == whole, "the metrics of 10 steps and 10 resumed ones differ from those of 20")
for file in ("model.safetensors", "optimizer.safetensors"):
    check(filecmp.cmp(f"resumed/latest/{file}", f"whole/latest/{file}", shallow=False), f"{file} differs in a bit")
mpi = train("./two", 2, mpi=True, metrics="mpi.jsonl", resume="parts/step-00000010", **dict(run, steps=20))
check(mpi == whole[10:], "the steps resumed under MPI differ")

# What is left out is the checkpoint's: the steps, where the cosine ends, the rate, the warm-up.
bare = train("./two", 2, metrics="bare.jsonl", resume="parts/step-00000010", **golden.data)
check(bare == whole[10:], "the steps resumed without flags differ")
# What is given and differs is said.
longer = ["meshwright", "run", "-n", 2, "./two", *flags(dict(golden.data, resume="parts/step-00000010", steps=30, lr=0.25))]
said = call([*longer, "--reschedule"])
check(f"note: --steps 30, was 20, where cosine ends; --lr 0.25, was {run['lr']}\n" in said, f"no note of changed flags in\n{said}")

# The end of a schedule moves only if that is asked for.
done = subprocess.run(list(map(str, longer)), capture_output=True, text=True, timeout=60)
check(done.returncode != 0 and "cosine, ends at step 20" in done.stderr and "add --reschedule" in done.stderr, done.stderr)

# On another mesh only the order of sums changes.
other = train("./one", 1, metrics="other.jsonl", resume="parts/step-00000010", **dict(run, steps=20))
check(distance(other, whole[10:]) <= 1e-5, f"resumed on another mesh: {distance(other, whole[10:])}")

# What is saved is a model of its family: same names, same shapes, same configuration.
saved, expected = read_safetensors("whole/latest/model.safetensors"), read_safetensors(golden.weights)
check({k: v[0] for k, v in saved.items()} == {k: v[0] for k, v in expected.items()}, "names or shapes differ")
head = open("whole/latest/model.safetensors", "rb").read(100_000)
for name in json.load(open(golden.directory / "golden.json"))["final_norm"]:
    check(f'"{name}"'.encode() in head, f"{name} is not in the file under this very name")
check(json.load(open("whole/latest/config.json")) == json.load(open(golden.config)), "config.json differs")
check(os.readlink("parts/latest") == "step-00000020", "latest is not the newest")

# And it can start another run.
train("./one", 1, init="whole/latest/model.safetensors", save="again", **dict(run, steps=0))
check(filecmp.cmp("again/latest/model.safetensors", "whole/latest/model.safetensors", shallow=False), "--init")

# The loss on other data, twice, without a change to the training.
evaluated = train("./two", 2, metrics="eval.jsonl", eval_data=golden.data["data"], eval_every=4, **dict(run, steps=20))
losses = [row.pop("eval_loss", None) for row in evaluated]
for row in evaluated:
    row.pop("eval_bits_per_byte", None)
check(evaluated == whole, "evaluation changes the training")
check([i for i, loss in enumerate(losses) if loss is not None] == [3, 7, 11, 15, 19], "evaluated at other steps")
check(losses[19] < losses[3] < 7, "the loss on evaluation data does not fall")
print(f"loss {whole[0]['loss']:.3f} -> {whole[-1]['loss']:.3f}, evaluated {losses[3]:.3f} -> {losses[19]:.3f}")
