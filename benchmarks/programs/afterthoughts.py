"""Programs of kinds that the other files leave out: detection, retrieval, queues, colour, codes, filters, tables, tracks."""

import jax
import jax.numpy as jnp

from . import program


@program("u8[4,224,224,3]<256", "f32[3]", "f32[3]>0")
def images_for_a_network(image, mean, deviation):
    x = (image.astype(jnp.float32) / 255 - mean) / deviation
    return jnp.transpose(x, (0, 3, 1, 2))[:, ::-1]


@program("f32[300,4]>0", "f32[300,4]>0", "f32[300]")
def detection_losses(box, want, score):
    low, high = jnp.maximum(box[:, None, :2], want[None, :, :2]), jnp.minimum(box[:, None, 2:], want[None, :, 2:])
    inside = jnp.prod(jnp.clip(high - low, 0), -1)
    area, other = jnp.prod(box[:, 2:] - box[:, :2], -1), jnp.prod(want[:, 2:] - want[:, :2], -1)
    overlap = inside / (area[:, None] + other[None] - inside + 1e-6)
    return overlap.max(1), overlap.argmax(1), jnp.sum(jax.nn.log_sigmoid(score) * overlap.max(1))


@program("f32[20000,8]", "s32[20000]<512")
def spread_of_segments(x, segment):
    high, low = (f(x, segment, num_segments=512) for f in (jax.ops.segment_max, jax.ops.segment_min))
    count = jax.ops.segment_sum(jnp.ones(20000), segment, num_segments=512)
    return (high - low) / jnp.maximum(count, 1)[:, None]


@program("s32[16,256]<5000", "s32[16,256]<4", "f32[5000,192]", "f32[4,192]", "f32[256,192]", "f32[192]")
def embeddings_of_bert(token, kind, table, kinds, position, scale):
    x = table[token] + kinds[kind] + position
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5) * scale


@program("f16[8,16,128,128]", "f16[128]")
def half_attention_weights(score, slope):
    i = jnp.arange(128)
    s = jnp.where(i[:, None] >= i, score + slope * (i[:, None] - i).astype(jnp.float16), jnp.float16(-1e4))
    return jax.nn.softmax(s, -1)


@program("f32[65536,3]")
def srgb_to_oklab(x):
    linear = jnp.where(x <= 0.04045, x / 12.92, ((jnp.abs(x) + 0.055) / 1.055) ** 2.4)
    a = jnp.array([[0.412, 0.536, 0.051], [0.212, 0.681, 0.107], [0.088, 0.282, 0.630]])
    b = jnp.array([[0.210, 0.794, -0.004], [1.978, -2.429, 0.451], [0.026, 0.783, -0.809]])
    return jnp.cbrt(linear @ a.T) @ b.T


@program("f32[64,2048]", "f32[64,2048]")
def peaks_and_prominence(x, noise):
    y = x + 0.1 * noise
    top = (y[:, 1:-1] > y[:, :-2]) & (y[:, 1:-1] >= y[:, 2:])
    low = jnp.minimum(jax.lax.cummin(y, 1)[:, 1:-1], jax.lax.cummin(y, 1, reverse=True)[:, 1:-1])
    height = jnp.where(top, y[:, 1:-1] - low, 0)
    return height.max(1), top.sum(1), jnp.sum(height, 1) / jnp.maximum(top.sum(1), 1)


@program("f32[512,6]", "f32[512,6,6]", "f32[512,3]", "f32[3,6]")
def kalman_updates_of_tracks(mean, root, seen, h):
    p = root @ jnp.swapaxes(root, 1, 2) + jnp.eye(6)
    s = h @ p @ h.T + 0.1 * jnp.eye(3)
    gain = jnp.swapaxes(jnp.linalg.solve(s, h @ p), 1, 2)
    mean = mean + jnp.einsum("nij,nj->ni", gain, seen - mean @ h.T)
    return mean, p - gain @ (h @ p)


@program("u8[65536]<256", "u8[65536]<256", "u8[256]<256", "s32[256]<256")
def galois_field_products(a, b, antilog, log):
    product = antilog[(log[a] + log[b]) % 255]
    return jnp.where((a == 0) | (b == 0), jnp.uint8(0), product), jax.lax.population_count(a ^ b)


@program("f32[48,48,16]", "f32[48,48,16]", "f32[16]>0")
def plasma_of_two_fluids(n, v, mass):
    def grad(f, axis):
        return (jnp.roll(f, -1, axis) - jnp.roll(f, 1, axis)) / 2

    flux = n * v
    pressure = n ** (5 / 3)
    rate = -(grad(flux, 0) + grad(flux, 1))
    force = -(grad(pressure, 0) + grad(pressure, 1)) / (n * mass + 2.0) - v * (grad(v, 0) + grad(v, 1))
    return n + 0.01 * rate, v + 0.01 * force, jnp.sum(n * v * v * mass, (0, 1))


@program("f32[256,64]", "f32[256,64]", "f32[64,64]", "f32[1]>0")
def contrastive_gradients(a, b, w, temperature):
    def loss(w):
        x, y = a @ w, b @ w
        x, y = x / jnp.linalg.norm(x, axis=1, keepdims=True), y / jnp.linalg.norm(y, axis=1, keepdims=True)
        s = x @ y.T / temperature
        return -jnp.mean(jnp.diag(jax.nn.log_softmax(s, 1)) + jnp.diag(jax.nn.log_softmax(s, 0)))

    return jax.value_and_grad(loss)(w)


@program("f32[4,28,28,64]", "f32[3,3,64,64]", "f32[64]>0", "f32[4,28,28,64]")
def gradients_of_a_normalised_convolution(x, w, scale, g):
    def loss(x, w, scale):
        y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        y = (y - y.mean((0, 1, 2))) * jax.lax.rsqrt(y.var((0, 1, 2)) + 1e-5) * scale
        return jnp.sum(jax.nn.silu(y) * g)

    return jax.grad(loss, (0, 1, 2))(x, w, scale)
