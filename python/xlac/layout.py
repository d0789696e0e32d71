"""Layered drawing of a directed acyclic graph, in time linear in nodes and edges but for a sort per layer.

Nodes are boxes of given widths and heights. Long edges are not drawn across the picture: the reader gets a `chip`, a small box
with the name of the far node, right above where it is used. So no edge spans more than MAX_SPAN layers, and the bends that
edges need stay linear in number."""
import dataclasses

from .straight import place_x

MAX_SPAN = 5
MAX_CHIPS = 12  # above one node; more are one chip together
GAP_X, GAP_Y = 14, 22
SWEEPS = 4
BEND_WIDTH = 6


@dataclasses.dataclass(slots=True)
class Node:
    width: float
    height: float
    key: object = None  # the caller's
    kind: str = "box"  # box, chip, bend
    layer: int = 0
    x: float = 0.0  # centre
    y: float = 0.0  # top
    above: list = dataclasses.field(default_factory=list)
    below: list = dataclasses.field(default_factory=list)
    place: float = 0.0  # in the layer, for ordering
    pull: float = 1.0  # on the positions of neighbours


@dataclasses.dataclass(slots=True)
class Edge:
    source: Node
    target: Node
    path: list | None = None  # nodes from source to target, bends between; None where a chip of many stands in already


def assign_layers(nodes, operands, users):
    """Longest path from the inputs; then inputs, and ops of one operand that hang on nothing but an input, move down to where
    they are first used. These pull less at their users' positions than the main stream."""
    for node in nodes:  # operands first
        node.layer = max((operand.layer for operand in operands[id(node)]), default=-1) + 1
    floats = set()
    for node in nodes:
        sources = operands[id(node)]
        if not sources or (len(sources) == 1 and id(sources[0]) in floats):
            floats.add(id(node))
    for node in reversed(nodes):
        if id(node) in floats and users[id(node)]:
            node.layer = min(user.layer for user in users[id(node)]) - 1
    lowest = min((node.layer for node in nodes), default=0)
    for node in nodes:
        node.layer -= lowest
        node.pull = 1.0 if id(node) in floats else 10.0


def long_edges(edges):
    """The nodes that each target takes from too far up to draw a line, by the target's id."""
    found = {}
    for edge in edges:
        if edge.target.layer - edge.source.layer > MAX_SPAN:
            found.setdefault(id(edge.target), []).append(edge.source)
    return found


def route(edges, make_chip):
    """Puts bends in edges that span layers, and chips for those that span too many; returns the new nodes."""
    added, chips, far = [], {}, long_edges(edges)
    for edge in edges:
        source, target = edge.source, edge.target
        span = target.layer - source.layer
        if span > MAX_SPAN:
            together = len(far[id(target)]) > MAX_CHIPS  # one chip for all of them
            where = (id(target) if together else id(source), target.layer)
            if where not in chips:
                chips[where] = make_chip(far[id(target)] if together else [source])
                chips[where].layer = target.layer - 1
                added.append(chips[where])
                edge.source, edge.path = chips[where], [chips[where], target]
            elif not together:
                edge.source, edge.path = chips[where], [chips[where], target]
            continue
        edge.path = [source]
        for step in range(1, span):
            edge.path.append(Node(BEND_WIDTH, 0, kind="bend", layer=source.layer + step, pull=source.pull))
        added += edge.path[1:]
        edge.path.append(target)
    return added


def connect(edges):
    for edge in edges:
        for upper, lower in zip(edge.path or (), (edge.path or ())[1:]):
            upper.below.append(lower)
            lower.above.append(upper)


def order_layers(layers):
    """Sorts each layer by the mean place of its neighbours, downwards and upwards in turn."""
    for layer in layers:
        for i, node in enumerate(layer):
            node.place = i / max(len(layer) - 1, 1)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            for node in layer:
                near = node.above if down else node.below
                if near:
                    node.place = sum(n.place for n in near) / len(near)
            layer.sort(key=lambda node: node.place)
            for i, node in enumerate(layer):
                node.place = (i + 0.5) / len(layer)


def place_y(layers):
    y = 0.0
    for layer in layers:
        height = max((node.height for node in layer), default=0)
        for node in layer:
            node.y = y + (height - node.height) / 2
        y += height + GAP_Y
    return y - GAP_Y


def layout(nodes, edges, make_chip):
    """Places `nodes` (in an order in which operands come before users), whose `edges` it routes. Returns all nodes, width and
    height of the picture."""
    operands, users = {id(n): [] for n in nodes}, {id(n): [] for n in nodes}
    for edge in edges:
        operands[id(edge.target)].append(edge.source)
        users[id(edge.source)].append(edge.target)
    assign_layers(nodes, operands, users)
    everything = nodes + route(edges, make_chip)
    connect(edges)
    layers = [[] for _ in range(max((n.layer for n in everything), default=-1) + 1)]
    for node in everything:
        layers[node.layer].append(node)
    order_layers(layers)
    place_x(layers, GAP_X)
    height = place_y(layers)
    left = min((n.x - n.width / 2 for n in everything), default=0.0)
    for node in everything:
        node.x -= left
    return everything, max((n.x + n.width / 2 for n in everything), default=0.0), height


def connectors(edges):
    """(edge, the d of its path, and where it ends) of the edges that are drawn; those into one node end side by side, in the order of
    where they come from."""
    ports = {}
    for edge in sorted((e for e in edges if e.path), key=lambda e: e.path[-2].x):
        ports.setdefault(id(edge.target), []).append(edge)
    for mine in ports.values():
        target = mine[0].target
        spread = min(target.width * 0.7, 18 * (len(mine) - 1))
        for i, edge in enumerate(mine):
            end_x = target.x + (spread * (i / (len(mine) - 1) - 0.5) if len(mine) > 1 else 0)
            yield edge, curve(edge, end_x), end_x, target.y


def curve(edge, end_x):
    """Through the bends of an edge, down to the top of its target."""
    x, y = edge.path[0].x, edge.path[0].y + edge.path[0].height
    d = [f"M{x:.0f} {y:.0f}"]
    for node in edge.path[1:]:
        to_x, to_y = (end_x if node is edge.target else node.x), node.y
        bend = max((to_y - y) / 2, 8)
        d.append(f"C{x:.0f} {y + bend:.0f} {to_x:.0f} {to_y - bend:.0f} {to_x:.0f} {to_y:.0f}")
        x, y = to_x, to_y + node.height
    return "".join(d)
