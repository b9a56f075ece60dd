#!/usr/bin/env python3
"""Time is told, and whoever is stopped keeps what is done: `--time-limit`, Ctrl-C, SIGTERM, progress.

    stop_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import csv
import io
import json
import os
import pty
import re
import signal
import subprocess
import time

import cli_test
from cli_test import LIMIT_S, SMALL, TINY, CliTest, weft

# The first size takes a moment, the last minutes: a ring of 248 GPUs, 8 GiB, over an odd number of nodes and several
# switches, of which none stands for others.
LONG = "long.yaml"
LONG_TEXT = """scenario: long
topology: ../../topologies/hgx-h100-8nic.yaml
nodes: 31
workload: {op: allreduce, algo: Ring, sizes: [8 B, 16 B, 8 GiB, 16 GiB]}
memory_paths: [gdr]
set: {nccl.decisions: simple, nccl.proto: Simple, network.kind: leaf-spine, network.ports: 64}
"""
# Nine nodes that are set apart: samples have eight at most.
APART = ", ".join(f"nic0@{node}.trained_width: 16" for node in range(9))
HUGE_TEXT = (LONG_TEXT.replace("nodes: 31", "nodes: 4095").replace("8 B, 16 B, 8 GiB, 16 GiB", "8 B")
             .replace("network.kind: leaf-spine, network.ports: 64", APART))


class StopTest(CliTest):
    def setUp(self):
        super().setUp()
        (self.here / LONG).write_text(LONG_TEXT)

    def start(self, *arguments, **options):
        process = subprocess.Popen([cli_test.WEFT, *arguments], cwd=self.here, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **options)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process


class Run(StopTest):
    def stopped(self, run, by):
        self.assertEqual(run.returncode, 130)
        before, last = run.stderr.decode().split("\n", 1)
        self.assertRegex(before, "^up to about [0-9]+ s of one core: less where much of it is alike$")
        self.assertEqual(last, f"stopped: {by}: 2 of 4 rows are missing; to go on, run a scenario of their sizes: "
                               "8 GiB, 16 GiB\n")
        self.assertIn("# incomplete: 2 of 4 rows are missing, as the run was stopped\n", run.stdout.decode())

    def test_a_time_limit_keeps_the_rows_that_are_done(self):
        begin = time.monotonic()
        run = weft("run", LONG, "--threads", "1", "--time-limit", "6s", "--json", "out.json", "--csv", "out.csv",
                   cwd=self.here)
        self.assertLess(time.monotonic() - begin, 30)
        self.stopped(run, "after --time-limit 6s")
        result = json.loads((self.here / "out.json").read_text())
        self.assertEqual([row["bytes"] for row in result["results"]], [8, 16])
        self.assertEqual(result["incomplete"],
                         [{"op": "allreduce", "bytes": size << 30, "memory_path": "gdr"} for size in (8, 16)])
        rows = list(csv.DictReader(io.StringIO((self.here / "out.csv").read_text())))
        self.assertEqual([(row["bytes"], row["time_us"] != "") for row in rows],
                         [("8", True), ("16", True), (str(8 << 30), False), (str(16 << 30), False)])
        # What is there is what a whole run says.
        (self.here / LONG).write_text(LONG_TEXT.replace(", 8 GiB, 16 GiB", ""))
        self.assertEqual(self.result(LONG)["results"], result["results"])

    def test_a_signal_keeps_the_rows_that_are_done(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                process = self.start("run", LONG, "--threads", "1")
                time.sleep(6)
                process.send_signal(number)
                out, err = process.communicate(timeout=LIMIT_S)
                self.stopped(subprocess.CompletedProcess([], process.returncode, out, err), "by a signal")

    def test_nothing_done_is_nothing_written(self):
        (self.here / LONG).write_text(LONG_TEXT.replace("8 B, 16 B, ", ""))
        run = weft("run", LONG, "--threads", "1", "--time-limit", "2s", "--json", "out.json", cwd=self.here)
        self.assertEqual((run.returncode, run.stdout), (130, b""))
        self.assertRegex(run.stderr, rb"\Aup to about [ -~]+\nstopped: after --time-limit 2s before any row was finished; nothing is "
                                     rb"written\. [ -~]+\n\Z")
        self.assertFalse((self.here / "out.json").exists())

    def test_limits_that_are_none(self):
        for limit, why in (("30", "--time-limit: '30' has no unit; write a time with its unit, such as 110 ns or 1.2 us"),
                           ("0s", "--time-limit '0s': write a time above 0, such as 30s"),
                           ("-1s", "--time-limit '-1s': write a time above 0, such as 30s")):
            self.refused(["run", SMALL, "--time-limit=" + limit], why)

    def test_a_refusal_names_a_question_that_would_be_answered(self):
        (self.here / LONG).write_text(HUGE_TEXT)
        run = weft("run", LONG, cwd=self.here)
        self.assertEqual(run.returncode, 2)
        match = re.search(rb"--set nodes=(\d+) \(\d+ s of one core\) would be answered\n\Z", run.stderr)
        self.assertIsNotNone(match, run.stderr)
        nodes = int(match[1])
        for number, is_named in ((nodes, True), (2 * nodes + 1, False)):
            tried = weft("run", LONG, "--set", f"nodes={number}", "--time-limit", "100ms", cwd=self.here)
            # Refused, or more than five minutes.
            too_long = re.search(rb"would be answered|([6-9]|10) minutes of one core", tried.stderr)
            self.assertEqual(too_long is None, is_named, tried.stderr)


class Estimate(StopTest):
    def test_where_every_rank_is_simulated_it_is_said_beforehand(self):
        network = "set: {wire.kind: roce, network.kind: leaf-spine, network.ports: 64}\n"
        head = "scenario: s\ntopology: ../../topologies/hgx-h100-8nic.yaml\nnodes: 64\nmemory_paths: [gdr]\n"
        (self.here / "drawn.yaml").write_text(
            head.replace("64", "32") + "workload: {op: allreduce, algo: Ring, sizes: [256 MiB]}\n" + network)
        (self.here / "jobs.yaml").write_text(
            head + "jobs:\n  - {job: a, nodes: 0-31, op: allreduce, size: 256 MiB}\n"
            "  - {job: b, nodes: 32-63, op: alltoall, size: 256 MiB}\n" + network)
        for scenario, said in (("drawn.yaml", "wire.routing=spread"), ("jobs.yaml", "for each memory path")):
            run = weft("run", scenario, "--time-limit", "1s", cwd=self.here)
            self.assertEqual(run.returncode, 130)
            first = run.stderr.decode().splitlines()[0]
            self.assertRegex(first, r"about \d+ (s|minutes) of one core")
            self.assertIn("every rank is simulated", first)
            self.assertIn(said, first)


class Progress(StopTest):
    def on_terminal(self, *arguments, seconds):
        """What a terminal shows on standard error."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([cli_test.WEFT, *arguments, "--time-limit", f"{seconds}s"], cwd=self.here,
                                   stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        shown = b""
        while True:
            try:
                some = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not some:
                break
            shown += some
        os.close(ours)
        process.wait(timeout=LIMIT_S)
        return shown.decode()

    def test_a_terminal_sees_how_far_it_is_and_how_long_it_takes(self):
        shown = self.on_terminal("run", LONG, "--threads", "1", seconds=6)
        self.assertRegex(shown, r"\d of 4 rows, \d+ s, about \d+(\.\d)? (s|min|h) left\x1b\[K")
        # The line is gone before what follows.
        self.assertRegex(shown, r"\r\x1b\[Kstopped: [^\r\n]+\r?\n\Z")

    def test_a_sweep_too(self):
        (self.here / LONG).write_text(LONG_TEXT.replace("8 B, 16 B, 8 GiB, 16 GiB", "8 B"))
        shown = self.on_terminal("sweep", LONG, "--set", "wire.mtu=256,512,1024,2048,4096", "--set",
                                 "wire.cable_length=1 m,2 m,3 m,4 m,5 m,6 m,7 m,8 m,9 m", "--threads", "1", seconds=4)
        self.assertRegex(shown, r"\d+ of 45 points, \d+ s, about \d+(\.\d)? (s|min|h) left\x1b\[K")

    def test_a_comparison_too(self):
        (self.here / "m.csv").write_text(Compare.HEAD + Compare.ROW.format(8, 50) + Compare.ROW.format(8 << 30, 60000))
        shown = self.on_terminal("compare", "m.csv", *Compare.MACHINE, seconds=6)
        self.assertRegex(shown, r"1 of 2 rows, \d+ s")
        self.assertRegex(shown, r"\r\x1b\[Kstopped: [^\r\n]+\r?\n\Z")

    def test_a_pipe_sees_nothing(self):
        self.assertEqual(weft("run", TINY, cwd=self.here).stderr, b"")


class Sweep(StopTest):
    GRID = ("--set", "nodes=2,31", "--threads", "1")

    def setUp(self):
        super().setUp()
        (self.here / LONG).write_text(LONG_TEXT.replace("8 B, 16 B, 8 GiB, 16 GiB", "8 GiB"))

    def test_goes_on_where_it_was_stopped(self):
        run = weft("sweep", LONG, *self.GRID, "--csv", "out.csv", "--time-limit", "10s", cwd=self.here)
        self.assertEqual((run.returncode, run.stderr.decode()),
                         (130, "stopped: after --time-limit 10s: 1 of 2 grid points are not run yet (column not_run); "
                               "the same command goes on from there\n"))
        rows = list(csv.DictReader(io.StringIO((self.here / "out.csv").read_text())))
        self.assertEqual([(row["nodes"], row["time_us"] != "", row["not_run"]) for row in rows],
                         [("2", True, ""), ("31", False, "stopped before it was run")])
        self.assertFalse((self.here / "out.csv.part").exists())
        # The point that is done is not run again: it holds what somebody wrote over it.
        (self.here / "out.csv").write_text((self.here / "out.csv").read_text().replace(",allreduce,", ",kept,"))
        again = weft("sweep", LONG, *self.GRID, "--csv", "out.csv", "--time-limit", "3s", cwd=self.here)
        self.assertEqual(again.returncode, 130)
        self.assertIn(",kept,", (self.here / "out.csv").read_text())

    def test_a_signal_ends_it_too(self):
        process = self.start("sweep", LONG, *self.GRID)
        time.sleep(10)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 130)
        self.assertRegex(err, rb"\Astopped: by a signal: 1 of 2 grid points are not run yet .*--csv FILE")
        self.assertIn(b"stopped before it was run", out)


class Compare(StopTest):
    ROW = "net,gdr,248,31,allreduce,Ring,Simple,{},{}\n"
    MACHINE = ("--machine", "../../topologies/hgx-h100-8nic.yaml", "--set", "network.kind=leaf-spine", "--set",
               "network.ports=64", "--set", "nccl.decisions=simple", "--threads", "1")
    HEAD = "transport,memory_path,ranks,hosts,op,algo,proto,bytes,us\n"

    def setUp(self):
        super().setUp()
        (self.here / "m.csv").write_text(self.HEAD + self.ROW.format(8, 50) + self.ROW.format(8 << 30, 60000)
                                         + self.ROW.format(16 << 30, 120000))

    def stopped(self, run, by):
        self.assertEqual((run.returncode, run.stderr.decode()),
                         (130, f"stopped: {by}: 2 of 3 rows are not predicted yet; to go on, compare a table of these "
                               "alone (lines 3-4)\n"))
        self.assertIn("# not predicted: 2 (lines 3-4): stopped before it was run\n", run.stdout.decode())
        self.assertIn("# total: 1 rows, ", run.stdout.decode())

    def test_a_time_limit_keeps_the_rows_that_are_done(self):
        run = weft("compare", "m.csv", *self.MACHINE, "--time-limit", "6s", "--json", "out.json", "--expect",
                   "not_predicted<=0", cwd=self.here)
        self.stopped(run, "after --time-limit 6s")
        answer = json.loads((self.here / "out.json").read_text())
        self.assertEqual(answer["incomplete"], 2)
        self.assertEqual([row.get("reason") for row in answer["rows"]], [None] + 2 * ["stopped before it was run"])
        (self.here / "m.csv").write_text(self.HEAD + self.ROW.format(8, 50))
        whole = json.loads(self.ok("compare", "m.csv", *self.MACHINE, "--json", "-"))
        self.assertEqual(whole["rows"], answer["rows"][:1])
        self.assertNotIn("incomplete", whole)

    def test_a_signal_keeps_the_rows_that_are_done(self):
        process = self.start("compare", "m.csv", *self.MACHINE)
        time.sleep(6)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
        self.stopped(subprocess.CompletedProcess([], process.returncode, out, err), "by a signal")

    def test_nothing_done_is_nothing_written(self):
        run = weft("compare", "m.csv", *self.MACHINE, "--time-limit", "1ms", "--json", "out.json", cwd=self.here)
        self.assertEqual((run.returncode, run.stdout), (130, b""))
        self.assertEqual(run.stderr.decode(), "stopped: after --time-limit 1ms before any row was predicted; nothing is "
                                              "written. Compare a table of fewer rows, or of smaller sizes\n")
        self.assertFalse((self.here / "out.json").exists())


class Step(StopTest):
    def test_a_smaller_question_is_named(self):
        for command, scenario, smaller in (
                ("step", "steps/llama-70b.yaml", "a step of fewer layers, micro-batches or nodes (parallel: data)"),
                ("traffic", "traffic/experts.yaml", "fewer nodes, as with --set nodes=N, or --estimate")):
            run = weft(command, f"../../scenarios/{scenario}", "--time-limit", "1ms", cwd=self.here)
            self.assertEqual((run.returncode, run.stdout), (130, b""))
            self.assertRegex(run.stderr.decode(), "before any memory path was finished; nothing is written. Ask for "
                                                  + re.escape(smaller) + "\n\\Z")


if __name__ == "__main__":
    cli_test.main(__doc__)
