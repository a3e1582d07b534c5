#!/usr/bin/env python3
"""The hash of what changes a run's numbers is the same on every mesh, and another for another loss, seed, precision, order of data,
optimizer, .. : numbers.py GOLDEN WORK"""
import json
import pathlib
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, check, compile, flags, fresh, strategy

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
config = json.loads(pathlib.Path(golden.config).read_text())


def run(executable, ranks, **options):
    """What a run of three steps says, and its hash."""
    command = [executable, *flags({"ranks": ranks if ranks > 1 else None, **golden.data, "steps": 3, "lr": 0.01, **options})]
    done = subprocess.run(command, capture_output=True, text=True)
    check(done.returncode == 0, f"{' '.join(command)}: {done.stderr}")
    return re.search(r"^numbers ([0-9a-f]{16}): ", done.stdout, re.M)[1], done.stderr


def built(name, **options):
    compile(options.pop("config", golden.config), f"./{name}", **dict({"batch": 4, "seq": 16}, **options))
    return f"./{name}"


# Where and when something is computed.
one = built("one")
base, _ = run(one, 1)
for item in ["data=2+zero=3", "tensor=2+sequence-parallel", "pipe=2/2", "context=2+remat=full", "data=2/2+zero=1+offload=optimizer+loss-parts=2"]:
    options = strategy(item)
    found, _ = run(built("mesh", **options), 2)
    check(found == base, f"{item}: hash {found}, on one rank {base}")

# What is computed.
seen = {base: "the base"}


def differs(what, found):
    check(found not in seen, f"{what} has the hash of {seen.get(found)}")
    seen[found] = what


for what, options in {"seed": {"seed": 1}, "rate": {"lr": 0.02}, "schedule": {"lr_schedule": "cosine"}, "decay": {"weight_decay": 0.2},
                      "clipping": {"grad_clip": 0.5}, "order": {"shuffle": True}}.items():
    differs(what, run(one, 1, **options)[0])
# The end of a constant schedule changes no step, but that of a cosine does.
check(run(one, 1, steps=4)[0] == base, "--steps of a constant rate")
differs("horizon", run(one, 1, lr_schedule="cosine", steps=4)[0])
text = pathlib.Path(golden.data["data"]).read_bytes()
pathlib.Path("other.txt").write_bytes(text[:5] + b"#" + text[6:])
pathlib.Path("same.txt").write_bytes(text)
differs("data", run(one, 1, data="other.txt")[0])
check(run(one, 1, data="same.txt")[0] == base, "a copy of the data")
for what, options in {"precision": {"precision": "bf16"}, "gradients' type": {"precision": "bf16", "grad_dtype": "bf16"},
                      "moments' type": {"moments_dtype": "bf16"}, "optimizer": {"optimizer": "lion"}, "batch": {"batch": 8},
                      "sequence": {"seq": 8}, "groups": {"optimizer_groups": "*norm*:lr=0.5"}, "frozen": {"freeze": "*embed*"},
                      "adapters": {"lora": "r=2,alpha=2,targets=q_proj"}}.items():
    differs(what, run(built("other", **options), 1, **({"beta2": 0.95} if "moments_dtype" in options else {}))[0])
pathlib.Path("eps.json").write_text(json.dumps(dict(config, rms_norm_eps=1e-3)))
differs("epsilon", run(built("eps", config="eps.json"), 1)[0])
# Keys that say nothing about what is computed, or what is so by default.
pathlib.Path("same.json").write_text(json.dumps(dict(config, transformers_version="5.0.0", use_cache=False)))
check(run(built("same", config="same.json"), 1)[0] == base, "keys without effect")

# A run that goes on is the same run; what another program computes otherwise is said.
run(one, 1, save="run", shuffle=None)
state = json.loads(pathlib.Path("run/latest/state.json").read_text())
check(state["numbers"]["precision"] == "f32" and state["numbers"]["--lr"], "state.json has what changes numbers")
found, said = run(built("mesh", **strategy("data=2")), 2, resume="run", lr=None, steps=5)
check(found == base, f"a resumed run has hash {found}, was {base}")
check("computes other numbers" not in said, said)
found, said = run(built("bf16", precision="bf16"), 1, resume="run", lr=None, steps=5)
differs("resumed in bf16", found) if found not in seen else check(seen[found] == "precision", "resumed in bf16")
check("this executable computes other numbers than the one that wrote the checkpoint run/step-00000003: precision bf16, was f32" in said, said)
print(f"{len(seen)} programs and runs have hashes of their own")
