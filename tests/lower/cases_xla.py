"""Cases of XLA's own ops, whose numbers are from functions that TensorFlow compiles with XLA, and of uniformly quantised numbers. For
record.py: `python tests/lower/record.py xla.jsonl.xz cases_xla`."""
import re

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.ops import gen_tpu_ops
from record import v1

RNG = np.random.default_rng(4)
F32 = np.float32


class Raw:
    """Ops by their names, as keyword functions, wherever TensorFlow keeps them."""

    def __getattr__(self, op):
        name = "_".join(re.findall(r"[A-Z]+(?![a-z])\d*|[A-Z][a-z]+", op)).lower()
        for module, key in ((tf.raw_ops, op), (gen_xla_ops, name), (gen_tpu_ops, name)):
            if hasattr(module, key):
                return getattr(module, key)
        raise AttributeError(f"{op}, {name}")


raw = Raw()


def real(*shape, dtype=F32, low=-2.0, high=2.0):
    return RNG.uniform(low, high, shape).astype(dtype)


def message(**fields):
    """Lists of small numbers by field, as protocol buffers write them."""
    out = b""
    for name, values in fields.items():
        for v in values if isinstance(values, (list, tuple)) else [values]:
            out += bytes([int(name[1:]) << 3, v])
    return out


class Xla:
    def __init__(self, recorder):
        self.recorder = recorder

    def __call__(self, name, build, *arrays, wanted=None):
        """build(tensors...) gives tensors."""
        wanted = wanted or tf.function(build, jit_compile=True, autograph=False)(*map(tf.constant, arrays))
        wanted = [np.asarray(w) for w in (wanted if isinstance(wanted, (list, tuple)) else [wanted])]
        with v1.Graph().as_default() as g:
            feeds = [v1.placeholder(tf.as_dtype(a.dtype), a.shape, name=f"in{i}") for i, a in enumerate(arrays)]
            found = build(*feeds)
            found = list(found) if isinstance(found, (list, tuple)) else [found]
            graph = g.as_graph_def().SerializeToString()
        self.recorder.put(name, graph, {f"in{i}": a for i, a in enumerate(arrays)}, [t.name for t in found], wanted)


def function(f, *types):
    return tf.function(f, autograph=False).get_concrete_function(*(tf.TensorSpec([], t) for t in types))


def products(x):
    numbers = message(f1=[2], f2=[1], f3=[0], f4=[0])
    a, b = real(2, 3, 4), real(2, 4, 5)
    x("XlaDot", lambda a, b: raw.XlaDot(lhs=a, rhs=b, dimension_numbers=numbers, precision_config=b""), a, b)
    x("XlaDotV2", lambda a, b: raw.XlaDotV2(lhs=a, rhs=b, dimension_numbers=numbers, precision_config=b"", preferred_element_type=tf.float64), a, b)
    x("XlaEinsum", lambda a, b: raw.XlaEinsum(a=a, b=b, equation="bij,bjk->ikb"), a, b)
    dims = message(f7=0, f8=3, f11=[1, 2], f3=2, f4=3, f6=[0, 1], f9=0, f10=3, f12=[1, 2])
    image, kernel = real(2, 6, 5, 4), real(3, 2, 2, 6)
    more = {"window_strides": [2, 1], "padding": [[1, 1], [0, 2]], "lhs_dilation": [1, 2], "rhs_dilation": [1, 2], "feature_group_count": 2,
            "dimension_numbers": dims, "precision_config": b""}
    x("XlaConv", lambda a, b: raw.XlaConv(lhs=a, rhs=b, **more), image, kernel)
    x("XlaConvV2", lambda a, b: raw.XlaConvV2(lhs=a, rhs=b, batch_group_count=1, preferred_element_type=tf.float32, **more), image, kernel)


def moves(x):
    a = real(4, 5)
    x("XlaPad", lambda a: raw.XlaPad(input=a, padding_value=7.0, padding_low=[1, -1], padding_high=[0, 2], padding_interior=[2, 1]), a)
    start = np.array([3, 1], np.int32)
    x("XlaDynamicSlice", lambda a, s: raw.XlaDynamicSlice(input=a, start_indices=s, size_indices=[2, 3]), a, start)
    x("XlaDynamicUpdateSlice", lambda a, u, s: raw.XlaDynamicUpdateSlice(input=a, update=u, indices=s), a, real(2, 3), start)
    x("XlaSort", lambda a: raw.XlaSort(input=a), a)
    keys = np.array([[3, 1, 2, 1], [0, 5, 5, 1]], np.int32)
    x("XlaKeyValueSort", lambda k, v: list(raw.XlaKeyValueSort(keys=k, values=v)), keys, real(2, 4))
    x("XlaReducePrecision", lambda a: raw.XlaReducePrecision(operand=a, exponent_bits=5, mantissa_bits=3), a)
    x("XlaOptimizationBarrier", lambda a, b: list(raw.XlaOptimizationBarrier(input=[a, b])), a, start)
    x("XlaBroadcastHelper", lambda a, b: list(raw.XlaBroadcastHelper(lhs=a, rhs=b, broadcast_dims=[0])), a, real(4))
    x("XlaReplicaId", lambda a: raw.XlaReplicaId() + a, np.array(3, np.int32), wanted=[np.array(3, np.int32)])  # TensorFlow crashes
    x("XlaSharding", lambda a: raw.XlaSharding(input=a, sharding=""), a)
    x("XlaSetBound", lambda a: raw.XlaSetBound(input=a, bound=9) + 1, np.array(3, np.int32))
    x("XlaConcatND", lambda a, b, c, d: raw.XlaConcatND(inputs=[a, b, c, d], num_concats=[2, 2], paddings=[1, 0]), *(real(2, 3) for _ in range(4)))
    x("XlaSplitND", lambda a: list(raw.XlaSplitND(input=a, N=6, num_splits=[2, 3], paddings=[0, 1])), a)


def regions(x):
    a, f = real(3, 4, 5), tf.float32
    add = function(lambda a, b: a + b, f, f)
    most = function(lambda a, b: tf.maximum(a, b * 0.5), f, f)
    x("XlaReduce", lambda a: raw.XlaReduce(input=a, init_value=0.5, dimensions_to_reduce=[0, 2], reducer=add), a)
    both = function(lambda a, b, c, d: (a + c, b * d), f, f, f, f)
    x("XlaVariadicReduce", lambda a, b: list(raw.XlaVariadicReduce(input=[a, b], init_value=[0.5, 2.0], dimensions_to_reduce=[1], reducer=both)), a, a + 1)
    mixed = function(lambda v, i, w, j: (tf.where(v > w, v, w), tf.where(v > w, i, j)), f, tf.int32, f, tf.int32)
    places = np.arange(60, dtype=np.int32).reshape(3, 4, 5)
    x("XlaVariadicReduceV2", lambda a, i: list(raw.XlaVariadicReduceV2(inputs=[a, i], init_values=[-9.0, -1], dimensions_to_reduce=[2], reducer=mixed)), a, places)
    window = {"window_dimensions": [1, 2, 2], "window_strides": [1, 2, 1], "padding": [[0, 0], [1, 0], [0, 1]]}
    x("XlaReduceWindow", lambda a: raw.XlaReduceWindow(input=a, init_value=-1.0, base_dilations=[1, 1, 2], window_dilations=[1, 2, 1], computation=most, **window), a)
    ge = function(lambda a, b: a >= b, f, f)
    plain = {"window_dimensions": [1, 2, 2], "window_strides": [1, 2, 2], "padding": [[0, 0], [0, 0], [0, 1]]}
    x("XlaSelectAndScatter", lambda a, s: raw.XlaSelectAndScatter(operand=a, source=s, init_value=0.0, select=ge, scatter=add, **plain), a, real(3, 2, 3))
    greater = function(lambda a, b, i, j: a > b, f, f, tf.int32, tf.int32)
    x("XlaVariadicSort", lambda a, i: list(raw.XlaVariadicSort(inputs=[a, i], dimension=tf.constant(1), comparator=greater, is_stable=True)), a, places)
    at = np.array([[0, 1], [2, 3], [1, 0], [2, 2]], np.int32)
    one = message(f1=[1, 2], f2=[0], f3=[0, 2], f4=1)
    x("XlaGather", lambda a, i: raw.XlaGather(operand=a, start_indices=i, slice_sizes=[1, 4, 2], dimension_numbers=one, indices_are_sorted=False), a, at)
    x("XlaScatter", lambda a, i, u: raw.XlaScatter(operand=a, scatter_indices=i, updates=u, update_computation=add, indices_are_sorted=False,
                                                 dimension_numbers=message(f1=[1, 2], f2=[0], f3=[0, 2], f4=1)), a, at, real(4, 4, 2))
    count, vector = tf.TensorSpec([], tf.int32), tf.TensorSpec([4], tf.float32)
    cond = tf.function(lambda i, v: i < 5, autograph=False).get_concrete_function(count, vector)
    body = tf.function(lambda i, v: (i + 1, v * 1.5 + tf.cast(i, tf.float32)), autograph=False).get_concrete_function(count, vector)
    x("XlaWhile", lambda i, v: list(raw.XlaWhile(input=[i, v], cond=cond, body=body)), np.array(1, np.int32), real(4))
    then = tf.function(lambda v: v * 2, autograph=False).get_concrete_function(vector)
    other = tf.function(lambda v: v - 1, autograph=False).get_concrete_function(vector)

    def choice(p, v):
        for branch in (then, other):
            branch.add_to_graph()
        return list(raw.XlaIf(cond=p, inputs=[v], then_branch=then, else_branch=other, Tout=[tf.float32]))

    v = real(4)
    for p in (False, True):  # tf.function does not find the branches
        x(f"XlaIf/{p}", choice, np.array(p), v, wanted=[v * 2 if p else v - 1])


def decompositions(x):
    a = real(2, 5, 5)

    def eigen(a):
        e, v = raw.XlaSelfAdjointEig(a=a, lower=True, max_iter=100, epsilon=1e-6)
        return [e, tf.matmul(v * e[..., None, :], v, transpose_b=True)]

    def svd(a):
        s, u, v = raw.XlaSvd(a=a, max_iter=100, epsilon=1e-6, precision_config=b"")
        return [s, tf.matmul(u[..., :3] * s[..., None, :], v[..., :3], transpose_b=True)]

    x("XlaSelfAdjointEig", eigen, a)
    x("XlaSvd", svd, real(2, 6, 3))


def uniform(r):
    """Steps of powers of two, so that nothing lies between two whole numbers by rounding alone."""
    x = real(3, 4, low=-9, high=9)
    side = {"quantization_min_val": -128, "quantization_max_val": 127}
    lists = [0.125, 0.25, 0.5, 0.0625], [1, -3, 0, 7]

    def quantize(v, scales=0.125, zeros=3, axis=-1, t=tf.qint8):
        return raw.UniformQuantize(input=v, scales=tf.constant(scales), zero_points=tf.constant(zeros), Tout=t, quantization_axis=axis, **side)

    def dequantize(q, scales=0.125, zeros=3, axis=-1):
        return raw.UniformDequantize(input=q, scales=tf.constant(scales), zero_points=tf.constant(zeros), Tout=tf.float32, quantization_axis=axis, **side)

    for name, more in (("all", {}), ("axis", {"scales": lists[0], "zeros": lists[1], "axis": 1})):
        r.graph(f"UniformQuantize/{name}", lambda v, more=more: raw.Bitcast(input=quantize(v, **more), type=tf.int8), [x])
        r.graph(f"UniformDequantize/{name}", lambda v, more=more: dequantize(quantize(v, **more), **more), [x])
    wide = {"output_quantization_min_val": -2**31, "output_quantization_max_val": 2**31 - 1, "output_quantization_axis": -1}
    outer = {"output_quantization_min_val": -128, "output_quantization_max_val": 127, "output_quantization_axis": -1}
    inner = {"input_quantization_min_val": -128, "input_quantization_max_val": 127, "input_quantization_axis": -1}

    def requantize(v):
        q = raw.UniformRequantize(input=quantize(v), input_scales=0.125, input_zero_points=3, output_scales=0.25, output_zero_points=-4, Tout=tf.qint8, **outer, **inner)
        return raw.Bitcast(input=q, type=tf.int8)

    r.graph("UniformRequantize", requantize, [x])
    sides = {f"{s}_{k}": v for s in ("lhs", "rhs") for k, v in {**side, "quantization_axis": -1}.items()}

    def dot(a, b):
        q = raw.UniformQuantizedDot(lhs=quantize(a), rhs=quantize(b, 0.25, 0), lhs_scales=0.125, lhs_zero_points=3, rhs_scales=0.25, rhs_zero_points=0,
                                    output_scales=0.03125, output_zero_points=5, Tout=tf.qint32, **sides, **wide)
        return raw.Bitcast(input=q, type=tf.int32)

    r.graph("UniformQuantizedDot", dot, [x, real(4, 2, low=-9, high=9)])
    whole = {"quantization_min_val": -2**31, "quantization_max_val": 2**31 - 1}
    sides = {f"{s}_{k}": v for s in ("lhs", "rhs") for k, v in {**whole, "quantization_axis": -1}.items()}

    def add(a, b):
        a, b = (raw.Bitcast(input=v, type=tf.qint32) for v in (a, b))
        q = raw.UniformQuantizedAdd(lhs=a, rhs=b, lhs_scales=0.5, lhs_zero_points=2, rhs_scales=1.0, rhs_zero_points=0, output_scales=0.25, output_zero_points=7,
                                    **sides, **wide)
        return raw.Bitcast(input=q, type=tf.int32)

    r.graph("UniformQuantizedAdd", add, [np.arange(-5, 7, dtype=np.int32).reshape(3, 4), np.array([9, -3, 0, 4], np.int32)])

    def clip(v):
        q = raw.UniformQuantizedClipByValue(operand=raw.Bitcast(input=v, type=tf.qint32), min=raw.Bitcast(input=tf.constant(-3), type=tf.qint32),
                                            max=raw.Bitcast(input=tf.constant(4), type=tf.qint32), scales=0.5, zero_points=1, quantization_axis=-1, **whole)
        return raw.Bitcast(input=q, type=tf.int32)

    r.graph("UniformQuantizedClipByValue", clip, [np.arange(-5, 7, dtype=np.int32).reshape(3, 4)])


def record(r):
    x = Xla(r)
    for part in (products, moves, regions, decompositions):
        part(x)
    uniform(r)
