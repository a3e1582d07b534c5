#!/usr/bin/env python3
"""Evaluation alone, bits per byte, and TensorBoard's events: logs.py CONFIG WORK"""
import json
import math
import pathlib
import struct
import statistics
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from compare import read_safetensors
from harness import call, check, compile, fresh, rows

config = {**json.load(open(sys.argv[1])), "vocab_size": 300}
fresh(sys.argv[2])
pathlib.Path("config.json").write_text(json.dumps(config))
text = "The evaluation is of weights that stay what they are. " * 40
pathlib.Path("text.txt").write_text(text)
call(["meshwright", "tokenize", "text.txt", "--tokenizer", "bytes", "-o", "tokens"])
call(["meshwright", "tokenizer", "train", "text.txt", "--vocab", "300", "-o", "tokenizer.json"])
call(["meshwright", "tokenize", "text.txt", "--tokenizer", "tokenizer.json", "--end-token", "none", "-o", "words"])
compile("config.json", "exe", mesh="data=2", batch=4, seq=16)
train = ["./exe", "--ranks", 2, "--data", "tokens", "--lr", "1e-3"]
call([*train, "--steps", 6, "--eval-data", "tokens", "--metrics", "m.jsonl", "--tensorboard", "events", "--save", "run", "--save-every", 3])
wanted = rows("m.jsonl")
last = wanted[-1]
check(abs(last["eval_bits_per_byte"] - last["eval_loss"] / math.log(2)) < 1e-6, f"a token is a byte: {last}")


# --eval-only needs no data and no steps, and trains nothing.
def evaluate(*words):
    return call(["./exe", "--ranks", 2, "--eval-only", "--eval-data", *words, "--metrics", "e.jsonl"]), rows("e.jsonl")


before = {path: path.stat().st_mtime_ns for path in pathlib.Path("run").rglob("*")}
for words in (["tokens", "--resume", "run"], ["tokens", "--init", "run/latest/model.safetensors"], ["tokens", "--init", "run/latest"]):
    said, (row,) = evaluate(*words)
    check(abs(row["eval_loss"] - last["eval_loss"]) < 1e-6 and "steps" in row, f"{words}: {row}, not {last}")
    check(f"perplexity {math.exp(last['eval_loss']):.4g}, {last['eval_bits_per_byte']:.4f} bits per byte" in said, said)
check(before == {path: path.stat().st_mtime_ns for path in pathlib.Path("run").rglob("*")}, "the checkpoints are as they were")
# Fewer sequences than a batch has.
for name, size in (("few", 40), ("none", 10)):
    pathlib.Path(f"{name}.txt").write_text(text[:size])
    call(["meshwright", "tokenize", f"{name}.txt", "--tokenizer", "bytes", "-o", name])
call([*train, "--steps", 6, "--eval-data", "few", "--metrics", "few.jsonl"])
said, (row,) = evaluate("few", "--init", "run/latest")
check(row["eval_loss"] == rows("few.jsonl")[-1]["eval_loss"] and "over 32 tokens" in said, f"{row}: {said}")
# Tokens of several bytes.
said, (row,) = evaluate("words", "--init", "run/latest")
bytes_of_token = len(text) / ((pathlib.Path("words/tokens-00000.bin").stat().st_size - 1024) // 2 // 8 * 8)
check(row["eval_loss"] / math.log(2) / row["eval_bits_per_byte"] > 1.2, f"{row} of about {bytes_of_token} bytes a token")
for words, why in (
        (["--eval-only", "--init", "run/latest"], "--eval-only needs --eval-data"),
        (["--eval-only", "--eval-data", "tokens"], "--eval-only needs weights"),
        (["--eval-only", "--eval-data", "tokens", "--init", "run/latest", "--steps", "3"], "--steps changes nothing with --eval-only"),
        (["--eval-only", "--eval-data", "tokens", "--init", "run/latest", "--data", "tokens"], "--data changes nothing with --eval-only"),
        (["--eval-only", "--eval-data", "tokens", "--init", "run/latest", "--save", "x"], "--save changes nothing with --eval-only"),
        (["--eval-only", "--eval-data", "tokens", "--init", "run/latest", "--lr", "1"], "--lr changes nothing with --eval-only"),
        (["--eval-only", "--eval-data", "none/tokens-00000.bin", "--init", "run/latest"], "--eval-data none/tokens-00000.bin: has 10 tokens")):
    done = subprocess.run(["./exe", "--ranks", "2", *words], capture_output=True, text=True)
    check(done.returncode == 1 and why in done.stderr, f"{words}: {done.stderr}")


# What TensorBoard reads: records of events.
def crc(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def fields(data):
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] < 128:
                return value
    while at < len(data):
        key = varint()
        size = {0: None, 1: 8, 5: 4}.get(key & 7, -1)
        if size is None:
            yield key >> 3, varint()
            continue
        size = varint() if size < 0 else size
        yield key >> 3, data[at:at + size]
        at += size


def events(folder):
    """By step: tags and values."""
    found = {}
    for path in sorted(pathlib.Path(folder).iterdir(), key=lambda path: path.stat().st_mtime_ns):
        data, at = path.read_bytes(), 0
        while at < len(data):
            length, check_length = struct.unpack_from("<QI", data, at)
            body = data[at + 12:at + 12 + length]
            check(crc(data[at:at + 8]) == check_length and crc(body) == struct.unpack_from("<I", data, at + 12 + length)[0], f"{path} at {at}")
            at += 16 + length
            event = dict(fields(body))
            step = event.get(2, 0)
            if 7 in event:
                found = {known: tags for known, tags in found.items() if known < step}
            for field, value in fields(event.get(5, b"")):
                entry = dict(fields(value))
                found.setdefault(step, {})[entry[1].decode()] = struct.unpack("<f", entry[2])[0]
    return found


def compare(found, metrics):
    check(sorted(found) == [row["step"] for row in metrics], f"events of steps {sorted(found)}")
    for row in metrics:
        tags = found[row["step"]]
        check(("eval/loss" in tags) == ("eval_loss" in row), f"{row}: {tags}")
        for key, value in row.items():
            tag = key.replace("eval_", "eval/")
            check(key == "step" or abs(tags[tag] - value) <= 1e-6 * abs(value), f"{key} of {row}: {tags}")


compare(events("events"), wanted)
# What only some runs say: how unevenly ranks share out documents.
compile("config.json", "packed", mesh="context=2", packed=True, batch=4, seq=16)
call(["./packed", "--ranks", 2, "--data", "tokens", "--documents", ord("."), "--steps", 2, "--metrics", "packed.jsonl", "--tensorboard", "packed-events"])
check(all("attention_imbalance" in row for row in rows("packed.jsonl")), "ranks divide documents")
compare(events("packed-events"), rows("packed.jsonl"))
# A resumed run goes on in the same folder; what it does again counts once.
call([*train, "--steps", 8, "--resume", "run/step-00000003", "--eval-data", "tokens", "--metrics", "m.jsonl", "--tensorboard", "events"])
compare(events("events"), rows("m.jsonl"))

# Sets with names are evaluated on their own, each as it would be alone.
sets = ["--eval-data", "all=tokens", "--eval-data", "words=words", "--eval-data", "words=tokens/tokens-00000.bin"]
said = call([*train, "--steps", 6, *sets, "--eval-every", 2, "--metrics", "sets.jsonl", "--tensorboard", "set-events", "--log-every", 4])
check(said.count("--eval-data words/tokens-00000.bin was made with another tokenizer than --data tokens/tokens-00000.bin") == 1 == said.count("note:"), said)
lines = rows("sets.jsonl")
# Every fourth step, evaluations, and the last one.
check([row["step"] for row in lines] == [1, 3, 5] and all("eval_loss/all" in row and "eval_loss/words" in row for row in lines), f"{lines}")
check(lines[-1]["eval_loss/all"] == last["eval_loss"] and "eval_loss" not in lines[-1], f"{lines[-1]}, not {last}")
check(lines[-1]["tokens"] == 6 * 4 * 16, f"{lines[-1]}")
check("eval loss/all" in said and "eval loss/words" in said and "\ntime: " in said and ": steps " in said, said)
tags = events("set-events")[5]
check(abs(tags["eval/loss/words"] - lines[-1]["eval_loss/words"]) < 1e-6 and tags["tokens"] == 384, f"{tags}")
alone = call(["./exe", "--ranks", 2, "--eval-only", *sets, "--init", "run/latest", "--metrics", "e.jsonl"])
check(rows("e.jsonl")[0]["eval_loss/words"] == lines[-1]["eval_loss/words"] and "eval loss/words" in alone, alone)
for words, why in (
        (["--eval-data", "a=tokens", "--eval-data", "words"], "--eval-data words/tokens-00000.bin has no name, but other sets have"),
        (["--eval-data", "a="], "there is no path after the name"),
        (["--eval-data", "a=nowhere.bin"], "nowhere.bin"),
        (["--eval-data", "a=tokens", "--eval-loss-mask", "b=mask"], "--eval-data has no set b"),
        (["--eval-data", "a=tokens", "--eval-data", "b=words", "--eval-loss-mask", "mask"], "does not say of which set")):
    done = subprocess.run([*map(str, train), "--steps", "1", *words], capture_output=True, text=True)
    check(done.returncode == 1 and why in done.stderr, f"{words}: {done.stderr}")


# A table has the same numbers, and goes on where a run does.
def table(path):
    head, *cells = [line.split(",") for line in pathlib.Path(path).read_text().splitlines()]
    return [{name: float(cell) for name, cell in zip(head, row) if cell and cell != "true"} for row in cells]


call([*train, "--steps", 6, "--metrics", "m.csv", "--save", "table", "--save-every", 3])
call([*train, "--steps", 8, "--resume", "table/step-00000003", "--eval-data", "tokens", "--metrics", "m.csv", "--peak-flops", "1e9"])
for count in (1, 2):
    call(["./exe", "--ranks", 2, "--eval-only", "--eval-data", "tokens", "--resume", "run", "--metrics", "evaluations.csv"])
    check([row["steps"] for row in table("evaluations.csv")] == [6] * count, "evaluations alone make a table too")
call([*train, "--steps", 8, "--resume", "run", "--metrics", "evaluations.csv"])
goes_on = table("evaluations.csv")
check([row.get("step", row.get("steps")) for row in goes_on] == [6, 6, 6, 7] and goes_on[1]["eval_loss"] == goes_on[0]["eval_loss"], f"{goes_on}")
have, want = table("m.csv"), rows("m.jsonl")
check(len(have) == len(want) == 8, f"{have}")
for a, b in zip(have, want):
    check(all(a[key] == b[key] for key in ("step", "loss", "grad_norm", "lr", "tokens")) and ("eval_loss" in a) == ("eval_loss" in b), f"{a}, not {b}")
flops = json.loads(call(["meshwright", "inspect", "--json", "exe"]))["flops"]
check("mfu" not in have[2] and abs(have[7]["mfu"] - flops / (2e9 * have[7]["step_ms"] / 1e3)) < 1e-6 * have[7]["mfu"], f"{have[7]}")
said = call([*train, "--steps", 3, "--peak-flops", "measure", "--metrics", "measured.jsonl"])
# What is measured at the start may be less than what a step has, on a machine that does other work.
check(0 < statistics.median(row["mfu"] for row in rows("measured.jsonl")) < 1, f"{rows('measured.jsonl')}")
for words, why in ((["--peak-flops", "fast"], 'is "fast": it must be a number'), (["--peak-flops", "0"], "it must be more than 0, or measure"),
                   (["--log-every", "-1"], "it must be at least 0")):
    done = subprocess.run([*map(str, train), "--steps", "1", *words], capture_output=True, text=True)
    check(done.returncode == 1 and why in done.stderr, f"{words}: {done.stderr}")

# Norms are those of the tensors of a checkpoint, on any mesh.
call([*train, "--steps", 4, "--log-norms", 2, "--log-every", 3, "--metrics", "norms.jsonl", "--save", "normed", "--tensorboard", "norm-events"])
lines = rows("norms.jsonl")
check([row["step"] for row in lines] == [1, 2, 3] and [("norms" in row) for row in lines] == [True, False, True], f"{lines}")
tensors = {**read_safetensors("normed/latest/model.safetensors"), **read_safetensors("normed/latest/optimizer.safetensors")}
norms = {name.removeprefix("transformer."): norm for name, norm in lines[-1]["norms"].items()}  # as read_safetensors names them
check(sorted(norms) == sorted(tensors), f"{sorted(norms)}, not {sorted(tensors)}")
for name, norm in norms.items():
    wanted_norm = math.sqrt(sum(value * value for value in tensors[name][1]))
    check(abs(norm - wanted_norm) <= 1e-6 * wanted_norm, f"{name}: {norm}, not {wanted_norm}")
tagged = {tag.removeprefix("norms/").removeprefix("transformer."): value for tag, value in events("norm-events")[3].items()}
check(all(abs(tagged[name] - norm) <= 1e-6 * norm for name, norm in norms.items()), "TensorBoard has other norms")
