#!/usr/bin/env python3
"""`meshwright plan --tensors` finds Megatron's layout where that is the best, and better ones elsewhere: tensors.py INPUTS EXAMPLES WORK [--all]"""
import json
import pathlib
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from clusters import write_cluster as cluster
from harness import call, check, fresh, planned

inputs, examples = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
fresh(sys.argv[3])
golden = {name: inputs / "golden" / name / "config.json" for name in ("llama-tiny", "gpt2-tiny")}
# Rows of the first and columns of the second are divided (Shoeybi et al. 2019), a dimension of which each has the names here.
MEGATRON = {"llama-tiny": {0: r"(q|k|v|gate|up)_proj", 1: r"(o|down)_proj"}, "gpt2-tiny": {0: r"attn\.[qkv]|c_fc", 1: r"c_proj"}}
# Compute is slow, so that it is worth dividing; all-reduces are fast, or what is between products is slow.
REDUCES = dict(products=1e9, inside=1e8, latency=1e-7, memory_bandwidth=1e12, fast="reduce")
SEQUENCES = dict(products=1e9, inside=1e9, latency=1e-7, memory_bandwidth=1e8)


def searched(found):
    """What the search found, of all plans."""
    return next(one for one in found["plans"] if one["name"] == "search")


def plan(model, mesh, *words, batch=1, seq=64, **links):
    cluster(count=8, target="cpu", **links)
    found = json.loads(call(["meshwright", "plan", model, "--tensors", "--mesh", mesh, "--cluster", "c.toml", "--json", *(["--batch", batch, "--seq", seq] if batch else []), *words]))
    steps = [one["step_s"] for one in found["plans"]]
    check(steps == sorted(steps) and len(steps) == 3, steps)
    check(not found["out_of_time"], found)
    search = searched(found)
    check(search["bound_s"] <= search["estimate_s"] * (1 + 1e-9), search["bound_s"])
    # What the search sends takes no longer than all it estimates.
    check(sum(one["seconds"] for one in search["reshards"]) <= search["estimate_s"], search["reshards"])
    return {**found, **{key: search[key] for key in ("proved", "seeds")}, "steps": {one["name"]: one["step_s"] for one in found["plans"]}}


def recipe(found, path):
    pathlib.Path(path).write_text("[seeds]\n" + "".join(f'{json.dumps(name)} = "{seed}"\n' for name, seed in found["seeds"].items()))
    return path


def sent(**options):
    """The bytes that the ranks of an executable send in a step."""
    rows = planned(target="cpu", batch=1, seq=64, **options)["collectives"]
    return sum(row["bytes"] * row["times"] for row in rows if row["program"] == "step")


for name, config in golden.items():
    # Each model on another number of devices, and with --all on both.
    for n in (2, 4) if "--all" in sys.argv else (2,) if name == "llama-tiny" else (4,):
        for links, preset, carried in ((REDUCES, "tensor parallelism", r"\[\{\?\}, \{\?\}, \{\?\}\], replicated = \{tensor\}"),
                                       (SEQUENCES, "tensor and sequence parallelism", r"\[\{\?\}, \{tensor\}, \{\?\}\]")):
            found = plan(config, f"tensor={n}", **links)
            check(found["proved"], f"{name} on {n}")
            for dim, pattern in MEGATRON[name].items():
                matrices = {key: seed for key, seed in found["seeds"].items() if key[0] != "@" and key.endswith(".weight") and re.search(pattern, key)}
                want = "[{tensor}, {}]" if dim == 0 else "[{}, {tensor}]"
                check(len(matrices) >= 2 and set(matrices.values()) == {want}, f"{name} on {n}: {matrices}, expected {want}")
            # What follows from other seeds, as a whole residual stream may, is none of them.
            stream = found["seeds"].get("@layer.forward:x#0", "[{?}, {?}, {?}], replicated = {tensor}")
            check(re.fullmatch(carried, stream), f"{name} on {n}: what layers pass on is {stream}")
            # Simulated, it is the preset's step, or a little better.
            check(found["steps"]["search"] <= found["steps"][preset] * (1 + 1e-4) and min(found["steps"], key=found["steps"].get) != "tensor parallelism" * (links is SEQUENCES),
                  f"{name} on {n}: {found['steps']}")
            if links is REDUCES:
                mine, its = sent(model=config, mesh=f"tensor={n}", recipe=recipe(found, "found.toml")), sent(model=config, mesh=f"tensor={n}")
                check(mine == its > 0, f"{name}: {mine} bytes are sent by the seeds that are found, {its} by tensor parallelism")
                print(f"{name}, {n} devices: {mine} bytes a step, as with tensor parallelism")

# On DGX H100 it is the layout of Llama 3 8B, too.
found = json.loads(call(["meshwright", "plan", examples / "llama3-8b.json", "--tensors", "--mesh", "tensor=8", "--cluster", "dgx-h100", "--batch", 4, "--seq", 4096, "--precision", "bf16", "--json"]))
found = {**found, **searched(found)}
rows, columns = (sorted(key.split(".")[-2] for key, seed in found["seeds"].items() if seed == want) for want in ("[{tensor}, {}]", "[{}, {tensor}]"))
check(rows == ["embed_tokens", "gate_proj", "k_proj", "lm_head", "q_proj", "up_proj", "v_proj"] and columns == ["down_proj", "o_proj"], found["seeds"])
steps = {one["name"]: one["step_s"] for one in found["plans"]}
check(found["proved"] and abs(steps["search"] / steps["tensor parallelism"] - 1) < 1e-9, steps)

# Where sequences can be divided instead, layers pass on parts of the batch, which tensor parallelism cannot, and recipes have that.
words = [golden["llama-tiny"], "--tensors", "--mesh", "data=2,tensor=2", "--batch", 8, "--seq", 64, "--cluster", "c.toml"]
found = plan(golden["llama-tiny"], "data=2,tensor=2", batch=8, **SEQUENCES)
check(found["plans"][0]["name"] == "search" and found["seeds"]["@layer.forward:x#0"] == "[{data, tensor}, {?}, {?}]", f"{found['steps']}, {found['seeds']}")
text = call(["meshwright", "plan", *words, "-o", "r.toml"])
check(re.search(r"data=2,tensor=2 on 4 devices of test; \d+ ops, each layer's once, searched in [0-9.]+ s\nsearch: no other choice costs less", text), text)
check(re.search(r"layers\.mlp\.gate_proj\.weight +\[\{tensor\}, \{\}\] +dimension 0 of 2 in 2 parts", text) and "it sends, by its estimate of a step" in text, text)
again = json.loads(call(["meshwright", "predict", "--recipe", "r.toml", "--json"]))
check(abs(again["step_s"] / found["steps"]["search"] - 1) < 1e-9, f"{again['step_s']}, {found['steps']}")
check('"@layer.forward:x#0" = "[{data, tensor}, {?}, {?}]"\n' in pathlib.Path("r.toml").read_text(), pathlib.Path("r.toml").read_text())
recipe(found, "llama.toml")
recipe(plan(golden["gpt2-tiny"], "tensor=2", batch=8, **SEQUENCES), "gpt2.toml")

# Where links are so slow that nothing is worth dividing, nothing is, and that is faster than tensor parallelism.
slow = plan(golden["gpt2-tiny"], "tensor=2", products=1e12, inside=1e5, latency=1e-4)
check(slow["plans"][0]["name"] == "search" and not any("{tensor}" in seed.split("replicated")[0] for seed in slow["seeds"].values()), slow["seeds"])
# Where that does not fit, bytes have a price, and the best is what fits.
needs = slow["plans"][0]["peak_bytes"]
tight = json.loads(call(["meshwright", "plan", golden["gpt2-tiny"], "--tensors", "--mesh", "tensor=2", "--cluster", "c.toml", "--batch", 1, "--seq", 64, "--json", "--memory-limit", needs - 1]))["plans"]
fits, others = ([one for one in tight if one["fits"] == which] for which in (True, False))
check(tight == fits + others and all(one["peak_bytes"] < needs for one in fits) and all(one["peak_bytes"] >= needs for one in others), tight)
check([one["step_s"] for one in fits] == sorted(one["step_s"] for one in fits) and {one["name"] for one in others} >= {"search"}, tight)
check(fits[0]["name"] == "search within memory" and fits[0]["step_s"] < 0.99 * fits[1]["step_s"], tight)
# Of that nothing is proved, and it has seeds of its own.
check(not fits[0]["proved"] and "bound_s" not in fits[0] and fits[0]["seeds"] != others[0].get("seeds"), fits[0])
# A search that has no time takes what it has.
late = json.loads(call(["meshwright", "plan", golden["gpt2-tiny"], "--tensors", "--mesh", "tensor=2", "--cluster", "c.toml", "--batch", 1, "--seq", 64, "--json", "--seconds", 1e-9]))
check(late["out_of_time"] and searched(late)["bound_s"] <= searched(slow)["estimate_s"] * (1 + 1e-9) <= searched(late)["estimate_s"] * (1 + 2e-9), late)

# A graph with branches, as IR.
block = plan(examples / "parallel-block.mlir", "tensor=4", batch=None, **REDUCES)
check(block["steps"]["search"] < 0.99 * min(block["steps"]["tensor parallelism"], block["steps"]["tensor and sequence parallelism"]), block["steps"])
check(block["seeds"]["@layer.forward:x#0"] == "[{tensor}, {?}, {?}]", block["seeds"])

# Layers that are called twice: a seed is for both, and names the function that was written.
text = (examples / "parallel-block.mlir").read_text()
begin, end = text.index("    %y = train.repeat @layer"), text.index("    %n = train.layer_norm %y")
again = text[begin:end].replace("carry(%x)", "carry(%y)").replace("%y = train", "%y2 = train")
pathlib.Path("twice.mlir").write_text(text[:end] + again + text[end:].replace("layer_norm %y,", "layer_norm %y2,", 1))
twice = plan("twice.mlir", "tensor=4", batch=None, **REDUCES)
check({key for key in twice["seeds"] if key.startswith("@layer.forward")} == {"@layer.forward:x#0"}, twice["seeds"])
check(twice["steps"]["search"] < 0.99 * min(twice["steps"]["tensor parallelism"], twice["steps"]["tensor and sequence parallelism"]), twice["steps"])

# Layers of T5 pass on gradients that all of them share, under one name, and these have no batch.
if "--all" in sys.argv:
    shared = plan(inputs / "golden-more" / "t5" / "config.json", "data=2,tensor=2", batch=4, seq=16, **REDUCES)["seeds"]
    gradients = {key: seed for key, seed in shared.items() if re.match("@(en|de)coder_layer.backward", key)}
    check("[{?}, {tensor}]" in gradients.values() and not any("data" in seed for seed in gradients.values()), gradients)


def refuses(words, why):
    done = subprocess.run(["meshwright", "plan", *map(str, words)], capture_output=True, text=True, timeout=300)
    check(done.returncode == 1 and re.search(why, done.stderr), f"{words}: {done.stderr}")


for name, line in {"devices": "devices = 2", "auto": 'plan = "auto"'}.items():
    pathlib.Path(f"{name}.toml").write_text(line + "\n")
block = (examples / "parallel-block.mlir").read_text()
pathlib.Path("seeded.mlir").write_text(block.replace("module attributes {", 'module attributes {dist.seeds = [["embed.weight", "[{}, {}]"]], ', 1))
cluster(path="kinds.toml", target="cpu", more='count = 2\n[[devices]]\nname = "other"\nmemory = 1e12\nproducts = {f32 = 1e11, bf16 = 1e11}\nkernels = 1e15\nmemory_bandwidth = 1e10\nlaunch = 1e-6\nhost = {latency = 0, bandwidth = 1e10}\nsource = "a test"')
pathlib.Path("seeded.toml").write_text('[seeds]\n"wte.weight" = "[{}, {}]"\n')
config, on = golden["gpt2-tiny"], ["--cluster", "c.toml", "--batch", 8, "--seq", 16, "--tensors"]
for words, why in (
        ([*on], "--tensors needs --mesh with an axis tensor, such as --mesh tensor=4"),
        ([*on, "--mesh", "data=2"], "mesh data=2 has no axis tensor of several devices to search along; add e.g. tensor=2"),
        ([*on, "--mesh", "tensor=1"], "has no axis tensor of several devices"),
        ([*on, "--mesh", "tensor=2x2"], "mesh axis 'tensor.0' is not supported"),
        ([*on, "--mesh", "pipe=2,tensor=2"], "mesh axis 'pipe' is not supported; beside tensor, a mesh may have data and replica"),
        ([*on, "--mesh", "tensor=2", "--sequence-parallel"], "--sequence-parallel is what plan --tensors decides"),
        ([*on, "--mesh", "tensor=2", "--devices", 2], "--devices is for the search of a layout"),
        ([*on, "--mesh", "tensor=2", "--keep", "--zero 1"], "--keep is for the search of a layout"),
        ([*on, "--mesh", "tensor=2", "--layouts", 3], "--layouts is for the search of a layout"),
        ([*on, "--mesh", "tensor=2", "--recipe", "seeded.toml"], r"--tensors finds seeds itself; leave the recipe's \[seeds\] out"),
        ([*on, "--mesh", "tensor=2", "--recipe", "devices.toml"], "the recipe's 'devices' is for the search of a layout"),
        ([*on, "--mesh", "tensor=2", "--recipe", "auto.toml"], "the recipe's 'plan' is for the search of a layout"),
        ([*on, "--mesh", "data=3,tensor=2"], "--batch 8 does not divide by 3"),
        ([*on, "--mesh", "tensor=2", "-o", "c.toml"], "overwrite --cluster"),
        ([*on, "--mesh", "tensor=2", "--memory-limit", 1000], "no plan fits into the 1000 bytes of a device"),
        (["--cluster", "c.toml", "--tensors", "--mesh", "tensor=2"], "--batch is missing"),
        (["--tensors", "--mesh", "tensor=2", "--batch", 8], "--cluster is missing")):
    refuses([config, *words], why)
refuses([config, "--cluster", "kinds.toml", *on[2:], "--mesh", "tensor=4"], "mesh tensor=4 has more devices than the 2 'device' that cluster test begins with; its estimate is for devices of one kind")
refuses(["seeded.mlir", "--cluster", "c.toml", "--tensors", "--mesh", "tensor=2"], "--tensors finds seeds itself, but 'seeded.mlir' has some already; take them out")
refuses([examples / "parallel-block.mlir", "--cluster", "c.toml", "--tensors", "--mesh", "data=2,tensor=2"], "is written for its batch, .* leave data out")
