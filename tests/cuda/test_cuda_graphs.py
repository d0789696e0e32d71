"""A call of an executable that was called before is one launch of a graph, made again only in what has changed."""
import threading

import numpy as np
import pytest

import xlac
from simulator import xlac_driver
from test_cuda_faults import PROGRAM, outcome

CHAIN = """
HloModule chain, input_output_alias={ {}: (0, {}, may-alias) }
sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[32,16] parameter(0)
  w = f32[16,16] parameter(1)
  none = f32[] constant(0)
  d = f32[32,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  rows = f32[32] reduce(d, none), dimensions={1}, to_apply=sum
  wide = f32[32,16] broadcast(rows), dimensions={0}
  q = f32[32,16] subtract(d, wide)
  s = f32[32,16] sort(q), dimensions={1}, to_apply=less
  ROOT r = f32[32,16] dot(s, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
LESS = """
less { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = pred[] compare(a, b), direction=LT, type=TOTALORDER }
"""
CHAIN = CHAIN.replace("ENTRY", LESS.strip() + "\nENTRY")


def loop(condition="LT", step="add(i, one)", first=0, limit=5, extra=""):
    return f"""
HloModule loop
body {{ s = (s32[], f32[8]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 x = f32[8] get-tuple-element(s), index=1
 one = s32[] constant(1)
 j = s32[] {step}
 k = f32[] convert(i)
 kk = f32[8] broadcast(k), dimensions={{}}
 z = f32[8] add(x, kk)
 y = f32[8] cosine(z)
 ROOT r = (s32[], f32[8]) tuple(j, y) }}
condition {{ s = (s32[], f32[8]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 n = s32[] constant({limit})
 ROOT p = pred[] compare(i, n), direction={condition} }}
ENTRY e {{
  x = f32[8] parameter(0)
  first = s32[] {f"constant({first})" if extra == "" else extra}
  start = (s32[], f32[8]) tuple(first, x)
  ROOT loop = (s32[], f32[8]) while(start), condition=condition, body=body
}}
"""


@pytest.fixture(scope="module")
def cuda():
    return xlac_driver()


@pytest.fixture(autouse=True)
def no_more(cuda):
    yield
    cuda.fail(None)
    reports = cuda.reports()
    cuda.clear()
    assert reports == []


class Counts:
    """Calls of entry points within a block."""

    def __init__(self, cuda, *names):
        self.cuda, self.names = cuda, names

    def __enter__(self):
        self.before = [self.cuda.count(n) for n in self.names]
        return self

    def __exit__(self, *_):
        self.all = [self.cuda.count(n) - b for n, b in zip(self.names, self.before)]


NAMES = ("cuLaunchKernel", "cuGraphLaunch", "cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams_v2")


def arguments(seed):
    r = np.random.default_rng(seed)
    return r.standard_normal((32, 16)).astype(np.float32), (r.standard_normal((16, 16)) / 16).astype(np.float32)


def test_later_calls_are_one_launch(cuda):
    exe = xlac.compile(CHAIN, device="cuda", results="buffer")
    reference = xlac.compile(CHAIN)
    with Counts(cuda, *NAMES) as first:
        exe(*arguments(0))
    assert first.all[0] >= 4 and first.all[1:] == [0, 0, 0]  # a program that is called once needs none
    x, w = (xlac.asarray(a, device="cuda:0") for a in arguments(1))
    want = np.asarray(reference(*arguments(1)))
    for _ in range(3):
        with Counts(cuda, *NAMES) as calls:
            x = exe(xlac.donate(x), w)
        np.testing.assert_allclose(np.asarray(x), want, rtol=2e-4, atol=2e-4)
        want = np.asarray(reference(want, arguments(1)[1]))
        assert calls.all[0] == 0 and calls.all[1] == 1
    assert calls.all[2:] == [0, 0]  # the same addresses: nothing was told anew


def test_new_addresses_change_the_nodes_that_have_them(cuda):
    exe = xlac.compile(CHAIN, device="cuda", results="buffer")
    reference = xlac.compile(CHAIN)
    w = xlac.asarray(arguments(0)[1], device="cuda:0")
    xs = [xlac.asarray(arguments(i)[0], device="cuda:0") for i in range(9)]
    kept = []
    for i, x in enumerate(xs):
        with Counts(cuda, *NAMES) as calls:
            y = exe(x, w)
        np.testing.assert_allclose(np.asarray(y), np.asarray(reference(arguments(i)[0], arguments(0)[1])), rtol=2e-4, atol=2e-4)
        kept.append(y)  # so that each result lies elsewhere
    assert calls.all[:3] == [0, 1, 0]
    assert 1 <= calls.all[3] <= 3  # the readers of x and the writer of the result, of five and more


def test_loops_that_count_are_part_of_the_graph(cuda):
    doubles = loop("NE", "multiply(i, one)", 1, 64).replace("one = s32[] constant(1)", "one = s32[] constant(2)")
    for program in (loop(), loop("GT", "subtract(i, one)", 7, 2), doubles, loop("LT", limit=0)):
        exe, reference = xlac.compile(program, device="cuda"), xlac.compile(program)
        x = np.linspace(-1, 1, 8, dtype=np.float32)
        for _ in range(3):
            with Counts(cuda, *NAMES, "cuMemcpyDtoHAsync_v2") as calls:
                got = exe(x)
            want = reference(x)
            assert int(got[0]) == int(want[0])
            np.testing.assert_array_equal(got[1], want[1])
            assert calls.all[4] == 2  # the results alone: no condition was read
        assert calls.all[:2] == [0, 1] or "there is too little" in exe.explain("fusion")


def test_other_loops_go_on_as_the_condition_says(cuda):
    program = loop().replace("j = s32[] add(i, one)", "two = s32[] add(i, one)\n half = s32[] divide(i, one)\n j = s32[] maximum(two, half)")
    exe = xlac.compile(program, device="cuda")
    assert "the GPU itself decides about loops and branches" in exe.explain("fusion")
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    for _ in range(3):
        got, want = exe(x), xlac.compile(program)(x)
        assert int(got[0]) == int(want[0])
        np.testing.assert_array_equal(got[1], want[1])


def test_many_threads_share_an_executable(cuda):
    exe, reference = xlac.compile(CHAIN, device="cuda"), xlac.compile(CHAIN)
    wrong = []

    def work(seed):
        for i in range(6):
            a = arguments(seed * 100 + i)
            if not np.allclose(exe(*a), reference(*a), rtol=2e-4, atol=2e-4):
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(t,)) for t in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_a_driver_that_refuses_graphs(cuda):
    exe = xlac.compile(CHAIN, device="cuda")
    a = arguments(3)
    first = exe(*a)
    cuda.fail("cuGraphInstantiateWithFlags:1:801")
    np.testing.assert_array_equal(exe(*a), first)
    cuda.fail(None)
    with Counts(cuda, *NAMES) as calls:
        np.testing.assert_array_equal(exe(*a), first)
    assert calls.all[1] == 0 and calls.all[0] >= 4


def test_each_call_of_a_graph_fails_once(cuda):
    """The call goes step by step then, with the right result; a launch that fails is an error, and the next call is as if nothing had been."""
    x, other = np.linspace(0.5, 1.5, 16, dtype=np.float32), np.linspace(1.5, 0.5, 16, dtype=np.float32)

    def calls():
        exe = xlac.compile(PROGRAM, device="cuda")
        for i in range(7):  # graphs are made, then changed
            outcome(exe, other if i % 2 else x)

    calls()
    before = cuda.alive()
    for name in ("cuGraphCreate", "cuGraphAddKernelNode_v2", "cuGraphAddMemcpyNode", "cuGraphInstantiateWithFlags",
                 "cuGraphExecKernelNodeSetParams_v2", "cuGraphExecMemcpyNodeSetParams", "cuGraphLaunch"):
        for n in (1, 2):
            cuda.fail(f"{name}:{n}")
            if name == "cuGraphLaunch":
                with pytest.raises(xlac.Error, match="launching a graph"):
                    calls()
            else:
                calls()
            assert cuda.calls()[1] == name, n
            assert cuda.reports() == [] and cuda.alive() == before, (name, n)
    cuda.fail(None)
    calls()


ASKED = ["cuCtxPushCurrent_v2", "cuGraphLaunch", "cuPointerGetAttribute", "cuStreamSynchronize", "cuMemAllocFromPoolAsync", "cuMemFreeAsync",
         "cuGraphExecKernelNodeSetParams_v2", "cuLaunchKernel", "cuMemcpyDtoDAsync_v2"]


def test_what_a_call_whose_arrays_are_on_the_gpu_asks_of_the_driver(cuda):
    """A launch, and where each array lies; its end is asked for until it is there, and results have the memory of those before."""
    exe = xlac.compile(CHAIN, device="cuda", results="buffer")
    args = [xlac.asarray(a, device="cuda:0") for a in arguments(0)]
    got = exe(*args)
    want = np.asarray(got)
    for _ in range(4):
        got = exe(*args)
    before = [cuda.count(name) for name in ASKED]
    got = exe(*args)
    assert [cuda.count(name) - n for name, n in zip(ASKED, before)] == [1, 1, len(args) + 1, 0, 0, 0, 0, 0, 0]
    assert np.asarray(got).tobytes() == want.tobytes()


def dots(first, operand, n=3):
    """Kernels of products, one behind the other, and the name of the last."""
    names = [operand, *(f"d{first + i}" for i in range(n))]
    return "".join(f" {b} = f32[8,8] dot({a}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n" for a, b in zip(names, names[1:])), names[-1]


def host_between(trips=None):
    """Products, a call of Python's, and products; or these in a loop."""
    before, last = dots(0, "x")
    after, end = dots(3, "h")
    body = f'{before} h = f32[8,8] custom-call({last}), custom_call_target="half"\n{after}'
    if trips is None:
        return f"HloModule m\nENTRY e {{ x = f32[8,8] parameter(0)\n w = f32[8,8] parameter(1)\n{body} ROOT r = f32[8,8] negate({end}) }}"
    return f"""HloModule m
body {{ s = (s32[], f32[8,8], f32[8,8]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 x = f32[8,8] get-tuple-element(s), index=1
 w = f32[8,8] get-tuple-element(s), index=2
 one = s32[] constant(1)
 j = s32[] add(i, one)
{body if trips < 100 else dots(0, "x", 9)[0]} ROOT t = (s32[], f32[8,8], f32[8,8]) tuple(j, {end if trips < 100 else "d8"}, w) }}
condition {{ s = (s32[], f32[8,8], f32[8,8]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 n = s32[] constant({trips})
 ROOT p = pred[] compare(i, n), direction=LT }}
ENTRY e {{ x = f32[8,8] parameter(0)
 w = f32[8,8] parameter(1)
 zero = s32[] constant(0)
 start = (s32[], f32[8,8], f32[8,8]) tuple(zero, x, w)
 loop = (s32[], f32[8,8], f32[8,8]) while(start), condition=condition, body=body
 ROOT r = f32[8,8] get-tuple-element(loop), index=1 }}"""


@pytest.fixture
def half():
    xlac.register_custom_call("half", lambda v: v / 2)


TURN = np.roll(np.eye(8, dtype=np.float32), 1, 0)
SQUARE = np.arange(64, dtype=np.float32).reshape(8, 8)


def test_what_is_between_two_steps_of_the_host_is_a_graph(cuda, half):
    exe, want = xlac.compile(host_between(), device="cuda"), np.asarray(xlac.interpret(host_between(), SQUARE, TURN))
    assert "is computed on the host; what is in between is" in exe.explain("fusion")
    for i in range(4):
        with Counts(cuda, *NAMES) as calls:
            np.testing.assert_array_equal(exe(SQUARE, TURN), want)
        assert calls.all[:2] == ([7, 0] if i == 0 else [0, 2]), i


def test_the_same_in_a_loop_that_has_steps_of_the_host(cuda, half):
    """From some trips on; the loop's two states have a graph each."""
    exe, want = xlac.compile(host_between(20), device="cuda"), np.asarray(xlac.interpret(host_between(20), SQUARE, TURN))
    for i in range(2):
        with Counts(cuda, *NAMES) as calls:
            np.testing.assert_array_equal(exe(SQUARE, TURN), want)
        assert calls.all[1] == (2 * (20 - 9) if i == 0 else 2 * 20)


def test_a_loop_of_too_many_trips_for_a_graph_is_a_graph_a_trip():
    assert "there is too much in it; what is in between is" in xlac.compile(host_between(2000), device="cuda").explain("fusion")


def test_a_stretch_that_the_driver_refuses_goes_step_by_step_and_the_others_do_not(cuda, half):
    exe, want = xlac.compile(host_between(), device="cuda"), np.asarray(xlac.interpret(host_between(), SQUARE, TURN))
    exe(SQUARE, TURN)
    cuda.fail("cuGraphInstantiateWithFlags:1:801")
    np.testing.assert_array_equal(exe(SQUARE, TURN), want)
    cuda.fail(None)
    with Counts(cuda, *NAMES) as calls:
        np.testing.assert_array_equal(exe(SQUARE, TURN), want)
    assert calls.all[:2] == [3, 1]


def test_an_exception_between_two_stretches_leaves_the_next_call_right(cuda):
    def fails(v):
        if v[0, 0] < 0:
            raise ValueError("not this one")
        return v / 2

    xlac.register_custom_call("half", fails)
    exe = xlac.compile(host_between(), device="cuda")
    for x in (SQUARE, SQUARE, -1 - SQUARE, SQUARE):
        if x[0, 0] < 0:
            with pytest.raises(Exception, match="not this one"):
                exe(x, TURN)
        else:
            np.testing.assert_array_equal(exe(x, TURN), np.asarray(xlac.interpret(host_between(), x, TURN)))
