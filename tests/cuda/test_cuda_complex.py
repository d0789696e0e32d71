"""Functions of complex numbers on a GPU: c64 has the interpreter's bits, c128 is near it, and special cases are C99's."""
import os

import numpy as np
import pytest

from simulator import xlac_driver

import xlac

UNARY = "exponential exponential-minus-one log log-plus-one logistic rsqrt sine sinh sqrt tan tanh cosine cosh".split()
PARTS = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 800.0, 1e30]
FAR = [1.7e308, -1e308, 3e-308, 1e-310, 5e-324]  # where a square, or a sum of two, is not a number of the type


@pytest.fixture(scope="module")
def cuda():
    driver = xlac_driver()
    driver.clear()
    yield driver
    assert driver.reports() == []


def program(t, n, ops):
    lines = "".join(f"  r{i} = {t}[{n}] {op}({'a, b' if op in ('divide', 'power') else 'a'})\n" for i, op in enumerate(ops))
    results = ", ".join(f"{t}[{n}]" for _ in ops)
    return (f"HloModule m\nENTRY e {{\n  a = {t}[{n}] parameter(0)\n  b = {t}[{n}] parameter(1)\n{lines}"
            f"  ROOT t = ({results}) tuple({', '.join(f'r{i}' for i in range(len(ops)))})\n}}\n")


def same(got, want, nan):
    """Parts of the same bits, or NaN both. What sign a zero has follows from a NaN's where C99 leaves it open, and a GPU's NaNs have signs of their own."""
    open_ = bool(os.environ.get("XLAC_CUDA_ON_GPU")) & nan
    return ((got == want) & (open_ | (np.signbit(got) == np.signbit(want)))) | (np.isnan(got) & np.isnan(want))


@pytest.mark.parametrize("t, dtype", [("c64", np.complex64), ("c128", np.complex128)])
def test_functions(cuda, t, dtype):
    parts = PARTS if t == "c64" else PARTS + FAR
    special = np.array([complex(a, b) for a in parts for b in parts])
    rng = np.random.default_rng(1)
    a = np.concatenate([special, 3 * rng.standard_normal(400) + 3j * rng.standard_normal(400)]).astype(dtype)
    b = np.roll(a, 5)
    ops = [*UNARY, "divide", "power"]
    text = program(t, len(a), ops)
    exe = xlac.compile(text, device="cuda", passes=False)
    assert "on the host" not in str(exe.explain("fusion"))
    for op, got, want in zip(ops, exe(a, b), xlac.interpret(text, a, b)):
        got, want = np.asarray(got), np.asarray(want)
        nan = np.isnan(a) | np.isnan(b)
        equal = same(got.real, want.real, nan) & same(got.imag, want.imag, nan)
        with np.errstate(all="ignore"):
            near = np.maximum(abs(got.real - want.real), abs(got.imag - want.imag)) <= 1e-13 * abs(want)
        over = np.isin(np.abs([a.real, a.imag, b.real, b.imag]), np.abs(FAR)).any(axis=0) & (op in ("divide", "power"))  # overflow within
        far = np.argwhere(~(equal if t == "c64" else equal | near | over))[:, 0]
        assert len(far) == 0, (op, a[far[:4]], b[far[:4]], got[far[:4]], want[far[:4]])
