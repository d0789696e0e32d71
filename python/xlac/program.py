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


# How files begin that are given for programs, and what to do with them.
BEGINNINGS = (
    (b"\x1f\x8b", "these bytes are compressed: gunzip them first"), (b"PK\x03\x04", "this is a zip archive: unpack it first"),
    (b"\x7fELF", "this is machine code"), (b"BC\xc0\xde", "this is LLVM bitcode, which has no HLO in it"),
    (b"; ModuleID", "this is LLVM IR, which has no HLO in it"), (b"\xff\xfe", "the text is UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "the text is UTF-16: save it as UTF-8"), (b"\x93NUMPY", "this is an array, not a program"),
    (b"{ lambda", "this is a jaxpr: give jax.jit(f).lower(*arguments), or its as_text()"), (b"{", "this looks like JSON, not a program"),
    (b"import ", "this looks like Python: give jax.jit(f).lower(*arguments), or the text that its as_text() gives"),
    (b"node {", "this is a TensorFlow graph: xlac.cluster and `xlac cluster` read those"),
    *((start, "this is one of XLA's reports: programs are in *.before_optimizations.txt and *after_optimizations.txt")
      for start in (b"BufferAssignment:", b"allocation ", b"HloLiveRange", b"Memory Space:", b"Total bytes used")),
)


def mistaken(source, error):
    """A hint for an error of reading, where what was read looks like no program at all; else None."""
    raw = (source[:200].encode("utf-8", "replace") if isinstance(source, str) else bytes(source[:200])).lstrip(b" \t\r\n" if error.line else b"")
    if not source.strip():
        return "there is no program in it: it is empty"
    if error.code == Code.UNKNOWN_OPCODE and raw.startswith(b"HloModule"):
        return "this is HLO, read as MLIR: leave the format out, or say hlo"
    if error.code == Code.BAD_PROTO and raw[:1] == b"\n":
        return "if this is a TensorFlow graph: xlac.cluster and `xlac cluster` read those"
    return next((hint for start, hint in BEGINNINGS if raw.startswith(start)), None)


def with_hint(error, source):
    """The error of reading it, which says so where the source is something else than a program."""
    if error.line <= 2 and (not error.hint or error.code == Code.UNKNOWN_OPCODE):
        error.hint = mistaken(source, error) or error.hint
    return error


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
    from .staged import is_staged, lowered, text_of

    what = lowered(what)
    if is_staged(what):
        return text_of(what)
    from .builder import Builder

    if isinstance(what, Builder):
        return what.build()
    if any(base.__module__.partition(".")[0] == "torch" for base in type(what).__mro__):
        raise TypeError(f"expected a program, found PyTorch's {type(what).__name__}: give the StableHLO that PyTorch/XLA makes of it, "
                        "torch_xla.stablehlo.exported_program_to_stablehlo(torch.export.export(model, arguments)).get_stablehlo_text(\"forward\")")
    if type(what).__name__ == "ClosedJaxpr":
        raise TypeError("expected a program, found a jaxpr: give what JAX lowers the function to, jax.jit(f).lower(*arguments)")
    if isinstance(what, _core.Executable) or isinstance(getattr(what, "executable", None), _core.Executable):
        raise TypeError("expected a program, found an Executable, which is compiled already: call it with arrays; the program in it is its `module`")
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
