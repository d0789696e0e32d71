"""Small programs for every opcode on every element type, allowed or not: what the matrix of coverage.md is made of.

A program is the body of an entry computation in which `$0`, `$1` ... are the arguments and `@x` the program's own names; `@r` is
the result, its type left out wherever it can be inferred, so that the verifiers decide and no template does. `model` computes
the results without XLA. `wide` names the type in which XLA can run the same program if it can't in this one: the operands'
values are the same, and the results are rounded (floats) or wrapped (integers)."""
import dataclasses
import zlib

import ml_dtypes
import numpy as np

import elementwise as ew
import models
from xlac import _core

TYPES = [row["name"] for row in _core.dtype_table()]
NEWER = {"atan", "collective-reduce", "shuffle"}  # newer than the XLA we can ask
ALONE = "replica_groups={{0}}"


@dataclasses.dataclass
class Program:
    opcode: str
    t: str
    args: list  # of (type, array), in the order of $0, $1 ...
    body: str
    helpers: tuple = ()
    model: object = None  # arrays -> the list of result arrays
    kind: str = "exact"  # how results are compared: exact, ulps, complex, near
    near: float = 0.0  # of the largest result
    wide: bool = False  # whether the program means the same on a wider type
    refused: str = ""  # what the interpreter must answer instead of a value
    check: object = None  # arrays, results -> raises when wrong, where values are not fixed
    source: str = "model"


def seed_of(*words):
    return zlib.crc32(" ".join(words).encode())


def shape(t, dims=()):
    return f"{t}[{','.join(map(str, dims))}]"


def is_float(t):
    return ew.is_float(t)


def operands(t, arity=1):
    """elementwise.operands, but of the types of 16 bits some values only: test_elementwise.py takes them all."""
    arrays = ew.operands(t, arity)
    if arity > 1 or ew.bits_of(t) != 16:
        return arrays
    rng = np.random.default_rng(seed_of(t))
    return [np.concatenate([ew.special_values(t), arrays[0][rng.permutation(arrays[0].size)[:1500]]])]


def draw(t, dims=(), seed=""):
    """Any values: all codes of narrow types, special ones among random ones of the others."""
    rng = np.random.default_rng(seed_of(t, str(dims), seed))
    pool = ew.all_values(t) if t != "pred" and ew.bits_of(t) <= 8 else ew.special_values(t)
    n = int(np.prod(dims))
    some = np.concatenate([pool, ew.random_values(t, max(n, 8), rng).astype(pool.dtype)])
    return some[rng.permutation(len(some))[np.arange(n) % len(some)]].reshape(dims)


def calm(t, dims=(), seed=""):
    """Values whose sums and products of a few are exact in the type, or wrap."""
    rng = np.random.default_rng(seed_of(t, str(dims), seed))
    if t == "pred":
        return rng.random(dims) < 0.5
    if t == "f8e8m0fnu":
        values = [0.5, 1, 2]
    elif is_float(t):
        values = [-1, -0.5, 0, 0.5, 1, 1]
    elif t[0] == "c":
        values = [1, -1, 1j, 1 - 1j, 2 + 1j, -1j]
    else:
        low, high = ew.int_range(t)
        values = range(max(low, -3), min(high, 3) + 1)
    return np.asarray(rng.choice(np.array(list(values)), dims)).astype(ew.DTYPES[t])


def scalar(v, t="s32"):
    return t, np.asarray(v).astype(ew.DTYPES[t])


def binary_body(opcode, t, name=None):
    name = name or f"{opcode}_{t}".replace("-", "_")
    return name, f"{name} {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT c = {opcode}(a, b)\n}}"


def compare_body(direction, t):
    name = f"{direction}_{t}".lower()
    return name, (f"{name} {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n"
                  f"  ROOT c = compare(a, b), direction={direction}\n}}")


# --- elementwise ---

ELEMENTWISE = {op: (arity, types) for op, arity, types in ew.table()}
ARITIES = {op: arity for op, (arity, _) in ELEMENTWISE.items()}


def ordered_kind(opcode, t):
    if t[0] == "c":
        return "complex"
    return "ulps" if is_float(t) else "exact"


def elementwise(opcode, t):
    arity, types = ELEMENTWISE[opcode]
    arrays = operands(t, arity) if t in types else [draw(t, (4,), str(i)) for i in range(arity)]
    names = ", ".join(f"${i}" for i in range(arity))

    def model(*a):
        return [models.complex_atan2(*a) if opcode == "atan2" and t[0] == "c" else ew.reference(opcode, t, *a)[0]]
    yield Program(opcode, t, [(t, a) for a in arrays], f"@r = {opcode}({names})", model=model, kind=ordered_kind(opcode, t),
                  source="numpy")


def clamp(opcode, t):
    yield from elementwise(opcode, t)
    arrays = [draw(t, (), "low"), draw(t, (50,)), draw(t, (), "high")]
    yield Program(opcode, t, [(t, a) for a in arrays], "@r = clamp($0, $1, $2)", kind=ordered_kind(opcode, t), source="numpy",
                  model=lambda *a: [ew.reference(opcode, t, *np.broadcast_arrays(*a))[0]])


def compare(opcode, t):
    arrays = ew.operands(t, 2)
    kinds = {"f": ["", "TOTALORDER"], "b": ["", "TOTALORDER"], "c": ["", "FLOAT"], "p": ["", "UNSIGNED"], "u": ["", "UNSIGNED"],
             "s": ["", "SIGNED"]}[t[0]]
    for direction in ("EQ", "NE", "GE", "GT", "LE", "LT"):
        for kind in kinds:
            body = f"@r = compare($0, $1), direction={direction}" + (f", type={kind}" if kind else "")
            yield Program(opcode, t, [(t, a) for a in arrays], body,
                          model=lambda a, b, d=direction, k=kind: [models.compare(t, d, k, a, b)])


def complex_(opcode, t):
    a, b = ew.operands(t, 2) if t in ("f32", "f64") else (draw(t, (4,), "a"), draw(t, (4,), "b"))
    yield Program(opcode, t, [(t, a), (t, b)], "@r = complex($0, $1)", model=lambda a, b: [models.complex_of(a, b)])


def select(opcode, t):
    a, b = draw(t, (40,), "a"), draw(t, (40,), "b")
    which = draw("pred", (40,))
    yield Program(opcode, t, [("pred", which), (t, a), (t, b)], "@r = select($0, $1, $2)",
                  model=lambda p, a, b: [np.where(p, a, b).astype(a.dtype)])
    for p in (False, True):
        yield Program(opcode, t, [("pred", np.asarray(p)), (t, a), (t, b)], "@r = select($0, $1, $2)",
                      model=lambda p, a, b: [a if p else b])
    yield Program(opcode, t, [(t, a), (t, a), (t, b)], "@r = select($0, $1, $2)", model=lambda p, a, b: [np.where(p, a, b)])


def convert(opcode, t):
    for to in TYPES:
        x = operands(t)[0]
        yield Program(opcode, t, [(t, x)], f"@r = {shape(to, x.shape)} convert($0)", model=lambda x, to=to: [models.convert(t, to, x)],
                      source="numpy")


def bitcast_convert(opcode, t):
    bits = {u: models.cast_bits(u) for u in TYPES}
    for to in TYPES:
        wide, narrow = max(bits[t], bits[to]), min(bits[t], bits[to])
        inner = () if wide == narrow else (max(wide // narrow, 1),)
        dims, out = ((3, 4) + inner, (3, 4)) if bits[t] < bits[to] else ((3, 4), (3, 4) + inner)
        x = draw(t, dims)
        if to == "pred":  # no other bits mean anything
            x = models.of_bits(t, [i % 3 % 2 for i in range(x.size)], dims) if bits[t] == 8 else np.zeros_like(x)
        yield Program(opcode, t, [(t, x)], f"@r = {shape(to, out)} bitcast-convert($0)",
                      model=lambda x, to=to, out=out: [models.bitcast_convert(t, to, x, out)])


def reduce_precision(opcode, t):
    x = operands(t)[0]
    for e, m in [(5, 10), (8, 7), (4, 3), (5, 2), (2, 1), (1, 0), (3, 0), (8, 23), (11, 52), (6, 30)]:
        yield Program(opcode, t, [(t, x)], f"@r = reduce-precision($0), exponent_bits={e}, mantissa_bits={m}",
                      model=lambda x, e=e, m=m: [models.reduce_precision(t, x, e, m)])


def stochastic_convert(opcode, t):
    x = operands(t)[0]
    bits = f"u{models.cast_bits(t)}" if t[0] != "c" else "u64"
    rng = np.random.default_rng(3)
    random = ew.random_values(bits, x.size, rng)
    for to in TYPES:
        yield Program(opcode, t, [(t, x), (bits, random)], f"@r = {shape(to, x.shape)} stochastic-convert($0, $1)",
                      model=lambda x, r, to=to: [models.stochastic_convert(t, to, x, r, ew.bits_of(bits))])


# --- values from nowhere ---

def constant(opcode, t):
    values = {"p": [True, False, True], "s": [-1, 0, ew.int_range(t)[0] if t[0] == "s" else 0],
              "u": [1, 0, ew.int_range(t)[1] if t[0] == "u" else 0], "f": [1, 0.5, 2], "b": [1, -0.5, 3.140625],
              "c": [1 - 2j, 0.5j, -3 + 0j]}[t[0]]
    if is_float(t) and t != "f8e8m0fnu":
        values = values + [-1.5]

    def text(v):
        if t[0] == "c":
            return f"({v.real!r}, {v.imag!r})"
        return str(v).lower()
    want = np.array(values, object if t[0] in "su" else None).astype(ew.DTYPES[t])
    yield Program(opcode, t, [], f"@r = {shape(t, (len(values),))} constant({{{', '.join(map(text, values))}}})",
                  model=lambda: [want])
    yield Program(opcode, t, [], f"@r = {t}[] constant({text(values[0])})", model=lambda: [want[0]])


def iota(opcode, t):
    for dims, d in [((3, 5), 0), ((3, 5), 1), ((300,), 0)]:
        along = np.arange(dims[d]).reshape([-1 if i == d else 1 for i in range(len(dims))])
        yield Program(opcode, t, [], f"@r = {shape(t, dims)} iota(), iota_dimension={d}",
                      model=lambda a=along, dims=dims: [np.broadcast_to(models.convert("s64", t, a.astype(np.int64)), dims)])


def parameter(opcode, t):
    yield Program(opcode, t, [(t, draw(t, (30,)))], "", model=lambda x: [x])


def number_of(opcode, t):
    yield Program(opcode, t, [], f"@r = {t}[] {opcode}()", model=lambda: [np.zeros((), np.uint32)])


def rng(opcode, t):
    low, high = (np.asarray(v).astype(ew.DTYPES[t]) for v in ((False, True) if t == "pred" else
                 (0.5, 2) if is_float(t) else (-1, 0) if t == "s1" else (0, 1)))
    for kind in ("rng_uniform", "rng_normal"):
        yield Program(opcode, t, [(t, low), (t, high)], f"@r = {t}[3,40] rng($0, $1), distribution={kind}",
                      model=lambda a, b, k=kind: [models.rng(t, k, a, b, (3, 40))])


def rng_bit_generator(opcode, t):
    for algorithm in ("rng_philox", "rng_three_fry", "rng_default"):
        for dims in ((5,), (3, 4), ()):
            state = np.array([7, 2**64 - 1], np.uint64)
            yield Program(opcode, t, [("u64", state)], f"@r = (u64[2], {shape(t, dims)}) rng-bit-generator($0), algorithm={algorithm}",
                          model=lambda s, a=algorithm, d=dims: models.random_bits(t, a, s, d))


def rng_state(opcode, t):
    yield Program(opcode, t, [], f"@r = {t}[2] rng-get-and-update-state(), delta=3", model=lambda: [np.array([0x7012395, 0], np.uint64)])


# --- data movement ---

def moved(t, dims, body, f, seed="", more=(), helpers=()):
    return Program("", t, [(t, draw(t, dims, seed)), *more], body, model=lambda x, *a: [f(x, *a)], helpers=helpers, wide=True)


def copy(opcode, t):
    yield moved(t, (3, 4), "@r = copy($0)", lambda x: x)
    yield moved(t, (3, 4), f"@r = {t}[3,4]{{0,1}} copy($0)", lambda x: x)


def bitcast(opcode, t):
    yield moved(t, (3, 4), f"@r = {t}[2,6] bitcast($0)", lambda x: x.reshape(2, 6))
    yield moved(t, (3, 4), f"@r = {t}[4,3]{{0,1}} bitcast($0)", lambda x: x.T)


def broadcast(opcode, t):
    yield moved(t, (3,), f"@r = {t}[2,3,4] broadcast($0), dimensions={{1}}", lambda x: np.broadcast_to(x[None, :, None], (2, 3, 4)))
    yield moved(t, (), f"@r = {t}[5] broadcast($0), dimensions={{}}", lambda x: np.broadcast_to(x, (5,)))


def concatenate(opcode, t):
    yield moved(t, (2, 3), "@r = concatenate($0, $1, $0), dimensions={1}", lambda x, y: np.concatenate([x, y, x], 1),
                more=[(t, draw(t, (2, 1), "y"))])


def start_indices():
    return [scalar(1), scalar(9)]


def dynamic_slice(opcode, t):
    yield moved(t, (5, 6), "@r = dynamic-slice($0, $1, $2), dynamic_slice_sizes={2,3}", lambda x, *_: x[1:3, 3:6], more=start_indices())
    if t[0] in "su":  # as the type of the indices
        for v in {0, 1, ew.int_range(t)[0], ew.int_range(t)[1]}:
            at = scalar(v, t)
            start = min(max(int(at[1]), 0), 3)
            yield Program(opcode, t, [("f32", draw("f32", (6,))), at], "@r = dynamic-slice($0, $1), dynamic_slice_sizes={3}",
                          model=lambda x, i, s=start: [x[s:s + 3]])
    else:
        yield Program(opcode, t, [("f32", draw("f32", (6,))), (t, draw(t))], "@r = dynamic-slice($0, $1), dynamic_slice_sizes={3}")


def dynamic_update_slice(opcode, t):
    def put(x, u, *_):
        x = x.copy()
        x[1:3, 3:6] = u
        return x
    yield moved(t, (5, 6), "@r = dynamic-update-slice($0, $1, $2, $3)", put, more=[(t, draw(t, (2, 3), "u")), *start_indices()])


def gather(opcode, t):
    at = ("s32", np.array([[0, 9], [2, 1], [-3, 0]], np.int32))
    starts = [(0, 3), (2, 1), (0, 0)]
    yield moved(t, (4, 5), "@r = gather($0, $1), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0,1}, "
                "index_vector_dim=1, slice_sizes={2,2}", lambda x, i: np.stack([x[a:a + 2, b:b + 2] for a, b in starts]), more=[at])
    numbers = np.array([0, 1, 1, 0]).astype(ew.DTYPES[t]) if t[0] in "su" else draw(t, (4,))
    places = np.clip(numbers.astype(int), 0, 4) if t[0] in "su" else None
    yield Program("", t, [("f32", draw("f32", (5, 3))), (t, numbers)], "@r = gather($0, $1), offset_dims={1}, "
                  "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}", model=lambda x, i: [x[places]])


def scatter(opcode, t):
    at = ("s32", np.array([[1], [3], [9], [1]], np.int32))
    numbers = ", update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply="
    for helper in ("second", "add", "multiply", "maximum"):
        name, text = (f"second_{t}", f"second_{t} {{\n  a = {t}[] parameter(0)\n  ROOT b = {t}[] parameter(1)\n}}") \
            if helper == "second" else binary_body(helper, t)
        args = [(t, calm(t, (5, 3), "x")), at, (t, calm(t, (4, 3), "u"))]
        body = "@r = scatter($0, $1, $2)" + numbers + name
        yield Program("", t, args, body, helpers=(text,), wide=True, kind="near" if t[0] == "c" else "exact", near=1e-6)


def reshape(opcode, t):
    yield moved(t, (3, 4), f"@r = {t}[2,1,6] reshape($0)", lambda x: x.reshape(2, 1, 6))


def dynamic_reshape(opcode, t):
    yield moved(t, (4, 3), f"@r = {t}[<=2,<=6] dynamic-reshape($0, $1, $2)", lambda x, *_: x.reshape(2, 6),
                more=[scalar(2), scalar(6)])
    if t[0] in "su" and ew.int_range(t)[1] >= 6:
        yield Program("", t, [("f32", draw("f32", (4, 3))), scalar(2, t), scalar(6, t)],
                      "@r = f32[<=2,<=6] dynamic-reshape($0, $1, $2)", model=lambda x, *_: [x.reshape(2, 6)])


def set_dimension_size(opcode, t):
    yield moved(t, (4, 3), "@r = set-dimension-size($0, $1), dimensions={0}", lambda x, n: x[:2], more=[scalar(2)])
    one = np.asarray(True) if t == "pred" else np.ones(()).astype(ew.DTYPES[t])
    yield Program("", t, [("f32", draw("f32", (4,))), (t, one)], "@r = set-dimension-size($0, $1), dimensions={0}",
                  model=lambda x, n: [x[:1]])


def get_dimension_size(opcode, t):
    yield moved(t, (4, 3), "@r = get-dimension-size($0), dimensions={0}", lambda x: np.int32(4))
    yield moved(t, (4, 3), "@d = set-dimension-size($0, $1), dimensions={1}\n@r = get-dimension-size(@d), dimensions={1}",
                lambda x, n: np.int32(2), more=[scalar(2)])


def pad(opcode, t):
    def padded(x, v):
        out = np.full((7, 4), v, x.dtype)
        out[1:6:2, 0:4] = x[:, 1:]
        return out
    yield moved(t, (3, 5), "@r = pad($0, $1), padding=1_1_1x-1_0", padded, more=[(t, draw(t, (), "v"))])


def reverse(opcode, t):
    yield moved(t, (3, 4), "@r = reverse($0), dimensions={0,1}", lambda x: x[::-1, ::-1])


def slice_(opcode, t):
    yield moved(t, (6, 9), "@r = slice($0), slice={[1:5], [0:9:3]}", lambda x: x[1:5, 0:9:3])


def transpose(opcode, t):
    yield moved(t, (2, 3, 4), "@r = transpose($0), dimensions={2,0,1}", lambda x: x.transpose(2, 0, 1))


def shuffle(opcode, t):
    yield moved(t, (3, 4), "@r = shuffle($0), dimensions={1}, mode=rotate, shifts={1}", lambda x: np.roll(x, -1, 1))
    yield moved(t, (3, 4), "@r = shuffle($0), dimensions={0}, mode=permute, indices=s32[3,1] { {2}, {0}, {1} }", lambda x: x[[2, 0, 1]])


# --- tuples and tokens ---

def tuple_(opcode, t):
    yield Program("", t, [(t, draw(t, (4,))), ("f32", draw("f32", (2,)))], "@r = tuple($0, $1, $0)", model=lambda x, y: [x, y, x])


def get_tuple_element(opcode, t):
    yield Program("", t, [(t, draw(t, (4,))), ("f32", draw("f32", (2,)))], "@t = tuple($1, $0)\n@r = get-tuple-element(@t), index=1",
                  model=lambda x, y: [x])


def after_all(opcode, t):
    yield moved(t, (4,), "@k = after-all($0)\n@r = add-dependency($0, @k)", lambda x: x)


def add_dependency(opcode, t):
    yield moved(t, (4,), "@k = after-all()\n@r = add-dependency($0, @k)", lambda x: x)


def opt_barrier(opcode, t):
    yield Program("", t, [(t, draw(t, (4,)))], f"@t = tuple($0, $0)\n@r = ({t}[4], {t}[4]) opt-barrier(@t)", model=lambda x: [x, x])


def domain(opcode, t):
    yield moved(t, (4,), '@r = domain($0), domain={kind="sharding", entry={replicated}, exit={replicated}}', lambda x: x)


# --- contractions, windows, reductions ---

def dot(opcode, t):
    yield Program("", t, [(t, calm(t, (2, 3, 4), "x")), (t, calm(t, (2, 4, 2), "y"))],
                  "@r = dot($0, $1), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}",
                  wide=True, kind="near", near=1e-6)
    yield Program("", t, [(t, calm(t, (5,), "x")), (t, calm(t, (5,), "y"))],
                  "@r = dot($0, $1), lhs_contracting_dims={0}, rhs_contracting_dims={0}", wide=True, kind="near", near=1e-6)
    for to in ("s32", "f32", "f64"):  # another result than the operands'
        yield Program("", t, [(t, calm(t, (3, 4), "x")), (t, calm(t, (4, 2), "y"))],
                      f"@r = {to}[3,2] dot($0, $1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
                      model=lambda x, y, to=to: [models.dot(x, y, to)], kind="near", near=1e-6, source="numpy")
    yield Program("", t, [(t, calm(t, (3, 4), "x")), ("f32", calm("f32", (4, 2), "y"))],
                  "@r = dot($0, $1), lhs_contracting_dims={1}, rhs_contracting_dims={0}", kind="near", near=1e-6, source="numpy",
                  model=lambda x, y: [models.dot(x, y, "c128" if t == "c128" else "c64" if t == "c64" else "f64" if t == "f64" else "f32")])


def convolution(opcode, t):
    for window, labels, extra in [("size=3 stride=2 pad=1_1 rhs_dilate=2", "b0f_0io->b0f", ""),
                                  ("size=2 lhs_dilate=2 rhs_reversal=1", "bf0_oi0->0bf", ", feature_group_count=1")]:
        x = calm(t, (2, 7, 3) if "b0f_" in labels else (2, 3, 5), "x")
        k = calm(t, (3, 3, 4) if "0io" in labels else (4, 3, 2), "k")
        yield Program("", t, [(t, x), (t, k)], f"@r = convolution($0, $1), window={{{window}}}, dim_labels={labels}{extra}", wide=True,
                      kind="near", near=1e-6)
    yield Program("", t, [(t, calm(t, (1, 5, 4), "x")), (t, calm(t, (2, 2, 4), "k"))],
                  "@r = convolution($0, $1), window={size=2}, dim_labels=b0f_0io->b0f, feature_group_count=2", wide=True,
                  kind="near", near=1e-6)


def ragged_dot(opcode, t):
    sizes = ("s32", np.array([2, 0, 4], np.int32))
    yield Program("", t, [(t, calm(t, (6, 3), "x")), (t, calm(t, (3, 3, 2), "y")), sizes],
                  "@r = ragged-dot($0, $1, $2), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
                  "rhs_group_dims={0}", model=lambda x, y, n: [models.ragged_dot(t, x, y, n)], kind="near", near=1e-6, source="numpy")


def scaled_dot(opcode, t):
    values, scales = "f8e4m3fn", "f8e8m0fnu"
    for a, s in ((t, scales), (values, t)):
        args = [(a, calm(a, (2, 64), "x")), (a, calm(a, (3, 64), "y")), (s, calm(s, (2, 2), "p")), (s, calm(s, (3, 2), "q"))]
        for to in ("f32", "bf16"):
            yield Program("", t, args, f"@r = {to}[2,3] scaled-dot($0, $1, $2, $3), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}",
                          model=lambda x, y, p, q, to=to: [models.scaled_dot(x, y, p, q, to)], kind="near", near=1e-6, source="numpy")


REDUCERS = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")


def identity_of(opcode, t):
    """What changes nothing, since XLA leaves initial values out where a single element is reduced."""
    if t == "pred":
        return np.asarray(opcode in ("multiply", "minimum", "and"))
    if opcode in ("add", "or", "xor"):
        return np.zeros((), ew.DTYPES[t]) if t != "f8e8m0fnu" else np.asarray(0.5).astype(ew.DTYPES[t])
    if opcode == "multiply":
        return np.ones((), ew.DTYPES[t])
    if t[0] in "su":
        low, high = ew.int_range(t)
        return np.asarray({"maximum": low, "minimum": high}.get(opcode, -1 if low else high)).astype(ew.DTYPES[t])
    info = ml_dtypes.finfo(ew.DTYPES[t]) if t[0] != "c" else None
    return np.asarray(0 if info is None else info.min if opcode == "maximum" else info.max).astype(ew.DTYPES[t])


def reduce(opcode, t):
    for op in REDUCERS:
        name, text = binary_body(op, t)
        yield Program("", t, [(t, calm(t, (3, 4), op)), (t, identity_of(op, t))], f"@r = reduce($0, $1), dimensions={{1}}, to_apply={name}",
                      helpers=(text,), wide=True, kind="near", near=1e-6)
    pick = f"@both {{\n  a = {t}[] parameter(0)\n  i = s32[] parameter(1)\n  b = {t}[] parameter(2)\n  j = s32[] parameter(3)\n" \
           f"  q = pred[] compare(a, b), direction=EQ\n  x = {t}[] select(q, a, b)\n  k = s32[] add(i, j)\n  ROOT r = tuple(x, k)\n}}"
    yield Program("", t, [(t, calm(t, (3, 4))), ("s32", calm("s32", (3, 4))), (t, calm(t, (), "i")), scalar(0)],
                  "@r = reduce($0, $1, $2, $3), dimensions={0}, to_apply=@both", helpers=(pick,),
                  model=lambda x, n, i, z: [x[-1], n.sum(0, dtype=np.int32)])


def reduce_window(opcode, t):
    for op in REDUCERS[:4]:
        name, text = binary_body(op, t)
        yield Program("", t, [(t, calm(t, (4, 5), op)), (t, identity_of(op, t))],
                      f"@r = reduce-window($0, $1), window={{size=2x3 stride=1x2 pad=1_0x0_1}}, to_apply={name}", helpers=(text,), wide=True,
                      kind="near", near=1e-6)


def select_and_scatter(opcode, t):
    select, select_text = compare_body("GE", t)
    name, text = binary_body("add", t)
    n = 6
    values = np.arange(n) - 3 if t[0] == "s" and t not in ("s1", "s2") or is_float(t) and t not in ("f8e8m0fnu", "f4e2m1fn") else None
    x = values.astype(ew.DTYPES[t]) if values is not None else np.exp2(np.arange(n) % 3).astype(ew.DTYPES[t]) \
        if t == "f8e8m0fnu" else calm(t, (n,)) if t in ("s1", "u1", "s2", "u2", "pred") or t[0] == "c" else \
        np.array([0, 1, 2, 3, 1.5, 0.5]).astype(ew.DTYPES[t]) if is_float(t) else np.arange(n).astype(ew.DTYPES[t])
    yield Program("", t, [(t, x), (t, calm(t, (3,), "s")), (t, identity_of("add", t))],
                  f"@r = select-and-scatter($0, $1, $2), window={{size=2 stride=2}}, select={select}, scatter={name}",
                  helpers=(select_text, text), wide=True, kind="near", near=1e-6)


def scan(opcode, t):
    text = f"@step {{\n  x = {t}[2] parameter(0)\n  c = {t}[2] parameter(1)\n  s = {t}[2] add(x, c)\n  ROOT r = tuple(s, s)\n}}"
    for tail in ("", ", is_reverse=true"):
        yield Program("", t, [(t, calm(t, (2, 3))), (t, calm(t, (2,), "c"))],
                      f"@r = scan($0, $1), dimensions={{1}}, num_carries=1{tail}, to_apply=@step", helpers=(text,), wide=True,
                      kind="near", near=1e-6)


def sort(opcode, t):
    for direction in ("LT", "GT"):
        name, text = compare_body(direction, t)
        x = draw(t, (3, 20))
        if is_float(t):  # NaN has no place
            x = np.where(np.isnan(x.astype(np.float64)), np.ones((), x.dtype), x).astype(x.dtype)
        yield Program("", t, [(t, x)], f"@r = sort($0), dimensions={{1}}, is_stable=true, to_apply={name}", helpers=(text,),
                      model=lambda x, d=direction: [models.sort(t, d, x)])


def topk(opcode, t):
    for largest in ("true", "false"):
        yield Program("", t, [(t, draw(t, (3, 20)))], f"@r = topk($0), k=5, largest={largest}",
                      model=lambda x, g=largest: models.topk(t, x, 5, g == "true"))


# --- linear algebra, transforms, normalisation ---

def cholesky(opcode, t):
    lower = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 2]]) if t != "f8e8m0fnu" else np.eye(3)
    a = (lower @ lower.T).astype(ew.DTYPES[t])
    yield Program("", t, [(t, a)], "@r = cholesky($0), lower=true", wide=True, kind="near", near=3e-7,
                  model=lambda a: [models.convert("f64", t, np.linalg.cholesky(a.astype("f8")))] if t[0] != "c" else None)


def triangular_solve(opcode, t):
    a = np.array([[1, 0, 0], [1, 2, 0], [-1, 1, 1]]) if t != "f8e8m0fnu" else 2 * np.eye(3) + np.tril(np.ones((3, 3)), -1)
    for side, dims in (("true", (3, 2)), ("false", (2, 3))):
        yield Program("", t, [(t, a.astype(ew.DTYPES[t])), (t, calm(t, dims))],
                      f"@r = triangular-solve($0, $1), left_side={side}, lower=true, transpose_a=TRANSPOSE", wide=True, kind="near", near=1e-6)


def fft(opcode, t):
    for kind in ("FFT", "IFFT", "RFFT", "IRFFT"):
        n = 5 if kind == "IRFFT" else 8
        yield Program("", t, [(t, calm(t, (3, n)))], f"@r = fft($0), fft_type={kind}, fft_length={{8}}", kind="near", near=1e-6,
                      model=lambda x, k=kind: [models.fft(t, k, x)], source="numpy")


def batch_norm(opcode, t):
    x, v = (4, 2), (2,)
    dims = {"batch-norm-training": [x, v, v], "batch-norm-inference": [x, v, v, v, v], "batch-norm-grad": [x, v, v, v, x]}[opcode]
    args = [(t, np.abs(calm(t, d, str(i)))) if i == (4 if opcode[-1] == "e" else 3) else (t, calm(t, d, str(i)))
            for i, d in enumerate(dims)] if t != "f8e8m0fnu" else [(t, calm(t, d, str(i))) for i, d in enumerate(dims)]
    names = ", ".join(f"${i}" for i in range(len(dims)))
    yield Program(opcode, t, args, f"@r = {opcode}({names}), epsilon=0.5, feature_index=1", wide=True, kind="near", near=4e-6)


# --- control flow and calls ---

def flip(t, n=4):
    """A computation any type has."""
    return "@flip", f"@flip {{\n  a = {t}[{n}] parameter(0)\n  ROOT r = {t}[{n}] reverse(a), dimensions={{0}}\n}}"


def same(t, n=4):
    return "@same", f"@same {{\n  a = {t}[{n}] parameter(0)\n  ROOT r = {t}[{n}] copy(a)\n}}"


def call(opcode, t):
    yield moved(t, (4,), "@r = call($0), to_apply=@flip", lambda x: x[::-1], helpers=(flip(t)[1],))


def fusion(opcode, t):
    yield moved(t, (4,), f"@r = {t}[4] fusion($0), kind=kLoop, calls=@flip", lambda x: x[::-1], helpers=(flip(t)[1],))


def conditional(opcode, t):
    helpers = (flip(t)[1], same(t)[1])
    for p in (True, False):
        yield Program("", t, [("pred", np.asarray(p)), (t, draw(t, (4,)))],
                      "@r = conditional($0, $1, $1), true_computation=@flip, false_computation=@same", helpers=helpers,
                      model=lambda p, x: [x[::-1] if p else x])
    for i in (-1, 0, 1, 7):
        yield Program("", t, [scalar(i), (t, draw(t, (4,)))], "@r = conditional($0, $1, $1), branch_computations={@flip, @same}",
                      helpers=helpers, model=lambda i, x: [x[::-1] if i == 0 else x])
    yield Program("", t, [(t, calm(t)), ("f32", draw("f32", (4,)))], "@r = conditional($0, $1, $1), branch_computations={@flip, @same}",
                  helpers=(flip("f32")[1], same("f32")[1]), model=lambda i, x: [x[::-1] if i == 0 else x])


def while_(opcode, t):
    state = f"(s32[], {t}[4])"
    cond = f"@more {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(3)\n" \
           "  ROOT c = compare(i, n), direction=LT\n}"
    body = f"@body {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  v = get-tuple-element(s), index=1\n" \
           f"  o = s32[] constant(1)\n  j = s32[] add(i, o)\n  a = {t}[1] slice(v), slice={{[0:1]}}\n  b = {t}[3] slice(v), slice={{[1:4]}}\n" \
           f"  w = {t}[4] concatenate(b, a), dimensions={{0}}\n  ROOT r = tuple(j, w)\n}}"
    yield Program("", t, [scalar(0), (t, draw(t, (4,)))], "@t = tuple($0, $1)\n@r = while(@t), condition=@more, body=@body",
                  helpers=(cond, body), model=lambda i, x: [np.int32(3), np.roll(x, -3)])


def map_(opcode, t):
    text = f"@f {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  q = pred[] compare(a, b), direction=NE\n" \
           f"  ROOT r = {t}[] select(q, b, a)\n}}"
    yield Program("", t, [(t, draw(t, (3, 5), "a")), (t, draw(t, (3, 5), "b"))], "@r = map($0, $1), dimensions={0,1}, to_apply=@f",
                  helpers=(text,), model=lambda a, b: [np.where(models.compare(t, "NE", "", a, b), b, a).astype(a.dtype)])


def custom_call(opcode, t):
    yield moved(t, (4,), f'@r = {t}[4] custom-call($0), custom_call_target="Sharding", sharding={{replicated}}', lambda x: x)
    if t[0] != "c":
        yield Program("", t, [(t, draw(t, (3, 20)))], f'@r = ({t}[3,5], s32[3,5]) custom-call($0), custom_call_target="TopK"',
                      model=lambda x: models.topk(t, x, 5, True))


# --- async pairs ---

def async_(opcode, t):
    text = f"@work {{\n  a = {t}[4] parameter(0)\n  b = {t}[4] parameter(1)\n  ROOT r = {t}[8] concatenate(b, a), dimensions={{0}}\n}}"
    state = f"(({t}[4], {t}[4]), {t}[8], u32[])"
    update = f"@u = {state} async-update(@s)\n@r = {t}[8] async-done(@u)"
    yield Program("", t, [(t, draw(t, (4,), "a")), (t, draw(t, (4,), "b"))],
                  f"@s = {state} async-start($0, $1), calls=@work\n{update}", helpers=(text,), model=lambda a, b: [np.concatenate([b, a])])


def copy_async(opcode, t):
    yield moved(t, (3, 4), f"@s = ({t}[3,4], {t}[3,4], u32[]) copy-start($0)\n@r = {t}[3,4] copy-done(@s)", lambda x: x)


def all_gather(opcode, t):
    if opcode == "all-gather":
        yield moved(t, (3, 4), f"@r = {t}[3,4] all-gather($0), {ALONE}, dimensions={{1}}", lambda x: x)
    else:
        yield moved(t, (3, 4), f"@s = ({t}[3,4], {t}[3,4]) all-gather-start($0), {ALONE}, dimensions={{1}}\n@r = {t}[3,4] all-gather-done(@s)",
                    lambda x: x)


def all_reduce(opcode, t):
    name, text = binary_body("add", t)
    if opcode in ("all-reduce-start", "all-reduce-done"):
        yield moved(t, (3, 4), f"@s = {t}[3,4] all-reduce-start($0), {ALONE}, to_apply={name}\n@r = {t}[3,4] all-reduce-done(@s)",
                    lambda x: x, helpers=(text,))
    else:
        yield moved(t, (3, 4), f"@r = {t}[3,4] {opcode}($0), {ALONE}, to_apply={name}", lambda x: x, helpers=(text,))


def all_to_all(opcode, t):
    yield moved(t, (3, 4), f"@r = {t}[3,4] all-to-all($0), {ALONE}, dimensions={{0}}", lambda x: x)
    yield moved(t, (3, 4), f"@r = ({t}[3,4]) all-to-all($0), {ALONE}", lambda x: x)


def collective_broadcast(opcode, t):
    yield moved(t, (3, 4), f"@r = {t}[3,4] collective-broadcast($0), {ALONE}", lambda x: x)


def collective_permute(opcode, t):
    zero = lambda x: np.zeros_like(x) if t != "f8e8m0fnu" else np.zeros(x.shape, np.uint8).view(x.dtype)
    if opcode == "collective-permute":
        yield moved(t, (3, 4), f"@r = {t}[3,4] collective-permute($0), source_target_pairs={{{{0,0}}}}", lambda x: x)
        yield moved(t, (3, 4), f"@r = {t}[3,4] collective-permute($0), source_target_pairs={{}}", zero)
    else:
        yield moved(t, (3, 4), f"@s = ({t}[3,4], {t}[3,4]) collective-permute-start($0), source_target_pairs={{{{0,0}}}}\n"
                    f"@r = {t}[3,4] collective-permute-done(@s)", lambda x: x)


def reduce_scatter(opcode, t):
    name, text = binary_body("add", t)
    yield moved(t, (3, 4), f"@r = {t}[3,4] reduce-scatter($0), {ALONE}, dimensions={{0}}, to_apply={name}", lambda x: x, helpers=(text,))


def ragged_all_to_all(opcode, t):
    def put(x, y, *_):
        y = y.copy()
        y[1:4] = x[2:5]
        return y
    numbers = [("s32", np.array([v], np.int32)) for v in (2, 3, 1, 3)]
    yield moved(t, (8,), f"@r = {t}[8] ragged-all-to-all($0, $1, $2, $3, $4, $5), {ALONE}", put, more=[(t, draw(t, (8,), "y")), *numbers])
    one = np.full((1,), 0 if t == "s1" else 1).astype(ew.DTYPES[t])
    x, y = ("f32", draw("f32", (8,))), ("f32", draw("f32", (8,), "y"))
    yield Program("", t, [x, y] + [(t, one)] * 4, f"@r = f32[8] ragged-all-to-all($0, $1, $2, $3, $4, $5), {ALONE}",
                  model=lambda x, y, *n: [y if t == "s1" else np.concatenate([y[:1], x[1:2], y[2:]])])


# --- ops that need a peer ---

NO_PEER = "the interpreter has none"


def channel(opcode, t):
    body = {"infeed": f"@k = after-all()\n@r = ({t}[4], token[]) infeed(@k)",
            "outfeed": f"@k = after-all()\n@r = token[] outfeed($0, @k), outfeed_shape={t}[4]",
            "send": f"@k = after-all()\n@s = ({t}[4], u32[], token[]) send($0, @k), channel_id=1\n@r = token[] send-done(@s), channel_id=1",
            "recv": f"@k = after-all()\n@s = ({t}[4], u32[], token[]) recv(@k), channel_id=1\n"
                    f"@r = ({t}[4], token[]) recv-done(@s), channel_id=1"}[opcode.replace("-done", "")]
    yield Program("", t, [(t, draw(t, (4,)))], body, refused=NO_PEER)


MAKERS = {
    "clamp": clamp, "compare": compare, "complex": complex_, "select": select, "convert": convert,
    "bitcast-convert": bitcast_convert, "reduce-precision": reduce_precision, "stochastic-convert": stochastic_convert,
    "constant": constant, "iota": iota, "parameter": parameter, "partition-id": number_of, "replica-id": number_of, "rng": rng,
    "rng-bit-generator": rng_bit_generator, "rng-get-and-update-state": rng_state, "copy": copy, "bitcast": bitcast,
    "broadcast": broadcast, "concatenate": concatenate, "dynamic-reshape": dynamic_reshape, "dynamic-slice": dynamic_slice,
    "dynamic-update-slice": dynamic_update_slice, "gather": gather, "get-dimension-size": get_dimension_size,
    "set-dimension-size": set_dimension_size, "pad": pad, "reshape": reshape, "reverse": reverse, "scatter": scatter,
    "slice": slice_, "transpose": transpose, "shuffle": shuffle, "tuple": tuple_, "get-tuple-element": get_tuple_element,
    "after-all": after_all, "add-dependency": add_dependency, "opt-barrier": opt_barrier, "domain": domain,
    "convolution": convolution, "dot": dot, "ragged-dot": ragged_dot, "scaled-dot": scaled_dot, "reduce": reduce,
    "reduce-window": reduce_window, "select-and-scatter": select_and_scatter, "scan": scan, "sort": sort, "topk": topk,
    "cholesky": cholesky, "triangular-solve": triangular_solve, "fft": fft, "batch-norm-training": batch_norm,
    "batch-norm-inference": batch_norm, "batch-norm-grad": batch_norm, "call": call, "conditional": conditional,
    "custom-call": custom_call, "fusion": fusion, "map": map_, "while": while_, "async-start": async_, "async-update": async_,
    "async-done": async_, "copy-start": copy_async, "copy-done": copy_async, "all-gather": all_gather,
    "all-gather-start": all_gather, "all-gather-done": all_gather, "all-reduce": all_reduce, "all-reduce-start": all_reduce,
    "all-reduce-done": all_reduce, "all-to-all": all_to_all, "collective-broadcast": collective_broadcast,
    "collective-permute": collective_permute, "collective-permute-start": collective_permute,
    "collective-permute-done": collective_permute, "collective-reduce": all_reduce, "ragged-all-to-all": ragged_all_to_all,
    "reduce-scatter": reduce_scatter, "infeed": channel, "outfeed": channel, "send": channel, "send-done": channel,
    "recv": channel, "recv-done": channel,
}


def programs(opcode, t):
    """All programs of one cell; none when nobody wrote any for the opcode."""
    make = MAKERS.get(opcode, elementwise if opcode in ELEMENTWISE else None)
    out = list(make(opcode, t)) if make else []
    for p in out:
        p.opcode = opcode
    return out
