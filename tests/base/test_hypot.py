"""math_hypot, by |z| of complex128: near to the exact root everywhere; libc's hypot, which new systems have in a version of its own, is not
linked to."""
import decimal
import math
import shutil
import subprocess

import numpy as np
import pytest

import xlac

ABS = "HloModule m\nENTRY e {{ p = c128[{n}] parameter(0)\n ROOT r = f64[{n}] abs(p) }}"


def both(values):
    """|values| compiled, which the interpreter's answers must equal bit for bit."""
    module = xlac.parse(ABS.format(n=len(values)))
    compiled = np.asarray(xlac.compile(module)(values))
    assert compiled.tobytes() == np.asarray(xlac.interpret(module, values)).tobytes()
    return compiled


def exact(z):
    """The root, rounded once."""
    with decimal.localcontext() as context:
        context.prec, context.Emin, context.Emax = 60, -9999, 9999
        return float((decimal.Decimal(z.real) ** 2 + decimal.Decimal(z.imag) ** 2).sqrt())


def test_the_root_is_within_one_unit_at_every_size_and_ratio():
    rng = np.random.default_rng(7)
    exponents = np.repeat([-1074, -1060, -1022, -600, -459, 0, 1, 300, 511, 600, 1021], 60)
    x = np.ldexp(rng.uniform(1, 2, exponents.size), exponents)
    y = np.ldexp(-rng.uniform(1, 2, exponents.size), np.maximum(exponents - rng.integers(0, 60, exponents.size), -1074))
    z = x + 1j * y
    want = np.array([exact(v) for v in z])
    assert np.all(np.abs(both(z) - want) <= np.array([math.ulp(v) for v in want]))


@pytest.mark.parametrize("re, im, want", [(3, 4, 5), (-5e-324, 0, 5e-324), (np.inf, np.nan, np.inf), (np.nan, -np.inf, np.inf),
                                          (np.nan, 1, np.nan), (1.7e308, 1.7e308, np.inf), (0, -0.0, 0)])
def test_special_values(re, im, want):
    assert np.array_equal(both(np.array([complex(re, im)])), [want], equal_nan=True)


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
def test_hypot_of_libc_is_not_linked_to():
    listed = subprocess.run(["nm", "-D", "--undefined-only", xlac._core.__file__], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1].split("@")[0].lstrip("_") for line in listed.splitlines()}
    assert "memcpy" in names and not {"hypot", "hypotf", "hypotl"} & names
