import os
from typing import Any

class Pair:
    op: str
    done_op: str
    lane: str
    computation: str
    start: float
    begin: float
    end: float
    done: float
    released: float
    ready: float
    busy: float
    at_once: bool
    @property
    def exposed(self) -> float: ...
    @property
    def helped(self) -> bool: ...
    @property
    def hidden(self) -> float: ...
    @property
    def earlier(self) -> float: ...
    @property
    def possible(self) -> bool: ...
    def advice(self) -> str: ...

class Event:
    op: str
    by: str
    computation: str
    kind: str
    program: int
    step: int
    depth: int
    lane: int
    serial: int
    begin: float
    end: float
    task: bool

class Timeline:
    result: Any
    seconds: float
    cut: bool
    lanes: list[str]
    events: list[Event]
    pairs: list[Pair]
    @property
    def exposed(self) -> float: ...
    @property
    def hidden(self) -> float: ...
    def rows(self) -> list[tuple[Any, ...]]: ...
    def chrome_trace(self) -> str: ...
    def svg(self, width: int = 900) -> str: ...
    def save(self, path: str | os.PathLike[str]) -> None: ...
    def _repr_svg_(self) -> str: ...
    def _repr_html_(self) -> str: ...

def timeline(executable: Any, *args: Any, **kwargs: Any) -> Timeline: ...
