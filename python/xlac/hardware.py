"""Machines for rehearsals: what a device computes and moves a second, and the network between devices, as data with its sources."""
import dataclasses
import math
import numbers

from .codes import Code
from .errors import ArgumentError

TOPOLOGIES = ("switch", "torus")


@dataclasses.dataclass(frozen=True)
class Level:
    """A part of the network, innermost first: units of `size` devices (None: all there are) whose members each send `bandwidth` bytes a second to
    one another, in one direction, and wait `latency` seconds for a message. In a torus of `dims` dimensions bandwidth is that of one link; each
    device has two in each dimension."""
    size: int | None
    bandwidth: float
    latency: float
    topology: str = "switch"
    dims: int = 1


@dataclasses.dataclass(frozen=True)
class Hardware:
    """`matrix` has the operations a second of matrix products by element type ("default" for all others), `vector` those of everything else.
    Of peaks only a part is reached: `matrix_efficiency`, `memory_efficiency`. A step takes `step_seconds` at the least. `overlaps`: collectives
    go on beside other work. Of a memory that is faster for what fits, `cache_bytes` and `cache_bandwidth`. `at_once`: so many devices run at a time
    (None: all of them), as where threads of one process are the devices. `half_length`: of a product of m rows, n columns and k terms each of the
    three costs as much as so many more (Hockney's half-performance length); `call_seconds`: what it takes to begin a program on one device."""
    name: str
    matrix: dict
    vector: float
    memory_bytes: float
    memory_bandwidth: float
    levels: tuple
    step_seconds: float = 2e-6
    matrix_efficiency: float = 0.7
    memory_efficiency: float = 0.85
    transcendental_flops: float = 8.0
    overlaps: bool = True
    cache_bytes: float = 0.0
    cache_bandwidth: float = 0.0
    at_once: int | None = None
    half_length: float = 0.0
    call_seconds: float = 0.0
    sources: tuple = ()

    def __hash__(self):
        return hash((self.name, self.vector, self.levels))

    def matrix_flops(self, dtype):
        return self.matrix.get(dtype, self.matrix["default"]) * self.matrix_efficiency

    def __str__(self):
        peak = max(self.matrix.values())
        return (f"{self.name}: {peak / 1e12:.3g} TFLOP/s, {self.memory_bytes / 1e9:.3g} GB at {self.memory_bandwidth / 1e9:.4g} GB/s; "
                + "; ".join(f"{level.topology} of {level.size or 'all'} at {level.bandwidth / 1e9:.3g} GB/s, {level.latency * 1e6:.3g} us"
                            for level in self.levels))


def _gpu(name, matrix, vector, memory, bandwidth, link, fabric, sources):
    """Eight GPUs a node behind switches; one network port for each GPU between nodes."""
    return Hardware(name, matrix, vector, memory, bandwidth, (Level(8, link, 3e-6), Level(None, fabric, 6e-6)), step_seconds=3e-6, sources=sources)


def _tpu(name, bf16, memory, bandwidth, link, dims, pod, between, sources):
    """A torus of chips; f32 products are rounded to bf16, as XLA's default precision does on TPUs."""
    return Hardware(name, {"s8": 2 * bf16 if name != "tpu-v4" else bf16, "default": bf16}, bf16 / 50, memory, bandwidth,
                    (Level(pod, link, 1e-6, "torus", dims), Level(None, between, 20e-6)), step_seconds=1e-6, sources=sources)


# Peaks are the makers' numbers for dense operands. Latencies, efficiencies and the time of a step are assumptions, which
# dict(base=..., ...) changes.
TABLE = {h.name: h for h in (
    _gpu("h100x8-ib", {"bf16": 989.4e12, "f16": 989.4e12, "f8": 1978.9e12, "s8": 1978.9e12, "f32": 494.7e12, "f64": 66.9e12, "default": 66.9e12},
         66.9e12, 80e9, 3.35e12, 450e9, 50e9,
         ("NVIDIA H100 Tensor Core GPU datasheet: SXM, HBM3 3.35 TB/s, 989 TFLOP/s bf16 and 494 TFLOP/s TF32 without sparsity",
          "NVIDIA H100 whitepaper: NVLink 4, 900 GB/s both directions together",
          "NVIDIA DGX H100 datasheet: one InfiniBand NDR port of 400 Gb/s a GPU")),
    _gpu("a100x8-ib", {"bf16": 312e12, "f16": 312e12, "s8": 624e12, "f32": 156e12, "f64": 19.5e12, "default": 19.5e12},
         19.5e12, 80e9, 2.039e12, 300e9, 25e9,
         ("NVIDIA A100 80GB datasheet: SXM, 2,039 GB/s, 312 TFLOP/s bf16 and 156 TFLOP/s TF32 without sparsity; NVLink 3, 600 GB/s both directions "
          "together", "NVIDIA DGX A100 datasheet: one InfiniBand HDR port of 200 Gb/s a GPU")),
    _tpu("tpu-v4", 275e12, 32 * 2**30, 1.228e12, 50e9, 3, 4096, 6.25e9,
         ("Jouppi et al., TPU v4: an optically reconfigurable supercomputer for machine learning, ISCA 2023: 275 TFLOP/s, 32 GiB at 1,200 GB/s, "
          "6 links of 50 GB/s, torus of 3 dimensions, 4,096 chips",)),
    _tpu("tpu-v5e", 197e12, 16e9, 819e9, 50e9, 2, 256, 3.125e9,
         ("Google Cloud documentation, TPU v5e: 197 TFLOP/s, 16 GB at 819 GB/s, 1,600 Gb/s between chips (4 links), torus of 2 dimensions, "
          "256 chips",)),
    _tpu("tpu-v5p", 459e12, 95e9, 2.765e12, 100e9, 3, 8960, 6.25e9,
         ("Google Cloud documentation, TPU v5p: 459 TFLOP/s, 95 GB at 2,765 GB/s, 4,800 Gb/s between chips (6 links), torus of 3 dimensions, "
          "8,960 chips",)),
    Hardware("cpu-ethernet", {"default": 60e9}, 8e9, 32e9, 9e9, (Level(None, 1.25e9, 50e-6),), step_seconds=0.4e-6, matrix_efficiency=1.0,
             memory_efficiency=1.0, overlaps=False, cache_bytes=1e6, cache_bandwidth=30e9,
             sources=("measure_hardware() on one core of a server with AVX-512", "IEEE 802.3ae: 10 Gb/s; a latency of 50 us is that of sockets")),
)}

_NUMBERS = {f.name for f in dataclasses.fields(Hardware)} - {"name", "matrix", "levels", "overlaps", "at_once", "sources"}
_POSITIVE = {"vector", "memory_bytes", "memory_bandwidth", "matrix_efficiency", "memory_efficiency"}


def _bad(message, hint):
    return ArgumentError(message, Code.BAD_ARGUMENT, hint=hint)


def _number(key, value, least=0.0, above=False):
    ok = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value) and (value > least if above else value >= least)
    if not ok:
        raise _bad(f"hardware: {key} is {value!r}; expected a number {'above' if above else 'of at least'} {least:g}",
                   "units are bytes, seconds, and both a second")
    return float(value)


def _level(i, given):
    if isinstance(given, Level):
        given = dataclasses.asdict(given)
    fields = {f.name for f in dataclasses.fields(Level)}
    unknown = sorted(set(given) - fields) if isinstance(given, dict) else ["?"]
    if unknown or not {"size", "bandwidth", "latency"} <= set(given):
        raise _bad(f"hardware: level {i} is {given!r}",
                   "such as dict(size=8, bandwidth=450e9, latency=3e-6); the last one has size=None; also topology, dims")
    size, dims, topology = given["size"], given.get("dims", 1), given.get("topology", "switch")
    sized = size is None or (isinstance(size, int) and size >= 1)
    if topology not in TOPOLOGIES or not sized or not isinstance(dims, int) or not 1 <= dims <= 6:
        raise _bad(f"hardware: level {i} has size {size!r}, topology {topology!r}, dims {dims!r}",
                   f"topologies are {', '.join(TOPOLOGIES)}; dims are 1 to 6")
    bandwidth = _number(f"bandwidth of level {i}", given["bandwidth"], above=True)
    return Level(size, bandwidth, _number(f"latency of level {i}", given["latency"]), topology, dims)


def _levels(given):
    levels = tuple(_level(i, one) for i, one in enumerate(given))
    sizes = [level.size for level in levels]
    if not levels or sizes[-1] is not None or None in sizes[:-1] or any(b % a for a, b in zip(sizes, sizes[1:-1])):
        raise _bad(f"hardware: levels have the sizes {sizes}", "from the inside out, each a multiple of the one before, and None last: all devices")
    return levels


def hardware(what):
    """A Hardware: one, the name of one in the table, or a dict of its fields. A dict with "base" says only what differs from that one, and one
    without differs from "cpu-ethernet". Raises ArgumentError."""
    if isinstance(what, Hardware):
        return what
    if isinstance(what, str):
        if what in TABLE:
            return TABLE[what]
        raise _bad(f"there is no hardware {what!r}",
                   f"known are {', '.join(TABLE)}; or give a dict, such as dict(base='h100x8-ib', memory_bytes=94e9)")
    if not isinstance(what, dict):
        raise TypeError(f"hardware is a name, a dict or a Hardware, not {type(what).__name__}")
    given = dict(what)
    base = hardware(given.pop("base", "cpu-ethernet"))
    unknown = sorted(set(given) - {f.name for f in dataclasses.fields(Hardware)})
    if unknown:
        raise _bad(f"hardware has no {', '.join(map(repr, unknown))}",
                   f"fields are {', '.join(f.name for f in dataclasses.fields(Hardware))}, and base")
    given.setdefault("name", f"{base.name}, changed")
    for key in _NUMBERS & set(given):
        given[key] = _number(key, given[key], above=key in _POSITIVE)
    if "levels" in given:
        given["levels"] = _levels(given["levels"])
    if "matrix" in given:
        table = given["matrix"] if isinstance(given["matrix"], dict) else {"default": given["matrix"]}
        given["matrix"] = {"default": base.matrix["default"], **{key: _number(f"matrix[{key!r}]", value, above=True) for key, value in table.items()}}
    if given.get("at_once") is not None:
        given["at_once"] = int(_number("at_once", given["at_once"], 1))
    return dataclasses.replace(base, **given)
