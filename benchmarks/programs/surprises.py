"""Programs written after the engine was last worked on: climate, cells, cameras, radio, language, control, chemistry, games."""
import jax
import jax.numpy as jnp

from . import program

HELD = True


@program("f32[12,90,180]", "f32[12,90,180]")
def climate_anomalies(temperature, pressure):
    """Departures from each cell's mean, weighted by latitude, and their correlation."""
    w = jnp.cos(jnp.linspace(-1.5, 1.5, 90))[None, :, None]
    t, p = temperature - temperature.mean(0), pressure - pressure.mean(0)
    r = (t * p).mean(0) / (jnp.sqrt((t * t).mean(0) * (p * p).mean(0)) + 1e-6)
    return (t * w).sum((1, 2)) / (w.sum() * 180), r, jnp.percentile(r, 90.0)


@program("f32[200,200]>0", "f32[200,200]>0")
def gray_scott(u, v):
    def lap(x):
        p = jnp.pad(x, 1, mode="wrap")
        return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x

    for _ in range(3):
        r = u * v * v
        u, v = u + 0.16 * lap(u) - r + 0.035 * (1 - u), v + 0.08 * lap(v) + r - 0.1 * v
    return u, v


@program("f32[240,320]", "f32[4]")
def undistort_camera(image, k):
    i, j = jnp.meshgrid(jnp.linspace(-1, 1, 240), jnp.linspace(-1, 1, 320), indexing="ij")
    r = i * i + j * j
    f = 1 + 0.05 * k[0] * r + 0.02 * k[1] * r * r
    y, x = jnp.clip((i * f + 1) * 119.5, 0, 238.9), jnp.clip((j * f + 1) * 159.5, 0, 318.9)
    y0, x0 = jnp.floor(y).astype(jnp.int32), jnp.floor(x).astype(jnp.int32)
    a, b = y - y0, x - x0
    return (1 - a) * ((1 - b) * image[y0, x0] + b * image[y0, x0 + 1]) + a * ((1 - b) * image[y0 + 1, x0] + b * image[y0 + 1, x0 + 1])


@program("c64[128,512]", "f32[128]")
def ofdm_demapper(x, noise):
    """Soft bits of 16 points a carrier."""
    n = jnp.abs(noise)[:, None] + 0.1
    re, im = x.real * 3.16, x.imag * 3.16
    bits = jnp.stack([-re, jnp.abs(re) - 2, -im, jnp.abs(im) - 2], -1)
    return jnp.clip(bits / n[..., None], -20, 20), jnp.angle(x * jnp.conj(jnp.roll(x, 1, 1)))


@program("f32[64,96,512]", "s32[64]<96")
def pooled_sentence_similarity(h, length):
    mask = (jnp.arange(96)[None] < length[:, None] + 1).astype(jnp.float32)
    mean = (h * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    top = jnp.where(mask[..., None] > 0, h, -jnp.inf).max(1)
    e = jnp.concatenate([mean, top], -1)
    e = e / jnp.linalg.norm(e, axis=-1, keepdims=True)
    return jax.nn.log_softmax(20 * e @ e.T, -1)


@program("f32[4096,12]", "f32[12]", "f32[4096,4]")
def cross_entropy_planner(noise, mean, state):
    """Returns of sampled plans for a cart and pole, and the mean of the best."""
    plan = mean + 0.5 * noise
    x, v, a, w = state.T * 0.1

    reward = jnp.zeros(4096)
    for t in range(12):
        force = jnp.clip(plan[:, t], -1, 1)
        s, c = jnp.sin(a), jnp.cos(a)
        acc = (9.8 * s - c * (force + 0.05 * w * w * s)) / (0.6667 - 0.05 * c * c)
        x, v, a, w = x + 0.02 * v, v + 0.02 * force, a + 0.02 * w, w + 0.02 * acc
        reward = reward - (x * x + 4 * a * a + 0.01 * force * force)
    weight = jax.nn.softmax(5 * reward)
    return reward, weight @ plan


@program("f32[500,3]", "s32[500]<4", "f32[4,4]>0", "f32[4,4]>0")
def buckingham_forces(x, kind, a, c):
    d = x[:, None] * 3 - x[None] * 3
    r2 = (d * d).sum(-1) + jnp.eye(500) * 100 + 0.3
    r = jnp.sqrt(r2)
    aij, cij = a[kind[:, None], kind[None]], c[kind[:, None], kind[None]]
    e = 50 * aij * jnp.exp(-2 * r) - cij / r2 ** 3
    f = (100 * aij * jnp.exp(-2 * r) / r - 6 * cij / r2 ** 4)[..., None] * d
    return 0.5 * e.sum(), f.sum(1)


@program("bf16[32,128,256]", "bf16[32,128,256]", "bf16[256]")
def bf16_residual_rms_norm(x, y, scale):
    z = (x + y).astype(jnp.float32)
    n = z * jax.lax.rsqrt((z * z).mean(-1, keepdims=True) + 1e-6)
    return n.astype(jnp.bfloat16) * scale, (x + y) * jax.nn.sigmoid(y)


@program("u32[2]", "f32[1024,64]")
def noisy_mixup(key, x):
    k = jax.random.split(jax.random.wrap_key_data(key), 3)
    lam = jax.random.uniform(k[0], (1024, 1))
    mixed = lam * x + (1 - lam) * x[::-1]
    noisy = mixed + 0.1 * jax.random.normal(k[1], x.shape)
    return jnp.where(jax.random.bernoulli(k[2], 0.8, x.shape), noisy, 0)


@program("s32[8,8192]<256", "f32[256]")
def run_length_and_entropy(x, prior):
    starts = jnp.concatenate([jnp.ones((8, 1), bool), x[:, 1:] != x[:, :-1]], 1)
    runs = jnp.cumsum(starts, 1)
    counts = jax.vmap(lambda r: jnp.zeros(256).at[r].add(1.0))(x)
    p = (counts + jax.nn.softplus(prior)) / (counts + jax.nn.softplus(prior)).sum(1, keepdims=True)
    return runs[:, -1], -(p * jnp.log2(p)).sum(1), jnp.take_along_axis(-jnp.log2(p), x, 1).sum(1)


@program("f32[32,2000]", "f32[32]>0")
def leaky_integrators(current, tau):
    """Neurons' potentials: a linear recurrence in time by an associative scan, then spikes."""
    decay = jnp.exp(-0.05 / tau)[:, None]

    def join(a, b):
        return a[0] * b[0], a[1] * b[0] + b[1]

    _, v = jax.lax.associative_scan(join, (jnp.broadcast_to(decay, current.shape), 0.1 * current), axis=1)
    spikes = (v[:, 1:] > 0.3) & (v[:, :-1] <= 0.3)
    return v, spikes.sum(1), jnp.where(spikes, jnp.arange(1, 2000), 2000).min(1)


@program("f64[400,400]>0", "f64[400]>0")
def option_surface_f64(strike, years):
    s, t = 0.2 + 0.3 * jnp.abs(strike - 0.6), years[:, None] + 0.05
    d1 = (jnp.log(1 / strike) + (0.02 + 0.5 * s * s) * t) / (s * jnp.sqrt(t))
    d2 = d1 - s * jnp.sqrt(t)
    n = lambda x: 0.5 * (1 + jax.lax.erf(x / jnp.sqrt(2.0)))  # noqa: E731
    return n(d1) - strike * jnp.exp(-0.02 * t) * n(d2), jnp.exp(-0.5 * d1 * d1) / (s * jnp.sqrt(6.2832 * t))


@program("f32[3000,16]", "s32[3000]<40")
def class_centres_and_margins(x, label):
    total = jax.ops.segment_sum(x, label, 40)
    n = jax.ops.segment_sum(jnp.ones(3000), label, 40)
    centre = total / jnp.maximum(n, 1)[:, None]
    d = ((x[:, None] - centre[None]) ** 2).sum(-1)
    own = jnp.take_along_axis(d, label[:, None], 1)[:, 0]
    other = jnp.where(jnp.arange(40)[None] == label[:, None], jnp.inf, d).min(1)
    return centre, jnp.maximum(0, 1 + own - other).mean()


@program("f32[128,19,19]", "f32[128,362]")
def board_features(board, logits):
    """Planes of a board game, all eight turns and mirrors of one, and a masked policy."""
    own, foe = board > 0.5, board < -0.5
    empty = ~(own | foe)
    p = jnp.pad(empty, ((0, 0), (1, 1), (1, 1)))
    free = p[:, :-2, 1:-1].astype(jnp.int8) + p[:, 2:, 1:-1] + p[:, 1:-1, :-2] + p[:, 1:-1, 2:]
    turns = [jnp.rot90(board, k, (1, 2)) for k in range(4)]
    planes = jnp.stack(turns + [t[:, :, ::-1] for t in turns], 1)
    legal = jnp.concatenate([empty.reshape(128, 361) & (free.reshape(128, 361) > 0), jnp.ones((128, 1), bool)], 1)
    return planes, jax.nn.softmax(jnp.where(legal, logits, -1e9), -1), free.sum((1, 2))


@program("f32[256,1024]", "f32[1024]", "f32[1024]")
def contrastive_divergence_statistics(x, bias, scale):
    h = jax.nn.sigmoid(x * jax.nn.softplus(scale) + bias)
    energy = -(x * bias).sum(1) - jax.nn.softplus(x * scale).sum(1)
    return h.mean(0), h.var(0), energy, jnp.log(jnp.exp(energy - energy.max()).mean()) + energy.max()
