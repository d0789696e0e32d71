"""The programs of the benchmarks with smaller arrays, for the driver that simulates: what JAX traces when each dimension above 16 is divided."""
import importlib.util
import os
import pathlib
import re
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = pathlib.Path(os.environ.get("XLAC_BENCH", ROOT.parent / "shared" / "bench"))
SPEC = re.compile(r"(\w+)\[([\d,]*)\](.*)")
MOST = 1 << 19  # elements of the arguments that a program is taken with as it is


def smaller(dims, by):
    """Dimensions divided, but for small ones; odd ones stay odd, so that what was a border is one."""
    return [d if d <= 16 else max(8, d // by) + (d % 2 if d // by % 2 == 0 else 0) for d in dims]


def traced(function, make):
    """(text, arguments) of the smallest arrays that the function can be traced with, since some have sizes in their bodies; None where even the
    whole is refused, or is too large to be run here."""
    import jax

    before = jax.config.jax_enable_x64  # other tests of the process rely on what it was
    try:
        for by in (16, 8, 4, 2, 1):
            arrays = make(by)
            if by == 1 and sum(a.size for a in arrays) > MOST:
                return None
            jax.config.update("jax_enable_x64", any(a.dtype == np.float64 for a in arrays))
            try:
                return jax.jit(function, keep_unused=True).lower(*arrays).as_text(), arrays
            except Exception:
                continue
        return None
    finally:
        jax.config.update("jax_enable_x64", before)


def unseen():
    """name: how to trace it, of benchmarks/programs."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    other = sys.modules.pop("programs", None)  # of the tests of passes, where one process runs both
    try:
        import unseen as module

        found = module.load()
    finally:
        sys.modules.pop("programs", None)
        if other:
            sys.modules["programs"] = other

    def make(shapes, seed, by):
        rng = np.random.default_rng(seed)
        parts = [SPEC.fullmatch(s).groups() for s in shapes]
        return [module.argument(f"{t}[{','.join(map(str, smaller([int(d) for d in dims.split(',') if d], by)))}]{rest}", rng) for t, dims, rest in parts]

    return {name: (function, lambda by, s=shapes, n=name: make(s, len(n), by)) for name, (function, shapes, _) in found.items()}


def shared():
    """The same of the shared benchmark programs, where they are at hand."""
    if not (BENCH / "gen_programs.py").exists():
        return {}
    sys.path.insert(0, str(BENCH))
    given, sys.argv = sys.argv, ["gen_programs.py"]
    try:
        spec = importlib.util.spec_from_file_location("gen_programs", BENCH / "gen_programs.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.argv = given

    def make(inputs, by):
        def limit(i, shape):  # indices of a smaller table
            return min(i.get("hi", 0), min((d for d in shape if d > 8), default=8)) if i["dist"] == "randint" and i["dtype"] == "s32" else i.get("hi")
        small = [dict(i, shape=smaller(i["shape"], by), seed=1000 + k) for k, i in enumerate(inputs)]
        return module.make_inputs(dict(inputs=[dict(i, hi=limit(i, i["shape"])) if "hi" in i else i for i in small]))

    return {name: (p["f"], lambda by, i=p["inputs"]: make(i, by)) for name, p in module.P.items()}


def programs(choose=lambda names: names):
    """(name, text, arguments) of those that `choose` takes of a list of names; those that can't be traced are printed."""
    known = {**shared(), **unseen()}
    for name in choose(list(known)):
        found = traced(*known[name])
        if found:
            yield name, *found
        else:
            print(f"bench: {name} can't be traced with small arrays", flush=True)
