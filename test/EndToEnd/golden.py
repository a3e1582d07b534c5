#!/usr/bin/env python3
"""Trains a golden directory's model and compares with its float64 run.

  golden.py GOLDEN[/RUN.json] WORK MESH[/MICROBATCHES][+FLAG[=VALUE]]... [--gradients] [--repeat] [--mpi] [--traffic] [--no-weights] [--steps N]

FLAG: one of the compiler's, as in data=2,tensor=2/2+zero=3+sequence-parallel;
--gradients: also compare the first gradients, taken from the momentum after a step of AdamW;
--repeat: a second run gives the same bits; --mpi: so do MPI ranks; --traffic: ranks send as many
bytes as are planned; --no-weights: the golden run does not say how large the weights are at its end;
--steps: only its first N steps, for executables whose steps take long, and so no weights.
"""
import argparse
import filecmp
import math

from compare import largest, momentum_error, read_safetensors
from harness import Golden, check, check_traffic, compile, distance, fresh, ranks_of, strategy, train


def compare_weights(golden):
    """The largest error of a norm of the weights at the end."""
    # gpt2's joint biases count as those of q, k and v. Without rotary positions that of k has
    # no gradient but rounding errors, which Adam makes steps of full size from. So have elements of the tensors that the
    # golden run lists.
    weights = read_safetensors("threads/latest/model.safetensors")
    final, parts = ({name.removeprefix("transformer."): norm for name, norm in golden.answers.get(key, {}).items()}
                    for key in ("final_norm", "final_parts"))
    check(set(weights) == set(final), f"other tensors were saved: {sorted(set(weights) ^ set(final))}")
    joint = {name for name in final if name.endswith("c_attn.bias") and name.replace("c_attn", "c_proj") in final}  # gpt2's
    check(set(parts) == joint, "joint biases without parts")
    free = {name.removeprefix("transformer.") for name in golden.answers.get("without_gradient", [])}
    pairs = [(weights[name][1], norm) for name, norm in final.items() if name not in parts and name not in free]
    for name, (q, _, v) in parts.items():
        values, queries = weights[name][1], len(weights[name.replace("c_attn", "c_proj")][1])
        pairs += [(values[:queries], q), (values[(len(values) + queries) // 2:], v)]
    return largest(abs(math.hypot(*values) - norm) / norm for values, norm in pairs)


def compare(golden, name, repeat=False, mpi=False, gradients=False, traffic=False, weights=True, steps=None):
    """Trains on one mesh; returns the largest errors of losses, gradient norms and weights at the end."""
    size = dict(golden.size, **strategy(name))
    ranks = ranks_of(size["mesh"])
    compile(golden.config, "exe", **size)
    steps = steps or golden.run["steps"]
    traced = dict(golden.run, steps=steps, trace="trace.json" if traffic else None)
    have = train("./exe", ranks, save="threads", **traced)
    if traffic:
        check_traffic("./exe", "trace.json", steps)
    keys = [key for key in ("loss", "grad_norm", "aux_loss") if key in golden.answers]
    check(("aux_loss" in have[0]) == ("aux_loss" in keys), f"the metrics have {set(have[0])}")
    want = [dict(zip(keys, values)) for values in zip(*(golden.answers[key][:steps] for key in keys))]
    loss, norm = distance(have, want), distance(have, want, "grad_norm")
    print(f"{golden.directory.name} {name}: loss {loss:.1e}, grad_norm {norm:.1e}", end="")
    check(loss <= 1e-5, f"a loss is off by {loss:.2e}")
    check(norm <= 5e-5, f"a gradient norm is off by {norm:.2e}")
    if "aux_loss" in keys:
        part = distance(have, want, "aux_loss")
        print(f", aux_loss {part:.1e}", end="")
        check(part <= 1e-5, f"the routers' part of a loss is off by {part:.2e}")

    worst = 0.0
    if weights and steps == golden.run["steps"]:
        worst = compare_weights(golden)
        print(f", final weights {worst:.1e}", end="")
        check(worst <= 2e-5, f"the norm of a weight at the end is off by {worst:.2e}")

    for kind, wanted, launched in (("again", repeat, False), ("mpi", mpi, True)):
        if wanted:
            again = train("./exe", ranks, mpi=launched, save=kind, **traced)
            if traffic:
                check_traffic("./exe", "trace.json", steps)
            check(again == have, f"{name}: the losses of the run '{kind}' differ in a bit")
            for file in ("model.safetensors", "optimizer.safetensors"):
                same = filecmp.cmp(f"threads/latest/{file}", f"{kind}/latest/{file}", shallow=False)
                check(same, f"{name}: {file} of the run '{kind}' differs in a bit")
            print(f", {kind}: same bits", end="")

    if gradients:
        train("./exe", ranks, save="first", **dict(golden.run, beta1=0.9, grad_clip=0, steps=1))
        error, where = momentum_error("first/latest/optimizer.safetensors", golden.gradients, 0.9)
        print(f", gradients {error:.1e} at {where}", end="")
        check(error <= 2e-5, f"{name}: the gradient of {where} is off by {error:.2e}")
    print(flush=True)
    return {"loss": loss, "grad_norm": norm, "final weights": worst}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("golden")
    parser.add_argument("work")
    parser.add_argument("meshes", nargs="+")
    for flag in ("--gradients", "--repeat", "--mpi", "--traffic", "--no-weights"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--steps", type=int)
    args = parser.parse_intermixed_args()
    model = Golden(args.golden)
    fresh(args.work)
    for item in args.meshes:
        compare(model, item, repeat=args.repeat, mpi=args.mpi, gradients=args.gradients, traffic=args.traffic,
                weights=not args.no_weights, steps=args.steps)
