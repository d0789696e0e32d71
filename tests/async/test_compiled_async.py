"""All async programs of the conformance data and random ones: the compiled executor gives the interpreter's values, and the same
bits for any lanes. XLAC_ASYNC_SWEEP=20000 tries so many random programs."""
import json
import lzma
import os
import pathlib

import numpy as np
import pytest

import random_async
import xlac
from conftest import argument, close, leaves, same

DATA = pathlib.Path(os.environ.get("XLAC_CONFORMANCE", pathlib.Path(__file__).resolve().parents[3] / "shared" / "conformance")) / "hlo/corpus.jsonl.xz"
SWEEP, CHUNK = int(os.environ.get("XLAC_ASYNC_SWEEP", "0")), 25
LANES = [1, 2, 4, {"": 0}]


def corpus():
    if not DATA.exists():
        return []
    with lzma.open(DATA, "rt") as file:
        rows = [json.loads(line) for line in file]
    return [pytest.param(r, id=r["name"]) for r in rows if r["category"] == "async" and r["kind"] == "roundtrip" and r["verify"] == "ok"]


def outcome(function, *args):
    """(leaves, None) or (None, the error)."""
    try:
        return leaves(function(*args)), None
    except xlac.Error as error:
        return None, error


def is_dynamic(module):
    return any("<=" in str(op.type) for computation in module.computations for op in computation.instructions)


@pytest.mark.skipif(not DATA.exists(), reason="no conformance data")
@pytest.mark.parametrize("case", corpus())
def test_corpus(case):
    module = xlac.parse(case["input"])
    rng = np.random.default_rng(0)
    args = [argument(p.type, rng) for p in module.entry.parameters]
    want, refused = outcome(xlac.interpret, module, *args)
    for lanes in (None, {"": 2}):
        exe = xlac.compile(module, threads=1, lanes=lanes, async_work=1)
        dynamic = is_dynamic(module)
        assert (exe.steps["why_interpreted"] is None) == (not dynamic)
        exe._check()
        got, error = outcome(exe, *args)
        if refused is not None:
            assert error.op == refused.op and error.line == refused.line
            assert str(refused).split(" [")[0].split(": ", 1)[1] in str(error)
        else:
            assert error is None and close(got, want)


def check(seed):
    program = random_async.Program(seed)
    want = leaves(xlac.interpret(xlac.parse(program.sync), *program.args))
    module = xlac.parse(program.overlapped)
    base = leaves(xlac.compile(module, threads=1, async_work=1 << 60)(*program.args))
    assert close(base, want), seed
    for lanes in LANES:
        exe = xlac.compile(module, threads=1, lanes=lanes, async_work=1)
        assert exe.steps["why_interpreted"] is None
        if lanes == 1:
            exe._check()
        assert same(leaves(exe(*program.args)), base), (seed, lanes)


@pytest.mark.parametrize("first", range(0, SWEEP or 100, CHUNK))
def test_random(first):
    for seed in range(first, first + CHUNK):
        check(seed)


@pytest.mark.parametrize("seed", [3, 4335, 7847, 8068, 15429])
def test_seeds_that_once_failed(seed):
    """Control edges of parameters and to what is not needed; a loop's initial tuple that is in a control edge; a body whose root stands
    in the schedule before what is moved out of the loop."""
    check(seed)
