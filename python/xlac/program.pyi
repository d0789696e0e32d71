import os
from typing import IO, Any, Protocol

from ._core import Module
from .builder import Builder

# What every function that takes a program takes. These names are for annotations only.
class Staged(Protocol):  # jax.stages.Lowered, jax.stages.Compiled, jax.export.Exported
    @property
    def in_tree(self) -> Any: ...
    @property
    def out_tree(self) -> Any: ...

class Mlir(Protocol):
    @property
    def operation(self) -> Any: ...

Flat = Module | Builder | str | bytes | bytearray | memoryview | os.PathLike[str] | IO[str] | IO[bytes] | Mlir
Program = Flat | Staged

def looks_like_a_path(text: str) -> bool: ...
def source(what: Program) -> Module | str | bytes: ...
