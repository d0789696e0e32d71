"""numerics="fast": bounds in ulp for every elementary function, NaN and infinities where strict numerics have them, the same bits for any number
of threads, at every level of vector instructions."""
import os
import pathlib
import random
import sys

import ml_dtypes
import numpy as np
import pytest

import xlac

LEVELS = ("portable", "avx2", "avx512")
NUMPY = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
# ulp of a normal result, as docs/numerics.md promises.
BOUNDS = {"exponential": 1, "exponential-minus-one": 1, "log": 1, "log-plus-one": 1, "tanh": 3, "logistic": 3, "sine": 2, "cosine": 2, "tan": 1,
          "rsqrt": 2, "sqrt": 1, "erf": 1, "cbrt": 1}
SPECIAL = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 88.7, 88.8, -87.4, -103, -105, 709, 710, -744, -750, 3e38, -3e38, 1e-39, 1e-45, 2e-308, 1e5, 40000]


@pytest.fixture(params=LEVELS)
def level(request, monkeypatch):
    monkeypatch.setenv("XLAC_MAX_ISA", request.param)


def compiled(text, **options):
    return xlac.compile(xlac.parse(text), **options)


def unary(opcode, t, x, **options):
    return compiled(f"HloModule m\nENTRY e {{\n  x = {t}[{x.size}] parameter(0)\n  ROOT r = {t}[{x.size}] {opcode}(x)\n}}", **options)(x)


def samples(dtype, n=4000):
    rng = np.random.default_rng(3)
    bits = {4: np.uint32, 8: np.uint64}[np.dtype(dtype).itemsize]
    anything = rng.integers(0, np.iinfo(bits).max, n, dtype=bits).view(dtype)
    signs = rng.choice([-1, 1], n)
    with np.errstate(over="ignore"):
        return np.concatenate([anything, (signs * 10.0 ** rng.uniform(-9, 3, n)).astype(dtype), rng.uniform(-9, 9, n).astype(dtype),
                               np.array(SPECIAL).astype(dtype)])


@pytest.mark.parametrize("opcode", BOUNDS)
def test_functions_of_f32_are_within_their_bounds(opcode, level):
    x = samples(np.float32)
    with np.errstate(all="ignore"):
        exact = unary(opcode, "f64", x.astype(np.float64))
        rounded = exact.astype(np.float32)
    got = unary(opcode, "f32", x, numerics="fast")
    same = ~np.isfinite(rounded)
    np.testing.assert_array_equal(got[same], rounded[same])
    zero = rounded == 0
    np.testing.assert_array_equal(np.signbit(got[zero & (x == 0)]), np.signbit(rounded[zero & (x == 0)]))
    normal = np.isfinite(rounded) & (np.abs(exact) >= 2.0**-126)
    unit = np.spacing(np.abs(rounded[normal])).astype(np.float64)
    off = np.abs(got[normal].astype(np.float64) - exact[normal]) / unit
    assert off.max() <= BOUNDS[opcode], (off.max(), x[normal][off.argmax()])
    below = ~same & ~normal
    assert np.all(np.abs(got[below]) <= 2.0**-126)


def test_functions_of_f32_that_fast_leaves_alone_have_the_bits_of_strict(level):
    """benchmarks/accuracy.py measures them once."""
    x = samples(np.float32)
    for opcode in ("exponential-minus-one", "log-plus-one", "tan", "erf", "sqrt", "cbrt", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"):
        np.testing.assert_array_equal(unary(opcode, "f32", x, numerics="fast").view(np.int32), unary(opcode, "f32", x).view(np.int32), opcode)


@pytest.mark.parametrize("opcode", [o for o in BOUNDS if o != "tan"])
def test_functions_of_f64_are_within_two_ulp_of_strict_ones(opcode, level):
    x = samples(np.float64)
    strict, got = unary(opcode, "f64", x), unary(opcode, "f64", x, numerics="fast")
    plain = np.isfinite(strict)
    np.testing.assert_array_equal(got[~plain], strict[~plain])
    assert np.all(np.abs(got[plain] - strict[plain]) <= 2 * np.spacing(np.abs(strict[plain])))


BINARY = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}


@pytest.mark.parametrize("t", ("f32", "f64"))
@pytest.mark.parametrize("opcode", BINARY)
@pytest.mark.parametrize("swapped", (False, True))
def test_a_number_for_an_operand_keeps_nan_infinities_and_zeros(opcode, t, swapped, level):
    tiny, huge = float(np.finfo(NUMPY[t]).tiny), float(np.finfo(NUMPY[t]).max)
    x = np.array([0.0, -0.0, 1, -3, np.inf, -np.inf, np.nan, tiny, -tiny / 4, huge, -huge] * 8, NUMPY[t])
    operands = "y, x" if swapped else "x, y"
    exe = compiled(f"""HloModule m
ENTRY e {{
  x = {t}[88] parameter(0)
  n = {t}[] parameter(1)
  y = {t}[88] broadcast(n), dimensions={{}}
  ROOT r = {t}[88] {opcode}({operands})
}}""", numerics="fast")
    for number in (0.0, -0.0, 3, -7, np.inf, -np.inf, np.nan, tiny, tiny / 8, huge, huge / 2):
        n = NUMPY[t](number)
        with np.errstate(all="ignore"):
            want = BINARY[opcode](n, x) if swapped else BINARY[opcode](x, n)
        got = exe(x, n)
        plain = np.isfinite(want) & (np.abs(want) >= tiny)
        np.testing.assert_array_equal(got[~np.isfinite(want)], want[~np.isfinite(want)])
        np.testing.assert_allclose(got[plain], want[plain], rtol=2 * np.finfo(NUMPY[t]).eps)
        np.testing.assert_array_equal(np.signbit(got[~np.isnan(want)]), np.signbit(want[~np.isnan(want)]))


@pytest.mark.parametrize("body", ["multiply(x, zero)", "subtract(x, x)", "divide(x, x)", "maximum(x, zero)", "minimum(x, zero)", "multiply(h, two)",
                                  "add(x, zero)", "power(x, zero)", "divide(zero, x)"])
@pytest.mark.parametrize("t", ("f32", "bf16", "f16"))
def test_nothing_that_is_no_number_is_lost(body, t, level):
    text = f"""HloModule m
ENTRY e {{
  x = {t}[96] parameter(0)
  c0 = {t}[] constant(0)
  zero = {t}[96] broadcast(c0), dimensions={{}}
  c2 = {t}[] constant(2)
  two = {t}[96] broadcast(c2), dimensions={{}}
  ch = {t}[] constant(0.5)
  half = {t}[96] broadcast(ch), dimensions={{}}
  h = {t}[96] multiply(x, half)
  ROOT r = {t}[96] {body}
}}"""
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2, 1e4] * 12).astype(NUMPY[t])
    got, want = (np.asarray(compiled(text, numerics=n)(x)).astype(np.float32) for n in ("fast", "strict"))
    np.testing.assert_array_equal(got, want)


def test_kernels_without_functions_are_those_of_strict_numerics(level):
    text = """HloModule m
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[64,1024] parameter(0)
  y = f32[64,1024] parameter(1)
  n = f32[] parameter(2)
  zero = f32[] constant(0)
  c = f32[64,1024] broadcast(n), dimensions={}
  p = f32[64,1024] multiply(x, y)
  q = f32[64,1024] subtract(p, x)
  d = f32[64,1024] divide(q, c)
  s = f32[64] reduce(p, zero), dimensions={1}, to_apply=add
  ROOT r = (f32[64,1024], f32[64]) tuple(d, s)
}"""
    rng = np.random.default_rng(5)
    args = rng.standard_normal((64, 1024), np.float32), rng.standard_normal((64, 1024), np.float32), np.float32(3.7)
    for got, want in zip(compiled(text, numerics="fast")(*args), compiled(text)(*args)):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("t,third", (("bf16", 0.333984375), ("f16", 0.333251953125)))
@pytest.mark.parametrize("n", (5000, 2077))
def test_narrow_floats_are_rounded_at_the_end_of_a_kernel_and_where_converted(t, third, n, level):
    text = f"""HloModule m
ENTRY e {{
  x = {t}[{n}] parameter(0)
  b = {t}[] parameter(1)
  y = {t}[{n}] broadcast(b), dimensions={{}}
  s = {t}[{n}] add(x, y)
  ROOT r = {t}[{n}] subtract(s, y)
}}"""
    x, b = np.full(n, third, NUMPY[t]), NUMPY[t](64)
    assert np.all(np.asarray(compiled(text, numerics="fast")(x, b)) == NUMPY[t](third))
    assert np.all(np.asarray(compiled(text)(x, b)) != NUMPY[t](third))
    rounding = text.replace(f"  s = {t}[{n}] add(x, y)", f"""  wx = f32[{n}] convert(x)
  wy = f32[{n}] convert(y)
  ws = f32[{n}] add(wx, wy)
  s = {t}[{n}] convert(ws)""")
    np.testing.assert_array_equal(np.asarray(compiled(rounding, numerics="fast")(x, b)), np.asarray(compiled(text)(x, b)))


KERNELS = """HloModule m
add {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT r = {t}[] add(a, b)
}}
ENTRY e {{
  x = {t}[60,{n}] parameter(0)
  row = {t}[{n}] parameter(1)
  y = {t}[60,{n}] broadcast(row), dimensions={{1}}
  column = {t}[60] parameter(2)
  z = {t}[60,{n}] broadcast(column), dimensions={{0}}
  i = {t}[60,{n}] iota(), iota_dimension=1
  zero = {t}[] constant(0)
  zeros = {t}[60,{n}] broadcast(zero), dimensions={{}}
  a = {t}[60,{n}] multiply(x, y)
  b = {t}[60,{n}] add(a, z)
  c = {t}[60,{n}] tanh(b)
  p = pred[60,{n}] compare(b, zeros), direction=GT
  d = {t}[60,{n}] select(p, c, a)
  f = {t}[60,{n}] maximum(d, i)
  g = {t}[60,{n}] divide(f, z)
  s = {t}[60] reduce(g, zero), dimensions={{1}}, to_apply=add
  u = {t}[{n}] reduce(g, zero), dimensions={{0}}, to_apply=add
  ROOT out = ({t}[60,{n}], {t}[60], {t}[{n}]) tuple(g, s, u)
}}"""


@pytest.mark.parametrize("t", NUMPY)
@pytest.mark.parametrize("n", (70, 2000, 3))
def test_kernels_agree_with_strict_ones_for_any_number_of_threads(t, n, level):
    rng = np.random.default_rng(n)
    arrays = [rng.uniform(0.5, 2, shape).astype(NUMPY[t]) for shape in ((60, n), (n,), (60,))]
    text = KERNELS.format(t=t, n=n)
    strict = compiled(text)(*arrays)
    runs = [compiled(text, numerics="fast", threads=k)(*arrays) for k in (1, 2, 7)]
    for first, *others, want in zip(*runs, strict):
        for other in others:
            assert np.asarray(first).tobytes() == np.asarray(other).tobytes()
        eps = float(ml_dtypes.finfo(NUMPY[t]).eps)
        np.testing.assert_allclose(np.asarray(first).astype(np.float64), np.asarray(want).astype(np.float64), rtol=8 * eps, atol=8 * eps)


def random_chain(seed):
    """Elementwise ops whose results stay near 1, so that errors do not grow: text and arrays."""
    r = random.Random(seed)
    t, n = r.choice(list(NUMPY)), r.choice([1, 7, 65, 300, 2500])
    lines = [f"  v0 = {t}[{n}] parameter(0)", f"  v1 = {t}[{n}] parameter(1)", f"  k = {t}[] parameter(2)", f"  v2 = {t}[{n}] broadcast(k), dimensions={{}}",
             f"  c = {t}[] constant(1)", f"  one = {t}[{n}] broadcast(c), dimensions={{}}"]
    m = 3
    for _ in range(r.randint(2, 14)):
        a, b = f"v{r.randrange(m)}", f"v{r.randrange(m)}"
        op = r.choice(["add", "multiply", "divide", "maximum", "minimum", "tanh", "logistic", "exponential", "log", "sine", "rsqrt", "sqrt"])
        two = op in ("add", "multiply", "divide", "maximum", "minimum")
        lines.append(f"  w{m} = {t}[{n}] {op}({a}{', ' + b if two else ''})")
        lines.append(f"  a{m} = {t}[{n}] abs(w{m})")
        lines.append(f"  l{m} = {t}[{n}] logistic(a{m})")  # in [1/2, 1]
        lines.append(f"  v{m} = {t}[{n}] add(l{m}, one)")
        m += 1
    text = "HloModule m\nENTRY e {\n" + "\n".join(lines) + f"\n  ROOT r = {t}[{n}] add(v{m - 1}, v{m - 2})\n}}"
    rng = np.random.default_rng(seed)
    return t, text, [rng.uniform(1, 2, n).astype(NUMPY[t]), rng.uniform(1, 2, n).astype(NUMPY[t]), NUMPY[t](1.3)]


@pytest.mark.parametrize("part", range(4))
def test_random_chains_stay_close_to_strict_ones(part):
    for seed in range(part * 1000, part * 1000 + int(os.environ.get("XLAC_RANDOM_CHAINS", 200)) // 4):
        t, text, arrays = random_chain(seed)
        want, *runs = [np.asarray(compiled(text, numerics=n, threads=k)(*arrays)) for n, k in (("strict", 1), ("fast", 1), ("fast", 3))]
        assert runs[0].tobytes() == runs[1].tobytes(), seed
        eps = float(ml_dtypes.finfo(NUMPY[t]).eps)
        np.testing.assert_allclose(runs[0].astype(np.float64), want.astype(np.float64), rtol=24 * eps, err_msg=f"seed {seed}")


def test_an_executable_keeps_its_numerics():
    text = "HloModule m\nENTRY e {\n  x = f32[4096] parameter(0)\n  ROOT r = f32[4096] logistic(x)\n}"
    x = np.linspace(-20, 20, 4096, dtype=np.float32)
    fast, strict = compiled(text, numerics="fast"), compiled(text)
    assert fast.numerics == "fast" and "fast numerics" in repr(fast) and str(fast.explain("schedule")).startswith("fast numerics")
    assert strict.numerics == "strict" and "fast" not in repr(strict) and "fast" not in strict.explain("schedule")
    assert strict(x).tobytes() == xlac.interpret(xlac.parse(text), x).tobytes()
    again = xlac.load(fast.serialize())
    assert again.numerics == "fast" and again(x).tobytes() == fast(x).tobytes()
    assert xlac.load(strict.serialize()).numerics == "strict"
    with pytest.raises(ValueError, match="numerics must be 'strict' or 'fast', not 'loose'"):
        compiled(text, numerics="loose")
    assert not xlac.diff(text, x, a="compiled", b="fast", rtol=1e-6)


def test_errors_are_measured_on_each_backend_and_with_both_numerics():
    """What docs/numerics.md's table is made of: a backend that agrees with the first one has its error, and no figure is one of nothing."""
    pytest.importorskip("mpmath")
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))
    import accuracy

    backends = list(accuracy.BACKENDS)
    with np.errstate(all="ignore"):
        found = accuracy.worst_f32("exponential-minus-one", 16381, backends)
        worst, differ = accuracy.worst_f64("exponential-minus-one", accuracy.samples(80), backends)
    assert set(found) == {(b, "strict") for b in backends}, "fast computes it as strict does"
    assert {row[0] for row in found.values()} == {found[backends[0], "strict"][0]} and 0.5 < found[backends[0], "strict"][0] < 1
    assert all(row[1:] == [0, True] for row in found.values()) and differ == 0
    assert 0.3 < worst["strict"] < 1 and 0.3 < worst["fast"] < 1
