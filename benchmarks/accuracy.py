"""Errors of elementary functions in units in the last place, by backend and numerics: the tables of docs/numerics.md.

  python benchmarks/accuracy.py [--stride 251] [--only NAME ...] [--backends ...] [--samples 8000]

f32: every `stride`-th of all bit patterns, 1: all of them, which takes some fifteen minutes a function. The reference is the function in f64,
computed by NumPy or libm where they have it, in chunks. f64 is compared with mpmath on samples. Results below the smallest normal number are
left out; the largest error of any backend counts. Backends: the interpreter, the vector machine (XLAC_NATIVE=0), machine code for AVX2 and AVX-512; "differ" counts arguments at which
a backend's strict result is not the interpreter's to the bit."""
import argparse
import os

import mpmath
import numpy as np

import xlac

FUNCTIONS = {"exponential": mpmath.exp, "exponential-minus-one": mpmath.expm1, "log": mpmath.log, "log-plus-one": mpmath.log1p, "tanh": mpmath.tanh,
             "logistic": lambda x: 1 / (1 + mpmath.exp(-x)), "sine": mpmath.sin, "cosine": mpmath.cos, "tan": mpmath.tan, "erf": mpmath.erf,
             "sqrt": mpmath.sqrt, "rsqrt": lambda x: 1 / mpmath.sqrt(x), "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
             "asin": mpmath.asin, "acos": mpmath.acos, "atan": mpmath.atan, "sinh": mpmath.sinh, "cosh": mpmath.cosh, "asinh": mpmath.asinh,
             "acosh": mpmath.acosh, "atanh": mpmath.atanh}
# f64 by somebody else's functions, which are off by less than 1e-8 of a unit of f32; "erf" has none here, and is xlac's own of f64.
WIDE = {"exponential": np.exp, "exponential-minus-one": np.expm1, "log": np.log, "log-plus-one": np.log1p, "tanh": np.tanh,
        "logistic": lambda x: 1 / (1 + np.exp(-x)), "sine": np.sin, "cosine": np.cos, "tan": np.tan, "sqrt": np.sqrt,
        "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
        "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh}
BACKENDS = {"interpreter": {}, "vector machine": {"XLAC_NATIVE": "0"}, "avx2": {"XLAC_MAX_ISA": "avx2"}, "avx512": {"XLAC_MAX_ISA": "avx512"}}
CHUNK = 1 << 22


def program(opcode, t, n, backend, numerics):
    """Compiled for the backend: what it was compiled for stays with it."""
    text = f"HloModule m\nENTRY e {{\n  x = {t}[{n}] parameter(0)\n  ROOT r = {t}[{n}] {opcode}(x)\n}}\n"
    before = {name: os.environ.get(name) for name in ("XLAC_NATIVE", "XLAC_MAX_ISA")}
    os.environ.update(BACKENDS[backend])
    try:
        return xlac.compile(text, numerics=numerics, threads=1, device="interp" if backend == "interpreter" else "cpu")
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def patterns(stride):
    """Chunks of f32 numbers, CHUNK at a time, the last one filled up with ones."""
    for first in range(0, 1 << 32, CHUNK * stride):
        bits = np.arange(first, min(first + CHUNK * stride, 1 << 32), stride, dtype=np.uint64).astype(np.uint32)
        yield np.concatenate([bits.view(np.float32), np.ones(CHUNK - bits.size, np.float32)])


def error(got, exact, rounded):
    """The largest, in units in the last place of the rounded result, and whether NaN and infinities are where they must be."""
    fit = np.isfinite(rounded) & (np.abs(exact) >= 2.0**-126)
    with np.errstate(all="ignore"):
        off = np.abs(got[fit].astype(np.float64) - exact[fit]) / np.spacing(np.abs(rounded[fit]))
    special = np.array_equal(np.isnan(got), np.isnan(exact)) and np.array_equal(np.isinf(got), np.isinf(rounded))
    return (off.max() if off.size else 0.0), special


def worst_f32(opcode, stride, backends):
    """{(backend, numerics): [largest error, arguments that differ from the interpreter, whether special results are right]}"""
    ways = [(b, n) for b in backends for n in (("strict",) if b == "interpreter" else ("strict", "fast"))]
    exes = {way: program(opcode, "f32", CHUNK, *way) for way in ways}
    own = None if opcode in WIDE else program(opcode, "f64", CHUNK, "avx512", "strict")
    found = {way: [0.0, 0, True] for way in ways}
    for x in patterns(stride):
        with np.errstate(all="ignore"):
            wide = x.astype(np.float64)
            exact = own(wide) if own else WIDE[opcode](wide)
            rounded = exact.astype(np.float32)
        reference = None
        for way, exe in exes.items():
            got = exe(x)
            reference = got if reference is None else reference
            off, special = error(got, exact, rounded)
            row = found[way]
            row[0], row[2] = max(row[0], off), row[2] and special
            row[1] += int(((got.view(np.uint32) != reference.view(np.uint32)) & ~(np.isnan(got) & np.isnan(reference))).sum())
    return found


def worst_f64(opcode, x, backends):
    """{numerics: the largest error of any backend}, and at how many arguments a strict result is not the interpreter's."""
    ways = [(b, n) for b in backends for n in (("strict",) if b == "interpreter" else ("strict", "fast"))]
    results = {way: program(opcode, "f64", x.size, *way)(x) for way in ways}
    reference, worst, off = results[ways[0]], {"strict": 0.0, "fast": 0.0}, 0
    with mpmath.workprec(160):
        for i, v in enumerate(x):
            exact = None
            for (_, numerics), got in results.items():
                r = got[i]
                off += numerics == "strict" and not (r == reference[i] or (np.isnan(r) and np.isnan(reference[i])))
                if np.isfinite(r) and abs(r) >= 2.0**-1022:  # real where the result is a number: outside its domain a function is NaN
                    exact = FUNCTIONS[opcode](mpmath.mpf(float(v))) if exact is None else exact
                    worst[numerics] = max(worst[numerics], float(abs(mpmath.mpf(float(r)) - exact) / mpmath.mpf(float(np.spacing(abs(r))))))
    return worst, off


def samples(n):
    rng = np.random.default_rng(1)
    anything = rng.integers(0, np.iinfo(np.uint64).max, n // 2, dtype=np.uint64).view(np.float64)
    sizes = rng.choice([-1, 1], n // 4) * np.exp(rng.uniform(-40, 6, n // 4))
    x = np.concatenate([anything, sizes, rng.uniform(-20, 20, n // 4)])
    return x[np.isfinite(x) & (np.abs(x) < 1e6)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--stride", type=int, default=251)
    parser.add_argument("--samples", type=int, default=8000, help="of f64; 0: none")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--backends", nargs="*", default=list(BACKENDS), choices=BACKENDS)
    options = parser.parse_args()
    others = [b for b in options.backends if b != "interpreter"]
    columns = ["f32 strict", "differ", *(f"f32 fast, {b}" for b in others)]
    columns += [*(["f64 strict", "f64 differ", "f64 fast"] if options.samples else []), "NaN, infinities"]
    print("| function | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
    for opcode in FUNCTIONS:
        if options.only and opcode not in options.only:
            continue
        found = worst_f32(opcode, options.stride, ["interpreter", *others])
        strict = [row for (_, numerics), row in found.items() if numerics == "strict"]
        cells = [f"{max(row[0] for row in strict):.2f}", str(sum(row[1] for row in strict))]
        cells += [f"{found[b, 'fast'][0]:.2f}" for b in others]
        if options.samples:
            wide, differ = worst_f64(opcode, samples(options.samples), ["interpreter", *others])
            cells += [f"{wide['strict']:.2f}", str(differ), f"{wide['fast']:.2f}"]
        print(f"| {opcode} | " + " | ".join([*cells, "right" if all(row[2] for row in found.values()) else "WRONG"]) + " |", flush=True)


if __name__ == "__main__":
    main()
