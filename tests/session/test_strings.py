"""Strings: fed, fetched, and what the host does with them. Expected values are TensorFlow's."""
import numpy as np
import pytest
from graphs import const, node, placeholder

import xlac

F, I, S, L = "DT_FLOAT", "DT_INT32", "DT_STRING", "DT_INT64"


def executable(text, feeds, fetches, targets=()):
    return xlac.cluster(text).executable(feeds, fetches, targets)


@pytest.mark.parametrize("given", [["ab", "é", ""], [b"ab", "é".encode(), b""], np.array(["ab", "é", ""]), np.array([b"ab", "é".encode(), b""], object)])
def test_feeds_and_fetches(given):
    text = placeholder("s", S) + node("i", "Identity", "s", T=S) + node("n", "StringLength", "s") + node("u", "StringLength", "s", unit="UTF8_CHAR")
    i, n, u, shape = executable(text + node("d", "Shape", "s", T=S), ["s"], ["i", "n", "u", "d"])(given)
    assert i.tolist() == [b"ab", "é".encode(), b""] and (n.tolist(), u.tolist(), shape.tolist()) == ([2, 2, 0], [2, 1, 0], [3])


def test_shapes_of_strings():
    step = executable(placeholder("s", S) + node("i", "Identity", "s", T=S), "s", "i")
    assert step("one") == b"one" and step("one").shape == ()
    assert step(np.zeros((0, 2), "S3")).shape == (0, 2)
    assert step([["a", "bcd"]]).tolist() == [[b"a", b"bcd"]]
    with pytest.raises(TypeError, match="takes strings"):
        step([1, 2])
    fixed = executable(node("s", "Placeholder", dtype=S, shape={"shape": "{ dim { size: 2 } }"}) + node("i", "Identity", "s", T=S), "s", "i")
    with pytest.raises(xlac.Error, match="feed 's' needs size 2 in dimension 0, not 3"):
        fixed(["a", "b", "c"])


def test_each_string():
    text = placeholder("s", S) + "".join(node(op, op, "s") for op in ("StringLower", "StringUpper", "StringStrip"))
    lower, upper, strip = executable(text, ["s"], ["StringLower", "StringUpper", "StringStrip"])([" aBc\t", "Zz[`{"])
    assert lower.tolist() == [b" abc\t", b"zz[`{"] and upper.tolist() == [b" ABC\t", b"ZZ[`{"] and strip.tolist() == [b"aBc", b"Zz[`{"]


def test_numbers_and_strings():
    text = placeholder("s", S) + node("f", "StringToNumber", "s", out_type=F) + placeholder("t", S) + node("l", "StringToNumber", "t", out_type=L)
    step = executable(text, ["s", "t"], ["f", "l"])
    f, whole = step(["1.5", " -3e2 ", "7"], "-7")
    assert f.tolist() == [1.5, -300, 7] and whole == -7 and whole.dtype == np.int64
    with pytest.raises(xlac.Error, match="node 'f' .op StringToNumber.: 'x1' is not a number"):
        step(["x1"], "1")
    with pytest.raises(xlac.Error, match="'1.5' is not a number"):
        step(["1"], "1.5")


@pytest.mark.parametrize("value,attrs,wanted", [
    ([1.5, -2.25], {}, [b"1.500000", b"-2.250000"]), ([1.5, -2.25], {"precision": 1, "width": 6, "fill": "0"}, [b"0001.5", b"-002.2"]),
    ([1e-7, 1.5], {"shortest": True}, [b"1e-07", b"1.5"]), ([1.5], {"scientific": True}, [b"1.500000e+00"])])
def test_numbers_as_strings(value, attrs, wanted):
    assert executable(placeholder("x") + node("s", "AsString", "x", T=F, **attrs), "x", "s")(value).tolist() == wanted


def test_whole_numbers_as_strings():
    text = placeholder("x", I) + node("s", "AsString", "x", T=I, width=4) + placeholder("p", "DT_BOOL") + node("b", "AsString", "p", T="DT_BOOL")
    s, b = executable(text, ["x", "p"], ["s", "b"])([3, -4], True)
    assert s.tolist() == [b"   3", b"  -4"] and b == b"true"


def test_several_strings():
    text = placeholder("a", S) + placeholder("b", S) + node("j", "StringJoin", "a", "b", N=2, separator="-")
    text += node("e", "Equal", "b", "a", T=S) + node("n", "NotEqual", "b", "a", T=S)
    step = executable(text, ["a", "b"], ["j", "e", "n"])
    j, e, n = step("a", ["b", "a"])
    assert j.tolist() == [b"a-b", b"a-a"] and e.tolist() == [False, True] and n.tolist() == [True, False]
    with pytest.raises(xlac.Error, match="has another shape"):
        step(["a", "b"], ["b", "c", "d"])


def test_printing(capfd):
    """What tf.print is made of."""
    text = placeholder("x") + placeholder("s", S) + node("f", "StringFormat", "x", "s", T={"list": f"{{ type: {F} type: {S} }}"}, template="a {} b {}", placeholder="{}")
    step = executable(text + node("p", "PrintV2", "f"), ["x", "s"], "f", ["p"])
    assert step(np.arange(8).reshape(2, 2, 2) / 8, ["x", "yz"]) == b'a [[[0 0.125]\n  [0.25 0.375]]\n\n [[0.5 0.625]\n  [0.75 0.875]]] b ["x" "yz"]'
    assert capfd.readouterr().err.startswith("a [[[0 0.125]\n")
    assert step(np.arange(8), "q") == b'a [0 1 2 ... 5 6 7] b "q"'
    assert step(np.zeros((0, 3)), "q") == b'a [] b "q"'


def test_errors_name_the_node():
    text = placeholder("x") + const("t", S, value='string_val: "k"') + node("f", "StringFormat", "x", T={"list": f"{{ type: {F} }}"}, template="none", placeholder="{}")
    with pytest.raises(xlac.Error, match="node 'f' .op StringFormat.: its template has fewer places"):
        executable(text, "x", "f")(1.0)
