"""Random malformed ops must give an error or a type, under ASan and UBSan; and sensible ones must be among them."""
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no C compiler")
    binary = tmp_path_factory.mktemp("fuzz") / "fuzz_infer"
    sources = [*(ROOT / "csrc/base").rglob("*.c"), *(ROOT / "csrc/ir").rglob("*.c"), ROOT / "tests/ir/fuzz_infer.c"]
    flags = ["-std=gnu11", "-O1", "-g", "-DXLAC_PARTIAL", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run([compiler, *flags, *map(str, sources), "-o", str(binary), "-lm", "-lpthread"], check=True)
    return binary


@pytest.mark.parametrize("seed", range(1, 5))
def test_random_ops(fuzzer, seed):
    run = subprocess.run([fuzzer, str(seed), "8"], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr[-4000:]
    typed, refused = map(int, re.findall(r"\d+", run.stdout))
    assert typed > 1000 and refused > 1000
