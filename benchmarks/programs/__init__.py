"""Programs of many kinds, written as JAX users write them, that no part of xlac was tuned for. `benchmarks/unseen.py` times them.

Each is a function with the shapes and dtypes of its arguments beside it. Those of a file that says `HELD = True` were written after the
engine was last worked on and have been looked at by nobody who did: their figures say whether what was learnt holds for other programs.
Once they were looked at, the line goes, and others are written."""
import importlib
import pathlib
import sys

PROGRAMS = {}  # name -> (function, argument shapes, whether it is held back)


def program(*shapes):
    """Shapes as "f32[4,8]", "s32[16]<100" for integers from 0 to 99, "f32[8]>0" for positive numbers."""
    def add(function):
        module = sys.modules[function.__module__]
        name = function.__module__.rsplit(".", 1)[1] + "." + function.__name__
        PROGRAMS[name] = (function, shapes, getattr(module, "HELD", False))
        return function

    return add


def load():
    """All programs by name. Importing them needs jax."""
    for path in sorted(pathlib.Path(__file__).parent.glob("[a-z]*.py")):
        importlib.import_module(f"{__name__}.{path.stem}")
    return PROGRAMS
