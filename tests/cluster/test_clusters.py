"""Clustering of small graphs: what becomes a cluster, what does not, and what is said about it."""
import re
import xml.dom.minidom

import pytest
from graphs import add, assign, chain, const, function, node, placeholder, read, unary, variable

import xlac
from xlac import _core


def clusters(text, **flags):
    return xlac.cluster(text, **{"min_cluster_size": 1, **flags})


def contents(text, **flags):
    return sorted(sorted(nodes) for nodes in clusters(text, **flags).clusters.values())


def test_a_chain_is_one_cluster():
    c = xlac.cluster(chain(5))
    assert c.assignment == {f"r{i}": "cluster_0" for i in range(5)}
    assert c.clusters == {"cluster_0": ["r0", "r1", "r2", "r3", "r4"]}
    assert c.nodes[:3] == ["_SOURCE", "_SINK", "x"] and c.candidates == ["r0", "r1", "r2", "r3", "r4"]
    assert xlac.cluster(chain(3)).assignment == {}
    assert xlac.cluster(chain(3), min_cluster_size=3, session_name="job").assignment["r0"] == "job_0"


def test_text_and_bytes_and_objects_are_the_same(tmp_path):
    text = chain(5)
    data = _core.graph_convert(text, "text", "proto")

    class Message:
        def SerializeToString(self):
            return data

    (tmp_path / "graph.pb").write_bytes(data)
    assert all(xlac.cluster(g).assignment == xlac.cluster(text).assignment for g in (data, Message(), tmp_path / "graph.pb"))
    assert _core.graph_convert(_core.graph_convert(data, "proto", "text"), "text", "proto") == data


def test_the_marked_graph_clusters_no_more():
    marked = xlac.cluster(chain(5))
    again = xlac.cluster(marked.to_graphdef())
    assert again.assignment == {} and "clustered before" in again.why("r0")
    assert marked.to_text().count('key: "_XlaCluster"') == 5 == marked.to_text().count('s: "cluster_0"')


REFUSALS = {
    "_XlaCompile is false": chain(1) + unary("n", "r0", _XlaCompile=False),
    "function it calls is false": chain(1) + function(
        "F", {"a": "DT_FLOAT"}, {"o": "DT_FLOAT"}, unary("t", "a"), rets={"o": "t:activations:0"}, _XlaCompile=False) + node("n", "F", "r0"),
    "no XLA device": chain(1) + unary("n", "r0", device="TPU:0"),
    "argument or a result": node("n", "_Arg", T="DT_FLOAT", index=0) + unary("r", "n"),
    "_scoped_allocator": chain(1) + unary("n", "r0", _scoped_allocator=1),
    "no kernel": chain(1) + node("n", "BesselJ0", "r0", T="DT_FLOAT"),
    "constant of strings": const("n", "DT_STRING", value='string_val: "a"'),
    "random numbers with hidden state": const("k", "DT_INT32", value="int_val: 3", shape="dim { size: 1 }")
    + node("n", "RandomUniform", "k", T="DT_INT32", dtype="DT_FLOAT"),
    "ControlTrigger": chain(1) + node("n", "ControlTrigger", "^r0"),
    "Assert or CheckNumerics": chain(1) + node("n", "CheckNumerics", "r0", T="DT_FLOAT", message="m"),
    "takes or gives a variant": placeholder("x", "DT_VARIANT") + unary("n", "x", "Identity", "DT_VARIANT"),
    "less accurately": chain(1) + node("n", "Svd", "r0", T="DT_FLOAT"),
    "slowly": chain(1) + node("n", "Qr", "r0", T="DT_FLOAT"),
    "a Unique": chain(1) + node("n", "Unique", "r0", T="DT_FLOAT"),
    "holds a node that XLA can't compile": chain(1) + function(
        "F", {"a": "DT_FLOAT"}, {"o": "DT_FLOAT"}, node("t", "BesselJ0", "a", T="DT_FLOAT"), rets={"o": "t:y:0"}) + node("n", "F", "r0"),
    "not in the library": chain(1) + function(  # of the graph's own node that would be an error
        "F", {"a": "DT_FLOAT"}, {"o": "DT_FLOAT"}, node("t", "PartitionedCall", "a", Tin={"list": "{ type: DT_FLOAT }"},
                                                        Tout={"list": "{ type: DT_FLOAT }"}, f={"func": '{ name: "G" }'}),
        rets={"o": "t:output:0"}) + node("n", "F", "r0"),
    "forwards a reference": node("v", "VariableV2", dtype="DT_FLOAT", shape={"shape": "{ }"}) + unary("n", "v", "Identity"),
    "a CollectiveReduceV2": chain(1) + "".join(const(k, "DT_INT32", value="int_val: 1") for k in "abc")
    + node("n", "CollectiveReduceV2", "r0", "a", "b", "c", T="DT_FLOAT", merge_op="Add", final_op="Id"),
    "an op on stacks": const("k", "DT_INT32", value="int_val: 1") + node("n", "StackV2", "k", elem_type="DT_FLOAT"),
    "an op on tensor arrays": const("k", "DT_INT32", value="int_val: 1") + node("n", "TensorArrayV3", "k", dtype="DT_FLOAT"),
    "it takes a resource inside a function": variable("v") + function(
        "F", {"h": "DT_RESOURCE"}, {"o": "DT_FLOAT"}, read("t", "h"), rets={"o": "t:value:0"}) + node("n", "F", "v"),
    "it has state, and a consumer needs its value": chain(1) + node("v", "VarHandleOp", dtype="DT_INT32", shape={"shape": "{ }"})
    + node("n", "ReadVariableOp", "v", dtype="DT_INT32") + node("s", "Reshape", "r0", "n", T="DT_FLOAT", Tshape="DT_INT32"),
    "the Identity of a loop's condition that a Const hangs on": placeholder("x") + placeholder("p", "DT_BOOL")
    + node("c", "LoopCond", "p") + node("w", "Switch", "x", "c", T="DT_FLOAT") + unary("n", "w:1", "Identity") + const("k", "DT_FLOAT", "^n"),
    "a function of the loop holds a node that XLA can't compile": chain(1) + function(
        "C", {"a": "DT_FLOAT"}, {"o": "DT_BOOL"}, const("t", "DT_BOOL", value="bool_val: true"), rets={"o": "t:output:0"}) + function(
        "B", {"a": "DT_FLOAT"}, {"o": "DT_FLOAT"}, node("t", "BesselJ0", "a", T="DT_FLOAT"), rets={"o": "t:y:0"})
    + node("n", "While", "r0", T={"list": "{ type: DT_FLOAT }"}, cond={"func": '{ name: "C" }'}, body={"func": '{ name: "B" }'}),
    "a branch holds a node that XLA can't compile": chain(1) + placeholder("p", "DT_BOOL") + function(
        "B", {"a": "DT_FLOAT"}, {"o": "DT_FLOAT"}, node("t", "BesselJ0", "a", T="DT_FLOAT"), rets={"o": "t:y:0"})
    + node("n", "If", "p", "r0", Tcond="DT_BOOL", Tin={"list": "{ type: DT_FLOAT }"}, Tout={"list": "{ type: DT_FLOAT }"},
           then_branch={"func": '{ name: "B" }'}, else_branch={"func": '{ name: "B" }'}),
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_each_filter_says_why(reason):
    c = clusters(REFUSALS[reason])
    assert "n" not in c.assignment
    assert reason in c.why("n"), c.why("n")


@pytest.mark.parametrize("flags, reason", [
    ({"global_jit_level": -1}, "not enabled for its device: /job:localhost/replica:0/task:0/device:CPU:0, jit level -1"),
    ({"ops_to_cluster": "Add"}, "not among tf_xla_ops_to_cluster: 'Add'"),
    ({"clustering_fuel": 1}, "the fuel is spent: 1"),
    ({"min_cluster_size": 9}, "its cluster has 3 nodes, of which 3 count"),
])
def test_flags_that_refuse(flags, reason):
    assert reason in clusters(chain(3), **flags).why("r2")


def test_other_ways_to_the_same_filter():
    branch = function("B", {"a": "DT_FLOAT"}, {"o": "DT_FLOAT"}, node("t", "BesselJ0", "a", T="DT_FLOAT"), rets={"o": "t:y:0"})
    types = {"list": "{ type: DT_FLOAT }"}
    case = node("n", "Case", "i", "r0", Tin=types, Tout=types, branches={"list": '{ func { name: "B" } }'})
    c = clusters(chain(1) + branch + const("i", "DT_INT32", value="int_val: 0") + case)
    assert "a branch holds a node that XLA can't compile; it is 't' (BesselJ0)" in c.why("n")
    where = placeholder("b", "DT_BOOL") + node("n", "Where", "b", T="DT_BOOL")
    assert "Where is excluded" in clusters(where, cluster_exclude_ops="Where").why("n")
    assert "n" in clusters(where).assignment
    assert "source or sink" in clusters(chain(1)).why("_SOURCE")


def test_functions_that_compile_are_candidates():
    f = function("F", {"a": "DT_FLOAT"}, {"o": "DT_FLOAT"}, unary("t", "a"), rets={"o": "t:activations:0"})
    assert contents(chain(1) + f + node("n", "F", "r0")) == [["n", "r0"]]


def test_a_function_that_calls_itself_is_refused():
    f = function("F", {"a": "DT_FLOAT"}, {"o": "DT_FLOAT"}, node("t", "F", "a"), rets={"o": "t:o:0"})
    c = clusters(chain(1) + f + node("n", "F", "r0"))
    assert "n" not in c.assignment and "deeper than 50 calls" in c.why("n")


# --- two clusters that can't be one ---

def test_why_not_deadness():
    text = (placeholder("x") + placeholder("p", "DT_BOOL") + node("s", "Switch", "x", "p", T="DT_FLOAT")
            + unary("f", "s") + unary("t", "s:1") + unary("live", "x"))
    c = clusters(text)
    assert len({c.assignment[n] for n in ("f", "t", "live")}) == 3
    assert c.deadness("f") == "~*p:0" and c.deadness("t") == "*p:0" and c.deadness("live") == "#true"
    c = clusters(text + add("both", "live", "t"))
    assert "not alive at the same times: #true and *p:0" in c.why_not("live", "both")
    same = clusters(text + add("both", "live", "t"), disable_deadness_safety_checks_for_debugging=True)
    assert same.assignment["live"] == same.assignment["both"]


def test_why_not_device():
    c = clusters(placeholder("x") + unary("a", "x", device="GPU:0") + unary("b", "a", device="GPU:1"))
    assert c.assignment["a"] != c.assignment["b"]
    assert "devices that can't share a cluster" in c.why_not("a", "b") and "GPU:0 and" in c.why_not("a", "b")


def test_why_not_a_neighbours_device():
    """What feeds the second is on a device that it can't share a cluster with."""
    text = (placeholder("x") + unary("p", "x", device="XLA_CPU:0") + unary("a", "x") + add("b", "a", "p"))
    c = clusters(text)
    assert len({c.assignment[n] for n in "pab"}) == 3
    assert "a cluster that feeds the second is on a device of another kind" in c.why_not("a", "b")


def test_why_not_scope():
    c = clusters(placeholder("x") + unary("a", "x", _XlaInternalScope="one") + unary("b", "a", _XlaInternalScope="two"))
    assert "different scopes: 'one' and 'two'" in c.why_not("a", "b")


def test_why_not_size():
    assert "more nodes than max_cluster_size: 2 and 2, at most 3" in clusters(chain(4), max_cluster_size=3).why_not("r1", "r2") or \
        "more nodes than max_cluster_size" in clusters(chain(4), max_cluster_size=3).why_not("r0", "r3")


def test_why_not_resources():
    text = (placeholder("x") + variable("v") + unary("a", "x") + assign("w", "v", "a") + read("r", "v", "^w") + unary("b", "r"))
    c = clusters(text)
    assert c.unsafe_pairs == [("w", "r")] and c.assignment["w"] != c.assignment["r"]
    assert "would change places" in c.why_not("w", "r") and "'r' (ReadVariableOp) comes after 'w'" in c.why_not("w", "r")
    free = clusters(text, disable_resource_variable_safety_checks_for_debugging=True)
    assert free.assignment["w"] == free.assignment["r"]


def test_why_not_cycle():
    text = placeholder("x") + unary("a", "x") + node("u", "BesselJ0", "a", T="DT_FLOAT") + add("b", "a", "u")
    c = clusters(text)
    assert c.assignment["a"] != c.assignment["b"]
    assert "another path leads" in c.why_not("a", "b") and "'a' (Relu) -> 'u' (BesselJ0) -> 'b' (AddV2)" in c.why_not("a", "b")


def test_reads_before_writes_share_a_cluster():
    text = placeholder("x") + variable("v") + read("r", "v") + add("s", "r", "x") + assign("w", "v", "s")
    assert contents(text) == [["r", "s", "w"]]


def test_what_if():
    c = clusters(chain(4), max_cluster_size=2)
    assert set(c.what_if(max_cluster_size=4)) == {"r0", "r1", "r2", "r3"}
    assert c.what_if() == {}


def test_pictures():
    c = clusters(chain(4))
    assert c.to_dot().startswith("digraph") and "cluster_0" in c.to_dot()
    assert "<svg" in c._repr_html_() and "cluster_0" in c._repr_html_()
    assert repr(c) == "<xlac.Clusters: 1 cluster of 4 nodes, of 5 in all>"


def test_pictures_of_any_size():
    """Of large graphs each cluster is one box; nodes and clusters have their names, whole or with an ellipsis and a title."""
    small, large = clusters(chain(4)).svg(), clusters(chain(5000)).svg()
    for svg in (small, large):
        assert xml.dom.minidom.parseString(svg).documentElement.getAttribute("role") == "img" and "prefers-color-scheme" in svg
    assert ">r3<" in small and "<title>r3" in small
    assert len(large) < 10_000 and ">5000 nodes<" in large and ">cluster_0<" in large


# --- bad input ---

@pytest.mark.parametrize("text, message", [
    (unary("r", "nobody"), "its input 'nobody' is not a node"),
    (placeholder("x") + placeholder("x"), "another node has the same name"),
    (node("a", "NoSuchOp"), "the op is unknown"),
    (unary("a", "b") + unary("b", "a"), "part of a cycle"),
    (placeholder("x") + node("a", "AddV2", "x", T="DT_FLOAT"), "takes 2 inputs here, the node has 1"),
    (placeholder("x") + node("a", "Relu", "x"), "attribute 'T' is missing"),
    (placeholder("x", "DT_INT32") + unary("a", "x"), "input 0 expects float, but 'x' gives int32"),
    (placeholder("x") + unary("a", "x:3"), "which has 1 outputs"),
    (node("a b", "NoOp"), "invalid characters"),
    ("node { name: 3 }", "expected a string"),
    ("node { nome: \"a\" }", "there is no field 'nome'"),
])
def test_malformed_graphs_are_errors_with_a_name(text, message):
    with pytest.raises(xlac.Error, match=message):
        xlac.cluster(text)


@pytest.mark.parametrize("what, hint", [(b"PK\x03\x04\x14\x00", "model.export"), (b"\x89HDF\r\n", "HDF5"), ("import os\n", "Python")])
def test_what_is_no_graph_gets_a_hint(what, hint):
    with pytest.raises(xlac.ParseError) as caught:
        xlac.cluster(what)
    assert hint in caught.value.hint


def test_a_folder_that_is_no_saved_model(tmp_path):
    with pytest.raises(IsADirectoryError, match="saved_model.pb"):
        xlac.cluster(tmp_path)


@pytest.mark.parametrize("feeds, fetches, hint", [(["x"], ["r00"], "did you mean r0"), (["input"], ["r0"], "placeholders are x$"), (["x"], ["qqq"], "case sensitive")])
def test_names_that_are_near(feeds, fetches, hint):
    with pytest.raises(xlac.ParseError) as caught:
        xlac.cluster(chain(3)).executable(feeds, fetches)
    assert re.search(hint, caught.value.hint)


def test_truncated_bytes_are_errors_or_smaller_graphs():
    data = _core.graph_convert(chain(4), "text", "proto")
    for n in range(len(data)):
        try:
            xlac.cluster(data[:n], format="proto")
        except xlac.Error:
            pass


def test_unknown_names_and_flags():
    c = clusters(chain(2))
    with pytest.raises(xlac.Error, match="no node 'r9'"):
        c.why("r9")
    with pytest.raises(TypeError):
        xlac.cluster(chain(2), min_size=3)
    with pytest.raises(xlac.Error, match="was not found among those XLA compiles"):
        xlac.cluster(chain(2), ops_to_cluster="add")
    with pytest.raises(xlac.Error, match="can exclude Where only|cluster_exclude_ops"):
        xlac.cluster(chain(2), cluster_exclude_ops="Relu")


def test_many_nodes():
    assert len(xlac.cluster(chain(20000)).assignment) == 20000


def test_one_node_that_feeds_many_and_many_that_feed_one():
    fans = "".join(unary(f"f{i}", "a") for i in range(200))
    text = placeholder("x") + unary("a", "x") + fans + node("all", "AddN", *(f"f{i}" for i in range(200)), T="DT_FLOAT", N=200)
    assert contents(text) == [sorted(["a", "all", *(f"f{i}" for i in range(200))])]


def test_list_of_ops():
    rows = dict(line.split("\t", 1) for line in _core.cluster_op_list().splitlines())
    assert len(rows) == 489 and rows["MatMul"].startswith("T:") and rows["Softmax"].endswith("PWRED,REDUCEWINDOW")


def test_a_program_is_no_graph():
    for text in ("HloModule m\nENTRY e { ROOT x = f32[4] parameter(0) }", "module @m {\n}"):
        with pytest.raises(xlac.Error, match="this is a program, and a TensorFlow graph"):
            xlac.cluster(text, format="text")


def test_mistakes_about_flags_and_pairs_say_which():
    with pytest.raises(TypeError, match="min_cluster_size='4'"):
        xlac.cluster(b"", min_cluster_size="4")
    with pytest.raises(TypeError, match="why_not compares two nodes: why.'a'. says why one"):
        xlac.cluster(b"").why_not("a")
