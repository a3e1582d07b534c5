#!/usr/bin/env python3
"""Assembles every kernel of models: ptxas.py CONFIG... --arch sm_90[,...] --precision f32[,...]

Each kernel must assemble without spilling registers and without memory of each thread's
own, and leave registers for at least two blocks on a multiprocessor."""
import argparse
import pathlib
import re
import subprocess
import sys

REGISTERS = 65536  # of a multiprocessor


def check(ptx, arch, name):
    run = subprocess.run(["ptxas", "-v", f"-arch={arch}", str(ptx), "-o", "/dev/null"], capture_output=True, text=True)
    log = run.stdout + run.stderr
    if run.returncode:
        sys.exit(f"{name}: ptxas failed:\n{log}")
    text = ptx.read_text()
    threads = {k: int(t) for k, t in re.findall(r"\.entry (\S+?)\(.*?\.(?:max|req)ntid (\d+)", text, re.S)}
    kernels = re.findall(
        r"Function properties for (\S+)\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, "
        r"(\d+) bytes spill loads\n.*?Used (\d+) registers", log)
    if not threads or {kernel[0] for kernel in kernels} != set(threads):
        sys.exit(f"{name}: ptxas reports {len(kernels)} kernels, the module has {len(threads)}")
    most = 0
    for kernel, stack, stores, loads, registers in kernels:
        if stack != "0" or stores != "0" or loads != "0":
            sys.exit(f"{name}: {kernel} spills: {stack} bytes of stack, {stores} stored, {loads} loaded")
        if int(registers) * threads[kernel] * 2 > REGISTERS:
            sys.exit(f"{name}: {kernel} has {threads[kernel]} threads with {registers} registers")
        most = max(most, int(registers))
    return len(kernels), most


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("configs", nargs="+", type=pathlib.Path)
    parser.add_argument("--arch", default="sm_80,sm_90,sm_100")
    parser.add_argument("--precision", default="f32,bf16")
    parser.add_argument("--flags", default="", help="of the compiler, besides")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for config in options.configs:
        for precision in options.precision.split(","):
            for arch in options.arch.split(","):
                name = f"{config.parent.name} {precision} {arch}"
                ptx = options.folder / (name.replace(" ", "-") + ".ptx")
                subprocess.run(["meshwright", "compile", str(config), "--target", "cuda", "--gpu-arch", arch,
                                "--precision", precision, *options.flags.split(), "--emit", "ptx", "-o", str(ptx)], check=True)
                kernels, most = check(ptx, arch, name)
                print(f"{name}: {kernels} kernels, at most {most} registers", flush=True)


main()
