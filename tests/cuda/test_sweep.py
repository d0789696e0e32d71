"""A share of what tests/cuda/run runs whole: programs on device="cuda" equal the interpreter, and the driver finds nothing."""
import ctypes
import os

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
