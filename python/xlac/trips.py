"""How often the loops of a program in HLO form turn, where constants say it: a counter that begins, goes on and ends by them."""
import operator
import re

ENDS = {"LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "NE": operator.ne}
SWAPPED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE"}
PLAIN = ("copy", "reshape", "bitcast", "broadcast", "convert")
MOST = 10**9


def number(op):
    """The integer that an op is, or None."""
    while op.opcode in PLAIN:
        op = op.operands[0]
    if op.opcode != "constant":
        return None
    try:
        return int(op.constant.reshape(-1)[0]) if op.constant.size == 1 else None
    except (TypeError, ValueError, AttributeError):
        return None


def element(op, parameter):
    """Of which element of the state op is, or None."""
    while op.opcode in PLAIN:
        op = op.operands[0]
    if op.opcode == "get-tuple-element" and op.operands[0] == parameter:
        return int(op.attributes["index"])
    return None


def is_same(root, at, parameter):
    """Whether the body leaves that element as it was."""
    return root.opcode == "tuple" and element(root.operands[at], parameter) == at


def known(loop):
    """What the compiler of the program wrote down, as XLA does."""
    found = re.search(r'known_trip_count\\?"?:\s*{\\?"?n\\?"?:\\?"?(\d+)', str(dict(loop.attributes).get("backend_config", "")))
    return int(found[1]) if found else None


def counted(loop):
    """From a condition that compares a counter with what never changes."""
    condition, body = (next(c for c in loop.called if c.name == str(loop.attributes[key]).lstrip("%")) for key in ("condition", "body"))
    test, init = condition.root, loop.operands[0]
    if test.opcode != "compare" or init.opcode != "tuple":
        return None
    parameter, inside, root = condition.parameters[0], body.parameters[0], body.root
    direction, (one, other) = str(test.attributes["direction"]), test.operands
    if element(one, parameter) is None or (element(other, parameter) is not None and is_same(root, element(one, parameter), inside)):
        one, other, direction = other, one, SWAPPED.get(direction)
    at, end, limit = element(one, parameter), element(other, parameter), number(other)
    if at is None or direction not in ENDS or root.opcode != "tuple":
        return None
    if end is not None and is_same(root, end, inside):
        limit = number(init.operands[end])
    start, by = number(init.operands[at]), step_of(root.operands[at], at, inside, root, init)
    if None in (start, limit, by):
        return None
    return turns(start, limit, by, ENDS[direction])


def step_of(next_value, at, inside, root, init):
    if next_value.opcode not in ("add", "subtract"):
        return None
    for one, other in (next_value.operands, next_value.operands[::-1]):
        if element(one, inside) == at and (next_value.opcode == "add" or one == next_value.operands[0]):
            kept = element(other, inside)
            by = number(init.operands[kept]) if kept is not None and is_same(root, kept, inside) else number(other)
            return by if by is None or next_value.opcode == "add" else -by
    return None


def turns(start, limit, by, goes_on):
    if not goes_on(start, limit):
        return 0
    if by == 0:
        return None
    estimate = max(0, (limit - start) // by)
    count = next((n for n in range(max(0, estimate - 1), estimate + 3) if not goes_on(start + n * by, limit)), None)
    return count if count is not None and count <= MOST else None


def trips_of(module):
    """{(computation, op): turns} of the while loops of a module, None where nobody knows."""
    found = {}
    for computation in module.computations:
        for op in computation:
            if op.opcode == "while":
                turned = known(op)
                found[computation.name, op.name] = counted(op) if turned is None else turned
    return found
