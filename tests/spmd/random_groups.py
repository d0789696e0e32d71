"""Random programs with random shardings, run on the devices of a group beside the same program without shardings.

  python tests/spmd/random_groups.py FIRST LAST [unreduced]   # programs by their numbers; exits 1 where one is wrong or refused

With `unreduced`, shardings also leave axes to be added up."""
import collections
import random
import re
import sys

import numpy as np

import xlac

MESHES = [(("a", 2),), (("a", 2), ("b", 2)), (("a", 4), ("b", 2)), (("a", 2), ("b", 2), ("c", 2))]
SIZES = [1, 2, 3, 4, 4, 6, 8, 8]
UNARY = ["abs", "negate", "tanh", "cosine", "sign", "floor"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum"]
REDUCERS = [("add", "0.0"), ("maximum", "0xFF800000"), ("minimum", "0x7F800000"), ("multiply", "1.0"), ("add", "2.0"), ("maximum", "0.5")]


def tensor(shape, dtype="f32"):
    return f"tensor<{''.join(f'{d}x' for d in shape)}{dtype}>"


class Program:
    """Lines of @main, and the values that there are so far: name and shape, all of f32."""

    def __init__(self, seed, unreduced=False):
        self.r, self.unreduced = random.Random(seed), unreduced
        self.mesh = self.r.choice(MESHES)
        self.lines, self.values, self.n = [], [], 0
        self.arguments = [(f"%arg{i}", self.shape()) for i in range(self.r.randint(1, 3))]
        self.values += self.arguments

    def shape(self, rank=None):
        return tuple(self.r.choice(SIZES) for _ in range(self.r.randint(0, 3) if rank is None else rank))

    def name(self):
        self.n += 1
        return f"%v{self.n}"

    def sharding(self, shape):
        """Axes, whole or in part, on dimensions that may not divide."""
        axes = [f'"{name}"' for name, _ in self.mesh]
        if self.r.random() < 0.2:
            axes = [x for name, size in self.mesh for x in ([f'"{name}":(1)2', f'"{name}":(2)2'] if size == 4 else [f'"{name}"'])]
        self.r.shuffle(axes)
        dims = [[] for _ in shape]
        for axis in axes:
            if dims and self.r.random() < 0.6:
                self.r.choice(dims).append(axis)
        for dim in dims:  # neighbouring sub-axes of one axis would be one axis
            if len(dim) > 1 and any(":" in x for x in dim):
                del dim[1:]
        free = [axis for axis in sorted(axes) if not any(axis.split(":")[0] in used for dim in dims for used in dim) and ":" not in axis]
        parts = [axis for axis in free if self.r.random() < 0.4] if self.unreduced else []
        return "[" + ", ".join("{" + ", ".join(dim) + (", ?" if dim else "?") * self.r.randint(0, 1) + "}" for dim in dims) + "]" + \
            (f", unreduced={{{', '.join(parts)}}}" if parts else "")

    def pick(self, rank=None):
        found = [v for v in self.values if rank is None or len(v[1]) >= rank]
        if not found:
            shape = self.shape(rank)
            return self.put(shape, f"stablehlo.constant dense<{self.r.randint(-3, 3)}.0> : {tensor(shape)}")
        return self.r.choice(found[-6:])

    def put(self, shape, line):
        name = self.name()
        self.lines.append(f"{name} = {line}")
        if self.r.random() < 0.3:
            other = self.name()
            op = self.r.choice(["sharding_constraint", "sharding_constraint", "reshard"])
            self.lines.append(f"{other} = sdy.{op} {name} <@mesh, {self.sharding(shape) if op == 'sharding_constraint' else self.sharding(shape).replace(', ?', '').replace('?', '')}> : {tensor(shape)}")
            name = other
        self.values.append((name, shape))
        return name, shape

    def alike(self, shape):
        """A value of that shape: one that is there, or a new one."""
        found = [v for v in self.values if v[1] == shape]
        if found and self.r.random() < 0.7:
            return self.r.choice(found)
        if self.values and self.r.random() < 0.5:
            x, dims = self.pick()
            at = [d for d in range(len(shape))]
            self.r.shuffle(at)
            at = sorted(at[:len(dims)])
            if len(at) == len(dims) and all(n in (1, shape[d]) for n, d in zip(dims, at)):
                return self.put(shape, f"stablehlo.broadcast_in_dim {x}, dims = {at} : ({tensor(dims)}) -> {tensor(shape)}")
        if shape:
            return self.put(shape, f"stablehlo.iota dim = {self.r.randrange(len(shape))} : {tensor(shape)}")
        return self.put(shape, f"stablehlo.constant dense<{self.r.randint(-3, 3)}.0> : {tensor(shape)}")

    # --- a method an op ---

    def unary(self):
        x, shape = self.pick()
        self.put(shape, f"stablehlo.{self.r.choice(UNARY)} {x} : {tensor(shape)}")

    def binary(self):
        x, shape = self.pick()
        y, _ = self.alike(shape)
        self.put(shape, f"stablehlo.{self.r.choice(BINARY)} {x}, {y} : {tensor(shape)}")

    def select(self):
        x, shape = self.pick()
        y, _ = self.alike(shape)
        p = self.name()
        self.lines.append(f"{p} = stablehlo.compare GT, {x}, {y} : ({tensor(shape)}, {tensor(shape)}) -> {tensor(shape, 'i1')}")
        self.put(shape, f"stablehlo.select {p}, {x}, {y} : {tensor(shape, 'i1')}, {tensor(shape)}")

    def transpose(self):
        x, shape = self.pick()
        order = list(range(len(shape)))
        self.r.shuffle(order)
        to = tuple(shape[d] for d in order)
        self.put(to, f"stablehlo.transpose {x}, dims = {order} : ({tensor(shape)}) -> {tensor(to)}")

    def reshape(self):
        x, shape = self.pick()
        sizes = [f for d in shape for f in ([2, d // 2] if d % 2 == 0 and self.r.random() < 0.5 else [d])]
        to = []
        for d in sizes:
            if to and self.r.random() < 0.4:
                to[-1] *= d
            else:
                to.append(d)
        to = tuple(to)[:6]
        if int(np.prod(to)) == int(np.prod(shape)):
            self.put(to, f"stablehlo.reshape {x} : ({tensor(shape)}) -> {tensor(to)}")

    def reduce(self):
        x, shape = self.pick(1)
        dims = sorted(self.r.sample(range(len(shape)), self.r.randint(1, len(shape))))
        op, init = self.r.choice(REDUCERS)
        to = tuple(n for d, n in enumerate(shape) if d not in dims)
        z = self.name()
        self.lines.append(f"{z} = stablehlo.constant dense<{init}> : tensor<f32>")
        self.put(to, f"stablehlo.reduce({x} init: {z}) applies stablehlo.{op} across dimensions = {dims} : ({tensor(shape)}, tensor<f32>) -> {tensor(to)}")

    def dot(self):
        x, a = self.pick(1)
        c = self.r.randrange(len(a))
        batch = [d for d in range(len(a)) if d != c and self.r.random() < 0.3]
        b = tuple(a[d] for d in batch) + (a[c],) + self.shape(self.r.randint(0, 1))
        y, _ = self.alike(b)
        to = tuple(a[d] for d in batch) + tuple(n for d, n in enumerate(a) if d != c and d not in batch) + b[len(batch) + 1:]
        batching = f"batching_dims = {batch} x {list(range(len(batch)))}, " if batch else ""
        self.put(to, f"stablehlo.dot_general {x}, {y}, {batching}contracting_dims = [{c}] x [{len(batch)}] : ({tensor(a)}, {tensor(b)}) -> {tensor(to)}")

    def concatenate(self):
        x, shape = self.pick(1)
        d = self.r.randrange(len(shape))
        other = shape[:d] + (self.r.choice(SIZES),) + shape[d + 1:]
        y, _ = self.alike(other)
        to = shape[:d] + (shape[d] + other[d],) + shape[d + 1:]
        self.put(to, f"stablehlo.concatenate {x}, {y}, dim = {d} : ({tensor(shape)}, {tensor(other)}) -> {tensor(to)}")

    def slice(self):
        x, shape = self.pick()
        parts, to = [], []
        for n in shape:
            low = self.r.randint(0, n // 2) if self.r.random() < 0.5 else 0
            high = self.r.randint(low + 1, n) if self.r.random() < 0.5 else n
            step = self.r.randint(1, 2)
            parts.append(f"{low}:{high}:{step}")
            to.append((high - low + step - 1) // step)
        self.put(tuple(to), f"stablehlo.slice {x} [{', '.join(parts)}] : ({tensor(shape)}) -> {tensor(to)}")

    def pad(self):
        x, shape = self.pick(1)
        low = [self.r.choice([0, 0, 1, 2]) for _ in shape]
        high = [self.r.choice([0, 0, 1, -1 if n > 1 else 0]) for n in shape]
        inside = [self.r.choice([0, 0, 1]) for _ in shape]
        to = tuple(n + a + b + (n - 1) * i for n, a, b, i in zip(shape, low, high, inside))
        if min(to) <= 0 or max(to) > 40:
            return
        z = self.name()
        self.lines.append(f"{z} = stablehlo.constant dense<1.5> : tensor<f32>")
        self.put(to, f"stablehlo.pad {x}, {z}, low = {low}, high = {high}, interior = {inside} : ({tensor(shape)}, tensor<f32>) -> {tensor(to)}")

    def reverse(self):
        x, shape = self.pick(1)
        dims = sorted(self.r.sample(range(len(shape)), self.r.randint(1, len(shape))))
        self.put(shape, f"stablehlo.reverse {x}, dims = {dims} : {tensor(shape)}")

    def sort(self):
        x, shape = self.pick(1)
        d = self.r.randrange(len(shape))
        self.put(shape, f'"stablehlo.sort"({x}) ({{ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n'
                 f"stablehlo.return %c : tensor<i1> }}) {{dimension = {d} : i64, is_stable = true}} : ({tensor(shape)}) -> {tensor(shape)}")

    def scan(self):
        x, shape = self.pick(1)
        d = self.r.randrange(len(shape))
        windows, padding = [1] * len(shape), [[0, 0] for _ in shape]
        windows[d], padding[d] = shape[d], [shape[d] - 1, 0]
        z = self.name()
        self.lines.append(f"{z} = stablehlo.constant dense<0.0> : tensor<f32>")
        self.put(shape, f'"stablehlo.reduce_window"({x}, {z}) ({{ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %c = stablehlo.add %a, %b : tensor<f32>\n'
                 f"stablehlo.return %c : tensor<f32> }}) {{window_dimensions = array<i64: {', '.join(map(str, windows))}>, "
                 f"padding = dense<{padding}> : tensor<{len(shape)}x2xi64>}} : ({tensor(shape)}, tensor<f32>) -> {tensor(shape)}")

    def window(self):
        x, shape = self.pick(1)
        windows = [min(n, self.r.choice([1, 1, 2, 3])) for n in shape]
        strides = [self.r.choice([1, 1, 2]) for _ in shape]
        to = tuple((n - w) // s + 1 for n, w, s in zip(shape, windows, strides))
        z = self.name()
        self.lines.append(f"{z} = stablehlo.constant dense<0xFF800000> : tensor<f32>")
        self.put(to, f'"stablehlo.reduce_window"({x}, {z}) ({{ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %c = stablehlo.maximum %a, %b : tensor<f32>\n'
                 f"stablehlo.return %c : tensor<f32> }}) {{window_dimensions = array<i64: {', '.join(map(str, windows))}>, "
                 f"window_strides = array<i64: {', '.join(map(str, strides))}>}} : ({tensor(shape)}, tensor<f32>) -> {tensor(to)}")

    def indices(self, n, most):
        name = self.name()
        self.lines.append(f"{name} = stablehlo.constant dense<{[[self.r.randint(0, most)] for _ in range(n)]}> : tensor<{n}x1xi32>")
        return name

    def gather(self):
        x, shape = self.pick(1)
        d, n = self.r.randrange(len(shape)), self.r.choice(SIZES)
        i = self.indices(n, shape[d] - 1)
        rest = shape[:d] + shape[d + 1:]
        to = (n, *rest)
        sizes = ", ".join("1" if k == d else str(m) for k, m in enumerate(shape))
        self.put(to, f'"stablehlo.gather"({x}, {i}) {{dimension_numbers = #stablehlo.gather<offset_dims = {list(range(1, len(shape)))}, collapsed_slice_dims = [{d}], '
                 f"start_index_map = [{d}], index_vector_dim = 1>, slice_sizes = array<i64: {sizes}>}} : ({tensor(shape)}, tensor<{n}x1xi32>) -> {tensor(to)}")

    def scatter(self):
        x, shape = self.pick(1)
        d, n = self.r.randrange(len(shape)), self.r.choice(SIZES)
        i = self.indices(n, shape[d])
        u, updates = self.alike((n, *shape[:d], *shape[d + 1:]))
        op = self.r.choice(["add", "maximum", "minimum", "multiply"])
        self.put(shape, f'"stablehlo.scatter"({x}, {i}, {u}) ({{ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %c = stablehlo.{op} %a, %b : tensor<f32>\n'
                 f"stablehlo.return %c : tensor<f32> }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {list(range(1, len(shape)))}, "
                 f"inserted_window_dims = [{d}], scatter_dims_to_operand_dims = [{d}], index_vector_dim = 1>}} : ({tensor(shape)}, tensor<{n}x1xi32>, {tensor(updates)}) -> {tensor(shape)}")

    def starts(self, shape):
        names = []
        for n in shape:
            names.append(self.name())
            self.lines.append(f"{names[-1]} = stablehlo.constant dense<{self.r.randint(0, n)}> : tensor<i32>")
        return ", ".join(names)

    def dynamic_slice(self):
        x, shape = self.pick(1)
        to = tuple(self.r.choice([n, self.r.randint(1, n)]) for n in shape)
        starts = self.starts(shape)
        self.put(to, f"stablehlo.dynamic_slice {x}, {starts}, sizes = {list(to)} : ({tensor(shape)}, {', '.join(['tensor<i32>'] * len(shape))}) -> {tensor(to)}")

    def dynamic_update_slice(self):
        x, shape = self.pick(1)
        part = tuple(self.r.choice([n, self.r.randint(1, n)]) for n in shape)
        u, _ = self.alike(part)
        starts = self.starts(shape)
        self.put(shape, f"stablehlo.dynamic_update_slice {x}, {u}, {starts} : ({tensor(shape)}, {tensor(part)}, {', '.join(['tensor<i32>'] * len(shape))}) -> {tensor(shape)}")

    def convolution(self):
        n, h, c, f, k = (self.r.choice([2, 4]) for _ in range(5))
        h *= 2
        groups = self.r.choice([1, 1, 2])
        x, _ = self.alike((n, h, c))
        w, _ = self.alike((k, c // groups, f))
        low, high, stride = self.r.randint(0, 1), self.r.randint(0, 1), self.r.randint(1, 2)
        to = (n, (h + low + high - k) // stride + 1, f)
        self.put(to, f"stablehlo.convolution({x}, {w}) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{stride = [{stride}], pad = [[{low}, {high}]]}} "
                 f"{{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} : ({tensor((n, h, c))}, {tensor((k, c // groups, f))}) -> {tensor(to)}")

    def loop(self):
        x, shape = self.pick()
        y, _ = self.alike(shape)
        c = self.name()
        self.lines.append(f"{c} = stablehlo.constant dense<0> : tensor<i32>")
        r = self.name()
        op = self.r.choice(["add", "maximum", "subtract"])
        self.lines.append(f"""{r}:3 = stablehlo.while(%i = {c}, %p = {x}, %q = {y}) : tensor<i32>, {tensor(shape)}, {tensor(shape)}
  cond {{ %n = stablehlo.constant dense<3> : tensor<i32>
    %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  }} do {{ %o = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %o : tensor<i32>
    %s = stablehlo.{op} %p, %q : {tensor(shape)}
    stablehlo.return %j, %q, %s : tensor<i32>, {tensor(shape)}, {tensor(shape)}
  }}""")
        self.values += [(f"{r}#1", shape), (f"{r}#2", shape)]

    def branch(self):
        x, shape = self.pick()
        p = self.name()
        self.lines.append(f"{p} = stablehlo.constant dense<{self.r.choice(['true', 'false'])}> : tensor<i1>")
        self.put(shape, f'"stablehlo.if"({p}) ({{ %s = stablehlo.add {x}, {x} : {tensor(shape)}\n stablehlo.return %s : {tensor(shape)} }}, {{ stablehlo.return {x} : {tensor(shape)} }}) '
                 f": (tensor<i1>) -> {tensor(shape)}")

    OPS = ["unary", "binary", "binary", "select", "transpose", "reshape", "reduce", "reduce", "dot", "dot", "concatenate", "slice", "pad", "reverse", "sort", "scan", "window",
           "gather", "scatter", "dynamic_slice", "dynamic_update_slice", "convolution", "loop", "branch"]

    def text(self):
        for _ in range(self.r.randint(3, 12)):
            getattr(self, self.r.choice(self.OPS))()
        results = [self.values[-1], *self.r.sample(self.values, min(2, len(self.values)))]
        mesh = ", ".join(f'"{name}"={size}' for name, size in self.mesh)

        def declared(shape):
            s = f" {{sdy.sharding = #sdy.sharding<@mesh, {self.sharding(shape)}>}}" if self.r.random() < 0.7 else ""
            return tensor(shape) + s
        arguments = ", ".join(f"{name}: {declared(shape)}" for name, shape in self.arguments)
        out = ", ".join(declared(shape) for _, shape in results)
        body = "\n".join(self.lines)
        return (f"sdy.mesh @mesh = <[{mesh}]>\nfunc.func @main({arguments}) -> ({out}) {{\n{body}\n"
                f"return {', '.join(name for name, _ in results)} : {', '.join(tensor(shape) for _, shape in results)}\n}}")


def plain(text):
    """Without shardings: what only says them is its operand."""
    text = re.sub(r"sdy\.(?:sharding_constraint|reshard) (%\S+) <.*> : (tensor\S+)", r"stablehlo.reshape \1 : (\2) -> \2", text)
    text = re.sub(r" \{sdy\.sharding = #sdy\.sharding<@mesh, \[[^]]*\][^>]*>\}", "", text)
    return re.sub(r"sdy\.mesh.*\n", "", text)


def check(seed, unreduced=False):
    """"right", or what is the matter: a program that can't be partitioned would run whole on every device."""
    program = Program(seed, unreduced)
    text = program.text()
    devices = int(np.prod([size for _, size in program.mesh]))
    rng = np.random.default_rng(seed)
    values = [rng.integers(-3, 4, shape).astype(np.float32) for _, shape in program.arguments]
    wanted = xlac.interpret(xlac.parse(plain(text), format="mlir"), *values)
    try:
        exe = xlac.compile(xlac.parse(text, format="mlir"), devices=devices, threads=1, async_work=seed % 2)  # odd: a thread a device, however little it has to do
        if whole := exe.explain("sharding").data["whole"]:
            return f"whole: {re.sub(r'[0-9]+', 'N', whole[:90])}"
        found = exe(*values)
    except xlac.Error as error:
        return f"refused: {re.sub(r'[0-9]+', 'N', error.message[:90])}"
    if agree(found, wanted):
        return "right"
    one = xlac.compile(xlac.parse(plain(text), format="mlir"))(*values)  # sums and products in another order: inf * 0 may come of it
    return "right" if agree(found, one) else "wrong"


def agree(found, wanted):
    return all(np.allclose(np.asarray(a), np.asarray(b), rtol=1e-3, atol=1e-3, equal_nan=True) for a, b in zip(found, wanted, strict=True))


def main(first, last, unreduced=False):
    found = collections.Counter()
    for seed in range(first, last):
        answer = check(seed, unreduced)
        found[answer] += 1
        if answer != "right":
            print(f"program {seed}: {answer}", flush=True)
    for answer, n in found.most_common():
        print(n, answer)
    return 1 if set(found) != {"right"} else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), "unreduced" in sys.argv[3:]))
