from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._core import Module
from .hardware import Hardware
from .mesh import Mesh, Sharding
from .program import Program
from .simulation import Simulation

class Move:
    group: str
    arguments: tuple[str, ...]
    dim: int
    axis: str
    before: float
    after: float
    peak_bytes: int
    def __hash__(self) -> int: ...

class Alternative:
    mesh: Mesh
    seconds: float
    peak_bytes: int
    fits: bool
    moves: tuple[Move, ...]
    simulation: Simulation
    def __hash__(self) -> int: ...

class Plan:
    mesh: Mesh
    moves: tuple[Move, ...]
    alternatives: tuple[Alternative, ...]
    module: Module
    simulation: Simulation
    as_it_is: Simulation | None
    memory_limit: float
    evaluations: int
    @property
    def specs(self) -> dict[str, str]: ...
    @property
    def annotations(self) -> dict[str, Sharding]: ...
    @property
    def code(self) -> str: ...
    @property
    def data(self) -> dict[str, Any]: ...
    def rows(self) -> list[tuple[str, ...]]: ...
    def summary(self) -> list[str]: ...
    def _repr_html_(self) -> str: ...

def plan(module: Program, devices: int, memory: float | str | None = None, hardware: str | Mapping[str, Any] | Hardware = "h100x8-ib", *,
         evaluations: int = 400, donate: Sequence[int] = (), trips: Mapping[str, int] | None = None,
         progress: Callable[[int, int], object] | None = None) -> Plan: ...
