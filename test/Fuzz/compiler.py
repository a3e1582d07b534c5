#!/usr/bin/env python3
"""Mutates what the compiler reads (config.json, recipes, IR of each floor) and compiles it: each input is compiled, or refused with an
error, by a process that ends by itself: compiler.py WORK SEED COUNT

COUNT inputs of each kind, drawn by SEED. Unlike the fuzz targets the compiler has no sanitizer and its inputs are not chosen by
coverage: MLIR is not built that way. An input that breaks it is left in WORK."""
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "EndToEnd"))
from harness import INPUTS, call, fresh

LIMIT = 60
work, seed, count = fresh(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
SIZE = ["--batch", "4", "--seq", "8"]
PHASES = ["train", "dist", "schedule", "exec"]
NUMBERS = [b"-1", b"0", b"1", b"2", b"3", b"4", b"8", b"16", b"64", b"255", b"65536", b"2147483648", b"9223372036854775807", b"18446744073709551616", b"1e400", b"0.0", b"-0", b"nan", b"3.5"]
WORDS = [b"null", b"true", b"{}", b"[]", b"\"\"", b"[[[[[[[[", b"}}", b"\\u0000", b"\xff\xfe", b"\x00", b"%", b"@", b"#", b"<", b">", b"tensor<", b"x", b"loc(", b"\n", b"'''"]
RECIPE = b"""model = "%s"
batch = 4
seq = 8
mesh = "data=2,tensor=2"
zero = 1
precision = "bf16"
sequence-parallel = true

[seeds]
"%s" = "[{data}, {tensor}]"
"*mlp*.weight" = "[{?}, {?}]"
"""


def mutate(text, others, draw):
    """One to four changes of the bytes `text`."""
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        at = draw.randrange(len(text) + 1)
        size = min(draw.choice([1, 2, 8, 40, 400]), len(text) - at)
        kind = draw.choice([0, 1, 2, 3, 4, 4, 4, 5, 5, 6, 7])
        if kind == 0:
            text = text[:at] + text[at + size:]
        elif kind == 1:
            text = text[:at] + text[at:at + size] * draw.choice([2, 3, 50]) + text[at + size:]
        elif kind == 2:
            text = text[:at] + bytes(draw.randrange(256) for _ in range(min(size, 8))) + text[at + size:]
        elif kind == 3:
            text = text[:at] + draw.choice(WORDS) + text[at:]
        elif kind == 4 and (numbers := list(re.finditer(rb"-?\b\d+(?:\.\d+)?\b", text))):
            number = draw.choice(numbers)
            text = text[:number.start()] + draw.choice(NUMBERS) + text[number.end():]
        elif kind == 5 and (strings := list(re.finditer(rb'"[^"\n]*"', text))):
            a, b = draw.choice(strings), draw.choice(strings)
            text = text[:a.start()] + b.group() + text[a.end():]
        elif kind == 6:
            other = draw.choice(others)
            begin = draw.randrange(len(other) + 1)
            text = text[:at] + other[begin:begin + size] + text[at + size:]
        elif kind == 7:
            text = text[:at]
    return text


def outcome(name, text, command):
    """What the compiler makes of the input: compiled, refused, or how it breaks."""
    pathlib.Path(name).write_bytes(text)
    try:
        done = subprocess.run(["meshwright", "compile", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"runs for more than {LIMIT} s"
    if done.returncode not in (0, 1, 2):
        return f"ends with {done.returncode}: {done.stderr[-2000:].decode(errors='replace')}"
    if done.returncode and b"error:" not in done.stderr:
        return f"ends with {done.returncode} and no error: {done.stderr[-500:].decode(errors='replace')}"
    os.remove(name)
    return "refused" if done.returncode else "compiled"


configs = sorted(INPUTS.glob("golden*/*/config.json"))
kinds = {"config": ([path.read_bytes() for path in configs], lambda name: [name, *SIZE, "--emit", "step", "-o", "/dev/null"], "json"),
         "recipe": ([RECIPE % (str(INPUTS / "golden" / model / "config.json").encode(), weight)
                    for model, weight in (("gpt2-tiny", b"wte.weight"), ("llama-tiny", b"embed_tokens.weight"))],
                    lambda name: ["--recipe", name, "--emit", "dist", "-o", "/dev/null"], "toml")}
for phase in PHASES:
    texts = []
    for model, more in (("gpt2-tiny", ["--mesh", "data=2", "--zero", "1"]), ("llama-tiny", ["--mesh", "tensor=2"])):
        call(["meshwright", "compile", INPUTS / "golden" / model / "config.json", *SIZE, *more, "--emit", phase, "-o", f"{model}-{phase}.mlir"])
        texts.append(pathlib.Path(f"{model}-{phase}.mlir").read_bytes())
    kinds[phase] = (texts, lambda name: [name, "--emit", "exec", "-o", "/dev/null"], "mlir")

# Where nothing is changed all is compiled.
for kind, (seeds, command, suffix) in kinds.items():
    if kind != "config":
        for text in seeds:
            pathlib.Path(f"seed.{suffix}").write_bytes(text)
            call(["meshwright", "compile", *command(f"seed.{suffix}")])

broken = []
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for kind, (seeds, command, suffix) in kinds.items():
        draw = random.Random(f"{seed} {kind}")
        inputs = [(f"{kind}-{number}.{suffix}", mutate(draw.choice(seeds), seeds, draw)) for number in range(count)]
        results = list(pool.map(lambda entry: outcome(*entry, command(entry[0])), inputs))
        table = collections.Counter("broken" if result not in ("compiled", "refused") else result for result in results)
        print(f"{kind}: " + ", ".join(f"{table[word]} {word}" for word in ("compiled", "refused", "broken")))
        broken += [f"{work / name}: {result}" for (name, _), result in zip(inputs, results) if result not in ("compiled", "refused")]
if broken:
    sys.exit(f"FAILED: {len(broken)} inputs break the compiler:\n" + "\n".join(broken[:10]))
