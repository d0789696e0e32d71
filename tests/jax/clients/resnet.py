"""A ResNet on made-up images: flax with batch norm, momentum, label smoothing, bfloat16 in the convolutions; 200 steps."""
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

TOLERANCE = 0.03  # bfloat16
STEPS, BATCH, SIZE = 200, 8, 12


class Block(nn.Module):
    width: int
    stride: int

    @nn.compact
    def __call__(self, x, train):
        conv, norm = partial(nn.Conv, use_bias=False, dtype=jnp.bfloat16), partial(nn.BatchNorm, use_running_average=not train, momentum=0.9)
        y = nn.relu(norm()(conv(self.width, (3, 3), (self.stride, self.stride))(x)))
        y = norm(scale_init=nn.initializers.zeros)(conv(self.width, (3, 3))(y))
        if x.shape != y.shape:
            x = norm()(conv(self.width, (1, 1), (self.stride, self.stride))(x))
        return nn.relu(x + y)


class ResNet(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        x = nn.relu(nn.BatchNorm(use_running_average=not train)(nn.Conv(16, (3, 3), use_bias=False)(x)))
        x = nn.max_pool(x, (3, 3), (1, 1), "SAME")
        for width, stride in ((16, 1), (32, 2), (32, 1)):
            x = Block(width, stride)(x, train)
        return nn.Dense(4)(x.mean((1, 2)))


def main():
    rng = np.random.default_rng(0)
    kinds = rng.standard_normal((4, SIZE, SIZE, 3)).astype(np.float32)
    model, tx = ResNet(), optax.sgd(optax.cosine_decay_schedule(0.05, STEPS), momentum=0.9, nesterov=True)
    variables = model.init(jax.random.key(0), jnp.zeros((1, SIZE, SIZE, 3)))
    params, stats = variables["params"], variables["batch_stats"]
    opt = tx.init(params)

    @partial(jax.jit, donate_argnums=(0, 1, 2))
    def step(params, stats, opt, images, labels):
        def loss(params):
            logits, new = model.apply({"params": params, "batch_stats": stats}, images, mutable=["batch_stats"])
            return optax.softmax_cross_entropy(logits, optax.smooth_labels(jax.nn.one_hot(labels, 4), 0.1)).mean(), new["batch_stats"]
        (value, stats_), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, opt = tx.update(grads, opt, params)
        return optax.apply_updates(params, updates), stats_, opt, value

    losses = []
    for _ in range(STEPS):
        labels = rng.integers(0, 4, BATCH)
        images = kinds[labels] + 2 * rng.standard_normal((BATCH, SIZE, SIZE, 3)).astype(np.float32)
        params, stats, opt, value = step(params, stats, opt, images, labels)
        losses.append(value)
    losses = jnp.stack(losses)
    return {"the first losses": losses[:20], "the losses' means": losses.reshape(10, 20).mean(1)}
