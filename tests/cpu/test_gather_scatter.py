"""gather and scatter routines: the interpreter's bits, whatever the indices, for 1, 2 and 7 threads."""
import numpy as np
import pytest

import xlac

from .test_moves import braces, check, numbers, program, shape

# operand, indices, attributes, slice sizes, result
GATHERS = {
    "rows": ((9, 6), (5, 1), "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1", (1, 6), (5, 6)),
    "rows, indices without a vector": ((9, 6), (5, 2), "offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2", (1, 6), (5, 2, 6)),
    "columns": ((9, 6), (5,), "offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1", (9, 1), (9, 5)),
    "elements": ((40,), (6, 7, 1), "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2", (1,), (6, 7)),
    "elements by two indices": ((9, 6), (2, 7), "offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={1,0}, index_vector_dim=0", (1, 1), (7,)),
    "boxes": ((9, 6, 4), (3, 5, 2), "offset_dims={0,2,3}, collapsed_slice_dims={}, start_index_map={2,0}, index_vector_dim=2", (3, 6, 2), (3, 3, 6, 2, 5)),
    "batches": ((4, 9, 3), (4, 5, 1), "offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, "
                "start_indices_batching_dims={0}, index_vector_dim=2", (1, 1, 3), (4, 5, 3)),
    "batches the other way": ((3, 4, 9), (5, 4, 3, 1), "offset_dims={}, collapsed_slice_dims={2}, start_index_map={2}, operand_batching_dims={0,1}, "
                              "start_indices_batching_dims={2,1}, index_vector_dim=3", (1, 1, 1), (5, 4, 3)),
    "one window": ((9, 6), (2,), "offset_dims={0,1}, collapsed_slice_dims={}, start_index_map={0,1}, index_vector_dim=0", (3, 4), (3, 4)),
    "no windows": ((9, 6), (0, 1), "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1", (1, 6), (0, 6)),
    "nothing in a window": ((9, 6), (5, 1), "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1", (2, 0), (5, 2, 0)),
}


@pytest.mark.parametrize("t", ["f32", "s8", "bf16", "f64", "c128", "pred", "s4"])
@pytest.mark.parametrize("index", ["s32", "s64", "u8", "s16", "u64"])
@pytest.mark.parametrize("name", GATHERS)
def test_gathers(t, index, name):
    operand, indices, attributes, sizes, out = GATHERS[name]
    rng = np.random.default_rng(0)
    at = rng.integers(0 if index[0] == "u" else -4, 14, indices).astype(index.replace("s", "int").replace("u", "uint"))
    if index == "u64" and at.size:
        at.flat[0] = 2**64 - 1
    check(program(f"  x = {shape(t, operand)} parameter(0)", f"  i = {shape(index, indices)} parameter(1)",
                  f"  ROOT r = {shape(t, out)} gather(x, i), {attributes}, slice_sizes={braces(sizes)}"), numbers(rng, t, operand), at)


def test_big_gathers():
    rng = np.random.default_rng(1)
    x, rows = rng.normal(size=(500, 300)).astype(np.float32), rng.integers(-10, 510, (700, 1)).astype(np.int32)
    gather = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1"
    check(program("  x = f32[500,300] parameter(0)", "  i = s32[700,1] parameter(1)",
                  f"  ROOT r = f32[700,300] gather(x, i), {gather}, slice_sizes={{1,300}}"), x, rows, routine="gather")
    check(program("  x = f32[500,300] parameter(0)", "  i = s32[2,1] parameter(1)",
                  f"  ROOT r = f32[2,400,300] gather(x, i), {gather.replace('{1}', '{1,2}').replace('={0}, s', '={}, s')}, slice_sizes={{400,300}}"),
          x, np.array([[7], [900]], np.int32))
    at = rng.integers(-10, 160000, (300000, 1)).astype(np.int64)
    check(program("  x = f32[150000] parameter(0)", "  i = s64[300000,1] parameter(1)",
                  "  ROOT r = f32[300000] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}"),
          x.reshape(-1), at, routine="pick")


# operand, indices, updates, attributes
SCATTERS = {
    "rows": ((9, 6), (12, 1), (12, 6), "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"),
    "columns": ((9, 6), (8,), (9, 8), "update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1"),
    "elements": ((7,), (30, 1), (30,), "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"),
    "elements by two indices": ((4, 5), (2, 40), (40,), "update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=0"),
    "boxes that overlap": ((9, 6, 4), (10, 2), (3, 10, 6, 2), "update_window_dims={0,2,3}, inserted_window_dims={}, scatter_dims_to_operand_dims={2,0}, "
                           "index_vector_dim=1"),
    "batches": ((4, 9, 3), (4, 20, 1), (4, 20, 3), "update_window_dims={2}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, "
                "input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2"),
    "one window": ((9, 6), (2,), (3, 4), "update_window_dims={0,1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=0"),
    "no updates": ((9, 6), (0, 1), (0, 6), "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"),
}
BODIES = ["add", "multiply", "maximum", "minimum", "subtract", "put"]


def scattering(t, index, operand, indices, updates, attributes, body):
    inside = "ROOT q = {0}[] parameter(1)" if body == "put" else f"q = {{0}}[] parameter(1)\n  ROOT r = {{0}}[] {body}(p, q)"
    return (f"HloModule m\nf {{\n  p = {t}[] parameter(0)\n  {inside.format(t)}\n}}\nENTRY e {{\n  x = {shape(t, operand)} parameter(0)\n"
            f"  i = {shape(index, indices)} parameter(1)\n  u = {shape(t, updates)} parameter(2)\n"
            f"  ROOT r = {shape(t, operand)} scatter(x, i, u), {attributes}, to_apply=f\n}}")


@pytest.mark.parametrize("t", ["f32", "bf16", "s8", "s64", "f64", "c64", "u16"])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", SCATTERS)
def test_scatters(t, body, name):
    if t == "c64" and body in ("maximum", "minimum"):
        return
    operand, indices, updates, attributes = SCATTERS[name]
    rng = np.random.default_rng(2)
    for index in ("s32", "s64", "u8"):
        at = rng.integers(0 if index[0] == "u" else -2, 10, indices).astype(index.replace("s", "int").replace("u", "uint"))
        check(scattering(t, index, operand, indices, updates, attributes, body), numbers(rng, t, operand), at, numbers(rng, t, updates),
              routine="put" if body == "put" else "scatter")


@pytest.mark.parametrize("body", ["add", "maximum", "put"])
def test_big_scatters_keep_the_order_of_updates(body):
    rng = np.random.default_rng(3)
    x, u = rng.normal(size=(300, 256)).astype(np.float32), rng.normal(size=(1000, 256)).astype(np.float32)
    at = rng.integers(-20, 320, (1000, 1)).astype(np.int32)
    check(scattering("f32", "s32", x.shape, at.shape, u.shape, SCATTERS["rows"][3], body), x, at, u)
    x, u = rng.normal(size=1 << 22).astype(np.float32), rng.normal(size=200000).astype(np.float32)
    at = (rng.integers(-20, 1100, (200000, 1)) * 4001).astype(np.int32)
    check(scattering("f32", "s32", x.shape, at.shape, u.shape, SCATTERS["elements"][3], body), x, at, u)


def test_a_scatter_writes_over_what_dies():
    text = scattering("f32", "s32", *SCATTERS["rows"][:3], SCATTERS["rows"][3], "add").replace("scatter(x,", "scatter(y,")
    text = text.replace("  ROOT r = f32[9,6] scatter", "  y = f32[9,6] cosine(x)\n  s = f32[9,6] scatter").replace("to_apply=f\n", "to_apply=f\n  ROOT r = f32[9,6] tanh(s)\n")
    rng = np.random.default_rng(4)
    check(text, numbers(rng, "f32", (9, 6)), rng.integers(0, 9, (12, 1)).astype(np.int32), numbers(rng, "f32", (12, 6)), eval_ok=True)
    plan = xlac.compile(xlac.parse(text)).plan()
    line = next(line for line in plan.splitlines() if " scatter s:" in line)
    made, read = line.split("s: ")[1].split(" <- ")
    assert read.startswith(made), plan


def test_bodies_of_other_forms_are_the_interpreters():
    text = scattering("f32", "s32", *SCATTERS["rows"][:3], SCATTERS["rows"][3], "add").replace("ROOT r = f32[] add(p, q)", "d = f32[] add(p, q)\n  ROOT r = f32[] multiply(d, q)")
    rng = np.random.default_rng(5)
    check(text, numbers(rng, "f32", (9, 6)), rng.integers(0, 9, (12, 1)).astype(np.int32), numbers(rng, "f32", (12, 6)), eval_ok=True)
