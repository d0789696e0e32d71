"""csrc/xlac_all.c is the whole core as one file: it lists every file, and compiles, so file-local names are unique."""
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]


def test_lists_every_file():
    listed = re.findall(r'#include "([^"]+)"', (ROOT / "csrc/xlac_all.c").read_text())
    there = sorted(str(p.relative_to(ROOT / "csrc")) for p in (ROOT / "csrc").glob("*/**/*.c") if p.parent.name != "py")
    assert sorted(listed) == there and len(set(listed)) == len(listed)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_compiles_as_one_file():
    done = subprocess.run(["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "csrc/xlac_all.c"], cwd=ROOT,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
