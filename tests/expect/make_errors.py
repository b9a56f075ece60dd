#!/usr/bin/env python3
"""Writes models/expect/errors.csv: what weft predicts of published points that no parameter was made from.

    make_errors.py WEFT SOURCE >models/expect/errors.csv
    make_errors.py WEFT SOURCE --check [--runs REGEX]     exit 1 where the committed table is another

Points: tests/data/public-logs.csv (nccl-tests) and tests/data/perftest-published.csv (perftest; how they were run:
tests/data/perftest-runs.csv). Who measured where: tests/data/sites.csv.
"""
import argparse
import csv
import io
import pathlib
import re
import subprocess
import sys
import tempfile

COLUMNS = ("site", "run", "transport", "memory_path", "hosts", "ranks", "op", "bytes", "qps", "tx_depth", "measured_us",
           "predicted_us")
OUTLIERS = {"n2409_ibw_q1#2"}  # by its own source's word: 1 MiB on one queue pair, 284.4 Gb/s
SAME = 1e-5  # of a time; the table has six digits


def read(file):
    with open(file, newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def run_of(row):
    return row["id"].split("#")[0]


def perftest_rows(data):
    """As a measured table has them; a round trip's latency is half of it."""
    runs = {row["run"]: row for row in read(data / "perftest-runs.csv")}
    for row in read(data / "perftest-published.csv"):
        if row["id"] in OUTLIERS:
            continue
        size, value = int(row["message_bytes"]), float(row["value"])
        us = value / 2 if row["metric"] == "us" else size * 8e-3 / value
        how = {key: cell for key, cell in runs[run_of(row)].items() if key != "run"}
        yield {**how, "id": row["id"], "transport": "net", "hosts": 2, "ranks": 2, "bytes": size, "us": repr(us)}


def compared(weft, table):
    run = subprocess.run([weft, "compare", str(table), "--csv", "-"], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(run.stderr)
    return list(csv.DictReader(io.StringIO(run.stdout)))


def wanted(rows, runs):
    return [row for row in rows if re.search(runs, run_of(row)) and row.get("use", "yes") != "taught"]


def tables(data, runs, here):
    """The measured tables to compare, in `here`, which stands beside the topologies as tests/data does."""
    for name, rows in (("logs.csv", read(data / "public-logs.csv")), ("perftest.csv", list(perftest_rows(data)))):
        rows = wanted(rows, runs)
        if not rows:
            continue
        with open(here / name, "w", newline="", encoding="utf-8") as text:
            writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            for row in rows:
                machine = (data / row["machine"]).resolve()
                writer.writerow({**row, "machine": str(machine)})
        yield here / name


def errors(weft, data, runs):
    sites = {row["run"]: row["site"] for row in read(data / "sites.csv")}
    with tempfile.TemporaryDirectory() as folder:
        for table in tables(data, runs, pathlib.Path(folder)):
            for row in compared(weft, table):
                if not row["predicted_us"]:
                    sys.exit(f"{row['id']} is not predicted: {row['not_predicted']}")
                out = {**row, "run": run_of(row), "site": sites[run_of(row)], "measured_us": f"{float(row['us']):.6g}",
                       "predicted_us": f"{float(row['predicted_us']):.6g}"}
                yield {column: out[column] for column in COLUMNS}


def key(row):
    return tuple(row[column] for column in COLUMNS[:-1])


def check(found, committed, runs):
    """What differs, in lines."""
    committed = [row for row in committed if re.search(runs, row["run"])]
    if [key(row) for row in found] != [key(row) for row in committed]:
        yield "its rows are not those of the published tables"
        return
    for new, old in zip(found, committed):
        now, was = float(new["predicted_us"]), float(old["predicted_us"])
        if abs(now - was) > SAME * was:
            yield f"{old['run']}, {old['bytes']} B: predicted {now} us, committed {was}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weft")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--runs", default="", help="only runs that this regular expression finds")
    arguments = parser.parse_args()
    found = list(errors(arguments.weft, arguments.source / "tests/data", arguments.runs))
    if not arguments.check:
        writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
        return
    faults = list(check(found, read(arguments.source / "models/expect/errors.csv"), arguments.runs))
    if faults:
        sys.exit("models/expect/errors.csv has drifted; write it anew (see --help), then its page:\n" +
                 "\n".join(faults[:20]))
    print(f"{len(found)} rows are as committed")


if __name__ == "__main__":
    main()
