#!/usr/bin/env python3
"""`--buddy`: ranks and machines that are lost cost one step at most, and the run's losses are those of one that loses none, to the
bit: buddy.py GOLDEN WORK KILLS"""
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, compile, distance, flags, fresh, rows, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
KILLS = int(sys.argv[3])
memory = pathlib.Path(f"/dev/shm/meshwright-buddy-{os.getpid()}")
size = dict(golden.size, batch=12)
compile(golden.config, "exe", mesh="data=3", zero=1, **size)
compile(golden.config, "replicated", mesh="data=3", **size)
compile(golden.config, "fewer", mesh="data=2", zero=1, **size)
moments = random.Random(7)


def ranks(name="exe"):
    """Processes of an executable."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe") == os.path.abspath(name) and open(f"/proc/{pid}/stat").read().split()[2] != "Z":
                found.append(int(pid))
        except OSError:
            pass
    return sorted(found)


def states(folder):
    return sorted(path.name for path in pathlib.Path(folder).glob("step-*"))


def refused(says, **run):
    done = subprocess.run(["./exe", "--ranks", "3", *map(str, flags(dict(golden.data, steps=2, **run)))], capture_output=True, text=True)
    check(done.returncode and says in done.stderr, f"{run}: {done.stderr}, expected {says}")


def refusals():
    refused("--buddy needs --save", buddy=memory)
    refused("the folder is not in memory", buddy="on-disk", save="save")
    refused("is a folder of --save too", buddy=memory, save=memory)
    done = subprocess.run(["meshwright", "run", "-n", "3", "--restarts", "2", "exe", *map(str, flags(dict(golden.data, steps=2, save="none")))]
                          + ["--buddy", str(memory)], capture_output=True, text=True)
    check(done.returncode == 0 and not states(memory), done.stderr)
    (memory / "latest").symlink_to("step-00000002")
    done = subprocess.run(["meshwright", "run", "-n", "3", "--restarts", "2", "exe", *map(str, flags(dict(golden.data, steps=2, save="other")))]
                          + ["--buddy", str(memory)], capture_output=True, text=True)
    check(done.returncode and f"--restarts: --buddy {memory} has the checkpoint" in done.stderr, done.stderr)
    shutil.rmtree(memory)


def of_others():
    """States of a run that saves elsewhere, and checkpoints of --save, stay: a run that is given their folder says so."""
    once = ["./exe", "--ranks", 3, *flags(dict(golden.data, metrics="one.jsonl", save="one-save"))]
    run_until([*once, "--buddy", memory], "one.jsonl", 0)
    left = states(memory)
    check(left, "no state is left")
    home = os.path.abspath("one-save")
    for more in ({}, {"resume": "auto"}):
        refused(f"--buddy {memory}: a state is there of the run that saves in {home}", buddy=memory, save="another", **more)
    check(states(memory) == left, "the state of another run is gone")
    # Its own run goes on, also with another folder before it, and leaves nothing.
    done = int(left[-1].split("-")[1])
    says = call([*once[:3], *flags(dict(golden.data, steps=done + 1, resume="auto", buddy=memory, save="another"))] + ["--save", "one-save"])
    check(f"resumed from {memory}/{left[-1]}" in says and not os.listdir(memory), f"{says}{os.listdir(memory)}")
    shutil.copytree("one-save", memory, symlinks=True, dirs_exist_ok=True)
    left = states(memory)
    for more in ({}, {"resume": "auto"}):
        refused(f"--buddy {memory}: the checkpoints there are not --buddy's", buddy=memory, save="another", **more)
    check(states(memory) == left and left, "checkpoints are gone")
    shutil.rmtree(memory)
    print("states of others: refused, and still there")


def in_use():
    """The second of two runs with one folder says so, and the first one goes on."""
    first = subprocess.Popen(["./exe", "--ranks", "3", *map(str, flags(dict(golden.data, steps=10**7, save="first", buddy=memory)))], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 90
    try:
        while not states(memory):
            check(time.monotonic() < deadline and first.poll() is None, "no state")
            time.sleep(0.005)
        refused(f"--buddy {memory}: process {first.pid} on ", buddy=memory, save="second")
        was = states(memory)
        while states(memory) == was:
            check(time.monotonic() < deadline and first.poll() is None, "the first run does not go on")
            time.sleep(0.005)
        first.send_signal(signal.SIGTERM)
        check(first.wait(timeout=60) == 143 and not os.listdir(memory), "a run that is stopped leaves its state")
    finally:
        first.kill()
        first.wait()
    print("two runs with one folder: refused")


def no_space():
    """Where there is no room for a state the run ends with one error, and no state is seen. A limit on the size of files stands
    for a tmpfs that is full."""
    limited = ["bash", "-c", 'ulimit -f 16; exec "$@"', "bash", "./exe", "--ranks", "3", *flags(dict(golden.data, steps=3, save="full", buddy=memory))]
    done = subprocess.run([*map(str, limited)], capture_output=True, text=True, timeout=60)
    check(done.returncode == 1 and "--buddy: keeping the state after step 0 in memory: cannot write" in done.stderr and done.stderr.count("error:") == 1, done.stderr)
    check(not states(memory), f"a state is left: {os.listdir(memory)}")
    shutil.rmtree(memory)
    print("no space: one error")


def time_of_states():
    """A checkpoint that is written beside training has the time of its state: --resume auto must not take it for newer than the state in
    memory after a later step."""
    call(["./exe", "--ranks", 3, *flags(dict(golden.data, steps=2, save="beside:1", async_save=True))])
    coarse = 5  # CLOCK_REALTIME_COARSE, by which the kernel stamps files; on a busy machine its ticks may be late
    ticks = 3 * time.clock_getres(coarse) * 1e9
    for path in map(pathlib.Path, ("beside/step-00000001", "beside/step-00000002")):
        state, first = (path / "state.json").stat().st_mtime_ns, min(file.stat().st_mtime_ns for file in path.glob("*.safetensors"))
        check(state < first + ticks, f"{path}: its state is {(state - first) / 1e6} ms newer than the first of its tensors")


def whole(steps, exe="exe"):
    """The rows of a run that loses nothing."""
    train(f"./{exe}", 3, metrics="whole.jsonl", steps=steps, **golden.data)
    return rows("whole.jsonl")


def run_until(command, metrics, before, exe="exe"):
    """Starts a run, kills its last rank after some steps, and returns how many are logged and what it said at its start."""
    process = subprocess.Popen([*map(str, command), "--steps", str(10**7)], stdout=open("log", "w"), stderr=subprocess.STDOUT)
    done = before
    deadline = time.monotonic() + 90
    try:
        while done < before + 3:
            check(time.monotonic() < deadline and process.poll() is None, "no steps: " + open("log").read())
            time.sleep(0.002)
            done = open(metrics).read().count("\n") if os.path.exists(metrics) else 0
        time.sleep(moments.uniform(0, 0.1))
        os.kill(ranks(exe)[-1], signal.SIGKILL)
        process.wait(timeout=60)
    finally:
        for pid in ranks(exe):
            os.kill(pid, signal.SIGKILL)
        if process.poll() is None:
            process.kill()
            process.wait()
    return open(metrics).read().count("\n"), open("log").read()


def lose(name, start, machines, kills, folders, exe="exe"):
    """A run that loses a rank again and again, with all of its machine if there are several. `folders`: of its machines, in memory."""
    run = dict(golden.data, metrics=f"{name}.jsonl", save=f"{name}-save", resume="auto")
    command = [*start, *flags(run)]
    done, most, redone = 0, 0, 0
    for kill in range(kills):
        done, log = run_until(command, run["metrics"], done, exe)
        if machines > 1:
            shutil.rmtree(folders[kill % machines])
        last = max(state for folder in folders if os.path.exists(folder) for state in states(folder))
        for folder in folders:
            for path in pathlib.Path(folder).glob("step-*"):
                most = max(most, sum(file.stat().st_size for file in path.glob("**/*.safetensors")))
            # More than two states are never there, of which one is being written.
            there = [path.name for path in pathlib.Path(folder).glob("*step-*")]
            check(len(there) <= 2, f"{folder}: {there}")
        lost = done - int(last.split("-")[1])
        check(lost <= 1, f"{name}: kill {kill}: {done} steps are made, but memory has {last}")
        redone += lost
        done -= lost
        kept = open(run["metrics"]).readlines()[:done]
        open(run["metrics"], "w").writelines(kept)
    process = subprocess.run([*map(str, command), "--steps", str(done + 2)], capture_output=True, text=True, timeout=120)
    check(process.returncode == 0, process.stderr)
    check(re.search(rf"resumed from {memory}\S*/step-{done:08}", process.stdout), process.stdout)
    check(os.path.isdir(f"{name}-save/step-{done:08}"), "the state from memory is not saved")
    if machines > 1:
        check(re.search(r"note: --buddy: machines got [1-9]\d* files of step-", process.stderr), process.stderr)
    says = re.search(r"--buddy: the state after each step is in the memory of (.*), up to ([\d,]+) bytes of each", process.stdout)
    check(says, process.stdout)
    check(says[1] == ("this machine alone" if machines == 1 else f"{machines} machines, and of each one's next"), says[0])
    # Of the tensors; headers come on top.
    said = int(says[2].replace(",", ""))
    headers = 1 << 16
    check(said / 2 <= most <= said / 2 + headers if machines == 1 else most <= 1.5 * said + headers, f"{most} bytes, said are {said} for two")
    check(rows(run["metrics"]) == whole(done + 2, exe), f"{name}: the steps differ from those of a run that loses nothing")
    check(not any(states(folder) for folder in folders), "a run that has ended leaves states in memory")
    check(os.readlink(f"{name}-save/latest") == f"step-{done + 2:08}", "the last step is not saved")
    print(f"{name}: {kills} kills, {redone} steps made again, {done + 2} steps with the losses of the unbroken run")


def elastic():
    """A run that loses a rank goes on with fewer from memory: without a checkpoint on a disk."""
    run = dict(golden.data, metrics="elastic.jsonl", save="elastic", buddy=memory / "elastic", steps=40)
    process = subprocess.Popen(["meshwright", "run", "--mpi", "-n", "3", "--restarts", "1", "--elastic", "fewer", "exe", *map(str, flags(run))],
                               stdout=open("log", "w"), stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 90
    try:
        while not states(memory / "elastic") or states(memory / "elastic")[-1] < "step-00000010":
            check(time.monotonic() < deadline and process.poll() is None, open("log").read())
            time.sleep(0.005)
        os.kill(ranks()[-1], signal.SIGKILL)
        code = process.wait(timeout=90)
    finally:
        for pid in [*ranks(), *ranks("fewer")]:
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.wait()
    log = open("log").read()
    check(code == 0 and f"restart 1 of 1 with 2 ranks, from {memory}/elastic/step-" in log, log)
    made = {row["step"]: row for row in rows("elastic.jsonl")}
    worst = distance([made[step] for step in range(40)], whole(40))
    check(worst <= 1e-5, f"losses differ by {worst}")
    print(f"elastic: 3 and 2 ranks from memory, losses within {worst:.1e}")


def more_than_one():
    """Two machines of three are lost: what is left is no whole state, and the run goes on from its disk."""
    os.makedirs(memory / "two", exist_ok=True)
    run = dict(golden.data, metrics="two.jsonl", save="two:2", keep=2, resume="auto")
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", 3, "./machine", memory / "two", *flags(run)]
    done, log = run_until(command, run["metrics"], 0)
    for machine in (0, 1):
        shutil.rmtree(memory / "two" / str(machine))
    process = subprocess.run([*map(str, command), "--steps", str(done + 2)], capture_output=True, text=True, timeout=120)
    check(process.returncode == 0 and "note: --buddy: the machines do not have all parts of step-" in process.stderr, process.stderr)
    check(re.search(r"resumed from two/step-", process.stdout), process.stdout)
    check([row for row in rows("two.jsonl")] == whole(done + 2), "the steps differ from those of a run that loses nothing")
    print("two machines of three: from the disk")


def disagree():
    """Ranks that do not all go on from memory say so."""
    open("some", "w").write("#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = 0 ] || more=\"--buddy $1\"\nshift\nexec ./exe $more \"$@\"\n")
    os.chmod("some", 0o755)
    run = flags(dict(golden.data, steps=2, save="some-save", resume="auto"))
    done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", "./some", str(memory / "some"), *map(str, run)],
                          capture_output=True, text=True, timeout=60)
    check(done.returncode and "--buddy with --resume auto is given to some ranks, but not to rank 0" in done.stderr, done.stderr)


try:
    printed = call(["meshwright", "inspect", "exe"])
    checkpoint = int(re.search(r"^checkpoint +([\d,]+) bytes", printed, re.M)[1].replace(",", ""))
    check(re.search(rf"^buddy +--buddy keeps {2 * checkpoint:,} bytes.* or {4 * checkpoint:,} bytes", printed, re.M), printed)
    refusals()
    of_others()
    in_use()
    no_space()
    time_of_states()
    threads = memory / "threads"
    lose("threads", ["./exe", "--ranks", 3, "--buddy", threads], 1, KILLS, [threads])
    processes = memory / "processes"
    lose("processes", ["meshwright", "run", "--mpi", "-n", 3, "./exe", "--buddy", processes], 1, max(KILLS // 2, 1), [processes])
    # A folder for each rank, as on machines of their own.
    open("machine", "w").write("#!/bin/sh\ndir=$1/$OMPI_COMM_WORLD_RANK\nshift\nexec ./exe \"$@\" --buddy $dir\n")
    os.chmod("machine", 0o755)
    lose("machines", ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", 3, "./machine", memory / "machines"], 3, max(KILLS // 2, 3),
         [memory / "machines" / str(rank) for rank in range(3)])
    if KILLS > 4:
        lose("replicated", ["./replicated", "--ranks", 3, "--buddy", threads], 1, KILLS, [threads], "replicated")
    more_than_one()
    elastic()
    disagree()
finally:
    shutil.rmtree(memory, ignore_errors=True)
