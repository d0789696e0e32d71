"""What ops of neural networks say about inputs that do not fit."""
import pytest
import xlac


def attr(key, value):
    return f'attr {{ key: "{key}" value {{ {value} }} }}'


def ints(*values):
    return f"list {{ {' '.join(f'i: {v}' for v in values)} }}"


T = attr("T", "type: DT_FLOAT")
WINDOW = attr("strides", ints(1, 1, 1, 1)) + attr("padding", 's: "VALID"')


def graph(op, attrs, **inputs):
    feeds = [f'node {{ name: "{name}" op: "Placeholder" {attr("dtype", f"type: {dtype}")} }}' for name, (dtype, _) in inputs.items()]
    args = " ".join(f'input: "{name}"' for name in inputs)
    return "\n".join([*feeds, f'node {{ name: "y" op: "{op}" {args} {attrs} }}']), {name: shape for name, (_, shape) in inputs.items()}


F, I = "DT_FLOAT", "DT_INT32"
CASES = [
    ("Conv2D", T + WINDOW, {"x": (F, "f32[1,5,5,3]"), "w": (F, "f32[3,3,2,4]")}, "depth 3 and a kernel for depth 2"),
    ("Conv2D", T + WINDOW, {"x": (F, "f32[1,2,5,3]"), "w": (F, "f32[3,3,3,4]")}, "a window of 3 goes over 2"),
    ("Conv2D", T + WINDOW, {"x": (F, "f32[5,5,3]"), "w": (F, "f32[3,3,3,4]")}, "an image of rank 3"),
    ("MaxPool", T + WINDOW + attr("ksize", ints(2, 2, 2, 1)), {"x": (F, "f32[2,4,4,3]")}, "'ksize' is not 1 for batch and features"),
    ("AvgPoolGrad", T + WINDOW + attr("ksize", ints(1, 2, 2, 1)), {"s": (I, "s32[4]"), "g": (F, "f32[1,3,3,1]")}, "must be known"),
    ("SparseSoftmaxCrossEntropyWithLogits", T + attr("Tlabels", "type: DT_INT32"), {"x": (F, "f32[4,3]"), "l": (I, "s32[5]")}, "[batch, classes]"),
    ("ScatterNd", T + attr("Tindices", "type: DT_INT32"), {"i": (I, "s32[4,1]"), "u": (F, "f32[4]"), "s": (I, "s32[1]")}, "must be known"),
    ("GatherNd", attr("Tparams", "type: DT_FLOAT") + attr("Tindices", "type: DT_INT32"), {"x": (F, "f32[4]"), "i": (I, "s32[2,3]")},
     "3 indices for 1 dimensions"),
    ("MatrixSetDiag", T, {"x": (F, "f32[2,3,3]"), "d": (F, "f32[1,3]")}, "not the shape that the matrices"),
    ("Cholesky", T, {"x": (F, "f32[2,3]")}, "not square"),
    ("ParallelConcat", T + attr("N", "i: 2") + attr("shape", "shape { }"), {"a": (F, "f32[]"), "b": (F, "f32[]")}, "its parts are scalars"),
    ("EmptyTensorList", attr("element_dtype", "type: DT_FLOAT") + attr("shape_type", "type: DT_INT32"), {"s": (I, "s32[1]"), "n": (I, "s32[]")}, "must be known"),
]


@pytest.mark.parametrize("op, attrs, inputs, says", CASES, ids=lambda v: v if isinstance(v, str) and len(v) < 40 else "")
def test_what_does_not_fit_is_named(op, attrs, inputs, says):
    text, shapes = graph(op, attrs, **inputs)
    with pytest.raises(xlac.Error) as caught:
        xlac.lower_graph(text, shapes, ["y"])
    assert "node 'y'" in str(caught.value) and says in str(caught.value) and caught.value.code == 702


def test_a_rate_must_be_a_scalar():
    handle = f'node {{ name: "v" op: "VarHandleOp" {attr("dtype", "type: DT_FLOAT")} {attr("shape", "shape { }")} }}'
    text, shapes = graph("ResourceApplyGradientDescent", T, a=(F, "f32[3,2,1]"), d=(F, "f32[2,1]"))
    text = handle + "\n" + text.replace('input: "a"', 'input: "v" input: "a"')
    read = f'node {{ name: "r" op: "ReadVariableOp" input: "v" input: "^y" {attr("dtype", "type: DT_FLOAT")} }}'
    with pytest.raises(xlac.Error, match="not a scalar"):
        xlac.lower_graph(text + "\n" + read, shapes, ["r"], variables={"v": "f32[2,1]"})
