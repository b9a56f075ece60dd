#!/usr/bin/env python3
"""What weft predicts, and a fingerprint of how it came about, against what is kept beside this file.

    fingerprints.py WEFT ROOT [GROUP...]           computes them anew; says what differs; exit 1 if so
    fingerprints.py WEFT ROOT --update [GROUP...]  keeps what is computed, and says what differs

WEFT is the program, ROOT the project's root; without GROUP all of them. README.md has more.
"""
import csv
import itertools
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
OPS = ("allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall", "sendrecv")
MOST_SHOWN = 30


class Weft:
    """The program, and where its files are."""

    def __init__(self, program, root):
        self.program = str(pathlib.Path(program).resolve())
        self.root = pathlib.Path(root).resolve()

    def files(self, pattern):
        return sorted(path.relative_to(self.root).as_posix() for path in self.root.glob(pattern))

    def rows(self, name, arguments, fields, stdin=""):
        """Of each of the JSON's results what fields(row) gives: (case, {field: value}). Or one, of a refusal."""
        done = subprocess.run([self.program, *arguments, "--json", "-"], input=stdin, cwd=self.root,
                              capture_output=True, text=True, check=False)
        if done.returncode == 2:
            yield name, {"refused": done.stderr.strip().splitlines()[-1]}
            return
        if done.returncode != 0:
            raise SystemExit(f"weft {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}{stdin}")
        for row in json.loads(done.stdout)["results"]:
            yield fields(row)

    def run(self, name, scenario, *arguments, text=""):
        """Rows of `weft run`."""
        def fields(row):
            return f"{name} {row['memory_path']} {row['bytes']}", {
                "time_us": f"{row['time_us']:.6f}",
                "busbw_GBps": f"{row['busbw_GBps']:.9g}",
                "ran": f"{row['algo']} {row['proto']} x{row['channels']}",
                "limited_by": causes(row["limited_by"]),
                "trajectory": row["trajectory"],
            }
        return self.rows(name, ["run", scenario, *arguments], fields, text)

    def perftest(self, topology, *arguments):
        """Rows of `weft perftest`."""
        name = " ".join([pathlib.Path(topology).stem, *arguments])

        def fields(row):
            return f"{name}: {row['bytes']}", {
                "bw_Gbps": f"{row['bw_Gbps']:.9g}",
                "peak_Gbps": f"{row['bw_peak_Gbps']:.9g}",
                "latency_us": f"{row['latency_us']:.6f}",
                "limited_by": row["limited_by"],
                "trajectory": row["trajectory"],
            }
        return self.rows(name, ["perftest", topology, *arguments], fields)

    def step(self, scenario, *arguments):
        """Rows of `weft step`."""
        name = " ".join([pathlib.Path(scenario).stem, *arguments])

        def fields(row):
            return f"{name} {row['memory_path']}", {
                "step_us": f"{row['step_us']:.6f}",
                "exposed": " + ".join(f"{g['name']} {g['exposed_us']:.3f}" for g in row["communication"]),
                "limited_by": causes(row["limited_by"]),
                "trajectory": row["trajectory"],
            }
        return self.rows(name, ["step", scenario, *arguments], fields)

    def traffic(self, scenario, *arguments):
        """Rows of `weft traffic`."""
        name = " ".join([pathlib.Path(scenario).stem, *arguments])

        def fields(row):
            return f"{name} {row['memory_path']}", {
                "time_us": f"{row['time_us']:.6f}",
                "busiest": f"{row['links'][0]['busy_us']:.6f} {row['links'][0]['where']}",
                "limited_by": causes(row["limited_by"]),
                "trajectory": row["trajectory"],
            }
        return self.rows(name, ["traffic", scenario, *arguments], fields)

    def copies(self, topology, *arguments):
        """Rows of `weft copies`."""
        name = " ".join(["copies", pathlib.Path(topology).stem, *arguments])

        def fields(row):
            return f"{name}: {row.get('test', '')} {row['from']} {row['to']} {row['bytes']}", {
                "time_us": f"{row['time_us']:.6f}",
                "limited_by": causes(row["limited_by"]),
                "trajectory": row["trajectory"],
            }
        return self.rows(name, ["copies", topology, *arguments], fields)


def causes(shares):
    """The largest, as people read them."""
    return "; ".join(f"{100 * c['share']:.2f} % {c['cause']}" for c in shares[:4] if c["share"] >= 0.005)


def scenario_text(topology, op, sizes, nodes=0, settings=(), env=()):
    """A scenario that is read from standard input."""
    env = {"NCCL_NVLS_ENABLE": "0", **dict(env)}
    return "".join([
        "scenario: fingerprint\n",
        f"topology: {topology}\n",
        f"nodes: {nodes}\n" if nodes else "",
        f"workload: {{op: {op}, sizes: [{', '.join(sizes)}]}}\n",
        "memory_paths: [gdr, host-staged]\n",
        f"env: {json.dumps(env)}\n",
        f"set: {json.dumps(dict(settings))}\n" if settings else "",
    ])


def nodes_of(weft, topology):
    """Two where there is a network; one rack, of which there may be one only, counts as it is."""
    text = (weft.root / topology).read_text()
    if "\nnetwork:" not in text and topology.endswith(".yaml"):
        return 1
    nodes = re.search(r"\nnodes: *(\d+)", text)
    return 0 if nodes and int(nodes[1]) <= 2 else 2


def quick(weft):
    """Some of each, in a few seconds."""
    for scenario in weft.files("scenarios/regressions/*.yaml"):
        yield from weft.run(pathlib.Path(scenario).stem, scenario)
    for topology in weft.files("topologies/*.[yx]*ml"):
        text = scenario_text(topology, "allreduce", ["1 MiB"], nodes_of(weft, topology))
        yield from weft.run(f"{pathlib.Path(topology).stem} allreduce", "-", text=text)
    topology = "topologies/genoa-2p-same-switch.yaml"
    for op in ("allreduce", "alltoall"):
        text = scenario_text(topology, op, ["256 KiB"])
        yield from weft.run(f"packets {op}", "-", "--fidelity", "packet", text=text)
    for memory, op in (("gpu", "write"), ("gpu", "read"), ("host", "send"), ("staged", "write")):
        yield from weft.perftest(topology, "--mem", memory, "--op", op, "--size", "64,65536", "--iters", "100")


def scenarios(weft):
    """Every shipped scenario."""
    for scenario in weft.files("scenarios/*.yaml"):
        yield from weft.run(pathlib.Path(scenario).stem, scenario)


def topologies(weft):
    """Every operation, small, medium and large, on every shipped topology."""
    for topology, op in itertools.product(weft.files("topologies/*.[yx]*ml"), OPS):
        text = scenario_text(topology, op, ["1 KiB", "1 MiB", "256 MiB"], nodes_of(weft, topology))
        yield from weft.run(f"{pathlib.Path(topology).stem} {op}", "-", text=text)


def algorithms(weft):
    """Each algorithm and protocol, on one, two and four nodes, by NCCL's rings and by the simple rules; NVLS; PAT."""
    for algo, proto, nodes, decisions in itertools.product(
            ("Ring", "Tree"), ("LL", "LL128", "Simple"), (1, 2, 4), ("nccl", "simple")):
        settings = {"nccl.algo": algo, "nccl.proto": proto, "nccl.decisions": decisions}
        text = scenario_text("topologies/hgx-h100-8nic.yaml", "allreduce", ["32 KiB", "16 MiB"], nodes, settings)
        yield from weft.run(f"{algo} {proto} {nodes} nodes {decisions}", "-", text=text)
    for op, algo, nodes in (("allreduce", "NVLS", 1), ("allgather", "NVLS", 1), ("reducescatter", "NVLS", 1),
                            ("allreduce", "NVLSTree", 2), ("allreduce", "NVLSTree", 4)):
        text = scenario_text("topologies/hgx-h100-8nic.yaml", op, ["1 MiB", "256 MiB" if nodes == 1 else "16 MiB"],
                             nodes, {"nccl.algo": algo}, {"NCCL_NVLS_ENABLE": "2"})
        yield from weft.run(f"{algo} {op} {nodes} nodes", "-", text=text)
    for op, nodes in itertools.product(("allgather", "reducescatter"), (2, 5, 8)):
        text = scenario_text("topologies/genoa-2p-same-switch.yaml", op, ["1 KiB", "1 MiB", "64 MiB"], nodes,
                             {"nccl.algo": "PAT"})
        yield from weft.run(f"PAT {op} {nodes} nodes", "-", text=text)


def packets(weft):
    """Small runs, packet by packet."""
    small = [f"topologies/{name}-{place}.yaml"
             for name in ("genoa-2p", "sapphire-rapids-2p")
             for place in ("same-switch", "same-root", "other-socket")]
    for topology, op in itertools.product(small, OPS):
        text = scenario_text(topology, op, ["8 KiB", "512 KiB"])
        yield from weft.run(f"{pathlib.Path(topology).stem} {op}", "-", "--fidelity", "packet", text=text)
    for name, settings in (
            ("roce", {"wire.kind": "roce"}),
            ("mtu 1024", {"wire.mtu": "1024 B"}),
            ("read tags 16", {"nic.read_tags": "16"}),
            ("iommu", {"cpu.iommu": "translate"}),
            ("acs", {"switch.acs": "0x1d"}),
            ("queue pairs 4", {"wire.qps_per_connection": "4"}),
            ("channels 4", {"nccl.channels": "4"})):
        text = scenario_text(small[0], "allreduce", ["2 MiB"], settings=settings)
        yield from weft.run(f"{name}", "-", "--fidelity", "packet", text=text)
    for topology, op, size in (("hgx-h100-8nic", "allreduce", "256 KiB"), ("hgx-h100-8nic", "alltoall", "64 KiB"),
                               ("hgx-a100", "allreduce", "256 KiB"), ("hgx-h100-2nic", "allgather", "256 KiB"),
                               ("hgx-h200-8nic", "broadcast", "256 KiB"), ("hgx-b200-8nic-cx8", "reduce", "256 KiB")):
        text = scenario_text(f"topologies/{topology}.yaml", op, [size], 2)
        yield from weft.run(f"{topology} {op}", "-", "--fidelity", "packet", text=text)


def perftest(weft):
    """Point to point: what is posted, from where, by whom, how far, and how."""
    ways = [("write", "gpu", "cpu"), ("write", "gpu", "gpu"), ("write", "gpu", "proxy"), ("read", "gpu", "cpu"),
            ("read", "gpu", "gpu"), ("read", "gpu", "proxy"), ("send", "gpu", "cpu"), ("write", "host", "cpu"),
            ("read", "host", "cpu"), ("send", "host", "cpu"), ("write", "staged", "cpu")]
    near = "topologies/genoa-2p-same-switch.yaml"
    for op, memory, post in ways:
        way = ["--op", op, "--mem", memory, "--post", post]
        yield from weft.perftest(near, *way, "--size", "8,4096,65536,1048576")
        for topology in ("genoa-2p-same-root.yaml", "genoa-2p-other-socket.yaml", "sapphire-rapids-2p-same-root.yaml",
                         "h200-vm-pix.2x2.xml"):
            yield from weft.perftest(f"topologies/{topology}", *way, "--size", "64,65536", "--iters", "200")
    for options in (["--qp", "4"], ["--bidirectional"], ["--tx-depth", "2"], ["--post-list", "16"], ["--cq-mod", "1"],
                    ["--set", "wire.kind=roce"], ["--set", "wire.mtu=1024"], ["--set", "nic.read_tags=16"],
                    ["--set", "cpu.iommu=translate"], ["--set", "nic.pcie_gen=4"], ["--set", "switch.acs=0x1d"]):
        for op in ("write", "read", "send"):
            yield from weft.perftest(near, "--op", op, *options, "--size", "64,65536", "--iters", "200")


def copies(weft):
    """Matrices, all GPUs at once, both ways, kernels, both transports."""
    yield from weft.copies("topologies/h200-vm.yaml", "--size", "1M")
    for topology in weft.files("topologies/*.yaml"):
        yield from weft.copies(topology, "--from", "cpu", "--to", "gpu0", "--bidirectional", "--size", "256K")
    for arguments in (("--to", "all"), ("--from", "all", "--bidirectional"), ("--from", "gpu0", "--to", "all"),
                      ("--to", "gpu0", "--by", "kernel", "--blocks", "8")):
        for topology, fidelity in itertools.product(("h200-vm", "hgx-h100-8nic"), ("fluid", "packet")):
            yield from weft.copies(f"topologies/{topology}.yaml", *arguments, "--size", "64,1M",
                                   "--fidelity", fidelity)


def steps(weft):
    """Training steps, irregular traffic."""
    for scenario in weft.files("scenarios/steps/*.yaml"):
        yield from weft.step(scenario)
        yield from weft.step(scenario, "--set", "wire.rate=200 Gb/s")
    for scenario in weft.files("scenarios/traffic/*.yaml"):
        yield from weft.traffic(scenario)
        yield from weft.traffic(scenario, "--set", "nodes=2", "--set", "wire.rate=200 Gb/s")


GROUPS = {f.__name__: f for f in (quick, scenarios, topologies, algorithms, packets, perftest, copies, steps)}


def kept(path):
    """What a file keeps, by case."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {row.pop("case"): {k: v for k, v in row.items() if v} for row in csv.DictReader(file)}


def keep(path, found):
    columns = []
    for fields in found.values():
        columns += [field for field in fields if field not in columns]
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, ["case", *columns], lineterminator="\n")
        out.writeheader()
        for case, fields in found.items():
            out.writerow({"case": case, **fields})


def change(old, new):
    """old -> new, and by how much where both are numbers."""
    try:
        return f"{old} -> {new} ({100 * (float(new) / float(old) - 1):+.4g} %)"
    except (ValueError, ZeroDivisionError):
        return f"{old} -> {new}"


def differences(old, new):
    """A line for each difference: of a case the fields that differ; a summary for each field."""
    lines = [f"{case}: is no more" for case in old if case not in new]
    lines += [f"{case}: is new" for case in new if case not in old]
    by_field = {}
    for case in (case for case in new if case in old):
        for field in dict.fromkeys([*old[case], *new[case]]):
            before, after = old[case].get(field, "nothing"), new[case].get(field, "nothing")
            if before == after:
                continue
            lines.append(f"{case}: {field}: {change(before, after)}")
            by_field[field] = by_field.get(field, 0) + 1
    summary = [f"{field} differs in {count} of {len(new)} cases" for field, count in by_field.items()]
    return lines, summary


def check(weft, name, update):
    """Whether a group is as it was kept; says so."""
    path = HERE / f"{name}.csv"
    found = {}
    for case, fields in GROUPS[name](weft):
        if case in found:
            raise SystemExit(f"{name}: two cases '{case}'")
        found[case] = fields
    lines, summary = differences(kept(path), found)
    for line in lines[:MOST_SHOWN]:
        print(f"{name}: {line}")
    if len(lines) > MOST_SHOWN:
        print(f"{name}: and {len(lines) - MOST_SHOWN} more")
    for line in summary:
        print(f"{name}: {line}")
    print(f"{name}: {len(found)} cases, {len(lines)} differences")
    if update:
        keep(path, found)
    return not lines


def main(arguments):
    update = "--update" in arguments
    arguments = [a for a in arguments if a != "--update"]
    if len(arguments) < 2 or any(a.startswith("-") or a not in GROUPS for a in arguments[2:]):
        print(f"{__doc__}\nGroups: {', '.join(GROUPS)}", file=sys.stderr)
        return 2
    weft = Weft(*arguments[:2])
    same = [check(weft, name, update) for name in arguments[2:] or GROUPS]
    return 0 if update or all(same) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
