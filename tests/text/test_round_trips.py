"""What a reader takes, the printers and writers give back: texts, bytes, names. And what readers refuse."""
import pathlib
import re
import threading

import pytest

import xlac

from .wire import decode, encode

# --- names that text can't spell ---

NAMED = """HloModule m

ENTRY e {
  p = f32[4] parameter(0)
  PLACE = f32[4] add(p, p)
  ROOT r = f32[4] exponential(PLACE)
}
"""


def renamed(old, new, named=NAMED):
    """The program as a proto, in which every string `old` is `new`."""
    def walk(fields):
        out = []
        for number, kind, value in fields:
            if kind == 2 and value == old:
                value = new
            elif kind == 2 and old in value:
                value = encode(walk(decode(value)))
            out.append((number, kind, value))
        return out
    text = named.replace("PLACE", "N" * 60)
    return xlac.parse(encode(walk(decode(xlac.parse(text).to_bytes("hlo-proto")))), format="hlo-proto")


@pytest.mark.parametrize("name,legal", [
    (b"x", "x"), (b"a b", "a_b"), (b'a"b', "a_b"), (b"a//b", "a__b"), (b"a/*b", "a__b"), (b"a,b", "a_b"), (b"a)", "a_"),
    (b"\xff\xfe", "a_"), (b"a\0b", "a_b"), (b"a\nb", "a_b"), (b"%a", "_a"), (b"{", "_"), (b"7", "_"), (b"f32", "f32_"),
    (b"__y", "a_y"), (b"__xla_y", "__xla_y"), (b"a.01-b", "a.01-b"),
    (b"q = f32[4] negate(%p)\n %z", "q___f32_4__negate__p____z")])
def test_names_of_protos_are_made_legal_as_xla_does(name, legal):
    module = renamed(b"N" * 60, name)
    names = [i.name for i in module.entry.instructions]
    assert names[1] == legal and len(set(names)) == 3
    module.verify()
    assert xlac.parse(module.to_text()).to_text() == module.to_text()
    exe = xlac.compile(module)
    assert xlac.load(exe.serialize()).serialize() == exe.serialize()


def test_names_that_become_the_same_are_told_apart():
    for first, second in (("p", "r"), ("a_b", "r"), ("p", "a_b")):
        module = renamed(b"N" * 60, b"a b", NAMED.replace(" p = ", f" {first} = ").replace("(p, p)", f"({first}, {first})").replace("ROOT r", f"ROOT {second}"))
        names = [i.name for i in module.entry.instructions]
        assert len(set(names)) == 3 and "a_b" in names and names[2].startswith(second)
        assert xlac.parse(module.to_text()).to_text() == module.to_text()


@pytest.mark.parametrize("name", [b"m m", b"m,x=1", b"\nENTRY", b"9"])
def test_names_of_modules_are_made_legal(name):
    text = renamed(b"M" * 60, name, NAMED.replace("HloModule m", "HloModule " + "M" * 60)).to_text()
    assert xlac.parse(text).to_text() == text
    assert re.match(r"HloModule [A-Za-z_][\w.-]*, ", text)


@pytest.mark.parametrize("key", ["a b", "a=b", 'a"b', "", "a,b", "\n", "{"])
def test_keys_that_are_no_names_are_quoted(key):
    quoted = "\"" + key.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + "\""
    mlir = f"func.func @main(%a: tensor<f32>) -> tensor<f32> {{ %0 = stablehlo.negate %a {{mhlo.frontend_attributes = {{{quoted or key} = \"v\"}}}} : tensor<f32>\n return %0 : tensor<f32> }}"
    try:
        hlo = xlac.parse(mlir, format="mlir").to_hlo()
    except xlac.ParseError:
        assert key == ""
        return
    text = hlo.to_text()
    assert "frontend_attributes={" in text and xlac.parse(text).to_text() == text
    assert xlac.parse(hlo.to_bytes("hlo-proto")).to_text() == text


# --- how many computations an op calls ---

REDUCE = """HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  x = f32[4] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=add
}
"""


@pytest.mark.parametrize("times", [0, 2, 31])
def test_a_proto_whose_op_calls_too_many_computations_is_refused(times):
    def walk(fields):
        out = []
        for number, kind, value in fields:
            if number == 2 and kind == 2 and b"reduce" in value:  # the instruction, within its computation
                inner = decode(value)
                if any(f[0] == 38 for f in inner):
                    called = next(f for f in inner if f[0] == 38)
                    value = encode([f for f in inner if f[0] != 38] + [called] * times)
            elif number == 3 and kind == 2 and b"reduce" in value:
                value = encode(walk(decode(value)))
            out.append((number, kind, value))
        return out
    raw = encode(walk(decode(xlac.parse(REDUCE).to_bytes("hlo-proto"))))
    with pytest.raises(xlac.ParseError, match=f"reduce calls 1 computation, but has {times}"):
        xlac.parse(raw)


# --- nesting ---

@pytest.mark.parametrize("format,text", [
    ("hlo", "HloModule m\nENTRY e {\n ROOT p = " + "(" * 100000), ("hlo", "HloModule m\nENTRY e {\n ROOT p = f32[] " + "negate(" * 100000),
    ("mlir", 'func.func @main() {\n "a.b"() {x = ' + "[" * 100000), ("mlir", 'func.func @main() {\n ' + '"a.b"() ({' * 50000),
    ("mlir", "func.func @main(%a: " + "tuple<" * 100000)])
def test_the_deepest_nesting_that_may_be_asked_for_fits_the_stack_of_a_thread(format, text):
    failed = []

    def read():
        try:
            xlac._core.parse(text, format=format, max_depth=1024, allow_unregistered=True)
        except xlac.Error as e:
            failed.append(e.code)
    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert failed == [602]


def test_a_deeper_nesting_than_1024_can_not_be_asked_for():
    with pytest.raises(xlac.Error, match="max_depth 1025 is over 1024"):
        xlac._core.parse("HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }", max_depth=1025)


# --- MLIR that prints back ---

GROUPS = """func.func @main(%arg0: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %0 = "stablehlo.all_reduce"(%arg0) ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) {
    replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [AXES]>, axes = [#stablehlo.axis_ref<name = "z">]>
  } : (tensor<16x32xf32>) -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}
"""
CONV = """module attributes { stablehlo.conv = #stablehlo.conv<raw
      input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2],
      kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [],
      output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [2, 1]>} {}
"""


@pytest.mark.parametrize("text", [
    GROUPS.replace("AXES", '#stablehlo.mesh_axis<name = "z", size = 4>'), GROUPS.replace("AXES", '<name = "z", size = 4>, <name = "y", size = 2>'),
    GROUPS.replace("AXES]", '<name = "z", size = 4>], device_ids = dense<[3, 2, 1, 0]> : tensor<4xi64>'), CONV,
    *(f"func.func @main(%a: tensor<2x!quant.uniform<i8:f32, {scale}:15>>) {{ return }}"
      for scale in ("2147483647", "0.1", "1.0e-30", "16777217.0", "3.0", "0x3FB999999999999A")),
    "func.func @main(%a: tensor<2x!quant.uniform<i8:f32:0, {2147483647:1,0.3:2}>>) { return }"])
def test_print_is_a_fixed_point(text):
    once = xlac.parse(text, format="mlir").to_text()
    assert xlac.parse(once, format="mlir").to_text() == once


def test_axes_of_a_mesh_read_as_mlir_prints_them():
    named, bare = (xlac.parse(GROUPS.replace("AXES", axis + '<name = "z", size = 4>'), format="mlir").to_text()
                   for axis in ("#stablehlo.mesh_axis", ""))
    assert named == bare


def test_a_scale_keeps_its_value():
    text = "func.func @main(%a: tensor<2x!quant.uniform<i8:f32, 2147483647:15>>) { return }"
    assert "0x41DFFFFFFFC00000:15" in xlac.parse(text, format="mlir").to_text()


@pytest.mark.parametrize("operands", ["%a, ,", "%a,"])
def test_a_slice_of_a_scalar_reads_as_stablehlo_prints_it(operands):
    text = f"func.func @main(%a: tensor<f32>) -> tensor<f32> {{ %0 = stablehlo.dynamic_slice {operands} sizes = [] : (tensor<f32>) -> tensor<f32>\n return %0 : tensor<f32> }}"
    module = xlac.parse(text, format="mlir")
    module.verify()
    assert len(module.entry.instructions[1].operands) == 1
    assert xlac.parse(module.to_text(), format="mlir").to_text() == module.to_text()


@pytest.mark.parametrize("attr,at", [("1 : complex<f64>", 26), ("1 : tf32", 26), ("0x1 : complex<f32>", 26), ("1 : tensor<f32>", 26)])
def test_an_integer_has_an_integer_type(attr, at):
    with pytest.raises(xlac.ParseError, match="integer literal not valid for specified type") as caught:
        xlac.parse(f"module attributes {{a.b = {attr}}} {{ func.func @main() {{ return }} }}", format="mlir")
    assert (caught.value.line, caught.value.col) == (1, at)


@pytest.mark.parametrize("attr", ["1 : i8", "1 : si3", "1 : ui7", "1 : index", "true", "1 : i1", "-1 : i64", "1"])
def test_integers_of_integer_types_read(attr):
    text = xlac.parse(f"module attributes {{a.b = {attr}}} {{ func.func @main() {{ return }} }}", format="mlir").to_text()
    assert xlac.parse(text, format="mlir").to_text() == text


@pytest.mark.parametrize("storage", ["f64<-128:127>", "i64", "ui64"])
def test_storage_of_64_bits_is_refused(storage):
    with pytest.raises(xlac.ParseError, match="illegal storage type size: 64"):
        xlac.parse(f"func.func @main(%a: tensor<2x!quant.uniform<{storage}:f32, 1.0:3>>) {{ return }}", format="mlir")


def test_a_constant_outside_of_functions_is_not_written_as_bytes():
    module = xlac.parse("%c = stablehlo.constant dense<0> : tensor<i32>\nfunc.func @main() { return }", format="mlir")
    with pytest.raises(xlac.Error, match="stablehlo.constant at the top of the module"):
        module.to_bytes("mlir-bytecode")


def test_meshes_outside_of_functions_are_written_as_bytes():
    module = xlac.parse('sdy.mesh @m = <["x"=2]>\nfunc.func @main() { return }', format="mlir")
    assert "sdy.mesh @m" in xlac.parse(module.to_bytes("mlir-bytecode")).to_text()


# --- strict reading ---

HERE = pathlib.Path(__file__).resolve().parents[2]
ALIAS = "HloModule increment, input_output_alias={ {}: 0 }\n\nENTRY e {\n  %p = f32[] parameter(0)\n  ROOT %o = f32[] negate(%p)\n}\n"
FLAT = """HloModule m
%op { %a = f32[64] parameter(0) ROOT %s = f32[32] slice(%a), slice={[16:48]} }
ENTRY %main {
  %x = f32[64] parameter(0)
  %start = (f32[64], f32[32], s32[]) async-start(f32[64] %x), calls=%op
  ROOT %done = f32[32] async-done((f32[64], f32[32], s32[]) %start)
}
"""
SUGAR = """HloModule m
ENTRY %main {
  %x = f32[64] parameter(0)
  %start = (f32[64], f32[32], s32[]) slice-start(f32[64] %x), slice={[16:48]}
  %update = (f32[64], f32[32], s32[]) slice-update((f32[64], f32[32], s32[]) %start), slice={[16:48]}
  ROOT %done = f32[32] slice-done((f32[64], f32[32], s32[]) %update), slice={[16:48]}
}
"""
ATAN = "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] atan(x)\n}\n"


@pytest.mark.parametrize("text", [ALIAS, ALIAS.replace("{}: 0", "{}: (0)"), FLAT, SUGAR, ATAN], ids=["alias", "alias()", "flat", "sugar", "atan"])
def test_documented_forms_are_read_unless_reading_is_strict(text):
    module = xlac.parse(text)
    module.verify()
    assert xlac.parse(module.to_text()).to_text() == module.to_text()
    with pytest.raises(xlac.ParseError) as caught:
        xlac.parse(text, strict=True)
    assert "strict" in caught.value.hint or "slice-update has no attribute" in str(caught.value) or "async" in str(caught.value)


def test_newer_opcodes_of_protos_are_read_unless_reading_is_strict():
    raw = xlac.parse(ATAN).to_bytes("hlo-proto")
    assert xlac.parse(raw).entry.root.opcode == "atan"
    with pytest.raises(xlac.ParseError, match="unknown opcode 'atan'"):
        xlac.parse(raw, strict=True)


def test_documented_forms_is_deprecated():
    with pytest.warns(DeprecationWarning, match="strict=True"):
        xlac.parse(ATAN, documented_forms=True)
    with pytest.warns(DeprecationWarning), pytest.raises(xlac.ParseError):
        xlac.parse(ATAN, documented_forms=False)


def test_constants_whose_digits_read_as_another_number_are_serialized_to_the_bit():
    """XLA prints 2^-127 as 5.9e-39, which it reads as 2^-126 where the type has no number between."""
    text = "HloModule m\n\nENTRY e {\n  ROOT c = f8e8m0fnu[3] constant({nan, 5.877471754111438e-39, 1.7e38})\n}\n"
    exe = xlac.compile(text)
    again = xlac.load(exe.serialize())
    assert again().tobytes() == exe().tobytes() == b"\xff\x00\xfe"
    assert "{nan, 5.9e-39, 1.7e+38}" in xlac.parse(text).to_text()
