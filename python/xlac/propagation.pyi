from collections.abc import Callable, Mapping
from typing import Any

from .program import Program
from ._core import Module
from .mesh import Mesh, Sharding
from .remedies import Remedy as Remedy
from .suspicions import Suspicion as Suspicion

class Step:
    to: str
    dim: int
    axis: str
    source: str
    op: str
    opcode: str
    line: int
    factor: str
    step: int
    level: int
    priority: int
    strategy: str
    place: str | None
    def __hash__(self) -> int: ...

class Conflict:
    op: str
    opcode: str
    line: int
    factor: str
    axis: str
    against: str
    value: str
    reason: str
    level: int
    priority: int
    place: str | None
    def __hash__(self) -> int: ...

class Reshard:
    name: str
    opcode: str
    line: int
    of: str
    bytes: int
    source: str | None
    before: str | None
    after: str | None
    col: int
    def __hash__(self) -> int: ...

class Explanation:
    value: str
    dim: int
    sharding: str | None
    steps: tuple[Step, ...]
    origins: tuple[tuple[str, str], ...]
    conflicts: tuple[Conflict, ...]
    def __hash__(self) -> int: ...

_Annotations = Mapping[str, Sharding | str | None]

class Trace:
    module: Module
    values: list[dict[str, Any]]
    steps: list[Step]
    conflicts: list[Conflict]
    def find(self, value: str) -> str: ...
    def explain(self, value: str, dim: int) -> Explanation: ...
    def sharding(self, value: str) -> Sharding | None: ...
    def shape(self, value: str) -> tuple[int, ...] | None: ...
    def picture(self, value: str) -> str: ...
    @property
    def partitioned(self) -> Module: ...
    @property
    def reshards(self) -> list[Reshard]: ...
    @property
    def meshes(self) -> dict[str, Mesh]: ...
    @property
    def results(self) -> list[str | None]: ...
    def what_if(self, constraint: _Annotations | Callable[[str], str]) -> tuple[list[Reshard], list[Reshard]]: ...
    @property
    def remedies(self) -> list[Remedy]: ...
    @property
    def suspicions(self) -> list[Suspicion]: ...
    def remedy(self, reshard: Reshard) -> Remedy | None: ...

class Propagation:
    module: Module
    trace: Trace
    def to_svg(self) -> str: ...
    def _repr_html_(self) -> str: ...
    def __hash__(self) -> int: ...

def meshes(module: Module) -> dict[str, Mesh]: ...
def shardings(module: Module) -> dict[str, Sharding]: ...
def annotate(module: Module, annotations: _Annotations) -> Module: ...
def imported(module: Program) -> Module: ...
def propagate(module: Program) -> Propagation: ...
