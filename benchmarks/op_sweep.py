"""Every elementwise op of the op table on every type it takes, within a kernel of a million elements, beside XLA:CPU: processor time of a call.

  python benchmarks/op_sweep.py [--only OP ...] [--types TYPE ...] [--elements N] [--rounds 3] [--seconds S] [--json out.json]

Needs the `test` extra. A kernel is one addition (of truth values an "or"), the op, and what brings its result together with an operand.
Conversions are an op for each type that they come from. Prints the ratio of the minima (above 1: xlac is faster), the slowest first, then
the geometric mean and how many are slower than XLA, by type. --seconds: stops after so long, and the order is one by chance. What XLA does not
compile is counted and left out."""
import argparse
import functools
import json
import pathlib
import random
import subprocess
import sys
import time

import numpy as np
from compiled import CLOCK, Xla, flat, mean, off_by, ratio, times_of
from hlo_text import ROOT

import xlac

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import elementwise as ew  # noqa: E402

PARTS = {"c64": "f32", "c128": "f64"}
EXTRA = {"compare": ", direction=LT", "reduce-precision": ", exponent_bits=5, mantissa_bits=7"}


def cases():
    """(op, type it comes from, type of its result) of all."""
    for op, arity, types in ew.table():
        for t in types:
            result = "pred" if op in ("compare", "is-finite") else PARTS.get(t, t) if op in ("abs", "real", "imag") else t
            yield op, arity, t, {"f32": "c64", "f64": "c128"}.get(t) if op == "complex" else result
    for op in ("select", "convert"):
        for t in ew.DTYPES:
            for to in [t] if op == "select" else [to for to in ew.DTYPES if to != t and (to[0] == "c" or t[0] != "c")]:
                yield op, 3 if op == "select" else 1, t, to


def program(op, arity, t, to, n):
    """The op on the sum of its arguments and on arguments; its result is joined with an argument of its type."""
    join = {"p": "or"}
    extra = EXTRA.get(op, "")
    if t[0] == "c" and op == "compare":
        extra = ", direction=EQ"
    first = "c" if op == "select" else "a"
    lines = [f"x = {t}[{n}] parameter(0)", f"y = {t}[{n}] parameter(1)", f"z = {to}[{n}] parameter(2)", f"a = {t}[{n}] {join.get(t[0], 'add')}(x, y)"]
    if op == "select":
        lines.append("c = pred[%d] compare(a, y), direction=%s" % (n, "EQ" if t[0] == "c" else "LT"))
    operands = [first, "a" if op == "select" else "x", "y"][:arity]
    if op == "clamp":
        operands = ["x", "a", "y"]
    lines.append(f"r = {to}[{n}] {op}({', '.join(operands)}){extra}")
    lines.append(f"ROOT o = {to}[{n}] {join.get(to[0], 'add')}(r, z)")
    return "HloModule sweep\nENTRY e {\n" + "\n".join(lines) + "\n}\n"


def numbers(t, n, rng):
    """Ordinary numbers of the type, none of them 0."""
    kind = ew.DTYPES[t]
    if t == "pred":
        return rng.random(n) < 0.5
    if t[0] in "su":
        low, high = ew.int_range(t)
        wide = rng.integers(low, high, n, endpoint=True, dtype=np.uint64 if t == "u64" else np.int64)
        small = rng.integers(1, min(high, 100), n, endpoint=True).astype(wide.dtype)
        return np.where((rng.random(n) < 0.5) | (wide == 0), small, wide).astype(kind)
    real = rng.uniform(0.1, 1.1, n)
    return (real + 1j * rng.uniform(0.1, 1.1, n) if t[0] == "c" else real).astype(kind)


@functools.cache
def array(t, n, which):
    """The argument number `which`, if it is of type t."""
    return numbers(t, n, np.random.default_rng(n + which))


def bench(xla, case, n, rounds):
    op, arity, t, to = case
    module = xlac.parse(program(op, arity, t, to, n))
    try:
        theirs = xla.compile(module.to_stablehlo().to_text())
    except Exception as e:  # what it says has many types, by the stage that refuses
        return dict(op=op, type=t, to=to, refused=str(e).split("\n")[0][:100])
    ours = xlac.compile(module)
    arrays = [array(k, n, which) for which, k in enumerate((t, t, to))]
    args = xla.put(arrays)
    with np.errstate(all="ignore"):
        off = off_by(flat(ours(*arrays)), xla.call(theirs, args))
    times = times_of({"xlac": lambda: ours(*arrays), "xla": lambda: xla.call(theirs, args)}, rounds, 0.001)
    return dict(op=op, type=t, to=to, off=off, call=times, ratio=ratio(times, min))


def show(row, n):
    ours, theirs = (min(row["call"][k]) / n * 1e9 for k in ("xlac", "xla"))
    of = row["type"] + (f" to {row['to']}" if row["op"] == "convert" else "")
    print(f"{row['op']:22s} {of:24s} {ours:9.3f} ns {theirs:9.3f} ns {row['ratio']:6.2f}x   off {row['off']:.1e}")


def measure(first, wanted, options):
    """Prints a line of JSON for each case from number `first` on."""
    CLOCK["now"] = time.process_time
    xla = Xla()
    xla.jax.config.update("jax_enable_x64", True)
    for case in wanted[first:]:
        if options.until is not None and time.time() > options.until:
            break
        print(json.dumps(bench(xla, case, options.elements, options.rounds)), flush=True)


def measured(wanted, until):
    """The rows of all cases, measured in other processes: some programs end XLA's."""
    rows, words = [], [sys.executable, *sys.argv] + (["--until", str(until)] if until is not None else [])
    while len(rows) < len(wanted) and not (until is not None and time.time() > until):
        with subprocess.Popen([*words, "--first", str(len(rows))], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
            for line in child.stdout:
                rows.append(json.loads(line))
        if len(rows) < len(wanted) and child.returncode:
            op, _, t, to = wanted[len(rows)]
            rows.append(dict(op=op, type=t, to=to, refused="the process ended"))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--types", nargs="*", default=[])
    parser.add_argument("--elements", type=int, default=1 << 20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, help="stop after so many")
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    wanted = [c for c in cases() if (not options.only or c[0] in options.only) and (not options.types or c[2] in options.types)]
    if options.seconds is not None:
        random.Random(0).shuffle(wanted)
    if options.first is not None:
        return measure(options.first, wanted, options)
    rows = measured(wanted, None if options.seconds is None else time.time() + options.seconds)
    done = sorted((r for r in rows if "call" in r), key=lambda r: r["ratio"])
    for row in done:
        show(row, options.elements)
    for t in ew.DTYPES:
        of = [r["ratio"] for r in done if r["type"] == t]
        if of:
            print(f"{t:14s} geometric mean {mean(of):6.2f}, slower on {sum(x < 1 for x in of)} of {len(of)}, least {min(of):.2f}")
    if done:
        print(f"all: geometric mean {mean([r['ratio'] for r in done]):.2f}, slower on {sum(r['ratio'] < 1 for r in done)} of {len(done)}; "
              f"XLA does not compile {len(rows) - len(done)}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
