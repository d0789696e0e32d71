"""Elementary functions within 1 ulp of mpmath's, in f32 and f64: over all magnitudes, near 0 and 1, and at the edges."""
import ctypes
import platform
import sys

import mpmath
import numpy as np
import pytest

import xlac

FUNCTIONS = {
    "exponential": mpmath.exp, "exponential-minus-one": mpmath.expm1, "log": mpmath.log,
    "log-plus-one": mpmath.log1p, "sqrt": mpmath.sqrt, "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), "sine": mpmath.sin, "cosine": mpmath.cos, "tan": mpmath.tan,
    "asin": mpmath.asin, "acos": mpmath.acos, "atan": mpmath.atan, "sinh": mpmath.sinh, "cosh": mpmath.cosh,
    "tanh": mpmath.tanh, "asinh": mpmath.asinh, "acosh": mpmath.acosh, "atanh": mpmath.atanh,
    "logistic": lambda x: 1 / (1 + mpmath.exp(-x)), "erf": mpmath.erf,
}
BINARY = {"power": mpmath.power, "atan2": mpmath.atan2}
DOMAIN = {"log": (0, np.inf), "sqrt": (0, np.inf), "rsqrt": (0, np.inf), "log-plus-one": (-1, np.inf), "asin": (-1, 1),
          "acos": (-1, 1), "acosh": (1, np.inf), "atanh": (-1, 1)}
TYPES = {"f32": np.float32, "f64": np.float64}


def samples(dtype, n, seed):
    rng = np.random.default_rng(seed)
    bits = {4: np.uint32, 8: np.uint64}[np.dtype(dtype).itemsize]
    info = np.finfo(dtype)
    anything = rng.integers(0, np.iinfo(bits).max, n, dtype=bits).view(dtype)
    magnitudes = (rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-9, 3.2, n)).astype(dtype)
    near_one = (rng.choice([-1, 1], n) * (1 + rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-16, 0, n))).astype(dtype)
    common = rng.uniform(-8, 8, 2 * n).astype(dtype)
    edges = np.array([1, -1, 0.5, 2, info.tiny, info.smallest_subnormal, info.max, -info.max, info.eps], dtype)
    quadrants = (np.arange(1, 60) * np.pi / 2).astype(dtype)
    x = np.concatenate([anything, magnitudes, near_one, common, edges, quadrants])
    return x[np.isfinite(x)]


def ulps(got, want, dtype):
    """Distance of got from the exact want, in units of the last place at want."""
    info = np.finfo(dtype)
    if abs(want) > mpmath.mpf(float(info.max)):
        return 0 if np.isinf(got) or abs(got) == info.max else np.inf
    if not np.isfinite(got):
        return np.inf
    exponent = max(mpmath.frexp(want)[1] - 1, info.minexp) if want else info.minexp
    return float(abs(mpmath.mpf(float(got)) - want) / mpmath.mpf(2) ** (exponent - info.nmant))


def run(opcode, type_name, *arrays):
    n = arrays[0].size
    parameters = "".join(f"  p{i} = {type_name}[{n}] parameter({i})\n" for i in range(len(arrays)))
    operands = ", ".join(f"p{i}" for i in range(len(arrays)))
    text = f"HloModule m\nENTRY e {{\n{parameters}  ROOT r = {type_name}[{n}] {opcode}({operands})\n}}\n"
    return xlac.interpret(xlac.parse(text), *arrays)  # for atan


@pytest.fixture(autouse=True)
def precision():
    with mpmath.workprec(180):
        yield


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("opcode", FUNCTIONS)
def test_unary_is_within_one_ulp(opcode, type_name):
    dtype = TYPES[type_name]
    x = samples(dtype, 300, seed=len(opcode))
    low, high = DOMAIN.get(opcode, (-np.inf, np.inf))
    x = x[(x >= low) & (x <= high)]
    got = run(opcode, type_name, x)
    wants = [exact(opcode, v) for v in x]
    worst = max((ulps(r, want, dtype), float(v), float(r)) for v, r, want in zip(x, got, wants) if want is not None)
    assert worst[0] <= 1, worst


@pytest.mark.parametrize("opcode", ["sine", "cosine"])
def test_angles_near_quarter_turns_are_within_one_ulp(opcode):
    """What is left of an angle less a multiple of pi/2 may be small: with 20 bits of turns and more, at the end of what is reduced by them."""
    turns = np.concatenate([np.random.default_rng(3).integers(1, 667_544, 300), [1, 2, 3, 667_543, 667_544, 667_545]])
    nearest = np.array([float(int(n) * mpmath.pi / 2) for n in turns])
    x = np.concatenate([nearest, -np.nextafter(nearest, 0), [2.0**20, np.nextafter(2.0**20, 0), 11.0, 1e-300, 0.7853981633974483]])
    got = run(opcode, "f64", x)
    worst = max((ulps(r, exact(opcode, v), np.float64), float(v)) for v, r in zip(x, got))
    assert worst[0] <= 0.8, worst


def exact(opcode, v):
    """None at a pole."""
    try:
        want = FUNCTIONS[opcode](mpmath.mpf(float(v)))
    except (ZeroDivisionError, ValueError):
        return None
    return want if mpmath.isfinite(want) else None


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("opcode", BINARY)
def test_binary_is_within_one_ulp(opcode, type_name):
    dtype = TYPES[type_name]
    rng = np.random.default_rng(5)
    x, y = samples(dtype, 300, 1), samples(dtype, 300, 2)
    n = min(x.size, y.size)
    x, y = rng.permutation(x)[:n], rng.permutation(y)[:n]
    if opcode == "power":
        x = abs(x)
        y = np.where(rng.random(n) < 0.7, np.clip(y, -30, 30), y).astype(dtype)
    got = run(opcode, type_name, x, y)
    worst = (0.0, 0.0, 0.0, 0.0)
    for a, b, r in zip(x, y, got):
        if opcode == "power" and abs(float(b) * np.log(float(a) or 1.0)) > 2000:
            continue  # beyond overflow and underflow: mpmath would build giants
        want = BINARY[opcode](mpmath.mpf(float(a)), mpmath.mpf(float(b)))
        worst = max(worst, (ulps(r, want, dtype), float(a), float(b), float(r)))
    assert worst[0] <= 1, worst


POLES = [
    ("exponential", [np.inf, -np.inf, np.nan, 0.0, -0.0], [np.inf, 0.0, np.nan, 1, 1]),
    ("exponential-minus-one", [np.inf, -np.inf, np.nan, 0.0, -0.0], [np.inf, -1, np.nan, 0.0, -0.0]),
    ("log", [0.0, -0.0, -1, np.inf, np.nan, 1], [-np.inf, -np.inf, np.nan, np.inf, np.nan, 0.0]),
    ("log-plus-one", [-1, -2, 0.0, -0.0, np.inf, np.nan], [-np.inf, np.nan, 0.0, -0.0, np.inf, np.nan]),
    ("sqrt", [0.0, -0.0, -1, np.inf, np.nan], [0.0, -0.0, np.nan, np.inf, np.nan]),
    ("rsqrt", [0.0, -0.0, -1, np.inf, np.nan], [np.inf, -np.inf, np.nan, 0.0, np.nan]),
    ("cbrt", [0.0, -0.0, -8, np.inf, -np.inf, np.nan], [0.0, -0.0, -2, np.inf, -np.inf, np.nan]),
    ("sine", [0.0, -0.0, np.inf, np.nan], [0.0, -0.0, np.nan, np.nan]),
    ("cosine", [0.0, -0.0, -np.inf, np.nan], [1, 1, np.nan, np.nan]),
    ("tan", [0.0, -0.0, np.inf, np.nan], [0.0, -0.0, np.nan, np.nan]),
    ("asin", [0.0, -0.0, 2, np.nan], [0.0, -0.0, np.nan, np.nan]),
    ("acos", [1, 2, np.nan], [0.0, np.nan, np.nan]),
    ("sinh", [0.0, -0.0, np.inf, -np.inf, np.nan], [0.0, -0.0, np.inf, -np.inf, np.nan]),
    ("cosh", [0.0, np.inf, -np.inf, np.nan], [1, np.inf, np.inf, np.nan]),
    ("tanh", [0.0, -0.0, np.inf, -np.inf, np.nan], [0.0, -0.0, 1, -1, np.nan]),
    ("asinh", [0.0, -0.0, np.inf, -np.inf, np.nan], [0.0, -0.0, np.inf, -np.inf, np.nan]),
    ("acosh", [1, 0.5, -1, np.inf, np.nan], [0.0, np.nan, np.nan, np.inf, np.nan]),
    ("atanh", [0.0, -0.0, 1, -1, 2, np.nan], [0.0, -0.0, np.inf, -np.inf, np.nan, np.nan]),
    ("logistic", [0.0, np.inf, -np.inf, np.nan], [0.5, 1, 0.0, np.nan]),
    ("erf", [0.0, -0.0, np.inf, -np.inf, np.nan], [0.0, -0.0, 1, -1, np.nan]),
    ("sign", [0.0, -0.0, -3, np.inf, np.nan], [0.0, -0.0, -1, 1, np.nan]),
    ("floor", [-0.0, -0.3, 0.7, np.inf, np.nan, 1e30], [-0.0, -1, 0.0, np.inf, np.nan, None]),
    ("ceil", [-0.0, -0.3, 0.7, -np.inf, np.nan, 1e30], [-0.0, -0.0, 1, -np.inf, np.nan, None]),
    ("round-nearest-afz", [0.5, -0.5, 1.5, 2.5, -0.2, np.inf], [1, -1, 2, 3, -0.0, np.inf]),
    ("round-nearest-even", [0.5, -0.5, 1.5, 2.5, -0.2, np.inf], [0.0, -0.0, 2, 2, -0.0, np.inf]),
]


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("opcode,x,want", POLES, ids=[p[0] for p in POLES])
def test_special_values(opcode, x, want, type_name):
    x = np.array(x, TYPES[type_name])
    want = np.array([v if w is None else w for v, w in zip(x, want)], TYPES[type_name])
    got = run(opcode, type_name, x)
    np.testing.assert_array_equal(got, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("opcode", list(FUNCTIONS) + list(BINARY))
def test_every_level_of_vector_instructions_gives_the_same_bits(opcode, type_name, monkeypatch):
    dtype = TYPES[type_name]
    x = np.concatenate([samples(dtype, 700, seed=1), np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)])
    arrays = [x, np.roll(x, 7)][:2 if opcode in BINARY else 1]
    runs = []
    for level in ("portable", "avx2", "avx512"):
        monkeypatch.setenv("XLAC_MAX_ISA", level)
        r = run(opcode, type_name, *arrays)
        runs.append(np.where(np.isnan(r), dtype(np.nan), r).tobytes())
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.parametrize("opcode", ("sine", "cosine", "tan"))
def test_an_angle_has_one_sine_whoever_its_neighbours_are(opcode):
    x = samples(np.float32, 2000, seed=4)
    near, far = x[abs(x) < 1e6][:512], x[abs(x) > 1e9][:512]
    mixed = np.stack([near, np.resize(far, near.size)], 1).reshape(-1)
    assert run(opcode, "f32", near).tobytes() == np.ascontiguousarray(run(opcode, "f32", mixed)[::2]).tobytes()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64") or not sys.platform.startswith("linux"), reason="reads x86's flags")
@pytest.mark.parametrize("level", ("avx2", "avx512"))
@pytest.mark.parametrize("opcode", ("exponential", "logistic"))
def test_a_masked_element_is_no_subnormal_product(opcode, level, monkeypatch):
    """x86 takes over a hundred cycles for a product that underflows: its flag for that stays down, compiled and interpreted."""
    monkeypatch.setenv("XLAC_MAX_ISA", level)
    lowest, underflow = -87.8, 0x10
    x = np.concatenate([np.linspace(lowest, 1.05 * lowest, 509), [-1e4, -1e30, -np.inf], np.linspace(-lowest, 1e4, 512)]).astype(np.float32)
    module = xlac.parse("HloModule m\nENTRY e {\n x = f32[1024] parameter(0)\n ROOT r = f32[1024] " + opcode + "(x)\n}\n")
    executable, libm = xlac.compile(module), ctypes.CDLL("libm.so.6")
    results = []
    for call in (executable, lambda v: xlac.interpret(module, v)):
        libm.feclearexcept(underflow)
        results.append(np.asarray(call(x)))
        assert libm.fetestexcept(underflow) == 0
    assert results[0].tobytes() == results[1].tobytes()
    assert (results[0][:509:50] > 0).any() and (results[0][509:512] == 0).all()


@pytest.mark.parametrize("type_name", TYPES)
def test_subnormal_exponentials_are_within_four_fifths_of_a_unit(type_name):
    """Half a unit is the last rounding's, at most a quarter that of the number before it was scaled."""
    unit = mpmath.mpf(float(np.finfo(TYPES[type_name]).smallest_subnormal))
    x = np.linspace(*{"f32": (-87.4, -104.2), "f64": (-708.5, -746)}[type_name], 700).astype(TYPES[type_name])
    for got, at in zip(run("exponential", type_name, x), x):
        assert abs(mpmath.mpf(float(got)) - mpmath.exp(mpmath.mpf(float(at)))) < 0.8 * unit
