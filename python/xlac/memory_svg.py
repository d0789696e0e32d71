"""Pictures of plans and profiles: SVG without scripts, so that any notebook and mail shows them."""
import colorsys
import zlib

from .report import escape, seconds_text, short

MARGIN, FONT = 46, 'font-family="sans-serif" font-size="11"'
# Text on boxes is black in any case; what is on the ground follows the reader's light or dark colours.
STYLE = ("<style>.xg{fill:#fff}.xt{fill:#1b1f24}.xl{stroke:#c00}@media (prefers-color-scheme:dark){.xg{fill:#0f1318}.xt{fill:#e6edf3}.xl{stroke:#ff7b72}}"
         "</style>")
MOST = 4000  # boxes drawn; the rest is too small to see


def colour(name):
    """The same for the same op, whatever the picture."""
    hue = zlib.crc32(name.encode("utf-8", "surrogateescape")) % 360 / 360
    red, green, blue = colorsys.hls_to_rgb(hue, 0.72, 0.55)
    return f"#{int(red * 255):02x}{int(green * 255):02x}{int(blue * 255):02x}"


def fitted(name, width):
    """As much of a name as fits, with an ellipsis where it is cut; nothing where hardly any of it would be left."""
    room = int((width - 6) / 6.3)
    return name if len(name) <= room else name[:room - 1] + "\u2026" if room >= 4 else ""


def box(x, y, w, h, name, title):
    shown = fitted(name, w) if h > 12 else ""
    label = f'<text x="{x + 3:.1f}" y="{y + h / 2 + 4:.1f}" {FONT}>{escape(shown)}</text>' if shown else ""
    return (f'<g><title>{escape(title)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{max(w, 0.5):.2f}" height="{max(h, 0.5):.2f}" '
            f'fill="{colour(name)}" stroke="#555" stroke-width="0.4"/>{label}</g>')


def frame(width, height, parts, what):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{escape(what)}">{STYLE}<rect width="{width}" height="{height}" class="xg"/>' + "".join(parts) + "</svg>")


def text(x, y, words, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="xt" {FONT} text-anchor="{anchor}">{escape(words)}</text>'


def draw(memory, width, height):
    steps, top = max(len(memory.steps), 1), max(memory["frame_bytes"], 1)
    wide, high = width - 2 * MARGIN, height - 2 * MARGIN
    parts = [text(MARGIN, 16, f"frame of {short(memory['frame_bytes'])}B, at most {short(memory['peak_bytes'])}B in use; "
                              f"arguments {short(memory['argument_bytes'])}B, results {short(memory['result_bytes'])}B")]
    for b in sorted(memory.buffers, key=lambda b: -b["bytes"])[:MOST]:
        x, w = MARGIN + wide * b["first"] / steps, wide * (b["last"] + 1 - b["first"]) / steps
        h = high * b["bytes"] / top
        name = b.get("op", "") or "scratch"
        title = f"{name}: {b.get('type', 'scratch')}, {b['bytes']} bytes at {b['offset']}, steps {b['first']} to {b['last']}"
        parts.append(box(x, height - MARGIN - high * b["offset"] / top - h, w, h, name, title))
    points = []
    for i, live in enumerate(memory.live):
        y = height - MARGIN - high * live / top
        points += [f"{MARGIN + wide * i / steps:.1f},{y:.1f}", f"{MARGIN + wide * (i + 1) / steps:.1f},{y:.1f}"]
    if points:
        parts.append(f'<polyline points="{" ".join(points)}" fill="none" class="xl" stroke-width="1.5"><title>bytes in use</title></polyline>')
    parts += [text(MARGIN, height - 12, "step 0"), text(width - MARGIN, height - 12, f"step {len(memory.steps) - 1}", "end"),
              text(MARGIN - 4, MARGIN + 4, short(top) + "B", "end"), text(MARGIN - 4, height - MARGIN, "0", "end")]
    return frame(width, height, parts, "memory plan")


def draw_profile(profile, width):
    depth = 1 + max((e[3] for e in profile.events), default=0)
    height, wide, total = 2 * MARGIN + 26 * depth, width - 2 * MARGIN, profile.seconds or 1
    parts = [text(MARGIN, 16, profile.summary() + ("; only the first steps are shown" if profile.cut else ""))]
    for op, by, computation, level, start, seconds in sorted(profile.events, key=lambda e: -e[5])[:MOST]:
        parts.append(box(MARGIN + wide * start / total, MARGIN + 26 * (depth - 1 - level), wide * seconds / total, 24, op,
                         f"{op} ({by}) in {computation}: {seconds_text(seconds)}"))
    parts += [text(MARGIN, height - 12, "0"), text(width - MARGIN, height - 12, seconds_text(profile.seconds), "end")]
    return frame(width, height, parts, "profile")


ROW = 22


def draw_timeline(timeline, width):
    """Lanes below one another, each as deep as its steps lie in steps; what was waited for has a red frame."""
    deep = [1 + max((e.depth for e in timeline.events if e.lane == i), default=0) for i in range(len(timeline.lanes))]
    wide, total, tops, y = width - 2 * MARGIN, timeline.seconds or 1, [], 30
    parts = [text(MARGIN, 16, f"{seconds_text(timeline.seconds)} in all, {seconds_text(timeline.exposed)} waited for async work, "
                              f"{seconds_text(timeline.hidden)} of it hidden")]
    for name, rows in zip(timeline.lanes, deep):
        tops.append(y)
        parts.append(text(4, y + ROW / 2 + 4, name[:7]))
        y += ROW * rows + 8
    for e in sorted(timeline.events, key=lambda e: e.begin - e.end)[:MOST]:
        x, w, top = MARGIN + wide * e.begin / total, wide * (e.end - e.begin) / total, tops[e.lane] + ROW * e.depth
        title = f"{e.op} ({e.by if not e.task else 'its work'}) in {e.computation}: {seconds_text(e.end - e.begin)}"
        parts.append(box(x, top, w, ROW - 2, e.op, title))
        if e.kind == "done" and w >= 1:
            parts.append(f'<rect x="{x:.1f}" y="{top:.1f}" width="{w:.2f}" height="{ROW - 2}" fill="none" stroke="#c00" stroke-width="2"/>')
    parts += [text(MARGIN, y + 12, "0"), text(width - MARGIN, y + 12, seconds_text(timeline.seconds), "end")]
    return frame(width, y + 20, parts, "timeline")
