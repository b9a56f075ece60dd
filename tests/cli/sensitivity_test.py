#!/usr/bin/env python3
"""`weft sensitivity`: which parameter moves the answer, where that is known beforehand.

    sensitivity_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import json
import re
import math

import cli_test
from cli_test import SMALL, CliTest, weft

# One GPU and NIC a node, so large that latency is nothing: the wire's rate is the answer.
WIRE = "wire.yaml"
WIRE_TEXT = """scenario: wire
topology: ../../topologies/hgx-h100-1nic.yaml
nodes: 2
workload: {op: sendrecv, sizes: [1 KiB, 1 GiB]}
memory_paths: [gdr]
set: {gpu.count: 1, wire.rate: 100 Gb/s, nccl.decisions: simple}
"""
# Of all kinds and origins; all 200 would take minutes with the sanitizers.
SOME = ("--params", "wire.rate,wire.mtu,wire.ib_overhead,wire.packets_per_ack,wire.fec_latency,wire.kind,nic.rate,"
        "nic.latency,nic.pcie_gen,nic.gdr,netswitch.latency,switch.latency,cpu.dram_channels,cpu.root_latency,"
        "gpu.bar1_write_latency,gpu.sm_load_rate,nccl.launch_simple,nccl.proxy_poll,nccl.buffer_size,wire.pfc_share,"
        "switch.port_egress")
BOGUS_USAGE = (
    (["sensitivity"], "scenario is required (see weft --help)"),
    (["sensitivity", "nowhere.yaml"], "nowhere.yaml: no such file"),
    (["sensitivity", WIRE, "--step", "0"], "--step '0': write a share of each value, from 0.0001 to 0.5"),
    (["sensitivity", WIRE, "--step", "x"], "--step 'x': write a share of each value, from 0.0001 to 0.5"),
    (["sensitivity", WIRE, "--size", "2M,1M"], "--size 1 MiB: sizes must ascend, none given twice"),
    (["sensitivity", WIRE, "--size", "0"], "--size 0 B: allowed: 1 B to 4 TiB"),
    (["sensitivity", WIRE, "--params", "leaf.uplink_rate"],
     "--params: leaf.uplink_rate is of some devices; a parameter is moved for all that have it: netswitch.uplink_rate"),
    (["sensitivity", WIRE, "--params", "leaf.latency"],
     "--params: leaf.latency is of some devices; a parameter is moved for all that have it: netswitch.latency"),
    (["sensitivity", WIRE, "--params", "wire.rate,wire.seat"], None),
    (["sensitivity", WIRE, "--params", "virtual-root.latency"], None),
)


class Sensitivity(CliTest):
    def setUp(self):
        super().setUp()
        (self.here / WIRE).write_text(WIRE_TEXT)

    def asked(self, *arguments):
        return json.loads(self.ok("sensitivity", *arguments, "--json", "-"))

    def elasticities(self, *arguments):
        result, = self.asked(*arguments)["results"]
        return {p["key"]: p["elasticity"] for p in result["parameters"]}

    def test_usage(self):
        for arguments, expected in BOGUS_USAGE:
            with self.subTest(arguments):
                if expected is not None:
                    self.refused(arguments, expected)
                    continue
                run = weft(*arguments, cwd=self.here)
                self.assertEqual(run.returncode, 2)
                self.assertRegex(run.stderr, rb"\Aerror: (no parameter 'wire.seat'|--params: this run does not use "
                                             rb"virtual-root.\w+|no parameter 'virtual-root.latency')[ -~]*\n\Z")

    def test_what_the_wire_limits_follows_the_wire(self):
        elasticities = self.elasticities(WIRE, *SOME)
        self.assertEqual(list(elasticities)[0], "wire.rate")
        self.assertAlmostEqual(elasticities.pop("wire.rate"), 1, delta=0.01)
        for key, elasticity in elasticities.items():
            # The largest: a packet's payload beside 26 B of headers, d ln(m / (m + 26)) / d ln(m) = 0.6 % at 4096 B.
            self.assertLess(abs(elasticity), 0.01, key)

    def test_what_latency_limits_follows_no_rate(self):
        elasticities = self.elasticities(WIRE, *SOME, "--size", "1K")
        self.assertLess(abs(elasticities["wire.rate"]), 0.05)
        self.assertLess(elasticities["nccl.launch_simple"], -0.1)

    def test_is_the_difference_of_two_runs(self):
        moved, = self.asked(WIRE, "--params", "wire.rate", "--step", "0.2")["results"][0]["parameters"]
        self.assertEqual((moved["value"], moved["low"], moved["high"]), ("12.5 GB/s", "10 GB/s", "15 GB/s"))
        busbw = {end: self.result(WIRE, "--set", "wire.rate=" + moved[end])["results"][-1]["busbw_GBps"]
                 for end in ("low", "value", "high")}
        for slope, low, high, ratio in (("elasticity", "low", "high", 1.5), ("down", "low", "value", 1.25),
                                        ("up", "value", "high", 1.2)):
            self.assertAlmostEqual(moved[slope], math.log(busbw[high] / busbw[low]) / math.log(ratio), places=9)

    def test_a_kink_has_two_slopes(self):
        # NIC and wire limit alike: either holds the other back when it is raised alone.
        numbers = self.asked(WIRE, "--set", "nic.rate=100 Gb/s", "--params", "wire.rate,nic.rate")["results"][0]["parameters"]
        for number in numbers:
            self.assertAlmostEqual(number["down"], 1, delta=0.01)
            self.assertAlmostEqual(number["up"], 0, delta=0.01)
            self.assertAlmostEqual(number["elasticity"], 0.5, delta=0.01)

    def test_slopes_of_opposite_signs_are_named(self):
        (self.here / "short.yaml").write_text(
            "scenario: short\ntopology: ../../topologies/hgx-h100-4nic.yaml\nnodes: 2\nmemory_paths: [gdr]\n"
            "workload: {op: allreduce, algo: Ring, sizes: [1 MiB]}\n")
        asked = ("short.yaml", "--params", "gpu.sm_load_latency,nccl.work_ll128,nccl.proxy_poll,wire.rate")
        opposite = {p["key"] for p in self.asked(*asked)["results"][0]["parameters"]
                    if p["down"] * p["up"] < 0 and min(abs(p["down"]), abs(p["up"])) >= 0.01}
        named = re.findall(r"^# down and up have opposite signs, [^:]+: ([^;]+);", self.ok("sensitivity", *asked), re.M)
        self.assertTrue(opposite)
        self.assertEqual(set(", ".join(named).split(", ")) - {""}, opposite)

    def test_words_are_tried_in_the_place_of_the_one_that_holds(self):
        result, = self.asked(WIRE, "--params", "wire.kind")["results"]
        word, = result["words"]
        self.assertEqual((word["key"], word["value"], word["to"]), ("wire.kind", "infiniband", "roce"))
        busbw = self.result(WIRE, "--set", "wire.kind=roce")["results"][-1]["busbw_GBps"]
        self.assertAlmostEqual(word["change"], busbw / result["busbw_GBps"] - 1, places=12)

    def test_ranges_hold_and_whole_numbers_stay_whole(self):
        asked = self.asked(WIRE, *SOME)
        numbers = {p["key"]: p for p in asked["results"][0]["parameters"]}
        self.assertEqual((numbers["wire.mtu"]["low"], numbers["wire.mtu"]["high"]), ("4055 B", "4096 B"))
        self.assertEqual((numbers["cpu.dram_channels"]["low"], numbers["cpu.dram_channels"]["high"]), ("7", "9"))
        self.assertIn({"key": "wire.pfc_share", "value": "0", "why": "is 0: it has no relative change"},
                      asked["not_moved"])
        self.assertEqual({n["key"] for n in asked["not_moved"]} & set(numbers), set())

    def test_devices_that_differ_keep_whole_numbers_or_are_not_moved(self):
        apart = ("--set", "gpu.count=2", "--set", "nic0.pcie_gen=4", "--set", "gpu0.port_acs=none")
        asked = self.asked("../../scenarios/quickstart.yaml", *apart, "--size", "1K", "--params",
                           "nic.pcie_gen,gpu.port_acs,nic.rate")
        self.assertEqual({n["key"]: n["why"].split(":")[0] for n in asked["not_moved"]},
                         {"nic.pcie_gen": "differs between devices", "gpu.port_acs": "differs between devices"})
        self.assertEqual([p["key"] for p in asked["results"][0]["parameters"]], ["nic.rate"])
        self.assertEqual(asked["results"][0]["words"], [])

    def test_the_order_is_the_strength_and_origins_stand_beside(self):
        text = self.ok("sensitivity", WIRE, *SOME)
        self.assertRegex(text, r"(?m)^(\+(1\.000|0\.99\d) +){3}wire.rate +12.5 GB/s +assumed$")
        self.assertRegex(text, r"(?m)^# assumed, with an elasticity of 0.01 or more: wire.rate$")
        for result in self.asked(WIRE, *SOME, "--size", "1K,1G")["results"]:
            strengths = [abs(p["elasticity"]) for p in result["parameters"]]
            self.assertEqual(strengths, sorted(strengths, reverse=True))

    def test_does_not_depend_on_the_number_of_threads(self):
        keys = ("--params", "wire.rate,wire.mtu,wire.kind,nic.rate")
        self.assertEqual(self.asked(WIRE, *keys, "--threads", "1"), self.asked(WIRE, *keys, "--threads", "3"))

    def test_a_time_limit_keeps_what_is_done(self):
        run = weft("sensitivity", WIRE, "--threads", "1", "--time-limit", "3s", "--json", "-", cwd=self.here)
        self.assertEqual(run.returncode, 130)
        if run.stdout:
            whys = {n["why"] for n in json.loads(run.stdout)["not_moved"]}
            self.assertTrue(any(why.endswith("stopped before it was run") for why in whys))

    def test_what_was_stopped_is_one_line(self):
        run = weft("sensitivity", WIRE, "--threads", "1", "--time-limit", "3s", cwd=self.here)
        self.assertEqual(run.returncode, 130)
        if run.stdout:
            self.assertRegex(run.stdout.decode(), r"(?m)^# not moved: \d+ of \d+ parameters, not known: stopped")
            self.assertNotIn("stopped before it was run", run.stdout.decode())


if __name__ == "__main__":
    cli_test.main(__doc__)
