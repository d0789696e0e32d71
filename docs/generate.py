"""Writes the pages that come from tables: ops.md from csrc/ir/ops.def, errors.md from csrc/base/errors.def, dtypes.md from
csrc/base/dtypes.def, passes.md from csrc/pipeline/passes.def; the type stubs of what Python makes of the op table; and codes.py, the
error codes by name. Run it after editing a table; tests/test_docs.py fails when a page is out of date."""
import collections
import keyword
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))
import api_pages  # noqa: E402
import rooms  # noqa: E402


def balanced(text, start):
    """The text between the parenthesis at `start` and its match."""
    depth, quoted = 0, False
    for i in range(start, len(text)):
        c = text[i]
        if c == '"' and text[i - 1] != "\\":
            quoted = not quoted
        if quoted:
            continue
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return text[start + 1:i]
    raise ValueError("unbalanced parentheses")


def strings(text):
    """The C string literals of `text`, joined as the compiler would."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace('\\"', '"')


def rows(text, macro):
    """The argument text of every use of `macro` at the start of a line."""
    return [balanced(text, m.end() - 1) for m in re.finditer(rf"^{macro}\(", text, re.M)]


def column(row, name):
    m = re.search(rf"\b{name}\(", row)
    return " ".join(balanced(row, m.end() - 1).split()) if m else ""


def op_rows(table="ops.def"):
    """The rows of ops.def (HLO's), or of ops_mlir.def (those that only MLIR form has)."""
    text = (ROOT / "csrc/ir" / table).read_text()
    attrs = dict(re.findall(r'^ATTR\((\w+), "([^"]+)"', (ROOT / "csrc/ir/attrs/attrs.def").read_text(), re.M))
    for row in rows(text, "OP"):
        code, name, arity = [p.strip() for p in row.split(",", 3)[:3]]
        yield {
            "name": name.strip('"'), "arity": "any" if arity == "IR_VARIADIC" else arity,
            "types": [t[5:].lower() for t in re.findall(r"IR_T_\w+", column(row, "TYPES"))],
            "traits": [t[3:].lower().replace("_", " ") for t in re.findall(r"IR_\w+", column(row, "TRAITS"))],
            "attrs": [(attrs[k], "IR_REQUIRED" in flags) for k, flags in re.findall(r"\bA\((\w+), ([^)]*)\)", row)],
            "doc": strings(column(row, "DOC")), **mlir_facts(row),
        }


def mlir_facts(row):
    name = re.search(r'MLIR\("([^"]+)"', row)
    own = re.findall(r"\bMS?\((\w+), [^)]*?(IR_REQUIRED|IR_OPTIONAL)", row)
    return {"mlir": name[1] if name else None, "mlir_attrs": [(a, flag == "IR_REQUIRED") for a, flag in own]}


def mlir_only_section():
    out = ["# Operations that only MLIR form has", "", "Generated from `csrc/ir/ops_mlir.def`: HLO has no such ops.", ""]
    for op in op_rows("ops_mlir.def"):
        attrs = ", ".join(f"**`{a}`**" if required else f"`{a}`" for a, required in op["mlir_attrs"])
        out += [f"## {op['name']}", "", op["doc"], "", f"- operands: {op['arity']}"]
        out += [f"- attributes: {attrs}"] * bool(attrs) + [""]
    return out


def ops_page():
    out = ["# Operations", "", "Generated from `csrc/ir/ops.def` by `docs/generate.py`. Attributes in bold are required.",
           "Every op may also carry `sharding`, `frontend_attributes`, `control-predecessors`, `metadata`, `backend_config`,",
           "`origin` and `statistics`.", ""]
    for op in op_rows():
        out += [f"## {op['name']}", "", op["doc"], "", f"- operands: {op['arity']}"]
        if op["mlir"]:
            out.append(f"- in MLIR: `{op['mlir']}`")
        if op["types"]:
            out.append(f"- element types of the first operand: {', '.join(op['types'])}")
        if op["traits"]:
            out.append(f"- traits: {', '.join(op['traits'])}")
        if op["attrs"]:
            out.append("- attributes: " + ", ".join(f"**`{n}`**" if req else f"`{n}`" for n, req in op["attrs"]))
        out.append("")
    return "\n".join(out)


def errors_page():
    out = ["# Error codes", "", "Generated from `csrc/base/errors.def` by `docs/generate.py`. The numbers are stable.", ""]
    for row in rows((ROOT / "csrc/base/errors.def").read_text(), "ERROR"):
        name, number, title = [p.strip() for p in row.split(",", 2)]
        out += [f"## XLAC-E{int(number):04d} {name.lower().replace('_', ' ')}", "", strings(title)[:1].upper() +
                strings(title)[1:] + ".", ""]
    return "\n".join(out)


def dtype_rows():
    """Name, text, kind and numbers of the rows of dtypes.def; a NARROW row is a DTYPE of kind FLOAT."""
    text = (ROOT / "csrc/base/dtypes.def").read_text()
    for m in re.finditer(r"^(DTYPE|NARROW)\((.+)\n(.+)$", text, re.M):
        parts = split_arguments(m[2])
        yield (parts if m[1] == "DTYPE" else [*parts[:2], "FLOAT", *parts[2:]]), m[3]


def dtypes_page():
    out = ["# Element types", "", "Generated from `csrc/base/dtypes.def` by `docs/generate.py`.", "",
           "| type | kind | bits | bytes in memory | exponent | mantissa | bias |", "|---|---|--:|--:|--:|--:|--:|"]
    for p, _ in dtype_rows():
        out.append(f"| `{p[1].strip(chr(34))}` | {p[2].lower()} | " + " | ".join(p[3:8]) + " |")
    return "\n".join(out) + "\n"


def split_arguments(text):
    """The arguments of a macro call, at top level."""
    parts, depth, quoted, start = [], 0, False, 0
    for i, c in enumerate(text):
        if c == '"' and text[i - 1:i] != "\\":
            quoted = not quoted
        if quoted:
            continue
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return parts + [text[start:].strip()]


def passes_page():
    out = ["# Passes", "", "Generated from `csrc/pipeline/passes.def` by `docs/generate.py`. A pipeline is a list of passes with "
           "their options,", "`dce,constant-folding{max-elements=1000 max-work=8}`, alone or inside `builtin.module(...)`.", ""]
    for row in rows((ROOT / "csrc/pipeline/passes.def").read_text(), "PASS"):
        name, _, form, options, doc = split_arguments(row)
        out += [f"## {strings(name)}", "", f"{'HLO' if form == 'HLO' else 'StableHLO'}. {strings(doc)}", ""]
        options = re.sub(r"^OPTIONS", "", options)[1:-1]
        for m in re.finditer(r"\b(BOOL|INT|TEXT)\(", options):
            p = split_arguments(balanced(options, m.end() - 1))
            kind = {"BOOL": "true or false", "INT": "a number", "TEXT": "a text"}[m[1]]
            default = "" if m[1] == "TEXT" else f", default {p[1]}"
            out.append(f"- `{strings(p[0])}` ({kind}{default}): {strings(p[-1])}")
        if options.strip():
            out.append("")
    return "\n".join(out)


BUILDER_STUB = """\
# Generated from csrc/ir/ops.def by docs/generate.py.
from collections.abc import Sequence
from typing import Any

from ._core import Computation, Module
from .value import Value

class Builder:
    def __init__(self, name: str = "module", *, entry: str = "main") -> None: ...
    @property
    def module(self) -> Module: ...
    @property
    def computation(self) -> Computation: ...
    def sub_builder(self, name: str) -> Builder: ...
    def value(self, x: Any) -> Value: ...
    def op(self, opcode: str, *operands: Any, type: Any = None, name: str | None = None, **attributes: Any) -> Value: ...
    def matmul(self, lhs: Any, rhs: Any, *, name: str | None = None, **attributes: Any) -> Value: ...
    def set_up_alias(self, output_index: int | Sequence[int], parameter: int, parameter_index: int | Sequence[int] = (),
                     kind: str = "may") -> None: ...
    def add_buffer_donor(self, parameter: int, parameter_index: int | Sequence[int] = ()) -> None: ...
    def set_root(self, root: Any) -> None: ...
    def build(self, root: Any = None) -> Module: ...
"""

# Ops whose methods have arguments of their own.
BUILDER_FORMS = {
    "parameter": "self, number: int, type: Any, name: str | None = None",
    "constant": "self, value: Any, dtype: Any = None, name: str | None = None",
    "reshape": "self, operand: Any, dims: Sequence[int] | None = None, *, type: Any = None, name: str | None = None, {rest}",
    "broadcast": "self, operand: Any, dims: Sequence[int] | None = None, dimensions: Sequence[int] = (), *, type: Any = None,"
                 " name: str | None = None, {rest}",
    "convert": "self, operand: Any, dtype: Any = None, *, type: Any = None, name: str | None = None, {rest}",
    "bitcast-convert": "self, operand: Any, dtype: Any = None, dims: Sequence[int] | None = None, *, type: Any = None,"
                       " name: str | None = None, {rest}",
    "iota": "self, type: Any, iota_dimension: int = 0, *, name: str | None = None, {rest}",
    "transpose": "self, operand: Any, dimensions: Sequence[int] | None = None, *, name: str | None = None, {rest}",
    "get-tuple-element": "self, operand: Any, index: int, *, name: str | None = None, {rest}",
    "compare": "self, lhs: Any, rhs: Any, direction: str = \"EQ\", *, name: str | None = None, {rest}",
}


def builder_stub():
    out = [BUILDER_STUB.rstrip()]
    for op in op_rows():
        name = op["name"].replace("-", "_")
        name += "_" if keyword.iskeyword(name) else ""
        own = "".join(f"{a}: Any{'' if required else ' = None'}, " for a, required in op["attrs"])
        form = BUILDER_FORMS.get(op["name"], "self, *operands: Any, type: Any = None, name: str | None = None, " + own + "{rest}")
        out.append(f"    def {name}({form.format(rest='**attributes: Any')}) -> Value: ...")
    return "\n".join(out) + "\n"


def opcode_stub():
    out = ["# Generated from csrc/ir/ops.def by docs/generate.py.", "import enum", "", "class Opcode(enum.Enum):"]
    for op in [*op_rows(), *op_rows("ops_mlir.def")]:
        name = op["name"].replace("-", "_").replace(".", "_").upper()
        out.append(f'    {name} = "{op["name"]}"')
    return "\n".join(out) + "\n"


def codes_module():
    """Names for the codes, for Python."""
    out = ['"""Generated from csrc/base/errors.def by docs/generate.py."""', "", "", "class Code:",
           '    """The stable numbers of errors: Error.code is one of them, or 0."""', ""]
    for row in rows((ROOT / "csrc/base/errors.def").read_text(), "ERROR"):
        name, number, title = [p.strip() for p in row.split(",", 2)]
        out.append(f"    {name} = {int(number)}  # {strings(title)}")
    return "\n".join(out) + "\n"


VHLO = """/* The ops of VHLO, sorted by name: ROW(name, what it is in StableHLO, its first and last version, its attributes sorted by
 * name, which is the order of its properties). Generated by docs/generate.py from column VHLO of ir/ops.def. */
"""
NO_OPS = [("func_v1", "INVALID", "0.9", "", "arg_attrs function_type res_attrs sym_name sym_visibility"), ("return_v1", "INVALID", "0.9", "", "")]


def vhlo_ops():
    """text/bytecode/vhlo_ops.def. Functions and their returns are no ops here, so they have no row in ops.def."""
    found = list(NO_OPS)
    for table in ("ops.def", "ops_mlir.def"):
        for row in rows((ROOT / "csrc/ir" / table).read_text(), "OP"):
            code = row.split(",", 1)[0].strip()
            found += [(m[1], code, m[2], m[3], m[4]) for m in re.finditer(r'VHLO\("([^"]*)", "([^"]*)", "([^"]*)", "([^"]*)"\)', row)]

    def version(text):
        return f"BC_V({text.replace('.', ', ')})" if text else "BC_NOW"
    return VHLO + "".join(f'ROW("{name}", {code}, {version(first)}, {version(last)}, "{attrs}")\n' for name, code, first, last, attrs in sorted(found))


def ffi_header():
    """xlac_ffi.h with the numbers of element types that dtypes.def gives; the rest of it is written by hand."""
    text = (ROOT / "csrc/include/xlac_ffi.h").read_text()
    numbers = {17: "  XLAC_FFI_TOKEN = 17, /* no data */"}
    for p, columns in dtype_rows():
        own, proto = column(columns, "FFI"), int(split_arguments(column(columns, "PROTO"))[0])
        number = int(own or proto)
        numbers[number] = f"  XLAC_FFI_{p[0]} = {number}," + " /* not XLA's */" * bool(own)
    head, rest = text.split("enum {\n  XLAC_FFI_PRED", 1)
    numbers[max(numbers)] = numbers[max(numbers)].replace(", ", "  ").rstrip(",")  # as clang-format has it
    return head + "enum {\n" + "\n".join(numbers[n] for n in sorted(numbers)) + "\n};" + rest.split("\n};", 1)[1]


TF_WORDS = """/* The words of ops.def, each once, and its rows made of them: WORD(number, text), the most used first; ROW(where its columns begin,
 * name, flags, use of resources) and its columns: W(number) for each of a column's words, END after a column. Generated by docs/generate.py. */
"""


def tf_words():
    """tf/graph/ops_words.def: half the bytes of the columns as text."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "csrc/tf/graph/ops.def").read_text(), flags=re.S)
    found, numbers = [], collections.Counter()
    for macro, body in re.findall(r"^TF_(XLA_OP|OP)\(((?:[^\n]|\n(?!TF_))*)\)$", text, re.M):
        name, inputs, outputs, attrs, flags, *rest = split_arguments(body)
        columns = [strings(c).split() for c in (inputs, outputs, attrs, *rest[:3])]
        numbers.update(word for column in columns for word in column)
        compiled = macro == "XLA_OP"
        found.append((name, f"({flags}) | TF_OP_XLA" if compiled else flags, rest[3] if compiled else "NONE", columns))
    assert [row[0] for row in found] == sorted((row[0] for row in found), key=lambda name: name.strip('"').encode()), "sorted by name"
    words = {word: i for i, (word, _) in enumerate(sorted(numbers.items(), key=lambda item: (-item[1], item[0])))}
    out, first = [f'WORD({i}, "{word}")' for word, i in words.items()], 0
    for name, flags, use, columns in found:
        out.append(f"ROW({first}, {name}, {flags}, {use}) " + " ".join("".join(f"W({words[word]}) " for word in c) + "END" for c in columns))
        first += sum(len(column) + 1 for column in columns)
    return TF_WORDS + "\n".join(out) + "\n"


ONE_FILE = """/* The whole core as one file, for who embeds it: cc -std=gnu11 -O2 app.c csrc/xlac_all.c -lm -lpthread -ldl. Every file
 * but those of py/. Generated by docs/generate.py: the rooms of LAYERS from the bottom up. */
"""


def one_file():
    """xlac_all.c: an include of every file."""
    csrc = ROOT / "csrc"
    names = [line.split()[0] for line in (csrc / "LAYERS").read_text().splitlines() if line and not line.startswith("#")]
    files = [p.relative_to(csrc).as_posix() for room in reversed(names) if room != "py" for p in sorted((csrc / room).rglob("*.c"))]
    return ONE_FILE + "".join(f'#include "{file}"\n' for file in files)


PAGES = {"docs/ops.md": ops_page, "docs/errors.md": errors_page, "docs/dtypes.md": dtypes_page, "docs/passes.md": passes_page, "docs/api.md": api_pages.api_page, "docs/cli.md": api_pages.cli_page,
         "docs/img/rooms.svg": rooms.picture,
         "python/xlac/builder.pyi": builder_stub, "python/xlac/opcode.pyi": opcode_stub, "python/xlac/codes.py": codes_module,
         "csrc/include/xlac_ffi.h": ffi_header, "csrc/xlac_all.c": one_file,
         "csrc/text/bytecode/vhlo_ops.def": vhlo_ops, "csrc/tf/graph/ops_words.def": tf_words}


def main(check):
    stale = []
    for name, make in PAGES.items():
        path = ROOT / name
        try:
            text = make()
        except ImportError as error:
            print(f"{name} is left as it is, since xlac can't be imported: {error}", file=sys.stderr)
            continue
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if not check:
                path.write_text(text)
    if check and stale:
        sys.exit(f"out of date: {', '.join(stale)}; run python docs/generate.py")


if __name__ == "__main__":
    main("--check" in sys.argv[1:])
