"""Every optimizer of optax's on one small problem, 30 steps each."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

TOLERANCE = 5e-3
NAMES = ("adabelief", "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamaxw", "adamw", "adan", "amsgrad", "fromage", "lamb", "lars", "lion",
         "nadam", "nadamw", "noisy_sgd", "novograd", "optimistic_gradient_descent", "radam", "rmsprop", "rprop", "sgd", "sign_sgd", "sm3", "yogi")


def loss(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["w"] + params["b"]) @ params["v"] - y) ** 2)


def learn(name, x, y):
    made = getattr(optax, name)
    tx = made(seed=0, eta=0.01, gamma=0.5, learning_rate=1e-2) if False else made(learning_rate=1e-2) if name != "noisy_sgd" else made(1e-2, key=0)
    params = {"w": jax.random.normal(jax.random.key(0), (4, 8)), "b": jnp.zeros(8), "v": jax.random.normal(jax.random.key(1), (8,))}

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value
    state, losses = tx.init(params), []
    for _ in range(30):
        params, state, value = step(params, state)
        losses.append(value)
    return jnp.stack(losses)


def main():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 4)).astype(np.float32)
    y = np.sin(x.sum(1))
    out = {name: learn(name, x, y) for name in NAMES if hasattr(optax, name)}
    tx, params = optax.lbfgs(), {"w": jnp.ones((4, 8)) / 4, "b": jnp.zeros(8), "v": jnp.ones(8)}
    value_and_grad = optax.value_and_grad_from_state(lambda p: loss(p, x, y))

    @jax.jit
    def step(params, state):
        value, grads = value_and_grad(params, state=state)
        updates, state = tx.update(grads, state, params, value=value, grad=grads, value_fn=lambda p: loss(p, x, y))
        return optax.apply_updates(params, updates), state, value
    state, losses = tx.init(params), []
    for _ in range(8):
        params, state, value = step(params, state)
        losses.append(value)
    out["lbfgs"] = jnp.stack(losses)
    return out
