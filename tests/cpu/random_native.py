"""Random kernels as machine code at every level of instructions that this machine has, beside the plain evaluation and, where values are
combined, the vector machine, whose tree native code has. From the repository's root:

  python -m tests.cpu.random_native FIRST COUNT [far]

prints the kernels whose results differ. With `far`, a quarter of the arrays are read in strides or backwards, numbers of iterations are among the
values, and half of the kernels have short rows."""
import os
import random
import sys
from collections import Counter

import ml_dtypes
import numpy as np

from xlac import kernels

LEVELS = {"avx2": ("avx2", "fma", "f16c"), "avx512": ("avx512f", "avx512bw", "avx512dq", "avx512vl")}
FLOATS, INTS = ("f32", "f64", "bf16", "f16"), ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
NUMPY = {"f32": "f4", "f64": "f8", "f16": "f2", "pred": "?", "bf16": ml_dtypes.bfloat16, **{t: t.replace("s", "i")[0] + str(int(t[1:]) // 8) for t in INTS}}
UNARY = {"float": ["negate", "abs", "sqrt", "exponential", "tanh", "logistic", "floor", "sign", "rsqrt", "log", "cosine", "erf", "atan", "log-plus-one", "cbrt"],
         "int": ["negate", "not", "popcnt", "count-leading-zeros"], "pred": ["not"]}
BINARY = {"float": ["add", "subtract", "multiply", "divide", "maximum", "minimum", "atan2", "power"],
          "int": ["add", "subtract", "multiply", "divide", "remainder", "power", "mulhi", "maximum", "minimum", "and", "or", "xor",
                  "shift-left", "shift-right-logical", "shift-right-arithmetic"],
          "pred": ["and", "or", "xor"]}
COMBINES = {"float": ["add", "multiply", "maximum", "minimum"], "int": ["add", "multiply", "maximum", "minimum", "and", "or", "xor"],
            "pred": ["and", "or"]}
SPECIAL = [0, -0.0, 1, -1, 0.5, np.inf, -np.inf, np.nan, 1e-40, 3e38, -3e9]


def kind_of(t):
    return "pred" if t == "pred" else "float" if t in FLOATS else "int"


def numbers(rng, t, n):
    kind = np.dtype(NUMPY[t])
    if t == "pred":
        return rng.random(n) < 0.5
    if t in INTS:
        info = np.iinfo(kind)
        a = rng.integers(info.min, info.max, n, dtype=kind, endpoint=True)
        a[rng.random(n) < 0.3] //= max(info.max // 8, 1)
        return a
    with np.errstate(all="ignore"):
        a = (rng.standard_normal(n) * 10.0 ** rng.integers(-2, 3, n)).astype(kind)
        some = rng.random(n) < rng.choice([0, 0.1])
        a[some] = rng.choice(np.array(SPECIAL), some.sum()).astype(kind)
    return a


class Kernel:
    """Its text, and how large its inputs are."""

    short_rows = 0.3  # how many have them

    def __init__(self, seed):
        self.r = random.Random(seed)
        rank, self.reduces = self.r.choice([1, 2, 2, 3]), self.r.random() < 0.5
        last = self.r.choice([96, 97, 128, 130, 200, 333, 1000, 2100])
        self.extents = [self.r.randint(2, 4) for _ in range(rank - 1)] + [last]
        if rank > 1 and self.r.random() < self.short_rows:
            self.extents[-1], self.extents[-2] = self.r.choice([2, 3, 4, 7, 16, 33, 64, 80]), self.r.choice([50, 64, 97, 300])
        self.values, self.lines, self.inputs, self.boxed = [], [], [], set()
        for _ in range(self.r.randint(1, 4)):
            self.load(self.r.choice([*FLOATS, *FLOATS, *INTS, "pred"]))
        for _ in range(self.r.randint(1, 25)):
            self.op()
        space = ",".join(map(str, self.extents))
        head = f"kernel [{space}] from {len(self.inputs)} input{'s' * (len(self.inputs) > 1)}\n"
        self.text = head + "".join(f"v{i} = {line}\n" for i, line in enumerate(self.lines)) + self.stores()

    def add(self, t, line):
        self.lines.append(f"{t}[] {line}")
        self.values.append(t)
        return len(self.values) - 1

    def index(self, dims):
        stride, terms = 1, []
        for d in reversed(dims):
            terms.insert(0, f"{stride}*i{d}")
            stride *= self.extents[d]
        return " + ".join(["0", *terms]), stride

    def load(self, t):
        every = list(range(len(self.extents)))
        dims = self.r.choice([every, every, every, every[-1:], every[:-1]])
        text, size = self.index(dims)
        self.add(t, f"load in{len(self.inputs)}[{text}]")
        self.inputs.append((t, size))

    def gather(self):
        """From places that are values, along all dimensions or at the same place of a row, of a table that has a row for each or is one."""
        places = [i for i, t in enumerate(self.values) if t in INTS and i not in self.boxed][-3:]
        terms, size = [], 1
        for v in self.r.sample(places, self.r.randint(1, len(places))):
            last = self.r.choice([2, 7, 40, 200][:4 - len(terms)])
            terms.append(f"{size}*v{v} up to {last}")
            size *= last + 1
        along = self.r.choice([[], [], list(range(len(self.extents))), [len(self.extents) - 1], [0]])
        for d in along if size < 5000 else []:
            terms.append(f"{size}*i{d}")
            size *= self.extents[d]
        t = self.r.choice([*FLOATS, *INTS, "pred"])
        self.add(t, f"load in{len(self.inputs)}[{' + '.join(['0', *sorted(terms, key=lambda x: 'v' in x)])}]")
        self.inputs.append((t, size))

    def edge(self):
        """A value that is there in a box alone, or all over, and another one elsewhere."""
        x = self.pick()
        t = self.values[x]
        low = [self.r.choice([0, 0, 1, e // 3]) for e in self.extents]
        high = [max(a + 1, self.r.choice([e, e, e - 1, e // 2 + 1])) for a, e in zip(low, self.extents)]
        if all(a == 0 and b == e for a, b, e in zip(low, high, self.extents)):
            low[-1] = 1
        box = ", ".join(f"{a} <= i{d} < {b}" for d, (a, b, e) in enumerate(zip(low, high, self.extents)) if a or b < e)
        if self.r.random() < 0.7:
            size, terms, first = 1, [], 0
            for d in reversed(range(len(self.extents))):
                terms.insert(0, f"{size}*i{d}")
                first -= size * low[d]
                size *= high[d] - low[d]
            y = self.add(t, f"load in{len(self.inputs)}[{first} + {' + '.join(terms)}] where {box}")
            self.inputs.append((t, size))
            self.boxed.add(y)
        else:
            y = self.pick(t)
        self.add(t, f"pick(v{y}, v{x}) if {box}")

    def pick(self, t=None):
        found = [i for i, of in enumerate(self.values) if i not in self.boxed and (t is None or of == t)]
        return self.r.choice(found[-8:]) if found else None

    def op(self):
        x = self.pick()
        t = self.values[x]
        what = self.r.random()
        if what < 0.06 and any(t in INTS for t in self.values):
            self.gather()
        elif what < 0.12:
            self.edge()
        elif what < 0.25:
            self.add(t, f"{self.r.choice(UNARY[kind_of(t)])}(v{x})")
        elif what < 0.75:
            self.add(t, f"{self.r.choice(BINARY[kind_of(t)])}(v{x}, v{self.pick(t)})")
        elif what < 0.85:
            to = self.r.choice([*FLOATS, *INTS])
            self.add(to, f"convert(v{x})")
        else:
            order = ", type=TOTALORDER" if t in FLOATS and self.r.random() < 0.3 else ""
            p = self.add("pred", f"compare(v{x}, v{self.pick(t)}), direction={self.r.choice(['EQ', 'NE', 'LT', 'LE', 'GT', 'GE'])}{order}")
            self.add(t, f"select(v{p}, v{x}, v{self.pick(t)})")

    def stores(self):
        every, _ = self.index(list(range(len(self.extents))))
        if not self.reduces:
            return "".join(f"store out{i}[{every}] v{v}\n" for i, v in enumerate({len(self.values) - 1, self.pick()}))
        cut = self.r.randint(0, len(self.extents) - 1)  # dimensions before it are kept; after it, or for columns the last one, too
        columns = len(self.extents) > 1 and self.r.random() < 0.4
        cut = min(cut, len(self.extents) - 1 - columns)
        end = len(self.extents) - columns
        kept = [*range(cut), *range(end, len(self.extents))]
        parts = [int(np.prod(self.extents[a:b])) for a, b in ((0, cut), (cut, end), (end, len(self.extents)))]
        at, _ = self.index(kept)
        text = f"over [{parts[0]},({parts[1]}),{parts[2]}]\n"
        first, lines = {}, ""
        for i in range(self.r.randint(1, 3)):
            v = self.pick()
            t = self.values[v]
            if t not in first:
                first[t] = f"v{len(self.values) + len(first)} = {t}[] constant({'true' if t == 'pred' else 1})\n"
            number = len(self.values) + list(first).index(t)
            lines += f"store out{i}[{at}] v{v} by {self.r.choice(COMBINES[kind_of(t)])} from v{number}\n"
        return "".join(first.values()) + text + lines

    def arrays(self, seed):
        rng = np.random.default_rng(seed)
        return [numbers(rng, t, n) for t, n in self.inputs]


class Far(Kernel):
    """With reads whose lanes are apart or in reverse, and numbers of iterations."""

    short_rows = 0.5

    def load(self, t):
        if self.r.random() < 0.75:
            return super().load(t)
        stride, terms, first = self.r.choice([1, 2, 2, 3, 4, 5, 8]), [], self.r.choice([0, 0, 1, 3])
        size = first + 1
        for d in reversed(range(self.r.choice([0, 0, len(self.extents) - 1]), len(self.extents))):
            reach, backwards = stride * (self.extents[d] - 1), self.r.random() < 0.3
            terms.insert(0, f"{-stride if backwards else stride}*i{d}")
            first, size, stride = first + backwards * reach, size + reach, stride * self.extents[d]
        self.add(t, f"load in{len(self.inputs)}[{' + '.join([str(first), *terms])}]")
        self.inputs.append((t, size))

    def op(self):
        if self.r.random() > 0.1:
            return super().op()
        dims = sorted(self.r.sample(range(len(self.extents)), self.r.randint(1, len(self.extents))))
        terms = [str(self.r.choice([0, 0, 5])), *(f"{self.r.choice([1, 1, 2, 7, -1])}*i{d}" for d in dims)]
        self.add(self.r.choice(["s32", "s32", "u32", "s64", "f32", "f64", "s16", "u8"]), f"index[{' + '.join(terms)}]")


def canonical(a):
    return np.where(np.isnan(a), np.array(np.nan, a.dtype), a) if a.dtype.kind in "fV" else a


def run(text, arrays, native, **options):
    os.environ["XLAC_NATIVE"] = "1" if native else "0"
    got = kernels.run(text, *arrays, **options)
    return [canonical(g).tobytes() for g in (got if isinstance(got, tuple) else (got,))]


def differs(seed, of=Kernel):
    """Whether machine code gives other bits than the plain evaluation, or the vector machine where values are combined."""
    kernel = of(seed)
    arrays = kernel.arrays(seed)
    want = run(kernel.text, arrays, False) if kernel.reduces else run(kernel.text, arrays, True, reference=True)
    return run(kernel.text, arrays, True) != want


def levels():
    try:
        words = set(open("/proc/cpuinfo").read().split())
    except OSError:
        return []
    return [level for level, needs in LEVELS.items() if words.issuperset(needs)]


def main(first, count, of=Kernel):
    before, wrong = dict(os.environ), Counter()
    for level in levels():
        os.environ["XLAC_MAX_ISA"] = level
        for seed in range(first, first + count):
            if differs(seed, of):
                wrong[level] += 1
                print(f"{level}: seed {seed} differs\n{of(seed).text}", flush=True)
    os.environ.clear()
    os.environ.update(before)
    print(f"{count} kernels from seed {first} at {', '.join(levels()) or 'no level'}: {sum(wrong.values())} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), Far if sys.argv[3:] == ["far"] else Kernel))
