"""Machines, and what tools print."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Set
from typing import Callable, cast

from weft import _weft
from weft._machine_types import Copies, Perftest, Shown
from weft._scenario import MOST_SEED, check_whole
from weft._types import File, InputError, Value

MOST_COUNT = 2**32 - 1
MOST_BYTES = 2**63 - 1


class Topology:
    """A machine: a topology file with what is set on top of it.

    Made by `load` and `parse`. What files may hold stands in weft's topologies/README.md.
    """

    __slots__ = ("_topology",)

    def __init__(self, topology: _weft.Topology) -> None:
        self._topology = topology

    @classmethod
    def load(cls, file: File) -> Topology:
        """Reads weft's YAML or NCCL's topology XML. Raises InputError: no such file, or what is wrong in it."""
        return cls(_weft.Topology.load(os.fsencode(file)))

    @classmethod
    def parse(cls, text: str, name: str) -> Topology:
        """The same from text; `name` stands for the file in messages."""
        return cls(_weft.Topology.parse(text, os.fsencode(name)))

    def copy(self) -> Topology:
        """Another one, which changes alone."""
        return Topology(self._topology.copy())

    def __copy__(self) -> Topology:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, object]) -> Topology:
        return self.copy()

    def set(self, key: str, value: Value) -> Topology:
        """Sets a parameter, its value with its unit: set("nic.pcie_width", 8). Returns this machine.

        Beats what the file says, and what was set before. Raises InputError: no such key, or a value that it does not
        take; then nothing is changed.
        """
        self._topology.set(key, str(value))
        return self

    def show(self) -> Shown:
        """Which NIC can reach which GPU's memory, how fast (GB/s over PCIe), and why not: `weft show`.

        Raises InputError: what was read and set does not go together.
        """
        return self._topology.show()

    def perftest(self, *, op: str = "write", memory: str = "gpu", post: str = "cpu", from_: str = "gpu0",
                 to: str = "gpu0@1", from_nic: str = "", to_nic: str = "", bytes: int | Iterable[int] = 65536,
                 iterations: int = 0, tx_depth: int = 128, qps: int = 1, cq_moderation: int = 0, rx_depth: int = 512,
                 post_list: int = 1, bidirectional: bool = False, all: bool = False, gpu: str = "",
                 seed: int | None = None, stop: Callable[[], bool] | None = None) -> Perftest:
        """Point-to-point RDMA between two GPUs or sockets, as `ib_write_bw` and its kin measure it, on packets: `weft
        perftest`. Other Python threads run meanwhile.

        op: "write", "read" or "send"; memory: "gpu" (GPUDirect RDMA), "host" or "staged"; post: who posts, "cpu", "gpu"
        (IBGDA) or "proxy"; from_, to: a GPU or CPU and its node, "gpu0@0"; from_nic, to_nic: "" is the nearest; bytes:
        message sizes, each 1 B to 64 MiB; iterations: messages of each queue pair, 0 is until the rate is steady;
        tx_depth, qps, cq_moderation, rx_depth, post_list: as perftest has them, cq_moderation 0 is its own;
        bidirectional: rates are then of both ends together; all: the powers of two from 2 B to 8 MiB in place of
        `bytes`, completions then moderated alike at all sizes; gpu: which GPUs these are, "h100-sxm"; seed: as in
        Scenario.predict; stop: asked some 20 times a second whether to end early.

        Raises InputError: no such devices, no way between them, GPUDirect RDMA that cannot work (with the reason),
        numbers out of range; Stopped: `stop` came before all sizes were run; KeyboardInterrupt: Ctrl-C, or a notebook's
        stop button, in the main thread.
        """
        options = _weft.PerftestOptions()
        options.op = op
        options.memory = memory
        options.post = post
        options.from_ = from_
        options.to = to
        options.from_nic = from_nic
        options.to_nic = to_nic
        options.bytes = sizes_of(bytes)
        options.iterations = check_whole("iterations", iterations, MOST_COUNT)
        options.tx_depth = check_whole("tx_depth", tx_depth, MOST_COUNT)
        options.qps = check_whole("qps", qps, MOST_COUNT)
        options.cq_moderation = check_whole("cq_moderation", cq_moderation, MOST_COUNT)
        options.rx_depth = check_whole("rx_depth", rx_depth, MOST_COUNT)
        options.post_list = check_whole("post_list", post_list, MOST_COUNT)
        options.bidirectional = bidirectional
        options.all = all
        options.gpu = gpu
        options.seed = None if seed is None else check_whole("seed", seed, MOST_SEED)
        return self._topology.perftest(options, stop)

    def copies(self, *, from_: str = "", to: str = "", by: str = "engine", fidelity: str = "fluid",
               bidirectional: bool = False, blocks: int = 0, bytes: int | Iterable[int] = (),
               all: bool = False, gpu: str = "", stop: Callable[[], bool] | None = None) -> Copies:
        """Copies between host memory and GPUs, or between GPUs, of all pairs at once, as nvbandwidth measures them:
        `weft copies`. Other Python threads run meanwhile.

        from_, to: "gpu0", "cpu0,cpu1", "all", "cpu"; both "": nvbandwidth's matrices; by: "engine" (cudaMemcpyAsync) or
        "kernel"; fidelity: "fluid" or "packet"; bidirectional: rates are then of both ways together; blocks: thread
        blocks of a kernel, 0 is one for each SM; bytes: of a copy, unless given 512 MiB, on packets 4 MiB; all: the
        powers of two from 64 B to 1 GiB, without `bytes`; gpu, stop: as in perftest.

        Raises InputError: no such devices, no way between them, numbers out of range; Stopped and KeyboardInterrupt: as
        perftest does.
        """
        options = _weft.CopiesOptions()
        options.from_ = from_
        options.to = to
        options.by = by
        options.fidelity = fidelity
        options.bidirectional = bidirectional
        options.blocks = check_whole("blocks", blocks, MOST_COUNT)
        options.bytes = sizes_of(bytes)
        options.all = all
        options.gpu = gpu
        return self._topology.copies(options, stop)


class Log:
    """What a tool printed: nccl-tests or perftest, its text or its JSON; or a measured table (scenarios/README.md).

    Made by `load` and `parse`. It is read where it is used, which says what is wrong in it.
    """

    __slots__ = ("_log",)

    def __init__(self, log: _weft.Log) -> None:
        self._log = log

    @classmethod
    def load(cls, file: File) -> Log:
        """Raises InputError: no such file, or over 64 MiB; as `measured` of expect it has 16 MiB at most."""
        return cls(_weft.Log.load(os.fsencode(file)))

    @classmethod
    def parse(cls, text: str, name: str) -> Log:
        """A text; `name` stands for the file in messages."""
        return cls(_weft.Log.parse(text, os.fsencode(name)))


def sizes_of(sizes: int | Iterable[int]) -> list[int]:
    """Of a size or several; a set's ascend. Raises InputError: one that is no whole number from 0 on."""
    if isinstance(sizes, (str, bytes)):
        raise InputError(f"bytes {sizes!r}: write whole numbers")
    try:
        given = [operator.index(cast(int, sizes))]
    except TypeError:  # of several, or of something else, which is refused below
        given = list(sizes) if isinstance(sizes, Iterable) else [sizes]
    each = [check_whole("bytes", size, MOST_BYTES) for size in given]
    return sorted(each) if isinstance(sizes, Set) else each
