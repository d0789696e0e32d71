"""Loops with small bodies, as JAX users write them, beside XLA:CPU: time of a call, minimum and median, processor time.

  python benchmarks/loops.py [--set known|kinds|fresh|new] [--rounds 9] [--only NAME ...] [--json out.json]

Needs the `test` extra. Kinds: scalar searches and recurrences, filters and integrators with a few numbers of state, recurrent layers, dynamic
programming, cellular automata, sampling. Columns as in benchmarks/compiled.py."""
import argparse
import json
import pathlib
import statistics
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from compiled import CLOCK, Xla, flat, mean, off_by, ratio, show, times_of
from loop_fresh import FRESH
from loop_kinds import KINDS
from loop_new import NEW
from loop_set import loop_set
from unseen import argument, check_all_read, lowered

import xlac

LOOPS, loop = loop_set()


@loop("s32[]<1000")
def collatz(n):
    """The longest chain below 3000."""
    def length(n):
        return jax.lax.while_loop(lambda s: s[0] != 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, 0))[1]

    return jax.lax.fori_loop(1, 3000, lambda i, best: jnp.maximum(best, length(i)), n * 0)


@loop("s32[]<7")
def linear_congruence(seed):
    return jax.lax.fori_loop(0, 100_000, lambda i, x: (x * 1103515245 + 12345) & 0x7FFFFFFF, seed)


@loop("f32[]>0")
def newton_root(x):
    """Square roots by Newton's method, one after the other."""
    def root(i, s):
        y = jax.lax.while_loop(lambda t: jnp.abs(t * t - x - i) > 1e-3 * (x + i), lambda t: 0.5 * (t + (x + i) / t), x + i)
        return s + y

    return jax.lax.fori_loop(0, 5000, root, jnp.float32(0))


@loop("f64[]>0")
def logistic_map(x):
    return jax.lax.fori_loop(0, 100_000, lambda i, x: 3.9 * x * (1 - x), x)


@loop("f64[3]")
def lorenz_rk4(y):
    def f(y):
        return jnp.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])

    def step(y, _):
        k1 = f(y)
        k2 = f(y + 0.005 * k1)
        k3 = f(y + 0.005 * k2)
        k4 = f(y + 0.01 * k3)
        y = y + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, y

    return jax.lax.scan(step, y, None, length=2000)[1]


@loop("f32[2000,4]")
def kalman_filter(z):
    a, h = jnp.eye(4) + 0.1 * jnp.eye(4, k=1), jnp.eye(4)

    def step(state, z):
        x, p = state
        x, p = a @ x, a @ p @ a.T + 0.01 * jnp.eye(4)
        d = jnp.diagonal(p) + 0.1
        g = p / d
        x = x + g @ (z - h @ x)
        return (x, p - g @ p), x

    return jax.lax.scan(step, (jnp.zeros(4), jnp.eye(4)), z)[1]


@loop("f32[5000]")
def exponential_average(x):
    return jax.lax.scan(lambda s, x: ((y := 0.9 * s + 0.1 * x), y), jnp.float32(0), x)[1]


@loop("f32[5000]", "f32[5]", "f32[5]")
def iir_filter(x, b, a):
    """A digital filter, direct form II transposed."""
    def step(z, x):
        y = b[0] * x + z[0]
        z = jnp.concatenate([z[1:], jnp.zeros(1)]) + b[1:] * x - 0.1 * a[1:] * y
        return z, y

    return jax.lax.scan(step, jnp.zeros(4), x)[1]


@loop("f32[300,64]", "f32[128,64]", "f32[128,128]", "f32[128]")
def rnn(x, w, u, b):
    def step(h, x):
        h = jnp.tanh(w @ x + u @ h * 0.1 + b)
        return h, h

    return jax.lax.scan(step, jnp.zeros(128), x)[1]


@loop("f32[200,8,32]", "f32[32,192]", "f32[64,192]", "f32[192]")
def gru(x, w, u, b):
    def step(h, x):
        xi, hi = x @ w + b, h @ u * 0.1
        xr, xz, xn = jnp.split(xi, 3, -1)
        hr, hz, hn = jnp.split(hi, 3, -1)
        r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
        n = jnp.tanh(xn + r * hn)
        h = (1 - z) * n + z * h
        return h, h

    return jax.lax.scan(step, jnp.zeros((8, 64)), x)[1]


@loop("f32[200,8,64]", "f32[64,256]", "f32[64,256]", "f32[256]")
def lstm(x, w, u, b):
    def step(state, x):
        h, c = state
        i, f, g, o = jnp.split(x @ w + h @ u * 0.1 + b, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return jax.lax.scan(step, (jnp.zeros((8, 64)), jnp.zeros((8, 64))), x)[1]


@loop("s32[32,32]<2")
def game_of_life(x):
    def step(_, x):
        n = sum(jnp.roll(x, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        return ((n == 3) | ((x == 1) & (n == 2))).astype(jnp.int32)

    return jax.lax.fori_loop(0, 200, step, x)


@loop("f32[500,16]", "f32[16,16]")
def viterbi(emission, transition):
    def step(score, e):
        all_ = score[:, None] + transition
        return all_.max(0) + e, all_.argmax(0)

    score, back = jax.lax.scan(step, emission[0], emission[1:])
    last = score.argmax()
    return jax.lax.scan(lambda s, b: (b[s], b[s]), last, back, reverse=True)[1]


@loop("s32[200]<4", "s32[200]<4")
def edit_distance(a, b):
    def row(before, x):
        def cell(left, t):
            diagonal, up, y = t
            d = jnp.minimum(jnp.minimum(left, up) + 1, diagonal + (x != y))
            return d, d

        first = before[0] + 1
        return (new := jnp.concatenate([first[None], jax.lax.scan(cell, first, (before[:-1], before[1:], b))[1]])), new[-1]

    return jax.lax.scan(row, jnp.arange(201), a)[1]


@loop("s32[50]<100", "s32[50]<1000")
def knapsack(weight, value):
    def item(best, wv):
        w, v = wv
        i = jnp.arange(500)
        return jnp.maximum(best, jnp.where(i >= w, best[jnp.maximum(i - w, 0)] + v, 0)), None

    return jax.lax.scan(item, jnp.zeros(500, jnp.int32), (weight, value))[0]


@loop("f32[8]")
def metropolis(x):
    def logp(x):
        return -0.5 * (x * x).sum() - 0.1 * (x ** 4).sum()

    def step(x, key):
        a, b = jax.random.split(key)
        y = x + 0.3 * jax.random.normal(a, x.shape)
        x = jnp.where(jnp.log(jax.random.uniform(b)) < logp(y) - logp(x), y, x)
        return x, x

    return jax.lax.scan(step, x, jax.random.split(jax.random.key(0), 500))[1]


@loop("f32[12,3]", "f32[12,3]")
def few_bodies(q, p):
    """Leapfrog steps of twelve bodies."""
    def force(q):
        d = q[:, None] - q[None]
        return -(d / ((d * d).sum(-1) + 0.05)[..., None] ** 1.5).sum(1)

    def step(s, _):
        q, p = s
        p = p + 0.005 * force(q)
        q = q + 0.01 * p
        return (q, p + 0.005 * force(q)), (p * p).sum()

    return jax.lax.scan(step, (q, p), None, length=200)


@loop("f32[64,64]", "f32[64]")
def conjugate_gradients(a, b):
    a = a @ a.T / 64 + jnp.eye(64)

    def step(s):
        i, x, r, p, rr = s
        ap = a @ p
        t = rr / (p @ ap)
        x, r = x + t * p, r - t * ap
        new = r @ r
        return i + 1, x, r, r + new / rr * p, new

    return jax.lax.while_loop(lambda s: (s[0] < 64) & (s[4] > 1e-10), step, (0, jnp.zeros(64), b, b, b @ b))[1]


@loop("f32[400]")
def damped_wave(u):
    """A string: an explicit step of its equation, 500 times."""
    def step(_, s):
        u, before = s
        lap = jnp.roll(u, 1) + jnp.roll(u, -1) - 2 * u
        return 1.99 * u - 0.99 * before + 0.2 * lap, u

    return jax.lax.fori_loop(0, 500, step, (u, u))[0]


@loop("f32[8,128]")
def bisection(c):
    """Roots of many cubics at once."""
    def step(_, s):
        lo, hi = s
        m = 0.5 * (lo + hi)
        up = m * m * m + m < c
        return jnp.where(up, m, lo), jnp.where(up, hi, m)

    return jax.lax.fori_loop(0, 60, step, (jnp.full_like(c, -10), jnp.full_like(c, 10)))[0]


@loop("f32[1000,6]", "f32[6]")
def stochastic_descent(x, w):
    """Regression by one example a step, with momentum."""
    def step(s, row):
        w, m = s
        g = 2 * (row @ w - 1) * row
        m = 0.9 * m + 0.1 * g
        return (w - 0.01 * m, m), None

    return jax.lax.scan(step, (w, jnp.zeros(6)), x)[0][0]


@loop("u32[]")
def xorshift(x):
    def step(_, s):
        x, total = s
        x = x ^ (x << 13)
        x = x ^ (x >> 17)
        x = x ^ (x << 5)
        return x, total + (x & 1)

    return jax.lax.fori_loop(0, 100_000, step, (x | 1, jnp.uint32(0)))[1]


@loop("f32[]>0")
def mandelbrot_point(c):
    """Escape times along a line, one point after the other."""
    def point(k, total):
        cr, ci = -2 + 0.003 * k, c * 0.1

        def body(s):
            zr, zi, n = s
            return zr * zr - zi * zi + cr, 2 * zr * zi + ci, n + 1

        return total + jax.lax.while_loop(lambda s: (s[0] * s[0] + s[1] * s[1] < 4) & (s[2] < 100), body, (jnp.float32(0), jnp.float32(0), 0))[2]

    return jax.lax.fori_loop(0, 1000, point, 0)


@loop("f64[1000]", "f64[1000]")
def thomas_solver(d, b):
    def forward(s, db):
        c, e = s
        d, b = db
        m = 1 / (4 + d * 0.1 - c)
        return (m, (b - e) * m), (m, (b - e) * m)

    _, (c, e) = jax.lax.scan(forward, (0.0, 0.0), (d, b))
    return jax.lax.scan(lambda x, ce: ((y := ce[1] - ce[0] * x), y), 0.0, (c, e), reverse=True)[1]


# --- later ones, timed only when the engine was done ---


@loop("f32[2000,12]", "f32[12]")
def perceptron(x, w):
    """Logistic regression by one example a step."""
    def step(w, row):
        p = jax.nn.sigmoid(row @ w)
        return w + 0.1 * (1.0 - p) * row, p

    return jax.lax.scan(step, w, x)


@loop("f32[48,48]", "f32[48]")
def power_iteration(a, v):
    a = a + a.T

    def step(_, v):
        v = a @ v
        return v / jnp.sqrt((v * v).sum())

    v = jax.lax.fori_loop(0, 300, step, v)
    return v @ (a @ v), v


@loop("f32[400,24]", "f32[24,24]", "f32[24]")
def forward_algorithm(emission, transition, first):
    """A hidden Markov model's likelihood, in logarithms."""
    transition = jax.nn.log_softmax(transition, -1)

    def step(a, e):
        a = jax.nn.logsumexp(a[:, None] + transition, 0) + e
        return a, None

    return jax.nn.logsumexp(jax.lax.scan(step, first, emission)[0])


@loop("f32[48,48]>0")
def floyd_warshall(d):
    return jax.lax.fori_loop(0, 48, lambda k, d: jnp.minimum(d, d[:, k][:, None] + d[k][None]), d)


@loop("s32[64]<1000000", "s32[64]<1000000")
def greatest_divisors(a, b):
    """Of many pairs, one after the other."""
    def gcd(ab):
        return jax.lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (ab[0], ab[1]))[0]

    return jax.lax.map(gcd, (a, b))


@loop("f32[64,64]")
def heat_plate(u):
    def step(_, u):
        inner = u[1:-1, 1:-1] + 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        return u.at[1:-1, 1:-1].set(inner)

    return jax.lax.fori_loop(0, 200, step, u)


@loop("f32[256,40]", "f32[96,40]", "f32[96,96]", "f32[96]")
def elman_network(x, w, u, b):
    def step(h, x):
        h = jax.nn.relu(x @ w.T + h @ u.T * 0.05 + b)
        return h, h.sum()

    return jax.lax.scan(step, jnp.zeros(96), x)


@loop("f32[300,16,24]", "f32[24,160]", "f32[40,160]", "f32[160]")
def lstm_of_sixteen(x, w, u, b):
    def step(state, x):
        h, c = state
        i, f, g, o = jnp.split(x @ w + h @ u * 0.1 + b, 4, -1)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return ((h := jax.nn.sigmoid(o) * jnp.tanh(c)), c), h[:, 0]

    return jax.lax.scan(step, (jnp.zeros((16, 40)), jnp.zeros((16, 40))), x)[1]


@loop("s32[300]<5", "s32[300]<5")
def common_subsequence(a, b):
    def row(before, x):
        def cell(left, t):
            up, diagonal, y = t
            d = jnp.where(x == y, diagonal + 1, jnp.maximum(left, up))
            return d, d

        diagonals = jnp.concatenate([jnp.zeros(1, jnp.int32), before[:-1]])
        return jax.lax.scan(cell, jnp.int32(0), (before, diagonals, b))[1], None

    return jax.lax.scan(row, jnp.zeros(300, jnp.int32), a)[0][-1]


@loop("f32[6]", "f32[6,6]")
def markov_sampler(weights, transition):
    """A chain of states drawn by their weights."""
    table = jnp.cumsum(jax.nn.softmax(transition + weights, -1), -1)

    def step(s, u):
        s = (table[s] < u).sum()
        return s, s

    return jax.lax.scan(step, jnp.zeros((), jnp.int32), jnp.linspace(0.01, 0.98, 1000))[1]


@loop("f64[4]")
def double_pendulum(y):
    def f(y):
        a, b, p, q = y
        c, s = jnp.cos(a - b), jnp.sin(a - b)
        m = 1 + s * s
        return jnp.stack([p, q, (-s * (p * p * c + q * q) - 2 * jnp.sin(a) + jnp.sin(b) * c) / m, (s * (2 * p * p + q * q * c) + 2 * jnp.sin(a) * c - 2 * jnp.sin(b)) / m])

    def step(y, _):
        k = f(y + 0.005 * f(y))
        return y + 0.01 * k, y[0]

    return jax.lax.scan(step, y, None, length=1000)


@loop("u32[]")
def sieve(seed):
    """How many numbers below 2000 have no divisor, by trial."""
    def is_prime(n):
        return jax.lax.while_loop(lambda d: (d * d <= n) & (n % d != 0), lambda d: d + 1, jnp.uint32(2))

    return jax.lax.fori_loop(2, 2000, lambda i, c: c + (is_prime(jnp.uint32(i)) ** 2 > jnp.uint32(i)), (seed & 1).astype(jnp.int32))


LATER = list(LOOPS)[list(LOOPS).index("perceptron"):]


def compare(xla, name, function, shapes, rounds):
    rng = np.random.default_rng(len(name))
    arrays = [argument(s, rng) for s in shapes]
    text = lowered(function, arrays)
    check_all_read(text, len(arrays))
    ours, theirs, args = xlac.compile(xlac.parse(text)), xla.compile(text), xla.put(arrays)
    row = dict(name=name, off=off_by(flat(ours(*arrays)), xla.call(theirs, args)), steps=ours.steps)
    compiles = {"xlac": lambda: xlac.compile(xlac.parse(text)), "xla": lambda: xla.compile(text)}
    calls = {"xlac": lambda: ours(*arrays), "xla": lambda: xla.call(theirs, args)}
    return dict(row, compile=times_of(compiles, 2, 0.001), call=times_of(calls, rounds, 0.004))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--set", choices=["known", "kinds", "fresh", "new"], default="known")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--json")
    options = parser.parse_args()
    CLOCK["now"] = time.process_time
    xla, rows = Xla(), []
    for name, (function, shapes) in dict(known=LOOPS, kinds=KINDS, fresh=FRESH, new=NEW)[options.set].items():
        if options.only and name not in options.only:
            continue
        rows.append(compare(xla, name, function, shapes, options.rounds))
        show(rows[-1])
    groups = {"": [r for r in rows if r["name"] not in LATER], "later ones, ": [r for r in rows if r["name"] in LATER]}
    for which, pick, what in [(g, *p) for g in groups if groups[g] for p in ((min, "minimum"), (statistics.median, "median"))]:
        ratios = [ratio(r["call"], pick) for r in groups[which]]
        print(f"{which}call, {what}: geometric mean of the ratios {mean(ratios):.2f}, slower on {sum(r < 1 for r in ratios)} of {len(ratios)}, least {min(ratios):.2f}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, default=float))


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
