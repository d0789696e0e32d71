"""Meshes and shardings as values: text in and out, what each device has, XLA's shardings."""
import pytest

import xlac
from xlac.sharding import Mesh, Sharding

MESH = Mesh({"a": 2, "b": 4, "c": 2})


@pytest.mark.parametrize("text", ['[{"a"}, {"c", "b"}]', '[{"b":(2)2, ?}, {"a"}p1], replicated={"b":(1)2}, unreduced={"c"}', "[]"])
def test_text(text):
    s = Sharding.parse(f"<@m, {text}>", MESH)
    assert str(s) == f"#sdy.sharding<{MESH}, {text}>" and Sharding.parse(str(s)) == s
    assert Mesh.parse(str(MESH)) == MESH


def test_shards():
    s = Sharding(MESH, ["b", ("c", "a"), ()])
    assert s.shard_shape((8, 8, 3)) == (2, 2, 3)
    assert s.indices((8, 8, 3))[3] == (slice(2, 4), slice(4, 6), slice(0, 3))
    assert s.devices((8, 8, 3), (2, 5, 0)) == [3]
    assert Sharding(MESH, ["a"]).devices((2,), (1,)) == list(range(8, 16))


@pytest.mark.parametrize("dims, hlo", [
    (["b", "a"], "{devices=[4,2,2]<=[2,4,2]T(1,0,2) last_tile_dim_replicate}"), (["a", ("c", "b")], "{devices=[2,8]<=[2,4,2]T(0,2,1)}"),
    ([(), ()], "{replicated}"), ([("a", "b", "c"), ()], "{devices=[16,1]<=[16]}")])
def test_hlo(dims, hlo):
    s = Sharding(MESH, dims)
    assert s.to_hlo() == hlo
    back = Sharding.from_hlo(hlo, 2)
    assert back.to_hlo() == hlo and (not back.mesh.axes or back.indices((16, 16)) == s.indices((16, 16)))


def test_refused():
    for text in ('<@m, [{"z"}]>', '<@m, [{"a"}, {"a"}]>'):
        with pytest.raises(xlac.Error):
            Sharding.parse(text, MESH)
    with pytest.raises(ValueError):
        Sharding.from_hlo("{manual}", 2)
