"""Builder: programs op by op, as XLA's XlaBuilder makes them. Its methods come from the op table."""
import keyword
import numbers

from . import _core
from .attributes import made, name_of, row_of, to_text
from .dtypes import name_of as dtype_name
from .dtypes import table, type_text
from .codes import Code
from .errors import ArgumentError, Error
from .value import Value

FIRST_INDEX = {"dynamic-slice": 1, "dynamic-update-slice": 2}  # operands from here on are indices, of a type of their own
DIRECTIONS = ("eq", "ne", "lt", "le", "gt", "ge")
SYMBOLS = {"==": "EQ", "!=": "NE", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE"}
# What NumPy and JAX have as a function and here is more than one op, or one with its arguments; names of single ops: _core.op_elsewhere.
RECIPES = {"sum": 'reduce(x, 0, dimensions=[...], to_apply="add")', "mean": 'reduce(x, 0, dimensions=[...], to_apply="add") and divide',
           "max": 'reduce(x, low, dimensions=[...], to_apply="maximum")', "relu": "maximum(x, 0)", "softmax": "exponential, reduce and divide"}


def elsewhere(name, spelt=None):
    """What has here what NumPy, PyTorch or JAX call so: a recipe, or the op's name, as `spelt` gives it; None for nothing."""
    op = _core.op_elsewhere(name)
    return RECIPES.get(name) or (op and (spelt or method_name)(op))


def type_of(spec):
    """The text of a type: text itself, something with dtype and shape, (dtype, dims), or a list of types for a tuple."""
    if isinstance(spec, str):
        return spec
    if isinstance(spec, Value):
        return spec.type
    if hasattr(spec, "dtype") and hasattr(spec, "shape"):
        return type_text(dtype_name(spec.dtype), spec.shape)
    if isinstance(spec, tuple) and len(spec) == 2 and not isinstance(spec[0], (list, Value)) and is_dims(spec[1]):
        return type_text(dtype_name(spec[0]), spec[1])
    if isinstance(spec, (list, tuple)) and spec and is_dims(spec):
        raise ArgumentError(f"{spec!r} is not a type: the element type is missing", Code.BAD_ARGUMENT,
                            hint=f'such as "f32[{",".join(map(str, spec))}]", or ("f32", {spec!r})')
    if isinstance(spec, (list, tuple)):
        return "(" + ", ".join(type_of(s) for s in spec) + ")"
    return type_of(default_array(spec))


def is_dims(x):
    return isinstance(x, (tuple, list)) and all(isinstance(d, numbers.Integral) for d in x)


def default_array(value):
    """A NumPy array of bare Python numbers, 32 bits wide as XLA programs have them; wider where they do not fit."""
    import numpy

    array = numpy.asarray(value)
    if hasattr(value, "dtype") or array.dtype.itemsize <= 4:
        return array
    narrow = {"i": numpy.int32, "f": numpy.float32, "c": numpy.complex64}.get(array.dtype.kind)
    if narrow is None or (narrow is numpy.int32 and not numpy.array_equal(array.astype(narrow), array)):
        return array
    return array.astype(narrow)


class Builder:
    """Builds a module whose entry computation has the ops its methods make.

    Each op is a method (`add`, `dot`, `reduce_window`, `while_`, ...): operands first, then keyword arguments for its attributes,
    for `type`, the result type where it does not follow from them, and for `name`. Operands may be Values, and numbers or arrays,
    which become constants. Elementwise ops broadcast their operands as NumPy does. Computations (`to_apply=`, `body=`, ...) may
    be Builders, Modules, Computations, or for reducers and comparators the name of an op ("add") or direction ("lt")."""

    def __init__(self, name="module", *, entry="main"):
        self._module = _core.new_module(name)
        self._computation = self._module.add_computation(entry)
        self._last = None
        self._made = {}

    @classmethod
    def _inside(cls, module, name):
        self = cls.__new__(cls)
        self._module, self._last, self._made = module, None, {}
        self._computation = module.add_computation(name)
        return self

    def __repr__(self):
        return f"<xlac.Builder {self._module.name}: {len(self._computation)} ops in {self._computation.name}>"

    def __getattr__(self, name):
        """Only what is not there comes here."""
        if name.startswith("_"):
            raise AttributeError(name)
        import difflib

        known = elsewhere(name)
        near = [known] if known else difflib.get_close_matches(name, [n for n in dir(type(self)) if n[0] != "_"], 2)
        raise AttributeError(f"a Builder has no method {name!r}" + (f": use {' or '.join(near)}" if near else "; docs/ops.md lists the ops"))

    def sub_builder(self, name):
        """A Builder of another computation of the same module, to pass as `to_apply=` and the like."""
        return Builder._inside(self._module, name)

    @property
    def module(self):
        """The module as it stands; `build` returns a verified copy."""
        return self._module

    @property
    def computation(self):
        return self._computation

    def parameter(self, number, type, name=None):
        """The parameter of that number; `type` is text ("f32[2,3]"), (dtype, dims), a list of types, or like an array."""
        if not isinstance(number, numbers.Integral):
            raise ArgumentError(f"a parameter has a number, found {number!r}", Code.BAD_ARGUMENT, hint='parameter(0, "f32[2,3]", name="x")')
        return self._wrap(self._computation.add_parameter(number, type_of(type), name))

    def constant(self, value, dtype=None, name=None):
        """A constant; bare Python numbers are pred, s32, f32 or c64 unless `dtype` says otherwise."""
        import numpy

        array = default_array(value)
        if dtype is not None:
            array = numpy.asarray(value).astype(_core.numpy_dtype(dtype_name(dtype)))
        return self._wrap(self._computation.add_constant(array, name))

    def op(self, opcode, *operands, type=None, name=None, **attributes):
        """Any op by its HLO name; what the methods call."""
        flat = list(flatten(operands))
        first_index = FIRST_INDEX.get(opcode, len(flat))
        values = [v if isinstance(v, Value) else self._coerce(v, flat if i < first_index else ()) for i, v in enumerate(flat)]
        for value in values:
            if value.builder is not self:
                raise ArgumentError(f"{value.name} is a value of another Builder", Code.BAD_ARGUMENT)
        texts = self._attribute_texts(opcode, values, attributes)
        instructions = [v.instruction for v in values]
        spec = type if type is None else type_of(type)
        return self._wrap(made(self._computation, opcode, instructions, texts, spec, name))

    # --- friendlier forms of ops whose result type does not follow from their operands ---

    def reshape(self, operand, dims=None, *, type=None, name=None, **attributes):
        """`operand` with other dimensions and the same elements in row-major order."""
        operand = self.value(operand)
        type = dims if isinstance(dims, str) and not type else type
        return self.op("reshape", operand, type=type or type_text(operand.dtype, dims), name=name, **attributes)

    def broadcast(self, operand, dims=None, dimensions=(), *, type=None, name=None, **attributes):
        """`operand` repeated to `dims`; `dimensions` says where its own dimensions go."""
        operand = self.value(operand)
        type = type or (dims if isinstance(dims, str) else type_text(operand.dtype, dims))
        return self.op("broadcast", operand, type=type, dimensions=dimensions, name=name, **attributes)

    def convert(self, operand, dtype=None, *, type=None, name=None, **attributes):
        """`operand` with its values in another element type."""
        operand = self.value(operand)
        type = type or type_text(dtype_name(dtype), operand.shape)
        return self.op("convert", operand, type=type, name=name, **attributes)

    def bitcast_convert(self, operand, dtype=None, dims=None, *, type=None, name=None, **attributes):
        """`operand`'s bits as another element type; `dims` where its width differs."""
        operand = self.value(operand)
        type = type or type_text(dtype_name(dtype), operand.shape if dims is None else dims)
        return self.op("bitcast-convert", operand, type=type, name=name, **attributes)

    def iota(self, type, iota_dimension=0, *, name=None, **attributes):
        """0, 1, 2, ... along one dimension of an array of that type."""
        return self.op("iota", type=type, iota_dimension=iota_dimension, name=name, **attributes)

    def transpose(self, operand, dimensions=None, *, name=None, **attributes):
        """`operand` with its dimensions in another order, by default reversed."""
        operand = self.value(operand)
        order = range(len(operand.shape))[::-1] if dimensions is None else dimensions
        return self.op("transpose", operand, dimensions=order, name=name, **attributes)

    def get_tuple_element(self, operand, index, *, name=None, **attributes):
        """Element number `index` of a tuple."""
        return self.op("get-tuple-element", operand, index=index, name=name, **attributes)

    def compare(self, lhs, rhs, direction="EQ", *, name=None, **attributes):
        """lhs == rhs and so on, elementwise: direction is EQ, NE, LT, LE, GT or GE, or a symbol such as "<"."""
        word = SYMBOLS.get(direction, str(direction).upper())
        if word.lower() not in DIRECTIONS:
            raise ArgumentError(f"{direction!r} is not a direction of comparison: expected EQ, NE, LT, LE, GT or GE", Code.BAD_ARGUMENT)
        return self._elementwise("compare", (lhs, rhs), name=name, direction=word, **attributes)

    def matmul(self, lhs, rhs, *, name=None, **attributes):
        """The matrix product, with NumPy's meaning of one and of more than two dimensions; batch dimensions must be equal."""
        lhs, rhs = self.value(lhs), self.value(rhs)
        batch = range(max(min(len(lhs.shape), len(rhs.shape)) - 2, 0))
        contract = len(rhs.shape) - 2 if len(rhs.shape) > 1 else 0
        return self.op("dot", lhs, rhs, name=name, lhs_contracting_dims=[len(lhs.shape) - 1], rhs_contracting_dims=[contract],
                       lhs_batch_dims=batch or None, rhs_batch_dims=batch or None, **attributes)

    # --- the module ---

    def set_up_alias(self, output_index, parameter, parameter_index=(), kind="may"):
        """Lets (kind "may") or makes ("must") the output at that index reuse the parameter's buffer. An index is a tuple of
        steps into tuples, () for what is none; a number stands for one step."""
        if kind.removesuffix("-alias") not in ("may", "must"):
            raise ArgumentError(f"an alias is of kind may or must, not {kind!r}", Code.BAD_ARGUMENT)
        must = kind.removesuffix("-alias") == "must"
        self._module.set_alias(index_path(output_index), parameter, index_path(parameter_index), must)

    def add_buffer_donor(self, parameter, parameter_index=()):
        """Lets any output reuse the parameter's buffer."""
        self._module.add_donor(parameter, index_path(parameter_index))

    def set_root(self, root):
        """Makes `root` what the computation returns: a Value, or a tuple or list of them for a tuple. The default is the op
        made last."""
        root = self.tuple(*root) if isinstance(root, (tuple, list)) else self.value(root)
        self._computation.root = root.instruction

    def build(self, root=None):
        """The finished module, verified: a copy, so the builder may go on."""
        self._finish(root)
        module = self._module.clone()
        module.verify()
        return module

    def _finish(self, root=None):
        if root is not None:
            self.set_root(root)
        elif self._computation.root is None and self._last is not None:
            self._computation.root = self._last
        return self._computation

    # --- how methods are made of ---

    def _wrap(self, instruction):
        self._last = instruction
        return Value(self, instruction)

    def value(self, x):
        """`x` itself if it is a Value, else a constant of it."""
        return x if isinstance(x, Value) else self.constant(x)

    def _coerce(self, x, others):
        """A constant of `x`; bare numbers take the element type of the first Value among the other operands that is not a
        mask."""
        types = [v.dtype for v in flatten(others) if isinstance(v, Value) and v.dtype in table()]
        like = next((t for t in types if t != "pred"), types[0] if types else None)
        if like is None or hasattr(x, "dtype") or not isinstance(x, (numbers.Number, list)):
            return self.constant(x)
        if table()[like]["kind"] in ("sint", "uint") and isinstance(x, float) and not x.is_integer():
            raise ArgumentError(f"{x!r} is not a value of {like}", Code.BAD_ARGUMENT)
        return self.constant(x, like)

    def _elementwise(self, opcode, operands, **keywords):
        values = [v if isinstance(v, Value) else self._coerce(v, operands) for v in flatten(operands)]
        dims = common_dims([v.shape for v in values])
        return self.op(opcode, *[self._broadcast_to(v, dims) for v in values], **keywords)

    def _broadcast_to(self, value, dims):
        if value.shape == dims or dims is None:
            return value
        kept = [i for i, size in enumerate(value.shape) if size != 1]
        offset = len(dims) - len(value.shape)
        if len(kept) != len(value.shape):
            value = self.reshape(value, [value.shape[i] for i in kept])
        return self.broadcast(value, dims, [i + offset for i in kept])

    def _attribute_texts(self, opcode, operands, attributes):
        texts = []
        for key, value in ((name_of(k, opcode), v) for k, v in attributes.items() if v is not None):
            if _core.attr_kind(key) == "called":
                value = [self._callee(v, operands) for v in value] if isinstance(value, (list, tuple)) else self._callee(
                    value, operands)
            texts.append((key, to_text(key, value)))
        return texts

    def _callee(self, x, operands):
        """A computation of this module for what may be given as one."""
        if isinstance(x, str):
            return self._module.computation(x) or self._scalar_computation(x, operands)
        if isinstance(x, Builder):
            x = x._finish()
        if isinstance(x, _core.Module):
            x = x.entry
        if not isinstance(x, _core.Computation):
            raise ArgumentError(f"{x!r} can't be called by an op of a program", Code.BAD_ARGUMENT,
                                hint='give a Builder, a Module, a Computation, or for reducers and comparators a word such as "add" or "lt"')
        return x if x.module is self._module else self._module.import_computation(x)

    def _scalar_computation(self, what, operands):
        """"add" or "lt" as a computation of two scalars of the first operand's type."""
        types = [v.dtype for v in operands if v.dtype in table()]
        row = row_of(what)
        is_binary = row is not None and row["arity"] == 2 and "elementwise" in row["traits"] and what != "compare"
        if not types or not (is_binary or what in DIRECTIONS):
            raise Error(f"{what!r} is neither a computation of this module nor a binary op", Code.UNKNOWN_NAME,
                        hint='such as "add", "multiply", "maximum", "minimum", or "lt" of comparators')
        if (what, types[0]) not in self._made:
            sub = self.sub_builder(f"{what}_{types[0]}")
            x, y = sub.parameter(0, f"{types[0]}[]"), sub.parameter(1, f"{types[0]}[]")
            sub.set_root(sub.op(what, x, y) if is_binary else sub.compare(x, y, what))
            self._made[what, types[0]] = sub.computation
        return self._made[what, types[0]]


def flatten(operands):
    for x in operands:
        if isinstance(x, (list, tuple)) and any(isinstance(v, Value) for v in x):
            yield from flatten(x)
        else:
            yield x


def index_path(index):
    return (index,) if isinstance(index, numbers.Integral) else tuple(index)


def common_dims(shapes):
    """NumPy's broadcast of some shapes; None where there is nothing to broadcast or it can't be done, for xlac to say why."""
    if not all(isinstance(s, tuple) for s in shapes):
        return None
    dims = []
    for sizes in zip(*[(1,) * (max(map(len, shapes)) - len(s)) + s for s in shapes]):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            return None
        dims.append(wide.pop() if wide else 1)
    return tuple(dims)


def method_name(opcode):
    name = opcode.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def make_method(row):
    opcode, elementwise = row["name"], "elementwise" in row["traits"] and row["arity"] != 1

    def method(self, *operands, type=None, name=None, **attributes):
        make = self._elementwise if elementwise and type is None else None
        if make:
            return make(opcode, operands, name=name, **attributes)
        return self.op(opcode, *operands, type=type, name=name, **attributes)

    method.__name__ = method_name(opcode)
    method.__qualname__ = f"Builder.{method.__name__}"
    keys = "".join(f"\n  {key}: {kind}{', required' if required else ''}" for key, kind, required in row["attrs"])
    method.__doc__ = row["doc"] + (f"\n\nAttributes:{keys}" if keys else "")
    return method


for _row in _core.opcode_table():  # HLO's ops: the names of the others have a dot
    if "." not in _row["name"] and not hasattr(Builder, method_name(_row["name"])):
        setattr(Builder, method_name(_row["name"]), make_method(_row))
