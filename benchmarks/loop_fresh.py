"""Loops that nobody tuned for: written when the work on loops was done, and timed once. `python benchmarks/loops.py --set fresh`."""
import jax
import jax.numpy as jnp
from loop_set import loop_set

FRESH, loop = loop_set()


@loop("f32[6,6]", "f32[6]")
def hopfield(w, s):
    """Asynchronous updates of a network of six units, one unit a trip."""
    w = w + w.T

    def step(i, s):
        k = i % 6
        return s.at[k].set(jnp.where(w[k] @ s >= 0, 1.0, -1.0))

    return jax.lax.fori_loop(0, 1200, step, jnp.sign(s))


@loop("f64[2]")
def van_der_pol(y):
    """Heun's method with a step that is halved where the two orders differ."""
    def f(y):
        return jnp.stack([y[1], 5 * (1 - y[0] ** 2) * y[1] - y[0]])

    def step(s):
        t, h, y, n = s
        k = f(y)
        e = y + h * k
        new = y + h / 2 * (k + f(e))
        bad = jnp.abs(new - e).max() > 1e-3
        return jax.lax.cond(bad, lambda: (t, h / 2, y, n + 1), lambda: (t + h, jnp.minimum(h * 1.2, 0.05), new, n + 1))

    return jax.lax.while_loop(lambda s: (s[0] < 4) & (s[3] < 20000), step, (0.0, 0.01, y, 0))


@loop("s32[500]<3", "f32[3,4]", "f32[4]")
def bandit(arms, means, noise):
    """An agent that learns the values of four actions in three states."""
    def step(q, s):
        a = q[s].argmax()
        r = means[s, a] + 0.1 * noise[(a + s) % 4]
        return q.at[s, a].add(0.1 * (r + 0.9 * q[(s + 1) % 3].max() - q[s, a])), r

    return jax.lax.scan(step, jnp.zeros((3, 4)), arms)


@loop("f32[200]", "f32[3]")
def median_of_three(x, first):
    """A filter that keeps the last three numbers."""
    def step(last, v):
        last = jnp.concatenate([last[1:], v[None]])
        a, b, c = last
        m = jnp.maximum(jnp.minimum(a, b), jnp.minimum(jnp.maximum(a, b), c))
        return last, m

    return jax.lax.scan(step, first, x)[1]


@loop("f32[100,12]", "f32[12,12]")
def unscented_mean(x, m):
    """Matrices of twelve rows in a loop: a square root by Newton and Schulz, ten steps a trip."""
    def step(s, row):
        y = jnp.eye(12) + 0.01 * jnp.outer(row, row)
        z = jax.lax.fori_loop(0, 10, lambda _, z: 0.5 * z @ (3 * jnp.eye(12) - y @ z @ z), jnp.eye(12) * 0.7)
        return s + z @ row, None

    return jax.lax.scan(step, m[0], x)[0]


@loop("u8[2000]<26", "s32[26,5]<5")
def automaton(text, table):
    """A machine of five states reads a text; how often each is visited."""
    def step(s, c):
        state, visits = s
        state = table[c.astype(jnp.int32), state]
        return (state, visits.at[state].add(1)), state

    return jax.lax.scan(step, (jnp.int32(0), jnp.zeros(5, jnp.int32)), text)


@loop("f32[64]", "f32[64]")
def coordinate_descent(b, c):
    """Lasso with a tridiagonal matrix: one coordinate a trip, with a threshold."""
    def sweep(_, x):
        def one(i, x):
            r = b[i] + 0.3 * (x[jnp.maximum(i - 1, 0)] + x[jnp.minimum(i + 1, 63)])
            return x.at[i].set(jnp.sign(r) * jnp.maximum(jnp.abs(r) - 0.1, 0) / (1 + c[i] * c[i]))

        return jax.lax.fori_loop(0, 64, one, x)

    return jax.lax.fori_loop(0, 20, sweep, jnp.zeros(64))


@loop("f32[300,32]", "f32[32,32]", "f32[32]")
def echo_state(x, w, out):
    """A reservoir of 32 units, with leaks, read at each step."""
    def step(h, u):
        h = 0.7 * h + 0.3 * jnp.tanh(w @ h * 0.2 + u)
        return h, out @ h

    return jax.lax.scan(step, jnp.zeros(32), x)[1]


@loop("f64[]>0", "f64[]>0")
def continued_fraction(a, x):
    """An incomplete gamma function by Lentz's method, for 200 arguments."""
    def value(x):
        def step(s):
            b, c, d, h, i, change = s
            n = -i * (i - a)
            b = b + 2
            d = 1 / (n * d + b + 1e-300)
            c = b + n / c
            return b, c, d, h * c * d, i + 1, c * d

        b = x + 1 - a
        return jax.lax.while_loop(lambda s: (jnp.abs(s[5] - 1) > 1e-12) & (s[4] < 200), step, (b, jnp.float64(1e300), 1 / b, 1 / b, jnp.float64(1), jnp.float64(0)))[3]

    return jax.lax.fori_loop(0, 200, lambda i, s: s + value(x + 0.05 * i + a), jnp.float64(0))


# --- a later session's ---


@loop("f32[3000]>0", "f32[8]")
def delay_line(x, start):
    """A ring buffer of eight numbers, read three places behind where it is written."""
    def step(s, v):
        ring, i = s
        y = 0.6 * ring[(i - 3) % 8] + v
        return (ring.at[i % 8].set(y), i + 1), y

    return jax.lax.scan(step, (start, jnp.int32(0)), x)[1]


@loop("f32[16,16]", "f32[16]")
def softmax_fixed_point(w, x):
    """Attention of a state on a small memory, repeated until it settles."""
    def step(_, s):
        p = jax.nn.softmax(w @ s * 0.5)
        return 0.9 * s + 0.1 * (p @ w)

    return jax.lax.fori_loop(0, 300, step, x)


@loop("f32[100,24,24]", "f32[24,24]")
def smoothed_frames(frames, first):
    """A filter over small pictures: rows and columns are mixed, the brightest of each row is kept."""
    def step(s, x):
        s = 0.8 * s + 0.2 * (x + jnp.roll(s, 1, 0) * 0.5 - jnp.roll(s, -1, 1) * 0.5)
        return s, s.max(1)

    return jax.lax.scan(step, first, frames)[1]


@loop("s32[12]<1000000")
def digits_of_numbers(n):
    """Sums of decimal digits, for each of twelve numbers until none is left, many times over."""
    def digits(n):
        return jax.lax.while_loop(lambda s: (s[0] > 0).any(), lambda s: (s[0] // 10, s[1] + s[0] % 10), (n, jnp.zeros_like(n)))[1]

    return jax.lax.fori_loop(0, 200, lambda i, t: t + digits(n + i), jnp.zeros_like(n))


@loop("f32[40,30]", "f32[30,20]", "f32[30]")
def matching_pursuit(a, noise, x):
    """The column that fits best is taken out of what is left, twenty times."""
    a = a / jnp.sqrt((a * a).sum(0) + 1e-3)
    signal = a @ (x + 0.1 * noise.sum(1))

    def step(_, s):
        rest, weights = s
        fit = a.T @ rest
        k = jnp.abs(fit).argmax()
        return rest - fit[k] * a[:, k], weights.at[k].add(fit[k])

    return jax.lax.fori_loop(0, 20, step, (signal, jnp.zeros(30)))


@loop("u32[]", "f32[64]")
def shuffled_walk(seed, x):
    """A generator of its own drives swaps of an array's elements."""
    def step(i, s):
        state, x = s
        state = state * jnp.uint32(1664525) + jnp.uint32(1013904223)
        j, k = (state >> 8) % 64, i % 64
        a, b = x[j], x[k]
        return state, x.at[k].set(a * 0.999).at[j].set(b)

    return jax.lax.fori_loop(0, 2000, step, (seed, x))[1]
