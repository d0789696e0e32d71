"""xlac reads, verifies, edits, interprets and prints XLA programs.

    module = xlac.parse(open("step.hlo").read())
    module.verify()
    result = xlac.interpret(module, x, y)
"""
import collections as _collections
import functools as _functools
import operator as _operator
import os as _os
import sys as _sys
import warnings as _warnings

from . import _core
from ._core import (Buffer, Computation, Donation, Executable, Instruction, Module, asarray, donate, from_dlpack, reset_stats,
                    stats)
from .clusters import Clusters, cluster
from .codes import Code
from .errors import ArgumentError, DeviceError, DonationError, DonationWarning, Error, OutOfMemoryError, ParseError, ShardingError, VerifyError

__version__ = _core.version()


def _register_pickling():
    """By copyreg, so that pickle, copy and multiprocessing know; the reducers are imported when the first one is used."""
    import copyreg

    def later(name):
        def reduce(thing):
            from . import pickling

            return getattr(pickling, name)(thing)
        return reduce

    for kind in (Module, Computation, Instruction, Executable, Buffer):
        copyreg.pickle(kind, later(f"reduce_{kind.__name__.lower()}"))


_register_pickling()

__all__ = ["ArgumentError", "Buffer", "Builder", "Clusters", "Code", "Computation", "Device", "DeviceError", "Donation", "DonationError",
           "DonationWarning", "Error", "Executable", "Future", "Instruction", "Module", "Opcode", "OutOfMemoryError", "ParseError", "ShardedBuffer",
           "ShardingError", "TreeExecutable", "VerifyError", "asarray", "changes", "cluster", "compile", "compile_stage", "devices", "diff",
           "donate", "explore", "from_dlpack", "interpret", "load", "lower_graph", "memory_stats", "parse", "passes", "reduce",
           "register_custom_call", "reset_stats", "run_parallel", "set_memory_limit", "stats", "trim", "verify"]

_MOST_LANES = 1 << 16  # the core's own limit is lower, and says so

FORMATS = ("auto", "hlo", "hlo-proto", "mlir", "mlir-bytecode")


def parse(src, *, format="auto", allow_unregistered=False, strict=False, documented_forms=None):
    """Reads a program.

    Parameters
    ----------
    src : str, bytes, path-like, file, Builder, Module, or what JAX gives
        The text or bytes of a program, a path or an open file with them; `jax.jit(f).lower(...)`, jax.export's Exported, an MLIR
        module. A Module is given back as it is. Every function that takes a program takes these, too.
    format : {"auto", "hlo", "hlo-proto", "mlir", "mlir-bytecode"}
        XLA's text; a serialized HloModuleProto, as Module.to_bytes writes; StableHLO and CHLO as JAX prints them; a StableHLO
        portable artifact. "auto" recognises them.
    allow_unregistered : bool
        Keep MLIR ops of dialects that xlac does not know.
    strict : bool
        Refuse what XLA 0.10.2 refuses. Otherwise HLO is read as XLA's documentation shows it, and as newer XLA has it: the short
        input_output_alias, flat async shapes, atan, shuffle and collective-reduce.
    documented_forms : bool, optional
        Deprecated: it is `not strict`.

    Returns
    -------
    Module
        Not verified yet: call its verify().

    Raises
    ------
    ParseError
        With the line and column of what is wrong.
    """
    if isinstance(src, Module):
        return src
    if not _is_plainly_text(src):
        from .program import source

        src = source(src)
        if isinstance(src, Module):
            return src
    if format not in FORMATS:
        raise ArgumentError(f"format {format!r} is unknown; there are {', '.join(FORMATS)}", Code.BAD_ARGUMENT)
    if documented_forms is not None:
        _warnings.warn("documented_forms is deprecated: documented forms are read unless strict=True", DeprecationWarning, stacklevel=2)
        strict = strict or not documented_forms
    try:
        return _core.parse(src, format=format, allow_unregistered=allow_unregistered, strict=strict)
    except ParseError as error:
        from .program import with_hint

        raise with_hint(error, src)


def _is_plainly_text(src):
    """Whether it is what the core reads, as it is: bytes, or a text that is not the name of a file; without a mark of its encoding."""
    if isinstance(src, bytes):
        return src[:1] != b"\xef"
    return isinstance(src, str) and "\n" in src and src[0] != "\ufeff"


def interpret(module, *arrays, seed=0, replica=0, partition=0, progress=None, probes=None, async_order="eager", **named):
    """Runs the entry computation of a program in the reference interpreter.

    Parameters
    ----------
    module : program
        A Module, or what `parse` takes for one.
    *arrays : array-like, or tuples of them
        The arguments, taken without a copy where they are C-contiguous; those of a JAX function (see `compile`) are the function's own.
    seed : int
        Of `rng` and its relatives.
    replica, partition : int
        What replica-id and partition-id give.
    progress : callable, optional
        Called with the seconds run so far, about twenty times a second. Ctrl-C stops the run.
    probes : list or path-like, optional
        For programs with `interpreter.probe`: a list, which is extended by (probe_id, array) for each time that one was reached, also when
        the run fails; or a directory, into which they go as probe1.npy, probe2.npy, ... with an index.csv of lines probe_id,type,path.
    async_order : {"eager", "lazy"} or int
        When the computations of async starts run, all on this thread: at their starts, at their dones, or at steps between that are drawn
        from the number. Results are the same, but for random ops.
    **named
        Arguments by name, of JAX functions.

    Returns
    -------
    numpy.ndarray, or a tuple of results
        Of the types that the program declares.

    Raises
    ------
    ArgumentError
        An argument does not fit its parameter.
    Error
        The run fails; the message names the op.
    """
    options = {"seed": seed, "replica": replica, "partition": partition, "progress": progress, "blas": _blas_path(None),
               "async_order": async_order}
    module, calling = _taken(module)
    if calling is not None:
        arrays, options["calling"] = calling.flat(arrays, named), calling
    elif named:
        raise ArgumentError(f"interpret has no option {next(iter(named))!r}", Code.BAD_ARGUMENT, hint="arguments by name are for functions of JAX")
    return _interpret(module, arrays, probes, **options)


def _taken(program):
    """(the Module, how it is called as the JAX function it was lowered from, or None)"""
    if isinstance(program, (Module, str, bytes)):
        return parse(program), None
    from .staged import calling_of, is_staged, lowered

    program = lowered(program)
    module = parse(program)
    return module, calling_of(program, len(module.entry.parameters)) if is_staged(program) else None


def _interpret(module, arrays, probes, calling=None, **options):
    if calling is not None:
        return calling.tree(_interpret(module, arrays, probes, **options))
    if probes is None or isinstance(probes, list):
        return _core.interpret(module, *arrays, probes=probes, **options)
    from .probes import save
    seen = []
    try:
        return _core.interpret(module, *arrays, probes=seen, **options)
    finally:
        save(probes, seen)


def _blas_path(blas):
    """The library that `blas=` of compile and others means: None or True is that of the package scipy-openblas32, or else the core's
    usual names; False is none."""
    if blas is None or blas is True:
        return _openblas()
    return _os.fspath(blas) if blas else None


@_functools.cache
def _openblas():
    """The path of the OpenBLAS in the package scipy-openblas32, or None. Importing that package takes some 50 ms, for its version, and
    loads the library for the whole process; its place is known without. The core opens it when a program needs it."""
    for folder in _package_folders("scipy_openblas32"):
        found = _library_in(_os.path.join(folder, "lib"))
        if found:
            return found
    return _openblas_by_import()


def _package_folders(name):
    """Where a package is, without importing it and without importlib.util, which takes longer than compiling a program."""
    for finder in _sys.meta_path:
        try:
            spec = finder.find_spec(name, None)
        except (AttributeError, ImportError):
            continue
        if spec is not None:
            return list(spec.submodule_search_locations or ())
    return []


def _library_in(folder):
    try:
        names = sorted(name for name in _os.listdir(folder) if name.startswith("libscipy_openblas"))
    except OSError:
        return None
    return _os.path.join(folder, names[0]) if names else None


def _openblas_by_import():
    """As the package itself says, for installations of another kind."""
    try:
        import scipy_openblas32

        found = _os.path.join(scipy_openblas32.get_lib_dir(), scipy_openblas32.get_library(fullname=True))
    except Exception:  # whatever is wrong with the package, it gives no library then
        return None
    return found if _os.path.exists(found) else None


def compile(module, *, device="cpu", devices=None, threads=None, blas=None, fuse=True, passes=True, donate=(), numerics="strict", lanes=None,
            async_work=0, results="numpy"):
    """Compiles a program for a device.

    Parameters
    ----------
    module : program
        A Module, or what `parse` takes for one.
    device : str or Device
        "cpu" (this machine's CPUs), "cpu:1" (a second context on them, which shares no memory and no threads with the first), "interp" (the
        reference interpreter, which runs the program as it is), "cuda", "cuda:1", ... (GPUs, docs/cuda.md), or one of `devices()`.
    devices : int, Mesh, or list of str, optional
        Partition the program by its shardings (of sdy, mhlo.sharding, or what JAX writes) and run it on so many devices at once, each with its
        shards, in this process, or in all that `xlac.distributed.init` has connected; as many as its mesh has: a number, a
        `xlac.sharding.Mesh`, or a list such as ["cpu:1"] * 8, or of GPUs, ["cuda:0", "cuda:1"]. With a number, device="cuda" is all GPUs in
        turn, "cuda:1" that one. Arguments and results are whole arrays, or ShardedBuffers.
        `explain("sharding")` says what moves between devices, and what each computes whole.
    threads : int, optional
        The most a call may use. None: as many CPUs as the process has; 1: no thread but the caller's. Results are the same for any number.
    blas : path-like or bool, optional
        The path of an OpenBLAS. None: that of the package scipy-openblas32, else the system's; False: none.
    fuse, passes : bool
        Switch off parts of the compiler, to find out which one to blame.
    donate : int, "require", or an iterable of them
        Parameters whose arrays may be donated, beside those that the module itself aliases: with `exe(x, out=x)` the result is computed over x
        where the program allows it (Executable.donations says how). Without out= arguments are never changed. "require" makes it a
        DonationError when a result is not computed over an argument that may be donated, here and in every call; `explain("donation")`
        says why.
    numerics : {"strict", "fast"}
        "strict": elementwise work has the interpreter's bits. "fast": operations may be contracted and reassociated, elementary functions are
        off by some ulp, and narrow floats are not rounded between the ops of a kernel; NaN and infinities stay (docs/numerics.md).
    lanes : int or dict, optional
        The threads of async operations: {"copy": 1} gives those whose execution thread is named "copy" a thread of their own, beside the one
        that all others share ("" in the dict); a number is that of lanes that all share; 0 threads leave the work to whoever waits for it.
    async_work : int
        Async operations that go through fewer elements (0: some thousands) are run where they start; devices with less to do between their
        collectives are run in turns on the caller's thread.
    results : {"numpy", "buffer", "sharded"}
        Arrays of NumPy, or Buffers: of every element type, to be given to PyTorch or JAX without a copy, and away (`donate`). With `devices`,
        "sharded" is for ShardedBuffers: a Buffer a device, which the next call takes as stored.

    Returns
    -------
    Executable
        To be called with arrays, like `interpret`. Of `jax.jit(f).lower(...)` or an Exported a TreeExecutable, which takes and returns what the
        function f does.

    Raises
    ------
    ParseError, VerifyError
        The program is malformed, or breaks a rule.
    ArgumentError
        An option is of another kind than it must be.
    DeviceError
        The device, its driver or one of its libraries is missing.

    Examples
    --------
    >>> exe = xlac.compile(jax.jit(step).lower(params, x))
    >>> new, loss = exe(params, x)
    """
    module, calling = _taken(module)
    number, device = _devices(devices, device)
    executable = _core.compile(module, fuse=fuse, passes=passes, numerics=numerics, devices=number, **_donated(donate),
                               **_run_options(threads, blas, lanes, async_work, device), **_among_processes())
    if number and "xlac.distributed" in _sys.modules:
        _sys.modules["xlac.distributed"].join(executable, module, (number, fuse, passes, donate, numerics))
    _log_compiled(module, executable)
    if came := executable._cache:
        from .cache import note

        note(came, module.name)
    return _given_back(executable, calling, results)


def _given_back(executable, calling, results):
    """As compile and load give it: with its kind of results, and as a function of JAX where it was one."""
    if results not in ("numpy", "buffer", "sharded"):
        raise ArgumentError(f"results must be \"numpy\" or \"buffer\", or \"sharded\" with devices=, found {results!r}", Code.BAD_ARGUMENT)
    if results == "sharded" and not executable._shards()[0]:
        raise ArgumentError("the program is for one device: its results are not sharded", Code.BAD_ARGUMENT, hint="compile it with devices=")
    executable._as_buffers, executable._as_shards = results == "buffer", results == "sharded"
    if calling is None:
        return executable
    from .called import TreeExecutable

    return TreeExecutable(executable, calling)


def _log_compiled(module, executable):
    """To the logger named xlac, if anybody has imported logging: who has not can't have asked for it."""
    logging = _sys.modules.get("logging")
    if logging is None or not (logger := logging.getLogger("xlac")).isEnabledFor(logging.DEBUG):
        return
    steps, seconds = executable.steps, executable._stages
    logger.debug("compiled %s for %s in %.3f ms: %d steps, %d of them kernels", module.name, executable.device, 1e3 * sum(seconds.values()),
                 steps["all"], steps["kernels"])
    if steps["why_interpreted"]:
        logger.info("the interpreter runs %s, since %s", module.name, steps["why_interpreted"])


def compile_stage(module, stage, *, device="cpu", devices=None, threads=None, blas=None, fuse=True, passes=True, donate=(), numerics="strict",
                  lanes=None, async_work=0):
    """What a stage of `compile` leaves, as text.

    Parameters
    ----------
    module : program
        A Module, or what `parse` takes for one.
    stage : str
        "translated", "prepared" and "optimised" are the program as HLO; "fused" says which ops are one kernel and why; "kernels" is their text,
        "programs" the scalar programs of called computations, "assembly" the machine code of kernels, "plan" the steps, "executable" what the
        device runs; "cache-key" is what the cache on disk knows the program by.
    device, devices, threads, blas, fuse, passes, donate, numerics, lanes, async_work
        As for `compile`.

    Returns
    -------
    str

    Raises
    ------
    ArgumentError
        There is no such stage; and what `compile` raises.
    """
    number, device = _devices(devices, device)
    from .report import Report

    options = {**_donated(donate), **_run_options(threads, blas, lanes, async_work, device), **_among_processes()}
    return Report(_core.compile_dump(parse(module), stage=stage, fuse=fuse, passes=passes, numerics=numerics, devices=number, **options))


class Device(_collections.namedtuple("Device", "name kind ordinal units memory memory_bytes live_bytes peak_bytes host_visible")):
    """A device: its name is what `compile(device=)` takes. `units` work in parallel; `memory` is where arguments and results lie, of
    `memory_bytes` in all, of which `live_bytes` are in use now, and `peak_bytes` were at most."""

    __slots__ = ()

    def __str__(self):
        return self.name


def devices():
    """The devices opened so far: "cpu:0", "interp:0", and those that `compile(device=)` has been asked for beside.

    Returns
    -------
    list of Device
    """
    return [Device(*row) for row in _core.devices()]


def _devices(devices, device):
    """(how many devices, their name): 0 stands for one, without partitioning."""
    if devices is None:
        return 0, device
    if hasattr(devices, "device_ids"):  # a Mesh
        devices = devices.size
    elif isinstance(devices, (list, tuple)):
        devices, device = _listed(devices)
    number = _count("devices", devices, 1024)
    if number == 0:
        raise ArgumentError("devices must be at least 1, found 0", Code.BAD_ARGUMENT, hint="None compiles for one device")
    return number, device


def _listed(devices):
    """How many devices a list has, and where they are: the name that all bear, or all names, of GPUs."""
    if not all(isinstance(d, (str, Device)) for d in devices):
        raise ArgumentError(f"devices must be names, found {devices!r}", Code.BAD_ARGUMENT, hint='such as ["cpu"] * 8')
    names = [str(d) if ":" in str(d) else f"{d}:0" for d in devices]
    return len(names), ",".join(names) if len(set(names)) > 1 else names[0] if names else "cpu"


def _donated(donate):
    donate = tuple(donate) if not isinstance(donate, (int, str)) else (donate,)
    names = [d for d in donate if d != "require" and not hasattr(d, "__index__")]
    if names:
        raise ArgumentError(f"donate takes numbers of parameters, found {names[0]!r}", Code.BAD_ARGUMENT,
                            hint='such as donate=0, donate=(0, 2), or "require" among them')
    return {"donate": tuple(_count("donate", d) for d in donate if d != "require"), "require": "require" in donate}


def _run_options(threads, blas, lanes, async_work, device):
    """What compile and load have in common, as the core takes it."""
    if not isinstance(device, (str, Device)):
        raise ArgumentError(f"device must be a name, found {device!r}", Code.BAD_ARGUMENT, hint='such as "cpu", "cpu:1" or "interp"')
    if str(device).startswith("cuda"):
        _tell_packages()
    return {"device": str(device), "threads": 0 if threads is None else _count("threads", threads), "blas": _blas_path(blas),
            "use_blas": blas is not False,
            "lanes": _lanes(lanes), "async_work": _count("async_work", async_work, (1 << 63) - 1)}


def _among_processes():
    """Of many devices only those of this process are prepared."""
    world = _sys.modules.get("xlac.distributed")
    return {"process": world.rank(), "processes": world.size()} if world and world.is_initialized() else {}


def _tell_packages():
    """Where nvidia's wheels are, for the CUDA device, which looks for NVRTC there when it is first opened."""
    if "XLAC_CUDA_PACKAGES" not in _os.environ:
        _os.environ["XLAC_CUDA_PACKAGES"] = ":".join(_os.path.dirname(folder) for folder in _package_folders("nvidia"))


def _count(name, value, most=(1 << 31) - 1):
    """A number from 0 on."""
    try:
        number = _operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be a whole number, found {value!r}", Code.BAD_ARGUMENT) from None
    if not 0 <= number <= most:
        raise ArgumentError(f"{name} must be a number from 0 to {most}, found {number}", Code.BAD_ARGUMENT)
    return number


def _lanes(lanes):
    """(execution thread, its threads) for each lane; "" stands for all threads that are not named."""
    if lanes is None:
        return ()
    if hasattr(lanes, "items"):
        bad = [name for name in lanes if not isinstance(name, str)]
        if bad:
            raise ArgumentError(f"lanes are named by execution threads, which are strings; found {bad[0]!r}", Code.BAD_ARGUMENT)
        return tuple((name, _count(f"lanes[{name!r}]", threads)) for name, threads in lanes.items())
    if isinstance(lanes, (str, bytes)) or not hasattr(lanes, "__index__"):
        raise ArgumentError(f"lanes must be a number or a dict, found {lanes!r}", Code.BAD_ARGUMENT,
                            hint='such as lanes=2, or lanes={"copy": 1} for the execution thread named "copy"')
    return (("", 1),) * _count("lanes", lanes, _MOST_LANES)


def load(source, *, device="cpu", threads=None, blas=None, lanes=None, async_work=0, results="numpy"):
    """The executable that Executable.serialize() made bytes of.

    Parameters
    ----------
    source : bytes, path-like or file
        Those bytes, or a file with them: its path, or open for bytes.
    threads : int, optional
        None: those it was compiled with.
    device, blas, lanes, async_work, results
        As for `compile`.

    Returns
    -------
    Executable
        Or a TreeExecutable, where it was made of a JAX function; JAX need not be there. Custom calls are found by name when it runs.

    Raises
    ------
    Error
        The bytes are cut short, damaged or of another format; the message says which.
    """
    if callable(getattr(source, "read", None)):
        source = source.read()
    if not isinstance(source, (bytes, bytearray, memoryview)):
        if not isinstance(source, (str, _os.PathLike)):
            raise TypeError(f"load takes the bytes that Executable.serialize() gave, or a file with them; found {type(source).__name__}")
        with open(source, "rb") as file:
            source = file.read()
    calling = None
    if bytes(source[:8]) == b"XLACTREE":
        from .called import split

        calling, source = split(source)
    try:
        executable = _core.load(source, **_run_options(threads, blas, lanes, async_work, device), **_among_processes())
    except Error as error:
        if error.code == Code.BAD_EXECUTABLE and bytes(source[:200]).lstrip().startswith((b"HloModule", b"module", b"func.func", b"ML\xefR")):
            error.hint = "this is a program, not an executable: xlac.compile compiles it"
        raise
    if "xlac.distributed" in _sys.modules and executable._shards()[0]:
        _sys.modules["xlac.distributed"].join_loaded(executable, source)
    return _given_back(executable, calling, results)


def verify(program, *, xla_compat=False):
    """Checks a whole program by XLA's rules. The same as Module.verify().

    Parameters
    ----------
    program : program
        A Module, or what `parse` takes for one.
    xla_compat : bool
        Accept what XLA accepts against its own documentation.

    Returns
    -------
    Module

    Raises
    ------
    VerifyError
        With the first rule that is broken, its place, and the op.
    """
    module = parse(program)
    module.verify(xla_compat=xla_compat)
    return module


def diff(program, *arrays, a="interpreter", b="compiled", rtol=1e-5, atol=1e-6, seed=0):
    """Runs every op of a program by two ways, and finds the first op, in the order of the program, whose values differ.

    Loops are followed trip by trip, branches and calls entered. With bounds of 0 the ways must agree to the bit, as they do but for sums and
    products of floats, which are associated in another order.

    Parameters
    ----------
    program : program
        A Module, or what `parse` takes for one.
    *arrays : array-like
        The arguments; without any, they are drawn at random.
    a, b : str or dict
        "interpreter", "compiled", "unfused" (a kernel for each op), "unoptimised" (no passes), "blasless", "fast" (numerics), or a dict of
        options of `compile`.
    rtol, atol : float
        Values differ by more than atol + rtol * |value|.
    seed : int
        Of arguments that are drawn.

    Returns
    -------
    Difference or None
        The op, its place, its inputs and both values; None where nothing differs.
    """
    from .difference import diff as find

    return find(program, *arrays, a=a, b=b, rtol=rtol, atol=atol, seed=seed)


def changes(old, new):
    """What two programs that should be one do otherwise, op by op: what two versions of JAX made of a function, say.

    Calls are inlined and equal ops made one before, so that only what is computed counts. The results are not compared:
    `xlac.testing.assert_same` runs both.

    Parameters
    ----------
    old, new : program
        Modules, or what `parse` takes for one.

    Returns
    -------
    Changes
        False when there is nothing; printed, a table of the ops that went, came, or read other values.

    Raises
    ------
    ParseError, VerifyError
        One of them is not a program.
    """
    from .comparison import compare

    return compare(old, new)


def trim(keep=0):
    """Gives memory that waits for the next results and calls back to the system.

    Parameters
    ----------
    keep : int
        Bytes that may stay.

    Returns
    -------
    int
        The bytes given back.
    """
    return _core.trim(keep)


def memory_stats():
    """What executables use and keep of memory.

    Returns
    -------
    dict of str to int
        Blocks `taken` so far and how many of them were `reused`; `live` blocks and `live_bytes`, in use by result arrays and running calls;
        `peak_bytes`, the most in use at a time; `kept` blocks and `kept_bytes`, waiting for the next results, at most `limit_bytes`; `threads`
        started.
    """
    return _core.memory_stats()


def set_memory_limit(bytes):
    """The most memory that is kept for the next results and calls; at first an eighth of the machine's. What is in use is not limited.

    Parameters
    ----------
    bytes : int
    """
    _core.memory_limit(_count("bytes", bytes, (1 << 64) - 1))


def run_parallel(module, args, *, replicas=None, partitions=1, programs=None, infeed=None, outfeed=None, seed=0):
    """Runs several participants of a program in lock step in the reference interpreter: a grid of `replicas` x `partitions`, which meet in
    collectives and send one another values. Custom calls written in Python don't run here.

    Parameters
    ----------
    module : program
        A Module, or what `parse` takes for one.
    args : iterable of sequences
        The arguments of each participant; None stands for a token.
    replicas : int, optional
        By default as many as `args` make.
    partitions : int
        Of each replica.
    programs : iterable, optional
        The name of the computation that each participant runs, in one list or one a replica; None is the entry.
    infeed : iterable of sequences, optional
        For each participant the values that its infeeds take.
    outfeed : list, optional
        Extended by what each participant has fed out.
    seed : int
        Of `rng` and its relatives.

    Returns
    -------
    list
        The results of (0, 0), (0, 1), ...

    Raises
    ------
    Error
        A run fails, or participants wait for one another for ever: the error says who waits where.
    """
    module = parse(module)
    args = [tuple(one) for one in args]
    if replicas is None:
        replicas = max(1, len(args) // max(1, partitions))
    names = []
    for row in programs or []:
        names.extend([row] if row is None or isinstance(row, str) else row)
    names = [name if name is None else name.lstrip("@%") for name in names] or [None] * len(args)
    fed = [tuple(one) for one in infeed] if infeed is not None else [()] * len(args)
    results, fed_out = _core.run_parallel(module, args, names, fed, replicas, partitions, seed=seed)
    if outfeed is not None:
        outfeed.extend(fed_out)
    return results


def register_custom_call(target, function, *, user=0):
    """Gives custom-calls of a target an implementation, for interpreted and for compiled programs, from the next run on. Thread-safe.

    Registered names come before the built-in ones.

    Parameters
    ----------
    target : str
        The name in the program.
    function : callable, function pointer, capsule, int or None
        A function of Python is called with the operands as arrays (tuples for tuples, None for tokens) and returns what the op's type says. A
        function in native code, `int f(xlac_ffi_frame *)` of xlac_ffi.h, is called directly, without the GIL: give a function pointer of cffi
        (`ffi.addressof(lib, "f")`) or ctypes, a cfunc of Numba, a capsule named "xlac_ffi", or an address; what it is given as is kept alive. It
        must be thread-safe. None takes the registration back.
    user : int
        An address that native code finds in its frame.

    Raises
    ------
    ArgumentError
        `function` is none of these.
    """
    address = None
    if function is not None:
        from .custom_calls import address_of

        address = address_of(function)
    _core.register_custom_call(target, function, address or 0, user)


def passes():
    """The passes that Module.run knows.

    Returns
    -------
    dict
        {name: {"doc": ..., "options": {name: doc}}}
    """
    return _core.pass_table()


def __getattr__(name):
    """Builder, Future, Opcode, lower_graph, cache, kernels, distributed and sharding are made when first asked for, to keep the import short."""
    if name == "Builder":
        from .builder import Builder

        return Builder
    if name == "Future":
        from .future import Future

        return Future
    if name == "ShardedBuffer":
        from .sharded import ShardedBuffer

        return ShardedBuffer
    if name == "Opcode":
        from .opcode import Opcode

        return Opcode
    if name == "lower_graph":
        from .lowering import lower_graph

        return lower_graph
    if name == "explore":
        from .explorer import explore

        return explore
    if name == "reduce":
        from .reduction import reduce

        return reduce
    if name == "TreeExecutable":
        from .called import TreeExecutable

        return TreeExecutable
    if name in ("benchmark", "cache", "distributed", "kernels", "reduction", "sharding", "testing"):
        import importlib

        return importlib.import_module("." + name, __name__)
    instead = _ELSEWHERE.get(name)
    raise AttributeError(f"module 'xlac' has no attribute {name!r}" + (f": use {instead}" if instead else ""), name=name, obj=_sys.modules[__name__])


# What users of other libraries look for here.
_ELSEWHERE = {"jit": "xlac.compile(jax.jit(f).lower(*arguments))", "run": "xlac.compile(program)(*arguments), or xlac.interpret(program, *arguments)",
              "array": "xlac.asarray", "from_numpy": "xlac.asarray", "profile": "xlac.compile(program).profile(*arguments)",
              "read": "xlac.parse(pathlib.Path(name))", "open": "xlac.parse(pathlib.Path(name))"}
