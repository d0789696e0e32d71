"""Dots and convolutions of our own: every type and layout, beside the interpreter."""
import os
import pathlib
import platform

import ml_dtypes
import numpy as np
import pytest

import xlac

from .conftest import leaves, same_numbers

TYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f8e4m3fn": ml_dtypes.float8_e4m3fn, "c64": np.complex64,
         "c128": np.complex128, "s8": np.int8, "u8": np.uint8, "s16": np.int16, "u16": np.uint16, "s32": np.int32, "u32": np.uint32, "s64": np.int64,
         "u64": np.uint64, "s4": ml_dtypes.int4, "u4": ml_dtypes.uint4, "pred": np.bool_}
EXACT = {"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "s4", "u4", "pred"}
# What a sum of products of random numbers may be off by, of its size.
BOUND = {"f32": 2**-18, "f64": 2**-46, "bf16": 2**-7, "f16": 2**-9, "f8e4m3fn": 2**-2, "c64": 2**-17, "c128": 2**-46}


def draw(t, shape, seed=0):
    rng = np.random.default_rng(seed)
    dtype = TYPES[t]
    if t == "pred":
        return rng.random(shape) > 0.5
    if t in ("s4", "u4"):
        return rng.integers(-8 if t == "s4" else 0, 8 if t == "s4" else 16, shape).astype(dtype)
    if t in EXACT:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if t[0] == "c" else x).astype(dtype)


def check(text, t, *args, blas=None, fallback=0):
    module = xlac.parse(text)
    want = leaves(xlac.interpret(module, *args))
    runs = [xlac.compile(module, threads=n, blas=blas) for n in (1, 2, 7)]
    assert runs[0].steps["interpreted"] == fallback, runs[0].plan()
    got = [leaves(exe(*args)) for exe in runs]
    assert same_numbers(got[0], got[1]) and same_numbers(got[0], got[2])
    if t in EXACT:
        assert same_numbers(got[0], want), text
        return
    for g, w in zip(got[0], want):
        assert g.shape == w.shape and g.dtype == w.dtype
        wide = np.complex128 if t[0] == "c" else np.float64
        g, w = g.astype(wide), w.astype(wide)
        assert np.array_equal(np.isnan(g), np.isnan(w)), text
        ok = np.isfinite(w)
        assert np.array_equal(g[~ok & ~np.isnan(w)], w[~ok & ~np.isnan(w)]), text
        if ok.any():
            assert np.abs(g[ok] - w[ok]).max() <= BOUND[t] * (np.sqrt(np.square(np.abs(w[ok])).mean()) + 1) * 4, text


def numbers(v):
    return "{" + ",".join(map(str, v)) + "}"


def shape_text(v):
    return "[" + ",".join(map(str, v)) + "]"


def dot_text(a, b, c, sa, sb, lb=(), rb=(), lc=(), rc=()):
    out = [sa[d] for d in lb] + [n for d, n in enumerate(sa) if d not in lb + lc] + [n for d, n in enumerate(sb) if d not in rb + rc]
    batch = f"lhs_batch_dims={numbers(lb)}, rhs_batch_dims={numbers(rb)}, " if lb else ""
    return f"""HloModule m
ENTRY e {{
  x = {a}{shape_text(sa)} parameter(0)
  y = {b}{shape_text(sb)} parameter(1)
  ROOT d = {c}{shape_text(out)} dot(x, y), {batch}lhs_contracting_dims={numbers(lc)}, rhs_contracting_dims={numbers(rc)}
}}"""


def run_dot(a, b, c, sa, sb, *dims, blas=None):
    check(dot_text(a, b, c, sa, sb, *dims), c, draw(a, sa, 1), draw(b, sb, 2), blas=blas)


# Operand shapes, then batch dims and contracting dims of both.
DOTS = [((5, 7), (7, 3), (), (), (1,), (0,)), ((40, 300), (300, 70), (), (), (1,), (0,)), ((300, 40), (70, 300), (), (), (0,), (1,)),
        ((3, 20, 6, 11), (6, 3, 11, 50), (0,), (1,), (2, 3), (0, 2)), ((20, 3, 13), (13, 17, 3), (1,), (2,), (2,), (0,)), ((4,), (4,), (), (), (0,), (0,)),
        ((200, 3), (5, 200), (), (), (0,), (1,)), ((7, 9), (3,), (), (), (), ()), ((5, 0), (0, 4), (), (), (1,), (0,)), ((0, 5), (5, 4), (), (), (1,), (0,)),
        ((130, 521), (521, 263), (), (), (1,), (0,)), ((1, 515), (515, 97), (), (), (1,), (0,)), ((515, 97), (515,), (), (), (0,), (0,))]


@pytest.mark.parametrize("dot", DOTS, ids=str)
@pytest.mark.parametrize("t", [*TYPES])
def test_dots(t, dot):
    sa, sb, *dims = dot
    run_dot(t, t, t, sa, sb, *dims, blas=False)


@pytest.mark.parametrize("dot", DOTS, ids=str)
@pytest.mark.parametrize("t", ["f32", "f64"])
def test_dots_with_blas(t, dot):
    sa, sb, *dims = dot
    run_dot(t, t, t, sa, sb, *dims)


@pytest.mark.parametrize("a,b,c", [("s8", "s8", "s32"), ("u8", "s8", "s32"), ("bf16", "bf16", "f32"), ("f32", "bf16", "f32"), ("s8", "bf16", "f32"),
                                   ("f8e4m3fn", "f8e4m3fn", "bf16"), ("s4", "s16", "s32"), ("s8", "s32", "s32"), ("u16", "u8", "u32"), ("s32", "s8", "s64"),
                                   ("f16", "f64", "f64"), ("f32", "f32", "f64"), ("pred", "u8", "u8"), ("s16", "s16", "s32"), ("u16", "u16", "u32")])
def test_mixed_dots(a, b, c):
    for sa, sb, *dims in DOTS[:5]:
        run_dot(a, b, c, sa, sb, *dims)


def test_extreme_pairs_wrap():
    """The products of two neighbours may pass 32 bits: -2^15 * -2^15 twice."""
    x = np.full((3, 6), -(2**15), np.int16)
    check(dot_text("s16", "s16", "s32", (3, 6), (6, 4), (), (), (1,), (0,)), "s32", x, x.reshape(6, 3)[:, [0, 1, 2, 0]].copy())


def test_nan_and_infinity_stay_where_they_belong():
    x, y = draw("f32", (20, 33), 1), draw("f32", (33, 40), 2)
    x[3, 7], y[8, 5], y[9, 6] = np.nan, np.inf, -np.inf
    check(dot_text("f32", "f32", "f32", (20, 33), (33, 40), (), (), (1,), (0,)), "f32", x, y, blas=False)


def window_text(window):
    parts = {"size": [w["size"] for w in window], "stride": [w["stride"] for w in window],
             "pad": [f"{w['low']}_{w['high']}" for w in window], "lhs_dilate": [w["base"] for w in window],
             "rhs_dilate": [w["dilate"] for w in window], "rhs_reversal": [int(w["reverse"]) for w in window]}
    return "{" + " ".join(f"{k}={'x'.join(map(str, v))}" for k, v in parts.items()) + "}" if window else "{}"


def one(size, stride=1, low=0, high=0, base=1, dilate=1, reverse=False):
    return dict(size=size, stride=stride, low=low, high=high, base=base, dilate=dilate, reverse=reverse)


def outputs_of(n, w):
    padded = ((n - 1) * w["base"] + 1 if n else 0) + w["low"] + w["high"]
    reach = (w["size"] - 1) * w["dilate"] + 1
    return 0 if padded < reach else (padded - reach) // w["stride"] + 1


def conv_text(t, labels, batch, features, outputs, spatial, window, groups=1, batch_groups=1, types=None):
    """features: of the input; the kernel sees features / groups of them."""
    types = types or (t, t, t)
    left, right = labels.split("->")
    left, kernel = left.split("_")

    def dims(form, a, b, names, sizes):
        return [a if c == names[0] else b if c == names[1] else sizes[int(c)] for c in form]

    x = dims(left, batch, features, "bf", spatial)
    k = dims(kernel, features // groups, outputs, "io", [w["size"] for w in window])
    r = dims(right, batch // batch_groups, outputs, "bf", [outputs_of(n, w) for n, w in zip(spatial, window)])
    extra = (f", feature_group_count={groups}" if groups > 1 else "") + (f", batch_group_count={batch_groups}" if batch_groups > 1 else "")
    return f"""HloModule m
ENTRY e {{
  x = {types[0]}{shape_text(x)} parameter(0)
  k = {types[1]}{shape_text(k)} parameter(1)
  ROOT c = {types[2]}{shape_text(r)} convolution(x, k), window={window_text(window)}, dim_labels={labels}{extra}
}}""", x, k


def run_conv(t, labels, *shape, types=None, fallback=0, **options):
    text, x, k = conv_text(t, labels, *shape, types=types, **options)
    a, b, c = types or (t, t, t)
    check(text, c, draw(a, x, 3), draw(b, k, 4), fallback=fallback)


NHWC, NCHW = "b01f_01io->b01f", "bf01_oi01->bf01"
WINDOWS = [[one(3, 1, 1, 1), one(3, 1, 1, 1)], [one(3, 2, 0, 1), one(2, 3, 1, 0)], [one(3, low=-1, high=2), one(1, low=-2, high=-1)],
           [one(2, base=2, low=1, high=1), one(3, base=3, stride=2)], [one(3, dilate=2, reverse=True), one(2, dilate=3, low=2, high=2)],
           [one(1), one(1)], [one(1, 2), one(1, 2)], [one(3, 2, 1, 2, 2, 2, True), one(2, 1, -1, 3, 3, 1, True)], [one(9), one(14)], [one(12), one(3)]]


@pytest.mark.parametrize("window", WINDOWS, ids=window_text)
@pytest.mark.parametrize("labels", [NHWC, NCHW, "f01b_i01o->01bf", "bf01_io01->b0f1", "0fb1_o1i0->fb10"])
def test_convolutions(labels, window):
    run_conv("f32", labels, 3, 5, 34, (9, 13), window)
    run_conv("f32", labels, 2, 4, 6, (9, 13), window, groups=2)
    run_conv("f32", labels, 4, 3, 6, (9, 13), window, batch_groups=2)
    run_conv("f32", labels, 2, 35, 35, (9, 13), window, groups=35)
    run_conv("f32", labels, 2, 3, 6, (9, 13), window, groups=3)


@pytest.mark.parametrize("t", [*TYPES])
def test_convolutions_of_every_type(t):
    for labels in (NHWC, NCHW):
        for window in (WINDOWS[0], WINDOWS[7]):
            run_conv(t, labels, 2, 5, 40, (7, 6), window)
            run_conv(t, labels, 2, 6, 6, (7, 6), window, groups=6)
            run_conv(t, labels, 1, 2, 2, (4, 3), [one(2), one(2)])


@pytest.mark.parametrize("t", [*TYPES])
def test_elements_after_the_last_window_are_never_met(t):
    for labels in (NHWC, NCHW, "f01b_i01o->01bf"):
        run_conv(t, labels, 2, 3, 4, (8, 9), [one(3, 2), one(2, 3)])
        run_conv(t, labels, 2, 6, 6, (8, 9), [one(3, 2), one(2, 3)], groups=3)
        run_conv(t, labels, 2, 1, 3, (4, 5), [one(1, 3), one(1, high=-1)])


def test_convolutions_of_other_ranks():
    run_conv("f32", "bf_io->bf", 7, 65, 40, (), [])
    run_conv("f32", "b0f_0io->b0f", 3, 5, 40, (70,), [one(4, 2, 3, 1)])
    run_conv("s32", "bf012_oi012->bf012", 2, 3, 8, (6, 5, 7), [one(2), one(3, 2, 1, 1), one(2, dilate=2)])
    run_conv("f32", "b012f_012io->b012f", 2, 8, 8, (6, 5, 7), [one(2), one(3, 2, 1, 1), one(2, dilate=2)], groups=8)
    run_conv("f64", "b0f_0io->b0f", 1, 1, 1, (1000,), [one(101, low=100)])
    run_conv("f32", "b0f_0io->b0f", 1, 16, 16, (0,), [one(2, low=3, high=3)])
    run_conv("f32", "b0f_0io->b0f", 0, 16, 16, (5,), [one(2)])
    run_conv("f32", "b0f_0io->b0f", 2, 0, 16, (50,), [one(2)])


@pytest.mark.parametrize("types", [("bf16", "bf16", "f32"), ("s8", "s8", "s32"), ("f32", "bf16", "f32"), ("u8", "s8", "s32")], ids=str)
def test_convolutions_of_mixed_types(types):
    run_conv("", NHWC, 2, 33, 40, (9, 8), WINDOWS[0], types=types)


@pytest.mark.parametrize("window", [[one(3, low=1, high=2, base=2), one(3, low=2, high=1, base=2)], [one(5, low=3, high=3, base=3), one(2, base=2, dilate=3, low=4, high=1)],
                                    [one(1, base=2), one(1, base=4, high=2)], [one(2, base=4, low=-2, high=6), one(3, base=2, reverse=True, stride=2)],
                                    [one(4, base=3, low=5, high=-3, reverse=True), one(3, 1, 1, 1)], [one(3, base=2, dilate=2, low=2, high=2), one(3, low=1, high=1)]],
                         ids=window_text)
@pytest.mark.parametrize("t", ["f32", "s32", "bf16", "s8"])
def test_inputs_with_holes(t, window):
    for labels in (NHWC, NCHW):
        run_conv(t, labels, 3, 7, 33, (9, 13), window)
        run_conv(t, labels, 2, 8, 12, (9, 13), window, groups=2)


@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512"])
@pytest.mark.parametrize("t", ["f32", "f64", "bf16", "f16", "s8", "s16", "c64"])
def test_packing_of_windows(t, isa, monkeypatch):
    """More features than are computed row by row. Terms that are neighbours in one operand and not in the other, lines that are neighbours,
    results that are apart (phases of a dilated input), and more terms than a block has."""
    monkeypatch.setenv("XLAC_MAX_ISA", isa)
    run_conv(t, NCHW, 1, 68, 66, (6, 11), WINDOWS[0])
    run_conv(t, "bf01_io01->bf01", 1, 68, 66, (4, 9), [one(4, base=2, low=2, high=2)] * 2)
    run_conv(t, "f01b_i01o->01bf", 33, 5, 70, (6, 8), [one(5, low=1, high=1), one(7, low=1, high=1, dilate=1)])
    run_conv(t, NHWC, 1, 24, 180, (5, 7), [one(3, 2, 1, 1), one(3, 1, 1, 1, dilate=2)])


@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512", "avx512_vnni"])
@pytest.mark.parametrize("types", [("s8", "s8", "s32"), ("u8", "s8", "s32"), ("s8", "u8", "s32"), ("u8", "u8", "u32"), ("s4", "s8", "s32"), ("pred", "s8", "s32"),
                                   ("s8", "s8", "s8")], ids="-".join)
def test_products_of_bytes(types, isa, monkeypatch):
    """In fours where the CPU has that: of more terms than a block has and not whole fours, of as many rows as a block has or one more,
    with neighbours along either dimension, and to the last bit where all are as large as they can be."""
    monkeypatch.setenv("XLAC_MAX_ISA", isa)
    for m, k, n in ((95, 67, 64), (97, 1027, 40), (190, 2050, 33), (13, 1100, 130)):
        for sa, sb, left, right in (((m, k), (k, n), 1, 0), ((k, m), (n, k), 0, 1)):
            run_dot(*types, sa, sb, (), (), (left,), (right,))
    run_dot(*types, (3, 40, 50), (3, 50, 48), (0,), (0,), (2,), (1,))
    for labels in (NHWC, NCHW):
        run_conv(None, labels, 1, 70, 66, (7, 9), WINDOWS[0], types=types)
    text = dot_text(*types, (100, 1500), (1500, 70), (), (), (1,), (0,))
    largest = [np.full(shape, np.iinfo(TYPES[t]).min if t == "s8" else 1 if t == "pred" else -8 if t == "s4" else 255, TYPES[t])
               for t, shape in zip(types, ((100, 1500), (1500, 70)))]
    check(text, types[2], *largest)


def test_bytes_by_lines():
    """A product of bytes between other steps by rows of a tile."""
    text = """HloModule m
ENTRY e {
  x = s8[2000,512] parameter(0)
  w = s8[512,256] parameter(1)
  s = f32[256] parameter(2)
  p = s32[2000,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  f = f32[2000,256] convert(p)
  b = f32[2000,256] broadcast(s), dimensions={1}
  m = f32[2000,256] multiply(f, b)
  z = f32[] constant(0)
  zero = f32[2000,256] broadcast(z), dimensions={}
  r = f32[2000,256] maximum(m, zero)
  c = s8[2000,256] convert(r)
  v = s8[256,64] parameter(3)
  ROOT q = s32[2000,64] dot(c, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
    args = draw("s8", (2000, 512), 1), draw("s8", (512, 256), 2), np.abs(draw("f32", (256,), 3)) / 4000, draw("s8", (256, 64), 4)
    check(text, "s32", *args)


@pytest.mark.parametrize("t", ["f32", "bf16", "f16", "s8", "s32", "c64"])
def test_rows_that_many_tasks_need(t):
    """Packed before, block by block: of one block and of several, the last ones not full, in batches, lying either way."""
    for m, k, n in ((50, 700, 1100), (210, 130, 1030)):
        run_dot(t, t, t, (m, k), (k, n), (), (), (1,), (0,), blas=False)
        run_dot(t, t, t, (k, m), (n, k), (), (), (0,), (1,), blas=False)
    run_dot(t, t, t, (3, 40, 70), (3, 70, 1024), (0,), (0,), (2,), (1,), blas=False)


def test_an_input_mostly_of_holes_is_not_copied():
    run_conv("f32", "b0f_0io->b0f", 1, 1, 1, (50,), [one(2, stride=100000, base=100000)], fallback=1)


HAS_AVX2 = platform.machine() == "x86_64" and " avx2 " in open("/proc/cpuinfo").read()


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
@pytest.mark.parametrize("labels", [NHWC, NCHW, "f01b_i01o->01bf", "0fb1_o1i0->fb10"])
def test_convolutions_of_few_features(labels, isa, monkeypatch):
    """Computed row by row: rows of more than a vector, every number of outputs that is computed together, groups, and all windows but those
    over holes."""
    monkeypatch.setenv("XLAC_MAX_ISA", isa)
    for t in ("f32", "f64"):
        for window in [w for w in WINDOWS if max(dim["base"] for dim in w) == 1]:
            run_conv(t, labels, 2, 3, 7, (17, 75), window)
            run_conv(t, labels, 2, 4, 6, (14, 33), window, groups=2)
        run_conv(t, "b0f_0io->b0f", 2, 2, 3, (150,), [one(5, low=8, high=8, dilate=4)])
        run_conv(t, "bf012_oi012->bf012", 2, 1, 2, (6, 5, 40), [one(2), one(3, 2, 1, 1), one(5, 3, 4, 3, dilate=2, reverse=True)])
        text, _, _ = conv_text(t, NCHW, 1, 2, 2, (20, 20), WINDOWS[0])
        assert ("direct convolution" in xlac.compile(xlac.parse(text)).plan()) == HAS_AVX2


@pytest.mark.parametrize("labels", ["b0f_0io->b0f", "bf0_oi0->bf0"])
def test_long_rows_are_cut_into_pieces(labels):
    """Pieces of 16,384 results, the last with the rest, in place and from a padded copy of phases."""
    for window in ([one(5)], [one(5, stride=2, low=3, high=2)], [one(3, low=4, high=4, dilate=4)]):
        run_conv("f32", labels, 1, 1, 3, (70007,), window)


def test_borders_take_no_part_where_weights_are_infinite():
    """One feature to a group: no product with padding, as the interpreter has none."""
    text, x, k = conv_text("f32", NHWC, 1, 40, 40, (5, 5), WINDOWS[0], groups=40)
    kernel = draw("f32", k, 2)
    kernel[0, 0, 0, 3] = np.inf
    check(text, "f32", draw("f32", x, 1), kernel)


THIN = [((3, 700), (700, 1600), (), (), (1,), (0,)), ((1, 900), (900, 1500), (), (), (1,), (0,)), ((700, 5), (1600, 700), (), (), (0,), (1,)),
        ((2000, 131), (131, 8), (), (), (1,), (0,)), ((2000, 131), (8, 131), (), (), (1,), (1,)), ((100, 3), (3, 900), (), (), (1,), (0,)),
        ((90,), (700,), (), (), (), ()), ((5, 2, 130), (5, 130, 300), (0,), (0,), (2,), (1,)), ((5, 7, 130), (5, 300, 130), (0,), (0,), (2,), (2,))]


@pytest.mark.parametrize("blas", [None, False])
@pytest.mark.parametrize("dot", THIN, ids=str)
@pytest.mark.parametrize("t", ["f32", "f64", "bf16"])
def test_products_with_few_rows_or_terms(t, dot, blas):
    sa, sb, *dims = dot
    run_dot(t, t, t, sa, sb, *dims, blas=blas)


@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512"])
@pytest.mark.parametrize("t", ["f32", "f64", "bf16"])
def test_a_vector_by_rows_of_a_matrix(t, isa, monkeypatch):
    """By eight and by four terms, what is left of them and of a vector's lanes; of a large matrix in pieces of the sum."""
    monkeypatch.setenv("XLAC_MAX_ISA", isa)
    for m, k, n in [(1, 8, 300), (1, 15, 301), (1, 300, 701), (1, 781, 1029), (1, 524, 515), (2, 781, 1029), (3, 523, 600)]:
        run_dot(t, t, t, (m, k), (k, n), (), (), (1,), (0,), blas=False)


def test_sums_of_a_vector_by_rows_are_in_order():
    """Where there is one piece: no sum may change with how many terms are taken at a time."""
    module = xlac.parse(dot_text("f32", "f32", "f32", (1, 301), (301, 340), (), (), (1,), (0,)))
    a, b = draw("f32", (1, 301), 1), draw("f32", (301, 340), 2)
    want = np.zeros(340, np.float32)
    for p in range(301):
        want = (want.astype(np.float64) + a[0, p].astype(np.float64) * b[p].astype(np.float64)).astype(np.float32)
    got = leaves(xlac.compile(module, blas=False)(a, b))[0]
    assert np.abs(got[0] - want).max() <= 2**-20 * np.abs(want).max()  # f64 rounds once more than a fused step, hardly ever otherwise


FEW = [((32, 300), (300, 1024), (), (), (1,), (0,)), ((4, 16), (16, 64), (), (), (1,), (0,)), ((300, 15), (300, 97), (), (), (0,), (0,)),
       ((23, 530), (530, 131), (), (), (1,), (0,)), ((64, 257), (257, 333), (), (), (1,), (0,)), ((3, 13, 65), (3, 65, 200), (0,), (0,), (2,), (1,)),
       ((40, 64), (700, 64), (), (), (1,), (1,)), ((59, 257), (257, 600), (), (), (1,), (0,))]


@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512"])
@pytest.mark.parametrize("t", ["f32", "f64"])
def test_products_of_some_rows(t, isa, monkeypatch):
    """Too few rows to pack B, too many to be as fast as memory is."""
    monkeypatch.setenv("XLAC_MAX_ISA", isa)
    for sa, sb, *dims in FEW:
        run_dot(t, t, t, sa, sb, *dims)


def test_nan_and_infinity_of_some_rows_stay_where_they_belong():
    x, y = draw("f32", (21, 33), 1), draw("f32", (33, 75), 2)
    x[3, 7], y[8, 5], y[9, 6] = np.nan, np.inf, -np.inf
    check(dot_text("f32", "f32", "f32", (21, 33), (33, 75), (), (), (1,), (0,)), "f32", x, y)


def test_operands_of_sums_of_products_are_not_written_over():
    """What the kernel keeps for others has the size of an operand that dies there, and is made before the products are summed."""
    n = 5000
    m = xlac.parse(f"""func.func @main(%x: tensor<{n}x3xf32>) -> (tensor<f32>, tensor<f32>) {{
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %v = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (tensor<{n}x3xf32>, tensor<f32>) -> tensor<{n}xf32>
    %i = stablehlo.iota dim = 0 : tensor<{n}xi32>
    %p = stablehlo.convert %i : (tensor<{n}xi32>) -> tensor<{n}xf32>
    %a = stablehlo.sine %p : tensor<{n}xf32>
    %b = stablehlo.cosine %p : tensor<{n}xf32>
    %va = stablehlo.multiply %v, %a : tensor<{n}xf32>
    %vb = stablehlo.multiply %v, %b : tensor<{n}xf32>
    %r = stablehlo.reduce(%va init: %c) applies stablehlo.add across dimensions = [0] : (tensor<{n}xf32>, tensor<f32>) -> tensor<f32>
    %s = stablehlo.reduce(%vb init: %c) applies stablehlo.add across dimensions = [0] : (tensor<{n}xf32>, tensor<f32>) -> tensor<f32>
    return %r, %s : tensor<f32>, tensor<f32>
}}""")
    x = np.random.default_rng(1).standard_normal((n, 3)).astype(np.float32)
    for got, wanted in zip(xlac.compile(m)(x), xlac.interpret(m, x)):
        np.testing.assert_allclose(got, wanted, rtol=1e-3)


@pytest.mark.parametrize("t,k", [("f32", 150000), ("s8", 300001), ("s16", 300001), ("bf16", 150000), ("c64", 80000), ("s64", 150001), ("f64", 150000), ("f16", 150000)])
def test_long_sums_need_little_memory(t, k):
    dtype = TYPES[t]
    rng = np.random.default_rng(k)
    a, b = [(rng.integers(-3, 4, (n, k)) + (1j * rng.integers(-3, 4, (n, k)) if t == "c64" else 0)).astype(dtype) for n in (2, 3)]
    r = {"s8": "s32", "s16": "s32", "bf16": "f32", "f16": "f32"}.get(t, t)
    exe = xlac.compile(xlac.parse(f"""HloModule m
ENTRY e {{
  a = {t}[2,{k}] parameter(0)
  b = {t}[3,{k}] parameter(1)
  ROOT d = {r}[2,3] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
}}"""), threads=2, blas=False)
    wide = np.complex128 if t == "c64" else np.float64
    np.testing.assert_array_equal(exe(a, b).astype(wide), a.astype(wide) @ b.astype(wide).T)  # integers are exact in all of them
    assert exe.memory["frame_bytes"] < (18 << 20) + (4 * 5 * k if t == "f16" else 0)


@pytest.mark.parametrize("sides", [(1, 0), (0, 0), (1, 1), (0, 1)])
def test_large_products_whoever_makes_them(sides):
    """From some size on products are ours where the CPU has AVX-512, also where there is a library."""
    m, n, k = 450, 513, 300
    shapes = [(m, k) if sides[0] else (k, m), (n, k) if sides[1] else (k, n)]
    a, b = (np.random.default_rng(i).standard_normal(s).astype(np.float32) for i, s in enumerate(shapes))
    types = [f"tensor<{'x'.join(map(str, s))}xf32>" for s in shapes] + [f"tensor<{m}x{n}xf32>"]
    text = (f"func.func @main(%a: {types[0]}, %b: {types[1]}) -> {types[2]} {{\n  %c = stablehlo.dot_general %a, %b, contracting_dims = "
            f"[{sides[0]}] x [{sides[1]}] : ({types[0]}, {types[1]}) -> {types[2]}\n  return %c : {types[2]}\n}}\n")
    want = (a if sides[0] else a.T).astype(np.float64) @ (b.T if sides[1] else b).astype(np.float64)
    got = xlac.compile(xlac.parse(text), threads=1)(a, b)
    assert np.abs(got - want).max() < 1e-3
    assert got.tobytes() == xlac.compile(xlac.parse(text), threads=7)(a, b).tobytes()


@pytest.mark.parametrize("t", ["f32", "f64"])
def test_one_product_of_middle_size_in_full_tiles_is_our_own(t):
    """With AVX-512 no library is asked for it; batches, left sides in columns and tiles with much beyond their edges are left to one."""
    for (sa, sb, *dims), own in [((((256, 256), (256, 256), (), (), (1,), (0,))), True), (((192, 512), (192, 512), (), (), (1,), (1,)), True),
                                 (((120, 400), (400, 512), (), (), (1,), (0,)), True), (((512, 192), (512, 192), (), (), (0,), (0,)), False),
                                 (((4, 256, 256), (4, 256, 256), (0,), (0,), (2,), (1,)), False), (((1000, 100), (100, 100), (), (), (1,), (0,)), False)]:
        text = dot_text(t, t, t, sa, sb, *dims)
        run_dot(t, t, t, sa, sb, *dims)
        plans = [xlac.compile(text, blas=blas).plan() for blas in (None, False)]
        if avx512() and "gemm" in xlac.compile(dot_text(t, t, t, (1000, 100), (100, 100), (), (), (1,), (0,))).plan():
            assert ("gemm" not in plans[0]) == own, plans
        assert "gemm" not in plans[1]


def avx512():
    """Whether this CPU has what base_isa calls so."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines() if pathlib.Path("/proc/cpuinfo").exists() else []
    flags = next((set(line.split()) for line in lines if line.startswith("flags")), set())
    return flags >= {"avx512f", "avx512bw", "avx512dq", "avx512vl"} and "XLAC_MAX_ISA" not in os.environ
