"""For tests of programs that XLA compiles: assert_same, golden programs, arrays and modules for hypothesis, tolerances by element type.
As a pytest plugin (installed with xlac, under the name "xlac"), it has the fixture `golden` and the option --update."""
import pathlib

import numpy as np

from . import _core

__all__ = ["TOLERANCES", "arguments", "arrays", "assert_close", "assert_same", "modules", "tolerance"]

# (relative, absolute) by element type: some ulps of what a sum of a few thousand may lose. Whole numbers and pred are exact.
TOLERANCES = {"f64": (1e-12, 1e-13), "f32": (1e-5, 1e-6), "tf32": (2e-3, 2e-3), "f16": (5e-3, 1e-3), "bf16": (3e-2, 1e-2), "c64": (1e-5, 1e-6),
              "c128": (1e-12, 1e-13)}
NARROW = (0.15, 0.05)  # floats of 8 bits and fewer


def tolerance(dtype):
    """(rtol, atol) for arrays of a NumPy dtype, or of an element type's name."""
    from . import dtypes

    name = dtype if isinstance(dtype, str) and dtype in TOLERANCES else dtypes.of_numpy_name(np.dtype(dtype).name)
    kinds = {row["name"]: row["kind"] for row in _core.dtype_table()}
    if name in TOLERANCES:
        return TOLERANCES[name]
    return NARROW if kinds.get(name) == "float" else (0, 0)


def flat(value, path="result"):
    """(path, array) of the arrays in tuples, lists and dicts; None is left out."""
    if isinstance(value, dict):
        for key in sorted(value):
            yield from flat(value[key], f"{path}[{key!r}]")
    elif isinstance(value, (tuple, list)):
        for i, part in enumerate(value):
            yield from flat(part, f"{path}[{i}]")
    elif value is not None:
        yield path, np.asarray(value)


def assert_close(result, wanted, *, rtol=None, atol=None):
    """Two results (arrays, or tuples, lists and dicts of them) have the same structure, element types and shapes, and their elements differ by
    no more than atol + rtol * |wanted|, by default what `tolerance` says of the element type. NaN is NaN. Raises AssertionError, with the place."""
    from .values import difference

    mine, other = list(flat(result)), list(flat(wanted))
    assert [path for path, _ in mine] == [path for path, _ in other], f"other structures: {[p for p, _ in mine]} and {[p for p, _ in other]}"
    for (path, a), (_, b) in zip(mine, other):
        relative, absolute = tolerance(b.dtype)
        said = difference(path, a, b, relative if rtol is None else rtol, absolute if atol is None else atol)
        assert said is None, said


def assert_same(a, b, *arguments, seeds=range(3), rtol=None, atol=None, ways=("compiled", "compiled")):
    """Two programs (what xlac.parse takes) compute the same, on the arguments given or on random ones, once for each seed. `ways` says how each
    is run, as for xlac.diff: assert_same(m, m, ways=("interpreter", "compiled")) compares two engines. Raises AssertionError."""
    from . import parse
    from .difference import Way
    from .values import draw_inputs

    first, second = parse(a), parse(b)
    types = [[p.bare_type for p in module.entry.parameters] for module in (first, second)]
    if first.form == second.form:
        assert types[0] == types[1], f"the programs have other parameters: {types[0]} and {types[1]}"
    for seed in (0,) if arguments else seeds:
        given = arguments or tuple(draw_inputs((first.to_hlo() if first.form == "mlir" else first).entry.parameters, seed))
        try:
            assert_close(Way(ways[0]).run(first, given), Way(ways[1]).run(second, given), rtol=rtol, atol=atol)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}" if not arguments else str(error)) from None


# --- hypothesis ---

def arrays(dtype="f32", shape=None, *, max_dims=3, max_side=8, finite=True):
    """A strategy of arrays of an element type, by its name in HLO; of random shapes where none is given."""
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as of_numpy

    kind = _core.numpy_dtype(dtype)
    shapes = st.just(tuple(shape)) if shape is not None else of_numpy.array_shapes(min_dims=0, max_dims=max_dims, min_side=1, max_side=max_side)
    if kind.kind in "biuc" or kind.name in ("float16", "float32", "float64"):
        elements = of_numpy.from_dtype(kind, allow_nan=not finite, allow_infinity=not finite) if kind.kind in "fc" else None
        return of_numpy.arrays(kind, shapes, elements=elements)
    floats = st.floats(-8, 8, width=32) if kind.name.startswith(("bfloat", "float")) else st.integers(0, 1)
    return of_numpy.arrays(np.float32, shapes, elements=floats).map(lambda array: array.astype(kind))


def arguments(program, **options):
    """A strategy of arguments for a program: a list of arrays."""
    from hypothesis import strategies as st

    from . import parse

    return st.tuples(*(arrays(p.dtype, p.shape, **options) for p in parse(program).entry.parameters)).map(list)


UNARY = ("abs", "negate", "tanh", "cosine", "floor", "exponential")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum")


def modules(*, shape=(4, 3), dtype="f32", max_ops=12):
    """A strategy of programs: elementwise ops, transposes, broadcasts, sums and selects of two parameters. They are valid, and shrink to few ops."""
    from hypothesis import strategies as st

    from .builder import Builder

    @st.composite
    def build(draw):
        b = Builder("drawn")
        values = [b.parameter(0, f"{dtype}[{','.join(map(str, shape))}]"), b.parameter(1, f"{dtype}[{','.join(map(str, shape))}]")]
        for _ in range(draw(st.integers(1, max_ops))):
            x, y = (values[draw(st.integers(0, len(values) - 1))] for _ in range(2))
            kind = draw(st.sampled_from(("unary", "binary", "select", "sum")))
            if kind == "unary":
                values.append(getattr(b, draw(st.sampled_from(UNARY)))(x))
            elif kind == "binary":
                values.append(getattr(b, draw(st.sampled_from(BINARY)))(x, y))
            elif kind == "select":
                values.append(b.select(b.compare(x, y, direction="LT"), x, y))
            else:
                values.append(b.broadcast(b.reduce(x, 0.0, dimensions=[1], to_apply="add"), type=x.type, dimensions=[0]))
        return b.build(values[-1])

    return build()


# --- pytest ---

def pytest_addoption(parser):
    """--update, unless another plugin has it."""
    group = parser.getgroup("xlac")
    try:
        group.addoption("--update", action="store_true", default=False, help="write the golden programs that tests compare with anew")
    except ValueError:
        pass


class Golden:
    """Compares programs with files beside the test, golden/TEST.hlo; with --update it writes them."""

    def __init__(self, folder, test, update):
        self.folder, self.test, self.update, self.used = pathlib.Path(folder), test, update, set()

    def __call__(self, program, name=None):
        """`program` is what xlac.parse takes, or text that is compared as it is. `name` tells several of one test apart."""
        from . import parse

        form = "text" if isinstance(program, str) and not looks_like_a_program(program) else parse(program).form
        suffix = {"text": "txt", "mlir": "mlir", "hlo": "hlo"}[form]
        text = program if form == "text" else parse(program).to_text(metadata=False) if form == "hlo" else parse(program).to_text()
        path = self.folder / f"{self.test}{'' if name is None else '-' + name}.{suffix}"
        assert path not in self.used, f"{path.name} is compared twice: give a name"
        self.used.add(path)
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        assert path.exists(), f"there is no {path}: pytest --update writes it"
        wanted = path.read_text()
        assert text == wanted, differing(text, wanted, path)


def looks_like_a_program(text):
    return text.lstrip().startswith(("HloModule", "module", "func.func", "#", "//"))


def differing(text, wanted, path):
    import difflib

    lines = difflib.unified_diff(wanted.splitlines(), text.splitlines(), str(path), "now", lineterm="")
    return "the program has changed (pytest --update takes it as it is):\n" + "\n".join(list(lines)[:60])


def _golden_fixture():
    import pytest

    @pytest.fixture
    def golden(request):
        """Compares a program with the one that is kept for this test: golden(module)."""
        test = "".join(c if c.isalnum() or c in "-_." else "_" for c in request.node.name)
        return Golden(request.path.parent / "golden", test, request.config.getoption("--update"))

    return golden


def __getattr__(name):
    """The fixture is made when pytest looks for it, so that pytest is needed for nothing else here."""
    if name == "golden":
        globals()["golden"] = _golden_fixture()
        return globals()["golden"]
    raise AttributeError(f"module 'xlac.testing' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), "golden"})
