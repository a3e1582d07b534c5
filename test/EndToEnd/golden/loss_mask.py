#!/usr/bin/env python3
"""With --loss-mask the loss is the mean over the counted targets of the whole batch: loss_mask.py GOLDEN WORK

What a run must find is known without masks: in float64 the interpreter gives the losses of the first so many targets of a
sequence as those of a shorter sequence. Microbatches and data ranks have different numbers of counted targets, some none, so a
run that means over each of them finds something else.
"""
import json
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, compile, distance, flags, fresh, ranks_of, strategy, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
batch, sequence = 4, golden.size["seq"]
text = open(golden.data["data"], "rb").read()
data = {"data": "data.bin", "tokens": "u8"}
open("data.bin", "wb").write(text[:2 * batch * sequence + 1])
# Of each sequence of the first batch the targets from the first of the two numbers on to before the second count.
half, quarter = sequence // 2, sequence // 4
counted = [(0, sequence), (0, quarter), (half, sequence), (0, 0)]
mask = bytearray(2 * batch * sequence + 1)
for i, (begin, end) in enumerate(counted):
    mask[i * sequence + begin + 1:i * sequence + end + 1] = b"\1" * (end - begin)
# In the second batch others do: every third.
mask[batch * sequence + 1::3] = b"\1" * len(mask[batch * sequence + 1::3])
open("mask.bin", "wb").write(mask)
steps = dict({name: value for name, value in golden.run.items() if name not in ("data", "tokens")}, steps=4)


def interpreted(module, **options):
    """The first numbers that a float64 run of the module prints."""
    said = call(["meshwright-interpret", module, "--train", *flags(options)])
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def sum_of_first(i, length):
    """The sum of the losses of the first `length` targets of sequence i."""
    if length == 0:
        return 0
    compile(golden.config, f"{length}.mlir", emit="step", batch=1, seq=length)
    open("one.bin", "wb").write(text[i * sequence:i * sequence + length + 1])
    (row,) = interpreted(f"{length}.mlir", data="one.bin", tokens="u8", init=golden.weights, steps=1)
    return row["loss"] * length


number = sum(end - begin for begin, end in counted)
want = sum(sum_of_first(i, end) - sum_of_first(i, begin) for i, (begin, end) in enumerate(counted)) / number
compile(golden.config, "step.mlir", emit="step", batch=batch, seq=sequence)
judge = interpreted("step.mlir", loss_mask="mask.bin", **data, **steps)
check(abs(judge[0]["loss"] / want - 1) < 1e-9, f"the interpreter's first loss is {judge[0]['loss']}, by hand it is {want}")

worst = 0
for where in ("one", "one/4", "data=2", "data=2/2+zero=3", "tensor=2/2", "pipe=2/4", "context=2+context-parallel=gather",
              "context=2/2+context-parallel=ulysses+zero=2"):
    options = strategy(where)
    compile(golden.config, "exe", batch=batch, seq=sequence, **options)
    ranks = ranks_of(options["mesh"])
    have = train("./exe", ranks, loss_mask="mask.bin", **data, **steps)
    far = max(distance(have, judge), distance(have, judge, "grad_norm") / 5, abs(have[0]["loss"] / want - 1))
    worst = max(worst, far)
    check(far <= 1e-5, f"{where} is off by {far:.2e}: {have[0]}, by hand the loss is {want}")
    # An evaluation of the first batch, and of a file in which the rest counts for nothing.
    open("eval.bin", "wb").write(text[:6 * sequence + 1])
    for rest, named in ((b"\0", "--eval-loss-mask eval-mask.bin: no target of a batch counts"), (b"", "")):
        open("eval-mask.bin", "wb").write(mask[:batch * sequence + 1] + rest * (2 * sequence))
        if not rest:
            open("eval.bin", "wb").write(text[:batch * sequence + 1])
        said = call(["meshwright", "run", "-n", ranks, "./exe", *flags(dict(
            data, init=golden.weights, steps=0, eval_data="eval.bin", eval_loss_mask="eval-mask.bin", metrics="eval.jsonl"))])
        (row,) = map(json.loads, open("eval.jsonl"))
        check(abs(row["eval_loss"] / want - 1) < 1e-6, f"{where}: the evaluation finds {row}, by hand it is {want}")
        check(named in said and f"over {number} tokens" in said, f"{where}: {said}")
    # Where nothing of a batch counts the loss and its gradients are 0, and that is said once.
    open("nothing.bin", "wb").write(bytes(len(mask) - 1) + b"\1")
    said = call(["meshwright", "run", "-n", ranks, "./exe", *flags(dict(
        data, **dict(steps, steps=1), loss_mask="nothing.bin", eval_data="data.bin", eval_loss_mask="nothing.bin", metrics="zero.jsonl"))])
    zeros = [json.loads(line) for line in open("zero.jsonl")]
    check(all(row["loss"] == row["grad_norm"] == 0 for row in zeros) and zeros[-1]["eval_loss"] > 0, f"{where}: {zeros}")
    check(said.count("--loss-mask nothing.bin: no target of step 0 counts") == 1 and said.count("note:") == 2, f"{where}: {said}")
# A run that goes on without its mask says so, and an evaluation does not take one for another.
call(["meshwright", "run", "-n", ranks, "./exe", *flags(dict(data, **dict(steps, steps=1), loss_mask="mask.bin", save="masked"))])
goes_on = {name: value for name, value in dict(data, **dict(steps, steps=2), resume="masked").items() if name != "init"}
for mask_file, words in (("mask.bin", None), (None, "--loss-mask is not given, but was"), ("nothing.bin", "--loss-mask is ")):
    said = call(["meshwright", "run", "-n", ranks, "./exe", *flags(dict(goes_on, loss_mask=mask_file))])
    check(words in said if words else "--loss-mask is" not in said, f"with {mask_file}: {said}")
done = subprocess.run(list(map(str, ["meshwright", "run", "-n", ranks, "./exe", *flags({
    "tokens": "u8", "eval_only": True, "init": golden.weights, "eval_data": "data.bin", "loss_mask": "mask.bin"})])),
    capture_output=True, text=True)
check(done.returncode == 1 and "--loss-mask changes nothing with --eval-only" in done.stderr and "or give --eval-loss-mask" in done.stderr, done.stderr)
# A mask of ones changes nothing.
open("ones.bin", "wb").write(b"\1" * len(mask))
check(train("./exe", ranks, **data, **steps) == train("./exe", ranks, loss_mask="ones.bin", **data, **steps), "a mask of ones changes something")
print(f"losses differ by {worst:.1e}")
