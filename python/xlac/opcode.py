"""The Opcode enum, made from the op table."""
import enum
import keyword

from . import _core


def identifier(name):
    """"all-reduce" as a Python name: ALL_REDUCE."""
    name = name.replace("-", "_").replace(".", "_").upper()
    return name + "_" if keyword.iskeyword(name) else name


Opcode = enum.Enum("Opcode", {identifier(row["name"]): row["name"] for row in _core.opcode_table()}, module=__name__)
Opcode.__doc__ = "Every op; the value is its HLO name."
