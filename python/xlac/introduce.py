"""What an executable takes and gives, from the program in it: `inputs`, `outputs`, `module`, the signature, notebooks."""
import collections
import inspect
import json
import keyword
import re

from . import _core
from .diagnostics import counted
from .report import escape, html_table, once, short

SHOWN = 6  # of the parameters, in one line
NOT_ARRAYS = ("token", "opaque", None)


class Port(collections.namedtuple("Port", "name type shape dtype sharding donated alias")):
    """A parameter or a result. `type` is as HLO writes it ("f32[2,3]"); `shape` and `dtype` (its name in HLO) are None for tokens and lists
    for tuples; `sharding` is a text or None. `donated`: of a parameter, whether its memory may be donated in calls; of a result, whether
    it takes a parameter's. `alias` is the number of that result, or parameter, or None."""

    __slots__ = ()

    def __str__(self):
        return f"{self.name}: {self.type}"

    @property
    def numpy_dtype(self):
        """The dtype as NumPy knows it, those of ml_dtypes included, so that `np.zeros(port.shape, port.numpy_dtype)` makes an array that fits; None
        for tokens, a list for tuples."""
        if isinstance(self.dtype, (list, tuple)):
            return [Port("", "", None, part, None, False, None).numpy_dtype for part in self.dtype]
        return None if self.dtype in NOT_ARRAYS else _core.numpy_dtype(self.dtype)


@once("module")
def module(executable):
    return executable._copy_module()


def written_name(op):
    """As the framework calls the parameter, where it said so."""
    found = re.search(r'op_name="((?:[^"\\]|\\.)*)"', op.metadata or "")
    return re.sub(r"\\(.)", r"\1", found[1]) if found and "/" not in found[1] else op.name


def leaves_of(type):
    """How many arrays and tokens a type has: those of a tuple are counted."""
    if not type.startswith("("):
        return 1
    return sum(map(leaves_of, parts_of(type)))


def parts_of(text):
    """What is between the outer brackets, split at commas that are in none."""
    parts, depth, start = [], 0, 1
    for i, c in enumerate(text):
        depth += (c in "({[") - (c in ")}]")
        if (c == "," and depth == 1) or (i == len(text) - 1 and text[start:i].strip()):
            parts.append(text[start:i].strip())
            start = i + 1
    return parts


@once("local")
def local(executable):
    """What each device runs, of an executable for several; else None."""
    return executable._copy_local()


@once("cuts")
def cuts(executable):
    """How the leaves of (arguments, results) are cut, as texts, of an executable for several devices; else None."""
    if local(executable) is None:
        return None
    found = json.loads(executable._sharding())
    return [[row["sharding"] for row in found[side]] for side in ("arguments", "results")]


@once("inputs")
def inputs(executable):
    given, ports, leaf = {d["argument"]: d["result"] for d in executable.donations}, [], 0
    of_devices = cuts(executable)
    for op in executable.module.entry.parameters:
        own = range(leaf, leaf + leaves_of(op.bare_type))
        leaf += len(own)
        aliases = [given[i] for i in own if given.get(i) is not None]
        sharding = of_devices[0][own[0]] if of_devices and len(own) == 1 else op.sharding
        ports.append(Port(written_name(op), op.bare_type, op.shape, op.dtype, sharding, any(i in given for i in own),
                          aliases[0] if aliases else None))
    return ports


@once("outputs")
def outputs(executable):
    root = executable.module.entry.root
    maker = local(executable).entry.root if local(executable) else root
    taken = {d["result"]: d["argument"] for d in executable.donations if d["result"] is not None}
    if not root.bare_type.startswith("("):
        sharding = cuts(executable)[1][0] if cuts(executable) else root.sharding
        return [Port(maker.name, root.bare_type, root.shape, root.dtype, sharding, 0 in taken, taken.get(0))]
    types, ports, leaf = parts_of(root.bare_type), [], 0
    names = [op.name for op in maker.operands] if maker.opcode == "tuple" else [f"{maker.name}{{{i}}}" for i in range(len(types))]
    shardings = parts_of(root.sharding) if root.sharding and root.sharding.startswith("{{") else [root.sharding] * len(types)
    shardings = cuts(executable)[1] if cuts(executable) else shardings
    for i, type in enumerate(types):
        own = [taken[k] for k in range(leaf, leaf + leaves_of(type)) if k in taken]
        leaf += leaves_of(type)
        ports.append(Port(names[i], type, root.shape[i], root.dtype[i], shardings[i] if i < len(shardings) else None, bool(own),
                          own[0] if own else None))
    return ports


def identifiers(names):
    """Names as Python can have them, each once; None where that can't be."""
    made = [re.sub(r"\W", "_", re.sub(r"\.\d+$", "", name)) for name in names]
    fine = all(name.isidentifier() and not keyword.iskeyword(name) for name in made) and len(set(made)) == len(made)
    return made if fine else None


OPTIONS = (("out", None), ("seed", 0), ("replica", 0), ("partition", 0), ("progress", None))


def options_beside(names):
    return [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default) for name, default in OPTIONS if name not in names]


def signature(executable):
    ports = executable.inputs
    names = identifiers([port.name for port in ports])
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if names and names == [p.name for p in ports] else inspect.Parameter.POSITIONAL_ONLY
    names = names or [f"x{i}" for i in range(len(ports))]
    of = [inspect.Parameter(name, kind, annotation=port.type) for name, port in zip(names, ports)]
    return inspect.Signature(of + options_beside(names))


def signature_of(ports, calling):
    """That of the function: an argument that is a tree has the name its leaves begin with."""
    positional, named = calling.arguments.children
    by_leaf, names, leaf = dict(zip(calling.kept, ports)), [], 0
    for _i, child in enumerate(positional.children):
        heads = {re.match(r"\w*", by_leaf[k].name)[0] for k in range(leaf, leaf + child.leaves) if k in by_leaf}
        leaf += child.leaves
        names.append(heads.pop() if len(heads) == 1 else "")
    fine = [name if name.isidentifier() and names.count(name) == 1 and name not in ("args", *named.keys) else f"x{i}" for i, name in enumerate(names)]
    of = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in fine]
    of += [inspect.Parameter(str(name), inspect.Parameter.KEYWORD_ONLY) for name in named.keys if str(name).isidentifier()]
    return inspect.Signature(of + options_beside({*fine, *named.keys}))


def few(ports):
    shown = ", ".join(map(str, ports[:SHOWN]))
    return shown + (f", and {len(ports) - SHOWN} more" if len(ports) > SHOWN else "")


def sentence(inputs, outputs):
    """In one line."""
    return f"({few(inputs)}) -> ({few(outputs)})"


def work(executable):
    """How much there is to run, in a few words."""
    steps = executable.steps
    if steps["why_interpreted"]:
        return f"interpreted, because {steps['why_interpreted']}"
    parts = [counted(steps[f"{noun}s"], noun) for noun in ("kernel", "routine") if steps[f"{noun}s"]]
    parts += [counted(steps["interpreted"], "interpreted step")] if steps["interpreted"] else []
    return counted(steps["all"], "step") + (": " + ", ".join(parts) if parts else "")


def line(executable):
    """repr(executable)"""
    fast = ", fast numerics" if executable.numerics == "fast" else ""
    does = f"{sentence(executable.inputs, executable.outputs)}; {work(executable)}{fast}"
    return f"<xlac.Executable {executable.module.name} on {executable.device}: {does}>"


def port_rows(ports, what):
    return [(what, port.name, port.type, port.sharding or "", ("" if not port.donated else "may be donated" if what == "input" else
             "takes an input's memory") + ("" if port.alias is None else f" ({'output' if what == 'input' else 'input'} {port.alias})"))
            for port in ports]


def ports_html(executable, inputs, outputs):
    sizes = executable._sizes
    head = f"{work(executable)}; {short(sizes['argument_bytes'])}B in, {short(sizes['result_bytes'])}B out, {short(sizes['peak_bytes'])}B between"
    rows = port_rows(inputs, "input") + port_rows(outputs, "output")
    return f"<p>{escape(head)}</p>" + html_table(("", "name", "type", "sharding", "donation"), rows)


def html(executable):
    return ports_html(executable, executable.inputs, executable.outputs)
