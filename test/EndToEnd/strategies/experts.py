#!/usr/bin/env python3
"""Routers that send every token to the same experts, which some devices have and others have not: nothing is lost, the
losses are those of one device, and what is sent are rows alone, in as many rounds as they take.

  experts.py CONFIG WORK [--all] MESH...

CONFIG: of deepseek_v3, whose routers have a bias of the choice. GPUs, MESH+target=cuda, send whole slots. --all: tokens are dropped on
more meshes.
"""
import json
import math
import pathlib
import struct
import sys

sys.path.append(sys.path[0] + "/..")
from harness import arena_printed, built, call, check, compile, distance, flags, fresh, ranks_of, rows, strategy, train

STEPS = 6


def change(source, target, *experts):
    """Copies weights, with biases that make all tokens choose `experts`."""
    data = open(source, "rb").read()
    start = 8 + struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)  # the checksums
    numbers = bytearray(data[start:])
    changed = 0
    for name, entry in header.items():
        if name.endswith("e_score_correction_bias"):
            begin, end = entry["data_offsets"]
            struct.pack_into(f"<{(end - begin) // 4}f", numbers, begin,
                             *(50.0 if i in experts else 0.0 for i in range((end - begin) // 4)))
            changed += 1
    check(changed > 0, "no router has a bias")
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open(target, "wb").write(struct.pack("<Q", len(text)) + text + numbers)


def check_bytes(options, have):
    """Devices that have neither expert send k rows a token, each five times in a layer, and three weights; the device that
    has them both sends none but the results and gradients of the others' rows. Experts' numbers are sent for all slots."""
    if not options["mesh"]:
        return
    sizes = json.loads(pathlib.Path(config).read_text())
    axes = dict(axis.split("=") for axis in options["mesh"].split(","))
    devices, pieces = int(axes["expert"]), int(axes.get("context", 1))
    layers, k, hidden = sizes["num_hidden_layers"] - sizes["first_k_dense_replace"], sizes["num_experts_per_tok"], sizes["hidden_size"]
    tokens = size["batch"] * size["seq"] // devices * (devices - 1)  # of devices that send their rows away
    experts = sizes["n_routed_experts"] // devices
    all = size["seq"] * min(k, experts)  # slots of a sequence for each device
    parts = int(options.get("expert-parts", 1))
    of_round = parts * pieces * math.ceil(math.ceil(float(options.get("expert-buffer", 1.25)) * k * size["seq"] / devices) / (parts * pieces))
    # Both experts are one device's if it has two of them.
    rounds = math.ceil(size["seq"] * min(k, experts) / of_round) if of_round < all else 1
    seen = {row.get("expert_rounds") for row in have}
    check(seen == ({rounds} if of_round < all else {None}), f"rows went in {seen} rounds, expected {rounds}")
    if options.get("remat") or "tensor" in options["mesh"]:
        return
    # Of all devices, but those they keep.
    slots = size["batch"] * (rounds * of_round if of_round < all else parts * math.ceil(all / parts)) * (devices - 1)
    filled = 4 * layers * k * tokens * (5 * hidden + 3)
    numbers = 4 * layers * slots * 2
    sent = sum(event["args"].get("sent_bytes", {}).get("all_to_all", 0)
               for event in json.load(open("trace.json"))["traceEvents"])
    plan = json.loads(call(["meshwright", "inspect", "--json", built(config, **options)]))
    exchanges = [entry for entry in plan["collectives"] if entry["op"] == "all_to_all" and entry["program"] == "step"]
    if options.get("target") == "cuda":
        # Rounds behind the first are planned as many as there may be.
        planned = sum(entry["bytes"] * entry["times"] * (rounds - 1) // entry["rounds"] if "rounds" in entry
                      else entry["bytes"] * entry["times"] for entry in exchanges)
        check(sent == STEPS * planned, f"{sent} bytes were sent, expected {STEPS * planned}, as planned of {rounds} rounds")
        return
    most = sum(entry["bytes"] * entry["times"] for entry in exchanges)
    print(f"  all_to_all: {sent // STEPS} bytes a step, {filled} of rows, {numbers} of experts' numbers; {most} planned at most")
    check(sent == STEPS * (filled + numbers), f"{sent} bytes were sent, expected {STEPS * (filled + numbers)}")
    check(filled + numbers < most, "as many bytes are planned")


def check_uniform(devices, options):
    """Every token has as many rows on each device: a device sends 5 T k h b (N - 1) / N bytes of rows a layer, besides weights
    and experts' numbers, whatever arena was planned. `options`: of the compiler, beside the mesh."""
    sizes = dict(json.loads(config.read_text()), num_experts_per_tok=4, n_group=1, topk_group=1)
    pathlib.Path("uniform.json").write_text(json.dumps(sizes))
    experts, layers = sizes["n_routed_experts"], sizes["num_hidden_layers"] - sizes["first_k_dense_replace"]
    change("first/latest/model.safetensors", "uniform.safetensors", *range(0, experts, experts // 4))
    compiled = compile("uniform.json", "many", mesh=f"expert={devices}", **size, **options)
    said = call(["meshwright", "run", "-n", devices, "./many", *flags(dict(run, steps=1, init="uniform.safetensors", trace="trace.json"))])
    check(arena_printed(said) == arena_printed(compiled), f"{compiled}\nis not what ranks allocate:\n{said}")
    tokens = size["batch"] * size["seq"] // devices
    away = tokens * 4 * (devices - 1) // devices
    slots = size["batch"] // devices * math.ceil(float(options.get("expert_buffer", 1.25)) * 4 * size["seq"] / devices)
    rounds = math.ceil(tokens * 4 / devices / slots)
    slots = min(rounds * slots, size["batch"] // devices * size["seq"] * min(4, experts // devices))
    want = 4 * layers * (away * (5 * sizes["hidden_size"] + 3) + 2 * slots * (devices - 1))
    ranks = {}
    for event in json.load(open("trace.json"))["traceEvents"]:
        sent = event["args"].get("sent_bytes", {}).get("all_to_all", 0)
        ranks[event["pid"]] = ranks.get(event["pid"], 0) + sent
    print(f"uniform, expert={devices} {options}: {ranks} bytes in {rounds} rounds, arena {arena_printed(said)}", flush=True)
    check(list(ranks.values()) == [want] * devices, f"ranks sent {ranks} bytes, expected {want}")


everything = "--all" in sys.argv
config, work, *meshes = (word for word in sys.argv[1:] if word != "--all")
config = pathlib.Path(config).resolve()
fresh(work)
data = pathlib.Path(__file__).resolve().parents[2] / "Inputs/golden-more/corpus.txt"
run = dict(data=data, tokens="u8", lr=1e-3)
size = dict(batch=8, seq=16)
compile(config, "one", **size)
train("./one", steps=0, save="first", **run)
if not all("target=cuda" in mesh for mesh in meshes):
    for devices, options in ((4, {}), (2, {"expert_buffer": 0.5})):
        check_uniform(devices, options)
for expert in (0, 6):
    change("first/latest/model.safetensors", "weights.safetensors", expert, expert + 1)
    want = train("./one", steps=STEPS, init="weights.safetensors", **run)
    for mesh in meshes:
        options = dict(size, **strategy(mesh))
        exe = built(config, **options)
        said = call(["meshwright", "run", "-n", ranks_of(options["mesh"]), exe, *flags(
            dict(run, steps=STEPS, init="weights.safetensors", trace="trace.json", metrics="metrics.jsonl"))])
        have = rows("metrics.jsonl")
        if "pipe" not in options["mesh"]:  # Stages have arenas of their own, each in a line.
            arena = json.loads(call(["meshwright", "inspect", "--json", exe]))["arena_bytes"]
            check(arena_printed(said) == arena, f"{arena} bytes are planned, ranks allocate:\n{said}")
        loss, norm = distance(have, want), distance(have, want, "grad_norm")
        print(f"all tokens to experts {expert} and {expert + 1}, {mesh}: loss {loss:.1e}, grad_norm {norm:.1e}", flush=True)
        check(loss <= 1e-6, f"a loss is off by {loss:.2e}")
        check(norm <= 5e-5, f"a gradient norm is off by {norm:.2e}")
        check_bytes(options, have)
# Tokens beyond what experts take go without them, everywhere the same ones.
for capacity in (0.5, 2):
    compile(config, "one", expert_capacity=capacity, **size)
    want = train("./one", steps=STEPS, init="weights.safetensors", **run)
    dropped = distance(want, have)
    check(dropped > 2e-5, f"losses differ by {dropped:.1e} from those where no token is dropped")
    dropping = ("expert=2", "data=2,expert=2/2", "context=2,expert=2+context-parallel=ulysses+expert-buffer=0.3")
    if not everything:
        dropping = dropping[2:] if capacity < 1 else dropping[1:2]
    if all("target=cuda" in mesh for mesh in meshes):
        dropping = ("one+target=cuda", "data=2,expert=2/2+target=cuda")
    for mesh in dropping:
        options = dict(size, **strategy(mesh))
        compile(config, "many", expert_capacity=capacity, **options)
        loss = distance(train("./many", ranks_of(options["mesh"]), steps=STEPS, init="weights.safetensors", **run), want)
        print(f"experts take {capacity} times their share, {mesh}: loss {loss:.1e}", flush=True)
        check(loss <= 1e-6, f"a loss is off by {loss:.2e}")
