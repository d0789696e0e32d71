from typing import Any

class Remedy:
    value: str
    line: int
    was: str | None
    sharding: str | None
    gone: tuple[Any, ...]
    new: tuple[Any, ...]
    saves: int
    holds: int
    def __hash__(self) -> int: ...
