"""Arrays of the command line: read from files and text, drawn at random, written, compared."""
import errno
import json
import math
import pathlib
import re
import zipfile

import numpy as np

from . import _core, dtypes
from .codes import Code
from .errors import ArgumentError, Error



def is_leaf(dtype):
    return isinstance(dtype, str)


def leaves(value, path="result"):
    """The arrays of a result with the names they have in .npz files: result, or result_0, result_1_0 and so on."""
    if isinstance(value, tuple):
        for i, element in enumerate(value):
            yield from leaves(element, f"{path}_{i}")
    else:
        yield path, value


def type_text(array):
    return dtypes.type_text(dtypes.of_numpy_name(array.dtype.name), array.shape)


# --- reading ---

def load(path):
    """The arrays of a .npy or .npz file, in order."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return [loaded]
        with loaded:
            return [loaded[name] for name in loaded.files]
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise Error(f"{path} is no .npy or .npz file that NumPy reads: {error}", Code.IO) from None


def is_of_ml_dtypes(dtype):
    return dtype.isbuiltin == 2


def as_type(array, want):
    """NumPy's files forget the types of ml_dtypes and keep bytes; give them their type back."""
    is_raw = array.dtype.kind == "V" and array.dtype.names is None and not is_of_ml_dtypes(array.dtype)
    return array.view(want) if is_raw and want.itemsize == array.dtype.itemsize else array


SHAPED = re.compile(r"(?:(?P<dims>(?:\d+x)*)(?P<type>[a-z]\w*)|(?P<hlo>[a-z]\w*)\[(?P<sizes>[\d\s,]*)\](?:\{[^}=]*\})?)=(?P<numbers>.*)", re.S)
ALIASES = {"i1": "pred", "i8": "s8", "i16": "s16", "i32": "s32", "i64": "s64"}


def parse_numbers(text, what):
    """"1 2 3", "1,2,3" or "[[1 2][3 4]]" as a list of numbers."""
    words = [w for w in re.split(r"[\s,\[\]]+", text.strip()) if w]
    named = {"true": True, "false": False}
    try:
        return [named[w.lower()] if w.lower() in named else complex(w) if "j" in w else number(w) for w in words]
    except ValueError as error:
        raise ArgumentError(f"{what} is malformed: {error}", Code.BAD_ARGUMENT) from None


def number(word):
    try:
        return int(word, 0)
    except ValueError:
        return float(word)


def from_shaped(match, what):
    """HLO's type, f32[2,3]=1 2 3 4 5 6, or iree-run-module's, 2x3xf32=...; one number fills the array, none is zeros."""
    dims = [int(d) for d in re.findall(r"\d+", match["sizes"] if match["hlo"] else match["dims"])]
    name = match["hlo"] or match["type"]
    if ALIASES.get(name, name) not in dtypes.table():
        near = dtypes.of_numpy_name({"float": "float32", "int": "int32", "double": "float64", "half": "float16"}.get(name, name))
        raise ArgumentError(f"{what}: there is no element type {name!r}", Code.BAD_ARGUMENT,
                            hint=f"did you mean {near}?" if near in dtypes.table() else f"there are {', '.join(dtypes.table())}")
    dtype = _core.numpy_dtype(ALIASES.get(name, name))
    values = parse_numbers(match["numbers"], what) or [0]
    count = math.prod(dims)
    if len(values) not in (1, count):
        raise ArgumentError(f"{what} has {len(values)} numbers for {count} elements", Code.ARGUMENT_SHAPE)
    array = np.array(values).astype(dtype)
    return np.full(dims, array[0], dtype) if len(values) == 1 else array.reshape(dims)


def from_json(text, shape, dtype, what):
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        hint = "give a .npy or .npz file, JSON such as [[1,2],[3,4]], or a type and numbers such as f32[2,2]=1 2 3 4"
        raise ArgumentError(f"{what} is neither a file nor an array: {error}", Code.BAD_ARGUMENT, hint=hint) from None
    return cast_json(value, shape, dtype, what)


def cast_json(value, shape, dtype, what):
    if not is_leaf(dtype):
        if not isinstance(value, list) or len(value) != len(dtype):
            raise ArgumentError(f"{what} is a tuple of {len(dtype)}: expected a list of as many", Code.ARGUMENT_TYPE)
        return tuple(cast_json(v, s, d, f"{what}[{i}]") for i, (v, s, d) in enumerate(zip(value, shape, dtype)))
    if dtype == "token":
        return None
    try:
        return np.array(value).astype(_core.numpy_dtype(dtype))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{what} is not an array of {dtype}: {error}", Code.ARGUMENT_TYPE) from None


def arrays_of_input(text, parameter):
    """What one --input stands for: the arrays of a file, or one array given as text."""
    what = f"--input for {parameter.name}" if parameter is not None else "--input"
    path = text[1:] if text.startswith("@") else text
    if text.startswith("@") or pathlib.PurePath(path).suffix in (".npy", ".npz"):
        return load(path)
    match = SHAPED.fullmatch(text)
    if match:
        return [from_shaped(match, what)]
    if parameter is None:
        raise ArgumentError(f"{what} {text!r} has no parameter to go to", Code.ARGUMENT_COUNT)
    return [from_json(text, parameter.shape, parameter.dtype, what)]


def read_inputs(texts, parameters):
    """The arguments that a list of --input texts gives, each for the next parameters."""
    found = []
    for text in texts:
        found += arrays_of_input(text, parameters[len(found)] if len(found) < len(parameters) else None)
    paired = [as_type(a, _core.numpy_dtype(p.dtype)) if is_leaf(p.dtype) and isinstance(a, np.ndarray) else a
              for a, p in zip(found, parameters)]
    return paired + found[len(parameters):]


# --- drawing ---

def draw(shape, dtype, rng):
    """A random value of a type: normal floats, small integers, so that most programs stay in range."""
    if not is_leaf(dtype):
        return tuple(draw(s, d, rng) for s, d in zip(shape, dtype))
    row = next((r for r in _core.dtype_table() if r["name"] == dtype), None)
    if row is None:
        return None  # a token
    if None in shape:
        raise ArgumentError(f"can't draw a {dtype} array of unbounded size: give it with --input", Code.BAD_ARGUMENT)
    if row["kind"] == "pred":
        return rng.random(shape) < 0.5
    target = _core.numpy_dtype(dtype)
    if row["kind"] in ("sint", "uint"):
        high = min(16, 1 << row["bits"]) // (2 if row["kind"] == "sint" else 1)
        low = -high if row["kind"] == "sint" else 0
        return rng.integers(low, max(high, low + 1), shape).astype(target)
    numbers = rng.standard_normal(shape)
    if row["kind"] == "complex":
        numbers = numbers + 1j * rng.standard_normal(shape)
    return np.asarray(np.abs(numbers) if dtype == "f8e8m0fnu" else numbers).astype(target)


def draw_inputs(parameters, seed):
    rng = np.random.default_rng(seed)
    return [draw(p.shape, p.dtype, rng) for p in parameters]


# --- writing and comparing ---

def check_path(path):
    """Raises where `save` could not write, which is known before a program has run."""
    path = pathlib.Path(path)
    if path.is_dir() or not path.parent.is_dir():
        raise (IsADirectoryError(errno.EISDIR, "Is a directory", str(path)) if path.is_dir() else
               FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent)))
    if path.suffix not in (".npy", ".npz"):
        raise ArgumentError(f"a result is written as .npz or .npy, not as {path.name!r}", Code.BAD_ARGUMENT,
                            hint="without -o it is printed as text; --json prints it for programs")


def save(path, result):
    check_path(path)
    arrays = {name: array.view(f"V{array.dtype.itemsize}") if is_of_ml_dtypes(array.dtype) else array
              for name, array in leaves(result) if array is not None}
    if pathlib.PurePath(path).suffix == ".npy":
        if len(arrays) != 1:
            raise ArgumentError(f"a .npy file holds one array, the result has {len(arrays)}", Code.BAD_ARGUMENT, hint="write a .npz file")
        np.save(path, next(iter(arrays.values())))
    else:
        with open(path, "wb") as file:
            np.savez(file, **arrays)


def as_text(result, whole=False):
    lines = []
    for name, array in leaves(result):
        if array is None:
            lines.append(f"{name} = token[]")
            continue
        limit = array.size + 1 if whole else 1000
        lines.append(f"{name} = {type_text(array)}")
        lines.append(np.array2string(np.asarray(array), threshold=limit, separator=", "))
    return "\n".join(lines)


def wide(array):
    """Any element type as one that subtracts without overflow or rounding of ours."""
    if array.dtype.kind in "iub" or array.dtype.name in ("int1", "int2", "int4", "uint1", "uint2", "uint4"):
        return array.astype(object) if array.dtype.itemsize == 8 else array.astype(np.int64)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def difference(name, mine, wanted, relative, absolute):
    """None, or a sentence that says how two arrays differ."""
    if mine.dtype != wanted.dtype:
        return f"{name} has element type {mine.dtype}, expected {wanted.dtype}"
    if mine.shape != wanted.shape:
        return f"{name} has dimensions {list(mine.shape)}, expected {list(wanted.shape)}"
    a, b = wide(mine), wide(wanted)
    with np.errstate(invalid="ignore", over="ignore"):
        exact = a == b
        both_nan = (a != a) & (b != b)
        distance = np.abs(a - b)
        bad = ~(exact | both_nan | (distance <= absolute + relative * np.abs(b)))
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape)) if bad.shape else ()
    return (f"{name}{list(at)} is {mine[at]!s}, expected {wanted[at]!s}; {int(np.sum(bad))} of {bad.size} elements differ by "
            f"more than {absolute:g} + {relative:g} of the expected value")


def compare(result, wanted, relative, absolute):
    """Sentences about what differs between a result and a list of expected arrays."""
    mine = [(name, array) for name, array in leaves(result) if array is not None]
    if len(mine) != len(wanted):
        return [f"the result has {len(mine)} arrays, expected {len(wanted)}"]
    found = [difference(name, a, as_type(b, a.dtype), relative, absolute) for (name, a), b in zip(mine, wanted)]
    return [sentence for sentence in found if sentence]
