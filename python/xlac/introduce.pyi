from typing import Any, NamedTuple

class Port(NamedTuple):
    name: str
    type: str
    shape: Any
    dtype: Any
    sharding: str | None
    donated: bool
    alias: int | None
    @property
    def numpy_dtype(self) -> Any: ...
