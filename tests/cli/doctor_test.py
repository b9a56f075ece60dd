#!/usr/bin/env python3
"""`weft doctor`: what is wrong with a machine, by what its tools print.

    doctor_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import json
import re
import unittest

import cli_test
from cli_test import CliTest, weft

SLOW_LINK = ("1a:00.0", "LnkSta:\tSpeed 32GT/s (ok), Width x16 (ok)", "LnkSta:\tSpeed 32GT/s (ok), Width x4 (downgraded)")
BOGUS_USAGE = (
    (["doctor"], "evidence is required (see weft --help)"),
    (["doctor", "nowhere.txt"], "nowhere.txt: no such file"),
    (["doctor", "lspci.txt", "--threshold", "x"], "--threshold 'x': write a percentage of bandwidth, from 0 to 100"),
    (["doctor", "lspci.txt", "--threshold", "101"],
     "--threshold '101': write a percentage of bandwidth, from 0 to 100"),
    (["doctor", "lspci.txt", "--size", "2M,1M"], "--size 1 MiB: sizes must ascend, none given twice"),
    (["doctor", "lspci.txt", "--size", "0"], "--size 0 B: allowed: 1 B to 4 TiB"),
)


class Doctor(CliTest):
    def setUp(self):
        super().setUp()
        self.healthy = (cli_test.SOURCE / "tests/data/evidence/lspci-vvv-dell-h100.txt").read_text()
        function, good, bad = SLOW_LINK
        begin = self.healthy.index("\n" + function)
        self.slow = self.healthy[:begin] + self.healthy[begin:].replace(good, bad, 1)
        self.assertNotEqual(self.slow, self.healthy)
        (self.here / "lspci.txt").write_text(self.healthy)
        (self.here / "slow.txt").write_text(self.slow)

    def doctor(self, *arguments):
        return weft("doctor", *arguments, cwd=self.here)

    def test_usage(self):
        for arguments, expected in BOGUS_USAGE:
            with self.subTest(arguments):
                self.refused(arguments, expected)

    def test_evidence_without_a_gpu_is_refused(self):
        (self.here / "lsmod.txt").write_text("Module                  Size  Used by\nnvidia 1 0\n")
        run = self.doctor("lsmod.txt")
        self.assertEqual((run.returncode, run.stdout), (2, b""))
        self.assertIn(b"error: no GPU in lsmod.txt", run.stderr)

    def test_a_healthy_machine_is_healthy_and_what_is_unknown_is_counted(self):
        said = self.ok("doctor", "lspci.txt")
        last = said.splitlines()[-1]
        self.assertRegex(last, r"^nothing found that matters: 0 of 0 findings .* [1-9]\d* checks are unknown, \d+ ok$")
        self.assertEqual(int(re.search(r"(\d+) checks are unknown", last).group(1)),
                         len(re.findall(r"would tell$", said[:said.index("\nok:\n")], re.M)))

    def test_a_finding_has_its_place_its_price_and_the_exit_code(self):
        run = self.doctor("slow.txt")
        said = run.stdout.decode()
        self.assertEqual((run.returncode, run.stderr.decode()),
                         (6, "unhealthy: a finding is an error or costs over the threshold\n"))
        line = 1 + self.slow[:self.slow.index("Width x4 (downgraded)")].count("\n")
        self.assertRegex(said, r"\APCIe links: the PCIe link of nic0 trained below what both ends can do\n"
                               r"  costs [1-9]\d* % at 1 GiB \(gdr\)[^\n]*\n"
                               rf"  slow.txt:{line}: nic0: trained_width 4 of 16\n  do: ")
        self.assertTrue(said.splitlines()[-1].startswith("unhealthy: 1 of 1 findings "))

    def test_what_is_not_read_is_no_assumption(self):
        (self.here / "words.txt").write_text("hello\n")
        said = self.ok("doctor", "lspci.txt", "words.txt")
        assumed, unread = said[said.index("\nassumed:\n"):].split("\nnot read:\n  words.txt: is no output", 1)
        self.assertNotIn("not read", assumed)
        self.assertIn("\n  of other tools' output weft knows: ", unread)

    def test_the_threshold_decides(self):
        self.assertEqual(self.doctor("slow.txt", "--threshold", "99").returncode, 0)
        self.assertEqual(self.doctor("slow.txt", "--size", "8", "--threshold", "20").returncode, 0)

    def test_json(self):
        run = self.doctor("slow.txt", "--json", "-", "--size", "1M,64M")
        result = json.loads(run.stdout)
        self.assertEqual((result["schema"], result["healthy"], result["nodes"]), ("weft.doctor/1", False, 2))
        finding, = result["findings"]
        self.assertEqual(finding["mended"], ["nic0.trained_width=16"])
        self.assertEqual([size["bytes"] for size in finding["alone"]], [1 << 20, 64 << 20])
        for size in finding["alone"]:
            self.assertAlmostEqual(size["cost"], 1 - size["mended_us"] / size["found_us"])
        self.assertEqual({check["verdict"] for check in result["checks"]},
                         {"ok", "finding", "unknown", "does not apply"})
        self.assertEqual(run.stdout, self.doctor("slow.txt", "--json", "-", "--size", "1M,64M", "--threads", "1").stdout)

    def test_the_price_is_that_of_two_runs(self):
        """The same numbers as weft run on the imported machine, as found and as mended."""
        finding, = json.loads(self.doctor("slow.txt", "--json", "-", "--size", "64M").stdout)["findings"]
        weft("import", "slow.txt", "-o", "m.yaml", cwd=self.here)
        (self.here / "s.yaml").write_text("scenario: s\ntopology: m.yaml\nnodes: 2\nmemory_paths: [gdr]\n"
                                          "workload: {op: allreduce, sizes: [64 MiB]}\n")
        price, = finding["alone"]
        for key, settings in (("found_us", ()), ("mended_us", ("--set", "nic0.trained_width=16"))):
            row, = json.loads(weft("run", "s.yaml", "--json", "-", *settings, cwd=self.here).stdout)["results"]
            self.assertEqual(row["time_us"], price[key])

    def test_the_odd_host_is_priced(self):
        run = self.doctor("a=lspci.txt", "b=slow.txt", "c=lspci.txt", "--size", "64M")
        said = run.stdout.decode()
        self.assertEqual(run.returncode, 6)
        self.assertRegex(said, r"\APCIe links: b: the PCIe link of nic0 ")
        self.assertIn("hosts: b: b differs from the other hosts in 1 fact\n", said)

    def test_hostile_names_stay_on_their_line(self):
        for value in ("\x1b]0;x\x07Ring", "Ring\tTree", "R" * 5000):
            with self.subTest(value[:16]):
                (self.here / "nccl.txt").write_text("h:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda12.9\n"
                                                    f"h:1:1 [0] NCCL INFO NCCL_ALGO set by environment to {value}\n")
                run = self.doctor("lspci.txt", "nccl.txt", "--size", "1M")
                self.assertIn(run.returncode, (0, 6))
                self.assertNotRegex(run.stdout + run.stderr, rb"[\x00-\x09\x0b-\x1f\x7f]")
                line, = re.findall(r"^.*environment: NCCL_ALGO=.*$", run.stdout.decode(), re.M)
                self.assertTrue(line.endswith(": not the algorithm that NCCL would choose"), line)


if __name__ == "__main__":
    cli_test.main(__doc__)
