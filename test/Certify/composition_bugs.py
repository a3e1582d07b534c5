#!/usr/bin/env python3
"""Plants published bugs of parallel composition in programs of ranks: the certificate must refuse each.

  composition_bugs.py WORK [--write]

For each bug of BUGS a model is compiled; its program must be proved, and agree with the training graph on the interpreter
in f64. Then the bug is planted: `meshwright certify` must refuse the program, and the interpreter must find other numbers. The
table of docs/composition-bugs.md must be what comes of it; --write writes it there.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

from faults import GOLDEN, MODELS_FILE, NAME, Program

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/composition-bugs.md"
BEGIN, END = "<!-- begin: test/Certify/composition_bugs.py -->", "<!-- end -->"
SEQUENCE = "--mesh data=2,tensor=2 --sequence-parallel --microbatches 2"
CONTEXT = "--mesh data=2,context=2 --context-parallel gather --context-balance none"
EXPERT = "--mesh data=2,expert=2"


def removed(pattern):
    """The first op that matches returns its operand instead."""

    def plant(program):
        at, statement = find(program, pattern)
        found = re.match(rf"({NAME}) = [\w.]+ (?:sum |max )?({NAME}(?:#\d+)?)", statement)
        return program.renamed(at, found[1], found[2])

    return plant


def doubled(pattern):
    """The first op that matches runs again on its result."""

    def plant(program):
        at, statement = find(program, pattern)
        result, x = re.match(rf"({NAME}) = dist.all_reduce \w+ ({NAME}(?:#\d+)?)", statement).groups()
        again = statement.replace(result + " =", "%again =").replace(x + " over", result + " over")
        return program.renamed(at, result, "%again", ["    " + statement, "    " + again])

    return plant


def scaled(pattern, factor):
    """The result of the first op that matches is `factor` times as large."""

    def plant(program):
        at, statement = find(program, pattern)
        result, type = re.match(rf"({NAME}) = .* -> (\S+)$", statement).groups()
        scale = f"%scaled = train.scale {result} by {float(factor)} : ({type}) -> {type}"
        return program.renamed(at, result, "%scaled", ["    " + statement, "    " + scale])

    return plant


def replaced(pattern, old, new):
    """In the first op that matches."""

    def plant(program):
        at, statement = find(program, pattern)
        assert re.search(old, statement), statement
        return program.replaced(at, "    " + re.sub(old, new, statement, count=1))

    return plant


def find(program, pattern):
    for at, statement in enumerate(program.statements):
        if statement.startswith("    ") and re.search(pattern, statement):
            return at, statement.strip()
    sys.exit(f"FAIL no op is as /{pattern}/")


# (what is wrong, where it was published, model, flags, how it is planted)
BUGS = [
    ("Gradients of norms are not summed over tensor ranks with sequence parallelism",
     "NVIDIA/Megatron-LM/issues/1446", "gpt2", SEQUENCE,
     replaced(r"all_reduce sum .*over <@mesh \{data, tensor\}> : \(tensor<2x64xf32>\)", r"\{data, tensor\}", "{data}")),
    ("Sums over the vocabulary are added over tensor ranks though each has them all: the loss is log(ranks) too large",
     "NVIDIA/Megatron-LM/issues/7452", "gpt2", SEQUENCE,
     doubled(r"%loss_\d+ = dist.all_reduce sum .*over <@mesh \{tensor\}> : \(tensor<2x16xf32>\)")),
    ("The target's logit is looked up with the whole vocabulary's ids in a rank's part of it",
     "modelscope/ms-swift/pull/9947", "gpt2", SEQUENCE, removed(r"train.shift_ids %targets")),
    ("The clip norm counts gradients that every tensor rank has once for each rank",
     "NVIDIA-NeMo/RL/pull/3788", "gpt2", SEQUENCE,
     replaced(r"all_reduce sum %square_sum.* over <@mesh \{tensor\}>", r"sum %square_sum\w*", "sum %square_sum_25")),
    ("The clip norm of each expert-parallel group is of its own experts",
     "NVIDIA-NeMo/Automodel/issues/3816", "olmoe", EXPERT, removed(r"all_reduce sum %square_sum.* over <@mesh \{expert\}>")),
    ("Gradients of experts are added to those of other experts",
     "NVIDIA/Megatron-LM/pull/5916", "olmoe", EXPERT,
     replaced(r"all_reduce sum .*over <@mesh \{data\}> : \(tensor<2x4x12x16xf32>\)", r"\{data\}", "{data, expert}")),
    ("Gradients of experts are as many times too large as there are expert-parallel ranks",
     "NVIDIA/Megatron-LM/pull/5956", "olmoe", EXPERT,
     scaled(r"all_reduce sum .*over <@mesh \{data\}> : \(tensor<2x4x12x16xf32>\)", 2)),
    ("The router gets the gradient of a rank's own tokens alone",
     "huggingface/transformers/issues/48687", "olmoe", EXPERT,
     replaced(r"all_reduce sum .*over <@mesh \{data, expert\}> : \(tensor<2x8x16xf32>\)", r"\{data, expert\}", "{data}")),
    ("A rank's loss is divided by another number of tokens than the batch has",
     "NVIDIA-NeMo/Automodel/pull/3830", "llama", CONTEXT,
     replaced(r"train.cross_entropy_grad", r"scale 1\.0", "scale 2.0")),
    ("Gradients are multiplied by the number of context-parallel ranks",
     "NVIDIA/Megatron-LM/issues/673", "llama", CONTEXT,
     doubled(r"all_reduce sum .*over <@mesh \{data, context\}> : \(tensor<4x64x64xf32>\)")),
    ("Rotary positions of each rank's part of a sequence begin at 0",
     "NVIDIA/Megatron-LM/pull/1612", "llama", CONTEXT, replaced(r"train.rope_table", r" offset %[\w.]+ : \(tensor<i32>\)", " : ()")),
    ("Dropout is the same on each rank's part of a sequence",
     "NVIDIA/Megatron-LM/issues/1256", "gpt2", SEQUENCE + " --dropout 0.1",
     replaced(r"train.dropout", r" offsets\(%[\w.]+\)(.*) \{offset_dims = array<i64: 1>\} : \((.*), tensor<i32>\)", r"\1 : (\2)")),
    ("Microbatches are weighed by their number, not by their tokens",
     "ml-explore/mlx-lm/pull/1413", "gpt2", SEQUENCE, scaled(r"train.cross_entropy_grad", 0.5)),
    ("One of two uses of tied embeddings has no gradient",
     "uw-syfi/piper/issues/13", "gpt2", SEQUENCE,
     replaced(r"= train.add .*tensor<128x64xf32>", r"train.add (%[\w.#]+), (%[\w.#]+)", r"train.add \1, \1")),
    ("Activations are gathered over another group of ranks",
     "NVIDIA/Megatron-LM/issues/7452", "gpt2", SEQUENCE,
     replaced(r"dist.all_gather .*over <@mesh \{tensor\}>", r"\{tensor\}", "{data}")),
]


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


def config_of(model, work):
    if (GOLDEN / f"{model}-tiny").exists():
        return GOLDEN / f"{model}-tiny/config.json"
    path = work / model / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(json.loads(MODELS_FILE.read_text())[model]["config"]))
    return path


def reason_of(judged):
    for line in judged.stderr.splitlines():
        if "not proved: " in line:
            return line[line.index("not proved: ") + len("not proved: ") :]
    return None


def difference(judged):
    """What the interpreter found first, as "`grad_norm` by 0.01", relative to its norm."""
    for pattern in (r"error: (\S+) .*differs from .* by ([\d.e+-]+) \(relative\)", r"@\w+: (\S+) differs: norm of the difference over norm ([\d.e+-]+),"):
        if found := re.search(pattern, judged.stderr):
            return f"`{found[1]}` by {float(found[2]):.1g}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    programs = {}
    rows, failures = [], []
    for number, (what, where, model, flags, plant) in enumerate(BUGS):
        files = programs.get((model, flags))
        if not files:
            files = {phase: args.work / f"{len(programs)}-{phase}.mlir" for phase in ("step", "local")}
            for phase, file in files.items():
                made = run("meshwright", "compile", config_of(model, args.work), *flags.split(), "--batch", 8, "--seq", 16,
                           "--emit", phase, "-o", file)
                if made.returncode:
                    sys.exit(f"FAIL {model} {flags}: {made.stderr}")
            proved = run("meshwright", "certify", files["step"], files["local"])
            same = run("meshwright-interpret", "--compare", files["step"], files["local"], "--function", "step", "--tolerance", "1e-9")
            if proved.returncode or same.returncode:
                sys.exit(f"FAIL {model} {flags} without a bug: {proved.stderr}{same.stderr}")
            programs[model, flags] = files
        text = plant(Program(files["local"].read_text()))
        bad = args.work / f"bug{number}.mlir"
        bad.write_text(text)
        reason = reason_of(run("meshwright", "certify", files["step"], bad))
        for function in ("step", "eval"):
            judged = run("meshwright-interpret", "--compare", files["step"], bad, "--function", function)
            if found := difference(judged):
                break
        if not reason or not found:
            failures.append(f"FAIL {what}: certificate: {reason}, interpreter: {judged.stdout}{judged.stderr[:600]}")
        rows.append(f"| {what} | [{where.split('/')[1]} {where.split('/')[-1]}](https://github.com/{where}) | {model}, `{flags}` | {reason} | {found} |")
    for failure in failures:
        print(failure)
    if failures:
        sys.exit(1)
    table = "\n".join(["| bug | published in | program | the certificate says | interpreter: differs |", "|---|---|---|---|---|", *rows])
    page = PAGE.read_text()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    if args.write:
        PAGE.write_text(page[:begin] + "\n" + table + "\n" + page[end:])
    elif page[begin:end].strip() != table:
        (args.work / "table.md").write_text(table)
        sys.exit(f"FAIL docs/composition-bugs.md has another table than {args.work}/table.md; composition_bugs.py WORK --write writes it")
    print(f"{len(BUGS)} bugs: each is refused, and computes other numbers")


if __name__ == "__main__":
    main()
