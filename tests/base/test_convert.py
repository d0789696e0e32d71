import itertools

import numpy as np
import pytest
from reference import FLOATS, INTEGERS, STORAGE, Rounder, as_bits, codes

ROUNDERS = {}


def convert(lib, ffi, dtypes, values, to, source):
    values = np.ascontiguousarray(values)
    out = np.zeros(len(values), STORAGE[to])
    lib.base_convert(dtypes[to], ffi.cast("void *", out.ctypes.data), dtypes[source],
                     ffi.cast("void *", values.ctypes.data), len(values))
    return out


def limits(name):
    signed, bits = INTEGERS[name]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def samples(name):
    """Values of a type that matter to some conversion, as its own storage."""
    rng = np.random.default_rng(7)
    if name == "pred":
        return np.array([0, 1, 1, 0], np.uint8)
    if name in INTEGERS:
        least, most = limits(name)
        some = [v + d for b in range(65) for s in (1, -1) for v in [s << b] for d in (-1, 0, 1)] + list(range(-40, 300))
        some += [((1 << 24) + (1 << 16) + 1), (1 << 53) + 1, (1 << 62) + (1 << 54) + 1, (1 << 30) + (1 << 22) + 1]
        some += [int(v) for b in (31, 63) for v in rng.integers(-(1 << b), 1 << b, 400)]
        return np.array([v for v in some if least <= v <= most], STORAGE[name])
    if name in FLOATS:
        return codes(name)[:: 1 if len(codes(name)) < 1000 else 37].view(STORAGE[name])
    real = [0.0, -0.0, 0.5, -0.5, 1, 1.5, -1.9, 7.5, -8.9, 127.9, 128, -129, 255.9, 256, 65504, 65520, 2.0**31,
            2.0**31 - 1,
            -(2.0**31) - 1, 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 1e10, -1e10, 1e30, -1e30, 1e-40, np.inf, -np.inf,
            np.nan]
    if name in ("f32", "f64"):
        dtype = STORAGE[name]
        spread = rng.standard_normal(1500) * 2.0 ** rng.integers(-20, 40, 1500)
        return np.concatenate([np.array(real, dtype), spread.astype(dtype)])
    part = np.array(real, np.float32 if name == "c64" else np.float64)
    out = part.astype(STORAGE[name])
    out.imag = np.where(np.arange(len(part)) % 3, 2.0, 0.0)
    return out


def exact_to_float(value, name):
    """An int or f64 straight to a float type, as raw bits."""
    if name in ("f32", "f64"):
        if isinstance(value, float):
            with np.errstate(all="ignore"):
                return STORAGE[name].type(value)
        if name == "f64":
            return np.float64(value)
        magnitude = abs(value)
        shift = max(magnitude.bit_length() - 24, 0)
        low = magnitude & ((1 << shift) - 1)
        up = shift and (low > 1 << (shift - 1) or (low == 1 << (shift - 1) and magnitude >> shift & 1))
        return np.float32(((magnitude >> shift) + up) * 2.0**shift * (-1 if value < 0 else 1))
    raise AssertionError(name)


def int_as_odd_double(v):
    """|v| >= 2^53 rounded to odd: rounding it further to a narrow type is as from v itself."""
    a, shift = abs(v), max(abs(v).bit_length() - 50, 0)
    a = (a >> shift | (a & ((1 << shift) - 1) != 0)) << shift
    return float(a if v >= 0 else -a)


def want_float(values, to):
    """values: a list of ints or floats."""
    if to in ("f32", "f64"):
        return np.array([exact_to_float(v, to) for v in values], STORAGE[to])
    doubles = np.array([v if isinstance(v, float) else int_as_odd_double(v) for v in values])
    with np.errstate(all="ignore"):
        if to == "f8e8m0fnu":
            return doubles.astype(np.float32).astype(STORAGE[to])
        rounder = ROUNDERS.setdefault(to, Rounder(to))
        special = np.float32(doubles).astype(STORAGE[to])
    finite = np.isfinite(doubles)
    out = as_bits(special).copy()
    code = rounder.magnitude(np.abs(doubles[finite]))
    sign = out.dtype.type(len(codes(to)) // 2)
    no_negative_zero = to.endswith("uz")
    negative = np.signbit(doubles[finite]) & ~(no_negative_zero & (code == 0))
    out[finite] = code | np.where(negative, sign, 0).astype(out.dtype)
    return out.view(STORAGE[to])


def want_integer(values, to):
    signed, bits = INTEGERS[to]
    least, most = limits(to)
    out = []
    for v in values:
        if isinstance(v, float):
            v = 0 if v != v else least if v < least else most if v > most else int(v)
        v %= 1 << bits
        out.append(v - (1 << bits) if signed and v >> (bits - 1) else v)
    return np.array(out, STORAGE[to])


def want(values, to, source):
    """By Python's exact numbers."""
    with np.errstate(all="ignore"):
        if source in ("c64", "c128"):
            imag = values.imag.astype(np.float64)
            values = values.real
        elif source in FLOATS or source == "f32":
            values = values.astype(np.float64)
    listed = values.tolist()
    if to == "pred":
        parts = [v != 0 for v in listed]
        return np.array([p or i != 0 for p, i in zip(parts, imag)] if source[0] == "c" else parts, np.uint8)
    if to in INTEGERS:
        return want_integer(listed, to)
    if to in ("c64", "c128"):
        out = np.zeros(len(listed), STORAGE[to])
        out.real = want_float(listed, "f32" if to == "c64" else "f64")
        with np.errstate(all="ignore"):
            out.imag = imag if source[0] == "c" else 0
        return out
    return want_float(listed, to)


def same(got, expected, to):
    if to in ("c64", "c128"):
        part = got.real.dtype
        got, expected = got.view(part), expected.view(part)
    with np.errstate(all="ignore"):
        as_float = got.dtype.kind not in "iub"
        nan = np.isnan(got.astype(np.float32)) & np.isnan(expected.astype(np.float32)) if as_float else False
    return nan | (as_bits(got) == as_bits(expected))


@pytest.mark.parametrize("source", list(STORAGE))
def test_every_pair(lib, ffi, dtypes, source):
    values = samples(source)
    for to in STORAGE:
        got = convert(lib, ffi, dtypes, values, to, source)
        expected = values if to == source else want(values, to, source)
        bad = np.flatnonzero(~same(got, expected, to))
        if to[0] == "c":
            bad = bad // 2
        assert not len(bad), (source, to, [(values[i], got[i], expected[i]) for i in bad[:4]])


@pytest.mark.parametrize("name, values, want", [
    ("s4", [0, 7, -8, 3, 15, 200], [0, 7, -8, 3, -1, -56 % 16 - 16]), ("u4", [0, 15, 16, 255], [0, 15, 0, 15]),
    ("s2", [1, 2, 3, -3], [1, -2, -1, 1]), ("u2", [3, 4, -1], [3, 0, 3]), ("s1", [0, 1, 2, -1], [0, -1, 0, -1]),
    ("u1", [0, 1, 2, -1], [0, 1, 0, 1])])
def test_narrow_integers_wrap(lib, ffi, dtypes, name, values, want):
    assert convert(lib, ffi, dtypes, np.array(values, np.int32), name, "s32").tolist() == want
    dirty = np.array(values, np.int64).astype(np.int8 if name[0] == "s" else np.uint8)
    assert convert(lib, ffi, dtypes, dirty, "s32", name).tolist() == want, "high bits in memory do not count"


@pytest.mark.parametrize("name, want", [
    ("s4", [0, 7, -8, 3, -3, 7, -8]), ("u4", [0, 15, 0, 3, 0, 15, 0]), ("s2", [0, 1, -2, 1, -2, 1, -2]),
    ("u2", [0, 3, 0, 3, 0, 3, 0]), ("s1", [0, 0, -1, 0, -1, 0, -1]), ("u1", [0, 1, 0, 1, 0, 1, 0]),
    ("s8", [0, 127, -128, 3, -3, 127, -128]), ("u64", [0, 2**64 - 1, 0, 3, 0, 2**64 - 1, 0]),
    ("s64", [0, 2**63 - 1, -(2**63), 3, -3, 2**63 - 1, -(2**63)])])
def test_floats_saturate(lib, ffi, dtypes, name, want):
    """As XLA:CPU does (asked of jaxlib 0.10.2)."""
    for source in ("f32", "f64", "bf16", "f8e5m2"):
        values = np.array([np.nan, np.inf, -np.inf, 3.5 if source[1] != "8" else 3, -3, np.inf, -np.inf])
        values = values.astype(STORAGE[source])
        assert convert(lib, ffi, dtypes, values, name, source).tolist() == want


def test_blocks_and_addresses(lib, ffi, dtypes):
    """Lengths around the block size, and odd addresses on both sides."""
    pairs = (("s16", "bf16"), ("f8e4m3fn", "s64"), ("c64", "f16"))
    for n, (to, source) in itertools.product((1, 511, 512, 513, 1500), pairs):
        values = samples("s32")[:40].astype(np.float64).repeat(40)[:n].astype(STORAGE[source])
        a, b = STORAGE[source].itemsize, STORAGE[to].itemsize
        src, dst = np.zeros(n * a + 1, np.uint8), np.full(n * b + 2, 0xEE, np.uint8)
        src[1:] = values.view(np.uint8)
        lib.base_convert(dtypes[to], ffi.cast("void *", dst.ctypes.data + 1), dtypes[source],
                         ffi.cast("void *", src.ctypes.data + 1), n)
        assert dst[0] == 0xEE and dst[-1] == 0xEE
        assert dst[1:-1].tobytes() == convert(lib, ffi, dtypes, values, to, source).tobytes()
    lib.base_convert(dtypes["f32"], ffi.NULL, dtypes["f64"], ffi.NULL, 0)


def test_load_and_store(lib, ffi, dtypes):
    room = ffi.new("char[16]")
    for name in STORAGE:
        lib.base_store_f64(dtypes[name], room, 1.0)
        one = -1 if name == "s1" else 1
        expected = 0 if name == "s1" else 1  # saturated: an s1 holds 0 and -1
        assert lib.base_load_f64(dtypes[name], room) == expected
        lib.base_store_i64(dtypes[name], room, 1)
        assert lib.base_load_i64(dtypes[name], room) == one
    lib.base_store_i64(dtypes["u64"], room, -1)
    assert lib.base_load_f64(dtypes["u64"], room) == 2.0**64
    assert lib.base_load_i64(dtypes["u64"], room) == -1
    lib.base_store_f64(dtypes["c128"], room, 2.5)
    assert lib.base_load_i64(dtypes["c128"], room) == 2
