"""What weft says of machines and of runs that were measured, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft._types import Cause, Cell, frame, html_table, with_columns

if TYPE_CHECKING:
    import pandas  # type: ignore[import]


class Table:
    """What has rows to make a table of."""

    def _cells(self) -> list[dict[str, Cell]]:
        raise NotImplementedError

    def _below(self) -> tuple[str, ...]:
        return ()

    def _columns(self) -> tuple[str, ...]:
        raise NotImplementedError

    def to_dicts(self) -> list[dict[str, Cell]]:
        """A dict a row; None is an empty cell."""
        return with_columns(self._cells(), self._columns())

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a pandas.DataFrame. Raises ImportError where pandas is not installed."""
        return frame(self.to_dicts(), self._columns())

    def _repr_html_(self) -> str:
        return html_table(self.to_dicts(), self._columns(), self._below())


@dataclass(frozen=True)
class Pair:
    """A GPU and a NIC of a node.

    gpu, nic             their names
    path_class           `nvidia-smi topo -m`'s: PIX, PXB, PHB, NODE, SYS
    gdr_possible         GPUDirect RDMA can work
    nccl_default         NCCL would use it, by default
    why                  why not, or what to know
    nic_writes_gpu_GBps  1e9 bytes/s over PCIe alone; 0 if it is not possible
    nic_reads_gpu_GBps   likewise
    """

    gpu: str
    nic: str
    path_class: str
    gdr_possible: bool
    nccl_default: bool
    why: str
    nic_writes_gpu_GBps: float
    nic_reads_gpu_GBps: float


@dataclass(frozen=True)
class Shown(Table):
    """What `weft show` says of a machine; tables have the columns of its JSON's `pairs`.

    pairs  every GPU and NIC of a node, GPUs first
    notes  what the reader had to assume
    text   tree, matrix and pairs, as `weft show` prints them
    json   the same, as `weft show --format json` does
    """

    pairs: tuple[Pair, ...]
    notes: tuple[str, ...]
    text: str = field(repr=False)
    json: str = field(repr=False)

    def _columns(self) -> tuple[str, ...]:
        return ("gpu", "nic", "class", "gdr_possible", "nccl_default", "why", "nic_writes_gpu_GBps",
                "nic_reads_gpu_GBps")

    def _cells(self) -> list[dict[str, Cell]]:
        return [{**vars(pair), "class": pair.path_class} for pair in self.pairs]

    def _below(self) -> tuple[str, ...]:
        return self.notes


@dataclass(frozen=True)
class PerftestRow:
    """One message size of a perftest.

    bytes          of a message
    iterations     messages that were simulated, of all queue pairs
    bw_Gbps        1e9 bit/s of payload, while steady
    bw_peak_Gbps   1e9 bit/s of payload, the best from a post to a completion
    msg_rate_Mpps  1e6 messages/s, while steady
    latency_us     microseconds, of one message alone
    limited_by     what was busy all the time while rates were steady
    """

    bytes: int
    iterations: int
    bw_Gbps: float
    bw_peak_Gbps: float
    msg_rate_Mpps: float
    latency_us: float
    limited_by: str


@dataclass(frozen=True)
class Perftest(Table):
    """What `weft perftest` says of two ends; tables have columns of its JSON's `results`.

    from_, to         the ends with their nodes: "gpu0@0"
    from_nic, to_nic  their NICs
    rows              one a size, in the order given
    notes             what the reader had to assume, what had no effect
    json              as `weft perftest --json` writes it
    """

    from_: str
    to: str
    from_nic: str
    to_nic: str
    rows: tuple[PerftestRow, ...]
    notes: tuple[str, ...]
    json: str = field(repr=False)

    def _columns(self) -> tuple[str, ...]:
        return ("bytes", "iterations", "bw_Gbps", "bw_peak_Gbps", "msg_rate_Mpps", "latency_us", "limited_by")

    def _cells(self) -> list[dict[str, Cell]]:
        return [vars(row) for row in self.rows]

    def _below(self) -> tuple[str, ...]:
        return self.notes


@dataclass(frozen=True)
class CopyRow:
    """One pair and size of copies.

    test        nvbandwidth's, of a matrix; "" else
    from_, to   GPUs, or a CPU for its memory
    kind        "h2d", "d2h", "d2d" or "bidirectional"
    by          "engine" or "kernel"
    bytes       of a copy, each way
    copies      that were simulated, one after another, each way
    time_us     microseconds, of a copy
    GBps        1e9 bytes/s of payload; of both ways twice that of the slower
    forth_GBps  from `from_` to `to`
    back_GBps   the other way; None unless it runs
    limited_by  causes, largest first
    """

    test: str
    from_: str
    to: str
    kind: str
    by: str
    bytes: int
    copies: int
    time_us: float
    GBps: float
    forth_GBps: float
    back_GBps: float | None
    limited_by: tuple[Cause, ...]


@dataclass(frozen=True)
class Copies(Table):
    """What `weft copies` says of a machine; tables have the columns of its CSV.

    rows   size by size, in the order of the pairs
    notes  what the reader had to assume, what had no effect
    text   as `weft copies` prints it
    json   with its provenance, as `weft copies --json` writes it
    """

    rows: tuple[CopyRow, ...]
    notes: tuple[str, ...]
    text: str = field(repr=False)
    json: str = field(repr=False)

    def _columns(self) -> tuple[str, ...]:
        return ("test", "from", "to", "kind", "by", "bytes", "copies", "time_us", "GBps", "forth_GBps",
                "back_GBps", "limited_by")

    def _cells(self) -> list[dict[str, Cell]]:
        def limit(row: CopyRow) -> str:
            return next((f"{top.cause} ({top.where}) {100 * top.share:.0f} %" for top in row.limited_by), "")
        return [{**vars(row), "from": row.from_, "limited_by": limit(row)} for row in self.rows]

    def _below(self) -> tuple[str, ...]:
        return self.notes


@dataclass(frozen=True)
class ExpectedRow:
    """One operation of one size, and how far off its prediction may be.

    state                "healthy", or "found": the machine as it is
    op                   "allreduce"; of perftest its program, "write_bw"
    bytes                as the tool counts size
    ranks, nodes         GPUs of all nodes together, and nodes
    memory_path          "gdr", "host-staged", "nccl" (either, by pair), of perftest "gdr" or "host"
    algo, proto          of nccl-tests; "" else
    qps, tx_depth        of perftest; 0 else
    time_us              microseconds, predicted
    busbw_GBps           1e9 bytes/s, predicted
    low_GBps, high_GBps  the interval of busbw; eight healthy sites of ten lie in it, where `basis` does not say
                         "not validated"
    low_us, high_us      of perftest's latency tests the interval of time_us; None else
    floor_GBps           the lower end of busbw, rounded down; None: nothing validates one
    basis                "validated: ...", "wider: ...", "not validated: ..."
    limited_by           causes, largest first
    """

    state: str
    op: str
    bytes: int
    ranks: int
    nodes: int
    memory_path: str
    algo: str
    proto: str
    qps: int
    tx_depth: int
    time_us: float
    busbw_GBps: float
    low_GBps: float
    high_GBps: float
    low_us: float | None
    high_us: float | None
    floor_GBps: float | None
    basis: str
    limited_by: tuple[Cause, ...]


@dataclass(frozen=True)
class JudgedRow:
    """A measured row beside what was expected of it; None is what is not known.

    op, bytes, ranks, nodes          as in ExpectedRow
    line                             in the log
    measured_GBps                    1e9 bytes/s of bus bandwidth, as all that follow
    verdict                          "ok", "below the floor", "above the interval", "no floor" or "not predicted"
    floor_GBps                       below it a healthy machine is not
    busbw_GBps, low_GBps, high_GBps  expected, and its interval
    found_low_GBps, found_high_GBps  of the machine as found, where that is another
    basis                            as in ExpectedRow, or why it is not predicted
    """

    op: str
    bytes: int
    ranks: int
    nodes: int
    line: int
    measured_GBps: float
    verdict: str
    floor_GBps: float | None
    busbw_GBps: float | None
    low_GBps: float | None
    high_GBps: float | None
    found_low_GBps: float | None
    found_high_GBps: float | None
    basis: str


@dataclass(frozen=True)
class Expected(Table):
    """What `weft expect` says of a machine; tables have the keys of its JSON's `results`, or `judged`, where `low` is
    low_GBps and the like; of causes they have the largest one's `limited_by` and `limited_by_share`.

    rows         the healthy machine's; then as found, where any of these differs
    judged       instead, if something was measured
    below_floor  so many of these
    failures     why what was measured is not to be trusted, whatever the verdicts: errors, wrong values
    mended       what the healthy machine has otherwise
    notes        what had to be assumed, choices of NCCL, warnings
    text         as `weft expect` prints it
    json         as `weft expect --json` writes it
    gate         the floors, as `weft expect --gate` writes them; "" if there are none
    """

    rows: tuple[ExpectedRow, ...]
    judged: tuple[JudgedRow, ...]
    below_floor: int
    failures: tuple[str, ...]
    mended: tuple[str, ...]
    notes: tuple[str, ...]
    text: str = field(repr=False)
    json: str = field(repr=False)
    gate: str = field(repr=False)

    def _columns(self) -> tuple[str, ...]:
        if self.judged:
            return ("op", "bytes", "ranks", "nodes", "line", "measured_GBps", "verdict", "floor_GBps", "busbw_GBps",
                    "low", "high", "found_low", "found_high", "basis")
        return ("state", "op", "bytes", "ranks", "nodes", "memory_path", "algo", "proto", "qps", "tx_depth", "time_us",
                "busbw_GBps", "low", "high", "low_us", "high_us", "floor_GBps", "basis", "limited_by",
                "limited_by_share")

    def _cells(self) -> list[dict[str, Cell]]:
        if self.judged:
            return [{**vars(row), "low": row.low_GBps, "high": row.high_GBps, "found_low": row.found_low_GBps,
                     "found_high": row.found_high_GBps} for row in self.judged]
        tops = [row.limited_by[0] if row.limited_by else Cause("", "", 0.0) for row in self.rows]
        return [{**vars(row), "algo": row.algo or None, "proto": row.proto or None, "qps": row.qps or None,
                 "tx_depth": row.tx_depth or None, "low": row.low_GBps, "high": row.high_GBps,
                 "limited_by": top.cause, "limited_by_share": top.share} for row, top in zip(self.rows, tops)]

    def _below(self) -> tuple[str, ...]:
        return self.mended + self.notes


@dataclass(frozen=True)
class ExplainedPoint:
    """One size that was looked at.

    op            "allreduce"
    memory_path   "host-staged" where it was forced; "" else
    bytes         as nccl-tests counts size
    slow_us       microseconds, measured
    busbw_GBps    1e9 bytes/s, of the slow run
    healthy_us    microseconds, measured; None without a healthy run
    predicted_us  microseconds, where nothing is wrong
    gap           ln(slow / healthy, or predicted where there is none)
    sd            standard deviation of a gap where nothing is wrong
    """

    op: str
    memory_path: str
    bytes: int
    slow_us: float
    busbw_GBps: float
    healthy_us: float | None
    predicted_us: float
    gap: float
    sd: float


@dataclass(frozen=True)
class Quote:
    """What evidence says.

    place  file and line; "" where several places say it together
    text   what it says
    """

    place: str
    text: str


@dataclass(frozen=True)
class Suspect:
    """What can make a run slow, at one place of the machine.

    id          entry of the catalogue: "acs"
    what        the cause
    where, how  of the machine; how much, or to which value
    changes     what is otherwise than on the healthy machine
    verify      what to run or to change
    weight      by which evidence makes it more likely, or less; 0: it is ruled out
    said        what the check of evidence came to; "" if that says nothing of it
    evidence    what says so
    """

    id: str
    what: str
    where: str
    how: str
    changes: tuple[str, ...]
    verify: str
    weight: float
    said: str
    evidence: tuple[Quote, ...]


@dataclass(frozen=True)
class Answer:
    """What explains a run.

    causes        one, or two at once
    alternatives  that predict the same, each one cause or two
    alike         it cannot be told from the first answer
    times_less    likely than that; 1e12: or more
    explains      share of the gap over all sizes; None: that is within its error
    low, high     of 80 % of its likely values
    chance        of numbers that fit worse if it is the cause
    effects       ln(with it / healthy) by point, predicted
    """

    causes: tuple[Suspect, ...]
    alternatives: tuple[tuple[Suspect, ...], ...]
    alike: bool
    times_less: float
    explains: float | None
    low: float | None
    high: float | None
    chance: float
    effects: tuple[float, ...]


@dataclass(frozen=True)
class RefusedCause:
    """A cause that weft cannot predict here.

    id, where, how  as in Suspect
    why             weft cannot predict it
    """

    id: str
    where: str
    how: str
    why: str


@dataclass(frozen=True)
class AbsentCause:
    """A cause that cannot be on this machine.

    id     entry of the catalogue
    needs  what a machine must have for it
    """

    id: str
    needs: str


@dataclass(frozen=True)
class NotLookedAt:
    """What can make a run slow, too.

    what  it is
    why   it is not looked at
    """

    what: str
    why: str


@dataclass(frozen=True)
class Explanation(Table):
    """What `weft explain` says of a run; tables have a row for each cause of each answer, which `answer` counts from 1.

    verdict            "not slower" (than it should be), "explained", "none" (of the causes)
    machine            its file, or "the evidence's machine, mended"
    nodes, ranks       of the run: nodes, GPUs of all nodes together
    nccl_version       whose decisions were followed
    chance_if_healthy  of numbers that are off as far where nothing is wrong
    two_at_once        the first answer is two causes
    points             the sizes that were looked at
    answers            the likeliest first; of "none" the nearest, which do not suffice
    ruled_out          causes that evidence rules out
    no_effect          causes that change no time by 1 % at the sizes where they were predicted
    refused            causes that weft cannot predict here
    not_here           causes that cannot be on this machine
    not_looked_at      what has no entry in the catalogue
    notes              what had to be assumed
    text               as `weft explain` prints it
    json               as `weft explain --json` writes it
    """

    verdict: str
    machine: str
    nodes: int
    ranks: int
    nccl_version: str
    chance_if_healthy: float
    two_at_once: bool
    points: tuple[ExplainedPoint, ...]
    answers: tuple[Answer, ...]
    ruled_out: tuple[Suspect, ...] = field(repr=False)
    no_effect: tuple[Suspect, ...] = field(repr=False)
    refused: tuple[RefusedCause, ...] = field(repr=False)
    not_here: tuple[AbsentCause, ...] = field(repr=False)
    not_looked_at: tuple[NotLookedAt, ...] = field(repr=False)
    notes: tuple[str, ...]
    text: str = field(repr=False)
    json: str = field(repr=False)

    def _columns(self) -> tuple[str, ...]:
        return ("answer", "id", "what", "where", "how", "alike", "times_less", "explains", "low", "high", "chance",
                "verify")

    def _cells(self) -> list[dict[str, Cell]]:
        return [{"answer": number, "id": cause.id, "what": cause.what, "where": cause.where, "how": cause.how,
                 "alike": answer.alike, "times_less": answer.times_less, "explains": answer.explains, "low": answer.low,
                 "high": answer.high, "chance": answer.chance, "verify": cause.verify}
                for number, answer in enumerate(self.answers, 1) for cause in answer.causes]

    def _below(self) -> tuple[str, ...]:
        return (f"verdict: {self.verdict}", *self.notes)
