"""Ops whose loops were made fit for vector units, against Python's own integers: counts of bits on every width, conversions of
floats at the ends of integer types, the total order of floats, and arguments whose bytes are not of their type."""
import numpy as np
import pytest

import xlac

N = 300  # more than a vector and a tail of every width


def run(text, *arrays):
    return np.asarray(xlac.compile(xlac.parse(text))(*arrays))


def entry(result, body, *parameters):
    lines = [f"  p{i} = {t}[{N}] parameter({i})\n" for i, t in enumerate(parameters)]
    return f"HloModule m\nENTRY e {{\n{''.join(lines)}  ROOT r = {result}[{N}] {body}\n}}\n"


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("sign", ["s", "u"])
def test_bits_are_counted_on_every_width(sign, bits):
    rng = np.random.default_rng(bits)
    unsigned = (rng.integers(0, 2**63, N, dtype=np.uint64) << 1 | 1) >> rng.integers(0, 64, N, dtype=np.uint64)
    unsigned[:2] = 0, 2**64 - 1
    x = unsigned.astype(f"u{bits // 8}")
    values = [int(v) for v in x]
    given = x.view(f"i{bits // 8}") if sign == "s" else x
    t = f"{sign}{bits}"
    assert run(entry(t, "popcnt(p0)", t), given).tolist() == [v.bit_count() for v in values]
    assert run(entry(t, "count-leading-zeros(p0)", t), given).tolist() == [bits - v.bit_length() for v in values]


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("target", ["s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64"])
def test_floats_saturate_at_the_ends_of_integers(source, target):
    dtype = np.dtype(f"f{int(source[1:]) // 8}")
    info = np.iinfo(("i" if target[0] == "s" else "u") + str(int(target[1:]) // 8))
    ends = np.array([info.min, info.max, 0, 1, -1, 0.5, -0.99, 1e30, -1e30, np.inf, -np.inf], dtype)
    x = np.concatenate([ends, np.nextafter(ends, dtype.type(np.inf)), np.nextafter(ends, dtype.type(-np.inf)), np.full(3, np.nan, dtype)])
    x = np.resize(x, N)
    want = [0 if v != v else info.min if v < info.min else info.max if v > info.max else int(v) for v in x.tolist()]
    assert run(entry(target, "convert(p0)", source), x).tolist() == want


def test_the_total_order_has_signs_of_zeros_and_nans():
    order = np.array([-np.nan, -np.inf, -1.5, -1e-45, -0.0, 0.0, 1e-45, 1.5, np.inf, np.nan], np.float32)
    order[0] = np.copysign(np.float32(np.nan), -1)
    i, j = np.random.default_rng(1).integers(0, len(order), (2, N))
    for direction, test in {"LT": i < j, "GE": i >= j, "EQ": i == j}.items():
        text = entry("pred", f"compare(p0, p1), direction={direction}, type=TOTALORDER", "f32", "f32")
        assert (run(text, order[i], order[j]) == test).all()


@pytest.mark.parametrize("at", [0, 17, N - 1])
def test_bytes_that_are_no_truth_values_are_made_some(at):
    bytes_ = np.zeros(N, np.uint8)
    bytes_[at] = 2
    assert run(entry("s32", "convert(p0)", "pred"), bytes_.view(bool)).tolist() == (bytes_ != 0).tolist()


@pytest.mark.parametrize("n", [1, 2, 3, 257])
def test_products_of_complex_numbers_have_the_same_bits_at_every_level(n, monkeypatch):
    """In f64, so that parts near the ends of f32 neither overflow nor cancel in between."""
    module = xlac.parse(f"HloModule m\nENTRY e {{\n  x = c64[{n}] parameter(0)\n  y = c64[{n}] parameter(1)\n  ROOT r = c64[{n}] multiply(x, y)\n}}")
    rng = np.random.default_rng(n)
    x, y = ((rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(np.complex64) * np.float32(1e19) for _ in range(2))
    got = []
    for level in ("portable", "avx2", "avx512"):
        monkeypatch.setenv("XLAC_MAX_ISA", level)
        got.append(np.asarray(xlac.interpret(module, x, y)).tobytes())
    assert got[0] == got[1] == got[2]
