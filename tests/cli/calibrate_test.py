#!/usr/bin/env python3
"""`weft calibrate` as design.md section 5 promises it.

    calibrate_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import csv
import io
import json
import os
import random
import re
import signal
import subprocess

import cli_test
from cli_test import CliTest, damaged, weft

MACHINE = ("--machine", "../../topologies/h200-vm.yaml")
FIT = ("--fit", "nccl.launch_simple,nccl.launch_ll")
TRUTH = ("--set", "nccl.launch_simple=6.5 us", "--set", "nccl.launch_ll=5.5 us")
HEAD = "transport,ranks,algo,proto,channels,op,bytes,us,launch\n"
KEYS = ("schema weft weft_commit date machine machine_fnv1a data holdout holdout_classes set env nccl_version configurations "
        "loss_before loss_after predictions parameters correlations fitted held_out intervals rows notes").split()

BOGUS_USAGE = (
    (["calibrate"], "measured is required (see weft --help)"),
    (["calibrate", "made.csv"], "--machine FILE is required: a topology"),
    (["calibrate", "nowhere.csv", *MACHINE], "nowhere.csv: no such file"),
    (["calibrate", "made.csv", "--machine", "nowhere.yaml"], "nowhere.yaml: no such file"),
    (["calibrate", "made.csv", "made.csv", *MACHINE], "made.csv: is the same table as made.csv"),
    (["calibrate", "made.csv", *MACHINE, "--fit", "nccl.lunch_ll"],
     "--fit: no parameter 'nccl.lunch_ll' (did you mean 'nccl.launch_ll'?); known: "),
    (["calibrate", "made.csv", *MACHINE, "--fit", "nccl.algo"],
     "--fit: 'nccl.algo' is a word or a count; times, rates, sizes, lengths and fractions can be fitted"),
    (["calibrate", "made.csv", *MACHINE, "--fit", "nccl.launch_ll,nccl.launch_ll"],
     "--fit: 'nccl.launch_ll' is given twice"),
    (["calibrate", "made.csv", *MACHINE, "--fit", "nccl.launch_ll,"], "--fit: no parameter ''; known scopes: "),
    (["calibrate", "made.csv", *MACHINE, *FIT, "--holdout", "0"],
     "--holdout 0: write a share above 0 and below 1, or a table's file"),
    (["calibrate", "made.csv", *MACHINE, *FIT, "--holdout", "1.5"],
     "--holdout 1.5: write a share above 0 and below 1, or a table's file"),
    (["calibrate", "made.csv", *MACHINE, *FIT, "--holdout", "half"], "half: no such file"),
    (["calibrate", "made.csv", *MACHINE, *FIT, "--holdout", "made.csv"],
     "made.csv: is a table to fit, and cannot be held out too"),
    (["calibrate", "one.csv", *MACHINE, *FIT],
     "a single configuration leaves nothing to hold out; --holdout FILE names a table for it"),
    (["calibrate", "none.csv", *MACHINE, *FIT], "no row to fit has a prediction: "),
    (["calibrate", "made.csv", *MACHINE, *FIT, "--date", "22.11.2026"],
     "--date '22.11.2026': write a day as 2026-11-22"),
    (["calibrate", "made.csv", *MACHINE, *FIT, "--date", "2026-02-30"],
     "--date '2026-02-30': write a day as 2026-11-22"),
    (["calibrate", "made.csv", *MACHINE, *FIT, "--json", "-", "-o", "-"],
     "--output and --json cannot both go to standard output"),
    (["calibrate", "made.csv", *MACHINE, *FIT, "--by", "weight"], "--by: 'weight': unknown column; "),
    (["calibrate", "made.csv", *MACHINE, *FIT, "--set", "nccl.launch_ll=1"], "--set: nccl.launch_ll: '1' has no unit"),
    (["calibrate", "made.csv", *MACHINE, *FIT, "-o", "nowhere/p.yaml"], "nowhere/p.yaml: "),
)


def rows(channels=(1, 2, 3, 4), us="1"):
    return "".join(f"nvlink,2,Ring,{proto},{n},{op},{size},{us},graph\n" for op in ("allreduce", "allgather")
                   for proto in ("Simple", "LL") for n in channels for size in (1024, 65536, 1048576))


class Calibrate(CliTest):
    def setUp(self):
        super().setUp()
        (self.here / "skeleton.csv").write_text(HEAD + rows())
        predicted = json.loads(self.ok("compare", "skeleton.csv", *MACHINE, *TRUTH, "--json", "-"))["rows"]
        dice = random.Random(1)
        lines = [line.replace(",1,graph", f",{row['predicted_us'] * dice.uniform(0.97, 1.03):.4f},graph")
                 for line, row in zip(rows().splitlines(), predicted)]
        (self.here / "made.csv").write_text(HEAD + "\n".join(lines) + "\n")
        (self.here / "one.csv").write_text(HEAD + "nvlink,2,Ring,LL,1,allreduce,1024,8,graph\n")
        (self.here / "none.csv").write_text(HEAD + rows().replace("nvlink,2", "nvlink,64"))

    def calibrated(self, *arguments):
        return json.loads(self.ok("calibrate", "made.csv", *MACHINE, *FIT, *arguments, "--json", "-"))

    def test_bad_input(self):
        for arguments, expected in BOGUS_USAGE:
            with self.subTest(arguments):
                run = weft(*arguments, cwd=self.here)
                self.assertEqual((run.returncode, b"" if "-o" in arguments else run.stdout), (2, b""))
                said = run.stderr.decode()
                self.assertTrue(said.startswith("error: " + expected), said)
                self.assertEqual(said.count("\n"), 1)

    def test_the_file_is_what_compare_reads(self):
        text = self.ok("calibrate", "made.csv", *MACHINE, *FIT, "-o", "p.yaml", "--date", "2026-11-22", "--by", "transport",
                       "--holdout", "0.6")
        self.assertIn("nccl.launch_simple  8700 ns", text)
        written = (self.here / "p.yaml").read_text()
        value = float(re.search(r"nccl\.launch_simple: \{value: (\S+) ns, uncertainty: \S+ ns, origin: measured, "
                                r"source: 'weft calibrate, 2026-11-22: made.csv'\}", written)[1])
        self.assertAlmostEqual(value, 6500, delta=200)
        answer = json.loads(self.ok("compare", "made.csv", *MACHINE, "--params", "p.yaml", "--json", "-"))
        self.assertLess(answer["summary"]["median_abs"], 0.03)
        for row in answer["rows"]:
            self.assertLess(row["low_us"], row["high_us"])
        launch = [p for p in answer["provenance"]["parameters"] if p["key"] == "nccl.launch_simple"]
        self.assertEqual([(p["origin"], p["source"]) for p in launch],
                         [("measured", "weft calibrate, 2026-11-22: made.csv")])
        self.assertRegex(self.ok("compare", "made.csv", *MACHINE, "--params", "p.yaml"),
                         r"# intervals of --params, for eight rows of ten: 48 rows have one, \d+ of them lie within\n")

    def test_intervals_hold_with_all_else_as_it_was(self):
        self.ok("calibrate", "made.csv", *MACHINE, *FIT, "-o", "p.yaml", "--by", "transport", "--holdout", "0.6")
        kept = ["compare", "made.csv", *MACHINE, "--params", "p.yaml"]
        self.assertIn("# intervals of --params", self.ok(*kept, "--set", "nccl.channels=1"))
        for setting in ("nccl.launch_simple=5 us", "gpu.nvlink_rate=2 GB/s"):
            text = self.ok(*kept, "--set", setting)
            self.assertNotIn("# intervals of --params", text)
            self.assertIn(f"the intervals of --params are left out: {setting} was not set when it was fitted", text)
        path = MACHINE[1]
        text = (self.here / path).resolve().read_text()
        (self.here / "other.yaml").write_text("# of today\n" + text)
        self.assertIn("# intervals of --params", self.ok("compare", "made.csv", "--machine", "other.yaml", "--params", "p.yaml"))
        (self.here / "other.yaml").write_text(text + "defaults: {gpu.nvlink_rate: 26 GB/s}\n")
        self.assertIn("the intervals of --params are left out: other.yaml is not the machine that it was fitted on",
                      self.ok("compare", "made.csv", "--machine", "other.yaml", "--params", "p.yaml"))
        (self.here / "s.yaml").write_text(f"scenario: s\ntopology: {path}\nnodes: 1\nmemory_paths: [gdr]\n"
                                          "workload: {op: allreduce, sizes: [1 KiB]}\n"
                                          "set: {nccl.algo: Ring, nccl.proto: Simple}\n")
        rows = list(csv.DictReader(io.StringIO(self.ok("run", "s.yaml", "--params", "p.yaml", "--csv", "-"))))
        self.assertLess(float(rows[0]["low_us"]), float(rows[0]["high_us"]))
        run = weft("run", "s.yaml", "--params", "p.yaml", "--launch", "single", "--csv", "-", cwd=self.here)
        self.assertNotIn(b"low_us", run.stdout)
        self.assertEqual(run.stderr.decode(), "note: the intervals of --params are left out: nccl.launch=single was not set "
                                              "when it was fitted\n")
        run = weft("run", "s.yaml", "--params", "p.yaml", "--env", "NCCL_P2P_DISABLE=1", "--csv", "-", cwd=self.here)
        self.assertEqual(run.stderr.decode(), "note: --params: 1 of 1 rows have no interval: no row of their class was "
                                              "measured for it\n")
        text = (self.here / "s.yaml").read_text().replace("set: {", "set: {nccl.launch_simple: 9 us, ")
        (self.here / "s.yaml").write_text(text)
        self.assertIn("low_us", self.ok("run", "s.yaml", "--params", "p.yaml", "--csv", "-"))
        of_release = ("--params", "p.yaml", "--nccl-version", "2.21.5")
        self.ok("calibrate", "made.csv", *MACHINE, *FIT, "-o", "p.yaml", "--by", "transport", "--holdout", "0.6",
                "--nccl-version", "2.21.5")
        self.assertIn("  nccl_version: '2.21.5'\n", (self.here / "p.yaml").read_text())
        self.assertIn("low_us", self.ok("run", "s.yaml", *of_release, "--csv", "-"))
        self.assertIn("left out: NCCL 2.28.9 decides, 2.21.5 when it was fitted",
                      self.ok("compare", "made.csv", *MACHINE, "--params", "p.yaml"))
        self.ok("calibrate", "made.csv", *MACHINE, *FIT, "-o", "q.yaml", "--by", "transport", "--holdout", "0.6",
                "--set", "gpu.nvlink_rate=25 GB/s")
        text = self.ok("compare", "made.csv", *MACHINE, "--params", "q.yaml")
        self.assertIn("left out: gpu.nvlink_rate=25 GB/s was set when it was fitted, and is not", text)
        self.assertIn("# intervals", self.ok("compare", "made.csv", *MACHINE, "--params", "q.yaml", "--set",
                                             "gpu.nvlink_rate=25GB/s"))

    def test_the_release_is_that_of_the_rows(self):
        lines = (self.here / "made.csv").read_text().splitlines()
        of_rows = ["--by", "transport", "--holdout", "0.6", "-o", "p.yaml"]
        for releases, says in ((("2.21.5",), True), (("2.21.5", "2.27.3"), False)):
            table = [lines[0] + ",nccl"] + [f"{line},{releases[i // 3 % len(releases)]}" for i, line in enumerate(lines[1:])]
            (self.here / "nccl.csv").write_text("\n".join(table) + "\n")
            text = self.ok("calibrate", "nccl.csv", *MACHINE, *FIT, *of_rows)
            written = (self.here / "p.yaml").read_text()
            self.assertEqual(("  nccl_version: '2.21.5'\n" in written, "intervals:" in written), (says, says))
            self.assertEqual("note: no intervals: rows are of NCCL 2.21.5, 2.27.3, and --by does not name nccl" in text, not says)
            self.assertEqual("# intervals of" in self.ok("compare", "nccl.csv", *MACHINE, "--params", "p.yaml"), says)
        self.ok("calibrate", "nccl.csv", *MACHINE, *FIT, "--by", "nccl", "--holdout", "0.7", "-o", "p.yaml")
        written = (self.here / "p.yaml").read_text()
        self.assertNotIn("nccl_version", written)
        self.assertNotIn("intervals:", written)  # of each release fewer than 9 configurations were held out
        classes = ", ".join(f"{{class: ['{of}'], rows: 9, configurations: 9, low: {low}, high: 2}}"
                            for of, low in (("2.21.5", 0.25), ("2.27.3", 0.5)))
        (self.here / "p.yaml").write_text(f"{written}intervals: {{by: [nccl], classes: [{classes}]}}\n")
        (self.here / "s.yaml").write_text(f"scenario: s\ntopology: {MACHINE[1]}\nnodes: 1\nmemory_paths: [gdr]\n"
                                          "nccl_version: 2.21.5\nworkload: {op: allreduce, sizes: [1 KiB]}\n")
        run = ["run", "s.yaml", "--params", "p.yaml"]
        for asked, low in (((), 0.25), (("--nccl-version", "2.27.3"), 0.5)):
            row = next(csv.DictReader(io.StringIO(self.ok(*run, *asked, "--csv", "-"))))
            self.assertAlmostEqual(float(row["low_us"]) / float(row["time_us"]), low)
        self.assertIn("note: --params: 1 of 1 rows have no interval", self.ok(*run, "--nccl-version", "2.23.4"))

    def test_ranges_make_classes_in_json_too(self):
        classes = self.calibrated("--by", "size")["fitted"]["classes"]
        self.assertEqual([c["size"] for c in classes], ["< 64 MiB"])

    def test_the_report_as_json(self):
        answer = self.calibrated("--by", "proto", "--date", "2026-11-22")
        self.assertEqual(list(answer), KEYS)
        self.assertEqual((answer["schema"], answer["date"]), ("weft.calibrate/1", "2026-11-22"))
        self.assertEqual([p["key"] for p in answer["parameters"]], ["nccl.launch_simple", "nccl.launch_ll"])
        self.assertEqual([p["start"] for p in answer["parameters"]], ["8700 ns", "4400 ns"])
        self.assertLess(answer["loss_after"], answer["loss_before"])
        of_sets = {s: [row for row in answer["rows"] if row["sample"] == s] for s in ("fitted", "held-out")}
        self.assertEqual([len(of_set) for of_set in of_sets.values()], [33, 15])
        for row in answer["rows"]:
            self.assertAlmostEqual(row["error"], row["predicted_us"] / row["us"] - 1)
        self.assertEqual(answer["held_out"]["after"]["n"], 15)
        self.assertLess(answer["held_out"]["after"]["median_abs"], answer["held_out"]["before"]["median_abs"])
        self.assertEqual(sum(c["after"]["n"] for c in answer["held_out"]["classes"]), 15)

    def test_the_same_bytes_twice_and_others_with_another_seed(self):
        first = self.calibrated("--threads", "1", "--date", "2026-11-22")
        self.assertEqual(first, self.calibrated("--threads", "5", "--date", "2026-11-22"))
        other = self.calibrated("--seed", "9")
        self.assertNotEqual([row["line"] for row in first["rows"]], [row["line"] for row in other["rows"]])

    def test_the_date_is_that_of_reproducible_builds(self):
        run = subprocess.run([cli_test.WEFT, "calibrate", "made.csv", *MACHINE, *FIT, "--json", "-"], cwd=self.here,
                             env={"SOURCE_DATE_EPOCH": "86400"}, capture_output=True, check=True, timeout=120)
        self.assertEqual(json.loads(run.stdout)["date"], "1970-01-02")
        run = subprocess.run([cli_test.WEFT, "calibrate", "made.csv", *MACHINE, *FIT], cwd=self.here,
                             env={"SOURCE_DATE_EPOCH": "soon"}, capture_output=True, check=False, timeout=120)
        self.assertEqual((run.returncode, run.stderr), (2, b"error: SOURCE_DATE_EPOCH='soon': a whole number of "
                                                           b"seconds since 1970\n"))

    def test_a_fit_that_is_refused_writes_nothing(self):
        (self.here / "p.yaml").write_text("as it was")
        command = ["calibrate", "made.csv", *MACHINE, "--fit", "nccl.launch_simple,nccl.proxy_poll", "-o", "p.yaml",
                   "--json", "p.json"]
        run = weft(*command, cwd=self.here)
        self.assertEqual((run.returncode, run.stderr.decode()),
                         (5, "calibration refused: no fitted row depends on nccl.proxy_poll\n"))
        self.assertIn("# refused: no fitted row depends on nccl.proxy_poll\n", run.stdout.decode())
        self.assertEqual((self.here / "p.yaml").read_text(), "as it was")
        self.assertFalse((self.here / "p.json").exists())
        run = weft(*command[:-1], "-", cwd=self.here)
        self.assertEqual(run.returncode, 5)
        self.assertEqual(json.loads(run.stdout)["refused"], "no fitted row depends on nccl.proxy_poll")

    def test_times_in_other_units_are_refused(self):
        """Milliseconds in a column of microseconds, and nanoseconds."""
        lines = (self.here / "made.csv").read_text().splitlines()
        (self.here / "p.yaml").write_text("as it was")
        for factor in (1e-3, 1e3):
            cells = [line.split(",") for line in lines[1:]]
            other = [",".join([*c[:7], f"{float(c[7]) * factor:.6g}", c[8]]) for c in cells]
            (self.here / "other.csv").write_text("\n".join([lines[0], *other]) + "\n")
            run = weft("calibrate", "other.csv", *MACHINE, *FIT, "-o", "p.yaml", cwd=self.here)
            self.assertEqual((run.returncode, run.stdout), (2, b""))
            self.assertRegex(run.stderr.decode(), r"\Aerror: other\.csv: its times are (0\.00\d+|[\d.e+]+) times those predicted, "
                                                  r"in the median; write microseconds, or --set values to start from that are "
                                                  r"nearer\n\Z")
            self.assertEqual((self.here / "p.yaml").read_text(), "as it was")

    def test_traces(self):
        """Runs of real verbs over 20 Mbit/s and 10 ms: fitted, and shown again with the intervals."""
        source = cli_test.SOURCE / "tests/data/rxe"
        names = sorted(path.name for path in (source / "calibration").glob("*-bw-*.weft"))
        for name in names:
            (self.here / name).write_bytes((source / "calibration" / name).read_bytes())
        machine = str(source / "rxe-vm.yaml")
        start = ("--set", "wire.rate=30 Mb/s", "--set", "wire.cable_length=800000 m")
        text = self.ok("calibrate", *names, "--machine", machine, *start, "--holdout", "0.5", "--by", "transport",
                       "-o", "p.yaml", "--date", "2026-11-22")
        self.assertRegex(text, r"wire\.rate +0\.00375 GB/s +0\.002[45]\d* GB/s")
        self.assertRegex(text, r"# note: not fitted: the rows hardly depend on, do not tell from those that are, or are too few for: nic")
        written = (self.here / "p.yaml").read_text()
        self.assertIn("origin: measured, source: 'weft calibrate, 2026-11-22: read-bw-", written)
        self.assertIn("rows: 18, configurations: 9", written)
        self.assertNotIn("nccl_version", written)
        shown = self.ok("replay", names[-1], "--topology", machine, "--params", "p.yaml")
        self.assertRegex(shown, r"(?m)^  write_interval +64K? ?\S* +\S+ +\S+ +\S+ to \S+$")
        for arguments, expected in (
                (["calibrate", names[0], "made.csv", *MACHINE],
                 "made.csv: is no verbs trace, as others are; fit one kind at a time"),
                (["calibrate", names[0], names[0], "--machine", machine],
                 f"{names[0]}: is the same table as {names[0]}"),
                (["calibrate", *names, "--machine", machine, "--env", "NCCL_ALGO=Ring"],
                 "--as, --drop-stalls, --env, --nccl-version and --launch are of measured tables; these are"),
                (["calibrate", "made.csv", *MACHINE, "--fidelity", "packet"],
                 "--map and --fidelity are of verbs traces; these are measured tables"),
                (["calibrate", *names, "--machine", machine, "--map", "mlx5_0=rxe0"],
                 "--map 'mlx5_0=rxe0': no such device in the trace; there are: rxe0@0, rxe1@0"),
                (["compare", names[0], *MACHINE],
                 f"{names[0]}: is a verbs trace, not measured rows; weft trace, replay and calibrate read it"),
                (["calibrate", "cut.weft", "--machine", machine], "cut.weft: ")):
            (self.here / "cut.weft").write_bytes((self.here / names[0]).read_bytes()[:40])
            run = weft(*arguments, cwd=self.here)
            self.assertEqual((run.returncode, run.stdout), (2, b""), arguments)
            self.assertTrue(run.stderr.decode().startswith("error: " + expected), run.stderr)
            self.assertEqual(run.stderr.count(b"\n"), 1)

    def test_both_files_are_written_or_neither(self):
        run = weft("calibrate", "made.csv", *MACHINE, *FIT, "--json", "both.json", "-o", "nowhere/both.yaml", cwd=self.here)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertFalse((self.here / "both.json").exists())

    def test_an_interrupted_fit_leaves_the_file_as_it_was(self):
        (self.here / "p.yaml").write_text("as it was")
        before = sorted(path.name for path in self.here.iterdir())
        os.mkfifo(self.here / "m.yaml")
        table = cli_test.SOURCE / "tests/data/h200/blocks.csv"
        fit = subprocess.Popen([cli_test.WEFT, "calibrate", table, "--machine", "m.yaml", "-o", "p.yaml"], cwd=self.here,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        (self.here / "m.yaml").write_bytes((self.root / "topologies/h200-vm.yaml").read_bytes())
        fit.send_signal(signal.SIGINT)  # it has its machine, and needs many seconds more
        fit.communicate(timeout=60)
        self.assertEqual(fit.returncode, 130)
        self.assertEqual((self.here / "p.yaml").read_text(), "as it was")
        self.assertEqual(sorted(path.name for path in self.here.iterdir()), sorted([*before, "m.yaml"]))

    def test_a_time_limit_says_what_to_go_on_from(self):
        fit = (cli_test.SOURCE / "tests/data/h200/shm.csv", *MACHINE, "--env", "NCCL_NVLS_ENABLE=0", "--fit",
               "nccl.launch_simple,gpu.host_load_extra", "-o", "p.yaml")
        for limit in ("1s", "10s"):
            run = weft("calibrate", *fit, "--time-limit", limit, cwd=self.here)
            if run.returncode != 130:
                self.assertIn(run.returncode, (0, 5))
                continue  # a fast machine: fitted, or refused as fitted badly
            self.assertEqual((run.returncode, run.stdout), (130, b""))
            self.assertRegex(run.stderr.decode(), rf"\Astopped: after --time-limit {limit}, nothing is written: (stopped "
                                                  r"before any row was finished|\d+ predictions; the best values so far, "
                                                  r'to go on from:( those it began with|( --set "[a-z_.]+=[\d.]+ ns"){2}))'
                                                  r"\n\Z")
            self.assertFalse((self.here / "p.yaml").exists())

    def test_damaged_parameter_files_are_refused_with_one_line_or_read(self):
        self.ok("calibrate", "made.csv", *MACHINE, *FIT, "-o", "p.yaml", "--by", "transport", "--holdout", "0.6")
        text = (self.here / "p.yaml").read_bytes()
        for seed in range(40):
            with self.subTest(seed=seed):
                (self.here / "any.yaml").write_bytes(damaged(text, seed, b",'{}[]\n\r\0\x1b:-19e. "))
                run = weft("compare", "one.csv", *MACHINE, "--params", "any.yaml", cwd=self.here)
                if run.returncode != 0:
                    self.assertEqual((run.returncode, run.stdout), (2, b""))
                    self.assertRegex(run.stderr, rb"\Aerror: any.yaml:[ -~\x80-\xff]+\n\Z")

    def test_output_to_standard_output_is_the_file_alone(self):
        text = self.ok("calibrate", "made.csv", *MACHINE, *FIT, "-o", "-")
        self.assertTrue(text.startswith("# Written by weft calibrate;"), text)
        self.assertNotIn("# rows", text)


if __name__ == "__main__":
    cli_test.main(__doc__)
