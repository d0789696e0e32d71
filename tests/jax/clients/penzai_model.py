"""A small network of penzai's with named axes, trained; and its arrays named, sliced and mapped over."""
import jax
import jax.numpy as jnp
import optax
import penzai
from penzai import pz

TOLERANCE = 2e-3


def main():
    a = pz.nx.wrap(jnp.arange(12.0).reshape(3, 4), "row", "col")
    named = pz.nx.nmap(jnp.sum)(a.untag("row")).unwrap("col")
    from penzai.models import simple_mlp
    mlp = simple_mlp.MLP.from_config(jax.random.key(0), [8, 16, 1])
    x = pz.nx.wrap(jax.random.normal(jax.random.key(1), (32, 8)), "batch", "features")
    target = jnp.sin(x.unwrap("batch", "features").sum(1))

    def loss(params, model):
        y = pz.bind_variables(model, params)(x).unwrap("batch", "features")[:, 0]
        return jnp.mean((y - target) ** 2)
    model, params = pz.unbind_params(mlp, freeze=True)
    tx = optax.adam(1e-2)
    state, losses = tx.init(params), []
    step = jax.jit(lambda p, s: (lambda v, g: (v, *tx.update(g, s)))(*jax.value_and_grad(loss)(p, model)))
    for _ in range(60):
        value, updates, state = step(params, state)
        params = optax.apply_updates(params, updates)
        losses.append(value)
    assert penzai
    return {"named": named, "losses": jnp.stack(losses)}
