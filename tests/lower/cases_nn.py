"""Cases of convolutions, pooling, normalisation, losses, indices, optimizers, diagonals, transforms, random numbers. For
record.py: `python tests/lower/record.py nn.jsonl.xz cases_nn`."""
import ml_dtypes
import numpy as np
import tensorflow as tf
from record import known, packed

RNG = np.random.default_rng(2)
HALF, BRAIN, F32, F64 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64
FLOATS = (F32, F64, HALF, BRAIN)


def real(*shape, dtype=F32, low=-2.0, high=2.0):
    return RNG.uniform(low, high, shape).astype(dtype)


def below(n, *shape, dtype=np.int32, low=0):
    return RNG.integers(low, n, shape).astype(dtype)


def label(dtype):
    return np.dtype(dtype).name


def spread(*shape, dtype=F32):
    """Different everywhere, so that the largest is one."""
    n = int(np.prod(shape))
    return (RNG.permutation(n).reshape(shape) / 8 - n / 16).astype(dtype)


WINDOWS = [(3, 1, 1, "SAME"), (3, 2, 1, "SAME"), (2, 1, 1, "VALID"), (3, 2, 1, "VALID"), (3, 1, 2, "SAME"), (2, 1, 2, "VALID"), (1, 2, 1, "VALID"),
           (2, 3, 1, "SAME")]


def convolutions(r):
    for k, s, d, padding in WINDOWS:
        name = f"{k}x{s}x{d}{padding}"
        x, w = real(2, 7, 6, 3), real(k, k + 1, 3, 4)
        attrs = {"strides": [1, s, s, 1], "padding": padding, "dilations": [1, d, d, 1]}
        r.op("Conv2D", x, w, label=name, **attrs)
        y = np.asarray(tf.raw_ops.Conv2D(input=x, filter=w, **attrs)).shape
        if d == 1:
            r.op("Conv2DBackpropInput", known(x.shape), w, real(*y), label=name, **attrs)
            r.op("Conv2DBackpropFilter", x, known(w.shape), real(*y), label=name, **attrs)
    for fused in (["BiasAdd"], ["BiasAdd", "Relu"], ["BiasAdd", "Elu"], ["BiasAdd", "Relu6"], ["BiasAdd", "LeakyRelu"]):
        r.graph("_FusedConv2D/" + "".join(fused), fused_convolution(*fused), [real(1, 5, 6, 4), real(3, 2, 4, 6), real(6)])
    depthwise(r)
    more_convolutions(r)


def fused_convolution(*fused):
    """_FusedConv2D, which only Grappler makes."""
    from tensorflow.core.framework import attr_value_pb2, node_def_pb2

    def build(x, w, b):
        node = node_def_pb2.NodeDef(name="y", op="_FusedConv2D", input=["in0", "in1", "in2"])
        node.attr["T"].type = 1
        node.attr["TArgs"].list.type.append(1)
        node.attr["num_args"].i = 1
        node.attr["strides"].list.i.extend([1, 1, 1, 1])
        node.attr["padding"].s = b"SAME"
        node.attr["fused_ops"].CopyFrom(attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(s=[f.encode() for f in fused])))
        return tf.import_graph_def(graph_of(node), {"in0": x, "in1": w, "in2": b}, ["y:0"], name="")

    def graph_of(node):
        from tensorflow.core.framework import graph_pb2

        feeds = []
        for i in range(3):
            feed = node_def_pb2.NodeDef(name=f"in{i}", op="Placeholder")
            feed.attr["dtype"].type = 1
            feeds.append(feed)
        return graph_pb2.GraphDef(node=[*feeds, node])

    return build


def depthwise(r):
    for k, s, d, padding in WINDOWS:
        if s > 1 and d > 1:
            continue
        name, x, w = f"{k}x{s}x{d}{padding}", real(2, 7, 7, 3), real(k, k, 3, 2)
        attrs = {"strides": [1, s, s, 1], "padding": padding, "dilations": [1, d, d, 1]}
        if d == 1:
            r.op("DepthwiseConv2dNative", x, w, label=name, **attrs)
            y = np.asarray(tf.raw_ops.DepthwiseConv2dNative(input=x, filter=w, **attrs)).shape
            r.op("DepthwiseConv2dNativeBackpropInput", known(x.shape), w, real(*y), label=name, **attrs)
            r.op("DepthwiseConv2dNativeBackpropFilter", x, known(w.shape), real(*y), label=name, **attrs)


def more_convolutions(r):
    explicit = {"strides": [1, 2, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 2, 1, 0, 3, 0, 0]}
    x, w = real(1, 5, 6, 4), real(3, 2, 4, 6)
    r.op("Conv2D", x, w, label="explicit", **explicit)
    y = np.asarray(tf.raw_ops.Conv2D(input=x, filter=w, **explicit)).shape
    r.op("Conv2DBackpropInput", known(x.shape), w, real(*y), label="explicit", **explicit)
    r.op("Conv2DBackpropFilter", x, known(w.shape), real(*y), label="explicit", **explicit)
    groups, one = real(3, 3, 2, 6), {"strides": [1, 1, 1, 1], "padding": "SAME"}
    r.op("Conv2D", x, groups, label="groups", **one)
    r.op("Conv2DBackpropInput", known(x.shape), groups, real(1, 5, 6, 6), label="groups", **one)
    r.op("Conv2DBackpropFilter", x, known(groups.shape), real(1, 5, 6, 6), label="groups", **one)
    for t in (F64, HALF, BRAIN):
        r.op("Conv2D", x.astype(t), w.astype(t), label=label(t), tolerance={F64: 1e-11, HALF: 2e-2, BRAIN: 0.1}[t], strides=[1, 1, 1, 1], padding="SAME")
    x, w = real(1, 4, 5, 6, 2), real(2, 3, 2, 2, 3)
    for s, padding in ((1, "SAME"), (2, "VALID")):
        attrs = {"strides": [1, s, s, s, 1], "padding": padding}
        r.op("Conv3D", x, w, label=padding, **attrs)
        y = np.asarray(tf.raw_ops.Conv3D(input=x, filter=w, **attrs)).shape
        r.op("Conv3DBackpropInputV2", known(x.shape), w, real(*y), label=padding, **attrs)
        r.op("Conv3DBackpropFilterV2", x, known(w.shape), real(*y), label=padding, **attrs)


def pooling(r):
    for k, s, d, padding in WINDOWS:
        if d > 1:
            continue
        name, x = f"{k}x{s}{padding}", spread(2, 7, 6, 3)
        attrs = {"ksize": [1, k, k, 1], "strides": [1, s, s, 1], "padding": padding}
        r.op("MaxPool", x, label=name, **attrs)
        r.op("AvgPool", x, label=name, **attrs)
        y = np.asarray(tf.raw_ops.MaxPool(input=x, **attrs))
        r.op("MaxPoolGrad", x, y, real(*y.shape), label=name, **attrs)
        r.op("AvgPoolGrad", known(x.shape), real(*y.shape), label=name, **attrs)
    for t in (F64, HALF, BRAIN):
        attrs = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}
        r.op("MaxPool", spread(1, 4, 4, 2, dtype=t), label=label(t), **attrs)
        r.op("AvgPool", spread(1, 4, 4, 2, dtype=t), label=label(t), **attrs)
    ties = np.zeros((1, 4, 4, 1), F32)
    attrs = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    r.op("MaxPoolGrad", ties, np.zeros((1, 2, 2, 1), F32), real(1, 2, 2, 1), label="ties", **attrs)
    x = spread(1, 4, 5, 6, 2)
    for s, padding in ((1, "SAME"), (2, "VALID"), (2, "SAME")):
        attrs = {"ksize": [1, 2, 3, 2, 1], "strides": [1, s, s, s, 1], "padding": padding}
        r.op("MaxPool3D", x, label=f"{s}{padding}", **attrs)
        r.op("AvgPool3D", x, label=f"{s}{padding}", **attrs)
        y = np.asarray(tf.raw_ops.MaxPool3D(input=x, **attrs))
        r.op("MaxPool3DGrad", x, y, real(*y.shape), label=f"{s}{padding}", **attrs)
        r.op("AvgPool3DGrad", known(x.shape), real(*y.shape), label=f"{s}{padding}", **attrs)


def normalisation(r):
    x, vector = real(2, 4, 3, 5), lambda low=-1.0: real(5, low=low, high=1.5)
    for version in ("", "V2", "V3"):
        op = f"FusedBatchNorm{version}"
        empty = np.zeros(0, F32)
        r.op(op, x, vector(), vector(), empty, empty, label="train", fetch=[0, 1, 2, 3, 4], epsilon=0.01)
        r.op(op, x, vector(), vector(), vector(), vector(0.1), label="average", fetch=[0, 1, 2], epsilon=0.01, exponential_avg_factor=0.3)
        r.op(op, x, vector(), vector(), vector(), vector(0.1), label="infer", fetch=[0, 1, 2], epsilon=0.01, is_training=False)
        more = [np.zeros(0, F32)] if version == "V3" else []
        for train in (True, False):
            r.op(f"FusedBatchNormGrad{version}", real(*x.shape), x, vector(), vector(), vector(0.1), *more, label=f"train={train}", fetch=[0, 1, 2],
                 epsilon=0.01, is_training=train, tolerance=1e-4)
    for t in (HALF, BRAIN):
        r.op("FusedBatchNormV3", x.astype(t), vector(), vector(), np.zeros(0, F32), np.zeros(0, F32), label=label(t), fetch=[0, 1, 2], epsilon=0.01,
             tolerance=1e-2 if t is HALF else 5e-2)
    for t in FLOATS:
        r.op("BiasAdd", real(2, 3, 4, dtype=t), real(4, dtype=t), label=label(t))
        r.op("BiasAddGrad", real(2, 3, 4, dtype=t), label=label(t), tolerance=2e-2 if t in (HALF, BRAIN) else None)
    r.op("BiasAdd", real(2, 3, 4, 5), real(3), label="NCHW", data_format="NCHW")
    r.op("BiasAddGrad", real(2, 3, 4, 5), label="NCHW", data_format="NCHW")
    r.op("BiasAddV1", real(2, 3), real(3))
    y = np.asarray(tf.raw_ops.LRN(input=x, depth_radius=2, bias=1.5, alpha=0.3, beta=0.7))
    r.op("LRN", x, depth_radius=2, bias=1.5, alpha=0.3, beta=0.7)
    r.op("LRN", x, label="default")
    r.op("LRNGrad", real(*x.shape), x, y, depth_radius=2, bias=1.5, alpha=0.3, beta=0.7)


def losses(r):
    for t in FLOATS:
        for op in ("Softmax", "LogSoftmax"):
            r.op(op, real(2, 3, 5, dtype=t, low=-9, high=9), label=label(t), tolerance=1e-2 if t is HALF else 6e-2 if t is BRAIN else None)
        labels = real(3, 5, dtype=t, low=0, high=1)
        loose = {HALF: 2e-2, BRAIN: 0.2}.get(t)
        r.op("SoftmaxCrossEntropyWithLogits", real(3, 5, dtype=t), labels, label=label(t), tolerance=loose)
        r.op("SparseSoftmaxCrossEntropyWithLogits", real(3, 5, dtype=t), below(5, 3), label=label(t), tolerance=loose)
    r.op("Softmax", np.array([[1e30, -1e30, 0], [-np.inf, 1, 2]], F32), label="large")
    r.op("SparseSoftmaxCrossEntropyWithLogits", real(4, 3), below(3, 4, dtype=np.int64), label="i64")
    r.op("SoftmaxCrossEntropyWithLogits", real(4, 3), np.array([[0.2, 0.3, 0.5]], F32), label="broadcast")


def images(r):
    x = real(2, 4, 5, 3)
    for corners, half in ((False, False), (True, False), (False, True)):
        attrs = {"align_corners": corners, "half_pixel_centers": half}
        for size in ((7, 8), (2, 3), (4, 5), (1, 9)):
            name = f"{size[0]}x{size[1]}/{corners}/{half}"
            r.op("ResizeBilinear", x, known(size), label=name, **attrs)
            r.op("ResizeNearestNeighbor", x, known(size), label=name, **attrs)
            r.op("ResizeBilinearGrad", real(2, *size, 3), x, label=name, **attrs)
            r.op("ResizeNearestNeighborGrad", real(2, *size, 3), known((4, 5)), label=name, **attrs)
    r.op("ResizeBilinear", below(200, 1, 3, 3, 1, dtype=np.uint8), known((5, 4)), label="u8")
    r.op("ResizeNearestNeighbor", below(200, 1, 3, 3, 1, dtype=np.uint8), known((5, 4)), label="u8")
    pads = ((0, 0), (1, 2), (2, 0), (0, 1))
    for mode in ("REFLECT", "SYMMETRIC"):
        r.op("MirrorPad", x, known(pads), label=mode, mode=mode)
        r.op("MirrorPadGrad", real(2, 7, 7, 4), known(pads), label=mode, mode=mode)
    r.op("SpaceToDepth", real(2, 4, 6, 3), block_size=2)
    r.op("DepthToSpace", real(2, 2, 3, 12), block_size=2)
    r.op("SpaceToBatchND", real(2, 4, 5, 3), known((2, 3)), known(((0, 0), (1, 0))))
    r.op("BatchToSpaceND", real(12, 2, 2, 3), known((2, 3)), known(((1, 0), (0, 2))))
    r.op("SpaceToBatch", real(2, 3, 4, 3), known(((0, 1), (1, 1))), block_size=2)
    r.op("BatchToSpace", real(8, 2, 3, 3), known(((0, 1), (1, 1))), block_size=2)
    for size, stride, rate, padding in ((3, 1, 1, "SAME"), (2, 2, 2, "VALID"), (3, 2, 1, "VALID")):
        r.op("ExtractImagePatches", real(2, 6, 7, 3), label=f"{size}{stride}{rate}", ksizes=[1, size, size - 1, 1], strides=[1, stride, 1, 1],
             rates=[1, rate, rate, 1], padding=padding)
    r.op("ReverseSequence", real(3, 5, 2), np.array([5, 0, 3], np.int32), seq_dim=1)
    r.op("ReverseSequence", real(5, 2, 3), np.array([5, 1, 3], np.int64), label="time", seq_dim=0, batch_dim=2)


def indices(r):
    x = real(5, 4, 3)
    for t in (np.int32, np.int64):
        r.op("Gather", x, below(5, 2, 3, dtype=t), label=label(t))
        for axis in (0, 1, -1):
            r.op("GatherV2", x, below(3, 2, dtype=t), known(axis), label=f"{axis}/{label(t)}")
    r.op("GatherV2", x, np.int32(2), known(1), label="scalar")
    r.op("GatherV2", x, below(4, 5, 2), known(1), label="batch", batch_dims=1)
    r.op("GatherV2", real(2, 3, 4, 5), below(4, 2, 3, 2), known(2), label="batch2", batch_dims=-1)
    r.op("GatherV2", x, np.zeros((0,), np.int32), known(0), label="none")
    r.op("GatherNd", x, below(3, 2, 2))
    r.op("GatherNd", x, below(3, 2, 3), label="elements")
    r.op("GatherNd", x, below(3, 2, 4, 1, dtype=np.int64), label="rows")
    r.op("ScatterNd", below(3, 4, 1), real(4, 2), known((3, 2)))
    r.op("ScatterNd", below(3, 4, 2), real(4, 2), known((3, 4, 2)), label="deep")
    r.op("ScatterNd", below(3, 6, 1), below(9, 6), known((3,)), label="ints")
    places = np.array([[2], [0], [4]], np.int32)
    for op in ("Update", "Add", "Sub", "Max", "Min"):
        r.op(f"TensorScatter{op}", x, places, real(3, 4, 3))
        r.op(f"TensorScatter{op}", x, np.array([[2, 1], [0, 3]], np.int32), real(2, 3), label="deep")
    r.op("TensorScatterAdd", x, np.array([[1], [1]], np.int32), real(2, 4, 3), label="twice")
    for op in ("Sum", "Prod", "Max", "Min"):
        ids = np.array([2, 0, -1, 2, 0], np.int32)
        r.op(f"UnsortedSegment{op}", x, ids, known(4))
        r.op(f"UnsortedSegment{op}", below(9, 5, 2), ids, known(4), label="ints")
        r.op(f"UnsortedSegment{op}", x, below(3, 5, 4), known(3), label="deep")
    r.op("Bincount", below(9, 12), known(6), known([], F32))
    r.op("Bincount", below(9, 12), known(6), real(12), label="weights")
    r.op("DenseBincount", below(9, 12), known(6), known([], F32))
    r.op("DenseBincount", below(9, 3, 12), known(10), real(3, 12), label="rows")
    r.op("DenseBincount", below(9, 3, 12), known(6), known([], np.int32), label="binary", binary_output=True)
    for t in (F32, F64, HALF, np.int32, np.int64, np.uint8):
        r.op("TopKV2", (spread(3, 8) * 8).astype(t) if t is np.uint8 else spread(3, 8).astype(t), known(3), label=label(t))
    r.op("TopKV2", np.array([1, 3, 3, 1, 2, 3], F32), known(5), label="ties")
    for op in ("DynamicStitch", "ParallelDynamicStitch"):
        r.op(op, [known([0, 3]), known([[1], [2]])], [real(2, 3), real(2, 1, 3)])
    r.op("DynamicStitch", [known([1, 0]), known(1)], [real(2), np.float32(7)], label="later wins")


def diagonals(r):
    r.op("MatrixDiag", real(2, 3))
    r.op("MatrixDiagPart", real(2, 3, 4))
    r.op("MatrixSetDiag", real(2, 3, 4), real(2, 3))
    r.op("Diag", real(2, 3))
    r.op("DiagPart", real(2, 3, 2, 3))
    for low, high in ((0, 0), (-1, 2), (1, 2), (-2, -1), (1, 1), (-2, 0)):
        for align in ("LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT"):
            name = f"{low}to{high}/{align}"
            k = known([low, high])
            x = real(2, 4, 5)
            part = np.asarray(tf.raw_ops.MatrixDiagPartV3(input=x, k=[low, high], padding_value=F32(7), align=align))
            r.op("MatrixDiagPartV3", x, k, np.float32(7), label=name, align=align)
            r.op("MatrixDiagV3", part, k, known(4), known(5), np.float32(3), label=name, align=align)
            r.op("MatrixSetDiagV3", real(2, 4, 5), part, k, label=name, align=align)
    r.op("MatrixDiagV3", real(2, 3), known(1), known(-1), known(-1), np.float32(0), label="sizes")
    r.op("MatrixDiagV2", real(2, 3), known(-1), known(-1), known(3), np.float32(5))
    r.op("MatrixDiagPartV2", real(2, 4, 5), known([-1, 1]), np.float32(5))
    r.op("MatrixSetDiagV2", real(2, 4, 5), real(2, 4), known(1))
    for low, high in ((0, 0), (1, 0), (-1, 1), (0, -1), (2, 3)):
        r.op("MatrixBandPart", real(2, 4, 5), np.int64(low), np.int64(high), label=f"{low},{high}")


def matrices(r):
    for t in (F32, F64):
        a = real(2, 4, 4, dtype=t)
        r.op("Cholesky", a @ np.swapaxes(a, 1, 2) + 4 * np.eye(4, dtype=t), label=label(t), tolerance=1e-4 if t is F32 else None)
        tri = real(2, 4, 4, dtype=t) + 4 * np.eye(4, dtype=t)
        for lower in (True, False):
            for adjoint in (True, False):
                r.op("MatrixTriangularSolve", tri, real(2, 4, 3, dtype=t), label=f"{label(t)}/{lower}{adjoint}", lower=lower, adjoint=adjoint,
                     tolerance=1e-4 if t is F32 else None)
    r.op("MatrixTriangularSolve", real(4, 4) + 4 * np.eye(4, dtype=F32), real(3, 4, 2), label="batch", tolerance=1e-4)
    for t in (F32, F64):
        tri = real(2, 4, 4, dtype=t) + 4 * np.eye(4, dtype=t)
        for adjoint in (False, True):
            r.op("MatrixSolve", tri[:, ::-1].copy(), real(2, 4, 3, dtype=t), label=f"{label(t)}/{adjoint}", adjoint=adjoint,
                 tolerance=1e-4 if t is F32 else None)
            r.op("MatrixInverse", tri[:, ::-1].copy(), label=f"{label(t)}/{adjoint}", adjoint=adjoint, tolerance=1e-4 if t is F32 else None)
    r.op("MatrixInverse", (real(3, 3) + 1j * real(3, 3)).astype(np.complex64), label="complex", adjoint=True, tolerance=1e-3)
    r.op("Cross", real(2, 3), real(2, 3))
    z = lambda *shape: (real(*shape) + 1j * real(*shape)).astype(np.complex64)  # noqa: E731
    for op in ("FFT", "IFFT"):
        r.op(op, z(2, 6), tolerance=1e-4)
        r.op(f"{op}2D", z(2, 4, 5), tolerance=1e-4)
        r.op(f"{op}3D", z(2, 3, 4), tolerance=1e-4)
        r.op(op, z(3, 8).astype(np.complex128), label="c128")
    for n in (6, 7):
        r.op("RFFT", real(2, 7), known([n]), label=str(n), tolerance=1e-4)
        r.op("IRFFT", z(2, 4), known([n]), label=str(n), tolerance=1e-4)
    r.op("IRFFT2D", z(2, 4, 4), known([4, 6]), tolerance=1e-4)
    r.op("IRFFT3D", z(3, 4, 4), known([3, 4, 6]), tolerance=1e-4)
    r.op("RFFT2D", real(2, 4, 6), known([4, 6]), tolerance=1e-4)
    r.op("RFFT3D", real(4, 4, 6), known([4, 4, 6]), tolerance=1e-4)


def random_numbers(r):
    loose = 1e-5
    for n, seed in (((7,), (3, 5)), ((2, 3, 4), (-1, 1 << 30)), ((0,), (1, 2))):
        s, name = np.array(seed, np.int64), f"{n}/{seed[0]}"
        for t in (tf.float32, tf.float64, tf.float16, tf.bfloat16):
            r.op("StatelessRandomUniform", known(n), s, label=f"{name}/{t.name}", dtype=t)
            r.op("StatelessRandomNormal", known(n), s, label=f"{name}/{t.name}", dtype=t,
                 tolerance=loose if t in (tf.float32, tf.float64) else None)
        for t in (tf.float32, tf.float16):
            r.op("StatelessTruncatedNormal", known(n), s, label=f"{name}/{t.name}", dtype=t, tolerance=loose if t is tf.float32 else None)
        for t in (np.int32, np.int64):
            r.op("StatelessRandomUniformInt", known(n), s, np.array(-5, t), np.array(1000, t), label=f"{name}/{label(t)}")
        for t in (tf.int32, tf.int64, tf.uint32, tf.uint64):
            r.op("StatelessRandomUniformFullInt", known(n), s, label=f"{name}/{t.name}", dtype=t)
    s = np.array([11, 12], np.int32)
    r.op("StatelessRandomGetKeyCounter", s)
    r.op("StatelessRandomGetKeyCounterAlg", s)
    r.op("StatelessRandomGetAlg")
    key, counter = np.array([(7 << 32) + 9], np.uint64), np.array([(1 << 64) - 2, 5], np.uint64)
    for t in (tf.float32, tf.float64):
        r.op("StatelessRandomUniformV2", known([9]), key, counter, known(1), label=t.name, dtype=t)
        r.op("StatelessRandomNormalV2", known([9]), key, counter, known(1), label=t.name, dtype=t, tolerance=loose)
    r.op("StatelessTruncatedNormalV2", known([300]), key, counter, known(1), dtype=tf.float32, tolerance=loose)
    r.op("StatelessRandomUniformIntV2", known([9]), key, counter, known(1), np.int32(0), np.int32(100))
    r.op("StatelessRandomUniformFullIntV2", known([9]), key, counter, known(1), dtype=tf.uint32)


def on_variables(r, op, variables, *inputs, name, **attrs):
    """`op` on variables that have these values, and what they are afterwards."""
    with tf.Graph().as_default() as g:
        handles = [tf.raw_ops.VarHandleOp(dtype=tf.as_dtype(v.dtype), shape=v.shape, shared_name=f"v{i}", name=f"v{i}") for i, v in enumerate(variables)]
        feeds = [i if i is None else tf.constant(i.value) if hasattr(i, "value") else tf.compat.v1.placeholder(i.dtype, i.shape, name=f"in{k}")
                 for k, i in enumerate(inputs)]
        starts = [tf.raw_ops.AssignVariableOp(resource=h, value=v) for h, v in zip(handles, variables)]
        done = op(handles, feeds, **attrs)
        outputs = [] if done is None or isinstance(done, tf.Operation) else [done]
        after = done if not outputs else done.op
        with tf.control_dependencies([after]):
            outputs += [tf.identity(tf.raw_ops.ReadVariableOp(resource=h, dtype=tf.as_dtype(v.dtype)), name=f"out{i}")
                        for i, (h, v) in enumerate(zip(handles, variables))]
        fed = {f: i for f, i in zip(feeds, inputs) if not hasattr(i, "value")}
        with tf.compat.v1.Session() as session:
            session.run(starts)
            values = session.run(outputs, fed)
        graph = g.as_graph_def()
    for node in [n for n in graph.node if n.op == "AssignVariableOp"]:
        graph.node.remove(node)
    r.put(name, graph.SerializeToString(), {f"in{k}": i for k, i in enumerate(inputs) if not hasattr(i, "value")}, [o.name for o in outputs],
          values + values[-len(variables):], variables={f"v{i}": packed(v) for i, v in enumerate(variables)})


def variables(r):
    def apply(op, slots, *scalars, at, label="", **attrs):
        import inspect

        raw = getattr(tf.raw_ops, op)
        names = [p for p in inspect.signature(raw).parameters if p != "name"]

        def build(handles, feeds, **attrs):
            given = list(feeds[1:])
            given.insert(at - slots, feeds[0])
            return raw(**dict(zip(names, handles + given)), **attrs)

        start = [real(3, 4)] + [real(3, 4, low=0.5, high=1.5) for _ in range(slots - 1)]
        on_variables(r, build, start, real(3, 4), *[np.float32(s) for s in scalars], name=op + label, **attrs)

    apply("ResourceApplyGradientDescent", 1, 0.1, at=2)
    apply("ResourceApplyProximalGradientDescent", 1, 0.1, 0.5, 0.25, at=4)
    apply("ResourceApplyProximalAdagrad", 2, 0.1, 0.5, 0.25, at=5)
    apply("ResourceApplyAdagradV2", 2, 0.1, 0.01, at=4)
    apply("ResourceApplyAdadelta", 3, 0.1, 0.9, 0.01, at=6)
    on_variables(r, lambda h, x: tf.raw_ops.ResourceApplyAdagradDA(
        var=h[0], gradient_accumulator=h[1], gradient_squared_accumulator=h[2], grad=x[0], lr=0.1, l1=0.3, l2=0.2, global_step=np.int64(3)),
        [real(3, 4), real(3, 4), real(3, 4, low=0.5)], real(3, 4), name="ResourceApplyAdagradDA")
    apply("ResourceApplyRMSProp", 3, 0.1, 0.9, 0.8, 0.01, at=7)
    apply("ResourceApplyCenteredRMSProp", 4, 0.1, 0.9, 0.8, 3.0, at=8)
    apply("ResourceApplyAdaMax", 3, 0.9, 0.1, 0.9, 0.99, 0.01, at=8)
    apply("ResourceApplyAdamWithAmsgrad", 4, 0.9, 0.99, 0.1, 0.9, 0.99, 0.01, at=10)
    apply("ResourceApplyAddSign", 2, 0.1, 0.5, 0.3, 0.9, at=6)
    apply("ResourceApplyPowerSign", 2, 0.1, 0.5, 0.3, 0.9, at=6)
    for flag in (True, False):
        apply("ResourceApplyMomentum", 2, 0.1, 0.9, at=3, label=f"/{flag}", use_nesterov=flag)
        apply("ResourceApplyKerasMomentum", 2, 0.1, 0.9, at=3, label=f"/{flag}", use_nesterov=flag)
        apply("ResourceApplyAdagrad", 2, 0.1, at=3, label=f"/{flag}", update_slots=flag)
        apply("ResourceApplyAdam", 3, 0.9, 0.99, 0.1, 0.9, 0.99, 0.01, at=9, label=f"/{flag}", use_nesterov=flag)
        apply("ResourceApplyFtrl", 3, 0.1, 0.2, 0.3, -0.5, at=3, label=f"/{flag}", multiply_linear_by_lr=flag)
        apply("ResourceApplyFtrlV2", 3, 0.1, 0.2, 0.3, 0.05, -0.6, at=3, label=f"/{flag}", multiply_linear_by_lr=flag)
    raw = tf.raw_ops
    state = np.array([-5, 7, 1234567890123], np.int64)
    for op, t, more in (("StatefulUniform", tf.float32, []), ("StatefulStandardNormalV2", tf.float32, []), ("StatefulTruncatedNormal", tf.float32, []),
                        ("StatefulUniformFullInt", tf.uint64, []), ("StatefulUniformInt", tf.int32, [np.int32(3), np.int32(900)])):
        f, kind = getattr(raw, op), {"dtype": t} if not more else {}
        on_variables(r, lambda h, x, f=f, kind=kind, more=more: f(resource=h[0], algorithm=np.int64(1), shape=np.array([3, 5]),
                                                                  **kind, **dict(zip(("minval", "maxval"), more))), [state], name=op)
    on_variables(r, lambda h, x: raw.RngReadAndSkip(resource=h[0], alg=1, delta=x[0]), [state], np.uint64(9), name="RngReadAndSkip")
    on_variables(r, lambda h, x: raw.RngSkip(resource=h[0], algorithm=np.int64(1), delta=x[0]), [state], np.int64(9), name="RngSkip")
    for op in ("Update", "Add", "Sub", "Mul", "Div", "Max", "Min"):
        f = getattr(raw, f"ResourceScatter{op}")
        on_variables(r, lambda h, x, f=f: f(resource=h[0], indices=x[0], updates=x[1]), [real(5, 2)], np.array([3, 0], np.int32),
                     real(2, 2, low=0.5), name=f"ResourceScatter{op}")
        on_variables(r, lambda h, x, f=f: f(resource=h[0], indices=x[0], updates=x[1]), [real(5, 2)], np.array([[3, 0]], np.int64),
                     np.float32(1.5), name=f"ResourceScatter{op}/scalar")
    for op in ("Update", "Add", "Sub"):
        f = getattr(raw, f"ResourceScatterNd{op}")
        on_variables(r, lambda h, x, f=f: f(ref=h[0], indices=x[0], updates=x[1]), [real(5, 2)], np.array([[3, 1], [0, 0]], np.int32), real(2),
                     name=f"ResourceScatterNd{op}")
    on_variables(r, lambda h, x: raw.ResourceGather(resource=h[0], indices=x[0], dtype=tf.float32), [real(5, 2)], below(5, 2, 3), name="ResourceGather")
    on_variables(r, lambda h, x: raw.ResourceGatherNd(resource=h[0], indices=x[0], dtype=tf.float32), [real(5, 2)], below(2, 3, 2),
                 name="ResourceGatherNd")


def lists(r):
    raw = tf.raw_ops
    x, y = real(4, 2, 3), real(2, 3)

    def items(x, y):
        a = raw.TensorListSetItem(input_handle=raw.TensorListReserve(element_shape=[2, 3], num_elements=4, element_dtype=tf.float32), index=2, item=y)
        b = raw.TensorListSetItem(input_handle=raw.TensorListFromTensor(tensor=x, element_shape=[2, 3]), index=1, item=y)
        got = raw.TensorListGetItem(input_handle=b, index=3, element_shape=[2, 3], element_dtype=tf.float32)
        some = raw.TensorListGather(input_handle=b, indices=[1, 0], element_shape=[2, 3], element_dtype=tf.float32)
        stack = lambda v: raw.TensorListStack(input_handle=v, element_shape=[2, 3], element_dtype=tf.float32)  # noqa: E731
        joined = raw.TensorListConcatV2(input_handle=b, element_shape=[2, 3], leading_dims=np.zeros(0, np.int64), element_dtype=tf.float32)
        return [stack(a), stack(b), got, some, raw.TensorListLength(input_handle=a), raw.TensorListElementShape(input_handle=a, shape_type=tf.int64),
                joined[0], joined[1]]

    def grown(y):
        v = raw.EmptyTensorList(element_shape=[2, 3], max_num_elements=5, element_dtype=tf.float32)
        for k in (1.0, 2.0, 3.0):
            v = raw.TensorListPushBack(input_handle=v, tensor=y * k)
        v, last = raw.TensorListPopBack(input_handle=v, element_shape=[2, 3], element_dtype=tf.float32)
        _, before = raw.TensorListPopBack(input_handle=v, element_shape=[2, 3], element_dtype=tf.float32)
        return [last, before, raw.TensorListLength(input_handle=v)]

    def carried(x):
        """A loop that carries two lists."""
        out = raw.TensorListReserve(element_shape=[2, 3], num_elements=4, element_dtype=tf.float32)
        kept = raw.EmptyTensorList(element_shape=[2, 3], max_num_elements=4, element_dtype=tf.float32)
        given = raw.TensorListFromTensor(tensor=x, element_shape=[2, 3])

        def body(i, out, kept):
            e = raw.TensorListGetItem(input_handle=given, index=i, element_shape=[2, 3], element_dtype=tf.float32)
            return i + 1, raw.TensorListSetItem(input_handle=out, index=3 - i, item=e * 2.0), raw.TensorListPushBack(input_handle=kept, tensor=e)

        _, out, kept = tf.while_loop(lambda i, *_: i < 4, body, (0, out, kept))
        _, last = raw.TensorListPopBack(input_handle=kept, element_shape=[2, 3], element_dtype=tf.float32)
        return [raw.TensorListStack(input_handle=out, element_shape=[2, 3], element_dtype=tf.float32), last]

    def arrays(x, y):
        h, flow = raw.TensorArrayV3(size=4, dtype=tf.float32)
        flow = raw.TensorArrayWriteV3(handle=h, index=1, value=y, flow_in=flow)
        flow = raw.TensorArrayScatterV3(handle=h, indices=[3, 0, 2], value=x[:3], flow_in=flow)
        read = raw.TensorArrayReadV3(handle=h, index=3, flow_in=flow, dtype=tf.float32)
        some = raw.TensorArrayGatherV3(handle=h, indices=[1, 0, 2], flow_in=flow, dtype=tf.float32)
        size = raw.TensorArraySizeV3(handle=h, flow_in=flow)
        with tf.control_dependencies([read, some, size]):
            closed = raw.TensorArrayCloseV3(handle=h)
        with tf.control_dependencies([closed]):
            return [tf.identity(v) for v in (read, some, size)]

    def stacks(x, y):
        h = raw.StackV2(max_size=3, elem_type=tf.float32)
        a = raw.StackPushV2(handle=h, elem=x[0])
        with tf.control_dependencies([a]):
            b = raw.StackPushV2(handle=h, elem=y)
        with tf.control_dependencies([b]):
            one = raw.StackPopV2(handle=h, elem_type=tf.float32)
        with tf.control_dependencies([one]):
            other = raw.StackPopV2(handle=h, elem_type=tf.float32)
        with tf.control_dependencies([raw.StackCloseV2(handle=h, name="closed")]):
            return [one, other]

    r.graph("TensorList", items, [x, y])
    r.graph("TensorList/grown", grown, [y])
    r.graph("TensorArray", arrays, [x, y])
    r.graph("Stack", stacks, [x, y])
    tf.compat.v1.enable_control_flow_v2()
    r.graph("TensorList/loop", carried, [x])


def small(r):
    x, attrs = spread(2, 7, 6, 3), {"padding": "SAME"}
    ksize, strides = known([1, 3, 2, 1]), known([1, 2, 1, 1])
    r.op("MaxPoolV2", x, ksize, strides, **attrs)
    y = np.asarray(tf.raw_ops.MaxPoolV2(input=x, ksize=ksize.value, strides=strides.value, **attrs))
    r.op("MaxPoolGradV2", x, y, real(*y.shape), ksize, strides, **attrs)
    for low, high in ((-6.0, 6.0), (0.5, 3.0), (-4.0, -1.0), (-1.0, 10.0)):
        for more in ({}, {"num_bits": 4, "narrow_range": True}):
            name, v = f"{low}/{len(more)}", real(4, 3, low=-8, high=8)
            ends = np.float32(low), np.float32(high)
            each = np.array([low, low - 1, low], F32), np.array([high, high, high + 2], F32)
            r.op("FakeQuantWithMinMaxArgs", v, label=name, min=low, max=high, **more)
            r.op("FakeQuantWithMinMaxArgsGradient", real(4, 3), v, label=name, min=low, max=high, **more)
            r.op("FakeQuantWithMinMaxVars", v, *ends, label=name, **more)
            r.op("FakeQuantWithMinMaxVarsGradient", real(4, 3), v, *ends, label=name, **more)
            r.op("FakeQuantWithMinMaxVarsPerChannel", v, *each, label=name, **more)
            r.op("FakeQuantWithMinMaxVarsPerChannelGradient", real(4, 3), v, *each, label=name, **more)
    r.op("FakeQuantWithMinMaxVars", real(3), np.float32(0), np.float32(0), label="nothing")
    line = np.sort(below(9, 2, 6), 1)
    for op in ("LowerBound", "UpperBound"):
        r.op(op, line, below(11, 2, 4, low=-1))
        r.op(op, line.astype(F32), real(2, 5, low=-1, high=10), label="float", out_type=tf.int64)
    r.op("Bucketize", real(3, 4), boundaries=[-1.0, 0.0, 1.5])
    r.op("InTopKV2", spread(4, 6), below(6, 4), known(3))
    r.op("SparseToDense", np.array([[0, 1], [2, 3]], np.int32), known([3, 4]), real(2), np.float32(7))
    r.op("SparseToDense", np.array([1, 3], np.int64), known([5], np.int64), np.float32(2), np.float32(0), label="scalar")
    r.op("ToBool", real(2, 2))
    r.op("ToBool", np.float32(0), label="zero")
    r.op("DataFormatVecPermute", below(9, 4), src_format="NHWC", dst_format="NCHW")
    r.op("DataFormatVecPermute", below(9, 4, 2), label="pairs", src_format="NCHW", dst_format="NHWC")
    r.op("DataFormatDimMap", np.array([0, 1, 2, 3, -1, -3], np.int32), src_format="NHWC", dst_format="NCHW")


def record(r):
    for part in (convolutions, pooling, normalisation, losses, images, indices, diagonals, matrices, random_numbers, variables, lists, small):
        part(r)
