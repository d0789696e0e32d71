"""Seeded random ops draw TensorFlow's numbers, bit for bit, and go on where the last run stopped."""
import json
import pathlib

import numpy as np
import pytest
from graphs import const, node, placeholder

import xlac

ROWS = json.loads((pathlib.Path(__file__).parent / "random.json").read_text())
TYPES = {"float32": "DT_FLOAT", "float64": "DT_DOUBLE", "float16": "DT_HALF", "bfloat16": "DT_BFLOAT16", "int32": "DT_INT32", "int64": "DT_INT64"}


def graph(op, dtype, seeds):
    """(text, the feed's type)"""
    type = TYPES[dtype]
    if op == "RandomShuffle":
        return placeholder("in", type) + node("r", op, "in", T=type, **seeds), type
    shape = placeholder("in", "DT_INT32")
    if op != "RandomUniformInt":
        return shape + node("r", op, "in", T="DT_INT32", dtype=type, **seeds), "DT_INT32"
    key = "int_val" if dtype == "int32" else "int64_val"
    bounds = const("low", type, value=f"{key}: -5") + const("high", type, value=f"{key}: 1000003")
    return shape + bounds + node("r", op, "in", "low", "high", T="DT_INT32", Tout=type, **seeds), "DT_INT32"


@pytest.mark.parametrize("op,dtype,shape,seeds,runs", ROWS, ids=[f"{r[0]}-{r[1]}-{len(r[2])}" for r in ROWS])
def test_tensorflows_numbers(op, dtype, shape, seeds, runs):
    text, _ = graph(op, dtype, seeds)
    draw = xlac.cluster(text).executable("in", "r")
    given = np.arange(np.prod(shape)).reshape(shape) if op == "RandomShuffle" else shape
    for expected in runs:
        np.testing.assert_array_equal(np.ravel(draw(given)).astype("f8"), expected)
