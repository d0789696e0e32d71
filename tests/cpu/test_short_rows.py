"""Short rows inside kernels, as random numbers of [n,2] keys have them: whole rows are copied together, and blocks may begin and
end within one."""
import numpy as np
import pytest

import xlac

from .test_moves import check, numbers

TYPES = ["f32", "u8", "bf16", "s64", "c128", "pred"]


def twice(t):
    return "or" if t == "pred" else "add"


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("row", [1, 2, 3, 4, 5, 31, 32, 33, 62, 63, 64, 65])
def test_columns_repeated_along_short_rows(t, row):
    rng = np.random.default_rng(1)
    for n in (1, 2, 700, 4099):
        x, k = numbers(rng, t, (n, row)), numbers(rng, t, (n,))
        check(f"HloModule m\nENTRY e {{\n  x = {t}[{n},{row}] parameter(0)\n  k = {t}[{n}] parameter(1)\n"
              f"  b = {t}[{n},{row}] broadcast(k), dimensions={{0}}\n  ROOT r = {t}[{n},{row}] {twice(t)}(x, b)\n}}", x, k, eval_ok=True)


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("row,first,end,step", [(2, 0, 1, 1), (2, 1, 2, 1), (3, 1, 3, 1), (7, 0, 7, 2), (40, 3, 33, 1), (66, 0, 66, 2), (9, 2, 7, 4)])
def test_parts_of_short_rows(t, row, first, end, step):
    rng = np.random.default_rng(2)
    width = len(range(first, end, step))
    for n in (1, 3, 5000):
        x, y = numbers(rng, t, (n, row)), numbers(rng, t, (n, width))
        check(f"HloModule m\nENTRY e {{\n  x = {t}[{n},{row}] parameter(0)\n  y = {t}[{n},{width}] parameter(1)\n"
              f"  s = {t}[{n},{width}] slice(x), slice={{[0:{n}], [{first}:{end}:{step}]}}\n  ROOT r = {t}[{n},{width}] {twice(t)}(s, y)\n}}", x, y, eval_ok=True)


@pytest.mark.parametrize("dims", [(5, 700, 2), (40, 3, 3), (1, 1000, 1), (7, 1, 2), (3, 2, 2, 300), (300, 2, 2, 1), (2, 3, 4, 5)])
def test_short_rows_of_higher_rank_reversed_sliced_and_repeated(dims):
    rng = np.random.default_rng(3)
    x, k = rng.normal(size=dims).astype(np.float32), rng.normal(size=dims[0]).astype(np.float32)
    listed, small = ",".join(map(str, dims)), [max(1, n - 1) for n in dims]
    cut, ranges = ",".join(map(str, small)), ", ".join(f"[{n - m}:{n}]" for n, m in zip(dims, small))
    every = ",".join(map(str, range(len(dims))))
    check(f"HloModule m\nENTRY e {{\n  x = f32[{listed}] parameter(0)\n  k = f32[{dims[0]}] parameter(1)\n  b = f32[{listed}] broadcast(k), dimensions={{0}}\n"
          f"  v = f32[{listed}] reverse(x), dimensions={{{every}}}\n  a = f32[{listed}] multiply(v, b)\n  c = f32[{cut}] slice(a), slice={{{ranges}}}\n"
          f"  d = f32[{cut}] slice(x), slice={{{ranges}}}\n  ROOT r = f32[{cut}] subtract(c, d)\n}}", x, k, eval_ok=True)


def test_short_rows_in_several_kernels_of_one_group():
    rng = np.random.default_rng(4)
    x, k = rng.integers(0, 1 << 32, (3000, 3), np.uint32), rng.integers(0, 1 << 32, (3000, 2), np.uint32)
    check("""HloModule m
ENTRY e {
  x = u32[3000,3] parameter(0)
  k = u32[3000,2] parameter(1)
  k0 = u32[3000,1] slice(k), slice={[0:3000], [0:1]}
  k1 = u32[3000,1] slice(k), slice={[0:3000], [1:2]}
  r0 = u32[3000] reshape(k0)
  r1 = u32[3000] reshape(k1)
  b0 = u32[3000,3] broadcast(r0), dimensions={0}
  b1 = u32[3000,3] broadcast(r1), dimensions={0}
  a = u32[3000,3] add(x, b0)
  c = u32[3000,3] xor(a, b1)
  d = u32[3000,3] multiply(c, a)
  s = u32[3000,2] slice(d), slice={[0:3000], [1:3]}
  e0 = u32[3000,2] add(s, k)
  ROOT t = (u32[3000,3], u32[3000,2]) tuple(d, e0)
}""", x, k, eval_ok=True)


@pytest.mark.parametrize("t", ["f32", "f64", "s32"])
@pytest.mark.parametrize("n, row", [(5, 3), (63, 3), (64, 3), (100, 7), (70, 8), (257, 1), (200, 2)])
def test_sums_of_long_columns_that_are_few(t, n, row):
    """Of what is computed from arrays of other dimensions: one column after the other."""
    rng = np.random.default_rng(n)
    x, w = rng.integers(-9, 9, (n, row)), rng.integers(1, 9, (n, n))
    dtype = {"f32": "f4", "f64": "f8", "s32": "i4"}[t]
    text = f"""HloModule m
f {{ p = {t}[] parameter(0)
  q = {t}[] parameter(1)
  ROOT r = {t}[] add(p, q) }}
ENTRY e {{
  x = {t}[{n},{row}] parameter(0)
  w = {t}[{n},{n}] parameter(1)
  a = {t}[{n},{n},{row}] broadcast(x), dimensions={{0,2}}
  b = {t}[{n},{n},{row}] broadcast(x), dimensions={{1,2}}
  d = {t}[{n},{n},{row}] subtract(a, b)
  v = {t}[{n},{n},{row}] broadcast(w), dimensions={{0,1}}
  m = {t}[{n},{n},{row}] multiply(d, v)
  zero = {t}[] constant(0)
  ROOT r = {t}[{n},{row}] reduce(m, zero), dimensions={{1}}, to_apply=f
}}"""
    want = ((x[:, None] - x[None]) * w[..., None]).sum(1).astype(dtype)
    for threads in (1, 3):
        got = xlac.compile(xlac.parse(text), threads=threads)(x.astype(dtype), w.astype(dtype))
        assert np.asarray(got).tobytes() == want.tobytes()
    along = f"over [{n * row},({n}),1]" in xlac.compile_stage(xlac.parse(text), "kernels")
    assert row == 1 or along == (n >= 64 and row < 8)


@pytest.mark.parametrize("dims", [(500, 2), (300, 3), (40, 5, 3)])
@pytest.mark.parametrize("reversed_dims", [(0,), (1,), (0, 1)])
def test_short_rows_read_from_their_end(dims, reversed_dims):
    rng = np.random.default_rng(6)
    x, y = (rng.normal(size=dims).astype(np.float32) for _ in range(2))
    shape = "f32[" + ",".join(map(str, dims)) + "]"
    every = ",".join(map(str, reversed_dims))
    ops = "".join(f"  m{i} = {shape} multiply(m{i - 1}, y)\n  d{i} = {shape} subtract(m{i}, x)\n" for i in range(1, 6))
    check(f"HloModule m\nENTRY e {{\n  x = {shape} parameter(0)\n  y = {shape} parameter(1)\n  m0 = {shape} reverse(x), dimensions={{{every}}}\n{ops}"
          f"  ROOT r = {shape} add(d5, d1)\n}}", x, y, eval_ok=True)


@pytest.mark.parametrize("n,row", [(4, 3), (12, 3), (16, 5), (33, 3)])
@pytest.mark.parametrize("along", [0, 1, 2])
def test_differences_of_few_points(n, row, along):
    """Small kernels whose rows are coordinates: machine code gathers what it reads, where blocks would begin anew for each row."""
    kept = ",".join(str(d) for i, d in enumerate((n, n, row)) if i != along)
    check(f"HloModule m\nmost {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT m = f32[] maximum(a, b)\n}}\n"
          f"ENTRY e {{\n  q = f32[{n},{row}] parameter(0)\n  w = f32[{n},{n}] parameter(1)\n  x = f32[{n},{n},{row}] broadcast(q), dimensions={{0,2}}\n"
          f"  y = f32[{n},{n},{row}] broadcast(q), dimensions={{1,2}}\n  z = f32[{n},{n},{row}] broadcast(w), dimensions={{1,0}}\n"
          f"  d = f32[{n},{n},{row}] subtract(x, y)\n  e = f32[{n},{n},{row}] divide(d, z)\n  l = f32[] constant(-inf)\n"
          f"  ROOT r = f32[{kept}] reduce(e, l), dimensions={{{along}}}, to_apply=most\n}}",
          *(np.random.default_rng(n).standard_normal(s).astype(np.float32) for s in ((n, row), (n, n))), eval_ok=True)


@pytest.mark.parametrize("t", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f32", "f64", "bf16", "f16"])
@pytest.mark.parametrize("row", [3, 5, 8, 10, 16])
def test_iotas_along_short_rows(t, row):
    rng = np.random.default_rng(5)
    for n in (700, 4099):
        x = numbers(rng, t, (n,))
        check(f"HloModule m\nENTRY e {{\n  x = {t}[{n}] parameter(0)\n  b = {t}[{n},{row}] broadcast(x), dimensions={{0}}\n"
              f"  i = {t}[{n},{row}] iota(), iota_dimension=1\n  v = {t}[{n},{row}] reverse(i), dimensions={{1}}\n"
              f"  a = {t}[{n},{row}] multiply(b, i)\n  ROOT r = {t}[{n},{row}] subtract(a, v)\n}}", x, eval_ok=True)


@pytest.mark.parametrize("t", ["s8", "u8", "s16", "u16", "s32", "u32", "s64"])
@pytest.mark.parametrize("op", ["shift-left", "shift-right-logical", "shift-right-arithmetic"])
@pytest.mark.parametrize("row", [8, 12, 100])
def test_shifts_along_rows(t, op, row):
    rng = np.random.default_rng(6)
    x, by, each = numbers(rng, t, (901,)), numbers(rng, t, (901, row)), rng.integers(0, 70, row).astype(numbers(rng, t, (1,)).dtype)
    check(f"HloModule m\nENTRY e {{\n  x = {t}[901] parameter(0)\n  y = {t}[901,{row}] parameter(1)\n  z = {t}[{row}] parameter(2)\n"
          f"  b = {t}[901,{row}] broadcast(x), dimensions={{0}}\n  i = {t}[901,{row}] iota(), iota_dimension=1\n  o = {t}[] constant(1)\n"
          f"  one = {t}[901,{row}] broadcast(o), dimensions={{}}\n  k = {t}[901,{row}] broadcast(z), dimensions={{1}}\n"
          f"  p = {t}[901,{row}] {op}(b, i)\n  q = {t}[901,{row}] {op}(p, one)\n  s = {t}[901,{row}] {op}(b, k)\n  u = {t}[901,{row}] {op}(y, y)\n"
          f"  v = {t}[901,{row}] xor(s, u)\n  ROOT r = {t}[901,{row}] xor(q, v)\n}}", x, by, each, eval_ok=True)


@pytest.mark.parametrize("row", [5, 8, 11, 16, 17])
@pytest.mark.parametrize("t", ["u8", "s16", "f32", "f64"])
def test_short_tables_are_read_once(t, row):
    rng = np.random.default_rng(7)
    x, table = numbers(rng, t, (3001,)), numbers(rng, t, (row,))
    check(f"HloModule m\nENTRY e {{\n  x = {t}[3001] parameter(0)\n  y = {t}[{row}] parameter(1)\n  b = {t}[3001,{row}] broadcast(x), dimensions={{0}}\n"
          f"  k = {t}[3001,{row}] broadcast(y), dimensions={{1}}\n  m = {t}[3001,{row}] maximum(b, k)\n  s = {t}[3001,{row}] subtract(m, k)\n"
          f"  ROOT r = {t}[3001,{row}] multiply(s, b)\n}}", x, table, eval_ok=True)


@pytest.mark.parametrize("t", ["u8", "s32", "u64", "f32", "f64"])
@pytest.mark.parametrize("row", [3, 8, 10, 31])
def test_short_rows_that_are_computed_and_summed(t, row):
    rng = np.random.default_rng(8)
    x, table = numbers(rng, t, (3001, row)), numbers(rng, t, (row,))
    check(f"HloModule m\na {{\n  p = {t}[] parameter(0)\n  q = {t}[] parameter(1)\n  ROOT s = {t}[] add(p, q)\n}}\nENTRY e {{\n"
          f"  x = {t}[3001,{row}] parameter(0)\n  y = {t}[{row}] parameter(1)\n  i = {t}[3001,{row}] iota(), iota_dimension=1\n"
          f"  k = {t}[3001,{row}] broadcast(y), dimensions={{1}}\n  m = {t}[3001,{row}] maximum(x, k)\n  s = {t}[3001,{row}] subtract(m, i)\n"
          f"  d = {t}[3001,{row}] multiply(s, x)\n  z = {t}[] constant(0)\n  ROOT r = {t}[3001] reduce(d, z), dimensions={{1}}, to_apply=a\n}}",
          x, table, eval_ok=True)


@pytest.mark.parametrize("t", ["f32", "f64", "bf16", "u8", "s16", "s32", "u64"])
@pytest.mark.parametrize("op", ["maximum", "minimum", "multiply", "add"])
@pytest.mark.parametrize("row", [4, 5, 6, 8, 9, 31, 63])
def test_rows_of_few_elements_are_combined_in_order(t, op, row):
    rng = np.random.default_rng(9)
    for n in (5, 700):
        x = numbers(rng, t, (n, row))
        if t[0] == "f":
            x[rng.random(x.shape) < 0.1] = -0.0
            x[rng.random(x.shape) < 0.1] = 0.0
            x[rng.random(x.shape) < 0.01] = np.nan
        check(f"HloModule m\na {{\n  p = {t}[] parameter(0)\n  q = {t}[] parameter(1)\n  ROOT s = {t}[] {op}(p, q)\n}}\nENTRY e {{\n"
              f"  x = {t}[{n},{row}] parameter(0)\n  z = {t}[] constant(1)\n  ROOT r = {t}[{n}] reduce(x, z), dimensions={{1}}, to_apply=a\n}}", x, eval_ok=True)


@pytest.mark.parametrize("t", ["u8", "bf16", "s16", "f32", "s64", "c64"])
@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 7, 8, 9, 16])
def test_elements_that_are_apart(t, step):
    """Forwards to the last element of the array, and backwards from it."""
    rng = np.random.default_rng(10)
    for n in (40, 97, 3000):
        whole = (n - 1) * step + 1
        x = numbers(rng, t, (whole,))
        check(f"HloModule m\nENTRY e {{\n  x = {t}[{whole}] parameter(0)\n  a = {t}[{n}] slice(x), slice={{[0:{whole}:{step}]}}\n"
              f"  v = {t}[{whole}] reverse(x), dimensions={{0}}\n  b = {t}[{n}] slice(v), slice={{[0:{whole}:{step}]}}\n"
              f"  ROOT r = {t}[{n}] subtract(a, b)\n}}", x, eval_ok=True)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("op", ["add", "maximum", "minimum"])
@pytest.mark.parametrize("n", [64, 96, 137])
def test_rows_that_go_along_together_have_the_bits_that_each_has_alone(n, op, dtype):
    """Of 37 rows some are left over; what is combined is computed before, by machine code."""
    def compiled(rows):
        return xlac.compile(xlac.parse(f"""HloModule m
        f {{ x = {dtype}[] parameter(0)
          y = {dtype}[] parameter(1)
          ROOT z = {dtype}[] {op}(x, y) }}
        ENTRY e {{ a = {dtype}[{rows},{n}] parameter(0)
          i = {dtype}[] constant({'0' if op == 'add' else '-inf' if op == 'maximum' else 'inf'})
          s = {dtype}[{rows},{n}] multiply(a, a)
          t = {dtype}[{rows},{n}] subtract(s, a)
          ROOT r = {dtype}[{rows}] reduce(t, i), dimensions={{1}}, to_apply=f }}"""))

    rng = np.random.default_rng(n)
    x = rng.standard_normal((37, n)).astype({"f32": np.float32, "f64": np.float64}[dtype])
    x[3, 5], x[20, n - 1], x[36, 0] = np.nan, np.inf, -np.inf
    x[7], x[8, ::2], x[8, 1::2] = 0, 0, -0.0
    one = compiled(1)
    found, alone = compiled(37)(x), np.concatenate([one(x[i:i + 1]) for i in range(37)])
    assert found.tobytes() == alone.tobytes()
    with np.errstate(all="ignore"):
        right = {"add": np.sum, "maximum": np.max, "minimum": np.min}[op](x * x - x, axis=1)
    np.testing.assert_allclose(found, right, rtol=1e-4)


@pytest.mark.parametrize("t", ["f32", "f64", "f16", "s32"])
@pytest.mark.parametrize("row", [64, 100, 128, 1000])
def test_products_of_many_rows_summed_together(t, row):
    """Lanes of 16 rows are folded at a time; 37 rows leave some."""
    rng = np.random.default_rng(12)
    x, y = numbers(rng, t, (37, row)), numbers(rng, t, (37, row))
    check(f"HloModule m\na {{\n  p = {t}[] parameter(0)\n  q = {t}[] parameter(1)\n  ROOT s = {t}[] add(p, q)\n}}\n"
          f"b {{\n  p = {t}[] parameter(0)\n  q = {t}[] parameter(1)\n  ROOT s = {t}[] maximum(p, q)\n}}\nENTRY e {{\n"
          f"  x = {t}[37,{row}] parameter(0)\n  y = {t}[37,{row}] parameter(1)\n  z = {t}[] constant(1)\n  c = {t}[37,{row}] multiply(x, y)\n"
          f"  d = {t}[37,{row}] multiply(x, x)\n  r0 = {t}[37] reduce(c, z), dimensions={{1}}, to_apply=a\n  r1 = {t}[37] reduce(d, z), dimensions={{1}}, to_apply=a\n"
          f"  r2 = {t}[37] reduce(x, z), dimensions={{1}}, to_apply=b\n  ROOT r = ({t}[37], {t}[37], {t}[37]) tuple(r0, r1, r2)\n}}", x, y, eval_ok=True)


@pytest.mark.parametrize("t", ["f32", "u8", "bf16", "s64", "c64"])
@pytest.mark.parametrize("last", [(2,), (3,), (5,), (2, 2), (3, 2)])
def test_columns_stacked_along_short_rows(t, last):
    """[[d, -b], [-c, a]] / e, as inverses of small matrices are written: which part an iteration is of says its digit."""
    rng = np.random.default_rng(5)
    for n in (4, 33, 1500):
        places = list(np.ndindex(*last))
        x, k = numbers(rng, t, (n, *last)), numbers(rng, t, (n,))
        listed = ",".join(map(str, (n, *last)))
        lines, ones = [f"x = {t}[{listed}] parameter(0)", f"k = {t}[{n}] parameter(1)"], ",".join("1" for _ in last)
        for i, place in enumerate(places):
            ranges = ", ".join(f"[{p}:{p + 1}]" for p in place)
            lines += [f"t{i} = {t}[{n},{ones}] slice(x), slice={{[0:{n}], {ranges}}}", f"q{i} = {t}[{n}] reshape(t{i})",
                      f"p{i} = {t}[{n}] {('add(q{i}, k)', 'multiply(q{i}, k)', 'subtract(q{i}, k)', 'reshape(q{i})')[i % 4].format(i=i)}"]
        groups, names = list(last), [f"p{len(places) - 1 - i}" for i in range(len(places))]
        for d in range(len(last), 0, -1):  # from the innermost dimension outwards
            inner, groups, rest = last[d:], groups[:-1], []
            wide = ",".join(map(str, (n, 1, *inner)))
            for j in range(0, len(names), last[d - 1]):
                some = names[j:j + last[d - 1]]
                lines += [f"w{d}_{j}_{i} = {t}[{wide}] reshape({name})" for i, name in enumerate(some)]
                parts = ", ".join(f"w{d}_{j}_{i}" for i in range(len(some)))
                lines.append(f"c{d}_{j} = {t}[{','.join(map(str, (n, *last[d - 1:])))}] concatenate({parts}), dimensions={{1}}")
                rest.append(f"c{d}_{j}")
            names = rest
        lines += [f"b = {t}[{listed}] broadcast(k), dimensions={{0}}", f"ROOT r = {t}[{listed}] subtract({names[0]}, b)"]
        check("HloModule m\nENTRY e {\n  " + "\n  ".join(lines) + "\n}", x, k, eval_ok=True)


CHANNELS = [(3, 1), (1, 3), (1, 1), (2, 3), (3, 4), (1, 1, 1), (1, 2, 1), (1, 1, 1, 1), (2, 2, 2), (5, 1), (4, 4)]


@pytest.mark.parametrize("t", [*TYPES, "f64", "u16"])
@pytest.mark.parametrize("parts", CHANNELS)
def test_channels_are_joined(t, parts, monkeypatch):
    """Pixels of few channels: joined, cut out of others in another order, and one that is the same everywhere; whatever the instructions."""
    rng = np.random.default_rng(sum(parts))
    all_ = sum(parts)
    for isa in ("portable", "avx2", "avx512"):
        monkeypatch.setenv("XLAC_MAX_ISA", isa)
        for n in (600, 4099):
            arrays = [numbers(rng, t, (n, p)) for p in parts]
            made = "".join(f"  p{i} = {t}[{n},{p}] parameter({i})\n" for i, p in enumerate(parts))
            names = ", ".join(f"p{i}" for i in range(len(parts)))
            check(f"HloModule m\nENTRY e {{\n{made}  ROOT r = {t}[{n},{all_}] concatenate({names}), dimensions={{1}}\n}}", *arrays)
            x = numbers(rng, t, (n, all_))
            ends = [sum(parts[:i + 1]) for i in range(len(parts))]
            cut = "".join(f"  p{i} = {t}[{n},{p}] slice(x), slice={{[0:{n}], [{e - p}:{e}]}}\n" for i, (p, e) in enumerate(zip(parts, ends)))
            back = ", ".join(f"p{i}" for i in reversed(range(len(parts))))
            check(f"HloModule m\nENTRY e {{\n  x = {t}[{n},{all_}] parameter(0)\n{cut}  ROOT r = {t}[{n},{all_}] concatenate({back}), dimensions={{1}}\n}}", x)
            one = {"pred": "true", "c128": "(1, -2)"}.get(t, "7")
            check(f"HloModule m\nENTRY e {{\n  x = {t}[{n},{all_}] parameter(0)\n  c = {t}[] constant({one})\n"
                  f"  ROOT r = {t}[{n},{all_ + 3}] pad(x, c), padding=0_0x1_2\n}}", x)


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("times,row", [(2, 1), (2, 3), (3, 2), (2, 16), (4, 16), (3, 5), (2, 64)])
def test_rows_repeated(t, times, row):
    """Nearest neighbours: no more than moves, of rows that are too short to be copied one by one, beside some that are not."""
    rng = np.random.default_rng(row)
    for n in (40, 2500):
        x = numbers(rng, t, (n, row))
        check(f"HloModule m\nENTRY e {{\n  x = {t}[{n},{row}] parameter(0)\n  ROOT r = {t}[{n},{times},{row}] broadcast(x), dimensions={{0,2}}\n}}", x)


def test_channels_are_joined_without_a_pass_for_each():
    module = """HloModule m
ENTRY e {
  x = u8[5000,3] parameter(0)
  c = u8[] constant(255)
  a = u8[5000,1] broadcast(c), dimensions={}
  ROOT r = u8[5000,4] concatenate(x, a), dimensions={1}
}"""
    assert "kernel [5000,4] from 1 input" in str(xlac.compile(module).explain("kernels"))


@pytest.mark.parametrize("t", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "pred"])
@pytest.mark.parametrize("op", ["add", "multiply", "and", "or", "xor", "maximum", "minimum"])
def test_whole_numbers_of_short_rows(t, op):
    """Of rows of as many elements as a power of 2 neighbours are combined first; the order of whole numbers does not matter."""
    rng = np.random.default_rng(len(op))
    init = "true" if t == "pred" else "3"
    for row in (2, 3, 4, 8, 12, 16, 32, 63):
        for n in (2, 37, 1500):
            x = numbers(rng, t, (n, row))
            check(f"""HloModule m
c {{ a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT r = {t}[] {op}(a, b) }}
ENTRY e {{
  x = {t}[{n},{row}] parameter(0)
  i = {t}[] constant({init})
  y = {t}[{n},{row}] {"not" if t == "pred" else "negate"}(x)
  ROOT r = {t}[{n}] reduce(y, i), dimensions={{1}}, to_apply=c
}}""", x, eval_ok=True)
