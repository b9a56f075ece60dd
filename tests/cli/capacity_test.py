#!/usr/bin/env python3
"""Capacity planning: prices and fronts, shards, jobs on one fabric, what two nodes do not say.

    capacity_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import csv
import io
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import cli_test
from cli_test import LIMIT_S, CliTest, weft

FAST = "fast.yaml"  # simple rules, one small size: for what does not hang on the numbers
FAST_TEXT = """scenario: fast
topology: ../../topologies/hgx-h100-8nic.yaml
nodes: 4
workload: {op: allreduce, sizes: [1 MiB]}
memory_paths: [gdr]
set: {nccl.decisions: simple, nccl.algo: Ring}
"""
PRICES = """prices: a test's
currency: EUR
parts:
  - {is: node, cost: 1000, watts: 100}
  - {is: nic, part: connectx-7, cost: 10, watts: 2}
  - {is: switch, ports: 64, cost: 300, watts: 40}
  - {is: nic-cable, cost: 1, watts: 0.5}
  - {is: switch-cable, cost: 5}
"""
H100 = "../../topologies/hgx-h100-8nic.yaml"  # from where tests run
CLOS = ("--set", "network.kind=leaf-spine", "--set", "network.ports=64")
GRID = ("--set", "nic.count=1,2,4,8", "--set", "wire.kind=roce,infiniband", "--set", "wire.mtu=1024,4096")


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


class CapacityTest(CliTest):
    def setUp(self):
        super().setUp()
        (self.here / FAST).write_text(FAST_TEXT)
        (self.here / "prices.yaml").write_text(PRICES)


class Prices(CapacityTest):
    def sweep(self, *arguments):
        return rows_of(self.ok("sweep", FAST, *arguments, "--prices", "prices.yaml"))

    def test_parts_times_count(self):
        # 16 nodes x 8 NICs on leaves of 32 ports down: 4 leaves, 32 uplinks each to 2 spines.
        row, = self.sweep(*CLOS, "--set", "nodes=16")
        self.assertEqual(float(row["cost"]), 16 * 1000 + 128 * 10 + 6 * 300 + 128 * 1 + 128 * 5)
        self.assertEqual(float(row["power_kW"]) * 1000, 16 * 100 + 128 * 2 + 6 * 40 + 128 * 0.5)

    def test_fewer_nics_and_uplinks_cost_less(self):
        rows = self.sweep(*CLOS, "--set", "nodes=16", "--set", "nic.count=4,8",
                          "--set", "network.oversubscription=1,4")
        # 4 NICs: 2 leaves; at 4:1 8 uplinks a leaf, to one spine.
        self.assertEqual([float(row["cost"]) for row in rows],
                         [16000 + 64 * 11 + leaves * 300 + spines * 300 + leaves * up * 5 + more
                          for leaves, spines, up, more in ((2, 1, 32, 0), (2, 1, 8, 0))] +
                         [16000 + 128 * 11 + 4 * 300 + spines * 300 + 4 * up * 5 for spines, up in ((2, 32), (1, 8))])

    def test_cables_by_length_and_tier(self):
        (self.here / "prices.yaml").write_text(
            PRICES.replace("  - {is: nic-cable, cost: 1, watts: 0.5}\n",
                           "  - {is: nic-cable, up_to: 3 m, cost: 1}\n  - {is: nic-cable, cost: 4}\n")
            .replace("  - {is: switch-cable,", "  - {is: switch-cable, tier: leaf, up_to: 20 m, cost: 2}\n  - {is: switch-cable,"))
        rows = self.sweep(*CLOS, "--set", "nodes=16", "--set", "wire.cable_length=3 m,5 m",
                          "--set", "leaf.uplink_length=20 m,30 m")
        self.assertEqual([float(row["cost"]) for row in rows],
                         [16 * 1000 + 128 * 10 + 6 * 300 + 128 * (nic + up) for nic, up in ((1, 2), (1, 5), (4, 2), (4, 5))])

    def test_spares_are_bought_and_take_the_place_of_what_failed(self):
        # 8 nodes fill 2 leaves, of one spine; a 9th needs a third leaf, and a spine. Of 8 that fail 2 are missing, with a
        # spare one, with two none.
        asked = (*CLOS, "--set", "nodes=8")
        rows = self.sweep(*asked, "--set", "failed.nodes=0,2", "--set", "spare.nodes=0,1,2")
        self.assertEqual([int(row["ranks"]) // 8 for row in rows], [8, 8, 8, 6, 7, 8])
        costs = [float(row["cost"]) for row in rows]
        self.assertEqual(costs[:3], costs[3:])  # as they were bought
        self.assertEqual(costs[:2], [8 * 1000 + 64 * 11 + 3 * 300 + 64 * 5, 9 * 1000 + 72 * 11 + 5 * 300 + 96 * 5])
        self.assertEqual(rows[0]["time_us"], rows[5]["time_us"])
        # NICs and cables lie ready; a NIC that none replaces takes its node out. 2 % of 64 are 2.
        rows = self.sweep(*asked, "--set", "failed.nics=0,2 %", "--set", "spare.nics=0,2")
        self.assertEqual([int(row["ranks"]) // 8 for row in rows], [8, 8, 6, 8])
        self.assertEqual([float(row["cost"]) - costs[0] for row in rows], [0, 20, 0, 20])
        # 4 uplinks for 32 NICs, each hop of the ring over one; half of the 8 in all have failed.
        (self.here / FAST).write_text(FAST_TEXT.replace("1 MiB", "64 MiB"))
        rows = self.sweep(*asked, "--set", "network.oversubscription=8", "--set", "network.placement=round-robin",
                          "--set", "failed.uplinks=0,50 %", "--set", "spare.uplinks=0,4")
        self.assertEqual([float(row["cost"]) - float(rows[0]["cost"]) for row in rows], [0, 20, 0, 20])
        times = [float(row["time_us"]) for row in rows]
        self.assertEqual([times[0], times[1], times[3]], [times[0]] * 3)
        self.assertGreater(times[2], times[0] * 1.5)
        self.refused(["sweep", FAST, *asked, "--set", "failed.nodes=9"],
                     "failed.nodes: '9' is not a whole number from 0 to 8, all that there are, or a share of them such as 2 %")

    def test_uplinks_of_spines_are_an_axis(self):
        # Pods of a leaf and 4 nodes; of 16 links to cores for 32 NICs 8 and 4 are left.
        (self.here / FAST).write_text(FAST_TEXT.replace("1 MiB", "64 MiB"))
        run = weft("sweep", FAST, "--set", "nodes=8", "--set", "network.kind=fat-tree", "--set", "network.ports=64",
                   "--set", "network.placement=round-robin", "--set", "network.spines=2",
                   "--set", "network.spine_down=16", "--set", "network.spine_up=8", "--set",
                   "network.failed_uplinks=none,spine0:2+spine1:6,spine2:6+spine3:6,spine2:8", cwd=self.here)
        self.assertEqual(run.returncode, 2)  # a point is refused
        rows = rows_of(run.stdout.decode())
        times = [float(row["time_us"]) for row in rows[:3]]
        self.assertGreater(times[1], times[0] * 1.2)
        self.assertGreater(times[2], times[1] * 1.5)
        self.assertIn("8 of the 8 uplinks of spine2; one has to be left", rows[3]["not_run"])

    def test_uplinks_that_a_network_lacks_are_a_reason_in_the_row(self):
        # Whatever is set first: no row of a network with failures is that of a healthy one.
        failed = ("--set", "network.failed_uplinks=spine0:1,leaf0:1")
        kinds = ("--set", "network.kind=fat-tree,leaf-spine,one-switch")
        for axes in ((*failed, *kinds), (*kinds, *failed)):
            run = weft("sweep", FAST, "--set", "nodes=8", "--set", "network.ports=64", *axes, cwd=self.here)
            self.assertEqual(run.returncode, 2)
            rows = rows_of(run.stdout.decode())
            self.assertEqual(len(rows), 6)
            for row in rows:
                kind, down = row["network.kind"], row["network.failed_uplinks"]
                reason = ("belongs to leaf-spine, rail-optimised and fat-tree" if kind == "one-switch"
                          else "belongs to networks of three tiers" if (kind, down) == ("leaf-spine", "spine0:1")
                          else "")
                self.assertIn(reason, row["not_run"])
                self.assertEqual(bool(row["not_run"]), bool(reason), row)

    def test_what_failed_is_of_the_scenarios_nodes_and_of_all_axes(self):
        # The topology has 2 nodes, the scenario 4.
        rows = rows_of(self.ok("sweep", FAST, "--set", "failed.nodes=2,3"))
        self.assertEqual([int(row["ranks"]) // 8 for row in rows], [2, 1])
        rows = rows_of(self.ok("sweep", FAST, "--set", "failed.uplinks=2,4", "--set", "nodes=16", *CLOS))
        self.assertEqual(len(rows), 2)
        (self.here / "set.yaml").write_text(FAST_TEXT.replace("set: {", "set: {failed.nodes: 3, "))
        self.assertEqual(weft("check", "set.yaml", cwd=self.here).returncode, 0)
        self.assertEqual(weft("nccl", H100, "--nodes", "4", "--set",
                              "failed.nodes=1", "--json", "-", cwd=self.here).stdout,
                         weft("nccl", H100, "--nodes", "3", "--json", "-",
                              cwd=self.here).stdout)
        self.refused(["perftest", H100, "--set", "failed.nodes=1"],
                     "failed.nodes: is of NCCL's operations on whole clusters (weft run)")

    def test_spares_that_cannot_be_bought_are_a_reason_in_the_row(self):
        # 16 hosts are all that a fat tree of 4 ports holds; of one leaf there are no uplinks.
        asked = ("--set", "nic.count=1", "--set", "gpu.count=1", "--set", "network.kind=fat-tree", "--set", "network.ports=4",
                 "--prices", "prices.yaml")
        (self.here / "prices.yaml").write_text(PRICES.replace("ports: 64, ", ""))
        run = weft("sweep", FAST, *asked, "--set", "nodes=16", "--set", "spare.nodes=0,1", cwd=self.here)
        self.assertEqual(run.returncode, 2)
        bought, not_bought = rows_of(run.stdout.decode())
        self.assertTrue(bought["cost"])
        self.assertIn("do not fit, at most 16 do", not_bought["not_run"])
        self.refused(["sweep", FAST, *CLOS, "--set", "spare.uplinks=1", "--prices", "prices.yaml"],
                     "spare.uplinks: '1' is not a whole number from 0 to 0, all that there are, or a share of them such as 2 %")

    def test_a_part_without_a_price_is_refused_before_anything_runs(self):
        for without, what in (("  - {is: switch, ports: 64, cost: 300, watts: 40}\n", "switch of 64 ports (part quantum-2)"),
                              ("  - {is: nic, part: connectx-7, cost: 10, watts: 2}\n", "nic (part connectx-7)"),
                              ("  - {is: switch-cable, cost: 5}\n", "switch-cable of 30 m (tier leaf)")):
            (self.here / "prices.yaml").write_text(PRICES.replace(without, ""))
            run = weft("sweep", FAST, *CLOS, "--set", "nodes=16", "--prices", "prices.yaml", "--csv", "out.csv",
                       cwd=self.here)
            self.assertEqual((run.returncode, run.stdout), (2, b""))
            self.assertTrue(run.stderr.decode().startswith(f"error: prices.yaml: no price of a {what}, of which there are "),
                            run.stderr)
            self.assertFalse((self.here / "out.csv").exists())

    def test_bad_lists(self):
        for text, expected in (
                ("", "is empty"),
                (PRICES.replace("currency: EUR\n", ""), ":1:1: missing key 'currency'"),
                (PRICES.replace("is: node", "is: rack"),
                 ":4:6: parts[0].is: 'rack' is not bought; known: nic, nic-cable, node, switch, switch-cable"),
                (PRICES.replace("cost: 1000", "cost: -1"), ":4:16: parts[0].cost: '-1' is not a number from 0 to 1e12"),
                (PRICES.replace("cost: 1000", "cost: much"), ":4:16: parts[0].cost: 'much' is not a number from 0 to 1e12"),
                (PRICES.replace("watts: 100", "kW: 1"), ":4:28: parts[0].kW: unknown key; "),
                (PRICES.replace("is: nic-cable", "is: nic-cable, ports: 2"), ":7:21: parts[3].ports: belongs to a switch"),
                (PRICES.replace("is: nic-cable", "is: nic-cable, tier: leaf"),
                 ":7:21: parts[3].tier: belongs to a switch-cable"),
                (PRICES.replace("is: switch-cable", "is: switch-cable, tier: spin"),
                 ":8:24: parts[4].tier: 'spin' is no tier; known: core, leaf, spine"),
                (PRICES.replace("is: switch-cable", "is: switch-cable, up_to: -3 m"), ":8:24: parts[4].up_to: "),
                (PRICES.replace("is: switch,", "is: switch, up_to: 3 m,"), ":6:18: parts[2].up_to: belongs to a cable"),
                (PRICES.replace("is: nic-cable", "is: nic-cable, up_to: 3"), ":7:21: parts[3].up_to: ")):
            (self.here / "prices.yaml").write_text(text)
            run = weft("sweep", FAST, "--prices", "prices.yaml", cwd=self.here)
            self.assertEqual((run.returncode, run.stdout), (2, b""))
            self.assertTrue(run.stderr.decode().startswith("error: prices.yaml" + (": " if not text else "") + expected),
                            (run.stderr, expected))
        self.refused(["sweep", FAST, "--pareto"], "--pareto: needs --prices FILE, of what is fast against cost")
        self.refused(["sweep", FAST, "--tolerance", "0.1"], "--tolerance: is of --pareto")
        (self.here / "prices.yaml").write_text(PRICES)
        for wrong in ("2 %", "1", "x"):
            self.refused(["sweep", FAST, "--pareto", "--prices", "prices.yaml", "--tolerance", wrong],
                         f"--tolerance '{wrong}': write a share from 0 to below 1")

    def test_the_front(self):
        rows = self.sweep(*CLOS, *GRID, "--pareto", "--tolerance", "0")
        self.assertEqual({row["pareto"] for row in rows}, {"yes", "no"})
        for row in rows:
            better = [other for other in rows
                      if float(other["busbw_GBps"]) >= float(row["busbw_GBps"]) and float(other["cost"]) <= float(row["cost"])
                      and (other["busbw_GBps"], other["cost"]) != (row["busbw_GBps"], row["cost"])]
            self.assertEqual(row["pareto"], "no" if better else "yes", row)
        # Among clusters of one size only: the smaller one is always cheaper.
        sizes = self.sweep(*CLOS, "--set", "nodes=2,4", "--pareto", "--tolerance", "0")
        self.assertEqual([row["pareto"] for row in sizes], ["yes", "yes"])

    def test_times_that_the_model_does_not_tell_apart_are_equal_on_it(self):
        asked = ("sweep", FAST, *CLOS, *GRID, "--prices", "prices.yaml", "--pareto")
        for options, share in (((), 0.02), (("--tolerance", "0.3"), 0.3)):
            run = weft(*asked, *options, cwd=self.here)
            self.assertIn(f"note: pareto: times that differ by {share * 100:g} % or less count as equal (--tolerance)\n",
                          run.stderr.decode())
            rows = [(float(row["time_us"]), float(row["cost"]), row["pareto"]) for row in rows_of(run.stdout.decode())]
            front = [row for row in rows if row[2] == "yes"]
            for time, cost, mark in rows:
                as_fast = [other for other in front if other[0] <= time * (1 + share) and other[1] <= cost]
                cheaper = [other for other in as_fast if other[1] < cost]
                self.assertTrue(as_fast)
                self.assertFalse(mark == "yes" and cheaper, (time, cost, cheaper))

    def test_counting_parts_can_be_stopped(self):
        run = weft("sweep", FAST, *CLOS, "--prices", "prices.yaml", "--time-limit", "1ns", cwd=self.here)
        self.assertEqual((run.returncode, run.stdout, run.stderr.decode()),
                         (130, b"", "stopped: after --time-limit 1ns while parts were counted; nothing is written\n"))

    def test_other_prices_are_other_points(self):
        self.ok("sweep", FAST, *CLOS, "--prices", "prices.yaml", "--csv", "out.csv")
        (self.here / "prices.yaml").write_text(PRICES.replace("1000", "2000"))
        self.ok("sweep", FAST, *CLOS, "--prices", "prices.yaml", "--csv", "out.csv")
        row, = rows_of((self.here / "out.csv").read_text())
        self.assertGreater(float(row["cost"]), 8000)


class Digest(CapacityTest):
    def test_all_that_decides_a_point_is_in_its_digest(self):
        def digest(*arguments, **files):
            for name, text in files.items():
                (self.here / name.replace("_", ".")).write_text(text)
            row, = rows_of(self.ok("sweep", arguments[0] if arguments else FAST, *arguments[1:]))
            (self.here / FAST).write_text(FAST_TEXT)
            return row["point"]
        shutil.copy(self.root / "topologies/hgx-h100-8nic.yaml", self.here / "t.yaml")
        own = FAST_TEXT.replace("../../topologies/hgx-h100-8nic.yaml", "t.yaml")
        topology = (self.here / "t.yaml").read_text()
        seen = [digest(), digest(FAST, "--set", "wire.mtu=1024"), digest(FAST, "--set", "nic.count=4"),
                digest(FAST, "--gpu", "h200-sxm"), digest(FAST, "--launch", "graph"), digest(FAST, "--seed", "2"),
                digest(FAST, "--env", "NCCL_BUFFSIZE=1048576"), digest(FAST, "--nccl-version", "2.27.7"),
                digest(FAST, *CLOS, "--prices", "prices.yaml"), digest(FAST, *CLOS),
                digest(FAST, *CLOS, "--prices", "prices.yaml", prices_yaml=PRICES + "# later\n"),
                digest(fast_yaml=FAST_TEXT.replace("1 MiB", "2 MiB")), digest(fast_yaml=own),
                digest(fast_yaml=own, t_yaml=topology + "# another\n")]
        self.assertEqual(len(set(seen)), len(seen))
        # How it is run is not.
        self.assertEqual(digest(FAST, "--threads", "1"), seen[0])
        self.assertEqual(digest(FAST, "--time-limit", "100s"), seen[0])


class Shards(CapacityTest):
    def shard(self, number, of, *more):
        return self.ok("sweep", FAST, *GRID, *more, "--csv", "out.csv", "--shard", f"{number}/{of}")

    def test_merged_are_the_bytes_of_one_sweep(self):
        for of, more in ((1, ()), (3, ()), (5, CLOS + ("--prices", "prices.yaml", "--pareto", "--tolerance", "0")), (40, ())):
            with self.subTest(of=of):
                whole = self.ok("sweep", FAST, *GRID, *more)
                running = [subprocess.Popen([cli_test.WEFT, "sweep", FAST, *GRID, *more, "--csv", "out.csv", "--shard",
                                             f"{number}/{of}"], cwd=self.here) for number in range(1, of + 1)]
                self.assertEqual({process.wait(timeout=LIMIT_S) for process in running}, {0})
                for _ in range(2):
                    self.ok("sweep", FAST, *GRID, *more, "--csv", "out.csv", "--merge", str(of))
                    self.assertEqual((self.here / "out.csv").read_text(), whole)
                for file in self.here.glob("out.csv*"):
                    file.unlink()

    def test_what_is_missing_is_named(self):
        for number in (1, 4):
            self.shard(number, 4)
        self.refused(["sweep", FAST, *GRID, "--csv", "out.csv", "--merge", "4"],
                     "out.csv: shards 2/4, 3/4 are not there or not finished; run them (--shard 2/4) and merge again")
        self.shard(2, 4)
        # A table that lost its end is not finished.
        self.shard(3, 4)
        table = (self.here / "out.csv.3-of-4").read_text()
        (self.here / "out.csv.3-of-4").write_text("".join(table.splitlines(keepends=True)[:-1]))
        self.refused(["sweep", FAST, *GRID, "--csv", "out.csv", "--merge", "4"],
                     "out.csv: shards 3/4 are not there or not finished; run them (--shard 3/4) and merge again")
        # Nor is one of another question.
        (self.here / FAST).write_text(FAST_TEXT.replace("1 MiB", "2 MiB"))
        run = weft("sweep", FAST, *GRID, "--csv", "out.csv", "--merge", "4", cwd=self.here)
        self.assertRegex(run.stderr, rb"shards 1/4, 2/4, 3/4, 4/4 are not there")

    def test_bad_shards(self):
        for shard in ("3", "0/2", "3/2", "1/0", "a/b", "1/2/3", "-1/2", "1/2x", "/2", "1/100001"):
            self.refused(["sweep", FAST, "--shard", shard], f"--shard '{shard}': write I/N, the I-th of N shards, such as 3/8")
        self.refused(["sweep", FAST, "--shard", "1/2", "--merge", "2"], "--merge and --shard: one after the other, not at once")
        self.refused(["sweep", FAST, "--merge", "2"], "--merge: needs --csv FILE, as the shards had it")

    def test_killed_at_random_moments_every_shard_goes_on(self):
        whole = self.ok("sweep", FAST, *GRID)
        dice = random.Random(7)
        for number in (1, 2):
            part = self.here / f"out.csv.{number}-of-2.part"
            for _ in range(4):
                enough = dice.randrange(1, 2000)
                process = subprocess.Popen([cli_test.WEFT, "sweep", FAST, *GRID, "--csv", "out.csv", "--shard", f"{number}/2"],
                                           cwd=self.here)
                while process.poll() is None and (cli_test.size_of(part) or 0) < enough:
                    time.sleep(0.001)
                process.send_signal(signal.SIGKILL)
                process.wait()
            self.shard(number, 2)
            self.assertFalse(part.exists())
        self.ok("sweep", FAST, *GRID, "--csv", "out.csv", "--merge", "2")
        self.assertEqual((self.here / "out.csv").read_text(), whole)

    def test_the_script_for_slurm_is_a_shard_of_its_task(self):
        whole = self.ok("sweep", FAST, *GRID)
        for number in (1, 2, 3):
            environment = {**os.environ, "WEFT": cli_test.WEFT, "SLURM_ARRAY_TASK_ID": str(number),
                           "SLURM_ARRAY_TASK_COUNT": "3"}
            subprocess.run([cli_test.SOURCE / "tools/sweep.sbatch", FAST, *GRID, "--csv", "out.csv"], cwd=self.here,
                           env=environment, check=True, timeout=LIMIT_S)
        self.ok("sweep", FAST, *GRID, "--csv", "out.csv", "--merge", "3")
        self.assertEqual((self.here / "out.csv").read_text(), whole)
        # Submitted again by itself, a task's shard is the same one.
        os.remove(self.here / "out.csv")
        os.remove(self.here / "out.csv.2-of-3")
        subprocess.run([cli_test.SOURCE / "tools/sweep.sbatch", FAST, *GRID, "--csv", "out.csv"], cwd=self.here,
                       env={**environment, "SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "1", "SHARDS": "3"},
                       check=True, timeout=LIMIT_S)
        self.ok("sweep", FAST, *GRID, "--csv", "out.csv", "--merge", "3")
        self.assertEqual((self.here / "out.csv").read_text(), whole)


class Long(CapacityTest):
    def test_a_sweep_says_beforehand_how_long_it_takes(self):
        (self.here / "long.yaml").write_text(FAST_TEXT.replace("nodes: 4", "nodes: 128").replace("1 MiB", "256 MiB, 512 MiB, 1 GiB"))
        run = weft("sweep", "long.yaml", "--set", "wire.rate=100 Gb/s,200 Gb/s,400 Gb/s", "--set", "nccl.decisions=nccl",
                   "--set", "network.kind=rail-optimised", "--set", "network.ports=64", "--threads", "1", "--time-limit", "5s",
                   cwd=self.here)
        self.assertRegex(run.stderr.decode(), r"\A3 points, if all are like the first: up to about \d+ s of one core\n")


class TwoNodes(CapacityTest):
    NOTE = "is asked of two nodes, which say little of more"

    def said(self, scenario, *settings):
        """The notes of scale, less the key that they name."""
        notes = self.result(scenario, *(a for s in settings for a in ("--set", s)))["notes"]
        return [note for note in notes if self.NOTE in note]

    def test_a_question_of_scale_that_is_asked_of_two_nodes_is_told_so(self):
        for key in ("nic.count=4", "network.kind=one-switch", "nic.rate=200 Gb/s", "wire.rate=200 Gb/s",
                    "nic.pcie_gen=4"):
            with self.subTest(key):
                note, = self.said(FAST, "nodes=2", key)
                self.assertTrue(note.startswith(key.split("=")[0] + " " + self.NOTE), note)
        for settings in (("nodes=4", "nic.count=4"), ("nodes=2", "wire.mtu=1024"), ("nodes=2", "nic3.trained_width=8"), ("nodes=1", "nic.rate=200 Gb/s")):
            self.assertEqual(self.said(FAST, *settings), [])

    def test_it_speaks_of_what_runs(self):
        tree, ring, all_to_all = "sends it to two children", "a ring asks about as much", "an all-to-all's bytes stay"
        links = "two nodes load few of the links"
        (self.here / "all-to-all.yaml").write_text((self.here / FAST).read_text().replace("allreduce", "alltoall"))
        for scenario, settings, words in (
                (FAST, ["nccl.algo=Tree", "nic.rate=200 Gb/s"], {tree}),
                (FAST, ["nccl.algo=Ring", "nic.rate=200 Gb/s"], {ring}),
                (FAST, ["nccl.algo=Ring", "network.kind=one-switch"], {ring, links}),
                ("all-to-all.yaml", ["nic.rate=200 Gb/s"], {all_to_all}),
                ("all-to-all.yaml", ["network.kind=one-switch", "gpu.count=1"], {links})):
            with self.subTest(settings=settings, scenario=scenario):
                note, = self.said(scenario, "nodes=2", *settings)
                self.assertEqual({part for part in (tree, ring, all_to_all, links) if part in note}, words)
        # One GPU a node sends all of it to the other node, as to more.
        self.assertEqual(self.said("all-to-all.yaml", "nodes=2", "gpu.count=1", "nic.rate=200 Gb/s"), [])

    def test_and_so_is_a_sweep_of_it(self):
        for axis in ("nic.count=4,8", "nic.rate=200 Gb/s,400 Gb/s"):
            run = weft("sweep", FAST, "--set", "nodes=2", "--set", axis, cwd=self.here)
            self.assertEqual(run.returncode, 0)
            self.assertRegex(run.stderr.decode(), rf"\Anote: {axis.split('=')[0]} " + self.NOTE + r"[^\n]*\n\Z")
            self.ok("sweep", FAST, "--set", "nodes=2,4", "--set", axis)

    def test_and_what_the_answer_hangs_on(self):
        (self.here / "wire.yaml").write_text(FAST_TEXT.replace("hgx-h100-8nic", "hgx-h100-4nic"))  # which its wires limit
        asked = ("sensitivity", "wire.yaml", "--size", "256M", "--params", "wire.rate,nccl.launch_simple")
        self.assertRegex(self.ok(*asked, "--set", "nodes=2"), "# note: wire.rate " + self.NOTE)
        self.assertNotIn(self.NOTE, self.ok(*asked, "--set", "nodes=4"))
        self.assertNotIn(self.NOTE, self.ok(*asked[:-1], "nccl.launch_simple", "--set", "nodes=2"))
        text = self.ok(*asked, "--set", "nodes=2", "--set", "nic.count=2")
        self.assertEqual(text.count(self.NOTE), 1)

    def test_a_nic_carries_twice_as_much_between_more_nodes(self):
        """What the note says, of a tree: bytes out of the busiest NIC."""
        def sent(nodes):
            row, = self.result(FAST, "--set", "nccl.algo=Tree", "--set", f"nodes={nodes}")["results"]
            return row["nic_GBps"] * row["time_us"]
        self.assertAlmostEqual(sent(8) / sent(2), 2, delta=0.05)


class Jobs(CapacityTest):
    TEXT = """scenario: jobs
topology: ../../topologies/hgx-h100-8nic.yaml
nodes: 16
jobs:
  - {job: a, nodes: %s, op: alltoall, size: 16 MiB}
  - {job: b, nodes: %s, op: alltoall, size: 16 MiB}
memory_paths: [gdr]
env: {NCCL_NVLS_ENABLE: "0"}
set: {network.kind: leaf-spine, network.ports: 64, network.leaf_down: 32, network.leaf_up: 1, gpu.count: 1, nic.count: 8}
"""

    def jobs(self, a, b, *more):
        (self.here / "jobs.yaml").write_text(self.TEXT % (a, b))
        return {row["job"]: row for row in self.result("jobs.yaml", *more)["results"]}

    def test_jobs_of_their_own_leaves_do_not_meet(self):
        for row in self.jobs("0-3", "4-7").values():  # 4 nodes a leaf
            self.assertAlmostEqual(row["slowdown"], 1, delta=1e-9)
            self.assertAlmostEqual(row["time_us"], row["alone_us"], delta=1e-9)

    def test_jobs_that_share_uplinks_share_their_rate(self):
        rows = self.jobs('"0,1,4,5"', '"2,3,6,7"')
        for row in rows.values():
            self.assertGreater(row["slowdown"], 1.5)
            self.assertLess(row["slowdown"], 2.05)
            self.assertIn("leaf", row["limited_by"][0]["where"])
        self.assertAlmostEqual(rows["a"]["time_us"], rows["b"]["time_us"], delta=0.01 * rows["a"]["time_us"])

    def test_alone_is_what_a_cluster_of_its_nodes_takes(self):
        alone = self.jobs("0-3", "4-7")["a"]["alone_us"]
        (self.here / "one.yaml").write_text(
            self.TEXT.split("jobs:\n  -")[0].replace("nodes: 16", "nodes: 4") +
            "workload: {op: alltoall, sizes: [16 MiB]}\n" + self.TEXT[self.TEXT.index("memory_paths"):] +
            "")
        row, = self.result("one.yaml", "--launch", "graph")["results"]
        self.assertAlmostEqual(alone, row["time_us"], delta=0.02 * alone)  # one launch, where weft run has them follow each other

    def test_every_algorithm_runs_where_the_job_is(self):
        for algo in ("Ring", "Tree", "NVLSTree"):
            with self.subTest(algo):
                (self.here / "jobs.yaml").write_text(
                    self.TEXT.replace("op: alltoall", "op: allreduce").replace("gpu.count: 1, ", "")
                    .replace('env: {NCCL_NVLS_ENABLE: "0"}\n', "") % ("8-11", '"15,12-14"'))
                rows = self.result("jobs.yaml", "--set", "nccl.algo=" + algo)["results"]
                self.assertEqual([row["algo"] for row in rows], [algo] * 2)
                for row in rows:  # leaves of their own; two orders of four nodes
                    self.assertAlmostEqual(row["slowdown"], 1, delta=1e-9)
                self.assertAlmostEqual(rows[0]["time_us"], rows[1]["time_us"], delta=0.02 * rows[0]["time_us"])

    def test_tables(self):
        (self.here / "jobs.yaml").write_text(self.TEXT % ("0-3", "4-7"))
        text = self.ok("run", "jobs.yaml", "--csv", "out.csv")
        self.assertRegex(text, r"(?m)^# job +op +path +algo +limited by +size \(B\) +nodes +time")
        self.assertRegex(text, r"(?m)^a +alltoall +gdr ")
        self.assertEqual([row["job"] for row in rows_of((self.here / "out.csv").read_text())], ["a", "b"])

    def test_bad_jobs(self):
        for a, b, expected in (("0-3", "3-5", "jobs.yaml:6:14: jobs[1].nodes: node 3 has a job already"),
                               ("0-3", "15-16", "jobs.yaml:6:5: b: node 16 of 16; the nodes are 0 to 15"),
                               ("0-3", "4..6", "jobs.yaml:6:14: jobs[1].nodes: '4..6': write nodes as 0-3,8"),
                               ("0-3", "6-4", "jobs.yaml:6:14: jobs[1].nodes: '6-4': write nodes as 0-3,8"),
                               ("0-3", "4294967296", "jobs.yaml:6:14: jobs[1].nodes: '4294967296': write nodes as 0-3,8")):
            (self.here / "jobs.yaml").write_text(self.TEXT % (a, b))
            self.refused(["run", "jobs.yaml"], expected)
        (self.here / "jobs.yaml").write_text(self.TEXT % ("0-3", "4-7"))
        (self.here / "large.yaml").write_text((self.TEXT % ("0-3", "4-7")).replace("MiB", "GiB"))
        large = weft("run", "large.yaml", "--fidelity", "packet", cwd=self.here)
        self.assertEqual(large.returncode, 2)
        self.assertIn(b"take smaller sizes, fewer nodes or --fidelity fluid, or --force it", large.stderr)
        self.refused(["run", "jobs.yaml", "--set", "nic.cable_loss=0.01"],
                     "../../topologies/hgx-h100-8nic.yaml:35:5: nic.cable_loss of nic0: losses need --fidelity packet")
        (self.here / "jobs.yaml").write_text(
            (self.TEXT % ("0-3", "4-7")).replace('ENABLE: "0"', 'ENABLE: "0", NCCL_PROTO: LL'))
        run = weft("run", "jobs.yaml", "--env", "NCCL_PROTO=LX", cwd=self.here)
        self.assertEqual(run.returncode, 2)
        self.assertNotIn(b"jobs.yaml:8", run.stderr)  # not where the scenario says another

    def test_what_has_no_effect_is_said(self):
        (self.here / "jobs.yaml").write_text(self.TEXT % ("0-1", "2-3"))
        notes = self.result("jobs.yaml", "--set", "nccl.launch=single", "--set", "nccl.proto=Simple", "--seed", "2",
                            "--set", "wire.pfc_xoff=1 MiB", "--env", "NCCL_IB_TIMEOUT=20")["notes"]
        for note in ("no effect on jobs, whose launches follow each other on the GPUs: nccl.launch",
                     "set by the user in place of NCCL's own choice: nccl.proto=Simple",
                     "no effect without --fidelity packet: wire.pfc_xoff",
                     "NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT have no effect: losses need --fidelity packet"):
            self.assertIn(note, notes)


if __name__ == "__main__":
    cli_test.main(__doc__)
