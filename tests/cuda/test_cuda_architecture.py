"""GPUs that NVRTC does not know: newer ones get PTX, which their driver compiles, and older ones an error that says what to do."""
import os
import subprocess
import sys

import pytest

import gpu

CODE = """
import numpy as np, xlac
exe = xlac.compile("HloModule m\\nENTRY e { x = f32[4] parameter(0)\\n ROOT y = f32[4] add(x, x) }", device="cuda")
print(exe(np.ones(4, np.float32)).tolist())
"""


def run(**settings):
    gpu.use()
    if os.environ.get("XLAC_CUDA_ON_GPU"):
        pytest.skip("of the driver that simulates")
    return subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env={**os.environ, **settings})


@pytest.mark.parametrize("capability, portable", [("90", False), ("103", True), ("130", True)])
def test_newer_ones(capability, portable):
    made = run(XLAC_CUDA_SIM_CAPABILITY=capability)
    assert made.returncode == 0 and made.stdout.strip() == "[2.0, 2.0, 2.0, 2.0]", made.stderr
    calls = run(XLAC_CUDA_SIM_CAPABILITY=capability, XLAC_CUDA_SIM_FAIL="nvrtcGetPTX:1:5")
    assert (calls.returncode != 0) == portable, calls.stderr


def test_older_ones():
    made = run(XLAC_CUDA_SIM_CAPABILITY="70")
    assert made.returncode != 0 and "compiles for no GPU as old as this one" in made.stderr and "capability 7.0" in made.stderr


def test_a_driver_older_than_nvrtc():
    made = run(XLAC_CUDA_SIM_VERSION="12040", XLAC_CUDA_SIM_FAIL="cuModuleLoadData:1:209")
    assert made.returncode != 0 and "NVRTC is newer than the driver" in made.stderr
