#!/usr/bin/env python3
"""`weft report`: results as one HTML file that loads nothing and runs no script but its own.

    report_test.py WEFT SOURCE_DIR [-v] [TEST...]

What a browser makes of it: tests/report_page.
"""
import base64
import hashlib
import html.parser
import json
import re
import unittest

import cli_test
from cli_test import BOTH, CliTest, damaged, weft

H100 = "../../topologies/hgx-h100-8nic.yaml"
HOSTILE = "</script><script>alert(1)</script>"
SHOWN = ("weft report shows weft.compare/1, weft.copies/1, weft.expect/1, weft.perftest/1, weft.replay/1, "
         "weft.run/1")
TABLE = """transport,op,bytes,ranks,hosts,algo,proto,us
nvlink,allreduce,1048576,8,1,Ring,Simple,60
nvlink,allreduce,4194304,8,1,Ring,Simple,90
"""


class Page(html.parser.HTMLParser):
    """Tags, the text of scripts and of the title."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.title, self.open = [], [], "", ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.open = ""

    def handle_data(self, data):
        if self.open == "script":
            self.scripts[-1] += data
        if self.open == "title":
            self.title += data

    def data(self):
        return json.loads(self.scripts[-1])

    def policy(self):
        return next(a["content"] for tag, a in self.tags if tag == "meta" and "http-equiv" in a)


class Report(CliTest):
    def setUp(self):
        super().setUp()
        self.ok("run", BOTH, "--json", "run.json")

    def page(self, *arguments):
        self.ok("report", *arguments, "-o", "report.html")
        return Page((self.here / "report.html").read_text(encoding="utf-8"))

    def write(self, name, value):
        (self.here / name).write_text(json.dumps(value))

    def test_usage(self):
        self.refused(["report"], "result is required (see weft --help)")
        self.refused(["report", "run.json"], "--output is required: the report's file, such as report.html")
        self.refused(["report", "nowhere.json", "-o", "r.html"], "nowhere.json: no such file")
        self.refused(["report", "run.json", "run.json", "-o", "r.html"], "run.json: given twice")
        self.refused(["report", "run.json", "--gpu", "a100-sxm", "-o", "r.html"], "--gpu goes with --machine")
        self.refused(["report", "run.json", "-o", "none/r.html"],
                     "none/r.html: cannot be written: No such file or directory")

    def test_what_is_no_result_is_refused(self):
        for content, expected in (
                ("", "bad.json:1:1: not valid JSON"),
                ("{", "bad.json:1:2: not valid JSON"),
                ("[]", 'bad.json: has no "schema": not what weft writes with --json; ' + SHOWN),
                ('{"schema": "weft.gate/1"}', "bad.json: is weft.gate/1; " + SHOWN),
                ('{"schema": "weft.run/2"}', "bad.json: is weft.run/2; " + SHOWN),
                ('{"schema": "weft.run/1", "results": [1]}', "bad.json: expected an object")):
            with self.subTest(content):
                (self.here / "bad.json").write_text(content)
                self.refused(["report", "run.json", "bad.json", "-o", "r.html"], expected)

    def test_a_run_is_shown_as_it_is(self):
        result = json.loads((self.here / "run.json").read_text())
        page = self.page("run.json")
        self.assertEqual(page.title, "weft report: run.json")
        file, = page.data()["files"]
        self.assertEqual((file["name"], file["schema"]), ("run.json", "weft.run/1"))
        self.assertEqual([curve["label"] for curve in file["curves"]], ["gdr", "host-staged"])
        names = [column["name"] for column in file["columns"]]
        for row, cells, causes in zip(result["results"], file["rows"], file["causes"], strict=True):
            self.assertEqual(cells[names.index("busbw")], row["busbw_GBps"])
            self.assertEqual(causes, [[c["cause"], c["share"], c["where"]] for c in row["limited_by"]])
        shown = {tuple(param) for param in file["parameters"]}
        self.assertEqual(shown, {tuple(p.values()) for p in result["provenance"]["parameters"]})
        self.assertEqual(file["verdict"], result["verdict"])

    def test_expectations_comparisons_and_perftest_are_shown_too(self):
        self.ok("expect", H100, "--nodes", "1", "--size", "1M,64M", "--json", "expect.json")
        (self.here / "table.csv").write_text(TABLE)
        weft("compare", "table.csv", "--machine", H100, "--json", "compare.json", cwd=self.here)
        self.ok("perftest", H100, "--size", "64K,1M", "--json", "perftest.json")
        files = self.page("expect.json", "compare.json", "perftest.json").data()["files"]
        expected, compared, tested = [file["curves"][0]["points"] for file in files]
        for _, _, predicted, low, high, measured in expected:
            self.assertLess(low, high)
            self.assertIsNone(measured)
        rows = json.loads((self.here / "compare.json").read_text())["rows"]
        for (_, size, predicted, *_, measured), row in zip(compared, rows, strict=True):
            self.assertEqual((size, measured), (row["bytes"], row["busbw_GBps"]))
            # The prediction is off by as much in bandwidth as in time.
            self.assertAlmostEqual(measured / predicted - 1, row["error"])
        row = json.loads((self.here / "perftest.json").read_text())["results"][0]
        self.assertEqual(tested[0][1:3], [row["bytes"], row["bw_Gbps"] / 8])

    def test_copies_replays_and_judged_logs_are_shown_too(self):
        self.ok("copies", "../../topologies/h200-vm.yaml", "--from", "cpu0", "--to", "gpu0", "--size", "1M",
                "--json", "copies.json")
        rxe = cli_test.SOURCE / "tests/data/rxe"
        self.ok("replay", str(rxe / "plain-write.client.weft"), "--topology", str(rxe / "rxe-vm.yaml"),
                "--json", "replay.json")
        (self.here / "table.csv").write_text(TABLE)
        weft("expect", H100, "--nodes", "1", "--measured", "table.csv", "--json", "judged.json", cwd=self.here)
        copied, replayed, judged = self.page("copies.json", "replay.json", "judged.json").data()["files"]
        row = json.loads((self.here / "copies.json").read_text())["results"][0]
        self.assertEqual([(c["op"], c["label"], c["points"][0][1:3]) for c in copied["curves"]],
                         [("h2d", "cpu0, gpu0", [1 << 20, row["GBps"]])])
        steps = json.loads((self.here / "replay.json").read_text())["goodput"]
        self.assertEqual(replayed["timeline"], [list(step.values()) for step in steps])
        rows = json.loads((self.here / "judged.json").read_text())["judged"]
        self.assertEqual([point[2:] for point in judged["curves"][0]["points"]],
                         [[r["busbw_GBps"], r["low"], r["high"], r["measured_GBps"]] for r in rows])

    def test_the_machine_is_that_of_show(self):
        machine = self.page("run.json", "--machine", H100).data()["machine"]
        shown = json.loads(self.ok("show", H100, "--format", "json"))
        self.assertEqual((machine["devices"], machine["links"]), (shown["devices"], shown["links"]))
        self.assertIsNone(self.page("run.json").data()["machine"])

    def test_the_same_input_gives_the_same_bytes(self):
        first = self.ok("report", "run.json", "-o", "-")
        self.assertEqual(first, self.ok("report", "run.json", "-o", "-"))
        self.assertEqual(first, self.ok("report", "-", "-o", "-", stdin=(self.here / "run.json").read_bytes())
                         .replace("weft report: -", "weft report: run.json")
                         .replace('"name":"-"', '"name":"run.json"', 1))

    def test_nothing_is_loaded_and_only_the_pages_script_runs(self):
        page = self.page("run.json")
        for tag, attributes in page.tags:
            self.assertFalse({"src", "href", "srcset", "action"} & set(attributes), (tag, attributes))
            self.assertFalse([name for name in attributes if name.startswith("on")], (tag, attributes))
        scripts = [attributes for tag, attributes in page.tags if tag == "script"]
        self.assertEqual([attributes["type"] for attributes in scripts], ["module", "application/json"])
        digest = base64.b64encode(hashlib.sha256(page.scripts[0].encode()).digest()).decode()
        self.assertTrue(page.policy().startswith(f"default-src 'none'; script-src 'sha256-{digest}'; "), page.policy())

    def test_hostile_texts_stay_texts(self):
        topology = (self.root / "topologies/hgx-h100-1nic.yaml").read_text()
        (self.root / "topologies/hgx-h100-1nic.yaml").write_text(
            re.sub(r"(?m)^source:.*(\n +.*)*", f"source: '{HOSTILE}'", topology))
        self.ok("run", BOTH, "--json", "hostile.json")
        page = self.page("hostile.json", "--title", HOSTILE)
        self.assertEqual(page.title, HOSTILE)
        self.assertEqual(page.data()["title"], HOSTILE)
        self.assertIn(["topology_source", HOSTILE], page.data()["files"][0]["provenance"])
        plain = self.page("run.json")
        self.assertEqual([tag for tag, _ in page.tags], [tag for tag, _ in plain.tags])
        self.assertEqual(page.scripts[0], plain.scripts[0])

    def test_what_would_be_too_large_is_refused(self):
        result = json.loads((self.here / "run.json").read_text())
        result["notes"] = ["a" * 1000] * 2000
        self.write("large.json", result)
        self.refused(["report", "large.json", "-o", "r.html"],
                     "the report would have 2.2 MB, at most 2 are written: give fewer results")

    def test_damaged_results_are_refused_with_one_line_or_shown(self):
        text = (self.here / "run.json").read_bytes()
        for seed in range(60):
            with self.subTest(seed=seed):
                (self.here / "any.json").write_bytes(damaged(text, seed, b",:\"'{}[]\n\0\x1b<>-19e. "))
                run = weft("report", "any.json", "-o", "r.html", cwd=self.here)
                if run.returncode != 0:
                    self.assertEqual((run.returncode, run.stdout), (2, b""))
                    self.assertRegex(run.stderr, rb"\Aerror: any.json:[ -~\x80-\xff]+\n\Z")


if __name__ == "__main__":
    cli_test.main(__doc__)
