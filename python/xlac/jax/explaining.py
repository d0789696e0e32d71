"""Why a JAX function runs as it does: its program compiled by xlac, and what xlac says of it, by the function's Python lines."""
import collections
import functools
import inspect
import re

import numpy as np

from ..codes import Code
from ..errors import ArgumentError
from ..report import Report, html_table, seconds_text, short, table
from .frames import Located, file_of, of_a_library
from .places import NOWHERE, Places


class Compiled:
    """A function lowered by JAX for some arguments, and compiled by xlac. Ops that libraries make count for the user's lines that call them, unless
    the libraries' own lines are asked for, or the function is itself a library's."""

    def __init__(self, function, args, kwargs, libraries=False):
        import jax

        import xlac

        self.jitted = function if hasattr(function, "lower") else jax.jit(function)
        self.name = getattr(function, "__name__", type(function).__name__)
        self.lowered = self.jitted.lower(*args, **kwargs)
        self.exe = xlac.compile(self.lowered if libraries or of_a_library(file_of(function)) else Located(self.lowered))
        self.places = Places(self.exe.module)

    def arguments(self):
        """Names of the program's arguments, as the function's."""
        return [port.name for port in self.exe.inputs]


def of_arguments(what):
    """what(compiled, args, kwargs, **options) as what(function, libraries=False, **options)(*args, **kwargs)."""
    taken = [p.replace(kind=p.KEYWORD_ONLY) for p in list(inspect.signature(what).parameters.values())[3:]]
    taken.append(inspect.Parameter("libraries", inspect.Parameter.KEYWORD_ONLY, default=False))

    @functools.wraps(what)
    def curried(function, *, libraries=False, **options):
        if not callable(function) or hasattr(function, "in_tree"):
            raise ArgumentError(f"{what.__name__} takes a function, found {type(function).__name__}", Code.BAD_ARGUMENT,
                                hint=f"give the function first and then its arguments: {what.__name__}(f)(x, y)")
        def called(*args, **kwargs):
            return what(Compiled(function, args, kwargs, libraries), args, kwargs, **options)
        return called
    curried.__signature__ = inspect.Signature([inspect.Parameter("function", inspect.Parameter.POSITIONAL_OR_KEYWORD), *taken])
    return curried


# --- by lines ---

class Lines:
    """A table with a row for each Python line. `rows` are dicts: "file", "line", "code", "ops" (by what they run), "flops" (elementary
    functions counted as one), "bytes" (through memory), and in profiles "seconds" of a call."""

    def __init__(self, title, rows, footer=()):
        self.title, self.rows, self.footer = title, rows, list(footer)

    def head(self):
        return ("line", "code", "runs", *(("time", "share") if self.timed else ()), "flops", "bytes")

    @property
    def timed(self):
        return bool(self.rows) and "seconds" in self.rows[0]

    def cells(self, limit=40):
        total = sum(row.get("seconds", 0) for row in self.rows) or 1
        for row in self.rows[:limit]:
            time = (seconds_text(row["seconds"]), f"{100 * row['seconds'] / total:.1f}%") if self.timed else ()
            yield (str(row["place"]), row["code"][:60], ", ".join(f"{n} {by}" if n > 1 else by for by, n in row["ops"].items())[:60], *time,
                   short(row["flops"]), short(row["bytes"]))

    def right(self):
        return tuple(range(3, len(self.head())))

    def __repr__(self):
        return "\n".join([self.title, table(self.head(), list(self.cells()), right=self.right()), *self.footer])

    def _repr_html_(self):
        return html_table(self.head(), list(self.cells()), right=self.right())


def by_line(places, steps, fields):
    """Rows of Lines: each of `steps` gives its `fields` to the lines of its ops, in equal parts."""
    rows = {}
    for step in steps:
        found = list(dict.fromkeys(places[name] for name in step["ops"]))
        found = [place for place in found if place is not NOWHERE] or [NOWHERE]
        for place in found:
            row = rows.setdefault(place, {"place": place, "file": place.file, "line": place.line, "code": place.code,
                                          "ops": collections.Counter(), **dict.fromkeys(fields, 0)})
            row["ops"][step["by"]] += 1
            for field in fields:
                row[field] += step[field] / len(found)
    return list(rows.values())


def steps_of(exe):
    """What runs, as by_line takes it: ops inside kernels are counted where they stand."""
    for row in exe.cost.by_op:
        yield {"ops": [row["op"]], "by": row["by"], "flops": row["flops"] + row["transcendentals"],
               "bytes": row["bytes_read"] + row["bytes_written"]}


def explain_lines(compiled):
    exe, memory = compiled.exe, compiled.exe.memory
    rows = by_line(compiled.places, steps_of(exe), ("flops", "bytes"))
    rows.sort(key=lambda row: (row["file"], row["line"]))
    title = (f"{compiled.name}: {len(exe.cost.by_step)} steps, {short(exe.cost['flops'])} flops and "
             f"{short(exe.cost['transcendentals'])} elementary functions, "
             f"{short(exe.cost['bytes_read'] + exe.cost['bytes_written'])}B through memory, "
             f"{short(memory['peak_bytes'])}B beside arguments and results; compiled in "
             f"{seconds_text(sum(exe.timings.values()))}")
    footer = [f"{op} ({compiled.places[op]}) is a loop: what it does counts once, for its trip count is unknown" for op in exe.cost.loops]
    return Lines(title, rows, footer)


@of_arguments
def explain(compiled, args, kwargs, topic="lines"):
    """explain(f)(*args): what each Python line of the function became and what it costs, as a Lines; with a `topic` of Executable.explain
    ("fusion", "kernels", "schedule"), that with the lines behind the ops; or "memory" or "donation". What libraries make counts for the line of
    the user's code that calls them; with `libraries`, for the libraries' own lines. Nothing is run: arguments may be jax.ShapeDtypeStruct."""
    if topic == "lines":
        return explain_lines(compiled)
    if topic in ("memory", "donation"):
        return {"memory": memory_of, "donation": donation_of}[topic](compiled)
    if topic not in ("fusion", "kernels", "schedule"):
        raise ArgumentError(f"explain knows no {topic!r}", Code.BAD_ARGUMENT, hint="topics are lines, fusion, kernels, schedule, memory and donation")
    return Report(compiled.places.annotate(compiled.exe.explain(topic)))


def as_jax_takes(args):
    """NumPy's arrays of the arguments with the element types that JAX gives them: i64 is i32 unless jax_enable_x64 is set."""
    import jax

    def taken(leaf):
        return leaf.astype(jax.dtypes.canonicalize_dtype(leaf.dtype), copy=False) if isinstance(leaf, (np.ndarray, np.generic)) else leaf
    return jax.tree.map(taken, args)


@of_arguments
def profile(compiled, args, kwargs, repeat=10, warmup=2):
    """profile(f, repeat=10)(*args): the time of each Python line, as a Lines whose `profile` is xlac's Profile by steps. A step that is made of
    several lines gives its time to them in equal parts. Loops' own time is that of what they run."""
    args, kwargs = as_jax_takes((args, kwargs))
    found = compiled.exe.profile(*args, repeat=repeat, warmup=warmup, **kwargs)
    steps = [step for step in found.steps if not step["nested"]]
    inside = {}  # a step's kernel has more ops than the step's own: those that are fused into it
    for row in compiled.exe.cost.by_op:
        inside.setdefault(row["step"], []).append(row["op"])
    spread = [{**step, "ops": [op for name in step["ops"] for op in inside.get(name, [name])]} for step in steps]
    rows = by_line(compiled.places, spread, ("seconds", "flops", "bytes"))
    rows.sort(key=lambda row: -row["seconds"])
    lines = Lines(f"{compiled.name}: {found.summary()}", rows)
    lines.profile = found
    return lines


# --- memory and donation ---

def memory_of(compiled):
    memory = compiled.exe.memory
    named = [f"{k.removesuffix('_bytes')} {short(v)}B" for k, v in memory.items()]
    step = memory.peak_step
    lines = [f"{compiled.name}: {', '.join(named)}"]
    if step is not None:
        lines.append(f"most is alive at step {step}, {memory.steps[step]} ({compiled.places[memory.steps[step]]}):")
        rows = [(op, short(size) + "B", str(compiled.places[op.removesuffix(" (scratch)")]), compiled.places[op.removesuffix(" (scratch)")].code[:60])
                for op, size in list(memory.by_op.items())[:20]]
        lines.append(table(("value", "bytes", "line", "code"), rows, right=(1,)))
    return Report("\n".join(lines))


def verdicts(exe):
    """What the plan says of each argument, by its number."""
    said = {}
    for line in exe.explain("donation").splitlines():
        number = line.removeprefix("argument ").partition(",")[0]
        if number.isdigit():
            said[int(number)] = line.partition(": ")[2].replace("compile(donate=...) or input_output_alias", "donate_argnums")
    return said


MANY = 4  # arrays of one argument, of which the same is said
TOGETHER = {"is computed over it": "donated; results are computed over them",
            "though a result has its type: donate_argnums would do it": "not donated, though results have their types: donate_argnums would do it"}


def in_groups(found):
    """The lines of (name, type, text): arrays of one argument of the function of which the same is said are told of together."""
    groups = {}
    for i, (name, _, text) in enumerate(found):
        kind = next((end for end in TOGETHER if text.endswith(end)), i)
        groups.setdefault((re.split(r"[.\[]", name)[0], kind), []).append(found[i])
    for (argument, kind), group in groups.items():
        if len(group) >= MANY:
            yield f"  {argument}, {len(group)} arrays: {TOGETHER[kind]}"
        else:
            yield from (f"  {name}, {type}: {text}" for name, type, text in group)


def donation_of(compiled):
    """What the plan says, with the function's own names."""
    exe, said = compiled.exe, verdicts(compiled.exe)
    found = [(name, port.type, f"{'donated; ' if port.donated else ''}{said.get(i) or 'no result can take its memory'}")
             for i, (name, port) in enumerate(zip(compiled.arguments(), exe.inputs)) if i in said or port.donated]
    lines = list(in_groups(found))
    return Report("\n".join([f"{compiled.name}:", *lines] if lines else
                            [f"{compiled.name}: no argument is donated, and no result has an argument's type"]))


@of_arguments
def memory(compiled, args, kwargs):
    """memory(f)(*args): what a call needs, and what is alive where most is, by Python lines. Nothing is run."""
    return memory_of(compiled)


@of_arguments
def donation(compiled, args, kwargs):
    """donation(f)(*args): which arguments are computed over, which are donated without effect and why, and which could be. Nothing is run."""
    return donation_of(compiled)
