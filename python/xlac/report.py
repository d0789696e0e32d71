"""What an executable says of itself: cost, memory, timings, explanations and profiles. All of it is counted from the plan, which
the core gives as JSON."""
import collections
import functools
import json
import statistics

from .codes import Code
from .errors import ArgumentError

UNITS = ("", "k", "M", "G", "T", "P")


def short(number):
    """1234567 as "1.23M"."""
    number, unit = float(number), 0
    while abs(number) >= 1000 and unit < len(UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.3g}{UNITS[unit]}"


def seconds_text(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def table(head, rows, right=()):
    """Lines of text in columns; `right` are the numbers of those with numbers."""
    cells = [[str(c) for c in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = ["  ".join(c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths))).rstrip() for row in cells]
    return "\n".join(lines)


def escape(text):
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def html_table(head, rows, right=()):
    cell = lambda tag, i, c: f'<{tag} style="text-align:{"right" if i in right else "left"}">{escape(c)}</{tag}>'  # noqa: E731
    line = lambda tag, row: "<tr>" + "".join(cell(tag, i, c) for i, c in enumerate(row)) + "</tr>"  # noqa: E731
    return f"<table>{line('th', head)}{''.join(line('td', row) for row in rows)}</table>"


def preformatted(text):
    """Lines as they are, wrapped between words where a notebook is narrow."""
    return f'<pre style="white-space:pre-wrap;word-break:normal;overflow-wrap:break-word">{escape(text)}</pre>'


class Report(str):
    """Text that also looks well in a notebook."""

    def __repr__(self):
        return str(self)

    def _repr_html_(self):
        return preformatted(self)


def once(name):
    """Decorates a function of an executable, which never changes: the same object each time."""
    def decorate(function):
        @functools.wraps(function)
        def kept(executable):
            known = executable._kept
            if name not in known:
                known[name] = function(executable)
            return known[name]
        return kept
    return decorate


@once("programs")
def programs_of(executable):
    return json.loads(executable._report())["programs"]


# --- cost ---

class Facts(dict):
    """Numbers by name; asking for one that is not there says which there are."""

    def __missing__(self, key):
        raise KeyError(f"{key!r} is not among {', '.join(map(repr, self))}")


class Cost(Facts):
    """Sums over one call: "flops" (an elementwise op is one an element, a product two), "transcendentals" (elementary functions, not
    counted as flops), "bytes_read" and "bytes_written" by steps. A loop's condition and body count once, because its
    trip count is unknown: `loops` names those. Of a conditional only the most expensive branch counts. `by_op` has a row for each op, those
    inside kernels too, and `by_step` one for each step."""

    HEAD = ("op", "opcode", "computation", "flops", "transcendentals", "read", "written")

    def __init__(self, programs):
        self.by_step, self.by_op, self.loops = [], [], []
        super().__init__(flops=0, transcendentals=0, bytes_read=0, bytes_written=0)
        self.programs, self.totals = programs, {}
        if programs:
            self.update(zip(self, self.total(0)))
            for program in programs:
                self.list_steps(program)

    def total(self, number):
        """(flops, transcendentals, read, written) of one run of a program; programs don't call each other in circles."""
        if number in self.totals:
            return self.totals[number]
        sums = [0, 0, 0, 0]
        for step in self.programs[number]["steps"]:
            own = (step["flops"], step["transcendentals"], step["read"], step["written"])
            inner = [self.total(n) for n in step.get("nested", ())]
            if step["kind"] == "conditional" and inner:
                inner = [max(inner)]
            sums = [a + b + sum(one[i] for one in inner) for i, (a, b) in enumerate(zip(sums, own))]
        self.totals[number] = tuple(sums)
        return self.totals[number]

    def list_steps(self, program):
        for step in program["steps"]:
            own = {"computation": program["name"], "op": step["op"], "opcode": step["opcode"], "by": step["by"], "flops": step["flops"],
                   "transcendentals": step["transcendentals"], "bytes_read": step["read"], "bytes_written": step["written"]}
            self.by_step.append(own)
            if step["kind"] == "while":
                self.loops.append(step["op"])
            inside = step.get("ops") or [{"name": step["op"], "opcode": step["opcode"], "flops": step["flops"],
                                          "transcendentals": step["transcendentals"]}]
            for op in inside:
                root = op["name"] == step["op"]
                self.by_op.append({**own, "op": op["name"], "opcode": op["opcode"], "flops": op["flops"],
                                   "transcendentals": op["transcendentals"], "step": step["op"], "bytes_read": step["read"] if root else 0,
                                   "bytes_written": step["written"] if root else 0})

    def rows(self, limit=20):
        dearest = sorted(self.by_op, key=lambda r: -(r["flops"] + 10 * r["transcendentals"] + r["bytes_read"] + r["bytes_written"]))
        rows = [(r["op"], r["opcode"], r["computation"], short(r["flops"]), short(r["transcendentals"]), short(r["bytes_read"]),
                 short(r["bytes_written"])) for r in dearest[:limit]]
        return [("total", "", "", *(short(self[k]) for k in ("flops", "transcendentals", "bytes_read", "bytes_written"))), *rows]

    def __repr__(self):
        return table(self.HEAD, self.rows(), right=(3, 4, 5, 6))

    def _repr_html_(self):
        return html_table(self.HEAD, self.rows(), right=(3, 4, 5, 6))


@once("cost")
def cost(executable):
    return Cost(programs_of(executable))


# --- memory ---

class Memory(Facts):
    """Bytes that a call needs, known before anything runs: "frame_bytes" (the one block it takes), "peak_bytes" (what of it is in use
    at most), "argument_bytes", "result_bytes", "constant_bytes".

    `buffers` are those in the frame of the entry: place, size, the steps they live from and to, their op. `live` is the number of
    bytes in use by step, `peak_step` the step with most; `by_op` sums what is alive there. `svg()` draws places over steps."""

    HEAD = ("op", "type", "bytes", "offset", "steps")

    def __init__(self, sizes, programs, places=None):
        super().__init__(sizes)
        self.find_places = places or dict
        program = programs[0]
        self.steps = [s["op"] for s in program["steps"]]
        self.buffers = [b for b in program["buffers"] if b["place"] == "frame" and "first" in b]
        self.all_buffers, self.frame_programs = program["buffers"], programs

    @functools.cached_property
    def places(self):
        """{(computation, op): (name in the framework, file, line)}"""
        return self.find_places()

    @functools.cached_property
    def live(self):
        change = [0] * (len(self.steps) + 1)
        for _offset, size, first, last in self.blocks():
            change[first] += size
            change[last + 1] -= size
        out, now = [], 0
        for c in change[:-1]:
            now += c
            out.append(now)
        return out

    def blocks(self):
        """(offset, bytes, first, last) of each piece of the frame: values that take each other's place are one."""
        pieces = sorted((b["offset"], b["first"], b["last"], b["bytes"]) for b in self.buffers)
        merged = []
        for offset, first, last, size in pieces:
            if merged and merged[-1][0] == offset and merged[-1][3] == first and merged[-1][1] == size:
                merged[-1][3] = last
                merged[-1][4] = first  # in place: both are this one block at the step
            else:
                merged.append([offset, size, first, last, None])
        return [tuple(m[:4]) for m in merged]

    @functools.cached_property
    def peak_step(self):
        live = self.live
        return max(range(len(live)), key=live.__getitem__) if live else None

    @functools.cached_property
    def by_op(self):
        step = self.peak_step
        sizes = {}
        for b in self.buffers if step is not None else ():
            if b["first"] <= step <= b["last"]:
                name = b.get("op", "") if "type" in b else b.get("op", "") + " (scratch)"
                sizes[name] = max(sizes.get(name, 0), b["bytes"]) if b["first"] == step else sizes.get(name, 0) + b["bytes"]
        return dict(sorted(sizes.items(), key=lambda item: -item[1]))

    def to_pprof(self, path):
        """Writes what is alive at the peak for pprof (go tool pprof FILE): bytes by op, name scopes and source lines."""
        from .traces import pprof

        with open(path, "wb") as file:
            file.write(pprof(self, self.places, self.frame_programs[0]["name"]))

    def rows(self):
        largest = sorted(self.buffers, key=lambda b: -b["bytes"])
        return [(b.get("op", ""), b.get("type", "scratch"), b["bytes"], b["offset"], f"{b['first']}-{b['last']}") for b in largest[:30]]

    def __str__(self):
        head = ", ".join(f"{k.removesuffix('_bytes')} {short(v)}B" for k, v in self.items())
        peak = f"\npeak at step {self.peak_step} ({self.steps[self.peak_step]})" if self.live else ""
        return f"{head}{peak}\n" + (table(self.HEAD, self.rows(), right=(2, 3)) if self.buffers else "no buffers in the frame")

    __repr__ = __str__

    def svg(self, width=900, height=420):
        """The frame as a picture: steps from left to right, bytes from bottom to top, a box for each buffer."""
        from .memory_svg import draw

        return draw(self, width, height)

    def _repr_html_(self):
        return self.svg() + html_table(self.HEAD, self.rows(), right=(2, 3))

    _repr_svg_ = svg


@once("memory")
def memory(executable):
    from .traces import places

    return Memory(executable._sizes, programs_of(executable), functools.partial(places, executable))


# --- timings ---

class Timings(Facts):
    """Seconds of compilation: "copy" (and translation), "passes", "plan"; `by_pass` has those of each pass, in order."""

    def __init__(self, stages, by_pass):
        super().__init__(stages)
        self.by_pass = by_pass

    def __str__(self):
        rows = [(name, seconds_text(s)) for name, s in self.items()] + [(f"  {name}", seconds_text(s)) for name, s in self.by_pass]
        return table(("stage", "time"), rows, right=(1,))

    __repr__ = __str__

    def _repr_html_(self):
        return preformatted(self)


def timings(executable):
    return Timings(executable._stages, executable._passes)


# --- explanations ---

ORDERS = {"program": "the program's order", "list": "a list schedule (of what can come next, that after which least is alive)",
          "depth": "depth first (an operand at a time, with all it needs)"}


def order_text(program):
    """The order of the steps, and why it was taken."""
    peaks, order = program["order_peaks"], program["order"]
    if len(peaks) < 2:
        return f"in {ORDERS[order]}: at most {short(peaks.get('program', 0))}B are alive, too little to look for another"
    others = ", ".join(f"{ORDERS[name].split(' (')[0]} {short(peak)}B" for name, peak in peaks.items() if name != order)
    return f"in {ORDERS[order]}, of which at most {short(peaks[order])}B should be alive at a time; {others}"


def explain_schedule(programs):
    lines = []
    for program in programs:
        if program["why_interpreted"]:
            lines.append(f"{program['name']}: run whole by the interpreter, since {program['why_interpreted']}")
            continue
        lines.append(f"{program['name']}: {len(program['steps'])} steps {order_text(program)}")
        for i, step in enumerate(program["steps"]):
            ops = f" of {len(step['ops'])} ops" if len(step.get("ops", ())) > 1 else ""
            calls = "".join(f", runs {programs[n]['name']}" for n in step.get("nested", ()))
            work = f"{short(step['flops'] + step['transcendentals'])} ops, {short(step['read'] + step['written'])}B"
            lines.append(f"  {i}: {step['opcode']} {step['op']}: {step['by']}{ops}, {work}{calls}")
    return "\n".join(lines)


def explain_donation(executable, args):
    """What the plan says; with arguments, also what becomes of those that are marked in a call with them."""
    lines = executable._donations()
    for leaf, parameter, why in executable._gifts(*args):
        lines += f"in this call, argument {leaf} (of parameter {parameter}) is {'donated' if why is None else 'borrowed: ' + why}\n"
    return lines


def place_text(row):
    """Where an op stands: its source where the program knows it, else its line in the program's text."""
    return row["source"] or (f"line {row['line']}" if row["line"] else "made by the partitioner")


def cut_text(leaves):
    """How arguments or results are cut, one a line."""
    for i, leaf in enumerate(leaves):
        copied = "" if leaf["view"] else ", which a call copies"
        cut = "whole on each device" if leaf["shard"] == leaf["dims"] else f"shards of {leaf['shard']}{copied}"
        yield f"  {i}: {leaf['dims']}, {cut}"


def gather_text(row):
    where = "" if row["dim"] is None else f" (dimension {row['dim']} of tensor {row['tensor']})"
    return f"  {row['op']} at {place_text(row)}: {short(row['bytes'])}B gathered, since {row['why']}{where}; {row['remedy']}"


def explain_sharding(executable):
    found = json.loads(executable._sharding())
    times = "1 replica" if found["replicas"] == 1 else f"{found['replicas']} replicas"
    lines = [f"{found['devices']} devices: {times} of {found['partitions']} partitions; they run {found['run']}"]
    if found["whole"]:
        lines.append(f"every device computes the whole program, since it could not be partitioned: {found['whole']}")
    if found["summed"]:
        lines.append(f"sums are made where their parts are, not where the program says, since {found['summed']}; "
                     "reshard what has unreduced axes before it is used there")
    lines += ["computed whole on every device:", *map(gather_text, found["gathers"])] if found["gathers"] else []
    if found["moves"]:
        lines.append("moves between devices, with the bytes that a device sends at least:")
        lines += [f"  {row['kind']}{' along ' + row['axes'] if row['axes'] else ''}: {short(row['bytes'])}B of {row['op']} at {place_text(row)}, for "
                  + (f"{row['reader']['op']} at {place_text(row['reader'])}" if row["reader"] else "the program's end") for row in found["moves"]]
    found["resharded"] = {i: {"times": times, "bytes": total} for i, (times, total) in executable._kept.get("resharded", {}).items()}
    lines += [f"argument {i} came in shards that are cut otherwise {row['times']} times: {short(row['bytes'])}B were cut anew"
              for i, row in sorted(found["resharded"].items())]
    lines += ["arguments:", *cut_text(found["arguments"]), "results:", *cut_text(found["results"])]
    report = Report("\n".join(lines))
    report.data = found
    return report


def explain(executable, topic="schedule", *args):
    """Why the program runs as it does: "fusion" (which ops became one kernel, why others are in memory, and what a call runs, with
    predicted times), "kernels" (what each kernel does, in the text that xlac.kernels reads), "schedule" (the steps in their order, by what each is
    run, and what it costs), "cost" (operations and bytes by op), "memory" (what lives where, from which step to which),
    "donation" (which result takes the memory of an argument that is donated, or why none does; with arguments, also why xlac.donate has no
    effect on one of them), "sharding" (of programs compiled with devices=: which ops every device computes whole, why, and what would help;
    what moves between devices; `.data` has the numbers)."""
    if topic == "donation":
        return Report(explain_donation(executable, args))
    if topic == "fusion":
        return Report(executable._fusion())
    if topic == "kernels":
        return Report(executable._kernels())
    if topic == "schedule":
        head = "fast numerics\n" if executable.numerics == "fast" else ""
        return Report(head + explain_schedule(programs_of(executable)))
    if topic in ("cost", "memory"):
        return Report(str({"cost": cost, "memory": memory}[topic](executable)))
    if topic == "sharding":
        return explain_sharding(executable)
    raise ArgumentError(f"explain knows no {topic!r}", Code.BAD_ARGUMENT,
                        hint="call .profile(*arrays)" if topic == "profile" else
                        "topics are fusion, kernels, schedule, cost, memory, donation and sharding")


# --- profiles ---

class Units:
    """What an executable runs at a time: a step, or several as one "group" (kernels that go tile by tile of rows together) or one "list"
    (small kernels as instructions of threaded code)."""

    def __init__(self, found, programs):
        self.programs, self.units = programs, {(p, s): (n, kind) for p, s, n, kind in found["units"]}
        self.first = {(p, s + i): s for (p, s), (n, _) in self.units.items() for i in range(n)}

    def steps(self, program, step):
        n, _ = self.units.get((program, step), (1, None))
        return self.programs[program]["steps"][step:step + n]

    def names(self, program, step):
        """(name, by what it is run, computation) of the unit that begins with the step."""
        steps, (_, kind) = self.steps(program, step), self.units.get((program, step), (1, None))
        names = [s["op"] for s in steps]
        shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        return shown if kind is None or len(names) == 1 else f"{kind} of {shown}", kind or steps[0]["by"], self.programs[program]["name"]

    def bytes(self, program, step):
        """What goes through memory: values that only the group itself reads stay in the cache."""
        steps = self.steps(program, step)
        total = sum(s["read"] + s["written"] for s in steps)
        if self.units.get((program, step), (1, None))[1] != "group":
            return total
        buffers, last = self.programs[program]["buffers"], step + len(steps) - 1
        made = {b for s in steps for b in s["out"]}
        read = {b for s in steps for b in s["in"]} - made
        inner = {b for b in made if (buffers[b]["place"] in ("frame", "spare") or buffers[b].get("lent"))
                 and buffers[b].get("last", last + 1) <= last}
        kept = made - inner
        return min(total, sum(buffers[b]["bytes"] for b in [*read, *kept]))


class Profile:
    """Times of calls by what they run at a time: a step, a group of kernels that run tile by tile, a list of small kernels. `result` is
    what the last call gave; `seconds` the whole (the median of `all_seconds`, one for each call), `min_seconds` the least; `steps` has a
    dict for each step, group and list that was run, the most expensive first: "seconds" a call is the median, "min_seconds" the least, "ops" are
    its steps. A loop that is nothing but one list is timed as a whole. `ran` counts kernels, groups, lists and such loops of a call. Times
    of the events, and of the Chrome trace (for chrome://tracing or Perfetto), are those of the call that took `seconds`."""

    HEAD = ("step", "by", "computation", "times", "time", "least", "share", "Gop/s", "GB/s", "name in the framework", "source")

    def __init__(self, result, calls, programs, warmup=0, places=None):
        self.result, self.warmup, self.places = result, warmup, places or {}
        self.all_seconds = [call["ns"] * 1e-9 for call in calls]
        self.min_seconds = min(self.all_seconds)
        self.seconds = statistics.median_low(self.all_seconds)
        found = calls[self.all_seconds.index(self.seconds)]
        self.cut, self.ran, units = found["cut"], found["ran"], Units(found, programs)
        self.events = [(*units.names(p, s), depth, start * 1e-9, ns * 1e-9) for p, s, depth, start, ns in found["events"]]
        self.event_places = [self.places.get((programs[p]["name"], units.steps(p, s)[-1]["op"])) for p, s, *_ in found["events"]]
        spent = collections.defaultdict(list)
        for call in calls:
            for program, step, _, ns in call["steps"]:
                spent[program, step].append(ns * 1e-9)
        self.steps = [self.row(units, program, step, times, spent[program, step], self.places) for program, step, times, _ in found["steps"]]
        self.steps.sort(key=lambda row: -row["seconds"])

    @staticmethod
    def row(units, program, step, times, spent, places):
        op, by, computation = units.names(program, step)
        steps = units.steps(program, step)
        from .traces import written

        name, source = written(places.get((computation, steps[-1]["op"])))
        return {"op": op, "op_name": name, "source": source, "ops": [s["op"] for s in steps], "opcode": steps[0]["opcode"] if len(steps) == 1
                else by, "by": by,
                "computation": computation, "times": times, "seconds": statistics.median_low(spent), "min_seconds": min(spent),
                "flops": times * sum(s["flops"] + s["transcendentals"] for s in steps), "bytes": times * units.bytes(program, step),
                "nested": any(s.get("nested") for s in steps)}

    def rows(self, limit=30):
        rate = lambda n, row: f"{n / row['seconds'] * 1e-9:.3g}" if n and row["seconds"] else ""  # noqa: E731
        return [(r["op"] if len(r["ops"]) > 1 else f"{r['opcode']} {r['op']}", r["by"], r["computation"], r["times"],
                 seconds_text(r["seconds"]), seconds_text(r["min_seconds"]), f"{100 * r['seconds'] / self.seconds:.1f}%",
                 rate(r["flops"], r), rate(r["bytes"], r), r["op_name"], r["source"].rpartition("/")[2]) for r in self.steps[:limit]]

    def table(self):
        """The head and the rows, without columns that say nothing."""
        rows = self.rows()
        kept = [i for i in range(len(self.HEAD)) if i < 9 or any(row[i] for row in rows)]
        return [self.HEAD[i] for i in kept], [[row[i] for i in kept] for row in rows]

    def summary(self):
        calls = len(self.all_seconds)
        if calls > 1:
            return f"{seconds_text(self.seconds)} in all, the median of {calls} calls; {seconds_text(self.min_seconds)} at least"
        return f"{seconds_text(self.seconds)} in all" + ("" if self.warmup else ", of one call: a first one takes longer, see repeat and warmup")

    def __repr__(self):
        return f"{self.summary()}\n" + table(*self.table(), right=(3, 4, 5, 6, 7, 8))

    def chrome_trace(self):
        """The trace for Perfetto and Chrome, as a str of JSON."""
        from .traces import perfetto

        return perfetto(self)

    def to_perfetto(self, path):
        """Writes that trace, for ui.perfetto.dev or chrome://tracing: each op with its name in the framework and its source line."""
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(self.chrome_trace())

    def save(self, path):
        """Writes the Chrome trace (.json), or the picture (.svg)."""
        text = self.svg() if str(path).endswith(".svg") else self.chrome_trace()
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)

    def svg(self, width=900):
        """The steps over time, those of loops and calls above them."""
        from .memory_svg import draw_profile

        return draw_profile(self, width)

    def _repr_html_(self):
        return self.svg() + html_table(*self.table(), right=(3, 4, 5, 6, 7, 8))


def profile(executable, *args, repeat=1, warmup=0, **kwargs):
    """Runs the program `warmup` times and then `repeat` times with a clock at every step, group of kernels and list, as a call runs them: a
    Profile with the median and the least of those times."""
    for name, n, least in (("repeat", repeat, 1), ("warmup", warmup, 0)):
        if not isinstance(n, int) or n < least:
            raise ArgumentError(f"{name} is {n!r}: expected a number of calls, at least {least}", Code.BAD_ARGUMENT)
    from .traces import places

    calls = []
    for _ in range(warmup + repeat):
        result, found = executable._profile(*args, **kwargs)
        calls.append(found)
    return Profile(result, [json.loads(found) for found in calls[warmup:]], programs_of(executable), warmup, places(executable))
