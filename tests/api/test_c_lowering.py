"""TensorFlow graphs as modules, from C."""
import json

GRAPH = b"""node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }
node { name: "w" op: "AssignAddVariableOp" input: "v" input: "x" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "Tanh" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "z" op: "Where" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
"""


def lowered(x, inputs, fetches, graph=GRAPH, format=0):
    ffi, lib = x.ffi, x.lib
    rows = ffi.new("xlac_graph_input[]", len(inputs))
    kept = []
    for row, (name, dims, variable, rank) in zip(rows, inputs):
        kept += [ffi.new("char[]", name), ffi.new("int64_t[]", dims or [0])]
        row.tensor, row.dims = kept[-2:]
        row.dtype, row.rank, row.variable = lib.xlac_dtype_from_text(b"f32"), rank, variable
    names = [ffi.new("char[]", f) for f in fetches]
    out, report, n = ffi.new("xlac_module **"), ffi.new("char **"), ffi.new("size_t *")
    status = lib.xlac_graph_lower(out, graph, len(graph), format, len(inputs), rows, len(names), ffi.new("char *[]", names), report, n, x.err)
    return status, out, report, n


def test_a_graph_is_lowered(x):
    status, out, report, n = lowered(x, [(b"x", [2], False, 1), (b"v", [2], True, 1)], [b"y"])
    x.check(status)
    text = x.take(report[0])
    assert len(text) == n[0] and json.loads(text) == {"parameters": ["x", "v"], "results": ["y"], "updates": ["v"]}
    assert x.lib.xlac_module_is_mlir(out[0])
    x.check(x.lib.xlac_module_verify(out[0], x.ffi.NULL, x.err))
    x.lib.xlac_module_destroy(out[0])


def test_what_can_not_be_lowered(x):
    one = [(b"x", [2], False, 1), (b"v", [2], True, 1)]
    x.fails(lowered(x, one, [b"z"])[0], 702)
    x.fails(lowered(x, one, [b"nobody"])[0], 102)
    x.fails(lowered(x, [(b"x", [-1], False, 1)], [b"y"])[0], 503)
    x.fails(lowered(x, [(b"x", [1] * 40, False, 40)], [b"y"])[0], 503)
    x.fails(lowered(x, one, [b"y"], GRAPH[:50])[0], 100)
    x.fails(lowered(x, one, [b"y"], format=7)[0], 503)
    assert x.lib.xlac_graph_has_lowering(b"Tanh") and not x.lib.xlac_graph_has_lowering(b"Where")
