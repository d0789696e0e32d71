"""Reproducers of faults that random modules and fuzzers found: sizes that only a run knows, scalars beside arrays, quantised CHLO."""
import numpy as np
import pytest

import xlac

from .conftest import leaves

ONES = np.ones


def both(text, *args):
    """What the interpreter and compiled programs give, which is the same."""
    module = xlac.parse(text)
    want = leaves(xlac.interpret(module, *args))
    for options in ({"threads": 1}, {"threads": 2}, {"passes": False}):
        for w, g in zip(want, leaves(xlac.compile(module, **options)(*args)), strict=True):
            np.testing.assert_array_equal(w, g)
    return want


MAP = """HloModule m
f {{
  a = {0}[] parameter(0)
  b = {0}[] parameter(1)
  ROOT s = {0}[] {1}(a, b)
}}
ENTRY e {{
  x = {0}[{2}] parameter(0)
  y = {0}[{3}] parameter(1)
  ROOT r = {0}[{4}] map(x, y), dimensions={{{5}}}, to_apply=f
}}"""


@pytest.mark.parametrize("hlo, numpy", [("f32", np.float32), ("f64", np.float64), ("s8", np.int8), ("s32", np.int32), ("u64", np.uint64), ("c64", np.complex64)])
def test_map_repeats_a_scalar_beside_an_array(hlo, numpy):
    x = (np.arange(70_000) % 100).astype(numpy)
    assert np.array_equal(both(MAP.format(hlo, "subtract", 70_000, "", 70_000, 0), x, numpy(3))[0], x - numpy(3))
    assert np.array_equal(both(MAP.format(hlo, "subtract", "", 70_000, 70_000, 0), numpy(3), x)[0], numpy(3) - x)


def test_map_of_scalars_alone_and_beside_nothing():
    assert both(MAP.format("f32", "add", "", "", "", ""), np.float32(1), np.float32(2))[0] == 3
    assert both(MAP.format("f32", "add", "", 0, 0, 0), np.float32(1), ONES(0, np.float32))[0].shape == (0,)


def test_a_convolution_takes_its_window_from_the_kernel():
    text = """func.func @main(%a: tensor<1x?x2xf32>, %b: tensor<?x2x4xf32>) -> tensor<1x?x4xf32> {
 %c = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
   {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x?x2xf32>, tensor<?x2x4xf32>) -> tensor<1x?x4xf32>
 return %c : tensor<1x?x4xf32>
}"""
    got, = both(text, ONES((1, 30, 2), np.float32), ONES((10, 2, 4), np.float32))
    assert got.shape == (1, 21, 4) and (got == 20).all()
    exe = xlac.load(xlac.compile(xlac.parse(text)).serialize())
    assert exe(ONES((1, 5, 2), np.float32), ONES((2, 2, 4), np.float32)).shape == (1, 4, 4)
    with pytest.raises(xlac.Error, match="the kernel has no element along dimension 0"):
        xlac.interpret(xlac.parse(text), ONES((1, 30, 2), np.float32), ONES((0, 2, 4), np.float32))


def test_top_k_of_an_open_size_compiles_and_loads():
    text = """func.func @main(%a: tensor<?xf32>) -> tensor<3xf32> {
 %v, %i = chlo.top_k(%a, k = 3) : tensor<?xf32> -> (tensor<3xf32>, tensor<3xi32>)
 return %v : tensor<3xf32>
}"""
    x = np.array([3, 1, 4, 1, 5], np.float32)
    assert list(both(text, x)[0]) == [5, 4, 3]
    assert list(xlac.load(xlac.compile(xlac.parse(text)).serialize())(x)) == [5, 4, 3]
    with pytest.raises(xlac.Error, match="k is 3, but the operand's last dimension has the run-time size 2"):
        xlac.compile(xlac.parse(text))(x[:2])


def test_a_reshape_says_how_many_elements_there_are():
    text = """func.func @main(%a: tensor<?xf32>) -> tensor<50xf32> {
 %c = stablehlo.reshape %a : (tensor<?xf32>) -> tensor<50xf32>
 return %c : tensor<50xf32>
}"""
    with pytest.raises(xlac.Error, match=r"3 elements can't take the dimensions of f32\[50\], which has 50"):
        xlac.interpret(xlac.parse(text), ONES(3, np.float32))
    assert both(text, ONES(50, np.float32))[0].shape == (50,)


def test_a_result_must_have_the_sizes_of_its_type():
    text = """func.func @main(%a: tensor<?xf32>) -> tensor<5xf32> {
 %c = stablehlo.abs %a : (tensor<?xf32>) -> tensor<5xf32>
 return %c : tensor<5xf32>
}"""
    for n in (3, 1000):
        with pytest.raises(xlac.Error, match=rf"2:\d+.*abs gives an array of the run-time dimensions f32\[{n}\], but its type is f32\[5\]"):
            xlac.compile(xlac.parse(text))(ONES(n, np.float32))


@pytest.mark.parametrize("length, kind", [("7", "FFT"), ("7", "IFFT"), ("2,8", "FFT")])
def test_fft_lengths_are_verified(length, kind):
    text = f"HloModule m\nENTRY e {{\n  p = c64[4,8] parameter(0)\n  ROOT f = c64[4,8] fft(p), fft_type={kind}, fft_length={{{length}}}\n}}"
    with pytest.raises(xlac.VerifyError, match=f"{kind} needs size"):
        xlac.parse(text).verify()


@pytest.mark.parametrize("bits", ["exponent_bits=4294967296, mantissa_bits=10", "exponent_bits=5, mantissa_bits=4294967296"])
def test_reduce_precision_bits_are_verified(bits):
    text = f"HloModule m\nENTRY e {{\n  p = f32[4] parameter(0)\n  ROOT s = f32[4] reduce-precision(p), {bits}\n}}"
    with pytest.raises(xlac.VerifyError, match="no more than 2147483647"):
        xlac.parse(text).verify()


def test_broadcast_add_of_quantised_tensors_adds_real_numbers():
    a, b = "!quant.uniform<i8:f32, 2.0:15>", "!quant.uniform<i8:f32, 3.0:15>"
    text = f"""func.func @main(%a: tensor<4x{a}>, %b: tensor<4x{b}>) -> tensor<4x{a}> {{
  %0 = "chlo.broadcast_add"(%a, %b) : (tensor<4x{a}>, tensor<4x{b}>) -> tensor<4x{a}>
  func.return %0: tensor<4x{a}>
}}"""
    assert list(both(text, np.array([15, 20, 25, 0], np.int8), np.array([17, 15, 10, 15], np.int8))[0]) == [18, 20, 18, 0]


SCATTER = """func.func @main(%x: tensor<?xf32>, %i: tensor<1x1xi32>, %u: tensor<1x?xf32>) -> tensor<?xf32> {
 %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
   scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
   %c = stablehlo.add %a, %b : tensor<f32>
   stablehlo.return %c : tensor<f32>
 }) : (tensor<?xf32>, tensor<1x1xi32>, tensor<1x?xf32>) -> tensor<?xf32>
 return %r : tensor<?xf32>
}"""


def test_a_scatter_of_a_window_larger_than_the_array_is_refused():
    at = np.zeros((1, 1), np.int32)
    assert np.array_equal(both(SCATTER, ONES(3, np.float32), at, ONES((1, 3), np.float32))[0], [2, 2, 2])
    for run in (xlac.interpret, lambda m, *args: xlac.compile(m)(*args)):
        with pytest.raises(xlac.Error, match="window has the run-time size 4 in dimension 0 of operand 0, which has 3"):
            run(xlac.parse(SCATTER), ONES(3, np.float32), at, ONES((1, 4), np.float32))


@pytest.mark.parametrize("counts", ["num_partitions=2", "replica_count=2", "num_partitions=2, replica_count=2"])
def test_annotations_for_several_devices_leave_the_result_whole(counts):
    text = f"""HloModule m, {counts}
ENTRY e {{
  x = f32[4] parameter(0), sharding={{devices=[2]<=[2]}}
  ROOT y = f32[4] add(x, x), sharding={{devices=[2]<=[2]}}
}}"""
    assert np.array_equal(both(text, np.arange(4, dtype=np.float32))[0], [0, 2, 4, 6])


@pytest.mark.parametrize("exponent, mantissa", [(8, 23), (20, 60), (2147483647, 2147483647)])
def test_reduce_precision_to_more_bits_than_there_are_changes_nothing(exponent, mantissa):
    x = np.array([1.1, 3.4e38, 1e-40, -0.0, np.inf, np.nan], np.float32)
    text = f"""HloModule m
ENTRY e {{
  x = f32[6] parameter(0)
  ROOT y = f32[6] reduce-precision(x), exponent_bits={exponent}, mantissa_bits={mantissa}
}}"""
    assert np.array_equal(both(text, x)[0].view(np.uint32), x.view(np.uint32))


def test_windows_of_unknown_size_are_an_error():
    """StableHLO's verifier lets a window pass whose size is the number that stands for an unknown one, -2^63."""
    text = """func.func @main(%a: tensor<8x3xf32>, %b: tensor<8x3xi32>, %x: tensor<f32>, %y: tensor<i32>) -> (tensor<4x3xf32>, tensor<4x3xi32>) {
  %0:2 = "stablehlo.reduce_window"(%a, %b, %x, %y) ({
  ^bb0(%c: tensor<f32>, %d: tensor<i32>, %e: tensor<f32>, %f: tensor<i32>):
    %1 = stablehlo.maximum %c, %e : tensor<f32>
    %2 = stablehlo.maximum %d, %f : tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }) {window_dimensions = array<i64: 9223372036854775808, 1>, window_strides = array<i64: 2, 1>} :
      (tensor<8x3xf32>, tensor<8x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<4x3xf32>, tensor<4x3xi32>)
  return %0#0, %0#1 : tensor<4x3xf32>, tensor<4x3xi32>
}"""
    arguments = ONES((8, 3), np.float32), ONES((8, 3), np.int32), np.float32(0), np.int32(0)
    for run in (xlac.interpret, lambda module, *args: xlac.compile(module)(*args)):
        with pytest.raises(xlac.Error, match="size of the window along dimension 0 is not known"):
            run(xlac.parse(text), *arguments)
