"""Scenarios, and what may be set."""

from __future__ import annotations

import operator
import os
from typing import Callable, SupportsIndex

from weft import _weft
from weft._types import File, InputError, Parameter, Prediction, Value

MOST_SEED = 2**53 - 1
MOST_THREADS = 1024


class Scenario:
    """What runs on which machine: a scenario file with what is set on top of it.

    Made by `load` and `parse`. What files may hold stands in weft's scenarios/README.md and topologies/README.md.
    """

    __slots__ = ("_scenario",)

    def __init__(self, scenario: _weft.Scenario) -> None:
        self._scenario = scenario

    @classmethod
    def load(cls, file: File) -> Scenario:
        """Reads a scenario file, and its topology when that is needed; a relative path to it starts at the file's
        folder.

        Raises InputError: no such file, or what is wrong in it, with file, line and column.
        """
        return cls(_weft.Scenario.load(os.fsencode(file)))

    @classmethod
    def parse(cls, text: str, name: str) -> Scenario:
        """The same from text; `name` stands for the file in messages, and its folder for the file's."""
        return cls(_weft.Scenario.parse(text, os.fsencode(name)))

    def copy(self) -> Scenario:
        """Another one, which changes alone."""
        return Scenario(self._scenario.copy())

    def __copy__(self) -> Scenario:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, object]) -> Scenario:
        return self.copy()

    def set(self, key: str, value: Value) -> Scenario:
        """Sets a parameter, its value with its unit: set("wire.rate", "200 Gb/s"). Returns this scenario.

        Beats what file and topology say, and what was set before. Raises InputError: no such key, or a value that it
        does not take; then nothing is changed.
        """
        self._scenario.set(key, str(value))
        return self

    def env(self, name: str, value: Value) -> Scenario:
        """Sets one of NCCL's environment variables: env("NCCL_ALGO", "Ring"). Returns this scenario.

        Raises InputError: none of NCCL's, or a value that it does not take. One that weft does not model is named in
        the prediction's notes.
        """
        self._scenario.env(name, text_of_variable(value))
        return self

    def predict(self, *, fidelity: str = "fluid", seed: int | None = None, threads: int = 0, force: bool = False,
                stop: Callable[[], bool] | None = None) -> Prediction:
        """Simulates every size over every memory path. Seconds for a few nodes; other Python threads run meanwhile.

        fidelity: "fluid" (shared rates) or "packet" (TLP by TLP, some MiB at most); seed: of all that is random, 0 to
        2^53 - 1, None: what wire.seed is; threads: 0 is one a core, the result does not depend on it; force: with
        packets, run what takes more than ten minutes, too; stop: asked some 20 times a second whether to end early,
        the prediction then has the rows that are finished, and `not_run` the others.

        Raises InputError: what was read and set does not go together, or would take too long; Stopped: `stop` came
        before the first row; KeyboardInterrupt: Ctrl-C, or a notebook's stop button, in the main thread.
        """
        seed = None if seed is None else check_whole("seed", seed, MOST_SEED)
        threads = check_whole("threads", threads, MOST_THREADS)
        return self._scenario.predict(fidelity, seed, threads, force, stop)


def text_of_variable(value: Value) -> str:
    """Of an environment variable: NCCL reads 1 and 0, not True and False."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def check_whole(name: str, number: SupportsIndex, most: int) -> int:
    """The number. Raises InputError unless it is whole and 0 <= number <= most."""
    try:
        whole = operator.index(number)
    except TypeError:
        whole = -1
    if not 0 <= whole <= most:
        raise InputError(f"{name} {number}: write a whole number from 0 to {most}")
    return whole


def parameters() -> tuple[Parameter, ...]:
    """Every key that may be set, sorted: what `weft list-params` prints."""
    return _weft.parameters()


def version() -> str:
    """As "0.1.0"."""
    return _weft.version()


def commit() -> str:
    """The commit it was built from, with "-dirty" where files were changed; "unknown" if not from a clone."""
    return _weft.commit()
