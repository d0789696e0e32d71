"""Random programs with random faults: refused with a place, or right, whatever the passes and the interpreter do with them.
XLAC_ASYNC_SWEEP=20000 tries so many mutants."""
import os
import pathlib
import random
import re
import sys

import numpy as np
import pytest

import xlac

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import random_async  # noqa: E402

SWEEP = int(os.environ.get("XLAC_ASYNC_SWEEP", "0"))
PIPELINES = ["async-unwrap", "async-wrap{updates=1},latency-hiding-scheduler", "convert-async-pairs{generic=true}", "convert-async-to-sync{all=true}"]


def mutant(rng, text):
    lines = text.split("\n")
    for _ in range(rng.choice([1, 1, 2])):
        at = rng.choice([i for i, line in enumerate(lines) if " = " in line])
        names = re.findall(r"\b[a-z]+\.\d+\b", text)
        kind = rng.randrange(6)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[at])
        elif kind == 2:  # another operand, computation or predecessor
            uses = list(re.finditer(r"\b[a-z]+\.\d+\b", lines[at].split(" = ", 1)[1]))
            if uses:
                use, start = rng.choice(uses), lines[at].index(" = ") + 3
                lines[at] = lines[at][:start + use.start()] + rng.choice(names) + lines[at][start + use.end():]
        elif kind == 3:
            lines[at] = re.sub(r"-(start|update|done)\(", lambda m: f"-{rng.choice(['start', 'update', 'done'])}(", lines[at])
        elif kind == 4:
            lines[at] = re.sub(r"(f32|s32|u32)\[", lambda m: rng.choice(["f32[", "s32[", "u32[", m[0]]), lines[at])
        else:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines)


def leaves(value):
    return [x for part in value for x in leaves(part)] if isinstance(value, tuple) else [np.asarray(value)]


def check(seed):
    rng = random.Random(seed)
    program = random_async.Program(rng.randrange(1 << 30), size=5)
    text = mutant(rng, program.overlapped)
    try:
        module = xlac.parse(text)
        module.verify()
    except xlac.Error as error:
        assert 1 <= error.line <= text.count("\n") + 1 and error.col >= 1 and error.message
        return False
    try:
        want = leaves(xlac.interpret(module, *program.args))
    except xlac.Error as error:
        assert error.message and "argument" in error.message  # the mutant takes others
        return True
    for m in [module] + [module.run(p) for p in PIPELINES]:
        m.verify(xla_compat=True)
        for order in ("eager", "lazy", seed):
            got = leaves(xlac.interpret(m, *program.args, async_order=order))
            assert len(got) == len(want) and all(np.array_equal(g, w, equal_nan=True) for g, w in zip(got, want)), (seed, order)
    return True


@pytest.mark.parametrize("first", range(0, SWEEP or 300, 100))
def test_mutants(first):
    good = sum(check(seed) for seed in range(first, first + 100))
    assert 3 < good < 97
