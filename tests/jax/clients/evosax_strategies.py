"""Evolution strategies of evosax."""
import jax
import jax.numpy as jnp
from evosax.algorithms import CMA_ES, Open_ES

TOLERANCE = 1e-2


def main():
    out = {}
    for name, kind in (("cma", CMA_ES), ("open", Open_ES)):
        s = kind(population_size=20, solution=jnp.zeros(5))
        p = s.default_params
        key = jax.random.key(0)
        state = s.init(key, jnp.ones(5), p)
        ask, tell = jax.jit(s.ask), jax.jit(s.tell)
        best = []
        for _ in range(15):
            key, a, b = jax.random.split(key, 3)
            population, state = ask(a, state, p)
            fit = (population ** 2).sum(-1)
            state, _ = tell(b, population, fit, state, p)
            best.append(fit.min())
        out[name] = jnp.stack(best)
    return out
