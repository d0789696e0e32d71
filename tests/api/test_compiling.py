"""Compiled programs through the C interface."""

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
