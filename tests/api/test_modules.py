"""Modules, computations, types and ops: reading."""
import json

import pytest

PROGRAM = """HloModule demo, input_output_alias={ {0}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }, frontend_attributes={a="b"}

sum {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q)
}

ENTRY main {
  x = f32[2,3] parameter(0)
  y = f32[2,3] parameter(1)
  zero = f32[] constant(0)
  r = f32[2] reduce(x, zero), dimensions={1}, to_apply=sum
  d = f32[2,3] add(x, y), control-predecessors={r}, metadata={op_name="d"}
  dd = f32[2,3] multiply(d, d)
  ROOT t = (f32[2,3], f32[2], token[]) tuple(dd, r, k)
}
"""
PROGRAM = PROGRAM.replace("  ROOT t", "  k = token[] after-all()\n  ROOT t")


@pytest.fixture
def m(x):
    m = x.parse(PROGRAM)
    yield m
    x.lib.xlac_module_destroy(m)


def test_destroy_takes_null(x):
    x.lib.xlac_module_destroy(x.ffi.NULL)


def test_parse_errors_have_a_place_and_leave_the_output_alone(x):
    out = x.ffi.new("xlac_module **")
    text = b"HloModule m\nENTRY e {\n  ROOT x = f32[2] nope(x)\n}\n"
    x.fails(x.lib.xlac_module_parse(out, text, len(text), x.ffi.NULL, x.err), 101)
    assert (x.err.line, x.err.col) == (3, 19) and out[0] == x.ffi.NULL
    assert x.lib.xlac_module_parse(out, text, len(text), x.ffi.NULL, x.ffi.NULL) < 0  # the record is optional
    options = x.options("xlac_parse_options", {"format": 7})
    x.fails(x.lib.xlac_module_parse(out, text, len(text), options, x.err), 503)
    deep = b"HloModule m\nENTRY e { ROOT x = " + b"(" * 9 + b"f32[]" + b")" * 9 + b" parameter(0) }"
    options = x.options("xlac_parse_options", {"max_depth": 4})
    x.fails(x.lib.xlac_module_parse(out, deep, len(deep), options, x.err), 602)


def test_documented_forms_are_read_unless_reading_is_strict(x):
    text = b"HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] atan(x)\n}\n"
    out = x.ffi.new("xlac_module **")
    x.check(x.lib.xlac_module_parse(out, text, len(text), x.ffi.NULL, x.err))
    x.lib.xlac_module_destroy(out[0])
    options = x.options("xlac_parse_options", {"strict": True})
    x.fails(x.lib.xlac_module_parse(out, text, len(text), options, x.err), 101)


def test_print_parse_print(x, m):
    text = x.print_module(m)
    again = x.parse(text)
    assert x.print_module(again) == text
    x.lib.xlac_module_destroy(again)
    for mode in ("XLAC_PRINT_SHORT", "XLAC_PRINT_CANONICAL", "XLAC_PRINT_FINGERPRINT"):
        assert x.print_module(m, x.options("xlac_print_options", {"mode": getattr(x.lib, mode)})) != text
    plain = x.print_module(m, x.options("xlac_print_options", {"no_metadata": True}))
    assert "op_name" in text and "op_name" not in plain
    out = x.ffi.new("char **")
    for bad in ({"mode": 9}, {"indent": 5000}):
        options = x.options("xlac_print_options", bad)
        x.fails(x.lib.xlac_module_print(m, options, out, x.ffi.NULL, x.err), 503)


def test_parts_print(x, m):
    out, n = x.ffi.new("char **"), x.ffi.new("size_t *")
    x.check(x.lib.xlac_op_print(m, x.op(m, "dd"), x.ffi.NULL, out, n, x.err))
    assert x.take(out[0]).strip().startswith("%dd = f32[2,3]")
    x.check(x.lib.xlac_computation_print(m, x.lib.xlac_computation_find(m, b"sum"), x.ffi.NULL, out, n, x.err))
    assert "add(%p, %q)" in x.take(out[0])


def test_verify_and_fingerprint(x, m):
    x.check(x.lib.xlac_module_verify(m, x.ffi.NULL, x.err))
    x.check(x.lib.xlac_module_verify(m, x.options("xlac_verify_options", {"xla_compat": True}), x.err))
    bad = x.parse(PROGRAM.replace("dd = f32[2,3]", "dd = f32[3,3]").replace("(f32[2,3], f32[2]", "(f32[3,3], f32[2]"))
    x.fails(x.lib.xlac_module_verify(bad, x.ffi.NULL, x.err), 201)
    assert x.err.line == 15 and x.text(x.err.op) == "dd"
    a, b = x.ffi.new("uint64_t *"), x.ffi.new("uint64_t *")
    x.check(x.lib.xlac_module_fingerprint(m, a, x.err))
    x.check(x.lib.xlac_module_fingerprint(bad, b, x.err))
    assert a[0] != b[0]
    x.lib.xlac_module_destroy(bad)


def test_clone_is_independent(x, m):
    out = x.ffi.new("xlac_module **")
    x.check(x.lib.xlac_module_clone(out, m, x.err))
    x.check(x.lib.xlac_module_set_name(out[0], b"other", x.err))
    assert x.text(x.lib.xlac_module_name(m)) == "demo" and x.text(x.lib.xlac_module_name(out[0])) == "other"
    assert x.print_module(out[0]).split("\n", 1)[1] == x.print_module(m).split("\n", 1)[1]
    x.lib.xlac_module_destroy(out[0])


def test_header(x, m):
    config, alias = x.ffi.new("xlac_config *"), x.ffi.new("xlac_alias *")
    x.lib.xlac_module_config(m, config)
    assert (config.n_aliases, config.n_donors, config.n_frontend_attributes) == (1, 1, 1)
    assert x.lib.xlac_module_alias(m, 0, alias)
    assert (alias.n_output, alias.output[0], alias.parameter, alias.n_index, alias.must) == (1, 0, 0, 0, False)
    assert x.lib.xlac_module_donor(m, 0, alias) and alias.parameter == 1
    assert not x.lib.xlac_module_alias(m, 1, alias) and not x.lib.xlac_module_donor(m, 1, alias)
    key, value = x.ffi.new("const char **"), x.ffi.new("const char **")
    assert x.lib.xlac_module_frontend_attribute(m, 0, key, value)
    assert x.text(key[0]) == "a" and "b" in x.text(value[0])
    assert not x.lib.xlac_module_frontend_attribute(m, 1, key, value)
    stats = x.ffi.new("xlac_stats *")
    x.lib.xlac_module_stats(m, stats)
    assert (stats.n_computations, stats.n_ops) == (2, 11) and stats.n_bytes > 0


def test_computations(x, m):
    entry, total = x.lib.xlac_module_entry(m), x.lib.xlac_computation_find(m, b"sum")
    first = x.lib.xlac_computation_next(m, x.ffi.NULL)
    assert first == total and x.lib.xlac_computation_next(m, first) == entry
    assert x.lib.xlac_computation_next(m, entry) == x.ffi.NULL
    assert x.lib.xlac_computation_find(m, b"nope") == x.ffi.NULL
    assert x.text(x.lib.xlac_computation_name(m, entry)) == "main"
    assert x.text(x.lib.xlac_computation_thread(m, entry)) == "main"
    assert x.lib.xlac_computation_is_live(m, entry)
    assert x.lib.xlac_computation_op_count(m, total) == 3 and x.lib.xlac_computation_param_count(m, total) == 2
    assert x.lib.xlac_computation_param(m, total, 1) == x.op(m, "q")
    assert x.lib.xlac_computation_param(m, total, 2) == x.ffi.NULL
    assert x.lib.xlac_computation_root(m, total) == x.op(m, "s")
    line, col = x.ffi.new("uint32_t *"), x.ffi.new("uint32_t *")
    x.lib.xlac_computation_position(m, total, line, col)
    assert line[0] == 3


def test_ops(x, m):
    entry, op, names = x.lib.xlac_module_entry(m), x.ffi.NULL, []
    while (op := x.lib.xlac_op_next(m, entry, op)) != x.ffi.NULL:
        names.append(x.text(x.info(m, op).name))
    assert names == ["x", "y", "zero", "r", "d", "dd", "k", "t"]
    assert x.lib.xlac_op_find(m, entry, b"s") == x.ffi.NULL and x.lib.xlac_op_find(m, x.ffi.NULL, b"s") != x.ffi.NULL
    d = x.op(m, "d")
    info = x.info(m, d)
    assert (x.text(info.opcode), info.n_operands, info.parameter) == ("add", 2, -1)
    assert (info.line, info.computation) == (14, entry) and x.lib.xlac_op_is_live(m, d)
    assert x.info(m, x.op(m, "y")).parameter == 1
    assert x.lib.xlac_op_operand(m, d, 1) == x.op(m, "y") and x.lib.xlac_op_operand(m, d, 2) == x.ffi.NULL
    users = x.ffi.new("xlac_op *[4]")
    assert x.lib.xlac_op_users(m, d, users, 4) == 1 and users[0] == x.op(m, "dd")
    assert x.lib.xlac_op_users(m, x.op(m, "x"), x.ffi.NULL, 0) == 2
    assert x.lib.xlac_op_control_predecessors(m, d, users, 4) == 1 and users[0] == x.op(m, "r")
    assert x.lib.xlac_op_control_predecessors(m, d, x.ffi.NULL, 0) == 1
    assert x.lib.xlac_op_control_predecessors(m, x.op(m, "x"), users, 4) == 0
    r = x.op(m, "r")
    assert x.lib.xlac_op_called(m, r, 0) == x.lib.xlac_computation_find(m, b"sum")
    assert x.lib.xlac_op_called(m, r, 1) == x.ffi.NULL


def test_serialize(x, m):
    """The proto reads back as the same program; other formats and modules without a root are refused."""
    out, n = x.ffi.new("char **"), x.ffi.new("size_t *")
    x.check(x.lib.xlac_module_serialize(m, x.lib.XLAC_FORMAT_HLO_PROTO, out, n, x.err))
    data = bytes(x.ffi.buffer(out[0], n[0]))
    x.lib.xlac_free(out[0])
    again = x.ffi.new("xlac_module **")
    x.check(x.lib.xlac_module_parse(again, data, len(data), x.ffi.NULL, x.err))
    assert x.text(x.lib.xlac_module_name(again[0])) == x.text(x.lib.xlac_module_name(m))
    x.lib.xlac_module_destroy(again[0])
    x.fails(x.lib.xlac_module_serialize(m, 99, out, n, x.err), 503)


def test_types(x, m):
    info = x.ffi.new("xlac_type_info *")
    t = x.info(m, x.op(m, "t")).type
    x.lib.xlac_type_get(t, info)
    assert (info.kind, info.n_elements, info.rank) == (x.lib.XLAC_TYPE_TUPLE, 3, 0)
    element = x.lib.xlac_type_element(t, 0)
    x.lib.xlac_type_get(element, info)
    assert info.kind == x.lib.XLAC_TYPE_TENSOR and list(info.dims[0:info.rank]) == [2, 3] and info.dynamic == x.ffi.NULL
    assert x.text(x.lib.xlac_dtype_text(info.dtype)) == "f32"
    assert x.take(x.lib.xlac_type_print(element, False)) == "f32[2,3]"
    assert x.take(x.lib.xlac_type_print(element, True)) == "f32[2,3]{1,0}"
    x.lib.xlac_type_get(x.lib.xlac_type_element(t, 2), info)
    assert info.kind == x.lib.XLAC_TYPE_TOKEN
    assert x.lib.xlac_type_element(t, 3) == x.lib.xlac_type_element(element, 0) == x.ffi.NULL


def test_attributes(x, m):
    out, r, d = x.ffi.new("char **"), x.op(m, "r"), x.op(m, "d")

    def attr(op, key):
        x.check(x.lib.xlac_op_attr(m, op, key, out, x.err))
        return x.take(out[0])

    assert x.text(x.lib.xlac_op_attr_key(m, r, 0)) == "dimensions"
    assert x.lib.xlac_op_attr_key(m, r, 1) == x.ffi.NULL
    assert attr(r, b"dimensions") == "{1}" and attr(r, b"to_apply") == "%sum"
    assert attr(d, b"control-predecessors") == "{%r}" and 'op_name="d"' in attr(d, b"metadata")
    assert attr(r, b"direction") is None and attr(r, b"nope") is None


def test_constants(x, m):
    out = x.ffi.new("xlac_value **")
    x.check(x.lib.xlac_op_constant(m, x.op(m, "zero"), out, x.err))
    assert x.floats(out[0]) == [0.0]
    x.lib.xlac_value_release(out[0])
    x.fails(x.lib.xlac_op_constant(m, x.op(m, "d"), out, x.err), 503)
    elided = x.parse("HloModule m\nENTRY e {\n  ROOT c = f32[64] constant({...})\n}\n")
    x.fails(x.lib.xlac_op_constant(elided, x.op(elided, "c"), out, x.err), 503)
    x.lib.xlac_module_destroy(elided)


def test_constants_in_mlir_form(x):
    text = """func.func @main() -> (tensor<2xf32>, tensor<3xf32>, tensor<f32>, tensor<0x2xf32>) {
  %a = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = stablehlo.constant dense<3.0> : tensor<3xf32>
  %c = stablehlo.constant dense<4.0> : tensor<f32>
  %d = stablehlo.constant dense<> : tensor<0x2xf32>
  %e = stablehlo.constant dense_resource<gone> : tensor<2xf32>
  return %a, %b, %c, %d : tensor<2xf32>, tensor<3xf32>, tensor<f32>, tensor<0x2xf32>
}"""
    m = x.parse(text)
    out = x.ffi.new("xlac_value **")
    for name, want in {"a": [1, 2], "b": [3, 3, 3], "c": [4], "d": []}.items():
        x.check(x.lib.xlac_op_constant(m, x.op(m, name), out, x.err))
        assert x.floats(out[0]) == want
        x.lib.xlac_value_release(out[0])
    x.fails(x.lib.xlac_op_constant(m, x.op(m, "e"), out, x.err), 503)
    x.lib.xlac_module_destroy(m)


def test_serialized_modules(x, m):
    out, n, back = x.ffi.new("char **"), x.ffi.new("size_t *"), x.ffi.new("xlac_module **")
    x.check(x.lib.xlac_module_serialize(m, x.lib.XLAC_FORMAT_HLO_PROTO, out, n, x.err))
    for format in (x.lib.XLAC_FORMAT_AUTO, x.lib.XLAC_FORMAT_HLO_PROTO):
        options = x.options("xlac_parse_options", {"format": format})
        x.check(x.lib.xlac_module_parse(back, out[0], n[0], options, x.err))
        assert x.print_module(back[0]) == x.print_module(m)
        x.lib.xlac_module_destroy(back[0])
    x.fails(x.lib.xlac_module_parse(back, out[0], n[0] // 2, options, x.err), x.err.code or 100)
    x.lib.xlac_free(out[0])
    x.fails(x.lib.xlac_module_serialize(m, 7, out, n, x.err), 503)


ASYNC = b"""HloModule m, is_scheduled=true
ENTRY e {
  x = f32[64,64] parameter(0)
  st = (f32[64,64], f32[64,64], u32[]) copy-start(x)
  y = f32[64,64] sine(x)
  d = f32[64,64] copy-done(st)
  ROOT r = f32[64,64] add(y, d)
}
"""


def test_async_chains_are_explained(x):
    out, text, n = (x.ffi.new(t) for t in ("xlac_module **", "char **", "size_t *"))
    x.check(x.lib.xlac_module_parse(out, ASYNC, len(ASYNC), x.ffi.NULL, x.err))
    model, found = x.ffi.new("xlac_async_model *"), []
    for link in (0, 0.5):
        model.link_gigabytes = link
        x.check(x.lib.xlac_module_explain_async(out[0], model if link else x.ffi.NULL, text, n, x.err))
        found.append(json.loads(x.ffi.buffer(text[0], n[0])[:]))
        x.lib.xlac_free(text[0])
    slow, fast = (f["computations"][0]["chains"][0] for f in found[::-1])
    assert found[0]["scheduled"] and fast["start"] == "st" and fast["reader"] == "r" and slow["exposed"] > fast["exposed"]
    x.lib.xlac_module_destroy(out[0])
    mlir = b"func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"
    options = x.options("xlac_parse_options", {"format": x.lib.XLAC_FORMAT_MLIR})
    x.check(x.lib.xlac_module_parse(out, mlir, len(mlir), options, x.err))
    x.check(x.lib.xlac_module_explain_async(out[0], x.ffi.NULL, text, n, x.err))
    assert json.loads(x.ffi.buffer(text[0], n[0])[:])["computations"] == []
    x.lib.xlac_free(text[0])
    x.lib.xlac_module_destroy(out[0])
    x.check(x.lib.xlac_module_create(out, b"empty", x.err))
    x.fails(x.lib.xlac_module_explain_async(out[0], x.ffi.NULL, text, n, x.err), x.err.code)
    x.lib.xlac_module_destroy(out[0])
