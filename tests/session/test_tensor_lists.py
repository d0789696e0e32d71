"""TensorLists and TensorArrays, op by op, without loops."""
import numpy as np
import pytest
from graphs import add, const, node, placeholder

import xlac

F, I, V = "DT_FLOAT", "DT_INT32", "DT_VARIANT"
ANY, TWO = const("any", I, value="int_val: -1"), const("two", I, value="int_val: 2", shape="dim { size: 1 }")


def executable(text, feeds, fetches, targets=()):
    return xlac.cluster(text, global_jit_level=-1).executable(feeds, fetches, targets)


def pushed(*values, most=-1):
    text, last = ANY + TWO + const("most", I, value=f"int_val: {most}") + node("l", "EmptyTensorList", "two", "most", element_dtype=F, shape_type=I), "l"
    for i, value in enumerate(values):
        text += node(f"p{i}", "TensorListPushBack", last, value, element_dtype=F)
        last = f"p{i}"
    return text, last


def test_push_and_pop():
    text, last = pushed("x", "y")
    text += placeholder("x") + placeholder("y") + node("q", "TensorListPopBack", last, "any", element_dtype=F)
    text += node("n", "TensorListLength", "q") + node("m", "TensorListLength", last) + node("s", "TensorListElementShape", "q", shape_type=I)
    n, m, s, y, rest = executable(text + node("r", "TensorListStack", "q", "any", element_dtype=F), ["x", "y"], ["n", "m", "s", "q:1", "r"])([1, 2], [3, 4])
    assert (int(n), int(m), s.tolist(), y.tolist(), rest.tolist()) == (1, 2, [2], [3, 4], [[1, 2]])  # what was pushed stays as it was


@pytest.mark.parametrize("op,match", [("full", "the list is full"), ("empty", "the list is empty"), ("index", "index 5 of a list of 1"),
                                      ("type", "the list's elements are f32, not s32")])
def test_what_lists_refuse(op, match):
    text, last = pushed("x", "x", most=1) if op == "full" else pushed() if op == "empty" else pushed("x")
    text += placeholder("x") + const("five", I, value="int_val: 5")
    text += {"full": "", "empty": node("r", "TensorListPopBack", last, "any", element_dtype=F),
             "index": node("r", "TensorListGetItem", last, "five", "any", element_dtype=F),
             "type": node("r", "TensorListPushBack", last, "five", element_dtype=I)}[op]
    fetch = "z" if op in ("full", "type") else "r:1" if op == "empty" else "r"
    text += node("z", "TensorListLength", last if op == "full" else "r") if fetch == "z" else ""
    feeds = [] if op == "empty" else ["x"]
    with pytest.raises(xlac.Error, match=match):
        executable(text, feeds, fetch)(*[[1.0, 2.0]] * len(feeds))


def test_unwritten_elements_are_zero():
    text = (ANY + TWO + placeholder("x") + const("n", I, value="int_val: 3") + const("i", I, value="int_val: 1")
            + node("l", "TensorListReserve", "two", "n", element_dtype=F, shape_type=I) + node("s", "TensorListSetItem", "l", "i", "x", element_dtype=F)
            + node("g", "TensorListGetItem", "s", "n0", "any", element_dtype=F) + const("n0", I, value="int_val: 0")
            + node("all", "TensorListStack", "s", "any", element_dtype=F) + node("z", "ZerosLike", "s", T=V)
            + node("zero", "TensorListStack", "z", "any", element_dtype=F) + node("sum", "AddN", "s", "s", T=V, N=2)
            + node("twice", "TensorListStack", "sum", "two", element_dtype=F)
            + node("more", "TensorListResize", "s", "five") + const("five", I, value="int_val: 5") + node("n5", "TensorListLength", "more")
            + node("picked", "TensorListGather", "s", "which", "any", element_dtype=F)
            + const("which", I, value="int_val: 1", shape="dim { size: 2 }"))
    fetches = ["g", "all", "zero", "twice", "n5", "picked"]
    got = [v.tolist() for v in executable(text, ["x"], fetches)([5, 6])]
    assert got == [[0, 0], [[0, 0], [5, 6], [0, 0]], [[0, 0]] * 3, [[0, 0], [10, 12], [0, 0]], 5, [[5, 6], [5, 6]]]


def test_arrays_and_their_gradients():
    text = (placeholder("x") + placeholder("i", I) + const("n", I, value="int_val: 1") + node("a", "TensorArrayV3", "n", dtype=F, dynamic_size=True)
            + node("w", "TensorArrayScatterV3", "a", "i", "x", "a:1", T=F) + node("s", "TensorArraySizeV3", "a", "w")
            + node("g", "TensorArrayGradV3", "a", "w", source="grad") + const("k", I, value="int_val: 1") + const("row", value="float_val: 7", shape="dim { size: 2 }")
            + node("g1", "TensorArrayWriteV3", "g", "k", "row", "g:1", T=F) + node("again", "TensorArrayGradV3", "a", "g1", source="grad")
            + node("g2", "TensorArrayWriteV3", "again", "k", "row", "again:1", T=F) + node("all", "TensorArrayGatherV3", "g", "i", "g2", dtype=F))
    s, gradient = executable(text, ["x", "i"], ["s", "all"])([[1, 2], [3, 4], [5, 6]], [0, 1, 2])
    assert int(s) == 3 and gradient.tolist() == [[0, 0], [14, 14], [0, 0]]  # what is written twice is added


def test_switch_of_many_and_unique_by_axis():
    text = (placeholder("x") + placeholder("k", I) + node("s", "_SwitchN", "x", "k", T=F, num_outs=3) + add("a", "s:0", "s:0") + add("b", "s:2", "x")
            + node("m", "Merge", "a", "s:1", "b", T=F, N=3) + placeholder("u", I) + const("zero", I, value="int_val: 0", shape="dim { size: 1 }")
            + node("q", "UniqueV2", "u", "zero", T=I, Taxis=I))
    exe = executable(text, ["x", "k", "u"], ["m", "m:1", "q", "q:1"])
    assert [[v.tolist() for v in exe(3.0, k, [4, 4, 2])] for k in (0, 1, 2, 9)] == [
        [6, 0, [4, 2], [0, 0, 1]], [3, 1, [4, 2], [0, 0, 1]], [6, 2, [4, 2], [0, 0, 1]], [6, 2, [4, 2], [0, 0, 1]]]
