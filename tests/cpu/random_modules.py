"""Random HLO modules of arrays: elementwise ops of many types, moves, reductions, products, slices at run-time offsets, loops, branches.
Every result is exact whatever the order of its sums: floats that are summed are small integers."""
import random

import ml_dtypes
import numpy as np

NUMPY = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "s32": np.int32, "s8": np.int8, "u8": np.uint8,
         "s64": np.int64, "u32": np.uint32, "pred": np.bool_, "c64": np.complex64}
FLOATS, INTS = ("f32", "f64", "bf16", "f16"), ("s32", "s8", "u8", "s64", "u32")
SIZES = [1, 1, 2, 3, 4, 5, 8, 17, 64, 70]


def text(t, shape):
    return f"{t}[{','.join(map(str, shape))}]"


class Module:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.n, self.helpers, self.args = 0, [], []
        self.combiners = {}
        body = self.computation(depth=0)
        self.text = "HloModule m\n" + "\n".join(self.helpers) + "\nENTRY e {\n" + body + "\n}"

    def fresh(self, stem="v"):
        self.n += 1
        return f"{stem}{self.n}"

    def shape(self):
        rank = self.r.choice([0, 1, 1, 2, 2, 2, 3])
        sizes = [self.r.choice(SIZES) for _ in range(rank)]
        if self.r.random() < 0.02 and rank:
            sizes[self.r.randrange(rank)] = 0
        while np.prod(sizes, initial=1) > 20_000:
            sizes[self.r.randrange(rank)] = 2
        return tuple(sizes)

    def value(self, t, shape):
        rng = np.random.default_rng(self.r.randrange(1 << 30))
        if t == "pred":
            return rng.random(shape) < 0.5
        if t == "c64":
            return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)
        if t in FLOATS:
            x = rng.standard_normal(shape) * self.r.choice([1, 1, 10, 1e4])
            if self.r.random() < 0.1:
                x = np.where(rng.random(shape) < 0.1, self.r.choice([np.nan, np.inf, -np.inf, 0.0, -0.0]), x)
            return np.asarray(x).astype(NUMPY[t])
        return np.asarray(rng.integers(-100, 100, shape)).astype(NUMPY[t])

    # --- a computation: lines and a pool of (name, type, shape) ---

    def computation(self, depth, params=None, result=None):
        """Entry: parameters are made up and all that is left unused is returned. Else (type, shape) of parameters and of the result."""
        lines, pool = [], []
        self_lines, self.lines = getattr(self, "lines", None), lines
        self_pool, self.pool = getattr(self, "pool", None), pool
        entry = params is None
        for i in range(self.r.randint(1, 4) if entry else len(params)):
            t, shape = (self.r.choice([*NUMPY, "f32", "f32", "s32"]), self.shape()) if entry else params[i]
            pool.append((self.emit(t, shape, f"parameter({i})"), t, shape))
            if entry:
                self.args.append(self.value(t, shape))
        for _ in range(self.r.randint(4, 30 if entry else 6)):
            self.step(depth)
        if entry:
            last = self.r.sample(pool, min(len(pool), self.r.randint(1, 5))) + [pool[-1]]
            types = ", ".join(text(t, s) for _, t, s in last)
            lines.append(f"  ROOT {self.fresh()} = ({types}) tuple({', '.join(n for n, _, _ in last)})")
        else:
            lines.append(f"  ROOT {self.fresh()} = {text(*result)} copy({self.of(*result)})")
        self.lines, self.pool = self_lines, self_pool
        return "\n".join(lines)

    def emit(self, t, shape, rest):
        name = self.fresh()
        self.lines.append(f"  {name} = {text(t, shape)} {rest}")
        return name

    def add(self, t, shape, rest):
        self.pool.append((self.emit(t, shape, rest), t, shape))
        return self.pool[-1][0]

    def constant(self, t):
        v = self.r.choice(["true", "false"]) if t == "pred" else f"({self.r.randint(-3, 3)}, {self.r.randint(-3, 3)})" if t == "c64" else str(
            self.r.randint(0 if t[0] == "u" else -5, 9))
        return self.emit(t, (), f"constant({v})")

    def of(self, t, shape):
        """A value of that type and shape: one there is, one made of another, or a constant."""
        same = [n for n, u, s in self.pool if (u, s) == (t, shape)]
        if same and self.r.random() < 0.9:
            return self.r.choice(same)
        kin = [(n, u) for n, u, s in self.pool if s == shape and u not in ("c64", t) and not (u in FLOATS and t in INTS) and t not in ("c64", "pred")]
        if kin:
            return self.emit(t, shape, f"convert({self.r.choice(kin)[0]})")
        return self.emit(t, shape, f"broadcast({self.constant(t)}), dimensions={{}}")

    def pick(self, types=None, rank=0):
        fit = [v for v in self.pool if (types is None or v[1] in types) and len(v[2]) >= rank]
        return self.r.choice(fit[-12:]) if fit else None

    # --- steps ---

    def step(self, depth):
        kinds = ["unary", "binary", "binary", "binary", "compare", "select", "convert", "broadcast", "broadcast", "reshape", "transpose", "slice", "reverse",
                 "reduce", "reduce", "dot", "iota", "pad", "concatenate", "dynamic_slice", "dynamic_update", "clamp"]
        if depth < 2:
            kinds += ["loop", "branch"]
        getattr(self, "do_" + self.r.choice(kinds))(depth)

    def do_unary(self, _):
        v = self.pick()
        ops = {"pred": ["not"], "c64": ["negate"]}.get(v[1]) or (
            ["negate", "abs", "exponential", "tanh", "floor", "sine", "log", "logistic", "sqrt", "sign", "ceil"] if v[1] in FLOATS else ["negate", "not"])
        self.add(v[1], v[2], f"{self.r.choice(ops)}({v[0]})")

    def do_binary(self, _):
        v = self.pick()
        ops = {"pred": ["and", "or", "xor"], "c64": ["add", "multiply", "subtract"]}.get(v[1], ["add", "multiply", "subtract", "maximum", "minimum"])
        if v[1] in FLOATS:
            ops = [*ops, "divide"]
        args = [v[0], self.of(v[1], v[2])]
        self.r.shuffle(args)
        self.add(v[1], v[2], f"{self.r.choice(ops)}({', '.join(args)})")

    def do_compare(self, _):
        v = self.pick()
        directions = ["EQ", "NE"] if v[1] in ("c64", "pred") else ["EQ", "NE", "LT", "LE", "GT", "GE"]
        self.add("pred", v[2], f"compare({v[0]}, {self.of(v[1], v[2])}), direction={self.r.choice(directions)}")

    def do_select(self, _):
        v = self.pick()
        self.add(v[1], v[2], f"select({self.of('pred', v[2])}, {v[0]}, {self.of(v[1], v[2])})")

    def do_clamp(self, _):
        v = self.pick(FLOATS + INTS)
        if v:
            low, high = ((self.constant(v[1]), self.constant(v[1])) if self.r.random() < 0.5 else (self.of(v[1], v[2]), self.of(v[1], v[2])))
            self.add(v[1], v[2], f"clamp({low}, {v[0]}, {high})")

    def do_convert(self, _):
        v = self.pick(FLOATS + INTS + ("pred",))
        if v:
            to = self.r.choice(FLOATS if v[1] in FLOATS else FLOATS + INTS)
            self.add(to, v[2], f"convert({v[0]})")

    def do_iota(self, _):
        shape = self.shape()
        if shape:
            self.add(self.r.choice(["s32", "f32", "u8", "s64"]), shape, f"iota(), iota_dimension={self.r.randrange(len(shape))}")

    def do_broadcast(self, _):
        v = self.pick()
        shape, dims = list(v[2]), list(range(len(v[2])))
        for _ in range(self.r.randint(1, 2)):
            at = self.r.randint(0, len(shape))
            shape.insert(at, self.r.choice([1, 2, 3, 8, 40]))
            dims = [d + (d >= at) for d in dims]
        if len(shape) <= 4 and np.prod(shape, initial=1) <= 20_000:
            self.add(v[1], tuple(shape), f"broadcast({v[0]}), dimensions={{{','.join(map(str, dims))}}}")

    def do_reshape(self, _):
        v = self.pick()
        shape = list(v[2])
        if len(shape) >= 2 and self.r.random() < 0.5:
            i = self.r.randrange(len(shape) - 1)
            shape[i:i + 2] = [shape[i] * shape[i + 1]]
        else:
            shape.insert(self.r.randint(0, len(shape)), 1)
        self.add(v[1], tuple(shape), f"reshape({v[0]})")

    def do_transpose(self, _):
        v = self.pick(rank=2)
        if v:
            dims = list(range(len(v[2])))
            self.r.shuffle(dims)
            self.add(v[1], tuple(v[2][d] for d in dims), f"transpose({v[0]}), dimensions={{{','.join(map(str, dims))}}}")

    def do_reverse(self, _):
        v = self.pick(rank=1)
        if v:
            dims = self.r.sample(range(len(v[2])), self.r.randint(1, len(v[2])))
            self.add(v[1], v[2], f"reverse({v[0]}), dimensions={{{','.join(map(str, dims))}}}")

    def do_slice(self, _):
        v = self.pick(rank=1)
        if v:
            parts, shape = [], []
            for n in v[2]:
                low = self.r.randint(0, n)
                high, step = self.r.randint(low, n), self.r.choice([1, 1, 2, 3])
                parts.append(f"[{low}:{high}:{step}]")
                shape.append((high - low + step - 1) // step)
            self.add(v[1], tuple(shape), f"slice({v[0]}), slice={{{','.join(parts)}}}")

    def do_pad(self, _):
        v = self.pick(rank=1)
        if v:
            parts, shape = [], []
            for n in v[2]:
                low, high, inner = self.r.randint(-1 if n > 1 else 0, 2), self.r.randint(0, 2), self.r.choice([0, 0, 1])
                parts.append(f"{low}_{high}_{inner}")
                shape.append(low + high + n + max(0, n - 1) * inner)
            if min(shape) >= 0:
                self.add(v[1], tuple(shape), f"pad({v[0]}, {self.constant(v[1])}), padding={'x'.join(parts)}")

    def do_concatenate(self, _):
        v = self.pick(rank=1)
        if v:
            d = self.r.randrange(len(v[2]))
            other = self.of(v[1], v[2])
            shape = list(v[2])
            shape[d] *= 2
            self.add(v[1], tuple(shape), f"concatenate({v[0]}, {other}), dimensions={{{d}}}")

    def starts(self, n):
        return ", ".join(self.of("s32", ()) for _ in range(n))

    def do_dynamic_slice(self, _):
        v = self.pick(rank=1)
        if v:
            sizes = [self.r.randint(0 if n == 0 else 1, n) for n in v[2]]
            self.add(v[1], tuple(sizes), f"dynamic-slice({v[0]}, {self.starts(len(sizes))}), dynamic_slice_sizes={{{','.join(map(str, sizes))}}}")

    def do_dynamic_update(self, _):
        v = self.pick(rank=1)
        if v:
            sizes = tuple(self.r.randint(0 if n == 0 else 1, n) for n in v[2])
            self.add(v[1], v[2], f"dynamic-update-slice({v[0]}, {self.of(v[1], sizes)}, {self.starts(len(sizes))})")

    def combiner(self, t, op):
        if (t, op) not in self.combiners:
            self.combiners[t, op] = name = self.fresh("comb")
            self.helpers.append(f"{name} {{ a{name} = {t}[] parameter(0)\n  b{name} = {t}[] parameter(1)\n"
                                f"  ROOT r{name} = {t}[] {op}(a{name}, b{name}) }}")
        return self.combiners[t, op]

    def small_integers(self, t, shape):
        """Whose sums and products are exact in t."""
        s = self.of("s32", shape)
        low, high = self.emit("s32", (), "constant(-2)"), self.emit("s32", (), "constant(2)")
        return self.emit(t, shape, f"convert({self.emit('s32', shape, f'clamp({low}, {s}, {high})')})")

    def do_reduce(self, _):
        v = self.pick(FLOATS + INTS + ("pred",), rank=1)
        if not v:
            return
        dims = sorted(self.r.sample(range(len(v[2])), self.r.randint(1, len(v[2]))))
        kept = tuple(n for d, n in enumerate(v[2]) if d not in dims)
        op = self.r.choice(["and", "or", "xor"] if v[1] == "pred" else ["maximum", "minimum", "add"])
        name, init = v[0], self.constant(v[1])
        if v[1] in FLOATS:
            if v[1] in ("bf16", "f16") and op == "add":
                return
            if op == "add":
                name = self.small_integers(v[1], v[2])
        self.add(v[1], kept, f"reduce({name}, {init}), dimensions={{{','.join(map(str, dims))}}}, to_apply={self.combiner(v[1], op)}")

    def do_dot(self, _):
        t = self.r.choice(["f32", "f32", "f64", "s32"])
        m, k, n = (self.r.choice([1, 2, 3, 8, 17]) for _ in range(3))
        batch = self.r.choice([(), (), (2,)])
        a, b = batch + ((m, k) if self.r.random() < 0.5 else (k, m)), batch + ((k, n) if self.r.random() < 0.5 else (n, k))
        ca, cb = (len(batch) + (s[len(batch)] != k or (s is first and m == k and False)) for s, first in ((a, a), (b, a)))
        ca = len(a) - 1 if a[-1] == k else len(batch)
        cb = len(b) - 1 if b[-1] == k else len(batch)
        free = [s[len(batch)] if c == len(s) - 1 else s[-1] for s, c in ((a, ca), (b, cb))]
        with_batch = ", lhs_batch_dims={0}, rhs_batch_dims={0}" if batch else ""
        self.add(t, batch + tuple(free), f"dot({self.small_integers(t, a)}, {self.small_integers(t, b)}), lhs_contracting_dims={{{ca}}}, "
                 f"rhs_contracting_dims={{{cb}}}{with_batch}")

    def do_loop(self, depth):
        state = [self.r.choice(self.pool) for _ in range(self.r.randint(1, 3))]
        whole = f"({', '.join(['s32[]'] + [text(t, s) for _, t, s in state])})"
        step, cond, body, p = (self.fresh(s) for s in ("step", "cond", "body", "p"))
        self.helpers.append(f"{cond} {{ {p} = {whole} parameter(0)\n  {p}i = s32[] get-tuple-element({p}), index=0\n"
                            f"  {p}n = s32[] constant({self.r.randint(0, 5)})\n  ROOT {p}r = pred[] compare({p}i, {p}n), direction=LT }}")
        lines = [f"  {p}c = {whole} parameter(0)", f"  {p}j = s32[] get-tuple-element({p}c), index=0", f"  {p}one = s32[] constant(1)",
                 f"  {p}k = s32[] add({p}j, {p}one)"]
        parts = []
        for i, (_, t, s) in enumerate(state):
            lines.append(f"  {p}s{i} = {text(t, s)} get-tuple-element({p}c), index={i + 1}")
        for i, (_, t, s) in enumerate(state):
            name = self.fresh("calc")
            inner = self.computation(depth + 1, [("s32", ())] + [(u, w) for _, u, w in state], (t, s))
            self.helpers.append(f"{name} {{\n{inner}\n}}")
            lines.append(f"  {p}t{i} = {text(t, s)} call({p}j, {', '.join(f'{p}s{j}' for j in range(len(state)))}), to_apply={name}")
            parts.append(f"{p}t{i}" if self.r.random() < 0.9 else f"{p}s{i}")
        self.helpers.append(f"{body} {{\n" + "\n".join(lines) + f"\n  ROOT {step} = {whole} tuple({', '.join([f'{p}k'] + parts)})\n}}")
        zero = self.emit("s32", (), "constant(0)")
        start = self.fresh()
        self.lines.append(f"  {start} = {whole} tuple({', '.join([zero] + [n for n, _, _ in state])})")
        done = self.fresh()
        self.lines.append(f"  {done} = {whole} while({start}), condition={cond}, body={body}")
        for i, (_, t, s) in enumerate(state):
            self.add(t, s, f"get-tuple-element({done}), index={i + 1}")

    def do_branch(self, depth):
        v, (t, shape) = self.pick(), self.r.choice(self.pool)[1:]
        names = []
        for _ in range(self.r.randint(2, 3)):
            names.append(self.fresh("branch"))
            inner = self.computation(depth + 1, [v[1:]], (t, shape))
            self.helpers.append(f"{names[-1]} {{\n{inner}\n}}")
        index = self.of("s32", ())
        self.add(t, shape, f"conditional({index}, {', '.join([v[0]] * len(names))}), branch_computations={{{', '.join(names)}}}")
