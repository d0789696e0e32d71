"""Names of element types: XLA's ("f32", "s4"), and those of NumPy and ml_dtypes ("float32", "int4")."""
import functools
import re

from . import _core
from .codes import Code
from .errors import ArgumentError

PREFIXES = (("bfloat", "bf"), ("float", "f"), ("complex", "c"), ("uint", "u"), ("int", "s"))


@functools.cache
def table():
    """The rows of all element types, by name."""
    return {row["name"]: row for row in _core.dtype_table()}


def of_numpy_name(name):
    """"float8_e5m2" as "f8e5m2"; unknown names as they are."""
    if name == "bool":
        return "pred"
    for theirs, ours in PREFIXES:
        m = re.fullmatch(rf"{theirs}(\d+)_?(.*)", name)
        if m:
            return ours + m[1] + m[2]
    return name


def name_of(dtype):
    """The element type that `dtype` means: its name, or whatever NumPy takes for a dtype."""
    if isinstance(dtype, str) and dtype in table():
        return dtype
    import numpy

    try:
        name = of_numpy_name(numpy.dtype(dtype).name)
    except TypeError:
        name = None
    if name not in table():
        raise ArgumentError(f"{dtype!r} is not an element type", Code.ARGUMENT_TYPE, hint=f"there are {', '.join(table())}")
    return name


def mlir_name(dtype):
    """MLIR's name: "i1", "ui8", "f8E4M3FN", "complex<f32>"."""
    name = name_of(dtype)
    if name == "pred":
        return "i1"
    if name[0] in "su":
        return ("ui" if name[0] == "u" else "i") + name[1:]
    if name[0] == "c":
        return f"complex<f{int(name[1:]) // 2}>"
    return name if name.startswith("bf") else "f" + name[1:].upper()


def type_text(dtype, dims):
    """"f32[2,3]"."""
    return f"{dtype}[{','.join(str(int(d)) for d in dims)}]"
