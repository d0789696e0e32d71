"""Random loops as machine code at every level of instructions that this machine has, beside the interpreter. From the repository's root:

  python -m tests.cpu.random_loops FIRST COUNT

prints the seeds whose results differ, and how many loops were machine code."""
import itertools
import os
import random
import sys
from collections import Counter

import numpy as np

import xlac

from .random_native import BINARY, UNARY, kind_of, levels, numbers

TYPES = ["f32", "f32", "f64", "s32", "s32", "s64", "u32", "u8", "s16", "bf16", "f16", "pred"]
SHAPES = [(), (), (), (3,), (2, 2), (5,), (40,), (8, 3)]


class Loop:
    """A module with one loop, perhaps with others in it, over a counter and a few numbers, small arrays and rows of large ones."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.n, self.computations, self.named = 0, [], 0
        state = [("s32", ())] + [self.any_type() for _ in range(self.r.randint(1, 5))]
        self.arguments = [self.shape(t, s) for t, s in state]
        self.state = state
        loop = self.loop(state, depth=0)
        entry = "".join(f" p{i} = {self.shape(t, s)} parameter({i})\n" for i, (t, s) in enumerate(state))
        tuple_type = "(" + ", ".join(self.arguments) + ")"
        entry += f" t = {tuple_type} tuple({', '.join(f'p{i}' for i in range(len(state)))})\n ROOT w = {tuple_type} while(t), {loop}\n"
        self.text = "HloModule random\n" + "\n".join(self.computations) + f"\nENTRY e {{\n{entry}}}\n"

    def any_type(self):
        return self.r.choice(TYPES), self.r.choice(SHAPES)

    @staticmethod
    def shape(t, s):
        return f"{t}[{','.join(map(str, s))}]"

    def name(self):
        self.n += 1
        return f"v{self.n}"

    def add(self, lines, t, s, text):
        lines.append(f" {(v := self.name())} = {self.shape(t, s)} {text}")
        return v

    def broadcast(self, lines, t, s, value):
        return value if s == () else self.add(lines, t, s, f"broadcast({value}), dimensions={{}}")

    def constant(self, lines, t):
        value = self.r.choice(["true", "false"]) if t == "pred" else self.r.choice([0, 1, 2, 3, 5, 7]) if kind_of(t) == "int" else self.r.choice([0.5, 1.25, -3, 0.1])
        return self.add(lines, t, (), f"constant({value})")

    def index(self, lines, have):
        """A scalar integer, perhaps out of any range."""
        found = [v for v, t, s in have if s == () and t in ("s32", "s64", "u32")]
        return self.r.choice(found)

    def step(self, lines, have):
        """One more value of what there is."""
        v, t, s = self.r.choice(have)
        kind, what = kind_of(t), self.r.random()
        same = [w for w, u, z in have if (u, z) == (t, s)]
        large = [(w, u, z) for w, u, z in have if z and z[0] > 2]
        if what < 0.15:
            return self.add(lines, t, s, f"{self.r.choice(UNARY[kind])}({v})"), t, s
        if what < 0.25 and kind != "pred":
            p = self.add(lines, "pred", s, f"compare({v}, {self.r.choice(same)}), direction={self.r.choice(['EQ', 'NE', 'LT', 'LE', 'GT', 'GE'])}")
            return self.add(lines, t, s, f"select({p}, {self.r.choice(same)}, {v})"), t, s
        if what < 0.32 and s == ():
            to = self.r.choice(["f32", "s32", "f64", "s32"])
            return (v, t, s) if to == t or t in ("f64", "u32", "s64", "bf16", "f16") else (self.add(lines, to, s, f"convert({v})"), to, s)
        if what < 0.48 and large:
            w, u, z = self.r.choice(large)
            i, rest = self.index(lines, have), z[1:]
            t0 = next(u for x, u, _ in have if x == i)
            zeros = "".join(f", {self.add(lines, t0, (), 'constant(0)')}" for _ in rest)
            row = self.add(lines, u, (1, *rest), f"dynamic-slice({w}, {i}{zeros}), dynamic_slice_sizes={{{','.join(['1', *map(str, rest)])}}}")
            return self.add(lines, u, rest, f"reshape({row})"), u, rest
        if what < 0.6 and large:
            w, u, z = self.r.choice(large)
            rows = [x for x, y, q in have if y == u and q == z[1:]]
            if rows:
                i = self.index(lines, have)
                t0 = next(u for x, u, _ in have if x == i)
                zeros = "".join(f", {self.add(lines, t0, (), 'constant(0)')}" for _ in z[1:])
                row = self.add(lines, u, (1, *z[1:]), f"reshape({self.r.choice(rows)})")
                return self.add(lines, u, z, f"dynamic-update-slice({w}, {row}, {i}{zeros})"), u, z
        if what < 0.68 and len(s) == 1 and s[0] > 1:
            cut = self.r.randint(1, s[0] - 1)
            a = self.add(lines, t, (s[0] - cut,), f"slice({v}), slice={{[{cut}:{s[0]}]}}")
            b = self.add(lines, t, (cut,), f"slice({self.r.choice(same)}), slice={{[0:{cut}]}}")
            return self.add(lines, t, s, f"concatenate({a}, {b}), dimensions={{0}}"), t, s
        if what < 0.76 and s and t not in ("bf16", "f16"):
            return self.reduction(lines, v, t, s)
        if what < 0.8 and s and t in ("s32", "u32", "s64"):
            w, u, z = self.r.choice([(w, u, z) for w, u, z in have if u == t and z and z[0] == s[-1]] or [(None, t, s)])
            if w is not None and (rest := (*s[:-1], *z[1:])) in SHAPES:
                return self.add(lines, t, rest, f"dot({v}, {w}), lhs_contracting_dims={{{len(s) - 1}}}, rhs_contracting_dims={{0}}"), t, rest
        other = self.r.choice(same) if self.r.random() < 0.6 else self.broadcast(lines, t, s, self.constant(lines, t))
        first, second = (v, other) if self.r.random() < 0.7 else (other, v)
        return self.add(lines, t, s, f"{self.r.choice(BINARY[kind])}({first}, {second})"), t, s

    def reduction(self, lines, v, t, s):
        """Over some dimensions, by what gives the same in any order."""
        by = self.r.choice({"pred": ["and", "or"], "int": ["add", "multiply", "maximum", "minimum", "xor"]}.get(kind_of(t), ["maximum", "minimum"]))
        self.named += 1
        self.computations.append(f"fun{self.named} {{ x = {t}[] parameter(0)\n y = {t}[] parameter(1)\n ROOT r = {t}[] {by}(x, y) }}")
        dims = self.r.choice([(0,), (len(s) - 1,), tuple(range(len(s)))])
        rest = tuple(n for i, n in enumerate(s) if i not in dims)
        first = self.constant(lines, t)
        return self.add(lines, t, rest, f"reduce({v}, {first}), dimensions={{{','.join(map(str, dims))}}}, to_apply=fun{self.named}"), t, rest

    def loop(self, state, depth):
        """Adds condition and body, whose counter is the first of the state; gives the attributes of a while."""
        self.named += 1
        number, types = self.named, "(" + ", ".join(self.shape(t, s) for t, s in state) + ")"
        lines, have = self.parts(types, state)
        limit = self.add(lines, "s32", (), f"constant({self.r.randint(0, 12)})")
        self.computations.append(f"c{number} {{\n" + "\n".join(lines) + f"\n ROOT r = pred[] compare({have[0][0]}, {limit}), direction=LT\n}}")
        lines, have = self.parts(types, state)
        begin, counter = list(have), have[0][0]
        for _ in range(self.r.randint(1, 10)):
            if depth < 2 and self.r.random() < 0.1:
                have += self.inner(lines, have, depth)
            else:
                have.append(self.step(lines, have))
        one = self.add(lines, "s32", (), "constant(1)")
        new = [self.add(lines, "s32", (), f"add({counter}, {one})")]
        for v, t, s in begin[1:]:
            fits = [w for w, u, z in have if (u, z) == (t, s)]
            new.append(v if self.r.random() < 0.2 else self.r.choice(fits[-2:]))
        self.computations.append(f"b{number} {{\n" + "\n".join(lines) + f"\n ROOT r = {types} tuple({', '.join(new)})\n}}")
        return f"condition=c{number}, body=b{number}"

    def parts(self, types, state):
        p = self.name()
        lines, have = [f" {p} = {types} parameter(0)"], []
        for i, (t, s) in enumerate(state):
            have.append((self.add(lines, t, s, f"get-tuple-element({p}), index={i}"), t, s))
        return lines, have

    def inner(self, lines, have, depth):
        some = self.r.sample(have, min(len(have), self.r.randint(1, 3)))
        state = [("s32", ())] + [(t, s) for _, t, s in some]
        types = "(" + ", ".join(self.shape(t, s) for t, s in state) + ")"
        zero = self.add(lines, "s32", (), f"constant({self.r.randint(0, 3)})")
        lines.append(f" {(t := self.name())} = {types} tuple({', '.join([zero, *(v for v, _, _ in some)])})")
        lines.append(f" {(w := self.name())} = {types} while({t}), {self.loop(state, depth + 1)}")
        return [(self.add(lines, t, s, f"get-tuple-element({w}), index={i}"), t, s) for i, (t, s) in enumerate(state)]

    def inputs(self, seed):
        rng = np.random.default_rng(seed)
        size = lambda s: int(np.prod(s, dtype=int))  # noqa: E731
        return [numbers(rng, t, size(s)).reshape(s) if i else np.int32(0) for i, (t, s) in enumerate(self.state)]


class Moving(Loop):
    """Loops with branches, gathers and scatters of a few elements, boxes at several indices, argmax and argmin, too."""

    def step(self, lines, have):
        what = self.r.random()
        kinds = (self.branches, self.put, self.take, self.box, self.best)
        found = kinds[int(what * 10)](lines, have) if what < 0.5 else None
        return found or super().step(lines, have)

    def branches(self, lines, have):
        """A conditional by a truth value or by a number, with a few steps in each branch."""
        selector, t, _ = self.r.choice([(v, t, s) for v, t, s in have if s == () and t in ("s32", "pred")])
        v, u, z = self.r.choice(have)
        some = [(v, u, z), have[0], self.r.choice(have)]
        types = f"({', '.join(self.shape(t, s) for _, t, s in some)})"
        operand = self.name()
        lines.append(f" {operand} = {types} tuple({', '.join(w for w, _, _ in some)})")
        names = []
        for _ in range(2 if t == "pred" else self.r.randint(1, 4)):
            inside, there = self.parts(types, [(t, s) for _, t, s in some])
            for _ in range(self.r.randint(0, 4)):
                there.append(Loop.step(self, inside, there))
            fits = [w for w, a, b in there if (a, b) == (u, z)]
            self.named += 1
            names.append(f"g{self.named}")
            root = f" ROOT r = ({self.shape(u, z)}) tuple({self.r.choice(fits[-2:])})"
            self.computations.append(f"{names[-1]} {{\n" + "\n".join(inside) + f"\n{root}\n}}")
        which = f"true_computation={names[0]}, false_computation={names[1]}" if t == "pred" else f"branch_computations={{{', '.join(names)}}}"
        lines.append(f" {(c := self.name())} = ({self.shape(u, z)}) conditional({', '.join([selector] + [operand] * len(names))}), {which}")
        return self.add(lines, u, z, f"get-tuple-element({c}), index=0"), u, z

    def typed_index(self, lines, have):
        """A number, often within arrays, and its type."""
        v = self.index(lines, have)
        t = next(t for w, t, _ in have if w == v)
        return v if self.r.random() < 0.4 else self.add(lines, t, (), f"and({v}, {self.add(lines, t, (), 'constant(7)')})"), t

    def put(self, lines, have):
        """A scatter of a row, by replacing or combining."""
        large = [(w, u, z) for w, u, z in have if z and z[0] > 2]
        if not large:
            return None
        w, u, z = self.r.choice(large)
        rows = [x for x, y, q in have if y == u and q == z[1:]]
        if not rows:
            return None
        i, t = self.typed_index(lines, have)
        at = self.add(lines, t, (1,), f"reshape({i})")
        by = self.r.choice({"pred": ["and", "or"], "int": ["add", "maximum", "xor", "subtract"]}.get(kind_of(u), ["add", "maximum", "multiply"]))
        self.named += 1
        body = self.r.choice(["ROOT r = T[] copy(y)", f"ROOT r = T[] {by}(x, y)", f"ROOT r = T[] {by}(x, y)"]).replace("T[]", f"{u}[]")
        if "copy" in body:
            self.computations.append(f"fun{self.named} {{ x = {u}[] parameter(0)\n ROOT y = {u}[] parameter(1) }}")
        else:
            self.computations.append(f"fun{self.named} {{ x = {u}[] parameter(0)\n y = {u}[] parameter(1)\n {body} }}")
        window = "0" if len(z) > 1 else ""
        return self.add(lines, u, z, f"scatter({w}, {at}, {self.r.choice(rows)}), update_window_dims={{{window}}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=0, to_apply=fun{self.named}"), u, z

    def take(self, lines, have):
        """A gather of a few rows by an array of indices."""
        large = [(w, u, z) for w, u, z in have if z and z[0] > 2]
        places = [(w, t, s) for w, t, s in have if t in ("s32", "s64", "u32", "u8") and len(s) == 1 and s[0] < 9]
        if not large or not places:
            return None
        (w, u, z), (i, t, s) = self.r.choice(large), self.r.choice(places)
        rest = (*s, *z[1:])
        if rest not in SHAPES:
            return None
        sizes = ",".join(["1", *map(str, z[1:])])
        return self.add(lines, u, rest, f"gather({w}, {i}), offset_dims={{{'1' if len(z) > 1 else ''}}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{{sizes}}}"), u, rest

    def box(self, lines, have):
        """A column of a matrix, or one put in its place."""
        wide = [(w, u, z) for w, u, z in have if len(z) == 2]
        if not wide:
            return None
        w, u, z = self.r.choice(wide)
        i, t = self.typed_index(lines, have)
        zero = self.add(lines, t, (), "constant(0)")
        columns = [x for x, y, q in have if y == u and q == (z[0],)]
        if columns and self.r.random() < 0.5:
            column = self.add(lines, u, (z[0], 1), f"reshape({self.r.choice(columns)})")
            return self.add(lines, u, z, f"dynamic-update-slice({w}, {column}, {zero}, {i})"), u, z
        if (z[0],) not in SHAPES:
            j, other = self.typed_index(lines, have)
            if other != t:
                return None
            return self.add(lines, u, (), f"reshape({self.add(lines, u, (1, 1), f'dynamic-slice({w}, {i}, {j}), dynamic_slice_sizes={{1,1}}')})"), u, ()
        column = self.add(lines, u, (z[0], 1), f"dynamic-slice({w}, {zero}, {i}), dynamic_slice_sizes={{{z[0]},1}}")
        return self.add(lines, u, (z[0],), f"reshape({column})"), u, (z[0],)

    def best(self, lines, have):
        """Where the largest or the smallest is, or it."""
        ways = [(w, u, z) for w, u, z in have if z and u != "pred"]
        if not ways:
            return None
        w, u, z = self.r.choice(ways)
        d, to = self.r.randrange(len(z)), self.r.choice(["s32", "s64"])
        rest = tuple(n for i, n in enumerate(z) if i != d)
        if rest not in SHAPES:
            return None
        self.named += 1
        way = self.r.choice(["GT", "LT"])
        better = " g = pred[] compare(a, c), direction=" + way
        keeps = "g" if kind_of(u) == "int" else "k"
        nan = "" if keeps == "g" else "\n n = pred[] compare(a, a), direction=NE\n k = pred[] or(g, n)"
        self.computations.append(
            f"fun{self.named} {{ a = {u}[] parameter(0)\n b = {to}[] parameter(1)\n c = {u}[] parameter(2)\n d = {to}[] parameter(3)\n{better}{nan}\n"
            f" e = pred[] compare(a, c), direction=EQ\n l = pred[] compare(b, d), direction=LT\n m = pred[] and(e, l)\n o = pred[] or({keeps}, m)\n"
            f" x = {u}[] select({keeps}, a, c)\n y = {to}[] select(o, b, d)\n ROOT r = ({u}[], {to}[]) tuple(x, y) }}")
        places = self.add(lines, to, z, f"iota(), iota_dimension={d}")
        first = self.constant(lines, u)
        zero = self.add(lines, to, (), "constant(0)")
        pair = f"({self.shape(u, rest)}, {self.shape(to, rest)})"
        lines.append(f" {(v := self.name())} = {pair} reduce({w}, {places}, {first}, {zero}), dimensions={{{d}}}, to_apply=fun{self.named}")
        which = self.r.randrange(2)
        return self.add(lines, (u, to)[which], rest, f"get-tuple-element({v}), index={which}"), (u, to)[which], rest


def same(a, b):
    """Bit for bit, but that all NaNs are one."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind not in "fV" and a.dtype.name != "bfloat16":
        return np.array_equal(a, b)
    x, y = a.astype("f8"), b.astype("f8")
    return bool(np.all((np.isnan(x) & np.isnan(y)) | ((x == y) & (np.signbit(x) == np.signbit(y)))))


def differs(seed, kind=Loop):
    loop = kind(seed)
    inputs = loop.inputs(seed)
    module = xlac.parse(loop.text)
    wanted, found = xlac.interpret(module, *inputs), xlac.compile(module)(*inputs)
    return not all(same(a, b) for a, b in zip(wanted, found))


def main(first, count):
    before, wrong = dict(os.environ), Counter()
    for level in [*levels(), "off"]:
        os.environ["XLAC_MAX_ISA" if level != "off" else "XLAC_NATIVE"] = level if level != "off" else "0"
        for seed, kind in itertools.product(range(first, first + count), (Loop, Moving)):
            if differs(seed, kind):
                wrong[level] += 1
                print(f"{level}: seed {seed} differs\n{kind(seed).text}", flush=True)
    os.environ.clear()
    os.environ.update(before)
    print(f"{count} loops of each kind from seed {first} at {', '.join(levels()) or 'no level'} and as lists: {sum(wrong.values())} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
