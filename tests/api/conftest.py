"""The public C API through cffi in API mode: a C compiler checks every declaration of xlac.h against its use, and the calls go
to the extension's own image, so that no second copy of the library is in the process."""
import pathlib
import sys

import pytest

import xlac
import xlac.include

cffi = pytest.importorskip("cffi")
ROOT = pathlib.Path(__file__).resolve().parents[2]

# cffi callbacks that the tests hand to the library
CALLBACKS = """
extern "Python" bool py_interrupted(void *ctx);
extern "Python" void py_release(void *ctx);
extern "Python" int py_custom_call(void *ctx, const xlac_op *op, uint32_t n_operands, xlac_value *const *operands,
                                   uint32_t n_results, void *const *results, xlac_error *err);
extern "Python" int py_after(void *ctx, const char *pass, xlac_module *m);
"""


@pytest.fixture(scope="session")
def binding(tmp_path_factory):
    where = tmp_path_factory.mktemp("cffi")
    builder = cffi.FFI()
    builder.cdef(xlac.include.cdef() + CALLBACKS)
    library = xlac.include.library()
    builder.set_source("xlac_cffi", '#include "xlac.h"', include_dirs=[xlac.include.directory()],
                       extra_link_args=[library, f"-Wl,-rpath,{pathlib.Path(library).parent}"])
    builder.compile(tmpdir=str(where))
    sys.path.insert(0, str(where))
    import xlac_cffi

    return xlac_cffi


@pytest.fixture(scope="session")
def ffi(binding):
    return binding.ffi


@pytest.fixture(scope="session")
def lib(binding):
    return binding.lib


class Refused(Exception):
    def __init__(self, ffi, error):
        self.code, self.line, self.col = error.code, error.line, error.col
        self.op, self.message, self.hint = (ffi.string(s).decode() for s in (error.op, error.message, error.hint))
        super().__init__(self.message)


class Api:
    """Calls that fill an error, checked; handles are given back at the end of the test."""

    def __init__(self, ffi, lib):
        self.ffi, self.lib, self.freed = ffi, lib, []

    def __call__(self, name, *args):
        """lib.name(*args, &err); raises Refused."""
        error = self.ffi.new("xlac_error *")
        status = getattr(self.lib, name)(*args, error)
        if status != 0:
            assert status == -error.code and error.message[0] != b"\0"
            raise Refused(self.ffi, error)

    def make(self, kind, name, *args):
        """The same for functions with an `out` handle first."""
        out = self.ffi.new(f"{kind} **")
        self(name, out, *args)
        return out[0]

    def parse(self, text):
        data = text.encode()
        m = self.make("xlac_module", "xlac_module_parse", data, len(data), self.ffi.NULL)
        self.freed.append((self.lib.xlac_module_destroy, m))
        return m

    def create(self, name=b"m"):
        m = self.make("xlac_module", "xlac_module_create", name)
        self.freed.append((self.lib.xlac_module_destroy, m))
        return m

    def text(self, name, *args):
        """A function that hands out text and its length."""
        text, n = self.ffi.new("char **"), self.ffi.new("size_t *")
        self(name, *args, self.ffi.NULL, text, n)
        out = self.ffi.buffer(text[0], n[0])[:].decode()
        assert text[0][n[0]] == b"\0"
        self.lib.xlac_free(text[0])
        return out

    def info(self, struct, name, *args):
        out = self.ffi.new(f"{struct} *")
        getattr(self.lib, name)(*args, out)
        return out

    def op(self, m, name):
        found = self.lib.xlac_op_find(m, self.ffi.NULL, name.encode())
        assert found != self.ffi.NULL
        return found

    def value(self, array):
        """A value with a copy of a NumPy array."""
        dtype = self.lib.xlac_dtype_from_text({"float32": b"f32", "int32": b"s32", "bool": b"pred"}[array.dtype.name])
        dims = self.ffi.new("int64_t[]", list(array.shape) or [0])
        data = self.ffi.from_buffer(array) if array.size else self.ffi.NULL
        return self.own(self.make("xlac_value", "xlac_value_copy", dtype, array.ndim, dims, data))

    def own(self, value):
        self.freed.append((self.lib.xlac_value_release, value))
        return value

    def close(self):
        while self.freed:
            free, handle = self.freed.pop()
            free(handle)


@pytest.fixture
def api(ffi, lib):
    a = Api(ffi, lib)
    yield a
    a.close()


@pytest.fixture
def refused():
    """with refused("EDIT") as caught: ... ; caught.value has code, line, col, op, message, hint."""
    codes = {name: code for code, (name, _) in xlac._core.error_table().items()}

    class Context:
        def __init__(self, name):
            self.code, self.context = codes[name], pytest.raises(Refused)

        def __enter__(self):
            self.caught = self.context.__enter__()
            return self.caught

        def __exit__(self, *exc):
            swallowed = self.context.__exit__(*exc)
            assert self.caught.value.code == self.code, self.caught.value.message
            return swallowed

    return Context
