"""What a careless caller meets: parts that were removed, results that share, big values, several threads, other compilers."""
import pathlib
import subprocess
import threading

import pytest

import xlac.include

TEXT = """HloModule step, input_output_alias={ {0}: (1, {}, must-alias) }

half { v = f32[3] parameter(0)
  ROOT twice = f32[3] add(v, v) }

ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  c = f32[3] call(x), to_apply=half
  sum = f32[3] add(c, y), metadata={op_name="here"}
  seven = s32[] constant(7)
  ROOT out = (f32[3], s32[]) tuple(sum, seven) }
"""


@pytest.fixture
def step(x):
    m = x.parse(TEXT)
    yield m
    x.lib.xlac_module_destroy(m)


def run(x, m, *args, options=None):
    out = x.ffi.new("xlac_value **")
    x.check(x.lib.xlac_interpret(m, options or x.ffi.NULL, len(args), x.ffi.new("xlac_value *[]", list(args) or 1), out, x.err))
    return out[0]


def test_removed_ops_are_refused_everywhere(x, step):
    lib, null = x.lib, x.ffi.NULL
    total, entry, out, c = x.op(step, "sum"), lib.xlac_module_entry(step), x.op(step, "out"), x.op(step, "c")
    x.check(lib.xlac_op_replace_uses(step, total, c, x.err))
    x.check(lib.xlac_op_remove(step, total, x.err))
    info = x.info(step, total)
    assert (x.text(info.name), info.computation, info.n_operands) == ("sum", null, 0)
    text, n = x.ffi.new("char **"), x.ffi.new("size_t *")
    for call, *args in [(lib.xlac_op_remove,), (lib.xlac_op_move, null), (lib.xlac_op_rename, b"z"),
                        (lib.xlac_op_set_type, b"f32[]"), (lib.xlac_op_set_attr, b"metadata", b"{}"),
                        (lib.xlac_op_set_operand, 0, c), (lib.xlac_op_replace_uses, c), (lib.xlac_op_print, null, text, n)]:
        x.fails(call(step, total, *args, x.err), 800)
    x.fails(lib.xlac_op_set_operand(step, out, 0, total, x.err), 800)
    x.fails(lib.xlac_op_replace_uses(step, c, total, x.err), 800)
    x.fails(lib.xlac_op_move(step, c, total, x.err), 800)
    x.fails(lib.xlac_computation_set_root(step, entry, total, x.err), 800)


def test_removed_computations_are_refused_everywhere(x, step):
    lib, null = x.lib, x.ffi.NULL
    half, twice, entry = lib.xlac_computation_find(step, b"half"), x.op(step, "twice"), lib.xlac_module_entry(step)
    x.fails(lib.xlac_computation_remove(step, half, x.err), 800)
    assert x.text(x.err.op) == "c"
    x.check(lib.xlac_op_replace_uses(step, x.op(step, "c"), x.op(step, "x"), x.err))
    x.check(lib.xlac_op_remove(step, x.op(step, "c"), x.err))
    x.check(lib.xlac_computation_remove(step, half, x.err))
    assert not lib.xlac_computation_is_live(step, half) and not lib.xlac_op_is_live(step, twice)
    text, n, op, c = (x.ffi.new(t) for t in ("char **", "size_t *", "xlac_op **", "xlac_computation **"))
    spec = x.ffi.new("xlac_op_spec *", {"opcode": x.ffi.new("char[]", b"iota")})
    x.fails(lib.xlac_computation_print(step, half, null, text, n, x.err), 800)
    x.fails(lib.xlac_computation_remove(step, half, x.err), 800)
    x.fails(lib.xlac_computation_rename(step, half, b"h", x.err), 800)
    x.fails(lib.xlac_module_set_entry(step, half, x.err), 800)
    x.fails(lib.xlac_op_create(op, step, half, spec, x.err), 800)
    x.fails(lib.xlac_op_create_parameter(op, step, half, 1, b"f32[]", null, x.err), 800)
    x.fails(lib.xlac_computation_import(c, step, step, half, x.err), 800)
    x.fails(lib.xlac_op_remove(step, twice, x.err), 800)
    assert lib.xlac_module_entry(step) == entry
    x.check(lib.xlac_module_verify(step, null, x.err))


def test_a_refused_op_leaves_nothing_behind(x, step):
    entry, op = x.lib.xlac_module_entry(step), x.ffi.new("xlac_op **")
    before, count = x.print_module(step), x.lib.xlac_computation_op_count(step, entry)
    operands = x.ffi.new("xlac_op *[]", [x.op(step, "x"), x.op(step, "seven")])
    attrs = x.ffi.new("xlac_attr *")
    key, value, opcode = (x.ffi.new("char[]", s) for s in (b"dimensions", b"{9", b"negate"))
    attrs.key, attrs.text = key, value
    for name, n_operands, n_attrs in ((b"add", 2, 0), (b"add", 1, 0), (b"transpose", 1, 1), (b"transpose", 1, 0),
                                      (b"reshape", 1, 0), (b"constant", 0, 0), (b"nope", 0, 0)):
        opcode = x.ffi.new("char[]", name)
        spec = x.ffi.new("xlac_op_spec *", {"opcode": opcode, "n_operands": n_operands, "operands": operands,
                                            "n_attrs": n_attrs, "attrs": attrs})
        assert x.lib.xlac_op_create(op, step, entry, spec, x.err) < 0 and op[0] == x.ffi.NULL
    assert x.lib.xlac_computation_op_count(step, entry) == count and x.print_module(step) == before


def test_inference_column(x):
    info, infers = x.ffi.new("xlac_opcode_info *"), {}
    for opcode in range(1, x.lib.xlac_opcode_count()):
        assert x.lib.xlac_opcode_get(opcode, info)
        infers[x.text(info.text)] = info.infers
    assert infers["add"] and infers["dot"] and not infers["reshape"] and not infers["custom-call"]


# --- values ---

def test_results_share_nothing(x):
    """A program that gives back its argument twice gives two arrays of their own."""
    m = x.parse("HloModule m\nENTRY e { x = f32[3] parameter(0)\n ROOT t = (f32[3], f32[3]) tuple(x, x) }")
    arg = x.array("f32", [3], x.ffi.new("float[]", [1, 2, 3]))
    out, info = run(x, m, arg), x.ffi.new("xlac_value_info *")
    places = set()
    for v in (arg, x.lib.xlac_value_element(out, 0), x.lib.xlac_value_element(out, 1)):
        x.lib.xlac_value_get(v, info)
        places.add(info.data)
        assert x.floats(v) == [1, 2, 3]
    assert len(places) == 3
    x.lib.xlac_value_release(out)
    x.lib.xlac_value_release(arg)
    x.lib.xlac_module_destroy(m)


def test_results_outlive_the_module(x):
    for n in (3, 100000):
        m = x.parse(f"HloModule m\nENTRY e {{ c = f32[] constant(2)\n ROOT b = f32[{n}] broadcast(c), dimensions={{}} }}")
        out = run(x, m)
        x.lib.xlac_module_destroy(m)
        assert x.floats(out) == [2] * n
        x.lib.xlac_value_release(out)


def test_sizes_of_values(x):
    info, out = x.ffi.new("xlac_value_info *"), x.ffi.new("xlac_value **")
    for n in (0, 1, 1 << 14, 1 << 20):
        v = x.array("f32", [n], x.ffi.NULL)
        x.lib.xlac_value_get(v, info)
        assert info.bytes == 4 * n and int(x.ffi.cast("intptr_t", info.data)) % 64 == 0
        assert not bytes(x.ffi.buffer(info.data, info.bytes)).strip(b"\0")
        x.lib.xlac_value_release(v)
    f32 = x.lib.xlac_dtype_from_text(b"f32")
    x.fails(x.lib.xlac_value_copy(out, f32, 1, x.ffi.new("int64_t[]", [1 << 58]), x.ffi.NULL, x.err), 600)
    x.fails(x.lib.xlac_value_copy(out, f32, 1, x.ffi.new("int64_t[]", [1 << 62]), x.ffi.NULL, x.err), 601)


def test_custom_call_with_several_results(x, api):
    """Every leaf of the result has its memory, a token has none."""
    ffi, lib = api
    m = x.parse("""HloModule m
ENTRY e { x = f32[3] parameter(0)
  ROOT r = (f32[3], (token[], f32[])) custom-call(x), custom_call_target="halve_and_sum" }""")

    @ffi.def_extern(name="on_custom_call", error=-1)
    def on_custom_call(ctx, op, n_operands, operands, n_results, results, err):
        numbers = x.floats(operands[0])
        assert n_results == 3 and results[1] == ffi.NULL
        assert list(ffi.cast("float *", results[0])[0:3]) == [0, 0, 0]
        ffi.cast("float *", results[0])[0:3] = [n / 2 for n in numbers]
        ffi.cast("float *", results[2])[0] = sum(numbers)
        return 0

    registry = ffi.new("xlac_registry **")
    x.check(lib.xlac_registry_create(registry, x.err))
    x.check(lib.xlac_registry_add(registry[0], b"halve_and_sum", lib.on_custom_call, ffi.NULL, x.err))
    arg = x.array("f32", [3], ffi.new("float[]", [2, 4, 6]))
    out = run(x, m, arg, options=x.options("xlac_interpret_options", {"registry": registry[0]}))
    assert x.floats(lib.xlac_value_element(out, 0)) == [1, 2, 3]
    assert x.floats(lib.xlac_value_element(lib.xlac_value_element(out, 1), 1)) == [12]
    for v in (out, arg):
        lib.xlac_value_release(v)
    lib.xlac_registry_destroy(registry[0])
    lib.xlac_module_destroy(m)


# --- threads ---

def test_one_module_many_threads(x, step):
    """Prints, verifications, runs and edits of one module at once: each ends well, or an edit is refused during a run."""
    before, ones, wrong = x.print_module(step), x.array("f32", [3], x.ffi.new("float[]", [1, 1, 1])), []
    total, args = x.op(step, "sum"), x.ffi.new("xlac_value *[]", [ones, ones])

    def printing(err):
        text, n = x.ffi.new("char **"), x.ffi.new("size_t *")
        status = x.lib.xlac_module_print(step, x.ffi.NULL, text, n, err)
        x.lib.xlac_free(text[0])
        return status

    def running(err):
        out = x.ffi.new("xlac_value **")
        status = x.lib.xlac_interpret(step, x.ffi.NULL, 2, args, out, err)
        x.lib.xlac_value_release(out[0])
        return status

    def verifying(err):
        return x.lib.xlac_module_verify(step, x.ffi.NULL, err)

    def editing(err):
        status = x.lib.xlac_op_set_attr(step, total, b"metadata", b'{op_name="other"}', err)
        return 0 if status == -800 else status

    def work(step_once):
        err = x.ffi.new("xlac_error *")
        for _ in range(150):
            if step_once(err) != 0:
                wrong.append(x.text(err.message))

    threads = [threading.Thread(target=work, args=(f,)) for f in (printing, verifying, running, running, editing)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    x.check(x.lib.xlac_op_set_attr(step, total, b"metadata", b'{op_name="here"}', x.err))
    assert x.print_module(step) == before
    x.lib.xlac_value_release(ones)


# --- the header ---

@pytest.mark.parametrize("compiler", ["c++ -std=c++11 -x c++", "cc -std=c99 -x c"])
def test_header_is_plain(compiler, tmp_path):
    """C99 and C++ both read the header with all warnings on."""
    source = tmp_path / "use.c"
    source.write_text('#include "xlac.h"\nint main(void) { return xlac_version() == 0; }\n')
    command = [*compiler.split(), "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I",
               xlac.include.directory(), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_header_and_library_of_the_package():
    """xlac.include gives cffi what it needs: declarations that it takes as they are, and the image to open."""
    cffi = pytest.importorskip("cffi")
    assert pathlib.Path(xlac.include.directory(), "xlac.h").exists()
    ffi = cffi.FFI()
    ffi.cdef(xlac.include.cdef())
    lib = ffi.dlopen(xlac.include.library())
    assert ffi.string(lib.xlac_version()).decode() == xlac.__version__
