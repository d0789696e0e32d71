"""Linear algebra as JAX lowers it on CPUs: LAPACK's custom calls, compiled and interpreted, against what they must satisfy."""
import itertools

import numpy as np
import pytest

import xlac

from .conftest import leaves, same_bits

jax = pytest.importorskip("jax")
pytest.importorskip("scipy_openblas32")
import jax.numpy as jnp  # noqa: E402
import jax.scipy.linalg as jsl  # noqa: E402

lax = jax.lax.linalg
TYPES = ["f4", "f8", "c8", "c16"]
SHAPES = [(4, 4), (2, 3, 5, 5), (40, 33, 33)]


@pytest.fixture(autouse=True)
def wide():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def matrix(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def positive(x):
    return (x @ adjoint(x) + x.shape[-1] * np.eye(x.shape[-1])).astype(x.dtype)


def run(f, *args):
    """The compiled program's results, which are those of the interpreter and of any number of threads."""
    module = xlac.parse(jax.jit(f).lower(*args).as_text())
    one = leaves(xlac.compile(module, threads=1)(*args))
    for threads in (2, 7):
        assert same_bits(one, leaves(xlac.compile(module, threads=threads)(*args)))
    close(leaves(xlac.interpret(module, *args)), one)
    return one if len(one) > 1 else one[0]


def as_list(results):
    return results if isinstance(results, list) else [results]


def close(got, want, scale=1):
    for a, b in zip(got, want) if isinstance(got, (list, tuple)) else [(got, want)]:
        eps = np.finfo(np.asarray(b).dtype).eps if np.asarray(b).dtype.kind in "fc" else 0
        eps = max(eps, np.finfo(np.asarray(a).dtype).eps if np.asarray(a).dtype.kind in "fc" else 0)
        np.testing.assert_allclose(a, b, rtol=3e3 * eps * scale, atol=3e3 * eps * scale)


def check_svd(x, u, s, vt):
    k = s.shape[-1]
    close((u[..., :k] * s[..., None, :]) @ vt[..., :k, :], x)
    close(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), u.shape[:-2] + (u.shape[-1],) * 2).astype(x.dtype))
    close(vt @ adjoint(vt), np.broadcast_to(np.eye(vt.shape[-2]), vt.shape[:-2] + (vt.shape[-2],) * 2).astype(x.dtype))
    assert s.dtype == x.real.dtype and (np.diff(s, axis=-1) <= 0).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_products_of_factors(dtype, shape):
    x = matrix(dtype, shape)
    square = positive(x)
    check_svd(x, *run(jnp.linalg.svd, x))
    q, r = run(jnp.linalg.qr, x)
    close(q @ r, x)
    close(adjoint(q) @ q, np.broadcast_to(np.eye(shape[-1]), shape).astype(dtype))
    np.testing.assert_array_equal(r, np.triu(r))
    low = run(jnp.linalg.cholesky, square)
    close(low @ adjoint(low), square, 10)
    np.testing.assert_array_equal(low, np.tril(low))
    w, v = run(jnp.linalg.eigh, square)
    close((v * w[..., None, :].astype(dtype)) @ adjoint(v), square, 10)
    assert w.dtype == x.real.dtype and (np.diff(w, axis=-1) >= 0).all()
    if len(shape) == 2:
        p, low, up = run(jsl.lu, x)
        close(p @ low @ up, x)


@pytest.mark.parametrize("shape", SHAPES[:2])
@pytest.mark.parametrize("dtype", TYPES)
def test_equations_and_numbers(dtype, shape):
    x = matrix(dtype, shape) + 4 * np.eye(shape[-1], dtype=dtype)
    b = matrix(dtype, shape[:-1] + (2,), 1)
    close(x @ run(jnp.linalg.solve, x, b), b)
    close(run(jnp.linalg.inv, x), np.linalg.inv(x))
    close(run(jnp.linalg.det, x), np.linalg.det(x))
    close(run(jnp.linalg.slogdet, x), np.linalg.slogdet(x))
    close(run(jnp.linalg.pinv, x), np.linalg.inv(x))
    low = np.tril(x)
    close(low @ run(lambda a, b: jsl.solve_triangular(a, b, lower=True), x, b), b)
    close(adjoint(np.triu(x)) @ run(lambda a, b: jsl.solve_triangular(a, b, trans=2), x, b), b)
    right = run(lambda a, b: lax.triangular_solve(a, b, left_side=False, lower=True, unit_diagonal=True), x, adjoint(b))
    close(right @ (np.tril(x, -1) + np.eye(shape[-1])), adjoint(b), 10)
    square = positive(x)
    factor = np.linalg.cholesky(square)
    close(square @ run(lambda c, b: jsl.cho_solve((c, True), b), factor, b), b)
    close(run(jsl.expm, 0.1 * x) @ run(jsl.expm, -0.1 * x), np.broadcast_to(np.eye(shape[-1]), shape))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_eigenvalues(dtype, shape):
    x = matrix(dtype, shape)
    w, left, right = run(lax.eig, x)
    assert w.dtype == left.dtype == right.dtype == np.result_type(dtype, "c8")
    close(x @ right, right * w[..., None, :])
    close(adjoint(left) @ x, w[..., :, None] * adjoint(left))
    close(np.linalg.norm(right, axis=-2), np.ones(w.shape, x.real.dtype))
    values = run(jnp.linalg.eigvals, x)
    order = np.sort_complex if values.ndim == 1 else lambda v: np.sort(v, axis=-1)
    close(np.sort(abs(order(values))), np.sort(abs(order(w))))
    t, z = run(jsl.schur, x)
    close(z @ t @ adjoint(z), x)
    close(z @ adjoint(z), np.broadcast_to(np.eye(shape[-1]), shape).astype(dtype))
    np.testing.assert_array_equal(t, np.triu(t, -1 if x.dtype.kind == "f" else 0))
    h, q = run(lambda a: jsl.hessenberg(a, calc_q=True), x)
    close(q @ h @ adjoint(q), x)
    arrays = run(lax.tridiagonal, positive(x))
    close(np.linalg.eigvalsh(positive(x)).sum(-1), arrays[1].sum(-1), 10)


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 5)])
@pytest.mark.parametrize("dtype", TYPES)
def test_rectangles(dtype, shape):
    x = matrix(dtype, shape)
    check_svd(x, *run(jnp.linalg.svd, x))
    check_svd(x, *run(lambda a: jnp.linalg.svd(a, full_matrices=False), x))
    check_svd(x, *run(lambda a: lax.svd(a, algorithm=lax.SvdAlgorithm.QR), x))
    close(run(lambda a: jnp.linalg.svd(a, compute_uv=False), x), np.linalg.svd(x, compute_uv=False))
    q, r = run(lambda a: jnp.linalg.qr(a, mode="complete"), x)
    close(q @ r, x)
    q, r, p = run(lambda a: jsl.qr(a, pivoting=True), x)
    close(q @ r, np.take_along_axis(x, p[..., None, :].astype("i8"), -1))
    close(x @ run(jnp.linalg.pinv, x) @ x, x)
    if len(shape) == 2:
        b = matrix(dtype, (shape[0], 2), 3)
        close(run(lambda a, b: jnp.linalg.lstsq(a, b)[0], x, b), np.linalg.lstsq(x, b, rcond=None)[0], 10)


@pytest.mark.parametrize("dtype", TYPES)
def test_tridiagonal_and_reflectors(dtype):
    n = 6
    diagonals = matrix(dtype, (3, 2, n), 5)
    diagonals[1] += 5
    diagonals[0, :, 0] = diagonals[2, :, -1] = 0
    b = matrix(dtype, (2, n, 3), 6)
    x = run(lax.tridiagonal_solve, *diagonals, b)
    full = np.stack([np.diag(d) + np.diag(low[1:], -1) + np.diag(up[:-1], 1) for low, d, up in zip(*diagonals)])
    close(full @ x, b)
    a = matrix(dtype, (5, 5), 7)
    raw, taus = run(lambda a: jnp.linalg.qr(a, mode="raw"), a)
    raw = np.swapaxes(raw, -1, -2).copy()
    q = run(lax.householder_product, raw, taus)
    close(q @ np.triu(raw), a)
    if hasattr(lax, "ormqr"):
        close(run(lambda r, t, c: lax.ormqr(r, t, c, left=True, transpose=True), raw, taus, a), adjoint(q) @ a)
        close(run(lambda r, t, c: lax.ormqr(r, t, c, left=False), raw, taus, a), a @ q)


@pytest.mark.parametrize("f", [jnp.linalg.det, jnp.linalg.inv, jnp.linalg.cholesky, jnp.linalg.qr, jnp.linalg.svd, jnp.linalg.eigh,
                               lambda a: lax.eig(a), jsl.schur, lambda a: lax.tridiagonal(a), jsl.lu_factor],
                         ids="det inv cholesky qr svd eigh eig schur tridiagonal lu".split())
@pytest.mark.parametrize("shape", [(0, 4, 4), (1, 1), (3, 1, 1)])
def test_edges(f, shape):
    x = abs(matrix("f4", shape)) + 1
    for a, b in zip(as_list(run(f, x)), [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(f)(x))]):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(abs(a), abs(b), rtol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_small_triangular_systems(dtype, n):
    """Up to 8 rows are computed without the library."""
    a, b = matrix(dtype, (3, n, n)) + 3 * np.eye(n, dtype=dtype), matrix(dtype, (3, n, 2), 1)
    for left, lower, across, unit in itertools.product((False, True), repeat=4):
        rhs = b if left else np.ascontiguousarray(np.swapaxes(b, -1, -2))
        x = run(lambda a, b, left=left, lower=lower, across=across, unit=unit: lax.triangular_solve(
            a, b, left_side=left, lower=lower, transpose_a=across, unit_diagonal=unit), a, rhs)
        t = np.tril(a, -unit) if lower else np.triu(a, unit)
        t = t + np.eye(n, dtype=dtype) * unit
        t = np.swapaxes(t, -1, -2) if across else t
        close(t @ x if left else x @ t, rhs)


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (4, 5, 2), (4, 2, 5), (8, 8), (2, 9, 8)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_small_factorisations(dtype, shape):
    x = matrix(dtype, shape)
    lu, pivots, rows = run(lax.lu, x)
    k = min(shape[-2:])
    lower = np.tril(lu[..., :k], -1) + np.eye(shape[-2], k, dtype=dtype)
    close(np.take_along_axis(x, rows[..., None], -2), lower @ np.triu(lu[..., :k, :]))
    assert (np.abs(lower) <= 1).all() and pivots.shape[-1] == k
    if shape[-1] == shape[-2]:
        p = positive(x)
        l = run(lambda a: jnp.linalg.cholesky(a), p)
        close(l @ adjoint(l), p)
        close(adjoint(run(lambda a: jnp.linalg.cholesky(a, upper=True), p)), l)


def test_a_small_matrix_that_is_singular_or_not_definite():
    zero = np.array([[0, 0], [0, 1]], np.float32)
    lu, pivots, _ = run(lax.lu, np.stack([zero, np.ones((2, 2), np.float32), zero[::-1, ::-1]]))
    assert np.isfinite(lu).all() and pivots.tolist() == [[0, 1], [0, 1], [0, 1]]
    for bad in (np.diag([1.0, -1]), np.full((3, 3), np.nan), np.zeros((2, 2))):
        assert np.isnan(np.tril(run(lambda a: jnp.linalg.cholesky(a), bad.astype(np.float64)))).any()


def test_failures_are_nans():
    """As JAX has it: where LAPACK says no, the item of the batch is NaN, and the others are right."""
    x = np.stack([np.eye(3), -np.eye(3), np.full((3, 3), np.nan)]).astype("f4")
    low = run(jnp.linalg.cholesky, x)
    np.testing.assert_array_equal(np.isnan(low).any((-1, -2)), [False, True, True])
    np.testing.assert_array_equal(low[0], np.eye(3))
    assert np.isnan(run(jnp.linalg.eigvals, x)[2]).all()
    assert np.isnan(run(lambda a: jnp.linalg.svd(a, compute_uv=False), x)[2]).all()
    assert not np.isfinite(run(jnp.linalg.inv, np.zeros((2, 2), "f4"))).any()


CALL = """HloModule m
ENTRY e {{ a = {operand} parameter(0)
  ROOT r = ({results}) custom-call(a), custom_call_target="{target}", operand_layout_constraints={{{operand}}},
    api_version=API_VERSION_TYPED_FFI, backend_config={config} }}"""
POTRF = dict(operand="f32[2,2]{0,1}", results="f32[2,2]{0,1}, s32[]", target="lapack_spotrf_ffi", config="{uplo = 76 : ui8}")


@pytest.mark.parametrize("change", [
    dict(operand="f32[2,2]{1,0}"), dict(operand="f64[2,2]{0,1}"), dict(operand="f32[2,3]{0,1}"), dict(operand="f32[4]{0}"),
    dict(results="f32[2,2]{0,1}"), dict(results="f32[2,2]{0,1}, f32[]"), dict(results="f32[2,2]{0,1}, s32[2]"),
    dict(results="f32[3,2]{0,1}, s32[]"), dict(results="f32[2,2]{1,0}, s32[]"), dict(results="token[], s32[]"),
    dict(config="{}"), dict(config="{uplo = 77 : ui8}"), dict(config="{uplo = -1 : i8}"), dict(config="{uplo = \"L\"}"),
    dict(config="{uplo = @L}"), dict(target="lapack_sgetrf_ffi"), dict(target="lapack_xpotrf_ffi"), dict(target="lapack_spotrx_ffi"),
    dict(target="lapack_ssyevd_ffi"), dict(target="lapack_sgehrd_ffi"), dict(target="lapack_sgesdd_ffi")])
def test_bad_calls(change):
    """Nothing a program says makes LAPACK read or write what is not its own."""
    module = xlac.parse(CALL.format(**{**POTRF, **change}))
    text = change.get("operand", POTRF["operand"])
    dims = [int(d) for d in text[text.index("[") + 1:text.index("]")].split(",")]
    x = np.ones(dims, "f8" if text.startswith("f64") else "f4")
    for how in (xlac.compile(module), lambda *a: xlac.interpret(module, *a)):
        with pytest.raises(xlac.Error, match="custom call|routine of LAPACK"):
            how(x)


def test_good_call():
    module = xlac.parse(CALL.format(**POTRF))
    low, info = xlac.compile(module)(np.array([[4, 0], [2, 5]], "f4"))
    np.testing.assert_array_equal(low, [[2, 0], [1, 2]])
    assert info == 0
    assert xlac.compile(module).steps["interpreted"] == 0


def test_without_a_library():
    module = xlac.parse(CALL.format(**POTRF))
    with pytest.raises(xlac.Error, match="lapack_spotrf_ffi") as caught:
        xlac.compile(module, blas=False)(np.eye(2, dtype="f4"))
    assert "scipy-openblas32" in caught.value.hint


OPS = {"f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16"}


def both(text, *args):
    """Compiled, which is the same for all numbers of threads, and interpreted."""
    module = xlac.parse(text)
    got = xlac.compile(module, threads=1)(*args)
    assert all(same_bits([got], [xlac.compile(module, threads=n)(*args)]) for n in (2, 7))
    assert xlac.compile(module).steps["interpreted"] == 0
    return got, xlac.interpret(module, *args)


@pytest.mark.parametrize("lower", ["true", "false"])
@pytest.mark.parametrize("name", OPS)
def test_cholesky(name, lower):
    x = positive(matrix(OPS[name], (70, 9, 9)))
    x[3] = -x[3]
    text = f"HloModule m\nENTRY e {{ a = {name}[70,9,9] parameter(0)\n ROOT r = {name}[70,9,9] cholesky(a), lower={lower} }}"
    got, want = both(text, x)
    close(got, want)
    assert np.isnan(got[3]).all() and not np.isnan(got[[2, 4]]).any()
    text = text.replace("ROOT r =", "n =").replace(" }", f"\n ROOT s = {name}[70,9,9] add(n, n) }}").replace("(a)", "(b)")
    text = text.replace("n = ", f"b = {name}[70,9,9] add(a, a)\n n = ", 1)  # in place
    close(*both(text, x))


@pytest.mark.parametrize("form", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
@pytest.mark.parametrize("name", OPS)
def test_triangular_solve(name, form):
    a = matrix(OPS[name], (2, 7, 7)) + 5 * np.eye(7, dtype=OPS[name])
    for left, lower, unit in np.ndindex(2, 2, 2):
        b = matrix(OPS[name], (2, 7, 900) if left else (2, 900, 7), 1)
        shape = ",".join(map(str, b.shape))
        flags = f"left_side={bool(left)}, lower={bool(lower)}, unit_diagonal={bool(unit)}".lower()
        text = (f"HloModule m\nENTRY e {{ a = {name}[2,7,7] parameter(0)\n b = {name}[{shape}] parameter(1)\n"
                f" ROOT r = {name}[{shape}] triangular-solve(a, b), {flags}, transpose_a={form} }}")
        close(*both(text, a, b), 300 if unit else 1)


def test_other_types_are_the_interpreter_s():
    x = positive(matrix("f4", (5, 5))).astype("f2")
    text = "HloModule m\nENTRY e { a = f16[5,5] parameter(0)\n ROOT r = f16[5,5] cholesky(a), lower=true }"
    module = xlac.parse(text)
    assert same_bits([xlac.compile(module)(x)], [xlac.interpret(module, x)])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [384, 500])
def test_large_factorisations_go_by_panels(n, dtype):
    """The same bits for any number of threads and interpreted, and as near as LAPACK's."""
    x = matrix(dtype, (2, n, n))
    square, eps = positive(x), np.finfo(dtype).eps
    for upper in (False, True):
        low = same_everywhere(lambda a, upper=upper: jnp.linalg.cholesky(a, upper=upper), square)[0]
        got = adjoint(low) @ low if upper else low @ adjoint(low)
        assert np.abs(got - square).max() < 20 * eps * np.abs(square).max()
    lu, _, permutation = same_everywhere(lax.lu, x)
    got = (np.tril(lu, -1) + np.eye(n)) @ np.triu(lu)
    want = np.stack([x[i][permutation[i]] for i in range(2)])
    assert np.abs(got - want).max() < 200 * eps * np.abs(x).max() * np.sqrt(n)


def same_everywhere(function, x):
    module = xlac.parse(str(jax.jit(function).lower(x).compiler_ir("stablehlo")), format="mlir")
    want = leaves(xlac.interpret(module, x))
    for threads in (1, 2, 7):
        assert same_bits(leaves(xlac.compile(module, threads=threads)(x)), want)
    return want


@pytest.mark.parametrize("shape", [(600, 400), (400, 600)])
def test_large_factorisations_of_rectangles(shape):
    x = matrix("f8", shape)
    lu, _, permutation = same_everywhere(lax.lu, x)
    least = min(shape)
    low = np.tril(lu[:, :least], -1) + np.eye(shape[0], least)
    assert np.allclose(low @ np.triu(lu[:least]), x[permutation])


def test_a_large_matrix_that_is_not_definite_or_singular():
    assert np.all(np.isnan(np.diag(same_everywhere(jnp.linalg.cholesky, -np.eye(500))[0])))
    lu, _, _ = same_everywhere(lax.lu, np.ones((500, 500)))
    assert np.array_equal(np.abs(lu[1:, 1:]), np.zeros((499, 499)))
