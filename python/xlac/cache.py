"""Compiled programs on disk, so that another process that compiles the same program has it sooner (docs/cache.md). Off unless `enable` or the
environment's XLAC_CACHE says otherwise: "1" is the user's own folder, anything else a folder's path, "" and "0" no cache."""
import collections
import errno
import os
import re

from .errors import ArgumentError
from .codes import Code

LIMIT = 256 << 20  # bytes of all entries, where XLAC_CACHE_BYTES says nothing
PARTS = {"program": "the program", "xlac": "xlac's version", "build": "xlac's build", "isa": "the machine's vector instructions",
         "native": "XLAC_NATIVE", "numerics": "numerics=", "fusion": "fuse=", "passes": "passes=", "donate": "donate="}
_came = collections.Counter()


def note(came, name):
    """What came of the cache when a program was compiled, for `stats` and the logger named xlac."""
    kind = came if came == "hit" else came.split(" ")[0] if came.startswith("stored") else "not stored"
    _came[kind] += 1
    if kind == came:
        return
    import logging

    logging.getLogger("xlac").warning("the cache and %s: %s", name, came)


def folder():
    """The folder of the cache, or None where it is off."""
    given = os.environ.get("XLAC_CACHE", "")
    if given != "1":
        return given if given not in ("", "0") else None
    home = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("HOME") and os.path.join(os.environ["HOME"], ".cache"))
    return os.path.join(home, "xlac", "executables") if home else None


def enable(path=None, *, limit=None):
    """From now on, programs are looked for in a folder, and kept there: in this process, by its environment, and in those that it starts.

    Parameters
    ----------
    path : path-like, optional
        The folder; it is made when the first program is kept. None: xlac/executables in XDG_CACHE_HOME or ~/.cache.
    limit : int, optional
        Bytes of all entries, 256 MiB if nobody says; past it, those go first whose last use is longest ago.
    """
    text = "1" if path is None else os.path.abspath(os.fspath(path))
    if path is not None and os.path.exists(text) and not os.path.isdir(text):
        raise NotADirectoryError(errno.ENOTDIR, "the cache is a folder, and this is not", text)
    if limit is not None and limit < 1:
        raise ArgumentError(f"limit must be at least 1 byte, found {limit}", Code.BAD_ARGUMENT, hint="xlac.cache.disable() switches the cache off")
    os.environ["XLAC_CACHE"] = text
    if limit is not None:
        os.environ["XLAC_CACHE_BYTES"] = str(int(limit))


def disable():
    """Programs are compiled each time. What is in the folder stays."""
    os.environ["XLAC_CACHE"] = ""


def _files():
    where = folder()
    try:
        names = os.listdir(where) if where else []
    except OSError:
        names = []
    return [os.path.join(where, name) for name in names if re.fullmatch(r"[0-9a-f]{32}\.xlac", name)]


def _head(path):
    """What the entry depends on, by word; {} where it can't be read, or is damaged."""
    try:
        with open(path, "rb") as file:
            lines = file.read(1 << 16).split(b"\n\n", 1)[0].decode("ascii", "replace").splitlines()
            about = os.fstat(file.fileno())
    except OSError:
        return {}
    if not lines or lines[0] != "xlac cache 1":
        return {}
    words = dict(line.split(" ", 1) for line in lines[1:] if " " in line)
    return {**words, "bytes": about.st_size, "used": about.st_mtime} if words.keys() >= PARTS.keys() else {}


def entries():
    """The entries as dicts, the last used one first: "name" of the module, what it depends on ("program" is a sum of its text), "bytes", and
    "used", in seconds since 1970."""
    found = [{"name": head.get("name", ""), **{part: head[part] for part in PARTS}, "bytes": head["bytes"], "used": head["used"]}
             for head in map(_head, _files()) if head]
    return sorted(found, key=lambda entry: -entry["used"])


def stats():
    """A dict: "folder" (None: the cache is off), "entries", "bytes", "limit", and of this process "hits", "stored" and "failed": programs that
    were neither found nor kept, each of which the logger named xlac has a warning for."""
    sizes = []
    for path in _files():
        try:
            sizes.append(os.stat(path).st_size)
        except OSError:  # another process has just removed it
            pass
    given = os.environ.get("XLAC_CACHE_BYTES", "")
    return {"folder": folder(), "entries": len(sizes), "bytes": sum(sizes), "limit": (int(given) if given.isdecimal() else 0) or LIMIT,
            "hits": _came["hit"], "stored": _came["stored"], "failed": _came["not stored"]}


def clear():
    """Removes all entries of the folder; their number."""
    removed = 0
    for path in _files():
        try:
            os.unlink(path)
            removed += 1
        except FileNotFoundError:  # another process was first
            pass
    return removed


def explain_miss(module, **options):
    """Why the cache does not have a program.

    Parameters
    ----------
    module : program
        As for `compile`.
    **options
        Those of `compile`.

    Returns
    -------
    str
        "" where the cache has it. Else which parts of its key differ from the nearest entry, one a line: the same program's, or one's of the
        same name.

    Raises
    ------
    ArgumentError
        The cache is off, or can't hold the program.
    """
    from . import compile_stage

    key = dict(line.split(" ", 1) for line in compile_stage(module, "cache-key", **options).splitlines())
    heads = [head for head in map(_head, _files()) if head]
    if any(all(head[part] == key[part] for part in PARTS) and head.get("name") == key["name"] for head in heads):
        return ""
    near = [head for head in heads if head["program"] == key["program"]] or [head for head in heads if head.get("name") == key["name"]]
    if not near:
        return f"no entry is of this program, or of one named {key['name']}; {len(heads)} are of others"
    nearest = min(near, key=lambda head: (sum(head[part] != key[part] for part in PARTS), -head["used"]))
    return "\n".join(f"{words}: the entry has {nearest[part]}, this is {key[part]}" for part, words in PARTS.items() if nearest[part] != key[part])
