"""Pictures of modules: HTML with SVG for notebooks, and Graphviz's language. No JavaScript, nothing loaded from elsewhere."""
import html as html_text
import math
import re
import zlib

from . import _core
from .diagnostics import counted
from .dtypes import table
from .layout import Edge, Node, connectors, layout

CHAR, LINE = 6.65, 13  # of the monospace font, in pixels
MAX_OPS = 8000  # drawn in one page
MAX_CALLED = 8  # computations named in one box
BIG = 1 << 16  # bytes under which no tensor is called big

# Op families: name, fill, border. The last takes what no other does.
FAMILIES = {
    "input": ("#fff7ed", "#c2660f"), "constant": ("#f3f4f6", "#6b7280"), "contraction": ("#dbeafe", "#3b82f6"),
    "reduction": ("#ede9fe", "#8b5cf6"), "elementwise": ("#fefce8", "#917500"), "data movement": ("#ecfdf5", "#2e8b5f"),
    "control": ("#ffe4e6", "#d63a5e"), "communication": ("#fce7f3", "#db2777"), "other": ("#ffffff", "#6b7280"),
}
MEMBERS = {
    "input": "parameter infeed recv recv-done", "constant": "constant iota",
    "contraction": "dot convolution ragged-dot scaled-dot fft cholesky triangular-solve",
    "reduction": "reduce reduce-window select-and-scatter sort scan topk batch-norm-training batch-norm-inference "
                 "batch-norm-grad reduce-precision",
    "control": "while conditional call fusion map async-start async-update async-done custom-call",
    "communication": "send send-done outfeed",
    "data movement": "tuple get-tuple-element copy copy-start copy-done bitcast bitcast-convert reshape",
}

STYLE = """
.xlac{font:11px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;color:#1f2937;background:#fff}
.xlac h3{font:600 15px system-ui,sans-serif;margin:8px 0 2px}.xlac p{font:13px system-ui,sans-serif;margin:2px 0 8px}
.xlac .pane{overflow:auto;max-height:85vh;border:1px solid #e5e7eb;border-radius:6px;padding:8px;background:#fff}
.xlac details{margin:6px 0}.xlac summary{font:13px system-ui,sans-serif;cursor:pointer;padding:2px 0}
.xlac .key{display:inline-block;padding:0 7px;margin:0 5px 3px 0;border:1px solid;border-radius:4px;font-size:11px}
.xlac svg{display:block;margin:auto}.xlac svg text{font-size:11px;fill:#1f2937;white-space:pre}.xlac svg .o{font-weight:700}.xlac svg .t{fill:#4b5563}
.xlac svg .b{fill:#111827;font-weight:700}.xlac svg .c{fill:#6b7280;font-size:10px}.xlac svg path{fill:none;stroke:#6b7280}
.xlac svg .chip{fill:#fff;stroke:#6b7280}.xlac svg a{cursor:pointer}.xlac svg a text{fill:#1d4ed8}
@media (prefers-color-scheme:dark){.xlac,.xlac .pane{color:#e6edf3;background:#0f1318}.xlac .pane{border-color:#30363d}
.xlac .key{color:#1f2937}.xlac svg path{stroke:#8c959f}.xlac svg .chip{fill:#1b222b;stroke:#8c959f}.xlac svg .c{fill:#9aa4b2}}
""" + "".join(f".xlac .f{i}{{fill:{fill};stroke:{edge};background:{fill};border-color:{edge}}}\n"
              for i, (fill, edge) in enumerate(FAMILIES.values()))


def family_of(row):
    """The family of an op-table row."""
    for family, members in MEMBERS.items():
        if row["name"] in members.split():
            return family
    traits = row["traits"]
    if "collective" in traits:
        return "communication"
    if "data-movement" in traits:
        return "data movement"
    return "elementwise" if "elementwise" in traits else "other"


def families():
    """The number of the family of each opcode."""
    order = {name: i for i, name in enumerate(FAMILIES)}
    return {row["name"]: order[family_of(row)] for row in _core.opcode_table()}


# --- facts about ops, for labels ---

def bytes_of(shape, dtype):
    if isinstance(dtype, list):
        return sum(bytes_of(s, d) for s, d in zip(shape, dtype))
    row = table().get(dtype)
    return math.prod(d or 0 for d in shape) * row["bits"] // 8 if row and shape is not None else 0


def size_text(n):
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if n < 1024 or unit == "TB":
            return f"{n:.3g} {unit}"
        n /= 1024


def reducer_name(computation):
    """"add" for a computation that adds its two parameters; None for any that is worth a picture of its own."""
    if len(computation) > 4:
        return None
    root = computation.root
    if len(computation.parameters) != 2 or [o.opcode for o in root.operands] != ["parameter"] * 2:
        return None
    return root.attributes.get("direction", root.opcode) if root.opcode == "compare" else root.opcode


DETAILS = {  # the attributes that say most about an op, in a few characters
    "broadcast": "dimensions", "transpose": "dimensions", "reduce": "dimensions", "reverse": "dimensions", "iota": "iota_dimension",
    "concatenate": "dimensions", "slice": "slice", "compare": "direction", "get-tuple-element": "index", "pad": "padding",
    "custom-call": "custom_call_target", "fusion": "kind", "sort": "dimensions", "reduce-window": "window",
    "convolution": "dim_labels", "fft": "fft_type", "rng": "distribution", "dynamic-slice": "dynamic_slice_sizes",
}


def shorten(text, n):
    return text if len(text) <= n else text[:n - 1] + "…"


def constant_text(op):
    """The value of a scalar constant, or of a scalar that a broadcast repeats; None for other ops."""
    if op.opcode == "broadcast" and op.operands:
        op = op.operands[0]
    if op.opcode != "constant" or op.shape != ():
        return None
    found = re.search(r"constant\(([^)]*)\)|dense<([^>]*)>", op.to_text())
    return (found[1] or found[2]) if found else None


class Op:
    """What a picture shows of an instruction."""

    __slots__ = ("instruction", "name", "opcode", "type", "bytes", "is_array", "inlined", "lines", "called", "operands")

    def __init__(self, instruction):
        self.instruction, self.name, self.opcode = instruction, instruction.name, instruction.opcode
        self.type = shorten(instruction.bare_type, 34)
        self.bytes = bytes_of(instruction.shape, instruction.dtype)
        self.is_array = isinstance(instruction.dtype, str)
        self.operands = instruction.operands
        self.inlined = constant_text(instruction) if self.opcode in ("constant", "broadcast") else None
        self.called, self.lines = [], []

    def label(self, inlined):
        """Fills `lines`, given the constants among the operands as text."""
        words = [self.name if self.opcode == "parameter" else self.opcode]
        key = DETAILS.get(self.opcode)
        for computation in self.instruction.called:
            reducer = reducer_name(computation)
            if reducer is None:
                self.called.append(computation)
            else:
                words.append(reducer)
        if key:
            words.append(self.detail(key))
        words += inlined
        self.lines = [shorten(" ".join(w for w in words if w), 34), self.type]
        roles = ("condition ", "body ") if self.opcode == "while" else ("",) * len(self.called)
        self.lines += [shorten(f"▸ {role}{c.name}", 44) for role, c in zip(roles, self.called[:MAX_CALLED])]


    def detail(self, key):
        text = (self.instruction._get_attr(key) or "").strip('"')
        if self.opcode != "slice":
            return text
        ranges = text.strip("{}").replace(" ", "").replace("[", "").split("],")
        sizes = self.instruction.operands[0].shape
        return "[" + ",".join(":" if r.strip("]") == f"0:{n}" else r.strip("]") for r, n in zip(ranges, sizes)) + "]"


def read_ops(instructions, shown):
    """Those that get a box, of instructions with operands before users; constants that their users show as text have none, but for `shown`."""
    ops = [Op(i) for i in instructions]
    by_id = {op.instruction.id: op for op in ops}
    for op in ops:
        if op.inlined is not None and op.instruction == shown:
            op.inlined = None
    for op in ops:
        operands = [by_id[o.id] for o in op.operands if o.id in by_id]
        op.operands = operands
        if op.inlined is None:
            op.label([o.inlined for o in operands if o.inlined is not None])
    return [op for op in ops if op.inlined is None]


def post_order(ops, within=None):
    """Operands before users, which is not always the order of the text. `within`: ids of the ops outside of which none is looked at."""
    done, order = set(), []
    for first in ops:
        stack = [first]
        while stack:
            op = stack[-1]
            pending = [o for o in op.operands if o.id not in done and (within is None or o.id in within)] if op.id not in done else []
            if pending:
                stack += reversed(pending)
                continue
            stack.pop()
            if op.id not in done:
                done.add(op.id)
                order.append(op)
    return order


# --- SVG ---

def escape(text):
    return html_text.escape("".join(c if c.isprintable() else "?" for c in text))


def box(op):
    wide = max(len(line) for line in op.lines)
    return Node(wide * CHAR + 14, LINE * len(op.lines) + 8, key=op)


def chip(nodes):
    """What stands for nodes far up: their Ops are its key."""
    text = chip_text([node.key for node in nodes])
    return Node(len(text) * 6.05 + 12, 15, key=[node.key for node in nodes], kind="chip")


def chip_text(ops):
    return "↑" + (shorten(ops[0].name, 20) if len(ops) == 1 else f"{len(ops)} values from further up")


def anchor_of(prefix, computation):
    return f"{prefix}-{zlib.crc32(computation.name.encode('utf-8', 'surrogateescape')):x}"


class Picture:
    """The SVG of instructions of one computation, `shown` among them if it is not None; names of computations are links where they `link`."""

    def __init__(self, computation, instructions, prefix, big, shown, link=True):
        self.prefix, self.families, self.big, self.link = prefix, families(), big, link
        self.root, self.name = computation.root.id if computation.root else None, said(computation)
        self.shown = shown.id if shown else None
        ops = read_ops(instructions, shown)
        boxes = {id(op): box(op) for op in ops}
        edges = [Edge(boxes[id(source)], boxes[id(op)]) for op in ops
                 for source in {id(o): o for o in op.operands if id(o) in boxes}.values()]
        self.edges = edges
        self.nodes, self.width, self.height = layout(list(boxes.values()), edges, chip)

    def anchor(self, op):
        return f"{self.prefix}-{op.instruction.id}"

    def is_heavy(self, op):
        return op.is_array and op.bytes >= self.big

    def draw_edges(self):
        for edge, d, _, _ in connectors(self.edges):
            origin = edge.source.key if edge.source.kind == "box" else edge.source.key[0]
            wide = ' stroke-width="3"' if self.is_heavy(origin) else ""
            yield f'<path d="{d}"{wide}/>'

    def draw_box(self, node):
        op = node.key
        left, top = node.x - node.width / 2, node.y
        heavy = self.is_heavy(op)
        is_root = op.instruction.id == self.root
        stroke = 3 if is_root or op.instruction.id == self.shown else 2.2 if heavy else 1
        title = escape(shorten(op.instruction.to_text(), 700)) + f"\n{size_text(op.bytes)}" + ("\nthe root" if is_root else "")
        out = [f'<g id="{self.anchor(op)}"><title>{title}</title><rect x="{left:.0f}" y="{top:.0f}" width="{node.width:.0f}" '
               f'height="{node.height:.0f}" rx="4" class="f{self.families.get(op.opcode, len(FAMILIES) - 1)}" '
               f'stroke-width="{stroke}"/>']
        for i, line in enumerate(op.lines):
            style = "o" if i == 0 else "b" if i == 1 and heavy else "t"
            text = f'<text class="{style}" x="{left + 7:.0f}" y="{top + 2 + LINE * (i + 0.85):.0f}">{escape(line)}</text>'
            out.append(text if i < 2 or not self.link else f'<a href="#{anchor_of(self.prefix, op.called[i - 2])}">{text}</a>')
        if is_root:
            out.append(f'<text class="c" x="{left + node.width + 5:.0f}" y="{top + node.height / 2 + 4:.0f}">root</text>')
        return "".join(out) + "</g>"

    def draw_chip(self, node):
        ops = node.key
        left = node.x - node.width / 2
        title = escape("; ".join(f"{op.name} {op.type}" for op in ops[:40]) + ("; ..." if len(ops) > 40 else ""))
        return (f'<a href="#{self.anchor(ops[0])}"><title>{title}</title>'
                f'<rect x="{left:.0f}" y="{node.y:.0f}" width="{node.width:.0f}" height="15" rx="7" class="chip" '
                f'stroke-dasharray="3 2"/><text class="c" x="{left + 6:.0f}" y="{node.y + 11:.0f}">'
                f'{escape(chip_text(ops))}</text></a>')

    def svg(self):
        draw = {"box": self.draw_box, "chip": self.draw_chip}
        parts = list(self.draw_edges()) + [draw[n.kind](n) for n in self.nodes if n.kind in draw]
        width, height = math.ceil(self.width) + 44, math.ceil(self.height) + 12
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="-6 -6 {width} {height}" '
                f'role="img" aria-label="{escape(self.name)}">'
                f'<title>{escape(self.name)}</title>'
                + "\n".join(parts) + "</svg>")


def said(computation):
    """Its name and how many ops it has."""
    return f"{computation.name}: {counted(len(computation), 'op')}"


def callers(module):
    """Who calls each computation, by name; and the reducers that need no picture."""
    found, plain = {}, set()
    for computation in module.computations:
        for op in computation:
            for callee in op.called:
                found.setdefault(callee.name, []).append(op.name)
                if reducer_name(callee) is not None:
                    plain.add(callee.name)
    return found, plain


def big_tensor(ops):
    """Bytes from which one is shown as big: half of the largest."""
    return max(max((bytes_of(op.shape, op.dtype) for op in ops if isinstance(op.dtype, str)), default=0) // 2, BIG)


def prefix_of(text):
    """Of the names that elements have in a page, where there may be other pictures."""
    return f"x{zlib.crc32(text.encode('utf-8', 'replace')):x}"


def legend():
    keys = "".join(f'<span class="key f{i}">{name}</span>' for i, name in enumerate(FAMILIES))
    return f"<p>{keys}</p>"


def html(module, max_ops=MAX_OPS):
    """The module as a piece of HTML: the entry computation, and below it the others, to unfold."""
    stats = module.stats()
    prefix = prefix_of(module.to_text(mode="canonical", elide_large_constants=True))
    big, left = big_tensor(op for c in module.computations for op in c), max_ops
    called_by, plain = callers(module)
    out = [f'<div class="xlac"><style>{STYLE}</style><h3>{escape(module.name)}</h3>'
           f'<p>{counted(stats["ops"], "op")} in {counted(stats["computations"], "computation")}. Hover over an op for its text; a dashed name '
           f'stands '
           f'for an op further up. Bold sizes and thick lines: tensors of {size_text(big)} and more.</p>{legend()}']
    entry = module.entry
    rest = [c for c in reversed(module.computations) if c != entry and c.name not in plain]
    for computation in [entry, *rest]:
        body = drawn(computation, prefix, big, left)
        left -= min(left, len(computation))
        if computation == entry:
            out.append(f'<div class="pane">{body}</div>')
        else:
            by = shorten(", ".join(called_by.get(computation.name, ["nobody"])), 80)
            out.append(f'<details id="{anchor_of(prefix, computation)}"><summary>{escape(said(computation))}, called by '
                       f'{escape(by)}</summary><div class="pane">{body}</div></details>')
    return "\n".join(out) + "</div>"


def drawn(computation, prefix, big, limit, link=True):
    """Its picture, of `limit` ops at most."""
    if not limit:
        return ""
    body = Picture(computation, post_order(computation)[:limit], prefix, big, computation.root, link).svg()
    return f"<p>Only the first {limit} of {len(computation)} ops are drawn.</p>{body}" if len(computation) > limit else body


def computation_html(computation, max_ops=MAX_OPS):
    """One computation as a piece of HTML; those that it calls are named."""
    some = "".join(op.to_text(elide_large_constants=True) for op in computation[:50])
    body = drawn(computation, prefix_of(f"{said(computation)}{some}"), big_tensor(computation), max_ops, link=False)
    return (f'<div class="xlac"><style>{STYLE}</style><h3>{escape(computation.name)}</h3><p>{counted(len(computation), "op")}.</p>{legend()}'
            f'<div class="pane">{body}</div></div>')


def neighbours(op, depth, most):
    """The op with what it reads and what reads it, `depth` steps away and `most` of them at most: operands before users."""
    found = {op.id: op}
    for side in ("operands", "users"):
        edge = [op]
        for _ in range(depth):
            near = {o.id: o for from_ in edge for o in getattr(from_, side) if o.id not in found}
            edge = list(near.values())[:max(0, most - len(found))]
            found.update((o.id, o) for o in edge)
    return post_order(found.values(), found), len(found) >= most


def instruction_html(op, depth=2, max_ops=40):
    """An op as a piece of HTML: its text, where it comes from, and what is around it."""
    ops, cut = neighbours(op, depth, max_ops)
    facts = [("computation", op.computation.name), ("bytes", size_text(bytes_of(op.shape, op.dtype))), ("metadata", op.metadata),
             ("sharding", op.sharding)]
    row = "<tr><th style='text-align:left'>{}</th><td style='text-align:left'>{}</td></tr>"
    rows = "".join(row.format(name, escape(value)) for name, value in facts if value)
    more = f" Only the nearest {max_ops} are drawn." if cut else ""
    body = Picture(op.computation, ops, prefix_of(op.to_text(elide_large_constants=True)), big_tensor(ops), op, link=False).svg()
    return (f'<div class="xlac"><style>{STYLE}</style><h3>{escape(op.opcode)} {escape(op.name)}</h3>'
            f'<p><code>{escape(shorten(op.to_text(metadata=False), 700))}</code></p>'
            f'<table>{rows}</table><p>What it reads and what reads it, {depth} ops away.{more}</p><div class="pane">{body}</div></div>')


def page(module):
    """A whole HTML document."""
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(module.name)}</title><meta name="color-scheme" '
            'content="light dark"><style>body{margin:12px;background:#fff}@media (prefers-color-scheme:dark){body{background:#0f1318}}</style></head>'
            f'<body>{html(module)}</body></html>\n')


# --- for programs to read ---

def graph(module):
    """What the pictures show, as data: the computations, and their ops with what each reads, waits for and calls."""
    of, names = families(), list(FAMILIES)
    return {"name": module.name, "computations": [
        {"name": computation.name, "entry": computation == module.entry, "root": computation.root.name,
         "ops": [{"name": op.name, "opcode": op.opcode, "type": op.bare_type, "family": names[of[op.opcode]],
                  "operands": [operand.name for operand in op.operands], "waits_for": [one.name for one in op.control_predecessors],
                  "calls": [callee.name for callee in op.called]} for op in computation]} for computation in module.computations]}


# --- Graphviz ---

def quote(text):
    return '"' + "".join(c if c.isprintable() else "?" for c in text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def dot(module):
    """The module in Graphviz's language, a cluster for each computation."""
    of, colours = families(), [fill for fill, _ in FAMILIES.values()]
    out = [f"digraph {quote(module.name)} {{", '  node [shape=box style="rounded,filled" fontname="monospace" fontsize=10];']
    for number, computation in enumerate(module.computations):
        out.append(f"  subgraph cluster_{number} {{ label={quote(computation.name)};")
        root = computation.root
        for op in computation:
            label = quote(f"{op.opcode} {op.name}")[:-1] + "\\n" + quote(shorten(op.bare_type, 60))[1:]
            wide = " penwidth=2" if op == root else ""
            out.append(f"    n{op.id} [label={label} fillcolor=\"{colours[of[op.opcode]]}\"{wide}];")
        out.append("  }")
        for op in computation:
            out += [f"  n{operand.id} -> n{op.id};" for operand in op.operands]
            out += [f"  n{p.id} -> n{op.id} [style=dashed color=red];" for p in op.control_predecessors]
            out += [f"  n{callee.root.id} -> n{op.id} [style=dotted];" for callee in op.called]
    return "\n".join(out) + "\n}\n"
