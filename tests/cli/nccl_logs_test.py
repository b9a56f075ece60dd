#!/usr/bin/env python3
"""`weft nccl` against logs of real NCCL on machines that are not ours: what they say, nccl_logs.json.

    nccl_logs_test.py WEFT SOURCE_DIR [-v] [TEST...]

Each machine is written down from what its log prints. nccl_logs.json has what `parse` makes of each log; what weft
prints goes through it too, and all that a log says is compared. models/nccl/decide/decisions.md has
the table of what came out.
"""
import json
import pathlib
import re
import sys

import cli_test
from cli_test import CliTest

LOGS = json.loads((pathlib.Path(__file__).resolve().parent / "nccl_logs.json").read_text())

# Machines -----------------------------------------------------------------------------------------

SPEED = {1: "2.5 GT/s PCIe", 3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe", None: ""}
CPUS = {  # NCCL prints (1/1/1) Broadwell, (1/1/2) Skylake, (1/2/-1) AMD
    "broadwell": ("GenuineIntel", 6, 79), "skylake": ("GenuineIntel", 6, 85),
    "sapphire": ("GenuineIntel", 6, 143), "amd": ("AuthenticAMD", 143, 49),
}


def pci(bus, body, gen, width=16, pci_class="0x060400", ids=""):
    """`bus` as NCCL prints it: 3b000 is 0000:3b:00.0."""
    number = f"{int(bus, 16):09x}"
    vendor = "".join(f' {name}="0x{ids[i:i + 4]}"' for name, i in (
        ("vendor", 0), ("device", 4), ("subsystem_vendor", 8), ("subsystem_device", 12)) if ids)
    return (f'<pci busid="{number[:4]}:{number[4:6]}:{number[6:8]}.{number[8]}" class="{pci_class}"'
            f'{vendor} link_speed="{SPEED[gen]}" link_width="{width}">{body}</pci>\n')


def gpu(rank, bus, sm, gen, nvlinks=""):
    return pci(bus, f'<gpu dev="{rank}" sm="{sm}" rank="{rank}" gdr="1">{nvlinks}</gpu>', gen, 16,
               "0x030200")


def net(dev, mbps, guid, port=1, gdr=1):
    return f'<net name="n{dev}" dev="{dev}" speed="{mbps}" port="{port}" guid="{guid}" gdr="{gdr}"/>'


def nic(bus, nets, gen, width=16):
    return pci(bus, f"<nic>{nets}</nic>", gen, width, "0x020700")


def cpu(numa, kind, body):
    vendor, family, model = CPUS[kind]
    return (f'<cpu numaid="{numa}" arch="x86_64" vendor="{vendor}" familyid="{family}" '
            f'modelid="{model}">\n{body}</cpu>\n')


def nvswitch(count):
    return f'<nvlink target="0000:99:00.0" count="{count}" tclass="0x068000"/>'


def nvlink(bus, count):
    return f'<nvlink target="0000:{bus[:2]}:00.0" count="{count}" tclass="0x030200"/>'


def h200_vm():
    def group(switch, nic_bus, dev, guid, gpu_bus, rank):
        parts = [nic(nic_bus, net(dev, 400000, guid), 5), gpu(rank, gpu_bus, 90, 5, nvswitch(18))]
        return pci(switch, "".join(parts), 1, 1, ids="104c823200000000")
    return cpu(0, "amd", group("65000", "67000", 12, "0xd4f9fc0003ae6d94", "68000", 0) +
               group("69000", "6c000", 13, "0xd2cb190003c288a0", "6b000", 1) +
               group("6d000", "6f000", 14, "0x5415fd0003ae6d94", "70000", 2) +
               group("71000", "74000", 15, "0x1aca190003c288a0", "73000", 3)) + cpu(
        1, "amd", group("c9000", "cb000", 8, "0x444dfd0003ae6d94", "cc000", 4) +
        group("cd000", "d0000", 9, "0x84fffc0003ae6d94", "cf000", 5) +
        group("d1000", "d4000", 10, "0xac19fd0003ae6d94", "d3000", 6) +
        group("d5000", "d7000", 11, "0x7c60fd0003ae6d94", "d8000", 7))


def h100_vm():
    def gpus(switch, a, bus_a, b, bus_b):
        return pci(switch, gpu(a, bus_a, 90, 4, nvswitch(18)) + gpu(b, bus_b, 90, 4, nvswitch(18)), 4)

    def nics(switch, *devices):
        return pci(switch, "".join(nic(bus, net(dev, 200000, hex(dev)), 4) for dev, bus in devices), 4)
    return cpu(0, "skylake", nic("10000", net(0, 100000, "0x99"), 3) +
               gpus("2000", 0, "4000", 1, "5000") + nics("6000", (1, "7000"), (2, "8000")) +
               gpus("9000", 2, "b000", 3, "c000") + nics("d000", (3, "e000"), (4, "f000"))) + cpu(
        1, "skylake", gpus("82000", 4, "84000", 5, "85000") + nics("86000", (5, "87000"), (6, "88000")) +
        gpus("89000", 6, "8b000", 7, "8c000") + nics("8d000", (7, "8e000")))


def two_h20():
    def switch(bus, *parts):
        return pci(bus, "".join(parts), 5, ids="1000c0301000100b")

    def hdr(dev, bus, mbps=400000):
        return nic(bus, net(dev, mbps, hex(256 + dev)), 5)
    return cpu(0, "skylake", switch("16000", gpu(0, "18000", 90, 5, nvswitch(18)), hdr(3, "19000")) +
               hdr(8, "26000", 200000) +
               switch("36000", gpu(1, "38000", 90, 5, nvswitch(18)), hdr(2, "39000")) +
               switch("46000", hdr(1, "48000")) + switch("56000", hdr(0, "58000"))) + cpu(
        1, "skylake", "".join(switch(f"{bus}8000", hdr(dev, f"{bus}a000"))
                              for bus, dev in (("9", 5), ("a", 4), ("b", 7), ("c", 6))))


def hgx_a100():
    def switches(upper, *gpus):  # a switch of two levels that NCCL does not flatten, and one above
        return pci(f"{upper}1000", "".join(
            pci(f"{upper}{i + 2}000", pci(f"{upper}{i + 2}100", gpu(rank, bus, 80, 4, nvswitch(12)), 4), 4)
            for i, (rank, bus) in enumerate(gpus)), 4)
    return cpu(0, "amd", switches("2", (0, "e000"), (1, "13000"), (2, "49000"), (3, "4f000"))) + cpu(
        1, "amd", switches("c", (4, "91000"), (5, "97000"), (6, "cd000"), (7, "d2000")))


def hgx_h800():
    sides = ["", ""]
    for i in range(8):
        sides[i // 4] += pci(f"{i + 1}0000", gpu(i, f"{i + 1}1000", 90, 5, nvswitch(8)) +
                             nic(f"{i + 1}2000", net(i, 400000, hex(i + 1)), 5), 5)
    return cpu(0, "sapphire", sides[0]) + cpu(1, "sapphire", sides[1])


def eight_rtx4090():
    ids = "1000c0101000100b"
    return cpu(0, "skylake", pci("4b000", "".join(
        gpu(i, bus, 89, 4) for i, bus in enumerate(("4e000", "4f000", "50000", "51000"))) +
        nic("4d000", net(0, 25000, "0x1"), 3, 8), 4, ids=ids)) + cpu(1, "skylake", pci(
            "ca000", "".join(gpu(i + 4, bus, 89, 4) for i, bus in enumerate(
                ("ce000", "cf000", "d0000", "d1000"))), 4, ids=ids))


def four_on_10g():
    def socket(numa, nic_bus, devs, *gpus):
        nets = "".join(net(dev, 10000, hex(dev), 0, 0) for dev in devs)
        return cpu(numa, "broadwell",
                   "".join(gpu(rank, bus, 61, 3) for rank, bus in gpus) + nic(nic_bus, nets, 1))
    return socket(0, "1000", (0, 1), (0, "2000"), (1, "3000")) + socket(
        1, "82000", (2, 3), (2, "83000"), (3, "84000"))


def small_boxes():
    """By log: machine, nodes, release, differences (see Logs)."""
    sockets = '<nic>' + net(1, 1000, "0x1", 0, 0) + '</nic>'
    old = {f"graph {i}": "2.8 searches split trees, later releases balanced ones" for i in (2, 3)}
    return {
        "nccl#584": dict(
            machine=cpu(0, "skylake", sockets + gpu(0, "3b000", 75, 3) + gpu(1, "5e000", 75, 3) +
                        nic("18000", net(0, 1000, "0x18", 0, 0), 1)),
            release="2.18", constants={10.0: 9.0}, differs=old),
        "nccl#1358": dict(
            machine=cpu(0, "skylake", gpu(0, "2a000", 89, 4)) + cpu(2, "skylake", gpu(1, "ab000", 89, 4)) +
            cpu(1, "skylake", nic("3d000", net(0, 1000, "0x1", 0, 0), 1, 1)),
            release="2.20.3", env={"NCCL_P2P_LEVEL": "SYS"}),
        "accelerate#2183": dict(
            machine=cpu(0, "skylake", pci("18000", gpu(0, "1a000", 75, 3) + gpu(1, "1b000", 75, 3), 3,
                                          ids="10b5874710b58747") +
                        pci("3b000", gpu(2, "3d000", 75, 3) + gpu(3, "3e000", 75, 3), 3)),
            release="2.18"),
        "nccl-tests#182": dict(
            machine=cpu(0, "amd", gpu(0, "3000", 80, None) + nic("3010", net(0, 100000, "0x1"), None)),
            release="2.18", nodes=2),
        "nccl#340": dict(
            machine=cpu(0, "skylake", gpu(0, "3b000", 75, 3, nvlink("5e", 1)) +
                        gpu(1, "5e000", 75, 3, nvlink("3b", 1))),
            release="2.18", constants={20.0: 21.0}, differs={"rings": "2.6.4 opens a channel once"}),
    }


# The parser ---------------------------------------------------------------------------------------

TARGET = re.compile(r"(GPU|NVS|CPU|NET)[ /]([0-9a-fA-F.,-]+) \((\d+)/([\d.]+)/(\w+)\)")


def name_of(kind, number):
    return f"{kind}/{number.removeprefix('0-').lower()}"


def number_of(text):
    return float(f"{float(text):.1f}")  # 1.250000 and 1.2 are one


def names_of(kind, numbers):
    """`numbers`: "0-1..4" and "4000,5000" are several, as our excerpts write them."""
    for part in numbers.split(","):
        first, _, last = part.removeprefix("0-").partition("..")
        if last:
            yield from (f"{kind}/{i}" for i in range(int(first), int(last) + 1))
        else:
            yield name_of(kind, first)


def system_line(line):
    """Without what other releases write otherwise: ids of systems, NICs' brackets, ranks of a host."""
    line = re.sub(r"(GPU|NVS|CPU|NIC|PCI|NET)/(0-)?([0-9a-fA-F]+)",
                  lambda m: name_of(m[1], m[3]), line)
    line = re.sub(r"(NET/\w+) \(.*\)", r"\1", line)
    line = re.sub(r"(GPU/\w+) \((\d+)\)", lambda m: f"{m[1]} ({int(m[2]) % 8})", line)
    return re.sub(r"\[([\d.]+)\]", lambda m: f"[{number_of(m[1])}]", line.rstrip())


def parse(text):
    """{what: value} of a log: "system 0: + PCI[12.0] - GPU/3b000 (0)", "path GPU/5000 NVS/0", "ring 3"..."""
    said, ranks, where, pattern = {}, {}, "", None
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if found := re.match(r"=== System : max(?:Bw|Width) ([\d.]+)(?: totalBw ([\d.]+))? ===", line):
            said["max_bw"] = float(found[1])
            if found[2]:
                said["total_bw"] = float(found[2])
        elif found := re.match(r"CPU/(?:0-)?(\d+) \(", line):
            where = found[1]
            said[f"system {where}"] = system_line(line)
        elif re.match(r" *\+ \w+\[", line):
            line = system_line(line)
            said[f"system {where}:{line}"] = True
            if found := re.search(r"(GPU/\w+) \((\d+)\)", line):
                ranks[found[1]] = found[2]
        elif found := re.match(r"(GPU|NET)/([0-9a-fA-F-]+) :", line):
            start = name_of(found[1], found[2])
            for kind, numbers, hops, bw, path_type in TARGET.findall(line[found.end():]):
                for target in names_of(kind, numbers):
                    said[f"path {start} {target}"] = (int(hops), number_of(bw), path_type)
        elif found := re.match(r"Pattern (\d), crossNic (\d), nChannels (\d+), (?:bw|speed) ([\d.]+)/([\d.]+), "
                               r"type (\w+)/(\w+), sameChannels (\d)", line):
            pattern = found[1]
            said[f"graph {pattern}"] = (found[2], found[3], number_of(found[4]), number_of(found[5]),
                                        *found.groups()[5:])
        elif (found := re.match(r" *(\d+) :((?: (?:GPU|NET)/\S+)+)", line)) and pattern:
            order = [name_of(*device.split("/")) for device in found[2].split()]
            said[f"order {pattern}/{found[1]}"] = [ranks.get(device, device.removeprefix("GPU/"))
                                                   for device in order]
        elif found := re.match(r"Channel (\d+)/(\d+) :\s+([\d ]+)", line):
            said[f"ring {int(found[1])}"] = [int(rank) for rank in found[3].split()][:20]
            said["rings"] = int(found[2])
        elif line.startswith("Trees"):
            for channel, tree in re.findall(r"\[(\d+)\] (\S+->0->\S+)", line):
                said[f"tree {channel}"] = tree
        elif found := re.match(r"(\d+) coll channels,.* (\d+) nvls channels, (\d+) p2p channels, (\d+) p2p", line):
            said["channels"] = found.groups()
    return said


class Logs(CliTest):
    def decide(self, machine, release, nodes=1, env=None):
        (self.here / "machine.xml").write_text(f'<system version="1">\n{machine}</system>\n')
        variables = [part for item in (env or {}).items() for part in ("--env", "=".join(item))]
        return self.ok("nccl", "machine.xml", "--nodes", str(nodes), "--nccl-version", release, *variables)

    def compare(self, said, machine, release, nodes=1, env=None, constants=None, differs=None, least=1):
        """All that a log has `said`, as weft has it. `constants`: GB/s of ours: what an older release, which
        weft does not model, has in its place. `differs`: what may and must be otherwise: why."""
        constants, differs = constants or {}, differs or {}
        ours = parse(self.decide(machine, release, nodes, env))
        for what, value in ours.items():
            if constants and what.startswith(("path", "graph")):
                ours[what] = tuple(constants.get(part, part) if isinstance(part, float) else part
                                   for part in value)
            if what.startswith("ring ") and what in said:
                ours[what] = value[:len(said[what])]
        as_kept = json.loads(json.dumps(ours))
        other = {what for what, value in said.items() if as_kept.get(what) != value}
        wrong = {what: (ours.get(what), said[what]) for what in sorted(other - set(differs))}
        self.assertEqual(wrong, {}, "(weft's, NCCL's)")
        self.assertEqual(set(differs) - other, set(), "does not differ any more")
        self.assertGreaterEqual(len(said), least, "the log was not understood")
        print(f"{len(said) - len(other)} of {len(said)} equal", file=sys.stderr)
        return ours

    def test_h200_vm(self):
        ours = self.compare(LOGS["nccl-tests#256"]["said"], h200_vm(), "2.23.4", nodes=2, least=40)
        text = self.decide(h200_vm(), "2.23.4", nodes=2)
        for local, dev in ((7, 11), (2, 14)):
            # The log: the NIC that this rank receives by, with GDR; it is the only one within PXB.
            self.assertIn(f"GPU Direct RDMA Enabled for GPU {local} / HCA {dev} (distance PIX <= PXB)", text)
        self.assertEqual(ours["path GPU/68000 CPU/0"], (2, 0.2, "PHB"))

    def test_h100_vm(self):
        ours = self.compare(LOGS["nccl#1519"]["said"], h100_vm(), "2.23.4", nodes=2, least=90)
        # Which NICs the channels of this log begin at is not in the excerpt. Ours begin at GPU 0 in
        # every fourth channel; in the others rank 0 stands between the ranks that the log says.
        before, after, tree = "1", "7", "1/-1/-1->0->7"  # "Ring 02..15 : 1 -> 0 -> 7"; the tree of all channels
        self.assertEqual(ours["rings"], 16)  # of rings 8, but NVLS has 16
        for channel in set(range(16)) - {0, 4, 8, 12}:
            self.assertEqual(ours[f"tree {channel}"], tree)
            ring = [str(rank) for rank in ours[f"ring {channel}"] * 2]
            at = ring.index("0", 1)
            self.assertEqual((ring[at - 1], ring[at + 1]), (before, after), channel)

    def test_four_gpus_on_10g(self):
        self.compare(LOGS["nccl#601"]["said"], four_on_10g(), "2.18", nodes=2, differs={
            "graph 4": "sameChannels", "order 4/3": "2.8 looks for GPUs that no channel uses yet"}, least=25)

    def test_hgx_a100(self):
        self.compare(LOGS["nccl-tests#100"]["said"], hgx_a100(), "2.18",
                     constants={240.0: 252.0, 6.0: 24.0}, least=80)

    def test_rtx4090(self):
        self.compare(LOGS["nccl-tests#307"]["said"], eight_rtx4090(), "2.21.5",
                     env={"NCCL_P2P_DISABLE": "1"}, least=40)

    def test_a100_far_from_its_nic(self):
        machine = cpu(0, "amd", nic("1000", net(0, 200000, "0x1"), 5)) + cpu(1, "amd", gpu(0, "2000", 80, 5))
        self.compare(LOGS["nccl-tests#293"]["said"], machine, "2.21.5", nodes=2, least=5)
        for level, said in (({}, "Disabled"), ({"NCCL_NET_GDR_LEVEL": "PXB"}, "Disabled"),
                            ({"NCCL_NET_GDR_LEVEL": "SYS"}, "Enabled")):
            self.assertIn(f"GPU Direct RDMA {said} for GPU 0 / HCA 0 (distance SYS",
                          self.decide(machine, "2.21.5", 2, level))

    def test_small_boxes(self):
        for name, box in small_boxes().items():
            with self.subTest(name):
                self.compare(LOGS[name]["said"], **box)

    def test_h800_threads_and_tree_bandwidth(self):
        # NVIDIA/nccl#1154: threads of Tree and Ring by protocol, and what the tuner gives Tree Simple.
        text = self.decide(hgx_h800(), "2.19.3", nodes=2)
        numbers = r"Max NThreads *\| *(\d+)[ /|]+(\d+)[ /|]+(\d+)[ /|]+(\d+)[ /|]+(\d+)[ /|]+(\d+)"
        self.assertEqual(re.search(numbers, text).groups(), ("512", "640", "512", "512", "640", "512"))
        row = re.search(r"(?m)^ *AllReduce \|(.*)$", text)[1]
        self.assertEqual(re.findall(r"/ *([\d.]+)", row)[2], "68.8")  # Tree LL, LL128, Simple

    def test_two_h20(self):
        # NVIDIA/nccl#1189, read on 2026-11-21: 2 hosts of 2 H20 and 9 NICs, rank 0's lines.
        ours = self.compare(json.loads(json.dumps(parse("\n".join([
            "=== System : maxBw 48.0 totalBw 370.8 ===",
            "CPU/0 (1/1/2)", "+ PCI[48.0] - PCI/16000 (1000c0301000100b)",
            "Pattern 4, crossNic 1, nChannels 4, bw 24.0/24.0, type NVL/PIX, sameChannels 0",
            "NET/3 :GPU/18000 (3/48.0/PIX) GPU/38000 (5/48.0/PHB) CPU/0 (3/48.0/PHB) CPU/1 (4/10.0/SYS) "
            "NET/8 (5/25.0/PHB) NET/2 (6/48.0/PHB) NET/1 (6/48.0/PHB) NET/5 (7/10.0/SYS)",
            "Trees [0] 1/2/-1->0->-1 [1] -1/-1/-1->0->1 [2] 1/2/-1->0->-1 [3] -1/-1/-1->0->1 "
            "[4] 1/-1/-1->0->2 [5] -1/-1/-1->0->1 [6] 1/-1/-1->0->2 [7] -1/-1/-1->0->1"])))),
            two_h20(), "2.20.3", 2, {"NCCL_PXN_DISABLE": "1", "NCCL_CROSS_NIC": "1"}, least=20)
        for c in range(4):
            order = ["NET/3", "0", "1", "NET/2"]
            self.assertEqual(ours[f"order 4/{c}"], order if c % 2 == 0 else order[::-1])
        for c in range(2, 8):  # "Ring 02 : 2 -> 0 -> 1", "Ring 03 : 1 -> 0 -> 2", "Ring 06 : 0 -> 1 -> 3"
            self.assertEqual(ours[f"ring {c}"], [0, 1, 3, 2] if c % 2 == 0 else [0, 2, 3, 1])


if __name__ == "__main__":
    cli_test.main(__doc__)
