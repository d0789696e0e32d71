"""Custom calls that were made for XLA (jax.ffi.register_ffi_target): handed to the plugin, and to XLA's own CPU as before."""
import ctypes
import logging

from . import extension

logger = logging.getLogger(__name__)


class HandlerArgs(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("name_size", ctypes.c_size_t), ("handler", ctypes.c_void_p),
                ("platform", ctypes.c_char_p), ("platform_size", ctypes.c_size_t), ("traits", ctypes.c_int)]


def register_function(path):
    """The plugin's register_handler."""
    register_type, add_user_data, register_handler = extension.find(path, extension.FFI)
    return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(HandlerArgs))(register_handler)


def address(capsule):
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name(capsule))


class Handlers:
    """What jaxlib calls for every custom call that is registered for the CPU."""

    def __init__(self, path, platform, forward):
        self.register = register_function(path)
        self.platform, self.forward = platform, forward

    def __call__(self, name, fn, platform, api_version=0, traits=0):
        if self.forward:
            self.forward(name, fn, platform, api_version, traits)
        stages = fn if isinstance(fn, dict) else {"execute": fn}
        if api_version != 1 or set(stages) != {"execute"}:
            logger.info("xlac does not call %s: it has stages (%s), or is not of the typed FFI", name, ", ".join(stages))
            return
        text = name if isinstance(name, bytes) else name.encode()
        if text.startswith(b"lapack_"):
            return  # jaxlib's, of which xlac has its own
        args = HandlerArgs(ctypes.sizeof(HandlerArgs), text, len(text), address(stages["execute"]), self.platform, len(self.platform), 0)
        self.register(args)  # fails for want of memory only


def install(path, platform, as_cpu):
    """Handlers for the CPU go to xlac, and to XLA's CPU where that is beside it; those for other names of the plugin's to it alone."""
    from jaxlib import xla_client
    cpu = getattr(xla_client, "_xla", None)
    forward = getattr(cpu, "register_custom_call_target", None) if not as_cpu else None
    xla_client.register_custom_call_handler("cpu", Handlers(path, b"cpu", forward))
    if platform != "cpu":
        xla_client.register_custom_call_handler(platform, Handlers(path, platform.encode(), None))
