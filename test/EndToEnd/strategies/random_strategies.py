#!/usr/bin/env python3
"""Trains random models with random flags on threads or MPI, against the same model on one rank: losses, norms of
gradients, losses on evaluation data, and some go on from the other's checkpoint. random_flags.py draws the flags.

  random_strategies.py WORK FIRST COUNT [cuda] [-j N]

Seeds FIRST .. FIRST+COUNT-1, N at once. With `cuda` the many ranks are those of an executable for GPUs; without one in the
environment of test/Runtime/Cuda/FakeGpu.cpp, as threads. The end says what was refused, by kind, and the largest
differences.
"""
import argparse
import array
import collections
import contextlib
import io
import json
import math
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import traceback
import unittest.mock

sys.path.append(sys.path[0] + "/..")
from harness import ROOT, check, check_traffic, flags, fresh, rows
from random_flags import check_reach, draw
from random_configs import BIASED, DECODERS, ENCODERS, RECURRENT, SIGMOIDS, experts_of, has_norms, has_routers, heads_of, random_config, set_dropout

# What may be refused: a line of docs/limits.md, and what the message says.
DOCUMENTED = {
    "more pipeline chunks than layers": "fewer than the .* parts of the pipeline",
    "fewer microbatches than a schedule needs": "needs .* microbatches or more",
    "mesh axis `expert` for models without experts": "finds no experts to divide|cannot divide .* experts",
    "mesh axis `context` with `--context-parallel none`": "add --context-parallel",
    "`--context-parallel` and `--context-balance` for models without attention": "has no attention, and channels of recurrences",
    "`--context-parallel ring` and `hybrid` for attention with distances": "finds attention with distances",
    "gradients of keys that propagation divides otherwise than a ring sums them": "gradients of keys and values that are not summed",
    "context=RxU without `hybrid`": "has parts, which --context-parallel hybrid is for",
    "heads that `--context-parallel ulysses` or `hybrid` cannot divide": "cannot divide .* heads of attention|no attention with several heads",
    "`--remat every:K` of IR past phase `train`": "--remat every:",
    "`--sequence-parallel` or `context` with sequences of one token": "cannot divide sequences of one token",
    "more devices along `context` than tokens": "more devices than sequences have tokens",
    "`--zero` 1 and 2 with tensor=RxCxD": "does not go with tensor=RxCxD",
    "`--zero` for parameters without a dimension but layers": "--zero .* but layers",
    "a batch that the devices times microbatches do not divide": "batch .* (does not divide by|cannot be divided into)",
    "more devices along `tensor`, or sharing state by `--zero`": "more than the|more devices|than .* elements",
    "`--loss-parts` that do not divide a rank's tokens; more than one where no loss can be divided": "--loss-parts .* (does not divide|no loss can be divided)",
    "`--attention cudnn` for calls that are not cuDNN's": "cannot be cuDNN's",
    "`--data-sync parameter-server` with `--optimizer muon` or `normuon`": "parameter-server does not go with --optimizer muon",
    "`--data-sync parameter-server` with `--optimizer schedule-free-adamw`": "parameter-server does not go with --optimizer schedule-free-adamw",
    "`--optimizer adamw-8bit` on a mesh that divides a row's several blocks": "states of 8 bits.* would (cut|be padded)",
    "with `--cuts` that leave the last chunk the head alone": "has none that can wait, as where it has the head alone",
    "`--grad-compression` of models without a matrix that it compresses": "nothing would be compressed",
    "`--offload parameters` of a model without repeated layers": "no layer has parameters that could be offloaded",
    "padding sequences, layers, or an index inside a dimension": "padding|cannot be padded",
}
# The largest relative differences of a precision: of losses, of norms of gradients; and the most by which rounding to it
# changes a number, half a unit in its last place. Less would change no weight that is stored in the type.
ALLOWED = {"f32": (1e-5, 5e-5, 2**-24), "bf16": (2e-2, 1e-1, 2**-8), "fp16": (5e-3, 5e-2, 2**-11)}
BOUND = {"loss": 0, "grad_norm": 1, "eval_loss": 0, "eval_bits_per_byte": 0, "aux_loss": 0}  # Which of the two a key has.
# The first phase whose IR has what a flag says: it is not said again when compiling goes on from there.
DECIDED = {"train": ("dropout", "batch", "seq", "source-seq", "microbatches", "batch-ramp", "mlm", "mask-id", "loss", "dpo-beta", "z-loss", "router-bias-rate", "expert-buffer", "expert-parts", "redundant-experts", "packed",
                     "aux-loss", "aux-loss-coef", "aux-scope", "aux-counting-pass", "mup-base"),
           "step": ("optimizer", "optimizer-groups", "muon-scale", "muon-coefficients", "ema", "eval-ema", "lora", "freeze", "frozen-weights", "precision", "fp8-recipe",
                    "grad-dtype", "grad-compression", "moments-dtype", "residuals", "cuts"),
           "dist": ("mesh", "zero", "sequence-parallel", "tensor-2d", "data-sync", "explain-sharding", "context-parallel", "grad-reduce-dtype"),
           "local": ("context-balance", "loss-parts"),
           "stages": ("remat",),
           "schedule": ("schedule", "collective-algorithm", "collective-matmul"),
           "exec": ("overlap", "attention", "deterministic", "epilogues", "replay", "masters", "offload", "offload-buffer")}
# What says something of the plan, which earlier phases do not have.
OF_PLANS = ("report", "assert", "memory-limit", "dump-ir")


class Refused(Exception):
    """The compiler said no, as docs/limits.md says it may."""


class Wrong(Exception):
    """What must not be."""


def command(words, **more):
    """Runs it; its standard output and errors together."""
    words = [str(word) for word in words]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **more)
    if done.returncode:
        # Lines about padding are long, and may be behind the one that says what is wrong.
        said = "\n".join(line[:1000] for line in done.stdout.splitlines()[-40:])
        raise Wrong(f"{' '.join(words)}\nexited with {done.returncode}:\n{said}")
    return done.stdout


def compile(model, output, options):
    words = ["meshwright", "compile", model, "-o", output, *flags(options)]
    try:
        return command(words)
    except Wrong as error:
        said = re.search(r"^meshwright: error: (.*)", str(error), re.MULTILINE | re.DOTALL)
        for kind, message in DOCUMENTED.items() if said else ():
            if re.search(message, said[1]):
                raise Refused(kind) from None
        raise


# --- what is drawn besides flags -----------------------------------------------


def random_model(d):
    # Heads that context and tensor parallelism divide are rare, and so are experts that their axis divides: more
    # configurations are drawn for them.
    divided = d.context_heads * d.sizes["tensor"] if d["context-parallel"] == "ulysses" or d.context_parts else 1
    for _ in range(200 if divided > 1 or d.sizes["expert"] > 1 else 1):
        family = d.pick(list(ENCODERS if d["mlm"] else DECODERS))
        config = random_config(d.pick, family, d.layers, vocabularies=[31, 37, 64, 97, 257])
        heads = heads_of(config) % divided == 0
        experts = d.sizes["expert"] == 1 or (experts_of(config) and experts_of(config) % d.sizes["expert"] == 0)
        if (heads and experts) or d.chance(100):
            break
    # Every sixth has recurrences or short convolutions, without what is of routers; of those with axis `context`, which they divide in a way of
    # their own, every other.
    if not d["mlm"] and d.recurs(range(2 if d.sizes["context"] > 1 else 6)) == 0:
        config = random_config(d.recurs, d.recurs(list(RECURRENT)), d.layers, vocabularies=[31, 37, 64, 97, 257])
        for name in ("aux-loss", "aux-loss-coef", "aux-scope", "aux-counting-pass", "z-loss", "router-bias-rate"):
            d[name] = None
        if config["model_type"] == "mamba2":  # It has no attention.
            d["context-parallel"] = d["context-balance"] = None
        d.run["expert-tokens-every"] = d.run["idle-expert-steps"] = None
    set_dropout(config, 0.1 if d.chance(4) else 0.0)
    if not has_routers(config):
        d["z-loss"] = d.run["expert-tokens-every"] = d.run["idle-expert-steps"] = None
    if not has_routers(config) or "zero_expert_num" in config:
        d["redundant-experts"] = d.run["place-experts-every"] = None
    if not has_routers(config) or config["model_type"] not in BIASED:
        d["router-bias-rate"] = None
    if not has_norms(config) and d["freeze"]:
        d["freeze"] = "*{wte,embed}*"
    if not has_routers(config):
        d["aux-loss"] = d["aux-loss-coef"] = d["aux-scope"] = d["aux-counting-pass"] = None
    elif (config["model_type"] in SIGMOIDS or config.get("expert_selection_fn") == "sigmoid") and d.is_set("aux-loss", "hf", "switch", "gshard"):
        d["aux-loss"], d["aux-scope"], d["aux-counting-pass"] = "sequence", None, None
    elif len(set(config.get("moe", {}).get("num_experts", []))) > 1 and d.is_set("aux-loss", "hf"):
        d["aux-loss"] = "switch"  # That of transformers is of all layers together.
    return config


def write_tokens(d, path, vocabulary, sequences):
    """Random tokens of the type that --tokens says, for a file of so many sequences and half of one."""
    type = d.run["tokens"] or "u16"
    generator = random.Random(path)
    ids = [generator.randrange(min(vocabulary, 256 if type == "u8" else vocabulary))
           for _ in range(int((sequences + 0.5) * d["seq"]) + 1)]
    with open(path, "wb") as file:
        header = {"u16": (20240520, 1), "u32": (20240801, 7)}.get(type)
        if header and d.chance(3):  # llm.c's.
            file.write(struct.pack("<256i", *header, len(ids), *[0] * 253))
        array.array({"u8": "B", "u16": "H", "u32": "I"}[type], ids).tofile(file)
    return len(ids)


def write_mask(path, tokens):
    """Says at random which of a file's tokens count. The second one does: files without a target are refused."""
    generator = random.Random(path)
    pathlib.Path(path).write_bytes(bytes(at == 1 or generator.random() < 0.6 for at in range(tokens)))


def write_starts(path, tokens, sequence):
    """Where documents of up to two sequences begin. The first one has a target, its second token."""
    generator, starts = random.Random(path), [0]
    while (at := starts[-1] + generator.randint(1 if starts[1:] else 2, 2 * sequence)) < tokens:
        starts.append(at)
    array.array("Q", starts).tofile(open(path, "wb"))


# --- compiling ------------------------------------------------------------------


def as_recipe(d, options):
    """The options with some of them in a file."""
    moved = [name for name in options if name not in ("emit", "output") and d.chance(2)]
    text = "".join(f"{name} = {json.dumps(options[name])}\n" for name in moved)
    pathlib.Path("recipe.toml").write_text(text)
    return {"recipe": "recipe.toml", **{name: value for name, value in options.items() if name not in moved}}


def tight_budget(d, options):
    """What the smallest plan of `--remat auto` needs, sometimes a little more."""
    try:
        return compile("config.json", "many", dict(options, **{"memory-limit": "1B", "emit": "exec"})) and "1B"
    except Wrong as error:
        found = re.search(r"nothing fits .* needs ([\d,]+)", str(error))
        if not found:
            raise
    return str(int(int(found[1].replace(",", "")) * d.pick([1, 1.02, 1.2, 2]))) + "B"


def compile_many(d, config):
    options = {name: value for name, value in d.items() if value is not None and name not in ("recipe", "emit")}
    if options.get("memory-limit") == "TIGHT":
        options["memory-limit"] = tight_budget(d, {name: value for name, value in options.items() if name not in OF_PLANS})
        if d.chance(3):
            options["remat"] += ":" + options.pop("memory-limit")
    compiler = as_recipe if d["recipe"] else lambda d, options: options
    if not d["emit"]:
        compile("config.json", "many", compiler(d, options))
        return
    stages = list(DECIDED)
    done = [name for stage in stages[:stages.index(d["emit"]) + 1] for name in DECIDED[stage]]
    auto = options.get("remat", "").startswith("auto")
    first = {name: value for name, value in options.items() if name not in OF_PLANS or (auto and name == "memory-limit")}
    if d["emit"] in ("train", "step"):
        first.pop("explain-sharding", None)
    compile("config.json", "many.mlir", compiler(d, dict(first, emit=d["emit"])))
    rest = {name: value for name, value in options.items() if name not in done}
    if auto and "remat" in done:
        rest.pop("memory-limit", None)
    compile("many.mlir", "many", rest)


# --- training -------------------------------------------------------------------


def start(exe, d, ranks, options):
    """Trains and returns the rows of its metrics. What is for many ranks alone says how they start."""
    if exe == "one":  # Which keeps all in memory.
        options = {name: value for name, value in options.items() if name != "ssd"}
    words = flags(dict(options, metrics=f"{exe}.jsonl"))
    pathlib.Path(f"{exe}.jsonl").unlink(missing_ok=True)  # A resumed run would go on with it.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if exe == "one":
        try:
            command(["./one", *words], env=environment)
        except Wrong as error:
            # A row of zeros makes each norm multiply its gradient by 1 / sqrt(eps).
            if "and the gradient norm inf" in str(error):
                raise Refused("a random model whose gradients overflow, on one rank too") from None
            raise
    elif d.run["ranks"] or d.cuda:
        command(["./many", *words, "--ranks", ranks], env=environment)
    else:
        command(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", ranks, "./many", *words], env=environment)
    return rows(f"{exe}.jsonl")


def save_first(d):
    """Saves the initial weights of one rank. Adapters begin as nothing, so the merged model is the base."""
    given = {name: d.run[name] for name in ("tokens", "seed", "documents")}
    given["save-merged" if d["lora"] else "save"] = "first"
    start("one", d, 1, dict(given, data="data.bin", steps=0))


def first_weights(d):
    return "first/model.safetensors" if d["lora"] else "first/latest/model.safetensors"


def skipped(steps):
    """Of each step, whether its update was left out because gradients overflowed."""
    return [row.get("skipped") for row in steps]


def differences(have, want):
    """Of each step, the relative differences by key; what is no such number must be the same."""
    if len(have) != len(want):
        raise Wrong(f"{len(have)} steps, expected {len(want)}")
    found = []
    for a, b in zip(have, want):
        # How often rows of tokens travelled, and how evenly ranks share attention, depends on the mesh; strategies/experts.test
        # and golden/packed.test have the numbers.
        a, b = ({key: value for key, value in row.items() if key not in ("expert_rounds", "attention_imbalance")} for row in (a, b))
        if a.keys() != b.keys():
            raise Wrong(f"a step has {a}, expected {b}")
        # The last bit of a score may decide what a token chooses, not how many choices there are.
        a, b = (dict(row, expert_tokens={layer: sum(counts) for layer, counts in row.get("expert_tokens", {}).items()})
                for row in (a, b))
        numbers = [key for key in BOUND if key in a and None not in (a[key], b[key])]
        for key in a:
            if key not in numbers and a[key] != b[key]:
                raise Wrong(f"{key} is {a[key]}, expected {b[key]}: {a}, {b}")
        # A step that masks no token has no loss.
        found.append({key: 0 if a[key] == b[key] else abs(a[key] - b[key]) / abs(b[key]) for key in numbers})
    return found


class Scatter:
    """How far the losses and norms of one rank move when its initial weights change by half a unit in the last place of
    the run's precision at most: what rounding alone does to this model. Some random models turn the last bit of a weight
    into the third digit of a loss, and no two programs that add in another order agree better there. (An ensemble of that
    kind judges ports of a climate model: Baker et al., 2015.) If a run is one more of that kind, all others of RUNS stay
    below it once in RUNS + 1 times."""
    RUNS = 600

    def __init__(self, d, run, want):
        self.d, self.want = d, want
        self.run = {name: value for name, value in run.items() if name not in ("save", "save-every", "keep", "save-format", "save-commit", "async-save")}
        self.most, self.runs = [{} for _ in want], 0

    def most_of(self, step, key, value):
        """The most that `key` has moved at a step, of as many runs as it takes to reach `value`."""
        while not self.most[step].get(key, 0) >= value and self.runs < self.RUNS:
            self.add_run()
        return self.most[step].get(key, 0)

    def add_run(self):
        if "init" not in self.run and not self.runs:
            save_first(self.d)
        half_unit = ALLOWED[self.d["precision"] or "f32"][2]
        change_last_bits(first_weights(self.d), "changed.safetensors", half_unit, random.Random(self.runs))
        have = start("one", self.d, 1, dict(self.run, init="changed.safetensors"))
        self.runs += 1
        if skipped(have) != skipped(self.want):
            return  # Its gradients overflow in other steps: it is at other weights.
        for row, found in zip(self.most, differences(have, self.want)):
            row.update({key: max(row.get(key, 0), value) for key, value in found.items()})


def change_last_bits(source, target, most, generator):
    """Copies a file of f32 tensors, each number times 1 + x, |x| <= `most`, without the metadata (the checksums)."""
    data = pathlib.Path(source).read_bytes()
    start = 8 + struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    if any(entry["dtype"] != "F32" for entry in header.values()):
        raise Wrong(f"{source} has other numbers than f32")
    numbers = array.array("f", data[start:])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    changed = array.array("f", (x * (1 + generator.uniform(-most, most)) for x in numbers))
    pathlib.Path(target).write_bytes(struct.pack("<Q", len(text)) + text + changed.tobytes())


def hold(have, want, bounds, scatter, first=0):
    """The largest differences within bounds, by key. A difference beyond its bound must not exceed what rounding alone
    makes of that step (`scatter`, of which the rows begin at `first`); the largest such quotient is the second result."""
    worst, share = dict.fromkeys(BOUND, 0), 0
    for step, found in enumerate(differences(have, want)):
        for key, value in found.items():
            if value <= bounds[BOUND[key]]:
                worst[key] = max(worst[key], value)
                continue
            most = scatter.most_of(first + step, key, value)
            if not value <= most:
                lines = "\n".join(f"  {a.get(key)} {b.get(key)}" for a, b in zip(have, want))
                raise Wrong(f"{key} is off by {value:.1e} at row {step}, rounding alone makes {most:.1e}:\n{lines}")
            share = max(share, value / most)
    return worst, share


def start_both(d, run, ranks, more):
    """The metrics of one rank and of many. A rank's part of a sum can fit f16 where the sum, or another part, does not:
    then some skip a step that others do not, up to as many times apart in scale as there are parts. Such runs begin again
    at half the scale."""
    parts = ranks * (d["microbatches"] or 1)
    for halvings in range(parts.bit_length() + 1):
        if halvings:
            run["initial-loss-scale"] = run.get("initial-loss-scale", 65536) / 2
        saves = {exe: {"save": f"saved-{exe}"} if d.run["save"] else {} for exe in ("one", "many")}
        for save in saves.values():
            shutil.rmtree(save.get("save", ""), ignore_errors=True)
        want = start("one", d, 1, dict(run, **saves["one"]))
        have = start("many", d, ranks, dict(run, **saves["many"], **more))
        if skipped(have) == skipped(want):
            break
    return have, want


def run_seed(seed, target):
    """The precision of a seed, its largest differences within bounds, and what `hold` says of those beyond. Raises Refused
    or Wrong."""
    d = draw(seed, target)
    config = random_model(d)
    json.dump(config, open("config.json", "w"))
    shared = ("batch", "seq", "optimizer", "optimizer-groups", "muon-scale", "muon-coefficients", "ema", "eval-ema", "lora", "freeze", "frozen-weights", "precision", "grad-dtype",
              "moments-dtype", "grad-compression", "dropout", "mlm", "mask-id", "z-loss",
              "router-bias-rate", "packed", "aux-loss", "aux-loss-coef", "aux-scope")
    print(f"seed {seed}: {json.dumps(config)} {' '.join(flags(d))} -- {' '.join(flags(d.run))}", flush=True)
    compile_many(d, config)
    # The smaller batches of a ramp are of whole microbatches.
    ramped = ("microbatches", "batch-ramp", "aux-counting-pass") if d["batch-ramp"] else ()
    compile("config.json", "one", {name: d[name] for name in (*shared, *ramped)})

    sequences = {"": d["batch"] * d.pick([1, 2, 3])}
    for prefix, path in (("", "data.bin"), ("eval-", "eval.bin")):
        if prefix:
            sequences[prefix] = d["batch"] * 2 + d.pick([0, d["batch"] - 1])
        tokens = write_tokens(d, path, config["vocab_size"], sequences[prefix])
        write_mask(f"{prefix}mask.bin", tokens)
        write_starts(f"{prefix}starts.bin", tokens, d["seq"])
    ranks = math.prod(d.sizes.values())
    only_many = ("trace", "trace-from", "trace-steps", "dump", "dump-step", "cuda-graphs", "tune", "place-experts-every")
    run = {name: value for name, value in d.run.items() if value is not None and name not in only_many}
    for name in ("init", "resume", "ranks"):  # Their values are found here.
        run.pop(name, None)
    run["data"] = "data.bin"
    more = {name: d.run[name] for name in only_many}
    if d.run["save"] and d.run["resume"]:
        run["save-every"] = run.get("save-every", 1)
    if d.run["init"]:
        save_first(d)
        run["init"] = "first" if seed % 2 else first_weights(d)
    have, want = start_both(d, run, ranks, more)
    allowed, scatter = ALLOWED[d["precision"] or "f32"], Scatter(d, run, want)
    worst, share = hold(have, want, allowed, scatter)
    if d.run["resume"]:
        step = (d.run["steps"] - 1) // run["save-every"] * run["save-every"]
        dropped = ("init", "initial-loss-scale", "save", "save-every", "keep", "save-format", "save-commit", "async-save")
        again = {name: value for name, value in run.items() if name not in dropped}
        for exe, other in (("one", "many"), ("many", "one")) if step else ():
            found = start(exe, d, ranks if exe == "many" else 1, dict(again, resume=f"saved-{other}/step-{step:08d}"))
            within, another = hold(found, want[step:], allowed, scatter, step)
            worst, share = {key: max(worst[key], within[key]) for key in worst}, max(share, another)
    if d.run["dump"]:
        command(["meshwright", "replay", "dumped"])
    if d.run["trace"] and not any(d.run[name] for name in ("trace-from", "trace-steps", "eval-data", "batch-ramp")):
        check_traffic("many", "trace.json", d.run["steps"])
    return d["precision"] or "f32", worst, share


# --- what seeds reach -----------------------------------------------------------


def reach(seeds):
    """The flags that commands of these seeds give, with their values, by table; nothing is run."""
    seen = {"compile": {}, "run": {}}

    def note(words, **more):
        words = [str(word) for word in words]
        compiles = words[0] == "meshwright"
        given = words if compiles else words[next(i for i, word in enumerate(words) if word in ("./one", "./many")):]
        values = [(word, next_) for word, next_ in zip(given, [*given[1:], ""]) if word.startswith("--")]
        if "--recipe" in given:
            values += [("--" + line.split(" = ")[0], str(json.loads(line.split(" = ")[1]))) for line in open("recipe.toml")]
        for flag, value in values:
            seen["compile" if compiles else "run"].setdefault(flag[2:], set()).add(value)
        return ""

    stubs = {"command": note, "rows": lambda path: [], "hold": lambda *runs: ({}, 0), "check_traffic": lambda *of: None,
             "tight_budget": lambda d, options: "1B"}
    with unittest.mock.patch.multiple(sys.modules[__name__], **stubs), contextlib.redirect_stdout(None):
        for seed in seeds:
            run_seed(seed, "cuda" if seed % 4 == 0 else "cpu")
    return seen


# --- many seeds -----------------------------------------------------------------


def try_seed(task):
    """What came of a seed: itself, ran, refused or WRONG, what run_seed says, and what it printed."""
    seed, target, work = task
    fresh(work / f"worker-{os.getpid()}")
    with contextlib.redirect_stdout(io.StringIO()) as output:
        try:
            return seed, "ran", run_seed(seed, target), output.getvalue()
        except Refused as error:
            return seed, "refused", str(error), output.getvalue()
        except (Wrong, SystemExit) as error:
            return seed, "WRONG", str(error), output.getvalue()
        except Exception:
            return seed, "WRONG", traceback.format_exc(), output.getvalue()


def summary(ran, refused, wrong):
    """The end of a run, in words."""
    count = len(ran) + sum(refused.values()) + len(wrong)
    print(f"\n{count} seeds: {len(ran)} ran, {sum(refused.values())} refused, {len(wrong)} wrong")
    for kind, number in refused.most_common():
        print(f"  refused {number:5}: {kind}")
    for precision in ALLOWED:
        of = [(seed, worst) for seed, (name, worst, _) in ran if name == precision]
        for key in ("loss", "grad_norm", "eval_loss") if of else ():
            seed, worst = max(of, key=lambda item: item[1][key])
            print(f"  {precision:4} {key:9} differs by {worst[key]:.1e} at most (seed {seed}), of {len(of)} seeds")
    beyond = [f"{seed} ({share:.2f})" for seed, (_, _, share) in sorted(ran) if share]
    if beyond:
        print(f"  beyond these bounds, but less than last bits of the initial weights make (share): {', '.join(beyond)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("target", nargs="?", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("-j", type=int, default=1, dest="workers")
    arguments = parser.parse_args()
    work = fresh(arguments.work.resolve())
    limits = (ROOT / "docs/limits.md").read_text()
    for kind in DOCUMENTED:
        check(kind in limits, f"docs/limits.md does not say that this is refused: {kind}")
    helps = {"compile": command(["meshwright", "compile", "--help"]), "run": ""}
    for optimizer in ("adamw", "sgd-momentum", "adafactor", "schedule-free-adamw"):  # Together they have the flags of all.
        compile(ROOT / "test/Inputs/golden/gpt2-tiny/config.json", "exe", {"batch": 1, "seq": 1, "optimizer": optimizer, "ema": optimizer == "adamw"})
        helps["run"] += command(["./exe", "--help"])
    check_reach(helps, reach(range(600)))

    ran, refused, wrong = [], collections.Counter(), []
    tasks = [(seed, arguments.target, work) for seed in range(arguments.first, arguments.first + arguments.count)]
    with multiprocessing.Pool(arguments.workers) as pool:
        for seed, kind, result, said in pool.imap_unordered(try_seed, tasks):
            if kind == "ran":
                ran.append((seed, result))
                numbers = ", ".join(f"{key} {value:.1e}" for key, value in result[1].items())
                beyond = f"; beyond bounds, {result[2]:.2f} of rounding's own" if result[2] else ""
                print(f"{said}  {result[0]}: {numbers}{beyond}", flush=True)
            elif kind == "refused":
                refused[result] += 1
                print(f"{said}  refused: {result}", flush=True)
            else:
                wrong.append(seed)
                print(f"{said}  WRONG: {result}", flush=True)
    summary(ran, refused, wrong)
    check(not wrong, f"seeds {sorted(wrong)}")


if __name__ == "__main__":
    main()
