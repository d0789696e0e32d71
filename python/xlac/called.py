"""Executables that are called as the JAX function they were lowered from."""
import json
import re

from .codes import Code
from .errors import ArgumentError, Error
from .introduce import Port, sentence, signature_of

MAGIC = b"XLACTREE"  # of bytes with trees before those of the executable


class TreeExecutable:
    """A compiled JAX function: it takes and returns what the function did, dicts and all. `executable` is what runs; everything but calls
    is as of that: `cost`, `memory`, `timings`, `steps`, `numerics`, `device`, `module`, `donations`, `plan()`, ... Made by
    xlac.compile(jax.jit(f).lower(...))."""

    def __init__(self, executable, calling):
        self.executable, self.calling = executable, calling

    def __call__(self, *args, out=None, seed=0, replica=0, partition=0, progress=None, **named):
        """`out`, `seed`, `replica`, `partition` and `progress` are options of every call, unless the function has arguments of these
        names; `out` has the structure of the result."""
        options = {"out": out, "seed": seed, "replica": replica, "partition": partition, "progress": progress}
        for name in self.calling.arguments.children[1].keys:
            if name in options:
                named[name] = options.pop(name)
        flat = self._flat(args, named)
        if options.get("out") is not None:
            leaves = self.calling.results.flatten(options["out"], "out")
            options["out"] = leaves[0] if len(leaves) == 1 else tuple(leaves)
        try:
            return self.calling.tree(self.executable(*flat, **options))
        except ArgumentError as error:
            raise self._named(error) from None

    def _flat(self, args, named):
        """The program's arguments. Arguments that JAX lowered by position may be given by the names they have in the function."""
        children = self.calling.arguments.children[0].children
        if named and len(args) < len(children):
            names = self._names()
            unknown = named.keys() - set(names) - set(self.calling.arguments.children[1].keys)
            if names.count(None) == 1 and len(unknown) == 1:  # of which the program has no trace, since the function makes nothing of it
                names[names.index(None)] = unknown.pop()
            while len(args) < len(children) and names[len(args)] in named:
                args, named = (*args, named[names[len(args)]]), {name: value for name, value in named.items() if name != names[len(args)]}
        return self.calling.flat(args, named)

    def _names(self):
        """The function's names of its arguments by position: what the paths of their leaves begin with. None where JAX does not say."""
        owners = [i for i, child in enumerate(self.calling.arguments.children[0].children) for _ in range(child.leaves)]
        names = [None] * len(self.calling.arguments.children[0].children)
        for leaf, port in zip(self.calling.kept, self.inputs):
            found = re.match(r"[^\W\d]\w*", port.name)
            if leaf < len(owners) and found and not re.match(r"args\[", port.name):
                names[owners[leaf]] = found[0]
        return names

    def _named(self, error):
        """An error that numbers an argument of the flat program, with the path of the function's instead."""
        found = re.match(r"argument (\d+) \(([^)]*)\)", error.message)
        if found is None or int(found[1]) >= len(self.inputs):
            return error
        name, flat = self.inputs[int(found[1])].name, found[2]
        message, hint = f"argument {name}{error.message[found.end():]}", error.hint
        return ArgumentError(message, error.code, op=error.op, hint=re.sub(rf"(?<!\w){re.escape(flat)}\.", lambda _: f"{name}.", hint))

    def profile(self, *args, repeat=1, warmup=0, **named):
        """As Executable.profile; `result` of the Profile is the function's."""
        found = self.executable.profile(*self._flat(args, named), repeat=repeat, warmup=warmup)
        found.result = self.calling.tree(found.result)
        return found

    def timeline(self, *args, **named):
        """As Executable.timeline."""
        return self.executable.timeline(*self._flat(args, named))

    def run_async(self, *args, **named):
        """As Executable.run_async: a Future of the program's flat result, a tuple of arrays or one array."""
        return self.executable.run_async(*self._flat(args, named))

    def explain(self, topic="schedule", *args, **named):
        """As Executable.explain; what is said of donation names arguments and results as the function has them."""
        found = self.executable.explain(topic, *(self._flat(args, named) if args or named else ()))
        return self._with_paths(found) if topic == "donation" else found

    def _with_paths(self, report):
        """A report on donation with "argument 3, p['w']" for "argument 3, arg3", and "result 2 (result[0]['w'])" for "result 2"."""
        name = lambda ports, found: ports[int(found[1])].name if int(found[1]) < len(ports) else "?"  # noqa: E731
        inputs, outputs = self.inputs, self.outputs
        text = re.sub(r"\bresult (\d+)\b", lambda found: f"{found[0]} ({name(outputs, found)})", report)
        return type(report)(re.sub(r"(?m)^argument (\d+), [^,\s]+(?=, )", lambda found: f"argument {found[1]}, {name(inputs, found)}", text))

    @property
    def inputs(self):
        """The leaves of the arguments that the program has parameters for, by their paths in the function's arguments."""
        return [port._replace(name=path) if path else port for port, path in zip(self.executable.inputs, self._paths())]

    def _paths(self):
        """Names that JAX gave ("p['w']") where it did, else such as "args[0]['w']"."""
        positional, named = self.calling.arguments.children
        paths = [*positional.paths("args"), *named.paths("kwargs")]
        known = [port.name for port in self.executable.inputs]
        return [name if name and not name.startswith(("arg", "parameter", "Arg_")) else paths[i] for i, name in zip(self.calling.kept, known)]

    @property
    def outputs(self):
        """The leaves of the result, by their paths: "result['w']"."""
        return [port._replace(name=path) for port, path in zip(self.executable.outputs, self.calling.results.paths("result"))]

    @property
    def __signature__(self):
        return signature_of(self.inputs, self.calling)

    def serialize(self):
        """Bytes for xlac.load, which makes this again, without JAX. Raises Error where the trees have classes that only JAX knows."""
        head = json.dumps(self.calling.to_json()).encode()
        return MAGIC + len(head).to_bytes(8, "little") + head + self.executable.serialize()

    def __reduce__(self):
        from .pickling import load

        return load, (self.serialize(), self.device, self.executable._as_buffers, self.executable._as_shards)

    def __getattr__(self, name):
        if name.startswith("__") or name in ("executable", "calling"):
            raise AttributeError(name)
        return getattr(self.executable, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self.executable)})

    def __repr__(self):
        return f"<xlac.TreeExecutable {sentence(self.inputs, self.outputs)}>"

    def _repr_html_(self):
        from .introduce import ports_html

        return ports_html(self, self.inputs, self.outputs)


def split(data):
    """(the trees or None, the executable's bytes)"""
    from .staged import Calling

    data = bytes(data)
    if not data.startswith(MAGIC):
        return None, data
    n = int.from_bytes(data[8:16], "little")
    try:
        return Calling.from_json(json.loads(data[16:16 + n])), data[16 + n:]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Error("the trees of this executable are damaged", Code.BAD_EXECUTABLE) from None


__all__ = ["Port", "TreeExecutable", "split"]
