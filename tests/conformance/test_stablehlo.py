"""StableHLO: the spec's own programs and verifier tests (conformance/stablehlo), run as upstream runs them."""
import importlib.util
import json
import pathlib
import re

import numpy as np
import pytest

import xlac

from .conftest import cases, data_dir

EXEC, VERIFY = "stablehlo/exec.jsonl.xz", "stablehlo/verify.jsonl.xz"
DIFFERENCES = json.loads((pathlib.Path(__file__).parent / "differences_stablehlo.json").read_text())


@pytest.fixture(scope="module")
def caselib():
    """The data's own helpers: how a case becomes a function of (actual, expected) pairs, and how those are compared."""
    spec = importlib.util.spec_from_file_location("caselib", data_dir() / "stablehlo/caselib.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def with_names(keep):
    def named(row):
        row.setdefault("name", row["id"])
        return keep(row)
    return named


def known(case, suite, request):
    """Cases listed in differences_stablehlo.json must differ: an entry that no longer does has to go."""
    if case["id"] in DIFFERENCES[suite]:
        request.node.add_marker(pytest.mark.xfail(strict=True, reason=DIFFERENCES[suite][case["id"]]))


def outcome(case, caselib, module, checks):
    results = xlac.interpret(module)
    assert len(results) == 2 * len(checks)
    for i, check in enumerate(checks):
        actual, expected = np.asarray(results[2 * i]), np.asarray(results[2 * i + 1])
        why = caselib.compare(check["kind"], actual, expected, check["params"])
        assert why is None, (case["id"], i, why)


def runnable(case, caselib):
    """The case as a module whose @main gives (actual, expected) pairs, and its checks."""
    pure = caselib.purify(case["text"], case["entry"])
    if pure is None:
        pytest.skip("a case of probe files")
    text, checks = pure
    return xlac.parse(text, format="mlir", allow_unregistered=True), checks


@pytest.mark.parametrize("case", cases(EXEC, with_names(lambda r: True), "exec"))
def test_runs_as_it_stands(case, request):
    """The program checks itself (check.expect_*, interpreter.probe); a check that finds other values fails the run."""
    known(case, "exec", request)
    module = xlac.parse(case["text"], format="mlir", allow_unregistered=True)
    assert case["entry"] in (None, module.entry.name)
    parameters = [xlac.asarray(np.zeros(p.shape), p.dtype) for p in module.entry.parameters]
    xlac.interpret(module, *parameters, probes=[])


@pytest.mark.parametrize("case", cases(EXEC, with_names(lambda r: True), "exec"))
def test_runs(case, caselib, request):
    """The same with the checks taken out and made by NumPy."""
    known(case, "exec", request)
    module, checks = runnable(case, caselib)
    outcome(case, caselib, module, checks)


@pytest.mark.parametrize("case", cases(VERIFY, with_names(lambda r: r["kind"] == "ok"), "verify"))
def test_accepted_and_a_fixed_point(case, request):
    known(case, "ok", request)
    module = xlac.parse(case["text"], format="mlir", allow_unregistered=case.get("allow_unregistered", False))
    module.verify()
    once = module.to_text()
    assert xlac.parse(once, format="mlir", allow_unregistered=True).to_text() == once


TARGET = re.compile(r"vhlo-to-version='?=?target=([\d.]+)'?")

OPTIONS = re.compile(r"([\w-]+)='?(.*?)'?$")  # upstream's command line to a pipeline's text


def run_passes(module, passes):
    """The case's passes, as its RUN line names them; those to VHLO are the writing of a portable artifact."""
    for name in passes:
        target = TARGET.fullmatch(name)
        if target or name == "stablehlo-legalize-to-vhlo":
            module.to_bytes(format="mlir-bytecode", version=target[1] if target else "1.20.0")
        else:
            module = module.run(OPTIONS.sub(r"\1{\2}", name))


@pytest.mark.parametrize("case", cases(VERIFY, with_names(lambda r: r["kind"] == "error"), "error"))
def test_refused_at_the_line(case, request):
    known(case, "error", request)
    with pytest.raises(xlac.Error) as caught:
        module = xlac.parse(case["text"], format="mlir", allow_unregistered=case.get("allow_unregistered", False))
        module.verify()
        run_passes(module, case.get("passes", []))
    assert caught.value.code != 700 and caught.value.line in {e["line"] for e in case["expect"]}, caught.value
