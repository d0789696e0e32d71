"""Reductions of which few results lie side by side (points of 3 coordinates): the same for any threads and instructions, integers as
the interpreter has them, floats within rounding. Products of few terms beside them."""

import numpy as np
import pytest

import xlac

OPS = {"add": "s32", "maximum": "f32", "and": "u8", "multiply": "f64"}


def reduction(op, dtype, dims, over, result):
    return f"""HloModule m
c {{ a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT c = {dtype}[] {op}(a, b) }}
ENTRY e {{
  x = {dtype}[{dims}] parameter(0)
  y = {dtype}[{dims}] maximum(x, x)
  i = {dtype}[] constant(1)
  ROOT r = {dtype}[{result}] reduce(y, i), dimensions={{{over}}}, to_apply=c
}}"""


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("inner", [2, 3, 5, 31, 64])
@pytest.mark.parametrize(("outer", "reduced"), [(1, 64), (7, 65), (3, 900), (1, 40000)])
def test_few_results_side_by_side(op, inner, outer, reduced):
    dtype = OPS[op]
    rng = np.random.default_rng(inner)
    x = rng.integers(-9, 9, (outer, reduced, inner))
    x = rng.choice([-1.0, 1.0], x.shape) if op == "multiply" else x.astype({"s32": np.int32, "f32": np.float32, "u8": np.uint8}[dtype])
    text = reduction(op, dtype, f"{outer},{reduced},{inner}", 1, f"{outer},{inner}")
    want = np.asarray(xlac.interpret(xlac.parse(text), x))
    for threads in (1, 2):
        assert np.asarray(xlac.compile(xlac.parse(text), threads=threads)(x)).tobytes() == want.tobytes()


def test_sums_of_floats_are_the_same_for_any_machine(monkeypatch):
    x = np.random.default_rng(0).standard_normal((50, 3000, 3)).astype(np.float32)
    text = reduction("add", "f32", "50,3000,3", 1, "50,3")
    got = {}
    for isa in ("portable", "avx2", "avx512"):
        monkeypatch.setenv("XLAC_MAX_ISA", isa)
        for threads in (1, 2):
            got[isa, threads] = np.asarray(xlac.compile(xlac.parse(text), threads=threads)(x)).tobytes()
    assert len(set(got.values())) == 1
    assert np.allclose(np.frombuffer(got["avx2", 1], np.float32).reshape(50, 3), 1 + x.astype(np.float64).sum(1), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
@pytest.mark.parametrize(("m", "k", "n"), [(2000, 8, 8), (333, 5, 3), (700, 31, 7), (64, 1, 2)])
def test_products_of_few_terms(m, k, n, dtype):
    rng = np.random.default_rng(k)
    a, b = rng.integers(-4, 5, (m, k)).astype(float), rng.integers(-4, 5, (k, n)).astype(float)  # whole numbers: sums are exact
    text = f"""HloModule m
ENTRY e {{
  a = f32[{m},{k}] parameter(0)
  b = f32[{k},{n}] parameter(1)
  c = {dtype}[{m},{k}] convert(a)
  d = {dtype}[{k},{n}] convert(b)
  p = {dtype}[{m},{n}] dot(c, d), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT r = f32[{m},{n}] convert(p)
}}"""
    got = np.asarray(xlac.compile(xlac.parse(text))(a.astype(np.float32), b.astype(np.float32)))
    want = np.asarray(xlac.interpret(xlac.parse(text), a.astype(np.float32), b.astype(np.float32)))
    assert (got == want).all()


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("reduced", [2, 3, 4, 7, 32, 63])
@pytest.mark.parametrize("rows", [600, 2051])
def test_short_rows_are_read_as_they_lie(op, reduced, rows):
    dtype = OPS[op]
    rng = np.random.default_rng(reduced)
    x = rng.integers(-9, 9, (rows, reduced))
    x = rng.choice([-1.0, 1.0], x.shape) if op == "multiply" else x.astype({"s32": np.int32, "f32": np.float32, "u8": np.uint8}[dtype])
    text = reduction(op, dtype, f"{rows},{reduced}", 1, f"{rows}")
    want = np.asarray(xlac.interpret(xlac.parse(text), x))
    for threads in (1, 2):
        exe = xlac.compile(xlac.parse(text), threads=threads)
        assert f"over [{rows},({reduced}),1]" in str(exe.explain("kernels"))
        assert np.asarray(exe(x)).tobytes() == want.tobytes()


@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512"])
@pytest.mark.parametrize("op", ["maximum", "minimum", "add"])
def test_short_rows_with_zeros_and_nans(op, isa, monkeypatch):
    monkeypatch.setenv("XLAC_MAX_ISA", isa)
    x = np.random.default_rng(3).choice(np.array([0.0, -0.0, np.nan, 1.5, np.inf, -np.inf], np.float32), (700, 5), p=[0.3, 0.3, 0.05, 0.2, 0.1, 0.05])
    text = reduction(op, "f32", "700,5", 1, "700").replace("constant(1)", "constant(-0)")
    got, want = np.asarray(xlac.compile(xlac.parse(text))(x)), np.asarray(xlac.interpret(xlac.parse(text), x))
    assert (np.isnan(got) == np.isnan(want)).all() and (np.nan_to_num(got).view(np.int32) == np.nan_to_num(want).view(np.int32)).all()


def test_rows_of_products_and_of_what_is_broadcast():
    """Both sides dense: by rows. One side a vector of the results: by columns. The sums are of whole numbers."""
    for other, dims in (("900,20", "0,1"), ("900", "0")):
        text = f"""HloModule m
c {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }}
ENTRY e {{
  x = f32[900,20] parameter(0)
  y = f32[{other}] parameter(1)
  z = f32[900,20] broadcast(y), dimensions={{{dims}}}
  p = f32[900,20] multiply(x, z)
  i = f32[] constant(0)
  ROOT r = f32[900] reduce(p, i), dimensions={{1}}, to_apply=c
}}"""
        x, y = (np.random.default_rng(1).integers(-5, 5, shape).astype(np.float32) for shape in ((900, 20), tuple(map(int, other.split(",")))))
        want = (x * (y if y.ndim == 2 else y[:, None])).sum(1)
        for numerics in ("strict", "fast"):
            assert (np.asarray(xlac.compile(xlac.parse(text), numerics=numerics)(x, y)) == want).all()


@pytest.mark.parametrize("states", [8, 16, 24, 33, 64])
@pytest.mark.parametrize("op,first", [("maximum", "-inf"), ("minimum", "inf"), ("maximum", "0.25")])
def test_small_matrices_in_a_loop(states, op, first):
    """The best way into each state, as in Viterbi's algorithm: a row of the loop's input is read where it lies."""
    n = states
    step = f"""step {{
  s = (s32[], f32[{n}], f32[{n},{n}], f32[7,{n}]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[{n}] get-tuple-element(s), index=1
  t = f32[{n},{n}] get-tuple-element(s), index=2
  e = f32[7,{n}] get-tuple-element(s), index=3
  b = f32[{n},{n}] broadcast(a), dimensions={{0}}
  u = f32[{n},{n}] add(b, t)
  l = f32[] constant({first})
  m = f32[{n}] reduce(u, l), dimensions={{0}}, to_apply=best
  z = s32[] constant(0)
  d = f32[1,{n}] dynamic-slice(e, i, z), dynamic_slice_sizes={{1,{n}}}
  r = f32[{n}] reshape(d)
  q = f32[{n}] add(m, r)
  k = s32[] constant(1)
  j = s32[] add(i, k)
  ROOT o = (s32[], f32[{n}], f32[{n},{n}], f32[7,{n}]) tuple(j, q, t, e)
}}"""
    text = f"""HloModule m
best {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] {op}(a, b)
}}
{step}
more {{
  s = (s32[], f32[{n}], f32[{n},{n}], f32[7,{n}]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  l = s32[] constant(9)
  ROOT c = pred[] compare(i, l), direction=LT
}}
ENTRY e {{
  a = f32[{n}] parameter(0)
  t = f32[{n},{n}] parameter(1)
  e = f32[7,{n}] parameter(2)
  z = s32[] constant(0)
  i = (s32[], f32[{n}], f32[{n},{n}], f32[7,{n}]) tuple(z, a, t, e)
  w = (s32[], f32[{n}], f32[{n},{n}], f32[7,{n}]) while(i), condition=more, body=step
  ROOT o = f32[{n}] get-tuple-element(w), index=1
}}"""
    rng = np.random.default_rng(states)
    args = [rng.standard_normal(s).astype(np.float32) for s in ((n,), (n, n), (7, n))]
    args[1][n // 2, 3], args[2][2, 1] = np.nan, -0.0
    module = xlac.parse(text)
    want = xlac.interpret(module, *args)
    for fuse in (True, False):
        assert xlac.compile(module, fuse=fuse)(*args).tobytes() == want.tobytes()
