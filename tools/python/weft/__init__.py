"""weft: how fast data moves between GPUs on different machines, and why.

    import weft

    scenario = weft.Scenario.load("scenarios/quickstart.yaml")
    for row in scenario.set("wire.rate", "200 Gb/s").predict().rows:
        print(row.bytes, row.busbw_GBps, row.limited_by[0].cause)

Units are in the names: GB/s = 1e9 bytes/s, Gb/s = 1e9 bit/s, KiB = 1024 bytes. The same build gives the same bits for
the same input, and the same as the program `weft`. Several threads may call anything at once.
"""

from weft._expect import expect, explain
from weft._machine_types import (AbsentCause, Answer, Copies, CopyRow, Expected, ExpectedRow, ExplainedPoint,
                                 Explanation, JudgedRow, NotLookedAt, Pair, Perftest, PerftestRow, Quote, RefusedCause,
                                 Shown, Suspect)
from weft._scenario import Scenario, commit, parameters, version
from weft._sweep import Point, Sweep, sweep
from weft._topology import Log, Topology
from weft._types import (Cause, Cell, File, InputError, InternalError, NotRun, Parameter, Prediction, Row, Stopped,
                         Value)

__version__ = version()

__all__ = ["AbsentCause", "Answer", "Cause", "Cell", "Copies", "CopyRow", "Expected", "ExpectedRow", "ExplainedPoint",
           "Explanation", "File", "InputError", "InternalError", "JudgedRow", "Log", "NotLookedAt", "NotRun", "Pair",
           "Parameter", "Perftest", "PerftestRow", "Point", "Prediction", "Quote", "RefusedCause", "Row", "Scenario",
           "Shown", "Stopped", "Suspect", "Sweep", "Topology", "Value", "commit", "expect", "explain", "parameters",
           "sweep", "version"]
