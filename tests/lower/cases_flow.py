"""Cases of data flow, elementwise ops, reductions, products, shapes, control flow. For record.py."""
import ml_dtypes
import numpy as np
import tensorflow as tf
from record import known

FLOATS = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
INTS = (np.int32, np.int64, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64)
COMPLEX = (np.complex64, np.complex128)
RNG = np.random.default_rng(1)
INF, NAN = float("inf"), float("nan")


def label(dtype):
    return np.dtype(dtype).name


def number(dtype, shape=(2, 3), low=-2.0, high=2.0):
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return RNG.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return RNG.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)
    x = RNG.uniform(low, high, shape)
    if dtype.kind == "c":
        x = x + 1j * RNG.uniform(low, high, shape)
    return np.asarray(x).astype(dtype)


def special(dtype):
    return np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 2.5, INF, -INF, NAN, 30.0, -30.0], dtype)


def unary(r):
    anywhere = "Neg Abs Sign Square Sin Cos Exp Expm1 Tanh Sigmoid Reciprocal Inv Sinh Cosh Asinh Atan".split()
    for op in anywhere:
        for t in FLOATS:
            r.op(op, number(t), label=label(t))
        r.op(op, special(np.float32), label="special")
        r.op(op, np.zeros((0, 3), np.float32), label="empty")
    for op in "Neg Abs Sign Square".split():
        for t in (np.int32, np.int64, np.int8, np.int16):
            r.op(op, number(t), label=label(t))
    for op in "Neg Square Exp Log Sqrt Rsqrt Sin Cos Tan Tanh Sigmoid Sinh Cosh Sign Log1p Expm1 Reciprocal Asin Acos Atan Asinh Acosh Atanh".split():
        r.op(op, number(np.complex64), label="complex64")
    for op in "Log Log1p Sqrt Rsqrt Lgamma Digamma".split():
        for t in FLOATS:
            r.op(op, number(t, low=0.1, high=4.0), label=label(t))
        r.op(op, special(np.float32), label="special")
    for op, low, high in (("Asin", -1, 1), ("Acos", -1, 1), ("Atanh", -0.9, 0.9), ("Acosh", 1, 3), ("Tan", -1, 1), ("Erfinv", -0.9, 0.9),
                          ("Ndtri", 0.1, 0.9), ("Erf", -3, 3), ("Erfc", -3, 3), ("BesselI1e", -3, 3)):
        for t in FLOATS:
            r.op(op, number(t, low=low, high=high), label=label(t))
    for op in "Erf Erfc Erfinv Tan Asin Acos Acosh Atanh".split():
        r.op(op, special(np.float32), label="special")
    for op in "Floor Ceil Rint Round".split():
        for t in FLOATS:
            r.op(op, (number(t) * 3).astype(t), label=label(t))
        r.op(op, special(np.float32), label="special")
    for op in "IsNan IsInf IsFinite".split():
        for t in FLOATS:
            r.op(op, special(t), label=label(t))
    r.op("LogicalNot", number(bool))
    for t in INTS:
        r.op("Invert", number(t), label=label(t))
        r.op("PopulationCount", number(t), label=label(t))
    for op in "Real Imag Angle ComplexAbs".split():
        for t, out in ((np.complex64, tf.float32), (np.complex128, tf.float64)):
            r.op(op, number(t), label=label(t), Tout=out)
    for t in COMPLEX:
        r.op("Conj", number(t), label=label(t))
    r.op("Complex", number(np.float32), number(np.float32, (3,)))


def activations(r):
    for op in "Relu Relu6 Elu Selu Softplus Softsign".split():
        for t in FLOATS:
            r.op(op, number(t, low=-8, high=8), label=label(t))
        r.op(op, special(np.float32), label="special")
    for t in FLOATS:
        r.op("LeakyRelu", number(t), label=label(t), alpha=0.3)
        r.op("Softplus", number(t, low=-40, high=40), label=f"wide/{label(t)}")
    for op in ("ReluGrad", "Relu6Grad", "SoftplusGrad", "SoftsignGrad", "EluGrad", "SeluGrad", "SigmoidGrad", "TanhGrad", "RsqrtGrad",
               "SqrtGrad", "ReciprocalGrad", "InvGrad"):
        for t in FLOATS:
            r.op(op, number(t, low=0.2, high=7.5) * np.array([[1], [1 if op in ("RsqrtGrad", "SqrtGrad") else -1]], t), number(t), label=label(t))
    for t in FLOATS:
        r.op("LeakyReluGrad", number(t), number(t), label=label(t), alpha=0.3)
    r.op("Relu", number(np.int32), label="int32")


def binary(r):
    shapes = (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2)), ((0, 3), (1, 3)), ((4, 1, 2), (3, 1)))
    for op in "Add AddV2 Sub Mul RealDiv Div Maximum Minimum SquaredDifference DivNoNan MulNoNan".split():
        for t in FLOATS:
            for a, b in shapes if t is np.float32 else shapes[:2]:
                r.op(op, number(t, a), number(t, b), label=label(t))
        r.op(op, number(np.complex64), number(np.complex64), label="complex64")
        r.op(op, special(np.float32), special(np.float32)[::-1].copy(), label="special")
    zeros = np.array([0, 1, 0, -2, NAN, INF], np.float32)
    for op in "DivNoNan MulNoNan Xlogy Xdivy Xlog1py".split():
        r.op(op, zeros, np.array([0, 0, INF, 0, 0, NAN], np.float32), label="zeros")
        r.op(op, np.zeros(6, np.float32), zeros, label="zero")
    for op in "Xlogy Xdivy Xlog1py Atan2 NextAfter Polygamma Zeta".split():
        for t in (np.float32, np.float64):
            r.op(op, number(t, low=1.1, high=3).round() if op == "Polygamma" else number(t, low=1.1, high=3), number(t, low=0.2, high=3), label=label(t))
    r.op("Atan2", special(np.float32), special(np.float32)[::-1].copy(), label="special")
    for t in FLOATS:
        r.op("Pow", number(t, low=0.2, high=2), number(t), label=label(t))
        for op in "FloorDiv FloorMod Mod TruncateMod".split():
            r.op(op, number(t, (40,), -9, 9), number(t, (40,), 0.5, 3), label=label(t))
            r.op(op, number(t, (40,), -9, 9), number(t, (40,), -3, -0.5), label=f"negative/{label(t)}")
    r.op("FloorMod", np.array([1, -1, 5, 0, 3, INF, NAN], np.float32), np.array([INF, INF, -INF, 3, NAN, 3, 1], np.float32), label="special")
    r.op("Pow", special(np.float32), np.full(13, 2.5, np.float32), label="special")
    r.op("Pow", np.array([2, 3, -2, 1, -1, 0], np.int32), np.array([3, 2, 3, 0, 5, 0], np.int32), label="int32")
    r.op("Pow", number(np.complex64), number(np.complex64), label="complex64")
    for t in INTS:
        signs = [-7, 7, -7, 7, -6, 6, 0, 1, -1] if np.dtype(t).kind == "i" else [7, 7, 9, 8, 6, 6, 0, 1, 255]
        by = [2, -2, -2, 2, 3, -3, 5, -3, 3] if np.dtype(t).kind == "i" else [2, 3, 4, 2, 3, 6, 5, 3, 7]
        for op in "FloorDiv FloorMod Mod TruncateDiv TruncateMod Div".split():
            r.op(op, np.array(signs, t), np.array(by, t), label=label(t))
        for op in "AddV2 Sub Mul Maximum Minimum SquaredDifference".split():
            r.op(op, number(t), number(t), label=label(t))
        for op in "BitwiseAnd BitwiseOr BitwiseXor".split():
            r.op(op, number(t), number(t), label=label(t))
        for op in "LeftShift RightShift".split():
            r.op(op, number(t), np.array([[0, 1, 2], [3, 4, 5]], t), label=label(t))
        for op in "Equal NotEqual Less LessEqual Greater GreaterEqual".split():
            r.op(op, number(t), number(t, (3,)), label=label(t))
    for op in "Equal NotEqual Less LessEqual Greater GreaterEqual".split():
        for t in FLOATS:
            r.op(op, special(t), special(t)[::-1].copy(), label=label(t))
        r.op(op, number(np.float32, (2, 1)), number(np.float32, (1, 3)), label="broadcast")
    for op in "Equal NotEqual".split():
        r.op(op, number(bool), number(bool), label="bool")
        r.op(op, number(np.complex64), number(np.complex64), label="complex64")
        r.op(op, number(np.float32, (2,)), number(np.float32, (3,)), label="misfit", incompatible_shape_error=False)
    for op in "LogicalAnd LogicalOr".split():
        r.op(op, number(bool), number(bool, (3,)))
    r.op("ApproximateEqual", np.array([1, 2, NAN], np.float32), np.array([1.05, 2.5, NAN], np.float32), tolerance=None)


def other_elementwise(r):
    every = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.int64, np.int8, np.uint8, np.bool_, np.complex64)
    for a in every:
        for b in every:
            r.op("Cast", number(a, low=0 if np.dtype(b).kind == "u" else -2), label=f"{label(a)}-{label(b)}", DstT=tf.as_dtype(b))
    r.op("Cast", np.array([2.7, -2.7, 0.0, 3.5], np.float32), label="truncates", DstT=tf.int32)
    r.op("Cast", np.array([0.1, 0.0, NAN], np.float32), label="bool", DstT=tf.bool)
    r.op("Bitcast", number(np.float32), label="same", type=tf.int32)
    r.op("Bitcast", number(np.float32), label="smaller", type=tf.uint8)
    r.op("Bitcast", number(np.uint8, (3, 4)), label="larger", type=tf.int32)
    for t in (np.float32, np.int32):
        r.op("Select", number(bool), number(t), number(t), label=label(t))
        r.op("Select", number(bool, (2,)), number(t), number(t), label=f"vector/{label(t)}")
        r.op("Select", number(bool, ()), number(t), number(t), label=f"scalar/{label(t)}")
        r.op("SelectV2", number(bool, (2, 1)), number(t, (3,)), number(t, ()), label=label(t))
        r.op("ClipByValue", number(t), np.array(-1, t), np.array(1, t), label=label(t))
        r.op("AddN", [number(t), number(t), number(t)], label=label(t))
        r.op("ZerosLike", number(t), label=label(t))
        r.op("OnesLike", number(t), label=label(t))
    r.op("ClipByValue", number(np.float32), number(np.float32) - 2, number(np.float32) + 2, label="full")
    r.op("AddN", [number(np.float32)], label="one")
    r.op("AccumulateNV2", [number(np.float32), number(np.float32)], shape=[2, 3])
    r.op("Identity", number(np.float32))
    r.op("IdentityN", [number(np.float32), number(np.int32)])
    for op in "Snapshot StopGradient PreventGradient".split():
        r.op(op, number(np.float32))
    r.op("CheckNumerics", number(np.float32), message="bad")
    r.op("DeviceIndex", device_names=["GPU", "CPU"])
    r.op("DeviceIndex", device_names=["TPU", "GPU"])
    r.op("EnsureShape", number(np.float32), shape=[2, None])


def reductions(r):
    for op in "Sum Mean Prod Max Min EuclideanNorm".split():
        for t in FLOATS + (np.int32, np.int64, np.uint8, np.complex64):
            if op == "EuclideanNorm" and np.dtype(t).kind in "iu":
                continue
            for axes, keep in (([0], False), ([-1], True), ([0, 1], False)) if t is not np.float32 else (
                    ([0], False), ([1], True), ([-1, 0], False), ([], False), ([0, 1], True), (0, False)):
                r.op(op, number(t), known(axes), label=label(t), keep_dims=keep)
        r.op(op, number(np.float32, (0, 3)), known([0]), label="empty")
        r.op(op, number(np.float32, (3, 0)), known([0], np.int64), label="empty")
        r.op(op, special(np.float32), known([0]), label="special")
    r.op("Mean", number(np.float16, (3000,), 0, 4), known([0]), label="wide")
    r.op("Sum", number(ml_dtypes.bfloat16, (1000,), 0, 4), known([0]), label="wide")
    for op in "All Any".split():
        for axes in ([0], [1], [0, 1], []):
            r.op(op, number(bool), known(axes), keep_dims=len(axes) == 1)
        r.op(op, np.zeros((0, 2), bool), known([0]), label="empty")
    for t in FLOATS:
        r.op("L2Loss", number(t), label=label(t))
    ties = np.array([[1, 3, 3], [2, 2, 0]])
    for op in "ArgMax ArgMin".split():
        for t in FLOATS + (np.int32, np.uint8):
            r.op(op, ties.astype(t), known(1), label=label(t))
        r.op(op, ties.astype(np.float32), known(-2), label="axis", output_type=tf.int32)
        r.op(op, np.array([1, NAN, 3], np.float32), known(0), label="nan")
    for op in "Cumsum Cumprod".split():
        for t in FLOATS + (np.int32,):
            r.op(op, number(t, (3, 4)), known(1), label=label(t))
        for exclusive in (False, True):
            for reverse in (False, True):
                r.op(op, number(np.float32, (3, 4)), known(-2), exclusive=exclusive, reverse=reverse, label="flags")
        r.op(op, number(np.float32, (0, 4)), known(0), label="empty")
    for exclusive in (False, True):
        for reverse in (False, True):
            r.op("CumulativeLogsumexp", number(np.float32, (3, 4)), known(1), exclusive=exclusive, reverse=reverse)


def products(r):
    for t in FLOATS + (np.int32, np.complex64):
        for ta in (False, True):
            for tb in (False, True) if t is np.float32 else (ta,):
                r.op("MatMul", number(t, (3, 2) if ta else (2, 3)), number(t, (4, 3) if tb else (3, 4)), transpose_a=ta, transpose_b=tb, label=label(t))
    r.op("MatMul", number(np.float32, (2, 0)), number(np.float32, (0, 3)), label="empty")
    r.op("MatMul", number(np.float32, (0, 2)), number(np.float32, (2, 3)), label="none")
    for op in "BatchMatMul BatchMatMulV2".split():
        for t in (np.float32, np.float64, np.int32, np.complex64):
            r.op(op, number(t, (2, 3, 4)), number(t, (2, 4, 5)), label=label(t))
        r.op(op, number(np.complex64, (2, 4, 3)), number(np.complex64, (2, 5, 4)), adj_x=True, adj_y=True, label="adjoint")
        r.op(op, number(np.float32, (2, 4, 3)), number(np.float32, (2, 4, 5)), adj_x=True, label="adjoint")
    r.op("BatchMatMulV2", number(np.float32, (2, 1, 3, 4)), number(np.float32, (5, 4, 2)), label="broadcast")
    r.op("BatchMatMulV2", number(np.float32, (3, 4)), number(np.float32, (5, 4, 2)), label="broadcast")
    r.op("BatchMatMulV3", number(np.float32, (2, 3, 4)), number(np.float32, (4, 2)), label="broadcast", Tout=tf.float32)
    for equation, shapes in (("ij,jk->ik", ((2, 3), (3, 4))), ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))), ("ij->ji", ((2, 3),)),
                             ("ij->i", ((2, 3),)), ("ii->i", ((3, 3),)), ("ii->", ((3, 3),)), ("ij,ij->", ((2, 3), (2, 3))),
                             ("i,j->ij", ((2,), (3,))), ("...ij,jk->...ik", ((2, 5, 3, 4), (4, 2))), ("aecd,abcd->acbe", ((2, 3, 4, 5), (2, 6, 4, 5))),
                             ("acbe,aecd->abcd", ((2, 4, 6, 3), (2, 3, 4, 5))), ("abc,cde->abde", ((2, 3, 4), (4, 5, 6))),
                             ("...i,...i->...", ((3, 1, 4), (2, 4))), ("abij,b->aij", ((2, 3, 4, 5), (3,))), ("iij,jk->ik", ((3, 3, 2), (2, 4))),
                             ("ij,kl->jl", ((2, 3), (4, 5)))):
        r.op("Einsum", [number(np.float32, s) for s in shapes], equation=equation, label=equation)


def shapes(r):
    x = number(np.float32, (2, 3, 4))
    for shape in ([6, 4], [-1], [2, -1, 2, 2], [24, 1]):
        r.op("Reshape", x, known(shape))
    r.op("Reshape", number(np.float32, (0, 3)), known([-1, 3], np.int64), label="empty")
    r.op("Reshape", np.array([3.0], np.float32), known([]), label="scalar")
    for axis in (0, -1, 2, 3):
        r.op("ExpandDims", x, known(axis))
    r.op("Squeeze", number(np.float32, (1, 3, 1)), axis=[])
    r.op("Squeeze", number(np.float32, (1, 3, 1)), axis=[-1])
    r.op("Transpose", x, known([2, 0, 1]))
    r.op("ConjugateTranspose", number(np.complex64, (2, 3)), known([1, 0]))
    for out in (tf.int32, tf.int64):
        r.op("Shape", x, out_type=out)
        r.op("Size", x, out_type=out)
        r.op("ShapeN", [x, x[0]], out_type=out)
    r.op("Rank", x)
    r.op("BroadcastTo", number(np.float32, (3, 1)), known([2, 3, 4]))
    r.op("BroadcastArgs", known([2, 1]), known([3, 1, 5]))
    r.op("BroadcastGradientArgs", known([2, 1, 5]), known([4, 5]))
    r.op("BroadcastGradientArgs", known([]), known([4, 5]))
    r.op("BroadcastGradientArgs", known([1, 1]), known([1]))
    r.op("BroadcastGradientArgs", known([1, 2]), known([1, 2]))
    r.op("BroadcastGradientArgs", known([1, 2]), known([1, 1]))
    r.op("Fill", known([2, 3]), np.array(7, np.float32))
    r.op("Fill", known([], np.int64), np.array(7, np.int32))
    r.op("Range", known(2), known(11), known(3))
    r.op("Range", known(5), known(-4), known(-2))
    r.op("Range", known(0.5, np.float32), known(2.0, np.float32), known(0.25, np.float32))
    r.op("Range", known(3), known(3), known(1), label="empty")
    r.op("LinSpace", np.array(1, np.float32), np.array(2, np.float32), known(5))
    r.op("LinSpace", np.array(1, np.float32), np.array(2, np.float32), known(1))
    for axis in (-1, 0, 1):
        r.op("OneHot", np.array([[0, 2], [-1, 5]], np.int32), known(3), np.array(2, np.float32), np.array(-1, np.float32), axis=axis)
    r.op("OneHot", np.array([0, 2, 1], np.uint8), known(3), np.array(1, np.int32), np.array(0, np.int32))
    r.op("OneHot", np.array([3, 255], np.uint8), known(300), np.array(1, np.float32), np.array(0, np.float32), label="deep")
    r.op("Tile", number(np.float32, (2, 3)), known([2, 1]))
    r.op("Tile", number(np.float32, (2, 3)), known([3, 2], np.int64))
    r.op("Tile", number(np.float32, (2, 3)), known([0, 2]), label="empty")
    r.op("InvertPermutation", known([2, 0, 1]))
    r.op("InvertPermutation", np.array([3, 0, 2, 1], np.int32), label="unknown")


def pieces(r):
    a, b, c = number(np.float32, (2, 3)), number(np.float32, (2, 1)), number(np.float32, (2, 4))
    r.op("ConcatV2", [a, b, c], known(1))
    r.op("ConcatV2", [a, a], known(-2))
    r.op("Concat", known(1), [a, b])
    r.op("ConcatV2", [a, np.zeros((2, 0), np.float32)], known(1), label="empty")
    r.op("ConcatOffset", known(1), [known([2, 3]), known([2, 1]), known([2, 4])])
    for axis in (0, 1, -1, -3):
        r.op("Pack", [a, a + 1], axis=axis)
        r.op("Unpack", number(np.float32, (3, 3, 3)), axis=axis, num=3)
    r.op("Pack", [np.array(1, np.int32), np.array(2, np.int32)], label="scalars")
    r.op("ParallelConcat", [a[:1], c[:1, :3]], shape=[2, 3])
    for axis in (0, -1):
        r.op("Split", known(axis), number(np.float32, (4, 6)), num_split=2)
    r.op("SplitV", number(np.float32, (4, 6)), known([1, 2, 3]), known(1), num_split=3)
    r.op("SplitV", number(np.float32, (4, 6)), known([1, -1], np.int64), known(0), num_split=2)
    x = number(np.float32, (4, 5, 6))
    r.op("Slice", x, known([1, 0, 2]), known([2, -1, 3]))
    r.op("Slice", x, np.array([1, 0, 2], np.int32), known([2, 5, 3]), label="dynamic")
    strided(r, x)
    for op, more in (("Pad", ()), ("PadV2", (np.array(9, np.float32),))):
        r.op(op, a, known([[1, 0], [2, 3]]), *more)
    for mode in ("REFLECT", "SYMMETRIC"):
        r.op("MirrorPad", number(np.float32, (3, 4)), known([[1, 2], [2, 1]]), mode=mode)
        r.op("MirrorPadGrad", number(np.float32, (6, 7)), known([[1, 2], [2, 1]]), mode=mode)
    r.op("ReverseV2", x, known([0, -1]))
    r.op("ReverseV2", x, known([]))
    r.op("Reverse", x, known([True, False, True], bool))
    r.op("Roll", x, known([1, -2]), known([0, 2]))
    r.op("Roll", x, np.array(7, np.int32), known(1), label="unknown")


def strided(r, x):
    cases = (([1], [3], [1], {}), ([0, 1], [4, 5], [2, 3], {}), ([-1, -1], [-5, -6], [-1, -2], {}),
             ([1, 0, 2], [2, 0, 5], [1, 1, 2], {"shrink_axis_mask": 1, "end_mask": 2}), ([0, 0], [0, 0], [1, 1], {"begin_mask": 3, "end_mask": 3}),
             ([0, 2], [0, 4], [1, 1], {"ellipsis_mask": 1}), ([0, 0, 1], [0, 0, 3], [1, 1, 1], {"new_axis_mask": 1, "begin_mask": 2, "end_mask": 2}),
             ([0, 0, 3], [0, 0, 4], [1, 1, 1], {"ellipsis_mask": 1, "new_axis_mask": 2, "shrink_axis_mask": 4}), ([2], [-1], [1], {}),
             ([100], [-100], [-1], {}), ([3], [1], [1], {}), ([-2], [0], [1], {"shrink_axis_mask": 1}))
    for begin, end, strides, masks in cases:
        r.op("StridedSlice", x, known(begin), known(end), known(strides), **masks)
        with tf.Graph().as_default():
            shape = tf.raw_ops.StridedSlice(input=tf.constant(x), begin=begin, end=end, strides=strides, **masks).shape.as_list()
        r.op("StridedSliceGrad", known(x.shape), known(begin), known(end), known(strides), number(np.float32, shape), **masks)
        r.op("TensorStridedSliceUpdate", x, known(begin), known(end), known(strides), number(np.float32, shape), **masks)
    r.op("StridedSlice", x, np.array([2], np.int32), np.array([3], np.int32), known([1]), shrink_axis_mask=1, label="dynamic")
    r.op("StridedSlice", x, np.array([0, -2], np.int32), np.array([0, -1], np.int32), known([1, 1]), shrink_axis_mask=2, begin_mask=1, end_mask=1,
         label="dynamic")


def chains(r):
    """Shapes that graphs compute: they must be known when the graph is lowered."""
    x = number(np.float32, (2, 3, 4))

    def flatten(t):
        shape = tf.shape(t)
        return tf.reshape(t, tf.stack([shape[0], shape[1] * shape[2]]))

    def mean_shape(t):
        return tf.reshape(t, [tf.reduce_prod(tf.shape(t)[:-1]), -1])

    def tile(t):
        return tf.tile(t, tf.concat([tf.ones_like(tf.shape(t)[:2]), [2]], 0))

    def sizes(t):
        return tf.range(tf.size(t)) + tf.shape(t)[0] // 2, tf.fill(tf.shape(t)[1:] * 2, 1.5), tf.zeros(tf.maximum(tf.shape(t), 3))

    def cast(t):
        return t / tf.cast(tf.shape(t)[-1], tf.float32), tf.linspace(0.0, 1.0, tf.rank(t))

    for name, build in (("flatten", flatten), ("prod", mean_shape), ("tile", tile), ("sizes", sizes), ("cast", cast)):
        r.graph(f"chain/{name}", build, [x])

    @tf.function
    def inner(t, n):
        return tf.reshape(t, [n, -1]) * 2.0

    r.graph("chain/function", lambda t: inner(t, tf.shape(t)[1]), [x])


def control(r):
    x, n = number(np.float32, (3,)), np.array(5, np.int32)
    for p in (True, False):
        for label, cond in (("If", lambda p, x: tf.cond(p, lambda: x * 2 + 1, lambda: tf.tanh(x))),
                            ("If/captures", lambda p, x: tf.cond(p, lambda: x, lambda: x - tf.cond(p, lambda: x, lambda: x * 3)))):
            r.graph(f"{label}/{p}", tf.function(cond), [np.array(p), x])
    for k in (0, 1, 2, 7, -3):
        r.graph(f"Case/{k}", tf.function(lambda i, x: tf.switch_case(i, [lambda: x, lambda: x * 2, lambda: x + 7])), [np.array(k, np.int32), x])

    def gradient(p, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.cond(p, lambda: tf.tanh(x) * x, lambda: tf.reduce_sum(tf.exp(x[:2]) * x[1:]) * x)
        return tape.gradient(y, x)

    for p in (True, False):
        r.graph(f"If/gradient/{p}", tf.function(gradient, jit_compile=True, input_signature=[tf.TensorSpec([], tf.bool), tf.TensorSpec([None], tf.float32)]), [np.array(p), x])

    def powers(n, x):
        return tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * x + tf.reshape(tf.range(3.0), tf.shape(x))), (0, x))

    def nested(n, x):
        def outer(i, a):
            _, b = tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b + 1.0), (0, a))
            return i + 1, b * 0.5
        return tf.while_loop(lambda i, a: i < n, outer, (0, x))

    def in_cond(n, x):
        return tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, tf.cond(tf.equal(i % 2, 0), lambda: a + x, lambda: a * 2)), (0, x))

    r.graph("While/powers", tf.function(powers), [n, x])
    r.graph("While/none", tf.function(powers), [np.array(-1, np.int32), x])
    r.graph("While/nested", tf.function(nested), [n, x])
    r.graph("While/cond", tf.function(in_cond), [n, x])

    def slices(x):
        rows = tf.shape(x)[0]
        return tf.while_loop(lambda i, a: i < rows, lambda i, a: (i + 1, a + x[i]), (0, tf.zeros_like(x[0])))

    def columns(x):
        return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + x[1:3, i] + x[-i, 0:2]), (0, tf.zeros_like(x[0, :2])))

    r.graph("While/columns", tf.function(columns), [number(np.float32, (4, 3))])
    r.graph("While/slices", tf.function(slices), [number(np.float32, (4, 3))])


def variables(r):
    """Variables: an input each, and what the graph leaves in them."""
    x = number(np.float32, (3,))
    start = {"v": np.array([1, 2, 3], np.float32)}

    def step(v, x):
        return tf.function(lambda: (v.assign_add(x), v * 2)[1])()

    def swap(v, x):
        old = v.read_value()
        with tf.control_dependencies([old]):
            return v.assign(x) - old

    def loop(v, x):
        @tf.function
        def run(x):
            for _ in tf.range(3):
                v.assign(v * 2 + x)
            return v.read_value() + 1
        return run(x)

    def branch(v, x):
        @tf.function
        def run(x):
            if tf.reduce_sum(x) > 100:
                v.assign(x)
            elif tf.reduce_sum(v) > 0:
                v.assign_sub(x * 2)
            return tf.identity(v)
        return run(x)

    def reads_in_loop(v, x):
        return tf.function(lambda x: tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a + v), (0, x)))(x)

    for name, build in (("add", step), ("swap", swap), ("loop", loop), ("branch", branch), ("reads", reads_in_loop)):
        r.variables(f"variable/{name}", build, [x], start)


def record(r):
    for part in (unary, activations, binary, other_elementwise, reductions, products, shapes, pieces, chains, control, variables):
        part(r)
