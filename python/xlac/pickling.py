"""Modules, executables and buffers pickle and copy: modules as serialized programs, executables as Executable.serialize says, buffers as
their elements. Computations and instructions do with the module that they are of, which is there once for all that are pickled together.
The package registers these with copyreg, so that pickle, copy and multiprocessing find them."""
from . import _core
from .codes import Code
from .errors import ArgumentError


def module(data, format):
    """A pickled Module."""
    return _core.parse(data, format=format, allow_unregistered=True)


def reduce_module(module_):
    """HLO as text, which keeps names and order; MLIR with its locations."""
    if module_.form == "mlir":
        return module, (module_.to_text("mlir", locations=True), "mlir")
    return module, (module_.to_text("hlo"), "hlo")


def by_calls(module_):
    """Functions and regions of an MLIR module in the order in which calls from main and from functions that nobody calls meet them: regions have no
    names, and a module has them in another order than what its text is read as."""
    every = module_.computations
    called = {c for one in every for op in one for c in op.called}
    stack, order = [c for c in reversed(every) if c not in called and c != module_.entry] + [module_.entry], {}
    while stack:
        here = stack.pop()
        if here not in order:
            order[here] = None
            stack.extend(c for op in reversed(here.instructions) for c in reversed(op.called))
    return list(order)


def is_wrapped(computation_):
    """Whether HLO's text has no such computation, since async ops wrap it: one op of parameters, which is written as that op."""
    if any(op.opcode != "parameter" and op != computation_.root for op in computation_):
        return False
    return any(op.opcode == "async-start" and computation_ in op.called for c in computation_.module.computations for op in c)


def computation(module_, key):
    """A pickled Computation."""
    return module_.computation(key) if isinstance(key, str) else by_calls(module_)[key]


def reduce_computation(computation_):
    """By its name in HLO, by its place in MLIR."""
    len(computation_)  # raises Error for one that was removed
    module_ = computation_.module
    if module_.form == "mlir":
        return computation, (module_, by_calls(module_).index(computation_))
    if computation_ != module_.entry and is_wrapped(computation_):
        raise ArgumentError(f"computation {computation_.name} can't be pickled: it is what an async op wraps, which HLO text writes without it",
                            Code.BAD_ARGUMENT, hint="pickle the module, or the async-start op, and take the computation from its `called`")
    return computation, (module_, computation_.name)


def instruction(computation_, key):
    """A pickled Instruction."""
    return computation_[key]


def reduce_instruction(op):
    """The same of an op, whose computation is pickled with it."""
    home = op.computation  # raises Error for one that was removed
    return instruction, (home, op.name if op.module.form == "hlo" else home.instructions.index(op))


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
