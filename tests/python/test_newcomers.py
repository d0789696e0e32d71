"""Mistakes that newcomers make in Python: each error says what was expected and what to do instead."""
import pathlib
import re

import numpy as np
import pytest

import xlac
import xlac.sharding

TEXT = """HloModule m
ENTRY e {
  x = f32[2,3] parameter(0)
  w = f32[3,4] parameter(1)
  ROOT y = f32[2,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
X, W = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
MESH = xlac.sharding.Mesh({"data": 4, "model": 2})


@pytest.fixture(scope="module")
def exe():
    return xlac.compile(TEXT)


def builder():
    b = xlac.Builder("b")
    return b, b.parameter(0, "f32[2,3]")


@pytest.mark.parametrize("call, words", [
    (lambda e: e((X, W)), "executable\\(\\*arguments"), (lambda e: e({"x": X, "w": W}), "executable\\(\\*\\*arguments"),
    (lambda e: xlac.interpret(e, X, W), "compiled already: call it"), (lambda e: xlac.verify(e), "compiled already"),
    (lambda e: e.memory["peak"], "'peak_bytes'"), (lambda e: e.cost["flop"], "'flops'"),
    (lambda e: xlac.load(e), "load takes the bytes.*found Executable"), (lambda e: xlac.load(TEXT.encode()), "xlac.compile compiles it"),
    (lambda e: xlac.compile(TEXT, donate="x"), "numbers of parameters, found 'x'"), (lambda e: xlac.set_memory_limit(-1), "bytes must be a number from 0"),
    (lambda e: xlac.jit, "use xlac.compile"), (lambda e: xlac.parse(TEXT).run(3), "a list of passes; found int"),
    (lambda e: xlac.parse(TEXT).run("cse;dce"), "expected ',' or the end of the pipeline, found ';'"),
    (lambda e: xlac.parse(TEXT, format="mlir"), "this is HLO, read as MLIR"),
    (lambda e: xlac.sharding.Mesh(["data"]), "axes with sizes, found \\['data'\\]"), (lambda e: xlac.sharding.Sharding(MESH, ["dat"]), '"dat"(?s:.*)"data"=4'),
    (lambda e: xlac.cluster(b"", min_cluster=2), "did you mean min_cluster_size"),
])
def test_calls(exe, call, words):
    with pytest.raises((xlac.Error, TypeError, KeyError, AttributeError), match=words) as caught:
        call(exe)
    assert "op arg 0" not in str(caught.value)


@pytest.mark.parametrize("make, words", [
    (lambda b, p: b.parameter(1, (2, 3)), r'\("f32", \(2, 3\)\)'), (lambda b, p: b.parameter("x", "f32[2]"), "a parameter has a number, found 'x'"),
    (lambda b, p: b.reduce(p, 0, axis=1, to_apply="add"), "reduce has dimensions, to_apply"), (lambda b, p: b.transpose(p, dimension=[0]), "did you mean dimensions"),
    (lambda b, p: b.reduce(p, 0, dimensions=[1], to_apply=lambda x, y: x + y), 'a word such as "add"'),
    (lambda b, p: b.reduce(p, 0, dimensions=[1], to_apply="sum"), '"add"'), (lambda b, p: b.exp(p), "use exponential"), (lambda b, p: b.sum(p), "reduce"),
    (lambda b, p: b.transpos(p), "use transpose"), (lambda b, p: b.compare(p, p, "=<"), "expected EQ, NE"),
    (lambda b, p: b.op("multipy", p, p), "did you mean multiply"), (lambda b, p: b.module.entry.add("qqqq", p.instruction), "docs/ops.md"),
])
def test_builders(make, words):
    with pytest.raises((xlac.Error, AttributeError), match=words):
        make(*builder())


def test_what_could_be_meant_is_taken():
    b, p = builder()
    assert b.broadcast(p, "f32[5,2,3]", [1, 2]).shape == (5, 2, 3) and b.reshape(p, "f32[6]").shape == (6,) and b.compare(p, p, "<=").dtype == "pred"
    assert xlac.parse(TEXT).run(["cse", "dce"]).stats() == xlac.parse(TEXT).run("cse,dce").stats()
    assert not hasattr(b, "__array__") and not hasattr(b, "_nothing")


@pytest.mark.parametrize("function, words", [(lambda x: x[:2], r"must be f32\[3\], but the function gave f32\[2\]"),
                                             (lambda x: x.astype(float), r"must be f32\[3\], but the function gave f64\[3\]")])
def test_results_of_custom_calls_say_what_they_are(function, words):
    xlac.register_custom_call("newcomer", function)
    exe = xlac.compile('HloModule m\nENTRY e { x = f32[3] parameter(0)\n ROOT y = f32[3] custom-call(x), custom_call_target="newcomer" }')
    with pytest.raises(xlac.Error, match=words):
        exe(np.ones(3, np.float32))


def test_a_file_is_no_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XLAC_CACHE", "")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="the cache is a folder"):
        xlac.cache.enable(tmp_path / "file")
    with pytest.raises(xlac.ArgumentError, match=r"xlac\.cache\.enable\(\) was not called"):
        xlac.cache.explain_miss(TEXT)


def field(number, content):
    return bytes([number << 3 | 2, len(content)]) + content


def saved_model(*graphs):
    """Bytes of a SavedModel: (tag, name of its one node) for each graph."""
    def graph(name):
        dtype = field(5, field(1, b"dtype") + field(2, b"\x30\x01"))
        return field(1, field(1, name) + field(2, b"Placeholder") + dtype) + field(4, b"\x08\x9a\x0e")
    return b"\x08\x01" + b"".join(field(2, field(1, field(4, tag)) + field(2, graph(name))) for tag, name in graphs)


def test_a_saved_models_graph_is_clustered(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(saved_model((b"train", b"a"), (b"serve", b"b")))
    for where in (tmp_path, tmp_path / "saved_model.pb", str(tmp_path), (tmp_path / "saved_model.pb").read_bytes()):
        assert "b" in xlac.cluster(where).nodes and "a" not in xlac.cluster(where).nodes
    assert "a" in xlac.cluster(saved_model((b"train", b"a"))).nodes
    for bad in (b"\x08\x01", b"\x08\x01\x12\x7f", b"\x08\x01\x12", b"\x08"):
        with pytest.raises(xlac.ParseError, match="SavedModel"):
            xlac.cluster(bad)
    with pytest.raises(IsADirectoryError):
        xlac.cluster(pathlib.Path(tmp_path.parent))


def test_jax_functions():
    jax = pytest.importorskip("jax")
    import xlac.jax

    step = jax.jit(lambda x, y: x * y)
    exe = xlac.compile(step.lower(X, y=X))
    with pytest.raises(xlac.ArgumentError, match="give y by name"):
        exe(X, X)
    for trace in (jax.jit(lambda x: exe(x, y=x)), jax.vmap(lambda x: exe(x, y=x))):
        with pytest.raises(xlac.ArgumentError, match="outside of jax.jit, grad and vmap"):
            trace(X)
    for wrong in (step.lower(X, X), (X, X)):
        with pytest.raises(xlac.ArgumentError, match=re.escape("explain(f)(x, y)")):
            xlac.jax.explain(wrong)
    (n,) = jax.export.symbolic_shape("n")
    exported = jax.export.export(jax.jit(lambda x: x * 2))(jax.ShapeDtypeStruct((n, n), np.float32))
    with pytest.raises(xlac.Error, match="stablehlo-refine-arguments"):
        xlac.interpret(exported, X[:, :2])


WRONG = TEXT.replace("f32[2,4] dot", "f32[2,5] dot")


@pytest.mark.parametrize("call", [
    lambda: xlac.parse(WRONG).verify(), lambda: xlac.verify(WRONG), lambda: xlac.compile(WRONG), lambda: xlac.interpret(WRONG, X, W),
    lambda: xlac.parse(WRONG.encode()).clone().verify(), lambda: xlac.parse(WRONG).run("cse").run("dce").verify(), lambda: xlac.parse(TEXT.replace("dot(", "dott(")),
])
def test_tracebacks_show_the_line(call):
    with pytest.raises(xlac.Error) as caught:
        call()
    (note,) = caught.value.__notes__
    line, caret = note.splitlines()
    assert line.startswith("    5 |   ROOT y = ") and caret.startswith("      | ") and caret.index("^") >= line.index("ROOT")


def test_what_has_no_text_has_no_note():
    for call in (lambda: xlac.parse(WRONG + "\n" + " " * (1 << 18)).verify(), lambda: xlac.parse(TEXT).run("nonsense"), lambda: xlac.compile(TEXT)(X),
                 lambda: xlac.parse(b"\x0a\xff\xff", format="hlo-proto")):
        with pytest.raises(xlac.Error) as caught:
            call()
        assert not hasattr(caught.value, "__notes__")


def test_notebooks_show_the_line_in_colours(monkeypatch):
    import sys
    import types

    shell = types.SimpleNamespace(InteractiveTB=types.SimpleNamespace(structured_traceback=lambda kind, error, traceback: ["Traceback", str(error)]))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    with pytest.raises(xlac.VerifyError) as caught:
        xlac.verify(WRONG)
    shown = caught.value._render_traceback_()
    assert shown[:2] == ["Traceback", str(caught.value)] and "\33[1m    5 |   ROOT y" in shown[2] and "\33[1;31m" in shown[2]
    shell.InteractiveTB.structured_traceback = lambda kind, error, traceback: [f"{error}\n{error.__notes__[0]}"]
    (shown,) = caught.value._render_traceback_()
    assert shown.count("ROOT y") == 1 and "\33[1;31m" in shown


@pytest.mark.parametrize("thing, name, here", [
    ("executable", "as_text", "module.to_text()"), ("executable", "cost_analysis", "cost"), ("executable", "save", "serialize()"),
    ("module", "as_text", "to_text()"), ("module", "ops", "walk()"), ("module", "entry_computation", "entry"), ("entry", "root_instruction", "root")])
def test_attributes_that_other_libraries_have_say_what_is_called_so_here(thing, name, here):
    module = xlac.parse(TEXT)
    things = {"executable": xlac.compile(module), "module": module, "entry": module.entry}
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': use .*{re.escape(here)}") as caught:
        getattr(things[thing], name)
    assert caught.value.name == name and caught.value.obj is things[thing]
    assert not hasattr(things[thing], name) and getattr(things[thing], name, 3) == 3
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'$"):
        things[thing].nonsense  # noqa: B018


def test_what_is_said_to_be_used_instead_is_there():
    from xlac import elsewhere

    module = xlac.parse(TEXT)
    things = {"Executable": xlac.compile(module), "Module": module, "Computation": module.entry}
    for kind, table in elsewhere.TABLES.items():
        for name, here in table.items():
            assert not hasattr(things[kind], name), name
            word = re.match(r"[a-z_]+", here)[0]
            assert hasattr(things[kind], word) or word in ("xlac", "the", "print", "len"), here


def test_bfloat16_is_named_where_an_array_is_of_another_type():
    with pytest.raises(xlac.ArgumentError) as caught:
        xlac.compile("HloModule m\nENTRY e { ROOT x = bf16[2] parameter(0) }")(np.ones(2, np.float32))
    assert "pass x.astype(ml_dtypes.bfloat16)" in caught.value.hint
