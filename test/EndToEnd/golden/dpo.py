#!/usr/bin/env python3
"""Direct preference optimization on meshes against float64 runs of the published loss: dpo.py WORK STRATEGY...

On each mesh executables compute the log-probabilities of all sequences, losses, gradient norms and what is reported of pairs.
"""
import json
import math
import struct
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import INPUTS, Golden, call, check, compile, distance, flags, fresh, largest, ranks_of, strategy, train

REPORTED = ["rewards/chosen", "rewards/rejected", "rewards/accuracies", "rewards/margins", "logps/chosen", "logps/rejected"]
PAIRS = INPUTS / "preferences"
fresh(sys.argv[1])
files = dict(data=PAIRS / "pairs.bin", documents=PAIRS / "pairs.starts", loss_mask=PAIRS / "pairs.mask")
evaluated = {f"eval_{name}": path for name, path in files.items()}
reference = PAIRS / "reference.f32"


def numbers(path):
    data = open(path, "rb").read()
    return struct.unpack(f"<{len(data) // 4}f", data)


def run(ranks, exe, **options):
    return call(["meshwright", "run", "-n", ranks, exe, *flags(options)])


def refused(*words, **options):
    done = subprocess.run(["./exe", *flags(dict({"tokens": "u8", "steps": 1}, **options))], capture_output=True, text=True)
    check(done.returncode == 1 and all(word in done.stderr for word in words), f"{words}: {done.stderr}")


def matches(where):
    """How far a run on `where`, [LORA:]MODEL:STRATEGY, is from its golden run."""
    *lora, model, where = where.split(":")
    golden = Golden(INPUTS / "golden" / model)
    answers = json.loads((PAIRS / "/".join([*lora, model]) / "golden.json").read_text())
    size, options = {name: answers["run"][name] for name in ("batch", "seq")}, strategy(where)
    adapter = INPUTS / "lora" / model
    weights = {"init": golden.weights, **({"adapter": adapter} if lora else {})}
    if lora:
        options["lora"] = "r=4,alpha=16,targets=all-linear,rslora"
    compile(golden.config, "exe", loss="dpo", **size, **options)
    ranks = ranks_of(options["mesh"])

    run(ranks, "./exe", eval_only=True, log_probs="own.f32", tokens="u8", **weights, **evaluated)
    far = largest(abs(have / want - 1) for have, want in zip(numbers("own.f32"), answers["log_probs"], strict=True))
    check(far <= 2e-6, f"{where}: log-probabilities differ by {far:.2e}")

    steps = {name: answers["run"][name] for name in ("steps", "lr", "weight_decay", "beta1", "beta2", "eps", "grad_clip")}
    have = train("./exe", ranks, tokens="u8", reference_log_probs=reference, **steps, **weights, **files)
    want = [{key: answers[key][i] for key in ("loss", "grad_norm", *REPORTED)} for i in range(answers["run"]["steps"])]
    first = abs(have[0]["loss"] / want[0]["loss"] - 1)
    loss, norm = distance(have, want), distance(have, want, "grad_norm")
    said = max(abs(a[key] - b[key]) for a, b in zip(have, want) for key in REPORTED)
    print(f"{where}: log-probabilities differ by {far:.1e}, the first loss by {first:.1e}, all by {loss:.1e}, norms by {norm:.1e}, "
          f"what is reported by {said:.1e}", flush=True)
    check(first <= 1e-6 and abs(have[0]["grad_norm"] / want[0]["grad_norm"] - 1) <= 1e-6, f"{where}: {have[0]}, expected {want[0]}")
    check(loss <= 2e-6 and norm <= 2e-5 and said <= 5e-5, f"{where}: {have}, expected {want}")
    return dict(ranks=ranks, weights=weights, steps=steps, size=size, model=model, own=numbers("own.f32"))


for where in sys.argv[2:]:
    last = matches(where)
ranks, weights = last["ranks"], last["weights"]

# With the weights that training starts from as the reference nothing is preferred yet, and the evaluation says so.
said = run(ranks, "./exe", tokens="u8", reference_log_probs="own.f32", metrics="own.jsonl",
           eval_reference_log_probs="own.f32", **weights, **files, **evaluated, **dict(last["steps"], steps=1, lr=0))
first, = map(json.loads, open("own.jsonl"))
check(abs(first["loss"] - math.log(2)) < 1e-6 and abs(first["eval_loss"] - math.log(2)) < 1e-6 and
      first["rewards/margins"] == first["eval_rewards/margins"] == 0, first)

# An evaluation is the mean over all pairs, though the last batch has fewer, and does not depend on the batch.
compile(INPUTS / "golden" / last["model"] / "config.json", "uneven", loss="dpo", seq=last["size"]["seq"], batch=12,
        **({"lora": "r=4,alpha=16,targets=all-linear,rslora"} if "adapter" in weights else {}))
call(["./uneven", *flags(dict(evaluated, eval_only=True, tokens="u8", eval_reference_log_probs=reference, metrics="eval.jsonl", **weights))])
have, = map(json.loads, open("eval.jsonl"))
margins = [0.1 * ((a - c) - (b - d)) for a, b, c, d in zip(last["own"][::2], last["own"][1::2], numbers(reference)[::2], numbers(reference)[1::2])]
want = sum(math.log1p(math.exp(-margin)) for margin in margins) / len(margins)
check(abs(have["eval_loss"] / want - 1) < 1e-6 and have["eval_rewards/accuracies"] == sum(m > 0 for m in margins) / len(margins),
      f"{have}, expected {want}")

# Pairs stay pairs where data is shuffled, and a run that goes on does so with the next pair.
train("./uneven", tokens="u8", reference_log_probs=reference, shuffle=True, log_samples="samples.jsonl", save="half",
      **weights, **files, **dict(last["steps"], steps=2))
call(["./uneven", *flags(dict(tokens="u8", reference_log_probs=reference, resume="half", log_samples="samples.jsonl", steps=3,
                              **files, **({"init": weights["init"]} if "adapter" in weights else {})))])
samples = [at for line in open("samples.jsonl") for _, at in json.loads(line).get("samples", [])]
check(len(samples) == 36 and all(b == a + 1 and a % 2 == 0 for a, b in zip(samples[::2], samples[1::2])), samples)
check(sorted(samples[:32]) == list(range(32)) and samples[:32] != sorted(samples[:32]), samples)

# What is refused.
if ranks == 1:
    given = dict(files, **weights)
    refused("--reference-log-probs is needed by this executable, compiled with --loss dpo", "--eval-only --log-probs", **given)
    refused("--loss-mask is needed by this executable, compiled with --loss dpo", "meshwright tokenize --preferences",
            reference_log_probs=reference, **dict(given, loss_mask=None))
    refused("does not say where its documents begin", reference_log_probs=reference, **dict(given, documents=None))
    refused("pairs of --loss dpo need document boundaries as indices", reference_log_probs=reference, **dict(given, documents=3))
    open("odd", "wb").write(open(files["documents"], "rb").read()[:-8])
    refused("has 31 documents, which are no pairs", reference_log_probs=reference, **dict(given, documents="odd"))
    open("fewer", "wb").write(open(files["documents"], "rb").read()[:-16])
    refused("has 128 bytes, but", "has 30 sequences", reference_log_probs=reference, **dict(given, documents="fewer"))
    open("above", "wb").write(struct.pack("<32f", *[-1] * 5, 0.5, *[-1] * 26))
    refused("number 5 is 0.5, but the logarithm of a probability is at most 0", reference_log_probs="above", **given)
    refused("--log-probs needs --eval-only", reference_log_probs=reference, log_probs="x", **given)
    refused("--eval-reference-log-probs is needed", reference_log_probs=reference, **given, **evaluated)
    only = dict(evaluated, eval_only=True, steps=None, **weights)
    refused("--eval-reference-log-probs changes nothing with --log-probs", log_probs="x", eval_reference_log_probs=reference, **only)
    open("copy", "wb").write(open(files["data"], "rb").read())
    refused("--log-probs copy would overwrite --data copy", log_probs="copy", **dict(only, eval_data="copy"))
print("all refused")
