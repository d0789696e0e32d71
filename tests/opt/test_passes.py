"""The passes: small modules before and after, and that no pipeline changes what real programs compute."""
import re

import numpy as np
import pytest

import xlac

SUM = "sum { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b) }\n"
ONE = "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n%s\n}"


def text(source):
    m = xlac.parse(source)
    m.verify()
    return m.to_text()


def run(source, pipeline):
    m = xlac.parse(source)
    m.verify()
    out = m.run(pipeline)
    out.verify()
    assert m.to_text() == text(source), "run works on a copy"
    printed = out.to_text()
    assert xlac.parse(printed).to_text() == printed, "what a pass leaves can be read back"
    return out


def entry(m):
    """The entry's ops as {name: rest of line}, shapes without layouts."""
    body = re.search(r"(?s)\nENTRY .*?\{\n(.*?)\n\}", "\n" + m.to_text())[1]
    lines = [re.sub(r"(?<=\])\{[\d,]*\}", "", line.strip()) for line in body.split("\n")]
    return [line.replace("%", "") for line in lines]


def opcodes(m):
    return [re.search(r"(?:\)|\]|\}|e) ([a-z][\w-]*)\(", line.split(" = ", 1)[1])[1] for line in entry(m)]


CASES = [
    # name, pipeline, body before, body after
    ("dead op", "dce", "d = f32[4] negate(x)\nROOT r = f32[4] abs(x)", "ROOT r = f32[4] abs(x)"),
    ("chain of dead ops", "dce", "d = f32[4] negate(x)\nf = f32[4] abs(d)\nROOT r = f32[4] abs(x)", "ROOT r = f32[4] abs(x)"),
    ("dead parameter stays", "dce", "y = f32[4] parameter(1)\nROOT r = f32[4] abs(x)",
     "y = f32[4] parameter(1)\nROOT r = f32[4] abs(x)"),
    ("side effects stay", "dce", 'c = f32[4] custom-call(x), custom_call_target="k", custom_call_has_side_effect=true\n'
     'd = f32[4] custom-call(x), custom_call_target="k"\nROOT r = f32[4] abs(x)',
     'c = f32[4] custom-call(x), custom_call_target="k", custom_call_has_side_effect=true\nROOT r = f32[4] abs(x)'),
    ("control predecessors stay", "dce", "d = f32[4] negate(x)\nROOT r = f32[4] abs(x), control-predecessors={d}",
     "d = f32[4] negate(x)\nROOT r = f32[4] abs(x), control-predecessors={d}"),
    ("who waits in vain goes", "dce", "a = f32[4] abs(x)\nd = f32[4] negate(x), control-predecessors={a}\nROOT r = f32[4] sine(a)",
     "a = f32[4] abs(x)\nROOT r = f32[4] sine(a)"),
    ("equal ops", "cse", "a = f32[4] abs(x)\nb = f32[4] abs(x)\nROOT r = f32[4] add(a, b)",
     "a = f32[4] abs(x)\nROOT r = f32[4] add(a, a)"),
    ("commuted operands", "cse", "y = f32[4] parameter(1)\na = f32[4] add(x, y)\nb = f32[4] add(y, x)\nROOT r = f32[4] subtract(a, b)",
     "y = f32[4] parameter(1)\na = f32[4] add(x, y)\nROOT r = f32[4] subtract(a, a)"),
    ("other order is another value", "cse",
     "y = f32[4] parameter(1)\na = f32[4] subtract(x, y)\nb = f32[4] subtract(y, x)\nROOT r = f32[4] add(a, b)",
     "y = f32[4] parameter(1)\na = f32[4] subtract(x, y)\nb = f32[4] subtract(y, x)\nROOT r = f32[4] add(a, b)"),
    ("other attributes", "cse",
     "y = f32[4] parameter(1)\na = pred[4] compare(x, y), direction=LT\nb = pred[4] compare(x, y), direction=GT\n"
     "ROOT r = pred[4] and(a, b)",
     "y = f32[4] parameter(1)\na = pred[4] compare(x, y), direction=LT\nb = pred[4] compare(x, y), direction=GT\n"
     "ROOT r = pred[4] and(a, b)"),
    ("metadata does not count", "cse", 'a = f32[4] abs(x), metadata={op_name="a"}\nb = f32[4] abs(x), metadata={op_name="b"}\n'
     "ROOT r = f32[4] add(a, b)", 'a = f32[4] abs(x), metadata={op_name="a"}\nROOT r = f32[4] add(a, a)'),
    ("constants", "cse", "a = f32[] constant(1)\nb = f32[] constant(1)\nc = f32[] constant(-0.0)\nd = f32[] constant(0)\n"
     "ROOT r = (f32[], f32[], f32[], f32[]) tuple(a, b, c, d)",
     "a = f32[] constant(1)\nc = f32[] constant(-0.0)\nd = f32[] constant(0)\nROOT r = (f32[], f32[], f32[], f32[]) tuple(a, a, c, d)"),
    ("random ops stay apart", "cse", "z = f32[] constant(0)\no = f32[] constant(1)\na = f32[4] rng(z, o), distribution=rng_uniform\n"
     "b = f32[4] rng(z, o), distribution=rng_uniform\nROOT r = f32[4] subtract(a, b)",
     "z = f32[] constant(0)\no = f32[] constant(1)\na = f32[4] rng(z, o), distribution=rng_uniform\n"
     "b = f32[4] rng(z, o), distribution=rng_uniform\nROOT r = f32[4] subtract(a, b)"),
    ("a chain of equal values", "cse", "a = f32[4] abs(x)\nb = f32[4] abs(x)\nc = f32[4] sine(a)\nd = f32[4] sine(b)\n"
     "ROOT r = f32[4] add(c, d)", "a = f32[4] abs(x)\nc = f32[4] sine(a)\nROOT r = f32[4] add(c, c)"),
    ("control edges are left alone", "cse", "a = f32[4] abs(x)\nb = f32[4] abs(x)\nc = f32[4] sine(a), control-predecessors={b}\n"
     "ROOT r = f32[4] add(c, b)", "a = f32[4] abs(x)\nb = f32[4] abs(x)\nc = f32[4] sine(a), control-predecessors={b}\n"
     "ROOT r = f32[4] add(c, b)"),
    ("scalars fold", "constant-folding", "a = f32[] constant(2)\nb = f32[] constant(3)\nc = f32[] multiply(a, b)\n"
     "d = f32[4] broadcast(c), dimensions={}\nROOT r = f32[4] add(x, d)",
     "constant = f32[] constant(6)\nd = f32[4] broadcast(constant), dimensions={}\nROOT r = f32[4] add(x, d)"),
    ("arrays fold", "constant-folding", "a = f32[4] constant({1,2,3,4})\nb = f32[4] reverse(a), dimensions={0}\n"
     "ROOT r = f32[4] add(x, b)", "constant = f32[4] constant({4,3,2,1})\nROOT r = f32[4] add(x, constant)"),
    ("large results do not", "constant-folding{max-elements=3}", "a = f32[4] constant({1,2,3,4})\nb = f32[4] negate(a)\n"
     "ROOT r = f32[4] add(x, b)", "a = f32[4] constant({1,2,3,4})\nb = f32[4] negate(a)\nROOT r = f32[4] add(x, b)"),
    ("broadcasts and iotas stay", "constant-folding", "a = f32[] constant(1)\nb = f32[4] broadcast(a), dimensions={}\n"
     "c = f32[4] iota(), iota_dimension=0\nd = f32[4] add(b, c)\nROOT r = f32[4] add(x, d)",
     "a = f32[] constant(1)\nb = f32[4] broadcast(a), dimensions={}\nc = f32[4] iota(), iota_dimension=0\n"
     "d = f32[4] add(b, c)\nROOT r = f32[4] add(x, d)"),
    ("through a broadcast", "constant-folding", "a = f32[] constant(1)\nb = f32[4] broadcast(a), dimensions={}\n"
     "c = f32[4] constant({1,2,3,4})\nd = f32[4] add(b, c)\nROOT r = f32[4] add(x, d)",
     "constant = f32[4] constant({2,3,4,5})\nROOT r = f32[4] add(x, constant)"),
    ("elided constants are unknown", "constant-folding", "a = f32[4] constant({...})\nb = f32[4] negate(a)\n"
     "ROOT r = f32[4] add(x, b)", "a = f32[4] constant({...})\nb = f32[4] negate(a)\nROOT r = f32[4] add(x, b)"),
    ("who runs it is unknown", "constant-folding", "a = u32[] replica-id()\nb = u32[] negate(a)\n"
     "ROOT r = (f32[4], u32[]) tuple(x, b)", "a = u32[] replica-id()\nb = u32[] negate(a)\nROOT r = (f32[4], u32[]) tuple(x, b)"),
    ("tuples fold", "constant-folding", "a = f32[4] constant({3,1,2,0})\nt = (f32[2], s32[2]) topk(a), k=2, largest=true\n"
     "v = f32[2] get-tuple-element(t), index=0\ni = s32[2] get-tuple-element(t), index=1\n"
     "ROOT r = (f32[2], s32[2], f32[4]) tuple(v, i, x)",
     "constant = f32[2] constant({3,2})\nconstant.1 = s32[2] constant({0,2})\nROOT r = (f32[2], s32[2], f32[4]) "
     "tuple(constant, constant.1, x)"),
    ("elements of tuples", "flatten-tuples", "a = f32[4] abs(x)\nt = (f32[4], f32[4]) tuple(x, a)\n"
     "u = ((f32[4], f32[4]), f32[4]) tuple(t, x)\nv = (f32[4], f32[4]) get-tuple-element(u), index=0\n"
     "ROOT r = f32[4] get-tuple-element(v), index=1", "ROOT a = f32[4] abs(x)"),
    ("the entry keeps its interface", "flatten-tuples",
     "y = ((f32[4], s32[]), f32[4]) parameter(1)\nROOT r = (((f32[4], s32[]), f32[4]), f32[4]) tuple(y, x)",
     "y = ((f32[4], s32[]), f32[4]) parameter(1)\nROOT r = (((f32[4], s32[]), f32[4]), f32[4]) tuple(y, x)"),
]


@pytest.mark.parametrize("pipeline,before,after", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_pass(pipeline, before, after):
    want = entry(xlac.parse(ONE % after))
    got = entry(run(ONE % before, pipeline))
    assert sorted(got) == sorted(want)


def test_dce_removes_computations_nobody_calls():
    source = "HloModule m\n" + SUM + "ENTRY e {\n  ROOT x = f32[4] parameter(0)\n}"
    assert "sum" in text(source) and "sum" not in run(source, "dce").to_text()


def test_cse_merges_ops_that_call_equal_computations():
    other = SUM.replace("sum {", "plus {").replace("a ", "p ").replace("add(a, b)", "add(b, p)")
    body = ("  x = f32[4] parameter(0)\n  z = f32[] constant(0)\n  a = f32[] reduce(x, z), dimensions={0}, to_apply=sum\n"
            "  b = f32[] reduce(x, z), dimensions={0}, to_apply=plus\n  ROOT r = f32[] subtract(a, b)\n}")
    assert opcodes(run("HloModule m\n" + SUM + other + "ENTRY e {\n" + body, "cse")).count("reduce") == 1
    other = other.replace("add", "multiply")
    assert opcodes(run("HloModule m\n" + SUM + other + "ENTRY e {\n" + body, "cse")).count("reduce") == 2


def test_constant_folding_gives_up_on_endless_loops():
    source = """HloModule m
more { s = s32[] parameter(0)
  ROOT c = pred[] constant(true) }
step { s = s32[] parameter(0)
  o = s32[] constant(1)
  ROOT t = s32[] add(s, o) }
ENTRY e {
  z = s32[] constant(0)
  ROOT w = s32[] while(z), condition=more, body=step
}"""
    assert "while" in opcodes(run(source, "constant-folding{max-work=1}"))


def test_constant_folding_runs_loops_that_end():
    source = """HloModule m
more { s = s32[] parameter(0)
  n = s32[] constant(10)
  ROOT c = pred[] compare(s, n), direction=LT }
step { s = s32[] parameter(0)
  o = s32[] constant(3)
  ROOT t = s32[] add(s, o) }
ENTRY e {
  z = s32[] constant(0)
  ROOT w = s32[] while(z), condition=more, body=step
}"""
    assert entry(run(source, "constant-folding,dce")) == ["ROOT constant = s32[] constant(12)"]


NESTED_LOOP = """HloModule m
more { s = (s32[], (f32[4], (f32[4]))) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT }
step { s = (s32[], (f32[4], (f32[4]))) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  o = s32[] constant(1)
  j = s32[] add(i, o)
  t = (f32[4], (f32[4])) get-tuple-element(s), index=1
  a = f32[4] get-tuple-element(t), index=0
  u = (f32[4]) get-tuple-element(t), index=1
  b = f32[4] get-tuple-element(u), index=0
  c = f32[4] add(a, b)
  v = (f32[4]) tuple(a)
  w = (f32[4], (f32[4])) tuple(c, v)
  ROOT r = (s32[], (f32[4], (f32[4]))) tuple(j, w) }
ENTRY e {
  p = (f32[4], (f32[4])) parameter(0)
  z = s32[] constant(0)
  t = (s32[], (f32[4], (f32[4]))) tuple(z, p)
  ROOT l = (s32[], (f32[4], (f32[4]))) while(t), condition=more, body=step
}"""


def elements_of_tuples(m):
    """Pairs of a get-tuple-element and the tuple op it reads."""
    found = []
    for body in re.findall(r"(?s)\{\n(.*?)\n\}", m.to_text()):
        tuples = set(re.findall(r"%([\w.-]+) = \([^\n]*\) tuple\(", body))
        found += [line for line in body.split("\n") if any(f"get-tuple-element(%{t})" in line for t in tuples)]
    return found


def test_flatten_tuples_flattens_loops():
    out = run(NESTED_LOOP, "flatten-tuples")
    shape = re.search(r"= (\([^=]*\)) while\(", out.to_text())[1]
    assert re.sub(r"\{0\}", "", shape) == "(s32[], f32[4], f32[4])" and not elements_of_tuples(out)
    x = np.arange(4, dtype=np.float32)
    before, after = (xlac.interpret(m, (x, (x + 1,))) for m in (xlac.parse(NESTED_LOOP), out))
    assert int(after[0]) == 5
    np.testing.assert_array_equal(before[1][0], after[1][0])
    np.testing.assert_array_equal(before[1][1][0], after[1][1][0])


BRANCHES = """HloModule m
b0 { a = (f32[4], (s32[], f32[4])) parameter(0)
  t = (s32[], f32[4]) get-tuple-element(a), index=1
  x = f32[4] get-tuple-element(a), index=0
  ROOT r = ((s32[], f32[4]), f32[4]) tuple(t, x) }
b1 { a = f32[4] parameter(0)
  i = s32[] constant(7)
  t = (s32[], f32[4]) tuple(i, a)
  n = f32[4] negate(a)
  ROOT r = ((s32[], f32[4]), f32[4]) tuple(t, n) }
g { a = (f32[4], (s32[], f32[4])) parameter(0)
  x = f32[4] parameter(1)
  t = (s32[], f32[4]) get-tuple-element(a), index=1
  y = f32[4] get-tuple-element(t), index=1
  z = f32[4] add(x, y)
  u = (f32[4]) tuple(z)
  ROOT r = ((f32[4]), f32[4]) tuple(u, y) }
f { a = (f32[4], (s32[], f32[4])) parameter(0)
  x = f32[4] get-tuple-element(a), index=0
  ROOT r = ((f32[4]), f32[4]) call(a, x), to_apply=g }
ENTRY e {
  p = s32[] parameter(0)
  x = f32[4] parameter(1)
  t = (s32[], f32[4]) tuple(p, x)
  u = (f32[4], (s32[], f32[4])) tuple(x, t)
  c = ((s32[], f32[4]), f32[4]) conditional(p, u, x), branch_computations={b0, b1}
  d = ((f32[4]), f32[4]) call(u), to_apply=f
  v = (s32[], f32[4]) get-tuple-element(c), index=0
  w = f32[4] get-tuple-element(v), index=1
  y = (f32[4]) get-tuple-element(d), index=0
  z = f32[4] get-tuple-element(y), index=0
  q = f32[4] get-tuple-element(c), index=1
  a = f32[4] add(w, z)
  ROOT b = f32[4] add(a, q)
}"""


@pytest.mark.parametrize("pipeline", ["flatten-tuples", "inline-calls,flatten-tuples", "flatten-tuples,inline-calls,flatten-tuples"])
@pytest.mark.parametrize("index", [0, 1])
def test_flatten_tuples_flattens_branches_and_calls(pipeline, index):
    out, x = run(BRANCHES, pipeline), np.arange(4, dtype=np.float32)
    assert not elements_of_tuples(out)
    shapes = re.findall(r" = (\([^=]*\)) (?:call|conditional)\(", out.to_text())
    assert shapes and not any("((" in s or ", (" in s for s in shapes)
    before = xlac.interpret(xlac.parse(BRANCHES), np.int32(index), x)
    np.testing.assert_array_equal(before, xlac.interpret(out, np.int32(index), x))


def test_flatten_tuples_leaves_interfaces_of_others():
    source = """HloModule m
w { a = ((f32[4], s32[]), f32[4]) parameter(0)
  ROOT r = ((f32[4], s32[]), f32[4]) custom-call(a), custom_call_target="k" }
ENTRY e {
  x = f32[4] parameter(0)
  i = s32[] parameter(1)
  t = (f32[4], s32[]) tuple(x, i)
  u = ((f32[4], s32[]), f32[4]) tuple(t, x)
  s = ((((f32[4], s32[]), f32[4])), ((f32[4], s32[]), f32[4]), u32[]) async-start(u), calls=w
  d = ((f32[4], s32[]), f32[4]) async-done(s)
  v = (f32[4], s32[]) get-tuple-element(d), index=0
  y = f32[4] get-tuple-element(v), index=0
  ROOT r = (f32[4], (f32[4], s32[])) tuple(y, v)
}"""
    assert not elements_of_tuples(run(source, "flatten-tuples"))


CALLS = """HloModule m
sq { a = f32[4] parameter(0)
  ROOT r = f32[4] multiply(a, a), metadata={op_name="square"} }
twice { a = f32[4] parameter(0)
  b = f32[4] call(a), to_apply=sq
  ROOT r = f32[4] call(b), to_apply=sq }
swap { a = f32[4] parameter(0)
  ROOT b = f32[4] parameter(1) }
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] call(x), to_apply=twice
  z = f32[4] call(x, y), to_apply=swap
  f = f32[4] fusion(z), kind=kLoop, calls=sq
  ROOT r = f32[4] add(z, f)
}"""


@pytest.mark.parametrize("fusions", [False, True])
def test_inline_calls(fusions):
    out = run(CALLS, "inline-calls{fusions=%s}" % str(fusions).lower())
    found = opcodes(out)
    assert "call" not in found and found.count("multiply") == (3 if fusions else 2) and ("fusion" in found) != fusions
    assert 'op_name="square"' in out.to_text() and "%twice" not in out.to_text() and ("%sq" in out.to_text()) != fusions
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(xlac.interpret(xlac.parse(CALLS), x), xlac.interpret(out, x))


def test_inline_calls_keeps_control_edges():
    source = """HloModule m
f { a = f32[4] parameter(0)
  b = f32[4] abs(a)
  c = f32[4] custom-call(a), custom_call_target="k", custom_call_has_side_effect=true
  ROOT r = f32[4] negate(b) }
ENTRY e {
  x = f32[4] parameter(0)
  before = f32[4] sine(x)
  y = f32[4] call(x), to_apply=f, control-predecessors={before}
  after = f32[4] cosine(x), control-predecessors={y}
  ROOT r = (f32[4], f32[4], f32[4]) tuple(before, y, after)
}"""
    lines = {line.split(" = ")[0]: line for line in entry(run(source, "inline-calls"))}
    by_opcode = {re.search(r"\] ([\w-]+)\(", line)[1]: line for line in lines.values() if "] " in line}
    assert "control-predecessors={before}" in by_opcode["abs"] and "control-predecessors={before}" in by_opcode["custom-call"]
    assert "control-predecessors" not in by_opcode["negate"]
    waits = re.search(r"control-predecessors=\{(.*?)\}", by_opcode["cosine"])[1].split(", ")
    assert {re.search(r"\] ([\w-]+)\(", lines[name])[1] for name in waits} == {"negate", "custom-call"}


def test_inline_calls_copies_wrapped_computations():
    source = """HloModule m
f { a = f32[4] parameter(0)
  s = ((f32[4]), f32[4], u32[]) tanh-start(a)
  ROOT d = f32[4] tanh-done(s) }
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] call(x), to_apply=f
  ROOT z = f32[4] call(y), to_apply=f
}"""
    out = run(source, "inline-calls")
    assert opcodes(out) == ["parameter", "tanh-start", "tanh-done", "tanh-start", "tanh-done"]


def test_inline_calls_refuses_to_explode():
    levels = "".join(f"c{i} {{ a = f32[] parameter(0)\n  b = f32[] call(a), to_apply=c{i - 1}\n"
                     f"  ROOT r = f32[] call(b), to_apply=c{i - 1} }}\n" for i in range(1, 40))
    source = ("HloModule m\nc0 { a = f32[] parameter(0)\n  ROOT r = f32[] add(a, a) }\n" + levels +
              "ENTRY e {\n  x = f32[] parameter(0)\n  ROOT r = f32[] call(x), to_apply=c39\n}")
    m = xlac.parse(source)
    with pytest.raises(xlac.Error, match="larger than 5000 ops"):
        m.run("inline-calls{max-ops=5000}")
    with pytest.raises(xlac.Error, match=r"larger than 1 op \["):
        m.run("inline-calls{max-ops=1}")


def test_schedules_stay_valid():
    source = """HloModule m, is_scheduled=true
f { a = (f32[4], (f32[4])) parameter(0)
  t = (f32[4]) get-tuple-element(a), index=1
  b = f32[4] get-tuple-element(t), index=0
  k = f32[4] constant({1,2,3,4})
  l = f32[4] negate(k)
  m = f32[4] negate(k)
  c = f32[4] add(b, l)
  d = f32[4] add(c, m)
  ROOT r = (f32[4], (f32[4])) tuple(d, t) }
ENTRY e {
  x = f32[4] parameter(0)
  t = (f32[4]) tuple(x)
  u = (f32[4], (f32[4])) tuple(x, t)
  y = (f32[4], (f32[4])) call(u), to_apply=f
  z = (f32[4], (f32[4])) call(y), to_apply=f
  ROOT r = f32[4] get-tuple-element(z), index=0
}"""
    x = np.arange(4, dtype=np.float32)
    want = xlac.interpret(xlac.parse(source), x)
    for pipeline in ("dce", "cse", "constant-folding", "flatten-tuples", "inline-calls",
                     "flatten-tuples,inline-calls,flatten-tuples,cse,constant-folding,dce"):
        out = run(source, pipeline)
        assert "is_scheduled=true" in out.to_text()
        np.testing.assert_array_equal(xlac.interpret(out, x), want)


def test_aliases_and_donors_stay():
    source = ("HloModule m, input_output_alias={ {}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }\nENTRY e {\n"
              "  x = f32[4] parameter(0)\n  y = f32[4] parameter(1)\n  ROOT r = f32[4] abs(x)\n}")
    printed = run(source, "flatten-tuples,cse,constant-folding,dce").to_text()
    assert "input_output_alias={ {}: (0, {}, may-alias) }" in printed and "buffer_donor={ (1, {}) }" in printed


# --- the pipeline's syntax ---

@pytest.mark.parametrize("pipeline", ["", " ", "dce", "builtin.module(dce)", "builtin.module()", "builtin.module( dce , cse )",
                                      "dce,cse", "inline-calls{fusions}", "inline-calls{fusions=1 max-ops=7}", "dce{}",
                                      "builtin.module(constant-folding{max-elements=10  max-work=1},dce)"])
def test_pipelines_that_are_right(pipeline):
    assert run(ONE % "ROOT r = f32[4] abs(x)", pipeline)


@pytest.mark.parametrize("pipeline,column,message,hint", [
    ("dcee", 1, 'unknown pass "dcee"', "did you mean dce"), ("dce,", 5, "expected the name of a pass", ""),
    ("dce,flaten-tuples", 5, "unknown pass", "did you mean flatten-tuples?"), ("dce{opt=1}", 5, "has no option", "there are no options"),
    ("inline-calls{fusion=1}", 14, "has no option", "did you mean fusions?"), ("builtin.module(dce", 19, "expected", ""),
    ("inline-calls{fusions=2}", 22, "true or false", ""), ("inline-calls{max-ops=0}", 22, "a number from 1", ""),
    ("inline-calls{max-ops}", 21, "expected '='", ""), ("inline-calls{max-ops=99999999999999999999}", 22, "a number", ""),
    ("dce)", 4, "expected", ""), ("func.fun(dce)", 1, "builtin.module", ""), ("func.func(dce", 14, "expected", ""), ("dce{", 5, "expected", "close the options of dce with '}'"),
    ("dce,inline-calls{max-ops=5", 27, "expected", "close the options of inline-calls"), ("inline-calls{max-ops=5, dce", 23, "expected", "blanks stand between"),
    ("xyzzy", 1, "unknown", "there are")])
def test_pipelines_that_are_wrong(pipeline, column, message, hint):
    m = xlac.parse(ONE % "ROOT r = f32[4] abs(x)")
    with pytest.raises(xlac.Error) as e:
        m.run(pipeline)
    assert message in str(e.value) and hint in e.value.hint and e.value.col == column


# --- real programs ---

PIPELINES = ["dce", "cse", "constant-folding", "flatten-tuples", "inline-calls{fusions=true}",
             "flatten-tuples,inline-calls{fusions=true},flatten-tuples,cse,constant-folding,dce"]


def corpus():
    import base64
    import json
    import lzma
    import os
    import pathlib

    default = pathlib.Path(__file__).resolve().parents[2] / "../shared/conformance"
    path = pathlib.Path(os.environ.get("XLAC_CONFORMANCE", default)) / "hlo/corpus.jsonl.xz"
    if not path.exists():
        return

    def array(a):
        return np.frombuffer(base64.b64decode(a["b64"]), np.dtype(a["dtype"])).reshape(a["shape"])

    with lzma.open(path, "rt") as lines:
        for row in map(json.loads, lines):
            if row["kind"] == "roundtrip":
                yield row["name"], row["input"], [array(a) for a in row["run"]["args"]] if "run" in row else None


def leaves(value):
    return [x for part in value for x in leaves(part)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_real_programs_compute_the_same(pipeline):
    n = 0
    for name, source, args in corpus():
        m = xlac.parse(source)
        try:
            m.verify()
        except xlac.Error:
            continue  # what XLA accepts and its documentation does not
        out = m.run(pipeline)
        out.verify()
        if args is not None:
            want, got = (leaves(xlac.interpret(x, *args)) for x in (m, out))
            assert len(want) == len(got), name
            for w, g in zip(want, got):
                assert np.asarray(w).tobytes() == np.asarray(g).tobytes(), name
            n += 1
    if n == 0:
        pytest.skip("no conformance data")


def test_inlined_ops_without_a_place_in_a_source_file_get_the_calls():
    text = """HloModule m
f { p = f32[] parameter(0)
  n = f32[] negate(p), metadata={op_name="neg"}
  ROOT a = f32[] add(n, p), metadata={source_file="own.py" source_line=7} }
ENTRY e { p = f32[] parameter(0)
  ROOT c = f32[] call(p), to_apply=f, metadata={op_name="f" source_file="user.py" source_line=3} }"""
    ops = {op.opcode: str(op.metadata) for op in xlac.parse(text).run("inline-calls").entry.instructions}
    assert ops["negate"] == '{op_name="neg" source_file="user.py" source_line=3}'
    assert ops["add"] == '{source_file="own.py" source_line=7}'
