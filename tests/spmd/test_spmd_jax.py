"""JAX's sharded programs on 2, 4 and 8 devices of one process give XLA's values, which are those of one device."""
import base64
import functools
import json
import lzma
import pathlib

import jax_programs_of_groups as programs
import numpy as np
import pytest

import xlac

ml_dtypes = pytest.importorskip("ml_dtypes")  # bfloat16 by its name


@functools.cache
def rows():
    with lzma.open(pathlib.Path(__file__).with_name("jax_programs.jsonl.xz"), "rt") as file:
        return {row["name"]: row for row in map(json.loads, file)}


def names():
    return sorted(rows())


def check(found, row, devices):
    wanted = row["values"].get(str(devices), row["values"].get("8"))
    assert len(found) == len(wanted)
    for a, (dtype, shape, data) in zip(found, wanted):
        b = np.frombuffer(base64.b64decode(data), dtype).reshape(shape)
        np.testing.assert_allclose(np.asarray(a).astype(b.dtype), b, rtol=5e-4, atol=5e-4)


def results_of(exe, row):
    found = exe(*programs.arguments(row["types"]))
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("devices", [2, 4, 8])
@pytest.mark.parametrize("name", names())
def test_values_are_those_of_one_device(name, devices):
    row = rows()[name]
    text = row["programs"][str(devices)]
    exe = xlac.compile(xlac.parse(text, format="mlir"), devices=devices)
    found = results_of(exe, row)
    if devices == 8:  # a thread a device, however little it has to do: the same bits
        threads = results_of(xlac.compile(xlac.parse(text, format="mlir"), devices=devices, async_work=1), row)
        assert [np.asarray(a).tobytes() for a in found] == [np.asarray(a).tobytes() for a in threads]
    check(found, row, devices)
