from collections.abc import Callable, Iterable
from typing import Any

from .program import Program

WAYS: dict[str, Callable[..., Callable[[], Any]]]

class Measurement(dict[str, dict[str, Any]]): ...

def measure(program: Program, *arguments: Any, ways: Iterable[str] = ("compiled",), repeat: int = 20, seconds: float | None = None,
            seed: int = 0, **options: Any) -> Measurement: ...
