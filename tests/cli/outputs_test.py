#!/usr/bin/env python3
"""No command overwrites what it reads, and no two of its outputs go to one file.

    outputs_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import os
import re

import cli_test
from cli_test import CliTest, weft

# What names IN, a file that is there, and the options that write it over; each before anything is read.
COMMANDS = (
    (["run", "IN"], ("--json", "--csv", "--trace"), "scenario"),
    (["run", "s.yaml", "--params", "IN"], ("--json",), "--params"),
    (["step", "IN"], ("--json",), "scenario"),
    (["traffic", "IN"], ("--json",), "scenario"),
    (["sensitivity", "IN"], ("--json",), "scenario"),
    (["sweep", "IN"], ("--csv",), "scenario"),
    (["sweep", "s.yaml", "--prices", "IN"], ("--csv",), "--prices"),
    (["compare", "IN"], ("--json", "--csv"), "measured"),
    (["compare", "t.csv", "--machine", "IN"], ("--json",), "--machine"),
    (["calibrate", "t.csv", "IN"], ("--output", "-o", "--json"), "measured"),
    (["calibrate", "t.csv", "--holdout", "IN"], ("--output",), "--holdout"),
    (["diff", "a.json", "IN"], ("--json",), "B"),
    (["report", "a.json", "IN"], ("--output",), "result"),
    (["import", "a.txt", "IN"], ("--output",), "evidence"),
    (["import", "node1=IN"], ("--output",), "evidence"),
    (["doctor", "node1=IN"], ("--json",), "evidence"),
    (["expect", "IN"], ("--gate", "--json"), "machine"),
    (["expect", "m.yaml", "--measured", "IN"], ("--json",), "--measured"),
    (["explain", "IN"], ("--json",), "runs"),
    (["explain", "t.csv", "--evidence", "IN"], ("--json",), "--evidence"),
    (["nccl", "IN"], ("--json", "--write-topo"), "topology"),
    (["nccl", "m.yaml", "--env", "NCCL_TOPO_FILE=IN"], ("--write-topo",), "--env"),
    (["perftest", "IN"], ("--json",), "topology"),
    (["copies", "IN"], ("--json", "--csv"), "topology"),
    (["replay", "IN"], ("--json", "--csv"), "trace"),
    (["replay", "a.weft", "--topology", "IN"], ("--json",), "--topology"),
    (["trace", "info", "IN"], ("--json",), "file"),
    (["trace", "cut", "IN"], ("--output",), "file"),
    (["trace", "merge", "a.weft", "IN"], ("--output",), "file"),
    (["record", "--topology", "IN"], ("--output",), "--topology"),
)


class Outputs(CliTest):
    def setUp(self):
        super().setUp()
        (self.here / "in").write_text("as it was")

    def kept(self, command, option, output, name):
        program = ["--", "true"] if command[0] == "record" else []
        said = "--output" if option == "-o" else option
        self.refused([*command, option, output, *program],
                     f"{said} {output}: would overwrite in, which {name} names; write to another file")
        self.assertEqual((self.here / "in").read_text(), "as it was")

    def test_no_output_is_an_input(self):
        for command, options, name in COMMANDS:
            for option in options:
                with self.subTest(command=command, option=option):
                    self.kept([word.replace("IN", "in") for word in command], option, "in", name)

    def test_no_output_is_what_an_input_names(self):
        (self.here / "sub").mkdir()
        (self.here / "sub/soft").symlink_to("../in")
        (self.here / "all.yaml").write_text("scenario: s\ntopology: sub/soft\n"
                                            "workload: {op: allreduce, sizes: [1 MiB]}\n")
        (self.here / "traffic.yaml").write_text(f"scenario: s\ntopology: {cli_test.TOPOLOGY}\n"
                                                "workload: {op: alltoallv, matrix: in}\n")
        (self.here / "routed.yaml").write_text(f"scenario: s\ntopology: {cli_test.TOPOLOGY}\nworkload: "
                                               "{op: dispatch, routing: in, experts: 8, token_bytes: 8}\n")
        (self.here / "t.csv").write_text("machine,transport,ranks,op,bytes,us\nin,nvlink,8,allreduce,8,1\n")
        for command, named, by in (
                (["run", "all.yaml"], "sub/soft", "all.yaml"), (["step", "all.yaml"], "sub/soft", "all.yaml"),
                (["sensitivity", "all.yaml"], "sub/soft", "all.yaml"),
                (["traffic", "traffic.yaml"], "in", "traffic.yaml"),
                (["traffic", "routed.yaml"], "in", "routed.yaml"),
                (["compare", "t.csv"], "in", "t.csv")):
            for output in ("in", "sub/soft", str(self.here / "in")):
                with self.subTest(command=command, output=output):
                    self.refused([*command, "--json", output], f"--json {output}: would overwrite {named}, "
                                 f"which {by} names; write to another file")
        self.refused(["sweep", "all.yaml", "--csv", "in"],
                     "--csv in: would overwrite sub/soft, which all.yaml names; write to another file")
        self.assertEqual((self.here / "in").read_text(), "as it was")

    def test_every_option_that_writes_was_tried(self):
        tried = {(command[0], option) for command, options, _ in COMMANDS for option in options}
        page = weft("docs", "man", cwd=self.here).stdout.decode().replace("\\-", "-")
        for command, text in re.findall(r"(?ms)^\.SS weft (\S+)\n(.*?)(?=^\.S)", page):
            for option, says in re.findall(r"\.TP\n\\fB(--[a-z-]+)\\fR .*\n(.*)\n", text):
                if "is standard output" in says or says.startswith("write "):
                    self.assertIn((command, option), tried)

    def test_whatever_leads_to_it(self):
        (self.here / "soft").symlink_to("in")
        os.link(self.here / "in", self.here / "hard")
        for output in ("./in", str(self.here / "in"), "soft", "hard", "../cli/in"):
            with self.subTest(output):
                self.kept(["diff", "a.json", "in"], "--json", output, "B")
                self.refused(["diff", output, "b.json", "--json", "in"],
                             f"--json in: would overwrite {output}, which A names; write to another file")

    def test_streams_and_devices_overwrite_nothing(self):
        os.mkfifo(self.here / "pipe")
        for same in ("-", "/dev/null"):
            run = weft("compare", same, "--json", same, cwd=self.here)
            self.assertIn(b"is empty", run.stderr)
        run = weft("compare", "nowhere.csv", "--machine", "pipe", "--json", "pipe", cwd=self.here)
        self.assertEqual(run.stderr, b"error: nowhere.csv: no such file\n")

    def test_words_that_are_no_files_are_not_looked_at(self):
        (self.here / "write").write_text("of another run")
        self.ok("perftest", cli_test.TOPOLOGY, "--op", "write", "--size", "64K", "--json", "write")
        self.ok("perftest", cli_test.TOPOLOGY, "--op", "write", "--size", "64K", "--json", "write")

    def test_no_two_outputs_go_to_one_file(self):
        (self.here / "out").write_text("as it was")
        os.link(self.here / "out", self.here / "hard")
        for csv, which in (("out", ""), ("./out", ", which is ./out"), ("hard", ", which is hard")):
            self.refused(["compare", "in", "--json", "out", "--csv", csv],
                         "--json and --csv cannot both go to out" + which)
        self.refused(["compare", "in", "--json", "new", "--csv", "../cli/new"],
                     "--json and --csv cannot both go to new, which is ../cli/new")
        self.refused(["compare", "in", "--json", "-", "--csv", "-"],
                     "--json and --csv cannot both go to standard output")
        (self.here / "other").mkdir()
        run = weft("compare", "nowhere.csv", "--json", "new", "--csv", "other/new", cwd=self.here)
        self.assertEqual(run.stderr, b"error: nowhere.csv: no such file\n")


if __name__ == "__main__":
    cli_test.main(__doc__)
