"""Elementwise ops that are not an expression over one type: reduce-precision, iota, bitcast-convert, stochastic-convert."""
import elementwise as ew
import numpy as np
import pytest

import xlac

FORMATS = [(1, 0), (2, 1), (3, 4), (4, 3), (5, 2), (5, 10), (8, 0), (8, 7), (8, 10), (8, 23), (6, 23), (11, 52), (11, 20)]


def run(text, *args):
    return xlac.interpret(xlac.parse("HloModule m\nENTRY e {\n" + text + "\n}\n"), *args)


@pytest.mark.parametrize("t", ["f16", "bf16", "f32", "f64"])
def test_reduce_precision_is_xlas(t):
    real = pytest.importorskip("real_xla")
    widest = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}[t]
    formats = [f for f in FORMATS if f[0] <= widest[0] and f[1] <= widest[1]]
    x = ew.operands(t, 1)[0]
    tiny = float(ew.ml_dtypes.finfo(ew.DTYPES[t]).tiny)
    x = x[(abs(x.astype(np.float64)) >= tiny) | (x == 0) | np.isnan(x.astype(np.float64))]
    n = x.size
    lines = [f"  p = {t}[{n}] parameter(0)"]
    lines += [f"  v{i} = {t}[{n}] reduce-precision(p), exponent_bits={e}, mantissa_bits={m}" for i, (e, m) in enumerate(formats)]
    names = ", ".join(f"v{i}" for i in range(len(formats)))
    lines.append(f"  ROOT r = ({', '.join(f'{t}[{n}]' for _ in formats)}) tuple({names})")
    text = "\n".join(lines)
    want = real.run("HloModule m\nENTRY e {\n" + text + "\n}\n", x)
    for f, g, w in zip(formats, run(text, x), want):
        g, w = g.astype(np.float64), w.astype(np.float64)
        np.testing.assert_array_equal(g, w, err_msg=str(f))
        np.testing.assert_array_equal(np.signbit(g)[w == 0], np.signbit(w)[w == 0], err_msg=str(f))


@pytest.mark.parametrize("t", [t for t in ew.DTYPES if t != "pred"])
def test_iota(t):
    for shape, d in [((7,), 0), ((2, 3, 4), 0), ((2, 3, 4), 1), ((2, 3, 4), 2), ((2, 0, 3), 2), ((300,), 0)]:
        if ew.bits_of(t) < 8 and max(shape) > 7:
            continue
        dims = ",".join(map(str, shape))
        got = run(f"ROOT r = {t}[{dims}] iota(), iota_dimension={d}")
        number = np.arange(shape[d]).reshape([-1 if i == d else 1 for i in range(len(shape))])
        want = np.broadcast_to(number, shape)
        if t[0] in "su":
            want = np.array([ew.wrap(int(v), t) for v in want.ravel()], object).reshape(shape)
            np.testing.assert_array_equal(got.astype(object), want)
        else:
            with np.errstate(all="ignore"):
                want = want.astype(np.complex64 if t[0] == "c" else np.float32).astype(ew.DTYPES[t])
                wide = np.complex128 if t[0] == "c" else np.float64
                np.testing.assert_array_equal(got.astype(wide), want.astype(wide))


def sizes(t):
    return 8 if t in ("pred", "f6e2m3fn", "f6e3m2fn") else ew.bits_of(t)


@pytest.mark.parametrize("to", ["u8", "s16", "f32", "u64", "f64", "bf16", "f8e4m3fn", "s32"])
@pytest.mark.parametrize("t", ["u8", "s16", "f32", "u64", "f64", "f16", "f8e5m2", "u32"])
def test_bitcast_convert_is_a_view(t, to):
    a, b = sizes(t), sizes(to)
    shape = (3, b // a) if b > a else (3,)
    result = (3, a // b) if a > b else (3,)
    x = np.random.default_rng(1).integers(0, 256, int(np.prod(shape)) * a // 8, dtype=np.uint8)
    x = x.view(ew.DTYPES[t]).reshape(shape)
    dims, out = ",".join(map(str, shape)), ",".join(map(str, result))
    got = run(f"p = {t}[{dims}] parameter(0)\nROOT r = {to}[{out}] bitcast-convert(p)", x)
    assert got.shape == result and got.tobytes() == x.tobytes()


def test_bitcast_convert_of_nibbles():
    x = np.array([[0x21, 0xF3], [0x85, 0x07]], np.uint8)
    got = run("p = u8[2,2] parameter(0)\nROOT r = s4[2,2,2] bitcast-convert(p)", x)
    np.testing.assert_array_equal(got.astype(np.int32), [[[1, 2], [3, -1]], [[5, -8], [7, 0]]])
    back = run("p = s4[2,2,2] parameter(0)\nROOT r = u8[2,2] bitcast-convert(p)", got)
    np.testing.assert_array_equal(back, x)
    twos = run("p = u8[2,2] parameter(0)\nROOT r = u2[2,2,4] bitcast-convert(p)", x)
    np.testing.assert_array_equal(twos[0, 0].astype(int), [1, 0, 2, 0])
    same = run("p = s4[2,2,2] parameter(0)\nROOT r = u4[2,2,2] bitcast-convert(p)", got)
    np.testing.assert_array_equal(same.astype(int), np.asarray(got).astype(int) & 15)


@pytest.mark.parametrize("t,random", [("f32", "u32"), ("f16", "u16"), ("bf16", "u16"), ("f64", "u64")])
@pytest.mark.parametrize("to", ["s8", "s32", "u8"])
def test_stochastic_convert_to_integers(t, random, to):
    rng = np.random.default_rng(2)
    n = 4000
    x = np.full(n, 2.25, ew.DTYPES[t])
    bits = rng.integers(0, np.iinfo(ew.DTYPES[random]).max, n, dtype=ew.DTYPES[random], endpoint=True)
    text = f"p = {t}[{n}] parameter(0)\nq = {random}[{n}] parameter(1)\nROOT r = {to}[{n}] stochastic-convert(p, q)"
    got = run(text, x, bits)
    assert set(np.unique(got)) == {2, 3} and abs(got.astype(float).mean() - 2.25) < 0.03
    edges = np.array([np.nan, np.inf, -np.inf, 1e4, 7, -7, 0], np.float64).astype(ew.DTYPES[t])
    low, high = ew.int_range(to)
    want = [0, high, low, min(10000, high), 7, max(-7, low), 0]
    got = run(text.replace(f"[{n}]", "[7]"), edges, bits[:7])
    if t in ("f32", "f64"):
        np.testing.assert_array_equal(got, want)
