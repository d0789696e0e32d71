"""The functions that printed kernels call are made from their one definition in C."""
import importlib.util
import pathlib
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
    for name, (text, needed) in rows.items():
        assert set(needed) <= seen and name not in bad
        seen.add(name)
    assert {"op_ADD_F32", "op_TANH_F64", "op_POWER_U8", "op_MULTIPLY_C64", "convert_F64_U16", "narrow_BF16"} <= seen and len(seen) > 600


def unpacked(data):
    """What source.c makes of the packed text."""
    out, at = bytearray(), 0
    while at < len(data):
        if data[at] < 128:
            out.append(data[at])
            at += 1
            continue
        back = data[at + 1] << 8 | data[at + 2]
        for _ in range(data[at] - 124):
            out.append(out[-back])
        at += 3
    return out.decode()


@pytest.mark.parametrize("text", ["", "abc", "abcd" * 100, "x" * 1000, "static int f(int x);\0static int g(int x);\0" + "y" * 70000 + "static int f(int x);\0"])
def test_what_is_packed_is_unpacked_to_the_same(text):
    data = prelude().packed(text)
    assert unpacked(data) == text and len(data) <= len(text)
