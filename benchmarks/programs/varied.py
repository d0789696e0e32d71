"""Kinds of programs that stand in none of the other files: tables, bits, integers, geometry, graphs, small tricks of many fields."""
import jax
import jax.numpy as jnp

from . import program


@program("f32[20000,32]", "s32[80000]<20000", "s32[80000]<20000", "f32[64,32]")
def message_passing(h, source, target, w):
    message = jax.nn.relu(jnp.concatenate([h[source], h[target]], -1) @ w)
    total = jax.ops.segment_sum(message, target, 20000)
    count = jax.ops.segment_sum(jnp.ones_like(target, jnp.float32), target, 20000)
    return h + total / jnp.maximum(count, 1.0)[:, None]


@program("f32[400,400]", "f32[400,400]", "f32[400,400]")
def maxwell_fdtd(ez, hx, hy):
    hx = hx.at[:, :-1].add(-0.5 * (ez[:, 1:] - ez[:, :-1]))
    hy = hy.at[:-1, :].add(0.5 * (ez[1:, :] - ez[:-1, :]))
    ez = ez.at[1:-1, 1:-1].add(0.5 * ((hy[1:-1, 1:-1] - hy[:-2, 1:-1]) - (hx[1:-1, 1:-1] - hx[1:-1, :-2])))
    return ez, hx, hy


@program("f32[16384,3]", "f32[8,4]")
def ray_march_spheres(direction, sphere):
    d = direction / jnp.linalg.norm(direction, axis=-1, keepdims=True)

    def step(t, _):
        p = d * t[:, None]
        gap = jnp.linalg.norm(p[:, None] - 3.0 * sphere[None, :, :3], axis=-1) - jnp.abs(sphere[None, :, 3])
        return t + jnp.clip(gap.min(-1), 0.0, 1.0), None

    return jax.lax.scan(step, jnp.zeros(d.shape[0], jnp.float32), None, length=6)[0]


@program("f32[2000,16]", "f32[500,16]")
def nearest_neighbours(points, query):
    d = ((query[:, None] - points[None]) ** 2).sum(-1)
    near, which = jax.lax.top_k(-d, 8)
    return jnp.exp(near).sum(-1), which


@program("f32[200000]", "s32[200000]<10000", "s32[200000]<10000", "f32[10000]")
def sparse_matrix_vector(value, row, column, x):
    return jax.ops.segment_sum(value * x[column], row, 10000)


@program("f32[256,256]>0", "f32[256]>0", "f32[256]>0")
def sinkhorn_scaling(cost, a, b):
    kernel = jnp.exp(-cost * 5.0)
    a, b = a / a.sum(), b / b.sum()

    def step(_, uv):
        u, v = uv
        u = a / (kernel @ v)
        return u, b / (kernel.T @ u)

    u, v = jax.lax.fori_loop(0, 10, step, (jnp.ones_like(a), jnp.ones_like(b)))
    return (u[:, None] * kernel * v[None] * cost).sum()


@program("f32[200,200,8]")
def belief_propagation_grid(unary):
    smooth = 0.5 * jnp.abs(jnp.arange(8)[:, None] - jnp.arange(8)[None]).astype(jnp.float32)

    def send(h):
        m = (h[..., :, None] + smooth).min(-2)
        return m - m.min(-1, keepdims=True)

    right, down = send(unary), send(unary[::-1])[::-1]
    total = unary + jnp.pad(right[:, :-1], ((0, 0), (1, 0), (0, 0))) + jnp.pad(down[:-1], ((1, 0), (0, 0), (0, 0)))
    return total.argmin(-1), total.min(-1)


@program("f32[64,4096]")
def haar_wavelets(x):
    out = []
    for _ in range(6):
        even, odd = x[:, ::2], x[:, 1::2]
        out.append((even - odd) * 0.70710678)
        x = (even + odd) * 0.70710678
    return jnp.concatenate([x, *out[::-1]], -1)


@program("u32[262144]")
def crc_bits(x):
    crc = x ^ jnp.uint32(0xFFFFFFFF)
    for _ in range(8):
        crc = (crc >> 1) ^ (jnp.uint32(0xEDB88320) & (~(crc & 1) + jnp.uint32(1)))
    return crc


@program("u32[131072]")
def bit_reverse_and_count(x):
    x = ((x >> 1) & 0x55555555) | ((x & 0x55555555) << 1)
    x = ((x >> 2) & 0x33333333) | ((x & 0x33333333) << 2)
    x = ((x >> 4) & 0x0F0F0F0F) | ((x & 0x0F0F0F0F) << 4)
    return x, jax.lax.population_count(x), jax.lax.clz(x)


@program("f32[256,512]", "s8[512,512]<127", "f32[512]>0")
def quantised_linear_int8(x, w, scale):
    step = jnp.abs(x).max(-1, keepdims=True) / 127.0
    q = jnp.clip(jnp.round(x / step), -127, 127).astype(jnp.int8)
    y = jax.lax.dot_general(q, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
    return jax.nn.relu(y.astype(jnp.float32) * step * scale)


@program("c64[65536]", "c64[65536]")
def complex_mobius(z, w):
    y = (z * w + 1.0) / (w - 2.0j * z + 3.0)
    return y * jnp.conj(y), jnp.abs(y), jnp.angle(y), jnp.exp(0.1j * y)


@program("f32[4096,64,2]")
def polygon_area_and_centre(p):
    q = jnp.roll(p, -1, 1)
    cross = p[..., 0] * q[..., 1] - q[..., 0] * p[..., 1]
    area = cross.sum(-1) / 2
    return area, ((p + q) * cross[..., None]).sum(1) / (6 * area[:, None])


@program("f32[200,200]>0")
def bilateral_filter(image):
    total, weight = jnp.zeros_like(image), jnp.zeros_like(image)
    padded = jnp.pad(image, 2, mode="edge")
    for i in range(5):
        for j in range(5):
            moved = padded[i:i + 200, j:j + 200]
            w = jnp.exp(-((i - 2) ** 2 + (j - 2) ** 2) / 8.0 - (moved - image) ** 2 * 20.0)
            total, weight = total + w * moved, weight + w
    return total / weight


@program("f32[16,32,32,64]", "f32[64]", "f32[64]", "f32[16,32,32,64]")
def group_norm_training(x, scale, shift, grad):
    def norm(x, scale, shift):
        g = x.reshape(16, 32 * 32, 8, 8)
        mean = g.mean((1, 3), keepdims=True)
        var = ((g - mean) ** 2).mean((1, 3), keepdims=True)
        return ((g - mean) * jax.lax.rsqrt(var + 1e-5)).reshape(x.shape) * scale + shift

    y, back = jax.vjp(norm, x, scale, shift)
    return (y, *back(grad))


@program("f32[5000,64]", "s32[8192]<5000", "f32[8192,64]")
def embedding_update(table, token, grad):
    rows = jnp.tanh(table[token])
    return table.at[token].add(-0.01 * grad * (1 - rows * rows))


@program("f32[4096,16]")
def bitonic_sorting_network(x):
    n = 16
    k = 2
    while k <= n:
        j = k // 2
        while j:
            i = jnp.arange(n)
            other = x[:, i ^ j]
            low = ((i & j) == 0) == ((i & k) == 0)
            x = jnp.where(low, jnp.minimum(x, other), jnp.maximum(x, other))
            j //= 2
        k *= 2
    return x


@program("f32[32,8]", "f32[32,8,2000]")
def beam_search_step(score, logits):
    total = score[..., None] + jax.nn.log_softmax(logits)
    best, which = jax.lax.top_k(total.reshape(32, -1), 8)
    return best, which // 2000, which % 2000


@program("f32[1024]", "f32[100000]>0")
def catmull_rom_interpolation(y, at):
    u = at * 900.0
    i = jnp.floor(u).astype(jnp.int32)
    t = u - i
    a, b, c, d = (y[jnp.clip(i + k, 0, 1023)] for k in (-1, 0, 1, 2))
    return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))


@program("f64[200000]>0", "f64[200000]>0")
def special_functions_f64(x, y):
    return jax.scipy.special.erf(x), jax.nn.sigmoid(x - y), jnp.log1p(x * y), jnp.expm1(x) * jnp.power(y, x)


@program("f32[100000]>0", "f32[100000]>0")
def gamma_and_beta_functions(x, y):
    return jax.scipy.special.gammaln(x + y), jax.scipy.special.digamma(x), jax.scipy.special.erfc(y)


@program("u8[8,128,128,3]", "f32[8,3]>0")
def image_augmentation(image, gain):
    x = image.astype(jnp.float32) / 255.0
    x = jnp.clip((x - 0.5) * gain[:, None, None, :] + 0.5, 0, 1)
    grey = (x * jnp.array([0.299, 0.587, 0.114], jnp.float32)).sum(-1, keepdims=True)
    x = (0.7 * x + 0.3 * grey)[:, :, ::-1]
    return ((x - 0.45) / 0.225).astype(jnp.bfloat16)


@program("u8[8,128,128,3]")
def colour_histograms(image):
    bins = (image >> 4).astype(jnp.int32)
    code = bins[..., 0] * 256 + bins[..., 1] * 16 + bins[..., 2]
    return jax.vmap(lambda c: jnp.zeros(4096, jnp.int32).at[c.reshape(-1)].add(1))(code)


@program("f32[512,512]")
def sobel_and_non_maximum(x):
    p = jnp.pad(x, 1)
    gx = (p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[1:-1, :-2] + p[2:, :-2])
    gy = (p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[:-2, 1:-1] + p[:-2, 2:])
    m = jnp.hypot(gx, gy)
    across = jnp.abs(gx) > jnp.abs(gy)
    a = jnp.where(across, jnp.roll(m, 1, 1), jnp.roll(m, 1, 0))
    b = jnp.where(across, jnp.roll(m, -1, 1), jnp.roll(m, -1, 0))
    return jnp.where((m >= a) & (m >= b), m, 0.0)


@program("s32[100000]", "s32[100000]<97", "s64[100000]")
def integer_arithmetic(a, b, c):
    b = b + 1
    return a // b, a % b, c // 7, (c * 31 + a) % 1009


@program("f32[2048,3]", "f32[2048,3,3]")
def rigid_frames(x, m):
    a = m[..., 0] / jnp.linalg.norm(m[..., 0], axis=-1, keepdims=True)
    b = m[..., 1] - (a * m[..., 1]).sum(-1, keepdims=True) * a
    b = b / jnp.linalg.norm(b, axis=-1, keepdims=True)
    r = jnp.stack([a, b, jnp.cross(a, b)], -1)
    return jnp.einsum("nij,nj->ni", r, x), jnp.linalg.det(r)


@program("f32[4,8,128,64]", "f32[4,8,128,64]", "f32[4,8,128,64]", "f32[8,255]")
def relative_attention(q, k, v, bias):
    place = jnp.arange(128)[:, None] - jnp.arange(128)[None] + 127
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125 + bias[:, place][None]
    s = 30.0 * jnp.tanh(s / 30.0)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s), v)


@program("f32[300,300]>0", "f32[300,300]>0")
def optical_flow_lucas_kanade(a, b):
    def window(x):
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, (7, 7), (1, 1), "SAME")

    ix, iy, it = (jnp.roll(a, -1, 1) - jnp.roll(a, 1, 1)) / 2, (jnp.roll(a, -1, 0) - jnp.roll(a, 1, 0)) / 2, b - a
    xx, yy, xy, xt, yt = window(ix * ix) + 1e-3, window(iy * iy) + 1e-3, window(ix * iy), window(ix * it), window(iy * it)
    det = xx * yy - xy * xy
    return (yy * -xt + xy * yt) / det, (xy * xt - xx * yt) / det


@program("f32[64,128,128]")
def jpeg_like_blocks(x):
    n = jnp.arange(8)
    basis = jnp.cos(jnp.pi / 8 * (n[:, None] + 0.5) * n[None]).astype(jnp.float32) * 0.5
    blocks = x.reshape(64, 16, 8, 16, 8)
    c = jnp.einsum("bxiyj,ik,jl->bxykl", blocks, basis, basis)
    return jnp.round(c * 8.0) / 8.0


@program("f32[4096,8,3]", "f32[3]")
def boxes_of_points(p, light):
    low, high = p.min(1), p.max(1)
    size = high - low
    return low, high, size.prod(-1), size.argmax(-1), jnp.einsum("npc,c->np", p - low[:, None], light)


@program("f32[3000,4]>0")
def overlaps_of_boxes(box):
    b = box[:512]
    x1, y1, x2, y2 = b[:, 0], b[:, 1], b[:, 0] + b[:, 2], b[:, 1] + b[:, 3]
    w = jnp.maximum(jnp.minimum(x2[:, None], x2[None]) - jnp.maximum(x1[:, None], x1[None]), 0)
    h = jnp.maximum(jnp.minimum(y2[:, None], y2[None]) - jnp.maximum(y1[:, None], y1[None]), 0)
    area = b[:, 2] * b[:, 3]
    return ((w * h) / (area[:, None] + area[None] - w * h) > 0.5).sum(-1) + box[512:].sum().astype(jnp.int32)


@program("f32[128,1024]", "f32[1024]")
def hardware_like_activations(x, bias):
    y = x + bias
    return jax.nn.hard_swish(y), jax.nn.softplus(y), jax.nn.elu(y), jax.nn.selu(y), jax.nn.mish(y), jax.nn.gelu(y, approximate=False)


@program("f32[100000,2]")
def box_muller_and_polar(u):
    r, angle = jnp.hypot(u[:, 0], u[:, 1]), jnp.arctan2(u[:, 1], u[:, 0])
    return jnp.stack([r * jnp.cos(angle * 3), r * jnp.sin(angle * 3)], -1), jnp.log(r + 1) * angle


@program("bf16[512,512]", "bf16[512,1024]", "bf16[1024]")
def layer_in_bf16(x, w, scale):
    y = jax.nn.silu(x @ w)
    y = y / jnp.sqrt((y.astype(jnp.float32) ** 2).mean(-1, keepdims=True) + 1e-6).astype(jnp.bfloat16)
    return y * scale


@program("f32[64,64,64]", "f32[50000,3]>0")
def trilinear_sampling(volume, at):
    p = at * 55.0
    i = jnp.floor(p).astype(jnp.int32)
    t = p - i
    out = 0.0
    for dx in (0, 1):
        for dy in (0, 1):
            for dz in (0, 1):
                w = (t[:, 0] if dx else 1 - t[:, 0]) * (t[:, 1] if dy else 1 - t[:, 1]) * (t[:, 2] if dz else 1 - t[:, 2])
                out = out + w * volume[i[:, 0] + dx, i[:, 1] + dy, i[:, 2] + dz]
    return out


@program("s32[64,2000]<30", "f32[30,30]", "f32[30]")
def ngram_scores(tokens, bigram, start):
    return start[tokens[:, 0]] + bigram[tokens[:, :-1], tokens[:, 1:]].sum(-1), (tokens[:, :-1] == tokens[:, 1:]).sum(-1)


@program("f32[1000,1000]")
def upper_triangle_statistics(x):
    upper = jnp.triu(x, 1)
    s = upper + upper.T
    return s.sum(0), jnp.where(jnp.eye(1000, dtype=bool), 1.0, s).max(1), jnp.diagonal(x)


@program("f32[8,64,64,32]", "f32[32,32]")
def space_to_depth_mixer(x, w):
    y = x.reshape(8, 32, 2, 32, 2, 32).transpose(0, 1, 3, 2, 4, 5).reshape(8, 32, 32, 128)
    y = y * jax.nn.sigmoid(y.mean(-1, keepdims=True))
    y = y.reshape(8, 32, 32, 2, 2, 32).transpose(0, 1, 3, 2, 4, 5).reshape(8, 64, 64, 32)
    return jax.nn.relu(y @ w) + x


@program("f32[100000]", "f32[8]")
def polynomial_and_rational(x, c):
    return jnp.polyval(c, x) / (1.0 + x * x), jnp.polyval(c[::-1], jnp.tanh(x))
