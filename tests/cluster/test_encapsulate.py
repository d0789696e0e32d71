"""Clusters as functions: what goes in, what comes out, in which order, and what waits for what."""
import re

from graphs import add, assign, chain, const, node, placeholder, read, unary, variable

import xlac


def encapsulated(text, **flags):
    c = xlac.cluster(text, **{"min_cluster_size": 1, **flags})
    return xlac.cluster(c.to_graphdef(encapsulated=True), min_cluster_size=1), c.to_text(encapsulated=True)


def inputs(text, name):
    """The inputs of a node or, in functions, the first node of that name."""
    at = re.search(rf'\n *(?:node|node_def) \{{\n *name: "{name}"\n((?:.*\n)*?) *(?:attr|\}})', text)
    return re.findall(r'input: "(.*)"', at.group(1))


def number(text, key):
    return [int(n) for n in re.findall(rf'key: "{key}"\n *value {{\n(?: *i: (\d+))', text)]


def test_a_chain_becomes_one_call():
    c, text = encapsulated(chain(5) + unary("after", "r4", "Identity"), ops_to_cluster="Relu")
    assert [n for n in c.nodes if n[0] != "_"] == ["x", "cluster_0", "after"]
    assert "cluster_0" in c.candidates  # its body can be imported and compiled
    assert inputs(text, "cluster_0") == ["x"] and inputs(text, "after") == ["cluster_0"]
    assert inputs(text, "r0") == ["x_0_arg"] and inputs(text, "r1") == ["r0:activations:0"]
    assert re.search(r'key: "r4_0_retval"\n *value: "r4:activations:0"', text)
    assert number(text, "_XlaNumConstantArgs") == [0] == number(text, "_XlaNumResourceArgs")


def test_results_are_in_the_order_of_the_edges_out():
    """As TensorFlow 2.21's EncapsulateSubgraphsPass has them: c's user is made before b's other user."""
    text = (placeholder("x") + unary("b", "x") + unary("c", "b", "Tanh") + unary("u", "c", "BesselJ0") + unary("v", "b", "BesselJ0"))
    _, text = encapsulated(text)
    assert inputs(text, "u") == ["cluster_0"] and inputs(text, "v") == ["cluster_0:1"]


def test_what_comes_from_one_output_is_one_input():
    text = placeholder("x") + placeholder("y") + add("a", "x", "x") + add("b", "a", "x") + add("c", "b", "y") + node(
        "o", "Identity", "a", T="DT_FLOAT") + node("p", "Identity", "c", T="DT_FLOAT") + node("q", "Identity", "a", T="DT_FLOAT")
    c, text = encapsulated(text, ops_to_cluster="AddV2")
    assert sorted(inputs(text, "cluster_0")) == ["x", "y"]
    assert inputs(text, "o") == inputs(text, "q") and {*inputs(text, "o"), *inputs(text, "p")} == {"cluster_0", "cluster_0:1"}


def test_constants_come_first_and_resources_last():
    graph = (variable("v") + placeholder("x") + placeholder("n", "DT_INT32", shape={"shape": "{ dim { size: 1 } }"})
             + read("r", "v") + add("a", "x", "r") + node("s", "Reshape", "a", "n", T="DT_FLOAT", Tshape="DT_INT32")
             + assign("w", "v", "a", "^r") + node("o", "Identity", "s", "^w", T="DT_FLOAT"))
    c, text = encapsulated(graph, ops_to_cluster="ReadVariableOp,AddV2,Reshape,AssignVariableOp")
    assert inputs(text, "cluster_0") == ["n", "x", "v"]
    assert number(text, "_XlaNumConstantArgs") == [1] == number(text, "_XlaNumResourceArgs")
    assert inputs(text, "w") == ["v_0_arg", "a:z:0", "^r"]
    assert "resource" in c.why("cluster_0")  # its body can be imported, but TensorFlow compiles no such calls


def test_control_edges_cross_the_border_once():
    graph = (placeholder("x") + placeholder("y") + unary("a", "x", "Relu") + node("b", "Relu", "a", "^y", T="DT_FLOAT")
             + node("c", "Relu", "b", "^y", "^a", T="DT_FLOAT") + node("n", "NoOp", "^b", "^c") + node("o", "Identity", "y", "^a", "^c", T="DT_FLOAT"))
    c, text = encapsulated(graph, ops_to_cluster="Relu")
    assert inputs(text, "cluster_0") == ["x", "^y"]
    assert inputs(text, "n") == ["^cluster_0"] and inputs(text, "o") == ["y", "^cluster_0"]
    assert inputs(text, "c") == ["b:activations:0", "^a"]


def test_names_of_arguments_are_unlike_those_of_nodes():
    graph = placeholder("X.y") + unary("x_y_0_arg", "X.y") + unary("a", "x_y_0_arg") + node("o", "Identity", "a", T="DT_FLOAT")
    c, text = encapsulated(graph, ops_to_cluster="Relu")
    assert 'name: "x_y_0_arg_0"' in text and inputs(text, "x_y_0_arg") == ["x_y_0_arg_0"]
    assert "cluster_0" in c.candidates


def test_clusters_feed_clusters():
    graph = (placeholder("x") + unary("a", "x") + unary("b", "a") + node("h", "BesselJ0", "b", T="DT_FLOAT") + unary("c", "h") + add("d", "c", "b")
             + const("k", value="float_val: 2") + add("e", "d", "k") + node("o", "Identity", "e", T="DT_FLOAT"))
    c, text = encapsulated(graph, ops_to_cluster="Relu,AddV2,Const", max_cluster_size=3)
    assert len([n for n in c.nodes if n.startswith("cluster_")]) >= 2
    assert {n for n in c.nodes if n[0] != "_" and not n.startswith("cluster_")} == {"x", "h", "o"}
    assert all(n in c.candidates for n in c.nodes if n.startswith("cluster_"))
