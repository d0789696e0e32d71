"""A GPT of characters: flax, optax's AdamW with a schedule, gradients clipped and accumulated, dropout, donated state; 200 steps."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training import train_state

TOLERANCE = 2e-3
LENGTH, WIDTH, HEADS, LAYERS, BATCH, STEPS = 32, 32, 4, 2, 8, 200


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        mask = nn.make_causal_mask(jnp.ones(x.shape[:2]))
        x = x + nn.MultiHeadDotProductAttention(HEADS, dropout_rate=0.1, deterministic=not train)(nn.LayerNorm()(x), mask=mask)
        y = nn.Dense(WIDTH)(nn.gelu(nn.Dense(4 * WIDTH)(nn.LayerNorm()(x))))
        return x + nn.Dropout(0.1, deterministic=not train)(y)


class GPT(nn.Module):
    words: int

    @nn.compact
    def __call__(self, tokens, train=False):
        x = nn.Embed(self.words, WIDTH)(tokens) + nn.Embed(LENGTH, WIDTH)(jnp.arange(tokens.shape[1]))
        for _ in range(LAYERS):
            x = nn.remat(Block, static_argnums=(2,))()(x, train)
        return nn.Dense(self.words)(nn.LayerNorm()(x))


def main():
    text = np.frombuffer(__doc__.encode() * 20, np.uint8).astype(np.int32)
    model, rng = GPT(128), np.random.default_rng(0)
    schedule = optax.warmup_cosine_decay_schedule(0, 3e-3, 20, STEPS)
    tx = optax.MultiSteps(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule)), 2)
    params = model.init(jax.random.key(0), jnp.zeros((1, LENGTH), jnp.int32))
    state = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=tx)

    def step(state, tokens, key):
        def loss(params):
            logits = state.apply_fn(params, tokens[:, :-1], train=True, rngs={"dropout": key})
            return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()
        value, grads = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=grads), value

    step, losses = jax.jit(step, donate_argnums=0), []
    for i in range(STEPS):
        at = rng.integers(0, len(text) - LENGTH - 1, BATCH)
        state, value = step(state, np.stack([text[a:a + LENGTH + 1] for a in at]), jax.random.fold_in(jax.random.key(1), i))
        losses.append(value)

    @jax.jit
    def write(params, tokens):
        def one(i, tokens):
            logits = model.apply(params, tokens)[0, i]
            return tokens.at[0, i + 1].set(jnp.argmax(logits))
        return jax.lax.fori_loop(0, LENGTH - 1, one, tokens)
    written = write(state.params, jnp.full((1, LENGTH), ord("A")))
    return {"losses": jnp.stack(losses), "writes text": np.isin(np.asarray(written), text).all()}
