"""The dialect sdy: text in and out, collectives of reshards, canonical forms."""
import pathlib

import pytest

import xlac

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=4]>\n'


def reshard(source, target, passes):
    text = (MESH + f"func.func @main(%arg0: tensor<8x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, {source}>}}) -> tensor<8x16xf32> {{\n"
            f"  %0 = sdy.reshard %arg0 <@mesh, {target}> : tensor<8x16xf32>\n  return %0 : tensor<8x16xf32>\n}}\n")
    lines = xlac.parse(text, format="mlir").run(passes).to_text().splitlines()
    return [line.split(" = ", 1)[1].split(" %")[0] for line in lines if " = sdy." in line]


@pytest.mark.parametrize("source, target, ops", [
    ('[{"x"}, {}]', "[{}, {}]", ['sdy.all_gather [{"x"}, {}]']), ("[{}, {}]", '[{"x"}, {"y"}]', ['sdy.all_slice [{"x"}, {"y"}]']),
    ('[{"x"}, {}]', '[{}, {"x"}]', ['sdy.all_to_all [{"x"}: 0->1]']), ("[{}, {}]", "[{}, {}]", [])])
def test_collectives(source, target, ops):
    assert reshard(source, target, "func.func(sdy-reshard-to-collectives)") == ops


def test_printed_reads_back():
    module = xlac.parse((pathlib.Path(__file__).parents[1] / "fuzz/corpus/shardy.mlir").read_text(), format="mlir")
    module.verify()
    assert xlac.parse(module.to_text(), format="mlir").to_text() == module.to_text()


def test_refused_at_the_line():
    with pytest.raises(xlac.Error, match='unknown axis name: "z"') as caught:
        xlac.parse(MESH + 'func.func @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {\n  %0 = sdy.reshard %arg0 <@mesh, [{"z"}]> : tensor<8xf32>\n'
                   "  return %0 : tensor<8xf32>\n}\n", format="mlir").verify()
    assert caught.value.line == 3
