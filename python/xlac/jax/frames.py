"""Whose lines the ops of a program count for. JAX notes the whole stack of Python's frames beside an op, and the innermost is often a library's (the
product in flax's linear.py): here that of the user's own code takes its place."""
import functools
import inspect
import os
import re
import sysconfig

OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
STANDARD = sysconfig.get_path("stdlib") + os.sep
INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))

DEFINED = re.compile(r"(#loc\d*) = loc\((.*)\)$")
FILE = re.compile(r'"((?:[^"\\]|\\.)*)":\d+:\d+')
NAMED = re.compile(r'"(?:[^"\\]|\\.)*"\((#loc\d*)\)$')
CALLED = re.compile(r"callsite\((#loc\d*) at (#loc\d*)\)$")


def of_a_library(file):
    """Whether the file is of an installed package, of Python's own, or of xlac."""
    return any(folder in file for folder in INSTALLED) or file.startswith((OURS, STANDARD))


def file_of(function):
    """The file in which a function is written, under what wraps it; "" where that can't be told."""
    while True:
        inner = getattr(function, "__wrapped__", None) or getattr(function, "__func__", None)
        if inner is None and isinstance(function, functools.partial):
            inner = function.func
        if inner is None:
            break
        function = inner
    code = getattr(function, "__code__", None) or getattr(inspect.getattr_static(type(function), "__call__", None), "__code__", None)
    return code.co_filename if inspect.iscode(code) else ""


class Frames:
    """The locations that a program's text defines, by their names."""

    def __init__(self, lines):
        self.known = {m[1]: m[2] for m in map(DEFINED.match, lines) if m}
        self.files, self.better = {}, {}

    def file(self, name):
        """Of the innermost frame that counts; "" where there is none."""
        if name not in self.files:
            self.files[name] = ""
            self.files[name] = self.look(name)
        return self.files[name]

    def look(self, name):
        text = self.known.get(name, "")
        if m := FILE.match(text):
            return re.sub(r"\\(.)", r"\1", m[1])
        if m := NAMED.match(text):
            return self.file(m[1])
        if not (m := CALLED.match(text)):
            return ""
        callee, caller = self.file(m[1]), self.file(m[2])
        if not of_a_library(callee) or not caller or of_a_library(caller):
            return callee
        self.better[name] = m[2]
        return caller

    def line(self, line):
        """The same definition, in which the user's frame comes first."""
        m = DEFINED.match(line)
        if not m:
            return line
        self.file(m[1])
        caller = self.better.get(m[1])
        return f"{m[1]} = loc(callsite({caller} at {caller}))" if caller else line


def of_the_user(text):
    """The program's text, with the user's lines before those of libraries."""
    lines = text.splitlines()
    frames = Frames(lines)
    return "\n".join(frames.line(line) if line.startswith("#loc") else line for line in lines) + "\n"


class Located:
    """What JAX has lowered, as xlac takes it, with the user's lines in it."""

    def __init__(self, lowered):
        self.lowered = lowered

    def __getattr__(self, name):
        return getattr(self.lowered, name)

    def as_text(self, debug_info=True):
        return of_the_user(self.lowered.as_text(debug_info=debug_info))
