"""Small text cases: tests/text/cases/*.hlo, each a program and what it must print, in one file.

    // what the case is about
    //// input
    HloModule ...
    //// default
    HloModule ...

A section is named for a print mode; its text ends where the next begins. The answers are XLA's, written by
`python tests/text/cases.py` (needs jaxlib), which leaves alone sections marked `(xlac)`: there XLA is wrong.
"""

import pathlib
import re

FOLDER = pathlib.Path(__file__).parent / "cases"
MODES = ("default", "short", "canonical", "fingerprint")
MARK = re.compile(r"^//// (\w+)( \(xlac\))?\n", re.M)


def read_case(path):
    """(about, {section: text}, names of the sections marked as xlac's own)."""
    text = path.read_text(encoding="utf-8")
    marks = list(MARK.finditer(text))
    ends = [m.start() for m in marks[1:]] + [len(text)]
    sections = {m.group(1): text[m.end() : end] for m, end in zip(marks, ends)}
    return text[: marks[0].start()], sections, {m.group(1) for m in marks if m.group(2)}


def all_cases():
    """(case name, mode, input, expected text) of every expectation."""
    for path in sorted(FOLDER.glob("*.hlo")):
        _, sections, _ = read_case(path)
        for mode in MODES:
            if mode in sections:
                yield path.stem, mode, sections["input"], sections[mode]


def write_answers(modes_of):
    """Writes XLA's answers into every case; modes_of(path) says for which modes, beside those already there."""
    from jaxlib import _hlo

    options = {
        "default": _hlo.HloPrintOptions(),
        "short": _hlo.HloPrintOptions.short_parsable(),
        "canonical": _hlo.HloPrintOptions.canonical(),
        "fingerprint": _hlo.HloPrintOptions.fingerprint(),
    }
    options["default"].print_large_constants = True
    for path in sorted(FOLDER.glob("*.hlo")):
        about, sections, own = read_case(path)
        out = f"{about}//// input\n{sections['input']}"
        for mode in MODES:
            if mode in own:
                out += f"//// {mode} (xlac)\n{sections[mode]}"
            elif mode in sections or mode in modes_of(path):
                answer = _hlo.hlo_module_from_text(sections["input"]).to_string(options[mode])
                out += f"//// {mode}\n{answer}"
        path.write_text(out, encoding="utf-8")


if __name__ == "__main__":
    write_answers(lambda path: ("default",))
