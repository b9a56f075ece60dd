#!/usr/bin/env python3
"""Studies of any workload: `weft sweep` and `weft sensitivity` of steps, traffic and jobs; their time limits.

    workloads_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import csv
import io
import json
import math

import cli_test
from cli_test import CliTest, weft
from report_test import PRICES
from step_test import STEP

MACHINE = "topology: ../../topologies/hgx-h100-8nic.yaml\nnodes: 2\n"
TRAFFIC = f"scenario: traffic\n{MACHINE}workload: {{op: alltoallv, matrix: matrix.csv}}\n"
JOBS = f"""scenario: jobs
{MACHINE.replace("2", "4")}jobs:
  - {{job: one, nodes: "0,2", op: alltoall, size: 1 MiB}}
  - {{job: two, nodes: "1,3", op: alltoall, size: 1 MiB}}
memory_paths: [gdr, host-staged]
set: {{network.kind: leaf-spine, network.ports: 64}}
"""


def matrix(last):
    """What each of 16 ranks sends to each, in bytes."""
    rows = [[(a + b) * 10000 for b in range(16)] for a in range(16)]
    rows[15][0] = last
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


class WorkloadsTest(CliTest):
    def setUp(self):
        super().setUp()
        for name, text in (("step.yaml", STEP), ("traffic.yaml", TRAFFIC), ("jobs.yaml", JOBS),
                           ("prices.yaml", PRICES), ("matrix.csv", matrix(1))):
            (self.here / name).write_text(text)

    def swept(self, *arguments):
        self.ok("sweep", *arguments, "--csv", "out.csv")
        return rows_of((self.here / "out.csv").read_text())

    def asked(self, *arguments):
        return json.loads(self.ok(*arguments, "--json", "-"))


class Sweep(WorkloadsTest):
    def test_a_steps_rows_are_what_single_runs_give(self):
        rows = self.swept("step.yaml", "--set", "wire.rate=200 Gb/s,400 Gb/s")
        self.assertEqual(len(rows), 2)
        for row in rows:
            result, = self.asked("step", "step.yaml", "--set", "wire.rate=" + row["wire.rate"])["results"]
            self.assertEqual(row["op"], "step")
            self.assertEqual([row[name] for name in ("bytes", "algbw_GBps", "busbw_GBps", "proto", "channels")], [""] * 5)
            for call in result["calls"]:  # how they run
                self.assertIn("{group} {op} {algo} {proto} x {channels}".format(**call), row["algo"].split("; "))
            self.assertEqual(row["ranks"], "16")
            self.assertAlmostEqual(float(row["time_us"]), result["step_us"], delta=1e-6)
            self.assertAlmostEqual(float(row["computing_us"]), sum(c["critical_us"] for c in result["compute"]), delta=1e-6)
            self.assertAlmostEqual(float(row["exposed_us"]), sum(g["exposed_us"] for g in result["communication"]), delta=1e-5)
            self.assertEqual(row["limited_by"], result["limited_by"][0]["cause"])
        self.assertGreater(float(rows[0]["time_us"]), float(rows[1]["time_us"]))

    def test_data_may_be_as_many_as_there_are_gpus_for(self):
        (self.here / "rest.yaml").write_text(STEP.replace("data: 2", "data: rest"))
        two, four = self.swept("rest.yaml", "--set", "nodes=2,4")
        self.assertEqual([row["ranks"] for row in (two, four)], ["16", "32"])
        fixed, = self.asked("step", "step.yaml")["results"]
        self.assertAlmostEqual(float(two["time_us"]), fixed["step_us"], delta=1e-6)
        self.refused(["step", "rest.yaml", "--set", "nodes=1", "--set", "gpu.count=4"],
                     "rest.yaml:5:3: data: rest: 4 GPUs are no multiple of the 8 that a copy of the model is split over; "
                     "those of --set nodes=2 are")
        self.refused(["step", "rest.yaml", "--set", "nodes=1001", "--set", "gpu.count=1"],
                     "rest.yaml:5:3: data: rest: 1001 GPUs are no multiple of the 8 that a copy of the model is split over; "
                     "those of --set nodes=1000 are")
        self.refused(["step", "step.yaml", "--set", "nodes=4"],
                     "step.yaml:5:3: the step is split over 16 GPUs, and ../../topologies/hgx-h100-8nic.yaml has 32 (4 nodes of 8); "
                     "with `data: rest` it is split over all of them, 4 copies of the model")

    def test_a_large_step_says_what_it_is_extended_from(self):
        (self.here / "large.yaml").write_text(STEP.split("workload")[0] + """workload:
  step:
    layers: 2
    compute: {forward: 1 ms, backward: 2 ms}
    bytes: {gradients: 512 MiB}
    parallel: {data: rest}
set: {nccl.launch: graph, nccl.host_launch: 50 us}
""")
        run = weft("sweep", "large.yaml", "--set", "nodes=2,1024", "--csv", "out.csv", cwd=self.here)
        self.assertEqual(run.stderr.decode(), "note: no effect here, where kernels stand in queues: nccl.host_launch (at 2 of 2 points)\n"
                                              "note: no effect here, where kernels stand in queues: nccl.launch (at 2 of 2 points)\n")
        rows = rows_of((self.here / "out.csv").read_text())
        self.assertEqual([(row["ranks"], row["extended_from_nodes"]) for row in rows], [("16", ""), ("8192", "16")])

    def test_traffic_and_its_matrix(self):
        row, = self.swept("traffic.yaml")
        result = self.asked("traffic", "traffic.yaml")
        self.assertEqual((row["op"], float(row["time_us"])), (result["op"], result["results"][0]["time_us"]))
        (self.here / "matrix.csv").write_text(matrix(100_000_000))
        another, = self.swept("traffic.yaml")
        self.assertGreater(float(another["time_us"]), 2 * float(row["time_us"]))

    def test_jobs_have_a_row_each(self):
        rows = self.swept("jobs.yaml", "--set", "wire.rate=200 Gb/s,400 Gb/s")
        self.assertEqual([(row["wire.rate"], row["memory_path"], row["job"]) for row in rows],
                         [(rate, path, job) for rate in ("200 Gb/s", "400 Gb/s") for path in ("gdr", "host-staged")
                          for job in ("one", "two")])
        self.ok("run", "jobs.yaml", "--set", "wire.rate=400 Gb/s", "--csv", "run.csv")
        of_run = rows_of((self.here / "run.csv").read_text())
        names = of_run[0].keys()
        self.assertEqual([{name: row[name] for name in names} for row in rows[4:]], of_run)

    def test_a_point_that_lost_a_row_is_run_again(self):
        for scenario in ("step.yaml", "traffic.yaml", "jobs.yaml"):
            self.swept(scenario, "--set", "nic.count=4,8")
            whole = (self.here / "out.csv").read_text()
            lines = whole.splitlines(keepends=True)
            for lost in range(1, len(lines)):
                (self.here / "out.csv").write_text("".join(lines[:lost] + lines[lost + 1:]))
                self.swept(scenario, "--set", "nic.count=4,8")
                self.assertEqual((self.here / "out.csv").read_text(), whole, (scenario, lost))
            marked = whole.replace(",gdr,", ",gdr,kept", 1)  # in a cell that nobody reads again
            (self.here / "out.csv").write_text(marked)
            self.swept(scenario, "--set", "nic.count=4,8")
            self.assertEqual((self.here / "out.csv").read_text(), marked, scenario)
            (self.here / "out.csv").unlink()

    def test_so_is_one_that_lost_what_a_path_fell_back_to(self):
        for scenario in ("step.yaml", "traffic.yaml"):
            text = (self.here / scenario).read_text()
            (self.here / scenario).write_text(text + "set: {nic.gdr: off}\n")
            why = {row["memory_path"]: row["not_run"] for row in self.swept(scenario)}
            self.assertEqual(why["host-staged"], "")
            self.assertTrue(why["gdr"].startswith("falls back to host-staged: gpu"), why)
            whole = (self.here / "out.csv").read_text()
            lines = whole.splitlines(keepends=True)
            for lost in (1, 2):
                (self.here / "out.csv").write_text("".join(lines[:lost] + lines[lost + 1:]))
                self.swept(scenario)
                self.assertEqual((self.here / "out.csv").read_text(), whole, (scenario, lost))
            (self.here / "out.csv").unlink()

    def test_what_has_no_effect_is_said(self):
        run = weft("sweep", "step.yaml", "--set", "network.kind=leaf-spine", "--set", "network.ports=64",
                   "--set", "network.oversubscription=1,2", cwd=self.here)
        self.assertEqual(run.stderr.decode(), "note: no effect with all NICs on one leaf: network.oversubscription (at 2 of 2 points)\n")
        run = weft("sweep", "step.yaml", "--set", "nccl.launch=graph,single", cwd=self.here)
        self.assertEqual(run.stderr.decode(), "note: no effect here, where kernels stand in queues: nccl.launch (at 2 of 2 points)\n")

    def test_a_refused_point_says_why(self):
        run = weft("sweep", "step.yaml", "--set", "nodes=2,3", cwd=self.here)
        self.assertEqual(run.returncode, 2)
        whole, refused = rows_of(run.stdout.decode())
        self.assertEqual(whole["not_run"], "")
        self.assertTrue(refused["not_run"].startswith("step.yaml:5:3: the step is split over 16 GPUs"), refused)
        lines = run.stdout.decode().splitlines(keepends=True)
        for again in lines[1:]:  # a row that is there twice
            (self.here / "out.csv").write_text("".join(lines) + again)
            weft("sweep", "step.yaml", "--set", "nodes=2,3", "--csv", "out.csv", cwd=self.here)
            self.assertEqual((self.here / "out.csv").read_text(), "".join(lines))

    @staticmethod
    def front(rows, of):
        """Marks by what the front says it is, among rows that are alike in the columns `of`."""
        marks = []
        for row in rows:
            mine = float(row["time_us"]), float(row["cost"])
            others = [(float(r["time_us"]), float(r["cost"])) for r in rows if all(r[name] == row[name] for name in of)]
            is_beaten = any(other != mine and other[0] <= mine[0] and other[1] <= mine[1] for other in others)
            marks.append("no" if is_beaten else "yes")
        return marks

    def test_the_front_is_of_the_least_time(self):
        priced = ("--set", "network.kind=leaf-spine", "--set", "network.ports=64", "--prices", "prices.yaml", "--pareto",
                  "--tolerance", "0")
        # Of the second job, within a leaf, uplinks are no bottleneck.
        (self.here / "jobs.yaml").write_text(JOBS.replace('"0,2"', '"0,40"').replace('"1,3"', "1-2").replace("nodes: 4", "nodes: 64"))
        for scenario, of, axis in (("step.yaml", (), "wire.rate=200 Gb/s,400 Gb/s"),
                                   ("jobs.yaml", ("memory_path", "job"), "network.oversubscription=1,32")):
            rows = self.swept(scenario, *priced, "--set", "nic.count=4,8", "--set", axis)
            self.assertEqual({row["pareto"] for row in rows}, {"yes", "no"})
            self.assertEqual([row["pareto"] for row in rows], self.front(rows, of))
            if of:
                self.assertNotEqual(self.front(rows, of), self.front(rows, of[:1]))
            self.ok("report", "out.csv", "-o", "out.html")
            (self.here / "out.csv").unlink()


class Sensitivity(WorkloadsTest):
    def test_a_step_is_the_difference_of_two_runs(self):
        row, = self.asked("sensitivity", "step.yaml", "--params", "gpu.nvlink_rate")["results"]
        effect, = row["parameters"]
        self.assertNotIn("bytes", row)
        self.assertNotIn("busbw_GBps", row)
        times = [self.asked("step", "step.yaml", "--set", "gpu.nvlink_rate=" + effect[end])["results"][0]["step_us"]
                 for end in ("low", "high")]
        rates = [float(effect[end].split()[0]) for end in ("low", "high")]
        self.assertAlmostEqual(effect["elasticity"], math.log(times[0] / times[1]) / math.log(rates[1] / rates[0]), delta=1e-3)
        self.assertGreater(effect["elasticity"], 0.05)
        text = self.ok("sensitivity", "step.yaml", "--params", "gpu.nvlink_rate")
        self.assertRegex(text, r"\A# step on 16 GPUs, gdr: [0-9.]+ us; elasticities and changes are of 1 / time\n")

    def test_each_job_and_traffic(self):
        rows = self.asked("sensitivity", "jobs.yaml", "--params", "wire.rate")["results"]
        self.assertEqual([(row["job"], row["memory_path"]) for row in rows],
                         [(job, path) for path in ("gdr", "host-staged") for job in ("one", "two")])
        row, = self.asked("sensitivity", "traffic.yaml", "--params", "wire.rate,nic.rate")["results"]
        self.assertEqual({effect["key"] for effect in row["parameters"]}, {"wire.rate", "nic.rate"})
        for scenario in ("step.yaml", "traffic.yaml", "jobs.yaml"):
            self.refused(["sensitivity", scenario, "--size", "1M"], f"--size: {scenario} has no workload of one operation")


class TimeLimit(WorkloadsTest):
    def test_nothing_done_is_nothing_written(self):
        for command, scenario, smaller in (("step", "step.yaml", "a step of fewer layers, micro-batches or nodes (parallel: data)"),
                                           ("traffic", "traffic.yaml", "a file with fewer GPUs or pairs, or --estimate, where most GPUs send to most others")):
            run = weft(command, scenario, "--time-limit", "1ns", "--json", "out.json", cwd=self.here)
            self.assertEqual((run.returncode, run.stdout, run.stderr.decode()),
                             (130, b"", "stopped: after --time-limit 1ns before any memory path was finished; nothing "
                                        f"is written. Ask for {smaller}\n"))
            self.assertFalse((self.here / "out.json").exists())


if __name__ == "__main__":
    cli_test.main(__doc__)
