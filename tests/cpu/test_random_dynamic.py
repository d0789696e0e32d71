"""Random modules of sizes that only a run knows, of scalars beside arrays and of quantised CHLO: interpreted, compiled in every way, and
serialized, they give the same, and operands that do not fit together give an error everywhere."""
import os

import numpy as np
import pytest

import xlac

from . import dynamic_modules
from .conftest import leaves, same_numbers

WAYS = ({"threads": 1}, {"threads": 2}, {"fuse": False}, {"passes": False}, {"fuse": False, "passes": False, "threads": 1})


def outcome(run):
    """The results, or the error."""
    try:
        return leaves(run())
    except xlac.Error as e:
        assert not isinstance(e, (xlac.VerifyError, MemoryError)), e
        return str(e)


def executables(module, options):
    """Compiled, and loaded again where a serialized form has the program."""
    executable = xlac.compile(module, **options)
    yield executable
    if "threads" in options:
        return
    try:
        saved = executable.serialize()
    except xlac.Error as e:
        assert "can't be serialized" in str(e) and "stablehlo.dynamic_broadcast_in_dim" in str(e), e
        return
    yield xlac.load(saved)


def check(seed):
    module = dynamic_modules.Module(seed)
    parsed = xlac.parse(module.text)
    parsed.verify()
    kept = [np.array(a) for a in module.args]
    want = outcome(lambda: xlac.interpret(parsed, *module.args))
    assert isinstance(want, str) == module.fails, (seed, want, module.text)
    for options in WAYS:
        for exe in executables(parsed, options):
            got = outcome(lambda: exe(*module.args))
            assert isinstance(got, str) == module.fails, (seed, options, got, module.text)
            assert module.fails or same_numbers(got, want), (seed, options, module.text)
    assert all(np.array_equal(a, b) for a, b in zip(kept, module.args))


# XLAC_RANDOM_MODULES=10000 for the long run, from XLAC_RANDOM_FROM on.
@pytest.mark.parametrize("part", range(10))
def test_random_dynamic_modules(part):
    n, first = int(os.environ.get("XLAC_RANDOM_MODULES", 300)) // 10, int(os.environ.get("XLAC_RANDOM_FROM", 0))
    for seed in range(first + part * n, first + (part + 1) * n):
        check(seed)
