#!/usr/bin/env python3
"""`weft report`: results as one HTML file that loads nothing and runs no script but its own.

    report_test.py WEFT SOURCE_DIR [-v] [TEST...]

What a browser makes of it: tests/report_page.
"""
import base64
import csv
import hashlib
import html.parser
import json
import math
import re
import unittest

import cli_test
from cli_test import BOTH, CliTest, damaged, weft
from explain_test import MACHINE

H100 = "../../topologies/hgx-h100-8nic.yaml"
HOSTILE = "</script><script>alert(1)</script>"
SHOWN = ("weft report shows weft.compare/1, weft.copies/1, weft.expect/1, weft.explain/1, weft.perftest/1, "
         "weft.replay/1, weft.run/1")
TABLE = """transport,op,bytes,ranks,hosts,algo,proto,us
nvlink,allreduce,1048576,8,1,Ring,Simple,60
nvlink,allreduce,4194304,8,1,Ring,Simple,90
"""

PRICES = """prices: an invented list
currency: USD
parts:
  - {is: node, cost: 200000}
  - {is: nic, cost: 1000}
  - {is: switch, cost: 20000}
  - {is: nic-cable, cost: 200}
  - {is: switch-cable, cost: 500}
"""
SLOW = """transport,memory_path,hosts,ranks,op,bytes,us
net,gdr,2,2,allreduce,1048576,110
net,gdr,2,2,allreduce,268435456,19700
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
                ("op,not_run,point\n", "bad.json:1: no column 'bytes': not a table that weft sweep wrote"),
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

    def explain(self, *healthy):
        (self.here / "m.yaml").write_text(MACHINE)
        (self.here / "slow.csv").write_text(SLOW)
        run = weft("explain", "slow.csv", *healthy, "--machine", "m.yaml", "--json", "explain.json", cwd=self.here)
        self.assertEqual(run.returncode, 6, run.stderr)
        return json.loads((self.here / "explain.json").read_text())

    def test_explanations_are_shown_too(self):
        result = self.explain()
        file, = self.page("explain.json").data()["files"]
        self.assertEqual([answer["causes"][0]["where"] for answer in file["explained"]["answers"]],
                         [answer["causes"][0]["where"] for answer in result["answers"]])
        self.assertEqual([answer["explains"] for answer in file["explained"]["answers"]],
                         [answer["explains"] for answer in result["answers"]])
        count = sum(len(result[key]) for key in ("ruled_out", "no_effect", "refused", "not_here", "not_looked_at"))
        self.assertEqual(len(file["explained"]["set_aside"]), count)
        slow, healthy, first = file["curves"][:3]
        self.assertEqual([point[5] for point in slow["points"]], [point["busbw_GBps"] for point in result["points"]])
        # busbw of all-reduce on two ranks is algbw: MB/ms = GB/s.
        self.assertAlmostEqual(slow["points"][0][5], 1048576 / 110 / 1e3)
        for (_, _, predicted, low, high, _), point in zip(healthy["points"], result["points"], strict=True):
            self.assertTrue(low < predicted < high)
            self.assertAlmostEqual(predicted, point["busbw_GBps"] * point["slow_us"] / point["predicted_us"])
        for bound, explained, effect in zip(healthy["points"], first["points"], result["answers"][0]["effects"], strict=True):
            self.assertAlmostEqual(explained[2], bound[2] * math.exp(-effect))

    def test_a_healthy_run_has_a_curve_of_its_own_with_the_interval(self):
        (self.here / "healthy.csv").write_text(SLOW.replace(",110", ",90").replace(",19700", ",6000"))
        result = self.explain("healthy.csv")
        slow, healthy, predicted, first = self.page("explain.json").data()["files"][0]["curves"][:4]
        self.assertEqual([curve["label"] for curve in (slow, healthy, predicted)],
                         ["slow", "healthy", "nothing wrong"])
        effects = result["answers"][0]["effects"]
        for i, (size, us) in enumerate(((1 << 20, 90), (256 << 20, 6000))):
            _, _, nothing, low, high, measured = healthy["points"][i]
            self.assertIsNone(nothing)
            self.assertAlmostEqual(measured, size / us / 1e3)
            self.assertAlmostEqual(low * high, measured * measured)  # as far up as down, of logarithms
            self.assertLess(low, measured)
            point = result["points"][i]
            self.assertEqual(predicted["points"][i][3:], [None] * 3)
            self.assertAlmostEqual(predicted["points"][i][2], point["busbw_GBps"] * point["slow_us"] / point["predicted_us"])
            self.assertAlmostEqual(first["points"][i][2], measured * math.exp(-effects[i]))

    def test_explained_bandwidth_is_of_the_bus(self):
        # Of all-reduce on four ranks 2 x 3/4 of the bytes by time; MB/ms = GB/s.
        (self.here / "m.yaml").write_text(MACHINE.replace("nodes: 2", "nodes: 4"))
        (self.here / "slow.csv").write_text(SLOW.replace("gdr,2,2,", "gdr,4,4,"))
        run = weft("explain", "slow.csv", "--machine", "m.yaml", "--json", "four.json", cwd=self.here)
        self.assertIn(run.returncode, (0, 6), run.stderr)
        points = json.loads((self.here / "four.json").read_text())["points"]
        for point, size, us in zip(points, (1 << 20, 256 << 20), (110, 19700), strict=True):
            self.assertAlmostEqual(point["busbw_GBps"], 1.5 * size / us / 1e3)

    def test_sweeps_are_shown_too(self):
        (self.here / "m.yaml").write_text(MACHINE)
        (self.here / "s.yaml").write_text("scenario: s\ntopology: m.yaml\nmemory_paths: [gdr]\n"
                                          "workload: {op: allreduce, sizes: [1 MiB, 16 MiB]}\n")
        (self.here / "prices.yaml").write_text(PRICES)
        sweep = ("sweep", "s.yaml", "--set", "nodes=2,4", "--set", "nic.pcie_gen=4,5,9", "--prices", "prices.yaml")
        for name, options in (("marked.csv", ("--pareto",)), ("plain.csv", ())):
            run = weft(*sweep, *options, "--csv", name, cwd=self.here)
            self.assertEqual(run.returncode, 2, run.stderr)  # there is no Gen9
        marked, plain = self.page("marked.csv", "plain.csv").data()["files"]
        self.assertEqual(marked["schema"], "weft sweep")
        self.assertEqual(marked["curves"], plain["curves"])
        self.assertIsNone(plain["sweep"]["front"])
        self.assertEqual(plain["notes"][:-1], marked["notes"])
        self.assertRegex(plain["notes"][-1], "^no row is marked as on the Pareto front: ")
        with open(self.here / "marked.csv", newline="", encoding="utf-8") as table:
            rows = list(csv.DictReader(table))
        at = marked["sweep"]
        self.assertEqual([marked["columns"][axis]["name"] for axis in at["axes"]], ["nodes", "nic.pcie_gen"])
        self.assertEqual([(row[at["front"]] or "", row[at["cost"]], row[at["value"]]) for row in marked["rows"]],
                         [(row["pareto"], float(row["cost"]) if row["cost"] else None,
                           float(row["busbw_GBps"]) if row["busbw_GBps"] else None) for row in rows])
        self.assertIn("yes", {row["pareto"] for row in rows})
        self.assertEqual(len(marked["curves"]), 4)
        self.assertRegex(marked["notes"][0], r"^not run: 2 rows: .*nic.pcie_gen")
        text = (self.here / "marked.csv").read_bytes()
        self.assertEqual(marked["rows"], Page(self.ok("report", "-", "-o", "-", stdin=text)).data()["files"][0]["rows"])

    def run_small(self, *options):
        """Rows of a run of the small machine, link_use as a dictionary."""
        (self.here / "m.yaml").write_text(MACHINE)
        (self.here / "s.yaml").write_text("scenario: s\ntopology: m.yaml\nmemory_paths: [gdr, host-staged]\n"
                                          "workload: {op: allreduce, sizes: [1 MiB, 256 MiB]}\n")
        self.ok("run", "s.yaml", *options, "--json", "small.json")
        rows = json.loads((self.here / "small.json").read_text())["results"]
        return [{**row, "link_use": {link["link"]: link["use"] for link in row["link_use"]}} for row in rows]

    def test_links_carry_what_crosses_them(self):
        rows = self.run_small()
        gdr, staged = rows[2:]
        for row in rows:
            wire = row["link_use"]["nic0 -> fabric"]
            # 50 GB/s, of which headers take 1 %; the same both ways.
            self.assertTrue(1 <= wire / (row["nic_GBps"] / 50) < 1.02, (row["nic_GBps"], wire))
            self.assertEqual(wire, row["link_use"]["fabric -> nic0"])
            self.assertGreaterEqual(min(row["link_use"].values()), 0.01)
        self.assertGreater(gdr["link_use"]["nic0 -> fabric"], 0.9)  # what limits it
        # Over the switch alone, or through the CPU's memory: both NIC and GPU cross the uplink.
        self.assertLess(gdr["link_use"].get("sw0 -> cpu0", 0), 0.05)
        self.assertGreater(staged["link_use"]["sw0 -> cpu0"], 1.5 * staged["link_use"]["sw0 -> nic0"])
        self.assertEqual([row["link_use"] for row in self.run_small("--unfolded")], [row["link_use"] for row in rows])

    def test_a_links_use_times_its_capacity_and_time_is_what_crosses_it(self):
        # All-reduce by a ring of two sends each NIC 2 x 1/2 of the bytes. Of 4 KiB on the wire headers, checks and
        # acknowledgements add some 26 bytes, 0.6 %; 50 GB/s = 50e3 B/us.
        for launch in ("single", "graph", "back-to-back"):
            for proto, bytes_of in (("Simple", 1), ("LL", 2)):  # LL: a flag for each data
                settings = ("--set", f"nccl.launch={launch}", "--set", f"nccl.proto={proto}")
                row = self.run_small(*settings)[2]
                for link in ("nic0 -> fabric", "fabric -> nic0"):
                    carried = row["link_use"][link] * 50e3 * row["time_us"]
                    with self.subTest(launch=launch, proto=proto, link=link):
                        self.assertAlmostEqual(carried / (bytes_of * row["bytes"]), 1.0063, delta=0.0008)

    def test_the_load_on_links_is_shown(self):
        rows = self.run_small()
        links = self.page("small.json", "--machine", "m.yaml").data()["files"][0]["links"]
        for row, uses in zip(rows, links["rows"], strict=True):
            self.assertEqual({links["names"][place]: use for place, use in uses}, row["link_use"])
        (self.here / "p.yaml").write_text((self.here / "s.yaml").read_text().replace(", 256 MiB", ""))
        run = weft("run", "p.yaml", "--fidelity", "packet", "--json", "packets.json", cwd=self.here)
        self.assertEqual(run.returncode, 0, run.stderr)
        links = self.page("packets.json").data()["files"][0]["links"]
        uses = {links["names"][place]: use for place, use in links["rows"][0]}
        self.assertAlmostEqual(uses["nic0 -> fabric"], rows[0]["link_use"]["nic0 -> fabric"], delta=0.1)
        self.assertEqual(links["left_out"], [0, 0])

    def test_ports_that_are_left_out_are_counted(self):
        # More than 64 of them are in use on these two nodes.
        (self.here / "p.yaml").write_text(f"scenario: p\ntopology: {H100}\nnodes: 2\nmemory_paths: [gdr]\n"
                                          "workload: {op: allreduce, sizes: [64 KiB]}\n")
        run = weft("run", "p.yaml", "--fidelity", "packet", "--json", "packets.json", cwd=self.here)
        self.assertEqual(run.returncode, 0, run.stderr)
        probes = json.loads((self.here / "packets.json").read_text())["results"][0]["probes"]
        links = self.page("packets.json", "--machine", H100).data()["files"][0]["links"]
        self.assertGreater(probes["ports_left_out"], 0)
        self.assertEqual(links["left_out"], [probes["ports_left_out"]])
        self.assertTrue(links["ports"])

    def test_perftest_has_no_load_on_links(self):
        (self.here / "m.yaml").write_text(MACHINE)
        self.ok("perftest", "m.yaml", "--size", "64K", "--json", "perftest.json")
        self.assertIn("probes", json.loads((self.here / "perftest.json").read_text())["results"][0])
        self.assertIsNone(self.page("perftest.json").data()["files"][0]["links"])

    def test_links_of_the_machine_have_the_names_of_the_runs(self):
        gh200 = "../../topologies/merlin-gh200.yaml"
        (self.here / "s.yaml").write_text(f"scenario: s\ntopology: {gh200}\nnodes: 1\nmemory_paths: [host-staged]\n"
                                          "workload: {op: allreduce, sizes: [1 MiB]}\n")
        for fidelity in ("fluid", "packet"):
            run = weft("run", "s.yaml", "--env", "NCCL_P2P_DISABLE=1", "--fidelity", fidelity, "--json", "g.json", cwd=self.here)
            self.assertEqual(run.returncode, 0, run.stderr)
            data = self.page("g.json", "--machine", gh200).data()
            names = {name for link in data["machine"]["links"] for name in (link["forward"], link["back"])}
            self.assertIn("gpu0 -> cpu0 (c2c)", names)
            self.assertLess(set(data["files"][0]["links"]["names"]), names)
            self.assertIn("gpu0 -> cpu0 (c2c)", data["files"][0]["links"]["names"])

    def test_the_machine_is_that_of_show(self):
        machine = self.page("run.json", "--machine", H100).data()["machine"]
        shown = json.loads(self.ok("show", H100, "--format", "json"))
        for key in ("devices", "links", "network"):
            self.assertEqual(machine[key], shown[key])
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
                     "the report would have 2.2 MB, at most 2 are written: give fewer results, or of a table fewer rows")

    def test_damaged_results_are_refused_with_one_line_or_shown(self):
        self.explain()
        self.ok("sweep", BOTH, "--set", "wire.mtu=1024,4096", "--csv", "sweep.csv")
        whole = [(self.here / name).read_bytes() for name in ("run.json", "explain.json", "sweep.csv")]
        for seed in range(120):
            text = whole[seed % len(whole)]
            with self.subTest(seed=seed):
                (self.here / "any.json").write_bytes(damaged(text, seed, b",:\"'{}[]\n\0\x1b<>-19e. "))
                run = weft("report", "any.json", "-o", "r.html", cwd=self.here)
                if run.returncode != 0:
                    self.assertEqual((run.returncode, run.stdout), (2, b""))
                    self.assertRegex(run.stderr, rb"\Aerror: any.json:[ -~\x80-\xff]+\n\Z")


if __name__ == "__main__":
    cli_test.main(__doc__)
