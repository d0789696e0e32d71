"""Random HLO modules drawn by hypothesis: 50 and more ops of all families, valid by construction and numerically tame.

Each value has a shape, a type, a bound on its magnitude, and whether it is exact (the same bits in any correct implementation).
Ops with jumps (floor, compare, sort, conversions to integers, ...) take exact values only, so that a last bit somewhere can't
become a different answer; ops that grow take bounded values only."""
import dataclasses

import numpy as np
from hypothesis import strategies as st

FLOATS, INTS = ("f32", "f64"), ("s32", "u32", "s8", "u16", "s64")
NUMPY = {"f32": "f4", "f64": "f8", "s32": "i4", "u32": "u4", "s8": "i1", "u16": "u2", "s64": "i8", "pred": "?", "c64": "c8"}
HELPERS = {
    "add": "{t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT r = {t}[] add(a, b)",
    "max": "{t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT r = {t}[] maximum(a, b)",
    "lt": "{t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=LT",
    "double": "{t}[] parameter(0)\n  ROOT r = {t}[] add(a, a)",
}


@dataclasses.dataclass
class Value:
    name: str
    dtype: str
    dims: tuple
    bound: float
    exact: bool

    @property
    def type(self):
        return f"{self.dtype}[{','.join(map(str, self.dims))}]"


class Module:
    """One module in the making. `draw` is hypothesis's."""

    def __init__(self, draw, ops):
        self.draw, self.lines, self.values, self.extra, self.args = draw, [], [], [], []
        self.helpers = set()
        for _ in range(draw(st.integers(3, 6))):
            self.parameter()
        while len(self.lines) < ops:
            getattr(self, draw(st.sampled_from(FAMILIES)))()

    # --- building blocks ---

    def pick(self, want=lambda v: True):
        found = [v for v in self.values if want(v)]
        return self.draw(st.sampled_from(found)) if found else None

    def emit(self, dtype, dims, op, bound, exact, attrs=""):
        value = Value(f"v{len(self.lines)}", dtype, tuple(dims), bound, exact)
        self.lines.append(f"  {value.name} = {value.type} {op}{', ' + attrs if attrs else ''}")
        self.values.append(value)
        return value

    def parameter(self):
        dtype = self.draw(st.sampled_from(FLOATS + INTS))
        dims = tuple(self.draw(st.lists(st.integers(1, 5), min_size=0 if self.args else 2, max_size=3)))
        rng = np.random.default_rng(self.draw(st.integers(0, 2**32)))
        if dtype in FLOATS:
            array = rng.uniform(-2, 2, dims).astype(NUMPY[dtype])
        else:
            info = np.iinfo(NUMPY[dtype])
            array = rng.integers(max(-50, info.min), min(50, info.max), dims, dtype=NUMPY[dtype])
        self.emit(dtype, dims, f"parameter({len(self.args)})", 2 if dtype in FLOATS else 50, True)
        self.args.append(np.asarray(array))

    def constant(self, dtype, number):
        return self.emit(dtype, (), f"constant({f'({number}, 0)' if dtype[0] == 'c' else number})", abs(float(number)), True)

    def helper(self, name, dtype):
        """The name of a small computation; only those asked for are printed, because XLA's print moves uncalled ones about."""
        self.helpers.add((name, dtype))
        return f"{name}_{dtype}"

    # --- families ---

    def unary(self):
        v = self.pick(lambda v: v.dtype != "c64")
        if not v:
            return
        smooth = ["sine", "cosine", "tanh", "logistic", "negate", "abs"]
        if v.dtype in FLOATS:
            op = self.draw(st.sampled_from(smooth + (["exponential", "expm1"] if v.bound <= 4 else [])))
            op = {"expm1": "exponential-minus-one"}.get(op, op)
            grown = np.exp(min(v.bound, 4))  # a product's bound may be an integer beyond NumPy's
            bound = {"negate": v.bound, "abs": v.bound, "exponential": grown, "exponential-minus-one": grown}.get(op, 1)
            self.emit(v.dtype, v.dims, f"{op}({v.name})", bound, v.exact and op in ("negate", "abs"))
        elif v.dtype == "pred":
            self.emit("pred", v.dims, f"not({v.name})", 1, v.exact)
        else:
            op = self.draw(st.sampled_from(["negate", "not", "popcnt", "count-leading-zeros"]))
            self.emit(v.dtype, v.dims, f"{op}({v.name})", 2**64, v.exact)

    def stepped(self):
        v = self.pick(lambda v: v.dtype in FLOATS and v.exact)
        if v:
            op = self.draw(st.sampled_from(["floor", "ceil", "round-nearest-even", "round-nearest-afz", "sign"]))
            self.emit(v.dtype, v.dims, f"{op}({v.name})", v.bound + 1, True)

    def binary(self):
        a = self.pick(lambda v: v.dtype != "c64" and (v.bound <= 1e3 or v.dtype in INTS))
        b = a and self.pick(lambda v: v.type == a.type and (v.bound <= 1e3 or v.dtype in INTS))
        if b is None:
            return
        if a.dtype == "pred":
            self.emit("pred", a.dims, f"{self.draw(st.sampled_from(['and', 'or', 'xor']))}({a.name}, {b.name})", 1,
                      a.exact and b.exact)
        elif a.dtype in FLOATS:
            op = self.draw(st.sampled_from(["add", "subtract", "multiply", "maximum", "minimum"]))
            bound = a.bound * b.bound if op == "multiply" else a.bound + b.bound
            self.emit(a.dtype, a.dims, f"{op}({a.name}, {b.name})", bound,
                      op in ("maximum", "minimum") and a.exact and b.exact)
        else:
            op = self.draw(st.sampled_from(["add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor", "divide",
                                            "remainder", "shift-left", "shift-right-logical", "shift-right-arithmetic"]))
            self.emit(a.dtype, a.dims, f"{op}({a.name}, {b.name})", 2**64, a.exact and b.exact)

    def compare(self):
        a = self.pick(lambda v: v.exact and v.dtype != "c64")
        b = a and self.pick(lambda v: v.exact and v.type == a.type)
        if b:
            direction = self.draw(st.sampled_from(["EQ", "NE", "GE", "GT", "LE", "LT"]))
            self.emit("pred", a.dims, f"compare({a.name}, {b.name})", 1, True, f"direction={direction}")

    def select(self):
        p = self.pick(lambda v: v.dtype == "pred" and v.exact)
        a = p and self.pick(lambda v: v.dims == p.dims and v.dtype != "pred")
        b = a and self.pick(lambda v: v.type == a.type)
        if b:
            self.emit(a.dtype, a.dims, f"select({p.name}, {a.name}, {b.name})", max(a.bound, b.bound), a.exact and b.exact)

    def clamp(self):
        v = self.pick(lambda v: v.dtype in FLOATS + INTS)
        if not v:
            return
        low = self.constant(v.dtype, 0)
        high = self.constant(v.dtype, 3)
        self.emit(v.dtype, v.dims, f"clamp({low.name}, {v.name}, {high.name})", 3, v.exact)

    def convert(self):
        v = self.pick(lambda v: v.dtype != "c64" and (v.exact or v.dtype in FLOATS))
        if not v:
            return
        targets = FLOATS + INTS if v.exact else FLOATS
        dtype = self.draw(st.sampled_from(targets))
        self.emit(dtype, v.dims, f"convert({v.name})", v.bound if dtype in FLOATS else 2**64, v.exact)

    def broadcast(self):
        v = self.pick(lambda v: len(v.dims) <= 2)
        if not v:
            return
        extra = self.draw(st.integers(1, 4))
        at = self.draw(st.integers(0, len(v.dims)))
        dims = v.dims[:at] + (extra,) + v.dims[at:]
        kept = [i + (i >= at) for i in range(len(v.dims))]
        self.emit(v.dtype, dims, f"broadcast({v.name})", v.bound, v.exact, f"dimensions={{{','.join(map(str, kept))}}}")

    def reshape(self):
        v = self.pick()
        count = int(np.prod(v.dims, dtype=int))
        dims = self.draw(st.sampled_from([(count,), (1, count), (count, 1), v.dims + (1,)]))
        self.emit(v.dtype, dims, f"reshape({v.name})", v.bound, v.exact)

    def transpose(self):
        v = self.pick()
        perm = self.draw(st.permutations(range(len(v.dims))))
        self.emit(v.dtype, [v.dims[p] for p in perm], f"transpose({v.name})", v.bound, v.exact,
                  f"dimensions={{{','.join(map(str, perm))}}}")

    def slice(self):
        v = self.pick(lambda v: v.dims)
        if not v:
            return
        parts, dims = [], []
        for d in v.dims:
            start = self.draw(st.integers(0, d - 1))
            limit = self.draw(st.integers(start + 1, d))
            stride = self.draw(st.integers(1, 2))
            parts.append(f"[{start}:{limit}:{stride}]")
            dims.append(-(-(limit - start) // stride))
        self.emit(v.dtype, dims, f"slice({v.name})", v.bound, v.exact, f"slice={{{', '.join(parts)}}}")

    def pad(self):
        v = self.pick(lambda v: v.dims and v.dtype != "pred")
        if not v:
            return
        zero = self.constant(v.dtype, 0)
        parts, dims = [], []
        for d in v.dims:
            low, high, inner = (self.draw(st.integers(0, 2)) for _ in range(3))
            parts.append(f"{low}_{high}_{inner}")
            dims.append(low + high + d + (d - 1) * inner)
        if int(np.prod(dims)) <= 4096:
            self.emit(v.dtype, dims, f"pad({v.name}, {zero.name})", v.bound, v.exact, f"padding={'x'.join(parts)}")

    def concatenate(self):
        v = self.pick(lambda v: v.dims)
        w = v and self.pick(lambda o: o.type == v.type)
        if w:
            d = self.draw(st.integers(0, len(v.dims) - 1))
            dims = [n * 2 if i == d else n for i, n in enumerate(v.dims)]
            if int(np.prod(dims)) <= 4096:
                self.emit(v.dtype, dims, f"concatenate({v.name}, {w.name})", max(v.bound, w.bound), v.exact and w.exact,
                          f"dimensions={{{d}}}")

    def reverse(self):
        v = self.pick(lambda v: v.dims)
        if v:
            d = self.draw(st.integers(0, len(v.dims) - 1))
            self.emit(v.dtype, v.dims, f"reverse({v.name})", v.bound, v.exact, f"dimensions={{{d}}}")

    def iota(self):
        dims = self.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
        d = self.draw(st.integers(0, len(dims) - 1))
        self.emit(self.draw(st.sampled_from(FLOATS + INTS)), dims, "iota()", 5, True, f"iota_dimension={d}")

    def reduce(self):
        v = self.pick(lambda v: v.dims and v.dtype in FLOATS + INTS and (v.bound < 1e4 or v.dtype in INTS))
        if not v:
            return
        d = self.draw(st.integers(0, len(v.dims) - 1))
        op = self.draw(st.sampled_from(["add", "max"]))
        # An init that is not an identity may count once or several times, or not at all: XLA drops it for dimensions of size 1.
        lowest = "-inf" if v.dtype in FLOATS else np.iinfo(NUMPY[v.dtype]).min
        init = self.constant(v.dtype, 0 if op == "add" else lowest)
        self.emit(v.dtype, v.dims[:d] + v.dims[d + 1:], f"reduce({v.name}, {init.name})",
                  v.bound * (v.dims[d] if op == "add" else 1), v.exact and (op == "max" or v.dtype in INTS),
                  f"dimensions={{{d}}}, to_apply={self.helper(op, v.dtype)}")

    def reduce_window(self):
        v = self.pick(lambda v: len(v.dims) == 2 and v.dtype in FLOATS + INTS and (v.bound < 1e4 or v.dtype in INTS))
        if not v:
            return
        size = [self.draw(st.integers(1, n)) for n in v.dims]
        dims = [n - s + 1 for n, s in zip(v.dims, size)]
        init = self.constant(v.dtype, 0)
        self.emit(v.dtype, dims, f"reduce-window({v.name}, {init.name})", v.bound * size[0] * size[1],
                  v.exact and v.dtype in INTS, f"window={{size={size[0]}x{size[1]}}}, to_apply={self.helper('add', v.dtype)}")

    def dot(self):
        a = self.pick(lambda v: len(v.dims) == 2 and v.dtype in FLOATS + ("s32",) and (v.bound < 100 or v.dtype in INTS))
        b = a and self.pick(lambda v: len(v.dims) == 2 and v.dtype == a.dtype and v.dims[0] == a.dims[1] and
                            (v.bound < 100 or v.dtype in INTS))
        if b:
            self.emit(a.dtype, (a.dims[0], b.dims[1]), f"dot({a.name}, {b.name})", a.bound * b.bound * a.dims[1],
                      a.exact and b.exact and a.dtype in INTS, "lhs_contracting_dims={1}, rhs_contracting_dims={0}")

    def convolution(self):
        v = self.pick(lambda v: len(v.dims) == 3 and v.dtype in FLOATS and v.bound < 100)
        w = v and self.pick(lambda k: len(k.dims) == 3 and k.dtype == v.dtype and k.dims[1] == v.dims[2] and k.bound < 100)
        if w:
            low = w.dims[0] - 1
            self.emit(v.dtype, (v.dims[0], v.dims[1] + low, w.dims[2]), f"convolution({v.name}, {w.name})",
                      v.bound * w.bound * w.dims[0] * w.dims[1], False,
                      f"window={{size={w.dims[0]} pad={low}_{low}}}, dim_labels=b0f_0io->b0f")

    def gather(self):
        v = self.pick(lambda v: len(v.dims) == 2)
        i = v and self.pick(lambda i: i.dtype == "s32" and len(i.dims) == 1 and i.exact)
        if i:
            self.emit(v.dtype, (i.dims[0], v.dims[1]), f"gather({v.name}, {i.name})", v.bound, v.exact,
                      f"offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, "
                      f"slice_sizes={{1,{v.dims[1]}}}")

    def scatter(self):
        v = self.pick(lambda v: len(v.dims) == 1 and v.dtype in FLOATS + INTS and (v.bound < 1e3 or v.dtype in INTS))
        i = v and self.pick(lambda i: i.dtype == "s32" and len(i.dims) == 1 and i.exact)
        u = i and self.pick(lambda u: u.dtype == v.dtype and u.dims == i.dims and (u.bound < 1e3 or u.dtype in INTS))
        if u:
            self.emit(v.dtype, v.dims, f"scatter({v.name}, {i.name}, {u.name})", v.bound + u.bound * i.dims[0],
                      v.exact and u.exact and v.dtype in INTS,
                      f"update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, "
                      f"index_vector_dim=1, to_apply={self.helper('add', v.dtype)}")

    def dynamic(self):
        v = self.pick(lambda v: len(v.dims) == 1)
        i = v and self.pick(lambda i: i.type == "s32[]" and i.exact)
        if not i:
            return
        if self.draw(st.booleans()):
            n = self.draw(st.integers(1, v.dims[0]))
            self.emit(v.dtype, (n,), f"dynamic-slice({v.name}, {i.name})", v.bound, v.exact, f"dynamic_slice_sizes={{{n}}}")
            return
        u = self.pick(lambda u: u.dtype == v.dtype and len(u.dims) == 1 and u.dims[0] <= v.dims[0])
        self.emit(v.dtype, v.dims, f"dynamic-update-slice({v.name}, {u.name}, {i.name})", max(v.bound, u.bound),
                  v.exact and u.exact)

    def sort(self):
        v = self.pick(lambda v: v.dims and v.exact and v.dtype in FLOATS + INTS)
        if v:
            d = self.draw(st.integers(0, len(v.dims) - 1))
            self.emit(v.dtype, v.dims, f"sort({v.name})", v.bound, True, f"dimensions={{{d}}}, is_stable=true, "
                      f"to_apply={self.helper('lt', v.dtype)}")

    def call(self):
        v = self.pick(lambda v: v.dtype in FLOATS + INTS and (v.bound < 1e4 or v.dtype in INTS))
        if not v:
            return
        op = self.draw(st.sampled_from(["call", "map"]))
        if op == "call":
            name = f"callee_{len(self.extra)}"
            self.extra.append(f"{name} {{\n  p = {v.type} parameter(0)\n  ROOT r = {v.type} add(p, p)\n}}")
            attrs = f"to_apply={name}"
        else:
            attrs = f"dimensions={{{','.join(map(str, range(len(v.dims))))}}}, to_apply={self.helper('double', v.dtype)}"
        self.emit(v.dtype, v.dims, f"{op}({v.name})", v.bound * 2, v.exact, attrs)

    def conditional(self):
        p = self.pick(lambda v: v.type == "pred[]" and v.exact)
        v = p and self.pick(lambda v: v.dtype in FLOATS + INTS and (v.bound < 1e4 or v.dtype in INTS))
        if v:
            n = len(self.extra)
            self.extra.append(f"yes_{n} {{\n  p = {v.type} parameter(0)\n  ROOT r = {v.type} add(p, p)\n}}\n\n"
                              f"no_{n} {{\n  p = {v.type} parameter(0)\n  ROOT r = {v.type} negate(p)\n}}")
            self.emit(v.dtype, v.dims, f"conditional({p.name}, {v.name}, {v.name})", v.bound * 2, v.exact,
                      f"true_computation=yes_{n}, false_computation=no_{n}")

    def loop(self):
        v = self.pick(lambda v: v.dtype in FLOATS and v.bound < 100 or v.dtype in INTS)
        if not v:
            return
        n, trips = len(self.extra), self.draw(st.integers(0, 4))
        state = f"(s32[], {v.type})"
        self.extra.append(
            f"body_{n} {{\n  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n"
            f"  one = s32[] constant(1)\n  j = s32[] add(i, one)\n  x = {v.type} get-tuple-element(p), index=1\n"
            f"  y = {v.type} add(x, x)\n  ROOT t = {state} tuple(j, y)\n}}\n\n"
            f"cond_{n} {{\n  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n"
            f"  k = s32[] constant({trips})\n  ROOT c = pred[] compare(i, k), direction=LT\n}}")
        zero = self.constant("s32", 0)
        at = len(self.lines)
        self.lines.append(f"  v{at} = {state} tuple({zero.name}, {v.name})")
        self.lines.append(f"  v{at + 1} = {state} while(v{at}), condition=cond_{n}, body=body_{n}")
        self.emit(v.dtype, v.dims, f"get-tuple-element(v{at + 1})", v.bound * 16, v.exact, "index=1")

    def complex_numbers(self):
        v = self.pick(lambda v: v.dtype == "f32" and v.bound < 10)
        if v:
            c = self.emit("c64", v.dims, f"complex({v.name}, {v.name})", v.bound * 2, v.exact)
            d = self.emit("c64", v.dims, f"multiply({c.name}, {c.name})", v.bound ** 2 * 4, False)
            part = self.draw(st.sampled_from(["real", "imag", "abs"]))
            self.emit("f32", v.dims, f"{part}({d.name})", v.bound ** 2 * 4, False)

    # --- the text ---

    def text(self):
        outputs = [v for v in self.values if v.dtype != "c64"][-8:]
        helpers = [f"{n}_{t} {{\n  a = {HELPERS[n].format(t=t)}\n}}" for n, t in sorted(self.helpers)]
        result = ", ".join(v.type for v in outputs)
        root = f"  ROOT out = ({result}) tuple({', '.join(v.name for v in outputs)})"
        body = "\n".join(["HloModule random", "", *("\n".join([h, ""]) for h in helpers + self.extra), "ENTRY main {",
                          *self.lines, root, "}"])
        return body + "\n", outputs


FAMILIES = [name for name, f in vars(Module).items()
            if callable(f) and not name.startswith("_") and name not in ("pick", "emit", "constant", "parameter", "helper", "text")]


@st.composite
def modules(draw, ops=50):
    """(text, arguments, outputs) of a module with at least `ops` ops in its entry."""
    module = Module(draw, ops)
    text, outputs = module.text()
    return text, module.args, outputs
