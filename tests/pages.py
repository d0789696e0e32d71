"""Runs a page of the documentation as its reader would: from top to bottom in an empty folder. Python blocks share one namespace; shell blocks run in
the folder; "Save this as `NAME`" before a block writes it to that file instead. What a page prints in blocks without a language is compared.

  python tests/pages.py PAGE [--varies] [--skip BEGINNING ...]      in the folder where the process is"""
import argparse
import ast
import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.M | re.S)
VARIES = re.compile(r"\d (us|ms|s|ns)\b|\d%|\.\.\.$|^\s*$")  # times and shares are the machine's


def blocks(path):
    """(language, text, the line of text before) of each block."""
    page = path.read_text()
    for found in FENCE.finditer(page):
        before = [line for line in page[:found.start()].splitlines() if line.strip()]
        yield found[1], found[2], before[-1] if before else ""


VALUE = re.compile(r"\S.*\S\s+# (['\[(<a{].*|True|False|\d+)$")


def run_python(code, namespace):
    """Runs a block, statement by statement, and checks that expressions with a comment of their value have that value. Gives what it prints."""
    printed, lines = io.StringIO(), code.split("\n")
    with contextlib.redirect_stdout(printed):
        for node in ast.parse(code).body:
            said = VALUE.match(lines[node.end_lineno - 1])
            if isinstance(node, ast.Expr) and said and "print" not in said[0]:
                value = eval(compile(ast.Expression(node.value), "page", "eval"), namespace)  # noqa: S307
                shown = " ".join(repr(value).split())
                assert said[1].startswith(("a ", "an ")) or shown == said[1], f"{said[0]}: {shown}"
            else:
                exec(compile(ast.Module([node], []), "page", "exec"), namespace)  # noqa: S102
    return printed.getvalue()


def commands(folder):
    """A folder for PATH with `python` and `xlac` of this environment."""
    bin = folder / ".bin"
    bin.mkdir(exist_ok=True)
    for name, line in (("python", ""), ("xlac", "-m xlac ")):
        (bin / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {line}"$@"\n')
        (bin / name).chmod(0o755)
    return bin


class Reader:
    """Somebody who does what a page says, in `folder`. `skipped` are the beginnings of shell lines that are left out; `varies` says that what is
    printed is that of another machine."""

    def __init__(self, folder, skipped=(), varies=False):
        self.folder, self.skipped, self.varies = folder, skipped, varies
        self.namespace, self.printed, self.ran = {"__name__": "page"}, "", 0

    def shell(self, text):
        lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith(tuple(self.skipped))]
        if not lines:
            return ""
        env = {**os.environ, "PATH": f"{commands(self.folder)}:{os.environ['PATH']}", "NO_COLOR": "1"}
        done = subprocess.run(["bash", "-c", "\n".join(lines)], cwd=self.folder, env=env, capture_output=True, text=True)
        assert done.returncode in (0, 1) and "Traceback" not in done.stderr and "usage:" not in done.stderr, f"{lines}\n{done.stderr}"
        return done.stdout + done.stderr

    def compare(self, text):
        said = {" ".join(line.split()) for line in self.printed.replace(f"{self.folder}/", "").splitlines()}
        for line in text.splitlines():
            if not VARIES.search(line) and not line.startswith("$ "):
                assert " ".join(line.split()) in said, f"{line!r} is not printed, but\n{self.printed}"

    def do(self, language, text, before):
        save = re.search(r"\b[Ss]ave .*as `([\w./-]+)`", before)
        if save:
            (self.folder / save[1]).write_text(text)
        elif language == "python":
            self.printed = run_python(text, self.namespace)
            self.ran += 1
        elif language == "sh":
            self.printed = self.shell(text)
            self.ran += 1
        elif language == "" and self.printed and not self.varies:
            self.compare(text)

    def read(self, page):
        for block in blocks(page):
            self.do(*block)
        assert self.ran, f"nothing of {page} was run"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--varies", action="store_true")
    parser.add_argument("--skip", action="append", default=[])
    args = parser.parse_args()
    sys.path.insert(0, os.getcwd())  # what was saved can be imported, as by `python`
    reader = Reader(pathlib.Path.cwd(), args.skip, args.varies)
    reader.read(args.page)
    print(f"{reader.ran} blocks")


if __name__ == "__main__":
    main()
