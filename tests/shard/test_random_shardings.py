"""Random programs: propagation ends, leaves a module that verifies and reads back, and once more changes nothing that is closed.

XLAC_SHARDY_SEEDS=10000 runs that many (the default is 40). random_programs.py compares with Shardy."""
import os

import pytest

import xlac

from random_programs import PASSES, program

SEEDS = int(os.environ.get("XLAC_SHARDY_SEEDS", 40))


@pytest.mark.parametrize("passes", PASSES)
def test_ends_in_a_valid_module(passes):
    done = 0
    for seed in range(SEEDS):
        try:
            out = xlac.parse(program(seed)).run(passes)
        except xlac.Error as error:  # two shardings of an op may not go together at all
            assert error.message and "reshard" in passes, (seed, error)
            continue
        out.verify()
        text = out.to_text()
        assert xlac.parse(text).to_text() == text
        done += 1
    assert done > SEEDS // 2


def test_the_same_answer_every_time():
    for seed in range(min(SEEDS, 20)):
        first, second = (xlac.parse(program(seed)).run("sdy-user-priority-propagate").to_text() for _ in range(2))
        assert first == second
