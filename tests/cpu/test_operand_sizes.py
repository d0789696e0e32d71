"""Programs whose operands get their sizes at run time: all engines give the same, or all refuse; none reads past an operand."""
import numpy as np
import pytest

import xlac

from . import operand_sizes
from .conftest import leaves


def outcome(run):
    """The arrays, or None for a refusal."""
    try:
        return leaves(run())
    except xlac.Error as error:
        assert "internal" not in type(error).__name__.lower()
        return None


def same(got, want):
    if got is None or want is None:
        return got is want
    return len(got) == len(want) and all(g.dtype == w.dtype and g.shape == w.shape and np.array_equal(g, w, equal_nan=g.dtype.kind == "f")
                                         for g, w in zip(got, want))


@pytest.mark.parametrize("kind", operand_sizes.KINDS)
def test_engines_agree_on_operands_of_any_size(kind):
    seen = {"ran": 0, "refused": 0}
    for seed in range(2000):
        program = operand_sizes.Program(seed)
        if program.kind != kind:
            continue
        module = xlac.parse(program.text)
        try:
            module.verify()
        except xlac.VerifyError:  # some mixtures of quantised types have no such op
            assert kind == "quantised"
            continue
        want = outcome(lambda: xlac.interpret(module, *program.args))
        if sum(seen.values()) >= 25:
            break
        seen["ran" if want is not None else "refused"] += 1
        for options in ({}, {"fuse": False}, {"passes": False}):
            executable = xlac.compile(module, threads=1, **options)
            assert same(outcome(lambda: executable(*program.args)), want), (options, seed, program.text)
        try:
            data = xlac.compile(module, threads=1).serialize()
        except xlac.Error:  # some ops have no serialized form
            continue
        loaded = xlac.load(data)
        assert same(outcome(lambda: loaded(*program.args)), want), (seed, program.text)
    assert seen["ran"] > 3


def test_programs_are_of_all_kinds_and_some_do_not_fit():
    kinds = {operand_sizes.Program(seed).kind for seed in range(400)}
    assert kinds == set(operand_sizes.KINDS) and len(kinds) > 15
