#!/usr/bin/env python3
"""Steps that `meshwright predict` gives beside those of SimGrid, which runs the same programs' traces on platforms of its own: simgrid.py JUDGE INPUTS WORK

Fat trees have 4 hosts at a leaf, tori 4 devices in a dimension. Each program spends a fair share of its step in communication, which is checked."""
import json
import pathlib
import sys

sys.path.append(sys.path[0] + "/..")
from harness import call, check, compile, flags, fresh, ranks_of, strategy

judge, inputs = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
fresh(sys.argv[3])
BANDWIDTH, LATENCY = 1e8, 5e-6
DEVICE = """target = "cuda"
[[devices]]
name = "device"
memory = 1e12
products = {{f32 = {rate}, bf16 = {rate}}}
kernels = 1e15
memory_bandwidth = {rate}
launch = 0
host = {{latency = 0, bandwidth = 1e10}}
source = "a test"
"""


def level(name, size, latency, bandwidth):
    return f'[[levels]]\nname = "{name}"\n{size}\nlatency = {latency}\nbandwidth = {bandwidth}\nsource = "a test"\n'


def fat_tree(hosts, leaves, uplinks):
    """Messages of a leaf pass two links, others four; the links up are shared by the hosts of a leaf."""
    text = level("leaf", f"count = {hosts}", 2 * LATENCY, BANDWIDTH) + level("spine", f"count = {leaves}", 4 * LATENCY, BANDWIDTH * uplinks / hosts)
    return text, ["fat-tree", hosts, leaves, uplinks]


def torus(*sizes):
    return level("links", f"torus = {list(sizes)}", LATENCY, BANDWIDTH), ["torus", *sizes]


# Wider than the models of other tests, so that bandwidth counts beside latency.
dense = json.load(open(inputs / "golden/gpt2-tiny/config.json"))
json.dump({**dense, "n_embd": 256, "n_layer": 4, "n_head": 8}, open("dense.json", "w"))
mixture = inputs / "golden-more/sparse-deepseek-v3/config.json"
full, thin = fat_tree(4, 4, 4), fat_tree(4, 4, 2)
worst = 0
for what, (levels, platform), model, row, rate in (
        ("ring all-reduce of the program's own messages", full, "dense.json", "data=16+collective-algorithm=ring+overlap=off", 1e10),
        ("all-reduce by halving and doubling", full, "dense.json", "data=16+collective-algorithm=halving-doubling+overlap=off", 1e10),
        ("all-gathers and reduce-scatters", full, "dense.json", "data=16+zero=3", 1e10),
        ("all-to-all of experts", full, mixture, "expert=4+overlap=off", 4e9),
        ("1F1B", full, "dense.json", "pipe=4,data=4/8+overlap=off", 1e9),
        ("1F1B whose messages share links up", thin, "dense.json", "pipe=2,data=8/4+overlap=off", 1e9),
        ("ring all-reduces along two dimensions of a torus", torus(4, 4), "dense.json", "data=4,tensor=4+overlap=off", 1e10),
        ("all-gathers and reduce-scatters along both dimensions at once", torus(4, 4), "dense.json", "data=16+zero=3", 5e10),
        ("all-to-all of experts in a torus", torus(4, 4), mixture, "data=4,expert=4+overlap=off", 4e9),
        ("interleaved 1F1B whose messages share links of a torus", torus(4, 4), "dense.json", "pipe=2,data=8/4+schedule=interleaved:2+overlap=off", 1e9)):
    pathlib.Path("c.toml").write_text('name = "test"\n' + DEVICE.format(rate=rate) + levels)
    options = {"batch": 64, "seq": 16, **strategy(row)}
    step = json.loads(call(["meshwright", "predict", model, "--cluster", "c.toml", "--json", *flags(options)]))
    compile(model, "traces", emit="chakra", cluster="c.toml", **options)
    seconds = float(call([judge, "traces", ranks_of(options["mesh"]), *platform, BANDWIDTH, LATENCY, "--log=root.thresh:critical"]).split()[-1])
    share = sum(value for key, value in step["breakdown"].items() if key.startswith("communication")) / step["step_s"]
    error = step["step_s"] / seconds - 1
    worst = max(worst, abs(error))
    print(f"{what}: {row}: {step['step_s']:.4f} s predicted, {seconds:.4f} s in SimGrid ({error:+.1%}), {share:.0%} of it communication", flush=True)
    check(abs(error) <= 0.05, f"{what}: {error:+.1%}")
    check(share > (0.02 if "pipe" in row else 0.2), f"{what}: only {share:.1%} is communication")
print(f"worst error {worst:.1%}")
