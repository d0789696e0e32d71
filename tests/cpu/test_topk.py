"""topk as a routine: the interpreter's bits, ties and NaN included."""
import numpy as np
import pytest

from .test_moves import check, program, shape
from .test_sort import FLOATS, INTEGERS, numbers, with_nans


@pytest.mark.parametrize("t", FLOATS + INTEGERS)
@pytest.mark.parametrize("largest", ["true", "false"])
@pytest.mark.parametrize("dims,k", [((5, 100), 7), ((300,), 1), ((3, 4, 33), 33), ((2, 1000), 90), ((4, 0), 0), ((0, 9), 2), ((6, 40), 0)])
def test_topk(t, largest, dims, k):
    x = numbers(np.random.default_rng(13), t, dims)
    out = (*dims[:-1], k)
    text = program(f"  x = {shape(t, dims)} parameter(0)", f"  ROOT r = ({shape(t, out)}, {shape('s32', out)}) topk(x), k={k}, largest={largest}")
    for y in (x, with_nans(x.copy())) if t in FLOATS else (x,):
        check(text, y, routine="heap" if x.size and k else None)


@pytest.mark.parametrize("largest", ["true", "false"])
def test_big_topk(largest):
    x = np.random.default_rng(14).normal(size=(40, 5000)).astype(np.float32)
    check(program("  x = f32[40,5000] parameter(0)", f"  ROOT r = (f32[40,50], s32[40,50]) topk(x), k=50, largest={largest}"), x, routine="heap")
