"""HLO to StableHLO: jaxlib's own reader and verifier take the text, it gives the same values, and it comes back."""
import numpy as np
import pytest

import xlac

jax_ir = pytest.importorskip("jaxlib.mlir.ir")


@pytest.fixture(scope="module")
def jaxlib_reads():
    """jaxlib's parser, which verifies too."""
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, stablehlo

    registry = jax_ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = jax_ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    chlo.register_dialect(context)

    def read(text):
        with context:
            jax_ir.Module.parse(text)
    return read


def module(body, params="", head="", more=""):
    """An HLO module from the lines of its entry; p, q, ... are parameters of the given types."""
    lines = [f"{n} = {t} parameter({i})" for i, (n, t) in enumerate(zip("pqrstuvw", params.split(";")))] if params else []
    lines += [line.strip() for line in body.strip().split("\n")]
    lines[-1] = "ROOT " + lines[-1]
    return f"HloModule m{head}\n\n{more}\nENTRY e {{\n  " + "\n  ".join(lines) + "\n}\n"


ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"


def translated(text, jaxlib_reads, *args):
    """The StableHLO text: accepted by both readers, and with the values of the HLO, there and back again."""
    source = xlac.parse(text, format="hlo")
    stable = source.to_stablehlo()
    stable.verify()
    printed = stable.to_text()
    assert xlac.parse(printed, format="mlir").to_text() == printed
    jaxlib_reads(printed)
    back = stable.to_hlo()
    back.verify(xla_compat=True)
    if args:
        want = leaves(xlac.interpret(source, *args))
        for other in (stable, xlac.parse(back.to_text(), format="hlo")):
            got = leaves(xlac.interpret(other, *args))
            assert len(got) == len(want)
            for g, w in zip(got, want):
                np.testing.assert_array_equal(g, w)
                assert g.dtype == w.dtype
    return printed


def leaves(value):
    return [leaf for v in value for leaf in leaves(v)] if isinstance(value, tuple) else [np.asarray(value)]


# --- the module's facts ---

HEAD = """HloModule m, input_output_alias={ {1}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }, num_partitions=2, \
frontend_attributes={x="1"}, entry_computation_layout={(f32[4], f32[2,3]{0,1})->(f32[2,3]{0,1}, f32[4])}

ENTRY main {
  a = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  b = f32[2,3] parameter(1), frontend_attributes={y="2"}
  c = f32[4] add(a, a), metadata={op_name="jit(f)/add" source_file="f.py" source_line=7}
  ROOT r = (f32[2,3], f32[4]) tuple(b, c), sharding={{replicated}, {devices=[2]<=[2]}}
}
"""


def test_facts_of_the_module(jaxlib_reads):
    text = translated(HEAD, jaxlib_reads)
    assert 'module @m attributes {mhlo.frontend_attributes = {x = "1"}, mhlo.num_partitions = 2 : i32}' in text
    assert 'mhlo.sharding = "{devices=[2]<=[2]}", tf.aliasing_output = 1 : i32' in text
    assert '{jax.buffer_donor = true, mhlo.frontend_attributes = {y = "2"}, mhlo.layout_mode = "{0,1}"}' in text
    assert '(tensor<2x3xf32> {mhlo.layout_mode = "{0,1}", mhlo.sharding = "{replicated}"}' in text
    stable = xlac.parse(HEAD).to_stablehlo()
    located = stable.to_text(locations=True)
    assert '"jit(f)/add"' in located and '"f.py":7' in located
    again = stable.to_hlo().to_text()
    for part in ("input_output_alias={ {1}: (0, {}, may-alias) }", "buffer_donor={ (1, {}) }", 'frontend_attributes={x="1"}',
                 "{(f32[4]{0}, f32[2,3]{0,1})->(f32[2,3]{0,1}, f32[4]{0})}", 'frontend_attributes={y="2"}',
                 'metadata={op_name="jit(f)/add" source_file="f.py" source_line=7}',
                 "sharding={{replicated}, {devices=[2]<=[2]}}"):
        assert part in again, part


def test_lines_come_back_with_their_sign():
    """XLA's are signed, MLIR's are not."""
    text = "HloModule m\nENTRY e {\n  ROOT a = f32[4] parameter(0), metadata={source_file=\"f.py\" source_line=-32}\n}"
    again = xlac.parse(text).to_stablehlo().to_hlo().to_text()
    negate = xlac.parse(text.replace("ROOT a", "a").replace("\n}", "\n  ROOT n = f32[4] negate(a), metadata={source_file=\"f.py\" source_line=-32}\n}"))
    back = negate.to_stablehlo().to_hlo().to_text()
    assert "source_line=-32" in back and xlac.parse(back).to_text() == back and xlac.parse(again).to_text() == again


def test_tuples_of_the_entry_are_taken_apart(jaxlib_reads):
    text = translated(module("""
        a = f32[2] get-tuple-element(p), index=0
        b = (f32[2], s32[]) get-tuple-element(q), index=1
        c = (f32[2], (f32[2], s32[])) tuple(a, b)""", "(f32[2]);(f32[], (f32[2], s32[]))"), jaxlib_reads)
    assert "%arg3: tensor<i32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<i32>)" in text
    assert "tuple" not in text


def test_an_empty_tuple_is_no_result(jaxlib_reads):
    assert "-> " not in translated(module("e = () tuple()"), jaxlib_reads).split("main")[1]


def test_names_of_functions(jaxlib_reads):
    text = translated(module("""
        x = f32[] call(p), to_apply=main
        y = f32[] call(x), to_apply=a-b
        z = f32[] call(y), to_apply=a_b""", "f32[]", more="".join(
        f"{name} {{\n  x = f32[] parameter(0)\n  ROOT y = f32[] {op}(x)\n}}\n\n"
        for name, op in [("main", "sine"), ("a-b", "cosine"), ("a_b", "negate")])), jaxlib_reads, np.float32(0.5))
    assert [text.count(f"func.func {n}(") for n in ("public @main", "private @main_0", "private @a_b", "private @a_b_0")] == [1] * 4


# --- control flow ---

def test_while_and_conditional(jaxlib_reads):
    more = """
inner {
  x = (f32[2], f32[]) parameter(0)
  a = f32[2] get-tuple-element(x), index=0
  b = f32[] get-tuple-element(x), index=1
  c = f32[2] broadcast(b), dimensions={}
  d = f32[2] add(a, c)
  ROOT r = (f32[2], f32[]) tuple(d, b)
}

other {
  x = f32[2] parameter(0)
  b = f32[] constant(3)
  ROOT r = (f32[2], f32[]) tuple(x, b)
}

less {
  s = (s32[], (f32[2], f32[])) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT l = pred[] compare(i, n), direction=LT
}

step {
  s = (s32[], (f32[2], f32[])) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  v = (f32[2], f32[]) get-tuple-element(s), index=1
  w = f32[2] get-tuple-element(v), index=0
  two = s32[] constant(2)
  l = pred[] compare(i, two), direction=LT
  k = (f32[2], f32[]) conditional(l, v, w), true_computation=inner, false_computation=other
  h = (f32[2], f32[]) conditional(i, v, w, w), branch_computations={inner, other, other}
  a = f32[2] get-tuple-element(k), index=0
  b = f32[] get-tuple-element(h), index=1
  u = (f32[2], f32[]) tuple(a, b)
  ROOT r = (s32[], (f32[2], f32[])) tuple(j, u)
}
"""
    text = translated(module("""
        z = s32[] constant(0)
        u = (f32[2], f32[]) tuple(p, q)
        s = (s32[], (f32[2], f32[])) tuple(z, u)
        w = (s32[], (f32[2], f32[])) while(s), condition=less, body=step""", "f32[2];f32[]", more=more), jaxlib_reads,
                      np.array([1, 2], np.float32), np.float32(0.5))
    assert text.count("stablehlo.while(") == 1 and '"stablehlo.if"' in text and '"stablehlo.case"' in text
    assert "tuple" not in text


def test_shared_computations_do_not_blow_up():
    """Each computation calls the one before twice: as regions that would be 2**40 ops."""
    chain = "".join(f"""
c{i} {{
  x = f32[] parameter(0)
  p = pred[] constant(true)
  ROOT r = f32[] conditional(p, x, x), true_computation=c{i - 1}, false_computation=c{i - 1}
}}
""" for i in range(1, 41))
    text = module("y = f32[] call(p), to_apply=c40", "f32[]",
                  more="c0 {\n  x = f32[] parameter(0)\n  ROOT r = f32[] add(x, x)\n}\n" + chain)
    with pytest.raises(xlac.Error, match="too large"):
        xlac.parse(text).to_stablehlo()


def test_calls_fusions_composites(jaxlib_reads):
    more = """
f {
  a = (f32[2], f32[]) parameter(0)
  x = f32[2] get-tuple-element(a), index=0
  y = f32[] get-tuple-element(a), index=1
  ROOT r = (f32[], f32[2]) tuple(y, x)
}

g {
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  z = f32[2] multiply(x, y)
  ROOT r = (f32[2], f32[2]) tuple(z, x)
}

h {
  x = f32[2] parameter(0)
  ROOT r = f32[2] tanh(x)
}
"""
    source = module("""
        t = (f32[2], f32[]) tuple(p, q)
        c = (f32[], f32[2]) call(t), to_apply=f
        x = f32[2] get-tuple-element(c), index=1
        d = (f32[2], f32[2]) fusion(x, p), kind=kLoop, calls=g
        y = f32[2] get-tuple-element(d), index=0
        r = f32[2] call(y), to_apply=h, is_composite=true, frontend_attributes={composite.attributes="{n = 1 : i64, s = \\"q\\"}",composite.name="my.op",composite.version="2",k="v"}
        """, "f32[2];f32[]", more=more)
    text = translated(source, jaxlib_reads, np.array([1, 2], np.float32), np.float32(0.5))
    assert 'call @g(%0#1, %arg0) {mhlo.fusion_kind = "kLoop"}' in text
    assert "call @f(%arg0, %arg1) : (tensor<2xf32>, tensor<f32>) -> (tensor<f32>, tensor<2xf32>)" in text
    assert 'stablehlo.composite "my.op"' in text and "version = 2 : i32" in text and 's = "q"' in text
    assert 'mhlo.frontend_attributes = {k = "v"}' in text
    back = xlac.parse(source).to_stablehlo().to_hlo().to_text()
    assert "kind=kLoop" in back and "is_composite=true" in back and 'composite.version="2"' in back and 'k="v"' in back


# --- ops ---

SMALL = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
OPS = {  # body, parameters, a part of the text, arguments
    "erf": ("y = f32[2,3] erf(p)", "f32[2,3]", "chlo.erf", [SMALL]),
    "acos": ("y = f32[2,3] acos(p)", "f32[2,3]", "chlo.acos", [SMALL / 3]),
    "tan": ("y = f32[2,3] tan(p), result_accuracy={tolerance={atol=0.5,rtol=0,ulps=3}}", "f32[2,3]",
            "#stablehlo.result_accuracy<atol = 5.000000e-01, ulps = 3, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>", [SMALL]),
    "copy": ("y = f32[2,3] copy(p)", "f32[2,3]", "return %arg0", [SMALL]),
    "convert_complex": ("y = pred[2] convert(p)", "c64[2]", "stablehlo.or", [np.array([1j, 0], np.complex64)]),
    "compare": ("y = pred[2,3] compare(p, p), direction=GE, type=TOTALORDER", "f32[2,3]", "GE, %arg0, %arg0, TOTALORDER", [SMALL]),
    "compare_default": ("y = pred[2,3] compare(p, p), direction=LT, type=FLOAT", "f32[2,3]",
                        "compare LT, %arg0, %arg0 :", [SMALL]),
    "bitcast": ("y = f32[3,2]{0,1} bitcast(p)", "f32[2,3]", "stablehlo.transpose", [SMALL]),
    "bitcast_narrow": ("y = u8[24] bitcast(p)", "f32[2,3]", "stablehlo.bitcast_convert", [SMALL]),
    "bitcast_wide": ("y = u64[3] bitcast(p)", "f32[2,3]", "stablehlo.bitcast_convert", [SMALL]),
    "topk": ("y = (f32[2,2], s32[2,2]) topk(p), k=2, largest=true", "f32[2,3]", "chlo.top_k(%arg0, k = 2)", [SMALL]),
    "topk_smallest": ("y = (f32[2,2], s32[2,2]) topk(p), k=2, largest=false", "f32[2,3]",
                      "@mhlo.topk(%arg0) {mhlo.attributes = {k = 2 : i64, largest = false}, mhlo.version = 1 : i64}", [SMALL]),
    "stochastic_convert": ("y = bf16[2,3] stochastic-convert(p, q)", "f32[2,3];u32[2,3]", "@mhlo.stochastic_convert",
                           [SMALL, np.arange(6, dtype=np.uint32).reshape(2, 3)]),
    "domain": ('y = f32[2,3] domain(p), domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}', "f32[2,3]",
               "@mhlo.domain", [SMALL]),
    "rng_state": ("y = u64[2] rng-get-and-update-state(), delta=3", "", "has_side_effect = true", []),
    "rng": ("a = f32[] constant(0)\nb = f32[] constant(1)\ny = f32[2,3] rng(a, b), distribution=rng_uniform", "",
            "distribution = UNIFORM", None),
    "rng_bits": ("y = (u64[2], u32[5]) rng-bit-generator(p), algorithm=rng_philox", "u64[2]", "algorithm = PHILOX",
                 [np.array([1, 2], np.uint64)]),
    "rng_bits_alone": ("y = u32[5] rng-bit-generator(p), algorithm=rng_three_fry", "u64[2]", "return %output :", None),
    "dependency": ("t = token[] after-all()\ny = f32[2,3] add-dependency(p, t)", "f32[2,3]", "optimization_barrier", [SMALL]),
    "barrier": ("a = (f32[2,3], (f32[])) tuple(p, b)\ny = (f32[2,3], (f32[])) opt-barrier(a)", "f32[2,3]",
                "optimization_barrier %arg0, %", [SMALL]),
    "dot": ("y = f32[2,2] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
            "algorithm=dot_bf16_bf16_f32_x3", "f32[2,3]", "num_primitive_operations = 3", None),
    "convolution": ("y = f32[1,2,2] convolution(p, q), window={size=2 stride=1 pad=0_0 rhs_reversal=1}, dim_labels=0bf_0io->b0f",
                    "f32[3,1,2];f32[2,2,2]", "[0, b, f]x[0, i, o]->[b, 0, f]", None),
    "convolution_mixed": ("y = f32[1,2,2] convolution(p, q), window={size=2}, dim_labels=0bf_0io->b0f", "bf16[3,1,2];f32[2,2,2]",
                          "stablehlo.convert %arg0 : (tensor<3x1x2xbf16>) -> tensor<3x1x2xf32>", None),
    "set_dimension_size": ("n = s32[] constant(2)\ny = f32[2,<=3] set-dimension-size(p, n), dimensions={1}", "f32[2,3]",
                           "tensor<2x?xf32, #stablehlo.bounds<?, 3>>", None),
    "get_dimension_size": ("y = s32[] get-dimension-size(p), dimensions={1}", "f32[2,<=3]", "get_dimension_size %arg0, dim = 1", None),
    "dynamic_reshape": ("y = f32[<=6] dynamic-reshape(p, q)", "f32[2,3];s32[]", "stablehlo.dynamic_reshape", None),
    "elided": ("y = f32[100] constant({...})", "", "dense_resource<__elided__>", None),
    "constant_tuple": ("y = (f32[], (s32[2])) constant((1, ({2, 3})))", "", "dense<[2, 3]>", []),
    "sort": ("y = (f32[3], s32[3]) sort(p, q), dimensions={0}, is_stable=true, to_apply=lt", "f32[3];s32[3]", '"stablehlo.sort"',
             [np.array([2, 1, 3], np.float32), np.arange(3, dtype=np.int32)]),
    "copy_start": ("s = (f32[2,3], f32[2,3], u32[]) copy-start(p)\ny = f32[2,3] copy-done(s)", "f32[2,3]", "return %arg0", [SMALL]),
    "scan": ("y = (f32[3], f32[]) scan(p, q), dimensions={0}, num_carries=1, to_apply=running", "f32[3];f32[]", "chlo.scan",
             [np.array([2, 1, 3], np.float32), np.float32(1)]),
}
HELPERS = """b {
  ROOT z = f32[] constant(1)
}

lt {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=LT
}

running {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] add(a, b)
  ROOT t = (f32[], f32[]) tuple(c, c)
}
"""


@pytest.mark.parametrize("name", OPS)
def test_ops(name, jaxlib_reads):
    body, params, part, args = OPS[name]
    if name == "barrier":
        body = "b0 = f32[] constant(1)\nb = (f32[]) tuple(b0)\n" + body
    text = module(body, params, more=HELPERS)
    assert part in (translated(text, jaxlib_reads) if args is None else translated(text, jaxlib_reads, *args))


# --- collectives and the host ---

COLLECTIVES = {
    "all_reduce": ("y = (f32[2,3], f32[2]) all-reduce(p, q), replica_groups={{0,1},{2,3}}, to_apply=add", "f32[2,3];f32[2]",
                   "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"),
    "iota": ("y = f32[2,3] all-reduce(p), replica_groups=[2,2]<=[2,2]T(1,0), channel_id=3, use_global_device_ids=true, to_apply=add",
             "f32[2,3]", "channel_handle = #stablehlo.channel_handle<handle = 3, type = 0>, replica_groups = dense<[[0, 2], [1, 3]]>"),
    "uneven": ("y = f32[2,3] all-reduce(p), replica_groups={{0,1,2},{3}}, to_apply=add", "f32[2,3]", "dense<[[0, 1, 2], [3, -1, -1]]>"),
    "all_gather": ("y = f32[4,3] all-gather(p), replica_groups={{0,1},{2,3}}, dimensions={0}", "f32[2,3]", "all_gather_dim = 0"),
    "reduce_scatter": ("y = (f32[1,3], f32[1]) reduce-scatter(p, q), replica_groups={{0,1},{2,3}}, dimensions={0}, to_apply=add",
                       "f32[2,3];f32[2]", "scatter_dimension = 0"),
    "all_to_all": ("y = f32[2,3] all-to-all(p), replica_groups={{0,1},{2,3}}, dimensions={0}", "f32[2,3]", "split_count = 2"),
    "all_to_all_tuple": ("y = (f32[2,3], f32[2,3]) all-to-all(p, q), replica_groups={{0,1},{2,3}}", "f32[2,3];f32[2,3]",
                         "split_count = 2"),
    "permute": ("y = (f32[2,3], f32[]) collective-permute(p, q), source_target_pairs={{0,1},{1,0}}", "f32[2,3];f32[]",
                "dense<[[0, 1], [1, 0]]>"),
    "broadcast": ("y = f32[2,3] collective-broadcast(p), replica_groups={{0,1,2,3}}", "f32[2,3]", "collective_broadcast"),
    "gather_start": ("s = (f32[2,3], f32[8,3]) all-gather-start(p), dimensions={0}, replica_groups={{0,1,2,3}}\n"
                     "y = f32[8,3] all-gather-done(s)", "f32[2,3]", "all_gather_dim = 0"),
    "reduce_start": ("s = f32[2,3] all-reduce-start(p), to_apply=add\ny = f32[2,3] all-reduce-done(s)", "f32[2,3]", "all_reduce"),
    "permute_start": ("s = (f32[2,3], f32[2,3], u32[], u32[]) collective-permute-start(p), source_target_pairs={{0,1}}\n"
                      "y = f32[2,3] collective-permute-done(s)", "f32[2,3]", "collective_permute"),
    "ragged": ("y = f32[4] ragged-all-to-all(p, q, r, s, t, u), replica_groups={{0,1}}, channel_id=1",
               "f32[4];f32[4];s32[2];s32[2];s32[2];s32[2]", "@ragged_all_to_all"),
    "infeed": ("t = token[] after-all()\ny = ((f32[2,3], s32[]), token[]) infeed(t), infeed_config=\"x\"", "",
               'infeed_config = "x", layout = [[1, 0], []]'),
    "outfeed": ("t = token[] after-all()\na = (f32[2,3], f32[]) tuple(p, q)\n"
                "y = token[] outfeed(a, t), outfeed_shape=(f32[2,3], f32[])", "f32[2,3];f32[]", '"stablehlo.outfeed"(%arg0, %arg1, %0)'),
    "send": ("t = token[] after-all()\ns = (f32[2,3], u32[], token[]) send(p, t), channel_id=2, is_host_transfer=true\n"
             "y = token[] send-done(s), channel_id=2, is_host_transfer=true", "f32[2,3]", "handle = 2, type = 2"),
    "recv": ("t = token[] after-all()\ns = (f32[2,3], u32[], token[]) recv(t), channel_id=2\n"
             "d = (f32[2,3], token[]) recv-done(s), channel_id=2\ny = f32[2,3] get-tuple-element(d), index=0", "",
             "handle = 2, type = 1"),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(name, jaxlib_reads):
    body, params, part = COLLECTIVES[name]
    text = translated(module(body, params, head=", replica_count=4", more=ADD), jaxlib_reads)
    assert part in text and "tuple" not in text


def test_an_all_to_all_of_tuples_moves_the_parts():
    source = xlac.parse(module("y = (s32[3], s32[3]) all-to-all(p, q), replica_groups={{0,1}}", "s32[3];s32[3]", head=", replica_count=2"))
    first, second = ([np.arange(3, dtype=np.int32) + 10 * i + j for j in (0, 100)] for i in range(2))
    for m in (source, source.to_stablehlo()):
        results = xlac.run_parallel(m, [tuple(first), tuple(second)])
        np.testing.assert_array_equal(results, [[first[0], second[0]], [first[1], second[1]]])


# --- custom calls ---

def test_custom_calls(jaxlib_reads):
    source = module("""
        a = (f32[2,3]{0,1}, s32[]) custom-call(p), custom_call_target="t", operand_layout_constraints={f32[2,3]{0,1}}, custom_call_has_side_effect=true, output_to_operand_aliasing={{0}: (0, {})}, called_computations={add}, api_version=API_VERSION_TYPED_FFI, backend_config={n = 1 : i32}
        b = f32[2,3]{0,1} get-tuple-element(a), index=0
        c = (f32[2,3]) custom-call(b), custom_call_target="one", backend_config="raw", schedule=SCHEDULE_LATEST
        d = f32[2,3] get-tuple-element(c), index=0""", "f32[2,3]", more=ADD)
    text = translated(source, jaxlib_reads)
    for part in ("has_side_effect = true", "operand_layouts = [dense<[0, 1]> : tensor<2xindex>]", "called_computations = [@add]",
                 "result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]", "backend_config = {n = 1 : i32}",
                 "output_tuple_indices = [0], operand_index = 0", "-> (tensor<2x3xf32>, tensor<i32>)", "-> tuple<tensor<2x3xf32>>",
                 'backend_config = "raw"', "get_tuple_element", "api_version = 4 : i32", 'mhlo.schedule = "SCHEDULE_LATEST"'):
        assert part in text, part
    back = xlac.parse(source).to_stablehlo().to_hlo().to_text()
    for part in ("operand_layout_constraints={f32[2,3]{0,1}}", "(f32[2,3]{0,1}, s32[]) custom-call", "schedule=SCHEDULE_LATEST",
                 "output_to_operand_aliasing={{0}: (0, {})}", "backend_config={n = 1 : i32}"):
        assert part in back, part


def test_a_function_with_other_callers_is_no_fusion():
    text = """func.func @main(%arg0: tensor<f32>) -> tensor<f32> {
  %0 = call @f(%arg0) {mhlo.fusion_kind = "kLoop"} : (tensor<f32>) -> tensor<f32>
  %1 = call @g(%0) {mhlo.fusion_kind = "kLoop"} : (tensor<f32>) -> tensor<f32>
  %2 = call @f(%1) : (tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}
func.func private @f(%arg0: tensor<f32>) -> tensor<f32> { return %arg0 : tensor<f32> }
func.func private @g(%arg0: tensor<f32>) -> tensor<f32> { return %arg0 : tensor<f32> }
"""
    module = xlac.parse(text).to_hlo()
    module.verify()
    assert [i.opcode for i in module.entry.instructions if i.opcode in ("call", "fusion")] == ["call", "fusion", "call"]


def test_encoded_ops_are_checked_when_they_come_back():
    text = """func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {{
  %0 = stablehlo.custom_call @mhlo.{} {{mhlo.attributes = {{{}}}}} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}}"""
    for op, attrs, message in [("topk(%arg0)", "k = 1 : i64", "operands and attributes give"), ("stochastic_convert(%arg0)", "", "operands"),
                               ("topk(%arg0)", "size = 1 : i64, largest = true", "size"),
                               ("topk(%arg0)", "largest = true", "without its attribute k")]:
        with pytest.raises(xlac.Error, match=message) as caught:
            xlac.interpret(xlac.parse(text.format(op, attrs)), np.zeros(2, np.float32))
        assert caught.value.line == 2
    assert "custom-call" in xlac.parse(text.format("while(%arg0)", "")).to_hlo().to_text()  # no op of the table: a mere name


# --- refusals ---

REFUSED = {
    "opaque": ("y = opaque[] custom-call(), custom_call_target=\"x\"", "", "no type for opaque"),
    "permute": ("y = f32[4,8] collective-permute(p, q, r, s), source_target_pairs={{0,1}}, slice_sizes={{2,8}}",
                "f32[2,8];f32[4,8];(s32[], s32[]);(s32[], s32[])", "no collective-permute of slices"),
    "layouts": ("y = f32[2] custom-call(p), custom_call_target=\"x\", operand_layout_constraints={(f32[2]{0})}", "(f32[2])",
                "no tiles, memory spaces, nested tuples"),
    "config": ("y = f32[2] custom-call(p), custom_call_target=\"x\", api_version=API_VERSION_TYPED_FFI, backend_config=\"{\"",
               "f32[2]", "not an MLIR dictionary"),
    "composite": ("y = f32[] call(p, p), to_apply=add, is_composite=true, frontend_attributes={composite.attributes=\"{\","
                  "composite.name=\"a.b\",composite.version=\"1\"}", "f32[]", "composite.attributes is not a dictionary"),
    "tiled_bitcast": ("y = f32[2,4]{1,0:T(2,2)} bitcast(p)", "f32[8]", "no bitcast between tiled layouts"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_where_and_why(name):
    body, params, message = REFUSED[name]
    text = module(body, params, head=", replica_count=2", more=ADD)
    with pytest.raises(xlac.Error, match=message) as caught:
        xlac.parse(text).to_stablehlo()
    assert text.split("\n")[caught.value.line - 1].startswith("  ROOT y = ") and caught.value.op == "y"


def test_forms():
    with pytest.raises(xlac.Error, match="already"):
        xlac.parse("func.func @main() { return }").to_stablehlo()
    stable = xlac.parse(module("y = f32[] add(p, p)", "f32[]"))
    assert stable.form == "hlo" and stable.to_stablehlo().form == "mlir"
    assert stable.to_text("mlir") == stable.to_stablehlo().to_text()
    assert stable.to_stablehlo().to_bytes("mlir-bytecode")[:4] == b"ML\xefR"


@pytest.mark.parametrize("start, want", [
    ("((f32[8]), f32[4], s32[]) slice-start(p), slice={[0:8:2]}, sharding={{replicated}, {maximal device=1}, {manual}}", "{maximal device=1}"),
    ("((f32[8]), f32[4], s32[]) slice-start(p), slice={[0:8:2]}, sharding={replicated}", "{replicated}")])
def test_only_the_outcome_of_an_async_start_keeps_a_sharding(start, want):
    m = xlac.parse(module(f"a = {start}\nb = f32[4] slice-done(a)", "f32[8]"))
    stable = m.to_stablehlo()
    assert f'mhlo.sharding = "{want}"' in stable.to_text()
    stable.to_hlo().verify()


@pytest.mark.parametrize("layout", ["(f32[6,4]{1,0}, f32[6,4]{1,0})->f32[6,4]{0,1}", "()->f32[6,4]{0,1}", "(f32[6,4]{0,1})->(f32[6,4]{0,1}, f32[])"])
def test_a_header_of_another_program_is_left_out(layout):
    """XLA's parser keeps any entry_computation_layout, and so does verify(xla_compat=True)."""
    m = xlac.parse(f"HloModule m, entry_computation_layout={{{layout}}}\nENTRY e {{ a = f32[6,4] parameter(0)\n ROOT b = f32[6,4] negate(a) }}")
    m.verify(xla_compat=True)
    stable = m.to_stablehlo()
    stable.verify()
    assert "layout_mode" not in stable.to_text()


@pytest.mark.parametrize("types", [("f32[3,2]", "f32[]"), ("f32[]", "f32[3,2]"), ("f32[3,2]", "f32[3,2]")])
def test_a_map_with_a_scalar_beside_an_array_broadcasts_it(types, jaxlib_reads):
    module = xlac.parse(f"""HloModule m
f {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] subtract(a, b)
}}
ENTRY e {{
  x = {types[0]} parameter(0)
  y = {types[1]} parameter(1)
  ROOT r = f32[3,2] map(x, y), dimensions={{0,1}}, to_apply=f
}}""")
    args = [np.full((3, 2) if "[3" in t else (), i + 2.5, np.float32) for i, t in enumerate(types)]
    translated = module.to_stablehlo()
    jaxlib_reads(translated.to_text())
    assert translated.to_text().count("broadcast_in_dim") == types.count("f32[]")
    assert np.array_equal(xlac.interpret(translated, *args), xlac.interpret(module, *args))
    assert np.array_equal(xlac.interpret(translated.to_hlo(), *args), np.full((3, 2), -1, np.float32))
