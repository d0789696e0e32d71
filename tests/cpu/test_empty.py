"""Kernels of no iterations beside rows that are the same everywhere."""
import numpy as np
import pytest

import xlac


@pytest.mark.parametrize("shape, row", [((0, 3), 3), ((5, 0), 0), ((0, 0), 0), ((2, 0, 3), 3)])
def test_rows_of_no_array(shape, row):
    dims = ",".join(map(str, shape))
    exe = xlac.compile(f"HloModule m\nENTRY e {{\n  x = f32[{dims}] parameter(0)\n  y = f32[{row}] parameter(1)\n"
                       f"  b = f32[{dims}] broadcast(y), dimensions={{{len(shape) - 1}}}\n  ROOT r = f32[{dims}] add(x, b)\n}}")
    assert exe(np.zeros(shape, np.float32), np.ones(row, np.float32)).shape == shape


@pytest.mark.parametrize("row", [2, 3, 64, 500, 512, 513])
def test_rows_repeated_in_blocks(row):
    rng = np.random.default_rng(row)
    x, y, z = rng.normal(size=(301, row)), rng.normal(size=row), rng.normal(size=row)
    x, y, z = (a.astype(np.float32) for a in (x, y, z))
    text = (f"HloModule m\nENTRY e {{\n  x = f32[301,{row}] parameter(0)\n  y = f32[{row}] parameter(1)\n  z = f32[{row}] parameter(2)\n"
            f"  v = f32[{row}] reverse(z), dimensions={{0}}\n  b = f32[301,{row}] broadcast(y), dimensions={{1}}\n"
            f"  c = f32[301,{row}] broadcast(v), dimensions={{1}}\n  m = f32[301,{row}] multiply(x, b)\n  ROOT r = f32[301,{row}] subtract(m, c)\n}}")
    for threads in (1, 2, 7):
        np.testing.assert_array_equal(xlac.compile(text, threads=threads)(x, y, z), x * y - z[::-1])
