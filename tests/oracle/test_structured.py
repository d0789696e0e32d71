"""Structured ops against XLA: random dimension numbers, windows and computations, over every element type.

XLA:CPU runs some narrow types wrongly or not at all; where it does not compile a module its cases are compared with NumPy
where a case says how, and counted: a few may fall out, not all."""
import ml_dtypes
import numpy as np
import pytest

import real_xla
import structured_cases as cases
import xla_worker
import xlac
from structured_cases import ALL, module_of

XLA = xla_worker.Worker()


@pytest.fixture(scope="module", autouse=True)
def close_xla():
    yield
    XLA.close()


def interpret(text, *args):
    m = xlac.parse(text)
    m.verify()
    return real_xla.leaves(xlac.interpret(m, *args))


def as_wide(a):
    return a.astype(np.complex128) if a.dtype.kind == "c" else a.astype(np.float64)


def check(case, got, want):
    for g, w in zip(got, want):
        assert g.shape == w.shape and g.dtype == w.dtype, (case.name, case.line, g.dtype, w.dtype, g.shape, w.shape)
        exact = case.close == 0 or g.dtype.kind in "biu" or g.dtype.name.startswith(("int", "uint"))
        if exact and g.tobytes() == w.tobytes():
            continue
        narrow = g.dtype.itemsize == 1
        g, w = as_wide(g), as_wide(w)
        np.testing.assert_array_equal(np.isnan(g), np.isnan(w), err_msg=case.line)
        if exact:
            np.testing.assert_array_equal(g, w, err_msg=f"{case.name}: {case.line}")
            continue
        finite = np.isfinite(w)
        np.testing.assert_array_equal(g[~finite & ~np.isnan(w)], w[~finite & ~np.isnan(w)], err_msg=case.line)
        # XLA rounds sums of narrow floats more often, so that what cancels is off by a step of the terms.
        scale = max(np.max(np.abs(w[finite]), initial=0), 4.0 if narrow else 1e-30)
        error = np.max(np.abs(g - w)[finite], initial=0) / scale
        assert error <= (max(case.close, 0.5) if narrow else case.close), (case.name, case.line, error)


def split(batch, leaves):
    at = 0
    for case in batch:
        yield case, leaves[at:at + case.count]
        at += case.count


def run_batch(batch):
    """Compares all cases of one module; returns how many XLA could not run and NumPy could not stand in for."""
    text, args = module_of(batch)
    got = interpret(text, *args)
    try:
        want = XLA.run(text, *args)
    except xla_worker.XlaFailed:
        if len(batch) > 1:
            return sum(run_batch([c]) for c in batch)
        case = batch[0]
        if case.expect is None:
            return 1
        want = [np.asarray(w) for w in case.expect(*(a for _, a in case.args))]
    for (case, g), (_, w) in zip(split(batch, got), split(batch, want)):
        check(case, g, w)
    return 0


def run_rounds(makes, t, rounds, seed=0, allowed=0.0):
    """`rounds` cases of each kind in one module."""
    makes = makes if isinstance(makes, list) else [makes]
    rng = np.random.default_rng([seed, *t.encode(), *makes[0].__name__.encode()])
    batch = [make(rng, t) for make in makes for _ in range(rounds)]
    lost = run_batch(batch)
    assert lost <= allowed * len(batch), f"XLA ran only {len(batch) - lost} of {len(batch)}"


MOVES = [cases.transpose, cases.slice_, cases.pad, cases.reverse, cases.broadcast, cases.concatenate, cases.reshape,
         cases.dynamic_slice, cases.dynamic_update_slice, cases.gather]
# XLA:CPU has no storage or no arithmetic for these.
NO_XLA = {"f8e8m0fnu", "f4e2m1fn", "s2", "u2"}


@pytest.mark.parametrize("t", ALL)
def test_movement(t):
    run_rounds(MOVES, t, 24 if t == "f32" else 2 if t in NO_XLA else 6, allowed=1.0 if t in NO_XLA else 0.0)


@pytest.mark.parametrize("t", ["f32", "s32", "f64"])
@pytest.mark.parametrize("make", [cases.gather, cases.scatter, cases.pad, cases.dot, cases.convolution, cases.reduce,
                                  cases.reduce_window, cases.sort], ids=lambda f: f.__name__)
def test_many_dimension_numbers(make, t):
    run_rounds(make, t, 30 if make is cases.scatter else 60, 1)


ARITHMETIC = [cases.scatter, cases.reduce, cases.reduce_window]


@pytest.mark.parametrize("t", ALL)
def test_computations(t):
    run_rounds(ARITHMETIC, t, 6, allowed=1.0 if t in NO_XLA or t in ("s4", "u4") else 0.25)


SEVERAL = [cases.scatter_several, cases.reduce_several, cases.reduce_window_several, cases.select_and_scatter]


@pytest.mark.parametrize("t", ["f32", "f64", "s32", "s8", "u16", "s64"])
def test_several_operands(t):
    run_rounds(SEVERAL, t, 6)


# --- contractions ---

@pytest.mark.parametrize("t", sorted(set(ALL) - {"f8e8m0fnu", "f4e2m1fn", "s2", "u2"}))
def test_dot_types(t):
    run_rounds(cases.dot, t, 8, allowed=0.25)


RESULTS = [("s8", "s32"), ("u8", "s32"), ("s8", "f32"), ("bf16", "f32"), ("f16", "f32"), ("f32", "f64"), ("f32", "s32"),
           ("pred", "s32"), ("f8e4m3fn", "f32"), ("f8e5m2", "bf16"), ("s32", "s64"), ("f64", "f32"), ("f32", "bf16")]


@pytest.mark.parametrize("t,result", RESULTS)
@pytest.mark.parametrize("make", [cases.dot, cases.convolution], ids=lambda f: f.__name__)
def test_preferred_types(make, t, result):
    def preferred(rng, t):
        return make(rng, t, result)
    run_rounds(preferred, t, 8, allowed=1.0 if make is cases.convolution else 0.25)


@pytest.mark.parametrize("t", ["s8", "u8", "s16", "s32", "s64", "u32", "f16", "bf16", "f32", "f64", "c64", "c128", "f8e4m3fn"])
def test_convolution_types(t):
    run_rounds(cases.convolution, t, 8, allowed=0.5)


def test_long_sums():
    """Blocks of the product and segments of reductions: as exact as the naive sum in f64, to f32's rounding."""
    rng = np.random.default_rng(5)
    a, b = rng.random((3, 70001), np.float32), rng.random((70001, 5), np.float32)
    text = """HloModule m
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
ENTRY e {
 x = f32[3,70001] parameter(0)
 y = f32[70001,5] parameter(1)
 z = f32[] constant(0.5)
 d = f32[3,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 r = f32[3] reduce(x, z), dimensions={1}, to_apply=add
 q = f32[5] reduce(y, z), dimensions={0}, to_apply=add
 s = f32[] reduce(x, z), dimensions={0,1}, to_apply=add
 ROOT t = (f32[3,5], f32[3], f32[5], f32[]) tuple(d, r, q, s)
}"""
    wide = a.astype("f8"), b.astype("f8")
    want = [wide[0] @ wide[1], wide[0].sum(1) + 0.5, wide[1].sum(0) + 0.5, wide[0].sum() + 0.5]
    for g, w in zip(interpret(text, a, b), want):
        np.testing.assert_allclose(g, w, rtol=2e-6)


def test_whole_numbers_sum_exactly_however_long():
    x = np.random.default_rng(6).integers(-2**31, 2**31, (2, 9001, 3)).astype(np.int32)
    text = """HloModule m
add { a = s32[] parameter(0)
 b = s32[] parameter(1)
 ROOT c = s32[] add(a, b) }
max { a = s32[] parameter(0)
 b = s32[] parameter(1)
 ROOT c = s32[] maximum(a, b) }
last { a = s32[] parameter(0)
 ROOT b = s32[] parameter(1) }
ENTRY e {
 x = s32[2,9001,3] parameter(0)
 z = s32[] constant(7)
 a = s32[2,3] reduce(x, z), dimensions={1}, to_apply=add
 m = s32[2,3] reduce(x, z), dimensions={1}, to_apply=max
 l = s32[2,3] reduce(x, z), dimensions={1}, to_apply=last
 w = s32[9001] reduce(x, z), dimensions={0,2}, to_apply=add
 ROOT t = (s32[2,3], s32[2,3], s32[2,3], s32[9001]) tuple(a, m, l, w)
}"""
    got = interpret(text, x)
    want = [x.sum(1, dtype=np.int32) + np.int32(7), np.maximum(x.max(1), 7), x[:, -1], x.sum((0, 2), dtype=np.int32) + np.int32(7)]
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g, w)


def ragged_reference(x, y, sizes, mode):
    ends = np.cumsum(sizes)
    starts = ends - sizes
    if mode == "rows":
        out = np.zeros((x.shape[0], y.shape[2]))
        for g, (a, b) in enumerate(zip(starts, ends)):
            out[a:b] = x[a:b].astype("f8") @ y[g].astype("f8")
        return out
    return np.stack([x[:, a:b].astype("f8") @ y[a:b].astype("f8") for a, b in zip(starts, ends)])


@pytest.mark.parametrize("sizes", [[2, 3, 4], [0, 9, 0], [1, 1, 1], [9, 5, 5]])
def test_ragged_dot(sizes):
    rng = np.random.default_rng(7)
    sizes = np.asarray(sizes, np.int32)
    x, y = rng.standard_normal((9, 4)).astype("f4"), rng.standard_normal((3, 4, 5)).astype("f4")
    rows = """HloModule m
ENTRY e {
 x = f32[9,4] parameter(0)
 y = f32[3,4,5] parameter(1)
 s = s32[3] parameter(2)
 ROOT r = f32[9,5] ragged-dot(x, y, s), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
}"""
    np.testing.assert_allclose(interpret(rows, x, y, sizes)[0], ragged_reference(x, y, sizes, "rows"), rtol=1e-5, atol=1e-6)
    x, y = rng.standard_normal((4, 9)).astype("f4"), rng.standard_normal((9, 5)).astype("f4")
    sums = """HloModule m
ENTRY e {
 x = f32[4,9] parameter(0)
 y = f32[9,5] parameter(1)
 s = s32[3] parameter(2)
 ROOT r = f32[3,4,5] ragged-dot(x, y, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}
}"""
    np.testing.assert_allclose(interpret(sums, x, y, sizes)[0], ragged_reference(x, y, sizes, "sums"), rtol=1e-5, atol=1e-6)


def test_ragged_dot_with_batches():
    rng = np.random.default_rng(8)
    x, y = rng.standard_normal((2, 6, 4)).astype("f4"), rng.standard_normal((3, 2, 4, 5)).astype("f4")
    sizes = np.array([[1, 2, 3], [0, 4, 1]], np.int32)
    text = """HloModule m
ENTRY e {
 x = f32[2,6,4] parameter(0)
 y = f32[3,2,4,5] parameter(1)
 s = s32[2,3] parameter(2)
 z = f32[2,4,5] parameter(3)
 n = s32[2] parameter(4)
 r = f32[2,6,5] ragged-dot(x, y, s), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={2}, lhs_ragged_dims={1}, rhs_group_dims={0}
 q = f32[2,6,5] ragged-dot(x, z, n), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={0}
 ROOT t = (f32[2,6,5], f32[2,6,5]) tuple(r, q)
}"""
    z = rng.standard_normal((2, 4, 5)).astype("f4")
    rows, batches = interpret(text, x, y, sizes, z, np.array([1, 1], np.int32))
    for b in range(2):
        np.testing.assert_allclose(rows[b], ragged_reference(x[b], y[:, b], sizes[b], "rows"), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(batches, x.astype("f8") @ z.astype("f8"), rtol=1e-5, atol=1e-6)


def test_scaled_dot():
    rng = np.random.default_rng(9)
    f8, e8 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu
    a, b = rng.standard_normal((4, 64)).astype(f8), rng.standard_normal((64, 8)).astype(f8)
    sa, sb = np.exp2(rng.integers(-3, 3, (4, 2))).astype(e8), np.exp2(rng.integers(-3, 3, (2, 8))).astype(e8)
    text = """HloModule d
ENTRY e {
  a = f8e4m3fn[4,64] parameter(0)
  b = f8e4m3fn[64,8] parameter(1)
  sa = f8e8m0fnu[4,2] parameter(2)
  sb = f8e8m0fnu[2,8] parameter(3)
  ROOT r = f32[4,8] scaled-dot(a, b, sa, sb), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
    want = (a.astype("f8") * np.repeat(sa.astype("f8"), 32, 1)) @ (b.astype("f8") * np.repeat(sb.astype("f8"), 32, 0))
    np.testing.assert_allclose(interpret(text, a, b, sa, sb)[0], want, rtol=1e-5, atol=1e-5)


# --- order ---

@pytest.mark.parametrize("t", ["s8", "u32", "s64", "bf16", "f16", "f32", "f64", "pred"])
@pytest.mark.parametrize("make", [cases.sort, cases.topk], ids=lambda f: f.__name__)
def test_order(make, t):
    run_rounds(make, t, 10, allowed=0.5 if t in ("pred", "s8") else 0.0)


def special_floats(rng, dims, t="f4"):
    x = rng.choice(np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.5]), dims).astype(t)
    return np.where(rng.random(dims) < 0.2, -x, x)


def test_sort_by_jaxs_comparators():
    """JAX sorts floats by seventeen ops that make NaNs equal and zeros too; several keys compare one after the other."""
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(10)
    x = special_floats(rng, (7, 300))
    i = np.arange(2100, dtype=np.int32).reshape(7, 300)
    for keys in (1, 2):
        for dimension in (0, 1):
            f = jax.jit(lambda a, b: jax.lax.sort((a, b), dimension=dimension, num_keys=keys, is_stable=True))
            text = f.lower(x, i).compiler_ir("hlo").as_hlo_text()
            want = [np.asarray(v) for v in f(x, i)]
            for g, w in zip(interpret(text, x, i), want):
                assert g.tobytes() == w.tobytes()


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 17, 1000, 5000, 33333])
def test_sort_by_a_computation_is_stable(n):
    """Keys are compared after a division, so that the comparator runs and most are equal."""
    x = np.random.default_rng(n).integers(0, 1000, n).astype(np.int32)
    text = f"""HloModule m
less {{ a = s32[] parameter(0)
 b = s32[] parameter(1)
 i = s32[] parameter(2)
 j = s32[] parameter(3)
 k = s32[] constant(100)
 p = s32[] divide(a, k)
 q = s32[] divide(b, k)
 ROOT r = pred[] compare(q, p), direction=LT }}
ENTRY e {{
 x = s32[{n}] parameter(0)
 i = s32[{n}] iota(), iota_dimension=0
 ROOT s = (s32[{n}], s32[{n}]) sort(x, i), dimensions={{0}}, is_stable=true, to_apply=less
}}"""
    order = np.argsort(-(x // 100), kind="stable")
    values, places = interpret(text, x)
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, x[order])


def test_sort_with_nan_and_plain_less_gives_a_permutation():
    x = special_floats(np.random.default_rng(11), 40000)
    text = """HloModule m
less { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e {
 x = f32[40000] parameter(0)
 ROOT s = f32[40000] sort(x), dimensions={0}, to_apply=less
}"""
    got = interpret(text, x)[0]
    assert sorted(got.view("u4")) == sorted(x.view("u4"))


# --- computations over arrays ---

def test_map_and_scan():
    text = """HloModule m
f { a = f32[] parameter(0)
 b = s32[] parameter(1)
 c = f32[] convert(b)
 d = f32[] multiply(a, c)
 ROOT r = f32[] subtract(d, c) }
step { x = f32[4] parameter(0)
 c = s32[] parameter(1)
 k = f32[4] parameter(2)
 d = f32[] convert(c)
 e = f32[4] broadcast(d), dimensions={}
 y = f32[4] multiply(e, x)
 one = s32[] constant(1)
 n = s32[] add(c, one)
 z = f32[4] subtract(y, k)
 ROOT t = (f32[4], s32[], f32[4]) tuple(y, n, z) }
ENTRY e {
 x = f32[4,3] parameter(0)
 i = s32[4,3] parameter(1)
 n = s32[] parameter(2)
 k = f32[4] parameter(3)
 m = f32[4,3] map(x, i), dimensions={0,1}, to_apply=f
 u = (f32[4,3], s32[], f32[4]) scan(x, n, k), dimensions={1}, num_carries=2, to_apply=step
 d = (f32[4,3], s32[], f32[4]) scan(x, n, k), dimensions={1}, num_carries=2, is_reverse=true, to_apply=step
 up0 = f32[4,3] get-tuple-element(u), index=0
 up1 = s32[] get-tuple-element(u), index=1
 up2 = f32[4] get-tuple-element(u), index=2
 down0 = f32[4,3] get-tuple-element(d), index=0
 down2 = f32[4] get-tuple-element(d), index=2
 ROOT t = (f32[4,3], f32[4,3], s32[], f32[4], f32[4,3], f32[4]) tuple(m, up0, up1, up2, down0, down2)
}"""
    rng = np.random.default_rng(12)
    args = (rng.standard_normal((4, 3)).astype("f4"), rng.integers(-9, 9, (4, 3)).astype("i4"), np.int32(2),
            rng.standard_normal(4).astype("f4"))
    real_xla.close(interpret(text, *args), XLA.run(text, *args), 1e-6)


# --- sizes known at run time ---

def test_dynamic_sizes():
    text = """HloModule m
add { a = s32[] parameter(0)
 b = s32[] parameter(1)
 ROOT c = s32[] add(a, b) }
ENTRY e {
 x = s32[6,3] parameter(0)
 n = s32[] parameter(1)
 z = s32[] constant(0)
 two = s32[] constant(2)
 d = s32[<=6,3] set-dimension-size(x, n), dimensions={0}
 size = s32[] get-dimension-size(d), dimensions={0}
 sums = s32[3] reduce(d, z), dimensions={0}, to_apply=add
 rows = s32[<=6] reduce(d, z), dimensions={1}, to_apply=add
 flat = s32[<=18] reshape(d)
 flats = s32[] get-dimension-size(flat), dimensions={0}
 both = s32[<=12,3] concatenate(d, d), dimensions={0}
 boths = s32[] get-dimension-size(both), dimensions={0}
 turned = s32[3,<=6] transpose(d), dimensions={1,0}
 turneds = s32[] get-dimension-size(turned), dimensions={1}
 total = s32[] reduce(turned, z), dimensions={0,1}, to_apply=add
 whole = s32[6,3] set-dimension-size(d, six), dimensions={0}
 six = s32[] constant(6)
 shaped = s32[<=3,<=6] dynamic-reshape(flat, three, n)
 three = s32[] constant(3)
 shapes = s32[] get-dimension-size(shaped), dimensions={1}
 ROOT t = (s32[], s32[3], s32[<=6], s32[], s32[], s32[], s32[], s32[], s32[6,3]) tuple(size, sums, rows, flats, boths, turneds, total, shapes, whole)
}"""
    # XLA wants definitions before uses; put the constants first.
    lines = text.split("\n")
    constants = [l for l in lines if l.startswith((" six", " three"))]
    lines = [l for l in lines if l not in constants]
    at = next(i for i, l in enumerate(lines) if l.startswith(" z ="))
    text = "\n".join(lines[:at] + constants + lines[at:])
    x = np.arange(18, dtype=np.int32).reshape(6, 3)
    for n in range(7):
        got = interpret(text, x, np.int32(n))
        cut = x[:n]
        whole = np.where(np.arange(6)[:, None] < n, x, 0)
        want = [n, cut.sum(0), cut.sum(1), 3 * n, 2 * n, n, cut.sum(), n, whole]
        for g, w in zip(got, want):
            np.testing.assert_array_equal(g, w)


def test_a_size_beyond_its_bound_is_refused():
    text = """HloModule m
ENTRY e {
 x = s32[6] parameter(0)
 n = s32[] parameter(1)
 ROOT d = s32[<=6] set-dimension-size(x, n), dimensions={0}
}"""
    for n in (-1, 7):
        with pytest.raises(xlac.Error, match="bound"):
            interpret(text, np.arange(6, dtype=np.int32), np.int32(n))


def test_bitcast_follows_layouts():
    """The bytes in the operand's layout are read in the result's."""
    text = """HloModule m
ENTRY e {
 x = f32[4,6] parameter(0)
 a = f32[6,4]{0,1} bitcast(x)
 b = s32[2,12]{1,0} bitcast(x)
 c = f32[3,8]{0,1} bitcast(x)
 ROOT t = (f32[6,4], s32[2,12], f32[3,8]) tuple(a, b, c)
}"""
    x = np.random.default_rng(13).standard_normal((4, 6)).astype("f4")
    a, b, c = interpret(text, x)
    np.testing.assert_array_equal(a, x.T)
    np.testing.assert_array_equal(b, x.view("i4").reshape(2, 12))
    np.testing.assert_array_equal(c, x.reshape(8, 3).T)


def test_initial_values_that_are_no_identity_take_part_once():
    text = """HloModule m
add { a = s32[] parameter(0)
 b = s32[] parameter(1)
 ROOT c = s32[] add(a, b) }
ENTRY e {
 x = s32[3,1,4] parameter(0)
 z = s32[] constant(100)
 a = s32[3,4] reduce(x, z), dimensions={1}, to_apply=add
 b = s32[3] reduce(x, z), dimensions={1,2}, to_apply=add
 w = s32[3,1,3] reduce-window(x, z), window={size=1x1x2}, to_apply=add
 ROOT t = (s32[3,4], s32[3], s32[3,1,3]) tuple(a, b, w)
}"""
    x = np.arange(12, dtype=np.int32).reshape(3, 1, 4)
    a, b, w = interpret(text, x)
    np.testing.assert_array_equal(a, x[:, 0] + 100)
    np.testing.assert_array_equal(b, x.sum((1, 2)) + 100)
    np.testing.assert_array_equal(w, x[:, :, 1:] + x[:, :, :-1] + 100)


@pytest.mark.parametrize("t", ["bf16", "f16", "f8e4m3fn", "f8e5m2", "f8e4m3b11fnuz"])
def test_narrow_sums_are_rounded_once(t):
    """Kept in f32, as XLA does; a chain of bf16 additions of ones would stop at 256."""
    n = 3000 if t in ("bf16", "f16") else 30
    name, text = cases.body("add", t)
    x = np.random.default_rng(14).integers(-3, 4, (2, n)).astype(cases.TYPES[t])
    text = f"""HloModule m
{text}
ENTRY e {{
 x = {t}[2,{n}] parameter(0)
 z = {t}[] constant(1)
 r = {t}[2] reduce(x, z), dimensions={{1}}, to_apply={name}
 w = {t}[2,{n - 19}] reduce-window(x, z), window={{size=1x20}}, to_apply={name}
 ROOT t = ({t}[2], {t}[2,{n - 19}]) tuple(r, w)
}}"""
    wide = x.astype("f8")
    sums = np.stack([wide[:, i:i + 20].sum(1) for i in range(n - 19)], 1) + 1
    for g, w in zip(interpret(text, x), [wide.sum(1) + 1, sums]):
        assert g.tobytes() == w.astype(cases.TYPES[t]).tobytes()
