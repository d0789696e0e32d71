"""Values, interpretation, custom calls and passes through the public C API."""
import numpy as np
import pytest

ADD = "HloModule m\nENTRY e { x = f32[2,3] parameter(0)\n y = f32[2,3] parameter(1)\n ROOT r = f32[2,3] add(x, y) }"
SLOW = """HloModule m
cond { s = (s32[], f32[512,512]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 n = s32[] constant(1000000)
 ROOT lt = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[512,512]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 one = s32[] constant(1)
 j = s32[] add(i, one)
 a = f32[512,512] get-tuple-element(s), index=1
 b = f32[512,512] cosine(a)
 ROOT t = (s32[], f32[512,512]) tuple(j, b) }
ENTRY e { z = s32[] constant(0)
 x = f32[512,512] parameter(0)
 t = (s32[], f32[512,512]) tuple(z, x)
 ROOT w = (s32[], f32[512,512]) while(t), condition=cond, body=body }"""


@pytest.fixture
def array(api, ffi, lib):
    """A NumPy copy of an array value."""
    def array(value):
        i = api.info("xlac_value_info", "xlac_value_get", value)
        assert i.kind == lib.XLAC_VALUE_ARRAY
        dtype = {b"f32": np.float32, b"s32": np.int32, b"pred": np.bool_}[ffi.string(lib.xlac_dtype_text(i.dtype))]
        flat = np.frombuffer(ffi.buffer(i.data, i.bytes), dtype) if i.bytes else np.zeros(0, dtype)
        assert flat.size == i.count
        return flat.reshape([i.dims[d] for d in range(i.rank)]).copy()
    return array


@pytest.fixture
def run(api, ffi):
    def run(m, *args, options=None):
        values = ffi.new("xlac_value *[]", list(args) or [ffi.NULL])
        out = ffi.new("xlac_value **")
        api("xlac_interpret", m, options or ffi.NULL, len(args), values, out)
        return api.own(out[0])
    return run


def test_values(api, ffi, lib, array):
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    v = api.value(a)
    np.testing.assert_array_equal(array(v), a)
    assert int(ffi.cast("intptr_t", api.info("xlac_value_info", "xlac_value_get", v).data)) % 64 == 0
    zeros = api.own(api.make("xlac_value", "xlac_value_copy", lib.xlac_dtype_from_text(b"s32"), 1, ffi.new("int64_t[]", [4]),
                             ffi.NULL))
    np.testing.assert_array_equal(array(zeros), np.zeros(4, np.int32))
    pair = api.own(api.make("xlac_value", "xlac_value_tuple", 2, ffi.new("xlac_value *[]", [v, zeros])))
    i = api.info("xlac_value_info", "xlac_value_get", pair)
    assert i.kind == lib.XLAC_VALUE_TUPLE and i.n_elements == 2
    np.testing.assert_array_equal(array(lib.xlac_value_element(pair, 1)), np.zeros(4))
    assert lib.xlac_value_element(pair, 2) == ffi.NULL == lib.xlac_value_element(v, 0)
    token = api.own(api.make("xlac_value", "xlac_value_token"))
    assert api.info("xlac_value_info", "xlac_value_get", token).kind == lib.XLAC_VALUE_TOKEN
    lib.xlac_value_retain(v)
    lib.xlac_value_release(v)
    lib.xlac_value_release(ffi.NULL)
    np.testing.assert_array_equal(array(v), a)


def test_lent_memory_is_given_back(api, ffi, lib, binding, array):
    released = []

    @ffi.def_extern(name="py_release")
    def py_release(ctx):
        released.append(ffi.from_handle(ctx))

    a = np.arange(4, dtype=np.int32)
    handle = ffi.new_handle("the lender")
    out = api.make("xlac_value", "xlac_value_lend", lib.xlac_dtype_from_text(b"s32"), 1, ffi.new("int64_t[]", [4]),
                   ffi.from_buffer(a), lib.py_release, handle)
    a[0] = 9
    assert array(out)[0] == 9  # no copy
    lib.xlac_value_retain(out)
    lib.xlac_value_release(out)
    assert not released
    lib.xlac_value_release(out)
    assert released == ["the lender"]


def test_bad_values(api, ffi, lib, refused):
    f32 = lib.xlac_dtype_from_text(b"f32")
    for code, args in [("BAD_ARGUMENT", (0, 0, ffi.NULL)), ("BAD_ARGUMENT", (999, 0, ffi.NULL)), ("TOO_LARGE", (f32, 65, [1] * 65)),
                       ("BAD_ARGUMENT", (f32, 1, [-1])), ("TOO_LARGE", (f32, 2, [1 << 40, 1 << 40]))]:
        dims = ffi.new("int64_t[]", args[2]) if args[2] != ffi.NULL else ffi.NULL
        with refused(code):
            api.make("xlac_value", "xlac_value_copy", args[0], args[1], dims, ffi.NULL)
        with refused(code):
            api.make("xlac_value", "xlac_value_lend", args[0], args[1], dims, ffi.NULL, ffi.NULL, ffi.NULL)
    with refused("BAD_ARGUMENT"):
        api.make("xlac_value", "xlac_value_lend", f32, 1, ffi.new("int64_t[]", [2]), ffi.NULL, ffi.NULL, ffi.NULL)
    big = api.own(api.make("xlac_value", "xlac_value_copy", f32, 1, ffi.new("int64_t[]", [1 << 18]), ffi.NULL))
    assert api.info("xlac_value_info", "xlac_value_get", big).bytes == 1 << 20
    with refused("OUT_OF_MEMORY"):
        api.make("xlac_value", "xlac_value_copy", f32, 1, ffi.new("int64_t[]", [1 << 58]), ffi.NULL)


def test_interpret(api, run, array):
    m = api.parse(ADD)
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(array(run(m, api.value(a), api.value(b))), a + b)


def test_results_are_apart(api, ffi, lib, run, array):
    """A program that gives back its argument twice gives two arrays of their own."""
    m = api.parse("HloModule m\nENTRY e { x = f32[3] parameter(0)\n ROOT t = (f32[3], f32[3]) tuple(x, x) }")
    x = api.value(np.ones(3, np.float32))
    out = run(m, x)
    data = {api.info("xlac_value_info", "xlac_value_get", v).data
            for v in (x, lib.xlac_value_element(out, 0), lib.xlac_value_element(out, 1))}
    assert len(data) == 3


def test_results_outlive_the_module(api, ffi, lib, array):
    m = api.parse("HloModule m\nENTRY e { ROOT c = s32[3] constant({1,2,3}) }")
    out = ffi.new("xlac_value **")
    api("xlac_interpret", m, ffi.NULL, 0, ffi.NULL, out)
    free, handle = api.freed.pop()
    free(handle)
    np.testing.assert_array_equal(array(out[0]), [1, 2, 3])
    lib.xlac_value_release(out[0])


def test_wrong_arguments_are_named(api, ffi, run, refused):
    m = api.parse(ADD)
    good = api.value(np.ones((2, 3), np.float32))
    with refused("ARGUMENT_COUNT"):
        run(m, good)
    with refused("ARGUMENT_COUNT"):
        run(m, good, good, good)
    with refused("ARGUMENT_SHAPE") as caught:
        run(m, good, api.value(np.ones((3, 2), np.float32)))
    assert caught.value.op == "y" and "f32[2,3]" in caught.value.message and "[3,2]" in caught.value.message
    with refused("ARGUMENT_TYPE") as caught:
        run(m, api.value(np.ones((2, 3), np.int32)), good)
    assert caught.value.op == "x"


def test_invalid_modules_do_not_run(api, ffi, run):
    m = api.parse("HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT r = f32[3] add(x, x) }")
    with pytest.raises(Exception) as caught:
        run(m, api.value(np.ones(2, np.float32)))
    assert caught.value.op == "r"


def test_interruption_and_no_edits_while_running(api, ffi, lib, run, refused):
    m = api.parse(SLOW)
    asked, edits = [], []

    @ffi.def_extern(name="py_interrupted")
    def py_interrupted(ctx):
        asked.append(ctx)
        error = ffi.new("xlac_error *")
        edits.append(lib.xlac_module_set_name(m, b"other", error) and error.code)
        return len(asked) == 3

    options = ffi.new("xlac_interpret_options *", {"interrupted": lib.py_interrupted})
    with refused("INTERRUPTED"):
        run(m, api.value(np.ones((512, 512), np.float32)), options=options)
    assert len(asked) == 3 and edits == [800] * 3
    api("xlac_module_set_name", m, b"other")


def test_rng_seed(api, ffi, run, array):
    m = api.parse("HloModule m\nENTRY e { a = f32[] constant(0)\n b = f32[] constant(1)\n"
                  " ROOT r = f32[4] rng(a, b), distribution=rng_uniform }")
    def draw(seed):
        return array(run(m, options=ffi.new("xlac_interpret_options *", {"seed": seed}))).tolist()

    assert draw(1) == draw(1) != draw(2)


def test_replica_and_partition(api, ffi, lib, run):
    m = api.parse("HloModule m\nENTRY e { r = u32[] replica-id()\n p = u32[] partition-id()\n"
                  " ROOT t = (u32[], u32[]) tuple(r, p) }")
    out = run(m, options=ffi.new("xlac_interpret_options *", {"replica": 3, "partition": 1}))
    found = [api.info("xlac_value_info", "xlac_value_get", lib.xlac_value_element(out, i)).data for i in (0, 1)]
    assert [ffi.cast("uint32_t *", data)[0] for data in found] == [3, 1]


# --- custom calls ---

CALL = """HloModule m
ENTRY e { x = f32[3] parameter(0)
 ROOT r = (f32[3], f32[]) custom-call(x), custom_call_target="halve_and_sum" }"""


@pytest.fixture
def registry(api, lib):
    r = api.make("xlac_registry", "xlac_registry_create")
    yield r
    lib.xlac_registry_destroy(r)


def test_custom_call(api, ffi, lib, run, array, registry, refused):
    m = api.parse(CALL)
    x = api.value(np.array([2, 4, 6], np.float32))
    with refused("UNKNOWN_CUSTOM_CALL") as caught:
        run(m, x)
    assert "halve_and_sum" in caught.value.message

    @ffi.def_extern(name="py_custom_call")
    def py_custom_call(ctx, op, n_operands, operands, n_results, results, err):
        info = ffi.new("xlac_value_info *")
        lib.xlac_value_get(operands[0], info)
        data = np.frombuffer(ffi.buffer(info.data, info.bytes), np.float32)
        assert (n_operands, n_results) == (1, 2)
        if data[0] < 0:
            err.message = b"negative input"
            return -1
        np.frombuffer(ffi.buffer(results[0], 12), np.float32)[:] = data / 2
        ffi.cast("float *", results[1])[0] = data.sum()
        return 0

    api("xlac_registry_add", registry, b"halve_and_sum", lib.py_custom_call, ffi.NULL)
    api("xlac_registry_add", registry, b"halve_and_sum", lib.py_custom_call, ffi.NULL)
    options = ffi.new("xlac_interpret_options *", {"registry": registry})
    out = run(m, x, options=options)
    np.testing.assert_array_equal(array(lib.xlac_value_element(out, 0)), [1, 2, 3])
    assert array(lib.xlac_value_element(out, 1)) == 12
    with refused("EVAL") as caught:
        run(m, api.value(-np.ones(3, np.float32)), options=options)
    assert caught.value.op == "r" and "negative input" in caught.value.message
    lib.xlac_registry_destroy(ffi.NULL)


# --- passes ---

def test_pipeline(api, ffi, lib, refused):
    m = api.parse("HloModule m\nENTRY e { x = f32[2] parameter(0)\n dead = f32[2] negate(x)\n a = f32[2] abs(x)\n"
                  " b = f32[2] abs(x)\n ROOT r = f32[2] add(a, b) }")
    seen = []

    @ffi.def_extern(name="py_after")
    def py_after(ctx, name, module):
        seen.append((ffi.string(name).decode(), api.info("xlac_stats", "xlac_module_stats", module).n_ops))
        return len(seen) > 2

    options = ffi.new("xlac_pipeline_options *", {"after": lib.py_after, "verify_each": True})
    api("xlac_module_run", m, b"dce,cse", options)
    assert [name for name, _ in seen] == ["dce", "cse"] and seen[0][1] == 4
    assert "negate" not in api.text("xlac_module_print", m)
    with refused("INTERRUPTED"):
        api("xlac_module_run", m, b"dce", options)
    for bad in (b"no-such-pass", b"dce,", b"dce{", b"dce{x=1}", b"builtin.module(dce"):
        with refused("BAD_PIPELINE"):
            api("xlac_module_run", m, bad, ffi.NULL)
    api("xlac_module_run", m, b"", ffi.NULL)
