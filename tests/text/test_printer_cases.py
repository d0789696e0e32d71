"""The printer against XLA's answers in tests/text/cases."""

import pytest

import xlac

from .cases import all_cases

CASES = list(all_cases())


@pytest.mark.parametrize("name,mode,text,expected", CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_prints_as_expected(name, mode, text, expected):
    assert xlac.parse(text).to_text(format="hlo", mode=mode) == expected


@pytest.mark.parametrize("name,mode,text,expected", CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_what_is_printed_reads_back(name, mode, text, expected):
    if mode not in ("default", "short"):
        pytest.skip("this mode is for comparing, not for reading")
    again = xlac.parse(expected).to_text(format="hlo", mode=mode)
    assert again == expected
