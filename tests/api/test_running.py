"""Values, the interpreter, custom calls, passes, threads."""
import ctypes
import threading

import pytest

LOOP = """HloModule loop
body { s = s64[] parameter(0)
  one = s64[] constant(1)
  ROOT a = s64[] add(s, one) }
cond { t = s64[] parameter(0)
  end = s64[] constant(9000000000000)
  ROOT lt = pred[] compare(t, end), direction=LT }
ENTRY e { zero = s64[] constant(0)
  ROOT w = s64[] while(zero), condition=cond, body=body }
"""
ADD = "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] add(x, x)\n}\n"


@pytest.fixture
def add(x):
    m = x.parse(ADD)
    yield m
    x.lib.xlac_module_destroy(m)


def run(x, m, args, options=None):
    out = x.ffi.new("xlac_value **")
    status = x.lib.xlac_interpret(m, options or x.ffi.NULL, len(args), x.ffi.new("xlac_value *[]", args or 1), out, x.err)
    return status, out[0]


def test_values(x):
    info = x.ffi.new("xlac_value_info *")
    data = x.ffi.new("int32_t[]", [1, 2, 3, 4, 5, 6])
    v = x.array("s32", [2, 3], data)
    data[0] = 99  # a copy does not mind
    x.lib.xlac_value_get(v, info)
    assert (info.kind, info.rank, info.count, info.bytes) == (x.lib.XLAC_VALUE_ARRAY, 2, 6, 24)
    assert list(info.dims[0:2]) == [2, 3] and list(x.ffi.cast("int32_t *", info.data)[0:6]) == [1, 2, 3, 4, 5, 6]
    zeros = x.array("f32", [3], x.ffi.NULL)
    assert x.floats(zeros) == [0, 0, 0]
    out, token = x.ffi.new("xlac_value **"), x.ffi.new("xlac_value **")
    x.check(x.lib.xlac_value_token(token, x.err))
    x.check(x.lib.xlac_value_tuple(out, 3, x.ffi.new("xlac_value *[]", [v, zeros, token[0]]), x.err))
    for value in (v, zeros, token[0]):
        x.lib.xlac_value_release(value)  # the tuple holds its own
    x.lib.xlac_value_get(out[0], info)
    assert (info.kind, info.n_elements) == (x.lib.XLAC_VALUE_TUPLE, 3)
    assert x.lib.xlac_value_element(out[0], 0) == v and x.lib.xlac_value_element(out[0], 3) == x.ffi.NULL
    assert x.lib.xlac_value_element(v, 0) == x.ffi.NULL
    x.lib.xlac_value_retain(out[0])
    x.lib.xlac_value_release(out[0])
    x.lib.xlac_value_release(out[0])
    x.lib.xlac_value_release(x.ffi.NULL)


def test_values_that_can_not_be(x):
    out, f32 = x.ffi.new("xlac_value **"), x.lib.xlac_dtype_from_text(b"f32")
    dims = lambda *d: x.ffi.new("int64_t[]", d)  # noqa: E731
    x.fails(x.lib.xlac_value_copy(out, 0, 1, dims(2), x.ffi.NULL, x.err), 503)
    x.fails(x.lib.xlac_value_copy(out, f32, 1, dims(-2), x.ffi.NULL, x.err), 503)
    x.fails(x.lib.xlac_value_copy(out, f32, 3, dims(1 << 40, 1 << 40, 8), x.ffi.NULL, x.err), 601)
    x.fails(x.lib.xlac_value_copy(out, f32, 1000, x.ffi.new("int64_t[1000]"), x.ffi.NULL, x.err), 601)
    x.fails(x.lib.xlac_value_lend(out, f32, 1, dims(2), x.ffi.NULL, x.ffi.NULL, x.ffi.NULL, x.err), 503)


def test_lent_memory_is_used_in_place_and_given_back(x, api):
    ffi, lib = api
    released = []

    @ffi.def_extern(name="on_release")
    def on_release(ctx):
        released.append(ffi.from_handle(ctx))

    data, handle, out, info = ffi.new("float[]", [1, 2]), ffi.new_handle("mine"), ffi.new("xlac_value **"), ffi.new(
        "xlac_value_info *")
    x.check(lib.xlac_value_lend(out, lib.xlac_dtype_from_text(b"f32"), 1, ffi.new("int64_t[]", [2]), data, lib.on_release,
                                handle, x.err))
    lib.xlac_value_get(out[0], info)
    assert info.data == ffi.cast("void *", data)
    m = x.parse(ADD)
    status, result = run(x, m, [out[0]])
    x.check(status)
    assert x.floats(result) == [2, 4] and not released
    lib.xlac_value_release(out[0])
    assert released == ["mine"]
    lib.xlac_value_release(result)
    lib.xlac_module_destroy(m)


def test_wrong_arguments_are_named(x, add):
    right, wide, narrow = (x.array(t, d, x.ffi.NULL) for t, d in (("f32", [2]), ("f64", [2]), ("f32", [3])))
    assert "expected 1 argument (x), found 0" in x.fails(run(x, add, [])[0], 500)
    assert "argument 0 (x) must be f32[2], found f64[2]" in x.fails(run(x, add, [wide])[0], 501)
    assert "argument 0 (x) must be f32[2], found f32[3]" in x.fails(run(x, add, [narrow])[0], 502)
    assert x.text(x.err.op) == "x" and x.err.line == 3
    for v in (right, wide, narrow):
        x.lib.xlac_value_release(v)


def test_interrupt(x, api):
    ffi, lib = api
    polls = []

    @ffi.def_extern(name="on_interrupted")
    def on_interrupted(ctx):
        polls.append(ctx)
        return True

    m = x.parse(LOOP)
    x.fails(run(x, m, [], x.options("xlac_interpret_options", {"interrupted": lib.on_interrupted}))[0], 402)
    assert len(polls) == 1
    lib.xlac_module_destroy(m)


CALL = """HloModule m
ENTRY e {
  x = f32[3] parameter(0)
  ROOT y = f32[3] custom-call(x), custom_call_target="triple"
}
"""


def test_custom_calls(x, api):
    ffi, lib = api
    outcome = []

    @ffi.def_extern(name="on_custom_call", error=-1)
    def on_custom_call(ctx, op, n_operands, operands, n_results, results, err):
        if outcome:
            ffi.buffer(err.message)[0:3] = b"no\0"
            return -1
        info = ffi.new("xlac_value_info *")
        lib.xlac_value_get(operands[0], info)
        source, target = ffi.cast("float *", info.data), ffi.cast("float *", results[0])
        for i in range(info.count):
            target[i] = 3 * source[i]
        return 0

    registry, m = ffi.new("xlac_registry **"), x.parse(CALL)
    arg = x.array("f32", [3], ffi.new("float[]", [1, 2, 3]))
    x.fails(run(x, m, [arg])[0], 401)
    x.check(lib.xlac_registry_create(registry, x.err))
    for _ in range(2):  # the second replaces the first
        x.check(lib.xlac_registry_add(registry[0], b"triple", lib.on_custom_call, ffi.NULL, x.err))
    options = x.options("xlac_interpret_options", {"registry": registry[0]})
    status, result = run(x, m, [arg], options)
    x.check(status)
    assert x.floats(result) == [3, 6, 9]
    outcome.append("fail")
    assert "no" in x.fails(run(x, m, [arg], options)[0], 400)
    lib.xlac_value_release(result)
    lib.xlac_value_release(arg)
    lib.xlac_registry_destroy(registry[0])
    lib.xlac_registry_destroy(ffi.NULL)
    lib.xlac_module_destroy(m)


def test_passes(x, api, add):
    ffi, lib = api
    seen = []

    @ffi.def_extern(name="on_pass")
    def on_pass(ctx, name, module):
        seen.append((ffi.string(name).decode(), x.print_module(module)))
        return len(seen) > 2

    options = x.options("xlac_pipeline_options", {"after": lib.on_pass, "verify_each": True})
    x.check(lib.xlac_module_run(add, b"cse,dce", options, x.err))
    assert [name for name, _ in seen] == ["cse", "dce"] and "add" in seen[1][1]
    x.fails(lib.xlac_module_run(add, b"dce", options, x.err), 402)
    x.fails(lib.xlac_module_run(add, b"dce,nope", ffi.NULL, x.err), 700)
    assert x.err.col == 5
    x.fails(lib.xlac_module_run(add, b"dce{a=1}", ffi.NULL, x.err), 700)
    x.check(lib.xlac_module_run(add, b"builtin.module(dce)", ffi.NULL, x.err))


def test_editing_a_running_module_fails_and_reading_does_not(x, api):
    ffi, lib = api
    running, stop, statuses = threading.Event(), threading.Event(), []

    @ffi.def_extern(name="on_interrupted")
    def on_interrupted(ctx):
        running.set()
        return stop.is_set()

    m = x.parse(LOOP)
    options = x.options("xlac_interpret_options", {"interrupted": lib.on_interrupted})
    out, err = ffi.new("xlac_value **"), ffi.new("xlac_error *")
    thread = threading.Thread(target=lambda: statuses.append(
        lib.xlac_interpret(m, options, 0, ffi.new("xlac_value *[1]"), out, err)))
    thread.start()
    assert running.wait(20)
    x.fails(lib.xlac_module_set_name(m, b"other", x.err), 800)
    x.fails(lib.xlac_op_remove(m, x.op(m, "w"), x.err), 800)
    assert "while" in x.print_module(m)
    stop.set()
    thread.join()
    assert statuses == [-402]
    x.check(lib.xlac_module_set_name(m, b"other", x.err))
    lib.xlac_module_destroy(m)


def test_native_custom_calls(api, x):
    """xlac_ffi.h by hand: a target of version 1, and targets that are none."""
    ffi, lib = api
    seen = []

    class Target(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_uint32), ("version", ctypes.c_uint32), ("run", ctypes.c_void_p), ("user", ctypes.c_void_p),
                    ("shape_hook", ctypes.c_void_p), ("sharding_hook", ctypes.c_void_p)]

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_uint32))
    def fill(frame):
        seen.append(frame[1])
        return len(seen) - 1

    def add(**fields):
        target = Target(**{"struct_size": ctypes.sizeof(Target), "version": 1, "run": ctypes.cast(fill, ctypes.c_void_p).value, **fields})
        return lib.xlac_registry_add_native(registry[0], b"triple", ffi.cast("struct xlac_ffi_target *", ctypes.addressof(target)), x.err)

    registry, m = ffi.new("xlac_registry **"), x.parse(CALL)
    x.check(lib.xlac_registry_create(registry, x.err))
    for wrong in ({"struct_size": 4}, {"version": 0}, {"run": None}):
        x.fails(add(**wrong), 503)
    x.fails(lib.xlac_registry_add_native(registry[0], b"triple", ffi.NULL, x.err), 503)
    x.check(add())
    arg = x.array("f32", [3], ffi.new("float[]", [1, 2, 3]))
    options = x.options("xlac_interpret_options", {"registry": registry[0]})
    status, result = run(x, m, [arg], options)
    x.check(status)
    assert x.floats(result) == [0, 0, 0] and seen == [1]
    assert "no reason" in x.fails(run(x, m, [arg], options)[0], 400)
    for v in (result, arg):
        lib.xlac_value_release(v)
    lib.xlac_registry_destroy(registry[0])
    lib.xlac_module_destroy(m)


def test_orders_of_async_computations(x):
    m = x.parse("HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  st = ((f32[2]), f32[2]) negate-start(x)\n"
                "  u = ((f32[2]), f32[2]) negate-update(st)\n  ROOT d = f32[2] negate-done(u)\n}\n")
    arg = x.array("f32", [2], x.ffi.new("float[]", [1, 2]))
    for order in (x.lib.XLAC_ASYNC_EAGER, x.lib.XLAC_ASYNC_LAZY, x.lib.XLAC_ASYNC_SHUFFLED):
        for seed in range(4):
            status, out = run(x, m, [arg], x.options("xlac_interpret_options", {"async_order": order, "async_seed": seed}))
            x.check(status)
            assert x.floats(out) == [-1, -2]
            x.lib.xlac_value_release(out)
    x.fails(run(x, m, [arg], x.options("xlac_interpret_options", {"async_order": 3}))[0], 503)
    x.lib.xlac_value_release(arg)
    x.lib.xlac_module_destroy(m)
