import numpy as np
import pytest
from reference import FLOATS, Rounder, as_bits, codes

NAMES = list(FLOATS)
UNSIGNED = "f8e8m0fnu"


def encode(lib, ffi, t, values):
    values = np.ascontiguousarray(values)
    out = np.zeros(len(values), np.uint32)
    kind = "f32" if values.dtype == np.float32 else "f64"
    c = {"f32": "float *", "f64": "double *"}[kind]
    getattr(lib, "shim_encode_" + kind)(t, ffi.cast(c, values.ctypes.data), ffi.cast("uint32_t *", out.ctypes.data),
                                        len(values))
    return out


def decode(lib, ffi, t, bits, kind):
    bits = np.ascontiguousarray(bits, np.uint32)
    out = np.zeros(len(bits), np.float32 if kind == "f32" else np.float64)
    c = {"f32": "float *", "f64": "double *"}[kind]
    getattr(lib, "shim_decode_" + kind)(t, ffi.cast("uint32_t *", bits.ctypes.data), ffi.cast(c, out.ctypes.data),
                                        len(bits))
    return out


def same_values(a, b):
    """Equal with the sign of zero; NaN is NaN."""
    return np.all((np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b))))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_code_to_f32_and_f64(lib, ffi, dtypes, name):
    values = codes(name).view(np.dtype(FLOATS[name]))
    for kind, dtype in (("f32", np.float32), ("f64", np.float64)):
        got, want = decode(lib, ffi, dtypes[name], codes(name), kind), values.astype(dtype)
        assert same_values(got, want)
        nan = np.isnan(want) & (name != UNSIGNED)
        assert np.array_equal(np.signbit(got[nan]), codes(name)[nan] >> (lib.base_dtype_of(dtypes[name]).bits - 1) & 1)


@pytest.mark.parametrize("name", NAMES)
def test_every_code_comes_back(lib, ffi, dtypes, name):
    t = dtypes[name]
    for kind in ("f32", "f64"):
        values = decode(lib, ffi, t, codes(name), kind)
        back = encode(lib, ffi, t, values)
        keep = ~np.isnan(values)
        assert np.array_equal(back[keep], codes(name)[keep])
        assert np.all(np.isnan(decode(lib, ffi, t, back[~keep], "f64")))


def sample_f32(name):
    """A step through all of f32 that meets every exponent often, and the neighbourhood of every value and middle."""
    rng = np.random.default_rng(1)
    bits = [np.arange(0, 1 << 32, 4099, dtype=np.uint64).astype(np.uint32),
            rng.integers(0, 1 << 32, 200000, dtype=np.uint32)]
    with np.errstate(all="ignore"):
        values = codes(name).view(np.dtype(FLOATS[name])).astype(np.float32)
    values = np.sort(values[np.isfinite(values)])
    middles = ((values[:-1].astype(np.float64) + values[1:]) / 2).astype(np.float32)
    edge = np.array([values[-1] * np.float64(1 + 2.0**-k) for k in range(1, 14)]).astype(np.float32)
    for v in (values, middles, edge, -edge, np.array([0, -0.0, np.inf, -np.inf, np.nan, -np.nan], np.float32)):
        b = v.view(np.uint32)
        bits += [b, b + np.uint32(1), b - np.uint32(1)]
    return np.concatenate(bits).view(np.float32)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_from_f32(lib, ffi, dtypes, name):
    values = sample_f32(name)
    got = encode(lib, ffi, dtypes[name], values)
    want = as_bits(values.astype(FLOATS[name])).astype(np.uint32)
    nan = np.isnan(values)
    if name == "f16":  # NumPy keeps a NaN's payload
        assert np.array_equal(got[nan] & 0xFE00, want[nan] & 0xFC00 | 0x200)
        values, got, want = values[~nan], got[~nan], want[~nan]
    bad = np.flatnonzero(got != want)
    assert not len(bad), [(values[i], hex(got[i]), hex(want[i])) for i in bad[:5]]


@pytest.mark.parametrize("name", [n for n in NAMES if n != UNSIGNED])
def test_from_f64_rounds_once(lib, ffi, dtypes, name):
    """ml_dtypes goes by way of f32, so the reference is our own: the nearest of all values."""
    rounder = Rounder(name)
    rng = np.random.default_rng(2)
    near = np.concatenate([rounder.values, rounder.middles])
    tiny = np.array([5e-324, 1e-310, 1e-46, 2.0**-150, 2.0**-149])
    values = np.concatenate([near, np.nextafter(near, np.inf), np.nextafter(near, 0), near * (1 + 2.0**-30), tiny,
                             near * (1 - 2.0**-30), rng.uniform(0, rounder.values[-1] * 1.1, 50000),
                             rounder.values[-1] * 2.0 ** rng.uniform(-20, 2, 50000), [1e39, 1e300, 1.7e308]])
    values = values[np.isfinite(values)]
    t = dtypes[name]
    want = rounder.magnitude(values).astype(np.uint32)
    assert np.array_equal(encode(lib, ffi, t, values), want)
    sign = np.uint32(1 << (lib.base_dtype_of(t).bits - 1))
    negative = want | np.where((want != 0) | lib.base_float_has_negative_zero(t), sign, np.uint32(0))
    assert np.array_equal(encode(lib, ffi, t, -values), negative)


def test_f8e8m0fnu_from_f64(lib, ffi, dtypes):
    """Powers of two; halves go up; below the least one goes to it; zero, negative, too large and NaN are NaN."""
    cases = {1.0: 127, 1.5: 128, np.nextafter(1.5, 0): 127, 3.0: 129, 2.0**-127: 0, 2.0**-128: 0, 5e-324: 0,
             2.0**-126: 1,
             2.0**127: 254, np.nextafter(1.5 * 2.0**127, 0): 254, 1.5 * 2.0**127: 255, 1e300: 255, np.inf: 255,
             -np.inf: 255,
             -1.0: 255, 0.0: 255, np.nan: 255}
    got = encode(lib, ffi, dtypes[UNSIGNED], np.array(list(cases)))
    assert list(got) == list(cases.values())
    assert encode(lib, ffi, dtypes[UNSIGNED], np.array([-0.0]))[0] == 255


def test_f32_rounds_once_too(lib, ffi, dtypes):
    values = np.random.default_rng(3).integers(0, 1 << 64, 10000, dtype=np.uint64).view(np.float64)
    values = values[~np.isnan(values)]
    with np.errstate(all="ignore"):
        assert np.array_equal(encode(lib, ffi, dtypes["f32"], values), values.astype(np.float32).view(np.uint32))
    some = np.array([1.5, -0.0], np.float32)
    assert same_values(decode(lib, ffi, dtypes["f32"], some.view(np.uint32), "f64"), some.astype(np.float64))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_predicates(lib, dtypes, name):
    values = codes(name).view(np.dtype(FLOATS[name])).astype(np.float32)
    t = dtypes[name]
    assert lib.base_float_has_inf(t) == bool(np.isinf(values).any())
    assert lib.base_float_has_nan(t) == bool(np.isnan(values).any())
    assert lib.base_float_has_negative_zero(t) == bool(((values == 0) & np.signbit(values)).any())
    assert lib.base_float_is_signed(t) == bool((values < 0).any())


def test_names(lib, ffi, dtypes):
    assert len(dtypes) == 32
    for name, t in dtypes.items():
        assert lib.base_dtype_from_text(name.encode(), len(name)) == t
        assert lib.base_dtype_from_text((name + "x").encode(), len(name)) == t
        for wrong in (name + "x", name[:-1], name.upper(), "x" + name[1:], name[:-1] + "\0"):
            assert lib.base_dtype_from_text(wrong.encode(), len(wrong)) == dtypes.get(wrong, 0)
    assert lib.base_dtype_from_text(b"", 0) == 0
    assert lib.base_dtype_real_part(dtypes["c64"]) == dtypes["f32"]
    assert lib.base_dtype_real_part(dtypes["c128"]) == dtypes["f64"]
    assert lib.base_dtype_real_part(dtypes["s8"]) == dtypes["s8"]
