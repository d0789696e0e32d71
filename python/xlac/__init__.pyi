import os
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, SupportsIndex, overload

from . import benchmark as benchmark
from . import cache as cache
from . import jax as jax
from . import kernels as kernels
from . import reduction as reduction
from . import distributed as distributed
from . import sharding as sharding
from . import testing as testing
from ._core import Buffer as Buffer
from ._core import Computation as Computation
from ._core import Donation as Donation
from ._core import Executable as Executable
from ._core import Instruction as Instruction
from ._core import Module as Module
from ._core import asarray as asarray
from ._core import donate as donate
from ._core import from_dlpack as from_dlpack
from ._core import reset_stats as reset_stats
from ._core import stats as stats
from .builder import Builder as Builder
from .called import TreeExecutable as TreeExecutable
from .comparison import Changes
from .clusters import Clusters as Clusters
from .clusters import cluster as cluster
from .codes import Code as Code
from .difference import Difference
from .explorer import explore as explore
from .errors import ArgumentError as ArgumentError
from .errors import DeviceError as DeviceError
from .errors import DonationError as DonationError
from .errors import DonationWarning as DonationWarning
from .errors import Error as Error
from .errors import OutOfMemoryError as OutOfMemoryError
from .errors import ParseError as ParseError
from .errors import ShardingError as ShardingError
from .errors import VerifyError as VerifyError
from .future import Future as Future
from .lowering import lower_graph as lower_graph
from .sharded import ShardedBuffer as ShardedBuffer
from .mesh import Mesh
from .opcode import Opcode as Opcode
from .program import Flat, Program, Staged
from .reduction import reduce as reduce

__version__: str
FORMATS: tuple[str, ...]
_Lanes = SupportsIndex | dict[str, int] | None
_Blas = str | os.PathLike[str] | bool | None

def parse(src: Program, *, format: str = "auto", allow_unregistered: bool = False,
          strict: bool = False, documented_forms: bool = ...) -> Module: ...
def interpret(module: Program, *arrays: Any, seed: int = 0, replica: int = 0, partition: int = 0,
              progress: Callable[[float], object] | None = None,
              probes: list[tuple[str, Any]] | str | os.PathLike[str] | None = None,
              async_order: str | int = "eager", **named: Any) -> Any: ...
@overload
def compile(module: Staged, *, device: str | Device = "cpu", threads: SupportsIndex | None = None, blas: _Blas = None,
            fuse: bool = True, passes: bool = True, donate: int | str | Iterable[int | str] = (),
            numerics: Literal["strict", "fast"] = "strict", lanes: _Lanes = None, async_work: int = 0,
            results: Literal["numpy", "buffer", "sharded"] = "numpy", devices: SupportsIndex | Mesh | list[str] | list[Device] | None = None) -> TreeExecutable: ...
@overload
def compile(module: Flat, *, device: str | Device = "cpu", threads: SupportsIndex | None = None, blas: _Blas = None,
            fuse: bool = True, passes: bool = True, donate: int | str | Iterable[int | str] = (),
            numerics: Literal["strict", "fast"] = "strict", lanes: _Lanes = None, async_work: int = 0,
            results: Literal["numpy", "buffer", "sharded"] = "numpy", devices: SupportsIndex | Mesh | list[str] | list[Device] | None = None) -> Executable: ...
def compile_stage(module: Program, stage: str, *, device: str | Device = "cpu", devices: SupportsIndex | Mesh | list[str] | list[Device] | None = None,
                  threads: SupportsIndex | None = None,
                  blas: _Blas = None, fuse: bool = True, passes: bool = True, donate: int | str | Iterable[int | str] = (),
                  numerics: Literal["strict", "fast"] = "strict", lanes: _Lanes = None, async_work: int = 0) -> str: ...
class Device(NamedTuple):
    name: str
    kind: str
    ordinal: int
    units: int
    memory: str
    memory_bytes: int
    live_bytes: int
    peak_bytes: int
    host_visible: bool
def devices() -> list[Device]: ...
def load(source: bytes | bytearray | memoryview | str | os.PathLike[str], *, device: str | Device = "cpu",
         threads: SupportsIndex | None = None, blas: _Blas = None, lanes: _Lanes = None, async_work: int = 0,
         results: Literal["numpy", "buffer"] = "numpy") -> Executable: ...
def diff(program: Program, *arrays: Any, a: str | dict[str, Any] = "interpreter", b: str | dict[str, Any] = "compiled",
         rtol: float = 1e-5, atol: float = 1e-6, seed: int = 0) -> Difference | None: ...
def changes(old: Program, new: Program) -> Changes: ...
def verify(program: Program, *, xla_compat: bool = False) -> Module: ...
def trim(keep: int = 0) -> int: ...
def memory_stats() -> dict[str, int]: ...
def set_memory_limit(bytes: int) -> None: ...
def run_parallel(module: Program, args: Iterable[Iterable[Any]], *, replicas: int | None = None, partitions: int = 1,
                 programs: Iterable[Any] | None = None, infeed: Iterable[Iterable[Any]] | None = None,
                 outfeed: list[tuple[Any, ...]] | None = None, seed: int = 0) -> list[Any]: ...
def passes() -> dict[str, dict[str, Any]]: ...
def register_custom_call(target: str, function: Callable[..., Any] | int | Any | None, *, user: int = 0) -> None: ...
