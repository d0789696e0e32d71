"""Ops that the host runs: random numbers with hidden state, results of unknown shapes, checks, the first variables."""
import numpy as np
import pytest
from graphs import add, const, node, placeholder, read, variable

import xlac

F, I, B, L = "DT_FLOAT", "DT_INT32", "DT_BOOL", "DT_INT64"


def executable(text, feeds, fetches, targets=()):
    return xlac.cluster(text, global_jit_level=-1).executable(feeds, fetches, targets)


def draw(op, shape, seed, seed2, dtype=F, extra="", inputs=(), **attrs):
    text = placeholder("s", I) + extra + node("r", op, "s", *inputs, T=I, dtype=dtype, seed=seed, seed2=seed2, **attrs)
    exe = executable(text, ["s"], "r")
    return exe(shape), exe(shape)


def philox(key, counter, n):
    """n blocks of Philox4x32-10, written down from the paper."""
    out = np.empty((n, 4), np.uint32)
    for i in range(n):
        c, k = counter + i, [key & 0xFFFFFFFF, key >> 32]
        x = [(c >> (32 * j)) & 0xFFFFFFFF for j in range(4)]
        for _ in range(10):
            p, q = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
            x = [(q >> 32) ^ x[1] ^ k[0], q & 0xFFFFFFFF, (p >> 32) ^ x[3] ^ k[1], p & 0xFFFFFFFF]
            k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
        out[i] = x
    return out


def units(words):
    return ((words & 0x7FFFFF) | 0x3F800000).astype(np.uint32).view(np.float32) - np.float32(1)


def test_uniform_numbers_are_philox():
    first, second = draw("RandomUniform", [7], 5, 9)
    np.testing.assert_array_equal(first, units(philox(5, 9 << 64, 2)).ravel()[:7])
    np.testing.assert_array_equal(second, units(philox(5, (9 << 64) + 7 * 256, 2)).ravel()[:7])


def test_integers_are_philox():
    more = const("lo", I, value="int_val: -3") + const("hi", I, value="int_val: 100")
    text = placeholder("s", I) + more + node("r", "RandomUniformInt", "s", "lo", "hi", T=I, Tout=I, seed=1, seed2=2)
    got = executable(text, ["s"], "r")([2, 3])
    np.testing.assert_array_equal(got.ravel(), (philox(1, 2 << 64, 2).ravel()[:6].astype(np.int64) % 103) - 3)


@pytest.mark.parametrize("op", ["RandomStandardNormal", "TruncatedNormal"])
@pytest.mark.parametrize("dtype,numpy", [(F, "f4"), ("DT_DOUBLE", "f8"), ("DT_HALF", "f2")])
def test_normal_numbers(op, dtype, numpy):
    first, second = draw(op, [40000], 1, 2, dtype)
    assert first.dtype == numpy and not np.array_equal(first, second)
    values = first.astype("f8")
    assert abs(values.mean()) < 0.02 and abs(values.std() - (1 if op == "RandomStandardNormal" else 0.88)) < 0.02
    assert (np.abs(values).max() > 3) == (op == "RandomStandardNormal")
    np.testing.assert_array_equal(first, draw(op, [40000], 1, 2, dtype)[0])


def test_without_seeds_the_session_has_one():
    text = placeholder("s", I) + node("r", "RandomUniform", "s", T=I, dtype=F)
    c = xlac.cluster(text)
    a, b, other = (c.session(seed=s).executable("s", "r")([4]) for s in (1, 1, 2))
    assert a.tolist() == b.tolist() != other.tolist()
    assert c.executable("s", "r")([4]).tolist() != c.session().executable("s", "r")([4]).tolist()


def test_shuffle():
    text = placeholder("x") + node("r", "RandomShuffle", "x", T=F, seed=1, seed2=1)
    x = np.arange(20, dtype=np.float32).reshape(10, 2)
    got = executable(text, ["x"], "r")(x)
    assert sorted(got.tolist()) == x.tolist() != got.tolist()


def test_where_and_unique():
    text = (placeholder("x") + node("w", "Where", "x", T=F) + placeholder("u", I)
            + node("q", "UniqueWithCounts", "u", T=I, out_idx=L))
    exe = executable(text, ["x", "u"], ["w", "q", "q:1", "q:2"])
    where, values, places, counts = exe([[0, 1], [2, 0], [3, 4]], [5, 1, 5, 5, 2])
    assert where.tolist() == [[0, 1], [1, 0], [2, 0], [2, 1]] and where.dtype == np.int64
    assert (values.tolist(), places.tolist(), counts.tolist()) == ([5, 1, 2], [0, 1, 0, 0, 2], [3, 1, 1])
    assert exe(np.zeros((2, 2)), [1])[0].shape == (0, 2)


def test_shapes():
    text = (placeholder("x") + node("s", "Shape", "x", T=F) + node("n", "Size", "x", T=F, out_type=L) + node("k", "Rank", "x", T=F)
            + placeholder("to", I) + node("y", "Reshape", "x", "to", T=F))
    exe = executable(text, ["x", "to"], ["s", "n", "k", "y"])
    s, n, k, y = exe(np.zeros((2, 3)), [3, -1])
    assert (s.tolist(), n, k, y.shape) == ([2, 3], 6, 2, (3, 2)) and n.dtype == np.int64
    with pytest.raises(xlac.Error, match="node 'y' .op Reshape.: 6 elements"):
        exe(np.zeros((2, 3)), [4, 2])


def test_checks():
    text = placeholder("x") + node("c", "CheckNumerics", "x", T=F, message="here")
    exe = executable(text, ["x"], "c")
    assert exe(1.0) == 1
    with pytest.raises(xlac.Error, match="node 'c' .op CheckNumerics.: here : Tensor had NaN"):
        exe([1.0, np.nan])


def test_strings_pass(capfd):
    text = (placeholder("p", B) + const("m", "DT_STRING", value='string_val: "so it goes"') + placeholder("x")
            + node("a", "Assert", "p", "m", "x", T={"list": "{ type: DT_STRING type: DT_FLOAT }"})
            + node("i", "Identity", "m", T="DT_STRING") + node("q", "PrintV2", "i"))
    exe = executable(text, ["p", "x"], [], ["a", "q"])
    exe(True, 1.0)
    assert capfd.readouterr().err == "so it goes\n"
    with pytest.raises(xlac.Error, match=r"assertion failed: \[so it goes\] \[1\]"):
        exe(False, 1.0)
    assert executable(text, [], "i")() == b"so it goes"


def test_the_first_variables():
    text = (node("v", "VariableV2", dtype=F, shape={"shape": "{ }"}) + placeholder("x") + node("w", "Assign", "v", "x", T=F)
            + node("s", "AssignAdd", "v", "x", T=F) + node("r", "Identity", "v", T=F) + add("t", "v", "x")
            + node("k", "IsVariableInitialized", "v", dtype=F))
    c = xlac.cluster(text, global_jit_level=-1)
    assert not c.executable([], "k")()
    with pytest.raises(xlac.Error, match="variable 'v' has no value"):
        c.executable([], "r")()
    assert c.executable("x", "w")(2.0) == 2 and c.executable("x", "s")(3.0) == 5
    assert c.executable([], "r")() == 5 and c.executable("x", "t")(1.0) == 6 and c.executable([], "k")()
    assert dict(c.executable().variables) == {"v": 5}


def test_feeds_of_the_wrong_shape():
    text = placeholder("x", shape={"shape": "{ dim { size: -1 } dim { size: 3 } }"})
    exe = executable(text, ["x"], "x")
    assert exe(np.zeros((5, 3))).shape == (5, 3)
    with pytest.raises(xlac.Error, match="feed 'x' needs size 3 in dimension 1, not 4"):
        exe(np.zeros((5, 4)))
    with pytest.raises(xlac.Error, match="rank 2"):
        exe(np.zeros(3))


def big_list(name, *values):
    return const(name, L, shape=f"dim {{ size: {len(values)} }}", value=" ".join(f"int64_val: {v}" for v in values))


def test_places_of_sparse_elements_near_the_largest_number_are_refused():
    text = placeholder("i", L) + big_list("shape", 1 << 31, 1 << 31) + big_list("to", 1 << 62) + node("r", "SparseReshape", "i", "shape", "to")
    exe = executable(text, ["i"], "r:0")
    np.testing.assert_array_equal(exe(np.array([[1, 2]], np.int64)), [[(1 << 31) + 2]])
    for far in ([1 << 40, 0], [(1 << 63) - 1, 5], [-(1 << 63), 0], [1 << 32, -1]):
        with pytest.raises(xlac.Error, match="out of range"):
            exe(np.array([far], np.int64))


@pytest.mark.parametrize("op", ["SegmentSum", "SegmentMean"])
def test_segment_ids_near_the_largest_number_are_refused(op):
    text = placeholder("v", F) + placeholder("i", L) + node("r", op, "v", "i", T=F, Tindices=L)
    exe = executable(text, ["v", "i"], "r")
    for last in ((1 << 63) - 1, (1 << 63) - 2, 1 << 62):
        with pytest.raises(xlac.Error, match="too large|out of memory"):
            exe(np.ones(2, np.float32), np.array([0, last], np.int64))
