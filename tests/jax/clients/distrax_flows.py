"""Distributions and flows of distrax: samples, densities, divergences, bijectors and their gradients."""
import distrax
import jax
import jax.numpy as jnp

TOLERANCE = 1e-3


def flow(params, x):
    mask = jnp.array([True, False])
    def bijector(p):
        return distrax.RationalQuadraticSpline(p, range_min=-3.0, range_max=3.0)
    coupling = distrax.MaskedCoupling(mask, lambda y: jnp.tanh(y @ params["w"]).reshape(*y.shape[:-1], 2, 13), bijector)
    base = distrax.Independent(distrax.Normal(jnp.zeros(2), jnp.ones(2)), 1)
    return distrax.Transformed(base, distrax.Chain([coupling, distrax.Block(distrax.ScalarAffine(0.1, 0.9), 1)])).log_prob(x)


def main():
    key = jax.random.key(0)
    given = {"normal": distrax.Normal(1.0, 2.0), "gamma": distrax.Gamma(2.0, 3.0), "beta": distrax.Beta(2.0, 3.0),
             "categorical": distrax.Categorical(logits=jnp.arange(4.0)), "gumbel": distrax.Gumbel(0.0, 1.0), "laplace": distrax.Laplace(0.0, 1.0),
             "dirichlet": distrax.Dirichlet(jnp.array([1.0, 2.0, 3.0])), "mises": distrax.VonMises(0.5, 2.0), "uniform": distrax.Uniform(0.0, 2.0),
             "many": distrax.MultivariateNormalTri(jnp.zeros(2), jnp.array([[1.0, 0], [0.5, 2]])), "logistic": distrax.Logistic(0.0, 1.0),
             "mixture": distrax.MixtureSameFamily(distrax.Categorical(probs=jnp.array([0.3, 0.7])), distrax.Normal(jnp.array([-1.0, 1]), jnp.ones(2)))}
    out = {}
    for name, d in given.items():
        x, density = jax.jit(lambda k, d=d: d.sample_and_log_prob(seed=k, sample_shape=(50,)))(key)
        out[name], out[f"density of {name}"] = x, density
    out["divergence"] = jax.jit(lambda: given["normal"].kl_divergence(distrax.Normal(0.0, 1.0)))()
    params, x = {"w": 0.3 * jax.random.normal(key, (2, 26))}, jax.random.normal(key, (20, 2))
    out["flow"] = jax.jit(flow)(params, x)
    out["gradient"] = jax.jit(jax.grad(lambda p: flow(p, x).mean()))(params)["w"]
    hmm = distrax.HMM(distrax.Categorical(probs=jnp.ones(3) / 3), distrax.Categorical(logits=jnp.eye(3)), distrax.Normal(jnp.arange(3.0), jnp.ones(3)))
    states, seen = hmm.sample(seed=key, seq_len=20)
    out["states"], out["most likely"] = states, hmm.viterbi(seen)
    return out
