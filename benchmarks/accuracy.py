"""Errors of elementary functions in units in the last place, by backend and numerics: the tables of docs/numerics.md.

  python benchmarks/accuracy.py [--stride 251] [--only NAME ...] [--backends ...] [--samples 8000] [--write]

f32: every `stride`-th of all bit patterns; `--stride 1` goes over all 2^32, which takes half a minute to five minutes of processor time
a function and backend. The
reference is the function in f64, by NumPy, libm or SciPy, rounded to f32: where a result is that, it is off by half a unit at most, and the
others are measured. Strict results may be subnormal, of fast ones those below the smallest normal number are left out. f64 is compared with
mpmath on samples. Backends: machine code for AVX-512 and AVX2, the vector machine (XLAC_NATIVE=0), the interpreter; "differ" counts arguments
at which a strict result of one is not that of the first, to the bit. A row is kept in build/accuracy.jsonl with what made it, and --write puts
the rows there into docs/numerics.md."""
import argparse
import json
import os
import pathlib
import sys
import time

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
BACKENDS = {"AVX-512": {"XLAC_MAX_ISA": "avx512"}, "AVX2": {"XLAC_MAX_ISA": "avx2"}, "vector machine": {"XLAC_NATIVE": "0"}, "interpreter": {}}
CHUNK = 1 << 16
ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "build" / "accuracy.jsonl"


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
    """Chunks of f32 numbers, CHUNK at a time and near each other where the stride is small, the last one filled up with ones."""
    for first in range(0, 1 << 32, CHUNK * stride):
        bits = np.arange(first, min(first + CHUNK * stride, 1 << 32), stride, dtype=np.uint64).astype(np.uint32)
        yield np.concatenate([bits.view(np.float32), np.ones(CHUNK - bits.size, np.float32)])


def error(got, exact, rounded, numerics):
    """The largest, in units in the last place of the rounded result, and whether NaN and infinities are where they must be. What equals the
    rounded result is off by half a unit or less, so only the rest is looked at."""
    others = np.flatnonzero(got.view(np.uint32) != rounded.view(np.uint32))
    if not others.size:
        return 0.5, True
    got, exact, rounded = got[others], exact[others], rounded[others]
    special = np.array_equal(np.isnan(got), np.isnan(exact)) and np.array_equal(np.isinf(got), np.isinf(rounded))
    fit = np.isfinite(rounded) & np.isfinite(got) & (np.abs(exact) >= (0 if numerics == "strict" else 2.0**-126))
    off = np.abs(got[fit].astype(np.float64) - exact[fit]) / np.spacing(np.abs(rounded[fit]))
    return max(0.5, off.max() if off.size else 0.5), special


def differing(got, reference):
    """At how many places other bits stand. All NaNs are one."""
    others = np.flatnonzero(got.view(np.uint32) != reference.view(np.uint32))
    return int((~(np.isnan(got[others]) & np.isnan(reference[others]))).sum()) if others.size else 0


# Those that `fast` computes otherwise; tests/cpu/test_fast_numerics.py holds that the others have the same bits.
FAST = {"exponential", "log", "tanh", "logistic", "sine", "cosine", "rsqrt"}


def ways_of(backends, opcode):
    """(backend, numerics): fast is what compiled programs have, the interpreter has none."""
    return [(b, n) for b in backends for n in (("strict", "fast") if opcode in FAST and b != "interpreter" else ("strict",))]


def worst_f32(opcode, stride, backends):
    """{(backend, numerics): [largest error, arguments that differ from the first backend's, whether special results are right]}"""
    exes = {way: program(opcode, "f32", CHUNK, *way) for way in ways_of(backends, opcode)}
    own = None if opcode in WIDE else program(opcode, "f64", CHUNK, backends[0], "strict")
    found = {way: [0.5, 0, True] for way in exes}
    shown = time.monotonic()
    for i, x in enumerate(patterns(stride)):
        wide = x.astype(np.float64)
        exact = own(wide) if own else WIDE[opcode](wide)
        rounded = exact.astype(np.float32)
        reference = strict = None  # of the first backend: its result, and how far that is off
        for way, exe in exes.items():
            got = exe(x)
            row, same = found[way], reference is not None and way[1] == "strict" and not differing(got, reference)
            if way[1] == "strict":
                reference = got if reference is None else reference
                row[1] += 0 if same else differing(got, reference)
            off, special = strict if same else error(got, exact, rounded, way[1])
            strict = (off, special) if got is reference else strict
            row[0], row[2] = max(row[0], off), row[2] and special
        if time.monotonic() - shown > 20:
            shown = time.monotonic()
            print(f"{opcode}: {min(1, (i + 1) * CHUNK * stride / 2**32):.0%}", file=sys.stderr, flush=True)
    return found


def worst_f64(opcode, x, backends):
    """{numerics: the largest error of any backend}, and at how many arguments a strict result is not the first backend's."""
    ways = [(b, n) for b in backends for n in (("strict",) if b == "interpreter" else ("strict", "fast"))]
    results = {way: program(opcode, "f64", x.size, *way)(x) for way in ways}
    reference, worst, off = results[backends[0], "strict"], {"strict": 0.0, "fast": 0.0}, 0
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


def measured(opcode, options):
    start = time.process_time()
    with np.errstate(all="ignore"):
        found = worst_f32(opcode, options.stride, options.backends)
        right = all(row[2] for row in found.values())
        row = {"function": opcode, "stride": options.stride, "backends": options.backends, "off": {}, "differ": {}, "right": right}
        for (backend, numerics), (off, differ, _) in found.items():
            row["off"][f"{backend}, {numerics}"] = off
            if numerics == "strict":
                row["off"].setdefault(f"{backend}, fast", off)
                row["differ"][backend] = differ
        if options.samples:
            row["f64"], row["f64 differ"] = worst_f64(opcode, samples(options.samples), options.backends)
    return row | {"seconds": time.process_time() - start}


def merged(rows):
    """{function: row}: of a backend the figures of its densest run, so that runs over some backends each add up."""
    found = {}
    for row in sorted(rows, key=lambda r: -r["stride"]):
        at = found.setdefault(row["function"], {"off": {}, "differ": {}, "stride": {}, "right": True, "seconds": 0.0})
        at["right"], at["seconds"] = at["right"] and row["right"], at["seconds"] + row["seconds"]
        at["off"] |= row["off"]
        at["differ"] |= row["differ"]
        at["stride"] |= dict.fromkeys(row["backends"], row["stride"])
        at |= {k: row[k] for k in ("f64", "f64 differ") if k in row}
    return found


def lines(rows):
    """The table. "all": of all 2^32 arguments on the backend; a number n: of every n-th."""
    found = merged(rows)
    backends = [b for b in BACKENDS if any(b in row["stride"] for row in found.values())]
    fast = [b for b in backends if b != "interpreter"]
    head = ["function", "f32 strict", *(f"arguments, {b}" for b in backends), "differ", *(f"f32 fast, {b}" for b in fast), "f64 strict", "f64 differ",
            "f64 fast", "NaN, infinities"]
    out = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for opcode in [f for f in FUNCTIONS if f in found]:
        row = found[opcode]
        strict = [off for way, off in row["off"].items() if way.endswith("strict")]
        seen = ["all" if row["stride"].get(b) == 1 else f"1 in {row['stride'][b]:,}" if b in row["stride"] else "-" for b in backends]
        cells = [opcode, f"{max(strict):.2f}", *seen, str(sum(row["differ"].values()))]
        cells += [f"{row['off'][f'{b}, fast']:.2f}" if b in row["stride"] else "-" for b in fast]
        cells += [f"{row['f64']['strict']:.2f}", str(row["f64 differ"]), f"{row['f64']['fast']:.2f}"] if "f64" in row else ["-"] * 3
        out.append("| " + " | ".join([*cells, "right" if row["right"] else "WRONG"]) + " |")
    return out


def kept():
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def write():
    path = ROOT / "docs" / "numerics.md"
    text = path.read_text()
    begin, end = "<!-- errors -->\n", "<!-- end of errors -->"
    text = text[: text.index(begin) + len(begin)] + "\n".join(lines(kept())) + "\n\n" + text[text.index(end) :]
    path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--stride", type=int, default=251)
    parser.add_argument("--samples", type=int, default=8000, help="of f64; 0: none")
    parser.add_argument("--only", nargs="*", default=list(FUNCTIONS), choices=FUNCTIONS)
    parser.add_argument("--backends", nargs="*", default=list(BACKENDS), choices=BACKENDS)
    parser.add_argument("--write", action="store_true", help="put what was measured into docs/numerics.md, and measure nothing")
    options = parser.parse_args()
    if options.write:
        return write()
    RESULTS.parent.mkdir(exist_ok=True)
    rows = []
    for opcode in options.only:
        rows.append(measured(opcode, options))
        with RESULTS.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        print(f"{opcode}: {rows[-1]['seconds']:.0f} s of processor time", file=sys.stderr, flush=True)
    print("\n".join(lines(rows)))


if __name__ == "__main__":
    main()
