"""One op after another, and ops with a number for an operand: the interpreter's bits, for every pair and place of the operands."""
import itertools

import numpy as np
import pytest

from .conftest import same_numbers

OPS = ["add", "multiply", "subtract", "divide", "maximum", "minimum"]
SPECIAL = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 3e-39, 1e30]


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("n", [81, 5000])
def test_pairs(both, t, n):
    kind = {"f32": np.float32, "f64": np.float64}[t]
    rng = np.random.default_rng(n)
    x, y = (rng.standard_normal(n).astype(kind) for _ in range(2))
    x[:81], y[:81] = zip(*itertools.product(SPECIAL, SPECIAL))
    lines, results = [f"  x = {t}[{n}] parameter(0)", f"  y = {t}[{n}] parameter(1)", f"  s = {t}[] parameter(2)", f"  c = {t}[] constant(1.1)",
                      f"  sb = {t}[{n}] broadcast(s), dimensions={{}}", f"  cb = {t}[{n}] broadcast(c), dimensions={{}}", f"  e = {t}[{n}] exponential(x)",
                      f"  sc = {t}[] multiply(s, c)", f"  scb = {t}[{n}] broadcast(sc), dimensions={{}}"], []
    for i, (first, second, a, b, order) in enumerate(itertools.product(OPS, OPS, ["x, y", "x, sb", "cb, y", "e, e", "sb, cb"], ["y", "cb", "scb"], [0, 1])):
        lines += [f"  t{i} = {t}[{n}] {first}({a})", f"  q{i} = {t}[{n}] {second}({f't{i}, {b}' if order == 0 else f'{b}, t{i}'})"]
        results.append(f"q{i}")
    lines.append(f"  ROOT r = ({', '.join([f'{t}[{n}]'] * len(results))}) tuple({', '.join(results)})")
    got, want, exe = both("HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}", x, y, kind(0.3))
    for i, (g, w) in enumerate(zip(got, want)):
        assert same_numbers([g], [w]), lines[9 + 2 * i:11 + 2 * i]


def test_a_long_polynomial(both):
    lines = ["  x = f32[3000] parameter(0)", "  v0 = f32[3000] sine(x)"]
    for i in range(80):
        lines += [f"  k{i} = f32[] constant({i * 0.1})", f"  b{i} = f32[3000] broadcast(k{i}), dimensions={{}}", f"  m{i} = f32[3000] multiply(v{i}, x)",
                  f"  v{i + 1} = f32[3000] add(m{i}, b{i})"]
    got, want, _ = both("HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n  ROOT r = f32[3000] tanh(v80)\n}", np.linspace(-1, 1, 3000, dtype=np.float32))
    assert same_numbers(got, want)


@pytest.mark.parametrize("t", ["s32", "u32"])
def test_integers_with_a_number(both, t):
    x = np.random.default_rng(0).integers(0, 2**32, 3000).astype(np.uint32).view({"s32": np.int32, "u32": np.uint32}[t])
    lines, results = [f"  x = {t}[3000] parameter(0)", f"  y = {t}[3000] not(x)"], []
    ops = ["add", "multiply", "subtract", "and", "or", "xor", "shift-left", "shift-right-logical", "shift-right-arithmetic"]
    for i, (op, number, order) in enumerate(itertools.product(ops, [0, 7, 31, 32, 33, 2**31 - 1], [0, 1])):
        lines += [f"  k{i} = {t}[] constant({number})", f"  b{i} = {t}[3000] broadcast(k{i}), dimensions={{}}",
                  f"  q{i} = {t}[3000] {op}({f'y, b{i}' if order == 0 else f'b{i}, y'})"]
        results.append(f"q{i}")
    lines.append(f"  ROOT r = ({', '.join([f'{t}[3000]'] * len(results))}) tuple({', '.join(results)})")
    got, want, _ = both("HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}", x)
    assert same_numbers(got, want)
