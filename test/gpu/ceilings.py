#!/usr/bin/env python3
"""What a GPU reaches at most: ceilings.py [MIB [N]]

Bytes read and bytes written a second by a copy of MIB MiB within its memory, and operations a second of a product
of N x N matrices in bf16 of random numbers (of zeros it is faster), by the fastest of cuBLASLt's candidates. A process
of its own, so that what it allocates is gone when it ends. `rates.py` measures other sizes by the same classes."""
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
F32, BF16, E4M3, COMPUTE_F32, MAX_WORKSPACE, REDUCTION_SCHEMES, SUMS_IN_F32 = 0, 14, 28, 68, 1, 3, 2
TRANSPOSE_A, TRANSPOSE_B = 3, 4
BYTES = {F32: 4, BF16: 2, E4M3: 1}


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


class Blas:
    """cuBLASLt, with its workspace on the device."""

    def __init__(self, driver):
        self.driver = driver
        home = os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/lib64/"
        for place in ("", home):
            try:
                self.library = ctypes.CDLL(place + "libcublasLt.so.13")
                break
            except OSError as error:
                reason = error
        else:
            sys.exit(f"no cuBLASLt: {reason}")
        self.handle, self.preference = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cublasLtCreate", ctypes.byref(self.handle))
        self.call("cublasLtMatmulPreferenceCreate", ctypes.byref(self.preference))
        self.attribute("cublasLtMatmulPreferenceSetAttribute", self.preference, MAX_WORKSPACE, ctypes.c_uint64, WORKSPACE)
        self.attribute("cublasLtMatmulPreferenceSetAttribute", self.preference, REDUCTION_SCHEMES, ctypes.c_uint32,
                       SUMS_IN_F32)
        self.workspace = driver.allocate(WORKSPACE)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            sys.exit(f"{name}: error {status}")

    def attribute(self, name, of, number, kind, value):
        word = kind(value)
        self.call(name, of, number, ctypes.byref(word), ctypes.c_size_t(ctypes.sizeof(word)))


class Product:
    """C = op(A) op(B) + beta C of column-major matrices: op(A) is m x k, op(B) is k x n."""

    def __init__(self, blas, m, n, k, transpose_a, transpose_b, operands=BF16, result=BF16, beta=0.0, candidates=CANDIDATES):
        self.blas, self.m, self.n, self.k = blas, m, n, k
        self.one, self.beta = ctypes.c_float(1), ctypes.c_float(beta)
        self.operation = ctypes.c_void_p()
        blas.call("cublasLtMatmulDescCreate", ctypes.byref(self.operation), COMPUTE_F32, F32)
        for number, value in ((TRANSPOSE_A, transpose_a), (TRANSPOSE_B, transpose_b)):
            blas.attribute("cublasLtMatmulDescSetAttribute", self.operation, number, ctypes.c_int32, int(value))
        shapes = [((k, m) if transpose_a else (m, k), operands), ((n, k) if transpose_b else (k, n), operands),
                  ((m, n), result)]
        self.bytes = [rows * columns * BYTES[kind] for (rows, columns), kind in shapes]
        self.layouts = [ctypes.c_void_p() for _ in shapes]
        for layout, ((rows, columns), kind) in zip(self.layouts, shapes):
            blas.call("cublasLtMatrixLayoutCreate", ctypes.byref(layout), kind, ctypes.c_uint64(rows),
                      ctypes.c_uint64(columns), ctypes.c_int64(rows))
        found, count = (Algorithm * candidates)(), ctypes.c_int()
        a, b, c = self.layouts
        blas.call("cublasLtMatmulAlgoGetHeuristic", blas.handle, self.operation, a, b, c, c, blas.preference, candidates,
                  found, ctypes.byref(count))
        self.candidates = found[:count.value]

    def enqueue(self, candidate, buffers):
        a, b, c = self.layouts
        self.blas.call("cublasLtMatmul", self.blas.handle, self.operation, ctypes.byref(self.one), buffers[0], a, buffers[1],
                       b, ctypes.byref(self.beta), buffers[2], c, buffers[2], c, ctypes.byref(candidate.algorithm),
                       self.blas.workspace, ctypes.c_size_t(WORKSPACE), self.blas.driver.stream)


def fill(driver, buffer, values, size):
    driver.call("cuMemcpyHtoDAsync_v2", buffer, ctypes.c_void_p(values.buffer_info()[0]), ctypes.c_size_t(size),
                driver.stream)
    driver.call("cuStreamSynchronize", driver.stream)


def products(driver, size):
    """Of a product as a linear layer's is, C = A^T B."""
    product = Product(Blas(driver), size, size, size, True, False)
    values = random_bf16(size * size)
    buffers = [driver.allocate(count) for count in product.bytes]
    for buffer, count in zip(buffers, product.bytes):
        fill(driver, buffer, values, count)

    def milliseconds(candidate):
        return driver.milliseconds(lambda: product.enqueue(candidate, buffers))

    best = min((statistics.median(milliseconds(candidate) for _ in range(5)), i)
               for i, candidate in enumerate(product.candidates))[1]
    # Long enough for the clock to come down to what the power allows.
    times = [milliseconds(product.candidates[best]) for _ in range(10 * ROUNDS)]
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


if __name__ == "__main__":
    main()
