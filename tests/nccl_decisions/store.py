#!/usr/bin/env python3
"""Writes nccl-releases.json from files of NCCL's decisions, each distinct value once.

usage: store.py FOLDER OUT    (FOLDER: ../shared/data/nccl)

A node is a scalar, {"a": [nodes]} or {"o": [shape, nodes]}; a shape is a list of keys. captured_test.cpp
reads it.
"""
import json
import pathlib
import sys

RELEASES = ["decisions-2.20.5", "decisions-2.21.5", "decisions-2.23.4", "decisions-2.27.7",
            "decisions-2.28.9", "decisions-2.29.7", "decisions-2.30.7", "mnnvl-2.28.9"]
# Where a case comes from, not what was decided.
NOT_DECIDED = ("pretended", "trays", "trays_a_rack")


class Store:
    def __init__(self):
        self.shapes = {}
        self.nodes = {}

    def node(self, value):
        if isinstance(value, dict):
            shape = self.shapes.setdefault(tuple(value), len(self.shapes))
            text = compact({"o": [shape] + [self.node(each) for each in value.values()]})
        elif isinstance(value, list):
            text = compact({"a": [self.node(each) for each in value]})
        else:
            text = compact(value)
        return self.nodes.setdefault(text, len(self.nodes))


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def main():
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    store = Store()
    cases = {}
    for release in RELEASES:
        for name, case in json.loads((folder / (release + ".json")).read_text()).items():
            facts = {key: value for key, value in case.items() if key not in NOT_DECIDED}
            facts["topo_xml"] = facts["topo_xml"].split("\n")  # lines recur from case to case
            facts["nccl"] = facts["nccl"].split("+")[0]
            cases.setdefault(release, {})[name] = store.node(facts)
    lines = ['{', '"source": "data/nccl: what NCCL decided; written by store.py",', '"shapes": [',
             ",\n".join(compact(list(shape)) for shape in store.shapes), '],', '"nodes": [',
             ",\n".join(store.nodes), '],', '"cases": ' + json.dumps(cases, indent=0), '}', '']
    out.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
