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
