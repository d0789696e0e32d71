"""Functions of complex numbers: how far they are off, beside mpmath, and C99's special values; machine code has the interpreter's bits."""

import mpmath
import numpy as np
import pytest

import xlac

TYPES = {"c64": (np.complex64, np.float32, 2.0**-24), "c128": (np.complex128, np.float64, 2.0**-53)}
# By function: mpmath's, and the most that results are off by, in units of half a last place of the number's size.
FUNCTIONS = {
    "exponential": (mpmath.exp, 3),
    "exponential-minus-one": (mpmath.expm1, 4),
    "log": (mpmath.log, 3),
    "log-plus-one": (mpmath.log1p, 3),
    "sqrt": (mpmath.sqrt, 3),
    "sine": (mpmath.sin, 4),
    "cosine": (mpmath.cos, 4),
    "tan": (mpmath.tan, 6),
    "sinh": (mpmath.sinh, 4),
    "cosh": (mpmath.cosh, 4),
    "tanh": (mpmath.tanh, 6),
    "asin": (mpmath.asin, 4),
    "acos": (mpmath.acos, 3),
    "atan": (mpmath.atan, 4),
    "asinh": (mpmath.asinh, 4),
    "acosh": (mpmath.acosh, 3),
    "atanh": (mpmath.atanh, 4),
}
BINARY = {"divide": (lambda x, y: x / y, 5), "atan2": (lambda y, x: -1j * mpmath.log((x + 1j * y) / mpmath.sqrt(x * x + y * y)), 64)}
PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, np.inf, -np.inf, np.nan, 1e-30, 1e30, 1e-45, 200.0, 1e9]


def draw(n, seed):
    """Numbers near 0, 1 and the unit circle among those of a square."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-2, 2, n) + 1j * rng.uniform(-2, 2, n)
    z[: n // 4] *= 10.0 ** rng.uniform(-12, 1.2, n // 4)
    circle = slice(n // 4, n // 2)
    z[circle] = np.exp(1j * rng.uniform(-3, 3, n // 2 - n // 4)) * (1 + 10.0 ** rng.uniform(-12, -1, n // 2 - n // 4))
    return z


def program(opcode, t, n, operands=1):
    names = [f"x{i}" for i in range(operands)]
    lines = [f"  {name} = {t}[{n}] parameter({i})\n" for i, name in enumerate(names)]
    return "HloModule m\nENTRY e {\n" + "".join(lines) + f"  ROOT r = {t}[{n}] {opcode}({', '.join(names)})\n}}\n"


def off(got, args, exact, unit):
    with mpmath.workprec(250):
        want = [exact(*(mpmath.mpc(complex(v)) for v in at)) for at in zip(*args)]
        return max(float(abs(mpmath.mpc(complex(g)) - w) / abs(w)) for g, w in zip(got, want) if w) / unit


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("opcode", FUNCTIONS)
def test_results_are_near(opcode, t):
    kind, _, unit = TYPES[t]
    x = draw(60, 3).astype(kind)
    exact, most = FUNCTIONS[opcode]
    assert off(xlac.interpret(xlac.parse(program(opcode, t, x.size)), x), [x], exact, unit) < most


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("opcode", BINARY)
def test_results_of_two_are_near(opcode, t):
    kind, _, unit = TYPES[t]
    args = [draw(60, 3).astype(kind), draw(60, 4)[::-1].astype(kind)]
    exact, most = BINARY[opcode]
    assert off(xlac.interpret(xlac.parse(program(opcode, t, 60, 2)), *args), args, exact, unit) < most


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("opcode", [*FUNCTIONS, "rsqrt", "logistic", "sign"])
def test_compiled_code_has_the_interpreters_bits(opcode, t):
    kind, part, _ = TYPES[t]
    x = np.concatenate([np.array([complex(a, b) for a in PARTS for b in PARTS]), draw(400, 7)]).astype(kind)
    text = program(opcode, t, x.size)
    want, got = (np.asarray(f).view(part) for f in (xlac.interpret(xlac.parse(text), x), xlac.compile(text)(x)))
    assert np.array_equal(np.isnan(want), np.isnan(got))
    assert np.array_equal(np.where(np.isnan(want), 0, want).tobytes(), np.where(np.isnan(got), 0, got).tobytes())


SPECIAL = [
    ("asin", complex(np.inf, 1), complex(np.pi / 2, np.inf)),
    ("acos", complex(-np.inf, np.inf), complex(3 * np.pi / 4, -np.inf)),
    ("acosh", complex(-np.inf, 1), complex(np.inf, np.pi)),
    ("atanh", complex(1, 0), complex(np.inf, 0)),
    ("atanh", complex(np.inf, np.inf), complex(0, np.pi / 2)),
    ("atanh", complex(0, np.nan), complex(0, np.nan)),
    ("atan", complex(2, -0.0), complex(np.arctan(2), -0.0)),
    ("asinh", complex(-0.0, 0.0), complex(-0.0, 0.0)),
    ("exponential-minus-one", complex(-np.inf, np.nan), complex(-1, 0)),
    ("acos", complex(0, np.nan), complex(np.pi / 2, np.nan)),
    ("acos", complex(2, 0), complex(0, -np.arccosh(2))),
    ("asin", complex(1e-45, 1e-45), complex(1e-45, 1e-45)),
    ("log", complex(0, 0), complex(-np.inf, 0)),
    ("sqrt", complex(-4, -0.0), complex(0, -2)),
]


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize(("opcode", "x", "want"), SPECIAL)
def test_special_values_are_c99s(opcode, x, want, t):
    kind, part, unit = TYPES[t]
    got = np.asarray(xlac.interpret(xlac.parse(program(opcode, t, 1)), np.array([x], kind))).view(part)
    want = np.array([want], kind).view(part)
    np.testing.assert_allclose(got, want, rtol=4 * unit)
    assert np.array_equal(np.signbit(got) & ~np.isnan(got), np.signbit(want) & ~np.isnan(want))
