"""Trees of arguments and results: tuples, lists, dicts and what is nested in them, with arrays at their leaves. JAX calls them pytrees;
here they are read off JAX's own description of one (a PyTreeDef), without importing JAX, and can be written as JSON."""
import collections
import functools

from .codes import Code
from .errors import ArgumentError, Error

SAVED_KEYS = (str, int, float, bool, type(None))  # of dicts, as JSON and back


class Tree:
    """A node. `kind` is "leaf", "none", "tuple", "list", "dict" (also ordered ones), "named" (a named tuple) or "custom" (what was
    registered with JAX: its own description does the work). `keys` are a dict's, or a named tuple's fields."""

    def __init__(self, kind, children=(), keys=(), make=None, size=None):
        self.kind, self.children, self.keys, self.make = kind, tuple(children), tuple(keys), make
        self.leaves = size if size is not None else 1 if kind == "leaf" else sum(child.leaves for child in self.children)

    def flatten(self, value, name="argument"):
        """The leaves of a value that has this structure, in order. Raises ArgumentError that says where it has another."""
        out = []
        self._flatten(value, name, out)
        return out

    def _flatten(self, value, name, out):
        if self.kind == "leaf":
            return out.append(value)
        if self.kind == "custom":
            return out.extend(custom_leaves(self.make, value, name))
        if self.kind == "none":
            return None if value is None else refuse(name, "None", value)
        for child, (part, key) in zip(self.children, self._parts(value, name)):
            child._flatten(part, name + key, out)

    def _parts(self, value, name):
        """[(child's value, how it is written)], checked."""
        if self.kind == "dict":
            if not isinstance(value, collections.abc.Mapping):
                refuse(name, f"a dict with {listed(self.keys)}", value)
            if value.keys() != set(self.keys):
                refuse_keys(name, self.keys, value)
            return [(value[key], f"[{key!r}]") for key in self.keys]
        wanted = {"tuple": tuple, "list": list, "named": tuple}[self.kind]
        if not isinstance(value, wanted) or len(value) != len(self.children):
            refuse(name, f"a {self.kind if self.kind != 'named' else self.make.__name__} of {len(self.children)}", value)
        keys = [f".{field}" for field in self.keys] if self.kind == "named" else [f"[{i}]" for i in range(len(value))]
        return list(zip(value, keys))

    def unflatten(self, leaves):
        """The value with these leaves."""
        return self._unflatten(iter(leaves))

    def _unflatten(self, leaves):
        if self.kind == "leaf":
            return next(leaves)
        if self.kind == "none":
            return None
        if self.kind == "custom":
            return self.make.unflatten([next(leaves) for _ in range(self.leaves)])
        parts = [child._unflatten(leaves) for child in self.children]
        if self.kind == "dict":
            return (self.make or dict)(zip(self.keys, parts))
        return self.make(*parts) if self.kind == "named" else tuple(parts) if self.kind == "tuple" else parts

    def paths(self, name=""):
        """How each leaf is written: "p['w']", for a tree named p."""
        if self.kind == "leaf":
            return [name]
        if self.kind == "custom":
            return [f"{name}<{i}>" for i in range(self.leaves)]
        keys = [f"[{key!r}]" for key in self.keys] if self.kind == "dict" else [f".{key}" for key in self.keys] or \
            [f"[{i}]" for i in range(len(self.children))]
        return [path for child, key in zip(self.children, keys) for path in child.paths(name + key)]

    def to_json(self):
        """As lists and strings. Raises Error for what only JAX can put together again."""
        if self.kind == "custom":
            raise Error("a tree with a class that was registered with JAX can't be saved", Code.BAD_ARGUMENT,
                        hint="give and return tuples, lists, dicts and named tuples")
        if self.kind == "dict" and not all(isinstance(key, SAVED_KEYS) for key in self.keys):
            raise Error(f"a dict with keys such as {self.keys[0]!r} can't be saved", Code.BAD_ARGUMENT)
        label = self.make.__name__ if self.kind == "named" else "OrderedDict" if self.make else ""
        return [self.kind, label, list(self.keys), [child.to_json() for child in self.children]]

    @staticmethod
    def from_json(found):
        """The other way. A named tuple has then a class of its own, with the same name and fields."""
        kind, label, keys, children = found
        make = named_class(label, tuple(keys)) if kind == "named" else collections.OrderedDict if label else None
        return Tree(kind, [Tree.from_json(child) for child in children], keys, make)


LEAF = Tree("leaf")


@functools.cache
def named_class(name, fields):
    return collections.namedtuple(name, fields)


def of_treedef(treedef):
    """The tree that a PyTreeDef of JAX describes."""
    data = treedef.node_data()
    if data is None:
        return LEAF
    kind, keys = data
    children = treedef.children()
    if kind is type(None):
        return Tree("none")
    if kind in (tuple, list):
        return Tree(kind.__name__, map(of_treedef, children))
    if kind in (dict, collections.OrderedDict):
        return Tree("dict", map(of_treedef, children), keys, None if kind is dict else kind)
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return Tree("named", map(of_treedef, children), kind._fields, kind)
    return Tree("custom", make=treedef, size=treedef.num_leaves)


def custom_leaves(treedef, value, name):
    try:
        return treedef.flatten_up_to(value)
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"{name} has another structure than the program was lowered with: {error}", Code.BAD_ARGUMENT) from None


def listed(keys):
    shown = ", ".join(repr(key) for key in keys[:6])
    return f"the keys {shown}" + (f" and {len(keys) - 6} more" if len(keys) > 6 else "")


def described(value):
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, dict):
        return f"a dict with {listed(list(value))}"
    return "None" if value is None else f"{'an' if type(value).__name__[0] in 'aeiou' else 'a'} {type(value).__name__}"


def refuse(name, wanted, value):
    raise ArgumentError(f"{name} must be {wanted}, as the program was lowered with; found {described(value)}", Code.BAD_ARGUMENT)


def refuse_keys(name, keys, value):
    missing = [key for key in keys if key not in value]
    extra = [key for key in value if key not in keys]
    said = "; ".join(f"{what} {listed(some)}" for what, some in (("it lacks", missing), ("it has besides", extra)) if some)
    raise ArgumentError(f"{name} has other keys than the program was lowered with: {said}", Code.BAD_ARGUMENT)
