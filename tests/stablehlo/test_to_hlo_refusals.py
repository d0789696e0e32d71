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


UNBOUNDED = {
    "argument": ("%a: tensor<?x4xf32>) -> tensor<?x4xf32> {\n  return %a : tensor<?x4xf32>\n}", r"an argument has the type f32\[\?,4\]"),
    "result": ("%a: tensor<f32>, %n: tensor<1xi32>) -> tensor<?xf32> {\n  %0 = stablehlo.dynamic_broadcast_in_dim %a, %n, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>\n"
               "  return %0 : tensor<?xf32>\n}", r"a result has the type f32\[\?\]"),
    "tuple": ("%a: tuple<tensor<f32>, tensor<?xf32>>) -> tensor<f32> {\n  %1 = stablehlo.constant dense<0.0> : tensor<f32>\n  return %1 : tensor<f32>\n}",
              r"an argument has the type f32\[\?\]"),
}


@pytest.mark.parametrize("case", UNBOUNDED)
def test_dimensions_without_a_bound_are_refused(case):
    text, message = UNBOUNDED[case]
    module = xlac.parse(HEAD + text, format="mlir")
    with pytest.raises(xlac.Error, match=message) as caught:
        module.to_hlo()
    assert caught.value.line and "stablehlo-refine-shapes" in caught.value.hint


def test_refined_shapes_translate():
    module = xlac.parse(HEAD + UNBOUNDED["argument"][0], format="mlir")
    refined = module.run("stablehlo-refine-arguments{types=tensor<3x4xf32>},stablehlo-refine-shapes")
    refined.to_hlo().verify()


def test_bounded_dimensions_translate():
    hlo = xlac.parse(HEAD + "%a: tensor<?x4xf32, #stablehlo.bounds<8, ?>>) -> tensor<?x4xf32, #stablehlo.bounds<8, ?>> {\n"
                     "  return %a : tensor<?x4xf32, #stablehlo.bounds<8, ?>>\n}", format="mlir").to_hlo()
    hlo.verify()
    assert "f32[<=8,4]" in hlo.to_text()


DEAD_CALL = """func.func private @inputs() -> tensor<2xf32> { %0 = stablehlo.constant dense<1.0> : tensor<2xf32>
  return %0 : tensor<2xf32> }
func.func private @expected() -> tensor<2xf32> { %0 = stablehlo.constant dense<2.0> : tensor<2xf32>
  return %0 : tensor<2xf32> }
func.func private @work(%a: tensor<2xf32>) -> tensor<2xf32> { %0 = stablehlo.negate %a : tensor<2xf32>
  return %0 : tensor<2xf32> }
func.func @main() -> tensor<2xf32> {
  %0 = call @inputs() : () -> tensor<2xf32>
  %1 = call @expected() : () -> tensor<2xf32>
  %2 = call @work(%0) : (tensor<2xf32>) -> tensor<2xf32>
  stablehlo.custom_call @check(%2, %1) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  return %2 : tensor<2xf32>
}
"""


def test_the_print_of_a_translation_is_a_fixed_point():
    text = xlac.parse(DEAD_CALL, format="mlir").to_hlo().to_text()
    assert text.index("%inputs") < text.index("%work") < text.index("%expected")
    assert xlac.parse(text).to_text() == text


ALIASED = """func.func @main(%a: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2x2xf32> {
  %0 = stablehlo.slice %a [0:2, 0:2] : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}"""


def test_an_alias_of_another_size_is_refused():
    module = xlac.parse(ALIASED, format="mlir")
    module.verify()
    with pytest.raises(xlac.Error, match="sizes differ"):
        module.to_hlo()
