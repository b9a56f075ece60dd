#!/usr/bin/env python3
"""`weft compare` as design.md section 5 promises it.

    compare_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import csv
import io
import json
import shutil
import statistics

import cli_test
from cli_test import CliTest, damaged, weft

MACHINE = ("--machine", "../../topologies/h200-vm.yaml")
NO_NVLS = ("--env", "NCCL_NVLS_ENABLE=0")
HEAD = "transport,ranks,op,bytes,us\n"
MADE = {
    "mixed.csv": None,  # of tests/data/h200
    "small.csv": HEAD + "nvlink,2,broadcast,1024,10\nnvlink,2,broadcast,4096,12\n",
    "log.txt": "# Collective test starting: broadcast_perf\n#  Rank  0 Group  0 Pid 1 on a device  0\n"
               "#  Rank  1 Group  0 Pid 2 on a device  1\n# size count type redop root time algbw busbw #wrong time\n"
               "1024 256 float none 0 10 0.1 0.1 0 11\n4096 1024 float none 0 12 0.3 0.3 0 11\n",
    "column.csv": HEAD.replace("us", "time") + "nvlink,2,broadcast,1024,10\n",
    "cell.csv": HEAD + "nvlink,2,broadcast,1K,10\n",
    "none.csv": HEAD + "nvlink,64,broadcast,1024,10\n",
    "empty.csv": "",
    "fast.yaml": "nccl.launch_simple: 1 us\nnccl.launch_ll: 1 us\nnccl.launch_ll128: 1 us\n",
    "wrong.yaml": "wire.mtu: 4 KiB\nwire.mut: 1 KiB\n",
    "list.yaml": "[wire.mtu]\n",
}
WORDS = "known: algbw_GBps, algo, busbw_GBps, bytes, channels, column, cq_mod, env, hosts, id, launch, machine, " \
    "memory_path, nccl, nic_gbps, nic_latency_us, nics_per_host, op, post_list, proto, qps, ranks, row, run, set, source, transport, " \
    "tx_depth, us, use"

BOGUS_USAGE = (
    (["compare"], "measured is required (see weft --help)"),
    (["compare", "small.csv"], "small.csv:2: names no machine; write column 'machine' or --machine FILE"),
    (["compare", "nowhere.csv", *MACHINE], "nowhere.csv: no such file"),
    (["compare", "empty.csv", *MACHINE], "empty.csv: is empty"),
    (["compare", "column.csv", *MACHINE], "column.csv:1:26: 'time': unknown column; " + WORDS),
    (["compare", "cell.csv", *MACHINE],
     "cell.csv:2:20: bytes: '1K' is not allowed; write whole number, 1 to 4398046511104"),
    (["compare", "small.csv", "--machine", "nowhere.yaml"], "nowhere.yaml: no such file"),
    (["compare", "small.csv", *MACHINE, "--params", "nowhere.yaml"], "nowhere.yaml: no such file"),
    (["compare", "small.csv", *MACHINE, "--params", "list.yaml"], "list.yaml:1:1: expected a map of keys and values"),
    (["compare", "small.csv", *MACHINE, "--set", "nic.count=9"],
     "--set: nic.count: '9' is not a whole number from 1 to 4, the NICs of a node in " + MACHINE[1]),
    (["compare", "small.csv", *MACHINE, "--env", "NCCL_PROTO=Fast"],
     "NCCL_PROTO='Fast': no 'Fast'; known: LL, LL128, Simple, and NCCL does not start"),
    (["compare", "small.csv", *MACHINE, "--by", "bits"], "--by: 'bits': unknown column; " + WORDS + "; or nodes, size"),
    (["compare", "small.csv", *MACHINE, "--by", "op,op"], "--by: 'op': column given twice"),
    (["compare", "small.csv", *MACHINE, "--json", "-", "--csv", "-"], "--json and --csv cannot both go to standard output"),
    (["compare", "small.csv", *MACHINE, "--as", "ranks=4"], "small.csv:2:8: ranks: 2 in the file, 4 by --as"),
    (["compare", "small.csv", *MACHINE, "--as", "ranks"], "--as 'ranks': write COLUMN=VALUE"),
    (["compare", "small.csv", *MACHINE, "--as", "colour=red"], "--as: 'colour': unknown column; " + WORDS),
    (["compare", "log.txt", *MACHINE],
     "log.txt:5: transport: is not stated; --as transport=VALUE says it: one of: nvlink, shm, net, copy"),
    (["compare", "small.csv", *MACHINE, "--expect", "median_abs"],
     "--expect 'median_abs': write METRIC<=NUMBER, such as median_abs<=0.05"),
    (["compare", "small.csv", *MACHINE, "--expect", "mean<=1"],
     "--expect 'mean<=1': no metric 'mean'; known: bias, median_abs, not_predicted, p90_abs"),
)


NVBANDWIDTH = """Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     55.36     55.37

Running device_local_copy.
memcpy local GPU(column) bandwidth (GB/s)
           0
 0   1200.00
"""


class Compare(CliTest):
    def setUp(self):
        super().setUp()
        for name, text in MADE.items():
            if text is None:
                shutil.copy(cli_test.SOURCE / "tests/data/h200" / name, self.here)
            else:
                (self.here / name).write_text(text)

    def comparison(self, *arguments):
        return json.loads(self.ok("compare", *arguments, "--json", "-"))

    def test_bad_input(self):
        for arguments, expected in BOGUS_USAGE:
            with self.subTest(arguments):
                self.refused(arguments, expected)

    def test_what_perftest_and_nvbandwidth_print_is_predicted_or_named(self):
        shutil.copy(cli_test.SOURCE / "tests/data/perftest/ib_write_bw.txt", self.here)
        (self.here / "nvbandwidth.txt").write_text(NVBANDWIDTH)
        answer = self.comparison("ib_write_bw.txt", "--machine", "../../topologies/hgx-h100-4nic.yaml")
        self.assertEqual([(row["op"], row["memory_path"], row["bytes"]) for row in answer["rows"]],
                         [("write_bw", "host", bytes) for bytes in (2, 4096, 65536, 1048576)])
        self.assertEqual(answer["summary"]["not_predicted"], 0)
        answer = self.comparison("nvbandwidth.txt", *MACHINE)
        self.assertEqual(answer["summary"]["n"], 2)
        self.assertEqual([row["reason"] for row in answer["rows"] if "reason" in row],
                         ["weft has no model of this test: device_local_copy"])

    def test_a_file_of_another_kind_names_the_right_command(self):
        self.ok("run", cli_test.SMALL, "--csv", "predicted.csv")
        compares = "weft compare, calibrate, explain and expect --measured read it"
        for arguments, expected in (
                (["run", "log.txt"], "log.txt: is measured rows, not a scenario; " + compares),
                (["show", "log.txt"], "log.txt: is measured rows, not a topology; " + compares),
                (["compare", MACHINE[1], *MACHINE], MACHINE[1] + ": is a topology, not measured rows; weft show, check, "
                                                    "nccl, perftest and copies read it"),
                (["compare", "predicted.csv", *MACHINE],
                 "predicted.csv: is rows that weft predicted (--csv), not measured rows; weft report reads those of a "
                 "sweep, weft diff the JSON of runs"),
                (["compare", "small.csv", "--machine", "small.csv"],
                 "small.csv: is measured rows, not a topology; " + compares)):
            with self.subTest(arguments):
                self.refused(arguments, expected)

    def test_a_wrong_parameter_is_named_with_its_place(self):
        run = weft("compare", "small.csv", *MACHINE, "--params", "wrong.yaml", cwd=self.here)
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stderr.decode(), r"\Aerror: wrong.yaml:2:1: set: no parameter 'wire.mut' .*\n\Z")

    def test_damaged_tables_are_refused_with_one_line_or_compared(self):
        text = (self.here / "mixed.csv").read_bytes()
        for seed in range(40):
            with self.subTest(seed=seed):
                (self.here / "any.csv").write_bytes(damaged(text, seed, b",\"\n\r\0\x1b-19e. "))
                run = weft("compare", "any.csv", *MACHINE, cwd=self.here)
                if run.returncode != 0:
                    self.assertEqual((run.returncode, run.stdout), (2, b""))
                    self.assertRegex(run.stderr, rb"\Aerror: any.csv:[ -~\x80-\xff]+\n\Z")

    def test_the_table_has_a_line_for_each_class_and_every_row_counts(self):
        text = self.ok("compare", "mixed.csv", *MACHINE, *NO_NVLS)
        lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual([line[:9] for line in lines if line[0] != "nvlink"],
                         [["shm", "-", "4", "allreduce", "Ring", "Simple", "back-to-back", "2", "0"],
                          ["net", "gdr", "4", "allreduce", "Ring", "Simple", "back-to-back", "3", "0"],
                          ["net", "host-staged", "4", "allreduce", "Ring", "Simple", "back-to-back", "3", "0"]])
        self.assertEqual(sum(int(line[7]) + int(line[8]) for line in lines), 26)
        self.assertIn("# total: 26 rows, bias ", text)
        self.assertIn("; 0 not predicted\n", text)

    def test_json_has_rows_summary_classes_and_provenance(self):
        answer = self.comparison("mixed.csv", *MACHINE, *NO_NVLS, "--by", "transport,ranks")
        self.assertEqual(answer["schema"], "weft.compare/1")
        rows, summary = answer["rows"], answer["summary"]
        measured = list(csv.DictReader(io.StringIO((self.here / "mixed.csv").read_text())))
        self.assertEqual([(row["op"], row["bytes"], row["us"]) for row in rows],
                         [(row["op"], int(row["bytes"]), float(row["us"])) for row in measured])
        errors = [row["predicted_us"] / row["us"] - 1 for row in rows if "predicted_us" in row]
        self.assertEqual([row["error"] for row in rows if "error" in row], errors)
        self.assertEqual([row.get("reason") is None for row in rows], ["error" in row for row in rows])
        self.assertEqual((summary["n"], summary["not_predicted"]), (len(errors), 26 - len(errors)))
        self.assertAlmostEqual(summary["bias"], statistics.fmean(errors))
        self.assertAlmostEqual(summary["median_abs"], statistics.median(map(abs, errors)))
        self.assertAlmostEqual(summary["worst_error"], max(errors, key=abs))
        self.assertEqual([(c["transport"], c["ranks"], c["n"], c["not_predicted"]) for c in answer["classes"]],
                         [("nvlink", 4, 6, 0), ("nvlink", 2, 12, 0), ("shm", 4, 2, 0), ("net", 4, 6, 0)])
        provenance = answer["provenance"]
        self.assertEqual(provenance["env"], ["NCCL_NVLS_ENABLE=0"])
        self.assertEqual(provenance["topology"], MACHINE[1])
        self.assertGreater(len(provenance["parameters"]), 50)
        self.assertNotIn("scenario", provenance)

    def test_a_log_of_nccl_tests_is_a_table(self):
        as_table = self.comparison("small.csv", *MACHINE, *NO_NVLS)["rows"]
        as_log = self.comparison("log.txt", *MACHINE, *NO_NVLS, "--as", "transport=nvlink")["rows"]
        self.assertEqual(as_log, as_table)

    def test_wrong_values_are_said(self):
        (self.here / "wrong.txt").write_text(MADE["log.txt"].replace("0.3 0.3 0 11", "0.3 0.3 5 11"))
        said = ("wrong.txt:6: 5 wrong values (#wrong), 1 of 2 rows have some: results are corrupt, and their times not "
                "to be trusted")
        arguments = "wrong.txt", *MACHINE, *NO_NVLS, "--as", "transport=nvlink"
        self.assertIn(said, self.comparison(*arguments)["notes"])
        self.assertIn(f"# note: {said}\n", self.ok("compare", *arguments))
        run = weft("compare", *arguments, "--csv", "-", cwd=self.here)
        self.assertEqual((run.returncode, run.stderr.decode()), (0, f"note: {said}\n"))
        self.assertNotIn("wrong values", run.stdout.decode())
        self.assertEqual(weft("compare", *arguments, "--csv", "rows.csv", cwd=self.here).stderr, b"")

    def test_csv_has_the_same_rows(self):
        text = self.ok("compare", "mixed.csv", *MACHINE, *NO_NVLS, "--csv", "-")
        rows = list(csv.DictReader(io.StringIO(text)))
        answer = self.comparison("mixed.csv", *MACHINE, *NO_NVLS)
        self.assertEqual([row["error"] and float(row["error"]) for row in rows],
                         [row.get("error", "") for row in answer["rows"]])
        self.assertEqual([row["reason"] for row in rows], [row.get("reason", "") for row in answer["rows"]])

    def test_nics_are_predicted_where_the_machine_has_them_and_stalls_can_be_dropped(self):
        machine = ("--machine", "../../topologies/h200-vm-pix.2x2.xml", "--gpu", "h200-vm", *NO_NVLS)
        answer = self.comparison("mixed.csv", *machine, "--drop-stalls")
        of_nics = [row for row in answer["rows"] if row["transport"] == "net"]
        self.assertEqual([row["channels"] for row in of_nics], [2, 2, 2, 4, 4, 4])
        self.assertEqual([of_nics[i]["predicted_channels"] for i in (2, 5)], [2, 4])  # of 64 MiB
        self.assertEqual([row["bytes"] for row in answer["rows"] if row.get("stall")], [65536])
        self.assertEqual(answer["summary_with_stalls"]["n"], answer["summary"]["n"] + 1)
        self.assertNotIn("summary_with_stalls", self.comparison("mixed.csv", *machine))
        text = self.ok("compare", "mixed.csv", *machine, "--drop-stalls")
        self.assertIn("# without stalls: ", text)
        self.assertIn("# with them: ", text)
        self.assertIn(": a node has 2 GPUs\n", text)

    def test_parameters_come_from_a_file_and_set_beats_it(self):
        def times(*arguments):
            rows = self.comparison("small.csv", *MACHINE, *NO_NVLS, "--set", "nccl.launch=graph", *arguments)["rows"]
            return [row["predicted_us"] for row in rows]
        fast = times("--params", "fast.yaml")
        self.assertTrue(all(a < b - 2 for a, b in zip(fast, times())))
        self.assertEqual(times("--params", "fast.yaml", "--set", "nccl.launch_ll=4400 ns"), times())
        (self.here / "seed.yaml").write_text("wire.seed: 3\n")
        answer = self.comparison("small.csv", *MACHINE, *NO_NVLS, "--params", "seed.yaml", "--seed", "5")
        self.assertEqual(answer["provenance"]["seed"], 5)

    def test_expect(self):
        table = self.ok("compare", "small.csv", *MACHINE, *NO_NVLS)
        self.assertEqual(self.ok("compare", "small.csv", *MACHINE, *NO_NVLS, "--expect", "median_abs<=0.9",
                                 "--expect", "not_predicted<1", "--expect", "bias<=0.9"), table)
        run = weft("compare", "small.csv", *MACHINE, *NO_NVLS, "--expect", "p90_abs<=0.0001", cwd=self.here)
        self.assertEqual((run.returncode, run.stdout.decode()), (4, table))
        self.assertRegex(run.stderr.decode(),
                         r"\Aexpectation missed: p90_abs<=0.0001: p90_abs is 0\.\d+\n\Z")
        run = weft("compare", "none.csv", *MACHINE, "--expect", "median_abs<=1", cwd=self.here)
        self.assertEqual((run.returncode, run.stderr.decode()),
                         (2, "error: --expect 'median_abs<=1': no row has a prediction\n"))

    def test_a_table_without_predictions_is_shown_all_the_same(self):
        self.assertIn("# total: none of 1 rows has a prediction\n", self.ok("compare", "none.csv", *MACHINE))

    def test_a_machine_from_a_pipe_is_read_once(self):
        machine = (cli_test.SOURCE / "topologies/h200-vm.yaml").read_bytes()
        run = weft("compare", "small.csv", "--machine", "/dev/stdin", *NO_NVLS, cwd=self.here, stdin=machine)
        self.assertIn("# total: 2 rows, ", run.stdout.decode())

    def test_the_same_bytes_twice(self):
        command = ("compare", "mixed.csv", *MACHINE, "--json", "-")
        self.assertEqual(self.ok(*command, "--threads", "1"), self.ok(*command, "--threads", "5"))


if __name__ == "__main__":
    cli_test.main(__doc__)
