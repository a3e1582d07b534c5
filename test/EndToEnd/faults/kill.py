#!/usr/bin/env python3
"""A rank that is killed ends all of them within 10 seconds, after a SIGTERM with the last step saved; one that is killed while a
checkpoint is written beside training loses none that was written: kill.py GOLDEN WORK [KILLS]"""
import os
import random
import signal
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/..")
from harness import Golden, check, compile, flags, fresh, rows

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
compile(golden.config, "exe", mesh="data=3", batch=6, seq=32, overlap="on")  # so that collectives are under way
arguments = [os.path.abspath("exe"), *map(str, flags(dict(golden.data, steps=10**7, metrics="m.jsonl", save="save",
                                                         save_every=20)))]


def ranks():
    """Processes of the executable."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe") == arguments[0] and open(f"/proc/{pid}/stat").read().split()[2] != "Z":
                found.append(int(pid))
        except OSError:
            pass
    return found


def end(kind, start, more, expected):
    """Starts ranks, kills one with `kind` after some steps, and checks that the others end within 10 seconds."""
    if os.path.exists("m.jsonl"):
        os.remove("m.jsonl")
    process = subprocess.Popen([*map(str, start), *arguments, *more], stdout=open("log", "w"), stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 60
        while not os.path.exists("save/latest") or not os.path.exists("m.jsonl") or os.path.getsize("m.jsonl") < 3000:
            check(time.monotonic() < deadline and process.poll() is None, "no steps: " + open("log").read())
            time.sleep(0.02)
        check(len(ranks()) == expected, f"{len(ranks())} processes, expected {expected}")
        os.kill(sorted(ranks())[-1], kind)
        began = time.monotonic()
        code = process.wait(timeout=10)
        while ranks() and time.monotonic() < began + 10:
            time.sleep(0.05)
        seconds = time.monotonic() - began
        check(not ranks(), f"ranks are left after {seconds:.1f} s")
        check(seconds < 10, f"{seconds:.1f} s, allowed are 10")
        check(code, f"exit status {code}")
        print(f"{kind.name}, {expected} processes: {seconds:.1f} s, exit status {code}")
        if kind == signal.SIGTERM:
            check(code == 128 + kind, f"exit status {code}")
            steps = len(open("m.jsonl").readlines())
            check(os.readlink("save/latest") == f"step-{steps:08}", f"not saved after {steps} steps")
    finally:
        for pid in ranks():
            os.kill(pid, signal.SIGKILL)
    # What was saved is whole and goes on.
    last = int(os.readlink("save/latest").split("-")[1])
    done = subprocess.run([arguments[0], "--ranks", "3", *map(str, flags(dict(golden.data, resume="save", steps=last + 1)))],
                          capture_output=True, text=True)
    check(done.returncode == 0, "the checkpoint that was left: " + done.stderr)


def latest(folder):
    """The name of the newest checkpoint: a link, or a file's contents with --save-commit file."""
    path = f"{folder}/latest"
    return os.readlink(path) if os.path.islink(path) else open(path).read().strip()


def kill_while_saving(start, more, kills, moments, **how):
    """Starts a run that saves after every step beside training, kills it at a random moment, and starts it again with the same
    command, again and again. Each time the last checkpoint is at most one behind the copy that was last taken; in the end
    all steps are, to the bit, those of a run that was never killed. The first folder is saved into after each step, the other
    after every third. `how` says how checkpoints are saved."""
    folder = "-".join(["async", more[-1] if more else "mpi", *how.values()])
    run = dict(golden.data, metrics=f"{folder}.jsonl", async_save=True, keep=3, resume="auto", **how)
    command = [*map(str, start), arguments[0], *more, *map(str, flags(run)), "--save", f"{folder}/fast:1", "--save",
               f"{folder}/slow:3"]
    done = 0
    for kill in range(kills):
        process = subprocess.Popen([*command, "--steps", str(10**7)], stdout=open("log", "w"), stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 60
        before = done
        try:
            # After the third step's line the first one's checkpoint is complete.
            while done < before + 3:
                check(time.monotonic() < deadline and process.poll() is None, "no steps: " + open("log").read())
                time.sleep(0.002)
                # A line that is half written does not count.
                done = open(run["metrics"]).read().count("\n") if os.path.exists(run["metrics"]) else 0
            time.sleep(moments.uniform(0, 0.2))
        finally:
            for pid in ranks():
                os.kill(pid, signal.SIGKILL)
            process.kill()
            process.wait()
        done = open(run["metrics"]).read().count("\n")
        last = int(latest(f"{folder}/fast").split("-")[1])
        # When step n - 1 was logged the copy after step n - 1 had been taken, and so the one before it was on the disk.
        check(last >= done - 2, f"kill {kill}: {done} steps are made, but the last checkpoint is of step {last}")
        done = last
        # So that the next line is one of the next start.
        kept = open(run["metrics"]).readlines()[:last]
        open(run["metrics"], "w").writelines(kept)
    process = subprocess.run([*command, "--steps", str(done + 3)], capture_output=True, text=True)
    check(process.returncode == 0, process.stderr)
    check(f"resumed from {folder}/fast/step-{done:08}" in process.stdout, process.stdout)
    check(latest(f"{folder}/fast") == latest(f"{folder}/slow") == f"step-{done + 3:08}",
          "the last step is not saved in both folders")
    whole = subprocess.run([arguments[0], "--ranks", "3", *map(str, flags(dict(golden.data, steps=done + 3, metrics="whole.jsonl")))],
                           capture_output=True, text=True)
    check(whole.returncode == 0, whole.stderr)
    check(rows(run["metrics"]) == rows("whole.jsonl"), "the steps differ from those of a run that was not killed")
    whole = subprocess.run(["meshwright", "checkpoint", "verify", f"{folder}/fast", f"{folder}/slow"], capture_output=True, text=True)
    check(whole.returncode == 0 and "damaged" not in whole.stdout, whole.stdout + whole.stderr)
    print(f"{kills} kills while saving, {done} steps{''.join(f', {name} {value}' for name, value in how.items())}")


for kind in (signal.SIGKILL, signal.SIGTERM):
    end(kind, [], ["--ranks", "3"], 1)
    end(kind, ["meshwright", "run", "--mpi", "-n", 3], [], 3)
def restart(more, kills, moments):
    """`run --restarts` goes on by itself after ranks that are killed, and makes the steps of a run that nobody kills."""
    folder = f"restarted-{len(more)}"
    run = flags(dict(golden.data, metrics=f"{folder}.jsonl", steps=60, save=f"{folder}:2", keep=2))
    command = ["meshwright", "run", *more, "-n", "3", "--restarts", str(kills), arguments[0], *map(str, run)]
    process = subprocess.Popen(command, stdout=open("log", "w"), stderr=subprocess.STDOUT)
    said = "the run ended with status"
    for kill in range(kills):
        deadline = time.monotonic() + 60
        latest = f"{folder}/latest"
        steps = lambda: int(os.readlink(latest).split("-")[1]) if os.path.lexists(latest) else 0
        goal = 10 * (kill + 1)
        while steps() < goal or open("log").read().count(said) < kill:
            check(time.monotonic() < deadline and process.poll() is None, open("log").read())
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.02))
        for pid in ranks()[-1:]:
            os.kill(pid, signal.SIGKILL)
    code = process.wait(timeout=180)
    log = open("log").read()
    check(code == 0 and f"restart {kills} of {kills}, from {folder}/step-" in log, log)
    whole = subprocess.run([arguments[0], "--ranks", "3", *map(str, flags(dict(golden.data, steps=60, metrics="whole.jsonl")))],
                           capture_output=True, text=True)
    check(whole.returncode == 0, whole.stderr)
    check(rows(f"{folder}.jsonl") == rows("whole.jsonl"), "the steps differ from those of a run that was not killed")
    print(f"{kills} restarts")


kills = int(sys.argv[3])
# Of 240 kills, 300 in all.
kill_while_saving([], ["--ranks", "3"], kills // 2, random.Random(0))
kill_while_saving([], ["--ranks", "3"], kills // 4, random.Random(4), save_format="sharded")
kill_while_saving([], ["--ranks", "3"], kills // 4, random.Random(5), save_format="sharded", save_commit="file")
kill_while_saving(["meshwright", "run", "--mpi", "-n", 3], [], kills // 8, random.Random(1))
kill_while_saving(["meshwright", "run", "--mpi", "-n", 3], [], kills // 8, random.Random(6), save_format="sharded")
restart([], 2, random.Random(2))
restart(["--mpi"], 1, random.Random(3))
