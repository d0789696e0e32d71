"""The picture of a simulated step: what a device computes, what is on the network, what it waits for, and memory below."""
from .memory_svg import MARGIN, box, nice, text, ticks
from .picture import frame
from .report import escape, seconds_text, short
from .traces import written

ROW, MOST, HIGH = 22, 1500, 130
LEFT = 78


def bars(simulation, wide, total, tops):
    events = sorted(simulation.events, key=lambda e: -e.seconds)[:MOST]
    for e in events:
        x, w, y = LEFT + wide * e.begin / total, wide * e.seconds / total, tops[e.lane]
        source = written(simulation.places.get((e.computation, e.op)))[1]
        title = (f"{e.op} ({e.opcode}) {seconds_text(e.seconds)}, limited by {e.bound}{f', {e.times} times' if e.times > 1 else ''}"
                 f"{f'; {e.why}' if e.why else ''}{f'; {source}' if source else ''}")
        if e.kind == "wait":
            yield (f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.2f}" height="{ROW - 2}" class="xl" stroke-width="2">'
                   f'<title>waits for {escape(title)}</title></rect>')
        else:
            yield box(x, y, w, ROW - 2, e.op if w > 30 else "", title)


def memory(simulation, wide, total, top, bottom):
    most = max(simulation.peak_bytes, 1)
    for value in nice(most, 3):
        y = bottom - (bottom - top) * value / most
        yield f'<path d="M{LEFT} {y:.1f}H{LEFT + wide:.1f}" class="xe" stroke-width="0.6" stroke-dasharray="2 3"/>'
        yield text(LEFT - 4, y + 4, f"{short(value)}B" if value else "0", "end")
    points = []
    row = [*simulation.over_time, (total, simulation.over_time[-1][1] if simulation.over_time else 0)]
    for (t, live), (after, _) in zip(row, row[1:]):
        y = bottom - (bottom - top) * live / most
        points += [f"{LEFT + wide * t / total:.1f},{y:.1f}", f"{LEFT + wide * after / total:.1f},{y:.1f}"]
    if points:
        yield f'<polyline points="{" ".join(points)}" class="xl" stroke-width="1.5"><title>bytes in use on a device</title></polyline>'


def draw(simulation, width):
    wide, total = width - LEFT - MARGIN / 2, simulation.seconds or 1e-9
    tops = {"compute": 34, "network": 34 + ROW + 6}
    below = 34 + 2 * (ROW + 6)
    said = simulation.summary()
    parts = [text(8, 16, said[0] + "; " + said[1])]
    parts += [text(6, y + ROW / 2 + 3, name) for name, y in tops.items()]
    parts += ticks(LEFT, wide, simulation.seconds, 28, below, seconds_text)
    parts += bars(simulation, wide, total, tops)
    parts += [text(6, below + 34, "memory"), *memory(simulation, wide, total, below + 40, below + 40 + HIGH)]
    return frame(width, below + HIGH + 56, parts, f"simulated step: {said[0]}")
