#!/usr/bin/env python3
"""Training steps on the CPU: Meshwright against PyTorch and against the floor.

Runs each system in a process of its own, in alternating rounds, and prints the median step time and the
peak resident set of each, and the ratios. Writes bench/results/MODEL-cpu.json, or MODEL-cpu-bf16.json; with bf16
PyTorch is under autocast.

  python3 bench/train_cpu.py [--model gpt2|mixtral] [--precision f32|bf16] --python VENV/bin/python      (VENV: pip install torch transformers)

mixtral is transformers' model of that family in a small size: 8 experts, of which each token uses 2. The floor is the step's matrix products alone, through the same library, plus the bytes one pass over the
optimizer's state moves (parameter, gradient, two moments read; all but the gradient written) at copy bandwidth.
"""
import argparse
import datetime
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MIXTRAL = {"model_type": "mixtral", "vocab_size": 32000, "hidden_size": 512, "intermediate_size": 1792, "num_hidden_layers": 4,
           "num_attention_heads": 8, "num_key_value_heads": 8, "max_position_embeddings": 512, "num_local_experts": 8,
           "num_experts_per_tok": 2, "sliding_window": None, "tie_word_embeddings": False}


def products(model, tokens):
    """Parameters, and the matrix products of a step as floor.cpp takes them: rows x out x in x calls."""
    if model == "gpt2":
        return 124439808, [(tokens, 768, 768, 48), (tokens, 3072, 768, 12), (tokens, 768, 3072, 12), (tokens, 50257, 768, 1)]
    c = MIXTRAL
    h, f, layers, experts = c["hidden_size"], c["intermediate_size"], c["num_hidden_layers"], c["num_local_experts"]
    rows = tokens * c["num_experts_per_tok"] // experts  # of each expert where all have as many
    linears = [(tokens, h, h, 4 * layers), (tokens, experts, h, layers), (rows, f, h, 2 * layers * experts),
               (rows, h, f, layers * experts), (tokens, c["vocab_size"], h, 1)]
    embeddings_and_norms = c["vocab_size"] * h + (2 * layers + 1) * h
    return sum(out * inner * calls for _, out, inner, calls in linears) + embeddings_and_norms, linears


def rivals_of(model, arguments):
    """Commands of PyTorch's ways to do the same."""
    if model == "gpt2":
        return {"torch eager": arguments + ["--mode", "eager"], "torch.compile": arguments + ["--mode", "compile"]}
    config = arguments + ["--impl", "config", "--config", json.dumps(MIXTRAL)]
    return {f"transformers, {way}": config + ["--experts", way] for way in ("eager", "grouped_mm")}


def run(command, env):
    """Output and peak resident bytes of a command."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=env)
    output = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return output, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", choices=["gpt2", "mixtral"], default="gpt2")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has torch")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--seqs", help="default: 64,512 of gpt2, 512 of mixtral")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=7, help="timed steps a process, after two more")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", help="comma-separated systems")
    args = parser.parse_args()
    env = dict(os.environ, OMP_NUM_THREADS=str(args.threads))
    tools = os.path.join(ROOT, "build", "bin")
    work = tempfile.mkdtemp()
    tokens = os.path.join(work, "tokens.bin")
    config, vocabulary = os.path.join(ROOT, "examples/gpt2-124m.json"), 50257
    if args.model == "mixtral":
        config, vocabulary = os.path.join(work, "mixtral.json"), MIXTRAL["vocab_size"]
        with open(config, "w") as file:
            json.dump(MIXTRAL, file)
    with open(tokens, "wb") as file:
        state = 1
        for _ in range(400000):
            state = (state * 1103515245 + 12345) % 2**31
            file.write((state % vocabulary).to_bytes(2, "little"))

    if not args.only or "floor" in args.only.split(","):
        # No test needs it, so ./check does not build it.
        subprocess.run(["ninja", "-C", os.path.join(ROOT, "build/runtime"), "bench_floor"], check=True, stdout=subprocess.DEVNULL)

    rows = []
    for seq in map(int, (args.seqs or {"gpt2": "64,512", "mixtral": "512"}[args.model]).split(",")):
        exe = os.path.join(work, f"{args.model}-{seq}")
        compile_command = [os.path.join(tools, "meshwright"), "compile", config, "--batch", "4", "--seq", str(seq), "-o", exe,
                           "--precision", args.precision]
        compile_command += ["--dropout", "0"] if args.model == "gpt2" else []
        parameters, linears = products(args.model, 4 * seq)
        print(subprocess.run(compile_command, check=True, capture_output=True, text=True).stdout, end="")
        torch = [args.python, os.path.join(ROOT, "bench/torch_cpu.py"), "--seq", str(seq), "--steps", str(args.steps),
                 "--warmup", "2", "--threads", str(args.threads), "--precision", args.precision]
        systems = {
            "meshwright": [exe, "--data", tokens, "--steps", str(args.steps + 2), "--lr", "6e-4", "--metrics", work + "/m.jsonl"],
            **rivals_of(args.model, torch),
            "floor": [os.path.join(ROOT, "build/runtime/cpu/kernels/bench_floor"), str(args.threads), str(parameters), args.precision,
                      *("x".join(map(str, linear)) for linear in linears)],
        }
        if args.only:
            systems = {k: v for k, v in systems.items() if k in args.only.split(",")}
        times, peaks = {k: [] for k in systems}, {k: [] for k in systems}
        for _ in range(args.rounds):
            for name, command in systems.items():
                if name == "meshwright" and os.path.exists(work + "/m.jsonl"):
                    os.remove(work + "/m.jsonl")
                output, peak = run(command, env)
                peaks[name].append(peak)
                if name == "meshwright":
                    steps = [json.loads(line)["step_ms"] for line in open(work + "/m.jsonl")]
                    times[name].append(statistics.median(steps[2:]))
                else:
                    times[name].append(json.loads(output.strip().splitlines()[-1])["step_ms"])
                print(f"S={seq} {name}: {times[name][-1]:.0f} ms, {peak / 2**20:.0f} MiB", flush=True)
        step = {k: statistics.median(v) for k, v in times.items()}
        peak = {k: statistics.median(v) for k, v in peaks.items()}
        print(f"\nS={seq}   {'system':26}{'step ms':>10}{'peak MiB':>10}")
        for name in systems:
            print(f"        {name:26}{step[name]:10.0f}{peak[name] / 2**20:10.0f}")
            rows.append({"system": name, "model": args.model, "seq": seq, "batch": 4, "precision": args.precision, "ranks": 1,
                         "threads": args.threads, "step_ms": step[name], "tokens_per_s": 4e3 * seq / step[name], "mfu": None,
                         "peak_bytes": peak[name], "command": " ".join(systems[name])})
        rivals = [k for k in systems if k not in ("meshwright", "floor")]
        if rivals and "meshwright" in systems:
            best = min(rivals, key=step.get)
            print(f"meshwright / {best}: time {step['meshwright'] / step[best]:.3f}, memory {peak['meshwright'] / peak[best]:.3f}")
        if "floor" in systems and "meshwright" in systems:
            print(f"meshwright / floor: time {step['meshwright'] / step['floor']:.3f}")
        print()
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.machine())
    version = subprocess.run([args.python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    result = {"device": f"{cpu}, {args.threads} threads", "versions": {"torch": version.stdout.strip()}, "commit": commit,
              "date": datetime.date.today().isoformat(), "rows": rows}
    for row in rows:  # paths of this machine are nobody's business
        row["command"] = row["command"].replace(work, "WORK").replace(ROOT + "/", "").replace(args.python, "python")
    os.makedirs(os.path.join(ROOT, "bench/results"), exist_ok=True)
    suffix = "" if args.precision == "f32" else "-" + args.precision
    if not args.only:
        with open(os.path.join(ROOT, f"bench/results/{args.model}-cpu{suffix}.json"), "w") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
