"""What predictions are made of, and the exceptions. Plain values: compare them, keep them, pickle them."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Iterable, Sequence

if TYPE_CHECKING:
    import pandas  # type: ignore[import]

Value = str | int | float
"""Of a parameter, as it is written: "200 Gb/s", 4, 0.5."""
File = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""A file's name."""
Cell = str | int | float | None
"""Of a table; None is an empty one."""


class InputError(ValueError):
    """Files, keys or values are wrong: says where, what, and what is allowed."""


class InternalError(RuntimeError):
    """weft's own fault, or the machine is out of memory; please report the former."""


class Stopped(RuntimeError):
    """`stop` ended work before anything of it that can be given was finished."""


for _error in (InputError, InternalError, Stopped):
    _error.__module__ = "weft"


@dataclass(frozen=True)
class Cause:
    """A share of a row's time along its critical path.

    cause  the kind of thing: "PCIe uplink, switch to CPU"
    where  the one of that kind that took most: "pcisw0 -> cpu0 @0"
    share  0 to 1; all shares of a row sum to 1
    """

    cause: str
    where: str
    share: float


@dataclass(frozen=True)
class Row:
    """One operation of one size over one memory path.

    op                   "allreduce"
    bytes                as nccl-tests counts size
    ranks, nodes         GPUs and nodes that take part
    memory_path          "gdr", "host-staged" or "nccl": as NCCL decides
    algo, proto          that ran: "Ring", "Tree", "NVLS", "NVLSTree", "P2P"; "LL", "LL128", "Simple"
    channels             that ran
    nccl_choice          what NCCL would run where weft does not execute it; or ""
    time_us              microseconds
    algbw_GBps           1e9 bytes/s: bytes / time
    busbw_GBps           1e9 bytes/s, as nccl-tests defines it
    limited_by           causes, largest first
    extended_from_nodes  nodes of the largest cluster that the time was extended from; 0: not extended; of a step:
                         of the largest on which the call that grows most was run by itself, smaller than the step's
    job                  of a scenario with several; "" else
    alone_us             microseconds, of a job: what the same takes alone on the fabric
    """

    op: str
    bytes: int
    ranks: int
    nodes: int
    memory_path: str
    algo: str
    proto: str
    channels: int
    nccl_choice: str
    time_us: float
    algbw_GBps: float
    busbw_GBps: float
    limited_by: tuple[Cause, ...]
    extended_from_nodes: int = 0
    job: str = ""
    alone_us: float = 0.0


@dataclass(frozen=True)
class NotRun:
    """What a scenario asks for and a prediction has no row of.

    op, memory_path, job  as in Row
    bytes                 0: no size of this memory path is run
    why                   the reason
    """

    op: str
    bytes: int
    memory_path: str
    job: str
    why: str


@dataclass(frozen=True)
class Parameter:
    """A key that may be set, in words for people.

    key       "nic.pcie_width", "network.kind", "nodes"
    unit      of its number, as it may be written; "" for words and plain numbers
    range     what is allowed
    fallback  the value if nobody sets it
    origin    specification, published, measured, fitted, assumed, or topology
    source    what says so
    meaning   for people
    also      the key for one device or tier: "<nic>.pcie_width"
    """

    key: str
    unit: str
    range: str
    fallback: str
    origin: str
    source: str
    meaning: str
    also: tuple[str, ...]


@dataclass(frozen=True)
class Prediction:
    """What `weft run` says of a scenario.

    rows     by size, then in the order of the scenario's memory paths
    not_run  memory paths that cannot be run, rows that `stop` came before
    verdict  sentences for people
    notes    what was not run and why, choices of NCCL, warnings
    json     all of it with its provenance, as `weft run --json` writes it
    """

    rows: tuple[Row, ...]
    not_run: tuple[NotRun, ...]
    verdict: tuple[str, ...]
    notes: tuple[str, ...]
    json: str = field(repr=False)

    def to_dicts(self) -> list[dict[str, Cell]]:
        """A dict a row, with the columns of `weft run --csv`; rows that `stop` came before have no time."""
        cells = [cells_of(row) for row in self.rows]
        cells += [cells_not_run(row) for row in self.not_run if row.bytes != 0]
        return with_columns(cells, columns_of(self.rows))

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a pandas.DataFrame. Raises ImportError where pandas is not installed."""
        return frame(self.to_dicts(), columns_of(self.rows))

    def _repr_html_(self) -> str:
        return html_table(self.to_dicts(), columns_of(self.rows), self.verdict)


COLUMNS = ("op", "bytes", "ranks", "nodes", "memory_path", "algo", "proto", "channels", "time_us", "algbw_GBps",
           "busbw_GBps", "limited_by", "limited_by_where", "limited_by_share", "extended_from_nodes")


def columns_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """Of a table of these rows."""
    return COLUMNS + ("job", "alone_us") if any(row.job for row in rows) else COLUMNS


def cells_of(row: Row) -> dict[str, Cell]:
    """Of a row; `limited_by` is the largest cause."""
    cells: dict[str, Cell] = {name: getattr(row, name) for name in COLUMNS if not name.startswith("limited_by")}
    top = row.limited_by[0] if row.limited_by else Cause("", "", 0.0)
    cells.update(limited_by=top.cause, limited_by_where=top.where, limited_by_share=top.share,
                 extended_from_nodes=row.extended_from_nodes or None, job=row.job, alone_us=row.alone_us)
    return cells


def cells_not_run(row: NotRun) -> dict[str, Cell]:
    """Of what has no row."""
    return {"op": row.op, "bytes": row.bytes or None, "memory_path": row.memory_path, "job": row.job}


def with_columns(cells: Iterable[dict[str, Cell]], columns: Sequence[str]) -> list[dict[str, Cell]]:
    """These columns of each, in their order."""
    return [{name: of_row.get(name) for name in columns} for of_row in cells]


def frame(cells: list[dict[str, Cell]], columns: Sequence[str]) -> pandas.DataFrame:
    """A pandas.DataFrame."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_pandas() needs pandas: apt-get install python3-pandas, or pip install pandas; "
                          "to_dicts() does without") from error
    return pandas.DataFrame(cells, columns=list(columns))


def html_table(cells: list[dict[str, Cell]], columns: Sequence[str], below: Iterable[str] = ()) -> str:
    """For notebooks: at most 60 rows, numbers to five digits."""
    most = 60

    def text(cell: Cell) -> str:
        return "" if cell is None else f"{cell:.5g}" if isinstance(cell, float) else html.escape(str(cell))

    lines = ["<tr>" + "".join(f"<th>{html.escape(name)}</th>" for name in columns) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{text(of_row[name])}</td>" for name in columns) + "</tr>"
              for of_row in cells[:most]]
    said = [f"{len(cells) - most} more rows"] if len(cells) > most else []
    lines = ["<table>", *lines, "</table>", *(f"<p>{html.escape(line)}</p>" for line in [*said, *below])]
    return "".join(lines)
