"""Pendulums of brax's in its simulator, eight at once."""
import jax
import jax.numpy as jnp
from brax import envs

TOLERANCE = 5e-2


def main():
    env = envs.get_environment("inverted_pendulum", backend="generalized")
    reset, step = jax.jit(jax.vmap(env.reset)), jax.jit(jax.vmap(env.step))
    state = reset(jax.random.split(jax.random.key(0), 8))
    rewards, seen = [], []
    for i in range(20):
        state = step(state, jnp.full((8, env.action_size), 0.1 * (-1) ** i))
        rewards.append(state.reward.mean())
        seen.append(state.obs[:2])
    return {"rewards": jnp.stack(rewards), "seen": jnp.stack(seen)}
