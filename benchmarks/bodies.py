"""Ops that call computations, and what JAX makes of sorting, searching and segments, beside XLA:CPU in the same process.

  python benchmarks/bodies.py [--rounds 7] [--only NAME ...]

Needs the `test` extra. Every round times both sides in turn on the same arguments; minimum and median over the rounds are printed with
the ratio of the minima (above 1: xlac is faster), and what steps of the program the interpreter evaluates, if any."""
import argparse
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import xlac

N = 1 << 20
RNG = np.random.default_rng(0)
KEYS = RNG.integers(0, 1000, N).astype(np.int32)
VALUES = RNG.standard_normal(N).astype(np.float32)
ROWS = VALUES.reshape(1024, 1024)
PLACES = RNG.integers(0, 100000, N).astype(np.int32)
COUNTED = np.broadcast_to(np.arange(1024, dtype=np.int32), (1024, 1024)).copy()


def later_of(a, b):
    """The larger value, of equal ones that of the smaller place: not JAX's own argmax."""
    better = (b[0] > a[0]) | ((b[0] == a[0]) & (b[1] < a[1]))
    return jnp.where(better, b[0], a[0]), jnp.where(better, b[1], a[1])


def log_sum(a, b):
    m = jnp.maximum(a[0], b[0])
    return m, a[1] * jnp.exp(a[0] - m) + b[1] * jnp.exp(b[0] - m)


def reduced(operands, init, body):
    return lax.reduce(operands, init, body, (1,))


def pool_gradient(x):
    def pooled(x):
        return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").astype(jnp.float32).sum()
    return jax.grad(pooled)(x)


PROGRAMS = {
    "sort_by_two_keys": (lambda a, b: lax.sort((a, b), num_keys=2), KEYS, VALUES),
    "scatter_mul": (lambda x, i, u: x.at[i].mul(u), np.ones(100000, np.float32), PLACES, VALUES),
    "scatter_apply": (lambda x, i: x.at[i].apply(lambda v: v * 0.5 + 1), np.ones(100000, np.float32), PLACES),
    "segment_sum": (lambda d, s: jax.ops.segment_sum(d, s, 1000), VALUES, KEYS),
    "segment_max": (lambda d, s: jax.ops.segment_max(d, s, 1000), VALUES, KEYS),
    "segment_sum_of_rows": (lambda d, s: jax.ops.segment_sum(d, s, 1000), VALUES.reshape(-1, 64), KEYS[:N // 64]),
    "argmax_of_own": (lambda x, i: reduced((x, i), (np.float32(-np.inf), np.int32(0)), later_of), ROWS, COUNTED),
    "argmax_of_own_one_row": (lambda x, i: reduced((x, i), (np.float32(-np.inf), np.int32(0)), later_of), VALUES[None], KEYS[None]),
    "sum_and_squares": (lambda x: reduced((x, x * x), (np.float32(0), np.float32(0)), lambda a, b: (a[0] + b[0], a[1] + b[1])), ROWS),
    "log_sum_exp_pairs": (lambda x: reduced((x, jnp.ones_like(x)), (np.float32(-np.inf), np.float32(0)), log_sum), ROWS),
    "max_pool_gradient_bf16": (pool_gradient, VALUES[:8 * 64 * 64 * 16].reshape(8, 64, 64, 16).astype(jnp.bfloat16)),
    "unique": (lambda x: jnp.unique(x, size=1000), KEYS),
    "searchsorted": (jnp.searchsorted, np.sort(VALUES), VALUES[:100000]),
    "searchsorted_by_sort": (lambda a, v: jnp.searchsorted(a, v, method="sort"), np.sort(VALUES)[:100000], VALUES[:100000]),
    "median": (lambda x: jnp.median(x, axis=1), ROWS),
    "percentile": (lambda x: jnp.percentile(x, jnp.array([5.0, 50.0, 95.0]), axis=1), ROWS),
    "lexsort": (lambda a, b: jnp.lexsort((a, b)), VALUES, KEYS),
    "bincount": (lambda x: jnp.bincount(x, length=1000), KEYS),
}


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def same(a, b):
    wide = [np.asarray(v).astype(np.float64) for v in (a, b)]
    return np.allclose(*wide, rtol=1e-4, atol=1e-4, equal_nan=True)


def run(name, rounds):
    function, *args = PROGRAMS[name]
    jitted = jax.jit(function)
    text = str(jitted.lower(*args).compiler_ir("stablehlo"))
    executable = xlac.compile(xlac.parse(text, format="mlir"), threads=2)
    device = [jnp.asarray(a) for a in args]
    want, got = jax.tree.leaves(jitted(*device)), executable(*args)
    ok = all(same(g, w) for g, w in zip(got if isinstance(got, tuple) else (got,), want))
    times = [(seconds(lambda: jax.block_until_ready(jitted(*device))), seconds(lambda: executable(*args))) for _ in range(rounds)]
    xla, own = zip(*times)
    print(f"{name:24} XLA {min(xla) * 1e3:9.3f} {statistics.median(xla) * 1e3:9.3f} ms   xlac {min(own) * 1e3:9.3f} "
          f"{statistics.median(own) * 1e3:9.3f} ms   ratio {min(xla) / min(own):6.2f}  {'' if ok else 'NUMBERS DIFFER '}"
          f"interpreted steps: {executable.steps['interpreted']}", flush=True)
    return min(xla) / min(own)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="*", choices=PROGRAMS, default=list(PROGRAMS))
    options = parser.parse_args()
    ratios = [run(name, options.rounds) for name in options.only]
    print(f"geometric mean of {len(ratios)} ratios: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
