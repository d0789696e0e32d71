"""Value: what a Builder's ops give, with Python's operators."""
import numbers

from .dtypes import table
from .codes import Code
from .errors import ArgumentError



def binary(opcode, swapped=False):
    def operator(self, other):
        pair = (other, self) if swapped else (self, other)
        return self.builder._elementwise(opcode, pair)

    return operator


def comparison(direction):
    def compare(self, other):
        return self.builder.compare(self, other, direction)

    compare.__doc__ = f"Elementwise comparison {direction}, an array of pred."
    return compare


class Value:
    """The result of an op under construction. Operators make ops: arithmetic, bitwise, shifts, <, <=, >, >=, @, [...]; equality
    is `eq` and `ne`, as == tells whether two Values are the same. % has the sign of the dividend, as HLO's remainder."""

    __array_ufunc__ = None  # NumPy arrays on the left leave operators to us
    __slots__ = ("builder", "instruction")

    def __init__(self, builder, instruction):
        self.builder, self.instruction = builder, instruction

    name = property(lambda self: self.instruction.name)
    shape = property(lambda self: self.instruction.shape, doc="Sizes; a list of shapes for tuples.")
    dtype = property(lambda self: self.instruction.dtype if isinstance(self.instruction.dtype, str) else "tuple")
    type = property(lambda self: self.instruction.bare_type, doc="The type as text, \"f32[2,3]\".")

    def __repr__(self):
        return f"<xlac.Value {self.name}: {self.type}>"

    __add__, __radd__ = binary("add"), binary("add", True)
    __sub__, __rsub__ = binary("subtract"), binary("subtract", True)
    __mul__, __rmul__ = binary("multiply"), binary("multiply", True)
    __truediv__, __rtruediv__ = binary("divide"), binary("divide", True)
    __mod__, __rmod__ = binary("remainder"), binary("remainder", True)
    __pow__, __rpow__ = binary("power"), binary("power", True)
    __and__, __rand__ = binary("and"), binary("and", True)
    __or__, __ror__ = binary("or"), binary("or", True)
    __xor__, __rxor__ = binary("xor"), binary("xor", True)
    __lshift__, __rlshift__ = binary("shift-left"), binary("shift-left", True)
    eq, ne = comparison("EQ"), comparison("NE")
    lt, le, gt, ge = comparison("LT"), comparison("LE"), comparison("GT"), comparison("GE")
    __lt__, __le__, __gt__, __ge__ = lt, le, gt, ge

    def _right_shift(self):
        signed = self.dtype in table() and table()[self.dtype]["kind"] == "sint"
        return "shift-right-arithmetic" if signed else "shift-right-logical"

    def __rshift__(self, other):
        return self.builder._elementwise(self._right_shift(), (self, other))

    def __rrshift__(self, other):
        return self.builder._elementwise(self._right_shift(), (other, self))

    def __matmul__(self, other):
        return self.builder.matmul(self, other)

    def __rmatmul__(self, other):
        return self.builder.matmul(other, self)

    def __neg__(self):
        return self.builder.op("negate", self)

    def __pos__(self):
        return self

    def __abs__(self):
        return self.builder.op("abs", self)

    def __invert__(self):
        return self.builder.op("not", self)

    def __bool__(self):
        raise TypeError("a Value has no truth value while the program is being built; use select, while_ or conditional")

    def __len__(self):
        return len(self.shape) if isinstance(self.shape, list) else self._dims()[0]

    def __iter__(self):
        if not isinstance(self.shape, list):
            raise TypeError("an array under construction can't be iterated over; only tuples can")
        return (self[i] for i in range(len(self)))

    def _dims(self):
        if not isinstance(self.shape, tuple) or not self.shape:
            raise TypeError(f"{self.type} has no dimensions")
        return self.shape

    def __getitem__(self, key):
        """Elements of tuples; of arrays integers, slices with any step, ... and None."""
        if isinstance(self.shape, list):
            index = range(len(self.shape))[key]  # IndexError past the end
            return self.builder.get_tuple_element(self, index)
        return slice_array(self, key if isinstance(key, tuple) else (key,))


def expand_ellipsis(key, rank):
    """One entry for each dimension, besides the None for new ones."""
    given = sum(k is not None and k is not Ellipsis for k in key)
    if given > rank or sum(k is Ellipsis for k in key) > 1:
        raise IndexError(f"too many indices: {given} for {rank} dimensions")
    if not any(k is Ellipsis for k in key):
        key = (*key, Ellipsis)
    at = next(i for i, k in enumerate(key) if k is Ellipsis)
    return key[:at] + (slice(None),) * (rank - given) + key[at + 1:]


def slice_array(value, key):
    builder, ranges, dims, reverse = value.builder, [], [], []
    sizes = iter(value.shape)
    for k in expand_ellipsis(key, len(value.shape)):
        if k is None:
            dims.append(1)
            continue
        size, axis = next(sizes), len(ranges)
        if isinstance(k, numbers.Integral):
            start = range(size)[k]
            ranges.append((start, start + 1, 1))
        elif isinstance(k, slice):
            picked = range(*k.indices(size))
            if picked.step < 0:
                reverse.append(axis)
                picked = picked[::-1]
            stop = picked[-1] + 1 if picked else picked.start
            ranges.append((picked.start, stop, picked.step))
            dims.append(len(picked))
        else:
            raise ArgumentError(f"{k!r} is not an index of an array under construction", Code.BAD_ARGUMENT, hint="use gather or dynamic_slice")
    whole = [(0, size, 1) for size in value.shape]
    if ranges != whole:
        value = builder.op("slice", value, slice=ranges)
    if reverse:
        value = builder.op("reverse", value, dimensions=reverse)
    return value if value.shape == tuple(dims) else builder.reshape(value, dims)
