#!/usr/bin/env python3
"""The command line as design.md section 5 promises it: exit codes, what goes to which stream, formats.

    cli_test.py WEFT SOURCE_DIR [-v] [TEST...]      e.g. cli_test.py build/dev/tools/weft . BadInput

Every case runs in a fresh copy of tests/cli/bogus_* beside topologies/ and scenarios/, so that file
names in messages are short and whatever a command leaves behind is seen.
"""
import csv
import io
import json
import os
import pathlib
import random
import resource
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

WEFT = ""
SOURCE = pathlib.Path()
LIMIT_S = 120  # of one command; the sanitizer build is slow

TOPOLOGY = "../../topologies/hgx-h100-8nic.yaml"
SMALL = "small.yaml"  # the quickstart's machines with two sizes
# For what does not hang on the numbers: on one memory path (the sanitizer build is slow), on both.
TINY = "tiny.yaml"
BOTH = "both.yaml"
TINY_TEXT = """scenario: tiny
topology: ../../topologies/hgx-h100-1nic.yaml
nodes: 2
memory_paths: [gdr]
workload: {op: allreduce, sizes: [1 KiB, 64 KiB]}
"""
BOTH_TEXT = TINY_TEXT.replace("memory_paths: [gdr]\n", "")
SMALL_TEXT = """scenario: small
topology: ../../topologies/hgx-h100-8nic.yaml
nodes: 2
workload: {op: allreduce, sizes: [1 MiB, 256 MiB]}
"""

WIRE_NAMES = ("known: wire.ack_extra, wire.cable_delay, wire.cable_length, wire.cnp_extra, "
              "wire.congestion_control, wire.credit_packet, wire.fec_latency, "
              "wire.first_extra, wire.flow_control, wire.forwarding, wire.ib_overhead, wire.kind, "
              "wire.lanes, wire.mtu, wire.packets_per_ack, wire.pfc_headroom, wire.pfc_hysteresis, "
              "wire.pfc_response, wire.pfc_share, wire.pfc_xoff and 13 more (see weft list-params)")
SCOPES = ("known scopes: cpu, dcqcn, explain, gpu, nccl, netswitch, nic, pcie, staging, switch, virtual-root, wire "
          "(see weft list-params)")
TOPOLOGY_KEYS = "allowed here: defaults, network, node, nodes, source, topology"
A_RATE = "write a rate with its unit, such as 400 Gb/s or 50 GB/s"
COMMANDS = ("known: calibrate, check, compare, copies, diff, doctor, expect, explain, import, list-params, nccl, perftest, record, "
            "replay, report, run, sensitivity, show, step, sweep, trace, traffic (see weft --help)")

# Files that git should not hold, or cannot: name, content.
MADE_FILES = {
    "empty.yaml": b"",
    "only_a_comment.yaml": b"# nothing\n",
    "nested.xml": b'<system version="1">' + b"<pci>" * 10000 + b"</pci>" * 10000 + b"</system>",
    "brackets.yaml": b"[" * 10000,
    "dashes.yaml": b"- " * 10000,
    "nul.yaml": b"topology: t\0\n",
    "latin1.yaml": b"topology: t\nsource: caf\xe9\n",
    SMALL: SMALL_TEXT.encode(),
    TINY: TINY_TEXT.encode(),
    BOTH: BOTH_TEXT.encode(),
}

# The table of bad input: command line, and what standard error says after "error: ".
# A file stands first in its message; `FILE` stands for the file of the command line.
BOGUS_FILES = (
    # topologies
    ("check bogus_unknown_key.yaml", "FILE:2:1: nods: unknown key (did you mean 'nodes'?); " + TOPOLOGY_KEYS),
    ("check bogus_repeated_key.yaml", "FILE:3:1: nodes: key given twice"),
    ("check bogus_missing_unit.yaml",
     "FILE:3:3: defaults.wire.rate: wire.rate: '400' has no unit; " + A_RATE),
    ("check bogus_wrong_unit.yaml",
     "FILE:3:3: defaults.wire.rate: wire.rate: '400 ns' has unit 'ns', which does not fit; " + A_RATE),
    ("check bogus_out_of_range.yaml",
     "FILE:3:3: defaults.wire.rate: wire.rate: 9 TB/s is out of range; "
     "allowed: 0.001 GB/s to 1000 GB/s"),
    ("check bogus_unknown_parameter.yaml",
     "FILE:3:3: defaults.wire.speed: no parameter 'wire.speed' (did you mean 'wire.seed'?); " + WIRE_NAMES),
    ("check bogus_unknown_choice.yaml",
     "FILE:3:3: defaults.wire.kind: wire.kind: 'ethernet' is not a choice; "
     "allowed: infiniband, roce"),
    ("check bogus_unknown_part.yaml",
     "FILE:5:5: no gpu part 'h900'; known: a10, a30, a40, a100-pcie, a100-sxm, b200-sxm, b300-sxm, gb200, "
     "gb300, gh200, h100-pcie, h100-sxm, h200-sxm, h200-vm, l4, l40s, mi50, mi100, mi250x, mi300x, "
     "rtx-pro-6000, t4, v100-sxm"),
    ("check bogus_unknown_kind.yaml",
     "FILE:5:12: node.devices.tpu0.kind: 'tpu' is not a kind of device; "
     "known: cpu, gpu, nic, nvswitch, switch"),
    ("check bogus_unbound_network_port.yaml",
     "FILE:6:5: nic0: its network port is not bound; write 'network: NAME' (known: fabric) or "
     "'network: none'"),
    ("check bogus_unbound_pcie_port.yaml",
     "FILE:5:5: gpu0: its PCIe port is not bound; write 'upstream: DEVICE' (known: cpu0)"),
    ("check bogus_pcie_cycle.yaml", "FILE:5:5: PCIe cycle: sw0 -> sw1 -> sw0"),
    ("check bogus_unknown_upstream.yaml",
     "FILE:5:5: gpu0: upstream 'cpu7' is not a device; known: cpu0"),
    ("check bogus_unknown_link_end.yaml",
     "FILE:7:7: nvlink link: 'gpu1' is not a device; known: cpu0, gpu0"),
    ("check bogus_no_gpu.yaml", "FILE: no GPU in the node"),
    ("check bogus_network_too_small.yaml",
     "FILE:9:3: fabric: 9 nodes of 1 NIC do not fit, at most 8 do: "
     "a spine's 4 ports reach 4 leaves by 1 link each; a fat-tree joins more"),
    ("check bogus_network_kind.yaml",
     "FILE:7:12: network.fabric.kind: 'hypercube' is not a kind of network; "
     "known: dragonfly, dragonfly-plus, fat-tree, leaf-spine, one-switch, rail-optimised, torus"),
    ("show bogus_unknown_key.yaml", "FILE:2:1: nods: unknown key (did you mean 'nodes'?); " + TOPOLOGY_KEYS),
    # NCCL XML
    ("check bogus_no_gpu.xml", "FILE:1:1: no GPU in this file: no <gpu>, and no <pci> of class 0x03... or 0x12..."),
    ("check bogus_truncated.xml", "FILE:3:17: the file is cut off: it ends inside <cpu> of line 2 (not valid XML)"),
    ("check bogus_graph.xml",
     "FILE:1:1: this is an NCCL graph file, the rings and trees that NCCL chose (<graphs>), not a "
     "topology file; NCCL writes a topology file where NCCL_TOPO_DUMP_FILE says, beginning with "
     "<system>"),
    ("check bogus_doctype.xml",
     "FILE: defines entities (<!DOCTYPE ... [...]>), which is refused"),
    ("check bogus_version.xml",
     "FILE:1:1: <system version='3'> is not known; known: 1 (NCCL), 2 (RCCL)"),
    ("check nested.xml", "FILE:1:336: nested deeper than 64 levels"),
    # YAML that is not for us
    ("check bogus_anchor.yaml", "FILE:2:7: anchors are not accepted"),
    ("check bogus_alias.yaml", "FILE:2:7: not valid YAML: the referenced anchor is not defined"),
    ("check bogus_tag.yaml", "FILE:2:9: tags are not accepted"),
    ("check bogus_two_documents.yaml", "FILE:2:1: a second document begins here; one is taken"),
    ("check bogus_line_break_in_key.yaml", "FILE:2:1: control characters are not accepted"),
    ("check bogus_unclosed.yaml", "FILE:3:1: not valid YAML: end of sequence flow not found"),
    ("check brackets.yaml", "FILE:1:1: a key must be a plain word"),
    ("check dashes.yaml", "FILE:1:129: nested deeper than 64 levels"),
    ("check nul.yaml", "FILE:1:12: control characters are not accepted"),
    ("check latin1.yaml", "FILE:2:12: not UTF-8 text"),
    # no file to read
    ("check empty.yaml", "FILE: is empty"),
    ("run empty.yaml", "FILE: is empty"),
    ("show empty.yaml", "FILE: is empty"),
    ("check only_a_comment.yaml", "FILE: is empty"),
    ("check ../../topologies", "FILE: is a directory, not a file"),
    ("run ../../topologies", "FILE: is a directory, not a file"),
    ("show ../../topologies", "FILE: is a directory, not a file"),
    ("check nowhere.yaml", "FILE: no such file"),
    ("run nowhere.yaml", "FILE: no such file"),
    ("show nowhere.yaml", "FILE: no such file"),
    # scenarios
    ("run bogus_missing_topology.yaml", "nowhere.yaml: no such file"),
    ("check bogus_missing_topology.yaml", "nowhere.yaml: no such file"),
    ("run bogus_missing_workload.yaml", "FILE:1:1: missing key 'workload'"),
    ("check bogus_missing_workload.yaml", "FILE:1:1: missing key 'workload'"),
    ("run bogus_size_zero.yaml",
     "FILE:3:35: workload.sizes[0]: '0' is out of range; allowed: 1 B to 4 TiB"),
    ("run bogus_descending_sizes.yaml",
     "FILE:3:42: workload.sizes[1]: sizes must ascend, none given twice"),
    ("run bogus_min_above_max.yaml", "FILE:3:39: workload.max: is smaller than min"),
    ("run bogus_unknown_op.yaml",
     "FILE:3:12: workload.op: 'gossip' is not an operation; known: allgather, allreduce, alltoall, "
     "broadcast, reduce, reducescatter, sendrecv"),
    ("run bogus_algo_of_op.yaml",
     "FILE:3:31: workload.algo: Tree runs allreduce only; write Ring"),
    ("run bogus_unknown_memory_path.yaml",
     "FILE:4:21: memory_paths[1]: 'teleport' is not a memory path; known: gdr, host-staged, nccl"),
    ("run bogus_zero_nodes.yaml", "FILE:3:1: nodes: '0' is not a whole number from 1 to 1048576"),
    ("run bogus_unknown_setting.yaml", "FILE:4:7: set: no parameter 'wire.mut' (did you mean 'wire.mtu'?); " + WIRE_NAMES),
    ("run bogus_foreign_env.yaml",
     "FILE:4:7: env.LD_PRELOAD: allowed are NCCL's variables: NCCL_..."),
    ("run bogus_unknown_env_value.yaml",
     "FILE:4:7: NCCL_PROTO='Fast': no 'Fast'; known: LL, LL128, Simple, and NCCL does not start"),
    ("nccl bogus_nics_only.yaml", "FILE: no GPU in the node"),
    ("run bogus_no_nics.yaml",
     "no_nics.yaml: 2 nodes but no NIC to join them; use one node or add NICs"),
    # one kind of file for the other
    ("run " + TOPOLOGY, "FILE: is a topology, not a scenario; weft show, check, nccl, perftest and copies read it"),
    ("show " + SMALL, "FILE: is a scenario, not a topology; weft run, step, traffic, sweep and check read it"),
)

BOGUS_USAGE = (
    ([], "no command given; " + COMMANDS),
    (["frob"], "no command 'frob'; " + COMMANDS),
    (["--frob"], "no command '--frob'; " + COMMANDS),
    (["run"], "scenario is required (see weft --help)"),
    (["run", SMALL, "--frob"], "The following argument was not expected: --frob (see weft --help)"),
    (["run", SMALL, SMALL], "The following argument was not expected: small.yaml (see weft --help)"),
    (["list-params", "x"], "The following argument was not expected: x (see weft --help)"),
    (["show", TOPOLOGY, "--format", "png"],
     "--format: png not in {text,json,dot} (see weft --help)"),
    (["run", SMALL, "--fidelity", "nonsense"],
     "--fidelity: nonsense not in {fluid,packet} (see weft --help)"),
    (["run", SMALL, "--json", "-", "--csv", "-"],
     "--json and --csv cannot both go to standard output"),
    (["run", SMALL, "--json", "out", "--csv", "out"], "--json and --csv cannot both go to out"),
    (["run", SMALL, "--json"], "--json: 1 required TEXT missing (see weft --help)"),
    (["run", SMALL, "--seed", "-1"],
     "--seed '-1': write a whole number from 0 to 9007199254740991"),
    (["run", SMALL, "--seed", "9007199254740992"],
     "--seed '9007199254740992': write a whole number from 0 to 9007199254740991"),
    # --set
    (["run", SMALL, "--set", "wire.mtu"],
     "--set 'wire.mtu': write KEY=VALUE, such as wire.mtu=\"1024 B\""),
    (["run", SMALL, "--set", ""], "--set '': write KEY=VALUE, such as wire.mtu=\"1024 B\""),
    (["run", SMALL, "--set", "=1"], "--set '=1': write KEY=VALUE, such as wire.mtu=\"1024 B\""),
    (["run", SMALL, "--set", "mtu=1024 B"], "--set: no parameter 'mtu'; " + SCOPES),
    (["run", SMALL, "--set", "wire.mut=1024 B"],
     "--set: no parameter 'wire.mut' (did you mean 'wire.mtu'?); " + WIRE_NAMES),
    (["run", SMALL, "--set", "nods=4"], "--set: no parameter 'nods' (did you mean 'nodes'?); " + SCOPES),
    (["run", SMALL, "--set", "nic8.pcie_width=8"],
     "--set: no parameter 'nic8.pcie_width' (did you mean 'nic.pcie_width'?); " + SCOPES),
    (["run", SMALL, "--set", "wire.rate=400"], "--set: wire.rate: '400' has no unit; " + A_RATE),
    (["run", SMALL, "--set", "wire.rate=nan Gb/s"],
     "--set: wire.rate: 'nan Gb/s' is not a number; " + A_RATE),
    (["run", SMALL, "--set", "wire.kind=ethernet"],
     "--set: wire.kind: 'ethernet' is not a choice; allowed: infiniband, roce"),
    (["run", SMALL, "--set", "nccl.algo=Ring", "--set", "nccl.proto=Simple", "--set", "nccl.chunk_steps=8"],
     "nccl.chunk_steps=8 and nccl.slice_steps=2 are together more than nccl.steps=8: the ranks of a ring would "
     "wait for each other for ever"),
    (["run", SMALL, "--set", "nic.count=9"],
     "--set: nic.count: '9' is not a whole number from 1 to 8, the NICs of a node in " + TOPOLOGY),
    (["show", TOPOLOGY, "--set", "wire.mut=1024 B"],
     "--set: no parameter 'wire.mut' (did you mean 'wire.mtu'?); " + WIRE_NAMES),
    (["run", SMALL, "--set", "a\nb\x1b[31m=1"],  # no second line, no terminal codes
     r"--set: no parameter 'a\nb\x1b[31m'; " + SCOPES),
    # --env
    (["run", SMALL, "--env", "LD_PRELOAD=x"],
     "'LD_PRELOAD' is not an NCCL variable; their names begin with NCCL_"),
    (["run", SMALL, "--env", "NCCL_PROTO"], "--env 'NCCL_PROTO': write NAME=VALUE"),
    (["run", SMALL, "--env", "NCCL_PROTO=Fast"],
     "NCCL_PROTO='Fast': no 'Fast'; known: LL, LL128, Simple, and NCCL does not start"),
    (["run", SMALL, "--env", "NCCL_NET=socket"],
     "NCCL_NET=Socket: NCCL moves data between nodes over TCP sockets, which weft does not model; unset it, or ask for "
     "one node"),
    # --expect is read before anything runs or is written
    (["run", SMALL, "--json", "out.json", "--expect", "busbw"],
     "--expect 'busbw': write METRIC>=NUMBER, such as busbw>=380"),
    (["run", SMALL, "--json", "out.json", "--expect", "speed>=1"],
     "--expect 'speed>=1': no metric 'speed'; known: algbw, busbw (GB/s), time (us)"),
    (["run", SMALL, "--json", "out.json", "--expect", "busbw>=380 GB/s"],
     "--expect 'busbw>=380 GB/s': what follows >= is no number"),
    (["run", SMALL, "--json", "out.json", "--expect", "busbw>=nan"],
     "--expect 'busbw>=nan': what follows >= is no number"),
)

# Where a result cannot be put. The table was already shown: the run is not lost with the file.
BAD_OUTPUTS = (
    ("nowhere/out", "nowhere/out: cannot be written: No such file or directory"),
    ("../cli", "../cli: cannot be replaced: Is a directory"),
    (SMALL + "/out", "small.yaml/out: cannot be written: Not a directory"),
    ("/proc/out", "/proc/out: cannot be written: No such file or directory"),  # for root too
    ("/dev/full", "/dev/full: cannot be written: No space left on device"),
)


def weft(*arguments, cwd=None, stdin=b"", **options):
    return subprocess.run([WEFT, *arguments], cwd=cwd, input=stdin, timeout=LIMIT_S,
                          stdout=options.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE,
                          **options)


def size_of(path):
    """Bytes of a file that another process may write, rename or remove meanwhile; None where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def weft_as_nobody_fails():
    try:
        return weft("--version", cwd="/", user=65534).returncode != 0
    except OSError:
        return True


def main(doc):
    """Runs the tests of the calling script: SCRIPT WEFT SOURCE_DIR [-v] [TEST...]."""
    global WEFT, SOURCE
    if len(sys.argv) < 3:
        sys.exit(doc)
    WEFT = os.path.abspath(sys.argv[1])
    SOURCE = pathlib.Path(sys.argv[2]).resolve()
    result = unittest.main(argv=sys.argv[:1] + sys.argv[3:], exit=False).result
    for test, why in result.skipped:  # tools/check shows these lines
        print(f"skipped: {test.id().removeprefix('__main__.')}: {why}", file=sys.stderr)
    sys.exit(not result.wasSuccessful())


def damaged(text, seed, letters):
    """The bytes with one to three places of them written over, as the seed has it."""
    dice = random.Random(seed)
    out = bytearray(text)
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(out))
        out[at:at + dice.randint(0, 20)] = bytes(dice.choice(letters) for _ in range(3))
    return bytes(out)


class CliTest(unittest.TestCase):
    """A tree like the project's, of which self.here is tests/cli."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.here = self.root / "tests/cli"
        self.here.mkdir(parents=True)
        for name in ("topologies", "scenarios"):
            shutil.copytree(SOURCE / name, self.root / name)
        for file in [*(SOURCE / "tests/cli").glob("bogus_*"), SOURCE / "tests/cli/no_nics.yaml"]:
            shutil.copy(file, self.here)
        for name, content in MADE_FILES.items():
            (self.here / name).write_bytes(content)

    def files(self):
        return sorted(str(path) for path in self.root.rglob("*"))

    def ok(self, *arguments, **options):
        """Standard output, as text, of a command that must work and say nothing else."""
        run = weft(*arguments, cwd=options.pop("cwd", self.here), **options)
        self.assertEqual((run.returncode, run.stderr.decode()), (0, ""), arguments)
        return run.stdout.decode()

    def result(self, *arguments, **options):
        return json.loads(self.ok("run", *arguments, "--json", "-", **options))

    def refused(self, arguments, expected, stdout=b"", **options):
        """Exit code 2, the one line, nothing on standard output, and no file made or left."""
        before = self.files()
        run = weft(*arguments, cwd=self.here, **options)
        self.assertEqual((run.returncode, run.stderr.decode()), (2, f"error: {expected}\n"))
        if stdout is not None:
            self.assertEqual(run.stdout, stdout)
        self.assertEqual(self.files(), before)


class BadInput(CliTest):
    def test_files(self):
        for line, expected in BOGUS_FILES:
            command, file = line.split(" ", 1)
            with self.subTest(line):
                self.refused([command, file], expected.replace("FILE", file, 1))

    def test_every_bogus_file_is_in_the_table(self):
        named = {line.split()[1] for line, _ in BOGUS_FILES}
        elsewhere = {"bogus_leading_comma.yaml"}
        self.assertEqual(sorted(file.name for file in self.here.glob("bogus_*")
                                if file.name not in named | elsewhere), [])

    def test_usage(self):
        for arguments, expected in BOGUS_USAGE:
            with self.subTest(arguments):
                self.refused(arguments, expected)

    def test_outputs(self):
        for place, expected in BAD_OUTPUTS:
            for option in ("--json", "--csv"):
                with self.subTest(option + " " + place):
                    self.refused(["run", TINY, option, place], expected, stdout=None)

    def test_a_folder_without_write_permission(self):
        nobody = {"user": 65534} if os.geteuid() == 0 else {}  # root may write everywhere
        if nobody and weft_as_nobody_fails():
            self.skipTest("run as root, and nobody else may run the program")
        os.chmod(self.root, 0o755)
        (self.here / "locked").mkdir(mode=0o555)
        self.refused(["run", TINY, "--json", "locked/out"],
                     "locked/out: cannot be written: Permission denied", stdout=None, **nobody)

    def test_a_full_standard_output(self):
        for arguments in (["run", TINY], ["run", TINY, "--json", "-"], ["run", TINY, "--csv", "-"],
                          ["check", TINY], ["show", TOPOLOGY], ["list-params"], ["--version"], ["--help"]):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                run = weft(*arguments, cwd=self.here, stdout=full)
                self.assertEqual((run.returncode, run.stderr),
                                 (2, b"error: standard output: cannot be written\n"))

    def one_line_or_fine(self, command, content):
        """Whatever a file holds: accepted, or refused with one line. Never a crash, never a hang."""
        (self.here / "any").write_bytes(content)
        run = weft(command, "any", cwd=self.here)
        if run.returncode == 0:
            return
        self.assertEqual((run.returncode, run.stdout), (2, b""), content[:200])
        self.assertRegex(run.stderr, rb"\Aerror: [ -~\x80-\xff]+\n\Z")

    def test_binary_garbage(self):
        for seed in range(8):
            garbage = random.Random(seed).randbytes(1 << seed)
            with self.subTest(seed=seed):
                self.one_line_or_fine("check", garbage)
                self.one_line_or_fine("run", garbage)
                self.one_line_or_fine("check", b'<system version="1">' + garbage)

    def test_damaged_files(self):
        for file in (TOPOLOGY, "../../topologies/h200-vm-pix.2x2.xml", SMALL):
            text = (self.here / file).read_bytes()
            for seed in range(20):
                dice = random.Random(seed)
                damaged = bytearray(text)
                for _ in range(dice.randint(1, 3)):
                    at = dice.randrange(1, len(damaged))
                    noise = bytes(dice.choice(b"{}[]:-#&*!|>'\"%@01 \n<>/=") for _ in range(3))
                    damaged[at:at + dice.randint(0, 20)] = noise[:dice.randint(0, 3)]
                with self.subTest(file, seed=seed):
                    self.one_line_or_fine("check", bytes(damaged))


class Once(CliTest):
    """What was wrong once."""

    def test_a_leading_comma_is_refused(self):
        # yaml-cpp 0.7.0's HandleNextDocument never consumes a ',' that stands outside a flow
        # collection, and returns true for ever.
        run = subprocess.run([WEFT, "check", "bogus_leading_comma.yaml"], cwd=self.here, timeout=5,
                             capture_output=True)
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stderr, rb"\Aerror: bogus_leading_comma.yaml:1:1: .*\n\Z")

    def test_sockets_are_refused_where_the_scenario_has_them(self):
        (self.here / "sockets.yaml").write_text(TINY_TEXT + "env: {NCCL_IB_DISABLE: 1}\n")
        for command in "run", "check":
            self.refused([command, "sockets.yaml"],
                         "sockets.yaml:6:7: NCCL_IB_DISABLE=1: NCCL moves data between nodes over TCP sockets, which weft "
                         "does not model; unset it, or ask for one node")
        self.ok("run", TINY, "--env", "NCCL_IB_DISABLE=0", "--env", "NCCL_NET=IB")

    def test_a_scenario_from_standard_input_has_its_own_digest(self):
        # A pipe can be read once only.
        piped = self.result("-", stdin=TINY_TEXT.encode())
        self.assertEqual(piped["provenance"]["scenario_fnv1a"],
                         self.result(TINY)["provenance"]["scenario_fnv1a"])

    def test_a_topology_from_standard_input_is_checked(self):
        self.assertIn("-: ok", self.ok("check", "-", stdin=(self.here / TOPOLOGY).read_bytes()))


def protobuf(data):
    """A message's fields in protobuf's wire format: (number, value) of those that weft writes, numbers and bytes."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (data[at] & 0x7f) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 0x80:
                return value, at
    at = 0
    while at < len(data):
        key, at = varint(at)
        if key & 7 == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        else:
            value, at = varint(at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        yield key >> 3, value


class Trace(CliTest):
    def events(self, name):
        """Of each track the (begin, end) in ns and bytes of its slices; names and parents; values of counters."""
        slices, names, parents, open_at, counters = {}, {}, {}, {}, {}
        for field, packet in protobuf((self.here / name).read_bytes()):
            self.assertEqual(field, 1)
            packet = dict(protobuf(packet))
            if 60 in packet:
                track = dict(protobuf(packet[60]))
                names[track[1]], parents[track[1]] = track[2].decode(), track.get(5)
            if 11 in packet:
                event = list(protobuf(packet[11]))
                track = dict(event)[11]
                if dict(event)[9] == 4:
                    counters.setdefault(track, []).append((packet[8], dict(event)[44]))
                elif dict(event)[9] == 1:
                    self.assertNotIn(track, open_at)  # slices of a row do not overlap
                    notes = [dict(protobuf(value)) for number, value in event if number == 4]
                    open_at[track] = packet[8], sum(n[3] for n in notes if n[10] == b"bytes")
                else:
                    begin, size = open_at.pop(track)
                    slices.setdefault(track, []).append((begin, packet[8], size))
        self.assertEqual(open_at, {})
        return slices, names, parents, counters

    def test_a_timeline_ends_when_the_run_does_and_moves_its_bytes(self):
        (self.here / "single.yaml").write_text(
            BOTH_TEXT + "set: {nccl.launch: single, nccl.host_wait: 0 ns, nccl.algo: Ring, nccl.proto: Simple}\n")
        for fidelity in "fluid", "packet":
            with self.subTest(fidelity):
                run = weft("run", "single.yaml", "--fidelity", fidelity, "--json", "-", "--trace", "t.pftrace",
                           cwd=self.here)
                self.assertEqual(run.returncode, 0, run.stderr)
                rows = json.loads(run.stdout)["results"]
                slices, names, parents, counters = self.events("t.pftrace")
                roots = {track: name for track, name in names.items() if parents[track] is None}
                self.assertEqual(sorted(roots.values()), [f"allreduce, 64 KiB, {path}, Ring Simple"
                                                          for path in ("gdr", "host-staged")])
                for root, name in roots.items():
                    row = next(r for r in rows if r["bytes"] == 65536 and r["memory_path"] in name)
                    devices = {t for t, parent in parents.items() if parent == root}
                    self.assertLessEqual({"gpu0@0", "gpu0@1"}, {names[d] for d in devices})
                    below = [t for t in slices if parents[t] in devices]
                    blocks = [t for t in below if names[t].startswith("thread block")]
                    self.assertAlmostEqual(max(end for t in blocks for _, end, _ in slices[t]), row["time_us"] * 1000, delta=1)
                    # Each of the ring's two edges between nodes carries 2 (n - 1) parts of n.
                    sent = sum(size for t in below if names[t].startswith("to ") for _, _, size in slices[t])
                    self.assertEqual(sent, 2 * 2 * (row["ranks"] - 1) * row["bytes"] // row["ranks"])
                    # They cross two wires to the switch, of 50 B/ns, headers aside.
                    group = next(t for t in names if names[t].startswith("in use") and parents[t] == root)
                    wires = [t for t in counters if parents[t] == group and names[t].startswith("wire, NIC to switch")]
                    self.assertEqual(len(wires), 2)
                    busy = 0
                    for values in (counters[t] for t in wires):
                        self.assertTrue(all(0 <= value <= 100 for _, value in values), values)
                        busy += sum(value for _, value in values) * values[1][0] / 100
                    self.assertAlmostEqual(busy * 50 / sent, 1.05, delta=0.15)

    def test_names_below_one_device_differ(self):
        self.ok("run", BOTH, "--trace", "t.pftrace")
        _, names, parents, _ = self.events("t.pftrace")
        self.assertEqual(len({(parents[track], name) for track, name in names.items()}), len(names))

    def test_ports_of_slow_wires_are_in_use_as_long_as_probes_say(self):
        (self.here / "slow.yaml").write_text(TINY_TEXT + "set: {nccl.launch: single, nccl.host_wait: 0 ns, nccl.algo: Ring, "
                                             "nccl.proto: LL, wire.rate: 25 Gb/s}\n")
        run = weft("run", "slow.yaml", "--fidelity", "packet", "--json", "-", "--trace", "t.pftrace", cwd=self.here)
        self.assertEqual(run.returncode, 0, run.stderr)
        row = json.loads(run.stdout)["results"][-1]
        *_, names, parents, counters = self.events("t.pftrace")
        shown = {names[t].split(": ")[1]: sum(v for _, v in values) / 100 * values[1][0] for t, values in counters.items()}
        wires = [port for port in row["probes"]["ports"] if port["kind"].startswith("wire")]
        self.assertTrue(wires)
        for port in wires:
            self.assertAlmostEqual(shown[port["link"]] / (1000 * row["time_us"] * port["utilisation"]), 1, delta=0.03)

    def test_a_timeline_changes_no_number(self):
        for more in ([], ["--unfolded"]):
            self.assertEqual(json.loads(self.ok("run", BOTH, *more, "--json", "-"))["results"],
                             json.loads(self.ok("run", BOTH, "--json", "-", "--trace", "t.pftrace"))["results"])

    def test_a_run_that_is_stopped_leaves_a_timeline_as_it_was(self):
        (self.here / "long.yaml").write_text(TINY_TEXT.replace("1 KiB, 64 KiB", "8 B, 16 GiB").replace("nodes: 2", "nodes: 31") +
                                             "set: {nccl.decisions: simple, nccl.algo: Ring, nccl.proto: Simple}\n")
        (self.here / "t.pftrace").write_text("as it was")
        run = weft("run", "long.yaml", "--threads", "1", "--time-limit", "3s", "--trace", "t.pftrace", cwd=self.here)
        self.assertEqual(run.returncode, 130, run.stderr)
        self.assertIn(b"--trace: no row of its size was finished; t.pftrace is not written\n", run.stderr)
        self.assertEqual((self.here / "t.pftrace").read_text(), "as it was")

    def test_the_same_input_gives_the_same_timeline(self):
        texts = []
        for _ in range(2):
            self.ok("run", TINY, "--trace", "t.pftrace", "--trace-size", "1K")
            texts.append((self.here / "t.pftrace").read_bytes())
        self.assertEqual(*texts)

    def test_what_cannot_be_traced_is_refused(self):
        self.refused(["run", TINY, "--trace-size", "1K"], "--trace-size: without --trace")
        self.refused(["run", TINY, "--trace", "t", "--trace-size", "2K"], "--trace-size 2K: no size of tiny.yaml")
        self.refused(["run", TINY, "--trace", "t", "--csv", "t"], "--csv and --trace cannot both go to t")
        self.refused(["run", TINY, "--trace", "-", "--json", "-"], "--json and --trace cannot both go to standard output")
        shutil.copy(SOURCE / "scenarios/planning/two-jobs.yaml", self.here / "jobs.yaml")
        self.refused(["run", "jobs.yaml", "--trace", "t"], "jobs.yaml: of jobs no timeline is kept")


class Results(CliTest):
    def test_json_on_standard_output(self):
        result = self.result(SMALL)
        self.assertEqual(result["schema"], "weft.run/1")
        self.assertLessEqual({"results", "provenance", "verdict", "notes"}, set(result))
        rows = result["results"]
        self.assertEqual([(row["bytes"], row["memory_path"]) for row in rows],
                         [(1 << 20, "gdr"), (1 << 20, "host-staged"),
                          (1 << 28, "gdr"), (1 << 28, "host-staged")])
        for row in rows:
            self.assertLessEqual(
                {"op", "bytes", "ranks", "nodes", "memory_path", "algo", "proto", "channels",
                 "time_us", "algbw_GBps", "busbw_GBps", "limited_by"}, set(row))
            self.assertEqual((row["op"], row["ranks"], row["nodes"]), ("allreduce", 16, 2))
            shares = [cause["share"] for cause in row["limited_by"]]
            self.assertAlmostEqual(sum(shares), 1.0, delta=1e-9)
            self.assertGreater(min(shares), 0)
            self.assertEqual(shares, sorted(shares, reverse=True))
            self.assertTrue(all(cause["cause"] for cause in row["limited_by"]))
            # design.md section 4: algbw is size over time, busbw is that x 2(n-1)/n.
            algbw = row["bytes"] / row["time_us"] / 1e3
            self.assertAlmostEqual(row["algbw_GBps"] / algbw, 1, delta=1e-9)
            self.assertAlmostEqual(row["busbw_GBps"] / (algbw * 30 / 16), 1, delta=1e-9)

    def test_every_operation_runs_on_one_node_and_on_two(self):
        for op in ("allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall", "sendrecv"):
            for nodes in (1, 2):
                (self.here / "op.yaml").write_text(
                    f"scenario: op\ntopology: {TOPOLOGY}\nnodes: {nodes}\nmemory_paths: [gdr]\n"
                    f"workload: {{op: {op}, sizes: [8 B, 1 MiB]}}\n")
                times = [row["time_us"] for row in self.result("op.yaml")["results"]]
                self.assertEqual(len(times), 2, op)
                self.assertGreater(times[1], times[0], op)

    def test_csv_on_standard_output(self):
        rows = list(csv.DictReader(io.StringIO(self.ok("run", BOTH, "--csv", "-"))))
        self.assertEqual(len(rows), 4)
        for row, of_json in zip(rows, self.result(BOTH)["results"]):
            self.assertNotIn(None, row, "more cells than the header")
            for key in ("op", "memory_path", "algo", "proto", "bytes", "ranks", "nodes", "channels"):
                self.assertEqual(row[key], str(of_json[key]))
            for key in ("time_us", "algbw_GBps", "busbw_GBps"):
                self.assertAlmostEqual(float(row[key]) / of_json[key], 1, delta=1e-6)

    def test_the_table_is_shown_unless_something_else_takes_its_place(self):
        table = self.ok("run", BOTH)
        rows = [line.split() for line in table.splitlines() if not line.startswith("#")]
        self.assertEqual([row[0] for row in rows], [str(1 << 10), str(1 << 16)])
        self.assertIn("GPUDirect RDMA", table.splitlines()[0])
        self.assertIn("host-staged", table.splitlines()[0])
        self.assertEqual(self.ok("run", BOTH, "--json", "out.json", "--csv", "out.csv"), table)
        self.assertEqual((self.here / "out.json").read_text(), self.ok("run", BOTH, "--json", "-"))
        self.assertEqual((self.here / "out.csv").read_text(), self.ok("run", BOTH, "--csv", "-"))
        self.assertEqual(list(self.here.glob("*.tmp*")), [])

    def test_the_same_input_gives_the_same_bytes(self):
        (self.here / "few.yaml").write_text(SMALL_TEXT.replace("256 MiB", "16 MiB"))

        def run(cores):
            return self.ok("run", "few.yaml", "--json", "-",
                           preexec_fn=lambda: os.sched_setaffinity(0, cores))
        every = os.sched_getaffinity(0)
        first = run(every)
        self.assertEqual(run(every), first)
        # weft starts as many threads either way; on one core they take the tasks in another order.
        self.assertEqual(run({min(every)}), first, "pinned to one core")

    def test_launch_is_the_parameter_of_that_name(self):
        answer = self.result(BOTH, "--launch", "single")
        self.assertEqual(answer["results"], self.result(BOTH, "--set", "nccl.launch=single")["results"])
        self.assertNotEqual(answer["results"], self.result(BOTH)["results"])
        self.assertEqual(answer["provenance"]["set"], ["nccl.launch=single"])

    def test_provenance_names_every_parameter(self):
        provenance = self.result(BOTH, "--set", "wire.mtu=1024", "--env", "NCCL_PROTO=Simple",
                                 "--seed", "7")["provenance"]
        parameters = provenance["parameters"]
        known = {p["key"] for p in json.loads(self.ok("list-params", "--json"))["parameters"]}
        self.assertLessEqual({p["key"] for p in parameters}, known)
        self.assertGreater(len(parameters), 40)
        for parameter in parameters:
            for key in ("value", "origin", "source"):
                self.assertTrue(parameter[key], parameter)
        by_key = {p["key"]: p for p in parameters}
        self.assertEqual((by_key["wire.mtu"]["value"], by_key["wire.mtu"]["source"]),
                         ("1024 B", "set by the user (--set)"))
        self.assertEqual((by_key["nccl.proto"]["value"], by_key["nccl.proto"]["source"]),
                         ("Simple", "NCCL_PROTO"))
        self.assertEqual((provenance["set"], provenance["env"], provenance["seed"]),
                         (["wire.seed=7", "wire.mtu=1024"], ["NCCL_PROTO=Simple"], 7))
        for key in ("weft", "commit", "scenario_fnv1a", "topology_fnv1a", "fidelity"):
            self.assertTrue(provenance[key], key)

    def test_show_takes_one_gpu_and_nodes_without_nics(self):
        one = "../../scenarios/regressions/topologies/h100-same-socket.yaml"
        shown = json.loads(self.ok("show", one, "--set", "nodes=1", "--format", "json"))
        self.assertEqual([(p["gpu"], p["nic"]) for p in shown["pairs"]], [("gpu0", "nic0")])
        (self.here / "bare.yaml").write_text(
            "topology: bare\nsource: made\nnodes: 2\nnode:\n  devices:\n    cpu0: {kind: cpu, part: genoa}\n"
            "    gpu0: {kind: gpu, part: h100-pcie, upstream: cpu0}\n")
        self.assertIn("gpu0 X", self.ok("show", "bare.yaml"))

    def test_show_takes_thousands_of_gpus(self):
        def text(gpus):
            return ("topology: wide\nsource: made\nnodes: 2\nnetwork:\n  fabric: {kind: one-switch}\nnode:\n"
                    "  devices:\n    cpu0: {kind: cpu, part: genoa}\n"
                    "    nic0: {kind: nic, part: connectx-7, upstream: cpu0, network: fabric}\n" +
                    "".join(f"    gpu{i}: {{kind: gpu, part: h100-pcie, upstream: cpu0}}\n" for i in range(gpus)))

        few = self.seconds_to_show(text(500))
        self.assertLess(self.seconds_to_show(text(4000)), 8 * 3 * few + 1)  # 8 times the pairs; the square would be 64

    def seconds_to_show(self, topology):
        (self.here / "wide.yaml").write_text(topology)
        began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        self.ok("show", "wide.yaml", "--format", "json")
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began

    def test_show_computes_pairs_that_are_alike_once(self):
        def text(gpus):
            return f"""topology: 120 CPUs in a chain
source: made
nodes: 1
node:
  devices:
    cpu{{i}}: {{repeat: 120, kind: cpu, part: sapphire-rapids}}
    gpu{{i}}: {{repeat: {120 * gpus}, kind: gpu, part: h100-sxm, upstream: "cpu{{i/{gpus}}}"}}
    nic{{i}}: {{repeat: 120, kind: nic, part: connectx-7, upstream: "cpu{{i}}", network: fabric}}
  links:
    - {{repeat: 119, kind: socket, between: ["cpu{{i}}", "cpu{{i+1}}"], count: 4}}
network:
  fabric: {{kind: one-switch}}
"""
        # 8 times the pairs, each over up to 119 links; what is alike is as much.
        self.assertLess(self.seconds_to_show(text(8)), 2 * self.seconds_to_show(text(1)) + 1)

    def test_a_fluid_run_says_what_only_packets_see(self):
        settings = ("--set", "wire.pfc_xoff=128 KiB", "--set", "nic0.cqe_bytes=128 B", "--set", "nic.blueflame=off")
        notes = json.loads(self.ok("run", SMALL, *settings, "--json", "-"))["notes"]
        self.assertIn("no effect without --fidelity packet: wire.pfc_xoff, nic0.cqe_bytes", notes)
        self.assertFalse([n for n in json.loads(self.ok("run", SMALL, "--json", "-"))["notes"] if "no effect" in n])

    def test_an_all_to_all_through_a_root_complex_is_said_to_be_slower(self):
        def said(op, *env):
            (self.here / "p2p.yaml").write_text(f"scenario: p2p\ntopology: {SOURCE.resolve()}/tests/data/machines/rtx-pro-6000-4gpu.yaml\n"
                                                f"nodes: 1\nworkload: {{op: {op}, sizes: [1 MiB]}}\n")
            notes = json.loads(self.ok("run", "p2p.yaml", "--env", *env, "--json", "-"))["notes"]
            return any("exchange data through a root complex" in note and "nccl#1603" in note for note in notes)
        self.assertTrue(said("alltoall", "NCCL_P2P_LEVEL=SYS"))
        self.assertFalse(said("alltoall", "NCCL_P2P_DISABLE=1"))
        self.assertFalse(said("allreduce", "NCCL_P2P_LEVEL=SYS"))

    def test_a_seed_draws_losses_ways_and_says_where_it_does_not(self):
        def run(*arguments):
            return json.loads(weft("run", *arguments, "--json", "-", cwd=self.here).stdout)
        (self.here / "sends.yaml").write_text((self.here / TINY).read_text().replace("allreduce", "alltoall"))
        for scenario, is_said in (("sends.yaml", True), (TINY, False)):
            notes = json.loads(self.ok("run", scenario, "--env", "NCCL_PXN_DISABLE=1", "--set", "nccl.decisions=simple",
                                       "--json", "-"))["notes"]
            said = [note for note in notes if note.startswith("NCCL_PXN_DISABLE=1 has no effect: by weft's simple rules")]
            self.assertEqual(bool(said), is_said, scenario)
        notes = json.loads(self.ok("run", SMALL, "--set", "nic.rate=800 Gb/s", "--json", "-"))["notes"]
        self.assertIn("nic.rate=800 Gb/s: its wire carries no more than wire.rate, 50 GB/s", notes)
        both = ("--set", "nic.rate=800 Gb/s", "--set", "wire.rate=800 Gb/s")
        notes = json.loads(self.ok("run", SMALL, *both, "--json", "-"))["notes"]
        self.assertFalse([note for note in notes if "its wire" in note])
        no_effect = "the seed has no effect: nothing in this run is random"
        (self.here / "tiny.yaml").write_text(SMALL_TEXT.replace("1 MiB, 256 MiB", "32 KiB") +
                                             "memory_paths: [gdr]\n")
        cloud = TINY_TEXT.replace("1 KiB, 64 KiB", "64 KiB").replace("nodes: 2", "nodes: 8").replace("1nic", "8nic")
        (self.here / "cloud.yaml").write_text(cloud)
        lossy = ("tiny.yaml", "--fidelity", "packet", "--set", "nic.cable_loss=0.02", "--set",
                 "wire.timeout_exponent=8")
        ecmp = ("cloud.yaml", "--set", "wire.kind=roce", "--set", "network.kind=leaf-spine", "--set",
                "network.ports=64")
        for command in lossy, ecmp:
            one, again, two = (run(*command, "--seed", seed) for seed in ("1", "1", "2"))
            self.assertEqual(one["results"], again["results"])
            self.assertNotEqual(one["results"], two["results"])
            self.assertEqual(one["results"], run(*command)["results"])
            self.assertEqual(two["provenance"]["seed"], 2)
            self.assertNotIn(no_effect, two["notes"])
        for command in ("tiny.yaml",), ("tiny.yaml", "--fidelity", "packet"):
            self.assertIn(no_effect, run(*command, "--seed", "2")["notes"])
            self.assertNotIn(no_effect, run(*command)["notes"])

    def test_packets_say_how_long_they_take_and_what_ports_did(self):
        (self.here / "tiny.yaml").write_text(SMALL_TEXT.replace("1 MiB, 256 MiB", "8 KiB"))
        run = weft("run", "tiny.yaml", "--fidelity", "packet", "--json", "-", cwd=self.here)
        self.assertEqual(run.returncode, 0)
        self.assertRegex(run.stderr.decode(), r"^packets: about \S+ packets over links, \d+ connections, less than a second of one core\n$")
        answer = json.loads(run.stdout)
        self.assertEqual(answer["provenance"]["fidelity"], "packet")
        for row in answer["results"]:
            self.assertAlmostEqual(sum(cause["share"] for cause in row["limited_by"]), 1)
            self.assertEqual(set(row["probes"]), {"ports", "ports_left_out", "pauses", "dropped", "lost", "marked", "nics"})
            self.assertLessEqual({"link", "utilisation", "wait_us", "most_queued_bytes", "pauses"},
                                 set(row["probes"]["ports"][0]))
        large = weft("run", SMALL, "--fidelity", "packet", "--set", "nodes=16", cwd=self.here)
        self.assertEqual((large.returncode, large.stdout), (2, b""))
        self.assertIn("take smaller sizes, fewer nodes or --fidelity fluid", large.stderr.decode())

    def test_settings_reach_the_model(self):
        ring = ("--set", "nccl.algo=Ring", "--set", "nccl.proto=Simple")
        (self.here / "large.yaml").write_text(TINY_TEXT.replace("1 KiB, 64 KiB", "256 MiB"))
        before = self.result("large.yaml", *ring)["results"]
        after = self.result("large.yaml", *ring, "--set", "wire.rate=200 Gb/s")["results"]
        self.assertAlmostEqual(after[0]["time_us"] / before[0]["time_us"], 2, delta=0.1)
        # Options may stand before the scenario, and each takes one value.
        self.assertEqual(self.result("--set", "wire.rate=200 Gb/s", "large.yaml", *ring)["results"],
                         after)

    def test_expect(self):
        table = self.ok("run", BOTH)
        gdr, staged = (row["busbw_GBps"] for row in self.result(BOTH)["results"][-2:])
        self.assertGreater(gdr, staged)
        self.assertEqual(self.ok("run", BOTH, "--expect", f"busbw>={gdr * 0.99}"), table)
        self.assertEqual(self.ok("run", BOTH, "--expect", f"busbw>={gdr * 0.99}", "--expect",
                                 f"host-staged.busbw<{staged * 1.01}"), table)
        run = weft("run", BOTH, "--expect", "busbw>=1000", "--json", "out.json", cwd=self.here)
        self.assertEqual((run.returncode, run.stdout.decode()), (4, table))
        said = re.fullmatch(r"expectation missed: busbw>=1000: busbw is (\d+\.\d+) at 65536 B over gdr\n",
                            run.stderr.decode())
        self.assertAlmostEqual(float(said[1]), gdr, delta=0.01)
        self.assertEqual((self.here / "out.json").read_text(), self.ok("run", BOTH, "--json", "-"))

    def test_what_is_not_modelled_is_said(self):
        notes = self.result(TINY, "--env", "NCCL_IB_TC=106")["notes"]
        self.assertIn("NCCL_IB_TC is not modelled and has no effect", notes)

    def test_a_scenario_from_standard_input(self):
        self.assertEqual(self.result("-", stdin=BOTH_TEXT.encode())["results"],
                         self.result(BOTH)["results"])
        self.assertIn("-: ok", self.ok("check", "-", stdin=SMALL_TEXT.encode()))

    def test_from_another_folder(self):
        there = self.result(str(self.here / BOTH), cwd="/")
        self.assertEqual(there["results"], self.result(BOTH)["results"])

    def test_a_link_is_kept_and_its_file_replaced(self):
        (self.here / "target.json").write_text("old")
        (self.here / "link.json").symlink_to("target.json")
        self.ok("run", TINY, "--json", "link.json")
        self.assertTrue((self.here / "link.json").is_symlink())
        self.assertIn("weft.run/1", (self.here / "target.json").read_text())

    def test_names_of_devices_mean_nothing(self):
        """Metamorphic: the same machine under other names, in the same order, takes the same time."""
        text = (self.here / TOPOLOGY).read_text(encoding="utf-8")
        for old, new in (("cpu", "zsocket"), ("pcisw", "bridge"), ("gpu", "acc"), ("nic", "hca")):
            text = re.sub(rf"\b{old}(\d)\b", rf"{new}\1", text)
        text = re.sub(r"\bnvswitch(?=:|\])", "crossbar", text)
        self.assertEqual(len(re.findall(r"\bacc\d:", text)), 8)
        (self.root / "topologies/renamed.yaml").write_text(text, encoding="utf-8")
        few = SMALL_TEXT.replace("256 MiB", "16 MiB")
        (self.here / "few.yaml").write_text(few)
        (self.here / "renamed.yaml").write_text(few.replace("hgx-h100-8nic", "renamed"))

        def without_places(rows):
            for row in rows:
                row["limited_by"] = [(c["cause"], c["share"]) for c in row["limited_by"]]
                row["link_use"] = [link["use"] for link in row["link_use"]]
            return rows
        self.assertEqual(without_places(self.result("renamed.yaml")["results"]),
                         without_places(self.result("few.yaml")["results"]))


class OtherCommands(CliTest):
    def test_help_has_an_example(self):
        for command in ("run", "show", "check", "list-params"):
            self.assertRegex(self.ok(command, "--help"), rf"(?m)^Example: weft {command} ")
        self.assertIn("weft run scenarios/quickstart.yaml", self.ok("--help"))
        self.assertRegex(self.ok("--version"), r"\Aweft \d+\.\d+\.\d+ \(commit (unknown|[0-9a-f]{12,}(-dirty)?)\)\n\Z")

    def test_the_examples_work(self):
        for command in ("run", "show", "check", "list-params"):
            line = re.search(r"(?m)^Example: weft (.*)$", self.ok(command, "--help")).group(1)
            # The run's example simulates 8 GiB; that its files and settings are right is enough.
            line = line.replace("run scenarios/quickstart.yaml", "run tests/cli/both.yaml")
            shell = subprocess.run(f'"$WEFT" {line}', shell=True, cwd=self.root, timeout=LIMIT_S,
                                   env={**os.environ, "WEFT": WEFT}, capture_output=True)
            self.assertEqual((shell.returncode, shell.stderr), (0, b""), line)
            self.assertTrue(shell.stdout, line)

    def test_list_params(self):
        parameters = json.loads(self.ok("list-params", "--json"))["parameters"]
        self.assertGreater(len(parameters), 50)
        for parameter in parameters:
            for key in ("key", "range", "default", "origin", "source", "meaning"):
                self.assertTrue(parameter[key], parameter)
            self.assertIn(parameter["origin"], ("specification", "published", "measured", "fitted", "assumed",
                                                "topology"))
            self.assertIn("unit", parameter)
        keys = [parameter["key"] for parameter in parameters]
        self.assertEqual(keys, sorted(set(keys)))
        text = self.ok("list-params")
        for key in keys:
            self.assertRegex(text, rf"(?m)^{re.escape(key)} = ")

    def test_show_json(self):
        shown = json.loads(self.ok("show", TOPOLOGY, "--format", "json"))
        self.assertEqual(shown["schema"], "weft.show/1")
        self.assertLessEqual({"devices", "links", "pairs"}, set(shown))
        self.assertEqual(len(shown["pairs"]), 64)
        for pair in shown["pairs"]:
            self.assertLessEqual({"gpu", "nic", "class", "gdr_possible", "nccl_default", "why"},
                                 set(pair))
        kinds = [device["kind"] for device in shown["devices"]]
        self.assertEqual((kinds.count("gpu"), kinds.count("nic")), (8, 8))
        classes = {(pair["gpu"], pair["nic"]): pair["class"] for pair in shown["pairs"]}
        self.assertEqual((classes["gpu0", "nic0"], classes["gpu0", "nic7"]), ("PIX", "SYS"))

    def test_show_network(self):
        network = ["--set", "network.kind=leaf-spine", "--set", "network.ports=64", "--set",
                   "network.oversubscription=2", "--set", "nodes=16"]
        text = self.ok("show", TOPOLOGY, *network)
        self.assertIn("network fabric: leaf-spine, load spread over equal ways\n"
                      "  4 leaves (quantum-2): 32 x 400 Gb/s down, 16 x 400 Gb/s up to 1 spine, 2:1; "
                      "200 ns, NIC to NIC 430 ns\n", text)
        shown = json.loads(self.ok("show", TOPOLOGY, "--format", "json", *network))["network"]
        self.assertEqual([tier["switches"] for tier in shown["tiers"]], [4, 1])
        self.assertEqual(shown["tiers"][0]["oversubscription"], 2)

    def test_show_dot_and_text(self):
        dot = self.ok("show", TOPOLOGY, "--format", "dot")
        self.assertTrue(dot.startswith("graph "))
        self.assertTrue(dot.endswith("}\n"))
        self.assertIn('"pcisw0" -- "gpu0"', dot)
        self.assertEqual(self.ok("show", TOPOLOGY), self.ok("show", TOPOLOGY, "--format", "text"))

    def test_every_file_of_the_project_is_accepted(self):
        files = [path for name in ("topologies", "scenarios")
                 for path in sorted((self.root / name).rglob("*")) if path.suffix in (".yaml", ".xml")]
        self.assertGreater(len(files), 4)
        for file in files:
            with self.subTest(file.name):
                self.assertRegex(self.ok("check", str(file)), ": ok, ")

    def test_a_scenario_is_known_however_it_is_written(self):
        for name, text in (("bom.yaml", "\ufeff" + SMALL_TEXT),
                           ("quoted.yaml", SMALL_TEXT.replace("scenario:", '"scenario":', 1)),
                           ("flow.yaml", f"{{scenario: s, topology: {TOPOLOGY}, "
                                         "workload: {op: allreduce, sizes: [1 MiB]}}")):
            (self.here / name).write_text(text, encoding="utf-8")
            self.assertEqual(self.ok("check", name),
                             f"{name}: ok, 2 x hgx-h100-8nic with 8 GPUs and 8 NICs a node\n")

    def test_every_scenario_is_sound(self):
        scenarios = sorted((self.root / "scenarios").glob("*.yaml"))
        self.assertGreater(len(scenarios), 4)
        for file in scenarios:
            with self.subTest(file.name):
                self.assertIn(": ok, ", self.ok("check", f"scenarios/{file.name}", cwd=self.root))

    def test_speed_of_the_quickstart_is_reported(self):
        """Nothing is held here; under 5 s in the release build is the aim."""
        began = time.monotonic()
        self.ok("run", "scenarios/quickstart.yaml", cwd=self.root)
        print(f"quickstart: {time.monotonic() - began:.1f} s with {WEFT}", file=sys.stderr)


if __name__ == "__main__":
    main(__doc__)
