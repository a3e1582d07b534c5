#!/usr/bin/env python3
"""Schedule-free AdamW: checkpoints hold the averages and evaluations are theirs, runs go on in the same bits, and steps that change nothing do not
weigh: schedule_free.py GOLDEN WORK STRATEGY..."""
import filecmp
import json
import pathlib
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from compare import read_safetensors
from harness import Golden, call, check, compile, distance, flags, fresh, interpreted, planned, ranks_of, strategy, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
run, answers = golden.run, golden.answers
evaluation = {"eval_data": golden.data["data"], "tokens": golden.data["tokens"], "eval_batches": 2}


def state(folder):
    return json.loads(pathlib.Path(folder, "latest", "state.json").read_text())


def rate(step):
    return run["lr"] * min(1, (step + 1) / run["warmup"])


for item in sys.argv[3:]:
    options = dict(golden.size, **strategy(item))
    exact, ranks = options.get("precision") is None, ranks_of(options["mesh"])
    compile(golden.config, "exe", **options)
    # Evaluating and saving in between changes nothing.
    whole = train("./exe", ranks, save="whole", save_every=1, keep=1, eval_every=2, **dict(run, **evaluation))
    plain = train("./exe", ranks, save="plain", **run)
    check([row["loss"] for row in whole] == [row["loss"] for row in plain], f"{item}: evaluations change losses")
    off, at_x = distance(plain, [{"loss": loss} for loss in answers["loss"]]), abs(whole[-1]["eval_loss"] / answers["eval_loss"] - 1)
    # Another executable evaluates what is saved as a model, which is what this one has evaluated.
    compile(golden.config, "adamw", **dict(options, optimizer=None))
    start = {"eval_only": True, **evaluation}
    again = train("./exe", ranks, resume="whole", **start)[-1]["eval_loss"]
    other = train("./adamw", ranks, init="whole/latest", **start)[-1]["eval_loss"]
    check(again == other == whole[-1]["eval_loss"], f"{item}: {again} and {other} in place of {whole[-1]['eval_loss']}")
    # The sum of weights of all updates is a part of the checkpoint.
    rates = state("whole")["rates"]
    check(rates["largest"] == run["lr"] and abs(rates["sum"] / sum(rate(step) ** 2 for step in range(run["steps"])) - 1) < 1e-14, f"{item}: {rates}")
    train("./exe", ranks, save="half", **dict(run, steps=run["steps"] // 2))
    rest = train("./exe", ranks, save="rest", resume="half", **dict(run, init=None))
    check(rest == plain, f"{item}: a resumed run has the losses {rest}, not {plain}")
    for file in ("model.safetensors", "optimizer.safetensors"):
        for folder in ("whole", "rest"):
            check(filecmp.cmp(f"{folder}/latest/{file}", f"plain/latest/{file}", shallow=False), f"{item}: {folder}/{file} differs in a bit")
    print(f"{golden.directory.name} {item}: loss {off:.1e}, that of the averages {at_x:.1e}; resumed: same bits", flush=True)
    check(off <= (1e-5 if exact else 2e-2) and at_x <= (1e-5 if exact else 2e-2), f"losses are off by {off:.1e} and {at_x:.1e}")

# Gradients that overflow weigh nothing.
compile(golden.config, "fp16", **golden.size, precision="fp16")
have = train("./fp16", save="fp16-run", **dict(run, warmup=None, steps=12, initial_loss_scale=2.0**21))
count = sum(row["skipped"] for row in have)
check(2 <= count < 10, f"{count} of 12 steps are skipped")
rates = state("fp16-run")["rates"]
check(abs(rates["sum"] / ((12 - count) * run["lr"] ** 2) - 1) < 1e-12, f"{count} of 12 steps are skipped: {rates}")
check(have[-1]["loss"] < 5.9, "it does not train after that")

# Adapters are averaged as other parameters, and merged as they are evaluated.
adapters = {"lora": "r=2,alpha=4,targets=all-linear"}
compile(golden.config, "lora", **golden.size, **adapters)
tuned = train("./lora", save="adapters", save_merged="merged", **dict(run, **evaluation))
near = interpreted(golden.config, dict(golden.size, **adapters), run)
check(distance(tuned, near) <= 1e-5, "adapters are trained otherwise than in the interpreter")
compile(golden.config, "adamw", **dict(golden.size, optimizer=None))
merged = train("./adamw", init="merged", eval_only=True, **evaluation)[-1]["eval_loss"]
check(abs(merged / tuned[-1]["eval_loss"] - 1) <= 1e-5, f"the merged model has the loss {merged}, not {tuned[-1]['eval_loss']}")
check(all(".lora_" in name for name in read_safetensors("adapters/latest/optimizer.safetensors")), "states of others than adapters")

# A checkpoint that lost what it says of the weights is refused. One of version 2 has no checksum.
path = pathlib.Path("plain/latest/state.json")
lost = {key: value for key, value in json.loads(path.read_text()).items() if key not in ("checksum", "files", "rates")}
path.write_text(json.dumps(dict(lost, version=2)))
done = subprocess.run(list(map(str, ["./exe", *flags(dict(golden.data, resume="plain", steps=9, ranks=ranks if ranks > 1 else None))])), capture_output=True, text=True, timeout=60)
check(done.returncode == 1 and 'has no "rates"' in done.stderr, done.stderr)

# In place of AdamW's momentum a rank keeps y - x; y lives during the step.
memory = {}
for name in ("adamw", "schedule-free-adamw"):
    for item in ("one", "data=2+zero=1", "data=2+zero=3"):
        plan = planned(golden.config, **dict(golden.size, optimizer=name), **strategy(item))
        memory[name, item] = {row["category"]: row["bytes"] for row in plan["programs"][0]["memory"]}
for item in ("one", "data=2+zero=1", "data=2+zero=3"):
    ours, theirs = memory["schedule-free-adamw", item], memory["adamw", item]
    print(f"{item}: optimizer {ours['optimizer']} and {theirs['optimizer']}, parameters {ours['parameter']} and {theirs['parameter']} bytes", flush=True)
    check(ours["optimizer"] == theirs["optimizer"], f"{item}: states take {ours['optimizer']} bytes, AdamW's {theirs['optimizer']}")
    check(ours["parameter"] == memory["adamw", "data=2+zero=3" if "zero" in item else "one"]["parameter"], f"{item}: parameters take {ours['parameter']} bytes")
