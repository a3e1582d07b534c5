"""How random_strategies.py draws each flag of the compiler and of executables.

Every flag that their --help lists has a rule in COMPILE or RUN, which is called in the order of these tables and returns
a value or None (not given), or a reason in NOT_DRAWN. check_reach() fails where one has neither, and where no seed gives a
flag that has a rule, or a choice that its help offers.
"""
import math
import random
import re

from harness import check

RANKS = 8

# What is not drawn, and why. A choice of a flag is written flag=choice.
NOT_DRAWN = {
    "compile": {
        "help": "prints and ends",
        "output": "each executable has its name",
        "target=stablehlo": "text for other compilers, which test/Codegen/StableHLO tests",
        "emit=llvm": "text that cannot be compiled on; executables are made of it",
        "emit=ptx": "text that cannot be compiled on; executables are made of it",
        "emit=chakra": "traces that cannot be compiled on; EndToEnd/predict/chakra.py runs them",
        "emit=object": "an object without a program around it; executables are made of it",
        "emit=exe": "what all of them are compiled to at the end",
        "certify": "fails where there is no proof; test/Certify/random_proofs.py asks it of the same seeds",
        "plan": "decides what else is drawn; predict/plan.test compiles and runs what it finds",
        "devices": "of --plan alone",
        "source-seq": "of encoder-decoder models, which EndToEnd/golden/encoder-decoder.test has on many meshes",
        "mup-base": "needs a base model of the same family; EndToEnd/golden/mup.test has it on several meshes",
        "load-pass-plugin": "passes of users, which test/Install/plugin.test has",
        "insert-pass": "passes of users, which test/Install/plugin.test has",
        "precision=fp8": "sums in another order flip values of 8 bits, so losses differ more than between meshes of other precisions; EndToEnd/golden/fp8.test has it on several",
        "fp8-recipe": "of --precision fp8 alone",
        "grad-reduce-dtype": "which terms are rounded depends on the mesh, and so do losses; EndToEnd/golden/compressed-gradients.test has it on many",
        **{flag: "data of pairs and a file of log-probabilities; EndToEnd/golden/dpo.test has it on many meshes" for flag in ("loss", "dpo-beta")},
        "expert-capacity": "few models have experts that it is for; strategies/experts.test has it on several meshes",
    },
    "run": {
        "help": "prints and ends",
        "version": "prints and ends",
        "data": "always given: random tokens of the model's vocabulary",
        "metrics": "always given: what is compared",
        **{flag: "generates text instead of training, which EndToEnd/generate has for many models"
           for flag in ("generate", "tokenizer", "temperature", "top-k", "top-p", "beams", "length-penalty", "early-stopping", "lines", "stop")},
        **{flag: "of encoder-decoder models, which EndToEnd/data/pairs.test has"
           for flag in ("source", "source-documents", "eval-source", "eval-source-documents")},
        **{flag: "of --loss dpo, which EndToEnd/golden/dpo.test has on many meshes" for flag in ("reference-log-probs", "eval-reference-log-probs", "log-probs")},
        "eval-only": "evaluates instead of training, which EndToEnd/data/logs.test has",
        "adapter": "adapters of other runs, which EndToEnd/golden/lora.test has",
        "save-merged": "given where a run with adapters starts from the weights of another; EndToEnd/golden/lora.test has it",
        "stragglers": "compares times; refused where no two ranks do the same work; EndToEnd/faults/stragglers.test",
        "buddy": "a folder in memory that outlives a run; EndToEnd/faults/buddy.test has it",
        "check-replicas": "refused on meshes where no two ranks hold the same; EndToEnd/faults/replicas.test has it on several",
        "expert-loads": "metrics of another run; EndToEnd/strategies/copies.test has it",
        "log-norms": "norms of what checkpoints have, which are compared; EndToEnd/data/logs.test has it",
        "peak-flops": "a time is divided by it, which EndToEnd/data/logs.test has",
        "on-nan=stop": "what it is when it is not given",
        "on-nan=rollback": "needs a step that is not finite, which EndToEnd/faults/on-nan.test has",
        "tensorboard": "writes what metrics say, which EndToEnd/data/logs.test compares",
        "lr-schedule=constant": "what it is when it is not given",
        "cuda-graphs=auto": "what it is when it is not given",
        "save-format=auto": "what it is when it is not given",
        "save-commit=rename": "what it is when it is not given",
        "reschedule": "a run goes on with the steps of the other; test/Runtime/CheckpointTest.cpp has it",
        "resume=auto": "a run goes on from the end of another then; test/Runtime/CheckpointTest.cpp has it",
        **{f"{flag}={kind}": "stands for numbers and names, which are drawn"
           for flag in ("documents", "eval-documents", "init", "resume") for kind in ("ID", "FILE", "DIR")},
    },
}


class Drawing(dict):
    """The flags drawn so far, for rules of later ones; a switch that is off and what is not given are None."""

    def __init__(self, seed, target):
        random_ = random.Random(seed)
        self.pick, self.sample = random_.choice, random_.sample
        self.masks = random.Random(f"masks {seed}").choice
        self.rounds = random.Random(f"rounds {seed}").choice
        self.routers = random.Random(f"routers {seed}").choice
        self.copies = random.Random(f"copies {seed}").choice
        self.balances = random.Random(f"balances {seed}").choice
        self.packs = random.Random(f"packs {seed}").choice
        self.stripes = random.Random(f"stripes {seed}").choice
        self.samples = random.Random(f"samples {seed}").choice
        self.updates = random.Random(f"updates {seed}").choice
        self.groups = random.Random(f"groups {seed}").choice
        self.directions = random.Random(f"directions {seed}").choice
        self.quantizes = random.Random(f"quantizes {seed}").choice
        self.averages = random.Random(f"averages {seed}").choice
        self.variances = random.Random(f"variances {seed}").choice
        self.rates = random.Random(f"rates {seed}").choice
        self.recurs = random.Random(f"recurs {seed}").choice
        self.ramps = random.Random(f"ramps {seed}").choice
        self.freezes = random.Random(f"freezes {seed}").choice
        self.compresses = random.Random(f"compresses {seed}").choice
        self.tunes = random.Random(f"tunes {seed}").choice
        self.cuda = target == "cuda"
        self.run = {}

    def chance(self, one_in):
        return self.pick(range(one_in)) == 0

    def is_set(self, name, *values):
        return self.get(name) in values if values else bool(self.get(name))


# --- the compiler's flags ------------------------------------------------------


def mesh(d):
    while True:
        sizes = {"pipe": d.pick([1, 1, 2, 3, 4]), "replica": d.pick([1, 1, 1, 2]), "data": d.pick([1, 1, 2, 3, 4]),
                 "context": d.pick([1, 1, 1, 1, 1, 2, 3, 4]), "expert": d.pick([1, 1, 1, 1, 2, 3, 4]),
                 "tensor": d.pick([1, 1, 2, 3, 4, 5])}
        if 1 < math.prod(sizes.values()) <= RANKS:
            break
    d.sizes, tensor = sizes, sizes["tensor"]
    d.parts = None
    if tensor > 1 and d.chance(4):
        d.parts = d.pick([(r, c, k) for r in range(1, 5) for c in range(1, 6) for k in (1, 2) if r * c * k == tensor])
    d.depth = d.parts[2] if d.parts else 1
    d.data = sizes["data"] * sizes["replica"] * sizes["expert"] * d.depth
    # tensor=RxCx1 and tensor=RxC are the same.
    d.words = {axis: str(size) for axis, size in sizes.items()}
    if d.parts:
        d.words["tensor"] = "x".join(map(str, d.parts if d.depth > 1 else d.parts[:2]))
    d.context_parts = sizes["context"] > 1 and d.chance(3)
    d.context_heads = sizes["context"]
    if d.context_parts:
        ring = d.pick([r for r in (1, 2, 3, 4) if sizes["context"] % r == 0])
        d.context_heads //= ring
        d.words["context"] = f"{ring}x{d.context_heads}"
    axes = [axis for axis in sizes if sizes[axis] > 1]
    if d.chance(6):
        axes = d.sample(axes, len(axes))
    return ",".join(f"{axis}={d.words[axis]}" for axis in axes)


def schedule(d):
    d.stages = d.sizes["pipe"]
    names = ["naive", "gpipe", "1f1b", "interleaved:2", "interleaved:3", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "dualpipe-v"]
    name = d.pick(names) if d.stages > 1 else None
    d.chunks = d.stages * (int(name[-1]) if name and ":" in name else 2 if name in ("zb-v", "v-half", "v-min", "dualpipe-v") else 1)
    return name


def microbatches(d):
    name = d["schedule"] or ""
    if name.startswith("interleaved"):
        return d.stages * d.pick([1, 2])
    return 2 * d.stages + d.pick([-1, 0, 1]) if name.startswith(("zb", "dualpipe")) else d.pick([1, 2, 3, 4])


def layers(d):
    """No flag, but what cuts and policies of layers are drawn for."""
    return d.chunks + d.pick([0, 0, 1, 2, 3])


def cuts(d):
    d.layers = layers(d)
    if d.stages == 1 or d.chance(2) or d.layers < 2:
        return None
    return ",".join(map(str, sorted(d.sample(range(1, d.layers + d.chance(3)), min(d.chunks, d.layers) - 1)))) or None


def batch(d):
    each = d.data * d["microbatches"]
    return each * d.pick([1, 1, 2, 3]) + (d.pick([1, 2]) if d.chance(40) else 0)


def seq(d):
    tensor = d.sizes["tensor"]
    return d.pick([tensor * d.pick([1, 2, 4]), 1, 2, 7, 16, 33])


def loss_parts(d):
    """Mostly numbers that divide the tokens of a rank."""
    tokens = max(1, d["batch"] // (d.data * d["microbatches"]) * d["seq"] // d.sizes["context"])
    return d.pick([None, "auto", 3, *([parts for parts in (1, 2, 3, 4, 7, 8, 11) if tokens % parts == 0] * 2)])


def sequence_parallel(d):
    return d.sizes["tensor"] > 1 and (d["seq"] % d.sizes["tensor"] == 0 or d.chance(6)) and d.chance(2) or None


def context_parallel(d):
    if d.sizes["context"] == 1:
        return d.pick([None, None, None, "none"])
    if d.context_parts:
        return d.pick([None, "hybrid"])
    return d.pick(["gather", "ulysses", "ring"]) if not d.chance(10) else d.pick([None, None, "auto", "none"])


def context_balance(d):
    if d["context-parallel"] not in ("gather", "ring", "hybrid"):
        return None
    # Then each rank of a ring has a multiple of them, whatever else divides tokens.
    deals = d["seq"] % (d.sizes["context"] ** 2 * d.sizes["tensor"]) == 0
    how = d.pick([None, None, "zigzag", "none"])
    return "striped" if deals and d.stripes([True, False]) else how


def zero(d):
    if d.depth > 1:
        return d.pick([None, 0, 3]) if not d.chance(8) else d.pick([1, 2])
    return d.pick([None, 0, 1, 2, 3]) if d.sizes["data"] * d.sizes["context"] * d.sizes["expert"] > 1 else None


def data_sync(d):
    servable = d.stages == 1 and d.data > 1 and not d["zero"] and d.depth == 1 and d.sizes["expert"] == 1
    return d.pick([None, "all-reduce", "parameter-server"]) if servable else None


def remat(d):
    policy = ["none", "full", "selective", "price:100", "every:2", "every:3", "sqrt", "every:2+price:inf"]
    if d.stages > 1 and d.chance(4):
        return ",".join(d.pick(policy) for _ in range(d.stages))
    return d.pick([None, "auto", *policy]) if not d.chance(12) else "auto"


def memory_limit(d):
    """TIGHT becomes what the smallest plan needs, or a little more."""
    if d["remat"] == "auto":
        return "TIGHT"
    return ("16GiB" if d.cuda else "1GiB") if d.chance(8) else None


def offload(d):
    what = d.pick([None, None, "optimizer", "activations", "optimizer,activations", "parameters", "optimizer,parameters",
                   "optimizer,activations,parameters"])
    keeps = d["optimizer"] != "sgd" or d.is_set("precision", "bf16", "fp16", "fp8")
    if not keeps and "optimizer" in (what or ""):
        return None
    # GPUs copy from the host's memory alone.
    return ",".join(word if d.cuda else d.pick([word, word, f"{word}=ssd"]) for word in what.split(",")) if what else None


def grad_compression(d):
    """Top-k or signs with a number of blocks, with which one rank computes the same. Rounding differs more where factors are made orthonormal: EndToEnd/golden/compressed-gradients.test has PowerSGD."""
    alone = all(d.sizes[axis] == 1 for axis in ("pipe", "context", "expert")) and not d.parts and not d["data-sync"]
    plain = d["zero"] in (None, 0, 1) and d["precision"] != "fp16" and "parameters" not in (d["offload"] or "") and not re.search("every|sqrt", d["remat"] or "")
    blocks = [n for n in (2, 3, 4, 6) if n % d.data == 0 and d["batch"] % (n * d["microbatches"]) == 0]
    signs = [f"onebit,blocks={n}" for n in blocks] if not d["zero"] and d["optimizer"] != "adamw-8bit" and not d.cuda else []
    return d.compresses([None, *(f"topk:{density},blocks={n}" for n in blocks for density in (0.03, 0.2)), *signs]) if alone and plain and blocks else None


def offload_buffer(d):
    sizes = [None, "128B", "256B", "1KiB", "4KiB", "64KiB", "1MiB"]
    return of_optimizer(d)(sizes) if {"optimizer", "parameters"} & set(re.split("[,=]", d["offload"] or "")) else None


AVERAGING = "schedule-free-adamw"  # Its parameters are averages.


def optimizer(d):
    name = d.pick([None, "adamw", "sgd", "adam", "lion"])
    if name == "lion":
        name = d.directions([name, "muon", "normuon", "adafactor", "adafactor-scaled", AVERAGING])
        # States of 8 bits are for CPUs.
        return name if name != "lion" or d.cuda else d.quantizes([name, "adamw-8bit"])
    return d.updates([name, name, "sgd-momentum", "sgd-nesterov"]) if name == "sgd" else name


def of_optimizer(d):
    """What draws for the optimizer. That of plain SGD draws nothing, so the others of its kind leave later draws alone."""
    return d.updates if (d["optimizer"] or "").startswith("sgd-") else d.pick


def optimizer_groups(d):
    # Names that a model of each family has. The decay is for optimizers that have one.
    groups = d.groups([None] * 6 + ["*:lr=0.5", "*:decay=2", "*{wte,embed}*:lr=2;*:decay=0.5,lr=0.5"])
    return groups if groups == "*:lr=0.5" or d["optimizer"] != "sgd" else None


def lora(d):
    # Names that a model of each family has.
    adapters = d.tunes([None] * 6 + ["r=2,alpha=4,targets=all-linear", "r=3,alpha=2,targets=all-linear,rslora,dropout=0.25", "r=2,alpha=4,targets=all-linear,dora"])
    return adapters if not d["optimizer-groups"] else None


def freeze(d):
    patterns = d.tunes([None] * 5 + ["*{wte,embed}*", "*{norm,Norm,ln_}*;*{wte,embed}*"])
    return patterns if not d["optimizer-groups"] and not d["lora"] else None


def among(*values, when=lambda d: True):
    return lambda d: d.pick(values) if when(d) else None


def cuda_only(*values):
    return among(*values, when=lambda d: d.cuda)


def aux_scope(d):
    """Statistics of a microbatch are those of one rank's batch where there is one microbatch."""
    if d.is_set("aux-loss", "hf", "switch", "gshard"):
        return d.balances([None, "batch", "sequence", "microbatch" if d["microbatches"] == 1 else "batch"])
    return d.balances([None, "sequence"]) if d.is_set("aux-loss", "sequence") else None


def of_batch(d):
    return d.is_set("aux-loss", "hf", "switch", "gshard") and d["aux-scope"] in (None, "batch")


def batch_ramp(d):
    return d.ramps([None] * 5 + [True]) if d.stages == 1 and d["microbatches"] > 1 else None


def ramp(d):
    if not d["batch-ramp"]:
        return None
    parts, unit = d["microbatches"], d["batch"] // d["microbatches"]
    start = d.ramps(range(1, parts))
    increment = d.ramps([n for n in range(1, parts) if (parts - start) % n == 0])
    return d.ramps([None] + [f"{start * unit}+{increment * unit}:{samples}" for samples in (1, unit, 2 * d["batch"])])


COMPILE = {
    "recipe": lambda d: "recipe.toml" if d.chance(8) else None,
    "target": lambda d: "cuda" if d.cuda else d.pick([None, "cpu"]),
    # The driver for tests knows no later PTX.
    "gpu-arch": cuda_only(None, "sm_80", "sm_90"),
    "cpu": among(None, None, "native", "x86-64", "x86-64-v3", when=lambda d: not d.cuda),
    "mesh": mesh,
    "schedule": schedule,
    "microbatches": microbatches,
    "cuts": cuts,
    "batch": batch,
    "batch-ramp": batch_ramp,
    "seq": seq,
    "zero": zero,
    "context-parallel": context_parallel,
    "context-balance": context_balance,
    "tensor-2d": lambda d: True if d.parts else None,
    "sequence-parallel": sequence_parallel,
    "data-sync": data_sync,
    "precision": among(None, None, "f32", "f32", "bf16", "fp16"),
    "grad-dtype": lambda d: d.pick([None, "f32", "bf16"]) if d["precision"] in ("bf16", "fp8") else d.pick([None, None, "f32"]),
    "optimizer": optimizer,
    "optimizer-groups": optimizer_groups,
    "lora": lora,
    "freeze": freeze,
    "frozen-weights": lambda d: d.freezes([None, "int8", "int8", "precision"]) if d["lora"] else None,
    # Rounded moments make differences of f32 as large as those of narrow types.
    "muon-scale": lambda d: d.directions([None, "match-rms-adamw", "keller"]) if of("muon", "normuon")(d) else None,
    "muon-coefficients": lambda d: d.directions([None, "keller", "polar-express"]) if of("muon", "normuon")(d) else None,
    "ema": lambda d: d.averages([None] * 7 + [True]) if d["optimizer"] != AVERAGING else None,
    "moments-dtype": lambda d: of_optimizer(d)([None, "f32", "bf16"]) if not of("sgd", "adafactor", "adafactor-scaled", AVERAGING, "adamw-8bit")(d) and d.is_set("precision", "bf16", "fp16") else None,
    "dropout": among(None, 0, 0, 0.1, 0.5),
    "expert-buffer": lambda d: d.rounds([None, 0.1, 0.3, 0.5, 1, 8]) if d.sizes["expert"] > 1 else None,
    "expert-parts": lambda d: d.rounds([None, 1, 2, 3]) if d.sizes["expert"] > 1 else None,
    # Each device has as many slots.
    "redundant-experts": lambda d: d.copies([None, None, d.sizes["expert"]]) if d.sizes["expert"] > 1 else None,
    "mlm": lambda d: d.masks([None] * 8 + [0.15, 0.5]),
    "mask-id": lambda d: d.masks([0, 3, 30]) if d["mlm"] else None,
    # Left out again where the model that is drawn has no such routers.
    "aux-loss": lambda d: d.balances([None, None, "config", "none", "hf", "switch", "gshard", "sequence"]),
    "aux-loss-coef": lambda d: d.balances([0.01, 0.2]) if d.is_set("aux-loss", "hf", "switch", "gshard", "sequence") else None,
    "aux-scope": aux_scope,
    "aux-counting-pass": lambda d: True if of_batch(d) and d["microbatches"] > 1 else None,
    "z-loss": lambda d: d.routers([None, None, 0, 0.001, 0.1]),
    "router-bias-rate": lambda d: d.routers([None, 0, 0.001, 0.03]),
    "packed": lambda d: d.packs([None, None, True]) if not d["mlm"] else None,
    "remat": remat,
    "memory-limit": memory_limit,
    "residuals": among(None, None, None, "auto", "least", "written"),
    "offload": offload,
    "grad-compression": grad_compression,
    "eval-ema": lambda d: d.averages([None, True]) if d["ema"] and not d.is_set("data-sync", "parameter-server") and "optimizer" not in (d["offload"] or "") else None,
    "offload-buffer": offload_buffer,
    "collective-algorithm": among(None, "native", "sequential", "ring", "parallel", "doubling", "halving-doubling", "auto"),
    "collective-matmul": among(None, "on", "off"),
    "overlap": among(None, "on", "off", "auto"),
    "attention": cuda_only(None, "auto", "cudnn", "generated"),
    "deterministic": lambda d: d.pick([None, "off", None if d["attention"] == "generated" else "on"]) if d.cuda else None,
    "epilogues": cuda_only(None, "auto", "none", "bias,addend", "gelu,gelu-grad", "bias-grad"),
    "replay": lambda d: True if d.chance(16) else None,
    "masters": lambda d: d.pick([None, "whole", None if d["replay"] or d["optimizer"] == AVERAGING else "halves"]) if d["precision"] in ("bf16", "fp8") else None,
    "emit": lambda d: d.pick(["train", "step", "dist", "local", "stages", "schedule", "exec"]) if d.chance(7) else None,
    # Programs of stages are compiled and written at the same time.
    "dump-ir": lambda d: "ir" if d.chance(8 if d.stages > 2 else 64) else None,
    "explain-sharding": lambda d: "tokens" if d.chance(32) else None,
    "report": lambda d: "report" if d.chance(24) else None,
    # Its device is the one that this target's programs are for without it.
    "cluster": lambda d: "cpu" if not d.cuda and d.chance(8) else None,
    "assert": lambda d: "peak<=64GiB" if d.chance(24) else None,
    "loss-parts": loss_parts,
}

# --- the flags of executables ---------------------------------------------------


def of(*names):
    """Whether the optimizer is one of these; adamw is the default."""
    return lambda d: (d["optimizer"] or "adamw") in names


def fp16(*values):
    return among(*values, when=lambda d: d["precision"] == "fp16")


def lr_schedule(d):
    d.falls = d.pick([None, None, "cosine", "linear"])
    return d.rates([None] * 3 + ["wsd", "inverse-sqrt", "multi-step"]) or d.falls


def decaying(d):
    rates = [None, 0, d.run["lr"] / 10]
    rate = d.pick(rates) if d.falls else d.rates(rates)
    return rate if d.run["lr-schedule"] not in (None, "multi-step") else None


def scheduled(name, *values):
    """Of one learning-rate schedule."""
    return lambda d: d.rates(values) if d.run["lr-schedule"] == name else None


def warmup(d):
    # With wsd it and the decay fit into the run.
    steps = d.pick([None, None, 0, 1, 2, 5])
    return steps if d.run["lr-schedule"] != "wsd" or not steps else 1


def lr(d):
    # At 0.1 and more SGD makes differences of 1e-7 in deep narrow models a thousand times as large in two steps.
    return d.pick([1e-3, 1e-2])


def rare(value, one_in=16):
    return lambda d: value if d.chance(one_in) else None


RUN = {
    "tokens": among(None, "u8", "u16", "u32"),
    "steps": among(3, 3, 4),
    "lr": lr,
    "lr-schedule": lr_schedule,
    "decay-fraction": scheduled("wsd", None, 0.3, 0.5),
    "decay-shape": scheduled("wsd", None, "linear", "cosine", "1-sqrt", "exponential"),
    "lr-milestones": scheduled("multi-step", "1", "2", "1,3"),
    "lr-gamma": scheduled("multi-step", None, 0.3, 1),
    "batch-ramp": ramp,
    "min-lr": decaying,
    "warmup": warmup,
    "seed": among(0, 7, 4294967295),
    "shuffle": lambda d: True if d.chance(3) else None,
    "no-shuffle": lambda d: d.samples([None, None, True]) if not d.run["shuffle"] else None,
    "log-samples": lambda d: d.samples([None, None, None, "samples.jsonl"]),
    "beta1": among(None, 0, 0.5, 0.9, when=of("adamw", "adam", "lion", "muon", "normuon", AVERAGING)),
    "beta2": among(None, 0.5, 0.99, when=of("adamw", "adam", "lion", "muon", "normuon", AVERAGING)),
    "freeze-variance": lambda d: d.variances([None] * 4 + [0, 1, 2]) if of("adamw", "adam")(d) else None,
    "beta2-decay": lambda d: d.directions([None, 0, 0.5, 1]) if of("adafactor", "adafactor-scaled")(d) else None,
    # AdamW makes whole steps of gradients that are but rounding errors, unless this is larger than they are.
    "eps": among(1e-4, 1e-3, when=of("adamw", "adam", "muon", "normuon", "adafactor", "adafactor-scaled", AVERAGING)),
    "weight-lr-power": lambda d: d.directions([None, 0, 1]) if of(AVERAGING)(d) else None,
    "momentum": lambda d: d.updates([None, 0, 0.5]) if of("sgd-momentum", "sgd-nesterov", "muon", "normuon")(d) else None,
    "weight-decay": lambda d: of_optimizer(d)([None, 0, 0.5]) if d["optimizer"] != "sgd" else None,
    "ema-decay": lambda d: d.averages([None, 0, 0.5]) if d["ema"] else None,
    "grad-clip": lambda d: None if "onebit" in (d["grad-compression"] or "") else d.pick([None, None, 0, 0.05, 10]),
    "initial-loss-scale": fp16(None, 1, 1024, 2.0**40),
    "min-loss-scale": fp16(None, 1),
    "loss-scale-window": fp16(None, 1, 2),
    "hysteresis": fp16(None, 1),
    "ssd": lambda d: "." if "=ssd" in (d["offload"] or "") else None,
    "init": rare("first", 4),
    "resume": rare("last", 4),
    "save": lambda d: "saved" if d.run["init"] or d.run["resume"] or d.chance(2) else None,
    "save-every": lambda d: d.pick([None, 1, 2]) if d.run["save"] else None,
    "keep": lambda d: d.pick([None, 3]) if d.run["save"] else None,
    "save-format": lambda d: d.pick([None, "merged", "sharded"]) if d.run["save"] else None,
    "save-commit": lambda d: d.pick([None, "file"]) if d.run["save"] else None,
    "async-save": lambda d: True if d.run["save"] and d.chance(2) else None,
    "on-nan": lambda d: d.samples([None, None, "skip"]),
    "log-every": lambda d: d.samples([None, None, None, 1]),
    "expert-tokens-every": lambda d: d.routers([None, 0, 1, 2]),
    "idle-expert-steps": lambda d: d.routers([None, 0, 1, 2]),
    "place-experts-every": lambda d: d.copies([None, 0, 1, 2]) if d["redundant-experts"] else None,
    "eval-data": rare("eval.bin", 3),
    "eval-every": lambda d: d.pick([None, 1, 2]) if d.run["eval-data"] else None,
    "eval-batches": lambda d: d.pick([None, 1]) if d.run["eval-data"] else None,
    "loss-mask": lambda d: None if d["mlm"] else rare("mask.bin", 4)(d),
    "eval-loss-mask": lambda d: "eval-mask.bin" if d.run["eval-data"] and not d["mlm"] and d.chance(2) else None,
    "documents": lambda d: d.packs([3, "starts.bin", "starts.bin"]) if d["packed"] else None,
    "eval-documents": lambda d: d.packs([3, "eval-starts.bin"]) if d["packed"] and d.run["eval-data"] else None,
    "trace": rare("trace.json"),
    "trace-from": lambda d: d.pick([None, 1]) if d.run["trace"] else None,
    "trace-steps": lambda d: d.pick([None, 1]) if d.run["trace"] else None,
    "dump": lambda d: "dumped" if d["replay"] else None,
    "dump-step": lambda d: d.pick([None, 1]) if d["replay"] else None,
    # Rounds of experts' rows cannot be captured.
    "cuda-graphs": lambda d: d.pick([None, "off" if d.sizes["expert"] > 1 or d["batch-ramp"] else "on", "off"]) if d.cuda else None,
    "tune": lambda d: "tuned" if d.cuda and d.chance(4) else None,
    # Others are processes, of MPI or of nobody.
    "ranks": lambda d: None if d.chance(4) else math.prod(d.sizes.values()),
}


def draw(seed, target):
    """All flags of one seed: `drawing` itself has the compiler's, `drawing.run` the executable's."""
    d = Drawing(seed, target)
    for name, rule in COMPILE.items():
        d[name] = rule(d)
    for name, rule in RUN.items():
        d.run[name] = rule(d)
    return d


def listed(help):
    """The flags in a help text, each with its choices; words in capitals stand for values."""
    found = {}
    for name, value in re.findall(r"^  (?:-\w,\s*)?--([a-z0-9-]+)(?: (\S+))?", help, re.MULTILINE):
        braces = re.search(r"\{(.*?)\}", value)
        choices = braces[1].split(",") if braces else value.split("=")[0].split("|") if "|" in value else []
        found[name] = [choice for choice in choices if not choice.isupper()]
    return found


def check_reach(helps, seen):
    """That every flag in the help texts of `helps`, by table, has a rule or a reason, and was `seen` with its choices."""
    for table, help in helps.items():
        known, reasons = listed(help), NOT_DRAWN[table]
        check(len(known) > 20, f"the help of {table} lists only {sorted(known)}")
        rules = COMPILE if table == "compile" else RUN
        for name, choices in known.items():
            check((name in rules) != (name in reasons),
                  f"--{name} ({table}) needs one rule in test/EndToEnd/strategies/random_flags.py, or a reason why it is not drawn")
            if name in reasons:
                continue
            values = seen[table].get(name, set())
            check(values, f"--{name} ({table}) has a rule, but no seed gives it")
            for choice in choices:
                check((choice in values) != (f"{name}={choice}" in reasons), f"no seed gives --{name} {choice} ({table})")
        unknown = [name for name in [*rules, *(reason.split("=")[0] for reason in reasons)] if name not in known]
        check(not unknown, f"there are no such flags ({table}): {unknown}")
