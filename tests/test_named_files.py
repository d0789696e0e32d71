"""C files that tests name are there: in csrc, in one of its rooms, or beside the test. One that moved fails here, and not where a test is
skipped."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
NAMED = re.compile(r'"((?:[\w-]+/)*[\w-]+\.[ch])"')
# What tests write themselves, and others' headers.
OTHERS = re.compile(r'tmp_path\S*\s*/\s*f?"|write_text|xla/ffi/')
FOLDERS = [ROOT, ROOT / "tests", ROOT / "csrc", *(path for path in (ROOT / "csrc").glob("*/") if path.is_dir())]


def named():
    for path in sorted((ROOT / "tests").rglob("*.py")):
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines, 1):
            for name in NAMED.findall(line):
                if "/" in name and not OTHERS.search(line):
                    yield pytest.param(path, name, id=f"{path.relative_to(ROOT)}:{number}:{name}")


@pytest.mark.parametrize("path,name", list(named()))
def test_c_files_exist(path, name):
    assert any((folder / name).exists() for folder in (*FOLDERS, path.parent)), name
