"""What `run` does with the executables: each function passes, and gives a note, or raises Failed or Skipped."""
import json
import math
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

from ranks import Broken, Failed, Ranks, Skipped

PEAK_FLOPS = {"H100": 989e12, "H200": 989e12}  # bf16, dense
PEAK_BYTES = {"H100": 3.35e12, "H200": 4.8e12}  # a second, of data sheets
BEYOND_CACHE = 100e6  # bytes of a launch that caches cannot hold: twice those of an H100
CLOCK_TOLERANCE = 1.05  # of a kernel's time
WARMUP = 5  # steps of a benchmark that do not count
MEMORY_TOLERANCE = 0.02
ATTENTION_TOLERANCE = 2e-2  # relative, of losses with cuDNN's attention and with the generated kernels
LEAST_MS = 1e-6  # nothing takes less, whatever events say
LEAST_BANDWIDTH = 0.8  # of the copies'
MUCH = 32 << 20  # bytes of a launch that takes longer than launching
KILLED_SECONDS = 10
DUMPED_STEP = 2
# What a trace calls ops that are not kernels of a program's own, or not bound by memory.
NOT_GENERATED = {"attention", "attention_grad", "copy", "rounds", "route", "store_index", "store_offset"}
# Kinds whose speed is a row of the results beside others'.
TIMED = ("bench", "batch", "variant", "offload", "largest")
# What the executable says when the plan does not fit, before anything is allocated.
REFUSED = re.compile(r"the GPU has ([\d,]+) bytes free of [\d,]+, but the plan needs ([\d,]+):\n  arena [\d,]+\n")


def slope(losses):
    """Of the straight line nearest to the losses."""
    middle, mean = (len(losses) - 1) / 2, sum(losses) / len(losses)
    spread = sum((i - middle) ** 2 for i in range(len(losses)))
    return sum((i - middle) * (loss - mean) for i, loss in enumerate(losses)) / spread


def farthest(losses, want):
    """The largest distance of a loss from the one wanted, relative."""
    return max(abs(loss - other) / abs(other) for loss, other in zip(losses, want, strict=True))


def of_device(session, peaks):
    """Of an H100 or H200; None on other devices."""
    return next((value for name, value in peaks.items() if name in session.device), None)


def impossible(session, entry):
    """Whether a row of kernels is faster than the data sheet's rates allow."""
    flops, rate = of_device(session, PEAK_FLOPS), of_device(session, PEAK_BYTES)
    least = max(entry["flops"] / flops if flops else 0.0,
                entry["bytes"] / rate if rate and entry["bytes"] >= BEYOND_CACHE * entry["times"] else 0.0)
    return entry["ms"] / 1e3 * CLOCK_TOLERANCE < least


def utilisation(session, run, ms):
    """Of the FLOPs of an H100 or H200; None on other devices."""
    peak = of_device(session, PEAK_FLOPS)
    return run["flops"] / (ms / 1e3) / (peak * run["ranks"]) if peak else None


def measure_ceilings(session, log, until):
    done = subprocess.run([sys.executable, session.work / "ceilings.py"], capture_output=True, text=True,
                          env=session.environment, timeout=until - time.monotonic())
    log.write(done.stdout + done.stderr)
    if done.returncode:
        raise Failed(done.stderr.strip())
    measured = json.loads(done.stdout)
    with session.lock:
        session.results.update({key: value for key, value in measured.items() if value})
    copies, products = measured["copy_bytes_per_s"], measured["matmul_flops_per_s"]
    note = f"copies {copies / 1e12:.3f} TB/s read and written"
    if not products:
        raise Failed(f"{note}; products: {done.stderr.strip()}")
    return f"{note}, products in bf16 {products / 1e12:.1f} TFLOP/s"


def measure_rates(session, log, until):
    """Of products, copies, transfers and attention by their sizes: rates.py."""
    out = session.work / "rates.json"
    done = subprocess.run([session.python, session.work / "rates.py", out, "--seconds", str(until - time.monotonic() - 10)],
                          capture_output=True, text=True, env=session.environment, timeout=until - time.monotonic())
    log.write(done.stdout + done.stderr)
    if done.returncode:
        raise Failed(done.stderr.strip()[-800:])
    measured = json.loads(out.read_text())
    with session.lock:
        session.results["rates"] = measured
    return "; ".join(done.stdout.splitlines())


def extremes(states):
    """Least and greatest of what nvidia-smi has said while a run went on; and all that has slowed the GPU."""
    found = {key: [min(values), max(values)] for key in states[0] if key != "throttled"
             for values in [[state[key] for state in states if key in state]]} if states else {}
    return {**found, **({"throttled": sorted({state["throttled"] for state in states})} if states else {})}


def conditions(states):
    if not states:
        return ""
    found = extremes(states)
    clocks, watts = found.get("sm_mhz", ["?"] * 2), found.get("watts", ["?"] * 2)
    slowed = [word for word in found["throttled"] if word.strip("0x")]
    return f"; {clocks[0]} to {clocks[1]} MHz, {watts[0]} to {watts[1]} W" + \
           (f", slowed by {' '.join(slowed)}" if slowed else "")


def train(session, run, log, until, label="", **changed):
    """Trains and compares; also adds the row of results, as that of `label`."""
    measured = run["kind"] in TIMED
    if measured:
        session.look_before()
    with Ranks(session, run, log, look=measured, **changed) as ranks:
        ranks.wait(until)
        said, rows = ranks.text(0), ranks.rows()
        used = ranks.most - session.before if ranks.most else None
    steps = changed.get("steps", run["arguments"]["steps"])
    if len(rows) != steps:
        raise Failed(f"{len(rows)} steps of {steps}")
    # The last time it says so everything has been loaded, connected and captured.
    beside = (re.findall(r"([\d,]+) bytes in use beside the arena \(([^)]*)\); the plan allows ([\d,]+)", said)
              or [None])[-1]
    if measured and not label:
        session.keep("memory", run["name"], {"used": used, "beside": beside})
    attention = re.search(r"attention by [^\n]*", said)
    captured = re.search(r"captured a CUDA graph of (\d+) nodes", said)
    counted = rows[WARMUP:] or rows[1:]
    ms, tokens = statistics.median(row["step_ms"] for row in counted), run["batch"] * run["seq"]
    mfu = utilisation(session, run, ms) if measured else None
    if session.synchronous():
        return "it runs"  # Its times say nothing.
    with session.lock:
        session.results["rows"].append(
            {"system": "meshwright", "model": " ".join(filter(None, [run["model"], run["mesh"]])), "seq": run["seq"],
             "batch": run["batch"], "precision": run["precision"], "ranks": run["ranks"], "step_ms": ms,
             "tokens_per_s": tokens / ms * 1e3, "mfu": mfu, "peak_bytes": used, "kind": label or run["kind"],
             "start_to_first_step_ms": ranks.first_step_ms, "command": " ".join(ranks.command), "compile": run["compile"],
             **({"attention": attention[0]} if attention else {}), "graph_nodes": int(captured[1]) if captured else None,
             **extremes(ranks.states)})
    losses = [row["loss"] for row in rows]
    session.keep("losses", label + run["name"], losses)
    if not all(map(math.isfinite, losses)):
        raise Failed(f"a loss is not finite: {losses}")
    if run["cudnn"] and not (attention and "cuDNN" in attention[0] and "generated kernels" not in attention[0]):
        notes = re.findall(r"instead of cuDNN's: ([^\n]*)", said)
        raise Failed(f"attention is to be cuDNN's: {attention[0] if attention else 'nothing is said'}; {'; '.join(notes)}")
    if "loss" not in run:
        started = f"; the first step ended {ranks.first_step_ms / 1e3:.1f} s after the start" if ranks.first_step_ms else ""
        kernels = said.count("instead of cuBLASLt's epilogue")
        return f"{ms:.1f} ms, {tokens / ms * 1e3:,.0f} tokens/s" + \
               (f", FLOPs utilisation {mfu:.3f}" if mfu else "") + started + \
               ("" if captured or session.target != "cuda" else "; no CUDA graph") + \
               (f"; {kernels} epilogues by kernels" if kernels else "") + conditions(ranks.states)
    off = farthest(losses, run["loss"])
    note = f"losses off by {off:.1e} of {run['tolerance']:.0e}"
    if not off <= run["tolerance"]:
        raise Failed(note)
    if "slope_tolerance" in run:
        falls = slope(losses) / slope(run["loss"])
        note += f", slope {falls:.4f} times float64's"
        if not abs(falls - 1) <= run["slope_tolerance"]:
            raise Failed(note)
    return note


def graphs(session, run, log, until):
    """Losses are the same without CUDA graphs, of pipelines, which run without, with them: on one rank to the last bit."""
    want, other = session.kept("losses", run["name"]), "on" if "pipe" in run["mesh"] else "off"
    if not want:
        raise Skipped("there are no losses to compare with")
    with Ranks(session, run, log, cuda_graphs=other) as ranks:
        ranks.wait(until)
        off = farthest([row["loss"] for row in ranks.rows()], want)
    if off > (0 if run["ranks"] == 1 else 1e-6):
        raise Failed(f"losses with --cuda-graphs {other} are off by {off:.1e}")
    return f"losses off by {off:.1e}"


def dump(session, run, log, until):
    """What a step computed, to be held against the interpreter elsewhere."""
    place = session.files / "dumps" / re.sub(r"[^\w.]+", "-", run["name"])
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(exist_ok=True)
    with Ranks(session, run, log, steps=DUMPED_STEP + 1, dump=place, dump_step=DUMPED_STEP) as ranks:
        ranks.wait(until)
    written = sum(path.stat().st_size for path in place.iterdir())
    return f"{written:,} bytes; where the compiler is: meshwright replay {place.relative_to(session.files)}"


def compare_attention(session, run, log, until):
    """Losses with the generated kernels, which `run` has, and with cuDNN's."""
    ours, other = (session.kept("losses", run["name"].replace("generated", name)) for name in ("generated", "cudnn"))
    if not ours or not other:
        raise Skipped("one of the two did not run")
    off = farthest(other, ours)
    note = f"losses apart by {off:.1e} of {ATTENTION_TOLERANCE:.0e}"
    log.write(f"generated: {ours}\ncuDNN: {other}\n")
    if not off <= ATTENTION_TOLERANCE:
        raise Failed(note)
    return note


def tuned(session, run, log, until):
    """The same with the fastest algorithms for its products, which it finds first."""
    place = session.files / "tune"
    place.mkdir(exist_ok=True)
    file = place / f"{re.sub('[^a-z0-9.]+', '-', run['name'].lower())}.json"
    return train(session, run, log, until, label="tuned", tune=str(file.resolve()))


def memory(session, run, log, until):
    """What nvidia-smi says is in use is what the plan says: its arena and what it allows beside it."""
    measured = session.kept("memory", run["name"])
    if not measured or not measured["used"]:
        raise Skipped("the benchmark did not run, or nvidia-smi does not say what is in use")
    used, planned = measured["used"], run["device_bytes"]
    beside = f"; beside the arena {measured['beside'][0]}: {measured['beside'][1]}" if measured["beside"] else ""
    allowed = ", ".join(f"{line['category']} {line['bytes']:,}" for line in run["allowances"])
    note = f"{used:,} bytes in use, {planned:,} planned: {used / planned - 1:+.2%} (arena {run['arena_bytes']:,}, " \
           f"allowed {allowed}{beside})"
    if abs(used / planned - 1) > MEMORY_TOLERANCE:
        raise Failed(note)
    return note


def kernels(session, run, log, until):
    """The times of a step's kernels beside the times that none can beat: bytes over the bandwidth of copies,
    operations over the rate of products. Generated kernels are judged."""
    copies, products = (session.results.get(key) for key in ("copy_bytes_per_s", "matmul_flops_per_s"))
    if not copies:
        raise Skipped("the bandwidth of copies is not known")
    trace = f"trace-{session.number()}.json"
    with Ranks(session, run, log, steps=4, trace=trace, trace_from=3, trace_steps=1) as ranks:
        ranks.wait(until)
    # A span says which row of the plan's kernels it is of; those of evaluations are of none.
    spans = {}
    for event in json.loads((session.work / trace).read_text())["traceEvents"]:
        if event.get("cat") == "gpu" and "index" in event["args"]:
            if event["name"] != run["kernels"][event["args"]["index"]]["op"]:
                raise Failed(f"the trace's kernel {event['args']['index']} is {event['name']}, the plan's "
                             f"{run['kernels'][event['args']['index']]['op']}")
            spans.setdefault(event["args"]["index"], []).append(event["dur"] / 1e6)
    table = []
    for index, row in enumerate(run["kernels"]):
        if index not in spans:
            continue
        moved, each = row["read_bytes"] + row["written_bytes"], statistics.mean(spans[index])
        floor = max(moved / copies, row["flops"] / products if products else 0.0)
        name = f"matmul {row['kind']} ({moved / 1e6:.1f} MB)" if row["op"] == "matmul" else row["op"]
        table.append({"kernel": name, "kind": row["kind"], "times": row["times"], "bytes": row["times"] * moved,
                      "flops": row["times"] * row["flops"], "floor_ms": 1e3 * row["times"] * floor,
                      "ms": max(LEAST_MS, 1e3 * row["times"] * each)})
    if not table:
        raise Failed("the trace has no kernels of the plan")
    rows = sorted(table, key=lambda entry: -entry["ms"])
    log.write(f"{'kernel':<44}{'times':>7}{'ms':>10}{'floor ms':>10}{'ratio':>7}{'GB/s':>8}{'TFLOP/s':>9}  kind\n")
    for entry in rows:
        entry["of_copies"] = entry["bytes"] / (entry["ms"] / 1e3) / copies
        log.write(f"{entry['kernel']:<44}{entry['times']:>7}{entry['ms']:>10.3f}{entry['floor_ms']:>10.3f}"
                  f"{entry['floor_ms'] / entry['ms']:>7.2f}{entry['bytes'] / entry['ms'] / 1e6:>8.0f}"
                  f"{entry['flops'] / entry['ms'] / 1e9:>9.1f}  {entry['kind']}\n")
    total, floor = (sum(entry[key] for entry in rows) for key in ("ms", "floor_ms"))
    log.write(f"{'all':<44}{'':>7}{total:>10.3f}{floor:>10.3f}{floor / total:>7.2f}\n")
    session.keep("kernels", run["model"], rows)
    if wrong := [f"{entry['kernel']} ({entry['kind']}) in {entry['ms']:.3f} ms" for entry in rows if impossible(session, entry)]:
        raise Failed("the table is wrong, as no such GPU is so fast: " + ", ".join(wrong))
    # Those that take no time to speak of wait for launches; rows added in order are told, not judged.
    generated = [entry for entry in rows if not entry["flops"] and entry["kernel"] not in NOT_GENERATED]
    judged = [entry for entry in generated if entry["bytes"] >= MUCH * entry["times"] and "scatter" not in entry["kind"]]
    slow = [entry for entry in judged if entry["of_copies"] < LEAST_BANDWIDTH]
    gaps = sorted(rows, key=lambda entry: entry["floor_ms"] - entry["ms"])[:4]
    note = f"{total:.1f} ms in kernels, floor {floor:.1f}; {len(judged)} of {len(generated)} generated ones judged, " \
           f"{len(slow)} below {LEAST_BANDWIDTH:.0%} of the copies' bandwidth; largest gaps " + \
           ", ".join(f"{entry['kernel']} {entry['ms'] - entry['floor_ms']:.1f} ms" for entry in gaps)
    if slow:
        raise Failed(note + "; slow: " + ", ".join(f"{entry['kernel']} {entry['of_copies']:.2f}" for entry in slow[:8]))
    return note


def offloaded(session, run, log, until):
    """Runs with its optimizer's states on the host. Without, either the same losses to the last bit, or it
    does not fit, as its plan said: then `run` names the executable without in `without`."""
    note = train(session, run, log, until)
    if "without" in run:
        with Ranks(session, next(one for one in session.runs if one["name"] == run["without"]), log) as ranks:
            while ranks.running() and time.monotonic() < until:
                time.sleep(0.05)
            refused = REFUSED.search(ranks.text(0))
            if ranks.running() or not refused:
                raise Failed(f"{note}; without, it is not refused: {ranks.text(0).strip()[-300:]}")
        return f"{note}; {run['host_bytes']:,} bytes on the host; without, {refused[2]} bytes are wanted and {refused[1]} free"
    want = session.kept("losses", run["same_as"])
    if not want:
        return f"{note}; the benchmark's losses are not known"
    off = farthest(session.kept("losses", run["name"]), want)
    if off:
        raise Failed(f"{note}; losses off by {off:.1e} of those without --offload")
    return f"{note}; the same losses as without, to the last bit"


def largest(session, runs, log, until):
    """Of the same model with different numbers of layers, the largest that the plan says fits runs, and a larger
    one is refused before anything is allocated."""
    refused = None
    for run in sorted(runs, key=lambda run: -run["device_bytes"]):
        try:
            note = train(session, run, log, until)
        except Broken as broken:
            said = REFUSED.search(broken.said)
            if not said:
                raise
            refused = f"{run['model']} is refused: {said[2]} bytes are wanted and {said[1]} free"
            log.write(refused + "\n")
            continue
        if not refused:
            raise Failed(f"{run['model']}, the largest that was built, runs: {note}")
        session.keep("memory", "largest", {"run": run["name"]})
        return f"{run['model']} of {run['device_bytes']:,} bytes runs: {note}; {refused}"
    raise Failed(f"none runs: {refused}")


def largest_memory(session, runs, log, until):
    found = session.kept("memory", "largest")
    if not found:
        raise Skipped("none of them has run")
    return memory(session, next(run for run in runs if run["name"] == found["run"]), log, until)


def killed(session, run, log, until):
    if session.launch == "threads":
        raise Skipped("ranks are threads of one process here")
    with Ranks(session, run, log, steps=10**7) as ranks:
        while len(ranks.rows()) < 5:
            if len(ranks.running()) < run["ranks"] or time.monotonic() > until:
                raise Failed("no five steps: " + ranks.text(0).strip()[-800:])
            time.sleep(0.1)
        lost = run["ranks"] - 1
        ranks.processes[lost].send_signal(signal.SIGKILL)
        began = time.monotonic()
        while ranks.running() and time.monotonic() < began + 2 * KILLED_SECONDS:
            time.sleep(0.05)
        seconds = time.monotonic() - began
        if ranks.running() or seconds > KILLED_SECONDS:
            raise Failed(f"{len(ranks.running())} ranks are left after {seconds:.1f} s")
        codes = [process.returncode for process in ranks.processes]
        if not all(codes):
            raise Failed(f"exit status {codes}")
        said = "".join(ranks.text(rank) for rank in range(lost))
        if not re.search(rf"rank {lost}\b", said):
            raise Failed(f"nobody names rank {lost}: {said.strip()[-800:]}")
        if not re.search("all_reduce|all_gather|reduce_scatter|broadcast|reduce|permute|send|recv", said):
            raise Failed(f"nobody names what was under way: {said.strip()[-800:]}")
        return f"the others ended after {seconds:.1f} s"


LIBRARY_KERNELS = ["nvjet", "cutlass", "cudnn", "cublas", "gemm", "splitK", "nccl"]


def sanitize(session, run, log, until):
    tool = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if not tool:
        raise Skipped("there is no compute-sanitizer in PATH or /usr/local/cuda/bin")
    # Of calls that fail some are asked only to see whether they do; kernels of libraries are not ours to judge.
    checks = {"memcheck": ["--report-api-errors", "no"],
              "racecheck": [word for name in LIBRARY_KERNELS for word in ("--kernel-name-exclude", f"kns={name}")]}
    for check, flags in checks.items():
        with Ranks(session, run, log, steps=1, prefix=[tool, "--tool", check, *flags, "--error-exitcode", "9"]) as ranks:
            ranks.wait(until)
            if not re.search(r"ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards", ranks.text(0)):
                raise Failed(f"{check} has no summary without errors: {ranks.text(0).strip()[-800:]}")
    return "memcheck and racecheck find nothing"
