"""Kernels that run row by row together: reductions, what is made of them, and what is read afterwards."""
import numpy as np
import pytest

from .conftest import COMBINERS, same_numbers


def program(shape, body, inputs, root):
    dims = ",".join(map(str, shape))
    return f"HloModule m\n{COMBINERS}\nENTRY e {{\n{inputs.replace('SHAPE', dims)}\n{body.replace('SHAPE', dims).replace('KEPT', ','.join(map(str, shape[:-1])))}\n{root}\n}}"


NORM = """
  z = s32[] constant(0)
  lo = s32[] constant(-2147483648)
  kept = s32[KEPT] reduce(x, lo), dimensions={LAST}, to_apply=most
  kb = s32[SHAPE] broadcast(kept), dimensions={BATCH}
  d = s32[SHAPE] subtract(x, kb)
  q = s32[SHAPE] multiply(d, d)
  total = s32[KEPT] reduce(q, z), dimensions={LAST}, to_apply=sum
  tb = s32[SHAPE] broadcast(total), dimensions={BATCH}
  last = s32[SHAPE] add(q, tb)"""


@pytest.mark.parametrize("shape", [(64, 700), (4, 16, 640), (33, 1000), (17, 2, 3, 900), (16, 5000), (5000, 64)])
@pytest.mark.parametrize("results", ["last", "last, total", "last, q, kept, d", "total"])
def test_rows_of_integers(both, shape, results):
    x = np.random.default_rng(0).integers(-1000, 1000, shape).astype(np.int32)
    dims, kept = ",".join(map(str, shape)), ",".join(map(str, shape[:-1]))
    types = ", ".join(f"s32[{kept if r in ('total', 'kept') else dims}]" for r in results.split(", "))
    body = NORM.replace("LAST", str(len(shape) - 1)).replace("BATCH", ",".join(map(str, range(len(shape) - 1))))
    got, want, exe = both(program(shape, body, "  x = s32[SHAPE] parameter(0)", f"  ROOT r = ({types}) tuple({results})"), x)
    assert same_numbers(got, want), exe.plan()


@pytest.mark.parametrize("shape", [(64, 700), (8, 40, 64), (300, 130)])
def test_softmax(both, shape):
    n = len(shape) - 1
    batch = ",".join(map(str, range(n)))
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32) * 5
    got, _, exe = both(program(shape, f"""
  z = f32[] constant(0)
  lo = f32[] constant(-inf)
  m = f32[KEPT] reduce(x, lo), dimensions={{{n}}}, to_apply=mostf
  mb = f32[SHAPE] broadcast(m), dimensions={{{batch}}}
  d = f32[SHAPE] subtract(x, mb)
  e1 = f32[SHAPE] exponential(d)
  s = f32[KEPT] reduce(e1, z), dimensions={{{n}}}, to_apply=sumf
  sb = f32[SHAPE] broadcast(s), dimensions={{{batch}}}""", "  x = f32[SHAPE] parameter(0)", "  ROOT r = f32[SHAPE] divide(e1, sb)".replace("SHAPE", ",".join(map(str, shape)))), x)
    wide = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    np.testing.assert_allclose(got[0], wide / wide.sum(-1, keepdims=True), rtol=1e-5, err_msg=exe.plan())


def test_rows_that_need_other_rows(both):
    """The transposed and the reversed value can't go row by row with what makes it."""
    x = np.random.default_rng(2).integers(-1000, 1000, (200, 200)).astype(np.int32)
    got, want, exe = both(program((200, 200), """
  z = s32[] constant(0)
  t = s32[200] reduce(x, z), dimensions={1}, to_apply=sum
  tb = s32[SHAPE] broadcast(t), dimensions={0}
  q = s32[SHAPE] subtract(x, tb)
  qs = s32[200] reduce(q, z), dimensions={1}, to_apply=sum
  qr = s32[200] reverse(qs), dimensions={0}
  qb = s32[SHAPE] broadcast(qr), dimensions={0}
  qt = s32[SHAPE] broadcast(qs), dimensions={1}
  v = s32[SHAPE] add(q, qb)
  w = s32[SHAPE] multiply(v, qt)
  u = s32[200] reduce(w, z), dimensions={1}, to_apply=sum
  ub = s32[SHAPE] broadcast(u), dimensions={0}""", "  x = s32[SHAPE] parameter(0)", "  ROOT r = s32[200,200] add(w, ub)"), x)
    assert same_numbers(got, want), exe.plan()
