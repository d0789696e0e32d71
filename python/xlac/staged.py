"""Programs that JAX has in its hands: jax.jit(f).lower(...), what that compiles to, jax.export's Exported, MLIR modules. They are known by
what they can do, and JAX is not imported."""
from .codes import Code
from .diagnostics import counted
from .errors import ArgumentError, Error
from .trees import Tree, of_treedef


class Calling:
    """How a program is called as the function it was lowered from: `arguments` is the tree of (args, kwargs), `results` that of what it
    returns. `kept` are the leaves that the program has parameters for: JAX drops what a function does not use."""

    def __init__(self, arguments, results, kept):
        self.arguments, self.results, self.kept = arguments, results, list(kept)

    def flat(self, args, kwargs):
        """The program's arguments."""
        leaves, (positional, named) = [], self.arguments.children
        if len(args) != len(positional.children):
            raise ArgumentError(f"the function was lowered with {counted(len(positional.children), 'argument')} by position; found {len(args)}",
                                Code.ARGUMENT_COUNT, hint=self.count_hint(len(args) > len(positional.children), named.keys))
        for i, (child, value) in enumerate(zip(positional.children, args)):
            leaves += child.flatten(value, f"argument {i}")
        leaves += named.flatten(kwargs, "the arguments by name,")
        return [plain(leaves[i]) for i in self.kept]

    @staticmethod
    def count_hint(too_many, names):
        """Why there may be too many arguments by position, of a function that was lowered with some by name."""
        if not too_many:
            return ""
        if names:
            return f"give {', '.join(map(str, names))} by name, as when it was lowered"
        return "static arguments are part of the program: leave them out"

    def tree(self, result):
        """The function's result, from the program's: an array, or a tuple of arrays."""
        return self.results.unflatten(result if isinstance(result, tuple) else (result,))

    def to_json(self):
        return [self.arguments.to_json(), self.results.to_json(), self.kept]

    @staticmethod
    def from_json(found):
        arguments, results, kept = found
        return Calling(Tree.from_json(arguments), Tree.from_json(results), kept)


def plain(leaf):
    """JAX's typed random keys are arrays of integers inside."""
    dtype = str(getattr(leaf, "dtype", ""))
    return getattr(leaf, "_base_array", leaf) if dtype.startswith("key<") else leaf


def is_staged(what):
    """Whether it is one of these."""
    return any(callable(getattr(what, name, None)) for name in ("mlir_module", "as_serialized_hlo_module_proto")) or \
        (callable(getattr(what, "as_text", None)) and hasattr(what, "in_tree")) or is_mlir(what)


def lowered(what):
    """Of what jax.jit(f).trace(*arguments) gives, what that lowers to; all else as it is."""
    return what.lower() if type(what).__name__ == "Traced" and hasattr(what, "jaxpr") else what


def is_mlir(what):
    return callable(getattr(getattr(what, "operation", None), "get_asm", None))


def text_of(what):
    """The program as text or bytes, with its source locations where they are to be had."""
    if callable(getattr(what, "mlir_module", None)):
        return what.mlir_module()
    if callable(getattr(what, "as_serialized_hlo_module_proto", None)):
        return what.as_serialized_hlo_module_proto()
    if is_mlir(what):
        return what.operation.get_asm(enable_debug_info=True)
    try:
        return what.as_text(debug_info=True)
    except TypeError:  # what is compiled has no such choice
        return what.as_text()


def calling_of(what, parameters):
    """The Calling of a staged function whose program has so many parameters; None for a bare program."""
    if not hasattr(what, "in_tree") or not hasattr(what, "out_tree"):
        return None
    arguments, results = of_treedef(what.in_tree), of_treedef(what.out_tree)
    return Calling(arguments, results, kept_leaves(what, arguments.leaves, parameters))


def kept_leaves(what, leaves, parameters):
    """Exported says which arguments the program has; Lowered knows it inside."""
    kept = getattr(what, "module_kept_var_idx", None)
    if kept is None:
        staged = getattr(what, "_lowering", None) or getattr(what, "_executable", None)
        kept = getattr(staged, "compile_args", {}).get("kept_var_idx") if staged is not None else None
        kept = getattr(staged, "_kept_var_idx", None) if kept is None else kept
    kept = sorted(kept) if kept is not None else range(leaves)
    if len(kept) != parameters:
        raise Error(f"the program has {parameters} parameters for {len(kept)} arguments of the function", Code.BAD_ARGUMENT,
                    hint="lower jax.jit(f, keep_unused=True), or compile the text, as_text(), and call it with bare arrays")
    return kept
