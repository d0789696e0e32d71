"""What the cache of compiled programs wins: the table of docs/cache.md.

  python benchmarks/cache.py [--ops 1 10 100 1000 10000] [--rounds 5]

Processor time from text to executable, the least of some rounds: compiled, compiled and kept, read."""
import argparse
import os
import tempfile
import time

import numpy as np

import xlac

BINARY, UNARY = ("add", "multiply", "subtract", "maximum"), ("tanh", "exponential", "negate", "sine", "abs")


def chain(n, seed=1):
    """HLO of n ops on f32[256,256] that read each other's results, mostly the last ones; about one in 20 is a product."""
    rng, names, lines = np.random.default_rng(seed), ["p0", "p1"], ["HloModule chain", "ENTRY e {"]
    lines += [f"  p{i} = f32[256,256] parameter({i})" for i in (0, 1)]
    for i in range(n):
        kind, near = rng.integers(20), names[-20:]
        a, b = names[-1] if rng.random() < 0.7 else near[rng.integers(len(near))], near[rng.integers(len(near))]
        op = f"{UNARY[kind % 5]}({a})" if 0 < kind < 8 else f"{BINARY[kind % 4]}({a}, {b})"
        lines.append(f"  v{i} = f32[256,256] " + (op if kind else f"dot({a}, {b}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"))
        names.append(f"v{i}")
    return "\n".join([*lines, f"  ROOT r = f32[256,256] add({names[-1]}, {names[-2]})", "}"])


def least(what, rounds, before=lambda: None):
    times = []
    for _ in range(rounds):
        before()
        start = time.process_time()
        what()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ops", type=int, nargs="*", default=[1, 10, 100, 1000, 10000])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print("| ops | compile | compile and keep | read | ratio |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for n in options.ops:
            text = chain(n)
            os.environ["XLAC_CACHE"] = ""
            plain = least(lambda: xlac.compile(text), options.rounds)
            xlac.cache.enable(folder)
            kept = least(lambda: xlac.compile(text), options.rounds, xlac.cache.clear)
            read = least(lambda: xlac.compile(text), options.rounds)
            print(f"| {n:,} | {plain:.2f} | {kept:.2f} | {read:.2f} | {plain / read:.1f} |", flush=True)


if __name__ == "__main__":
    main()
