"""Two hosts in one machine: network namespaces behind a bridge, whose links let so many bits through. Needs root, iproute2 and Open MPI.

`tc tbf` limits the rate. A delay would need `tc netem`, which not every kernel has.
"""
import os
import pathlib
import subprocess

HOSTS = 2


def run(*words):
    subprocess.run([str(word) for word in words], check=True)


class Hosts:
    """Network namespaces meshwright1, meshwright2, .., each with one address, for as long as the block lasts."""

    def __init__(self, rate):
        self.rate = rate

    def __enter__(self):
        self.__exit__()
        run("ip", "link", "add", "meshwright0", "type", "bridge")
        run("ip", "addr", "add", "10.99.0.254/24", "dev", "meshwright0")
        run("ip", "link", "set", "meshwright0", "up")
        for number in range(1, HOSTS + 1):
            name = f"meshwright{number}"
            run("ip", "netns", "add", name)
            run("ip", "link", "add", f"mw-veth{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", f"mw-veth{number}", "master", "meshwright0", "up")
            run("ip", "-n", name, "addr", "add", f"10.99.0.{number}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", self.rate, "burst", "256kb", "latency", "100ms")
        # What mpirun starts its daemons with, in place of ssh: hosts are told apart by their names too.
        agent = pathlib.Path("agent").resolve()
        agent.write_text('#!/bin/bash\nhost=meshwright${1##*.}; shift\nexec ip netns exec $host unshare --uts bash -c "hostname $host; $*"\n')
        agent.chmod(0o755)
        addresses = ",".join(f"10.99.0.{number}" for number in range(1, HOSTS + 1))
        self.launcher = ["mpirun", "--allow-run-as-root", "--host", addresses, "-n", str(HOSTS), "--mca", "plm_rsh_agent", str(agent), "--mca", "oob_tcp_if_include", "10.99.0.0/24",
                         "--mca", "btl_tcp_if_include", "10.99.0.0/24", "--mca", "btl", "tcp,self", "--mca", "pml", "ob1", "-x", "PATH"]
        os.environ["OMP_NUM_THREADS"] = "1"
        self.launcher += ["-x", "OMP_NUM_THREADS"]
        return self

    def __exit__(self, *error):
        for number in range(1, HOSTS + 1):
            subprocess.run(["ip", "netns", "del", f"meshwright{number}"], stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "link", "del", "meshwright0"], stderr=subprocess.DEVNULL)
