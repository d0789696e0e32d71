"""Quantised tensors: storage in and out, arithmetic on real values, per tensor, per axis and in blocks."""
import numpy as np
import pytest

import xlac


def run(text, *args):
    return xlac.interpret(xlac.parse(text), *args)


def round_trip(x, quant):
    shape = "x".join(map(str, x.shape))
    text = f"""func.func @main(%x: tensor<{shape}xf32>) -> (tensor<{shape}xi8>, tensor<{shape}xf32>) {{
  %0 = stablehlo.uniform_quantize %x : (tensor<{shape}xf32>) -> tensor<{shape}x{quant}>
  %1 = stablehlo.bitcast_convert %0 : (tensor<{shape}x{quant}>) -> tensor<{shape}xi8>
  %2 = stablehlo.uniform_dequantize %0 : (tensor<{shape}x{quant}>) -> tensor<{shape}xf32>
  return %1, %2 : tensor<{shape}xi8>, tensor<{shape}xf32>
}}"""
    return run(text, x)


def test_per_tensor():
    stored, real = round_trip(np.array([0, 0.25, 0.75, 100, -100], np.float32), "!quant.uniform<i8:f32, 0.5:-20>")
    np.testing.assert_array_equal(stored, [-20, -20, -18, 127, -128])
    np.testing.assert_array_equal(real, (stored.astype(np.float32) + 20) * 0.5)


def test_range():
    stored, _ = round_trip(np.array([100, -100, 1], np.float32), "!quant.uniform<i8<-7:7>:f32, 1.0>")
    np.testing.assert_array_equal(stored, [7, -7, 1])


def test_per_axis():
    x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    stored, real = round_trip(x, "!quant.uniform<i8:f32:1, {1.0, 0.5:10}>")
    np.testing.assert_array_equal(stored, [[1, 14], [3, 18], [5, 22]])
    np.testing.assert_array_equal(real, x)


def test_blocks_are_refused_before_the_run():
    """StableHLO's ops take no types quantised in blocks, so the verifier stops them."""
    with pytest.raises(xlac.VerifyError):
        round_trip(np.ones((2, 4), np.float32), "!quant.uniform<i8:f32:{0:1, 1:2}, {{1.0, 0.5}, {0.25, 2.0}}>")


def test_requantised():
    text = """func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> {
  %0 = stablehlo.bitcast_convert %x : (tensor<2xi8>) -> tensor<2x!quant.uniform<i8:f32, 0.5:-30>>
  %1 = stablehlo.uniform_quantize %0 : (tensor<2x!quant.uniform<i8:f32, 0.5:-30>>) -> tensor<2x!quant.uniform<i8:f32, 0.25:-20>>
  %2 = stablehlo.bitcast_convert %1 : (tensor<2x!quant.uniform<i8:f32, 0.25:-20>>) -> tensor<2xi8>
  return %2 : tensor<2xi8>
}"""
    np.testing.assert_array_equal(run(text, np.array([10, -30], np.int8)), [60, -20])


def test_arithmetic_is_on_real_values():
    a, b = "!quant.uniform<i8:f32, 0.5>", "!quant.uniform<i8:f32, 0.25:4>"
    text = f"""func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xi1>) {{
  %0 = stablehlo.uniform_quantize %x : (tensor<3xf32>) -> tensor<3x{a}>
  %1 = stablehlo.uniform_quantize %y : (tensor<3xf32>) -> tensor<3x{a}>
  %2 = stablehlo.add %0, %1 : (tensor<3x{a}>, tensor<3x{a}>) -> tensor<3x{b}>
  %3 = stablehlo.uniform_dequantize %2 : (tensor<3x{b}>) -> tensor<3xf32>
  %4 = stablehlo.compare LT, %0, %1 : (tensor<3x{a}>, tensor<3x{a}>) -> tensor<3xi1>
  return %3, %4 : tensor<3xf32>, tensor<3xi1>
}}"""
    total, less = run(text, np.array([1, 2.5, -3], np.float32), np.array([0.5, 3, 1], np.float32))
    np.testing.assert_array_equal(total, [1.5, 5.5, -2])
    np.testing.assert_array_equal(less, [False, True, True])


def test_movement_is_on_storage():
    q = "!quant.uniform<i8:f32, 0.5:3>"
    text = f"""func.func @main(%x: tensor<2x3xi8>) -> tensor<3x2xi8> {{
  %0 = stablehlo.bitcast_convert %x : (tensor<2x3xi8>) -> tensor<2x3x{q}>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3x{q}>) -> tensor<3x2x{q}>
  %2 = stablehlo.bitcast_convert %1 : (tensor<3x2x{q}>) -> tensor<3x2xi8>
  return %2 : tensor<3x2xi8>
}}"""
    x = np.arange(6, dtype=np.int8).reshape(2, 3)
    np.testing.assert_array_equal(run(text, x), x.T)


@pytest.mark.parametrize("hybrid", [False, True])
def test_dot(hybrid):
    a = "f32" if hybrid else "!quant.uniform<i8:f32, 0.5>"
    b = "!quant.uniform<i8<-127:127>:f32:1, {1.0, 0.25}>"
    r = "f32" if hybrid else "!quant.uniform<i32:f32:1, {0.5, 0.125}>"
    quantise = "" if hybrid else f"%p = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x{a}>"
    give = "" if hybrid else f"%s = stablehlo.uniform_dequantize %r : (tensor<2x2x{r}>) -> tensor<2x2xf32>"
    p, s = ("%x", "%r") if hybrid else ("%p", "%s")
    text = f"""func.func @main(%x: tensor<2x2xf32>, %y: tensor<2x2xf32>) -> tensor<2x2xf32> {{
  {quantise}
  %q = stablehlo.uniform_quantize %y : (tensor<2x2xf32>) -> tensor<2x2x{b}>
  %r = stablehlo.dot_general {p}, %q, contracting_dims = [1] x [0] : (tensor<2x2x{a}>, tensor<2x2x{b}>) -> tensor<2x2x{r}>
  {give}
  return {s} : tensor<2x2xf32>
}}"""
    x, y = np.array([[1, 2], [3, -4.5]], np.float32), np.array([[2, 0.25], [1, -0.5]], np.float32)
    np.testing.assert_array_equal(run(text, x, y), x @ y)


Q, FINE = "!quant.uniform<i8:f32, 0.5:-3>", "!quant.uniform<i16:f32, 0.125>"


def stored(x, scale, zero, low, high):
    return np.clip(np.rint(x / np.float32(scale) + np.float32(zero)), low, high)


@pytest.mark.parametrize("q, scale, zero, storage", [(Q, 0.5, -3, np.int8), (FINE, 0.125, 0, np.int16)])
@pytest.mark.parametrize("op", ["training", "grad"])
def test_batch_norm(op, q, scale, zero, storage):
    """Dequantised, computed, and every result quantised."""
    args = [(3, 4), (4,), (4,)] if op == "training" else [(3, 4), (4,), (4,), (4,), (3, 4)]
    shape = {2: "tensor<3x4x%s>", 1: "tensor<4x%s>"}
    types = [shape[len(s)] % q for s in args]
    outs = [shape[n] % q for n in (2, 1, 1)]
    bits = f"i{np.dtype(storage).itemsize * 8}"
    lines = [f"%q{i} = stablehlo.uniform_quantize %a{i} : ({t.replace(q, 'f32')}) -> {t}" for i, t in enumerate(types)]
    lines.append(f'%v:3 = "stablehlo.batch_norm_{op}"({", ".join(f"%q{i}" for i in range(len(types)))}) '
                 f'{{epsilon = 0.25 : f32, feature_index = 1 : i64}} : ({", ".join(types)}) -> ({", ".join(outs)})')
    lines += [f"%s{i} = stablehlo.bitcast_convert %v#{i} : ({t}) -> {t.replace(q, bits)}" for i, t in enumerate(outs)]
    text = (f"func.func @main({', '.join(f'%a{i}: ' + t.replace(q, 'f32') for i, t in enumerate(types))}) -> "
            f"({', '.join(t.replace(q, bits) for t in outs)}) {{\n  " + "\n  ".join(lines) +
            f"\n  return %s0, %s1, %s2 : {', '.join(t.replace(q, bits) for t in outs)}\n}}")
    rng = np.random.default_rng(1)
    real = [rng.uniform(0.5, 9, s).astype(np.float32) for s in args]
    low, high = np.iinfo(storage).min, np.iinfo(storage).max
    x, *rest = [(stored(r, scale, zero, low, high) - zero) * np.float64(scale) for r in real]
    if op == "training":
        mean, variance = x.mean(0), x.var(0)
        want = [(x - mean) / np.sqrt(variance + 0.25) * rest[0] + rest[1], mean, variance]
    else:
        factor, mean, variance, g = rest
        d, s = x - mean, variance + 0.25
        want = [factor / np.sqrt(s) * (g - g.mean(0) - d * (g * d).mean(0) / s), (g * d).sum(0) / np.sqrt(s), g.sum(0)]
    for got, expected in zip(run(text, *real), want, strict=True):
        assert got.dtype == storage
        np.testing.assert_array_equal(got, stored(expected.astype(np.float32), scale, zero, low, high))
