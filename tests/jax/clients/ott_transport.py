"""Optimal transport: Sinkhorn, its gradient, Gromov-Wasserstein."""
import jax
from ott.geometry import pointcloud
from ott.problems.linear import linear_problem
from ott.problems.quadratic import quadratic_problem
from ott.solvers.linear import sinkhorn
from ott.solvers.quadratic import gromov_wasserstein

TOLERANCE = 2e-3


def main():
    x, y = jax.random.normal(jax.random.key(0), (40, 3)), jax.random.normal(jax.random.key(1), (50, 3)) + 1

    def solve(x):
        return sinkhorn.Sinkhorn()(linear_problem.LinearProblem(pointcloud.PointCloud(x, y, epsilon=0.1)))
    found = jax.jit(solve)(x)
    cost = jax.jit(jax.grad(lambda x: solve(x).reg_ot_cost))(x)
    both = quadratic_problem.QuadraticProblem(pointcloud.PointCloud(x), pointcloud.PointCloud(y))
    gw = jax.jit(gromov_wasserstein.GromovWasserstein(linear_solver=sinkhorn.Sinkhorn(), epsilon=5.0))(both)
    return {"cost": found.reg_ot_cost, "matrix": found.matrix, "gradient": cost, "gw": gw.reg_gw_cost}
