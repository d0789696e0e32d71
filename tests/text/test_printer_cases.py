"""The printer against XLA's answers in tests/text/cases."""

import pytest

import xlac

from .cases import all_cases

CASES = list(all_cases())


@pytest.mark.parametrize("name,mode,text,expected", CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_prints_as_expected(name, mode, text, expected):
    assert xlac.parse(text).to_text(format="hlo", mode=mode) == expected


@pytest.mark.parametrize("name,text", {c[0]: c[3] for c in CASES if c[1] == "default"}.items())
def test_what_is_printed_reads_back(name, text):
    """Reading and printing settles: the first round may still move what the text's order decided."""
    once = xlac.parse(text).to_text()
    twice = xlac.parse(once).to_text()
    assert xlac.parse(twice).to_text() == twice
