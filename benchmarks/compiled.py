"""Compiled programs beside XLA:CPU in the same process: compile time from text, time of a call, and the numbers.

  python benchmarks/compiled.py [--rounds 5] [--only NAME ...] [--cpu] [--json out.json]

Needs the `test` extra. The programs are those for one device in XLAC_PROGRAMS (by default ../shared/bench/programs), compiled from
StableHLO text. Every round times both sides in turn; minimum and median over the rounds are printed with the ratios (above 1: xlac is
faster), and last the geometric means. "off" is the largest difference of a result, relative to its mean size. With --cpu it is the
processor time of the process, all its threads, that is measured: steady where others use the machine."""
import argparse
import json
import math
import os
import pathlib
import statistics
import sys
import time

import numpy as np
from hlo_text import ROOT

PROGRAMS = pathlib.Path(os.environ.get("XLAC_PROGRAMS", ROOT.parent / "shared" / "bench" / "programs"))


CLOCK = {"now": time.perf_counter}


def inputs(spec):
    sys.path.insert(0, str(PROGRAMS.parent))
    import common

    return common.make_inputs(spec)


class Xla:
    """XLA:CPU through jaxlib, from StableHLO text. A program for several devices is partitioned, as its shardings say."""

    def __init__(self, n_devices=1):
        import jax
        from jax._src import compiler
        from jax._src.interpreters import mlir
        from jaxlib import _jax
        from jaxlib.mlir import ir

        self.jax, self.ir, self.context, self.device = jax, ir, mlir.make_ir_context, jax.devices()[0]
        self.options = compiler.get_compile_options(1, n_devices, device_assignment=np.arange(n_devices).reshape(1, n_devices))
        build = self.options.executable_build_options
        build.use_spmd_partitioning = build.use_shardy_partitioner = n_devices > 1
        self.devices = _jax.DeviceList(tuple(jax.devices()[:n_devices]))

    def compile(self, text):
        with self.context():
            module = self.ir.Module.parse(text)
        return self.device.client.compile_and_load(module, self.devices, self.options)

    def put(self, arrays):
        return [self.jax.device_put(a, self.device) for a in arrays]

    def call(self, exe, args):
        out = [x[0] for x in exe.execute_sharded(args).disassemble_into_single_device_arrays()]
        for x in out:
            x.block_until_ready()
        return out


def flat(value):
    return [x for part in value for x in flat(part)] if isinstance(value, tuple) else [np.asarray(value)]


def off_by(got, want):
    worst = 0.0
    for g, w in zip(got, want):
        kind = np.complex128 if np.asarray(w).dtype.kind == "c" else np.float64
        g, w = g.astype(kind), np.asarray(w).astype(kind)
        differ = ~((g == w) | (np.isnan(g) & np.isnan(w)))
        if differ.any():
            worst = max(worst, float(np.abs(g - w)[differ].max() / (np.abs(w[np.isfinite(w)]).mean() + 1e-6)))
    return worst


def times_of(calls, rounds, each):
    """Seconds a call, for each round; the calls take turns. A round makes calls until they took `each` seconds, with fewer and fewer looks
    at the clock: processor time is only known in steps, when the threads of the other side are waited for."""
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            n, spent, begin = 0, 0.0, CLOCK["now"]()
            while n == 0 or spent < each:
                for _ in range(n // 2 + 1):
                    call()
                n += n // 2 + 1
                spent = CLOCK["now"]() - begin
            times[name].append(spent / n)
    return times


def bench(xla, spec, text, rounds):
    import xlac

    arrays = inputs(spec)
    ours, theirs = xlac.compile(xlac.parse(text)), xla.compile(text)
    args = xla.put(arrays)
    donated = bool(spec["donated"])
    fresh = (lambda: xla.put([a.copy() for a in arrays])) if donated else (lambda: args)
    off = off_by(flat(ours(*arrays)), xla.call(theirs, fresh()))
    compile_times = times_of({"xlac": lambda: xlac.compile(xlac.parse(text)), "xla": lambda: xla.compile(text)}, max(2, rounds // 2), 0)
    calls = {"xlac": lambda: ours(*arrays), "xla": lambda: xla.call(theirs, fresh())}
    return dict(name=spec["name"], off=off, compile=compile_times, call=times_of(calls, rounds, 0.02), steps=ours.steps, memory=ours.memory)


def ratio(times, pick):
    return pick(times["xla"]) / pick(times["xlac"])


def show(row):
    c, r = row["compile"], row["call"]
    print(f"{row['name']:20s} compile {min(c['xlac']) * 1e3:9.2f} ms {ratio(c, min):7.1f}x (median {ratio(c, statistics.median):7.1f}x)"
          f"   call {min(r['xlac']) * 1e6:11.1f} us {ratio(r, min):6.2f}x (median {ratio(r, statistics.median):6.2f}x)"
          f"   off {row['off']:.1e}   {row['steps']['interpreted']} of {row['steps']['all']} steps interpreted", flush=True)


def mean(values):
    return math.exp(statistics.fmean(math.log(v) for v in values))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--largest", type=int, default=1_000_000, help="skip programs of more bytes of text")
    parser.add_argument("--cpu", action="store_true", help="measure processor time")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.cpu:
        CLOCK["now"] = time.process_time
    xla, rows = Xla(), []
    for path in sorted(PROGRAMS.glob("*.json")):
        spec = json.loads(path.read_text())
        text = path.with_name(path.name.replace(".json", ".stablehlo.mlir")).read_text()
        if spec.get("n_devices", 1) != 1 or len(text) > options.largest or (options.only and spec["name"] not in options.only):
            continue
        rows.append(bench(xla, spec, text, options.rounds))
        show(rows[-1])
    for what in ("compile", "call"):
        print(f"{what}: geometric mean of the ratios {mean([ratio(r[what], min) for r in rows]):.2f}, least {min(ratio(r[what], min) for r in rows):.2f}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
