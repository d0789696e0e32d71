"""The explorer: a program, how it was compiled and how it ran, as one HTML page that loads nothing (docs/explorer.md)."""
import base64
import gzip
import json
import pathlib
import re

from ..report import escape

FOLDER = pathlib.Path(__file__).parent
SCRIPTS = ("data.js", "tree.js", "diff.js", "layout.js", "graph.js", "panels.js", "main.js")


class Page(str):
    """The HTML of an explorer. In a notebook it shows itself, in a frame; `save(path)` writes it."""

    def save(self, path):
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(self)

    def __repr__(self):
        return f"<xlac explorer page, {len(self)} characters: .save(path) writes it>"

    def _repr_html_(self, height=720):
        return f'<iframe title="xlac explorer" style="width:100%;height:{height}px;border:1px solid #8888" srcdoc="{escape(self)}"></iframe>'


def packed(data):
    """JSON that the page unpacks: text of programs repeats itself, and a browser reads gzip."""
    raw = json.dumps(data, separators=(",", ":")).encode("utf-8", "replace")
    return base64.b64encode(gzip.compress(raw, 6, mtime=0)).decode()


def read(name):
    return (FOLDER / name).read_text(encoding="utf-8")


def page_of(parts, title):
    """parts: {name: data}. "main" is unpacked when the page opens, the others when they are first looked at."""
    data = "\n".join(f'<script type="application/gzip" id="data-{name}">{packed(part)}</script>' for name, part in parts.items())
    filled = {"TITLE": escape(title), "STYLE": read("page.css"), "DATA": data, "SCRIPT": "\n".join(map(read, SCRIPTS))}
    return Page(re.sub(r"\{\{(\w+)\}\}", lambda found: filled[found[1]], read("page.html")))


def explore(program, *arrays, profile=None, device="cpu", passes=True):
    """A page that shows a program with the scopes, calls and fusions of its ops, what each costs, what every pass changed, memory over time,
    kernels with their machine code, shardings and donation.

    Parameters
    ----------
    program : program, Executable or Clusters
        What is shown.
    *arrays : array-like
        Arguments: the program is run with them, and the page is coloured by what took how long.
    profile : Profile, optional
        Of a run, instead.
    device : str
        What to compile for.
    passes : bool
        Keep the states between passes, which takes space.

    Returns
    -------
    Page
        A str of HTML, which shows itself in a notebook; `.save("page.html")` writes it.
    """
    from ..clusters import Clusters
    from .gather import of_clusters, of_program

    if isinstance(program, Clusters):
        return page_of(*of_clusters(program))
    return page_of(*of_program(program, arrays, profile, device, passes))
