"""Builder: programs op by op."""
import numpy as np
import pytest

import xlac
from xlac.value import Value

X = np.arange(120, dtype=np.float32).reshape(4, 5, 6) / 60 - 1


def run(build, *arrays):
    """The values of what `build` makes of a Builder and one parameter per array."""
    b = xlac.Builder()
    return xlac.interpret(b.build(build(b, *[b.parameter(i, a) for i, a in enumerate(arrays)])), *arrays)


def test_every_op_is_a_method():
    for row in [row for row in xlac._core.opcode_table() if "." not in row["name"]]:
        method = getattr(xlac.Builder, row["name"].replace("-", "_"), None) or getattr(
            xlac.Builder, row["name"].replace("-", "_") + "_")
        assert method.__doc__
    assert {"and_", "or_", "not_", "while_", "get_tuple_element", "all_reduce"} <= set(dir(xlac.Builder))


def test_arithmetic_operators():
    def build(b, x, y):
        return [x + y, x - y, x * y, x / y, x % y, 2 ** x, x ** 2, -x, abs(x), +x, 1 - x, 3 / (x + 4), 1.5 + x, 2 * x, 7 % (y + 9)]

    Y = np.float32(X[::-1] + 3.3)
    wanted = [X + Y, X - Y, X * Y, X / Y, np.fmod(X, Y), 2 ** X, X ** 2, -X, abs(X), X, 1 - X, 3 / (X + 4), 1.5 + X, 2 * X,
              np.fmod(7, Y + 9)]
    for mine, theirs in zip(run(build, X, Y), wanted):
        assert mine.dtype == np.float32
        np.testing.assert_allclose(mine, theirs, rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int8])
def test_integer_operators(dtype):
    a, b = np.array([1, 5, 12, 100], dtype), np.array([3, 1, 2, 7], dtype)

    def build(_, x, y):
        return [x & y, x | y, x ^ y, ~x, x << 1, x >> y, 64 >> y, 1 << y, 6 & x, x & 6]

    wanted = [a & b, a | b, a ^ b, ~a, a << 1, a >> b, dtype(64) >> b, dtype(1) << b, dtype(6) & a, a & dtype(6)]
    for mine, theirs in zip(run(build, a, b), wanted):
        np.testing.assert_array_equal(mine, theirs.astype(dtype))


def test_shifts_of_negative_numbers_keep_the_sign():
    assert run(lambda b, x: x >> 1, np.array([-8], np.int32)).tolist() == [-4]
    assert run(lambda b, x: x >> 1, np.array([0x80000000], np.uint32)).tolist() == [0x40000000]


def test_comparisons():
    def build(b, x, y):
        return [x.eq(y), x.ne(y), x < y, x <= y, x > y, x >= y, x.lt(y), x.ge(0.5), b.compare(x, y, "GT")]

    Y = X[::-1].copy()
    wanted = [X == Y, X != Y, X < Y, X <= Y, X > Y, X >= Y, X < Y, X >= 0.5, X > Y]
    for mine, theirs in zip(run(build, X, Y), wanted):
        assert mine.dtype == bool
        np.testing.assert_array_equal(mine, theirs)


INDICES = [np.s_[1], np.s_[-1], np.s_[..., 2], np.s_[::2, None, ::-1], np.s_[-1:, 1:3, -1], np.s_[0, 0, 0], np.s_[3:1], np.s_[:],
           np.s_[::-2], np.s_[:, 4:0:-3], np.s_[None, ..., None], np.s_[1, ..., 1:2], np.s_[0:0, 5:]]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_slicing_is_numpys(index):
    np.testing.assert_array_equal(run(lambda b, x: x[index], X), X[index])


@pytest.mark.parametrize("index, error", [(np.s_[4], IndexError), (np.s_[0, 0, 0, 0], IndexError), (np.s_[..., ...], IndexError),
                                          ([0, 1], xlac.Error), ("a", xlac.Error)])
def test_bad_indices(index, error):
    b = xlac.Builder()
    with pytest.raises(error):
        b.parameter(0, X)[index]


@pytest.mark.parametrize("shapes", [((4, 5, 6), (6,)), ((4, 1, 6), (5, 1)), ((), (3,)), ((1,), (2, 3)), ((2, 1), (1, 3)), ((0, 1), (3,))])
def test_broadcasting_is_numpys(shapes):
    a, b = (np.arange(np.prod(s), dtype=np.float32).reshape(s) for s in shapes)
    np.testing.assert_array_equal(run(lambda _, x, y: x + y, a, b), a + b)
    np.testing.assert_array_equal(run(lambda _, x: x + b, a), a + b)
    np.testing.assert_array_equal(run(lambda _, x: b + x, a), a + b)


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4))])
def test_matmul_is_numpys(shapes):
    a, b = (np.random.default_rng(i).standard_normal(s).astype(np.float32) for i, s in enumerate(shapes))
    np.testing.assert_allclose(run(lambda _, x, y: x @ y, a, b), a @ b, rtol=1e-5, atol=1e-6)


def test_constants_are_32_bit_unless_said():
    b = xlac.Builder()
    types = [b.constant(v).type for v in (1, 1.5, True, 1j, [1, 2], 2**40, np.float64(2), np.int8(1))]
    assert types == ["s32[]", "f32[]", "pred[]", "c64[]", "s32[2]", "s64[]", "f64[]", "s8[]"]
    assert b.constant([1, 2], "bf16").type == "bf16[2]" and b.constant(3, np.float64).type == "f64[]"
    with pytest.raises(xlac.Error, match="not an element type"):
        b.constant(1, "f31")
    with pytest.raises(xlac.Error, match="1.5 is not a value of s32"):
        b.parameter(0, "s32[]") + 1.5


def test_parameters_of_every_spelling():
    b = xlac.Builder()
    types = [b.parameter(i, t).type for i, t in enumerate(
        ["f32[2]", ("bf16", (2, 3)), (np.int8, [4]), X, ["f32[]", ("s32", ())], np.float64(1), b.constant(1)])]
    assert types == ["f32[2]", "bf16[2,3]", "s8[4]", "f32[4,5,6]", "(f32[], s32[])", "f64[]", "s32[]"]


def test_reduce_with_named_and_built_computations():
    np.testing.assert_allclose(run(lambda b, x: b.reduce(x, 0.0, dimensions=[1, 2], to_apply="add"), X), X.sum((1, 2)), rtol=1e-5)
    np.testing.assert_array_equal(run(lambda b, x: b.reduce(x, -np.inf, dimensions=0, to_apply="maximum"), X), X.max(0))
    other = xlac.Builder("biggest")
    p, q = other.parameter(0, "f32[]"), other.parameter(1, "f32[]")
    module = other.build(other.maximum(p, q))
    for computation in (other, module, module.entry):
        np.testing.assert_array_equal(run(lambda b, x: b.reduce(x, -np.inf, dimensions=0, to_apply=computation), X), X.max(0))
    with pytest.raises(xlac.Error, match="'nope' is neither"):
        run(lambda b, x: b.reduce(x, 0.0, dimensions=0, to_apply="nope"), X)


def test_named_computations_are_made_once():
    b = xlac.Builder()
    x = b.parameter(0, X)
    b.build([b.reduce(x, 0.0, dimensions=[i], to_apply="add") for i in range(3)])
    assert len(b.module.computations) == 2


def test_sort_and_windows():
    np.testing.assert_array_equal(run(lambda b, x: b.sort(x, dimensions=2, to_apply="gt"), X), -np.sort(-X, 2))

    def pool(b, x):
        return b.reduce_window(x, 0.0, to_apply="add", window={"size": (1, 1, 3), "stride": (1, 1, 3)})

    np.testing.assert_allclose(run(pool, X), X.reshape(4, 5, 2, 3).sum(3), rtol=1e-5, atol=1e-6)


def test_while_and_conditional():
    b = xlac.Builder("loop")
    n = b.parameter(0, "s32[]")
    state = ["s32[]", "s32[]", "s32[]"]
    cond, body = b.sub_builder("cond"), b.sub_builder("body")
    i, end, _ = cond.parameter(0, state)
    cond.set_root(i < end)
    i, end, total = body.parameter(0, state)
    body.set_root((i + 1, end, total + i))
    out = b.while_(b.tuple(b.constant(0), n, b.constant(0)), condition=cond, body=body)
    assert len(out) == 3
    module = b.build(out[2])
    assert xlac.interpret(module, 10) == 45
    b = xlac.Builder()
    branches = []
    for k in range(3):
        branch = xlac.Builder(f"branch{k}")
        branch.build(branch.parameter(0, "f32[]") + float(k))
        branches.append(branch)
    index, x = b.parameter(0, "s32[]"), b.parameter(1, "f32[]")
    module = b.build(b.conditional(index, x, x, x, branch_computations=branches))
    assert [float(xlac.interpret(module, k, 1.0)) for k in range(3)] == [1, 2, 3]


def test_friendly_forms():
    def build(b, x):
        return [b.reshape(x, (20, 6)), b.transpose(x), b.transpose(x, (0, 2, 1)), b.convert(x, "s32"), b.iota("f32[3,2]", 1),
                b.broadcast(x, (2, 4, 5, 6), (1, 2, 3)), b.bitcast_convert(x, "u32"), b.select(x > 0, x, 0.0),
                b.clamp(-0.5, x, 0.5), b.concatenate([x, x], dimensions=0), b.pad(x, 0.0, padding=[(1, 0), (0, 0), (0, 0)])]

    wanted = [X.reshape(20, 6), X.T, X.transpose(0, 2, 1), X.astype(np.int32), np.tile(np.float32([0, 1]), (3, 1)),
              np.broadcast_to(X, (2, 4, 5, 6)), X.view(np.uint32), np.where(X > 0, X, 0), X.clip(-0.5, 0.5), np.concatenate([X, X]),
              np.pad(X, [(1, 0), (0, 0), (0, 0)])]
    for mine, theirs in zip(run(build, X), wanted):
        np.testing.assert_array_equal(mine, theirs)


def test_indices_have_a_type_of_their_own():
    def build(b, x):
        part = b.dynamic_slice(x, 1, 2, 0, dynamic_slice_sizes=[1, 2, 6])
        return [part, b.dynamic_update_slice(x, b.negate(part), 0, 0, 0), b.select(x > 0, 1.0, x)]

    wanted = X.copy()
    wanted[:1, :2] = -X[1:2, 2:4]
    for mine, theirs in zip(run(build, X), [X[1:2, 2:4], wanted, np.where(X > 0, np.float32(1), X)]):
        np.testing.assert_array_equal(mine, theirs)


def test_aliases_and_donors():
    b = xlac.Builder()
    x, y = b.parameter(0, "f32[4]"), b.parameter(1, "f32[4]")
    b.set_up_alias(0, 0)
    b.set_up_alias((1,), 1, (), kind="must")
    b.parameter(2, "f32[4]")
    b.add_buffer_donor(2)
    module = b.build([x + 1, y * 2])
    assert "{0}: (0, {}, may-alias), {1}: (1, {}, must-alias)" in module.to_text()
    assert module.config["buffer_donor"] == [{"parameter": 2, "index": ()}]
    with pytest.raises(xlac.Error, match="may or must"):
        b.set_up_alias(0, 0, kind="perhaps")
    b.set_up_alias(5, 0)
    with pytest.raises(xlac.VerifyError):
        b.build()


def test_build_gives_copies_and_verifies():
    b = xlac.Builder("m", entry="start")
    x = b.parameter(0, "f32[4]", "x")
    first = b.build(b.add(x, x, name="twice"))
    second = b.build(b.op("multiply", x, x, type="f32[4]"))
    assert first.entry.name == "start" and first.entry.root.name == "twice" and second.entry.root.opcode == "multiply"
    b.op("multiply", x, x, type="f32[5]")
    with pytest.raises(xlac.VerifyError):
        b.build()
    with pytest.raises(xlac.VerifyError):
        xlac.Builder().build()


def test_attributes_and_types_are_checked():
    b = xlac.Builder()
    x = b.parameter(0, X)
    for call in (lambda: b.transpose(x, [0, 0, 1]), lambda: b.dot(x, x, nope=3), lambda: b.slice(x), lambda: b.add(x), lambda: x + X[:, :2],
                 lambda: b.build(b.reshape(x, [7])), lambda: b.negate(xlac.Builder().constant(1)), lambda: b.op("nope", x)):
        with pytest.raises(xlac.Error):
            call()
    with pytest.raises(AttributeError):
        b.nope(x)


def test_values_are_not_truth_values_or_iterables():
    b = xlac.Builder()
    x = b.parameter(0, X)
    with pytest.raises(TypeError, match="truth"):
        bool(x)
    with pytest.raises(TypeError):
        iter(x)
    assert len(x) == 4 and x == x and hash(x) and isinstance(x, Value) and "f32[4,5,6]" in repr(x)


def test_sharding_and_metadata_are_attributes():
    b = xlac.Builder()
    x = b.parameter(0, X)
    y = b.negate(x, sharding="{replicated}", frontend_attributes={"a": 'say "b"'})
    assert y.instruction.sharding == "{replicated}"
    module = b.build(y)
    assert xlac.parse(module.to_text()).to_text() == module.to_text()
