#!/usr/bin/env python3
"""`meshwright plan` finds what trying everything finds: plan.py CONFIG WORK"""
import itertools
import json
import pathlib
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from clusters import write_cluster as cluster
from harness import call, check, fresh

config = pathlib.Path(sys.argv[1]).resolve()
fresh(sys.argv[2])
DEVICES, BATCH, SEQ = 4, 8, 16


def plan(*words, seq=SEQ):
    command = ["meshwright", "plan", config, "--cluster", "c.toml", "--devices", DEVICES, "--batch", BATCH, "--seq", seq, "--json", "--seconds", 500, *words]
    found = json.loads(subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout)
    steps = [one["step_s"] for one in found["best"]]
    check(steps == sorted(steps) and found["complete"], f"{found['compiled']} of {found['layouts']} layouts, {steps}")
    front = [(one["step_s"], one["peak_bytes"]) for one in found["pareto"]]
    check(front == sorted(front) and sorted(bytes for _, bytes in front) == [bytes for _, bytes in front][::-1], f"fastest with less memory: {front}")
    return found


def seconds_of(flags):
    command = ["meshwright", "predict", config, "--cluster", "c.toml", "--json", "--batch", BATCH, "--seq", SEQ, *flags]
    return json.loads(subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout)["step_s"]


def placed(flags):
    """The step of a layout with its axes in the best order."""
    words = flags.split()
    axes = words[1].split(",")
    return min(seconds_of([words[0], ",".join(order), *words[2:]]) for order in itertools.permutations(axes))


def everything(capacity):
    """The fastest step of all layouts of two layers that fit, with the least activation checkpointing that does."""
    best = None
    for pipe, replica, data, tensor in itertools.product((1, 2), (1, 2), (1, 2, 4), (1, 2, 4)):
        ranks = replica * data
        if pipe * ranks * tensor != DEVICES or BATCH % ranks:
            continue
        for micro, zero, schedule in itertools.product((1, 2, 4, 8), (0, 1, 2, 3), (None, "zb-h1")):
            microbatches = BATCH // ranks // micro
            if (zero and data == 1) or (replica > 1 and not zero) or microbatches * micro * ranks != BATCH or (schedule and (pipe == 1 or microbatches < pipe)):
                continue
            mesh = ",".join(f"{axis}={size}" for axis, size in (("pipe", pipe), ("replica", replica), ("data", data), ("tensor", tensor)) if size > 1)
            flags = ["--mesh", mesh, "--microbatches", microbatches] + (["--zero", zero] if zero else [])
            flags += (["--sequence-parallel"] if tensor > 1 else []) + (["--schedule", schedule] if schedule else [])
            for remat in ("none", "selective", "full"):
                command = ["meshwright", "predict", config, "--cluster", "c.toml", "--json", "--batch", BATCH, "--seq", SEQ, "--remat", remat, *flags]
                done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
                if done.returncode:
                    break
                result = json.loads(done.stdout)
                if result["peak_bytes"] <= capacity:
                    best = min(best or (9, ""), (result["step_s"], " ".join(map(str, flags))))
                    break
    return best


# The optimum of the whole space, on fast links.
cluster(memory=1e12, outside=1e9)
found, (seconds, flags) = plan(), everything(1e12)
seconds = placed(flags)
check(abs(found["best"][0]["step_s"] / seconds - 1) < 1e-3, f"plan finds {found['best'][0]}, but {flags} takes {seconds}")
largest = found["best"][0]["peak_bytes"]

# Less memory needs other layouts, and they fit.
smallest = found["pareto"][-1]["peak_bytes"]
check(smallest < largest, f"{smallest} of {largest} bytes")
limit = (smallest + largest) / 2
cluster(memory=limit, outside=1e9)
less = plan()
check(less["best"][0]["peak_bytes"] <= limit and less["best"][0]["step_s"] >= found["best"][0]["step_s"], less["best"][0])

# Slow links between machines: nothing that is sent within layers goes there.
cluster(memory=1e12, outside=1e6)
slow = plan("--zero", 0)["best"][0]
check("tensor=4" not in slow["flags"].get("mesh", ""), slow)
# There, ZeRO's shards stay in a machine.
hybrid = plan("--zero", 3, "--keep", "--mesh tensor=1,pipe=1")["best"]
check(hybrid[0]["flags"]["mesh"] == "replica=2,data=2" and any(one["flags"]["mesh"] == "data=4" for one in hybrid), hybrid)
check(all("replica" not in one["flags"]["mesh"] for one in plan("--zero", 3, "--keep", "--mesh replica=1")["best"]), "replica=1 is kept")

# Few tokens and slow links between machines: gradients, not activations, are sent within them. Executables number ranks so.
cluster(inside=1e9, outside=1e7)
best = plan("--keep", "--mesh tensor=2,data=2,pipe=1", "--zero", 0, seq=2)
check(best["best"][0]["flags"]["mesh"] == "tensor=2,data=2", best["best"])
usual = next(one for one in best["best"] if one["flags"] == {**best["best"][0]["flags"], "mesh": "data=2,tensor=2"})
check("data, tensor outermost first loses" in usual["loses"] and "along data exposed on outside" in usual["loses"], usual)
# Compilations are kept for placements, and it is said if there are too few; what is compiled is counted.
for limit, untried in ((1, 1), (2, 0)):
    words = ["meshwright", "plan", config, "--cluster", "c.toml", "--devices", DEVICES, "--batch", BATCH, "--seq", 2, "--keep", "--mesh tensor=2,data=2,pipe=1", "--zero", 0, "--layouts", limit]
    cut, few = json.loads(call([*words, "--json"])), call(words)
    check((cut["compiled"], cut["placements"], cut["untried_placements"]) == (limit, 1, untried), cut)
    check(any(one["flags"]["mesh"] == "tensor=2,data=2" for one in cut["best"]) == (untried == 0), cut["best"])
    check("layouts and 1 other placement of the best of 4 devices" in few and f"; {limit} compiled" in few, few)
    check(("1 of 1 other placements of the best layout were not tried" in few) == (untried == 1), few)
# With one kind of links no order is better than another.
cluster(count=4)
check(not any(one["flags"]["mesh"] == "tensor=2,data=2" for one in plan("--keep", "--mesh tensor=2,data=2,pipe=1", "--zero", 0)["best"]), "orders alike")

cluster(memory=1e12, outside=1e6)
# The recipe is what was found, and compiles.
call(["meshwright", "plan", config, "--cluster", "c.toml", "--devices", DEVICES, "--batch", BATCH, "--seq", SEQ, "-o", "r.toml"])
recipe = pathlib.Path("r.toml").read_text()
again = json.loads(call(["meshwright", "predict", "--recipe", "r.toml", "--json"]))
check(f"{again['step_s']:.4f} s a step" in recipe, f"{recipe} takes {again['step_s']}")

# So it is with flags that are off, and with seeds.
pathlib.Path("off.toml").write_text('packed = false\n[seeds]\n"h.mlp.*.weight" = "[{}, {}]"\n')
said = call(["meshwright", "plan", config, "--recipe", "off.toml", "--cluster", "c.toml", "--devices", 2, "--batch", BATCH, "--seq", SEQ, "--zero", 0, "--keep", "--mesh tensor=2", "-o", "r.toml"])
recipe = pathlib.Path("r.toml").read_text()
check("packed = false\n" in recipe and "zero = 0\n" in recipe and recipe.endswith('[seeds]\n"h.mlp.*.weight" = "[{}, {}]"\n'), recipe)
again = json.loads(call(["meshwright", "predict", "--recipe", "r.toml", "--json"]))
check(f"{again['step_s']:.4f} s a step" in recipe, f"{recipe} takes {again['step_s']}")

# A search that ends with the number of layouts does not blame the time.
few = call(["meshwright", "plan", config, "--cluster", "c.toml", "--devices", DEVICES, "--batch", BATCH, "--seq", SEQ, "--layouts", 1, "--threads", 1])
check("as many layouts as --layouts allows were compiled" in few and "time limit" not in few, few)

# Sentences about slower layouts name the axis and the link that they wait for.
cluster(outside=3e7)
held = plan("--keep", "--mesh pipe=1 --zero 0", "--schedule", "1f1b")
check(all("loses" in one for one in held["best"][1:]) and "loses" not in held["best"][0], held["best"])
whole = next((one for one in held["best"] if one["flags"]["mesh"] == "tensor=4"), None)
check(whole and re.match(r".*tensor=4.* loses [0-9.]+%: .* along tensor exposed on outside [+][0-9.]+%", whole["loses"]), whole)
check(all("pipe" not in one["flags"]["mesh"] and "zero" not in one["flags"] for one in held["best"]), held["best"])
table = call(["meshwright", "plan", config, "--cluster", "c.toml", "--devices", DEVICES, "--batch", BATCH, "--seq", SEQ])
check("tokens/s" in table and " loses " in table, table)

# A number of microbatches that is given is all that is searched.
rows = plan("--microbatches", 1, "--keep", "--mesh data=2")
check(all("microbatches" not in one["flags"] and "data=2" in one["flags"]["mesh"] for one in rows["best"]), rows["best"])

# One command searches and compiles; the mesh holds what it names.
said = call(["meshwright", "compile", config, "--plan", "auto", "--cluster", "cpu", "--devices", 2, "--batch", BATCH, "--seq", SEQ, "-o", "auto"])
check(re.search(r"plan auto: --mesh .*=2.* of [0-9]+ layouts of 2 devices of cpu by [0-9]+ compilations: [0-9.]+ ms a step", said), said)
check("2 ranks" in said, said)
data = pathlib.Path("tokens.u16")
data.write_bytes(bytes(b for token in range(256) for b in (token, 0)) * 16)
call(["meshwright", "run", "-n", 2, "./auto", "--data", data, "--steps", 1])
said = call(["meshwright", "compile", config, "--plan", "auto", "--cluster", "cpu", "--devices", 4, "--batch", BATCH, "--seq", SEQ, "--mesh", "tensor=4", "--emit", "local"])
check('"tensor" = 4' in said and "plan auto: --mesh tensor=4 " in said, said[:300])


def refuses(command, why):
    done = subprocess.run(["meshwright", *map(str, command)], capture_output=True, text=True, timeout=300)
    check(done.returncode == 1 and re.search(why, done.stderr), f"{command}: {done.stderr}")
    return done.stderr


for words, why in (
        (["--devices", 4], "--cluster is missing"),
        (["--cluster", "c.toml"], "--devices is missing"),
        (["--cluster", "c.toml", "--devices", 4, "-o", "c.toml"], "overwrite --cluster"),
        (["--cluster", "c.toml", "--devices", 0], "is not a whole number"),
        (["--cluster", "c.toml", "--devices", 4000000000000], "--devices 4000000000000 must be at most 1048576"),
        (["--cluster", "c.toml", "--devices", 1000003], "there is no layout of 1000003 devices: .*; [0-9]+ can be divided"),
        (["--cluster", "c.toml", "--devices", 4, "--threads", "many"], "--threads 'many' is not a whole number"),
        (["--cluster", "c.toml", "--devices", 4, "--layouts", -1], "--layouts '-1' is not a whole number"),
        (["--cluster", "c.toml", "--devices", 4, "--mesh", "data=4"], "--mesh is what plan looks for"),
        (["--cluster", "c.toml", "--devices", 4, "--plan", "auto"], "plan searches layouts anyway"),
        (["--cluster", "c.toml", "--devices", 4, "--assert", "peak<=1GiB"], "plan checks nothing"),
        (["--cluster", "c.toml", "--devices", 4, "--seconds", "soon"], "is not a positive number"),
        (["--cluster", "c.toml", "--devices", 4, "--keep", "--mesh rows=2"], "'rows' is not supported; the choices are pipe"),
        (["--cluster", "c.toml", "--devices", 4, "--keep", "--mesh tensor=2,tensor=2"], "names tensor twice"),
        (["--cluster", "c.toml", "--devices", 4, "--keep", "--mesh tensor=0"], "needs a size from 1 on"),
        (["--cluster", "c.toml", "--devices", 4, "--keep", "--mesh"], "--mesh needs axes"),
        (["--cluster", "c.toml", "--devices", 4, "--keep", "--zreo 1"], "there is no flag --zreo; did you mean --zero"),
        (["--cluster", "c.toml", "--devices", 4, "--keep", "--mesh tensor=3"], "there is no layout of 4 devices"),
        (["--cluster", "c.toml", "--devices", 7], "there is no layout of 7 devices: .*; 6 and 8 can be divided|there is no layout of 7 devices: .*; 8 can be divided")):
    refuses(["plan", config, "--batch", BATCH, "--seq", SEQ, *words], why)
refuses(["plan", config, "--batch", 9000000000000000000, "--seq", SEQ, "--cluster", "c.toml", "--devices", 4], "--batch 9000000000000000000 must be from 1 to 2147483647")
for words, why in (
        (["--plan", "auto", "--devices", 4, "--batch", 8], "--plan auto needs --cluster"),
        (["--plan", "auto", "--devices", 4, "--cluster", "cpu"], "--batch is missing"),
        (["--plan", "auto", "--devices", 4, "--cluster", "cpu", "--batch", 8, "--mesh", "tensor=2x2"], "needs a size from 1 on"),
        (["--devices", 4, "--batch", 8], "--devices 4 changes nothing")):
    refuses(["compile", config, "--seq", SEQ, *words], why)
refuses(["predict", config, "--cluster", "cpu", "--plan", "auto"], "is for 'meshwright compile' alone")

# Nothing fits: what is missing, and what each change does, is as it says.
tight = 2e5
cluster(memory=tight, outside=1e9, target="cpu")
two = ["plan", config, "--cluster", "c.toml", "--devices", 2, "--batch", BATCH, "--seq", SEQ]
said = refuses([*two, "--keep", "--offload none"], "no layout of 2 devices fits into the 200,000 bytes")
layout, least, missing = re.search(r"of a device: the smallest, (--mesh .*), needs ([0-9,]+) bytes, ([0-9,]+) too many", said).groups()
number = lambda text: int(text.replace(",", ""))
check(number(missing) == number(least) - tight, said)
changes = re.findall(r"\n  (--.*): ([0-9,]+) bytes less, (fits|([0-9,]+) too many)", said)
check(len(changes) >= 3 and [number(c[1]) for c in changes] == sorted((number(c[1]) for c in changes), reverse=True), said)
for change, less, _, missing in changes[:2]:
    result = json.loads(call(["meshwright", "predict", config, "--cluster", "c.toml", "--json", "--batch", BATCH, "--seq", SEQ, *layout.split(), *change.split()]))
    check(result["peak_bytes"] == number(least) - number(less), f"{change}: {result['peak_bytes']}, but {said}")
    check(not missing or number(missing) == result["peak_bytes"] - tight, said)
# No other layout is smaller.
sizes = [json.loads(call(["meshwright", "predict", config, "--cluster", "c.toml", "--json", "--batch", BATCH, "--seq", SEQ, "--remat", "full", *flags.split()]))["peak_bytes"]
         for flags in ("--mesh data=2 --zero 3 --microbatches 4", "--mesh tensor=2 --sequence-parallel --microbatches 8", "--mesh pipe=2 --microbatches 8")]
check(min(sizes) >= number(least), f"{sizes}, but {said}")

# What fits no device is offloaded, the optimizer's states first; the fastest layout may offload activations instead of computing them again.
cluster(memory=number(least) - 1, outside=1e9, target="cpu")
offloaded = json.loads(call(["meshwright", *map(str, two), "--json", "-o", "r.toml"]))
check(offloaded["complete"] and offloaded["best"], offloaded)
check(all(one["flags"]["offload"].startswith("optimizer") and one["peak_bytes"] < number(least) for one in offloaded["best"]), offloaded["best"])
again = json.loads(call(["meshwright", "predict", "--recipe", "r.toml", "--json"]))
check('offload = "optimizer' in pathlib.Path("r.toml").read_text() and again["peak_bytes"] == offloaded["best"][0]["peak_bytes"], again)
for change in ("--offload none", "--offload activations"):
    refuses([*two, "--keep", change], "no layout of 2 devices fits into")
# A recipe without it says so, an optimizer without states has none to offload, and a search that ends early does not say that it is complete.
call(["meshwright", "plan", config, "--cluster", "cpu", "--devices", 2, "--batch", BATCH, "--seq", SEQ, "--keep", "--offload none", "-o", "r.toml"])
call(["meshwright", "predict", "--recipe", "r.toml"])
check('offload = "none"' in pathlib.Path("r.toml").read_text(), pathlib.Path("r.toml").read_text())
deep = json.loads(config.read_text()) | {"n_layer": 24}
pathlib.Path("deep.json").write_text(json.dumps(deep))
one = ["meshwright", "plan", "deep.json", "--cluster", "cpu", "--devices", 1, "--batch", 4, "--json"]
stateless = json.loads(call([*one, "--optimizer", "sgd", "--memory-limit", "2300KiB"]))
check("parameters" in stateless["best"][0]["flags"]["offload"], stateless["best"])
few, all = (json.loads(call([*one, "--precision", "bf16", "--memory-limit", "22500KiB", "--layouts", count])) for count in (6, 40))
check(all["complete"] and all["best"][0]["flags"] == {"offload": "activations"} and (few["best"][0]["flags"] == all["best"][0]["flags"] or not few["complete"]), f"{few['best']} {all['best']}")
said = refuses([*two, "--memory-limit", "100kB"], "the smallest, .* --offload optimizer")
check("\n  --offload" not in said, said)

# Clusters that are not complete.
text = pathlib.Path("c.toml").read_text()
for broken, why in ((text.replace("bandwidth = 1000000000.0\n", ""), "'bandwidth'"),
                    (text[:text.rindex("[[levels]]")], "--devices 4 are more than the 2 of cluster test"),
                    (text.replace("count = 2", ""), "'count'")):
    pathlib.Path("broken.toml").write_text(broken)
    check(broken != text, why)
    refuses(["plan", config, "--cluster", "broken.toml", "--devices", 4, "--batch", BATCH, "--seq", SEQ], why)
