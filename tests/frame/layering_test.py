#!/usr/bin/env python3
"""Holds the source tree to design.md section 2: who may include whom, and the house rules that a
compiler does not check.

    layering_test.py ROOT         prints every broken rule as file:line: what; exit 1 if there is one
    layering_test.py --self-test  plants one fault of each kind and expects it to be found
"""
import pathlib
import re
import sys
import tempfile
import unittest

TOP = ("sim", "models", "replay", "tools")  # lowest first
ALL = TOP + ("tests",)

# Layers inside sim/: what each may include beside itself.
SIM = {
    "base": set(),
    "engine": {"base"},
    "flow": {"base"},
    "packet": {"base", "engine"},
    "topology": {"base"},
    "io": {"base"},
    "input": {"base", "io", "topology"},
    "plan": {"base", "topology"},
    "result": {"base", "io"},
    "run": {"base", "engine", "flow", "topology", "io", "input", "plan", "result"},
    "report": {"base", "io", "result"},
}

# Third-party headers: the only place that may include each ("" is anywhere).
THIRD_PARTY = (
    (r"yaml-cpp/", "sim/io/"),
    (r"nlohmann/", "sim/io/"),
    (r"pugi(xml|config)\.hpp", "sim/input/"),
    (r"boost/", "sim/topology/"),
    (r"CLI/", "tools/"),
    (r"(Eigen/|nlopt\.hpp)", "replay/calibrate"),
    (r"(infiniband|rdma)/", "replay/"),
    (r"(zstd|zlib)\.h", "replay/trace/"),
    (r"google/protobuf/", "replay/chakra/"),
    (r"pybind11/", "tools/python/"),
    (r"fmt/", ""),
)
SYSTEM = re.compile(r"[a-z0-9_]+(\.h)?|(sys|linux|net|netinet|arpa)/[a-z0-9_]+\.h")

MAX_LINES = 600
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]*)"|<([^>]*)>)', re.M)


def without_comments(text):
    """The text with comments blanked; lines stay where they were."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)

    def blank(found):
        piece = found.group(0)
        return piece if piece.startswith('"') else re.sub(r"[^\n]", " ", piece)

    return token.sub(blank, text)


def unit(path):
    """The smallest named part a path belongs to: "sim/io", "models/nccl", "replay", "tools"."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in ("sim", "models") and len(parts) > 2 else parts[0]


def why_forbidden(path, target):
    """Why `path` may not include "target", or None."""
    here, there = path.split("/"), target.split("/")
    if there[0] not in ALL or len(there) < 2:
        return "include paths start at the project's root"
    if there[0] == "tests":
        return "only tests include tests/"
    if path.startswith("tools/python/") and target != "tools/weft.hpp":
        return "tools/python/ knows tools/weft.hpp alone"
    if TOP.index(there[0]) > TOP.index(here[0]):
        return f"{here[0]}/ is below {there[0]}/ ({' <- '.join(ALL)})"
    if here[0] == "sim":
        mine, other = here[1], there[1]
        if mine not in SIM or other not in SIM:
            return f"sim/{other if mine in SIM else mine} is no layer of design.md section 2"
        if other != mine and other not in SIM[mine]:
            allowed = ", ".join(sorted(SIM[mine])) or "nothing"
            return f"sim/{mine} knows {allowed}; not sim/{other}"
    return None


def why_foreign(path, header):
    """Why `path` may not include <header>, or None."""
    for pattern, place in THIRD_PARTY:
        if re.match(pattern, header):
            return None if path.startswith(place) else f"<{header}> is private to {place}"
    if SYSTEM.fullmatch(header):
        return None
    return f"<{header}> is of a library without a layer in design.md section 2"


def find_cycle(edges):
    """One cycle of the graph {node: {node}}, as a list that ends where it begins; [] if none."""
    done = set()

    def walk(node, trail):
        if node in trail:
            return trail[trail.index(node):] + [node]
        if node in done:
            return []
        for following in sorted(edges.get(node, ())):
            found = walk(following, trail + [node])
            if found:
                return found
        done.add(node)
        return []

    for start in sorted(edges):
        found = walk(start, [])
        if found:
            return found
    return []


def broken_rules(root):
    """Every broken rule of the tree under `root`, sorted, as "file:line: what"."""
    root = pathlib.Path(root)
    faults = []
    edges = {}
    for top in ALL:
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".hpp", ".cpp") or not file.is_file():
                continue
            path = file.relative_to(root).as_posix()
            raw = file.read_text(encoding="utf-8")
            text = without_comments(raw)

            def fault(offset, what):
                faults.append(f"{path}:{text.count(chr(10), 0, offset) + 1}: {what}")

            lines = raw.count("\n")
            if lines > MAX_LINES:
                faults.append(f"{path}:{lines}: {lines} lines; split what has more than {MAX_LINES}")
            if file.suffix == ".hpp":
                if not re.match(r"\s*#pragma once\b", text):
                    fault(0, "a header begins with #pragma once")
                for found in re.finditer(r"^[ \t]*using[ \t]+namespace\b", text, re.M):
                    fault(found.start(), "no `using namespace` in a header")
            if top == "tests":
                continue
            for found in re.finditer(r"\breinterpret_cast\b", text):
                fault(found.start(), "no reinterpret_cast: the sanitizer build does not look at alignment")
            for found in INCLUDE.finditer(text):
                own, foreign = found.groups()
                if own is None:
                    why = why_foreign(path, foreign)
                else:
                    why = why_forbidden(path, own)
                    if why is None and unit(own) != unit(path):
                        edges.setdefault(unit(path), set()).add(unit(own))
                if why:
                    fault(found.start(), why)
    cycle = find_cycle(edges)
    if cycle:
        faults.append("folders include each other in a cycle: " + " -> ".join(cycle))
    return sorted(faults)


class SelfTest(unittest.TestCase):
    def faults(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                file = pathlib.Path(root) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            return broken_rules(root)

    def finds(self, path, text, expected):
        found = self.faults({path: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def test_a_clean_tree_has_no_faults(self):
        header = "#pragma once\n\n#include <vector>\n#include <sys/stat.h>\n#include <fmt/core.h>\n"
        self.assertEqual([], self.faults({
            "sim/io/a.hpp": header + '#include "sim/base/b.hpp"\n',
            "sim/io/a.cpp": "#include <yaml-cpp/yaml.h>\n#include <nlohmann/json.hpp>\n",
            "sim/input/a.cpp": '#include <pugixml.hpp>\n#include "sim/io/a.hpp"\n',
            "sim/topology/a.cpp": "#include <boost/graph/adjacency_list.hpp>\n",
            "sim/run/a.cpp": '#include "sim/result/a.hpp"\n',
            "models/nccl/a.cpp": '#include "sim/run/a.hpp"\n#include "models/pcie/a.hpp"\n',
            "replay/a.cpp": '#include <infiniband/verbs.h>\n#include "models/nccl/a.hpp"\n',
            "replay/calibrate/fit.cpp": "#include <Eigen/Dense>\n#include <nlopt.hpp>\n",
            "tools/a.cpp": '#include <CLI/CLI.hpp>\n#include "replay/a.hpp"\n',
            "tests/base/a_test.cpp": '#include <gtest/gtest.h>\n#include "tests/helper.hpp"\n',
        }))

    def test_a_lower_folder_knows_no_higher_one(self):
        self.finds("sim/run/a.cpp", '#include "models/pcie/b.hpp"\n', "sim/run/a.cpp:1: sim/ is below")
        self.finds("models/a/a.cpp", '#include "replay/b.hpp"\n', "models/ is below replay/")
        self.finds("replay/a.cpp", '#include "tools/b.hpp"\n', "replay/ is below tools/")
        self.finds("tools/a.cpp", '#include "tests/b.hpp"\n', "only tests include tests/")

    def test_the_python_module_knows_the_public_header_alone(self):
        self.assertEqual([], self.faults({"tools/python/a.cpp": '#include <pybind11/stl.h>\n#include "tools/weft.hpp"\n'}))
        self.finds("tools/python/a.cpp", '#include "sim/base/error.hpp"\n', "knows tools/weft.hpp alone")
        self.finds("tools/a.cpp", "#include <pybind11/stl.h>\n", "private to tools/python/")

    def test_a_sim_layer_knows_only_its_own(self):
        for layer, allowed in SIM.items():
            for other in SIM:
                found = self.faults({f"sim/{layer}/a.cpp": f'#include "sim/{other}/b.hpp"\n'})
                self.assertEqual(found == [], other == layer or other in allowed, (layer, other))
        self.finds("sim/new/a.cpp", '#include "sim/base/b.hpp"\n', "sim/new is no layer")

    def test_the_line_is_right_and_comments_do_not_count(self):
        text = '/* #include "tools/x.hpp"\n*/\n// #include "tools/x.hpp"\n#include "tools/b.hpp"\n'
        self.finds("sim/base/a.cpp", text, "sim/base/a.cpp:4:")

    def test_third_party_stays_in_its_layer(self):
        for header in ("yaml-cpp/yaml.h", "nlohmann/json.hpp", "pugixml.hpp", "boost/graph/x.hpp",
                       "CLI/CLI.hpp", "Eigen/Dense", "nlopt.hpp", "infiniband/verbs.h"):
            self.finds("sim/flow/a.cpp", f"#include <{header}>\n", "is private to")
        self.finds("replay/trace.cpp", "#include <Eigen/Dense>\n", "private to replay/calibrate")
        self.finds("sim/io/a.cpp", "#include <zstd.h>\n", "private to replay/trace")
        self.finds("sim/flow/a.cpp", "#include <spdlog/spdlog.h>\n", "without a layer")

    def test_paths_start_at_the_root(self):
        self.finds("sim/io/a.cpp", '#include "file.hpp"\n', "start at the project's root")
        self.finds("sim/io/a.cpp", '#include "../base/id.hpp"\n', "start at the project's root")

    def test_folders_of_models_form_no_cycle(self):
        found = self.faults({"models/gpu/a.cpp": '#include "models/nic/b.hpp"\n',
                             "models/nic/b.cpp": '#include "models/gpu/a.hpp"\n'})
        self.assertEqual(found, ["folders include each other in a cycle: "
                                 "models/gpu -> models/nic -> models/gpu"])

    def test_house_rules(self):
        self.finds("sim/base/a.hpp", "int f();\n", "#pragma once")
        self.finds("sim/base/a.hpp", "#pragma once\nusing namespace std;\n", "a.hpp:2: no `using")
        self.finds("sim/base/a.cpp", "\nauto a = reinterpret_cast<int*>(b);\n", "a.cpp:2: no reinterpret_cast")
        self.finds("tests/a/a_test.cpp", "\n" * 601, "601 lines")
        self.assertEqual([], self.faults({"sim/base/a.cpp": "\n" * 600 + "// last"}))


def main():
    if sys.argv[1:] == ["--self-test"]:
        unittest.main(argv=sys.argv[:1])
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    faults = broken_rules(sys.argv[1])
    print("\n".join(faults) if faults else "every include keeps to design.md section 2")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
