"""ShardedBuffers: shards go in and out as stored, and what is cut otherwise is cut anew and counted."""
import gc
import threading

import numpy as np
import pytest

import xlac
from xlac.errors import ArgumentError, DonationError, DonationWarning
from xlac.sharding import Mesh, Sharding

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2]>\n'


def said(*dims):
    return "sdy.sharding = #sdy.sharding<@mesh, [" + ", ".join("{" + ", ".join(f'"{a}"' for a in d) + "}" for d in dims) + "]>"


def step(into=("a", "b"), out=("a", "b"), donate=(), **options):
    """x + 1, and the sum of all."""
    text = f"""{MESH}func.func @main(%x: tensor<8x6xf32> {{{said(*into)}}}) -> (tensor<8x6xf32> {{{said(*out)}}}, tensor<f32>) {{
  %o = stablehlo.constant dense<1.0> : tensor<8x6xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.add %x, %o : tensor<8x6xf32>
  %1 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x6xf32>, tensor<f32>) -> tensor<f32>
  return %0, %1 : tensor<8x6xf32>, tensor<f32>
}}"""
    return xlac.compile(xlac.parse(text, format="mlir"), devices=4, donate=donate, **{"results": "sharded", **options})


X = np.arange(48, dtype=np.float32).reshape(8, 6)


def addresses(sharded):
    return [s.data.numpy().ctypes.data for s in sharded.shards]


def test_results_are_shards_that_the_next_call_takes():
    exe = step()
    y, total = exe(X)
    assert isinstance(y, xlac.ShardedBuffer) and (y.shape, y.dtype, y.nbytes, len(y)) == ((8, 6), np.float32, 192, 8)
    assert [s.index for s in y.shards] == [(slice(r, r + 4), slice(c, c + 3)) for r in (0, 4) for c in (0, 3)]
    np.testing.assert_array_equal(y.numpy(), X + 1)
    np.testing.assert_array_equal(np.asarray(y, np.float64), X + 1)
    assert float(total.numpy()) == X.sum() and total.numpy().shape == ()
    before = xlac.stats()
    z, total = exe(y)
    after = xlac.stats()
    np.testing.assert_array_equal(z.numpy(), X + 2)
    assert float(total.numpy()) == (X + 1).sum()
    assert after["copies_in"] == before["copies_in"]


def test_shardings_are_told():
    y, total = step()(X)
    assert y.sharding == Sharding(Mesh({"a": 2, "b": 2}), ["a", "b"])
    assert y.sharding.indices(y.shape) == {s.device: s.index for s in y.shards}
    assert total.sharding is None or total.sharding.parts() == ()


def test_whole_arrays_are_split_as_views_where_shards_are_blocks():
    exe = step(into=(("a", "b"), ()))
    buffer = xlac.ShardedBuffer.of(X, Sharding(Mesh({"a": 2, "b": 2}), [("a", "b"), ()]))
    assert addresses(buffer) == [X.ctypes.data + 48 * i for i in range(4)]
    np.testing.assert_array_equal(exe(buffer)[0].numpy(), X + 1)
    np.testing.assert_array_equal(exe(np.asfortranarray(X))[0].numpy(), X + 1)
    np.testing.assert_array_equal(exe(x=X)[0].numpy(), X + 1)


def test_shards_that_are_cut_otherwise_are_cut_anew_and_counted():
    exe = step()
    before = xlac.stats()
    for dims in ((("b", "a"), ()), ("b", "a"), ((), "b"), ((), ()), ("a", ())):
        other = xlac.ShardedBuffer.of(X, Sharding(Mesh({"a": 2, "b": 2}), dims))
        np.testing.assert_array_equal(exe(other)[0].numpy(), X + 1)
    after = xlac.stats()
    assert after["copies_in"] - before["copies_in"] == 5
    moved = after["bytes_copied_in"] - before["bytes_copied_in"]
    found = exe.explain("sharding")
    assert found.data["resharded"] == {0: {"times": 5, "bytes": moved}} and f"argument 0 came in shards that are cut otherwise 5 times: {moved}B" in found


def test_shards_are_given_away_one_by_one():
    exe = step(donate=[0])
    y, _ = exe(X)
    places = addresses(y)
    z, total = exe(xlac.donate(y), donate="require")
    assert y.is_deleted and addresses(z) == places
    np.testing.assert_array_equal(z.numpy(), X + 2)
    with pytest.raises(Exception, match="donated|deleted"):
        exe(y)


def test_what_can_not_be_given_away_is_lent():
    exe = step(donate=[0])
    shared = xlac.ShardedBuffer.of(X, Sharding(Mesh({"a": 2, "b": 2}), ["b", "a"]))
    with pytest.warns(DonationWarning, match="cut for this call"):
        exe(xlac.donate(shared))
    with pytest.raises(DonationError, match="cut for this call"):
        exe(xlac.donate(X), donate="require")
    y, _ = step()(X)
    with pytest.warns(DonationWarning, match="no result takes its memory"):
        step()(xlac.donate(y))
    assert not y.is_deleted and not shared.is_deleted
    np.testing.assert_array_equal(shared.numpy(), X)


def test_shards_that_devices_share_are_lent():
    exe = step(into=("a", ()), out=("a", ()), donate=[0])
    shared = xlac.ShardedBuffer.of(X, Sharding(Mesh({"a": 2, "b": 2}), ["a", ()]))
    with pytest.warns(DonationWarning, match="share"):
        y, _ = exe(xlac.donate(shared))
    np.testing.assert_array_equal(y.numpy(), X + 1)
    np.testing.assert_array_equal(shared.numpy(), X)


def test_shards_go_to_others_by_dlpack():
    y, _ = step()(X)
    np.testing.assert_array_equal(np.from_dlpack(y.shards[3].data), X[4:, 3:] + 1)


def test_plain_executables_take_them_whole():
    y, _ = step()(X)
    found, total = step(results="numpy")(y)
    np.testing.assert_array_equal(found, X + 2)
    assert total == (X + 1).sum()


@pytest.mark.parametrize("value, why", [(X[:4], "expected shape"), (X.astype(np.float64), "expected elements of float32"), ("x", "expected elements"), (1.0, "expected shape")])
def test_arrays_that_do_not_fit(value, why):
    exe = step()
    with pytest.raises(ArgumentError, match=why):
        exe(value)
    with pytest.raises(ArgumentError, match="takes 1 arguments, found 0"):
        exe()
    with pytest.raises(TypeError, match="no parameter"):
        exe(y=X)
    with pytest.raises(ArgumentError, match="out="):
        exe(X, out=X)


def test_shardings_that_do_not_fit():
    with pytest.raises(ArgumentError, match="evenly"):
        xlac.ShardedBuffer.of(X[:7], Sharding(Mesh({"a": 2, "b": 2}), ["a", ()]))
    exe = step()
    with pytest.raises(ArgumentError, match="expected shape"):
        exe(xlac.ShardedBuffer.of(X[:4], Sharding(Mesh({"a": 2, "b": 2}), ["a", ()])))
    with pytest.raises(ArgumentError, match="one device"):
        xlac.compile("HloModule m\nENTRY e {\n  ROOT x = f32[2] parameter(0)\n}", results="sharded")


def test_core_refuses_what_are_no_shards():
    exe = step()
    good = xlac.asarray(np.zeros((4, 3), np.float32))
    for bad in (xlac.asarray(np.zeros((3, 4), np.float32)), xlac.asarray(np.zeros((4, 3), np.float64)), X, xlac.asarray(np.zeros((4, 6), np.float32)[:, ::2])):
        with pytest.raises((TypeError, ValueError)):
            exe._call_shards((good, good, bad, good), (), (), 0, 0, 0)
    with pytest.raises(ValueError):
        exe._call_shards((good,), (), (), 0, 0, 0)
    with pytest.raises(ValueError):
        exe._call_shards((good,) * 4, (0,), (), 0, 0, 0)
    assert not good.is_deleted


def test_a_donation_that_fails_half_way_gives_back():
    exe = step(donate=[0])
    shards = [xlac.asarray(np.zeros((4, 3), np.float32)) for _ in range(4)]
    shards[3].delete()
    with pytest.raises(Exception, match="deleted"):
        exe._call_shards(tuple(shards), (0,), (), 0, 0, 0)
    assert [s.is_deleted for s in shards] == [False, False, False, True]


def test_memory_is_given_back():
    exe = step(donate=[0])
    y, _ = exe(X)
    gc.collect()
    before = xlac.stats()["live_buffers"]
    for _ in range(50):
        y, _ = exe(xlac.donate(y))
    gc.collect()
    assert xlac.stats()["live_buffers"] <= before


def test_calls_at_the_same_time():
    exe, wrong = step(), []

    def many():
        y, _ = exe(X)
        for i in range(2, 30):
            y, _ = exe(y)
            if not np.array_equal(y.numpy(), X + i):
                wrong.append(i)

    threads = [threading.Thread(target=many) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not wrong


def test_devices_that_have_the_same_part_of_a_result_share_it():
    exe = step(into=("a", ()), out=("a", ()))
    y, total = exe(X)
    assert [addresses(y).index(a) for a in addresses(y)] == [0, 0, 2, 2] and y.shards[0].data is y.shards[1].data
    before = xlac.stats()
    z, _ = exe(y)
    assert xlac.stats()["copies_in"] == before["copies_in"]
    np.testing.assert_array_equal(z.numpy(), X + 2)
    np.testing.assert_array_equal(y.numpy(), X + 1)
    z.delete()
    assert z.is_deleted and not y.is_deleted


def test_results_that_take_what_is_donated_are_each_devices_own():
    exe = step(into=("a", ()), out=("a", ()), donate=[0])
    shared = xlac.ShardedBuffer.of(X, Sharding(Mesh({"a": 2, "b": 2}), ["a", ()]))
    with pytest.warns(DonationWarning, match="share"):
        y, _ = exe(xlac.donate(shared))
    own = addresses(y)
    assert len(set(own)) == 4
    z, _ = exe(xlac.donate(y), donate="require")
    assert addresses(z) == own
    np.testing.assert_array_equal(z.numpy(), X + 2)
