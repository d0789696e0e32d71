"""The matrix of opcodes and element types: which the verifier allows, and what the values of each were compared with.

    python tests/oracle/matrix.py            writes docs/coverage.md
    python tests/oracle/matrix.py f32 s8     prints what is wrong with these types

A value may be XLA's, or what the model says, lane by lane: XLA flushes subnormals to zero and approximates some functions."""
import concurrent.futures
import pathlib
import re
import sys

import numpy as np

import elementwise as ew
import matrix_programs
import models
import precise
from comparing import bad_lanes, leaves
from matrix_programs import NEWER, TYPES, shape
from xla import Xla
from xla_worker import Worker, XlaFailed

import xlac

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "coverage.md"
OPCODES = [row["name"] for row in xlac._core.opcode_table() if "." not in row["name"]]  # HLO's: MLIR names have a dot
MARKS = {"X": "compared with XLA's values", "W": "compared with XLA's values of the same program on f32, s32 or u32, rounded or wrapped",
         "N": "compared with NumPy, SciPy or ml_dtypes", "M": "compared with a model in plain Python (tests/oracle/models.py)",
         "P": "needs a peer, which a run of the interpreter does not have: the error is tested", "": "refused by the verifier"}

# XLA:CPU does not know the types at all, or has no arithmetic on them.
NO_XLA_TYPES = {"s1", "u1", "f6e2m3fn", "f6e3m2fn"}
# Programs that XLA:CPU does not compile: opcode, element type and body by regular expressions, and why.
NO_XLA = [(re.compile(f"^({o})$"), re.compile(f"^({t})$"), re.compile(b)) for o, t, b in [
    ("|".join(NEWER), ".*", ""),  # not in this version
    ("async-.*|copy-start|copy-done|.*feed|send.*|recv.*|domain|after-all", ".*", ""),
    ("mulhi|ragged-dot|scaled-dot|ragged-all-to-all|collective-broadcast", ".*", ""),
    ("acosh?|asinh?|atanh|cosh|sinh", "f16|f32|f64|c.*", ""),
    ("rng", ".*", ""),  # its numbers are its own
    ("bitcast", ".*", ""),  # only behind layout assignment
    ("bitcast-convert", ".*", r"= pred\["),
    ("bitcast-convert", "pred", r"= (?!pred\[)"),
    ("bitcast-convert", "c64", r"= c128"), ("bitcast-convert", "c128", r"= c64"),
    ("convert", "c.*", r"= pred\["),
    ("stochastic-convert", ".*", r"= (?!s[248136]+4?\[)"),
    ("stochastic-convert", ".*", r"= s1\["),
    ("custom-call", "(?!f32$).*", "TopK"),
    ("topk", "s[24]|u[24]|f4.*", ""),
    ("dot", "s[24]|u[24]|f4.*", r"dot\(\$0, \$1\), lhs_contracting_dims=\{1\}"),  # conversions of packed operands
    ("convolution|dot|concatenate|sort|all-gather|all-reduce|reduce-scatter|collective-permute", "[su]2", ""),
    ("reduce", "[su]2", r"\$3"), ("broadcast", "s2", r"dimensions=\{\}"),
    ("all-to-all", ".*", r"= \("),
    ("all-(gather|reduce)-(start|done)|collective-permute-(start|done)", ".*", ""),
]]


# --- programs as modules ---

def named(program, number, first):
    """The program's lines and helpers, with names of its own and parameters counted from `first`; and its result."""
    def text(s):
        s = re.sub(r"@(\w+)", rf"c{number}_\1", s)
        return re.sub(r"\$(\d+)", lambda m: f"p{first + int(m[1])}", s)
    lines = [text(l) for l in program.body.split("\n") if l]
    return lines, [text(h) for h in program.helpers], f"c{number}_r" if lines else f"p{first}"


class Batch:
    """Several programs as one module."""

    def __init__(self, programs):
        self.lines, self.helpers, self.roots, self.types, self.args = [], {}, [], [], []
        for number, p in enumerate(programs):
            lines, helpers, root = named(p, number, len(self.args))
            self.lines += lines
            self.helpers.update(dict.fromkeys(helpers))
            self.roots.append(root)
            self.types += [shape(t, np.shape(a)) for t, a in p.args]
            self.args += [a for _, a in p.args]

    def text(self, results=None):
        """Parameters in, a tuple of the results out; of their arrays, when what the results look like is given."""
        lines, roots = [], list(self.roots)
        for root, result in zip(self.roots, results or ()):
            self._unpack(root, result, lines, roots)
        return self._module([f"p{i} = {t} parameter({i})" for i, t in enumerate(self.types)],
                            [*lines, f"ROOT out = tuple({', '.join(roots)})"])

    def _unpack(self, name, result, lines, roots):
        if not isinstance(result, (tuple, list)):
            return
        at = roots.index(name)
        parts = [f"{name}_{i}" for i in range(len(result))]
        lines += [f"{p} = get-tuple-element({name}), index={i}" for i, p in enumerate(parts)]
        roots[at:at + 1] = parts
        for p, r in zip(parts, result):
            self._unpack(p, r, lines, roots)

    def closed(self):
        """Neither parameters nor results, so that any type may occur; and no backend gets far with it after verifying."""
        given = ["zero = f32[] constant(0)", "begun = (f32[], f32[], u32[]) copy-start(zero)", "begin = f32[] copy-done(begun)"]
        given += [f'p{i} = {t} custom-call(begin), custom_call_target="given"' for i, t in enumerate(self.types)]
        return self._module(given, ["ROOT out = f32[] negate(begin)"])

    def _module(self, before, after):
        return "\n".join(["HloModule m", *self.helpers, "ENTRY e {", *before, *self.lines, *after, "}", ""])


def read(text):
    m = xlac.parse(text)
    m.verify()
    return m


def refusal(program):
    """"" when the verifier allows the program, or what it says."""
    try:
        read(Batch([program]).closed())
        return ""
    except xlac.Error as e:
        return str(e)


def interpret(program):
    b = Batch([program])
    return xlac.interpret(read(b.text()), *b.args)[0]


# --- XLA's values ---

def xla_runs(p):
    if p.opcode in NEWER or any(re.search(rf"\b{t}\[", Batch([p]).text()) for t in NO_XLA_TYPES):
        return False
    return not any(o.match(p.opcode) and t.match(p.t) and b.search(p.body) for o, t, b in NO_XLA)


def wide_type(t):
    return "f32" if ew.is_float(t) else "u32" if t[0] == "u" else "s32"


def widened(p):
    """The same program on a type that holds the values."""
    def other(s):
        return re.sub(rf"\b{p.t}\[", f"{wide}[", s)
    wide = wide_type(p.t)
    args = [(wide, a.astype(ew.DTYPES[wide])) if t == p.t else (t, a) for t, a in p.args]
    out = matrix_programs.Program(p.opcode, wide, args, other(p.body), tuple(other(h) for h in p.helpers))
    return out


def narrowed(t, arrays, like):
    out = []
    for a, g in zip(arrays, like):
        if a.dtype == g.dtype:
            out.append(a)
        elif ew.is_float(t):
            out.append(models.convert(wide_type(t), t, a))
        else:
            out.append(np.array([ew.wrap(int(v), t) for v in a.reshape(-1)], np.int64).astype(ew.DTYPES[t]).reshape(a.shape))
    return out


def ask(worker, items):
    """XLA's arrays for (program, our result) pairs: a list each, None where XLA can't."""
    if not items:
        return []
    batch = Batch([p for p, _ in items])
    try:
        arrays = iter(worker.run(batch.text([g for _, g in items]), *batch.args))
        return [[next(arrays) for _ in leaves(g)] for _, g in items]
    except XlaFailed:
        half = len(items) // 2
        return ask(worker, items[:half]) + ask(worker, items[half:]) if half else [None]


# --- one type ---

class Cell:
    """What became of one program."""

    def __init__(self, program, got):
        self.program, self.got, self.xla, self.wide, self.wrong = program, got, None, None, ""

    def judge(self):
        """The mark of coverage.md, or why there is none."""
        p, got = self.program, leaves(self.got)
        wants = [w for w in (self.xla, self.model(), self.wide) if w is not None]
        if not wants:
            self.wrong = "nothing to compare with"
            return ""
        bad = [self._bad(i, [w[i] for w in wants], g) for i, g in enumerate(got)]
        self.wrong = "; ".join(b for b in bad if b)
        return "X" if self.xla is not None else "W" if self.wide is not None else "N" if p.source == "numpy" else "M"

    def model(self):
        p = self.program
        if not p.model:
            return None
        with np.errstate(all="ignore"):
            want = p.model(*(a for _, a in p.args))
            same = p.kind != "complex"  # those come in c128
            return want and [np.asarray(w, w.dtype if same else g.dtype) for w, g in zip(map(np.asarray, want), leaves(self.got))]

    def _bad(self, i, wants, got):
        p, wrong = self.program, None
        for want in wants:
            if want.shape != got.shape and p.opcode in ("set-dimension-size", "dynamic-reshape"):  # XLA's are padded
                want = want[tuple(slice(n) for n in got.shape)]
            if want.dtype != got.dtype and want.dtype.itemsize == got.dtype.itemsize and p.opcode == "rng-bit-generator":
                want = want.view(got.dtype)
            if want.dtype != got.dtype or want.shape != got.shape:
                return f"result {i} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
            bad = bad_lanes(p, got, want)
            wrong = bad if wrong is None else wrong & bad
        wrong = precise.still_wrong(p, got, wrong) if wrong.any() else wrong
        if not wrong.any():
            return ""
        at = np.flatnonzero(wrong)
        shown = [(tuple(a.reshape(-1)[j] for _, a in p.args if a.size == got.size), got.reshape(-1)[j],
                  [w.reshape(-1)[j] if w.size == got.size else "?" for w in wants]) for j in at[:3]]
        return f"{len(at)} of {got.size}: " + ", ".join(f"{a} gives {g}, not {w}" for a, g, w in shown)


def check_refused(program):
    try:
        interpret(program)
    except xlac.Error as e:
        return "" if program.refused in str(e) else str(e)
    return "not refused"


def evaluate(t, worker):
    """Marks by opcode, and a list of what is wrong."""
    marks, wrong, cells = {}, [], []

    def note(p, what):
        wrong.append(f"{p.opcode} {p.t}: {what} in {p.body}")
    for opcode in OPCODES:
        for p in matrix_programs.programs(opcode, t):
            if refusal(p):
                continue
            if p.refused:
                marks[opcode] = "P"
                what = check_refused(p)
                if what:
                    note(p, what)
                continue
            marks.setdefault(opcode, "")
            try:
                cells.append(Cell(p, interpret(p)))
            except xlac.Error as e:
                note(p, str(e))
    compare_with_xla(cells, worker)
    for c in cells:
        mark = c.judge()
        marks[c.program.opcode] = min(marks[c.program.opcode] or mark, mark, key="XWNM".find)
        if c.wrong:
            note(c.program, c.wrong)
    return marks, wrong


def compare_with_xla(cells, worker):
    asked = [c for c in cells if xla_runs(c.program)]
    for c, arrays in zip(asked, ask(worker, [(c.program, c.got) for c in asked])):
        c.xla = arrays
    # What XLA can't run, or rounds at every step.
    again = [c for c in cells if c.program.wide and c.program.t in TYPES and (ew.is_narrow(c.program.t) or c.xla is None) and not c.program.model
             and c.program.t not in ("f64", "c64", "c128") and c.program.t != wide_type(c.program.t)]
    for c, arrays in zip(again, ask(worker, [(widened(c.program), c.got) for c in again])):
        c.wide = arrays and narrowed(c.program.t, arrays, leaves(c.got))


# --- the verifiers ---

# XLA's verifier lets these pass, and no backend of XLA can run them.
DELIBERATE = [(re.compile(f"^({o})$"), re.compile(f"^({t})$"), re.compile(b)) for o, t, b in [
    ("mulhi|shift-.*", "pred|f.*|bf16|c.*", ""),
    ("maximum|minimum|remainder|clamp", "c.*", ""),
    ("compare", "c.*", "direction=[GL]"),
    ("reduce|reduce-window|scatter", "c.*", "to_apply=m(ax|in)imum"),
    ("select-and-scatter|sort|topk", "c.*", ""),
    ("ragged-all-to-all", "pred|f.*|bf16|c.*", r"f32\[8\]"),
    ("rng-bit-generator", "pred|c.*", ""),
    ("scaled-dot", "pred|[su]\\d+|c.*", ""),
]]
# XLA dies of these though it has the type.
XLA_DIES = [(re.compile("^constant$"), re.compile("^f6e"))]


def known(p):
    return any(o.match(p.opcode) and t.match(p.t) and b.search(p.body) for o, t, b in DELIBERATE)


def verifies(xla, programs):
    """Whether XLA's verifier takes them all; a backend that dies afterwards has taken them."""
    status, message = xla.verify(Batch(programs).closed())
    return status == "ok" or (status == "crash" and "unsupported type" in message), message


def refused_by_xla(xla, programs):
    if not programs:
        return []
    ok, message = verifies(xla, programs)
    if ok:
        return []
    half = len(programs) // 2
    if not half:
        return [f"{programs[0].opcode} {programs[0].t}: XLA refuses {programs[0].body}: {message[-200:]}"]
    return refused_by_xla(xla, programs[:half]) + refused_by_xla(xla, programs[half:])


def disagreements(t, xla):
    ours, theirs = [], []
    for opcode in OPCODES:
        if opcode in NEWER:
            continue
        for p in matrix_programs.programs(opcode, t):
            if any(o.match(opcode) and n.match(t) for o, n in XLA_DIES):
                continue
            why = refusal(p)
            if not why:
                ours.append(p)
            elif not known(p) and xla.parse(Batch([p]).closed())[0] == "ok" and verifies(xla, [p])[0]:
                theirs.append(f"{opcode} {t}: XLA allows {p.body}; {why}")
    return refused_by_xla(xla, ours) + theirs


# --- all types ---

def run(types, what):
    """what(type, worker) for each type, on two workers; gives {type: future}."""
    pool = concurrent.futures.ThreadPoolExecutor(2)
    return {t: pool.submit(what, t) for t in types}


class Runner:
    """evaluate() with as many XLA processes as threads ask."""

    def __init__(self):
        self.idle = []

    def __call__(self, t):
        worker = self.idle.pop() if self.idle else Worker()
        try:
            return evaluate(t, worker)
        finally:
            self.idle.append(worker)

    def close(self):
        for worker in self.idle:
            worker.close()


def page(marks):
    """coverage.md, given the marks of every type by opcode."""
    counts = {m: sum(row.get(o) == m for row in marks.values() for o in OPCODES) for m in "XWNMP"}
    out = ["# Coverage: opcodes and element types", "",
           "Generated by `python tests/oracle/matrix.py`, which evaluates every combination that the verifier allows; "
           "tests/oracle/test_matrix.py", "does the same and compares this page.", "", "| mark | meaning | combinations |", "|---|---|--:|"]
    out += [f"| {m} | {MARKS[m]} | {counts[m]} |" for m in "XWNMP"]
    refused = len(OPCODES) * len(marks) - sum(counts.values())
    out += [f"| | {MARKS['']} | {refused} |", "", "| opcode | " + " | ".join(marks) + " |", "|---" * (len(marks) + 1) + "|"]
    out += ["| " + " | ".join([o, *(row.get(o, "") for row in marks.values())]) + " |" for o in OPCODES]
    return "\n".join(out) + "\n"


def main(types):
    runner = Runner()
    results = run(types or TYPES, runner)
    marks = {}
    for t, future in results.items():
        marks[t], wrong = future.result()
        print(t, len(marks[t]), "opcodes", flush=True)
        for line in wrong:
            print("  " + line.replace("\n", " ; "))
    runner.close()
    if not types:
        PAGE.write_text(page(marks))


if __name__ == "__main__":
    main(sys.argv[1:])
