"""input_output_alias and donation as XLA's documentation tells them, by pointer: the two example modules, and every way to say an alias."""
import numpy as np
import pytest

import xlac

PLAIN = """HloModule increment

ENTRY entry {
  %p = f32[] parameter(0)
  %c = f32[] constant(1)
  ROOT %out = f32[] add(%p, %c)
}
"""
ALIASED = PLAIN.replace("HloModule increment", "HloModule increment, input_output_alias={ {}: 0 }")
LARGE = ALIASED.replace("f32[]", "f32[1000]").replace("constant(1)", "constant({" + ", ".join(["1"] * 1000) + "})")


def pointer(a):
    return a.__array_interface__["data"][0]


def buffer(value, shape=()):
    return xlac.from_dlpack(np.full(shape, value, np.float32), copy=True)


@pytest.fixture(params=[(PLAIN, ALIASED, ()), (LARGE.replace(", input_output_alias={ {}: 0 }", ""), LARGE, (1000,))], ids=["scalar", "array"])
def pair(request):
    plain, aliased, shape = request.param
    return xlac.compile(plain), xlac.compile(xlac.parse(aliased)), shape


def test_without_alias_there_are_two_buffers(pair):
    plain, _, shape = pair
    b = buffer(41, shape)
    where = b.unsafe_pointer()
    out = plain(b)
    assert pointer(np.asarray(out)) != where and (np.asarray(out) == 42).all() and (b.numpy() == 41).all()
    b = buffer(41, shape)
    with pytest.warns(xlac.DonationWarning, match="neither aliases nor donates"):
        out = plain(xlac.donate(b))  # there is nothing to give it to
    assert not b.is_deleted and (b.numpy() == 41).all() and (np.asarray(out) == 42).all()


def test_with_alias_and_donation_it_is_the_same_pointer(pair):
    _, aliased, shape = pair
    b = buffer(41, shape)
    where = b.unsafe_pointer()
    xlac.reset_stats()
    out = aliased(xlac.donate(b))
    stats = xlac.stats()
    assert pointer(np.asarray(out)) == where and (np.asarray(out) == 42).all() and b.is_deleted
    assert (stats["reused"], stats["bytes_reused"]) == (1, out.nbytes)
    assert all(stats[f"bytes_copied_{what}"] == 0 for what in ("in", "out", "plan", "protection"))


def test_with_alias_and_without_donation_the_argument_is_protected(pair):
    _, aliased, shape = pair
    b = buffer(41, shape)
    out = aliased(b)
    assert pointer(np.asarray(out)) != b.unsafe_pointer() and (b.numpy() == 41).all() and (np.asarray(out) == 42).all()
    assert not b.is_deleted and xlac.stats()["live_buffers"] >= 1


def test_the_short_form_is_read_and_normalised_unless_reading_is_strict():
    m = xlac.parse(ALIASED)
    assert "input_output_alias={ {}: (0, {}, may-alias) }" in m.to_text().split("\n")[0]
    assert xlac.parse(m.to_text()).to_text() == m.to_text()
    with pytest.raises(xlac.ParseError) as caught:
        xlac.parse(ALIASED, strict=True)
    assert "strict" in caught.value.hint


def test_an_update_that_must_copy_is_counted_as_protection():
    exe = xlac.compile("""HloModule m, input_output_alias={ {}: (0, {}, must-alias) }
ENTRY e {
  x = f32[100000] parameter(0)
  u = f32[3] parameter(1)
  i = s32[] parameter(2)
  ROOT r = f32[100000] dynamic-update-slice(x, u, i)
}""")
    x, u = np.zeros(100000, np.float32), np.ones(3, np.float32)
    xlac.reset_stats()
    exe(x, u, np.int32(7))
    assert (xlac.stats()["copies_protection"], xlac.stats()["bytes_copied_protection"]) == (1, 400000)
    assert xlac.stats()["bytes_copied_plan"] == 0 and not x.any()
    xlac.reset_stats()
    r = exe(xlac.donate(x), u, np.int32(7))
    stats = xlac.stats()
    assert pointer(r) == pointer(x) and r.sum() == 3
    assert stats["bytes_copied_protection"] == stats["bytes_copied_plan"] == 0 and stats["bytes_reused"] == 400000


def build(shape="f32[8]"):
    b = xlac.Builder("m")
    p, q = b.parameter(0, shape), b.parameter(1, shape)
    return b, b.tuple(b.negate(p), b.exponential(q))


def test_builder_aliases():
    b, root = build()
    b.set_up_alias((1,), 0, (), kind="may")
    b.set_up_alias(0, 1, kind="must")
    m = b.build(root)
    assert "{ {0}: (1, {}, must-alias), {1}: (0, {}, may-alias) }" in m.to_text()
    exe = xlac.compile(m)
    assert [(d["argument"], d["result"], d["must"]) for d in exe.donations] == [(1, 0, True), (0, 1, False)]
    b, root = build()
    b.add_buffer_donor(1)
    assert [(d["argument"], d["result"]) for d in xlac.compile(b.build(root)).donations] == [(1, 0)]


@pytest.mark.parametrize("alias, why", [
    (((2,), 0), "output"), (((0,), 5), "parameter"), (((0, 0), 0), "no array"), (((0,), 0, (1,)), "no array")])
def test_builder_refuses(alias, why):
    b, root = build()
    b.set_up_alias(*alias)
    with pytest.raises(xlac.VerifyError):
        b.build(root)


@pytest.mark.parametrize("header, match", [
    ("input_output_alias={ {}: (0, {}) }", "token"),
    ("buffer_donor={ (0, {}) }", "token")])
def test_tokens_are_no_buffers(header, match):
    text = f"HloModule m, {header}\nENTRY e {{\n  t = token[] parameter(0)\n  ROOT r = token[] after-all(t)\n}}"
    with pytest.raises(xlac.Error, match=match):
        xlac.parse(text).verify()


def test_mlir_aliases():
    exe = xlac.compile("""func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<4xf32> {jax.buffer_donor = true})
      -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.negate %a : tensor<4xf32>
  %1 = stablehlo.add %b, %b : tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<4xf32>
}""")
    assert [(d["argument"], d["result"], d["in_place"]) for d in exe.donations] == [(0, 1, True), (1, 0, True)]
    a, b = np.ones(4, np.float32), np.full(4, 2, np.float32)
    r = exe(xlac.donate(a), xlac.donate(b))
    assert pointer(r[1]) == pointer(a) and pointer(r[0]) == pointer(b)
    assert (r[0] == 4).all() and (r[1] == -1).all()


def test_nested_indices():
    exe = xlac.compile("""HloModule m, input_output_alias={ {1,0}: (0, {1}, must-alias), {0}: (0, {0,1}) }, buffer_donor={ (1, {}) }
ENTRY e {
  p = ((s32[2], f32[8]), f32[8]) parameter(0)
  q = f32[8] parameter(1)
  n = (s32[2], f32[8]) get-tuple-element(p), index=0
  a = f32[8] get-tuple-element(n), index=1
  b = f32[8] get-tuple-element(p), index=1
  c = f32[8] negate(a)
  d = f32[8] exponential(b)
  f = f32[8] add(q, q)
  t = (f32[8], f32[8]) tuple(d, f)
  ROOT r = (f32[8], (f32[8], f32[8])) tuple(c, t)
}""")
    exe._check()
    a, b, q, s = (np.full(8, v, np.float32) for v in (1, 0, 3, 4))
    s = np.zeros(2, np.int32)
    r = exe(((s, xlac.donate(a)), xlac.donate(b)), xlac.donate(q))
    assert (pointer(r[0]), pointer(r[1][0]), pointer(r[1][1])) == (pointer(a), pointer(b), pointer(q))
    assert (r[0] == -1).all() and (r[1][0] == 1).all() and (r[1][1] == 6).all()
