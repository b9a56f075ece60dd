#!/usr/bin/env python3
"""`weft step`: a training step.

    step_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import csv
import io
import json

import cli_test
from cli_test import SMALL, CliTest, weft

STEP = """scenario: step
topology: ../../topologies/hgx-h100-8nic.yaml
nodes: 2
workload:
  step:
    layers: 4
    micro_batches: 2
    compute: {forward: 100 us, backward: 200 us, optimizer: 50 us}
    bytes: {activations: 4 MiB, gradients: 8 MiB, parameters: 8 MiB}
    parallel: {tensor: 4, data: 2, pipeline: 2}
    sharding: optimizer
    overlap: [gradients]
"""

BOGUS = (
    (["step"], "scenario is required (see weft --help)"),
    (["step", "nowhere.yaml"], "nowhere.yaml: no such file"),
    (["step", SMALL], "small.yaml: has no `workload: {step: ...}`; weft run runs it"),
    (["run", "step.yaml"], "step.yaml:5:3: this is a training step: weft step runs it"),
    (["step", "step.yaml", "--set", "nodes=3"],
     "step.yaml:5:3: the step is split over 16 GPUs, and ../../topologies/hgx-h100-8nic.yaml has 24 (3 nodes of 8); "
     "with `data: rest` it is split over all of them, 3 copies of the model"),
    (["step", "step.yaml", "--set", "gpu.count=9"],
     "--set: gpu.count: '9' is not a whole number from 1 to 8, the GPUs of a node in "
     "../../topologies/hgx-h100-8nic.yaml"),
    (["step", "step.yaml", "--set", "nic.cable_loss=0.01"],
     "../../topologies/hgx-h100-8nic.yaml:DEVICE: nic.cable_loss of nic0: losses need --fidelity packet"),
)


class Step(CliTest):
    def setUp(self):
        super().setUp()
        (self.here / "step.yaml").write_text(STEP)

    def test_bad_input(self):
        for arguments, expected in BOGUS:
            if "DEVICE" in expected:
                lines = (self.root / "topologies/hgx-h100-8nic.yaml").read_text().split("\n")
                at = next(i for i, line in enumerate(lines) if line.strip().startswith("nic0:"))
                column = len(lines[at]) - len(lines[at].lstrip()) + 1
                expected = expected.replace("DEVICE", f"{at + 1}:{column}")
            with self.subTest(arguments):
                self.refused(arguments, expected)

    def test_the_tables_say_what_the_json_says(self):
        text = self.ok("step", "step.yaml")
        result = json.loads(self.ok("step", "step.yaml", "--json", "-"))
        self.assertEqual(result["schema"], "weft.step/1")
        self.assertEqual((result["ranks"], result["nodes"]), (16, 2))
        row, = result["results"]
        self.assertIn(f"# gdr: a step of {row['step_us'] / 1e3:.3f} ms\n", text)
        for name in ("forward", "backward", "optimizer", "tensor", "data", "stages forward", "stages back"):
            self.assertRegex(text, rf"(?m)^ {name} +[0-9.]+ ")
        gpu = sum(c["busy_us"] for c in row["compute"]) + row["idle_us"]
        gpu += sum(g["exposed_us"] + g["peers_us"] for g in row["communication"])
        self.assertAlmostEqual(gpu, row["step_us"], delta=1e-3)
        path = sum(c["critical_us"] for c in row["compute"]) + sum(g["critical_us"] for g in row["communication"])
        self.assertAlmostEqual(path, row["step_us"], delta=1e-3)
        self.assertAlmostEqual(sum(c["share"] for c in row["limited_by"]), 1, delta=1e-9)
        self.assertTrue(any("SMs" in note for note in result["notes"]), "what is not modelled is said")

    def test_the_same_input_has_the_same_bytes(self):
        self.assertEqual(*(self.ok("step", "step.yaml", "--json", "-") for _ in range(2)))

    def test_both_memory_paths(self):
        (self.here / "step.yaml").write_text(STEP + "memory_paths: [gdr, host-staged]\n")
        result = json.loads(self.ok("step", "step.yaml", "--json", "-"))
        gdr, staged = result["results"]
        self.assertEqual((gdr["memory_path"], staged["memory_path"]), ("gdr", "host-staged"))
        self.assertLess(gdr["step_us"], staged["step_us"])

    def test_chakra_traces(self):
        """Sixteen ranks compute, all-reduce and compute; written by hand, as protobuf has it."""
        def varint(value):
            out = b""
            while value >= 0x80:
                out, value = out + bytes([value & 0x7f | 0x80]), value >> 7
            return out + bytes([value])

        def field(number, value):
            if isinstance(value, int):
                return varint(number << 3) + varint(value)
            return varint(number << 3 | 2) + varint(len(value)) + value

        def attribute(name, value):
            return field(10, field(1, name) + field(9, value))
        nodes = [field(1, b"0.0.4"),
                 field(1, 1) + field(3, 4) + field(7, 300),
                 field(1, 2) + field(3, 7) + field(5, varint(1)) + attribute(b"comm_type", 0)
                 + attribute(b"comm_size", 1 << 26),
                 field(1, 3) + field(3, 4) + field(5, varint(2)) + field(7, 100)]
        for rank in range(16):
            (self.here / f"t.{rank}.et").write_bytes(b"".join(varint(len(n)) + n for n in nodes))
        (self.here / "chakra.yaml").write_text(STEP.split("workload")[0] + "workload: {chakra: t}\n")
        run = weft("step", "chakra.yaml", "--json", "-", cwd=self.here)
        if b"built without protobuf" in run.stderr:
            self.skipTest("built without protobuf")
        row, = json.loads(run.stdout)["results"]
        compute, = (c for c in row["compute"] if c["name"] == "GPU")
        self.assertAlmostEqual(compute["busy_us"], 400, delta=1e-6)
        exposed, = row["communication"]
        # On average over the GPUs, some of which are done before others.
        self.assertAlmostEqual(row["step_us"] - 400, exposed["exposed_us"], delta=0.01 * exposed["exposed_us"])
        def swept():
            self.ok("sweep", "chakra.yaml", "--csv", "out.csv")
            return next(csv.DictReader(io.StringIO((self.here / "out.csv").read_text())))
        first = swept()
        self.assertEqual((first["op"], float(first["time_us"])), ("step", row["step_us"]))
        (self.here / "t.7.et").write_bytes(b"".join(varint(len(n)) + n for n in [*nodes[:1], nodes[1].replace(
            field(7, 300), field(7, 301)), *nodes[2:]]))
        self.assertNotEqual(swept()["point"], first["point"])
        (self.here / "out.csv").unlink()
        self.refused(["run", "chakra.yaml"], "chakra.yaml:4:12: this is a training step: weft step runs it")
        (self.here / "t.0.et").write_bytes(b"{}")  # not read if there are too few GPUs
        self.refused(["step", "chakra.yaml", "--set", "nodes=1"],
                     "chakra.yaml:4:12: the step is split over 16 GPUs, and ../../topologies/hgx-h100-8nic.yaml has 8 "
                     "(1 nodes of 8)")
        self.refused(["step", "chakra.yaml"],
                     "t.0.et: at byte 0: no message of a Chakra execution trace (of at most 16 MiB), or cut off")
        (self.here / "t.5.et").unlink()
        for command in ("step", "check"):
            self.refused([command, "chakra.yaml"], "t.5.et: no such file, but t.6.et is there")
        (self.here / "t.0.et").unlink()
        self.refused(["step", "chakra.yaml"], "t.0.et: no such file")

    def test_a_step_is_checked(self):
        self.assertIn(": ok", self.ok("check", "step.yaml"))


if __name__ == "__main__":
    cli_test.main(__doc__)
