"""What may stand for a program: its text or bytes, a path, an open file, a Builder, a Module."""
import os

from . import _core
from .codes import Code
from .errors import ParseError

SUFFIXES = (".hlo", ".mlir", ".pb", ".txt", ".stablehlo", ".mlirbc", ".bc", ".hlotxt", ".pbtxt")
LONGEST_PATH = 4096


def looks_like_a_path(text):
    """One line without blanks that names a file, or ends like one: no program looks so."""
    if len(text) > LONGEST_PATH or not text or any(c.isspace() or c == "\0" for c in text):
        return False
    return text.lower().endswith(SUFFIXES) or os.path.exists(text)


def source(what):
    """The text or bytes of a program, or a Module, for parse: from anything that stands for one."""
    if isinstance(what, _core.Module):
        return what
    if isinstance(what, str):
        if looks_like_a_path(what):
            raise ParseError(f"{what!r} is the name of a file, not the text of a program", Code.SYNTAX, 1, 1,
                             hint=f"give a path: pathlib.Path({what!r}), or its text: open({what!r}).read()")
        return what.removeprefix("\ufeff")  # which some editors write
    if isinstance(what, (bytes, bytearray, memoryview)):
        return bytes(what).removeprefix(b"\xef\xbb\xbf")
    if isinstance(what, os.PathLike):
        with open(what, "rb") as file:
            return file.read().removeprefix(b"\xef\xbb\xbf")
    if callable(getattr(what, "read", None)):
        return source_of_file(what)
    from .staged import is_staged, text_of

    if is_staged(what):
        return text_of(what)
    from .builder import Builder

    if isinstance(what, Builder):
        return what.build()
    if any(base.__module__.partition(".")[0] == "torch" for base in type(what).__mro__):
        raise TypeError(f"expected a program, found PyTorch's {type(what).__name__}: give the StableHLO that PyTorch/XLA makes of it, "
                        "torch_xla.stablehlo.exported_program_to_stablehlo(torch.export.export(model, arguments)).get_stablehlo_text(\"forward\")")
    if callable(what):
        name = getattr(what, "__name__", None) or type(what).__name__
        lower = f"{name}.lower(*arguments)" if callable(getattr(what, "lower", None)) else f"jax.jit({name}).lower(*arguments)"
        raise TypeError(f"expected a program, found a function: give what JAX lowers it to for arguments of certain shapes, {lower}")
    raise TypeError("expected a program: text, bytes, a path (os.PathLike), an open file, a Builder, a Module, or what JAX has lowered; found "
                    f"{type(what).__name__}")


def source_of_file(file):
    text = file.read()
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"an open file gives text or bytes, this {type(file).__name__} gives {type(text).__name__}")
    return text
