"""Version, error codes, element types and the op table, as C sees them."""
import pathlib
import re
import subprocess

import pytest

import xlac
import xlac.include

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_one_image(ffi, lib):
    """The functions that cffi calls are those of the extension: what was parsed here prints the same there."""
    assert ffi.string(lib.xlac_version()).decode() == xlac.__version__ == xlac._core.version()
    import ctypes

    core = ctypes.CDLL(xlac.include.library())
    address = ctypes.cast(core.xlac_version, ctypes.c_void_p).value
    assert int(ffi.cast("intptr_t", ffi.addressof(lib, "xlac_version"))) == address or _maps_once()


def _maps_once():
    """cffi gives the address of its own trampoline: then the image must be mapped only once."""
    maps = pathlib.Path("/proc/self/maps")
    if not maps.exists():
        return True
    found = {line.split()[-1] for line in maps.read_text().splitlines() if "_core" in line and "xlac" in line}
    return len(found) == 1


def test_error_codes(ffi, lib):
    codes = []
    while lib.xlac_error_code_at(len(codes)):
        codes.append(lib.xlac_error_code_at(len(codes)))
    assert codes == sorted(set(codes)) and len(codes) > 30
    for code in codes:
        assert ffi.string(lib.xlac_error_name(code)).decode().isupper()
        assert len(ffi.string(lib.xlac_error_title(code))) > 3
    assert lib.xlac_error_name(7) == ffi.NULL == lib.xlac_error_title(7)


def test_dtypes(ffi, lib):
    names = {}
    for dtype in range(1, lib.xlac_dtype_count()):
        text = ffi.string(lib.xlac_dtype_text(dtype))
        names[text.decode()] = dtype
        assert lib.xlac_dtype_from_text(text) == dtype
        assert lib.xlac_dtype_bytes(dtype) == max(1, lib.xlac_dtype_bits(dtype) // 8)
        assert ffi.string(lib.xlac_dtype_kind(dtype)) in (b"pred", b"sint", b"uint", b"float", b"complex")
    assert {"pred", "s4", "u2", "bf16", "f8e4m3fn", "f4e2m1fn", "c128"} <= set(names)
    for none in (0, lib.xlac_dtype_count(), 10**6):
        assert lib.xlac_dtype_text(none) == ffi.NULL == lib.xlac_dtype_kind(none)
        assert lib.xlac_dtype_bytes(none) == 0 == lib.xlac_dtype_bits(none)
    assert lib.xlac_dtype_from_text(b"f33") == 0


def test_op_table(ffi, lib):
    info, attr = ffi.new("xlac_opcode_info *"), ffi.new("xlac_attr_info *")
    rows = {}
    for opcode in range(1, lib.xlac_opcode_count()):
        assert lib.xlac_opcode_get(opcode, info)
        assert lib.xlac_opcode_from_text(info.text) == opcode
        attrs = {}
        for i in range(info.n_attrs):
            assert lib.xlac_opcode_attr(opcode, i, attr)
            attrs[ffi.string(attr.text).decode()] = (ffi.string(attr.kind).decode(), attr.required)
        assert not lib.xlac_opcode_attr(opcode, info.n_attrs, attr)
        rows[ffi.string(info.text).decode()] = (info.arity, attrs, ffi.string(info.doc).decode(), info.elementwise)
    assert len(rows) == 136
    assert rows["add"][0] == 2 and rows["add"][3] and not rows["dot"][3]
    assert rows["reduce"][1] == {"dimensions": ("ints", True), "to_apply": ("called", True)}
    for none in (0, lib.xlac_opcode_count()):
        assert not lib.xlac_opcode_get(none, info) and not lib.xlac_opcode_attr(none, 0, attr)
    assert lib.xlac_opcode_from_text(b"no-such-op") == 0
    assert ffi.string(lib.xlac_attr_kind(b"sharding")) == b"sharding"
    assert lib.xlac_attr_kind(b"no_such_attribute") == ffi.NULL


def test_inference_column(ffi, lib):
    info = ffi.new("xlac_opcode_info *")
    infers = {}
    for opcode in range(1, lib.xlac_opcode_count()):
        lib.xlac_opcode_get(opcode, info)
        infers[ffi.string(info.text)] = info.infers
    assert infers[b"add"] and infers[b"dot"] and not infers[b"reshape"] and not infers[b"custom-call"]


def test_passes(ffi, lib):
    info, name, doc = ffi.new("xlac_pass_info *"), ffi.new("const char **"), ffi.new("const char **")
    found, index = {}, 0
    while lib.xlac_pass_get(index, info):
        options = []
        for option in range(info.n_options):
            assert lib.xlac_pass_option(index, option, name, doc)
            options.append(ffi.string(name[0]).decode())
        assert not lib.xlac_pass_option(index, info.n_options, name, doc)
        found[ffi.string(info.name).decode()] = options
        index += 1
    assert {"dce", "cse", "constant-folding", "flatten-tuples", "inline-calls"} <= set(found)
    assert not lib.xlac_pass_option(index, 0, name, doc)


def test_every_function_is_exported_and_tested():
    """No declaration without a definition, none that these tests forget."""
    declared = set(re.findall(r"\b(xlac_\w+)\(", re.sub(r"/\*.*?\*/|\(\*", "", xlac.include.cdef(), flags=re.S)))
    tests = "".join(path.read_text() for path in pathlib.Path(__file__).parent.glob("*.py"))
    assert not {name for name in declared if not re.search(rf"\b{name}\b", tests)}
    assert len(declared) > 90


@pytest.mark.parametrize("compiler", ["c++ -std=c++11 -x c++", "cc -std=c99 -x c"])
def test_header_is_plain(compiler, tmp_path):
    """C99 and C++ both read the header with all warnings on."""
    source = tmp_path / "use.c"
    source.write_text('#include "xlac.h"\nint main(void) { return xlac_version() == 0; }\n')
    command = compiler.split() + ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
                                  "-I", xlac.include.directory(), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
