"""csrc/xlac_all.c is the whole core as one file: it lists every file, and compiles, so file-local names are unique. Those of csrc/py are
too, and setup.py compiles groups of files as one."""
import pathlib
import re
import shutil
import subprocess
import sysconfig
from unittest import mock

import numpy
import pytest
import setuptools

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


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_extension_compiles_as_one_file(tmp_path):
    one = tmp_path / "py.c"
    one.write_text("".join(f'#include "{p}"\n' for p in sorted((ROOT / "csrc/py").glob("*.c"))))
    done = subprocess.run(["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-Icsrc/include", "-I" + numpy.get_include(),
                           "-I" + sysconfig.get_paths()["include"], one], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_groups_of_the_build_have_every_file_once_and_one_level_and_room_each(tmp_path):
    names = {"__file__": str(ROOT / "setup.py"), "__name__": "setup"}
    with mock.patch.object(setuptools, "setup"):
        exec(compile((ROOT / "setup.py").read_text(), "setup.py", "exec"), names)
    files = names["sources"]()
    groups = names["groups"](files)
    assert sorted(file for group in groups for file in group) == sorted(files) and 8 < len(groups) < len(files) / 5
    for group in groups:
        assert len({(file.split("/")[1], *names["level"](file)) for file in group}) == 1
        path, flags = names["write_group"](tmp_path, group)
        included = re.findall(r'#include "(.*)"', pathlib.Path(path).read_text())
        assert not any(name.startswith("/") for name in included)  # the same text in any folder
        assert [(pathlib.Path(path).parent / name).resolve() for name in included] == [ROOT / file for file in group] and flags == names["level"](group[0])
    assert len(list(tmp_path.iterdir())) == len(groups)
