#!/usr/bin/env python3
"""Direct preference optimization on meshes against float64 runs of the published loss: dpo.py WORK STRATEGY...

On each mesh executables compute the log-probabilities of all sequences, losses, gradient norms and what is reported of pairs.
"""
import json
import math
import re
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


def refused(*words, exe="./exe", **options):
    done = subprocess.run([exe, *flags(dict({"tokens": "u8", "steps": 1}, **options))], capture_output=True, text=True)
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

    said = run(ranks, "./exe", eval_only=True, log_probs="own.f32", tokens="u8", **weights, **evaluated)
    check("wrote the log-probabilities of 32 sequences to own.f32" in said and "eval loss" not in said, said)
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
check("before the first step" not in said, said)
check(abs(first["loss"] - math.log(2)) < 1e-6 and abs(first["eval_loss"] - math.log(2)) < 1e-6 and
      first["rewards/margins"] == first["eval_rewards/margins"] == 0, first)

# An evaluation is the mean over all pairs, though the last batch has fewer, and does not depend on the batch.
config = INPUTS / "golden" / last["model"] / "config.json"
adapters = {"lora": "r=4,alpha=16,targets=all-linear,rslora"} if "adapter" in weights else {}
leads = [(a - c) - (b - d) for a, b, c, d in zip(last["own"][::2], last["own"][1::2], numbers(reference)[::2], numbers(reference)[1::2])]


def loss_of(beta, leads):
    return sum(math.log1p(math.exp(-beta * lead)) for lead in leads) / len(leads)


for exe, beta in (("steeper", 0.3), ("uneven", None)):
    compile(config, exe, loss="dpo", dpo_beta=beta, seq=last["size"]["seq"], batch=12, **adapters)
    beta = beta or 0.1
    said = call([f"./{exe}", *flags(dict(evaluated, eval_only=True, tokens="u8", eval_reference_log_probs=reference, metrics=f"{exe}.jsonl", **weights))])
    have, = map(json.loads, open(f"{exe}.jsonl"))
    want = loss_of(beta, leads)
    check(abs(have["eval_loss"] / want - 1) < 1e-6 and have["eval_rewards/accuracies"] == sum(lead > 0 for lead in leads) / len(leads) and
          abs(have["eval_rewards/margins"] - beta * sum(leads) / len(leads)) < 1e-5, f"{exe}: {have}, expected {want}")
    # The step computes its loss itself. It begins away from the reference, which is said.
    said = run(1, f"./{exe}", tokens="u8", reference_log_probs=reference, metrics=f"{exe}-step.jsonl", **weights, **files,
               **dict(last["steps"], steps=1, lr=0))
    have, = map(json.loads, open(f"{exe}-step.jsonl"))
    want = loss_of(beta, leads[:6])
    check(abs(have["loss"] / want - 1) < 1e-6 and abs(have["rewards/margins"] - beta * sum(leads[:6]) / 6) < 1e-5, f"{exe}: {have}, expected {want}")
    check("before the first step the weights give log-probabilities that differ from the reference's by" in said, said)

# Pairs stay pairs where data is shuffled, and a run that goes on does so with the next pair.
train("./uneven", tokens="u8", reference_log_probs=reference, shuffle=True, log_samples="samples.jsonl", save="half",
      **weights, **files, **dict(last["steps"], steps=2))
said = call(["./uneven", *flags(dict(tokens="u8", reference_log_probs="own.f32", resume="half", log_samples="samples.jsonl", steps=3,
                                     **files, **({"init": weights["init"]} if "adapter" in weights else {})))])
check(re.search("note: --reference-log-probs is .*, but was .* when the checkpoint", said), said)
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
    refused("--eval-batches would leave sequences out of --log-probs", log_probs="x", eval_batches=1, **only)
    refused("--metrics would say nothing with --log-probs", log_probs="x", metrics="x.jsonl", **only)
    refused("--tensorboard would say nothing with --log-probs", log_probs="x", tensorboard="events", **only)

    # Each of several sets needs a mask and a reference of its own.
    def sets(**each):
        return [word for flag, names in each.items() for name in names for word in (f"--eval-{flag.replace('_', '-')}", f"{name}={two[flag]}")]

    two = dict(data=files["data"], documents=files["documents"], loss_mask=files["loss_mask"], reference_log_probs=reference)
    command = ["./exe", "--eval-only", "--tokens", "u8", *flags(weights)]
    for words, missing in (("--eval-reference-log-probs names no file for b", "reference_log_probs"), ("--eval-loss-mask names no file for b", "loss_mask")):
        done = subprocess.run([*command, *sets(**{flag: "a" if flag == missing else "ab" for flag in two})], capture_output=True, text=True)
        check(done.returncode == 1 and words in done.stderr and "b=FILE" in done.stderr, f"{words}: {done.stderr}")
    said = call([*command, *sets(**{flag: "ab" for flag in two})])
    check(re.search(r"eval loss/a (\S+) .*\n.*eval loss/b \1 ", said), said)

    # What is no pair, and what is cut off.
    tokens, mask = (bytearray(open(files[name], "rb").read()) for name in ("data", "loss_mask"))
    begins = [*struct.unpack("<32Q", open(files["documents"], "rb").read()), len(tokens)]
    open("other", "wb").write(bytes([tokens[0] ^ 1]) + tokens[1:])
    refused("documents 0 and 1 are no pair", "one prompt", reference_log_probs=reference, **dict(given, data="other"))
    shifted = struct.pack("<31Q", *begins[1:32]) + struct.pack("<Q", begins[32] - 1)
    open("shifted", "wb").write(shifted)
    refused("are no pair", reference_log_probs=reference, **dict(given, documents="shifted"))

    def masked(name, *documents):
        """The mask without the targets of some documents."""
        less = bytearray(mask)
        for i in documents:
            less[begins[i]:begins[i + 1]] = bytes(begins[i + 1] - begins[i])
        open(name, "wb").write(less)
        return dict(given, loss_mask=name, reference_log_probs=reference)

    refused("of 2 of 16 pairs, neither completion is within --seq 24 or counted by the mask", "pair 1 of", "is the first", "a longer --seq",
            **masked("neither", 2, 3, 10, 11))
    refused("no completion of its 16 pairs is within --seq 24 or counted by the mask", "is of this file", **masked("none", *range(32)))
    said = call(["./exe", *flags(dict(tokens="u8", steps=1, **masked("one", 5)))])
    check("of 1 of 16 pairs, one of the two completions is not within --seq 24" in said and "(pair 2 of" in said, said)
    compile(config, "short", loss="dpo", seq=8, batch=12, **adapters)
    behind = [i for i in range(0, 32, 2) if all(1 not in mask[begins[j] + 1:min(begins[j + 1], begins[j] + 9)] for j in (i, i + 1))]
    refused(f"of {len(behind)} of 16 pairs, neither completion is within --seq 8", f"pair {behind[0] // 2} of", exe="./short",
            reference_log_probs=reference, **given)

    # Numbers that are not finite are not written.
    last_log_probs = open("own.f32", "rb").read()
    call(["./exe", *flags(dict(tokens="u8", steps=1, lr=1e30, grad_clip=0, save="lost", reference_log_probs=reference, **given))])
    refused("the log-probability of sequence 0 of --eval-data", "so nothing is written", eval_only=True, steps=None, resume="lost", tokens="u8", log_probs="own.f32", **evaluated,
            **({"init": weights["init"]} if adapters else {}))
    check(open("own.f32", "rb").read() == last_log_probs, "own.f32 was overwritten")

# A run cannot go on within a pair, as one of another loss may have ended.
if ranks == 1 and not adapters:
    compile(config, "base", seq=last["size"]["seq"], batch=3)
    call(["./base", *flags(dict(tokens="u8", steps=1, save="base-run", data=files["data"], **weights))])
    refused("had read 3 sequences, which are no whole pairs", "--init base-run/", steps=2, resume="base-run", reference_log_probs=reference, **files)
print("all refused")
