#!/usr/bin/env python3
"""What `meshwright predict` says follows from the cluster's numbers: predict.py CONFIG WORK"""
import json
import pathlib
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from clusters import write_cluster
from harness import call, check, compile, flags, fresh

config = pathlib.Path(sys.argv[1]).resolve()
fresh(sys.argv[2])


def cluster(products=1e12, memory=1e12, launch=0, latency=0, inside=1e11, outside=1e10, count=2, more="", contention=0, fast=None):
    write_cluster(memory=1e9, products=products, narrow=2 * products, memory_bandwidth=memory, launch=launch, latency=latency,
                  inside=inside, outside=outside, count=count, more=more, contention=contention, fast=fast)


def predict(*words, profile=None, of=config, **options):
    options = {"batch": 8, "seq": 16, **options}
    command = ["meshwright", "predict", of, "--cluster", "c.toml", "--json", *flags(options), *words]
    result = json.loads(call(command + (["--profile", profile] if profile else [])))
    parts = result["breakdown"]
    check(abs(sum(parts.values()) / result["step_s"] - 1) < 1e-9, f"{options}: parts add up to {sum(parts.values())}, not {result['step_s']}")
    check(min(parts.values()) >= 0, f"{options}: {parts}")
    return result


def near(a, b, what, within=1e-9):
    check(abs(a - b) <= within * max(abs(a), abs(b)), f"{what}: {a} is not {b}")


# One rank: operations at the rate of products, bytes at that of memory, launches beside them.
cluster()
base = predict()
check(base["fits"] and base["devices"] == 1 and base["cluster"] == "test", base)
near(base["mfu"], base["model_flops"] / 1e12 / base["step_s"], "MFU")
near(base["tokens_per_s_per_device"], 8 * 16 / base["step_s"], "tokens")
cluster(products=0.25e12, memory=1e15)
slow = predict()["breakdown"]
cluster(products=0.125e12, memory=1e15)
near(predict()["breakdown"]["products"], 2 * slow["products"], "products at half the rate")
cluster(memory=0.5e12)
near(predict()["breakdown"]["kernels"], 2 * base["breakdown"]["kernels"], "kernels at half the bandwidth")
cluster(launch=1e-6)
first = predict()["breakdown"]["launches"]
check(first / 1e-6 >= 30 and abs(first / 1e-6 - round(first / 1e-6)) < 1e-6, f"{first} s are no whole number of launches")

# Collectives take latency and bandwidth of the level that their group spans, unless something hides them.
for mesh, axes, level in (("tensor=2", "tensor", "inside"), ("data=2,replica=2", "data,replica", "outside")):
    mesh = dict(mesh=mesh)
    cluster(inside=1e29, outside=1e29)
    free = predict(overlap="off", **mesh)
    near(sum(v for k, v in free["breakdown"].items() if k.startswith("communication")), 0, "no latency and any bandwidth", 1e-12)
    cluster(**{"inside": 1e29, "outside": 1e29, level: 1e8})
    whole = predict(overlap="off", **mesh)["breakdown"][f"communication[{axes}]"]
    cluster(**{"inside": 1e29, "outside": 1e29, level: 0.5e8})
    near(predict(overlap="off", **mesh)["breakdown"][f"communication[{axes}]"], 2 * whole, f"{axes} at half the bandwidth")
    cluster(latency=1e-3, inside=1e29, outside=1e29)
    check(predict(overlap="off", **mesh)["breakdown"][f"communication[{axes}]"] > 1e-3, "latencies count")
cluster(inside=1e9, outside=1e9)
apart, hidden = predict(mesh="data=2", zero=3, overlap="off"), predict(mesh="data=2", zero=3, overlap="on")
check(hidden["step_s"] < apart["step_s"], f"with overlap {hidden['step_s']} s, without {apart['step_s']} s")

# What contends with computation is not hidden: the whole of it costs as much as without overlap, half of it less.
cluster(inside=1e9, outside=1e9, contention=1)
contended = predict(mesh="data=2", zero=3, overlap="on")
near(contended["step_s"], apart["step_s"], "overlap with processors that move the bytes", 0.02)
cluster(inside=1e10)
hidden = predict(mesh="data=2", zero=3, overlap="on")
cluster(inside=1e10, contention=1)
contended = predict(mesh="data=2", zero=3, overlap="on")
cluster(inside=1e10, contention=0.5)
check(hidden["step_s"] < predict(mesh="data=2", zero=3, overlap="on")["step_s"] < contended["step_s"], "half of the contention")

# Of devices that differ the slowest counts: of two it is expected to be 1 / sqrt(pi) standard deviations from the mean.
cluster()
even = predict(mesh="data=2", overlap="off")["breakdown"]
cluster(more="spread = 0.1")
uneven = predict(mesh="data=2", overlap="off")["breakdown"]
near(uneven["products"] / even["products"] - 1, 0.1 / 3.14159265**0.5, "the slower of two", 1e-4)
near(predict()["breakdown"]["products"], base["breakdown"]["products"], "one device is as fast as the mean")

# Of types that differ the slowest that a program runs on counts, the smallest memory, and the mean of peaks.
def types(*devices):
    text = pathlib.Path("c.toml").read_text()
    one = text[text.index("[[devices]]"):text.index("[[levels]]")]
    for i, (count, rate, memory) in enumerate(devices):
        its = one.replace("products = {f32 = 1000000000000.0", f"products = {{f32 = {rate}").replace("memory = 1000000000.0", f"memory = {memory}")
        text = text.replace("[[levels]]", its.replace('name = "device"', f'name = "device{i}"' + (f"\ncount = {count}" if count else "")) + "[[levels]]", 1)
    pathlib.Path("c.toml").write_text(text.replace(one, "", 1))


cluster(products=0.5e12, memory=1e15)
slow = predict(mesh="data=2", overlap="off")["breakdown"]["products"]
cluster(memory=1e15)
types((1, 1e12, 1e9), (0, 0.5e12, 1e5))
mixed = predict(mesh="data=2", overlap="off")
near(mixed["breakdown"]["products"], slow, "products on the slower of two types")
check(mixed["device_memory_bytes"] == 1e5 and not mixed["fits"], mixed)
near(mixed["peak_flops_per_device"], 0.75e12, "the mean of peaks")
check(predict()["fits"], "a type that is not in use does not count")

# Operands are packed beside the FLOPs of a product, twice as long at half the rate.
cluster(memory=1e15)
plain = predict()["breakdown"]["products"]
packs = []
for rate in (1e10, 0.5e10):
    cluster(memory=1e15, more=f"packing = {{f32 = {rate}, bf16 = 0}}")
    packs.append(predict()["breakdown"]["products"] - plain)
near(packs[1], 2 * packs[0], "packing at half the rate")
check(packs[0] > 0, packs)

# Functions take the time of their rate where bytes take less.
cluster(memory=1e15)
cheap = predict()["breakdown"]["kernels"]
cluster(memory=1e15, more="functions = {exp = 1e8}")
dear = predict()["breakdown"]["kernels"]
cluster(memory=1e15, more="functions = {exp = 0.5e8}")
check(dear > 2 * cheap, f"kernels with exp {dear} s, without {cheap} s")
check(1.8 * dear < predict()["breakdown"]["kernels"] < 2.01 * dear, "exp at half the rate")

# Pipelines have the bubble of their schedule: (p - 1) / (M + p - 1) where stages are equal, and less with more microbatches.
cluster(inside=1e29, outside=1e29)
shares = []
for microbatches in (2, 4, 8):
    step = predict(mesh="pipe=2", schedule="gpipe", microbatches=microbatches)
    shares.append(step["breakdown"]["bubble"] / step["step_s"])
check(shares[0] > shares[1] > shares[2] > 0, f"bubbles {shares}")
check(abs(shares[0] - 1 / 3) < 0.15, f"bubble {shares[0]} of two microbatches on two stages")
naive = predict(mesh="pipe=2", schedule="naive", microbatches=4)
near(naive["step_s"], predict(mesh="pipe=2", schedule="1f1b", microbatches=4)["step_s"] * 8 / 5, "naive and 1f1b", 0.1)

# Where ranks lie decides: neighbours are in a machine.
cluster(inside=1e9, outside=1e7)
for axis, inner, outer in (("tensor", "data=2,tensor=2", "tensor=2,data=2"), ("data", "tensor=2,data=2", "data=2,tensor=2")):
    waits = [predict(mesh=mesh, overlap="off")["breakdown"][f"communication[{axis}]"] for mesh in (inner, outer)]
    check(waits[0] < waits[1] / 20, f"{axis} inside a machine and between machines: {waits}")

# Machines of three: of two pairs one spans machines, and so does one of two messages between pairs.
cluster(inside=1e9, outside=1e7, count=3)
far = predict(mesh="data=2,tensor=2", overlap="off")["breakdown"]["communication[tensor]"]
cluster(inside=1e9, outside=1e7, count=1)
near(far, predict(mesh="data=2,tensor=2", overlap="off")["breakdown"]["communication[tensor]"], "pairs in machines of three and of one")
messages = []
for count in (3, 4):
    cluster(inside=1e9, outside=1e6, count=count)
    messages.append(predict(mesh="pipe=2,data=2", microbatches=2)["breakdown"]["communication[pipe]"])
check(messages[0] > 10 * messages[1], f"messages in machines of three and of four: {messages}")

# A permutation is one message of each rank, however many there are; its bytes pass the adapter of whoever sends them.
cluster(latency=1, inside=1e29, outside=1e29)
rounds = [predict(mesh=f"data={size}", collective_algorithm="ring", overlap="off")["breakdown"]["communication[data]"] for size in (2, 4, 8)]
near(rounds[1], 3 * rounds[0], "latencies of a ring of four, three times those of two")
near(rounds[2], 7 * rounds[0], "latencies of a ring of eight")

# In a torus axes lie along dimensions: of 4x4 a half of the devices is in one ring or in two.
def torus(*sizes):
    cluster()
    text = pathlib.Path("c.toml").read_text()
    pathlib.Path("c.toml").write_text(text.split("[[levels]]")[0] + f'[[levels]]\nname = "links"\ntorus = {list(sizes)}\nlatency = 0\nbandwidth = 1e6\nsource = "a test"\n')


# Of 16 members all send 15/16 of the bytes twice; fewer exchange small tensors directly (directBytes in Traffic.h), which takes more.
torus(16)
line, ring = (predict(mesh=mesh, overlap="off", batch=16)["breakdown"]["communication[data]"] for mesh in ("data=2", "data=16"))
near(ring, line * (15 / 16) / (1 / 2) / 2, "a ring has two ways, two devices have one")
torus(4, 4)
near(predict(mesh="data=16", overlap="off", batch=16)["breakdown"]["communication[data]"], line * (15 / 16) / (1 / 2) / 4, "two dimensions have twice the bandwidth of one")
near(predict(mesh="tensor=4,data=4", overlap="off", batch=16)["breakdown"]["communication[data]"], predict(mesh="data=4,tensor=4", overlap="off", batch=16)["breakdown"]["communication[data]"], "both dimensions are alike")
done = subprocess.run(["meshwright", "predict", config, "--cluster", "c.toml", "--mesh", "data=6", "--batch", "12", "--seq", "16"], capture_output=True, text=True)
check(done.returncode == 1 and "the 6 devices along data from device 0 on are no box of the torus 4x4" in done.stderr, done.stderr)

# Profiles change what they say.
cluster(launch=1e-6)
pathlib.Path("p.toml").write_text('name = "p"\nsource = "a test"\nproducts = 2\nattention = 5\nkernels = 3\nlaunch = 1e-6\n')
own, other = predict()["breakdown"], predict(profile="p.toml")["breakdown"]
near(other["products"], 2 * own["products"], "products of a profile")
near(other["attention"], 5 * own["attention"], "attention of a profile")
near(other["kernels"], 3 * own["kernels"], "kernels of a profile")
near(other["launches"], 2 * own["launches"], "launches of a profile")
near(other["optimizer"], own["optimizer"], "kernels that update are not among the others")
# Several profiles share a compilation.
several = [word for profile in ("p.toml", "meshwright", "p.toml") for word in ("--profile", profile)]
together = json.loads(call(["meshwright", "predict", config, "--cluster", "c.toml", "--batch", 8, "--seq", 16, "--json", *several]))
check([each["profile"] for each in together] == ["p", "meshwright", "p"] and [each["breakdown"] for each in together] == [other, own, other], together)
said = call(["meshwright", "predict", config, "--cluster", "c.toml", "--batch", 8, "--seq", 16, *several])
check(said.count("breakdown of the step time") == 3, said)


def predict_as(keys, **options):
    pathlib.Path("p.toml").write_text(f'name = "p"\nsource = "a test"\n{keys}\n')
    return predict(profile="p.toml", **options)


near(predict_as("optimizer = 3")["breakdown"]["optimizer"], 3 * own["optimizer"], "the optimizer of a profile")
# 8 x 16 tokens have 256 logits each; forward and backward are one kernel of ours.
loss, twice = (predict_as(f"logits = {{forward = {factor}e6, backward = {2 * factor}e6}}")["breakdown"]["kernels"] for factor in (1, 2))
near(twice - loss, 8 * 16 * 256 * 3e6 / 1e12, "bytes of logits")

# A host that launches faster than the device computes is hidden; a slower one decides how long the step takes.
cluster()
launched = round(first / 1e-6)
own = predict()
near(predict_as("dispatch = 1e-15")["step_s"], own["step_s"], "a host that is ahead", 1e-6)
slow = predict_as("dispatch = 1")
near(slow["step_s"], launched, "a second for each kernel", 1e-3)
near(sum(v for k, v in slow["breakdown"].items() if k != "launches"), own["step_s"], "what the device does", 1e-9)
half = predict_as(f"dispatch = {own['step_s'] / launched}")["step_s"]
check(own["step_s"] < half < 2 * own["step_s"], f"a host about as fast as the device: {half}, not {own['step_s']}")
# ... in loops of many iterations too, where it falls behind only after some.
loop = dict(microbatches=8)
device, host = predict(**loop)["step_s"], predict_as("dispatch = 1", **loop)["step_s"]
for share in (0.5, 0.9, 1.1, 2):
    step = predict_as(f"dispatch = {share * device / host}", **loop)["step_s"]
    check(max(1, share) * device * (1 - 1e-9) <= step <= (1 + share) * device, f"a host that needs {share} of the device's time: {step}, not {device}")

# Each member of a collective costs the host more, but only where a pipeline spans machines.
across, within = dict(mesh="pipe=2,tensor=2", overlap="off", microbatches=2), dict(mesh="tensor=2", overlap="off", microbatches=2)
near(predict_as('dispatch_peer = 1\nbatched_collectives = ["tensor"]', **within)["step_s"], predict_as('batched_collectives = ["tensor"]', **within)["step_s"], "members within a machine")
check(predict_as('dispatch_peer = 1\nbatched_collectives = ["tensor"]', **across)["step_s"] > 10, "members of collectives on two machines")

# What the system does in another way.
cluster(inside=1e6, outside=1e6)
data = predict(mesh="data=2", zero=1)["breakdown"]["communication[data]"]
reduced = predict_as('all_reduced_gradients = ["data"]', mesh="data=2", zero=1)["breakdown"]["communication[data]"]
check(1.2 * data < reduced < 2 * data, f"gradients all-reduced {reduced} s, reduce-scattered {data} s")
near(predict_as('all_reduced_gradients = ["tensor"]', mesh="data=2", zero=1)["breakdown"]["communication[data]"], data, "gradients of another axis")
# Sequences of 1 MB or more are gathered one after the other.
cluster(inside=1e8, outside=1e8, latency=1)
json.dump({**json.load(open(config)), "n_embd": 512, "n_layer": 1, "n_positions": 512}, open("wide.json", "w"))
sequences = dict(of="wide.json", mesh="tensor=2", sequence_parallel=True, overlap="off", seq=512)
one, many = predict_as('batched_collectives = ["tensor"]', **sequences)["breakdown"], predict(**sequences)["breakdown"]
check(one["communication[tensor]"] < many["communication[tensor]"] / 2, f"sequences together {one}, one after the other {many}")
near(predict_as('batched_collectives = ["data"]', **sequences)["breakdown"]["communication[tensor]"], many["communication[tensor]"], "sequences of another axis")
narrow = dict(precision="bf16", microbatches=2)
check(predict_as("separate_accumulation = true", **narrow)["breakdown"]["kernels"] > predict(**narrow)["breakdown"]["kernels"], "gradients are added to by a kernel")
near(predict_as("separate_accumulation = true")["step_s"], predict()["step_s"], "products that write f32 anyway")
stages = dict(mesh="pipe=2", microbatches=4)
own, waits = predict(**stages), predict_as("synchronous_messages = true", **stages)
check(waits["step_s"] > own["step_s"] and waits["breakdown"]["communication[pipe]"] > 1.2 * own["breakdown"]["communication[pipe]"],
      f"who sends waits too: {waits}, without {own}")

# The network's factor is that of gradients between machines alone.
for mesh, factor in (("data=2", 1), ("tensor=2,data=2", 1), ("data=2,tensor=2", 3)):
    waits = [predict_as(f'all_reduced_gradients = ["data"]\nnetwork = {network}', mesh=mesh, overlap="off")["breakdown"]["communication[data]"] for network in (1, 3)]
    near(waits[1], factor * waits[0], f"gradients of {mesh}")
near(predict_as('all_reduced_gradients = ["data"]\ncommunication = 5', mesh=mesh, overlap="off")["breakdown"]["communication[data]"], waits[0], "which other collectives' factor is not for")

# Gradients that share a call with others take their part of its latency. Algorithms that are excluded take no part in the choice.
cluster(latency=1)
alone, half, quarter = (predict_as(f'all_reduced_gradients = ["data"]\ngradient_bucket = {bucket}', mesh="data=2", overlap="off")["breakdown"]["communication[data]"] for bucket in (1, 1e9, 2e9))
near(alone, predict(mesh="data=2", overlap="off")["breakdown"]["communication[data]"], "gradients larger than calls")
check(quarter < half < 0.1 * alone, f"gradients in a call of their own {alone} s, in larger ones {half} and {quarter} s")
cluster(latency=1, fast="instant")
near(predict_as('excluded_algorithms = ["slow"]', mesh="data=2")["step_s"], predict(mesh="data=2")["step_s"], "an algorithm that the cluster does not have")
check(predict_as('excluded_algorithms = ["instant"]', mesh="data=2")["step_s"] > 1 > predict(mesh="data=2")["step_s"], "an algorithm that is not used")

# What drivers and libraries allocate is no part of the arena.
cluster()
check(0 < predict()["arena_bytes"] < predict()["peak_bytes"], predict())

# Bytes of a category count as often as the profile says.
near(predict_as("memory.parameter = 1")["peak_bytes"], predict()["peak_bytes"], "as many bytes")
more, most = (predict_as(f"memory.parameter = {factor}")["peak_bytes"] - predict()["peak_bytes"] for factor in (2, 3))
check(more > 0, "parameters twice")
near(most, 2 * more, "parameters three times")
check(not predict_as("memory.parameter = 1e6")["fits"], "parameters that do not fit")

# Gradients that are not read are those of a layer's matrices, 12 x 64 x 64 elements, and of a head whose gradient is larger than the logits in f32.
arena = predict()["arena_bytes"]
near(predict_as("unused_gradients = 2")["arena_bytes"] - arena, 2 * 12 * 64 * 64, "gradients of a layer that nobody reads")
near(predict_as("unused_gradients = 100")["arena_bytes"] - arena, 100 * (12 * 64 * 64 + 256 * 64) - 4 * 8 * 16 * 256, "... and of the head")
# Shards of reduced gradients take no memory where they are in the gradients' own.
# They are there at once with all gradients, where most is live: but for the workspace of products, 32 MiB, and a few buffers that are there instead without them.
json.dump({**json.load(open(config)), "n_embd": 1024, "n_layer": 8}, open("deep.json", "w"))
deep = dict(of="deep.json", mesh="data=2", zero=1, seq=4)
saved = predict(**deep)["arena_bytes"] - predict_as("gradients_in_place = true", **deep)["arena_bytes"]
shards = 8 * 12 * 1024 * 1024 * 4 // 2
check(0.75 * shards < saved < shards, f"{saved} bytes less where gradients are reduced in place, whose shards have {shards}")
near(predict_as("gradients_in_place = true")["arena_bytes"], arena, "gradients of one device")

# The text says the same; --report has a trace of that time.
said = call(["meshwright", "predict", config, "--cluster", "c.toml", "--batch", 8, "--seq", 16])
number, unit = said.split("step ")[1].split()[:2]
near(float(number) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit], predict()["step_s"], "the step in words", 0.01)
check("MFU =" in said and "breakdown of the step time" in said, said)
compile(config, "e.mlir", emit="exec", report="report", cluster="c.toml", target="cuda", batch=8, seq=16)
trace = json.load(open("report/trace.json"))
check(trace["otherData"]["title"] == "A step as predicted on test", trace["otherData"])
near(max(e["ts"] + e["dur"] for e in trace["traceEvents"] if e["ph"] == "X") / 1e6, predict()["step_s"], "the trace", 1e-6)

# What cannot be predicted is refused.
cluster(count=2)
pathlib.Path("small.toml").write_text(pathlib.Path("c.toml").read_text().split('[[levels]]\nname = "outside"')[0])
pathlib.Path("away.toml").write_text(pathlib.Path("c.toml").read_text().replace('"cuda"', '"tpu"'))
pathlib.Path("spread.toml").write_text(pathlib.Path("c.toml").read_text().replace("launch =", "spread = 2\nlaunch ="))
pathlib.Path("packing.toml").write_text(pathlib.Path("c.toml").read_text().replace("launch =", "packing = 1e9\nlaunch ="))
pathlib.Path("functions.toml").write_text(pathlib.Path("c.toml").read_text().replace("launch =", "functions.exp = 0\nlaunch ="))
pathlib.Path("q.toml").write_text('name = "q"\nsource = "a test"\nproduct = 2\n')
pathlib.Path("flag.toml").write_text('name = "q"\nsource = "a test"\nsynchronous_messages = 1\n')
pathlib.Path("memory.toml").write_text('name = "q"\nsource = "a test"\nmemory.activations = 2\n')
pathlib.Path("logits.toml").write_text('name = "q"\nsource = "a test"\nlogits = 52\n')
pathlib.Path("list.toml").write_text('name = "q"\nsource = "a test"\nbatched_collectives = ["tensor", 1]\n')
for words, why in (
        (["--cluster", "small.toml", "--mesh", "data=4"], "the mesh has 4 devices, but test only 2"),
        (["--cluster", "away.toml"], "its target 'tpu' must be one of"),
        (["--cluster", "spread.toml"], "'spread' must be a part of the mean speed"),
        (["--cluster", "packing.toml"], "'packing' must be a table with rates of f32 and bf16"),
        (["--cluster", "functions.toml"], "'exp' must be a positive number of evaluations a second"),
        (["--cluster", "dgx-h10"], "did you mean dgx-h100"),
        (["--cluster", "none.toml"], "cannot read 'none.toml'"),
        (["--cluster", "/dev/zero"], "pipe or a device"),
        (["--cluster", "c.toml", "--profile", "q.toml"], "unknown key 'product'"),
        (["--cluster", "c.toml", "--profile", "flag.toml"], "line 3: 'synchronous_messages' must be true or false"),
        (["--cluster", "c.toml", "--profile", "memory.toml"], "line 3: unknown key 'activations'"),
        (["--cluster", "c.toml", "--profile", "logits.toml"], "line 3: 'logits' must be a table with bytes of forward and backward"),
        (["--cluster", "c.toml", "--profile", "list.toml"], "line 3: 'batched_collectives' must be a list of texts"),
        (["--cluster", "c.toml", "--profile", "nanotorn"], "did you mean nanotron"),
        (["--cluster", "c.toml", "-o", "x"], "predict writes nothing"),
        (["--cluster", "c.toml", "--assert", "peak<=1GiB"], "predict checks nothing"),
        ([], "--cluster is missing")):
    done = subprocess.run(["meshwright", "predict", config, "--batch", "8", "--seq", "16", *words], capture_output=True, text=True)
    check(done.returncode == 1 and why in done.stderr, f"{words}: {done.returncode} {done.stderr}")
