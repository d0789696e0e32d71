"""The programs of benchmarks/programs beside XLA:CPU in the same process: time of a call, of compiling, and the numbers.

  python benchmarks/unseen.py [--half known|held|all] [--rounds 5] [--only NAME ...] [--check] [--cpu] [--calls] [--seconds S] [--json out.json]

Needs the `test` extra. JAX traces each program; both sides compile the same StableHLO. The half that is held back by a coin
(benchmarks/programs) is for judging work on the engine, at its end. --check compares the numbers alone, which takes a second a
program; --calls compiles each once; --seconds: begins no more programs after so long, of which the order is then one by chance. Columns as in benchmarks/compiled.py."""
import argparse
import json
import pathlib
import random
import re
import statistics
import sys
import time

import numpy as np
from compiled import CLOCK, Xla, flat, mean, off_by, ratio, show, times_of
from programs import load


def argument(spec, rng):
    """An array for "f32[4,8]", "s32[16]<100" (0 to 99) or "f32[8]>0" (from 0.1 to 1.1)."""
    name, dims, limit = re.fullmatch(r"(\w+)\[([\d,]*)\](>0|<\d+)?", spec).groups()
    shape = [int(d) for d in dims.split(",") if d]
    if name[0] in "su":
        high = int(limit[1:]) if limit else 2**31 - 1
        return rng.integers(0, high, shape).astype({"s": "int", "u": "uint"}[name[0]] + name[1:])
    if name[0] == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(f"complex{name[1:]}")
    values = rng.uniform(0.1, 1.1, shape) if limit == ">0" else rng.standard_normal(shape)
    if name == "bf16":
        import ml_dtypes

        return values.astype(ml_dtypes.bfloat16)
    return values.astype(f"float{name[1:]}")


def lowered(function, arrays):
    import jax

    jax.config.update("jax_enable_x64", any(a.dtype in (np.float64, np.int64, np.uint64) for a in arrays))
    return jax.jit(function).lower(*arrays).as_text()


def once(compile_it):
    begin = CLOCK["now"]()
    return compile_it(), [CLOCK["now"]() - begin]


def bench(xla, name, function, shapes, rounds, again=True):
    """rounds 0: the numbers alone. again: compile more than once, to time that."""
    import xlac

    rng = np.random.default_rng(len(name))
    arrays = [argument(s, rng) for s in shapes]
    text = lowered(function, arrays)
    check_all_read(text, len(arrays))
    (ours, our_time), (theirs, their_time), args = once(lambda: xlac.compile(xlac.parse(text))), once(lambda: xla.compile(text)), xla.put(arrays)
    row = dict(name=name, off=off_by(flat(ours(*arrays)), xla.call(theirs, args)), steps=ours.steps)
    if not rounds:
        return row
    compiles = {"xlac": lambda: xlac.compile(xlac.parse(text)), "xla": lambda: xla.compile(text)}
    calls = {"xlac": lambda: ours(*arrays), "xla": lambda: xla.call(theirs, args)}
    compiling = times_of(compiles, max(2, rounds // 2), 0) if again else {"xlac": our_time, "xla": their_time}
    return dict(row, compile=compiling, call=times_of(calls, rounds, 0.01))


def check_all_read(text, n):
    """jit drops arguments that nothing reads: the program says how many are left."""
    found = len(re.findall(r"%arg\d+: ", text[text.index("@main("):].split("{\n", 1)[0].split(") ->")[0]))
    if found != n:
        raise SystemExit(f"the program reads {found} of its {n} arguments")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--half", choices=["known", "held", "all"], default="known")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--check", action="store_true", help="the numbers alone")
    parser.add_argument("--cpu", action="store_true", help="measure processor time")
    parser.add_argument("--calls", action="store_true", help="compile each once")
    parser.add_argument("--seconds", type=float, help="begin no more programs after so many")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.cpu:
        CLOCK["now"] = time.process_time
    xla, rows, begin, items = Xla(), [], time.monotonic(), sorted(load().items())
    if options.seconds is not None:
        random.Random(0).shuffle(items)
    for name, (function, shapes, held) in items:
        if options.seconds is not None and time.monotonic() - begin > options.seconds:
            break
        if options.only and name not in options.only or not options.only and options.half != "all" and held != (options.half == "held"):
            continue
        rows.append(bench(xla, name, function, shapes, 0 if options.check else options.rounds, not options.calls) | {"held": held})
        if options.check:
            print(f"{name:45s} off {rows[-1]['off']:.1e}   {rows[-1]['steps']['interpreted']} of {rows[-1]['steps']['all']} steps interpreted", flush=True)
        else:
            show(rows[-1])
    if not options.check:
        for pick, what in ((min, "minimum"), (statistics.median, "median")):
            print(f"call, {what}: geometric mean of the ratios {mean([ratio(r['call'], pick) for r in rows]):.2f}, slower on "
                  f"{sum(ratio(r['call'], pick) < 1 for r in rows)} of {len(rows)}, least {min(ratio(r['call'], pick) for r in rows):.2f}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows))


if __name__ == "__main__":
    sys.exit(main())
