"""Variations of the graphs that the pass is known by: small ones in which TensorFlow 2.21 decides in a way of its own.

Each case is a graph, flags by the names that xlac.cluster gives them, and what TensorFlow answered: whether it refused the graph, the clusters, those of minimum size 0 and those
after PartiallyDeclusterPass, which nodes are alive at the same times, and unsafe pairs of nodes that use resources."""
import base64
import json
import lzma
import pathlib

import pytest

import xlac


def cases():
    with lzma.open(pathlib.Path(__file__).with_name("variations.jsonl.xz"), "rt") as file:
        return [json.loads(line) for line in file]


def partition(clusters):
    return sorted(map(sorted, clusters.clusters.values()))


@pytest.mark.parametrize("case", cases(), ids=lambda c: c["name"])
def test_variations_are_decided_as_tensorflow_decides_them(case):
    graph = base64.b64decode(case["graph"])
    if case["refused"]:
        with pytest.raises(xlac.Error):
            xlac.cluster(graph, **case["flags"])
        return
    c = xlac.cluster(graph, **case["flags"])
    assert partition(c) == case["clusters"]
    assert partition(xlac.cluster(graph, **{**case["flags"], "min_cluster_size": 0})) == case["min0"]
    assert partition(xlac.cluster(graph, **case["flags"], partially_decluster=True)) == case["declustered"]
    assert [list(p) for p in c._graph.unsafe_pairs()] == case["pairs"]
    mine = [c._graph.nodes()[n][5] for n, _ in case["deadness"]]
    theirs = [label for _, label in case["deadness"]]
    assert 0 in mine or len(set(zip(mine, theirs))) == len(set(mine)) == len(set(theirs))


def test_the_refusals_say_what_is_wrong():
    refused = {c["name"]: base64.b64decode(c["graph"]) for c in cases() if c["refused"]}
    words = {"device CPU:0": "malformed device 'CPU:0'", "bad missing PartitionedCall": "function 'f', which is not defined",
             "case none": "has no branches", "input 'n1:out'": "'n1:out' is not a node", "version 2475": "version 2475",
             "bad badtype PartitionedCall": "function 'f', node 'r'", "bad noret PartitionedCall": "results are not given"}
    for name, text in words.items():
        with pytest.raises(xlac.Error, match=text):
            xlac.cluster(refused[name], min_cluster_size=1)


def node_with(name, op, inputs, kinds, attrs=""):
    types = "".join(f'attr {{ key: "{k}" value {{ type: {v} }} }} ' for k, v in kinds.items())
    return f'node {{ name: "{name}" op: "{op}" ' + "".join(f'input: "{i}" ' for i in inputs) + types + attrs + "}\n"


def test_attributes_of_a_node_say_what_is_in_host_memory():
    """A clustered value that somebody outside wants in the host's memory is computed outside."""
    hostmem = 'attr { key: "_%s_hostmem" value { list { i: 0 } } } '
    graph = "".join([node_with("x", "Placeholder", [], {"dtype": "DT_FLOAT"}),
                     node_with("a", "Tanh", ["x"], {"T": "DT_FLOAT"}, hostmem % "output"),
                     node_with("outside", "BesselJ0", ["a"], {"T": "DT_FLOAT"}, hostmem % "input")])
    flags = dict(min_cluster_size=1, partially_decluster=True)
    assert "a/declustered" in xlac.cluster(graph, **flags).nodes
    for attr in "_input_hostmem", "_output_hostmem":
        assert "a/declustered" not in xlac.cluster(graph.replace(attr, "_other"), **flags).nodes
