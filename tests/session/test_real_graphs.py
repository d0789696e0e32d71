"""Graphs of real models against TensorFlow's numbers, recorded by make_goldens.py."""
import recorded
import numpy as np
import pytest

import xlac

CASES = {case["name"]: case for case in recorded.load()}


def test_both_forms_and_every_kind_of_model_are_there():
    forms = {case["form"] for case in CASES.values()}
    assert forms == {"graph", "function"}
    for model in ("mlp", "cnn", "resnet20", "lstm", "bert", "gpt"):
        assert any(name.startswith(model) for name in CASES)
    assert all(len(case["steps"]) == 20 for case in CASES.values())


def test_feeds_are_the_same_everywhere():
    """The formulas must give what TensorFlow was fed: two numbers of each kind, as recorded."""
    normal = recorded.make({"kind": "normal", "shape": [2], "seed": 3, "scale": 2.0, "offset": 1.0}, 1)
    whole = recorded.make({"kind": "int", "shape": [3], "seed": 3, "low": 0, "high": 100, "dtype": "int32"}, 1)
    np.testing.assert_allclose(normal, [-0.3772735297679901, -0.1769818663597107], rtol=1e-6)
    assert whole.tolist() == [5, 97, 64]


@pytest.mark.parametrize("name", CASES)
def test_graph_is_clustered(name):
    case = CASES[name]
    clusters = xlac.cluster(case["graph"])
    marked = [node for node, cluster in clusters.assignment.items() if cluster]
    assert len(marked) > 10 or case["form"] == "function" or "v1" in name
