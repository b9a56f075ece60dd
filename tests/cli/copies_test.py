#!/usr/bin/env python3
"""`weft copies` as design.md section 5 promises it.

    copies_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import csv
import io
import json
import re
import shutil

import cli_test
from cli_test import TOPOLOGY, CliTest, weft

H200 = "../../topologies/h200-vm.yaml"
NO_PEERS = "no_nvlink.yaml"

BOGUS_USAGE = (
    (["copies"], "topology is required (see weft --help)"),
    (["copies", "nowhere.yaml"], "nowhere.yaml: no such file"),
    (["copies", "bogus_nics_only.yaml"], "bogus_nics_only.yaml: no GPU in the node"),
    (["copies", "bogus_nics_only.yaml", "--to", "nic0"], "bogus_nics_only.yaml: no GPU in the node"),
    (["copies", H200, "--to", "gpu9"],
     "--to 'gpu9': no such device; known: cpu0, emu0, emu1, emu2, emu3, gpu0, gpu1, gpu2, gpu3"),
    (["copies", TOPOLOGY, "--from", "nic0", "--to", "gpu0"], "--from 'nic0': not a GPU or CPU"),
    (["copies", H200, "--from", "gpu0", "--to", "gpu1@1"], "--to 'gpu1@1': copies stay in node 0"),
    (["copies", H200, "--from", "gpu0", "--to", "gpu0"],
     "--from gpu0 --to gpu0: copies inside a device are not modelled"),
    (["copies", TOPOLOGY, "--from", "cpu0", "--to", "cpu1"],
     "--from cpu0 --to cpu1: one of them must be a GPU"),
    (["copies", H200, "--from", "gpu0,gpu1", "--to", "gpu1,gpu2,gpu3"],
     "--from has 2 devices and --to 3: give one, or as many of both"),
    (["copies", H200, "--from", "all", "--to", "all"],
     "--from all --to all: say which GPUs are paired, or leave both out"),
    (["copies", "../../topologies/genoa-2p.yaml", "--from", "gpu0", "--to", "all"],
     "--from gpu0 --to all: there is no other GPU"),
    (["copies", H200, "--to", "gpu0,all"], "--to 'gpu0,all': 'all' stands alone"),
    (["copies", H200, "--to", "gpu0", "--size", "0"], "--size 0 B: allowed are 1 B to 64 GiB"),
    (["copies", H200, "--to", "gpu0", "--size", "1M", "--all"], "--all and --size: give one"),
    (["copies", H200, "--to", "gpu0", "--size", "4G", "--fidelity", "packet"],
     "--size 4 GiB: all copies of one run are more than the 2 GiB that packets carry"),
    (["copies", H200, "--size", "2G", "--fidelity", "packet"],  # the matrices both ways
     "--size 2 GiB: all copies of one run are more than the 2 GiB that packets carry"),
    (["copies", NO_PEERS, "--from", "gpu0", "--to", "gpu2", "--set", "cpu.p2p=none"],
     f"{NO_PEERS}: no PCIe route from gpu0@0 to gpu2@0: the root complex of cpu0 forwards no peer traffic "
     "(cpu.p2p=none)"),
    (["copies", H200, "--by", "hand"], "--by: hand not in {engine,kernel} (see weft --help)"),
    (["copies", H200, "--json", "-", "--csv", "-"], "--json and --csv cannot both go to standard output"),
)


class Copies(CliTest):
    def setUp(self):
        super().setUp()
        shutil.copy(cli_test.SOURCE / "tests/models" / NO_PEERS, self.here)

    def test_bad_input(self):
        for arguments, expected in BOGUS_USAGE:
            with self.subTest(arguments):
                self.refused(arguments, expected)

    def rows(self, *arguments):
        return json.loads(self.ok("copies", H200, "--json", "-", *arguments))["results"]

    def test_matrices_are_printed_as_nvbandwidth_prints_them(self):
        text = self.ok("copies", H200)
        tests = re.findall(r"(?m)^Running (\w+)\.$", text)
        self.assertEqual(tests, [
            "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "host_to_device_bidirectional_memcpy_ce",
            "device_to_host_bidirectional_memcpy_ce", "device_to_device_memcpy_read_ce",
            "device_to_device_memcpy_write_ce"])
        self.assertIn("Running device_to_host_memcpy_ce.\n"
                      "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)\n"
                      "           0         1         2         3\n"
                      " 0     55.39     55.39     55.39     55.39\n"
                      "\nSUM device_to_host_memcpy_ce 221.55\n", text)
        self.assertRegex(text, r"(?m)^ 1    406\.44       N/A    406\.44    406\.44$")

    def test_what_takes_no_part_is_told(self):
        run = weft("copies", TOPOLOGY, "--from", "gpu0", "--to", "gpu1", "--set", "nccl.algo=Ring", "--set",
                   "nic3.rate=100 Gb/s", "--set", "gpu0.copy_rate=3 GB/s", cwd=self.here)
        self.assertEqual((run.returncode, run.stderr.decode()),
                         (0, "note: no effect on copies: nccl.algo, nic3.rate\n"))
        run = weft("perftest", TOPOLOGY, "--size", "64K", "--set", "nccl.algo=Ring", cwd=self.here)
        self.assertEqual((run.returncode, run.stderr.decode()), (0, "note: no effect on perftest: nccl.algo\n"))

    def test_matrices_of_kernels_have_other_names(self):
        text = self.ok("copies", H200, "--by", "kernel", "--size", "16M")
        self.assertIn("Running host_to_device_memcpy_sm.\nmemcpy SM CPU(row) -> GPU(column)", text)
        self.assertNotIn("_read_sm", text)

    def test_kernels_push_where_only_writes_pass(self):
        arguments = ("copies", NO_PEERS, "--size", "1M", "--set", "cpu.p2p=writes-only", "--json", "-")
        for by, passing in (("kernel", 12), ("engine", 2)):
            rows = json.loads(self.ok(*arguments, "--by", by))["results"]
            self.assertEqual(sum(r["test"].startswith("device_to_device_memcpy_write") for r in rows), passing)

    def test_pairs_have_a_row_each_and_a_sum(self):
        text = self.ok("copies", H200, "--to", "all", "--size", "256M")
        rows = [line.split() for line in text.splitlines() if re.match(r"  \d", line)]
        self.assertEqual([row[:4] for row in rows], [["268435456", "cpu0", f"gpu{i}", "h2d"] for i in range(4)])
        self.assertIn("DRAM of a socket (cpu0@0) 100 %", text)
        self.assertRegex(text, r"# sum of 4 copies of 256 MiB at once: 193\.\d\d GB/s\n\Z")

    def test_json_has_a_row_for_each_pair_and_size(self):
        report = json.loads(self.ok("copies", H200, "--from", "cpu0", "--to", "gpu0,gpu1", "--size", "64K,1M",
                                    "--bidirectional", "--json", "-"))
        self.assertEqual(report["schema"], "weft.copies/1")
        rows = report["results"]
        self.assertEqual([(r["from"], r["to"], r["bytes"]) for r in rows],
                         [("cpu0", "gpu0", 65536), ("cpu0", "gpu1", 65536), ("cpu0", "gpu0", 1048576),
                          ("cpu0", "gpu1", 1048576)])
        for row in rows:
            self.assertEqual(row["kind"], "bidirectional")
            self.assertAlmostEqual(row["GBps"], 2 * row["bytes"] / row["time_us"] / 1e3, delta=1e-4 * row["GBps"])
            self.assertAlmostEqual(sum(c["share"] for c in row["limited_by"]), 1)
        self.assertAlmostEqual(report["sums"][1]["GBps"], rows[2]["GBps"] + rows[3]["GBps"])
        provenance = report["provenance"]
        self.assertEqual(provenance["fidelity"], "fluid")
        self.assertEqual([p["value"] for p in provenance["parameters"] if p["key"] == "cpu.dma_buffers"], ["large"])
        self.assertIn("gpu.copy_start", {p["key"] for p in provenance["parameters"]})

    def test_csv_has_the_same_rows(self):
        arguments = ("copies", H200, "--from", "gpu0,gpu2", "--to", "gpu1,gpu3", "--size", "1M")
        rows = list(csv.DictReader(io.StringIO(self.ok(*arguments, "--csv", "-"))))
        self.assertEqual([(r["from"], r["to"], r["kind"], r["by"]) for r in rows],
                         [("gpu0", "gpu1", "d2d", "engine"), ("gpu2", "gpu3", "d2d", "engine")])
        results = self.rows("--from", "gpu0,gpu2", "--to", "gpu1,gpu3", "--size", "1M")
        self.assertEqual([float(r["time_us"]) for r in rows], [r["time_us"] for r in results])
        self.assertEqual([(float(r["forth_GBps"]), r["back_GBps"]) for r in rows], [(r["forth_GBps"], "") for r in results])
        both = ("--from", "gpu0", "--to", "cpu0", "--bidirectional", "--size", "64M")
        row, = csv.DictReader(io.StringIO(self.ok("copies", H200, *both, "--csv", "-")))
        of_json, = self.rows(*both)
        self.assertEqual([float(row[way]) for way in ("forth_GBps", "back_GBps")],
                         [of_json["forth_GBps"], of_json["back_GBps"]])

    def test_files_are_written_beside_the_text(self):
        text = self.ok("copies", H200, "--to", "gpu0", "--json", "out.json", "--csv", "out.csv")
        self.assertIn("# weft copies: h200-vm by copy engines", text)
        row = json.loads((self.here / "out.json").read_text())["results"][0]
        self.assertEqual(row["bytes"], 512 << 20)
        self.assertTrue((self.here / "out.csv").read_text().startswith("test,from,to,kind,by,bytes,"))
        for name in ("out.json", "out.csv"):
            (self.here / name).unlink()

    def test_all_sizes_are_powers_of_two(self):
        self.assertEqual([r["bytes"] for r in self.rows("--to", "gpu0", "--all")], [64 << i for i in range(25)])

    def test_packets_take_a_smaller_copy_unless_told(self):
        row, = self.rows("--to", "gpu0", "--fidelity", "packet")
        self.assertEqual(row["bytes"], 4 << 20)

    def test_blocks_bound_a_kernel(self):
        one, = self.rows("--to", "gpu0", "--by", "kernel", "--blocks", "1", "--size", "64M")
        self.assertAlmostEqual(one["GBps"], 512 * 16 / 1335, delta=0.05)
        self.assertEqual(one["limited_by"][0]["cause"], "SM loads of host memory in flight")

    def test_settings_count_also_for_large_buffers(self):
        def rate(*settings):
            return self.rows("--to", "all", "--size", "256M", *settings)[0]["GBps"]
        self.assertLess(rate("--set", "cpu.dram_channels=4"), 0.55 * rate())
        self.assertGreater(rate("--set", "cpu.dma_buffers=small"), 1.1 * rate())

    def test_buffers_are_as_large_as_the_topology_says(self):
        told = self.here / "told.yaml"
        told.write_text((self.here / H200).read_text().replace("part: emerald-rapids}",
                                                               "part: emerald-rapids, set: {dma_buffers: small}}"))

        def rate(topology):
            out = self.ok("copies", topology, "--to", "all", "--size", "256M", "--json", "-")
            return json.loads(out)["results"][0]["GBps"]
        self.assertGreater(rate("told.yaml"), 1.1 * rate(H200))
        told.unlink()

    def test_what_has_no_effect_is_said(self):
        def notes(*arguments):
            return weft("copies", H200, "--size", "1M", *arguments, cwd=self.here).stderr.decode()
        self.assertIn("note: no effect with --by engine: --blocks\n", notes("--to", "gpu0", "--blocks", "4"))
        self.assertIn("note: no effect without --from and --to: --bidirectional\n", notes("--bidirectional"))
        self.assertNotIn("no effect", notes("--to", "gpu0"))

    def test_matrices_have_ways_of_their_own(self):
        def output(*arguments):
            return weft("copies", H200, "--size", "1M", *arguments, cwd=self.here).stdout
        self.assertEqual(output("--bidirectional"), output())
        self.assertEqual(output("--bidirectional", "--json", "-"), output("--json", "-"))


if __name__ == "__main__":
    cli_test.main(__doc__)
