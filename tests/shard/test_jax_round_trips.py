"""JAX programs as XLA sees them, of JAX's Shardy mode and of its GSPMD mode: import, propagation and export give what XLA's do, byte for byte.
jax_round_trips.py makes the data."""
import json
import lzma
import pathlib
import re

import pytest

import xlac

with lzma.open(pathlib.Path(__file__).with_name("jax_round_trips.jsonl.xz"), "rt") as f:
    ROWS = [json.loads(line) for line in f]
IMPORTS = {"shardy": "xla-sdy-round-trip-import-pipeline{lift-and-dedup-meshes=true}", "gspmd": "xla-sdy-stablehlo-import-pipeline"}
# what Shardy's import pipeline does before XLA writes the program down
BEFORE = ("symbol-dce,sdy-lift-inlined-meshes,sdy-remove-size-one-axes,sdy-propagate-sharding-from-func-to-call,"
          "sdy-constant-or-scalar-splitter,symbol-dce,sdy-manual-axes-cleanup")
# what the import does besides reading strings
TIDY = ("stablehlo-ext-prepare-for-hlo-export,func.func(xla-sdy-import-constants),func.func(xla-sdy-open-while-free-vars-sharding),"
        "xla-sdy-round-trip-import-pipeline{lift-and-dedup-meshes=true}")
EXPORT = "sdy-propagation-pipeline,xla-sdy-stablehlo-export-pipeline"


def ran(text, *passes):
    return xlac.parse(text).run(f"builtin.module({','.join(passes)})").to_text().strip()


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['mode']}-{r['name']}")
def test_import_and_export(row):
    assert ran(row["input"], IMPORTS[row["mode"]], BEFORE) == row["imported"].strip()
    assert ran(row["input"], IMPORTS[row["mode"]], EXPORT) == row["exported"].strip()


def strings(text):
    return set(re.findall(r'(?:xla\.sdy\.\w+|mhlo\.sharding|inlineable) = "[^"]*"', text))


@pytest.mark.parametrize("row", [r for r in ROWS if r["mode"] == "shardy"], ids=lambda r: r["name"])
def test_what_jax_writes_down_and_back(row):
    """The strings are those that XLA got from JAX; and what comes back is what went, seen through HLO."""
    sent = ran(row["lowered"], "xla-sdy-round-trip-export-pipeline")
    replicated = {'mhlo.sharding = "{replicated}"'}  # HLO says it of every other result too, where it says it of one
    assert strings(sent) - replicated == strings(row["input"]) - replicated
    here = ran(row["lowered"], "canonicalize", TIDY, BEFORE)
    assert ran(sent, IMPORTS["shardy"], BEFORE) == here


def test_device_lists_are_read_as_orders():
    text = """func.func @main(%x: tensor<8x16xf32> {mhlo.sharding = "{devices=[2,4]0,4,2,6,1,5,3,7}"}) -> tensor<8x16xf32> {
  return %x : tensor<8x16xf32>
}
"""
    out = ran(text, "xla-sdy-import-shardings")
    assert '<["_axis_0"=4, "_axis_1"=2]>' in out or '[{"_axis_2"}, {"_axis_1", "_axis_0"}]' in out, out
    with pytest.raises(xlac.Error, match="1:17.*no order that axes"):
        ran(text.replace("0,4,2,6,1,5,3,7", "0,4,2,6,1,5,7,3"), "xla-sdy-import-shardings")


@pytest.mark.parametrize("attributes, message", [
    ('mhlo.sharding = "{devices=[2}"', "is not a sharding"),
    ('mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding<@mesh, [{}, {"}', "no attribute of MLIR"),
    ('mhlo.frontend_attributes = {xla.sdy.sharding = "12 : i64"}', "no #sdy.sharding"),
    ('mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding<@nobody, [{}, {}]>"}', "nobody")])
def test_bad_words(attributes, message):
    text = f"func.func @main(%x: tensor<8x16xf32> {{{attributes}}}) -> tensor<8x16xf32> {{\n  return %x : tensor<8x16xf32>\n}}\n"
    with pytest.raises(xlac.Error, match=message):
        ran(text, IMPORTS["gspmd"])


@pytest.mark.parametrize("call, message", [
    ("stablehlo.custom_call @Sharding(%x) : (tensor<4xf32>) -> tensor<4xf32>", "expected CustomCallOp with a sharding attribute"),
    ('stablehlo.custom_call @Sharding(%x) {backend_config = "unspecified_dims=[3]", sdy.sharding = #sdy.sharding_per_value<[<mesh<["a"=2]>, [{}]>]>} '
     ": (tensor<4xf32>) -> tensor<4xf32>", "names no dimensions"),
    ("stablehlo.custom_call @xla.sdy.PropagationBarrier(%x) : (tensor<4xf32>) -> tensor<4xf32>", "allowed_direction"),
    ("stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%x) : (tensor<4xf32>) -> tensor<4xf32>", "at no call"),
    ("stablehlo.custom_call @xla.sdy.FuncResultSharding(%x) : (tensor<4xf32>) -> tensor<4xf32>", "needs an operand and its")])
def test_bad_calls(call, message):
    text = f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n  %0 = {call}\n  return %0 : tensor<4xf32>\n}}\n"
    with pytest.raises(xlac.Error, match=message):
        ran(text, IMPORTS["shardy"])


def test_meshes_of_the_same_devices_become_one():
    text = """sdy.mesh @fake = <["_x"=8]>
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@fake, [{"_x":(1)4}, {"_x":(4)2, ?}]>}) -> tensor<8x16xf32> {
  return %x : tensor<8x16xf32>
}
"""
    out = ran(text, "xla-sdy-round-trip-dedup-meshes")
    assert "@fake" not in out and '<@mesh, [{"a", "b":(1)2}, {"b":(2)2, ?}]>' in out


@pytest.mark.parametrize("pipeline", ["xla-sdy-round-trip-export-shardy-attrs", "xla-sdy-round-trip-export-ops"])
def test_shardings_of_values_that_no_custom_call_takes_are_refused(pipeline):
    text = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4xindex>) -> (tensor<4xindex> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<4xindex>
  return %0 : tensor<4xindex>
}
"""
    with pytest.raises(xlac.Error, match="of element type index goes to HLO in a custom call, which takes no such values") as caught:
        xlac.parse(text, format="mlir").run(pipeline)
    assert caught.value.line
