"""Which runs of those that were built a GPU's memory is right for: benchmarks, what is kept on the host and the largest
model are built for several sizes of GPUs."""
import itertools


def needed(run):
    """Bytes of the GPU's that the run takes beside CUDA's context, which is there when free memory is asked for."""
    return run["device_bytes"] - sum(line["bytes"] for line in run["allowances"] if line["category"] == "CUDA context")


def suitable(runs, available):
    """`runs` without those for other GPUs than one with so many bytes free. Of alternatives the first that is right stays,
    or else the last, which fails and says why."""
    by_name = {run["name"]: run for run in runs}

    def fits(run):
        return needed(run) <= available

    def first(candidates, right):
        return next((one for one in candidates if right(one)), candidates[-1])

    left_out = set()
    benches = [run for run in runs if run["kind"] == "bench"]
    for _, group in itertools.groupby(benches, key=lambda run: run["model"]):
        group = list(group)
        chosen = first(group, fits)
        left_out |= {run["name"] for run in group if run is not chosen}
        left_out |= {run["name"] for run in runs if run["kind"] == "batch" and run["model"] == chosen["model"] and
                     (not fits(run) or run["batch"] == chosen["batch"])}
    left_out |= {run["name"] for run in runs if run.get("of") in left_out}
    shown = [run for run in runs if run["kind"] == "offload" and run.get("without")]
    if shown:
        chosen = first(shown, lambda run: fits(run) and not fits(by_name[run["without"]]))
        left_out |= {run["name"] for run in shown if run is not chosen}
    largest = [run for run in runs if run["kind"] == "largest"]
    limits = list(dict.fromkeys(run["limit"] for run in largest))
    if limits:
        def ends_there(limit):
            fitting = [fits(run) for run in largest if run["limit"] == limit]
            return any(fitting) and not all(fitting)
        chosen = first(limits, ends_there)
        left_out |= {run["name"] for run in largest if run["limit"] != chosen}
    return [run for run in runs if run["name"] not in left_out]
