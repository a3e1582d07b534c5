#!/usr/bin/env python3
"""Interprets the programs of pipeline stages, in float64.

  pipeline.py golden MODEL DATA TOKENS WORK BATCH SEQ STEPS  STRATEGY...
      trains: losses and gradient norms are those of a PyTorch run
  pipeline.py compare CONFIG WORK BATCH SEQ  STRATEGY...
      @step and @eval compute what they compute before they are placed on the mesh
  pipeline.py scatter CONFIG WORK BATCH SEQ  STRATEGY...
      the same where devices with copies of a value each send a part
  pipeline.py unsharded CONFIG DATA WORK BATCH SEQ  STRATEGY...
      initial weights, dropout and training are those of the same model on one device
  pipeline.py stash CONFIG WORK BATCH SEQ  STRATEGY...
      the stages hold as many activations as the schedule says, and end with channels
      of one message between two stages
  pipeline.py once CONFIG WORK BATCH SEQ  STRATEGY...
      where gradients of weights are tasks of their own, what is computed again is so
      once for both tasks

A strategy is a mesh and other flags of `meshwright compile` joined by +, e.g.
pipe=2,data=2+microbatches=4+schedule=zb-h1+zero=2+sequence-parallel.
"""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "EndToEnd"))
from harness import call, check, compile, fresh, ir, ranks_of


def parse(strategy):
    mesh, *rest = strategy.split("+")
    return dict([("mesh", mesh)] + [(option.split("=")[0], option.split("=")[1] if "=" in option else True) for option in rest])


def emit(config, batch, sequence, strategy):
    options = dict(parse(strategy), batch=batch, seq=sequence)
    compile(config, "schedule.mlir", emit="schedule", **options)
    return options


def golden(model, data, tokens, work, batch, sequence, steps, *strategies):
    fresh(work)
    for strategy in strategies:
        emit(f"{model}/config.json", batch, sequence, strategy)
        said = call(["meshwright-interpret", "schedule.mlir", "--ranks", ranks_of(parse(strategy)["mesh"]), "--expect",
                     f"{model}/golden.json", "--tolerance", "1e-9", "--train", "--data", data, "--tokens", tokens,
                     "--steps", steps, "--lr", "1e-3", "--init", f"{model}/model.safetensors"])
        check(len(re.findall(r"largest relative difference", said)) == 2, said)
        print(f"{strategy}: the reference's losses", flush=True)


def compare(config, work, batch, sequence, *strategies):
    fresh(work)
    for strategy in strategies:
        options = emit(config, batch, sequence, strategy)
        compile(config, "step.mlir", emit="step", **options)
        for function in ("step", "eval"):
            said = call(["meshwright-interpret", "--compare", "step.mlir", "schedule.mlir", "--function", function, "--ranks",
                         ranks_of(options["mesh"])])
            print(f"{strategy}: {said.strip()}", flush=True)


def scatter(config, work, batch, sequence, *strategies):
    fresh(work)
    for strategy in strategies:
        options = dict(parse(strategy), batch=batch, seq=sequence)
        for stage in ("step", "local"):
            compile(config, f"{stage}.mlir", emit=stage, **options)
        call(["meshwright-opt", "local.mlir", "--dist-split-stages=scatter-gather=always", "--dist-schedule", "--dist-optimize-collectives",
              "--dist-verify-communication", "-o", "schedule.mlir"])
        sent = set(re.findall(r"dist.send .* : (tensor<.*>)", ir("schedule.mlir")))
        for function in ("step", "eval"):
            said = call(["meshwright-interpret", "--compare", "step.mlir", "schedule.mlir", "--function", function, "--ranks",
                         ranks_of(options["mesh"])])
            print(f"{strategy}: {said.strip()}; sent are {', '.join(sorted(sent))}", flush=True)


def unsharded(config, data, work, batch, sequence, *strategies):
    fresh(work)
    for strategy in strategies:
        options = emit(config, batch, sequence, strategy)
        whole = {name: value for name, value in options.items() if name in ("dropout", "batch", "seq", "microbatches")}
        compile(config, "whole.mlir", emit="step", **whole)
        args = ["--train", "--data", data, "--tokens", "u8", "--steps", 3, "--lr", "1e-3", "--seed", 7]
        lines = [json.loads(line) for line in call(["meshwright-interpret", "whole.mlir", *args]).splitlines()]
        with open("whole.json", "w") as file:
            json.dump({key: [line[key] for line in lines] for key in ("loss", "grad_norm")}, file)
        call(["meshwright-interpret", "schedule.mlir", "--expect", "whole.json", "--tolerance", "1e-9", *args])
        print(f"{strategy}: the losses of one device", flush=True)


def check_messages(programs, function):
    """Runs the stages side by side; a send waits while its channel to that stage is full."""
    bodies = []
    for program in programs:
        body = program[program.index(f"func.func @{function}("):]
        body = body[:body.index("\n    }\n")]
        bodies.append(re.findall(r"dist.(send) %\S+ to (\d+) channel (\d+)|dist.(recv) from (\d+) channel (\d+)", body))
    check(any(bodies), f"no messages in @{function}")
    at, full, progress = [0] * len(bodies), {}, True
    while progress:
        progress = False
        for stage, body in enumerate(bodies):
            while at[stage] < len(body):
                _, to, sent, receives, source, received = body[at[stage]]
                if receives:
                    if full.get((int(source), stage)) != received:
                        break
                    del full[int(source), stage]
                elif (stage, int(to)) in full:
                    break
                else:
                    full[stage, int(to)] = sent
                at[stage] += 1
                progress = True
    for stage, body in enumerate(bodies):
        check(at[stage] == len(body), f"stage {stage} waits forever at message {at[stage]} of @{function}: {body[at[stage]:][:1]}")
    check(not full, f"messages that nobody took: {full}")


def live_stash(program):
    """The most microbatches of a chunk whose results a stage keeps for later tasks."""
    body = program[program.index("func.func @step("):]
    body = body[:body.index("\n    }\n")]
    calls = []  # (task, result, operands) in order
    for match in re.finditer(r'(?:(%[\w.$-]+)(?::\d+)? = )?call @\S+?\(([^)]*)\) \{dist.task = "(\w+\.\d+)"\}', body):
        result, operands, task = match.groups()
        calls.append((task, result, {operand.split("#")[0].strip() for operand in operands.split(",")}))
    born = {result: (i, task) for i, (task, result, _) in enumerate(calls) if task[0] == "F"}
    last = {}
    for i, (task, _, operands) in enumerate(calls):
        for operand in operands:
            # Sums go on to the next forward task; they are no stash.
            if operand in born and task[0] != "F":
                last[operand] = i
    check(len(last) == len(born), f"a forward result that no later task reads: {born.keys() - last.keys()}")
    return max(sum(born[result][0] <= i <= end for result, end in last.items()) for i in range(len(calls)))


def stash(config, work, batch, sequence, *strategies):
    fresh(work)
    for strategy in strategies:
        options = emit(config, batch, sequence, strategy)
        text = ir("schedule.mlir")
        programs = re.split(r"\n  module @stage\d+ ", text)[1:]
        for function in ("step", "eval"):
            check_messages(programs, function)
        found = [live_stash(program) for program in programs]
        schedule = options.get("schedule", "1f1b")
        said = call(["meshwright", "schedule", schedule, "--stages", len(programs), "--microbatches", options["microbatches"]])
        claimed = [int(n) for n in re.search(r"peak activations of each stage.*: ([\d ]+)", said).group(1).split()]
        check(found == claimed, f"{strategy}: stages hold {found}, the schedule says {claimed}")
        if schedule == "1f1b":
            p = len(programs)
            check(all(held <= p - s for s, held in enumerate(found)), f"1f1b holds {found}")
        print(f"{strategy}: stages hold {' '.join(map(str, found))}", flush=True)


def redone(program):
    """What the tasks of each kind compute again: lines of the functions they call, with repeats as often as they run."""
    functions = dict(re.findall(r"\n    func.func private @([^(]+)\(([\s\S]*?)\n    }", program))

    def count(name, inside):
        total = 0
        for line in functions[name].splitlines():
            marked = inside or "train.recomputed" in line
            repeat = re.search(r"train.repeat @(\S+) x (\d+)", line)
            if repeat:
                total += int(repeat[2]) * count(repeat[1], marked)
            elif marked:
                total += bool(re.search(r"train.(linear|contract|attention) ", line))
        return total

    found = {}
    for name in functions:
        if re.fullmatch(r"(forward|backward|weight)\.\d+", name):
            found[name.split(".")[0]] = found.get(name.split(".")[0], 0) + count(name, False)
    return found


def once(config, work, batch, sequence, *strategies):
    fresh(work)
    for strategy in strategies:
        want = None
        for schedule in ("1f1b", "zb-h1"):
            emit(config, batch, sequence, f"{strategy}+schedule={schedule}")
            programs = re.split(r"\n  module @stage\d+ ", ir("schedule.mlir"))[1:]
            found = [redone(program) for program in programs]
            want = want or found
        check(all(a["forward"] == 0 and a["backward"] > 0 for a in want), f"{strategy}: {want}")
        for a, b in zip(want, found):
            check("weight" in b and b["backward"] + b["weight"] == a["backward"], f"{strategy}: {a} are {b} with weight tasks")
        print(f"{strategy}: {found} in place of {want}", flush=True)


{"once": once, "golden": golden, "compare": compare, "scatter": scatter, "unsharded": unsharded, "stash": stash}[sys.argv[1]](*sys.argv[2:])
