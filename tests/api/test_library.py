"""Facts about the library: versions, errors, element types, the op table, passes."""
import pathlib
import re

from c_header import public_functions

HERE = pathlib.Path(__file__).resolve().parent


def test_every_public_function_is_driven_by_these_tests():
    source = "\n".join(p.read_text() for p in HERE.glob("*.py"))
    missing = [name for name in public_functions() if not re.search(rf"lib\.{name}\b", source)]
    assert not missing
    assert len(public_functions()) > 90


def test_version_is_the_packages(x):
    import xlac

    assert x.text(x.lib.xlac_version()) == xlac.__version__


def test_error_codes(x):
    codes = []
    while code := x.lib.xlac_error_code_at(len(codes)):
        codes.append(code)
        assert re.fullmatch(r"[A-Z_]+", x.text(x.lib.xlac_error_name(code)))
        assert x.text(x.lib.xlac_error_title(code))
    assert codes == sorted(set(codes))
    assert x.lib.xlac_error_name(99999) == x.lib.xlac_error_title(-1) == x.ffi.NULL


def test_element_types(x):
    kinds = {"pred", "sint", "uint", "float", "complex"}
    names = []
    for dtype in range(1, x.lib.xlac_dtype_count()):
        name = x.text(x.lib.xlac_dtype_text(dtype))
        names.append(name)
        assert x.lib.xlac_dtype_from_text(name.encode()) == dtype
        assert x.text(x.lib.xlac_dtype_kind(dtype)) in kinds
        assert x.lib.xlac_dtype_bits(dtype) <= 8 * x.lib.xlac_dtype_bytes(dtype)
    assert {"pred", "s1", "u4", "bf16", "f8e4m3fn", "f4e2m1fn", "c128"} <= set(names)
    for none in (0, x.lib.xlac_dtype_count(), 1 << 31):
        assert x.lib.xlac_dtype_text(none) == x.lib.xlac_dtype_kind(none) == x.ffi.NULL
        assert x.lib.xlac_dtype_bits(none) == x.lib.xlac_dtype_bytes(none) == 0
    assert x.lib.xlac_dtype_from_text(b"f31") == 0


def test_element_types_in_numpy_and_dlpack(x):
    import ml_dtypes
    import numpy as np

    of_ml_dtypes, code, bits, seen = x.ffi.new("bool *"), x.ffi.new("uint8_t *"), x.ffi.new("uint8_t *"), set()
    for dtype in range(1, x.lib.xlac_dtype_count()):
        name = x.text(x.lib.xlac_dtype_numpy(dtype, of_ml_dtypes))
        found = np.dtype(getattr(ml_dtypes, name) if of_ml_dtypes[0] else name)
        assert found.name == name and found.itemsize == x.lib.xlac_dtype_bytes(dtype)
        x.lib.xlac_dtype_dlpack(dtype, code, bits)
        seen.add((code[0], bits[0]))
        assert bits[0] == (8 if name == "bool" else x.lib.xlac_dtype_bits(dtype))
    assert len(seen) == x.lib.xlac_dtype_count() - 1
    assert x.lib.xlac_dtype_numpy(0, of_ml_dtypes) == x.ffi.NULL and not of_ml_dtypes[0]
    x.lib.xlac_dtype_dlpack(1 << 31, code, bits)
    assert code[0] == bits[0] == 0


def test_op_table(x):
    info, attr = x.ffi.new("xlac_opcode_info *"), x.ffi.new("xlac_attr_info *")
    names = set()
    for opcode in range(1, x.lib.xlac_opcode_count()):
        assert x.lib.xlac_opcode_get(opcode, info)
        name = x.text(info.text)
        names.add(name)
        assert x.lib.xlac_opcode_from_text(name.encode()) == (opcode if name != "mlir.unregistered" else 0)
        assert x.text(info.doc) and info.arity >= -1
        for i in range(info.n_attrs):
            assert x.lib.xlac_opcode_attr(opcode, i, attr)
            if x.text(attr.text) != "slice_sizes":  # the one name of two attributes of different kinds
                assert x.text(x.lib.xlac_attr_kind(attr.text)) == x.text(attr.kind)
        assert not x.lib.xlac_opcode_attr(opcode, info.n_attrs, attr)
    assert len(names) >= 136 and {"add", "while", "ragged-dot"} <= names
    assert not x.lib.xlac_opcode_get(0, info) and not x.lib.xlac_opcode_get(x.lib.xlac_opcode_count(), info)
    assert not x.lib.xlac_opcode_attr(0, 0, attr)
    assert x.lib.xlac_opcode_elsewhere(b"matmul") == x.lib.xlac_opcode_from_text(b"dot") and x.lib.xlac_opcode_elsewhere(b"nope") == 0
    assert x.lib.xlac_opcode_from_text(b"nope") == 0 and x.lib.xlac_attr_kind(b"nope") == x.ffi.NULL


def test_passes(x):
    info, name, doc = x.ffi.new("xlac_pass_info *"), x.ffi.new("const char **"), x.ffi.new("const char **")
    found, i = {}, 0
    while x.lib.xlac_pass_get(i, info):
        found[x.text(info.name)] = info.n_options
        for option in range(info.n_options):
            assert x.lib.xlac_pass_option(i, option, name, doc)
            assert x.text(name[0]) and x.text(doc[0])
        assert not x.lib.xlac_pass_option(i, info.n_options, name, doc)
        i += 1
    assert {"dce", "cse", "constant-folding", "flatten-tuples", "inline-calls"} <= set(found)
    assert found["constant-folding"] == 2
    assert not x.lib.xlac_pass_option(i, 0, name, doc)


def test_free_takes_null(x):
    x.lib.xlac_free(x.ffi.NULL)
