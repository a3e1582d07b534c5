#!/usr/bin/env python3
"""Pairs of sources and targets: padding, evaluation, resuming, ranks, and what is refused. pairs.py GOLDEN WORK

GOLDEN is a golden directory of an encoder-decoder model whose pairs are documents of different lengths.
"""
import json
import pathlib
import re
import struct
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, compile, distance, flags, fresh, rows, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
size, data = golden.size, golden.data
run = dict(data, init=golden.weights, steps=6, lr=1e-3)


def refused(exe, message, **options):
    done = subprocess.run([exe, *flags(options)], capture_output=True, text=True)
    text = done.stdout + done.stderr
    check(done.returncode != 0 and all(part in text for part in message), f"{options}: {text}")


compile(golden.config, "exe", **size)
want = train("./exe", **run)

# Padding is seen by no query: with more of it the losses are the same, whether it is of sources or of targets.
for longer in ("source_seq", "seq"):
    # All documents are shorter than that, so none is cut off.
    whole = dict(size, source_seq=30, seq=22)
    compile(golden.config, "short", **whole)
    compile(golden.config, "long", **dict(whole, **{longer: 50}))
    have, same = (train(exe, **run) for exe in ("./long", "./short"))
    error = distance(have, same)
    print(f"{longer} 50: loss {error:.1e}")
    check(error <= 2e-6, f"{longer}: padding changes a loss by {error:.1e}")

# What is cut off is said once.
said = call(["./exe", *flags(dict(run, steps=1))])
check(len(re.findall(r"\d+ sources have more than 24 tokens \(--source-seq\)", said)) == 1 and "targets have more than 16 tokens" in said, said)
said = call(["./short", *flags(dict(run, steps=1))])
check("have more than" not in said, said)

# Ranks, precision and ZeRO; a shuffled order is the same for all of them.
compile(golden.config, "many", mesh="data=2", zero=2, precision="fp16", **size)
compile(golden.config, "half", precision="fp16", **size)
one, many = (train(exe, ranks, shuffle=True, **run) for exe, ranks in (("./half", 1), ("./many", 2)))
error = distance(many, one)
print(f"fp16, ZeRO 2 on two ranks: loss {error:.1e}")
check(error <= 5e-3, f"ZeRO changes a loss by {error:.1e}")

# A stopped run goes on with the next pair.
train("./exe", save="run", **dict(run, steps=3))
rest = train("./exe", save="run", resume="run", **{name: value for name, value in run.items() if name != "init"})
check([row["loss"] for row in rest][-3:] == [row["loss"] for row in want][3:], "a resumed run differs")

# Other sources, of as many tokens, are noted.
whole = pathlib.Path(data["source"]).read_bytes()
pathlib.Path("other-source.bin").write_bytes(whole[:-1] + (b"a" if whole[-1:] != b"a" else b"b"))
more = {name: value for name, value in dict(run, resume="run", steps=7).items() if name != "init"}
for source, noted in ((data["source"], 0), ("other-source.bin", 1)):
    said = call(["./exe", *flags(dict(more, source=source))])
    check(said.count("note: --source is ") == noted and "--data is" not in said, said)

# An evaluation of all pairs, whose number the batch does not divide, is the mean over all their tokens.
pairs = pathlib.Path(data["documents"]).stat().st_size // 8
check(pairs % size["batch"] != 0, "the last batch is to be a part")
evaluation = {"eval_only": True, "init": golden.weights, "eval_data": data["data"], "eval_source": data["source"], "tokens": "u8",
              "eval_documents": data["documents"], "eval_source_documents": data["source_documents"], "metrics": "eval.jsonl"}
call(["./exe", *flags(evaluation)])
compile(golden.config, "single", **dict(size, batch=1))
call(["./single", *flags(dict(evaluation, metrics="single.jsonl"))])
losses = [rows(name)[-1]["eval_loss"] for name in ("eval.jsonl", "single.jsonl")]
said = call(["./exe", *flags(evaluation)])
check(len(re.findall(r"sources have more than 24 tokens", said)) == 1, f"what is cut off is said twice:\n{said}")
refused("./exe", ["--source changes nothing with --eval-only", "or give --eval-source"], **dict(evaluation, source=data["source"]))
print(f"evaluation: {losses[0]:.6f}, one by one {losses[1]:.6f}")
check(abs(losses[0] - losses[1]) <= 1e-5, "an evaluation depends on the batch")

# Without documents each source and target is as long as can be.
plain = {"tokens": "u8", "steps": 2, "lr": 1e-3, "init": golden.weights}
text = pathlib.Path(data["source"]).read_bytes()
pathlib.Path("source.bin").write_bytes(text[:24 * 20])
pathlib.Path("target.bin").write_bytes(text[:16 * 20])
train("./exe", data="target.bin", source="source.bin", **plain)
pathlib.Path("target.bin").write_bytes(text[:16 * 21])
refused("./exe", ["has 20 sources", "has 21 targets"], data="target.bin", source="source.bin", **plain)
refused("./exe", ["--source is needed"], data="target.bin", **plain)
refused("./exe", ["not an end-of-document token"], source="source.bin", data="target.bin", documents=10, **plain)
pathlib.Path("mask.bin").write_bytes(bytes(len(text)))
refused("./exe", ["--loss-mask is for decoder-only models"], loss_mask="mask.bin", **dict(run, steps=1))
pathlib.Path("starts.bin").write_bytes(struct.pack("<8Q", 0, 5, 3, 9, 12, 15, 18, 20))
refused("./exe", ["each above the one before"], data="target.bin", documents="starts.bin", source="source.bin", source_documents="starts.bin", **plain)
pathlib.Path("few.bin").write_bytes(text[:24 * 3])
pathlib.Path("few-targets.bin").write_bytes(text[:16 * 3])
refused("./exe", ["have 3 pairs, but a batch has 8"], data="few-targets.bin", source="few.bin", **plain)
json.dump({"model_type": "gpt2", "vocab_size": 256, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}, open("gpt2.json", "w"))
compile("gpt2.json", "gpt2", batch=2, seq=16)
refused("./gpt2", ["--source is for encoder-decoder models"], data="target.bin", source="source.bin", tokens="u8", steps=1)
