"""Graphs of real models against TensorFlow's numbers, recorded by make_goldens.py."""
import goldens
import numpy as np
import pytest

import xlac

CASES = {case["name"]: case for case in goldens.load()}


def test_both_forms_and_every_kind_of_model_are_there():
    forms = {case["form"] for case in CASES.values()}
    assert forms == {"graph", "function"}
    for model in ("mlp", "cnn", "resnet20", "lstm", "bert", "gpt"):
        assert any(name.startswith(model) for name in CASES)
    assert all(len(case["steps"]) == 20 for case in CASES.values())


def test_feeds_are_the_same_everywhere():
    """The formulas must give what TensorFlow was fed: two numbers of each kind, as recorded."""
    normal = goldens.make({"kind": "normal", "shape": [2], "seed": 3, "scale": 2.0, "offset": 1.0}, 1)
    whole = goldens.make({"kind": "int", "shape": [3], "seed": 3, "low": 0, "high": 100, "dtype": "int32"}, 1)
    np.testing.assert_allclose(normal, [-0.3772735297679901, -0.1769818663597107], rtol=1e-6)
    assert whole.tolist() == [5, 97, 64]


@pytest.mark.parametrize("name", CASES)
def test_graph_is_clustered(name):
    case = CASES[name]
    clusters = xlac.cluster(case["graph"])
    marked = [node for node, cluster in clusters.assignment.items() if cluster]
    assert len(marked) > 10 or case["form"] == "function" or "v1" in name


def executable(case, **flags):
    """The graph's step, after the initialiser has run; and the shapes' feeds of each step."""
    clusters, initial = xlac.cluster(case["graph"], **flags), case["initial"]
    start = [goldens.make(formula, 0) for formula in initial["feeds"].values()]
    clusters.executable(list(initial["feeds"]), [], [initial["target"]])(*start)
    return clusters.executable(list(case["feeds"]), case["fetches"])


def feeds(case, step):
    return [goldens.make(formula, step) for formula in case["feeds"].values()]


@pytest.mark.parametrize("name", CASES)
def test_twenty_steps_give_tensorflows_numbers(name):
    """Losses, results, and two sums of each variable, which steps change."""
    case = CASES[name]
    step = executable(case)
    for number, expected in enumerate(case["steps"]):
        found = step(*feeds(case, number))
        for fetch, want, values in zip(case["fetches"], expected, found):
            np.testing.assert_allclose(np.ravel(values), want, rtol=1e-4, atol=1e-4, err_msg=f"step {number}, {fetch}")
