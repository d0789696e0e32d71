"""The CUDA device's own declarations beside NVIDIA's header, where its wheel is installed (nvidia-cuda-runtime)."""
import importlib.util
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent


def header_folder():
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(pathlib.Path(folder).glob("*/include/cuda.h")):
            return path.parent
    pytest.skip("the package nvidia-cuda-runtime is not installed")


def test_numbers_and_structs_are_those_of_the_header():
    done = subprocess.run(["cc", "-std=gnu11", "-fsyntax-only", f"-I{header_folder()}", HERE / "headers.c"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
