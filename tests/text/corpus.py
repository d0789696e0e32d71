"""A program's way through every reader, printer and translation. What goes wrong on it comes as lines `stage: message`."""
import xlac


def again(stage, write, read, expected):
    """Nothing where what `read` gives is written as `expected`; a line where it isn't, or isn't read."""
    try:
        module = read()
        module.verify()
    except xlac.Error as e:
        return [f"{stage}: not read back: {e}"]
    return [] if write(module) == expected else [f"{stage}: written differently when read back"]


def refused_well(stage, e):
    """A refusal says where and what to do."""
    return [] if e.line or e.hint or e.op else [f"{stage}: refused without a place or a hint: {e}"]


def check_mlir(module):
    text = module.to_text()
    lines = again("text", lambda m: m.to_text(), lambda: xlac.parse(text, format="mlir"), text)
    generic = module.to_text(generic=True)
    lines += again("generic", lambda m: m.to_text(generic=True), lambda: xlac.parse(generic, format="mlir"), generic)
    lines += again("generic as default", lambda m: m.to_text(), lambda: xlac.parse(generic, format="mlir"), text)
    try:
        raw = module.to_bytes("mlir-bytecode")
    except xlac.Error as e:
        return lines + refused_well("to_bytes", e)
    # What is at its default in the text need not be in what the bytes give: the second bytes are the fixed point.
    try:
        second = xlac.parse(raw, format="mlir-bytecode").to_bytes("mlir-bytecode")
    except xlac.Error as e:
        return lines + [f"to_bytes: not read back: {e}"]
    return lines + again("to_bytes", lambda m: m.to_bytes("mlir-bytecode"), lambda: xlac.parse(second, format="mlir-bytecode"), second)


def check_hlo(module):
    text = module.to_text()
    lines = again("hlo text", lambda m: m.to_text(), lambda: xlac.parse(text, format="hlo"), text)
    raw = module.to_bytes("hlo-proto")
    return lines + again("hlo proto", lambda m: m.to_text(), lambda: xlac.parse(raw, format="hlo-proto"), text)


def check_translation(module):
    try:
        hlo = module.to_hlo()
    except xlac.Error as e:
        return refused_well("to_hlo", e)
    try:
        hlo.verify()
    except xlac.Error as e:
        return [f"to_hlo: does not verify: {e}"]
    return check_hlo(hlo)


def check_serialize(module):
    try:
        raw = xlac.compile(module, passes=False).serialize()
    except xlac.Error:
        return []
    try:
        return [] if xlac.load(raw).serialize() == raw else ["serialize: other bytes when loaded"]
    except xlac.Error as e:
        return [f"serialize: not loaded: {e}"]


def check(text):
    """None where the program isn't read or verified."""
    try:
        module = xlac.parse(text, format="mlir")
        module.verify()
    except xlac.Error:
        return None
    return check_mlir(module) + check_translation(module) + check_serialize(module)
