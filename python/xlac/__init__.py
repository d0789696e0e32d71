"""xlac reads, verifies, edits, interprets and prints XLA programs.

    module = xlac.parse(open("step.hlo").read())
    module.verify()
    result = xlac.interpret(module, x, y)
"""
import os as _os

from . import _core
from ._core import Computation, Instruction, Module
from .errors import DeviceError, DonationError, Error, OutOfMemoryError, ParseError, ShardingError, VerifyError

__version__ = _core.version()

__all__ = ["Builder", "Computation", "DeviceError", "DonationError", "Error", "Instruction", "Module", "Opcode",
           "OutOfMemoryError", "ParseError", "ShardingError", "VerifyError", "asarray", "interpret", "parse", "passes",
           "register_custom_call"]

FORMATS = ("auto", "hlo", "hlo-proto")


def parse(src, *, format="auto", allow_unregistered=False, documented_forms=False):
    """Reads a program: `src` is its text (str or bytes) or a path-like object. Formats: "hlo", XLA's text; "hlo-proto",
    a serialized HloModuleProto, as Module.to_bytes writes; "auto" recognises them.

    `documented_forms` also reads what XLA's documentation shows, or newer XLA has, but XLA 0.10.2 refuses: the short
    input_output_alias, flat async shapes, atan, shuffle and collective-reduce.

    Raises ParseError with the line and column of what is wrong. The module is not verified yet: call verify()."""
    if isinstance(src, _os.PathLike):
        with open(src, "rb") as file:
            src = file.read()
    if format not in FORMATS:
        raise Error(f"format {format!r} is unknown; there are {', '.join(FORMATS)}", 503)
    return _core.parse(src, format=format, allow_unregistered=allow_unregistered,
                       documented_forms=documented_forms)


def interpret(module, *arrays, seed=0, replica=0, partition=0, progress=None):
    """Runs the entry computation in the reference interpreter and returns its result: a NumPy array, or a tuple of results.

    Arguments are arrays (or tuples of them for tuple parameters), taken without a copy where they are C-contiguous. `seed` is
    that of `rng`; `progress` is called with the seconds run so far about twenty times a second. Ctrl-C stops the run."""
    return _core.interpret(module, *arrays, seed=seed, replica=replica, partition=partition, progress=progress)


def register_custom_call(target, function):
    """Lets `interpret` run custom-calls of that target: `function` is called with the operands as arrays (tuples for tuples,
    None for tokens) and returns what the op's type says. None takes the registration back."""
    _core.register_custom_call(target, function)


def asarray(x, dtype=None):
    """`x` as a C-contiguous NumPy array in native byte order, without a copy where it is one. `dtype` may be an element type's
    name ("bf16")."""
    import numpy

    if isinstance(dtype, str) and dtype in {row["name"] for row in _core.dtype_table()}:
        dtype = _core.numpy_dtype(dtype)
    array = numpy.asarray(x, dtype=dtype)
    if array.flags.c_contiguous and array.dtype.isnative:
        return array
    return numpy.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")).reshape(array.shape)


def passes():
    """The passes that Module.run knows: {name: {"doc": ..., "options": {name: doc}}}."""
    return _core.pass_table()


def __getattr__(name):
    """Builder and Opcode are made when first asked for, to keep the import short."""
    if name == "Builder":
        from .builder import Builder

        return Builder
    if name == "Opcode":
        from .opcode import Opcode

        return Opcode
    raise AttributeError(f"module 'xlac' has no attribute {name!r}")
