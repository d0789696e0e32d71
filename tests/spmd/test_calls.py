"""Calls of groups leave nothing behind: the short form of calls_without_growth.py."""

import calls_without_growth as calls
import pytest


@pytest.mark.parametrize("name", calls.KINDS)
def test_nothing_grows(name):
    """Of memory only much is found here: what the allocator takes in steps is more than 200 calls lose in all, if they do."""
    made, over, bad = calls.grown(name, 200, 4096)
    assert made and not bad, over
