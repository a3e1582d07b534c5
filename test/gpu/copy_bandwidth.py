#!/usr/bin/env python3
"""The bandwidth of copies within a GPU's memory, bytes read and bytes written a second: copy_bandwidth.py [MIB]

A process of its own, so that what it allocates is gone when it ends."""
import ctypes
import json
import sys

BYTES = (int(sys.argv[1]) if len(sys.argv) > 1 else 1024) << 20
ROUNDS = 20


def call(driver, name, *arguments):
    status = getattr(driver, name)(*arguments)
    if status:
        words = ctypes.c_char_p()
        driver.cuGetErrorString(status, ctypes.byref(words))
        sys.exit(f"{name}: error {status}, {(words.value or b'?').decode()}")


def main():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        sys.exit(f"no driver: {error}")
    device, context, stream = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    call(driver, "cuInit", 0)
    call(driver, "cuDeviceGet", ctypes.byref(device), 0)
    call(driver, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call(driver, "cuCtxSetCurrent", context)
    call(driver, "cuStreamCreate", ctypes.byref(stream), 1)  # beside the default stream
    buffers = [ctypes.c_uint64(), ctypes.c_uint64()]
    for buffer in buffers:
        call(driver, "cuMemAlloc_v2", ctypes.byref(buffer), ctypes.c_size_t(BYTES))
        call(driver, "cuMemsetD8Async", buffer, ctypes.c_ubyte(1), ctypes.c_size_t(BYTES), stream)
    events = [ctypes.c_void_p(), ctypes.c_void_p()]
    for event in events:
        call(driver, "cuEventCreate", ctypes.byref(event), 0)
    best = float("inf")
    for _ in range(ROUNDS):
        call(driver, "cuEventRecord", events[0], stream)
        call(driver, "cuMemcpyDtoDAsync_v2", buffers[0], buffers[1], ctypes.c_size_t(BYTES), stream)
        call(driver, "cuEventRecord", events[1], stream)
        call(driver, "cuStreamSynchronize", stream)
        ms = ctypes.c_float()
        call(driver, "cuEventElapsedTime_v2", ctypes.byref(ms), *events)
        best = min(best, ms.value)
    print(json.dumps({"bytes_per_s": 2 * BYTES / (best / 1e3)}))


main()
