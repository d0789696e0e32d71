"""Module, Computation, Instruction: reading and editing."""
import pathlib

import numpy as np
import pytest

import xlac

TEXT = """HloModule demo

sum {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q)
}

ENTRY main {
  x = f32[2,3] parameter(0)
  zero = f32[] constant(0)
  r = f32[2] reduce(x, zero), dimensions={1}, to_apply=sum
  ROOT n = f32[2] negate(r), sharding={replicated}, metadata={op_name="neg"}
}
"""


@pytest.fixture
def module():
    return xlac.parse(TEXT)


def test_parse_takes_text_bytes_and_paths(tmp_path):
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    texts = {xlac.parse(src).to_text() for src in (TEXT, TEXT.encode(), path, str(TEXT))}
    assert len(texts) == 1
    with pytest.raises(TypeError):
        xlac.parse(17)
    with pytest.raises(xlac.Error):
        xlac.parse(TEXT, format="mlir")
    with pytest.raises(FileNotFoundError):
        xlac.parse(pathlib.Path("nowhere.hlo"))


def test_bytes_that_are_no_text_come_out_as_they_went_in():
    raw = TEXT.replace('"neg"', '"n\xe9g"').encode("latin-1")
    text = xlac.parse(raw).to_text()
    assert xlac.parse(text.encode("utf-8", "surrogateescape")).to_text() == text


def test_module(module):
    assert (module.name, len(module.computations)) == ("demo", 2)
    assert module.entry.name == "main" and module.entry == module.computations[-1]
    assert module.find("s").opcode == "add" and module.find("nope") is None
    assert module.computation("sum").root.name == "s" and module.computation("nope") is None
    assert module.stats()["ops"] == 7 and "demo" in repr(module)
    assert [op.name for op in module.walk()] == ["p", "q", "s", "x", "zero", "r", "n"]
    config = module.config
    assert config["replica_count"] == 1 and not config["is_scheduled"] and config["input_output_alias"] == []


def test_instructions(module):
    r = module.find("r")
    assert (r.opcode, r.shape, r.dtype, r.bare_type, r.type) == ("reduce", (2,), "f32", "f32[2]", "f32[2]{0}")
    assert [o.name for o in r.operands] == ["x", "zero"] and [u.name for u in r.users] == ["n"]
    assert [c.name for c in r.called] == ["sum"] and r.computation == module.entry
    assert (r.line, r.col) == (12, 3) and r.parameter_number is None and module.find("x").parameter_number == 0
    assert r.constant is None and module.find("zero").constant == np.float32(0)
    assert r == module.entry["r"] and hash(r) == hash(module.entry["r"]) and r != module.find("x")
    assert r.to_text().strip().startswith("%r = f32[2]")
    assert xlac.Opcode.REDUCE.value == r.opcode
    assert module.entry[0].name == "x" and module.entry[-1].name == "n" and len(module.entry) == 4
    with pytest.raises(KeyError):
        module.entry["nope"]


def test_types_of_tuples_and_dynamic_sizes():
    m = xlac.parse("HloModule m\nENTRY e {\n  p = (f32[<=4,2], (s8[], token[])) parameter(0)\n"
                   "  ROOT g = f32[<=4,2] get-tuple-element(p), index=0\n}\n")
    p = m.find("p")
    assert p.shape == [(4, 2), [(), None]] and p.dtype == ["f32", ["s8", "token"]]
    assert p.bare_type == "(f32[<=4,2], (s8[], token[]))"


def test_attributes_are_a_mapping(module):
    r, n = module.find("r"), module.find("n")
    assert dict(r.attributes) == {"dimensions": "{1}", "to_apply": "%sum"}
    assert r.attributes.get("nope") is None and "dimensions" in r.attributes and len(r.attributes) == 2
    assert n.sharding == "{replicated}" and "neg" in n.metadata and r.sharding is None
    n.sharding = "{maximal device=0}"
    assert n.attributes["sharding"] == "{maximal device=0}"
    n.sharding = None
    assert "sharding" not in n.attributes
    r.attributes["dimensions"] = [0]
    assert r.attributes["dimensions"] == "{0}"
    r.attributes["control-predecessors"] = [module.find("x")]
    assert r.control_predecessors == [module.find("x")] and r.attributes["control-predecessors"] == "{%x}"
    del r.attributes["control-predecessors"]
    with pytest.raises(KeyError):
        del r.attributes["control-predecessors"]
    with pytest.raises(KeyError):
        r.attributes["nope"]
    with pytest.raises(xlac.Error, match="nope"):
        r.attributes["nope"] = 1
    with pytest.raises(xlac.Error, match="of kind ints"):
        r.attributes["dimensions"] = {"a": 1}


def test_editing(module):
    n, r = module.find("n"), module.find("r")
    e = module.entry.add("exponential", r, name="e")
    n.replace_all_uses_with(e)
    assert module.entry.root == e and n.users == []
    n.remove()
    assert not n.is_live and n.name == "n" and "removed" in repr(n)
    module.verify()
    result = xlac.interpret(module, np.ones((2, 3), np.float32))
    np.testing.assert_allclose(result, np.exp([3, 3]), rtol=1e-6)
    e.name = "power"
    assert module.find("power") == e
    r.set_operand(1, module.entry.add_constant(np.float32(4)))
    module.find("zero").remove()
    e.move_before(None)
    assert xlac.parse(module.to_text()).to_text() == module.to_text()


def test_add_infers_types_and_takes_python_values(module):
    entry, x = module.entry, module.find("x")
    t = entry.add("transpose", x, dimensions=(1, 0))
    assert t.bare_type == "f32[3,2]"
    s = entry.add(xlac.Opcode.SLICE, x, slice=[(0, 2, 1), slice(1, 3)])
    assert s.bare_type == "f32[2,2]" and s.attributes["slice"] == "{[0:2], [1:3]}"
    p = entry.add("pad", x, module.find("zero"), padding=[(1, 1), (0, 2, 1)])
    assert p.bare_type == "f32[4,7]"
    again = entry.add("reduce", x, module.find("zero"), dimensions=0, to_apply=module.computation("sum"))
    assert again.bare_type == "f32[3]" and again.called == [module.computation("sum")]
    w = entry.add("reduce-window", x, module.find("zero"), to_apply="%sum", window={"size": (1, 2), "stride": (1, 2)})
    assert w.bare_type == "f32[2,1]"
    module.verify()


@pytest.mark.parametrize("call, error, words", [
    (lambda m: m.entry.add("nope"), xlac.ParseError, "no op 'nope'"),
    (lambda m: m.entry.add("add", m.find("x")), xlac.VerifyError, "add takes 2 operands, found 1"),
    (lambda m: m.entry.add("add", m.find("x"), m.find("p")), xlac.Error, "computation"),
    (lambda m: m.entry.add("transpose", m.find("x")), xlac.ParseError, "dimensions"),
    (lambda m: m.entry.add("transpose", m.find("x"), dimensions=[0, 7]), xlac.VerifyError, "dimensions"),
    (lambda m: m.entry.add("negate", m.find("x"), foo=1), xlac.Error, "foo"),
    (lambda m: m.find("r").remove(), xlac.Error, "n uses it"),
    (lambda m: m.find("n").remove(), xlac.Error, "root"),
    (lambda m: m.find("r").set_operand(7, m.find("x")), xlac.Error, "operand 7"),
    (lambda m: m.find("r").replace_all_uses_with(m.find("x")), xlac.Error, r"f32\[2,3\], expected f32\[2\]"),
    (lambda m: m.entry.remove(), xlac.Error, "entry"),
    (lambda m: m.computation("sum").remove(), xlac.Error, "calls it"),
    (lambda m: setattr(m.find("r"), "name", "x"), xlac.Error, "already"),
    (lambda m: setattr(m.find("r"), "name", "a b"), xlac.Error, "name"),
    (lambda m: setattr(m.find("r"), "type", "f32[2"), xlac.ParseError, r"f32\[2|expected"),
    (lambda m: m.find("r").set_operand(0, xlac.parse(TEXT).find("x")), TypeError, "same module"),
    (lambda m: m.entry.add_parameter(0, "f32[]"), xlac.Error, "parameter 0"),
])
def test_refused_edits_say_why_and_change_nothing(module, call, error, words):
    before = module.to_text()
    with pytest.raises(error, match=words) as caught:
        call(module)
    assert module.to_text() == before
    if isinstance(caught.value, xlac.Error):
        assert caught.value.code


def test_removed_parts_raise(module):
    extra = module.add_computation("extra")
    op = extra.add_parameter(0, "f32[]")
    extra.root = op
    extra.remove()
    assert not extra.is_live and "removed" in repr(extra) and extra.name == "extra"
    for read in (lambda: extra.instructions, lambda: extra.root, lambda: len(extra), lambda: extra["x"], extra.to_text,
                 lambda: op.opcode, lambda: op.operands, lambda: op.shape, lambda: op.attributes["x"], op.remove,
                 lambda: extra.add("after-all"), lambda: setattr(module, "entry", extra)):
        with pytest.raises(xlac.Error, match="removed"):
            read()


def test_parts_keep_their_module_alive():
    op = xlac.parse(TEXT).find("r")
    assert op.module.name == "demo" and op.operands[0].users


def test_errors_carry_what_the_core_knows():
    with pytest.raises(xlac.ParseError) as caught:
        xlac.parse(TEXT.replace("negate", "negat"))
    error = caught.value
    assert (error.line, error.col, error.code) == (13, 19, 101) and "negate" in error.hint and "13:19" in str(error)
    with pytest.raises(xlac.VerifyError) as caught:
        xlac.parse(TEXT.replace("f32[2] negate", "f32[3] negate")).verify()
    assert caught.value.op == "n" and caught.value.line == 13
    assert issubclass(xlac.OutOfMemoryError, MemoryError) and issubclass(xlac.ParseError, xlac.Error)


def test_print_modes(module):
    texts = {mode: module.to_text(mode=mode) for mode in ("default", "short", "canonical", "fingerprint")}
    assert len(set(texts.values())) == 4
    assert "op_name" not in module.to_text(metadata=False)
    with pytest.raises(xlac.Error, match="mode"):
        module.to_text(mode="nope")
    with pytest.raises(TypeError):
        module.to_text(nope=True)


def test_fingerprint_is_of_the_program(module):
    renamed = module.clone()
    renamed.find("r").name = "other"
    assert renamed.fingerprint() == module.fingerprint()
    changed = module.clone()
    changed.find("r").attributes["dimensions"] = [0]
    changed.find("r").type = None
    assert changed.fingerprint() != module.fingerprint()


CALLS = """HloModule m
{first} {{
  p = f32[] parameter(0)
  ROOT q = f32[] {leaf}(p)
}}
{second} {{
  p = f32[] parameter(0)
  ROOT q = f32[] negate(p)
}}
ENTRY e {{
  x = f32[] parameter(0)
  y = f32[] call(x), to_apply={inner}
  ROOT z = f32[] call(y), to_apply={outer}
}}
"""


def test_fingerprints_see_what_is_called_and_not_where_it_stands():
    def of(leaf, first="a", second="b", inner="a", outer="b"):
        return xlac.parse(CALLS.format(leaf=leaf, first=first, second=second, inner=inner, outer=outer)).fingerprint()
    assert of("sine") == of("sine", "x", "y", "x", "y")
    swapped = CALLS.format(leaf="sine", first="a", second="b", inner="a", outer="b").split("b {")  # b before a
    body, entry = swapped[1].split("ENTRY")
    text = swapped[0].replace("HloModule m\n", "HloModule m\nb {" + body) + "ENTRY" + entry
    assert xlac.parse(text).to_text() != xlac.parse("b {".join(swapped)).to_text()
    assert xlac.parse(text).fingerprint() == of("sine")
    assert len({of("sine"), of("cosine"), of("sine", inner="b", outer="a"), of("sine", outer="a"), of("sine", inner="b")}) == 5


def test_passes(module):
    seen = []
    result = module.run("cse,dce", after=lambda name, state: seen.append((name, state.name)), verify_each=True)
    assert seen == [("cse", "demo"), ("dce", "demo")] and result is not module
    dead = module.entry.add("negate", module.find("n"))
    assert module.run("dce").find(dead.name) is None and dead.is_live
    assert module.run("dce", in_place=True) is module and not dead.is_live and module.to_text() == result.to_text()
    with pytest.raises(xlac.Error, match="nope"):
        module.run("nope", in_place=True)
    with pytest.raises(ZeroDivisionError):
        module.run("dce", after=lambda *_: 1 / 0)
    assert "constant-folding" in xlac.passes() and xlac.passes()["constant-folding"]["options"]


def test_import_takes_little():
    """Beside NumPy: the extension, and a few modules that hold names. Tools, pictures and other libraries are loaded when they are first used."""
    import subprocess
    import sys

    code = "import numpy, sys; before = set(sys.modules); import xlac; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "xlac._core" in loaded and len(loaded) <= 12, loaded
    assert {name.split(".")[0] for name in loaded} <= {"xlac"} | sys.stdlib_module_names, loaded


def test_the_builders_stub_matches():
    """Every public name of the Builder is in its stub, and the other way round."""
    import ast

    tree = ast.parse((pathlib.Path(xlac.__file__).parent / "builder.pyi").read_text())
    stub = {n.name for n in tree.body[-1].body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")}
    assert stub == {n for n in dir(xlac.Builder) if not n.startswith("_")}
