"""Further models against TensorFlow's numbers, recorded by make_more_goldens.py: clustered and compiled, and node by node."""
import recorded
import numpy as np
import pytest

import xlac

CASES = {case["name"]: case for case in recorded.load(recorded.FILE.with_name("more_graphs.jsonl.xz"))}


def test_every_form_is_there():
    assert {case["form"] for case in CASES.values()} == {"graph", "function", "frozen"}
    assert any(name.endswith("_v1") for name in CASES) and any(name.endswith("_dyn") for name in CASES)


def worst(case, options, **flags):
    """(executable of a step, the largest difference from TensorFlow's numbers)"""
    session, start, most = xlac.cluster(case["graph"], **flags).session(**options), case["initial"], 0.0
    if start["target"]:
        session.executable(list(start["feeds"]), [], [start["target"]])(*(recorded.make(f, 0) for f in start["feeds"].values()))
    step = session.executable(list(case["feeds"]), case["fetches"])
    for number, expected in enumerate(case["steps"]):
        values = step(*(recorded.make(f, number) for f in case["feeds"].values()))
        for value, wanted in zip(values, expected):
            got, wanted = np.ravel(value).astype(np.float64), np.asarray(wanted, np.float64)
            assert got.shape == wanted.shape
            most = np.maximum(most, np.max(np.abs(got - wanted) / (1 + np.abs(wanted)), initial=0))
    return step, most


@pytest.mark.parametrize("name", CASES)
def test_clustered(name):
    case = CASES[name]
    step, most = worst(case, {"lazy": False}, min_cluster_size=2)
    assert most < case.get("tolerance", 1e-4)
    stats = step.stats
    assert stats["failures"] == 0 and stats["clusters"] + sum(u["kind"] == "cluster" for u in stats["inside"]) > 0


@pytest.mark.parametrize("name", CASES)
def test_node_by_node(name):
    case = CASES[name]
    step, most = worst(case, {}, global_jit_level=-1)
    assert most < case.get("tolerance", 1e-4)
    assert step.stats["clusters"] == 0
