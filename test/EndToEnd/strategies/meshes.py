#!/usr/bin/env python3
"""Trains golden models on many meshes; each run must have the losses, gradient norms and weights of the float64 run.

  meshes.py INPUTS WORK [--all]

Alone: every fifth row of OFTEN, the first with MPI too. --all: every row as threads and with MPI. A row is written as for
golden.py; with MPI the bits must be those of the threads.
"""
import json
import pathlib
import sys
import time

sys.path.append(sys.path[0] + "/..")
from golden import compare
from harness import Golden, call, check, fresh

# Batches of the first two have 8 sequences, of the others 4 or 6.
OFTEN = {
    "golden/gpt2-tiny": """
        data=4,tensor=2/2 tensor=2,data=4+zero=3 replica=2,data=4+zero=3 tensor=2x2+tensor-2d+sequence-parallel
        replica=2,data=2,tensor=2/2+zero=3+sequence-parallel data=4/2+data-sync=parameter-server""",
    "golden/llama-tiny": """
        tensor=4,data=2+zero=2+sequence-parallel data=4,tensor=2+zero=3+sequence-parallel replica=2,tensor=4+sequence-parallel tensor=2x1x4+tensor-2d
        replica=2,data=2,tensor=2+data-sync=parameter-server+sequence-parallel""",
    "golden-more/llama-mqa": "data=2,tensor=3",
    "golden-more/gpt2-untied": "data=2,tensor=4+zero=3+sequence-parallel",
    "golden-more/qwen3": "data=2,tensor=2/2+zero=2",
    "golden-more/llama-linear": "data=2,tensor=2+zero=3",
    "golden-more/qwen2": "data=2,tensor=2",
}
REST = {
    "golden/gpt2-tiny": """
        replica=2,tensor=2/4 data=8+zero=1 data=2,tensor=2x2/2+tensor-2d+zero=1
        data=2 data=4/2 data=8 data=2/4 data=8+zero=2 data=8+zero=3 data=2/2+zero=1 data=2/4+zero=2 data=4/2+zero=3
        tensor=2 tensor=4/8 data=4/2+zero=2 data=2,tensor=4+sequence-parallel tensor=2+sequence-parallel tensor=4+sequence-parallel
        replica=8 replica=2,data=2 data=2,tensor=2 replica=4,data=2+zero=1 replica=2,data=4+zero=2 replica=2,data=2/2+zero=3
        tensor=2x2+tensor-2d tensor=2x4+tensor-2d tensor=4x2/2+tensor-2d tensor=2x2x2+tensor-2d tensor=1x2x4+tensor-2d
        tensor=2x1x2/2+tensor-2d+sequence-parallel
        data=2,tensor=2/4+zero=1 data=2,tensor=2+zero=2 data=2,tensor=2/2+zero=3 data=4,tensor=2+zero=1+sequence-parallel
        data=4,tensor=2/2+zero=2+sequence-parallel data=4,tensor=2+zero=3 data=2,tensor=4/2+zero=1 data=2,tensor=4+zero=2
        data=2,tensor=4/4+zero=3+sequence-parallel tensor=4,data=2/2+zero=1 tensor=2,data=2+sequence-parallel
        replica=2,tensor=4 replica=4,tensor=2/2+sequence-parallel replica=2,data=2,tensor=2 replica=2,data=2,tensor=2+zero=1
        replica=2,data=2,tensor=2/2+zero=2+sequence-parallel data=2,tensor=2x2+tensor-2d+zero=3
        replica=2,tensor=2x2+tensor-2d data=2,tensor=1x2x2+tensor-2d
        data=8+data-sync=parameter-server data=2/4+data-sync=parameter-server data=2,tensor=4+data-sync=parameter-server
        replica=2,data=2/2+data-sync=parameter-server data=2,tensor=2x2+tensor-2d+data-sync=parameter-server""",
    "golden/llama-tiny": """
        replica=4,data=2+zero=2 data=2,tensor=4/4 replica=2,data=2,tensor=2/2+zero=1 data=4,tensor=2/2+zero=1
        data=4/2 data=4+zero=1 data=8+zero=2 data=8+zero=3 tensor=8+sequence-parallel tensor=2x4+tensor-2d data=2,tensor=2x1x2+tensor-2d+zero=3 data=4/2+zero=3 tensor=2 tensor=4/2 tensor=8 tensor=2/2+sequence-parallel
        replica=2,data=4+zero=3 replica=2,data=2/2+zero=1 replica=2,data=2
        tensor=2x2+tensor-2d tensor=4x2+tensor-2d+sequence-parallel tensor=8x1+tensor-2d+sequence-parallel tensor=2x2x2/2+tensor-2d
        data=2,tensor=2 data=2,tensor=2/2+zero=1+sequence-parallel data=2,tensor=2+zero=3 data=4,tensor=2/2+zero=2
        data=4,tensor=2+zero=2+sequence-parallel data=2,tensor=4+zero=1+sequence-parallel data=2,tensor=4/2+zero=2
        data=2,tensor=4+zero=3 tensor=2,data=4/2+zero=1 tensor=4,data=2+zero=3
        replica=2,tensor=2/2+sequence-parallel replica=2,tensor=4 replica=2,data=2,tensor=2+zero=2+sequence-parallel
        replica=2,data=2,tensor=2/2+zero=3 data=2,tensor=2x2+tensor-2d+zero=2 data=2,tensor=4x1/2+tensor-2d+zero=3
        replica=2,tensor=2x2+tensor-2d+sequence-parallel
        data=4+data-sync=parameter-server data=4,tensor=2/2+data-sync=parameter-server
        tensor=4,data=2+data-sync=parameter-server+sequence-parallel""",
    "golden-more/llama-mqa": "data=2+zero=2 tensor=3 tensor=3+sequence-parallel data=2,tensor=3/3+zero=2 data=2,tensor=3+zero=3+sequence-parallel",
    "golden-more/gpt2-untied": "data=4,tensor=2+zero=1 tensor=4/2+sequence-parallel data=2,tensor=2/2+zero=2 replica=2,data=2,tensor=2+zero=3",
    "golden-more/qwen3": "data=4,tensor=2 data=2,tensor=4+zero=1 data=2,tensor=2+zero=3",
    "golden-more/llama-linear": "data=2,tensor=4+zero=2 tensor=2x2+tensor-2d tensor=4/2+sequence-parallel",
    "golden-more/mistral-window": "tensor=4+sequence-parallel data=2,tensor=2/2+zero=3 data=2,tensor=4+zero=1",
    "golden-more/qwen2": "data=4,tensor=2+zero=2 data=4,tensor=2+data-sync=parameter-server",
    "golden-more/qwen2-window": "tensor=4+sequence-parallel data=4,tensor=2+zero=3 data=2,tensor=2/2+zero=1",
    "golden-more/qwen3-v5": "data=2,tensor=2+sequence-parallel data=2,tensor=4/2+zero=3",
    "golden-more/llama-llama3": "data=2,tensor=2/2+zero=3+sequence-parallel data=4,tensor=2+zero=1",
    "golden-more/llama-padding": "data=4,tensor=2+zero=3 data=2,tensor=2/2+sequence-parallel",
    "golden-more/gpt2-layer-scale": "data=2,tensor=2+sequence-parallel data=4,tensor=2+zero=2",
}
# Rows over a mesh axis context by --context-parallel. The first of a model is of OFTEN, the others are of REST.
CONTEXT = {"ulysses": {
    "golden/gpt2-tiny": """
        data=2,context=2,tensor=2+sequence-parallel context=2 context=4/2 data=2,context=2+zero=2 context=2,tensor=2/2+zero=1
        replica=2,context=4+zero=3 context=2,data=2/2+zero=3 data=2,context=2,tensor=2/2+zero=3""",
    "golden/llama-tiny": """
        context=4,tensor=2+zero=1 context=8/2 context=4+zero=3 tensor=4,context=2+sequence-parallel data=2,context=4/2+zero=2
        context=2,data=2+data-sync=parameter-server context=2,tensor=2x2+tensor-2d""",
    "golden-more/llama-mqa": "context=3+zero=2 data=2,context=3/3",
    "golden-more/mistral-window": "context=4 context=2,tensor=2+sequence-parallel",
    "golden-more/gemma2": "data=2,context=2+zero=3 context=2",
}, "gather": {
    "golden/gpt2-tiny": """
        context=3,data=2+zero=3 context=2 context=4/2 data=2,context=2,tensor=2/2+zero=1+sequence-parallel context=8+zero=2
        pipe=2,context=2/2 pipe=2,context=3/4+zero=3""",
    "golden/llama-tiny": """
        context=2,tensor=2/2+sequence-parallel+zero=3 context=3 context=4+zero=1 data=2,context=4/2+zero=2 context=8/2
        context=2,data=2+data-sync=parameter-server context=2,tensor=2x2+tensor-2d pipe=2,context=2,tensor=2/2 context=4/2+context-balance=none
        context=4/2+context-balance=striped""",
    "golden-more/llama-mqa": "context=4 context=2,tensor=3+sequence-parallel data=2,context=3/3+zero=2",
    "golden-more/mistral-window": "context=4+zero=3 context=3,tensor=2+sequence-parallel",
    "golden-more/gemma3": "context=2,tensor=2 context=4/2",
    "golden-more/phi3": "context=2+zero=3 context=4,tensor=2+sequence-parallel",
}, "ring": {
    "golden/gpt2-tiny": """
        data=2,context=2+zero=3 context=2 context=3/2 context=4 context=8+zero=2 pipe=2,context=2/2 pipe=2,context=3/4+zero=3
        data=2,context=2,tensor=2/2+zero=1+sequence-parallel""",
    "golden/llama-tiny": """
        context=4,tensor=2+sequence-parallel context=2 context=3+zero=1 context=8/2 context=4/2+context-balance=none
        data=2,context=4/2+zero=2 context=2,tensor=2x2+tensor-2d pipe=2,context=2,tensor=2/2
        context=2,data=2+data-sync=parameter-server context=2,tensor=2/2+context-balance=striped+sequence-parallel""",
    "golden-more/llama-mqa": "context=4 context=2,tensor=3+sequence-parallel data=2,context=3/3+zero=2",
    "golden-more/mistral-window": "context=4+zero=3 context=3,tensor=2+sequence-parallel context=8 context=2+context-balance=striped",
    "golden-more/gemma3": "context=2,tensor=2 context=4/2 context=3/2+context-balance=striped",
    "golden-more/phi3": "context=2+zero=3 context=4,tensor=2+sequence-parallel",
    # Sums of values, not of keys, end with a part on each rank along the second part of tensor.
    "golden-more/olmoe": "context=2,tensor=1x2+tensor-2d context=3,tensor=2x2+tensor-2d",
}, "hybrid": {
    "golden/gpt2-tiny": "data=2,context=2x2+zero=3 context=2x2 context=2x2/2+context-balance=none pipe=2,context=2x2/4+zero=3 context=4x2+context-balance=striped context=4x2+zero=2",
    "golden/llama-tiny": """
        context=2x4 context=2x2,tensor=2+sequence-parallel context=2x2/2 context=3x2+zero=1 context=2x2,data=2/2+zero=2
        context=4x2 context=2x2,data=2+data-sync=parameter-server pipe=2,context=2x2/2""",
    "golden-more/llama-mqa": "context=2x3 context=2x3+zero=2",
    "golden-more/mistral-window": "context=2x2+zero=3 context=4x2",
    "golden-more/gemma3": "context=2x2 context=2x2/2",
    "golden-more/phi3": "context=2x2+zero=3 context=2x2,tensor=2+sequence-parallel",
}}
for how, models in CONTEXT.items():
    for model, names in models.items():
        first, *others = (f"{name}+context-parallel={how}" for name in names.split())
        OFTEN[model] = f"{OFTEN.get(model, '')} {first}"
        REST[model] = " ".join([REST.get(model, ""), *others])


def communicates(exe):
    """The axes along which a step of the executable has more than one device. It communicates along each of them: a strategy
    that cut nothing there would have the same losses."""
    plan = json.loads(call(["meshwright", "inspect", "--json", exe]))
    used = {axis for entry in plan["collectives"] if entry["program"] == "step" for axis in plan["groups"][entry["group"]]}
    longer = {axis["axis"] for axis in plan["mesh"] if axis["size"] > 1}
    check(used >= longer, f"a step on {plan['mesh']} communicates along {sorted(used)} only")
    return longer


def main(inputs, work, everything):
    begin = time.monotonic()
    errors, combined, with_mpi, rows = {}, 0, 0, []
    for table in (OFTEN, REST) if everything else (OFTEN,):
        for model, names in table.items():
            rows += [(model, name) for name in names.split()]
    rows = rows if everything else rows[::5]
    fresh(work)
    for i, (model, name) in enumerate(rows):
        mpi = everything or i == 0
        for what, error in compare(Golden(inputs / model), name, mpi=mpi).items():
            errors[what] = max(errors.get(what, (0, "")), (error, f"{model} {name}"))
        with_mpi += mpi
        combined += len(communicates("./exe")) > 1
    print(f"{len(rows)} executables ({combined} on combined meshes), {with_mpi} of them with MPI too, in "
          f"{time.monotonic() - begin:.0f} s; largest errors:")
    for what, (error, where) in errors.items():
        print(f"  {what} {error:.1e} ({where})")


main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], "--all" in sys.argv[3:])
