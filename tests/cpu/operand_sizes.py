"""Random programs of ops of several operands whose sizes are known at run time only, each operand's for itself: StableHLO with `?`, HLO
with set-dimension-size; scalars beside arrays; quantised CHLO. Most calls fit; in some one operand has another size, which every
engine has to refuse."""
import random

import numpy as np

ADD = "stablehlo.add"


class Program:
    """`text`, and `args` for one call of it."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.size = self.r.choice([0, 1, 2, 3, 5, 8])
        self.args = []
        self.kind = self.r.choice(KINDS)
        self.text = getattr(self, self.kind)()

    def sizes(self, n):
        """n run-time sizes: the same, or one of them another one."""
        sizes = [self.size] * n
        if self.r.random() < 0.4:
            sizes[self.r.randrange(n)] = self.r.choice([0, 1, 4, 9, 300])
        return sizes

    def floats(self, *shape):
        self.args.append(np.random.default_rng(self.r.randrange(1 << 30)).integers(-8, 9, shape).astype(np.float32))

    def indices(self, limit, *shape):
        self.args.append(np.random.default_rng(self.r.randrange(1 << 30)).integers(-1, limit + 1, shape).astype(np.int32))

    def region(self, op, n):
        """Of two times n scalars: (accumulators, values) or, for sort, pairs."""
        params = ", ".join(f"%{x}{i}: tensor<f32>" for x in "ab" for i in range(n))
        lines = "\n".join(f"    %c{i} = {op} %a{i}, %b{i} : tensor<f32>" for i in range(n))
        return f"({{\n  ^bb0({params}):\n{lines}\n    stablehlo.return {', '.join(f'%c{i}' for i in range(n))} : {', '.join(['tensor<f32>'] * n)}\n  }})"

    def main(self, types, body, results):
        """A module whose main takes %p0.. of `types`, runs the lines of `body` and returns %r#0.. of `results`."""
        params = ", ".join(f"%p{i}: {t}" for i, t in enumerate(types))
        names = ", ".join(f"%r#{i}" for i in range(len(results)))
        return f"func.func @main({params}) -> ({', '.join(results)}) {{\n  {body}\n  return {names} : {', '.join(results)}\n}}"

    def listed(self, n, at=0):
        return ", ".join(f"%p{i + at}" for i in range(n))

    # --- StableHLO ---

    def reduce(self):
        n, tail = self.r.randint(1, 3), self.r.choice(["", "x2"])
        for size in self.sizes(n):
            self.floats(*[size, 2][:1 + bool(tail)])
        types, results = [f"tensor<?{tail}xf32>"] * n, [f"tensor<{tail[1:] + 'x' if tail else ''}f32>"] * n
        zeros = ", ".join(["%z"] * n)
        return self.main(types, f"%z = stablehlo.constant dense<0.0> : tensor<f32>\n  %r:{n} = \"stablehlo.reduce\"({self.listed(n)}, {zeros}) "
                         f"{self.region(ADD, n)} {{dimensions = array<i64: 0>}} : ({', '.join(types + ['tensor<f32>'] * n)}) -> ({', '.join(results)})", results)

    def reduce_window(self):
        n = self.r.randint(1, 2)
        for size in self.sizes(n):
            self.floats(size)
        types = ["tensor<?xf32>"] * n
        return self.main(types, f"%z = stablehlo.constant dense<0.0> : tensor<f32>\n  %r:{n} = \"stablehlo.reduce_window\"({self.listed(n)}, "
                         f"{', '.join(['%z'] * n)}) {self.region(ADD, n)} {{window_dimensions = array<i64: 2>}} : "
                         f"({', '.join(types + ['tensor<f32>'] * n)}) -> ({', '.join(types)})", types)

    def sort(self):
        n = self.r.randint(1, 3)
        for size in self.sizes(n):
            self.floats(size)
        types = ["tensor<?xf32>"] * n
        params = ", ".join(f"%a{i}: tensor<f32>, %b{i}: tensor<f32>" for i in range(n))
        return self.main(types, f"%r:{n} = \"stablehlo.sort\"({self.listed(n)}) <{{dimension = 0 : i64, is_stable = true}}> ({{\n  ^bb0({params}):\n"
                         "    %c = stablehlo.compare LT, %a0, %b0 : (tensor<f32>, tensor<f32>) -> tensor<i1>\n    stablehlo.return %c : tensor<i1>\n  }) : "
                         f"({', '.join(types)}) -> ({', '.join(types)})", types)

    def scatter(self):
        n = self.r.randint(1, 2)
        for size in self.sizes(n):
            self.floats(size)
        index, *updates = self.sizes(n + 1)
        self.indices(max(self.size, 1), index, 1)
        for size in updates:
            self.floats(size)
        vector = "tensor<?xf32>"
        types = [vector] * n + ["tensor<?x1xi32>"] + [vector] * n
        return self.main(types, f"%r:{n} = \"stablehlo.scatter\"({self.listed(2 * n + 1)}) <{{scatter_dimension_numbers = #stablehlo.scatter<"
                         "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> "
                         f"{self.region(ADD, n)} : ({', '.join(types)}) -> ({', '.join([vector] * n)})", [vector] * n)

    def gather(self):
        self.floats(5, 4)
        self.indices(4, self.size, self.r.choice([2, 2, 1, 3]))
        return self.main(["tensor<5x4xf32>", "tensor<?x?xi32>"], "%r:1 = \"stablehlo.gather\"(%p0, %p1) <{dimension_numbers = #stablehlo.gather<"
                         "collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : "
                         "(tensor<5x4xf32>, tensor<?x?xi32>) -> tensor<?xf32>", ["tensor<?xf32>"])

    def convolution(self):
        self.floats(1, self.size + 3, 2)
        self.floats(self.r.choice([1, 2, 3]), 2, 4)
        types = ["tensor<1x?x2xf32>", "tensor<?x2x4xf32>"]
        return self.main(types, "%r:1 = \"stablehlo.convolution\"(%p0, %p1) <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, "
                         "feature_group_count = 1 : i64, batch_group_count = 1 : i64}> : "
                         f"({', '.join(types)}) -> tensor<1x?x4xf32>", ["tensor<1x?x4xf32>"])

    def elementwise(self):
        op = self.r.choice(["add", "maximum", "divide", "power"])
        for size in self.sizes(2):
            self.floats(size)
        types = ["tensor<?xf32>"] * 2
        return self.main(types, f"%r:1 = \"stablehlo.{op}\"(%p0, %p1) : ({', '.join(types)}) -> tensor<?xf32>", ["tensor<?xf32>"])

    def concatenate(self):
        first, second = self.sizes(2)
        self.floats(first, 3)
        self.floats(second, 2)
        return self.main(["tensor<?x3xf32>", "tensor<?x2xf32>"], "%r:1 = \"stablehlo.concatenate\"(%p0, %p1) <{dimension = 1 : i64}> : "
                         "(tensor<?x3xf32>, tensor<?x2xf32>) -> tensor<?x5xf32>", ["tensor<?x5xf32>"])

    def dot(self):
        left, right = self.sizes(2)
        self.floats(2, left)
        self.floats(right, 3)
        return self.main(["tensor<2x?xf32>", "tensor<?x3xf32>"], "%r:1 = \"stablehlo.dot\"(%p0, %p1) : (tensor<2x?xf32>, tensor<?x3xf32>) -> tensor<2x3xf32>",
                         ["tensor<2x3xf32>"])

    def reshape(self):
        self.floats(self.size, 2)
        to = self.r.choice([2 * self.size, 2 * self.size, 6, 7])
        return self.main(["tensor<?x2xf32>"], f"%r:1 = \"stablehlo.reshape\"(%p0) : (tensor<?x2xf32>) -> tensor<{to}xf32>", [f"tensor<{to}xf32>"])

    def top_k(self):
        self.floats(self.size)
        return self.main(["tensor<?xf32>"], "%r:2 = \"chlo.top_k\"(%p0) {k = 2 : i64} : (tensor<?xf32>) -> (tensor<2xf32>, tensor<2xi32>)",
                         ["tensor<2xf32>", "tensor<2xi32>"])

    def broadcast(self):
        op = self.r.choice(["add", "maximum", "multiply"])
        for size in self.sizes(2):
            self.floats(size)
        types = ["tensor<?xf32>"] * 2
        return self.main(types, f"%r:1 = \"chlo.broadcast_{op}\"(%p0, %p1) : ({', '.join(types)}) -> tensor<?xf32>", ["tensor<?xf32>"])

    def quantised(self):
        op, scales = self.r.choice(["add", "maximum", "minimum", "multiply"]), [self.r.choice(["2.0:15", "3.0:15", "0.5:-3"]) for _ in range(3)]
        a, b, c = (f"tensor<4x!quant.uniform<i8:f32, {s}>>" for s in scales)
        for _ in range(2):
            self.args.append(np.random.default_rng(self.r.randrange(1 << 30)).integers(-40, 40, 4).astype(np.int8))
        return self.main([a, b], f"%r:1 = \"chlo.broadcast_{op}\"(%p0, %p1) : ({a}, {b}) -> {c}", [c])

    # --- HLO ---

    def sized(self, helpers, lines, result, op):
        n, k = (min(s, 8) for s in self.sizes(2))
        self.floats(8)
        self.floats(8)
        self.args += [np.int32(n), np.int32(k)]
        return (f"HloModule m\n{helpers}\nENTRY e {{\n  p = f32[8] parameter(0)\n  q = f32[8] parameter(1)\n  n = s32[] parameter(2)\n"
                "  k = s32[] parameter(3)\n  z = f32[] constant(0)\n  x = f32[<=8] set-dimension-size(p, n), dimensions={0}\n"
                f"  y = f32[<=8] set-dimension-size(q, k), dimensions={{0}}\n{lines}  ROOT r = {result} {op}\n}}")

    PAIR = ("two {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = f32[] parameter(2)\n  d = f32[] parameter(3)\n"
            "  x = f32[] add(a, c)\n  y = f32[] maximum(b, d)\n  ROOT t = (f32[], f32[]) tuple(x, y)\n}")
    LESS = ("lt {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = f32[] parameter(2)\n  d = f32[] parameter(3)\n"
            "  ROOT x = pred[] compare(a, b), direction=LT\n}")
    SUM = "one {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}"

    def sized_reduce(self):
        return self.sized(self.PAIR, "", "(f32[], f32[])", "reduce(x, y, z, z), dimensions={0}, to_apply=two")

    def sized_reduce_window(self):
        return self.sized(self.PAIR, "", "(f32[<=7], f32[<=7])", "reduce-window(x, y, z, z), window={size=2}, to_apply=two")

    def sized_sort(self):
        return self.sized(self.LESS, "", "(f32[<=8], f32[<=8])", "sort(x, y), dimensions={0}, to_apply=lt")

    def sized_scatter(self):
        lines = "  i = s32[8,1] iota(), iota_dimension=0\n  w = s32[<=8,1] set-dimension-size(i, n), dimensions={0}\n"
        return self.sized(self.SUM, lines, "f32[8]", "scatter(p, w, y), update_window_dims={}, inserted_window_dims={0}, "
                          "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=one")

    def map(self):
        n, scalar = self.r.choice([1, 3, 40]), self.r.randrange(3)
        types = [f"f32[{n}]", f"f32[{n}]"]
        if scalar < 2:
            types[scalar] = "f32[]"
        for t in types:
            self.floats(*([n] if t != "f32[]" else []))
        return (f"HloModule m\n{self.SUM}\nENTRY e {{\n  x = {types[0]} parameter(0)\n  y = {types[1]} parameter(1)\n"
                f"  ROOT r = f32[{n}] map(x, y), dimensions={{0}}, to_apply=one\n}}")


KINDS = [name for name in vars(Program) if not name.startswith("_") and name.islower()
         and name not in ("sizes", "floats", "indices", "region", "main", "listed", "sized")]
