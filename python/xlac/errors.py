"""The exceptions of xlac. All carry what the C core knows: code, line, col, op, hint."""


class Error(Exception):
    """Something xlac refuses. `code` is stable (docs/errors.md); `line` and `col` count from 1 in the text, 0 where there is
    none; `op` names the op concerned, or is empty; `hint` says what to do about it, or is empty."""

    def __init__(self, message, code=0, line=0, col=0, op="", hint=""):
        super().__init__(message, code, line, col, op, hint)
        self.message, self.code, self.line, self.col, self.op, self.hint = message, code, line, col, op, hint

    def __str__(self):
        where = f"{self.line}:{self.col}: " if self.line else ""
        code = f" [XLAC-E{self.code:04d}]" if self.code else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{where}{self.message}{code}{hint}"

    def _note_place(self, source):
        """Adds the line of the program that the error is about, with a caret under the place, to what tracebacks show."""
        from .diagnostics import excerpt

        raw = source.encode("utf-8", "replace") if isinstance(source, str) else source
        lines = excerpt(raw, self.line, self.col) if self.line and b"\0" not in raw[:64] else []
        if lines and not hasattr(self, "__notes__"):
            self.add_note("\n".join(lines))

    def _render_traceback_(self):
        """What IPython and notebooks show: the usual traceback, and the place in colours."""
        from IPython import get_ipython

        shown = get_ipython().InteractiveTB.structured_traceback(type(self), self, self.__traceback__)
        for note in getattr(self, "__notes__", ()):
            line, _, caret = note.partition("\n")
            coloured = f"\33[1m{line}\33[0m\n\33[1;31m{caret}\33[0m"
            shown = [part.replace(note, coloured) for part in shown] if any(note in part for part in shown) else [*shown, coloured]
        return shown


class ParseError(Error):
    """The text is not a well-formed program."""


class VerifyError(Error):
    """The program breaks a rule of the IR."""


class ArgumentError(Error, TypeError, ValueError):
    """An argument is of the wrong number, element type, dimensions or kind. It is a TypeError and a ValueError, so that who expects
    NumPy's or JAX's exceptions for it finds them."""


class DonationWarning(UserWarning):
    """An argument was to be donated and could only be borrowed; `warnings.simplefilter("error", ...)` makes it an error."""


class DonationError(Error):
    """A donated buffer can't be used as asked."""


class ShardingError(Error):
    """A sharding does not fit."""


class DeviceError(Error):
    """A device can't be used."""


class OutOfMemoryError(Error, MemoryError):
    """Memory ran out."""
