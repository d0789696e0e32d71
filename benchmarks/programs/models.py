"""Programs of machine learning and statistics: layers, losses, optimisers, sampling, graphs, games."""
import jax
import jax.numpy as jnp

from . import program


@program("f32[128,1000]", "s32[128]<1000")
def focal_loss_and_gradient(logits, label):
    def loss(x):
        p = jax.nn.log_softmax(x)[jnp.arange(128), label]
        return (-(1 - jnp.exp(p)) ** 2 * p).mean()

    return jax.value_and_grad(loss)(logits)


@program("f32[512,256]", "f32[512,256]", "f32[512,256]", "f32[512,256]")
def lamb_update(w, g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v * v + 0.001 * g * g
    u = m / 0.1 / (jnp.sqrt(v / 0.001) + 1e-6) + 0.01 * w
    trust = jnp.linalg.norm(w) / (jnp.linalg.norm(u) + 1e-6)
    return w - 1e-3 * trust * u, m, v


@program("f32[768,768]", "f32[768,768]", "f32[768]", "f32[768]")
def adafactor_update(w, g, row, column):
    g2 = g * g + 1e-30
    row, column = 0.99 * row * row + 0.01 * g2.mean(1), 0.99 * column * column + 0.01 * g2.mean(0)
    u = g * jax.lax.rsqrt(row / row.mean())[:, None] * jax.lax.rsqrt(column)[None]
    u = u / jnp.maximum(1, jnp.sqrt((u * u).mean()))
    return w - 1e-3 * u, row, column


@program("bf16[64,512,128]", "bf16[128]", "bf16[128]")
def bf16_layer_norm_gelu(x, scale, shift):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return jax.nn.gelu((x - m) * jax.lax.rsqrt(v + 1e-5) * scale + shift)


@program("bf16[400000]", "bf16[400000]", "bf16[400000]")
def bf16_gated_mix(x, gate, skip):
    return jax.nn.silu(gate) * x + skip * jnp.bfloat16(0.7071) - jnp.tanh(x * skip)


@program("f16[512,1024]", "f16[1024]")
def half_softmax_with_bias(x, bias):
    return jax.nn.softmax(x * 0.125 + bias, axis=-1)


@program("f32[32,56,56,64]", "f32[64]", "f32[64]")
def batch_norm_and_gradient(x, scale, shift):
    def loss(x, scale, shift):
        m, v = x.mean((0, 1, 2)), x.var((0, 1, 2))
        y = jax.nn.relu((x - m) * jax.lax.rsqrt(v + 1e-5) * scale + shift)
        return (y * y).sum()

    return jax.grad(loss, (0, 1, 2))(x, scale, shift)


@program("f32[16,12,128,128]", "f32[12]")
def attention_probabilities(score, slope):
    i = jnp.arange(128)
    s = score / 8 - jax.nn.softplus(slope)[:, None, None] * jnp.abs(i[:, None] - i[None])
    s = jnp.where(i[:, None] >= i[None], s, -1e30)
    return jax.nn.softmax(s, -1)


@program("f32[64,256,64]", "f32[64]", "f32[64]")
def rms_norm_both_ways(x, scale, g):
    def f(x, scale):
        y = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale
        return (y * g).sum()

    return jax.grad(f, (0, 1))(x, scale)


@program("u32[2]", "f32[256,2048]")
def dropout_and_residual(key, x):
    keep = jax.random.bernoulli(jax.random.wrap_key_data(key), 0.9, x.shape)
    return x + jnp.where(keep, jax.nn.relu(x) / 0.9, 0)


@program("u32[2]", "f32[500,400]")
def gumbel_samples(key, logits):
    g = jax.random.gumbel(jax.random.wrap_key_data(key), logits.shape)
    return jnp.argmax(logits + g, -1), jax.nn.softmax((logits + g) / 0.5)


@program("u32[2]")
def truncated_initialisers(key):
    a, b, c = jax.random.split(jax.random.wrap_key_data(key), 3)
    return jax.random.truncated_normal(a, -2, 2, (300, 200)) * 0.1, jax.random.laplace(b, (50000,)), jax.random.exponential(c, (50000,))


@program("s32[20000]<5000", "f32[5000,64]", "f32[20000,64]")
def embedding_gradient(token, table, g):
    count = jnp.zeros(5000).at[token].add(1.0)
    total = jnp.zeros_like(table).at[token].add(g)
    return table - 0.01 * total / jnp.maximum(count, 1)[:, None]


@program("f32[8000,32]", "s32[40000]<8000", "s32[40000]<8000")
def graph_mean_and_max(h, source, target):
    taken = h[source]
    total = jax.ops.segment_sum(taken, target, 8000)
    top = jax.ops.segment_max(taken, target, 8000)
    return jax.nn.relu(total * 0.1 + jnp.where(jnp.isfinite(top), top, 0))


@program("f32[10000]", "s32[60000]<10000", "s32[60000]<10000")
def page_rank_steps(p, source, target):
    degree = jnp.zeros(10000).at[source].add(1.0)
    p = jnp.abs(p) / jnp.abs(p).sum()
    for _ in range(3):
        p = 0.15 / 10000 + 0.85 * jnp.zeros(10000).at[target].add((p / jnp.maximum(degree, 1))[source])
    return p


@program("f32[256,128]", "f32[256,128]", "f32[256,128]", "f32[256]")
def gae_and_ppo_loss(reward, value, logp, ratio):
    def step(carry, rv):
        r, v, after = rv
        carry = r + 0.99 * after - v + 0.99 * 0.95 * carry
        return carry, carry

    after = jnp.concatenate([value[1:], value[-1:]])
    adv = jax.lax.scan(step, jnp.zeros(128), (reward, value, after), reverse=True)[1]
    adv = (adv - adv.mean()) / (adv.std() + 1e-6)
    r = jnp.exp(0.1 * logp + 0.01 * ratio[:, None])
    return -jnp.minimum(r * adv, jnp.clip(r, 0.8, 1.2) * adv).mean(), ((adv + value) ** 2).mean()


@program("f32[1024,51]", "f32[1024]", "f32[1024]>0")
def categorical_projection(p, reward, discount):
    """A distributional critic's target, on 51 atoms."""
    z = jnp.linspace(-10, 10, 51)
    p = jax.nn.softmax(p)
    t = jnp.clip(reward[:, None] + 0.9 * discount[:, None] * z, -10, 10)
    weight = jnp.clip(1 - jnp.abs(t[:, None] - z[None, :, None]) / 0.4, 0, 1)
    return (weight * p[:, None]).sum(-1)


@program("f32[2000,30]", "f32[30]", "f32[2000]")
def huber_regression_gradient(x, w, y):
    def loss(w):
        r = jnp.abs(x @ w - y)
        return jnp.where(r < 1, 0.5 * r * r, r - 0.5).mean() + 0.01 * jnp.abs(w).sum()

    return jax.value_and_grad(loss)(w)


@program("f32[4000]", "f32[4000]")
def rank_and_concordance(a, b):
    a, b = a[:800], b[:800]
    order = (a[:, None] < a[None]).sum(1)
    agree = (jnp.sign(a[:, None] - a[None]) * jnp.sign(b[:, None] - b[None])).sum()
    return order, agree / (800 * 799)


@program("f32[5000,20]")
def robust_columns(x):
    m, v = x.mean(0), x.var(0)
    z = (x - m) / jnp.sqrt(v + 1e-6)
    w = jnp.where(jnp.abs(z) < 2.5, 1.0, 2.5 / jnp.abs(z))
    centre = (w * x).sum(0) / w.sum(0)
    skew, tail = (z ** 3).mean(0), (z ** 4).mean(0) - 3
    return centre, skew, tail, x.max(0) - x.min(0)


@program("f32[300,7,40]")
def short_series_statistics(x):
    m = x.mean(-1, keepdims=True)
    d = x - m
    lag = (d[..., 1:] * d[..., :-1]).sum(-1) / ((d * d).sum(-1) + 1e-6)
    return m[..., 0], lag, x.max(-1), jnp.sqrt((d * d).mean(-1))


@program("f32[400,300]", "f32[400,300]")
def wasserstein_of_histograms(a, b):
    a, b = jax.nn.softmax(a), jax.nn.softmax(b)
    return jnp.abs(jnp.cumsum(a, 1) - jnp.cumsum(b, 1)).sum(1), (a * jnp.log(a / b)).sum(1)


@program("f64[300,300]", "f64[3]>0")
def matern_kernel_f64(x, p):
    i = jnp.arange(300)
    d = jnp.sqrt(((i[:, None] - i[None]) * 0.05) ** 2 + 1e-9) / p[0]
    k = p[1] * (1 + jnp.sqrt(5.) * d + 5 / 3 * d * d) * jnp.exp(-jnp.sqrt(5.) * d)
    return k + p[2] * jnp.eye(300), (k * x).sum(1)


@program("f64[50000]>0", "f64[50000]>0")
def gamma_densities_f64(x, a):
    return (a - 1) * jnp.log(x) - x - jax.lax.lgamma(a), jnp.log1p(-jnp.exp(-x)), jnp.tanh(a) * jnp.expm1(-x)


@program("s64[100000]<1000000000", "s64[100000]<1000")
def calendar_and_hash_s64(seconds, salt):
    day, rest = seconds // 86400, seconds % 86400
    h = (seconds ^ (seconds >> 31)) * 0x7FB5D329728EA185
    return day % 7, rest // 3600, (h ^ (h >> 27)) % (salt + 1)


@program("u8[512,512]<256", "u8[512,512]<256")
def byte_image_difference(a, b):
    d = jnp.where(a > b, a - b, b - a)
    mean = ((a.astype(jnp.uint16) + b.astype(jnp.uint16)) >> 1).astype(jnp.uint8)
    return d.max(1), (d > 16).sum(0), mean // 3


@program("c64[64,2048]", "c64[64,2048]")
def complex_equaliser(x, h):
    y = x * jnp.conj(h) / (jnp.abs(h) ** 2 + 0.1)
    return y, jnp.angle(y), jnp.abs(y - jnp.sign(y.real) - 1j * jnp.sign(y.imag)).mean()


@program("f32[2048,64]", "s32[2048]<64")
def gather_and_margin(x, which):
    own = jnp.take_along_axis(x, which[:, None], 1)
    margin = jnp.maximum(0, 1 + x - own)
    return margin.at[jnp.arange(2048), which].set(0).sum(1), jnp.argsort(-own[:, 0])[:32]


@program("f32[96,96,96]")
def volume_projections(v):
    w = jax.nn.sigmoid(v)
    return w.max(0), w.sum(1), w.mean(2), jnp.transpose(w, (2, 0, 1)) * 0.5
