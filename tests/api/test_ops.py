"""Ops through the public C API: reading, making, editing, and what is refused."""
import numpy as np
import pytest

from .test_modules import TEXT


def info(api, m, op):
    return api.info("xlac_op_info", "xlac_op_get", m, op)


def attr(api, ffi, lib, m, op, key):
    text = ffi.new("char **")
    api("xlac_op_attr", m, op, key, text)
    if text[0] == ffi.NULL:
        return None
    out = ffi.string(text[0]).decode()
    lib.xlac_free(text[0])
    return out


def spec(ffi, keep, opcode, operands=(), attrs=(), type=None, name=None):
    """An xlac_op_spec; `keep` holds what it points to."""
    def text(s):
        if s is None:
            return ffi.NULL
        keep.append(ffi.new("char[]", s))
        return keep[-1]

    keep.append(ffi.new("xlac_op *[]", list(operands) or [ffi.NULL]))
    ops = keep[-1]
    pairs = ffi.new("xlac_attr[]", [{"key": text(k), "text": text(v)} for k, v in attrs] or 1)
    keep.append(pairs)
    return ffi.new("xlac_op_spec *", {"opcode": text(opcode), "type": text(type), "name": text(name),
                                      "n_operands": len(operands), "n_attrs": len(attrs), "operands": ops, "attrs": pairs})


@pytest.fixture
def create(api, ffi, lib):
    def create(m, c, *args, **kwargs):
        keep = []
        return api.make("xlac_op", "xlac_op_create", m, c, spec(ffi, keep, *args, **kwargs))
    return create


def test_facts(api, ffi, lib):
    m = api.parse(TEXT)
    i = info(api, m, api.op(m, "sum"))
    assert (ffi.string(i.name), ffi.string(i.opcode)) == (b"sum", b"add")
    assert i.computation == lib.xlac_module_entry(m)
    assert (i.n_operands, i.n_users, i.n_called, i.n_attrs, i.parameter, i.line) == (2, 1, 0, 1, -1, 12)
    assert lib.xlac_op_operand(m, api.op(m, "sum"), 0) == api.op(m, "c")
    assert lib.xlac_op_operand(m, api.op(m, "sum"), 2) == ffi.NULL
    assert info(api, m, api.op(m, "y")).parameter == 1
    call = api.op(m, "c")
    assert lib.xlac_op_called(m, call, 0) == lib.xlac_computation_find(m, b"half")
    assert lib.xlac_op_called(m, call, 1) == ffi.NULL
    assert lib.xlac_op_find(m, lib.xlac_computation_find(m, b"half"), b"sum") == ffi.NULL
    assert lib.xlac_op_find(m, ffi.NULL, b"none") == ffi.NULL


def test_walk_and_users(api, ffi, lib):
    m = api.parse(TEXT)
    names, op = [], ffi.NULL
    while (op := lib.xlac_op_next(m, lib.xlac_module_entry(m), op)) != ffi.NULL:
        names.append(ffi.string(info(api, m, op).name).decode())
    assert names == ["x", "y", "c", "sum", "seven", "out"]
    v = api.op(m, "v")  # used twice by one op: one user
    users = ffi.new("xlac_op *[4]")
    assert lib.xlac_op_users(m, v, users, 4) == 1 and users[0] == api.op(m, "twice")
    assert lib.xlac_op_users(m, v, ffi.NULL, 0) == 1
    assert info(api, m, v).n_users == 1


def test_attributes(api, ffi, lib, refused):
    m = api.parse("""HloModule m
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[4,4] parameter(0), sharding={devices=[2,1]<=[2]}
 t = f32[4,4] transpose(x), dimensions={1,0}
 z = f32[] constant(0)
 r0 = f32[4] reduce(t, z), dimensions={1}, to_apply=add, control-predecessors={x}
 ROOT n = f32[4] negate(r0) }""")
    x, t, r = (api.op(m, n) for n in ("x", "t", "r0"))
    assert attr(api, ffi, lib, m, x, b"sharding") == "{devices=[2,1]<=[2]}"
    assert attr(api, ffi, lib, m, t, b"dimensions") == "{1,0}"
    assert attr(api, ffi, lib, m, r, b"to_apply") == "%add"
    assert attr(api, ffi, lib, m, r, b"control-predecessors") == "{%x}"
    assert attr(api, ffi, lib, m, r, b"no-such") is None and attr(api, ffi, lib, m, t, b"sharding") is None
    assert info(api, m, r).n_control_predecessors == 1
    assert lib.xlac_op_control_predecessor(m, r, 0) == x and lib.xlac_op_control_predecessor(m, r, 1) == ffi.NULL
    assert ffi.string(lib.xlac_op_attr_key(m, t, 0)) == b"dimensions" and lib.xlac_op_attr_key(m, t, 1) == ffi.NULL
    api("xlac_op_set_attr", m, x, b"sharding", b"{replicated}")
    api("xlac_op_set_attr", m, t, b"dimensions", b"{0,1}")
    api("xlac_op_set_attr", m, r, b"control-predecessors", ffi.NULL)
    text = api.text("xlac_module_print", m)
    assert "sharding={replicated}" in text and "dimensions={0,1}" in text and "control-pred" not in text
    api("xlac_op_set_attr", m, x, b"sharding", ffi.NULL)
    with refused("BAD_ATTRIBUTE"):
        api("xlac_op_set_attr", m, x, b"sharding", ffi.NULL)
    for key, value in ((b"dimensions", b"{1,"), (b"dimensions", b"{1,0} x"), (b"no_such", b"1"), (b"sharding", b"{what}"),
                       (b"metadata", b"{op_name="), (b"dimensions", b"")):
        with pytest.raises(Exception) as caught:
            api("xlac_op_set_attr", m, t, key, value)
        assert 100 <= caught.value.code < 200, (key, value)
    assert attr(api, ffi, lib, m, t, b"dimensions") == "{0,1}"
    api("xlac_module_verify", m, ffi.NULL)


def test_attributes_of_called_computations(api, ffi, lib):
    m = api.parse("""HloModule m
c { a = s32[] parameter(0)
 ROOT r = pred[] constant(false) }
b { a2 = s32[] parameter(0)
 ROOT r2 = s32[] negate(a2) }
ENTRY e { x = s32[] parameter(0)
 w = s32[] while(x), condition=c, body=b
 i = s32[] conditional(x, x, w), branch_computations={b, b}
 k = s32[] custom-call(i), custom_call_target="f", called_computations={b}
 ROOT n = s32[] negate(k) }""")
    def get(op, key):
        return attr(api, ffi, lib, m, api.op(m, op), key)

    assert (get("w", b"condition"), get("w", b"body"), get("w", b"to_apply")) == ("%c", "%b", None)
    assert get("i", b"branch_computations") == "{%b, %b}"
    assert get("k", b"called_computations") == "{%b}" and get("k", b"custom_call_target") == '"f"'
    api("xlac_op_set_attr", m, api.op(m, "w"), b"body", b"%b")
    api("xlac_module_verify", m, ffi.NULL)


def test_create(api, ffi, lib, create):
    m = api.create()
    c = api.make("xlac_computation", "xlac_computation_create", m, b"main")
    x = api.make("xlac_op", "xlac_op_create_parameter", m, c, 0, b"f32[2,3]", b"x")
    k = api.make("xlac_op", "xlac_op_create_constant", m, c, api.value(np.full((2, 3), 2.5, np.float32)), b"k")
    s = create(m, c, b"add", [x, k])
    t = create(m, c, b"transpose", [s], [(b"dimensions", b"{1,0}")], name=b"flipped")
    r = create(m, c, b"reshape", [t], type=b"f32[6]")
    api("xlac_computation_set_root", m, c, r)
    api("xlac_module_verify", m, ffi.NULL)
    text = api.text("xlac_module_print", m)
    assert "%flipped = f32[3,2]{0,1} transpose(%add), dimensions={1,0}" in text
    assert "constant({ { 2.5, 2.5, 2.5 }, { 2.5, 2.5, 2.5 } })" in text
    assert "ROOT %reshape = f32[6]{0} reshape(%flipped)" in text
    again = create(m, c, b"add", [x, k], name=b"x")
    assert ffi.string(info(api, m, again).name) == b"x.1"


def test_create_refuses(api, ffi, lib, create, refused):
    m = api.create()
    c = api.make("xlac_computation", "xlac_computation_create", m, b"main")
    x = api.make("xlac_op", "xlac_op_create_parameter", m, c, 0, b"f32[2,3]", b"x")
    other = api.make("xlac_computation", "xlac_computation_create", m, b"other")
    y = api.make("xlac_op", "xlac_op_create_parameter", m, other, 0, b"f32[2,3]", ffi.NULL)
    count = lib.xlac_computation_op_count(m, c)
    for code, args in [
            ("UNKNOWN_OPCODE", (b"frobnicate", [x])), ("VERIFY_OPERANDS", (b"add", [x])), ("BAD_ARGUMENT", (b"constant",)),
            ("BAD_ARGUMENT", (b"parameter",)), ("EDIT", (b"add", [x, y])), ("CANNOT_INFER", (b"reshape", [x])),
            ("BAD_ATTRIBUTE", (b"transpose", [x])), ("BAD_ATTRIBUTE", (b"negate", [x], [(b"dimension", b"{1}")]))]:
        with refused(code):
            create(m, c, *args)
    for kwargs in ({"type": b"f32[2"}, {"type": b"f33[2]"}, {"name": b"a b"}, {"name": b"%a"}):
        with pytest.raises(Exception) as caught:
            create(m, c, b"negate", [x], **kwargs)
        assert caught.value.code > 0
    with pytest.raises(Exception):
        create(m, c, b"dot", [x, x], [(b"lhs_contracting_dims", b"{5}")])
    with refused("DUPLICATE_NAME"):
        api.make("xlac_op", "xlac_op_create_parameter", m, c, 0, b"f32[]", ffi.NULL)
    for number in (-1, 1 << 40):
        with refused("BAD_ARGUMENT"):
            api.make("xlac_op", "xlac_op_create_parameter", m, c, number, b"f32[]", ffi.NULL)
    with refused("BAD_ARGUMENT"):
        api.make("xlac_op", "xlac_op_create_constant", m, c, api.own(api.make("xlac_value", "xlac_value_token")), ffi.NULL)
    assert lib.xlac_computation_op_count(m, c) == count  # nothing half-made stays behind
    api("xlac_computation_remove", m, other)
    with refused("EDIT"):
        create(m, other, b"negate", [y])


def constant(api, ffi, m, op):
    out = ffi.new("xlac_value **")
    api("xlac_op_constant", m, op, out)
    return api.own(out[0])


def test_constants_read_back(api, ffi, lib, refused):
    m = api.create()
    c = api.make("xlac_computation", "xlac_computation_create", m, b"main")
    parts = [api.value(np.arange(6, dtype=np.int32).reshape(2, 3)), api.value(np.zeros((0, 2), np.float32))]
    both = api.own(api.make("xlac_value", "xlac_value_tuple", 2, ffi.new("xlac_value *[]", parts)))
    op = api.make("xlac_op", "xlac_op_create_constant", m, c, both, ffi.NULL)
    api("xlac_computation_set_root", m, c, op)
    value = constant(api, ffi, m, op)
    first = api.info("xlac_value_info", "xlac_value_get", lib.xlac_value_element(value, 0))
    assert list(ffi.cast("int32_t *", first.data)[0:6]) == [0, 1, 2, 3, 4, 5]
    elided = api.parse("HloModule m\nENTRY e { c = f32[20] constant({...})\n ROOT n = f32[20] negate(c) }")
    for name in ("c", "n"):
        with refused("BAD_ARGUMENT"):
            constant(api, ffi, elided, api.op(elided, name))


def test_edit(api, ffi, lib, refused):
    m = api.parse(TEXT)
    x, y, c, total, out = (api.op(m, n) for n in ("x", "y", "c", "sum", "out"))
    api("xlac_op_set_operand", m, total, 1, x)
    with refused("BAD_ARGUMENT"):
        api("xlac_op_set_operand", m, total, 2, x)
    with refused("EDIT"):
        api("xlac_op_set_operand", m, total, 0, api.op(m, "v"))
    with refused("EDIT"):
        api("xlac_op_remove", m, total)  # used
    with refused("EDIT"):
        api("xlac_op_remove", m, out)  # root
    with refused("EDIT"):
        api("xlac_op_replace_uses", m, total, api.op(m, "seven"))  # another type
    with refused("EDIT"):
        api("xlac_op_replace_uses", m, total, api.op(m, "v"))  # another computation
    api("xlac_op_replace_uses", m, total, total)
    api("xlac_op_replace_uses", m, total, c)
    api("xlac_op_remove", m, total)
    assert not lib.xlac_op_is_live(m, total) and lib.xlac_op_is_live(m, c)
    gone = info(api, m, total)
    assert ffi.string(gone.name) == b"sum" and gone.computation == ffi.NULL
    for call in (lambda: api("xlac_op_remove", m, total), lambda: api("xlac_op_set_operand", m, out, 0, total),
                 lambda: api("xlac_op_replace_uses", m, c, total), lambda: api("xlac_op_move", m, total, ffi.NULL),
                 lambda: api("xlac_op_rename", m, total, b"z"), lambda: api("xlac_op_set_type", m, total, b"f32[]"),
                 lambda: api("xlac_op_set_attr", m, total, b"metadata", b"{}"),
                 lambda: api("xlac_computation_set_root", m, lib.xlac_module_entry(m), total),
                 lambda: api.text("xlac_op_print", m, total)):
        with refused("EDIT"):
            call()
    assert "%sum" not in api.text("xlac_module_print", m)
    assert y is not None


def test_types_and_names_can_be_edited(api, ffi, lib, refused):
    m = api.parse(TEXT)
    total = api.op(m, "sum")
    api("xlac_op_set_type", m, total, b"f32[4]")
    with pytest.raises(Exception):
        api("xlac_module_verify", m, ffi.NULL)
    api("xlac_op_set_type", m, total, ffi.NULL)
    api("xlac_module_verify", m, ffi.NULL)
    with refused("EDIT"):
        api("xlac_op_set_type", m, api.op(m, "seven"), b"s64[]")
    with refused("DUPLICATE_NAME"):
        api("xlac_op_rename", m, total, b"v")
    for bad in (b"", b"a b", b"1a", b"a,b", b"%a", b"-a"):
        with refused("BAD_ARGUMENT"):
            api("xlac_op_rename", m, total, bad)
    api("xlac_op_rename", m, total, b"grand.total")
    assert "%grand.total = " in api.text("xlac_module_print", m)


def test_move(api, ffi, lib, refused):
    m = api.parse(TEXT.replace("is_scheduled=true, ", ""))
    entry = lib.xlac_module_entry(m)
    api("xlac_op_move", m, api.op(m, "seven"), api.op(m, "x"))
    assert lib.xlac_op_next(m, entry, ffi.NULL) == api.op(m, "seven")
    api("xlac_op_move", m, api.op(m, "seven"), ffi.NULL)
    api("xlac_op_move", m, api.op(m, "seven"), api.op(m, "seven"))
    with refused("EDIT"):
        api("xlac_op_move", m, api.op(m, "x"), api.op(m, "v"))
    api("xlac_module_verify", m, ffi.NULL)
