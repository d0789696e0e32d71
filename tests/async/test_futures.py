"""Executable.run_async: futures that are waited for, awaited, cancelled, chained, donated, and left alone."""
import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import xlac
from conftest import leaves
from test_lanes import FOREVER

X = np.ones(8, np.float32)


@pytest.fixture(scope="module")
def twice():
    return xlac.compile("HloModule m\nENTRY e { x = f32[8] parameter(0)\n ROOT y = f32[8] add(x, x) }")


@pytest.fixture(scope="module")
def pair():
    return xlac.compile("HloModule m\nENTRY e { x = f32[8] parameter(0)\n y = f32[8] add(x, x)\n ROOT t = (f32[8], f32[8]) tuple(x, y) }")


@pytest.fixture
def endless():
    exe = xlac.compile(FOREVER, threads=1)
    futures = []
    yield lambda: futures.append(exe.run_async(np.int64(0), np.float32(1))) or futures[-1]
    for future in futures:
        future.cancel()
        assert future.wait(10)


def test_results_and_waiting(twice):
    future = twice.run_async(X)
    assert future.wait(10) and future.done() and not future.cancelled() and future.exception() is None
    assert future.result()[0] == 2 and isinstance(future, xlac.Future)
    seen = []
    future.add_done_callback(seen.append)
    assert seen == [future] and not future.cancel()


def test_chains_begin_before_results_are_there(twice, pair):
    future = twice.run_async(X)
    for _ in range(20):
        future = twice.run_async(future)
    assert future.result(10)[0] == 2.0 ** 21
    both = pair.run_async(X)
    assert twice.run_async(both[1]).result(10)[0] == 4 and np.asarray(both[0])[0] == 1
    assert pair.run_async(x=both[1])[1].result(10)[0] == 4
    assert twice(both[1])[0] == 4 if hasattr(both[1], "__array__") else True


def test_errors_go_down_the_chain(twice):
    bad = twice.run_async(np.ones(3, np.float32))
    late = twice.run_async(bad)
    assert late.exception(10) is bad.exception(10) and isinstance(late.exception(), xlac.Error)
    assert twice.run_async(X).result(10)[0] == 2


def test_awaiting(twice):
    async def main():
        one = twice.run_async(X)
        return await one, await asyncio.gather(*(asyncio.wrap_future(twice.run_async(one)) for _ in range(3)))
    first, rest = asyncio.run(main())
    assert first[0] == 2 and [r[0] for r in rest] == [4, 4, 4]


def test_cancelling(twice, endless):
    running = endless()
    waiting, after = twice.run_async(X), None
    while not running.running():
        time.sleep(0.001)
    assert not running.wait(0.01)
    with pytest.raises(TimeoutError):
        running.result(0.01)
    assert waiting.cancel() and waiting.cancelled()
    after = twice.run_async(running)
    assert running.cancel() and running.wait(10) and running.cancelled()
    with pytest.raises(xlac.future.CancelledError):
        running.result()
    assert after.wait(10) and after.cancelled()


def test_a_cancelled_task_of_asyncio_stops_the_run(endless):
    async def main():
        await asyncio.wait_for(endless(), 0.2)
    with pytest.raises(TimeoutError):
        asyncio.run(main())


def test_donated_results():
    exe = xlac.compile("HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\nENTRY e { x = f32[1000] parameter(0)\n"
                       "ROOT y = f32[1000] add(x, x) }")
    first = exe.run_async(np.ones(1000, np.float32))
    address = first.result(10).ctypes.data
    second = exe.run_async(first.donate())
    assert second.result(10).ctypes.data == address and leaves(second.result())[0][0] == 4


def test_a_child_has_nothing_to_wait_for(twice, endless):
    running = endless()
    child = os.fork()
    if child == 0:
        try:
            running.result()
        except RuntimeError:
            os._exit(0 if twice.run_async(X).result(10)[0] == 2 else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_interpreter_ends_with_runs_under_way():
    script = f"import numpy as np, xlac\nexe = xlac.compile({FOREVER!r}, threads=1, async_work=1)\n" \
             "all = [exe.run_async(np.int64(0), np.float32(1)) for _ in range(3)]\nprint('fine')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


def test_many_threads_ask(twice):
    results = []

    def ask():
        results.extend(twice.run_async(twice.run_async(X)).result(30)[0] for _ in range(10))
    threads = [threading.Thread(target=ask) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert results == [4] * 40


def waiting(endless, twice):
    """An endless run and behind it as many as may wait."""
    running = endless()
    while not running.running():
        time.sleep(0.001)
    return running, [twice.run_async(X) for _ in range(xlac.future.MOST_WAITING)]


def test_no_more_than_so_many_runs_wait(twice, endless, monkeypatch):
    monkeypatch.setattr(xlac.future, "MOST_WAITING", 5)
    monkeypatch.setattr(xlac.future, "WORKERS", {})
    running, queued = waiting(endless, twice)
    late = []
    caller = threading.Thread(target=lambda: late.append(twice.run_async(X)))
    caller.start()
    caller.join(0.1)
    assert caller.is_alive() and not late
    running.cancel()
    caller.join()
    assert [f.result()[0] for f in queued + late] == [2] * 6


def test_ctrl_c_while_waiting_for_room_loses_nothing(twice, endless, monkeypatch):
    monkeypatch.setattr(xlac.future, "MOST_WAITING", 1)
    monkeypatch.setattr(xlac.future, "WORKERS", {})
    running, queued = waiting(endless, twice)
    mine = xlac.asarray(X.copy())
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        twice.run_async(xlac.donate(mine))
    assert np.asarray(mine)[0] == 1
    running.cancel()
    assert queued[0].result()[0] == 2 and twice.run_async(xlac.donate(mine)).result()[0] == 2


def test_runs_asked_for_by_the_thread_that_runs_them_do_not_wait(twice, endless, monkeypatch):
    monkeypatch.setattr(xlac.future, "MOST_WAITING", 1)
    monkeypatch.setattr(xlac.future, "WORKERS", {})
    first, more = endless(), []
    first.add_done_callback(lambda _: more.extend(twice.run_async(X) for _ in range(4)))
    first.cancel()
    assert first.wait() and threading.current_thread() is threading.main_thread()
    assert twice.run_async(X).result()[0] == 2 and [f.result()[0] for f in more] == [2] * 4
