"""Random programs, each written twice: as plain ops, and with some of them made asynchronous, in any of the ways there are.

Program(seed) has `.sync` and `.overlapped`, HLO text of the same computation, `.args` for both, and `.pairs`, how many ops were
wrapped. The two give the same bits in any executor, whatever the lanes do. Wrapped ops have up to three updates, contexts of
several shapes, threads of their own, sugar or `calls=`, and stand in bodies of loops, branches and calls, some of which are
wrapped themselves; half of the modules are scheduled, in an order that is any one that the data allows."""
import random

import numpy as np

SHAPES = [(), (8,), (4, 8), (8, 4), (4, 4)]
UNARY = ["sine", "cosine", "tanh", "negate", "abs", "floor", "logistic"]
BINARY = ["add", "subtract", "maximum", "minimum"]
OWN = {"copy", "all-reduce", "all-gather", "collective-permute"}  # have starts of their own
PLAIN = {"constant", "tuple", "get-tuple-element", "parameter"}   # nothing to wait for
THREADS = [None, None, None, "lane", "copies", "a b"]
CONTEXTS = ["", "", "u32[]", "s32[]", "s32[2], u32[]", "(f32[], s32[4])"]


def text_of(t):
    if isinstance(t, list):
        return "(" + ", ".join(map(text_of, t)) + ")"
    dtype, dims = t
    return f"{dtype}[{','.join(map(str, dims))}]"


class Node:
    def __init__(self, opcode, t, operands=(), attrs="", literal="", called=()):
        self.opcode, self.type, self.operands, self.attrs = opcode, t, list(operands), attrs
        self.literal, self.called = literal, list(called)  # called: (attribute, Body) each


class Body:
    """A computation as a graph; written as often as asked, each time with names of its own."""

    def __init__(self, params):
        self.params = [Node("parameter", t, literal=str(i)) for i, t in enumerate(params)]
        self.nodes, self.root = list(self.params), None

    def add(self, *args, **kwargs):
        self.nodes.append(Node(*args, **kwargs))
        return self.nodes[-1]


class Program:
    def __init__(self, seed, size=None, collectives=True):
        self.random = random.Random(seed)
        self.collectives, self.pairs = collectives, 0
        params = [("f32", self.random.choice(SHAPES[1:])) for _ in range(self.random.randint(1, 3))]
        body = self.body(params, None, size or self.random.randint(3, 14), 2)
        self.args = [np.random.default_rng(seed + i).standard_normal(dims).astype(np.float32)
                     for i, (_, dims) in enumerate(params)]
        scheduled = self.random.random() < 0.5
        self.sync = Writer(self.random, body, False, False, self).text
        self.overlapped = Writer(self.random, body, True, scheduled, self).text

    # --- graphs ---

    def body(self, params, result, size, depth):
        b = Body(params)
        for _ in range(size):
            self.step(b, depth)
        arrays = [n for n in b.nodes if not isinstance(n.type, list)]
        if result is None:
            picked = self.random.sample(arrays, min(len(arrays), self.random.randint(1, 3)))
            b.root = b.add("tuple", [n.type for n in picked], picked)
        elif isinstance(result, list):
            b.root = b.add("tuple", result, [self.value(b, t) for t in result])
        else:
            v = self.value(b, result)
            b.root = b.add("negate", v.type, [v])
        return b

    def value(self, b, t):
        """Some value of that type: there is one, or it is made of the sum of another."""
        same = [n for n in b.nodes if n.type == t]
        if same and self.random.random() < 0.9:
            return self.random.choice(same)
        if t[0] == "s32":
            return b.add("constant", t, literal=str(self.random.randint(0, 3)))
        scalar = self.reduce(b, self.array(b))
        return scalar if t[1] == () else b.add("broadcast", t, [scalar], "dimensions={}")

    def array(self, b):
        return self.random.choice([n for n in b.nodes if not isinstance(n.type, list) and n.type[0] == "f32"])

    def fold(self, opcode="add", dtype="f32"):
        f = Body([(dtype, ()), (dtype, ())])
        f.root = f.add(opcode, (dtype, ()), f.params)
        return f

    def reduce(self, b, x):
        zero = b.add("constant", ("f32", ()), literal="0")
        dims = ",".join(map(str, range(len(x.type[1]))))
        return b.add("reduce", ("f32", ()), [x, zero], f"dimensions={{{dims}}}", called=[("to_apply", self.fold())])

    def step(self, b, depth):
        kinds = ["unary", "binary", "binary", "dot", "reduce", "move", "pair", "copy", "slice"]
        kinds += ["collective"] if self.collectives else []
        kinds += ["call", "loop", "branch"] if depth else []
        getattr(self, "step_" + self.random.choice(kinds))(b, depth)

    def step_unary(self, b, _):
        x = self.array(b)
        b.add(self.random.choice(UNARY), x.type, [x])

    def step_binary(self, b, _):
        x = self.array(b)
        y = self.value(b, x.type)
        b.add(self.random.choice(BINARY), x.type, [x, y])

    def step_dot(self, b, _):
        left, right = self.value(b, ("f32", (4, 8))), self.value(b, ("f32", (8, 4)))
        out = b.add("dot", ("f32", (4, 4)), [left, right], "lhs_contracting_dims={1}, rhs_contracting_dims={0}")
        b.add("tanh", out.type, [out])

    def step_reduce(self, b, _):
        b.add("logistic", ("f32", ()), [self.reduce(b, self.array(b))])

    def step_move(self, b, _):
        x = self.value(b, ("f32", (4, 8)))
        b.add("transpose", ("f32", (8, 4)), [x], "dimensions={1,0}")

    def step_slice(self, b, _):
        x, part, at = self.value(b, ("f32", (8,))), self.value(b, ("f32", ())), self.random.randint(0, 7)
        small = b.add("reshape", ("f32", (1,)), [part])
        start = b.add("constant", ("s32", ()), literal=str(at))
        b.add("dynamic-update-slice", x.type, [x, small, start])

    def step_pair(self, b, _):
        """Two operands, two results."""
        x = self.value(b, ("f32", (8,)))
        y = b.add("iota", ("s32", (8,)), attrs="iota_dimension=0")
        less = Body([("f32", ()), ("f32", ()), ("s32", ()), ("s32", ())])
        less.root = less.add("compare", ("pred", ()), less.params[:2], "direction=LT")
        pair = b.add("sort", [x.type, y.type], [x, y], "dimensions={0}, is_stable=true", called=[("to_apply", less)])
        b.add("get-tuple-element", x.type, [pair], "index=0")
        b.add("get-tuple-element", y.type, [pair], "index=1")

    def step_copy(self, b, _):
        x = self.array(b)
        b.add("copy", x.type, [x])

    def step_collective(self, b, _):
        x = self.array(b)
        kind = self.random.choice(["all-reduce", "all-gather", "collective-permute"])
        if kind == "all-reduce":
            b.add(kind, x.type, [x], "replica_groups={{0}}", called=[("to_apply", self.fold())])
        elif kind == "all-gather" and x.type[1]:
            b.add(kind, x.type, [x], "replica_groups={{0}}, dimensions={0}")
        else:
            b.add("collective-permute", x.type, [x], "source_target_pairs={{0,0}}")

    def step_call(self, b, depth):
        args = [self.array(b) for _ in range(self.random.randint(1, 2))]
        result = ("f32", self.random.choice(SHAPES))
        f = self.body([a.type for a in args], result, self.random.randint(1, 5), depth - 1)
        b.add("call", result, args, called=[("to_apply", f)])

    def step_loop(self, b, depth):
        x = self.array(b)
        count, state = ("s32", ()), [("s32", ()), x.type]
        step = Body([state])
        i = step.add("get-tuple-element", count, step.params, "index=0")
        v = step.add("get-tuple-element", x.type, step.params, "index=1")
        for _ in range(self.random.randint(1, 4)):
            self.step(step, depth - 1)
        last = self.value(step, x.type)
        more = step.add("add", count, [i, step.add("constant", count, literal="1")])
        step.root = step.add("tuple", state, [more, step.add("maximum", x.type, [v, last])])
        test = Body([state])
        j = test.add("get-tuple-element", count, test.params, "index=0")
        n = test.add("constant", count, literal=str(self.random.randint(0, 3)))
        test.root = test.add("compare", ("pred", ()), [j, n], "direction=LT")
        init = b.add("tuple", state, [b.add("constant", count, literal="0"), x])
        loop = b.add("while", state, [init], called=[("condition", test), ("body", step)])
        b.add("get-tuple-element", x.type, [loop], "index=1")

    def step_branch(self, b, depth):
        args = [self.array(b) for _ in range(2)]
        result = ("f32", self.random.choice(SHAPES))
        bodies = [self.body([a.type], result, self.random.randint(1, 3), depth - 1) for a in args]
        which = b.add("constant", ("s32", ()), literal=str(self.random.randint(-1, 2)))
        b.add("conditional", result, [which] + args, called=[("branch_computations", f) for f in bodies])


class Line:
    """A line of a computation and the lines it must follow."""

    def __init__(self, name, text, after, wait=False):
        self.name, self.text, self.after, self.wait, self.control = name, text, after, wait, None


class Writer:
    def __init__(self, rng, body, overlapped, scheduled, program):
        self.random, self.overlapped, self.scheduled, self.program = rng, overlapped, scheduled, program
        self.n, self.computations = 0, []
        entry = self.computation("ENTRY " + self.fresh("e"), body, overlapped)
        header = "HloModule m, is_scheduled=true" if scheduled else "HloModule m"
        self.text = "\n".join([header] + self.computations + [entry]) + "\n"

    def fresh(self, stem="v"):
        self.n += 1
        return f"{stem}.{self.n}"

    def computation(self, title, body, overlapped, thread=None):
        lines, of = [], {}
        for node in body.nodes:
            of[node] = self.node(lines, of, node, overlapped, thread)
        return self.braces(title, self.order(lines) if overlapped else lines, of[body.root], thread)

    def braces(self, title, lines, root, thread):
        out = []
        for line in lines:
            waits = f", control-predecessors={{{line.control.name}}}" if line.control else ""
            out.append(f"{'  ROOT ' if line is root else '  '}{line.name} = {line.text}{waits}\n")
        return title + " {\n" + "".join(out) + "}" + (f', execution_thread="{thread}"' if thread else "")

    def order(self, lines):
        """Any order that the lines allow, with starts early and dones late as often as not, and a control edge now and then."""
        late = self.random.random() < 0.5
        waiting, placed, seen = list(lines), [], set()
        while waiting:
            ready = [line for line in waiting if all(a in seen for a in line.after)]
            rest = [line for line in ready if not line.wait]
            line = self.random.choice(rest if late and rest else ready)
            waiting.remove(line)
            if placed and self.random.random() < 0.04:
                line.control = self.random.choice(placed)
            placed.append(line)
            seen.add(line)
        return placed

    def emit(self, lines, t, text, after, wait=False, stem="v"):
        line = Line(self.fresh(stem), f"{t if isinstance(t, str) else text_of(t)} {text}", after, wait)
        lines.append(line)
        return line

    def attributes(self, node, overlapped, thread):
        named = {}
        for key, body in node.called:
            name = self.fresh("f")
            inner = overlapped and (key in ("body", "branch_computations") or node.opcode == "call")
            self.computations.append(self.computation(name, body, inner, thread))
            named.setdefault(key, []).append(name)
        parts = [f"{k}={{{', '.join(v)}}}" if k == "branch_computations" else f"{k}={v[0]}" for k, v in named.items()]
        return "".join(", " + p for p in ([node.attrs] if node.attrs else []) + parts)

    def node(self, lines, of, node, overlapped, thread):
        args = [of[o] for o in node.operands]
        if overlapped and node.opcode not in PLAIN and self.random.random() < 0.5:
            self.program.pairs += 1
            return (self.own_pair if node.opcode in OWN else self.generic)(lines, node, args, thread)
        names = node.literal or ", ".join(a.name for a in args)
        return self.emit(lines, node.type, f"{node.opcode}({names}){self.attributes(node, overlapped, thread)}", args)

    def own_pair(self, lines, node, args, thread):
        t, operand = text_of(node.type), text_of(node.operands[0].type)
        start_type = {"copy": f"({t}, {operand}, u32[])", "all-reduce": t, "all-gather": f"({operand}, {t})",
                      "collective-permute": f"({operand}, {t}, u32[], u32[])"}[node.opcode]
        attrs = self.attributes(node, False, thread)
        start = self.emit(lines, start_type, f"{node.opcode}-start({args[0].name}){attrs}", args, stem="s")
        return self.emit(lines, t, f"{node.opcode}-done({start.name})", [start], True, "d")

    def generic(self, lines, node, args, outer):
        """start, updates, done; the computation of op, or a call of a function that may hold more async ops."""
        thread = outer or self.random.choice(THREADS)
        context = self.random.choice(CONTEXTS)
        t = text_of(node.type)
        whole = f"(({', '.join(text_of(o.type) for o in node.operands)}), {t}{', ' + context if context else ''})"
        names = ", ".join(a.name for a in args)
        on = f', async_execution_thread="{thread}"' if thread else ""
        if self.random.random() < 0.4:
            name = node.opcode
            text = f"{name}-start({names}){self.attributes(node, True, thread)}{on}"
        else:
            name, text = "async", f"async-start({names}), calls={self.wrapped(node, thread)}{on}"
        at = self.emit(lines, whole, text, args, stem="s")
        for _ in range(self.random.choice([0, 0, 0, 1, 2, 3])):
            at = self.emit(lines, whole, f"{name}-update({at.name})", [at], self.random.random() < 0.5, "u")
        return self.emit(lines, t, f"{name}-done({at.name})", [at], True, "d")

    def wrapped(self, node, thread):
        """The name of a computation that holds the op, alone or in a function that it calls."""
        inner = Body([o.type for o in node.operands])
        inner.root = inner.add(node.opcode, node.type, inner.params, node.attrs, called=node.called)
        name = self.fresh("w")
        if self.random.random() < 0.3:
            outer = Body([o.type for o in node.operands])
            outer.root = outer.add("call", node.type, outer.params, called=[("to_apply", inner)])
            inner = outer
        self.computations.append(self.wrapper(name, inner, thread))
        return name

    def wrapper(self, name, body, thread):
        """The wrapped computation itself: parameters and a plain root, whose callees may hold async ops."""
        lines, of = [], {}
        for node in body.params:
            of[node] = self.node(lines, of, node, False, thread)
        root = body.root
        args = [of[o] for o in root.operands]
        names = ", ".join(a.name for a in args)
        line = self.emit(lines, root.type, f"{root.opcode}({names}){self.attributes(root, True, thread)}", args)
        return self.braces(name, lines, line, thread)
