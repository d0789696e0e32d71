"""Elementwise ops against real XLA: one module a type, since a compilation costs what it costs whatever is in it.

XLA:CPU flushes subnormals and approximates some functions, so inputs are kept normal and the tolerance in f32 and f64 is wider
than xlac's own error, which test_math.py holds to 1 ulp.
"""
import elementwise as ew
import numpy as np
import pytest

import xlac

NO_XLA = {"acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "mulhi", "complex", "reduce-precision"}
TYPES = ["pred", "s2", "s4", "s8", "s16", "s32", "s64", "u2", "u4", "u8", "u16", "u32", "u64", "f4e2m1fn", "f8e4m3fn",
         "f8e5m2", "f8e3m4", "f16", "bf16", "f32", "f64", "c64", "c128"]
ULPS = {"f32": 6, "f64": 12}  # XLA itself was seen 4 and 8 off


@pytest.fixture(scope="module")
def real():
    return pytest.importorskip("real_xla")


def rows(t):
    return [(op, arity) for op, arity, types in ew.table() if t in types and op not in NO_XLA]


def result_type(opcode, t):
    if opcode in ("compare", "is-finite"):
        return "pred"
    return {"c64": "f32", "c128": "f64"}.get(t, t) if opcode in ("abs", "real", "imag") else t


def inputs(t):
    """Three arrays of one length: special values against each other, and random ones; no subnormals, no NaN payloads."""
    rng = np.random.default_rng(11)
    s = ew.special_values(t)
    if ew.is_float(t):
        wide = s.astype(np.float64)
        s = s[np.isnan(wide) | (wide == 0) | (abs(wide) >= float(ew.ml_dtypes.finfo(ew.DTYPES[t]).tiny))]
    grid = np.meshgrid(s, s)
    a, b = grid[0].ravel(), grid[1].ravel()
    c = rng.permutation(a)
    return [np.concatenate([v, ew.random_values(t, 300, rng)]) for v in (a, b, c)]


def module(t, n):
    lines = [f"  p{i} = {t}[{n}] parameter({i})" for i in range(3)]
    names = []
    for op, arity in rows(t):
        operands = ", ".join(f"p{i}" for i in range(arity))
        extra = (", direction=" + ("EQ" if t[0] == "c" else "LT")) if op == "compare" else ""
        names.append("v" + op.replace("-", "_"))
        lines.append(f"  {names[-1]} = {result_type(op, t)}[{n}] {op}({operands}){extra}")
    types = ", ".join(f"{result_type(op, t)}[{n}]" for op, _ in rows(t))
    lines.append(f"  ROOT r = ({types}) tuple({', '.join(names)})")
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n"


def as_wide(a):
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


def flushed(a, tiny):
    return np.where(abs(a) < tiny, 0, a)


def mismatches(opcode, t, got, want, args):
    if opcode == "power" and t[0] in "su":  # XLA uses only the six lowest bits of the exponent
        return (got != want) & (0 <= args[1].astype(np.int64)) & (args[1].astype(np.uint64) < 64)
    if opcode == "popcnt" and t in ("s2", "s4"):  # XLA counts the eight bits that such a number is kept in
        return np.zeros(got.shape, bool)
    if got.dtype == np.bool_ or t[0] in "su":
        return got != want
    g, w = as_wide(got), as_wide(want)
    info = ew.ml_dtypes.finfo(np.zeros(0, got.dtype).real.dtype if t[0] == "c" else got.dtype)
    tiny, eps = float(info.tiny), float(info.eps)
    nan = np.isnan(g) & np.isnan(w)
    if t[0] == "c":
        ok = np.isfinite(g) & np.isfinite(w) & (abs(w) < 1e15)
        if opcode in ("sqrt", "atan2"):  # at the branch cuts, where the special values are, XLA takes -0 for 0
            ok[:-300] = False
        return ok & (abs(g - w) > (1e-5 if t == "c64" else 1e-11) * np.maximum(abs(w), 1))
    g, w = flushed(g, tiny), flushed(w, tiny)
    rounds = opcode in ew.FLOAT_FUNCTIONS or (opcode == "sqrt" and ew.is_narrow(t))  # XLA computes some by way of f16
    allowed = ULPS.get(t, 2) * eps if rounds else 0
    same = nan | (g == w) | (abs(g - w) <= allowed * abs(w))
    edge = (abs(w) >= 0.99 * float(info.max)) & (abs(g) >= 0.99 * float(info.max))  # rounds over or just not
    return ~(same | edge)


@pytest.mark.parametrize("t", TYPES)
def test_against_xla(t, real):
    args = inputs(t)
    text = module(t, args[0].size)
    want = real.run(text, *args)
    got = xlac.interpret(xlac.parse(text), *args)
    wrong = {}
    for (op, arity), g, w in zip(rows(t), got, want):
        assert g.dtype == w.dtype
        bad = mismatches(op, t, g, w, args)
        if bad.any():
            i = np.flatnonzero(bad)[:4]
            wrong[op] = [(tuple(a[j] for a in args[:arity]), g[j], w[j]) for j in i] + [int(bad.sum())]
    assert not wrong, "\n".join(f"{k}: {v}" for k, v in wrong.items())
