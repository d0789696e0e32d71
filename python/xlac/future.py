"""Runs that go on while the caller does something else."""
import asyncio
import atexit
import concurrent.futures
import os
import queue
import sys
import threading
from concurrent.futures import CancelledError

from . import _core
from .codes import Code
from .errors import DonationError

__all__ = ["CancelledError", "Future", "run_async"]

WORKERS = {}  # by process, since no thread survives a fork
MOST_WAITING = 1000  # runs that have not begun; whoever asks for more waits until one does


class Future(concurrent.futures.Future):
    """The result of Executable.run_async, which may not be there yet. Beside what a concurrent.futures.Future has: `wait(timeout)`,
    `await future`, `future[i]` for a part of the result, and `future.donate()`. A Future may be an argument of another run_async: that
    run begins when this one is over, and fails as it fails. Thread-safe; of use only in the process that made it."""

    def __init__(self):
        super().__init__()
        self._process, self._stopping, self._stopped = os.getpid(), False, False

    def wait(self, timeout=None):
        """Whether the run is over, one way or another, after at most `timeout` seconds (None: however long it takes)."""
        self._check_process()
        return bool(concurrent.futures.wait([self], timeout).done)

    def result(self, timeout=None):
        """What the call gives. Raises what the call raised, CancelledError, or TimeoutError after `timeout` seconds."""
        self._check_process()
        return super().result(timeout)

    def exception(self, timeout=None):
        """What the call raised, or None; CancelledError and TimeoutError as in result."""
        self._check_process()
        return super().exception(timeout)

    def cancel(self):
        """False once the run is over. A run that has not begun never will; one that is under way is asked to stop, which it does some
        50 ms later at the soonest and then is cancelled, unless it was over before."""
        if super().cancel():
            return True
        self._stopping = True
        return not self.done() or self._stopped

    def cancelled(self):
        """Whether the run was cancelled before it was over."""
        return self._stopped or super().cancelled()

    def __await__(self):
        return asyncio.wrap_future(self).__await__()

    def __getitem__(self, index):
        """Part `index` of a result that is a tuple: a Future itself."""
        return Part(self, index)

    def donate(self):
        """Marks the result as an argument that another run_async may overwrite (see xlac.donate)."""
        return Donated(self)

    def __array__(self, dtype=None, copy=None):
        import numpy

        return numpy.array(self.result(), dtype=dtype, copy=copy) if copy is not None else numpy.asarray(self.result(), dtype=dtype)

    def _check_process(self):
        if self._process != os.getpid() and not self.done():
            raise RuntimeError("this run belongs to the process that this one was forked from: it never ends here")

    def _progress(self, then):
        """For the run to ask now and then: the caller's progress=, and whether to stop."""
        def ask(seconds):
            if self._stopping:
                raise CancelledError
            if then is not None:
                then(seconds)
        return ask

    def _run(self, executable, args, kwargs):
        """Nothing of a task is held when this returns, so that arguments and results die when their owners let them."""
        if not self.set_running_or_notify_cancel():
            return
        try:
            kwargs = {name: arrived(value) for name, value in kwargs.items()}
            kwargs["progress"] = self._progress(kwargs.get("progress"))
            self.set_result(executable(*map(arrived, args), **kwargs))
        except BaseException as error:  # whatever it is belongs to whoever asks for the result
            self._stopped = isinstance(error, CancelledError)
            self.set_exception(error)


class Part(Future):
    """An element of a result."""

    def __init__(self, whole, index):
        super().__init__()
        self._process = whole._process
        self._whole, self._index = whole, index
        whole.add_done_callback(self._arrive)

    def cancel(self):
        """As of the whole run."""
        return self._whole.cancel()

    def cancelled(self):
        return self._whole.cancelled()

    def _arrive(self, whole):
        try:
            self.set_result(whole.result()[self._index])
        except BaseException as error:
            self.set_exception(error)


class Donated:
    """A Future as an argument that is donated."""

    def __init__(self, future):
        self.future = future


def arrived(value):
    """An argument with what was not there yet when it was given."""
    if isinstance(value, Future):
        return value.result()
    if isinstance(value, Donated):
        return _core.donate(value.future.result())
    if type(value) in (tuple, list):
        return type(value)(map(arrived, value))
    return value


class Worker:
    """The one thread of a process that runs what is asked for, in order."""

    def __init__(self):
        self.tasks, self.task = queue.SimpleQueue(), None
        self.lock = threading.Lock()
        self.thread = None
        self.room = threading.Semaphore(MOST_WAITING)

    def start(self):
        with self.lock:
            if self.thread is None:
                self.thread = self.make_thread()

    def make_thread(self):
        """A daemon, which ends when stop says so; where the interpreter allows none, one that ends before others are waited for."""
        try:
            thread = threading.Thread(target=self.work, name="xlac-async", daemon=True)
            thread.start()
            atexit.register(self.stop)
        except RuntimeError:
            thread = threading.Thread(target=self.work, name="xlac-async", daemon=False)
            threading._register_atexit(self.stop)
            thread.start()
        return thread

    def take_room(self):
        """Waits for room in the queue, as Ctrl-C may interrupt. The worker's own thread (a callback that asks for a run) never waits
        for itself. Whether there is room to be given back."""
        return threading.current_thread() is not self.thread and self.room.acquire()

    def post(self, future, counted, *run):
        self.tasks.put((future, counted, *run))

    def next_task(self, block):
        """Future, executable and arguments of the task that is next, or None at the end. Without `block`, raises queue.Empty."""
        task = self.tasks.get(block)
        if task is not None and task[1]:
            self.room.release()
        return task and (task[0], *task[2:])

    def work(self):
        while (task := self.next_task(True)) is not None:
            self.task = task[0]
            self.task._run(*task[1:])
            self.task = task = None

    def stop(self):
        """At the interpreter's end: what is under way is stopped, what has not begun never does."""
        if self.thread is None or WORKERS.get(os.getpid()) is not self:
            return
        while True:
            try:
                self.next_task(False)[0].cancel()
            except queue.Empty:
                break
        self.tasks.put(None)
        task = self.task
        if task is not None:
            task.cancel()
        self.thread.join()


def worker_of_this_process():
    process = os.getpid()
    worker = WORKERS.get(process)
    if worker is None:
        worker = WORKERS.setdefault(process, Worker())
    worker.start()
    return worker


def taken(value, where):
    """Donated buffers are donated when the run is asked for, not when it begins."""
    if isinstance(value, _core.Donation):
        return _core._move_donation(value, where)
    if isinstance(value, (tuple, list)):
        return type(value)(taken(v, where) for v in value) if any_donated(value) else value
    return value


def any_donated(values):
    return any(isinstance(v, _core.Donation) or (isinstance(v, (tuple, list)) and any_donated(v)) for v in values)


def any_pending(values):
    return any(isinstance(v, (Future, Donated)) or (isinstance(v, (tuple, list)) and any_pending(v)) for v in values)


def check_donations(executable, args):
    """Raises before anything is donated where memory is donated twice, or donated and borrowed."""
    for _leaf, parameter, why in executable._gifts(*args):
        if why is not None and why.startswith("duplicate"):
            raise DonationError(f"argument {parameter} can't be donated: {why}", Code.DONATION_TWICE)


def run_async(executable, *args, **kwargs):
    """Like a call, but returns a Future at once. Runs begin in the order they were asked for, one at a time, each with all the threads of
    its executable. Arguments are kept alive, and must not be changed before the run is over; a Future among them (also inside of tuples)
    stands for its result, which need not be there yet. What is marked by xlac.donate is donated at once; where that can't be done,
    the run warns. At most MOST_WAITING runs wait to begin: whoever asks for another one waits until there is room."""
    worker = worker_of_this_process()
    counted = worker.take_room()  # before anything is donated: Ctrl-C here loses nothing
    try:
        args, kwargs = given_away(executable, args, kwargs)
    except BaseException:
        if counted:
            worker.room.release()
        raise
    future = Future()
    worker.post(future, counted, executable, args, kwargs)
    return future


def given_away(executable, args, kwargs):
    """The arguments, those that are donated taken from their owners."""
    if any_donated(args) or any_donated(kwargs.values()):
        caller = sys._getframe(2)
        where = f"it was donated to a run at {caller.f_code.co_filename}:{caller.f_lineno}"
        if not any_pending(args):  # the memory of what is not there yet is looked at by the run
            check_donations(executable, args)
        args = tuple(taken(a, where) for a in args)
        kwargs = {name: taken(a, where) for name, a in kwargs.items()}
    return args, kwargs
