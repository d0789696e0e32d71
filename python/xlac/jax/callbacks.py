"""Python callbacks of JAX programs: what the plugin calls to run a Python object on the arrays of a custom call."""
import ctypes

import ml_dtypes
import numpy as np


class Buffer(ctypes.Structure):
    """xlac_ffi_buffer."""
    _fields_ = [("data", ctypes.c_void_p), ("dims", ctypes.POINTER(ctypes.c_int64)), ("minor_to_major", ctypes.POINTER(ctypes.c_int64)),
                ("count", ctypes.c_int64), ("bytes", ctypes.c_uint64), ("dtype", ctypes.c_uint32), ("rank", ctypes.c_uint32)]


TOKEN = 17
# By the numbers of xlac_ffi.h.
DTYPES = {1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64", 10: "float16",
          11: "float32", 12: "float64", 15: "complex64", 18: "complex128"}
ML_DTYPES = {16: "bfloat16", 19: "float8_e5m2", 20: "float8_e4m3fn", 21: "int4", 22: "uint4", 23: "float8_e4m3b11fnuz",
             24: "float8_e5m2fnuz", 25: "float8_e4m3fnuz", 26: "int2", 27: "uint2", 28: "float8_e4m3", 29: "float8_e3m4",
             30: "int1", 31: "uint1", 32: "float4_e2m1fn", 33: "float8_e8m0fnu"}


def dtype_of(number):
    return np.dtype(DTYPES[number]) if number in DTYPES else np.dtype(getattr(ml_dtypes, ML_DTYPES[number]))


def view(buffer):
    """The array where it is: for as long as the call goes on."""
    dtype, dims = dtype_of(buffer.dtype), tuple(buffer.dims[:buffer.rank])
    memory = (ctypes.c_char * buffer.bytes).from_address(buffer.data)
    order = tuple(reversed(buffer.minor_to_major[:buffer.rank]))  # the dimension of the longest steps first
    return np.frombuffer(memory, dtype).reshape([dims[d] for d in order]).transpose(np.argsort(order) if order else None)


def operand(buffer):
    if buffer.dtype == TOKEN:
        return None
    array = view(buffer).copy()  # it may outlive the call
    array.flags.writeable = False
    return array


def fill(result, value):
    if result.dtype == TOKEN:
        return
    to = view(result)
    value = np.asarray(value)
    if value.shape != to.shape or value.dtype != to.dtype:
        raise RuntimeError(f"Python callback returned {value.dtype}{list(value.shape)}; expected {to.dtype}{list(to.shape)}")
    to[...] = value


class InPlace:
    """What `jax.experimental.buffer_callback` shows of an array: it lies where the program has it, for as long as the call goes on."""

    def __init__(self, buffer, writeable):
        self._array, self.writeable = view(buffer), writeable
        self.shape, self.ndim, self.dtype = self._array.shape, self._array.ndim, self._array.dtype

    def __array__(self, dtype=None, copy=None):
        array = self._array.view()
        array.flags.writeable = self.writeable
        return np.array(array, dtype, copy=copy) if copy or (dtype is not None and dtype != self.dtype) else array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class Context:
    """An ExecutionContext of a CPU's."""

    @property
    def stage(self):
        from jax.experimental import buffer_callback
        return buffer_callback.ExecutionStage.EXECUTE

    @property
    def stream(self):
        import jax
        raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: XLA FFI GPU context is not available: this runs on a CPU")


def run(function, operands, results):
    values = function(*map(operand, operands))
    if len(values) != len(results):
        raise RuntimeError(f"Python callback returned {len(values)} results; expected {len(results)}")
    for result, value in zip(results, values):
        fill(result, value)


def run_in_place(function, operands, results):
    function(Context(), *(InPlace(b, False) for b in operands), *(InPlace(b, True) for b in results))


class NoMesh:
    """A callback's arrays are on one device: the mesh that its caller's thread may have from jax.set_mesh, for the program whose shards they are,
    is none for what the function computes of them. (XLA calls such functions on threads of its own, which have none.)"""

    def __enter__(self):
        from jax._src import config, mesh
        unset = getattr(getattr(config, "config_ext", None), "unset", None)
        # jax 0.11 keeps them beside its meshes, older ones among the settings
        contexts = (getattr(mesh, name, None) or getattr(config, name, None) for name in ("abstract_mesh_context_manager", "device_context"))
        self.before = [(context, context.swap_local(unset)) for context in contexts if unset is not None and hasattr(context, "swap_local")]

    def __exit__(self, *_):
        for context, value in self.before:
            context.set_local(value)


def describe(error, size):
    """Two texts with an end each: what was raised, and that with its traceback, of which the middle is left out where it is long."""
    import traceback
    prefix, traced = "CpuCallback error calling callback: ", error.__traceback__
    while traced.tb_next and traced.tb_frame.f_code.co_filename == __file__:  # the user's frames
        traced = traced.tb_next
    last = (prefix + "".join(traceback.format_exception_only(error)).strip()).encode()[:size // 4]
    text = (prefix + "".join(traceback.format_exception(type(error), error, traced)).strip()).encode()
    room = size - len(last) - 2
    if len(text) > room:
        left_out = b"\n  [some frames are left out]\n"
        half = (room - len(left_out)) // 2
        text = text[:half] + left_out + text[-half:]
    return last + b"\0" + text.replace(b"\0", b"?") + b"\0"


def tell(error, place, size):
    """Writes what was raised to C's place for an error, of `size` bytes. What the call returns then."""
    text = describe(error, size)
    ctypes.memmove(place, text, len(text))
    return -1


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(Buffer), ctypes.c_uint32,
                  ctypes.POINTER(Buffer), ctypes.c_void_p, ctypes.c_uint64)
def call(function, in_place, n_operands, operands, n_results, results, error, error_size):
    try:
        with NoMesh():
            (run_in_place if in_place else run)(function, operands[:n_operands], results[:n_results])
        return 0
    except BaseException as e:  # nothing may leave by way of C
        return tell(e, error, error_size)


ADDRESS = ctypes.cast(call, ctypes.c_void_p).value
