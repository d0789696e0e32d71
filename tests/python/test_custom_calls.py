"""Custom calls written in Python."""
import _thread

import numpy as np
import pytest

import xlac

TEXT = """HloModule m
ENTRY e {
  x = f32[2,3] parameter(0)
  s = s32[] constant(7)
  t = (f32[2,3], s32[]) tuple(x, s)
  ROOT r = (f32[3], (s32[], token[])) custom-call(t, s), custom_call_target="mine"
}"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def module():
    yield xlac.parse(TEXT)
    xlac.register_custom_call("mine", None)


def test_arrays_in_and_out(module):
    kept = []

    def mine(pair, number):
        kept.append(pair[0])
        assert pair[0].dtype == np.float32 and pair[1] == number == 7
        return pair[0].sum(0), (number + 1, None)

    xlac.register_custom_call("mine", mine)
    total, (number, token) = xlac.interpret(module, X)
    np.testing.assert_array_equal(total, X.sum(0))
    assert number == 8 and number.dtype == np.int32 and token is None
    del module
    np.testing.assert_array_equal(kept[0], X)  # the function may keep what it was given


def test_not_registered(module):
    with pytest.raises(xlac.Error, match="mine") as caught:
        xlac.interpret(module, X)
    assert "register_custom_call" in caught.value.hint and caught.value.op == "r"


@pytest.mark.parametrize("result", [
    None, (X.sum(0),), (X, (7, None)), (X.sum(0).astype("f8"), (7, None)), (X.sum(0), (X, None)), (X.sum(0), (7, None), 1),
    (X.sum(0), (2.5, None)), (X.sum(0), ("no number", None)), (X.sum(0), (7, 7))])
def test_wrong_results(module, result):
    xlac.register_custom_call("mine", lambda *args: result)
    with pytest.raises(xlac.Error, match="custom call mine") as caught:
        xlac.interpret(module, X)
    assert caught.value.op == "r" and isinstance(caught.value.__cause__, Exception)


def test_exceptions_are_the_cause(module):
    def fail(*args):
        raise ZeroDivisionError("by design")

    xlac.register_custom_call("mine", fail)
    with pytest.raises(xlac.Error, match="ZeroDivisionError: by design") as caught:
        xlac.interpret(module, X)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.__cause__.__traceback__ is not None


def test_exits_pass_through(module):
    for exit_type in (KeyboardInterrupt, SystemExit):
        def leave(*args, exit_type=exit_type):
            raise exit_type

        xlac.register_custom_call("mine", leave)
        with pytest.raises(exit_type):
            xlac.interpret(module, X)


def test_runs_inside_runs(module):
    """A custom call may use xlac, on its own module too; editing that is refused until the run has ended."""
    inner = xlac.parse("HloModule i\nENTRY e { x = f32[2,3] parameter(0)\n z = f32[] constant(0)\n"
                       " ROOT r = f32[2,3] negate(x) }")
    names = []

    def mine(pair, number):
        names.extend(op.name for op in module.entry)
        with pytest.raises(xlac.Error, match="run by another thread|is being run"):
            module.name = "other"
        xlac.register_custom_call("mine", None)
        return xlac.interpret(inner, pair[0]).sum(0), (number, None)

    xlac.register_custom_call("mine", mine)
    total, _ = xlac.interpret(module, X)
    np.testing.assert_array_equal(total, -X.sum(0))
    assert "r" in names
    module.name = "other"


def test_only_functions_can_be_registered():
    with pytest.raises(TypeError):
        xlac.register_custom_call("mine", 3)
    with pytest.raises(TypeError):
        xlac.register_custom_call(3, print)
    xlac.register_custom_call("never registered", None)


def test_signals_during_a_custom_call(module):
    def mine(pair, number):
        _thread.interrupt_main()
        for _ in range(10**7):  # the handler runs here
            pass
        return pair[0].sum(0), (number, None)

    xlac.register_custom_call("mine", mine)
    with pytest.raises(KeyboardInterrupt):
        xlac.interpret(module, X)
