#!/usr/bin/env python3
"""Compiles models into executables for GPUs: executables.py FOLDER CONFIG...

Each must link, carry the images asked for and a kernel for each entry of its table, and
end with a clear message where there is no driver (LD_LIBRARY_PATH is emptied, and the test
says so where the system has one)."""
import argparse
import ctypes
import os
import pathlib
import re
import struct
import subprocess
import sys

ELF = b"\x7fELF"


def sections(path):
    """Symbols of an object or executable and the bytes they name."""
    data = path.read_bytes()
    assert data[:4] == ELF
    shoff, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + i * size) for i in range(count)]
    found = {}
    for header in headers:
        if header[1] != 2:  # the table of symbols
            continue
        strings = headers[header[6]]
        for at in range(header[4], header[4] + header[5], 24):
            name, _, _, index, value, length = struct.unpack_from("<IBBHQQ", data, at)
            end = data.index(b"\0", strings[4] + name)
            text = data[strings[4] + name:end].decode()
            if text.startswith("meshwright_") and 0 < index < count:
                section = headers[index]
                begin = section[4] + value - section[3]
                found[text] = data[begin:begin + length]
    return found


def images(path, label):
    """Checks the tables of kernels and images; a line that says what is there."""
    symbols = sections(path)
    kernels, = struct.unpack("<q", symbols["meshwright_kernel_count"])
    names = symbols["meshwright_kernel_names"].split(b"\0")[:-1]
    shapes = list(struct.iter_unpack("<iiii", symbols["meshwright_kernel_shapes"]))
    assert kernels == len(names) == len(shapes) == len(set(names)), label
    for name, (operands, blocks, threads, shared) in zip(names, shapes):
        assert operands > 0 and blocks > 0 and 0 < threads <= 1024 and 0 <= shared <= 96 * 1024, (label, name)
    words = []
    for arch, ptx, begin, size in struct.iter_unpack("<qqqq", symbols["meshwright_images"]):
        image = symbols["meshwright_image_bytes"][begin:begin + size]
        assert len(image) == size
        if ptx:
            assert f".target sm_{arch}".encode() in image and image.endswith(b"\0"), label
            entries = set(re.findall(rb"\.entry (\S+?)\(", image))
            assert entries == set(names), (label, entries ^ set(names))
        else:
            assert image.startswith(ELF) and all(name in image for name in names), label
        words.append(f"sm_{arch} {'PTX' if ptx else 'code'}")
    return f"{label}: {kernels} kernels, {', '.join(words)}"


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
        return True
    except OSError:
        return False


def starts_without_driver(path, ranks, label):
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "RANK", "WORLD_SIZE")}
    environment["CUDA_VISIBLE_DEVICES"] = ""
    run = subprocess.run([path, "--ranks", str(ranks), "--data", __file__, "--steps", "1", "--lr", "1"],
                         capture_output=True, text=True, timeout=120, env=environment)
    wanted = ("error: cuInit: CUDA_ERROR_NO_DEVICE" if has_driver() else
              "error: this executable needs NVIDIA's driver, but libcuda.so.1 cannot be loaded")
    assert run.returncode == 1 and run.stderr.startswith(wanted), (label, run)
    assert run.stderr.count("error:") == 1, (label, run.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("configs", nargs="+", type=pathlib.Path)
    parser.add_argument("--precision", default="f32,bf16", help="of the configs")
    parser.add_argument("--large", action="store_true", help="models that take long to compile too")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)

    def compile(label, config, ranks, *flags):
        path = options.folder / re.sub("[ ,=]+", "-", label)
        subprocess.run(["meshwright", "compile", str(config), "--target", "cuda", *flags, "-o", str(path)],
                       check=True, stdout=subprocess.DEVNULL)
        print(images(path, label), flush=True)
        starts_without_driver(path, ranks, label)
        path.unlink()

    for config in options.configs:
        for precision in options.precision.split(","):
            compile(f"{config.parent.name} {precision}", config, 1, "--precision", precision,
                    "--gpu-arch", "sm_90,sm_80")
    config = options.configs[0]
    compile("mesh pipe=2,data=2,tensor=2", config, 8, "--mesh", "pipe=2,data=2,tensor=2", "--microbatches", "4",
            "--batch", "8", "--zero", "1")
    compile("mesh data=2 zero 3", config, 2, "--mesh", "data=2", "--zero", "3", "--dropout", "0.1")
    compile("parameter server", config, 2, "--mesh", "data=2", "--data-sync", "parameter-server")
    # What exchanges add on GPUs is a kernel of the table.
    compile("ring", config, 2, "--mesh", "data=2", "--collective-algorithm", "ring")
    if not options.large:
        return
    examples = options.configs[0].parents[4] / "examples"
    compile("llama3-8b zero 3", examples / "llama3-8b.json", 8, "--precision",
            "bf16", "--mesh", "data=8", "--zero", "3", "--seq", "4096", "--batch", "8")
    # Experts divided among 64 and 1024 GPUs.
    compile("mixtral-8x22b", examples / "models" / "mixtral-8x22b.json", 64, "--precision", "bf16", "--mesh", "data=8,expert=8",
            "--zero", "3", "--seq", "4096", "--batch", "64")
    compile("deepseek-v3", examples / "models" / "deepseek-v3.json", 1024, "--precision", "bf16", "--mesh", "pipe=16,expert=64",
            "--zero", "1", "--seq", "4096", "--batch", "2048", "--microbatches", "32")


if __name__ == "__main__":
    sys.exit(main())
