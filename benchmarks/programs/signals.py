"""Sound, images, time series, codes."""
import jax
import jax.numpy as jnp

from . import program


@program("f32[16,16000]")
def spectrogram(x):
    at = jnp.arange(0, 16000 - 512 + 1, 128)[:, None] + jnp.arange(512)
    frames = x[:, at] * jnp.hanning(512)
    return jnp.log(jnp.abs(jnp.fft.rfft(frames)) ** 2 + 1e-6)


@program("f32[8,32000]", "f32[64]")
def fir_filter(x, taps):
    return jax.lax.conv_general_dilated(x[:, None], taps[None, None], (1,), "SAME", dimension_numbers=("NCH", "OIH", "NCH"))[:, 0]


@program("f32[64,2000]")
def biquad_cascade(x):
    def one(x, b, a):
        def step(state, x):
            y = b[0] * x + state[0]
            return (b[1] * x - a[0] * y + state[1], b[2] * x - a[1] * y), y

        return jax.lax.scan(step, (jnp.zeros(64), jnp.zeros(64)), x)[1]

    return one(one(x.T, (0.2, 0.4, 0.2), (-0.4, 0.2)), (0.3, 0.0, -0.3), (-0.9, 0.4)).T


@program("f32[480,640,3]>0")
def image_gradients(image):
    grey = image @ jnp.array([0.299, 0.587, 0.114])
    gx = grey[1:-1, 2:] - grey[1:-1, :-2]
    gy = grey[2:, 1:-1] - grey[:-2, 1:-1]
    size = jnp.sqrt(gx * gx + gy * gy)
    angle = jnp.arctan2(gy, gx)
    return size, jnp.where(size > 0.5, angle, 0.0)


@program("f32[4,256,256,3]>0")
def resize_and_normalise(x):
    y = jax.image.resize(x, (4, 224, 224, 3), "linear")
    return (y - jnp.array([0.485, 0.456, 0.406])) / jnp.array([0.229, 0.224, 0.225])


@program("f32[512,512]", "f32[512,512,2]")
def bilinear_warp(image, flow):
    y, x = jnp.meshgrid(jnp.arange(512.0), jnp.arange(512.0), indexing="ij")
    return jax.scipy.ndimage.map_coordinates(image, [y + flow[..., 0], x + flow[..., 1]], order=1, mode="nearest")


@program("f32[300,300]")
def median_filter(x):
    p = jnp.pad(x, 1, mode="edge")
    return jnp.sort(jnp.stack([p[i:i + 300, j:j + 300] for i in range(3) for j in range(3)]), 0)[4]


@program("f32[256,256]")
def discrete_cosine(x):
    n = jnp.arange(256.0)
    basis = jnp.cos(jnp.pi / 256 * (n[:, None] + 0.5) * n)
    blocks = x.reshape(32, 8, 32, 8).transpose(0, 2, 1, 3)
    small = jnp.cos(jnp.pi / 8 * (jnp.arange(8.0)[:, None] + 0.5) * jnp.arange(8.0))
    return x @ basis, jnp.round(small.T @ blocks @ small / 16)


@program("f32[128,128]", "f32[128,128]")
def dynamic_time_warping(a, b):
    cost = jnp.abs(a[:, :, None] - b[:, None, :])

    def row(before, c):
        def cell(left, x):
            c, up, diagonal = x
            best = c + jnp.minimum(jnp.minimum(left, up), diagonal)
            return best, best

        shifted = jnp.concatenate([jnp.full((1, 128), 1e9), before[:-1]])
        return (new := jax.lax.scan(cell, jnp.full(128, 1e9), (c.T, before, shifted))[1]), new[-1]

    start = jnp.full((128, 128), 1e9).at[0].set(0.0)
    return jax.lax.scan(row, start, jnp.swapaxes(cost, 0, 1)[:16])[1]


@program("u32[200000]", "u32[200000]")
def hamming_and_gray(a, b):
    return jax.lax.population_count(a ^ b), (a ^ (a >> 1)) + (b << 3), jax.lax.clz(a | 1)


@program("s32[100000]<256", "s32[256]<100")
def run_lengths(x, table):
    y = table[x]
    change = jnp.concatenate([jnp.ones(1, bool), y[1:] != y[:-1]])
    group = jnp.cumsum(change) - 1
    return jax.ops.segment_sum(jnp.ones_like(y), group, 100000), jax.ops.segment_max(y, group, 100000)


@program("f32[2000,128]")
def rolling_statistics(x):
    total, square = jnp.cumsum(x, 0), jnp.cumsum(x * x, 0)
    mean = (total[20:] - total[:-20]) / 20
    return mean, jnp.sqrt(jnp.maximum((square[20:] - square[:-20]) / 20 - mean * mean, 0))
