#!/usr/bin/env python3
"""`weft expect`: what a healthy machine should give, floors, and measurements held against them.

    expect_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import json
import re
import unittest

import cli_test
from cli_test import CliTest, weft

H100 = "../../topologies/hgx-h100-8nic.yaml"
LINK = ("1a:00.0", "LnkSta:\tSpeed 32GT/s (ok), Width x16 (ok)", "LnkSta:\tSpeed 32GT/s (ok), Width x4 (downgraded)")
BOGUS_USAGE = (
    (["expect"], "machine is required (see weft --help)"),
    (["expect", "nowhere.yaml"], "nowhere.yaml: no such file"),
    (["expect", H100, "--tool", "nvbandwidth"],
     "--tool nvbandwidth: no interval can be given: the copies that weft was held against are of one machine, and its "
     "parameters were made from them; weft copies predicts without one"),
    (["expect", H100, "--op", "write_bw"],
     "'write_bw' is not an operation; known: allgather, allreduce, alltoall, broadcast, reduce, reducescatter, sendrecv"),
    (["expect", H100, "--tool", "perftest", "--op", "allreduce"],
     "--op 'allreduce': perftest's are read_bw, read_bw_bidirectional, read_lat, send_bw, send_bw_bidirectional, "
     "send_lat, write_bw, write_bw_bidirectional, write_lat"),
    (["expect", H100, "--op", "allreduce,allreduce"], "--op 'allreduce': given twice"),
    (["expect", H100, "--size", "2M,1M"], "--size 1 MiB: sizes must ascend, none given twice"),
    (["expect", H100, "--memory", "host"], "--memory host: of nccl-tests it is gdr or host-staged"),
    (["expect", H100, "--tool", "perftest", "--memory", "host-staged"],
     "--memory host-staged: of perftest it is gdr or host"),
    (["expect", H100, "--tool", "perftest", "--nodes", "3"], "--nodes: perftest runs between 2"),
    (["expect", H100, "--qps", "2"], "--qps and --tx-depth go with --tool perftest"),
    (["expect", H100, "--as", "ranks=8"], "--as goes with --measured"),
    (["expect", H100, "--measured", "log.txt", "--gate", "g.json"], "--gate goes without --measured"),
    (["expect", H100, "--nodes", "2", "--gate", "g.json", "--env", "NCCL_IB_DISABLE=1"],
     "NCCL_IB_DISABLE=1: NCCL moves data between nodes over TCP sockets, which weft does not model; unset it, or ask for "
     "one node"),
    (["expect", H100, "--nodes", "2", "--size", "1G", "--gate", "g.json", "--env", "NCCL_NET_GDR_READ=0"],
     "--gate: no row has a floor; the first: allreduce of 1 GiB, not validated: no published run with GPUDirect RDMA at "
     "some ends of NCCL's rings only (NCCL_NET_GDR_READ=0: the NIC does not read GPU memory)"),
    (["expect", H100, "--json", "-", "--gate", "-"], "--gate and --json cannot both go to standard output"),
)


def log(busbw, op="all_reduce_perf", hosts=2, factor=1.875, gpus=8, product="NVIDIA H100"):
    """What nccl-tests prints; `busbw` by size, GB/s."""
    lines = [f"# Collective test starting: {op}", "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) graph: 0",
             "# Using devices"]
    lines += [f"#  Rank {rank:2} Group  0 Pid   1 on    node{rank // gpus} device  {rank % gpus} [0x19] {product}"
              for rank in range(gpus * hosts)]
    lines += ["#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw",
              "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)"]
    for size, value in busbw.items():
        us = size / (value / factor) / 1e3
        lines.append(f"{size} {size // 4} float sum -1 {us:.6f} {value / factor:.4f} {value:.4f} 0 {us:.6f} 1 1 0")
    return "\n".join(lines) + "\n"


class Expect(CliTest):
    def expect(self, *arguments):
        return weft("expect", *arguments, cwd=self.here)

    def results(self, *arguments):
        return json.loads(self.ok("expect", *arguments, "--json", "-"))["results"]

    def gate(self, *arguments):
        self.ok("expect", H100, "--nodes", "2", *arguments, "--gate", "g.json")
        return json.loads((self.here / "g.json").read_text())

    def test_usage(self):
        for arguments, expected in BOGUS_USAGE:
            with self.subTest(arguments):
                self.refused(arguments, expected)

    def test_no_number_without_an_interval(self):
        for nodes, op in ((1, "allreduce,alltoall"), (2, "allreduce,allgather,alltoall"), (12, "allreduce")):
            for row in self.results(H100, "--nodes", str(nodes), "--op", op, "--size", "64K,64M"):
                with self.subTest(nodes=nodes, row=(row["op"], row["bytes"])):
                    self.assertLessEqual(0 < row["low"], row["busbw_GBps"] <= row["high"])
                    self.assertLess(row["low"], row["high"])
                    self.assertEqual("floor_GBps" in row, not row["basis"].startswith("not validated: "))
                    if "floor_GBps" in row:
                        self.assertLessEqual(row["floor_GBps"], row["low"])
                    self.assertEqual((row["nodes"], row["ranks"], row["state"]), (nodes, 8 * nodes, "healthy"))

    def test_the_value_is_that_of_a_run(self):
        (self.here / "s.yaml").write_text(f"scenario: s\ntopology: {H100}\nnodes: 2\nmemory_paths: [gdr]\n"
                                          "workload: {op: allreduce, sizes: [64 MiB]}\n")
        row, = self.results(H100, "--nodes", "2", "--size", "64M")
        run, = self.result("s.yaml")["results"]
        for key in ("op", "bytes", "ranks", "nodes", "memory_path", "algo", "proto", "time_us", "busbw_GBps"):
            self.assertEqual(row[key], run[key], key)

    def test_the_same_bytes_whatever_the_threads(self):
        arguments = ("expect", H100, "--nodes", "2", "--size", "1M,64M", "--json", "-")
        self.assertEqual(self.ok(*arguments, "--threads", "1"), self.ok(*arguments, "--threads", "3"))

    def test_the_table_names_its_basis(self):
        said = self.ok("expect", H100, "--nodes", "2", "--op", "allreduce,alltoall", "--size", "64M")
        self.assertRegex(said, r"(?m)^# \[1\] validated: allreduce, 2 and 3 nodes, 64 MiB and more: \d sites, \d+ points(;.*)?$")
        self.assertRegex(said, r"(?m)^# \[2\] not validated: no published alltoall of several nodes; the upper end is what a "
                               r"link carries: the busiest NIC's wire$")
        self.assertRegex(said, r"(?m)^  alltoall .* -$")

    def test_a_tool_that_is_stated_asks_nothing_of_nccl(self):
        (self.here / "m.csv").write_text("transport,memory_path,hosts,ranks,bytes,busbw_GBps\nnet,gdr,2,2,65536,48.9\n")
        self.ok("expect", H100, "--measured", "m.csv", "--as", "op=write_bw")

    def test_where_nccl_takes_gdr_in_part(self):
        arguments = ("--env", "NCCL_NET_GDR_READ=0", "--nodes", "2", "--size", "64M")
        row, = self.results(H100, *arguments)
        self.assertEqual(row["memory_path"], "nccl")
        (self.here / "log.txt").write_text(log({64 << 20: row["busbw_GBps"]}))
        run = self.expect(H100, "--measured", "log.txt", "--env", "NCCL_NET_GDR_READ=0")
        self.assertIn(b"memory_path nccl: not validated", run.stderr)  # predicted so, and no floor

    def test_hosts_that_nvlink_joins_are_one_node(self):
        (self.here / "log.txt").write_text(log({1 << 30: 300}, gpus=4, product="NVIDIA GB200"))
        rack = ("expect", "../../topologies/gb200-nvl72.yaml", "--measured", "log.txt")
        run = weft(*rack, cwd=self.here)
        self.assertEqual(run.returncode, 2)
        self.assertIn(b"a node of this machine is 18 hosts whose GPUs NVLink joins (no socket link joins their CPUs), so these 2 "
                      b"may be of fewer nodes: --as hosts=1; if each is of another node, --set gpu.count=4", run.stderr)
        below = self.expect(*rack[1:], "--as", "hosts=1")
        self.assertIn(b"1 host by --as, 2 by the list of devices", below.stdout)
        self.assertIn(b"8 GPUs of 2 nodes", self.expect(*rack[1:], "--set", "gpu.count=4").stderr)
        self.refused((*rack, "--as", "hosts=4"), "log.txt:14: hosts: 2 in the file, 4 by --as")

    def test_a_list_of_devices_in_a_topologys_comment_is_none(self):
        (self.here / "m.yaml").write_text("#  Rank  0 Group  0 Pid 1 on node0 device  0 [0x19] NVIDIA A100-SXM4-80GB\n" +
                                          (self.here / H100).read_text())
        self.assertEqual(self.results("m.yaml", "--size", "1G")[0]["busbw_GBps"], self.results(H100, "--size", "1G")[0]["busbw_GBps"])

    def test_a_gate_of_a_virtual_machines_gpus_takes_their_product(self):
        self.ok("expect", "../../topologies/h200-vm.yaml", "--size", "1G", "--gate", "g.json")
        (self.here / "log.txt").write_text(log({1 << 30: 300}, hosts=1, gpus=4, factor=1.5, product="NVIDIA H200"))
        self.assertNotIn(b"the floors of", self.expect("g.json", "--measured", "log.txt").stderr)

    def test_a_gate_is_of_its_machines_gpus(self):
        self.gate("--size", "1G")
        (self.here / "log.txt").write_text(log({1 << 30: 440}, product="NVIDIA B200"))
        self.refused(("expect", "g.json", "--measured", "log.txt"),
                     "log.txt is of NVIDIA B200, the floors of g.json are for h100-sxm")

    def test_as_found_stands_beside_healthy(self):
        said = self.ok("expect", H100, "--nodes", "2", "--size", "64M", "--set", "nic.trained_width=4")
        self.assertIn("as found", said)
        self.assertIn("# as healthy: without nic.trained_width=4\n", said)
        healthy, found = self.results(H100, "--nodes", "2", "--size", "64M", "--set", "nic.trained_width=4")
        self.assertEqual((healthy["state"], found["state"]), ("healthy", "found"))
        self.assertLess(found["busbw_GBps"], 0.7 * healthy["busbw_GBps"])

    def test_evidence_is_a_machine(self):
        text = (cli_test.SOURCE / "tests/data/evidence/lspci-vvv-dell-h100.txt").read_text()
        function, good, bad = LINK
        begin = text.index("\n" + function)
        (self.here / "lspci.txt").write_text(text[:begin] + text[begin:].replace(good, bad, 1))
        healthy, found = self.results("lspci.txt", "--size", "64M")
        self.assertLess(found["busbw_GBps"], healthy["busbw_GBps"])
        said = self.ok("expect", "host7=lspci.txt", "--size", "64M")
        self.assertIn("# as healthy: nic0.trained_width=16\n", said)

    def test_measured_on_a_machine_and_by_its_gate(self):
        gate = self.gate("--size", "1M,64M")
        floors = {floor["bytes"]: floor["floor_GBps"] for floor in gate["floors"]}
        self.assertEqual(set(floors), {1 << 20, 64 << 20})
        for scale, code in ((1.001, 0), (0.99, 4)):
            (self.here / "log.txt").write_text(log({size: scale * floor for size, floor in floors.items()}))
            for machine in (H100, "g.json"):
                with self.subTest(machine, scale=scale):
                    run = self.expect(machine, "--measured", "log.txt")
                    self.assertEqual(run.returncode, code, run.stderr)
                    said = run.stdout.decode()
                    self.assertEqual(said.splitlines()[-1].startswith("# 2 rows: 2 ok, 0 below"), code == 0)
                    if code:
                        self.assertRegex(run.stderr.decode(), r"\Aexpectation missed: 2 of 2 rows are below the floor; the "
                                         r"first: allreduce of 1 MiB, [\d.]+ GB/s, floor [\d.]+\n\Z")

    def test_wrong_values_are_said(self):
        floor, = self.gate("--size", "1G")["floors"]
        text = log({1 << 30: floor["expected_GBps"]})
        wrong = text[:-1].rsplit(" 0 ", 1)[0] + " 4 " + text[:-1].rsplit(" 0 ", 1)[1] + "\n"
        (self.here / "wrong.txt").write_text(wrong)
        self.failed("wrong.txt", f"wrong.txt:{wrong.count(chr(10))}: 4 wrong values (#wrong), 1 of 1 rows have some: "
                    "results are corrupt, and their times not to be trusted")

    def failed(self, file, why):
        for machine in H100, "g.json":
            run = self.expect(machine, "--measured", file, "--json", "j.json")
            self.assertEqual((run.returncode, run.stderr.decode()), (4, f"expectation missed: {why}\n"))
            self.assertIn(f"# note: {why}\n", run.stdout.decode())
            self.assertEqual(json.loads((self.here / "j.json").read_text())["failures"], [why])

    def test_a_run_that_failed_does_not_pass(self):
        small, _ = self.gate("--size", "1G,2G")["floors"]
        text = log({1 << 30: small["expected_GBps"]})
        error = "node0: Test NCCL failure common.cu:303 'unhandled system error / '"
        line = text.count("\n") + 1
        for name, more, why in (("crashed.txt", error, "nccl-tests ended by an error: " + error),
                                ("bounds.txt", "# Out of bounds values : 10 FAILED",
                                 "10 values out of bounds: results are corrupt, and their times not to be trusted")):
            with self.subTest(name):
                (self.here / name).write_text(f"{text}{more}\n")
                self.failed(name, f"{name}:{line}: {why}")
        (self.here / "log.txt").write_text(text)
        note = ("# note: log.txt: no row for 1 of 2 floors of g.json; the first: allreduce of 2 GiB, 16 GPUs of 2 nodes, "
                "memory_path gdr\n")
        self.assertIn(note, self.ok("expect", "g.json", "--measured", "log.txt"))
        self.assertNotIn("no row for", self.ok("expect", "g.json", "--measured", "log.txt", "--size", "1G"))
        self.assertNotIn("no row for", self.ok("expect", H100, "--measured", "log.txt"))

    def test_operations_and_sizes_choose_rows(self):
        gate = self.gate("--size", "1M,64M")
        low, high = (floor["floor_GBps"] for floor in gate["floors"])
        (self.here / "log.txt").write_text(log({1 << 20: 0.5 * low, 64 << 20: high * 1.01}))
        for machine in (H100, "g.json"):
            self.assertEqual(self.expect(machine, "--measured", "log.txt").returncode, 4)
            self.assertEqual(self.expect(machine, "--measured", "log.txt", "--size", "64M").returncode, 0)
            self.refused(["expect", machine, "--measured", "log.txt", "--op", "allgather"],
                         "log.txt: no row is of the operations, sizes and nodes asked for")

    def test_rows_inside_a_node_are_held_against_nvlink(self):
        row, = self.results(H100, "--nodes", "1", "--size", "64M")
        (self.here / "log.txt").write_text(log({64 << 20: row["busbw_GBps"]}, hosts=1, factor=1.75))
        judged, = json.loads(self.ok("expect", H100, "--measured", "log.txt", "--json", "-"))["judged"]
        self.assertEqual((judged["verdict"], judged["nodes"], judged["floor_GBps"]), ("ok", 1, row["floor_GBps"]))
        self.assertAlmostEqual(judged["measured_GBps"], judged["busbw_GBps"], places=2)

    def test_a_gate_that_judged_nothing_does_not_pass(self):
        (self.here / "log.txt").write_text(log({64 << 20: 0.01}, op="alltoall_perf", factor=0.9375))
        run = self.expect(H100, "--measured", "log.txt", "--json", "j.json")
        self.assertEqual(run.returncode, 2)
        self.assertIn("no floor", run.stdout.decode())
        self.assertEqual(json.loads((self.here / "j.json").read_text())["judged"][0]["verdict"], "no floor")
        self.assertEqual(run.stderr.decode(), f"error: log.txt: nothing was judged: no row of 1 has a floor on {H100}; the "
                         "first, alltoall of 64 MiB, 16 GPUs of 2 nodes, memory_path gdr: not validated: no published "
                         "alltoall of several nodes; the upper end is what a link carries: the busiest NIC's wire\n")

    def test_rows_of_perftest_are_held_against_their_own_memory(self):
        self.ok("expect", H100, "--tool", "perftest", "--size", "64K", "--gate", "g.json")
        (self.here / "host.csv").write_text("transport,memory_path,hosts,ranks,op,bytes,busbw_GBps,qps\n"
                                            "net,host,2,2,write_bw,65536,49,4\nnet,gdr,2,2,write_bw,65536,49,4\n")
        self.refused(["expect", "g.json", "--measured", "host.csv"],
                     "host.csv: no row has a floor in g.json: the first of 2 is write_bw of 64 KiB, 2 GPUs of 2 nodes, "
                     "memory_path host, qps 4, tx_depth 128; the nearest floor has memory_path gdr, not host; qps 1, not 4")
        for memory, verdict in (("gdr", "ok"), ("host", "no floor")):
            with open(self.here / "host.csv", "a", encoding="utf-8") as table:
                table.write(f"net,{memory},2,2,write_bw,65536,49,1\n")
            judged = json.loads(self.ok("expect", "g.json", "--measured", "host.csv", "--json", "-"))["judged"]
            self.assertEqual((judged[-1]["memory_path"], judged[-1]["qps"], judged[-1]["verdict"]), (memory, 1, verdict))
        said = self.ok("expect", "g.json", "--measured", "host.csv")
        self.assertIn("] the gate has no floor of its memory_path, qps\n", said)
        self.assertIn("] the gate has no floor of its qps\n", said)
        self.assertIn("] the gate has no floor of its memory_path\n", said)

    def test_latency_is_a_time(self):
        row, = self.results(H100, "--tool", "perftest", "--op", "write_lat", "--size", "8")
        self.assertLess(row["low_us"], row["time_us"])
        self.assertLess(row["time_us"], row["high_us"])
        said = self.ok("expect", H100, "--tool", "perftest", "--op", "write_bw,write_lat", "--size", "8")
        self.assertRegex(said, r"(?m)^# test .* #bytes  t_typical \(us\) +low +high +most$")
        numbers = re.search(r"(?m)^  write_lat .* 8 +([\d.]+) +([\d.]+) +([\d.]+) +-$", said).groups()
        for number, key in zip(numbers, ("time_us", "low_us", "high_us")):
            self.assertAlmostEqual(float(number), row[key], places=2)
        (self.here / "lat.csv").write_text("transport,memory_path,hosts,ranks,op,bytes,us\nnet,gdr,2,2,write_lat,8,3.25\n")
        run = self.expect(H100, "--measured", "lat.csv", "--json", "lat.json")
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stdout.decode(), r"(?m)^  write_lat .* 3\.250 +- ")
        judged, = json.loads((self.here / "lat.json").read_text())["judged"]
        self.assertAlmostEqual(judged["measured_us"], 3.25)
        for key in ("time_us", "low_us", "high_us"):
            self.assertAlmostEqual(judged[key], row[key])

    def test_a_perftest_log_is_measured(self):
        text = (cli_test.SOURCE / "tests/data/perftest/ib_write_bw.txt").read_text()
        (self.here / "ib.txt").write_text(text)
        judged = json.loads(self.expect(H100, "--measured", "ib.txt", "--json", "-").stdout)["judged"]
        self.assertTrue(judged)
        self.assertEqual({row["op"] for row in judged}, {"write_bw"})
        self.assertTrue(all(row["low"] < row["high"] for row in judged), judged)

    def test_perftest(self):
        write, = self.results(H100, "--tool", "perftest", "--size", "64K")
        self.assertTrue(write["basis"].startswith("validated: perftest"))
        self.assertAlmostEqual(8 * write["busbw_GBps"], 393, delta=6)
        said = self.ok("expect", H100, "--tool", "perftest", "--size", "64K", "--op", "write_bw,read_bw")
        self.assertRegex(said, r"(?m)^# test +path +basis +limited by +qps +depth +#bytes  BW average \(Gb/s\) +low +high +floor$")
        self.assertRegex(said, r"(?m)^# \[2\] not validated: no published read_bw of several nodes; the upper end is what a "
                               r"link carries: .*$")
        self.assertNotIn("floor_GBps", self.results(H100, "--tool", "perftest", "--size", "64K", "--tx-depth", "1")[0])

    def test_a_gate_without_floors_is_not_written(self):
        self.refused(["expect", H100, "--nodes", "2", "--op", "alltoall", "--size", "64M", "--gate", "none.json"],
                     "--gate: no row has a floor; the first: alltoall of 64 MiB, not validated: no published alltoall of "
                     "several nodes")
        self.assertFalse((self.here / "none.json").exists())
        run = self.expect(H100, "--nodes", "2", "--op", "allreduce,alltoall", "--size", "64M", "--gate", "some.json")
        self.assertEqual(run.returncode, 0)
        self.assertEqual(run.stderr.decode(), "note: 1 of 2 rows have no floor in the gate; the first: alltoall of 64 MiB, "
                                              "not validated: no published alltoall of several nodes\n")

    def test_a_gate_ends_in_time(self):
        self.gate("--size", "64M")
        (self.here / "log.txt").write_text(log({64 << 20: 1e4}))
        run = self.expect("g.json", "--measured", "log.txt", "--time-limit", "1us")
        self.assertEqual((run.returncode, run.stdout), (130, b""), run.stderr)

    def test_evidence_of_several_hosts_is_refused(self):
        text = (cli_test.SOURCE / "tests/data/evidence/lspci-vvv-dell-h100.txt").read_text()
        (self.here / "lspci.txt").write_text(text)
        self.refused(["expect", "h1=lspci.txt", "h2=lspci.txt", "--size", "64M"],
                     "the evidence is of 2 hosts (h1, h2): what one of them gives is asked for one at a time; weft doctor "
                     "goes through all")

    def test_notes_stand_once(self):
        text = (cli_test.SOURCE / "tests/data/evidence/lspci-vvv-dell-h100.txt").read_text()
        (self.here / "lspci.txt").write_text(text)
        notes = [line for line in self.ok("expect", "lspci.txt", "--size", "64M").splitlines() if line.startswith("# note: ")]
        self.assertTrue(notes)
        self.assertEqual(len(notes), len(set(notes)))

    def test_operations_of_perftest_choose_rows(self):
        text = (cli_test.SOURCE / "tests/data/perftest/ib_write_bw.txt").read_text()
        (self.here / "ib.txt").write_text(text)
        run = self.expect(H100, "--measured", "ib.txt", "--op", "write_bw", "--json", "-")
        self.assertTrue(json.loads(run.stdout)["judged"])

    def test_a_set_of_parameters_is_what_is_set(self):
        (self.here / "p.yaml").write_text("wire.rate: 200 Gb/s\nnic.rate: 200 Gb/s\n")
        command = (H100, "--nodes", "2", "--size", "64M")
        by_file = self.results(*command, "--params", "p.yaml")
        self.assertEqual(by_file, self.results(*command, "--set", "wire.rate=200 Gb/s", "--set", "nic.rate=200 Gb/s"))
        self.assertNotEqual(by_file, self.results(*command))

    def test_a_floor_of_perftest_is_one_number(self):
        row, = self.results(H100, "--tool", "perftest", "--size", "64K")
        said = self.ok("expect", H100, "--tool", "perftest", "--size", "64K")
        self.assertAlmostEqual(float(re.search(r"(?m)^  write_bw .* ([\d.]+)$", said)[1]), 8 * row["floor_GBps"], places=6)

    def test_a_gate_and_nothing_else(self):
        self.gate("--size", "64M")
        (self.here / "log.txt").write_text(log({1 << 20: 1}))
        (self.here / "old.json").write_text((self.here / "g.json").read_text().replace("gate/1\"", "gate/1\", \"x\": \"", 1))
        for arguments, expected in (
                (["g.json"], "a gate's floors are for --measured FILE; to make others give a topology"),
                (["g.json", "--measured", "log.txt", "--gate", "h.json"], "--gate: the floors are given already"),
                (["g.json", "--measured", "log.txt", "--set", "wire.mtu=1024"],
                 "a gate is held against what was measured as it is: nothing can be set"),
                (["g.json", "--measured", "log.txt"],
                 "log.txt: no row has a floor in g.json: the first of 1 is allreduce of 1 MiB, 16 GPUs of 2 nodes, "
                 "memory_path gdr; the nearest floor has bytes 64 MiB, not 1 MiB")):
            with self.subTest(arguments):
                self.refused(["expect", *arguments], expected)
        self.refused(["run", "g.json"], "g.json: is a gate's floors, not a scenario; weft expect reads it")

    def test_a_damaged_gate_is_refused(self):
        text = json.dumps(self.gate("--size", "64M"))
        (self.here / "log.txt").write_text(log({64 << 20: 1}))
        for what, by, expected in (
                ('"floor_GBps": ', '"floor_GBps": -', "g.json: floors, entry 1: floor_GBps: write a bandwidth in GB/s"),
                ('"ranks": 16', '"ranks": 0', "g.json: floors, entry 1: ranks: 0: write a number from 1 on"),
                ('"op": ', '"po": ', None), ('"floors": [{', '"floors": [{{', None)):
            with self.subTest(what):
                self.assertIn(what, text)
                (self.here / "g.json").write_text(text.replace(what, by, 1))
                run = self.expect("g.json", "--measured", "log.txt")
                self.assertEqual((run.returncode, run.stdout), (2, b""))
                self.assertRegex(run.stderr.decode(), r"\Aerror: g\.json:[^\n]+\n\Z")
                if expected:
                    self.assertEqual(run.stderr.decode(), f"error: {expected}\n")

    def test_hostile_names_stay_on_their_line(self):
        text = (cli_test.SOURCE / "topologies/hgx-h100-1nic.yaml").read_text()
        (self.here / "a\x1b]0;b.yaml").write_text(text)
        run = self.expect("a\x1b]0;b.yaml", "--nodes", "2", "--size", "64K")
        self.assertEqual(run.returncode, 0)
        self.assertNotRegex(run.stdout + run.stderr, rb"[\x00-\x09\x0b-\x1f\x7f]")


if __name__ == "__main__":
    cli_test.main(__doc__)
