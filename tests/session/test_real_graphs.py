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


def run(case, options, **flags):
    """(executable of a step, for each fetch the largest difference from TensorFlow's numbers over all steps)."""
    session = xlac.cluster(case["graph"], **{"min_cluster_size": 2, **flags}).session(**options)
    start = case["initial"]["feeds"]
    session.executable(list(start), [], [case["initial"]["target"]])(*(recorded.make(f, 0) for f in start.values()))
    step, worst = session.executable(list(case["feeds"]), case["fetches"]), dict.fromkeys(case["fetches"], 0.0)
    for number, expected in enumerate(case["steps"]):
        values = step(*(recorded.make(f, number) for f in case["feeds"].values()))
        for name, value, wanted in zip(case["fetches"], values, expected):
            got, wanted = np.ravel(value).astype(np.float64), np.asarray(wanted, np.float64)
            assert got.shape == wanted.shape
            worst[name] = max(worst[name], float(np.max(np.abs(got - wanted) / (1 + np.abs(wanted)), initial=0)))
    return step, worst


def compiled_runs(stats):
    return sum(unit["compiled_runs"] for unit in stats["units"] + stats["inside"] if unit["kind"] == "cluster")


@pytest.mark.parametrize("name", CASES)
def test_twenty_steps_give_tensorflows_numbers(name):
    step, worst = run(CASES[name], {})
    assert max(worst.values()) < 1e-4, worst
    stats = step.stats
    assert stats["runs"] == 20 and stats["failures"] == 0 == stats["fallen_back"], step.explain()
    assert compiled_runs(stats) >= 20


@pytest.mark.parametrize("name", ["mlp_adam", "cnn_momentum", "lstm_carried_v1", "lstm_array_sgd_v1", "lstm_array_sgd_function", "gpt_decode"])
@pytest.mark.parametrize("options,flags", [({"always_defer": True}, {}), ({"lazy": False}, {"min_cluster_size": 1}), ({}, {"global_jit_level": -1})])
def test_other_ways_to_run_give_the_same(name, options, flags):
    _, worst = run(CASES[name], options, **flags)
    assert max(worst.values()) < 1e-4
