"""Option structs say their own size, so that programs and libraries of different versions go together."""
import pytest

TEXT = b"HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] atan(x)\n}\n"
STRUCTS = [f"xlac_{name}_options" for name in ("parse", "print", "verify", "pipeline", "interpret", "compile", "session")]


def parse(x, options):
    out = x.ffi.new("xlac_module **")
    status = x.lib.xlac_module_parse(out, TEXT, len(TEXT), options, x.err)
    if status == 0:
        x.lib.xlac_module_destroy(out[0])
    else:
        assert out[0] == x.ffi.NULL
    return status


def test_every_option_struct_begins_with_its_size(x):
    for name in STRUCTS:
        first = x.ffi.typeof(name).fields[0]
        assert (first[0], first[1].type.cname, first[1].offset) == ("struct_size", "uint32_t", 0), name


def test_members_that_a_smaller_struct_does_not_have_are_defaults(x):
    options = x.options("xlac_parse_options", {"strict": True})
    x.fails(parse(x, options), 101)  # atan with one argument is a documented form
    options.struct_size = x.ffi.offsetof("xlac_parse_options", "allow_unregistered")  # a version that ended there
    x.check(parse(x, options))
    options.struct_size = 8
    options.format = 7
    x.fails(parse(x, options), 503)  # what the smaller struct has is read


def test_members_that_the_library_does_not_know_must_be_zero(x):
    size = x.ffi.sizeof("xlac_parse_options")
    room = x.ffi.new("char[]", size + 16)
    options = x.ffi.cast("xlac_parse_options *", room)
    options.struct_size, options.documented_forms = size + 16, True
    x.check(parse(x, options))
    room[size + 5] = b"\1"
    assert "sets a member after them" in x.fails(parse(x, options), 503)


@pytest.mark.parametrize("size", [0, 1, 4, 7, 10, 4100, 2**32 - 4])
def test_sizes_of_no_version_are_refused(x, size):
    options = x.options("xlac_parse_options", {"documented_forms": True})
    options.struct_size = size
    message = x.fails(parse(x, options), 503)
    assert "xlac_parse_options.struct_size" in message and f" {size}, " in message
    assert "XLAC_OPTIONS" in x.text(x.err.hint)


def test_every_function_with_options_checks_them(x):
    """A struct of zeros, as before there were sizes, is refused wherever one is taken."""
    ffi, lib, err, zero = x.ffi, x.lib, x.err, lambda name: x.ffi.new(f"xlac_{name}_options *")
    m = x.parse("HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] add(x, x)\n}\n")
    text, n, value = ffi.new("char **"), ffi.new("size_t *"), ffi.new("xlac_value **")
    exe, args = ffi.new("xlac_executable **"), ffi.new("xlac_value *[1]")
    for status in (
        lib.xlac_module_print(m, zero("print"), text, n, err),
        lib.xlac_op_print(m, x.op(m, "y"), zero("print"), text, n, err),
        lib.xlac_module_verify(m, zero("verify"), err),
        lib.xlac_module_run(m, b"dce", zero("pipeline"), err),
        lib.xlac_interpret(m, zero("interpret"), 1, args, value, err),
        lib.xlac_compile(m, zero("compile"), exe, err),
        lib.xlac_run_parallel(m, zero("interpret"), 1, 1, ffi.NULL, ffi.NULL, ffi.NULL, err),
    ):
        x.fails(status, 503)
    x.check(lib.xlac_compile(m, x.options("xlac_compile_options", {"threads": 1}), exe, err))
    for status in (
        lib.xlac_executable_run(exe[0], zero("interpret"), 1, args, value, err),
        lib.xlac_executable_call(exe[0], zero("interpret"), ffi.NULL, ffi.NULL, err),
        lib.xlac_executable_call_at(exe[0], zero("interpret"), ffi.new("xlac_argument[1]"), ffi.new("void *[1]"), err),
        lib.xlac_executable_profile(exe[0], zero("interpret"), 1, args, value, text, n, err),
        lib.xlac_executable_timeline(exe[0], zero("interpret"), 1, args, value, text, n, err),
    ):
        x.fails(status, 503)
    lib.xlac_executable_destroy(exe[0])
    lib.xlac_module_destroy(m)


def test_blocks_have_the_headers_that_are_asked_for(x):
    runtime, most = x.ffi.new("xlac_runtime **"), x.lib.XLAC_BLOCK_HEADER
    x.check(x.lib.xlac_runtime_create(runtime, x.err))
    block = x.lib.xlac_runtime_take_headed(runtime[0], most, 100)
    x.ffi.memmove(x.ffi.cast("char *", block) - most, b"h" * most, most)
    x.lib.xlac_runtime_give(block)
    assert x.lib.xlac_runtime_take_headed(runtime[0], most + 1, 100) == x.ffi.NULL
    x.lib.xlac_runtime_destroy(runtime[0])
