"""Roots, least squares and minima of optimistix, linear solvers of lineax, functions annotated by jaxtyping."""
import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import optimistix as optx
from jaxtyping import Array, Float, jaxtyped

TOLERANCE = 1e-3  # minima are found to 1e-6 of their values


@jaxtyped(typechecker=None)
def rosenbrock(x: Float[Array, "..."], _):
    return 100 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]


def main():
    out = {}
    x = jnp.array([-1.2, 1.0, 0.8])
    for name, solver in (("lm", optx.LevenbergMarquardt(1e-6, 1e-6)), ("gn", optx.GaussNewton(1e-5, 1e-5)), ("dogleg", optx.Dogleg(1e-6, 1e-6))):
        out[name] = optx.least_squares(rosenbrock, solver, x, max_steps=300, throw=False).value
    out["bfgs"] = optx.minimise(lambda x, _: ((x - 2) ** 2).sum() + x.prod(), optx.BFGS(1e-6, 1e-6), x).value
    out["newton"] = optx.root_find(lambda x, a: x**3 - a, optx.Newton(1e-6, 1e-6), jnp.ones(3), jnp.array([2.0, 3, 4])).value
    out["fixed"] = optx.fixed_point(lambda x, _: jnp.cos(x), optx.FixedPointIteration(1e-6, 1e-6), jnp.ones(())).value
    out["implicit"] = jax.grad(lambda a: optx.root_find(lambda x, a: x**2 - a, optx.Newton(1e-6, 1e-6), jnp.float32(1), a).value)(jnp.float32(2))
    a = jax.random.normal(jax.random.key(0), (6, 6)) + 4 * jnp.eye(6)
    b = jnp.arange(6.0)
    spd = lx.MatrixLinearOperator(a @ a.T, lx.positive_semidefinite_tag)
    whole = lx.MatrixLinearOperator(a)
    for name, op, solver in (("lu", whole, lx.LU()), ("qr", lx.MatrixLinearOperator(a[:, :4]), lx.QR()), ("svd", whole, lx.SVD()),
                             ("chol", spd, lx.Cholesky()), ("cg", spd, lx.CG(1e-6, 1e-6)), ("gmres", whole, lx.GMRES(1e-6, 1e-6))):
        out[name] = eqx.filter_jit(lambda b, op=op, solver=solver: lx.linear_solve(op, b, solver).value)(b)
    tri = lx.TridiagonalLinearOperator(jnp.full(6, 3.0), jnp.ones(5), jnp.ones(5))
    out["tri"] = lx.linear_solve(tri, b).value
    return out
