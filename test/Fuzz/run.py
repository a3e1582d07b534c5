#!/usr/bin/env python3
"""Builds the fuzz targets and runs each on so many inputs, from seeds and the inputs that once broke one: run.py BUILD WORK RUNS [TARGET...]

BUILD: the build folder, whose folder `fuzz` gets the targets. RUNS: inputs of a light target; those that take long get their share."""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
inputs = root / "test/Inputs"
build, work, runs = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])


def call(command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **more)
    if done.returncode:
        sys.exit(f"FAILED: {' '.join(map(str, command))}\n{done.stdout[-6000:]}")
    return done.stdout


def safetensors():
    """Headers before 256 bytes, whole files and indices; the first byte says which."""
    one = {"a": {"dtype": "F32", "shape": [2, 16], "data_offsets": [0, 128]}, "b": {"dtype": "BF16", "shape": [64], "data_offsets": [128, 256]}}
    shard = {**one, "__metadata__": {"format": "pt", "DCP_SHARDING_INFO": json.dumps({"a": {"saved_offsets": [0, 0]}, "b": {"saved_offsets": [4]}})}}
    odd = {"model.embed.weight": {"dtype": "I64", "shape": [16], "data_offsets": [0, 128]}, "x": {"dtype": "F8_E4M3", "shape": [128], "data_offsets": [128, 256]},
           "s": {"dtype": "F32", "shape": [], "data_offsets": [256, 256]}, "__metadata__": {"tied": "c=a"}}
    for header in (one, shard, odd, {}):
        yield b"\2" + json.dumps(header).encode()
    yield b"\1" + json.dumps({"metadata": {"total_size": 256}, "weight_map": {"a": "part.safetensors", "b": "part.safetensors"}}).encode()
    for path in (inputs / "sharded/shards").glob("*.safetensors"):
        yield b"\0" + path.read_bytes()[:4096]


def states():
    """state.json of a merged checkpoint and of one in shards, in all its versions."""
    state = {"version": 3, "checksum": "0" * 32, "files": {"model.safetensors": "1" * 32, "optimizer.safetensors": "2" * 32}, "step": 3, "position": 12,
             "seed": 1, "shuffle": True, "tokens": 1000, "batch": 4, "model": "gpt2", "optimizer": "adamw", "sequence": 16, "vocabulary": 256,
             "mesh": "data=2", "plan": "0123456789abcdef", "mixed": 0, "sources": [{"name": "a", "weight": 0.5, "taken": 3}], "data": {"--data": "x"},
             "flags": {"--steps": "5"}, "numbers": {"lr": "0.1"}}
    yield state
    yield {**state, "loss_scale": {"scale": 65536.0, "good_steps": 3, "overflows": 0, "skipped": 1}, "rates": {"largest": 0.1, "sum": 2.5}, "skipped": 1,
           "file_tokens": [500, 500], "commit": "file"}
    yield {**state, "version": 4, "files": {"model/shard-00001-model-00001-of-00001.safetensors": "1" * 32, "optimizer/shard-00001.safetensors": "2" * 32,
                                            "adapter_model/shard-00002.safetensors": "3" * 32}}
    yield {key: value for key, value in {**state, "version": 2}.items() if key != "checksum"}


def tokens():
    """Files of `meshwright tokenize`, of llm.c and of plain integers."""
    def shard(count, width, documents):
        body = bytes(i % 200 for i in range(count * width))
        body += bytes(-len(body) % 8) + struct.pack(f"<{len(documents)}Q", *documents) + bytes(8 * ((count + 2**20 - 1) // 2**20))
        return struct.pack("<4i4QiiQ", 20261127, 1, width, 257, count, len(documents), 0, 0, 10, 0, count) + body
    for width in (1, 2, 4):
        yield b"\2" + shard(40, width, [0, 7, 20])
    yield b"\2" + shard(12, 2, [])
    yield b"\1" + struct.pack("<3i", 20240520, 1, 20) + bytes(52) + bytes(40)
    yield b"\0" + bytes(range(64))
    yield b"\x10" + b"text as bytes, which are tokens"
    yield b"\x20" + struct.pack("<12I", *range(12))


def hellos():
    """What ranks say first."""
    def hello(magic, rank, size, plan):
        return struct.pack("<QII32s", magic, rank, size, plan)
    magic, plan = 0x3554454D57534D4D, b"0123456789abcdef" * 2
    for first, says in ((0, hello(magic, 1, 2, plan)), (0, hello(magic, 7, 2, plan)), (0, hello(magic, 1, 3, plan)), (0, hello(magic, 1, 2, b"\x1b[2J" * 6)),
                        (4, hello(magic, 1, 2, plan)), (1, hello(magic, 0, 2, plan) * 2), (2, hello(0, 1, 2, plan) * 3), (0, b"GET / HTTP/1.1\r\n\r\n"), (5, b"")):
        yield bytes([first]) + says


def texts(*paths):
    for path in paths:
        yield path.read_bytes()


# How many times as long an input takes as one of a light target.
TARGETS = {
    "SafeTensors": (safetensors, 1),
    "State": (lambda: (json.dumps(state).encode() for state in states()), 1),
    "Tokens": (tokens, 1),
    "TokenizerJson": (lambda: texts(*sorted((inputs / "tokenizers").glob("*.json"))), 10),
    "Plan": (lambda: texts(*sorted((here / "seeds/Plan").glob("*"))), 10),
    "Rendezvous": (hellos, 10),
}


def fuzz(target):
    seeds, weight = TARGETS[target]
    corpus = work / target
    shutil.rmtree(corpus, ignore_errors=True)
    corpus.mkdir(parents=True)
    for number, seed in enumerate(seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    for path in sorted((here / "broke" / target).glob("*")):
        shutil.copy(path, corpus)
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"}
    environment.update(ASAN_OPTIONS="allocator_may_return_null=1:detect_stack_use_after_return=0", UBSAN_OPTIONS="print_stacktrace=1")
    said = call([build / f"fuzz/fuzz_{target}", f"-runs={max(runs // weight, 1)}", "-seed=1", "-max_len=16384", "-timeout=20", "-rss_limit_mb=4096",
                 "-print_final_stats=1", f"-artifact_prefix={corpus}/broke-", corpus], env=environment)
    done = re.search(r"number_of_executed_units: (\d+)", said)
    if int(done[1]) < max(runs // weight, 1):  # An interrupted target ends like one that is done.
        sys.exit(f"FAILED: {target} tried {done[1]} inputs of {max(runs // weight, 1)}\n{said[-2000:]}")
    covered = re.findall(r"cov: (\d+)", said)
    print(f"{target}: {done[1]} inputs, {covered[-1] if covered else 0} edges")


if __name__ == "__main__":
    call(["cmake", "-S", here, "-B", build / "fuzz", "-G", "Ninja", "-DCMAKE_CXX_COMPILER=clang++-22",
          *(["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else [])])
    names = sys.argv[4:] or list(TARGETS)
    call(["ninja", "-C", build / "fuzz", *(f"fuzz_{name}" for name in names)])
    for name in names:
        fuzz(name)
