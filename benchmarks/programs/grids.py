"""Grids and tables: convolutions of few channels, shifted and strided views, scattered sums, and arithmetic of tables and bits."""
import jax
import jax.numpy as jnp

from . import program

CONV = jax.lax.conv_general_dilated


@program("f32[4,1,48,48,48]", "f32[2,1,3,3,3]")
def volume_edges(volume, taps):
    y = CONV(volume, taps, (1, 1, 1), "SAME", dimension_numbers=("NCDHW", "OIDHW", "NCDHW"))
    return jnp.sqrt((y * y).sum(1) + 1e-6)


@program("f32[8,16000,2]", "f32[5,2,3]", "f32[3]")
def dilated_audio_layer(x, w, bias):
    y = CONV(x, w, (1,), "SAME", rhs_dilation=(4,), dimension_numbers=("NWC", "WIO", "NWC"))
    return jnp.tanh(y + bias)


@program("f32[2,3,256,256]", "f32[4,3,5,5]")
def strided_patches(image, w):
    y = CONV(image, w, (2, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
    return jax.nn.relu(y), y.mean((2, 3))


@program("f32[300,300]", "f32[300,300]", "f32[300,300]")
def anisotropic_diffusion(u, v, w):
    def flow(x):
        north, south, west, east = (jnp.roll(x, s, a) - x for s, a in ((1, 0), (-1, 0), (1, 1), (-1, 1)))
        return x + 0.2 * sum(d * jnp.exp(-(d * d) * 4.0) for d in (north, south, west, east))

    for _ in range(3):
        u, v, w = flow(u), flow(v), flow(w)
    return u, v, w


@program("f64[512,512]")
def gaussian_pyramid(x):
    k = jnp.array([1.0, 4.0, 6.0, 4.0, 1.0]) / 16.0
    out = []
    for _ in range(4):
        p = jnp.pad(x, 2, mode="reflect")
        rows = sum(k[i] * p[i:i + x.shape[0]:2] for i in range(5))
        x = sum(k[i] * rows[:, i:i + x.shape[1]:2] for i in range(5))
        out.append(x)
    return out


@program("f32[65536]", "f32[65536]", "f32[65536]>0")
def radial_distribution(x, y, weight):
    r = jnp.sqrt(x * x + y * y)
    shell = jnp.minimum((r * 64).astype(jnp.int32), 255)
    mass = jnp.zeros(256, jnp.float32).at[shell].add(weight)
    peak = jnp.zeros(256, jnp.float32).at[shell].max(weight)
    count = jnp.zeros(256, jnp.int32).at[shell].add(1)
    return mass / jnp.maximum(count, 1), peak


@program("f32[30000,3]", "s32[40000,3]<30000")
def mesh_normals(vertex, face):
    a, b, c = (vertex[face[:, k]] for k in range(3))
    n = jnp.cross(b - a, c - a)
    total = jnp.zeros_like(vertex)
    for k in range(3):
        total = total.at[face[:, k]].add(n)
    return total / (jnp.linalg.norm(total, axis=-1, keepdims=True) + 1e-6)


@program("f32[20000,3]>0", "f32[20000]")
def cloud_in_cell_3d(x, mass):
    cell = x * 24.0
    low = jnp.floor(cell).astype(jnp.int32)
    part = cell - low
    grid = jnp.zeros((32, 32, 32), jnp.float32)
    for corner in range(8):
        bits = jnp.array([corner >> 2 & 1, corner >> 1 & 1, corner & 1])
        w = jnp.where(bits == 1, part, 1 - part).prod(-1)
        at = low + bits
        grid = grid.at[at[:, 0], at[:, 1], at[:, 2]].add(w * mass, mode="drop")
    return grid


@program("f64[60000]", "s32[60000]<2000", "s32[60000]<2000", "f64[2000]", "f64[2000]")
def triplet_matrix_both_ways(value, row, column, x, y):
    ax = jnp.zeros(2000).at[row].add(value * x[column])
    aty = jnp.zeros(2000).at[column].add(value * y[row])
    return ax + aty, jnp.zeros(2000).at[row].min(value)


@program("u32[100000]", "u32[100000]")
def hash_and_sketch(key, seed):
    h = key ^ seed
    h = (h ^ (h >> 16)) * jnp.uint32(0x85EBCA6B)
    h = (h ^ (h >> 13)) * jnp.uint32(0xC2B2AE35)
    h = h ^ (h >> 16)
    bucket = (h & 1023).astype(jnp.int32)
    rank = jax.lax.clz(h >> 10).astype(jnp.int32) - 9
    return jnp.zeros(1024, jnp.int32).at[bucket].max(rank), h


@program("f32[256,1024]")
def fast_walsh_hadamard(x):
    n = x.shape[-1]
    h = 1
    while h < n:
        y = x.reshape(-1, n // (2 * h), 2, h)
        x = jnp.stack([y[:, :, 0] + y[:, :, 1], y[:, :, 0] - y[:, :, 1]], 2).reshape(-1, n)
        h *= 2
    return x


@program("f32[4,256,256]>0")
def demosaic_and_tone(raw):
    r, g1, g2, b = raw[:, ::2, ::2], raw[:, ::2, 1::2], raw[:, 1::2, ::2], raw[:, 1::2, 1::2]
    g = 0.5 * (g1 + g2)
    luma = 0.3 * r + 0.6 * g + 0.1 * b
    gain = luma ** 0.45 / (luma + 0.01)
    return jnp.stack([r * gain, g * gain, b * gain], -1)


@program("f64[80000]>0", "f64[80000]>0", "f64[80000]>0")
def orbit_elements(a, e, m):
    e = 0.5 * e
    anomaly = m
    for _ in range(4):
        anomaly = anomaly - (anomaly - e * jnp.sin(anomaly) - m) / (1 - e * jnp.cos(anomaly))
    true = 2 * jnp.arctan2(jnp.sqrt(1 + e) * jnp.sin(anomaly / 2), jnp.sqrt(1 - e) * jnp.cos(anomaly / 2))
    return a * (1 - e * e) / (1 + e * jnp.cos(true)), true


@program("f32[128,512]", "f32[512]")
def cross_spectrum(x, window):
    f = jnp.fft.rfft(x * window)
    power = (f * jnp.conj(jnp.roll(f, 1, 0))).real
    return jnp.fft.irfft(f * jnp.exp(-1j * jnp.angle(f)) * jnp.log1p(jnp.abs(power))), power


@program("f32[64,64,64]", "f32[64,64,64]")
def advect_upwind_3d(q, speed):
    total = q
    for axis in range(3):
        ahead, behind = jnp.roll(q, -1, axis) - q, q - jnp.roll(q, 1, axis)
        total = total - 0.1 * (jnp.maximum(speed, 0) * behind + jnp.minimum(speed, 0) * ahead)
    return total


@program("f32[32,64,64,8]", "f32[3,3,1,8]", "f32[32,64,64,8]")
def depthwise_gradients(x, w, cotangent):
    def layer(x, w):
        return CONV(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=8)

    return jax.vjp(layer, x, w)[1](cotangent)
