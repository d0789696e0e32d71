"""Running clustered graphs from C."""
import struct

from test_c_clusters import given

GRAPH = b"""node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }
node { name: "w" op: "AssignVariableOp" input: "v" input: "x" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "r" op: "ReadVariableOp" input: "v" input: "^w" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "a" op: "AddV2" input: "r" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "b" op: "Mul" input: "a" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
"""


def names(x, *texts):
    kept = [x.ffi.new("char[]", t) for t in texts]
    return x.ffi.new("const char *[]", kept), kept


def test_a_session(x):
    lib, ffi = x.lib, x.ffi
    c, s, step = ffi.new("xlac_clusters **"), ffi.new("xlac_session **"), ffi.new("xlac_step **")
    flags = ffi.new("xlac_cluster_flags *")
    lib.xlac_cluster_flags_init(flags)
    flags.min_cluster_size = 2
    x.check(lib.xlac_cluster_graph(c, GRAPH, len(GRAPH), lib.XLAC_GRAPH_TEXT, flags, x.err))
    options = x.options("xlac_session_options", {"threads": 1, "no_blas": True, "numerics": 7})
    x.fails(lib.xlac_session_create(s, c[0], options, x.err), 503)
    options.numerics = lib.XLAC_NUMERICS_STRICT
    x.check(lib.xlac_session_create(s, c[0], options, x.err))
    feeds, fetches, targets, missing = names(x, b"x"), names(x, b"b", b"a:0"), names(x, b"^w"), names(x, b"y")
    x.fails(lib.xlac_step_create(step, s[0], 1, missing[0], 0, ffi.NULL, 0, ffi.NULL, x.err), 102)
    x.check(lib.xlac_step_create(step, s[0], 1, feeds[0], 2, fetches[0], 1, targets[0], x.err))
    name, dtype = ffi.new("const char **"), ffi.new("uint32_t *")
    assert lib.xlac_step_feed(step[0], 0, name, dtype) and x.text(name[0]) == "x"
    assert dtype[0] == lib.xlac_dtype_from_text(b"f32") and not lib.xlac_step_feed(step[0], 1, name, dtype)
    results = ffi.new("xlac_value *[2]")
    arg = x.array("f32", [2], struct.pack("2f", 1, 2))
    x.check(lib.xlac_step_run(step[0], ffi.NULL, ffi.new("xlac_value *[]", [arg]), results, x.err))
    assert x.floats(results[0]) == [2, 8] and x.floats(results[1]) == [2, 4]
    [lib.xlac_value_release(v) for v in results]
    report = given(x, lib.xlac_step_report, step[0])
    assert b'"compiles": 1' in report and b'"name": "cluster_0"' in report
    wrong = x.array("s32", [1], struct.pack("i", 1))
    x.fails(lib.xlac_step_run(step[0], ffi.NULL, ffi.new("xlac_value *[]", [wrong]), results, x.err), 501)
    value = ffi.new("xlac_value **")
    assert lib.xlac_session_variable_count(s[0]) == 1
    x.check(lib.xlac_session_variable(s[0], 0, name, value, x.err))
    assert x.text(name[0]) == "v" and x.floats(value[0]) == [1, 2]
    lib.xlac_value_release(value[0])
    x.fails(lib.xlac_session_variable(s[0], 1, name, value, x.err), 503)
    x.fails(lib.xlac_session_set_variable(s[0], b"v", wrong, x.err), 501)
    x.check(lib.xlac_session_set_variable(s[0], b"new", wrong, x.err))
    assert lib.xlac_session_variable_count(s[0]) == 2
    [lib.xlac_value_release(v) for v in (arg, wrong)]
    lib.xlac_step_destroy(step[0])
    lib.xlac_step_destroy(ffi.NULL)
    lib.xlac_session_destroy(s[0])
    lib.xlac_session_destroy(ffi.NULL)
    lib.xlac_clusters_destroy(c[0])
