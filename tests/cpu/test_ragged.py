"""ragged-dot: a product for each group of rows, or of contracted elements, beside the interpreter."""
import numpy as np
import pytest

from .test_products import check, draw

SIZES = [[3, 0, 9, 5], [0, 0, 0, 0], [20, 1, 1, 1], [-2, 4, 100, 3], [1, 2, 3, 30]]


def text(t, rows, m, k, n, index="s32"):
    b, out = (f"{t}[4,{k},{n}]", f"{t}[{m},{n}]") if rows else (f"{t}[{k},{n}]", f"{t}[4,{m},{n}]")
    a = f"{t}[{m},{k}]" if rows else f"{t}[{k},{m}]"
    c = int(rows)
    groups = ", rhs_group_dims={0}" if rows else ""
    return f"""HloModule m
ENTRY e {{ a = {a} parameter(0)
 b = {b} parameter(1)
 s = {index}[4] parameter(2)
 ROOT r = {out} ragged-dot(a, b, s), lhs_contracting_dims={{{c}}}, rhs_contracting_dims={{{c}}}, lhs_ragged_dims={{0}}{groups} }}"""


@pytest.mark.parametrize("blas", [None, False])
@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("t", ["f32", "f64", "bf16", "s32", "c64"])
def test_ragged_dot(t, rows, blas):
    ragged, other, n = 20, 33, 40
    m, k = (ragged, other) if rows else (other, ragged)
    for sizes in SIZES:
        a = draw(t, (ragged, other), 1)
        b = draw(t, (4, k, n) if rows else (k, n), 2)
        check(text(t, rows, m, k, n), t, a, b, np.array(sizes, np.int32), blas=blas)


def test_sizes_of_other_types():
    a, b = draw("f32", (20, 33), 1), draw("f32", (4, 33, 40), 2)
    for index, dtype in (("u64", np.uint64), ("s64", np.int64), ("u8", np.uint8)):
        top = {"u64": 2**64 - 1, "s64": 2**63 - 1, "u8": 255}[index]
        check(text("f32", True, 20, 33, 40, index), "f32", a, b, np.array([3, 0, top, 5], dtype))
