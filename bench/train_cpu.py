#!/usr/bin/env python3
"""Training steps on the CPU: Meshwright against PyTorch, JAX and the floor.

Runs each system in a process of its own, in alternating rounds, and prints the median step time and the
peak resident set of each, and the ratios. Of the rivals all run in the first round, and in later ones only the one
that was fastest. Writes bench/results/MODEL-cpu.json, or MODEL-cpu-bf16.json, or MODEL-cpu-bf16-grads.json with --grad-dtype bf16;
with bf16 PyTorch is under autocast.

  python3 bench/train_cpu.py [--model gpt2|llama|mixtral] [--precision f32|bf16] [--grad-dtype f32|bf16] --python VENV/bin/python
                                                               (VENV: pip install torch transformers jax)

llama is Llama-3.2-1B cut to 4 layers. mixtral is transformers' model of that family in a small size: 8 experts, of which
each token uses 2. The floor is the step's matrix products alone, through the same library, plus the bytes one pass over
the optimizer's state moves (parameter, gradient, two moments read; all but the gradient written) at copy bandwidth.
Attention is not in it; what the causal half of its products would take at the same rate is printed beside it. In bf16 that is
the rate of three of seven, q k^T twice and dout v^T; those with probabilities are in f32 (runtime/cpu/kernels/README.md), at
f32's rate, which a floor in f32 measures.
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
           "num_experts_per_tok": 2, "sliding_window": None, "rope_theta": 1e6, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}
LLAMA = {"model_type": "llama", "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 4,
         "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072,
         "rope_theta": 500000.0, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": True}
with open(os.path.join(ROOT, "examples/gpt2-124m.json")) as file:
    GPT2 = json.load(file)
CONFIGS = {"gpt2": GPT2, "llama": LLAMA, "mixtral": MIXTRAL}
BATCH = {64: 4, 512: 4, 2048: 1}  # of a length of sequences; as many tokens at 2048 as at 512; llama, which is large, has 1 at 512


def products(model, tokens):
    """Parameters, and the matrix products of a step as floor.cpp takes them: rows x out x in x calls."""
    if model == "gpt2":
        return 124439808, [(tokens, 768, 768, 48), (tokens, 3072, 768, 12), (tokens, 768, 3072, 12), (tokens, 50257, 768, 1)]
    if model == "llama":
        c = LLAMA
        h, f, layers = c["hidden_size"], c["intermediate_size"], c["num_hidden_layers"]
        linears = [(tokens, h, h, 2 * layers), (tokens, c["num_key_value_heads"] * c["head_dim"], h, 2 * layers),
                   (tokens, f, h, 2 * layers), (tokens, h, f, layers), (tokens, c["vocab_size"], h, 1)]
        return sum(out * inner * calls for _, out, inner, calls in linears) + (2 * layers + 1) * h, linears
    c = MIXTRAL
    h, f, layers, experts = c["hidden_size"], c["intermediate_size"], c["num_hidden_layers"], c["num_local_experts"]
    rows = tokens * c["num_experts_per_tok"] // experts  # of each expert where all have as many
    linears = [(tokens, h, h, 4 * layers), (tokens, experts, h, layers), (rows, f, h, 2 * layers * experts),
               (rows, h, f, layers * experts), (tokens, c["vocab_size"], h, 1)]
    embeddings_and_norms = c["vocab_size"] * h + (2 * layers + 1) * h
    return sum(out * inner * calls for _, out, inner, calls in linears) + embeddings_and_norms, linears


def attention_flops(model, batch, seq):
    """Those of the causal half of a step: two products forward, five backward."""
    c = CONFIGS[model]
    width, layers = (c["n_embd"], c["n_layer"]) if model == "gpt2" else (c["hidden_size"], c["num_hidden_layers"])
    return 7 * 2 * batch * seq * (seq + 1) / 2 * width * layers


def rivals_of(args, config, batch, seq, tokens):
    """Commands of PyTorch's and JAX's ways to do the same."""
    torch = [args.python, os.path.join(ROOT, "bench/torch_cpu.py"), "--batch", str(batch), "--seq", str(seq), "--steps", str(args.steps),
             "--warmup", str(args.warmup), "--threads", str(args.threads), "--precision", args.precision]
    jax = [args.python, os.path.join(ROOT, "bench/jax_train.py"), config, "--data", tokens, "--batch", str(batch), "--seq", str(seq),
           "--steps", str(args.steps + args.warmup), "--warmup", str(args.warmup), "--attention", "xla", "--pad-vocab", "1",
           "--compute", {"f32": "float32", "bf16": "bfloat16"}[args.precision]]
    with open(config) as file:
        text = file.read()
    if args.model == "mixtral":
        torch += ["--impl", "config", "--config", text]
        return {**{f"transformers, {way}": torch + ["--experts", way] for way in ("eager", "grouped_mm")},
                **{f"jax, {way}": jax + ["--experts", way] for way in ("dense", "ragged")}}
    torch += ["--positions", str(max(1024, seq))] if args.model == "gpt2" else ["--impl", "config", "--config", text]
    return {"torch eager": torch + ["--mode", "eager"], "torch.compile": torch + ["--mode", "compile"], "jax": jax}


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
    parser.add_argument("--model", choices=list(CONFIGS), default="gpt2")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has torch")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--grad-dtype", choices=["f32", "bf16"], default="f32", help="of Meshwright's accumulated gradients")
    parser.add_argument("--seqs", help="default: 64,512,2048, and 512 of mixtral; a batch is of 4, at 2048 of 1; llama's at 512 too")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=7, help="timed steps a process")
    parser.add_argument("--warmup", type=int, default=2, help="steps before them")
    parser.add_argument("--threads", type=int, default=2, help="of all but JAX, which takes all cores")
    parser.add_argument("--only", help="comma-separated systems")
    args = parser.parse_args()
    env = dict(os.environ, OMP_NUM_THREADS=str(args.threads))
    tools = os.path.join(ROOT, "build", "bin")
    work = tempfile.mkdtemp()
    tokens = os.path.join(work, "tokens.bin")
    vocabulary = min(65536, CONFIGS[args.model]["vocab_size"])
    with open(tokens, "wb") as file:
        state = 1
        for _ in range(400000):
            state = (state * 1103515245 + 12345) % 2**31
            file.write((state % vocabulary).to_bytes(2, "little"))

    if not args.only or "floor" in args.only.split(","):
        # No test needs it, so ./check does not build it.
        subprocess.run(["ninja", "-C", os.path.join(ROOT, "build/runtime"), "bench_floor"], check=True, stdout=subprocess.DEVNULL)

    rows = []
    for seq in map(int, (args.seqs or ("512" if args.model == "mixtral" else "64,512,2048")).split(",")):
        batch = 1 if (args.model, seq) == ("llama", 512) else BATCH.get(seq, 1)
        exe, config = os.path.join(work, f"{args.model}-{seq}"), os.path.join(work, "config.json")
        with open(config, "w") as file:
            json.dump(CONFIGS[args.model] | ({"n_positions": max(1024, seq)} if args.model == "gpt2" else {}), file)
        compile_command = [os.path.join(tools, "meshwright"), "compile", config, "--batch", str(batch), "--seq", str(seq), "-o", exe,
                           "--precision", args.precision, "--grad-dtype", args.grad_dtype]
        compile_command += ["--dropout", "0"] if args.model == "gpt2" else []
        parameters, linears = products(args.model, batch * seq)
        print(subprocess.run(compile_command, check=True, capture_output=True, text=True).stdout, end="")
        rivals = rivals_of(args, config, batch, seq, tokens)

        def floor_in(precision):
            return [os.path.join(ROOT, "build/runtime/cpu/kernels/bench_floor"), str(args.threads), str(parameters), precision,
                    *("x".join(map(str, linear)) for linear in linears)]

        systems = {
            "meshwright": [exe, "--data", tokens, "--steps", str(args.steps + args.warmup), "--lr", "6e-4", "--metrics", work + "/m.jsonl"],
            **rivals,
            "floor": floor_in(args.precision),
        }
        if args.precision != "f32":
            systems["floor in f32"] = floor_in("f32")
        if args.only:
            systems = {k: v for k, v in systems.items() if k in args.only.split(",")}
        rivals = [k for k in systems if k in rivals]
        times, peaks, with_attention = {k: [] for k in systems}, {k: [] for k in systems}, []
        for turn in range(args.rounds):
            rates = {}
            for name, command in systems.items():
                if turn and name in rivals and name != min(rivals, key=lambda k: times[k][0]):
                    continue
                if name == "meshwright" and os.path.exists(work + "/m.jsonl"):
                    os.remove(work + "/m.jsonl")
                output, peak = run(command, env)
                peaks[name].append(peak)
                if name == "meshwright":
                    steps = [json.loads(line)["step_ms"] for line in open(work + "/m.jsonl")]
                    times[name].append(statistics.median(steps[args.warmup:]))
                else:
                    printed = json.loads(output.strip().splitlines()[-1])
                    times[name].append(printed["step_ms"])
                    if name.startswith("floor"):
                        rates[name] = sum(6 * rows * out * inner * calls for rows, out, inner, calls in linears) / printed["matmul_ms"]
                print(f"S={seq} {name}: {times[name][-1]:.0f} ms, {peak / 2**20:.0f} MiB", flush=True)
            if "floor" in rates:
                of_pairs, exact = rates["floor"], rates.get("floor in f32", rates["floor"])
                with_attention.append(times["floor"][-1] + attention_flops(args.model, batch, seq) * (3 / of_pairs + 4 / exact) / 7)
        step = {k: statistics.median(v) for k, v in times.items()}
        peak = {k: statistics.median(v) for k, v in peaks.items()}
        print(f"\nS={seq}   {'system':26}{'step ms':>10}{'peak MiB':>10}")
        for name in systems:
            print(f"        {name:26}{step[name]:10.0f}{peak[name] / 2**20:10.0f}")
            rows.append({"system": name, "model": args.model, "seq": seq, "batch": batch, "precision": args.precision,
                         **({"compile_command": " ".join(compile_command)} if name == "meshwright" else {}), "ranks": 1,
                         "threads": args.threads, "step_ms": step[name], "tokens_per_s": 1e3 * batch * seq / step[name], "mfu": None,
                         "peak_bytes": peak[name], "raw_ms": times[name], "raw_peak_bytes": peaks[name], "command": " ".join(systems[name])})
        if rivals and "meshwright" in systems:
            best = min(rivals, key=step.get)
            print(f"meshwright / {best}: time {step['meshwright'] / step[best]:.3f}, memory {peak['meshwright'] / peak[best]:.3f}")
        if "floor" in systems and "meshwright" in systems:
            beside = statistics.median(with_attention)
            print(f"meshwright / floor: time {step['meshwright'] / step['floor']:.3f}; with attention's products in it, "
                  f"{beside:.0f} ms: {step['meshwright'] / beside:.3f}")
            next(row for row in rows if row["system"] == "floor" and row["seq"] == seq)["step_ms_with_attention"] = beside
        print()
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    about = dict(reversed([[part.strip() for part in line.split(":")] for line in open("/proc/cpuinfo") if line.count(":") == 1]))
    cpu = f"{about['model name']} (family {about.get('cpu family')}, model {about.get('model')})" if "model name" in about else platform.machine()
    print_versions = ("import importlib.metadata as m, json; have = {d.metadata['Name']: d.version for d in m.distributions()}; "
                      "print(json.dumps({p: have[p] for p in ('torch', 'transformers', 'jax') if p in have}))")
    version = subprocess.run([args.python, "-c", print_versions], capture_output=True, text=True)
    result = {"device": f"{cpu}, {args.threads} threads", "versions": json.loads(version.stdout), "commit": commit,
              "date": datetime.date.today().isoformat(), "rows": rows}
    for row in rows:  # paths of this machine are nobody's business
        for key in {"command", "compile_command"} & row.keys():
            row[key] = row[key].replace(work, "WORK").replace(ROOT + "/", "").replace(args.python, "python")
    os.makedirs(os.path.join(ROOT, "bench/results"), exist_ok=True)
    suffix = ("" if args.precision == "f32" else "-" + args.precision) + ("" if args.grad_dtype == "f32" else "-grads")
    if not args.only:
        with open(os.path.join(ROOT, f"bench/results/{args.model}-cpu{suffix}.json"), "w") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
