"""TensorFlow 2.21's own clusters, node for node: conformance/tf."""
import base64
import json

import pytest
from .conftest import cases, data_dir

import xlac
from xlac import _core

NAMES = {"fuel": "clustering_fuel", "auto_jit_flag": "auto_jit", "deterministic_names": "deterministic_cluster_names",
         "disable_resource_checks": "disable_resource_variable_safety_checks_for_debugging",
         "disable_deadness": "disable_deadness_safety_checks_for_debugging"}


def flags_of(case, **more):
    flags = {"global_jit_level": 2, **{NAMES.get(k, k): v for k, v in case["flags"].items()}}
    if "auto_jit" in flags:
        flags.setdefault("auto_jit_single_gpu", flags["auto_jit"])
    return {**flags, **more}


def partition(assignment):
    found = {}
    for node, name in assignment.items():
        found.setdefault(name, []).append(node)
    return sorted(map(sorted, found.values()))


def same_classes(a, b):
    """Whether two labellings make the same classes."""
    return len(set(zip(a, b))) == len(set(a)) == len(set(b))


@pytest.mark.parametrize("case", cases("tf/cases.jsonl.xz", lambda c: True, "tf"))
def test_clusters_are_tensorflows(case):
    data = base64.b64decode(case["graphdef_pb_b64"])
    if case["status"] != "OK":
        with pytest.raises(xlac.Error, match=case["status"].split(":")[1].strip()):
            xlac.cluster(data, **flags_of(case))
        return
    c = xlac.cluster(data, **flags_of(case))
    expected = case["expected"]["cluster_names"]
    assert partition(c.assignment) == sorted(map(sorted, expected.values()))
    if "deterministic_names" not in case["flags"]:
        assert {k: sorted(v) for k, v in c.clusters.items()} == {k: sorted(v) for k, v in expected.items()}
    assert [[i, n] for i, n in enumerate(c.nodes)] == case["node_ids"]
    assert [[i, *e] for i, e in enumerate(c.edges)] == case["edges"]
    assert sorted(map(tuple, case["incompatible_resource_pairs"])) == c._graph.unsafe_pairs()
    assert not case["scopes"] or case["scopes"] == c.scopes
    nodes = c._graph.nodes()
    mine = [nodes[i][5] for i, _, _ in case["deadness"]]
    assert 0 in mine or same_classes(mine, [text for _, _, text in case["deadness"]])
    if case["min0"]["partition"] is not None:  # not recorded where fuel is short
        whole = xlac.cluster(data, **flags_of(case, min_cluster_size=0))
        assert partition(whole.assignment) == sorted(map(sorted, case["min0"]["partition"]))
    if case["after_partial_decluster"] is not None:
        smaller = xlac.cluster(data, **flags_of(case, partially_decluster=True))
        assert partition(smaller.assignment) == sorted(map(sorted, case["after_partial_decluster"].values()))


@pytest.mark.parametrize("case", cases("tf/cases.jsonl.xz", lambda c: c["graphdef_text"], "tf"))
def test_text_and_bytes_hold_the_same(case):
    data = base64.b64decode(case["graphdef_pb_b64"])
    text = _core.graph_convert(data, "proto", "text")
    from_text = _core.graph_convert(case["graphdef_text"], "text", "proto")
    assert _core.graph_convert(from_text, "proto", "text") == text
    assert _core.graph_convert(_core.graph_convert(text, "text", "proto"), "proto", "text") == text


def test_ops_are_those_that_tensorflow_compiles():
    path = data_dir() / "tf" / "supported_ops.json"
    if not path.exists():
        pytest.skip("no conformance data: tf/supported_ops.json")
    table = json.loads(path.read_text())
    rows = {r[0]: r[1:] for r in (line.split("\t") for line in _core.cluster_op_list().splitlines())}
    assert set(rows) == set(table["ops"])
    for op, (_, _, constants, use, categories) in rows.items():
        expected = table["ops"][op]
        kind = (expected.get("resource_op") or {}).get("kind")
        assert sorted(constants.split()) == sorted(expected["compile_time_const_args"]), op
        assert use == {None: "-", "Read": "read", "Write": "write", "ReadWrite": "read-write"}[kind], op
        listed = {k for k, ops in table["allowlist_table"].items() if op in ops}
        assert set(filter(None, categories.split(","))) == listed, op
    policies = {"kIfEnabledGlobally": "if_enabled_globally", "kIfExplicitlyRequested": "if_explicitly_requested", "kAlways": "always"}
    expected = {name: {**row, "autoclustering_policy": policies[row["autoclustering_policy"]],
                       "compilation_device": row.pop("compilation_device_name")}
                for name, row in table["device_registrations"].items() if row}
    expected = {name: {key: value for key, value in row.items() if key != "compilation_device_name"} for name, row in expected.items()}
    assert _core.cluster_devices() == expected
