"""Attributes of instructions: a mapping of their text, and text made of Python values."""
import collections.abc
import enum
import functools
import numbers

from . import _core
from .codes import Code
from .errors import Error



@functools.cache
def called_keys(opcode):
    """The attributes of an op that name computations."""
    row = row_of(opcode)
    return tuple(key for key, kind, _ in row["attrs"] if kind == "called") if row else ()


class Attributes(collections.abc.MutableMapping):
    """The attributes of an instruction by name, each as the text that stands after "name=" in HLO.

    Values assigned may also be Python values: see `to_text`. Called computations and control predecessors are among them."""

    def __init__(self, instruction):
        self._instruction = instruction

    def __getitem__(self, key):
        text = self._instruction._get_attr(key)
        if text is None:
            raise KeyError(key)
        return text

    def __setitem__(self, key, value):
        self._instruction._set_attr(key, value if isinstance(value, str) else to_text(key, value))

    def __delitem__(self, key):
        if key not in self:
            raise KeyError(key)
        self._instruction._set_attr(key, None)

    def __iter__(self):
        seen = list(dict.fromkeys(self._instruction._attr_keys()))
        more = [*called_keys(self._instruction.opcode), "control-predecessors"]
        return iter(seen + [key for key in more if key not in seen and self._instruction._get_attr(key) is not None])

    def __len__(self):
        return len(list(iter(self)))

    def __contains__(self, key):
        return isinstance(key, str) and self._instruction._get_attr(key) is not None

    def __repr__(self):
        return f"Attributes({dict(self)!r})"


# --- Python values as text ---

def row_of(opcode):
    """The op's row of the table; None where there is no such op."""
    return next((row for row in _core.opcode_table() if row["name"] == opcode), None)


def made(computation, opcode, operands, texts, type, name):
    """A new op of a computation; an op that there is not is an error that names the nearest ones."""
    try:
        return computation._create(opcode, operands, texts, type, name)
    except Error as error:
        if error.code == Code.UNKNOWN_OPCODE and not error.hint:
            import difflib

            near = difflib.get_close_matches(str(opcode).replace("_", "-"), [row["name"] for row in _core.opcode_table()], 2)
            error.hint = f"did you mean {' or '.join(near)}?" if near else "docs/ops.md and `xlac ops` list the ops"
        raise


def attributes_hint(keyword, opcode):
    """What an op has instead of an attribute that there is not."""
    import difflib

    row = row_of(opcode)
    known = [key for key, _, _ in row["attrs"]] if row else []
    near = difflib.get_close_matches(keyword, known, 1)
    return f"did you mean {near[0]}?" if near else f"{opcode} has {', '.join(known)}" if known else ""


def name_of(keyword, opcode=None):
    """The attribute that a Python keyword argument of an op stands for: control_predecessors, type_."""
    bare = keyword.rstrip("_")
    for name in (bare, bare.replace("_", "-")):
        if _core.attr_kind(name):
            return name
    raise Error(f"no op has an attribute {keyword!r}", Code.BAD_ATTRIBUTE, hint=attributes_hint(keyword, opcode))


def quoted(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def word(value):
    """A bare word: True, 3, "highest" or an enum's member."""
    if isinstance(value, enum.Enum):
        value = value.value
    return str(value).lower() if isinstance(value, bool) else str(value)


def integer(value):
    return str(int(value)) if isinstance(value, numbers.Real) and not isinstance(value, bool) else str(value.__index__())


def braces(items):
    return "{" + ", ".join(items) + "}"


def ints(values):
    values = [values] if isinstance(values, numbers.Integral) else list(values)
    if values and isinstance(values[0], (list, tuple)):
        return int_lists(values)  # slice_sizes of collective-permute
    return "{" + ",".join(integer(v) for v in values) + "}"


def int_lists(values):
    return "{" + ",".join(ints(v) for v in values) + "}"


def padding(values):
    """[(low, high) or (low, high, interior), ...]"""
    return "x".join("_".join(integer(v) for v in row) for row in values)


def slices(values):
    """[(start, limit) or (start, limit, stride), ...], or Python slices that name both ends."""
    rows = [(v.start, v.stop, v.step or 1) if isinstance(v, slice) else v for v in values]
    return braces("[" + ":".join(integer(v) for v in row) + "]" for row in rows)


def window(value):
    """{"size": (3, 3), "stride": (2, 2), "pad": [(1, 1), (1, 1)], "lhs_dilate": ..., "rhs_dilate": ..., "rhs_reversal": ...}"""
    parts = []
    for key, row in value.items():
        text = padding(row) if key == "pad" else "x".join(integer(int(v)) for v in row)
        parts.append(f"{key}={text}")
    return braces([" ".join(parts)])


def dictionary(value):
    return "{" + ",".join(f"{key}={quoted(str(v))}" for key, v in value.items()) + "}"


def called(value):
    return braces(called(v) for v in value) if isinstance(value, (list, tuple)) else "%" + value.name


# Text stands for itself, but in attributes that are strings. Kinds that are not here have text only.
WRITERS = {
    "bool": lambda v: "true" if v else "false", "int": integer, "float": lambda v: repr(float(v)), "name": word,
    "names": lambda v: braces(word(x) for x in v), "ints": ints, "bools": lambda v: "{" + ",".join(map(word, v)) + "}",
    "int-lists": int_lists, "pairs": int_lists, "groups": int_lists, "padding": padding, "slice": slices, "window": window,
    "dict": dictionary, "called": called, "ops": lambda v: braces("%" + op.name for op in v),
    "types": lambda v: braces(v), "string": quoted, "conv-dims": word,
}


def to_text(key, value):
    """The value of attribute `key` as HLO text, from a Python value that fits its kind, or from such text itself."""
    kind = _core.attr_kind(key)
    if kind is None:
        raise Error(f"no op has an attribute {key!r}", Code.BAD_ATTRIBUTE)
    if isinstance(value, str) and (kind != "string" or value.startswith('"')):
        return value
    try:
        return WRITERS[kind](value)
    except (KeyError, TypeError, AttributeError, ValueError):
        raise Error(f"attribute {key} of kind {kind} can't be {value!r}", Code.BAD_ATTRIBUTE,
                    hint="docs/getting-started.md shows how attributes are written") from None
