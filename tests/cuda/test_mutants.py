"""Each subscript of the kernels that xlac prints is made one too large, one at a time: each is found, by the driver or by the result."""
import ctypes

import numpy as np
import pytest

import sweep
import xlac
from simulator import xlac_driver

PROGRAM = """
HloModule m
sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
most { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] maximum(a, b) }
ENTRY e {
  x = f32[30,20] parameter(0)
  y = f32[20,30] transpose(x), dimensions={1,0}
  z = f32[20,30] multiply(y, y)
  none = f32[] constant(0)
  rows = f32[20] reduce(z, none), dimensions={1}, to_apply=sum
  columns = f32[30] reduce(z, none), dimensions={0}, to_apply=most
  i = s32[20] iota(), iota_dimension=0
  half = f32[20] convert(i)
  both = f32[20] add(half, rows)
  c = bf16[20] convert(both)
  s = f32[5,30] slice(z), slice={[2:7], [0:30]}
  r = f32[5,30] reverse(s), dimensions={1}
  wide = f32[7,30] pad(r, none), padding=1_1x0_0
  ROOT t = (f32[20], f32[30], bf16[20], f32[7,30]) tuple(both, columns, c, wide)
}
"""


@pytest.fixture(scope="module")
def cuda():
    driver = xlac_driver()
    yield driver
    driver.library.cudasim_mutate(ctypes.c_uint32(0))
    driver.clear()


def why(cuda, nth, x):
    """What is found with the nth subscript wrong; None: nothing."""
    cuda.clear()
    cuda.library.cudasim_mutate(ctypes.c_uint32(nth))
    try:
        found = sweep.differs(PROGRAM, sweep.leaves(xlac.compile(PROGRAM, device="cuda")(x)), sweep.leaves(xlac.interpret(PROGRAM, x)))
    except xlac.Error as e:
        found = str(e)
    return "; ".join(cuda.reports()) or found


def test_each_subscript_that_is_wrong_is_found(cuda):
    x = np.random.default_rng(1).uniform(1, 2, (30, 20)).astype(np.float32)
    assert why(cuda, 0, x) is None
    n = cuda.library.cudasim_mutate(ctypes.c_uint32(0))
    assert n >= 8
    found = [why(cuda, i, x) for i in range(1, n + 1)]
    assert [i + 1 for i, f in enumerate(found) if f is None] == []
    assert any("out of bounds" in f for f in found)
