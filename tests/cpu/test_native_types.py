"""Machine code on every type: conversions from each to each, and every elementwise op, beside the plain evaluation."""
import importlib.util
import pathlib

import numpy as np
import pytest

import xlac
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
    """Which NaN it is, is not part of the bits. Of complex numbers the parts, one after the other."""
    if a.dtype.kind == "c":
        a = a.view(f"f{a.itemsize // 2}")
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
    at = wrong[:4] // (len(got) // n)
    assert not len(wrong), (text, [a[at] for a in arrays], got[wrong[:4]], want[wrong[:4]])


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


WIDE = ("divide", "multiply", "select", "sqrt", "exponential", "log", "log-plus-one", "cosine", "tan", "asin", "atanh", "logistic")
BYTES = (("popcnt", "u8"), ("count-leading-zeros", "s8"), ("shift-left", "s8"), ("shift-right-arithmetic", "s8"))


@pytest.mark.parametrize("op, t", [*BYTES, *((op, "c128") for op in WIDE)])
def test_these_ops_are_machine_code(op, t):
    """Of bytes alone, and of complex numbers of two f64, there was none."""
    operands = {"select": "(c, x, y)", "multiply": "(x, y)", "divide": "(x, y)"}.get(op, "(x, three)" if op.startswith("shift") else "(x)")
    text = f"""HloModule m
ENTRY e {{
  x = {t}[4096] parameter(0)
  y = {t}[4096] parameter(1)
  k = {t}[] constant({"(3, 1)" if t[0] == "c" else 3})
  three = {t}[4096] broadcast(k), dimensions={{}}
  c = pred[4096] compare(x, y), direction=NE
  r = {t}[4096] {op}{operands}
  ROOT s = {t}[4096] add(r, y)
}}"""
    assert "by the vector VM" not in xlac.compile_stage(text, "assembly")


@pytest.mark.parametrize("t", [t for t in TYPES if t[0] == "f" and t not in ("f32", "f64")])
def test_codes_of_narrow_floats_have_the_bits_of_the_reference(t):
    """All of them, with neighbours, of ops that look at codes alone, and conversions that need not round."""
    kind = ew.DTYPES[t]
    codes = [np.resize(np.arange(1 << 16, dtype=np.uint16).view(kind) if t == "f16" else np.arange(256, dtype=np.uint8).view(kind), 1 << 16)]
    for op in ("abs", "negate", "real", "imag", "is-finite"):
        check(op, t, "pred" if op == "is-finite" else t, codes)
    for to in ("pred", "f16", "bf16"):
        if to != t:
            check("convert", t, to, codes)


@pytest.mark.parametrize("t", ["s32", "u32"])
def test_integers_between_two_narrow_floats_have_the_bits_of_the_reference(t):
    rng = np.random.default_rng(9)
    near = (1 << rng.integers(0, 32, 20000)) + rng.integers(-600, 600, 20000) + (rng.integers(0, 512, 20000) << rng.integers(0, 23, 20000))
    x = near.astype(np.uint64).astype(np.uint32).view(ew.DTYPES[t])
    for to in ("bf16", "f16", "f8e5m2", "f8e4m3fn"):
        check("convert", t, to, [x])


@pytest.mark.parametrize("t", ["u64", "s64", "u32", "s32", "u16", "s16"])
def test_powers_of_integers_have_the_bits_of_the_reference(t):
    """Exponents of all lengths, of odd and even numbers: they are parted in low bits and the others."""
    rng, kind = np.random.default_rng(11), ew.DTYPES[t]
    low, high = ew.int_range(t)
    x, y = (rng.integers(low, high, 40000, endpoint=True, dtype=kind) >> rng.integers(0, ew.bits_of(t), 40000).astype(kind) for _ in range(2))
    y[:200] = np.arange(200)
    x[200:400] = 0
    check("power", t, t, [x, y])


# --- complex numbers ---

COMPLEX = {"c64": (np.complex64, "f32", [1e-40, 3e38, 1e20]), "c128": (np.complex128, "f64", [1e-310, 1e-200, 1e-90, 1.5e308, 1e150, 1e75])}


def complex_values(t, arity):
    """Parts that are ordinary, special, far apart in size, or together near the unit circle; for a while all are ordinary."""
    rng = np.random.default_rng(arity)
    of, real, far = COMPLEX[t]
    special = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, 88, -700, 3e9, *far], real.replace("f", "float"))
    arrays = []
    for _ in range(arity):
        parts = (rng.standard_normal((2, 3000)) * 10.0 ** rng.integers(-4, 4, (2, 3000))).astype(special.dtype)
        some = rng.random(parts.shape) < 0.2
        some[:, 1000:1500] = False
        parts[some] = rng.choice(special, some.sum())
        z = np.empty(3000, of)
        z.real, z.imag = parts
        z[::7] = np.exp(1j * rng.uniform(-4, 4, len(z[::7])))
        arrays.append(z)
    return arrays


@pytest.mark.parametrize("t", COMPLEX)
def test_complex_ops_have_the_bits_of_the_reference(t):
    for op, arity, types in ew.table():
        if t not in types:
            continue
        arrays = complex_values(t, arity)
        to = COMPLEX[t][1] if op in ("abs", "real", "imag") else "pred" if op == "compare" else t
        for extra in (", direction=EQ", ", direction=NE") if op == "compare" else ("",):
            check(op, t, to, arrays, extra)


@pytest.mark.parametrize("t", TYPES)
def test_conversions_to_complex_numbers_have_the_bits_of_the_reference(t):
    for to in COMPLEX:
        check("convert", t, to, values(t, 1))


@pytest.mark.parametrize("t", COMPLEX)
def test_parts_and_sizes_of_complex_numbers_have_the_bits_of_the_reference(t):
    other, x = "c64" if t == "c128" else "c128", complex_values(t, 1)
    check("convert", t, other, x)
    parts = [np.ascontiguousarray(part) for part in (x[0].real, x[0].imag)]
    check("complex", COMPLEX[t][1], t, parts)


MOVES = """HloModule m
most {
  a = P[] parameter(0)
  b = P[] parameter(1)
  ROOT c = P[] maximum(a, b)
}
ENTRY e {
  x = T[3,70] parameter(0)
  y = T[3,70] parameter(1)
  k = T[] constant((0.5, -2))
  none = T[] constant((0, 0))
  p = T[3,74] pad(x, none), padding=0_0x3_1
  s = T[3,70] slice(p), slice={[0:3], [2:72]}
  all = T[3,70] broadcast(k), dimensions={}
  m = T[3,70] multiply(s, all)
  equal = pred[3,70] compare(x, y), direction=NE
  chosen = T[3,70] select(equal, m, y)
  even = T[3,35] slice(chosen), slice={[0:3], [0:70:2]}
  odd = T[3,35] slice(y), slice={[0:3], [1:70:2]}
  both = T[3,35] multiply(even, odd)
  conjugate = T[3,35] subtract(even, both)
  back = T[3,35] reverse(conjugate), dimensions={1}
  size = P[3,35] abs(back)
  zero = P[] constant(0)
  largest = P[3] reduce(size, zero), dimensions={1}, to_apply=most
  ROOT r = (T[3,35], P[3], T[3,70]) tuple(back, largest, chosen)
}
"""


@pytest.mark.parametrize("t", COMPLEX)
def test_complex_numbers_are_moved_as_the_reference_moves_them(t):
    rng = np.random.default_rng(1)
    text = MOVES.replace("T[", t + "[").replace("P[", COMPLEX[t][1] + "[")
    x, y = ((rng.standard_normal((3, 70)) + 1j * rng.standard_normal((3, 70))).astype(COMPLEX[t][0]) for _ in range(2))
    got, want = xlac.compile(text)(x, y), xlac.interpret(text, x, y)
    for g, w in zip(got, want):
        assert np.asarray(g).tobytes() == np.asarray(w).tobytes()
