#!/usr/bin/env python3
"""What --report, --assert and `meshwright diff` say of a plan: report.py CONFIG WORK"""
import collections
import json
import math
import pathlib
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import call, check, compile, fresh

config = pathlib.Path(sys.argv[1]).resolve()
fresh(sys.argv[2])
size = {"batch": 8, "seq": 16}


def report(name, **options):
    compile(config, f"{name}.mlir", emit="exec", report=name, **size, **options)
    plan = json.load(open(f"{name}/report.json"))
    check_memory(name, plan)
    check_trace(name, plan)
    return plan


def check_trace(name, plan):
    """The predicted step: each program's tasks in their order, as long as their operations, nested in time."""
    events = json.load(open(f"{name}/trace.json"))["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    check_times(name, plan, spans)
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    check(list(names.values()) == [p["name"] if len(plan["programs"]) > 1 else "every rank" for p in plan["programs"]], f"{name}: {names}")
    ranks = math.prod(axis["size"] for axis in plan["mesh"])
    for number, program in enumerate(plan["programs"]):
        own = sorted((e for e in spans if e["pid"] == number), key=lambda e: (e["ts"], -e["dur"]))
        tracks = {track: [e for e in own if e["tid"] == track] for track in (0, 1)}
        for events in tracks.values():
            around = []
            for event in events:
                while around and around[-1]["ts"] + around[-1]["dur"] <= event["ts"] + 1e-9:
                    around.pop()
                check(not around or event["ts"] + event["dur"] <= around[-1]["ts"] + around[-1]["dur"] + 1e-6,
                      f"{name}: {event} ends after {around[-1:]}")
                event["top"] = not around
                around.append(event)
        tasks = [e["name"] for e in tracks[0] if re.fullmatch(r"[FBW]\d+\.\d+", e["name"])]
        check(tasks == program.get("order", []), f"{name}: predicted are the tasks {tasks}")
        share = 1
        for axis in plan["mesh"]:
            share *= len(program["at"].get(axis["axis"], range(axis["size"])))
        work = sum(e["args"].get("flops", 0) for e in tracks[0] if e["top"])
        check(abs(work * share / program["flops"] - 1) < 1e-9, f"{name}: {work} operations on each of {share} ranks, planned are {program['flops']}")
        check((ranks > 1) <= bool(tracks[1]), f"{name}: no communication of {names[number]}")
        check(all(e["args"]["location"] for e in tracks[1]), f"{name}: communication without a place in the IR")


def check_times(name, plan, spans):
    """The trace says that its times are relative and by which rates of the target's device, and they are that."""
    trace = json.load(open(f"{name}/trace.json"))
    labels = [event["args"]["labels"] for event in trace["traceEvents"] if event["name"] == "process_labels"]
    check(labels == ["relative times, no forecast"] * len(plan["programs"]), f"{name}: programs are labelled {labels}")
    times = trace["otherData"]["times"]
    found = re.fullmatch(r"relative, no forecast: what the peak rates of (.*) allow, (\S+) operations of f32 and (\S+) of 16 bits, (\S+) bytes of "
                         r"memory and (\S+) bytes sent a second, without latency", times)
    check(found, f"{name}: times are {times}")
    check((found[1] == "an H100 SXM") == (plan["target"] == "cuda"), f"{name}: for {plan['target']} the rates are of {found[1]}")
    wide, narrow, memory, sent = map(float, found.groups()[1:])
    check("in relative times" in trace["otherData"]["title"] and "Its times are relative, no forecast" in open(f"{name}/index.html").read(),
          f"{name}: nobody says that times are relative")
    products = {}
    for row in plan["programs"][0]["kernels"]:
        if row["op"] in ("matmul", "attention", "attention_grad"):
            rate = wide if plan["precision"] == "f32" else narrow
            products.setdefault(row["op"], set()).add(1e6 * max(row["flops"] / rate, (row["read_bytes"] + row["written_bytes"]) / memory))
    for event in spans:
        if event["cat"] == "communication" and event["name"] not in ("send", "recv"):
            bytes = event["args"]["bytes"]
            check(abs(event["dur"] * sent / 1e6 - bytes) < 1 + 1e-2 * bytes, f"{name}: {event} at {sent} bytes a second")
        elif event["pid"] == 0 and event["name"] in products:
            check(any(abs(event["dur"] / want - 1) < 1e-2 for want in products[event["name"]]), f"{name}: {event} takes one of {products[event['name']]}")


def check_memory(name, plan):
    """Memory over time is at most what the plan says is live, and just that at its peak."""
    for number, program in enumerate(plan["programs"]):
        entries = {entry["program"]: entry for entry in plan["memory_over_time"] if entry["in"] == number}
        check(set(entries) == {"step", "eval"}, f"{name}: memory over time of {set(entries)}")
        most = {}
        for kind, entry in entries.items():
            sums = {point["op"]: sum(bytes for category, bytes in point.items() if category != "op") for point in entry["points"]}
            check(min(sums) == 0 and max(sums) < entry["ops"] and list(sums) == sorted(sums), f"{name}: points of {kind} at {list(sums)}")
            check(all(a != b for a, b in zip(entry["points"], entry["points"][1:])), f"{name}: a point of {kind} changes nothing")
            most[kind] = max(sums.values())
            check(sums[entry["peak_op"]] == most[kind] == entry["peak_bytes"], f"{name}: the peak of {kind} is {most[kind]}, said is {entry['peak_bytes']}")
        check(max(most.values()) == program["live_bytes"], f"{name}: most is {most}, live_bytes {program['live_bytes']}")
        check([mark["task"] for mark in entries["step"]["tasks"]] == program.get("order", []), f"{name}: tasks {entries['step']['tasks']}")
        peak = program["peak"]
        check(peak["bytes"] == program["live_bytes"], f"{name}: the peak has {peak['bytes']} bytes")
        check(sum(row["bytes"] for row in peak["buffers"]) + peak["others"] + peak["lasting"] == peak["bytes"], f"{name}: the rows of the peak do not add up")
        lasting = sum(line["bytes"] for line in program["memory"] if line["category"] in ("parameter", "optimizer", "input", "output"))
        check(peak["lasting"] == lasting and peak["others"] >= 0, f"{name}: {peak['lasting']} bytes outlast the step, {lasting} in the plan")
        check(sorted(peak["buffers"], key=lambda row: -row["bytes"]) == peak["buffers"], f"{name}: the largest are not first")
        for row in peak["buffers"]:
            check(row["op"] and row["location"], f"{name}: nobody says where {row} is from")
        at = next(point for point in reversed(entries[peak["program"]]["points"]) if point["op"] <= peak["op"])
        check({line["category"]: line["bytes"] for line in program["memory"]} == {k: v for k, v in at.items() if k != "op"},
              f"{name}: at the peak are {at}, the plan has {program['memory']}")
        svg = open(f"{name}/memory-{program['name']}.svg").read()
        check(f"arena: {program['arena_bytes']:,} bytes" in svg and f"peak: {entries['step']['peak_bytes']:,} bytes" in svg, f"{name}: {svg[-900:]}")
        check(svg in open(f"{name}/index.html").read(), f"{name}: the page lacks memory-{program['name']}.svg")


def check_tables(name, plan):
    """The tables against what the plan says of each collective and variable."""
    sizes = {axis["axis"]: axis["size"] for axis in plan["mesh"]}
    ranks = math.prod(sizes.values())
    sent, calls = collections.Counter(), collections.Counter()
    for op in plan["collectives"]:
        axes = [axis for axis in plan["groups"][op["group"]] if sizes[axis] > 1]
        key = op["program"], ",".join(axes), op["op"]
        calls[key] += op["times"]
        sent[key] += op["times"] * op["group_bytes"] * ranks // math.prod(sizes[axis] for axis in axes)
    rows = {(row["program"], row["axes"], row["op"]): row for row in plan["communication"]}
    check(set(rows) == set(calls), f"{name}: communication of {set(rows) ^ set(calls)}")
    for key, row in rows.items():
        check((row["calls"], row["bytes"], row["rank_bytes"]) == (calls[key], sent[key], sent[key] // ranks), f"{name}: {row}")
    copies = {(row["variable"], row["axis"]): row for row in plan["replicated"]}
    check(len(copies) == len(plan["replicated"]), f"{name}: copies are listed twice")
    # What a stage has alone is no copy along the pipeline.
    places = collections.defaultdict(set)
    for v in plan["variables"]:
        for axis in sizes:
            places[v["name"], axis] |= set(plan["programs"][v["in"]]["at"].get(axis, range(sizes[axis])))
    want = {(v["name"], axis) for v in plan["variables"] for axis in sizes
            if len(places[v["name"], axis]) > 1 and axis not in sum(v["sharding"], [])}
    check(all(row["size"] == len(places[key]) for key, row in copies.items()), f"{name}: copies along more or fewer positions")
    check(set(copies) == want, f"{name}: copies of {set(copies) ^ want}")
    check(all(row["reason"] and row["bytes"] > 0 for row in copies.values()), f"{name}: copies without a reason")
    page = open(f"{name}/index.html").read()
    bars = sum(row["program"] == "step" and row["rank_bytes"] > 0 for row in rows.values()) + len(plan["memory"])
    drawn = sum(table.count("<tr>") for table in re.findall("<table class=bars>(.*?)</table>", page, re.S))
    check(drawn == bars, f"{name}: {drawn} bars, expected {bars}")
    for variable, axis in copies:
        alike = re.sub(r"\.\d+\.", ".*.", variable, count=1)
        check(f">{variable}<" in page or f">{alike} <" in page, f"{name}: the page does not name {variable}")
    check('name="viewport"' in page and "svg{max-width:100%;height:auto}" in page, f"{name}: pictures may be wider than the page")
    check(page.count("<table class=\"") == page.count("<div class=wide><table class=\"") and page.count("<table") == page.count("<table class=\"") + page.count("<table class=bars>") + 1, f"{name}: a table may be wider than the page")
    check(not re.search(r"src=|href=\"[^#]|https?://(?!www.w3.org)", page), f"{name}: the page needs other files")
    return copies


one = report("one", mesh="data=2,tensor=2", zero=1)
copies = check_tables("one", one)
# A query sees its own key and those before it: of 16 tokens 136 pairs, in 4 sequences and 4 heads of 8 elements, in two products.
attention = [row for row in one["programs"][0]["kernels"] if row["op"] == "attention"]
check(attention and all(row["flops"] == 2 * 4 * 4 * (8 + 8) * 136 for row in attention), f"attention: {attention}")


def reason(variable, axis, *words):
    for word in words:
        check(word in copies[variable, axis]["reason"], f"{variable} along {axis}: {copies[variable, axis]['reason']}")


reason("layers.self_attn.q_proj.weight", "data", "--zero 3 would")
reason("layers.input_layernorm.weight", "tensor", "dimension 0 is the residual stream's")
reason("norm.weight.momentum", "tensor", "dimension 0 is the residual stream's")
check(("embed_tokens.weight", "tensor") not in copies, "a sharded vocabulary is called a copy")
check(("layers.self_attn.q_proj.weight.momentum", "data") not in copies, "a state of ZeRO is called a copy")

report("gpu", mesh="data=2", target="cuda", precision="bf16")
# Those of the first architecture, or of the last one before it whose numbers are known.
for arch, device in ("sm_80", "an A100 80GB SXM"), ("sm_89,sm_80", "an L40S"), ("sm_103", "a B200 of HGX"):
    compile(config, "arch.mlir", emit="exec", report="arch", target="cuda", gpu_arch=arch, **size)
    check(f"rates of {device} allow" in json.load(open("arch/trace.json"))["otherData"]["times"], f"the rates for {arch} are not of {device}")
copies = check_tables("replicas", report("replicas", mesh="replica=2,data=2,tensor=8", precision="bf16"))
reason("layers.self_attn.k_proj.weight", "tensor.1", "divided into 4 parts at most")
reason("layers.self_attn.k_proj.weight.master", "data", "--zero 1 would")
reason("norm.weight", "replica", "replicas hold copies")

recipe = 'mesh = "data=2,tensor=2"\n[seeds]\n"layers.*.k_proj.weight" = "[{}, {}]"\n'
pathlib.Path("seeds.toml").write_text(recipe)
copies = check_tables("seeds", report("seeds", recipe="seeds.toml"))
reason("layers.self_attn.k_proj.weight", "tensor", "a seed says so")

# Pipelines have a timeline, the tasks as long as their operations.
def check_timeline(name, stages, microbatches, schedule, phases):
    plan = report(name, mesh=f"pipe={stages}", microbatches=microbatches, schedule=schedule)
    orders = [program["order"] for program in plan["programs"]]
    drawn = [[(span["task"], span["begin"], span["end"]) for span in stage["tasks"]] for stage in plan["timeline"]]
    check([[task for task, *_ in spans] for spans in drawn] == orders, f"{name}: the timeline has other tasks than the programs")
    chunks = {int(task.split(".")[1]) for order in orders for task in order}
    check(sorted(sum(orders, [])) == sorted(f"{p}{m}.{c}" for p in phases for m in range(microbatches) for c in chunks),
          f"{name}: not every task once: {orders}")
    ends = {task: end for spans in drawn for task, _, end in spans}
    last = max(chunks)
    unit = None
    for stage, (program, spans) in enumerate(zip(plan["programs"], drawn)):
        free = 0
        for task, begin, end in spans:
            phase, microbatch, chunk = task[0], int(task[1:].split(".")[0]), int(task.split(".")[1])
            needs = {"F": [f"F{microbatch}.{chunk - 1}"] if chunk else [],
                     "B": [f"F{microbatch}.{chunk}"] + ([f"B{microbatch}.{chunk + 1}"] if chunk < last else []),
                     "W": [f"B{microbatch}.{chunk}"]}[phase]
            earliest = max([free] + [ends[need] for need in needs])
            check(abs(begin - earliest) < 1e-6, f"{name}: {task} begins at {begin}, could at {earliest}")
            flops = program["task_flops"][f"{phase}{chunk}"]
            unit = unit or (end - begin) / flops
            check(abs((end - begin) / flops / unit - 1) < 1e-6, f"{name}: {task} is not as long as its operations")
            free = end
        work = sum(program["task_flops"][task[0] + task.split(".")[1]] for task in program["order"]) + sum(program["round_flops"])
        # What is left are zeros that gradients start from.
        check(0.97 * program["flops"] <= work <= program["flops"], f"{name}: tasks and update have {work} of {program['flops']} operations")
        rounds = plan["timeline"][stage]["rounds"]
        check(abs(rounds[0]["begin"] - free) < 1e-6 and len(rounds) >= 2, f"{name}: rounds {rounds}")
        barrier = max(stage["rounds"][0]["end"] for stage in plan["timeline"])
        check(abs(rounds[1]["begin"] - barrier) < 1e-6, f"{name}: the update begins at {rounds[1]}, the norm is there at {barrier}")
    end = max(span["end"] for stage in plan["timeline"] for span in stage["rounds"])
    check(abs(end - 100) < 1e-6, f"{name}: the step takes {end}")
    svg, page = open(f"{name}/timeline.svg").read(), open(f"{name}/index.html").read()
    check(svg in page, f"{name}: the page has no timeline")
    named = re.findall(r"<g><title>([FBW][0-9.]+):", svg)
    check(sorted(task.split(".")[0] for task in named) == sorted(task.split(".")[0] for order in orders for task in order),
          f"{name}: drawn are {named}")
    barriers = svg.count('class="barrier"')
    check(barriers == len(rounds) - 1, f"{name}: {barriers} barriers between {len(rounds)} rounds")
    stash = [row for program in plan["programs"] for row in program["peak"]["buffers"] if row["category"] == "activation"]
    writers = {row["task"][:1] for row in stash if row["op"] == "matmul"}
    check(writers and writers <= {"F", "B"}, f"{name}: activations are written in {[row['task'] for row in stash]}")
    layers = 4 // len(chunks)
    check(layers == 1 or any(row["slices"] == layers for row in stash), f"{name}: no activation of {layers} layers in {stash}")
    return plan


check_timeline("1f1b", 2, 4, None, "FB")
# Into the same folder, a model without stages: no picture of another model is left, and what is not ours is.
pathlib.Path("1f1b/memory-of-mine.svg").touch()
report("1f1b")
left = sorted(str(path) for path in pathlib.Path().glob("1f1b/*"))
check(left == [f"1f1b/{name}" for name in ("index.html", "memory-main.svg", "memory-of-mine.svg", "report.json", "trace.json")], f"the folder has {left}")
check_timeline("zb-v", 2, 4, "zb-v", "FBW")
compile(config, "stages", mesh="pipe=2", microbatches=4, **size)
said = call(["meshwright", "inspect", "stages"])
lines = re.findall(r"^ +(\d) \|(.*?)\|(.*)\|$", said, re.M)
check([line[0] for line in lines] == ["0", "1"], f"inspect draws {lines}")
check(re.findall(r"[FB]\d", lines[1][1]) == "F0 B0 F1 B1 F2 B2 F3 B3".split(), f"inspect draws stage 1 as {lines[1]}")
tables = re.findall(r"^(parameter +type +shape +on a rank +sharding)\n((?:  .*\n)+)", said, re.M)
columns = [tables[0][0].index(title) for title in ("type", "shape", "on a rank", "sharding")]
check("post_attention_layernorm" in tables[0][1] and all(line[at - 2:at] == "  " and line[at] != " " for line in tables[0][1].splitlines() for at in columns),
      f"columns run together:\n{said}")
check(re.search(r"^arena +[\d,]+ bytes \([\d.]+ [KMG]iB\) a rank$", said, re.M), f"no size for people:\n{said}")
check("microbatches: utilization " in said and lines[0][2].count("U") >= 2, said)

# Budgets that the tables say are met exactly.
step = [row for row in one["communication"] if row["program"] == "step"]
memory = {line["category"]: line["bytes"] for line in one["memory"]}
exact = {
    "peak": one["arena_bytes"],
    "communication": sum(row["rank_bytes"] for row in step),
    "communication[data]": sum(row["rank_bytes"] for row in step if row["axes"] == "data"),
    "communication[data,tensor]": sum(row["rank_bytes"] for row in step if row["axes"] == "data,tensor"),
    "collectives": sum(row["calls"] for row in step),
    "flops": one["flops"],
    "parameter + gradient + optimizer": memory["parameter"] + memory["gradient"] + memory["optimizer"],
} | {category: memory[category] for category in ("parameter", "gradient", "optimizer", "activation", "workspace")}
for quantity, value in exact.items():
    check(value > 0, f"{quantity} is {value}")
    call(["meshwright", "compile", config, "--emit", "exec", "-o", "exact.mlir", "--mesh", "data=2,tensor=2", "--zero", 1, "--batch", 8,
          "--seq", 16, "--assert", f"{quantity}<={value}", "--assert", f"{quantity} >= {value}"])
    done = subprocess.run(["meshwright", "compile", config, "--emit", "exec", "-o", "exact.mlir", "--mesh", "data=2,tensor=2", "--zero", "1",
                           "--batch", "8", "--seq", "16", "--assert", f"{quantity}<{value}"], capture_output=True, text=True)
    check(done.returncode == 1 and f"{quantity} is {value:,}" in done.stderr, f"{quantity} < {value}: {done.stderr}")


# Comparing plans.
def diff(a, b, status, *words):
    done = subprocess.run(["meshwright", "diff", a, b], capture_output=True, text=True)
    check(done.returncode == status, f"diff {a} {b} exits with {done.returncode}, expected {status}:\n{done.stdout}{done.stderr}")
    for word in words:
        check(re.search(word, done.stdout + done.stderr), f"diff {a} {b} does not say '{word}':\n{done.stdout}{done.stderr}")
    return done.stdout


compile(config, "exe", mesh="data=2,tensor=2", zero=1, **size)
check(diff("exe", "one/report.json", 0) == "", "the same plans, and something is printed")
for flags in ([], ["--kernels"], ["--json"]):
    shown = call(["meshwright", "inspect", "exe", *flags])
    pathlib.Path("plan.json").write_text(call(["meshwright", "inspect", "exe", "--json"]))
    for file in ("one/report.json", "plan.json"):
        check(call(["meshwright", "inspect", file, *flags]) == shown, f"inspect {flags} shows something else of {file}")
three = report("three", mesh="data=2,tensor=2", zero=3)
before, after = memory["parameter"], {line["category"]: line["bytes"] for line in three["memory"]}["parameter"]
diff("exe", "three/report.json", 1, rf"parameter +{before:,} -> {after:,} -", r"norm.weight +64 f32, replicated -> 32 f32, dim 0 over data",
     r"step, data: all_gather, calls +\d+ -> \d+", r"arena_bytes +", r"kernels of a step, main +\d+ -> \d+")
pathlib.Path("longer.json").write_text(json.dumps(dict(json.load(open(config)), transformers_version="5.24.0")))
compile("longer.json", "longer.mlir", emit="exec", report="longer", mesh="data=2,tensor=2", zero=1, **size)
check(diff("one/report.json", "longer/report.json", 1) == "plan\n  config" + " " * 60 + "differs\n", "a text that is too long to be shown")
diff("exe", "seeds/report.json", 1, r"layers.self_attn.k_proj.weight +4 x 16 x 64 f32, dim 1 over tensor -> 4 x 32 x 64 f32, replicated")
compile(config, "sgd.mlir", emit="exec", report="sgd", optimizer="sgd", mesh="data=2,tensor=2", **size)
diff("exe", "sgd/report.json", 1, r"optimizer +adamw -> sgd", r"norm.weight.momentum +32 f32, dim 0 over data -> -")
# Rows that are taken several times are read once: of a table of 256 rows of 64, by the numbers of 512 tokens.
compile(config, "rows.mlir", emit="exec", report="rows", batch=32, seq=16)
rows = json.load(open("rows/report.json"))["programs"][0]["kernels"]
check(any((row["read_bytes"], row["written_bytes"]) == (4 * (256 * 64 + 512), 4 * 512 * 64) for row in rows),
      f"no kernel reads each row of the embedding once: {rows}")
# A difference in what has no table of its own.
compile(config, "named.mlir", emit="exec", mesh="data=2,tensor=2", zero=1, **size)
text = pathlib.Path("named.mlir").read_text()
check("d_mlp.up_proj" in text, "no gradient has the name of its weight")
pathlib.Path("renamed.mlir").write_text(text.replace("d_mlp.up_proj", "d_mlp.upwards"))
compile("renamed.mlir", "again.mlir", emit="exec", report="renamed")
diff("one/report.json", "renamed/report.json", 1, "other kernels, offsets in the arena")
# One that was changed after it was written.
json.dump(dict(one, hash="0" * 16), open("hash.json", "w"))
diff("one/report.json", "hash.json", 2, "hash.json' has no whole plan", "it was changed")
open("half.json", "w").write(open("one/report.json").read()[:1000])
diff("exe", "half.json", 2, "half.json' has no whole plan")
diff("exe", "nothing", 2, "cannot read 'nothing'")
diff("exe", "/bin/true", 2, "true")

# What is computed again is told apart by why: of experts on several devices without --remat, too, unless one round has all rows.
sparse = config.parent.parent.parent / "golden-more/olmoe/config.json"


def recomputed(name, *words, **options):
    compile(sparse, f"{name}.mlir", emit="exec", report=name, mesh="expert=2", batch=4, seq=16, aux_loss="none", **options)
    plan = json.load(open(f"{name}/report.json"))
    rows = {row["reason"]: row["flops"] for row in plan.get("recomputed", [])}
    check(plan["recomputed_flops"] == sum(rows.values()) and min(rows.values(), default=1) > 0, f"{name}: {rows} of {plan['recomputed_flops']}")
    said, page = call(["meshwright", "inspect", f"{name}/report.json"]), open(f"{name}/index.html").read()
    for reason, flops in rows.items():
        check(re.search(rf"^  {reason} +{flops:,.0f} ", said, re.M) and f"<th scope=row>... for {reason}</th><td>{flops:,.0f}: " in page,
              f"{name}: {reason} is not told:\n{said}")
    for word in words:
        check(word in said and word in page, f"{name} does not say '{word}':\n{said}")
    return rows


rounds = recomputed("rounds", "the backward receives the rows again")
full = recomputed("full", "activations that --remat does not save", remat="full")
check(set(rounds) == {"rounds"} and set(full) == {"rounds", "remat"} and full["rounds"] == rounds["rounds"], f"{rounds}, with --remat full {full}")
check(recomputed("whole", expert_buffer=8) == {}, "one round of all rows computes nothing again")
diff("rounds/report.json", "full/report.json", 1, rf"recomputed, remat +- -> {full['remat']:,.0f}", r"recomputed_flops +")


# What padding is said to cost is what it costs: FLOPs of products and attention, and bytes of variables.
def planned(mesh):
    said = compile(config, "padded.mlir", emit="exec", report="padded", batch=2, seq=16, mesh=mesh)
    plan = json.load(open("padded/report.json"))
    ranks = math.prod(axis["size"] for axis in plan["mesh"])
    work = ranks * sum(row["flops"] * row["times"] for row in plan["programs"][0]["kernels"])
    held = sum(math.prod(v["local_shape"]) * math.prod(3 for axes in v["sharding"] for axis in axes) for v in plan["variables"])
    return re.search(r"^padding: (.*); FLOPs of a step ([\d.]+)% more, bytes of variables ([\d.]+)% more$", said, re.M), work, held


nothing, least, logical = planned("")
check(not nothing, f"without a mesh is said {nothing}")
found, work, held = planned("tensor=3")
check(found and "4 -> 6 in dimension 1 of layers.self_attn." in found[1] and "256 -> 258 in dimension 0 of " in found[1], found)
for said, has, wants in (found[2], work, least), (found[3], held, logical):
    check(float(said) > 1 and abs(float(said) - 100 * (has / wants - 1)) < 0.02, f"{said}% more are said, {100 * (has / wants - 1)} are planned")
check("16 -> 18 in sequences" in planned("context=3")[0][1], "padded sequences are not named")
print(f"{len(one['communication'])} rows of communication, {len(one['replicated'])} of copies")
