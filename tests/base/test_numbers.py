import decimal
import math
import random
import struct

import numpy as np
import pytest

decimal.getcontext().prec = 1200


def parse(lib, ffi, text, kind="f64"):
    """(value, characters read), or None."""
    raw = text.encode()
    buf = ffi.new("char[]", raw)
    out = ffi.new({"f64": "double *", "f32": "float *", "i64": "int64_t *", "u64": "uint64_t *"}[kind])
    end = getattr(lib, "base_parse_" + kind)(buf, buf + len(raw), out)
    return None if end == ffi.NULL else (out[0], int(end - buf))


def parse_many(lib, ffi, texts, kind):
    raw = " ".join(texts).encode()
    dtype = np.float64 if kind == "f64" else np.float32
    out = np.zeros(len(texts), dtype)
    at = ffi.new("size_t *")
    pointer = ffi.cast("double *" if kind == "f64" else "float *", ffi.from_buffer(out))
    n = getattr(lib, "shim_parse_" + kind)(ffi.from_buffer(raw), len(raw), pointer, len(texts), at)
    assert n == len(texts) and at[0] == len(raw)
    return out


def print_many(lib, ffi, t, values):
    out = ffi.new("char[]", 33 * len(values) + 1)
    values = np.ascontiguousarray(values)
    n = lib.shim_print(t, ffi.cast("void *", values.ctypes.data), len(values), out)
    return ffi.buffer(out, n)[:].decode().split("\n")[:-1]


def nearest_f32(text):
    """Correctly rounded, by exact arithmetic: numpy rounds by way of f64."""
    exact = decimal.Decimal(text)
    if not exact:
        return np.float32(text)
    with np.errstate(over="ignore"):
        guess = np.float32(float(text))
    if not np.isfinite(guess):
        limit = decimal.Decimal(2) ** 128 - decimal.Decimal(2) ** 103
        return guess if abs(exact) >= limit else np.copysign(np.finfo(np.float32).max, guess)
    with np.errstate(over="ignore"):
        near = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
    near = [v for v in near if np.isfinite(v)]
    key = lambda v: (abs(decimal.Decimal(float(v)) - exact), int(v.view(np.uint32)) & 1)
    best = min(near, key=key)
    if abs(exact) >= decimal.Decimal(2) ** 128 - decimal.Decimal(2) ** 103:
        return np.copysign(np.float32(np.inf), guess)
    return best


def halfway_text(v, dtype):
    """The exact middle between v and the next number up."""
    bits = struct.unpack("<Q", struct.pack("<d", v))[0] if dtype is np.float64 else int(np.float32(v).view(np.uint32))
    up = struct.unpack("<d", struct.pack("<Q", bits + 1))[0] if dtype is np.float64 else np.uint32(bits + 1).view(np.float32)
    return (decimal.Decimal(float(v)) + decimal.Decimal(float(up))) / 2


HARD = [
    "0", "-0", "0.0", "-0.0e5", "1", "-1", "0.5", "1e-05", "0.1", "1e400", "-1e400", "1e-400", "1e309", "1.8e308",
    "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "4.9e-324", "2.4703282292062327e-324",
    "2.4703282292062328e-324", "2.47032822920623272088e-324", "2.2250738585072011e-308", "2.2250738585072014e-308",
    "9007199254740993", "9007199254740992.5", "9007199254740993.0000000000000000000000001", "4503599627370496.5",
    "4503599627370497.5", "18446744073709551615", "18446744073709551616", "1e22", "1e23", "8.5e22", "0." + "0" * 400 + "1",
    "1" + "0" * 400, "1" * 400, "1" * 309, "9" * 400 + "e-400", "0." + "9" * 400, "123456789" * 45 + "e-380", "1e0000000005",
    "1e99999999999999999999", "1e-99999999999999999999", "0e99999999999999999999", "0." + "0" * 30 + "123456789012345678901",
    "3.4028234663852886e38", "3.4028235677973366e38", "3.4028235677973365e38", "1.401298464324817e-45",
    "7.006492321624085e-46", "7.006492321624086e-46", "7.0064923216240853546186479164495806564013097093825788587853e-46",
    "1.1754943508222875e-38", "1.00000017881393421514957253748434595763683319091796875001", "16777217", "33554435",
    "1.00000017881393432617187499", "1.000000178813934326171875", "1.00000017881393432617187501", "65504.0E+0", "6.25E-2",
]


def test_power_table(lib, ffi):
    for q in range(-342, 341):
        row = lib.shim_power5(q)
        if q >= 0:
            want = (5**q << 128) >> (5**q).bit_length()
        else:
            t = (1 << 2048) // 5**-q
            want = t >> (t.bit_length() - 128)
        assert row.high << 64 | row.low == want, q
    assert lib.shim_power5(-343) == ffi.NULL and lib.shim_power5(341) == ffi.NULL


def test_hard_cases(lib, ffi):
    for text in HARD:
        got, n = parse(lib, ffi, text)
        want = float(text)
        assert n == len(text) and struct.pack("<d", got) == struct.pack("<d", want), text
        got, n = parse(lib, ffi, text, "f32")
        plain = float(text) in (0.0, math.inf, -math.inf)
        want = np.float32(float(text)) if plain and len(text) > 20 else nearest_f32(text)
        assert n == len(text) and np.float32(got).view(np.uint32) == want.view(np.uint32), (text, got, want)


@pytest.mark.parametrize("text, rest", [
    ("1.", ""), ("1.x", "x"), ("1e", "e"), ("1e+", "e+"), ("1e-x", "e-x"), ("1.5.2", ".2"), ("12,", ","), ("0x10", "x10"),
    ("1E5}", "}"), ("-.5", ""), ("1__", "__"), ("12345678901234567890abc", "abc"), ("1 ", " "), ("-7e2 ", " ")])
def test_where_a_number_ends(lib, ffi, text, rest):
    got, n = parse(lib, ffi, text)
    assert text[n:] == rest and got == float(text[:n])


@pytest.mark.parametrize("text", ["", "-", ".5", "+1", "e5", "inf", "nan", "-e", " 1", ".", "-.", "--1", "-.e1"])
def test_not_a_number(lib, ffi, text):
    for kind in ("f64", "f32", "i64", "u64"):
        assert parse(lib, ffi, text, kind) is None


def test_end_is_respected(lib, ffi):
    buf = ffi.new("char[]", b"123456789.5e10")
    out = ffi.new("double *")
    for n in range(1, 15):
        assert lib.base_parse_f64(buf, buf + n, out) != ffi.NULL
        assert out[0] == float({10: "123456789", 12: "123456789.5"}.get(n, "123456789.5e10"[:n]))


def random_texts(rng, n):
    for _ in range(n):
        kind = rng.randrange(6)
        if kind == 0:
            yield repr(struct.unpack("<d", struct.pack("<Q", rng.randrange(0x7FF << 52)))[0])
        elif kind == 1:
            yield f"{rng.randrange(10 ** rng.randrange(1, 22))}e{rng.randrange(-345, 310)}"
        elif kind == 2:
            yield f"-{rng.randrange(10 ** rng.randrange(1, 12))}.{rng.randrange(10 ** rng.randrange(1, 30))}"
        elif kind == 3:
            yield str(rng.randrange(1, 100) / rng.choice([1, 2, 4, 10, 100, 1000]))
        elif kind == 4:
            yield f"{rng.random():.{rng.randrange(1, 25)}e}"
        else:
            yield "".join(rng.choice("0123456789") for _ in range(rng.randrange(15, 60))) + f"e{rng.randrange(-80, 60)}"


def test_random_f64(lib, ffi):
    texts = list(random_texts(random.Random(1), 60000))
    got = parse_many(lib, ffi, texts, "f64")
    want = np.array([float(t) for t in texts])
    bad = np.flatnonzero(got.view(np.uint64) != want.view(np.uint64))
    assert not len(bad), [texts[i] for i in bad[:5]]


def test_random_f32(lib, ffi):
    rng = random.Random(2)
    texts = [t for t in random_texts(rng, 3000)]
    texts += [f"{np.uint32(rng.randrange(0x7F800000)).view(np.float32):.{rng.randrange(5, 12)}g}" for _ in range(3000)]
    got = parse_many(lib, ffi, texts, "f32")
    for text, v in zip(texts, got):
        want = nearest_f32(text)
        assert v.view(np.uint32) == want.view(np.uint32), text


@pytest.mark.parametrize("kind, dtype", [("f64", np.float64), ("f32", np.float32)])
def test_halfway(lib, ffi, kind, dtype):
    """Exact middles go to even; one digit more or less, however far behind, decides."""
    rng = random.Random(3)
    top = 0x7FE << 52 if dtype is np.float64 else 0x7F000000
    view = (lambda b: np.uint64(b).view(np.float64)) if dtype is np.float64 else (lambda b: np.uint32(b).view(np.float32))
    picks = [0, 1, 2, top // 2, top - 1, 1 << 52 if dtype is np.float64 else 1 << 23]
    picks += [rng.randrange(top) for _ in range(150)] + [rng.randrange(1 << 20) for _ in range(30)]
    texts, want = [], []
    for bits in picks:
        v = view(bits)
        middle = halfway_text(v, dtype)
        sign, digits, exponent = middle.as_tuple()
        number = int("".join(map(str, digits)))
        even = bits if bits % 2 == 0 else bits + 1
        for d, e, b in ((number, exponent, even), (number * 10**30 + 1, exponent - 30, bits + 1),
                        (number * 10**30 - 1, exponent - 30, bits), (number * 10, exponent - 1, even)):
            texts.append(f"{d}e{e}")
            want.append(view(b))
        plain = format(middle, "f")
        texts += [plain + "0" * 20 if "." in plain else plain, (plain if "." in plain else plain + ".") + "0" * 900 + "1"]
        want += [view(even), view(bits + 1)]
    got = parse_many(lib, ffi, texts, kind)
    integer = np.uint64 if dtype is np.float64 else np.uint32
    want = np.array(want, dtype)
    bad = np.flatnonzero(got.view(integer) != want.view(integer))
    assert not len(bad), (texts[bad[0]][:80], got[bad[0]], want[bad[0]])


def test_integers(lib, ffi):
    rng = random.Random(4)
    values = [0, 1, -1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**64 - 1, 2**64, 10**19, 10**20, 10**40]
    values += [rng.randrange(-(2 ** rng.randrange(1, 66)), 2 ** rng.randrange(1, 66)) for _ in range(2000)]
    for v in values:
        text = str(v)
        want = (v, len(text)) if -(2**63) <= v < 2**63 else None
        assert parse(lib, ffi, text, "i64") == want, v
        want = (v % 2**64, len(text)) if -(2**63) <= v < 2**64 else None
        assert parse(lib, ffi, text, "u64") == want, v
    assert parse(lib, ffi, "0" * 50 + "17]", "i64") == (17, 52)
    assert parse(lib, ffi, "12.5", "i64") == (12, 2)


def as_c(v, few, most, cast):
    text = "%.*g" % (few, v)
    return text if cast(float(text)) == v else "%.*g" % (most, v)


def interesting_f32(rng):
    yield rng.integers(0, 2**32, 40000, dtype=np.uint32).view(np.float32)
    yield rng.integers(-(10**8), 10**8, 4000).astype(np.float32)
    yield (rng.integers(0, 100000, 4000) / 1000).astype(np.float32)
    yield np.float32(10.0) ** np.arange(-45, 39).astype(np.float32)
    yield np.array([0.0, -0.0, 1.5, 999999, 1e6, 999999.5, 9999995, 1e-4, 1e-5, 9.9999995e-5, 16777216, 33554432, 2.5e9, 1e-45,
                    3.4028235e38, 1.1754944e-38, 123456.5, 1234565, 12345650, 2000005, 2000015], np.float32)
    yield np.ldexp(np.float32(1), np.arange(-149, 128)).astype(np.float32)


def test_print_f32(lib, ffi, dtypes):
    rng = np.random.default_rng(5)
    with np.errstate(all="ignore"):
        values = np.concatenate(list(interesting_f32(rng)))
        values = values[np.isfinite(values)]
        got = print_many(lib, ffi, dtypes["f32"], values)
        for v, g in zip(values, got):
            assert g == as_c(float(v), 6, 9, np.float32), float(v).hex()


def test_print_f64(lib, ffi, dtypes):
    rng = np.random.default_rng(6)
    values = np.concatenate([
        rng.integers(0, 2**64, 40000, dtype=np.uint64).view(np.float64), rng.integers(-(10**18), 10**18, 4000).astype(float),
        rng.integers(0, 10**6, 4000) / 1000, rng.integers(0, 2**40, 300, dtype=np.uint64).view(np.float64),
        np.ldexp(1.0, np.arange(-1074, 1024)), [float(f"1e{k}") for k in range(-323, 309)], rng.integers(0, 2**54, 500) / 2.0,
        rng.integers(0, 2**54, 500) / 8.0, rng.integers(2**50, 2**53, 2000) * 2.0 ** rng.integers(1, 8, 2000),
        [0.0, -0.0, 1e15, 999999999999999.0, 999999999999999.5, 9999999999999995.0, 5e-324, 1.7976931348623157e308]])
    values = values[np.isfinite(values)]
    got = print_many(lib, ffi, dtypes["f64"], values)
    for v, g in zip(values, got):
        assert g == as_c(float(v), 15, 17, float), float(v).hex()


def narrow_values(lib, ffi, t):
    n = 1 << lib.base_dtype_of(t).bits
    bits = np.arange(n, dtype=np.uint32)
    out = np.zeros(n)
    lib.shim_decode_f64(t, ffi.cast("uint32_t *", bits.ctypes.data), ffi.cast("double *", out.ctypes.data), n)
    return bits.astype(np.uint8 if lib.base_dtype_of(t).bytes == 1 else np.uint16), out


def test_print_narrow(lib, ffi, dtypes):
    """XLA prints the types narrower than f32 with max_digits10 digits at once (asked of jaxlib 0.10.2, every value)."""
    for name in [d for d in dtypes if lib.base_dtype_of(dtypes[d]).kind == 4 and d not in ("f32", "f64")]:
        t = dtypes[name]
        digits = math.ceil((lib.base_dtype_of(t).mantissa_bits + 1) * math.log10(2) + 1)
        bits, values = narrow_values(lib, ffi, t)
        keep = np.isfinite(values)
        got = print_many(lib, ffi, t, bits[keep])
        assert got == ["%.*g" % (digits, v) for v in values[keep]], name


@pytest.mark.parametrize("name, bits, text", [
    ("f32", 0x7F800000, "inf"), ("f32", 0xFF800000, "-inf"), ("f32", 0x7FC00000, "nan"), ("f32", 0xFFC00000, "-nan"),
    ("f32", 0x7F800001, "nan(0x1)"), ("f32", 0xFFC00001, "-nan(0x400001)"), ("f32", 0x7FFFFFFF, "nan(0x7fffff)"),
    ("f64", 0x7FF8 << 48, "nan"), ("f64", 0xFFFFFFFFFFFFFFFF, "-nan(0xfffffffffffff)"), ("f64", 0x7FF << 52 | 1, "nan(0x1)"),
    ("f16", 0x7C01, "nan(0x1)"), ("f16", 0x7E00, "nan"), ("bf16", 0xFFFF, "-nan(0x7f)"), ("bf16", 0x7FC0, "nan"),
    ("f8e5m2", 0x7D, "nan(0x1)"), ("f8e5m2", 0xFE, "-nan"), ("f8e5m2", 0x7F, "nan(0x3)"), ("f8e4m3", 0x7C, "nan"),
    ("f8e4m3", 0x7F, "nan(0x7)"), ("f8e3m4", 0x78, "nan"), ("f8e3m4", 0xF1, "-nan(0x1)"), ("f8e4m3fn", 0x7F, "nan"),
    ("f8e4m3fn", 0xFF, "-nan"), ("f8e4m3fnuz", 0x80, "-nan"), ("f8e4m3b11fnuz", 0x80, "-nan"), ("f8e5m2fnuz", 0x80, "-nan"),
    ("f8e8m0fnu", 0xFF, "nan"), ("f8e5m2", 0x7C, "inf"), ("f4e2m1fn", 0x8, "-0"), ("f16", 0x8000, "-0")])
def test_print_special(lib, ffi, dtypes, name, bits, text):
    out = ffi.new("char[32]")
    n = lib.base_print_float(dtypes[name], bits, out)
    assert ffi.string(out, n).decode() == text
