"""Why shardings are what they are."""
import pytest

import xlac
import xlac.sharding
from xlac import cli

TEXT = """sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", ?}, {?}]>}, %w: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"model", ?}]>}, %v: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model", ?}, {?}]>}) -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = stablehlo.tanh %0 : tensor<8x32xf32>
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}
"""


@pytest.fixture(scope="module")
def result():
    return xlac.sharding.propagate(xlac.parse(TEXT))


def test_the_module_is_the_pipelines(result):
    assert result.module.to_text() == xlac.parse(TEXT).run("sdy-propagation-pipeline").to_text()


def test_an_axis_is_traced_to_where_it_was_written(result):
    why = result.trace.explain("%1", 1)
    assert why.sharding == '#sdy.sharding<@mesh, [{"data", ?}, {"model", ?}]>'
    assert why.steps and why.steps[0].axis == "model" and why.steps[0].opcode in ("stablehlo.tanh", "stablehlo.dot_general")
    assert any(origin.startswith("argument") for _, origin in why.origins)
    assert "model" in str(why) and "was written down on argument" in str(why)


def test_values_by_line(result):
    assert result.trace.explain("line 4", 0).value == result.trace.find("%1")
    with pytest.raises(xlac.Error):
        result.trace.explain("line 999", 0)
    with pytest.raises(xlac.Error):
        result.trace.explain("%nobody", 0)


def test_what_nothing_came_to_says_so(result):
    why = result.trace.explain("%arg0", 1)
    assert not why.steps


def test_conflicts_name_both_sides():
    text = TEXT.replace('%v: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model", ?}, {?}]>}',
                        '%v: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"data", ?}]>}')
    trace = xlac.sharding.propagate(xlac.parse(text)).trace
    assert any(c.axis == "data" and "another dimension" in c.reason for c in trace.conflicts)
    assert all(str(c) for c in trace.conflicts)


def test_reshards_have_bytes_and_lines(result):
    (reshard,) = [r for r in result.trace.reshards if r.opcode == "sdy.all_reduce"]
    assert reshard.line == 5 and reshard.of == "stablehlo.dot_general"
    assert reshard.bytes == 8 * 16 * 4 // 4  # a local result of 128 bytes, half of it sent twice
    assert "sdy.all_reduce" in str(reshard)


def test_what_if_an_annotation_were_another(result):
    gone, new = result.trace.what_if(lambda text: text.replace('[{"model", ?}, {?}]', "[{?}, {?}]").replace('[{?}, {"model", ?}]', "[{?}, {?}]"))
    assert [r.opcode for r in gone] == ["sdy.all_reduce"] and not new


def test_hlo_is_refused():
    with pytest.raises(xlac.Error, match="StableHLO|MLIR|form"):
        xlac.sharding.propagate(xlac.parse("HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }"))


def test_the_command_line(tmp_path, capsys):
    path = tmp_path / "m.mlir"
    path.write_text(TEXT)
    assert not cli.main(["shard", str(path), "--explain", "%1:1", "--reshards"])
    out = capsys.readouterr().out
    assert "through stablehlo" in out and "sdy.all_reduce" in out
    assert not cli.main(["shard", str(path)])
    assert 'sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>' in capsys.readouterr().out
