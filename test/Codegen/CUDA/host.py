#!/usr/bin/env python3
"""Runs executables for GPUs with a driver that only looks on: host.py FOLDER GOLDEN

The fake library (test/Runtime/Cuda/FakeGpu.cpp) checks every call and ends the process at
the first that is wrong. Here: every kernel of the table is launched, as often in each step,
and no message is left."""
import argparse
import os
import pathlib
import subprocess

import executables


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("golden", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    data = options.folder / "tokens.bin"
    data.write_bytes(bytes(range(64)) * 1024)
    fake = pathlib.Path(os.environ["MESHWRIGHT_BUILD"]) / "runtime" / "test" / "fake_gpu"

    def compile(model, *flags):
        path = options.folder / "model"
        subprocess.run(["meshwright", "compile", str(options.golden / model / "config.json"), "--target", "cuda",
                        *flags, "-o", str(path)], check=True, stdout=subprocess.DEVNULL)
        return path

    def run(path, ranks, steps, **environment):
        log = options.folder / "log"
        arguments = [path, "--ranks", str(ranks), "--data", str(data), "--tokens", "u8", "--steps", str(steps),
                     "--lr", "1e-3", "--eval-data", str(data), "--eval-every", "1"]
        done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, timeout=300,
                              env={**os.environ, "LD_LIBRARY_PATH": str(fake), "FAKE_GPUS": str(ranks),
                                   "FAKE_GPU_LOG": str(log), **environment})
        launches, pending = {}, {}
        if done.returncode == 0:
            for line in log.read_text().splitlines():
                kind, *name, count = line.split(" ")
                (launches if kind == "launch" else pending)[" ".join(name)] = int(count)
        return done, launches, pending

    def check(label, model, ranks, *flags):
        path = compile(model, *flags)
        names = executables.sections(path)["meshwright_kernel_names"].split(b"\0")[:-1]
        counts = []
        for steps in (1, 2):
            done, launches, pending = run(path, ranks, steps)
            assert done.returncode == 0, (label, done.stdout, done.stderr)
            assert not any(pending.values()), (label, pending)
            counts.append(launches)
        assert counts[1] == {name: 2 * count for name, count in counts[0].items()}, (label, counts)
        missing = {name.decode() for name in names} - set(counts[0])
        assert not missing, (label, missing)
        note = ", every message received" if pending else ""
        print(f"{label}: 2 steps, {sum(counts[1].values())} launches of all {len(names)} kernels{note}", flush=True)

    check("gpt2-tiny f32", "gpt2-tiny", 1)
    check("llama-tiny bf16", "llama-tiny", 1, "--precision", "bf16")
    check("data=2 zero 3", "gpt2-tiny", 2, "--mesh", "data=2", "--zero", "3", "--dropout", "0.1")
    check("pipe=2,data=2", "gpt2-tiny", 4, "--mesh", "pipe=2,data=2", "--microbatches", "4", "--batch", "8")
    check("tensor=2 sequence-parallel", "llama-tiny", 2, "--mesh", "tensor=2", "--sequence-parallel")

    path = compile("gpt2-tiny")

    def refused(label, words, **environment):
        done, *_ = run(path, 1, 1, **environment)
        assert done.returncode == 1 and all(word in done.stderr for word in words), (label, done)
        assert done.stderr.count("error:") == 1, (label, done)
        print(f"{label}: refused", flush=True)

    refused("too little memory", ["the GPU has 1,000,000 bytes free", "parameter", "optimizer"],
            FAKE_GPU_BYTES="1000000")
    refused("too few GPUs", ["this machine has 0 GPUs"], FAKE_GPUS="0")
    refused("an older GPU", ["the GPU is of architecture sm_80", "compiled for sm_90", "--gpu-arch sm_80"],
            FAKE_GPU_ARCH="80")
    refused("no whole number", ["MESHWRIGHT_RANKS_PER_GPU", "whole number"], MESHWRIGHT_RANKS_PER_GPU="2x")


main()
