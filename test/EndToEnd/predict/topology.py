#!/usr/bin/env python3
"""`meshwright topology` makes cluster files of machines that NCCL and nvidia-smi describe: topology.py CONFIG WORK"""
import json
import pathlib
import re
import subprocess
import sys
import tomllib

sys.path.append(sys.path[0] + "/..")
from harness import call, check, fresh

config = pathlib.Path(sys.argv[1]).resolve()
fresh(sys.argv[2])


def convert(text, *words, device="h100-sxm-measured", name="machine.txt"):
    """The cluster file, and what is printed."""
    pathlib.Path(name).write_text(text)
    said = call(["meshwright", "topology", name, "--device", device, "-o", "cluster.toml", *words])
    return tomllib.load(open("cluster.toml", "rb")), said


def levels(cluster):
    return [(level["name"], level.get("count"), level["bandwidth"]) for level in cluster["levels"]]


def refuse(text, said, *words, device="h100-sxm-measured"):
    pathlib.Path("bad.txt").write_text(text)
    done = subprocess.run(["meshwright", "topology", "bad.txt", "--device", device, "-o", "bad.toml", *words], capture_output=True, text=True, timeout=20)
    check(done.returncode == 1 and said in done.stderr, f"{said}: {done.returncode}, {done.stderr}")
    check(not pathlib.Path("bad.toml").exists(), "no file is written")


def matrix(links, adapters=0):
    """`nvidia-smi topo -m` of so many GPUs, whose links a function gives."""
    count = links.count
    head = "\t" + "\t".join([f"GPU{i}" for i in range(count)] + [f"NIC{i}" for i in range(adapters)] + ["CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    rows = ["\t".join([f"GPU{a}"] + [" X " if a == b else links(min(a, b), max(a, b)) for b in range(count)] + ["PIX"] * adapters + ["0-55", "0", "", "N/A"]) for a in range(count)]
    rows += ["\t".join([f"NIC{i}"] + ["PIX"] * count + [" X " if i == j else "SYS" for j in range(adapters)]) for i in range(adapters)]
    return "\x1b[4m" + head + "\x1b[0m\n" + "\n".join(rows) + "\n\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"


def machine(count, links):
    links.count = count
    return links


# Eight GPUs on NVSwitch; the header is underlined in terminals.
switched = machine(8, lambda a, b: "NV18")
cluster, said = convert(matrix(switched, adapters=8), "--network", 400)
check(levels(cluster) == [("NVLink", 8, 18 * 20.6e9), ("network", None, 50e9)], cluster)
check("NV18 between GPU0 and GPU1" in cluster["levels"][0]["source"] and "note" not in said, cluster)
check(cluster["devices"] == [{"like": "h100-sxm-measured"}], cluster)
found = json.loads(call(["meshwright", "predict", config, "--cluster", "cluster.toml", "--mesh", "data=16", "--batch", 16, "--seq", 32, "--json"]))
check(found["devices"] == 16 and found["cluster"] == "cluster", found)
cluster, said = convert(matrix(switched, adapters=8), "--network", 0)
check(levels(cluster) == [("NVLink", 8, 18 * 20.6e9)], cluster)

# Pairs with a bridge, two to a socket.
pairs = machine(8, lambda a, b: "NV12" if a // 2 == b // 2 else "PXB" if a // 4 == b // 4 else "SYS")
cluster, said = convert(matrix(pairs), "--interconnect", 10, device="a100-sxm")
check(levels(cluster) == [("NVLink", 2, 240e9), ("PCIe (PXB)", 2, 27.4e9), ("PCIe (SYS)", 2, 10e9)], cluster)
check("--interconnect" in cluster["levels"][2]["source"], cluster)

# A cube of NVLinks, in which GPUs of two sockets have links in pairs alone; the slowest within a block counts.
cube = machine(8, lambda a, b: ("NV2" if (a + b) % 4 == 3 else "NV1") if a // 4 == b // 4 else "NV2" if b - a == 4 else "SYS")
cluster, said = convert(matrix(cube), "--interconnect", 20, device="a100-sxm")
check(levels(cluster) == [("NVLink", 4, 20e9), ("PCIe (SYS)", 2, 20e9)], cluster)
check("note: NV2 between GPU0 and GPU4 is not in the file" in said, said)

# Blocks of three: pairs across two of them are no faster than the whole machine, and are no level.
triples = machine(6, lambda a, b: "NV12" if a // 3 == b // 3 else "SYS")
cluster, said = convert(matrix(triples), "--interconnect", 10, device="a100-sxm")
check(levels(cluster) == [("NVLink", 3, 240e9), ("PCIe (SYS)", 2, 10e9)] and "note" not in said, cluster)
# Pairs across two blocks of three are faster than the whole machine, but divide no block of six.
triples = machine(12, lambda a, b: "NV12" if a // 3 == b // 3 else "PXB" if a // 6 == b // 6 else "SYS")
cluster, said = convert(matrix(triples), "--interconnect", 10, device="a100-sxm")
check(levels(cluster) == [("NVLink", 3, 240e9), ("PCIe (PXB)", 2, 27.4e9), ("PCIe (SYS)", 2, 10e9)], cluster)
fives = machine(10, lambda a, b: "NV12" if a // 5 == b // 5 else "SYS")
cluster, said = convert(matrix(fives), "--interconnect", 10, device="a100-sxm")
check(levels(cluster) == [("NVLink", 5, 240e9), ("PCIe (SYS)", 2, 10e9)], cluster)

# What has no NVLink needs none.
plain = machine(2, lambda a, b: "PHB")
cluster, said = convert(matrix(plain), device="l40s")
check(levels(cluster) == [("PCIe (PHB)", 2, 27.4e9)], cluster)


def gpu(number, links, sm=90, bus=None):
    return f'<pci busid="{bus or f"0000:{number + 16:02x}:00.0"}" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="{number}" sm="{sm}" rank="{number}" gdr="1">{links}</gpu></pci>\n'


def adapter(number, speed=400000, name="mlx5"):
    return f'<pci busid="0001:{number:02x}:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"><nic><net name="{name}_{number}" dev="{number}" speed="{speed}" port="1" guid="0x1" gdr="1"/></nic></pci>\n'


def xml(bridges, head='<?xml version="1.0"?>\n<!-- two NUMA nodes -->\n'):
    """Each bridge has some children; half of the bridges are at each CPU."""
    half = len(bridges) // 2
    text = head + '<system version="1">\n'
    for numa, mine in enumerate((bridges[:half], bridges[half:])):
        text += f'<cpu numaid="{numa}" affinity="ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">\n'
        for number, children in enumerate(mine):
            text += f'<pci busid="ffff:{numa}{number}:01.0" class="0x060400" link_speed="16.0 GT/s PCIe"\n link_width="16">\n{children}</pci>\n'
        text += "</cpu>\n"
    return text + "</system>\n"


switches = "".join(f'<nvlink target="0000:d{i}:00.0" count="{n}" tclass="0x068000"/>' for i, n in enumerate((5, 4, 5, 4)))
cluster, said = convert(xml([gpu(i, switches) + adapter(i) for i in range(8)]))
check(levels(cluster) == [("NVLink", 8, 18 * 20.6e9), ("network", None, 50e9)], cluster)
check("8 adapters of 3200000 Mbit/s in all, for 8 GPUs" in cluster["levels"][1]["source"], cluster)
# Without NVLink: two GPUs at a switch of 16 GT/s, two switches at a CPU, two CPUs. The GPUs' own links count below a switch.
cluster, said = convert(xml([gpu(2 * i, "") + gpu(2 * i + 1, "") for i in range(4)]), "--interconnect", 22)
check(levels(cluster) == [("PCIe (PIX)", 2, 48e9), ("PCIe (PHB)", 2, 24e9), ("PCIe (SYS)", 2, 22e9)], cluster)
# PCIe 2.0: NCCL takes 30 for a lane of 5 GT/s, where it takes 60 for one of 8 GT/s.
cluster, said = convert(xml([gpu(0, "") + gpu(1, ""), adapter(0)]).replace("32.0 GT/s", "5.0 GT/s"), "--network", 0)
check(levels(cluster) == [("PCIe (PIX)", 2, 6e9)], cluster)
# A link between two GPUs, which one of them names; one adapter for both.
cluster, said = convert(xml([gpu(0, '<nvlink target="0000:11:00.0" count="12" tclass="0x030200"/>', 80) + gpu(1, "", 80), adapter(0, 200000) + adapter(0, 200000)]), device="a100-sxm")
check(levels(cluster) == [("NVLink", 2, 240e9), ("network", None, 12.5e9)], cluster)

# What is refused, by its line.
good = matrix(switched)
refuse("", "no line begins with GPU0")
refuse(good.replace("NV18", "NVL18", 1), "bad.txt:2: 'NVL18' between GPU0 and GPU1 is no link")
refuse(good.replace("NV18", "NV0", 1), "'NV0'")
refuse(good.replace("NV18", "NV12", 1), "bad.txt:3: GPU1 is linked to GPU0 by NV18, but in the other direction by NV12")
refuse(good.replace(" X ", "NV18", 1), "bad.txt:2: 'NV18' between GPU0 and GPU0")
refuse("\n".join(good.split("\n")[:4]), "the row of GPU3 is missing")
refuse(re.sub(r"(?m)^GPU3\t.*", "GPU3\tNV18\tNV18", good), "the row of GPU3 has 2 columns, but there are 8 GPUs")
refuse(good.replace("GPU2\tGPU3", "GPU3\tGPU2", 1), "'GPU3' where GPU2 or an adapter is expected")
refuse(matrix(switched, adapters=2), "the machine has 2 network adapters, and the topology does not say how fast they are; add --network")
refuse(matrix(pairs), "add --interconnect GBYTES")
refuse(good, "but --device l40s has no NVLink", device="l40s")
tree = xml([gpu(0, switches), gpu(1, switches)])
refuse(tree.replace("</cpu>", "", 1), "closes no element that is open")
refuse(tree.replace("</system>", ""), "bad.txt:3: <system> is not closed")
refuse(tree.replace('dev="1"', 'dev="0"'), "dev 0 is the GPU of line")
refuse(tree.replace('dev="1"', 'dev="2"'), "dev 2, but there are 2 GPUs")
refuse(tree.replace('dev="1"', 'dev="one"'), "'dev' of <gpu> must be a whole number up to 1023, found 'one'")
refuse(tree.replace('dev="1"', 'dev="1.0"'), "'dev' of <gpu> must be a whole number up to 1023, found '1.0'")
refuse(tree.replace('dev="1"', 'dev="1024"'), "found '1024'")
refuse(tree.replace('count="5"', 'count="5.5"'), "'count' of <nvlink> must be a whole number up to 1024, found '5.5'")
refuse(tree.replace('busid="0000:11:00.0"', 'busid="0000:10:00.0"'), "bad.txt:13: busid '0000:10:00.0' is that of GPU 0 already")
refuse(tree.replace('busid="0000:11:00.0"', ""), "bad.txt:13: <pci> of a <gpu> needs an attribute 'busid'")
refuse("<system>\n" + 63 * "<pci>" + "\n<pci></pci>" + 63 * "</pci>" + "</system>", "bad.txt:3: elements are nested more than 64 deep")
refuse("<system>\n" + 62 * "<pci>" + "\n<pci></pci>" + 62 * "</pci>" + "</system>", "no <gpu>")
refuse(tree.replace('sm="90" rank="1"', 'sm="80" rank="1"'), "must be of one type")
refuse(tree.replace("32.0 GT/s PCIe", "fast"), "'link_speed' must be as \"16.0 GT/s PCIe\", found 'fast'")
refuse(tree.replace('count="5"', ""), "<nvlink> needs an attribute 'count'")
refuse(tree.replace('sm="90"', "sm=90"), "must be in double quotes")
refuse(tree.replace("<?xml", "<!-- <?xml").replace("-->", ""), "'-->' is missing")
refuse(tree, "compute capability 90 (sm), but --device a100-sxm is of 80", device="a100-sxm")
refuse("<graphs/>", "begins with <system>")
refuse("<system></system>", "no <gpu>")
pathlib.Path("good.txt").write_text(good)
for words, message in {("good.txt", "-o", "x.toml"): "--device is missing", ("--device", "l40s", "-o", "x.toml"): "no topology given", ("good.txt", "--device", "l40s"): "-o must name the cluster file",
                       ("good.txt", "--device", "epyc-9654", "-o", "x.toml"): "--device", ("good.txt", "--device", "l40s", "-o", "x.toml", "--network", "-1"): "--network must be a number",
                       ("good.txt", "--device", "l40s", "-o", "x.toml", "--interconnect", "0"): "--interconnect must be a positive number", ("good.txt", "more.txt"): "one argument too many",
                       ("--fast",): "unknown option '--fast'", ("good.txt", "--device"): "a value is missing", ("none.txt", "--device", "l40s", "-o", "x.toml"): "cannot read 'none.txt'",
                       ("good.txt", "--device", "h100-sxm", "-o", "./x.toml", "--network", "1"): None}.items():
    done = subprocess.run(["meshwright", "topology", *words], capture_output=True, text=True, timeout=20)
    check((done.returncode == 0) if message is None else (done.returncode == 1 and message in done.stderr), f"{words}: {done.returncode}, {done.stderr}")
