#!/usr/bin/env python3
"""weft nccl against what real NCCL 2.28.9 decided: every field of every captured case.

    nccl_cases_test.py WEFT CASES.json [NAME...]

Each case's topology is given to the program with the case's variables, and --json's answer compared
with the captured one, field by field. Printed is each case's first difference, by its path.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

# What a case holds that weft nccl does not answer, and why.
NOT_ANSWERED = {
    "env": "input",
    "topo_xml": "input",
    "nccl": "the release that was captured, with its CUDA",
    "transport": "what each connection runs over; weft run shows it",
    "measured": "times of one launch each",
}


def first_difference(ours, theirs, path):
    """None, or the first place where `ours` is not what `theirs` says. More keys are fine."""
    if isinstance(theirs, dict):
        if not isinstance(ours, dict):
            return f"{path}: {ours!r}, NCCL {theirs!r}"
        for key, value in theirs.items():
            if key not in ours:
                return f"{path}.{key}: missing, NCCL {value!r}"
            found = first_difference(ours[key], value, f"{path}.{key}")
            if found:
                return found
        return None
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return f"{path}: {ours!r}, NCCL {theirs!r}"
        for i, value in enumerate(theirs):
            found = first_difference(ours[i], value, f"{path}[{i}]")
            if found:
                return found
        return None
    return None if ours == theirs else f"{path}: {ours!r}, NCCL {theirs!r}"


def choices(answers):
    return {f"{c['op']}.{c['bytes']}": {k: c[k] for k in ("algo", "proto", "channels")} for c in answers}


def exact(ours, theirs, field):
    """Fields that must hold nothing more than the captured one."""
    if field == "paths":
        return {k: set(v) for k, v in ours.items()} == {k: set(v) for k, v in theirs.items()}
    if field in ("rings", "trees", "graphs"):
        return len(ours) == len(theirs)
    if field == "tuning":
        return all({a: set(p) for a, p in ours[op].items()} == {a: set(p) for a, p in theirs[op].items()}
                   for op in theirs)
    return True


def compare(weft, folder, case):
    file = folder / "topology.xml"
    file.write_text(case["topo_xml"])
    command = [weft, "nccl", str(file), "--nodes", str(case["nodes"]), "--nccl-version", "2.28.9",
               "--json", "-"]
    for name, value in case["env"].items():
        command += ["--env", f"{name}={value}"]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    if run.returncode != 0:
        return f"exit code {run.returncode}: {run.stderr.decode().strip()}"
    ours = json.loads(run.stdout)
    for field, theirs in case.items():
        if field in NOT_ANSWERED:
            continue
        mine = ours.get(field)
        if field == "choice" and mine is not None:
            mine, theirs = choices(mine), choices(theirs)
        if mine is None:
            return f"{field}: missing"
        found = first_difference(mine, theirs, field)
        if found:
            return found
        if not exact(mine, theirs, field):
            return f"{field}: more than NCCL has"
    return None


def main():
    weft, cases_file, *names = sys.argv[1:]
    if not pathlib.Path(cases_file).exists():
        print(f"{cases_file} is not here")
        return 77
    cases = json.loads(pathlib.Path(cases_file).read_text())
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, case in cases.items():
            if names and name not in names:
                continue
            found = compare(weft, pathlib.Path(folder), case)
            if found:
                failed += 1
                print(f"{name}: {found[:600]}")
    print(f"{len(names or cases) - failed} of {len(names or cases)} cases equal in every field")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
