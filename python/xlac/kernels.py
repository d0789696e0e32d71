"""Kernels alone: what a fusion becomes, as text (`executable.explain("kernels")`), run by the vector VM or by the plain reference.

    kernel [2,3] from 1 input
    v0 = f32[] load in0[0 + 3*i0 + 1*i1]
    v1 = f32[] exponential(v0)
    store out0[0 + 3*i0 + 1*i1] v1

The first line has the iteration space; an index is in elements. Lines of constants and ops are HLO's, on scalars. A reduction is
`store out0[...] v1 by add from v2`, after a line `over [outer,(reduced),inner]` for all of a kernel's; those extents multiply to the
iterations, and results are stored row-major over those kept. Lines that begin with // are comments."""
import re

import numpy as np

from . import _core
from .codes import Code
from .errors import ArgumentError
from .report import Report


def normal(source):
    """Reads and verifies a kernel, and gives its text as xlac writes it. Raises ParseError with line and column."""
    return Report(_core.kernel_text(source))


def of(executable):
    """The texts of all kernels of an executable, those of its loops and branches too."""
    if isinstance(executable, _core.Module):
        raise ArgumentError("kernels are what a compiled program consists of; this is a Module", Code.BAD_ARGUMENT,
                            hint="xlac.kernels.of(xlac.compile(program))")
    parts = re.split(r"(?m)^(?=// )", str(executable.explain("kernels")))
    return [Report(part.strip() + "\n") for part in parts if part.strip()]


def outputs(source):
    """New arrays for the outputs, by number: flat, of the elements that the kernel stores there."""
    text = normal(source)
    types = dict(re.findall(r"(?m)^(v\d+) = (\S+)\[\]", text))
    extents = [int(e) for e in re.match(r"kernel \[([\d,]*)\]", text)[1].split(",") if e]
    count = int(np.prod(extents, dtype=np.int64))
    kept = re.search(r"(?m)^over \[(\d+),\(\d+\),(\d+)\]", text)
    sums = int(kept[1]) * int(kept[2]) if kept else count
    found = {int(number): (int(offset) + (sums if reduces else count), types[value])
             for number, offset, value, reduces in re.findall(r"(?m)^store out(\d+)\[(-?\d+).*\] (v\d+)( by )?", text)}
    return [np.zeros(*((found[i][0], _core.numpy_dtype(found[i][1])) if i in found else (0, np.uint8))) for i in range(max(found) + 1)]


def run(source, *arrays, reference=False, threads=1):
    """Runs a kernel on arrays, whose memory is taken row-major: a flat array for each output, or that of the only one.
    `reference` evaluates one iteration after another; else the vector VM runs it on `threads` threads."""
    from . import _count

    threads, results = _count("threads", threads), outputs(source)
    flat = [np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in arrays]
    _core.kernel_run(source, flat, [r.view(np.uint8) for r in results], threads, reference)
    return results[0] if len(results) == 1 else tuple(results)
