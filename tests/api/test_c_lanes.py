"""Lanes and timelines through the C interface."""
import json

from test_compiling import compiled

TEXT = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  s = ((f32[2]), f32[2], u32[]) add-start(x, x), async_execution_thread="side"
  t = ((f32[2]), f32[2]) negate-start(x)
  k = f32[2] multiply(x, x)
  d = f32[2] add-done(s)
  f = f32[2] negate-done(t)
  y = f32[2] add(d, k)
  ROOT r = f32[2] add(y, f)
}
""".replace("((f32[2]), f32[2], u32[]) add", "((f32[2], f32[2]), f32[2], u32[]) add")


def test_lanes_and_a_timeline(x):
    side, lanes = x.ffi.new("char[]", b"side"), x.ffi.new("xlac_lane[1]")
    lanes[0].thread, lanes[0].threads = side, 2
    exe = compiled(x, TEXT, x.options("xlac_compile_options", {"threads": 1, "n_lanes": 1, "lanes": lanes, "async_work": 1}))
    found, lane = [], x.ffi.new("xlac_lane *")
    while x.lib.xlac_executable_lane(exe, len(found), lane):
        found.append((x.text(lane.thread), lane.threads))
    assert found == [("side", 2), ("", 1)]
    arg, out = x.array("f32", [2], x.ffi.new("float[]", [1, 0.5])), x.ffi.new("xlac_value **")
    text, n, args = x.ffi.new("char **"), x.ffi.new("size_t *"), x.ffi.new("xlac_value *[]", [arg])
    x.check(x.lib.xlac_executable_timeline(exe, x.ffi.NULL, 1, args, out, text, n, x.err))
    assert x.floats(out[0]) == [2, 0.75]
    events = json.loads(x.take(text[0]))["events"]
    assert sum(task for *_, task in events) == 2 and {serial for *_, serial, _ in events} == {0, 1, 2}
    assert {lane for *_, lane, _, task in events if not task} == {0} or {lane for *_, lane, _, _ in events} <= {0, 1, 2}
    x.lib.xlac_value_release(out[0])
    x.fails(x.lib.xlac_executable_timeline(exe, x.ffi.NULL, 0, x.ffi.NULL, out, text, n, x.err), 500)
    x.lib.xlac_value_release(arg)
    x.lib.xlac_executable_destroy(exe)


def test_programs_without_async_ops_have_no_lanes(x):
    exe = compiled(x, "HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT y = f32[2] negate(x) }")
    assert not x.lib.xlac_executable_lane(exe, 0, x.ffi.new("xlac_lane *"))
    x.lib.xlac_executable_destroy(exe)
