#!/usr/bin/env python3
"""Several documents in a sequence are trained as one by one: packed.py MODEL WORK STRATEGY..

The documents of packed sequences are also written one to a sequence, with filling behind them that no target counts of. A
float64 run of the model without --packed on those is what the interpreter must find with --packed to the last digits, and
executables of all strategies but for rounding.
"""
import json
import random
import struct
import sys

sys.path += [sys.path[0] + "/..", sys.path[0] + "/../strategies"]
from harness import Golden, call, check, compile, distance, flags, fresh, ranks_of, strategy, train
from random_configs import RECURRENT, experts_of

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
batch, sequence, steps, pieces = 4, min(golden.size["seq"], 32), 3, 3
run = dict({name: value for name, value in golden.run.items() if name not in ("data", "tokens")}, tokens="u8", steps=steps)
draw = random.Random(1)
END = 0 # The token that ends documents; the corpus has none.


def cut():
    """Where each sequence is cut, and whether it begins with a document's first token."""
    for i in range(steps * batch):
        yield sorted(draw.sample(range(1, sequence), pieces - 1)), i == 0 or draw.random() < 0.5


def write(path, numbers, code="B"):
    with open(path, "wb") as file:
        file.write(struct.pack(f"<{len(numbers)}{code}", *numbers))


# The packed stream: starts, and a piece for each sequence's part of a document.
text = list(open(golden.data["data"], "rb").read()[:steps * batch * sequence + 1])
starts, parts = [], []
for i, (cuts, begins) in enumerate(cut()):
    base = i * sequence
    starts += [base] * begins + [base + at for at in cuts]
    edges = [0, *cuts, sequence]
    parts += [(base + begin, base + end) for begin, end in zip(edges, edges[1:])]
for start in starts[1:]:
    text[start - 1] = END
write("packed.bin", text)
write("starts.bin", starts, "Q")
# One piece in a sequence. Its targets count but the first token of another document.
alone, counts = [], []
for begin, end in parts:
    length, goes_on = end - begin, end not in starts
    alone += text[begin:end] + text[end:end + 1] + [draw.choice(text) for _ in range(sequence - length - 1)]
    counts += [0] + [1] * (length - 1) + [int(goes_on)] + [0] * (sequence - length - 1)
write("alone.bin", alone + [1])
write("counts.bin", counts + [0])
given = "starts.bin"


def interpreted(module, **options):
    said = call(["meshwright-interpret", module, "--train", *flags(dict(run, **options))])
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def apart(have, want):
    return max(distance(have, want), distance(have, want, "grad_norm"))


# Routers' losses are of all tokens, filling too.
sizes = {"aux_loss": "none"} if "aux_loss" in golden.answers else {}
compile(golden.config, "alone.mlir", emit="step", batch=batch * pieces, seq=sequence, **sizes)
want = interpreted("alone.mlir", data="alone.bin", loss_mask="counts.bin")
compile(golden.config, "packed.mlir", emit="step", packed=True, batch=batch, seq=sequence, **sizes)
have = interpreted("packed.mlir", data="packed.bin", documents=given)
check(apart(have, want) < 1e-12, f"packed the losses are {have}, one by one {want}")
check(interpreted("packed.mlir", data="packed.bin", documents=END) == have, "the token and the index say different things")
exact = apart(have, want)

# Only the targets of one piece count, and all tokens of the other documents of its sequence are others.
mine = parts[pieces + 1]
check(mine[1] - mine[0] > 1, "the piece has no target: draw others")
changed = list(text)
for at in range(sequence, 2 * sequence):
    if not mine[0] <= at < mine[1]:
        changed[at] = (text[at] + 1) % 100
write("changed.bin", changed)
only = [0] * len(text)
for at in range(mine[0] + 1, mine[1]):
    only[at] = 1
write("only.bin", only)
one = dict(run, steps=1, documents=given, loss_mask="only.bin")
rows = [interpreted("packed.mlir", data=data, **one)[0] for data in ("packed.bin", "changed.bin")]
# Log decays of a recurrence are summed up from the beginning of a chunk, where another document may be: differences of sums round otherwise.
family = json.load(open(golden.config))["model_type"]
recurs = family in RECURRENT.keys() - {"lfm2", "lfm2_moe"}
check(apart(rows[:1], rows[1:]) <= (1e-12 if recurs else 0) and rows[0]["loss"] > 0, f"in float64 a document sees another: {rows}")
# The first batch, and an index of tokens that are documents each.
write("eval.bin", text[:batch * sequence + 1])
write("eval-starts.bin", [start for start in starts if start <= batch * sequence], "Q")
write("each.bin", list(range(len(text) - 1)), "Q")  # The last token alone is a target.
counted = sum(counts[:batch * pieces * sequence])

# Without --packed they see each other, so what follows can fail.
compile(golden.config, "plain", batch=batch, seq=sequence, **sizes)
rows = [train("./plain", data=data, **dict(run, steps=1, loss_mask="only.bin"))[0]["loss"] for data in ("packed.bin", "changed.bin")]
check(abs(rows[0] / rows[1] - 1) > 1e-4, f"tokens of other documents change nothing anyway: {rows}")
# Executables keep all bits but of experts' products: the other documents' tokens change how many rows an expert has, and OpenBLAS
# sums a row by its tile, which is chosen by where the row is and how many there are.
tolerance = 1e-6 if experts_of(json.load(open(golden.config))) or recurs else 0


def imbalance(step, options):
    """How many more pairs of a token and one that it sees the rank with most of them has than the mean, as a factor."""
    sizes = dict(axis.split("=") for axis in options["mesh"].split(","))
    ranks, data = int(sizes["context"].split("x")[0]), int(sizes.get("data", 1))
    config = json.load(open(golden.config))
    pattern = config.get("sliding_window_pattern", 1) # Every so many layers one has no window.
    layers = range(config.get("num_hidden_layers") or config["n_layer"])
    if "attention_chunk_size" in config: # Layers with rotary embedding have chunks.
        def of_chunk(place):
            return place % config["attention_chunk_size"] + 1
        masks = [of_chunk if config["no_rope_layers"][layer] else lambda place: place + 1 for layer in layers]
    else:
        masks = [lambda place, window=sequence if (layer + 1) % pattern == 0 else config["sliding_window"]: min(place + 1, window)
                 for layer in layers]
    balance = options.get("context-balance", "zigzag")
    part = -(-sequence // ranks)

    def zigzag(at):
        return at // part if at % part < (part + 1) // 2 else ranks - 1 - at // part

    rank_of = {"zigzag": zigzag, "striped": lambda at: at % ranks, "none": lambda at: at // part}

    def most(balance, mask):
        return max(sum(mask(at) for at in range(sequence) if rank_of[balance](at) == rank) for rank in range(ranks))

    # Zigzag only where it takes 2% off one document's work.
    balances = ["none" if balance == "zigzag" and most(balance, mask) > 0.98 * most("none", mask) else balance
                for mask in masks]
    work = [[0] * ranks for _ in range(data)]
    for i in range(batch):
        first, begin = (step * batch + i) * sequence, 0
        for at in range(sequence):
            begin = at if first + at in starts else begin
            for own, mask in zip(balances, masks):
                work[i * data // batch][rank_of[own](at)] += mask(at - begin)
    work = sum(work, [])
    return max(work) * len(work) / sum(work)


worst = 0
for where in sys.argv[3:]:
    options = dict(sizes, **strategy(where))
    ranks = ranks_of(options["mesh"])
    compile(golden.config, "exe", packed=True, batch=batch, seq=sequence, **options)
    have = train("./exe", ranks, data="packed.bin", documents=given, **run)
    far = max(distance(have, want), distance(have, want, "grad_norm") / 5)
    worst = max(worst, far)
    check(far <= 1e-5, f"{where} is off by {far:.2e}: {have}, one by one {want}")
    check(train("./exe", ranks, data="packed.bin", documents=END, **run) == have, f"{where}: the token says something else")
    divided = "context" in options["mesh"] and options.get("context-parallel") != "ulysses" and family not in ("mamba2", "mamba", "falcon_mamba") # They have no attention.
    uneven = [row.get("attention_imbalance") for row in have]
    expected = [imbalance(step, options) for step in range(steps)] if divided else [None] * steps
    check(all(a == b if a is None or b is None else abs(a - b) < 1e-9 for a, b in zip(uneven, expected)),
          f"{where}: attention_imbalance is {uneven}, counted by hand {expected}")
    rows = [train("./exe", ranks, data=data, **one) for data in ("packed.bin", "changed.bin")]
    check(apart(*rows) <= tolerance and rows[0][0]["loss"] > 0,
          f"{where}: a document sees another: {rows}")
    # An evaluation of the first batch; and where nothing of a batch counts the loss and its gradients are 0, which is said once.
    said = call(["meshwright", "run", "-n", ranks, "./exe", *flags(dict(
        run, steps=0, data="packed.bin", documents=given, eval_data="eval.bin", eval_documents="eval-starts.bin", metrics="eval.jsonl"))])
    (row,) = map(json.loads, open("eval.jsonl"))
    check(abs(row["eval_loss"] / want[0]["loss"] - 1) < 1e-5 and f"over {counted:,} tokens" in said, f"{where}: {row}, {said}")
    (alone,) = train("./exe", ranks, metrics="alone.jsonl", eval_only=True, init=run["init"], tokens=run["tokens"], eval_data="eval.bin", eval_documents="eval-starts.bin")
    check(alone == row, f"{where}: an evaluation alone has {alone}, not {row}")
    said = call(["meshwright", "run", "-n", ranks, "./exe", *flags(dict(run, data="packed.bin", documents="each.bin", metrics="each.jsonl"))])
    nothing = [json.loads(line) for line in open("each.jsonl")]
    check(all(row["loss"] == row["grad_norm"] == 0 for row in nothing[:-1]) and nothing[-1]["loss"] > 0, f"{where}: {nothing}")
    check(said.count("--documents each.bin: no target of step 0 counts") == said.count("no target of") == 1, f"{where}: {said}")
print(f"{golden.directory.name}: float64 {exact:.1e}, executables {worst:.1e}")
