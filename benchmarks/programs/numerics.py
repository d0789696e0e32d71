"""Solvers, quadrature, interpolation, geometry, combinatorics, finance."""
import jax
import jax.numpy as jnp

from . import program


@program("f32[256,256]")
def conjugate_gradient_poisson(b):
    def apply(u):
        p = jnp.pad(u, 1)
        return 4 * u - p[2:, 1:-1] - p[:-2, 1:-1] - p[1:-1, 2:] - p[1:-1, :-2]

    def step(_, state):
        x, r, p, rs = state
        ap = apply(p)
        alpha = rs / (p * ap).sum()
        x, r = x + alpha * p, r - alpha * ap
        new = (r * r).sum()
        return x, r, r + new / rs * p, new

    return jax.lax.fori_loop(0, 20, step, (jnp.zeros_like(b), b, b, (b * b).sum()))[0]


@program("f32[257,257]")
def multigrid_smooth_and_restrict(u):
    for _ in range(3):
        u = u.at[1:-1, 1:-1].set(0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]))
    r = u[1:-1, 1:-1] * 4 - u[2:, 1:-1] - u[:-2, 1:-1] - u[1:-1, 2:] - u[1:-1, :-2]
    return u, (r[0:-2:2, 0:-2:2] + 2 * r[1:-1:2, 1:-1:2] + r[2::2, 2::2]) / 4


@program("f64[2000,40]", "f64[2000,40]", "f64[2000,40]")
def batched_tridiagonal(low, diagonal, rhs):
    def forward(carry, x):
        c, d = carry
        a, b, r = x
        m = b - a * c
        return (0.5 / m, (r - a * d) / m), (0.5 / m, (r - a * d) / m)

    _, (c, d) = jax.lax.scan(forward, (jnp.zeros(2000, low.dtype), jnp.zeros(2000, low.dtype)), (low.T * 0.1, diagonal.T * 0.1 + 4, rhs.T))
    return jax.lax.scan(lambda x, cd: ((y := cd[1] - cd[0] * x), y), jnp.zeros(2000, low.dtype), (c, d), reverse=True)[1]


@program("f64[100000]>0", "f64[100000]>0", "f64[100000]>0")
def black_scholes_greeks(spot, strike, vol):
    def price(s, k, v):
        d1 = (jnp.log(s / k) + 0.5 * v * v) / v
        cdf = lambda x: 0.5 * (1 + jax.lax.erf(x / jnp.sqrt(2.0)))  # noqa: E731
        return s * cdf(d1) - k * cdf(d1 - v)

    s, k, v = spot + 0.5, strike + 0.5, vol + 0.1
    return price(s, k, v), jax.vmap(jax.grad(price))(s, k, v), jax.vmap(jax.grad(price, 2))(s, k, v)


@program("f32[10000]")
def monte_carlo_barrier(seed):
    def step(state, key):
        s, alive = state
        s = s * jnp.exp(0.02 * jax.random.normal(key, s.shape) - 2e-4)
        return (s, alive & (s < 1.3)), None

    s, alive = jax.lax.scan(step, (jnp.ones(10000) + 0 * seed, jnp.ones(10000, bool)), jax.random.split(jax.random.key(2), 50))[0]
    return jnp.where(alive, jnp.maximum(s - 1, 0), 0.0).mean()


@program("f32[5000,2]", "f32[60,2]")
def point_in_polygon(p, corner):
    nxt = jnp.roll(corner, -1, 0)
    x, y = p[:, :1], p[:, 1:]
    crosses = (corner[:, 1] > y) != (nxt[:, 1] > y)
    at = (nxt[:, 0] - corner[:, 0]) * (y - corner[:, 1]) / (nxt[:, 1] - corner[:, 1] + 1e-9) + corner[:, 0]
    return (crosses & (x < at)).sum(1) % 2 == 1


@program("f32[3000,3]", "f32[3000,3]", "f32[500,9]")
def ray_triangle(origin, direction, triangle):
    a, b, c = triangle[:, :3], triangle[:, 3:6], triangle[:, 6:]
    e1, e2 = b - a, c - a
    p = jnp.cross(direction[:, None], e2[None])
    det = (p * e1).sum(-1)
    inv = jnp.where(jnp.abs(det) > 1e-7, 1 / det, 0.0)
    s = origin[:, None] - a
    u = (s * p).sum(-1) * inv
    q = jnp.cross(s, e1[None])
    v = (direction[:, None] * q).sum(-1) * inv
    t = (e2 * q).sum(-1) * inv
    return jnp.where((u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0), t, 100.0).min(1)


@program("f32[2000,4]", "f32[2000,3]")
def quaternion_rotate(q, v):
    q = q / jnp.linalg.norm(q, axis=1, keepdims=True)
    w, u = q[:, :1], q[:, 1:]
    t = 2 * jnp.cross(u, v)
    return v + w * t + jnp.cross(u, t)


@program("f32[400,400]>0")
def all_pairs_shortest(d):
    def step(k, d):
        return jnp.minimum(d, d[:, k, None] + d[None, k])

    return jax.lax.fori_loop(0, 40, step, d)


@program("f32[500000]")
def newton_roots(c):
    x = jnp.ones_like(c)
    for _ in range(8):
        x = x - (x * x * x + c * x - 2) / (3 * x * x + jnp.abs(c) + 0.1)
    return x


@program("f32[300000]>0")
def mandelbrot_like(c):
    def body(state):
        i, z, n = state
        z = jnp.where(jnp.abs(z) < 2, z * z - c, z)
        return i + 1, z, n + (jnp.abs(z) < 2)

    return jax.lax.while_loop(lambda s: s[0] < 30, body, (0, jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[2]


@program("f32[1000]", "f32[1000]", "f32[200000]")
def linear_interpolation(x, y, at):
    return jnp.interp(at, jnp.sort(x), y)


@program("f32[64,64,64]", "f32[64,64,64]")
def tensor_train_contraction(a, b):
    x = jnp.einsum("iaj,jbk->iabk", a[:, :16], b[:, :16])
    u, s, v = jnp.linalg.svd(x[:8].reshape(128, 1024)[:, :64], full_matrices=False)
    return (u * s) @ v, s


@program("f32[30,30,8]")
def game_of_many_lives(x):
    def step(_, s):
        n = sum(jnp.roll(s, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        return ((n == 3) | ((s == 1) & (n == 2))).astype(jnp.int8)

    return jax.lax.fori_loop(0, 50, step, (x > 0).astype(jnp.int8))


@program("s32[100000]<1000000", "s32[100000]<1000000")
def sorted_join(a, b):
    a = jnp.sort(a)
    at = jnp.searchsorted(a, b)
    return (a[jnp.clip(at, 0, 99999)] == b).sum(), at
