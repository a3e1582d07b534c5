#!/usr/bin/env python3
"""GPT-2 124M training steps on the CPU: Meshwright against PyTorch and against the floor.

Runs each system in a process of its own, in alternating rounds, and prints the median step time and the
peak resident set of each, and the ratios. Writes bench/results/gpt2-cpu.json.

  python3 bench/gpt2_cpu.py --python VENV/bin/python      (VENV: pip install torch)

The floor is the step's matrix products alone, through the same library, plus the bytes one pass over the
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
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has torch")
    parser.add_argument("--seqs", default="64,512")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=7, help="timed steps a process, after two more")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", help="comma-separated systems")
    args = parser.parse_args()
    env = dict(os.environ, OMP_NUM_THREADS=str(args.threads))
    tools = os.path.join(ROOT, "build", "bin")
    work = tempfile.mkdtemp()
    tokens = os.path.join(work, "tokens.bin")
    with open(tokens, "wb") as file:
        state = 1
        for _ in range(400000):
            state = (state * 1103515245 + 12345) % 2**31
            file.write((state % 50257).to_bytes(2, "little"))

    if not args.only or "floor" in args.only.split(","):
        # No test needs it, so ./check does not build it.
        subprocess.run(["ninja", "-C", os.path.join(ROOT, "build/runtime"), "bench_floor"], check=True, stdout=subprocess.DEVNULL)

    rows = []
    for seq in map(int, args.seqs.split(",")):
        exe = os.path.join(work, f"gpt2-{seq}")
        compile_command = [os.path.join(tools, "meshwright"), "compile", os.path.join(ROOT, "examples/gpt2-124m.json"),
                           "--dropout", "0", "--batch", "4", "--seq", str(seq), "-o", exe]
        print(subprocess.run(compile_command, check=True, capture_output=True, text=True).stdout, end="")
        torch = [args.python, os.path.join(ROOT, "bench/torch_gpt2.py"), "--seq", str(seq), "--steps", str(args.steps),
                 "--warmup", "2", "--threads", str(args.threads)]
        systems = {
            "meshwright": [exe, "--data", tokens, "--steps", str(args.steps + 2), "--lr", "6e-4", "--metrics", work + "/m.jsonl"],
            "torch eager": torch + ["--mode", "eager"],
            "torch.compile": torch + ["--mode", "compile"],
            "floor": [os.path.join(ROOT, "build/runtime/cpu/kernels/bench_floor"), str(4 * seq), str(args.threads)],
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
        print(f"\nS={seq}   {'system':16}{'step ms':>10}{'peak MiB':>10}")
        for name in systems:
            print(f"        {name:16}{step[name]:10.0f}{peak[name] / 2**20:10.0f}")
            rows.append({"system": name, "model": "gpt2-124m", "seq": seq, "batch": 4, "precision": "f32", "ranks": 1,
                         "threads": args.threads, "step_ms": step[name], "tokens_per_s": 4e3 * seq / step[name], "mfu": None,
                         "peak_bytes": peak[name], "command": " ".join(systems[name])})
        rivals = [k for k in systems if k.startswith("torch")]
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
    if not args.only:
        with open(os.path.join(ROOT, "bench/results/gpt2-cpu.json"), "w") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
