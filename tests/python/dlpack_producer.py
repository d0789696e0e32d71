"""A DLPack producer of the tests' own, made with ctypes: it says whatever a test wants, and counts its deleter's calls."""
import ctypes
import threading

import numpy as np

P = ctypes.pythonapi
P.PyCapsule_New.restype = ctypes.py_object
P.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
P.PyCapsule_GetPointer.restype = ctypes.c_void_p
P.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
P.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
P.PyCapsule_GetName.restype = ctypes.c_char_p
P.PyCapsule_GetName.argtypes = [ctypes.py_object]

LEGACY, VERSIONED = b"dltensor", b"dltensor_versioned"
READ_ONLY, COPIED, PADDED = 1, 2, 4
# DLPack's (code, bits) of our element types
CODES = {"s1": (0, 1), "s2": (0, 2), "s4": (0, 4), "s8": (0, 8), "s16": (0, 16), "s32": (0, 32), "s64": (0, 64), "u1": (1, 1),
         "u2": (1, 2), "u4": (1, 4), "u8": (1, 8), "u16": (1, 16), "u32": (1, 32), "u64": (1, 64), "f16": (2, 16), "f32": (2, 32),
         "f64": (2, 64), "bf16": (4, 16), "c64": (5, 64), "c128": (5, 128), "pred": (6, 8), "f8e3m4": (7, 8), "f8e4m3": (8, 8),
         "f8e4m3b11fnuz": (9, 8), "f8e4m3fn": (10, 8), "f8e4m3fnuz": (11, 8), "f8e5m2": (12, 8), "f8e5m2fnuz": (13, 8),
         "f8e8m0fnu": (14, 8), "f6e2m3fn": (15, 6), "f6e3m2fn": (16, 6), "f4e2m1fn": (17, 4)}


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_number", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("steps", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("ctx", ctypes.c_void_p), ("deleter", Deleter)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("ctx", ctypes.c_void_p), ("deleter", Deleter),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]


def read(capsule):
    """The struct in a capsule that nobody has taken."""
    name = P.PyCapsule_GetName(capsule)
    struct = Versioned if name == VERSIONED else Legacy
    return struct.from_address(P.PyCapsule_GetPointer(capsule, name))


KEPT = []  # producers, for good: who has taken a struct may give it back at any time


class Producer:
    """Something with __dlpack__. `deleted` counts the deleter's calls."""

    def __init__(self, array=None, dtype="f32", *, versioned=True, version=(1, 1), flags=0, device=(1, 0), dims=None, steps=None,
                 code=None, lanes=1, data=None, offset=0, rank=None, deleter=True, keywords=True):
        self.array, self.deleted, self.calls, self.keywords, self.threads = array, 0, [], keywords, []
        self.versioned = versioned
        KEPT.append(self)
        dims = list(array.shape) if dims is None else dims
        if steps is None and array is not None and array.ndim:
            steps = [s // array.itemsize for s in array.strides]
        self.dims = (ctypes.c_int64 * max(len(dims), 1))(*dims)
        self.steps = (ctypes.c_int64 * max(len(steps), 1))(*steps) if steps else None
        address = data if data is not None or array is None else array.ctypes.data
        code, bits = CODES[dtype] if code is None else code
        tensor = Tensor(address or None, *device, len(dims) if rank is None else rank, code, bits, lanes, self.dims, self.steps, offset)
        self.callback = Deleter(self._delete) if deleter else Deleter()
        self.struct = Versioned(*version, None, self.callback, flags, tensor) if versioned else Legacy(tensor, None, self.callback)

    def _delete(self, address):
        assert address == ctypes.addressof(self.struct)
        self.threads.append(threading.get_ident())
        self.deleted += 1

    def __dlpack__(self, **kwargs):
        if not self.keywords and kwargs:
            raise TypeError("no keywords, please")
        self.calls.append(kwargs)
        self.capsule = P.PyCapsule_New(ctypes.addressof(self.struct), VERSIONED if self.versioned else LEGACY, None)
        return self.capsule

    def __dlpack_device__(self):
        return (self.struct.tensor.device, self.struct.tensor.device_number)


def consume(capsule):
    """Takes the tensor of a capsule as a consumer does; returns its struct and a function that gives it back."""
    name = P.PyCapsule_GetName(capsule)
    struct = read(capsule)
    used = VERSIONED_USED if name == VERSIONED else LEGACY_USED
    P.PyCapsule_SetName(capsule, used)
    return struct, lambda: struct.deleter(ctypes.addressof(struct))


LEGACY_USED, VERSIONED_USED = b"used_dltensor", b"used_dltensor_versioned"


def random_array(dtype, shape, seed=0):
    """Values of an element type that are sound for it."""
    import xlac

    rng = np.random.default_rng(seed)
    numbers = np.abs(rng.standard_normal(shape)) * 3
    if dtype[0] in "sfbc" and dtype != "f8e8m0fnu":
        numbers = numbers * rng.choice([-1, 1], shape)
    if dtype == "u1":
        numbers = numbers > 2
    return np.asarray(numbers).astype(xlac._core.numpy_dtype(dtype))
