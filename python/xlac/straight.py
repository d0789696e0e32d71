"""Positions across a layered drawing, after Brandes and Koepf (2001): each node is put straight below or above the middle one of its neighbours,
four times: from above and below, to the left and right. The four placements are averaged, so that a long chain stays straight and a wide
part lies evenly on both sides. Linear in nodes and edges, but for a sort of each node's neighbours."""


class Grid:
    """The layers as numbers: `order` of a node in its layer, and the neighbours `above` and `below` that it may be put straight under or over, in
    their order. Where an edge is the longest way on for both its ends, it is the main stream there, and they have no other."""

    def __init__(self, layers):
        self.nodes = [node for layer in layers for node in layer]
        number = {id(node): i for i, node in enumerate(self.nodes)}
        self.layers = [[number[id(node)] for node in layer] for layer in layers]
        self.order = [i for layer in layers for i in range(len(layer))]
        self.bend = [node.kind == "bend" for node in self.nodes]
        self.all_above, self.all_below = (sorted_sides(self.nodes, number, self.order, side) for side in ("above", "below"))
        last = longest(self.layers[::-1], self.all_below)
        first = longest(self.layers, self.all_above)
        down = [max(near, key=lambda i: (last[i], self.nodes[i].pull), default=None) for near in self.all_below]
        up = [max(near, key=lambda i: (self.nodes[i].pull, first[i]), default=None) for near in self.all_above]
        self.above = [straight(node, near, up, down) for node, near in enumerate(self.all_above)]
        self.below = [straight(node, near, down, up) for node, near in enumerate(self.all_below)]


def sorted_sides(nodes, number, order, side):
    return [sorted((number[id(n)] for n in getattr(node, side)), key=order.__getitem__) for node in nodes]


def longest(layers, near):
    """Of each node, how many layers the longest way over its neighbours has."""
    found = {}
    for layer in layers:
        for node in layer:
            found[node] = 1 + max((found[i] for i in near[node]), default=0)
    return found


def straight(node, near, mine, theirs):
    """The neighbours without those that are another's main stream."""
    main = mine[node]
    if main is not None and theirs[main] == node:
        return [main]
    return [i for i in near if theirs[i] is None or mine[theirs[i]] != i]


def crossings_of_long_edges(grid):
    """Pairs (upper, lower) whose line crosses a long edge: that one is kept straight instead."""
    found = set()
    for upper, lower in zip(grid.layers, grid.layers[1:]):
        left, begin = 0, 0
        for i, node in enumerate(lower):
            inner = next((a for a in grid.all_above[node] if grid.bend[node] and grid.bend[a]), None)
            if inner is None and i + 1 < len(lower):
                continue
            right = grid.order[inner] if inner is not None else len(upper)
            for other in lower[begin:i + 1]:
                for a in grid.all_above[other]:
                    if not left <= grid.order[a] <= right and not (grid.bend[a] and grid.bend[other]):
                        found.add((a, other))
            left, begin = right, i + 1
    return found


def blocks(layers, order, near, crossing):
    """The block of each node: nodes that are to have one position. A node joins that of its middle neighbour where no other block is crossed."""
    root = list(range(len(order)))
    for layer in layers:
        last = -1
        for node in layer:
            ws = near[node]
            joined = False
            for i in range((len(ws) - 1) // 2, len(ws) // 2 + 1) if ws else ():
                w = ws[i]
                if not joined and last < order[w] and (w, node) not in crossing and (node, w) not in crossing:
                    root[node], last, joined = root[w], order[w], True
    return root


def compact(layers, root, widths, gap):
    """Positions of the blocks, as far to the left as they go; then those that may be further right are drawn there."""
    after, before, waiting = {}, {}, {}
    for layer in layers:
        for a, b in zip(layer, layer[1:]):
            u, v, apart = root[a], root[b], (widths[a] + widths[b]) / 2 + gap
            if after.setdefault(u, {}).get(v, -1.0) < apart:
                if v not in after[u]:
                    waiting[v] = waiting.get(v, 0) + 1
                after[u][v] = before.setdefault(v, {})[u] = apart
    ready = [block for block in dict.fromkeys(root) if not waiting.get(block)]
    sequence, x = [], {}
    while ready:
        block = ready.pop()
        sequence.append(block)
        x[block] = max((x[u] + apart for u, apart in before.get(block, {}).items()), default=0.0)
        for v in after.get(block, ()):
            waiting[v] -= 1
            if not waiting[v]:
                ready.append(v)
    for block in reversed(sequence):
        room = min((x[v] - apart for v, apart in after.get(block, {}).items()), default=None)
        if room is not None and room > x[block]:
            x[block] = room
    return [x[block] for block in root]


def one_way(grid, crossing, widths, gap, upwards, mirrored):
    layers = grid.layers[::-1] if upwards else grid.layers
    order = grid.order
    if mirrored:
        layers = [layer[::-1] for layer in layers]
        order = [0] * len(grid.order)
        for layer in layers:
            for i, node in enumerate(layer):
                order[node] = i
    near = grid.below if upwards else grid.above
    near = [ws[::-1] for ws in near] if mirrored else near
    x = compact(layers, blocks(layers, order, near, crossing), widths, gap)
    return [-value for value in x] if mirrored else x


def place_x(layers, gap):
    """Sets the x of each node, its middle; the nodes of a layer keep their order, `gap` or more apart."""
    grid = Grid(layers)
    if not grid.nodes:
        return
    widths = [node.width for node in grid.nodes]
    crossing = crossings_of_long_edges(grid)
    ways = [(one_way(grid, crossing, widths, gap, upwards, mirrored), mirrored) for upwards in (False, True) for mirrored in (False, True)]
    narrow = min((x for x, _ in ways), key=lambda x: max(x) - min(x))
    moved = []
    for x, mirrored in ways:
        shift = max(narrow) - max(x) if mirrored else min(narrow) - min(x)
        moved.append([value + shift for value in x])
    for node, *four in zip(grid.nodes, *moved):
        four.sort()
        node.x = (four[1] + four[2]) / 2
