"""MLIR text: what we print is what MLIR prints (jaxlib is asked at run time), pretty, generic and with locations; and what we
print reads back to the same text."""
import pathlib

import pytest

import xlac

CASES = sorted(pathlib.Path(__file__).with_name("cases_mlir").glob("*.mlir"))


def case_id(path):
    return path.stem


@pytest.fixture(scope="module")
def mlir():
    ir = pytest.importorskip("jaxlib.mlir.ir")
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in stablehlo, chlo, sdy:
        dialect.register_dialect(context)
    with context:
        yield ir.Module


@pytest.mark.parametrize("path", CASES, ids=case_id)
def test_as_mlir_prints(path, mlir):
    theirs = mlir.parse(path.read_text())
    ours = xlac.parse(path.read_text(), format="mlir")
    assert ours.to_text() == str(theirs)
    assert ours.to_text(generic=True) == theirs.operation.get_asm(print_generic_op_form=True)


@pytest.mark.parametrize("path", CASES, ids=case_id)
def test_locations_as_mlir_prints(path, mlir):
    # Ops without a location get that of the text in MLIR, so its own print is the input.
    text = mlir.parse(path.read_text()).operation.get_asm(enable_debug_info=True)
    assert xlac.parse(text, format="mlir").to_text(locations=True) == text


@pytest.mark.parametrize("path", CASES, ids=case_id)
@pytest.mark.parametrize("options", [{}, {"generic": True}, {"locations": True}], ids=str)
def test_reads_back(path, options):
    text = xlac.parse(path.read_text(), format="mlir").to_text(**options)
    assert xlac.parse(text, format="mlir").to_text(**options) == text


BITS = {"f16": 16, "bf16": 16, "f8E4M3FN": 8, "f8E5M2": 8, "f8E8M0FNU": 8}


@pytest.mark.parametrize("dtype", BITS)
def test_every_narrow_float(dtype, mlir):
    width, step = BITS[dtype] // 8, 7 if BITS[dtype] == 16 else 1
    lines = []
    for start in range(0, 1 << BITS[dtype], 100 * step):
        values = range(start, min(start + 100 * step, 1 << BITS[dtype]), step)
        data = b"".join(v.to_bytes(width, "little") for v in values)
        lines.append(f'stablehlo.constant dense<"0x{data.hex().upper()}"> : tensor<{len(values)}x{dtype}>')
    text = "func.func @f() {\n" + "\n".join(lines) + "\nreturn\n}"
    assert xlac.parse(text, format="mlir").to_text() == str(mlir.parse(text))


def test_ambiguous_forms_give_way():
    text = """func.func @f(%x: tensor<f32>) -> tuple<tensor<f32>, tensor<f32>> {
  %0 = "stablehlo.tuple"(%x) : (tensor<f32>) -> tuple<tensor<f32>, tensor<f32>>
  return %0 : tuple<tensor<f32>, tensor<f32>>
}"""
    printed = xlac.parse(text, format="mlir").to_text()
    assert '"stablehlo.tuple"(%arg0) : (tensor<f32>) -> tuple<tensor<f32>, tensor<f32>>' in printed
    assert xlac.parse(printed, format="mlir").to_text() == printed


@pytest.mark.parametrize("op, message", [
    ("%0 = arith.addi %i, %i : i64", "operand #0 expects different type"),
    ("%0 = arith.cmpi less, %i, %i : i32", "a predicate"),
    ("%0 = tensor.extract %i[] : i32", "expects a tensor"),
    ("%0 = arith.addi %i, %i overflow : i32", "<flags>"),
    ("%0 = arith.addi %i, %i overflow<nsw> {overflowFlags = 1 : i32} : i32", "'overflowFlags' twice"),
    ("%0 = stablehlo.iota dim = 0 {iota_dimension = 1 : i64} : tensor<2x2xi32>", "'iota_dimension' twice"),
    ("%0 = shape.assuming %i -> (i32) { }", "has 1 results, but its region yields 0"),
    ("cf.assert %b, 3", "a string"),
    ('%0 = stablehlo.constant dense<"0xZ0"> : tensor<1xi8>', "hexadecimal digits"),
])
def test_wrong_forms_of_other_dialects(op, message):
    with pytest.raises(xlac.Error, match=message):
        xlac.parse(f"func.func @f(%i: i32, %b: i1) {{\n{op}\nreturn\n}}", format="mlir")


@pytest.mark.parametrize("text", ['func.func @""() {\n  return\n}', 'module @"" {\n}', 'func.func private @f() attributes {a = @b::@""}'])
def test_an_empty_symbol_is_read_and_printed_as_mlir_prints_it_which_nobody_reads(text):
    printed = xlac.parse(text).to_text()
    assert "@<<INVALID EMPTY SYMBOL>>" in printed
    with pytest.raises(xlac.ParseError):
        xlac.parse(printed)


@pytest.mark.parametrize("encoding", ["f32", "5 : i32", '"a"', "#foo.bar<3>", "{a = 1 : i64}"])
def test_any_attribute_is_the_encoding_of_a_tensor(encoding):
    printed = xlac.parse(f"func.func private @f(tensor<2xf32, {encoding}>)").to_text()
    assert f"tensor<2xf32, {encoding}>" in printed
    assert xlac.parse(printed).to_text() == printed


def test_values_of_the_module_itself_are_told_apart():
    text = ("%c1 = arith.constant 4 : index\n%c2 = arith.constant 4 : index\n"
            "func.func @f(%a: index) -> index {\n  %c1 = arith.constant 4 : index\n  return %c1 : index\n}\n")
    printed = xlac.parse(text).to_text()
    assert "  %c4 = arith.constant 4 : index\n  %c4_0 = arith.constant 4 : index\n" in printed and "    return %c4 : index\n" in printed
    assert xlac.parse(printed).to_text() == printed
