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


def test_what_is_seldom_meant():
    text = """sdy.mesh @mesh = <["data"=4, "model"=2, "idle"=2]>
func.func @main(%x: tensor<9x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>}, %w: tensor<1024x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> tensor<8x16xf32> {
  %y = stablehlo.constant dense<1.0> : tensor<8x16xf32>
  %0 = sdy.sharding_constraint %y <@mesh, [{"data"}, {}]> : tensor<8x16xf32>
  %1 = stablehlo.tanh %0 : tensor<8x16xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{}, {}]> : tensor<8x16xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{"data"}, {}]> : tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}
"""
    found = xlac.sharding.propagate(xlac.parse(text)).trace.suspicions
    assert {s.kind for s in found} == {"uneven", "size-one", "whole", "idle-axis", "overruled", "there-and-back"}, list(map(str, found))
    (uneven,) = [s for s in found if s.kind == "uneven"]
    assert uneven.value == "%arg0" and "hold 3 each, 25 % of it padding" in str(uneven)
    assert not xlac.sharding.propagate(xlac.parse(TEXT)).trace.suspicions


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


def test_programs_on_their_way_through_hlo_are_imported(result):
    """HLO with what JAX writes into it, and with XLA's own shardings, as JAX's GSPMD mode writes them."""
    want = xlac.sharding.propagate(xlac.parse(TEXT).run("canonicalize")).trace.sharding("%arg2")
    sent = xlac.parse(TEXT).run("xla-sdy-round-trip-export-pipeline")
    assert xlac.sharding.propagate(sent).trace.sharding("%arg2") == want
    assert xlac.sharding.propagate(sent.to_hlo()).trace.sharding("%arg2") == want
    old = xlac.parse(TEXT).run("sdy-close-shardings,xla-sdy-stablehlo-export-pipeline").to_text()
    dims = xlac.sharding.propagate(xlac.parse(old)).trace.sharding("%2").dims
    assert "mhlo.sharding" in old and [[a.name for a in d.axes] for d in dims] == [["_axis_0"], []]


def test_annotations_are_written_and_read():
    mesh = xlac.sharding.Mesh({"data": 4, "model": 2})
    module = xlac.parse(TEXT)
    other = xlac.sharding.annotate(module, {"%arg0": xlac.sharding.Sharding(mesh, ["data", "model"]), "%1": '#sdy.sharding<@mesh, [{}, {"model"}]>',
                                            "%arg1": None, "result 0": xlac.sharding.Sharding(mesh, ["data", ()])})
    said = xlac.sharding.shardings(other)
    assert said["%arg0"] == xlac.sharding.Sharding(mesh, ["data", "model"]) and "%arg1" not in said
    assert "sdy.sharding_constraint %1 <@mesh, [{}, {\"model\"}]>" in other.to_text() and '-> (tensor<8x16xf32> {sdy.sharding' in other.to_text()
    assert module.to_text() == xlac.parse(TEXT).to_text()
    assert 'stablehlo.tanh' in other.to_text() and xlac.sharding.propagate(other).trace.reshards
    for name, text, message in (("%nobody", "", "no value"), ("result 7", "", "no result 7"), ("%1", "12 : i64", "is no #sdy.sharding"),
                                ("%1", "#sdy.sharding<@mesh, [{}]>", "rank")):
        with pytest.raises(xlac.Error, match=message):
            xlac.sharding.annotate(module, {name: text})


def test_a_remedy_makes_its_reshard_vanish(result):
    trace = result.trace
    (reshard,) = [r for r in trace.reshards if r.opcode == "sdy.all_reduce"]
    remedy = trace.remedy(reshard)
    gone, new = trace.what_if({remedy.value: remedy.sharding and "#sdy.sharding" + remedy.sharding})
    assert reshard in gone and reshard in remedy.gone and not any(r.opcode == "sdy.all_reduce" and r.line == reshard.line for r in new)
    assert remedy.saves == sum(r.bytes for r in gone) - sum(r.bytes for r in new)
    assert "each device sends" in str(remedy)


def test_the_command_line(tmp_path, capsys):
    path = tmp_path / "m.mlir"
    path.write_text(TEXT)
    assert not cli.main(["shard", str(path), "--explain", "%1:1", "--reshards"])
    out = capsys.readouterr().out
    assert "through stablehlo" in out and "sdy.all_reduce" in out
    assert "on 0" in out
    assert not cli.main(["shard", str(path), "--remedies", "--svg", str(tmp_path / "m.svg")])
    assert "removed by" in capsys.readouterr().out and "</svg>" in (tmp_path / "m.svg").read_text()
    assert not cli.main(["shard", str(path), "--warnings"])
    assert capsys.readouterr().out == ""
    assert not cli.main(["shard", str(path)])
    assert 'sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>' in capsys.readouterr().out
