"""A training step lowered by JAX, run a thousand times from Python: the loss curve is JAX's."""
import numpy as np
import pytest

import xlac

jax = pytest.importorskip("jax")


def mlp(params, x):
    import jax.numpy as jnp

    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss(params, x, y):
    import jax.numpy as jnp

    logits = mlp(params, x)
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * y, axis=-1))


def step(params, x, y):
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


def data():
    rng = np.random.default_rng(7)
    sizes = [8, 32, 32, 4]
    params = [(rng.normal(0, 0.4, (m, n)).astype(np.float32), np.zeros(n, np.float32)) for m, n in zip(sizes, sizes[1:])]
    x = rng.normal(size=(64, 8)).astype(np.float32)
    y = np.eye(4, dtype=np.float32)[np.argmax(x[:, :4] + 0.5 * x[:, 4:], axis=1)]
    return params, x, y


@pytest.mark.parametrize("threads", [1, 2])
def test_a_thousand_steps(threads):
    params, x, y = data()
    run = jax.jit(step)
    theirs, state = [], params
    for _ in range(1000):
        value, state = run(state, x, y)
        theirs.append(float(value))
    exe = xlac.compile(xlac.parse(run.lower(params, x, y).as_text()), threads=threads)
    assert exe.steps["interpreted"] == 0
    ours, leaves = [], [leaf for layer in params for leaf in layer]
    for _ in range(1000):
        value, *leaves = exe(*leaves, x, y)
        ours.append(float(value))
    assert ours[-1] < 0.2 * ours[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    for mine, his in zip(leaves, jax.tree.leaves(state)):
        np.testing.assert_allclose(mine, his, rtol=2e-3, atol=2e-3)
