"""Kinds of small programs in which xlac was slower than XLA, beside jaxlib's XLA in one process, round by round: an iota along a
major dimension, a conversion of f32 to f16, approximate top-k as JAX lowers it for CPUs, random numbers of a gamma distribution.

    python benchmarks/small_kinds.py [ROUNDS] [NAME ...]

For each program and number of threads: the best and the median time of a call in microseconds, of xlac and of XLA, and their ratio
(above 1: xlac is slower). XLA is bound to as many cores as xlac has threads."""
import os
import statistics
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
THREADS = (1, 2)


def measured(threads):
    """Runs in a process of its own: XLA makes its threads once, for the cores that it may use then."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import jax
    import jax.numpy as jnp
    import numpy as np

    import xlac

    rounds, names = int(sys.argv[1]) if len(sys.argv) > 1 else 30, sys.argv[2:]
    x = np.random.default_rng(0).normal(size=(64, 8192)).astype(np.float32)
    programs = {
        "iota, major": (lambda: jax.lax.broadcasted_iota(jnp.float32, (1024, 1024), 0), ()),
        "iota, minor": (lambda: jax.lax.broadcasted_iota(jnp.float32, (1024, 1024), 1), ()),
        "f32 to f16": (lambda x: x.astype(jnp.float16), (x,)),
        "approx_max_k": (lambda x: jax.lax.approx_max_k(x, 16), (x,)),
        "gamma": (lambda key: jax.random.gamma(jax.random.wrap_key_data(key), 2.5, (4096,)), (np.array([0, 7], np.uint32),)),
    }
    for name, (function, args) in programs.items():
        if names and name not in names:
            continue
        lowered = jax.jit(function).lower(*args)
        theirs, ours = lowered.compile(), xlac.compile(xlac.parse(lowered.as_text()), threads=threads)
        placed = [jax.device_put(a) for a in args]
        times = ([], [])
        for _ in range(rounds + 2):
            for run, list_ in ((lambda: ours(*args), times[0]), (lambda: jax.block_until_ready(theirs(*placed)), times[1])):
                start = time.perf_counter()
                run()
                list_.append((time.perf_counter() - start) * 1e6)
        own, other = (t[2:] for t in times)
        print(f"{name:14s} {threads} thread{'s'[:threads > 1]:1s}  xlac {min(own):9.1f} {statistics.median(own):9.1f}   XLA {min(other):9.1f} "
              f"{statistics.median(other):9.1f}   ratio {min(own) / min(other):5.2f} {statistics.median(own) / statistics.median(other):5.2f}", flush=True)


if __name__ == "__main__":
    for threads in THREADS:
        child = os.fork()
        if child == 0:
            measured(threads)
            os._exit(0)
        os.waitpid(child, 0)
