"""The processes of a run."""
import json
import os
import re
import socket
import subprocess
import time

import machine

# What other launchers say of this process is not for the ranks that are started here.
LAUNCHERS = re.compile("(RANK|WORLD_SIZE|LOCAL_RANK|MASTER_ADDR|MASTER_PORT|(OMPI|PMIX|PMI|SLURM)_.*)$")
CAPTURED = 3  # steps after which all memory is in use: libraries are loaded in the first, a graph made in the second
BETWEEN_LOOKS = 6  # steps; asking nvidia-smi may disturb one
SHARES_GPUS = 23000  # the version of NCCL from which on ranks may share a GPU


class Failed(Exception):
    pass


class Broken(Failed):
    """A process ended with an error, or not at all: others of its kind may meet the same. `said` is all its output."""

    def __init__(self, words, said):
        super().__init__(words + said.strip()[-800:])
        self.said = said


class Skipped(Exception):
    pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Ranks:
    """Started; killed when this is left."""

    def __init__(self, session, run, log, prefix=(), look=False, **changed):
        name = f"{session.number()}"
        self.session, self.log, self.look = session, log, look
        self.metrics = session.work / f"metrics-{name}.jsonl"
        self.most, self.looked, self.first_step_ms, self.states = 0, 0, None, []
        ranks, threads = run["ranks"], session.launch == "threads"
        arguments = dict(run["arguments"], metrics=self.metrics.name, **changed)
        if threads and ranks > 1:
            arguments["ranks"] = ranks
        self.command = [*prefix, "./" + run["executable"]]
        for key, value in arguments.items():
            self.command += ["--" + key.replace("_", "-"), str(value)]
        port, sharing = free_port(), -(-ranks // max(1, session.gpus))
        self.processes, self.outputs = [], []
        self.began = time.monotonic()
        for rank in range(1 if threads else ranks):
            more = {"MESHWRIGHT_TIMEOUT": "60"}
            if session.synchronous():
                more["MESHWRIGHT_SYNCHRONOUS"] = "1"
            if ranks > 1 and not threads:
                more.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1",
                            MASTER_PORT=str(port), NCCL_DEBUG="WARN")
            if sharing > 1 and session.target == "cuda":
                more.update(MESHWRIGHT_RANKS_PER_GPU=str(sharing))
                if not threads and session.nccl >= SHARES_GPUS:
                    more.update(NCCL_MULTI_RANK_GPU_ENABLE="1")
                elif not threads:
                    more.update(NCCL_HOSTID=f"rank{rank}", NCCL_NET="Socket", NCCL_SOCKET_IFNAME="lo",
                                NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1")
            if session.target == "cpu" and ranks > 1:
                more["OMP_NUM_THREADS"] = "1"
            environment = {key: value for key, value in session.environment.items() if not LAUNCHERS.match(key)}
            words = " ".join(f"{key}={value}" for key, value in more.items())
            log.write(f"$ {words} {' '.join(self.command)}\n")
            self.outputs.append(session.work / f"output-{name}-{rank}")
            self.processes.append(subprocess.Popen(self.command, cwd=session.work, env={**environment, **more},
                                                   stdout=open(self.outputs[-1], "w"), stderr=subprocess.STDOUT))
        log.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        for rank in range(len(self.outputs)):
            self.log.write(f"--- rank {rank}, exit status {self.processes[rank].returncode}\n{self.text(rank)}\n")

    def text(self, rank):
        return self.outputs[rank].read_text(errors="replace")

    def running(self):
        return [process for process in self.processes if process.poll() is None]

    def watch(self):
        """When the first step ended; where asked for, the memory in use."""
        if self.session.target == "cpu":
            self.most = max(self.most, sum(machine.resident_bytes(process.pid) for process in self.running()))
        if self.first_step_ms is not None and not self.look:
            return
        rows = len(self.rows())
        if rows and self.first_step_ms is None:
            self.first_step_ms = 1e3 * (time.monotonic() - self.began)
        if self.look and rows >= CAPTURED + self.looked * BETWEEN_LOOKS:
            self.looked += 1
            state = machine.state()
            self.most = max(self.most, state.pop("memory_bytes", 0))
            self.states += [state] if state else []

    def wait(self, until):
        while self.running():
            self.watch()
            if time.monotonic() > min(until, self.session.end):
                raise Broken("ran out of its time: ", self.text(0))
            time.sleep(0.01)
        for rank, process in enumerate(self.processes):
            if process.returncode:
                raise Broken(f"rank {rank} ended with {process.returncode}: ", self.text(rank))

    def rows(self):
        if not self.metrics.exists():
            return []
        lines = self.metrics.read_text().split("\n")[:-1]  # The last may still be written.
        return [json.loads(line) for line in lines]
