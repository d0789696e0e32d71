"""Gathers of single elements inside of kernels: the bits are the interpreter's, and no index is in memory."""
import re

import numpy as np
import pytest

import xlac
from xlac import kernels

RNG = np.random.default_rng(5)


def same(text, *arrays, **options):
    """Compiled with one thread, two, and without machine code, against the interpreter; returns the executable."""
    module = xlac.parse(text)
    want = xlac.interpret(module, *arrays)
    for threads in (1, 2):
        exe = xlac.compile(xlac.parse(text), threads=threads, **options)
        exe._check()
        got = exe(*arrays)
        for g, w in zip(got if isinstance(got, tuple) else [got], want if isinstance(want, tuple) else [want]):
            assert np.asarray(g).tobytes() == np.asarray(w).tobytes()
    return exe


def fused(exe, op):
    return re.search(rf"(?m)^  gather {re.escape(op)}: (.*)$", str(exe.explain("fusion")))[1].startswith(("in the kernel", "ends a kernel"))


def image_program(h, w, n, m, integer="s32", result="f32"):
    return f"""HloModule m
ENTRY e {{
  image = {result}[{h},{w}] parameter(0)
  y = {integer}[{n},{m}] parameter(1)
  x = {integer}[{n},{m}] parameter(2)
  one = {integer}[] constant(1)
  ones = {integer}[{n},{m}] broadcast(one), dimensions={{}}
  y1 = {integer}[{n},{m}] add(y, ones)
  yc = {integer}[{n},{m},1] reshape(y1)
  y0 = {integer}[{n},{m},1] reshape(y)
  xc = {integer}[{n},{m},1] broadcast(x), dimensions={{0,1}}
  at = {integer}[{n},{m},2] concatenate(yc, xc), dimensions={{2}}
  to = {integer}[{n},{m},2] concatenate(y0, xc), dimensions={{2}}
  g = {result}[{n},{m}] gather(image, at), offset_dims={{}}, collapsed_slice_dims={{0,1}}, start_index_map={{0,1}}, index_vector_dim=2, slice_sizes={{1,1}}
  k = {result}[{n},{m}] gather(image, to), offset_dims={{}}, collapsed_slice_dims={{0,1}}, start_index_map={{0,1}}, index_vector_dim=2, slice_sizes={{1,1}}
  ROOT r = {result}[{n},{m}] add(g, k)
}}"""


@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512"])
@pytest.mark.parametrize("integer", ["s32", "u32", "s64", "u8"])
@pytest.mark.parametrize(("n", "m"), [(7, 300), (40, 64), (1, 5), (90, 3)])
def test_elements_at_computed_pairs_of_indexes(n, m, integer, isa, monkeypatch):
    monkeypatch.setenv("XLAC_MAX_ISA", isa)
    dtype = np.dtype(("i" if integer[0] == "s" else "u") + str(int(integer[1:]) // 8))
    low = -30 if integer[0] == "s" else 0
    y, x = (RNG.integers(low, 90, (n, m)).astype(dtype) for _ in range(2))  # beyond both ends, where indexes are clamped
    exe = same(image_program(50, 60, n, m, integer), RNG.standard_normal((50, 60)).astype(np.float32), y, x)
    assert fused(exe, "g") and fused(exe, "k")
    assert exe.steps["all"] == 1


@pytest.mark.parametrize("result", ["bf16", "f64", "u8", "c64", "c128", "s4"])
def test_elements_of_every_size(result):
    text = image_program(20, 30, 9, 40, result=result)
    module = xlac.parse(text)
    kinds = {"bf16": "f32", "f64": "f64", "u8": "u8", "c64": "c64", "c128": "c128", "s4": "s8"}
    image = xlac.parse(f"HloModule i\nENTRY e {{\n  i = s32[20,30] iota(), iota_dimension=1\n  ROOT r = {result}[20,30] convert(i)\n}}")
    assert kinds[result] and module.entry
    same(text, np.asarray(xlac.interpret(image)), *(RNG.integers(-5, 40, (9, 40)).astype(np.int32) for _ in range(2)))


def test_a_batching_dimension_goes_in_step():
    text = """HloModule m
ENTRY e {
  x = f32[12,50] parameter(0)
  i = s32[12,30,1] parameter(1)
  g = f32[12,30] gather(x, i), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1}
  ROOT r = f32[12,30] negate(g)
}"""
    assert fused(same(text, RNG.standard_normal((12, 50)).astype(np.float32), RNG.integers(-9, 60, (12, 30, 1)).astype(np.int32)), "g")


def test_elements_are_summed_up_where_they_are_read():
    text = """HloModule m
s { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[1000] parameter(0)
  i = s32[600,80] parameter(1)
  j = s32[600,80] negate(i)
  g = f32[600,80] gather(x, j), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1}
  z = f32[] constant(0)
  ROOT r = f32[600] reduce(g, z), dimensions={1}, to_apply=s
}"""
    x, i = RNG.integers(-99, 99, 1000).astype(np.float32), -RNG.integers(0, 1000, (600, 80)).astype(np.int32)
    assert fused(same(text, x, i), "g")  # of whole numbers, whose sums are exact in any order


def test_the_array_and_the_index_may_be_one_kernels_values():
    """What is gathered from must be in memory first, though the same op is an operand of the sum."""
    text = """HloModule m
ENTRY e {
  p = f32[4000] parameter(0)
  i = s32[4000] parameter(1)
  x = f32[4000] exponential(p)
  j = s32[4000] negate(i)
  g = f32[4000] gather(x, j), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
  s = f32[4000] add(g, x)
  ROOT r = (f32[4000], s32[4000]) tuple(s, j)
}"""
    same(text, RNG.standard_normal(4000).astype(np.float32), -RNG.integers(-10, 4010, 4000).astype(np.int32))


def test_edges_around_a_gather():
    """Outside of the box the index is not there, and nothing is loaded."""
    text = """HloModule m
ENTRY e {
  x = f32[50] parameter(0)
  i = s32[40,30] parameter(1)
  j = s32[40,30] negate(i)
  g = f32[40,30] gather(x, j), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1}
  z = f32[] constant(7)
  p = f32[45,33] pad(g, z), padding=2_3x1_2
  ROOT r = f32[45,33] multiply(p, p)
}"""
    assert fused(same(text, RNG.standard_normal(50).astype(np.float32), RNG.integers(-70, 20, (40, 30)).astype(np.int32)), "g")


def test_a_gather_in_a_loop_is_an_instruction_of_its_list():
    text = """HloModule m
body { t = (s32[], s32[20], s32[20]) parameter(0)
  k = s32[] get-tuple-element(t), index=0
  i = s32[20] get-tuple-element(t), index=1
  x = s32[20] get-tuple-element(t), index=2
  g = s32[20] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
  m = s32[20] xor(g, i)
  one = s32[] constant(1)
  n = s32[] add(k, one)
  ROOT r = (s32[], s32[20], s32[20]) tuple(n, m, x) }
cond { t = (s32[], s32[20], s32[20]) parameter(0)
  k = s32[] get-tuple-element(t), index=0
  n = s32[] constant(50)
  ROOT r = pred[] compare(k, n), direction=LT }
ENTRY e {
  i = s32[20] parameter(0)
  x = s32[20] parameter(1)
  z = s32[] constant(0)
  t = (s32[], s32[20], s32[20]) tuple(z, i, x)
  w = (s32[], s32[20], s32[20]) while(t), condition=cond, body=body
  ROOT r = s32[20] get-tuple-element(w), index=1
}"""
    same(text, RNG.integers(0, 20, 20).astype(np.int32), RNG.integers(0, 32, 20).astype(np.int32))


KERNEL = """kernel [6,5] from 2 inputs
v0 = s32[] load in1[0 + 5*i0 + 1*i1]
v1 = s32[] negate(v0)
v2 = f32[] load in0[0 + 10*i0 + 1*v1 up to 9]
v3 = f32[] add(v2, v2)
store out0[0 + 5*i0 + 1*i1] v3
"""


def test_a_kernels_text_has_places_of_each_iteration():
    x, i = RNG.standard_normal((6, 10)).astype(np.float32), RNG.integers(-12, 3, (6, 5)).astype(np.int32)
    want = 2 * np.take_along_axis(x, np.clip(-i, 0, 9), 1)
    for reference in (False, True):
        assert (np.asarray(kernels.run(KERNEL, x.ravel(), i.ravel(), reference=reference)).reshape(6, 5) == want).all()
