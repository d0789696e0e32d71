"""shape-legalize-to-stablehlo: sizes computed by other dialects become StableHLO, or a located error."""
import numpy as np
import pytest

import xlac

PROGRAM = """func.func @f(%a: tensor<3x4xf32>, %x: tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<i64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %s = shape.shape_of %a : tensor<3x4xf32> -> tensor<2xindex>
  %k = shape.const_shape [2, 1, 1] : tensor<3xindex>
  %b = shape.broadcast %s, %k : tensor<2xindex>, tensor<3xindex> -> tensor<3xindex>
  %n = shape.num_elements %b : tensor<3xindex> -> index
  %d = tensor.dim %a, %c1 : tensor<3x4xf32>
  %m = arith.muli %d, %n : index
  %e = tensor.from_elements %m, %c2 : tensor<2xindex>
  %v = tensor.extract %e[%c0] : tensor<2xindex>
  %w = arith.index_cast %v : index to i64
  %t = tensor.from_elements %w : tensor<i64>
  %r = stablehlo.dynamic_broadcast_in_dim %x, %b, dims = [2] : (tensor<4xf32>, tensor<3xindex>) -> tensor<2x3x4xf32>
  return %r, %t : tensor<2x3x4xf32>, tensor<i64>
}"""


def test_sizes_become_stablehlo():
    out = xlac.parse(PROGRAM.replace("%t = tensor.from_elements %w : tensor<i64>", "").replace(", %t", "").replace(", tensor<i64>", "")
                     .replace("  %w = arith.index_cast %v : index to i64\n", "").replace("(tensor<2x3x4xf32>)", "tensor<2x3x4xf32>"))
    out = out.run("shape-legalize-to-stablehlo", verify_each=True)
    text = out.to_text()
    assert not any(word in text for word in ("shape.", "tensor.", "arith.", "unrealized", "index"))
    x = np.arange(4, dtype=np.float32)
    got = xlac.interpret(out, np.zeros((3, 4), np.float32), x)
    assert np.array_equal(got, np.broadcast_to(x, (2, 3, 4)))


def test_numbers():
    """What is computed: the product of the broadcast sizes with a dimension."""
    text = """func.func @f(%a: tensor<3x4xf32>, %s: tensor<1xi32>) -> tensor<2xi32> {
  %c1 = arith.constant 1 : index
  %0 = shape.shape_of %a : tensor<3x4xf32> -> tensor<2xindex>
  %k = arith.index_cast %s : tensor<1xi32> to tensor<1xindex>
  %b = shape.broadcast %0, %k : tensor<2xindex>, tensor<1xindex> -> tensor<2xindex>
  %n = shape.num_elements %b : tensor<2xindex> -> index
  %d = tensor.dim %a, %c1 : tensor<3x4xf32>
  %m = arith.muli %d, %n : index
  %e = tensor.from_elements %m, %d : tensor<2xindex>
  %r = arith.index_cast %e : tensor<2xindex> to tensor<2xi32>
  return %r : tensor<2xi32>
}"""
    out = xlac.parse(text).run("shape-legalize-to-stablehlo", verify_each=True)
    got = xlac.interpret(out, np.zeros((3, 4), np.float32), np.array([4], np.int32))
    assert got.tolist() == [4 * 12, 4] and "index" not in out.to_text()


def test_an_index_that_stays_is_cast():
    out = xlac.parse("""func.func @f(%a: index, %b: index) -> index {
  %m = arith.muli %a, %b : index
  return %m : index
}""").run("shape-legalize-to-stablehlo")
    assert out.to_text().count("builtin.unrealized_conversion_cast") == 3 and "stablehlo.multiply" in out.to_text()


@pytest.mark.parametrize("op,types,result", [
    ("shape.shape_of", "tensor<*xf32>", "tensor<?xindex>"), ("shape.shape_of", "tensor<?xf32>", "!shape.shape"),
    ("shape.num_elements", "tensor<2xindex>", "!shape.size"), ("shape.broadcast", "!shape.shape, !shape.shape", "!shape.shape"),
    ("arith.muli", "i32, i32", "i32"), ("arith.index_cast", "tensor<2xi8>", "tensor<2xindex>"), ("tensor.dim", "tensor<?xf32>, index", "index"),
    ("tensor.from_elements", "i8, i8", "tensor<2xi8>"), ("shape.concat", "!shape.shape, !shape.shape", "!shape.shape")])
def test_what_has_no_counterpart_is_an_error_at_the_op(op, types, result):
    names = [f"%{i}: {t}" for i, t in enumerate(types.split(", "))]
    text = f"""func.func @f({', '.join(names)}) -> {result} {{
  %r = "{op}"({', '.join(n.split(':')[0] for n in names)}) : ({types}) -> {result}
  return %r : {result}
}}"""
    module = xlac.parse(text)
    before = module.to_text()
    with pytest.raises(xlac.Error, match=f"failed to legalize operation '{op}'") as caught:
        module.run("shape-legalize-to-stablehlo")
    assert caught.value.line == 2 and caught.value.hint and module.to_text() == before


def test_what_shardy_says_of_an_index_stays_with_it():
    """Ops of sdy give their operand back as it is: a cast before them would change its type."""
    text = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4xindex> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<4xindex> {
  %0 = sdy.all_slice [{"x"}] %a out_sharding=<@mesh, [{"x"}]> : tensor<4xindex>
  return %0 : tensor<4xindex>
}
"""
    module = xlac.parse(text, format="mlir")
    assert module.run("shape-legalize-to-stablehlo", verify_each=True).to_text() == module.to_text()
