"""Kernels with several outputs: sums of one array, values and their sums, updates of several arrays, in one pass through memory."""
import re

import numpy as np
import pytest

import xlac
from xlac import kernels

from .conftest import COMBINERS, leaves, same_bits, same_numbers


def module(body, header="HloModule m", more=""):
    return xlac.parse(f"{header}\n{COMBINERS}{more}\nENTRY e {{{body}\n}}")


def run(body, *args, passes=1, exact=True, monkeypatch=None):
    """Runs it compiled for several numbers of threads and levels of instructions beside the interpreter; passes: kernels there must be."""
    parsed = module(body)
    want = leaves(xlac.interpret(parsed, *args))
    first = None
    for isa in ("portable", "avx2", "avx512") if monkeypatch else (None,):
        if isa:
            monkeypatch.setenv("XLAC_MAX_ISA", isa)
        for threads in (1, 2, 7):
            exe = xlac.compile(parsed, threads=threads)
            exe._check()
            got = leaves(exe(*args))
            first = first or got
            assert same_numbers(got, first)
    assert len(kernels.of(exe)) == passes, exe.explain("fusion")
    if exact:
        assert same_numbers(first, want)
    else:
        for g, w in zip(first, want):
            np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), rtol=2e-2, atol=1e-3)
    return exe


def ints(*shape):
    return np.random.default_rng(0).integers(-9, 9, shape).astype(np.int32)


SHAPES = [((64, 700), "1"), ((700, 64), "0"), ((3, 65, 30), "1"), ((4, 16, 640), "2"), ((70000,), "0"), ((2, 35000), "0,1"), ((4096, 3), "0")]


@pytest.mark.parametrize(("shape", "dims"), SHAPES)
def test_sums_of_one_array_are_one_pass(shape, dims, monkeypatch):
    s = ",".join(map(str, shape))
    kept = ",".join(str(n) for d, n in enumerate(shape) if str(d) not in dims.split(","))
    run(f"""
  x = s32[{s}] parameter(0)
  z = s32[] constant(3)
  lo = s32[] constant(-100)
  a = s32[{kept}] reduce(x, z), dimensions={{{dims}}}, to_apply=sum
  b = s32[{kept}] reduce(x, lo), dimensions={{{dims}}}, to_apply=most
  q = s32[{s}] multiply(x, x)
  c = s32[{kept}] reduce(q, z), dimensions={{{dims}}}, to_apply=sum
  ROOT t = (s32[{kept}], s32[{kept}], s32[{kept}]) tuple(a, b, c)""", ints(*shape), monkeypatch=monkeypatch)


@pytest.mark.parametrize(("shape", "dims"), SHAPES)
def test_values_and_their_sums_are_one_pass(shape, dims, monkeypatch):
    s = ",".join(map(str, shape))
    kept = ",".join(str(n) for d, n in enumerate(shape) if str(d) not in dims.split(","))
    run(f"""
  x = s32[{s}] parameter(0)
  y = s32[{s}] parameter(1)
  z = s32[] constant(0)
  v = s32[{s}] multiply(x, y)
  q = s32[{s}] subtract(v, x)
  w = s32[{s}] add(q, y)
  c = s32[{kept}] reduce(w, z), dimensions={{{dims}}}, to_apply=sum
  ROOT t = (s32[{s}], s32[{kept}], s32[{s}]) tuple(q, c, w)""", ints(*shape), ints(*shape), monkeypatch=monkeypatch)


def test_sums_in_different_types_are_one_pass():
    x = np.random.default_rng(1).standard_normal((40, 3000)).astype(np.float32)
    run("""
  x = f32[40,3000] parameter(0)
  z = f32[] constant(0)
  n = bf16[] constant(1)
  a = f32[40] reduce(x, z), dimensions={1}, to_apply=sumf
  h = bf16[40,3000] convert(x)
  g = bf16[40,3000] abs(h)
  b = bf16[40] reduce(g, n), dimensions={1}, to_apply=sumh
  ROOT t = (f32[40], bf16[40]) tuple(a, b)""", x, exact=False)


def test_a_sum_over_no_elements_beside_another():
    run("""
  x = s32[3000,0] parameter(0)
  z = s32[] constant(7)
  q = s32[3000,0] multiply(x, x)
  a = s32[3000] reduce(x, z), dimensions={1}, to_apply=sum
  b = s32[3000] reduce(q, z), dimensions={1}, to_apply=most
  ROOT t = (s32[3000], s32[3000]) tuple(a, b)""", ints(3000, 0), passes=2)


ADAM = """
  p = f32[5000] parameter(0)
  g = f32[5000] parameter(1)
  m = f32[5000] parameter(2)
  v = f32[5000] parameter(3)
  c = f32[] constant(0.5)
  cb = f32[5000] broadcast(c), dimensions={}
  m1 = f32[5000] multiply(m, cb)
  m2 = f32[5000] add(m1, g)
  gg = f32[5000] multiply(g, g)
  v1 = f32[5000] multiply(v, cb)
  v2 = f32[5000] add(v1, gg)
  r = f32[5000] rsqrt(v2)
  d = f32[5000] multiply(m2, r)
  p2 = f32[5000] subtract(p, d)
  ROOT t = (f32[5000], f32[5000], f32[5000]) tuple(p2, m2, v2)"""


def test_an_optimisers_updates_are_one_pass():
    args = [np.random.default_rng(i).random(5000, np.float32) for i in range(4)]
    run(ADAM, *args)


def test_and_are_computed_over_what_they_update():
    header = "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (2, {}, may-alias), {2}: (3, {}, may-alias) }"
    exe = xlac.compile(module(ADAM, header))
    exe._check()
    args = [np.random.default_rng(i).random(5000, np.float32) for i in range(4)]
    want = leaves(exe(*args))
    given = [a.copy() for a in args]
    got = leaves(exe(xlac.donate(given[0]), given[1], xlac.donate(given[2]), xlac.donate(given[3])))
    assert same_bits(got, want)
    assert str(exe.explain("donation")).count("is computed over it") == 3


def reasons(body, more=""):
    exe = xlac.compile(module(body, more=more), passes=False)
    return str(exe.explain("fusion"))


BOTH = """
  x = s32[64,700] parameter(0)
  z = s32[] constant(0)
  a = s32[64] reduce(x, z), dimensions={1}, to_apply=sum
"""


@pytest.mark.parametrize(("body", "says"), [
    (BOTH + """
  k = s32[64,700] broadcast(a), dimensions={0}
  d = s32[64,700] multiply(x, k)
  ROOT e = s32[64,700] add(d, x)""", "it reads what the other sums up"),
    (BOTH + """
  o = s32[64,1] reshape(a)
  r = s32[64] sort(a), dimensions={0}, to_apply=less
  k = s32[64,700] broadcast(r), dimensions={0}
  ROOT d = s32[64,700] multiply(x, k)""", "a step that is not a kernel stands in between"),
    ("""
  x = s32[3000] parameter(0)
  y = s32[3000] add(x, x)
  m = s32[3000] multiply(y, y)
  i = s32[3000] reverse(m), dimensions={0}
  v = s32[3000] subtract(i, x)
  ROOT t = (s32[3000], s32[3000]) tuple(m, v)""", "at other indexes"),
    ("""
  x = s32[700,8] parameter(0)
  z = s32[] constant(0)
  y = s32[700,8] multiply(x, x)
  a = s32[700] reduce(y, z), dimensions={1}, to_apply=sum
  ROOT t = (s32[700,8], s32[700]) tuple(y, a)""", "goes through its operand in another order"),
    (BOTH + """
  k = s32[64] multiply(a, a)
  b = s32[64,700] broadcast(k), dimensions={0}
  ROOT d = s32[64,700] multiply(x, b)""", "an op in between needs one"),
])
def test_why_kernels_stay_apart(body, says):
    less = "less { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT c = pred[] compare(a, b), direction=LT }\n"
    text = reasons(body, more=less)
    assert says in text, text
    assert "one kernel with" not in text


def test_one_kernel_stands_where_the_order_allows_it():
    """The second sum rises to the first, whose users come before it; and the first sinks to the second, whose operand comes late."""
    exe = run(BOTH + """
  k = s32[64] add(a, a)
  q = s32[64,700] multiply(x, x)
  b = s32[64] reduce(q, z), dimensions={1}, to_apply=sum
  ROOT t = (s32[64], s32[64]) tuple(k, b)""", ints(64, 700), passes=2)
    assert re.search(r"one kernel with a\S*, since both read the same memory", str(exe.explain("fusion")))
    exe = run(BOTH + """
  y = s32[64] parameter(1)
  k = s32[64] multiply(y, y)
  kk = s32[64] reverse(k), dimensions={0}
  q = s32[64,700] broadcast(kk), dimensions={0}
  w = s32[64,700] multiply(x, q)
  b = s32[64] reduce(w, z), dimensions={1}, to_apply=sum
  ROOT t = (s32[64], s32[64]) tuple(a, b)""", ints(64, 700), ints(64), passes=2)
    assert re.search(r"one kernel with a\S*, since both read the same memory", str(exe.explain("fusion")))


def test_a_simple_op_on_what_is_in_memory_is_computed_where_it_is_used():
    """As its mean is taken from an array twice in a normalisation: nobody writes the difference."""
    exe = run(BOTH + """
  k = s32[64,700] broadcast(a), dimensions={0}
  d = s32[64,700] subtract(x, k)
  q = s32[64,700] multiply(d, d)
  v = s32[64] reduce(q, z), dimensions={1}, to_apply=sum
  vb = s32[64,700] broadcast(v), dimensions={0}
  ROOT e = s32[64,700] add(d, vb)""", ints(64, 700), passes=3)
    assert "subtract d: in every kernel that uses it" in str(exe.explain("fusion"))


PRODUCTS = """
  x = {t}[{s}] parameter(0)
  y = {t}[{s}] parameter(1)
  z = {t}[] constant(0.5)
  m = {t}[{s}] multiply(x, y)
  ROOT a = {t}[{k}] reduce(m, z), dimensions={{1}}, to_apply=sum{t}"""


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("n", [64, 70, 96, 700, 5000, 70001])
def test_sums_of_products_are_those_of_their_values(n, dtype, monkeypatch):
    """The fold computes the products itself, and every level of instructions gets the bits of products that are stored."""
    rows = 3 if n > 9000 else 40
    helper = f"sum{dtype} {{ a = {dtype}[] parameter(0)\n b = {dtype}[] parameter(1)\n ROOT c = {dtype}[] add(a, b) }}\n"
    body = PRODUCTS.format(t=dtype, s=f"{rows},{n}", k=rows)
    both = body.replace("ROOT a", "a") + f"\n  ROOT o = ({dtype}[{rows}], {dtype}[{rows},{n}]) tuple(a, m)"
    args = [np.random.default_rng(i).standard_normal((rows, n)).astype(xlac._core.numpy_dtype(dtype)) for i in range(2)]
    alone, stored = (xlac.parse(f"HloModule m\n{helper}\nENTRY e {{{b}\n}}") for b in (body, both))
    first = None
    for isa in ("portable", "avx2", "avx512"):
        monkeypatch.setenv("XLAC_MAX_ISA", isa)
        for threads in (1, 2, 7):
            got = leaves(xlac.compile(alone, threads=threads)(*args))
            first = first or got
            assert same_bits(got, first)
        assert same_bits(leaves(xlac.compile(stored)(*args))[:1], first)
    exact = np.sum(args[0].astype(np.float64) * args[1], axis=1) + 0.5
    for numerics in ("strict", "fast"):
        np.testing.assert_allclose(xlac.compile(alone, numerics=numerics)(*args), exact, rtol=1e-3, atol=1e-3)


def test_fast_sums_of_products_round_once():
    helper = "sumf32 { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
    module = xlac.parse(f"HloModule m\n{helper}\nENTRY e {{{PRODUCTS.format(t='f32', s='1,64', k=1).replace('constant(0.5)', 'constant(0)')}\n}}")
    x = np.zeros((1, 64), np.float32)
    x[0, 0], x[0, 32] = 1 + 2.0**-12, 1 + 2.0**-12
    y = x.copy()
    y[0, 0] = -1 - 2.0**-11
    strict, fast = (float(xlac.compile(module, numerics=n)(x, y)[0]) for n in ("strict", "fast"))
    assert strict == float(np.float32(x[0, 0] * y[0, 0]) + np.float32(x[0, 32] * y[0, 32]))
    assert fast in (strict, float(np.float32(np.float64(x[0, 32]) ** 2 + np.float64(np.float32(x[0, 0] * y[0, 0])))))
