#!/usr/bin/env python3
"""Slurm's daemons, started here for one machine, run a batch script that trains: slurm.py GOLDEN WORK SCRIPT [--all]"""
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, compile, flags, fresh, rows, train

golden = Golden(sys.argv[1])
script = os.path.abspath(sys.argv[3])
work = fresh(sys.argv[2]).resolve()
RUN = dict(golden.data, lr=0.01, shuffle=True)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


# Tasks and their daemons are of this user alone, so that nothing has to be proved to each other (auth/none). Memory and cores are
# not controlled. A job that was queued again waits as long as its credential lived (5 s). Partition `high` preempts jobs of `low`, which have 20 s to end.
host = socket.gethostname()
ports = free_ports(2)
user = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
(work / "state").mkdir()
(work / "slurm.conf").write_text(f"""
ClusterName=meshwright
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=5
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={work}/state
SlurmdSpoolDir={work}/spool
SlurmctldPidFile={work}/slurmctld.pid
SlurmdPidFile={work}/slurmd.pid
SlurmctldLogFile={work}/slurmctld.log
SlurmdLogFile={work}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdParameters=config_overrides
KillWait=20
MessageTimeout=90
SlurmdTimeout=0
NodeName={host} NodeAddr=127.0.0.1 CPUs=2
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 GraceTime=20
PartitionName=high Nodes=ALL PriorityTier=2 PreemptMode=OFF
""")
os.environ["PATH"] += ":/usr/sbin"
os.environ["SLURM_CONF"] = str(work / "slurm.conf")
for name in [name for name in os.environ if name.startswith("SLURM_") and name != "SLURM_CONF"]:
    del os.environ[name]


def wait(what, condition, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            logs = "".join(f"\n{path}:\n{path.read_text()[-2000:]}" for path in sorted(work.glob("*.log")))
            sys.exit(f"FAILED: {what} did not come within {seconds} s\n{shown()}{logs}")
        time.sleep(0.05)


def shown():
    return subprocess.run(["squeue", "-o", "%i %P %T %r"], capture_output=True, text=True).stdout


def job(number, key):
    """A field of a job, such as JobState, as scontrol prints it."""
    words = subprocess.run(["scontrol", "show", "job", number], capture_output=True, text=True).stdout.split()
    return next((word.partition("=")[2] for word in words if word.startswith(key + "=")), "")


def ranks():
    """Processes of the executable."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe") == str(work / "exe") and open(f"/proc/{pid}/stat").read().split()[2] != "Z":
                found.append(int(pid))
        except OSError:
            pass
    return found


def unbroken(steps):
    return train("./exe", 2, metrics="unbroken.jsonl", **dict(RUN, steps=steps))


def submit(name, steps, *more):
    """A job that trains in a folder of its own."""
    folder = work / name
    folder.mkdir()
    run = dict(RUN, steps=steps, metrics="metrics.jsonl", save="save:20")
    words = ["sbatch", "--parsable", "-n2", "-p", "low", "-D", folder, "-o", folder / "log", *more, script, work / "exe", *flags(run)]
    return call(words).strip(), folder


def saved(name):
    """The step of a job's newest checkpoint."""
    return int(os.readlink(work / name / "save/latest").split("-")[1])


def steps_of(folder):
    return len(rows(folder / "metrics.jsonl")) if (folder / "metrics.jsonl").exists() else 0


def restarted(name, stop, want, *more):
    """A job that `stop` stops once it has saved must go on by itself to the losses `want`, those of a run that nothing stops."""
    number, folder = submit(name, len(want), *more)
    wait(f"a checkpoint of {name}", lambda: (folder / "save/latest").is_symlink() and steps_of(folder) > 25)
    before = stop(number)
    check(25 < before < len(want), f"{name}: stopped after {before} steps")
    wait(f"the end of {name}", lambda: job(number, "JobState") == "COMPLETED")
    said = (folder / "log").read_text()
    again = job(number, "Restarts") # More than once where a loaded machine keeps Slurm waiting.
    check(int(again) >= 1 and "goes back into the queue" in said, f"{name} restarted {again} times\n{said}")
    check(rows(folder / "metrics.jsonl") == want, f"{name}: other losses than those of the unbroken run\n{said}")
    print(f"{name}: {before} steps, then restarted, the losses of the unbroken run", flush=True)


def preempt(_):
    """A job of the other partition takes both cores for a second."""
    urgent = call(["sbatch", "--parsable", "-n2", "-p", "high", "-o", work / "urgent", "--wrap", "sleep 1"]).strip()
    wait("the urgent job", lambda: job(urgent, "JobState") == "COMPLETED")
    return saved("preempted")


def kill_rank(_):
    steps = steps_of(work / "killed rank")
    os.kill(max(ranks()), signal.SIGKILL)
    return steps


def time_limit(number):
    """The limit is in two minutes: what --signal asks for, 120 s before it, comes when Slurm looks next, each 30 s."""
    call(["scontrol", "update", f"JobId={number}", "TimeLimit=2"])
    wait("the signal", lambda: job(number, "Restarts") == "1")
    call(["scontrol", "update", f"JobId={number}", "TimeLimit=60"])
    return saved("time limit")


daemons = [subprocess.Popen([program, "-D", "-f", work / "slurm.conf"], stdout=open(f"{program}.out", "w"), stderr=subprocess.STDOUT)
           for program in ("slurmctld", "slurmd")]
try:
    compile(golden.config, "exe", mesh="data=2", batch=4, seq=32)
    losses = unbroken(1000)
    wait("the node", lambda: "idle" in subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True).stdout)

    call(["srun", "--mpi=pmix", "-n2", work / "exe", *flags(dict(RUN, steps=len(losses), metrics="srun.jsonl"))])
    check(rows("srun.jsonl") == losses, "tasks of srun compute other losses than threads")
    print("srun: 2 tasks, the losses of 2 threads", flush=True)

    restarted("preempted", preempt, losses)
    restarted("killed rank", kill_rank, losses)
    if "--all" in sys.argv:
        restarted("time limit", time_limit, unbroken(12000), "--time", "60")

    number, folder = submit("canceled", 100000)
    wait("steps of the canceled job", lambda: steps_of(folder) > 25)
    call(["scancel", number])
    wait("the end of the canceled job", lambda: job(number, "JobState") == "CANCELLED" and not ranks())
    steps = steps_of(folder)
    check(os.readlink(folder / "save/latest") == f"step-{steps:08}", f"canceled after {steps} steps, not saved")
    check(job(number, "Restarts") == "0", "a canceled job was queued again")
    print(f"canceled: saved after {steps} steps, not queued again", flush=True)
finally:
    subprocess.run(["scancel", "-u", user], capture_output=True)
    for daemon in reversed(daemons):
        daemon.terminate()
    for daemon in daemons:
        daemon.wait(timeout=20)
    for pid in ranks():
        os.kill(pid, signal.SIGKILL)
