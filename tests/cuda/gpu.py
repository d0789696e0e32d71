"""The device that the tests of this folder run on: a GPU's where XLAC_CUDA_ON_GPU is set, else the driver that simulates one."""
import functools
import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@functools.cache
def driver():
    """The path of the simulating driver, built where it is older than its sources; None where it can't be, for the reason `why`."""
    if not (HERE / "driver" / "build").exists() or shutil.which("cc") is None or shutil.which("c++") is None:
        return None
    built = subprocess.run([HERE / "driver" / "build"], capture_output=True, text=True, timeout=600)
    assert built.returncode == 0, built.stderr[-3000:]
    return built.stdout.strip()


def use():
    """Has device="cuda" of this process run on it; skips where there is none."""
    if os.environ.get("XLAC_CUDA_ON_GPU"):
        return
    path = driver()
    if path is None:
        pytest.skip("no compiler for the driver that simulates, and no GPU was asked for")
    os.environ["XLAC_CUDA_DRIVER"] = path
