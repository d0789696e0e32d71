"""xlac.changes: two programs compared op by op; `xlac diff OLD NEW`."""
import json
import subprocess
import sys

import pytest

import xlac

OLD = """
HloModule step
half (p: f32[4]) -> f32[4] {
  p = f32[4] parameter(0)
  c = f32[] constant(0.5)
  b = f32[4] broadcast(c), dimensions={}
  ROOT m = f32[4] multiply(p, b)
}
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] tanh(x)
  z = f32[4] call(y), to_apply=half
  ROOT s = f32[4] subtract(z, x)
}
"""
# The same, spelled otherwise: no call, another order, other names, a constant twice.
SAME = """
HloModule step
ENTRY main {
  a = f32[4] parameter(0)
  k = f32[] constant(0.5)
  k2 = f32[] constant(0.5)
  kb = f32[4] broadcast(k2), dimensions={}
  t = f32[4] tanh(a)
  h = f32[4] multiply(t, kb)
  ROOT d = f32[4] subtract(h, a)
}
"""
CLAMPED = SAME.replace("ROOT d = f32[4] subtract(h, a)", """zero = f32[] constant(-inf)
  zb = f32[4] broadcast(zero), dimensions={}
  top = f32[4] maximum(h, zb), metadata={op_name="jit(step)/max" source_file="step.py" source_line=7}
  ROOT d = f32[4] subtract(top, a)""")


def test_spellings_of_one_program_are_one():
    found = xlac.changes(OLD, SAME)
    assert not found and "the same program" in str(found)


def test_what_came_and_who_reads_it():
    found = xlac.changes(OLD, CLAMPED)
    assert sorted(op.opcode for op in found.added) == ["broadcast", "constant", "maximum"] and not found.removed
    assert [(a.opcode, b.operands[0].opcode) for a, b in found.rewired] == [("subtract", "maximum")]
    top = next(op for op in found.added if op.opcode == "maximum")
    assert (top.op_name, top.source) == ("jit(step)/max", "step.py:7")
    assert "constant(-inf) " in str(found) and "step.py:7" in str(found) and "<table>" in found._repr_html_()
    assert found.costs["flops"][1] > found.costs["flops"][0]


def test_constants_are_compared_by_value_and_swaps_are_seen():
    other = xlac.changes(SAME, SAME.replace("constant(0.5)", "constant(0.25)"))
    assert [op.attributes for op in other.removed] == ["value=0.5"] and [op.attributes for op in other.added] == ["value=0.25"]
    swapped = xlac.changes(SAME, SAME.replace("subtract(h, a)", "subtract(a, h)"))
    assert not swapped.added and not swapped.removed and len(swapped.rewired) == 1


def test_bodies_of_loops_are_compared():
    loop = """
HloModule l
cond { c = s32[] parameter(0)
  n = s32[] constant(9)
  ROOT lt = pred[] compare(c, n), direction=LT }
body { b = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT next = s32[] add(b, one) }
ENTRY e { i = s32[] parameter(0)
  ROOT w = s32[] while(i), condition=cond, body=body }
"""
    found = xlac.changes(loop, loop.replace("ROOT next = s32[] add(b, one)", "ROOT next = s32[] multiply(b, one)"))
    assert [op.opcode for op in found.removed] == ["add"] and [op.opcode for op in found.added] == ["multiply"]
    assert not xlac.changes(loop, loop.replace("cond {", "until {").replace("=cond", "=until").replace("body {", "turn {").replace("=body", "=turn"))


def test_another_signature():
    found = xlac.changes(SAME, SAME.replace("f32[4]", "f32[5]"))
    assert "argument 0: f32[4] before, f32[5] now" in found.signature


def test_the_command(tmp_path):
    for name, text in (("old", OLD), ("same", SAME), ("clamped", CLAMPED)):
        (tmp_path / f"{name}.hlo").write_text(text)

    def run(*words):
        return subprocess.run([sys.executable, "-m", "xlac", "diff", *words], cwd=tmp_path, capture_output=True, text=True)

    same = run("old.hlo", "same.hlo")
    assert same.returncode == 0 and "the same program" in same.stdout and "the same results" in same.stdout
    other = run("old.hlo", "clamped.hlo")
    assert other.returncode == 1 and "maximum" in other.stdout and "flops" in other.stdout
    data = json.loads(run("old.hlo", "clamped.hlo", "--json").stdout)
    assert data["differs"] and {"+", "~"} == {row["change"] for row in data["changes"]}


@pytest.mark.parametrize("bad", ["nonsense", "HloModule m\n"])
def test_no_program(bad):
    with pytest.raises(xlac.Error):
        xlac.changes(SAME, bad)
