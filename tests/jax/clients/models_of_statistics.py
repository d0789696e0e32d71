"""Gaussian processes (tinygp), graphs (jraph), flows (flowjax), state spaces (dynamax), dataclasses of chex."""
import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import jraph
import tinygp
from dynamax.hidden_markov_model import GaussianHMM
from dynamax.linear_gaussian_ssm import LinearGaussianSSM
from flowjax.distributions import Normal
from flowjax.flows import coupling_flow, masked_autoregressive_flow

TOLERANCE = 5e-3


@chex.dataclass
class Pair:
    x: jax.Array
    y: jax.Array


def gaussian():
    x = jnp.linspace(0, 5, 40)
    y = jnp.sin(x)

    def loss(p):
        kernel = jnp.exp(p["a"]) * tinygp.kernels.Matern32(jnp.exp(p["s"]))
        return -tinygp.GaussianProcess(kernel, x, diag=0.01).log_probability(y)
    p, v = {"a": jnp.float32(0), "s": jnp.float32(0)}, []
    step = jax.jit(jax.value_and_grad(loss))
    for _ in range(20):
        value, g = step(p)
        p = jax.tree.map(lambda a, b: a - 0.01 * jnp.clip(b, -5, 5), p, g)
        v.append(value)
    return jnp.stack(v), tinygp.GaussianProcess(tinygp.kernels.quasisep.Matern32(1.0), x, diag=0.1).log_probability(y)


def graph():
    g = jraph.GraphsTuple(nodes=jnp.ones((6, 4)), edges=jnp.arange(8.0)[:, None], senders=jnp.array([0, 1, 2, 3, 4, 5, 0, 2]),
                          receivers=jnp.array([1, 2, 3, 4, 5, 0, 3, 5]), n_node=jnp.array([4, 2]), n_edge=jnp.array([5, 3]),
                          globals=jnp.zeros((2, 1)))
    net = jraph.GraphNetwork(update_edge_fn=lambda e, s, r, u: jnp.tanh(e + s + r),
                             update_node_fn=lambda n, s, r, u: n + s.sum(-1, keepdims=True) + r,
                             update_global_fn=lambda n, e, u: n.sum(-1, keepdims=True))
    h = jax.jit(net)(jraph.pad_with_graphs(g, 10, 12, 4))
    return h.nodes, h.globals


def flow(kind):
    f = kind(jax.random.key(0), base_dist=Normal(jnp.zeros(3)), flow_layers=2)
    x = f.sample(jax.random.key(1), (10,))
    return x, eqx.filter_jit(lambda f: f.log_prob(x))(f)


def states():
    lgssm = LinearGaussianSSM(2, 3)
    params, props = lgssm.initialize(jax.random.key(0))
    _, y = lgssm.sample(params, jax.random.key(1), 30)
    hmm = GaussianHMM(3, 2)
    hp, hprops = hmm.initialize(jax.random.key(2))
    _, e = hmm.sample(hp, jax.random.key(3), 60)
    hp, lls = hmm.fit_em(hp, hprops, e, num_iters=5, verbose=False)
    return lgssm.smoother(params, y).smoothed_means, lls


def main():
    v, q = gaussian()
    nodes, globs = graph()
    coupled, coupled_p = flow(coupling_flow)
    masked, masked_p = flow(masked_autoregressive_flow)
    means, likelihoods = states()
    doubled = jax.jit(lambda p: Pair(x=p.x * 2, y=p.y))(Pair(x=jnp.ones(2), y=jnp.zeros(1)))
    return {"gp": v, "quasisep": q, "nodes": nodes, "globals": globs, "coupling": coupled, "coupling_p": coupled_p, "maf": masked,
            "maf_p": masked_p, "smooth": means, "likelihoods": likelihoods, "chex": doubled.x}
