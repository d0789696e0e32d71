"""Inputs that fuzzing found: what was accepted must print so that it reads back, or be refused."""
import pytest

import xlac

from .test_round_trips import NAMED, renamed
from .wire import decode, encode


def fixed(text, format="auto", **options):
    assert xlac.parse(text, format=format).to_text(**options) == text
    return text


# --- MLIR text ---

RETURNS = """func.func @f(%a: tensor<f32>) -> tensor<f32> {
  "stablehlo.return"(%a) : (tensor<f32>) -> ()
}
"""


@pytest.mark.parametrize("first", ["func.return", "stablehlo.return"])
def test_a_function_keeps_the_op_it_ends_with_through_the_generic_form(first):
    module = xlac.parse(RETURNS.replace("stablehlo.return", first), format="mlir")
    generic = module.to_text(generic=True)
    assert f'"{first}"(%arg0)' in generic
    fixed(generic, "mlir", generic=True)
    assert xlac.parse(generic, format="mlir").to_text() == module.to_text()


def test_a_bare_return_in_the_generic_form_of_a_function_is_its_own():
    generic = xlac.parse(RETURNS.replace("stablehlo.return", "func.return"), format="mlir").to_text(generic=True)
    bare = generic.replace('"func.return"(%arg0) : (tensor<f32>) -> ()', "return %arg0 : tensor<f32>")
    assert bare != generic and "stablehlo" not in xlac.parse(bare, format="mlir").to_text(generic=True)


@pytest.mark.parametrize("generic", [False, True])
def test_values_of_the_module_itself_have_names_of_their_own(generic):
    text = """module {
  %a = stablehlo.constant dense<1.0> : tensor<f32>
  %b = stablehlo.constant dense<2.0> : tensor<f32>
  func.func @f() -> tensor<f32> {
    %c = stablehlo.constant dense<3.0> : tensor<f32>
    return %c : tensor<f32>
  }
  %d = stablehlo.constant dense<4.0> : tensor<f32>
}"""
    fixed(xlac.parse(text, format="mlir").to_text(generic=generic), "mlir", generic=generic)


# --- bytecode ---

def bytes_of(text):
    return xlac.parse(text, format="mlir").to_bytes("mlir-bytecode")


@pytest.mark.parametrize("groups", ["dense<0> : tensor<1xi64>", "dense<[[[0], [1]]]> : tensor<1x2x1xi64>"])
def test_replica_groups_of_any_rank_are_read_and_then_refused_by_the_verifier(groups):
    text = ('func.func @f(%a: tensor<8x2xf32>) -> tensor<8x4xf32> {\n  %0 = "stablehlo.all_gather"(%a) {all_gather_dim = 1 : i64, '
            f"replica_groups = {groups}}} : (tensor<8x2xf32>) -> tensor<8x4xf32>\n  return %0 : tensor<8x4xf32>\n}}")
    module = xlac.parse(bytes_of(text), format="mlir-bytecode")
    assert groups in module.to_text()
    with pytest.raises(xlac.Error, match="expected rank 2"):
        module.verify()


@pytest.mark.parametrize("where", ["func.func {}", "module attributes {{sym_visibility = \"{}\"}} {{ func.func"])
def test_bytes_with_an_unknown_visibility_are_refused(where):
    end = " }" if "module" in where else ""
    raw = bytes_of(where.format("private") + " @f(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }" + end)
    assert raw.count(b"private") == 1
    xlac.parse(raw, format="mlir-bytecode")
    with pytest.raises(xlac.ParseError, match="a visibility 'pubnice'; expected public, private or nested"):
        xlac.parse(raw.replace(b"private", b"pubnice"), format="mlir-bytecode")


def test_bytes_whose_module_has_an_attribute_of_no_dialect_are_refused():
    raw = bytes_of("module attributes {jax.name = 1 : i64} { func.func @f() { return } }")
    assert raw.count(b"jax.name") == 1
    with pytest.raises(xlac.ParseError, match="'jax_name' lacks the prefix of a dialect"):
        xlac.parse(raw.replace(b"jax.name", b"jax_name"), format="mlir-bytecode")


def test_a_region_that_ends_in_a_yield_reads_back_from_bytes():
    text = ("func.func @f(%w: !shape.witness, %v: tensor<2xi32>) -> tensor<2xi32> {\n"
            "  %0 = shape.assuming %w -> (tensor<2xi32>) { shape.assuming_yield %v : tensor<2xi32> }\n  return %0 : tensor<2xi32>\n}")
    module = xlac.parse(text, format="mlir")
    assert xlac.parse(bytes_of(text), format="mlir-bytecode").to_text() == module.to_text()


@pytest.mark.parametrize("storage", ["f64", "i64"])
def test_a_storage_type_of_64_bits_is_refused(storage):
    text = f"func.func @f(%a: tensor<2x!quant.uniform<{storage}:f32, 2.0>>) {{ return }}"
    with pytest.raises(xlac.Error, match="storage|stored in at most 32 bits"):
        bytes_of(text)


# --- protos ---

@pytest.mark.parametrize("name", ["ROOT", "ENTRY", "inf", "manual", "last_tile_dim_replicate"])
def test_words_of_the_text_get_an_underscore_as_names_from_protos(name):
    op = renamed(b"N" * 60, name.encode())
    assert op.entry.instructions[1].name == name + "_"
    module = renamed(b"M" * 60, name.encode(), NAMED.replace("HloModule m", "HloModule " + "M" * 60))
    assert module.to_text().startswith(f"HloModule {name}_,")
    for m in (op, module):
        fixed(m.to_text())
        fixed(m.to_text(mode="short"), mode="short")


def test_a_module_without_a_name_gets_one():
    raw = [f for f in decode(xlac.parse(NAMED).to_bytes("hlo-proto")) if f[0] != 1]
    fixed(xlac.parse(encode(raw), format="hlo-proto").to_text())


def test_a_scalar_whose_value_the_proto_leaves_out_reads_back():
    text = "HloModule m, entry_computation_layout={()->f32[]}\n\nENTRY %e () -> f32[] {\n  ROOT %c = f32[] constant({...})\n}\n\n"
    fixed(text)
    assert xlac.parse(xlac.parse(text).to_bytes("hlo-proto")).to_text() == text
    assert xlac.parse(text.replace("{...}", "{ ... }")).to_text() == text
    with pytest.raises(xlac.ParseError, match="braces are nested deeper"):
        xlac.parse(text, strict=True)
    with pytest.raises(xlac.ParseError, match="braces are nested deeper"):
        xlac.parse(text.replace("{...}", "{1}"))


def test_profile_types_without_a_name_are_read_unless_reading_is_strict():
    text = ("HloModule m, entry_computation_layout={(f32[])->f32[]}\n\nENTRY %e (p: f32[]) -> f32[] {\n"
            "  ROOT %p = f32[] parameter(0), metadata={op_name=\"p\" profile_type={1,106}}\n}\n\n")
    fixed(text)
    assert xlac.parse(xlac.parse(text).to_bytes("hlo-proto")).to_text() == text
    with pytest.raises(xlac.ParseError, match="profile types are 0 to 3"):
        xlac.parse(text, strict=True)


@pytest.mark.parametrize("op", ["stablehlo.select %p, %a, %a : ({f}, tensor<i32>, tensor<i32>) -> tensor<i32>", "stablehlo.add %p, %p : ({f}, {f}) -> ({f})"])
def test_types_of_functions_are_not_taken_for_that_of_the_op(op):
    """No op takes them, but text is read before it is verified."""
    text = "func.func @main(%p: {f}, %a: tensor<i32>) {{\n  %0 = " + op + "\n  return\n}}\n"
    printed = xlac.parse(text.format(f="() -> tensor<i32>")).to_text()
    assert xlac.parse(printed).to_text() == printed
