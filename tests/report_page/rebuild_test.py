#!/usr/bin/env python3
"""tools/report_page/page.html is what its source is built to, byte by byte.

    rebuild_test.py SOURCE_DIR

Exits with 77, and says why, where npm is not installed or the packages cannot be had.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

LIMIT_S = 300
NODE = (20, 19)  # the oldest that Vite runs on


def skip(why):
    print("skipped: report_page.rebuild: " + why, file=sys.stderr)
    sys.exit(77)


def npm(folder, *arguments):
    return subprocess.run(["npm", *arguments], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S)


def main():
    if not shutil.which("npm") or not shutil.which("node"):
        skip("no node and npm here")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=LIMIT_S).stdout.strip()
    if tuple(map(int, version.lstrip("v").split(".")[:2])) < NODE:
        skip(f"node is {version}, Vite needs {NODE[0]}.{NODE[1]}")
    source = pathlib.Path(sys.argv[1]) / "tools/report_page"
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "report_page"
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("node_modules", "dist", "page.html"))
        try:
            installed = npm(copy, "ci", "--no-audit", "--no-fund")
        except subprocess.TimeoutExpired:
            skip(f"npm ci: no answer of the registry within {LIMIT_S} s")
        if installed.returncode != 0:
            skip("npm ci: " + (installed.stderr.strip().splitlines() or ["failed"])[-1])
        built = npm(copy, "run", "build")
        if built.returncode != 0:
            sys.exit("npm run build: " + built.stderr)
        if (copy / "page.html").read_bytes() != (source / "page.html").read_bytes():
            sys.exit("tools/report_page/page.html is not what its source gives: build it anew (README.md beside it)")


if __name__ == "__main__":
    main()
