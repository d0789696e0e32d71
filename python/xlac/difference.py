"""Finds the first op whose value differs between two ways to run a program."""
import numpy as np

from . import _core
from .codes import Code
from .diagnostics import counted
from .errors import ArgumentError

CALLS = ("call", "fusion")
MAX_DEPTH = 32
WAYS = {"interpreter": None, "compiled": {}, "unfused": {"fuse": False}, "unoptimised": {"passes": False}, "blasless": {"blas": False},
        "fast": {"numerics": "fast"}}
NOT_VALUES = ("parameter", "constant", "tuple", "get-tuple-element", "after-all")


class Way:
    """One way to run: the interpreter, or the executor with options of xlac.compile."""

    def __init__(self, spec):
        if isinstance(spec, dict):
            self.name, self.options = "compiled" + "".join(f" {k}={v}" for k, v in sorted(spec.items())), spec
        elif spec in WAYS:
            self.name, self.options = spec, WAYS[spec]
        else:
            raise ArgumentError(f"{spec!r} is not a way to run a program", Code.BAD_ARGUMENT,
                        hint=f"ways are {', '.join(WAYS)}, or a dict of options for xlac.compile")

    def run(self, module, args):
        from . import compile, interpret

        return interpret(module, *args) if self.options is None else compile(module, **self.options)(*args)


class Difference:
    """The first op that differs: `op`, `opcode`, `computation`, `line`, `place` (index of the worst element), `values` (of both ways
    there), `largest` (difference), `count` of elements that differ of `size`, `inputs` (a line on each operand), `where` (the loop trips
    and branches that lead there). It is true: no difference is None."""

    def __init__(self, **facts):
        self.__dict__.update(facts)

    def __str__(self):
        line = f", line {self.line}" if self.line else ""
        lines = [f"{self.opcode} {self.op} in {self.computation}{line} is the first op that differs between {self.ways[0]} and {self.ways[1]}"]
        lines += [f"  {where}" for where in self.where]
        if self.note:
            lines.append(f"  {self.note}")
        lines.append(f"  element {list(self.place)} is {self.values[0]} and {self.values[1]}; the largest difference is {self.largest:.3g}; "
                     f"{self.count} of {self.size} elements differ")
        lines += [f"  {text}" for text in self.inputs]
        return "\n".join(lines)

    __repr__ = __str__


# --- comparing ---

def wide(array):
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind in "iu":
        return array.astype(object) if array.dtype.itemsize == 8 else array.astype(np.int64)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def compare(a, b, relative, absolute):
    """None, or (place, largest difference, number of elements that differ)."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return (), float("inf"), a.size
    if a.tobytes() == b.tobytes():
        return None
    x, y = wide(a), wide(b)
    with np.errstate(all="ignore"):
        distance = np.abs(x - y)
        same = (x == y) | ((x != x) & (y != y)) | (distance <= absolute + relative * np.abs(y))
        bad = ~np.asarray(same, bool)
        if not bad.any():
            return None
        score = np.where(bad, np.where(distance == distance, distance, np.inf), -1.0).astype(np.float64)
    place = np.unravel_index(int(np.argmax(score)), score.shape) if score.shape else ()
    return tuple(int(i) for i in place), float(score.max()), int(bad.sum())


def leaves(value):
    return [x for part in value for x in leaves(part)] if isinstance(value, (tuple, list)) else [value]


def summary(name, array):
    if array is None:
        return f"{name}: token"
    head = f"{name}: {array.dtype}{list(array.shape)}"
    if array.size == 0:
        return head
    if array.size == 1:
        return f"{head} = {array.reshape(-1)[0]}"
    if array.dtype.kind in "fc" or array.dtype.kind == "V":
        x = wide(array)
        strange = int((~np.isfinite(x)).sum())
        x = np.abs(x[np.isfinite(x)])
        size = f"size {x.min():.3g} to {x.max():.3g}" if x.size else "none finite"
        return f"{head}, {size}" + (f", {strange} not finite" if strange else "")
    return f"{head}, {array.min()} to {array.max()}"


# --- one computation ---

class Search:
    """The state of one search: what differs is compared with these bounds."""

    def __init__(self, a, b, relative, absolute, lines):
        self.lines = lines  # of the source, by op
        self.ways, self.relative, self.absolute = (Way(a), Way(b)), relative, absolute

    def differs(self, a, b):
        for x, y in zip(leaves(a), leaves(b)):
            if x is not None and compare(np.asarray(x), np.asarray(y), self.relative, self.absolute):
                return True
        return False


def has_token(dtype):
    return any(map(has_token, dtype)) if isinstance(dtype, list) else dtype == "token"


def seen_ops(computation):
    """The ops of a computation whose values can be results: callees first, as they stand."""
    return [op for op in computation if op.opcode not in NOT_VALUES and not has_token(op.dtype) and op.dtype is not None]


def entered(module, computation):
    """A copy whose entry is this computation, without those that it does not need: they would call it as it was."""
    copy = module.clone()
    if copy.entry.name == computation:
        return copy
    copy.entry = copy.computation(computation)
    needed, pending = {copy.entry}, [copy.entry]
    while pending:
        called = {c for op in pending.pop() for c in op.called} - needed
        needed |= called
        pending += called
    left = [c for c in copy.computations if c not in needed]
    while left:  # callers before callees
        used = {c for one in left for op in one for c in op.called}
        for one in [c for c in left if c not in used]:
            one.remove()
        left = [c for c in left if c in used]
    return copy


def with_results(module, computation, names):
    """A copy that gives the values of these ops. A computation that isn't the entry becomes it."""
    copy = entered(module, computation)
    entry = copy.entry
    entry.root = entry.add("tuple", *(entry.find(name) for name in names))
    return copy


def strip_entry_facts(module):
    """What a header says about the old entry's result says nothing about the new one's."""
    lines = module.to_text().split("\n", 1)
    name = lines[0].split(",", 1)[0]
    return _core.parse(name + "\n" + lines[1], format="hlo")


def values_of(search, module, computation, names, args):
    """The values of ops by both ways: two dicts by name."""
    copy = with_results(module, computation, names)
    found = [way.run(copy, args) for way in search.ways]
    return [dict(zip(names, values)) for values in found]


def describe(search, module, computation, op, values, note, where):
    """The difference at op, with what it computed from; `values` are by name, by both ways."""
    a, b = (leaves(v[op.name]) for v in values)
    index = next(i for i, (x, y) in enumerate(zip(a, b)) if x is not None and
                 compare(np.asarray(x), np.asarray(y), search.relative, search.absolute))
    x, y = np.asarray(a[index]), np.asarray(b[index])
    place, largest, count = compare(x, y, search.relative, search.absolute)
    inputs = []
    for operand in op.operands:
        known = values[0].get(operand.name)
        if known is not None:
            inputs += [summary(f"operand {operand.name}", np.asarray(v) if v is not None else None) for v in leaves(known)]
    pick = lambda v: v[place] if v.shape == x.shape else v  # noqa: E731
    return Difference(op=op.name, opcode=op.opcode, computation=computation.name, line=search.lines.get(op.name, 0),
                      place=((index,) if len(a) > 1 else ()) + place,
                      values=(pick(x), pick(y)), largest=largest, count=count, size=x.size, inputs=inputs, where=where, note=note,
                      ways=tuple(way.name for way in search.ways))


def given_values(computation, args):
    """Parameters and constants, for the summaries."""
    known = {p.name: a for p, a in zip(computation.parameters, args)}
    known.update({op.name: op.constant for op in computation if op.opcode == "constant"})
    for op in computation:
        if op.opcode == "get-tuple-element" and isinstance(known.get(op.operands[0].name), tuple):
            known[op.name] = known[op.operands[0].name][int(op.attributes["index"])]
    return known


def first_of(search, module, computation, args, where, depth):
    """The first op of a computation that differs when it is run on args, or None. Descends into loops, branches and calls."""
    ops = seen_ops(computation)
    if not ops or depth > MAX_DEPTH:
        return None
    values = values_of(search, module, computation.name, [op.name for op in ops], args)
    known = given_values(computation, args)
    for one in values:
        one.update({name: value for name, value in known.items() if name not in one})
    for op in ops:
        if not search.differs(values[0][op.name], values[1][op.name]):
            continue
        inner = descend(search, module, op, values[0], where, depth)
        return inner or describe(search, module, computation, op, values, "", where)
    return alone(search, module, computation, ops, values, args, where)


def alone(search, module, computation, ops, values, args, where):
    """No op differs while all of them are results: then one does only as part of a larger kernel. Its root alone is a result in turn."""
    root = computation.root
    names = [root.name] if root.opcode not in NOT_VALUES else []
    names += [op.name for op in ops if op.name not in names and (op is root or not op.users or op.opcode == "reduce")]
    for name in names:
        pair = values_of(search, module, computation.name, [name], args)
        if search.differs(pair[0][name], pair[1][name]):
            both = [{**values[i], **pair[i]} for i in range(2)]
            op = computation.find(name)
            return describe(search, module, computation, op, both, "it differs only where what it uses is computed along with it", where)
    return None


def operands_of(op, values):
    """The values of op's operands by the first way, or None where one is not known."""
    found = []
    for operand in op.operands:
        value = value_of(operand, values)
        if value is None:
            return None
        found.append(value)
    return found


def value_of(op, values):
    if op.name in values:
        return values[op.name]
    if op.opcode == "tuple":
        parts = [value_of(o, values) for o in op.operands]
        return None if any(p is None for p in parts) else tuple(parts)
    if op.opcode == "get-tuple-element":
        whole = value_of(op.operands[0], values)
        return None if whole is None else whole[int(op.attributes["index"])]
    return None


def descend(search, module, op, values, where, depth):
    operands = operands_of(op, values) if op.called else None
    if operands is None:
        return None
    if op.opcode in CALLS:
        return first_of(search, module, op.called[0], operands, [*where, f"called by {op.opcode} {op.name}"], depth + 1)
    if op.opcode == "conditional":
        return into_branch(search, module, op, operands, where, depth)
    return into_loop(search, module, op, operands[0], where, depth) if op.opcode == "while" else None


def into_branch(search, module, op, operands, where, depth):
    selector = np.asarray(operands[0])
    index = int(not selector) if selector.dtype.kind == "b" else int(selector)
    index = index if 0 <= index < len(op.called) else len(op.called) - 1
    return first_of(search, module, op.called[index], [operands[index + 1]], [*where, f"branch {index} of conditional {op.name}"], depth + 1)


def alone_run(search, module, computation, args):
    copy = entered(module, computation.name)
    return [way.run(copy, args) for way in search.ways]


def into_loop(search, module, op, state, where, depth):
    """Trip by trip, both ways from the same state."""
    condition, body = op.called
    trip = 0
    while True:
        at = [*where, f"trip {trip} of while {op.name}"]
        go_on = alone_run(search, module, condition, [state])
        if search.differs(*go_on):
            return first_of(search, module, condition, [state], at, depth + 1)
        if not go_on[0]:
            return None
        states = alone_run(search, module, body, [state])
        if search.differs(*states):
            return first_of(search, module, body, [state], at, depth + 1)
        state, trip = states[0], trip + 1


def prepared(module):
    """In HLO form, without what the header says about the entry's layouts and aliases, which new results would break."""
    from . import parse

    module = parse(module)
    if module.form == "mlir":
        module = module.to_hlo()
    module.verify(xla_compat=True)
    return strip_entry_facts(module), {op.name: op.line for c in module.computations for op in c}


def diff(program, *arrays, a="interpreter", b="compiled", rtol=1e-5, atol=1e-6, seed=0):
    """Runs every op of a program by two ways and returns a Difference for the first op, in the order of the program, whose values
    differ by more than atol + rtol * |value|, or None. Loops are followed trip by trip, branches and calls entered.

    `program` is a Module, or what `parse` takes; `arrays` are its arguments; without any, they are drawn at random with `seed`. `a` and `b` are
    "interpreter", "compiled", "unfused" (a kernel for each op), "unoptimised" (no passes), "blasless", "fast" (numerics), or a dict of options of
    xlac.compile. With bounds of 0 they must agree to the bit, as
    they do but for sums and products of floats, which are associated in another order."""
    module, lines = prepared(program)
    if not arrays and module.entry.parameters:
        from . import values

        arrays = values.draw_inputs(module.entry.parameters, seed)
    if len(arrays) != len(module.entry.parameters):
        takes = counted(len(module.entry.parameters), "parameter")
        raise ArgumentError(f"the program has {takes}, found {counted(len(arrays), 'argument')}", Code.ARGUMENT_COUNT)
    return first_of(Search(a, b, rtol, atol, lines), module, module.entry, list(arrays), [], 0)
