#!/usr/bin/env python3
"""`run --elastic`: a run that loses a rank goes on with fewer ranks, and with all of them when they are back; its losses are
those of the unbroken run: elastic.py GOLDEN WORK"""
import os
import signal
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, compile, distance, flags, fresh, rows, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
size = dict(golden.size, batch=12)
for ranks in (4, 3, 2):
    compile(golden.config, f"on{ranks}", mesh=f"data={ranks}", zero=1, **size)
compile(golden.config, "other", mesh="data=3", **dict(size, batch=6))
STEPS = 60
run = dict(golden.data, lr=1e-3, seed=2, steps=STEPS)


def refused(*words, says):
    done = subprocess.run(["meshwright", "run", *words], capture_output=True, text=True, timeout=60)
    check(done.returncode and says in done.stderr, f"{words}: {done.stderr}, expected {says}")


last = ["on4", *map(str, flags(dict(run, save="none")))]
refused("-n", "4", "--elastic", "on3", *last, says="--elastic needs --restarts K")
refused("-n", "4", "--restarts", "1", "--elastic", "other", *last, says="--elastic other computes other numbers than on4: batch is 6, not 12")
refused("-n", "4", "--restarts", "1", "--elastic", "on2", "--elastic", "on3", *last, says="--elastic on3 is for 3 ranks, the executable before it, on2, for 2")
refused("-n", "3", "--restarts", "1", "--elastic", "on2", *last, says="-n 3: 'on4' is for 4 ranks")
refused("-n", "4", "--restarts", "1", "--elastic", "none", *last, says="none")

whole = train("./on4", 4, metrics="whole.jsonl", **run)


def ranks_of(name):
    """Processes of an executable."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe") == os.path.abspath(name) and open(f"/proc/{pid}/stat").read().split()[2] != "Z":
                found.append(int(pid))
        except OSError:
            pass
    return sorted(found)


# A SIGUSR2 right before the second start, when there is no process that it could be passed on to.
open("early.c", "w").write("""#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
pid_t fork(void) {
  static int count;
  if (!strcmp(program_invocation_short_name, "meshwright") && ++count == 2)
    kill(getpid(), SIGUSR2);
  return ((pid_t (*)(void))dlsym(RTLD_NEXT, "fork"))();
}
""")
call(["gcc", "-shared", "-fPIC", "early.c", "-o", "early.so", "-ldl"])


def elastic(more, each, early=False):
    """4 ranks, of which one is lost, 3 ranks, and 4 again; `each` says how many processes a rank is. `early`: they are back
    before the 3 ranks have started."""
    folder = f"mpi-{each}-{early}"
    command = ["meshwright", "run", *more, "-n", "4", "--restarts", "1", "--elastic", "on3", "--elastic", "on2", "on4",
               *map(str, flags(dict(run, save=f"{folder}:5", metrics=f"{folder}.jsonl", keep=3)))]
    process = subprocess.Popen(command, stdout=open("log", "w"), stderr=subprocess.STDOUT,
                               env=dict(os.environ, LD_PRELOAD=os.path.abspath("early.so")) if early else None)

    def reach(step, name):
        deadline = time.monotonic() + 90
        while True:
            latest = int(os.readlink(f"{folder}/latest").split("-")[1]) if os.path.lexists(f"{folder}/latest") else 0
            if latest >= step and ranks_of(name):
                return
            check(time.monotonic() < deadline and process.poll() is None, open("log").read())
            time.sleep(0.005)

    try:
        reach(10, "on4")
        found = ranks_of("on4")
        check(len(found) == (4 if each else 1), f"{len(found)} processes of on4")
        os.kill(found[-1], signal.SIGKILL)
        if not early:
            reach(25, "on3")
            process.send_signal(signal.SIGUSR2)
        code = process.wait(timeout=90)
    finally:
        for name in ("on4", "on3", "on2"):
            for pid in ranks_of(name):
                os.kill(pid, signal.SIGKILL)
        if process.poll() is None:
            process.kill()
    log = open("log").read()
    check(code == 0, log)
    for says in ("a rank is lost: restart 1 of 1 with 3 ranks, from ", "ranks are back: the run goes on with 4 ranks, from "):
        check(says in log, f"{says} is not in\n{log}")
    # Steps after the last checkpoint are made again.
    made = {row["step"]: row for row in rows(f"{folder}.jsonl")}
    have = [made[step] for step in range(STEPS)]
    worst = distance(have, whole)
    check(worst <= 1e-5, f"losses differ by {worst}")
    print(f"{'MPI' if each else 'threads'}: 4, 3 and 4 ranks: losses within {worst:.1e} of the unbroken run's")


elastic(["--mpi"], 1)
elastic([], 0)
elastic([], 0, early=True)
