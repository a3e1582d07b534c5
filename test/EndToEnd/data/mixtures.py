#!/usr/bin/env python3
"""Mixtures are read as their weights say, and resumed to the sample: mixtures.py CONFIG WORK STOPS"""
import json
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/..")
from harness import check, compile, fresh, rows

config, stops = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[3])
fresh(sys.argv[2])
draw = random.Random(5)
SEQ, BATCH, STEPS = 16, 4, 1000
for name, sequences in (("a/one.bin", 30), ("a/two.bin", 17), ("b.bin", 9), ("c.bin", 200)):
    pathlib.Path(name).parent.mkdir(exist_ok=True)
    pathlib.Path(name).write_bytes(bytes(draw.randrange(256) for _ in range(sequences * SEQ + 1)))
compile(config, "one", batch=BATCH, seq=SEQ)
compile(config, "two", batch=BATCH, seq=SEQ, mesh="data=2")
MIXTURE = ["--data", "a:5", "--data", "b.bin:2", "--data", "c.bin:3"]


def command(exe, *words, mixture=MIXTURE):
    ranks = ["--ranks", "2"] if exe == "two" else []
    return [f"./{exe}", *ranks, *mixture, "--tokens", "u8", "--lr", "1e-3", *map(str, words)]


def run(*words, exe="one", mixture=MIXTURE):
    done = subprocess.run(command(exe, *words, mixture=mixture), capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, f"{words}: {done.stderr}")
    return done.stdout + done.stderr


def samples(path):
    """By step: names of files and sequences."""
    files, steps = [], {}
    for line in map(json.loads, open(path)):
        if "files" in line:
            files = line["files"]
        else:
            steps[line["step"]] = [(files[file], sequence) for file, sequence in line["samples"]]
    return steps


said = run("--steps", STEPS, "--metrics", "whole.jsonl", "--log-samples", "whole.samples")
whole, losses = samples("whole.samples"), rows("whole.jsonl")
check("data shuffled, 50.0% a, 20.0% b.bin and 30.0% c.bin" in said, said)
check("data: a 50.0% (42.55 epochs), b.bin 20.0% (88.89 epochs), c.bin 30.0% (6.00 epochs)" in said, said)
check(sorted(whole) == list(range(STEPS)) and all(len(step) == BATCH for step in whole.values()), "each step has its samples")
flat = [sample for step in range(STEPS) for sample in whole[step]]
for part, share in (("a/", 0.5), ("b.bin", 0.2), ("c.bin", 0.3)):
    for n in (10, 37, len(flat)):
        check(abs(sum(file.startswith(part) for file, _ in flat[:n]) - share * n) <= 1.5, f"{part} among the first {n}")
ofA = [sample for sample in flat if sample[0].startswith("a/")]
check(len(set(ofA[:47])) == 47 and set(ofA[47:94]) == set(ofA[:47]) and ofA[47:94] != ofA[:47], "an epoch of a source has each of its sequences")

# Two ranks read the same, and so does a run that is stopped anywhere and goes on, on either.
run("--steps", STEPS, "--log-samples", "two.samples", exe="two")
check(samples("two.samples") == whole, "two ranks read other samples")
exe, begun, reached = "one", 0, []
words = ["--steps", STEPS, "--save", "run", "--resume", "auto", "--metrics", "cut.jsonl", "--log-samples", "cut.samples"]
for stop in range(stops):
    process = subprocess.Popen(command(exe, *words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(draw.uniform(0.02, 0.25))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    latest = pathlib.Path("run/latest")
    step = int(latest.resolve().name[5:]) if latest.exists() else 0
    reached.append(step)
    if step == STEPS:
        subprocess.run(["rm", "-rf", "run", "cut.jsonl", "cut.samples"], check=True)
    exe = draw.choice(("one", "two"))
run(*words, exe=exe)
check(samples("cut.samples") == whole, "a run that was stopped reads other samples")
have = rows("cut.jsonl")
check([row["step"] for row in have] == list(range(STEPS)), "each step has its line")
check(max(abs(a["loss"] - b["loss"]) for a, b in zip(have, losses)) < 1e-5, "a run that was stopped has other losses")
print(f"{stops} stops, after steps {reached}")

# One file is read in order, folders and several files are shuffled, unless they are told otherwise.
for mixture, words, order in ((["--data", "c.bin"], [], "in file order"), (["--data", "a"], [], "shuffled"), (["--data", "a"], ["--no-shuffle"], "in file order"),
                              (["--data", "c.bin"], ["--shuffle"], "shuffled"), (["--data", "b.bin", "--data", "c.bin"], [], "shuffled")):
    said = run("--steps", 1, *words, mixture=mixture)
    check(f"data {order}\n" in said, f"{mixture} {words}: {said}")

# Other weights begin another mixture, which is said.
subprocess.run(["rm", "-rf", "run"], check=True)
run("--steps", 4, "--save", "run")
said = run("--steps", 6, "--resume", "run", mixture=["--data", "a:1", "--data", "c.bin:1"])
check("the sources or their weights differ from those of the checkpoint" in said and "a after 8 sequences, c.bin after 5 sequences" in said, said)

for mixture, words, why in (
        (["--data", "a:0"], [], "--data a:0: the weight \"0\" is not a number above 0: leave the source out"),
        (["--data", "a:-1"], [], "is not a number above 0"),
        (["--data", "a:nan"], [], "is not a number above 0"),
        (["--data", "a:much"], [], "write --data PATH:WEIGHT, such as a:0.3"),
        (["--data", "a:1", "--data", "b.bin"], [], "--data b.bin has no weight, but --data a has one"),
        (["--data", "a:1", "--data", "b.bin:1e-12"], [], "is less than a billionth"),
        (["--data", "a"], ["--shuffle", "--no-shuffle"], "are both given"),
        (["--data", "none:3"], [], "cannot open it"),
        (["--data", "n*e:3"], [], "there is no file of such a name"),
        (["--data", "a:1"], ["--resume", "run", "--no-shuffle"], "was trained on shuffled data")):
    done = subprocess.run(command("one", "--steps", 8, *words, mixture=mixture), capture_output=True, text=True, timeout=60)
    check(done.returncode == 1 and why in done.stderr, f"{mixture} {words}: {done.returncode} {done.stderr}")
