#!/usr/bin/env python3
"""A step that is not finite changes nothing, and --on-nan says how the run goes on:

  on_nan.py WORK [STRATEGY...]

The model is examples/parallel-block.mlir with a head of its own, in which the embedding of one byte is so large that a batch with it
overflows. Runs that meet such batches are compared, bit by bit, with runs on data without them.
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import ROOT, call, changed, check, compile, flags, fresh, ranks_of, rows, strategy

BATCH, SEQ, BAD = 16, 64, 255
# Finite, but not eleven times as large.
POISON = {"fp16": 6e4}


def model():
    """The example, whose logits no longer multiply the embeddings."""
    text = (ROOT / "examples/parallel-block.mlir").read_text()
    head = '  train.variable @head.weight : tensor<256x128xf32> init <"normal", 0.02> storage <"head.weight">\n'
    for old, new in (("  train.variable @norm.weight", head + "  train.variable @norm.weight"),
                     ("%logits = train.linear %n, %embed",
                      "%head = train.get @head.weight : tensor<256x128xf32>\n    %logits = train.linear %n, %head")):
        check(text.count(old) == 1, f"'{old}' is there {text.count(old)} times")
        text = text.replace(old, new)
    pathlib.Path("model.mlir").write_text(text)


def batches(count, bad=(), seed=1):
    """Batches of bytes below 200; those numbered in `bad` have one that overflows. All begin with the same byte, the last
    target of the batch before."""
    drawn, result = random.Random(seed), []
    for number in range(count):
        batch = bytearray(drawn.choices(range(200), k=BATCH * SEQ))
        batch[0] = 0
        if number in bad:
            batch[7 * SEQ + 3] = BAD
        result.append(bytes(batch))
    return result


def write(path, parts):
    pathlib.Path(path).write_bytes(b"".join(parts) + b"\0")  # the last target


def run(ranks, **options):
    """What the run says on standard error, and how it ended."""
    given = dict(BASE, **options)
    if given.get("resume"):  # whose checkpoint has weights and the scale
        given.update(init=None, initial_loss_scale=None)
    command = ["meshwright", "run", "-n", ranks, "./exe", *flags(given)]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    return done.stderr, done.returncode


def losses(path):
    return [(row["step"], row["loss"], row["grad_norm"]) for row in rows(path)]


def state(folder, step):
    return json.loads(pathlib.Path(f"{folder}/step-{step:08d}/state.json").read_text())


def same_weights(a, b, step):
    for file in ("model.safetensors", "optimizer.safetensors"):
        first, second = (pathlib.Path(f"{folder}/step-{step:08d}/{file}").read_bytes() for folder in (a, b))
        check(first == second, f"{a} and {b} differ in {file} of step {step}")


BASE = {"tokens": "u8", "lr": 1e-3, "init": "poisoned.safetensors"}


def stops(name, ranks):
    write("data", batches(10, bad=[5]))
    said, code = run(ranks, data="data", steps=10, save="stopped", metrics="stopped.jsonl")
    check(code == 1 and "step 5: the loss is" in said and f"data {5 * BATCH + 7}" in said and "has diverged" in said, f"{name}: {code}\n{said}")
    check("the state after 5 steps is saved in stopped/step-00000005" in said, f"{name}:\n{said}")
    check(len(losses("stopped.jsonl")) == 5 and state("stopped", 5)["position"] == 5 * BATCH, f"{name}: {losses('stopped.jsonl')}")
    said, code = run(ranks, data="data", steps=5, save="five")
    check(code == 0, f"{name}: {said}")
    same_weights("stopped", "five", 5)
    # Without --save there is nothing to keep.
    said, code = run(ranks, data="data", steps=10)
    check(code == 1 and "step 5: the loss is" in said and "saved" not in said, f"{name}: {code}\n{said}")


def skips(name, ranks):
    parts = batches(10, bad=[5, 8])
    write("data", parts)
    write("good", [part for number, part in enumerate(parts) if number not in (5, 8)])
    said, code = run(ranks, data="data", steps=10, on_nan="skip", save="skipped", metrics="skipped.jsonl")
    check(code == 0 and said.count("the step changes nothing") == 2, f"{name}: {code}\n{said}")
    said, code = run(ranks, data="good", steps=8, save="good-run", metrics="good.jsonl")
    check(code == 0, f"{name}: {said}")
    taken = rows("skipped.jsonl")
    check([row["step"] for row in taken if row.get("skipped")] == [5, 8], f"{name}: {taken}")
    have = [(row["loss"], row["grad_norm"]) for row in taken if not row.get("skipped")]
    check(have == [(loss, norm) for _, loss, norm in losses("good.jsonl")], f"{name}: not as without those batches: {have}")
    kept = state("skipped", 10)
    check(kept.get("loss_scale", kept)["skipped"] == 2, f"{name}: {kept}")
    # Resumed, the count of updates is what it was.
    shutil.rmtree("part", ignore_errors=True)
    run(ranks, data="data", steps=7, on_nan="skip", save="part")
    said, code = run(ranks, data="data", steps=10, on_nan="skip", resume="part", save="part")
    check(code == 0, f"{name}: {said}")
    same_weights("skipped", "part", 10)


def goes_back(name, ranks):
    parts = batches(16, bad=[5])
    write("data", parts)
    write("good", parts[:3] + parts[6:])
    kept = dict(data="data", on_nan="rollback", save="back", save_every=3, metrics="back.jsonl", log_samples="samples.jsonl")
    said, code = run(ranks, steps=8, tensorboard="events", **kept)
    check(code == 0 and "step 5: the loss is" in said and "going back to back/step-00000003" in said, f"{name}: {code}\n{said}")
    said, code = run(ranks, steps=12, resume="back", **kept)
    check(code == 0, f"{name}: {said}")
    said, code = run(ranks, data="good", steps=12, save="straight", metrics="straight.jsonl")
    check(losses("back.jsonl") == losses("straight.jsonl"), f"{name}: not as without the data since the checkpoint")
    same_weights("back", "straight", 12)
    samples = [json.loads(line) for line in open("samples.jsonl")]
    first = {row["step"]: row["samples"][0][1] // BATCH for row in samples if "samples" in row}
    check([first[step] for step in range(12)] == [0, 1, 2, *range(6, 15)], f"{name}: {first}")
    # Back to where this run began: the names of its files stay with its samples.
    write("other", parts)
    begun = dict(on_nan="rollback", save="begun", save_every=100, log_samples="begun.jsonl")
    for data, steps, more in (("data", 3, {}), ("other", 8, {"resume": "begun"})):
        said, code = run(ranks, data=data, steps=steps, **begun, **more)
        check(code == 0, f"{name}: {said}")
    check("going back to begun/step-00000003" in said, f"{name}: {said}")
    files = [(row["step"], row["files"]) for row in map(json.loads, open("begun.jsonl")) if "files" in row]
    check(files == [(0, ["data"]), (3, ["other"])], f"{name}: {files}")


def ends(name, ranks):
    """Neither goes on for ever."""
    memory = pathlib.Path(f"/dev/shm/meshwright-on-nan-{os.getpid()}")
    write("data", batches(30, bad=range(5, 30)))
    said, code = run(ranks, data="data", steps=30, on_nan="skip", save="hopeless")
    check(code == 1 and said.count("the step changes nothing") == 10 and "error: step 15: " in said and
          "the state after 15 steps is saved" in said, f"{name}: {code}\n{said}")
    said, code = run(ranks, data="data", steps=30, on_nan="rollback", save="again", save_every=4, buddy=memory)
    left = [path.name for path in memory.glob("step-*")]
    shutil.rmtree(memory)
    check(code == 1 and said.count("going back to again/step-00000004") == 3 and "has gone back to again/step-00000004 3 times" in said,
          f"{name}: {code}\n{said}")
    check(not left, f"{name}: states are in memory of steps after the one to which the run has gone back: {left}")
    said, code = run(ranks, data="data", steps=30, on_nan="rollback", save="early", save_every=20)
    check(code == 1 and "there is no checkpoint yet to go back to" in said, f"{name}: {code}\n{said}")


def spikes():
    """Other data after many steps."""
    easy = [b"ab" * (BATCH * SEQ // 2)] * 40
    write("data", easy + batches(6))
    said, code = run(1, data="data", steps=46)
    check(code == 0 and said.count("standard deviations above") == 1 and "warning: step 40: the loss" in said and "data 640" in said,
          f"{code}\n{said}")
    write("data", batches(60))
    said, code = run(1, data="data", steps=60)
    check(code == 0 and "standard deviations" not in said, f"{code}\n{said}")


def refusals():
    write("data", batches(3))
    for given, words in (({"on_nan": "rollback"}, "give --save DIR and --save-every K"),
                         ({"on_nan": "rollback", "save": "x"}, "give --save-every K too"),
                         ({"on_nan": "hope"}, "it is one of stop|skip|rollback")):
        said, code = run(1, data="data", steps=2, **given)
        check(code == 1 and words in said, f"{given}: {code}\n{said}")


fresh(sys.argv[1])
model()
for name in sys.argv[2:] or ["one", "data=2/2+zero=3", "data=2/2+zero=3+precision=bf16", "tensor=2+precision=bf16", "data=2+precision=fp16", "pipe=2/2", "data=2+zero=3+offload=optimizer"]:
    options = strategy(name)
    # At the least scale an overflow is not the scale's.
    BASE["initial_loss_scale"] = 1 if options.get("precision") == "fp16" else None
    ranks = ranks_of(options["mesh"])
    for old in pathlib.Path(".").iterdir():
        if old.name != "model.mlir":
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    if options["microbatches"] == "2":
        text = pathlib.Path("model.mlir").read_text()
        for old, new in (("train.batch = 16", "train.batch = 32"), ("train.microbatches = 1", "train.microbatches = 2")):
            text = text.replace(old, new)
        pathlib.Path("two.mlir").write_text(text)
        options.pop("microbatches")
        BATCH = 32
        compile("two.mlir", "exe", **options)
    else:
        options.pop("microbatches")
        BATCH = 16
        compile("model.mlir", "exe", **options)
    write("data", batches(1))
    call(["meshwright", "run", "-n", ranks, "./exe", *flags(dict(BASE, init=None, data="data", steps=1, lr=0, save="start"))])
    changed("start/latest/model.safetensors", "poisoned.safetensors",
            lambda tensor, n: [POISON.get(options.get("precision"), 1e38) if i // 128 == BAD else 0.02 * random.Random(i).gauss(0, 1) for i in range(n)]
            if tensor == "embed.weight" else None)
    stops(name, ranks)
    skips(name, ranks)
    goes_back(name, ranks)
    if name == "one":
        spikes()
        refusals()
        ends(name, ranks)
    print(f"{name}: right")
