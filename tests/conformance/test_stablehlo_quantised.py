"""The quantised cases of the data through the passes on quantised programs: the same values, in the interpreter and XLA."""
import pathlib
import sys

import numpy as np
import pytest

import xlac

from .conftest import cases
from .test_stablehlo import EXEC, VERIFY, caselib, outcome, runnable, with_names  # noqa: F401

MATH = "stablehlo-legalize-quant-to-math"
APART = "stablehlo-legalize-quantized-op-to-qdq"
TOGETHER = "stablehlo-legalize-qdq-to-quantized-op"


def quantised(row):
    return "!quant" in row["text"]


@pytest.mark.parametrize("passes", [MATH, APART, f"{APART},{MATH}", f"{APART},{TOGETHER}"])
@pytest.mark.parametrize("case", cases(EXEC, with_names(quantised), "quantised"))
def test_the_same_values(case, passes, caselib):  # noqa: F811
    module, checks = runnable(case, caselib)
    out = module.run(passes, verify_each=True)
    assert MATH not in passes or "!quant" not in out.to_text()
    outcome(case, caselib, out, checks)


@pytest.fixture(scope="module")
def xla():
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "oracle"))
    pytest.importorskip("jax")
    return pytest.importorskip("real_xla")


@pytest.mark.parametrize("case", cases(EXEC, with_names(quantised), "quantised"))
def test_the_same_values_in_xla(case, caselib, xla):  # noqa: F811
    module, checks = runnable(case, caselib)
    results = xla.run(module.run(f"inline,{MATH}").to_hlo().to_text())
    for i, check in enumerate(checks):
        why = caselib.compare(check["kind"], results[2 * i], results[2 * i + 1], check["params"])
        assert why is None, (case["id"], i, why)


@pytest.mark.parametrize("case", cases(VERIFY, with_names(lambda r: quantised(r) and r["kind"] != "error"), "quantised"))
def test_valid_modules_stay_valid(case):
    module = xlac.parse(case["text"], format="mlir", allow_unregistered=True)
    module.verify()
    for passes in (APART, f"{APART},{TOGETHER}", TOGETHER):
        module.run(passes, verify_each=True)
    try:
        assert "!quant" not in module.run(MATH, verify_each=True).to_text()
    except xlac.Error as e:
        assert e.line and e.hint, e
