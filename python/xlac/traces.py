"""Where ops come from, and what tools of others read: traces for Perfetto and Chrome, memory for pprof."""
import gzip
import json
import re

from .report import once
from .wire import field, varint

TEXT = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
FILE = re.compile(r'source_file="((?:[^"\\]|\\.)*)"')
LINE = re.compile(r"source_line=(\d+)")


def plain(text):
    return re.sub(r"\\(.)", r"\1", text)


@once("places")
def places(executable):
    """{(computation, op): (the framework's name of it, file, line)} of the ops that say so."""
    return places_of(executable.module)


def places_of(module):
    found = {}
    for computation in module.computations:
        for op in computation:
            metadata = op.metadata
            if metadata:
                name, file, line = TEXT.search(metadata), FILE.search(metadata), LINE.search(metadata)
                found[computation.name, op.name] = (plain(name[1]) if name else "", plain(file[1]) if file else "", int(line[1]) if line else 0)
    return found


def written(place):
    """(name, "file:line"), each empty where it is not known."""
    name, file, line = place or ("", "", 0)
    return name, f"{file}:{line}" if file else ""


def perfetto(profile):
    """A trace as JSON for ui.perfetto.dev and chrome://tracing: a slice for each event, with the op's name in the framework and its source line."""
    events = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "xlac"}}, {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1,
                                                                                        "args": {"name": "steps"}}]
    for (op, by, computation, _depth, start, seconds), place in zip(profile.events, profile.event_places):
        name, source = written(place)
        args = {"computation": computation, **({"op_name": name} if name else {}), **({"source": source} if source else {})}
        events.append({"name": op, "cat": by, "ph": "X", "ts": round(start * 1e6, 3), "dur": round(seconds * 1e6, 3), "pid": 1, "tid": 1,
                       "args": args})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})


# --- pprof: profile.proto, of which a few fields are written ---

class Pprof:
    """A profile of one kind of sample, in bytes: stacks of places, and how many bytes each has."""

    def __init__(self):
        self.strings, self.functions, self.samples = {"": 0}, {}, []

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings))

    def location(self, name, file="", line=0):
        """The number of a place; functions and locations are one here."""
        key = (self.string(name), self.string(file), line)
        return self.functions.setdefault(key, len(self.functions) + 1)

    def add(self, stack, count, bytes):
        """stack: (name, file, line) from the innermost out."""
        places = b"".join(varint(self.location(*place)) for place in stack)
        self.samples.append(field(2, field(1, places) + field(2, varint(count) + varint(bytes))))

    def serialize(self):
        kinds = b"".join(field(1, field(1, self.string(kind)) + field(2, self.string(unit))) for kind,
                         unit in (("buffers", "count"), ("space", "bytes")))
        places = b""
        for (name, file, line), number in self.functions.items():
            places += field(4, field(1, number) + field(4, field(1, number) + field(2, line)))
            places += field(5, field(1, number) + field(2, name) + field(4, file))
        default = self.string("space")
        texts = b"".join(field(6, text.encode("utf-8", "replace")) for text in self.strings)
        return gzip.compress(kinds + b"".join(self.samples) + places + texts + field(14, default), mtime=0)


def pprof(memory, known, computation):
    """What is alive at the peak of a Memory, by name scopes: pprof's bytes. `known` are places."""
    profile, step = Pprof(), memory.peak_step
    for buffer in memory.buffers if step is not None else ():
        if not buffer["first"] <= step <= buffer["last"]:
            continue
        op = buffer.get("op", "")
        name, file, line = known.get((computation, op), ("", "", 0))
        scopes = [part for part in name.split("/")[:-1] if part]
        stack = [(f"{op} {buffer.get('type', 'scratch')}", file, line), *((scope, "", 0) for scope in reversed(scopes)), (computation, "", 0)]
        profile.add(stack, 1, buffer["bytes"])
    return profile.serialize()
