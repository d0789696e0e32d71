"""Arguments with strides, reversed, broadcast, read-only: read where they are, without a copy at the boundary; and memory that is given
away and that no result takes, which temporaries lie in."""
import itertools
import warnings

import numpy as np
import pytest

import xlac

from .conftest import leaves


def compile(body, *params, more="", **options):
    lines = "\n  ".join(f"{name} = {t} parameter({i})" for i, (name, t) in enumerate(zip("xyzuvw", params)))
    return xlac.compile(f"HloModule m\n{more}\nENTRY e {{\n  {lines}\n  {body}\n}}\n", **options)


def copied():
    stats = xlac.stats()
    return stats["bytes_copied_in"]


def base(shape=(12, 10, 8)):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


VIEWS = {
    "transposed": lambda a: a.T,
    "moved": lambda a: a.transpose(1, 0, 2),
    "every other": lambda a: a[::2, :, ::3],
    "window": lambda a: a[2:7, 3:5, 1:6],
    "reversed": lambda a: a[::-1, :, ::-1],
    "reversed steps": lambda a: a[::-3, ::-1, 7:0:-2],
    "transposed window": lambda a: a[1:9, 2:4, ::2].T,
    "column": lambda a: a[:, 3:4, 2:3],
    "broadcast": lambda a: np.broadcast_to(a[:, :1, :], (12, 6, 8)),
    "all the same": lambda a: np.broadcast_to(np.float32(3), (4, 5, 6)),
    "fortran": np.asfortranarray,
    "new axis": lambda a: a[:, 0, None, ::2],
}
BODIES = {
    "elementwise": "k = {t} multiply(x, x)\n  ROOT r = {t} add(k, x)",
    "identity": "ROOT r = {t} copy(x)",
    "reduce": "z = f32[] constant(0)\n  ROOT r = f32[] reduce(x, z), dimensions={{0,1,2}}, to_apply=sum",
    "sort": "ROOT r = {t} sort(x), dimensions={{2}}, to_apply=less",
    "root": "ROOT r = ({t}, {t}) tuple(x, x)",
}
MORE = ("sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"
        "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=LT\n}")


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("view", VIEWS)
def test_views_are_read_where_they_lie(view, body):
    x = VIEWS[view](base())
    exe = compile(BODIES[body].format(t=f"f32[{','.join(map(str, x.shape))}]"), f"f32[{','.join(map(str, x.shape))}]", more=MORE)
    want, kept = leaves(exe(np.ascontiguousarray(x))), x.copy()
    for given in (x, xlac.asarray(x)):
        xlac.reset_stats()
        got = leaves(exe(given))
        assert copied() == 0
        for g, w in zip(got, want):
            np.testing.assert_array_equal(g, w)
    np.testing.assert_array_equal(x, kept)


@pytest.mark.parametrize("dtype", ["f64", "s32", "bf16", "f16", "s8", "c64"])
def test_element_types(dtype):
    numpy = xlac.asarray(np.zeros(1), dtype).dtype
    x = np.arange(60).reshape(6, 10).astype(numpy)[::-2, 1::3]
    exe = compile(f"ROOT r = {dtype}[3,3] copy(x)", f"{dtype}[3,3]")
    xlac.reset_stats()
    np.testing.assert_array_equal(exe(x), x)
    assert copied() == 0


def test_what_has_no_such_plan_is_copied_and_counted():
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(10, dtype=np.float32), 4)  # elements at several indexes
    records = np.zeros(6, [("a", "i1"), ("b", "f4")])["b"]                                 # strides that are not whole elements
    for x in (windows, records):
        t = f"f32[{','.join(map(str, x.shape))}]"
        exe = compile(f"ROOT r = {t} negate(x)", t)
        xlac.reset_stats()
        np.testing.assert_array_equal(exe(x), -x)
        assert copied() == x.size * 4
    pair = compile("a = f32[4] get-tuple-element(x), index=0\n  b = f32[4] get-tuple-element(x), index=1\n  ROOT r = f32[4] add(a, b)",
                   "(f32[4], f32[4])")
    xlac.reset_stats()
    np.testing.assert_array_equal(pair((np.arange(8, dtype=np.float32)[::2], np.ones(4, np.float32))), [1, 3, 5, 7])
    assert copied() == 16


def test_there_are_eight_layouts_at_most():
    exe = compile("ROOT r = f32[4,4] negate(x)", "f32[4,4]")
    for i in range(12):
        x = np.arange(16 * 40, dtype=np.float32).reshape(16, 40)[:4, :4 + 2 * i:1][:, :4] if i == 0 else \
            np.ascontiguousarray(np.arange(16 * 40, dtype=np.float32)[:8 * (4 + i)].reshape(8, 4 + i))[::2, :4]
        for _ in range(2):
            xlac.reset_stats()
            np.testing.assert_array_equal(exe(x), -x)
            assert copied() == (0 if i < 8 else 64)


def test_two_arguments_with_strides():
    exe = compile("ROOT r = f32[6,4] add(x, y)", "f32[6,4]", "f32[6,4]")
    a, b = base((4, 6)), base((12, 8))
    for x, y in itertools.product([a.T, np.ascontiguousarray(a.T)], [b[::2, ::-2], np.ascontiguousarray(b[::2, ::-2])]):
        xlac.reset_stats()
        np.testing.assert_array_equal(exe(x, y), a.T + b[::2, ::-2])
        assert copied() == 0


def test_products_of_transposed_arguments():
    exe = compile("ROOT r = f32[30,50] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "f32[30,40]", "f32[40,50]")
    rng = np.random.default_rng(1)
    x, y = rng.integers(-5, 5, (40, 30)).astype(np.float32).T, rng.integers(-5, 5, (50, 40)).astype(np.float32).T
    xlac.reset_stats()
    np.testing.assert_array_equal(exe(x, y), x @ y)
    assert copied() == 0


def test_donation_beside_strides():
    """A plan for strides gives the other arguments to the same results."""
    exe = compile("a = f32[100] negate(y)\n  b = f32[100] add(x, y)\n  ROOT r = (f32[100], f32[100]) tuple(a, b)", "f32[100]", "f32[100]",
                  donate=(0, 1))
    x, y = np.arange(200, dtype=np.float32)[::2], np.ones(100, np.float32)
    want = exe(x.copy(), y)
    r = exe(x, xlac.donate(y))
    where = {d["argument"]: d["result"] for d in exe.donations}[1]
    assert r[where].__array_interface__["data"] == y.__array_interface__["data"]
    for g, w in zip(r, want):
        np.testing.assert_array_equal(g, w)


def test_out_and_strides():
    exe = compile("ROOT r = f32[100] negate(x)", "f32[100]")
    memory = np.arange(200, dtype=np.float32)
    x, out = memory[::-2], memory[:100]
    want = -x
    exe(x, out=out)
    np.testing.assert_array_equal(out, want)


def test_random_views():
    rng = np.random.default_rng(7)
    for seed in range(60):
        rank = int(rng.integers(1, 4))
        x = rng.standard_normal(rng.integers(1, 9, rank)).astype(np.float32)
        x = x.transpose(rng.permutation(rank))
        x = x[tuple(slice(None, None, int(rng.choice([1, 1, 2, -1, -2, 3]))) for _ in range(rank))]
        if rng.random() < 0.3:
            x = np.broadcast_to(x, (3, *x.shape))
        t = f"f32[{','.join(map(str, x.shape))}]"
        exe = compile(f"n = {t} negate(x)\n  ROOT r = ({t}, {t}) tuple(n, x)", t, fuse=bool(seed % 3))
        n, same = exe(x)
        np.testing.assert_array_equal(n, -x)
        np.testing.assert_array_equal(same, x)


# --- memory that no result takes ---

CHAIN = ("s = f32[40000] sort(x), dimensions={0}, to_apply=less\n  v = f32[40000] reverse(s), dimensions={0}\n"
         "  q = f32[40000] sort(v), dimensions={0}, to_apply=less\n  ROOT r = f32[10] slice(q), slice={[5:15]}")


def test_temporaries_lie_in_what_is_given_away():
    exe = compile(CHAIN, "f32[40000]", more=MORE, donate=0)
    x = np.random.default_rng(3).standard_normal(40000).astype(np.float32)
    want = np.sort(x)[5:15]
    np.testing.assert_array_equal(exe(x), want)
    b = xlac.from_dlpack(x, copy=True)
    xlac.reset_stats()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(exe(xlac.donate(b)), want)
    assert b.is_deleted and xlac.stats()["bytes_reused"] >= 160000
    with pytest.raises(xlac.DonationError, match="donated to m"):
        b.numpy()
    np.testing.assert_array_equal(exe(xlac.donate(x)), want)


def test_several_spares_at_once():
    exe = compile("a = f32[40000] sort(x), dimensions={0}, to_apply=less\n  b = f32[30000] sort(y), dimensions={0}, to_apply=less\n"
                  "  c = f32[30000] slice(a), slice={[0:30000]}\n  d = f32[30000] reverse(b), dimensions={0}\n"
                  "  f = f32[30000] sort(d), dimensions={0}, to_apply=less\n  g = f32[30000] subtract(c, f)\n"
                  "  ROOT r = f32[7] slice(g), slice={[0:7]}", "f32[40000]", "f32[30000]", more=MORE, donate=(0, 1))
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal(40000).astype(np.float32), rng.standard_normal(30000).astype(np.float32)
    want = exe(x, y)
    for given in itertools.product([False, True], repeat=2):
        args = [xlac.from_dlpack(a, copy=True) for a in (x, y)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", xlac.DonationWarning)
            np.testing.assert_array_equal(exe(*(xlac.donate(a) if g else a for a, g in zip(args, given))), want)
        for a, k, g in zip(args, (x, y), given):
            assert a.is_deleted or (a.numpy() == k).all()
            assert g or not a.is_deleted
