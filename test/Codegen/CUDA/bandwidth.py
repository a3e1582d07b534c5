#!/usr/bin/env python3
"""Holds kernels at the sizes of models with a billion parameters to what memory's speed takes: bandwidth.py FOLDER

No GPU is needed: from the code and ptxas' report follows how much of memory a multiprocessor asks for
at a time. Of each kernel that moves much: 16-byte accesses, no spills, and so many bytes on their way
that an H200 reaches the bandwidth of its memory: 4.3 TB/s times 700 ns are 3 MB, 24 KB for each of 132
multiprocessors."""
import collections
import json
import pathlib
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/../../EndToEnd")
from harness import ir

WANTED = 24 << 10  # bytes on their way to a multiprocessor
MUCH = 32 << 20  # bytes that a launch moves: more than it takes to fill the GPU a few times
REGISTERS, WARPS, BLOCKS, SHARED = 16384, 16, 32, 227 << 10  # of a quarter, of a quarter; of a multiprocessor
MULTIPROCESSORS = 132
BYTES = {"f32": 4, "i32": 4, "bf16": 2, "i16": 2, "f16": 2, "i8": 1}

GPT2 = {"model_type": "gpt2", "vocab_size": 50304, "n_positions": 1024, "n_embd": 1600, "n_layer": 48, "n_head": 25,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True}
LLAMA = {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
         "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
         "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": True,
         "hidden_act": "silu"}
MODELS = {"gpt2-1.5b": (GPT2, 16, 1024), "llama-3.2-1b": (LLAMA, 4, 4096)}  # config, batch, sequence
# The templates that must be among the kernels judged.
TEMPLATES = {"elementwise", "row-reduce", "partials", "columns", "scatter"}


def bytes_of(memory):
    *sizes, element = memory.split("x")
    count = BYTES[element]
    for size in sizes:
        count *= int(size)
    return count


def launches(program):
    """Of each kernel in a program's text: bytes that its largest launch reads and writes, how many scalars it reads, and
    its templates."""
    moved, scalars, templates = collections.defaultdict(lambda: (0, 0)), {}, {}
    for name, read, written in re.findall(r"exec\.launch @(\S+) ins\((.*?)\)(?: outs\((.*?)\))?(?: workspace|$)", program,
                                          re.M):
        sizes = [sum(map(bytes_of, re.findall(r"memref<([^>]*)>", text))) for text in (read, written)]
        moved[name] = max(moved[name], tuple(sizes), key=sum)
        scalars[name] = read.count("memref<f32>")
    for name, text in re.findall(r"func\.func private @(\S+?)\(.*exec\.template = \[(.*?)\]", program):
        templates[name] = re.findall(r'"([^"]+)"', text)
    return moved, scalars, templates


def kernels(ptx, log):
    """Of each function: threads, registers, shared bytes, spills, accesses by width, bytes on their way."""
    report = {name: (int(registers), sum(map(int, spills)), int((re.search(r"(\d+) bytes smem", rest) or [0, 0])[1]))
              for name, *spills, registers, rest in re.findall(
                  r"Function properties for (\S+)\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, "
                  r"(\d+) bytes spill loads\n.*?Used (\d+) registers(.*)", log)}
    for name, body in re.findall(r"\.entry (\S+?)\((.*?)\n}\n", ptx, re.S):
        threads = int(re.search(r"\.(?:max|req)ntid (\d+)", body)[1])
        widths = {"ld": collections.Counter(), "st": collections.Counter()}
        pending = most = 0
        before = ""
        for line in body.splitlines():
            line = line.strip()
            access = re.match(r"(?:@\S+ )?(ld|st)\.global(?:\.nc)?(?:\.[A-Z]\S*)?(?:\.v(\d))?\.[a-z](\d+)", line)
            if access:
                width = int(access[2] or 1) * int(access[3]) // 8
                widths[access[1]][width] += 1
                pending = pending + width if access[1] == "ld" else 0
                most = max(most, pending)
            elif re.match(r"bar|barrier|shfl", line):
                pending = 0  # others are waited for
            elif line.endswith(":") and re.match(r"bra\.uni|bra |ret", before):
                pending = 0  # another branch
            if line:
                before = line
        yield name, threads, *report[name], widths, most


def resident(threads, registers, shared):
    """Threads that a multiprocessor holds: registers are a quarter's, warps of a block go round the quarters."""
    warps = -(-threads // 32)
    of_quarter = min(WARPS, REGISTERS // (-(-registers // 8) * 8 * 32))
    return min(4 * of_quarter // warps, BLOCKS, SHARED // (shared + 1024)) * threads


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    judged, wrong = set(), []
    for model, (config, batch, sequence) in MODELS.items():
        path = folder / f"{model}.json"
        path.write_text(json.dumps(config))
        for stage in ("exec", "ptx"):
            subprocess.run(["meshwright", "compile", str(path), "--target", "cuda", "--gpu-arch", "sm_90", "--batch",
                            str(batch), "--seq", str(sequence), "--precision", "bf16", "--dropout", "0", "--emit", stage,
                            "-o", str(folder / f"{model}.{stage}")], check=True)
        run = subprocess.run(["ptxas", "-v", "-arch=sm_90", str(folder / f"{model}.ptx"), "-o", "/dev/null"],
                             capture_output=True, text=True, check=True)
        moved, scalars, templates = launches(ir(folder / f"{model}.exec"))
        stages = {}
        for name in moved:
            stages[name.replace(".", "$")] = name
        for name, threads, registers, spills, shared, widths, most in kernels(
                (folder / f"{model}.ptx").read_text(), run.stdout + run.stderr):
            kernel, number = stages.get(name), 0
            if not kernel and name.rpartition("$")[0] in stages:  # what a kernel launches besides
                kernel, number = stages[name.rpartition("$")[0]], int(name.rpartition("$")[2])
            if not kernel or sum(moved[kernel]) < MUCH:
                continue
            template = templates[kernel][0] if number == 0 else templates[kernel][-1]
            if number and template != "scatter":
                continue  # adds partial results, of which there are few
            threads_there = resident(threads, registers, shared)
            flying = threads_there * most
            widths["ld"] -= collections.Counter({4: scalars[kernel]})  # One address for all threads.
            faults = []
            if spills:
                faults.append(f"spills {spills} bytes")
            for (kind, counts), size in zip(widths.items(), moved[kernel]):
                total = 0 if size < MUCH else sum(width * count for width, count in counts.items())
                if total and counts[16] * 16 < 0.8 * total:
                    faults.append(f"{kind}: {dict(counts)} by width")
            # What only writes waits for nothing.
            if widths["ld"] and flying < WANTED:
                faults.append(f"{flying} bytes on their way")
            print(f"{model} {kernel} {template}: {sum(moved[kernel]) / 1e6:.0f} MB, {threads_there} threads, "
                  f"{registers} registers, {flying / 1024:.0f} KB on their way {'; '.join(faults)}")
            judged.add(template)
            if faults:
                wrong.append(f"{model} {kernel} ({template}): {'; '.join(faults)}")
    if wrong:
        sys.exit("too slow for memory:\n" + "\n".join(wrong))
    if not TEMPLATES <= judged:
        sys.exit(f"no kernel of templates {', '.join(sorted(TEMPLATES - judged))} was judged")
    print("all kernels keep memory busy")


main()
