"""Arguments that are donated by out=: same memory, same values, and nothing changes that is only borrowed."""
import numpy as np
import pytest

import xlac


def program(body, params="f32[1000]", result="f32[1000]", header=""):
    names = "xyzuvw"
    lines = [f"{names[i]} = {t} parameter({i})" for i, t in enumerate(params.split(";"))]
    return f"HloModule m{header}\nENTRY e {{\n" + "\n".join(lines) + f"\n{body}\n}}\n"


def arrays(params):
    rng = np.random.default_rng(5)
    kinds = {"f32": np.float32, "s32": np.int32, "f64": np.float64}
    return [rng.integers(-50, 50, int(t[4:-1]) if t[4:-1] else ()).astype(kinds[t[:3]]) for t in params.split(";")]


def check(body, params="f32[1000]", donate=(0,), header="", in_place=None, pairs=None):
    """Lent: untouched. Given: results lie where the arguments were, with the values of the interpreter."""
    exe = xlac.compile(xlac.parse(program(body, params, header=header)), donate=donate)
    exe._check()
    args = arrays(params)
    want = xlac.interpret(xlac.parse(program(body, params)), *args)
    want = want if isinstance(want, tuple) else (want,)
    kept = [a.copy() for a in args]
    got = exe(*args)
    for g, w in zip(got if isinstance(got, tuple) else (got,), want):
        np.testing.assert_array_equal(g, w)
    for a, k in zip(args, kept):
        np.testing.assert_array_equal(a, k)
    if pairs is not None:
        assert [(d["argument"], d["result"]) for d in exe.donations] == pairs
    if in_place is not None:
        assert [d["in_place"] for d in exe.donations] == in_place
    over = {d["result"]: d["argument"] for d in exe.donations if d["result"] is not None}
    out = tuple(args[over[i]].view(w.dtype).reshape(w.shape) if i in over else None for i, w in enumerate(want))
    given = exe(*args, out=out if len(want) > 1 else out[0])
    for i, (g, w) in enumerate(zip(given if isinstance(given, tuple) else (given,), want)):
        np.testing.assert_array_equal(g, w)
        if i in over:
            assert np.shares_memory(g, args[over[i]])
    return exe


def test_elementwise():
    exe = check("k = f32[] constant(1)\nb = f32[1000] broadcast(k), dimensions={}\nROOT r = f32[1000] add(x, b)", in_place=[True], pairs=[(0, 0)])
    assert "copy" not in exe.plan()


def test_identity():
    check("ROOT r = f32[1000] copy(x)", in_place=[True])


def test_swap():
    check("ROOT r = (f32[1000], f32[1000]) tuple(y, x)", "f32[1000];f32[1000]", (0, 1), pairs=[(0, 0), (1, 1)])


def test_cycle_of_three_and_a_value_twice():
    check("ROOT r = (f32[1000], f32[1000], f32[1000]) tuple(y, z, x)", "f32[1000];f32[1000];f32[1000]", (0, 1, 2))
    check("ROOT r = (f32[1000], f32[1000]) tuple(x, x)", "f32[1000]", (0,))
    check("n = f32[1000] negate(x)\nROOT r = (f32[1000], f32[1000], f32[1000]) tuple(n, x, n)", "f32[1000];f32[1000]", (0, 1))


def test_an_argument_that_is_read_later_is_not_computed_over():
    body = ("p = f32[1000] sort(x), dimensions={0}, to_apply=less\nn = f32[1000] sort(y), dimensions={0}, to_apply=less\n"
            "s = f32[1000] add(x, n)\nROOT r = (f32[1000], f32[1000]) tuple(p, s)")
    less = "less {\na = f32[] parameter(0)\nb = f32[] parameter(1)\nROOT c = pred[] compare(a, b), direction=LT\n}\n"
    exe = xlac.compile(program(body, "f32[1000];f32[1000]").replace("ENTRY", less + "ENTRY"), donate=(0, 1))
    x, y = arrays("f32[1000];f32[1000]")
    want = np.sort(x), x + np.sort(y)
    got = exe(x, y, out=(x, y))
    np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_array_equal(got[1], want[1])
    assert got[0] is x and got[1] is y


def test_another_type_of_the_same_size():
    check("ROOT r = s32[1000] bitcast-convert(x)", "f32[1000]", (0,), pairs=[(0, 0)])
    check("c = s32[1000] bitcast-convert(x)\nROOT r = (s32[1000], f32[1000]) tuple(c, x)", "f32[1000]", (0,), pairs=[(0, 1)])


def test_no_result_of_that_size():
    exe = check("ROOT r = f32[10] slice(x), slice={[0:10]}", "f32[1000]", (0,), pairs=[(0, None)], in_place=[False])
    assert exe.donations[0]["result"] is None


@pytest.mark.parametrize("kind", ["may-alias", "must-alias"])
def test_aliases_of_the_module(kind):
    header = f", input_output_alias={{ {{1}}: (0, {{}}, {kind}) }}"
    exe = check("n = f32[1000] negate(x)\nROOT r = (f32[1000], f32[1000]) tuple(y, n)", "f32[1000];f32[1000]", (), header=header, pairs=[(0, 1)])
    assert exe.donations[0]["must"] == (kind == "must-alias")


def test_update_of_a_slice_touches_the_slice_alone():
    body = ("i = s32[] parameter(1)\nu = f32[3] parameter(2)\nROOT r = f32[1000] dynamic-update-slice(x, u, i)")
    exe = xlac.compile(program(body), donate=(0,))
    x = arrays("f32[1000]")[0]
    u = np.array([1, 2, 3], np.float32)
    want = x.copy()
    want[5:8] = u
    lent = x.copy()
    np.testing.assert_array_equal(exe(x, np.int32(5), u), want)
    np.testing.assert_array_equal(x, lent)
    assert exe(x, np.int32(5), u, out=x) is x
    np.testing.assert_array_equal(x, want)
    assert exe.donations[0]["in_place"]


def test_loop_state():
    body = ("z = s32[] constant(0)\ni = (s32[], f32[1000]) tuple(z, x)\nw0 = (s32[], f32[1000]) while(i), condition=condition, body=body\n"
            "ROOT r = f32[1000] get-tuple-element(w0), index=1")
    more = ("body {\ns = (s32[], f32[1000]) parameter(0)\nj = s32[] get-tuple-element(s), index=0\na = f32[1000] get-tuple-element(s), index=1\n"
            "k = s32[] constant(1)\nn = s32[] add(j, k)\nb = f32[1000] add(a, a)\nROOT r = (s32[], f32[1000]) tuple(n, b)\n}\n"
            "condition {\ns = (s32[], f32[1000]) parameter(0)\nj = s32[] get-tuple-element(s), index=0\nl = s32[] constant(3)\n"
            "ROOT c = pred[] compare(j, l), direction=LT\n}\n")
    exe = xlac.compile(program(body).replace("ENTRY", more + "ENTRY"), donate=(0,))
    x = arrays("f32[1000]")[0]
    want = x * 8
    np.testing.assert_array_equal(exe(x), want)
    assert exe(x, out=x) is x
    np.testing.assert_array_equal(x, want)


def test_the_same_array_lent_and_given_is_not_computed_over():
    exe = xlac.compile(program("n = f32[1000] reverse(y), dimensions={0}\nROOT r = f32[1000] add(x, n)", "f32[1000];f32[1000]"), donate=(0,))
    x = arrays("f32[1000]")[0]
    want = x + x[::-1]
    np.testing.assert_array_equal(exe(x, x, out=x), want)


def test_a_parameter_that_is_not_there():
    with pytest.raises(xlac.Error, match="parameter 3 is to be donated; the program has 1"):
        xlac.compile(program("ROOT r = f32[1000] negate(x)"), donate=(3,))
    with pytest.raises(TypeError):
        xlac.compile(program("ROOT r = f32[1000] negate(x)"), donate=("x",))


def test_tuples_are_donated_by_leaf():
    text = ("HloModule m\nENTRY e {\np = (f32[8], (s32[4], f32[8])) parameter(0)\na = f32[8] get-tuple-element(p), index=0\n"
            "q = (s32[4], f32[8]) get-tuple-element(p), index=1\nb = s32[4] get-tuple-element(q), index=0\nc = f32[8] get-tuple-element(q), index=1\n"
            "s = f32[8] add(a, c)\nn = s32[4] negate(b)\nROOT r = (s32[4], f32[8]) tuple(n, s)\n}\n")
    exe = xlac.compile(text, donate=(0,))
    assert [(d["argument"], d["result"]) for d in exe.donations] == [(0, 1), (1, 0), (2, None)]


SUM = "sum {\na = f32[] parameter(0)\nb = f32[] parameter(1)\nROOT c = f32[] add(a, b)\n}\n"


def test_a_group_of_kernels_does_not_write_over_rows_that_it_reads_later():
    body = ("v = f32[512,256] reverse(x), dimensions={0}\nt = f32[512,256] exponential(v)\nz = f32[] constant(0)\n"
            "s = f32[512] reduce(t, z), dimensions={1}, to_apply=sum\nb = f32[512,256] broadcast(s), dimensions={0}\nROOT r = f32[512,256] divide(t, b)")
    exe = xlac.compile(program(body, "f32[512,256]").replace("ENTRY", SUM + "ENTRY"), donate=(0,))
    exe._check()
    x = np.random.default_rng(1).standard_normal((512, 256)).astype(np.float32)
    want = exe(x)
    np.testing.assert_array_equal(exe(x, out=x), want)


def test_a_group_works_in_place():
    body = ("t = f32[512,256] exponential(x)\nz = f32[] constant(0)\n"
            "s = f32[512] reduce(t, z), dimensions={1}, to_apply=sum\nb = f32[512,256] broadcast(s), dimensions={0}\nROOT r = f32[512,256] divide(t, b)")
    exe = xlac.compile(program(body, "f32[512,256]").replace("ENTRY", SUM + "ENTRY"), donate=(0,))
    x = np.random.default_rng(1).standard_normal((512, 256)).astype(np.float32)
    want = exe(x)
    xlac.reset_stats()
    assert exe(x, out=x) is x and xlac.stats()["bytes_copied_plan"] == 0
    np.testing.assert_array_equal(x, want)


BIG = "f32[100000]"
BRANCHES = f"""update {{
  p = ({BIG}, f32[3], s32[]) parameter(0)
  a = {BIG} get-tuple-element(p), index=0
  u = f32[3] get-tuple-element(p), index=1
  i = s32[] get-tuple-element(p), index=2
  ROOT d = {BIG} dynamic-update-slice(a, u, i)
}}
keep {{
  p = ({BIG}, f32[3], s32[]) parameter(0)
  ROOT a = {BIG} get-tuple-element(p), index=0
}}
double {{
  p = ({BIG}, f32[3], s32[]) parameter(0)
  a = {BIG} get-tuple-element(p), index=0
  ROOT s = {BIG} add(a, a)
}}
"""
ARGUMENTS = "f32[100000];f32[3];s32[];s32[]"
SWITCH = (f"t = ({BIG}, f32[3], s32[]) tuple(x, y, z)\n"
          f"{{root}}c = {BIG} conditional(u, t, t, t), branch_computations={{{{update, keep, double}}}}\n")


def in_place(body, more, args, donate=(0,)):
    """The result with the first argument donated: over it, and nothing of size copied."""
    exe = xlac.compile(program(body, ARGUMENTS).replace("ENTRY", more + "ENTRY"), donate=donate)
    exe._check()
    want = xlac.interpret(xlac.parse(program(body, ARGUMENTS).replace("ENTRY", more + "ENTRY")), *args)
    kept = args[0].copy()
    np.testing.assert_array_equal(exe(*args), want)
    np.testing.assert_array_equal(args[0], kept)
    xlac.reset_stats()
    r = exe(xlac.donate(args[0]), *args[1:])
    np.testing.assert_array_equal(r, want)
    assert r.__array_interface__["data"] == args[0].__array_interface__["data"]
    stats = xlac.stats()
    assert stats["bytes_copied_plan"] == stats["bytes_copied_protection"] == 0, exe.plan()
    return exe


def switch_args(branch):
    return [np.arange(100000, dtype=np.float32), np.array([-1, -2, -3], np.float32), np.int32(77), np.int32(branch)]


@pytest.mark.parametrize("branch", [0, 1, 2])
def test_branches_update_in_place(branch):
    in_place(SWITCH.format(root="ROOT "), BRANCHES, switch_args(branch))


@pytest.mark.parametrize("branch", [0, 1, 2])
def test_branches_inside_loops_and_after_other_steps_update_in_place(branch):
    loop = (f"body {{\ns = (s32[], {BIG}, f32[3], s32[], s32[]) parameter(0)\nj = s32[] get-tuple-element(s), index=0\n"
            f"x = {BIG} get-tuple-element(s), index=1\ny = f32[3] get-tuple-element(s), index=2\nz = s32[] get-tuple-element(s), index=3\n"
            "u = s32[] get-tuple-element(s), index=4\nk = s32[] constant(1)\nn = s32[] add(j, k)\n"
            + SWITCH.format(root="") + f"ROOT r = (s32[], {BIG}, f32[3], s32[], s32[]) tuple(n, c, y, z, u)\n}}\n"
            f"condition {{\ns = (s32[], {BIG}, f32[3], s32[], s32[]) parameter(0)\nj = s32[] get-tuple-element(s), index=0\nl = s32[] constant(3)\n"
            "ROOT q = pred[] compare(j, l), direction=LT\n}\n")
    body = (f"zero = s32[] constant(0)\nnx = {BIG} negate(x)\ni = (s32[], {BIG}, f32[3], s32[], s32[]) tuple(zero, nx, y, z, u)\n"
            f"w = (s32[], {BIG}, f32[3], s32[], s32[]) while(i), condition=condition, body=body\nROOT r = {BIG} get-tuple-element(w), index=1")
    in_place(body, BRANCHES + loop, switch_args(branch))


def test_scatter_and_calls_update_in_place():
    more = "set {\na = f32[] parameter(0)\nb = f32[] parameter(1)\nROOT c = f32[] add(a, b)\n}\n"
    body = ("w = s32[1] reshape(z)\nb = s32[3] broadcast(w), dimensions={0}\no = s32[3] iota(), iota_dimension=0\nn = s32[3] add(b, o)\n" if False else
            "b = s32[3] broadcast(z), dimensions={}\no = s32[3] iota(), iota_dimension=0\nn = s32[3] add(b, o)\n")
    body += (f"s = {BIG} scatter(x, n, y), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, "
             f"index_vector_dim=1, to_apply=set\nROOT r = {BIG} negate(s)")
    in_place(body, more, switch_args(0))


def test_a_branch_that_needs_the_argument_later_copies():
    more = BRANCHES.replace("ROOT s = f32[100000] add(a, a)", "v = f32[100000] reverse(a), dimensions={0}\nROOT s = f32[100000] subtract(v, a)")
    exe = xlac.compile(program(SWITCH.format(root="ROOT "), ARGUMENTS).replace("ENTRY", more + "ENTRY"), donate=(0,))
    exe._check()
    for branch in range(3):
        args = switch_args(branch)
        want = exe(*args)
        np.testing.assert_array_equal(exe(xlac.donate(args[0]), *args[1:]), want)
