"""Sampling, inference, clustering, regression."""
import jax
import jax.numpy as jnp

from . import program


@program("f32[2000,8]", "f32[40,8]")
def gaussian_mixture_em(x, mean):
    def step(state, _):
        mean, log_w = state
        d = ((x[:, None] - mean[None]) ** 2).sum(-1)
        r = jax.nn.softmax(log_w - 0.5 * d)
        n = r.sum(0) + 1e-6
        return ((r.T @ x) / n[:, None], jnp.log(n / n.sum())), None

    return jax.lax.scan(step, (mean, jnp.zeros(40)), None, length=4)[0]


@program("f32[8000,16]", "f32[64,16]")
def k_means(x, centres):
    def step(_, c):
        d = (x * x).sum(-1)[:, None] - 2 * x @ c.T + (c * c).sum(-1)
        near = jnp.argmin(d, 1)
        total = jax.ops.segment_sum(x, near, 64)
        return total / (jax.ops.segment_sum(jnp.ones(8000), near, 64)[:, None] + 1e-6)

    return jax.lax.fori_loop(0, 5, step, centres)


@program("f32[600,4]", "f32[600]")
def gaussian_process_likelihood(x, y):
    def nll(log_scale):
        d = (x[:, None] - x[None]) / jnp.exp(log_scale)
        k = jnp.exp(-0.5 * (d * d).sum(-1)) + 0.1 * jnp.eye(600)
        c = jnp.linalg.cholesky(k)
        z = jax.scipy.linalg.solve_triangular(c, y, lower=True)
        return 0.5 * z @ z + jnp.log(jnp.diagonal(c)).sum()

    return nll(jnp.zeros(4))


@program("f32[1500,3]", "f32[1500,3]")
def maximum_mean_discrepancy(x, y):
    def kernel(a, b):
        d = ((a[:, None] - b[None]) ** 2).sum(-1)
        return sum(jnp.exp(-d / (2 * s)) for s in (0.1, 1.0, 10.0)).mean()

    return kernel(x, x) + kernel(y, y) - 2 * kernel(x, y)


@program("f32[256,10]", "f32[10]")
def hamiltonian_monte_carlo(x, scale):
    def potential(x):
        return 0.5 * ((x * jnp.exp(scale)) ** 2).sum(-1) + 0.1 * (x ** 4).sum(-1)

    force = jax.grad(lambda x: potential(x).sum())

    def transition(x, key):
        p = jax.random.normal(key, x.shape)
        q, r = x, p - 0.05 * force(x)
        for _ in range(4):
            q = q + 0.1 * r
            r = r - 0.1 * force(q)
        change = potential(q) - potential(x) + 0.5 * ((r * r).sum(-1) - (p * p).sum(-1))
        take = jnp.log(jax.random.uniform(jax.random.fold_in(key, 1), (256,))) < -change
        return jnp.where(take[:, None], q, x), take.mean()

    return jax.lax.scan(transition, x, jax.random.split(jax.random.key(1), 10))


@program("f32[5000,20]", "f32[5000]")
def logistic_newton(x, y):
    target = (y > 0).astype(jnp.float32)

    def step(_, w):
        p = jax.nn.sigmoid(x @ w)
        g = x.T @ (p - target) / 5000 + 1e-3 * w
        h = (x * (p * (1 - p))[:, None]).T @ x / 5000 + 1e-3 * jnp.eye(20)
        return w - jnp.linalg.solve(h, g)

    return jax.lax.fori_loop(0, 3, step, jnp.zeros(20))


@program("f32[100,200]", "f32[4,4]", "f32[100,4]")
def hidden_markov_forward(observations, transition, emission_mean):
    log_t = jax.nn.log_softmax(transition)

    def step(alpha, x):
        log_e = -0.5 * (x[:, None] - emission_mean) ** 2
        return jax.nn.logsumexp(alpha[:, :, None] + log_t[None], 1) + log_e, None

    return jax.lax.scan(step, jnp.zeros((100, 4)), observations.T)[0]


@program("f32[64,500,4]", "f32[4,4]")
def kalman_filter(z, f):
    f = jnp.eye(4) + 0.05 * f
    q, r = 0.01 * jnp.eye(4), 0.1 * jnp.eye(4)

    def step(carry, z):
        x, p = carry
        x, p = x @ f.T, f @ p @ f.T + q
        gain = jnp.linalg.solve(p + r, p).T
        x = x + (z - x) @ gain.T
        return (x, (jnp.eye(4) - gain) @ p), x

    return jax.lax.scan(step, (jnp.zeros((64, 4)), jnp.eye(4)), jnp.swapaxes(z, 0, 1)[:100])[1]


@program("f32[10000]>0", "f32[10000]>0")
def gamma_log_likelihood_gradient(x, shape):
    def loss(a):
        return (a * jnp.log(2.0) + (a - 1) * jnp.log(x) - 2.0 * x - jax.lax.lgamma(a)).sum()

    return jax.grad(loss)(shape + 0.5)


@program("f32[200000]")
def bootstrap_quantiles(x):
    which = jax.random.randint(jax.random.key(5), (20, 10000), 0, 200000)
    return jnp.quantile(x[which], jnp.array([0.05, 0.5, 0.95]), axis=1)


@program("f32[300000]", "f32[300000]")
def weighted_histogram(x, w):
    edges = jnp.linspace(-3, 3, 101)
    return jnp.histogram(x, edges, weights=w)[0]


@program("f32[1000,50]")
def principal_components(x):
    x = x - x.mean(0)
    values, vectors = jnp.linalg.eigh(x.T @ x / 999)
    return x @ vectors[:, -5:], values[::-1]


@program("f32[2000,6]", "f32[6]", "f32[2000]")
def student_t_regression(x, w, y):
    def loss(w):
        r = y - x @ w
        return (2.5 * jnp.log1p(r * r / 4)).sum() + 0.5 * w @ w

    return jax.hessian(loss)(w), jax.grad(loss)(w)
