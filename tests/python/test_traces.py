"""Traces and memory profiles for tools of others, and where ops come from."""
import gzip
import json

import numpy as np
import pytest

import xlac

TEXT = """
HloModule m
ENTRY e {
  x = f32[64,64] parameter(0)
  a = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/layer/dot" source_file="/home/me/model.py" source_line=7}
  b = f32[64,64] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/head/dot" source_file="/home/me/model.py" source_line=9}
  ROOT c = f32[64,64] dot(b, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.fixture(scope="module")
def executable():
    return xlac.compile(TEXT)


def test_profiles_say_where_ops_come_from(executable, tmp_path):
    profile = executable.profile(np.ones((64, 64), np.float32), repeat=2, warmup=1)
    rows = {row["op"]: row for row in profile.steps}
    assert (rows["a"]["op_name"], rows["a"]["source"]) == ("jit(f)/layer/dot", "/home/me/model.py:7") and rows["c"]["op_name"] == ""
    assert "jit(f)/layer/dot" in repr(profile) and "model.py:7" in repr(profile) and "/home/me" not in repr(profile)
    profile.to_perfetto(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    found = {event["name"]: event for event in events if event["ph"] == "X"}
    assert found["b"]["args"] == {"computation": "e", "op_name": "jit(f)/head/dot", "source": "/home/me/model.py:9"}
    assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in found.values()) and {event["ph"] for event in events} == {"M", "X"}


def test_columns_that_say_nothing_are_left_out():
    profile = xlac.compile("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] tanh(x)\n}").profile(np.ones(4, np.float32))
    assert "framework" not in repr(profile)


def fields(data):
    """[(number, value)] of a message."""
    out, at = [], 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(data):
        key = varint()
        value = varint()
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        out.append((key >> 3, value))
    return out


def test_memory_for_pprof(executable, tmp_path):
    executable.memory.to_pprof(tmp_path / "m.pb.gz")
    found = fields(gzip.decompress((tmp_path / "m.pb.gz").read_bytes()))
    strings = [value.decode() for number, value in found if number == 6]
    functions = {dict(fields(value))[1]: strings[dict(fields(value))[2]] for number, value in found if number == 5}
    assert strings[0] == "" and {"space", "bytes", "/home/me/model.py"} <= set(strings)
    samples = [fields(value) for number, value in found if number == 2]
    total = sum(fields_of_packed(dict(sample)[2])[1] for sample in samples)
    assert total == executable.memory["peak_bytes"]
    stacks = [[functions[i] for i in fields_of_packed(dict(sample)[1])] for sample in samples]
    assert ["a f32[64,64]", "layer", "jit(f)", "e"] in stacks


def fields_of_packed(data):
    out, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            out.append(value)
            value = shift = 0
    return out
