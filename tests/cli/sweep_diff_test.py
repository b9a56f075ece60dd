#!/usr/bin/env python3
"""`weft sweep` and `weft diff` as design.md section 5 promises them.

    sweep_diff_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import csv
import io
import json
import os
import shutil
import subprocess
import time

import cli_test
from cli_test import BOTH, LIMIT_S, SCOPES, SMALL, SMALL_TEXT, TINY, TOPOLOGY, WIRE_NAMES, CliTest, weft

GRID = ("--set", "nic.count=1,2,8", "--set", "wire.kind=roce,infiniband")
NOT_A_TABLE = "; this is no table that weft sweep wrote; take another file"

BOGUS_USAGE = (
    (["sweep", "nowhere.yaml"], "nowhere.yaml: no such file"),
    (["sweep", SMALL, "--csv", ""], "--csv: write a file's name, or - for standard output"),
    (["sweep", SMALL, "--csv", "nowhere/out"],
     "nowhere/out.part: cannot be written: No such file or directory"),
    (["sweep", SMALL, "--csv", "../cli"], "../cli: is not a regular file; '-' is standard output"),
    (["sweep", SMALL, "--csv", "/dev/full"],
     "/dev/full: is not a regular file; '-' is standard output"),
    (["sweep", SMALL, "--csv", "both.yaml"],
     "both.yaml:1: is not a table of this sweep (its columns are others); take another file"),
    (["sweep", SMALL, "--seed", "x"],
     "--seed 'x': write a whole number from 0 to 9007199254740991"),
    (["sweep", SMALL, "--env", "NCCL_PROTO=Fast"],
     "NCCL_PROTO='Fast': no 'Fast'; known: LL, LL128, Simple, and NCCL does not start"),
    # a key that does not exist, or of which no value can be set: nothing runs
    (["sweep", SMALL, "--set", "wire.mut=1 KiB,2 KiB"], "--set: no parameter 'wire.mut' (did you mean 'wire.mtu'?); " + WIRE_NAMES),
    (["sweep", SMALL, "--set", "wire.mtu=1024", "--set", "frob=1,2"],
     "--set: no parameter 'frob'; " + SCOPES),
    (["sweep", SMALL, "--set", "nic.count=9,10"],
     "--set: nic.count: '9' is not a whole number from 1 to 8, the NICs of a node in " + TOPOLOGY),
    # lists that are none
    (["sweep", SMALL, "--set", "wire.mtu"],
     "--set 'wire.mtu': write KEY=VALUE, such as wire.mtu=\"1024 B\""),
    (["sweep", SMALL, "--set", "nic.count="],
     "--set 'nic.count=': an empty value; write KEY=VALUE,VALUE,..."),
    (["sweep", SMALL, "--set", "nic.count=1,,2"],
     "--set 'nic.count=1,,2': an empty value; write KEY=VALUE,VALUE,..."),
    (["sweep", SMALL, "--set", "nic.count=1, 1"],
     "--set 'nic.count=1, 1': '1' is given twice; write KEY=VALUE,VALUE,..."),
    (["sweep", SMALL, "--set", "nic.count=1", "--set", "nic.count=2"],
     "--set: 'nic.count' is given twice; write nic.count=VALUE,VALUE,..."),
    (["sweep", SMALL, "--set", "a=1\n2"],
     r"--set 'a=1\n2': control characters are not accepted; write KEY=VALUE,VALUE,..."),
    (["sweep", SMALL, "--set", "a=" + ",".join(map(str, range(1000))),
      "--set", "b=" + ",".join(map(str, range(101)))],
     "--set: the grid has more than 100000 points; split it"),
    # diff
    (["diff", "a.json"], "B is required (see weft --help)"),
    (["diff", "nowhere.json", "nowhere.json"], "nowhere.json: no such file"),
    (["diff", SMALL, SMALL], "small.yaml: is a scenario, not a result of weft run or weft nccl; weft run, step, traffic, sweep and check read it"),
    (["diff", "list.json", "list.json"],
     "list.json: is no result of weft run or weft nccl, no output of nccl-tests and no log of NCCL"),
    (["diff", "other.json", "other.json"],
     "other.json: its schema is 'weft.show/1'; known: weft.run/1, weft.step/1, weft.traffic/1"),
    (["diff", "bare.json", "bare.json"], "bare.json: missing key 'results'"),
)


def simple(sizes):
    """Small sizes and weft's simple rules: for what does not hang on the numbers."""
    return SMALL_TEXT.replace("1 MiB, 256 MiB", sizes) + "set: {nccl.decisions: simple}\n"


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def fnv1a(data):
    digest = 0xCBF29CE484222325
    for byte in data:
        digest = (digest ^ byte) * 0x100000001B3 % (1 << 64)
    return digest


def journal_of(records):
    return b"weft journal 1\n" + b"".join(
        b"%d %d\n%s\n" % (len(r), fnv1a(r), r) for r in map(str.encode, records))


class SweepDiffTest(CliTest):
    def setUp(self):
        super().setUp()
        for name, text in (("list.json", "[]"), ("bare.json", '{"schema": "weft.run/1"}'),
                           ("other.json", '{"schema": "weft.show/1"}')):
            (self.here / name).write_text(text)

    def ok(self, *arguments, **options):
        """As of all commands, but for what a sweep of NICs says of two nodes (capacity_test.py)."""
        run = weft(*arguments, cwd=options.pop("cwd", self.here), **options)
        said = [line for line in run.stderr.decode().splitlines() if not line.startswith("note: nic.count is asked of two nodes")]
        self.assertEqual((run.returncode, said), (0, []), arguments)
        return run.stdout.decode()


class Bad(SweepDiffTest):
    def test_usage(self):
        for arguments, expected in BOGUS_USAGE:
            with self.subTest(arguments):
                self.refused(arguments, expected)


class Sweep(SweepDiffTest):
    def test_a_set_of_parameters_holds_at_every_point(self):
        (self.here / "s.yaml").write_text(simple("1 MiB"))
        (self.here / "p.yaml").write_text("wire.mtu: 1 KiB\nnic.count: 8\n")
        by_file = rows_of(self.ok("sweep", "s.yaml", "--params", "p.yaml", "--set", "nic.count=1,2"))
        by_axis = rows_of(self.ok("sweep", "s.yaml", "--set", "wire.mtu=1 KiB", "--set", "nic.count=1,2"))
        plain = rows_of(self.ok("sweep", "s.yaml", "--set", "nic.count=1,2"))
        times = [[row["time_us"] for row in rows] for rows in (by_file, by_axis, plain)]
        self.assertEqual(times[0], times[1])
        self.assertNotEqual(times[0], times[2])
        (self.here / "wrong.yaml").write_text("wire.mut: 1 KiB\n")
        run = weft("sweep", "s.yaml", "--params", "wrong.yaml", "--set", "nic.count=1,2", cwd=self.here)
        self.assertEqual((run.returncode, run.stdout), (2, b""))
        self.assertIn("error: wrong.yaml:1:1: ", run.stderr.decode())

    def setUp(self):
        super().setUp()
        (self.here / SMALL).write_text(simple("8 B, 1 MiB"))

    def sweep(self, *arguments, **options):
        return self.ok("sweep", SMALL, *arguments, **options)

    def test_is_what_single_runs_give(self):
        rows = rows_of(self.sweep(*GRID))
        self.assertEqual(
            [(row["nic.count"], row["wire.kind"], int(row["bytes"]), row["memory_path"]) for row in rows],
            [(n, kind, size, path) for n in ("1", "2", "8") for kind in ("roce", "infiniband")
             for size in (8, 1 << 20) for path in ("gdr", "host-staged")])
        single = rows_of(self.ok("run", SMALL, "--set", "nic.count=2", "--set", "wire.kind=roce",
                                 "--csv", "-"))
        of_point = [row for row in rows if (row["nic.count"], row["wire.kind"]) == ("2", "roce")]
        self.assertEqual([{key: row[key] for key in single[0]} for row in of_point], single)
        self.assertEqual(len({row["point"] for row in rows}), 6)
        self.assertEqual({row["not_run"] for row in rows}, {""})

    def test_options_reach_every_point(self):
        for row in rows_of(self.sweep("--set", "wire.mtu=1024, 4 KiB", "--env", "NCCL_PROTO=LL")):
            self.assertEqual(row["proto"], "LL")
            self.assertIn(row["wire.mtu"], ("1024", "4 KiB"))

    def test_threads_and_files_do_not_change_a_byte(self):
        table = self.sweep(*GRID, "--threads", "1")
        self.assertEqual(self.sweep(*GRID, "--threads", "5"), table)
        self.assertEqual(self.sweep(*GRID, "--csv", "out.csv"), "")
        self.assertEqual((self.here / "out.csv").read_text(), table)
        self.assertEqual([p.name for p in self.here.glob("out.csv?*")], [])

    def test_a_refused_point_is_a_row_that_says_why(self):
        arguments = ["sweep", SMALL, "--set", "nic.count=8,9"]
        run = weft(*arguments, cwd=self.here)
        refusal = b"error: 1 of 2 grid points were refused; the column not_run says why\n"
        self.assertEqual((run.returncode, run.stderr), (2, refusal))
        rows = rows_of(run.stdout.decode())
        self.assertEqual([row["not_run"] for row in rows[:-1]], [""] * 4)
        self.assertEqual(rows[-1]["not_run"], "--set: nic.count: '9' is not a whole number from 1 to "
                         "8, the NICs of a node in " + TOPOLOGY)
        self.assertEqual((rows[-1]["nic.count"], rows[-1]["time_us"]), ("9", ""))
        # To a file too, and again when the file has it already.
        for _ in range(2):
            again = weft(*arguments, "--csv", "out.csv", cwd=self.here)
            self.assertEqual((again.returncode, again.stderr), (2, refusal))
            self.assertEqual((self.here / "out.csv").read_bytes(), run.stdout)

    def test_a_memory_path_that_is_not_run_is_a_row_that_says_why(self):
        one = (self.here / SMALL).read_text().replace("nodes: 2", "nodes: 1")
        (self.here / "one.yaml").write_text(one)
        run = weft("sweep", "one.yaml", "--set", "wire.mtu=1024", cwd=self.here)
        self.assertEqual((run.returncode, run.stderr.decode()),
                         (0, "note: no effect inside one node, where no NIC is used: wire.mtu (at 1 of 1 points)\n"))
        rows = rows_of(run.stdout.decode())
        self.assertEqual([(row["memory_path"], row["bytes"], row["not_run"]) for row in rows],
                         [("gdr", "8", ""), ("gdr", str(1 << 20), ""),
                          ("host-staged", "", "inside one node no NIC is used")])

    def test_points_in_the_file_are_not_run_again(self):
        self.sweep(*GRID, "--csv", "out.csv")
        table = (self.here / "out.csv").read_text()
        marked = table.replace(",allreduce,", ",kept,")
        (self.here / "out.csv").write_text(marked)
        self.sweep(*GRID, "--csv", "out.csv")
        self.assertEqual((self.here / "out.csv").read_text(), marked)
        # A larger grid takes them over.
        self.sweep("--set", "nic.count=1,2,4,8", GRID[2], GRID[3], "--csv", "out.csv")
        for row in rows_of((self.here / "out.csv").read_text()):
            self.assertEqual(row["op"], "allreduce" if row["nic.count"] == "4" else "kept")

    def test_points_of_another_content_are_run_again(self):
        self.sweep(*GRID, "--csv", "out.csv")
        first = (self.here / "out.csv").read_text()
        for file in (self.here / SMALL, self.root / "topologies/hgx-h100-8nic.yaml"):
            (self.here / "out.csv").write_text(first.replace(",allreduce,", ",Old,"))
            file.write_text(file.read_text() + "# changed\n")
            self.sweep(*GRID, "--csv", "out.csv")
            second = (self.here / "out.csv").read_text()
            self.assertNotIn("Old", second)
            self.assertEqual(second, self.sweep(*GRID))
            self.assertTrue({r["point"] for r in rows_of(first)}.isdisjoint(
                {r["point"] for r in rows_of(second)}))
        (self.here / "out.csv").write_text(second.replace(",allreduce,", ",Old,"))
        self.sweep(*GRID, "--csv", "out.csv", "--seed", "2")
        self.assertNotIn("Old", (self.here / "out.csv").read_text())

    def test_points_of_other_gpus_are_run_again(self):
        self.sweep("--set", "nic.count=1", "--gpu", "h100-sxm", "--csv", "out.csv")
        h100 = (self.here / "out.csv").read_text()
        b200 = self.sweep("--set", "nic.count=1", "--gpu", "b200-sxm")
        self.assertNotEqual(b200, h100)
        self.sweep("--set", "nic.count=1", "--gpu", "b200-sxm", "--csv", "out.csv")
        self.assertEqual((self.here / "out.csv").read_text(), b200)

    def test_a_point_that_lost_a_row_is_run_again(self):
        grid = ("--set", "nic.count=1,9")
        weft("sweep", SMALL, *grid, "--csv", "out.csv", cwd=self.here)
        whole = (self.here / "out.csv").read_text()
        lines = whole.splitlines(keepends=True)
        for lost in range(1, len(lines)):
            for rest in (lines[:lost] + lines[lost + 1:], lines[:lost] + lines[lost - 1:]):
                if rest[0] == rest[1]:
                    continue
                (self.here / "out.csv").write_text("".join(rest))
                weft("sweep", SMALL, *grid, "--csv", "out.csv", cwd=self.here)
                self.assertEqual((self.here / "out.csv").read_text(), whole)

    def test_nodes_are_one_column(self):
        table = self.sweep("--set", "nodes=1,2", "--csv", "-")
        self.assertEqual(table.splitlines()[0].split(",").count("nodes"), 1)
        self.assertEqual([(row["nodes"], row["memory_path"]) for row in rows_of(table)],
                         [("1", "gdr")] * 2 + [("1", "host-staged")] +
                         [("2", "gdr"), ("2", "host-staged")] * 2)
        self.sweep("--set", "nodes=1,2", "--csv", "out.csv")
        self.sweep("--set", "nodes=1,2", "--csv", "out.csv")
        self.assertEqual((self.here / "out.csv").read_text(), table)

    def test_the_digest_of_the_program_is_that_of_all_that_predicts(self):
        if shutil.which("cmake") is None:
            self.skipTest("no cmake program")

        def digest():
            subprocess.run(["cmake", "-DOUTPUT=" + str(self.here / "digest.cpp"), "-DROOT=" + str(self.here), "-P",
                            cli_test.SOURCE / "tools/source_digest.cmake"], check=True, timeout=LIMIT_S)
            return (self.here / "digest.cpp").read_text()
        for folder in ("sim/base", "models/params", "replay/chakra", "tools"):
            (self.here / folder).mkdir(parents=True)
        seen = {digest()}
        for name in ("sim/base/random.cpp", "sim/base/random.hpp", "models/params/milan.yaml", "models/a.cpp",
                     "replay/chakra/graph.cpp"):
            for text in ("a", "b"):
                (self.here / name).write_text(text)
                self.assertNotIn(digest(), seen)
                seen.add(digest())
        (self.here / "tools/talk.cpp").write_text("a")
        self.assertIn(digest(), seen)

    def test_results_of_other_values_are_not_lost(self):
        self.sweep(*GRID, "--csv", "out.csv")
        table = (self.here / "out.csv").read_text()
        for arguments, expected in (
                (("--set", "nic.count=1,2", *GRID[2:]),
                 "out.csv:18: nic.count=8 is not in this grid, and its results would be lost; add "
                 "the value or take another file"),
                (GRID[:2], "out.csv:1: is not a table of this sweep (its columns are others); take "
                 "another file")):
            self.refused(["sweep", SMALL, *arguments, "--csv", "out.csv"], expected)
            self.assertEqual((self.here / "out.csv").read_text(), table)

    def test_a_damaged_table_is_refused(self):
        self.sweep("--set", "nic.count=1", "--csv", "out.csv")
        table = (self.here / "out.csv").read_text()
        for damaged, expected in ((table + "1,2\n", "out.csv:6: 2 cells, not 18" + NOT_A_TABLE),
                                  (table + '"\n', "out.csv:6:1: a quote is not closed"),
                                  (table + "\0\n", "out.csv:6: 1 cells, not 18" + NOT_A_TABLE)):
            (self.here / "out.csv").write_text(damaged)
            self.refused(["sweep", SMALL, "--set", "nic.count=1", "--csv", "out.csv"], expected)
        # One file at a time for a sweep, and no one else's file.
        (self.here / "new.csv.part").write_text("notes")
        self.refused(["sweep", SMALL, "--set", "nic.count=1", "--csv", "new.csv"],
                     "new.csv.part: is not a journal of weft; move it elsewhere")

    def test_an_interrupted_sweep_goes_on_where_it_was(self):
        whole = self.sweep(*GRID)
        blocks = {}
        for line in whole.splitlines(keepends=True)[1:]:
            blocks[line[-17:]] = blocks.get(line[-17:], "") + line
        # As if ended with three points done, out of order, and a fourth half-written.
        done = [list(blocks.values())[i].replace(",allreduce,", ",kept,") for i in (4, 0, 3)]
        half = journal_of([list(blocks.values())[1]])[len("weft journal 1\n"):-40]
        (self.here / "out.csv.part").write_bytes(journal_of(done) + half)
        self.sweep(*GRID, "--csv", "out.csv")
        table = (self.here / "out.csv").read_text()
        self.assertEqual(table.replace(",kept,", ",allreduce,"), whole)
        self.assertEqual(table.count(",kept,"), 12)
        self.assertFalse((self.here / "out.csv.part").exists())

    def test_killed_at_any_moment(self):
        arguments = ("--set", "nic.count=1,2,4,8", "--set", "wire.mtu=1024,2048,4096")
        whole = self.sweep(*arguments)
        part = self.here / "out.csv.part"
        kept = 0
        for wait_for in (1, 1000, 2500, 4000):  # bytes in the journal
            process = subprocess.Popen([cli_test.WEFT, "sweep", SMALL, *arguments, "--csv", "out.csv"],
                                       cwd=self.here)
            while process.poll() is None and (cli_test.size_of(part) or 0) < wait_for:
                time.sleep(0.001)
            process.kill()
            process.wait()
            size = cli_test.size_of(part)
            size = 1 << 30 if size is None else size  # finished: no journal
            self.assertGreaterEqual(size, kept)
            kept = size
        self.sweep(*arguments, "--csv", "out.csv")
        self.assertEqual((self.here / "out.csv").read_text(), whole)
        self.assertFalse(part.exists())

    def test_two_sweeps_do_not_write_one_file(self):
        if shutil.which("flock") is None:
            self.skipTest("no flock program")
        holder = subprocess.Popen(["flock", "out.csv.part", "cat"], cwd=self.here,
                                  stdin=subprocess.PIPE)
        self.addCleanup(lambda: (holder.communicate(), holder.wait()))
        while not (self.here / "out.csv.part").exists():
            time.sleep(0.001)
        time.sleep(0.05)
        self.refused(["sweep", SMALL, "--set", "nic.count=1", "--csv", "out.csv"],
                     "out.csv.part: another process is writing it")


class Diff(SweepDiffTest):
    def run_to(self, name, *arguments):
        self.ok("run", SMALL, "--json", name, *arguments)

    def test_says_by_how_much_and_which_cause_grew(self):
        ring = ("--env", "NCCL_ALGO=Ring", "--env", "NCCL_PROTO=Simple")
        self.run_to("a.json", *ring)
        self.run_to("b.json", *ring, "--set", "wire.rate=200 Gb/s")
        diff = json.loads(self.ok("diff", "a.json", "b.json", "--json", "-"))
        self.assertEqual(diff["schema"], "weft.diff/1")
        self.assertEqual({(i["what"], i["a"], i["b"]) for i in diff["inputs"]},
                         {("set", "", "wire.rate=200 Gb/s"), ("wire.rate", "50 GB/s", "25 GB/s")})
        a, b = (json.loads((self.here / name).read_text())["results"] for name in ("a.json", "b.json"))
        self.assertEqual(len(diff["results"]), 4)
        for row, row_a, row_b in zip(diff["results"], a, b):
            self.assertEqual([row[k] for k in ("op", "bytes", "memory_path")],
                             [row_a[k] for k in ("op", "bytes", "memory_path")])
            self.assertAlmostEqual(row["time_ratio"], row_b["time_us"] / row_a["time_us"])
            self.assertAlmostEqual(row["busbw_ratio"], row_b["busbw_GBps"] / row_a["busbw_GBps"])
            # The causes' growth is the row's.
            self.assertAlmostEqual(sum(c["grew_us"] for c in row["causes"]),
                                   row_b["time_us"] - row_a["time_us"], delta=1e-6 * row_b["time_us"])
            grew = [c["grew_us"] for c in row["causes"]]
            self.assertEqual(grew, sorted(grew, reverse=True))
        largest = diff["results"][2]
        self.assertIn(largest["causes"][0]["cause"], ("wire, NIC to switch", "wire, switch to NIC"))
        self.assertGreater(largest["time_ratio"], 1.75)
        text = self.ok("diff", "a.json", "b.json")
        self.assertIn("# wire.rate: 50 GB/s -> 25 GB/s\n", text)
        self.assertRegex(text, r"(?m)^allreduce +268435456 gdr .* \+\d+\.\d\d us wire, (NIC to switch|switch to NIC) "
                         r"\(\d+ % -> \d+ % of the time\)$")
        # The other way round what shrank is named.
        self.assertRegex(self.ok("diff", "b.json", "a.json"),
                         r"(?m)^allreduce +268435456 gdr .* -\d+\.\d\d us wire, (NIC to switch|switch to NIC) ")
        self.assertEqual(self.ok("diff", "a.json", "b.json", "--json", "c.json"), text)

    def test_steps_and_traffic_are_held_against_each_other_by_time(self):
        (self.here / "t.yaml").write_text(
            "scenario: t\ntopology: ../../topologies/hgx-h100-8nic.yaml\nnodes: 2\n"
            "workload: {op: permutation, bytes: 8 MiB, shift: 8}\n")
        for name, rate in (("a", "400"), ("b", "200")):
            self.ok("traffic", "t.yaml", "--set", f"wire.rate={rate} Gb/s", "--json", f"{name}.json")
        a, b = (json.loads((self.here / f"{name}.json").read_text())["results"][0]["time_us"] for name in "ab")
        row, = json.loads(self.ok("diff", "a.json", "b.json", "--json", "-"))["results"]
        self.assertEqual((row["op"], row["memory_path"], "busbw_ratio" in row), ("permutation", "gdr", False))
        self.assertAlmostEqual(row["time_ratio"], b / a)
        self.assertRegex(self.ok("diff", "a.json", "b.json"), r"(?m)^permutation +- gdr .* +- +- +-  \+\d+\.\d\d us wire, ")

    def test_a_result_does_not_differ_from_itself(self):
        self.ok("run", BOTH, "--json", "a.json")
        diff = json.loads(self.ok("diff", "a.json", "a.json", "--json", "-"))
        self.assertEqual((diff["inputs"], diff["only_in_a"], diff["only_in_b"]), ([], [], []))
        self.assertEqual({row["time_ratio"] for row in diff["results"]}, {1.0})
        self.assertEqual(self.ok("diff", "a.json", "a.json").count("no change"), 4)

    def test_rows_of_one_side_only_are_named(self):
        def run_to(name, sizes):
            (self.here / SMALL).write_text(simple(sizes))
            self.run_to(name)
        run_to("a.json", "8 B, 1 MiB")
        run_to("b.json", "8 B, 2 MiB")
        text = self.ok("diff", "a.json", "b.json")
        self.assertIn("# only in A: allreduce of 1048576 B over gdr\n", text)
        self.assertIn("# only in B: allreduce of 2097152 B over host-staged\n", text)
        run_to("a.json", "2 MiB")
        run_to("b.json", "4 MiB")
        self.refused(["diff", "a.json", "b.json"], "a.json and b.json: no operation of the same size in both")

    def test_gpudirect_is_held_against_host_staged(self):
        for name, path in ("a", "gdr"), ("b", "host-staged"):
            (self.here / SMALL).write_text(simple("8 B, 1 MiB") + f"memory_paths: [{path}]\n")
            self.run_to(name + ".json")
        diff = json.loads(self.ok("diff", "a.json", "b.json", "--json", "-"))
        self.assertEqual([(r["bytes"], r["memory_path"], r["memory_path_b"]) for r in diff["results"]],
                         [(8, "gdr", "host-staged"), (1 << 20, "gdr", "host-staged")])
        self.assertEqual((diff["only_in_a"], diff["only_in_b"]), ([], []))
        self.assertIn({"what": "memory path", "a": "gdr", "b": "host-staged"}, diff["inputs"])
        text = self.ok("diff", "a.json", "b.json")
        self.assertIn("# memory path: gdr -> host-staged\n", text)
        self.assertRegex(text, r"(?m)^allreduce +1048576 gdr->host-staged +\d")
        # Where B has both, each is held against its own.
        (self.here / SMALL).write_text(simple("8 B, 1 MiB"))
        self.run_to("b.json")
        diff = json.loads(self.ok("diff", "a.json", "b.json", "--json", "-"))
        self.assertEqual([r["memory_path_b"] for r in diff["results"]], ["gdr"] * 2)
        self.assertEqual([r["memory_path"] for r in diff["only_in_b"]], ["host-staged"] * 2)

    def test_decisions_of_two_releases(self):
        for name, version in ("a", "2.27.7"), ("b", "2.30.7"):
            log = self.ok("nccl", TOPOLOGY, "--nodes", "2", "--nccl-version", version, "--json", name + ".json")
            (self.here / f"{name}.log").write_text(log)
        a, b = (json.loads((self.here / name).read_text()) for name in ("a.json", "b.json"))
        diff = json.loads(self.ok("diff", "a.json", "b.json", "--json", "-"))
        self.assertEqual((diff["inputs"], diff["results"]), ([{"what": "NCCL", "a": "2.27.7", "b": "2.30.7"}], []))

        def choices(of):
            return {(c["op"].lower(), c["bytes"]): (c["algo"], c["proto"], c["channels"])
                    for c in of["choice"]}
        changes = diff["decisions"]["changes"]
        told = {(d["of"], d["bytes"]) for d in changes if d["kind"] == "choice"}
        before, after = choices(a), choices(b)
        self.assertEqual(told, {k for k in before.keys() & after.keys() if before[k] != after[k]})
        self.assertTrue(told)
        self.assertRegex(self.ok("diff", "a.json", "b.json"),
                         r"(?s)^NCCL: 2\.27\.7 -> 2\.30\.7\n.*\nchoice allreduce, 1 MiB: NVLSTree Simple, 16 channels -> Tree LL128, 16 channels\n")
        # What weft prints in NCCL's words tells the same of choices, and of all that it tells.
        logs = json.loads(self.ok("diff", "a.log", "b.log", "--json", "-"))
        self.assertEqual([d for d in logs["decisions"]["changes"] if d["kind"] == "choice"],
                         [d for d in changes if d["kind"] == "choice"])
        both = self.ok("diff", "a.json", "a.log")
        self.assertRegex(both, r"^decided alike: channels \(4\), choice \(\d+\), ring \(16\), tree \(16\)\n")
        self.assertNotIn("->", both)

    def test_gpudirect_turned_off_is_told_by_pairs(self):
        self.ok("nccl", TOPOLOGY, "--nodes", "2", "--json", "a.json")
        self.ok("nccl", TOPOLOGY, "--nodes", "2", "--env", "NCCL_NET_GDR_LEVEL=LOC", "--json", "b.json")
        self.assertRegex(self.ok("diff", "a.json", "b.json"),
                         r"(?m)^GPUDirect RDMA gpu0-net0 and \d+ more of \d+: on for reads, on for writes -> off$")

    def test_a_forced_algorithm_is_told_by_ranges_of_sizes(self):
        self.run_to("a.json", "--env", "NCCL_ALGO=Ring", "--env", "NCCL_PROTO=Simple")
        self.run_to("b.json", "--env", "NCCL_ALGO=Tree", "--env", "NCCL_PROTO=Simple")
        text = self.ok("diff", "a.json", "b.json")
        self.assertRegex(text, r"(?m)^# choice allreduce over gdr, 1 MiB to 256 MiB: Ring Simple, \d+ channels -> "
                         r"Tree Simple, \d+ channels$")

    def log(self, name, times, lines, ranks=2):
        head = "".join(f"#  Rank  {i} Group  0 Pid {i} on  h{i} device  0 [0000:18:00] NVIDIA H100\n"
                       for i in range(ranks))
        rows = "".join(f"  {size}  {size // 4}  float  sum  -1  {us}  1.0  1.0  0  {us}  1.0  1.0  0\n"
                       for size, us in times)
        (self.here / name).write_text(
            "# nccl-tests version 2.19.6 nccl-headers=23007 nccl-library=23007\n"
            "# Collective test starting: all_reduce_perf\n# Using devices\n" + head +
            "".join(f"a:10:10 [0] NCCL INFO {line}\n" for line in lines) +
            "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong\n" + rows)

    # As NCCL 2.27 and 2.28 print them: rings are padded, and cut when long.
    BEFORE = ("NCCL version 2.27.7+cuda12.4",
              "Channel 00/02 :  0  7  6  5  4  3  2  1  8  9 10 11 ...", "Channel 01/02 :    0   1   2",
              "Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1",
              "16 coll channels, 16 collnet channels, 0 nvls channels, 24 p2p channels, 2 p2p channels per peer",
              "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA",
              "GPU Direct RDMA Enabled for GPU/0-18000 / HCA 0 (distance 4 <= 5), read 1 mode Default",
              "AllReduce: 1024 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..1}",
              "AllReduce: 1048576 Bytes -> Algo TREE proto LL128 channel{Lo..Hi}={0..1}")
    AFTER = ("NCCL version 2.28.9+cuda13.0", "NCCL_NET_GDR_LEVEL set by environment to LOC",
             "Channel 00/02 :  0  7  6  5  4  3  2  1  8  9 ...", "Channel 01/02 :    0   2   1",
             "Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1",
             "16 coll channels, 16 collnet channels, 0 nvls channels, 24 p2p channels, 2 p2p channels per peer",
             "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0",
             "GPU Direct RDMA Disabled for GPU/0-18000 / HCA 0 (distance 4 > 0)",
             "AllReduce: 1024 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..1}",
             "AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..0}")

    def test_two_logs_of_a_machine(self):
        self.log("a.log", ((1024, 20.0), (1 << 20, 100.0)), self.BEFORE)
        self.log("b.log", ((1024, 21.0), (1 << 20, 250.0)), self.AFTER)
        text = self.ok("diff", "a.log", "b.log")
        self.assertEqual([line for line in text.splitlines() if line.startswith("#")][:-2], [
            "# NCCL: 2.27.7 -> 2.28.9",
            "# GPUDirect RDMA GPU/0-18000 / HCA 0: on for reads -> off",
            "# choice allreduce, 1 MiB: Tree LL128, 2 channels -> Ring Simple, 1 channel",
            "# connection 0[0] -> 1[0] [send]: NET/IB/0/GDRDMA -> NET/IB/0",
            "# environment NCCL_NET_GDR_LEVEL: (none) -> LOC",
            "# ring 01: 0 1 2 -> 0 2 1",
            "# decided alike: channels (5), tree (2)"])
        self.assertRegex(text, r"(?m)^allreduce +1048576 +100\.00 +250\.00 +2\.500 ")

    def test_wrong_values_are_said(self):
        self.log("a.log", ((1024, 20.0),), ())
        text = (self.here / "a.log").read_text()
        (self.here / "b.log").write_text(text.replace("1.0  1.0  0  20.0", "1.0  1.0  7  20.0"))
        run = weft("diff", "a.log", "b.log", cwd=self.here)
        self.assertEqual((run.returncode, run.stderr.decode()), (0,
                         "note: b.log:7: 7 wrong values (#wrong), 1 of 1 rows have some: results are corrupt, and "
                         "their times not to be trusted\n"))

    def test_a_log_against_what_is_predicted(self):
        self.log("b.log", ((1024, 21.0), (1 << 20, 250.0)), self.AFTER)
        self.run_to("run.json")
        text = self.ok("diff", "run.json", "b.log")
        self.assertNotIn("wire.rate", text)
        self.assertIn("# ranks: 16 -> 2\n", text)
        self.assertRegex(text, r"(?m)^# choice allreduce( over gdr)?, 1 MiB: .* -> Ring Simple, 1 channel$")

    def test_a_log_says_nothing_of_causes(self):
        self.log("b.log", ((1 << 20, 250.0),), ())
        self.run_to("run.json")
        for sides in (("run.json", "b.log"), ("b.log", "run.json")):
            run = weft("diff", *sides, cwd=self.here)
            self.assertRegex(run.stdout.decode(), r"(?m)^allreduce +1048576 .*[0-9] *$")

    def test_decisions_are_held_against_the_path_they_were_made_for(self):
        (self.here / "both.yaml").write_text(SMALL_TEXT.replace("[gdr]", "[gdr, host-staged]"))
        self.ok("run", "both.yaml", "--json", "run.json")
        self.ok("nccl", TOPOLOGY, "--nodes", "2", "--json", "a.json")
        self.ok("nccl", TOPOLOGY, "--nodes", "2", "--env", "NCCL_NET_GDR_LEVEL=LOC", "--json", "b.json")
        for name in ("a.json", "b.json"):
            text = self.ok("diff", "run.json", name)
            self.assertRegex(text, r"(?m)^decided alike: choice")
            self.assertNotRegex(text, "(?m)^choice|only in")

    def test_a_run_that_hung_has_decisions(self):
        self.log("a.log", (), self.BEFORE)
        self.log("b.log", (), self.AFTER)
        self.assertTrue(self.ok("diff", "a.log", "b.log").startswith("NCCL: 2.27.7 -> 2.28.9\nGPUDirect RDMA GPU/0"))

    def test_tables_of_tuning_are_told_by_columns(self):
        old = ("Latency/AlgBw |    Tree/    LL |    Ring/    LL |    Ring/Simple", " Max NThreads |  512 |  512 |  256",
               "     AllGather |     0.0/   0.0 |    33.3/   0.8 |   105.6/   3.2")
        new = ("  Algorithm   |     Tree     |   Ring", "  Protocol    |  LL |  LL128 |   Simple |  LL |  LL128 |  Simple",
               "    AllGather | 0.0/ 0.0 | 0.0/ 0.0 | 0.0/ 0.0 | 33.3/ 0.9 | 0.0/ 0.0 | 105.6/ 3.2")
        for name, table in (("a.log", old), ("b.log", new)):
            (self.here / name).write_text("".join(f"a:1:1 [0] NCCL INFO {line}\n" for line in table))
        text = self.ok("diff", "a.log", "b.log")
        self.assertIn("tuning AllGather Ring/LL: 33.3/0.8 -> 33.3/0.9\n", text)
        self.assertIn("told by one side only, or by other names: tuning (6)\n", text)
        (self.here / "b.log").write_text("\ta:1:2 [0] NCCL INFO CUDA Dev 0[0], IB NIC distance :  PIX\n")
        (self.here / "a.log").write_text("\ta:1:2 [0] NCCL INFO CUDA Dev 0[0], IB NIC distance :  SYS\n")
        self.assertIn("NIC distance CUDA Dev 0[0]: SYS -> PIX\n", self.ok("diff", "a.log", "b.log"))
        (self.here / "b.log").write_text('<graphs version="1">\n</graphs>\n')
        run = weft("diff", "a.log", "b.log", cwd=self.here)
        self.assertIn(b"b.log: is an NCCL graph file (<graphs>)", run.stderr)

    def test_what_logs_leave_out_is_stated_or_found(self):
        self.log("a.log", ((1024, 20.0),), ())
        text = (self.here / "a.log").read_text().replace("# Collective test starting: all_reduce_perf\n", "")
        (self.here / "b.log").write_text("".join("[1,0]<stdout>:" + line for line in text.splitlines(True)))
        run = weft("diff", "a.log", "b.log", cwd=self.here)
        self.assertEqual(run.returncode, 2)
        self.assertIn(b"error: b.log:6: op: is not stated; --as op=VALUE says it: one of: allreduce, ", run.stderr)
        self.assertRegex(self.ok("diff", "a.log", "b.log", "--as", "op=allreduce"), r"(?m)^allreduce +1024 .* 1\.000 ")
        self.refused(["diff", "a.log", "b.log", "--as", "op=reduce"], "a.log:7: op: allreduce in the file, reduce by --as")
        (self.here / "b.log").write_text("$ ./all_reduce_perf\n" + text + " 2048  512")
        run = weft("diff", "a.log", "b.log", cwd=self.here)
        self.assertEqual(run.returncode, 0)
        self.assertEqual(run.stderr.decode().splitlines(), [
            "note: b.log:8: the last row is cut off behind 2 of 13 columns: left out",
            "note: b.log:6: op allreduce, by './all_reduce_perf' above; --as op=OP says another"])
        self.ok("run", TINY, "--json", "run.json")
        self.refused(["diff", "run.json", "run.json", "--as", "op=allreduce"],
                     "--as is of what nccl-tests printed; neither run.json nor run.json has its rows")

    def test_logs_that_do_not_tell_are_refused(self):
        self.log("a.log", ((1024, 20.0),), self.BEFORE)
        self.log("b.log", ((1024, 21.0), (1024, 22.0)), ())
        self.refused(["diff", "a.log", "b.log"], "b.log:8: allreduce of 1024 B is given twice, "
                     "first at b.log:7; a side is one run")
        self.log("b.log", ((1024, 21.0),), ("x" * 70000,))
        self.refused(["diff", "a.log", "b.log"], "b.log:6: more than 65536 bytes in a line")
        (self.here / "b.log").write_text("a:1:1 [0] NCCL INFO Bootstrap: using eth0\na:1:1 [0] NCCL WARN no route\n")
        self.refused(["diff", "a.log", "b.log"], "b.log: says nothing of what NCCL decided")
        (self.here / "b.log").write_text("nothing\n")
        self.refused(["diff", "a.log", "b.log"], "b.log: is no result of weft run or weft nccl, no output of nccl-tests "
                     "and no log of NCCL")
        (self.here / "b.log").write_text("transport,op,bytes,us,ranks\nnvlink,allreduce,8,1,2\n")
        self.refused(["diff", "a.log", "b.log"], "b.log: is measured rows, not a result of weft run or weft nccl; "
                     "weft compare, calibrate, explain and expect --measured read it")

    def test_damaged_results_are_refused(self):
        self.ok("run", TINY, "--json", "a.json")
        whole = json.loads((self.here / "a.json").read_text())

        def refuses(expected, change):
            damaged = json.loads(json.dumps(whole))
            change(damaged)
            (self.here / "b.json").write_text(json.dumps(damaged))
            self.refused(["diff", "a.json", "b.json"], "b.json: " + expected)
        row = "results[1]: "
        refuses(row + "time_us: expected a number", lambda d: d["results"][1].update(time_us="1"))
        refuses(row + "time_us: must be positive", lambda d: d["results"][1].update(time_us=0))
        refuses(row + "busbw_GBps: expected a number",
                lambda d: d["results"][1].update(busbw_GBps=None))
        refuses(row + "ranks: out of range", lambda d: d["results"][1].update(ranks=-1))
        refuses(row + "bytes: expected a whole number", lambda d: d["results"][1].update(bytes=1.5))
        refuses(row + "missing key 'op'", lambda d: d["results"][1].pop("op"))
        refuses(row + "limited_by[0]: cause: control characters are not accepted",
                lambda d: d["results"][1]["limited_by"][0].update(cause="\x1b[31mred"))
        refuses("results: allreduce of 1024 B over gdr is given twice",
                lambda d: d["results"].append(d["results"][0]))
        refuses("results: expected a list", lambda d: d.update(results={}))
        refuses("missing key 'provenance'", lambda d: d.pop("provenance"))

    def test_hostile_files_are_refused(self):
        for content in (b"", b"{" * 100000, b"[" * 100000, b'{"schema":"weft.run/1","results":[' +
                        b"{}," * 100000 + b"{}]}", b"\xff\xfe", b'{"schema": "weft.run/1", "results": 1e999}'):
            (self.here / "any").write_bytes(content)
            run = weft("diff", "any", "any", cwd=self.here)
            self.assertEqual((run.returncode, run.stdout), (2, b""), content[:50])
            self.assertRegex(run.stderr, rb"\Aerror: any[ -~]+\n\Z")
        with (self.here / "big").open("wb") as big:
            big.truncate(1 << 30)
        self.refused(["diff", "big", "big"], "big: larger than 64 MiB, the most that is read")


class Help(SweepDiffTest):
    def test_has_an_example_that_works(self):
        text = simple("8 B, 1 MiB").replace("../../", "../")
        (self.root / "scenarios/quickstart.yaml").write_text(text)
        for name in ("healthy.json", "faulty.json"):
            self.ok("run", "scenarios/quickstart.yaml", "--json", name, cwd=self.root)
        for command in ("sweep", "diff"):
            example = next(line for line in self.ok(command, "--help").splitlines()
                           if line.startswith("Example: weft "))
            shell = subprocess.run(example.replace("Example: weft", '"$WEFT"'), shell=True,
                                   cwd=self.root, timeout=LIMIT_S,
                                   env={**os.environ, "WEFT": cli_test.WEFT}, capture_output=True)
            self.assertEqual(shell.returncode, 0, example)
            self.assertRegex(shell.stderr, rb"\A(note: nic.count is asked of two nodes[^\n]*\n)?\Z")
        self.assertEqual(len(rows_of((self.root / "sweep.csv").read_text())), 8 * 4)


if __name__ == "__main__":
    cli_test.main(__doc__)
