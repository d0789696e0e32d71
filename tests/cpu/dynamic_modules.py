"""Random modules whose sizes only a run knows, agreeing or not; scalars beside arrays; CHLO on quantised tensors.

`Module(seed)` has `text`, `args` and `fails`: whether some op gets operands that do not fit together, which a run must say."""
import random

import numpy as np

NUMPY = {"f32": np.float32, "i32": np.int32, "i8": np.int8, "i1": np.bool_, "f64": np.float64, "i64": np.int64}
HLO = {"f32": "f32", "i32": "s32", "i8": "s8", "i1": "pred", "f64": "f64", "i64": "s64"}
BOUND = 40


class Module:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.args, self.params, self.lines, self.results, self.helpers = [], [], [], [], []
        self.n, self.fails = 0, False
        self.kind = self.r.choice(["unbounded", "unbounded", "unbounded", "bounded", "bounded", "scalars", "quantised"])
        getattr(self, self.kind)()

    # --- shared ---

    def fresh(self):
        self.n += 1
        return f"v{self.n}"

    def values(self, t, shape, low=-4, high=5):
        x = np.random.default_rng(self.r.randrange(1 << 30)).integers(low, high, shape)
        return np.asarray(x).astype(NUMPY[t])

    def sizes(self, disagree=0.3):
        """Two run-time sizes that should be the same."""
        n = self.r.choice([0, 1, 2, 3, 5, 17, 40])
        if self.r.random() >= disagree:
            return n, n
        other = self.r.choice([m for m in (0, 1, 2, 3, 5, 17, 40) if m != n])
        self.fails = True
        return n, other

    # --- StableHLO with "?" ---

    def param(self, t, shape, array, integers=None):
        """A parameter of `shape`, in which None is "?"."""
        name = f"%p{len(self.args)}"
        kind = f"tensor<{''.join('?x' if d is None else f'{d}x' for d in shape)}{t}>"
        self.params.append(f"{name}: {kind}")
        self.args.append(array)
        return name, kind

    def vector(self, n, t="f32"):
        return self.param(t, [None], self.values(t, n))

    def op(self, line, *types, name=None):
        """Adds "NAME = line" with a result of each type; all are given back."""
        v = "%" + self.fresh()
        self.lines.append(f"  {v}{f':{len(types)}' if len(types) > 1 else ''} = {line}")
        self.results += [(v if len(types) == 1 else f"{v}#{i}", t) for i, t in enumerate(types)]
        return v

    def unbounded(self):
        steps = [getattr(self, s) for s in sorted(dir(self)) if s.startswith("u_")]
        for _ in range(self.r.randint(1, 3)):
            self.r.choice(steps)()
        names, types = zip(*self.results)
        self.text = (f"func.func @main({', '.join(self.params)}) -> ({', '.join(types)}) {{\n" + "\n".join(self.lines) +
                     f"\n  func.return {', '.join(names)} : {', '.join(types)}\n}}")

    BODY2 = """({{
   ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
    %s = stablehlo.{0} %a, %c : tensor<f32>
    %t = stablehlo.{1} %b, %d : tensor<f32>
    stablehlo.return %s, %t : tensor<f32>, tensor<f32>
  }})"""
    ADD = "({\n   ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n    %s = stablehlo.add %a, %b : tensor<f32>\n    stablehlo.return %s : tensor<f32>\n  })"
    LESS2 = """({
   ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
    %s = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %s : tensor<i1>
  })"""
    GE = ("({\n   ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n    %s = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
          "    stablehlo.return %s : tensor<i1>\n  })")

    def two(self):
        n, m = self.sizes()
        (a, t), (b, _) = self.vector(n), self.vector(m)
        return a, b, t

    def zero(self):
        v = "%" + self.fresh()
        self.lines.append(f"  {v} = stablehlo.constant dense<0.0> : tensor<f32>")
        return v

    def u_elementwise(self):
        a, b, t = self.two()
        kind = self.r.choice(["add", "maximum", "compare", "select", "clamp", "complex"])
        if kind == "compare":
            self.op(f"stablehlo.compare LT, {a}, {b} : ({t}, {t}) -> tensor<?xi1>", "tensor<?xi1>")
        elif kind == "select":
            p, pt = self.param("i1", [], self.values("i1", (), 0, 2)) if self.r.random() < 0.3 else self.param(
                "i1", [None], self.values("i1", len(self.args[-2]), 0, 2))
            self.op(f"stablehlo.select {p}, {a}, {b} : {pt}, {t}", t)
        elif kind == "clamp":
            self.op(f"stablehlo.clamp {a}, {b}, {a} : {t}", t)
        elif kind == "complex":
            self.op(f"stablehlo.complex {a}, {b} : tensor<?xcomplex<f32>>", "tensor<?xcomplex<f32>>")
        else:
            self.op(f"stablehlo.{kind} {a}, {b} : {t}", t)

    def u_static_beside_open(self):
        n, m = self.sizes()
        (a, t), (b, u) = self.vector(n), self.param("f32", [m], self.values("f32", m))
        self.op(f"stablehlo.add {a}, {b} : ({t}, {u}) -> {t}", t)

    def u_result_of_a_static_type(self):
        n, m = self.sizes()
        a, t = self.vector(n)
        self.op(f"stablehlo.abs {a} : ({t}) -> tensor<{m}xf32>", f"tensor<{m}xf32>")

    def u_clamp_by_scalars(self):
        a, t = self.vector(self.r.randint(0, 9))
        low, high = self.zero(), self.param("f32", [], self.values("f32", ()))[0]
        self.op(f"stablehlo.clamp {low}, {a}, {high} : (tensor<f32>, {t}, tensor<f32>) -> {t}", t)

    def u_reduce(self):
        a, b, t = self.two()
        z = self.zero()
        self.op(f'"stablehlo.reduce"({a}, {b}, {z}, {z}) {self.BODY2.format("add", "maximum")} {{dimensions = array<i64: 0>}} : '
                f"({t}, {t}, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)", "tensor<f32>", "tensor<f32>")

    def u_sort(self):
        a, b, t = self.two()
        self.op(f'"stablehlo.sort"({a}, {b}) <{{dimension = 0 : i64, is_stable = true}}> {self.LESS2} : ({t}, {t}) -> ({t}, {t})', t, t)

    def u_reduce_window(self):
        a, b, t = self.two()
        z = self.zero()
        self.op(f'"stablehlo.reduce_window"({a}, {b}, {z}, {z}) {self.BODY2.format("add", "minimum")} {{window_dimensions = array<i64: 2>, '
                f"window_strides = array<i64: {self.r.randint(1, 3)}>}} : ({t}, {t}, tensor<f32>, tensor<f32>) -> ({t}, {t})", t, t)

    def u_map(self):
        a, b, t = self.two()
        self.op(f'"stablehlo.map"({a}, {b}) <{{dimensions = array<i64: 0>}}> {self.ADD} : ({t}, {t}) -> {t}', t)

    def u_scatter(self):
        n, m = self.sizes()
        a, t = self.vector(self.r.randint(1, 30))
        i, it = self.param("i32", [None, 1], self.values("i32", (n, 1), 0, 40))
        u, _ = self.vector(m)
        self.op(f'"stablehlo.scatter"({a}, {i}, {u}) <{{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], '
                f"scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> {self.ADD} : ({t}, {it}, {t}) -> {t}", t)

    def u_scatter_two(self):
        a, b, t = self.two()
        k = self.r.randint(0, 5)
        i, it = self.param("i32", [None, 1], self.values("i32", (k, 1), 0, 40))
        u, v = self.vector(k)[0], self.vector(k)[0]
        self.op(f'"stablehlo.scatter"({a}, {b}, {i}, {u}, {v}) <{{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], '
                f'scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> {self.BODY2.format("add", "add")} : ({t}, {t}, {it}, {t}, {t}) -> ({t}, {t})', t, t)

    def u_gather_by_vectors(self):
        parts = self.r.choice([2, 2, 1, 3])
        self.fails |= parts != 2
        a, t = self.param("f32", [None, None], self.values("f32", (9, 9)))
        i, it = self.param("i32", [None, None], self.values("i32", (5, parts), -2, 12))
        self.op(f'"stablehlo.gather"({a}, {i}) <{{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], '
                f"index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}}> : ({t}, {it}) -> tensor<?xf32>", "tensor<?xf32>")

    def u_gather_in_batches(self):
        n, m = self.sizes()
        if 0 in (n, m):
            n, m = n + 1, m + 1
        a, t = self.param("f32", [None, None], self.values("f32", (n, 7)))
        i, it = self.param("i32", [None, 1], self.values("i32", (m, 1), 0, 7))
        self.op(f'"stablehlo.gather"({a}, {i}) <{{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], '
                "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : "
                f"({t}, {it}) -> tensor<?xf32>", "tensor<?xf32>")

    def u_select_and_scatter(self):
        n, m = self.sizes()
        a, t = self.vector(2 * n)
        s, _ = self.vector(m)
        z = self.zero()
        self.op(f'"stablehlo.select_and_scatter"({a}, {s}, {z}) <{{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}}> '
                f"{self.GE}, {self.ADD} : ({t}, {t}, tensor<f32>) -> {t}".replace("}), ({", "}, {"), t)

    def u_dot(self):
        n, m = self.sizes()
        a, t = self.param("f32", [None, None], self.values("f32", (3, n)))
        b, u = self.param("f32", [None, None], self.values("f32", (m, 2)))
        self.op(f"stablehlo.dot_general {a}, {b}, contracting_dims = [1] x [0] : ({t}, {u}) -> tensor<?x?xf32>", "tensor<?x?xf32>")

    def u_concatenate(self):
        n, m = self.sizes()
        a, t = self.param("f32", [None, 2], self.values("f32", (n, 2)))
        b, u = self.param("f32", [None, 3], self.values("f32", (m, 3)))
        self.op(f"stablehlo.concatenate {a}, {b}, dim = 1 : ({t}, {u}) -> tensor<?x5xf32>", "tensor<?x5xf32>")

    def u_reshape(self):
        n, m = self.sizes()
        a, t = self.vector(n)
        to = self.r.choice([f"tensor<{m}xf32>", f"tensor<1x{m}xf32>"])
        self.op(f"stablehlo.reshape {a} : ({t}) -> {to}", to)

    def u_dynamic_reshape(self):
        n, m = self.sizes()
        a, t = self.vector(n)
        s, st = self.param("i32", [2], np.array([1, m], np.int32))
        self.op(f"stablehlo.dynamic_reshape {a}, {s} : ({t}, {st}) -> tensor<1x?xf32>", "tensor<1x?xf32>")

    def u_top_k(self):
        k, n = self.r.randint(1, 5), self.r.randint(0, 9)
        self.fails |= k > n
        a, t = self.vector(n)
        self.op(f"chlo.top_k({a}, k = {k}) : {t} -> (tensor<{k}xf32>, tensor<{k}xi32>)", f"tensor<{k}xf32>", f"tensor<{k}xi32>")

    def u_convolution(self):
        n, m = self.sizes(0.2)
        k = self.r.randint(0, 4)
        self.fails |= k == 0
        a, t = self.param("f32", [1, None, None], self.values("f32", (1, 9, n)))
        b, u = self.param("f32", [None, None, 2], self.values("f32", (k, m, 2)))
        self.op(f"stablehlo.convolution({a}, {b}) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{stride = [{self.r.randint(1, 2)}]}} "
                f"{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({t}, {u}) -> tensor<1x?x2xf32>", "tensor<1x?x2xf32>")

    def u_batch_norm(self):
        n, m = self.sizes()
        a, t = self.param("f32", [2, None], self.values("f32", (2, n)))
        s, u = self.vector(m)
        self.op(f'"stablehlo.batch_norm_training"({a}, {s}, {s}) <{{epsilon = 1.0 : f32, feature_index = 1 : i64}}> : ({t}, {u}, {u}) -> ({t}, {u}, {u})', t, u, u)

    def u_fft(self):
        before = self.fails
        n, m = self.sizes()
        if not m:  # a length of 0 is another matter
            self.fails, n, m = before, 3, 3
        a, t = self.param("f32", [None, None], self.values("f32", (2, n)))
        v = "%" + self.fresh()
        self.lines.append(f"  {v} = stablehlo.complex {a}, {a} : tensor<?x?xcomplex<f32>>")
        self.op(f"stablehlo.fft {v}, type = FFT, length = [{m}] : (tensor<?x?xcomplex<f32>>) -> tensor<?x?xcomplex<f32>>", "tensor<?x?xcomplex<f32>>")

    def u_broadcast(self):
        before = self.fails
        n, m = self.sizes()
        if 1 in (n, m):  # stretches
            self.fails = before
        (a, t), (b, _) = self.vector(n), self.vector(m)
        self.op(f"chlo.broadcast_{self.r.choice(['add', 'maximum'])} {a}, {b} : ({t}, {t}) -> {t}", t)

    def u_while(self):
        a, t = self.vector(self.r.randint(0, 9))
        self.op(f"""stablehlo.while(%i = {a}) : {t}
    cond {{
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %lim = stablehlo.constant dense<20.0> : tensor<f32>
      %m = stablehlo.reduce(%i init: %z) applies stablehlo.maximum across dimensions = [0] : ({t}, tensor<f32>) -> tensor<f32>
      %one = stablehlo.constant dense<1.0> : tensor<f32>
      %low = stablehlo.compare LT, %m, %lim : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %some = stablehlo.compare GE, %m, %one : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %c = stablehlo.and %low, %some : tensor<i1>
      stablehlo.return %c : tensor<i1>
    }} do {{
      %d = stablehlo.add %i, %i : {t}
      stablehlo.return %d : {t}
    }}""", t)

    # --- HLO with "<=" ---

    def bounded(self):
        n, m = self.sizes()
        self.args = [self.values("f32", BOUND), self.values("f32", BOUND), np.int32(n), np.int32(m), self.values("i32", (BOUND, 1), 0, BOUND)]
        steps = {
            "add": "r = f32[<=40] add(x, y)", "compare": "r = pred[<=40] compare(x, y), direction=LT",
            "reduce": "r = (f32[], f32[]) reduce(x, y, z, z), dimensions={0}, to_apply=both",
            "sort": "r = (f32[<=40], f32[<=40]) sort(x, y), dimensions={0}, to_apply=less",
            "window": "r = (f32[<=39], f32[<=39]) reduce-window(x, y, z, z), window={size=2}, to_apply=both",
            "map": "r = f32[<=40] map(x, y), dimensions={0}, to_apply=sum", "dot": "r = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
            "scatter": "r = f32[40] scatter(p, w, y), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                       "index_vector_dim=1, to_apply=sum",
            "choose": "r = f32[<=40] select-and-scatter(x, y, z), window={size=1}, select=ge, scatter=sum",
            "map_scalar": "q = f32[] constant(2)\n  s = f32[<=40] map(q, x), dimensions={0}, to_apply=sum\n  r = f32[<=40] add(s, y)"}
        step = self.r.choice(sorted(steps))
        self.text = f"""HloModule m
both {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  e = f32[] add(a, c)
  f = f32[] maximum(b, d)
  ROOT t = (f32[], f32[]) tuple(e, f)
}}
less {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT t = pred[] compare(a, b), direction=LT
}}
sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT t = f32[] add(a, b)
}}
ge {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT t = pred[] compare(a, b), direction=GE
}}
ENTRY e {{
  p = f32[40] parameter(0)
  p1 = f32[40] parameter(1)
  n = s32[] parameter(2)
  k = s32[] parameter(3)
  i = s32[40,1] parameter(4)
  z = f32[] constant(0)
  x = f32[<=40] set-dimension-size(p, n), dimensions={{0}}
  y = f32[<=40] set-dimension-size(p1, k), dimensions={{0}}
  w = s32[<=40,1] set-dimension-size(i, n), dimensions={{0}}
  ROOT {steps[step]}
}}"""
        if step == "map_scalar":
            self.text = self.text.replace("ROOT q", "q").replace("  r = f32", "  ROOT r = f32")

    # --- scalars beside arrays ---

    def scalars(self):
        t = self.r.choice(sorted(NUMPY))
        h, shape = HLO[t], tuple(self.r.choice([1, 3, 8, 70, 1500]) for _ in range(self.r.randint(1, 2)))
        full = f"{h}[{','.join(map(str, shape))}]"
        op = self.r.choice(["and", "or"] if t == "i1" else ["subtract", "add", "maximum"])
        n = self.r.randint(2, 4)
        kinds = [self.r.random() < 0.5 for _ in range(n)]
        kinds[self.r.randrange(n)] = True
        self.args = [self.values(t, shape if k else (), 0, 5) for k in kinds]
        body = "\n".join(f"  a{i} = {h}[] parameter({i})" for i in range(n))
        last = "a0"
        for i in range(1, n):
            body += f"\n  {'ROOT ' if i == n - 1 else ''}t{i} = {h}[] {op}({last}, a{i})"
            last = f"t{i}"
        params = "\n".join(f"  p{i} = {full if k else h + '[]'} parameter({i})" for i, k in enumerate(kinds))
        dims = ",".join(map(str, range(len(shape))))
        low, high = self.r.choice([("p0", "p1"), (f"p{kinds.index(True)}", "p0")])
        use = f"  c = {full} clamp({low}, m, {high})" if t != "i1" else f"  c = {full} select(p{kinds.index(True)}, m, m)"
        self.text = (f"HloModule m\nf {{\n{body}\n}}\nENTRY e {{\n{params}\n  m = {full} map({', '.join(f'p{i}' for i in range(n))}), dimensions={{{dims}}}, "
                     f"to_apply=f\n{use}\n  ROOT r = ({full}, {full}) tuple(m, c)\n}}")

    # --- CHLO on quantised tensors ---

    def quantised(self):
        def q():
            return f"!quant.uniform<i8:f32, {self.r.choice(['2.0', '3.0', '0.5', '0.25'])}:{self.r.randint(-20, 20)}>"
        a, c = q(), q()
        n, m = self.r.randint(1, 9), self.r.randint(1, 4)
        op = self.r.choice(["add", "subtract", "multiply", "maximum", "minimum", "divide", "compare"])
        several = op in ("add", "maximum", "minimum")  # StableHLO lets the others have one type only
        b, c = (q(), c) if several else (a, a)
        short = self.r.random() < 0.5
        self.args = [self.values("i8", (m, n), -100, 100), self.values("i8", n if short else (m, n), 30 if op == "divide" else -100, 100)]
        x, y = f"tensor<{m}x{n}x{a}>", f"tensor<{n if short else f'{m}x{n}'}x{b}>"
        if op == "compare":
            out = f"tensor<{m}x{n}xi1>"
            line = f'"chlo.broadcast_compare"(%x, %y) {{comparison_direction = #chlo<comparison_direction LT>}} : ({x}, {y}) -> {out}'
        else:
            out = f"tensor<{m}x{n}x{c}>"
            line = f'"chlo.broadcast_{op}"(%x, %y) : ({x}, {y}) -> {out}'
        self.text = f"func.func @main(%x: {x}, %y: {y}) -> {out} {{\n  %0 = {line}\n  func.return %0 : {out}\n}}"
