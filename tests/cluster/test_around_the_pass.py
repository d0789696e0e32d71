"""What runs round the pass: cloned constants, registered devices, dumps."""
import base64
import json
import lzma
import pathlib
import xml.dom.minidom

import pytest
from graphs import const, node, placeholder, unary

import xlac

def cases(name):
    with lzma.open(pathlib.Path(__file__).with_name(name), "rt") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize("case", cases("clone_constants.jsonl.xz"), ids=lambda c: c["name"])
def test_constants_are_cloned_as_tensorflow_clones_them(case):
    """Nodes, clusters and edges after TensorFlow 2.21's CloneConstantsForBetterClusteringPass and MarkForCompilationPass."""
    c = xlac.cluster(base64.b64decode(case["graphdef_pb_b64"]), min_cluster_size=1, global_jit_level=2, clone_constants=True)
    assert c.nodes[2:] == case["nodes"]
    assert c.assignment == case["clusters"]
    assert [list(e) for e in c.edges] == case["edges"]
    again = xlac.cluster(c.to_graphdef().replace(b"_XlaAlreadyClustered", b"_XlaAlreadyClusterex"), min_cluster_size=1)
    assert sorted(again.nodes) == sorted(c.nodes) and len(again.edges) == len(c.edges)


@pytest.mark.parametrize("case", cases("declustered.jsonl.xz"), ids=lambda c: c["name"])
def test_values_wanted_in_host_memory_are_computed_outside(case):
    """Nodes and clusters after TensorFlow 2.21's MarkForCompilationPass and PartiallyDeclusterPass, on CPUs and GPUs."""
    c = xlac.cluster(base64.b64decode(case["graphdef_pb_b64"]), min_cluster_size=1, global_jit_level=2, partially_decluster=True)
    assert c.assignment == case["clusters"]
    again = xlac.cluster(c.to_graphdef().replace(b"_XlaAlreadyClustered", b"_XlaAlreadyClusterex"))
    assert sorted(again.nodes[2:]) == [n for n in case["nodes"] if n not in ("_SOURCE", "_SINK")]
    copy = next(n for n in case["nodes"] if n.endswith("/declustered"))
    assert "copy outside" in c.why(copy)


def tpu_graph():
    return placeholder("x") + "".join(unary(f"t{i}", "x" if i == 0 else f"t{i - 1}", "Tanh", device="TPU:0") for i in range(3))


def test_a_device_that_is_registered_is_clustered():
    graph = tpu_graph()
    assert xlac.cluster(graph, min_cluster_size=2).assignment == {}
    row = {"compilation_device": "XLA_CPU_JIT", "autoclustering_policy": "always"}
    c = xlac.cluster(graph, min_cluster_size=2, global_jit_level=-1, devices={"TPU": row})
    assert sorted(c.assignment) == ["t0", "t1", "t2"]
    row["autoclustering_policy"] = "if_explicitly_requested"
    assert xlac.cluster(graph, min_cluster_size=2, devices={"TPU": row}).assignment == {}
    assert "TPU" in xlac.cluster(graph).why("t0")


def test_a_row_may_replace_tensorflows():
    graph = (const("s", "DT_INT32", value="int_val: 2", shape="dim { size: 1 }") +
             node("r", "RandomUniform", "s", T="DT_INT32", dtype="DT_FLOAT") + unary("t", "r", "Tanh"))
    assert "r" not in xlac.cluster(graph, min_cluster_size=1).assignment
    row = {"compilation_device": "XLA_CPU_JIT", "autoclustering_policy": "always", "cluster_stateful_rng_ops": True}
    assert "r" in xlac.cluster(graph, min_cluster_size=1, devices={"CPU": row}).assignment


@pytest.mark.parametrize("devices, error, said", [
    ({"TPU": {"compilation_device": "XLA_TPU_JIT"}}, xlac.Error, "XLA_TPU_JIT"),
    ({"TPU": {"autoclustering_policy": "sometimes"}}, ValueError, "sometimes"),
    ({"TPU": {"cluster_everything": True}}, ValueError, "cluster_everything"),
    ({"TPU": True}, TypeError, "TPU"), (["TPU"], TypeError, "dict")])
def test_a_registration_that_says_nonsense(devices, error, said):
    with pytest.raises(error, match=said):
        xlac.cluster(tpu_graph(), devices=devices)


def test_dumps(tmp_path, capsys):
    from xlac.cli import main

    c = xlac.cluster(tpu_graph(), min_cluster_size=2, devices={"TPU": {"autoclustering_policy": "always"}})
    before, after, annotated, picture = [pathlib.Path(p).read_text() for p in c.dump(tmp_path / "d")]
    assert "_XlaCluster" not in before and after.count('"_XlaCluster"') == 3
    assert 'name: "cluster_0/t1"' in annotated and 'input: "cluster_0/t0"' in annotated and 'name: "unclustered/x"' in annotated
    assert xml.dom.minidom.parseString(picture).documentElement.tagName == "svg"
    file = tmp_path / "g.pbtxt"
    file.write_text(after)
    assert main(["cluster", str(file), "--dump", str(tmp_path / "e")]) in (0, None)
    assert "mark_for_compilation_annotated.pbtxt" in capsys.readouterr().out
