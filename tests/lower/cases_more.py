"""Cases of colours, rounding to quantised numbers, resizing by weights, determinants. For record.py: `python tests/lower/record.py
more.jsonl.xz cases_more`."""
import numpy as np
import tensorflow as tf
from record import known

RNG = np.random.default_rng(3)
HALF, F32, F64 = np.float16, np.float32, np.float64


def real(*shape, dtype=F32, low=-2.0, high=2.0):
    return RNG.uniform(low, high, shape).astype(dtype)


def number(v, dtype=F32):
    return np.array(v, dtype)


def colours(r):
    image = real(2, 3, 4, 3, low=0, high=1)
    image[0, 0, 0] = 0.5  # grey
    image[0, 0, 1] = 0
    image[0, 0, 2, :2] = 0.9  # two largest
    r.op("RGBToHSV", image)
    r.op("RGBToHSV", image.astype(F64), label="float64")
    hsv = np.asarray(tf.raw_ops.RGBToHSV(images=image))
    r.op("HSVToRGB", hsv)
    for delta in (0.3, -0.7):
        r.op("AdjustHue", image, number(delta), label=str(delta), tolerance=1e-4)
    for scale in (0.0, 0.6, 1.7):
        r.op("AdjustSaturation", image, number(scale), label=str(scale))
    r.op("AdjustContrastv2", image, number(1.4))
    r.op("AdjustContrastv2", image.astype(HALF), number(0.5), label="float16", tolerance=4e-3)
    r.op("AdjustHue", image.astype(HALF), number(0.2), label="float16", tolerance=4e-3)
    r.op("AdjustSaturation", image.astype(HALF), number(0.7), label="float16", tolerance=4e-3)


def quantized(r):
    x = real(4, 5, low=-3, high=3)
    low, high = number(-1.2), number(2.0)
    for given in (True, False):
        for more in ({}, {"signed_input": False}, {"num_bits": 4, "narrow_range": True}, {"round_mode": "HALF_UP", "num_bits": 5}):
            attrs = {"range_given": given, **more}
            for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"):
                r.op(op, x, low, high, label="".join(f"{k}{v}" for k, v in attrs.items()), **attrs)
        r.op("QuantizeAndDequantizeV3", x, low, high, known(6), label=str(given), range_given=given)
    lows, highs = real(5, low=-2, high=-1), real(5, low=1, high=2)
    r.op("QuantizeAndDequantizeV2", x, lows, highs, label="axis", axis=1, range_given=True)
    r.op("QuantizeAndDequantizeV4", x, lows, highs, label="axisfound", axis=1, range_given=False)
    r.op("QuantizeAndDequantizeV4Grad", real(4, 5), x, low, high)


def images(r):
    x = real(2, 5, 6, 3)
    for attrs in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
        for size in ([7, 3], [10, 13]):
            r.op("ResizeBicubic", x, known(size), label=f"{size}{list(attrs)}", **attrs)
    for attrs in ({}, {"align_corners": True}):
        r.op("ResizeArea", x, known([3, 4]), label=str(list(attrs)), **attrs)
        r.op("ResizeArea", x, known([7, 9]), label="up" + str(list(attrs)), **attrs)
    for attrs in ({}, {"half_pixel_centers": True}):
        r.op("ResizeBicubicGrad", real(2, 7, 4, 3), x, label=str(list(attrs)), **attrs)
    boxes = np.array([[0, 0, 1, 1], [0.2, 0.3, 0.7, 0.9], [0.9, 0.8, 0.1, 0.2], [-0.2, 0.1, 1.3, 0.6], [0.5, 0.5, 0.5, 0.5]], F32)
    which = np.array([0, 1, 1, 0, 1], np.int32)
    for size in ([3, 4], [1, 1], [1, 5]):
        for method in ("bilinear", "nearest"):
            r.op("CropAndResize", x, boxes, which, known(size), label=f"{size}{method}", method=method, extrapolation_value=0.5)
    r.op("HistogramFixedWidth", real(3, 7), np.array([-1.5, 1.0], F32), known(5))


def matrices(r):
    x = real(3, 4, 4)
    x[1, :, 0] = 0
    x[2, 0, 0] = 0
    for op in ("MatrixDeterminant", "LogMatrixDeterminant"):
        r.op(op, x)
        r.op(op, real(5, 5, dtype=F64), label="float64")


def special(r):
    edges = np.array([0, 0, 1, 2, -1, 3, np.nan, 0.5, 30, 100, 2, 1e-3], F32), np.array([1, 0, 0, np.inf, 1, -1, 1, 1e-6, 25, 120, 1.5, 2], F32)
    a, x = real(40, low=0.05, high=12), real(40, low=0, high=15)
    for op in ("Igamma", "Igammac", "IgammaGradA", "RandomGammaGrad"):
        r.op(op, a, x, label="float32", tolerance=1e-4)
        r.op(op, a.astype(F64), x.astype(F64), label="float64", tolerance=1e-9)
        if not op.endswith(("A", "Grad")):
            r.op(op, *(e[1 if op == "Igammac" else 0:] for e in edges), label="edges", tolerance=1e-4)
            r.op(op, a.astype(HALF), x.astype(HALF), label="float16")
    b, p = real(40, low=0.05, high=9), real(40, low=0, high=1)
    p[:3] = 0, 1, 0.5
    r.op("Betainc", a, b, p, tolerance=1e-4)
    r.op("Betainc", a.astype(F64), b.astype(F64), p.astype(F64), label="float64", tolerance=1e-9)
    for t in (F32, F64, HALF):
        r.op("BesselI0e", real(30, dtype=t, low=-20, high=20), label=np.dtype(t).name)


def rebuilt(op, parts, **attrs):
    """What does not depend on the signs of vectors: the product of what a decomposition gives."""

    def build(a):
        found = getattr(tf.raw_ops, op)(input=a, **attrs)
        return parts(*found)

    return build


def back(e, v):
    return [e, tf.matmul(v * e[..., None, :], v, transpose_b=True), tf.matmul(v, v, transpose_a=True)]


def product(s, u, v):
    n = s.shape[-1]
    return [s, tf.matmul(u[..., :n] * s[..., None, :], v[..., :n], transpose_b=True), tf.matmul(u, u, transpose_a=True), tf.matmul(v, v, transpose_a=True)]


def decompositions(r):
    for t, tolerance in ((F32, 2e-5), (F64, 1e-12)):
        name = np.dtype(t).name
        for m, n in ((5, 5), (6, 3), (3, 6), (1, 4), (4, 1)):
            for full in (False, True):
                a = real(2, m, n, dtype=t)
                r.op("Qr", a, label=f"{m}x{n}{full}{name}", tolerance=tolerance, full_matrices=full)
                r.graph(f"Svd/{m}x{n}{full}{name}", rebuilt("Svd", product, full_matrices=full, compute_uv=True), [a], tolerance=tolerance)
        for n in (1, 2, 5, 8):
            r.graph(f"SelfAdjointEigV2/{n}{name}", rebuilt("SelfAdjointEigV2", back, compute_v=True), [real(2, n, n, dtype=t)], tolerance=tolerance)
    low = real(4, 2) @ real(2, 4)
    r.graph("Svd/lowrank", rebuilt("Svd", product, compute_uv=True), [low])
    r.op("Svd", low, label="values", fetch=[0], compute_uv=False)
    r.op("SelfAdjointEigV2", low, label="values", fetch=[0], compute_v=False)


def small(r):
    image = RNG.permutation(2 * 6 * 5 * 3).reshape(2, 6, 5, 3).astype(F32)
    for padding in ("SAME", "VALID"):
        attrs = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "padding": padding}
        pooled = np.asarray(tf.raw_ops.MaxPool(input=image, **attrs))
        r.op("MaxPoolGradGrad", image, pooled, real(2, 6, 5, 3), label=padding, **attrs)
        r.op("MaxPoolGradGradV2", image, pooled, real(2, 6, 5, 3), known(attrs["ksize"]), known(attrs["strides"]), label=padding, padding=padding)
    image = RNG.permutation(4 * 5 * 4 * 2).reshape(1, 4, 5, 4, 2).astype(F32)
    attrs = {"ksize": [1, 2, 3, 2, 1], "strides": [1, 2, 2, 1, 1], "padding": "SAME"}
    r.op("MaxPool3DGradGrad", image, np.asarray(tf.raw_ops.MaxPool3D(input=image, **attrs)), real(1, 4, 5, 4, 2), **attrs)
    for a, b in ((False, False), (True, False), (False, True)):
        r.op("SparseMatMul", real(*((4, 3) if a else (3, 4))), real(*((5, 4) if b else (4, 5))), label=f"{a}{b}", transpose_a=a, transpose_b=b)
    r.op("TridiagonalMatMul", real(2, 1, 5), real(2, 1, 5), real(2, 1, 5), real(2, 5, 3))
    for t, name in ((tf.qint8, "int8"), (tf.quint8, "uint8")):
        x = RNG.integers(0 if name == "uint8" else -128, 128, (3, 4)).astype(name)
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):

            def build(v, t=t, mode=mode):
                return tf.raw_ops.Dequantize(input=tf.raw_ops.Bitcast(input=v, type=t), min_range=-1.5, max_range=2.0, mode=mode)

            r.graph(f"Dequantize/{name}{mode}", build, [x])


def chain(r):
    """_UnaryOpsComposition, which only Grappler makes."""
    from tensorflow.core.framework import graph_pb2, node_def_pb2

    def build(x):
        node = node_def_pb2.NodeDef(name="y", op="_UnaryOpsComposition", input=["x"])
        node.attr["T"].type = 1
        node.attr["op_names"].list.s.extend([b"Abs", b"Sqrt", b"Square", b"Relu6", b"Tanh"])
        feed = node_def_pb2.NodeDef(name="x", op="Placeholder")
        feed.attr["dtype"].type = 1
        return tf.import_graph_def(graph_pb2.GraphDef(node=[feed, node]), {"x": x}, ["y:0"], name="")

    r.graph("_UnaryOpsComposition", build, [real(3, 4)])


def record(r):
    small(r)
    chain(r)
    decompositions(r)
    special(r)
    colours(r)
    quantized(r)
    images(r)
    matrices(r)
