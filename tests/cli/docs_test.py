#!/usr/bin/env python3
"""What is made from the program's own declarations: man page, completions, the pages of the formats.

    docs_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import trace_test

WEFT = ""
SOURCE = pathlib.Path()
LIMIT_S = 120


def weft(*arguments, **options):
    run = subprocess.run([WEFT, *arguments], capture_output=True, text=True, timeout=LIMIT_S,
                         check=True, **options)
    return run.stdout


def subcommands():
    return re.findall(r"(?m)^  ([a-z][a-z-]*) ", weft("--help").split("Subcommands:")[1])


def options_of(command):
    """As its --help has them."""
    return set(re.findall(r"(?m)^  (?:-\w,)?(--[a-z-]+)", weft(command, "--help")))


class Docs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.here = pathlib.Path(folder.name)

    def written(self, page):
        file = self.here / page
        file.write_text(weft("docs", page))
        return str(file)

    def test_there_are_commands_and_options_to_look_for(self):
        self.assertLessEqual({"run", "show", "check", "list-params", "perftest"}, set(subcommands()))
        self.assertLessEqual({"--set", "--json", "--help"}, options_of("run"))
        self.assertNotIn("docs", subcommands())

    def test_the_committed_pages_are_those_that_are_generated(self):
        for page, file in (("topology", "topologies/README.md"), ("scenario", "scenarios/README.md"),
                           ("trace", "replay/trace/README.md")):
            self.assertEqual((SOURCE / file).read_text(encoding="utf-8"), weft("docs", page),
                             f"write it anew: weft docs {page} > {file}")

    def test_the_readme_shows_what_weft_expects(self):
        page = (SOURCE / "README.md").read_text(encoding="utf-8")
        command, shown = re.search(r"```\n\$ weft (expect .*)\n([^`]*)```", page).groups()
        self.assertEqual(weft(*shlex.split(command), cwd=SOURCE), shown)

    def test_the_examples_of_the_pages_work(self):
        for page in ("topology", "scenario"):
            example = re.search(r"```yaml\n(.*?)```", weft("docs", page), re.S).group(1)
            folder = self.here / "scenarios"
            folder.mkdir(exist_ok=True)
            (self.here / "topologies").mkdir(exist_ok=True)
            shutil.copy(SOURCE / "topologies/hgx-h100-8nic.yaml", self.here / "topologies")
            (folder / f"{page}.yaml").write_text(example)
            self.assertIn(": ok, 2 x", weft("check", str(folder / f"{page}.yaml")))

    def test_the_man_page_names_every_command_and_option(self):
        page = weft("docs", "man").replace("\\-", "-")
        sections = dict(re.findall(r"(?ms)^\.SS weft (\S+)\n(.*?)(?=^\.S)", page))
        self.assertEqual(set(sections), set(subcommands()))
        for command, text in sections.items():
            named = set(re.findall(r"(?m)^\\fB(--[a-z-]+)\\fR", text)) | {"--help"}
            self.assertEqual(named, options_of(command), command)
        for code in (0, 2, 4, 5, 6, 70):
            self.assertRegex(page, rf"(?m)^\.B {code}$")

    def test_the_librarys_options_are_those_of_the_commands(self):
        header = (SOURCE / "tools/weft.hpp").read_text(encoding="utf-8")
        elsewhere = {  # Topology::set, RunOptions::stop and what answers hold; a file's parameters are set one by one
            "expect": {"--gate", "--json", "--time-limit", "--params"}, "explain": {"--json", "--time-limit", "--params"},
            "perftest": {"--set", "--json", "--params"}, "copies": {"--set", "--json", "--csv", "--params"}}
        for command, options in elsewhere.items():
            body = re.search(rf"(?ms)^struct {command.title()}Options \{{\n(.*?)^\}};", header).group(1)
            named = set(re.findall(r"--[a-z-]+", body))
            self.assertEqual(named, options_of(command) - options - {"--help"}, command)

    @unittest.skipUnless(shutil.which("groff"), "no groff here: the man page's markup is not checked")
    def test_the_man_page_is_good_roff(self):
        run = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", self.written("man")],
                             capture_output=True, text=True, timeout=LIMIT_S, check=True)
        self.assertEqual(run.stderr, "")

    def complete(self, *words):
        """What bash offers for the last of the words."""
        script = f"""source {self.written('bash')}
compopt() {{ :; }}
COMP_WORDS=({' '.join(f"'{word}'" for word in words)})
COMP_CWORD={len(words) - 1}
_weft
printf '%s\\n' "${{COMPREPLY[@]}}" """
        run = subprocess.run(["bash", "-eu", "-c", script], capture_output=True, text=True,
                             timeout=LIMIT_S, check=True)
        self.assertEqual(run.stderr, "")
        return set(run.stdout.split())

    def test_bash_completes_commands_options_words_and_keys(self):
        self.assertEqual(self.complete("weft", ""), set(subcommands()) | {"--help", "--version"})
        self.assertEqual(self.complete("weft", "list"), {"list-params"})
        for command in subcommands():
            self.assertEqual(self.complete("weft", command, "--"), options_of(command), command)
        self.assertEqual(self.complete("weft", "perftest", "--op", ""), {"write", "read", "send"})
        for command in "run", "copies", "replay", "calibrate":
            self.assertEqual(self.complete("weft", command, "--fidelity", ""), {"fluid", "packet"}, command)
        for command in "run", "compare", "expect":
            self.assertEqual(self.complete("weft", command, "--launch", ""), {"back-to-back", "graph", "single"}, command)
        keys = {p["key"] for p in json.loads(weft("list-params", "--json"))["parameters"]}
        self.assertEqual(self.complete("weft", "run", "--set", ""), {key + "=" for key in keys})
        self.assertEqual(self.complete("weft", "run", "--json", ""), set(), "a file's name")

    def test_zsh_is_told_every_command_and_option(self):
        script = weft("docs", "zsh")
        self.assertTrue(script.startswith("#compdef weft\n"))
        cases = dict(re.findall(r"(?ms)^    ([a-z-]+)\)\n(.*?);;", script))
        self.assertEqual(set(cases), set(subcommands()))
        for command, text in cases.items():
            self.assertEqual(set(re.findall(r"'\*?(--[a-z-]+)\[", text)), options_of(command), command)

    @unittest.skipUnless(shutil.which("zsh"), "no zsh here: its completion is not parsed")
    def test_zsh_reads_its_script(self):
        run = subprocess.run(["zsh", "-n", self.written("zsh")], capture_output=True, text=True,
                             timeout=LIMIT_S)
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def chapter(self, title, page="scenario"):
        return re.split(r"(?m)^## ", weft("docs", page).split(title)[1])[0]

    def sections(self, title, page="scenario"):
        """The keys of a chapter's objects, by path."""
        sections = {}
        for part in re.split(r"(?m)^##", self.chapter(title, page)):
            path = re.match(r"# `(.*)`", part)
            sections[path.group(1) if path else ""] = set(re.findall(r"(?m)^\| `(\w+)` \|", part))
        return sections

    def seen(self, *answers):
        """The same of JSON answers."""
        seen = {}

        def walk(value, path):
            if isinstance(value, dict):
                seen.setdefault(path, set()).update(value)
                for key, below in value.items():
                    walk(below, f"{path}.{key}" if path else key)
            elif isinstance(value, list):
                for item in value:
                    walk(item, path + "[]")
        for answer in answers:
            walk(json.loads(answer), "")
        return seen

    def listed(self, title, page):
        """The same, each path on its own; and the paths of maps by name of what is no map itself."""
        sections = {path: keys for paths, keys in self.sections(title, page).items() for path in paths.split(", ")}
        by_name = set()
        for part in re.split(r"(?m)^##", self.chapter(title, page)):
            path = re.match(r"# `(.*)`", part)
            begin = path.group(1) + "." if path else ""
            by_name |= {begin + key for key in re.findall(r"(?m)^\| `(\w+)` \| map by ", part)}
        return sections, by_name

    def seen_by_name(self, title, page, *answers):
        """The keys of JSON answers, by path; of a map by name those of what is in it, by the path of its section,
        where capitals stand for the name."""
        sections, by_name = self.listed(title, page)
        seen = {}

        def walk(value, path):
            if isinstance(value, list):
                for item in value:
                    walk(item, path + "[]")
            if not isinstance(value, dict):
                return
            below = {other[len(path) + 1:].split(".")[0] for other in sections if other.startswith(path + ".")}
            name = next((step for step in below if re.fullmatch("[A-Z]+", step)), None)
            if path in by_name and name is None:
                return
            if name is None:
                seen.setdefault(path, set()).update(value)
            for key, item in value.items():
                walk(item, f"{path}.{name or key}" if path else key)
        for answer in answers:
            walk(json.loads(answer), "")
        return seen

    def test_machines_shown_have_the_keys_of_the_page_and_no_others(self):
        racks, node = (str(SOURCE / "topologies" / name) for name in ("racks-32k.yaml", "hgx-h100-8nic.yaml"))
        show = [weft("show", *arguments, "--format", "json") for arguments in (
            (racks,), (node, "--set", "network.kind=leaf-spine", "--set",
                       "network.ports=64", "--set", "network.failed_uplinks=leaf0:1"),
            (str(SOURCE / "tests/cli/no_nics.yaml"),))]
        title = "## Keys of a machine shown"
        self.assertEqual(self.seen_by_name(title, "topology", *show), self.listed(title, "topology")[0])

    def test_decisions_have_the_keys_of_the_page_and_no_others(self):
        apart = ("--env", "NCCL_P2P_DISABLE=1", "--env", "NCCL_SHM_DISABLE=1", "--env", "NCCL_NVLS_ENABLE=0")
        nccl = [weft("nccl", str(SOURCE / "topologies" / file), "--nodes", "2", *options, "--json", "-") for file, options
                in (("hgx-h100-8nic.yaml", ()), ("h200-vm.yaml", apart))]
        title = "## Keys of decisions"
        self.assertEqual(self.seen_by_name(title, "topology", *nccl), self.listed(title, "topology")[0])

    def test_differences_have_the_keys_of_the_page_and_no_others(self):
        files = [str(self.here / name) for name in ("a.json", "b.json", "nccl.json")]
        for file, sizes, options in ((files[0], "1 KiB, 1 MiB", ()),
                                     (files[1], "1 MiB, 2 MiB", ("--env", "NCCL_PROTO=Simple"))):
            scenario = self.here / "s.yaml"
            scenario.write_text(f"""scenario: s
topology: {SOURCE}/topologies/hgx-h100-1nic.yaml
nodes: 2
memory_paths: [gdr]
workload: {{op: allreduce, sizes: [{sizes}]}}
""")
            weft("run", str(scenario), "--json", file, *options)
        weft("nccl", str(SOURCE / "topologies/hgx-h100-1nic.yaml"), "--json", files[2])
        title = "## Keys of a difference"
        seen = self.seen_by_name(title, "scenario", *(weft("diff", files[0], other, "--json", "-") for other in files[1:]))
        self.assertEqual(seen, self.listed(title, "scenario")[0])

    def trace(self, *records, **options):
        """A trace's file."""
        lines, file = self.here / "a.jsonl", self.here / "a.weft"
        lines.write_text(trace_test.lines(*records, **options))
        weft("trace", "import", str(lines), "-o", str(file))
        return str(file)

    def test_replays_have_the_keys_and_columns_of_the_page_and_no_others(self):
        file = self.trace(*trace_test.reads(), trace_test.post(30000, "fetch_and_add", 9, 8),
                          trace_test.completion(31000, "fetch_and_add", 9, 8))
        replay = ("replay", file, "--topology", str(SOURCE / "topologies/hgx-h100-8nic.yaml"))
        title = "## Keys of a replay"
        sections, _ = self.listed(title, "scenario")
        self.assertEqual(self.seen_by_name(title, "scenario", weft(*replay, "--json", "-")), sections)
        columns = re.findall(r"(?m)^\| `(\w+)` \|", self.chapter("## Columns of a replay"))
        self.assertEqual(weft(*replay, "--csv", "-").splitlines()[0].split(","), columns)

    def test_counts_of_a_trace_have_the_keys_of_the_page_and_no_others(self):
        whole = self.trace(*trace_test.reads(), trace_test.post(30000, "read", 3, 64),
                           trace_test.completion(31000, "read", 3, 64, "flushed"))
        cut_off = self.here / "off.weft"
        cut_off.write_bytes(pathlib.Path(whole).read_bytes()[:-60])
        title = "## Keys of counts"
        seen = self.seen_by_name(title, "trace", *(weft("trace", "info", str(file), "--json", "-")
                                                   for file in (whole, cut_off)))
        self.assertEqual(seen, self.listed(title, "trace")[0])

    def test_lines_of_a_trace_have_the_keys_of_the_page_and_no_others(self):
        def dump(file):
            return weft("trace", "dump", file, "--format", "json")
        file = self.trace(*trace_test.reads(), {"type": 999, "raw": "00" * 8})
        damaged = bytearray(pathlib.Path(file).read_bytes())
        damaged[80] ^= 255  # in a block's head
        (self.here / "damaged.weft").write_bytes(damaged)
        dumps = [dump(file), dump(str(self.here / "damaged.weft")),
                 dump(self.trace(head={"tool_raw": "ff", "topology_raw": "ff"}))]
        sections = self.sections("## JSON lines", "trace")
        record = sections["{\"type\": ...}"] - {"text", "segments", "raw"}
        texts = re.split(r"(?m)^### `(\w+)`: ", self.chapter("## Records", "trace"))
        fields = dict(zip(texts[1::2], texts[2::2]))
        kinds, heads = set(), []
        for line in map(json.loads, "".join(dumps).splitlines()):
            kind, keys = line.get("type", line.get("block", "head")), set(line)
            kinds.add(kind)
            if "raw" in line:
                self.assertEqual(keys, record | {"raw"})
            elif "type" in line:
                own = set(re.findall(r"(?m)^\|[^`|]*\|[^`|]*\| `(\w+)` \|", fields[kind].split("A segment")[0]))
                tail = {"text"} if "Behind it a text" in fields[kind] else set()
                self.assertEqual(keys, record | own | tail, kind)
                segment = set(re.findall(r"(?m)^\|[^`|]*\|[^`|]*\| `(\w+)` \|", fields[kind].split("A segment")[-1]))
                for one in line.get("segments", []):
                    self.assertEqual(set(one), segment)
            elif "block" in line:
                self.assertEqual(keys, sections[f'{{"block": "{kind}"}}'])
            else:
                heads.append(keys)
        raw = [{key for key in keys if key.endswith("_raw")} for keys in heads]
        self.assertEqual(raw, [set(), set(), {"tool_raw", "topology_raw"}])
        self.assertEqual(set.union(*heads), sections["{\"format\": ...}"])
        self.assertLessEqual({"head", "records", "lost", "end", "post", "host", 999}, kinds)

    def intervals(self, op):
        """A file of parameters with an interval for an operation."""
        file = self.here / "intervals.yaml"
        file.write_text(f"intervals: {{by: [op], classes: [{{class: [{op}], rows: 10, configurations: 9, low: 0.9, high: 1.1}}]}}\n")
        return str(file)

    def test_results_have_the_keys_of_the_page_and_no_others(self):
        scenario = self.here / "s.yaml"
        scenario.write_text(f"""scenario: s
topology: {SOURCE}/topologies/hgx-h100-1nic.yaml
nodes: 2
memory_paths: [gdr]
workload: {{op: allreduce, sizes: [1 KiB, 1 MiB]}}
""")
        run = ("run", str(scenario), "--params", self.intervals("allreduce"), "--json", "-", "--fidelity")
        sections = self.sections("## Keys of a result")
        sections["results[]"].discard("nccl_choice")  # another algorithm than NCCL's ran: not here
        sections[""].discard("incomplete")  # stopped: stop_test.py
        sections.pop("incomplete[]")
        jobs = self.here / "jobs.yaml"
        jobs.write_text(f"""scenario: jobs
topology: {SOURCE}/topologies/hgx-h100-1nic.yaml
nodes: 2
memory_paths: [gdr]
jobs:
  - {{job: a, nodes: 0-1, op: allreduce, size: 1 KiB}}
""")
        large = self.here / "large.yaml"
        large.write_text(scenario.read_text().replace("nodes: 2", "nodes: 1024").replace("allreduce", "alltoall"))
        self.assertEqual(self.seen(weft(*run, "fluid"), weft(*run, "packet"), weft("run", str(jobs), "--json", "-"),
                                   weft("run", str(large), "--json", "-")), sections)

    def test_sensitivities_have_the_keys_of_the_page_and_no_others(self):
        scenario = self.here / "s.yaml"
        scenario.write_text(f"""scenario: s
topology: {SOURCE}/topologies/hgx-h100-1nic.yaml
nodes: 2
memory_paths: [gdr]
workload: {{op: allreduce, sizes: [1 KiB]}}
""")
        jobs = self.here / "jobs.yaml"
        jobs.write_text(scenario.read_text().split("workload")[0] +
                        "jobs:\n  - {job: a, nodes: 0-1, op: allreduce, size: 1 KiB}\n")
        moved = ("--params", "wire.rate,wire.pfc_share,nic.gdr,nccl.proto", "--json", "-")
        seen = self.seen(weft("sensitivity", str(scenario), *moved), weft("sensitivity", str(jobs), *moved))
        seen = {path: keys for path, keys in seen.items() if not path.startswith("provenance")}
        sections = self.sections("## Keys of a sensitivity")
        sections["results[].parameters[]"].discard("decides")  # nothing is decided otherwise here
        self.assertEqual(seen, sections)

    def test_diagnoses_have_the_keys_of_the_page_and_no_others(self):
        lspci = SOURCE / "tests/data/evidence/lspci-vvv-dell-h100.txt"
        slow = self.here / "slow.txt"
        slow.write_text(lspci.read_text().replace("Speed 32GT/s (ok), Width x16", "Speed 32GT/s (ok), Width x4"))
        unpriced = self.here / "matrix.txt"
        unpriced.write_text("\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n"
                            "h:1:1 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1\n")
        translates = self.here / "cmdline.txt"
        translates.write_text("BOOT_IMAGE=/boot/vmlinuz-5.15 root=/dev/sda1 ro intel_iommu=on\n")
        answers = [subprocess.run([WEFT, "doctor", *files, "--size", "1K", "--json", "-"], capture_output=True,
                                  timeout=LIMIT_S).stdout
                   for files in ((f"a={slow}", f"b={lspci}"), (unpriced,), (lspci, translates))]
        sections = self.sections("## Keys of a diagnosis")
        sizes = sections.pop("findings[].alone[], .last[], .worst[]")
        sections |= {f"findings[].{which}[]": sizes for which in ("alone", "last", "worst")}
        self.assertEqual(self.seen(*answers), sections)

    def test_explanations_have_the_keys_of_the_page_and_no_others(self):
        slow, healthy = self.here / "slow.csv", self.here / "healthy.csv"
        head = "transport,memory_path,hosts,ranks,op,bytes,us\n"
        slow.write_text(head + "net,gdr,2,4,allreduce,1048576,900\nnet,host-staged,2,4,allreduce,1048576,900\n")
        healthy.write_text(head + "net,gdr,2,4,allreduce,1048576,70\nnet,host-staged,2,4,allreduce,1048576,300\n")
        lspci = SOURCE / "tests/data/evidence/lspci-vvv-dell-h100.txt"
        answers = [subprocess.run([WEFT, "explain", *files, "--evidence", lspci, "--json", "-"], capture_output=True,
                                  timeout=LIMIT_S).stdout for files in ((slow, healthy), (slow,))]
        sections = self.sections("## Keys of an explanation")
        causes = sections.pop("answers[].causes[], .or[].causes[]")
        sections.pop("ruled_out[], no_effect[]")
        quotes = sections.pop("*[].evidence[]")
        for path in ("answers[].causes[]", "answers[].or[].causes[]", "ruled_out[]", "no_effect[]"):
            sections[path] = causes
        seen = self.seen(*answers)
        for path in [path for path in seen if path.endswith(".evidence[]")]:
            self.assertEqual(seen.pop(path), quotes)
        self.assertEqual(seen.pop("answers[].or[]", {"causes"}), {"causes"})
        optional = {"said", "evidence"}
        for path, keys in seen.items():
            self.assertLessEqual(keys, sections[path], path)
            self.assertLessEqual(sections[path] - keys, optional, path)

    def test_perftests_have_the_keys_of_the_page_and_no_others(self):
        seen = self.seen(weft("perftest", str(SOURCE / "topologies/hgx-h100-1nic.yaml"), "--json", "-"))
        seen = {path: keys for path, keys in seen.items() if ".probes" not in path}
        sections = self.sections("## Keys of a perftest")
        buffer = sections.pop("results[].registration.from, .to")
        sections |= {f"results[].registration.{end}": buffer for end in ("from", "to")}
        self.assertEqual(seen, sections)

    def test_steps_have_the_keys_of_the_page_and_no_others(self):
        scenario = self.here / "step.yaml"
        scenario.write_text(f"""scenario: s
topology: {SOURCE}/topologies/hgx-h100-8nic.yaml
nodes: 2
workload:
  step:
    compute: {{forward: 1 us, backward: 2 us}}
    layers: 1
    bytes: {{gradients: 1 KiB}}
    parallel: {{data: 16}}
""")
        seen = self.seen(weft("step", str(scenario), "--json", "-"))
        seen = {path: keys for path, keys in seen.items() if not path.startswith("provenance")}
        sections = self.sections("## Keys of a training step")
        sections["results[].calls[]"].discard("nccl_choice")  # another algorithm than NCCL's ran: not here
        sections[""].discard("incomplete")  # nothing stopped it
        self.assertEqual(seen, sections)

    def test_traffic_has_the_keys_of_the_page_and_no_others(self):
        scenario = self.here / "traffic.yaml"
        scenario.write_text(f"""scenario: t
topology: {SOURCE}/topologies/hgx-h100-8nic.yaml
nodes: 2
workload: {{op: incast, bytes: 8 KiB}}
""")
        seen = self.seen(weft("traffic", str(scenario), "--json", "-"))
        seen = {path: keys for path, keys in seen.items() if not path.startswith("provenance")}
        sections = self.sections("## Keys of traffic")
        sections[""].discard("incomplete")  # nothing stopped it
        sections["results[]"].discard("estimate")  # it was run
        self.assertEqual(seen, sections)

    def test_copies_have_the_keys_of_the_page_and_no_others(self):
        run = ("copies", str(SOURCE / "topologies/h200-vm.yaml"), "--size", "1M", "--json", "-")
        seen = self.seen(weft(*run), weft(*run, "--to", "gpu0", "--bidirectional"))
        seen = {path: keys for path, keys in seen.items() if not path.startswith("provenance")}
        self.assertEqual(seen, self.sections("## Keys of copies"))

    def test_comparisons_have_the_keys_of_the_page_and_no_others(self):
        table = self.here / "m.csv"
        table.write_text("transport,ranks,op,bytes,us\nnvlink,2,broadcast,1024,100\nnvlink,2,broadcast,2048,10\n"
                         "nvlink,64,broadcast,1024,9\n")
        seen = self.seen(weft("compare", str(table), "--machine", str(SOURCE / "topologies/h200-vm.yaml"), "--json",
                              "-", "--params", self.intervals("broadcast"), "--drop-stalls", "--by", "op", "--env", "NCCL_NVLS_ENABLE=0"))
        seen = {path: keys for path, keys in seen.items() if not path.startswith("provenance")}
        sections = self.sections("## Keys of a comparison")
        sections[""].discard("incomplete")  # nothing stopped it
        columns = self.sections("## Measured tables")[""]
        sections["rows[]"] |= columns
        sections["classes[]"] = sections["summary"] | {"op"}
        sections["summary_with_stalls"] = sections["summary"]
        self.assertEqual(seen, sections)

    def test_calibrations_have_the_keys_of_the_page_and_no_others(self):
        machine = ("--machine", str(SOURCE / "topologies/h200-vm.yaml"))
        table = self.here / "m.csv"
        rows = [f"nvlink,2,Ring,LL,{channels},allreduce,{size},graph" for channels in range(1, 15)
                for size in (1024, 4096, 16384)]
        table.write_text("transport,ranks,algo,proto,channels,op,bytes,launch,us\n" + "".join(f"{r},1\n" for r in rows))
        times = json.loads(weft("compare", str(table), *machine, "--set", "nccl.launch_ll=6 us", "--json", "-"))["rows"]
        table.write_text("transport,ranks,algo,proto,channels,op,bytes,launch,us\n" +
                         "".join(f"{row},{time['predicted_us']}\n" for row, time in zip(rows, times)))
        seen = self.seen(weft("calibrate", str(table), *machine, "--fit", "nccl.launch_ll", "--by", "op", "--holdout", "0.7",
                              "--json", "-"))
        sections = self.sections("## Keys of a calibration")
        for path, key in (("", "refused"), ("parameters[]", "at_bound"), ("parameters[]", "by_one"), ("rows[]", "stall")):
            sections[path].remove(key)  # not here
        sections.pop("correlations[]")
        sections["rows[]"] |= self.sections("## Measured tables")[""]
        of_set = sections.pop("fitted, held_out")
        summary = self.sections("## Keys of a comparison")["summary"]
        for name in ("fitted", "held_out"):
            sections |= {name: of_set, f"{name}.classes[]": {"op", "before", "after"}}
            sections |= {f"{name}{at}.{when}": summary for at in ("", ".classes[]") for when in ("before", "after")}
        self.assertEqual(seen, sections)

    def test_the_example_of_a_measured_table_is_read(self):
        table = self.here / "m.csv"
        table.write_text(re.search(r"```csv\n(.*?)```", weft("docs", "scenario"), re.S).group(1))
        text = weft("compare", str(table), "--machine", str(SOURCE / "topologies/h200-vm.yaml"))
        self.assertIn("# total: 2 rows, ", text)


if __name__ == "__main__":
    WEFT = os.path.abspath(sys.argv.pop(1))
    SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(argv=[sys.argv[0], *filter(None, sys.argv[1:])])
