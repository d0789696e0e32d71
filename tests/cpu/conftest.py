"""Helpers: the compiled executor beside the interpreter."""
import pathlib
import sys

import numpy as np
import pytest

import xlac

HERE = pathlib.Path(__file__).resolve().parent
for folder in ("opt", "oracle"):
    sys.path.insert(0, str(HERE.parent / folder))


def leaves(value):
    return [x for part in value for x in leaves(part)] if isinstance(value, tuple) else [np.asarray(value)]


def same_bits(a, b):
    return len(a) == len(b) and all(x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in zip(a, b))


def same_numbers(a, b):
    """The same bits but for the payload of NaNs."""
    def equal(x, y):
        if x.tobytes() == y.tobytes():
            return True
        wide = [v.astype(np.complex128) if v.dtype.kind != "b" else v for v in (x, y)]
        return x.dtype == y.dtype and np.array_equal(*wide, equal_nan=True)
    return len(a) == len(b) and all(x.shape == y.shape and equal(x, y) for x, y in zip(a, b))


@pytest.fixture
def both():
    """Compiles a text, runs it beside the interpreter for 1 and for 3 threads, and gives (compiled, interpreted, executable)."""
    def run(text, *args, **options):
        module = xlac.parse(text)
        executable = xlac.compile(module, threads=1, **options)
        got = leaves(executable(*args))
        assert same_bits(got, leaves(xlac.compile(module, threads=3, **options)(*args)))
        return got, leaves(xlac.interpret(module, *args)), executable
    return run


# What reductions combine by, to stand before an entry computation.
COMBINERS = "\n" + "".join(
    f"{name} {{ a = {t}[] parameter(0)\n b = {t}[] parameter(1)\n ROOT c = {t}[] {op}(a, b) }}\n"
    for name, t, op in [("sum", "s32", "add"), ("most", "s32", "maximum"), ("sumf", "f32", "add"), ("sumh", "bf16", "add"), ("mostf", "f32", "maximum")])
