"""Running graphs: feeds, fetches, targets, pruning, variables, functions, errors."""
import threading

import numpy as np
import pytest
from graphs import add, assign, const, function, node, placeholder, read, variable

import xlac


def mul(name, x, y):
    return node(name, "Mul", x, y, T="DT_FLOAT")


def run(text, feeds, fetches, *arrays, targets=(), **flags):
    return xlac.cluster(text, **{"min_cluster_size": 2, **flags}).executable(list(feeds), fetches, targets)(*arrays)


X = np.array([1, 2, 3], np.float32)
CHAIN = placeholder("x") + const("k", value="float_val: 3") + add("a", "x", "k") + mul("b", "a", "a") + add("c", "b", "x")


def test_a_cluster_runs_compiled():
    exe = xlac.cluster(CHAIN, min_cluster_size=2).executable(["x"], ["c", "a"])
    c, a = exe(X)
    np.testing.assert_array_equal(a, X + 3)
    np.testing.assert_array_equal(c, (X + 3) ** 2 + X)
    stats = exe.stats
    assert stats["clusters"] == 1 == stats["compiles"] == stats["compiled_runs"] and stats["host_runs"] == 0
    exe(X)
    assert exe.stats["compiles"] == 1 and exe.stats["hits"] == 1
    assert "cluster_0 (4 nodes): cluster, 2 runs; 1 compiled" in exe.explain()


def test_nodes_outside_of_clusters_run_one_by_one():
    exe = xlac.cluster(CHAIN, global_jit_level=-1).executable("x", "c")
    np.testing.assert_array_equal(exe(X), (X + 3) ** 2 + X)
    assert exe.stats["clusters"] == 0 and exe.stats["compiles"] == 3 and exe.stats["host_runs"] == 1  # the constant


def test_feeds_by_position_by_name_and_converted():
    exe = xlac.cluster(CHAIN).executable(["x"], "c")
    assert exe([1, 2, 3]).tolist() == exe({"x": X}).tolist() == exe({"x:0": X}).tolist() == exe(np.arange(1, 4)).tolist() == [17, 27, 39]
    with pytest.raises(TypeError, match="takes 1 array, for x; found 0 arrays"):
        exe()
    with pytest.raises(TypeError, match="^missing feeds: x; unknown feeds: y; it has x$"):
        exe({"y": X})
    with pytest.raises(TypeError, match="takes no arrays: `feeds` names none; found 1 array$"):
        xlac.cluster(CHAIN).executable((), "k")(X)


def test_a_checkpoint_is_not_read_and_the_error_says_what_to_do():
    text = 'attr { key: "dtype" value { type: DT_STRING } } attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { %s } string_val: "w" } } }'
    graph = f"""node {{ name: "prefix" op: "Const" {text % ""} }} node {{ name: "names" op: "Const" {text % "dim { size: 1 }"} }}
        node {{ name: "r" op: "RestoreV2" input: "prefix" input: "names" input: "names" attr {{ key: "dtypes" value {{ list {{ type: DT_FLOAT }} }} }} }}
        node {{ name: "y" op: "Neg" input: "r" attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}"""
    with pytest.raises(xlac.Error, match="node 'r' .op RestoreV2.: input 0 is neither a tensor of numbers nor a variable") as caught:
        xlac.cluster(graph).executable((), "y")()
    assert "checkpoint" in caught.value.hint
    assert xlac.cluster(graph).executable("r", "y")(X).tolist() == (-X).tolist()


def test_a_value_within_a_cluster_can_be_fed_and_fetched():
    assert run(CHAIN, ["a", "x"], "c", [[10.0]], [[1.0]]).tolist() == [[101]]
    assert run(CHAIN, ["b:0", "x"], ["c", "b"], [10.0], [1.0])[0].tolist() == [11]
    with pytest.raises(xlac.Error, match="node 'x' .op Placeholder.: it needs a value"):
        run(CHAIN, [], "c")
    assert run(CHAIN, [], "k") == 3  # x is not needed


@pytest.mark.parametrize("what,match", [
    ((["nobody"], ["c"], []), "feed 'nobody': the graph has no such node"), ((["x"], ["c:1"], []), "fetch 'c:1': the node has 1 outputs"),
    ((["x"], ["c"], ["^nobody"]), "target"), ((["x", "x:0"], ["c"], []), "there twice"), ((["x"], ["c:z"], []), "not the name of a value")])
def test_names_that_are_wrong(what, match):
    with pytest.raises(xlac.Error, match=match):
        xlac.cluster(CHAIN).executable(*what)


def test_results_are_the_callers():
    exe = xlac.cluster(CHAIN).executable(["x"], ["k", "x", "k"])
    for _ in range(2):
        k, x, other = exe(X)
        k[...] = other[...] = 0
        x[...] = 0
    assert exe(X)[0] == 3 and X.tolist() == [1, 2, 3]


VARIABLE = (placeholder("x") + variable("v") + assign("init", "v", "x") + read("r", "v") + add("sum", "r", "x")
            + assign("step", "v", "sum", "^r") + node("done", "NoOp", "^step"))


@pytest.mark.parametrize("flags", [{}, {"global_jit_level": -1}, {"min_cluster_size": 1}])
def test_variables_keep_their_values(flags):
    c = xlac.cluster(VARIABLE, **flags)
    init, step, look = c.executable(["x"], [], ["init"]), c.executable(["x"], "sum", "done"), c.executable([], "r")
    with pytest.raises(xlac.Error, match="no value"):
        look()
    array = X.copy()
    assert init(array) == ()
    array[:] = 0  # the variable has a copy
    assert step(X).tolist() == [2, 4, 6] and step(X).tolist() == [3, 6, 9]
    value = look()
    value[:] = 0
    assert look().tolist() == [3, 6, 9] == c.executable().variables["v"].tolist()
    look.variables["v"] = np.float32([1])
    assert look().tolist() == [1] and list(look.variables) == ["v"] and len(look.variables) == 1
    with pytest.raises(xlac.Error, match="elements of type f32"):
        look.variables["v"] = np.int32(1)
    assert c.session().executable([], [], ["init"]).variables == {}


def test_a_call_that_fails_leaves_variables_as_they_were():
    text = (placeholder("x") + placeholder("ok", "DT_BOOL") + variable("v") + assign("w", "v", "x")
            + node("a", "Assert", "ok", "x", "^w", T={"list": "{ type: DT_FLOAT }"}, summarize=2)
            + node("n", "RandomUniform", "s", T="DT_INT32", dtype="DT_FLOAT", seed=3, seed2=4)
            + const("s", "DT_INT32", value="int_val: 2", shape="dim { size: 1 }") + node("o", "Identity", "n", "^a", T="DT_FLOAT"))
    exe = xlac.cluster(text, global_jit_level=-1).executable(["x", "ok"], "o", "a")
    first = exe(X, True)
    with pytest.raises(xlac.Error, match=r"node 'a' .op Assert.: assertion failed: \[7 7...\]"):
        exe([7, 7, 7], False)
    assert exe.variables["v"].tolist() == [1, 2, 3]
    second = exe(X, True)
    other = xlac.cluster(text, global_jit_level=-1).executable(["x", "ok"], "o", "a")
    np.testing.assert_array_equal([first, second], [other(X, True), other(X, True)])
    assert exe.stats["failures"] == 1


def test_another_shape_is_compiled_at_its_second_run():
    exe = xlac.cluster(CHAIN, min_cluster_size=2).executable(["x"], "c")
    compiled = []
    for n in (1, 1, 2, 2, 2, 1, 3):
        assert exe(np.ones(n)).tolist() == [17] * n
        unit = exe.stats["units"][0]
        compiled.append((unit["compiles"], unit["fallen_back"]))
    assert compiled == [(1, 0), (1, 0), (1, 1), (2, 1), (2, 1), (2, 1), (2, 2)]


def test_a_cluster_of_too_many_shapes_is_compiled_no_more():
    exe = xlac.cluster(CHAIN, min_cluster_size=2).executable(["x"], "c")
    for n in range(1, 15):
        exe(np.ones(n)), exe(np.ones(n))
    unit = exe.stats["units"][0]
    assert unit["megamorphic"] and unit["compiles"] == 11 and "megamorphic" in exe.explain()
    exe(np.ones(5))
    assert exe.stats["units"][0]["hits"] > unit["hits"]  # what is compiled stays in use


def test_policies():
    c = xlac.cluster(CHAIN, min_cluster_size=2)
    at_once, never = c.session(lazy=False).executable("x", "c"), c.session(always_defer=True).executable("x", "c")
    for n in range(1, 15):
        assert at_once(np.ones(n)).tolist() == never(np.ones(n)).tolist()
    assert at_once.stats["units"][0]["compiles"] == 14 and never.stats["units"][0]["compiles"] == 0
    assert never.stats["units"][0]["fallen_back"] == 14


BODY = function("F", {"a": "DT_FLOAT", "r": "DT_RESOURCE"}, {"o": "DT_FLOAT"}, add("t", "a", "a"), assign("w", "r", "t:z:0"), rets={"o": "t:z:0"})


def test_calls_of_functions():
    text = placeholder("x") + variable("v") + node("f", "F", "x", "v") + node("p", "StatefulPartitionedCall", "f", "v", Tin={
        "list": "{ type: DT_FLOAT type: DT_RESOURCE }"}, Tout={"list": "{ type: DT_FLOAT }"}, f={"func": '{ name: "F" }'}) + BODY
    exe = xlac.cluster(text, global_jit_level=-1).executable("x", "p")
    assert exe(X).tolist() == [4, 8, 12] == exe.variables["v"].tolist()
    assert {u["name"] for u in exe.stats["inside"]} == {"t", "w"}


def test_a_function_that_calls_itself():
    text = placeholder("x") + node("f", "F", "x") + function("F", {"a": "DT_FLOAT"}, {"o": "DT_FLOAT"}, node("t", "F", "a"), rets={"o": "t:o:0"})
    with pytest.raises(xlac.Error, match="deep"):
        run(text, ["x"], "f", X)


def test_ops_that_nobody_knows_to_run():
    text = placeholder("x") + node("b", "BesselJ0", "x", T="DT_FLOAT")
    with pytest.raises(xlac.Error, match="node 'b'"):
        run(text, ["x"], "b", X)


def test_threads_take_turns():
    c = xlac.cluster(VARIABLE, min_cluster_size=1)
    c.executable(["x"], [], ["init"])(np.float32(0))
    step = c.executable(["x"], "sum", "done")
    threads = [threading.Thread(target=lambda: [step(1.0) for _ in range(50)]) for _ in range(4)]
    [t.start() for t in threads]
    while any(t.is_alive() for t in threads):  # looks while they run
        assert 0 <= step.variables["v"] <= 200 and step.stats["failures"] == 0
        c.executable(["x"], "sum", "done")
    [t.join() for t in threads]
    assert step.variables["v"] == 200


def test_a_node_that_was_declustered_can_be_fetched():
    """PartiallyDeclusterPass leaves a copy in place of a node all of whose users want it in the host's memory."""
    gpu = "GPU:0"
    text = (placeholder("x", device=gpu) + placeholder("p", "DT_INT32", device=gpu) +
            node("n", "AddV2", "p", "p", T="DT_INT32", device=gpu) +
            node("r", "Reshape", "x", "n", T="DT_FLOAT", Tshape="DT_INT32", device=gpu, _XlaCompile=False))
    c = xlac.cluster(text, min_cluster_size=1, partially_decluster=True)
    assert "n/declustered" in c.nodes and "n" not in c.assignment
    step = c.executable(["x", "p"], ["n", "r"])
    n, r = step(np.arange(4, dtype=np.float32), np.array([1, 1], np.int32))
    assert n.tolist() == [2, 2] and r.tolist() == [[0, 1], [2, 3]]
