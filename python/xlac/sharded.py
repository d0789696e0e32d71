"""Arrays in shards: a Buffer for each device, which calls take and give as stored.

xlac.compile(module, devices=8, results="sharded") gives ShardedBuffers, and takes them, and whole arrays. Shards that are cut as the
program wants them go in without a copy; whole arrays are split as views where a shard is one block of them; shards that are cut
otherwise are cut anew, which is counted as copies on the way in, and by argument in explain("sharding")."""
import collections
import itertools
import json
import math
import sys
import warnings

import numpy as np

from . import _core
from .codes import Code
from .errors import ArgumentError, DonationError, DonationWarning

# How the program cuts an argument or a result. parts: which part each device has of what is to be added up, () where nothing is; how: "+", or ">",
# "<" for the largest or smallest.
Leaf = collections.namedtuple("Leaf", "shape shard starts dtype parts how sharding")
COMBINE = {"+": np.add, ">": np.maximum, "<": np.minimum}
Shard = collections.namedtuple("Shard", "device index data")  # index: the slices of the whole that it is; data: a Buffer


class Given:
    """A mark around a ShardedBuffer: its memory may be donated in a call."""
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class ShardedBuffer:
    """An array of which each device has a shard, a Buffer. Devices that have the same part may share one. Threads may share it. Of several
    processes (xlac.distributed) each has the shards of its own devices."""
    __slots__ = ("_leaf", "_buffers", "__weakref__")

    def __init__(self, leaf, buffers):
        self._leaf, self._buffers = leaf, tuple(buffers)

    @staticmethod
    def of(array, sharding):
        """An array cut as a `xlac.sharding.Sharding` says: views of it where shards are blocks of it."""
        array = np.asarray(array)
        indices = sharding.indices(array.shape)
        slices = [indices[device] for device in sorted(indices)]
        if not slices or any(size % parts for size, parts in zip(array.shape, sharding.parts())):
            raise ArgumentError(f"an array of shape {array.shape} is not cut evenly by {sharding}", Code.BAD_ARGUMENT)
        parts = sharding._unreduced_parts()
        leaf = Leaf(array.shape, sharding.shard_shape(array.shape), tuple(tuple(s.start for s in index) for index in slices), array.dtype,
                    tuple(parts[device] for device in sorted(parts)), "+", str(sharding))
        return ShardedBuffer(leaf, split(array, leaf, here(len(leaf.starts))))

    @property
    def shape(self):
        return self._leaf.shape

    @property
    def dtype(self):
        return self._leaf.dtype

    @property
    def ndim(self):
        return len(self._leaf.shape)

    @property
    def size(self):
        return math.prod(self._leaf.shape)

    @property
    def nbytes(self):
        """Of the whole array; devices together may have more."""
        return self.size * self._leaf.dtype.itemsize

    @property
    def sharding(self):
        """A `xlac.sharding.Sharding`; None where every device has all of it and nothing else is known."""
        from .mesh import Sharding

        return None if self._leaf.sharding is None else Sharding.parse(self._leaf.sharding)

    @property
    def shards(self):
        """A Shard for each device of this process: its number, the slices of the whole that it has, and the Buffer, which NumPy, PyTorch and JAX
        read without a copy (DLPack), and which xlac.donate donates."""
        return [Shard(device, index_of(self._leaf, start), buffer) for device, (start, buffer) in enumerate(zip(self._leaf.starts, self._buffers))
                if buffer is not None]

    @property
    def is_deleted(self):
        return any(buffer.is_deleted for buffer in self._buffers if buffer is not None)

    def delete(self):
        """Gives the memory of all shards back now."""
        for buffer in {id(b): b for b in self._buffers if b is not None}.values():
            if not buffer.is_deleted:
                buffer.delete()

    def numpy(self):
        """The whole array: a view where one device has all of it, else a copy. What is still to be added up between devices is added up.
        ArgumentError where other processes have some of it: xlac.distributed.gather brings them."""
        if self._leaf.shard == self._leaf.shape and not self._leaf.parts:
            return next(buffer for buffer in self._buffers if buffer is not None).numpy()
        shards = {key: buffer for key, buffer in zip(reversed(keys_of(self._leaf)), reversed(self._buffers)) if buffer is not None}
        missing = len(set(keys_of(self._leaf))) - len(shards)
        if missing:
            raise ArgumentError(f"{missing} of the array's {missing + len(shards)} shards are on other processes", Code.BAD_ARGUMENT,
                                hint="xlac.distributed.gather(x), called on all ranks, gives the whole array; x.shards has those of this process")
        return self._joined(shards)

    def _joined(self, shards):
        """The whole of {key: Buffer or array}."""
        whole = np.empty(self._leaf.shape, self._leaf.dtype)
        combine = np.logical_or if whole.dtype == bool else COMBINE[self._leaf.how]
        for (part, start), shard in sorted(shards.items(), key=lambda x: x[0]):
            at = index_of(self._leaf, start)
            shard = shard.numpy() if isinstance(shard, _core.Buffer) else shard
            whole[at] = combine(whole[at], shard) if part else shard
        return whole

    def _gathered(self, exchange):
        """The whole array, where exchange(bytes) gives those of all ranks: each sends what it has first."""
        keys, owner = keys_of(self._leaf), {}
        for device, key in enumerate(keys):
            owner.setdefault(key, device)
        own = [self._buffers[d].numpy().tobytes() for d in owner.values() if self._buffers[d] is not None]
        data, shards, at = b"".join(exchange(b"".join(own))), {}, 0
        count = math.prod(self._leaf.shard)
        for key in owner:  # in the order of the devices, which is that of the ranks
            shards[key] = np.frombuffer(data, self._leaf.dtype, count, at).reshape(self._leaf.shard)
            at += count * self._leaf.dtype.itemsize
        return self._joined(shards)

    def __array__(self, dtype=None, copy=None):
        whole = self.numpy()
        if dtype is not None and np.dtype(dtype) != whole.dtype:
            return whole.astype(dtype)
        return whole.copy() if copy and self._leaf.shard == self._leaf.shape and not self._leaf.parts else whole

    def __len__(self):
        if not self._leaf.shape:
            raise TypeError("an array without dimensions has no length")
        return self._leaf.shape[0]

    def __repr__(self):
        gone = ", deleted" if self.is_deleted else ""
        kind = f"{self._leaf.dtype}{list(self._leaf.shape)}"
        return f"<xlac.ShardedBuffer: {kind} on {len(self._buffers)} devices, shards of {list(self._leaf.shard)}{gone}>"

    def _xlac_donated(self):
        return Given(self)


# --- cutting ---

def index_of(leaf, start):
    return tuple(slice(at, at + n) for at, n in zip(start, leaf.shard))


def keys_of(leaf):
    """What each device has: (part, start). Devices of the same have the same elements."""
    return list(zip(leaf.parts or [0] * len(leaf.starts), leaf.starts))


def here(devices):
    """The devices of so many that this process has."""
    distributed = sys.modules.get("xlac.distributed")
    return distributed.here(devices) if distributed else range(devices)


def split(array, leaf, devices):
    """A Buffer for each of the devices, None for others, shared by those that have the same part: a view where that is one block of the
    array. Of what is to be added up the first part is the array, and all others are zeros."""
    made = {}
    for part, start in keys_of(leaf)[devices.start:devices.stop]:
        key = (bool(part) and leaf.how == "+", start)
        if key in made:
            continue
        if key[0]:
            made[key] = _core.asarray(np.zeros(leaf.shard, leaf.dtype))
        else:
            made[key] = _core.asarray(np.ascontiguousarray(array[index_of(leaf, start)]) if leaf.shape else array)
    return [made[bool(part) and leaf.how == "+", start] if device in devices else None for device, (part, start) in enumerate(keys_of(leaf))]


def is_cut_so(leaf, other):
    return (leaf.starts, leaf.shard, leaf.parts, leaf.how if leaf.parts else "") == (other.starts, other.shard, other.parts, other.how
                                                                                     if other.parts else "")


def overlap(a, n, b, m):
    """Where [a, a + n) and [b, b + m) overlap; None where they don't."""
    low, high = max(a, b), min(a + n, b + m)
    return (low, high) if low < high else None


def cut_anew(value, leaf, devices):
    """The shards of `value` as `leaf` has them, and the bytes that are copied. What fits is taken as it is."""
    if value._leaf.parts or leaf.parts:
        buffers = split(value.numpy(), leaf, devices)
        return buffers, sum(b.nbytes for b in {id(b): b for b in buffers if b is not None}.values())
    old, made = value._leaf, {}
    sources = {start: buffer for start, buffer in zip(reversed(value._leaf.starts), reversed(value._buffers)) if buffer is not None}
    views, bytes_copied = {start: buffer.numpy() for start, buffer in sources.items()}, 0
    for start in leaf.starts[devices.start:devices.stop]:
        if start in made:
            continue
        if start in sources and old.shard == leaf.shard:
            made[start] = sources[start]
            continue
        part, missing = np.empty(leaf.shard, leaf.dtype), math.prod(leaf.shard)
        for other, view in views.items():
            common = [overlap(a, n, b, m) for a, n, b, m in zip(start, leaf.shard, other, old.shard)]
            if None not in common:
                part[tuple(slice(low - a, high - a) for (low, high), a in zip(common, start))] = \
                    view[tuple(slice(low - b, high - b) for (low, high), b in zip(common, other))]
                missing -= math.prod(high - low for low, high in common)
        if missing:
            raise ArgumentError("a ShardedBuffer is cut otherwise than the program wants it, and what this rank needs of it is on others",
                                Code.BAD_ARGUMENT,
                                hint="give the whole array, which xlac.distributed.gather(x) brings, or cut it as the program does")
        made[start] = _core.asarray(part)
        bytes_copied += part.nbytes
    return [made[start] if device in devices else None for device, start in enumerate(leaf.starts)], bytes_copied


# --- calls ---

class Layout:
    """What calls of an executable need to know of its shards."""

    def __init__(self, executable):
        self.devices, first, here, arguments, results, self.over, self.memory = executable._shards()
        self.here = range(first, first + here)
        said = json.loads(executable._sharding())
        self.arguments = [leaf and Leaf(*leaf, row["sharding"]) for leaf, row in zip(arguments, said["arguments"])]
        self.results = [leaf and Leaf(*leaf, row["sharding"]) for leaf, row in zip(results, said["results"])]
        # Devices that have the same part of a result share it, but where no sharding is told of anything: such programs are each device's own.
        told = any(leaf and leaf.sharding is not None for leaf in self.arguments + self.results)
        self.apart = () if told else tuple(range(len(self.results)))
        self.names = [port.name for port in executable.inputs]
        self.fits = [None] * len(self.arguments)  # by argument: the Leaf last found to be cut just so
        self.tuple = executable._copy_module().entry.root.bare_type.startswith("(")


def layout_of(executable):
    kept = executable._kept
    if "shards" not in kept:
        kept["shards"] = Layout(executable)
    return kept["shards"]


def options_of(layout, args, named):
    """(arguments in order, seed, whether donations must succeed)."""
    named = dict(named)
    seed, donate = named.pop("seed", 0), named.pop("donate", None)
    for option in ("out", "progress", "replica", "partition"):
        value = named.pop(option, None)
        if value is not None and not (isinstance(value, int) and value == 0):
            raise ArgumentError(f"{option}= is not for calls whose results are shards", Code.BAD_ARGUMENT, hint="donate arguments instead of out=")
    if donate not in (None, "require"):
        raise ValueError(f'donate is "require" or None, not {donate!r}')
    if named:
        places = {name: i for i, name in enumerate(layout.names)}
        room = dict(enumerate(args))
        for name, value in named.items():
            if name not in places:
                raise TypeError(f"the program has no parameter {name!r}; its parameters are {tuple(layout.names)!r}")
            if places[name] in room:
                raise TypeError(f"argument {name} is given twice")
            room[places[name]] = value
        args = [room[i] for i in sorted(room)] if sorted(room) == list(range(len(room))) else ()
    if len(args) != len(layout.arguments):
        raise ArgumentError(f"the program takes {len(layout.arguments)} arguments, found {len(args)}", Code.ARGUMENT_COUNT)
    return args, seed, donate == "require"


def whole_of(value, leaf, what):
    """An array of the leaf's type; only numbers without a type of their own are given one."""
    array = np.asarray(value.numpy() if isinstance(value, _core.Buffer) else value, leaf.dtype if isinstance(value, (bool, int, float, complex))
                       else None)
    if array.dtype != leaf.dtype:
        raise ArgumentError(f"{what}: expected elements of {leaf.dtype}, found {array.dtype}", Code.ARGUMENT_TYPE)
    if array.shape != leaf.shape:
        raise ArgumentError(f"{what}: expected shape {leaf.shape}, found {array.shape}", Code.ARGUMENT_SHAPE)
    return array


def check_sharded(value, leaf, what):
    if value.dtype != leaf.dtype:
        raise ArgumentError(f"{what}: expected elements of {leaf.dtype}, found {value.dtype}", Code.ARGUMENT_TYPE)
    if value.shape != leaf.shape:
        raise ArgumentError(f"{what}: expected shape {leaf.shape}, found {value.shape}", Code.ARGUMENT_SHAPE)


def why_lent(layout, i, value, buffers):
    """Why the argument can't be donated; None: it can."""
    if i not in layout.over:
        return "no result takes its memory; compile(donate=...) or an alias of the program's would do it"
    if not isinstance(value, ShardedBuffer) or any(a is not b for a, b in zip(buffers, value._buffers)):
        return "it is cut for this call: only shards as the program wants them can be donated"
    buffers = [buffer for buffer in buffers if buffer is not None]
    if len({id(buffer) for buffer in buffers}) < len(buffers):
        return "devices share one shard"
    if any(buffer.device != memory for buffer, memory in zip(buffers, layout.memory)):
        return "its shards lie in other memory than the program's results"
    return None


def brought(executable, layout, i, value):
    """(the shards of argument i as the program wants them, the bytes that were copied for them or None where it was cut so already, and of what is
    given away True, or why it is only lent; else False)."""
    leaf, what, given = layout.arguments[i], f"argument {i} ({layout.names[i]})", isinstance(value, (Given, _core.Donation))
    value = value.value if given else value
    if leaf is None:
        return [None] * layout.devices, None, False
    copied = None
    if isinstance(value, ShardedBuffer):
        check_sharded(value, leaf, what)
        buffers = value._buffers
        if is_cut_so(value._leaf, leaf):
            layout.fits[i] = value._leaf
        else:
            buffers, copied = cut_anew(value, leaf, layout.here)
            note_reshard(executable, i, copied)
    else:
        buffers = split(whole_of(value, leaf, what), leaf, layout.here)
    return buffers, copied, given and (why_lent(layout, i, value, buffers) or True)


def call(executable, *args, **named):
    """One call: results are ShardedBuffers."""
    layout, seed, required = layout_of(executable), 0, False
    if named or len(args) != len(layout.arguments):
        args, seed, required = options_of(layout, args, named)
    columns, donated, apart, resharded, moved = [], [], layout.apart, 0, 0
    for i, value in enumerate(args):
        if type(value) is ShardedBuffer and value._leaf is layout.fits[i]:
            columns.append(value._buffers)
            continue
        buffers, copied, why = brought(executable, layout, i, value)
        if copied is not None:
            resharded, moved = resharded + 1, moved + copied
        if why and i in layout.over:
            apart += layout.over[i],  # so that it can be donated in its turn
        if why is True:
            donated.append(i)
        elif why and required:
            raise DonationError(f"argument {i} ({layout.names[i]}) can't be donated: {why}", Code.DONATION_UNUSABLE)
        elif why:
            warnings.warn(f"argument {i} ({layout.names[i]}) is borrowed, not donated: {why}", DonationWarning, stacklevel=3)
        columns.append(buffers)
    here = layout.here
    if len(here) < layout.devices:
        columns = [column[here.start:here.stop] for column in columns]
    made = executable._call_shards(tuple(itertools.chain.from_iterable(zip(*columns))), tuple(donated), apart, seed,
                                  resharded, moved)
    before, after = [None] * here.start, [None] * (layout.devices - here.stop)
    results = tuple(leaf and ShardedBuffer(leaf, before + made[i::len(layout.results)] + after) for i, leaf in enumerate(layout.results))
    return results if layout.tuple else results[0]


def note_reshard(executable, argument, copied):
    times, total = executable._kept.setdefault("resharded", {}).get(argument, (0, 0))
    executable._kept["resharded"][argument] = (times + 1, total + copied)
