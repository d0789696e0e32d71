from collections.abc import Callable

from .program import Program
from ._core import Module

def differs(a: str = "interpreter", b: str = "compiled", rtol: float = 1e-5, atol: float = 1e-6, seed: int = 0) -> Callable[[Module], bool]: ...
def reduce(program: Program, fails: Callable[[Module], object], *, limit: int = 2000,
           progress: Callable[[int, int], object] | None = None) -> Module: ...
