#!/usr/bin/env python3
"""`weft import`, and tools/collect whose tar it reads.

    import_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import shutil
import subprocess
import tarfile
import time
import unittest

import cli_test
from cli_test import CliTest, weft

DATA = ("lspci-vvv-dell-h100.txt", "topo-m-dgx-a100.txt", "lspci-tv-flat-vm.txt", "lspci-tv-h200-vm.txt",
        "nccl-graph-h200-vm.txt", "ibstat-h100-down.txt", "nvidia-smi-q-h100.txt")
SHELLS = [shell for shell in (["dash"], ["busybox", "sh"]) if shutil.which(shell[0])]


class Import(CliTest):
    def setUp(self):
        super().setUp()
        for name in DATA:
            shutil.copy(cli_test.SOURCE / "tests/data/evidence" / name, self.here)

    def imported(self, *arguments):
        """What goes to standard error; the machine is in m.yaml."""
        run = weft("import", *arguments, "-o", "m.yaml", cwd=self.here)
        self.assertEqual(run.returncode, 0, run.stderr.decode())
        return run.stderr.decode()

    def facts(self, *arguments):
        run = weft("import", *arguments, "--facts", cwd=self.here)
        self.assertEqual(run.returncode, 0, run.stderr.decode())
        return run.stdout.decode()

    def test_what_it_writes_loads_in_every_command(self):
        self.imported("lspci-vvv-dell-h100.txt")
        self.assertRegex(weft("check", "m.yaml", cwd=self.here).stdout.decode(),
                         "^m.yaml: ok, 1 x imported with 2 GPUs and 2 NICs a node\n")
        shown = self.ok("show", "m.yaml")
        self.assertIn("gpu0 (h100-sxm)  Gen5 x16", shown)
        self.assertRegex(shown, r"gpu0-nic0 +PIX .* GDR ")
        self.ok("nccl", "m.yaml", "--nodes", "2")
        (self.here / "s.yaml").write_text(
            "scenario: s\ntopology: m.yaml\nnodes: 2\nmemory_paths: [gdr]\n"
            "workload: {op: allreduce, sizes: [1 KiB]}\n")
        self.assertEqual(weft("run", "s.yaml", cwd=self.here).returncode, 0)

    def test_a_run_says_which_gpus_it_is_of(self):
        (self.here / "run.log").write_text(
            "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor)\n# Using devices\n" +
            "".join(f"#  Rank {rank:2} Group  0 Pid   1 on  node1 device  {rank} [0x{bus}] NVIDIA A100-SXM4-80GB\n"
                    for rank, bus in enumerate(("07", "0f", "47", "4e", "87", "90", "b7", "bd"))) +
            "#  size  count  type  redop  root  time  algbw  busbw #wrong\n8 2 float sum -1 9.1 0.00 0.00 0\n")
        said = self.imported("topo-m-dgx-a100.txt", "run.log")
        self.assertNotIn("missing: gpu.part", said)
        self.assertEqual((self.here / "m.yaml").read_text().count("part: a100-sxm\n"), 8)
        self.assertIn("does not apply:", self.ok("doctor", "topo-m-dgx-a100.txt", "run.log"))
        self.assertIn("allreduce", self.ok("expect", "run.log", "--size", "64M"))

    def test_a_bond_is_said_to_have_two_ports(self):
        (self.here / "topo.txt").write_text("\tGPU0\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPIX\t0-47\t0\n"
                                            "NIC0\tPIX\t X \n\nNIC Legend:\n\n  NIC0: mlx5_bond_0\n")
        self.assertIn(b"mlx5_bond_0: bonds of two ports, drawn with one", weft("import", "topo.txt", cwd=self.here).stderr)

    def test_values_have_their_places_and_what_is_missing_is_said(self):
        said = self.imported("lspci-vvv-dell-h100.txt")
        text = (self.here / "m.yaml").read_text()
        self.assertRegex(text, r"pcie_width: \{value: 16, origin: measured, "
                               r'source: "lspci-vvv-dell-h100.txt:\d+"\}')
        self.assertRegex(text, r"(?m)^    gpu0:  # lspci-vvv-dell-h100.txt:\d+$")
        missing = "missing: cpu.iommu of cpu0, cpu1: off (assumed); `cat /proc/cmdline; dmesg` would tell\n"
        self.assertIn(missing, said)
        self.assertIn("# " + missing, text)

    def test_the_same_bytes_again(self):
        self.imported("topo-m-dgx-a100.txt", "ibstat-h100-down.txt")
        first = (self.here / "m.yaml").read_bytes()
        self.imported("topo-m-dgx-a100.txt", "ibstat-h100-down.txt")
        self.assertEqual((self.here / "m.yaml").read_bytes(), first)

    def test_conflicts_name_both_places(self):
        (self.here / "sys.txt").write_text("/sys/bus/pci/devices/0000:1a:00.0/max_link_width:8\n")
        self.assertRegex(self.imported("lspci-vvv-dell-h100.txt", "sys.txt"),
                         r"conflict: 0000:1a:00.0: PCIe lanes: 16 \(lspci-vvv-dell-h100.txt:\d+\) is taken, "
                         r"not 8 \(sys.txt:1\)\n")

    def test_the_odd_host_is_named(self):
        for host, width in (("a", 16), ("b", 8), ("c", 16)):
            (self.here / f"{host}.sys").write_text(f"/sys/bus/pci/devices/0000:1a:00.0/current_link_width:{width}\n")
        files = [f"{host}={file}" for host in "abc" for file in ("lspci-vvv-dell-h100.txt", f"{host}.sys")]
        said = self.imported(*files)
        self.assertIn("odd host: b: 0000:1a:00.0 trained lanes is 8 (b.sys:1), elsewhere 16 (", said)

    def test_facts_are_lines(self):
        lines = self.ok("import", "ibstat-h100-down.txt", "--facts").splitlines()
        self.assertIn("\tmlx5_5\tstate\tdown\t", "\n".join(lines))
        self.assertTrue(all(line.count("\t") == 4 for line in lines))

    def test_bad_input(self):
        (self.here / "words.txt").write_text("hello\n")
        (self.here / "t.yaml").write_text("topology: t\nnode: {devices: {g: {kind: gpu}}}\n")
        for arguments, expected in (
                (["import"], "evidence is required (see weft --help)"),
                (["import", "nowhere"], "nowhere: no such file"),
                (["import", "ibstat-h100-down.txt"],
                 "no GPU in ibstat-h100-down.txt (ibstat): a machine needs `lspci -vvv`, `nvidia-smi topo -m` or "
                 "NCCL's log with its graph; --facts shows what was read"),
                (["import", "t.yaml"],
                 "t.yaml: is a topology, not another tool's output; weft show, check, nccl, perftest and copies read it"),
                (["show", "topo-m-dgx-a100.txt"],
                 "topo-m-dgx-a100.txt: is another tool's output, not a topology; weft import and doctor read it")):
            with self.subTest(arguments):
                self.refused(arguments, expected)

    def test_what_is_not_read_among_others_is_named(self):
        for name, text in (("words.txt", "hello\n"), ("empty.txt", ""), ("core", "\0ELF"),
                           ("dry.txt", "# weft-collect: rdma link\n"),
                           ("t.yaml", "topology: t\nnode: {devices: {g: {kind: gpu}}}\n")):
            (self.here / name).write_text(text)
        files = ("words.txt", "empty.txt", "core", "dry.txt", "t.yaml")
        said = self.imported("lspci-vvv-dell-h100.txt", *files)
        for line in ("words.txt: is no output that weft knows (it begins 'hello'): not read", "empty.txt: is empty: not read",
                     "core:1: is no text: a byte 0: not read", "dry.txt: rdma link printed nothing: not read",
                     "t.yaml: is a topology, not another tool's output; weft show, check, nccl, perftest and copies read it: "
                     "not read", "of other tools' output weft knows: "):
            self.assertIn("note: " + line, said)
        run = weft("import", "lspci-vvv-dell-h100.txt", *files, "--facts", cwd=self.here)
        self.assertEqual(run.returncode, 0)
        self.assertIn(b"note: words.txt: is no output", run.stderr)
        run = weft("import", *files, cwd=self.here)
        self.assertEqual((run.returncode, run.stdout), (2, b""))
        self.assertIn(b"error: none of the 5 files is read; the first, words.txt: is no output that weft knows "
                      b"(it begins 'hello'); known: ", run.stderr)

    def test_a_folder_is_its_files_and_its_folders_are_hosts(self):
        for host in ("n1", "n2"):
            (self.here / "all" / host / "deeper").mkdir(parents=True)
            shutil.copy(self.here / "lspci-vvv-dell-h100.txt", self.here / "all" / host / "lspci.txt")
            (self.here / "all" / host / "deeper" / "lspci.txt").write_text("hello\n")
        (self.here / "all" / "words.txt").write_text("hello\n")
        (self.here / "all" / "again").symlink_to(self.here)
        said = self.imported("all")
        self.assertIn("note: all/words.txt: is no output that weft knows (it begins 'hello'): not read", said)
        self.assertNotIn("deeper", said)
        facts = self.facts("all")
        self.assertEqual({line.split("\t")[0] for line in facts.splitlines()}, {"n1", "n2"})
        self.assertIn("all/n2/lspci.txt:", facts)
        one = self.facts("all/n1").replace("all/n1/lspci.txt", "lspci-vvv-dell-h100.txt")
        self.assertEqual(one, self.facts("lspci-vvv-dell-h100.txt"))
        for command in (["doctor", "all/n1"], ["expect", "all/n1", "--nodes", "1", "--op", "allreduce", "--size", "1M"]):
            self.assertIn(weft(*command, cwd=self.here).returncode, (0, 6), command)
        (self.here / "none").mkdir()
        self.refused(["import", "none"], "none: nothing in this folder is read")
        (self.here / "none" / "words.txt").write_text("hello\n")
        run = weft("doctor", "none", cwd=self.here)
        self.assertEqual((run.returncode, run.stdout), (2, b""))
        self.assertIn(b"none: nothing in this folder is read; the first, none/words.txt: is no output that weft knows", run.stderr)

    def test_an_import_takes_less_than_a_second(self):
        begin = time.monotonic()
        self.imported("lspci-vvv-dell-h100.txt", "nvidia-smi-q-h100.txt")
        # The sanitizer build is slow; the program as built for users takes some 10 ms.
        self.assertLess(time.monotonic() - begin, 10)


FAKES = {
    "lspci": 'case "$*" in *vvv*) cat "$DATA/lspci-vvv-dell-h100.txt";; *) exit 1;; esac',
    "nvidia-smi": 'case "$*" in -q) cat "$DATA/nvidia-smi-q-h100.txt"; '
                  'echo "    Processes"; echo "        Name : python secret.py";; esac',
    "ibstat": 'cat "$DATA/ibstat-h100-down.txt"; printf "\\tNode GUID: 0xa088c20300e3142a\\n"; '
              'echo "on $(hostname) 10.1.2.3 fe80:0000:0000:0000:a088:c203:00e3:142a 52:54:00:12:34:56"',
    "hostname": "echo secrethost.example.org",
    "ibv_devinfo": "exec sleep 30",
    "lsmod": 'echo "Module Size Used by"; echo "nvidia_peermem 1 0"',
    "dmesg": 'echo "[    1.000000] user secret"; echo "[    2.000000] iommu: Default domain type: Passthrough"',
    "lscpu": "yes 'Architecture: x86_64' | head -n 9000000",
    "rdma": "exit 1",
}


@unittest.skipUnless(SHELLS, "no dash and no busybox to run tools/collect with")
class Collect(CliTest):
    def setUp(self):
        super().setUp()
        self.fakes = self.root / "fakes"
        self.fakes.mkdir()
        for name, text in FAKES.items():
            (self.fakes / name).write_text(f"#!/bin/sh\n{text}\n")
            (self.fakes / name).chmod(0o755)
        system = self.root / "system"
        (system / "proc").mkdir(parents=True)
        (system / "proc/cmdline").write_text("BOOT_IMAGE=/v ro password=hunter2 iommu=pt pci=realloc\n")
        device = system / "sys/bus/pci/devices/0000:19:00.0"
        device.mkdir(parents=True)
        (device / "class").write_text("0x030200\n")
        (device / "max_link_width").write_text("16\n")
        self.environment = {"PATH": f"{self.fakes}:/usr/bin:/bin", "COLLECT_ROOT": str(system),
                            "DATA": str(cli_test.SOURCE / "tests/data/evidence"), "TMPDIR": str(self.root)}

    def collect(self, shell, *arguments):
        return subprocess.run([*shell, str(cli_test.SOURCE / "tools/collect"), *arguments], cwd=self.here,
                              env=self.environment, capture_output=True, timeout=100)

    def test_makes_a_tar_that_import_reads(self):
        for shell in SHELLS:
            with self.subTest(shell):
                begin = time.monotonic()
                run = self.collect(shell, "-o", "c.tar", "--seconds", "2")
                self.assertEqual((run.returncode, run.stderr), (0, b""))
                self.assertLess(time.monotonic() - begin, 30)  # ibv_devinfo hangs
                imported = weft("import", "c.tar", "-o", "m.yaml", cwd=self.here)
                self.assertEqual(imported.returncode, 0, imported.stderr.decode())
                text = (self.here / "m.yaml").read_text()
                self.assertIn("iommu: {value: passthrough, origin: measured", text)
                self.assertIn("lspci-vvv.txt:", text)
                self.assertIn("uname.txt (uname -a)", text)
                if shell[0] != "busybox":  # that has an lsmod of its own
                    self.assertIn("peer_mapping: {value: nvidia-peermem, origin: measured", text)
                self.assertEqual([path.name for path in self.root.glob("weft-collect*")], [])  # nothing is left

    def content(self, *arguments):
        run = self.collect(SHELLS[0], "-o", "c.tar", "--seconds", "2", *arguments)
        self.assertEqual(run.returncode, 0, run.stderr.decode())
        with tarfile.open(self.here / "c.tar") as tar:
            names = tar.getnames()
            texts = {member.name.split("/")[-1]: tar.extractfile(member).read().decode()
                     for member in tar.getmembers() if member.isfile()}
        return names, texts

    def test_leaves_out_what_is_secret(self):
        names, texts = self.content()
        everything = "\n".join([*names, *texts.values()])
        for secret in ("secrethost", "hunter2", "a088c20300e3142a", "10.1.2.3", "a088:c203", "52:54:00:12:34:56",
                       "secret.py", "user secret"):
            self.assertNotIn(secret, everything)
        self.assertRegex(texts["ibstat.txt"], r"Node GUID: 0x[0-9a-f]{16}\n")
        self.assertLess(len(texts["lscpu.txt"]), 4_200_000)

    def test_the_same_salt_gives_the_same_words(self):
        if not shutil.which("sha256sum"):
            self.skipTest("no sha256sum")
        first = self.content("--salt", "together")
        self.assertEqual(self.content("--salt", "together")[1]["ibstat.txt"], first[1]["ibstat.txt"])
        self.assertNotEqual(self.content()[1]["ibstat.txt"], first[1]["ibstat.txt"])

    def test_names_are_kept_if_asked(self):
        names, texts = self.content("--keep-names")
        self.assertIn("secrethost.example.org", names)
        self.assertIn("0xa088c20300e3142a", texts["ibstat.txt"])

    def test_bad_usage(self):
        for arguments, expected in ((["--fast"], "collect: unknown argument --fast; known: "),
                                    (["-o"], "collect: -o needs a value"),
                                    (["--seconds", "0"], "collect: --seconds 0: write a whole number above 0"),
                                    (["--salt", "a b"], "collect: --salt: write letters"),
                                    (["-o", "nowhere/c.tar"], "collect: nowhere/c.tar: cannot be written")):
            with self.subTest(arguments):
                run = self.collect(SHELLS[0], "--seconds", "1", *arguments)
                self.assertEqual(run.returncode, 2)
                self.assertIn(expected, run.stderr.decode())

    def test_is_what_shellcheck_accepts(self):
        if not shutil.which("shellcheck"):
            self.skipTest("no shellcheck")
        run = subprocess.run(["shellcheck", "-s", "sh", str(cli_test.SOURCE / "tools/collect")], capture_output=True)
        self.assertEqual((run.returncode, run.stdout.decode()), (0, ""))


if __name__ == "__main__":
    cli_test.main(__doc__)
