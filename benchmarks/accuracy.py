"""Errors of elementary functions in units in the last place, by numerics: the table of docs/numerics.md.

  python benchmarks/accuracy.py [--samples 4000000]

Arguments of f32 are bit patterns drawn at random and numbers of common sizes; the reference is the function in f64. f64 is compared with
mpmath on fewer samples. Results below the smallest normal number are left out."""
import argparse

import mpmath
import numpy as np

import xlac

FUNCTIONS = {"exponential": mpmath.exp, "exponential-minus-one": mpmath.expm1, "log": mpmath.log, "log-plus-one": mpmath.log1p, "tanh": mpmath.tanh,
             "logistic": lambda x: 1 / (1 + mpmath.exp(-x)), "sine": mpmath.sin, "cosine": mpmath.cos, "tan": mpmath.tan, "erf": mpmath.erf,
             "sqrt": mpmath.sqrt, "rsqrt": lambda x: 1 / mpmath.sqrt(x), "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x))}


def run(opcode, t, x, numerics):
    text = f"HloModule m\nENTRY e {{\n  x = {t}[{x.size}] parameter(0)\n  ROOT r = {t}[{x.size}] {opcode}(x)\n}}\n"
    return xlac.compile(text, numerics=numerics)(x)


def samples(dtype, n, rng):
    bits = {4: np.uint32, 8: np.uint64}[np.dtype(dtype).itemsize]
    anything = rng.integers(0, np.iinfo(bits).max, n // 2, dtype=bits).view(dtype)
    sizes = (rng.choice([-1, 1], n // 4) * np.exp(rng.uniform(-40, 6, n // 4))).astype(dtype)
    x = np.concatenate([anything, sizes, rng.uniform(-20, 20, n // 4).astype(dtype)])
    return x[np.isfinite(x)]


def worst_f32(opcode, numerics, x):
    with np.errstate(all="ignore"):
        exact = run(opcode, "f64", x.astype(np.float64), "strict")
        rounded = exact.astype(np.float32)
    got = run(opcode, "f32", x, numerics)
    fit = np.isfinite(rounded) & (np.abs(exact) >= 2.0**-126)
    return (np.abs(got[fit].astype(np.float64) - exact[fit]) / np.spacing(np.abs(rounded[fit]))).max()


def worst_f64(opcode, numerics, x):
    got, worst = run(opcode, "f64", x, numerics), 0.0
    with mpmath.workprec(160):
        for v, r in zip(x, got):
            if np.isfinite(r) and abs(r) >= 2.0**-1022:
                exact = FUNCTIONS[opcode](mpmath.mpf(float(v)))
                worst = max(worst, float(abs(mpmath.mpf(float(r)) - exact) / mpmath.mpf(float(np.spacing(abs(r))))))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=4_000_000)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    wide, few = samples(np.float32, options.samples, rng), samples(np.float64, min(options.samples, 8000), rng)
    few = few[np.abs(few) < 1e6]
    print("| function | f32 strict | f32 fast | f64 strict | f64 fast |\n|---|---|---|---|---|")
    for opcode in FUNCTIONS:
        cells = [worst_f32(opcode, n, wide) for n in ("strict", "fast")] + [worst_f64(opcode, n, few) for n in ("strict", "fast")]
        print(f"| {opcode} | " + " | ".join(f"{c:.2f}" for c in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
