"""This build of xlac beside another one, on what the other benchmarks time: calls of programs, small calls, texts, clusters, propagation.

  python benchmarks/beside.py FOLDER [--what programs calls texts clusters shardy] [--only NAME ...] [--pairs 3] [--rounds 6]

FOLDER is a checkout of the other version, built in place (`python setup.py build_ext --inplace`). Each version runs in a process of its
own, and the two take turns: in every round each times every item once. A pair of processes differs from the next by what the memory they
got happens to look like, so that several fresh pairs are run. For each item the ratio of this version's time to the other's is printed
(under 1: this one is faster): of the least times over all pairs and rounds, the median over the pairs of the ratios of medians, and the least
and greatest of those. At the end of each kind stands the geometric mean. Arguments begin at multiples of 64 bytes on both sides. Processor
time where one thread works (texts, clusters, propagation), wall time elsewhere: use an idle machine."""
import argparse
import functools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
from call_overhead import per_call, program

HERE = pathlib.Path(__file__).resolve()


def aligned(array):
    """A copy of `array` whose first byte stands at a multiple of 64."""
    raw = np.empty(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    out = raw[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    out[...] = array
    return out


def programs():
    """{name: a function that prepares the program and returns its call}"""
    import xlac
    from compiled import PROGRAMS, inputs

    def prepare(path, spec):
        exe = xlac.compile(xlac.parse(path.with_name(path.name.replace(".json", ".stablehlo.mlir")).read_text()))
        args = [aligned(np.asarray(a)) for a in inputs(spec)]
        return lambda: per_call(exe, args, 0.04)

    specs = {path: json.loads(path.read_text()) for path in sorted(PROGRAMS.glob("*.json"))}
    return {spec["name"]: (lambda path=path, spec=spec: prepare(path, spec)) for path, spec in specs.items() if spec.get("n_devices", 1) == 1}


def calls():
    def prepare(n):
        exe, args = program(n), [aligned(np.ones(4, np.float32)) for _ in range(n)]
        return lambda: per_call(exe, args)

    return {f"{n} arrays": (lambda n=n: prepare(n)) for n in (1, 2, 4, 8, 16)}


def texts():
    import xlac
    from hlo_text import large_modules

    def prepare(kind, text):
        module = xlac.parse(text)
        call = {"parse": lambda: xlac.parse(text), "print": module.to_text, "verify": lambda: xlac.parse(text).verify(xla_compat=True)}[kind]
        return lambda: per_call(call, (), 0.03, time.process_time)

    return {f"{kind} {name}": (lambda kind=kind, text=text: prepare(kind, text))
            for name, text in large_modules() for kind in ("parse", "print", "verify")}


def clusters():
    import cluster
    import xlac

    def prepare(make, n):
        data = make(n)
        return lambda: per_call(functools.partial(xlac.cluster, format="proto"), (data,), 0.05, time.process_time)

    return {f"{make.__name__} {n}": (lambda make=make, n=n: prepare(make, n))
            for n in (10000, 100000) for make in (cluster.chain, cluster.dag, cluster.train)}


def shardy():
    import shardy as propagation

    def prepare(name, ops):
        run = propagation.ours(propagation.PROGRAMS[name](ops), "builtin.module(sdy-propagation-pipeline)")

        def least():
            times = []
            while len(times) < 3 or sum(times) < 0.03:
                times.append(run()[0])
            return min(times)

        return least

    return {f"{name} {ops}": (lambda name=name, ops=ops: prepare(name, ops)) for name in propagation.PROGRAMS for ops in (100, 1000, 5000)}


KINDS = {f.__name__: f for f in (programs, calls, texts, clusters, shardy)}


def serve(kind):
    """Answers names of items on standard input with their times; an empty line asks for the names."""
    items, ready, answers = KINDS[kind](), (None, None), os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what else is printed is not an answer
    for line in sys.stdin:
        name = line.rstrip("\n")
        if name and ready[0] != name:
            ready = (None, None)  # the last one's memory is given back first
            ready = (name, items[name]())
            ready[1]()
        print(json.dumps(ready[1]() if name else list(items)), file=answers)


class Side:
    def __init__(self, root, kind):
        path = os.pathsep.join([str(root / "python"), str(HERE.parent)])
        self.process = subprocess.Popen([sys.executable, str(HERE), "--serve", kind], env=dict(os.environ, PYTHONPATH=path),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(self, name=""):
        print(name, file=self.process.stdin)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"the process that times {name or 'the items'} ended with status {self.process.wait()}; its error is above")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def one_pair(roots, kind, only, rounds, found):
    sides = [Side(root, kind) for root in roots]
    both = set(sides[1].ask())
    for name in [n for n in sides[0].ask() if n in both and (not only or n in only)]:
        times = [[], []]
        for turn in range(rounds):
            for which in (0, 1) if turn % 2 else (1, 0):
                times[which].append(sides[which].ask(name))
        found.setdefault(name, []).append(times)
    for side in sides:
        side.close()


def summary(pairs):
    """Of an item: (ratio of the least times, median of the pairs' ratios of medians, their least, their greatest)."""
    least = [min(t for pair in pairs for t in pair[which]) for which in (0, 1)]
    ratios = [statistics.median(ours) / statistics.median(theirs) for ours, theirs in pairs]
    return least[0] / least[1], statistics.median(ratios), min(ratios), max(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("other", nargs="?", type=pathlib.Path, help="a checkout of the other version, built in place")
    parser.add_argument("--what", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--serve", choices=list(KINDS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    if options.other is None or not (options.other / "python" / "xlac").is_dir():
        parser.error("name a checkout of the other version, built in place")
    for kind in options.what:
        found = {}
        for _ in range(options.pairs):
            one_pair([HERE.parents[1], options.other.resolve()], kind, options.only, options.rounds, found)
        rows = {name: summary(pairs) for name, pairs in found.items()}
        for name, (least, middle, low, high) in rows.items():
            print(f"{kind:9} {name:40} least {least:5.2f}   median {middle:5.2f} ({low:.2f} to {high:.2f})", flush=True)
        if rows:
            means = [math.exp(statistics.fmean(math.log(row[i]) for row in rows.values())) for i in (0, 1)]
            slower = [name for name, row in rows.items() if min(row[:2]) > 1.03]
            print(f"{kind:9} geometric means {means[0]:.3f} (least), {means[1]:.3f} (median); over 1.03 in both: {', '.join(slower) or 'none'}", flush=True)


if __name__ == "__main__":
    main()
