"""Random programs: compiled, fused or not, the interpreter's bits."""
import numpy as np
import pytest

import xlac

from .conftest import leaves, same_numbers

programs = pytest.importorskip("programs")


@pytest.mark.parametrize("seed", range(200))
def test_random_programs(seed):
    module = xlac.parse(programs.Program(seed, seed % 3 == 0).text)
    args = [np.array([1, 2], np.float32), np.array([3, -4], np.float32)]
    want = leaves(xlac.interpret(module, *args))
    for options in ({}, {"fuse": False}, {"passes": False}, {"blas": False}):
        assert same_numbers(leaves(xlac.compile(module, **options)(*args)), want), options
