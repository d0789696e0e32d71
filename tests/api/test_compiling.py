"""Compiled programs through the C interface."""
import json

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
    exe = compiled(x, CHAIN, x.ffi.new("xlac_compile_options *", {"threads": 1}))
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
    exe = compiled(x, CHAIN, x.ffi.new("xlac_compile_options *", {"threads": 1, "runtime": runtime[0]}))
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
    x.check(x.lib.xlac_executable_kernels(exe, out, n, x.err))
    assert "kernel [" in x.text(out[0])
    x.lib.xlac_free(out[0])
    argument, value = x.array("f32", [2], x.ffi.new("float[]", [0, 0.5])), x.ffi.new("xlac_value **")
    x.check(x.lib.xlac_executable_profile(exe, x.ffi.NULL, 1, x.ffi.new("xlac_value *[]", [argument]), value, out, n, x.err))
    times = json.loads(x.text(out[0]))
    x.lib.xlac_free(out[0])
    assert times["steps"][0][:3] == [0, 0, 1] and times["ns"] >= times["steps"][0][3]
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
    options = x.ffi.new("xlac_compile_options *", {"threads": 1, "n_donate": 2, "donate": donate})
    exe, d = compiled(x, text, options), x.ffi.new("xlac_donation *")
    assert x.lib.xlac_executable_donation(exe, 0, d) and (d.argument, d.result, d.must, d.in_place) == (0, 0, False, True)
    assert x.lib.xlac_executable_donation(exe, 1, d) and (d.argument, d.result, d.in_place) == (1, 2**32 - 1, False)
    assert not x.lib.xlac_executable_donation(exe, 2, d)
    x.check(x.lib.xlac_executable_check(exe, x.err))
    given, lent = x.ffi.new("float[]", [1, 2]), x.ffi.new("float[]", [3, 4, 5])
    x.check(x.lib.xlac_executable_call(exe, x.ffi.NULL, x.ffi.new("void *[]", [given, lent]), x.ffi.new("void *[]", [given]), x.err))
    assert list(given) == [2, 4]
    x.lib.xlac_executable_destroy(exe)
    m, out = x.parse(text), x.ffi.new("xlac_executable **")
    donate[1] = 2
    x.fails(x.lib.xlac_compile(m, options, out, x.err), 503)
    x.lib.xlac_module_destroy(m)


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
