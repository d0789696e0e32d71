"""Random programs with random shardings give what they give without (random_groups.py runs more of them)."""
import pytest
import random_groups


@pytest.mark.parametrize("first", range(0, 160, 20))
def test_values_are_those_without_shardings(first):
    assert [s for s in range(first, first + 20) if random_groups.check(s) != "right"] == []


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_values_are_those_of_unreduced_axes_added_up(first):
    found = [random_groups.check(s, unreduced=True) for s in range(first, first + 20)]
    assert all(f == "right" or f.startswith("refused") for f in found) and found.count("right") >= 18


@pytest.mark.parametrize("seed", [905, 930])
def test_what_a_search_has_found(seed):
    assert random_groups.check(seed) == "right"


@pytest.mark.parametrize("seed", [30, 158, 306, 387])
def test_what_a_search_has_found_of_unreduced_axes(seed):
    assert random_groups.check(seed, unreduced=True) == "right"
