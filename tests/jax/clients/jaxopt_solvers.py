"""Solvers of jaxopt, and gradients through them."""
import jax
import jax.numpy as jnp
import jaxopt
import numpy as np

TOLERANCE = 5e-3


def main():
    rng = np.random.default_rng(0)
    a, b = jnp.asarray(rng.standard_normal((30, 5)), jnp.float32), jnp.asarray(rng.standard_normal(30), jnp.float32)

    def ridge(w, l2):
        return jnp.mean((a @ w - b) ** 2) + l2 * jnp.sum(w ** 2)

    def residual(w):
        return a @ jnp.tanh(w) - b
    start, out = jnp.zeros(5), {}
    for name in ("LBFGS", "GradientDescent", "NonlinearCG", "BFGS"):
        out[name] = getattr(jaxopt, name)(ridge, maxiter=200).run(start, l2=0.1).params
    out["through it"] = jax.grad(lambda l2: jaxopt.LBFGS(ridge, maxiter=100).run(start, l2=l2).params.sum())(0.1)
    out["lasso"] = jaxopt.ProximalGradient(lambda w: jnp.mean((a @ w - b) ** 2), jaxopt.prox.prox_lasso, maxiter=300).run(start, hyperparams_prox=0.1).params
    out["simplex"] = jaxopt.ProjectedGradient(lambda w: jnp.mean((a @ w - b) ** 2), jaxopt.projection.projection_simplex).run(jnp.ones(5) / 5).params
    out["levenberg"] = jaxopt.LevenbergMarquardt(residual).run(start).params
    out["newton"] = jaxopt.GaussNewton(residual, maxiter=30).run(start).params
    out["fixed point"] = jaxopt.AndersonAcceleration(lambda x: jnp.cos(x), maxiter=50).run(jnp.ones(3)).params
    out["root"] = jaxopt.Bisection(lambda x: x ** 3 - x - 1, 1.0, 2.0).run().params
    out["quadratic"] = jaxopt.OSQP().run(params_obj=(jnp.eye(3), jnp.array([1.0, -2, 3])), params_eq=(jnp.ones((1, 3)), jnp.ones(1)),
                                         params_ineq=(-jnp.eye(3), jnp.zeros(3))).params.primal
    return out
