"""Values that lie in the memory of results, or of a loop's state, while that is free."""
import numpy as np
import pytest

import xlac

X = np.linspace(-2, 2, 4096, dtype=np.float32)
ROUND = """HloModule m
body {
  s = (s32[], f32[4096], f32[4096]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4096] get-tuple-element(s), index=1
  y = f32[4096] get-tuple-element(s), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  a = f32[4096] add(x, y)
  b = f32[4096] sine(a)
  r = f32[4096] reverse(b), dimensions={0}
  c = f32[4096] subtract(r, a)
  d = f32[4096] multiply(c, b)
  ROOT t = (s32[], f32[4096], f32[4096]) tuple(n, c, d)
}
condition {
  s = (s32[], f32[4096], f32[4096]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = s32[] constant(3)
  ROOT c = pred[] compare(i, k), direction=LT
}
ENTRY e {
  x = f32[4096] parameter(0)
  y = f32[4096] parameter(1)
  z = s32[] constant(0)
  p = (s32[], f32[4096], f32[4096]) tuple(z, x, y)
  w = (s32[], f32[4096], f32[4096]) while(p), condition=condition, body=body
  u = f32[4096] get-tuple-element(w), index=1
  v = f32[4096] get-tuple-element(w), index=2
  ROOT o = f32[4096] add(u, v)
}
"""


def same(text, *args):
    module = xlac.parse(text)
    exe = xlac.compile(module)
    exe._check()
    got, want = exe(*args), xlac.interpret(module, *args)
    for g, w in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, want))):
        assert np.asarray(g).tobytes() == np.asarray(w).tobytes()
    return exe


def test_a_loops_state_is_changed_in_place():
    """Both leaves of the state and three values of the body: one array lies in the result, the rest in three."""
    exe = same(ROUND, X, X[::-1].copy())
    assert exe.memory["frame_bytes"] < 3.5 * X.nbytes


def chain(n, module="HloModule m"):
    lines, last = [], "x"
    for i in range(n):
        lines.append(f"  r{i} = f32[4096] reverse({last}), dimensions={{0}}\n  q{i} = f32[4096] add(r{i}, {last})")
        last = f"q{i}"
    return f"{module}\nENTRY e {{\n  x = f32[4096] parameter(0)\n" + "\n".join(lines) + f"\n  ROOT y = f32[4096] multiply({last}, x)\n}}"


def test_values_lie_in_the_result_until_it_is_written():
    exe = same(chain(7), X)
    lent = [b for b in exe.memory.all_buffers if b.get("lent")]
    assert lent and {b["place"] for b in lent} == {"result"}
    assert exe.memory["result_bytes"] == X.nbytes and exe.memory["argument_bytes"] == X.nbytes
    assert exe.memory["frame_bytes"] < 1.2 * X.nbytes


def test_a_result_that_may_lie_in_an_argument_lends_nothing():
    exe = same(chain(7, "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }"), X)
    assert not any(b.get("lent") for b in exe.memory.all_buffers)
    want = exe(X)
    given = X.copy()
    assert exe(xlac.donate(given)).tobytes() == want.tobytes()


@pytest.mark.parametrize("order", ["u, v", "v, u", "u, u", "v, v", "i, u", "a, b", "b, a", "a, u", "u, b"])
def test_states_that_change_places(order):
    text = f"""HloModule m
body {{
  s = (s32[], f32[4096], f32[4096]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[4096] get-tuple-element(s), index=1
  b = f32[4096] get-tuple-element(s), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  c = f32[4096] reverse(a), dimensions={{0}}
  d = f32[4096] add(c, b)
  e = f32[4096] reverse(d), dimensions={{0}}
  u = f32[4096] subtract(e, d)
  v = f32[4096] multiply(d, e)
  ROOT t = (s32[], f32[4096], f32[4096]) tuple(n, {order.replace("i", "c")})
}}
condition {{
  s = (s32[], f32[4096], f32[4096]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = s32[] constant(3)
  ROOT c = pred[] compare(i, k), direction=LT
}}
ENTRY e {{
  x = f32[4096] parameter(0)
  z = s32[] constant(0)
  p = (s32[], f32[4096], f32[4096]) tuple(z, x, x)
  ROOT w = (s32[], f32[4096], f32[4096]) while(p), condition=condition, body=body
}}
"""
    same(text, X)
