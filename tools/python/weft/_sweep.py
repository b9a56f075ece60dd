"""The grid of parameter values, as `weft sweep` has it."""

from __future__ import annotations

import itertools
import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Callable, Mapping, Sequence

from weft._scenario import MOST_SEED, MOST_THREADS, Scenario, check_whole
from weft._types import (Cell, InputError, Prediction, Stopped, Value, cells_not_run, cells_of, columns_of, frame,
                         html_table, with_columns)

if TYPE_CHECKING:
    import pandas  # type: ignore[import]

MOST_POINTS = 100_000
STOPPED_BEFORE = "stopped before it was run"


@dataclass(frozen=True)
class Point:
    """One combination of values.

    settings    key to value
    prediction  None where there is none; its `json` is "", or a large grid would fill the memory
    not_run     why there is none; "" else
    """

    settings: Mapping[str, Value]
    prediction: Prediction | None
    not_run: str


@dataclass(frozen=True)
class Sweep:
    """What `weft sweep` says of a grid.

    points  the last key's values change fastest
    """

    points: tuple[Point, ...]

    def _columns(self) -> list[str]:
        keys = list(self.points[0].settings)
        rows = [row for point in self.points if point.prediction for row in point.prediction.rows]
        return keys + [name for name in columns_of(rows) if name not in keys] + ["not_run"]

    def to_dicts(self) -> list[dict[str, Cell]]:
        """A dict a row, with the columns of `weft sweep --csv` but `point`.

        The settings, the cells of each row, and not_run: why a point, or a memory path of it, has no rows.
        """
        cells: list[dict[str, Cell]] = []
        for point in self.points:
            if point.prediction is None:
                cells.append({**point.settings, "not_run": point.not_run})
                continue
            rows = [(cells_of(row), "") for row in point.prediction.rows]
            rows += [(cells_not_run(row), row.why) for row in point.prediction.not_run]
            cells += [{**of_row, **point.settings, "not_run": why} for of_row, why in rows]
        return with_columns(cells, self._columns())

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a pandas.DataFrame. Raises ImportError where pandas is not installed."""
        return frame(self.to_dicts(), self._columns())

    def _repr_html_(self) -> str:
        return html_table(self.to_dicts(), self._columns())


def sweep(scenario: Scenario, grid: Mapping[str, Sequence[Value]], *, seed: int | None = None, threads: int = 0,
          stop: Callable[[], bool] | None = None) -> Sweep:
    """Simulates a scenario at every point of a grid: sweep(scenario, {"nic.rate": ["200 Gb/s", "400 Gb/s"]}).

    The points run in parallel. A point that is refused says why in `not_run`, as does one that `stop` came before;
    the others are as `weft sweep` has them, which takes training steps and irregular traffic too. The rest is as in
    Scenario.predict, but that `stop` is asked on several threads.

    Raises InputError: no point, a value given twice, a key of which no value can be set; KeyboardInterrupt: Ctrl-C.
    """
    seed = None if seed is None else check_whole("seed", seed, MOST_SEED)
    threads = check_whole("threads", threads, MOST_THREADS)
    axes = {key: _values_of(key, values) for key, values in grid.items()}
    _check_axes(scenario, axes, seed)
    settings = [dict(zip(axes, values)) for values in itertools.product(*axes.values())]
    cores = threads or len(os.sched_getaffinity(0))
    each = max(1, cores // len(settings))
    is_over = threading.Event()

    def asked() -> bool:
        return is_over.is_set() or (stop is not None and stop())

    def run(point: dict[str, Value]) -> Point:
        try:
            if asked():
                return Point(point, None, STOPPED_BEFORE)
            changed = scenario.copy()
            for key, value in point.items():
                changed.set(key, value)
            prediction = changed.predict(seed=seed, threads=each, stop=asked)
        except Stopped:
            return Point(point, None, STOPPED_BEFORE)
        except InputError as error:
            return Point(point, None, str(error))
        except BaseException:  # the points before it, which are waited for, end too
            is_over.set()
            raise
        if any(row.bytes != 0 for row in prediction.not_run):  # stopped in the midst of it
            return Point(point, None, STOPPED_BEFORE)
        return Point(point, replace(prediction, json=""), "")

    with ThreadPoolExecutor(min(cores, len(settings))) as pool:
        try:
            under_way = [pool.submit(run, point) for point in settings]
            return Sweep(tuple(one.result() for one in under_way))
        except BaseException:  # Ctrl-C, or what `stop` raises
            is_over.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _values_of(key: str, values: Sequence[Value]) -> list[Value]:
    """A list of them, no longer than it takes to see that they are too many."""
    if isinstance(values, (str, bytes)):
        raise InputError(f"{key}: write a list of values, [{values!r}]")
    return list(itertools.islice(values, MOST_POINTS + 1))


def _check_axes(scenario: Scenario, axes: Mapping[str, Sequence[Value]], seed: int | None) -> None:
    """Refuses what `weft sweep` refuses of a grid, so that nothing runs in vain."""
    if not axes:
        raise InputError("the grid is empty; write {key: [value, ...], ...}")
    if seed is not None and "wire.seed" in axes:
        raise InputError("wire.seed is swept; leave seed out")
    if math.prod(len(values) for values in axes.values()) > MOST_POINTS:
        raise InputError(f"the grid has more than {MOST_POINTS} points; split it")
    for key, values in axes.items():
        if not values:
            raise InputError(f"{key}: no values")
        if len(set(map(str, values))) < len(values):
            raise InputError(f"{key}: a value is given twice")
        if (refusal := _refusal_of_all(scenario, key, values)) is not None:
            raise refusal


def _refusal_of_all(scenario: Scenario, key: str, values: Sequence[Value]) -> InputError | None:
    """Of the first value, if none can be set; None else."""
    first: InputError | None = None
    for value in values:
        try:
            scenario.copy().set(key, value)
            return None
        except InputError as error:
            first = first or error
    return first
