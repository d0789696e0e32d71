"""Recurrent networks of haiku: an LSTM and a GRU learn to add, a convolutional one with state."""
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax

TOLERANCE = 5e-3


def learn(core, steps=100):
    def net(x):
        cell = core(16)
        out, _ = hk.dynamic_unroll(cell, x, cell.initial_state(x.shape[1]))
        return hk.Linear(1)(out[-1])[:, 0]
    model, tx, rng = hk.without_apply_rng(hk.transform(net)), optax.adam(1e-2), np.random.default_rng(0)
    params = model.init(jax.random.key(0), jnp.zeros((10, 8, 2)))
    state = tx.init(params)

    @jax.jit
    def step(params, state, x, y):
        value, grads = jax.value_and_grad(lambda p: jnp.mean((model.apply(p, x) - y) ** 2))(params)
        updates, state = tx.update(grads, state)
        return optax.apply_updates(params, updates), state, value
    losses = []
    for _ in range(steps):
        x = rng.random((10, 8, 2)).astype(np.float32)
        params, state, value = step(params, state, x, (x[..., 0] * (x[..., 1] > 0.5)).sum(0))
        losses.append(value)
    return jnp.stack(losses)


def main():
    def conv(x, train):
        x = hk.BatchNorm(True, True, 0.9)(hk.Conv2D(8, 3, 2)(x), train)
        return hk.Linear(3)(hk.Flatten()(hk.max_pool(jax.nn.relu(x), 2, 2, "SAME"))).sum()
    model, x = hk.transform_with_state(conv), jax.random.normal(jax.random.key(1), (4, 8, 8, 3))
    params, state = model.init(jax.random.key(0), x, True)
    grads, state = jax.jit(jax.grad(lambda p, s: model.apply(p, s, None, x, True), has_aux=True))(params, state)
    return {"lstm": learn(hk.LSTM), "gru": learn(hk.GRU), "conv": jnp.concatenate([g.ravel() for g in jax.tree.leaves(grads)]),
            "averages": jnp.concatenate([jnp.ravel(s) for s in jax.tree.leaves(state)])}
