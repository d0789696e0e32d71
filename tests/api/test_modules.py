"""Modules, computations, types and header facts through the public C API."""
import threading

import numpy as np
import pytest

TEXT = """HloModule step, is_scheduled=true, replica_count=2, num_partitions=3, frontend_attributes={a="1",b="two"}, input_output_alias={ {0}: (1, {}, must-alias) }, buffer_donor={ (0, {}) }

%half (v: f32[3]) -> f32[3] {
  %v = f32[3]{0} parameter(0)
  ROOT %twice = f32[3]{0} add(%v, %v)
}

ENTRY %main (x: f32[3], y: f32[3]) -> (f32[3], s32[]) {
  %x = f32[3]{0} parameter(0)
  %y = f32[3]{0} parameter(1)
  %c = f32[3]{0} call(%x), to_apply=%half
  %sum = f32[3]{0} add(%c, %y), metadata={op_name="here"}
  %seven = s32[] constant(7)
  ROOT %out = (f32[3]{0}, s32[]) tuple(%sum, %seven)
}
"""


def name_of(ffi, lib, m, c):
    return ffi.string(lib.xlac_computation_name(m, c)).decode()


def test_parse_print_verify(api, ffi, lib):
    m = api.parse(TEXT)
    assert lib.xlac_module_verify(m, ffi.NULL, ffi.NULL) == 0  # err may be NULL
    api("xlac_module_verify", m, ffi.new("xlac_verify_options *", {"xla_compat": True}))
    printed = api.text("xlac_module_print", m)
    assert "ROOT %out = (f32[3]{0}, s32[]) tuple(%sum, %seven)" in printed
    again = api.parse(printed)
    assert api.text("xlac_module_print", again) == printed
    out = ffi.new("xlac_module **")
    options = ffi.new("xlac_parse_options *", {"format": lib.XLAC_FORMAT_HLO, "max_depth": 16})
    api("xlac_module_parse", out, TEXT.encode(), len(TEXT), options)
    lib.xlac_module_destroy(out[0])
    lib.xlac_module_destroy(ffi.NULL)


def test_print_options(api, ffi, lib):
    m = api.parse(TEXT)
    texts = set()
    for mode in range(4):
        options = ffi.new("xlac_print_options *", {"mode": mode, "no_metadata": mode == 0})
        text, n = ffi.new("char **"), ffi.new("size_t *")
        api("xlac_module_print", m, options, text, n)
        texts.add(ffi.string(text[0]))
        assert b"op_name" not in ffi.string(text[0]) or mode
        lib.xlac_free(text[0])
    assert len(texts) == 4
    entry = lib.xlac_module_entry(m)
    assert "%sum" in api.text("xlac_computation_print", m, entry)
    assert api.text("xlac_op_print", m, api.op(m, "sum")).strip().startswith("%sum = f32[3]{0} add(")


def test_bad_options(api, ffi, lib, refused):
    m = api.parse(TEXT)
    with refused("BAD_ARGUMENT"):
        api("xlac_module_print", m, ffi.new("xlac_print_options *", {"mode": 9}), ffi.new("char **"), ffi.new("size_t *"))
    with refused("BAD_ARGUMENT"):
        api("xlac_module_print", m, ffi.new("xlac_print_options *", {"indent": 2000}), ffi.new("char **"), ffi.NULL)
    with refused("BAD_ARGUMENT"):
        api("xlac_module_parse", ffi.new("xlac_module **"), b"", 0, ffi.new("xlac_parse_options *", {"format": 9}))


@pytest.mark.parametrize("text, line, col", [
    ("", 1, 1), ("HloModule", 1, None), ("HloModule m\nENTRY e { x = f32[2 parameter(0) }", 2, 21),
    ("HloModule m\nENTRY e {\n ROOT x = f32[2] frobnicate()\n}", 3, None)])
def test_parse_errors_have_positions(api, ffi, lib, text, line, col):
    out, error = ffi.new("xlac_module **"), ffi.new("xlac_error *")
    assert lib.xlac_module_parse(out, text.encode(), len(text), ffi.NULL, error) < 0
    assert out[0] == ffi.NULL  # outputs are untouched
    assert error.line == line and (col is None or error.col == col) and error.code > 0
    assert len(ffi.string(error.message)) > 10


def test_verify_error(api, ffi, lib, refused):
    m = api.parse("HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT r = f32[3] add(x, x)\n}")
    with refused("VERIFY_SHAPE") as caught:
        api("xlac_module_verify", m, ffi.NULL)
    assert (caught.value.line, caught.value.op) == (4, "r")


def test_clone_is_apart(api, ffi, lib):
    m = api.parse(TEXT)
    before = api.text("xlac_module_print", m)
    out = ffi.new("xlac_module **")
    api("xlac_module_clone", out, m)
    assert api.text("xlac_module_print", out[0]) == before
    api("xlac_op_rename", out[0], api.op(out[0], "sum"), b"other")
    api("xlac_module_set_name", out[0], b"renamed")
    assert ffi.string(lib.xlac_module_name(out[0])) == b"renamed"
    assert api.text("xlac_module_print", m) == before
    lib.xlac_module_destroy(out[0])


def test_header_facts(api, ffi, lib):
    m = api.parse(TEXT)
    config = api.info("xlac_config", "xlac_module_config", m)
    assert config.is_scheduled and (config.replica_count, config.num_partitions) == (2, 3)
    assert (config.n_aliases, config.n_donors, config.n_frontend_attributes) == (1, 1, 2)
    key, value = ffi.new("const char **"), ffi.new("const char **")
    assert lib.xlac_module_frontend_attribute(m, 1, key, value)
    assert (ffi.string(key[0]), ffi.string(value[0])) == (b"b", b"two")
    assert not lib.xlac_module_frontend_attribute(m, 2, key, value)
    a = ffi.new("xlac_alias *")
    assert lib.xlac_module_alias(m, 0, a) and not lib.xlac_module_alias(m, 1, ffi.new("xlac_alias *"))
    assert (list(a.output[0:a.n_output]), a.parameter, a.n_index, a.must) == ([0], 1, 0, True)
    assert lib.xlac_module_donor(m, 0, a) and not lib.xlac_module_donor(m, 1, ffi.new("xlac_alias *"))
    assert (a.parameter, a.n_index) == (0, 0)
    stats = api.info("xlac_stats", "xlac_module_stats", m)
    assert (stats.n_computations, stats.n_ops) == (2, 8) and stats.n_bytes > 1000


def test_aliases_are_edited_in_order(api, ffi, lib, refused):
    m = api.parse(TEXT)
    one, zero = ffi.new("int64_t[]", [1]), ffi.new("int64_t[]", [0])
    api("xlac_module_set_alias", m, ffi.new("xlac_alias *", {"n_output": 1, "output": one, "parameter": 0}))
    api("xlac_module_set_alias", m, ffi.new("xlac_alias *", {"n_output": 1, "output": zero, "parameter": 1}))
    api("xlac_module_add_donor", m, ffi.new("xlac_alias *", {"parameter": 1}))
    api("xlac_module_add_donor", m, ffi.new("xlac_alias *", {"parameter": 1}))
    text = api.text("xlac_module_print", m)
    assert "input_output_alias={ {0}: (1, {}, may-alias), {1}: (0, {}, may-alias) }" in text
    assert "buffer_donor={ (0, {}), (1, {}) }" in text
    with refused("VERIFY_ALIAS"):
        api("xlac_module_verify", m, ffi.NULL)
    api("xlac_module_clear_aliases", m)
    api("xlac_module_verify", m, ffi.NULL)


def test_fingerprint_ignores_names(api, ffi, lib):
    one, two = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    api("xlac_module_fingerprint", api.parse(TEXT), one)
    api("xlac_module_fingerprint", api.parse(TEXT.replace("%sum", "%total").replace(', metadata={op_name="here"}', "")), two)
    assert one[0] == two[0] != 0
    api("xlac_module_fingerprint", api.parse(TEXT.replace("constant(7)", "constant(8)")), two)
    assert one[0] != two[0]


# --- computations ---

def test_walk_computations(api, ffi, lib):
    m = api.parse(TEXT)
    names, c = [], ffi.NULL
    while (c := lib.xlac_computation_next(m, c)) != ffi.NULL:
        names.append(name_of(ffi, lib, m, c))
    assert names == ["half", "main"]
    entry = lib.xlac_module_entry(m)
    assert name_of(ffi, lib, m, entry) == "main"
    assert lib.xlac_computation_find(m, b"main") == entry
    assert lib.xlac_computation_find(m, b"nothing") == ffi.NULL
    assert lib.xlac_computation_op_count(m, entry) == 6 and lib.xlac_computation_param_count(m, entry) == 2
    assert lib.xlac_computation_param(m, entry, 1) == api.op(m, "y")
    assert lib.xlac_computation_param(m, entry, 2) == ffi.NULL
    assert lib.xlac_computation_root(m, entry) == api.op(m, "out")
    assert ffi.string(lib.xlac_computation_thread(m, entry)) == b"main"
    line, col = ffi.new("uint32_t *"), ffi.new("uint32_t *")
    lib.xlac_computation_position(m, entry, line, col)
    assert line[0] == 8


def test_build_from_nothing(api, ffi, lib, refused):
    m = api.create(b"made")
    assert lib.xlac_module_entry(m) == ffi.NULL
    with refused("VERIFY_STRUCTURE"):
        api.text("xlac_module_print", m)
    with refused("VERIFY_STRUCTURE"):
        api("xlac_module_verify", m, ffi.NULL)
    c = api.make("xlac_computation", "xlac_computation_create", m, b"main")
    assert lib.xlac_module_entry(m) == c and lib.xlac_computation_root(m, c) == ffi.NULL
    with refused("VERIFY_STRUCTURE") as caught:
        api.text("xlac_module_print", m)
    assert "root" in caught.value.message
    op = api.make("xlac_op", "xlac_op_create_parameter", m, c, 0, b"f32[2]", b"x")
    api("xlac_computation_set_root", m, c, op)
    assert "ENTRY %main (x: f32[2]) -> f32[2]" in api.text("xlac_module_print", m)
    again = api.make("xlac_computation", "xlac_computation_create", m, b"main")
    assert name_of(ffi, lib, m, again) != "main"
    with refused("VERIFY_STRUCTURE"):
        api("xlac_module_verify", m, ffi.NULL)
    api("xlac_computation_remove", m, again)
    assert not lib.xlac_computation_is_live(m, again)
    api("xlac_module_verify", m, ffi.NULL)


def test_rename_and_remove_computations(api, ffi, lib, refused):
    m = api.parse(TEXT)
    half, entry = lib.xlac_computation_find(m, b"half"), lib.xlac_module_entry(m)
    api("xlac_computation_rename", m, half, b"twofold")
    assert "to_apply=%twofold" in api.text("xlac_module_print", m)
    with refused("DUPLICATE_NAME"):
        api("xlac_computation_rename", m, half, b"main")
    with refused("EDIT") as caught:
        api("xlac_computation_remove", m, half)
    assert caught.value.op == "c"
    with refused("EDIT"):
        api("xlac_computation_remove", m, entry)
    api("xlac_op_replace_uses", m, api.op(m, "c"), api.op(m, "x"))
    api("xlac_op_remove", m, api.op(m, "c"))
    twice = api.op(m, "twice")
    api("xlac_computation_remove", m, half)
    assert not lib.xlac_computation_is_live(m, half) and not lib.xlac_op_is_live(m, twice)
    with refused("EDIT"):
        api("xlac_computation_remove", m, half)
    with refused("EDIT"):
        api("xlac_module_set_entry", m, half)
    with refused("EDIT"):
        api("xlac_computation_print", m, half, ffi.NULL, ffi.new("char **"), ffi.new("size_t *"))


def test_entry_and_root_can_change(api, ffi, lib, refused):
    m = api.parse("HloModule m\nf { a = f32[] parameter(0)\n ROOT b = f32[] negate(a) }\n"
                  "ENTRY e { c = f32[] parameter(0)\n ROOT d = f32[] exponential(c) }")
    f = lib.xlac_computation_find(m, b"f")
    api("xlac_module_set_entry", m, f)
    assert "ENTRY %f" in api.text("xlac_module_print", m)
    with refused("EDIT"):
        api("xlac_computation_set_root", m, f, api.op(m, "d"))
    api("xlac_computation_set_root", m, f, api.op(m, "a"))
    assert lib.xlac_computation_root(m, f) == api.op(m, "a")


def test_import_brings_callees(api, ffi, lib):
    source, target = api.parse(TEXT), api.parse("HloModule t\nENTRY half { ROOT v = f32[3] parameter(0) }")
    got = api.make("xlac_computation", "xlac_computation_import", target, source, lib.xlac_module_entry(source))
    assert name_of(ffi, lib, target, got) == "main"
    assert name_of(ffi, lib, target, lib.xlac_module_entry(target)) == "half"
    text = api.text("xlac_module_print", target)
    assert text.count("add(") == 2
    api("xlac_module_verify", target, ffi.NULL)
    own = api.make("xlac_computation", "xlac_computation_import", target, target, got)
    assert name_of(ffi, lib, target, own) != "main"
    api("xlac_module_verify", target, ffi.NULL)


# --- types ---

def test_types(api, ffi, lib):
    m = api.parse("HloModule m\nENTRY e { ROOT p = (f32[2,<=3]{0,1}, (bf16[], token[])) parameter(0) }")
    t = api.info("xlac_op_info", "xlac_op_get", m, api.op(m, "p")).type

    def info(t):
        return api.info("xlac_type_info", "xlac_type_get", t)

    assert info(t).kind == lib.XLAC_TYPE_TUPLE and info(t).n_elements == 2
    tensor = lib.xlac_type_element(t, 0)
    i = info(tensor)
    assert i.kind == lib.XLAC_TYPE_TENSOR and ffi.string(lib.xlac_dtype_text(i.dtype)) == b"f32"
    assert list(i.dims[0:i.rank]) == [2, 3] and list(i.dynamic[0:2]) == [False, True]
    inner = lib.xlac_type_element(t, 1)
    assert info(lib.xlac_type_element(inner, 1)).kind == lib.XLAC_TYPE_TOKEN
    assert info(lib.xlac_type_element(inner, 0)).rank == 0
    assert lib.xlac_type_element(t, 2) == ffi.NULL == lib.xlac_type_element(tensor, 0)
    for layouts, expected in ((True, b"f32[2,<=3]{0,1}"), (False, b"f32[2,<=3]")):
        text = lib.xlac_type_print(tensor, layouts)
        assert ffi.string(text) == expected
        lib.xlac_free(text)
    lib.xlac_free(ffi.NULL)


# --- threads ---

def test_one_module_many_threads(api, ffi, lib):
    """Reads, prints, verifications, runs and edits of one module at once: each ends well or is refused."""
    m = api.parse(TEXT.replace("is_scheduled=true, ", ""))
    before = api.text("xlac_module_print", m)
    x = api.value(np.ones(3, np.float32))
    args = ffi.new("xlac_value *[]", [x, x])
    wrong = []

    def work(kind):
        error = ffi.new("xlac_error *")
        for i in range(150):
            if kind == "print":
                text, n = ffi.new("char **"), ffi.new("size_t *")
                if lib.xlac_module_print(m, ffi.NULL, text, n, error) or n[0] < 100:
                    wrong.append(kind)
                lib.xlac_free(text[0])
            elif kind == "verify":
                if lib.xlac_module_verify(m, ffi.NULL, error):
                    wrong.append(ffi.string(error.message))
            elif kind == "run":
                out = ffi.new("xlac_value **")
                if lib.xlac_interpret(m, ffi.NULL, 2, args, out, error):
                    wrong.append(ffi.string(error.message))
                lib.xlac_value_release(out[0])
            else:
                status = lib.xlac_op_set_attr(m, api.op(m, "sum"), b"metadata", b'{op_name="%d"}' % i, error)
                if status and error.code != 800:
                    wrong.append(ffi.string(error.message))

    threads = [threading.Thread(target=work, args=(k,)) for k in ("print", "verify", "run", "run", "edit")]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    api("xlac_op_set_attr", m, api.op(m, "sum"), b"metadata", b'{op_name="here"}')
    assert api.text("xlac_module_print", m) == before
