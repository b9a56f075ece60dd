#!/usr/bin/env python3
"""`tools/sweep.sbatch` under Debian's slurmctld and slurmd, one of each, in a folder of their own.

    slurm_test.py WEFT SOURCE_DIR

Exits with 77, and says why, where Slurm is not installed or cannot run.
"""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

LIMIT_S = 120
SHARDS = 3
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "sinfo")
GRID = ("--set", "nic.count=1,2,4,8", "--set", "wire.mtu=1024,4096")
SCENARIO = """scenario: small
topology: {source}/topologies/hgx-h100-8nic.yaml
nodes: 2
workload: {{op: allreduce, sizes: [1 MiB]}}
set: {{nccl.decisions: simple}}
"""
# No accounts, no credentials, no cgroups: one user on one machine.
CONF = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
StateSaveLocation={here}/state
SlurmdSpoolDir={here}/spool
SlurmctldPidFile={here}/slurmctld.pid
SlurmdPidFile={here}/slurmd.pid
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=10 State=UP
"""


def skip(why):
    print("skipped: slurm.sweep: " + why, file=sys.stderr)
    sys.exit(77)


def free_ports():
    sockets = [socket.socket() for _ in range(2)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Slurm:
    """Both daemons, while it lives."""

    def __init__(self, here):
        self.here = here
        self.environment = {**os.environ, "SLURM_CONF": str(here / "slurm.conf"),
                            "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
        for folder in ("state", "spool"):
            (here / folder).mkdir()
        (here / "slurm.conf").write_text(CONF.format(host=socket.gethostname().split(".")[0], user="root", here=here,
                                                     ports=free_ports(), cpus=os.cpu_count()))
        self.daemons = []

    def __enter__(self):
        for command in (["slurmctld", "-D", "-c"], ["slurmd", "-D"]):
            log = (self.here / (command[0] + ".log")).open("wb")
            self.daemons.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log))
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def ask(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=30)

    def wait_for(self, what, holds):
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            if any(daemon.poll() is not None for daemon in self.daemons):
                return False
            if holds():
                return True
            time.sleep(0.2)
        print(what + ": not within " + str(LIMIT_S) + " s", file=sys.stderr)
        return False

    def why_not(self):
        lines = [line for daemon in ("slurmctld", "slurmd")
                 for line in (self.here / (daemon + ".log")).read_text(errors="replace").splitlines()
                 if "error" in line or "fatal" in line]
        return "Slurm's daemons do not run here: " + " / ".join(lines[-3:] or ["no message"])


def sweep(weft, here, *arguments):
    return subprocess.run([weft, "sweep", "small.yaml", *GRID, *arguments], cwd=here, capture_output=True, timeout=LIMIT_S)


def test(slurm, weft, source, here):
    environment = {**slurm.environment, "WEFT": weft}
    submitted = subprocess.run(["sbatch", "--parsable", "--wait", f"--array=1-{SHARDS}", f"--output={here}/task-%a.log",
                                source / "tools/sweep.sbatch", "small.yaml", *GRID, "--csv", "out.csv"], cwd=here,
                               env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    logs = "".join(log.read_text() for log in sorted(here.glob("task-*.log")))
    assert submitted.returncode == 0, (submitted, logs)
    assert sorted(p.name for p in here.glob("out.csv*")) == [f"out.csv.{i}-of-{SHARDS}" for i in range(1, SHARDS + 1)], logs
    for _ in range(2):
        merged = sweep(weft, here, "--csv", "out.csv", "--merge", str(SHARDS))
        assert merged.returncode == 0, merged
        assert (here / "out.csv").read_bytes() == sweep(weft, here).stdout


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    weft, source = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    if missing:
        skip("not installed: " + ", ".join(missing) + " (Debian: slurmctld, slurmd, slurm-client)")
    if os.geteuid() != 0:
        skip("slurmd needs root to begin jobs")
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        (here / "small.yaml").write_text(SCENARIO.format(source=source))
        with Slurm(here) as slurm:
            if not slurm.wait_for("a node", lambda: "idle" in slurm.ask("sinfo", "-h", "-o", "%T").stdout):
                skip(slurm.why_not())
            test(slurm, weft, source, here)
    print("ok")


if __name__ == "__main__":
    main()
