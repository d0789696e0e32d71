"""xlac.h through cffi in API mode: declarations come from the header itself, and the symbols from the extension's own image, so
that everything happens in the one copy of the library that Python uses."""
import ctypes
import importlib.util
import os
import sys

import pytest
from c_header import HEADER, declarations

CALLBACKS = """
extern "Python" int on_custom_call(void *, const xlac_op *, uint32_t, xlac_value *const *, uint32_t, void *const *, xlac_error *);
extern "Python" bool on_interrupted(void *);
extern "Python" int on_pass(void *, const char *, xlac_module *);
extern "Python" void on_release(void *);
"""


@pytest.fixture(scope="session")
def api(tmp_path_factory):
    """(ffi, lib) of the public header."""
    cffi = pytest.importorskip("cffi")
    import xlac

    ctypes.CDLL(xlac._core.__file__, mode=os.RTLD_GLOBAL | os.RTLD_NOW)
    ffi = cffi.FFI()
    ffi.cdef(declarations() + CALLBACKS)
    ffi.set_source("xlac_api_test", '#include "xlac.h"', include_dirs=[str(HEADER.parent)])
    path = ffi.compile(tmpdir=str(tmp_path_factory.mktemp("cffi")))
    spec = importlib.util.spec_from_file_location("xlac_api_test", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["xlac_api_test"] = module
    spec.loader.exec_module(module)
    return module.ffi, module.lib


class Api:
    """What the tests share: errors, text, parsing, values."""

    def __init__(self, ffi, lib):
        self.ffi, self.lib = ffi, lib
        self.err = ffi.new("xlac_error *")

    def text(self, s):
        return None if s == self.ffi.NULL else self.ffi.string(s).decode()

    def take(self, s):
        """Text that the library handed out, freed."""
        text = self.text(s)
        self.lib.xlac_free(s)
        return text

    def check(self, status):
        assert status == 0, self.text(self.err.message)

    def fails(self, status, code):
        """The call failed with that code, and the record says why."""
        assert status < 0
        assert self.err.code == code, (self.err.code, self.text(self.err.message))
        assert self.text(self.err.message)
        return self.text(self.err.message)

    def options(self, type_, fields=None):
        """An option struct of this version."""
        return self.ffi.new(f"{type_} *", {"struct_size": self.ffi.sizeof(type_), **(fields or {})})

    def parse(self, text):
        raw = text.encode()
        out = self.ffi.new("xlac_module **")
        self.check(self.lib.xlac_module_parse(out, raw, len(raw), self.ffi.NULL, self.err))
        return out[0]

    def op(self, m, name):
        op = self.lib.xlac_op_find(m, self.ffi.NULL, name.encode())
        assert op != self.ffi.NULL
        return op

    def info(self, m, op):
        info = self.ffi.new("xlac_op_info *")
        self.lib.xlac_op_get(m, op, info)
        return info

    def array(self, dtype, dims, data):
        out = self.ffi.new("xlac_value **")
        self.check(self.lib.xlac_value_copy(out, self.lib.xlac_dtype_from_text(dtype.encode()), len(dims),
                                            self.ffi.new("int64_t[]", dims), data, self.err))
        return out[0]

    def floats(self, value):
        info = self.ffi.new("xlac_value_info *")
        self.lib.xlac_value_get(value, info)
        assert info.kind == self.lib.XLAC_VALUE_ARRAY
        return list(self.ffi.cast("float *", info.data)[0:info.count])

    def print_module(self, m, options=None):
        out, n = self.ffi.new("char **"), self.ffi.new("size_t *")
        self.check(self.lib.xlac_module_print(m, options or self.ffi.NULL, out, n, self.err))
        text = self.ffi.string(out[0])
        assert len(text) == n[0]
        self.lib.xlac_free(out[0])
        return text.decode()


@pytest.fixture
def x(api):
    return Api(*api)
