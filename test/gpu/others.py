"""PyTorch and JAX on the benchmarks' shapes, by the scripts of bench/."""
import json
import pathlib
import subprocess
import tempfile
import time

from items import WARMUP, utilisation
from ranks import Broken, Failed, Skipped

SCRIPTS = {"torch": "torch_gpu.py", "jax": "jax_train.py"}  # of bench/
SWEEP = {"steps": 12, "warmup": 4}  # to find out which batch is best


def can_import(session, module):
    probe = {"torch": "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 1)",
             "jax": "import sys, jax; sys.exit(0 if jax.default_backend() == 'gpu' else 1)"}[module]
    try:
        return subprocess.run([session.python, "-c", probe], env=variables(session), capture_output=True).returncode == 0
    except OSError:
        return False


def variables(session, **more):
    return {**session.environment, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", **more}


def call(session, module, run, log, until, batches, environment=(), steps=0, warmup=WARMUP, **flags):
    """What the script of `module` measures for the shape of `run`, and its command line."""
    if not can_import(session, module):
        raise Skipped(f"{session.python} cannot import {module} with a GPU (--python names another)")
    arguments = run["arguments"]
    words = [SCRIPTS[module], run["shape"], "--data", arguments["data"], "--batch", ",".join(map(str, batches)),
             "--seq", run["seq"], "--steps", steps or arguments["steps"], "--warmup", warmup, "--lr", arguments["lr"]]
    for key, value in flags.items():
        words += ["--" + key.replace("_", "-"), value]
    environment = dict(environment)
    log.write(f"$ {' '.join(f'{key}={value}' for key, value in environment.items())} {session.python} "
              f"{' '.join(map(str, words))}\n")
    try:
        done = subprocess.run([session.python, *map(str, words), "--started", str(time.time())], cwd=session.work,
                              capture_output=True, text=True, env=variables(session, **environment),
                              timeout=until - time.monotonic())
    except subprocess.TimeoutExpired as late:
        log.write(str(late.stderr or ""))
        raise Failed("ran out of its time")
    log.write(done.stdout + done.stderr)
    if done.returncode:
        raise Broken("", done.stderr)
    measured = json.loads(done.stdout.splitlines()[-1])
    with session.lock:
        session.results["versions"][module] = measured[module]
    return measured, "python bench/" + " ".join(map(str, words))


def add_row(session, system, run, measured, command, **about):
    """A row of the results; a line about it."""
    ms, tokens, batch = measured["step_ms"], measured["tokens_per_s"], measured["batch"]
    mfu = utilisation(session, {**run, "flops": run["flops"] * batch / run["batch"]}, ms)
    with session.lock:
        session.results["rows"].append(
            {"system": system, "model": run["model"], "seq": run["seq"], "batch": batch, "precision": "bf16", "ranks": 1,
             "step_ms": ms, "tokens_per_s": tokens, "mfu": mfu, "peak_bytes": measured["peak_bytes"], "command": command,
             **about})
    return f"{ms:.1f} ms, {tokens:,.0f} tokens/s" + (f", FLOPs utilisation {mfu:.3f}" if mfu else "")


def sweep_line(batches):
    return ", ".join(f"{one['batch']}: " + (f"{one['tokens_per_s']:,.0f}" if "step_ms" in one else "out of memory")
                     for one in batches)


def torch(session, run, log, until, mode="default", masters="f32", batch=None):
    """`batch` None: the benchmark's; there the first time is with cold caches, as the first start on a machine is."""
    cold = mode == "default" and masters == "f32" and batch is None
    caches = pathlib.Path(tempfile.mkdtemp(dir=session.work)) if cold else session.work / "torch-caches"
    environment = {"TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"), "TRITON_CACHE_DIR": str(caches / "triton")}
    if cold:
        environment.update(TORCHINDUCTOR_FX_GRAPH_CACHE="0", TORCHINDUCTOR_AUTOGRAD_CACHE="0")
    tried = batch or run["batch"]
    measured, command = call(session, "torch", run, log, until, [tried], environment, mode=mode, masters=masters)
    # It keeps more than Meshwright does, so that the same batch may be too much.
    while "step_ms" not in measured and tried > 1:
        log.write(f"batch {tried} does not fit into memory\n")
        tried //= 2
        measured, command = call(session, "torch", run, log, until, [tried], environment, mode=mode, masters=masters)
    if "step_ms" not in measured:
        raise Failed("a batch of 1 does not fit into memory")
    started = {"start_to_first_step_ms": measured["start_to_first_step_ms"]} if cold else {}
    note = add_row(session, "torch.compile", run, measured, command, attention=measured["attention"], mode=mode,
                   masters=masters, **started)
    return f"{note}, attention {measured['attention']}" + \
           (f"; the first step ended {started['start_to_first_step_ms'] / 1e3:.1f} s after the start, cold" if cold else "")


def torch_batches(session, run, log, until):
    """Which batch is best, found with layers compiled one by one; then measured with all of the model compiled."""
    caches = session.work / "torch-caches"
    environment = {"TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"), "TRITON_CACHE_DIR": str(caches / "triton"),
                   "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    measured, _ = call(session, "torch", run, log, until, run["others_batches"], environment, compile="layers", **SWEEP)
    line = sweep_line(measured["batches"])
    session.keep("sweeps", f"torch {run['model']}", measured["batches"])
    if "step_ms" not in measured:
        raise Failed(f"none fits: {line}")
    if measured["batch"] == run["batch"]:
        return f"the benchmark's batch is the best of {line}"
    return f"{torch(session, run, log, until, batch=measured['batch'])}; best of {line}"


def jax(session, run, log, until, batches=None):
    """The benchmark's batch, or which of several is best."""
    more = {} if batches is None else SWEEP
    measured, command = call(session, "jax", run, log, until, batches or [run["batch"]], remat="auto", **more)
    line = sweep_line(measured["batches"])
    if "step_ms" not in measured:
        raise Failed(f"it does not fit into memory: {line}")
    started = {"start_to_first_step_ms": measured["start_to_first_step_ms"]} if batches is None else {}
    note = add_row(session, "jax", run, measured, command, attention=measured["attention"], masters="f32",
                   remat=measured["remat"], **started)
    return note + (", layers computed again" if measured["remat"] else "") + (f"; best of {line}" if batches else "")
