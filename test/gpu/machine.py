#!/usr/bin/env python3
"""What there is on a machine with GPUs. As a program it prints, as JSON, what the driver and the libraries
say: in a process of its own, so that nothing of them stays in memory."""
import ctypes
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

# What executables load, and what cuDNN loads: each in a folder of its own where pip has installed it.
LIBRARIES = ("libcublasLt.so.13", "libcudnn.so.9", "libnccl.so.2", "libnvrtc.so.13", "libcudart.so.13")


def smi(field):
    """What nvidia-smi says of each GPU; nothing where it does not work."""
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []


def memory_in_use():
    """Bytes, of all processes on all GPUs; None where nvidia-smi does not say."""
    used = [int(word) << 20 for word in smi("memory.used") if word.isdigit()]
    return sum(used) if used else None


STATE = {"sm_mhz": "clocks.sm", "memory_mhz": "clocks.mem", "watts": "power.draw", "celsius": "temperature.gpu",
         "throttled": "clocks_event_reasons.active", "used": "memory.used"}


def state():
    """Clocks, power, temperature, what slows it and memory in use, of the first GPU; of all GPUs the memory. Empty where
    nvidia-smi does not say."""
    lines = [dict(zip(STATE, map(str.strip, line.split(",")))) for line in smi(",".join(STATE.values()))]
    if not lines or not all(line.get("used", "").isdigit() for line in lines):
        return {}
    numbers = {key: float(value) for key, value in lines[0].items() if re.fullmatch(r"[\d.]+", value) and key != "used"}
    return {**numbers, "throttled": lines[0]["throttled"], "memory_bytes": sum(int(line["used"]) << 20 for line in lines)}


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def resident_bytes(pid):
    """The most memory that a process has had."""
    try:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


def library_folders(python):
    """Folders with NVIDIA's libraries among the packages of the interpreter `python`: pip puts them under nvidia/,
    where no loader looks."""
    try:
        done = subprocess.run([python, "-c", "import nvidia; print(*nvidia.__path__, sep='\\n')"], capture_output=True,
                              text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return []
    if done.returncode:
        return []
    found = []
    for place in done.stdout.split("\n"):
        for name in LIBRARIES if place else ():
            found += sorted(str(path.parent) for path in pathlib.Path(place).glob(f"**/{name}"))
    return list(dict.fromkeys(found))


def environment(folders):
    """This process's, with `folders` behind what LD_LIBRARY_PATH has."""
    given = [place for place in os.environ.get("LD_LIBRARY_PATH", "").split(":") if place]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join([*given, *folders])}


def describe(variables):
    """What `main` prints with these environment variables."""
    done = subprocess.run([sys.executable, __file__], env=variables, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {"versions": {}, "libraries": {}, "gpus": []}


def load(name, places=("", "/usr/local/cuda/lib64/")):
    for place in places:
        try:
            return ctypes.CDLL(place + name)
        except OSError:
            continue
    return None


def versions():
    found = {"python": platform.python_version()}
    for name, file, call in (("cublasLt", "libcublasLt.so.13", "cublasLtGetVersion"),
                             ("cudnn", "libcudnn.so.9", "cudnnGetVersion"),
                             ("nccl", "libnccl.so.2", "ncclGetVersion")):
        library = load(file)
        function = getattr(library, call, None) if library else None
        if not function:
            continue
        if name != "nccl":
            function.restype = ctypes.c_size_t
            found[name] = str(function())
        else:
            version = ctypes.c_int()
            function(ctypes.byref(version))
            found[name] = str(version.value)
    return found


def gpus():
    """Names of the GPUs, and bytes of the first: free, with a CUDA context there, and all."""
    driver = load("libcuda.so.1", ("",))
    count, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    if not driver or driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return {"gpus": []}
    names = []
    for number in range(count.value):
        name = ctypes.create_string_buffer(256)
        driver.cuDeviceGet(ctypes.byref(device), number)
        driver.cuDeviceGetName(name, 256, device)
        names.append(name.value.decode())
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    if names and not driver.cuDeviceGet(ctypes.byref(device), 0) and not driver.cuDevicePrimaryCtxRetain(
            ctypes.byref(context), device) and not driver.cuCtxSetCurrent(context):
        driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    return {"gpus": names, "free": free.value, "total": total.value}


def main():
    found = {"versions": versions(), **gpus()}
    mapped = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
    found["libraries"] = {name: path for name in LIBRARIES for path in mapped if pathlib.Path(path).name.startswith(name)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
