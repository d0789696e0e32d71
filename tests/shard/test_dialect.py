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


DECLARES = MESH + """func.func private @ext(tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, i32)
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, z.w}, i32 {mhlo.sharding = "{replicated}"})
func.func @main(%arg0: tensor<4xf32>) -> (tensor<4xf32> {a.b = 1 : i32}) {
  return %arg0 : tensor<4xf32>
}
"""


@pytest.mark.parametrize("name", [n for n in xlac.passes() if n.split("-")[0] in ("sdy", "xla", "mhlo", "inline", "symbol", "canonicalize")])
def test_declared_results_keep_their_attributes(name):
    """A declaration has no values to count its results by, but it has attributes on them: no pass reads past either."""
    module = xlac.parse(DECLARES, format="mlir")
    try:
        out = module.run(name).to_text()
    except xlac.Error as error:
        assert error.code and str(error)
        return
    if "@ext" in out:
        assert "z.w" in out.split("@ext")[1].splitlines()[0]
        assert xlac.parse(out, format="mlir").to_text() == out


def test_declared_results_are_dropped_cleared_and_written():
    module = xlac.parse(DECLARES, format="mlir")
    assert xlac.parse(module.to_bytes(format="mlir-bytecode")).to_text() == module.to_text()
    bare = module.run("sdy-drop-sharding-and-mesh").to_text()
    assert "(tensor<4xf32>, i32) -> (tensor<4xf32> {z.w}, i32 {mhlo.sharding" in bare and "sdy" not in bare


@pytest.mark.parametrize("end", ['"their.end"(%arg0, %arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> ()', '"their.end"() : () -> ()',
                                 "stablehlo.return %arg0, %arg0 : tensor<4xf32>, tensor<4xf32>", "stablehlo.return"])
@pytest.mark.parametrize("name", ["sdy-propagation-pipeline", "xla-sdy-import-shardings", "xla-sdy-stablehlo-export-pipeline", "canonicalize", "inline"])
def test_ends_that_give_something_else(end, name):
    """MLIR lets any op end a function, with other values than it declares. Attributes of results stay with what is declared;
    nobody calls such a function or runs it."""
    function = ("func.func{} @g(%arg0: tensor<4xf32>) -> (tensor<8x2xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{\"x\"}}, {{}}]>, a.b = 1 : i32}}) {{\n"
                "  " + end + "\n}}\n")
    out = xlac.parse(MESH + function.format(""), format="mlir", allow_unregistered=True).run(name).to_text()
    assert "a.b = 1 : i32" in out and "tensor<8x2xf32>" in out and end.split("(")[0].split(" ")[0] in out
    call = "func.func @main(%x: tensor<4xf32>) -> tensor<8x2xf32> {\n  %0 = call @g(%x) : (tensor<4xf32>) -> tensor<8x2xf32>\n  return %0 : tensor<8x2xf32>\n}\n"
    called = xlac.parse(MESH + function.format(" private") + call, format="mlir", allow_unregistered=True)
    with pytest.raises(xlac.Error, match="whose last op does not give what it declares"):
        called.run(name)
    with pytest.raises(xlac.Error, match="no function to enter by"):
        xlac.compile(xlac.parse(function.format("").replace("@g", "@main").replace('sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>, ', ""),
                                format="mlir", allow_unregistered=True))
