"""Sorts and scatters as kernels: the interpreter's bits, in any order of blocks and threads, and what is left to the host."""

import ml_dtypes
import numpy as np
import pytest

from simulator import xlac_driver

import xlac

KERNEL = "in shared memory"


@pytest.fixture(scope="module")
def driver():
    return xlac_driver()


@pytest.fixture(params=[0, 9])
def cuda(driver, request):
    driver.clear()
    driver.seed(request.param)
    yield driver
    driver.seed(0)
    assert driver.reports() == []


def leaves(value):
    return [np.asarray(v) for v in value] if isinstance(value, tuple) else [np.asarray(value)]


def same(text, *args, how=None):
    """Equal to the interpreter to the bit; `how` is to be said, or (None) not, of a kernel."""
    exe = xlac.compile(text, device="cuda", passes=False)
    got, want = leaves(exe(*args)), leaves(xlac.interpret(text, *args))
    assert all(a.tobytes() == b.tobytes() and a.dtype == b.dtype for a, b in zip(got, want))
    said = str(exe.explain("fusion"))
    assert (how or "on the host") in said
    return exe


def sort(shape, types, along, compare="compare(p0, p1), direction=LT", more=(), stable=True):
    """Operands p0 and p1, p2 and p3, ... of the comparator; the first's type is types[0]."""
    parameters = "\n".join(f"  p{2 * i + j} = {t}[] parameter({2 * i + j})" for i, t in enumerate(types) for j in (0, 1))
    arrays = "\n".join(f"  x{i} = {t}[{shape}] parameter({i})" for i, t in enumerate(types))
    result = ", ".join(f"{t}[{shape}]" for t in types)
    result = f"({result})" if len(types) > 1 else result
    lines = "".join(f"  {line}\n" for line in more)
    return (f"HloModule m\nless {{\n{parameters}\n{lines}  ROOT c = pred[] {compare}\n}}\nENTRY e {{\n{arrays}\n"
            f"  ROOT s = {result} sort({', '.join(f'x{i}' for i in range(len(types)))}), dimensions={{{along}}}, is_stable={'true' if stable else 'false'}, to_apply=less\n}}\n")


@pytest.mark.parametrize("n", [1, 2, 7, 64, 300, 2048])
def test_lines_of_integers(cuda, n):
    rng = np.random.default_rng(n)
    same(sort(f"3,{n}", ["s32"], 1), rng.integers(-9, 9, (3, n)).astype(np.int32), how=KERNEL)


@pytest.mark.parametrize("along", [0, 1, 2])
def test_dimensions_and_operands_that_go_along(cuda, along):
    rng = np.random.default_rng(along)
    shape = (5, 6, 7)
    args = [rng.integers(0, 4, shape).astype(np.uint8), rng.standard_normal(shape), np.arange(210, dtype=np.int64).reshape(shape)]
    same(sort("5,6,7", ["u8", "f64", "s64"], along, "compare(p0, p1), direction=GT"), *args, how=KERNEL)


@pytest.mark.parametrize("t, dtype", [("f4e2m1fn", ml_dtypes.float4_e2m1fn), ("f6e2m3fn", ml_dtypes.float6_e2m3fn)])
def test_floats_narrower_than_a_byte_have_their_own_sign_bit(cuda, t, dtype):
    codes = np.arange(1 << (4 if t[1] == "4" else 6), dtype=np.uint8).view(dtype)
    x = np.random.default_rng(1).permutation(np.concatenate([codes, codes]))
    same(sort(str(len(x)), [t], 0, "compare(p0, p1), direction=LT, type=TOTALORDER"), x, how=KERNEL)


@pytest.mark.parametrize("t, dtype", [("f32", np.float32), ("bf16", ml_dtypes.bfloat16), ("f64", np.float64)])
def test_floats_in_the_total_order(cuda, t, dtype):
    special = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.5, -1.5, 1e-40, 3.0, 3.0]
    x = np.resize(np.array(special, dtype), (4, 33))
    same(sort("4,33", [t], 1, "compare(p0, p1), direction=LT, type=TOTALORDER"), x, how=KERNEL)


def test_what_is_computed_of_both_sides_alike(cuda):
    more = ["a = s32[] multiply(p0, p0)", "b = s32[] multiply(p1, p1)"]
    x = np.random.default_rng(3).integers(-5, 5, (2, 50)).astype(np.int32)
    same(sort("2,50", ["s32", "s32"], 1, "compare(b, a), direction=LT", more), x, np.arange(100, dtype=np.int32).reshape(2, 50), how=KERNEL)


@pytest.mark.parametrize("text", [sort("2,9", ["f32"], 1), sort("2,9", ["f32"], 1, "compare(p0, p1), direction=LE"),
                                  sort("2,9", ["f32"], 1, "compare(a, p1), direction=LT, type=TOTALORDER", ["a = f32[] negate(p0)"])])
def test_what_is_no_order_for_sure_is_the_hosts(cuda, text):
    same(text, np.resize(np.array([3, np.nan, -1, 0.0, -0.0, 2, np.inf], np.float32), (2, 9)))


RADIX = "by radix in shared memory"
SPECIAL = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.5, -1.5, 1e-40, 3.0, 3.0]


@pytest.mark.parametrize("n, along", [(64, 1), (500, 1), (512, 0), (1030, 1)])
@pytest.mark.parametrize("t, dtype", [("s8", np.int8), ("u16", np.uint16), ("bf16", ml_dtypes.bfloat16), ("f32", np.float32), ("s64", np.int64), ("f64", np.float64)])
def test_a_line_by_radix(cuda, t, dtype, n, along):
    """Of one operand, which goes along with its digits, and with another one, which is moved at the end; all digits differ."""
    rng, shape, is_float = np.random.default_rng(n), (2, n) if along else (n, 2), "f" in t
    x = rng.integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8).view(dtype)[..., 0]
    x.reshape(-1)[::3] = np.resize(np.array(SPECIAL if is_float else [0, 1, 7]).astype(dtype), (x.size + 2) // 3)
    total, dims = ", type=TOTALORDER" if is_float else "", ",".join(map(str, shape))
    same(sort(dims, [t], along, f"compare(p0, p1), direction=GT{total}"), x, how=RADIX if n > 64 or x.itemsize < 8 else KERNEL)
    if n == 500:
        same(sort(dims, [t, "s32"], along, f"compare(p1, p0), direction=GT{total}"), x, np.arange(x.size, dtype=np.int32).reshape(shape), how=RADIX)


def test_keys_that_are_not_the_elements(cuda):
    """As JAX sorts: zeros are equal, and NaNs; they keep their order, and their bits."""
    more = ["z = f32[] constant(0)", "n = f32[] constant(nan)"]
    for i in "01":
        more += [f"e{i} = pred[] compare(p{i}, z), direction=EQ", f"a{i} = f32[] select(e{i}, z, p{i})",
                 f"none{i} = pred[] compare(p{i}, p{i}), direction=NE", f"k{i} = f32[] select(none{i}, n, a{i})"]
    x = np.resize(np.array(SPECIAL, np.float32), (3, 200))
    same(sort("3,200", ["f32"], 1, "compare(k0, k1), direction=LT, type=TOTALORDER", more), x, how=RADIX)


@pytest.mark.parametrize("t, n", [("f32", 8192), ("f64", 4100)])
def test_the_longest_lines_of_a_block(cuda, t, n):
    x = np.random.default_rng(n).standard_normal(n).astype({"f32": np.float32, "f64": np.float64}[t])
    same(sort(str(n), [t], 0, "compare(p0, p1), direction=LT, type=TOTALORDER"), x, how=RADIX)


ROUNDS = "by radix through memory"


@pytest.mark.parametrize("shape, along", [("8193", 0), ("2,8200", 1), ("8200,2", 0)])
def test_lines_too_long_for_shared_memory(cuda, shape, along):
    rng = np.random.default_rng(4)
    dims = [int(d) for d in shape.split(",")]
    args = [rng.integers(0, 1000, dims).astype(np.int32), np.arange(np.prod(dims), dtype=np.float32).reshape(dims)]
    same(sort(shape, ["s32", "f32"], along), *args, how=ROUNDS)
    floats = np.resize(np.array(SPECIAL, np.float32), dims)
    floats.reshape(-1)[:5000] = rng.standard_normal(5000).astype(np.float32)
    same(sort(shape, ["f32"], along, "compare(p0, p1), direction=GT, type=TOTALORDER"), floats, how=ROUNDS)


@pytest.mark.parametrize("t, dtype", [("u8", np.uint8), ("bf16", ml_dtypes.bfloat16)])
def test_long_lines_of_few_digits(cuda, t, dtype):
    x = np.random.default_rng(6).integers(-90, 90, 12300).astype(dtype)
    same(sort("12300", [t], 0, "compare(p0, p1), direction=LT, type=TOTALORDER" if t[0] == "b" else "compare(p0, p1), direction=LT"), x, how=ROUNDS)


def test_keys_of_long_lines_behind_each_other(cuda):
    """Of 16 bits and of 32: a part of a key begins with the numbers so far."""
    more = ["first = pred[] compare(p0, p1), direction=LT", "equal = pred[] compare(p0, p1), direction=EQ",
            "second = pred[] compare(p2, p3), direction=GT", "both = pred[] and(equal, second)"]
    rng = np.random.default_rng(7)
    args = [rng.integers(0, 9, 8200).astype(np.uint16), rng.integers(-2**31, 2**31, 8200).astype(np.int32), np.arange(8200, dtype=np.int32)]
    args[1][::3] = 5
    same(sort("8200", ["u16", "s32", "s32"], 0, "or(first, both)", more), *args, how=ROUNDS)


@pytest.mark.parametrize("n, crossed", [(40, True), (200, True), (8400, False)])
def test_keys_behind_each_other(cuda, n, crossed):
    more = ["first = pred[] compare(p0, p1), direction=LT", "equal = pred[] compare(p1, p0), direction=EQ",
            "second = pred[] compare(p2, p3), direction=GT, type=TOTALORDER", f"both = pred[] and({'second, equal' if crossed else 'equal, second'})"]
    rng = np.random.default_rng(n)
    args = [rng.integers(0, 9, n).astype(np.int32), rng.integers(0, 5, n).astype(np.float32), np.arange(n, dtype=np.int32)]
    same(sort(str(n), ["s32", "f32", "s32"], 0, f"or({'both, first' if crossed else 'first, both'})", more), *args, how=ROUNDS if n > 8192 else KERNEL if n < 100 else RADIX)


def test_keys_that_are_other_ones_than_those_that_are_equal_are_the_hosts(cuda):
    more = ["first = pred[] compare(p0, p1), direction=LT", "equal = pred[] compare(p2, p3), direction=EQ",
            "second = pred[] compare(p2, p3), direction=LT", "both = pred[] and(equal, second)"]
    x = np.arange(6, dtype=np.int32)
    same(sort("6", ["s32", "s32"], 0, "or(first, both)", more), x, x[::-1].copy())


@pytest.mark.parametrize("t, dtype, n, k, largest", [("f32", np.float32, 300, 7, True), ("f32", np.float32, 8200, 3, False),
                                                     ("bf16", ml_dtypes.bfloat16, 9, 9, False), ("u8", np.uint8, 70, 1, True)])
def test_the_first_of_each_line(cuda, t, dtype, n, k, largest):
    x = np.random.default_rng(n).integers(0, 40, (3, n)).astype(dtype)
    if t == "f32":
        x[:, ::5] = np.resize(np.array([np.nan, -0.0, 0.0, -np.nan, np.inf], np.float32), x[:, ::5].shape)
    text = (f"HloModule m\nENTRY e {{\n  x = {t}[3,{n}] parameter(0)\n"
            f"  ROOT t = ({t}[3,{k}], s32[3,{k}]) topk(x), k={k}, largest={'true' if largest else 'false'}\n}}\n")
    same(text, x, how=ROUNDS if n > 8192 else KERNEL)


def scatter(t, rows, columns, n, op="add", window=True, index="s32"):
    """Rows of a matrix, or single elements, at n indices."""
    numbers = ("update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1" if window else
               "update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1")
    updates = f"{t}[{n},{columns}]" if window else f"{t}[{n}]"
    indices = f"{index}[{n},{1 if window else 2}]"
    body = f"ROOT c = {t}[] {op}(a, b)" if op != "set" else f"ROOT c = {t}[] copy(b)"
    return (f"HloModule m\nf {{ a = {t}[] parameter(0)\n b = {t}[] parameter(1)\n {body} }}\nENTRY e {{\n  x = {t}[{rows},{columns}] parameter(0)\n"
            f"  i = {indices} parameter(1)\n  u = {updates} parameter(2)\n  ROOT s = {t}[{rows},{columns}] scatter(x, i, u), {numbers}, to_apply=f\n}}\n")


@pytest.mark.parametrize("op", ["add", "maximum", "multiply", "set"])
@pytest.mark.parametrize("t, dtype", [("f32", np.float32), ("bf16", ml_dtypes.bfloat16)])
def test_rows_in_the_order_of_the_indices(cuda, t, dtype, op):
    rng = np.random.default_rng(5)
    x, u = (rng.standard_normal(s).astype(dtype) for s in ((6, 40), (30, 40)))
    same(scatter(t, 6, 40, 30, op), x, rng.integers(-2, 8, (30, 1)).astype(np.int32), u, how="a thread for each place of a window")


@pytest.mark.parametrize("op", ["add", "minimum", "maximum", "and", "or", "xor"])
@pytest.mark.parametrize("t", ["s32", "u32", "s64", "u64"])
def test_sums_of_integers_are_atomic(cuda, t, op):
    rng = np.random.default_rng(7)
    dtype = np.dtype({"s": "i", "u": "u"}[t[0]] + str(int(t[1:]) // 8))
    x, u = (rng.integers(0, 2**31, s).astype(dtype) * dtype.type(3) for s in ((5, 7), 700))
    same(scatter(t, 5, 7, 700, op, window=False), x, rng.integers(-1, 8, (700, 2)).astype(np.int32), u, how="a thread for each update")


@pytest.mark.parametrize("index, dtype", [("u8", np.uint8), ("s64", np.int64), ("u64", np.uint64)])
def test_indices_that_lie_outside_are_left_out(cuda, index, dtype):
    i = np.array([[0], [3], [255], [4], [2], [0]]).astype(dtype)
    if index == "s64":
        i[2] = np.iinfo(np.int64).min
    if index == "u64":
        i[2] = np.iinfo(np.uint64).max
    same(scatter("f32", 4, 3, 6, "add", index=index), np.ones((4, 3), np.float32), i, np.arange(18, dtype=np.float32).reshape(6, 3), how="a thread for each place")


SORTED = "windows sorted by where they go"


@pytest.mark.parametrize("t, dtype", [("f32", np.float32), ("bf16", ml_dtypes.bfloat16), ("c64", np.complex64)])
def test_many_rows_sorted_by_where_they_go(cuda, t, dtype):
    rng = np.random.default_rng(8)
    x, u = (rng.standard_normal(s).astype(dtype) for s in ((6, 5), (300, 5)))
    same(scatter(t, 6, 5, 300), x, rng.integers(-2, 8, (300, 1)).astype(np.int32), u, how=SORTED)
    same(scatter(t, 6, 5, 300, "set", window=False), x, rng.integers(-1, 7, (300, 2)).astype(np.int32), u[:, 0].copy(), how=SORTED)


@pytest.mark.parametrize("t, how", [("f32", SORTED), ("s32", "a thread for each update")])
def test_windows_that_may_meet(cuda, t, how):
    text = f"""HloModule m
f {{ a = {t}[] parameter(0)
 b = {t}[] parameter(1)
 ROOT c = {t}[] add(a, b) }}
ENTRY e {{
  x = {t}[10] parameter(0)
  i = s32[40,1] parameter(1)
  u = {t}[40,3] parameter(2)
  ROOT s = {t}[10] scatter(x, i, u), update_window_dims={{1}}, inserted_window_dims={{}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=f
}}
"""
    rng = np.random.default_rng(2)
    dtype = np.float32 if t == "f32" else np.int32
    same(text, np.ones(10, dtype), rng.integers(-1, 10, (40, 1)).astype(np.int32), (100 * rng.standard_normal((40, 3))).astype(dtype), how=how)


@pytest.mark.parametrize("n, how", [(20, "a thread for each place"), (60, SORTED)])
def test_arrays_that_are_scattered_together(cuda, n, how):
    text = f"""HloModule m
f {{ a = f32[] parameter(0)
 i = s32[] parameter(1)
 b = f32[] parameter(2)
 j = s32[] parameter(3)
 p = pred[] compare(b, a), direction=GT
 m = f32[] select(p, b, a)
 k = s32[] select(p, j, i)
 ROOT t = (f32[], s32[]) tuple(m, k) }}
ENTRY e {{
  x = f32[7] parameter(0)
  y = s32[7] parameter(1)
  i = s32[{n}] parameter(2)
  u = f32[{n}] parameter(3)
  v = s32[{n}] iota(), iota_dimension=0
  ROOT s = (f32[7], s32[7]) scatter(x, y, i, u, v), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=f
}}
"""
    rng = np.random.default_rng(n)
    same(text, np.zeros(7, np.float32), np.full(7, -1, np.int32), rng.integers(0, 8, n).astype(np.int32), rng.integers(-3, 9, n).astype(np.float32), how=how)


def test_batches_of_indices(cuda):
    text = """HloModule m
f { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[4,6,2] parameter(0)
  i = s32[4,50,1] parameter(1)
  u = f32[4,50,2] parameter(2)
  ROOT s = f32[4,6,2] scatter(x, i, u), update_window_dims={2}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0},
    scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=f
}
"""
    rng = np.random.default_rng(3)
    same(text, np.zeros((4, 6, 2), np.float32), rng.integers(0, 7, (4, 50, 1)).astype(np.int32), rng.standard_normal((4, 50, 2)).astype(np.float32), how=SORTED)
