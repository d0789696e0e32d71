"""Every plan that a test makes is proved: no step writes over what is still to be read."""
import functools

import pytest


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
