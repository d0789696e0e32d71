"""Quantised tensors: storage in and out, arithmetic on real values, per tensor, per axis and in blocks."""
import numpy as np
import pytest

import xlac


def run(text, *args):
    return xlac.interpret(xlac.parse(text), *args)


def round_trip(x, quant):
    shape = "x".join(map(str, x.shape))
    text = f"""func.func @main(%x: tensor<{shape}xf32>) -> (tensor<{shape}xi8>, tensor<{shape}xf32>) {{
  %0 = stablehlo.uniform_quantize %x : (tensor<{shape}xf32>) -> tensor<{shape}x{quant}>
  %1 = stablehlo.bitcast_convert %0 : (tensor<{shape}x{quant}>) -> tensor<{shape}xi8>
  %2 = stablehlo.uniform_dequantize %0 : (tensor<{shape}x{quant}>) -> tensor<{shape}xf32>
  return %1, %2 : tensor<{shape}xi8>, tensor<{shape}xf32>
}}"""
    return run(text, x)


def test_per_tensor():
    stored, real = round_trip(np.array([0, 0.25, 0.75, 100, -100], np.float32), "!quant.uniform<i8:f32, 0.5:-20>")
    np.testing.assert_array_equal(stored, [-20, -20, -18, 127, -128])
    np.testing.assert_array_equal(real, (stored.astype(np.float32) + 20) * 0.5)


def test_range():
    stored, _ = round_trip(np.array([100, -100, 1], np.float32), "!quant.uniform<i8<-7:7>:f32, 1.0>")
    np.testing.assert_array_equal(stored, [7, -7, 1])


def test_per_axis():
    x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    stored, real = round_trip(x, "!quant.uniform<i8:f32:1, {1.0, 0.5:10}>")
    np.testing.assert_array_equal(stored, [[1, 14], [3, 18], [5, 22]])
    np.testing.assert_array_equal(real, x)


def test_blocks_are_refused_before_the_run():
    """StableHLO's ops take no types quantised in blocks, so the verifier stops them."""
    with pytest.raises(xlac.VerifyError):
        round_trip(np.ones((2, 4), np.float32), "!quant.uniform<i8:f32:{0:1, 1:2}, {{1.0, 0.5}, {0.25, 2.0}}>")


def test_requantised():
    text = """func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> {
  %0 = stablehlo.bitcast_convert %x : (tensor<2xi8>) -> tensor<2x!quant.uniform<i8:f32, 0.5:-30>>
  %1 = stablehlo.uniform_quantize %0 : (tensor<2x!quant.uniform<i8:f32, 0.5:-30>>) -> tensor<2x!quant.uniform<i8:f32, 0.25:-20>>
  %2 = stablehlo.bitcast_convert %1 : (tensor<2x!quant.uniform<i8:f32, 0.25:-20>>) -> tensor<2xi8>
  return %2 : tensor<2xi8>
}"""
    np.testing.assert_array_equal(run(text, np.array([10, -30], np.int8)), [60, -20])


def test_arithmetic_is_on_real_values():
    a, b = "!quant.uniform<i8:f32, 0.5>", "!quant.uniform<i8:f32, 0.25:4>"
    text = f"""func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xi1>) {{
  %0 = stablehlo.uniform_quantize %x : (tensor<3xf32>) -> tensor<3x{a}>
  %1 = stablehlo.uniform_quantize %y : (tensor<3xf32>) -> tensor<3x{a}>
  %2 = stablehlo.add %0, %1 : (tensor<3x{a}>, tensor<3x{a}>) -> tensor<3x{b}>
  %3 = stablehlo.uniform_dequantize %2 : (tensor<3x{b}>) -> tensor<3xf32>
  %4 = stablehlo.compare LT, %0, %1 : (tensor<3x{a}>, tensor<3x{a}>) -> tensor<3xi1>
  return %3, %4 : tensor<3xf32>, tensor<3xi1>
}}"""
    total, less = run(text, np.array([1, 2.5, -3], np.float32), np.array([0.5, 3, 1], np.float32))
    np.testing.assert_array_equal(total, [1.5, 5.5, -2])
    np.testing.assert_array_equal(less, [False, True, True])


def test_movement_is_on_storage():
    q = "!quant.uniform<i8:f32, 0.5:3>"
    text = f"""func.func @main(%x: tensor<2x3xi8>) -> tensor<3x2xi8> {{
  %0 = stablehlo.bitcast_convert %x : (tensor<2x3xi8>) -> tensor<2x3x{q}>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3x{q}>) -> tensor<3x2x{q}>
  %2 = stablehlo.bitcast_convert %1 : (tensor<3x2x{q}>) -> tensor<3x2xi8>
  return %2 : tensor<3x2xi8>
}}"""
    x = np.arange(6, dtype=np.int8).reshape(2, 3)
    np.testing.assert_array_equal(run(text, x), x.T)


@pytest.mark.parametrize("hybrid", [False, True])
def test_dot(hybrid):
    a = "f32" if hybrid else "!quant.uniform<i8:f32, 0.5>"
    b = "!quant.uniform<i8<-127:127>:f32:1, {1.0, 0.25}>"
    r = "f32" if hybrid else "!quant.uniform<i32:f32:1, {0.5, 0.125}>"
    quantise = "" if hybrid else f"%p = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x{a}>"
    give = "" if hybrid else f"%s = stablehlo.uniform_dequantize %r : (tensor<2x2x{r}>) -> tensor<2x2xf32>"
    p, s = ("%x", "%r") if hybrid else ("%p", "%s")
    text = f"""func.func @main(%x: tensor<2x2xf32>, %y: tensor<2x2xf32>) -> tensor<2x2xf32> {{
  {quantise}
  %q = stablehlo.uniform_quantize %y : (tensor<2x2xf32>) -> tensor<2x2x{b}>
  %r = stablehlo.dot_general {p}, %q, contracting_dims = [1] x [0] : (tensor<2x2x{a}>, tensor<2x2x{b}>) -> tensor<2x2x{r}>
  {give}
  return {s} : tensor<2x2xf32>
}}"""
    x, y = np.array([[1, 2], [3, -4.5]], np.float32), np.array([[2, 0.25], [1, -0.5]], np.float32)
    np.testing.assert_array_equal(run(text, x, y), x @ y)
