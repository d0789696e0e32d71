"""The programs of conformance/stablehlo/exec and conformance/hlo, compiled: the interpreter's results, bit for bit but where
sums are made in another order."""
import numpy as np
import pytest

import xlac

from .conftest import cases
from .test_hlo import DATA, DIFFERENCES, SUMS, compare, flatten, unpack, whole_pipeline
from .test_stablehlo import DIFFERENCES as KNOWN
from .test_stablehlo import EXEC, caselib, runnable, with_names  # noqa: F401


def proved(exe):
    """The executable, of whose plan it is shown that no step writes over what is still to be read."""
    exe._check()
    return exe


def same(a, b):
    return a.tobytes() == b.tobytes() or (a.dtype.kind in "fcV" and np.array_equal(a.astype(np.complex128), b.astype(np.complex128), equal_nan=True))


@pytest.mark.parametrize("passes", [True, False], ids=["passes", "plain"])
@pytest.mark.parametrize("case", cases(EXEC, with_names(lambda r: True), "compiled"))
def test_stablehlo(case, passes, caselib):  # noqa: F811
    module, checks = runnable(case, caselib)
    results = [np.asarray(x) for x in proved(xlac.compile(module, passes=passes))()]
    interpreted = [np.asarray(x) for x in xlac.interpret(module)]
    for i, check in enumerate(checks):
        pair, wanted = results[2 * i:2 * i + 2], interpreted[2 * i:2 * i + 2]
        if not all(same(a, b) for a, b in zip(pair, wanted)) and case["id"] not in KNOWN["exec"]:
            assert caselib.compare(check["kind"], *pair, check["params"]) is None, i


@pytest.mark.parametrize("case", cases(DATA, lambda r: "run" in r, "compiled_hlo"))
def test_hlo(case):
    results = flatten(proved(xlac.compile(xlac.parse(case["input"])))(*[unpack(a) for a in case["run"]["args"]]))
    expected = [unpack(a) for a in case["run"]["results"]]
    if case["name"] in DIFFERENCES["wrong_in_xla"]:
        expected = whole_pipeline(case)
    assert len(results) == len(expected)
    sums = any(word in case["input"] for word in SUMS)
    for a, e in zip(results, expected):
        compare(np.asarray(a), e, sums, DIFFERENCES["ulp"].get(case["name"], 2))
