"""Fourier transforms, factors, solutions of triangular systems and gradients of pooling as kernels: the interpreter's numbers."""
import itertools

import numpy as np
import pytest

from simulator import xlac_driver

import xlac

RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def cuda():
    driver = xlac_driver()
    driver.clear()
    yield driver
    assert driver.reports() == []


def run(program, *args, near=0.0):
    """One module, so that there is one compilation; programs are lines whose last names are r0, r1, ..."""
    exe = xlac.compile(program, device="cuda", passes=False)
    assert "on the host" not in str(exe.explain("fusion"))
    for i, (got, want) in enumerate(zip(exe(*args), xlac.interpret(program, *args))):
        got, want = np.asarray(got), np.asarray(want)
        assert got.dtype == want.dtype and got.shape == want.shape
        scale = np.max(np.abs(want[np.isfinite(want)]), initial=0)
        assert np.array_equal(np.isnan(got), np.isnan(want)), i
        assert np.allclose(got, want, rtol=near, atol=near * scale, equal_nan=True), (i, np.max(np.abs(got - want)), scale)


def module(parameters, lines, types):
    declared = "".join(f"  p{i} = {t} parameter({i})\n" for i, t in enumerate(parameters))
    body = "".join(f"  r{i} = {t} {line}\n" for i, (t, line) in enumerate(zip(types, lines)))
    return f"HloModule m\nENTRY e {{\n{declared}{body}  ROOT t = ({', '.join(types)}) tuple({', '.join(f'r{i}' for i in range(len(types)))})\n}}\n"


@pytest.mark.parametrize("n", [1, 8, 30, 67])
@pytest.mark.parametrize("wide", [False, True])
def test_transforms_of_a_line(cuda, n, wide):
    c, f, near = ("c128", "f64", 1e-13) if wide else ("c64", "f32", 1e-6)
    half = n // 2 + 1
    lines = [f"fft(p0), fft_type=FFT, fft_length={{{n}}}", f"fft(p0), fft_type=IFFT, fft_length={{{n}}}", f"fft(p1), fft_type=RFFT, fft_length={{{n}}}",
             f"fft(p2), fft_type=IRFFT, fft_length={{{n}}}"]
    z = (RNG.standard_normal((3, n)) + 1j * RNG.standard_normal((3, n))).astype(np.complex128 if wide else np.complex64)
    program = module([f"{c}[3,{n}]", f"{f}[3,{n}]", f"{c}[3,{half}]"], lines, [f"{c}[3,{n}]", f"{c}[3,{n}]", f"{c}[3,{half}]", f"{f}[3,{n}]"])
    run(program, z, z.real.copy(), z[:, :half].copy(), near=near)


def test_transforms_of_several_dimensions(cuda):
    z = (RNG.standard_normal((2, 4, 6, 5)) + 1j * RNG.standard_normal((2, 4, 6, 5))).astype(np.complex64)
    lines = ["fft(p0), fft_type=FFT, fft_length={4,6,5}", "fft(p0), fft_type=IFFT, fft_length={6,5}", "fft(p1), fft_type=RFFT, fft_length={4,6,5}",
             "fft(p2), fft_type=IRFFT, fft_length={4,6,5}", "fft(p2), fft_type=IRFFT, fft_length={6,4}"]
    types = ["c64[2,4,6,5]", "c64[2,4,6,5]", "c64[2,4,6,3]", "f32[2,4,6,5]", "f32[2,4,6,4]"]
    run(module(["c64[2,4,6,5]", "f32[2,4,6,5]", "c64[2,4,6,3]"], lines, types), z, z.real.copy(), z[..., :3].copy(), near=1e-6)


@pytest.mark.parametrize("t, dtype", [("f32", np.float32), ("c128", np.complex128), ("bf16", None)])
def test_factors(cuda, t, dtype):
    n = 7
    a = RNG.standard_normal((3, n, n)) + (1j * RNG.standard_normal((3, n, n)) if t[0] == "c" else 0)
    a = a @ np.conj(np.swapaxes(a, 1, 2)) + np.eye(n)
    a[1, 4, 4] = -1  # not positive definite
    if dtype is None:
        import ml_dtypes
        dtype = ml_dtypes.bfloat16
    one = f"{t}[3,{n},{n}]"
    exe = xlac.compile(module([one], ["cholesky(p0), lower=true", "cholesky(p0)"], [one, one]), device="cuda", passes=False)
    want = xlac.interpret(module([one], ["cholesky(p0), lower=true", "cholesky(p0)"], [one, one]), a.astype(dtype))
    for got, w in zip(exe(a.astype(dtype)), want):
        wide = np.complex128 if t[0] == "c" else np.float64
        assert np.allclose(np.asarray(got).astype(wide), np.asarray(w).astype(wide), rtol=1e-12, atol=0, equal_nan=True)


@pytest.mark.parametrize("t, dtype", [("f32", np.float32), ("c64", np.complex64)])
def test_triangular_systems(cuda, t, dtype):
    n, m = 6, 4
    a = (RNG.standard_normal((2, n, n)) + 3 * np.eye(n) + (1j * RNG.standard_normal((2, n, n)) if t == "c64" else 0)).astype(dtype)
    b, c = (RNG.standard_normal(s).astype(dtype) for s in ((2, n, m), (2, m, n)))
    lines, types = [], []
    for left, lower, unit, form in itertools.product(("true", "false"), ("true", "false"), ("true", "false"), ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")):
        lines.append(f"triangular-solve(p0, {'p1' if left == 'true' else 'p2'}), left_side={left}, lower={lower}, unit_diagonal={unit}, transpose_a={form}")
        types.append(f"{t}[2,{n},{m}]" if left == "true" else f"{t}[2,{m},{n}]")
    run(module([f"{t}[2,{n},{n}]", f"{t}[2,{n},{m}]", f"{t}[2,{m},{n}]"], lines, types), a, b, c, near=1e-6)


@pytest.mark.parametrize("window, source", [("size=1x3x3x1 stride=1x2x2x1 pad=0_0x0_1x1_0x0_0", "2,4,3,3"), ("size=1x2x3x1 stride=1x3x1x1", "2,3,5,3")])
def test_gradients_of_pooling(cuda, window, source):
    text = f"""HloModule m
ge {{ a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = pred[] compare(a, b), direction=GE }}
add {{ a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }}
ENTRY e {{
  x = f32[2,8,7,3] parameter(0)
  s = f32[{source}] parameter(1)
  z = f32[] constant(0)
  r = f32[2,8,7,3] select-and-scatter(x, s, z), window={{{window}}}, select=ge, scatter=add
  ROOT t = (f32[2,8,7,3]) tuple(r)
}}
"""
    x = RNG.integers(0, 9, (2, 8, 7, 3)).astype(np.float32)
    run(text, x, RNG.standard_normal([int(d) for d in source.split(",")]).astype(np.float32))
