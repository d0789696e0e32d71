"""Convolutions, optimizers and the other ops of nn.def and linear.def against TensorFlow's results (cases_nn.py)."""
import pathlib

import goldens
import pytest
import xlac

CASES = goldens.read(pathlib.Path(__file__).parent / "nn.jsonl.xz")


def run(case):
    low = goldens.lowered(case)
    values = {**case["inputs"], **case.get("initial", {})}
    results = xlac.interpret(low.module, *[goldens.unpacked(values[name]) for name in low.parameters])
    return list(results) if isinstance(results, tuple) else [results]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_op(case):
    assert goldens.difference(case, run(case)) == ""
