"""StableHLO's dynamic ops, and sizes that only the arguments know."""
import numpy as np
import pytest

import xlac


def run(text, *args):
    return xlac.interpret(xlac.parse(text), *args)


def i64(*v):
    return np.array(v, np.int64)


def test_dynamic_iota():
    text = """func.func @main(%s: tensor<2xi64>) -> tensor<?x?xi32> {
  %0 = stablehlo.dynamic_iota %s, dim = 1 : (tensor<2xi64>) -> tensor<?x?xi32>
  return %0 : tensor<?x?xi32>
}"""
    np.testing.assert_array_equal(run(text, i64(2, 3)), [[0, 1, 2]] * 2)
    with pytest.raises(xlac.Error, match="size -1 of dimension 0"):
        run(text, i64(-1, 3))


def test_dynamic_broadcast_and_reshape():
    text = """func.func @main(%x: tensor<?xf32>, %s: tensor<2xi64>, %t: tensor<1xi64>) -> tensor<?xf32> {
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  %1 = stablehlo.dynamic_reshape %0, %t : (tensor<?x?xf32>, tensor<1xi64>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}"""
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(run(text, x, i64(3, 2), i64(6)), [1, 2] * 3)
    with pytest.raises(xlac.Error, match="can't take"):
        run(text, x, i64(3, 2), i64(5))
    with pytest.raises(xlac.Error, match="can't be spread"):
        run(text, x, i64(3, 4), i64(12))


def test_dynamic_pad_and_slice():
    x = np.arange(1, 5, dtype=np.int32)
    pad = """func.func @main(%x: tensor<4xi32>, %v: tensor<i32>, %l: tensor<1xi64>, %h: tensor<1xi64>, %i: tensor<1xi64>)
    -> tensor<?xi32> {
  %0 = stablehlo.dynamic_pad %x, %v, %l, %h, %i
    : (tensor<4xi32>, tensor<i32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xi32>
  return %0 : tensor<?xi32>
}"""
    np.testing.assert_array_equal(run(pad, x, np.int32(9), i64(1), i64(-1), i64(1)), [9, 1, 9, 2, 9, 3, 9])
    cut = """func.func @main(%x: tensor<4xi32>, %a: tensor<1xi64>, %b: tensor<1xi64>, %c: tensor<1xi64>) -> tensor<?xi32> {
  %0 = stablehlo.real_dynamic_slice %x, %a, %b, %c
    : (tensor<4xi32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xi32>
  return %0 : tensor<?xi32>
}"""
    np.testing.assert_array_equal(run(cut, x, i64(1), i64(4), i64(2)), [2, 4])
    with pytest.raises(xlac.Error, match="not a slice of dimension 0"):
        run(cut, x, i64(1), i64(5), i64(2))


def test_ops_on_unknown_sizes():
    text = """func.func @main(%x: tensor<?x3xf32>) -> tensor<?xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.tanh %x : tensor<?x3xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>
  %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [0]
    : (tensor<3x?xf32>, tensor<f32>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}"""
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_allclose(run(text, x), np.tanh(x).sum(1), rtol=1e-6)


WINDOWS = """func.func @main(%x: tensor<?x4xf32>, %i: tensor<f32>) -> tensor<?x?xf32> {{
  %w = "stablehlo.reduce_window"(%x, %i) ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }}) {{{}}} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x?xf32>
  return %w : tensor<?x?xf32>
}}"""
UNKNOWN = -2**63


def test_a_window_of_unknown_size_is_an_error_when_it_runs():
    """StableHLO verifies it: in a convolution the kernel would tell the size."""
    module = xlac.verify(WINDOWS.format(f"window_dimensions = array<i64: {UNKNOWN}, 2>"))
    with pytest.raises(xlac.Error, match="the size of the window along dimension 0 is not known"):
        xlac.interpret(module, np.zeros((3, 4), np.float32), np.float32(0))


@pytest.mark.parametrize("name, what", [("window_strides", "stride"), ("base_dilations", "base dilation"), ("window_dilations", "dilation")])
def test_only_the_size_of_a_window_may_be_unknown(name, what):
    with pytest.raises(xlac.VerifyError, match=f"a window with {what} {UNKNOWN} in dimension 0"):
        xlac.verify(WINDOWS.format(f"window_dimensions = array<i64: 2, 2>, {name} = array<i64: {UNKNOWN}, 1>"))
