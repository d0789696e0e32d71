"""Operands that lie across the lanes of a kernel that reads each of their elements many times: it reads a copy of them."""
import json
import re

import numpy as np
import pytest

import xlac
from xlac import kernels

SUMS = """
sum { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b) }
"""


def run(body, *args):
    """Compiled for two numbers of threads, beside the interpreter, bit for bit."""
    parsed = xlac.parse(f"HloModule m\n{SUMS}\nENTRY e {{{body}\n}}")
    want = xlac.interpret(parsed, *args)
    for threads in (1, 3):
        exe = xlac.compile(parsed, threads=threads)
        exe._check()
        got = exe(*args)
        for g, w in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,)):
            assert np.array_equal(g, w)
    return exe


def ints(*shape):
    return np.random.default_rng(len(shape)).integers(-9, 9, shape).astype(np.int32)


def copies(exe):
    """Ops whose values are copied for kernels, as steps say it and as the explanation does."""
    program = json.loads(exe._report())["programs"][0]
    steps = [s["op"] for s in program["steps"] if s["by"] == "kernel" and "type" not in program["buffers"][s["out"][0]]]
    said = re.findall(r"(?m)^  \S+ (\S+): .*; copied for those who read it across its rows, many times$", str(exe.explain("fusion")))
    assert sorted(set(steps)) == sorted(said)
    return steps


def pairs(n, k, d, more="ROOT r = s32[N,K] reduce(q, z), dimensions={2}, to_apply=sum"):
    return f"""
  x = s32[{n},{d}] parameter(0)
  y = s32[{k},{d}] parameter(1)
  z = s32[] constant(0)
  a = s32[{n},{k},{d}] broadcast(x), dimensions={{0,2}}
  b = s32[{n},{k},{d}] broadcast(y), dimensions={{1,2}}
  p = s32[{n},{k},{d}] subtract(b, a)
  q = s32[{n},{k},{d}] multiply(p, p)
  {more.replace("N", str(n)).replace("K", str(k)).replace("D", str(d))}"""


@pytest.mark.parametrize(("n", "k", "d"), [(100, 60, 32), (400, 300, 3), (64, 9, 40), (17, 1000, 5)])
def test_distances_read_a_copy_of_the_points_along_the_lanes(n, k, d):
    exe = run(pairs(n, k, d), ints(n, d), ints(k, d))
    assert copies(exe) == ["y"]
    text = str(kernels.of(exe)[1])
    assert f"load in0[0 + {k}*i0 + 1*i2]" in text and f"store out0[0 + {k}*i1 + 1*i2]" in text, text


@pytest.mark.parametrize(("n", "k", "d"), [(4, 3, 5), (300, 4, 20), (1, 500, 32), (3, 2000, 32)])
def test_few_reads_of_each_element_and_few_lanes_need_no_copy(n, k, d):
    assert copies(run(pairs(n, k, d), ints(n, d), ints(k, d))) == []


def test_kernels_share_a_copy():
    more = """r = s32[N,K] reduce(q, z), dimensions={2}, to_apply=sum
  t = s32[N,K,D] multiply(b, q)
  u = s32[N,K] reduce(t, r0), dimensions={2}, to_apply=sum
  g = s32[N,K] sort(r), dimensions={1}, to_apply=less
  v = s32[N,K,D] broadcast(g), dimensions={0,1}
  w = s32[N,K,D] multiply(b, v)
  o = s32[N,K] reduce(w, z), dimensions={2}, to_apply=sum
  ROOT m = (s32[N,K], s32[N,K], s32[N,K]) tuple(g, u, o)"""
    body = pairs(100, 60, 32, more.replace("(t, r0)", "(t, z)"))
    less = "less { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT c = pred[] compare(a, b), direction=LT }\n"
    parsed = xlac.parse(f"HloModule m\n{SUMS}{less}\nENTRY e {{{body}\n}}")
    exe = xlac.compile(parsed)
    exe._check()
    x, y = ints(100, 32), ints(60, 32)
    assert all(np.array_equal(g, w) for g, w in zip(exe(x, y), xlac.interpret(parsed, x, y)))
    assert copies(exe) == ["y"]


def test_what_is_computed_is_copied_as_arguments_are():
    body = pairs(100, 60, 32).replace("y = s32[60,32] parameter(1)", "y0 = s32[60,32] parameter(1)\n  y = s32[60,32] negate(y0)")
    assert copies(run(body, ints(100, 32), ints(60, 32))) == ["y"]


def test_slices_and_reverses_read_the_copy_where_they_would_have_read_the_array():
    body = pairs(100, 60, 32).replace("y = s32[60,32] parameter(1)", """y0 = s32[123,40] parameter(1)
  y1 = s32[60,32] slice(y0), slice={[2:122:2], [4:36]}
  y = s32[60,32] reverse(y1), dimensions={0,1}""")
    run(body, ints(100, 32), ints(123, 40))


def test_a_loop_copies_what_its_body_reads():
    body = """
c { p = (s32[], s32[60,32], s32[100,60]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT }
b { p = (s32[], s32[60,32], s32[100,60]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = s32[60,32] get-tuple-element(p), index=1
  k = s32[100,32] iota(), iota_dimension=0
  z = s32[] constant(0)
  a = s32[100,60,32] broadcast(k), dimensions={0,2}
  e = s32[100,60,32] broadcast(y), dimensions={1,2}
  q = s32[100,60,32] multiply(a, e)
  d = s32[100,60] reduce(q, z), dimensions={2}, to_apply=sum
  o = s32[60] reduce(d, z), dimensions={0}, to_apply=sum
  ob = s32[60,32] broadcast(o), dimensions={0}
  w = s32[60,32] add(y, ob)
  ROOT r = (s32[], s32[60,32], s32[100,60]) tuple(j, w, d) }
ENTRY e { y = s32[60,32] parameter(0)
  z = s32[] constant(0)
  d = s32[100,60] broadcast(z), dimensions={}
  t = (s32[], s32[60,32], s32[100,60]) tuple(z, y, d)
  w = (s32[], s32[60,32], s32[100,60]) while(t), condition=c, body=b
  a = s32[60,32] get-tuple-element(w), index=1
  f = s32[100,60] get-tuple-element(w), index=2
  ROOT r = (s32[60,32], s32[100,60]) tuple(a, f) }"""
    parsed = xlac.parse(f"HloModule m\n{SUMS}{body}")
    exe = xlac.compile(parsed)
    exe._check()
    y = ints(60, 32)
    assert all(np.array_equal(g, w) for g, w in zip(exe(y), xlac.interpret(parsed, y)))
    assert "copied for those who read it across its rows" in str(exe.explain("fusion"))
