"""Runs that go on while the caller does something else."""
import os
import queue
import sys
import threading
from concurrent.futures import CancelledError, Future

from . import _core
from .errors import DonationError

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


def taken(value, where):
    """Donated buffers are given away when the run is asked for, not when it begins."""
    if isinstance(value, _core.Donation):
        return _core._move_donation(value, where)
    if isinstance(value, (tuple, list)):
        return type(value)(taken(v, where) for v in value) if any_donated(value) else value
    return value


def any_donated(values):
    return any(isinstance(v, _core.Donation) or (isinstance(v, (tuple, list)) and any_donated(v)) for v in values)


def check_donations(executable, args):
    """Raises before anything is given away where memory is donated twice, or donated and lent."""
    for leaf, parameter, why in executable._gifts(*args):
        if why is not None and why.startswith("duplicate"):
            raise DonationError(f"argument {parameter} can't be given away: {why}", 508)


def run_async(executable, *args, **kwargs):
    """Like a call, but returns a concurrent.futures.Future at once: result(), exception(), done(), cancel(), add_done_callback(). Runs
    begin in the order they were asked for, one at a time, each with all the threads of its executable; arguments are kept alive, and must
    not be changed before the run is over. What is marked by xlac.donate is given away at once; where that can't be done, the run warns."""
    if any_donated(args) or any_donated(kwargs.values()):
        caller = sys._getframe(1)
        where = f"it was donated to a run at {caller.f_code.co_filename}:{caller.f_lineno}"
        check_donations(executable, args)
        args = tuple(taken(a, where) for a in args)
        kwargs = {name: taken(a, where) for name, a in kwargs.items()}
    future = Future()
    tasks_of_this_process().put((future, executable, args, kwargs))
    return future
