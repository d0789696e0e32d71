"""Rules of StableHLO: each case of cases/*.txt is refused at its line, with its word in the message; each program of an
accepted case passes."""

from pathlib import Path

import pytest

import xlac

CASES = Path(__file__).parent / "cases"


def cases():
    """Cases are parted by lines of "// -----"; the first line is "// ok" or "// LINE: word", lines counted after it."""
    for file in sorted(CASES.glob("*.mlir")):
        for number, text in enumerate(file.read_text().split("// -----\n")):
            head, body = text.split("\n", 1)
            yield pytest.param(head.removeprefix("// "), body, id=f"{file.stem}-{number}")


@pytest.mark.parametrize("expectation, text", list(cases()))
def test_verify(expectation, text):
    if expectation == "ok":
        xlac.parse(text).verify()
        return
    line, word = expectation.split(": ", 1)
    with pytest.raises(xlac.Error) as caught:
        xlac.parse(text).verify()
    assert caught.value.line == int(line)
    assert word in str(caught.value)
