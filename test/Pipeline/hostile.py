#!/usr/bin/env python3
"""Gives the compiler what no sane user writes: it refuses or compiles, but is never ended by a signal, never runs out of
memory or time, and says what is wrong once.

  hostile.py passes GOLDEN WORK            IR of every stage to every pass alone
  hostile.py mutate GOLDEN WORK FIRST LAST random changes of configurations, recipes and IR, by seeds FIRST to LAST-1
  hostile.py settings GOLDEN WORK FIRST LAST
                                           random changes of other systems' settings to convert
"""
import concurrent.futures
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import sys

# Strategies that give modules of every form: one program, a program for each stage, servers and workers.
forms = {"plain": [], "mesh": ["--mesh", "data=2,tensor=2", "--zero", "2"],
         "pipe": ["--mesh", "pipe=2,data=2", "--microbatches", "2"],
         "server": ["--mesh", "data=2", "--data-sync", "parameter-server"]}
stages = ["train", "step", "dist", "local", "stages", "schedule", "exec"]
size = ["--batch", "8", "--seq", "8"]


def run(*command):
    """Exit status and standard error, within 4 GiB and a minute."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, timeout=60, preexec_fn=limit)
        return done.returncode, done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return "more than a minute", ""


def in_parallel(check, cases):
    """The problems of all cases; each is a text or empty."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        return [problem for problem in workers.map(check, cases) if problem]


def modules(config, chosen):
    """IR of each stage for the forms in `chosen`, by name."""
    result = {}
    for form in chosen:
        for stage in stages:
            command = ["meshwright", "compile", config, *size, *forms[form], "--emit", stage, "-o", "-"]
            result[f"{form}-{stage}"] = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return result


def passes(config):
    help = subprocess.run(["meshwright-opt", "--help"], capture_output=True, text=True, check=True).stdout
    names = sorted(set(re.findall(r"^ +--((?:train|dist|exec)-[a-z-]+)", help, re.M)))
    assert len(names) > 30, names
    # Options without which a pass does nothing, or does what others do not.
    options = {"train-split-layers": ["chunks=2"], "train-mixed-precision": ["precision=bf16"],
               "dist-apply-strategy": ["mesh=data=2,tensor=2 zero=3", "mesh=pipe=2 data-sync=parameter-server"],
               "dist-rematerialize": ["policy=full", "policy=sqrt"], "exec-schedule-kernels": ["target=cuda"],
               "dist-decompose-collectives": ["algorithm=ring"], "exec-slice-updates": ["part-bytes=64"],
               "exec-offload": ["optimizer=host activations=host", "optimizer=ssd parameters=ssd"], "exec-fuse-epilogues": ["epilogues=bias,addend,gelu"],
               "exec-overlap-collectives": ["min-bytes=0"], "dist-loop-collectives": ["max-devices=2"]}
    whole = modules(config, forms)
    # Hand-written text does not say its stage.
    bare = {name + " without its phase": re.sub(r'meshwright.phase = "\w+",? ?', "", text) for name, text in whole.items()}
    pathlib.Path("all.mlir").write_text("// -----\n".join([*whole.values(), *bare.values()]))

    def check(case):
        name, given = case
        pipeline = f"--pass-pipeline=builtin.module({name}{{{given}}})" if given else f"--{name}"
        status, _ = run("meshwright-opt", pipeline, "--split-input-file", "all.mlir", "-o", "/dev/null")
        if status in (0, 1):
            return ""
        for what, text in {**whole, **bare}.items():
            pathlib.Path(f"{name}.mlir").write_text(text)
            status, errors = run("meshwright-opt", pipeline, f"{name}.mlir", "-o", "/dev/null")
            if status not in (0, 1):
                return f"meshwright-opt {pipeline} on {what}: {status}\n{errors[-2000:]}"
        return f"meshwright-opt {pipeline} on all files at once: {status}"

    cases = [(name, given) for name in names for given in ["", *options.get(name, [])]]
    problems = in_parallel(check, cases)
    # And IR past the stage says so, where it once went on.
    pathlib.Path("late.mlir").write_text(whole["pipe-schedule"])
    for name in ("dist-apply-strategy", "dist-partition", "train-autodiff"):
        status, errors = run("meshwright-opt", f"--{name}", "late.mlir")
        if status != 1 or f"the module is at phase schedule, past {name}" not in errors:
            problems.append(f"{name} on IR of phase schedule: {status}\n{errors}")
    print(f"{len(cases)} passes with options on {len(whole) + len(bare)} modules")
    return problems


def number(random):
    """A number that is likely to be on an edge."""
    return random.choice([0, 1, -1, 2, 3, 7, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, -2**63, 2**64, 10**30,
                          0.5, -0.0, 1e308, 1e-320, random.randrange(1, 100), random.randrange(1, 2**31)])


def mutated_config(text, random):
    config = json.loads(text)
    for _ in range(random.randrange(1, 4)):
        key = random.choice(list(config))
        kind = random.randrange(6)
        if kind < 3:
            config[key] = number(random)
        elif kind == 3:
            config[key] = random.choice([None, True, "", "x" * 1000, [], {}, [config[key]], {key: config[key]}, "gelu", "llama"])
        elif kind == 4:
            del config[key]
        else:
            config[random.choice(list(config)) + "x"] = config[key]
        if not config:
            break
    return damaged(json.dumps(config), random) if random.randrange(4) == 0 else json.dumps(config)


def mutated_recipe(text, random):
    lines = text.splitlines()
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(lines))
        key = lines[at].split("=")[0]
        value = random.choice([str(number(random)), '""', '"data=2"', '"full"', '"99999999999999999999GiB"', "[1]", "{}", "true",
                               '"every:0"', '"every:99999999999"', '"price:1e400"', '"1,1,1"', '"interleaved:0"',
                               '"interleaved:99999999"', '"tensor=2x2"', '"pipe=1000000"', '"data=65536,tensor=16"'])
        lines[at] = f"{key}= {value}"
    text = "\n".join(lines) + "\n"
    return damaged(text, random) if random.randrange(4) == 0 else text


def damaged(text, random):
    at, length = random.randrange(len(text)), random.randrange(1, 40)
    return random.choice([text[:at], text[:at] + text[at + length:], text[:at] + text[at:at + length] + text[at:],
                          text[:at] + random.choice("[]{}\"\\\0,:=.<>x") * length + text[at:]])


def mutated_module(text, random):
    for _ in range(random.randrange(1, 3)):
        kind = random.randrange(8)
        lines = text.split("\n")
        if kind == 0:  # without a line
            del lines[random.randrange(len(lines))]
            text = "\n".join(lines)
        elif kind == 1:  # a line again elsewhere
            lines.insert(random.randrange(len(lines)), random.choice(lines))
            text = "\n".join(lines)
        elif kind == 2:
            text = damaged(text, random)
        else:  # another number, name or type in all places or one
            word = random.choice([r"-?\b\d+\b", r"\d+x", r"%\w+", r"@[\w.]+", r"\"\w+\"", r"tensor<[^>]*>", r"\b(?:f32|i32)\b"])
            found = [m.group() for m in re.finditer(word, text)]
            if not found:
                continue
            old, new = random.choice(found), random.choice(found)
            if word == r"-?\b\d+\b" or word == r"\d+x":
                new = str(random.choice([0, 1, 2, 3, 5, 2**31, 2**62, -1])) + ("x" if "x" in word else "")
            if kind < 5:
                text = text.replace(old, new)
            else:
                places = [m for m in re.finditer(word, text) if m.group() == old]
                place = random.choice(places)
                text = text[:place.start()] + new + text[place.end():]
    return text


def mutate(config, first, last):
    config_text = config.read_text()
    recipe = 'mesh = "data=2,tensor=2"\nbatch = 8\nseq = 8\nmicrobatches = 2\nzero = 1\nremat = "none"\nschedule = "1f1b"\n' \
             'cuts = "1"\noptimizer = "adamw"\nmemory-limit = "1GiB"\noffload = "optimizer"\noffload-buffer = "1KiB"\n' \
             'dropout = "0.1"\nassert = "peak<=1GiB"\n[seeds]\n"h.mlp.c_fc.weight" = "[{tensor}, {}]"\n'
    llama = pathlib.Path(config.parent.parent / "llama-tiny" / "config.json").read_text()
    written = modules(config, forms)

    def check(seed):
        draw = random.Random(seed)
        kind = ("config", "recipe", "module")[seed % 3]
        if kind == "config":
            name, text = f"{seed}.json", mutated_config(draw.choice([config_text, llama]), draw)
        elif kind == "recipe":
            name, text = f"{seed}.toml", mutated_recipe(recipe, draw)
        else:
            name, text = f"{seed}.mlir", mutated_module(written[draw.choice(sorted(written))], draw)
        pathlib.Path(name).write_text(text)
        model = [config, "--recipe", name] if kind == "recipe" else [name, *(size if kind == "config" else [])]
        status, errors = run("meshwright", "compile", *model, "--emit", "exec", "-o", "/dev/null")
        said = len(re.findall(r"^meshwright: error: ", errors, re.M))
        if (status, said) in ((0, 0), (1, 1)):
            os.remove(name)
            return ""
        return f"seed {seed}: meshwright compile {name}: {status}, {said} messages\n{errors[-1500:]}"

    return in_parallel(check, range(first, last))


def mutated_settings(text, random):
    """A value of another type, a line elsewhere or of another file's kind, or damage."""
    for _ in range(random.randrange(1, 4)):
        lines = text.splitlines()
        kind, at = random.randrange(5), random.randrange(len(lines))
        if kind == 0:
            lines.insert(random.randrange(len(lines)), lines[at])
        elif kind == 1:
            del lines[at]
        elif kind < 4:
            value = random.choice([str(number(random)), "true", "null", '""', "auto", "[1, 2]", "[]", "{}", "$X", "${X:-2}", "$((2 ** 3", "*a",
                                   "&a 1", "!!int 3", "'", "|", "- - - 1", "? a", "1e999", "nan", "-", "--x=--y", "\u2028", "#"])
            lines[at] = re.sub(r"([=: ]\s*)\"?[\w.+-]+\"?(?=,?\s*$)", lambda m: m[1] + value, lines[at])
        text = "\n".join(lines) + "\n"
        if kind == 4:
            text = damaged(text, random)
    return text


def settings(inputs, first, last):
    files = sorted(inputs.iterdir())

    def check(seed):
        draw = random.Random(seed)
        file = files[seed % len(files)]
        name = f"{seed}{file.suffix}"
        pathlib.Path(name).write_text(mutated_settings(file.read_text(), draw))
        status, errors = run("meshwright", "convert", name, *draw.choice([[], ["--devices", "16"]]), "-o", f"{seed}.recipe")
        said = len(re.findall(r"^meshwright: error: ", errors, re.M))
        if (status, said) in ((0, 0), (1, 1)):
            os.remove(name)
            return ""
        return f"seed {seed}: meshwright convert {name}: {status}, {said} messages\n{errors[-1500:]}"

    return in_parallel(check, range(first, last))


what, golden, work = sys.argv[1:4]
config = pathlib.Path(golden).resolve() / "config.json"
os.makedirs(work, exist_ok=True)
os.chdir(work)
seeds = map(int, sys.argv[4:])
problems = passes(config) if what == "passes" else mutate(config, *seeds) if what == "mutate" else settings(
    config.parents[2] / "settings", *seeds)
sys.exit("\n".join([*problems, f"FAILED: {len(problems)}"]) if problems else 0)
