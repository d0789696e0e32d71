"""algebraic-simplification: what is left of small programs, and that not a bit of a result changes."""
import re

import numpy as np
import pytest

import xlac

F = "x = f32[2,3] parameter(0)\n"
I = "x = s32[2,3] parameter(0)\n"
P = "x = pred[2,3] parameter(0)\n"
EDGES = np.array([[0.0, -0.0, np.inf], [np.nan, -1.5, 1e-42]], np.float32)
VALUES = {"f32[2,3]": EDGES, "s32[2,3]": np.array([[0, -1, 7], [2**31 - 1, -2**31, 3]], np.int32),
          "pred[2,3]": np.array([[True, False, True], [False, False, True]]), "f32[2,3,4]": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
          "f16[2,3]": EDGES.astype(np.float16), "f32[4,3,2]": np.arange(24, dtype=np.float32).reshape(4, 3, 2), "u8[2,3]": np.arange(6, dtype=np.uint8).reshape(2, 3) * 50}


def const(t, value, shape="[2,3]"):
    return f"c = {t}[] constant({value})\nb = {t}{shape} broadcast(c), dimensions={{}}\n"


def left(m):
    """Opcodes of the entry, without parameters."""
    body = re.search(r"(?s)ENTRY .*?\{\n(.*?)\n\}", m.to_text())[1]
    found = [re.search(r" ([a-z][\w-]*)\(", line.split(" = ", 1)[1])[1] for line in body.split("\n")]
    return [op for op in found if op != "parameter"]


def bits(value):
    return [np.asarray(v).tobytes() for v in (value if isinstance(value, tuple) else (value,))]


def check(body, want):
    before = xlac.parse("HloModule m\nENTRY e {\n" + body + "\n}")
    before.verify()
    after = before.run("algebraic-simplification,dce")
    after.verify()
    args = [VALUES[t] for t in re.findall(r"= (\w+\[[\d,]*\]) parameter", body)]
    assert left(after) == want
    assert bits(xlac.interpret(before, *args)) == bits(xlac.interpret(after, *args))


def modulo(m, x="x", added=None):
    """x % m as JAX writes it."""
    return (const("s32", m) + f"a = s32[] constant({added or m})\nab = s32[2,3] broadcast(a), dimensions={{}}\nz = s32[] constant(0)\nzb = s32[2,3] broadcast(z), dimensions={{}}\n"
            f"q = s32[2,3] remainder({x}, b)\nne = pred[2,3] compare(q, zb), direction=NE\nlt = pred[2,3] compare(q, zb), direction=LT\n"
            "both = pred[2,3] and(lt, ne)\nsum = s32[2,3] add(q, ab)\n")


NORMAL = "n = pred[2,3] compare(f, zb), direction=LT\nw = s32[2,3] add(f, b)\nROOT r = s32[2,3] select(n, w, f)"
FLOOR = ["constant", "broadcast", "remainder", "constant", "broadcast", "compare", "constant", "broadcast", "add", "select"]


@pytest.mark.parametrize("body, want", [
    (I + modulo(16) + "ROOT r = s32[2,3] select(both, sum, q)", ["constant", "broadcast", "and"]),
    (I + modulo(16) + "f = s32[2,3] select(both, sum, q)\n" + NORMAL, ["constant", "broadcast", "and"]),
    (I + modulo(12) + "ROOT r = s32[2,3] select(both, sum, q)", FLOOR),
    (I + modulo(12) + "f = s32[2,3] select(both, sum, q)\n" + NORMAL, FLOOR),
    (I + modulo(16, added=8) + "ROOT r = s32[2,3] select(both, sum, q)", FLOOR),
    (I + modulo(-16) + "ROOT r = s32[2,3] select(both, sum, q)", FLOOR),
    (I + "k = s32[2,3] iota(), iota_dimension=0\n" + modulo(8, "k") + "ROOT r = pred[2,3] compare(q, zb), direction=LT", ["constant", "broadcast"]),
    (I + modulo(8) + "ROOT r = pred[2,3] compare(q, zb), direction=LT", ["constant", "broadcast", "remainder", "constant", "broadcast", "compare"]),
    ("x = u8[2,3] parameter(0)\n" + const("u8", "8") + "ROOT r = u8[2,3] remainder(x, b)", ["constant", "broadcast", "and"]),
    ("x = u8[2,3] parameter(0)\n" + const("u8", "12") + "ROOT r = u8[2,3] remainder(x, b)", ["constant", "broadcast", "remainder"]),
    ("x = u8[2,3] parameter(0)\n" + const("u8", "0") + "ROOT r = pred[2,3] compare(x, b), direction=LT", ["constant", "broadcast"]),
    ("x = u8[2,3] parameter(0)\n" + const("u8", "0") + "ROOT r = pred[2,3] compare(b, x), direction=LE", ["constant", "broadcast"]),
    ("x = u8[2,3] parameter(0)\n" + const("u8", "0") + "ROOT r = pred[2,3] compare(x, b), direction=LE", ["constant", "broadcast", "compare"]),
    ("x = u8[2,3] parameter(0)\nk = s32[2,3] convert(x)\n" + const("s32", "0") + "ROOT r = pred[2,3] compare(k, b), direction=GE", ["constant", "broadcast"]),
    ("x = u8[2,3] parameter(0)\nk = s8[2,3] convert(x)\n" + const("s8", "0") + "ROOT r = pred[2,3] compare(k, b), direction=GE", ["convert", "constant", "broadcast", "compare"]),
    (I + const("s32", "0") + "k = s32[2,3] maximum(b, x)\nROOT r = pred[2,3] compare(k, b), direction=LT", ["constant", "broadcast"]),
    (I + const("s32", "0") + "k = s32[2,3] minimum(b, x)\nROOT r = pred[2,3] compare(k, b), direction=LT", ["constant", "broadcast", "minimum", "compare"]),
    (F + const("f32", "0") + "lt = pred[2,3] compare(x, b), direction=LT, type=TOTALORDER\nne = pred[2,3] compare(x, b), direction=NE\nROOT r = pred[2,3] and(lt, ne)",
     ["constant", "broadcast", "compare", "compare", "and"]),
])
def test_signs(body, want):
    check(body, want)


@pytest.mark.parametrize("body, want", [
    (F + const("f32", "-0") + "ROOT r = f32[2,3] add(x, b)", []),
    (F + const("f32", "0") + "ROOT r = f32[2,3] add(x, b)", ["constant", "broadcast", "add"]),
    (F + const("f32", "0") + "ROOT r = f32[2,3] subtract(x, b)", []),
    (F + const("f32", "-0") + "ROOT r = f32[2,3] subtract(x, b)", ["constant", "broadcast", "subtract"]),
    (F + "ROOT r = f32[2,3] subtract(x, x)", ["subtract"]),
    (I + "ROOT r = s32[2,3] subtract(x, x)", ["constant", "broadcast"]),
    (F + const("f32", "0") + "ROOT r = f32[2,3] multiply(x, b)", ["constant", "broadcast", "multiply"]),
    (I + const("s32", "0") + "ROOT r = s32[2,3] multiply(b, x)", ["constant", "broadcast"]),
    (F + const("f32", "1") + "ROOT r = f32[2,3] multiply(b, x)", []),
    (F + const("f32", "4") + "ROOT r = f32[2,3] divide(x, b)", ["constant", "broadcast", "multiply"]),
    (F + const("f32", "3") + "ROOT r = f32[2,3] divide(x, b)", ["constant", "broadcast", "divide"]),
    (I + const("s32", "1") + "ROOT r = s32[2,3] divide(x, b)", []),
    (I + const("s32", "1") + "ROOT r = s32[2,3] remainder(x, b)", ["constant", "broadcast"]),
    (I + const("s32", "-1") + "ROOT r = s32[2,3] and(b, x)", []),
    (I + const("s32", "-1") + "ROOT r = s32[2,3] or(b, x)", ["constant", "broadcast"]),
    ("x = u8[2,3] parameter(0)\n" + const("u8", "255") + "ROOT r = u8[2,3] and(x, b)", []),
    (P + const("pred", "true") + "ROOT r = pred[2,3] and(x, b)", []),
    (F + "n = f32[2,3] negate(x)\nt = (f32[2,3], f32[2,3]) tuple(x, n)\ng = f32[2,3] get-tuple-element(t), index=1\nROOT r = f32[2,3] abs(g)", ["negate", "abs"]),
    (F + "t = (f32[2,3], (f32[2,3])) tuple(x, u)\n".replace("t =", "u = (f32[2,3]) tuple(x)\nt =")
     + "g = (f32[2,3]) get-tuple-element(t), index=1\nROOT r = f32[2,3] get-tuple-element(g), index=0", ["tuple", "tuple", "get-tuple-element", "get-tuple-element"]),
    (I + "ROOT r = s32[2,3] xor(x, x)", ["constant", "broadcast"]),
    (I + const("s32", "0") + "ROOT r = s32[2,3] shift-left(x, b)", []),
    (F + "n = f32[2,3] negate(x)\nROOT r = f32[2,3] negate(n)", []),
    (P + "n = pred[2,3] not(x)\nROOT r = pred[2,3] not(n)", []),
    (F + "n = f32[2,3] abs(x)\nROOT r = f32[2,3] abs(n)", ["abs"]),
    (F + "n = f32[2,3] sine(x)\nROOT r = f32[2,3] sine(n)", ["sine", "sine"]),
    (I + "n = s64[2,3] convert(x)\nROOT r = s32[2,3] convert(n)", []),
    (I + "n = s64[2,3] convert(x)\nROOT r = u8[2,3] convert(n)", ["convert"]),
    (I + "n = f64[2,3] convert(x)\nROOT r = u8[2,3] convert(n)", ["convert", "convert"]),
    (I + "n = f32[2,3] convert(x)\nROOT r = s32[2,3] convert(n)", ["convert", "convert"]),
    ("x = f16[2,3] parameter(0)\nn = f32[2,3] convert(x)\nROOT r = s8[2,3] convert(n)", ["convert"]),
    (F + "n = bf16[2,3] convert(x)\nROOT r = f32[2,3] convert(n)", ["convert", "convert"]),
    (F + "n = s32[2,3] bitcast-convert(x)\nROOT r = f32[2,3] bitcast-convert(n)", []),
    (I + "ROOT r = pred[2,3] compare(x, x), direction=LE", ["constant", "broadcast"]),
    (F + "ROOT r = pred[2,3] compare(x, x), direction=EQ", ["compare"]),
    (P + const("pred", "false") + "ROOT r = pred[2,3] compare(x, b), direction=NE", []),
    (F + "p = pred[2,3] parameter(1)\nROOT r = f32[2,3] select(p, x, x)", []),
    (F + "p = pred[2,3] parameter(1)\nn = pred[2,3] not(p)\ny = f32[2,3] abs(x)\nROOT r = f32[2,3] select(n, x, y)", ["abs", "select"]),
    (F + "y = f32[2,3] abs(x)\nz = c64[2,3] complex(x, y)\nROOT r = f32[2,3] imag(z)", ["abs"]),
])
def test_arithmetic(body, want):
    check(body, want)


T = "x = f32[2,3,4] parameter(0)\n"


@pytest.mark.parametrize("body, want", [
    (T + "a = f32[24] reshape(x)\nROOT r = f32[4,6] reshape(a)", ["reshape"]),
    (T + "a = f32[24] reshape(x)\nROOT r = f32[2,3,4] reshape(a)", []),
    (T + "a = f32[4,3,2] transpose(x), dimensions={2,1,0}\nROOT r = f32[2,3,4] transpose(a), dimensions={2,1,0}", []),
    (T + "a = f32[3,2,4] transpose(x), dimensions={1,0,2}\nROOT r = f32[4,3,2] transpose(a), dimensions={2,0,1}", ["transpose"]),
    (T + "a = f32[4,2,3] transpose(x), dimensions={2,0,1}\nb = f32[2,2,2,3] reshape(a)\nROOT r = f32[2,3,2,2] transpose(b), dimensions={2,3,0,1}", ["reshape"]),
    (T + "a = f32[3,2,4] transpose(x), dimensions={1,0,2}\nb = f32[3,8] reshape(a)\nROOT r = f32[8,3] transpose(b), dimensions={1,0}",
     ["reshape", "transpose", "reshape"]),
    (T + "a = f32[4,3,2] transpose(x), dimensions={2,1,0}\nb = f32[12,2] reshape(a)\nROOT r = f32[2,12] transpose(b), dimensions={1,0}",
     ["reshape", "transpose", "reshape"]),
    (T + "a = f32[3,2,4] transpose(x), dimensions={1,0,2}\nb = f32[4,6] reshape(a)\nROOT r = f32[6,4] transpose(b), dimensions={1,0}",
     ["transpose", "reshape", "transpose"]),
    (T + "a = f32[1,2,3,4] reshape(x)\nROOT r = f32[2,1,3,4] transpose(a), dimensions={1,0,2,3}", ["reshape"]),
    (T + "a = f32[2,3,4,5] broadcast(x), dimensions={0,1,2}\nROOT r = f32[7,2,3,4,5] broadcast(a), dimensions={1,2,3,4}", ["broadcast"]),
    (T + "ROOT r = f32[2,1,3,4] broadcast(x), dimensions={0,2,3}", ["reshape"]),
    (T + "a = f32[5,2,3,4] broadcast(x), dimensions={1,2,3}\nROOT r = f32[2,3,5,4] transpose(a), dimensions={1,2,0,3}", ["broadcast"]),
    (T + "a = f32[5,2,3,4] broadcast(x), dimensions={1,2,3}\nROOT r = f32[3,2,5,4] transpose(a), dimensions={2,1,0,3}", ["broadcast", "transpose"]),
    (T + "a = f32[2,2,4] slice(x), slice={[0:2], [0:3:2], [0:4]}\nROOT r = f32[1,1,2] slice(a), slice={[1:2], [1:2], [0:4:2]}", ["slice"]),
    (T + "ROOT r = f32[2,3,4] slice(x), slice={[0:2], [0:3], [0:4]}", []),
    (T + "e = f32[2,0,4] slice(x), slice={[0:2], [1:1], [0:4]}\ny = f32[2,3,4] abs(x)\nROOT r = f32[2,6,4] concatenate(x, e, y), dimensions={1}",
     ["abs", "concatenate"]),
    (T + "ROOT r = f32[2,3,4] concatenate(x), dimensions={1}", []),
    (T + "z = f32[] constant(3)\nROOT r = f32[2,3,4] pad(x, z), padding=0_0x0_0x0_0", []),
    (T + "z = f32[] constant(3)\nROOT r = f32[2,3,4] pad(x, z), padding=1_-1x0_0x0_0", ["constant", "pad"]),
    (T + "a = f32[1,2,3,4] reshape(x)\nROOT r = f32[1,2,3,4] reverse(a), dimensions={0}", ["reshape"]),
    (T + "i = s32[] constant(-5)\nj = s32[] constant(2)\nk = s32[] constant(9)\n"
     "ROOT r = f32[1,1,2] dynamic-slice(x, i, j, k), dynamic_slice_sizes={1,1,2}", ["slice"]),
    (T + "i = s32[] constant(1)\ny = f32[2,3,4] abs(x)\nROOT r = f32[2,3,4] dynamic-update-slice(x, y, i, i, i)", ["abs"]),
    (T + "ROOT r = f32[2,3,4] copy(x)", []),
    (T + "a = f32[2,3,4]{0,1,2} copy(x)\nROOT r = f32[2,3,4] copy(a)", ["copy", "copy"]),
])
def test_movement(body, want):
    check(body, want)


@pytest.mark.parametrize("body, want", [
    (T + "y = f32[4,3,2] parameter(1)\nt = f32[2,4,3] transpose(x), dimensions={0,2,1}\n"
     "ROOT r = f32[2,4,4,2] dot(t, y), lhs_contracting_dims={2}, rhs_contracting_dims={1}", ["dot"]),
    (T + "y = f32[4,3,2] parameter(1)\nt = f32[4,2,3] transpose(x), dimensions={2,0,1}\n"
     "ROOT r = f32[4,2,4,2] dot(t, y), lhs_contracting_dims={2}, rhs_contracting_dims={1}", ["transpose", "dot"]),
    (T + "y = f32[4,3,2] parameter(1)\nt = f32[3,4,2] transpose(x), dimensions={1,2,0}\nu = f32[3,2,4] transpose(y), dimensions={1,2,0}\n"
     "ROOT r = f32[3,4,4] dot(t, u), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}", ["dot"]),
    (T + "y = f32[4,3,2] parameter(1)\nd = f32[2,3,3,2] dot(x, y), lhs_contracting_dims={2}, rhs_contracting_dims={0}\n"
     "ROOT r = f32[3,2,2,3] transpose(d), dimensions={2,3,0,1}", ["dot"]),
    (T + "y = f32[4,3,2] parameter(1)\nd = f32[2,3,3,2] dot(x, y), lhs_contracting_dims={2}, rhs_contracting_dims={0}\n"
     "ROOT r = f32[3,2,2,3] transpose(d), dimensions={2,0,3,1}", ["dot", "transpose"]),
])
def test_dots(body, want):
    check(body, want)


@pytest.mark.parametrize("t, op, init, want", [
    ("pred", "and", "true", []),
    ("pred", "and", "false", []),
    ("pred", "or", "false", []),
    ("s32", "add", "0", []),
    ("s32", "maximum", "-3", ["maximum"]),
    ("f32", "add", "0", ["add"]),
    ("f32", "add", "-0", []),
    ("f32", "multiply", "2", ["multiply"]),
    ("f32", "maximum", "-inf", ["maximum"]),
    ("f32", "minimum", "nan", ["minimum"]),
    ("f32", "subtract", "0", None),
    ("f16", "add", "0", None),
])
@pytest.mark.parametrize("shape, dims", [("2,1,3", "1"), ("1,2,1,3,1", "0,2,4"), ("2,3", "1")])
def test_reductions_over_dimensions_of_one_element(t, op, init, want, shape, dims):
    """Each element meets the initial value alone."""
    first = "2" if shape == "2,3" else "2,3"
    before = xlac.parse(f"""HloModule m
c {{ a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT r = {t}[] {op}(a, b) }}
ENTRY e {{ x = {t}[2,3] parameter(0)
  y = {t}[{shape}] reshape(x)
  i = {t}[] constant({init})
  ROOT r = {t}[{first}] reduce(y, i), dimensions={{{dims}}}, to_apply=c }}""")
    after = before.run("algebraic-simplification,dce")
    after.verify()
    if want is None or shape == "2,3":
        assert left(after).count("reduce") == 1
    else:
        assert "reduce" not in left(after) and [w for w in left(after) if w not in ("reshape", "constant", "broadcast")] == want
    x = VALUES[f"{t}[2,3]"]
    assert bits(xlac.interpret(before, x)) == bits(xlac.interpret(after, x))
    assert bits(xlac.compile(before)(x)) == bits(xlac.interpret(before, x)) or op == "subtract"


def test_what_must_stay_stays():
    source = ("HloModule m, is_scheduled=true\nENTRY e {\nx = f32[4]{0} parameter(0)\nc = f32[4]{0} copy(x)\nROOT r = f32[4]{0} negate(c)\n}")
    assert left(xlac.parse(source).run("algebraic-simplification")) == ["copy", "negate"]
    edge = "HloModule m\nENTRY e {\nx = f32[4] parameter(0)\na = f32[4] negate(x)\nROOT r = f32[4] negate(a), control-predecessors={a}\n}"
    assert left(xlac.parse(edge).run("algebraic-simplification")) == ["negate", "negate"]


@pytest.mark.parametrize("op", ["slice(p), slice={[0:8]}", "reshape(p)", "transpose(p), dimensions={0}", "broadcast(p), dimensions={0}"])
def test_what_async_starts_wrap_stays_one_op(op):
    """The same op elsewhere goes."""
    module = xlac.parse(f"""HloModule m
w {{ p = f32[8] parameter(0)
  ROOT r = f32[8] {op} }}
ENTRY e {{
  x = f32[8] parameter(0)
  s = ((f32[8]), f32[8], u32[]) async-start(x), calls=w
  d = f32[8] async-done(s)
  ROOT r2 = f32[8] {op.replace("(p)", "(d)")}
}}""")
    out = module.run("algebraic-simplification")
    out.verify()
    assert out.computation("w").to_text() == module.computation("w").to_text()
    name = op.split("(")[0]
    assert left(module) == [name + "-start", name + "-done", name] and left(out.run("dce")) == [name + "-start", name + "-done"]


def test_slices_that_async_wrap_wraps_stay_apart():
    text = "HloModule m\nENTRY e {\nx = f32[16] parameter(0)\na = f32[8] slice(x), slice={[0:15:2]}\nROOT r = f32[1] slice(a), slice={[2:3]}\n}"
    for pipeline in ("async-wrap,algebraic-simplification,algebraic-simplification", "async-wrap,reassociate"):
        xlac.parse(text).run(pipeline).verify()


SCATTER = """HloModule m
f {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] {op}
}}
ENTRY e {{
  x = f32[{n},70] parameter(0)
  one = s32[1] constant({{{at}}})
  two = s32[] constant(2)
  t = s32[1] broadcast(two), dimensions={{}}
  i = s32[2] concatenate(one, t), dimensions={{0}}
  u = f32[{w},60] parameter(1)
  v = f32[{w},60] negate(u)
  ROOT r = f32[{n},70] scatter(x, i, v), update_window_dims={{0,1}}, inserted_window_dims={{}}, scatter_dims_to_operand_dims={{0,1}}, index_vector_dim=0, to_apply=f
}}"""


@pytest.mark.parametrize("op", ["add(a, b)", "subtract(a, b)", "copy(b)", "minimum(a, b)"])
@pytest.mark.parametrize("n, w, at, want", [(80, 75, 3, "concatenate"), (80, 10, 3, "dynamic-update-slice"), (12, 9, 0, "dynamic-update-slice"),
                                            (80, 75, 6, "scatter"), (80, 75, -1, "scatter")])
def test_a_scatter_of_one_window_is_no_scatter(n, w, at, want, op):
    """Where the window is not within the array, nothing is scattered: that is left to the op itself."""
    text = SCATTER.format(n=n, w=w, at=at, op=op).replace("ROOT r = f32[] copy(b)\n", "") if op != "copy(b)" else SCATTER.format(n=n, w=w, at=at, op=op).replace(
        "  b = f32[] parameter(1)\n  ROOT r = f32[] copy(b)\n", "  ROOT b = f32[] parameter(1)\n")
    before = xlac.parse(text)
    after = before.run("algebraic-simplification,dce")
    after.verify()
    rng = np.random.default_rng(0)
    x, u = rng.standard_normal((n, 70)).astype("f4"), rng.standard_normal((w, 60)).astype("f4")
    x[:5] = -0.0
    u[:5] = 0.0
    assert left(after)[-1] == want and (want == "scatter") == ("scatter" in left(after))
    wanted = bits(xlac.interpret(before, x, u))
    assert bits(xlac.interpret(after, x, u)) == wanted and bits(xlac.compile(xlac.parse(text))(x, u)) == wanted


# A product [e,d,t], or [e,t,d], of (e d f) and (e t f), or with another dimension of one side; and a product whose batches are t.
BATCHES = [
    ("f32[2,3,4]", "f32[2,5,4]", "f32[2,3,5]", "{2}", "{2}", "f32[5,2]", "f32[5,3]", "0", "2", "0", True),  # te,edt->td
    ("f32[2,3,4]", "f32[2,5,4]", "f32[2,3,5]", "{2}", "{2}", "f32[3,2]", "f32[3,5]", "0", "1", "0", False),  # de,edt->dt: rows are t already
    ("f32[2,3,4]", "f32[2,5,4]", "f32[2,3,5]", "{2}", "{2}", "f32[3,5,2]", "f32[3,5]", "0,1", "1,2", "0", False),  # both are batches
    ("f32[2,3,4]", "f32[2,6,4,5]", "f32[2,3,6,5]", "{2}", "{2}", "f32[5,2]", "f32[5,3,6]", "0", "3", "0", False),  # d would come after the other
]


@pytest.mark.parametrize("lhs, rhs, made, lc, rc, weights, out, batch, of, sums, swaps", BATCHES)
def test_products_whose_batches_lie_side_by_side_are_made_the_other_way_round(lhs, rhs, made, lc, rc, weights, out, batch, of, sums, swaps):
    n = weights.count(",")
    before = xlac.parse(f"""HloModule m
ENTRY e {{
  a = {lhs} parameter(0)
  b = {rhs} parameter(1)
  w = {weights} parameter(2)
  p = {made} dot(a, b), lhs_batch_dims={{0}}, lhs_contracting_dims={lc}, rhs_batch_dims={{0}}, rhs_contracting_dims={rc}
  ROOT r = {out} dot(w, p), lhs_batch_dims={{{batch}}}, lhs_contracting_dims={{{n}}}, rhs_batch_dims={{{of}}}, rhs_contracting_dims={{{sums}}}
}}""")
    before.verify()
    after = before.run("algebraic-simplification,dce")
    after.verify()
    rng = np.random.default_rng(5)
    args = [rng.integers(-9, 9, [int(d) for d in t[4:-1].split(",")]).astype(np.float32) for t in (lhs, rhs, weights)]
    assert (after.entry.root.operands[1].type.split("{")[0] != made) == swaps and left(after) == ["dot", "dot"]
    assert bits(xlac.interpret(before, *args)) == bits(xlac.interpret(after, *args))
    assert np.array_equal(xlac.compile(before)(*args), xlac.interpret(before, *args))
