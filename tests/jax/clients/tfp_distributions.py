"""tensorflow_probability on JAX: distributions, bijectors, HMC."""
import jax
import jax.numpy as jnp
import tensorflow_probability.substrates.jax as tfp

TOLERANCE = 5e-3
tfd, tfb = tfp.distributions, tfp.bijectors


def main():
    k = jax.random.key(0)
    mix = tfd.MixtureSameFamily(tfd.Categorical(logits=jnp.zeros(3)), tfd.Normal(jnp.arange(3.0), 0.5))
    x = mix.sample(50, seed=k)
    kernel = tfp.mcmc.HamiltonianMonteCarlo(lambda z: mix.log_prob(z), step_size=0.3, num_leapfrog_steps=3)
    chain = jax.jit(lambda k: tfp.mcmc.sample_chain(30, current_state=jnp.float32(1), kernel=kernel, trace_fn=None, seed=k))(k)
    lkj = tfd.LKJ(3, 2.0).sample(4, seed=k)
    gp = tfd.GaussianProcess(tfp.math.psd_kernels.ExponentiatedQuadratic(), jnp.linspace(0, 1, 8)[:, None], observation_noise_variance=0.1)
    spline = tfb.RationalQuadraticSpline(jnp.ones(4) / 2, jnp.ones(4) / 2, jnp.ones(3))
    return {"x": x, "p": mix.log_prob(x), "chain": chain[:10], "lkj": lkj, "gp": gp.log_prob(jnp.ones(8)), "spline": spline.forward(x / 5),
            "wishart": tfd.WishartTriL(5, jnp.eye(3)).sample(seed=k), "sphere": tfd.VonMisesFisher(jnp.array([0.0, 0, 1]), 3.0).sample(5, seed=k),
            "bessel": tfp.math.bessel_kve(1.5, jnp.arange(1.0, 5)), "beta": tfp.math.betainc(2.0, 3.0, x / 10 % 1)}
