#!/usr/bin/env python3
"""What --generate refuses, and what its flags do: refusals.py CONFIG WORK"""
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import check, compile, fresh, train

config = pathlib.Path(sys.argv[1]).resolve()
fresh(sys.argv[2])
pathlib.Path("corpus.txt").write_text("To be, or not to be, that is the question. " * 50)
compile(config, "exe", mesh="data=2", batch=2, seq=32)
train("./exe", 2, data="corpus.txt", tokens="u8", steps=2, lr=1e-3, save="run")


def run(*words):
    return subprocess.run(["./exe", *map(str, words)], capture_output=True, timeout=60)


def text(*words):
    done = run("--generate", "To be", *words)
    check(done.returncode == 0, f"{words}: {done.stderr.decode()}")
    return done.stdout


# From a checkpoint of two ranks, or a file of weights; the same command gives the same text.
greedy = text("--resume", "run", "--temperature", 0, "--tokens", 20)
check(greedy.startswith(b"To be") and len(greedy) == 5 + 20 + 1, greedy)
check(text("--init", "run/latest/model.safetensors", "--temperature", 0, "--tokens", 20) == greedy, "the checkpoint's weights")

sampled = [text("--resume", "run", "--seed", seed, "--tokens", 20) for seed in (1, 1, 2)]
check(sampled[0] == sampled[1] != sampled[2], f"by seed: {sampled}")
check(text("--resume", "run", "--top-k", 1, "--tokens", 20) == greedy, "one of one")
check(text("--resume", "run", "--temperature", 0) == text("--resume", "run", "--temperature", 0, "--tokens", 27), "as many as fit")
stop = greedy[12:14].decode("latin-1")
if greedy[12:14].isascii():
    ended = text("--resume", "run", "--temperature", 0, "--tokens", 20, "--stop", stop)
    check(ended == greedy[:greedy.index(greedy[12:14], 5)] + b"\n", f"{ended} ends before {stop!r} of {greedy}")
pathlib.Path("prompt").write_bytes(b"To be")
check(run("--generate", "prompt", "--resume", "run", "--temperature", 0, "--tokens", 20).stdout == greedy, "a file's text")

# Weights of the same shapes may be another model's.
shutil.copytree("run", "other", symlinks=True)
other = pathlib.Path("other/latest/config.json")
other.write_text(json.dumps({**json.loads(other.read_text()), "vocab_size": 255}))
said = run("--generate", "To be", "--init", "other/latest").stderr.decode()
check("note: --init: other/latest/config.json is of another model than this executable: vocab_size = 255 (here 256)\n" in said, said)

for words, why in (
        (["--generate", "To be"], "--generate needs weights"),
        (["--generate", "To be", "--resume", "run", "--steps", 3], "--steps changes nothing with --generate"),
        (["--generate", "To be", "--resume", "run", "--data", "corpus.txt"], "--data changes nothing with --generate"),
        (["--generate", "To be", "--resume", "run", "--ranks", 2], "--ranks changes nothing with --generate"),
        (["--generate", "x" * 32, "--resume", "run"], "the prompt has 32 tokens, but sequences of this executable have 32"),
        (["--generate", "To be", "--resume", "run", "--tokens", 28], "give at most 27, or compile with a larger --seq"),
        (["--generate", "To be", "--resume", "run", "--tokens", "u8"], "--tokens is \"u8\": it must be a whole number"),
        (["--generate", "To be", "--resume", "run", "--tokens", 0], "must be at least 1"),
        (["--generate", "To be", "--resume", "run", "--temperature", -1], "--temperature is -1"),
        (["--generate", "To be", "--resume", "run", "--top-p", 0], "--top-p is 0"),
        (["--generate", "To be", "--resume", "run", "--top-p", 0.5, "--temperature", 0], "--top-p changes nothing with --temperature 0"),
        (["--generate", "To be", "--resume", "run", "--tokenizer", "none.json"], "there is no such file"),
        (["--generate", "To be", "--resume", "other"], "was trained with a model of vocab_size = 255, but this executable was compiled for vocab_size = 256"),
        (["--generate", "", "--resume", "run"], "--generate is empty"),
        (["--generate", "To be", "--resume", "none"], "none"),
        (["--temperature", 1, "--data", "corpus.txt", "--steps", 1], "--temperature needs --generate")):
    done = run(*words)
    check(done.returncode == 1 and why in done.stderr.decode(), f"{words}: {done.returncode} {done.stderr.decode()}")
