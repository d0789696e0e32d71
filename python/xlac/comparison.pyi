from collections.abc import Iterator

from ._core import Module
from .program import Program

class Op:
    name: str
    opcode: str
    type: str
    attributes: str
    op_name: str
    source: str
    operands: list[Op]
    def row(self) -> tuple[str, str, str, str]: ...

class Changes:
    old: Module
    new: Module
    removed: list[Op]
    added: list[Op]
    rewired: list[tuple[Op, Op]]
    signature: list[str]
    ops: tuple[int, int]
    def __init__(self, old: Module, new: Module) -> None: ...
    def __bool__(self) -> bool: ...
    @property
    def costs(self) -> dict[str, tuple[int, int]]: ...
    def rows(self) -> Iterator[tuple[str, str, str, str, str]]: ...
    def summary(self) -> str: ...
    def cost_text(self) -> str: ...
    def _repr_html_(self) -> str: ...

def compare(old: Program, new: Program) -> Changes: ...
