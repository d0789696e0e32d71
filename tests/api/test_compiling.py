"""Compiled programs through the C interface."""
import json

import pytest

CHAIN = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] add(x, x)
  z = f32[2] exponential(y)
  ROOT r = (f32[2], f32[2]) tuple(z, x)
}
"""


def compiled(x, text, options=None):
    m, out = x.parse(text), x.ffi.new("xlac_executable **")
    x.check(x.lib.xlac_compile(m, options or x.ffi.NULL, out, x.err))
    x.lib.xlac_module_destroy(m)  # the executable has its own
    return out[0]


def test_a_run(x):
    exe = compiled(x, CHAIN, x.options("xlac_compile_options", {"threads": 1}))
    arg, out = x.array("f32", [2], x.ffi.new("float[]", [0, 0.5])), x.ffi.new("xlac_value **")
    x.check(x.lib.xlac_executable_run(exe, x.ffi.NULL, 1, x.ffi.new("xlac_value *[]", [arg]), out, x.err))
    assert x.floats(x.lib.xlac_value_element(out[0], 0)) == [1, 2.7182817459106445]
    assert x.floats(x.lib.xlac_value_element(out[0], 1)) == [0, 0.5]
    x.fails(x.lib.xlac_executable_run(exe, x.ffi.NULL, 0, x.ffi.NULL, out, x.err), 500)
    x.lib.xlac_value_release(arg)
    x.lib.xlac_executable_destroy(exe)
    x.lib.xlac_executable_destroy(x.ffi.NULL)


def test_what_it_says_of_itself(x):
    exe = compiled(x, CHAIN)
    info, name, text = x.ffi.new("xlac_executable_info *"), x.ffi.new("const char **"), x.ffi.new("char **")
    x.lib.xlac_executable_get(exe, info)
    assert (info.n_kernels, info.n_interpreted, info.argument_bytes, info.result_bytes) == (1, 0, 8, 16)
    assert info.interpreted == x.ffi.NULL and all(s >= 0 for s in info.seconds)
    assert x.lib.xlac_executable_param(exe, 0, name) and x.text(name[0]) == "x"
    assert x.lib.xlac_executable_param(exe, 1, name) == x.ffi.NULL
    assert x.text(x.lib.xlac_module_name(x.lib.xlac_executable_module(exe))) == "m"
    x.check(x.lib.xlac_executable_plan(exe, text, x.ffi.NULL, x.err))
    assert "0 kernel exponential z: result 0 f32[2] <- argument 0 f32[2]" in x.text(text[0])
    x.lib.xlac_free(text[0])
    x.lib.xlac_executable_destroy(exe)


def test_a_broken_module_is_refused(x):
    m, out = x.parse(CHAIN.replace("z = f32[2]", "z = f32[3]")), x.ffi.new("xlac_executable **")
    x.fails(x.lib.xlac_compile(m, x.ffi.NULL, out, x.err), 201)
    x.lib.xlac_module_destroy(m)


def test_a_run_on_bare_memory(x):
    runtime = x.ffi.new("xlac_runtime **")
    x.check(x.lib.xlac_runtime_create(runtime, x.err))
    exe = compiled(x, CHAIN, x.options("xlac_compile_options", {"threads": 1, "runtime": runtime[0]}))
    info, argument = x.ffi.new("xlac_executable_info *"), x.ffi.new("float[]", [0, 0.5])
    x.lib.xlac_executable_get(exe, info)
    assert (info.n_arguments, info.n_results) == (1, 2) and 0 < info.work < 1000
    blocks = [x.lib.xlac_runtime_take(runtime[0], 8) for _ in range(2)]
    x.check(x.lib.xlac_executable_call(exe, x.ffi.NULL, x.ffi.new("void *[]", [argument]), x.ffi.new("void *[]", blocks), x.err))
    assert x.ffi.cast("float *", blocks[0])[1] == 2.7182817459106445 and x.ffi.cast("float *", blocks[1])[1] == 0.5
    type_info = x.ffi.new("xlac_type_info *")
    x.lib.xlac_type_get(x.lib.xlac_executable_result(exe), type_info)
    assert type_info.n_elements == 2
    stats = x.ffi.new("xlac_runtime_info *")
    x.lib.xlac_runtime_get(runtime[0], stats)
    assert stats.live == 2 and stats.taken >= 3 and stats.kept == 1 and stats.threads == 0
    x.lib.xlac_runtime_destroy(runtime[0])  # the executable and the blocks keep what they need
    x.check(x.lib.xlac_executable_call(exe, x.ffi.NULL, x.ffi.new("void *[]", [argument]), x.ffi.new("void *[]", blocks), x.err))
    x.lib.xlac_executable_destroy(exe)
    for block in blocks:
        x.lib.xlac_runtime_give(block)
    x.lib.xlac_runtime_give(x.ffi.NULL)
    x.lib.xlac_runtime_destroy(x.ffi.NULL)


def test_memory_is_trimmed_and_limited(x):
    runtime, stats = x.ffi.new("xlac_runtime **"), x.ffi.new("xlac_runtime_info *")
    x.check(x.lib.xlac_runtime_create(runtime, x.err))
    for bytes_ in (0, 1, 64, 65, 1000, 5 << 20, (5 << 20) + 1):
        block = x.lib.xlac_runtime_take(runtime[0], bytes_)
        assert int(x.ffi.cast("uintptr_t", block)) % 64 == 0
        x.ffi.memmove(block, b"x" * bytes_, bytes_)
        x.lib.xlac_runtime_give(block)
    x.lib.xlac_runtime_get(runtime[0], stats)
    assert stats.live == 0 and stats.reused == 2 and stats.kept == 5 and 10 << 20 < stats.kept_bytes < 16 << 20
    assert x.lib.xlac_runtime_trim(runtime[0], 1 << 20) >= 10 << 20
    x.lib.xlac_runtime_limit(runtime[0], 0)
    x.lib.xlac_runtime_give(x.lib.xlac_runtime_take(runtime[0], 100))
    x.lib.xlac_runtime_get(runtime[0], stats)
    assert stats.kept == stats.kept_bytes == 0 and stats.limit_bytes == 0
    assert x.lib.xlac_runtime_take(runtime[0], 1 << 60) == x.ffi.NULL
    x.lib.xlac_runtime_destroy(runtime[0])


def test_as_bytes_and_back(x):
    exe, out, n = compiled(x, CHAIN), x.ffi.new("char **"), x.ffi.new("size_t *")
    x.check(x.lib.xlac_executable_serialize(exe, out, n, x.err))
    again = x.ffi.new("xlac_executable **")
    x.check(x.lib.xlac_executable_load(out[0], n[0], x.ffi.NULL, again, x.err))
    x.fails(x.lib.xlac_executable_load(out[0], n[0] - 1, x.ffi.NULL, again, x.err), 901)
    argument, result = x.ffi.new("float[]", [0, 0.5]), x.ffi.new("float[4]")
    x.check(x.lib.xlac_executable_call(again[0], x.ffi.NULL, x.ffi.new("void *[]", [argument]), x.ffi.new("void *[]", [result, result + 2]), x.err))
    assert result[1] == 2.7182817459106445
    x.lib.xlac_free(out[0])
    x.lib.xlac_executable_destroy(again[0])
    x.lib.xlac_executable_destroy(exe)


def test_reports(x):
    exe, out, n = compiled(x, CHAIN), x.ffi.new("char **"), x.ffi.new("size_t *")
    x.check(x.lib.xlac_executable_report(exe, out, n, x.err))
    report = json.loads(x.text(out[0]))
    x.lib.xlac_free(out[0])
    assert report["programs"][0]["steps"][0]["op"] == "z"
    x.check(x.lib.xlac_executable_fusion(exe, out, n, x.err))
    assert "z" in x.text(out[0])
    x.lib.xlac_free(out[0])
    x.fails(x.lib.xlac_executable_out_of_memory(exe, x.err), 600)
    assert "takes 16 bytes for results" in x.text(x.err.message)
    x.check(x.lib.xlac_executable_kernels(exe, out, n, x.err))
    assert "kernel [" in x.text(out[0])
    x.lib.xlac_free(out[0])
    argument, value = x.array("f32", [2], x.ffi.new("float[]", [0, 0.5])), x.ffi.new("xlac_value **")
    x.check(x.lib.xlac_executable_profile(exe, x.ffi.NULL, 1, x.ffi.new("xlac_value *[]", [argument]), value, out, n, x.err))
    times = json.loads(x.text(out[0]))
    x.lib.xlac_free(out[0])
    assert times["steps"][0][:3] == [0, 0, 1] and times["ns"] >= times["steps"][0][3]
    x.lib.xlac_value_release(value[0])
    x.check(x.lib.xlac_executable_count(exe, x.ffi.NULL, 1, x.ffi.new("xlac_value *[]", [argument]), value, out, n, x.err))
    counts = json.loads(x.text(out[0]))
    x.lib.xlac_free(out[0])
    assert counts["ran"] == times["ran"]
    x.lib.xlac_value_release(value[0])
    x.lib.xlac_value_release(argument)
    name, seconds, found = x.ffi.new("const char **"), x.ffi.new("double *"), []
    while x.lib.xlac_executable_pass(exe, len(found), name, seconds):
        found.append(x.text(name[0]))
    assert "dce" in found and seconds[0] >= 0
    x.lib.xlac_executable_destroy(exe)


def test_an_argument_that_is_given_away(x):
    text = "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  y = f32[3] parameter(1)\n  ROOT r = f32[2] add(x, x)\n}\n"
    donate = x.ffi.new("uint32_t[]", [0, 1])
    options = x.options("xlac_compile_options", {"threads": 1, "n_donate": 2, "donate": donate})
    exe, d = compiled(x, text, options), x.ffi.new("xlac_donation *")
    assert x.lib.xlac_executable_donation(exe, 0, d) and (d.argument, d.result, d.must, d.in_place) == (0, 0, False, True)
    assert x.lib.xlac_executable_donation(exe, 1, d) and (d.argument, d.result, d.in_place) == (1, 2**32 - 1, False)
    assert not x.lib.xlac_executable_donation(exe, 2, d)
    out, n = x.ffi.new("char **"), x.ffi.new("size_t *")
    for index, part in ((0, "result 0 is computed over it"), (1, "no output of that size"), (2**32 - 1, "argument 0, x, f32[2]: result 0")):
        x.check(x.lib.xlac_executable_explain_donation(exe, index, out, n, x.err))
        assert n[0] == len(x.text(out[0])) and part in x.take(out[0])
    x.fails(x.lib.xlac_executable_explain_donation(exe, 2, out, n, x.err), 503)
    x.check(x.lib.xlac_executable_check(exe, x.err))
    given, lent = x.ffi.new("float[]", [1, 2]), x.ffi.new("float[]", [3, 4, 5])
    x.check(x.lib.xlac_executable_call(exe, x.ffi.NULL, x.ffi.new("void *[]", [given, lent]), x.ffi.new("void *[]", [given]), x.err))
    assert list(given) == [2, 4]
    x.lib.xlac_executable_destroy(exe)
    m, out = x.parse(text), x.ffi.new("xlac_executable **")
    donate[1] = 2
    x.fails(x.lib.xlac_compile(m, options, out, x.err), 503)
    x.lib.xlac_module_destroy(m)


def test_arguments_as_they_lie(x):
    text = "HloModule m\nENTRY e {\n  x = f32[3,2] parameter(0)\n  ROOT r = f32[3,2] add(x, x)\n}\n"
    exe, ffi = compiled(x, text), x.ffi
    data, out = ffi.new("float[]", [1, 2, 3, 4, 5, 6]), ffi.new("float[6]")
    arguments, results = ffi.new("xlac_argument[1]"), ffi.new("void *[]", [out])
    for strides, first, want in ([4, 12], 0, [2, 8, 4, 10, 6, 12]), ([-8, -4], 5, [12, 10, 8, 6, 4, 2]), ([0, 4], 0, [2, 4, 2, 4, 2, 4]), \
            ([4, 4], 0, [2, 4, 4, 6, 6, 8]):
        steps = ffi.new("int64_t[]", strides)
        arguments[0] = {"data": data + first, "strides": steps, "given": False}
        x.check(x.lib.xlac_executable_call_at(exe, ffi.NULL, arguments, results, x.err))
        assert list(out) == want
    arguments[0] = {"data": data, "strides": ffi.NULL, "given": True}
    x.check(x.lib.xlac_executable_call_at(exe, ffi.NULL, arguments, results, x.err))
    assert list(out) == [2, 4, 6, 8, 10, 12] and list(data) == [1, 2, 3, 4, 5, 6]
    assert x.lib.xlac_executable_spare(exe, 0) == x.lib.xlac_executable_spare(exe, 9) == 0
    x.lib.xlac_executable_destroy(exe)
    dynamic = compiled(x, "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  n = s32[] constant(4)\n  d = f32[<=4] set-dimension-size(x, n), dimensions={0}\n  ROOT r = f32[<=4] negate(d)\n}")
    x.fails(x.lib.xlac_executable_call_at(dynamic, ffi.NULL, arguments, results, x.err), 503)
    x.lib.xlac_executable_destroy(dynamic)


def test_temporaries_in_what_is_given_away(x):
    less = "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=LT\n}\n"
    text = ("HloModule m, buffer_donor={ (0, {}) }\n" + less + "ENTRY e {\n  x = f32[64] parameter(0)\n  v = f32[64] sort(x), dimensions={0}, to_apply=less\n"
            "  q = f32[64] reverse(v), dimensions={0}\n  w = f32[64] sort(q), dimensions={0}, to_apply=less\n  ROOT r = f32[2] slice(w), slice={[3:5]}\n}\n")
    exe, ffi = compiled(x, text), x.ffi
    assert x.lib.xlac_executable_spare(exe, 0) == 256
    block = ffi.new("char[]", 512)
    at = ffi.cast("float *", (int(ffi.cast("uintptr_t", block)) + 63) // 64 * 64)
    before = [float(i * 37 % 64) for i in range(64)]
    at[0:64] = before
    out = ffi.new("float[2]")
    arguments = ffi.new("xlac_argument[]", [{"data": at, "given": True}])
    x.check(x.lib.xlac_executable_call_at(exe, ffi.NULL, arguments, ffi.new("void *[]", [out]), x.err))
    assert list(out) == [3, 4] and list(at[0:64]) != before
    x.lib.xlac_executable_destroy(exe)


def test_a_kernel_alone(x):
    text = b"kernel [2] from 1 input\nv0 = f32[] load in0[1 + -1*i0]\nv1 = f32[] negate(v0)\nstore out0[0 + 1*i0] v1\n"
    out, n = x.ffi.new("char **"), x.ffi.new("size_t *")
    x.check(x.lib.xlac_kernel_text(text, len(text), out, n, x.err))
    assert x.text(out[0]).encode() == text and n[0] == len(text)
    x.lib.xlac_free(out[0])
    x.fails(x.lib.xlac_kernel_text(text, len(text) - 4, out, n, x.err), 100)
    assert (x.err.line, x.err.col) == (4, 21)
    source, result, sizes = x.ffi.new("float[]", [1, 2]), x.ffi.new("float[2]"), x.ffi.new("int64_t[]", [8])
    inputs, outputs = x.ffi.new("void *[]", [source]), x.ffi.new("void *[]", [result])
    for reference in (False, True):
        for threads in (0, 2):
            result[0] = result[1] = 0
            call = x.ffi.new("xlac_kernel_call *", {"n_in": 1, "n_out": 1, "in": inputs, "in_bytes": sizes, "out": outputs,
                                                    "out_bytes": sizes, "threads": threads, "reference": reference})
            x.check(x.lib.xlac_kernel_run(text, len(text), call, x.err))
            assert list(result) == [-2, -1]
    call.n_in = 0
    x.fails(x.lib.xlac_kernel_run(text, len(text), call, x.err), 500)


@pytest.fixture
def rt(x):
    from test_c_buffers import Buffers

    b = Buffers(x)
    yield b
    assert (b.count("live_buffers"), b.count("live_bytes"), b.count("live_views")) == (0, 0, 0)
    x.lib.xlac_counters_release(b.counters)
    x.lib.xlac_runtime_destroy(b.rt)


def filled(rt, values):
    b = rt.create("f32", [len(values)])
    rt.ffi.cast("float *", rt.info(b).data)[0:len(values)] = values
    return b


def test_inputs_are_lent_or_given(x, rt):
    """As LocalClient::RunAsync with ExecutionInput: a leaf that is owned is updated in place, others are protected."""
    lib, ffi = x.lib, x.ffi
    text = ("HloModule m, input_output_alias={ {1}: (0, {}) }\nENTRY e {\n  x = f32[3] parameter(0)\n  y = f32[3] parameter(1)\n  s = f32[3] add(x, y)\n"
            "  n = f32[3] negate(y)\n  ROOT r = (f32[3], f32[3]) tuple(n, s)\n}\n")
    exe = compiled(x, text, x.options("xlac_compile_options", {"threads": 1, "runtime": rt.rt, "counters": rt.counters}))
    out, results = ffi.new("xlac_input **"), ffi.new("xlac_buffer *[2]")
    x.check(lib.xlac_input_create(out, exe, x.err))
    given, lent, short = filled(rt, [1, 2, 3]), filled(rt, [10, 20, 30]), filled(rt, [1])
    x.fails(lib.xlac_input_lend(out[0], 2, lent, x.err), 503)
    x.fails(lib.xlac_input_lend(out[0], 0, short, x.err), 502)
    x.check(lib.xlac_input_lend(out[0], 1, lent, x.err))
    x.fails(lib.xlac_input_lend(out[0], 1, lent, x.err), 503)
    x.fails(lib.xlac_executable_run_input(exe, ffi.NULL, out[0], results, x.err), 500)
    where = rt.info(given).data
    for donate in (False, True):
        x.check(lib.xlac_input_lend(out[0], 1, lent, x.err))
        if donate:
            x.fails(lib.xlac_input_donate(out[0], 0, lent, x.err), 505)  # it is borrowed already
        x.check((lib.xlac_input_donate if donate else lib.xlac_input_lend)(out[0], 0, given, x.err))
        assert rt.info(given).deleted == donate
        x.check(lib.xlac_executable_run_input(exe, ffi.NULL, out[0], results, x.err))
        same = rt.info(results[1]).data == where
        assert same == donate and rt.info(given).deleted == donate and not rt.info(lent).deleted
        assert list(ffi.cast("float *", rt.info(results[0]).data)[0:3]) == [-10, -20, -30]
        assert list(ffi.cast("float *", rt.info(results[1]).data)[0:3]) == [11, 22, 33]
        for r in results:
            lib.xlac_buffer_release(r)
    assert rt.count("reused") == 1
    message = x.fails(lib.xlac_input_lend(out[0], 0, given, x.err), 504)
    assert "donated to a run" in message
    # what is not run is given back
    x.check(lib.xlac_input_donate(out[0], 1, lent, x.err))
    assert rt.info(lent).deleted
    lib.xlac_input_destroy(out[0])
    lib.xlac_input_destroy(ffi.NULL)
    assert not rt.info(lent).deleted
    for b in (given, lent, short):
        lib.xlac_buffer_release(b)
    lib.xlac_executable_destroy(exe)


def test_inputs_with_strides(x, rt):
    import numpy as np

    exe = compiled(x, "HloModule m, buffer_donor={ (0, {}) }\nENTRY e {\n  x = f32[2,3] parameter(0)\n  ROOT r = f32[2,3] negate(x)\n}\n",
                   x.options("xlac_compile_options", {"threads": 1, "runtime": rt.rt, "counters": rt.counters}))
    out, result = x.ffi.new("xlac_input **"), x.ffi.new("xlac_buffer *[1]")
    array = np.arange(6, dtype=np.float32).reshape(3, 2).T
    b = rt.wrap(array, "f32")
    x.check(x.lib.xlac_input_create(out, exe, x.err))
    x.fails(x.lib.xlac_input_donate(out[0], 0, b, x.err), 507)
    x.check(x.lib.xlac_input_lend(out[0], 0, b, x.err))
    x.check(x.lib.xlac_executable_run_input(exe, x.ffi.NULL, out[0], result, x.err))
    assert rt.bytes(result[0]) == (-array).tobytes() and rt.count("bytes_copied_in") == 0
    x.lib.xlac_buffer_release(result[0])
    x.lib.xlac_buffer_release(b)
    x.lib.xlac_input_destroy(out[0])
    x.lib.xlac_executable_destroy(exe)
