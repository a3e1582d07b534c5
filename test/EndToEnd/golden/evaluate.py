#!/usr/bin/env python3
"""Evaluations: the mean loss over all sequences of a file, whatever the batch and the mesh: evaluate.py GOLDEN WORK

What an executable finds whose batch is one sequence is what the others must come to, although their last batch is not full.
The golden run's first loss, of transformers in float64, judges the first batch.
"""
import json
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, compile, flags, fresh, ranks_of, strategy

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
sequence = golden.size["seq"]
corpus = open(golden.data["data"], "rb").read()
# 13 sequences and a rest that makes none; 257 is divided by no mesh, so that vocabularies are padded.
open("eval.bin", "wb").write(corpus[:13 * sequence + sequence // 2])
config = json.loads(golden.config.read_text())
json.dump({**config, "vocab_size": 257}, open("odd.json", "w"))


def evaluate(exe, mesh, file="eval.bin", **options):
    said = call(["meshwright", "run", "-n", ranks_of(mesh), exe, *flags({**golden.data, "steps": 0, "eval_data": file, "metrics": "eval.jsonl", **options})])
    (row,) = map(json.loads, open("eval.jsonl"))
    check(set(row) == {"steps", "eval_loss", "eval_bits_per_byte"} and row["steps"] == 0, f"a run without a step writes {row}")
    check("after 0 steps" in said, f"no loss is printed:\n{said}")
    return row["eval_loss"]


worst = 0
for model, init in ((golden.config, golden.weights), ("odd.json", None)):
    compile(model, "one", **dict(golden.size, batch=1))
    # One sequence a batch, so that every batch is full.
    alone = {count: evaluate("./one", "", init=init, eval_batches=count) for count in {8, 13, golden.size["batch"]}}
    for text in ("data=2", "tensor=2/2", "data=2,tensor=2+zero=3", "pipe=2/4"):
        compile(model, "many", **dict(golden.size, batch=8), **strategy(text))
        for batches, sequences in ((None, 13), (1, 8)):
            want = alone[sequences]
            have = evaluate("./many", text.partition("/")[0].partition("+")[0], init=init, eval_batches=batches)
            worst = max(worst, abs(have / want - 1))
            check(worst < 2e-6, f"{model} with {text}: {have} of {sequences} sequences, alone they have {want}")
    if init and "mlm" not in golden.size:  # Evaluations mask other tokens than steps.
        first = golden.answers["loss"][0] - golden.answers.get("aux_loss", [0])[0]
        check(abs(alone[golden.size["batch"]] / first - 1) < 1e-5, f"the golden run's first loss is {first}")
said = call(["meshwright", "plot", "eval.jsonl"])
check("eval: evaluation loss " in said, f"an evaluation alone is not drawn:\n{said}")
print(f"evaluations differ by {worst:.1e}")
