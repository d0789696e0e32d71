"""The plugin's extensions, for those that its Python package calls itself."""
import ctypes

FFI, XLAC = 5, 0x786C6163


class Extension(ctypes.Structure):
    """PJRT_Extension_Base."""


Extension._fields_ = [("struct_size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", ctypes.POINTER(Extension))]


class Api(ctypes.Structure):
    """The beginning of PJRT_Api."""
    _fields_ = [("struct_size", ctypes.c_size_t), ("extensions", ctypes.POINTER(Extension))]


def find(path, number):
    """The addresses of an extension's functions, in their order."""
    library = ctypes.CDLL(str(path))
    library.GetPjrtApi.restype = ctypes.POINTER(Api)
    extension = library.GetPjrtApi().contents.extensions
    while extension and extension.contents.type != number:
        extension = extension.contents.next
    if not extension:
        raise ImportError(f"{path} has no extension {number}: it is of another version than its Python package")
    size, head = extension.contents.struct_size, ctypes.sizeof(Extension)
    functions = (size - head) // ctypes.sizeof(ctypes.c_void_p)
    return list((ctypes.c_void_p * functions).from_address(ctypes.addressof(extension.contents) + head))
