"""A search in a tree of actions by mctx, and losses of rlax."""
import jax
import jax.numpy as jnp
import mctx
import rlax

TOLERANCE = 1e-4


def main():
    w = jax.random.normal(jax.random.key(0), (4, 5, 4))
    root = mctx.RootFnOutput(prior_logits=jnp.ones((3, 5)), value=jnp.zeros(3), embedding=jax.random.normal(jax.random.key(1), (3, 4)))

    def recur(params, key, action, x):
        y = jnp.tanh(jnp.einsum("bi,bij->bj", x, params[:, action].transpose(1, 0, 2)))
        logits = jnp.tile(y[:, :1], (1, 5)) * jnp.arange(5)
        return mctx.RecurrentFnOutput(reward=y[:, 0], discount=jnp.full(3, 0.9), prior_logits=logits, value=y[:, 1]), y
    search = jax.jit(lambda w, k: mctx.gumbel_muzero_policy(w, k, root, recur, num_simulations=24, max_depth=6))
    found = search(w, jax.random.key(2))
    plain = jax.jit(lambda w, k: mctx.muzero_policy(w, k, root, recur, num_simulations=16))(w, jax.random.key(3))
    r, d, v = jnp.arange(8.0), jnp.full(8, 0.9), jnp.sin(jnp.arange(8.0))
    return {"action": found.action, "weights": found.action_weights, "plain": plain.action_weights, "lambda": rlax.lambda_returns(r, d, v, 0.8),
            "vtrace": rlax.vtrace(v, v * 0.5, r, d, jnp.full(8, 0.7))}
