"""What a machine should give, and why a run is slow."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Callable, Mapping, Sequence

from weft import _weft
from weft._machine_types import Expected, Explanation
from weft._scenario import MOST_SEED, MOST_THREADS, check_whole, text_of_variable
from weft._topology import MOST_COUNT, Log, Topology, sizes_of
from weft._types import File, Value


def expect(machine: Topology | File | Sequence[File], *, tool: str = "nccl-tests", op: str | Sequence[str] = (),
           bytes: int | Iterable[int] = (), nodes: int = 0, memory: str = "", qps: int = 1, tx_depth: int = 128,
           measured: Log | File | None = None, as_: Mapping[str, Value] | str | None = None,
           set: Mapping[str, Value] | None = None, env: Mapping[str, Value] | None = None, gpu: str = "",
           nccl_version: str = "", launch: str = "", seed: int | None = None, threads: int = 0,
           stop: Callable[[], bool] | None = None) -> Expected:
    """What a healthy machine should give, with intervals and floors in GB/s of bus bandwidth: `weft expect`. Seconds
    for a few nodes; other Python threads run meanwhile.

    machine: a Topology; or files, of evidence as `weft import` takes it ("FILE" or "HOST=FILE"), of a topology, or with
    `measured` of a gate; tool: "nccl-tests" or "perftest"; op: operations, unless given "allreduce", of perftest
    "write_bw"; bytes: sizes, ascending, unless given the powers of two from 8 B to 8 GiB, of perftest from 8 KiB to
    8 MiB; nodes: 0 is the machine's number; memory: "gdr" or "host-staged", of perftest "gdr" or "host", "" is NCCL's
    choice; qps, tx_depth: of perftest; measured: held against the floors, its rows of `op`, `bytes` and `nodes` where
    these are given; as_: columns that it leaves out, {"ranks": 16, "hosts": 2} or "ranks=16,hosts=2"; set, env:
    parameters and NCCL's variables; gpu: which GPUs these are, "h100-sxm"; nccl_version: "2.27.3"; launch:
    "back-to-back", "graph" or "single"; seed, threads: as in Scenario.predict; stop: asked some 20 times a second
    whether to end early.

    Raises InputError: files, words or numbers are wrong, or no row is of what was asked for; Stopped: `stop` came before
    all was predicted; KeyboardInterrupt: Ctrl-C, or a notebook's stop button, in the main thread.
    """
    options = _weft.ExpectOptions()
    options.tool = tool
    options.op = list(filter(None, op.split(","))) if isinstance(op, str) else list(op)
    options.bytes = sizes_of(bytes)
    options.nodes = check_whole("nodes", nodes, MOST_COUNT)
    options.memory = memory
    options.qps = check_whole("qps", qps, MOST_COUNT)
    options.tx_depth = check_whole("tx_depth", tx_depth, MOST_COUNT)
    options.measured = _log_of(measured)
    _take_rest(options, as_, set, env, gpu, nccl_version, launch, seed, threads)
    if isinstance(machine, Topology):
        return machine._topology.expect(options, stop)
    return _weft.expect(_files_of(machine), options, stop)


def explain(slow: Log | File, healthy: Log | File | None = None, *, machine: Topology | File | None = None,
            evidence: File | Sequence[File] = (), as_: Mapping[str, Value] | str | None = None,
            set: Mapping[str, Value] | None = None, env: Mapping[str, Value] | None = None, gpu: str = "",
            nccl_version: str = "", launch: str = "", seed: int | None = None, threads: int = 0,
            stop: Callable[[], bool] | None = None) -> Explanation:
    """Why a run is slow: ranked causes, what share of the lost time each explains, how to verify it: `weft explain`.
    Seconds for a few nodes; other Python threads run meanwhile.

    slow, healthy: what nccl-tests printed, of the slow run and of a healthy one of the same machine if there is one;
    machine: as it should be, unless given the evidence's with all mended that `weft doctor` finds; evidence: files with
    what tools print on one host of it ("FILE" or "HOST=FILE"); as_: columns that the runs leave out,
    {"ranks": 16, "hosts": 2, "op": "allreduce"}; the rest is as in `expect`. `machine`, `evidence` or both must be given.

    Raises InputError: files, words or numbers are wrong, runs are no collectives, of other machines or without a size in
    common, or the machine cannot be predicted; Stopped: `stop` came before all was predicted; KeyboardInterrupt:
    Ctrl-C, or a notebook's stop button, in the main thread.
    """
    options = _weft.ExplainOptions()
    options.healthy = _log_of(healthy)
    if machine is not None:
        options.machine = (machine if isinstance(machine, Topology) else Topology.load(machine))._topology
    options.evidence = _files_of(evidence)
    _take_rest(options, as_, set, env, gpu, nccl_version, launch, seed, threads)
    log = slow if isinstance(slow, Log) else Log.load(slow)
    return _weft.explain(log._log, options, stop)


def _log_of(log: Log | File | None) -> _weft.Log | None:
    if log is None:
        return None
    return (log if isinstance(log, Log) else Log.load(log))._log


def _files_of(files: File | Sequence[File]) -> list[bytes]:
    if isinstance(files, (str, bytes, os.PathLike)):
        return [os.fsencode(files)]
    return [os.fsencode(file) for file in files]


def _take_rest(options: _weft.ExpectOptions | _weft.ExplainOptions, as_: Mapping[str, Value] | str | None,
               settings: Mapping[str, Value] | None, env: Mapping[str, Value] | None, gpu: str, nccl_version: str,
               launch: str, seed: int | None, threads: int) -> None:
    """What both have."""
    options.as_ = as_ if isinstance(as_, str) else ",".join(f"{key}={value}" for key, value in (as_ or {}).items())
    options.set = [(key, str(value)) for key, value in (settings or {}).items()]
    options.env = {name: text_of_variable(value) for name, value in (env or {}).items()}
    options.gpu = gpu
    options.nccl_version = nccl_version
    options.launch = launch
    options.seed = None if seed is None else check_whole("seed", seed, MOST_SEED)
    options.threads = check_whole("threads", threads, MOST_THREADS)
