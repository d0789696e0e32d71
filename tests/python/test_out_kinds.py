"""out= of any kind of array: NumPy's, what speaks DLPack, what has a buffer; written where they are, and given back as they are."""
import array

import numpy as np
import pytest

import xlac

ADD = "HloModule m\nENTRY e {\n  x = f32[2,3] parameter(0)\n  ROOT r = f32[2,3] add(x, x)\n}"
PAIR = "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  s = f32[2] add(x, x)\n  ROOT t = (f32[2], (f32[2])) tuple(s, n)\n}".replace(
    "ROOT t = (f32[2], (f32[2])) tuple(s, n)", "i = (f32[2]) tuple(x)\n  ROOT t = (f32[2], (f32[2])) tuple(s, i)")
X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Tensor:
    """A producer of DLPack that is not a ndarray."""

    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **wishes):
        return self.data.__dlpack__(**wishes)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


class Interface:
    def __init__(self, data):
        self.data = data
        self.__array_interface__ = data.__array_interface__


def run_as(executable, way):
    if way == "fast":
        return lambda *args, **named: executable(*args, **named)
    return lambda *args, **named: executable(*(np.asfortranarray(a).tolist() for a in args), **named)  # converted first


@pytest.fixture(params=["fast", "converted", "interpreted"])
def add(request):
    executable = xlac.compile(ADD, device="interp" if request.param == "interpreted" else "cpu")
    return run_as(executable, request.param)


@pytest.mark.parametrize("kind", [np.asarray, Tensor, Interface, memoryview], ids=lambda kind: kind.__name__)
def test_it_is_written_where_it_lies_and_given_back(add, kind):
    memory = np.full((2, 3), -1, np.float32)
    out = kind(memory)
    assert add(X, out=out) is out
    assert np.array_equal(memory, 2 * X)


def test_a_python_array_has_a_buffer():
    exe = xlac.compile("HloModule m\nENTRY e {\n  x = f32[3] parameter(0)\n  ROOT r = f32[3] negate(x)\n}")
    out = array.array("f", [0, 0, 0])
    assert exe(np.array([1, 2, 3], np.float32), out=out) is out and out.tolist() == [-1, -2, -3]


def test_trees_of_kinds():
    exe = xlac.compile(PAIR)
    first, second = Tensor(np.zeros(2, np.float32)), np.zeros(2, np.float32)
    x = np.array([1, 2], np.float32)
    result = exe(x, out=[first, (second,)])
    assert result[0] is first and result[1][0] is second and first.data.tolist() == [2, 4] and second.tolist() == [1, 2]
    made = exe(x, out=(first, (None,)))
    assert made[0] is first and made[1][0].tolist() == [1, 2]


def test_over_an_argument_of_the_same_memory():
    exe = xlac.compile("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] reverse(x), dimensions={0}\n}")
    memory = np.arange(4, dtype=np.float32)
    out = Tensor(memory)
    assert exe(memory, out=out) is out and memory.tolist() == [3, 2, 1, 0]


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


@pytest.mark.parametrize("bad, why", [
    (lambda: [[0.0] * 3] * 2, "a list has no memory of its own"),
    (lambda: 3.0, "a float has no memory of its own"),
    (lambda: Tensor(np.zeros((2, 3), np.float64)), "its dtype is another one"),
    (lambda: Tensor(np.zeros((3, 2), np.float32)), "its shape is another one"),
    (lambda: Tensor(np.zeros((3, 2), np.float32).T), "not contiguous"),
    (lambda: memoryview(read_only(X)), "it is read-only"),
    (lambda: b"abc", "its dtype is another one"),
    (lambda: xlac.from_dlpack(X, copy=True), "a Buffer does not change; xlac.donate"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_what_can_not_be_written_is_refused_with_the_reason(add, bad, why):
    with pytest.raises(xlac.ArgumentError, match="out, array 0, must be a writable C-contiguous array of f32.2,3.: .*" + why) as caught:
        add(X, out=bad())
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, ValueError)


def test_what_a_producer_says_is_said():
    class Refuses:
        def __dlpack__(self, **wishes):
            raise BufferError("tensors of Tuesday are not exported")

    with pytest.raises(xlac.ArgumentError, match="a Refuses can't be written to: tensors of Tuesday"):
        xlac.compile(ADD)(X, out=Refuses())

    class Interrupts:
        def __dlpack__(self, **wishes):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        xlac.compile(ADD)(X, out=Interrupts())


def test_jax_arrays_are_read_only():
    jnp = pytest.importorskip("jax.numpy")
    with pytest.raises(xlac.ArgumentError, match="out, array 0"):
        xlac.compile(ADD)(X, out=jnp.zeros((2, 3)))
