"""Unreduced axes of other reductions than the sum, through explicit reshards: what the pass leaves verifies."""
import pytest

import xlac

PIPELINES = ["sdy-insert-explicit-reshards", "sdy-insert-explicit-reshards{enable-full-version=true}"]
REDUCED = """sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}], unreduced=KIND{"b"}>}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}"""
INTRODUCED = """sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}], unreduced=KIND{"b"}>}) {
  return %x : tensor<8xf32>
}"""


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("kind, word", [("sum", ""), ("max", "max "), ("min", "min ")])
def test_axes_are_reduced_by_their_own_operator(pipeline, kind, word):
    module = xlac.parse(REDUCED.replace("KIND", kind))
    text = module.run(pipeline, verify_each=True).to_text()
    assert f'sdy.all_reduce {word}{{"b"}} %arg0 out_sharding=<@mesh, [{{"a"}}]>' in text
    assert xlac.parse(text).to_text() == text


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("kind", ["max", "min"])
def test_only_sums_can_be_introduced(pipeline, kind):
    with pytest.raises(xlac.Error, match="new unreduced axes of another reduction than sum"):
        xlac.parse(INTRODUCED.replace("KIND", kind)).run(pipeline, verify_each=True)
    assert "sdy.replicated_to_unreduced" in xlac.parse(INTRODUCED.replace("KIND", "sum")).run(pipeline, verify_each=True).to_text()
