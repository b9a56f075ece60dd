#!/usr/bin/env python3
"""Published floors beside what weft expects of the machines that they name: the table of models/expect/README.md.

    baselines.py WEFT SOURCE            prints the table
    baselines.py WEFT SOURCE --check    exit 1 where the page has another

Floors: tests/data/baselines.csv. Of several sizes it is their mean, as in nccl-tests' average. By weft a floor is

    too high          above the interval
    in the interval   and so not to be told from weft's own error
    sound             at most a tenth below the interval
    too low           lower: a machine passes that is a tenth below what nine healthy sites of ten give
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys

HEAD = ("| machine | test | nodes | size | floor | expected | interval | verdict |",
        "|---|---|---|---|---|---|---|---|")
SLACK = 0.9
GIGABITS = 8


def expected(weft, source, row):
    """Mean value, low, high and whether there is a floor, in the row's unit."""
    command = [weft, "expect", str(source / "topologies" / row["machine"]), "--tool", row["tool"], "--op", row["op"],
               "--size", row["sizes"].replace(";", ","), "--json", "-"]
    for option, cells in (("--set", row["set"]), ("--env", row["env"])):
        for cell in filter(None, cells.split(";")):
            command += [option, cell]
    for option, cell in (("--nodes", row["nodes"]), ("--qps", row["qps"]), ("--memory", row["memory"])):
        if cell:
            command += [option, cell]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{row['id']}: {run.stderr}")
    results = json.loads(run.stdout)["results"]
    unit = GIGABITS if row["unit"] == "Gb/s" else 1
    mean = [unit * sum(result[key] for result in results) / len(results) for key in ("busbw_GBps", "low", "high")]
    return (*mean, all("floor_GBps" in result for result in results))


def verdict(floor, value, low, high, has_floor):
    if not has_floor:
        return "none: not validated"
    if floor > high:
        return "**too high**"
    if floor > low:
        return f"in the interval, {'above' if floor > value else 'below'} the value"
    return "sound" if floor >= SLACK * low else "**too low**"


def line(weft, source, row):
    size = row["sizes"].replace(";", ", ")
    head = f"| {row['names']} | {row['op']} | {row['nodes'] or '-'} | {size or '-'} | {row['floor']} {row['unit']} | "
    if row["why_not"]:
        return head + f"- | - | none: {row['why_not']} |"
    value, low, high, has_floor = expected(weft, source, row)
    return head + f"{value:.0f} | {low:.0f} to {high:.0f} | {verdict(float(row['floor']), value, low, high, has_floor)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weft")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    with open(arguments.source / "tests/data/baselines.csv", newline="", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    table = "\n".join([*HEAD, *(line(arguments.weft, arguments.source, row) for row in rows)])
    if not arguments.check:
        print(table)
    elif table not in (arguments.source / "models/expect/README.md").read_text(encoding="utf-8"):
        sys.exit("models/expect/README.md has another table; it is now:\n" + table)


if __name__ == "__main__":
    main()
