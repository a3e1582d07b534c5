#!/usr/bin/env python3
"""Changes one attribute of IR at a time: the compiler refuses what does not fit, or makes a program that runs. It is never
ended by a signal, runs no longer than 10 s, and says what is wrong once.

  mutants.py WORK SEED COUNT    COUNT changes of each phase and model, drawn by SEED; where that is all of a phase exec, what is
                                accepted is run, too

Of each kind of op and each of its attributes one place is changed, drawn by SEED: an integer to -1, 0, 2^31 and 2^62, a
symbol to one of another kind, an array to one more element, one less, and another type.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import INPUTS, fresh, ir

LIMIT = 10
PHASES = ["step", "dist", "local", "schedule", "exec"]
LLAMA = {"model_type": "llama", "vocab_size": 256, "max_position_embeddings": 64, "hidden_size": 64, "num_hidden_layers": 2,
         "num_attention_heads": 8, "num_key_value_heads": 4, "intermediate_size": 96}
# Small models that have ops of every kind: a ring and packed sequences, pipeline stages, experts with overlap and ZeRO.
MODELS = {
    "ring": (LLAMA, ["--batch", "4", "--seq", "16", "--mesh", "context=2", "--packed"]),
    "pipe": (INPUTS / "golden/gpt2-tiny/config.json", ["--batch", "4", "--seq", "8", "--mesh", "pipe=2,data=2",
                                                     "--microbatches", "2", "--dropout", "0.1"]),
    "experts": ({**LLAMA, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2},
                ["--batch", "4", "--seq", "8", "--mesh", "data=2,expert=2", "--precision", "bf16", "--zero", "2", "--overlap", "on",
                 "--offload", "optimizer"]),
}
NUMBERS = ["-1", "0", str(2**31), str(2**62)]
# What is not changed: text, fractions, names and types.
SKIPPED = r'"(?:[^"\\]|\\.)*"|-?\d+\.\d*(?:e[-+]?\d+)?|%[\w.$#-]+(?::\d+)?|@[\w.$-]+|#[\w.$-]+|!\w+|\b(?:tensor|memref|vector)<[^<>]*(?:<[^<>]*>[^<>]*)*>|\b[A-Za-z_][\w.]*\b|//.*'
OP = re.compile(r"\b((?:exec|train|dist|func|arith|math)\.\w+|return)\b|^ *(module)\b")


def places(text):
    """The attributes of the module, by op and by what stands before them: what kind they are, and where."""
    kinds = collections.defaultdict(list)
    symbols = collections.defaultdict(set)
    for name in re.finditer(r"\b(train\.variable|func\.func(?: private)?|exec\.program(?: private)?|dist\.mesh) @([\w.$-]+)", text):
        symbols[name[1].split()[0]].add("@" + name[2])
    end = 0
    for line in text.splitlines(keepends=True):
        begin, end = end, end + len(line)
        name = OP.search(line)
        if not name:
            continue
        op = name[1] or name[2]
        tokens = re.finditer(SKIPPED + r"|(?P<number>-?\b\d+\b(?!\.\d|[xe]))|(?P<array>array<i(?:64|32):[^>]*>|\[[-\d, ]*\])", text[begin:end])
        before, ordinal = "", 0
        for token in tokens:
            word = token.group()
            where = (begin + token.start(), begin + token.end())
            # An array begins with a word that is skipped otherwise.
            if word == "array" and (array := re.match(r"array<i(?:64|32):[^>]*>", text[where[0]:end])):
                kinds[op, before, "array"].append((where[0], where[0] + array.end()))
            elif token.group("array"):
                kinds[op, before, "array"].append(where)
            elif token.group("number"):
                kinds[op, f"{before}[{ordinal}]" if ordinal else before, "number"].append(where)
                ordinal += 1
            elif word.startswith("@") and before not in ("module", op):
                kinds[op, before, "symbol"].append(where)
            if re.match(r"[A-Za-z_]", word):
                before, ordinal = word, 0
    return kinds, symbols


def changes(kind, word, symbols, draw):
    if kind == "number":
        return [number for number in NUMBERS if number != word]
    if kind == "symbol":
        return [draw.choice(sorted(names)) for names in symbols.values() if names and word not in names]
    first, numbers = re.match(r"(array<i\d+:|\[)(.*?)[\]>]$", word, re.S).groups()
    numbers = [number.strip() for number in numbers.split(",") if number.strip()]
    close = "]" if first == "[" else ">"
    write = lambda entries, first=first: f"{first.rstrip(':') if not entries and first != '[' else first}{', '.join(entries)}{close}"
    result = [write(numbers + ["0"]), write(numbers[:-1]), write(["-1", *numbers[1:]]), write([str(2**62), *numbers[1:]])]
    if first != "[":
        result.append(write(numbers, first="array<i8:" if numbers else "array<i8"))
    return result


def mutants(text, draw):
    """(what is changed, text) for every kind of place."""
    found = []
    kinds, symbols = places(text)
    for (op, before, kind), where in sorted(kinds.items()):
        begin, end = draw.choice(where)
        for word in changes(kind, text[begin:end], symbols, draw):
            line = text.count("\n", 0, begin) + 1
            found.append((f"line {line}, {op} {before}: {text[begin:end]} -> {word}", text[:begin] + word + text[end:]))
    return found


def run(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, errors="replace")
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return f"more than {LIMIT} s", ""


def judge(case):
    """What is wrong with how a changed module is compiled, and, if it is, run."""
    name, what, text, runs = case
    file = pathlib.Path(f"{name}.mlir")
    file.write_text(text)
    exe = ["--emit", "exe", "-o", f"{name}.exe"] if runs else ["--emit", "exec", "-o", f"{name}.out"]
    status, said = run(["meshwright", "compile", str(file), *exe])
    messages = len(re.findall(r"^meshwright: error: ", said, re.M))
    problem = f"compile ends with {status} and {messages} messages\n{said[-800:]}" if (status, messages) not in ((0, 0), (1, 1)) else ""
    outcome = "refused" if status == 1 else "accepted"
    if runs and status == 0:
        inspect, shown = run(["meshwright", "inspect", f"{name}.exe"])
        status, said = run([f"./{name}.exe", "--data", str(INPUTS / "golden/corpus.txt"), "--tokens", "u8", "--steps", "1",
                            *(["--documents", "0"] if name.startswith("ring") else [])])
        if status not in (0, 1) or inspect not in (0, 1):
            problem = f"is accepted; inspect ends with {inspect}, the executable with {status}\n{said[-800:]}{shown[-400:]}"
    if not problem:
        for made in (file, *pathlib.Path(".").glob(f"{name}.*")):
            made.unlink(missing_ok=True)
    return outcome, what, problem and f"{name}, {what}: {problem}"


def main(work, seed, count):
    fresh(work)
    draw = random.Random(seed)
    cases = []
    for model, (config, flags) in MODELS.items():
        if isinstance(config, dict):
            pathlib.Path(f"{model}.json").write_text(json.dumps(config))
            config = f"{model}.json"
        for phase in PHASES:
            subprocess.run(["meshwright", "compile", str(config), *flags, "--emit", phase, "-o", "unchanged.mlir"], check=True)
            found = mutants(ir("unchanged.mlir"), draw)
            runs = phase == "exec" and count >= len(found)
            found = draw.sample(found, min(count, len(found)))
            cases += [(f"{model}-{phase}-{i}", f"{phase} {what}", changed, runs) for i, (what, changed) in enumerate(found)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        judged = list(workers.map(judge, cases))
    print(f"{len(cases)} changes, {sum(outcome == 'refused' for outcome, *_ in judged)} refused")
    return [problem for *_, problem in judged if problem]


problems = main(sys.argv[1], *map(int, sys.argv[2:]))
sys.exit("\n".join([*problems, f"FAILED: {len(problems)}"]) if problems else 0)
