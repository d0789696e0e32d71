"""What functions take for a program, and what they say about arguments that don't fit."""
import io
import pathlib
import pickle
import re

import ml_dtypes  # noqa: F401  (what a hint names)
import numpy as np
import pytest

import xlac

TEXT = "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] add(x, x)\n}\n"
ONES = np.ones(2, np.float32)
PACKAGE = pathlib.Path(xlac.__file__).parent


def programs(folder):
    path = folder / "m.hlo"
    path.write_text(TEXT)
    builder = xlac.Builder("m")
    x = builder.parameter(0, "f32[2]")
    builder.set_root(x + x)
    module = xlac.parse(TEXT)
    return [TEXT, TEXT.encode(), bytearray(TEXT.encode()), memoryview(TEXT.encode()), path, io.StringIO(TEXT), io.BytesIO(TEXT.encode()),
            module.to_bytes(), module.to_stablehlo().to_text(), builder, module]


FUNCTIONS = {
    "parse": lambda p: xlac.interpret(xlac.parse(p), ONES),
    "interpret": lambda p: xlac.interpret(p, ONES),
    "compile": lambda p: xlac.compile(p)(ONES),
    "verify": lambda p: xlac.interpret(xlac.verify(p), ONES),
    "run_parallel": lambda p: xlac.run_parallel(p, [(ONES,)])[0],
    "diff": lambda p: ONES * 2 if xlac.diff(p, ONES) is None else None,
    "propagate": lambda p: ONES * 2 if xlac.sharding.propagate(p).module.form == "mlir" else None,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", range(11))
def test_every_function_takes_every_kind_of_program(tmp_path, name, kind):
    assert np.asarray(FUNCTIONS[name](programs(tmp_path)[kind])).tolist() == [2, 2]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_no_program_is_named(name):
    for wrong in (3, None, [TEXT], object()):
        with pytest.raises(TypeError, match=f"expected a program: text, .* found {type(wrong).__name__}"):
            FUNCTIONS[name](wrong)
    with pytest.raises(FileNotFoundError, match="nowhere.hlo"):
        FUNCTIONS[name](pathlib.Path("nowhere.hlo"))


def test_a_module_is_given_back_as_it_is():
    module = xlac.parse(TEXT)
    assert xlac.parse(module) is module and xlac.verify(module) is module


@pytest.mark.parametrize("name", ["model.hlo", "a/b.mlir", "x.pb", "X.TXT", "program"])
def test_a_string_that_names_a_file_gets_the_hint_to_give_a_path(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program").write_text(TEXT)
    for function in FUNCTIONS.values():
        with pytest.raises(xlac.ParseError, match="is the name of a file") as caught:
            function(name)
        assert f"pathlib.Path({name!r})" in caught.value.hint


@pytest.mark.parametrize("text", ["", "nonsense", "HloModule m, x.hlo", "x.hlo\n", "module{}", "x" * 5000 + ".hlo", "a\0.hlo"])
def test_other_strings_are_read_as_programs(text):
    try:
        xlac.parse(text)
    except xlac.ParseError as error:
        assert "name of a file" not in str(error)


@pytest.mark.parametrize("arguments, code, words", [
    ((np.ones(2),), "ARGUMENT_TYPE", r"must be f32\[2\], found f64\[2\].*\n.*x.astype\(np.float32\)"),
    ((np.ones(3, np.float32),), "ARGUMENT_SHAPE", r"must be f32\[2\], found f32\[3\]"), ((ONES, ONES), "ARGUMENT_COUNT", "expected 1 argument"),
    ((object(),), "ARGUMENT_TYPE", "can't be made an array")])
def test_arguments_that_do_not_fit_are_type_and_value_errors(arguments, code, words):
    for call in (xlac.compile(TEXT), lambda *a: xlac.interpret(TEXT, *a)):
        for expected in (TypeError, ValueError, xlac.ArgumentError, xlac.Error):
            with pytest.raises(expected, match=words) as caught:
                call(*arguments)
        assert caught.value.code == getattr(xlac.Code, code)
        again = pickle.loads(pickle.dumps(caught.value))
        assert type(again) is xlac.ArgumentError and str(again) == str(caught.value)


@pytest.mark.parametrize("want, name", [
    ("f8e5m2[2]", "float8_e5m2"), ("s4[2]", "int4"), ("bf16[2]", "bfloat16"), ("s32[2]", "int32"), ("pred[2]", "bool"), ("c64[2]", "complex64"),
    ("f16[2]", "float16")])
def test_the_hint_names_numpys_type(want, name):
    module = xlac.parse(f"HloModule m\nENTRY e {{\n  ROOT x = {want} parameter(0)\n}}\n")
    with pytest.raises(xlac.ArgumentError) as caught:
        xlac.interpret(module, np.ones(2))
    written = re.search(r"converted silently: pass x\.astype\((.*)\)", caught.value.hint)[1]  # also with NumPy 1.26, which has no np.bool
    assert written == ("bool" if name == "bool" else f"np.{name}" if hasattr(np, name) else f"ml_dtypes.{name}")
    assert xlac.interpret(module, np.ones(2).astype(eval(written))).dtype == name


@pytest.mark.parametrize("options, words", [
    ({"threads": -1}, "threads must be a number from 0 .*found -1"), ({"threads": 2.0}, "threads must be a whole number"),
    ({"threads": "2"}, "threads must be a whole number"), ({"threads": 1 << 40}, "threads must be a number from 0"),
    ({"lanes": -1}, "lanes must be a number from 0 .*found -1"), ({"lanes": {"a": -1}}, r"lanes\['a'\] must be a number from 0"),
    ({"lanes": {"a": "b"}}, r"lanes\['a'\] must be a whole number"), ({"lanes": {1: 1}}, "strings; found 1"), ({"lanes": 1 << 40}, "lanes must be"),
    ({"lanes": "x"}, "lanes must be a number or a dict, found 'x'"), ({"lanes": [("a", 1)]}, "lanes must be a number or a dict"),
    ({"lanes": 1.5}, "lanes must be a number or a dict"), ({"lanes": b""}, "lanes must be"), ({"async_work": -1}, "async_work must be a number from 0")])
def test_options_of_compile_and_load_are_checked(options, words):
    bytes_of = xlac.compile(TEXT).serialize()
    for function in (lambda: xlac.compile(TEXT, **options), lambda: xlac.load(bytes_of, **options)):
        with pytest.raises(xlac.ArgumentError, match=words):
            function()


def test_threads_of_sessions_and_kernels_are_checked():
    clusters = xlac.cluster('node { name: "a" op: "NoOp" }')
    kernel = xlac.kernels.of(xlac.compile(TEXT))[0]
    for threads in (-1, "2", 1 << 40):
        with pytest.raises(xlac.ArgumentError, match="threads must be"):
            clusters.session(threads=threads)
        with pytest.raises(xlac.ArgumentError, match="threads must be"):
            xlac.kernels.run(kernel, ONES, threads=threads)
    assert xlac.kernels.run(kernel, ONES, threads=2).tolist() == [2, 2]


def test_options_that_are_right_still_are():
    for options in ({"threads": np.int64(2)}, {"threads": 0}, {"lanes": 0}, {"lanes": np.int32(2)}, {"lanes": {}}, {"lanes": {"a": 0, "": 2}},
                    {"async_work": 1 << 40}, {"blas": True}):
        assert xlac.compile(TEXT, **options)(ONES).tolist() == [2, 2]
    with pytest.raises(xlac.ArgumentError, match="donate must be a number from 0"):
        xlac.compile(TEXT, donate=-1)


@pytest.mark.parametrize("form, wrong, near", [
    ("hlo", "dc", "dce"), ("hlo", "constant-fold", "constant-folding"), ("mlir", "sdy-propagat", "sdy-propagation-pipeline"),
    ("hlo", "sdy-propagat", "sdy-propagation-pipeline"), ("mlir", "stablehlo-refine-shape", "stablehlo-refine-shapes")])
def test_unknown_passes_are_answered_with_the_nearest_names(form, wrong, near):
    module = xlac.parse(TEXT) if form == "hlo" else xlac.parse(TEXT).to_stablehlo()
    with pytest.raises(xlac.Error, match="unknown pass") as caught:
        module.run(wrong)
    hint = caught.value.hint
    assert caught.value.code == xlac.Code.BAD_PIPELINE and re.match(rf"did you mean {near}[,?]", hint) and "--list-passes" in hint
    assert hint.count(",") <= 4


def test_the_number_of_passes_in_the_hint_is_right():
    counts = []
    for module in (xlac.parse(TEXT), xlac.parse(TEXT).to_stablehlo()):
        with pytest.raises(xlac.Error) as caught:
            module.run("zzzzzzzzzzzzzzz")
        counts.append(int(re.fullmatch(r"there are (\d+) passes for .*", caught.value.hint)[1]))
    rows = re.findall(r"^PASS\(", (pathlib.Path(__file__).parents[2] / "csrc/pipeline/passes.def").read_text(), re.M)
    assert sum(counts) == len(rows)


def test_options_of_passes_are_named():
    with pytest.raises(xlac.Error) as caught:
        xlac.parse(TEXT).run("constant-folding{max-element=3}")
    assert caught.value.hint.startswith("did you mean max-elements? options are: max-elements, ")
    with pytest.raises(xlac.Error) as caught:
        xlac.parse(TEXT).run("dce{x=3}")
    assert caught.value.hint == "there are no options"


def test_kernels_needs_no_import_of_its_own():
    import subprocess
    import sys

    code = f"import xlac; print(xlac.kernels.of(xlac.compile({TEXT!r}))[0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "kernel" in done.stdout, done.stderr


def test_a_graph_in_a_missing_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("nope.pb", "nope.pbtxt", pathlib.Path("nope")):
        with pytest.raises(FileNotFoundError, match="nope"):
            xlac.cluster(name)
    text = 'node { name: "a" op: "NoOp" }'
    (tmp_path / "graph.pbtxt").write_text(text)
    for graph in ("graph.pbtxt", pathlib.Path("graph.pbtxt"), text, io.StringIO(text), open("graph.pbtxt", "rb")):
        assert xlac.cluster(graph).nodes[2:] == ["a"]
    with pytest.raises(xlac.ParseError):
        xlac.cluster("nope")


def test_codes_have_names_and_no_module_has_its_own():
    named = {name: value for name, value in vars(xlac.Code).items() if not name.startswith("_")}
    assert {value: name for name, value in named.items()} == {code: name for code, (name, _) in xlac._core.error_table().items()}
    for path in PACKAGE.glob("*.py"):
        if path.name != "codes.py":
            assert not re.findall(r"Error\(.*, \d{3}\b|\.code [=!]= \d+", path.read_text()), path.name


class Emptying:
    """An array whose making empties the list that it is in."""

    def __init__(self, items):
        self.items = items

    def __array__(self, dtype=None, copy=None):
        self.items.clear()
        return np.ones(4, np.float32)


def test_a_list_that_changes_while_it_is_read():
    module = xlac.parse("""HloModule m
        ENTRY e { p = (f32[4], f32[4], f32[4]) parameter(0)  a = f32[4] get-tuple-element(p), index=0
                  b = f32[4] get-tuple-element(p), index=2  ROOT s = f32[4] add(a, b) }""")
    for run in (xlac.compile(module), lambda x: xlac.interpret(module, x)):
        for _ in range(20):
            items = []
            items += [Emptying(items), np.ones(4, np.float32) + 1, np.ones(4, np.float32) + 2]
            assert np.array_equal(run(items), np.full(4, 4, np.float32))
            assert items == []


SCALAR = "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[] add(x, x)\n}\n"


def test_none_is_no_number():
    """NumPy would make a NaN of it."""
    for call in (xlac.compile(SCALAR), xlac.compile(SCALAR, device="interp"), lambda x: xlac.interpret(SCALAR, x)):
        with pytest.raises(xlac.Error, match="None") as info:
            call(None)
        assert isinstance(info.value, TypeError)


def test_a_function_is_lowered_first():
    def loss(x):
        return x

    for use in (xlac.parse, xlac.compile, xlac.explore):
        with pytest.raises(TypeError, match=r"jax\.jit\(loss\)\.lower\(\*arguments\)"):
            use(loss)
    jax = pytest.importorskip("jax")
    with pytest.raises(TypeError, match=r"loss\.lower\(\*arguments\)"):
        xlac.compile(jax.jit(loss))


def test_a_mark_of_byte_order_is_no_part_of_a_program(tmp_path):
    (tmp_path / "p.hlo").write_text("\ufeff" + SCALAR)
    for program in ("\ufeff" + SCALAR, ("\ufeff" + SCALAR).encode(), tmp_path / "p.hlo"):
        assert xlac.parse(program).name == "m"
