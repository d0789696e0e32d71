"""Fourier transforms compiled: near the interpreter's, which are rounded once, and the same for all numbers of threads."""
import numpy as np
import pytest

import xlac

from .conftest import same_bits

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 25, 27, 30, 32, 37, 49, 60, 64, 77, 100, 101, 127, 128, 243, 256, 343, 360,
           512, 961, 1000, 1009, 1024, 2187, 4096, 10007]
LONG = [8192, 10000, 16384, 3 * 2**13, 65536, 59049, 2 * 5003, 117649]


def program(kind, dtype, shape, lengths):
    real = {"c64": "f32", "c128": "f64"}[dtype]
    spectrum = shape[:-1] + (shape[-1] // 2 + 1,)
    types = {"FFT": (dtype, shape, dtype, shape), "IFFT": (dtype, shape, dtype, shape), "RFFT": (real, shape, dtype, spectrum),
             "IRFFT": (dtype, spectrum, real, shape)}[kind]
    text = [f"{t}[{','.join(map(str, s))}]" for t, s in (types[:2], types[2:])]
    return xlac.parse(f"HloModule m\nENTRY e {{ x = {text[0]} parameter(0)\n ROOT r = {text[1]} fft(x), fft_type={kind}, "
                      f"fft_length={{{','.join(map(str, lengths))}}} }}"), types[0], types[1]


def operand(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype[0] == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype({"f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16"}[dtype])


def check(kind, dtype, shape, lengths, tolerance=1.0):
    module, in_type, in_shape = program(kind, dtype, shape, lengths)
    x = operand(in_type, in_shape)
    want = xlac.interpret(module, x)
    one = xlac.compile(module, threads=1)
    assert one.steps["interpreted"] == 0
    got = one(x)
    for threads in (2, 7):
        assert same_bits([got], [xlac.compile(module, threads=threads)(x)])
    assert got.dtype == want.dtype and got.shape == want.shape
    eps = np.finfo(got.dtype).eps
    error, size = np.linalg.norm((got - want).astype("c16")), np.linalg.norm(want.astype("c16"))
    assert error <= tolerance * eps * np.sqrt(np.log2(np.prod(lengths)) + 1) * size, (kind, dtype, shape, error / size / eps)


def smooth(n):
    for p in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31):
        while n % p == 0:
            n //= p
    return n == 1


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_lengths(kind, dtype):
    for n in LENGTHS:
        check(kind, dtype, (n,), (n,), 1 if smooth(n) else 3)
        check(kind, dtype, (19, n), (n,), 1 if smooth(n) else 3)


@pytest.mark.parametrize("n", LONG)
def test_long_lines(n):
    for kind, dtype in (("FFT", "c64"), ("IFFT", "c128"), ("RFFT", "c64"), ("IRFFT", "c64")):
        check(kind, dtype, (n,), (n,), 1 if smooth(n) else 3)
    check("FFT", "c64", (3, n), (n,), 1 if smooth(n) else 3)


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
@pytest.mark.parametrize("shape,lengths", [((8, 6), (8, 6)), ((3, 5, 7), (5, 7)), ((4, 9, 20), (4, 9, 20)), ((2, 3, 17, 40), (17, 40)),
                                           ((130, 33), (130, 33)), ((2, 64, 64, 2), (64, 64, 2)), ((33, 1, 1), (1, 1)),
                                           ((16384, 3), (16384, 3))])
def test_ranks(kind, shape, lengths):
    for dtype in ("c64", "c128"):
        check(kind, dtype, shape, lengths)


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
def test_empty(kind):
    module, in_type, in_shape = program(kind, "c64", (0, 8), (8,))
    x = operand(in_type, in_shape)
    assert same_bits([xlac.compile(module)(x)], [xlac.interpret(module, x)])


def test_lines_do_not_mix():
    """What is not finite in one line stays in it."""
    for kind in ("FFT", "RFFT", "IRFFT"):
        for n in (16, 15, 101):
            module, in_type, in_shape = program(kind, "c64", (20, n), (n,))
            x = operand(in_type, in_shape)
            x[7, 1], x[9, 2] = np.nan, np.inf
            good = np.isfinite(xlac.compile(module)(x)).all(-1)
            assert good.sum() == 18 and not good[[7, 9]].any()


def test_in_place_and_spectrum():
    text = """HloModule m
ENTRY e { x = c64[64,64] parameter(0)
 y = c64[64,64] add(x, x)
 z = c64[64,64] fft(y), fft_type=FFT, fft_length={64,64}
 w = c64[64,64] fft(z), fft_type=IFFT, fft_length={64,64}
 ROOT r = c64[64,64] negate(w) }"""
    module, x = xlac.parse(text), operand("c64", (64, 64))
    before = x.copy()
    np.testing.assert_allclose(xlac.compile(module)(x), -2 * x, atol=1e-5)
    np.testing.assert_array_equal(x, before)
    # parts of the first and the middle number that no real signal has are ignored
    module, *_ = program("IRFFT", "c128", (8,), (8,))
    s = operand("c128", (5,))
    np.testing.assert_allclose(xlac.compile(module)(s), np.fft.irfft(s, 8), atol=1e-14)
