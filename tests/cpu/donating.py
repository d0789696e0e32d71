"""Programs with aliases and donors at random, called with arguments that are borrowed or donated at random."""
import random
import re
import warnings

import numpy as np

import xlac

from . import random_modules
from .conftest import leaves, same_numbers


def pointer(a):
    return a.__array_interface__["data"][0]


def owned(array):
    """An array of its own memory, as a Buffer."""
    return xlac.from_dlpack(array.copy(), copy=True) if array.dtype.kind != "V" else xlac.asarray(array.copy())


class Rows:
    """A random program on larger matrices whose kernels are run row by row in groups, in place, in branches and by updates of parts."""

    T, V = "f32[256,80]", "f32[256]"
    HELPERS = ("largest {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] maximum(a, b)\n}\n"
               f"left {{\n  p = {T} parameter(0)\n  n = {T} negate(p)\n  ROOT m = {T} add(n, p)\n}}\n"
               f"right {{\n  p = {T} parameter(0)\n  ROOT r = {T} reverse(p), dimensions={{0}}\n}}\n"
               f"keep {{\n  ROOT p = {T} parameter(0)\n}}\n")

    def __init__(self, seed):
        r, rng = random.Random(seed), np.random.default_rng(seed)
        n = r.randint(1, 3)
        self.args = [rng.integers(-4, 5, (256, 80)).astype(np.float32) for _ in range(n)] + [np.int32(r.randrange(-1, 4))]
        lines = [f"p{i} = {self.T} parameter({i})" for i in range(n)] + [f"k = s32[] parameter({n})", "z = f32[] constant(-1000)"]
        pool = [f"p{i}" for i in range(n)]
        for i in range(r.randint(2, 9)):
            a, b = r.choice(pool), r.choice(pool)
            kind = r.choice(["negate", "add", "maximum", "reverse", "reduce", "branch", "update", "add"])
            text = {"negate": f"negate({a})", "add": f"add({a}, {b})", "maximum": f"maximum({a}, {b})",
                    "reverse": f"reverse({a}), dimensions={{{r.choice([0, 1])}}}",
                    "reduce": f"broadcast(m{i}), dimensions={{0}}",
                    "branch": f"conditional(k, {a}, {b}, {a}), branch_computations={{left, right, keep}}",
                    "update": f"dynamic-update-slice({a}, part{i}, k, k)"}[kind]
            if kind == "reduce":
                lines.append(f"m{i} = {self.V} reduce({a}, z), dimensions={{1}}, to_apply=largest")
            if kind == "update":
                lines.append(f"part{i} = f32[3,2] slice({b}), slice={{[0:3], [2:4]}}")
            lines.append(f"v{i} = {self.T} {text}")
            pool.append(f"v{i}")
        results = [pool[-1], *r.sample(pool, min(len(pool), r.randint(0, 3)))]
        lines.append(f"ROOT r = ({', '.join([self.T] * len(results))}) tuple({', '.join(results)})")
        self.text = f"HloModule m\n{self.HELPERS}ENTRY e {{\n  " + "\n  ".join(lines) + "\n}"


class Case:
    """A random module with a header of random aliases and donors that XLA's rules allow."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.module = Rows(seed) if seed % 3 == 2 else random_modules.Module(seed)
        self.args = [np.asarray(a) for a in self.module.args]
        root = re.search(r"ROOT \S+ = \((.*)\) tuple\(", self.module.text.split("ENTRY")[1]).group(1)
        self.results = re.findall(r"(\w+)\[([\d,]*)\]", root)
        self.donate = tuple(i for i in range(len(self.args)) if self.r.random() < 0.3)
        self.text = self.module.text.replace("HloModule m", "HloModule m" + self.header(), 1)
        self.about = (seed, self.donate)

    def size(self, result):
        dtype, dims = result
        return int(np.prod([int(d) for d in dims.split(",") if d], initial=1)) * np.dtype(random_modules.NUMPY[dtype]).itemsize

    def is_same(self, result, arg):
        dtype, dims = result
        return np.dtype(random_modules.NUMPY[dtype]) == arg.dtype and tuple(int(d) for d in dims.split(",") if d) == arg.shape

    def header(self):
        free, aliases = list(range(len(self.args))), []
        for i, result in enumerate(self.results):
            fits = [p for p in free if self.args[p].nbytes == self.size(result)]
            if not fits or self.r.random() < 0.3:
                continue
            p = self.r.choice(fits)
            kind = self.r.choice(["", ", may-alias", ", must-alias" if self.is_same(result, self.args[p]) else ""])
            aliases.append(f"{{{i}}}: ({p}, {{}}{kind})")
            free.remove(p)
        donors = [f"({p}, {{}})" for p in free if self.r.random() < 0.4]
        return (f", input_output_alias={{ {', '.join(aliases)} }}" if aliases else "") + \
            (f", buffer_donor={{ {', '.join(donors)} }}" if donors else "")

    def check(self, **options):
        plain = xlac.parse(self.module.text)
        want = leaves(xlac.interpret(plain, *self.args))
        exe = xlac.compile(xlac.parse(self.text), donate=self.donate, **options)
        exe._check()
        for _ in range(3):
            self.call(exe, want)

    def call(self, exe, want):
        """One call: each argument lent or given, as an ndarray or a Buffer."""
        r = self.r
        given = [r.random() < 0.6 for _ in self.args]
        held = [owned(a) if r.random() < 0.5 else a.copy() for a in self.args]
        where = [h.unsafe_pointer() if isinstance(h, xlac.Buffer) else pointer(h) for h in held]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", xlac.DonationWarning)
            got = leaves(exe(*(xlac.donate(h) if g else h for h, g in zip(held, given))))
        assert same_numbers(got, want), (self.about, given, self.text)
        taken = {d["argument"]: d["result"] for d in exe.donations if d["result"] is not None}
        spares = [d["argument"] for d in exe.donations if d["result"] is None]
        for i, (h, a) in enumerate(zip(held, self.args)):
            used = given[i] and i in taken and exe.steps["why_interpreted"] is None
            if used and a.nbytes:
                assert pointer(got[taken[i]]) == where[i], (self.about, i, self.text)
            if isinstance(h, xlac.Buffer):
                spare = given[i] and i in spares
                assert h.is_deleted == used or (spare and h.is_deleted), (self.about, i, given, self.text)
                if h.is_deleted:
                    continue
            if not used and not (given[i] and i in spares):
                assert np.asarray(h).tobytes() == a.tobytes(), (self.about, i, self.text)
