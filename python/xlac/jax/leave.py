"""The end of the process: work in flight comes to its end before Python does.

Python ends each thread that asks for its lock once it is on its way out, and a queue's thread does so to call a Python
function or to give back an array of NumPy's. So clients are asked to leave while the lock can still be had.
"""
import atexit
import ctypes

from . import extension

SLICE = 200  # milliseconds; Ctrl-C is heard after each


class LeaveArgs(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("slot", ctypes.c_void_p),
                ("milliseconds", ctypes.c_int64), ("over", ctypes.c_bool)]


class Clients:
    """The words in which the plugin's clients lie from their creation on."""

    def __init__(self, path):
        self.function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(LeaveArgs))(extension.find(path, extension.XLAC)[0])
        self.slots = []
        atexit.register(self.leave)

    def slot(self):
        """The address of a new one."""
        self.slots.append(ctypes.c_void_p())
        return ctypes.addressof(self.slots[-1])

    def leave(self):
        """From here on calls are over when they return; what was called before is waited for, without Python's lock."""
        for slot in self.slots:
            args = LeaveArgs(struct_size=ctypes.sizeof(LeaveArgs), slot=ctypes.addressof(slot), milliseconds=SLICE)
            while not args.over:
                self.function(args)
