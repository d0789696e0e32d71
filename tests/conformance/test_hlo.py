"""HLO text and execution against what XLA (jaxlib 0.10.2) answered: conformance/hlo."""
import base64
import json
import pathlib
import sys

import numpy as np
import pytest

import xlac

from .conftest import cases

DATA = "hlo/corpus.jsonl.xz"
DIFFERENCES = json.loads((pathlib.Path(__file__).parent / "differences.json").read_text())
MODES = {"default": "expected", "short": "short", "canonical": "canonical", "fingerprint": "fingerprint"}


def is_roundtrip(r):
    return r["kind"] == "roundtrip"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", cases(DATA, is_roundtrip, "roundtrip"))
def test_print(case, mode):
    """The print equals XLA's byte for byte; where XLA's own print is wrong, ours reparses to the same module."""
    if MODES[mode] not in case:
        pytest.skip("XLA gave no print in this mode")
    module = xlac.parse(case["input"], strict=True)
    text = module.to_text(mode=mode)
    if case["name"] in DIFFERENCES["print"]:
        assert xlac.parse(module.to_text(), strict=True).to_text(mode=mode) == text
    else:
        assert text == case[MODES[mode]]


@pytest.mark.parametrize("case", cases(DATA, is_roundtrip, "reparse"))
def test_print_is_fixed_point(case):
    once = xlac.parse(case["input"], strict=True).to_text()
    twice = xlac.parse(once, strict=True).to_text()
    assert xlac.parse(twice, strict=True).to_text() == twice
    if not case.get("reparse_stable_modulo_frames"):
        assert twice == once


@pytest.mark.parametrize("case", cases(DATA, lambda r: is_roundtrip(r) and r.get("verify") == "ok", "verify"))
def test_verifier_accepts(case):
    xlac.parse(case["input"], strict=True).verify(xla_compat=True)


@pytest.mark.parametrize("case", cases(DATA, lambda r: r["kind"] == "error", "error"))
def test_refused(case):
    """Refused at its stage, with a position in the text and a message that says something."""
    with pytest.raises(xlac.Error) as caught:
        module = xlac.parse(case["input"], strict=True)
        assert case["stage"] != "parse", "the reader accepted it"
        module.verify()
    error = caught.value
    lines = case["input"].split("\n")
    assert 1 <= error.line <= len(lines) + 1 and error.col >= 1
    assert len(error.message) > 10
    assert isinstance(error, xlac.ParseError if case["stage"] == "parse" else xlac.VerifyError)


def unpack(a):
    return np.frombuffer(base64.b64decode(a["b64"]), dtype=a["dtype"]).reshape(a["shape"])


SUMS = ("dot", "convolution", "reduce", "cholesky", "triangular", "fft", "batch", "scan", "rng", "cumsum", "softmax", "norm")


def compare(actual, expected, sums, ulp=2):
    """`ulp` elementwise, 1e-5 relative (to the largest value) where many terms are summed, exact for the rest."""
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(actual, expected)
    elif sums:
        scale = np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5 * scale)
    else:
        parts = [(actual, expected)] if expected.dtype.kind == "f" else [
            (actual.real, expected.real), (actual.imag, expected.imag)]
        for a, e in parts:
            np.testing.assert_array_max_ulp(*np.broadcast_arrays(np.nan_to_num(a), np.nan_to_num(e)), maxulp=ulp)
            np.testing.assert_array_equal(np.isnan(a), np.isnan(e))


def flatten(value):
    if isinstance(value, tuple):
        return [leaf for v in value for leaf in flatten(v)]
    return [value]


def whole_pipeline(case):
    """What XLA's whole compiler gives, for cases whose recorded route is XLA's own mistake."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "oracle"))
    import real_xla

    return real_xla.run(case["input"], *[unpack(a) for a in case["run"]["args"]])


@pytest.mark.parametrize("case", cases(DATA, lambda r: "run" in r, "run"))
def test_run(case):
    module = xlac.parse(case["input"], strict=True)
    results = flatten(xlac.interpret(module, *[unpack(a) for a in case["run"]["args"]]))
    expected = [unpack(a) for a in case["run"]["results"]]
    assert len(results) == len(expected)
    sums = any(word in case["input"] for word in SUMS)
    if case["name"] in DIFFERENCES["wrong_in_xla"]:
        expected = whole_pipeline(case)
    for a, e in zip(results, expected):
        compare(np.asarray(a), e, sums, DIFFERENCES["ulp"].get(case["name"], 2))
