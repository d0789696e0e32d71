"""What is installed: one core, which the extension and the plugin load from the folder they lie in."""
import ctypes
import os
import pathlib
import subprocess
import sys

import pytest

import xlac
import xlac.include

HERE = pathlib.Path(xlac.__file__).parent
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the core is a library of its own on Linux alone")


def mapped(code):
    """The project's libraries that a process has loaded after this code."""
    code += "\nprint(*sorted({line.split('/')[-1].strip() for line in open('/proc/self/maps') if FOLDER in line}))"
    done = subprocess.run([sys.executable, "-c", f"FOLDER = {str(HERE)!r}\n" + code], capture_output=True, text=True, check=True, cwd="/",
                          env=os.environ | {"PYTHONPATH": str(HERE.parent)})
    return done.stdout.split()


def test_the_plugin_alone_loads_the_core_beside_it_and_no_python_extension():
    assert mapped(f"import ctypes\nassert ctypes.CDLL({str(HERE / '_pjrt.so')!r}).GetPjrtApi") == ["_pjrt.so", "libxlac.so"]


def test_the_extension_and_the_plugin_have_one_core():
    names = mapped(f"import xlac, ctypes\nctypes.CDLL({str(HERE / '_pjrt.so')!r})")
    assert len(names) == 3 and names[1:] == ["_pjrt.so", "libxlac.so"]


def test_the_library_of_the_c_api_is_the_core():
    assert pathlib.Path(xlac.include.library()).name == "libxlac.so"
    assert ctypes.CDLL(xlac.include.library()).xlac_module_parse


def test_the_core_is_not_in_the_others():
    size = {path.name.split(".")[0]: path.stat().st_size for path in HERE.glob("*.so")}
    assert size["_core"] < size["libxlac"] / 8 and size["_pjrt"] < size["libxlac"] / 8
