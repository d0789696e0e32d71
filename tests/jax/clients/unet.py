"""A diffusion U-Net with attention and group norm: flax's nnx, strided and transposed convolutions, an average of the weights; 200 steps, then samples."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

TOLERANCE = 5e-3
STEPS, BATCH, SIZE, TIMES = 200, 8, 8, 20


class Block(nnx.Module):
    def __init__(self, n, m, rngs):
        self.norm, self.conv, self.time = nnx.GroupNorm(n, num_groups=4, rngs=rngs), nnx.Conv(n, m, (3, 3), rngs=rngs), nnx.Linear(16, m, rngs=rngs)

    def __call__(self, x, t):
        return self.conv(nnx.silu(self.norm(x))) + self.time(t)[:, None, None]


class UNet(nnx.Module):
    def __init__(self, rngs):
        self.first, self.last = nnx.Conv(1, 16, (3, 3), rngs=rngs), nnx.Conv(16, 1, (3, 3), rngs=rngs)
        self.down, self.halve = Block(16, 16, rngs), nnx.Conv(16, 32, (3, 3), strides=2, rngs=rngs)
        self.middle, self.attend = Block(32, 32, rngs), nnx.MultiHeadAttention(num_heads=2, in_features=32, decode=False, rngs=rngs)
        self.double, self.up = nnx.ConvTranspose(32, 16, (4, 4), strides=2, rngs=rngs), Block(32, 16, rngs)

    def __call__(self, x, t):
        angles = t[:, None] * jnp.exp(-jnp.arange(8) * 0.5)
        t = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], 1)
        x = self.first(x)
        skip = self.down(x, t)
        y = self.middle(self.halve(skip), t)
        y = y + self.attend(y.reshape(y.shape[0], -1, 32)).reshape(y.shape)
        return self.last(self.up(jnp.concatenate([self.double(y), skip], -1), t))


def main():
    model = UNet(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    alphas = jnp.cumprod(1 - jnp.linspace(1e-3, 0.3, TIMES))
    average = jax.tree.map(jnp.copy, nnx.state(model, nnx.Param))

    @nnx.jit
    def step(model, optimizer, average, x, key):
        t = jax.random.randint(key, (BATCH,), 0, TIMES)
        noise, a = jax.random.normal(jax.random.fold_in(key, 1), x.shape), alphas[t][:, None, None, None]

        def loss(model):
            return jnp.mean((model(jnp.sqrt(a) * x + jnp.sqrt(1 - a) * noise, t.astype(jnp.float32)) - noise) ** 2)
        value, grads = nnx.value_and_grad(loss)(model)
        optimizer.update(model, grads)
        return value, optax.incremental_update(nnx.state(model, nnx.Param), average, 0.05)

    rng, losses = np.random.default_rng(0), []
    for i in range(STEPS):
        x = np.zeros((BATCH, SIZE, SIZE, 1), np.float32)
        for k, (a, b) in enumerate(rng.integers(0, SIZE - 3, (BATCH, 2))):
            x[k, a:a + 3, b:b + 3] = 1
        value, average = step(model, optimizer, average, x, jax.random.fold_in(jax.random.key(0), i))
        losses.append(value)
    nnx.update(model, average)

    @nnx.jit
    def sample(model, key):
        def one(x, t):
            a, before = alphas[t], jnp.where(t > 0, alphas[t - 1], 1.0)
            noise = model(x, jnp.full((4,), t, jnp.float32))
            return jnp.sqrt(before) * (x - jnp.sqrt(1 - a) * noise) / jnp.sqrt(a) + jnp.sqrt(1 - before) * noise, None
        return jax.lax.scan(one, jax.random.normal(key, (4, SIZE, SIZE, 1)), jnp.arange(TIMES)[::-1])[0]
    return {"losses": jnp.stack(losses), "samples' means": sample(model, jax.random.key(2)).mean((1, 2, 3))}
