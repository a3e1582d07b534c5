#!/usr/bin/env python3
"""What generating the targets of an encoder-decoder model refuses, and what its flags do: pair_refusals.py CONFIG WORK"""
import json
import pathlib
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import call, check, compile, fresh, train

config = json.loads(pathlib.Path(sys.argv[1]).read_text())
fresh(sys.argv[2])
pathlib.Path("questions.jsonl").write_text("".join(json.dumps({"text": f"What is {n}?"}) + "\n" for n in range(10)))
pathlib.Path("answers.jsonl").write_text("".join(json.dumps({"text": f"It is {n}.\n"}) + "\n" for n in range(10)))
for name in ("questions", "answers"):
    call(["meshwright", "tokenize", f"{name}.jsonl", "--tokenizer", "bytes", "--pairs", "-o", name])


def compiled(output, changes={}, generation=None, **more):
    folder = pathlib.Path(f"{output}-model")
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**config, "eos_token_id": 10, "forced_eos_token_id": None, **changes}))
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation))
    return compile(folder / "config.json", output, batch=2, seq=16, source_seq=12, **more)


compiled("exe", mesh="data=2")
train("./exe", 2, source="questions", data="answers", steps=2, lr=1e-3, save="run")


def run(*words, exe="./exe"):
    return subprocess.run([exe, *map(str, words)], capture_output=True, timeout=60)


def text(*words, exe="./exe"):
    done = run("--generate", *words, exe=exe)
    check(done.returncode == 0, f"{words}: {done.stderr.decode()}")
    return done.stdout


# From a checkpoint of two ranks or a file of weights, alone or among others.
greedy = text("What is 7?", "--resume", "run", "--temperature", 0)
check(1 < len(greedy) <= 17 and b"What" not in greedy, greedy)
check(text("What is 7?", "--init", "run/latest/model.safetensors", "--temperature", 0) == greedy, "the checkpoint's weights")
check(text("What is 7?", "--resume", "run", "--temperature", 0, "--tokens", 3) == greedy[:3] + b"\n", "the first tokens")
sampled = [text("What is 7?", "--resume", "run", "--seed", seed) for seed in (1, 1, 2)]
check(sampled[0] == sampled[1] != sampled[2], f"by seed: {sampled}")
check(text("What is 7?", "--resume", "run", "--beams", 1, "--temperature", 0) == greedy, "one beam")

ids = text(" ".join(str(byte) for byte in b"What is 7?"), "--resume", "run", "--temperature", 0, "--tokenizer", "ids")
check(ids.split() == [b"%d" % byte for byte in greedy[:-1]], f"{ids} are the bytes of {greedy}")

# Each line is as it is alone, whatever was generated before it.
pathlib.Path("sources.txt").write_text("".join(f"What is {n}?\n" for n in range(10)))
for how in (["--temperature", 0], ["--beams", 3]):
    alone = [text(f"What is {n}?", "--resume", "run", *how)[:-1].replace(b"\n", b"\\n").replace(b"\r", b"\\r") for n in range(10)]
    lines = text("sources.txt", "--lines", "--resume", "run", *how).split(b"\n")[:-1]
    check(lines == alone, f"{how}: {lines} but alone {alone}")
pathlib.Path("long.txt").write_text("What is 1?\n" + "x" * 13 + "\n")

compiled("forced", {"forced_bos_token_id": 120, "forced_eos_token_id": 33})
made = text("What is 7?", "--init", "run/latest/model.safetensors", "--temperature", 0, exe="./forced")
check(made[:1] == b"x" and (len(made) < 17 or made[15:] == b"!\n"), f"{made} begins with x, and ends with ! if it is long")
note = run("--generate", "What is 7?", "--init", "run/latest/model.safetensors", "--temperature", 0, exe="./forced").stderr.decode()
said = "asks for encoder_no_repeat_ngram_size 3 in generation, which is not supported and left out" in note
check(said == ("encoder_no_repeat_ngram_size" in config), note)
compiled("own", {}, {"eos_token_id": [10, greedy[1]], "bad_words_ids": [[greedy[0]], [1, 2]], "num_beams": 4})
made = text("What is 7?", "--resume", "run", "--temperature", 0, exe="./own")
check(greedy[:1] not in made and greedy[1:2] not in made[:-1], f"{made} has neither the token that is never made nor the one that ends")
check("bad_words_ids of several tokens" in run("--generate", "What", "--resume", "run", exe="./own").stderr.decode(), "what is left out")

for words, why in (
        (["--generate", "x" * 13, "--resume", "run"],
         "the source has 13 tokens, but the encoder of this executable reads 12: shorten it, or compile with a larger --source-seq"),
        (["--generate", "long.txt", "--lines", "--resume", "run"], "long.txt:2: --generate: the source has 13 tokens"),
        (["--generate", "What is 1?", "--lines", "--resume", "run"], "--lines: --generate What is 1? is no file"),
        (["--generate", "What is 1?", "--resume", "run", "--tokens", 17], "targets of this executable have 16 tokens: give at most that, or compile with a larger --seq"),
        (["--generate", "What is 1?", "--resume", "run", "--beams", 0], "--beams is 0: it must be at least 1"),
        (["--generate", "What is 1?", "--resume", "run", "--beams", 2, "--temperature", 1], "--temperature changes nothing with --beams"),
        (["--generate", "What is 1?", "--resume", "run", "--beams", 2, "--seed", 1], "--seed changes nothing with --beams"),
        (["--generate", "What is 1?", "--resume", "run", "--beams", 1, "--length-penalty", 2], "--length-penalty changes nothing with one beam"),
        (["--generate", "What is 1?", "--resume", "run", "--length-penalty", 2], "--length-penalty changes nothing with one beam"),
        (["--generate", "What is 1?", "--resume", "run", "--beams", 2, "--early-stopping", "soon"], "--early-stopping soon: it is one of on|off|never"),
        (["--generate", "1 x", "--resume", "run", "--tokenizer", "ids"], '--tokenizer ids: "x" is no token\'s id: give numbers with spaces between them'),
        (["--generate", "1 256", "--resume", "run", "--tokenizer", "ids"], "token 256 is not in the model's vocabulary of 256"),
        (["--beams", 2, "--data", "answers", "--source", "questions", "--steps", 1], "--beams needs --generate")):
    done = run(*words)
    check(done.returncode == 1 and why in done.stderr.decode(), f"{words}: {done.returncode} {done.stderr.decode()}")

# Token ids of generation_config.json are checked when the model is compiled; training needs none of them.
compiled("wrong", {}, {"eos_token_id": 300})
done = run("--generate", "What is 1?", "--resume", "run", exe="./wrong")
check(done.returncode == 1 and '"eos_token_id" must be a token of the vocabulary, below 256' in done.stderr.decode(), done.stderr.decode())
compiled("gpu", target="cuda")
done = run("--generate", "What is 1?", "--resume", "run", exe="./gpu")
check(done.returncode == 1 and "this executable has no decoder: executables for cuda have no decoder; one for cpu generates from the same checkpoints"
      in done.stderr.decode(), done.stderr.decode())
