"""Curves on logarithmic axes as one SVG file that loads nothing, for light and dark pages."""
import html
import math

STYLE = """svg { font: 11px sans-serif; color-scheme: light dark } .t { fill: #222 } .g { stroke: #ddd } .f { fill: none; stroke: #888 } .h { font-weight: bold }
@media (prefers-color-scheme: dark) { .t { fill: #ddd } .g { stroke: #383838 } }"""
# Hues that are told apart without red and green, each with a form of its own.
COLOURS = ["#0072b2", "#56b4e9", "#d55e00", "#cc79a7", "#8a6d00", "#009e73", "#888888"]
DASHES = ["", "6 2", "", "2 2", "8 2 2 2", "4 4", "1 3"]


def decades(values):
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def power(n):
    return {-6: "1 µs", -3: "1 ms", 0: "1 s"}.get(n)


def panel(title, curves, names, at, size, xlabel):
    (left, top), (width, height) = at, size
    points = [p for curve in curves.values() for p in curve]
    (x0, x1), (y0, y1) = decades([p[0] for p in points]), decades([p[1] for p in points])
    x = lambda v: left + (math.log10(v) - x0) / (x1 - x0) * width
    y = lambda v: top + height - (math.log10(v) - y0) / (y1 - y0) * height
    out = [f'<text class="t h" x="{left}" y="{top - 6}">{html.escape(title)}</text>', f'<rect class="f" x="{left}" y="{top}" width="{width}" height="{height}"/>']
    for k in range(x0, x1 + 1):
        out.append(f'<line class="g" x1="{x(10**k):.1f}" x2="{x(10**k):.1f}" y1="{top}" y2="{top + height}"/>')
        out.append(f'<text class="t" x="{x(10**k):.1f}" y="{top + height + 13}" text-anchor="middle">10<tspan dy="-4" font-size="8">{k}</tspan></text>')
    for k in range(y0, y1 + 1):
        out.append(f'<line class="g" x1="{left}" x2="{left + width}" y1="{y(10.0**k):.1f}" y2="{y(10.0**k):.1f}"/>')
        if power(k):
            out.append(f'<text class="t" x="{left - 4}" y="{y(10.0**k) + 4:.1f}" text-anchor="end">{power(k)}</text>')
    out.append(f'<text class="t" x="{left + width / 2}" y="{top + height + 27}" text-anchor="middle">{html.escape(xlabel)}</text>')
    for name, curve in curves.items():
        i = names.index(name) % len(COLOURS)
        d = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in sorted(curve))
        out.append(f'<polyline points="{d}" fill="none" stroke="{COLOURS[i]}" stroke-width="1.6" stroke-dasharray="{DASHES[i]}"/>')
        out += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="2" fill="{COLOURS[i]}"><title>{html.escape(name)}: {a:,} {html.escape(xlabel)}, {b * 1e6:,.2f} µs</title></circle>' for a, b in curve]
    return out


def svg(panels, names, xlabel, label, columns=2, size=(300, 150)):
    """panels: {title: {name: [(x, seconds)]}}; names: of all curves, in the order of the legend. label: what the picture shows, for who can't see it."""
    width, height = columns * (size[0] + 60) + 10, -(-len(panels) // columns) * (size[1] + 62) + 34
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(label)}">', f"<style>{STYLE}</style>"]
    for i, name in enumerate(names):
        at = 50 + i * 96
        out.append(f'<line x1="{at}" x2="{at + 22}" y1="10" y2="10" stroke="{COLOURS[i % 7]}" stroke-width="2" stroke-dasharray="{DASHES[i % 7]}"/>')
        out.append(f'<text class="t" x="{at + 26}" y="14">{html.escape(name)}</text>')
    for i, (title, curves) in enumerate(panels.items()):
        at = (50 + i % columns * (size[0] + 60), 44 + i // columns * (size[1] + 62))
        out += panel(title, curves, names, at, size, xlabel)
    return "\n".join([*out, "</svg>", ""])
