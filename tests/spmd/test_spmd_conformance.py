"""Conformance's Shardy programs on as many devices as their meshes have give what they give without shardings (conformance_groups.py)."""
# ruff: noqa: E501
import os

import conformance_groups
import numpy as np
import pytest

import xlac

PARTS = 8


@pytest.mark.skipif("XLAC_CONFORMANCE" not in os.environ, reason="XLAC_CONFORMANCE does not say where the conformance data is")
@pytest.mark.parametrize("part", range(PARTS))
def test_values_are_those_without_shardings(part):
    found = [(name, *conformance_groups.check(text)) for name, text in conformance_groups.cases()[part::PARTS]]
    assert [row for row in found if row[1] in ("wrong", "whole")] == []
    assert sum(what == "refused" for _, what, _ in found) <= 1 and sum(what == "right" for _, what, _ in found) > 60


# --- what it has found ---

def both(text, devices, *values):
    wanted = xlac.compile(xlac.parse(conformance_groups.plain(text), format="mlir"))(*values)
    many = xlac.compile(xlac.parse(text, format="mlir"), devices=devices)
    assert many.explain("sharding").data["whole"] is None
    for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (many(*values), wanted)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_axes_that_are_taken_apart_in_two_ways():
    both("""sdy.mesh @m = <["a"=6]>
func.func @main(%x: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"a":(1)2}, {}]>}) -> (tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"a":(3)2}]>}) {
  %0 = stablehlo.sine %x : tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}""", 6, np.arange(4, dtype=np.float32).reshape(2, 2))


@pytest.mark.parametrize("y", [12, 13])
def test_sums_of_several_arrays_whose_results_are_partly_added_up(y):
    text = f"""sdy.mesh @m = <["x"=2, "y"=2]>
func.func @main(%a: tensor<2x3x{y}xf32> {{sdy.sharding = #sdy.sharding<@m, [{{"x"}}, {{}}, {{"y"}}]>}}, %b: tensor<2x3x{y}xf32> {{sdy.sharding = #sdy.sharding<@m, [{{"x"}}, {{}}, {{"y"}}]>}})
    -> (tensor<3xf32> {{sdy.sharding = #sdy.sharding<@m, [{{}}], unreduced={{"y"}}>}}, tensor<3xf32> {{sdy.sharding = #sdy.sharding<@m, [{{}}], unreduced={{"y"}}>}}) {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r:2 = stablehlo.reduce(%a init: %z), (%b init: %z) across dimensions = [0, 2]
    {{sdy.sharding = #sdy.sharding_per_value<[<@m, [{{}}], unreduced={{"y"}}>, <@m, [{{}}], unreduced={{"y"}}>]>}} :
    (tensor<2x3x{y}xf32>, tensor<2x3x{y}xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
    reducer(%p: tensor<f32>, %q: tensor<f32>) (%s: tensor<f32>, %t: tensor<f32>)  {{
      %c = stablehlo.add %p, %q : tensor<f32>
      %d = stablehlo.add %s, %t : tensor<f32>
      stablehlo.return %c, %d : tensor<f32>, tensor<f32>
    }}
  return %r#0, %r#1 : tensor<3xf32>, tensor<3xf32>
}}"""
    both(text, 4, *(np.arange(6 * y, dtype=np.float32).reshape(2, 3, y) + i for i in range(2)))


def test_the_function_that_runs_need_not_be_called_main():
    both("""sdy.mesh @m = <["x"=2]>
func.func @runs(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<4xf32> {
  %0 = call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}""", 2, np.arange(4, dtype=np.float32))


def test_named_computations_and_edges_that_are_there_before():
    both("""sdy.mesh @m = <["x"=2]>
func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<4xf32> {
  %0 = sdy.named_computation<"f">(%x) (%y: tensor<4xf32>) {
    %1 = stablehlo.add %y, %y : tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}""", 2, np.arange(4, dtype=np.float32))
