#!/usr/bin/env python3
"""weft as its users get it: `cmake --install` with a project that finds it, and the Debian package.

    install_test.py BUILD_DIR SOURCE_DIR CMAKE CXX [-v] [TEST...]
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = SOURCE = pathlib.Path()
CMAKE = CXX = ""
LIMIT_S = 1000

SCENARIO = """scenario: consumer
topology: {source}/topologies/hgx-h100-1nic.yaml
nodes: 2
workload: {{op: allreduce, sizes: [1 KiB, 1 MiB]}}
"""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=LIMIT_S, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} exits with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.here = pathlib.Path(folder.name)


class Commit(InFolder):
    def written(self, source):
        run(CMAKE, f"-DOUTPUT={self.here}/commit.cpp", f"-DSOURCE_DIR={source}", "-P",
            SOURCE / "sim/base/commit.cmake")
        return re.search(r'return "(.*)";', (self.here / "commit.cpp").read_text()).group(1)

    def test_a_folder_that_is_no_clone_has_no_commit(self):
        (self.here / "tarball").mkdir()
        self.assertEqual(self.written(self.here / "tarball"), "unknown")

    @unittest.skipUnless(shutil.which("git"), "no git here")
    def test_a_clone_has_one_and_the_source_stays_while_it_does(self):
        clone = self.here / "clone"
        git = ("git", "-C", clone, "-c", "user.name=t", "-c", "user.email=t@t.invalid")
        run("git", "init", "-q", clone)
        (clone / "file").write_text("a")
        (clone / "tarball").mkdir()
        run(*git, "add", "file")
        run(*git, "commit", "-q", "-m", "a")
        head = run(*git, "rev-parse", "--short=12", "HEAD").strip()
        self.assertEqual(self.written(clone), head)
        os.utime(self.here / "commit.cpp", (1, 1))
        self.assertEqual(self.written(clone), head)
        self.assertEqual(os.stat(self.here / "commit.cpp").st_mtime, 1, "nothing is compiled again")
        self.assertEqual(self.written(clone / "tarball"), "unknown", "a tarball in someone's clone")
        (clone / "file").write_text("b")
        self.assertEqual(self.written(clone), head + "-dirty")


class Prefix(InFolder):
    """One test: building the consumer takes most of the time."""

    def setUp(self):
        super().setUp()
        self.prefix = self.here / "prefix"
        run(CMAKE, "--install", BUILD, "--prefix", self.prefix)
        self.weft = self.prefix / "bin/weft"

    def build_consumer(self):
        # Another place than the one it was installed to: nothing may hold absolute paths.
        moved = self.here / "moved"
        self.prefix.rename(moved)
        self.prefix, self.weft = moved, moved / "bin/weft"
        project = self.here / "project"
        shutil.copytree(SOURCE / "tests/install/consumer", project)
        shown = re.search(r"```cpp\n(.*?)```", (SOURCE / "README.md").read_text(encoding="utf-8"), re.S)
        (project / "readme.cpp").write_text("#include <iostream>\n#include <weft/weft.hpp>\nint main() {\n"
                                            + shown.group(1) + "}\n")
        build = self.here / "build"
        run(CMAKE, "-S", project, "-B", build,
            f"-DCMAKE_PREFIX_PATH={moved}", f"-DCMAKE_CXX_COMPILER={CXX}")
        run(CMAKE, "--build", build)
        return build

    def same_as_weft_run(self, busbw):
        scenario = self.here / "s.yaml"
        scenario.write_text(SCENARIO.format(source=SOURCE))
        for settings in ([], ["wire.rate=200 Gb/s", "nic.pcie_width=8"]):
            of_library = [line.split("\t") for line in run(busbw, scenario, *settings).splitlines()]
            options = [word for setting in settings for word in ("--set", setting)]
            of_program = json.loads(run(self.weft, "run", scenario, "--json", "-", *options))
            self.assertEqual(len(of_library), 4)
            for (path, size, time, bus, limit), row in zip(of_library, of_program["results"]):
                self.assertEqual((path, int(size), float(time), float(bus), limit),
                                 (row["memory_path"], row["bytes"], row["time_us"], row["busbw_GBps"],
                                  row["limited_by"][0]["cause"]))

    def same_as_weft_show_and_perftest(self, nearest_nic):
        topology = self.prefix / "share/weft/topologies/hgx-h100-4nic.yaml"
        lines = [line.split("\t") for line in run(nearest_nic, topology).splitlines()]
        best = {}
        for pair in json.loads(run(self.weft, "show", topology, "--format", "json"))["pairs"]:
            if pair["nic_reads_gpu_GBps"] > best.get(pair["gpu"], {"nic_reads_gpu_GBps": -1})["nic_reads_gpu_GBps"]:
                best[pair["gpu"]] = pair
        self.assertEqual([(gpu, nic, path, float(rate)) for gpu, nic, path, rate in lines[:8]],
                         [(gpu, p["nic"], p["class"], p["nic_reads_gpu_GBps"])
                          for gpu, p in sorted(best.items())])
        rows = json.loads(run(self.weft, "perftest", topology, "--size", "4096,65536", "--json", "-"))
        self.assertEqual([[int(size), float(rate), float(latency)] for size, rate, latency in lines[8:]],
                         [[row["bytes"], row["bw_Gbps"], row["latency_us"]] for row in rows["results"]])

    def same_as_weft_expect_and_explain(self, slow_run):
        topology = self.prefix / "share/weft/topologies/hgx-h100-4nic.yaml"
        log = self.here / "log.csv"
        log.write_text("transport,memory_path,hosts,ranks,op,bytes,us\n"
                       "net,gdr,2,16,allreduce,1048576,80\nnet,gdr,2,16,allreduce,268435456,9000\n")
        rows = json.loads(run(self.weft, "expect", topology, "--nodes", "2", "--size", "1M,64M", "--json", "-"))
        explained = subprocess.run([self.weft, "explain", log, "--machine", topology, "--json", "-"],
                                   capture_output=True, timeout=LIMIT_S, check=False)
        answer = json.loads(explained.stdout)
        self.assertEqual(answer["verdict"], "explained")
        lines = run(slow_run, topology, log).splitlines()
        self.assertEqual([[float(number) for number in line.split("\t")] for line in lines[:2]],
                         [[row["bytes"], row["busbw_GBps"], row["floor_GBps"]] for row in rows["results"]])
        self.assertEqual(lines[2:], [answer["verdict"], *(each["causes"][0]["id"] for each in answer["answers"])])

    def errors_are_said(self, busbw):
        done = subprocess.run([busbw, self.here / "s.yaml", "wire.rte=200 Gb/s"], capture_output=True,
                              text=True, timeout=LIMIT_S)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("did you mean 'wire.rate'?", done.stderr)
        done = subprocess.run([busbw, self.here / "none.yaml"], capture_output=True, text=True,
                              timeout=LIMIT_S)
        self.assertEqual((done.returncode, done.stderr), (2, f"{self.here}/none.yaml: no such file\n"))

    def test_a_project_finds_it_and_computes_as_the_program_does(self):
        header = (self.prefix / "include/weft/weft.hpp").read_text()
        self.assertEqual(re.findall(r'#include "', header), [], "the only public header")
        self.assertEqual([f.name for f in self.prefix.glob("include/**/*.*")], ["weft.hpp"])
        build = self.build_consumer()
        self.same_as_weft_run(build / "busbw")
        self.same_as_weft_show_and_perftest(build / "nearest_nic")
        self.same_as_weft_expect_and_explain(build / "slow_run")
        self.errors_are_said(build / "busbw")
        self.assertRegex(run(build / "readme", cwd=SOURCE), r"(?m)^8589934592 \d+\.\d+ wire, NIC to switch$")
        self.assertIn("2 x hgx-h100-8nic",
                      run(self.weft, "check", self.prefix / "share/weft/scenarios/quickstart.yaml"))


MISSING = [tool for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps", "file") if not shutil.which(tool)]


@unittest.skipIf(MISSING, f"the package is not built: no {', '.join(MISSING)} here (tools/install-deps check)")
class Package(InFolder):
    def test_the_package_holds_what_is_promised(self):
        run("cpack", "-G", "DEB", "-B", self.here, "--config", BUILD / "CPackConfig.cmake", cwd=self.here)
        (package,) = self.here.glob("*.deb")
        self.assertRegex(package.name, r"^weft_\d+\.\d+\.\d+_\w+\.deb$")
        held = {line.split()[-1] for line in run("dpkg-deb", "-c", package).splitlines()}
        for file in ("bin/weft", "bin/weft-collect", "include/weft/weft.hpp", "share/man/man1/weft.1",
                     "share/bash-completion/completions/weft", "share/zsh/vendor-completions/_weft",
                     "share/weft/topologies/hgx-h100-8nic.yaml", "share/weft/scenarios/quickstart.yaml",
                     "share/doc/weft/copyright"):
            self.assertIn("./usr/" + file, held)
        for name in (r"libweft\.a", r"cmake/weft/weftConfig\.cmake", r"cmake/weft/weftTargets\.cmake"):
            self.assertTrue(any(re.fullmatch(r"\./usr/lib/(.*/)?" + name, file) for file in held), name)
        fields = dict(re.findall(r"(?m)^(\S+): (.*)$", run("dpkg-deb", "-I", package).replace("\n ", "\n")))
        for library in ("libc6", "libfmt9", "libnlopt0", "libpugixml1v5", "libstdc++6", "libyaml-cpp0.7"):
            self.assertIn(library, fields["Depends"])
        self.assertIn("libyaml-cpp-dev", fields["Recommends"])
        if "python3-pandas" in (BUILD / "CPackConfig.cmake").read_text():  # else it is left out
            python = "./usr/lib/python3/dist-packages/weft/"
            self.assertLessEqual({python + name for name in ("__init__.py", "py.typed", "_weft.pyi")}, held)
            self.assertTrue(any(file.startswith(python + "_weft.cpython-3") for file in held))
            self.assertRegex(fields["Recommends"], r"python3 \(<< 3\.\d+\)")
            self.assertNotIn("python3", fields["Depends"], "the program does without")
        # As it lies in the package, from anywhere.
        run("dpkg-deb", "-x", package, self.here / "root")
        self.assertIn("commit", run(self.here / "root/usr/bin/weft", "--version", cwd="/"))


if __name__ == "__main__":
    BUILD, SOURCE = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
    CMAKE, CXX = sys.argv.pop(1), sys.argv.pop(1)
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
