"""Every elementwise opcode on every element type the verifier allows, against NumPy and ml_dtypes, special values included."""
import elementwise as ew
import numpy as np
import pytest

import xlac

CASES = [(op, arity, t) for op, arity, types in ew.table() for t in types if op not in ("complex", "reduce-precision")]


def result_type(opcode, t):
    if opcode in ("compare", "is-finite"):
        return "pred"
    if opcode in ("abs", "real", "imag"):
        return {"c64": "f32", "c128": "f64"}.get(t, t)
    return t


def attributes(opcode, t):
    return (", direction=" + ("EQ" if t[0] == "c" else "LT")) if opcode == "compare" else ""


def run(opcode, t, arrays, out=None, extra=None):
    n = arrays[0].size
    lines = [f"  p{i} = {t if isinstance(t, str) else t[i]}[{n}] parameter({i})" for i in range(len(arrays))]
    names = ", ".join(f"p{i}" for i in range(len(arrays)))
    extra = attributes(opcode, t) if extra is None else extra
    lines.append(f"  ROOT r = {out or result_type(opcode, t)}[{n}] {opcode}({names}){extra}")
    text = "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n"
    return xlac.interpret(xlac.parse(text), *arrays)  # for atan


def ordered(a):
    """Float bits as integers whose differences count representable values; all NaNs alike, zeros alike."""
    bits = a.view({1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[a.dtype.itemsize]).astype(np.int64)
    low = np.int64(-1) << (8 * a.dtype.itemsize - 1)
    return np.where(bits < 0, low - bits, bits)


def assert_floats_match(got, want, ulps, *args, skip=False):
    """`skip` marks lanes that are NaN in f64: a type without NaN makes of it a zero or what it will."""
    got64, want64 = got.astype(np.float64), want.astype(np.float64)
    got64, want64 = np.where(skip, 0, got64), np.where(skip, 0, want64)
    nan = np.isnan(want64)
    np.testing.assert_array_equal(np.isnan(got64), nan)
    off = np.where(nan | skip, 0, abs(ordered(got) - ordered(want)))
    bad = (off > ulps) & ~((got64 == want64) & (got64 == 0))
    assert not bad.any(), [(tuple(a[i] for a in args), got[i], want[i]) for i in np.flatnonzero(bad)[:5]]
    exact = ~nan & (got64 == want64)
    signs = np.signbit(got64) != np.signbit(want64)
    assert not (exact & signs).any(), [(tuple(a[i] for a in args), got[i]) for i in np.flatnonzero(exact & signs)[:5]]


def assert_complex_match(opcode, got, want, args, eps):
    """Relative to the magnitude, where the reference is finite and C99's functions are not at a branch point or pole."""
    ok = np.isfinite(want) & (abs(want) < 0.99 * np.finfo(np.float32).max)
    for a in args:
        ok &= np.isfinite(a) & (abs(a) < 50)
        if opcode in ("atan2", "power"):  # NumPy takes another side of the cut by the sign of zero
            ok &= (a.real != 0) & (a.imag != 0)
    off = abs(got.astype(want.dtype) - want) / np.maximum(abs(want), 1e-30)
    bad = ok & ~(off <= eps)
    assert not bad.any(), [(tuple(a[i] for a in args), got[i], want[i]) for i in np.flatnonzero(bad)[:5]]


@pytest.mark.parametrize("opcode,arity,t", CASES, ids=[f"{o}-{t}" for o, _, t in CASES])
def test_against_numpy(opcode, arity, t):
    args = ew.operands(t, arity)
    if opcode == "compare" and t[0] == "c":
        got, want = run(opcode, t, args), args[0] == args[1]
        np.testing.assert_array_equal(got, want)
        return
    got = run(opcode, t, args)
    want, ulps, unknown = ew.reference(opcode, t, *args)
    assert got.dtype == np.dtype(ew.DTYPES[result_type(opcode, t)])
    if ulps is None and opcode in ("abs", "real", "imag"):
        assert_floats_match(got, want.astype(got.dtype), 1, *args)
    elif ulps is None:
        assert_complex_match(opcode, got, want, args, 1e-6 if t == "c64" else 1e-10 if opcode == "atan2" else 1e-13)
    elif got.dtype == np.bool_ or not ew.is_float(t):
        bad = got != want
        assert not bad.any(), [(tuple(a[i] for a in args), got[i], want[i]) for i in np.flatnonzero(bad)[:5]]
    else:
        assert_floats_match(got, want, ulps, *args, skip=unknown)


@pytest.mark.parametrize("direction,f", [("EQ", np.equal), ("NE", np.not_equal), ("GE", np.greater_equal),
                                         ("GT", np.greater), ("LE", np.less_equal), ("LT", np.less)])
def test_compare_directions(direction, f):
    for t in ew.DTYPES:
        if t[0] == "c":
            continue
        args = ew.operands(t, 2)
        want = f(*[a if t == "pred" else a.astype(np.float64 if ew.is_float(t) else object) for a in args])
        np.testing.assert_array_equal(run("compare", t, args, "pred", f", direction={direction}"), want.astype(bool), t)


@pytest.mark.parametrize("t", [t for t in ew.DTYPES if ew.is_float(t) and t not in ("f8e8m0fnu",)])
def test_total_order_is_the_order_of_sorted_values(t):
    x = ew.special_values(t)
    a, b = [g.ravel() for g in np.meshgrid(x, x)]
    got = run("compare", t, [a, b], "pred", ", direction=LT, type=TOTALORDER")
    a, b = a.astype(np.float64), b.astype(np.float64)
    known = ~np.isnan(a) & ~np.isnan(b)
    want = (a < b) | ((a == b) & np.signbit(a) & ~np.signbit(b))
    np.testing.assert_array_equal(got[known], want[known])


@pytest.mark.parametrize("t", list(ew.DTYPES))
def test_select_takes_bits(t):
    rng = np.random.default_rng(0)
    a, b = ew.operands(t, 2)
    which = rng.random(a.size) < 0.5
    got = run("select", ["pred", t, t], [which, a, b], t)
    want = np.where(which, a, b).astype(a.dtype)
    if ew.is_float(t) or t[0] == "c":
        np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("t", ["f32", "f64"])
def test_complex_joins_parts(t):
    re, im = ew.operands(t, 2)
    got = run("complex", t, [re, im], {"f32": "c64", "f64": "c128"}[t])
    np.testing.assert_array_equal(got.real, re)
    np.testing.assert_array_equal(got.imag, im)


@pytest.mark.parametrize("to", list(ew.DTYPES))
@pytest.mark.parametrize("t", list(ew.DTYPES))
def test_convert(t, to):
    x = ew.operands(t, 1)[0]
    if t[0] == "c" and to[0] != "c":
        pytest.skip("XLA has no such conversion")
    got = run("convert", t, [x], to)
    with np.errstate(all="ignore"):
        if to == "pred":
            want = x.astype(np.complex128 if t[0] == "c" else np.float64) != 0
        elif to[0] in "su" and ew.is_float(t):
            low, high = ew.int_range(to)
            want = np.array([0 if v != v else min(max(int(min(max(v, -1e30), 1e30)), low), high) for v in x.astype(np.float64)], object)
        elif to[0] in "su":
            want = np.array([ew.wrap(int(v), to) for v in x], object)
        elif ew.is_narrow(t) or (t == "f64" and to == "f8e8m0fnu"):  # ml_dtypes has not all of these directly
            want = x.astype(np.float32).astype(ew.DTYPES[to])
        else:
            want = x.astype(np.float64 if t[0] in "sup" and ew.is_narrow(to) else x.dtype).astype(ew.DTYPES[to])
    if to == "f8e8m0fnu" and t == "f64":
        keep = x.astype(np.float32) != 0  # what underflows f32 is the least e8m0 here, in ml_dtypes NaN
        x, got, want = x[keep], got[keep], want[keep]
    if to[0] in "sup":
        np.testing.assert_array_equal(got.astype(object), want.astype(object))
    elif to[0] == "c":
        np.testing.assert_array_equal(got, want)
    else:
        assert_floats_match(got, want, 1 if ew.is_narrow(to) and t in ("f64", "s64", "u64", "s32", "u32") else 0, x)
