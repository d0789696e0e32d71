"""Mutated programs through reader and printer under ASan and UBSan, for a bounded time: no crash, and what is read prints to a
text that reads back the same. XLAC_FUZZ_SECONDS sets the time for each seed."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = os.environ.get("XLAC_FUZZ_SECONDS", "10")


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no C compiler")
    binary = tmp_path_factory.mktemp("fuzz") / "fuzz_reader"
    sources = [f for folder in ("base", "ir", "text") for f in (ROOT / "csrc" / folder).glob("*.c")]
    flags = ["-std=gnu11", "-O1", "-g", "-DFUZZ_MAIN", "-DXLAC_PARTIAL", "-fsanitize=address,undefined"]
    command = [compiler, *flags, "-fno-sanitize-recover=all", *map(str, sources), str(ROOT / "tests/fuzz/fuzz_reader.c")]
    subprocess.run([*command, "-o", str(binary), "-lm", "-lpthread"], check=True)
    return binary


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_programs(fuzzer, seed, tmp_path):
    files = [*(ROOT / "tests/fuzz/corpus").glob("*.hlo"), *(ROOT / "tests/text/cases").glob("*.hlo")]
    run = subprocess.run(
        [fuzzer, str(seed), SECONDS, *map(str, sorted(files))],
        capture_output=True, text=True, timeout=60 + 3 * int(SECONDS), cwd=tmp_path,
    )
    finding = tmp_path / "fuzz-finding.hlo"
    assert run.returncode == 0, run.stderr[-4000:] + (finding.read_text("latin1") if finding.exists() else "")
