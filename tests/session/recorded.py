"""The recorded graphs: see make_goldens.py. No TensorFlow here."""
import json
import lzma
import pathlib

import numpy as np

FILE = pathlib.Path(__file__).parent / "graphs.jsonl.xz"


def make(formula, step):
    """The value of a feed at a step. RandomState's streams are frozen by NumPy's policy."""
    shape, kind = formula["shape"], formula["kind"]
    if kind == "step":
        return np.full(shape, step, formula["dtype"])
    random = np.random.RandomState(formula["seed"] + 7919 * step)
    if kind == "int":
        value = random.randint(formula["low"], formula["high"], size=shape).astype(formula["dtype"])
        for column, limit in enumerate(formula.get("columns", [])):
            value[..., column] %= limit
        return value
    return (random.standard_normal(shape) * formula["scale"] + formula.get("offset", 0.0)).astype(np.float32)


def load(path=FILE):
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [{**case, "graph": case["graph"].encode("latin-1")} for case in map(json.loads, lines)]
