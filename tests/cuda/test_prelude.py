"""The functions that printed kernels call are made from their one definition in C."""
import importlib.util
import pathlib
import re
import shutil

import pytest

CUDA = pathlib.Path(__file__).resolve().parents[2] / "csrc" / "cuda" / "print"


def prelude():
    spec = importlib.util.spec_from_file_location("cuda_prelude", CUDA / "prelude.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_table_is_what_would_be_written_now():
    assert prelude().written() == (CUDA / "prelude.def").read_text()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_each_function_stands_behind_what_it_needs():
    rows, bad = prelude().table()
    seen = set()
    for name, (_, needed) in rows.items():
        assert set(needed) <= seen and name not in bad
        seen.add(name)
    assert {"op_ADD_F32", "op_TANH_F64", "op_POWER_U8", "op_MULTIPLY_C64", "convert_F64_U16", "narrow_BF16"} <= seen and len(seen) > 600


def test_tables_of_functions_are_static():
    """Else every thread writes its own copy to local memory, for each element: tanh took a hundred times as long."""
    rows, _ = prelude().table()
    for name, (text, _) in rows.items():
        body = text.partition("{")[2]
        assert not re.search(r"(?<!static )\bconst\s+\w+\s+\w+\[[^\]]*\]\s*=", body), name
    assert "alignas(16) static const float rows[16][8] = {{" in rows["math_tanh_f32"][0] and "rows[i & 15][7]" in rows["math_tanh_f32"][0]


FUNCTIONS = "static int f(int x);\0static int g(int x);\0" + "y" * 3000 + "static int f(int x);\0"


@pytest.mark.parametrize("text", ["", "abc", "abcd" * 100, "x" * 1000, FUNCTIONS])
def test_what_is_packed_is_unpacked_to_the_same(text):
    data = prelude().packed(text)
    assert prelude().unpacked(data, len(text)) == text and len(data) <= len(text) + 5
