#!/usr/bin/env python3
"""Executes every notebook, on the quickstart at few sizes and on a calibration, and looks at what comes out.

    notebooks_test.py WEFT SOURCE_DIR PYTHON_PACKAGES    (the last: a folder that holds the package weft, or -)

Needs jupyter-nbconvert, python3-ipykernel, python3-matplotlib.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

WEFT = ""
SOURCE = pathlib.Path()
PACKAGE = "-"
# From a start that is off, so that there is something to find.
CALIBRATION = ("--env", "NCCL_NVLS_ENABLE=0", "--by", "op,proto", "--fit", "nccl.launch_simple,gpu.host_load_extra",
               "--set", "gpu.host_load_extra=500 ns")


def outputs(notebook):
    return [output for cell in notebook["cells"] if cell["cell_type"] == "code"
            for output in cell["outputs"]]


class Notebooks(unittest.TestCase):
    def executed(self, notebook, here, **variables):
        """What the cells of the notebook put out; `variables` name its files."""
        folder = str(here)
        name = notebook.name
        environment = {**os.environ, **variables, "IPYTHONDIR": folder, "MPLCONFIGDIR": folder,
                       "JUPYTER_RUNTIME_DIR": folder, "HOME": folder, "PYTHONPATH": PACKAGE}
        done = subprocess.run(["jupyter-nbconvert", "--to", "notebook", "--execute", "--output-dir", folder,
                               notebook], env=environment, check=False, capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        made = outputs(json.loads((here / name).read_text(encoding="utf-8")))
        self.assertEqual([o for o in made if o["output_type"] == "error" or o.get("name") == "stderr"], [])
        images = [o["data"]["image/png"] for o in made if "image/png" in o.get("data", {})]
        self.assertGreater(min(map(len, images)), 10_000, "an empty figure")
        return images, "".join("".join(o["text"]) for o in made if o.get("name") == "stdout")

    def test_curves(self):
        if PACKAGE == "-":
            self.skipTest("no Python package in this build")
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            few_sizes = (SOURCE / "scenarios/quickstart.yaml").read_text(encoding="utf-8")
            for old, new in (("max: 8 GiB, factor: 2", "max: 8 MiB, factor: 32"),
                             ("../topologies", str(SOURCE / "topologies"))):
                self.assertIn(old, few_sizes)
                few_sizes = few_sizes.replace(old, new)
            (here / "few.yaml").write_text(few_sizes, encoding="utf-8")
            notebook = (SOURCE / "notebooks/curves.ipynb").read_text(encoding="utf-8")
            self.assertIn("[1, 2, 4, 8]", notebook)
            (here / "in").mkdir()
            (here / "in/curves.ipynb").write_text(notebook.replace("[1, 2, 4, 8]", "[1, 2, 4, 8, 9]"),
                                                  encoding="utf-8")  # 9 is refused
            images, said = self.executed(here / "in/curves.ipynb", here, WEFT_SCENARIO=str(here / "few.yaml"))
            run = subprocess.run([WEFT, "run", here / "few.yaml", "--json", "-"], check=True, capture_output=True)
            result = json.loads(run.stdout)
        self.assertEqual(len(images), 3)
        for row in result["results"][-2:]:
            self.assertIn(f"{row['memory_path']}: {row['busbw_GBps']:.1f} GB/s at {row['bytes']} B\n", said)
        self.assertIn("16 curves\n", said)
        self.assertRegex(said, "not run: --set: nic.count: '9' is not")

    def test_slow_run(self):
        if PACKAGE == "-":
            self.skipTest("no Python package in this build")
        machine = SOURCE / "topologies/hgx-h100-8nic.yaml"
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            log = here / "log.csv"
            log.write_text("transport,memory_path,hosts,ranks,op,bytes,us\n"
                           "net,gdr,2,16,allreduce,1048576,80\nnet,gdr,2,16,allreduce,268435456,2600\n"
                           "net,gdr,2,16,alltoall,268435456,9000\n")
            for variables in ({}, {"WEFT_LOG": str(log)}):
                images, said = self.executed(SOURCE / "notebooks/slow-run.ipynb", here, WEFT_TOPOLOGY=str(machine),
                                             **variables)
                self.assertEqual(len(images), 1)
                self.assertRegex(said, r"(?m)^[1-9] of [63] rows are below the floor\nexplained\n.*; to verify: ")
            self.assertIn("allreduce on 2 nodes: 2 of 2 rows have a floor\nalltoall on 2 nodes: 0 of 1 rows", said)
            run = subprocess.run([WEFT, "explain", log, "--machine", machine, "--json", "-"], check=False,
                                 capture_output=True)
        self.assertIn(json.loads(run.stdout)["answers"][0]["causes"][0]["what"], said)

    def test_calibration(self):
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            subprocess.run([WEFT, "calibrate", SOURCE / "tests/data/h200/shm.csv", "--machine",
                            SOURCE / "topologies/h200-vm.yaml", *CALIBRATION, "--json", here / "c.json"], check=True,
                           stdout=subprocess.DEVNULL)
            images, said = self.executed(SOURCE / "notebooks/calibration.ipynb", here,
                                         WEFT_CALIBRATION=str(here / "c.json"))
            report = json.loads((here / "c.json").read_text(encoding="utf-8"))
        self.assertEqual(len(images), 2)
        for parameter in report["parameters"]:
            self.assertIn(f"{parameter['key']}: {parameter['start']} -> {parameter['value']} (", said)
        after = report["held_out"]["after"]
        self.assertRegex(said, rf"held_out: {after['n']} rows, .* median .* -> {after['median_abs']:.1%}, ")

    def test_the_page_names_files_from_the_root_on(self):
        page = (SOURCE / "notebooks/README.md").read_text(encoding="utf-8")
        files = re.findall(r"\b(?:WEFT_\w+|PYTHONPATH)=(\S+)", page)
        self.assertGreater(len(files), 3)
        for file in files:  # nbconvert runs in the notebook's folder
            self.assertTrue(file.startswith("$PWD/"), file)

    def test_hold_no_outputs_in_git(self):
        notebooks = sorted((SOURCE / "notebooks").glob("*.ipynb"))
        self.assertEqual([notebook.name for notebook in notebooks], ["calibration.ipynb", "curves.ipynb",
                                                                      "slow-run.ipynb"])
        for notebook in notebooks:
            content = json.loads(notebook.read_text(encoding="utf-8"))
            self.assertEqual(outputs(content), [])
            for cell in content["cells"]:
                self.assertIsNone(cell.get("execution_count"))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    WEFT = os.path.abspath(sys.argv[1])
    SOURCE = pathlib.Path(sys.argv[2]).resolve()
    PACKAGE = sys.argv[3]
    tests = unittest.main(argv=sys.argv[:1], exit=False).result
    for test, why in tests.skipped:  # tools/check shows these lines
        print(f"skipped: {test.id().removeprefix('__main__.')}: {why}", file=sys.stderr)
    sys.exit(not tests.wasSuccessful())
