"""Programs of many kinds, written as JAX users write them, that no part of xlac was tuned for. `benchmarks/unseen.py` times them.

Each is a function with the shapes and dtypes of its arguments beside it. Half of them, by a coin (the parity of a digest of the name,
which nobody chose), may be looked at while the engine is being made faster; the other half is for the end, to see whether what was
learnt holds for programs that nobody looked at."""
import hashlib
import importlib
import pathlib

PROGRAMS = {}  # name -> (function, argument shapes, whether it is held back)


def program(*shapes):
    """Shapes as "f32[4,8]", "s32[16]<100" for integers from 0 to 99, "f32[8]>0" for positive numbers."""
    def add(function):
        name = function.__module__.rsplit(".", 1)[1] + "." + function.__name__
        PROGRAMS[name] = (function, shapes, hashlib.sha256(name.encode()).digest()[0] % 2 == 1)
        return function

    return add


def load():
    """All programs by name. Importing them needs jax."""
    for path in sorted(pathlib.Path(__file__).parent.glob("[a-z]*.py")):
        importlib.import_module(f"{__name__}.{path.stem}")
    return PROGRAMS
