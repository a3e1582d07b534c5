#!/usr/bin/env python3
"""Folders of --ssd that are refused, and a kernel without io_uring: ssd.py GOLDEN WORK"""
import os
import pathlib
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, compile, flags, fresh, rows

source = pathlib.Path(__file__).resolve().parent / "inject.cpp"
golden = Golden(sys.argv[1])
fresh(sys.argv[2])
call(["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-nodefaultlibs", source,
      "-o", "inject.so", "-lc", "-ldl"])
compile(golden.config, "exe", offload="optimizer=ssd", **golden.size)
compile(golden.config, "plain", **golden.size)
os.mkdir("disk")
run = dict(golden.data, init=golden.weights, steps=2)


def refused(*words, exe="./exe", ssd=None, **faults):
    """A run ends with one error that has all of `words`."""
    environment = dict(os.environ, **(dict(faults, LD_PRELOAD=os.path.abspath("inject.so")) if faults else {}))
    done = subprocess.run([exe, *map(str, flags(dict(run, ssd=ssd)))], capture_output=True, text=True, timeout=60, env=environment)
    check(done.returncode == 1 and done.stderr.count("error: ") == 1 and all(word in done.stderr for word in words),
          f"--ssd {ssd} {faults}: {done.returncode}, {done.stderr}")


refused("--ssd is needed", "keeps tensors in a file on an SSD", "folder of a local disk")
refused("--ssd is for what", "keeps nothing there", "leave it out", exe="./plain", ssd="disk")
refused("--ssd nowhere", "No such file or directory", "name a folder of a local SSD", ssd="nowhere")
pathlib.Path("file").touch()
refused("--ssd file", ssd="file")
refused("--ssd /dev/shm: the folder is in memory (tmpfs)", "compile with --offload optimizer", ssd="/dev/shm")
refused("on a network file system (NFS)", "name a folder of a local SSD", ssd="disk", FAULT_MAGIC="0x6969")
refused("in memory (ramfs)", ssd="disk", FAULT_MAGIC="0x858458F6")
refused("has 4,096 bytes available, but each rank needs", "with more room", ssd="disk", FAULT_ROOM="4096")
refused("cannot create a file there: Read-only file system", "that may be written", ssd="disk", FAULT_READ_ONLY="on")

said = call(["./exe", *flags(dict(run, ssd="disk", metrics="with.jsonl"))], env=dict(os.environ, LD_PRELOAD=os.path.abspath("inject.so"), FAULT_URING="off"))
check("--ssd: the kernel refuses io_uring (Operation not permitted): 8 threads in each direction read and write instead" in said, said)
check("io_uring" not in call(["./exe", *flags(dict(run, ssd="disk", metrics="uring.jsonl"))]), "io_uring is named where it works")
call(["./plain", *flags(dict(run, metrics="without.jsonl"))])
check(rows("with.jsonl") == rows("uring.jsonl") == rows("without.jsonl"), "losses differ")
check(not os.listdir("disk"), f"left on the disk: {os.listdir('disk')}")
