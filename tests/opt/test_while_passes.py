"""while-loop-simplifier and while-loop-invariant-code-motion: what is left in loops, with the same results."""
import re

import numpy as np
import pytest

import xlac


def loop(state, init, body, condition, tail, params="x = f32[4] parameter(0)", more=""):
    """`body` ends with the next state's elements after `=>`; s is the state, a0, a1, ... its elements."""
    elements = re.findall(r"\w+\[[\d,]*\]", state)
    takes = "\n".join(f"a{i} = {t} get-tuple-element(s), index={i}" for i, t in enumerate(elements))
    lines, following = body.split("=>")
    return (f"HloModule m\n{more}\nbody {{\ns = {state} parameter(0)\n{takes}\n{lines.strip()}\nROOT r = {state} tuple({following.strip()})\n}}\n"
            f"condition {{\ns = {state} parameter(0)\n{takes}\n{condition}\n}}\n"
            f"ENTRY e {{\n{params}\n{init}\nw = {state} while(i), condition=condition, body=body\n{tail}\n}}\n")


COUNT = "k = s32[] constant(1)\nn = s32[] add(a0, k)\n"
STOP = "l = s32[] constant(5)\nROOT c = pred[] compare(a0, l), direction=LT"
X = np.array([1.0, -2.0, 0.5, 3.0], np.float32)


def section(text, name):
    return re.search(rf"(?ms)^%?{name}[ .(].*?\n}}", text)[0]


def check(source, pipeline, args=(X,)):
    before = xlac.parse(source)
    before.verify()
    after = before.run(pipeline + ",dce")
    after.verify()
    printed = after.to_text()
    assert xlac.parse(printed).to_text() == printed
    want, got = xlac.interpret(before, *args), xlac.interpret(after, *args)
    compiled = xlac.compile(before)(*args)
    for w, g, c in zip(*(v if isinstance(v, tuple) else (v,) for v in (want, got, compiled))):
        assert np.asarray(w).tobytes() == np.asarray(g).tobytes()
        assert np.asarray(w).tobytes() == np.asarray(c).tobytes()
    return printed


def test_constants_go_into_the_loop():
    text = check(loop("(s32[], f32[4], s32[])", "z = s32[] constant(0)\nl = s32[] constant(5)\ni = (s32[], f32[4], s32[]) tuple(z, x, l)",
                      COUNT + "y = f32[4] add(a1, a1) => n, y, a2", "ROOT c = pred[] compare(a0, a2), direction=LT",
                      "ROOT o = f32[4] get-tuple-element(w), index=1"), "while-loop-simplifier")
    assert "(s32[], f32[4])" in re.sub(r"\{0\}", "", section(text, "ENTRY"))
    assert "constant(5)" in section(text, "condition")


def test_what_passes_through_is_read_before_the_loop():
    text = check(loop("(s32[], f32[4], f32[4])", "z = s32[] constant(0)\ny = f32[4] sine(x)\ni = (s32[], f32[4], f32[4]) tuple(z, x, y)",
                      COUNT + "q = f32[4] multiply(a1, a1) => n, q, a2", STOP,
                      "g = f32[4] get-tuple-element(w), index=2\nh = f32[4] get-tuple-element(w), index=1\nROOT o = f32[4] add(g, h)"),
                 "while-loop-simplifier")
    assert "index=2" not in text


def test_what_nobody_needs_goes_with_what_computes_it():
    text = check(loop("(s32[], f32[4], f32[4])", "z = s32[] constant(0)\ni = (s32[], f32[4], f32[4]) tuple(z, x, x)",
                      COUNT + "q = f32[4] multiply(a1, a1)\nt = f32[4] tanh(a2) => n, q, t", STOP,
                      "ROOT o = f32[4] get-tuple-element(w), index=1"), "while-loop-simplifier")
    assert "tanh" not in text and "index=2" not in text


def test_elements_that_need_each_other_alone_go():
    text = check(loop("(s32[], f32[4], f32[4], f32[4])", "z = s32[] constant(0)\ni = (s32[], f32[4], f32[4], f32[4]) tuple(z, x, x, x)",
                      COUNT + "t = f32[4] tanh(a2)\nu = f32[4] sine(a3) => n, a1, u, t", STOP,
                      "g = s32[] get-tuple-element(w), index=0\nh = f32[4] get-tuple-element(w), index=1\nROOT o = (s32[], f32[4]) tuple(g, h)"),
                 "while-loop-simplifier")
    assert "tanh" not in text and "sine" not in text


@pytest.mark.parametrize("tail", ["ROOT o = (s32[], f32[4]) copy(w)", "ROOT o = ((s32[], f32[4])) tuple(w)"])
def test_a_state_that_is_read_whole_stays(tail):
    source = loop("(s32[], f32[4])", "z = s32[] constant(0)\ni = (s32[], f32[4]) tuple(z, x)", COUNT + "t = f32[4] tanh(a1) => n, t", STOP, tail)
    before = xlac.parse(source)
    assert before.run("while-loop-simplifier").to_text() == before.to_text()


INVARIANT = COUNT + "t = f32[4] tanh(a2)\nv = f32[4] negate(t)\nq = f32[4] multiply(a1, v) => n, q, a2"


def test_invariant_ops_move_before_the_loop():
    text = check(loop("(s32[], f32[4], f32[4])", "z = s32[] constant(0)\ni = (s32[], f32[4], f32[4]) tuple(z, x, x)", INVARIANT, STOP,
                      "ROOT o = f32[4] get-tuple-element(w), index=1"), "while-loop-invariant-code-motion")
    assert "tanh" not in section(text, "body") and "negate" not in section(text, "body")
    assert section(text, "ENTRY").count("tanh(") == 1


def test_what_is_cheap_or_grows_stays():
    body = (COUNT + "k2 = f32[] constant(2)\nb = f32[4] broadcast(k2), dimensions={}\n"
            "o2 = f32[4,1000] broadcast(a2), dimensions={0}\nm2 = f32[4,1000] sine(o2)\nz0 = f32[] constant(0)\n"
            "r2 = f32[4] reduce(m2, z0), dimensions={1}, to_apply=most\no3 = f32[4,1000] broadcast(a1), dimensions={0}\n"
            "m3 = f32[4,1000] cosine(o2)\nm4 = f32[4,1000] add(m3, o3)\nr3 = f32[4] reduce(m4, z0), dimensions={1}, to_apply=most\n"
            "q = f32[4] multiply(r3, r2) => n, q, a2")
    more = "most {\np0 = f32[] parameter(0)\np1 = f32[] parameter(1)\nROOT p2 = f32[] maximum(p0, p1)\n}"
    text = check(loop("(s32[], f32[4], f32[4])", "z = s32[] constant(0)\ni = (s32[], f32[4], f32[4]) tuple(z, x, x)", body, STOP,
                      "ROOT o = f32[4] get-tuple-element(w), index=1", more=more), "while-loop-invariant-code-motion")
    assert "sine(" not in section(text, "body").replace("cosine", ""), "a maximum is small and moves with all it needs"
    assert "cosine(" in section(text, "body") and "cosine" not in section(text, "ENTRY")


def test_random_ops_and_effects_stay():
    body = (COUNT + "lo = f32[] constant(0)\nhi = f32[] constant(1)\nu = f32[4] rng(lo, hi), distribution=rng_uniform\n"
            "q = f32[4] add(a1, u) => n, q, a2")
    source = loop("(s32[], f32[4], f32[4])", "z = s32[] constant(0)\ni = (s32[], f32[4], f32[4]) tuple(z, x, x)", body, STOP,
                  "ROOT o = f32[4] get-tuple-element(w), index=1")
    assert "rng(" in section(xlac.parse(source).run("while-loop-invariant-code-motion,dce").to_text(), "body")


def test_no_trip_at_all():
    stop = "l = s32[] constant(0)\nROOT c = pred[] compare(a0, l), direction=LT"
    check(loop("(s32[], f32[4], f32[4])", "z = s32[] constant(0)\ni = (s32[], f32[4], f32[4]) tuple(z, x, x)", INVARIANT, stop,
               "ROOT o = f32[4] get-tuple-element(w), index=1"), "while-loop-invariant-code-motion,while-loop-simplifier")


def test_nested_loops():
    inner = ("inner_body {\ns = (s32[], f32[4], f32[4]) parameter(0)\nj = s32[] get-tuple-element(s), index=0\nv = f32[4] get-tuple-element(s), index=1\n"
             "g = f32[4] get-tuple-element(s), index=2\nk = s32[] constant(1)\nn = s32[] add(j, k)\nt = f32[4] cosine(g)\nu = f32[4] add(v, t)\n"
             "ROOT r = (s32[], f32[4], f32[4]) tuple(n, u, g)\n}\ninner_condition {\ns = (s32[], f32[4], f32[4]) parameter(0)\n"
             "j = s32[] get-tuple-element(s), index=0\nl = s32[] constant(3)\nROOT c = pred[] compare(j, l), direction=LT\n}")
    body = (COUNT + "z0 = s32[] constant(0)\ni0 = (s32[], f32[4], f32[4]) tuple(z0, a1, a2)\n"
            "w0 = (s32[], f32[4], f32[4]) while(i0), condition=inner_condition, body=inner_body\nv0 = f32[4] get-tuple-element(w0), index=1 => n, v0, a2")
    text = check(loop("(s32[], f32[4], f32[4])", "z = s32[] constant(0)\ni = (s32[], f32[4], f32[4]) tuple(z, x, x)", body, STOP,
                      "ROOT o = f32[4] get-tuple-element(w), index=1", more=inner), "while-loop-invariant-code-motion,while-loop-simplifier")
    assert "cosine" in section(text, "ENTRY") and "cosine" not in section(text, "body") and "cosine" not in section(text, "inner_body")


TIMES = ("(s32[], f32[4], f32[4])", "z = s32[] constant({first})\ny = f32[4] sine(x)\ni = (s32[], f32[4], f32[4]) tuple(z, x, y)",
         COUNT + "q = f32[4] multiply(a1, a2) => n, q, a1")


@pytest.mark.parametrize(("first", "stop", "loops", "calls"), [(5, STOP, 0, 0), (9, STOP, 0, 0), (4, STOP, 0, 1), (3, STOP, 1, 0), (0, STOP, 1, 0),
    (4, "l = s32[] constant(-5)\nm = s32[] negate(l)\nd = f32[] convert(a0)\ne = f32[] convert(m)\nROOT c = pred[] compare(d, e), direction=LT", 0, 1),
    (4, "l = f32[1] slice(a1), slice={[0:1]}\nm = f32[] reshape(l)\nf = f32[] convert(a0)\nROOT c = pred[] compare(f, m), direction=LT", 1, 0),
    (4, "ROOT c = pred[] constant(false)", 0, 0)])
def test_loops_that_turn_once_or_never(first, stop, loops, calls):
    state, init, body = TIMES
    text = check(loop(state, init.format(first=first), body, stop, "g = f32[4] get-tuple-element(w), index=1\n"
                      "h = f32[4] get-tuple-element(w), index=2\nROOT o = f32[4] add(g, h)"), "while-loop-simplifier")
    entry = section(text, "ENTRY")
    assert (entry.count(" while("), entry.count(" call(")) == (loops, calls)
    taken = check(loop(state, init.format(first=first), body, stop, "ROOT o = f32[4] get-tuple-element(w), index=1"), "while-loop-simplifier,inline-calls")
    assert taken.count(" while(") == loops and " call(" not in taken


def test_a_loop_that_is_the_result_is_taken_apart():
    state, init, body = TIMES
    for first in (4, 5):
        check(loop(state, init.format(first=first), body, STOP, "").replace(f"w = {state} while", f"ROOT w = {state} while"), "while-loop-simplifier")


def test_a_loop_with_effects_or_random_numbers_in_its_condition_stays():
    state, init, body = TIMES
    stop = ("u = f32[] constant(0)\nv = f32[] constant(1)\nr = f32[] rng(u, v), distribution=rng_uniform\nl = s32[] constant(4)\n"
            "ROOT c = pred[] compare(a0, l), direction=LT")
    module = xlac.parse(loop(state, init.format(first=4), body, stop, "ROOT o = f32[4] get-tuple-element(w), index=1"))
    assert " while(" in module.run("while-loop-simplifier").to_text()


def test_effects_of_a_loop_that_turns_once_stay():
    state = "(s32[], f32[4])"
    text = loop(state, "z = s32[] constant(4)\ni = (s32[], f32[4]) tuple(z, x)",
                COUNT + 'q = f32[4] custom-call(a1), custom_call_target="f", custom_call_has_side_effect=true => n, a1', STOP,
                "ROOT o = f32[4] get-tuple-element(w), index=1")
    assert "custom-call" in section(xlac.parse(text).run("while-loop-simplifier,inline-calls,dce").to_text(), "ENTRY")


def test_a_loop_in_a_loop_is_taken_apart():
    state, init, body = TIMES
    inner = loop(state, init.format(first=4), body, STOP, "ROOT o = f32[4] get-tuple-element(w), index=1")
    inner = inner.replace("ENTRY e {", "callee {").replace("HloModule m", "")
    text = "HloModule m\n" + inner + """
again {
  t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[4] get-tuple-element(t), index=1
  k = s32[] constant(1)
  n = s32[] add(i, k)
  y = f32[4] call(x), to_apply=callee
  ROOT r = (s32[], f32[4]) tuple(n, y)
}
more {
  t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  k = s32[] constant(3)
  ROOT r = pred[] compare(i, k), direction=LT
}
ENTRY e {
  x = f32[4] parameter(0)
  z = s32[] constant(0)
  i = (s32[], f32[4]) tuple(z, x)
  w = (s32[], f32[4]) while(i), condition=more, body=again
  ROOT o = f32[4] get-tuple-element(w), index=1
}
"""
    assert check(text, "inline-calls,while-loop-simplifier,inline-calls").count(" while(") == 1


SQUARES = "y = f32[N] multiply(a1, a1) => n, y"
SORTS = "y = f32[N] sort(a1), dimensions={0}, to_apply=less => n, y"


@pytest.mark.parametrize("scheduled", [False, True])
@pytest.mark.parametrize(("n", "first", "body", "calls"), [(2000, 0, SQUARES, 5), (2000, -3, SQUARES, 8), (2000, -4, SQUARES, 0), (4, 0, SQUARES, 0),
                                                           (2000, 0, SORTS, 0)])
def test_loops_of_few_turns_that_only_compute_on_large_arrays_are_calls(n, first, body, calls, scheduled):
    less = "less {\na = f32[] parameter(0)\nb = f32[] parameter(1)\nROOT c = pred[] compare(a, b), direction=LT\n}" if "less" in body else ""
    source = loop(f"(s32[], f32[{n}])", f"z = s32[] constant({first})\ni = (s32[], f32[{n}]) tuple(z, x)", COUNT + body.replace("N", str(n)), STOP,
                  f"ROOT o = f32[{n}] get-tuple-element(w), index=1", f"x = f32[{n}] parameter(0)", less)
    if scheduled:
        source = source.replace("HloModule m", "HloModule m, is_scheduled=true")
    x = np.random.default_rng(0).uniform(-1, 1, n).astype(np.float32)
    text = check(source, "while-loop-simplifier{unroll=8}", (x,))
    assert (text.count(" call("), text.count(" while(")) == (calls, int(calls == 0))
    assert " while(" not in check(source, "while-loop-simplifier{unroll=8},inline-calls", (x,)) or not calls
    assert " while(" in check(source, "while-loop-simplifier", (x,))


ROWS = ("xs = f32[6,20] parameter(0)\nw = f32[20,30] parameter(1)\nh = f32[30] parameter(2)")
ROW = "(s32[], f32[6,20], f32[20,30], f32[30])"


def rows(*, index="a0", first="0", stop="6", product="row = f32[20] reshape(d)\np = f32[30] dot(row, a2), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
         state=ROW, params=ROWS, head="HloModule m"):
    """A loop that multiplies row `index` of an array by a matrix in each trip."""
    rest = ", ".join(f"a{i}" for i in range(1, 3))
    body = (COUNT + f"z0 = s32[] constant(0)\nback = s32[] constant(5)\nlast = s32[] subtract(back, a0)\nfar = s32[] multiply(a0, back)\n"
            f"d = f32[1,20] dynamic-slice(a1, {index}, z0), dynamic_slice_sizes={{1,20}}\n{product}\nt = f32[30] tanh(p)\nq = f32[30] add(a3, t) => n, {rest}, q")
    return loop(state, f"z = s32[] constant({first})\ni = {state} tuple(z, xs, w, h)", body, f"l = s32[] constant({stop})\nROOT c = pred[] compare(a0, l), direction=LT",
                "ROOT o = f32[30] get-tuple-element(w0), index=3", params=params).replace("w = (s32[]", "w0 = (s32[]").replace("HloModule m", head)


def row_values():
    g = np.random.default_rng(3)
    return [g.standard_normal(s).astype(np.float32) for s in ((6, 20), (20, 30), (30,))]


def check_products(source):
    """The interpreter's bits stay; compiled sums of products may have another order."""
    before, args = xlac.parse(source), row_values()
    after = before.run("while-loop-invariant-code-motion,dce")
    after.verify()
    want, got = xlac.interpret(before, *args), xlac.interpret(after, *args)
    assert want.tobytes() == got.tobytes()
    np.testing.assert_allclose(xlac.compile(before)(*args), want, rtol=1e-5, atol=1e-5)
    return after.to_text()


@pytest.mark.parametrize("index", ["a0", "last", "far"], ids=["forwards", "backwards", "beyond the end"])
def test_rows_of_an_array_are_multiplied_at_once_before_the_loop(index):
    text = check_products(rows(index=index))
    assert "dot(" not in section(text, "body") and "f32[6,30]{1,0} dot(" in section(text, "ENTRY")


@pytest.mark.parametrize("product", [
    "row = f32[20] reshape(d)\np = f32[30] dot(a2, row), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    "p1 = f32[1,30] dot(d, a2), lhs_contracting_dims={1}, rhs_contracting_dims={0}\np = f32[30] reshape(p1)",
    "p1 = f32[30,1] dot(a2, d), lhs_contracting_dims={0}, rhs_contracting_dims={1}\np = f32[30] reshape(p1)",
    "row = f32[20] reshape(d)\np = f32[30] dot(a2, row), lhs_contracting_dims={0}, rhs_contracting_dims={0}, operand_precision={highest,default}",
], ids=["on the right", "a row of its own", "a column", "with precisions"])
def test_rows_on_either_side_of_the_product(product):
    text = check_products(rows(product=product))
    assert "dot(" not in section(text, "body") and section(text, "ENTRY").count("dot(") == 1
    if "precision" in product:
        assert "operand_precision={default,highest}" in text


@pytest.mark.parametrize("change", [dict(first="4"), dict(stop="2"), dict(stop="0")], ids=["few trips left", "few trips", "no trip"])
def test_rows_that_are_many_more_than_trips_stay(change):
    assert "dot(" in section(check_products(rows(**change)), "body")


def test_a_row_that_never_changes_moves_by_itself():
    text = check_products(rows(index="back"))
    assert "dot(" not in section(text, "body") and "f32[30]{0} dot(" in section(text, "ENTRY")


def test_products_of_rows_with_a_state_stay():
    text = check_products(rows(product="row = f32[20] reshape(d)\nu = f32[20] slice(a3), slice={[0:20]}\nv = f32[20] add(row, u)\n"
                                       "p = f32[30] dot(v, a2), lhs_contracting_dims={0}, rhs_contracting_dims={0}"))
    assert "dot(" in section(text, "body")


def test_loops_of_a_schedule_are_changed_too():
    """StableHLO's programs have an order, which JAX's scans come in."""
    text = check_products(rows(head="HloModule m, is_scheduled=true"))
    assert "is_scheduled=true" in text and "dot(" not in section(text, "body")
