#!/usr/bin/env python3
"""muP: nothing at the base; wider models begin and step as the rules say, which are written again here by the shapes of files; and
losses are the same on every mesh: mup.py GOLDEN WORK STRATEGY... [--all]

GOLDEN is the folder of a small GPT-2, `gpt2-tiny`, beside which are other models. Without --all each model has one optimizer of each
kind, and not the same one.
"""
import json
import math
import pathlib
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from compare import read_safetensors
from harness import INPUTS, Golden, call, changed, check, compile, distance, fresh, interpreted, ranks_of, strategy, train

goldens = [Golden(pathlib.Path(sys.argv[1]).parent / name) for name in ("gpt2-tiny", "llama-tiny")]
fresh(sys.argv[2])
everything = "--all" in sys.argv
strategies = [word for word in sys.argv[3:] if word != "--all"]
HIDDEN, HEADS, INNER = (("n_embd", "hidden_size"), ("n_head", "num_attention_heads", "num_key_value_heads"), ("intermediate_size",))


def widened(config, times, inner=None):
    """The file of a configuration with `times` as many heads and as large a hidden size, and `inner` times as wide an MLP."""
    wide = json.loads(pathlib.Path(config).read_text())
    for keys, factor in ((HIDDEN, times), (HEADS, times), (INNER, inner or times)):
        wide.update({key: int(wide[key] * factor) for key in keys if key in wide})
    pathlib.Path("wide.json").write_text(json.dumps(wide))
    return "wide.json"


def by_shapes(golden):
    """What each tensor's shape says: its width multipliers (fan-in, fan-out). GPT-2's matrices are [in, out]."""
    shapes = {}
    for name in ("base", "wide"):
        train(f"./{name}", save=f"{name}-start", **dict(golden.data, steps=1, lr=0))
        shapes[name] = {tensor: (shape, values) for tensor, (shape, values) in
                        read_safetensors(f"{name}-start/latest/model.safetensors").items()}
    check(set(shapes["base"]) == set(shapes["wide"]), "the models have other tensors")
    for tensor, (shape, values) in shapes["wide"].items():
        base, of_base = shapes["base"][tensor]
        ratios = [a / b for a, b in zip(shape, base)]
        embeds = any(part in tensor for part in ("wte", "wpe", "embed_tokens", "lm_head"))
        if len(shape) == 1 or embeds:
            yield tensor, 1, ratios[-1], values, of_base
        else:
            yield tensor, *(ratios if "c_" in tensor else ratios[::-1]), values, of_base


def steps(exe, rows, **run):
    """How far the element of each tensor that moves most moves in a step."""
    train(exe, save="stepped", **run)
    after = read_safetensors("stepped/latest/model.safetensors")
    return {tensor: max(abs(a - b) for a, b in zip(after[tensor][1], values)) for tensor, _, _, values, _ in rows}


def deviation(values):
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean)**2 for value in values) / len(values))


def sample(rows):
    """Those that the model has."""
    return rows if everything else rows[goldens.index(golden)::len(goldens)]


for golden in goldens:
    size = golden.size
    # At the base: the plan and the bits.
    compile(golden.config, "plain", **size)
    compile(golden.config, "same", mup_base=golden.config, **size)
    plans = [call(["meshwright", "inspect", "--json", exe]) for exe in ("plain", "same")]
    check(plans[0] == plans[1], "a model that is its own base has another plan")
    run = dict(golden.data, steps=4, lr=1e-2)
    check(train("./plain", **run) == train("./same", **run), "a model that is its own base has other losses")

    # Initial weights; rates by Lion, whose steps have the size of the rate, and by SGD against parameter groups that undo them.
    wide = widened(golden.config, 2, 3)
    for optimizer, rate in sample((("lion", lambda fan_in, fan_out: 1 / fan_in), ("sgd", lambda fan_in, fan_out: fan_out / fan_in))):
        compile(golden.config, "base", optimizer=optimizer, **size)
        said = compile(wide, "wide", optimizer=optimizer, mup_base=golden.config, **size)
        check("note: --mup-base multiplies logits by 0.5, which config.json does not say" in said, said)
        rows = list(by_shapes(golden))
        for tensor, fan_in, fan_out, values, of_base in rows:
            have, want = deviation(values), deviation(of_base) / (math.sqrt(fan_in) if fan_out != 1 else fan_in)
            check(have == want == 0 or abs(have / want - 1) < 0.1, f"{tensor} begins with a deviation of {have}, not {want}")
        start = dict(golden.data, init="wide-start/latest/model.safetensors", steps=1, grad_clip=0, lr=1e-3 if optimizer == "lion" else 1)
        unit = {tensor: 1e-3 for tensor, *_ in rows}
        if optimizer == "sgd":
            groups = {re.sub(r"\.\d+\.", ".*.", "*" + tensor): f"lr={1 / rate(fan_in, fan_out)}" for tensor, fan_in, fan_out, *_ in rows}
            compile(wide, "undone", optimizer=optimizer, mup_base=golden.config, **size,
                    optimizer_groups=";".join(f"{pattern}:{factor}" for pattern, factor in groups.items()))
            unit = steps("./undone", rows, **start)
        moved = steps("./wide", rows, **dict(start, weight_decay=0 if optimizer == "lion" else None))
        for tensor, fan_in, fan_out, *_ in rows:
            have, want = moved[tensor], unit[tensor] * rate(fan_in, fan_out)
            check(abs(have - want) <= 2e-3 * want, f"a step of {tensor} by {optimizer} is {have}, not {want}")
        print(f"{golden.directory.name} {optimizer}: {len(rows)} tensors begin and step as their shapes say", flush=True)

    # All meshes, from initial weights of their own.
    # With a larger eps Adam does not make whole steps of gradients that are but rounding errors.
    for optimizer, more in sample((("adamw", {"lr": 1e-3, "eps": 1e-4}), ("sgd-momentum", {"lr": 0.01}))):
        options = dict(size, optimizer=optimizer, mup_base=golden.config)
        run = dict(golden.data, steps=4, weight_decay=0.1, **more)
        want = interpreted(wide, options, run)
        compile(wide, "exe", **options)
        one = train("./exe", **run)
        off = distance(one, want)
        print(f"{golden.directory.name} {optimizer} one rank: loss {off:.1e} from the interpreter's", flush=True)
        check(off <= 1e-5, f"a loss is off by {off:.2e}")
        for item in strategies:
            shape = strategy(item)
            compile(wide, "exe", **dict(options, **shape))
            off = distance(train("./exe", ranks_of(shape["mesh"]), **run), one)
            print(f"{golden.directory.name} {optimizer} {item}: loss {off:.1e} from one rank's", flush=True)
            check(off <= 1e-6, f"a loss is off by {off:.2e}")

# The program that generates text has the factors too: it samples what a plain one does from a checkpoint whose last norm has that of logits.
golden = goldens[0]
wide = widened(golden.config, 2)
compile(wide, "exe", mup_base=golden.config, **golden.size)
train("./exe", save="start", **dict(golden.data, steps=3, lr=0.05))
half = lambda name, count: [value / 2 for value in read_safetensors("start/latest/model.safetensors")[name.removeprefix("transformer.")][1]] if ".ln_f." in name else None
changed("start/latest/model.safetensors", "half.safetensors", half)
compile(wide, "plain", **golden.size)
texts = [call([exe, "--generate", "The", "--init", init, "--tokenizer", "bytes", "--tokens", 40, "--seed", 3], errors="replace").split("\nnote:")[0]
         for exe, init in (("./exe", "start/latest/model.safetensors"), ("./plain", "half.safetensors"), ("./plain", "start/latest/model.safetensors"))]
check(texts[0] == texts[1] != texts[2], f"generated is {texts}")
print("gpt2-tiny: generates by the factor of logits")

# Granite has keys for the factor of logits and of scores, and parameter groups those of rates: muP is what they say together.
granite = INPUTS / "golden-more/granite/config.json"
wide = json.loads(pathlib.Path(widened(granite, 4)).read_text())
pathlib.Path("data.bin").write_bytes(bytes(i * i % 127 for i in range(1000)))
size, run = {"batch": 4, "seq": 16, "optimizer": "lion"}, {"data": "data.bin", "tokens": "u8", "lr": 1e-2, "weight_decay": 0.5}
pathlib.Path("granite.json").write_text(json.dumps(wide))
compile("granite.json", "exe", mup_base=granite, **size)
train("./exe", save="start", **dict(run, steps=1, lr=0))
run = dict(run, steps=5, init="start/latest/model.safetensors")
have = train("./exe", **run)
pathlib.Path("by-hand.json").write_text(json.dumps(dict(wide, logits_scaling=4 * wide["logits_scaling"])))
compile("by-hand.json", "exe", optimizer_groups="*_proj.weight:lr=0.25,decay=4", **size)
check(have == train("./exe", **run), "muP differs from its factors, written by hand")
compile("granite.json", "exe", **size)
check(have != train("./exe", **run), "muP changes nothing")
print("granite: the losses of the factors written by hand")

# What cannot be checked exits with 2, growth with 1.
for status, args in ((2, ["--widths", "16"]), (1, ["--widths", "16,64", "--steps", 1, "--growth", 1]), (0, ["--widths", "16,64", "--steps", 1, "--growth", 1000])):
    done = subprocess.run(["meshwright", "coord-check", str(granite), "--seq", "8", *map(str, args)], capture_output=True, text=True)
    check(done.returncode == status, f"coord-check {args} exits with {done.returncode}: {done.stdout}{done.stderr}")
