"""Programs with aliases and donors at random, called with arguments that are lent or given away at random."""
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


class Case:
    """A random module with a header of random aliases and donors that XLA's rules allow."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.module = random_modules.Module(seed)
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
