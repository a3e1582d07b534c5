#!/usr/bin/env python3
"""Ways to fail of executables for GPUs, on a driver that looks on: failures.py FOLDER GOLDEN

Whatever goes wrong on one rank, all end within ten seconds, with a message that says what the
rank was at, where that comes from and for whom it waited; before and after the step has become a
CUDA graph. And the ways in which launchers start ranks."""
import argparse
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time

# What launchers of this test say is not for the ranks it starts.
LAUNCHERS = re.compile("(RANK|WORLD_SIZE|LOCAL_RANK|MASTER_ADDR|MASTER_PORT|(OMPI|PMIX|PMI|SLURM)_.*)$")
KILLED_SECONDS = 10  # after which no rank is left
# A collective: its name and number, its group, and where it comes from.
COLLECTIVE = r"(all_reduce|all_gather|reduce_scatter) \(collective \d+, group \[data\], \d+ x f32, at .+\)"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("golden", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    data = options.folder / "tokens.bin"
    data.write_bytes(bytes(range(64)) * 1024)
    fake = pathlib.Path(os.environ["MESHWRIGHT_BUILD"]) / "runtime" / "test" / "fake_gpu"
    meeting = options.folder / "meeting"

    def compile(name, *flags):
        path = options.folder / name
        subprocess.run(["meshwright", "compile", str(options.golden / "gpt2-tiny" / "config.json"), "--target", "cuda",
                        *flags, "-o", str(path)], check=True, stdout=subprocess.DEVNULL)
        return path

    def environment(**more):
        shutil.rmtree(meeting, ignore_errors=True)
        meeting.mkdir()
        kept = {key: value for key, value in os.environ.items() if not LAUNCHERS.match(key)}
        return {**kept, "LD_LIBRARY_PATH": str(fake), "FAKE_GPUS": "2", "FAKE_GPU_MEETING": str(meeting),
                "MESHWRIGHT_TIMEOUT": "3", "OMP_NUM_THREADS": "1", **more}

    def arguments(path, steps):
        return [str(path), "--data", str(data), "--tokens", "u8", "--steps", str(steps), "--lr", "1e-3"]

    def ranks(path, steps, variables, flags=(), **more):
        """Starts two ranks as processes; their exit codes and what they say."""
        common, port = environment(**more), free_port()
        files = [open(options.folder / f"said-{rank}", "w+") for rank in range(2)]
        processes = [subprocess.Popen([*arguments(path, steps), *flags], env={**common, **variables(rank, port)},
                                      stdout=subprocess.DEVNULL, stderr=files[rank]) for rank in range(2)]
        until, ended = time.monotonic() + 60, [0.0, 0.0]
        while not all(ended) and time.monotonic() < until:
            for rank, process in enumerate(processes):
                if not ended[rank] and process.poll() is not None:
                    ended[rank] = time.monotonic()
            time.sleep(0.01)
        codes = [process.wait(1) for process in processes]
        between[:] = [abs(ended[0] - ended[1])]
        said = []
        for file in files:
            file.seek(0)
            said.append(file.read())
            file.close()
        return codes, said

    between = []  # seconds from the end of one of the two to that of the other

    def torchrun(rank, port):
        return {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port}

    def slurm(rank, port):
        return {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), "SLURM_NTASKS": "2",
                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}

    def openmpi(rank, port):
        return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
                "OMPI_COMM_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}

    def matches(words, text):
        return re.search(words, text, re.S)

    path = compile("data", "--mesh", "data=2")
    for label, variables in (("RANK", torchrun), ("SLURM", slurm), ("OMPI", openmpi)):
        codes, said = ranks(path, 3, variables)
        assert codes == [0, 0] and "captured a CUDA graph" in said[0], (label, codes, said)
        print(f"{label}: ranks meet", flush=True)
    done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2",
                           *arguments(path, 3)], env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "captured a CUDA graph" in done.stderr, done
    print("mpirun: ranks meet", flush=True)

    # What ranks save comes together over their connections to rank 0.
    zero, save = compile("zero", "--mesh", "data=2", "--zero", "3"), options.folder / "save"
    shutil.rmtree(save, ignore_errors=True)
    codes, said = ranks(zero, 2, torchrun, ["--save", str(save)])
    assert codes == [0, 0] and os.readlink(save / "latest") == "step-00000002", (codes, said)
    codes, said = ranks(zero, 3, torchrun, ["--resume", str(save), "--save", str(save)])
    assert codes == [0, 0] and os.readlink(save / "latest") == "step-00000003", (codes, said)
    print("RANK: ranks save and resume", flush=True)

    # Tasks of which each sees GPUs of its own, also where their numbers are greater.
    def isolated(rank, port):
        return {**slurm(rank, port), "SLURM_LOCALID": str(2 + rank), "FAKE_GPU_FIRST": str(2 * rank)}

    codes, said = ranks(path, 3, isolated)
    assert codes == [0, 0], (codes, said)
    codes, said = ranks(path, 3, isolated, FAKE_GPUS="1")
    assert codes == [0, 0], (codes, said)
    codes, said = ranks(path, 3, slurm, FAKE_GPUS="1")
    assert all(codes) and "error: ranks 0, 1 have the same 1 GPU (GPU-00000000-" in said[0], (codes, said)
    print("SLURM: tasks that see other GPUs each", flush=True)

    # Of the first call, and of one in a graph.
    for when, call in (("first call", 1), ("in a graph", 200)):
        codes, said = ranks(path, 1000, torchrun, FAKE_GPU_FAULT=f"stall:-1:{call}")
        assert all(codes), (codes, said)
        for rank in range(2):
            assert matches(f"rank {rank} .*waiting for [34] s in {COLLECTIVE} for rank {1 - rank}", said[rank]), said
        assert "ncclCommAbort" in "".join(said), said
        print(f"stall, {when}: both ranks end", flush=True)

        codes, said = ranks(path, 1000, torchrun, FAKE_GPU_FAULT=f"error:0:{call}")
        assert all(codes), (codes, said)
        assert matches(r"error: rank 0: NCCL's communication of group \d+ \(data\): remote process exited.*\n"
                       f"  rank 0 .*{COLLECTIVE} for rank 1", said[0]), said
        print(f"NCCL's error, {when}: both ranks end", flush=True)

        codes, said = ranks(path, 1000, torchrun, FAKE_GPU_FAULT=f"kill:1:{call}")
        assert codes[0] > 0 and codes[1] == -9, (codes, said)
        assert matches(f"rank 1 .*rank 0 .*{COLLECTIVE} for rank 1", said[0]), said
        assert between[0] <= KILLED_SECONDS, between
        print(f"killed, {when}: the other ends", flush=True)

    codes, said = ranks(path, 3, torchrun, FAKE_GPU_FAULT="init:1:1")
    assert all(codes) and "waiting for 3 s in the start of NCCL" in said[0] and "for rank 1" in said[0], (codes, said)
    print("NCCL that does not start: both ranks end", flush=True)

    pipe = compile("pipe", "--mesh", "pipe=2", "--microbatches", "4", "--batch", "8")
    codes, said = ranks(pipe, 1000, torchrun, FAKE_GPU_FAULT="stall:1:5")
    assert all(codes) and matches(r"rank 1 .*waiting for [34] s in (recv|send) \(collective \d+.* at .+\) for rank 0",
                                  said[1]), said
    print("message that never comes: both ranks end", flush=True)
    codes, said = ranks(pipe, 1000, torchrun, FAKE_GPU_FAULT="kill:1:20")
    assert codes[0] > 0 and codes[1] == -9 and between[0] <= KILLED_SECONDS, (codes, said, between)
    assert matches(r"rank 1 .*rank 0 .*(recv|send) \(collective \d+.* at .+\) for rank 1", said[0]), said
    print("killed, with messages: the other ends", flush=True)

    def alone(path, steps, *more, **variables):
        return subprocess.run([*arguments(path, steps), *more], env=environment(**variables), capture_output=True,
                              text=True, timeout=120)

    path = compile("alone")
    done = alone(path, 50, FAKE_GPU_FAULT="cuda:0:30")
    assert done.returncode == 1 and matches("CUDA_ERROR_ILLEGAL_ADDRESS", done.stderr), done
    done = alone(path, 50, FAKE_GPU_FAULT="cuda:0:30", MESHWRIGHT_SYNCHRONOUS="1")
    assert done.returncode == 1 and matches(r"rank 0, \S+ \(at .+\): the GPU: CUDA_ERROR_ILLEGAL_ADDRESS",
                                            done.stderr), done
    assert "NVML" not in done.stderr, done
    print("illegal address: the op is named on demand", flush=True)
    for variables, words in (({"FAKE_NVML_XID": "79"}, ["NVML: Xid 79, the GPU has fallen off the bus"]),
                             ({"FAKE_NVML_XID": "13", "FAKE_NVML_ECC": "2"}, ["NVML: Xid 13, NVIDIA's list", "NVML: 2 errors of memory"]),
                             ({"FAKE_NVML_ECC": "3", "FAKE_NVML_MIG": "1"}, ["NVML: 3 errors of memory"])):
        done = alone(path, 50, FAKE_GPU_FAULT="cuda:0:30", **variables)
        assert done.returncode == 1 and all(word in done.stderr for word in ["CUDA_ERROR_ILLEGAL_ADDRESS", *words]), done
        assert done.stderr.count("NVML: ") == len(words), done
    print("trouble of the GPU: told where an error ends the run", flush=True)

    # An error of the host ends the run while the GPU computes a step, in memory that must stay until then.
    shorter, metrics = options.folder / "shorter.bin", options.folder / "metrics.jsonl"
    shutil.copy(data, shorter)
    metrics.unlink(missing_ok=True)
    with subprocess.Popen([str(path), "--data", str(shorter), "--tokens", "u8", "--steps", "100000", "--lr", "1e-3", "--metrics",
                           str(metrics)], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as process:
        while process.poll() is None and not (metrics.exists() and metrics.read_text().count("\n") > 3):
            time.sleep(0.01)
        os.truncate(shorter, 100)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1 and "shorter.bin" in said and "fake GPU" not in said.replace("fake GPU: ncclCommAbort", ""), said
    print("an error of the host: the arena stays", flush=True)

    # A launch of the first step, one in a graph, one behind which the queue is full.
    op = r"\S+ \(at .+\)"
    for when, launch, more in (("first step", 30, {}), ("in a graph", 1000, {}), ("full queue", 30, {"FAKE_GPU_QUEUE": "5"}),
                               ("each op waited for", 30, {"MESHWRIGHT_SYNCHRONOUS": "1"})):
        done = alone(path, 1000, FAKE_GPU_FAULT=f"hang:0:{launch}", **more)
        behind = r"\n" if "MESHWRIGHT_SYNCHRONOUS" in more else r" or one of the 31 ops behind it; MESHWRIGHT_SYNCHRONOUS=1"
        assert done.returncode == 1 and matches(rf"waiting for [2345] s in .*; the GPU is at {op}{behind}", done.stderr), done
        assert "error: the device of rank 0 made no progress for 3 s" in done.stderr, done
        print(f"hang, {when}: the run ends and says where", flush=True)
    done = alone(compile("narrow", "--precision", "bf16"), 3, FAKE_GPU_FAULT="hang:0:1")
    assert done.returncode == 1 and matches(r"waiting for [2345] s in attn\.q", done.stderr), done
    print("hang, before the first step: the run ends and says where", flush=True)

    done = alone(path, 3, FAKE_GPU_NO_CAPTURE="1")
    assert done.returncode == 0 and "it is run without: cuStreamEndCapture" in done.stderr, done
    done = alone(path, 3, "--cuda-graphs", "on", FAKE_GPU_NO_CAPTURE="1")
    assert done.returncode == 1 and "--cuda-graphs off runs it without" in done.stderr, done
    print("no capture: told, or refused where it was asked for", flush=True)


main()
