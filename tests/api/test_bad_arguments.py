"""Arguments that xlac.h says are checked: texts that are NULL, numbers that are none of their enum, names that text can't spell."""
import pytest

TEXT = "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] negate(x)\n}\n"


@pytest.fixture
def m(x):
    module = x.parse(TEXT)
    yield module
    x.lib.xlac_module_destroy(module)


def calls(x, m):
    """Name to a call with one argument that is to be refused."""
    ffi, lib, null, err = x.ffi, x.lib, x.ffi.NULL, x.err
    out, n = ffi.new("char **"), ffi.new("size_t *")
    module, computation, op = ffi.new("xlac_module **"), ffi.new("xlac_computation **"), ffi.new("xlac_op **")
    entry, y = lib.xlac_module_entry(m), x.op(m, "y")
    print_as = lambda **options: lib.xlac_module_print(m, ffi.new("xlac_print_options *", options), out, n, err)
    parse_as = lambda **options: lib.xlac_module_parse(module, b"", 0, ffi.new("xlac_parse_options *", options), err)
    registry = ffi.new("xlac_registry **")
    spec = ffi.new("xlac_op_spec *", {"opcode": null})
    fine = ffi.new("char[]", b"negate")
    attr = ffi.new("xlac_attr *", {"key": fine, "text": null})
    attrs = ffi.new("xlac_op_spec *", {"opcode": fine, "n_attrs": 1, "attrs": attr})
    x.keep = (spec, fine, attr, attrs)
    x.check(lib.xlac_registry_create(registry, err))
    return {
        "create": lib.xlac_module_create(module, null, err), "set_name": lib.xlac_module_set_name(m, null, err),
        "set_name blank": lib.xlac_module_set_name(m, b"a b", err), "parse text": lib.xlac_module_parse(module, null, 3, null, err),
        "parse format": parse_as(format=77), "parse depth": parse_as(max_depth=1025),
        "print format": print_as(format=77), "print proto": print_as(format=lib.XLAC_FORMAT_HLO_PROTO), "print mode": print_as(mode=-1),
        "serialize": lib.xlac_module_serialize(m, 77, out, n, err), "run": lib.xlac_module_run(m, null, null, err),
        "annotate": lib.xlac_module_annotate(m, null, null, err),
        "computation create": lib.xlac_computation_create(computation, m, null, err),
        "computation rename": lib.xlac_computation_rename(m, entry, null, err),
        "computation rename blank": lib.xlac_computation_rename(m, entry, b"a b", err),
        "rename": lib.xlac_op_rename(m, y, null, err), "rename blank": lib.xlac_op_rename(m, y, b"a b", err),
        "rename type": lib.xlac_op_rename(m, y, b"f32", err), "rename internal": lib.xlac_op_rename(m, y, b"__y", err),
        "attr": lib.xlac_op_attr(m, y, null, out, err), "set_attr": lib.xlac_op_set_attr(m, y, null, null, err),
        "op create": lib.xlac_op_create(op, m, entry, spec, err), "op create attr": lib.xlac_op_create(op, m, entry, attrs, err),
        "parameter type": lib.xlac_op_create_parameter(op, m, entry, 1, null, null, err),
        "registry": lib.xlac_registry_add(registry[0], null, null, null, err),
        "registry fn": lib.xlac_registry_add(registry[0], b"f", null, null, err),
        "native": lib.xlac_registry_add_native(registry[0], null, null, err)}


def test_what_is_no_text_name_or_number_of_an_enum_is_refused(x, m):
    accepted = [name for name, status in calls(x, m).items() if status != -503]
    assert not accepted
    assert x.print_module(m) == x.print_module(x.parse(TEXT))


def test_lookups_of_nothing_find_nothing(x, m):
    null, lib = x.ffi.NULL, x.lib
    assert lib.xlac_dtype_from_text(null) == 0 and lib.xlac_opcode_from_text(null) == 0 and lib.xlac_opcode_elsewhere(null) == 0 and lib.xlac_attr_kind(null) == null
    assert lib.xlac_computation_find(m, null) == null and lib.xlac_op_find(m, null, null) == null
    assert not lib.xlac_graph_has_lowering(null)


def test_parameters_of_executables_without_asking_for_names(x, m):
    exe = x.ffi.new("xlac_executable **")
    x.check(x.lib.xlac_compile(m, x.ffi.NULL, exe, x.err))
    assert x.lib.xlac_executable_param(exe[0], 0, x.ffi.NULL) != x.ffi.NULL
    x.lib.xlac_executable_destroy(exe[0])


def test_names_given_to_what_is_made_are_made_legal(x):
    module, computation = x.ffi.new("xlac_module **"), x.ffi.new("xlac_computation **")
    x.check(x.lib.xlac_module_create(module, b"my step", x.err))
    x.check(x.lib.xlac_computation_create(computation, module[0], b"a b", x.err))
    assert x.text(x.lib.xlac_module_name(module[0])) == "my_step"
    assert x.text(x.lib.xlac_computation_name(module[0], computation[0])) == "a_b"
    x.lib.xlac_module_destroy(module[0])


def test_kinds_of_types_are_those_of_the_header(x):
    text = b"""func.func @main(%a: tensor<*xf32>, %b: memref<2xf32>, %c: index, %d: !shape.shape) {
  "a.b"() : () -> ()
  return
}"""
    out, info = x.ffi.new("xlac_module **"), x.ffi.new("xlac_type_info *")
    options = x.options("xlac_parse_options", {"format": x.lib.XLAC_FORMAT_MLIR, "allow_unregistered": True})
    x.check(x.lib.xlac_module_parse(out, text, len(text), options, x.err))
    entry, kinds, op = x.lib.xlac_module_entry(out[0]), [], x.ffi.NULL
    while (op := x.lib.xlac_op_next(out[0], entry, op)) != x.ffi.NULL:
        op_info = x.ffi.new("xlac_op_info *")
        x.lib.xlac_op_get(out[0], op, op_info)
        x.lib.xlac_type_get(op_info.type, info)
        kinds.append((info.kind, info.dtype, x.take(x.lib.xlac_type_print(op_info.type, False))))
    f32 = x.lib.xlac_dtype_from_text(b"f32")
    other = x.lib.XLAC_TYPE_OTHER
    assert kinds[:5] == [(x.lib.XLAC_TYPE_UNRANKED, f32, "f32[*]"), (other, 0, "memref<2xf32>"), (other, 0, "index"),
                         (other, 0, "!shape.shape"), (x.lib.XLAC_TYPE_TUPLE, 0, "()")]
    x.lib.xlac_module_destroy(out[0])
