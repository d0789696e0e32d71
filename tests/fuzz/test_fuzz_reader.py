"""Mutated programs through reader and printer under ASan and UBSan: no crash, and what is read prints to a text that reads back
the same. XLAC_FUZZ_LIMIT sets how many for each seed, or for how long ("60s")."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = os.environ.get("XLAC_FUZZ_LIMIT", "20000")


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no C compiler")
    binary = tmp_path_factory.mktemp("fuzz") / "fuzz_reader"
    sources = [f for folder in ("base", "ir", "text") for f in (ROOT / "csrc" / folder).rglob("*.c")]
    flags = ["-std=gnu11", "-O1", "-g", "-DFUZZ_MAIN", "-DXLAC_PARTIAL", "-fsanitize=address,undefined"]
    command = [compiler, *flags, "-fno-sanitize-recover=all", *map(str, sources), str(ROOT / "tests/fuzz/fuzz_reader.c")]
    subprocess.run([*command, "-o", str(binary), "-lm", "-lpthread"], check=True)
    return binary


FILES = [str(f) for folder in ("fuzz/corpus", "text/cases") for f in sorted((ROOT / "tests" / folder).glob("*.hlo"))]


def run(fuzzer, seed, limit, folder):
    done = subprocess.run([fuzzer, str(seed), str(limit), *FILES], capture_output=True, text=True, cwd=folder)
    finding = folder / "fuzz-finding.hlo"
    assert done.returncode == 0, done.stderr[-4000:] + (finding.read_text("latin1") if finding.exists() else "")
    return re.fullmatch(r"(\d+) files, (\d+) mutated inputs \(digest (\w+)\), no finding\n", done.stdout).groups()


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_programs(fuzzer, seed, tmp_path):
    files, inputs, _ = run(fuzzer, seed, LIMIT, tmp_path)
    assert int(files) == len(FILES) and (LIMIT.endswith("s") or inputs == LIMIT)


def test_equal_seeds_and_counts_give_equal_inputs(fuzzer, tmp_path):
    first, again, other_seed, longer = (run(fuzzer, *at, tmp_path) for at in [(5, 50), (5, 50), (6, 50), (5, 51)])
    assert first == again and len({first[2], other_seed[2], longer[2]}) == 3


def test_a_limit_that_is_none_is_refused(fuzzer, tmp_path):
    done = subprocess.run([fuzzer, "1", "45minutes", *FILES], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and "COUNT|SECONDSs|default" in done.stderr
