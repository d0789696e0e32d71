"""Programs with CHLO ops go through the same passes as others, and keep the interpreter's bits."""
import numpy as np
import pytest

import xlac

PROGRAM = """
func.func @main(%a: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  %0 = chlo.erfc %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %1 = chlo.broadcast_add %0, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %2 = chlo.FUNCTION %1 : tensor<8x4xf32> -> tensor<8x4xf32>
  %c = "chlo.constant"() {value = dense<1.0> : tensor<8x4xf32>} : () -> tensor<8x4xf32>
  %d = "chlo.constant_like"(%a) {value = 2.0 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = stablehlo.multiply %2, %c : tensor<8x4xf32>
  %4 = stablehlo.multiply %2, %c : tensor<8x4xf32>
  %5 = stablehlo.add %3, %4 : tensor<8x4xf32>
  %6 = stablehlo.multiply %5, %d : tensor<8x4xf32>
  return %6 : tensor<8x4xf32>
}"""


@pytest.mark.parametrize("function", ("lgamma", "digamma", "erf_inv", "bessel_i1e", "square", "tan", "sinh", "conj"))
def test_chlo_ops_are_optimised_and_fused(function):
    text = PROGRAM.replace("FUNCTION", function)
    if function == "conj":
        text = text.replace("  %2 = chlo.conj %1 : tensor<8x4xf32> -> tensor<8x4xf32>\n", "").replace("%2", "%1")
    module = xlac.parse(text)
    exe = xlac.compile(module)
    a, b = np.linspace(0.1, 0.9, 32, dtype=np.float32).reshape(8, 4), np.linspace(-1, 1, 4, dtype=np.float32)
    np.testing.assert_array_equal(exe(a, b), xlac.interpret(module, a, b))
    assert exe.steps["interpreted"] == 0 and exe.steps["all"] == 1
    assert f"a kernel of {4 if function == 'conj' else 5} ops" in exe.explain("fusion")  # a factor of 1 is gone
    np.testing.assert_array_equal(xlac.load(exe.serialize())(a, b), exe(a, b))


def test_what_the_passes_do_not_know_is_left_alone():
    text = """
func.func @main(%a: tensor<4xf32>, %b: tensor<4x!quant.uniform<i8:f32, 0.5>>) -> tensor<4xf32> {
  %0 = stablehlo.uniform_dequantize %b : (tensor<4x!quant.uniform<i8:f32, 0.5>>) -> tensor<4xf32>
  %1 = chlo.broadcast_add %a, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}"""
    module = xlac.parse(text)
    a, b = np.arange(4, dtype=np.float32), np.array([1, -2, 3, 4], np.int8)
    np.testing.assert_array_equal(xlac.compile(module)(a, b), xlac.interpret(module, a, b))
