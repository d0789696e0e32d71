"""Loops of other kinds again, each timed once before anything was mended for it: `python benchmarks/loops.py --set new`. Each is (function,
shapes of its arguments)."""

import jax
import jax.numpy as jnp
from loop_set import loop_set

NEW, loop = loop_set()


@loop("f32[400,3]", "f32[6,6]", "f32[3,6]", "f32[6]")
def joseph_filter(z, a, h, x):
    """A Kalman filter of six states and three measurements; the gain by Cramer's rule, the covariance in Joseph's form."""

    def inverse(m):
        a, b, c = m
        cross = jnp.stack([jnp.cross(b, c), jnp.cross(c, a), jnp.cross(a, b)], 1)
        return cross / (a * cross[:, 0]).sum()

    def step(s, z):
        x, p = s
        x, p = f @ x, f @ p @ f.T + 0.01 * jnp.eye(6)
        k = p @ h.T @ inverse(h @ p @ h.T + 0.1 * jnp.eye(3))
        left = jnp.eye(6) - k @ h
        return (x + k @ (z - h @ x), left @ p @ left.T + 0.1 * k @ k.T), x

    f = jnp.eye(6) + 0.01 * a
    return jax.lax.scan(step, (x, jnp.eye(6)), z)[1]


@loop("f32[120]>0", "f32[120]>0")
def single_server_queue(arrive, serve):
    """Waiting times, idle time and the longest queue."""

    def step(s, t):
        wait, idle, longest = s
        gap, work = t
        slack = wait + work - gap
        wait = jnp.maximum(slack, 0)
        return (wait, idle + jnp.maximum(-slack, 0), jnp.maximum(longest, wait)), wait

    return jax.lax.scan(step, (jnp.float32(0), jnp.float32(0), jnp.float32(0)), (arrive, serve))


@loop("f64[8]", "f64[8]")
def newton_system(x, c):
    """Newton's method for a tridiagonal system of eight unknowns, by elimination without pivots, until it is solved."""

    def residual(x):
        return x**3 + 3 * x - jnp.roll(x, 1) * 0.5 - c

    def solve(j, r):
        def eliminate(k, s):
            a, b = s
            f = jnp.where(jnp.arange(8) > k, a[:, k] / a[k, k], 0)
            return a - f[:, None] * a[k], b - f * b[k]

        a, b = jax.lax.fori_loop(0, 8, eliminate, (j, r))

        def back(i, x):
            k = 7 - i
            return x.at[k].set((b[k] - a[k] @ x) / a[k, k])

        return jax.lax.fori_loop(0, 8, back, jnp.zeros(8))

    def step(s):
        x, _, n = s
        r = residual(x)
        return x - solve(jax.jacfwd(residual)(x), r), jnp.abs(r).max(), n + 1

    return jax.lax.while_loop(lambda s: (s[1] > 1e-10) & (s[2] < 50), step, (x, jnp.float64(1), 0))


@loop("f32[60,32]", "f32[32]")
def scan_of_prefix_scans(x, h):
    """An associative scan of a linear recurrence over 32 places in each step."""

    def combine(a, b):
        return a[0] * b[0], b[0] * a[1] + b[1]

    def step(h, x):
        a = jax.nn.sigmoid(x + h)
        h = jax.lax.associative_scan(combine, (a, x))[1]
        return h * 0.5, h.sum()

    return jax.lax.scan(step, h, x)


@loop("u8[256]<2")
def rule_110(cells):
    """A cellular automaton in one dimension, by a table."""
    table = jnp.array([0, 1, 1, 1, 0, 1, 1, 0], jnp.uint8)

    def step(c, _):
        k = 4 * jnp.roll(c, 1).astype(jnp.int32) + 2 * c + jnp.roll(c, -1)
        return table[k], c.sum(dtype=jnp.int32)

    return jax.lax.scan(step, cells, None, length=128)


@loop("s32[]<1000")
def philox_walk(seed):
    """Positions by an own generator of two rounds of multiplication and xor, folded at walls."""

    def step(i, s):
        at, low, high = s
        c = jnp.uint32(i) * jnp.uint32(0xD2511F53) ^ jnp.uint32(seed)
        c = (c ^ (c >> 15)) * jnp.uint32(0x85EBCA6B)
        c = (c ^ (c >> 13)) * jnp.uint32(0xC2B2AE35)
        at = at + jnp.where((c >> 31) == 1, 1, -1)
        at = jnp.where(jnp.abs(at) > 40, 80 * jnp.sign(at) - at, at)
        return at, jnp.minimum(low, at), jnp.maximum(high, at)

    return jax.lax.fori_loop(0, 20_000, step, (0, 0, 0))


@loop("f32[48,12]", "f32[12,12]")
def viterbi_of_beams(emission, transition):
    """The three best paths into each of twelve states, by two partial sorts in each step."""

    def step(score, e):
        every = score[:, :, None] + transition[:, None, :]
        best, k = jax.lax.top_k(every.reshape(36, 12).T, 3)
        return best.T.reshape(3, 12).T + e[:, None], k

    return jax.lax.scan(step, jnp.zeros((12, 3)).at[:, 1:].set(-1e9), emission)


@loop("f32[40,24]", "f32[50,24]")
def time_warp(a, b):
    """The cost of the best alignment of two series of vectors: rows in turn, cells in turn within one."""

    def row(before, x):
        cost = ((b - x) ** 2).sum(-1)

        def cell(left, t):
            up, diagonal, c = t
            d = c + jnp.minimum(jnp.minimum(left, up), diagonal)
            return d, d

        diagonals = jnp.concatenate([jnp.full(1, jnp.inf), before[:-1]])
        now = jax.lax.scan(cell, jnp.float32(jnp.inf), (before, diagonals, cost))[1]
        return now, now[-1]

    first = jnp.cumsum(((b - a[0]) ** 2).sum(-1))
    return jax.lax.scan(row, first, a[1:])
