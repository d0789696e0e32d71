"""Reductions whose region is of wider elements than the operands (StableHLO's promotion): HLO has the operands converted first, and
all engines give the same, of the result's type."""
import numpy as np
import pytest

import xlac

ADD = """({{
  ^bb0(%x: tensor<{0}>, %y: tensor<{0}>):
    %s = stablehlo.add %x, %y : tensor<{0}>
    stablehlo.return %s : tensor<{0}>
  }})"""
GREATER = """({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %s : tensor<i1>
  }, """
# operand types, what stands before and behind the region, result type, what is expected of [0, 1, 2, 3] and ones
F32, F64 = "tensor<4xf32>", "tensor<4xf64>"
OPS = {
    "all_reduce": ([F32], "{replica_groups = dense<0> : tensor<1x1xi64>}", F64, [0, 1, 2, 3]),
    "reduce_scatter": ([F32], "{scatter_dimension = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}", F64, [0, 1, 2, 3]),
    "reduce": ([F32, "tensor<f32>"], "{dimensions = array<i64: 0>}", "tensor<f64>", 7),
    "reduce_window": ([F32, "tensor<f32>"], "{window_dimensions = array<i64: 2>}", "tensor<3xf64>", [2, 4, 6]),
    "scatter": ([F32, "tensor<1x1xi32>", "tensor<1xf32>"],
                "{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                "index_vector_dim = 1>}", F64, [0, 2, 2, 3]),
    "select_and_scatter": ([F32, "tensor<2xf32>", "tensor<f32>"], "{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}",
                           F64, [1, 2, 1, 2]),
}
NUMPY = {"f32": np.float32, "i32": np.int32}


def program(name, wide="f64"):
    operands, attributes, result, _ = OPS[name]
    names = [f"%a{i}" for i in range(len(operands))]
    region = ADD.format(wide)
    if name == "select_and_scatter":
        region = GREATER + region[1:]
    result = result.replace("f64", wide)
    return (f"func.func @main({', '.join(f'{n}: {t}' for n, t in zip(names, operands))}) -> {result} {{\n"
            f"  %r = \"stablehlo.{name}\"({', '.join(names)}) {region} {attributes} : ({', '.join(operands)}) -> {result}\n"
            f"  return %r : {result}\n}}")


def arguments(name):
    for i, text in enumerate(OPS[name][0]):
        *dims, element = text[7:-1].split("x")
        shape = [int(d) for d in dims]
        yield np.arange(4, dtype=np.float32) if i == 0 else np.ones(shape, NUMPY[element])


@pytest.mark.parametrize("name", OPS)
def test_all_engines_give_the_wider_type(name):
    module, args = xlac.parse(program(name)), list(arguments(name))
    module.verify()
    hlo = module.to_hlo()
    hlo.verify()
    assert "convert(" in hlo.to_text()
    executable = xlac.compile(module)
    for got in (xlac.interpret(module, *args), xlac.interpret(hlo, *args), executable(*args), xlac.compile(module, passes=False)(*args),
                xlac.load(executable.serialize())(*args)):
        assert got.dtype == np.float64
        np.testing.assert_array_equal(got, OPS[name][3])


@pytest.mark.parametrize("name", ["reduce", "reduce_window", "scatter"])
def test_quantised_elements_are_quantised_anew(name):
    narrow, wide = "!quant.uniform<i8:f32, 2.000000e+00:15>", "!quant.uniform<i16:f32, 2.000000e+00:15>"
    text = program(name, "WIDE").replace("f32>", narrow + ">").replace("WIDE", wide)
    module = xlac.parse(text)
    module.verify()
    args = [a if a.dtype == np.int32 else (a + 15).astype(np.int8) for a in arguments(name)]
    executable = xlac.compile(module)
    want = xlac.interpret(module, *args)
    assert want.dtype == np.int16
    for got in (executable(*args), xlac.compile(module, passes=False)(*args)):
        np.testing.assert_array_equal(got, want)


I1_INDICES = """func.func @main(%a: tensor<3xf32>, %i: tensor<1x1xi1>, %u: tensor<1xf32>) -> tensor<3xf32> {
  %r = "stablehlo.scatter"(%a, %i, %u) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
    index_vector_dim = 1>} : (tensor<3xf32>, tensor<1x1xi1>, tensor<1xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}"""


def test_indices_of_one_bit_are_integers_to_scatter():
    module = xlac.parse(I1_INDICES)
    args = np.arange(3, dtype=np.float32), np.ones((1, 1), bool), np.full(1, 9, np.float32)
    executable = xlac.compile(module)
    for got in (xlac.interpret(module, *args), xlac.interpret(module.to_hlo(), *args), executable(*args), xlac.load(executable.serialize())(*args)):
        np.testing.assert_array_equal(got, [0, 9, 2])
