"""Branches and loops: the first control flow with its dead values and frames, and that of functions."""
import numpy as np
import pytest
from graphs import add, assign, const, function, node, placeholder, read, unary, variable

import xlac

F, I, B = "DT_FLOAT", "DT_INT32", "DT_BOOL"


def executable(text, feeds, fetches, targets=(), **flags):
    return xlac.cluster(text, **{"global_jit_level": -1, **flags}).executable(feeds, fetches, targets)


def cond(name, x, p):
    """x + x where p, else x * x."""
    return (node(f"{name}/s", "Switch", x, p, T=F) + add(f"{name}/t", f"{name}/s:1", f"{name}/s:1")
            + node(f"{name}/f", "Mul", f"{name}/s:0", f"{name}/s:0", T=F) + node(name, "Merge", f"{name}/f", f"{name}/t", T=F, N=2))


def test_a_branch():
    exe = executable(placeholder("x") + placeholder("p", B) + cond("m", "x", "p"), ["x", "p"], ["m", "m:1"])
    assert [v.tolist() for v in exe([3.0], True)] == [[6], 1]
    assert [v.tolist() for v in exe([3.0], False)] == [[9], 0]
    dead = {u["name"]: u["dead"] for u in exe.stats["units"]}
    assert dead["m/t"] == dead["m/f"] == 1 and dead["m"] == 0


def test_the_branch_that_is_not_taken_has_no_effect():
    text = (placeholder("x") + placeholder("p", B) + variable("v") + node("s", "Switch", "x", "p", T=F) + node("here", "Identity", "s:1", T=F)
            + assign("w", "v", "x", "^here") + node("m", "Merge", "s:0", "here", "^w", T=F, N=2))
    exe = executable(text, ["x", "p"], "m", [])
    assert exe(1.0, False) == 1 and exe.variables == {}
    assert exe(2.0, True) == 2 and exe.variables["v"] == 2
    with pytest.raises(xlac.Error, match="fetch 'here' has no value"):
        executable(text, ["x", "p"], "here")(1.0, False)


def test_branches_in_branches():
    text = (placeholder("x") + placeholder("p", B) + placeholder("q", B) + node("o", "Switch", "x", "p", T=F)
            + node("oq", "Switch", "q", "p", T=B) + cond("i", "o:1", "oq:1") + node("m", "Merge", "o:0", "i", T=F, N=2))
    exe = executable(text, ["x", "p", "q"], "m")
    assert [float(exe(3.0, p, q)) for p in (True, False) for q in (True, False)] == [6, 9, 3, 3]


def loop(name, start, limit, body, frame=None, after=""):
    """i from start while i < limit: i = body(i), a v1 loop on int32. `body` writes the nodes from "{name}/in" to "{name}/out"."""
    frame = frame or name
    return (node(f"{name}/enter", "Enter", start, T=I, frame_name=frame)
            + node(f"{name}/limit", "Enter", limit, T=I, frame_name=frame, is_constant=True)
            + node(f"{name}/merge", "Merge", f"{name}/enter", f"{name}/next", T=I, N=2)
            + node(f"{name}/less", "Less", f"{name}/merge", f"{name}/limit", T=I) + node(f"{name}/cond", "LoopCond", f"{name}/less")
            + node(f"{name}/switch", "Switch", f"{name}/merge", f"{name}/cond", T=I) + node(f"{name}/in", "Identity", f"{name}/switch:1", T=I)
            + body + node(f"{name}/next", "NextIteration", f"{name}/out", T=I) + node(name, "Exit", f"{name}/switch", T=I))


def increment(name, by):
    return node(f"{name}/out", "AddV2", f"{name}/in", by, T=I)


ONE = const("one", I, "^l/in", value="int_val: 1")


def test_a_loop():
    exe = executable(placeholder("n", I) + placeholder("z", I) + loop("l", "z", "n", ONE + increment("l", "one")), ["z", "n"], "l")
    assert exe(0, 5) == 5 and exe(3, 5) == 5 and exe(7, 5) == 7
    assert exe(0, 3000) == 3000


def test_a_loop_that_is_not_reached_is_dead():
    text = (placeholder("n", I) + placeholder("p", B) + node("s", "Switch", "n", "p", T=I) + const("zero", I, "^t", value="int_val: 0")
            + node("t", "Identity", "s:1", T=I) + loop("l", "zero", "t", ONE + increment("l", "one"))
            + node("m", "Merge", "s:0", "l", T=I, N=2))
    exe = executable(text, ["n", "p"], ["m", "m:1"])
    assert [int(v) for v in exe(4, True)] == [4, 1] and [int(v) for v in exe(4, False)] == [4, 0]


def test_loops_in_loops():
    inner = (const("zero", I, "^o/in", value="int_val: 0") + const("three", I, "^o/in", value="int_val: 3")
             + loop("l", "zero", "three", ONE + increment("l", "one")) + node("o/out", "AddV2", "o/in", "l", T=I))
    exe = executable(placeholder("n", I) + placeholder("z", I) + loop("o", "z", "n", inner), ["z", "n"], "o")
    assert exe(0, 10) == 12 and exe(0, 1000) == 1002


def test_a_branch_within_a_loop_clustered():
    body = (node("l/f", "Cast", "l/in", SrcT=I, DstT=F) + const("half", F, "^l/in", value="float_val: 2") + node("l/p", "Less", "l/f", "half", T=F)
            + node("l/s", "Switch", "l/in", "l/p", T=I) + node("l/a", "AddV2", "l/s:1", "l/s:1", T=I)
            + node("l/b", "Mul", "l/s", "l/s", T=I) + node("l/out", "Merge", "l/a", "l/b", T=I, N=2))
    text = placeholder("n", I) + placeholder("z", I) + loop("l", "z", "n", body)
    for flags in ({}, {"global_jit_level": 1, "min_cluster_size": 1}):
        assert executable(text, ["z", "n"], "l", **flags)(1, 100) == 256


def functions(x, y=""):
    return (function("Twice", {"a": F}, {"o": F}, add("t", "a", "a"), rets={"o": "t:z:0"})
            + function("Squared", {"a": F}, {"o": F}, node("t", "Mul", "a", "a", T=F), rets={"o": "t:z:0"})
            + function("Small", {"a": F}, {"o": B}, const("k", value="float_val: 100"), node("t", "Less", "a", "k:output:0", T=F), rets={"o": "t:z:0"}))


def branch(op, **attrs):
    return node("b", op, "i", "x", Tin={"list": f"{{ type: {F} }}"}, Tout={"list": f"{{ type: {F} }}"}, **attrs)


@pytest.mark.parametrize("flags", [{}, {"global_jit_level": 1, "min_cluster_size": 1}])
def test_if_and_case_and_while(flags):
    named = {"then_branch": {"func": '{ name: "Twice" }'}, "else_branch": {"func": '{ name: "Squared" }'}}
    exe = executable(placeholder("x") + placeholder("i", B) + branch("If", Tcond=B, **named) + functions("x"), ["i", "x"], "b", **flags)
    assert exe(True, 5.0) == 10 and exe(False, 5.0) == 25
    both = {"branches": {"list": '{ func { name: "Twice" } func { name: "Squared" } }'}}
    exe = executable(placeholder("x") + placeholder("i", I) + branch("Case", **both) + functions("x"), ["i", "x"], "b", **flags)
    assert [float(exe(i, 5.0)) for i in (-1, 0, 1, 2)] == [25, 10, 25, 25]
    loop = node("w", "While", "x", T={"list": f"{{ type: {F} }}"}, cond={"func": '{ name: "Small" }'}, body={"func": '{ name: "Twice" }'})
    assert executable(placeholder("x") + loop + functions("x"), ["x"], "w", **flags)(3.0) == 192


def test_lists_in_a_loop():
    """Squares of the rows of x, and their running number, in a list that a loop writes and another reads."""
    text = (placeholder("x") + const("shape", I, value="int_val: -1") + node("in", "TensorListFromTensor", "x", "shape", element_dtype=F, shape_type=I)
            + node("n", "TensorListLength", "in") + node("out", "TensorListReserve", "shape", "n", element_dtype=F, shape_type=I)
            + const("zero", I, value="int_val: 0")
            + node("w", "While", "zero", "n", "in", "out", T={"list": "{ type: DT_INT32 type: DT_INT32 type: DT_VARIANT type: DT_VARIANT }"},
                   cond={"func": '{ name: "C" }'}, body={"func": '{ name: "B" }'})
            + node("y", "TensorListStack", "w:3", "shape", element_dtype=F)
            + function("C", {"i": I, "n": I, "a": "DT_VARIANT", "b": "DT_VARIANT"}, {"o": B}, node("t", "Less", "i", "n", T=I), rets={"o": "t:z:0"})
            + function("B", {"i": I, "n": I, "a": "DT_VARIANT", "b": "DT_VARIANT"}, {"o": I, "p": I, "q": "DT_VARIANT", "r": "DT_VARIANT"},
                       const("one", I, value="int_val: 1"), const("s", I, value="int_val: -1"), node("j", "AddV2", "i", "one:output:0", T=I),
                       node("e", "TensorListGetItem", "a", "i", "s:output:0", element_dtype=F), node("m", "Mul", "e:item:0", "e:item:0", T=F),
                       node("u", "TensorListSetItem", "b", "i", "m:z:0", element_dtype=F),
                       rets={"o": "j:z:0", "p": "n", "q": "a", "r": "u:output_handle:0"}))
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    for flags in ({}, {"global_jit_level": 1}):
        np.testing.assert_array_equal(executable(text, ["x"], "y", **flags)(x), x * x)


def test_stacks_and_arrays():
    text = (placeholder("x") + const("n", I, value="int_val: 2") + node("s", "StackV2", "n", elem_type=F) + node("p", "StackPushV2", "s", "x", T=F)
            + add("xx", "x", "x") + node("p2", "StackPushV2", "s", "xx", "^p", T=F) + node("o", "StackPopV2", "s", "^p2", elem_type=F)
            + node("a", "TensorArrayV3", "n", dtype=F) + const("i", I, value="int_val: 1") + const("z", I, value="int_val: 0")
            + node("w", "TensorArrayWriteV3", "a", "i", "x", "a:1", T=F) + node("w2", "TensorArrayWriteV3", "a", "z", "o", "w", T=F)
            + const("both", I, value='tensor_content: "\\000\\000\\000\\000\\001\\000\\000\\000"', shape="dim { size: 2 }")
            + node("g", "TensorArrayGatherV3", "a", "both", "w2", dtype=F) + node("r", "TensorArrayReadV3", "a", "i", "w2", dtype=F))
    g, r = executable(text, ["x"], ["g", "r"])([1.0, 2.0])
    assert g.tolist() == [[2, 4], [1, 2]] and r.tolist() == [1, 2]
