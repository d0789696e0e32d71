from collections.abc import Mapping
from typing import Any

class Level:
    size: int | None
    bandwidth: float
    latency: float
    topology: str
    dims: int
    def __init__(self, size: int | None, bandwidth: float, latency: float, topology: str = "switch", dims: int = 1) -> None: ...
    def __hash__(self) -> int: ...

class Hardware:
    name: str
    matrix: dict[str, float]
    vector: float
    memory_bytes: float
    memory_bandwidth: float
    levels: tuple[Level, ...]
    step_seconds: float
    matrix_efficiency: float
    memory_efficiency: float
    transcendental_flops: float
    overlaps: bool
    cache_bytes: float
    cache_bandwidth: float
    at_once: int | None
    half_length: float
    call_seconds: float
    sources: tuple[str, ...]
    def __init__(self, name: str, matrix: dict[str, float], vector: float, memory_bytes: float, memory_bandwidth: float, levels: tuple[Level, ...],
                 step_seconds: float = ..., matrix_efficiency: float = ..., memory_efficiency: float = ..., transcendental_flops: float = ...,
                 overlaps: bool = True, cache_bytes: float = 0.0, cache_bandwidth: float = 0.0, at_once: int | None = None,
                 half_length: float = 0.0, call_seconds: float = 0.0, sources: tuple[str, ...] = ()) -> None: ...
    def matrix_flops(self, dtype: str) -> float: ...
    def __hash__(self) -> int: ...

TABLE: dict[str, Hardware]
def hardware(what: str | Mapping[str, Any] | Hardware) -> Hardware: ...
