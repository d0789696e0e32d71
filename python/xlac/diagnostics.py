"""Errors as people read them: place, message, the line of the program with a caret, hint."""
import os

from . import _core

MARGIN = 90  # columns shown on either side of the caret in long lines


def counted(n, noun):
    """"1 op", "2 ops"."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def printable(raw):
    """Bytes of a program as text that is safe to show: one column a character, no control characters."""
    text = raw.decode("utf-8", "replace").replace("\t", " ")
    return "".join(c if c.isprintable() else "?" for c in text)


def source_line(source, line):
    """Line number `line`, counted from 1, of a program as bytes; None past its end."""
    at = 0
    for _ in range(line - 1):
        at = source.find(b"\n", at) + 1
        if at == 0:
            return None
    end = source.find(b"\n", at)
    return source[at:] if end < 0 else source[at:end]


def excerpt(source, line, col):
    """The line with a caret under column `col`, as two lines of text; empty where the place is not in the program."""
    raw = source_line(source, line) if line else None
    if raw is None:
        return []
    before, after = printable(raw[:max(col, 1) - 1]), printable(raw[max(col, 1) - 1:].rstrip(b"\r"))
    if len(before) > MARGIN:
        before = "..." + before[-MARGIN:]
    if len(after) > MARGIN:
        after = after[:MARGIN] + "..."
    number = f"{line:5}"
    return [f"{number} | {before}{after}", f"{' ' * len(number)} | {' ' * len(before)}^"]


def describe(error, path, source=b"", colour=False):
    """An xlac.Error about the program `source` read from `path`, in several lines."""
    red, bold, plain = ("\33[1;31m", "\33[1m", "\33[0m") if colour else ("", "", "")
    where = f"{path}:{error.line}:{error.col}" if error.line else path
    name = _core.error_table().get(error.code, ("", ""))[0]
    code = f" [XLAC-E{error.code:04d} {name}]" if error.code else ""
    lines = [f"{bold}{where}:{plain} {red}error:{plain} {error.message}{code}"]
    lines += excerpt(source, error.line, error.col)
    if error.hint:
        lines.append(f"  hint: {error.hint}")
    return "\n".join(lines)


def wants_colour(stream):
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
