"""Sizes beyond 2^31 elements, and errors that say what there is no memory for."""
import numpy as np
import pytest

import xlac


def program(lines, head="  x = f32[] parameter(0)\n"):
    return xlac.compile(xlac.parse(f"HloModule m\nENTRY e {{\n{head}{lines}\n}}"))


def test_results_that_no_memory_holds():
    exe = program("  b = f32[8796093022208,16] broadcast(x), dimensions={}\n  ROOT large = f32[8796093022208,16] sine(b)")
    assert exe.memory["result_bytes"] == 1 << 49
    with pytest.raises(xlac.OutOfMemoryError, match=r"563 TB for results.*largest values are large f32\[8796093022208,16\]"):
        exe(np.float32(1))


def test_a_frame_that_no_memory_holds():
    exe = program("  i = u64[32768,4294967296] iota(), iota_dimension=1\n  r = u64[140737488355328] reshape(i)\n"
                  "  ROOT last = u64[4] slice(r), slice={[8589934588:8589934592]}", "")
    assert exe.memory["frame_bytes"] >= exe.memory["peak_bytes"] >= 1 << 50
    with pytest.raises(xlac.OutOfMemoryError, match=r"a call of e takes 32 bytes for results and a frame of 1\.13 PB.*i u64\[32768,4294967296\]"):
        exe()
    with pytest.raises(MemoryError):
        exe()


def test_more_than_two_to_the_31_elements_within_a_kernel():
    exe = program("  i = u64[8589934592] iota(), iota_dimension=0\n  ROOT last = u64[4] slice(i), slice={[8589934588:8589934592]}", "")
    assert exe().tolist() == [8589934588, 8589934589, 8589934590, 8589934591]
    exe = program("  b = f32[65536,65536] broadcast(x), dimensions={}\n  i = s64[65536,65536] iota(), iota_dimension=0\n"
                  "  c = f32[65536,65536] convert(i)\n  a = f32[65536,65536] add(b, c)\n  v = f32[65536,65536] reverse(a), dimensions={0}\n"
                  "  ROOT last = f32[2,1] slice(v), slice={[65534:65536],[65535:65536]}")
    assert exe(np.float32(0.5)).tolist() == [[1.5], [0.5]]
