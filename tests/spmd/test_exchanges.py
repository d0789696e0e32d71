"""An all-to-all is one exchange of an array: nothing is cut into parts before it or put together of parts behind it."""
import itertools
import re

import numpy as np
import pytest

import xlac

MESH = 'sdy.mesh @mesh = <["x"=4]>\n'
SHAPE = (8, 4, 12)
X = np.arange(8 * 4 * 12, dtype=np.float32).reshape(SHAPE)


def on(dim):
    return ", ".join('{"x"}' if d == dim else "{}" for d in range(len(SHAPE)))


def run(text, exchanges=1):
    exe = xlac.compile(xlac.parse(text, format="mlir"), devices=4)
    local = xlac.sharding.simulate(text, hardware="cpu-ethernet").local.to_text()
    assert exe.explain("sharding").data["whole"] is None
    assert len(re.findall(r" all-to-all\(%\S+\), .*dimensions=", local)) == exchanges
    assert not re.search(r" (slice|concatenate|dynamic-slice)\(", local)
    return exe(X)


@pytest.mark.parametrize("a, b", list(itertools.permutations(range(3), 2)))
def test_reshards_from_one_dimension_to_another(a, b):
    t = "tensor<8x4x12xf32>"
    body = (f"%y = stablehlo.cosine %x : {t}\n%z = sdy.reshard %y <@mesh, [{on(b)}]> : {t}\n%0 = stablehlo.negate %z : {t}\nreturn %0 : {t}")
    found = run(f"{MESH}func.func @main(%x: {t} {{sdy.sharding = #sdy.sharding<@mesh, [{on(a)}]>}}) -> ({t} {{sdy.sharding = #sdy.sharding<@mesh, [{on(b)}]>}}) {{\n{body}\n}}")
    np.testing.assert_allclose(found, -np.cos(X), rtol=1e-6)


@pytest.mark.parametrize("cut, split, concat", [(c, s, k) for c in range(3) for s in range(3) for k in range(3) if c != s])
def test_all_to_all_of_a_program(cut, split, concat):
    """Of shards cut along one dimension: split along another, the parts put together along any."""
    local = [n // 4 if d == cut else n for d, n in enumerate(SHAPE)]
    given = list(local)
    given[split] //= 4
    given[concat] *= 4
    out = [n * 4 if d == cut else n for d, n in enumerate(given)]
    a, b, whole, to = (f"tensor<{'x'.join(map(str, s))}xf32>" for s in (local, given, SHAPE, out))
    op = (f'"stablehlo.all_to_all"(%p) {{split_dimension = {split}, concat_dimension = {concat}, split_count = 4, replica_groups = dense<[[0, 1, 2, 3]]> : '
          f"tensor<1x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}} : ({a}) -> {b}")
    found = run(f"{MESH}func.func @main(%x: {whole}) -> {to} {{\n%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{on(cut)}]>] out_shardings=[<@mesh, [{on(cut)}]>] "
                f'manual_axes={{"x"}} (%p: {a}) {{\n%q = {op}\nsdy.return %q : {b}\n}} : ({whole}) -> {to}\nreturn %0 : {to}\n}}')
    shards = np.split(X, 4, cut)
    wanted = [np.concatenate([np.split(s, 4, split)[i] for s in shards], concat) for i in range(4)]
    np.testing.assert_array_equal(found, np.concatenate(wanted, cut))
