"""What differs between two programs that should be one: what two versions of JAX made of a function, or a program and what it was last week."""
import collections
import difflib

from .report import escape, html_table, short, table
from .traces import FILE, LINE, TEXT, plain

PASSES = "inline-calls,cse,dce"  # what makes two spellings of a program one: the order and the number of equal constants, private functions
FEW = 20_000  # ops; above, difflib may pass over ops that are very common
SHOWN = 40  # rows of a printed table
BESIDE = ("metadata", "frontend_attributes", "backend_config")


class Op:
    """An op of one program: `name`, `opcode`, `type`, `attributes` (text), `op_name` and `source` as its framework gave them, `operands`."""

    __slots__ = ("name", "opcode", "type", "attributes", "op_name", "source", "operands", "key")

    def __init__(self, instruction):
        called = {computation.name for computation in instruction.called}
        facts = {k: v for k, v in instruction.attributes.items() if k not in BESIDE and v.strip("{%}").split(", %")[0] not in called}
        if instruction.opcode == "constant":
            value = instruction.to_text().partition(" constant(")[2]
            facts["value"] = value.partition(", metadata={")[0].partition(", sharding={")[0].removesuffix(")")
        metadata = instruction.metadata or ""
        where, file, line = TEXT.search(metadata), FILE.search(metadata), LINE.search(metadata)
        self.name, self.opcode, self.type = instruction.name, instruction.opcode, instruction.bare_type
        self.attributes = ", ".join(f"{k}={v}" for k, v in sorted(facts.items()))
        self.op_name = plain(where[1]) if where else ""
        self.source = f"{plain(file[1])}:{line[1] if line else 0}" if file else ""
        self.operands = []
        self.key = (self.opcode, self.type, self.attributes, instruction.parameter_number if self.opcode == "parameter" else None)

    def __repr__(self):
        return f"{self.name} = {self.type} {self.opcode}({', '.join(o.name for o in self.operands)})"

    def row(self):
        inside = self.attributes.removeprefix("value=") if self.opcode == "constant" else ", ".join(o.name for o in self.operands)
        beside = f", {self.attributes}" if self.attributes and self.opcode != "constant" else ""
        return (shortened(f"{self.opcode}({shortened(inside)}){beside}", 90), self.type, self.op_name, self.source)


def shortened(text, most=50):
    return text if len(text) <= most else text[:most - 3] + "..."


def ops_of(computation, seen):
    """The ops that the computation's root needs, operands before those who read them, each followed by those of the computations it calls."""
    order, made, stack = [], {}, [(computation.root, False)]
    while stack:
        instruction, ready = stack.pop()
        if ready:
            if instruction.name in made:
                continue
            op = made[instruction.name] = Op(instruction)
            op.operands = [made[operand.name] for operand in instruction.operands]
            order.append(op)
            for called in instruction.called:
                if called.name not in seen:
                    seen.add(called.name)
                    order += ops_of(called, seen)
        elif instruction.name not in made:
            stack.append((instruction, True))
            stack += [(operand, False) for operand in reversed(instruction.operands) if operand.name not in made]
    return order


def paired(old, new):
    """(pairs of ops that are the same, ops only in the old program, ops only in the new one): first by their order, then those that moved."""
    matcher = difflib.SequenceMatcher(None, [op.key for op in old], [op.key for op in new], autojunk=len(old) + len(new) > FEW)
    pairs, gone, come = [], [], []
    for kind, i, iend, j, jend in matcher.get_opcodes():
        if kind == "equal":
            pairs += zip(old[i:iend], new[j:jend])
        else:
            gone += old[i:iend]
            come += new[j:jend]
    waiting = collections.defaultdict(collections.deque)
    for op in come:
        waiting[op.key].append(op)
    moved = {id(op): waiting[op.key].popleft() for op in gone if waiting[op.key]}
    met = {id(op) for op in moved.values()}
    pairs += [(op, moved[id(op)]) for op in gone if id(op) in moved]
    return pairs, [op for op in gone if id(op) not in moved], [op for op in come if id(op) not in met]


def prepared(program):
    from . import parse

    module = parse(program)
    module = module.to_hlo() if module.form == "mlir" else module
    return module.run(PASSES)


class Changes:
    """What `xlac.changes` finds; false when there is nothing. `removed` and `added` are lists of Op; `rewired` has (old op, new op) that are the
    same but read other values; `signature` has a line for each argument or result of another type; `old` and `new` are the programs that were
    compared, with calls inlined and equal ops made one."""

    def __init__(self, old, new):
        self.old, self.new = old, new
        before, after = ops_of(old.entry, set()), ops_of(new.entry, set())
        pairs, self.removed, self.added = paired(before, after)
        partner = {id(a): b for a, b in pairs}
        self.rewired = [(a, b) for a, b in pairs if [id(partner.get(id(o))) for o in a.operands] != [id(o) for o in b.operands]]
        self.signature = list(signature_changes(old, new))
        self.ops = len(before), len(after)

    def __bool__(self):
        return bool(self.removed or self.added or self.rewired or self.signature)

    @property
    def costs(self):
        """{name: (of the old program, of the new one)}: elementary operations, bytes read and written, bytes needed beside arguments and results."""
        from . import compile

        both = [compile(module) for module in (self.old, self.new)]
        found = {name: tuple(exe.cost[name] for exe in both) for name in ("flops", "transcendentals", "bytes_read", "bytes_written")
                 if name in both[0].cost}
        return {**found, "peak_bytes": tuple(exe.memory["peak_bytes"] for exe in both)}

    def rows(self):
        for mark, ops in (("-", self.removed), ("+", self.added)):
            for op in ops:
                yield (mark, *op.row())
        for a, b in self.rewired:
            was = shortened(", ".join(o.name for o in a.operands))
            yield ("~", f"{b.row()[0]} read {was} before", b.type, b.op_name, b.source)

    def summary(self):
        if not self:
            return f"{self.new.name}: the same program ({self.ops[0]} ops), but for names, order and equal ops"
        return (f"{self.new.name}: {self.ops[0]} ops before, {self.ops[1]} now; {len(self.removed)} gone, {len(self.added)} new, "
                f"{len(self.rewired)} read other values")

    def __str__(self):
        rows = list(self.rows())
        lines = [self.summary(), *self.signature]
        if rows:
            lines.append(table(("", "op", "type", "op_name", "source"), rows[:SHOWN]))
        if len(rows) > SHOWN:
            lines.append(f"... and {len(rows) - SHOWN} more: .removed, .added and .rewired have all")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self):
        head = "".join(f"<p>{escape(line)}</p>" for line in (self.summary(), *self.signature))
        return head + html_table(("", "op", "type", "op_name", "source"), list(self.rows())[:SHOWN])

    def cost_text(self):
        return table(("", "before", "now"), [(name.replace("_", " "), short(a), short(b)) for name, (a, b) in self.costs.items()], right=(1, 2))


def signature_changes(old, new):
    def types(module):
        root = module.entry.root
        return ([p.bare_type for p in module.entry.parameters],
                [o.bare_type for o in root.operands] if root.opcode == "tuple" else [root.bare_type])

    for what, before, after in zip(("argument", "result"), types(old), types(new)):
        for i in range(max(len(before), len(after))):
            a, b = (side[i] if i < len(side) else "not there" for side in (before, after))
            if a != b:
                yield f"{what} {i}: {a} before, {b} now"


def compare(old, new):
    """The Changes from one program to the other."""
    return Changes(prepared(old), prepared(new))
