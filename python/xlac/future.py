"""Runs that go on while the caller does something else."""
import os
import queue
import threading
from concurrent.futures import CancelledError, Future

__all__ = ["CancelledError", "Future", "run_async"]

QUEUES = {}  # by process, since no thread survives a fork


def work(tasks):
    while True:
        run(*tasks.get())


def run(future, executable, args, kwargs):
    """Nothing of a task is held when this returns, so that arguments and results die when their owners let them."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(executable(*args, **kwargs))
    except BaseException as error:  # whatever it is belongs to whoever asks for the result
        future.set_exception(error)


def tasks_of_this_process():
    """The queue of the one thread that runs what is asked for, in order. The thread ends with the process."""
    process = os.getpid()
    tasks = QUEUES.get(process)
    if tasks is None:
        own = queue.SimpleQueue()
        tasks = QUEUES.setdefault(process, own)
        if tasks is own:
            threading.Thread(target=work, args=(tasks,), name="xlac-async", daemon=True).start()
    return tasks


def run_async(executable, *args, **kwargs):
    """Like a call, but returns a concurrent.futures.Future at once: result(), exception(), done(), cancel(), add_done_callback(). Runs
    begin in the order they were asked for, one at a time, each with all the threads of its executable; arguments are kept alive, and must
    not be changed before the run is over."""
    future = Future()
    tasks_of_this_process().put((future, executable, args, kwargs))
    return future
