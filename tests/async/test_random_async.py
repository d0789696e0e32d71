"""Random programs, randomly wrapped, updated and scheduled, give their synchronous selves' bits in every order of the
interpreter. XLAC_ASYNC_SWEEP=20000 tries so many more."""
import os
import pathlib
import sys

import numpy as np
import pytest

import xlac

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import random_async  # noqa: E402

CHUNK = 50
SWEEP = int(os.environ.get("XLAC_ASYNC_SWEEP", "0"))


def leaves(value):
    return [x for part in value for x in leaves(part)] if isinstance(value, tuple) else [np.asarray(value)]


def same(a, b):
    return len(a) == len(b) and all(x.dtype == y.dtype and np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b))


def check(seed):
    program = random_async.Program(seed)
    plain, module = xlac.parse(program.sync), xlac.parse(program.overlapped)
    plain.verify()
    module.verify()
    want = leaves(xlac.interpret(plain, *program.args))
    text = module.to_text()
    again = xlac.parse(text)
    assert sorted(again.to_text().split("\n")) == sorted(text.split("\n")), "what is printed reads back"
    for m in (module, again):
        for order in ("eager", "lazy", seed, ~seed & 0xFFFF):
            assert same(leaves(xlac.interpret(m, *program.args, async_order=order)), want), (seed, order)


@pytest.mark.parametrize("first", range(0, SWEEP or 200, CHUNK))
def test_overlapped_is_synchronous(first):
    for seed in range(first, first + CHUNK):
        check(seed)


COUNTED = """HloModule m, is_scheduled=true
inner { ROOT b = u64[2] rng-get-and-update-state(), delta=1 }
ENTRY e { s = ((), u64[2]) async-start(), calls=inner
  c = u64[2] rng-get-and-update-state(), delta=1
  d = u64[2] async-done(s)
  ROOT r = u64[2] subtract(d, c) }
"""


def test_orders_are_what_they_say():
    """Counting is the one thing that tells orders apart."""
    module = xlac.parse(COUNTED)
    later = {order: int(xlac.interpret(module, async_order=order)[0].astype(np.int64)) for order in ("eager", "lazy", *range(40))}
    assert later.pop("eager") == -1 and later.pop("lazy") == 1
    assert set(later.values()) == {-1, 1}


@pytest.mark.parametrize("order,error", [("soon", ValueError), (None, TypeError)])
def test_bad_orders(order, error):
    with pytest.raises(error, match="async_order"):
        xlac.interpret(xlac.parse(COUNTED), async_order=order)


def test_errors_of_late_computations_name_their_op():
    text = """HloModule m
inner { a = f32[] parameter(0)
  ROOT b = f32[] custom-call(a), custom_call_target="nobody" }
ENTRY e { x = f32[] parameter(0)
  s = ((f32[]), f32[]) async-start(x), calls=inner
  ROOT d = f32[] async-done(s) }
"""
    for order in ("eager", "lazy", 3):
        with pytest.raises(xlac.Error) as caught:
            xlac.interpret(xlac.parse(text), np.float32(2), async_order=order)
        assert caught.value.op == "b" and caught.value.line == 3
