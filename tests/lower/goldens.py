"""Recorded cases, and how what xlac gives is compared with them."""
import base64
import json
import lzma

import ml_dtypes
import numpy as np
import xlac

TYPES = {"pred": np.bool_, "bf16": ml_dtypes.bfloat16, "c64": np.complex64, "c128": np.complex128}
TOLERANCE = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 2e-5, "f64": 1e-11, "c64": 2e-5, "c128": 1e-11}


def dtype_of(name):
    return np.dtype(TYPES.get(name) or name.replace("f", "float").replace("u", "uint").replace("s", "int"))


def unpacked(packed):
    name, shape, data = packed
    return np.frombuffer(base64.b64decode(data), dtype_of(name)).reshape(shape)


def read(path):
    with lzma.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def written(packed):
    return f"{packed[0]}[{','.join(map(str, packed[1]))}]"


def lowered(case):
    return xlac.lower_graph(base64.b64decode(case["graph"]), {k: written(v) for k, v in case["inputs"].items()}, case["fetches"],
                            variables={k: written(v) for k, v in case.get("variables", {}).items()})


def run(case, runner=xlac.interpret):
    """What xlac gives: the fetches, then the variables' last values."""
    low, variables = lowered(case), case.get("variables", {})
    given = case["inputs"] | variables
    results = runner(low.module, *(unpacked(given[name]) for name in low.parameters))
    results = list(results) if isinstance(results, tuple) else [results]
    new = dict(zip(low.updates, results[len(low.results):]))
    return results[:len(low.results)] + [new[name] if name in new else unpacked(value) for name, value in variables.items()]


def difference(case, results):
    """What differs from TensorFlow's outputs, as text; empty where nothing does."""
    if len(results) < len(case["outputs"]):
        return f"{len(results)} results, expected {len(case['outputs'])}"
    for i, (expected, found) in enumerate(zip(case["outputs"], results)):
        want, found = unpacked(expected), np.asarray(found)
        if found.dtype != want.dtype or found.shape != want.shape:
            return f"result {i} is {found.dtype}{list(found.shape)}, expected {want.dtype}{list(want.shape)}"
        tolerance = case.get("tolerance") or TOLERANCE.get(expected[0], 0)
        wide = np.complex128 if expected[0].startswith("c") else np.float64
        same = np.isclose(found.astype(wide), want.astype(wide), rtol=tolerance, atol=tolerance, equal_nan=True) if tolerance else found == want
        if not np.all(same):
            at = np.argwhere(np.atleast_1d(~same))[0]
            return f"result {i} at {at.tolist()}: {np.atleast_1d(found)[tuple(at)]}, expected {np.atleast_1d(want)[tuple(at)]}"
    return ""
