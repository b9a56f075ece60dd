#!/usr/bin/env python3
"""Processor time and memory against ranks: all-reduces and an all-to-all, folded and unfolded, and SimGrid's ring.

    scale.py WEFT SOURCE_DIR [--ranks N,N,...] [--only NAME,...] [--fluid FLUID_BENCH] [--simgrid SIMGRID_BENCH]
    scale.py WEFT SOURCE_DIR --bars

Nodes are HGX H100 with 8 NICs on one switch, one size over GPUDirect RDMA, one thread. Time, and memory (that run's
peak), of the quickest of the repeats; what takes over 30 s runs once. What is refused (exit code 2), or takes longer or
more memory than the limits, is a dash, and so are larger clusters of its column; what was not tried is blank. The ring
of messages is that of tests/bench/shapes.hpp, rank by rank and step by step, on weft's fluid alone and on SimGrid, which
must agree. With --bars the runs that have to stay within a bound of user time and memory, each once: exit code 1 if
one does not. Every command is printed before it runs, with the scenario that it reads. Linux.
"""
import argparse
import os
import pathlib
import platform
import re
import resource
import shlex
import subprocess
import sys
import tempfile

RANKS = "64,256,1024,4096,16384,32768,65536,262144,1048576"
CASES = {"Ring": "allreduce", "Tree": "allreduce", "NVLSTree": "allreduce", "P2P": "alltoall"}
HGX, GB200 = "hgx-h100-8nic", "gb200-nvl72"
RAILS = "network.kind: rail-optimised, network.ports: 64"
SIZES_31 = "min: 8 B, max: 8 GiB, factor: 2"
SWEEP_AXES = ("nodes=256,384,512,768,1024", "nic.count=4,8", "nic.rate=200 Gb/s,400 Gb/s", "network.ports=32,40,48,56,64",
              "wire.cable_length=5 m,10 m,20 m,50 m,100 m")
REPORT = re.compile(r"^ring: ([\d.]+) s simulated, .* peak ([\d.]+) MB", re.M)


def scenario(source, nodes, op, sizes, settings="", topology=HGX, paths="gdr"):
    return (f"scenario: scale\ntopology: {os.path.abspath(source)}/topologies/{topology}.yaml\nnodes: {nodes}\n"
            f"workload: {{op: {op}, {sizes}}}\nmemory_paths: [{paths}]\n" + (f"set: {{{settings}}}\n" if settings else ""))


class Scenarios:
    """Files of scenarios in a folder that goes when this does; each is printed."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.count = 0

    def file(self, text):
        self.count += 1
        path = pathlib.Path(self.folder.name, f"{self.count}.yaml")
        path.write_text(text, encoding="utf-8")
        print(f"# {path}: {{" + ", ".join(text.splitlines()) + "}")
        return str(path)


class Column:
    """One thing that is run at more and more ranks."""

    def __init__(self, arguments):
        self.limit_s, self.limit_bytes, self.repeat = arguments.limit, arguments.memory * 10**9, arguments.repeat
        self.ended = False
        self.output = ""  # of the last run that ended well

    def once(self, command):
        """Processor seconds, MB, and user seconds; None where it is refused or takes too much."""
        print(f"$ {shlex.join(command)}", flush=True)

        def limits():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (self.limit_s, self.limit_s + 1))
            resource.setrlimit(resource.RLIMIT_AS, (self.limit_bytes, self.limit_bytes))
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(command, stdout=output, stderr=errors, preexec_fn=limits)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            errors.seek(0)
            text, said = output.read(), errors.read()
        ran_out = process.returncode < 0 or "bad_alloc" in said
        if process.returncode not in (0, 2) and not ran_out:
            sys.exit(f"{' '.join(command)}: exit code {process.returncode}\n{said}")
        if process.returncode != 0:
            return None
        self.output = text
        own = REPORT.search(self.output)  # ru_maxrss has what this process had, too
        memory = float(own.group(2)) if own else used.ru_maxrss * 1024 / 1e6
        return used.ru_utime + used.ru_stime, memory, used.ru_utime

    def cost(self, command):
        if self.ended:
            return None
        best = self.once(command)
        self.ended = best is None
        for _ in range(self.repeat - 1):
            if best and best[0] <= 30:
                best = min(best, self.once(command) or best)
        return best


def shown(cost, is_tried=True):
    if not is_tried:
        return f"{'':21}"
    return f"{cost[0]:8.2f} s {cost[1]:7.0f} MB" if cost else f"{'-':>10} {'-':>10}"


def heading(title, *columns):
    print(f"\n{title}\n{'ranks':>10}" + "".join(f"  {column:>21}" for column in columns))


def collectives(arguments, ranks):
    scenarios = Scenarios()
    for algo, op in CASES.items():
        if algo not in arguments.only.split(","):
            continue
        heading(f"{op} {algo}", "folded", "unfolded")
        folded, unfolded = Column(arguments), Column(arguments)
        unfolded.repeat = 1
        for n in ranks:
            forced = f"nccl.algo: {algo}" if op == "allreduce" else ""
            path = scenarios.file(scenario(arguments.source, n // 8, op, f"sizes: [{arguments.size}]", forced))
            run = [arguments.weft, "run", path, "--threads", "1"]
            is_tried = n <= arguments.most_unfolded
            whole = unfolded.cost([*run, "--unfolded"]) if is_tried else None
            print(f"{n:10}  {shown(folded.cost(run))}  {shown(whole, is_tried)}".rstrip(), flush=True)


def bars(arguments):
    """Whether every run stays within its bound."""
    source, scenarios = arguments.source, Scenarios()
    gib = "sizes: [1 GiB]"

    def run(*scenario_of, **more):
        return [arguments.weft, "run", scenarios.file(scenario(source, *scenario_of, **more)), "--threads", "1"]

    def all_reduce(nodes, algo):
        return lambda: run(nodes, "allreduce", gib, f"nccl.algo: {algo}")

    def sweep():
        axes = [word for axis in SWEEP_AXES for word in ("--set", axis)]
        file = os.path.join(os.path.abspath(source), "scenarios/planning/sweep-500.yaml")
        return [arguments.weft, "sweep", file, *axes, "--threads", "1"]

    cases = [  # command, user seconds, MB
        ("1,024 GPUs on rails, 31 sizes, 2 paths",
         lambda: run(128, "allreduce", SIZES_31, RAILS, paths="gdr, host-staged"), 10, 200),
        *((f"32,768 GPUs, {algo}", all_reduce(4096, algo), 2, 500) for algo in ("Ring", "Tree", "NVLSTree")),
        *((f"1,048,576 GPUs, {algo}", all_reduce(131072, algo), 10, 1000) for algo in ("Ring", "Tree")),
        *((f"{racks} GB200 racks, {racks * 72} GPUs", lambda racks=racks: run(racks, "allreduce", gib, topology=GB200), 5, None)
          for racks in (8, 456)),
        ("all-to-all of 32,768 GPUs", lambda: run(4096, "alltoall", gib), 10, None),
        ("sweep of 500 points, 2,048 to 8,192 GPUs", sweep, 300, None)]
    table = []
    for name, command, most_s, most_mb in cases:
        cost = Column(arguments).once(command())
        met = cost is not None and cost[2] <= most_s and (most_mb is None or cost[1] <= most_mb)
        number = f"{cost[2]:8.2f} s {cost[1]:6.0f} MB" if cost else f"{'-':>10} {'-':>9}"
        bar = f"{most_s:4} s" + (f" {most_mb:5} MB" if most_mb else f"{'':9}")
        table.append((f"{name:42}  {number}  {bar}  {'met' if met else 'not met'}", met))
        print(table[-1][0], flush=True)
    print(f"\n{'run':42}  {'user time, peak memory':>20}  bar")
    for line, _ in table:
        print(line)
    return all(met for _, met in table)


def rings_of_messages(arguments, ranks):
    programs = [(name, program) for name, program in (("weft's fluid", arguments.fluid), ("SimGrid", arguments.simgrid))
                if program]
    if not programs:
        return
    heading("ring of messages", *(name for name, _ in programs))
    columns = [Column(arguments) for _ in programs]
    for n in ranks:
        costs, results = [], []
        for column, (_, program) in zip(columns, programs):
            costs.append(column.cost([program, "ring", str(n)]))
            if costs[-1]:
                results.append(float(REPORT.search(column.output).group(1)))
        if not results:
            break
        print(f"{n:10}" + "".join(f"  {shown(cost)}" for cost in costs), flush=True)
        if max(results) > min(results) * (1 + 1e-6):
            sys.exit(f"they disagree: {results}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weft")
    parser.add_argument("source")
    parser.add_argument("--size", default="1 GiB")
    parser.add_argument("--ranks", default=RANKS, help="multiples of 8; of rings of messages powers of two")
    parser.add_argument("--only", default=",".join(CASES), help="algorithms")
    parser.add_argument("--most-unfolded", type=int, default=1024)
    parser.add_argument("--bars", action="store_true", help="the runs that have to stay within a bound, in place of the tables")
    parser.add_argument("--limit", type=int, default=300, help="processor seconds of a run")
    parser.add_argument("--memory", type=int, default=8, help="GB of address space of a run")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--fluid", help="weft's fluid_bench")
    parser.add_argument("--simgrid", help="simgrid_bench (Debian's libsimgrid-dev)")
    arguments = parser.parse_args()
    ranks = [int(n) for n in arguments.ranks.split(",")]
    if any(n % 8 for n in ranks):
        parser.error("--ranks: nodes have 8 GPUs")
    if unknown := set(arguments.only.split(",")) - {*CASES, "none"}:
        parser.error(f"--only: {', '.join(sorted(unknown))}: {', '.join(CASES)} or none")
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    print(f"# {model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, load {os.getloadavg()[0]:.1f}")
    if arguments.bars:
        sys.exit(0 if bars(arguments) else 1)
    print(f"# {os.path.basename(arguments.weft)} run, one size of {arguments.size}, --threads 1; unfolded: --unfolded; "
          f"at most {arguments.limit} s, {arguments.memory} GB")
    collectives(arguments, ranks)
    rings_of_messages(arguments, ranks)


if __name__ == "__main__":
    main()
