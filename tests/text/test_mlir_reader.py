"""The MLIR reader, directly: what it takes and how that prints, and where and how it says that something is wrong."""
import numpy as np
import pytest

import xlac


def read(text, **options):
    return xlac.parse(text, format="mlir", **options)


def body(statements, arguments="", result="", **options):
    """A function around the statements."""
    return read(f"func.func @f({arguments}){result} {{\n{statements}\n  return\n}}\n", **options)


def printed(module):
    """The lines of the function's body."""
    return [line.strip() for line in module.to_text().split("\n")[2:-4]]


def refused(text, place, message, code=None, hint=None, **options):
    with pytest.raises(xlac.ParseError) as caught:
        read(text, **options)
    e = caught.value
    assert (e.line, e.col) == place and message in str(e), (e.line, e.col, str(e))
    assert code is None or e.code == code, e.code
    if hint:
        assert hint in e.hint


# --- what a text is ---

@pytest.mark.parametrize("text", [
    'sdy.mesh @m = <["x"=2]>\nfunc.func @main() { return }\n',
    '"func.func"() <{function_type = () -> (), sym_name = "main"}> ({\n  "func.return"() : () -> ()\n}) : () -> ()\n',
    "func.func @main() { return }", "func @main() { return }", "func.func private @main()",
    "// a comment\n\n  module @m {\n  func.func @main() { return }\n}\n",
    "#loc = loc(unknown)\nfunc.func @main() { return }", "!t = tensor<f32>\nfunc.func @main() { return }",
    '"builtin.module"() ({\n  func.func @main() { return }\n}) : () -> ()'])
def test_mlir_is_recognised(text):
    module = xlac.parse(text)
    assert module.form == "mlir" and module.entry.name == "main"
    again = module.to_text()
    assert xlac.parse(again).to_text() == again


@pytest.mark.parametrize("text", [
    "HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }", "ENTRY e { ROOT x = f32[] parameter(0) }",
    "%x.1 = f32[] parameter(0)", "x.1 = f32[] parameter(0)", "ROOT x = (f32[]) tuple()",
    "module.1 {\n  ROOT x = f32[] parameter(0)\n}", "%c.1 = f32[] parameter(0)"])
def test_hlo_is_recognised(text):
    try:
        assert xlac.parse(text).form == "hlo"
    except xlac.ParseError as e:
        assert "dialect" not in str(e)  # HLO's reader speaks of instructions and computations


# --- modules, functions, symbols ---

def test_an_empty_module():
    assert read("module {}").to_text() == "module {\n}\n" and read("").to_text() == "module {\n}\n"
    assert read("module @a.b attributes {x.y} {\n}").to_text() == "module @a.b attributes {x.y} {\n}\n"


def test_visibility_and_entry():
    module = read("func.func private @g()\nfunc.func nested @h() { return }\nfunc.func public @k() { return }\nfunc.func @p() { return }")
    assert [line.strip(" {") for line in module.to_text().split("\n") if "@" in line] == [
        "func.func private @g()", "func.func nested @h()", "func.func public @k()", "func.func @p()"]
    assert module.entry.name == "p"
    assert read("func.func @a() { return }\nfunc.func private @main() { return }").entry.name == "main"


def test_signatures():
    text = """module {
  func.func @f(%arg0: tensor<2xf32> {mhlo.sharding = "{replicated}"}, %arg1: i32) -> (tensor<2xf32> {jax.result_info = "x"}, i32) attributes {a = 1 : i64} {
    return %arg0, %arg1 : tensor<2xf32>, i32
  }
  func.func private @d(tensor<f32>, index) -> tuple<tensor<f32>, !stablehlo.token>
}
"""
    assert read(text).to_text() == text


@pytest.mark.parametrize("text, place, message, code", [
    ("func.func @f() { return }\nfunc.func @f() { return }", (2, 1), "redefinition of symbol named 'f'", 103),
    ("func.func @f() { return", (1, 24), "expected '}'", 100),
    ('func.func @f() { return }\nsdy.mesh @f = <["x"=2]>', (2, 1), "redefinition of symbol named 'f'", 103),
    ('sdy.mesh @f = <["x"=2]>\nfunc.func @f() { return }', (2, 1), "redefinition of symbol named 'f'", 103),
    ('sdy.mesh @f = <["x"=2]>\nsdy.mesh @f = <["x"=2]>', (2, 1), "redefinition of symbol named 'f'", 103),
    ("module {", (1, 9), "expected '}' at the end of the module", 100),
    ("module {}\n}", (2, 1), "expected an op", 100),
    ("module attributes {a = 1} {}", (1, 19), "dialect-prefixed names, found: 'a'", 104),
    ("func.func @() { return }", (1, 12), "expected a name after @", 100),
    ("func.func @f(%a tensor<f32>) { return }", (1, 17), "expected ':'", 100),
    ("func.func @f(%a: tensor<f32>, %a: tensor<f32>) { return }", (1, 31), "redefinition of SSA value '%a'", 103),
    ("func.func @f() {\n  func.func @g() { return }\n  return\n}", (2, 3), "a function inside a function", 100)])
def test_bad_structure(text, place, message, code):
    refused(text, place, message, code)


# --- values ---

def test_captures_and_packs():
    text = """module {
  func.func @f(%arg0: tensor<i1>, %arg1: tensor<f32>) -> tensor<f32> {
    %0:2 = "stablehlo.if"(%arg0) ({
      stablehlo.return %arg1, %arg1 : tensor<f32>, tensor<f32>
    }, {
      %2 = stablehlo.negate %arg1 : tensor<f32>
      stablehlo.return %2, %arg1 : tensor<f32>, tensor<f32>
    }) : (tensor<i1>) -> (tensor<f32>, tensor<f32>)
    %1 = stablehlo.add %0#0, %0#1 : tensor<f32>
    return %1 : tensor<f32>
  }
}
"""
    module = read(text)
    module.verify()
    assert module.to_text() == text
    assert xlac.interpret(module, np.bool_(False), np.float32(3)) == 0


def test_a_name_may_be_used_again_beside_a_region():
    module = body("""  %0 = "stablehlo.if"(%p) ({
    %a = stablehlo.add %x, %x : tensor<f32>
    stablehlo.return %a : tensor<f32>
  }, {
    %a = stablehlo.multiply %x, %x : tensor<f32>
    stablehlo.return %a : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  %a = stablehlo.negate %0 : tensor<f32>""", "%p: tensor<i1>, %x: tensor<f32>")
    module.verify()


@pytest.mark.parametrize("statements, place, message, code", [
    ("  %0 = stablehlo.add %y, %x : tensor<f32>", (2, 22), "use of undeclared SSA value name '%y'", 102),
    ("  %0 = stablehlo.add %x#1, %x : tensor<f32>", (2, 22), "reference to invalid result number: %x has 1", 102),
    ("  %0:2 = stablehlo.add %x, %x : tensor<f32>", (2, 10), "defines 1 results but was provided 2 to bind", 100),
    ("  %x = stablehlo.add %x, %x : tensor<f32>", (2, 3), "redefinition of SSA value '%x'", 103),
    ("  %0 = stablehlo.add %x, %x : tensor<2xf32>", (2, 8), "tensor<2xf32> against tensor<f32>", 202),
    ("  %0 = \"stablehlo.add\"(%x) :\n   (tensor<f32>, tensor<f32>) -> tensor<f32>", (3, 4), "1 operands, but 2 operand types", 202),
    ("  %0 = \"stablehlo.add\"(%x) : (tensor<f32>) -> tensor<f32>", (2, 8), "requires 2 operands, but found 1", 202),
    ("  %0 = stablehlo.add %x %x : tensor<f32>", (2, 25), "expected ','", 100),
    ("  %0 = stablehlo.add %x,\n  : tensor<f32>", (3, 3), "expected a value such as %0", 100),
    ("  %0 = stablehlo.add %x, %x\n  stablehlo.return", (2, 28), "expected ':'", 100),
    ("  %0 = stablehlo.foo %x : tensor<f32>", (2, 8), "unregistered operation 'stablehlo.foo'", 101),
    ("  \"stablehlo.add\"(%x, %x)[^bb1] : (tensor<f32>, tensor<f32>) -> tensor<f32>", (2, 3), "successor blocks", 100)])
def test_bad_statements(statements, place, message, code):
    with pytest.raises(xlac.ParseError) as caught:
        body(statements, "%x: tensor<f32>")
    e = caught.value
    assert (e.line, e.col) == place and message in str(e) and e.code == code, (e.line, e.col, e.code, str(e))


# --- generic and pretty ---

@pytest.mark.parametrize("pretty, generic", [
    ("%0 = stablehlo.add %x, %x : tensor<4xf32>", '%0 = "stablehlo.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'),
    ("%0 = stablehlo.slice %x [0:4:2] : (tensor<4xf32>) -> tensor<2xf32>",
     '%0 = "stablehlo.slice"(%x) <{limit_indices = array<i64: 4>, start_indices = array<i64: 0>, strides = array<i64: 2>}> : '
     "(tensor<4xf32>) -> tensor<2xf32>"),
    ("%0 = stablehlo.slice %x [0:4] : (tensor<4xf32>) -> tensor<4xf32>",
     '%0 = "stablehlo.slice"(%x) {limit_indices = dense<4> : tensor<1xi64>, start_indices = dense<0> : tensor<1xi64>, '
     "strides = dense<1> : tensor<1xi64>} : (tensor<4xf32>) -> tensor<4xf32>"),
    ("%0 = stablehlo.compare GT, %x, %x, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
     '%0 = "stablehlo.compare"(%x, %x) {compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = '
     "#stablehlo<comparison_direction GT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>"),
    ("%0 = stablehlo.custom_call @f(%x) {a.b = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>",
     '%0 = "stablehlo.custom_call"(%x) <{call_target_name = "f"}> {a.b = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>')])
def test_both_forms_are_one(pretty, generic):
    first, second = body("  " + pretty, "%x: tensor<4xf32>"), body("  " + generic, "%x: tensor<4xf32>")
    first.verify()
    second.verify()
    assert first.to_text() == second.to_text()


def test_reduce_applies():
    text = "  %0 = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>"
    arguments = "%x: tensor<4xf32>, %i: tensor<f32>"
    module = body(text, arguments)
    module.verify()
    assert printed(module)[0].startswith("%0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [0]")
    # the region's own arguments are nobody's names
    body(text.replace("%x", "%arg0").replace("%i", "%arg1"), arguments.replace("%x", "%arg0").replace("%i", "%arg1")).verify()


# --- ops of other dialects ---

def test_unregistered_ops():
    text = """  %0 = "foo.bar"(%x) <{a = 1 : i64}> ({
    %1 = "foo.baz"() : () -> !foo.t<[1]>
    stablehlo.return
  }) : (f32) -> f32
  "foo.last"() {b = #foo.a<"]">} : () -> ()"""
    again = body(text, "%x: f32", allow_unregistered=True).to_text()
    assert '%0 = "foo.bar"(%arg0) <{a = 1 : i64}> ({' in again and '"foo.last"() {b = #foo.a<"]">} : () -> ()' in again
    assert "!foo.t<[1]>" in again and read(again, allow_unregistered=True).to_text() == again
    refused('func.func @f() {\n  "foo.bar"() : () -> ()\n  return\n}', (2, 3), "dialect that xlac does not know", 101,
            "allow_unregistered=True")
    refused("func.func @f() {\n  foo.bar\n  return\n}", (2, 3), "no known pretty syntax", 100, "generic form", allow_unregistered=True)


# --- aliases ---

def test_aliases_before_and_after_their_use():
    module = read("""!pair = tuple<!one, !one>
#values = dense<[1.0, 2.0]> : !one
!one = tensor<2xf32>
module {
  func.func @f(%a: !pair loc(#late)) -> !one {
    %0 = stablehlo.constant #values loc(#late)
    return %0 : !one
  }
}
#late = loc("file":3:4)
""")
    assert printed(module)[0] == "%cst = stablehlo.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>"
    assert "%arg0: tuple<tensor<2xf32>, tensor<2xf32>>" in module.to_text()


@pytest.mark.parametrize("text, place, message, code", [
    ("#a = #b\n#b = #a\nmodule attributes {x.y = #a} {}", (1, 6), "the alias #b is defined by itself", 100),
    ("!a = tuple<!a>\nfunc.func private @f(!a)", (1, 12), "the alias !a is defined by itself", 100),
    ("module attributes {x.y = #nope} {}", (1, 26), "undefined symbol alias id 'nope'", 102),
    ("func.func private @f(!nope)", (1, 22), "undefined symbol alias id 'nope'", 102),
    ("func.func @f() {\n  return loc(#nope)\n}", (2, 14), "undefined", None)])
def test_bad_aliases(text, place, message, code):
    refused(text, place, message, code)


# --- elements ---

@pytest.mark.parametrize("literal, values", [
    ("dense<1.5> : tensor<2xf32>", np.full(2, 1.5, np.float32)),
    ("dense<[[1, 2], [3, -4]]> : tensor<2x2xi8>", np.array([[1, 2], [3, -4]], np.int8)),
    ("dense<[true, false]> : tensor<2xi1>", np.array([True, False])),
    ("dense<\"0x01\"> : tensor<1xi1>", np.array([True])),
    ("dense<(1.0, -2.0)> : tensor<complex<f32>>", np.complex64(1 - 2j)),
    ("dense<[0x7F800000, 0xFF800000]> : tensor<2xf32>", np.array([np.inf, -np.inf], np.float32)),
    ("dense<\"0x0000803F00000040\"> : tensor<2xf32>", np.array([1, 2], np.float32)),
    ("dense<\"0x0000803F\"> : tensor<3xf32>", np.ones(3, np.float32)),
    ("dense<> : tensor<0xi32>", np.zeros(0, np.int32)),
    ("dense<255> : tensor<ui8>", np.uint8(255)),
    ("dense<-1> : tensor<i64>", np.int64(-1))])
def test_literals(literal, values):
    kind = literal[literal.rindex(":") + 2:]
    module = read(f"func.func @main() -> {kind} {{\n  %0 = stablehlo.constant {literal}\n  return %0 : {kind}\n}}")
    module.verify()
    found = np.asarray(xlac.interpret(module))
    assert found.dtype == values.dtype and found.shape == values.shape and np.array_equal(found, values)


def test_resources():
    text = """module {
  func.func @main() -> tensor<2xf32> {
    %cst = stablehlo.constant dense_resource<r> : tensor<2xf32>
    return %cst : tensor<2xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      r: "0x040000000000803F00000040"
    }
  }
#-}
"""
    module = read(text)
    assert module.to_text() == text and list(xlac.interpret(module)) == [1, 2]


@pytest.mark.parametrize("digits, bad", [("0400000000008Z3F00000040", "Z"), ("04000000000080 F00000040", " "), ("0400000000008é3F0000004", "é")])
def test_resources_are_of_hexadecimal_digits(digits, bad):
    text = (f'func.func @main() -> tensor<2xf32> {{\n  %0 = stablehlo.constant dense_resource<r> : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}}\n'
            f'{{-#\n  dialect_resources: {{\n    builtin: {{\n      r: "0x{digits}"\n    }}\n  }}\n#-}}\n')
    with pytest.raises(xlac.ParseError, match=f"hexadecimal digits in a resource, found '{bad}'") as error:
        read(text)
    assert (error.value.line, error.value.col) == (8, 13 + digits.index(bad))


@pytest.mark.parametrize("literal, col, message", [
    ("dense<[1, 2, 3]> : tensor<2xi32>", 32, "inferred shape of elements literal does not match type"),
    ("dense<[[1, 2], [3]]> : tensor<2x2xi32>", 32, "ranks are not consistent"),
    ("dense<300> : tensor<i8>", 33, "out of range"),
    ("dense<-1> : tensor<ui8>", 33, "parsed negative value"),
    ("dense<1> : tensor<f32>", 33, "parsed integer"),
    ("dense<1.0> : tensor<i32>", 33, "expected integer elements"),
    ("dense<true> : tensor<i32>", 33, "parsed a boolean"),
    ("dense<0xFF800000> : tensor<bf16>", 33, "hexadecimal float constant out of range"),
    ("dense<0x1FFFFFFFFFFFFFFFF> : tensor<f64>", 33, "hexadecimal float constant out of range"),
    ("dense<\"0x0000803F0000\"> : tensor<2xf32>", 33, "elements hex data size is invalid"),
    ("dense<\"0x0000803G\"> : tensor<1xf32>", 33, "hex"),
    ("dense<1> : i32", 38, "tensor")])
def test_bad_literals(literal, col, message):
    refused(f"func.func @main() {{\n  %0 = stablehlo.constant {literal}\n  return\n}}", (2, col), message)


# --- attributes ---

@pytest.mark.parametrize("value", [
    "1 : i64", "-1 : i8", "1.500000e+00 : f64", "0x7FC00000 : f32", "true", '"x\\22\\0A"', '"x" : i32', "[1, \"x\"]" , "{a, b = 2 : i64}",
    "@f", "@f::@\"g h\"", "i32", "tensor<2xf32>", "(i32) -> f32", "array<i64: 1, 2>", "array<i1: true>", "array<i32>",
    "dense<1> : tensor<2xi64>", "#other.thing<[1, \"]\"]>", "#stablehlo<precision HIGHEST>",
    "#stablehlo.channel_handle<handle = 1, type = 0>", "affine_map<(d0) -> (d0)>", "!other.type<x>", "loc(unknown)"])
def test_attributes_come_back(value):
    text = f"module attributes {{a.b = {value}}} {{\n}}\n"
    once = read(text).to_text()
    assert read(once).to_text() == once
    assert once.replace(" : i64", "") == text.replace(" : i64", "")


@pytest.mark.parametrize("value", [
    "#vhlo.array_v1<[]>", '#vhlo.array_v1<[#vhlo.string_v1<"a">, #vhlo.array_v1<[]>]>', "#vhlo.bool_v1<true>",
    '#vhlo.dict_v1<{#vhlo.string_v1<"a"> = #vhlo.bool_v1<true>}>', "#vhlo.precision_v1<DEFAULT>",
    "#vhlo.result_accuracy_v1<atol = 0.000000e+00, rtol = 0.000000e+00, ulps = 0, mode = #vhlo.result_accuracy_mode_v1<DEFAULT>>"])
def test_vhlo_attributes_are_kept(value):
    text = f"module attributes {{a.b = {value}, c.d = [{value}]}} {{\n}}\n"
    assert read(text).to_text() == text


@pytest.mark.parametrize("value, col, message", [
    ("#vhlo.array_v1<[1]>", 42, "expected VHLO attributes"), ('#vhlo.dict_v1<{"a" = #vhlo.bool_v1<true>}>', 41, "expected VHLO key attribute"),
    ('#vhlo.dict_v1<{#vhlo.string_v1<"a"> = unit}>', 64, "expected VHLO value attribute"),
    ("#vhlo.result_accuracy_v1<atol = 0.0, rtol = 0.0, ulps = 0, mode = unit>", 92, "expected VHLO result accuracy mode"),
    ("#vhlo.array_v1<[#vhlo.array_v1<[1]>]>", 58, "expected VHLO attributes"), ("#vhlo.array_v1<[]", 43, "expected '>'")])
def test_vhlo_holds_only_vhlo(value, col, message):
    refused(f"module attributes {{a.b = {value}}} {{\n}}\n", (1, col), message)


@pytest.mark.parametrize("value, col, message, code", [
    ("{a = 1, a = 2}", 34, "duplicate key 'a'", 104),
    ("\"open", 26, "a string that never ends", 100),
    ("[1, 2", 31, "expected ']'", 100),
    ("99999999999999999999", 26, "expected a number", 100),
    ("1.0 : i32", 26, "floating point value not valid for specified type", 104),
    ("1 : f32", 26, "expected floating point literal", 104),
    ("0x12345678901234567 : i64", 26, "beyond 64 bits", 104),
    ("#stablehlo<precision BEST>", 47, "'BEST' is no precision", 104),
    ("#stablehlo.result_accuracy<mode = #vhlo.x<1>>", 60, "expected #stablehlo.result_accuracy_mode", 104),
    ("#stablehlo.result_accuracy<mode = #stablehlo<precision HIGH>>", 60, "expected #stablehlo.result_accuracy_mode", 104),
    ("#stablehlo<nothing X>", 26, "unknown attribute `nothing` in dialect `stablehlo`", 104),
    ("#stablehlo.gather<offset = [0]>", 44, "has no field 'offset'", 104),
    ("#stablehlo.channel_handle<handle = 1>", 51, "lacks 'type'", 104),
    ("#stablehlo.channel_handle<handle = 1, handle = 2>", 64, "duplicated 'handle' entry", 104),
    ("#other.thing<[1>", 26, "brackets that never close", 100)])
def test_bad_attributes(value, col, message, code):
    refused(f"module attributes {{a.b = {value}}} {{\n}}\n", (1, col), message, code)


@pytest.mark.parametrize("line, message", [
    ("    feature_group_count = 0 : i64, batch_group_count = 1 : i64", "whose value is positive"),
    ("    feature_group_count = 1 : i32, batch_group_count = 1 : i64", "64-bit signless integer attribute")])
def test_errors_of_attributes_point_into_the_braces(line, message):
    text = ("func.func @f(%a: tensor<1x4x4x1xf32>, %b: tensor<1x1x1x1xf32>) {\n  %0 = stablehlo.convolution(%a, %b)\n"
            "    dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}\n    {\n" + line +
            "\n    } : (tensor<1x4x4x1xf32>, tensor<1x1x1x1xf32>) -> tensor<1x4x4x1xf32>\n  return\n}\n")
    refused(text, (4, 5), message, 104)


def test_errors_of_a_struct_point_at_it():
    text = """func.func @f(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<f32> {
  %0 = "stablehlo.dot_general"(%a, %b) <{
    dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>,
    algorithm = #stablehlo.dot_algorithm<lhs_precision_type = f32, rhs_precision_type = i8, accumulation_type = f32,
      lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>
  }> : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
"""
    with pytest.raises(xlac.VerifyError, match="dot_general_i8") as caught:
        read(text).verify()
    assert caught.value.line == 4


# --- types ---

@pytest.mark.parametrize("text", [
    "tensor<f32>", "tensor<2x?xbf16>", "tensor<*xf32>", "tensor<?x4xf32, #stablehlo.bounds<3, ?>>", "tensor<2xcomplex<f64>>",
    "tensor<0xi4>", "tuple<>", "!stablehlo.token", "!stablehlo.future<tensor<2xf32>>", "index", "memref<2xf32>", "tensor<2xindex>",
    "tensor<4x!quant.uniform<i8:f32, 1.000000e-01:-3>>", "tensor<2x!quant.uniform<i8<-127:127>:f32:0, {1.000000e-01,2.000000e-01:5}>>",
    "tensor<2xf8E4M3FN>", "(f32, i1) -> (tensor<f32>, f64)", "!other.thing<a, [b]>", "tensor<2xi17>", "complex<i32>"])
def test_types_come_back(text):
    declaration = f"module {{\n  func.func private @f({text})\n}}\n"
    assert read(declaration).to_text() == declaration


@pytest.mark.parametrize("text, col, message", [
    ("tensor<2xf32", 34, "expected '>'"), ("tensor<-1xf32>", 29, ""), ("tensor<2x>", 31, "an element type"),
    ("tensor<2x!stablehlo.token>", 31, "invalid tensor element type"), ("!stablehlo.nothing", 22, "unknown stablehlo type: nothing"),
    ("!stablehlo.future<i32>", 39, "must be a ranked tensor"), ("complex<complex<f32>>", 22, "invalid element type for complex"),
    ("tensor<4xf32, #stablehlo.bounds<4>>", 36, "Static dimension 0 cannot have a bound"),
    ("tensor<?xf32, #stablehlo.bounds<4, 5>>", 36, "Bounds length is not the rank"),
    ("tensor<2x!quant.uniform<i4:f16, 1.1e+5>>", 54, "out of expressed type range"),
    ("tensor<2x!quant.uniform<i4<-9:7>:f32, 1.0>>", 46, "illegal storage type minimum: -9"), ("word", 22, "expected a type")])
def test_bad_types(text, col, message):
    refused(f"func.func private @f({text})\n", (1, col), message)


# --- locations ---

def test_locations():
    text = """#loc = loc("a.py":1:2)
module {
  func.func @f(%arg0: tensor<f32> loc("x")) -> tensor<f32> {
    %0 = stablehlo.negate %arg0 : tensor<f32> loc(callsite("g"(#loc) at fused<"m">[#loc, unknown]))
    return %0 : tensor<f32> loc("a.py":3:4 to 5:6)
  } loc(unknown)
} loc(#loc)
"""
    module = read(text)
    assert "loc" not in module.to_text()
    full = module.to_text(locations=True)
    for part in ('%arg0: tensor<f32> loc("x")', 'loc("g"(#loc))', "loc(callsite(#loc4 at #loc5))", 'loc(fused<"m">[#loc, #loc1])',
                 "3:4 to 5:6"):
        assert part in full, full
    assert read(full).to_text(locations=True) == full


@pytest.mark.parametrize("location, col, message", [
    ("loc(nothing)", 14, ""), ('loc("f":1)', 19, "expected ':'"), ('loc("f":a:1)', 18, "an integer"),
    ('loc(fused["a"', 23, ""), ('loc(callsite("a"))', 26, "at")])
def test_bad_locations(location, col, message):
    with pytest.raises(xlac.ParseError, match=message) as caught:
        read(f"func.func @f() {{\n  return {location}\n}}")
    assert caught.value.line == 2 and abs(caught.value.col - col) <= 2, str(caught.value)


# --- any bytes ---

def test_depth_is_bounded():
    refused("module attributes {a.b = " + "[" * 1000 + "]" * 1000 + "} {}", (1, 282), "nesting deeper than 256")


@pytest.mark.parametrize("cut", range(0, 360, 7))
def test_every_prefix_is_an_error_or_a_module(cut):
    text = """#a = loc("x":1:2)
module @m attributes {a.b = [1, "x", {c = #stablehlo<precision HIGHEST>}]} {
  func.func @f(%arg0: tensor<?x2xf32, #stablehlo.bounds<3, ?>>) -> tensor<2xi1> {
    %0 = stablehlo.constant dense<[true, false]> : tensor<2xi1> loc(#a)
    %1:2 = stablehlo.while(%i = %0, %j = %0) : tensor<2xi1>, tensor<2xi1> cond { stablehlo.return %i : tensor<2xi1> } do {
"""
    try:
        read(text[:cut])
    except xlac.ParseError as e:
        assert e.line >= 1 and e.col >= 1


def test_an_empty_generic_module_may_have_a_place():
    text = xlac.parse("module {\n}", format="mlir").to_text(generic=True, locations=True)
    assert " loc(" in text and xlac.parse(text, format="mlir").to_text(generic=True, locations=True) == text


@pytest.mark.parametrize("atol", ["0x41DFFFFFFFC00000", "2147483647.0", "0x3FB999999999999A", "1.000000e-01"])
def test_tolerances_may_be_bits(atol):
    """A double whose decimal text has no point is printed as its bits, as MLIR does."""
    text = ("func.func @main(%a: tensor<f32>) -> tensor<f32> {\n  %0 = stablehlo.exponential %a {result_accuracy = #stablehlo.result_accuracy<"
            f"atol = {atol}, rtol = 0.0, ulps = 4, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}} : tensor<f32>\n  return %0 : tensor<f32>\n}}")
    once = read(text).to_text()
    want = "0x41DFFFFFFFC00000" if atol.startswith(("0x4", "2")) else "1.000000e-01"
    assert f"atol = {want}," in once and read(once).to_text() == once


def test_an_array_of_the_most_elements_is_refused_for_what_it_lacks():
    with pytest.raises(xlac.Error, match="elements"):
        read("func.func @main() { %0 = stablehlo.constant dense<[" + ", ".join(["1"] * 70) + "]> : tensor<9223372036854775807xi8>\n return }")
