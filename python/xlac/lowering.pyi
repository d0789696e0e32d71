from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ._core import Module

class Lowered(NamedTuple):
    module: Module
    parameters: list[str]
    results: list[str]
    updates: list[str]

def lower_graph(graphdef: Any, inputs: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), fetches: Iterable[str] = (), *,
                variables: Mapping[str, str | None] | Iterable[tuple[str, str | None]] = (), format: str = "auto") -> Lowered: ...
