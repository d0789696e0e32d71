"""Clustered graphs, sessions and their executables pickle and copy, with the values of variables."""
import copy
import pickle

import numpy as np
import pytest

import xlac

FLOATS = 'attr { key: "T" value { type: DT_FLOAT } }'
TYPED = 'attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 4 } } } }'
GRAPH = f"""
node {{ name: "x" op: "Placeholder" {TYPED} }}
node {{ name: "v" op: "VarHandleOp" {TYPED} attr {{ key: "shared_name" value {{ s: "v" }} }} }}
node {{ name: "set" op: "AssignVariableOp" input: "v" input: "x" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} }}
node {{ name: "read" op: "ReadVariableOp" input: "v" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} }}
node {{ name: "t" op: "Neg" input: "read" {FLOATS} }}
node {{ name: "y" op: "Mul" input: "t" input: "x" {FLOATS} }}
"""
ONES = np.ones(4, np.float32)


def by_pickle(thing):
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, by_pickle])
def test_clusters_with_their_variables(copied):
    clusters = xlac.cluster(GRAPH, min_cluster_size=1)
    assert copied(clusters).assignment == clusters.assignment
    clusters.executable("x", (), "set")(3 * ONES)
    other = copied(clusters)
    run = other.executable("x", "y")
    assert run(ONES).tolist() == [-3] * 4
    other.executable("x", (), "set")(5 * ONES)
    assert run(ONES).tolist() == [-5] * 4
    assert clusters.executable("x", ["y"])(ONES)[0].tolist() == [-3] * 4  # not shared


@pytest.mark.parametrize("copied", [copy.deepcopy, by_pickle])
def test_what_belongs_together_stays_so(copied):
    clusters = xlac.cluster(GRAPH, min_cluster_size=1)
    session = clusters.session(threads=1, seed=3)
    session.executable("x", (), "set")(7 * ONES)
    own = clusters.executable("x", (), "set")
    own(2 * ONES)
    again, one, several, mine, whole = copied([session, session.executable("x", "y"), session.executable("x", ["y"]), own, clusters])
    assert one.session is again is several.session and mine.session is not again
    assert one(ONES).tolist() == several(ONES)[0].tolist() == [-7] * 4
    mine(4 * ONES)
    assert whole.executable("x", "y")(ONES).tolist() == [-4] * 4 and again.variables["v"].tolist() == [7] * 4
    assert clusters.executable("x", "y")(ONES).tolist() == [-2] * 4
