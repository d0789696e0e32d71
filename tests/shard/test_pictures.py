"""Pictures of shardings, and the page that is made of them."""
import importlib.util
import pathlib
import xml.etree.ElementTree as xml

import pytest

import xlac
import xlac.sharding
from xlac.errors import ArgumentError
from xlac.sharding import Mesh, Sharding

DOCS = pathlib.Path(__file__).parents[2] / "docs"
MESH = Mesh({"a": 2, "b": 4, "c": 2})


@pytest.mark.parametrize("sharding, shape", [
    (Sharding(MESH, []), ()), (Sharding(MESH, ["b"]), (8,)), (Sharding(MESH, [("c", "a"), "b"]), (8, 8)),
    (Sharding(MESH, ["a", (), "b", "c"], ), (2, 3, 8, 2)), (Sharding(Mesh((), [3]), []), ()),
    (Sharding(MESH, ["a", None], replicated=["b"], unreduced=["c"]), (8, 8))])
def test_every_tile_is_drawn_with_its_devices(sharding, shape):
    root = xml.fromstring(sharding.to_svg(shape))
    tiles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title") if t.text.startswith("tile ")]
    places = {}
    for device, slices in sharding.indices(shape).items():
        places.setdefault(tuple((s.start, s.stop) for s in slices), []).append(device)
    assert sorted(t.split("devices ")[1] for t in tiles) == sorted(", ".join(map(str, d)) for d in places.values())
    assert sharding._repr_svg_().startswith("<svg") and "http" not in sharding.to_svg(shape).replace("http://www.w3.org/2000/svg", "")
    table = sharding.table(shape).splitlines()
    assert len(table) == len(tiles)


def test_too_large_to_draw():
    """The largest that is drawn; what is larger is refused with a hint, and a notebook shows its text instead."""
    assert Sharding(Mesh({"a": 64, "b": 64}), ["a", "b"]).to_svg().count("<title>tile ") == 4096
    for large in (Sharding(Mesh({"a": 8192}), ["a"]), Sharding(Mesh({"a": 1 << 10, "b": 1 << 10}), [["a", "b"]])):
        for show in (large.to_svg, large.table):
            with pytest.raises(ArgumentError, match="(tiles|devices) are too many to be shown: at most") as e:
                show()
            assert "indices(shape)" in str(e.value)
        assert large._repr_svg_() is None


def test_a_program_in_the_colours_of_its_axes():
    text = """sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot %a, %b : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
"""
    result = xlac.sharding.propagate(xlac.parse(text))
    root = xml.fromstring(result.to_svg())
    words = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"4 x", "8 y", "x = 2", "y = 2"} <= set(words) and any("all_reduce" in w for w in words)
    assert f"{next(r.bytes for r in result.trace.reshards if r.opcode == 'sdy.all_reduce')} bytes" in words
    assert result._repr_html_().startswith("<div")


def test_types_of_ops_with_regions_are_those_of_their_results():
    from xlac.shard_values import listed
    from xlac.sharding_svg import rows_of

    text = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x8xf32>, %i: tensor<i32>) -> tensor<4x8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%b: tensor<2x8xf32>) {
    %2 = stablehlo.tanh %b : tensor<2x8xf32>
    sdy.return %2 : tensor<2x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1:2 = stablehlo.while(%c = %0, %d = %i) : tensor<4x8xf32>, tensor<i32>
    cond {
      %p = stablehlo.compare LT, %d, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      stablehlo.return %c, %d : tensor<4x8xf32>, tensor<i32>
    }
  return %1#0 : tensor<4x8xf32>
}
"""
    drawn = [(words.split(), value["name"], value["type"]) for _, words, value, _ in rows_of(listed(xlac.parse(text))["values"])]
    assert ("tanh", "tensor<2x8xf32>") in [(words[2], kind) for words, _, kind in drawn]
    rows = {name: kind for _, name, kind in drawn}
    assert rows["%0"] == rows["%1#0"] == rows["%arg0"] == "tensor<4x8xf32>" and rows["%1#1"] == "tensor<i32>"


def test_the_page_is_what_the_script_writes():
    spec = importlib.util.spec_from_file_location("sharding_block", DOCS / "sharding_block.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, want in module.made().items():
        assert (DOCS / name).read_text() == want, f"{name}: run docs/sharding_block.py"
