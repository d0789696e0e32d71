"""A share of what tests/cuda/run runs whole: programs on device="cuda" equal the interpreter, and the driver finds nothing."""
import ctypes
import os

import numpy as np
import pytest

import sweep
from simulator import xlac_driver


@pytest.fixture(scope="module")
def cuda():
    return xlac_driver()


COUNTS = {"bench": 3}  # of the others 12
NEEDS = {"ops": "jaxlib", "bench": "jax"}


@pytest.mark.parametrize("order", [0, 5])
@pytest.mark.parametrize("suite", sweep.SUITES)
def test_a_share(cuda, suite, order):
    if suite in ("hlo", "exec") and not os.path.isdir(os.environ.get("XLAC_CONFORMANCE", sweep.TESTS.parents[1] / "shared" / "conformance")):
        pytest.skip("no conformance data")
    if suite in NEEDS:
        pytest.importorskip(NEEDS[suite])
    said = []
    cuda.library.cudasim_seed(ctypes.c_uint64(order))
    try:
        failed = sweep.run_suite(cuda, suite, COUNTS.get(suite, 12), 3 + order, said.append)
    finally:
        cuda.library.cudasim_seed(ctypes.c_uint64(0))
    assert failed == [], "\n".join(said)
    assert not said[-1].startswith(f"{suite}: 0 programs")


CANCELS = """HloModule m
sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[4] parameter(0)
 none = f32[] constant(0)
 ROOT s = f32[] reduce(x, none), dimensions={0}, to_apply=sum }
"""


def test_sums_that_cancel_are_as_near_as_the_interpreters_or_wrong():
    x = np.array([1e8, 3, -1e8, 0.125], np.float32)  # 3.125 exactly; in the order of f32, few of its bits
    want = [np.float32(0.125 + np.float32(np.float32(1e8) + np.float32(3)) - np.float32(1e8))]
    for right in (3.125, 3, 0.125):
        assert sweep.is_as_near(CANCELS, "hlo", [x], [np.float32(right)], want)
    for wrong in (30, -5, np.nan):
        assert not sweep.is_as_near(CANCELS, "hlo", [x], [np.float32(wrong)], want)
    assert not sweep.is_as_near(CANCELS, "hlo", [x], [np.int32(3)], want)
