"""Clustered TensorFlow graphs from C."""
GRAPH = b"""node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "p" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } } }
node { name: "s" op: "Switch" input: "x" input: "p" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "a" op: "Relu" input: "s:1" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "b" op: "Tanh" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }
node { name: "w" op: "AssignVariableOp" input: "v" input: "x" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "r" op: "ReadVariableOp" input: "v" input: "^w" attr { key: "dtype" value { type: DT_FLOAT } } }
"""


def given(x, call, *args):
    text, n = x.ffi.new("char **"), x.ffi.new("size_t *")
    x.check(call(*args, text, n, x.err))
    data = bytes(x.ffi.buffer(text[0], n[0]))
    x.lib.xlac_free(text[0])
    return data


def test_a_graph_is_clustered(x):
    lib, ffi = x.lib, x.ffi
    flags, out = ffi.new("xlac_cluster_flags *"), ffi.new("xlac_clusters **")
    lib.xlac_cluster_flags_init(flags)
    assert (flags.min_cluster_size, flags.max_cluster_size, flags.cpu_global_jit) == (4, 2**31 - 1, True)
    flags.min_cluster_size = 2
    flags.partially_decluster = True
    x.check(lib.xlac_cluster_graph(out, GRAPH, len(GRAPH), lib.XLAC_GRAPH_AUTO, flags, x.err))
    c, node, edge = out[0], ffi.new("xlac_clustered_node *"), ffi.new("xlac_graph_edge *")
    rows, edges = {}, 0
    while lib.xlac_clusters_node(c, len(rows), node):
        rows[x.text(node.name)] = (len(rows), node.cluster != ffi.NULL and x.text(node.cluster), node.candidate, node.deadness)
    while lib.xlac_clusters_edge(c, edges, edge):
        edges += 1
    assert edges == 14 and list(rows)[:2] == ["_SOURCE", "_SINK"]
    assert rows["a"][1:3] == ("cluster_0", True) and rows["a"][1] == rows["b"][1] and not rows["x"][2]
    assert rows["a"][3] == rows["b"][3] != rows["x"][3]
    assert given(x, lib.xlac_clusters_deadness, c, rows["a"][0]) == b"*p:0"
    times = ffi.new("xlac_cluster_times *")
    lib.xlac_clusters_times(c, times)
    assert min(times.read_seconds, times.import_seconds, times.cluster_seconds) > 0
    pairs, n = ffi.new("uint32_t **"), ffi.new("size_t *")
    x.check(lib.xlac_clusters_unsafe_pairs(c, pairs, n, x.err))
    assert [pairs[0][i] for i in range(2 * n[0])] == [rows["w"][0], rows["r"][0]]
    lib.xlac_free(pairs[0])
    assert b"no kernel" in given(x, lib.xlac_clusters_why, c, b"s")
    assert b"would change places" in given(x, lib.xlac_clusters_why_not, c, b"w", b"r")
    assert given(x, lib.xlac_clusters_write, c, lib.XLAC_GRAPH_TEXT).count(b'"_XlaCluster"') == 2
    assert b'"cluster_0/b"' in given(x, lib.xlac_clusters_write_annotated, c, lib.XLAC_GRAPH_TEXT)
    assert b'"_XlaCompiledKernel"' in given(x, lib.xlac_clusters_write_encapsulated, c, lib.XLAC_GRAPH_TEXT)
    text, size = ffi.new("char **"), ffi.new("size_t *")
    x.fails(lib.xlac_clusters_write_annotated(c, 9, text, size, x.err), 503)
    x.fails(lib.xlac_clusters_write_encapsulated(c, 9, text, size, x.err), 503)
    x.fails(lib.xlac_clusters_why(c, b"nobody", text, size, x.err), 102)
    x.fails(lib.xlac_clusters_write(c, 9, text, size, x.err), 503)
    x.fails(lib.xlac_clusters_deadness(c, 99, text, size, x.err), 503)
    lib.xlac_clusters_destroy(c)
    lib.xlac_clusters_destroy(ffi.NULL)


def test_conversions_and_errors(x):
    lib = x.lib
    data = given(x, lib.xlac_graph_convert, GRAPH, len(GRAPH), lib.XLAC_GRAPH_TEXT, lib.XLAC_GRAPH_PROTO)
    text = given(x, lib.xlac_graph_convert, data, len(data), lib.XLAC_GRAPH_PROTO, lib.XLAC_GRAPH_TEXT)
    assert given(x, lib.xlac_graph_convert, text, len(text), lib.XLAC_GRAPH_TEXT, lib.XLAC_GRAPH_PROTO) == data
    out = x.ffi.new("xlac_clusters **")
    x.fails(lib.xlac_cluster_graph(out, data[:-3], len(data) - 3, lib.XLAC_GRAPH_PROTO, x.ffi.NULL, x.err), 110)
    bad = b"node { name: 'a' op: 'Relu' input: 'b' }"
    x.fails(lib.xlac_cluster_graph(out, bad, len(bad), lib.XLAC_GRAPH_TEXT, x.ffi.NULL, x.err), 102)
    assert out[0] == x.ffi.NULL
    assert given(x, lib.xlac_cluster_op_list).count(b"\n") == 489


def test_registered_devices(x):
    lib, ffi = x.lib, x.ffi
    flags, out = ffi.new("xlac_cluster_flags *"), ffi.new("xlac_clusters **")
    lib.xlac_cluster_flags_init(flags)
    row = ffi.new("xlac_device_registration *")
    kind, compiles = ffi.new("char[]", b"CPU"), ffi.new("char[]", b"XLA_CPU_JIT")
    row.type, row.compilation_device, row.autoclustering_policy = kind, compiles, lib.XLAC_CLUSTER_ALWAYS
    flags.global_jit_level, flags.min_cluster_size, flags.devices, flags.n_devices = -1, 2, row, 1
    x.check(lib.xlac_cluster_graph(out, GRAPH, len(GRAPH), lib.XLAC_GRAPH_AUTO, flags, x.err))
    assert given(x, lib.xlac_clusters_write, out[0], lib.XLAC_GRAPH_TEXT).count(b'"_XlaCluster"') == 2
    lib.xlac_clusters_destroy(out[0])
    types = []
    while lib.xlac_cluster_device(len(types), row):
        types.append(x.text(row.type))
    assert types == ["CPU", "GPU", "XLA_CPU", "XLA_GPU"] and row.cluster_slow_ops and x.text(row.compilation_device) == "XLA_GPU_JIT"
    for broken in ("type", "compilation_device"):
        row.type, row.compilation_device = kind, compiles
        setattr(row, broken, ffi.NULL)
        x.fails(lib.xlac_cluster_graph(out, GRAPH, len(GRAPH), lib.XLAC_GRAPH_AUTO, flags, x.err), 503)
