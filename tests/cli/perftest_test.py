#!/usr/bin/env python3
"""`weft perftest` as design.md section 5 promises it.

    perftest_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import json
import re

import cli_test
from cli_test import TOPOLOGY, CliTest, weft

BOGUS_USAGE = (
    (["perftest", "genoa.yaml", "--all", "--size", "64"], "--all and --size: give one"),
    (["perftest"], "topology is required (see weft --help)"),
    (["perftest", "nowhere.yaml"], "nowhere.yaml: no such file"),
    (["perftest", TOPOLOGY, "--op", "atomic"], "--op: atomic not in {write,read,send} (see weft --help)"),
    (["perftest", TOPOLOGY, "--size", "0"], "--size 0 B: allowed are 1 B to 64 MiB"),
    (["perftest", TOPOLOGY, "--size", "1G"], "--size 1 GiB: allowed are 1 B to 64 MiB"),
    (["perftest", TOPOLOGY, "--tx-depth", "0"], "--tx-depth must be at least 1"),
    (["perftest", TOPOLOGY, "--qp", "0"], "--qp must be at least 1"),
    (["perftest", TOPOLOGY, "--iters", "4"], "--iters 4: at least 5, or 0"),
    (["perftest", TOPOLOGY, "--post-list", "64", "--cq-mod", "100"],
     "--cq-mod 100: not a divisor of --post-list 64"),
    (["perftest", TOPOLOGY, "--post-list", "64", "--iters", "100"],
     "--iters 100: not a multiple of --post-list 64"),
    (["perftest", TOPOLOGY, "--iters", "10000000"],
     "--iters 10000000: more than the 8 GiB of packets that one run may simulate; 0 takes as many as show a "
     "steady rate"),
    (["perftest", TOPOLOGY, "--from", "gpu9"],
     "--from 'gpu9': no such device; known: cpu0, cpu1, gpu0, gpu1, gpu2, gpu3, gpu4, gpu5, gpu6, gpu7, "
     "nic0, nic1 and 6 more"),
    (["perftest", TOPOLOGY, "--to", "gpu0@x"], "--to 'gpu0@x': write a device and its node, such as gpu0@1"),
    (["perftest", TOPOLOGY, "--from", "cpu0"], "--from 'cpu0': --mem gpu needs a GPU"),
    (["perftest", TOPOLOGY, "--from-nic", "gpu1"], "--from-nic 'gpu1': not a NIC with a cable"),
    (["perftest", TOPOLOGY, "--from-nic", "nic0@1"],
     "--from-nic 'nic0@1': on another node than gpu0@0"),
    (["perftest", TOPOLOGY, "--to", "gpu0@0"],
     "--from and --to use one NIC, nic0@0: loopback is not modelled"),
    (["perftest", TOPOLOGY, "--mem", "staged", "--op", "read"], "--mem staged goes with --op write only"),
    (["perftest", TOPOLOGY, "--set", "gpu.peer_mapping=none"],
     "no GPUDirect RDMA between gpu0@0 and nic0@0: nothing maps gpu0's memory for NICs "
     "(gpu.peer_mapping=none): load nvidia-peermem or use DMA-BUF; --mem staged goes without"),
)


class Perftest(CliTest):
    def test_bad_input(self):
        for arguments, expected in BOGUS_USAGE:
            with self.subTest(arguments):
                self.refused(arguments, expected)

    def test_values_that_cannot_be_are_refused(self):
        for setting, allowed in (("wire.mtu=1500 B", "256 B, 512 B, 1024 B, 2048 B, 4096 B"),
                                 ("wire.mtu=9000 B", "256 B, 512 B, 1024 B, 2048 B, 4096 B"),
                                 ("nic.mps=300 B", "128 B, 256 B, 512 B, 1024 B, 2048 B, 4096 B"),
                                 ("nic0.mrrs=1000 B", "128 B, 256 B, 512 B, 1024 B, 2048 B, 4096 B"),
                                 ("cpu.iommu_page=64 KiB", "4096 B, 2097152 B, 1073741824 B")):
            with self.subTest(setting):
                run = weft("perftest", TOPOLOGY, "--set", setting, cwd=self.here)
                self.assertEqual((run.returncode, run.stdout), (2, b""))
                self.assertIn(f" {setting.split('=')[1]} cannot be; allowed: {allowed}\n", run.stderr.decode())

    def test_a_set_of_parameters_is_what_is_set(self):
        (self.here / "p.yaml").write_text("wire.mtu: 1 KiB\nnic.mrrs: 4 KiB\n")
        command = ("perftest", TOPOLOGY, "--size", "64K", "--iters", "20", "--json", "-")
        mrrs = ("--set", "nic.mrrs=4 KiB")
        self.assertEqual(self.ok(*command, "--params", "p.yaml"), self.ok(*command, "--set", "wire.mtu=1 KiB", *mrrs))
        self.assertEqual(self.ok(*command, "--params", "p.yaml", "--set", "wire.mtu=2 KiB"),
                         self.ok(*command, "--set", "wire.mtu=2 KiB", *mrrs))
        (self.here / "wrong.yaml").write_text("wire.mtu: 4 KiB\nwire.mut: 1 KiB\n")
        for other in (command, ("copies", TOPOLOGY), ("expect", TOPOLOGY, "--size", "64M", "--json", "-")):
            with self.subTest(other):
                run = weft(*other, "--params", "wrong.yaml", cwd=self.here)
                self.assertEqual((run.returncode, run.stdout), (2, b""))
                self.assertIn("error: wrong.yaml:2:1: ", run.stderr.decode())

    def test_an_outage_before_rates_are_taken_is_told(self):
        run = weft("perftest", TOPOLOGY, "--size", "64K", "--set", "nic.flap_time=1 us", "--set",
                   "wire.timeout_exponent=1", cwd=self.here)
        self.assertIn("note: the outage of nic0@0 (nic.flap_at, nic.flap_time) is over after 1.0 us; rates of 64 KiB are "
                      "taken from ", run.stderr.decode())

    def test_a_network_too_large_for_the_memory_is_refused(self):
        run = weft("perftest", TOPOLOGY, "--to", "gpu0@2000", cwd=self.here)
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stderr.decode(), r"\Aerror: packets: \d+ queues, one for each pair of a switch's ports, "
                         r"are too many; at most 100000000: take fewer nodes or smaller switches\n\Z")

    def test_the_table_has_perftests_columns(self):
        text = self.ok("perftest", TOPOLOGY, "--size", "64K,4K", "--iters", "20")
        self.assertIn(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]", text)
        rows = [line.split() for line in text.splitlines() if re.match(r" \d", line)]
        self.assertEqual([row[0] for row in rows], ["65536", "4096"])
        self.assertAlmostEqual(float(rows[0][3]), 397.4, delta=2)

    def test_the_head_says_how_completions_are_moderated(self):
        text = self.ok("perftest", TOPOLOGY, "--size", "64K,4K", "--iters", "20", "--tx-depth", "8")
        self.assertIn(", tx depth 8, CQ moderation 8, above 8 KiB 1, MTU 4096 B", text)

    def test_what_has_no_effect_is_said(self):
        def notes(*arguments):
            return weft("perftest", TOPOLOGY, "--size", "4K", "--iters", "5", *arguments, cwd=self.here).stderr.decode()
        staged = "note: no effect on rates and latency with --op write --mem staged: --tx-depth, --cq-mod\n"
        self.assertEqual(notes("--mem", "staged", "--tx-depth", "4", "--cq-mod", "2"), staged)
        self.assertIn("--op read --mem gpu: --rx-depth\n", notes("--op", "read", "--rx-depth", "4"))
        self.assertEqual(notes("--op", "send", "--rx-depth", "4", "--tx-depth", "4"), "")

    def test_a_seed_draws_losses_and_says_where_it_does_not(self):
        def run(*arguments):
            done = weft("perftest", TOPOLOGY, "--size", "4K", "--iters", "400", "--json", "-", *arguments, cwd=self.here)
            return json.loads(done.stdout), done.stderr
        lossy = ("--set", "nic.cable_loss=0.01", "--set", "wire.timeout_exponent=8")
        one, two = (run(*lossy, "--seed", seed) for seed in "12")
        self.assertEqual(run(*lossy, "--seed", "1"), one)
        self.assertNotEqual(two[0]["results"], one[0]["results"])
        self.assertEqual(two[1], b"")
        self.assertEqual(run("--seed", "2")[1], b"note: the seed has no effect: nothing in this run is random\n")

    def test_json_has_the_contracts_keys_and_the_same_bytes_twice(self):
        command = ("perftest", TOPOLOGY, "--size", "4K", "--iters", "20", "--json", "-")
        text = self.ok(*command)
        answer = json.loads(text)
        self.assertEqual(answer["schema"], "weft.perftest/1")
        (row,) = answer["results"]
        self.assertLessEqual({"op", "mem", "bytes", "bw_Gbps", "latency_us", "limited_by", "probes"}, set(row))
        self.assertEqual([nic["nic"] for nic in row["probes"]["nics"]], ["nic0@0", "nic0@1"])
        self.assertEqual((row["op"], row["mem"], row["bytes"]), ("write", "gpu", 4096))
        self.assertEqual(self.ok(*command), text)


if __name__ == "__main__":
    cli_test.main(__doc__)
