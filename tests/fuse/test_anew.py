"""What several kernels read: stored once, or computed by each of them, whichever the cost model says takes less time."""
import json
import re

import numpy as np
import pytest

import xlac
from xlac import kernels

SUMS = """
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
most { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b) }
"""


def compiled(body, **options):
    exe = xlac.compile(xlac.parse(f"HloModule m\n{SUMS}\nENTRY e {{{body}\n}}"), **options)
    exe._check()
    return exe


def said(exe, op):
    return re.search(rf"(?m)^  \S+ {re.escape(op)}: (.*)$", str(exe.explain("fusion")))[1]


def floats(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def pairs(n, d, more):
    """Differences of all pairs of n points, their squared distances r, and `more`."""
    return f"""
  x = f32[{n},{d}] parameter(0)
  z = f32[] constant(0)
  a = f32[{n},{n},{d}] broadcast(x), dimensions={{0,2}}
  b = f32[{n},{n},{d}] broadcast(x), dimensions={{1,2}}
  p = f32[{n},{n},{d}] subtract(b, a)
  q = f32[{n},{n},{d}] multiply(p, p)
  r = f32[{n},{n}] reduce(q, z), dimensions={{2}}, to_apply=sum{more}"""


@pytest.mark.parametrize(("n", "d"), [(100, 3), (64, 17), (40, 80), (300, 2)])
@pytest.mark.parametrize("more", ["\n  ROOT y = f32[N,N] sqrt(r)", """
  rb = f32[N,N,D] broadcast(r), dimensions={0,1}
  w = f32[N,N,D] multiply(p, rb)
  ROOT f = f32[N,D] reduce(w, z), dimensions={1}, to_apply=sum""", """
  m = f32[N,D] reduce(p, z), dimensions={1}, to_apply=most
  t = f32[N,D] reduce(p, z), dimensions={0}, to_apply=sum
  ROOT y = (f32[N,N], f32[N,D], f32[N,D]) tuple(r, m, t)"""], ids=["distances", "forces", "three readers"])
def test_differences_of_pairs_are_never_in_memory(n, d, more):
    body = pairs(n, d, more.replace("N", str(n)).replace("D", str(d)))
    exe = compiled(body)
    x = floats(n, d)
    assert said(exe, "p").startswith(("in every kernel that uses it", "in the kernel that ends at"))
    assert not any(b.get("bytes", 0) >= 4 * n * n * d for p in json.loads(exe._report())["programs"] for b in p["buffers"])
    got, plain = exe(x), xlac.interpret(xlac.parse(f"HloModule m\n{SUMS}\nENTRY e {{{body}\n}}"), x)
    for g, w in zip(got if isinstance(got, tuple) else (got,), plain if isinstance(plain, tuple) else (plain,)):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4)


CHAIN = """
  x = f32[600,900] parameter(0)
  z = f32[] constant(0)
  c = f32[] constant(0.5)
  cb = f32[600,900] broadcast(c), dimensions={}
  v = f32[600,900] OP
  w = f32[600,900] add(v, cb)
  r = f32[600] reduce(w, z), dimensions={1}, to_apply=sum
  rb = f32[600,900] broadcast(r), dimensions={0}
  u = f32[600,900] multiply(w, rb)
  s = f32[900] reduce(u, z), dimensions={0}, to_apply=sum
"""


def test_a_chain_of_simple_ops_is_computed_by_all_who_read_it():
    exe = compiled(CHAIN.replace("OP", "multiply(x, cb)") + "ROOT y = f32[900] negate(s)")
    assert said(exe, "w").startswith("in every kernel that uses it (all in all")
    assert said(exe, "v").startswith("in every kernel that uses it") or said(exe, "v").startswith("in the kernel")


@pytest.mark.parametrize("op", ["power({}, cb)", "sine({})", "exponential({})"])
def test_functions_are_computed_once(op):
    """Three in a row cost more than memory does, however wide the machine's vectors are."""
    functions = f"{op.format('x')}\n  v1 = f32[600,900] {op.format('v')}\n  v2 = f32[600,900] {op.format('v1')}"
    body = CHAIN.replace("OP", functions).replace("add(v, cb)", "add(v2, cb)")
    assert "in memory since several kernels read it (all in all" in said(compiled(body + "ROOT y = f32[900] negate(s)"), "w")


def test_results_are_read_where_they_are():
    exe = compiled(CHAIN.replace("OP", "multiply(x, cb)") + "ROOT y = (f32[900], f32[600,900]) tuple(s, w)")
    assert "ends a kernel" in said(exe, "w")


def test_what_a_routine_reads_is_stored():
    exe = compiled(CHAIN.replace("OP", "multiply(x, cb)") + """d = f32[600,600] dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT y = (f32[900], f32[600,600]) tuple(s, d)""")
    assert "in memory since an op that is not a kernel reads it" in said(exe, "w")


def test_the_two_ways_that_were_weighed_are_told_with_what_they_take():
    """The smaller figure is that of the way that was taken."""
    for op in ("multiply(x, cb)", "power(x, cb)"):
        text = said(compiled(CHAIN.replace("OP", op) + "ROOT y = f32[900] negate(s)"), "w")
        found = re.search(r"all in all (\S+) (.s) if it is stored, (\S+) (.s) if each computes it", text).groups()
        stored, anew = (float(n) * {"us": 1, "ms": 1000}[unit] for n, unit in (found[:2], found[2:]))
        assert (anew <= stored) == text.startswith("in every kernel")


def test_a_chain_that_uses_each_value_twice_does_not_grow():
    """x1 = x0 * x0, x2 = x1 * x1, ...: the tree behind x20 has a million ops, and no kernel computes it twice."""
    steps = "".join(f"\n  x{i + 1} = f32[64,64] multiply(x{i}, x{i})" for i in range(20))
    sums = "".join(f"\n  r{i} = f32[64] reduce(x{i}, z), dimensions={{1}}, to_apply=sum" for i in range(1, 21))
    types = ", ".join(["f32[64]"] * 20)
    exe = compiled(f"\n  x0 = f32[64,64] parameter(0)\n  z = f32[] constant(0){steps}{sums}\n  ROOT t = ({types}) tuple({', '.join(f'r{i}' for i in range(1, 21))})")
    x = np.sign(floats(64, 64))
    assert all(np.array_equal(g, np.full(64, 64, np.float32)) for g in exe(x))
    assert sum(str(k).count("multiply") for k in kernels.of(exe)) < 200
