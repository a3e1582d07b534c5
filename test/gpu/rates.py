#!/usr/bin/env python3
"""How fast a GPU is at sizes that models have: rates.py OUT.json [--seconds S] [--only PART] [--most BYTES]

One JSON object: the machine, and rows of
  products   cuBLASLt's candidates for a product: tile, stages, cluster, split of k, waves and milliseconds of each
  copies     bytes read and written a second within the GPU's memory, by size
  transfers  bytes a second between the GPU and pinned memory of the host, by size and direction
  launches   microseconds of a kernel without work, one after another
  attention  PyTorch's attentions (cuDNN's, FlashAttention-2's), forward and backward, by shape; where PyTorch is

Operands are random, since zeros are faster; every size is measured after one that kept the GPU busy, since clocks follow
power. Parts that the time does not suffice for are named in `left_out`."""
import argparse
import array
import ctypes
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import time

from ceilings import BF16, E4M3, F32, ROUNDS, Blas, Driver, Product, copies, fill, random_bf16

TILE, SPLIT_K, SWIZZLE, STAGES, CLUSTER = 1, 2, 4, 6, 8  # CUBLASLT_ALGO_CONFIG_*
MANY = 12  # candidates asked for
SPENT_MS = 25.0  # on the best candidate, after the others have kept the GPU busy
LARGEST = 1 << 29  # elements

GPT2 = (1600, [1600, 4800, 6400], 16384)
LLAMA = (2048, [512, 2048, 3072, 8192, 16384], 16384)
LAYERS = [GPT2, LLAMA,
          (4096, [1024, 4096, 6144, 14336, 28672], 4096), (4096, [1024, 4096, 6144, 14336, 28672], 8192),
          (5120, [1024, 5120, 7168, 13824, 27648], 4096), (8192, [1024, 8192, 10240, 28672], 4096),
          (8192, [1024, 2560, 3584, 7168], 8192), (2048, [1024, 2048], 2048), (7168, [1536, 2048, 18432], 4096),
          (4096, [512, 1024, 1792, 3584], 2048)]
VOCABULARIES = [(1600, 50304, 4096), (2048, 128256, 2048), (2048, 50304, 4096), (4096, 128256, 2048)]


def shapes():
    """(m, n, k, transposed A, transposed B, operands, result, beta): forward, both gradients of linear layers of weights
    [outputs, inputs] in rows. A row-major y = x W^T is the column-major y = W^T-as-stored-transposed times x."""
    seen = set()
    for width, outputs, tokens in LAYERS + [(width, [size], tokens) for width, size, tokens in VOCABULARIES]:
        for size in outputs:
            for inputs, results in ((width, size), (size, width)):
                for row in ((results, tokens, inputs, True, False, BF16, BF16, 0.0),   # y = x W^T
                            (inputs, tokens, results, False, False, BF16, BF16, 0.0),  # dx = dy W
                            (inputs, results, tokens, False, True, BF16, F32, 1.0),    # dW += dy^T x
                            (inputs, results, tokens, False, True, BF16, BF16, 0.0)):
                    if row not in seen:
                        seen.add(row)
                        yield row
    squares = (512, 1024, 2048, 4096, 8192, 16384)
    yield from ((size, size, size, True, False, BF16, BF16, 0.0) for size in squares)
    yield from ((size, size, size, True, False, F32, F32, 0.0) for size in (1024, 4096))
    # Last, since their operands are filled anew.
    wide = ((4096, 8192, 4096), (14336, 8192, 4096), (4096, 8192, 14336), (8192, 4096, 8192))
    yield from ((m, n, k, True, False, E4M3, BF16, 0.0) for m, n, k in (*((size,) * 3 for size in squares), *wide))


def names():
    """What cuBLASLt's numbers of tiles and clusters stand for, by its header, where there is one."""
    path = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include" / "cublasLt.h"
    text = path.read_text() if path.exists() else ""
    return {attribute: {int(number): name for name, number in re.findall(rf"{prefix}_(\d+x\w+) *= *(\d+)", text)}
            for attribute, prefix in ((TILE, "CUBLASLT_MATMUL_TILE"), (CLUSTER, "CUBLASLT_CLUSTER_SHAPE"))}


def config(blas, candidate, attribute, known):
    kind = ctypes.c_uint16 if attribute == CLUSTER else ctypes.c_uint32
    word, written = kind(), ctypes.c_size_t()
    status = blas.library.cublasLtMatmulAlgoConfigGetAttribute(
        ctypes.byref(candidate.algorithm), attribute, ctypes.byref(word), ctypes.c_size_t(ctypes.sizeof(kind)),
        ctypes.byref(written))
    return None if status else known.get(attribute, {}).get(word.value, word.value)


def bytes_below_two():
    """Numbers of E4M3 between -2 and 2, none of them NaN."""
    return array.array("B", (byte & 0xBF for byte in random.Random(0).randbytes(1 << 20)))


def products(driver, until, _):
    blas, rows, known = Blas(driver), [], names()
    buffers, values = [driver.allocate(4 * LARGEST) for _ in range(2)], random_bf16(LARGEST // 2)
    result = driver.allocate(4 * LARGEST)
    for buffer in buffers:  # as operands of any of the types: numbers of f32 and of E4M3 are the same bits
        for part in range(4):
            fill(driver, ctypes.c_uint64(buffer.value + part * LARGEST), values, LARGEST)
    driver.call("cuMemsetD8Async", result, ctypes.c_ubyte(0), ctypes.c_size_t(4 * LARGEST), driver.stream)
    eights = None
    for m, n, k, transpose_a, transpose_b, operands, kind, beta in shapes():
        if time.monotonic() > until:
            return rows, True
        if operands == E4M3 and not eights:
            eights = bytes_below_two()
            for buffer in buffers:
                for part in range(LARGEST // len(eights)):
                    fill(driver, ctypes.c_uint64(buffer.value + part * len(eights)), eights, len(eights))
        product = Product(blas, m, n, k, transpose_a, transpose_b, operands, kind, beta, MANY)
        memory = [*buffers, result]

        def milliseconds(candidate, times=1):
            return driver.milliseconds(lambda: [product.enqueue(candidate, memory) for _ in range(times)]) / times
        found = []
        for candidate in product.candidates:
            milliseconds(candidate)
            found.append(statistics.median(milliseconds(candidate) for _ in range(3)))
        row = {"m": m, "n": n, "k": k, "transpose": "NT"[transpose_a] + "NT"[transpose_b],
               "operands": {F32: "f32", BF16: "bf16", E4M3: "e4m3"}[operands], "result": "f32" if kind == F32 else "bf16",
               "beta": beta, "candidates": []}
        for candidate, ms in zip(product.candidates, found):
            row["candidates"].append({name: config(blas, candidate, number, known) for name, number in
                                      (("tile", TILE), ("stages", STAGES), ("cluster", CLUSTER), ("split_k", SPLIT_K),
                                       ("swizzle", SWIZZLE))} |
                                     {"waves": round(candidate.waves, 3), "workspace": candidate.workspace, "ms": round(ms, 5)})
        if found:
            for name, which in (("first", 0), ("best", found.index(min(found)))):
                times = max(3, int(SPENT_MS / max(found[which], 1e-3)))
                row[name + "_ms"] = round(milliseconds(product.candidates[which], times), 5)
            row["tflops"] = round(2e-9 * m * n * k / row["best_ms"], 1)
        rows.append(row)
    for buffer in (*buffers, result, blas.workspace):
        driver.free(buffer)
    return rows, False


def sizes(most):
    return [1 << power for power in range(12, most.bit_length(), 2)]


def transfers(driver, until, most):
    rows = []
    for size in sizes(min(most, 1 << 30)):
        if time.monotonic() > until:
            return rows, True
        buffer, host = driver.allocate(size), ctypes.c_void_p()
        driver.call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(size), 0)
        for direction, call in (("to device", lambda: driver.call("cuMemcpyHtoDAsync_v2", buffer, host, ctypes.c_size_t(size),
                                                                  driver.stream)),
                                ("to host", lambda: driver.call("cuMemcpyDtoHAsync_v2", host, buffer, ctypes.c_size_t(size),
                                                                driver.stream))):
            ms = statistics.median([driver.milliseconds(call) for _ in range(6)][1:])
            rows.append({"bytes": size, "direction": direction, "us": round(1e3 * ms, 2), "gb_per_s": round(size / ms / 1e6, 3)})
        driver.call("cuMemFreeHost", host)
        driver.free(buffer)
    return rows, False


def copies_by_size(driver, until, most):
    rows = []
    for size in sizes(most):
        if time.monotonic() > until:
            return rows, True
        rows.append({"bytes": size, "tb_per_s": round(copies(driver, size) / 1e12, 4)})
    return rows, False


def launches(driver, until, _):
    """Of the smallest memset, which is a kernel; what is between two of them."""
    buffer, rows = driver.allocate(4096), []
    for many in (1, 10, 100, 1000):
        def run():
            for _ in range(many):
                driver.call("cuMemsetD32Async", buffer, ctypes.c_uint(1), ctypes.c_size_t(4), driver.stream)
        us = min(driver.milliseconds(run) for _ in range(ROUNDS)) * 1e3 / many
        rows.append({"launches": many, "us": round(us, 3)})
    driver.free(buffer)
    return rows, False


ATTENTION = [(16, 25, 25, 1024, 64), (4, 32, 8, 4096, 64), (2, 32, 8, 8192, 64), (4, 16, 16, 4096, 128), (1, 32, 8, 4096, 128),
             (8, 32, 8, 1024, 128), (1, 32, 8, 8192, 128), (1, 32, 8, 16384, 128), (1, 8, 1, 32768, 128), (4, 32, 8, 2048, 128),
             (8, 32, 8, 2048, 64), (16, 12, 12, 512, 64), (1, 16, 16, 4096, 256), (1, 64, 8, 4096, 64)]


def attention(driver, until, _):
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
    rows = []

    def median(call):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        times = []
        for _ in range(12):
            begin.record()
            call()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        return statistics.median(times[4:])
    for batch, heads, shared, seq, size in ATTENTION:
        for causal in (True, False):
            for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
                if time.monotonic() > until:
                    return rows, True
                row = {"batch": batch, "heads": heads, "kv_heads": shared, "seq": seq, "head": size, "causal": causal,
                       "by": backend.name.lower()}
                try:
                    q, k, v = (torch.randn(batch, seq, count, size, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
                               .detach().requires_grad_() for count in (heads, shared, shared))
                    with sdpa_kernel(backend):
                        def run():
                            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != shared)
                        out = run()
                        gradient = torch.randn_like(out)
                        with torch.no_grad():
                            row["forward_ms"] = round(median(run), 4)
                        row["backward_ms"] = round(median(lambda: torch.autograd.grad(out, (q, k, v), gradient,
                                                                                      retain_graph=True)), 4)
                    flops = 4 * batch * heads * seq * seq * size / (2 if causal else 1)
                    row["forward_tflops"] = round(flops / row["forward_ms"] / 1e9, 1)
                    row["backward_tflops"] = round(2.5 * flops / row["backward_ms"] / 1e9, 1)
                except RuntimeError as error:
                    row["error"] = str(error).splitlines()[0][:120]
                rows.append(row)
    return rows, False


PARTS = {"products": products, "copies": copies_by_size, "transfers": transfers, "launches": launches, "attention": attention}


def state():
    """The clocks and the power of this moment; nothing without nvidia-smi."""
    if not shutil.which("nvidia-smi"):
        return {}
    asked = "name,driver_version,clocks.sm,clocks.mem,power.draw,power.limit,temperature.gpu"
    said = subprocess.run(["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"], capture_output=True, text=True).stdout
    return dict(zip(asked.split(","), said.strip().splitlines()[0].split(", "))) if said else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--only", choices=list(PARTS))
    parser.add_argument("--most", type=int, default=1 << 32, metavar="BYTES", help="largest copy")
    options = parser.parse_args()
    driver, until = Driver(), time.monotonic() + options.seconds
    found = {"states": [state()], "left_out": []}
    for name, measure in PARTS.items():
        if options.only in (None, name):
            began = time.monotonic()
            try:
                found[name], left = measure(driver, until, options.most)
            except ImportError as error:
                found[name], left = [], str(error)
            if left:
                found["left_out"].append(name)
            found["states"].append({"after": name, "seconds": round(time.monotonic() - began, 1), **state()})
            print(f"{name}: {len(found[name])} rows in {time.monotonic() - began:.1f} s{', cut short' if left else ''}", flush=True)
            with open(options.out, "w") as file:
                json.dump(found, file)


main()
