"""Pictures of plans and profiles: SVG without scripts, so that any notebook and mail shows them."""
import colorsys
import math
import zlib

from .picture import frame, words
from .report import escape, seconds_text, short

MARGIN, CHAR = 46, 6.3
MOST_ENDS, MOST_ARROWS = 40, 300
MOST = 4000  # boxes drawn; the rest is too small to see


def colour(name):
    """The same for the same op, whatever the picture."""
    hue = zlib.crc32(name.encode("utf-8", "surrogateescape")) % 360 / 360
    red, green, blue = colorsys.hls_to_rgb(hue, 0.72, 0.55)
    return f"#{int(red * 255):02x}{int(green * 255):02x}{int(blue * 255):02x}"


def fitted(name, width):
    """As much of a name as fits, with an ellipsis where it is cut; nothing where hardly any of it would be left."""
    room = int((width - 6) / CHAR)
    return name if len(name) <= room else name[:room - 1] + "\u2026" if room >= 4 else ""


def box(x, y, w, h, name, title, room=None):
    shown = fitted(name, w if room is None else room) if h > 12 else ""
    label = words(x + 3, y + h / 2 + 4, shown, "xd") if shown else ""
    return (f'<g><title>{escape(title)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{max(w, 0.5):.2f}" height="{max(h, 0.5):.2f}" '
            f'fill="{colour(name)}" stroke="#555" stroke-width="0.4"/>{label}</g>')


def text(x, y, said, anchor="start"):
    return words(x, y, said, "xt", f'text-anchor="{anchor}" ')


def nice(largest, about=5):
    """Round numbers from 0 on, about so many up to the largest."""
    if largest <= 0:
        return [0.0]
    raw = largest / about
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * k for k in (1, 2, 5, 10) if unit * k >= raw)
    return [step * i for i in range(int(largest / step + 1e-9) + 1)]


def ticks(left, wide, total, top, bottom, label):
    """Lines across at round values, with their words below."""
    out, end = [], -1e9
    for value in nice(total):
        x = left + wide * value / (total or 1)
        out.append(f'<path d="M{x:.1f} {top:.1f}V{bottom + 4:.1f}" class="xe" stroke-width="0.6" stroke-dasharray="2 3"/>')
        said = label(value) if value else "0"
        if x - CHAR * len(said) / 2 > end:
            out.append(text(x, bottom + 16, said, "middle"))
            end = x + CHAR * len(said) / 2 + 4
    return out


def placed(memory, b):
    """The framework's name and the source line of a buffer's op, where they are known."""
    name, file, line = memory.places.get((memory.frame_programs[0]["name"], b.get("op", "")), ("", "", 0))
    return "".join(f"; {part}" for part in (name, f"{file}:{line}" if file else "") if part)


def takes_its_place(starting, b):
    """Whether at the last step of b another buffer lies in its place already: labels then end before."""
    return b["last"] > b["first"] and any(o is not b and o["offset"] < b["offset"] + b["bytes"] and b["offset"] < o["offset"] + o["bytes"]
                                          for o in starting.get(b["last"], ()))


def memory_box(memory, b, x, y, w, h, starting):
    name = b.get("op", "") or "scratch"
    title = f"{name}: {b.get('type', 'scratch')}, {b['bytes']} bytes at {b['offset']}, steps {b['first']} to {b['last']}{placed(memory, b)}"
    length = b["last"] - b["first"]
    return box(x, y, w, h, name, title, w * length / (length + 1) if takes_its_place(starting, b) else w)


def ends(memory, width):
    """Rows for arguments, each until the step that reads it last, and results, from the step that writes them: below the frame, not to scale."""
    steps, wide, rows = max(len(memory.steps), 1), width - 2 * MARGIN, []
    outside = [b for b in memory.all_buffers if b["place"] in ("argument", "result")]
    for b in sorted(outside, key=lambda b: (b["place"], -b["bytes"]))[:MOST_ENDS]:
        is_argument = b["place"] == "argument"
        first, last = (0, b.get("last", 0)) if is_argument else (b.get("first", steps - 1), b.get("last", steps - 1))
        title = f"{b['place']} {b.get('number', '')} {b.get('op', '')}: {b.get('type', '')}, {b['bytes']} bytes, steps {first} to {last}"
        rows.append((MARGIN + wide * first / steps, wide * (last + 1 - first) / steps, title,
                     f"{b['place']} {b.get('op', '')} {short(b['bytes'])}B"))
    return rows, len(outside) - len(rows)


def beside(x, y, w, label, width):
    """On its bar if it fits there, else after or before it."""
    room = CHAR * len(label) + 8
    if room <= w:
        return words(x + 4, y, label, "xd")
    return text(x + w + 4, y, label) if x + w + room < width else text(x - 4, y, label, "end")


def step_names(memory, width, y):
    """The names of the steps that have room, slanted, so that they need not be cut."""
    steps, wide = max(len(memory.steps), 1), width - 2 * MARGIN
    every = max(1, math.ceil(steps * 14 / wide))
    return [words(x := MARGIN + wide * (i + 0.5) / steps, y, memory.steps[i], "xm", f'transform="rotate(35 {x:.1f} {y:.1f})" ')
            for i in range(0, len(memory.steps), every)]


def draw(memory, width, height):
    steps, top = max(len(memory.steps), 1), max(memory["frame_bytes"], 1)
    wide, high = width - 2 * MARGIN, height - 2 * MARGIN
    rows, more = ends(memory, width)
    names = memory.steps[::max(1, math.ceil(steps * 14 / wide))]
    below = 14 + 0.6 * CHAR * max(map(len, names), default=0)
    parts = [text(MARGIN, 16, f"frame of {short(memory['frame_bytes'])}B, at most {short(memory['peak_bytes'])}B in use; "
                              f"arguments {short(memory['argument_bytes'])}B, results {short(memory['result_bytes'])}B")]
    for value in nice(top):
        y = height - MARGIN - high * value / top
        parts += [f'<path d="M{MARGIN} {y:.1f}H{width - MARGIN}" class="xe" stroke-width="0.6" stroke-dasharray="2 3"/>',
                  text(MARGIN - 4, y + 4, f"{short(value)}B" if value else "0", "end")]
    starting = {}
    for b in memory.buffers:
        starting.setdefault(b["first"], []).append(b)
    for b in sorted(memory.buffers, key=lambda b: -b["bytes"])[:MOST]:
        x, w = MARGIN + wide * b["first"] / steps, wide * (b["last"] + 1 - b["first"]) / steps
        h = high * b["bytes"] / top
        parts.append(memory_box(memory, b, x, height - MARGIN - high * b["offset"] / top - h, w, h, starting))
    points = []
    for i, live in enumerate(memory.live):
        y = height - MARGIN - high * live / top
        points += [f"{MARGIN + wide * i / steps:.1f},{y:.1f}", f"{MARGIN + wide * (i + 1) / steps:.1f},{y:.1f}"]
    if points:
        parts.append(f'<polyline points="{" ".join(points)}" class="xl" stroke-width="1.5"><title>bytes in use</title></polyline>')
    parts += step_names(memory, width, height - MARGIN + 14)
    y = height - MARGIN + below + 16
    for x, w, title, label in rows:
        parts.append(box(x, y, w, 14, "", title) + beside(x, y + 11, w, label, width))
        y += 17
    if more > 0:
        parts.append(text(MARGIN, y + 10, f"and {more} more arguments and results"))
        y += 17
    return frame(width, y + 8, parts, f"memory: {short(memory['peak_bytes'])}B in use at most, "
                 f"at {memory.steps[memory.peak_step] if memory.live else 'no step'}")


def draw_profile(profile, width):
    depth = 1 + max((e[3] for e in profile.events), default=0)
    height, wide, total = 2 * MARGIN + 26 * depth, width - 2 * MARGIN, profile.seconds or 1
    parts = [text(MARGIN, 16, profile.summary() + ("; only the first steps are shown" if profile.cut else ""))]
    parts += ticks(MARGIN, wide, profile.seconds, MARGIN, height - MARGIN, seconds_text)
    for op, by, computation, level, start, seconds in sorted(profile.events, key=lambda e: -e[5])[:MOST]:
        parts.append(box(MARGIN + wide * start / total, MARGIN + 26 * (depth - 1 - level), wide * seconds / total, 24, op,
                         f"{op} ({by}) in {computation}: {seconds_text(seconds)}"))
    return frame(width, height, parts, f"profile: {profile.summary()}")


ROW = 22


def hops(events):
    """(start, when, work, when), (work, when, done, when) of each asynchronous op, as far as they were recorded."""
    chains = {}
    for e in events:
        if e.serial:
            chains.setdefault(e.serial, {}).setdefault("work" if e.task else e.kind, e)
    for chain in list(chains.values())[:MOST_ARROWS]:
        start, work, done = (chain.get(kind) for kind in ("start", "work", "done"))
        if start and work:
            yield start, start.begin, work, work.begin
        if (work or start) and done:
            yield (work or start), (work or start).end, done, done.end


def arrow(x, y, to_x, to_y, source, target):
    """A curve with a head, which a pointer over it names."""
    bend = max(12.0, abs(to_x - x) / 3)
    return (f'<g><title>{escape(source)} to {escape(target)}</title><path d="M{x:.1f} {y:.1f}C{x + bend:.1f} {y:.1f} {to_x - bend:.1f} {to_y:.1f} '
            f'{to_x:.1f} {to_y:.1f}" class="xe" stroke-width="1.2"/><path d="M{to_x:.1f} {to_y:.1f}l-6 -3v6z" class="xa"/></g>')


def draw_timeline(timeline, width):
    """Lanes below one another, each as deep as its steps lie in steps; what was waited for has a red frame, and arrows lead from starts by their
    work to their dones. Lanes on which nothing ran are left out."""
    used = sorted({e.lane for e in timeline.events}) or [0]
    deep = {i: 1 + max((e.depth for e in timeline.events if e.lane == i), default=0) for i in used}
    left = max(MARGIN, 10 + CHAR * max((len(timeline.lanes[i]) for i in used if i < len(timeline.lanes)), default=0))
    wide, total, tops, y = width - left - MARGIN / 2, timeline.seconds or 1, {}, 30
    parts = [text(8, 16, f"{seconds_text(timeline.seconds)} in all, {seconds_text(timeline.exposed)} waited for async work, "
                         f"{seconds_text(timeline.hidden)} of it hidden")]
    for i in used:
        tops[i] = y
        parts.append(text(4, y + ROW / 2 + 4, timeline.lanes[i] if i < len(timeline.lanes) else ""))
        y += ROW * deep[i] + 12
    parts += ticks(left, wide, timeline.seconds, 26, y, seconds_text)
    for e in sorted(timeline.events, key=lambda e: e.begin - e.end)[:MOST]:
        x, w, top = left + wide * e.begin / total, wide * (e.end - e.begin) / total, tops[e.lane] + ROW * e.depth
        title = f"{e.op} ({e.by if not e.task else 'its work'}) in {e.computation}: {seconds_text(e.end - e.begin)}"
        parts.append(box(x, top, w, ROW - 2, e.op, title))
        if e.kind == "done" and w >= 1:
            parts.append(f'<rect x="{x:.1f}" y="{top:.1f}" width="{w:.2f}" height="{ROW - 2}" class="xl" stroke-width="2"/>')
    place = lambda e, time: (left + wide * time / total, tops[e.lane] + ROW * e.depth + ROW / 2)  # noqa: E731
    parts += [arrow(*place(a, a_time), *place(b, b_time), a.op, b.op) for a, a_time, b, b_time in hops(timeline.events)]
    return frame(width, y + 26, parts, f"timeline: {seconds_text(timeline.seconds)} in all")
