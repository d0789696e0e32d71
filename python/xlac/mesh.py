"""Meshes and shardings as values: Shardy's text in and out, what each device has, and XLA's sharding of the same meaning."""
import dataclasses
import itertools
import math
import re

from . import _core
from .codes import Code
from .errors import ArgumentError, VerifyError


def _read(text):
    return _core.parse(text, format="mlir")


def _quoted(name):
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclasses.dataclass(frozen=True)
class Mesh:
    """Axes with sizes, and the devices in them in row-major order: by default 0, 1, 2, ... One device without axes is a maximal mesh."""
    axes: tuple
    device_ids: tuple | None = None

    def __init__(self, axes=(), device_ids=None):
        try:
            pairs = tuple((str(name), int(size)) for name, size in (axes.items() if hasattr(axes, "items") else axes))
        except (TypeError, ValueError):
            raise ArgumentError(f"a mesh has axes with sizes, found {axes!r}", Code.BAD_ARGUMENT,
                                hint='such as Mesh({"data": 4, "model": 2})') from None
        ids = None if device_ids is None else tuple(map(int, device_ids))
        if ids == tuple(range(math.prod(size for _, size in pairs))) and pairs:
            ids = None
        object.__setattr__(self, "axes", pairs)
        object.__setattr__(self, "device_ids", ids)
        _read(f"sdy.mesh @mesh = {self._inner()}").verify()

    @staticmethod
    def parse(text):
        """From mesh<["a"=2, "b"=4]>, with or without the word."""
        inner = text.strip().removeprefix("mesh")
        return Mesh._of(re.search(r"sdy\.mesh @mesh = (<.*>)", _read(f"sdy.mesh @mesh = {inner}").to_text())[1])

    @staticmethod
    def _of(text):
        ids = re.search(r"device_ids=\[([\d, ]*)\]", text)
        pairs = [(name.replace('\\"', '"').replace("\\\\", "\\"), size) for name, size in re.findall(r'"((?:[^"\\]|\\.)*)"=(\d+)', text)]
        return Mesh(pairs, ids and [int(i) for i in ids[1].split(",")])

    @property
    def shape(self):
        return dict(self.axes)

    @property
    def devices(self):
        return list(range(self.size)) if self.device_ids is None else list(self.device_ids)

    @property
    def size(self):
        return math.prod(size for _, size in self.axes)

    def _inner(self):
        ids = "" if self.device_ids is None else f", device_ids=[{', '.join(map(str, self.device_ids))}]"
        return f"<[{', '.join(f'{_quoted(name)}={size}' for name, size in self.axes)}]{ids}>"

    def __str__(self):
        return "mesh" + self._inner()


@dataclasses.dataclass(frozen=True)
class Axis:
    """An axis of a mesh, or the part of it that has `size` after `pre_size` more major ones."""
    name: str
    pre_size: int = 1
    size: int | None = None

    def __str__(self):
        return _quoted(self.name) + ("" if self.size is None else f":({self.pre_size}){self.size}")


@dataclasses.dataclass(frozen=True)
class Dim:
    """A dimension's axes, major first; `open`: propagation may add more."""
    axes: tuple = ()
    open: bool = False
    priority: int | None = None

    def __str__(self):
        inner = ", ".join([*map(str, self.axes), *(["?"] if self.open else [])])
        return "{" + inner + "}" + ("" if self.priority is None else f"p{self.priority}")


_AXIS = re.compile(r'"((?:[^"\\]|\\.)*)"(?::\((\d+)\)(\d+))?')
_DIM = re.compile(r'\{((?:"(?:[^"\\]|\\.)*"|[^}"])*)\}(?:p(\d+))?')


def _axes(text):
    return tuple(Axis(name.replace('\\"', '"').replace("\\\\", "\\"), int(pre or 1), int(size) if size else None)
                 for name, pre, size in _AXIS.findall(text))


def _dims(dims):
    """Dimensions from lists of axis names (None: open, no axes), axes or Dim."""
    for d in dims:
        if isinstance(d, Dim):
            yield d
        else:
            names = [d] if isinstance(d, (str, Axis)) else d or ()
            yield Dim(tuple(Axis(a) if isinstance(a, str) else a for a in names), open=d is None)


def _list(axes):
    return tuple(Axis(a) if isinstance(a, str) else a for a in axes)


@dataclasses.dataclass(frozen=True)
class Sharding:
    """How a tensor lies on a mesh: Sharding(mesh, ["a", ("b", "c"), (), None]); None is a dimension that is open."""
    mesh: Mesh
    dims: tuple
    replicated: tuple = ()
    unreduced: tuple = ()

    def __init__(self, mesh, dims, replicated=(), unreduced=()):
        for key, value in (("mesh", mesh), ("dims", tuple(_dims(dims))), ("replicated", _list(replicated)), ("unreduced", _list(unreduced))):
            object.__setattr__(self, key, value)
        try:
            self._module(str(self), len(self.dims)).verify()
        except VerifyError as error:  # about a program that nobody has seen
            raise VerifyError(error.message.removeprefix("'func.func' op arg 0 - "), error.code, hint=f"the mesh is {self.mesh}") from None

    @staticmethod
    def _module(text, rank, mesh=None, name="mesh"):
        head = f"sdy.mesh @{name} = {mesh._inner()}\n" if mesh else ""
        kind = "tensor<" + "?x" * rank + "f32>"
        return _read(f"{head}func.func @main(%arg0: {kind} {{sdy.sharding = {text}}}) {{\n  return\n}}\n")

    @staticmethod
    def parse(text, mesh=None):
        """From #sdy.sharding<@mesh, [{"a"}, {?}]> or what is in its brackets; `mesh` where the text only names it."""
        text = text.strip()
        if not text.startswith("#sdy.sharding"):
            text = "#sdy.sharding" + (text if text.startswith("<") else f"<{text}>")
        name = re.match(r"#sdy\.sharding<@([\w$.]+)", text)
        if name and mesh is None:
            raise ValueError(f"the text names a mesh, @{name[1]}, which has to be given")
        module = Sharding._module(text, 0, mesh if name else None, name[1] if name else "mesh")
        said = re.search(r"sdy\.sharding = #sdy\.sharding<(.*)>\}\)", module.to_text())[1]
        found = re.match(r"(@[\w$.]+|mesh<.*?\]>), \[(.*?)\](?:, replicated=\{(.*?)\})?(?:, unreduced=\{(.*?)\})?$", said)
        dims = [Dim(_axes(inner), inner.rstrip().endswith("?"), int(p) if p else None) for inner, p in _DIM.findall(found[2])]
        return Sharding(mesh if name else Mesh._of(found[1]), dims, _axes(found[3] or ""), _axes(found[4] or ""))

    def __str__(self):
        lists = "".join(f", {key}={{{', '.join(map(str, axes))}}}"
                        for key, axes in (("replicated", self.replicated), ("unreduced", self.unreduced)) if axes)
        return f"#sdy.sharding<{self.mesh}, [{', '.join(map(str, self.dims))}]{lists}>"

    def _size(self, axis):
        return self.mesh.shape[axis.name] if axis.size is None else axis.size

    def parts(self):
        """Into how many parts each dimension is cut."""
        return tuple(math.prod(map(self._size, d.axes)) for d in self.dims)

    def shard_shape(self, shape):
        """The shape of what one device has; where a dimension does not divide, the last devices have less."""
        if len(shape) != len(self.dims):
            raise ValueError(f"a shape of rank {len(shape)} and a sharding of rank {len(self.dims)}")
        return tuple(-(-size // parts) for size, parts in zip(shape, self.parts()))

    def _place(self, coordinates, axes):
        """Which part along the axes the device at these coordinates of the mesh has."""
        at = 0
        for axis in axes:
            whole, size = self.mesh.shape[axis.name], self._size(axis)
            at = at * size + coordinates[axis.name] // (whole // (axis.pre_size * size)) % size
        return at

    def indices(self, shape):
        """For every device, the slices of the tensor that it has."""
        local, found = self.shard_shape(shape), {}
        names = [name for name, _ in self.mesh.axes]
        for device, at in zip(self.mesh.devices, itertools.product(*(range(size) for _, size in self.mesh.axes))):
            starts = [min(size, n * self._place(dict(zip(names, at)), d.axes)) for size, n, d in zip(shape, local, self.dims)]
            found[device] = tuple(slice(start, min(size, start + n)) for start, n, size in zip(starts, local, shape))
        return found

    def _unreduced_parts(self):
        """For every device, which of the parts along the unreduced axes it has; {} where there are no such axes."""
        names = [name for name, _ in self.mesh.axes]
        axes = sorted(self.unreduced, key=lambda a: (names.index(a.name), a.pre_size))
        coordinates = itertools.product(*(range(size) for _, size in self.mesh.axes))
        return {device: self._place(dict(zip(names, at)), axes) for device, at in zip(self.mesh.devices, coordinates)} if axes else {}

    def devices(self, shape, index):
        """The devices that have the element at `index`."""
        return [device for device, slices in self.indices(shape).items() if all(s.start <= i < s.stop for s, i in zip(slices, index))]

    def to_svg(self, shape=None):
        """A picture of the tiles of a tensor (of `shape`), each with the devices that hold it: SVG that needs nothing else."""
        from .sharding_svg import sharding_picture

        return sharding_picture(self, shape)

    def table(self, shape=None):
        """The same as text: a line for each tile."""
        from .sharding_svg import sharding_table

        return sharding_table(self, shape)

    def _repr_svg_(self):
        """Of what is too large for a picture a notebook shows the text."""
        from .sharding_svg import is_drawable

        return self.to_svg() if is_drawable(self) else None

    def _atoms(self, axes):
        """The mesh's axes, cut wherever one of `axes` begins or ends: (name, pre_size, size)."""
        for name, whole in self.mesh.axes:
            cuts = {1, whole}
            for a in axes:
                if a.name == name:
                    cuts |= {a.pre_size, a.pre_size * self._size(a)}
            ordered = sorted(cuts)
            yield from ((name, low, high // low) for low, high in zip(ordered, ordered[1:]))

    def to_hlo(self, manual=()):
        """XLA's sharding of the same meaning; `manual` axes are those of the computation around."""
        if not self.mesh.axes:
            return "{replicated}" if self.mesh.device_ids is None else f"{{maximal device={self.mesh.device_ids[0]}}}"
        manual = _list(manual)
        used = [a for d in self.dims for a in d.axes]
        atoms = list(self._atoms([*used, *self.unreduced, *manual]))

        def places(axes):
            return [i for a in axes for i, (name, pre, size) in enumerate(atoms)
                    if name == a.name and a.pre_size <= pre < a.pre_size * self._size(a)]
        groups = {"manual": places(manual), "unreduced": places(self.unreduced)}
        order = places(used)
        taken = {*order, *groups["manual"], *groups["unreduced"]}
        groups["replicated"] = [i for i in range(len(atoms)) if i not in taken]
        sizes = {kind: math.prod(atoms[i][2] for i in list_) for kind, list_ in groups.items()}
        whole = [kind for kind, size in sizes.items() if size == self.mesh.size]
        if self.mesh.size == 1 or whole:
            return "{" + ("replicated" if self.mesh.size == 1 else whole[0]) + "}"
        kinds = [kind for kind, size in sizes.items() if size > 1]
        tile = [*self.parts(), *(sizes[kind] for kind in kinds)]
        perm = order + [i for kind in kinds for i in groups[kind]]
        last = "" if not kinds else " last_tile_dim_replicate" if kinds == ["replicated"] else f" last_tile_dims={{{', '.join(kinds)}}}"
        return _normal(f"{{devices=[{','.join(map(str, tile))}]{self._devices([a[2] for a in atoms], perm)}{last}}}")

    def _devices(self, sizes, perm):
        perm = perm + [i for i in range(len(sizes)) if i not in perm]
        if self.mesh.device_ids is None:
            turn = "" if len(perm) == 1 else f"T({','.join(map(str, perm))})"
            return f"<=[{','.join(map(str, sizes))}]{turn}"
        strides = [math.prod(sizes[i + 1:]) for i in range(len(sizes))]
        places = itertools.product(*(range(sizes[i]) for i in perm))
        return ",".join(str(self.mesh.device_ids[sum(c * strides[i] for c, i in zip(at, perm))]) for at in places)

    @staticmethod
    def from_hlo(text, rank):
        """The sharding that XLA's text means, of a tensor of `rank`, on a mesh with the axes "_axis_0", "_axis_1", ..."""
        text = _normal(text.strip())
        if text == "{replicated}":
            return Sharding(Mesh(), [()] * rank)
        maximal = re.fullmatch(r"\{maximal device=(\d+)\}", text)
        if maximal:
            return Sharding(Mesh((), [int(maximal[1])]), [])
        found = re.fullmatch(r"\{devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))(?: (last_tile_dim\w+)(?:=\{([\w, ]+)\})?)?\}",
                             text)
        if not found:
            raise ValueError(f"no sharding of a tensor on a mesh: {text}")
        tile = [int(n) for n in found[1].split(",")]
        if found[4]:
            sizes, perm, ids = tile, list(range(len(tile))), [int(n) for n in found[4].split(",")]
        else:
            sizes, ids = [int(n) for n in found[2].split(",")], None
            perm = [int(n) for n in found[3].split(",")] if found[3] else list(range(len(sizes)))
        kinds = [] if not found[5] else ["replicated"] if not found[6] else found[6].split(", ")
        if len(tile) - len(kinds) != rank:
            raise ValueError(f"a sharding of rank {len(tile) - len(kinds)}, a tensor of rank {rank}: {text}")
        if "manual" in kinds:
            raise ValueError(f"manual shardings belong to a computation: {text}")
        return _from_parts(tile, sizes, perm, ids, kinds)


def _normal(text):
    """XLA's own form of a sharding."""
    module = _core.parse(f"HloModule m\nENTRY e {{\n  ROOT p = f32[] parameter(0), sharding={text}\n}}\n")
    return module.entry.root.sharding


def _from_parts(tile, sizes, perm, ids, kinds):
    """Cuts the parts of the device order where the tiles' sizes end; each piece becomes an axis."""
    pieces, order = [[] for _ in sizes], []  # by part, (size, number) major first; numbers in the order of tiles
    left = [[p, sizes[p]] for p in perm]
    tiles = []
    for size in tile:
        taken = []
        while size > 1:
            part, rest = left[0]
            piece = math.gcd(size, rest)
            if rest == 1:
                left.pop(0)
                continue
            if piece == 1 or (piece != size and piece != rest):
                raise ValueError("no axes of a mesh give these tiles")
            pieces[part].append((piece, len(order)))
            taken.append(len(order))
            order.append(piece)
            left[0][1] //= piece
            size //= piece
        tiles.append(taken)
    numbers = [number for part in pieces for _, number in part]
    name = {number: f"_axis_{i}" for i, number in enumerate(numbers)}
    mesh = Mesh([(name[n], order[n]) for n in numbers], ids)
    dims = [[name[n] for n in taken] for taken in tiles[:len(tile) - len(kinds)]]
    groups = dict(zip(kinds, tiles[len(dims):]))
    return Sharding(mesh, dims, unreduced=sorted((name[n] for n in groups.get("unreduced", [])), key=lambda a: [x for x, _ in mesh.axes].index(a)))
