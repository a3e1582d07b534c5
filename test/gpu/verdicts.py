"""What the results of a call, and of those before it, say of the goals: speed beside PyTorch and JAX, FLOPs utilisation,
the time to start."""

FASTER = 1.2  # times the tokens a second of the faster of the others
START = 0.1  # of torch.compile's with cold caches
OURS = ("bench", "batch", "tuned")
LEAST_UTILISATION = {"gpt2-1.5b": 0.54, "llama-3.2-1b": 0.58, "llama-3.2-1b-long": 0.58, "olmoe-4-layers": 0.45}


def best(rows):
    return max(rows, key=lambda row: row["tokens_per_s"], default=None)


def judge(results, benchmarks):
    """(name, outcome, note) of each goal; `benchmarks` are runs of kind bench. Of the others the fastest row counts, whatever
    its mode and the type of its weights."""
    for run in benchmarks:
        model = run["model"]
        rows = [row for row in results["rows"] if row["model"] == model and row["seq"] == run["seq"]]
        ours = [row for row in rows if row["system"] == "meshwright" and row["kind"] in OURS]
        others = [row for row in rows if row["system"] != "meshwright"]
        for what, mine, theirs in (
                (f"speed at batch {run['batch']}", [row for row in ours if row["batch"] == run["batch"]],
                 [row for row in others if row["batch"] == run["batch"]]),
                ("speed, each at its best batch", ours, others)):
            yield (f"{model}: {what}", *ratio(best(mine), best(theirs), {row["system"] for row in theirs}))
        least, mine = LEAST_UTILISATION.get(model), best(ours)
        if not mine or not mine["mfu"]:
            yield f"{model}: FLOPs utilisation", "skip", "not measured, or the device's peak is not known"
        elif least:
            yield f"{model}: FLOPs utilisation", "pass" if mine["mfu"] >= least else "fail", \
                  f"{mine['mfu']:.3f} of {least} at batch {mine['batch']} ({mine['kind']})"
        else:
            yield f"{model}: FLOPs utilisation", "pass", f"{mine['mfu']:.3f}, for which there is no goal"
        yield (f"{model}: start", *start(ours, rows, run["batch"]))


def ratio(mine, theirs, systems):
    if not mine or not theirs:
        return "skip", "ours or the others' is not measured"
    times = mine["tokens_per_s"] / theirs["tokens_per_s"]
    note = f"{mine['tokens_per_s']:,.0f} tokens/s (batch {mine['batch']}, {mine['kind']}) is {times:.3f} times " \
           f"{theirs['tokens_per_s']:,.0f} of {theirs['system']} (batch {theirs['batch']})"
    missing = {"torch.compile", "jax"} - systems
    if missing:
        note += f"; {', '.join(sorted(missing))} is not measured"
    return ("fail" if times < FASTER else "skip" if missing else "pass"), note


def start(ours, rows, batch):
    """From the start of the process to the end of the first step."""
    mine = min((row["start_to_first_step_ms"] for row in ours
                if row["kind"] == "bench" and row["batch"] == batch and row.get("start_to_first_step_ms")), default=None)
    others = {row["system"]: row["start_to_first_step_ms"] for row in rows
              if row["system"] != "meshwright" and row.get("start_to_first_step_ms")}
    cold = others.get("torch.compile")
    if not mine or not cold:
        return "skip", "ours or torch.compile's is not measured"
    note = f"{mine / 1e3:.1f} s is {mine / cold:.3f} times {cold / 1e3:.1f} s of torch.compile"
    if "jax" in others:
        note += f"; JAX {others['jax'] / 1e3:.1f} s"
    return ("pass" if mine <= START * cold else "fail"), note


def table(results, benchmarks):
    """Lines: every benchmark's rows, the fastest first."""
    yield f"{'model':<20}{'S':>6}{'batch':>6}  {'system':<40}{'ms':>9}{'tokens/s':>11}{'MFU':>7}{'GB':>7}"
    for run in benchmarks:
        rows = [row for row in results["rows"] if row["model"] == run["model"] and row["seq"] == run["seq"]]
        for row in sorted(rows, key=lambda row: -row["tokens_per_s"]):
            words = [row["system"], row.get("kind"), row.get("mode"), row.get("masters") and row["masters"] + " weights",
                     "remat" if row.get("remat") else None]
            mfu = f"{row['mfu']:.3f}" if row["mfu"] else "-"
            used = f"{row['peak_bytes'] / 1e9:.1f}" if row["peak_bytes"] else "-"
            yield f"{row['model']:<20}{row['seq']:>6}{row['batch']:>6}  {' '.join(filter(None, words)):<40}" \
                  f"{row['step_ms']:>9.1f}{row['tokens_per_s']:>11,.0f}{mfu:>7}{used:>7}"
