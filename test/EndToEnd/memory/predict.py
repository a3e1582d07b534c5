#!/usr/bin/env python3
"""What `meshwright schedule --trace` predicts from the tasks of a run: predict.py CORPUS WORK

A run's trace says which tasks each rank did and in what order. The test gives them times that it knows: those of a run
whose tasks start as soon as they can, with one step in which a task was interrupted. So the prediction is exact. How near
it comes to a run on real clocks, bench/predict.py measures."""
import json
import pathlib
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import call, check, compile, fresh, train

corpus = pathlib.Path(sys.argv[1]).resolve()
fresh(sys.argv[2])
MICROBATCHES, STEPS = 4, 6
WARM_UP = 500  # ms; the first step of a run is left out
REST = [2, 3.5]  # ms of a stage outside of its tasks

json.dump({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 32, "n_head": 4, "n_layer": 4,
           "n_positions": 32, "vocab_size": 256, "activation_function": "gelu_new", "resid_pdrop": 0, "embd_pdrop": 0,
           "attn_pdrop": 0, "layer_norm_epsilon": 1e-5, "initializer_range": 0.02, "tie_word_embeddings": False},
          open("config.json", "w"))


def parts(task):
    """F2.1 is the forward of microbatch 2 through chunk 1."""
    microbatch, chunk = task[1:].split(".")
    return task[0], int(microbatch), int(chunk)


def milliseconds(task):
    """Uneven ones: chunk 1 has the longer forward, chunk 0 the longer backward."""
    kind, _, chunk = parts(task)
    return {"F": [3, 5], "B": [11, 7], "W": [2, 1.5]}[kind][chunk]


def needs(task):
    """The task that must have ended, on whichever stage it runs."""
    kind, microbatch, chunk = parts(task)
    if kind == "F":
        return f"F{microbatch}.{chunk - 1}" if chunk else None
    return f"B{microbatch}.1" if kind == "B" and chunk == 0 else f"{'F' if kind == 'B' else 'B'}{microbatch}.{chunk}"


def simulate(orders, interrupted=None):
    """Begin and end of each task of each rank, where each starts when its rank and what it needs allow it."""
    spans, ends, free, at = [[] for _ in orders], {}, [0.0] * len(orders), [0] * len(orders)
    while any(i < len(order) for i, order in zip(at, orders)):
        before = len(ends)
        for rank, order in enumerate(orders):
            while at[rank] < len(order) and (needs(order[at[rank]]) is None or needs(order[at[rank]]) in ends):
                task = order[at[rank]]
                begin = max(free[rank], ends.get(needs(task), 0))
                ends[task] = free[rank] = begin + milliseconds(task) * (10 if task == interrupted else 1)
                spans[rank].append((task, begin, ends[task]))
                at[rank] += 1
        check(len(ends) > before, f"no task of {orders} can start after {list(ends)}")
    return spans


def length(spans):
    return max(rank[-1][2] + rest for rank, rest in zip(spans, REST))


def timed(path, orders):
    """Writes the trace of STEPS steps of those orders; the longest task of the second is interrupted."""
    events, now = [], 0.0

    def add(rank, category, name, begin, end):
        events.append({"ph": "X", "pid": rank, "cat": category, "name": name, "ts": begin * 1000, "dur": (end - begin) * 1000})

    for step in range(STEPS):
        spans = simulate(orders, orders[0][-1] if step == 1 else None)
        lasts = length(spans) + (WARM_UP if step == 0 else 0)
        for rank, tasks in enumerate(spans):
            add(rank, "step", "step", now, now + lasts)
            for task, begin, end in tasks:
                add(rank, "task", task, now + begin, now + end)
                add(rank, "compute", "a product", now + begin, now + end)
            add(rank, "compute", "adam", now + tasks[-1][2], now + tasks[-1][2] + REST[rank])
        now += lasts + 1
    json.dump({"traceEvents": events}, open(path, "w"))


for schedule in "1f1b", "zb-h1":
    compile("config.json", schedule, mesh="pipe=2", batch=MICROBATCHES, microbatches=MICROBATCHES, seq=16, schedule=schedule)
    train(f"./{schedule}", 2, data=corpus, tokens="u8", steps=3, lr=1e-4, trace=f"{schedule}.json")
    command = ["meshwright", "schedule", schedule, "--stages", 2, "--microbatches", MICROBATCHES, "--trace"]
    # The trace as the run wrote it: its median step is that of two steps after the first, and has every kind of task.
    said = call([*command, f"{schedule}.json"])
    times = [float(word) for word in re.findall(r"(?:F|B|W|tasks:|step:) ?([0-9.]+)", said.split("\n  0 |")[0])]
    check("medians of 2 steps" in said and len(times) == (9 if schedule == "zb-h1" else 7) and min(times) > 0, said)

    orders = [[], []]
    for event in sorted(json.load(open(f"{schedule}.json"))["traceEvents"], key=lambda event: event.get("ts", 0)):
        if event.get("cat") == "task" and event["name"] not in orders[event["pid"]]:
            orders[event["pid"]].append(event["name"])
    timed("timed.json", orders)
    expected = length(simulate(orders))
    said = call([*command, "timed.json"])
    check(f"medians of {STEPS - 1} steps" in said and
          f"step: {expected:.3f} ms predicted, {expected:.3f} ms measured, 0.0% apart" in said, f"{expected}, not\n{said}")
    check(all(f"stage {rank} outside of tasks: {rest:.3f}" in said for rank, rest in enumerate(REST)), said)

# A trace of another schedule is refused, and one that nobody has measured.
compile("config.json", "planned.mlir", mesh="pipe=2", batch=MICROBATCHES, microbatches=MICROBATCHES, seq=16, emit="exec", report="planned")
for trace, why in ("planned/trace.json", "is what --report predicts, in relative times"), ("1f1b.json", "is of another schedule: rank 0 did F1.0 as task 1, which is B0.0"), ("none.json", "'none.json' is no trace"):
    open("none.json", "w").write("{}")
    schedule = "naive" if trace == "1f1b.json" else "1f1b"
    done = subprocess.run(["meshwright", "schedule", schedule, "--stages", "2", "--microbatches", str(MICROBATCHES), "--trace", trace],
                          capture_output=True, text=True)
    check(done.returncode and why in done.stderr, done.stderr)
