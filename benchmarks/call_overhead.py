"""What a call of a tiny program costs from Python, beside jitted JAX and the same in plain NumPy, in one run.

  python benchmarks/call_overhead.py [--rounds 7] [--arrays 1 2 4 8 16]

A program of n arrays of 4 floats adds 1 to each and returns all of them. Every round times all sides in turn; minimum and median over
the rounds are printed in microseconds a call, and what each further array costs."""
import argparse
import statistics
import time

import numpy as np


def per_call(call, args, budget=0.02, clock=time.perf_counter):
    """Microseconds a call, of as many calls as take `budget` seconds."""
    n = 1
    while True:
        start = clock()
        for _ in range(n):
            call(*args)
        spent = clock() - start
        if spent > budget:
            return 1e6 * spent / n
        n *= 4


def program(n):
    import xlac

    lines = ["  one = f32[] constant(1)", "  ones = f32[4] broadcast(one), dimensions={}"]
    lines += [f"  x{i} = f32[4] parameter({i})\n  y{i} = f32[4] add(x{i}, ones)" for i in range(n)]
    lines.append(f"  ROOT r = ({', '.join(['f32[4]'] * n)}) tuple({', '.join(f'y{i}' for i in range(n))})")
    return xlac.compile(xlac.parse("HloModule tiny\nENTRY e {\n" + "\n".join(lines) + "\n}"))


def sides(n):
    import jax

    exe, jitted = program(n), jax.jit(lambda *xs: tuple(x + 1 for x in xs))
    arrays = [np.ones(4, np.float32) for _ in range(n)]
    ours, out = exe(*arrays), [np.empty(4, np.float32) for _ in range(n)]
    assert all((a == b).all() for a, b in zip(ours, jitted(*arrays)))
    on_device = [jax.device_put(a) for a in arrays]
    return {"xlac": (exe, arrays), "xlac out=": (lambda *xs: exe(*xs, out=out), arrays), "jax, NumPy arrays in": (jitted, arrays),
            "jax, own arrays in": (jitted, on_device), "NumPy": (lambda *xs: tuple(x + 1 for x in xs), arrays),
            "np.empty only": (lambda *xs: tuple(np.empty(4, np.float32) for _ in xs), arrays)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--arrays", type=int, nargs="*", default=[1, 2, 4, 8, 16])
    options = parser.parse_args()
    least = {}
    for n in options.arrays:
        calls, found = sides(n), {}
        for _ in range(options.rounds):
            for name, (call, args) in calls.items():
                found.setdefault(name, []).append(per_call(call, args))
        for name, times in found.items():
            least.setdefault(name, []).append(min(times))
        print(f"{n:2} arrays: " + ", ".join(f"{name} {min(t):.2f} (median {statistics.median(t):.2f})" for name, t in found.items()), flush=True)
    if len(options.arrays) > 1:
        span = options.arrays[-1] - options.arrays[0]
        print("each further array: " + ", ".join(f"{name} {(t[-1] - t[0]) / span:.2f}" for name, t in least.items()))


if __name__ == "__main__":
    main()
