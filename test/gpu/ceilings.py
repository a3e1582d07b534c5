#!/usr/bin/env python3
"""What a GPU reaches at most: ceilings.py [MIB [N]]

Bytes read and bytes written a second by a copy of MIB MiB within its memory, and operations a second of a product
of N x N matrices in bf16 of random numbers (of zeros it is faster), by the fastest of cuBLASLt's candidates. A process
of its own, so that what it allocates is gone when it ends."""
import array
import ctypes
import json
import os
import random
import statistics
import sys

ROUNDS = 20
WORKSPACE = 32 << 20
CANDIDATES = 8
# Of cublasLt.h and library_types.h.
BF16, F32, COMPUTE_F32, TRANSPOSE_A, MAX_WORKSPACE, REDUCTION_SCHEMES, SUMS_IN_F32 = 14, 0, 68, 3, 1, 3, 2


class Algorithm(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t"""
    _fields_ = [("algorithm", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("status", ctypes.c_int),
                ("waves", ctypes.c_float), ("reserved", ctypes.c_int * 4)]


class Driver:
    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            sys.exit(f"no driver: {error}")
        device, context, self.stream = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)  # beside the default stream
        self.events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in self.events:
            self.call("cuEventCreate", ctypes.byref(event), 0)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            words = ctypes.c_char_p()
            self.library.cuGetErrorString(status, ctypes.byref(words))
            sys.exit(f"{name}: error {status}, {(words.value or b'?').decode()}")

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def free(self, address):
        self.call("cuMemFree_v2", address)

    def milliseconds(self, enqueue):
        self.call("cuEventRecord", self.events[0], self.stream)
        enqueue()
        self.call("cuEventRecord", self.events[1], self.stream)
        self.call("cuStreamSynchronize", self.stream)
        ms = ctypes.c_float()
        self.call("cuEventElapsedTime_v2", ctypes.byref(ms), *self.events)
        return ms.value


def copies(driver, size):
    buffers = [driver.allocate(size) for _ in range(2)]
    for buffer in buffers:
        driver.call("cuMemsetD8Async", buffer, ctypes.c_ubyte(1), ctypes.c_size_t(size), driver.stream)
    times = [driver.milliseconds(lambda: driver.call("cuMemcpyDtoDAsync_v2", *buffers, ctypes.c_size_t(size), driver.stream))
             for _ in range(ROUNDS)]
    for buffer in buffers:
        driver.free(buffer)
    return 2 * size / (min(times) / 1e3)


def random_bf16(count):
    """The upper halves of f32 between -1 and 1."""
    numbers = random.Random(0)
    words = array.array("I", array.array("f", (numbers.uniform(-1, 1) for _ in range(min(count, 1 << 18)))).tobytes())
    return array.array("H", (word >> 16 for word in words)) * -(-count // len(words))


def products(driver, size):
    """C = A^T B, column-major, as a linear layer's product is."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/lib64/"
    for place in ("", home):
        try:
            blas = ctypes.CDLL(place + "libcublasLt.so.13")
            break
        except OSError as error:
            reason = error
    else:
        sys.exit(f"no cuBLASLt: {reason}")

    def call(name, *arguments):
        status = getattr(blas, name)(*arguments)
        if status:
            sys.exit(f"{name}: error {status}")

    def attribute(name, of, number, kind, value):
        word = kind(value)
        call(name, of, number, ctypes.byref(word), ctypes.c_size_t(ctypes.sizeof(word)))

    handle, operation, preference = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cublasLtCreate", ctypes.byref(handle))
    call("cublasLtMatmulDescCreate", ctypes.byref(operation), COMPUTE_F32, F32)
    attribute("cublasLtMatmulDescSetAttribute", operation, TRANSPOSE_A, ctypes.c_int32, 1)
    layouts = [ctypes.c_void_p() for _ in range(3)]
    for layout in layouts:
        call("cublasLtMatrixLayoutCreate", ctypes.byref(layout), BF16, ctypes.c_uint64(size), ctypes.c_uint64(size),
             ctypes.c_int64(size))
    call("cublasLtMatmulPreferenceCreate", ctypes.byref(preference))
    attribute("cublasLtMatmulPreferenceSetAttribute", preference, MAX_WORKSPACE, ctypes.c_uint64, WORKSPACE)
    attribute("cublasLtMatmulPreferenceSetAttribute", preference, REDUCTION_SCHEMES, ctypes.c_uint32, SUMS_IN_F32)
    found, count = (Algorithm * CANDIDATES)(), ctypes.c_int()
    a, b, c = layouts
    call("cublasLtMatmulAlgoGetHeuristic", handle, operation, a, b, c, c, preference, CANDIDATES, found,
         ctypes.byref(count))
    values = random_bf16(size * size)
    buffers = [driver.allocate(2 * size * size) for _ in range(3)]
    for buffer in buffers:
        driver.call("cuMemcpyHtoDAsync_v2", buffer, ctypes.c_void_p(values.buffer_info()[0]),
                    ctypes.c_size_t(2 * size * size), driver.stream)
    workspace = driver.allocate(WORKSPACE)
    one, zero = ctypes.c_float(1), ctypes.c_float(0)

    def run(candidate):
        call("cublasLtMatmul", handle, operation, ctypes.byref(one), buffers[0], a, buffers[1], b, ctypes.byref(zero),
             buffers[2], c, buffers[2], c, ctypes.byref(candidate.algorithm), workspace, ctypes.c_size_t(WORKSPACE),
             driver.stream)

    best = min((statistics.median(driver.milliseconds(lambda: run(candidate)) for _ in range(5)), i)
               for i, candidate in enumerate(found[:count.value]))[1]
    # Long enough for the clock to come down to what the power allows.
    times = [driver.milliseconds(lambda: run(found[best])) for _ in range(10 * ROUNDS)]
    return 2 * size ** 3 / (statistics.median(times[5 * ROUNDS:]) / 1e3)


def main():
    mib, size = [int(word) for word in sys.argv[1:]] + [1024, 8192][len(sys.argv) - 1:]
    driver = Driver()
    found = {"copy_bytes_per_s": copies(driver, mib << 20), "matmul_flops_per_s": None}
    try:
        found["matmul_flops_per_s"] = products(driver, size)
    except SystemExit as reason:  # Copies are known all the same.
        print(reason, file=sys.stderr)
    print(json.dumps(found))


main()
