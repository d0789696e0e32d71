"""Every page of the documentation, read from top to bottom in an empty folder: what it shows runs, and prints what it says (tests/pages.py)."""
import pathlib
import re
import shutil
import subprocess
import sys

import pages
import pytest

ROOT = pages.ROOT
INSTALLS = ("pip install", "python -m venv")  # CI does the README's; a test takes no package from a registry
# What a page takes for granted: files of the checkout or of an old JAX, and shell lines that another test runs. All else a page makes itself.
FILES = {
    "two-versions": {"predict-0.7.0.mlir": ROOT / "tests/predict-0.7.0.mlir"},
}
ELSEWHERE = {
    "tour": ["cc -O2"],  # tests/api/test_embed.py
    "c-library": ["cc ", "./embed", "cmake", "export PKG"],  # .ci/clibrary, which takes minutes; tests/api/test_embed.py
    "two-versions": ["old/bin/python"],  # needs an old JAX: the file is kept
}
VARIES = {"executor", "tour", "explorer", "clustering", "async", "sharding-block"}  # tests of their own compare what these print, or it is a picture
PROCESSES = {"distributed"}  # run in several by tests/spmd/test_distributed.py
NO_JAX = {"clustering-a-model", "tour", "executor", "explorer", "testing", "arrays", "aliasing", "async", "clustering", "cuda", "custom-calls", "environment", "sharding", "simulation"}


def runnable():
    for path in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]:
        if re.search(r"^```(python|sh)$", path.read_text(), re.M) and path.stem not in PROCESSES:
            yield path


def prepare(page, folder):
    for name, path in FILES.get(page, {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / name)


@pytest.mark.parametrize("path", list(runnable()), ids=lambda path: path.stem)
def test_a_reader_can_do_what_the_page_says(path, tmp_path):
    if path.stem not in NO_JAX:
        pytest.importorskip("jax")
    if path.stem == "custom-calls":
        pytest.importorskip("cffi")
        if not shutil.which("cc"):
            pytest.skip("no C compiler")
    prepare(path.stem, tmp_path)
    skip = [word for line in (*INSTALLS, *ELSEWHERE.get(path.stem, ())) for word in ("--skip", line)]
    varies = ["--varies"] if path.stem in VARIES else []
    done = subprocess.run([sys.executable, ROOT / "tests/pages.py", path, *varies, *skip], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_a_page_says_wrongly_is_found(tmp_path):
    for block, what in (("```python\n1 + 1    # 3\n```\n", "2"), ("```python\nprint('a')\n```\n```\nb\n```\n", "is not printed"), ("```sh\nxlac nonsense\n```\n", "usage")):
        (tmp_path / "page.md").write_text(block)
        done = subprocess.run([sys.executable, ROOT / "tests/pages.py", "page.md"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode != 0 and what in done.stderr, done.stderr
