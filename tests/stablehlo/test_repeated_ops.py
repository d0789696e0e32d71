"""An op that is like one that was fine is not checked again; one that differs in anything that rules look at is."""
import pytest

import xlac

FINE = """  %0 = stablehlo.add %a, %a : tensor<4x4xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = stablehlo.slice %1 [0:2, 0:4] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %s = stablehlo.constant dense<[2, 4]> : tensor<2xi64>
  %3 = "stablehlo.dynamic_broadcast_in_dim"(%b, %s) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x1xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  %4 = stablehlo.custom_call @f(%a) {backend_config = "x"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
"""
OTHERWISE = {
    "attribute": ("%9 = \"stablehlo.transpose\"(%0) {permutation = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<4x4xf32>", "transpose"),
    "result": ("%9 = \"stablehlo.transpose\"(%0) {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x5xf32>", "transpose"),
    "operand": ("%9 = \"stablehlo.slice\"(%b) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 2, 4>, strides = array<i64: 1, 1>} : "
                "(tensor<2x1xf32>) -> tensor<2x4xf32>", "slice"),
    "second operand": ("%9 = \"stablehlo.add\"(%a, %c) : (tensor<4x4xf32>, tensor<4x5xf32>) -> tensor<4x4xf32>", "add"),
    "number of operands": ("%9 = \"stablehlo.add\"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>", "add"),
    "constant operand": ("%t = stablehlo.constant dense<[3, 4]> : tensor<2xi64>\n  %9 = \"stablehlo.dynamic_broadcast_in_dim\"(%b, %t) "
                         "{broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x1xf32>, tensor<2xi64>) -> tensor<2x4xf32>", "dynamic_broadcast_in_dim"),
}


def module(more):
    return ("func.func @main(%a: tensor<4x4xf32>, %b: tensor<2x1xf32>, %c: tensor<4x5xf32>) -> tensor<4x4xf32> {\n" + FINE +
            FINE.replace("%", "%r").replace("%ra", "%a").replace("%rb", "%b") + f"  {more}\n  return %0 : tensor<4x4xf32>\n}}\n")


def test_repeated_ops_are_fine():
    xlac.parse(module("")).verify()


@pytest.mark.parametrize("name", OTHERWISE)
def test_an_op_that_differs_is_checked(name):
    text, op = OTHERWISE[name]
    with pytest.raises(xlac.Error, match=f"stablehlo.{op}") as fault:
        xlac.parse(module(text)).verify()
    assert fault.value.line == module(text)[:module(text).index("%9 = ")].count("\n") + 1
