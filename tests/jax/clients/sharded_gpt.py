"""A small GPT on eight virtual devices, four for the batch and two for heads and hidden units, its optimizer's state cut as its weights: 200 steps of
AdamW by hand, donated state; and the same network by shard_map with sums over devices."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

TOLERANCE = 2e-3
WORDS, LENGTH, WIDTH, HEADS, LAYERS, BATCH, STEPS = 64, 32, 32, 4, 2, 16, 200
jax.config.update("jax_num_cpu_devices", 8)
CUTS = {"embed": P(), "place": P(), "qkv": P(None, None, "model", None), "out": P("model", None, None), "up": P(None, "model"), "down": P("model", None)}


def weights(rng):
    def normal(*shape):
        return (rng.standard_normal(shape) * 0.1).astype(np.float32)
    blocks = [{"qkv": normal(WIDTH, 3, HEADS, WIDTH // HEADS), "out": normal(HEADS, WIDTH // HEADS, WIDTH), "up": normal(WIDTH, 4 * WIDTH),
               "down": normal(4 * WIDTH, WIDTH)} for _ in range(LAYERS)]
    return {"embed": normal(WORDS, WIDTH), "place": normal(LENGTH, WIDTH), "blocks": blocks}


def normed(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def block(w, x, total=lambda v: v):
    q, k, v = jnp.einsum("btc,cnhd->nbhtd", normed(x), w["qkv"])
    scores = jnp.einsum("bhtd,bhsd->bhts", q, k) / np.sqrt(WIDTH // HEADS)
    scores = jnp.where(jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool)), scores, -1e9)
    x = x + total(jnp.einsum("bhtd,hdc->btc", jnp.einsum("bhts,bhsd->bhtd", jax.nn.softmax(scores), v), w["out"]))
    return x + total(jax.nn.gelu(normed(x) @ w["up"]) @ w["down"])


def forward(w, tokens, total=lambda v: v):
    x = w["embed"][tokens] + w["place"][:tokens.shape[1]]
    for layer in w["blocks"]:
        x = block(layer, x, total)
    return normed(x) @ w["embed"].T


def loss(w, tokens):
    logits = forward(w, tokens[:, :-1])
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1).mean()


@functools.partial(jax.jit, donate_argnums=(0, 1))
def step(w, state, tokens, count):
    value, gradient = jax.value_and_grad(loss)(w, tokens)
    state = jax.tree.map(lambda s, g: (0.9 * s[0] + 0.1 * g, 0.999 * s[1] + 0.001 * g * g), state, gradient, is_leaf=lambda s: isinstance(s, tuple))
    def moved(v, s):
        return v - 3e-3 * (s[0] / (1 - 0.9 ** count) / (jnp.sqrt(s[1] / (1 - 0.999 ** count)) + 1e-8) + 0.01 * v)
    return jax.tree.map(moved, w, state), state, value


def main():
    rng = np.random.default_rng(0)
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    host = weights(rng)
    cuts = jax.tree_util.tree_map_with_path(lambda path, v: NamedSharding(mesh, CUTS[path[-1].key]), host)
    text = np.cumsum(rng.integers(0, 3, (BATCH * 8, LENGTH + 1)), 1) % WORDS
    batches = [jax.device_put(text[i * BATCH:(i + 1) * BATCH].astype(np.int32), NamedSharding(mesh, P("data"))) for i in range(8)]
    w = jax.device_put(host, cuts)
    state = jax.tree.map(lambda v: (jnp.zeros_like(v), jnp.zeros_like(v)), w)
    losses = []
    for i in range(STEPS):
        w, state, value = step(w, state, batches[i % 8], np.float32(i + 1))
        losses.append(float(value))  # waits: XLA's devices miss each other where many steps are under way on few CPUs
    inside = jax.tree_util.tree_map_with_path(lambda path, v: CUTS[path[-1].key], host)
    by_hand = jax.jit(jax.shard_map(lambda w, t: forward(w, t, lambda v: jax.lax.psum(v, "model")), mesh=mesh, in_specs=(inside, P("data")),
                                    out_specs=P("data")))
    return {"losses": losses, "logits": by_hand(w, batches[0][:, :-1]), "cut": float(w["blocks"][0]["up"].sharding.spec == P(None, "model"))}
