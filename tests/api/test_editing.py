"""Making and editing modules, errors included."""
import pytest

PROGRAM = """HloModule demo

inc {
  p = f32[] parameter(0)
  one = f32[] constant(1)
  ROOT s = f32[] add(p, one)
}

ENTRY main {
  x = f32[] parameter(0)
  c = f32[] call(x), to_apply=inc
  n = f32[] negate(c)
  ROOT r = f32[] multiply(n, x)
}
"""
EDIT, DUPLICATE, ATTRIBUTE, BAD = 800, 103, 104, 503


@pytest.fixture
def m(x):
    m = x.parse(PROGRAM)
    yield m
    x.lib.xlac_module_destroy(m)


def spec(x, opcode, operands=(), attrs=(), type=None, name=None):
    """An xlac_op_spec and what must stay alive with it."""
    ffi = x.ffi
    chars = [ffi.new("char[]", s.encode()) for s in (opcode, type or "", name or "", *sum(attrs, ()))]
    ops = ffi.new("xlac_op *[]", list(operands) or 1)
    pairs = ffi.new("xlac_attr[]", max(len(attrs), 1))
    for i in range(len(attrs)):
        pairs[i].key, pairs[i].text = chars[3 + 2 * i], chars[4 + 2 * i]
    out = ffi.new("xlac_op_spec *", {"opcode": chars[0], "type": chars[1] if type else ffi.NULL,
                                     "name": chars[2] if name else ffi.NULL, "n_operands": len(operands),
                                     "n_attrs": len(attrs), "operands": ops, "attrs": pairs})
    return out, (chars, ops, pairs)


def create(x, m, c, *args, **kwargs):
    out = x.ffi.new("xlac_op **")
    made, keep = spec(x, *args, **kwargs)
    status = x.lib.xlac_op_create(out, m, c, made, x.err)
    return status, out[0], keep


def test_build_from_nothing_and_run(x):
    out, c, p, root = (x.ffi.new(f"{t} **") for t in ("xlac_module", "xlac_computation", "xlac_op", "xlac_op"))
    x.check(x.lib.xlac_module_create(out, b"built", x.err))
    m = out[0]
    assert x.lib.xlac_module_entry(m) == x.ffi.NULL
    x.fails(x.lib.xlac_module_verify(m, x.ffi.NULL, x.err), 207)
    x.check(x.lib.xlac_computation_create(c, m, b"main", x.err))
    assert x.lib.xlac_module_entry(m) == c[0] and x.lib.xlac_computation_root(m, c[0]) == x.ffi.NULL
    x.fails(x.lib.xlac_module_print(m, x.ffi.NULL, x.ffi.new("char **"), x.ffi.NULL, x.err), 207)
    x.check(x.lib.xlac_op_create_parameter(p, m, c[0], 0, b"f32[2]", b"x", x.err))
    two = x.array("f32", [2], x.ffi.new("float[]", [2, 3]))
    constant = x.ffi.new("xlac_op **")
    x.check(x.lib.xlac_op_create_constant(constant, m, c[0], two, x.ffi.NULL, x.err))
    status, product, _ = create(x, m, c[0], "multiply", [p[0], constant[0]])
    x.check(status)
    x.check(x.lib.xlac_computation_set_root(m, c[0], product, x.err))
    x.check(x.lib.xlac_module_verify(m, x.ffi.NULL, x.err))
    result, argument = x.ffi.new("xlac_value **"), x.array("f32", [2], x.ffi.new("float[]", [10, 20]))
    x.check(x.lib.xlac_interpret(m, x.ffi.NULL, 1, x.ffi.new("xlac_value *[]", [argument]), result, x.err))
    assert x.floats(result[0]) == [20, 60]
    for value in (two, argument, result[0]):
        x.lib.xlac_value_release(value)
    x.fails(x.lib.xlac_op_create_parameter(p, m, c[0], 0, b"f32[2]", b"y", x.err), DUPLICATE)
    x.fails(x.lib.xlac_op_create_parameter(p, m, c[0], -1, b"f32[2]", b"y", x.err), BAD)
    x.fails(x.lib.xlac_op_create_parameter(p, m, c[0], 1, b"f31[2]", b"y", x.err), 106)
    x.lib.xlac_module_destroy(m)


def test_tokens_are_no_constants(x, m):
    token, out = x.ffi.new("xlac_value **"), x.ffi.new("xlac_op **")
    x.check(x.lib.xlac_value_token(token, x.err))
    entry = x.lib.xlac_module_entry(m)
    x.fails(x.lib.xlac_op_create_constant(out, m, entry, token[0], x.ffi.NULL, x.err), BAD)
    x.lib.xlac_value_release(token[0])


def test_create_refuses_what_does_not_fit(x, m):
    entry, c = x.lib.xlac_module_entry(m), x.op(m, "c")
    count = x.lib.xlac_computation_op_count(m, entry)
    x.fails(create(x, m, entry, "nope", [c])[0], 101)
    x.fails(create(x, m, entry, "add", [c])[0], 202)
    x.fails(create(x, m, entry, "constant")[0], BAD)
    x.fails(create(x, m, entry, "negate", [x.op(m, "p")])[0], EDIT)
    x.fails(create(x, m, entry, "negate", [c], name="1x")[0], BAD)
    x.fails(create(x, m, entry, "broadcast", [c], [("dimensions", "{0")], "f32[2]")[0], 100)
    x.fails(create(x, m, entry, "call", [c])[0], ATTRIBUTE)
    x.fails(create(x, m, entry, "reshape", [c])[0], 109)
    assert x.lib.xlac_computation_op_count(m, entry) == count


def test_called_computations_are_attributes(x, m):
    status, op, _ = create(x, m, x.lib.xlac_module_entry(m), "call", [x.op(m, "x")], [("to_apply", "%inc")], name="again")
    x.check(status)
    assert x.lib.xlac_op_called(m, op, 0) == x.lib.xlac_computation_find(m, b"inc")
    assert x.take(x.lib.xlac_type_print(x.info(m, op).type, False)) == "f32[]"


def test_attributes(x, m):
    n, out = x.op(m, "n"), x.ffi.new("char **")
    x.check(x.lib.xlac_op_set_attr(m, n, b"sharding", b"{replicated}", x.err))
    x.check(x.lib.xlac_op_attr(m, n, b"sharding", out, x.err))
    assert x.take(out[0]) == "{replicated}"
    x.check(x.lib.xlac_op_set_attr(m, n, b"sharding", x.ffi.NULL, x.err))
    x.fails(x.lib.xlac_op_set_attr(m, n, b"sharding", x.ffi.NULL, x.err), ATTRIBUTE)
    assert x.lib.xlac_op_set_attr(m, n, b"dimensions", b"{0}", x.err) < 0
    assert x.lib.xlac_op_set_attr(m, n, b"sharding", b"{devices=[2", x.err) < 0
    x.check(x.lib.xlac_op_set_attr(m, n, b"control-predecessors", b"{%x}", x.err))
    assert x.info(m, n).n_control_predecessors == 1
    x.check(x.lib.xlac_op_set_attr(m, n, b"control-predecessors", x.ffi.NULL, x.err))
    assert x.info(m, n).n_control_predecessors == 0


def test_operands_uses_and_removal(x, m):
    n, c, r, arg = (x.op(m, name) for name in ("n", "c", "r", "x"))
    x.fails(x.lib.xlac_op_remove(m, n, x.err), EDIT)
    x.fails(x.lib.xlac_op_remove(m, r, x.err), EDIT)
    x.fails(x.lib.xlac_op_set_operand(m, r, 2, c, x.err), BAD)
    x.fails(x.lib.xlac_op_set_operand(m, r, 0, x.op(m, "p"), x.err), EDIT)
    x.check(x.lib.xlac_op_set_operand(m, r, 1, c, x.err))
    assert x.lib.xlac_op_operand(m, r, 1) == c
    x.check(x.lib.xlac_op_replace_uses(m, n, arg, x.err))
    assert x.lib.xlac_op_operand(m, r, 0) == arg and x.lib.xlac_op_users(m, n, x.ffi.NULL, 0) == 0
    x.fails(x.lib.xlac_op_replace_uses(m, n, x.op(m, "p"), x.err), EDIT)
    x.check(x.lib.xlac_op_remove(m, n, x.err))
    assert not x.lib.xlac_op_is_live(m, n) and x.info(m, n).computation == x.ffi.NULL
    x.fails(x.lib.xlac_op_remove(m, n, x.err), EDIT)
    x.fails(x.lib.xlac_op_rename(m, n, b"back", x.err), EDIT)
    x.fails(x.lib.xlac_op_set_operand(m, r, 0, n, x.err), EDIT)
    x.check(x.lib.xlac_module_verify(m, x.ffi.NULL, x.err))


def test_replacing_needs_the_same_type(x, m):
    entry = x.lib.xlac_module_entry(m)
    status, wide, _ = create(x, m, entry, "broadcast", [x.op(m, "x")], [("dimensions", "{}")], "f32[4]")
    x.check(status)
    assert "f32[4]" in x.fails(x.lib.xlac_op_replace_uses(m, x.op(m, "n"), wide, x.err), EDIT)


def test_names_types_and_order(x, m):
    entry, n, c = x.lib.xlac_module_entry(m), x.op(m, "n"), x.op(m, "c")
    x.check(x.lib.xlac_op_rename(m, n, b"minus", x.err))
    assert x.op(m, "minus") == n
    x.fails(x.lib.xlac_op_rename(m, n, b"c", x.err), DUPLICATE)
    x.fails(x.lib.xlac_op_rename(m, n, b"a b", x.err), BAD)
    x.check(x.lib.xlac_op_set_type(m, n, b"f32[7]", x.err))
    assert x.take(x.lib.xlac_type_print(x.info(m, n).type, False)) == "f32[7]"
    x.check(x.lib.xlac_op_set_type(m, n, x.ffi.NULL, x.err))
    assert x.take(x.lib.xlac_type_print(x.info(m, n).type, False)) == "f32[]"
    x.fails(x.lib.xlac_op_set_type(m, x.op(m, "one"), b"f32[7]", x.err), EDIT)
    x.check(x.lib.xlac_op_move(m, n, c, x.err))
    assert x.lib.xlac_op_next(m, entry, n) == c
    x.check(x.lib.xlac_op_move(m, n, x.ffi.NULL, x.err))
    assert x.lib.xlac_op_next(m, entry, n) == x.ffi.NULL
    x.fails(x.lib.xlac_op_move(m, n, x.op(m, "p"), x.err), EDIT)


def test_computations(x, m):
    entry, inc = x.lib.xlac_module_entry(m), x.lib.xlac_computation_find(m, b"inc")
    x.fails(x.lib.xlac_computation_remove(m, entry, x.err), EDIT)
    x.fails(x.lib.xlac_computation_remove(m, inc, x.err), EDIT)
    x.check(x.lib.xlac_computation_rename(m, inc, b"plus", x.err))
    x.fails(x.lib.xlac_computation_rename(m, inc, b"main", x.err), DUPLICATE)
    out = x.ffi.new("xlac_computation **")
    x.check(x.lib.xlac_computation_create(out, m, b"plus", x.err))
    assert x.text(x.lib.xlac_computation_name(m, out[0])) != "plus"
    x.check(x.lib.xlac_computation_remove(m, out[0], x.err))
    assert not x.lib.xlac_computation_is_live(m, out[0])
    x.fails(create(x, m, out[0], "after-all")[0], EDIT)
    x.fails(x.lib.xlac_module_set_entry(m, out[0], x.err), EDIT)
    x.fails(x.lib.xlac_computation_set_root(m, entry, x.op(m, "p"), x.err), EDIT)
    x.check(x.lib.xlac_computation_set_root(m, entry, x.op(m, "n"), x.err))
    x.check(x.lib.xlac_module_set_entry(m, inc, x.err))
    assert x.lib.xlac_module_entry(m) == inc


def test_import(x, m):
    other, out = x.parse(PROGRAM.replace("constant(1)", "constant(5)")), x.ffi.new("xlac_computation **")
    x.check(x.lib.xlac_computation_import(out, m, other, x.lib.xlac_module_entry(other), x.err))
    x.lib.xlac_module_destroy(other)
    assert x.lib.xlac_computation_op_count(m, out[0]) == 4
    stats = x.ffi.new("xlac_stats *")
    x.lib.xlac_module_stats(m, stats)
    assert stats.n_computations == 4
    x.check(x.lib.xlac_computation_import(out, m, m, x.lib.xlac_computation_find(m, b"inc"), x.err))
    x.check(x.lib.xlac_module_verify(m, x.ffi.NULL, x.err))
    text = x.print_module(m)
    again = x.parse(text)
    assert x.print_module(again) == text
    x.lib.xlac_module_destroy(again)


def test_aliases(x):
    m = x.parse("HloModule m\nENTRY e {\n x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n"
                " ROOT t = (f32[4], f32[4]) tuple(x, y)\n}\n")
    got, paths = x.ffi.new("xlac_alias *"), []

    def alias(output, parameter, must=False):
        paths.append(x.ffi.new("int64_t[]", output or [0]))  # the struct does not keep what it points to
        return x.ffi.new("xlac_alias *", {"n_output": len(output), "output": paths[-1], "parameter": parameter, "must": must})

    x.check(x.lib.xlac_module_set_alias(m, alias([1], 0), x.err))
    x.check(x.lib.xlac_module_set_alias(m, alias([0], 1, True), x.err))
    assert x.lib.xlac_module_alias(m, 0, got) and (got.output[0], got.parameter, got.must) == (0, 1, True)
    x.check(x.lib.xlac_module_verify(m, x.ffi.NULL, x.err))
    assert "{0}: (1, {}, must-alias), {1}: (0, {}, may-alias)" in x.print_module(m)
    x.check(x.lib.xlac_module_set_alias(m, alias([1], 9), x.err))
    x.fails(x.lib.xlac_module_verify(m, x.ffi.NULL, x.err), 206)
    x.check(x.lib.xlac_module_clear_aliases(m, x.err))
    assert not x.lib.xlac_module_alias(m, 0, got)
    for _ in range(2):
        x.check(x.lib.xlac_module_add_donor(m, alias([], 1), x.err))
    assert x.lib.xlac_module_donor(m, 0, got) and not x.lib.xlac_module_donor(m, 1, got)
    x.lib.xlac_module_destroy(m)
