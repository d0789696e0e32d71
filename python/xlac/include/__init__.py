"""The C API from Python: where xlac.h is, its declarations for cffi, and the library that has the functions.

    ffi = cffi.FFI()
    ffi.cdef(xlac.include.cdef())
    lib = ffi.dlopen(xlac.include.library())   # the one that Python uses: its modules are those of C
"""
import pathlib
import re


def directory():
    """The folder of xlac.h, for a C compiler's -I."""
    here = pathlib.Path(__file__).resolve().parent
    in_tree = here.parents[2] / "csrc" / "include"  # of a checkout that runs in place
    return str(here if (here / "xlac.h").exists() else in_tree)


def library():
    """The shared object that exports the functions of xlac.h."""
    from .. import _core

    core = pathlib.Path(_core.__file__).with_name("libxlac.so")
    return str(core) if core.exists() else _core.__file__  # where the extension has a core of its own


def cdef():
    """xlac.h without preprocessor lines and what only C++ sees: what cffi's cdef takes."""
    text = pathlib.Path(directory(), "xlac.h").read_text()
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", text, flags=re.M | re.S)
    return re.sub(r"^#.*\n", "", text, flags=re.M)
