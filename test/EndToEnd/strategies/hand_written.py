#!/usr/bin/env python3
"""Models that no importer writes train alike on all meshes:

  hand_written.py WORK [PATTERN...]       the models with one of the patterns in their names; default: all
  hand_written.py WORK --random FIRST COUNT    seeds FIRST .. FIRST+COUNT-1: several changes at once, any strategy

Each is examples/parallel-block.mlir, changed: layers that run twice over the same weights, losses beside the layers, weights
without a name in files. Losses and the norms of gradients are those of one rank, or of the same model written in another way.
"""
import random
import re
import sys

sys.path.append(sys.path[0] + "/..")
from harness import INPUTS, ROOT, check, compile, distance, fresh, ranks_of, strategy, train

RUN = {"data": INPUTS / "golden/corpus.txt", "tokens": "u8", "steps": 4, "lr": 1e-3}
REPEAT = r"    %y = train\.repeat (?:.|\n)*?-> tensor<16x64x128xf32>\n"


def change(text, old, new):
    check(text.count(old) == 1, f"'{old}' is there {text.count(old)} times")
    return text.replace(old, new)


def microbatches(text, number):
    return change(change(text, "train.batch = 16", f"train.batch = {16 * number}"), "train.microbatches = 1", f"train.microbatches = {number}")


def before_return(text, lines, results):
    """What @loss returns becomes `results`, which `lines` compute."""
    return change(text, "    return %loss : tensor<f32>\n", f"{lines}    return {results}\n")


def looped(text):
    """The four layers run twice."""
    first = re.search(REPEAT, text).group()
    return change(text, first, first.replace("%y =", "%half =") + first.replace("carry(%x)", "carry(%half)"))


def looped_in_layers(text):
    """A function that repeats another one is the layer."""
    layer = re.search(r"  func\.func private @layer\((?:.|\n)*?\n  }\n", text).group()
    inner = re.search(r"\(\n(      %x(?:.|\n)*?)\) -> ", layer).group(1)
    names, types = re.findall(r"(%\w+):", inner), re.findall(r": (tensor<[^>]*>)", inner)
    outer = (f"  func.func private @outer({inner}) -> tensor<16x64x128xf32> {{\n"
             f"    %y = train.repeat @layer x 2 carry(%x) each() shared({', '.join(names[1:])}) : ({', '.join(types)}) -> tensor<16x64x128xf32>\n"
             "    return %y : tensor<16x64x128xf32>\n  }\n")
    return change(text, "train.repeat @layer x 4", "train.repeat @outer x 4").replace(layer, layer + outer)


def stacks_of_stacks(text):
    """Two layers of two layers, each with weights of its own."""
    text = re.sub(r"(train\.variable @layers\.\S+ : tensor<)4x", r"\g<1>2x2x", text)
    text = re.sub(r"(train\.get @layers\.\S+ : tensor<)4x", r"\g<1>2x2x", text)
    call = re.search(REPEAT, text).group()
    layer = re.search(r"  func\.func private @layer\((?:.|\n)*?\n  }\n", text).group()
    names = re.findall(r"(%\w+):", re.search(r"\(\n(      %x(?:.|\n)*?)\) -> ", layer).group(1))
    inner = call.replace("layer x 4", "layer x 2").replace("tensor<4x", "tensor<2x")
    inner = re.sub(r"each\(.*?\) shared", f"each({', '.join(names[1:-2])}) shared", inner)
    types = re.findall(r"tensor<[^>]*>", inner)[:-1]
    arguments = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, types))
    outer = f"  func.func private @outer({arguments}) -> tensor<16x64x128xf32> {{\n{inner}    return %y : tensor<16x64x128xf32>\n  }}\n"
    return change(text, call, call.replace("layer x 4", "outer x 2").replace("tensor<4x", "tensor<2x2x")).replace(layer, layer + outer)


def tied_keys(text):
    """Keys and values are made by the same weights."""
    return change(text, "train.get @layers.v.weight", "train.get @layers.k.weight").replace(
        re.search(r"  train\.variable @layers\.v\.weight(?:.|\n)*?storage <.*?>\n", text).group(), "")


def weight_norm(text):
    """129 neurons, a number that two ranks pad, whose weights are of length 1."""
    text = text.replace("512x128", "129x128").replace("128x512", "128x129").replace("64x512", "64x129")
    return change(text, "    %wide = train.linear %n, %up", "    %sq = train.mul %up, %up : (tensor<129x128xf32>, tensor<129x128xf32>) -> tensor<129x128xf32>\n"
                  "    %ss = train.reduce sum %sq over [1] : (tensor<129x128xf32>) -> tensor<129xf32>\n"
                  "    %iv = train.inverse_root %ss eps 0.0 : (tensor<129xf32>) -> tensor<129xf32>\n"
                  "    %ib = train.broadcast %iv along [1] : (tensor<129xf32>) -> tensor<129x128xf32>\n"
                  "    %un = train.mul %up, %ib : (tensor<129x128xf32>, tensor<129x128xf32>) -> tensor<129x128xf32>\n"
                  "    %wide = train.linear %n, %un")


def eight_layers(text):
    return re.sub(r"tensor<4x", "tensor<8x", change(text, "@layer x 4", "@layer x 8"))


def two_runs(text):
    """Those eight, as two runs of four over weights of their own."""
    for variable in re.findall(r"  train\.variable @layers(?:.|\n)*?storage <.*?>\n", text):
        text = change(text, variable, variable + variable.replace("@layers", "@late").replace("{layer}", "{layer+4}"))
    for get in re.findall(r"    %\w+ = train\.get @layers.*\n", text):
        text = change(text, get, get + re.sub(r"%(\w+) = train.get @layers", r"%\1_late = train.get @late", get))
    text = looped(text)
    second = re.search(r"    %y = train\.repeat (?:.|\n)*?shared", text).group()
    operands = re.search(r"each\((.*)\)", second).group(1)
    return change(text, second, second.replace(operands, ", ".join(name + "_late" for name in operands.split(", "))))


def hidden(text):
    """The loss of a network of two layers beside the others, over the same embeddings."""
    text = change(text, "  train.variable @norm.weight",
                  '  train.variable @in.weight : tensor<128x128xf32> init <"normal", 0.02>\n'
                  '  train.variable @out.weight : tensor<256x128xf32> init <"normal", 0.02>\n  train.variable @norm.weight')
    return before_return(text, "    %in = train.get @in.weight : tensor<128x128xf32>\n    %out = train.get @out.weight : tensor<256x128xf32>\n"
                         "    %h = train.linear %x, %in : (tensor<16x64x128xf32>, tensor<128x128xf32>) -> tensor<16x64x128xf32>\n"
                         "    %a = train.relu %h : (tensor<16x64x128xf32>) -> tensor<16x64x128xf32>\n"
                         "    %guess = train.linear %a, %out : (tensor<16x64x128xf32>, tensor<256x128xf32>) -> tensor<16x64x256xf32>\n"
                         "    %aux, %aux_lse = train.cross_entropy %guess, %targets scale 9.765625e-04 : (tensor<16x64x256xf32>, tensor<16x64xi32>) -> (tensor<f32>, tensor<16x64xf32>)\n"
                         "    %total = train.add %loss, %aux : (tensor<f32>, tensor<f32>) -> tensor<f32>\n", "%total : tensor<f32>")


def same_head(text):
    """The embeddings are classified by the head of the layers, which is no longer the embedding."""
    text = change(text, "  train.variable @norm.weight", '  train.variable @head.weight : tensor<256x128xf32> init <"normal", 0.02>\n  train.variable @norm.weight')
    text = change(text, "%logits = train.linear %n, %embed", "%head = train.get @head.weight : tensor<256x128xf32>\n    %logits = train.linear %n, %head")
    return before_return(text, "    %guess = train.linear %x, %head : (tensor<16x64x128xf32>, tensor<256x128xf32>) -> tensor<16x64x256xf32>\n"
                         "    %aux, %aux_lse = train.cross_entropy %guess, %targets scale 9.765625e-04 : (tensor<16x64x256xf32>, tensor<16x64xi32>) -> (tensor<f32>, tensor<16x64xf32>)\n"
                         "    %total = train.add %loss, %aux : (tensor<f32>, tensor<f32>) -> tensor<f32>\n", "%total : tensor<f32>")


def bigrams(text):
    """The loss of a table of pairs is added to that of the layers."""
    text = change(text, "  train.variable @norm.weight", '  train.variable @pairs : tensor<256x256xf32> init <"normal", 0.02>\n  train.variable @norm.weight')
    return before_return(text, "    %pairs = train.get @pairs : tensor<256x256xf32>\n"
                         "    %guess = train.embedding %pairs, %tokens : (tensor<256x256xf32>, tensor<16x64xi32>) -> tensor<16x64x256xf32>\n"
                         "    %aux, %aux_lse = train.cross_entropy %guess, %targets scale 9.765625e-04 : (tensor<16x64x256xf32>, tensor<16x64xi32>) -> (tensor<f32>, tensor<16x64xf32>)\n"
                         "    %total = train.add %loss, %aux : (tensor<f32>, tensor<f32>) -> tensor<f32>\n", "%total : tensor<f32>")


def outputs(text):
    """Besides the loss: a term of it that no data is in, and a number of weights alone."""
    text = change(text, '-> (tensor<f32> {train.output = "loss"})',
                  '-> (tensor<f32> {train.output = "loss"}, tensor<f32> {train.output = "term"}, tensor<f32> {train.output = "weights"})')
    return before_return(text, "    %squares = train.mul %last_weight, %last_weight : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>\n"
                         "    %all = train.reduce sum %squares over [0] : (tensor<128xf32>) -> tensor<f32>\n"
                         "    %term = train.scale %all by 1.0e-3 : (tensor<f32>) -> tensor<f32>\n"
                         "    %weights = train.reduce sum %embed over [0, 1] : (tensor<256x128xf32>) -> tensor<f32>\n"
                         "    %total = train.add %loss, %term : (tensor<f32>, tensor<f32>) -> tensor<f32>\n",
                         "%total, %term, %weights : tensor<f32>, tensor<f32>, tensor<f32>")


def unnamed(text):
    return re.sub(r' storage <"layers.*?">', "", text)


EXAMPLE = (ROOT / "examples/parallel-block.mlir").read_text()
# Name: the model, strategies, and the model that one rank runs to compare with where it is another one.
CASES = {
    "looped": (microbatches(looped(EXAMPLE), 4), ["pipe=2", "pipe=4", "pipe=4+schedule=zb-h1", "pipe=2+remat=every:2+schedule=zb-h1", "one+remat=every:3"], None),
    "looped inside layers": (microbatches(looped_in_layers(EXAMPLE), 4), ["pipe=2", "pipe=2+schedule=zb-h1"], None),
    "stacks of stacks": (stacks_of_stacks(EXAMPLE), ["tensor=2", "data=2+zero=2", "data=2+zero=3"], None),
    "tied keys": (tied_keys(EXAMPLE), ["one", "pipe=2", "tensor=2"], None),
    "weight norm": (weight_norm(EXAMPLE), ["tensor=2", "tensor=2+sequence-parallel"], None),
    "two runs": (microbatches(two_runs(EXAMPLE), 4), ["one", "pipe=2", "pipe=4", "pipe=2+schedule=zb-h1", "data=2+zero=3"], microbatches(eight_layers(EXAMPLE), 4)),
    "bigrams": (microbatches(bigrams(EXAMPLE), 4), ["pipe=2", "pipe=4+schedule=zb-h1", "pipe=2,data=2+zero=1"], None),
    "one microbatch, bigrams": (bigrams(EXAMPLE), ["pipe=2", "data=2"], None),
    "hidden": (microbatches(hidden(EXAMPLE), 4), ["pipe=2", "pipe=4+schedule=zb-h1"], None),
    "same head": (microbatches(same_head(EXAMPLE), 4), ["pipe=2", "pipe=4+schedule=zb-h1"], None),
    "one microbatch, same head": (same_head(EXAMPLE), ["pipe=2"], None),
    "outputs": (microbatches(outputs(EXAMPLE), 4), ["pipe=2", "pipe=4+schedule=zb-h1", "data=2"], None),
    "unnamed": (unnamed(EXAMPLE), ["pipe=2", "one+remat=every:3"], None),
}

def draw(seed):
    """A model and a strategy."""
    pick = random.Random(seed).choice
    text = pick([EXAMPLE, looped(EXAMPLE), looped_in_layers(EXAMPLE), looped(looped_in_layers(EXAMPLE)), two_runs(EXAMPLE)])
    for change_ in pick([[], [bigrams], [hidden], [same_head], [outputs], [unnamed], [bigrams, unnamed], [outputs, unnamed]]):
        text = change_(text)
    # Runs of four layers over one stack are not split alike between three stages.
    tied = text.count("train.repeat @") > 1 and "@late" not in text
    pipe, tensor, data = pick([(pipe, tensor, data) for pipe in (1, 2, 3, 4) for tensor in (1, 1, 2) for data in (1, 2) if 1 < pipe * tensor * data <= 8 and not (tied and pipe == 3)])
    number = 8 if pipe > 1 else pick([1, 3])
    words = [",".join(f"{axis}={size}" for axis, size in (("pipe", pipe), ("data", data), ("tensor", tensor)) if size > 1)]
    schedules = ["1f1b", "gpipe", "zb-h1", "zb-h2"] + ["interleaved:2", "zb-v", "v-half", "v-min", "dualpipe-v"] * (pipe == 2) if pipe > 1 else []
    words += [f"schedule={pick(schedules)}"] if schedules else []
    words += pick([[], [f"zero={pick([1, 2, 3])}"]]) if data > 1 else []
    words += ["sequence-parallel"] if tensor > 1 and pick([0, 1]) else []
    words += pick([[], [f"remat={pick(['full', 'selective', 'every:2', 'every:3'])}"]])
    return microbatches(text, number), "+".join(words)


fresh(sys.argv[1])
if sys.argv[2:3] == ["--random"]:
    first, count = map(int, sys.argv[3:])
    CASES = {f"seed {seed}": (text, [words], None) for seed in range(first, first + count) for text, words in [draw(seed)]}
    del sys.argv[2:]
patterns = [word for word in sys.argv[2:] if word != "--few"]
for name, (text, strategies, other) in CASES.items():
    if patterns and not any(pattern in name for pattern in patterns):
        continue
    strategies = strategies[1::2] or strategies if "--few" in sys.argv else strategies
    open("model.mlir", "w").write(text)
    open("other.mlir", "w").write(other or text)
    compile("other.mlir", "one")
    want = train("./one", **RUN)
    for words in strategies:
        options = strategy(words)
        del options["microbatches"]
        compile("model.mlir", "exe", **options)
        have = train("./exe", ranks_of(options["mesh"]), **RUN)
        for key in want[0]:
            if key in ("loss", "grad_norm", "term", "weights"):
                error = distance(have, want, key)
                check(error < 1e-5, f"{name}, {words}: {key} differs by {error:.1e}: {have}, of one rank {want}")
        print(f"{name}, {words}: equal")
