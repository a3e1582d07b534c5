#!/usr/bin/env python3
"""--check-replicas names the tensor and the rank whose memory was changed, and nothing where none was: replicas.py GOLDEN WORK [--all]

With --lr 0 weights keep the bits of their file, by which some are found in the memory of a rank's process and one is changed there. With ZeRO
1 and 2 ranks send each other the weights after each step, which ends such a difference (docs/checkpoints.md)."""
import array
import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, compile, flags, fresh, ranks_of, strategy

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
TENSOR = "h.1.ln_2.bias"
MESHES = ["data=3", "tensor=2/1+sequence-parallel", "data=2,pipe=2/2"]
if "--all" in sys.argv:
    MESHES += ["tensor=2", "data=2,tensor=2", "data=2,context=2", "pipe=2,tensor=2/2", "data=4", "replica=2,data=2+zero=3"]


def flip(process, values):
    """Changes the lowest bit of the first of `values` wherever the process has them in memory that it writes. Returns how often."""
    pattern, found = values.tobytes(), 0
    try:
        maps = open(f"/proc/{process}/maps").readlines()
    except ProcessLookupError:
        return 0
    with open(f"/proc/{process}/mem", "r+b", buffering=0) as memory:
        for line in maps:
            begin, end, mode, inode = re.match(r"(\w+)-(\w+) (\S+) \S+ \S+ (\d+)", line).groups()
            if not mode.startswith("rw") or inode != "0":
                continue
            begin, end = int(begin, 16), int(end, 16)
            try:
                memory.seek(begin)
                content = memory.read(end - begin)
                at = content.find(pattern)
                while at >= 0:
                    memory.seek(begin + at)
                    memory.write(bytes([pattern[0] ^ 1]))
                    found += 1
                    at = content.find(pattern, at + 1)
            except OSError:  # No memory of its own, or the run has found the bit already and ended.
                continue
    return found


def start():
    """Weights of which TENSOR's are in no other tensor, as `start.safetensors`."""
    compile(golden.config, "one", **golden.size)
    call(["./one", *flags(dict(golden.data, init=golden.weights, steps=0, save="start"))])
    data = bytearray(pathlib.Path("start/latest/model.safetensors").read_bytes())
    size = int.from_bytes(data[:8], "little")
    header = json.loads(bytes(data[8:8 + size]))
    del header["__metadata__"]  # The checksums are those of other values.
    begin, end = next(entry["data_offsets"] for name, entry in header.items() if name.endswith(TENSOR))
    values = array.array("f", (i * 0.001 + 0.123 for i in range((end - begin) // 4)))
    data[8 + size + begin:8 + size + end] = values.tobytes()
    text = json.dumps(header).encode()
    pathlib.Path("start.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(data[8 + size:]))
    return values


# The last rank has the last quarter of the tensor, however ranks divide it, and the last layers.
values = start()
values = values[len(values) * 3 // 4:]
for mesh in MESHES:
    options = dict(golden.size, **strategy(mesh))
    exe = re.sub(r"\W", "-", mesh)
    compile(golden.config, exe, **dict(options, batch=12))
    count = ranks_of(options["mesh"])
    run = dict(golden.data, lr=0, weight_decay=0, check_replicas=2, steps=10**6, metrics=f"{exe}.jsonl")
    process = subprocess.Popen(["meshwright", "run", "--mpi", "-n", str(count), os.path.abspath(exe),
                                *map(str, flags(dict(run, init="start.safetensors")))], stdout=subprocess.DEVNULL,
                               stderr=open("log", "w"))
    try:
        deadline = time.monotonic() + 90
        while not os.path.exists(run["metrics"]) or os.path.getsize(run["metrics"]) < 1000:
            check(time.monotonic() < deadline and process.poll() is None, f"{mesh}: no steps: " + open("log").read())
            time.sleep(0.01)
        ranks = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/exe") == os.path.abspath(exe):
                    environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
                    ranks[int(re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", environment)[1])] = pid
            except OSError:
                pass
        check(len(ranks) == count, f"{mesh}: {len(ranks)} ranks")
        rank = count - 1
        check(flip(ranks[rank], values), f"{mesh}: {TENSOR} is not in the memory of rank {rank}")
        process.wait(timeout=60)
    finally:
        process.kill()
    log = open("log").read()
    said = re.search(r"error: after step \d+, tensor (\S+) has other bits on ranks? (.*?) than on ranks? (.*?)(?: \(which|, where|;)", log)
    check(process.returncode != 0 and said, f"{mesh}: {process.returncode}\n{log}")
    wrong, right = (set(map(int, re.findall(r"\d+", ranks))) for ranks in (said[2], said[3]))
    # Of two ranks it cannot be known.
    named = rank in wrong | right and len(wrong | right) == 2 if "which of them is right is not known" in log else wrong == {rank}
    check(said[1].endswith(TENSOR) and named, f"{mesh}: rank {rank} was changed\n{log}")
    print(f"{mesh}: {said[0][:100]}")
