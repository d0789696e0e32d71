"""Where the ops of a program come from: the lines of Python that JAX notes beside them."""
import linecache
import os
import re
from typing import NamedTuple

from .frames import OURS

TEXT = re.compile(r'(op_name|source_file|source_line)=(?:"((?:[^"\\]|\\.)*)"|(\d+))')


class Place(NamedTuple):
    file: str  # "": nobody said
    line: int

    def __str__(self):
        return f"{os.path.basename(self.file)}:{self.line}" if self.file else "(no line)"

    @property
    def code(self):
        return linecache.getline(self.file, self.line).strip() if self.file else ""


NOWHERE = Place("", 0)


def read(metadata):
    """The Place in an instruction's metadata, a text such as {op_name="jit(f)/tanh" source_file="a.py" source_line=4}, or None."""
    found = {name: text or number for name, text, number in TEXT.findall(metadata or "")}
    if "source_file" not in found or "source_line" not in found:
        return NOWHERE
    file = re.sub(r"\\(.)", r"\1", found["source_file"])
    return NOWHERE if file.startswith(OURS) else Place(file, int(found["source_line"]))


class Places:
    """The Place of each op of a module, by its name. What has none of its own, such as a library's loops and what passes made, gets that of the op
    that calls its computation, of what it computes from, or of what uses it."""

    def __init__(self, module):
        ops = [op for computation in module.computations for op in computation.instructions]
        callers = {inner.name: op for op in ops for inner in op.called}
        self.known = {op.name: read(op.metadata) for op in ops}
        for op in reversed(ops):  # computations come before those who call them
            if op.computation.name in callers:
                self.inherit(op, [callers[op.computation.name]])
        for op in ops:  # operands come before their users
            self.inherit(op, op.operands)
        for op in reversed(ops):
            self.inherit(op, op.users)

    def inherit(self, op, others):
        if self.known[op.name] is NOWHERE:
            self.known[op.name] = next((p for p in (self.known.get(o.name, NOWHERE) for o in others) if p is not NOWHERE), NOWHERE)

    def __getitem__(self, name):
        return self.known.get(name, NOWHERE)

    def annotate(self, text):
        """A report with the place behind each line that begins with an op."""
        def line_of(line):
            words = line.split()
            name = words[1].rstrip(":") if len(words) > 1 and line.startswith("  ") else ""
            place = self[name]
            return f"{line}  ({place})" if place is not NOWHERE else line
        return "\n".join(map(line_of, text.splitlines()))
