#!/usr/bin/env python3
"""Processor time and memory of one all-reduce or all-to-all against ranks, folded and unfolded.

    scale.py WEFT SOURCE_DIR [--most RANKS] [--most-unfolded RANKS]

Nodes are HGX H100 with 8 NICs on one switch, one size over GPUDirect RDMA, one thread. A run's memory is its peak; a run
that weft refuses, or that takes longer than the limit, is a dash.
"""
import argparse
import os
import platform
import resource
import subprocess
import tempfile

LIMIT_S = 300
CASES = (("allreduce", "Ring"), ("allreduce", "Tree"), ("allreduce", "NVLSTree"), ("alltoall", None))


def scenario(source, op, algo, nodes, size):
    forced = f"set: {{nccl.algo: {algo}}}\n" if algo else ""
    return (f"scenario: scale\ntopology: {source}/topologies/hgx-h100-8nic.yaml\nnodes: {nodes}\n"
            f"workload: {{op: {op}, sizes: [{size}]}}\nmemory_paths: [gdr]\n{forced}")


def cost(weft, text, *options):
    """Processor seconds and MB of a run; None where it is refused or takes too long."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "scale.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))
        process = subprocess.Popen([weft, "run", path, "--threads", "1", *options], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, preexec_fn=limit)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            return None
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3


def shown(pair):
    return f"{pair[0]:8.2f} s {pair[1]:7.0f} MB" if pair else f"{'-':>10} {'-':>10}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weft")
    parser.add_argument("source")
    parser.add_argument("--size", default="1 GiB")
    parser.add_argument("--most", type=int, default=32768)
    parser.add_argument("--most-unfolded", type=int, default=512)
    arguments = parser.parse_args()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    print(f"# {model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}")
    print(f"# {os.path.basename(arguments.weft)} run, one size of {arguments.size}, --threads 1; unfolded: --unfolded")
    for op, algo in CASES:
        print(f"\n{op} {algo or ''}\n{'ranks':>10}  {'folded':>21}  {'unfolded':>21}")
        ranks = 64
        while ranks <= arguments.most:
            text = scenario(os.path.abspath(arguments.source), op, algo, ranks // 8, arguments.size)
            folded = cost(arguments.weft, text)
            unfolded = cost(arguments.weft, text, "--unfolded") if ranks <= arguments.most_unfolded else None
            print(f"{ranks:10}  {shown(folded)}  {shown(unfolded)}", flush=True)
            ranks *= 8
    print()


if __name__ == "__main__":
    main()
