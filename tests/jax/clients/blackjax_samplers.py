"""Samplers of blackjax: NUTS with window adaptation, HMC, random walks, tempered SMC, and SGLD."""
import blackjax
import blackjax.smc.resampling as resampling
import jax
import jax.numpy as jnp

TOLERANCE = 0.1


def logdensity(x):
    return -0.5 * jnp.sum((x - jnp.array([1.0, -1.0])) ** 2 / jnp.array([1.0, 0.25]))


def chain(kernel, state, n, key):
    def one(state, key):
        state, _ = kernel(key, state)
        return state, state.position
    return jax.jit(lambda s, k: jax.lax.scan(one, s, jax.random.split(k, n))[1])(state, key)


def main():
    key, start = jax.random.key(0), jnp.zeros(2)
    (state, tuned), _ = blackjax.window_adaptation(blackjax.nuts, logdensity).run(key, start, 200)
    nuts = blackjax.nuts(logdensity, **tuned)
    hmc = blackjax.hmc(logdensity, 0.3, jnp.ones(2), 8)
    walk = blackjax.rmh(logdensity, blackjax.mcmc.random_walk.normal(jnp.array([0.8, 0.8])))
    out = {"nuts": chain(nuts.step, state, 1500, key).mean(0), "hmc": chain(hmc.step, hmc.init(start), 2000, key).mean(0),
           "walk's first steps": chain(walk.step, walk.init(start), 50, key)}
    smc = blackjax.adaptive_tempered_smc(lambda x: -0.5 * jnp.sum(x ** 2) / 9, logdensity, blackjax.hmc.build_kernel(), blackjax.hmc.init,
                                         blackjax.smc.extend_params({"step_size": 0.3, "inverse_mass_matrix": jnp.ones(2), "num_integration_steps": 5}),
                                         resampling.systematic, 0.5, num_mcmc_steps=2)
    state, step = smc.init(3 * jax.random.normal(key, (300, 2))), jax.jit(smc.step)
    for i in range(20):
        if float(state.tempering_param) >= 1:
            break
        state, _ = step(jax.random.fold_in(key, i), state)
    out["smc"] = state.particles.mean(0)
    return out
