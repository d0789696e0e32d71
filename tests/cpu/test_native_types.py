"""Machine code on every type that is not complex: conversions from each to each, and every elementwise op, beside the plain evaluation."""
import importlib.util
import pathlib

import numpy as np
import pytest

from xlac import kernels

from . import random_native

pytest.importorskip("ml_dtypes")
pytest.importorskip("scipy")
_spec = importlib.util.spec_from_file_location("native_elementwise", pathlib.Path(__file__).parents[1] / "oracle" / "elementwise.py")
ew = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(ew)

TYPES = [t for t in ew.DTYPES if t[0] != "c"]
FORMATS = [(5, 7), (8, 0), (3, 52), (11, 3), (1, 1)]


@pytest.fixture(params=random_native.LEVELS, autouse=True)
def level(request, monkeypatch):
    if request.param not in random_native.levels():
        pytest.skip("this machine has no " + request.param)
    monkeypatch.setenv("XLAC_MAX_ISA", request.param)


def values(t, arity):
    """Special numbers and random ones of all sizes; integers of few bits with their sign in the whole byte, as programs have them."""
    rng = np.random.default_rng(5)
    arrays = ew.operands(t, arity)
    if t in ("f32", "f64"):
        sizes = 2.0 ** rng.integers(-160, 130, 2000)
        with np.errstate(all="ignore"):
            arrays = [np.concatenate([a, (rng.standard_normal(2000) * sizes).astype(a.dtype)]) for a in arrays]
    elif t in ("s32", "u32", "s64", "u64"):
        low, high = ew.int_range(t)
        wide = rng.integers(low, high, 2000, dtype=arrays[0].dtype, endpoint=True) >> rng.integers(0, ew.bits_of(t), 2000).astype(arrays[0].dtype)
        arrays = [np.concatenate([a, rng.permutation(wide)]) for a in arrays]
    elif t[0] == "s" and ew.bits_of(t) < 8:
        arrays = [a.astype(np.int8).view(a.dtype) for a in arrays]
    return [np.resize(a, max(len(a), 200)) for a in arrays]


def canonical(a):
    """Which NaN it is, is not part of the bits."""
    bits = a.view(f"u{a.itemsize}")
    with np.errstate(all="ignore"):
        return np.where(a != a, np.array(0, bits.dtype), bits)


def check(op, t, to, arrays, extra=""):
    n, arity = len(arrays[0]), len(arrays)
    loads = "".join(f"v{i} = {t}[] load in{i}[0 + 1*i0]\n" for i in range(arity))
    text = f"kernel [{n}] from {arity} input{'s' * (arity > 1)}\n{loads}v{arity} = {to}[] {op}({', '.join(f'v{i}' for i in range(arity))}){extra}\n"
    text += f"store out0[0 + 1*i0] v{arity}\n"
    got, want = (canonical(kernels.run(text, *arrays, reference=reference)) for reference in (False, True))
    wrong = np.flatnonzero(got != want)
    assert not len(wrong), (text, [a[wrong[:4]] for a in arrays], got[wrong[:4]], want[wrong[:4]])


@pytest.mark.parametrize("t", TYPES)
def test_conversions_have_the_bits_of_the_reference(t):
    arrays = values(t, 1)
    for to in TYPES:
        if to != t:
            check("convert", t, to, arrays)


@pytest.mark.parametrize("t", TYPES)
def test_elementwise_ops_have_the_bits_of_the_reference(t):
    for op, arity, types in ew.table():
        if t not in types or op in ("complex", "reduce-precision"):
            continue
        arrays = values(t, arity)
        if op == "compare":
            for direction in ("EQ", "LT", "GE"):
                check(op, t, "pred", arrays, f", direction={direction}")
        else:
            check(op, t, "pred" if op == "is-finite" else t, arrays)


@pytest.mark.parametrize("t", [t for t in TYPES if t[0] in "fb"])
@pytest.mark.parametrize("exponent,mantissa", FORMATS)
def test_reduced_precision_has_the_bits_of_the_reference(t, exponent, mantissa):
    check("reduce-precision", t, t, values(t, 1), f", exponent_bits={exponent}, mantissa_bits={mantissa}")
