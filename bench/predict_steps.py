#!/usr/bin/env python3
"""How near predicted steps are to measured ones: predict_steps.py WORK [--count N] [--seed S] [--ranks 1,2] [--mpi|--network RATE] [--rounds R] [--keep]

Calibrates this machine (`meshwright calibrate`) for each number of ranks, draws models, sizes and strategies at random, and compares `meshwright
predict` with the steps of the executables, which are trained in alternating rounds; a configuration's step is the least of its rounds' medians, which
other load on the machine disturbs least. With --network, ranks are processes in two network namespaces whose link has that rate (10gbit). Prints each, the mean and the worst error, and the rank correlation. Writes bench/results/predict-steps.json with --keep.
"""
import argparse
import datetime
import json
import pathlib
import random
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "test/EndToEnd"))
from harness import call, flags, fresh
from netns import Hosts

parser = argparse.ArgumentParser()
parser.add_argument("work")
parser.add_argument("--count", type=int, default=40)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--ranks", default="1,2")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--mpi", action="store_true")
parser.add_argument("--network", help="rate of the link between two ranks, as tc writes it")
parser.add_argument("--cluster", help="a folder with RANKS.toml of an earlier calibration")
parser.add_argument("--keep", action="store_true")
options = parser.parse_args()
if options.network:
    options.ranks = "2"
RANKS = [int(ranks) for ranks in options.ranks.split(",")]
SECONDS = 1.5  # of training, in each round
clusters = pathlib.Path(options.cluster).resolve() if options.cluster else None

COMMON = {"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False}


def draw(random):
    """A model with what it is trained with; None if they do not go together."""
    family = random.choice(["gpt2", "llama", "llama", "qwen3", "mixtral", "gpt_neox"])
    width = random.choice([128, 192, 256, 384, 512, 768])
    layers = random.choice([2, 3, 4, 6])
    heads = width // random.choice([32, 64])
    sequence = random.choice([64, 128, 256, 512, 1024])
    vocabulary = random.choice([512, 2048, 8192, 16384])
    ranks = random.choice(RANKS)
    microbatches = random.choice([1, 1, 2, 4])
    batch = ranks * microbatches * random.choice([1, 2, 4])
    if batch * sequence > 4096 or batch * sequence < 128:
        return None
    if family == "gpt2":
        config = {"n_embd": width, "n_layer": layers, "n_head": heads, "n_positions": sequence, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
    else:
        config = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads, "max_position_embeddings": sequence,
                  "intermediate_size": random.choice([2, 3, 4]) * width}
        if family != "gpt_neox":
            config |= {**COMMON, "num_key_value_heads": random.choice([heads, heads // 2])}
        if family == "qwen3":
            config |= {"head_dim": width // heads}
        if family == "mixtral":
            config |= {"num_local_experts": 8, "num_experts_per_tok": 2}
    config |= {"model_type": family, "vocab_size": vocabulary}
    flags = {"seq": sequence, "batch": batch, "microbatches": microbatches, "precision": random.choice(["f32", "f32", "bf16"]),
             "remat": random.choice(["none", "none", "full"])}
    if ranks > 1:
        axis = random.choice(["data", "data", "tensor", "pipe", "context"] + ["expert"] * (family == "mixtral"))
        flags |= {"mesh": f"{axis}={ranks}"}
        if axis == "data":
            flags |= {"zero": random.choice([0, 1, 2, 3])}
        if axis == "tensor" and random.random() < 0.5:
            flags |= {"sequence_parallel": True}
        if axis == "pipe":
            flags |= {"schedule": random.choice(["gpipe", "1f1b", "zb-h1"])}
            if layers < ranks or microbatches == 1:
                return None
        if axis == "context" and sequence < 256:
            return None
    return {"config": config, "flags": flags, "ranks": ranks}


def steps_of(case, launcher, steps):
    """Milliseconds of each step but the first."""
    start = [*launcher, f"./{case['exe']}"] if launcher else ["meshwright", "run", *(["--mpi"] if options.mpi else []), "-n", case["ranks"], f"./{case['exe']}"]
    call([*start, "--data", "tokens.bin", "--steps", steps + 1, "--metrics", "metrics.jsonl"])
    return [json.loads(line)["step_ms"] for line in open("metrics.jsonl")][1:]


def correlation_of_ranks(a, b):
    def places(values):
        return [sorted(values).index(value) for value in values]

    return statistics.correlation(places(a), places(b))


def measure(launcher):
    """Configurations with what is predicted of them and what they took."""
    how = ["--launcher", " ".join(launcher)] if launcher else ["--mpi"] if options.mpi else []
    for ranks in [] if clusters else RANKS:
        print(call(["meshwright", "calibrate", "-o", f"{ranks}.toml", "--ranks", ranks, *how]), flush=True)
    where = clusters or pathlib.Path.cwd()
    cases = []
    while len(cases) < options.count:
        case = draw(draws)
        if not case:
            continue
        name = f"{len(cases)}"
        pathlib.Path(f"{name}.json").write_text(json.dumps(case["config"]))
        words = [f"{name}.json", *flags(case["flags"]), "--cluster", where / f"{case['ranks']}.toml"]
        call(["meshwright", "compile", *words, "-o", f"exe{name}"])
        said = call(["meshwright", "predict", *words, "--json"])
        case |= {"exe": f"exe{name}", "predicted": json.loads(said[said.index("{"):])}  # behind notes
        case |= {"steps": max(3, min(60, round(SECONDS / case["predicted"]["step_s"]))), "rounds": []}
        cases.append(case)
    for _ in range(options.rounds):
        for case in cases:
            case["rounds"].append(statistics.median(steps_of(case, launcher, case["steps"])) / 1e3)
    return cases


fresh(options.work)
draws = random.Random(options.seed)
pathlib.Path("tokens.bin").write_bytes(b"".join(bytes([draws.randrange(256), 0]) for _ in range(1 << 17)))
if options.network:
    with Hosts(options.network) as hosts:
        cases = measure(hosts.launcher)
else:
    cases = measure(None)
for case in cases:
    del case["exe"]
    case["measured"] = min(case["rounds"])
    case["error"] = case["predicted"]["step_s"] / case["measured"] - 1
    shown = " ".join(f"{k}={v}" for k, v in case["flags"].items())
    print(f"{case['config']['model_type']:9}{case['measured'] * 1e3:10.2f} ms  predicted {case['predicted']['step_s'] * 1e3:9.2f} ms {case['error']:+7.1%}  {shown}")
errors = [abs(case["error"]) for case in cases]
correlation = correlation_of_ranks([case["measured"] for case in cases], [case["predicted"]["step_s"] for case in cases])
print(f"{len(cases)} configurations: mean error {statistics.mean(errors):.1%}, median {statistics.median(errors):.1%}, worst {max(errors):.1%}, rank correlation {correlation:.3f}")
result = {"date": str(datetime.date.today()), "mpi": options.mpi, "network": options.network, "clusters": {path.name: path.read_text() for path in (clusters or pathlib.Path()).glob("*.toml")},
          "cases": cases}
pathlib.Path("result.json").write_text(json.dumps(result, indent=1))
if options.keep:
    kind = options.network or ("mpi" if options.mpi else "threads")
    (ROOT / f"bench/results/predict-steps-{kind}.json").write_text(json.dumps(result, indent=1) + "\n")
