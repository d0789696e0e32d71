"""Ops along sharded dimensions fetch what they need of other devices: the edges of shards, not whole arrays. Dimensions that their shards do not divide are not an exception."""
import re

import numpy as np
import pytest

import xlac

MESH = 'sdy.mesh @mesh = <["x"=4]>\n'


def cut(shape, dim=0):
    axes = ", ".join('{"x"}' if d == dim else "{}" for d in range(len(shape)))
    return f"tensor<{'x'.join(map(str, shape))}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{axes}]>}}"


def tensor(shape):
    return f"tensor<{''.join(f'{n}x' for n in shape)}f32>"


def compiled(arguments, result, body):
    names = ", ".join(f"%a{i}: {t}" for i, t in enumerate(arguments))
    text = f"{MESH}func.func @main({names}) -> ({result}) {{\n{body}\nreturn %0 : {result.split(' {')[0]}\n}}"
    exe = xlac.compile(xlac.parse(text, format="mlir"), devices=4)
    data = exe.explain("sharding").data
    assert data["whole"] is None and data["gathers"] == []
    return exe, data["moves"]


X = np.arange(32, dtype=np.float32).reshape(16, 2) ** 2 % 29
Z = "%z = stablehlo.constant dense<1.5> : tensor<f32>\n"
ADD = "({ ^bb0(%p: tensor<f32>, %q: tensor<f32>): %s = stablehlo.add %p, %q : tensor<f32>\nstablehlo.return %s : tensor<f32> })"


@pytest.mark.parametrize("body, shape, wanted, rows", [
    ("%0 = stablehlo.slice %a0 [1:13, 0:2] : (tensor<16x2xf32>) -> tensor<12x2xf32>", (12, 2), X[1:13], [2]),
    ("%0 = stablehlo.slice %a0 [0:16:2, 0:2] : (tensor<16x2xf32>) -> tensor<8x2xf32>", (8, 2), X[::2], []),
    (Z + "%0 = stablehlo.pad %a0, %z, low = [4, 0], high = [0, 1], interior = [0, 0] : (tensor<16x2xf32>, tensor<f32>) -> tensor<20x3xf32>", (20, 3), np.pad(X, ((4, 0), (0, 1)), constant_values=1.5), None),
    (Z + "%0 = stablehlo.pad %a0, %z, low = [1, 0], high = [0, 0], interior = [1, 0] : (tensor<16x2xf32>, tensor<f32>) -> tensor<32x2xf32>", (32, 2), np.insert(X, np.arange(16), 1.5, axis=0), []),
    ("%0 = stablehlo.reverse %a0, dims = [0, 1] : tensor<16x2xf32>", (16, 2), X[::-1, ::-1], [4]),
    ("%s = stablehlo.slice %a0 [15:16, 0:2] : (tensor<16x2xf32>) -> tensor<1x2xf32>\n%r = stablehlo.slice %a0 [0:15, 0:2] : (tensor<16x2xf32>) -> tensor<15x2xf32>\n"
     "%0 = stablehlo.concatenate %s, %r, dim = 0 : (tensor<1x2xf32>, tensor<15x2xf32>) -> tensor<16x2xf32>", (16, 2), np.roll(X, 1, 0), [1, 1]),
    ('%z = stablehlo.constant dense<0.0> : tensor<f32>\n%0 = "stablehlo.reduce_window"(%a0, %z) ' + ADD + " {window_dimensions = array<i64: 3, 1>, padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}"
     " : (tensor<16x2xf32>, tensor<f32>) -> tensor<16x2xf32>", (16, 2), np.pad(X, ((1, 1), (0, 0)))[:-2] + X + np.pad(X, ((1, 1), (0, 0)))[2:], [1, 1]),
])
def test_edges_of_shards_move_between_neighbours(body, shape, wanted, rows):
    exe, moves = compiled([cut((16, 2))], cut(shape) if shape[0] % 4 == 0 else tensor(shape), body)
    np.testing.assert_array_equal(exe(X), wanted)
    if rows is not None:
        assert [m["kind"] for m in moves] == ["collective_permute"] * len(rows)
        assert [m["bytes"] for m in moves] == [8 * n for n in rows]
        assert all(m["axes"] == "x" and m["line"] > 2 for m in moves)


STENCIL = """%p = {pad}
%s = stablehlo.slice %p [0:16, 1:3] : (tensor<18x4xf32>) -> tensor<16x2xf32>
%t = stablehlo.slice %p [2:18, 1:3] : (tensor<18x4xf32>) -> tensor<16x2xf32>
%u = stablehlo.slice %p [1:17, 2:4] : (tensor<18x4xf32>) -> tensor<16x2xf32>
%a = stablehlo.add %s, %t : tensor<16x2xf32>
%0 = stablehlo.add %a, %u : tensor<16x2xf32>"""
PAD = "stablehlo.pad {}, {}, low = [1, 1], high = [1, 1], interior = [0, 0] : (tensor<16x2xf32>, tensor<f32>) -> tensor<18x4xf32>"


@pytest.mark.parametrize("called", [False, True])
def test_stencils_of_what_is_padded_fetch_edges_alone(called):
    """Devices don't divide the 18 rows; jnp.pad is a function of its own."""
    function = f"}}\nfunc.func private @_pad(%x: {tensor((16, 2))}, %y: tensor<f32>) -> {tensor((18, 4))} {{\n%q = {PAD.format('%x', '%y')}\nreturn %q : {tensor((18, 4))}"
    pad = "func.call @_pad(%a0, %z) : (tensor<16x2xf32>, tensor<f32>) -> tensor<18x4xf32>" if called else PAD.format("%a0", "%z")
    text = f"{MESH}func.func @main(%a0: {cut((16, 2))}) -> ({cut((16, 2))}) {{\n{Z}{STENCIL.format(pad=pad)}\nreturn %0 : {tensor((16, 2))}\n{function if called else ''}}}"
    exe = xlac.compile(xlac.parse(text, format="mlir"), devices=4)
    data = exe.explain("sharding").data
    padded = np.pad(X, 1, constant_values=1.5)
    np.testing.assert_array_equal(exe(X), padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, 2:])
    assert data["whole"] is None and data["gathers"] == []
    assert [(m["kind"], m["bytes"]) for m in data["moves"]] == [("collective_permute", 8)] * 2


@pytest.mark.parametrize("low, high, start", [(1, 0, 0), (0, 3, 3), (17, 0, 0), (17, 0, 9), (0, 21, 21), (-1, 2, 0), (2, -1, 1)])
def test_what_is_padded_and_cut_is_shifted(low, high, start):
    n = 16 + low + high
    body = (f"{Z}%p = stablehlo.pad %a0, %z, low = [{low}, 0], high = [{high}, 0], interior = [0, 0] : ({tensor((16, 2))}, tensor<f32>) -> "
            f"{tensor((n, 2))}\n%0 = stablehlo.slice %p [{start}:{start + 16}, 0:2] : ({tensor((n, 2))}) -> {tensor((16, 2))}")
    exe, moves = compiled([cut((16, 2))], cut((16, 2)), body)
    padded = np.full((64, 2), 1.5, np.float32)
    padded[24 + low:40 + low] = X
    padded = padded[24:] if low >= 0 else np.concatenate([X[-low:], padded[40:]])
    np.testing.assert_array_equal(exe(X), padded[start:start + 16])
    assert {m["kind"] for m in moves} <= {"collective_permute"}

@pytest.mark.parametrize("rows, gap", [("0:17", 0), ("1:17:2", 0), ("0:16", 1)])
def test_other_slices_of_what_is_padded_stay_as_they_are(rows, gap):
    n, m = len(range(*map(int, rows.split(":")))), 18 + 15 * gap
    body = (f"{Z}%p = stablehlo.pad %a0, %z, low = [1, 1], high = [1, 1], interior = [{gap}, 0] : (tensor<16x2xf32>, tensor<f32>) -> tensor<{m}x4xf32>\n"
            f"%0 = stablehlo.slice %p [{rows}, 0:2] : (tensor<{m}x4xf32>) -> tensor<{n}x2xf32>")
    text = f"{MESH}func.func @main(%a0: {cut((16, 2))}) -> {tensor((n, 2))} {{\n{body}\nreturn %0 : {tensor((n, 2))}\n}}"
    padded = np.full((m, 4), 1.5, np.float32)
    padded[1:-1:1 + gap, 1:-1] = X
    np.testing.assert_array_equal(xlac.compile(xlac.parse(text, format="mlir"), devices=4)(X), padded[slice(*map(int, rows.split(":"))), :2])

@pytest.mark.parametrize("stride, low, high", [(1, 1, 1), (1, 0, 0), (2, 1, 0), (2, 2, 2)])
def test_convolutions_along_a_sharded_dimension(stride, low, high):
    x = np.random.default_rng(0).integers(-3, 4, (2, 16, 3)).astype(np.float32)
    w = np.random.default_rng(1).integers(-3, 4, (3, 3, 4)).astype(np.float32)
    n = (16 + low + high - 3) // stride + 1
    line = (f"stablehlo.convolution(%a0, %a1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{stride = [{stride}], pad = [[{low}, {high}]]}} "
            f"{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<2x16x3xf32>, tensor<3x3x4xf32>) -> tensor<2x{n}x4xf32>")
    exe, moves = compiled([cut(x.shape, 1), tensor(w.shape)], tensor((2, n, 4)), f"%v = {line}\n%0 = sdy.sharding_constraint %v <@mesh, [{{}}, {{\"x\"}}, {{}}]> : tensor<2x{n}x4xf32>")
    padded = np.pad(x, ((0, 0), (low, high), (0, 0)))
    wanted = np.stack([np.einsum("nwc,wco->no", padded[:, i * stride:i * stride + 3], w) for i in range(n)], 1)
    np.testing.assert_allclose(exe(x, w), wanted)
    assert "stablehlo.convolution" in {m["op"] for m in moves} and sum(m["bytes"] for m in moves if m["kind"] == "collective_permute") <= 5 * 2 * 3 * 4


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7, 9, 13])
def test_uneven_dimensions_stay_cut(n):
    x = np.random.default_rng(n).integers(-3, 4, (n, 4)).astype(np.float32)
    body = (f"%x = sdy.sharding_constraint %a0 <@mesh, [{{\"x\"}}, {{}}]> : tensor<{n}x4xf32>\n%y = stablehlo.cosine %x : tensor<{n}x4xf32>\n"
            f"%m = stablehlo.constant dense<-2.0> : tensor<f32>\n%s = stablehlo.reduce(%y init: %m) applies stablehlo.maximum across dimensions = [0] : (tensor<{n}x4xf32>, tensor<f32>) -> tensor<4xf32>\n"
            f"%0 = stablehlo.dot_general %y, %y, contracting_dims = [0] x [0] : (tensor<{n}x4xf32>, tensor<{n}x4xf32>) -> tensor<4x4xf32>")
    exe, moves = compiled([tensor(x.shape)], tensor((4, 4)), body)
    np.testing.assert_allclose(exe(x), np.cos(x).T @ np.cos(x), rtol=1e-5, atol=1e-5)
    assert [m["kind"] for m in moves if m["kind"] != "all_slice"] == ["all_reduce"]


def variadic(n, dims, to, kept):
    return ('%i = stablehlo.iota dim = 0 : ' + f"tensor<{n}x{kept}xi32>\n"
            "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n%k = stablehlo.constant dense<0> : tensor<i32>\n"
            "%m:2 = stablehlo.reduce(%a0 init: %z), (%i init: %k) across dimensions = [" + dims + f"] : (tensor<{n}x{kept}xf32>, tensor<{n}x{kept}xi32>, tensor<f32>, tensor<i32>) -> (tensor<{to}f32>, tensor<{to}i32>)\n"
            " reducer(%p: tensor<f32>, %q: tensor<f32>) (%u: tensor<i32>, %v: tensor<i32>) {\n  %g = stablehlo.compare GT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            "  %e = stablehlo.compare EQ, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>\n  %l = stablehlo.compare LT, %u, %v : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            "  %el = stablehlo.and %e, %l : tensor<i1>\n  %t = stablehlo.or %g, %el : tensor<i1>\n  %x = stablehlo.select %g, %p, %q : tensor<i1>, tensor<f32>\n"
            "  %y = stablehlo.select %t, %u, %v : tensor<i1>, tensor<i32>\n  stablehlo.return %x, %y : tensor<f32>, tensor<i32>\n }\n")


def test_the_place_of_the_largest_is_that_of_each_shards():
    body = variadic(16, "0", "2x", 2) + "%0 = stablehlo.convert %m#1 : (tensor<2xi32>) -> tensor<2xf32>"
    exe, moves = compiled([cut((16, 2))], tensor((2,)), body)
    np.testing.assert_array_equal(exe(X), X.argmax(0))
    assert {m["kind"] for m in moves} == {"all_gather"} and all(m["bytes"] <= 4 * 2 * 4 for m in moves)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("op, init, f", [("add", "0.0", np.cumsum), ("maximum", "0xFF800000", np.maximum.accumulate)])
def test_scans_along_a_sharded_dimension(op, init, f, back):
    edges = "[0, 15]" if back else "[15, 0]"
    body = (f"%z = stablehlo.constant dense<{init}> : tensor<f32>\n"
            f'%0 = "stablehlo.reduce_window"(%a0, %z) ({{ ^bb0(%p: tensor<f32>, %q: tensor<f32>): %s = stablehlo.{op} %p, %q : tensor<f32>\nstablehlo.return %s : tensor<f32> }}) '
            f"{{window_dimensions = array<i64: 16, 1>, padding = dense<[{edges}, [0, 0]]> : tensor<2x2xi64>}} : (tensor<16x2xf32>, tensor<f32>) -> tensor<16x2xf32>")
    exe, moves = compiled([cut((16, 2))], cut((16, 2)), body)
    np.testing.assert_array_equal(exe(X), f(X[::-1], axis=0)[::-1] if back else f(X, axis=0))
    assert [(m["kind"], m["bytes"]) for m in moves if m["kind"] != "all_slice"] == [("all_gather", 24)]


@pytest.mark.parametrize("start", [-3, 0, 5, 11, 15, 99])
def test_dynamic_slices_and_updates_along_a_sharded_dimension(start):
    body = ("%c = stablehlo.constant dense<0> : tensor<i32>\n%0 = stablehlo.dynamic_slice %a0, %a1, %c, sizes = [3, 1] : (tensor<16x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x1xf32>")
    exe, moves = compiled([cut((16, 2)), "tensor<i32>"], tensor((3, 1)), body)
    at = min(max(start, 0), 13)
    np.testing.assert_array_equal(exe(X, np.int32(start)), X[at:at + 3, :1])
    assert [(m["kind"], m["bytes"] <= 24) for m in moves] == [("all_reduce", True)]
    body = "%c = stablehlo.constant dense<1> : tensor<i32>\n%0 = stablehlo.dynamic_update_slice %a0, %a2, %a1, %c : (tensor<16x2xf32>, tensor<3x1xf32>, tensor<i32>, tensor<i32>) -> tensor<16x2xf32>"
    exe, moves = compiled([cut((16, 2)), "tensor<i32>", tensor((3, 1))], cut((16, 2)), body)
    wanted = X.copy()
    wanted[at:at + 3, 1] = [100, 101, 102]
    np.testing.assert_array_equal(exe(X, np.int32(start), np.array([[100], [101], [102]], np.float32)), wanted)
    assert moves == []


@pytest.mark.parametrize("fill, combine, filled", [("0.0", "add", []), ("-0.0", "add", [2, 2]), ("0xFF800000", "maximum", [2, 2])])
def test_only_the_edges_that_neighbours_send_are_filled(fill, combine, filled):
    """A mask of all that a device has would go through its shard once more; the zeros of devices that nobody sends anything are the padding."""
    body = (f"%z = stablehlo.constant dense<{fill}> : tensor<f32>\n%0 = \"stablehlo.reduce_window\"(%a0, %z) ({{ ^bb0(%p: tensor<f32>, %q: tensor<f32>): "
            f"%s = stablehlo.{combine} %p, %q : tensor<f32>\nstablehlo.return %s : tensor<f32> }}) {{window_dimensions = array<i64: 5>, "
            "padding = dense<[[2, 2]]> : tensor<1x2xi64>} : (tensor<32xf32>, tensor<f32>) -> tensor<32xf32>")
    text = f"{MESH}func.func @main(%a0: {cut((32,))}) -> ({cut((32,))}) {{\n{body}\nreturn %0 : tensor<32xf32>\n}}"
    local = xlac.sharding.simulate(xlac.parse(text, format="mlir"), hardware="cpu-ethernet").local.to_text()
    assert [int(n) for n in re.findall(r"= f32\[(\d+)\]\{0\} select\(", local)] == filled
    x = np.random.default_rng(0).standard_normal(32).astype(np.float32) - 3
    exe, moves = compiled([cut((32,))], cut((32,)), body)
    padded = np.pad(x, 2, constant_values=0 if combine == "add" else -np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 5)
    np.testing.assert_allclose(exe(x), windows.sum(1) if combine == "add" else windows.max(1), rtol=1e-5)
    assert [m["bytes"] for m in moves] == [8, 8]
