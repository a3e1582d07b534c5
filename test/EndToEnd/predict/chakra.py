#!/usr/bin/env python3
"""Chakra execution traces of `--emit chakra`: chakra.py INPUTS WORK

Reads the protocol buffers without Meshwright's code, and lets all ranks run: every node comes to its turn, receives what was sent to it, and the members
of a group call the same collectives in the same order.
"""
import collections
import json
import pathlib
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from clusters import write_cluster
from harness import check, compile, fresh, planned, ranks_of, strategy

inputs = pathlib.Path(sys.argv[1]).resolve()
fresh(sys.argv[2])
COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
KINDS = ["all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast", "all_to_all", "reduce_scatter"]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            check(key & 7 == 2, f"wire type {key & 7}")
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def nodes_of(path):
    data, at, messages = path.read_bytes(), 0, []
    while at < len(data):
        size, at = varint(data, at)
        messages.append(data[at:at + size])
        at += size
    check(dict(fields(messages[0])) == {1: b"0.0.4"}, "the schema's version")
    nodes = []
    for message in messages[1:]:
        node = {"after": [], "attr": {}, "micros": 0}
        for number, value in fields(message):
            if number == 5:
                place = 0
                while place < len(value):
                    before, place = varint(value, place)
                    node["after"].append(before)
            elif number == 10:
                (_, name), (_, content) = fields(value)
                node["attr"][name.decode()] = content.decode() if isinstance(content, bytes) else content
            else:
                node[{1: "id", 2: "name", 3: "type", 7: "micros"}[number]] = value
        nodes.append(node)
    check([node["id"] for node in nodes] == list(range(1, len(nodes) + 1)), "numbers of nodes")
    return nodes


def run(ranks, groups):
    """Lets ranks go as far as they come, until all are at their ends."""
    done = [set() for _ in ranks]
    sent, received, calls = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    waiting, progress = [list(nodes) for nodes in ranks], True
    while progress:
        progress = False
        for rank, left in enumerate(waiting):
            for node in list(left):
                if not all(before in done[rank] for before in node["after"]):
                    continue
                attr = node["attr"]
                if node["type"] == SEND:
                    check(attr["comm_src"] == rank, f"rank {rank} sends as {attr['comm_src']}")
                    sent[rank, attr["comm_dst"], attr["comm_tag"], attr["comm_size"]] += 1
                if node["type"] == RECEIVE:
                    message = attr["comm_src"], rank, attr["comm_tag"], attr["comm_size"]
                    if sent[message] <= received[message]:
                        continue
                    received[message] += 1
                if node["type"] == COLLECTIVE:
                    members = groups[attr["pg_name"]]
                    check(rank in members, f"rank {rank} calls a collective of {members}")
                    number = node.setdefault("call", len(calls[attr["pg_name"], rank]))
                    if number == len(calls[attr["pg_name"], rank]):
                        calls[attr["pg_name"], rank].append((attr["comm_type"], attr["comm_size"]))
                    others = [calls[attr["pg_name"], member] for member in members]
                    if any(len(other) <= number for other in others):
                        continue
                    check(len({other[number] for other in others}) == 1, f"members of {members} call {[other[number] for other in others]}")
                done[rank].add(node["id"])
                left.remove(node)
                progress = True
    check(not any(waiting), f"nodes that wait for ever: {[left[:1] for left in waiting]}")
    check(sent == received, "each message is received")


write_cluster(target="cpu", count=8)
for model, rows in {"golden/gpt2-tiny": "one data=2+zero=3 pipe=2/4 pipe=2,data=2/2+schedule=zb-h1+zero=1 data=4+collective-algorithm=ring one+offload=optimizer",
                    "golden/llama-tiny": "tensor=2+sequence-parallel context=2 pipe=2,tensor=2/4+schedule=interleaved:2",
                    "golden-more/sparse-deepseek-v3": "expert=2 data=2,expert=2+zero=2"}.items():
    config = inputs / model / "config.json"
    for row in rows.split():
        options = {"batch": 8, "seq": 16, **strategy(row)}
        size = ranks_of(options.get("mesh") or "")
        compile(config, "traces", emit="chakra", cluster="c.toml", **options)
        ranks = [nodes_of(pathlib.Path(f"traces/step.{rank}.et")) for rank in range(size)]
        groups = json.load(open("traces/groups.json"))
        run(ranks, groups)
        # Each call of the plan is a node.
        plan = planned(config, cluster="c.toml", **options)
        want, rounds = collections.Counter(), False
        for entry in plan["collectives"]:
            if entry["program"] == "step" and entry["op"] in KINDS:
                want[entry["op"]] += entry["times"]
                rounds |= "rounds" in entry
        have = collections.Counter(KINDS[node["attr"]["comm_type"]] for node in ranks[0] if node["type"] == COLLECTIVE)
        if "pipe" not in row: # stages differ, and the plan has those of all
            # Of rounds that depend on data the plan has the most, and traces as many as are expected.
            check(have == want or rounds and have.keys() == want.keys() and have <= want, f"{model} {row}: collectives {have}, in the plan {want}")
        compute = [node for node in ranks[0] if node["type"] == COMPUTE]
        check(sum(node["attr"]["num_ops"] for node in compute) > 0 and all(node["micros"] >= 1 for node in compute if node["attr"]["tensor_size"]), f"{model} {row}: times")
        print(f"{model} {row}: {[len(rank) for rank in ranks]} nodes, {len(groups)} groups", flush=True)

# Without a cluster nodes have no times.
said = compile(inputs / "golden/gpt2-tiny/config.json", "plain", emit="chakra", batch=8, seq=16)
check("without --cluster" in said, said)
check(not any(node["micros"] for node in nodes_of(pathlib.Path("plain/step.0.et"))), "times from nowhere")
pathlib.Path("file").write_text("")
pathlib.Path("few.toml").write_text(pathlib.Path("c.toml").read_text().split('[[levels]]\nname = "outside"')[0])
for words, why in {(): "name their folder with -o DIR", ("-o", "file"): "cannot write in the folder 'file'",
                   ("-o", "few", "--mesh", "data=16", "--cluster", "few.toml"): "the mesh has 16 devices, but test only 8",
                   ("-o", "much", "--mesh", "data=64", "--batch", "524288", "--microbatches", "8192"): "nodes together"}.items():
    done = subprocess.run(["meshwright", "compile", inputs / "golden/gpt2-tiny/config.json", "--emit", "chakra", "--seq", "16", *words], capture_output=True, text=True, timeout=120)
    check(done.returncode == 1 and why in done.stderr, f"{words}: {done.returncode} {done.stderr[:300]}")
