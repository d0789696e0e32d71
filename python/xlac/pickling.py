"""Modules, executables and buffers pickle and copy: modules as serialized programs, executables as Executable.serialize says, buffers as
their elements. The package registers these with copyreg, so that pickle, copy and multiprocessing find them."""
from . import _core


def module(data, format):
    """A pickled Module."""
    return _core.parse(data, format=format, allow_unregistered=True)


def reduce_module(module_):
    """HLO as text, which keeps names and order; MLIR with its locations."""
    if module_.form == "mlir":
        return module, (module_.to_text("mlir", locations=True), "mlir")
    return module, (module_.to_text("hlo"), "hlo")


def load(data, device, as_buffers, as_shards=False):
    """A pickled Executable. Where there is no such device, any that runs the program would do; but that is for the caller to say."""
    from . import load as load_any

    return load_any(data, device=device, results="sharded" if as_shards else "buffer" if as_buffers else "numpy")


def reduce_executable(executable):
    return load, (executable.serialize(), executable.device, executable._as_buffers, executable._as_shards)


def buffer(array, readonly):
    """A pickled Buffer."""
    made = _core.asarray(array)
    if readonly:
        array.flags.writeable = False
        made = _core.asarray(array)
    return made


def reduce_buffer(buffer_):
    return buffer, (buffer_.numpy().copy(), buffer_.readonly)
