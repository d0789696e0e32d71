"""Structured ops against XLA: random dimension numbers, windows and computations, over every element type.

XLA:CPU runs some narrow types wrongly or not at all; where it does not compile a module its cases are compared with NumPy
where a case says how, and counted: a few may fall out, not all."""
import math

import ml_dtypes
import numpy as np
import pytest

import real_xla
import structured_cases as cases
import xlac
from structured_cases import ALL, FLOATS, INTS, TYPES, Case, module_of

ROUNDS = 24  # cases a module


def interpret(text, *args):
    m = xlac.parse(text)
    m.verify()
    return real_xla.leaves(xlac.interpret(m, *args))


def as_wide(a):
    return a.astype(np.complex128) if a.dtype.kind == "c" else a.astype(np.float64)


def check(case, got, want):
    for g, w in zip(got, want):
        assert g.shape == w.shape and g.dtype == w.dtype, (case.name, case.line, g.dtype, w.dtype, g.shape, w.shape)
        exact = case.close == 0 or g.dtype.kind in "biu" or g.dtype.name.startswith(("int", "uint"))
        if exact and g.tobytes() == w.tobytes():
            continue
        g, w = as_wide(g), as_wide(w)
        np.testing.assert_array_equal(np.isnan(g), np.isnan(w), err_msg=case.line)
        if exact:
            np.testing.assert_array_equal(g, w, err_msg=f"{case.name}: {case.line}")
            continue
        finite = np.isfinite(w)
        np.testing.assert_array_equal(g[~finite & ~np.isnan(w)], w[~finite & ~np.isnan(w)], err_msg=case.line)
        scale = max(np.max(np.abs(w[finite]), initial=0), 1e-30)
        error = np.max(np.abs(g - w)[finite], initial=0) / scale
        assert error <= case.close, (case.name, case.line, error)


def split(batch, leaves):
    at = 0
    for case in batch:
        yield case, leaves[at:at + case.count]
        at += case.count


def run_batch(batch):
    """Compares all cases of one module; returns how many XLA could not run and NumPy could not stand in for."""
    text, args = module_of(batch)
    got = interpret(text, *args)
    try:
        want = real_xla.run(text, *args)
    except Exception:  # XLA's errors come as several types
        if len(batch) > 1:
            return sum(run_batch([c]) for c in batch)
        case = batch[0]
        if case.expect is None:
            return 1
        want = [np.asarray(w) for w in case.expect(*(a for _, a in case.args))]
    for (case, g), (_, w) in zip(split(batch, got), split(batch, want)):
        check(case, g, w)
    return 0


def run_rounds(make, t, rounds=ROUNDS, seed=0, allowed=0.0):
    rng = np.random.default_rng([seed, *t.encode(), *make.__name__.encode()])
    lost = run_batch([make(rng, t) for _ in range(rounds)])
    assert lost <= allowed * rounds, f"XLA ran only {rounds - lost} of {rounds}"


MOVES = [cases.transpose, cases.slice_, cases.pad, cases.reverse, cases.broadcast, cases.concatenate, cases.reshape,
         cases.dynamic_slice, cases.dynamic_update_slice, cases.gather]
# XLA:CPU has no storage or no arithmetic for these.
NO_XLA = {"f8e8m0fnu", "f4e2m1fn", "s2", "u2"}


@pytest.mark.parametrize("make", MOVES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("t", ALL)
def test_movement(make, t):
    run_rounds(make, t, ROUNDS if t == "f32" else 8, allowed=1.0 if t in NO_XLA else 0.0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("make", [cases.gather, cases.scatter, cases.pad, cases.dot, cases.convolution, cases.reduce,
                                  cases.reduce_window, cases.sort], ids=lambda f: f.__name__)
def test_many_dimension_numbers(make, seed):
    run_rounds(make, ["f32", "s32", "f64"][seed % 3], 60, seed + 1)


ARITHMETIC = [cases.scatter, cases.reduce, cases.reduce_window]


@pytest.mark.parametrize("make", ARITHMETIC, ids=lambda f: f.__name__)
@pytest.mark.parametrize("t", ALL)
def test_computations(make, t):
    run_rounds(make, t, 12, allowed=1.0 if t in NO_XLA or t in ("s4", "u4") else 0.25)


@pytest.mark.parametrize("make", [cases.scatter_several, cases.reduce_several, cases.reduce_window_several,
                                  cases.select_and_scatter], ids=lambda f: f.__name__)
@pytest.mark.parametrize("t", ["f32", "f64", "s32", "s8", "u16", "s64"])
def test_several_operands(make, t):
    run_rounds(make, t, 12)
