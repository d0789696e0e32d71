"""Pictures of shardings as self-contained SVG: one sharding over its mesh, and a program whose dimensions are coloured by the axes that
shard them. No JavaScript, nothing loaded from elsewhere."""
import html
import itertools
import math

from .codes import Code
from .errors import ArgumentError
from .picture import MONO, frame, words
from .shard_values import listed, meshes, read_sharding

CHAR, LINE = 6.7, 20  # of the monospace font, in pixels
# Fill and border of an axis, in the order of the mesh; told apart by people who see fewer colours too (after Okabe and Ito).
COLOURS = [("#cfe3f7", "#0072b2"), ("#fbdcc4", "#d55e00"), ("#cdeee2", "#009e73"), ("#f6dbeb", "#b5508a"), ("#fdf3c8", "#8a7600"),
           ("#d9f1fb", "#1b80b0"), ("#e4e0f4", "#6a51a3"), ("#e6e6e6", "#555555")]
MOST_TILES, MOST_OPS, MOST_DEVICES = 4096, 3000, 1 << 16
MOVES = ("sdy.reshard", "sdy.all_gather", "sdy.all_slice", "sdy.all_to_all", "sdy.collective_permute", "sdy.all_reduce", "sdy.reduce_scatter")


def colours(mesh):
    return {name: COLOURS[i % len(COLOURS)] for i, (name, _) in enumerate(mesh.axes)}


def svg(width, height, body, what):
    return frame(width, height, body, what, MONO) + "\n"


text = words


def box(x, y, w, h, fill, edge, extra=""):
    paint = f'fill="{fill}" stroke="{edge}"' if fill else 'class="xc"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" {paint} {extra}/>'


# --- one sharding ---

def axes_text(dim):
    names = [a.name + ("" if a.size is None else f":({a.pre_size}){a.size}") for a in dim.axes]
    return " ".join([*names, *(["?"] if dim.open else [])]) or "-"


def holders(sharding):
    """The devices of each tile: a dictionary from a tile's place to them, in the order of the mesh."""
    names, found = [name for name, _ in sharding.mesh.axes], {}
    for device, at in zip(sharding.mesh.devices, itertools.product(*(range(size) for _, size in sharding.mesh.axes))):
        coordinates = dict(zip(names, at))
        found.setdefault(tuple(sharding._place(coordinates, d.axes) for d in sharding.dims), []).append(device)
    return found


def devices_text(devices, room):
    said = " ".join(map(str, devices))
    return said if len(said) <= room else said[:max(1, room - 1)] + "…"


def tile_colour(place, parts):
    """Of the tile: one hue, from light to dark along the tiles."""
    total = math.prod(parts) or 1
    n = 0
    for at, size in zip(place, parts):
        n = n * size + at
    light = 94 - round(30 * n / max(1, total - 1)) if total > 1 else 94
    return f"hsl({(210 + 300 * n // max(1, total)) % 360},60%,{light}%)"


def grid(parts):
    """Where the dimensions that are cut go: the last one across, the one before down, the one before that across again, around them."""
    cut = [d for d in range(len(parts)) if parts[d] > 1]
    return cut[-2::-2][::-1], cut[-1::-2][::-1]


def offset(place, parts, dims, size, gap):
    """Along one direction of the page: inner dimensions next to each other, outer ones further apart."""
    at, step = 0.0, size
    for depth, d in enumerate(reversed(dims)):
        at += place[d] * step
        step = step * parts[d] + gap * (depth + 1)
    return at


def extent(parts, dims, size, gap):
    for depth, d in enumerate(reversed(dims)):
        size = size * parts[d] + gap * (depth + 1)
    return size


def is_drawable(sharding):
    """Whether a picture of all tiles is something that can be looked at."""
    return sharding.mesh.size <= MOST_DEVICES and math.prod(sharding.parts()) <= MOST_TILES


def refuse(n, what, most):
    raise ArgumentError(f"{n} {what} are too many to be shown: at most {most} are", Code.BAD_ARGUMENT,
                        hint="indices(shape) and devices(shape, index) answer for shardings of any size")


def sharding_picture(sharding, shape=None):
    """The tiles of a tensor, each with the devices that hold it. `shape` gives sizes to what the dimensions are cut into."""
    if sharding.mesh.size > MOST_DEVICES:
        refuse(sharding.mesh.size, "devices", MOST_DEVICES)
    parts = sharding.parts()
    if math.prod(parts) > MOST_TILES:
        refuse(math.prod(parts), "tiles", MOST_TILES)
    held = holders(sharding) if sharding.mesh.axes else {(0,) * len(parts): sharding.mesh.devices}
    hues, (down, across) = colours(sharding.mesh), grid(parts)
    most = max((len(" ".join(map(str, d))) for d in held.values()), default=1)
    w, h, gap = max(34.0, min(150.0, 12 + most * CHAR)), 30.0, 6.0
    local = sharding.shard_shape(shape) if shape else None
    head, top = [], 14 + (len(sharding.dims) + 1 + bool(sharding.replicated) + bool(sharding.unreduced)) * LINE
    for d, dim in enumerate(sharding.dims):
        size = f"{shape[d]} = {parts[d]} x {local[d]}" if shape else f"{parts[d]} parts"
        fill, edge = hues[dim.axes[0].name] if dim.axes else (None, None)
        head += [box(10, 8 + d * LINE, 10, 12, fill, edge), text(26, 18 + d * LINE, f"dimension {d}: {size}  {axes_text(dim)}")]
    rest = [(word, axes) for word, axes in (("replicated", sharding.replicated), ("unreduced", sharding.unreduced)) if axes]
    for i, (word, axes) in enumerate(rest, len(sharding.dims)):
        head.append(text(26, 18 + i * LINE, f"{word}: {' '.join(a.name for a in axes)}"))
    body = [text(10, top - 8, f"{sharding.mesh}".removeprefix("mesh"), "xm")]
    for place, devices in sorted(held.items()):
        x, y = 10 + offset(place, parts, across, w, gap), top + offset(place, parts, down, h, gap)
        title = f"tile {list(place)}: devices {', '.join(map(str, devices))}"
        body.append(f"<g><title>{html.escape(title)}</title>" + box(x, y, w - 2, h - 2, tile_colour(place, parts), "#57606a") +
                    text(x + 5, y + 18, devices_text(devices, int((w - 10) / CHAR)), "xd") + "</g>")
    width = max(20 + extent(parts, across, w, gap), 60 + CHAR * max(60, len(str(sharding.mesh))))
    return svg(width, top + extent(parts, down, h, gap) + 14, head + body, f"tiles of {sharding}")


def sharding_table(sharding, shape=None):
    """The same as text: a line for each tile."""
    parts = sharding.parts()
    if math.prod(parts) > MOST_TILES:
        refuse(math.prod(parts), "tiles", MOST_TILES)
    held = holders(sharding) if sharding.mesh.axes else {(0,) * len(parts): sharding.mesh.devices}
    local, lines = sharding.shard_shape(shape) if shape else None, []
    for place, devices in sorted(held.items()):
        spans = [f"{p * n}:{min(size, (p + 1) * n)}" for p, n, size in zip(place, local, shape)] if shape else map(str, place)
        lines.append(f"[{', '.join(spans)}] on {devices_text(devices, 60)}")
    return "\n".join(lines)


# --- a program ---

def rows_of(values):
    """(depth, words, value, place) of what is drawn: each value in the order of the text, but for the arguments of regions, and each
    function other than main before its values. Operands are those of the op, once."""
    function = None
    for i, v in enumerate(values):
        if v["function"] != function and not v["main"]:
            yield 0, f"@{v['function']}", None, i
        function = v["function"]
        if v["opcode"] != "block argument":
            operands = dict.fromkeys(values[j]["name"] for j in v["operands"]) if v["index"] == 0 else ()
            said = f"{v['name']} = {v['opcode'].removeprefix('stablehlo.')} {' '.join(operands)}"
            yield v["depth"], said if len(said) < 58 else said[:57] + "…", v, i


def chips(x, y, value, dims, hues):
    """A box for every dimension, coloured by its first axis, striped by the second; and where they end."""
    kind, body = value["type"], []
    if "shape" not in value:
        return text(x, y + 13, kind, "xm"), x + CHAR * len(kind)
    element = kind.removeprefix("tensor<" + "".join(f"{'?' if n is None else n}x" for n in value["shape"])).removesuffix(">")
    for i, n in enumerate(value["shape"]):
        size = "?" if n is None else str(n)
        dim = dims[i] if dims else None
        axes = dim.axes if dim else ()
        said = size + (f" {axes_text(dim)}" if dim and (axes or dim.open) else "")
        w = 10 + CHAR * len(said)
        fill, edge = hues.get(axes[0].name, (None, None)) if axes else (None, None)
        body.append(box(x, y, w, LINE - 4, fill, edge, 'rx="3" '))
        for _k, axis in enumerate(axes[1:], 1):
            body.append(box(x + 2, y + LINE - 7, w - 4, 2, hues.get(axis.name, ("", "#57606a"))[1], "none"))
        body.append(text(x + 5, y + 12, said, "xd" if fill else "xt"))
        x += w + 3
    return "".join(body) + text(x + 2, y + 12, element, "xm"), x + 8 + CHAR * len(element)


def legend(mesh, hues):
    x, body = 10.0, [text(10, 18, "axes:", "xm")]
    for name, size in mesh.axes:
        x += 42 if not body[1:] else 0
        said = f"{name} = {size}"
        body += [box(x, 7, 12 + CHAR * len(said), 15, *hues[name], 'rx="3" '), text(x + 6, 18, said, "xd")]
        x += 20 + CHAR * len(said)
    return body


def row_picture(y, row, known, hues, sent):
    """One row, and where it ends."""
    depth, said, value, place = row
    x = 10 + 14 * depth
    moves, body = value["opcode"] in MOVES, []
    if moves:
        body.append(f'<rect x="4" y="{y - 2:.1f}" width="6" height="{LINE - 2}" class="xr"/>')
    body.append(text(x, y + 12, said, "xr" if moves else "xt"))
    sharding = read_sharding(value["sharding"], known)
    drawn, end = chips(max(430.0, x + CHAR * len(said) + 12), y, value, sharding and sharding.dims, hues)
    body.append(drawn)
    if place in sent:
        body.append(text(end + 8, y + 12, f"{sent[place]} bytes", "xr"))
        end += 16 + CHAR * (6 + len(str(sent[place])))
    return "".join(body), end


def module_picture(module):
    """A StableHLO program, a row for each value: its dimensions in the colours of the axes that shard them, and what moves data between
    devices in red with the bytes that each sends."""
    known, data = meshes(module), listed(module)
    mesh = next((m for m in known.values() if m.axes), None)
    hues = {name: hue for m in known.values() for name, hue in colours(m).items()}
    sent = {r["value"]: r["bytes"] for r in data["reshards"]}
    body, y, width = legend(mesh, hues) if mesh else [], 34.0, 200.0
    rows = list(rows_of(data["values"]))
    for row in rows[:MOST_OPS]:
        if row[2] is None:
            y += LINE / 2
            drawn, end = text(10, y + 12, row[1], "xm"), 200.0
        else:
            drawn, end = row_picture(y, row, known, hues, sent)
        body.append(drawn)
        width, y = max(width, end + 12), y + LINE
    if len(rows) > MOST_OPS:
        body.append(text(10, y + 12, f"and {len(rows) - MOST_OPS} more: {MOST_OPS} rows are drawn", "xm"))
        y += LINE
    return svg(width, y + 8, body, f"{module.name}: dimensions in the colours of the mesh axes that shard them")
