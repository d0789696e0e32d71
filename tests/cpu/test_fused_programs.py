"""Programs that somebody else has fused: fused computations are planned anew, and stay valid where they can't be inlined."""
import numpy as np
import pytest

import xlac

BODY = """f {
  c = s32[] constant(0)
  p = s32[1] parameter(0)
  q = s32[] bitcast(p)
  l = pred[] compare(q, c), direction=LT
  s = s32[] select(l, c, c)
  ROOT r = s32[1] bitcast(s)
}
"""
# What a simplification would leave without users is a parameter of a fused computation.
PLAIN = """ENTRY e {
  x = s32[1] parameter(0)
  ROOT y = s32[1] fusion(x), kind=kLoop, calls=f
}"""
WRAPPED = """w {
  a = s32[1] parameter(0)
  ROOT z = s32[1] fusion(a), kind=kLoop, calls=f
}
ENTRY e {
  x = s32[1] parameter(0)
  s = ((s32[1]), s32[1], s32[]) async-start(x), calls=w
  ROOT y = s32[1] async-done(s)
}"""
SEVERAL = """g {
  a = f32[8,3]{0,1} parameter(0)
  b = f32[8,3]{1,0} parameter(1)
  s = f32[8,3]{1,0} add(a, b)
  t = f32[3,8]{0,1} bitcast(s)
  u = f32[8,3]{0,1} copy(s)
  ROOT r = (f32[3,8]{0,1}, f32[8,3]{0,1}) tuple(t, u)
}
k {
  a = f32[8,3]{0,1} parameter(0)
  ROOT n = f32[8,3]{0,1} negate(a)
}
h {
  a = f32[8,3]{0,1} parameter(0)
  ROOT n = f32[8,3]{0,1} fusion(a), kind=kLoop, calls=k
}
ENTRY e {
  x = f32[8,3]{1,0} parameter(0)
  y = f32[8,3]{0,1} copy(x)
  p = (f32[3,8]{0,1}, f32[8,3]{0,1}) fusion(y, x), kind=kLoop, calls=g
  t = f32[3,8]{0,1} get-tuple-element(p), index=0
  u = f32[8,3]{0,1} get-tuple-element(p), index=1
  v = f32[8,3]{0,1} fusion(u), kind=kCustom, calls=h
  ROOT r = (f32[3,8]{0,1}, f32[8,3]{0,1}) tuple(t, v)
}"""


@pytest.mark.parametrize("entry", [PLAIN, WRAPPED])
def test_a_fused_computation_that_does_nothing_with_its_parameter(both, entry):
    got, want, _ = both("HloModule m\n" + BODY + entry, np.ones(1, np.int32))
    assert got[0] == want[0] == 0
    module = xlac.parse("HloModule m\n" + BODY + entry)
    for passes in ("algebraic-simplification", "algebraic-simplification,cse,dce"):
        module.run(passes).verify()


def test_fusions_of_several_results_and_layouts(both):
    x = np.arange(24, dtype=np.float32).reshape(8, 3)
    got, want, executable = both("HloModule m\n" + SEVERAL, x)
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g, w)
    np.testing.assert_array_equal(got[1], -2 * x)
    assert executable.steps["why_interpreted"] in (None, "")
