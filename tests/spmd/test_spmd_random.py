"""Random programs with random shardings give what they give without (random_groups.py runs more of them)."""
import pytest
import random_groups


@pytest.mark.parametrize("first", range(0, 160, 20))
def test_values_are_those_without_shardings(first):
    assert [s for s in range(first, first + 20) if random_groups.check(s) != "right"] == []


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_values_are_those_of_unreduced_axes_added_up(first):
    assert [s for s in range(first, first + 20) if random_groups.check(s, unreduced=True) != "right"] == []


@pytest.mark.parametrize("seed", [905, 930])
def test_what_a_search_has_found(seed):
    assert random_groups.check(seed) == "right"


@pytest.mark.parametrize("seed", [30, 158, 306, 387, 639, 1316, 3024, 4276])
def test_what_a_search_has_found_of_unreduced_axes(seed):
    assert random_groups.check(seed, unreduced=True) == "right"
