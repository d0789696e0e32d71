"""The custom calls that jaxlib registers for CPUs: which of them xlac knows, and those that need no library compared with jaxlib."""
import numpy as np
import pytest

import xlac

jax = pytest.importorskip("jax")
pytest.importorskip("scipy")
import scipy.sparse  # noqa: E402
from jaxlib import cpu_sparse, lapack  # noqa: E402

jax.config.update("jax_enable_x64", True)
for name, value, version in cpu_sparse.registrations()["cpu"]:
    jax.ffi.register_ffi_target(name, value, platform="cpu", api_version=version)

UNKNOWN = {}  # a target to why xlac does not have it


def call(target):
    return xlac.parse(f"HloModule m\nENTRY e {{ x = f32[2] parameter(0)\n ROOT y = f32[2] custom-call(x), custom_call_target=\"{target}\" }}")


@pytest.mark.parametrize("target", [row[0] for r in (lapack, cpu_sparse) for row in r.registrations()["cpu"]])
def test_every_target_of_jaxlib_is_known(target):
    for run in (lambda m: xlac.interpret(m, np.zeros(2, np.float32)), lambda m: xlac.compile(m)(np.zeros(2, np.float32))):
        with pytest.raises(xlac.Error) as info:
            run(call(target))
        assert (info.value.code == 401) == (target in UNKNOWN), info.value


def test_without_an_openblas_the_error_says_so(tmp_path):
    with pytest.raises(xlac.Error, match="LP64 OpenBLAS") as info:
        xlac.compile(call("lapack_spotrf_ffi"), blas=False)(np.zeros(2, np.float32))
    assert info.value.code == 401 and "scipy-openblas32" in str(info.value)


@pytest.mark.parametrize("target", ["xla_ffi_python_cpu_callback", "xla_python_cpu_callback"])
def test_a_callback_into_python_is_said_to_be_one(target):
    with pytest.raises(xlac.Error, match="calls back into the Python function that JAX traced"):
        xlac.compile(call(target))(np.zeros(2, np.float32))


def numbers(rng, shape, dtype):
    if np.dtype(dtype).kind == "i":
        return rng.integers(-9, 9, shape).astype(dtype)
    v = rng.normal(size=shape)
    return (v + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else v).astype(dtype)


def both(function, *args):
    """What XLA gives, and xlac interpreted and compiled."""
    lowered = jax.jit(function).lower(*args)
    module = xlac.parse(lowered.as_text())
    return np.asarray(lowered.compile()(*args)), xlac.interpret(module, *args), xlac.compile(module, threads=2)(*args)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i4", "i8"])
@pytest.mark.parametrize("index", ["i4", "i8"])
@pytest.mark.parametrize("columns", [(), (1,), (7,), (0,)])
def test_sparse_products(dtype, index, columns):
    rng = np.random.default_rng(len(columns))
    for rows in (0, 1, 33, 600):
        dense = numbers(rng, (rows, 29), dtype) * (rng.random((rows, 29)) < 0.2)
        m = scipy.sparse.csr_matrix(dense.astype(dtype))
        x = numbers(rng, (29, *columns), dtype)
        f = jax.ffi.ffi_call("cpu_csr_sparse_dense_ffi", jax.ShapeDtypeStruct((rows, *columns), dtype))
        want, *ours = both(f, m.data.astype(dtype), m.indptr.astype(index), m.indices.astype(index), x)
        for got in ours:
            np.testing.assert_allclose(got, want, rtol=1e-5 if dtype in ("f4", "c8") else 1e-12, atol=1e-5 if dtype in ("f4", "c8") else 1e-12)


@pytest.mark.parametrize("starts, columns, what", [([0, 2, 1], [0, 0], "row 1 is from 2 to 1"), ([0, 1, 3], [0, 0], "from 1 to 3 of 2"),
                                                   ([-1, 1, 2], [0, 0], "begins at -1"), ([0, 1, 2], [0, 3], "column 3 of 3"),
                                                   ([0, 1, 2], [-1, 0], "column -1 of 3")])
def test_sparse_indices_that_lead_outside_are_errors(starts, columns, what):
    module = xlac.parse("""HloModule m
ENTRY e {
  v = f32[2] parameter(0)
  s = s32[3] parameter(1)
  c = s32[2] parameter(2)
  d = f32[3] parameter(3)
  ROOT y = f32[2] custom-call(v, s, c, d), custom_call_target="cpu_csr_sparse_dense_ffi", api_version=API_VERSION_TYPED_FFI
}""")
    args = np.ones(2, np.float32), np.array(starts, np.int32), np.array(columns, np.int32), np.ones(3, np.float32)
    for run in (lambda: xlac.interpret(module, *args), lambda: xlac.compile(module)(*args)):
        with pytest.raises(xlac.Error, match=what):
            run()


def perturbed(*args):
    return jax.lax.linalg.tridiagonal_solve(*args, perturb_singular=True)


def assert_solves_alike(dl, d, du, b, tolerance):
    want, *ours = both(perturbed, dl, d, du, b)
    scale = np.max(abs(want), axis=(-1, -2), keepdims=True, initial=0) + 1e-30
    for got in ours:
        assert got.shape == want.shape and np.all(np.isfinite(got) == np.isfinite(want))
        np.testing.assert_allclose(got / scale, want / scale, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("batch, n, k", [((), 1, 1), ((), 2, 3), ((3,), 9, 2), ((2, 2), 40, 1), ((0,), 3, 1), ((200,), 5, 4)])
def test_tridiagonal_systems(dtype, batch, n, k):
    rng = np.random.default_rng(n)
    diagonals = [numbers(rng, (*batch, n), dtype) for _ in range(3)]
    diagonals[1] += 4
    assert_solves_alike(*diagonals, numbers(rng, (*batch, n, k), dtype), 1e-5 if dtype in ("f4", "c8") else 1e-13)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_singular_tridiagonal_systems_have_the_solution_that_jaxlib_gives(dtype):
    n = 6
    zero, one = np.zeros((1, n), dtype), np.ones((1, n), dtype)
    tiny = one * np.finfo(dtype).tiny
    right = numbers(np.random.default_rng(1), (1, n, 2), dtype)
    for dl, d, du in ((zero, zero, zero), (one, one, one), (zero, tiny, zero), (one, zero, one), (zero, -one, one), (tiny, tiny, tiny)):
        assert_solves_alike(dl, d, du, right, 1e-4 if dtype in ("f4", "c8") else 1e-11)
