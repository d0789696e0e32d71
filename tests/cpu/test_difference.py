"""xlac.diff: the first op that two ways of running disagree on. A custom call that gives another value at every second call stands in
for an executor that is wrong."""
import subprocess
import sys

import numpy as np
import pytest

import xlac

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def unsteady():
    state = {"calls": 0, "from": -np.inf}

    def function(x):
        state["calls"] += 1
        return x + np.float32(state["calls"] % 2 if x.max() >= state["from"] else 0)
    xlac.register_custom_call("unsteady", function)
    yield state
    xlac.register_custom_call("unsteady", None)


ENTRY = """HloModule m, entry_computation_layout={(f32[3,4]{1,0})->f32[3,4]{1,0}}
ENTRY e {
  x = f32[3,4] parameter(0)
  a = f32[3,4] tanh(x)
  b = f32[3,4] custom-call(a), custom_call_target="unsteady"
  ROOT c = f32[3,4] multiply(b, a)
}"""


def test_what_agrees():
    for text in (ENTRY.replace('custom-call(a), custom_call_target="unsteady"', "negate(a)"), "HloModule m\nENTRY e { ROOT x = f32[2] parameter(0) }"):
        assert xlac.diff(text) is None and xlac.diff(xlac.parse(text), a="unfused", b={"threads": 3, "passes": False}) is None


def test_the_first_op_of_the_entry(unsteady):
    found = xlac.diff(ENTRY, X)
    assert (found.op, found.opcode, found.computation, found.where) == ("b", "custom-call", "e", [])
    assert found.largest == pytest.approx(1) and found.count == found.size == 12
    text = str(found)
    assert "custom-call b in e, line" in text and "operand a: float32[3, 4], size" in text and "between interpreter and compiled" in text
    assert xlac.diff(ENTRY, X, atol=2) is None


def test_in_a_loop_at_the_trip_where_it_begins(unsteady):
    unsteady["from"] = 2
    found = xlac.diff("""HloModule m
c { p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(7)
  ROOT r = pred[] compare(i, n), direction=LT }
b { p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[2] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ones = f32[2] constant({1, 1})
  y = f32[2] custom-call(x), custom_call_target="unsteady"
  z = f32[2] add(y, ones)
  ROOT r = (s32[], f32[2]) tuple(j, z) }
ENTRY e {
  x = f32[2] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[2]) tuple(z, x)
  w = (s32[], f32[2]) while(t), condition=c, body=b
  ROOT r = f32[2] get-tuple-element(w), index=1
}""", np.zeros(2, np.float32))
    assert (found.op, found.computation, found.where) == ("y", "b", ["trip 2 of while w"])


def test_in_branches_and_calls(unsteady):
    text = """HloModule m
g { p = f32[2] parameter(0)
  ROOT y = f32[2] custom-call(p), custom_call_target="unsteady" }
f { p = f32[2] parameter(0)
  ROOT r = f32[2] call(p), to_apply=g }
h { p = f32[2] parameter(0)
  ROOT r = f32[2] negate(p) }
ENTRY e {
  i = s32[] parameter(0)
  x = f32[2] parameter(1)
  ROOT r = f32[2] conditional(i, x, x), branch_computations={h, f}
}"""
    x = np.ones(2, np.float32)
    found = xlac.diff(text, np.int32(9), x)
    assert (found.op, found.computation) == ("y", "g") and [w.split()[0] for w in found.where] == ["branch", "called"]
    assert xlac.diff(text, np.int32(0), x) is None


def test_to_the_bit():
    rng = np.random.default_rng(0)
    text = "HloModule m\nENTRY e {\n  x = f32[40,300] parameter(0)\n  y = f32[40,300] sine(x)\n  ROOT d = f32[40,40] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n}"
    x = rng.standard_normal((40, 300)).astype(np.float32)
    found = xlac.diff(text, x, rtol=0, atol=0)
    assert found.op == "d" and 0 < found.largest < 300 * 173 * 2.0**-24  # sums of 300 terms, in an order of the library's own
    assert xlac.diff(text, x, rtol=1e-4, atol=1e-4) is None


def test_stablehlo_and_wrong_words():
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = stablehlo.tanh %x : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}"
    assert xlac.diff(text) is None
    with pytest.raises(xlac.Error, match="not a way"):
        xlac.diff(text, a="oracle")
    with pytest.raises(xlac.Error, match="1 parameter,"):
        xlac.diff(text, X, X)


def test_the_command(tmp_path):
    file = tmp_path / "p.hlo"
    file.write_text("HloModule m\nENTRY e {\n  x = f32[64,64] parameter(0)\n  ROOT d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}")
    run = lambda *more: subprocess.run([sys.executable, "-m", "xlac", "diff", str(file), *more], capture_output=True, text=True)  # noqa: E731
    done = run("--abs-error-bound=1e-3")
    assert done.returncode == 0 and "no op differs between interpreter and compiled" in done.stdout, done.stderr
    done = run("interpreter", "unfused", "--rel-error-bound=0", "--abs-error-bound=0")
    assert done.returncode == 1 and "dot d in e, line 4 is the first op that differs between interpreter and unfused" in done.stdout
    assert run("interpreter", "guess").returncode == 1
