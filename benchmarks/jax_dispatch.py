"""JAX on xlac beside JAX on XLA:CPU, in one process: what a call of a jitted function costs, and what compiling does.

    JAX_PLATFORMS=xlac,cpu python benchmarks/jax_dispatch.py [rounds]

Calls: microseconds from the call to its return, and to its result, the least of some rounds, the two in turn. Compilation: from the lowered
program to the executable, so without tracing; each program is compiled anew for each platform."""
import math
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

CALLS = 2000


def layer(p, x):
    return jax.nn.gelu(x @ p["w"] + p["b"])


def attention(x, w):
    q, k, v = jnp.split(x @ w, 3, -1)
    return jax.nn.softmax(q @ k.T / math.sqrt(q.shape[-1])) @ v


def loop(x):
    return jax.lax.fori_loop(0, 10, lambda i, v: jnp.sin(v) + i, x)


def programs():
    """(name, function, arguments)"""
    f = np.float32
    w, x = np.ones((64, 64), f), np.ones((32, 64), f)
    p = {"w": w, "b": np.ones(64, f)}
    yield "one add", lambda a: a + 1, (f(1),)
    yield "ten arguments", lambda *a: sum(a), tuple(f(i) for i in range(10))
    yield "layer", layer, (p, x)
    yield "gradient of a layer", jax.grad(lambda p, x: layer(p, x).sum()), (p, x)
    yield "attention", attention, (x, np.ones((64, 192), f))
    yield "loop", loop, (x,)
    yield "normal", lambda k: jax.random.normal(k, (64,)), (np.zeros(2, np.uint32),)
    yield "sort", jnp.sort, (np.arange(1000, dtype=f)[::-1].copy(),)
    yield "eigh", jnp.linalg.eigh, (np.eye(16, dtype=f),)


def time_calls(function, arguments, wait):
    start = time.perf_counter()
    for _ in range(CALLS):
        out = function(*arguments)
        if wait:
            jax.block_until_ready(out)
    elapsed = (time.perf_counter() - start) / CALLS
    jax.block_until_ready(out)
    return elapsed * 1e6


def time_compile(function, arguments, n):
    best = math.inf
    for i in range(n):
        def anew(*a, i=i):  # another function, which no cache knows
            return function(*a)
        lowered = jax.jit(anew).lower(*arguments)
        start = time.perf_counter()
        lowered.compile()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def main(rounds):
    devices = {"xlac": jax.devices("xlac")[0], "XLA": jax.devices("cpu")[0]}
    print(f"{'program':22}{'call us':>18}{'to result us':>20}{'compile ms':>20}   (xlac, XLA)")
    ratios = []
    for name, function, arguments in programs():
        row = {}
        for label, device in devices.items():
            with jax.default_device(device):
                row[label] = [jax.jit(function), jax.device_put(arguments, device), math.inf, math.inf, math.inf]
                jax.block_until_ready(row[label][0](*row[label][1]))
        for _ in range(rounds):
            for label, device in devices.items():
                r = row[label]
                with jax.default_device(device):
                    r[2], r[3] = min(r[2], time_calls(r[0], r[1], False)), min(r[3], time_calls(r[0], r[1], True))
                    r[4] = min(r[4], time_compile(function, r[1], 2))
        ours, theirs = row["xlac"][2:], row["XLA"][2:]
        ratios.append([o / t for o, t in zip(ours, theirs)])
        print(f"{name:22}" + "".join(f"{o:11.2f}{t:9.2f}" for o, t in zip(ours, theirs)))
    print(f"{'geometric mean':22}" + "".join(f"{math.exp(sum(math.log(r[i]) for r in ratios) / len(ratios)):20.3f}" for i in range(3)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
