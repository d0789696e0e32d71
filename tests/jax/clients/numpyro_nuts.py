"""Bayesian models: numpyro's NUTS on eight schools and on a regression, SVI with a guide that is made by itself, predictions."""
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoMultivariateNormal
from numpyro.infer.reparam import LocScaleReparam

TOLERANCE = 0.1  # samples part ways after some steps; their means don't
EFFECTS, ERRORS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])


def schools():
    mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8), numpyro.handlers.reparam(config={"theta": LocScaleReparam(0)}):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("seen", dist.Normal(theta, ERRORS), obs=EFFECTS)


def regression(x, y=None):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(3), 1).to_event(1))
    with numpyro.plate("points", len(x)):
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)


def main():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((100, 3)).astype(np.float32)
    y = (x @ np.array([1.0, -2, 0.5]) + 0.3 * rng.standard_normal(100) > 0).astype(np.int32)
    mcmc = MCMC(NUTS(schools), num_warmup=300, num_samples=600, num_chains=2, chain_method="vectorized", progress_bar=False)
    mcmc.run(jax.random.key(0))
    found = mcmc.get_samples()
    svi = SVI(regression, AutoMultivariateNormal(regression), numpyro.optim.Adam(0.02), Trace_ELBO())
    result = svi.run(jax.random.key(1), 300, x, y, progress_bar=False)
    nuts = MCMC(NUTS(regression), num_warmup=200, num_samples=400, progress_bar=False)
    nuts.run(jax.random.key(2), x, y)
    predicted = Predictive(regression, nuts.get_samples())(jax.random.key(3), x)["y"]
    return {"mu": found["mu"].mean() / 5, "theta": found["theta"].mean(0), "losses": result.losses[::30], "w": nuts.get_samples()["w"].mean(0),
            "predicted": predicted.mean()}
