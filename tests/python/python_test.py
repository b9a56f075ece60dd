#!/usr/bin/env python3
"""The Python package: against the program, under Ctrl-C, under mypy, as a wheel.

    python_test.py WEFT SOURCE_DIR BUILD_DIR [-v] [TEST...]
"""
import ast
import copy
import csv
import dataclasses
import importlib.util
import inspect
import io
import json
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zipfile

WEFT = ""
SOURCE = BUILD = pathlib.Path()
LIMIT_S = 280

SMALL = """scenario: small
topology: {topologies}/hgx-h100-4nic.yaml
nodes: 2
workload: {{op: allreduce, sizes: [1 KiB, 64 KiB, 4 MiB]}}
memory_paths: [gdr, host-staged]
"""
# The first sizes take a moment, the last minutes: a ring over an odd number of nodes and several switches, of which none
# stands for others.
LONG = """scenario: long
topology: {topologies}/hgx-h100-8nic.yaml
nodes: 31
workload: {{op: allreduce, algo: Ring, sizes: [8 B, 16 B, 8 GiB, 16 GiB]}}
memory_paths: [gdr]
set: {{nccl.decisions: simple, nccl.proto: Simple, network.kind: leaf-spine, network.ports: 64}}
"""
# Two nodes of one GPU and NIC each.
MACHINE = """topology: small
nodes: 2
node:
  devices:
    cpu0: {{kind: cpu, part: sapphire-rapids}}
    sw0: {{kind: switch, part: pex89144, upstream: cpu0}}
    gpu0: {{kind: gpu, part: h100-sxm, upstream: sw0}}
    nic0: {{kind: nic, part: connectx-7, upstream: sw0, network: fabric}}
network:
  fabric: {{kind: one-switch, part: quantum-2}}
"""


def program(*arguments, code=0):
    done = subprocess.run([WEFT, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode != code:
        raise AssertionError(f"{arguments} exits with {done.returncode}\n{done.stderr}")
    return done.stdout


def reason_without(module):
    return "" if importlib.util.find_spec(module) else f"no {module} for {sys.executable}"


class PythonTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.here = pathlib.Path(folder.name)

    def file(self, text, name="s.yaml"):
        path = self.here / name
        path.write_text(text.format(topologies=SOURCE / "topologies"), encoding="utf-8")
        return str(path)

    def refused(self, why, call, error=None):
        with self.assertRaisesRegex(error or weft.InputError, why):
            call()


class Predictions(PythonTest):
    def test_are_the_programs_byte_for_byte(self):
        file = self.file(SMALL)
        scenario = weft.Scenario.load(pathlib.Path(file))
        self.assertEqual(scenario.predict().json, program("run", file, "--json", "-"))
        self.assertIs(scenario.set("wire.rate", "200 Gb/s").set("nic.count", 2).env("NCCL_ALGO", "Ring"), scenario)
        options = ("--set", "wire.rate=200 Gb/s", "--set", "nic.count=2", "--env", "NCCL_ALGO=Ring")
        self.assertEqual(scenario.predict(threads=1).json, program("run", file, *options, "--json", "-"))
        self.assertEqual(scenario.predict(seed=7).json,
                         program("run", file, *options, "--set", "wire.seed=7", "--json", "-"))
        file = self.file(SMALL.replace("1 KiB, 64 KiB, 4 MiB", "64 KiB"))
        self.assertEqual(weft.Scenario.load(file).predict(fidelity="packet").json,
                         program("run", file, "--fidelity", "packet", "--json", "-"))

    def test_rows_are_those_of_the_json(self):
        prediction = weft.Scenario.load(self.file(SMALL)).predict()
        result = json.loads(prediction.json)
        self.assertEqual(len(prediction.rows), 6)
        for row, of_json in zip(prediction.rows, result["results"], strict=True):
            for key in ("op", "bytes", "ranks", "nodes", "memory_path", "algo", "proto", "channels", "time_us",
                        "algbw_GBps", "busbw_GBps"):
                self.assertEqual(getattr(row, key), of_json[key])
            self.assertEqual([vars(cause) for cause in row.limited_by], of_json["limited_by"])
        self.assertEqual(list(prediction.verdict), result["verdict"])
        self.assertEqual(list(prediction.notes), result["notes"])
        self.assertEqual(prediction.not_run, ())
        self.assertEqual(pickle.loads(pickle.dumps(prediction)), prediction)

    def same_table(self, cells, text, *left_out):
        """The dicts hold what the program's CSV does."""
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(cells), len(rows))
        for ours, theirs in zip(cells, rows):
            self.assertEqual(list(ours), [name for name in theirs if name not in left_out])
            for name, cell in ours.items():
                same = theirs[name] == "" if cell is None else type(cell)(theirs[name]) == cell
                self.assertTrue(same, (name, cell, theirs[name]))

    def test_to_dicts_has_the_table_of_run(self):
        for name in ("s.yaml", "two-jobs.yaml"):
            file = self.file(SMALL) if name == "s.yaml" else SOURCE / "scenarios/planning" / name
            prediction = weft.Scenario.load(file).predict()
            self.same_table(prediction.to_dicts(), program("run", file, "--csv", "-"))
        self.assertTrue(all(row.job and row.alone_us > 0 for row in prediction.rows))

    def test_says_which_memory_paths_are_not_run(self):
        prediction = weft.Scenario.load(self.file(SMALL)).set("nodes", 1).predict()
        self.assertEqual(prediction.not_run, (weft.NotRun(
            op="allreduce", bytes=0, memory_path="host-staged", job="", why="inside one node no NIC is used"),))

    @unittest.skipIf(reason_without("pandas"), reason_without("pandas"))
    def test_to_pandas_is_a_frame_of_the_same(self):
        prediction = weft.Scenario.load(self.file(SMALL)).predict()
        frame = prediction.to_pandas()
        self.assertEqual(list(frame.columns), list(prediction.to_dicts()[0]))
        self.assertEqual(list(frame.busbw_GBps), [row.busbw_GBps for row in prediction.rows])
        self.assertEqual(frame.time_us.dtype.kind + frame.bytes.dtype.kind, "fi")

    def test_without_pandas_says_what_to_install(self):
        prediction = weft.Scenario.load(self.file(SMALL)).predict()
        hidden, sys.modules["pandas"] = sys.modules.get("pandas"), None
        try:
            self.refused("apt-get install python3-pandas", prediction.to_pandas, ImportError)
        finally:
            del sys.modules["pandas"]
            if hidden is not None:
                sys.modules["pandas"] = hidden

    def test_a_notebook_shows_a_table(self):
        scenario = weft.Scenario.load(self.file(SMALL))
        shown = scenario.predict()._repr_html_()
        self.assertEqual(shown.count("<tr>"), 7)
        self.assertIn("<th>busbw_GBps</th>", shown)
        self.assertNotIn("provenance", repr(scenario.predict()))

    def test_input_errors_are_those_of_the_program(self):
        self.assertTrue(issubclass(weft.InputError, ValueError))
        self.assertTrue(issubclass(weft.InternalError, RuntimeError))
        scenario = weft.Scenario.load(self.file(SMALL))
        before = scenario.predict().json
        self.refused("nowhere.yaml: no such file", lambda: weft.Scenario.load("nowhere.yaml"))
        self.refused(r"f.yaml:1:1: missing key", lambda: weft.Scenario.parse("scenario: s\n", "f.yaml"))
        self.refused("did you mean 'wire.rate'", lambda: scenario.set("wire.rte", "1 GB/s"))
        self.refused("has no unit", lambda: scenario.set("wire.rate", 400))
        self.refused("PATH", lambda: scenario.env("PATH", "/bin"))
        self.refused("exact: unknown; known: fluid, packet", lambda: scenario.predict(fidelity="exact"))
        self.refused("seed -1: write a whole number", lambda: scenario.predict(seed=-1))
        self.refused("seed 1.5: write a whole number", lambda: scenario.predict(seed=1.5))
        self.refused("threads one: write a whole number", lambda: scenario.predict(threads="one"))
        self.refused("threads 4096: write a whole number", lambda: scenario.predict(threads=4096))
        self.assertEqual(scenario.predict().json, before, "as it was")
        (self.here / "b.yaml").write_bytes(b"scenario: \xff\xfe\n")
        self.refused("b.yaml", lambda: weft.Scenario.load(self.here / "b.yaml"))

    def test_file_names_are_any_bytes(self):
        name = os.fsencode(self.here) + b"/\xff.yaml"
        os.link(self.file(SMALL), name)
        expected = program("run", os.fsdecode(name), "--json", "-")
        for file in (name, os.fsdecode(name), pathlib.Path(os.fsdecode(name))):
            self.assertEqual(weft.Scenario.load(file).predict().json, expected)
        self.refused("\ufffd.yaml:1:1: missing key", lambda: weft.Scenario.parse("scenario: s\n", "\udcff.yaml"))

    def test_a_copy_changes_alone(self):
        scenario = weft.Scenario.load(self.file(SMALL))
        before = scenario.predict().json
        for other in (scenario.copy(), copy.copy(scenario), copy.deepcopy(scenario)):
            other.set("wire.rate", "100 Gb/s")
            self.assertEqual(scenario.predict().json, before)
        machine = weft.Topology.parse(MACHINE.format(), "m.yaml")
        shown = machine.show().json
        for other in (machine.copy(), copy.copy(machine), copy.deepcopy(machine)):
            other.set("nic.gdr", "off")
            self.assertEqual(machine.show().json, shown)

    def test_parameters_are_those_of_the_program(self):
        listed = json.loads(program("list-params", "--json"))["parameters"]
        self.assertEqual([p.key for p in weft.parameters()], [p["key"] for p in listed])
        self.assertIn(weft.version(), program("--version"))
        self.assertIn(weft.commit(), program("--version"))


class Sweeps(PythonTest):
    same_table = Predictions.same_table
    # One count is refused, and inside one node there is one memory path.
    GRID = {"nic.count": [1, 4, 9], "nodes": [1, 2]}

    def test_have_the_table_of_the_program(self):
        file = self.file(SMALL)
        options = [word for key, values in self.GRID.items()
                   for word in ("--set", f"{key}={','.join(map(str, values))}")]
        table = program("sweep", file, *options, code=2)
        self.assertEqual(table.count("inside one node no NIC is used"), 2)
        for threads in (0, 1, 5):
            swept = weft.sweep(weft.Scenario.load(file), self.GRID, threads=threads)
            self.same_table(swept.to_dicts(), table, "point")
        self.assertEqual([point.prediction is None for point in swept.points], [False] * 4 + [True] * 2)
        self.assertRegex(swept.points[-1].not_run, "^--set: nic.count: '9' is not")
        self.assertEqual(swept._repr_html_().count("<tr>"), 1 + len(swept.to_dicts()))

    @unittest.skipIf(reason_without("pandas"), reason_without("pandas"))
    def test_to_pandas_is_a_frame_of_the_same(self):
        frame = weft.sweep(weft.Scenario.load(self.file(SMALL)), self.GRID).to_pandas()
        best = frame[frame.bytes == 4 << 20].groupby("nic.count").busbw_GBps.max()
        self.assertEqual(list(best.index), [1, 4])
        self.assertEqual(frame[frame.busbw_GBps.isna()].not_run.nunique(), 2)

    def test_refuse_what_the_program_refuses(self):
        scenario = weft.Scenario.load(self.file(SMALL))
        for grid, why in (({}, "the grid is empty"), ({"nodes": []}, "nodes: no values"),
                          ({"nodes": [1, "1"]}, "nodes: a value is given twice"), ({"nod": [1]}, "no parameter 'nod'"),
                          ({"nodes": range(400), "nic.count": range(400)}, "more than 100000 points")):
            self.refused(why, lambda grid=grid: weft.sweep(scenario, grid))
        self.refused(r"nic.count: write a list of values, \['12'\]", lambda: weft.sweep(scenario, {"nic.count": "12"}))
        self.refused("more than 100000 points", lambda: weft.sweep(scenario, {"nodes": range(10**10)}))
        self.refused("seed 0.5: write a whole number", lambda: weft.sweep(scenario, {"nodes": [1]}, seed=0.5))
        self.refused("wire.seed is swept", lambda: weft.sweep(scenario, {"wire.seed": [1, 2]}, seed=3))


    def test_of_jobs_have_their_columns(self):
        file = SOURCE / "scenarios/planning/two-jobs.yaml"
        (point,) = (swept := weft.sweep(weft.Scenario.load(file), {"wire.mtu": [4096]})).points
        table = list(csv.DictReader(io.StringIO(program("sweep", file, "--set", "wire.mtu=4096"))))
        self.assertEqual([(row["job"], float(row["alone_us"])) for row in table],
                         [(row["job"], row["alone_us"]) for row in swept.to_dicts()])
        alone = weft.Scenario.load(file).set("wire.mtu", 4096).predict()
        self.assertEqual(point.prediction.rows, alone.rows)
        self.assertEqual([(row["job"], row["alone_us"]) for row in swept.to_dicts()],
                         [(row.job, row.alone_us) for row in alone.rows])
        self.assertEqual(point.prediction.json, "", "is not kept")


class Machines(PythonTest):
    H100 = "topologies/hgx-h100-8nic.yaml"
    LSPCI = "tests/data/evidence/lspci-vvv-dell-h100.txt"
    SIZES = (1 << 20, 16 << 20, 256 << 20)

    def same_json(self, ours, *arguments, code=0):
        self.assertEqual(ours.json, program(*arguments, "--json", "-", code=code))
        self.assertEqual(pickle.loads(pickle.dumps(ours)), ours)
        self.assertIn("<table>", ours._repr_html_())
        return json.loads(ours.json)

    def same_columns(self, cells, of_json, chapter, path="results[]"):
        """The dicts hold what the program's JSON does of each row, under keys of its format."""
        page = (SOURCE / "scenarios/README.md").read_text(encoding="utf-8")
        section = page.split(f"\n## {chapter}\n")[1].split(f"\n### `{path}`\n")[1].split("\n#")[0]
        keys = {*re.findall(r"(?m)^\| `(\w+)` \|", section), "limited_by_share"}
        self.assertLessEqual(set(cells[0]), keys)
        self.assertEqual(len(cells), len(of_json))
        for ours, theirs in zip(cells, of_json):
            for name, cell in ours.items():
                if not name.startswith("limited_by"):
                    self.assertEqual(theirs.get(name), cell, name)

    def logs(self, **settings):
        """Measured tables of the small machine, healthy and with these settings, as weft predicts them."""
        machine = weft.Topology.parse(MACHINE.format(), "m.yaml")
        healthy = weft.expect(machine, bytes=self.SIZES)
        for key, value in settings.items():
            machine.set(key.replace("__", "."), value)
        slow = weft.expect(machine, bytes=self.SIZES)
        for name, rows in (("healthy.csv", healthy.rows), ("slow.csv", slow.rows[-len(self.SIZES):])):
            table = "".join(f"net,gdr,2,2,{row.op},{row.bytes},{row.time_us:.3f}\n" for row in rows)
            (self.here / name).write_text("transport,memory_path,hosts,ranks,op,bytes,us\n" + table)
        return self.here / "slow.csv", self.here / "healthy.csv"

    def test_are_shown_as_by_the_program(self):
        file = SOURCE / self.H100
        machine = weft.Topology.load(file)
        self.assertEqual(machine.show().json, program("show", file, "--format", "json"))
        self.assertEqual(machine.show().text, program("show", file))
        self.assertIs(machine.set("nic.gdr", "off").set("nodes", 2), machine)
        shown = machine.show()
        self.assertEqual(shown.json, program("show", file, "--format", "json", "--set", "nic.gdr=off", "--set", "nodes=2"))
        pairs = json.loads(shown.json)["pairs"]
        self.assertEqual(shown.to_dicts(), pairs)
        self.assertEqual([(pair.gpu, pair.nic, pair.path_class) for pair in shown.pairs],
                         [(pair["gpu"], pair["nic"], pair["class"]) for pair in pairs])
        self.assertEqual(pickle.loads(pickle.dumps(shown)), shown)

    def test_perftest_is_the_programs_byte_for_byte(self):
        file = SOURCE / self.H100
        machine = weft.Topology.load(file)
        self.same_json(machine.perftest(), "perftest", file)
        tested = machine.perftest(op="send", memory="host", from_="cpu0", to="cpu1@1", bytes=[4096, 1 << 20], qps=2,
                                  tx_depth=64, iterations=100, cq_moderation=2, rx_depth=256, post_list=4,
                                  bidirectional=True)
        of_json = self.same_json(tested, "perftest", file, "--op", "send", "--mem", "host", "--from", "cpu0", "--to",
                                 "cpu1@1", "--size", "4096,1M", "--qp", 2, "--tx-depth", 64, "--iters", 100, "--cq-mod",
                                 2, "--rx-depth", 256, "--post-list", 4, "--bidirectional")
        self.assertEqual((tested.from_, tested.to, tested.from_nic, tested.to_nic),
                         tuple(of_json[key] for key in ("from", "to", "from_nic", "to_nic")))
        self.same_columns(tested.to_dicts(), of_json["results"], "Keys of a perftest")
        tested = machine.perftest(iterations=24, tx_depth=8, rx_depth=8, all=True, gpu="a100-sxm", seed=3)
        self.same_json(tested, "perftest", file, "--iters", 24, "--tx-depth", 8, "--all", "--gpu", "a100-sxm", "--seed",
                       3)
        self.assertEqual([note.split(":")[0] for note in tested.notes],
                         ["no effect on rates and latency with --op write --mem gpu", "the seed has no effect"])
        self.assertIn(tested.notes[0], tested._repr_html_())
        self.same_json(machine.perftest(post="gpu", from_nic="nic1", to_nic="nic1"), "perftest", file, "--post", "gpu",
                       "--from-nic", "nic1", "--to-nic", "nic1")

    def test_copies_are_the_programs_byte_for_byte(self):
        file = SOURCE / self.H100
        machine = weft.Topology.load(file)
        copied = machine.copies()
        self.same_json(copied, "copies", file)
        self.assertEqual(copied.text, program("copies", file))
        Predictions.same_table(self, copied.to_dicts(), program("copies", file, "--csv", "-"))
        copied = machine.copies(from_="gpu0", to="gpu1,gpu2", by="kernel", blocks=8, bytes=[1 << 20, 1 << 24],
                                bidirectional=True)
        options = ("--from", "gpu0", "--to", "gpu1,gpu2", "--by", "kernel", "--blocks", 8, "--size", "1M,16M",
                   "--bidirectional")
        self.same_json(copied, "copies", file, *options)
        Predictions.same_table(self, copied.to_dicts(), program("copies", file, *options, "--csv", "-"))
        copied = machine.copies(to="gpu0", blocks=4, all=True, gpu="a100-sxm")
        self.same_json(copied, "copies", file, "--to", "gpu0", "--blocks", 4, "--all", "--gpu", "a100-sxm")
        self.assertIn("<p>no effect with --by engine: --blocks</p>", copied._repr_html_())
        self.assertEqual([row.back_GBps for row in copied.rows], [None] * len(copied.rows))
        machine.set("nic.rate", "200 Gb/s")
        self.assertEqual(machine.copies(to="gpu0").notes, ("no effect on copies: nic.rate",))
        machine = weft.Topology.load(file)
        self.same_json(machine.copies(to="gpu0", fidelity="packet", bytes=1 << 20), "copies", file, "--to", "gpu0",
                       "--fidelity", "packet", "--size", "1M")

    def test_what_is_expected_is_the_programs_byte_for_byte(self):
        file = SOURCE / self.H100
        machine = weft.Topology.load(file).set("nic.trained_width", 4)
        expected = weft.expect(machine, op="allreduce,alltoall", bytes=[1 << 20, 64 << 20], nodes=2, seed=3,
                               env={"NCCL_ALGO": "Ring"}, nccl_version="2.27.3", launch="graph", threads=1)
        arguments = ("expect", file, "--op", "allreduce,alltoall", "--size", "1M,64M", "--nodes", 2, "--seed", 3,
                     "--env", "NCCL_ALGO=Ring", "--nccl-version", "2.27.3", "--launch", "graph", "--set",
                     "nic.trained_width=4")
        of_json = self.same_json(expected, *arguments)
        self.assertEqual(expected.text, program(*arguments))
        self.same_columns(expected.to_dicts(), of_json["results"], "Keys of expectations")
        self.assertEqual([row.limited_by[0].cause for row in expected.rows],
                         [row["limited_by"][0]["cause"] for row in of_json["results"]])
        self.assertEqual(list(expected.mended), of_json["mended"])
        self.assertEqual({row.state for row in expected.rows}, {"healthy", "found"})
        self.assertEqual(weft.expect(file, op=["allreduce", "alltoall"], bytes=[1 << 20, 64 << 20], nodes=2, seed=3,
                                     env={"NCCL_ALGO": "Ring"}, nccl_version="2.27.3", launch="graph",
                                     set={"nic.trained_width": 4}), expected)
        tested = weft.expect(weft.Topology.load(file), tool="perftest", op="read_bw", qps=2, tx_depth=64, memory="host")
        of_json = self.same_json(tested, "expect", file, "--tool", "perftest", "--op", "read_bw", "--qps", 2,
                                 "--tx-depth", 64, "--memory", "host")
        self.same_columns(tested.to_dicts(), of_json["results"], "Keys of expectations")
        tested = weft.expect(weft.Topology.load(file), tool="perftest", op="write_lat", bytes=8)
        of_json = self.same_json(tested, "expect", file, "--tool", "perftest", "--op", "write_lat", "--size", 8)
        self.same_columns(tested.to_dicts(), of_json["results"], "Keys of expectations")
        self.assertEqual(tested.rows[0].low_us, of_json["results"][0]["low_us"])

    def test_arguments_are_what_python_has_for_them(self):
        class Array:  # as numpy's are
            def __iter__(self):
                return iter((4096, 65536))

            def __index__(self):
                raise TypeError("only integer scalar arrays can be converted to a scalar index")
        machine = weft.Topology.parse(MACHINE.format(), "m.yaml")
        sizes = [4096, 65536]
        expected = weft.expect(machine, bytes=sizes, env={"NCCL_NVLS_ENABLE": "0"})
        for of_sizes in (Array(), set(sizes), frozenset(sizes), tuple(sizes), iter(sizes), (size for size in sizes)):
            self.assertEqual(weft.expect(machine, bytes=of_sizes, env={"NCCL_NVLS_ENABLE": 0}), expected)
        slow, _ = self.logs()
        table = weft.Log.parse(slow.read_text().replace("transport,", "").replace("net,gdr", "gdr"), "l.csv")
        self.assertEqual(weft.expect(machine, measured=table, as_="transport=net"),
                         weft.expect(machine, measured=table, as_={"transport": "net"}))
        scenario = weft.Scenario.load(self.file(SMALL))
        off = scenario.copy().env("NCCL_NVLS_ENABLE", "0").predict()
        for value in (0, False):  # NCCL reads no "False"
            self.assertEqual(scenario.copy().env("NCCL_NVLS_ENABLE", value).predict(), off)
            self.assertEqual(weft.expect(machine, bytes=sizes, env={"NCCL_NVLS_ENABLE": value}), expected)

    def test_evidence_is_a_machine(self):
        lspci = SOURCE / self.LSPCI
        expected = weft.expect([f"host7={lspci}"], bytes=64 << 20, nodes=2, gpu="h100-sxm")
        self.same_json(expected, "expect", f"host7={lspci}", "--size", "64M", "--nodes", 2, "--gpu", "h100-sxm")

    def test_what_was_measured_is_held_against_floors(self):
        file = SOURCE / self.H100
        machine = weft.Topology.load(file).set("nodes", 2)
        expected = weft.expect(machine, bytes=[1 << 20, 64 << 20])
        gate = self.here / "gate.json"
        gate.write_text(expected.gate)
        self.assertEqual(expected.gate, program("expect", file, "--set", "nodes=2", "--size", "1M,64M", "--gate", "-"))
        log = self.here / "log.csv"
        log.write_text("hosts,ranks,op,bytes,us\n" + "".join(
            f"2,16,allreduce,{row.bytes},{times * row.time_us:.3f}\n" for row, times in zip(expected.rows, (1, 9))))
        as_ = {"transport": "net", "memory_path": "gdr"}
        stated = ("--measured", log, "--as", "transport=net,memory_path=gdr")
        for ours, theirs in ((machine, (file, "--set", "nodes=2")), (gate, (gate,))):
            held = weft.expect(ours, measured=log, as_=as_)
            of_json = self.same_json(held, "expect", *theirs, *stated, code=4)
            self.same_columns(held.to_dicts(), of_json["judged"], "Keys of expectations", "judged[]")
            self.assertEqual([row.verdict for row in held.judged], ["ok", "below the floor"])
            self.assertEqual((held.rows, held.below_floor, held.failures, held.gate), ((), 1, (), ""))
        text = weft.Log.parse(log.read_text(), str(log))
        self.assertEqual(weft.expect(gate, measured=text, as_=as_), held)
        self.assertEqual(weft.expect(gate, measured=text, as_=as_, bytes=1 << 20).below_floor, 0)

    def test_a_slow_run_is_explained_as_by_the_program(self):
        slow, healthy = self.logs(nic__trained_width=2)
        machine = self.file(MACHINE, "m.yaml")
        explained = weft.explain(slow, healthy, machine=machine)
        of_json = self.same_json(explained, "explain", slow, healthy, "--machine", machine, code=6)
        self.assertEqual(explained.text, program("explain", slow, healthy, "--machine", machine, code=6))
        self.assertEqual(explained.verdict, "explained")
        first, of_first = explained.answers[0], of_json["answers"][0]
        suspect, of_suspect = first.causes[0], of_first["causes"][0]
        for key in ("id", "what", "where", "how", "verify", "weight"):
            self.assertEqual(getattr(suspect, key), of_suspect[key])
        self.assertEqual(list(suspect.changes), of_suspect["changes"])
        self.assertEqual([[cause.id for cause in causes] for causes in first.alternatives],
                         [[cause["id"] for cause in either["causes"]] for either in of_first["or"]])
        for key in ("alike", "times_less", "explains", "low", "high", "chance"):
            self.assertEqual(getattr(first, key), of_first[key])
        for key in ("bytes", "slow_us", "busbw_GBps", "healthy_us", "predicted_us", "gap", "sd"):
            self.assertEqual([getattr(point, key) for point in explained.points],
                             [point[key] for point in of_json["points"]])
        for key in ("ruled_out", "no_effect", "refused", "not_here"):
            self.assertEqual([each.id for each in getattr(explained, key)], [each["id"] for each in of_json[key]])
        self.assertEqual([vars(each) for each in explained.not_looked_at], of_json["not_looked_at"])
        table = explained.to_dicts()
        self.assertEqual([row["id"] for row in table if row["answer"] == 1], [cause.id for cause in first.causes])

    def test_explain_takes_evidence_settings_and_texts(self):
        slow, _ = self.logs(nic__trained_width=2)
        machine, lspci = self.file(MACHINE, "m.yaml"), SOURCE / self.LSPCI
        text = weft.Log.parse(slow.read_text(), str(slow))
        topology = weft.Topology.load(machine).set("nic.mps", "256 B")
        explained = weft.explain(text, machine=topology, evidence=lspci, set={"nic.mrrs": "4096 B"}, threads=1,
                                 env={"NCCL_PROTO": "Simple"})
        of_json = self.same_json(explained, "explain", slow, "--machine", machine, "--evidence", lspci, "--set",
                                 "nic.mps=256 B", "--set", "nic.mrrs=4096 B", "--env", "NCCL_PROTO=Simple", code=6)
        self.assertEqual([[vars(quote) for quote in suspect.evidence] for suspect in explained.ruled_out],
                         [[{"place": "", **quote} for quote in suspect["evidence"]] for suspect in of_json["ruled_out"]])
        self.assertTrue(any(suspect.evidence for suspect in explained.ruled_out))
        self.assertIsNone(explained.points[0].healthy_us)

    def test_input_errors_are_those_of_the_program(self):
        machine = weft.Topology.load(SOURCE / self.H100)
        before = machine.show().json
        slow, healthy = self.logs()
        for why, call in (
                ("nowhere.yaml: no such file", lambda: weft.Topology.load("nowhere.yaml")),
                ("t.xml", lambda: weft.Topology.parse("<system", "t.xml")),
                ("did you mean 'nic.rate'", lambda: machine.set("nic.rte", "1 Gb/s")),
                ("known: read, send, write", lambda: machine.perftest(op="atomic")),
                ("gpu99", lambda: machine.perftest(from_="gpu99")),
                ("--size 64 GiB", lambda: machine.perftest(bytes=64 << 30)),
                ("bytes 0.5: write a whole number", lambda: machine.perftest(bytes=[0.5])),
                ("bytes 0.5: write a whole number", lambda: machine.perftest(bytes=0.5)),
                ("--size: name a message size", lambda: machine.perftest(bytes=[])),
                ("--all and --size: give one", lambda: machine.copies(bytes=1, all=True)),
                ("bytes '4K': write whole numbers", lambda: machine.perftest(bytes="4K")),
                ("qps -1: write a whole number", lambda: machine.perftest(qps=-1)),
                ("--tx-depth 20000: at most 15000", lambda: machine.perftest(tx_depth=20000)),
                ("known: engine, kernel", lambda: machine.copies(by="hand")),
                ("not a GPU", lambda: machine.copies(to="nic0")),
                ("known: nccl-tests, nvbandwidth, perftest", lambda: weft.expect(machine, tool="iperf")),
                ("sizes must ascend", lambda: weft.expect(machine, bytes=[2, 1])),
                ("seed -1: write a whole number", lambda: weft.expect(machine, seed=-1)),
                ("machine is required", lambda: weft.expect([])),
                ("nowhere: no such file", lambda: weft.expect("nowhere")),
                ("--as goes with --measured", lambda: weft.expect(machine, as_={"ranks": 16})),
                ("which machine is it", lambda: weft.explain(slow, healthy)),
                ("nowhere.txt: no such file", lambda: weft.explain("nowhere.txt", machine=machine)),
                ("odd.txt", lambda: weft.explain(weft.Log.parse("?", "odd.txt"), machine=machine)),
                ("threads 4096: write a whole number", lambda: weft.explain(slow, machine=machine, threads=4096))):
            with self.subTest(why):
                self.refused(why, call)
        self.assertEqual(machine.show().json, before, "as it was")
        machine.copy().set("nodes", 3)
        self.assertEqual(machine.show().json, before, "a copy changes alone")
        self.refused("incompatible function arguments", lambda: machine.perftest(op=1), TypeError)

    @unittest.skipIf(reason_without("pandas"), reason_without("pandas"))
    def test_to_pandas_is_a_frame_of_the_same(self):
        machine = weft.Topology.load(SOURCE / self.H100)
        for answer in (machine.show(), machine.perftest(), machine.copies(to="gpu0"), weft.expect(machine, bytes=1 << 20)):
            self.assertEqual(list(answer.to_pandas().columns), list(answer.to_dicts()[0]))
            self.assertEqual(len(answer.to_pandas()), len(answer.to_dicts()))


class Ends(PythonTest):
    """Ctrl-C, `stop`, and other threads."""

    def interrupted(self, work):
        """How long after Ctrl-C a script that does `work` ended, s."""
        machine = str(SOURCE / Machines.H100)
        table = "transport,memory_path,hosts,ranks,op,bytes,us\\nnet,gdr,31,248,allreduce,8589934592,1e7\\n"
        script = ("import sys, weft\n"
                  f"scenario = weft.Scenario.load({self.file(LONG)!r})\n"
                  f"machine = weft.Topology.load({machine!r})\n"
                  f"machine.set('nodes', 31).set('nccl.decisions', 'simple').set('nccl.proto', 'Simple')\n"
                  "machine.set('network.kind', 'leaf-spine').set('network.ports', 64)\n"
                  f"log = weft.Log.parse('{table}', 'log.csv')\n"
                  "asked = []\n"
                  "def stop():  # some 20 times a second, from when a prediction begins\n"
                  "    asked.append(1)\n"
                  "    if len(asked) == 20:\n        print('runs', flush=True)\n"
                  f"try:\n    {work}\n"
                  "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n")
        process = subprocess.Popen([sys.executable, "-B", "-c", script], stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.assertEqual(process.stdout.readline(), "runs\n")
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.stdout.readline(), "interrupted\n")
        took = time.monotonic() - asked
        self.assertEqual(process.wait(timeout=LIMIT_S), 0)
        return took

    def test_ctrl_c_ends_all_that_takes_long(self):
        ring = "env={'NCCL_ALGO': 'Ring'}, stop=stop"
        for work in ("scenario.predict(stop=stop)", "weft.sweep(scenario, {'wire.mtu': [1024, 4096]}, stop=stop)",
                     "machine.perftest(iterations=10**5, stop=stop)",
                     "machine.copies(to='gpu0', fidelity='packet', bytes=1 << 30, stop=stop)",
                     f"weft.expect(machine, bytes=8 << 30, {ring})", f"weft.explain(log, machine=machine, {ring})"):
            took = self.interrupted(work)
            print(f"{work}: ended {took:.2f} s after Ctrl-C")
            self.assertLess(took, 10)  # 1 s on a machine with nothing else to do

    def test_stop_keeps_the_rows_that_are_done(self):
        small = weft.Scenario.load(self.file(LONG.replace("8 GiB, 16 GiB", "32 B")))
        begin = time.monotonic()
        small.predict(threads=1)
        patience = 2 + 3 * (time.monotonic() - begin)
        scenario = weft.Scenario.load(self.file(LONG))
        begin = time.monotonic()
        prediction = scenario.predict(threads=1, stop=lambda: time.monotonic() > begin + patience)
        self.assertEqual([row.bytes for row in prediction.rows], [8, 16])
        self.assertEqual([(row.bytes, row.why) for row in prediction.not_run],
                         [(size << 30, "stopped before it was run") for size in (8, 16)])
        self.assertEqual([row["bytes"] for row in json.loads(prediction.json)["incomplete"]], [8 << 30, 16 << 30])
        self.assertEqual([row["time_us"] is None for row in prediction.to_dicts()], [False, False, True, True])

    def test_stop_before_the_first_row(self):
        scenario = weft.Scenario.load(self.file(SMALL))
        self.refused("stopped before any row", lambda: scenario.predict(stop=lambda: True), weft.Stopped)
        swept = weft.sweep(scenario, {"nodes": [1, 2]}, stop=lambda: True)
        self.assertEqual([point.not_run for point in swept.points], ["stopped before it was run"] * 2)
        machine = weft.Topology.load(SOURCE / Machines.H100)
        self.refused("stopped before all sizes", lambda: machine.perftest(stop=lambda: True), weft.Stopped)
        self.refused("stopped before all sizes", lambda: machine.copies(stop=lambda: True), weft.Stopped)
        self.refused("stopped before all sizes", lambda: weft.expect(machine, stop=lambda: True), weft.Stopped)
        log = weft.Log.parse("transport,hosts,ranks,op,bytes,us\nnvlink,1,8,allreduce,1048576,50\n", "log.csv")
        self.refused("stopped before all causes", lambda: weft.explain(log, machine=machine, stop=lambda: True),
                     weft.Stopped)
        asked = []
        self.assertEqual(scenario.predict(stop=lambda: asked.append(threading.get_ident())).json,
                         scenario.predict().json)
        self.assertEqual(set(asked), {threading.get_ident()})
        self.assertEqual(scenario.predict(stop=lambda: []).json, scenario.predict().json)
        self.refused("stopped before any row", lambda: scenario.predict(stop=lambda: "yes"), weft.Stopped)

        class Unsure:
            def __bool__(self):
                raise ValueError("neither")

        with self.assertRaisesRegex(ValueError, "neither"):
            scenario.predict(stop=Unsure)

    def test_what_stop_raises_comes_out(self):
        scenario = weft.Scenario.load(self.file(SMALL))

        def stop():
            raise KeyError("of stop")
        self.refused("of stop", lambda: scenario.predict(stop=stop), KeyError)
        self.refused("of stop", lambda: weft.sweep(scenario, {"nodes": [1, 2]}, stop=stop), KeyError)
        machine = weft.Topology.load(SOURCE / Machines.H100)
        self.refused("of stop", lambda: weft.expect(machine, stop=stop), KeyError)

    def test_what_stop_raises_at_a_later_point_ends_the_earlier(self):
        scenario = weft.Scenario.load(self.file(LONG))
        asked = []

        def stop():  # on two threads, of which the second one's raises
            asked.append(threading.get_ident())
            if asked[0] != threading.get_ident():
                raise KeyError("of stop")
            return False
        begin = time.monotonic()
        self.refused("of stop", lambda: weft.sweep(scenario, {"wire.mtu": [4096, 1024]}, threads=2, stop=stop), KeyError)
        self.assertLess(time.monotonic() - begin, 60)  # a point takes minutes

    def test_other_threads_run_meanwhile(self):
        scenario = weft.Scenario.load(self.file(LONG.replace("8 B, 16 B, 8 GiB, ", "")))
        # A thread of Python gives way to another only where it lets go of the lock.
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1000)
        turns, ended = [0], []

        def predict():
            try:
                scenario.predict(stop=lambda: turns[0] >= 30)
            except weft.Stopped:
                ended.append("stopped")
        thread = threading.Thread(target=predict)
        thread.start()
        while turns[0] < 30:
            time.sleep(0.001)
            turns[0] += 1
        thread.join()
        self.assertEqual(ended, ["stopped"])

    def test_other_threads_run_while_a_machine_is_measured(self):
        machine = weft.Topology.load(SOURCE / Machines.H100)
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1000)
        for work in (lambda: machine.perftest(iterations=2000), lambda: machine.copies(to="gpu0", fidelity="packet"),
                     lambda: weft.expect(machine, nodes=4, bytes=1 << 30, env={"NCCL_ALGO": "Ring"})):
            thread = threading.Thread(target=work)
            turns = 0
            thread.start()
            while thread.is_alive():
                time.sleep(0.001)
                turns += 1
            self.assertGreater(turns, 10)

    def test_threads_that_predict_and_set_meet_no_half_of_it(self):
        scenario = weft.Scenario.load(self.file(SMALL))
        rates = ("100 Gb/s", "200 Gb/s", "400 Gb/s")
        alone = {scenario.set("wire.rate", rate).predict().rows for rate in rates}
        self.assertEqual(len(alone), 3)
        answers, turns = [], 0
        threads = [threading.Thread(target=lambda: answers.append(scenario.predict().rows)) for _ in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            scenario.set("wire.rate", rates[turns % 3])
            turns += 1
        self.assertEqual(len(answers), 4)
        self.assertLessEqual(set(answers), alone)

    def test_what_is_set_meanwhile_is_for_later(self):
        scenario = weft.Scenario.load(self.file(SMALL))
        before = scenario.predict().json

        def stop():  # which is asked when it has begun
            scenario.set("wire.rate", "100 Gb/s")
            return False
        self.assertEqual(scenario.predict(stop=stop).json, before)
        self.assertNotEqual(scenario.predict().json, before)


class Types(PythonTest):
    USER = """import weft
scenario = weft.Scenario.load("s.yaml").set("nodes", 4)
row: weft.Row = scenario.predict(seed=1).rows[0]
time_us: float = row.time_us
swept: weft.Sweep = weft.sweep(scenario, {"nic.count": [1, 2], "wire.rate": ["200 Gb/s"]})
keys: list[str] = [parameter.key for parameter in weft.parameters()]
machine: weft.Topology = weft.Topology.load(b"t.yaml").set("nodes", 2)
rates: list[float] = [row.bw_Gbps for row in machine.perftest(bytes=[4096], qps=2).rows]
copied: weft.Copies = machine.copies(from_="cpu", to="gpu0", bytes=1 << 20)
floor: float | None = weft.expect(machine, op="allreduce", set={"nic.rate": "200 Gb/s"}).rows[0].floor_GBps
swept_env: weft.Expected = weft.expect(machine, env={"NCCL_NVLS_ENABLE": 0}, bytes={8, 16}, as_="ranks=16")
held: weft.Expected = weft.expect(["a.txt", "b=c.txt"], measured=weft.Log.load("log.txt"), as_={"ranks": 16})
causes: list[str] = [cause.what for cause in weft.explain("slow.txt", machine=machine).answers[0].causes]
"""

    def mypy(self, *arguments):
        return subprocess.run(["mypy", "--strict", "--cache-dir", str(self.here / "cache"), "--python-executable",
                               sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT_S,
                              check=False, cwd=self.here, env={**os.environ, "MYPYPATH": str(BUILD / "python")})

    @unittest.skipUnless(shutil.which("mypy"), "no mypy here (tools/install-deps check)")
    def test_mypy_accepts_the_package_and_who_uses_it(self):
        run = self.mypy("-p", "weft")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        (self.here / "user.py").write_text(self.USER)
        run = self.mypy("user.py")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        (self.here / "user.py").write_text(self.USER + 'row.time = 1\nscenario.set("nodes", None)\nweft.expect(machine, nods=1)\n')
        run = self.mypy("user.py")
        self.assertEqual(len(re.findall(r"(?m)^user.py:\d+: error: ", run.stdout)), 3, run.stdout)

    def test_the_stub_is_of_the_module(self):
        def public(item):
            return {name for name in dir(item) if not name.startswith("_")}
        stub = ast.parse((SOURCE / "tools/python/weft/_weft.pyi").read_text(encoding="utf-8")).body
        named = {item.name: item for item in stub if isinstance(item, (ast.FunctionDef, ast.ClassDef))}
        self.assertEqual(set(named), public(weft._weft))
        for name, item in named.items():
            if isinstance(item, ast.ClassDef):
                members = {of.target.id if isinstance(of, ast.AnnAssign) else of.name for of in item.body}
                self.assertEqual(members, public(getattr(weft._weft, name)), name)

    def test_options_are_those_of_the_header(self):
        header = (SOURCE / "tools/weft.hpp").read_text(encoding="utf-8")
        for name, function, apart in (
                ("PerftestOptions", weft.Topology.perftest, {"self"}), ("CopiesOptions", weft.Topology.copies, {"self"}),
                ("ExpectOptions", weft.expect, {"machine"}), ("ExplainOptions", weft.explain, {"slow"})):
            body = re.search(rf"(?ms)^struct {name} \{{\n(.*?)^\}};", header).group(1)
            named = re.findall(r"(?m)^  [\w:]\S.* (\w+)\{.*\};", body)
            members = {{"from": "from_", "as": "as_"}.get(member, member) for member in named}
            self.assertEqual(set(inspect.signature(function).parameters) - apart, members, name)
            bound = {member for member in dir(getattr(weft._weft, name)) if not member.startswith("_")}
            self.assertEqual(bound, members - {"stop"}, name)

    def test_everything_public_is_documented(self):
        self.assertTrue((pathlib.Path(weft.__file__).parent / "py.typed").exists())
        for name in weft.__all__:
            item = getattr(weft, name)
            if name in ("Cell", "File", "Value"):
                continue
            self.assertTrue(item.__doc__, name)
            for field in dataclasses.fields(item) if dataclasses.is_dataclass(item) else ():
                named = rf"(?m)^ *(?:\w+, )*{field.name}(?:, \w+)*  +\S"
                self.assertRegex(item.__doc__, named, name)
            for key, method in vars(item).items() if inspect.isclass(item) else ():
                if not key.startswith("_") and callable(method):
                    self.assertTrue(method.__doc__, f"{name}.{key}")


class Installs(PythonTest):
    """Of the build folder's part that is the package."""

    def where(self, prefix, **environment):
        """The folders, below the test's, that the package is installed into."""
        run = subprocess.run(["cmake", f"-DCMAKE_INSTALL_PREFIX={prefix}", "-P",
                              str(BUILD / "tools/python/cmake_install.cmake")], capture_output=True, text=True,
                             timeout=LIMIT_S, check=False, env={**os.environ, **environment})
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        found = [module.parent for module in self.here.rglob("_weft.*.so")]
        for folder in found:
            self.assertLessEqual({"__init__.py", "_weft.pyi", "py.typed"}, {file.name for file in folder.iterdir()})
        names = [str(folder.relative_to(self.here)) for folder in found]
        for entry in self.here.iterdir():
            shutil.rmtree(entry)
        return names

    def test_it_lies_where_the_python_of_its_prefix_looks(self):
        is_debians = os.path.realpath(sys.executable).startswith("/usr/bin/")
        python = f"python3.{sys.version_info.minor}"
        for prefix in ("x/.local", "x/usr", "x/opt/usr/local"):
            self.assertEqual(self.where(self.here / prefix), [f"{prefix}/lib/{python}/site-packages/weft"])
        dist = ["usr/lib/python3/dist-packages/weft"] if is_debians else []
        self.assertEqual(self.where("/usr", DESTDIR=str(self.here)), dist)
        staged = self.where(self.here / "_CPack_Packages/weft/usr")
        self.assertEqual(staged, ["_CPack_Packages/weft/" + name for name in dist])
        local = self.where("/usr/local", DESTDIR=str(self.here))
        self.assertEqual(local, [f"usr/local/lib/{python}/{'dist' if is_debians else 'site'}-packages/weft"])

    def test_where_it_is_required_pybind11_must_be_there(self):
        run = subprocess.run(["cmake", "-S", SOURCE, "-B", self.here, "-DWEFT_BUILD_PYTHON=REQUIRED",
                              "-DCMAKE_DISABLE_FIND_PACKAGE_pybind11=ON"], capture_output=True, text=True,
                             timeout=LIMIT_S, check=False)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("pybind11-dev, python3-dev", run.stderr)


class Wheel(PythonTest):
    @unittest.skipIf(any(map(reason_without, ("pip", "setuptools", "wheel", "venv"))),
                     "no pip, setuptools, wheel or venv here")
    def test_is_installed_into_an_environment_and_runs_the_pages_example(self):
        def run(*command, **environment):
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=1000,
                                  check=False, cwd=self.here, env={**os.environ, **environment})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout
        # Of a copy: setuptools leaves folders behind.
        source = self.here / "weft/tools/python"
        shutil.copytree(SOURCE / "tools/python", source)
        shutil.copy(SOURCE / "CMakeLists.txt", self.here / "weft")
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
        run(*pip, "wheel", "--no-index", "--no-build-isolation", "--no-deps", "-w", self.here, source,
            WEFT_BUILD_DIR=str(BUILD))
        (wheel,) = self.here.glob("*.whl")
        self.assertRegex(wheel.name, rf"^weft-{re.escape(weft.version())}-cp3\d+-cp3\d+-linux_\w+\.whl$")
        with zipfile.ZipFile(wheel) as packed:
            licenses = [name for name in packed.namelist() if name.endswith("/LICENSE")]
            self.assertEqual([packed.read(name) for name in licenses], [(SOURCE / "LICENSE").read_bytes()])
        run(sys.executable, "-m", "venv", "--without-pip", self.here / "venv")
        python = self.here / "venv/bin/python"
        run(*pip, "--python", python, "install", "--no-index", "--no-deps", wheel)
        page = (SOURCE / "tools/python/README.md").read_text(encoding="utf-8")
        example, shown = re.search(r"```python\n(.*?)```\n+```\n(.*?)```", page, re.S).groups()
        example = example.replace('"scenarios/', f'"{SOURCE}/scenarios/')
        said = run(python, "-c", example + "\nimport sys; print(weft.__file__, file=sys.stderr)", PYTHONPATH="")
        self.assertEqual(said, shown)
        where = run(python, "-c", "import weft; print(weft.__file__)", PYTHONPATH="")
        self.assertTrue(where.startswith(str(self.here / "venv")), where)


if __name__ == "__main__":
    WEFT = os.path.abspath(sys.argv.pop(1))
    SOURCE, BUILD = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
    os.environ["PYTHONPATH"] = str(BUILD / "python")
    sys.path.insert(0, str(BUILD / "python"))
    import weft
    tests = unittest.main(argv=[sys.argv[0], *sys.argv[1:]], exit=False).result
    for test, why in tests.skipped:  # tools/check shows these lines
        print(f"skipped: {test.id().removeprefix('__main__.')}: {why}", file=sys.stderr)
    sys.exit(not tests.wasSuccessful())
