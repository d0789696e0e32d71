"""Scalar programs: what called computations become, and that all ways to run them give the same bits."""
import numpy as np
import pytest

import xlac

SORT = """HloModule m
%less {{
  p0 = {type}[] parameter(0)
  p1 = {type}[] parameter(1)
{body}
}}
ENTRY e {{
  x = {type}[7] parameter(0)
  ROOT s = {type}[7] sort(x), dimensions={{0}}, to_apply=%less
}}
"""


def programs(text):
    return xlac.compile_stage(text, "programs")


def program_of(body, type="f32"):
    """The text of the one program, without its comment."""
    text = programs(SORT.format(type=type, body=body))
    assert text.count("//") <= 1
    return text.split("\n", 1)[1].strip() if text else None


def test_a_computation_becomes_a_list_of_ops():
    body = """  c = f32[] constant(2)
  a = f32[] add(p0, c)
  ROOT l = pred[] compare(a, p1), direction=LT, type=TOTALORDER"""
    assert program_of(body) == """program (f32[], f32[])
v2 = f32[] constant(2)
v3 = f32[] add(v0, v2)
v4 = pred[] compare(v3, v1), direction=LT, type=TOTALORDER
give (v4)"""


def test_copies_tuples_and_reshapes_have_no_value_of_their_own():
    body = """  r = f32[1] reshape(p0)
  b = f32[1,1] broadcast(r), dimensions={0}
  back = f32[] reshape(b)
  t = (f32[], f32[]) tuple(p1, back)
  q = f32[] get-tuple-element(t), index=1
  w = f32[] get-tuple-element(t), index=0
  c = f32[] copy(w)
  ROOT l = pred[] compare(q, c), direction=GT"""
    assert program_of(body) == "program (f32[], f32[])\nv2 = pred[] compare(v0, v1), direction=GT\ngive (v2)"


BRANCH = """HloModule m
%yes { y = s32[] parameter(0) ROOT a = s32[] multiply(y, y) }
%no { n = s32[] parameter(0) ROOT a = s32[] negate(n) }
%f {
  p0 = s32[] parameter(0)
  p1 = s32[] parameter(1)
  t = pred[] compare(p0, p1), direction=LT
  ROOT c = s32[] conditional(t, p0, p1), true_computation=%yes, false_computation=%no
}
ENTRY e {
  x = s32[64] parameter(0)
  y = s32[64] parameter(1)
  ROOT m = s32[64] map(x, y), dimensions={0}, to_apply=%f
}
"""


def test_a_branch_is_a_select_of_what_both_sides_give():
    x, y = np.arange(-32, 32, dtype="i4"), np.arange(64, dtype="i4")[::-1].copy() - 20
    want = np.where(x < y, x * x, -y)
    assert xlac.interpret(BRANCH, x, y).tolist() == want.tolist()
    assert xlac.compile(BRANCH)(x, y).tolist() == want.tolist()


@pytest.mark.parametrize("body", [
    "  z = s32[] constant(3)\n  n = (s32[], f32[], f32[]) tuple(z, p0, p1)\n  w = (s32[], f32[], f32[]) while(n), condition=%c, body=%b\n"
    "  a = f32[] get-tuple-element(w), index=1\n  ROOT l = pred[] compare(a, p1), direction=LT",
    "  b = f32[2] broadcast(p0), dimensions={}\n  s = f32[1] slice(b), slice={[1:2]}\n  r = f32[] reshape(s)\n"
    "  ROOT l = pred[] compare(r, p1), direction=LT"])
def test_loops_and_arrays_are_no_programs_and_give_the_same(body):
    loop = """%c { t = (s32[], f32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  z = s32[] constant(0)
  ROOT more = pred[] compare(i, z), direction=GT }
%b { t = (s32[], f32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  j = s32[] subtract(i, one)
  a = f32[] get-tuple-element(t), index=1
  d = f32[] get-tuple-element(t), index=2
  ROOT r = (s32[], f32[], f32[]) tuple(j, a, d) }
"""
    text = SORT.format(type="f32", body=body).replace("HloModule m\n", "HloModule m\n" + (loop if "while" in body else ""))
    x = np.array([3, -1, 2, 7, 0, -5, 1], "f4")
    assert "program (" not in xlac.compile_stage(text, "programs", passes=False)
    assert xlac.interpret(text, x).tolist() == sorted(x.tolist()) == xlac.compile(text)(x).tolist()


CASES = {"f32": ("multiply(p0, p1)", "subtract(a, p0)", "maximum(b, p1)"), "bf16": ("add(p0, p1)", "multiply(a, a)", "minimum(b, p0)"),
         "s32": ("add(p0, p1)", "xor(a, p1)", "shift-left(b, p0)"), "u8": ("multiply(p0, p1)", "add(a, p1)", "divide(b, p0)"),
         "s4": ("add(p0, p1)", "multiply(a, p1)", "subtract(b, p0)"), "pred": ("and(p0, p1)", "xor(a, p0)", "or(b, p1)"),
         "c64": ("multiply(p0, p1)", "add(a, p1)", "subtract(b, p0)")}


@pytest.mark.parametrize("type", CASES)
@pytest.mark.parametrize("n", [1, 63, 64, 513, 1500])
def test_programs_on_lanes_have_the_bits_of_their_ops(type, n):
    ops = CASES[type]
    lines = f"  a = {type}[{{n}}] {ops[0]}\n  b = {type}[{{n}}] {ops[1]}\n  ROOT c = {type}[{{n}}] {ops[2]}"
    scalar, whole = lines.replace("[{n}]", "[]"), lines.replace("{n}", str(n))
    mapped = f"""HloModule m
%f {{
  p0 = {type}[] parameter(0)
  p1 = {type}[] parameter(1)
{scalar}
}}
ENTRY e {{
  x = {type}[{n}] parameter(0)
  y = {type}[{n}] parameter(1)
  ROOT m = {type}[{n}] map(x, y), dimensions={{0}}, to_apply=%f
}}
"""
    plain = f"HloModule m\nENTRY e {{\n  p0 = {type}[{n}] parameter(0)\n  p1 = {type}[{n}] parameter(1)\n{whole}\n}}\n"
    random = np.random.default_rng(n)
    one = xlac.interpret(f"HloModule m\nENTRY e {{ ROOT k = {type}[] constant({dict(pred='true', c64='(1, 0)').get(type, 1)}) }}")
    dtype = np.asarray(one).dtype
    x, y = ((random.integers(0, 2 if type == "pred" else 7, n)).astype(dtype) for _ in range(2))
    want = np.asarray(xlac.interpret(plain, x, y)).tobytes()
    assert np.asarray(xlac.interpret(mapped, x, y)).tobytes() == want
    assert np.asarray(xlac.compile(mapped, passes=False)(x, y)).tobytes() == want


def test_a_reducer_over_its_own_accumulator_is_right():
    """An all-reduce combines into the memory of one operand: a program of several ops must not read what it wrote."""
    text = """HloModule m, replica_count=2
%f {
  p0 = f32[] parameter(0)
  p1 = f32[] parameter(1)
  a = f32[] add(p0, p1)
  b = f32[] multiply(a, p0)
  ROOT c = f32[] subtract(b, p0)
}
ENTRY e {
  x = f32[700] parameter(0)
  ROOT r = f32[700] all-reduce(x), replica_groups={{0,1}}, to_apply=%f
}
"""
    x = np.linspace(-2, 2, 700, dtype="f4")
    y = x[::-1].copy()
    parts = xlac.run_parallel(text, [(x,), (y,)])
    want = (x + y) * x - x
    assert all(np.asarray(p).tolist() == want.tolist() for p in parts)


def test_a_program_keeps_nothing_of_its_module():
    """The executable goes on when the module it was made of is gone."""
    module = xlac.parse(SORT.format(type="f32", body="  n = f32[] negate(p0)\n  m = f32[] negate(p1)\n"
                                    "  a = f32[] abs(n)\n  b = f32[] abs(m)\n  ROOT l = pred[] compare(a, b), direction=LT"))
    step = xlac.compile(module)
    del module
    assert step(np.array([3, -1, 2, 7, 0, -5, 1], "f4")).tolist() == [0, -1, 1, 2, 3, -5, 7]
