#!/usr/bin/env python3
"""Executes every notebook on results of the quickstart at few sizes, of a sweep of it and of a calibration, and
looks at what comes out.

    notebooks_test.py WEFT SOURCE_DIR      (needs jupyter-nbconvert, python3-ipykernel, python3-matplotlib)
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

WEFT = ""
SOURCE = pathlib.Path()
SWEEP = ("--set", "nic.count=1,2,4,8,9", "--set", "wire.kind=infiniband,roce")  # 9 is refused
# From a start that is off, so that there is something to find.
CALIBRATION = ("--env", "NCCL_NVLS_ENABLE=0", "--by", "op,proto", "--fit", "nccl.launch_simple,gpu.host_load_extra",
               "--set", "gpu.host_load_extra=500 ns")


def outputs(notebook):
    return [output for cell in notebook["cells"] if cell["cell_type"] == "code"
            for output in cell["outputs"]]


class Notebooks(unittest.TestCase):
    def executed(self, name, here, **variables):
        """The notebook with what its cells put out; `variables` name its files."""
        folder = str(here)
        environment = {**os.environ, **variables, "IPYTHONDIR": folder, "MPLCONFIGDIR": folder,
                       "JUPYTER_RUNTIME_DIR": folder, "HOME": folder}
        done = subprocess.run(["jupyter-nbconvert", "--to", "notebook", "--execute", "--output-dir", folder,
                               SOURCE / "notebooks" / name], env=environment, check=False, capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        made = outputs(json.loads((here / name).read_text(encoding="utf-8")))
        self.assertEqual([o for o in made if o["output_type"] == "error" or o.get("name") == "stderr"], [])
        images = [o["data"]["image/png"] for o in made if "image/png" in o.get("data", {})]
        self.assertGreater(min(map(len, images)), 10_000, "an empty figure")
        return images, "".join("".join(o["text"]) for o in made if o.get("name") == "stdout")

    def test_curves(self):
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            few_sizes = (SOURCE / "scenarios/quickstart.yaml").read_text(encoding="utf-8")
            for old, new in (("max: 8 GiB, factor: 2", "max: 8 MiB, factor: 32"),
                             ("../topologies", str(SOURCE / "topologies"))):
                self.assertIn(old, few_sizes)
                few_sizes = few_sizes.replace(old, new)
            (here / "few.yaml").write_text(few_sizes, encoding="utf-8")
            subprocess.run([WEFT, "run", here / "few.yaml", "--json", here / "r.json"], check=True,
                           stdout=subprocess.DEVNULL)
            swept = subprocess.run([WEFT, "sweep", here / "few.yaml", *SWEEP, "--csv", here / "s.csv"],
                                   stderr=subprocess.DEVNULL, check=False)
            self.assertEqual(swept.returncode, 2)  # as one point is refused
            images, said = self.executed("curves.ipynb", here, WEFT_RESULT=str(here / "r.json"),
                                         WEFT_SWEEP=str(here / "s.csv"))
            result = json.loads((here / "r.json").read_text(encoding="utf-8"))
        self.assertEqual(len(images), 3)
        for row in result["results"][-2:]:
            self.assertIn(f"{row['memory_path']}: {row['busbw_GBps']:.1f} GB/s at {row['bytes']} B\n", said)
        self.assertIn("16 curves\n", said)
        self.assertRegex(said, "not run: --set: nic.count: '9' is not")

    def test_calibration(self):
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            subprocess.run([WEFT, "calibrate", SOURCE / "tests/data/h200/shm.csv", "--machine",
                            SOURCE / "topologies/h200-vm.yaml", *CALIBRATION, "--json", here / "c.json"], check=True,
                           stdout=subprocess.DEVNULL)
            images, said = self.executed("calibration.ipynb", here, WEFT_CALIBRATION=str(here / "c.json"))
            report = json.loads((here / "c.json").read_text(encoding="utf-8"))
        self.assertEqual(len(images), 2)
        for parameter in report["parameters"]:
            self.assertIn(f"{parameter['key']}: {parameter['start']} -> {parameter['value']} (", said)
        after = report["held_out"]["after"]
        self.assertRegex(said, rf"held_out: {after['n']} rows, .* median .* -> {after['median_abs']:.1%}, ")

    def test_hold_no_outputs_in_git(self):
        notebooks = sorted((SOURCE / "notebooks").glob("*.ipynb"))
        self.assertEqual([notebook.name for notebook in notebooks], ["calibration.ipynb", "curves.ipynb"])
        for notebook in notebooks:
            content = json.loads(notebook.read_text(encoding="utf-8"))
            self.assertEqual(outputs(content), [])
            for cell in content["cells"]:
                self.assertIsNone(cell.get("execution_count"))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    WEFT = os.path.abspath(sys.argv[1])
    SOURCE = pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=sys.argv[:1])
