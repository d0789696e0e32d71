"""XLA's text for shardings on meshes with any order of devices: as XLA itself writes it, from Python and from the pass."""
import random
import re

import pytest

import xlac
from xlac.sharding import Mesh, Sharding

xla_client = pytest.importorskip("jax._src.lib").xla_client
np = pytest.importorskip("numpy")


def xlas(sizes, ids, dims, unreduced):
    """The device order, turned as the tiles want it; XLA does the rest."""
    names = list(sizes)
    used = [a for d in dims for a in d] + unreduced
    rest = [n for n in names if n not in used]
    tile, kinds = [int(np.prod([sizes[a] for a in d], dtype=int)) for d in dims], []
    for kind, axes in (("UNREDUCED", unreduced), ("REPLICATED", rest)):
        if axes:
            tile.append(int(np.prod([sizes[a] for a in axes])))
            kinds.append(getattr(xla_client.OpSharding.Type, kind))
    order = np.array(ids).reshape(list(sizes.values())).transpose([names.index(a) for a in used + rest])
    return str(xla_client.HloSharding.subgroup_with_device_ordering(order.reshape(tile), kinds))


def case(seed):
    r = random.Random(seed)
    sizes = {f"a{k}": r.choice([2, 2, 3, 4]) for k in range(r.randint(1, 3))}
    ids = list(range(int(np.prod(list(sizes.values())))))
    r.shuffle(ids)
    dims, unreduced = [[] for _ in range(r.randint(1, 3))], []
    for a in r.sample(list(sizes), len(sizes)):
        where = r.random()
        if where < 0.6:
            r.choice(dims).append(a)
        elif where < 0.7:
            unreduced.append(a)
    return sizes, ids, dims, sorted(unreduced)


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_devices_in_any_order(first):
    for sizes, ids, dims, unreduced in map(case, range(first, first + 25)):
        if ids == sorted(ids):
            continue  # sdy has no list then, and XLA a shorter form
        sharding = Sharding(Mesh(sizes, ids), [tuple(d) for d in dims], unreduced=unreduced)
        want = xlas(sizes, ids, dims, unreduced)
        kind = "x".join(["144"] * len(dims))
        text = f"func.func @main(%x: tensor<{kind}xf32> {{sdy.sharding = {sharding}}}) {{\n  return\n}}\n"
        passed = xlac.parse(text).run("sdy-lift-inlined-meshes,xla-sdy-stablehlo-export-shardings").to_text()
        assert sharding.to_hlo() == want and re.search(r'mhlo.sharding = "(.*?)"', passed)[1] == want
