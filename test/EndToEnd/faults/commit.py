#!/usr/bin/env python3
"""Checkpoints that a file `commit` completes, and whose checkpoints --keep counts: commit.py GOLDEN WORK"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, compile, flags, fresh, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
compile(golden.config, "exe", mesh="data=2", zero=1, **golden.size)
run = dict(golden.data, lr=1e-3)
by_file = dict(save_commit="file")


def words(**options):
    return ["./exe", "--ranks", "2", *map(str, flags(options))]


def refused(says, **options):
    done = subprocess.run(words(**dict(run, **options)), capture_output=True, text=True, timeout=60)
    check(done.returncode == 1 and done.stderr.count("error: ") == 1, f"{options}: {done.stderr}")
    check(says in done.stderr, f"{options}: {done.stderr}, expected {says}")


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()}


want = train("./exe", 2, save="renamed", save_every=2, steps=6, **run)
for more in ({}, {"async_save": True}, {"save_format": "sharded"}, {"save_format": "sharded", "async_save": True}):
    folder = "-".join(["file", *more])
    check(train("./exe", 2, save=folder, save_every=2, steps=6, **run, **by_file, **more) == want, f"{folder}: the steps differ")
    check(open(f"{folder}/latest").read() == "step-00000006\n" and not os.path.islink(f"{folder}/latest"), f"{folder}: latest")
    check(sorted(os.listdir(folder)) == ["latest", "step-00000002", "step-00000004", "step-00000006"], os.listdir(folder))
    files = tree(f"{folder}/step-00000004")
    check("commit" in files and ".uncommitted" not in files, files.keys())
    check([row["step"] for row in train("./exe", 2, metrics="resumed.jsonl", resume=folder, steps=8, **run)] == [6, 7], f"{folder}: latest is not resumed")
    found = call(["meshwright", "checkpoint", "verify", folder])
    check(found.count(": whole: ") == 3, found)
    call(["meshwright", "checkpoint", "diff", "renamed", folder])
check(train("./exe", 2, init="file", steps=1, **run) == train("./exe", 2, init="renamed", steps=1, **run), "--init of a folder of --save")
check(tree("file/step-00000004").keys() - tree("renamed/step-00000004").keys() == {"commit"}, "files beside commit differ")

# What is not complete is refused, passed over and removed.
shutil.copytree("file", "cut")
os.remove("cut/step-00000006/commit")
refused("has no file commit, so the run that wrote it ended before it was complete: name another checkpoint", resume="cut", steps=8)
check("damaged: cut/step-00000006 has no file commit" in subprocess.run(["meshwright", "checkpoint", "verify", "cut"], capture_output=True,
                                                                        text=True).stdout, "verify")
pathlib.Path("cut/step-00000004/commit").write_text("0" * 32 + "\n")
said = call(words(**run, save="cut", resume="auto", steps=6, **by_file))
for part in ("passes over the checkpoint cut/step-00000006: cut/step-00000006 has no file commit",
             "passes over the checkpoint cut/step-00000004: cut/step-00000004/commit does not have the checksum of state.json",
             "resumed from cut/step-00000002"):
    check(part in said, f"{part} is not in\n{said}")
check(call(["meshwright", "checkpoint", "verify", "cut/step-00000006"]).count("whole"), "the step is not saved again")
for state in (None, "step-00000004/state.json"):
    shutil.copytree("file/step-00000004", "cut/step-00000009")
    pathlib.Path("cut/step-00000009/.uncommitted").touch()
    os.remove("cut/step-00000009/commit")
    if not state:
        os.remove("cut/step-00000009/state.json")
    call(words(**run, save="cut", resume="auto", steps=6, **by_file))
    check(not os.path.exists("cut/step-00000009"), "what a killed run left is still there")
# One whose commit was written, but whose mark was not removed, is complete.
shutil.copytree("file/step-00000004", "cut/step-00000009")
pathlib.Path("cut/step-00000009/.uncommitted").touch()
call(words(**run, save="cut", resume="auto", steps=6, **by_file))
check(os.path.exists("cut/step-00000009/commit"), "a complete checkpoint is removed")
# The first checkpoint of a run that was killed while it wrote it, alone: the run begins anew.
for kind in ("tensors", "state"):
    first = pathlib.Path(f"first-{kind}/step-00000001")
    first.mkdir(parents=True)
    (first / ".uncommitted").touch()
    for name in ("model.safetensors", "state.json")[:2 if kind == "state" else 1]:
        shutil.copy(f"file/step-00000004/{name}", first)
    check(train("./exe", 2, metrics=f"{kind}.jsonl", save=first.parent, resume="auto", steps=2, **run, **by_file) == want[:2], f"first checkpoint, {kind}")
    check(not first.exists(), "what a killed run left is still there")

# One that was renamed into its place, and that a run has begun to remove.
shutil.copytree("renamed", "marked", symlinks=True)
for step in (4, 6):
    pathlib.Path(f"marked/step-{step:08}/.uncommitted").touch()
os.remove("marked/latest")
refused("has no file commit", resume="marked/step-00000004", steps=8)
said = call(words(**run, save="marked", resume="auto", steps=2, **by_file))
check("resumed from marked/step-00000002" in said, said)
check(sorted(path.name for path in pathlib.Path("marked").glob("step-*")) == ["step-00000002"], os.listdir("marked"))

# Commands say that a checkpoint is not complete, or refuse it.
shutil.copytree("file/step-00000004", "open/state")
os.remove("open/state/commit")
os.mkdir("open/tensors")
shutil.copy("file/step-00000004/model.safetensors", "open/tensors")
pathlib.Path("open/tensors/.uncommitted").touch()
for folder, says in (("open/state", "open/state has no file commit"), ("open/tensors", "open/tensors has no state.json")):
    for command in (["convert", folder, "-o", "out"], ["merge", "file", folder, "-o", "out"], ["diff", "file", folder],
                    ["surgery", folder, "-o", "out", "--reset-optimizer"]):
        done = subprocess.run(["meshwright", "checkpoint", *command], capture_output=True, text=True, timeout=60)
        check(done.returncode == 2 and says in done.stderr and not os.path.exists("out"), f"{command}: {done.stdout}{done.stderr}")
    check(f"not complete: {says}" in call(["meshwright", "checkpoint", "inspect", folder]), f"inspect {folder}")
    done = subprocess.run(["meshwright", "checkpoint", "verify", folder], capture_output=True, text=True, timeout=60)
    check(done.returncode == 1 and f"damaged: {says}" in done.stdout, f"verify {folder}: {done.stdout}")
call(["meshwright", "checkpoint", "convert", "cut/step-00000009", "-o", "converted"])
check(not os.path.exists("converted/.uncommitted"), "the mark is converted")

# A run that makes no step keeps the checkpoint from which it goes on, which may be the only one.
for how in ({}, by_file, {**by_file, "async_save": True}, {"save_format": "sharded", **by_file}):
    folder = "once-" + "-".join(map(str, how.values()))
    call(words(**run, save=f"{folder}:2", steps=4, **how))
    for resumed, step in ((folder, 4), (f"{folder}/step-00000002", 2)):
        state = pathlib.Path(f"{folder}/step-{step:08}/state.json")
        was = state.stat()
        call(words(**run, save=f"{folder}:2", resume=resumed, steps=step, **how))
        check(state.stat().st_mtime_ns == was.st_mtime_ns and state.stat().st_ino == was.st_ino, f"{folder}: step {step} is saved again")
        latest = pathlib.Path(f"{folder}/latest")
        check((os.readlink(latest) if latest.is_symlink() else latest.read_text().strip()) == f"step-{step:08}", f"{folder}: latest")

# An error names the last good checkpoint if there is one.
for good in (True, False):
    folder = f"good-{good}"
    os.mkdir(folder)
    shutil.copytree("file/step-00000004", f"{folder}/step-00000004")
    pathlib.Path(f"{folder}/latest").write_text("step-00000004\n")
    if not good:
        os.remove(f"{folder}/step-00000004/commit")
    pathlib.Path(f"{folder}/step-00000001").touch()
    done = subprocess.run(words(**run, save=folder, steps=1, **by_file), capture_output=True, text=True, timeout=60)
    check(done.returncode == 1 and "cannot remove" in done.stderr, done.stderr)
    check((f"the last good one is {folder}/latest" in done.stderr) == good, f"{good}: {done.stderr}")

# What --keep cannot remove stays, and the run goes on.
call(words(**run, save="stays:2", steps=4, **by_file))
os.mkdir("stays/step-00000002/.uncommitted")  # which is no file that can be written
done = subprocess.run(words(**run, save="stays:2", keep=1, resume="auto", steps=8, **by_file), capture_output=True, text=True, timeout=60)
check(done.returncode == 0 and "note: --keep: cannot remove stays/step-00000002: Is a directory" in done.stderr, done.stderr)
there = sorted(path.name for path in pathlib.Path("stays").glob("step-*"))
check(there == ["step-00000002", "step-00000008"], f"stays: {there}")

# Surgery renames what it writes.
call(["meshwright", "checkpoint", "surgery", "file", "-o", "changed", "--reset-optimizer"])
check("commit" not in tree("changed") and "whole" in call(["meshwright", "checkpoint", "verify", "changed"]), "surgery")
train("./exe", 2, resume="changed", steps=8, **run)
refused("--save-commit", save="none", steps=1, save_commit="never")
refused("--save-commit needs --save", steps=1, save_commit="file")

# --keep leaves what appears while the run saves there, now and after later starts.
for how in ({}, by_file):
    folder = "kept-" + "".join(how.values())
    process = subprocess.Popen(words(**run, save=f"{folder}:5", keep=2, steps=10**7, **how), stdout=open("log", "w"), stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 60

    def newest():
        steps = [int(path.name[5:]) for path in pathlib.Path(folder).glob("step-*") if path.name < "step-9"]
        return max(steps, default=0)

    while newest() < 10:
        check(time.monotonic() < deadline and process.poll() is None, open("log").read())
        time.sleep(0.01)
    shutil.copytree("renamed/step-00000002", f"{folder}/step-99999999")
    copied = newest()
    while newest() < copied + 25:
        check(time.monotonic() < deadline and process.poll() is None, open("log").read())
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=60)
    there = sorted(path.name for path in pathlib.Path(folder).glob("step-*"))
    check(len(there) == 3 and "step-99999999" in there, f"{folder}: {there}")
    check(open(f"{folder}/.others").read() == "step-99999999\n", ".others")
    last = newest()
    call(words(**run, save=f"{folder}:1", keep=1, resume="auto", steps=last + 3, **how))
    there = sorted(path.name for path in pathlib.Path(folder).glob("step-*"))
    check(there == [f"step-{last + 3:08}", "step-99999999"], f"{folder}: {there}")
