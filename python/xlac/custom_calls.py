"""Which of the things that stand for a function in native code a custom call was registered with."""
import sys

LEAST_ADDRESS = 4096


def _of_ctypes(target):
    ctypes = sys.modules.get("ctypes")  # whoever has one of its functions has imported it
    if ctypes is None or not isinstance(target, ctypes._CFuncPtr):
        return None
    return ctypes.cast(target, ctypes.c_void_p).value


def _of_cffi(target):
    backend = sys.modules.get("_cffi_backend")
    if backend is None or not isinstance(target, backend.FFI.CData):
        return None
    ffi = backend.FFI()
    if ffi.typeof(target).kind not in ("function", "pointer"):
        raise TypeError(f"a custom call must be a pointer to a function, found {target!r}")
    return int(ffi.cast("uintptr_t", target))


def _of_capsule(target):
    if type(target).__name__ != "PyCapsule":
        return None
    import ctypes

    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    if api.PyCapsule_GetName(target) != b"xlac_ffi":
        raise TypeError(f"a capsule with a custom call must be named xlac_ffi, found {api.PyCapsule_GetName(target)!r}")
    return api.PyCapsule_GetPointer(target, b"xlac_ffi")


def address_of(target):
    """The address of the native function that `target` stands for; None for a function of Python's."""
    if isinstance(target, int) and not isinstance(target, bool):
        address = target
    else:
        address = next((found for found in (of(target) for of in (_of_ctypes, _of_cffi, _of_capsule)) if found is not None), None)
        if address is None:
            address = getattr(target, "address", None)  # a cfunc of Numba's
    if address is None:
        return None
    if not isinstance(address, int) or address < LEAST_ADDRESS:
        raise TypeError(f"a custom call must be a function or its address, found {target!r}")
    return address
