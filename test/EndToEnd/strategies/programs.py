#!/usr/bin/env python3
"""Ranks that run different programs train as one program does: programs.py INPUTS WORK"""
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import call, check, check_traffic, compile, distance, fresh, train

inputs = pathlib.Path(sys.argv[1])
fresh(sys.argv[2])
for name, begin in (("data", 0), ("eval", 7)):
    open(f"{name}.bin", "wb").write(bytes((begin + 5 * i + i // 50) % 32 for i in range(900)))
RUN = dict(data="data.bin", tokens="u8", lr=2.0, steps=6, eval_data="eval.bin", eval_every=2)


def same(have, want, what):
    """The same within what another order of summation changes."""
    for key in [key for key in ("loss", "grad_norm", "eval_loss") if any(key in row for row in want)]:
        apart = distance([row for row in have if key in row], [row for row in want if key in row], key)
        check(apart < 1e-5, f"{what}: {key} differs by {apart:.1e}")


# Two programs on four ranks, as threads and as processes, against one on one rank.
compile(inputs / "one.mlir", "one", optimizer="sgd")
print(compile(inputs / "two.mlir", "two"))
want = train("./one", 1, save="one-saved", **RUN)
check(want[-1]["loss"] < want[0]["loss"] and "eval_loss" in want[-1], f"one does not learn: {want}")
have = train("./two", 4, save="saved", **RUN)
same(have, want, "two programs")
train("./two", 4, trace="trace.json", **dict(RUN, eval_data=None, eval_every=None))
check_traffic("./two", "trace.json", RUN["steps"])
check(train("./two", 4, mpi=True, **RUN) == have, "MPI ranks come to other bits")


# Each stage's weights are written once, and read again by one program or two.
def tensors(path):
    data = open(f"{path}/latest/model.safetensors", "rb").read()
    length = int.from_bytes(data[:8], "little")
    return {name: entry["shape"] for name, entry in json.loads(data[8 : 8 + length]).items() if name != "__metadata__"}


check(tensors("saved") == tensors("one-saved"), f"{tensors('saved')} saved, not {tensors('one-saved')}")
train("./two", 4, save="half", **dict(RUN, steps=3))
rest = train("./two", 4, resume="half", metrics="rest.jsonl", **RUN)
check(rest == have[3:], "going on from a checkpoint comes to other bits")
same(train("./one", 1, resume="half", metrics="one-rest.jsonl", **RUN), want[3:], "one program from the checkpoint of two")
init = dict(RUN, steps=1, eval_data=None, eval_every=None, init="saved/latest/model.safetensors")
same(train("./two", 4, **init), train("./one", 1, **init), "--init")

# The plan has both programs: what each takes, and that the weights are in different ones.
plan = json.loads(call(["meshwright", "inspect", "two", "--json"]))
programs = plan["programs"]
check([(p["name"], p["at"]) for p in programs] == [("stage0", {"pipe": [0]}), ("stage1", {"pipe": [1]})],
      f"programs are {programs}")
check(plan["arena_bytes"] == max(p["arena_bytes"] for p in programs), "the arena is not the largest of the programs")
check(all(sum(line["bytes"] for line in p["memory"]) == p["live_bytes"] <= p["arena_bytes"] for p in programs),
      "categories do not add up to what is live")
check({v["name"]: v["in"] for v in plan["variables"]} == {"wte": 0, "head": 1}, "variables are in wrong programs")
# What a forward keeps for its backward is there for both microbatches at once.
kept = {line["category"]: line["bytes"] for line in programs[1]["memory"]}.get("activation", 0)
check(kept >= 2 * 8 * 32 * 4, f"{kept} bytes of activations do not hold the logits of two microbatches")
table = call(["meshwright", "inspect", "two"])
check(re.search(r"stage1 +pipe 1 ", table), f"inspect does not show the programs:\n{table}")
compile(inputs / "two.mlir", "two", report="report", **{"assert": f"peak<={plan['arena_bytes']}"})
check("stage1" in open("report/index.html").read(), "the report does not show the programs")
refused = subprocess.run(["meshwright", "compile", inputs / "two.mlir", "-o", "no", "--assert",
                          f"peak<{plan['arena_bytes']}"], capture_output=True, text=True)
check(refused.returncode and "is broken" in refused.stderr, "a budget below the largest program holds")

# IR of each stage goes out and in; each pass writes a file a program.
compile(inputs / "two.mlir", "exec.mlir", emit="exec", dump_ir="dump")
compile("exec.mlir", "again")
check(train("./again", 4, **RUN) == have, "IR of phase exec makes another executable")
names = sorted(os.listdir("dump"))
check(any(re.fullmatch(r"\d\d-exec-assign-offsets\.stage0\.mlir", n) for n in names) and
      any(re.fullmatch(r"\d\d-exec-assign-offsets\.stage1\.mlir", n) for n in names), f"dump has {names}")
check(len({n.split("-")[0] for n in names if "exec-bufferize" in n}) == 1, f"one pass has two numbers: {names}")

# Kernels that both programs have are in the object once.
compile(inputs / "two.mlir", "two.ll", emit="llvm")
code = open("two.ll").read()
kernels = re.findall(r"define internal void @([\w.]+)\(ptr [^,]*, i64", code)
bodies = [re.sub(re.escape(k), "", code.split(f"@{k}(")[1].split("\n}")[0]) for k in kernels]
check(len(kernels) > 4 and len(set(bodies)) == len(bodies), f"of {kernels} some are the same")

# Every rank has one program.
text = (inputs / "two.mlir").read_text()
for edit, message in [(("pipe = 1", "pipe = 0"), "would run two programs"), (("pipe = 1", "pipe = 2"), "whose coordinates are"),
                      (("{pipe = 1 : i64}", "{pipe = 1 : i64, data = 1 : i64}"), "no program is for device 2")]:
    open("bad.mlir", "w").write(text.replace(*edit))
    done = subprocess.run(["meshwright", "compile", "bad.mlir", "-o", "bad"], capture_output=True, text=True)
    check(done.returncode and message in done.stderr, f"{edit}: {done.stderr}")
print(f"{len(have)} steps, arenas {[p['arena_bytes'] for p in programs]}")
