"""The picture of the rooms of csrc, from csrc/LAYERS: docs/img/rooms.svg. docs/generate.py writes it."""
import html
import pathlib
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
WIDTH, LEFT, NAME, GAP, LINE = 760, 20, 110, 8, 16
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 } .name { font-weight: 600 }
  rect { fill: #f6f8fa; stroke: #6e7781 } path { stroke: #57606a; fill: none }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } rect { fill: #161b22; stroke: #8b949e } path { stroke: #9ea7b3 } }
"""


def rooms():
    """(name, what it is), top first."""
    lines = (ROOT / "csrc/LAYERS").read_text().splitlines()
    return [tuple(line.split(None, 1)) for line in lines if line and not line.startswith("#")]


def picture():
    out, y = [], 44
    for name, what in rooms():
        lines = textwrap.wrap(what, 82)
        height = LINE * len(lines) + 12
        out.append(f'<g role="listitem" aria-label="{html.escape(name)}: {html.escape(what)}">'
                   f'<rect x="{LEFT}" y="{y}" width="{WIDTH - 2 * LEFT}" height="{height}" rx="5"/>'
                   f'<text class="name" x="{LEFT + 12}" y="{y + 20}">{html.escape(name)}</text>')
        out += [f'<text x="{LEFT + NAME}" y="{y + 20 + LINE * i}">{html.escape(line)}</text>' for i, line in enumerate(lines)]
        out.append("</g>")
        y += height + GAP
    arrow = WIDTH + 4
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" role="list" width="{WIDTH + 20}" height="{y + 12}" viewBox="0 0 {WIDTH + 20} {y + 12}">'
            f'<title>The rooms of the C core: each may use those below it</title><style>{STYLE}</style>'
            f'<text class="name" x="{LEFT}" y="26">A room may use those below it, never one above</text>'
            f'<path d="M{arrow} 44 V{y - 8} m-5 -8 l5 8 l5 -8"/>')
    return head + "\n" + "\n".join(out) + "\n</svg>\n"
