"""Random StableHLO programs with shardings: graphs of ops with sub-axes, closed and open dimensions, priorities, groups, constraints and
loops. `program(seed)` is the text of one. Run as a script it propagates programs beside the Shardy in jaxlib:

  python tests/shard/random_programs.py FIRST LAST"""
import random
import sys

AXES = {"a": 2, "b": 4, "c": 2, "d": 6}
PASSES = ["sdy-basic-propagate", "sdy-aggressive-propagate", "sdy-op-priority-propagate", "sdy-user-priority-propagate",
          "sdy-aggressive-propagate{propagation-strategy=basic-then-aggressive}", "sdy-basic-propagate{conservative-propagation=true}",
          "func.func(sdy-insert-explicit-reshards{enable-full-version=true})", "sdy-propagation-pipeline"]


def tensor(shape, element="f32"):
    return "tensor<" + "".join(f"{d}x" for d in shape) + element + ">"


def pieces(r):
    """The mesh's axes, some of them in parts, in random order."""
    found = []
    for name, size in AXES.items():
        if size == 4 and r.random() < 0.25:
            found += [f'"{name}":{p}' for p in r.choice([["(1)2"], ["(2)2"], ["(1)2", "(2)2"]])]
        elif size == 6 and r.random() < 0.15:
            found += [f'"{name}":{p}' for p in r.choice([["(1)2"], ["(2)3"], ["(1)3", "(3)2"]])]
        else:
            found.append(f'"{name}"')
    r.shuffle(found)
    return found


def sharding(r, shape, none, priorities):
    """The text of a sharding, or None (with probability `none`)."""
    if r.random() < none:
        return None
    free, dims = pieces(r), []
    for _ in shape:
        axes = []
        while free and r.random() < 0.45:
            axis = free.pop()
            if not (axes and axes[-1].split(":")[0] == axis.split(":")[0]):
                axes.append(axis)
        if r.random() < 0.65:
            axes.append("?")
        dims.append("{" + ", ".join(axes) + "}" + (f"p{r.randrange(4)}" if axes and priorities and r.random() < 0.3 else ""))
    replicated = f", replicated={{{free.pop()}}}" if free and r.random() < 0.2 else ""
    return "@mesh, [" + ", ".join(dims) + "]" + replicated


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.priorities = self.r.random() < 0.3
        self.values, self.lines, self.n, self.groups, self.grouped = [], [], 0, {}, set()

    def new(self, prefix="v"):
        self.n += 1
        return f"%{prefix}{self.n}"

    def emit(self, text, shape, none=0.85):
        name, s = self.new(), sharding(self.r, shape, none, self.priorities)
        if s:
            head, _, types = text.rpartition(" : ")
            text = f"{head} {{sdy.sharding = #sdy.sharding_per_value<[<{s}>]>}} : {types}"
        self.lines.append(f"{name} = {text}")
        self.values.append((name, shape))
        return name

    def constant(self, value, element):
        name = self.new()
        self.lines.append(f"{name} = stablehlo.constant dense<{value}> : tensor<{element}>")
        return name

    def step(self):
        r = self.r
        x, shape = r.choice(self.values[-8:] + self.values[:2])
        like = [v for v, s in self.values if s == shape]
        r.choice([self.add, self.add, self.add, self.tanh, self.transpose, self.reshape, self.broadcast, self.reduce, self.dot, self.dot, self.dot,
                  self.concatenate, self.slice, self.constraint, self.group, self.loop])(x, shape, like)

    def add(self, x, shape, like):
        self.emit(f"stablehlo.add {x}, {self.r.choice(like)} : {tensor(shape)}", shape)

    def tanh(self, x, shape, like):
        self.emit(f"stablehlo.tanh {x} : {tensor(shape)}", shape)

    def transpose(self, x, shape, like):
        order = list(range(len(shape)))
        self.r.shuffle(order)
        new = [shape[i] for i in order]
        self.emit(f"stablehlo.transpose {x}, dims = {order} : ({tensor(shape)}) -> {tensor(new)}", new)

    def reshape(self, x, shape, like):
        left, new = 1, []
        for d in shape:
            left *= d
        while left > 1 and len(new) < 3:
            new.append(self.r.choice([d for d in (1, 2, 3, 4, 6, 8, 12, 16, 32) if left % d == 0]))
            left //= new[-1]
        new += [left] if left > 1 or not new else []
        self.emit(f"stablehlo.reshape {x} : ({tensor(shape)}) -> {tensor(new)}", new)

    def broadcast(self, x, shape, like):
        at, new = self.r.randrange(len(shape) + 1), list(shape)
        new.insert(at, self.r.choice([2, 4, 8]))
        dims = [i if i < at else i + 1 for i in range(len(shape))]
        self.emit(f"stablehlo.broadcast_in_dim {x}, dims = {dims} : ({tensor(shape)}) -> {tensor(new)}", new)

    def reduce(self, x, shape, like):
        if shape:
            d, zero = self.r.randrange(len(shape)), self.constant("0.0", "f32")
            new = shape[:d] + shape[d + 1:]
            self.emit(f"stablehlo.reduce({x} init: {zero}) applies stablehlo.add across dimensions = [{d}] : ({tensor(shape)}, tensor<f32>) -> "
                      f"{tensor(new)}", new, 1)

    def dot(self, x, shape, like):
        found = [(v, s, i, j) for v, s in self.values for i in range(len(shape)) for j in range(len(s)) if s[j] == shape[i]]
        if not found:
            return
        y, other, i, j = self.r.choice(found)
        pairs = [(p, q) for p in range(len(shape)) for q in range(len(other)) if p != i and q != j and shape[p] == other[q]]
        p, q = self.r.choice(pairs) if pairs and self.r.random() < 0.4 else (None, None)
        batch = "" if p is None else f"batching_dims = [{p}] x [{q}], "
        new = ([] if p is None else [shape[p]]) + [d for k, d in enumerate(shape) if k not in (i, p)] + [d for k, d in enumerate(other) if k not in (j, q)]
        if len(new) <= 4:
            self.emit(f"stablehlo.dot_general {x}, {y}, {batch}contracting_dims = [{i}] x [{j}] : ({tensor(shape)}, {tensor(other)}) -> {tensor(new)}", new)

    def concatenate(self, x, shape, like):
        if shape:
            d, new = self.r.randrange(len(shape)), list(shape)
            new[d] *= 2
            self.emit(f"stablehlo.concatenate {x}, {self.r.choice(like)}, dim = {d} : ({tensor(shape)}, {tensor(shape)}) -> {tensor(new)}", new)

    def slice(self, x, shape, like):
        if shape:
            d, new = self.r.randrange(len(shape)), list(shape)
            new[d] = max(1, new[d] // 2)
            self.emit(f"stablehlo.slice {x} [{', '.join(f'0:{k}' for k in new)}] : ({tensor(shape)}) -> {tensor(new)}", new)

    def constraint(self, x, shape, like):
        name = self.new()
        self.lines.append(f"{name} = sdy.sharding_constraint {x} <{sharding(self.r, shape, 0, self.priorities)}> : {tensor(shape)}")
        self.values.append((name, shape))

    def group(self, x, shape, like):
        g = self.r.randrange(3)
        if x not in self.grouped and self.groups.setdefault(g, shape) == shape:
            self.grouped.add(x)
            self.lines.append(f"sdy.sharding_group {x} group_id={g} : {tensor(shape)}")

    def loop(self, x, shape, like):
        t, zero, end = tensor(shape), self.constant(0, "i32"), self.constant(8, "i32")
        w, v, i, c, y, j = (self.new(p) for p in "wxicyj")
        s = sharding(self.r, shape, 0.7, self.priorities)
        note = f" {{sdy.sharding = #sdy.sharding_per_value<[<{s}>]>}}" if s else ""
        self.lines += [f"{w}:2 = stablehlo.while({v} = {x}, {i} = {zero}) : {t}, tensor<i32>",
                       f"cond {{ {c} = stablehlo.compare LT, {i}, {end} : (tensor<i32>, tensor<i32>) -> tensor<i1>",
                       f"stablehlo.return {c} : tensor<i1> }} do {{ {y} = stablehlo.multiply {v}, {self.r.choice(like)}{note} : {t}",
                       f"{j} = stablehlo.add {i}, {end} : tensor<i32>", f"stablehlo.return {y}, {j} : {t}, tensor<i32> }}"]
        self.values.append((f"{w}#0", shape))

    def text(self):
        r, args = self.r, []

        def typed(shape, none):
            s = sharding(r, shape, none, self.priorities)
            return tensor(shape) + (f" {{sdy.sharding = #sdy.sharding<{s}>}}" if s else "")

        for i in range(r.randrange(2, 5)):
            shape = [r.choice([1, 2, 4, 6, 8, 12, 16]) for _ in range(r.randrange(1, 4))]
            args.append(f"%arg{i}: {typed(shape, 0.35)}")
            self.values.append((f"%arg{i}", shape))
        for _ in range(r.randrange(3, 22)):
            self.step()
        out = r.sample(self.values, min(len(self.values), r.randrange(1, 4)))
        mesh = ", ".join(f'"{a}"={n}' for a, n in AXES.items())
        body = "\n".join(self.lines)
        return (f"sdy.mesh @mesh = <[{mesh}]>\nfunc.func @main({', '.join(args)}) -> ({', '.join(typed(s, 0.6) for _, s in out)}) {{\n{body}\n"
                f"return {', '.join(v for v, _ in out)} : {', '.join(tensor(s) for _, s in out)}\n}}\n")


def program(seed):
    return Maker(seed).text()


def shardys(text, pipeline):
    """What the Shardy in jaxlib makes of it, or None. A module that it dies on takes this process along."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir, passmanager

    with mlir.make_ir_context() as context:
        context.enable_multithreading(False)
        try:
            module = ir.Module.parse(text)
            passmanager.PassManager.parse(pipeline).run(module.operation)
            return module.operation.get_asm()
        except ir.MLIRError:
            return None


def ours(text, pipeline):
    import xlac

    try:
        return xlac.parse(text).run(pipeline).to_text()
    except xlac.Error:
        return None


if __name__ == "__main__":
    first, last, wrong = int(sys.argv[1]), int(sys.argv[2]), 0
    for seed in range(first, last):
        for passes in PASSES:
            pipeline = f"builtin.module({passes})"
            print(f"\r{seed} {passes:<80}", end="", flush=True)
            if (ours(program(seed), pipeline) or "").strip() != (shardys(program(seed), pipeline) or "").strip():
                wrong += 1
                print(f"\nseed {seed}, {passes}: another answer")
    print(f"\n{wrong} differences")
