"""argmax and argmin as routines: the interpreter's bits, with NaN, both zeros, ties, and places that are not a count."""
import numpy as np
import pytest

import xlac

from .test_moves import braces, check, program, shape
from .test_sort import with_nans

FLOATS, INTEGERS = ["f32", "f64", "bf16", "f16"], ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]


def body(t, place, direction, swap=False, nan_test=True):
    better = f"  b = pred[] or({'ne, gt' if swap else 'gt, ne'})" if nan_test else "  b = pred[] copy(gt)"
    return f"""f {{
  p0 = {t}[] parameter(0)
  p1 = {place}[] parameter(1)
  p2 = {t}[] parameter(2)
  p3 = {place}[] parameter(3)
  gt = pred[] compare(p0, p2), direction={direction}
  ne = pred[] compare(p0, p0), direction=NE
{better}
  v = {t}[] select(b, p0, p2)
  eq = pred[] compare(p0, p2), direction=EQ
  lt = pred[] compare(p1, p3), direction=LT
  and = pred[] and({'lt, eq' if swap else 'eq, lt'})
  k = pred[] or({'and, b' if swap else 'b, and'})
  q = {place}[] select(k, p1, p3)
  ROOT r = ({t}[], {place}[]) tuple(v, q)
}}
"""


def text(t, place, dims, dim, direction="GT", counts=True, **options):
    out = [n for d, n in enumerate(dims) if d != dim]
    i = f"  i = {shape(place, dims)} {f'iota(), iota_dimension={dim}' if counts else 'parameter(3)'}"
    return program(f"  x = {shape(t, dims)} parameter(0)", f"  a = {t}[] parameter(1)", f"  b = {place}[] parameter(2)", i,
                   f"  ROOT r = ({shape(t, out)}, {shape(place, out)}) reduce(x, i, a, b), dimensions={braces([dim])}, to_apply=f"
                   ).replace("ENTRY", body(t, place, direction, **options) + "ENTRY")


def numbers(rng, t, dims):
    kind = xlac._core.numpy_dtype(t)
    if t in INTEGERS:
        return rng.integers(-9 if t[0] == "s" else 0, 9, dims).astype(kind)
    x = rng.integers(-3, 1, dims).astype(kind)  # many ties, the largest a zero
    return np.where((x == 0) & (rng.integers(0, 2, dims) == 1), -x, x).astype(kind)


SHAPES = [((5, 100), 1), ((100, 5), 0), ((3, 40, 300), 1), ((4, 7), 1), ((1, 1), 0), ((0, 3), 0), ((3, 0), 1), ((200,), 0), ((2, 33), 1), ((70, 600), 0)]


@pytest.mark.parametrize("t", FLOATS + INTEGERS)
@pytest.mark.parametrize("place", ["s32", "s64"])
@pytest.mark.parametrize("direction", ["GT", "LT"])
@pytest.mark.parametrize("dims,dim", SHAPES)
def test_arg_reductions(t, place, direction, dims, dim):
    rng = np.random.default_rng(10)
    inputs = [numbers(rng, t, dims)]
    if t in FLOATS:
        inputs += [with_nans(inputs[0].copy()), np.where(rng.integers(0, 30, dims) == 0, np.nan, inputs[0]).astype(inputs[0].dtype), -inputs[0]]
    kind = inputs[0].dtype
    firsts = [np.array(-np.inf if direction == "GT" else np.inf, kind), np.array(-0.0, kind), np.array(np.nan, kind)] if t in FLOATS else \
        [np.array(v).astype(kind) for v in (0, 8)]
    at = np.int32(3).astype(place.replace("s", "int"))
    for counts in (True, False):
        module = text(t, place, dims, dim, direction, counts, swap=not counts)
        places = [] if counts else [rng.integers(-5, 50, dims).astype(at.dtype)]
        for x in inputs:
            for first in firsts:
                check(module, x, first, at, *places, eval_ok=True)
        if 0 not in dims:
            assert f" arg{'max' if direction == 'GT' else 'min'} " in xlac.compile(xlac.parse(module)).plan() or dims[dim] == 1


@pytest.mark.parametrize("t", FLOATS + INTEGERS)
@pytest.mark.parametrize("place", ["s32", "s64"])
@pytest.mark.parametrize("n", [1, 3, 24, 25])
def test_short_rows_are_compared_side_by_side(t, place, n):
    """In groups, and what is left by itself; groups that have a zero or a NaN find out which of them it was."""
    rng, kind = np.random.default_rng(n), xlac._core.numpy_dtype(t)
    plain = rng.integers(1, 99, (77, n)).astype(kind)
    special = plain.copy()
    special[40:50] = 0
    special[45] *= -1 if t in FLOATS else 1
    if t in FLOATS:
        special[70, n // 2] = np.nan
    first = np.array(-np.inf if t in FLOATS else np.iinfo(kind).min, kind)
    for x in (plain, special):
        for start in (first, np.array(50, kind)):
            check(text(t, place, (77, n), 1), x, start, np.array(0, place.replace("s", "int")), eval_ok=True)


@pytest.mark.parametrize("isa", ["portable", "avx2"])
@pytest.mark.parametrize("t", ["f32", "s32"])
@pytest.mark.parametrize("dims,dim", [((9, 16), 0), ((9, 41), 0), ((7, 50), 1), ((30, 5), 1), ((1, 20), 0)])
def test_vectors_of_each_level(t, isa, dims, dim, monkeypatch):
    """Columns and long rows by vectors of AVX2, or without: also where a lane has a zero, a NaN, or nothing better than the initial value."""
    monkeypatch.setenv("XLAC_MAX_ISA", isa)
    rng, kind = np.random.default_rng(13), xlac._core.numpy_dtype(t)
    plain = rng.integers(1, 99, dims).astype(kind)
    zeros = numbers(rng, t, dims)
    inputs = [plain, -plain, zeros, np.where(rng.integers(0, 9, dims) == 0, zeros, plain)]
    if t == "f32":
        inputs += [with_nans(plain.copy()), with_nans(zeros.copy())]
    for direction, least in (("GT", -np.inf), ("LT", np.inf)):
        worst = kind.type(least) if t == "f32" else np.iinfo(kind).min if direction == "GT" else np.iinfo(kind).max
        for x in inputs:
            for first in (worst, 50, 0):
                check(text(t, "s32", dims, dim, direction), x, np.array(first, kind), np.array(2, np.int32), eval_ok=True)


def test_places_that_count_are_not_computed():
    exe = xlac.compile(xlac.parse(text("f32", "s32", (50, 60), 1)))
    assert exe.steps["all"] == 1, exe.plan()
    used = text("f32", "s32", (50, 60), 1).replace("ROOT r = (f32[50], s32[50]) reduce", "r = (f32[50], s32[50]) reduce").replace(
        "to_apply=f\n", "to_apply=f\n  ROOT t = ((f32[50], s32[50]), s32[50,60]) tuple(r, i)\n")
    check(used, np.ones((50, 60), np.float32), np.float32(0), np.int32(1), eval_ok=True)


def test_big_ones():
    rng = np.random.default_rng(11)
    x = rng.normal(size=(600, 700)).astype(np.float32)
    for dim in (0, 1):
        check(text("f32", "s32", x.shape, dim), x, np.float32(-np.inf), np.int32(0), eval_ok=True)


def test_other_bodies_are_the_interpreters():
    rng = np.random.default_rng(12)
    x = with_nans(numbers(rng, "f32", (5, 40)))
    for wrong in (text("f32", "s32", x.shape, 1).replace("compare(p1, p3), direction=LT", "compare(p1, p3), direction=GT"),
                  text("f32", "s32", x.shape, 1, nan_test=False), text("f32", "s32", x.shape, 1).replace("select(b, p0, p2)", "select(b, p2, p0)")):
        check(wrong, x, np.float32(-np.inf), np.int32(0), eval_ok=True)
        assert " argmax " not in xlac.compile(xlac.parse(wrong)).plan()
