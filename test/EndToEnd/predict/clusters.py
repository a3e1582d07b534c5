"""Cluster files for tests: two devices in a machine, any number of machines."""
import pathlib


def write_cluster(path="c.toml", memory=1e12, outside=1e9, latency=1e-6, target="cuda", memory_bandwidth=1e10, kernels=1e15, launch=1e-6, inside=1e9, count=2,
                  products=1e11, narrow=1e11, more="", contention=0, fast=None):
    algorithm = f'[[levels.algorithms]]\nname = "{fast}"\ncollectives = ["all_reduce"]\npattern = "ring"\nbandwidth = 1e12\nsource = "a test"' if fast else ""
    pathlib.Path(path).write_text(f"""
name = "test"
target = "{target}"
[[devices]]
name = "device"
memory = {memory}
products = {{f32 = {products}, bf16 = {narrow}}}
kernels = {kernels}
memory_bandwidth = {memory_bandwidth}
launch = {launch}
host = {{latency = 0, bandwidth = 1e10}}
source = "a test"
{more}
[[levels]]
name = "inside"
count = {count}
latency = {latency}
bandwidth = {inside}
contention = {contention}
source = "a test"
{algorithm}
[[levels]]
name = "outside"
latency = {latency}
bandwidth = {outside}
source = "a test"
""")
