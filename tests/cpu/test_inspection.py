"""What an executable says of itself; runs in the background; executables as bytes."""
import gc
import json
import xml.dom.minidom

import numpy as np
import pytest

import xlac

from .conftest import leaves, same_bits

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
TEXT = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
c { p = (s32[], f32[3,3]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT }
b { p = (s32[], f32[3,3]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[3,3] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[3,3] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (s32[], f32[3,3]) tuple(j, y) }
ENTRY e {
  x = f32[3,4] parameter(0)
  t = f32[3,4] tanh(x)
  u = f32[3,4] multiply(t, x)
  d = f32[3,3] dot(u, u), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  z = s32[] constant(0)
  s = (s32[], f32[3,3]) tuple(z, d)
  w = (s32[], f32[3,3]) while(s), condition=c, body=b
  l = f32[3,3] get-tuple-element(w), index=1
  k = f32[] constant(0)
  q = f32[3] reduce(l, k), dimensions={1}, to_apply=add
  ROOT r = (f32[3], f32[3,3]) tuple(q, l)
}"""


@pytest.fixture
def exe():
    return xlac.compile(xlac.parse(TEXT), threads=2)


def test_cost(exe):
    cost = exe.cost
    by_op = {row["op"]: row for row in cost.by_op}
    assert by_op["t"]["transcendentals"] == 12 and by_op["t"]["flops"] == 0 and by_op["u"]["flops"] == 12
    assert by_op["d"]["flops"] == 2 * 3 * 3 * 4 and by_op["q"]["flops"] == 9
    assert cost.loops == ["w"] and cost["transcendentals"] == 12
    assert cost["flops"] == sum(row["flops"] for row in cost.by_step) == sum(row["flops"] for row in cost.by_op)
    assert cost["bytes_read"] >= 12 * 4 and cost["bytes_written"] >= 12 * 4 + 9 * 4 + 3 * 4
    assert "tanh" in repr(cost) and "<table>" in cost._repr_html_()


def test_cost_of_the_dearest_branch():
    exe = xlac.compile(xlac.parse("""HloModule m
f { p = f32[8] parameter(0)
  ROOT r = f32[8] add(p, p) }
g { p = f32[8] parameter(0)
  q = f32[8] multiply(p, p)
  s = f32[8] slice(q), slice={[0:8]}
  ROOT r = f32[8] add(q, p) }
ENTRY e {
  i = pred[] parameter(0)
  x = f32[8] parameter(1)
  ROOT r = f32[8] conditional(i, x, x), true_computation=f, false_computation=g
}"""))
    assert exe.cost["flops"] == 16 and exe.cost.loops == []


def chain(n):
    return "HloModule m\nENTRY e {\n  v0 = f32[64,64] parameter(0)\n" + "".join(
        f"  v{i} = f32[64,64] dot(v{i - 1}, v{i // 2}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n" for i in range(1, n)) + \
        f"  ROOT r = f32[64,64] add(v{n - 1}, v{n - 2})\n}}"


def test_memory():
    memory = xlac.compile(xlac.parse(chain(12))).memory
    assert memory["argument_bytes"] == memory["result_bytes"] == 64 * 64 * 4
    assert memory["frame_bytes"] >= memory["peak_bytes"] == max(memory.live) > 0
    assert memory.live[memory.peak_step] == memory["peak_bytes"] == sum(memory.by_op.values())
    boxes = memory.blocks()
    for i, (offset, size, first, last) in enumerate(boxes):
        assert offset + size <= memory["frame_bytes"]
        for other, other_size, other_first, other_last in boxes[:i]:
            apart = offset + size <= other or other + other_size <= offset
            assert apart or last < other_first or other_last < first
    svg = memory.svg()
    boxes = len(xml.dom.minidom.parseString(svg).getElementsByTagName("rect")) - 1  # but the background
    assert boxes == len(memory.buffers) + sum(b["place"] in ("argument", "result") for b in memory.all_buffers) > len(memory.buffers)
    assert svg in memory._repr_html_() and "peak at step" in str(memory) == repr(memory)
    assert "no buffers" in str(xlac.compile(xlac.parse("HloModule m\nENTRY e { ROOT x = f32[2] parameter(0) }")).memory)


def test_timings(exe):
    timings = exe.timings
    assert set(timings) == {"copy", "passes", "plan"} and all(s >= 0 for s in timings.values())
    names = [name for name, _ in timings.by_pass]
    assert "cse" in names and "dce" in names and sum(s for _, s in timings.by_pass) <= timings["passes"] + 1e-3
    assert "cse" in str(timings) and not xlac.compile(xlac.parse(TEXT), passes=False).timings.by_pass


def test_explanations(exe):
    schedule = exe.explain("schedule")
    assert "while w" in schedule and "runs b" in schedule and repr(schedule) == str(schedule)
    assert "u" in exe.explain("fusion") and "frame" in exe.explain("memory")
    shown = exe.explain("memory")._repr_html_()  # as text in lines of its own, which wrap between words
    assert shown.startswith('<pre style="white-space:pre-wrap;word-break:normal;overflow-wrap:break-word">') and shown.endswith("</pre>")
    with pytest.raises(xlac.Error, match="topic|explain"):
        exe.explain("weather")
    dynamic = xlac.compile(xlac.parse("HloModule m\nENTRY e {\n  x = f32[<=4] parameter(0)\n  ROOT y = f32[<=4] negate(x)\n}"))
    assert "interpreter" in dynamic.explain("schedule") and dynamic.cost["flops"] == 0 and dynamic.memory.svg()


def test_profile(tmp_path, monkeypatch):
    monkeypatch.setenv("XLAC_NATIVE", "0")  # else the loop is one function
    exe = xlac.compile(xlac.parse(TEXT), threads=2)
    profile = exe.profile(X)
    assert same_bits(leaves(profile.result), leaves(exe(X)))
    rows = {row["op"]: row for row in profile.steps}
    assert rows["w"]["times"] == 1 and rows["y"]["times"] == 5 and rows["y"]["computation"] == "b"
    assert rows["w"]["seconds"] >= rows["y"]["seconds"] > 0 and profile.seconds >= rows["w"]["seconds"]
    assert rows["y"]["flops"] == 5 * 2 * 27
    trace = json.loads(profile.chrome_trace())["traceEvents"]
    assert sum(e["name"] == "y" for e in trace) == 5
    loop = next(e for e in trace if e["name"] == "w")
    assert all(loop["ts"] <= e["ts"] and e["ts"] + e["dur"] <= loop["ts"] + loop["dur"] + 1e-3 for e in trace if e["name"] == "y")
    profile.save(tmp_path / "trace.json")
    profile.save(tmp_path / "picture.svg")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    xml.dom.minidom.parse(str(tmp_path / "picture.svg"))
    assert "in all" in repr(profile) and "<table>" in profile._repr_html_()
    with pytest.raises(xlac.Error):
        exe.profile(X, X)
    with pytest.raises(TypeError):
        exe.profile(x=X)


# --- in the background ---

def test_run_async(exe):
    want = leaves(exe(X))
    futures = [exe.run_async(X) for _ in range(8)]
    assert all(same_bits(leaves(f.result(30)), want) for f in futures) and futures[0].done() and futures[0].exception() is None
    out = (np.empty(3, np.float32), np.empty((3, 3), np.float32))
    assert exe.run_async(x=X, out=out).result(30)[0] is out[0] and same_bits(list(out), want)
    failed = exe.run_async(X, X)
    assert isinstance(failed.exception(30), xlac.Error)
    with pytest.raises(xlac.Error):
        failed.result()


def test_run_async_keeps_what_it_needs_and_nothing_more(exe):
    gc.collect()
    live = xlac.memory_stats()["live"]
    big = xlac.compile(xlac.parse("HloModule m\nENTRY e {\n  x = f32[100000] parameter(0)\n  ROOT y = f32[100000] tanh(x)\n}"))
    future = big.run_async(np.full(100000, 0.5, np.float32))
    del big
    assert abs(future.result(30) - np.tanh(0.5)).max() < 1e-6
    del future
    exe.run_async(X).result(30)  # the thread has let go of the task before
    gc.collect()
    assert xlac.memory_stats()["live"] == live


# --- as bytes ---

def test_serialize_and_load(exe, tmp_path):
    data = exe.serialize()
    assert isinstance(data, bytes) and exe.serialize() == data
    (tmp_path / "step.xlac").write_bytes(data)
    for source in (data, bytearray(data), memoryview(data), tmp_path / "step.xlac", str(tmp_path / "step.xlac")):
        loaded = xlac.load(source)
        assert same_bits(leaves(loaded(X)), leaves(exe(X))) and loaded.plan() == exe.plan() and loaded.serialize() == data
    assert same_bits(leaves(xlac.load(data, threads=1)(X)), leaves(exe(X)))
    unfused = xlac.compile(xlac.parse(TEXT), fuse=False)
    assert xlac.load(unfused.serialize()).plan() == unfused.plan() != exe.plan()


def test_what_serialize_keeps():
    donated = xlac.compile(xlac.parse(TEXT), donate=0)
    assert xlac.load(donated.serialize()).donations == donated.donations
    assert xlac.load(donated.serialize(), blas=False).steps["blas"] == "" != donated.steps["blas"]
    assert xlac.load(xlac.compile(xlac.parse(TEXT), blas=False).serialize()).steps["blas"] == ""


@pytest.mark.parametrize("number", [complex(np.nan, 0.0), complex(np.nan, -2.5), complex(0.0, np.nan), complex(-0.0, -np.inf)])
def test_complex_constants_keep_both_parts(number):
    b = xlac.Builder("m")
    exe = xlac.compile(b.build(b.broadcast(b.constant(np.complex64(number)), type="c64[2]", dimensions=[])))
    assert exe().tobytes() == xlac.load(exe.serialize())().tobytes() == np.full(2, number, np.complex64).tobytes()


def test_what_load_refuses(exe):
    data = exe.serialize()
    for bad, words in [(b"", "don't begin"), (b"HloModule m", "don't begin"), (data[:30], "cut short"), (data[:-1], "cut short"),
                       (data[:100], "cut short"), (data + b"x", "something follows"), (data.replace(b"\r\n", b"\n", 1), "don't begin"),
                       (data[:8] + b"\x02" + data[9:], "format 2"), (data[:-1] + bytes([data[-1] ^ 1]), "damaged")]:
        with pytest.raises(xlac.Error, match=words) as caught:
            xlac.load(bad)
        assert caught.value.code == 901 and ("compiles it" if bad[:3] == b"Hlo" else "again") in caught.value.hint
    with pytest.raises(OSError):
        xlac.load("no such file")
    with pytest.raises(TypeError):
        xlac.load(3)


def test_every_flipped_bit_is_noticed():
    data = xlac.compile(xlac.parse("HloModule m\nENTRY e { ROOT x = f32[2] parameter(0) }")).serialize()
    for i in range(len(data) * 8):
        bad = bytearray(data)
        bad[i // 8] ^= 1 << i % 8
        with pytest.raises(xlac.Error):
            xlac.load(bad)


def test_what_an_executable_says_of_itself_is_worked_out_once():
    exe = xlac.compile(xlac.parse("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] sine(x)\n}"))
    other = xlac.compile(xlac.parse("HloModule m\nENTRY e {\n  x = f32[5] parameter(0)\n  ROOT y = f32[5] sine(x)\n}"))
    assert exe.memory is exe.memory and exe.cost is exe.cost and exe.memory.live is exe.memory.live
    assert exe.memory is not other.memory and exe.memory["argument_bytes"] == 16 and other.memory["argument_bytes"] == 20
