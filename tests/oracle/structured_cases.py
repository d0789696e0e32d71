"""Random instances of the structured ops, many to a module, since a compilation by XLA costs 50 ms whatever its size."""
import itertools
import re

import ml_dtypes
import numpy as np

TYPES = {"pred": np.bool_, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64,
         "c64": np.complex64, "c128": np.complex128, "s4": ml_dtypes.int4, "u4": ml_dtypes.uint4,
         "s2": ml_dtypes.int2, "u2": ml_dtypes.uint2, "f8e4m3fn": ml_dtypes.float8_e4m3fn,
         "f8e5m2": ml_dtypes.float8_e5m2, "f8e4m3": ml_dtypes.float8_e4m3, "f8e3m4": ml_dtypes.float8_e3m4,
         "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
         "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz, "f8e8m0fnu": ml_dtypes.float8_e8m0fnu,
         "f4e2m1fn": ml_dtypes.float4_e2m1fn}
TYPES.update({f"{k}{b}": np.dtype(f"{d}{b}") for k, d in (("s", "int"), ("u", "uint")) for b in (8, 16, 32, 64)})
TYPES = {k: np.dtype(v) for k, v in TYPES.items()}
ALL = sorted(TYPES)
INTS = [t for t in ALL if t[0] in "su"]
FLOATS = [t for t in ALL if t[0] in "fb"]
NATIVE = ["f32", "f64", "s32", "s64", "u8", "bf16", "f16", "c64", "pred"]


def shape(t, dims):
    return f"{t}[{','.join(str(d) for d in dims)}]"


def braces(values):
    return "{" + ",".join(str(v) for v in values) + "}"


def draw(rng, t, dims, small=False):
    """Values of every sign; small ones sum without overflow."""
    if t == "pred":
        return rng.random(dims) < 0.5
    if t[0] in "su":
        bits = int(t[1:])
        width = min(bits, 3) if small else bits
        low = -(1 << (width - 1)) if t[0] == "s" else 0
        high = (1 << (width - 1)) - 1 if t[0] == "s" else (1 << width) - 1
        return rng.integers(low, high, dims, dtype=np.int64 if low else np.uint64, endpoint=True).astype(TYPES[t])
    v = rng.standard_normal(dims)
    if t[0] == "c":
        v = v + 1j * rng.standard_normal(dims)
    if t == "f8e8m0fnu":
        v = np.exp2(rng.integers(-3, 4, dims))
    return np.asarray(v).astype(TYPES[t])


class Case:
    """One op: `line` has $0, $1 ... for its operands; helpers are computations it needs; `tuple_types` are the types of
    its results when it gives several. `close` is the error allowed relative to the largest result, 0: same bits."""

    def __init__(self, name, args, result, line, helpers=(), close=0.0, expect=None):
        self.name, self.args, self.result, self.line = name, args, result, line
        self.helpers, self.close, self.expect = tuple(helpers), close, expect
        self.count = len(result) if isinstance(result, list) else 1


def module_of(cases):
    """The text, and the arguments in order."""
    helpers = dict.fromkeys(itertools.chain.from_iterable(c.helpers for c in cases))
    lines, args, roots, types = ["HloModule m", *helpers, "ENTRY e {"], [], [], []
    for k, c in enumerate(cases):
        names = []
        for t, a in c.args:
            names.append(f"p{len(args)}")
            lines.append(f"  p{len(args)} = {shape(t, a.shape)} parameter({len(args)})")
            args.append(a)
        results = c.result if isinstance(c.result, list) else [c.result]
        whole = f"({', '.join(results)})" if isinstance(c.result, list) else c.result
        lines.append(f"  o{k} = {whole} " + re.sub(r"\$(\d+)", lambda m: names[int(m.group(1))], c.line))
        for i, r in enumerate(results):
            roots.append(f"o{k}g{i}" if isinstance(c.result, list) else f"o{k}")
            types.append(r)
            if isinstance(c.result, list):
                lines.append(f"  o{k}g{i} = {r} get-tuple-element(o{k}), index={i}")
    lines.append(f"  ROOT r = ({', '.join(types)}) tuple({', '.join(roots)})")
    return "\n".join(lines + ["}", ""]), args


def body(opcode, t, result=None):
    """A computation of two scalars, named for what it does."""
    name = f"{opcode}_{t}".replace("-", "_")
    return name, f"{name} {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT c = {result or t}[] {opcode}(a, b)\n}}"


def compare_body(direction, t, extra=0, kind=None):
    name = f"{direction}_{t}_{extra}_{kind}"
    params = [f"  a = {t}[] parameter(0)", f"  b = {t}[] parameter(1)"]
    params += [f"  x{i} = s32[] parameter({2 + i})" for i in range(2 * extra)]
    suffix = f", type={kind}" if kind else ""
    return name, "\n".join([f"{name} {{", *params, f"  ROOT c = pred[] compare(a, b), direction={direction}{suffix}", "}"])


# --- data movement ---

def transpose(rng, t):
    dims = rng.integers(0 if rng.random() < 0.1 else 1, 7, rng.integers(0, 6))
    perm = rng.permutation(len(dims))
    x = draw(rng, t, dims)
    return Case("transpose", [(t, x)], shape(t, dims[perm]), f"transpose($0), dimensions={braces(perm)}",
                expect=lambda x: [x.transpose(perm)])


def slice_(rng, t):
    dims = rng.integers(1, 12, rng.integers(0, 5))
    start = [int(rng.integers(0, d + 1)) for d in dims]
    limit = [int(rng.integers(s, d + 1)) for s, d in zip(start, dims)]
    step = [int(rng.integers(1, 5)) for _ in dims]
    cut = tuple(slice(*s) for s in zip(start, limit, step))
    x = draw(rng, t, dims)
    spec = ", ".join(f"[{a}:{b}:{c}]" for a, b, c in zip(start, limit, step))
    return Case("slice", [(t, x)], shape(t, x[cut].shape), f"slice($0), slice={{{spec}}}", expect=lambda x: [x[cut]])


def pad(rng, t):
    dims = rng.integers(0 if rng.random() < 0.1 else 1, 7, rng.integers(1, 5))
    while True:
        spec = [(int(rng.integers(-4, 5)), int(rng.integers(-4, 5)), int(rng.integers(0, 3))) for _ in dims]
        size = [a + b + d + max(d - 1, 0) * c for (a, b, c), d in zip(spec, dims)]
        if min(size) >= 0:
            break
    x, v = draw(rng, t, dims), draw(rng, t, ())
    text = "x".join("_".join(map(str, s)) for s in spec)
    return Case("pad", [(t, x), (t, v)], shape(t, size), f"pad($0, $1), padding={text}")


def reverse(rng, t):
    dims = rng.integers(1, 7, rng.integers(1, 5))
    flip = [d for d in range(len(dims)) if rng.random() < 0.5]
    x = draw(rng, t, dims)
    return Case("reverse", [(t, x)], shape(t, dims), f"reverse($0), dimensions={braces(flip)}",
                expect=lambda x: [np.flip(x, flip)])


def broadcast(rng, t):
    dims = rng.integers(1, 6, rng.integers(0, 6))
    keep = sorted(rng.choice(len(dims), rng.integers(0, len(dims) + 1), replace=False)) if len(dims) else []
    x = draw(rng, t, dims[keep] if len(keep) else ())
    return Case("broadcast", [(t, x)], shape(t, dims), f"broadcast($0), dimensions={braces(keep)}")


def concatenate(rng, t):
    dims = rng.integers(1, 6, rng.integers(1, 5))
    d, n = int(rng.integers(0, len(dims))), int(rng.integers(1, 5))
    parts = []
    for _ in range(n):
        own = dims.copy()
        own[d] = rng.integers(0, 5)
        parts.append((t, draw(rng, t, own)))
    whole = dims.copy()
    whole[d] = sum(p.shape[d] for _, p in parts)
    operands = ", ".join(f"${i}" for i in range(n))
    return Case("concatenate", parts, shape(t, whole), f"concatenate({operands}), dimensions={{{d}}}",
                expect=lambda *p: [np.concatenate(p, d)])


def reshape(rng, t):
    factors = list(rng.integers(1, 4, 5))
    def grouped():
        cuts = sorted(rng.integers(0, 6, rng.integers(0, 5)))
        return [int(np.prod(factors[a:b])) for a, b in zip([0, *cuts], [*cuts, 5])]
    x = draw(rng, t, grouped())
    to = grouped()
    return Case("reshape", [(t, x)], shape(t, to), "reshape($0)", expect=lambda x: [x.reshape(to)])


def dynamic_slice(rng, t):
    dims = rng.integers(1, 9, rng.integers(1, 5))
    size = [int(rng.integers(1, d + 1)) for d in dims]
    it = rng.choice(["s32", "s64", "u32", "u8", "s8"])
    at = [(it, np.asarray(rng.integers(0 if it[0] == "u" else -5, 14)).astype(TYPES[it])) for _ in dims]
    operands = ", ".join(f"${i}" for i in range(len(dims) + 1))
    return Case("dynamic-slice", [(t, draw(rng, t, dims)), *at], shape(t, size),
                f"dynamic-slice({operands}), dynamic_slice_sizes={braces(size)}")


def dynamic_update_slice(rng, t):
    dims = rng.integers(1, 9, rng.integers(1, 5))
    size = [int(rng.integers(0 if rng.random() < 0.1 else 1, d + 1)) for d in dims]
    it = rng.choice(["s32", "s64", "u32"])
    at = [(it, np.asarray(rng.integers(0 if it[0] == "u" else -5, 14)).astype(TYPES[it])) for _ in dims]
    operands = ", ".join(f"${i}" for i in range(len(dims) + 2))
    return Case("dynamic-update-slice", [(t, draw(rng, t, dims)), (t, draw(rng, t, size)), *at], shape(t, dims),
                f"dynamic-update-slice({operands})")


# --- gather and scatter ---

def window_numbers(rng, least_mapped=0):
    """Operand dims, slice sizes and the roles of all dims, as gather and scatter both have them."""
    rank = int(rng.integers(1, 5))
    dims = [int(v) for v in rng.integers(1, 7, rank)]
    n_batching = int(rng.integers(0, min(rank - least_mapped, 2) + 1)) if rng.random() < 0.4 else 0
    order = [int(v) for v in rng.permutation(rank)]
    batching = sorted(order[:n_batching])
    n_mapped = max(int(rng.integers(0, rank - n_batching + 1)), least_mapped)
    mapped = order[n_batching:n_batching + n_mapped]
    collapsed = sorted(d for d in range(rank) if d not in batching and rng.random() < 0.4)
    sizes = [1 if d in batching or d in collapsed else int(rng.integers(1, dims[d] + 1)) for d in range(rank)]
    batch_rank = n_batching + int(rng.integers(0, 3))
    batch = [int(v) for v in rng.integers(1, 5, batch_rank)]
    places = [int(v) for v in rng.permutation(batch_rank)[:n_batching]]
    for d, p in zip(batching, places):
        batch[p] = dims[d]
    vector_dim = int(rng.integers(0, batch_rank + 1))
    indices = batch[:vector_dim] + [len(mapped)] + batch[vector_dim:]
    if len(mapped) == 1 and rng.random() < 0.5:
        vector_dim, indices = batch_rank, batch
    index_batching = [p + (p >= vector_dim) for p in places]
    window = [sizes[d] for d in range(rank) if d not in batching and d not in collapsed]
    small_rank = batch_rank + len(window)
    offsets = sorted(int(v) for v in rng.permutation(small_rank)[:len(window)])
    small, rest = [], iter(batch)
    inner = iter(window)
    for d in range(small_rank):
        small.append(next(inner) if d in offsets else next(rest))
    return locals()


def draw_indices(rng, n):
    it = rng.choice(["s32", "s64", "u32", "s8", "u8"])
    return it, rng.integers(0 if it[0] == "u" else -2, 8, n["indices"]).astype(TYPES[it])


def gather(rng, t):
    n = window_numbers(rng)
    it, at = draw_indices(rng, n)
    line = (f"gather($0, $1), offset_dims={braces(n['offsets'])}, collapsed_slice_dims={braces(n['collapsed'])}, "
            f"start_index_map={braces(n['mapped'])}, ")
    if n["batching"]:
        line += f"operand_batching_dims={braces(n['batching'])}, start_indices_batching_dims={braces(n['index_batching'])}, "
    line += f"index_vector_dim={n['vector_dim']}, slice_sizes={braces(n['sizes'])}"
    return Case("gather", [(t, draw(rng, t, n["dims"])), (it, at)], shape(t, n["small"]), line)


def scatter(rng, t):
    n = window_numbers(rng, 1)  # without any index XLA takes the op for one without updates
    it, at = draw_indices(rng, n)
    opcode = str(rng.choice(["or", "and"] if t == "pred" else ["add", "multiply"] if t[0] == "c" else
                            ["add", "maximum", "multiply", "subtract"]))
    name, text = body(opcode, t)
    if rng.random() < 0.25:
        name, text = f"second_{t}", f"second_{t} {{\n  a = {t}[] parameter(0)\n  ROOT b = {t}[] parameter(1)\n}}"
    line = (f"scatter($0, $1, $2), update_window_dims={braces(n['offsets'])}, "
            f"inserted_window_dims={braces(n['collapsed'])}, scatter_dims_to_operand_dims={braces(n['mapped'])}, ")
    if n["batching"]:
        line += f"input_batching_dims={braces(n['batching'])}, scatter_indices_batching_dims={braces(n['index_batching'])}, "
    line += f"index_vector_dim={n['vector_dim']}, to_apply={name}"
    args = [(t, draw(rng, t, n["dims"], True)), (it, at), (t, draw(rng, t, n["small"], True))]
    return Case("scatter", args, shape(t, n["dims"]), line, [text], close=TOLERANCE.get(t, 0))


def scatter_several(rng, t):
    """Two operands by one computation."""
    n = window_numbers(rng, 1)  # without any index XLA takes the op for one without updates
    it, at = draw_indices(rng, n)
    text = (f"both_{t} {{\n  a = {t}[] parameter(0)\n  b = s32[] parameter(1)\n  c = {t}[] parameter(2)\n"
            f"  d = s32[] parameter(3)\n  x = {t}[] subtract(a, c)\n  y = s32[] add(b, d)\n"
            f"  ROOT r = ({t}[], s32[]) tuple(x, y)\n}}")
    line = (f"scatter($0, $1, $2, $3, $4), update_window_dims={braces(n['offsets'])}, "
            f"inserted_window_dims={braces(n['collapsed'])}, scatter_dims_to_operand_dims={braces(n['mapped'])}, ")
    if n["batching"]:
        line += f"input_batching_dims={braces(n['batching'])}, scatter_indices_batching_dims={braces(n['index_batching'])}, "
    line += f"index_vector_dim={n['vector_dim']}, to_apply=both_{t}"
    args = [(t, draw(rng, t, n["dims"], True)), ("s32", draw(rng, "s32", n["dims"])), (it, at),
            (t, draw(rng, t, n["small"], True)), ("s32", draw(rng, "s32", n["small"]))]
    return Case("scatter of two", args, [shape(t, n["dims"]), shape("s32", n["dims"])], line, [text],
                close=TOLERANCE.get(t, 0))


# --- contractions ---

# Of the largest result: sums and products of many terms, in another order than XLA's.
TOLERANCE = {"f32": 1e-5, "f64": 1e-13, "c64": 1e-5, "c128": 1e-13, "f16": 2e-3, "bf16": 2e-2, "f8e4m3fn": 0.13,
             "f8e5m2": 0.3, "f8e4m3": 0.13, "f8e3m4": 0.07, "f8e4m3fnuz": 0.13, "f8e5m2fnuz": 0.3,
             "f8e4m3b11fnuz": 0.13, "f4e2m1fn": 1.0, "f8e8m0fnu": 8.0}


def dot(rng, t, result=None):
    result = result or t
    n_batch, n_sum = int(rng.integers(0, 3)), int(rng.integers(0, 3))
    batch, sums = list(rng.integers(1, 4, n_batch)), list(rng.integers(0 if rng.random() < 0.05 else 1, 9, n_sum))
    left, right = list(rng.integers(1, 7, rng.integers(0, 3))), list(rng.integers(1, 7, rng.integers(0, 3)))

    def side(free):
        roles = [("b", i) for i in range(n_batch)] + [("k", i) for i in range(n_sum)] + [("f", i) for i in range(len(free))]
        order = [roles[i] for i in rng.permutation(len(roles))]
        free_order = [i for r, i in order if r == "f"]
        dims = [batch[i] if r == "b" else sums[i] if r == "k" else free[i] for r, i in order]
        return dims, [order.index(("b", i)) for i in range(n_batch)], [order.index(("k", i)) for i in range(n_sum)], [
            free[i] for i in free_order]

    ld, lb, lc, lf = side(left)
    rd, rb, rc, rf = side(right)
    line = (f"dot($0, $1), lhs_batch_dims={braces(lb)}, lhs_contracting_dims={braces(lc)}, "
            f"rhs_batch_dims={braces(rb)}, rhs_contracting_dims={braces(rc)}")
    args = [(t, draw(rng, t, ld, result != "s32")), (t, draw(rng, t, rd, result != "s32"))]
    return Case(f"dot to {result}", args, shape(result, batch + lf + rf), line, close=TOLERANCE.get(result, 0))


def convolution(rng, t, result=None):
    result = result or t
    n = int(rng.integers(0, 4))
    groups, kind = int(rng.choice([1, 1, 2, 3])), str(rng.choice(["feature", "batch"]))
    features, outs, batch = int(rng.integers(1, 4)), int(rng.integers(1, 4)) * groups, int(rng.integers(1, 3))
    window = []
    for _ in range(n):
        while True:
            w = dict(size=int(rng.integers(1, 4)), stride=int(rng.integers(1, 4)), low=int(rng.integers(-1, 4)),
                     high=int(rng.integers(-1, 4)), wd=int(rng.integers(1, 3)), bd=int(rng.integers(1, 4)),
                     rev=bool(rng.random() < 0.3), n=int(rng.integers(1, 8)))
            whole = (w["n"] - 1) * w["bd"] + 1 + w["low"] + w["high"]
            w["out"] = (whole - (w["size"] - 1) * w["wd"] - 1) // w["stride"] + 1
            if w["out"] > 0:
                break
        window.append(w)
    in_sizes = {"b": batch * (groups if kind == "batch" else 1), "f": features * (groups if kind == "feature" else 1)}
    kernel_sizes, out_sizes = {"i": features, "o": outs}, {"b": batch, "f": outs}
    for i, w in enumerate(window):
        in_sizes[str(i)], kernel_sizes[str(i)], out_sizes[str(i)] = w["n"], w["size"], w["out"]
    labels = ["".join(s[i] for i in rng.permutation(len(s))) for s in (list(in_sizes), list(kernel_sizes), list(out_sizes))]
    spec = []
    if window:
        spec = ["size=" + "x".join(str(w["size"]) for w in window), "stride=" + "x".join(str(w["stride"]) for w in window),
                "pad=" + "x".join(f"{w['low']}_{w['high']}" for w in window),
                "lhs_dilate=" + "x".join(str(w["bd"]) for w in window),
                "rhs_dilate=" + "x".join(str(w["wd"]) for w in window),
                "rhs_reversal=" + "x".join(str(int(w["rev"])) for w in window)]
    line = (f"convolution($0, $1), window={{{' '.join(spec)}}}, dim_labels={labels[0]}_{labels[1]}->{labels[2]}" +
            (f", {kind}_group_count={groups}" if groups > 1 else ""))
    args = [(t, draw(rng, t, [in_sizes[c] for c in labels[0]], True)), (t, draw(rng, t, [kernel_sizes[c] for c in labels[1]], True))]
    return Case(f"convolution to {result}", args, shape(result, [out_sizes[c] for c in labels[2]]), line,
                close=TOLERANCE.get(result, 0))


# --- reductions ---

def identity(opcode, t):
    """XLA leaves the initial value out where nothing, or one element, is reduced: it must be the identity."""
    if opcode in ("add", "or", "xor"):
        return np.zeros((), TYPES[t])
    if opcode in ("multiply", "and"):
        return np.ones((), TYPES[t])
    if t[0] in "su":
        low, high = ml_dtypes.iinfo(TYPES[t]).min, ml_dtypes.iinfo(TYPES[t]).max
    else:
        low, high = ml_dtypes.finfo(TYPES[t]).min, ml_dtypes.finfo(TYPES[t]).max
    return np.asarray(low if opcode == "maximum" else high).astype(TYPES[t])


def reduce(rng, t):
    dims = rng.integers(0 if rng.random() < 0.05 else 1, 7, rng.integers(1, 6))
    over = sorted(int(d) for d in range(len(dims)) if rng.random() < 0.5)
    opcode = str(rng.choice(["and", "or", "xor"] if t == "pred" else ["add", "multiply"] if t[0] == "c" else
                            ["add", "maximum", "minimum", "multiply"]))
    name, text = body(opcode, t)
    kept = [int(n) for d, n in enumerate(dims) if d not in over]
    return Case(f"reduce {opcode}", [(t, draw(rng, t, dims, True)), (t, identity(opcode, t))], shape(t, kept),
                f"reduce($0, $1), dimensions={braces(over)}, to_apply={name}", [text], close=TOLERANCE.get(t, 0))


def reduce_several(rng, t):
    """The largest element and the first place of it."""
    dims = rng.integers(1, 7, rng.integers(1, 5))
    over = sorted(int(d) for d in range(len(dims)) if rng.random() < 0.5)
    text = (f"argmax_{t} {{\n  a = {t}[] parameter(0)\n  i = s32[] parameter(1)\n  b = {t}[] parameter(2)\n"
            f"  j = s32[] parameter(3)\n  gt = pred[] compare(a, b), direction=GT\n  eq = pred[] compare(a, b), direction=EQ\n"
            f"  lt = pred[] compare(i, j), direction=LT\n  both = pred[] and(eq, lt)\n  take = pred[] or(gt, both)\n"
            f"  x = {t}[] select(take, a, b)\n  k = s32[] select(take, i, j)\n  ROOT r = ({t}[], s32[]) tuple(x, k)\n}}")
    kept = [int(n) for d, n in enumerate(dims) if d not in over]
    numbers = np.arange(np.prod(dims), dtype=np.int32).reshape(dims)
    args = [(t, draw(rng, t, dims, True)), ("s32", numbers), (t, identity("maximum", t)), ("s32", identity("minimum", "s32"))]
    return Case("reduce of two", args, [shape(t, kept), shape("s32", kept)],
                f"reduce($0, $1, $2, $3), dimensions={braces(over)}, to_apply=argmax_{t}", [text])


def draw_window(rng, dims, dilate=True):
    spec = []
    for d in dims:
        while True:
            w = dict(size=int(rng.integers(1, 4)), stride=int(rng.integers(1, 4)), low=int(rng.integers(0, 3)),
                     high=int(rng.integers(0, 3)), wd=int(rng.integers(1, 3)) if dilate else 1,
                     bd=int(rng.integers(1, 4)) if dilate else 1)
            w["out"] = ((d - 1) * w["bd"] + 1 + w["low"] + w["high"] - (w["size"] - 1) * w["wd"] - 1) // w["stride"] + 1
            if w["out"] > 0:
                break
        spec.append(w)
    text = ("size=" + "x".join(str(w["size"]) for w in spec) + " stride=" + "x".join(str(w["stride"]) for w in spec) +
            " pad=" + "x".join(f"{w['low']}_{w['high']}" for w in spec))
    if dilate:
        text += (" lhs_dilate=" + "x".join(str(w["bd"]) for w in spec) + " rhs_dilate=" + "x".join(str(w["wd"]) for w in spec))
    return text, [w["out"] for w in spec], spec


def reduce_window(rng, t):
    dims = [int(v) for v in rng.integers(1, 8, rng.integers(1, 4))]
    text, out, _ = draw_window(rng, dims)
    opcode = str(rng.choice(["and", "or"] if t == "pred" else ["add"] if t[0] == "c" else ["add", "maximum", "minimum"]))
    name, helper = body(opcode, t)
    return Case(f"reduce-window {opcode}", [(t, draw(rng, t, dims, True)), (t, draw(rng, t, (), True))], shape(t, out),
                f"reduce-window($0, $1), window={{{text}}}, to_apply={name}", [helper], close=TOLERANCE.get(t, 0))


def reduce_window_several(rng, t):
    dims = [int(v) for v in rng.integers(1, 8, rng.integers(1, 4))]
    text, out, _ = draw_window(rng, dims)
    helper = (f"sums_{t} {{\n  a = {t}[] parameter(0)\n  i = s32[] parameter(1)\n  b = {t}[] parameter(2)\n"
              f"  j = s32[] parameter(3)\n  x = {t}[] maximum(a, b)\n  k = s32[] add(i, j)\n"
              f"  ROOT r = ({t}[], s32[]) tuple(x, k)\n}}")
    args = [(t, draw(rng, t, dims, True)), ("s32", draw(rng, "s32", dims)), (t, draw(rng, t, (), True)),
            ("s32", draw(rng, "s32", ()))]
    return Case("reduce-window of two", args, [shape(t, out), shape("s32", out)],
                f"reduce-window($0, $1, $2, $3), window={{{text}}}, to_apply=sums_{t}", [helper])


def select_and_scatter(rng, t):
    dims = [int(v) for v in rng.integers(2, 6, rng.integers(1, 4))]
    while True:
        text, out, spec = draw_window(rng, dims, dilate=False)
        if all(w["low"] < w["size"] and w["high"] < w["size"] for w in spec):  # every window meets an element
            break
    select, select_text = compare_body("GE", t)
    name, helper = body("add", t)
    # Distinct elements: which of equal ones a window selects, XLA decides by how it happens to loop.
    x = rng.permutation(int(np.prod(dims))).reshape(dims) - (0 if t[0] == "u" else np.prod(dims) // 2)
    args = [(t, x.astype(TYPES[t])), (t, draw(rng, t, out, True)), (t, np.zeros((), TYPES[t]))]
    return Case("select-and-scatter", args, shape(t, dims),
                f"select-and-scatter($0, $1, $2), window={{{text}}}, select={select}, scatter={name}",
                [select_text, helper], close=TOLERANCE.get(t, 0))


# --- order ---

def sort(rng, t):
    dims = [int(v) for v in rng.integers(1, 5, rng.integers(1, 4))]
    d = int(rng.integers(0, len(dims)))
    dims[d] = int(rng.integers(0 if rng.random() < 0.05 else 1, 40))
    extra = int(rng.integers(0, 3))
    name, text = compare_body(str(rng.choice(["LT", "GT"])), t, extra)
    args = [(t, draw(rng, t, dims, True))] + [("s32", draw(rng, "s32", dims)) for _ in range(extra)]
    operands = ", ".join(f"${i}" for i in range(extra + 1))
    types = [shape(t, dims)] + [shape("s32", dims)] * extra
    return Case("sort", args, types if extra else types[0],
                f"sort({operands}), dimensions={{{d}}}, is_stable=true, to_apply={name}", [text])


def topk(rng, t):
    dims = [int(v) for v in rng.integers(1, 5, rng.integers(0, 2))] + [int(rng.integers(1, 60))]
    k = int(rng.integers(1, dims[-1] + 1))
    out = dims[:-1] + [k]
    x = draw(rng, t, dims)
    if t in ("f32", "bf16", "f16", "f64"):
        x = np.where(rng.random(dims) < 0.1, np.asarray(np.nan, x.dtype), x).astype(x.dtype)
        x = np.where(rng.random(dims) < 0.1, np.asarray(-0.0, x.dtype), x).astype(x.dtype)
    largest = bool(rng.random() < 0.6)
    return Case("topk", [(t, x)], [shape(t, out), shape("s32", out)],
                f"topk($0), k={k}, largest={str(largest).lower()}")
