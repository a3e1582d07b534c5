#!/usr/bin/env python3
"""Plants faults in programs of ranks, one at a time, and demands that `meshwright certify` refuses each.

  faults.py WORK [--all] [--of N] [--certify COMMAND] [--strategies A,B] [--list]

WORK is a folder for files. Without --all N faults (default 12) are drawn from those of all strategies, each of one model;
with it all kinds of faults are planted at several places of each strategy and model. A fault is an edit of the text of a program at phase local, or schedule, that the
verifier accepts: what the verifier refuses is no fault of this test, and is counted. So is an edit with which the
interpreter computes the same, such as an operand in place of another of equal value. `--list` prints each fault with the
reason of its refusal.
"""
import argparse
import collections
import concurrent.futures
import json
import math
import pathlib
import random
import re
import subprocess
import sys

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "Inputs/golden"
MODELS_FILE = pathlib.Path(__file__).resolve().parents[1] / "Golden/models.json"
STRATEGIES = {
    "data": "--mesh data=2",
    "tensor": "--mesh tensor=2",
    "data-tensor-sequence-zero1": "--mesh data=2,tensor=2 --sequence-parallel --zero 1 --microbatches 2",
    "data-tensor-zero2": "--mesh data=2,tensor=2 --zero 2 --microbatches 2",
    "zero3": "--mesh data=4 --zero 3",
    "zero1-dropout": "--mesh data=2,tensor=2 --zero 1 --sequence-parallel --dropout 0.1",
    "context-heads": "--mesh data=2,context=2 --context-parallel ulysses --zero 1",
    "context-queries": "--mesh data=2,context=2 --context-parallel gather --context-balance none --zero 1",
    "tensor-2d": "--mesh tensor=2x2 --tensor-2d",
    "pipeline-muon": "--mesh pipe=2,data=2 --microbatches 2 --optimizer muon --zero 1",
    "hybrid-zero3-tensor-bf16": "--mesh replica=2,data=2,tensor=2 --zero 3 --sequence-parallel --precision bf16 --microbatches 2",
    "parameter-server": "--mesh data=2,tensor=2 --data-sync parameter-server",
    "expert": "--mesh data=2,expert=2 --zero 1",
    "expert-tensor": "--mesh expert=2,tensor=2 --sequence-parallel --microbatches 2",
    "padded": "--mesh tensor=3",
    "padded-zero1-dropout": "--mesh data=2,tensor=3 --zero 1 --sequence-parallel --dropout 0.1",
    "padded-uneven": "--mesh tensor=4 --microbatches 2",
    "padded-zero3": "--mesh data=4 --zero 3",
    "ring": "--mesh data=2,context=4 --context-balance none --zero 1",
    "ring-zigzag-dropout": "--mesh context=4 --dropout 0.1",
    "ring-striped": "--mesh context=4 --context-balance striped",
    "ring-latents": "--mesh context=4 --context-balance none",
    "ring-sinks": "--mesh context=4",
    "ring-hybrid": "--mesh context=2x2 --context-parallel hybrid",
    "balanced-queries": "--mesh context=4 --context-parallel gather",
    "loss-chunks": "--mesh data=2,tensor=2 --loss-parts 4",
    "stages-zero1": "--mesh pipe=2,data=2 --zero 1 --microbatches 4",
    "stages-split-weights": "--mesh pipe=2,tensor=2 --schedule zb-h1 --microbatches 4 --sequence-parallel",
    "recomputed": "--mesh data=2,context=2 --remat full --zero 3",
    "messages": "--mesh data=4 --collective-algorithm ring",
    "recomputed-groups": "--mesh data=2,tensor=2 --sequence-parallel --zero 1 --remat every:2",
    "products-in-steps": "--mesh data=2,tensor=3 --sequence-parallel --zero 3 --collective-matmul on",
    "products-in-steps-2d": "--mesh data=2,tensor=2x2 --tensor-2d --sequence-parallel --collective-matmul on",
    "expert-parts": "--mesh data=2,expert=2 --zero 1 --expert-parts 3",
    "expert-parts-rounds": "--mesh expert=2 --expert-parts 2 --expert-buffer 0.5",
    "stages-messages": "--mesh pipe=2,data=2 --zero 1 --microbatches 2 --collective-algorithm parallel --loss-parts 2",
    "stages-counts": "--mesh pipe=2,expert=2 --microbatches 2 --aux-loss hf --aux-counting-pass --loss-parts 4",
    "padded-adafactor": "--mesh tensor=3 --optimizer adafactor-scaled",
    "padded-ring": "--mesh context=2",
}
LENGTHS = {"padded-ring": "15"}  # of sequences, if not 16
# The phase of a strategy's programs, if not local.
PHASES = {"stages-zero1": "schedule", "stages-split-weights": "schedule", "recomputed": "schedule", "messages": "schedule",
          "recomputed-groups": "schedule", "products-in-steps": "schedule", "products-in-steps-2d": "schedule",
          "stages-messages": "schedule", "stages-counts": "schedule"}
# Models of a strategy, if not gpt2 and llama: golden models by their names in test/Golden/models.json.
MODELS = {"expert": ("olmoe", "gpt-oss"), "expert-tensor": ("olmoe", "sparse-deepseek-v3"),
          "padded": ("gpt2-odd", "llama-mqa"), "padded-uneven": ("gpt2-odd", "bloom"), "padded-zero3": ("gpt2-odd", "olmoe"),
          "ring-sinks": ("gpt-oss",), "ring-latents": ("deepseek-v2",), "expert-parts": ("olmoe",), "expert-parts-rounds": ("olmoe",),
          "stages-counts": ("olmoe",), "padded-adafactor": ("gpt2-odd", "llama-mqa"), "padded-ring": ("falcon-h1", "llama-mqa")}
NAME = r"%[\w.$-]+"
# What is not linear, so that a sum must be complete before it.
NONLINEAR = ("log", "exp", "gelu", "silu", "add")


class Program:
    """The text of a module as statements; a statement of several lines is one."""

    def __init__(self, text):
        self.statements = []
        for line in text.splitlines():
            if line.startswith("        ") and self.statements:
                self.statements[-1] += " " + line.strip()
            else:
                self.statements.append(line)
        self.ends = {}  # by statement: where its function ends
        end = len(self.statements)
        for i in range(len(self.statements) - 1, -1, -1):
            if self.statements[i] in ("  }", "    }"):
                end = i
            self.ends[i] = end
        mesh = re.search(r"dist\.mesh @\w+ \[(.*)\]", text)
        self.axes = {name: int(size) for name, size in re.findall(r'"([\w.]+)" = (\d+)', mesh[1])}

    def replaced(self, at, *statements):
        return "\n".join(self.statements[:at] + list(statements) + self.statements[at + 1 :]) + "\n"

    def renamed(self, at, old, new, statements=()):
        """Without the statement `at`, whose result `old` is `new` behind it."""
        use = re.compile(re.escape(old) + r"(?![\w.$#:-])")
        behind = [use.sub(lambda _: new, s) for s in self.statements[at + 1 : self.ends[at]]]
        return "\n".join(self.statements[:at] + list(statements) + behind + self.statements[self.ends[at] :]) + "\n"

    def faults(self):
        """(kind, statement, text) for each fault."""
        for at, statement in enumerate(self.statements):
            if not statement.startswith("    "):
                continue
            for kind, text in self.faults_of(at, statement.strip()):
                yield kind, statement.strip(), text

    def groups(self, statement):
        """The statement with other groups of devices."""
        found = re.search(r"over <@mesh \{(.*?)\}>", statement)
        if not found:
            return
        axes = found[1].split(", ")
        others = [a for a in self.axes if a not in axes]
        choices = [[o if a == axes[0] else a for a in axes] for o in others if self.axes[o] == self.axes[axes[0]]]
        if len(axes) > 1 and "all_reduce" not in statement:
            choices.append(axes[::-1])
        if "all_reduce" in statement:
            choices += [axes + [o] for o in others] + ([axes[1:]] if len(axes) > 1 else [])
        for choice in choices:
            yield statement.replace(found[0], "over <@mesh {" + ", ".join(choice) + "}>")

    def faults_of(self, at, statement):
        result = re.match(rf"({NAME}) = ", statement)
        result = result and result[1]
        for other in self.groups(statement):
            yield "group", self.replaced(at, "    " + other)
        if found := re.search(r" part (\d+) of (\d+)", statement):
            part = (int(found[1]) + 1) % int(found[2])
            yield "part", self.replaced(at, "    " + statement.replace(found[0], f" part {part} of {found[2]}"))
        if found := re.search(r" keys (\d+)", statement):
            for keys in (int(found[1]) - 1, int(found[1]) + 1):
                yield "keys", self.replaced(at, "    " + statement.replace(found[0], f" keys {keys}"))
        if found := re.match(rf"{NAME} = dist\.all_reduce (\w+) ({NAME}) over", statement):
            kind, x = found.groups()
            yield "removed", self.renamed(at, result, x)
            again = statement.replace(result + " =", "%again =").replace(x + " over", result + " over")
            yield "doubled", self.renamed(at, result, "%again", ["    " + statement, "    " + again])
            other = "max" if kind == "sum" else "sum"
            yield "kind", self.replaced(at, "    " + statement.replace(f"all_reduce {kind}", f"all_reduce {other}"))
            yield from self.moved(at, statement, result, x)
        if found := re.match(rf"{NAME} = dist\.reduce_scatter sum (.*)", statement):
            yield "not reduced", self.replaced(at, f"    {result} = dist.slice {found[1]}")
        if found := re.match(rf"{NAME} = dist\.slice ({NAME}(?:#\d+)? dim \d+) (?:shift (\d+) )?over <@mesh \{{(.*?)\}}>", statement):
            other = (int(found[2] or 0) + 1) % math.prod(self.axes[axis] for axis in found[3].split(", "))
            shifted = f"{found[1]} shift {other} over <" if other else f"{found[1]} over <"
            yield "part", self.replaced(at, "    " + re.sub(rf"{re.escape(found[1])} .*?over <", lambda _: shifted, statement, count=1))
        if found := re.match(rf"{NAME} = dist\.concat ({NAME}(?:#\d+)?), ({NAME}(?:#\d+)?)", statement):
            yield "part", self.replaced(at, "    " + statement.replace(f"{found[1]}, {found[2]}", f"{found[2]}, {found[1]}", 1))
        if found := re.match(rf".* = train\.repeat @\S+ x \d+ (?:reverse )?carry\(({NAME})\).* : \((tensor<\S+>), ", statement):
            start = max(i for i in range(at) if self.statements[i].lstrip().startswith("func.func"))
            function = " ".join(self.statements[start:at])
            others = [x for x in re.findall(rf"({NAME}): {re.escape(found[2])}", function) if x != found[1]]
            yield from (("start", self.replaced(at, "    " + statement.replace(f"carry({found[1]})", f"carry({x})", 1))) for x in others)
        if found := re.match(rf"{NAME} = dist\.slice (.*)", statement):
            yield "copies added", self.replaced(at, f"    {result} = dist.reduce_scatter sum {found[1]}")
        if found := re.match(rf"{NAME} = dist\.(?:reduce sum|broadcast) ({NAME}(?:#\d+)?) root 0", statement):
            yield "root", self.replaced(at, "    " + statement.replace(" root 0 ", " root 1 ", 1))
            if "broadcast" in statement:
                yield "not sent", self.renamed(at, result, found[1])
        if found := re.match(rf"{NAME} = dist\.offset (\d+)", statement):
            for size in (int(found[1]) * 2, int(found[1]) + 1):
                yield "offset", self.replaced(at, "    " + statement.replace(f"offset {found[1]}", f"offset {size}", 1))
        if found := re.match(rf"{NAME} = train\.shift_ids ({NAME}),", statement):
            yield "offset", self.renamed(at, result, found[1])
        for pattern in (r"(?<=train\.scale )(?:.* by )(\S+)", r" scale (\S+) ", r" eps (\S+)"):
            if (found := re.search(pattern, statement)) and float(found[1]):
                number = f"{2 * float(found[1]):e}"
                yield "scale", self.replaced(at, "    " + statement[: found.start(1)] + number + statement[found.end(1) :])
        if found := re.search(r" x (\d+) times ", statement):
            fewer = statement.replace(found[0], f" x {int(found[1]) // 2} times ", 1)
            yield "rounds", self.replaced(at, "    " + fewer)
        if found := re.search(r"train\.rounds .* slots (\d+)", statement):
            yield "rounds", self.replaced(at, "    " + statement.replace(f"slots {found[1]}", f"slots {int(found[1]) + 1}", 1))
        if found := re.match(rf"{NAME} = train\.grouped_linear (?:transposed )?{NAME}, ({NAME}) of .* : \(tensor<\S+, (tensor<\S+>), ", statement):
            start = max(i for i in range(at) if self.statements[i].lstrip().startswith("func.func"))
            function = " ".join(self.statements[start:at])
            others = [w for w in re.findall(rf"({NAME}): {re.escape(found[2])}", function) if w != found[1]]
            yield from (("experts", self.replaced(at, "    " + statement.replace(f" {found[1]} of", f" {w} of"))) for w in others)
        if found := re.match(rf"{NAME} = train\.(?:top_k|route) .* k (\d+)", statement):
            yield "routing", self.replaced(at, "    " + statement.replace(f" k {found[1]}", f" k {int(found[1]) + 1}", 1))
        if found := re.match(rf"{NAME} = train\.mask ({NAME}(?:#\d+)?) .*below (\d+)", statement):
            yield "padding", self.renamed(at, result, found[1])
            for limit in (int(found[2]) - 1, int(found[2]) + 1):
                yield "padding", self.replaced(at, "    " + statement.replace(f"below {found[2]}", f"below {limit}", 1))
            if "{value = " in statement:
                yield "padding", self.replaced(at, "    " + re.sub(r" \{value = [^}]*\}", "", statement))
            if found := re.search(rf" offset {NAME}( dim .*), tensor<i32>\)", statement):
                yield "padding", self.replaced(at, "    " + statement[: found.start()] + found[1] + ")" + statement[found.end() :])
        if found := re.search(r"train\.token_loss .*below (\d+)", statement):
            yield "padding", self.replaced(at, "    " + statement.replace(f"below {found[1]}", f"below {int(found[1]) + 1}", 1))
        if found := re.search(r"train\.pad .*rows \d+ (?=:)", statement):
            yield "padding", self.replaced(at, "    " + statement[: found.end()] + "{value = 1 : i64} " + statement[found.end() :])
        if found := re.search(r"train\.slice .*? rows (\d+) ", statement):
            if " from " not in statement:
                yield "padding", self.replaced(at, "    " + statement.replace(" rows", " from 1 rows", 1))
        if found := re.search(r" heads (\d+) queries", statement):
            yield "padding", self.replaced(at, "    " + statement.replace(found[0], f" heads {int(found[1]) + 1} queries", 1))
        if found := re.match(rf"{NAME} = dist\.permute ({NAME}(?:#\d+)?) from \[(.*?)\]", statement):
            yield "not moved", self.renamed(at, result, found[1])
            ranks = [int(r) for r in found[2].split(", ")]
            if (other := [ranks.index(p) for p in range(len(ranks))]) != ranks:
                yield "direction", self.replaced(at, "    " + statement.replace(f"[{found[2]}]", str(other)))
            yield "direction", self.replaced(at, "    " + statement.replace(f"[{found[2]}]", str(ranks[1:] + ranks[:1])))
        if found := re.match(rf"({NAME}), ({NAME}) = train\.attention .* before\(({NAME}), ({NAME})\)", statement):
            without = self.renamed(at, found[1], found[3]).splitlines()
            use = re.compile(re.escape(found[2]) + r"(?![\w.$#:-])")
            yield "step", "\n".join(use.sub(lambda _: found[4], s) if at <= i < self.ends[at] - 1 else s for i, s in enumerate(without)) + "\n"
            shorter = statement.replace(f" before({found[3]}, {found[4]})", "", 1)
            yield "step", self.replaced(at, "    " + re.sub(r", tensor<\S+, tensor<\S+\) -> ", ") -> ", shorter, count=1))
        if found := re.match(rf"{NAME}(?:, {NAME})* = train\.attention(?:_grad)? (?:{NAME}, )*?({NAME}), ({NAME}), .* query_offset ({NAME}) key_offset ({NAME})", statement):
            yield "positions", self.replaced(at, "    " + statement.replace(f"key_offset {found[4]}", f"key_offset {found[3]}", 1))
            yield "positions", self.replaced(at, "    " + statement.replace(f"query_offset {found[3]}", f"query_offset {found[4]}", 1))
        if found := re.match(rf"{NAME}(?:, {NAME})* = train\.attention(_grad)? ({NAME}(?:#\d+)?(?:, {NAME}(?:#\d+)?)*)", statement):
            # The keys of another step: what the op reads, moved once more, or before it was moved.
            operands = found[2].split(", ")
            key = operands[2 if found[1] else 1]
            others = []
            for s in self.statements[at - 60 : at]:
                if moved := re.match(rf"\s+({NAME}) = dist\.permute ({NAME}(?:#\d+)?) from", s):
                    others += [moved[2]] if moved[1] == key else [moved[1]] if moved[2] == key else []
            for other in others:
                yield "stale", self.replaced(at, "    " + statement.replace(f" {key},", f" {other},", 1))
        if found := re.match(rf"{NAME} = dist\.take {NAME} at (\d+) : \(tensor<(\d+)x", statement):
            other = (int(found[1]) + 1) % int(found[2])
            yield "microbatch", self.replaced(at, "    " + statement.replace(f" at {found[1]} ", f" at {other} ", 1))
        if found := re.match(rf"dist\.send ({NAME}(?:#\d+)?) to \d+ channel (\d+) over", statement):
            yield "message", self.replaced(at)
            for later in range(at + 1, self.ends[at]):
                other = re.match(rf"\s+dist\.send ({NAME}(?:#\d+)?) to \d+ channel {found[2]} over", self.statements[later])
                if other and other[1] != found[1]:
                    # The values of two messages, where both are known before the first one.
                    yield "stale", self.replaced(later, self.statements[later].replace(other[1], found[1], 1))
                    break
        if found := re.match(rf"{NAME} = dist\.recv from \d+ channel (\d+) over .* : (\S+)$", statement):
            for before in range(at - 1, max(0, at - 200), -1):
                other = re.match(rf"\s+({NAME}) = dist\.recv from \d+ channel {found[1]} over .* : {re.escape(found[2])}$", self.statements[before])
                if other:
                    use = re.compile(re.escape(result) + r"(?![\w.$#:-])")
                    behind = [use.sub(lambda _: other[1], s) for s in self.statements[at + 1 : self.ends[at]]]
                    yield "stale", "\n".join(self.statements[: at + 1] + behind + self.statements[self.ends[at] :]) + "\n"
                    break
        if found := re.match(rf"{NAME} = dist\.broadcast {NAME}(?:#\d+)? root 1 ", statement):
            yield "root", self.replaced(at, "    " + statement.replace(" root 1 ", " root 0 ", 1))
        if found := re.match(rf"({NAME})(?::\d+)? = dist\.exchange .*pieces (\d+) .* send \[(.*?)\]", statement):
            for listed in re.findall(r" (?:send|receive|to|from) \[(.*?)\]", statement)[:4]:
                ranks = listed.split(", ")
                yield "message", self.replaced(at, "    " + statement.replace(f"[{listed}]", f"[{', '.join(ranks[1:] + ranks[:1])}]", 1))
            if " reducing sum " in statement:
                yield "message", self.replaced(at, "    " + statement.replace(" reducing sum ", " ", 1))
            else:
                yield "message", self.replaced(at, "    " + statement.replace(" exchange ", " exchange reducing sum ", 1).replace("dist.exchange ", "dist.exchange reducing sum ", 1))
        if found := re.search(r" (?:key|query)_stride (\d+)", statement):
            yield "positions", self.replaced(at, "    " + statement.replace(found[0], found[0].replace(found[1], "1"), 1))
        if found := re.match(rf"{NAME} = train\.add ({NAME}(?:#\d+)?), ({NAME}(?:#\d+)?) : \((.*), (.*)\) -> (.*)", statement):
            if found[3] == found[4] == found[5]:
                yield "term", self.renamed(at, result, found[1])
                yield "term", self.renamed(at, result, found[2])
        if " causal" in statement:
            yield "mask", self.replaced(at, "    " + statement.replace(" causal", "", 1))
        if "train.repeat" in statement and " reverse" in statement:
            yield "order", self.replaced(at, "    " + statement.replace(" reverse", "", 1))
        if found := re.match(rf"{NAME} = train\.accumulate ({NAME}(?:#\d+)?), ({NAME}(?:#\d+)?) :", statement):
            if "xf32>, tensor" in statement or "(tensor<f32>, tensor<f32>)" in statement:
                yield "accumulator", self.renamed(at, result, found[2])
            yield "accumulator", self.renamed(at, result, found[1])
        if statement.startswith("train.set "):
            yield "update", self.replaced(at)
        if found := re.match(rf'.* = train\.update "adamw" .*?({NAME}), ({NAME}), ({NAME}), ({NAME}), ', statement):
            swapped = statement.replace(f"{found[3]}, {found[4]}, ", f"{found[4]}, {found[3]}, ", 1)
            yield "operand", self.replaced(at, "    " + swapped)
        if found := re.match(rf"{NAME} = train\.(?:add|mul) ({NAME}(?:#\d+)?), ({NAME}(?:#\d+)?) : \((.*)\) ->", statement):
            left, right = found[3].split(", ")
            if left == right and found[1] != found[2]:
                yield "operand", self.replaced(at, "    " + statement.replace(f"{found[1]}, {found[2]} :", f"{found[1]}, {found[1]} :"))
        if found := re.match(rf"{NAME} = train\.(log|exp|gelu|silu)( tanh)? ({NAME}(?:#\d+)?) :", statement):
            yield "removed op", self.renamed(at, result, found[3])

    def moved(self, at, statement, result, x):
        """The reduction behind the op that needs it."""
        use = re.compile(re.escape(result) + r"(?![\w.$#:-])")
        users = [i for i in range(at + 1, self.ends[at]) if use.search(self.statements[i])]
        if len(users) != 1:
            return
        user = self.statements[users[0]].strip()
        found = re.match(rf"({NAME}) = train\.(\w+) .* -> (\S+)$", user)
        if not found or found[2] not in NONLINEAR or not statement.endswith("-> " + found[3]):
            return
        early = "    " + use.sub(lambda _: x, user).replace(found[1] + " =", "%early =", 1)
        late = "    " + use.sub(lambda _: found[1], statement).replace(x + " over", "%early over")
        statements = list(self.statements)
        statements[users[0]] = early + "\n" + late
        del statements[at]
        yield "misplaced", "\n".join(statements) + "\n"


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--of", type=int, default=12)
    parser.add_argument("--certify", default="meshwright certify")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--strategies", default="", help="those that have one of these words in their names")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    planted = []
    draw = random.Random(0)
    for number, (name, flags) in enumerate(STRATEGIES.items()):
        if args.strategies and not any(word in name for word in args.strategies.split(",")):
            continue
        models = MODELS.get(name, ("gpt2", "llama"))
        for model in models if args.all else (models[number % len(models)],):
            if name in MODELS:
                config = args.work / model / "config.json"
                config.parent.mkdir(exist_ok=True)
                config.write_text(json.dumps(json.loads(MODELS_FILE.read_text())[model]["config"]))
            else:
                config = GOLDEN / f"{model}-tiny/config.json"
            files = {}
            for phase in ("step", PHASES.get(name, "local")):
                kind = "step" if phase == "step" else "local"
                files[kind] = args.work / f"{name}-{model}-{kind}.mlir"
                made = run(["meshwright", "compile", config, *flags.split(), "--batch", "8", "--seq", LENGTHS.get(name, "16"), "--emit", phase,
                            "-o", files[kind]])
                if made.returncode:
                    sys.exit(f"{name}: {made.stderr}")
            whole = run([*args.certify.split(), files["step"], files["local"]])
            if whole.returncode:
                sys.exit(f"FAIL {name} {model} is refused: {whole.stderr}")
            by_kind = collections.defaultdict(list)
            for fault in Program(files["local"].read_text()).faults():
                by_kind[fault[0]].append(fault)
            for kind, faults in sorted(by_kind.items()):
                for fault in draw.sample(faults, min(12 if kind == "padding" else 3, len(faults))):
                    planted.append((name, model, files["step"], *fault))
    if not args.all:
        planted = draw.sample(planted, args.of)

    def judge(entry):
        number, (name, model, step, kind, statement, text) = entry
        file = args.work / f"fault{number}.mlir"
        file.write_text(text)
        judged = run([*args.certify.split(), step, file])
        if judged.returncode == 0:
            original = args.work / f"{name}-{model}-local.mlir"
            same = [run(["meshwright-interpret", "--compare", original, file, "--function", f]) for f in ("step", "eval")]
            judged.equal = not any(compared.returncode for compared in same)
        file.unlink()
        return judged

    refused, invalid, equal, accepted = 0, 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for entry, judged in zip(planted, pool.map(judge, enumerate(planted))):
            name, model, _, kind, statement, _ = entry
            if judged.returncode == 0 and judged.equal:
                equal += 1
                if args.list:
                    print(f"equal: {name} {model} {kind}: {statement[:160]}")
            elif judged.returncode == 0:
                accepted += 1
                print(f"FAIL accepted: {name} {model} {kind}: {statement[:160]}")
            elif "not proved: " not in judged.stderr:
                invalid += 1
                if args.list:
                    print(f"invalid: {kind}: {statement[:160]}\n    {judged.stderr[:300]}")
            else:
                refused += 1
                if args.list:
                    reason = judged.stderr[judged.stderr.index("not proved: "):].splitlines()[0]
                    print(f"{name} {model} {kind}: {statement[:120]}\n    {reason[:300]}")
    print(f"{len(planted)} faults: {refused} refused, {invalid} that the verifier refuses, {equal} that change nothing, "
          f"{accepted} accepted")
    if accepted or refused < len(planted) * 3 // 4:
        sys.exit(1)


if __name__ == "__main__":
    main()
