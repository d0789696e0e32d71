"""The passes on quantised programs: what they leave is valid, gives the interpreter's values and reaches XLA."""
import itertools
import pathlib
import sys

import numpy as np
import pytest

import xlac

MATH = "stablehlo-legalize-quant-to-math"
APART = "stablehlo-legalize-quantized-op-to-qdq"
TOGETHER = "stablehlo-legalize-qdq-to-quantized-op"
RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def xla():
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "oracle"))
    pytest.importorskip("jax")
    return pytest.importorskip("real_xla")


def leaves(results):
    return [np.asarray(r) for r in (results if isinstance(results, tuple) else (results,))]


def run(text, passes):
    """The module after the passes, verified after each, and read back from its own text."""
    module = xlac.parse(text, format="mlir")
    module.verify()
    out = module.run(passes, verify_each=True)
    printed = out.to_text()
    assert xlac.parse(printed, format="mlir").to_text() == printed
    return out


def arithmetic(text, passes=MATH):
    out = run(text, passes)
    assert "!quant" not in out.to_text()
    return out


def shaped(shape, element):
    return "tensor<" + "".join(f"{d}x" for d in shape) + element + ">"


def program(body, types, results):
    """A @main of quantised `body` whose arguments %0.. are real and become %q0.. of `types` (shape, element), and whose
    results are (value, shape, quantised element): what they store, and their real values."""
    args = ", ".join(f"%a{i}: {shaped(s, 'f32')}" for i, (s, _) in enumerate(types))
    lines, gives, kinds = [], [], []
    for i, (s, q) in enumerate(types):
        lines.append(f"%q{i} = stablehlo.uniform_quantize %a{i} : ({shaped(s, 'f32')}) -> {shaped(s, q)}"
                     if q != "f32" else f"%q{i} = stablehlo.negate %a{i} : {shaped(s, 'f32')}")
    lines.append(body)
    for i, (v, s, q) in enumerate(results):
        if not q.startswith("!"):
            gives, kinds = gives + [v], kinds + [shaped(s, q)]
            continue
        stored = q.split("<", 1)[1].split(":")[0].split("<")[0].replace("u", "ui")
        lines.append(f"%s{i} = stablehlo.bitcast_convert {v} : ({shaped(s, q)}) -> {shaped(s, stored)}")
        lines.append(f"%r{i} = stablehlo.uniform_dequantize {v} : ({shaped(s, q)}) -> {shaped(s, 'f32')}")
        gives, kinds = gives + [f"%s{i}", f"%r{i}"], kinds + [shaped(s, stored), shaped(s, "f32")]
    return (f"func.func @main({args}) -> ({', '.join(kinds)}) {{\n  " + "\n  ".join(lines) +
            f"\n  return {', '.join(gives)} : {', '.join(kinds)}\n}}")


def binary(op, s, a, b, c):
    return f"%v = stablehlo.{op} %q0, %q1 : ({shaped(s, a)}, {shaped(s, b)}) -> {shaped(s, c)}"


I8, I8B, I8C = "!quant.uniform<i8:f32, 0.5:3>", "!quant.uniform<i8:f32, 0.3:-7>", "!quant.uniform<i8:f32, 0.37:11>"
RANGE = "!quant.uniform<i8<-20:15>:f32, 0.7:11>"
U8, I4, I32, I16 = ("!quant.uniform<u8:f32, 0.25:128>", "!quant.uniform<i4:f32, 0.5:-2>", "!quant.uniform<i32:f32, 0.01:5>",
                    "!quant.uniform<i16:f32, 0.001>")
AXIS0 = "!quant.uniform<i8:f32:0, {0.5:3, 0.25:-4, 1.0}>"
AXIS1 = "!quant.uniform<i8:f32:1, {0.5, 0.25, 1.0, 0.75}>"
AXIS1R = "!quant.uniform<i32:f32:1, {0.1, 0.05, 0.3, 0.25:2}>"
S = (3, 4)

CASES = {
    "sum of one type": program(binary("add", S, I8, I8, I8), [(S, I8), (S, I8)], [("%v", S, I8)]),
    "sum of three types": program(binary("add", S, I8, I8B, I8C), [(S, I8), (S, I8B)], [("%v", S, I8C)]),
    "sum by axis": program(binary("add", S, AXIS0, AXIS0, AXIS0), [(S, AXIS0), (S, AXIS0)], [("%v", S, AXIS0)]),
    "unsigned sum": program(binary("add", S, U8, U8, U8), [(S, U8), (S, U8)], [("%v", S, U8)]),
    "wide sum": program(binary("add", S, I32, I32, I32), [(S, I32), (S, I32)], [("%v", S, I32)]),
    "maximum of one type": program(binary("maximum", S, I8, I8, I8), [(S, I8), (S, I8)], [("%v", S, I8)]),
    "minimum of others": program(binary("minimum", S, I8, I8B, I8C), [(S, I8), (S, I8B)], [("%v", S, I8C)]),
    "division": program(binary("divide", S, I8, I8B, I8C), [(S, I8), (S, I8B)], [("%v", S, I8C)]),
    "comparison": program(f"%v = stablehlo.compare LT, %q0, %q1 : ({shaped(S, I8)}, {shaped(S, I8B)}) -> {shaped(S, 'i1')}",
                          [(S, I8), (S, I8B)], [("%v", S, "i1")]),
    "tanh": program(f"%v = stablehlo.tanh %q0 : ({shaped(S, I8)}) -> {shaped(S, I8B)}", [(S, I8)], [("%v", S, I8B)]),
    "storage of 4 bits": program(f"%v = stablehlo.abs %q0 : {shaped(S, I4)}", [(S, I4)], [("%v", S, I4)]),
    "storage of 16 bits": program(f"%v = stablehlo.abs %q0 : {shaped(S, I16)}", [(S, I16)], [("%v", S, I16)]),
    "requantised": program(f"%v = stablehlo.uniform_quantize %q0 : ({shaped(S, I8)}) -> {shaped(S, RANGE)}", [(S, I8)], [("%v", S, RANGE)]),
    "storage of part of the range": program(binary("add", S, RANGE, RANGE, RANGE), [(S, RANGE), (S, RANGE)], [("%v", S, RANGE)]),
    "requantised to itself": program(f"%v = stablehlo.uniform_quantize %q0 : ({shaped(S, I8)}) -> {shaped(S, I8)}", [(S, I8)],
                                     [("%v", S, I8)]),
    "requantised by axis": program(f"%v = stablehlo.uniform_quantize %q0 : ({shaped(S, AXIS0)}) -> {shaped(S, I8)}", [(S, AXIS0)],
                                   [("%v", S, I8)]),
    "moved": program(f"""%t = stablehlo.transpose %q0, dims = [1, 0] : ({shaped(S, AXIS0)}) -> {shaped((4, 3), AXIS0.replace(':0,', ':1,'))}
  %v = stablehlo.reshape %t : ({shaped((4, 3), AXIS0.replace(':0,', ':1,'))}) -> {shaped((2, 2, 3), AXIS0.replace(':0,', ':2,'))}""",
                     [(S, AXIS0)], [("%v", (2, 2, 3), AXIS0.replace(":0,", ":2,"))]),
    "chosen": program(f"""%p = stablehlo.compare GE, %q0, %q1 : ({shaped(S, I8)}, {shaped(S, I8)}) -> {shaped(S, 'i1')}
  %v = stablehlo.select %p, %q0, %q1 : {shaped(S, 'i1')}, {shaped(S, I8)}""", [(S, I8), (S, I8)], [("%v", S, I8)]),
    "greatest in windows": program(f"""%z = stablehlo.constant() {{value = dense<-128> : tensor<i8>}} : () -> tensor<{I8}>
  %v = "stablehlo.reduce_window"(%q0, %z) ({{
  ^bb0(%x: tensor<{I8}>, %y: tensor<{I8}>):
    %m = stablehlo.maximum %x, %y : tensor<{I8}>
    stablehlo.return %m : tensor<{I8}>
  }}) {{window_dimensions = array<i64: 2, 2>}} : ({shaped(S, I8)}, tensor<{I8}>) -> {shaped((2, 3), I8)}""",
                                   [(S, I8)], [("%v", (2, 3), I8)]),
    "sums in windows": program(f"""%z = stablehlo.constant() {{value = dense<3> : tensor<i8>}} : () -> tensor<{I8}>
  %v = "stablehlo.reduce_window"(%q0, %z) ({{
  ^bb0(%x: tensor<{I8}>, %y: tensor<{I8}>):
    %m = stablehlo.add %x, %y : tensor<{I8}>
    stablehlo.return %m : tensor<{I8}>
  }}) {{window_dimensions = array<i64: 2, 2>}} : ({shaped(S, I8)}, tensor<{I8}>) -> {shaped((2, 3), I8)}""",
                               [(S, I8)], [("%v", (2, 3), I8)]),
}


def norm(op, types, results):
    attrs = "{epsilon = 0.01 : f32, feature_index = 1 : i64}"
    ins, outs = ", ".join(shaped(s, q) for s, q in types), ", ".join(shaped(s, q) for s, q in results)
    names = ", ".join(f"%q{i}" for i in range(len(types)))
    name = f"%v:{len(results)}" if len(results) > 1 else "%v"
    body = f'{name} = "stablehlo.batch_norm_{op}"({names}) {attrs} : ({ins}) -> ({outs})'
    values = [f"%v#{i}" for i in range(len(results))] if len(results) > 1 else ["%v"]
    return program(body, types, [(v, s, q) for v, (s, q) in zip(values, results)])


N = [((5, 4), I8B), ((4,), I8B), ((4,), I8B)]
CASES["batch_norm_inference"] = norm("inference", N + [((4,), I8B), ((4,), I8B)], [((5, 4), I8B)])
CASES["batch_norm_training"] = norm("training", N, [((5, 4), I8B), ((4,), I8B), ((4,), I8B)])
CASES["batch_norm_grad"] = norm("grad", N + [((4,), I8B), ((5, 4), I8B)], [((5, 4), I8B), ((4,), I8B), ((4,), I8B)])


def dot(lhs, a, rhs, b, out, c, dims="contracting_dims = [1] x [0]"):
    body = f"%v = stablehlo.dot_general %q0, %q1, {dims} : ({shaped(lhs, a)}, {shaped(rhs, b)}) -> {shaped(out, c)}"
    return program(body, [(lhs, a), (rhs, b)], [("%v", out, c)])


def old_dot(lhs, a, rhs, b, out, c):
    """stablehlo.dot, where rhs need not be centred."""
    body = f"%v = stablehlo.dot %q0, %q1 : ({shaped(lhs, a)}, {shaped(rhs, b)}) -> {shaped(out, c)}"
    return program(body, [(lhs, a), (rhs, b)], [("%v", out, c)])


K8 = "!quant.uniform<i8:f32, 0.5>"
BATCHED = "batching_dims = [0, 2] x [1, 4], contracting_dims = [4, 3] x [0, 2]"
ONE = "!quant.uniform<i32:f32, 1.0>"
PRODUCTS = {
    "dot": dot((3, 5), I8, (5, 4), K8, (3, 4), I32),
    "dot to bytes": dot((3, 5), I8, (5, 4), K8, (3, 4), I8C),
    "dot of what is not centred": old_dot((3, 5), I8, (5, 4), I8B, (3, 4), I32),
    "unsigned dot": old_dot((3, 5), U8, (5, 4), U8, (3, 4), I32),
    "dot of 4 bits": old_dot((3, 5), I4, (5, 4), I4, (3, 4), I32),
    "dot of vectors": old_dot((5,), I8, (5,), I8B, (), I32),
    "dot of a vector": old_dot((5,), I8, (5, 4), I8B, (4,), I32),
    "batched dot": dot((2, 3, 2, 3, 5), I8, (5, 2, 3, 4, 2), K8, (2, 2, 3, 4), I32, BATCHED),
    "dot with a scale of 1": dot((3, 5), "!quant.uniform<i8:f32, 2.0:3>", (5, 4), K8, (3, 4), ONE),
    "dot by axis": dot((3, 5), I8, (5, 4), AXIS1, (3, 4), AXIS1R),
    "dot by axis, to one scale": dot((3, 5), I8, (5, 4), AXIS1, (3, 4), I32),
    "dot of 16 bits": dot((3, 5), I16, (5, 4), I16, (3, 4), I32),
    "dot of stored weights": dot((3, 5), "f32", (5, 4), AXIS1, (3, 4), "f32"),
    "dot without terms": dot((3, 0), I8, (0, 4), K8, (3, 4), I32),
}


def conv(lhs, a, rhs, b, out, c, numbers, window="", groups=(1, 1)):
    body = (f"%v = stablehlo.convolution(%q0, %q1) dim_numbers = {numbers}, window = {{{window}}} "
            f"{{batch_group_count = {groups[0]} : i64, feature_group_count = {groups[1]} : i64}} : "
            f"({shaped(lhs, a)}, {shaped(rhs, b)}) -> {shaped(out, c)}")
    return program(body, [(lhs, a), (rhs, b)], [("%v", out, c)])


KAXIS = "!quant.uniform<i8<-127:127>:f32:3, {0.5, 0.25, 1.0, 0.75}>"
PRODUCTS |= {
    "convolution": conv((2, 5, 6, 3), I8, (3, 3, 3, 4), K8, (2, 3, 4, 4), I32, "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"),
    "convolution with edges": conv((2, 5, 6, 3), I8, (3, 3, 3, 4), K8, (2, 3, 5, 4), I32, "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
                                   "stride = [2, 1], pad = [[1, 2], [2, -1]]"),
    "dilated convolution": conv((1, 2, 5), I8, (4, 2, 3), K8, (1, 4, 8), I8C, "[b, f, 0]x[o, i, 0]->[b, f, 0]",
                                "pad = [[1, 2]], lhs_dilate = [2], rhs_dilate = [2]"),
    "convolution in groups": conv((2, 5, 4), I8, (2, 2, 6), K8, (2, 4, 6), I32, "[b, 0, f]x[0, i, o]->[b, 0, f]", "", (1, 2)),
    "convolution in batch groups": conv((4, 5, 2), I8, (2, 2, 6), K8, (2, 4, 6), I32, "[b, 0, f]x[0, i, o]->[b, 0, f]", "", (2, 1)),
    "convolution by axis": conv((2, 5, 6, 3), I8, (3, 3, 3, 4), KAXIS, (2, 3, 4, 4), AXIS1R.replace(":1,", ":3,"),
                                "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"),
    "convolution by a kernel that is not centred": conv((2, 5, 6, 3), I8, (3, 3, 3, 4), I8B, (2, 3, 4, 4), I32,
                                                        "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"),
    "convolution by stored weights": conv((2, 5, 6, 3), "f32", (3, 3, 3, 4), KAXIS, (2, 3, 4, 4), "f32",
                                          "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"),
}


def arguments(text):
    """Real numbers for @main's arguments that use much of 8 bits."""
    rng = np.random.default_rng(len(text))
    module = xlac.parse(text, format="mlir")
    header = module.to_text().split("@main(")[1].split(") -> ")[0]
    shapes = [[int(d) for d in part.split("<")[1].split("x")[:-1]] for part in header.split(",")]
    low = 0 if "batch_norm" in text else -12  # a variance is not negative
    return [rng.uniform(low, 12, s).astype(np.float32) for s in shapes]


@pytest.mark.parametrize("passes", [MATH, f"{APART},{MATH}", f"{APART},{TOGETHER},{MATH}"])
@pytest.mark.parametrize("name", list(CASES) + list(PRODUCTS))
def test_the_interpreters_values_to_the_bit(name, passes):
    """Products are summed exactly here and rounded there: their scales are such that no sum is halfway between two."""
    text = (CASES | PRODUCTS)[name]
    args = arguments(text)
    want = leaves(xlac.interpret(xlac.parse(text, format="mlir"), *args))
    for got, expected in zip(leaves(xlac.interpret(arithmetic(text, passes), *args)), want, strict=True):
        np.testing.assert_array_equal(got, expected)


INTEGER = [n for n in PRODUCTS if "kernel" not in n and "16 bits" not in n and "stored" not in n]


@pytest.mark.parametrize("name", INTEGER)
def test_products_are_of_integers(name):
    text = arithmetic(PRODUCTS[name]).to_text()
    lines = [line for line in text.splitlines() if "stablehlo.dot_general" in line or "stablehlo.convolution" in line]
    assert len(lines) == 1 and "f32" not in lines[0] and "xi32>" in lines[0].replace("tensor<i32>", "xi32>"), lines


@pytest.mark.parametrize("name", list(CASES) + list(PRODUCTS))
def test_xla_reads_and_runs_it(name, xla):
    text = (CASES | PRODUCTS)[name]
    args = arguments(text)
    translated = arithmetic(text).to_hlo().to_text()
    want = leaves(xlac.interpret(xlac.parse(text, format="mlir"), *args))
    for got, expected in zip(xla.run(translated, *args), want, strict=True):
        np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("element", ["bf16", "f16", "f64"])
def test_other_expressed_types(element):
    q, s = f"!quant.uniform<i8:{element}, 0.5:3>", shaped(S, element)
    text = f"""func.func @main(%x: {s}) -> ({shaped(S, "i8")}, {s}) {{
  %0 = stablehlo.uniform_quantize %x : ({s}) -> {shaped(S, q)}
  %1 = stablehlo.tanh %0 : {shaped(S, q)}
  %2 = stablehlo.bitcast_convert %1 : ({shaped(S, q)}) -> {shaped(S, "i8")}
  %3 = stablehlo.uniform_dequantize %1 : ({shaped(S, q)}) -> {s}
  return %2, %3 : {shaped(S, "i8")}, {s}
}}"""
    import ml_dtypes
    dtype = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f64": np.float64}[element]
    x = RNG.uniform(-5, 5, S).astype(dtype)
    for got, want in zip(leaves(xlac.interpret(arithmetic(text), x)), leaves(xlac.interpret(xlac.parse(text, format="mlir"), x))):
        np.testing.assert_array_equal(got, want)


DYNAMIC = [("tensor<?x5x{a}>", "tensor<5x4x{b}>", "tensor<?x4x{c}>"), ("tensor<3x?x{a}>", "tensor<?x4x{b}>", "tensor<3x4x{c}>"),
           ("tensor<?x?x{a}>", "tensor<?x?x{b}>", "tensor<?x?x{c}>")]


def dynamic(types):
    lhs, rhs, out = (t.format(a=I8, b=I8B, c=I32) for t in types)
    real = [t.format(a="f32", b="f32", c="f32") for t in types]
    text = f"""func.func @main(%x: {real[0]}, %y: {real[1]}) -> {real[2]} {{
  %0 = stablehlo.uniform_quantize %x : ({real[0]}) -> {lhs}
  %1 = stablehlo.uniform_quantize %y : ({real[1]}) -> {rhs}
  %2 = stablehlo.dot %0, %1 : ({lhs}, {rhs}) -> {out}
  %3 = stablehlo.uniform_dequantize %2 : ({out}) -> {real[2]}
  return %3 : {real[2]}
}}"""
    args = [RNG.uniform(-9, 9, s).astype(np.float32) for s in ((3, 5), (5, 4))]
    return text, args, np.asarray(xlac.interpret(xlac.parse(text, format="mlir"), *args))


@pytest.mark.parametrize("types", DYNAMIC)
def test_dynamic_shapes(types):
    text, args, want = dynamic(types)
    np.testing.assert_allclose(np.asarray(xlac.interpret(arithmetic(text), *args)), want, atol=0.0101)


REFINE = "stablehlo-refine-arguments{types=tensor<3x5xf32>,tensor<5x4xf32>},stablehlo-refine-shapes,stablehlo-canonicalize-dynamism"


@pytest.mark.parametrize("passes", [f"{MATH},chlo-legalize-to-stablehlo,{REFINE}", f"{REFINE},{MATH}"])
@pytest.mark.parametrize("types", DYNAMIC)
def test_dynamic_programs_reach_xla(types, passes, xla):
    text, args, want = dynamic(types)
    np.testing.assert_allclose(xla.run(arithmetic(text, passes).to_hlo().to_text(), *args)[0], want, atol=0.0101)


def test_interfaces_are_storage():
    text = f"""
func.func private @other(tensor<2x{I8}>, tuple<tensor<{U8}>, tensor<f32>>) -> tensor<2x{I8}>
func.func @callee(%x: tensor<2x{I8}>) -> tensor<2x{I8}> {{
  return %x : tensor<2x{I8}>
}}
func.func @main(%x: tensor<2x{I8}>) -> tensor<2x{I8}> {{
  %0 = call @callee(%x) : (tensor<2x{I8}>) -> tensor<2x{I8}>
  %1 = stablehlo.composite "a.b" %0 {{decomposition = @callee}} : (tensor<2x{I8}>) -> tensor<2x{I8}>
  return %1 : tensor<2x{I8}>
}}"""
    out = arithmetic(text)
    assert "@other(tensor<2xi8>, tuple<tensor<ui8>, tensor<f32>>) -> tensor<2xi8>" in out.to_text()
    x = np.array([3, -4], np.int8)
    np.testing.assert_array_equal(np.asarray(xlac.interpret(out, x)), x)


REFUSED = {
    "reverse": f'%0 = stablehlo.reverse %x, dims = [0] : tensor<2x{I8}>',
    "custom_call": f'%0 = stablehlo.custom_call @k(%x) : (tensor<2x{I8}>) -> tensor<2x{I8}>',
    "while": f"""%0 = stablehlo.while(%i = %x) : tensor<2x{I8}> cond {{
    %t = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %t : tensor<i1>
  }} do {{
    stablehlo.return %i : tensor<2x{I8}>
  }}""",
    "sort": f"""%0 = "stablehlo.sort"(%x) ({{
  ^bb0(%a: tensor<{I8}>, %b: tensor<{I8}>):
    %t = stablehlo.compare LT, %a, %b : (tensor<{I8}>, tensor<{I8}>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  }}) {{dimension = 0 : i64}} : (tensor<2x{I8}>) -> tensor<2x{I8}>""",
}


@pytest.mark.parametrize("op", REFUSED)
def test_what_has_no_form_is_refused_before_anything_changes(op):
    text = f"func.func @main(%x: tensor<2x{I8}>) -> tensor<2x{I8}> {{\n  {REFUSED[op]}\n  return %0 : tensor<2x{I8}>\n}}"
    module = xlac.parse(text, format="mlir")
    with pytest.raises(xlac.Error, match=f"stablehlo.{op} has quantised operands") as caught:
        module.run(MATH)
    assert caught.value.line == 2 and "uniform_dequantize" in caught.value.hint
    module.verify()


def test_the_dimension_of_scales_stays():
    a, b = "!quant.uniform<i8:f32:0, {0.5, 0.25}>", "!quant.uniform<i8:f32:1, {0.5, 0.25}>"
    text = f"""func.func @main(%x: tensor<2x2x{a}>) -> tensor<2x2x{b}> {{
  %0 = stablehlo.uniform_quantize %x : (tensor<2x2x{a}>) -> tensor<2x2x{b}>
  return %0 : tensor<2x2x{b}>
}}"""
    with pytest.raises(xlac.Error, match="requantises along dimension 1") as caught:
        xlac.parse(text, format="mlir").run(MATH)
    assert caught.value.line == 2


def operations(module):
    return [line.split("stablehlo.")[1].split()[0] for line in module.to_text().splitlines() if "stablehlo." in line]


def test_apart_and_together():
    text = CASES["sum of three types"]
    apart = run(text, APART)
    assert operations(apart) == ["uniform_quantize", "uniform_quantize", "uniform_dequantize", "uniform_dequantize", "add",
                                 "uniform_quantize", "bitcast_convert", "uniform_dequantize"]
    assert run(apart.to_text(), TOGETHER).to_text() == xlac.parse(text, format="mlir").run("symbol-dce").to_text()


def test_what_is_not_quantised_whole_stays():
    kept = f"""func.func @main(%x: tensor<2x{I8}>, %y: tensor<2xf32>) -> (tensor<2x{I8}>, tensor<2x{I8B}>) {{
  %0 = stablehlo.uniform_dequantize %x : (tensor<2x{I8}>) -> tensor<2xf32>
  %1 = stablehlo.add %0, %y : tensor<2xf32>
  %2 = stablehlo.uniform_quantize %1 : (tensor<2xf32>) -> tensor<2x{I8}>
  %3 = stablehlo.reverse %0, dims = [0] : tensor<2xf32>
  %4 = stablehlo.uniform_quantize %3 : (tensor<2xf32>) -> tensor<2x{I8B}>
  return %2, %4 : tensor<2x{I8}>, tensor<2x{I8B}>
}}"""
    assert run(kept, TOGETHER).to_text() == xlac.parse(kept, format="mlir").to_text()


def test_an_op_that_is_read_besides_stays_too():
    text = f"""func.func @main(%x: tensor<2x{I8}>) -> (tensor<2x{I8}>, tensor<2xf32>) {{
  %0 = stablehlo.uniform_dequantize %x : (tensor<2x{I8}>) -> tensor<2xf32>
  %1 = stablehlo.abs %0 : tensor<2xf32>
  %2 = stablehlo.uniform_quantize %1 : (tensor<2xf32>) -> tensor<2x{I8}>
  return %2, %1 : tensor<2x{I8}>, tensor<2xf32>
}}"""
    out = run(text, TOGETHER)
    assert sorted(operations(out)) == ["abs", "abs", "uniform_dequantize"]


@pytest.mark.parametrize("n", [400, 1600])
def test_long_chains(n):
    lines = "\n".join(f"  %{i + 1} = stablehlo.add %{i}, %{i} : tensor<2x{I8}>" for i in range(n))
    text = f"func.func @main(%0: tensor<2x{I8}>) -> tensor<2x{I8}> {{\n{lines}\n  return %{n} : tensor<2x{I8}>\n}}".replace("%0", "%a")
    for passes in itertools.permutations([MATH, APART, TOGETHER], 2):
        run(text, ",".join(passes))
