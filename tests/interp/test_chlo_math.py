"""CHLO's functions in the interpreter: against mpmath at many places, and the rules at the edges."""
import math

import ml_dtypes
import numpy as np
import pytest

import xlac

mpmath = pytest.importorskip("mpmath")
mpmath.mp.dps = 50  # its zeta is good to so many digits of 1, not of the value

MLIR = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64", np.dtype(np.float16): "f16",
        np.dtype(ml_dtypes.bfloat16): "bf16", np.dtype(np.complex64): "complex<f32>", np.dtype(np.int32): "i32"}


def kind(x):
    return f"tensor<{''.join(f'{d}x' for d in x.shape)}{MLIR[x.dtype]}>"


def run(op, *args, result=None):
    names = [f"%a{i}" for i in range(len(args))]
    types = ", ".join(kind(a) for a in args)
    out = result or kind(args[0])
    text = (f"func.func @main({', '.join(f'{n}: {kind(a)}' for n, a in zip(names, args))}) -> {out} {{\n"
            f'  %r = "{op}"({", ".join(names)}) : ({types}) -> {out}\n  return %r : {out}\n}}')
    return xlac.interpret(xlac.parse(text), *args)


def i1e(x):
    return mpmath.exp(-abs(x)) * mpmath.besseli(1, x)


UNARY = {"lgamma": (lambda x: mpmath.log(abs(mpmath.gamma(x))), 0.05, 40), "digamma": (mpmath.digamma, -4.9, 30),
         "erf_inv": (mpmath.erfinv, -0.999, 0.999), "erfc": (mpmath.erfc, -3, 8), "bessel_i1e": (i1e, -60, 60),
         "tan": (mpmath.tan, -1.4, 1.4), "square": (lambda x: x * x, -10, 10)}


def neighbours(*numbers, n=6):
    """Each number, and the n f32 on either side of it."""
    bits = np.array(numbers, np.float32).view(np.int32)
    return (bits[:, None] + np.arange(-n, n + 1, dtype=np.int32)).reshape(-1).view(np.float32)


@pytest.mark.parametrize("op, exact, zeros", [
    ("lgamma", lambda x: mpmath.log(abs(mpmath.gamma(x))), (1.0, 2.0, -2.457024738, -2.747682648, -3.143580889)),
    ("digamma", mpmath.digamma, (1.461632145, -0.504083008, -1.573498473, -2.610720869))])
def test_gammas_of_f32_are_nearly_rounded_right_also_where_they_are_nearly_zero(op, exact, zeros):
    rng = np.random.default_rng(3)
    x = np.concatenate([neighbours(*zeros), neighbours(0.5, 1e-20, 3.0, 12.0, 1e8), np.nextafter(np.arange(-9, 0, dtype=np.float32), np.float32(0)),
                        rng.uniform(-9, 4, 300).astype(np.float32), np.exp(rng.uniform(-60, 80, 200)).astype(np.float32)])
    x = x[(x > 0) | (x != np.floor(x))]
    for got in (run("chlo." + op, x), xlac.compile(f"func.func @main(%a: {kind(x)}) -> {kind(x)} {{\n  %r = chlo.{op} %a : {kind(x)} -> {kind(x)}\n"
                                                   f"  return %r : {kind(x)}\n}}")(x)):
        for v, g in zip(x, got, strict=True):
            want = exact(mpmath.mpf(float(v)))
            assert abs(mpmath.mpf(float(g)) - want) <= 0.6 * float(np.spacing(np.float32(abs(want)))), (v, g, want)


@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 2.0**-22), (np.float64, 1e-11), (np.float16, 2.0**-10),
                                              (ml_dtypes.bfloat16, 2.0**-7)])
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype, tolerance):
    reference, low, high = UNARY[name]
    x = np.linspace(low, high, 77).astype(dtype)
    want = np.array([float(mpmath.re(reference(mpmath.mpf(float(v))))) for v in x])
    got = run(f"chlo.{name}", x).astype(np.float64)
    small = np.finfo(np.float16).smallest_normal if dtype == np.float16 else 1e-37
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=small * tolerance + 1e-15 * (dtype == np.float64))


def test_zeta_and_polygamma():
    x, q = (v.ravel() for v in np.meshgrid(np.array([1.5, 2, 3.25, 9, 20]), np.array([0.1, 1, 2.5, 14, 300])))
    want = np.array([float(mpmath.zeta(a, b)) for a, b in zip(x, q)])
    np.testing.assert_allclose(run("chlo.zeta", x, q), want, rtol=1e-12)
    n = np.array([0.0, 1, 2, 5, 9])
    y = np.array([1.5, 0.3, 20, 4, -2.5])
    want = np.array([float(mpmath.psi(int(a), b)) for a, b in zip(n, y)])
    np.testing.assert_allclose(run("chlo.polygamma", n, y), want, rtol=1e-11)


def test_edges():
    inf, nan = np.inf, np.nan
    x = np.array([0, -1, inf, -inf, nan], np.float32)
    np.testing.assert_array_equal(run("chlo.lgamma", x), np.array([inf, inf, inf, inf, nan], np.float32))
    np.testing.assert_array_equal(run("chlo.digamma", x), np.array([nan, nan, inf, nan, nan], np.float32))
    np.testing.assert_array_equal(run("chlo.erf_inv", np.array([1, -1, 2, 0], np.float32)),
                                  np.array([inf, -inf, nan, 0], np.float32))
    for name, want in (("is_inf", [0, 0, 1, 1, 0]), ("is_pos_inf", [0, 0, 1, 0, 0]), ("is_neg_inf", [0, 0, 0, 1, 0])):
        np.testing.assert_array_equal(run(f"chlo.{name}", x, result="tensor<5xi1>"), np.array(want, bool))
    np.testing.assert_array_equal(run("chlo.zeta", np.array([1.0, 0.5, 2, 3, 2.5]), np.array([2.0, 2, 0, -1, -1.5])),
                                  [inf, nan, inf, nan, nan])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_next_after(dtype):
    x = np.array([0, 1, -1, 3, 0, -2, np.inf, 1], dtype)
    y = np.array([1, 2, 0, 3, -1, np.nan, 0, -np.inf], dtype)
    got, want = run("chlo.next_after", x, y), np.nextafter(x, y)
    np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))
    assert np.array_equal(np.signbit(got), np.signbit(want)) or np.isnan(want).any()


def test_conj():
    z = np.array([1 + 2j, -3j], np.complex64)
    np.testing.assert_array_equal(run("chlo.conj", z), z.conj())


def test_broadcasting():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    b = np.array([10, 20, 30], np.float32)
    np.testing.assert_array_equal(run("chlo.broadcast_add", a, b), a + b)
    m = xlac.parse("""func.func @main(%a: tensor<2x3xf32>, %b: tensor<2xf32>) -> tensor<2x3xi1> {
  %0 = "chlo.broadcast_compare"(%a, %b) {broadcast_dimensions = array<i64: 0>,
    comparison_direction = #chlo<comparison_direction GT>} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xi1>
  return %0 : tensor<2x3xi1>
}""")
    c = np.array([1, 4], np.float32)
    np.testing.assert_array_equal(xlac.interpret(m, a, c), a > c[:, None])


def test_constant_like():
    m = xlac.parse("""func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "chlo.constant_like"(%a) {value = 2.5 : f32} : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}""")
    np.testing.assert_array_equal(xlac.interpret(m, np.zeros(3, np.float32)), np.full(3, 2.5, np.float32))


def test_erfc_of_f32_is_within_a_unit():
    """Both formulas (up to 0.75 and beyond) and where they meet, down to the smallest numbers there are."""
    r = np.random.default_rng(0)
    edges = [0.75, -0.75, 1, -1, 0, -0.0, 1e-30, 10.05, 9.2, 10.1, 50, -50, np.inf, -np.inf]
    x = np.concatenate([r.uniform(-4, 10.2, 30000), r.uniform(-1, 1, 10000), edges]).astype(np.float32)
    x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf))])
    program = f"func.func @main(%x: tensor<{x.size}xf32>) -> tensor<{x.size}xf32> {{\n  %r = chlo.erfc %x : tensor<{x.size}xf32> -> tensor<{x.size}xf32>\n  return %r : tensor<{x.size}xf32>\n}}"
    want = np.array([math.erfc(float(v)) for v in x])
    for got in (xlac.interpret(program, x), xlac.compile(program)(x)):
        got = np.asarray(got)
        unit = np.spacing(np.maximum(np.abs(want), 1e-45).astype(np.float32)).astype(np.float64)
        assert (np.abs(got.astype(np.float64) - want) <= 0.98 * unit).all()
    assert np.isnan(np.asarray(xlac.interpret(program, np.full(x.size, np.nan, np.float32)))).all()
