from typing import Any

from .program import Program

class Difference:
    op: str
    opcode: str
    computation: str
    line: int
    place: tuple[int, ...]
    values: tuple[Any, Any]
    largest: float
    count: int
    size: int
    inputs: list[str]
    where: list[str]
    note: str
    ways: tuple[str, str]

def diff(program: Program, *arrays: Any, a: str | dict[str, Any] = "interpreter", b: str | dict[str, Any] = "compiled",
         rtol: float = 1e-5, atol: float = 1e-6, seed: int = 0) -> Difference | None: ...
