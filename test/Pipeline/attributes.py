#!/usr/bin/env python3
"""Breaks every row of the tables of attributes that ops do not declare (meshwright-opt --meshwright-attributes): each is
accepted where it belongs, and refused with another type, in another place, with a letter less, and in IR of phases
before its first and after its last.

  attributes.py
"""
import re
import subprocess
import sys

# What can hold an attribute X; the words of the tables for places, and who is meant by them.
holders = {
    "module": "module attributes {X} {}",
    "function": "func.func private @f(tensor<4xf32>) -> tensor<4xf32> attributes {X}",
    "argument": "func.func private @f(tensor<4xf32> {X})",
    "result": "func.func private @f() -> (tensor<4xf32> {X})",
    "variable": "train.variable @v : tensor<4xf32> {X}",
    "mesh": 'dist.mesh @mesh ["data" = 2] {X}',
    "program": "exec.program @p attributes {X} {}",
    "slice": "func.func @s(%x: tensor<4xf32>) -> tensor<4xf32> { %y = train.slice %x rows 4 {X} : (tensor<4xf32>) -> tensor<4xf32> return %y : tensor<4xf32> }",
    "launch": "func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel} { return %x : tensor<4xf32> } "
              "func.func @g(%x: tensor<4xf32>) -> tensor<4xf32> { %y = exec.launch @k ins(%x : tensor<4xf32>) {X} -> tensor<4xf32> "
              "return %y : tensor<4xf32> }",
}
ops = {"function", "variable", "mesh", "program", "launch", "slice"}
places = {
    "a module": {"module"}, "a function": {"function"}, "an argument of a function": {"argument"},
    "a result of a function": {"result"}, "a train.variable": {"variable"}, "a dist.mesh": {"mesh"}, "a train.slice": {"slice"},
    "an exec.launch": {"launch"}, "a module or an exec.program": {"module", "program"}, "an op that is no module": ops,
    "a train.variable, an argument or a result": {"variable", "argument", "result"},
    "an op that is no module, an argument or a result": ops | {"argument", "result"},
}
# What an attribute needs beside it.
beside = {"dist.first_queries": 'dist.divided_over = ["data"], '}


def main():
    table = subprocess.run(["meshwright-opt", "--meshwright-attributes"], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in table.splitlines()]
    cases = []  # what is tried, its text, and the error that it must give, if any
    for name, type, example, place, first, last, writer, meaning in rows:
        assert meaning and writer and place in places, (name, place)
        for holder, text in holders.items():
            # Attributes of no floor are of ops alone.
            if name.startswith("meshwright.") and holder in ("argument", "result"):
                continue
            right = holder in places[place]
            before = beside.get(name, "") if right else ""
            cases.append((f"{name} on {holder}", text.replace("X", f"{before}{name} = {example}"),
                          None if right else f"attribute '{name}' .*belongs on {place}"))
            if right and type != "any attribute":
                cases.append((f"{name} of another type on {holder}", text.replace("X", f"{before}{name} = dense<1.5> : tensor<1xf16>"),
                              f"attribute '{name}' .*is dense<1.5.*; expected {re.escape(type)}"))
            if right:
                # Another name may have one letter less.
                short = name[:-1]
                if all(short != other[0] for other in rows):
                    cases.append((f"{short} on {holder}", text.replace("X", f"{before}{short} = {example}"),
                                  f"attribute '{short}' .*is unknown; did you mean 'NAME'"))
    text = "\n// -----\n".join(case[1] for case in cases)
    # The order of the chunks is that of the lines of errors: one line each, and the mark between them.
    done = subprocess.run(["meshwright-opt", "--split-input-file", "-", "-o", "/dev/null"], input=text, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"FAILED: meshwright-opt ends with {done.returncode}\n{done.stderr[-2000:]}")
    errors = {}
    for line, message in re.findall(r"^\S*?:(\d+):\d+: error: (.*)$", done.stderr, re.M):
        errors.setdefault((int(line) - 1) // 2, []).append(message)
    problems = []
    for number, (what, _, wanted) in enumerate(cases):
        said = errors.get(number, [])
        if not said if wanted is None else len(said) == 1 and re.search(wanted.replace("NAME", ".*"), said[0]):
            continue
        problems.append(f"{what}: expected {wanted or 'no error'}, found {said}")
    print(f"{len(rows)} attributes, {len(cases)} cases")
    return problems


def lifetimes():
    """A module at each phase with each attribute: only in its lifetime may the pipeline from there read it."""
    table = subprocess.run(["meshwright-opt", "--meshwright-attributes"], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in table.splitlines()]
    cases, problems = 0, []
    for at, phase in enumerate(phases):
        refused = {}
        for name, _, example, place, first, last, writer, _ in rows:
            if name == "meshwright.phase":
                continue
            holder = min(places[place])
            mark = "" if phase == "train" else f'meshwright.phase = "{phase}"'
            attribute = beside.get(name, "") + f"{name} = {example}"
            text = (f"module attributes {{{', '.join(filter(None, [mark, attribute]))}}} {{}}" if holder == "module" else
                    f"module attributes {{{mark}}} {{ {holders[holder].replace('X', attribute)} }}")
            wanted = ("comes too early: it is written by " + writer if at < phases.index(first) else
                      "comes too late: nothing reads it after phase " + last if at > phases.index(last) else None)
            refused[name] = (text, wanted)
        done = subprocess.run(["meshwright-opt", "--split-input-file", f"--meshwright-pipeline=from={phase} to={phase}", "-",
                               "-o", "/dev/null"], input="\n// -----\n".join(text for text, _ in refused.values()),
                              capture_output=True, text=True)
        if done.returncode not in (0, 1):
            sys.exit(f"FAILED: meshwright-opt ends with {done.returncode}\n{done.stderr[-2000:]}")
        for name, (_, wanted) in refused.items():
            cases += 1
            said = re.findall(rf"attribute '{re.escape(name)}' of IR at phase {phase} (comes too .*)", done.stderr)
            # Other attributes' cases may hold it too: those of launches have kernels.
            if not said if wanted is None else said and all(one.startswith(wanted) for one in said):
                continue
            problems.append(f"{name} at {phase}: expected {wanted or 'no error'}, found {said}")
    print(f"{cases} attributes at phases")
    return problems


phases = ["train", "step", "dist", "local", "stages", "schedule", "exec"]
problems = main() + lifetimes()
sys.exit("\n".join([*problems, f"FAILED: {len(problems)}"]) if problems else 0)
