#!/usr/bin/env python3
"""`weft explain`: why a run is slow.

    explain_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import json
import os
import subprocess
import unittest

import cli_test
from cli_test import CliTest, weft

MACHINE = """topology: small
nodes: 2
node:
  devices:
    cpu0: {kind: cpu, part: sapphire-rapids}
    sw0: {kind: switch, part: pex89144, upstream: cpu0}
    gpu0: {kind: gpu, part: h100-sxm, upstream: sw0}
    nic0: {kind: nic, part: connectx-7, upstream: sw0, network: fabric}
network:
  fabric: {kind: one-switch, part: quantum-2}
"""
HEAD = """# nThread 1 nGpus 1 minBytes 1048576 maxBytes 268435456 step: 4(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   4001 on      node1 device  0 [0000:18:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   5001 on      node2 device  0 [0000:18:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
SIZES = (1 << 20, 16 << 20, 256 << 20)
BOGUS_USAGE = (
    (["explain"], "runs is required (see weft --help)"),
    (["explain", "nowhere.txt"], "nowhere.txt: no such file"),
    (["explain", "healthy.txt", "--as", "op=allreduce"],
     "which machine is it? write --machine FILE (a topology), or --evidence FILE (what its tools print)"),
    (["explain", "healthy.txt", "healthy.txt", "healthy.txt", "--as", "op=allreduce", "--machine", "m.yaml"],
     "explain takes a slow run and a healthy one, not more: 'healthy.txt'"),
    (["explain", "eight.csv", "--machine", "m.yaml"], "a node has 1 GPUs"),
    (["explain", "perftest.csv", "--machine", "m.yaml"],
     "perftest.csv:2: 'write_bw' is no collective: explain takes nccl-tests' runs"),
)


class Explain(CliTest):
    def setUp(self):
        super().setUp()
        (self.here / "m.yaml").write_text(MACHINE)
        (self.here / "s.yaml").write_text("scenario: s\ntopology: m.yaml\nnodes: 2\nmemory_paths: [gdr]\n"
                                          "workload: {op: allreduce, sizes: [1 MiB, 16 MiB, 256 MiB]}\n")
        (self.here / "eight.csv").write_text("transport,memory_path,hosts,ranks,op,bytes,us\n"
                                             "net,gdr,2,16,allreduce,1024,10\n")
        (self.here / "perftest.csv").write_text("transport,memory_path,hosts,ranks,op,bytes,us\n"
                                                "net,gdr,2,2,write_bw,1024,10\n")
        self.log("healthy.txt")

    def log(self, name, *settings):
        """What nccl-tests would print of the machine with some settings, as weft predicts it."""
        run = json.loads(weft("run", "s.yaml", "--json", "-", *settings, cwd=self.here).stdout)
        rows = "".join(f"{row['bytes']:>12} {row['bytes'] // 4:>12} float sum -1 {row['time_us']:.2f} "
                       f"{row['algbw_GBps']:.2f} {row['busbw_GBps']:.2f} 0 {row['time_us']:.2f} "
                       f"{row['algbw_GBps']:.2f} {row['busbw_GBps']:.2f} 0\n" for row in run["results"])
        (self.here / name).write_text(HEAD + rows)

    def explain(self, *arguments):
        return weft("explain", *arguments, "--as", "op=allreduce", "--machine", "m.yaml", cwd=self.here)

    def test_usage(self):
        for arguments, expected in BOGUS_USAGE:
            with self.subTest(arguments):
                run = weft(*arguments, cwd=self.here)
                self.assertEqual((run.returncode, run.stdout), (2, b""))
                self.assertTrue(run.stderr.decode().startswith(f"error: {expected}"), run.stderr.decode())

    def test_a_healthy_run_is_not_slower(self):
        for runs in (("healthy.txt", "healthy.txt"), ("healthy.txt",)):
            with self.subTest(runs):
                run = self.explain(*runs)
                self.assertEqual((run.returncode, run.stderr), (0, b""))
                self.assertTrue(run.stdout.decode().splitlines()[-1].startswith("not slower than it should be: "))

    def test_where_nothing_validates_the_reference_it_is_said(self):
        note = ("note: allreduce: not validated: no published run of one GPU a node; a measured time of 0.57 to 4.19 "
                "times the predicted one may be healthy")
        self.assertIn(note, self.explain("healthy.txt").stdout.decode())
        self.assertNotIn("not validated", self.explain("healthy.txt", "healthy.txt").stdout.decode())

    def test_a_fault_is_named_with_what_it_explains_and_how_to_verify_it(self):
        self.log("slow.txt", "--set", "nic.trained_width=4")
        run = self.explain("slow.txt", "healthy.txt")
        said = run.stdout.decode()
        self.assertEqual((run.returncode, run.stderr.decode()), (6, "unhealthy: the run is slower than it should be\n"))
        self.assertIn("PCIe links of NICs trained low: nic0 (x4 or Gen3)", said)
        self.assertRegex(said, r"explains 100 % of the gap \(\d+ % to \d+ %\): at 256 MiB \d+ % of bandwidth lost, measured \d+ %")
        self.assertIn("verify: ", said)
        self.assertIn("not looked at:\n", said)
        self.assertTrue(said.splitlines()[-1].startswith("explained by one cause: "), said)

    def test_each_size_is_of_its_series_where_there_are_several(self):
        rows = "".join(f"net,{path},2,2,allreduce,1048576,{us}\n" for path, us in (("gdr", 50), ("host-staged", 90)))
        (self.here / "two.csv").write_text("transport,memory_path,hosts,ranks,op,bytes,us\n" + rows)
        said = weft("explain", "two.csv", "two.csv", "--machine", "m.yaml", cwd=self.here).stdout.decode()
        for series in ("allreduce", "allreduce host-staged"):
            self.assertRegex(said, rf"x  \+-\d+ %  {series}\n")

    def test_what_no_cause_does_is_said_so(self):
        healthy = (self.here / "healthy.txt").read_text()
        rows = healthy[len(HEAD):].splitlines()
        slow = []
        for i, row in enumerate(rows):
            words = row.split()
            words[5] = str(float(words[5]) * (1, 40, 1)[i])
            slow.append(" ".join(words))
        (self.here / "odd.txt").write_text(HEAD + "\n".join(slow) + "\n")
        run = self.explain("odd.txt", "healthy.txt")
        self.assertEqual(run.returncode, 6)
        self.assertIn("The nearest, which do not suffice:\n", run.stdout.decode())
        self.assertRegex(run.stdout.decode().splitlines()[-1],
                         r"^none of these explains it: \d+ causes in \d+ variants, nor \d+ pairs of them$")

    def test_json_is_the_same_on_any_number_of_threads(self):
        self.log("slow.txt", "--set", "gpu.peer_mapping=none")
        run = self.explain("slow.txt", "healthy.txt", "--json", "-")
        result = json.loads(run.stdout)
        self.assertEqual((result["schema"], result["verdict"], result["nodes"], result["ranks"]),
                         ("weft.explain/1", "explained", 2, 2))
        first = result["answers"][0]
        ids = [cause["id"] for same in [first, *first["or"]] for cause in same["causes"]]
        self.assertIn("gdr-missing", ids)
        self.assertTrue(first["alike"])
        self.assertLess(first["low"], first["explains"])
        self.assertGreater(first["high"], first["explains"])
        self.assertEqual([point["bytes"] for point in result["points"]], list(SIZES))
        self.assertEqual(run.stdout, self.explain("slow.txt", "healthy.txt", "--json", "-", "--threads", "1").stdout)

    def test_evidence_rules_out_with_file_and_line(self):
        (self.here / "lspci.txt").write_text(
            (cli_test.SOURCE / "tests/data/evidence/lspci-vvv-dell-h100.txt").read_text())
        self.log("slow.txt", "--set", "nic.trained_width=4")
        run = self.explain("slow.txt", "healthy.txt", "--evidence", "lspci.txt")
        said = run.stdout.decode()
        self.assertRegex(said, r"ruled out by evidence:\n(  .*\n)*  ACS sends peer traffic by the root complex: .*\(lspci.txt:\d+\)\n")

    def test_evidence_of_several_hosts_is_refused(self):
        text = (cli_test.SOURCE / "tests/data/evidence/lspci-vvv-dell-h100.txt").read_text()
        (self.here / "lspci.txt").write_text(text)
        (self.here / "slow-lspci.txt").write_text(text.replace("Width x16", "Width x4"))
        for hosts in (("a=lspci.txt", "b=slow-lspci.txt"), ("a=lspci.txt", "b=slow-lspci.txt", "c=lspci.txt")):
            with self.subTest(hosts):
                evidence = [word for host in hosts for word in ("--evidence", host)]
                run = self.explain("healthy.txt", *evidence)
                self.assertEqual((run.returncode, run.stdout), (2, b""))
                said = run.stderr.decode()
                self.assertIn(f"error: the evidence is of {len(hosts)} hosts (a, b", said)
                self.assertIn("weft doctor", said)
        self.assertEqual(self.explain("healthy.txt", "--evidence", "a=lspci.txt").returncode, 0)

    def test_notes_of_the_prediction_are_shown(self):
        arguments = ("--set", "nccl.channels=2")
        note = "set by the user in place of NCCL's own choice: nccl.channels=2"
        self.assertIn(f"note: {note}\n", self.explain("healthy.txt", *arguments).stdout.decode())
        result = json.loads(self.explain("healthy.txt", *arguments, "--json", "-").stdout)
        self.assertIn(note, result["notes"])

    def test_wrong_values_are_said(self):
        text = (self.here / "healthy.txt").read_text()
        (self.here / "wrong.txt").write_text(text.rstrip("\n")[:-1] + "9\n")
        line = text.count("\n")
        self.assertIn(f"note: wrong.txt:{line}: 9 wrong values (#wrong), 1 of ",
                      self.explain("wrong.txt").stdout.decode())

    def test_gpus_of_another_machine_are_said(self):
        text = (self.here / "healthy.txt").read_text()
        (self.here / "a100.txt").write_text(text.replace("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"))
        said = "a100.txt is of NVIDIA A100-SXM4-80GB"
        self.assertIn(f"note: {said}, the machine has h100-sxm\n", self.explain("a100.txt").stdout.decode())
        self.assertNotIn("the machine has", self.explain("healthy.txt").stdout.decode())
        for name, is_said in (("AMD Radeon Graphics", True), ("NVIDIA H200 NVL", True), ("NVIDIA H800", False)):
            (self.here / "other.txt").write_text(text.replace("NVIDIA H100 80GB HBM3", name))
            note = f"note: other.txt is of {name}, the machine has h100-sxm\n"
            self.assertEqual(note in self.explain("other.txt").stdout.decode(), is_said, name)
        run = self.explain("healthy.txt", "a100.txt")
        self.assertEqual((run.returncode, run.stdout), (2, b""))
        self.assertEqual(run.stderr.decode(), f"error: healthy.txt is of NVIDIA H100 80GB HBM3, {said}: "
                                              "the healthy run must be one of the same machine\n")

    def test_evidence_in_place_of_a_run_is_named(self):
        (self.here / "topo.txt").write_text("\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC0\tPIX\t X \n")
        run = self.explain("topo.txt")
        self.assertEqual((run.returncode, run.stderr.decode()),
                         (2, "error: topo.txt: is another tool's output without rows of nccl-tests, perftest or "
                             "nvbandwidth; weft import and doctor read it\n"))

    def test_a_run_that_failed_is_at_fault(self):
        failed = "node1: Test NCCL failure common.cu:954 'unhandled system error'\n"
        (self.here / "failed.txt").write_text((self.here / "healthy.txt").read_text() + failed)
        run = self.explain("failed.txt", "healthy.txt")
        self.assertEqual((run.returncode, run.stderr.decode()), (6, "unhealthy: the run failed by its own word\n"))

    def test_a_rate_of_tcp_is_said_to_be_one(self):
        self.log("tcp.txt", "--set", "nic.rate=1 GB/s")
        run = self.explain("tcp.txt", "healthy.txt")
        self.assertIn("at 256 MiB is what TCP sockets give, which are not modelled", run.stdout.decode())
        self.assertIn("over RoCE, loss without flow control leaves as little: that PFC is on", run.stdout.decode())
        self.log("slow.txt", "--set", "nic.rate=20 GB/s")
        run = self.explain("slow.txt", "healthy.txt")
        self.assertEqual(run.returncode, 6)
        self.assertNotIn("TCP sockets give", run.stdout.decode())

    def test_several_files_may_follow_one_evidence(self):
        (self.here / "lspci.txt").write_text((cli_test.SOURCE / "tests/data/evidence/lspci-vvv-dell-h100.txt").read_text())
        (self.here / "log.txt").write_text("h1:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda12.9\n")
        self.log("slow.txt", "--set", "nic.trained_width=4")
        once = self.explain("slow.txt", "healthy.txt", "--evidence", "lspci.txt", "--evidence", "log.txt")
        self.assertEqual(once.returncode, 6, once.stderr.decode())
        note = b"note: log.txt is taken as evidence\n"
        self.assertNotIn(note, once.stdout)
        for arguments in (("slow.txt", "healthy.txt", "--evidence", "lspci.txt", "log.txt"),
                          ("slow.txt", "--evidence", "lspci.txt", "log.txt", "healthy.txt")):
            got = self.explain(*arguments).stdout
            self.assertIn(note, got)
            self.assertEqual(got.replace(note, b""), once.stdout, arguments)
        alone = self.explain("slow.txt", "--evidence", "lspci.txt", "h1=log.txt")
        self.assertIn(b"note: h1=log.txt is taken as evidence\n", alone.stdout)

    def test_no_run_takes_anothers_place(self):
        (self.here / "lspci.txt").write_text((cli_test.SOURCE / "tests/data/evidence/lspci-vvv-dell-h100.txt").read_text())
        (self.here / "crashed.txt").write_text("h1:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda12.9\n")
        self.log("slow.txt", "--set", "nic.trained_width=4")
        for arguments in (("crashed.txt", "healthy.txt", "--evidence", "lspci.txt"),
                          ("--evidence", "lspci.txt", "crashed.txt", "healthy.txt"),
                          ("crashed.txt", "--evidence", "lspci.txt", "healthy.txt")):
            run = self.explain(*arguments)
            self.assertEqual((run.returncode, run.stdout), (2, b""), arguments)
            self.assertIn("error: crashed.txt", run.stderr.decode())
        self.assertIn("not more: 'healthy.txt'; write the slow run before --evidence",
                      self.explain("--evidence", "lspci.txt", "crashed.txt", "slow.txt", "healthy.txt").stderr.decode())

    def test_pipes_are_read_once(self):
        self.log("slow.txt", "--set", "nic.trained_width=4")
        pipes = []
        for number, name in enumerate(("slow.txt", "healthy.txt")):
            read, write = os.pipe()
            os.write(write, (self.here / name).read_bytes())  # less than a pipe holds
            os.close(write)
            pipes.append(read)
        try:
            run = subprocess.run([cli_test.WEFT, "explain", *(f"/dev/fd/{pipe}" for pipe in pipes), "--as", "op=allreduce",
                                  "--machine", "m.yaml", "--evidence", str(cli_test.SOURCE / "tests/data/evidence/lspci-vvv-dell-h100.txt")],
                                 cwd=self.here, capture_output=True, pass_fds=pipes, timeout=100)
            self.assertEqual(run.returncode, 6, run.stderr.decode())
        finally:
            for pipe in pipes:
                os.close(pipe)

    def test_a_parameter_that_is_none_is_refused(self):
        self.assertEqual(self.explain("healthy.txt", "--set", "bogus.x=1").returncode, 2)
        wide = self.explain("healthy.txt", "--set", "explain.error_large=0.5").stdout.decode()
        self.assertIn("+-50 %", wide)

    def test_the_healthy_machine_can_be_set(self):
        self.log("slow.txt", "--set", "nic.trained_width=4")
        run = self.explain("slow.txt", "--set", "nic.trained_width=4")
        self.assertEqual(run.returncode, 0, "a machine that has such links is not slower than it should be")


if __name__ == "__main__":
    cli_test.main(__doc__)
