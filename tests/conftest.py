"""Every plan that a test makes is proved: no step writes over what is still to be read. And Ctrl-C reaches the tests that
send it, however they were started."""
import functools
import importlib.util
import signal
import sys

import pytest

# Where JAX is not installed, the folder of JAX's own tests beside this file would be imported under its name, as a package without a file.
if (found := importlib.util.find_spec("jax")) and found.origin is None:
    sys.modules["jax"] = None


@pytest.fixture(scope="session", autouse=True)
def proved_plans():
    from xlac import _core

    compile = _core.compile

    @functools.wraps(compile)
    def proved(*args, **kwargs):
        executable = compile(*args, **kwargs)
        executable._check()
        return executable

    _core.compile = proved
    yield
    _core.compile = compile


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_is_not_ignored():
    """Background jobs (nohup, a shell's &) start with SIGINT ignored, and so would all they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
