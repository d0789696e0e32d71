"""Programs of the sciences: images, grids, particles, series, genes, orbits, prices."""
import jax
import jax.numpy as jnp

from . import program


@program("u8[480,640,3]<256", "f32[3,3]")
def white_balance_and_gamma(image, matrix):
    x = image.astype(jnp.float32) / 255
    x = x / (x.mean((0, 1)) + 1e-3) * 0.5
    x = jnp.clip(jnp.einsum("hwc,dc->hwd", x, jnp.eye(3) + 0.05 * matrix), 0, 1)
    x = jnp.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055)
    return jnp.round(x * 255).astype(jnp.uint8)


@program("f32[256,256,3]>0")
def rgb_to_hsv(x):
    r, g, b = x[..., 0], x[..., 1], x[..., 2]
    high, low = x.max(-1), x.min(-1)
    d = high - low + 1e-6
    h = jnp.where(high == r, (g - b) / d % 6, jnp.where(high == g, (b - r) / d + 2, (r - g) / d + 4)) / 6
    return jnp.stack([h, d / high, high], -1)


@program("f32[512,512]")
def unsharp_mask(x):
    k = jnp.array([1., 4., 6., 4., 1.]) / 16
    p = jnp.pad(x, 2, mode="reflect")
    rows = sum(k[i] * p[:, i:i + 512] for i in range(5))
    blurred = sum(k[i] * rows[i:i + 512] for i in range(5))
    return jnp.clip(x + 1.5 * (x - blurred), -3, 3)


@program("f32[384,384]")
def morphology(x):
    def shifted(x, op):
        p = jnp.pad(x, 1, mode="edge")
        out = x
        for i in range(3):
            for j in range(3):
                out = op(out, p[i:i + 384, j:j + 384])
        return out

    opened = shifted(shifted(x, jnp.minimum), jnp.maximum)
    return opened, x - opened


@program("f32[600,600]")
def integral_image_threshold(x):
    total = jnp.pad(jnp.cumsum(jnp.cumsum(x, 0), 1), ((16, 15), (16, 15)), mode="edge")
    box = total[31:, 31:] - total[:-31, 31:] - total[31:, :-31] + total[:-31, :-31]
    return x > box / 961 + 0.1


@program("f32[8,64,64,3]", "f32[8]", "f32[8,2]")
def affine_augment(x, angle, shift):
    """A turn and a move of each image, to the nearest pixel."""
    i, j = jnp.meshgrid(jnp.arange(64) - 31.5, jnp.arange(64) - 31.5, indexing="ij")
    c, s = jnp.cos(angle)[:, None, None], jnp.sin(angle)[:, None, None]
    u = jnp.round(c * i - s * j + 31.5 + 4 * shift[:, 0, None, None]).astype(jnp.int32)
    v = jnp.round(s * i + c * j + 31.5 + 4 * shift[:, 1, None, None]).astype(jnp.int32)
    inside = (u >= 0) & (u < 64) & (v >= 0) & (v < 64)
    taken = jax.vmap(lambda im, u, v: im[jnp.clip(u, 0, 63), jnp.clip(v, 0, 63)])(x, u, v)
    return jnp.where(inside[..., None], taken, 0)


@program("f32[300,300]", "f32[300,300]")
def burgers_step(u, v):
    def d(x, axis):
        return (jnp.roll(x, -1, axis) - jnp.roll(x, 1, axis)) * 0.5

    def lap(x):
        return jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1) - 4 * x

    return u - 0.01 * (u * d(u, 0) + v * d(u, 1)) + 0.05 * lap(u), v - 0.01 * (u * d(v, 0) + v * d(v, 1)) + 0.05 * lap(v)


@program("f64[200,200]")
def cahn_hilliard(c):
    def lap(x):
        return jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1) - 4 * x

    return jax.lax.fori_loop(0, 4, lambda _, c: c + 0.01 * lap(c ** 3 - c - 0.5 * lap(c)), c)


@program("f32[400,400]", "f32[400,400]")
def eikonal_upwind(t, speed):
    p = jnp.pad(t, 1, constant_values=1e6)
    a = jnp.minimum(p[:-2, 1:-1], p[2:, 1:-1])
    b = jnp.minimum(p[1:-1, :-2], p[1:-1, 2:])
    f = 1 / (jnp.abs(speed) + 0.1)
    both = 0.5 * (a + b + jnp.sqrt(jnp.maximum(2 * f * f - (a - b) ** 2, 0)))
    return jnp.minimum(t, jnp.where(jnp.abs(a - b) >= f, jnp.minimum(a, b) + f, both))


@program("f32[5,160,160]")
def weno_reconstruction(q):
    def face(m2, m1, c, p1, p2):
        b0 = 13 / 12 * (m2 - 2 * m1 + c) ** 2 + 0.25 * (m2 - 4 * m1 + 3 * c) ** 2
        b1 = 13 / 12 * (m1 - 2 * c + p1) ** 2 + 0.25 * (m1 - p1) ** 2
        b2 = 13 / 12 * (c - 2 * p1 + p2) ** 2 + 0.25 * (3 * c - 4 * p1 + p2) ** 2
        a0, a1, a2 = 0.1 / (1e-6 + b0) ** 2, 0.6 / (1e-6 + b1) ** 2, 0.3 / (1e-6 + b2) ** 2
        return (a0 * (2 * m2 - 7 * m1 + 11 * c) + a1 * (-m1 + 5 * c + 2 * p1) + a2 * (2 * c + 5 * p1 - p2)) / 6 / (a0 + a1 + a2)

    out = 0
    for axis in (1, 2):
        f = face(*[jnp.roll(q, s, axis) for s in (2, 1, 0, -1, -2)])
        out = out + f - jnp.roll(f, 1, axis)
    return q - 0.1 * out


@program("f32[4096,3]", "s32[20000]<4096", "s32[20000]<4096", "f32[20000]>0")
def mass_spring_forces(x, i, j, rest):
    d = x[j] - x[i]
    length = jnp.sqrt((d * d).sum(-1) + 1e-6)
    f = ((length - rest) / length)[:, None] * d
    return jnp.zeros_like(x).at[i].add(f).at[j].add(-f)


@program("f32[700,3]", "f32[700]")
def coulomb_potential(x, q):
    d = x[:, None] - x[None]
    r = jnp.sqrt((d ** 2).sum(-1) + 0.01)
    e = q[:, None] * q[None] * jax.lax.erfc(r) / r
    return e.sum(1), (e[..., None] * d / (r * r)[..., None]).sum(1)


@program("f32[1000,3]", "f32[1000,4]")
def quaternion_chain(x, q):
    q = q / jnp.linalg.norm(q, axis=-1, keepdims=True)

    def product(a, b):
        aw, ax, ay, az = a[..., 0], a[..., 1], a[..., 2], a[..., 3]
        bw, bx, by, bz = b[..., 0], b[..., 1], b[..., 2], b[..., 3]
        return jnp.stack([aw * bw - ax * bx - ay * by - az * bz, aw * bx + ax * bw + ay * bz - az * by,
                          aw * by - ax * bz + ay * bw + az * bx, aw * bz + ax * by - ay * bx + az * bw], -1)

    total = jax.lax.associative_scan(product, q)
    u = total[:, 1:]
    t = 2 * jnp.cross(u, x)
    return x + total[:, :1] * t + jnp.cross(u, t)


@program("f32[50000,6]")
def moments_of_stress(s):
    xx, yy, zz, xy, yz, xz = jnp.moveaxis(s, -1, 0)
    p = (xx + yy + zz) / 3
    dx, dy, dz = xx - p, yy - p, zz - p
    j2 = 0.5 * (dx * dx + dy * dy + dz * dz) + xy * xy + yz * yz + xz * xz
    j3 = dx * dy * dz + 2 * xy * yz * xz - dx * yz * yz - dy * xz * xz - dz * xy * xy
    r = jnp.sqrt(3 * j2)
    theta = jnp.arccos(jnp.clip(1.5 * jnp.sqrt(3.) * j3 / (j2 ** 1.5 + 1e-6), -1, 1)) / 3
    return r, theta, p


@program("f32[64,4096]")
def analytic_signal_features(x):
    d = x[:, 1:] - x[:, :-1]
    crossings = (x[:, 1:] * x[:, :-1] < 0).sum(1)
    energy = (x[:, 1:-1] ** 2 - x[:, :-2] * x[:, 2:]).mean(1)
    w = jnp.hanning(256)
    frames = x.reshape(64, 16, 256) * w
    return crossings, energy, jnp.abs(d).max(1), jnp.log(1e-6 + (frames ** 2).sum(-1))


@program("f32[48000]", "f32[4]>0")
def synthesiser(noise, p):
    t = jnp.arange(48000) / 48000
    envelope = jnp.minimum(t * 20, 1) * jnp.exp(-3 * t)
    tone = sum(jnp.sin(2 * jnp.pi * 110 * (k + 1) * t + p[k] * jnp.sin(6.28 * 5 * t)) / (k + 1) for k in range(4))
    return jnp.tanh(2 * envelope * tone + 0.01 * noise)


@program("f32[200000]")
def delta_and_mu_law(x):
    x = jnp.clip(x / 4, -1, 1)
    y = jnp.sign(x) * jnp.log1p(255 * jnp.abs(x)) / jnp.log(256.)
    code = jnp.floor((y + 1) / 2 * 255 + 0.5).astype(jnp.uint8)
    return code, jnp.diff(code.astype(jnp.int32))


@program("f32[32,8192]")
def wavelet_lifting(x):
    out = []
    for _ in range(4):
        even, odd = x[:, ::2], x[:, 1::2]
        d = odd - 0.5 * (even + jnp.roll(even, -1, 1))
        x = even + 0.25 * (d + jnp.roll(d, 1, 1))
        out.append(d)
    return jnp.concatenate([x, *out[::-1]], 1)


@program("f32[16,10000]")
def exponential_averages_by_scan(x):
    def combine(a, b):
        return a[0] * b[0], b[0] * a[1] + b[1]

    decay = jnp.full_like(x, 0.97)
    _, mean = jax.lax.associative_scan(combine, (decay, 0.03 * x), axis=1)
    return x - mean


@program("u8[100000]<4", "f32[16,4]")
def motif_scores(dna, matrix):
    n = 100000 - 15
    return sum(matrix[i][dna[i:i + n]] for i in range(16)).max(), jnp.bincount(dna, length=4)


@program("u8[200000]<4")
def kmer_codes(dna):
    d = dna.astype(jnp.uint32)
    n = 200000 - 7
    code = sum(d[i:i + n] << (2 * (7 - i)) for i in range(8))
    other = sum((3 - d[i:i + n]) << (2 * i) for i in range(8))
    least = jnp.minimum(code, other)
    h = least * jnp.uint32(2654435761)
    h = h ^ (h >> 15)
    return least, jnp.min(h[:199936].reshape(-1, 64), 1)


@program("s8[400,3000]<3")
def genotype_statistics(g):
    x = g.astype(jnp.float32)
    p = x.mean(0) / 2
    het = (g == 1).mean(0, dtype=jnp.float32)
    f = 1 - het / (2 * p * (1 - p) + 1e-6)
    return p, f, (x - 2 * p) / jnp.sqrt(2 * p * (1 - p) + 1e-6)


@program("f32[5000]>0", "f32[5000]>0", "f32[5000]>0")
def implied_volatility(price, strike, years):
    s = jnp.full_like(price, 0.3)
    for _ in range(6):
        v = s * jnp.sqrt(years)
        d1 = (jnp.log(1 / strike) + 0.5 * s * s * years) / v
        n = lambda x: 0.5 * jax.lax.erfc(-x / jnp.sqrt(2.))  # noqa: E731
        value = n(d1) - strike * n(d1 - v)
        vega = jnp.exp(-0.5 * d1 * d1) * jnp.sqrt(years / 6.2832)
        s = jnp.clip(s - (value - 0.3 * price) / (vega + 1e-3), 0.01, 3)
    return s


@program("u32[2]", "f32[]>0")
def asian_option_paths(key, vol):
    z = jax.random.normal(jax.random.wrap_key_data(key), (2000, 60))
    path = jnp.exp(jnp.cumsum(0.1 * vol * z - 0.005 * vol * vol, 1))
    pay = jnp.maximum(path.mean(1) - 1, 0)
    return pay.mean(), pay.std()


@program("f64[100000]", "f64[100000]>0", "f64[100000]>0")
def kepler_f64(mean, e, a):
    e = 0.8 * e
    x = mean + e * jnp.sin(mean)
    for _ in range(3):
        x = x - (x - e * jnp.sin(x) - mean) / (1 - e * jnp.cos(x))
    return a * (jnp.cos(x) - e), a * jnp.sqrt(1 - e * e) * jnp.sin(x)


@program("f64[20000]", "f64[20000]")
def great_circles(lat, lon):
    a, b = lat[:-1], lat[1:]
    h = jnp.sin((b - a) / 2) ** 2 + jnp.cos(a) * jnp.cos(b) * jnp.sin((lon[1:] - lon[:-1]) / 2) ** 2
    bearing = jnp.arctan2(jnp.sin(lon[1:] - lon[:-1]) * jnp.cos(b), jnp.cos(a) * jnp.sin(b) - jnp.sin(a) * jnp.cos(b) * jnp.cos(lon[1:] - lon[:-1]))
    return 2 * 6371 * jnp.arcsin(jnp.sqrt(jnp.clip(h, 0, 1))), bearing
