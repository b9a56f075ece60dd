#!/usr/bin/env python3
"""`weft traffic`: irregular traffic.

    traffic_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import json

import cli_test
from cli_test import SMALL, CliTest, weft

HEAD = """scenario: traffic
topology: ../../topologies/hgx-h100-8nic.yaml
nodes: 2
"""


class Traffic(CliTest):
    def scenario(self, workload):
        (self.here / "traffic.yaml").write_text(HEAD + f"workload: {{{workload}}}\n")
        return "traffic.yaml"

    def test_bad_input(self):
        self.refused(["traffic"], "scenario is required (see weft --help)")
        self.refused(["traffic", "nowhere.yaml"], "nowhere.yaml: no such file")
        self.refused(["traffic", SMALL], "small.yaml: its workload is no irregular traffic; weft run runs it")
        incast = self.scenario("op: incast, bytes: 1 MiB, to: 16")
        self.refused(["traffic", incast], "traffic.yaml:4:1: incast: there is no rank 16")
        self.refused(["run", incast], "traffic.yaml:4:1: this is irregular traffic: weft traffic runs it")
        matrix = self.scenario("op: alltoallv, matrix: m.csv")
        self.refused(["traffic", matrix], "m.csv: no such file")
        (self.here / "m.csv").write_text("0,1\n1,0\n")
        self.refused(["traffic", matrix], "m.csv:1:1: expected 16 lines of 16 sizes each, one for each GPU, or a list of pairs under "
                     "from,to,bytes")

    def test_what_takes_too_long_names_what_does_not(self):
        incast = self.scenario("op: incast, bytes: 4 TiB")
        said = weft("traffic", incast, cwd=self.here)
        self.assertEqual(said.returncode, 2)
        self.assertRegex(said.stderr.decode(), r"^error: .*hgx-h100-8nic.yaml: about [0-9.e+]+ transfers, [0-9]+ minutes of one core; "
                                      r"take fewer nodes, bytes or tasks; --set nodes=1 \([0-9] minutes of one core\) would be answered\n$")

    def test_a_smaller_estimate_is_named_with_its_time(self):
        (self.here / "traffic.yaml").write_text(HEAD.replace("nodes: 2", "nodes: 1024") + "workload: {op: dispatch, tokens: 1024, "
                                                "experts: 8192, top_k: 8, token_bytes: 7168, skew: 0.5}\n")
        said = weft("traffic", "traffic.yaml", cwd=self.here)
        self.assertEqual(said.returncode, 2)
        self.assertRegex(said.stderr.decode(), r"16 million pairs of GPUs; take fewer tokens or nodes; "
                                               r"--set nodes=512 \([0-9]+ (s|minutes) of one core\) would be answered\n$")

    def test_a_matrix_is_carried(self):
        matrix = [[0] * 16 for _ in range(16)]
        matrix[3][12] = 5_000_000
        matrix[12][3] = 7
        matrix[4][4] = 1000
        (self.here / "m.csv").write_text("\n".join(",".join(map(str, row)) for row in matrix))
        scenario = self.scenario("op: alltoallv, matrix: m.csv")
        result = json.loads(self.ok("traffic", scenario, "--json", "-"))
        self.assertEqual((result["schema"], result["op"], result["ranks"]), ("weft.traffic/1", "alltoallv", 16))
        row, = result["results"]
        self.assertEqual({r["rank"]: (r["sent"], r["received"]) for r in row["ranks"] if r["sent"] or r["received"]},
                         {3: (5_000_000, 7), 12: (7, 5_000_000)})
        self.assertEqual({r["rank"] for r in row["ranks"] if r["end_us"] > 0}, {3, 4, 12})
        busy = [link["busy_us"] for link in row["links"]]
        self.assertEqual(busy, sorted(busy, reverse=True))
        self.assertGreaterEqual(row["time_us"], busy[0])
        text = self.ok("traffic", scenario)
        self.assertIn(f"# gdr: {row['time_us']:.3f} us, ", text)
        self.assertIn("     3  gpu3@0           5000000              7 ", text)

    def test_a_list_of_pairs_is_the_square(self):
        (self.here / "square.csv").write_text("\n".join(",".join("7M" if (r, c) == (3, 12) else "0" for c in range(16))
                                                        for r in range(16)))
        (self.here / "list.csv").write_text("from,to,bytes\n3,12,7M\n")
        square, pairs = (json.loads(self.ok("traffic", self.scenario(f"op: alltoallv, matrix: {file}.csv"), "--json", "-"))
                         for file in ("square", "list"))
        self.assertEqual(square["results"], pairs["results"])

    def test_a_layers_routing_is_carried(self):
        (self.here / "r.csv").write_text("rank,expert,tokens\n0,31,5\n0,30,2\n9,0,1\n")
        workload = "experts: 32, token_bytes: 7168, routing: r.csv"
        for op, sent in ("dispatch", {0: (7 * 7168, 7168), 15: (0, 7 * 7168), 9: (7168, 0)}), \
                        ("combine", {0: (7168, 7 * 7168), 15: (7 * 7168, 0), 9: (0, 7168)}):
            result = json.loads(self.ok("traffic", self.scenario(f"op: {op}, {workload}"), "--json", "-"))
            self.assertEqual({r["rank"]: (r["sent"], r["received"]) for r in result["results"][0]["ranks"] if r["end_us"]}, sent)

    def test_tokens_of_32768_gpus_are_estimated(self):
        (self.here / "traffic.yaml").write_text(HEAD.replace("nodes: 2", "nodes: 4096") +
                                                "workload: {op: dispatch, tokens: 128, experts: 32768, top_k: 8, token_bytes: 7168}\n")
        text = self.ok("traffic", "traffic.yaml", "--estimate")
        self.assertRegex(text, r"# gdr: about \d+")
        self.assertIn("the fullest rank would get about 14 % more than the mean", text)

    def test_what_is_stopped_says_what_to_ask_for(self):
        for workload, smaller in (("op: dispatch, tokens: 4096, experts: 16, token_bytes: 7168", "fewer nodes, as with --set nodes=N, or --estimate"),
                                 ("op: permutation, bytes: 1 GiB", "fewer nodes, as with --set nodes=N")):
            said = weft("traffic", self.scenario(workload), "--time-limit", "1ns", cwd=self.here)
            self.assertEqual((said.returncode, said.stderr.decode()), (130, "stopped: after --time-limit 1ns before any memory path was "
                                                                       f"finished; nothing is written. Ask for {smaller}\n"))

    def test_the_seed_of_the_scenario_draws(self):
        def run(seed):
            return self.ok("traffic", self.scenario(f"op: permutation, bytes: 1 MiB, seed: {seed}"), "--json", "-")
        self.assertEqual(run(1), run(1))
        self.assertNotEqual(json.loads(run(1))["results"], json.loads(run(2))["results"])

    def test_what_has_no_effect_is_said(self):
        result = json.loads(self.ok("traffic", self.scenario("op: incast, bytes: 1 MiB"), "--seed", "2",
                                    "--env", "NCCL_IB_TIMEOUT=17", "--json", "-"))
        self.assertIn("NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT have no effect here, where nothing is lost", result["notes"])
        self.assertIn("--seed has no effect: no route is drawn in this network", result["notes"])

    def test_traffic_is_checked(self):
        self.assertIn(": ok", self.ok("check", self.scenario("op: incast, bytes: 1 MiB")))


if __name__ == "__main__":
    cli_test.main(__doc__)
