"""The programs of conformance/stablehlo/exec and conformance/hlo, compiled: the interpreter's results, bit for bit but where
sums are made in another order."""
import re
import warnings

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


def random_argument(text, rng):
    """Small numbers of the type; a tuple of those for a tuple."""
    if text.startswith("("):
        parts, depth, part = [], 0, ""
        for c in text[1:-1]:
            depth += (c in "([{") - (c in ")]}")
            if c == "," and depth == 0:
                parts.append(part)
                part = ""
            else:
                part += c
        return tuple(random_argument(p.strip(), rng) for p in [*parts, part])
    dtype, dims = re.match(r"(\w+)\[([\d,]*)\]", text).groups()
    return np.asarray(rng.integers(1, 4, [int(d) for d in dims.split(",") if d])).astype({"f32": "f4", "s32": "i4"}[dtype])


def marked(argument):
    return tuple(marked(a) for a in argument) if isinstance(argument, tuple) else xlac.donate(argument)


@pytest.mark.parametrize("case", cases(DATA, lambda r: r["category"] == "alias" and r["kind"] == "roundtrip" and "custom" not in r["input"], "alias"))
def test_aliases_compiled(case):
    """Lent, arguments are untouched; donated, each lies where the result does that has its memory."""
    module = xlac.parse(case["input"])
    rng = np.random.default_rng(1)
    args = [random_argument(p.type, rng) for p in module.entry.parameters]
    kept = [a.copy() for a in flatten(tuple(args))]
    want = [np.array(a) for a in flatten(xlac.interpret(module, *args))]
    exe = proved(xlac.compile(module))
    for a, w in zip(flatten(exe(*args)), want):
        np.testing.assert_array_equal(a, w)
    for a, k in zip(flatten(tuple(args)), kept):
        np.testing.assert_array_equal(a, k)
    where = [a.__array_interface__["data"][0] for a in flatten(tuple(args))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", xlac.DonationWarning)
        results = flatten(exe(*(marked(a) for a in args)))
    for a, w in zip(results, want):
        np.testing.assert_array_equal(a, w)
    for d in exe.donations:
        if d["result"] is not None:
            assert results[d["result"]].__array_interface__["data"][0] == where[d["argument"]]
