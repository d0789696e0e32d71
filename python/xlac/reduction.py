"""Finding the smallest part of a program that still fails: xlac.reduce and `xlac reduce`."""
import re

from . import _core
from .codes import Code
from .errors import ArgumentError, Error

LINE = re.compile(r"^\s+(?:ROOT )?%?(?P<name>[^\s=]+) = (?P<type>.*?) (?P<opcode>[a-z][\w-]*)\((?P<rest>.*)$")


class Entry:
    """The entry computation as lines, of which some can be left out. What is read but left out becomes a parameter."""

    def __init__(self, module):
        text = module.to_text("hlo")
        self.name = module.name
        head, _, body = text.partition("\nENTRY ")
        self.others = re.split(r"\n\n", head.partition("\n")[2].strip("\n"))
        self.ops = {op.name: op for op in module.entry.instructions}
        self.order = list(self.ops)
        self.root = module.entry.root.name
        self.lines, self.types = {}, {}
        for line in body.split("\n")[1:]:
            found = LINE.match(line)
            if found:
                self.lines[found["name"]] = line.replace("ROOT ", "", 1)
                self.types[found["name"]] = found["type"]
        self.reads = {name: [operand.name for operand in op.operands] for name, op in self.ops.items()}

    def cone(self, root, cut, instead):
        """What the root needs, in order; cut ops need nothing, and others stand in for some."""
        seen, stack = set(), [instead.get(root, root)]
        while stack:
            name = stack.pop()
            if name not in seen:
                seen.add(name)
                stack += [instead.get(o, o) for o in self.reads[name] if name not in cut]
        return [name for name in self.order if name in seen]

    def text(self, root, cut, instead):
        """The program that computes `root` alone."""
        lines, parameters = [], 0
        names = self.cone(root, cut, instead)
        root = instead.get(root, root)
        for name in names:
            line = self.lines[name]
            if name in cut or self.ops[name].opcode == "parameter":
                line = f"  %{name} = {self.types[name]} parameter({parameters})"
                parameters += 1
            else:
                line = re.sub(r", control-predecessors=\{[^}]*\}", "", line)
                for old, new in instead.items():
                    if old in self.reads[name]:
                        line = re.sub(rf"%{re.escape(old)}(?![\w.\-])", f"%{new}", line)
            lines.append(line.replace("  ", "  ROOT ", 1) if name == root else line)
        body = "\n".join(lines)
        return f"HloModule {self.name}\n\n{self.called(body)}ENTRY %main {{\n{body}\n}}\n"

    def called(self, body):
        """The other computations, as far as they are called."""
        kept, wanted = [], body
        for text in reversed([part for part in self.others if part.strip()]):
            name = re.match(r"%?([^\s(]+)", text.strip())
            if name and re.search(rf"%{re.escape(name[1])}(?![\w.\-])", wanted):
                kept.insert(0, text.strip("\n"))
                wanted += text
        return "".join(text + "\n\n" for text in kept)


class Reduction:
    """A search. `tried` counts programs that `fails` was asked about."""

    def __init__(self, fails, limit, progress=None):
        self.fails, self.limit, self.progress, self.tried, self.known = fails, limit, progress, 0, {}

    def still(self, text):
        """The module of a text that fails as the first one did, or None. Texts that are not programs don't."""
        if text in self.known:
            return self.known[text]
        if self.tried >= self.limit:
            return None
        try:
            module = _core.parse(text, format="hlo")
            module.verify(xla_compat=True)
        except Error:
            self.known[text] = None
            return None
        self.tried += 1
        if self.progress is not None:
            self.progress(self.tried, len(module.entry))
        self.known[text] = module if self.fails(module) else None
        return self.known[text]

    def root(self, entry):
        """The op with the least below it that fails alone."""
        sized = sorted(entry.order, key=lambda name: len(entry.cone(name, (), {})))
        for name in sized:
            if entry.types[name].startswith("token") or entry.ops[name].opcode == "parameter":
                continue
            if self.still(entry.text(name, set(), {})) is not None:
                return name
        return entry.root

    def cut(self, entry, root):
        """Ops that may as well be parameters: in halves, quarters, and one by one."""
        cut = set()
        size = max(1, len(entry.cone(root, cut, {})) // 2)
        while size:
            names = [name for name in entry.cone(root, cut, {}) if name not in cut and name != root and entry.ops[name].opcode != "parameter"]
            for start in range(0, len(names), size):
                more = cut | set(names[start:start + size])
                if self.still(entry.text(root, more, {})) is not None:
                    cut = more
            size //= 2
        return cut

    def bypass(self, entry, root, cut):
        """Ops that one of their operands may stand in for."""
        instead = {}
        for name in reversed(entry.cone(root, cut, {})):
            for operand in () if name in cut else entry.reads[name]:
                trial = {**{old: operand if new == name else new for old, new in instead.items()}, name: operand}
                if entry.types[operand] == entry.types[name] and self.still(entry.text(root, cut, trial)) is not None:
                    instead = trial
                    break
        return instead

    def once(self, module):
        entry = Entry(module)
        root = self.root(entry)
        cut = self.cut(entry, root)
        instead = self.bypass(entry, root, cut)
        return self.still(entry.text(root, cut, instead))


def differs(a="interpreter", b="compiled", rtol=1e-5, atol=1e-6, seed=0):
    """A predicate for `reduce`: two ways of running the program (as for xlac.diff) give other results on random arguments, or one of them
    fails."""
    from .difference import Way
    from .values import compare, draw_inputs, leaves

    ways = Way(a), Way(b)

    def fails(module):
        arguments = draw_inputs(module.entry.parameters, seed)
        results = []
        for way in ways:
            try:
                results.append(way.run(module, arguments))
            except Error as error:
                results.append(error)
        broken = [isinstance(result, Error) for result in results]
        return broken[0] != broken[1] if any(broken) else bool(compare(results[1], [array for _, array in leaves(results[0]) if array is not None],
                                                                       rtol, atol))

    return fails


def reduce(program, fails, *, limit=2000, progress=None):
    """The smallest part of a program that still fails.

    First the result is replaced by the op with the least below it that fails; then ops become parameters; then operands stand in for ops.
    Called computations go along as they are: `inline-calls` before may find more.

    Parameters
    ----------
    program : program
        A Module, or what `parse` takes for one.
    fails : callable
        Called with Modules that are valid; whether they fail. It must be true of the program itself.
    limit : int
        The most Modules to try.
    progress : callable, optional
        `progress(asked, ops)`, called before each.

    Returns
    -------
    Module
        In HLO form.

    Raises
    ------
    ArgumentError
        The program itself does not fail.

    Examples
    --------
    >>> xlac.reduce(program, lambda module: "dot" in module.to_text())
    >>> xlac.reduce(program, xlac.reduction.differs("interpreter", "fast"))
    """
    from . import parse

    module = parse(program)
    module = module.to_hlo() if module.form == "mlir" else module.clone()
    search = Reduction(fails, limit, progress)
    if not fails(module):
        hint = "the predicate must be true of the whole program; on the command line, where --differ's ways differ or --command does not exit with 0"
        raise ArgumentError("the program does not fail, so there is nothing to reduce", Code.BAD_ARGUMENT, hint=hint)
    while True:
        smaller = search.once(module)
        if smaller is None or len(smaller.entry) >= len(module.entry):
            return module
        module = smaller
