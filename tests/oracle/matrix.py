"""The matrix of opcodes and element types: which the verifiers allow, and what the results were compared with."""
import itertools
import re

import numpy as np

import elementwise as ew
import matrix_programs
from matrix_programs import NEWER, shape

import xlac


def letters(program, number, first):
    """The program's lines and helpers, with names of its own and parameters counted from `first`."""
    def named(text):
        text = re.sub(r"@(\w+)", rf"c{number}_\1", text)
        return re.sub(r"\$(\d+)", lambda m: f"p{first + int(m[1])}", text)
    lines = [named(l) for l in program.body.split("\n") if l]
    return lines, [named(h) for h in program.helpers], f"c{number}_r" if lines else f"p{first}"


class Batch:
    """Several programs as one module."""

    def __init__(self, programs):
        self.lines, self.helpers, self.roots, self.types, self.args = [], {}, [], [], []
        for number, p in enumerate(programs):
            lines, helpers, root = letters(p, number, len(self.args))
            self.lines += lines
            self.helpers.update(dict.fromkeys(helpers))
            self.roots.append(root)
            self.types += [shape(t, np.shape(a)) for t, a in p.args]
            self.args += [a for _, a in p.args]

    def text(self, roots=None):
        """Parameters in, a tuple of the results out."""
        given = [f"p{i} = {t} parameter({i})" for i, t in enumerate(self.types)]
        return self._module(given, [f"ROOT out = tuple({', '.join(roots or self.roots)})"])

    def closed(self):
        """Neither parameters nor results, so that any type may occur; and no backend gets far with it after verifying."""
        given = ["zero = f32[] constant(0)", "begun = (f32[], f32[], u32[]) copy-start(zero)", "begin = f32[] copy-done(begun)"]
        given += [f'p{i} = {t} custom-call(begin), custom_call_target="given"' for i, t in enumerate(self.types)]
        return self._module(given, ["ROOT out = f32[] negate(begin)"])

    def _module(self, before, after):
        return "\n".join(["HloModule m", *self.helpers, "ENTRY e {", *before, *self.lines, *after, "}", ""])

    def flat(self, results):
        """The text with every array of nested results an element of the root, given what the results are."""
        lines, roots = [], []

        def leaf(name, value):
            if not isinstance(value, (tuple, list)):
                roots.append(name)
                return
            for i, v in enumerate(value):
                lines.append(f"{name}_{i} = get-tuple-element({name}), index={i}")
                leaf(f"{name}_{i}", v)
        for root, value in zip(self.roots, results):
            leaf(root, value)
        self.lines = self.lines + lines
        return self.text(roots)


def read(text, opcode=""):
    m = xlac.parse(text, documented_forms=opcode in NEWER)
    m.verify()
    return m


def allowed(program):
    """"" or why not."""
    try:
        read(Batch([program]).closed(), program.opcode)
        return ""
    except xlac.Error as e:
        return str(e)


def all_programs(t):
    rows = [row["name"] for row in xlac._core.opcode_table()]
    return [p for opcode in rows for p in matrix_programs.programs(opcode, t)]


# --- comparing ---

def leaves(value):
    if isinstance(value, (tuple, list)):
        return [leaf for v in value for leaf in leaves(v)]
    return [] if value is None else [np.asarray(value)]


def steps(got, want):
    """How many representable values apart; NaNs count as equal, zeros of one sign only."""
    t = np.dtype(f"i{got.dtype.itemsize}")
    low = -(1 << (8 * got.dtype.itemsize - 1))
    order = [np.where(v < 0, low - v, v) for v in (a.view(t).astype(np.int64) for a in (got, want))]
    apart = abs(order[0].astype(np.float64) - order[1].astype(np.float64))
    with np.errstate(all="ignore"):
        g, w = got.astype(np.float64), want.astype(np.float64)
    apart = np.where((g == 0) & (w == 0) & (np.signbit(g) != np.signbit(w)), 1e9, np.where((g == 0) & (w == 0), 0, apart))
    return np.where(np.isnan(g) | np.isnan(w), np.where(np.isnan(g) & np.isnan(w), 0, 1e9), apart)


def is_float_array(a):
    return a.dtype.kind == "f" or a.dtype.name.startswith(("float", "bfloat"))


def bad_exact(got, want):
    if got.dtype.kind == "c":
        return bad_exact(got.real.copy(), want.real.copy()) | bad_exact(got.imag.copy(), want.imag.copy())
    if is_float_array(got):
        return steps(got, want) > 0
    return np.asarray(got != want, bool)


ULPS = 2


def bad_ulps(got, want):
    if got.dtype.kind == "c":
        return bad_complex(got, want)
    return steps(got, want) > (ULPS if got.dtype.name in ("float32", "float64") else 0) if is_float_array(got) else bad_exact(got, want)


def bad_complex(got, want):
    """Off by more than a few units of the larger part; infinities and NaNs must be at the same places."""
    if got.dtype.kind != "c":
        return bad_ulps(got, want)
    eps = np.finfo(got.dtype).eps
    with np.errstate(all="ignore"):
        near = abs(got.astype(np.complex128) - want.astype(np.complex128)) <= 4 * eps * abs(want.astype(np.complex128))
    same = np.ones(got.shape, bool)
    for g, w in ((got.real, want.real), (got.imag, want.imag)):
        same &= (g == w) | (np.isnan(g) & np.isnan(w))
    return ~(near | same)


def bad_near(got, want, near):
    """Relative to the largest number; narrow types exactly, since their programs are."""
    if not is_float_array(got) and got.dtype.kind != "c" or got.dtype.itemsize <= 2 and got.dtype.kind != "c":
        return bad_exact(got, want)
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    g, w = got.astype(wide), want.astype(wide)
    with np.errstate(all="ignore"):
        scale = np.max(np.where(np.isfinite(w), abs(w), 0), initial=0) or 1
        off = abs(g - w) > near * scale
    return np.where(np.isfinite(g) & np.isfinite(w), off, ~((g == w) | (np.isnan(g) & np.isnan(w))))


def bad_lanes(program, got, want):
    """Where a result array is not what it must be."""
    if got.dtype != want.dtype or got.shape != want.shape:
        raise AssertionError(f"{program.opcode} {program.t}: {got.dtype}{got.shape} instead of {want.dtype}{want.shape}: {program.body}")
    if program.kind == "near":
        return bad_near(got, want, program.near)
    return {"exact": bad_exact, "ulps": bad_ulps, "complex": bad_complex}[program.kind](got, want)
