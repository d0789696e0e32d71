"""Helpers: texts of small async programs, arguments for any types."""
import pathlib
import re
import sys

import ml_dtypes
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

NUMPY = {"pred": np.bool_, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
NUMPY |= {f"{letter}{bits}": np.dtype(f"{kind}{bits}") for letter, kind in (("s", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)}


def split(text):
    """The parts of "f32[2,3], (f32[], s32[])"."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def argument(type_text, rng):
    """Small numbers of that type."""
    text = str(type_text).strip()
    if text.startswith("("):
        return tuple(argument(part, rng) for part in split(text[1:-1]))
    if text.startswith("token"):
        return None
    name, dims = re.match(r"(\w+)\[([^\]]*)\]", text).groups()
    shape = [int(d.removeprefix("<=")) for d in dims.split(",") if d]
    if name == "pred":
        return rng.random(shape) < 0.5
    dtype = np.dtype(NUMPY[name])
    return rng.integers(0, 3, shape).astype(dtype) if dtype.kind in "iu" else rng.standard_normal(shape).astype(dtype)


def leaves(value):
    if value is None:
        return []
    return [x for part in value for x in leaves(part)] if isinstance(value, tuple) else [np.asarray(value)]


def same(a, b):
    return len(a) == len(b) and all(x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in zip(a, b))


def close(a, b):
    wide = lambda x: x if x.dtype.kind == "b" else x.astype(np.complex128)  # noqa: E731
    return len(a) == len(b) and all(x.dtype == y.dtype and x.shape == y.shape and
                                    np.allclose(wide(x), wide(y), rtol=1e-3, atol=1e-3, equal_nan=True) for x, y in zip(a, b))
