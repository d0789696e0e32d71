"""What HLO has no op or type for: to_hlo and serialize refuse it, with the place and what to do."""
import pytest

import xlac

HEAD = "func.func @main("
CASES = {
    "no result": ('func.func @main() {\n  %2 = stablehlo.constant dense<[1, 0]> : tensor<2xui16>\n  check.expect_eq_const %2, dense<[1, 0]> : tensor<2xui16>\n  func.return\n}',
                  "HLO has no op for check.expect_eq_const", "passes", True),
    "unranked": (HEAD + "%a: tensor<*xf32>) -> tensor<*xf32> {\n  return %a : tensor<*xf32>\n}", r"an argument has the type f32\[\*\]", "ranked", True),
    "memref": (HEAD + "%a: memref<2xf32>) -> memref<2xf32> {\n  return %a : memref<2xf32>\n}", "an argument has the type memref<2xf32>", "ranked", True),
    "index": (HEAD + "%a: tensor<?x3xindex>) -> index {\n  %c1 = arith.constant 0 : index\n  %0 = tensor.extract %a[%c1, %c1] : tensor<?x3xindex>\n  return %0 : index\n}",
              r"an argument has the type index\[\?,3\]", "ranked", True),
    "quantised": (HEAD + "%a: tensor<4x!quant.uniform<i8:f32, 2.0:15>>) -> tensor<4x!quant.uniform<i8:f32, 2.0:15>> {\n  %0 = stablehlo.add %a, %a : tensor<4x!quant.uniform<i8:f32, 2.0:15>>\n"
                  "  return %0 : tensor<4x!quant.uniform<i8:f32, 2.0:15>>\n}", r"an argument has the type quant<s8:f32, 2:15>\[4\]", "stablehlo-legalize-quant-to-math", False),
}


@pytest.mark.parametrize("case", CASES)
def test_to_hlo_refuses(case):
    text, message, hint, _ = CASES[case]
    module = xlac.parse(text, format="mlir")
    module.verify()
    with pytest.raises(xlac.Error, match=message) as caught:
        module.to_hlo()
    assert caught.value.line and hint in caught.value.hint
    assert module.to_text() == xlac.parse(text, format="mlir").to_text()


@pytest.mark.parametrize("case", CASES)
def test_what_is_serialized_loads(case):
    text, _, _, refused = CASES[case]
    exe = xlac.compile(xlac.parse(text, format="mlir"), passes=False)
    if refused:
        with pytest.raises(xlac.Error, match="can't be serialized: HLO text has no"):
            exe.serialize()
    else:
        assert xlac.load(exe.serialize()).serialize() == exe.serialize()


def test_what_the_hint_says_helps():
    module = xlac.parse(CASES["quantised"][0], format="mlir").run("stablehlo-legalize-quant-to-math")
    module.to_hlo().verify()


@pytest.mark.parametrize("argument,dtype", [("tensor<*xf32>", "f32"), ("memref<2xf32>", "memref<2xf32>"), ("index", "index"), ("!shape.shape", "!shape.shape"),
                                            ("tensor<2xindex>", "s64"), ("!stablehlo.token", "token"), ("tensor<*xi8>", "s8"), ("tuple<tensor<f32>, index>", ["f32", "index"])])
def test_dtypes_of_types_that_are_no_tensors(argument, dtype):
    module = xlac.parse(f"{HEAD}%a: {argument}) {{ return }}", format="mlir")
    assert module.entry.parameters[0].dtype == dtype


def test_ops_without_results_have_an_empty_tuple_for_a_type():
    module = xlac.parse('func.func @main() {\n  "a.b"() : () -> ()\n  return\n}', format="mlir", allow_unregistered=True)
    op = module.entry.instructions[0]
    assert (op.type, op.shape, op.dtype) == ("()", [], []) and repr(op)


def test_programs_from_bytecode_serialize():
    """Their arguments have no names."""
    text = HEAD + "%a: tensor<4xf32>, %0: tensor<4xf32>) -> tensor<4xf32> {\n  %1 = stablehlo.add %a, %0 : tensor<4xf32>\n  return %1 : tensor<4xf32>\n}"
    exe = xlac.compile(xlac.parse(xlac.parse(text, format="mlir").to_bytes("mlir-bytecode")))
    assert xlac.load(exe.serialize()).serialize() == exe.serialize()


ALIASED = """func.func @main(%a: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2x2xf32> {
  %0 = stablehlo.slice %a [0:2, 0:2] : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}"""
UNBOUNDED = "func.func @main(%a: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xi32>) {\n  %v, %i = chlo.top_k(%a, k = 4) : tensor<?xf32> -> (tensor<?xf32>, tensor<?xi32>)\n  return %v, %i : tensor<?xf32>, tensor<?xi32>\n}"


@pytest.mark.parametrize(("text", "message"), [(ALIASED, "sizes differ"), (UNBOUNDED, "HLO has bounded dimensions only")], ids=["an alias of another size", "no bound"])
def test_to_hlo_refuses_what_hlo_does_not_accept(text, message):
    module = xlac.parse(text, format="mlir")
    module.verify()
    with pytest.raises(xlac.Error, match=message) as caught:
        module.to_hlo()
    assert "StableHLO allows this" in caught.value.hint
