"""Loops that are machine code as a whole, at every level of instructions that this machine has."""
import re
import subprocess
import sys

import numpy as np
import pytest

import xlac

from . import random_loops
from .random_native import levels


@pytest.fixture(params=[*levels(), "off"], autouse=True)
def level(request, monkeypatch):
    if request.param == "off":
        monkeypatch.setenv("XLAC_NATIVE", "0")
    else:
        monkeypatch.setenv("XLAC_MAX_ISA", request.param)
    return request.param


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_loops_have_the_bits_of_the_interpreter(first):
    """A sample: python -m tests.cpu.random_loops FIRST COUNT goes on."""
    for seed in range(first, first + 20):
        for kind in (random_loops.Loop, random_loops.Moving):
            assert not random_loops.differs(seed, kind), f"seed {seed}\n{kind(seed).text}"


def test_memory_that_an_inner_loop_changes_is_read_anew():
    """Seed 1257: a row is read in place, and a loop in the loop has the same numbers in registers."""
    assert not random_loops.differs(1257)


def test_what_one_lane_has_is_spread_before_others_use_it():
    """Seed 61048: a quotient that is the same for all elements was computed in two of four lanes."""
    assert not random_loops.differs(61048)


SPREAD = """HloModule spread
c {{ p = (s32[], f32[], f32[8]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant(5)
 ROOT r = pred[] compare(i, n), direction=LT }}
b {{ p = (s32[], f32[], f32[8]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 s = f32[] get-tuple-element(p), index=1
 x = f32[8] get-tuple-element(p), index=2
 u = f32[] {op}
 v = f32[8] broadcast(u), dimensions={{}}
 y = f32[8] multiply(x, v)
 z = f32[8] add(y, x)
 e = f32[8] exponential(z)
 w = f32[8] divide(z, e)
 one = s32[] constant(1)
 j = s32[] add(i, one)
 ROOT r = (s32[], f32[], f32[8]) tuple(j, u, w) }}
ENTRY e {{ s = f32[] parameter(0)
 x = f32[8] parameter(1)
 z = s32[] constant(0)
 t = (s32[], f32[], f32[8]) tuple(z, s, x)
 ROOT w = (s32[], f32[], f32[8]) while(t), condition=c, body=b }}
"""


@pytest.mark.parametrize("op", ["sine(s)", "cosine(s)", "power(s, s)", "atan2(s, s)", "cbrt(s)"])
@pytest.mark.parametrize("s", [0.7, 3e9, -2.5e8])
def test_a_function_of_one_number_meets_lanes(op, s):
    """Of arguments that are far from 0 the sine is a call, and so are others always."""
    x = np.linspace(-1, 2, 8).astype("f4")
    module = xlac.parse(SPREAD.format(op=op))
    found, wanted = xlac.compile(module)(np.float32(s), x), xlac.interpret(module, np.float32(s), x)
    assert all(random_loops.same(a, b) for a, b in zip(found, wanted))


NESTED = """HloModule nested
c2 {{ p = (s32[], s32[], s32[]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] get-tuple-element(p), index=2
 ROOT r = pred[] compare(i, n), direction=LT }}
b2 {{ p = (s32[], s32[], s32[]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 a = s32[] get-tuple-element(p), index=1
 n = s32[] get-tuple-element(p), index=2
 o = s32[] constant(1)
 j = s32[] add(i, o)
 k = s32[] add(a, i)
 ROOT r = (s32[], s32[], s32[]) tuple(j, k, n) }}
c1 {{ p = (s32[], s32[]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant({n})
 ROOT r = pred[] compare(i, n), direction=LT }}
b1 {{ p = (s32[], s32[]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 a = s32[] get-tuple-element(p), index=1
 z = s32[] constant(0)
 t = (s32[], s32[], s32[]) tuple(z, a, i)
 inner = (s32[], s32[], s32[]) while(t), condition=c2, body=b2
 b = s32[] get-tuple-element(inner), index=1
 o = s32[] constant(1)
 j = s32[] add(i, o)
 ROOT r = (s32[], s32[]) tuple(j, b) }}
ENTRY e {{ a = s32[] parameter(0)
 z = s32[] constant(0)
 t = (s32[], s32[]) tuple(z, a)
 ROOT outer = (s32[], s32[]) while(t), condition=c1, body=b1 }}
"""


@pytest.mark.parametrize("n", [0, 1, 2, 10, 3000])
def test_a_loop_in_a_loop(n):
    """3000: so long that it looks whether it is to stop, with all registers in use."""
    wanted = np.sum(np.arange(n) * (np.arange(n) - 1) // 2)
    assert [int(v) for v in xlac.compile(NESTED.format(n=n))(np.int32(5))] == [n, int((wanted + 5 + 2**31) % 2**32 - 2**31)]


NAMES = f"""
import os, xlac
kept = xlac.compile({NESTED.format(n=9)!r})
path = f"/tmp/perf-{{os.getpid()}}.map"
print(open(path).read() if os.path.exists(path) else "none")
if os.path.exists(path):
    os.unlink(path)
"""


def test_both_loops_are_one_function(level, monkeypatch):
    monkeypatch.setenv("XLAC_PERF_MAP", "1")
    out = subprocess.run([sys.executable, "-c", NAMES], capture_output=True, text=True, check=True).stdout
    assert re.sub(r"(?m)^[0-9a-f]+ [0-9a-f]+ ", "", out).split("\n")[0] == ("none" if level == "off" else "xlac outer"), out


BRANCHES = """HloModule branches
c {{ p = (s32[], f32[9], f32[]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant(9)
 ROOT r = pred[] compare(i, n), direction=LT }}
put {{ x = f32[] parameter(0)
 ROOT y = f32[] parameter(1) }}
yes {{ p = (f32[], f32[9], s32[1]) parameter(0)
 v = f32[] get-tuple-element(p), index=0
 x = f32[9] get-tuple-element(p), index=1
 i = s32[1] get-tuple-element(p), index=2
 w = f32[] {op}(v)
 y = f32[9] scatter(x, i, w), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=0, to_apply=put
 ROOT r = (f32[9], f32[]) tuple(y, w) }}
no {{ p = (f32[], f32[9], s32[1]) parameter(0)
 v = f32[] get-tuple-element(p), index=0
 x = f32[9] get-tuple-element(p), index=1
 ROOT r = (f32[9], f32[]) tuple(x, v) }}
b {{ p = (s32[], f32[9], f32[]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 x = f32[9] get-tuple-element(p), index=1
 v = f32[] get-tuple-element(p), index=2
 one = s32[] constant(1)
 j = s32[] add(i, one)
 k = s32[] multiply(i, i)
 at = s32[1] reshape(k)
 odd = s32[] and(i, one)
 zero = s32[] constant(0)
 is = pred[] compare(odd, zero), direction=NE
 t = (f32[], f32[9], s32[1]) tuple(v, x, at)
 w = (f32[9], f32[]) conditional(is, t, t), true_computation=yes, false_computation=no
 y = f32[9] get-tuple-element(w), index=0
 u = f32[] get-tuple-element(w), index=1
 ROOT r = (s32[], f32[9], f32[]) tuple(j, y, u) }}
ENTRY e {{ x = f32[9] parameter(0)
 v = f32[] parameter(1)
 z = s32[] constant(0)
 t = (s32[], f32[9], f32[]) tuple(z, x, v)
 ROOT w = (s32[], f32[9], f32[]) while(t), condition=c, body=b }}
"""


@pytest.mark.parametrize("op", ["sine", "negate"])
def test_a_branch_that_is_not_taken_changes_nothing(op, level):
    """Of what is put outside of the array nothing comes either: 25 and 49 are not places of nine."""
    module = xlac.parse(BRANCHES.format(op=op))
    x, v = np.arange(9, dtype="f4"), np.float32(0.5)
    wanted = x.copy()
    for i in (1, 3, 5, 7):
        v = np.float32(np.sin(v) if op == "sine" else -v)
        if i * i < 9:
            wanted[i * i] = v
    found = xlac.compile(module)(x, np.float32(0.5))
    assert all(random_loops.same(a, b) for a, b in zip(found, xlac.interpret(module, x, np.float32(0.5))))
    assert np.allclose(found[1], wanted, rtol=1e-6) and np.allclose(found[2], v, rtol=1e-6)
    assert ("one function of machine code" in str(xlac.compile_stage(module, "executable"))) == (level != "off")


SUMS = """HloModule sums
add {{ x = {t}[] parameter(0)
 y = {t}[] parameter(1)
 ROOT r = {t}[] add(x, y) }}
c {{ p = (s32[], {t}[{a},{b}], {t}[{r}]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant(3)
 ROOT r = pred[] compare(i, n), direction=LT }}
b {{ p = (s32[], {t}[{a},{b}], {t}[{r}]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 x = {t}[{a},{b}] get-tuple-element(p), index=1
 s = {t}[{r}] get-tuple-element(p), index=2
 o = s32[] constant(1)
 j = s32[] add(i, o)
 z = {t}[] constant(0.25)
 e = {t}[{r}] {op}
 u = {t}[{r}] add(s, e)
 y = {t}[{a},{b}] multiply(x, x)
 ROOT r = (s32[], {t}[{a},{b}], {t}[{r}]) tuple(j, y, u) }}
ENTRY e {{ x = {t}[{a},{b}] parameter(0)
 s = {t}[{r}] parameter(1)
 z = s32[] constant(0)
 t = (s32[], {t}[{a},{b}], {t}[{r}]) tuple(z, x, s)
 ROOT w = (s32[], {t}[{a},{b}], {t}[{r}]) while(t), condition=c, body=b }}
"""


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("a, b", [(1, 3), (3, 1), (4, 4), (2, 7), (1, 16), (16, 1), (2, 8), (5, 3)])
def test_sums_of_floats_have_one_order(t, a, b, monkeypatch):
    """As code of the loop and as kernels of the vector machine."""
    x = np.random.default_rng(a).standard_normal((a, b)).astype("f4" if t == "f32" else "f8")
    for dims, r in (((0,), f"{b}"), ((1,), f"{a}"), ((0, 1), "")):
        s = np.zeros([int(n) for n in r.split(",") if n], x.dtype)
        op = f"reduce(x, z), dimensions={{{','.join(map(str, dims))}}}, to_apply=add"
        module = xlac.parse(SUMS.format(t=t, a=a, b=b, r=r, op=op))
        here = xlac.compile(module)(x, s)
        with monkeypatch.context() as m:
            m.setenv("XLAC_NATIVE", "0")
            there = xlac.compile(module)(x, s)
        assert all(np.array_equal(u, v) for u, v in zip(here, there)), (dims, here, there)


@pytest.mark.parametrize("t", ["f32", "f64", "s32"])
def test_small_products_are_summed_in_order(t, level):
    """The interpreter's bits; as lists of instructions a library may have another order."""
    x = (np.random.default_rng(1).standard_normal((4, 4)) * 9).astype({"f32": "f4", "f64": "f8", "s32": "i4"}[t])
    for op in ("dot(x, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "dot(s, x), lhs_contracting_dims={0}, rhs_contracting_dims={1}",
               "dot(x, x), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}"):
        module = xlac.parse(SUMS.format(t=t, a=4, b=4, r="4", op=op).replace("constant(0.25)", "constant(1)"))
        got, want = (f(x, x[0]) for f in (xlac.compile(module), lambda *a: xlac.interpret(module, *a)))
        exact = np.array_equal if level != "off" and "batch" not in op else np.allclose  # dots of vectors are reductions
        assert all(exact(u, v) for u, v in zip(got, want)), op


@pytest.mark.parametrize("t", ["f32", "f64", "s32"])
@pytest.mark.parametrize("n", [12, 16])
def test_products_with_a_matrix_that_stays_are_part_of_the_function(t, n, level):
    x = (np.random.default_rng(n).standard_normal((n, n)) * 3).astype({"f32": "f4", "f64": "f8", "s32": "i4"}[t])
    text = SUMS.format(t=t, a=n, b=n, r=n, op="dot(d, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}").replace("constant(0.25)", "constant(1)")
    text = text.replace(f" y = {t}[{n},{n}] multiply(x, x)\n", "").replace("tuple(j, y, u)", "tuple(j, x, u)")
    module = xlac.parse(text.replace(f" e = {t}", f" d = {t}[{n}] dot(x, s), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n e = {t}"))
    got, want = (f(x, x[0]) for f in (xlac.compile(module), lambda *a: xlac.interpret(module, *a)))
    if level == "off":
        assert np.allclose(got[2], want[2], rtol=1e-4)
        return
    assert "one function of machine code" in str(xlac.compile_stage(module, "executable"))
    assert all(np.array_equal(u, v) for u, v in zip(got, want))


def test_the_assembly_of_a_program_has_its_loops(level):
    text = xlac.compile_stage(xlac.parse(NESTED.format(n=3)), "assembly")
    assert text.count("a loop as one function") == (level != "off")
    assert level == "off" or re.search(r"(?m)^# \w[\w.]*$", text.split("// ")[1]), text  # the op that instructions are for
    assert level == "off" or "outer, a loop" in text and "jle .L" in text and "vpaddd" in text


EXCHANGE = """HloModule exchange
set {{ a = s32[] parameter(0)
 ROOT b = s32[] parameter(1) }}
c {{ p = (s32[], s32[{n}], s32[{n}]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant({n})
 ROOT r = pred[] compare(i, n), direction=LT }}
b {{ p = (s32[], s32[{n}], s32[{n}]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 pivots = s32[{n}] get-tuple-element(p), index=1
 rows = s32[{n}] get-tuple-element(p), index=2
 j1 = s32[1] dynamic-slice(pivots, i), dynamic_slice_sizes={{1}}
 j = s32[] reshape(j1)
 x = s32[1] dynamic-slice(rows, i), dynamic_slice_sizes={{1}}
 y = s32[1] dynamic-slice(rows, j), dynamic_slice_sizes={{1}}
 xs = s32[] reshape(x)
 ys = s32[] reshape(y)
 i1 = s32[1] reshape(i)
 put = s32[{n}] scatter(rows, i1, ys), PUT
 all = s32[{n}] scatter(put, j1, xs), PUT
 one = s32[] constant(1)
 k = s32[] add(i, one)
 ROOT r = (s32[], s32[{n}], s32[{n}]) tuple(k, pivots, all) }}
ENTRY e {{ pivots = s32[{n}] parameter(0)
 rows = s32[{n}] iota(), iota_dimension=0
 zero = s32[] constant(0)
 s = (s32[], s32[{n}], s32[{n}]) tuple(zero, pivots, rows)
 w = (s32[], s32[{n}], s32[{n}]) while(s), condition=c, body=b
 ROOT r = s32[{n}] get-tuple-element(w), index=2 }}""".replace(
    "PUT", "update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=0, to_apply=set")


@pytest.mark.parametrize("n", [1, 6, 17, 64, 300])
def test_exchanges_of_rows_as_pivots_have_them(n, level):
    """Elements are put into a copy of the array where it is still read; places out of range change nothing."""
    module = xlac.parse(EXCHANGE.format(n=n))
    pivots = np.random.default_rng(n).integers(0, n, n).astype(np.int32)
    for change in (0, n, -1):
        pivots[n // 2] += change
        assert np.array_equal(xlac.compile(xlac.parse(EXCHANGE.format(n=n)))(pivots), xlac.interpret(module, pivots))
    if level != "off" and n > 1:
        assert "one function of machine code" in xlac.compile_stage(module, "executable")
