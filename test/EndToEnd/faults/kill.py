#!/usr/bin/env python3
"""A rank that is killed ends all of them within 10 seconds, after a SIGTERM with the last step saved: kill.py GOLDEN WORK"""
import os
import signal
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/..")
from harness import Golden, check, compile, flags, free_port, fresh

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


def end(kind, starts, expected, environments=({},), most=10):
    """Starts processes, kills one rank with `kind` after some steps, and checks that the others end within `most` seconds."""
    if os.path.exists("m.jsonl"):
        os.remove("m.jsonl")
    processes = [subprocess.Popen([*map(str, start), *arguments, *more], stdout=open("log", "w"), stderr=subprocess.STDOUT,
                                  env={**os.environ, **environment})
                 for start, more in starts for environment in environments]
    try:
        deadline = time.monotonic() + 60
        while not os.path.exists("save/latest") or not os.path.exists("m.jsonl") or os.path.getsize("m.jsonl") < 3000:
            check(time.monotonic() < deadline and processes[0].poll() is None, "no steps: " + open("log").read())
            time.sleep(0.02)
        check(len(ranks()) == expected, f"{len(ranks())} processes, expected {expected}")
        os.kill(sorted(ranks())[-1], kind)
        began = time.monotonic()
        codes = [process.wait(timeout=10) for process in processes]
        while ranks() and time.monotonic() < began + 10:
            time.sleep(0.05)
        seconds = time.monotonic() - began
        check(not ranks(), f"ranks are left after {seconds:.1f} s")
        check(seconds < most, f"{seconds:.1f} s, allowed are {most}")
        check(all(codes), f"exit status {codes}")
        print(f"{kind.name}, {expected} processes: {seconds:.1f} s, exit status {codes}")
        if kind == signal.SIGTERM:
            check(all(code == 128 + kind for code in codes), f"exit status {codes}")
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


end(signal.SIGKILL, [([], ["--ranks", "3"])], 1)
end(signal.SIGTERM, [([], ["--ranks", "3"])], 1)
end(signal.SIGKILL, [(["meshwright", "run", "--mpi", "-n", 3], [])], 3)
port = str(free_port())
tcp = [{"RANK": str(rank), "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port} for rank in range(3)]
# No launcher: each rank sees for itself that another has gone, and waits for none. A second, twice for a busy machine.
end(signal.SIGKILL, [([], [])], 3, tcp, most=2)
end(signal.SIGTERM, [([], [])], 3, tcp)
