"""The module in C++ (tools/python/binding.cpp)."""

from typing import Callable

from weft._machine_types import Copies, Expected, Explanation, Perftest, Shown
from weft._types import Parameter, Prediction

def version() -> str: ...
def commit() -> str: ...
def parameters() -> tuple[Parameter, ...]: ...

class Scenario:
    @staticmethod
    def load(file: bytes) -> Scenario: ...
    @staticmethod
    def parse(text: str, name: bytes) -> Scenario: ...
    def copy(self) -> Scenario: ...
    def set(self, key: str, value: str) -> None: ...
    def env(self, name: str, value: str) -> None: ...
    def predict(self, fidelity: str, seed: int | None, threads: int, force: bool,
                stop: Callable[[], bool] | None) -> Prediction: ...

class Topology:
    @staticmethod
    def load(file: bytes) -> Topology: ...
    @staticmethod
    def parse(text: str, name: bytes) -> Topology: ...
    def copy(self) -> Topology: ...
    def set(self, key: str, value: str) -> None: ...
    def show(self) -> Shown: ...
    def perftest(self, options: PerftestOptions, stop: Callable[[], bool] | None) -> Perftest: ...
    def copies(self, options: CopiesOptions, stop: Callable[[], bool] | None) -> Copies: ...
    def expect(self, options: ExpectOptions, stop: Callable[[], bool] | None) -> Expected: ...

class Log:
    @staticmethod
    def load(file: bytes) -> Log: ...
    @staticmethod
    def parse(text: str, name: bytes) -> Log: ...

class PerftestOptions:
    op: str
    memory: str
    post: str
    from_: str
    to: str
    from_nic: str
    to_nic: str
    bytes: list[int]
    iterations: int
    tx_depth: int
    qps: int
    cq_moderation: int
    rx_depth: int
    post_list: int
    bidirectional: bool
    all: bool
    gpu: str
    seed: int | None

class CopiesOptions:
    from_: str
    to: str
    by: str
    fidelity: str
    bidirectional: bool
    blocks: int
    bytes: list[int]
    all: bool
    gpu: str

class ExpectOptions:
    tool: str
    op: list[str]
    bytes: list[int]
    nodes: int
    memory: str
    qps: int
    tx_depth: int
    measured: Log | None
    as_: str
    set: list[tuple[str, str]]
    env: dict[str, str]
    gpu: str
    nccl_version: str
    launch: str
    seed: int | None
    threads: int

class ExplainOptions:
    healthy: Log | None
    machine: Topology | None
    evidence: list[bytes]
    as_: str
    set: list[tuple[str, str]]
    env: dict[str, str]
    gpu: str
    nccl_version: str
    launch: str
    seed: int | None
    threads: int

def expect(machine: list[bytes], options: ExpectOptions, stop: Callable[[], bool] | None) -> Expected: ...
def explain(slow: Log, options: ExplainOptions, stop: Callable[[], bool] | None) -> Explanation: ...
