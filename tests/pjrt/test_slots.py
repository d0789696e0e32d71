"""The table of slots is the interface's: number, order, sizes; what is absent says so; the library exports one symbol."""
import ctypes
import pathlib
import re
import shutil
import subprocess

import plugin
import pytest
import xlac

REFERENCE = plugin.ROOT.parent / "shared/reference/pjrt.md"


def test_the_table_has_every_slot_and_the_version(p):
    size, = ctypes.c_size_t.from_address(p.address).value,
    major, minor = ctypes.c_int.from_address(p.address + 32).value, ctypes.c_int.from_address(p.address + 36).value
    assert (len(plugin.SLOTS), size, major, minor) == (138, 1144, 0, 112)
    assert all(p.pointers)


@pytest.mark.parametrize("name, size, last", [row[1:4] for row in plugin.SLOTS])
def test_arguments_are_as_long_as_the_table_says(name, size, last):
    struct = plugin.STRUCTS[name]
    end = getattr(struct, last).offset + (76 if last == "layout" and name.endswith("GetMemoryLayout") else getattr(struct, last).size)
    assert end == size or (name, end, size) == ("Buffer_GetMemoryLayout", 100, 104)


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference is not here")
def test_names_and_sizes_are_the_references():
    text = REFERENCE.read_text()
    rows = re.findall(r"(?:^|‖ )(\d+) [RNU]\*? (\w+) (\d+): ", text[text.index("### 2.2"):text.index("### 2.3")], re.M)
    assert [(name, int(size)) for _, name, size in rows] == [(name, size) for _, name, size, *_ in plugin.SLOTS]


def test_what_is_absent_answers_unimplemented_with_its_name(p):
    absent = [name for how, name, *_ in plugin.SLOTS if how == "ABSENT"]
    assert len(absent) <= 12
    for name in absent:  # and why, and what to do
        with pytest.raises(plugin.Failed, match=f"PJRT_{name}: xlac's plugin does not have this: .*(;|, or) ") as failed:
            p.call(name)
        assert failed.value.code == 12


@pytest.mark.skipif(not shutil.which("nm"), reason="nm is not here")
def test_the_library_exports_one_symbol():
    library = pathlib.Path(xlac.__file__).parent / "_pjrt.so"
    names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.split()
    assert names[2::3] == ["GetPjrtApi"]


def test_plugin_attributes_name_what_is_read(p):
    got = p.Plugin_Attributes()
    values = (plugin.NamedValue * got.num_attributes).from_address(got.attributes)
    assert {v.name[:v.name_size] for v in values} == {b"stablehlo_current_version", b"sdy_current_version", b"xla_version",
                                                      b"supports_executable_serialization", b"xlac_loads_text"}


def test_errors_have_no_payload_and_none_may_be_destroyed(p):
    p.Error_Destroy(error=None)
    with pytest.raises(plugin.Failed) as failed:
        p.Client_CreateAliasBuffer()
    assert str(failed.value)
    assert pathlib.Path(plugin.ROOT / "csrc/pjrt/exports.map").exists()
