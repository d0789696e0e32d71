import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ._core import Module
from .hardware import Hardware
from .mesh import Mesh
from .program import Program
from .report import Memory

class Event(NamedTuple):
    op: str
    opcode: str
    computation: str
    kind: str
    lane: str
    begin: float
    seconds: float
    times: int
    bound: str
    why: str

class Blame:
    op: str
    opcode: str
    source: str
    seconds: float
    exposed: float
    bound: str
    why: str
    help: str
    @property
    def weight(self) -> float: ...
    def __hash__(self) -> int: ...

class Simulation:
    module: Module
    local: Module
    mesh: Mesh | None
    devices: int
    hardware: Hardware
    seconds: float
    compute: float
    collective: float
    exposed: float
    argument_bytes: int
    result_bytes: int
    constant_bytes: int
    temporary_bytes: int
    memory: Memory
    arguments: list[dict[str, Any]]
    results: list[dict[str, Any]]
    gathers: list[dict[str, Any]]
    whole: str | None
    unknown_loops: tuple[str, ...]
    @property
    def peak_bytes(self) -> int: ...
    @property
    def fits(self) -> bool: ...
    @property
    def overlapped(self) -> float: ...
    @property
    def events(self) -> list[Event]: ...
    @property
    def over_time(self) -> list[tuple[float, int]]: ...
    @property
    def collectives(self) -> list[tuple[str, str, str, int, int, float, str]]: ...
    @property
    def blame(self) -> list[Blame]: ...
    @property
    def data(self) -> dict[str, Any]: ...
    def rows(self, limit: int = 12) -> list[tuple[str, ...]]: ...
    def summary(self) -> list[str]: ...
    def svg(self, width: int = 900) -> str: ...
    def to_perfetto(self, path: str | os.PathLike[str] | None = None) -> str: ...
    def _repr_html_(self) -> str: ...

def simulate(module: Program, mesh: Mesh | Mapping[str, int] | Iterable[tuple[str, int]] | str | None = None,
             hardware: str | Mapping[str, Any] | Hardware = "h100x8-ib", *, overlap: bool | None = None, donate: Sequence[int] = (),
             trips: Mapping[str, int] | None = None) -> Simulation: ...
