"""What the simulating driver and the sweeps have found, so that it does not come back."""
import numpy as np
import pytest

import xlac
from simulator import xlac_driver


@pytest.fixture(scope="module")
def cuda():
    driver = xlac_driver()
    driver.clear()
    yield driver
    assert driver.reports() == []


ARGMAX = """
HloModule m
most { a = T[] parameter(0)
 i = s32[] parameter(1)
 b = T[] parameter(2)
 j = s32[] parameter(3)
 gt = pred[] compare(a, b), direction=GT
 odd = pred[] compare(a, a), direction=NE
 first = pred[] or(gt, odd)
 value = T[] select(first, a, b)
 eq = pred[] compare(a, b), direction=EQ
 lt = pred[] compare(i, j), direction=LT
 both = pred[] and(eq, lt)
 any = pred[] or(first, both)
 place = s32[] select(any, i, j)
 ROOT r = (T[], s32[]) tuple(value, place) }
ENTRY e {
  x = T[6,15] parameter(0)
  i = s32[6,15] iota(), iota_dimension=1
  least = T[] constant(-inf)
  zero = s32[] constant(0)
  found = (T[6], s32[6]) reduce(x, i, least, zero), dimensions={1}, to_apply=most
  ROOT place = s32[6] get-tuple-element(found), index=1
}
"""


@pytest.mark.parametrize("t", ["f32", "f64"])
def test_the_places_of_an_argmax_are_made_for_a_device_that_reads_them(cuda, t):
    """The plan left them out, as it may for the CPU's own algorithm; the step read an operand that was none."""
    x = np.random.default_rng(1).standard_normal((6, 15)).astype({"f32": np.float32, "f64": np.float64}[t])
    text = ARGMAX.replace("T[", t + "[")
    np.testing.assert_array_equal(xlac.compile(text, device="cuda")(x), x.argmax(1))


@pytest.mark.parametrize("parts", ["s, x", "x, s"])
def test_a_result_of_smaller_elements_is_not_computed_over_an_array_of_as_many_bytes(cuda, parts):
    """Half as many elements of twice the size: where an element is stored, another is still to be read."""
    text = f"""HloModule m
less {{ a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = pred[] compare(a, b), direction=LT, type=TOTALORDER }}
ENTRY e {{ x = f32[1190] parameter(0)
 s = f32[1190] sort(x), dimensions={{0}}, to_apply=less
 c = f32[2380] concatenate({parts}), dimensions={{0}}
 ROOT h = f16[2380] convert(c) }}"""
    x = np.random.default_rng(0).standard_normal(1190).astype(np.float32)
    np.testing.assert_array_equal(xlac.compile(text, device="cuda")(x), xlac.interpret(text, x))
    assert cuda.reports() == []
