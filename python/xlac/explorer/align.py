"""Names of one HLO text given to another text of the same program. A text that was read back may number its ops anew and list its computations in
another order; line by line it then differs everywhere, though nothing was changed."""

import re

NAME = r"%[\w.\-]+"
OP = re.compile(rf"\s+(?:ROOT )?({NAME}) = ")
HEAD = re.compile(rf"(?:ENTRY )?({NAME}) .*\{{$")
CALLED = re.compile(rf"(?<==){NAME}|(?:branch|called)_computations=\{{[^}}]*\}}")  # what is left of an op's names are its operands
WORD = re.compile(NAME)


class Program:
    """HLO text by computation: `blocks` has the lines of each, `roots` its root's name, and `ops` what stands behind "=", by (computation, name)."""

    def __init__(self, lines):
        self.before, self.blocks, self.ops, self.roots, self.entry = [], {}, {}, {}, None
        inside = None
        for line in lines:
            head = HEAD.match(line)
            if head:
                inside = head[1]
                self.blocks[inside] = []
                self.entry = inside if line.startswith("ENTRY") else self.entry
            (self.before if inside is None else self.blocks[inside]).append(line)
            op = OP.match(line) if inside else None
            if op:
                self.ops[inside, op[1]] = line[op.end() :]
                if line.lstrip().startswith("ROOT"):
                    self.roots[inside] = op[1]

    def names(self, key):
        """(operands, called computations) of an op, in order."""
        text = self.ops[key].partition(", metadata=")[0]
        called = [name for part in CALLED.findall(text) for name in WORD.findall(part)]
        return WORD.findall(CALLED.sub("", text)), called


def pairs(old, new):
    """({(computation, op): its name in `new`}, {computation: its name in `new`}): both programs gone through from their results backwards, as far as
    they have the same form. What is met twice keeps its first name."""
    ops, computations, taken = {}, {}, set()
    stack = [(None, None, old.entry, new.entry)]
    while stack:
        inside_old, inside_new, a, b = stack.pop()
        if inside_old is None:
            if a in old.roots and b in new.roots and a not in computations and b not in computations.values():
                computations[a] = b
                stack.append((a, b, old.roots[a], new.roots[b]))
            continue
        here, there = (inside_old, a), (inside_new, b)
        if here not in old.ops or there not in new.ops or here in ops or there in taken:
            continue
        ops[here] = b
        taken.add(there)
        (operands, called), (others, others_called) = old.names(here), new.names(there)
        if len(operands) == len(others) and len(called) == len(others_called):
            stack += [(None, None, x, y) for x, y in zip(called, others_called)]
            stack += [(inside_old, inside_new, x, y) for x, y in zip(operands, others)]
    return ops, computations


def renamed(line, inside, ops, computations):
    """A line of the computation `inside` with the names given; a name that another one has taken is marked, so that no two are alike."""
    taken = ops["taken", inside]

    def op(found):
        name = found[0]
        return ops["names"].get((inside, name)) or (name + ".before" if name in taken else name)

    def called(found):
        return WORD.sub(lambda name: computations.get(name[0], name[0]), found[0])

    line, quote, rest = line.partition(", metadata=")
    parts, last = [], 0
    for found in CALLED.finditer(line):
        parts += [WORD.sub(op, line[last : found.start()]), called(found)]
        last = found.end()
    return "".join([*parts, WORD.sub(op, line[last:]), quote, rest])


def in_order(body, sequence):
    """The lines of a computation, of which its ops that `sequence` names come in its order, and the others before their first reader. Until a program
    is scheduled the order of its lines means nothing, so long as operands come first."""
    ops = {OP.match(line)[1]: line for line in body if OP.match(line)}
    root = next((name for name, line in ops.items() if line.lstrip().startswith("ROOT")), None)
    out, seen = [], set()

    def put(name):
        stack = [(name, False)]
        while stack:
            name, ready = stack.pop()
            if ready:
                out.append(ops[name])
            elif name in ops and name not in seen:
                seen.add(name)
                line = ops[name].partition(", metadata=")[0]
                stack.append((name, True))
                stack += [(operand, False) for operand in reversed(WORD.findall(CALLED.sub("", line))[1:])]

    for name in [*sequence, *ops]:
        if name != root:
            put(name)
    put(root)
    return out + [line for line in body if not OP.match(line)]


def aligned(lines, names, new):
    """`lines` with the names of `pairs`, and with computations and ops in the order of `new` where they are in it."""
    given, computations = names
    program = Program(lines)
    ops = {"names": given}
    for inside in program.blocks:
        ops["taken", inside] = {new for (where, _), new in given.items() if where == inside}
    place = {name: k for k, name in enumerate(new.blocks)}
    sequence = {inside: [OP.match(line)[1] for line in block if OP.match(line)] for inside, block in new.blocks.items()}
    blocks = []
    for k, (inside, block) in enumerate(program.blocks.items()):
        name = computations.get(inside, inside)
        head = WORD.sub(lambda found, name=name: name, block[0], count=1)
        body = [renamed(line, inside, ops, computations) for line in block[1:] if line]  # empty lines between computations are put in anew
        body = in_order(body, sequence.get(name, []))
        blocks.append(
            (name == computations.get(program.entry, program.entry), place.get(name, len(place) + k), [parameters(head, inside, given), *body])
        )
    blocks.sort(key=lambda block: block[:2])
    out = list(program.before)
    for k, (_, _, block) in enumerate(blocks):
        out += [*([""] if k else []), *block]
    return out


def parameters(head, inside, given):
    """The first line of a computation, whose parameters have no % there."""
    return re.sub(r"(?<=[(, ])([\w.\-]+)(?=: )", lambda found: given.get((inside, "%" + found[1]), "%" + found[1])[1:], head)


def align(stages, last):
    """`stages`, lists of lines of HLO text that were made from one another, with the names and the order of `last`, the same program as the last of
    them."""
    if not stages:
        return []
    new = Program(last)
    names = pairs(Program(stages[-1]), new)
    return [aligned(lines, names, new) for lines in stages]
