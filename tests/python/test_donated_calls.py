"""Calls with xlac.donate: the result is where the argument was; what can't be donated is borrowed, and a warning says why."""
import gc
import inspect
import threading

import numpy as np
import pytest

import xlac

TEXT = """HloModule m
ENTRY e {
  x = f32[1000] parameter(0)
  y = f32[1000] parameter(1)
  ROOT r = f32[1000] add(x, y)
}
"""
ONES = np.ones(1000, np.float32)


@pytest.fixture(scope="module")
def exe():
    return xlac.compile(TEXT, donate=0)


def pointer(a):
    return a.__array_interface__["data"][0]


def test_an_array(exe):
    x = np.arange(1000, dtype=np.float32)
    want = x + 1
    r = exe(xlac.donate(x), ONES)
    assert pointer(r) == pointer(x) and r.base is x
    np.testing.assert_array_equal(r, want)


def test_a_buffer_is_gone_and_its_memory_is_the_results(exe):
    x = xlac.from_dlpack(np.arange(1000, dtype=np.float32), copy=True)
    where = x.unsafe_pointer()
    r = exe(xlac.donate(x), ONES)
    assert pointer(r) == where and x.is_deleted
    np.testing.assert_array_equal(r, np.arange(1000, dtype=np.float32) + 1)
    for _ in range(3):  # the memory goes on from call to call
        r = exe(xlac.donate(r), ONES)
        assert pointer(r) == where
    np.testing.assert_array_equal(r, np.arange(1000, dtype=np.float32) + 4)
    with pytest.raises(xlac.DonationError, match="deleted|donated"):
        exe(x, ONES)
    with pytest.raises(xlac.DonationError):
        exe(xlac.donate(x), ONES)
    del x
    gc.collect()
    np.testing.assert_array_equal(r, np.arange(1000, dtype=np.float32) + 4)


def test_a_lent_argument_is_untouched(exe):
    x = np.arange(1000, dtype=np.float32)
    kept = x.copy()
    exe(x, ONES)
    np.testing.assert_array_equal(x, kept)


@pytest.mark.parametrize("value, why", [
    (lambda: np.arange(1000, dtype=np.float64), "dtype"),
    (lambda: np.arange(2000, dtype=np.float32)[::2], "contiguous"),
    (lambda: np.broadcast_to(np.float32(1), (1000,)), "read-only")])
def test_what_can_only_be_lent_says_why(exe, value, why):
    x = value()
    try:
        with pytest.warns(xlac.DonationWarning, match=why):
            r = exe(xlac.donate(x), ONES)
    except xlac.Error:
        assert why == "dtype"  # refused as a lent one would be
        return
    np.testing.assert_array_equal(r, x + 1)


def test_a_buffer_with_views_is_lent(exe):
    b = xlac.from_dlpack(np.zeros(1000, np.float32), copy=True)
    view = np.asarray(b)
    with pytest.warns(xlac.DonationWarning, match="views of it are alive"):
        r = exe(xlac.donate(b), ONES)
    assert not b.is_deleted and not view.any() and r.all()


def test_an_argument_without_a_result(exe):
    with pytest.warns(xlac.DonationWarning, match="no result takes its memory: the program neither aliases nor donates it"):
        exe(ONES, xlac.donate(ONES.copy()))


def test_the_warning_as_an_error_leaves_everything(exe):
    import warnings

    x = xlac.from_dlpack(np.zeros(1000, np.float32), copy=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", xlac.DonationWarning)
        with pytest.raises(xlac.DonationWarning):
            exe(xlac.donate(x), xlac.donate(ONES.copy()))
    assert not x.is_deleted
    np.testing.assert_array_equal(np.asarray(x), 0)


def test_the_same_memory_given_and_lent(exe):
    x = np.arange(1000, dtype=np.float32)
    b = xlac.from_dlpack(np.zeros(1000, np.float32), copy=True)
    both = xlac.compile(TEXT, donate=(0, 1))
    for program, args in ((exe, (xlac.donate(x), x)), (exe, (xlac.donate(x[:]), x)), (exe, (xlac.donate(b), b)),
                          (both, (x, xlac.donate(x))), (both, (xlac.donate(b), xlac.donate(b)))):
        with pytest.raises(xlac.DonationError, match=r"duplicate: argument 0 \(x\) .* argument 1 \(y\)") as caught:
            program(*args)
        assert caught.value.code == 508
    assert not b.is_deleted
    np.testing.assert_array_equal(x, np.arange(1000))
    np.testing.assert_array_equal(exe(b, x), x)  # still usable


def test_use_after_donation_names_the_place(exe):
    b = xlac.from_dlpack(np.zeros(1000, np.float32), copy=True)
    exe(xlac.donate(b), ONES)
    line = inspect.currentframe().f_lineno - 1
    for use in (lambda: exe(b, ONES), b.numpy, lambda: exe(xlac.donate(b), ONES)):
        with pytest.raises(xlac.DonationError) as caught:
            use()
        assert f"donated to m as argument 0 (x) at {__file__}:{line}" in caught.value.message


def test_one_of_many_threads_gets_it(exe):
    b, won = xlac.from_dlpack(np.zeros(1000, np.float32), copy=True), []

    def run():
        try:
            won.append(exe(xlac.donate(b), ONES))
        except xlac.DonationError:
            pass
    threads = [threading.Thread(target=run) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(won) == 1 and won[0].all()


def test_values_take_donations_as_lent():
    m = xlac.parse("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  n = s32[] constant(4)\n  d = f32[<=4] set-dimension-size(x, n), dimensions={0}\n  ROOT r = f32[<=4] negate(d)\n}")
    x = np.ones(4, np.float32)
    with pytest.warns(xlac.DonationWarning, match="the interpreter runs this program whole"):
        np.testing.assert_array_equal(xlac.compile(m)(xlac.donate(x)), -np.ones(4))
    with pytest.raises(xlac.DonationError, match="interpreter"):
        xlac.compile(m, donate=(0, "require"))
    np.testing.assert_array_equal(x, 1)


def test_async_runs_take_what_is_donated_at_once(exe):
    b = xlac.from_dlpack(np.zeros(1000, np.float32), copy=True)
    where = b.unsafe_pointer()
    future = exe.run_async(xlac.donate(b), ONES)
    line = inspect.currentframe().f_lineno - 1
    assert b.is_deleted
    with pytest.raises(xlac.DonationError, match=f"donated to a run at .*:{line}"):
        b.numpy()
    with pytest.raises(xlac.DonationError):
        exe.run_async(xlac.donate(b), ONES)
    r = future.result()
    assert pointer(r) == where and r.all()
    c = xlac.from_dlpack(np.zeros(1000, np.float32), copy=True)
    with pytest.raises(xlac.DonationError, match="duplicate"):
        exe.run_async(xlac.donate(c), c)
    assert not c.is_deleted
    x = np.zeros(1000, np.float32)
    assert pointer(exe.run_async(xlac.donate(x), ONES).result()) == pointer(x)
