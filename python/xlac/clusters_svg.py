"""A TensorFlow graph with its clusters as SVG, by the layout that draws programs (layout.py)."""
import collections

from .clusters import COLOURS
from .layout import Edge, Node, connectors, layout
from .picture import SANS, frame, words
from .report import escape

MOST_NODES = 400  # drawn one by one; of larger graphs, clusters are
CHAR, LINE, MOST_WORDS = 6.4, 13, 36


class Box:
    """What one box stands for: a node of the graph, a cluster, or the nodes of a scope."""

    __slots__ = ("head", "below", "title", "cluster")

    def __init__(self, head, below, title, cluster):
        self.head, self.below, self.title, self.cluster = shortened(head), shortened(below), title, cluster


def shortened(name):
    """The end of a long name says most."""
    return name if len(name) <= MOST_WORDS else "…" + name[1 - MOST_WORDS:]


def of_nodes(nodes):
    """(boxes, the number of each node's box)."""
    boxes = [Box(name.rsplit("/", 1)[-1], op, f"{name}\n{op}\n{cluster or 'in no cluster'}", cluster) for name, op, _, cluster, *_ in nodes]
    return boxes, list(range(len(nodes)))


def sides(nodes, edges):
    """What decides with which others a node is folded: its cluster, or the clusters that it reads from and that read it."""
    above, below = [set() for _ in nodes], [set() for _ in nodes]
    for a, _, b, _ in edges:
        if a > 1 and b > 1:
            below[a - 2].add(nodes[b - 2][3] or "")
            above[b - 2].add(nodes[a - 2][3] or "")
    return [(cluster,) if cluster else (None, frozenset(above[i]), frozenset(below[i])) for i, (_, _, _, cluster, *_) in enumerate(nodes)]


def folded(nodes, edges):
    """Each cluster is a box, and so are other nodes between the same clusters: variables that one of them reads, say."""
    where, members, of = {}, [], []
    for node, key in zip(nodes, sides(nodes, edges)):
        if key not in where:
            where[key] = len(members)
            members.append([])
        members[where[key]].append(node)
        of.append(where[key])
    return [group(inside) for inside in members], of


def group(inside):
    """A box for them: named by the cluster, or by the ops that they are most of."""
    n, cluster = len(inside), inside[0][3]
    kinds = [f"{count} {op}" for op, count in collections.Counter(node[1] for node in inside).most_common(3)]
    title = "\n".join([f"{cluster or 'in no cluster'}: {n} nodes", *(node[0] for node in inside[:30]), *([f"and {n - 30} more"] if n > 30 else [])])
    if n == 1 and not cluster:
        return of_nodes(inside)[0][0]
    return Box(cluster or f"{n} nodes in no cluster", f"{n} nodes" if cluster else ", ".join(kinds), title, cluster)


def in_order(n, edges):
    """The boxes with those that are read before those that read them, and the edges that this order agrees with: loops lead back."""
    below, state, order = [[] for _ in range(n)], [0] * n, []
    for a, b in edges:
        below[a].append(b)
    for start in range(n):
        stack = [(start, iter(below[start]))] if not state[start] else []
        state[start] = state[start] or 1
        while stack:
            box, more = stack[-1]
            for other in more:
                if not state[other]:
                    state[other] = 1
                    stack.append((other, iter(below[other])))
                    break
            else:
                stack.pop()
                order.append(box)
    order.reverse()
    at = {box: i for i, box in enumerate(order)}
    return order, {(a, b): control for (a, b), control in edges.items() if at[a] < at[b]}


def chip(boxes):
    said = "↑ " + (boxes[0].key.head if len(boxes) == 1 else f"{len(boxes)} from further up")
    return Node(len(said) * CHAR + 10, 15, key=said, kind="chip")


def draw_box(node, colour):
    box, left = node.key, node.x - node.width / 2
    fill = colour.get(box.cluster)
    paint = f'fill="{fill}" stroke="#57606a"' if fill else 'class="xc"'
    kind = "xd" if fill else "xt"
    dash = "" if fill else ' stroke-dasharray="4 2"'
    return (f'<g><title>{escape(box.title)}</title><rect x="{left:.0f}" y="{node.y:.0f}" '
            f'width="{node.width:.0f}" height="{node.height:.0f}" rx="4" {paint}'
            f'{dash}/>{words(left + 6, node.y + LINE, box.head, kind)}{words(left + 6, node.y + 2 * LINE, box.below, kind if fill else "xm")}</g>')


def draw_chip(node):
    left = node.x - node.width / 2
    return (f'<rect x="{left:.0f}" y="{node.y:.0f}" width="{node.width:.0f}" height="15" rx="7" class="xc" stroke-dasharray="3 2"/>'
            f'{words(left + 5, node.y + 11, node.key, "xm")}')


def legend(colour):
    parts, x, y = [], 10.0, 8.0
    for name, fill in colour.items():
        wide = CHAR * len(name) + 12
        if x + wide > 900:
            x, y = 10.0, y + 20
        parts.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="16" rx="4" fill="{fill}" stroke="#57606a"/>'
                     f'{words(x + 6, y + 12, name, "xd")}')
        x += wide + 6
    return parts, y + 26


def draw(nodes, edges, clusters):
    """`nodes` as Graph.nodes gives them, the first two TensorFlow's own; `edges` as (from, output, to, input), input -1 of control edges."""
    colour = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(clusters)}
    whole = nodes[2:]
    boxes, of = of_nodes(whole) if len(whole) <= MOST_NODES else folded(whole, edges)
    joined = {}
    for a, _, b, into in edges:
        if a > 1 and b > 1 and of[a - 2] != of[b - 2]:
            pair = of[a - 2], of[b - 2]
            joined[pair] = joined.get(pair, True) and into < 0
    order, kept = in_order(len(boxes), joined)
    placed = {i: Node(max(len(boxes[i].head), len(boxes[i].below)) * CHAR + 12, 2 * LINE + 6, key=boxes[i]) for i in order}
    lines = [Edge(placed[a], placed[b]) for a, b in kept]
    everything, width, height = layout(list(placed.values()), lines, chip)
    control = {id(line): kept[pair] for line, pair in zip(lines, kept)}
    head, top = legend(colour) if len(colour) <= 60 else ([], 8.0)
    dashed = ' stroke-dasharray="4 3"'
    parts = [f'<path d="{d}" class="xe"{dashed if control[id(line)] else ""}/><path d="M{x:.0f} {y:.0f}l-3 -5h6z" class="xa"/>'
             for line, d, x, y in connectors(lines)]
    parts += [draw_box(node, colour) if node.kind == "box" else draw_chip(node) for node in everything if node.kind != "bend"]
    what = f"{len(whole)} nodes in {len(clusters)} clusters"
    notes = []
    if len(whole) > MOST_NODES:
        notes.append(f"{what}; each cluster is one box, and so are other nodes between the same clusters; to_dot() has all nodes")
    if len(joined) > len(kept):
        notes.append(f"{len(joined) - len(kept)} edges that lead back are not drawn")
    for said in notes:
        head.append(words(10, top + 6, said, "xm"))
        top += 18
    parts = [*head, f'<g transform="translate(10 {top:.0f})">', *parts, "</g>"]
    widest = max([width + 20, 460.0, *(30 + CHAR * len(said) for said in notes)])
    return frame(widest, top + height + 14, parts, what, SANS)
