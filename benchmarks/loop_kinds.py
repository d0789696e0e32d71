"""More loops, of other kinds than those of loops.py: `python benchmarks/loops.py --set kinds`. Each is (function, shapes of its arguments)."""
import jax
import jax.numpy as jnp
from loop_set import loop_set

KINDS, loop = loop_set()


@loop("f32[300,2]", "f32[8,2]")
def online_k_means(points, centres):
    """The nearest centre moves towards each point."""
    def step(s, p):
        centres, counts = s
        k = ((centres - p) ** 2).sum(-1).argmin()
        counts = counts.at[k].add(1)
        return (centres.at[k].add((p - centres[k]) / counts[k]), counts), k

    return jax.lax.scan(step, (centres, jnp.zeros(8)), points)


@loop("f32[6]")
def adaptive_steps(y):
    """An embedded Runge-Kutta pair whose step follows the error; steps that fail are taken back."""
    def f(y):
        return jnp.roll(y, 1) * (1 - y) - 0.5 * y

    def step(s):
        t, h, y, n = s
        k1 = f(y)
        k2 = f(y + h * k1 / 2)
        k3 = f(y + 0.75 * h * k2)
        new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        low = y + h * (7 * k1 + 6 * k2 + 8 * k3 + 3 * f(new)) / 24
        error = jnp.sqrt(((new - low) ** 2).mean()) / 1e-6 + 1e-9
        good = error < 1
        t, y = jax.lax.cond(good, lambda: (t + h, new), lambda: (t, y))
        return t, jnp.clip(h * 0.9 * error ** (-1 / 3), 1e-4, 0.1), y, n + 1

    return jax.lax.while_loop(lambda s: (s[0] < 5) & (s[3] < 5000), step, (0.0, 0.01, y * 0.1, 0))


@loop("s32[1000]<4", "f32[]>0")
def stack_machine(code, x):
    """A program of four instructions, one branch of a switch each."""
    def step(s, op):
        return jax.lax.switch(op, [lambda s: (s[0] + s[1], s[1]), lambda s: (s[0] * 0.5, s[0]), lambda s: (s[1], s[0]), lambda s: (jnp.sin(s[0]), s[1] + 0.1)], s), None

    return jax.lax.scan(step, (x, 1 - x), code)[0]


@loop("u32[]")
def random_walk(seed):
    """Steps drawn by a key that is split in the loop."""
    def step(_, s):
        key, at = s
        key, sub = jax.random.split(key)
        return key, at + jax.random.normal(sub, (2,))

    return jax.lax.fori_loop(0, 1000, step, (jax.random.PRNGKey(seed), jnp.zeros(2)))[1]


@loop("f32[32]", "s32[64]<32", "s32[64]<32", "f32[64]>0")
def bellman_ford(distance, source, target, weight):
    """Relaxation of all edges until nothing changes."""
    def step(s):
        d, _, n = s
        new = d.at[target].min(d[source] + weight)
        return new, (new != d).any(), n + 1

    return jax.lax.while_loop(lambda s: s[1] & (s[2] < 100), step, (distance * 10, True, 0))


@loop("f32[128]")
def insertion_sort(x):
    def place(i, x):
        def move(s):
            j, x = s
            a, b = x[j - 1], x[j]
            return j - 1, x.at[j - 1].set(b).at[j].set(a)

        return jax.lax.while_loop(lambda s: (s[0] > 0) & (s[1][s[0] - 1] > s[1][s[0]]), move, (i, x))[1]

    return jax.lax.fori_loop(1, 128, place, x)


@loop("f32[24,24]", "f32[24]")
def gauss_jordan(a, b):
    """Elimination without pivots, a column a trip."""
    m = jnp.concatenate([a + 24 * jnp.eye(24), b[:, None]], 1)

    def step(k, m):
        row = m[k] / m[k, k]
        m = m - m[:, k][:, None] * row
        return m.at[k].set(row)

    return jax.lax.fori_loop(0, 24, step, m)[:, -1]


@loop("f64[30]", "f64[30,30]")
def quasi_newton(x, a):
    """BFGS of a smooth function, with a search along the line."""
    a = a @ a.T / 30 + jnp.eye(30)

    def value(x):
        return 0.5 * x @ (a @ x) + jnp.log1p(x * x).sum()

    def step(_, s):
        x, h, g = s
        p = -h @ g
        t = jax.lax.while_loop(lambda t: (value(x + t * p) > value(x) + 1e-4 * t * (g @ p)) & (t > 1e-3), lambda t: t / 2, 1.0)
        new = x + t * p
        y, s = jax.grad(value)(new) - g, new - x
        r = 1 / (y @ s + 1e-12)
        left = jnp.eye(30) - r * jnp.outer(s, y)
        return new, left @ h @ left.T + r * jnp.outer(s, s), g + y

    return jax.lax.fori_loop(0, 20, step, (x, jnp.eye(30), jax.grad(value)(x)))[0]


@loop("f32[64,3]", "f32[64,3]", "f32[3,16]", "f32[16,3]")
def neural_ode(x, y, w1, w2):
    """Training of a small network that is the right side of an equation."""
    def flow(p, x):
        return jax.lax.fori_loop(0, 10, lambda _, x: x + 0.1 * jnp.tanh(x @ p[0]) @ p[1], x)

    def loss(p):
        return ((flow(p, x) - y) ** 2).mean()

    def step(p, _):
        value, g = jax.value_and_grad(loss)(p)
        return jax.tree.map(lambda a, b: a - 0.01 * b, p, g), value

    return jax.lax.scan(step, (w1 * 0.1, w2 * 0.1), None, length=20)


@loop("f32[500,8]", "f32[8]")
def recursive_least_squares(x, w):
    def step(s, row):
        w, p = s
        q = p @ row
        k = q / (0.99 + row @ q)
        e = row[0] * 2 - row @ w
        return (w + k * e, (p - jnp.outer(k, q)) / 0.99), e

    return jax.lax.scan(step, (w, jnp.eye(8) * 10), x)[1]


@loop("f32[300,4]", "f32[64,4]")
def particle_filter(z, particles):
    """Weights, systematic resampling by cumulative sums, and a move."""
    def step(s, z):
        x, u = s
        w = jax.nn.softmax(-((x - z) ** 2).sum(-1))
        k = jnp.searchsorted(jnp.cumsum(w), (jnp.arange(64) + u) / 64)
        x = 0.9 * x[jnp.minimum(k, 63)] + 0.1 * jnp.sin(17.0 * x)
        return (x, (u * 7.13) % 1.0), x.mean(0)

    return jax.lax.scan(step, (particles, jnp.float32(0.37)), z)[1]


@loop("f32[40,40]", "f32[40]", "f32[40]")
def sinkhorn(cost, a, b):
    a, b, k = jax.nn.softmax(a), jax.nn.softmax(b), jnp.exp(-cost)

    def step(s):
        u, v, _, n = s
        new = a / (k @ v)
        return new, b / (k.T @ new), jnp.abs(new - u).max(), n + 1

    u, v, _, n = jax.lax.while_loop(lambda s: (s[2] > 1e-7) & (s[3] < 200), step, (jnp.ones(40), jnp.ones(40), jnp.float32(1), 0))
    return u[:, None] * k * v, n


@loop("f32[16,16]", "f32[4096]>0", "s32[4096]<16", "s32[4096]<16")
def ising(spins, u, i, j):
    """One spin a step, by the Metropolis rule, at given places."""
    def step(s, t):
        u, i, j = t
        near = s[(i + 1) % 16, j] + s[(i - 1) % 16, j] + s[i, (j + 1) % 16] + s[i, (j - 1) % 16]
        d = 2 * s[i, j] * near
        return s.at[i, j].multiply(jnp.where((d < 0) | (u < jnp.exp(-0.4 * d)), -1.0, 1.0)), None

    return jax.lax.scan(step, jnp.sign(spins), (u, i, j))[0]


@loop("f32[12,12]")
def jacobi_eigenvalues(a):
    """Rotations over all pairs in turn."""
    def rotate(k, a):
        p, q = k // 12, k % 12
        def turn(a):
            t = 0.5 * jnp.arctan2(2 * a[p, q], a[q, q] - a[p, p])
            c, s = jnp.cos(t), jnp.sin(t)
            x, y = a[p], a[q]
            a = a.at[p].set(c * x - s * y).at[q].set(s * x + c * y)
            x, y = a[:, p], a[:, q]
            return a.at[:, p].set(c * x - s * y).at[:, q].set(s * x + c * y)

        return jax.lax.cond(p < q, turn, lambda a: a, a)

    return jnp.diagonal(jax.lax.fori_loop(0, 4 * 144, rotate, a + a.T))


@loop("f32[40,20]", "f32[20,64]", "f32[64,20]")
def beam_search(logits, embed, out):
    """Four beams; the best of what follows them are kept."""
    def step(s, bias):
        score, last, h = s
        h = jnp.tanh(h * 0.5 + embed[last])
        all_ = score[:, None] + jax.nn.log_softmax(h @ out + bias, -1)
        score, k = jax.lax.top_k(all_.reshape(-1), 4)
        beam, last = k // 20, k % 20
        return (score, last, h[beam]), last

    return jax.lax.scan(step, (jnp.zeros(4), jnp.arange(4), jnp.zeros((4, 64))), logits)


@loop("f32[100,2,8]", "f32[8,8]", "f32[8]")
def gated_unit_in_double_loop(x, w, h):
    """Each step iterates its layer to a fixed point."""
    def step(h, x):
        def again(s):
            new = jnp.tanh(0.3 * w @ s[0] + x[0])
            return new, jnp.abs(new - s[0]).max(), s[2] + 1

        h = jax.lax.while_loop(lambda s: (s[1] > 1e-5) & (s[2] < 50), again, (h + x[1], jnp.float32(1), 0))[0]
        return h, h

    return jax.lax.scan(step, h, x)[1]


@loop("f64[200,3]", "f64[16,3]")
def map_of_roots(c, start):
    """For each item of a lax.map: Newton's method in three unknowns."""
    def solve(c):
        def step(_, x):
            f = x * x * x - c * x + jnp.roll(x, 1) * 0.1
            return x - f / (3 * x * x - c + 1e-3)

        return jax.lax.fori_loop(0, 12, step, start[0] + 2)

    return jax.lax.map(solve, c)


@loop("f32[256,8]", "f32[8,8]")
def linear_attention(x, w):
    """A state that is a matrix: outer products added, decay, and a product to read it."""
    def step(s, x):
        k, q = jax.nn.softmax(w @ x), x / jnp.sqrt((x * x).sum() + 1e-6)
        s = 0.95 * s + k[:, None] * x[None]
        return s, q @ s

    return jax.lax.scan(step, jnp.zeros((8, 8)), x)[1]


@loop("u8[4096]<256", "u32[256]")
def checksum(data, table):
    """A table-driven cyclic redundancy check."""
    def step(crc, byte):
        return (crc >> 8) ^ table[((crc ^ byte) & 255).astype(jnp.int32)], None

    return jax.lax.scan(step, jnp.uint32(0xFFFFFFFF), data.astype(jnp.uint32))[0]


@loop("f32[128,128]", "f32[128,128]")
def reaction_diffusion(u, v):
    """Gray and Scott's equations on a torus."""
    def lap(x):
        return jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1) - 4 * x

    def step(_, s):
        u, v = s
        r = u * v * v
        return u + 0.16 * lap(u) - r + 0.035 * (1 - u), v + 0.08 * lap(v) + r - 0.1 * v

    return jax.lax.fori_loop(0, 60, step, (jax.nn.sigmoid(u), 0.3 * jax.nn.sigmoid(v)))
