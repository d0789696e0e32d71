"""reassociate: which sums, products and divisions it rewrites, and which it must not."""
import ml_dtypes
import numpy as np
import pytest

import xlac


def text(t, body, numbers=()):
    lines = "".join(f"  n{i} = {t}[] constant({v})\n  c{i} = {t}[50] broadcast(n{i}), dimensions={{}}\n" for i, v in enumerate(numbers))
    return f"HloModule m\nENTRY e {{\n  x = {t}[50] parameter(0)\n  y = {t}[50] parameter(1)\n{lines}{body}\n}}"


def run(source):
    return xlac.parse(source).run("reassociate,algebraic-simplification,cse,dce")


def opcodes(module):
    return sorted(i.opcode for i in module.entry.instructions if i.opcode not in ("parameter", "constant", "broadcast"))


CHAIN = "  a = {t}[50] {op}(x, c0)\n  ROOT r = {t}[50] {op}({order})"
MERGED = [("f32", "multiply", (3, 5)), ("f32", "add", (3, 5)), ("f64", "multiply", ("1e200", "1e100")), ("f16", "multiply", (8, 16)), ("bf16", "add", (1, -1))]
KEPT = [("f32", "multiply", ("1e30", "1e30")), ("f32", "multiply", ("1e-30", "1e-30")), ("f32", "add", ("3e38", "3e38")), ("f32", "multiply", (0, 5)),
        ("f16", "multiply", (300, 300)), ("f32", "multiply", ("inf", 2)), ("f32", "add", ("nan", 2)), ("s32", "multiply", (3, 5))]
X = np.array([0, -0.0, 1, 2.5, np.inf, -np.inf, np.nan, 1e4, -3, 7] * 5)


def apply(module, t, *arrays):
    dtype = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64, "s32": np.int32}[t]
    with np.errstate(all="ignore"):
        arrays = [np.nan_to_num(a).astype(dtype) if t == "s32" else a.astype(dtype) for a in arrays]
    return np.asarray(xlac.interpret(module, *arrays)).astype(np.float64)


@pytest.mark.parametrize("order", ("a, c1", "c1, a"))
@pytest.mark.parametrize("t,op,numbers,left", [(*m, 1) for m in MERGED] + [(*k, 2) for k in KEPT])
def test_chains_with_numbers(t, op, numbers, left, order):
    source = text(t, CHAIN.format(t=t, op=op, order=order), numbers)
    module = run(source)
    assert opcodes(module).count(op) == left
    want, got = apply(xlac.parse(source), t, X, X), apply(module, t, X, X)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=2e-2)


@pytest.mark.parametrize("t,number,left", (("f32", 3, "multiply"), ("f32", 0, "divide"), ("f32", "inf", "divide"), ("f32", "nan", "divide"),
                                           ("f32", "1e-39", "divide"), ("f32", "3e38", "divide"), ("f16", "60000", "divide"), ("f64", "-7", "multiply")))
def test_divisions_by_numbers(t, number, left):
    source = text(t, f"  ROOT r = {t}[50] divide(x, c0)", [number])
    module = run(source)
    assert opcodes(module) == [left]
    np.testing.assert_allclose(apply(module, t, X, X), apply(xlac.parse(source), t, X, X), rtol=1e-3)


@pytest.mark.parametrize("t", ("f32", "f64", "f16"))
def test_divisions_by_square_roots(t):
    source = text(t, f"  s = {t}[50] sqrt(y)\n  ROOT r = {t}[50] divide(x, s)")
    module = run(source)
    assert opcodes(module) == ["multiply", "rsqrt"]
    x, y = np.repeat(X[:10], 10)[:50], np.tile(X[:10], 10)[:50]
    np.testing.assert_allclose(apply(module, t, x, y), apply(xlac.parse(source), t, x, y), rtol=2e-3)
    rows = f"""HloModule m
ENTRY e {{
  x = {t}[5,10] parameter(0)
  y = {t}[5] parameter(1)
  s = {t}[5] sqrt(y)
  b = {t}[5,10] broadcast(s), dimensions={{0}}
  ROOT r = {t}[5,10] divide(x, b)
}}"""
    module = run(rows)
    assert opcodes(module) == ["multiply", "rsqrt"]
    exe = xlac.compile(rows, numerics="fast")
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[t]
    args = X.reshape(5, 10).astype(dtype), np.array([1, 4, 9, 0, np.inf], dtype)
    np.testing.assert_allclose(exe(*args), xlac.compile(rows)(*args), rtol=3e-3)
