"""Ops that are little work but once were the interpreter's: casts of bits between widths, layouts, tokens, sizes, participants,
and custom calls that mean something by themselves."""
import itertools

import numpy as np
import pytest

import xlac

from .conftest import leaves, same_bits

rng = np.random.default_rng(3)
WIDTHS = {"s2": 2, "u2": 2, "s4": 4, "u4": 4, "f4e2m1fn": 4, "s8": 8, "f8e5m2": 8, "bf16": 16, "f16": 16, "u32": 32, "f32": 32, "s64": 64, "f64": 64}


def agree(text, *args):
    module = xlac.parse(text)
    want = leaves(xlac.interpret(module, *args))
    for passes in (True, False):
        for threads in (1, 2, 7):
            exe = xlac.compile(module, threads=threads, passes=passes)
            exe._check()
            assert exe.steps["interpreted"] == 0 and not exe.steps["why_interpreted"], exe.explain("schedule")
            assert same_bits(leaves(exe(*args)), want)


@pytest.mark.parametrize("a, b", list(itertools.permutations(WIDTHS, 2)))
def test_bits(a, b):
    n, wide, narrow = 70000 if {a, b} == {"s4", "u32"} else 200, max(WIDTHS[a], WIDTHS[b]), min(WIDTHS[a], WIDTHS[b])
    more = f",{wide // narrow}" if wide > narrow else ""
    source, result = (f"{t}[{n}{more if WIDTHS[t] == narrow else ''}]" for t in (a, b))
    dims = source[source.index("["):]
    low, high = (0, 2) if WIDTHS[a] < 8 else (-8, 8)
    agree(f"HloModule m\nENTRY e {{\n x = s8{dims} parameter(0)\n v = {source} convert(x)\n ROOT r = {result} bitcast-convert(v)\n}}",
          rng.integers(low, high, [int(d) for d in dims[1:-1].split(",")]).astype(np.int8))


def test_truths_are_bytes_in_hlo():
    agree("HloModule m\nENTRY e {\n x = pred[40,8] parameter(0)\n ROOT r = s8[40,8] bitcast-convert(x)\n}", rng.integers(0, 2, (40, 8)).astype(bool))


def test_truths_are_bits_in_stablehlo():
    for text, arg in [
            ("func.func @main(%x: tensor<40x8xi1>) -> tensor<40xi8> {\n %r = stablehlo.bitcast_convert %x : (tensor<40x8xi1>) -> tensor<40xi8>\n return %r : tensor<40xi8>\n}",
             rng.integers(0, 2, (40, 8)).astype(bool)),
            ("func.func @main(%x: tensor<300xf32>) -> tensor<300x32xi1> {\n %r = stablehlo.bitcast_convert %x : (tensor<300xf32>) -> tensor<300x32xi1>\n return %r : tensor<300x32xi1>\n}",
             rng.standard_normal(300).astype(np.float32))]:
        agree(text, arg)


@pytest.mark.parametrize("source, result", [("f32[6,4]{0,1}", "f32[4,6]{1,0}"), ("f32[2,3,4]{0,2,1}", "f32[3,4,2]{2,1,0}"), ("f32[6,4]{1,0}", "s32[3,8]{0,1}"),
                                            ("f32[6,4]", "f32[24]"), ("f32[0,4]{0,1}", "f32[4,0]")])
def test_bitcast_between_layouts(source, result):
    shape = [int(d) for d in source[4:source.index("]")].split(",")]
    agree(f"HloModule m\nENTRY e {{\n x = {source} parameter(0)\n y = {source} copy(x)\n ROOT r = {result} bitcast(y)\n}}",
          rng.standard_normal(shape).astype(np.float32))


def test_tokens_make_no_step():
    text = """HloModule m
ENTRY e {
  x = f32[3,4] parameter(0)
  t = token[] after-all()
  u = token[] after-all(t)
  y = f32[3,4] add-dependency(x, u)
  n = f32[3,4] negate(y)
  s = s32[] get-dimension-size(n), dimensions={1}
  r = u32[] replica-id()
  p = u32[] partition-id()
  ROOT o = (f32[3,4], s32[], u32[], u32[]) tuple(n, s, r, p)
}"""
    agree(text, rng.standard_normal((3, 4)).astype(np.float32))


def test_a_token_may_be_a_result():
    module = xlac.parse("HloModule m\nENTRY e {\n x = f32[3] parameter(0)\n t = token[] after-all()\n ROOT o = (f32[3], token[]) tuple(x, t)\n}")
    x = np.arange(3, dtype=np.float32)
    exe = xlac.compile(module)
    exe._check()
    assert exe.steps["interpreted"] == 0 and not exe.steps["why_interpreted"]
    got, want = exe(x), xlac.interpret(module, x)
    assert np.array_equal(got[0], want[0]) and type(got[1]) is type(want[1])


def test_top_k_as_a_custom_call():
    x = rng.standard_normal((5, 700)).astype(np.float32)
    x[0, 3] = np.nan
    text = 'HloModule m\nENTRY e {\n x = f32[5,700] parameter(0)\n ROOT t = (f32[5,9], s32[5,9]) custom-call(x), custom_call_target="TopK"\n}'
    agree(text, x)
    xlac.register_custom_call("TopK", lambda v: (v[:, :9] * 0, np.zeros((5, 9), np.int32)))
    try:
        assert not np.any(xlac.compile(xlac.parse(text))(x)[0][1:])
    finally:
        xlac.register_custom_call("TopK", None)


@pytest.mark.parametrize("target", ["Sharding", "MoveToHost", "LayoutConstraint"])
def test_markers_are_copies(target):
    text = f'HloModule m\nENTRY e {{\n x = f32[5,7] parameter(0)\n ROOT t = f32[5,7] custom-call(x), custom_call_target="{target}"\n}}'
    agree(text, rng.standard_normal((5, 7)).astype(np.float32))


def test_allocated_memory_is_zero():
    agree('HloModule m\nENTRY e {\n ROOT t = f32[5,7] custom-call(), custom_call_target="AllocateBuffer"\n}')


@pytest.mark.parametrize("t", ["f32", "f64", "f16", "bf16"])
def test_next_after(t):
    text = f"func.func @main(%x: tensor<9001xf32>, %y: tensor<9001xf32>) -> tensor<9001x{t}> {{\n" + "".join(
        f" %{v}t = stablehlo.convert %{v} : (tensor<9001xf32>) -> tensor<9001x{t}>\n" for v in "xy") + (
        f" %r = chlo.next_after %xt, %yt : tensor<9001x{t}>, tensor<9001x{t}> -> tensor<9001x{t}>\n return %r : tensor<9001x{t}>\n}}")
    x, y = (rng.standard_normal(9001).astype(np.float32) for _ in "xy")
    x[:4], y[:4] = [0, np.inf, 1, -1], [-1, 0, 1, np.inf]
    agree(text, x, y)


@pytest.mark.parametrize("t,dtype", [("complex<f32>", np.complex64), ("complex<f64>", np.complex128)])
def test_complex_numbers_are_clamped_in_the_order_of_their_parts(t, dtype):
    text = f"""func.func @main(%l: tensor<{t}>, %x: tensor<9001x{t}>, %h: tensor<9001x{t}>) -> tensor<9001x{t}> {{
 %r = stablehlo.clamp %l, %x, %h : (tensor<{t}>, tensor<9001x{t}>, tensor<{t}>) -> tensor<9001x{t}>
 return %r : tensor<9001x{t}>
}}""".replace(f"%h: tensor<9001x{t}>", f"%h: tensor<{t}>")
    x = (rng.integers(-3, 4, 9001) + 1j * rng.integers(-3, 4, 9001)).astype(dtype)
    low, high = dtype(-1 + 1j), dtype(2 - 2j)
    agree(text, low, x, high)
    want = [min(max((v.real, v.imag), (-1, 1)), (2, -2)) for v in x]
    np.testing.assert_array_equal(xlac.compile(xlac.parse(text))(low, x, high), [complex(*w) for w in want])


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "s8", "s32", "u32", "s64", "c64", "c128"])
@pytest.mark.parametrize("shape, dimension", [((5, 3), 0), ((5, 3), 1), ((2, 300, 7), 1), ((3, 5000), 0), ((3, 5000), 1), ((4, 1), 1), ((1,), 0), ((0, 4), 1)])
def test_iota_along_any_dimension_is_the_interpreters(dtype, shape, dimension):
    module = xlac.parse(f"HloModule m\nENTRY e {{ ROOT r = {dtype}[{','.join(map(str, shape))}] iota(), iota_dimension={dimension} }}")
    want = np.asarray(xlac.interpret(module))
    for threads in (1, 2):
        got = np.asarray(xlac.compile(module, threads=threads)())
        assert got.shape == want.shape and got.tobytes() == want.tobytes()


def test_iota_of_f32_rounds_numbers_beyond_its_precision_once():
    module = xlac.parse("HloModule m\nENTRY e { ROOT r = f32[33554500] iota(), iota_dimension=0 }")
    got = np.asarray(xlac.compile(module, threads=2)())
    assert np.array_equal(got[-200000:], np.arange(33554500 - 200000, 33554500).astype(np.float32))


@pytest.mark.parametrize("start, stride", [(3, 7), (0, 1)])
def test_what_is_cut_out_of_an_iota_counts_in_strides(start, stride):
    module = xlac.parse(f"""HloModule m
ENTRY e {{
  i = s32[4000] iota(), iota_dimension=0
  s = s32[{len(range(start, 4000, stride))}] slice(i), slice={{[{start}:4000:{stride}]}}
  v = s32[{len(range(start, 4000, stride))}] reverse(s), dimensions={{0}}
  ROOT f = f32[{len(range(start, 4000, stride))}] convert(v)
}}""")
    assert np.array_equal(np.asarray(xlac.compile(module)()), np.arange(start, 4000, stride)[::-1].astype(np.float32))
