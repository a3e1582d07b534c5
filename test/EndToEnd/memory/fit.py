#!/usr/bin/env python3
"""What `meshwright fit` calls the largest is within the limit, and the next is not.

  fit.py WORK
"""
import json
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import INPUTS, call, check, flags, fresh

fresh(sys.argv[1])
models = {name: INPUTS / "golden" / name / "config.json" for name in ("gpt2-tiny", "llama-tiny")}


def compiles(model, limit, **options):
    """What refuses to compile under the limit, or nothing."""
    done = subprocess.run(["meshwright", "compile", models[model], "--emit", "object", "-o", "out.o", "--assert",
                           f"peak<={limit}", *flags(options)], capture_output=True, text=True, timeout=120)
    return done.stderr if done.returncode else ""


for model, quantity, limit, step, options in (
        ("gpt2-tiny", "batch", "20MiB", 6, {"mesh": "data=2", "microbatches": 3}),
        ("gpt2-tiny", "seq", "2.25MB", 1, {}),
        ("llama-tiny", "seq", "3MiB", 2, {"mesh": "tensor=2", "sequence_parallel": True, "batch": 2})):
    text = call(["meshwright", "fit", models[model], "--largest", quantity, "--memory-limit", limit, *flags(options)])
    value, more = map(int, re.search(rf"largest {quantity}: (\d+), .*; (\d+) would be", text).groups())
    check(more == value + step, f"{more} is not the next after {value}:\n{text}")
    print(f"{model} {options}: {quantity} {value} under {limit}")
    fine = compiles(model, limit, **options, **{quantity: value})
    check(not fine, f"{quantity} {value} does not compile: {fine}")
    bad = compiles(model, limit, **options, **{quantity: more})
    check("is broken" in bad, f"{quantity} {more} should break the limit: {bad}")

# What the host could hold is said too: without --offload the largest that fits with it, and with --offload whether that fits without.
# Of a few layers activations share memory with gradients, and would save nothing on the host.
models["deep"] = "deep.json"
json.dump(dict(json.load(open(models["gpt2-tiny"])), n_layer=12), open("deep.json", "w"))
size = {"largest": "batch", "memory_limit": "40MiB", "mesh": "data=2"}
plain = call(["meshwright", "fit", models["deep"], *flags(size)])
found = re.search(r"; (\d+) would be: ([\d,]+) bytes.*\nwith --offload optimizer: batch (\d+): ([\d,]+) bytes a rank and [\d,]+ on the host",
                  plain)
check(found and found[1] == found[3] and int(found[4].replace(",", "")) < int(found[2].replace(",", "")), plain)
said = re.search(r"^with --offload optimizer: (largest batch: .*)$", plain, re.MULTILINE)
own = re.search(r"^(largest batch: .*)$", call(["meshwright", "fit", models["deep"], *flags(dict(size, offload="optimizer"))]), re.MULTILINE)
check(said and said[1] == own[1], f"the largest with --offload is said to be:\n{plain}")
more = call(["meshwright", "fit", models["deep"], *flags(dict(size, offload="optimizer,activations"))])
found = re.search(r"largest batch: (\d+), .* on the host; .*\nwithout --offload optimizer,activations: batch (\d+): [\d,]+ bytes a rank, too much",
                  more)
check(found and found[1] == found[2], more)
fits = [int(re.search(r"largest batch: (\d+)", text)[1]) for text in (plain, more)]
check(fits[0] < fits[1], f"no more fits with --offload: {fits}")
print(f"batch {fits[0]}, with --offload {fits[1]}")

# What makes the next batch fit, and at what price: each line is what a compile of it says.
size = {"memory_limit": "3MiB", "cluster": "cpu"}
said = call(["meshwright", "fit", models["gpt2-tiny"], "--largest", "batch", *flags(size)])
value = int(re.search(r"\nbatch (\d+) fits with one of these:\n", said)[1])
ways = re.findall(r"^  (--.*): ([\d,]+) bytes a rank(?: and ([\d,]+) on the host)?; (.*) a step, (.*) without$", said, re.MULTILINE)
number = lambda text: int(text.replace(",", "") or 0)
check(len(ways) >= 4 and any("--remat full" in way[0] for way in ways), said)
seconds = []
for words, device, host, price, _ in ways:
    predicted = json.loads(call(["meshwright", "predict", models["gpt2-tiny"], "--cluster", "cpu", "--batch", value, *words.split(), "--json"]))
    seconds.append(predicted["step_s"])
    call(["meshwright", "compile", models["gpt2-tiny"], "--cluster", "cpu", "--batch", value, *words.split(), "--emit", "exec", "-o", "exec.mlir", "--report", "report"])
    plan = json.load(open("report/report.json"))
    program = plan["programs"][0]
    copied = sum(program.get("copied_bytes", {}).get("step", {}).values())
    check((number(device), number(host), copied) == (plan["device_bytes"], program.get("host_bytes", 0), number((re.search(r"([\d,]+) bytes copied", price) or ["", "0"])[1])), f"{words}: {plan['device_bytes']}, {program.get('host_bytes')}, {copied}, but {said}")
    check(number(device) <= 3 << 20 and ("more FLOPs" in price) == ("remat" in words), said)
check(seconds == sorted(seconds), f"{seconds}: not the fastest first")

# A depth cannot be asked of compile: the plan of each is in the output. With stages the search begins where each chunk
# has a layer, and with cuts behind the last of them.
for fewest, options in ((1, {}), (4, {"mesh": "pipe=2", "schedule": "interleaved:2", "microbatches": 2}),
                        (6, {"mesh": "pipe=3", "cuts": "2,5", "microbatches": 3})):
    text = call(["meshwright", "fit", models["gpt2-tiny"], "--largest", "layers", "--memory-limit", "20MB", *flags(options)])
    tried = {int(n): int(b.replace(",", "")) for n, b in re.findall(r"^layers (\d+): ([\d,]+) bytes", text, re.MULTILINE)}
    best = int(re.search(r"largest layers: (\d+)", text).group(1))
    print(f"{options}: {best} layers")
    check(tried[best] <= 20e6 < tried[best + 1], f"not the largest:\n{text}")
    check(best == max(n for n in tried if tried[n] <= 20e6), f"a larger one fits:\n{text}")
    check(min(tried) == fewest, f"the search begins at {min(tried)} layers, not {fewest}:\n{text}")

# A list of the layers' types is cut, or repeated from its beginning: what the depth found needs is what a config that
# lists so many needs.
config = {"model_type": "qwen3", "vocab_size": 64, "max_position_embeddings": 64, "hidden_size": 32, "num_hidden_layers": 3,
          "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 32,
          "use_sliding_window": True, "sliding_window": 4,
          "layer_types": ["sliding_attention", "full_attention", "full_attention"]}
models["listed"] = "listed.json"
json.dump(config, open("listed.json", "w"))
text = call(["meshwright", "fit", "listed.json", "--largest", "layers", "--memory-limit", "2MB"])
best = int(re.search(r"largest layers: (\d+)", text)[1])
check(best > 3, f"too few to repeat the list:\n{text}")
for layers in (1, best, best + 1):
    types = [config["layer_types"][i % 3] for i in range(layers)]
    json.dump(dict(config, num_hidden_layers=layers, layer_types=types), open("listed.json", "w"))
    bytes = re.search(rf"^layers {layers}: ([\d,]+) bytes", text, re.MULTILINE)[1].replace(",", "")
    check(not compiles("listed", f"{bytes}B"), f"{layers} layers need more than {bytes} bytes:\n{text}")
    check("is broken" in compiles("listed", f"{int(bytes) - 1}B"), f"{layers} layers need less than {bytes} bytes:\n{text}")
print(f"layer_types of 3: {best} layers")
