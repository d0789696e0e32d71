"""Programs on several processes of this machine, without MPI: the values of one process, bit by bit, and an end for everything that goes wrong."""
# ruff: noqa: E501
import pathlib
import signal
import time

import collectives_of_ranks
import numpy as np
import processes
import pytest

import xlac

PROGRAM = """
TEXT = '''sdy.mesh @mesh = <["a"=4]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> (tensor<f32>, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.add %x, %x : tensor<8xf32>
  return %1, %2 : tensor<f32>, tensor<8xf32> }'''
def compiled(text=TEXT, **options):
    return xlac.compile(xlac.parse(text, format="mlir"), devices=4, **options)
x = np.arange(8, dtype=np.float32)
"""
LOOP = """
LOOP = '''sdy.mesh @mesh = <["a"=4]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %c, %v = %x) : tensor<i32>, tensor<8xf32>
    cond { %n = stablehlo.constant dense<2000000000> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do { %o = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %o : tensor<i32>
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.reduce(%v init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      %b = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<8xf32>
      %w = stablehlo.subtract %v, %b : tensor<8xf32>
      stablehlo.return %j, %w : tensor<i32>, tensor<8xf32>
    }
  return %r#1 : tensor<8xf32> }'''
"""
TELL = """
def tell(f, *args, **named):
    began = time.monotonic()
    try:
        f(*args, **named)
        print("no error")
    except BaseException as why:
        print(type(why).__name__, str(why).replace(chr(10), " "), file=sys.stdout, flush=True)
    assert time.monotonic() - began < 15, "late"
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_every_collective_has_the_bits_of_one_process(ranks):
    want = collectives_of_ranks.digests()
    said = processes.run(ranks, "import collectives_of_ranks\ncollectives_of_ranks.main()")
    assert dict(line.split() for out in said for line in out.splitlines()) == want


def test_on_the_interpreter_too():
    names = ["sum", "each", "ragged", "permute"]
    want = collectives_of_ranks.digests(names, device="interp")
    said = processes.run(2, f"import collectives_of_ranks as c\nfor at in c.digests({names}, device='interp').items(): print(*at)")
    assert dict(line.split() for out in said for line in out.splitlines()) == want


def test_whole_arrays_are_the_same_on_all_ranks_and_shards_are_each_ones():
    said = processes.run(2, PROGRAM + """
for _ in range(3):
    total, twice = compiled()(x)
    assert total == 28 and (twice == 2 * x).all()
total, twice = xlac.load(compiled().serialize())(x)
assert total == 28 and (twice == 2 * x).all()
d = xlac.distributed
assert d.size() == 2 and d.is_initialized() and f"rank {rank} (process {os.getpid()} on " in d.names()[rank]
exe = compiled(results="sharded", donate=0)
total, twice = exe(x)
assert float(total.numpy()) == 28
assert [s.device for s in twice.shards] == [2 * rank, 2 * rank + 1]
assert twice.shards[0].data.numpy().tolist() == (2 * x[4 * rank:4 * rank + 2]).tolist()
try:
    twice.numpy()
    raise SystemExit("others' shards are not here")
except xlac.ArgumentError as why:
    assert "2 of the array's 4 shards are on other processes" in str(why) and "gather" in str(why)
assert (d.gather(twice) == 2 * x).all()
_, four = exe(xlac.donate(twice))
assert (d.gather(four) == 4 * x).all() and twice.is_deleted
mesh = xlac.sharding.Mesh({"a": 4})
_, own = exe(xlac.ShardedBuffer.of(x, xlac.sharding.Sharding(mesh, ["a"])))
assert (d.gather(own) == 2 * x).all()
assert d.gather(b"ab" * rank) == [b"", b"ab"] and d.gather({"rank": rank}) == [{"rank": 0}, {"rank": 1}]
d.barrier()
print("well")
""")
    assert said == ["well\n"] * 2


def test_a_small_gpt_on_four_processes_learns_as_on_one_device():
    import gpt

    one, _ = gpt.train(1, 4)
    said = processes.run(4, "import gpt\nprint(*gpt.train(8, 4)[0])")
    assert len(set(said)) == 1
    np.testing.assert_allclose([float(v) for v in said[0].split()], one, rtol=1e-4)


def test_the_page_of_the_documentation():
    """docs/distributed.md's example, as it stands there but for the ranks' way to one another."""
    page = (pathlib.Path(__file__).parents[2] / "docs/distributed.md").read_text()
    example = page.split("```python\n")[1].split("```")[0]
    said = processes.run(2, example, begin="")
    assert [out.splitlines()[0] for out in said] == ["rank 0 of 2 has devices [0, 1, 2, 3]", "rank 1 of 2 has devices [4, 5, 6, 7]"]
    assert len({out.splitlines()[1] for out in said}) == 1


# --- what goes wrong ---

def ends(ranks, script, seconds=40, **options):
    return processes.finish(processes.start(ranks, TELL + script, **options), seconds)


def test_a_rank_that_is_killed_ends_the_others_with_its_name():
    started = processes.start(4, PROGRAM + LOOP + TELL + "exe = compiled(LOOP)\nprint('begins', flush=True)\ntell(exe, x)\ntell(exe, x)")
    for process in started:
        assert process.stdout.readline() == "begins\n"
    time.sleep(0.5)
    started[2].kill()
    said = processes.finish(started)
    assert said[2][0] == -signal.SIGKILL
    for rank in (0, 1, 3):
        first, second = said[rank][1].splitlines()
        assert f"rank 2 (process {started[2].pid} on " in first and f"rank 2 (process {started[2].pid} on " in second and "has died" in second


@pytest.mark.parametrize("kind", ["sum", "large", "scatter", "gather", "exchange", "each", "permute", "broadcast", "ragged"])
def test_a_rank_that_is_killed_while_others_wait_in_a_collective(kind):
    """Before it each device calls a function of Python's, which ends one's process. Permutations are waited for by who gets something alone."""
    dead = 0 if kind == "permute" else 1
    said = ends(2, f"""
import collectives_of_ranks as c, signal
def ends(v):
    if np.isclose(v[0, 0], {1.7 + 2 * dead}): os.kill(os.getpid(), signal.SIGKILL)
    return v
xlac.register_custom_call("ends", ends)
text = c.program(["{kind}"]).replace("x = f32[6,8] multiply(v, gx)", "x0 = f32[6,8] multiply(v, gx)\\n x = f32[6,8] custom-call(x0), custom_call_target=\\"ends\\"")
text = text.replace("w = f32[300,8001] multiply(u, gw)", "w0 = f32[300,8001] multiply(u, gw)\\n w1 = f32[6,8] slice(w0), slice={{[0:6], [0:8]}}\\n"
    " w2 = f32[6,8] subtract(x, w1)\\n w3 = f32[] constant(0)\\n w4 = f32[300,8001] pad(w2, w3), padding=0_294x0_7993\\n w = f32[300,8001] add(w0, w4)")
v, u = np.ones((6, 8), np.float32), np.ones((300, 8001), np.float32)
exe = xlac.compile(xlac.parse(text), devices=4, results="sharded")
tell(exe, v, u)
tell(exe, v, u)
""")
    assert said[dead][0] == -signal.SIGKILL
    lines = said[1 - dead][1].splitlines()
    assert len(lines) == 2 and all(f"rank {dead} (process" in line and " on " in line and "has died" in line for line in lines), said


def test_out_of_memory_on_one_rank_ends_the_call_on_all():
    said = ends(2, PROGRAM + """
import resource
n = 1 << 25
exe = compiled(TEXT.replace("8xf32", f"{n}xf32"), results="sharded")
big = np.zeros(n, np.float32)
usual = resource.getrlimit(resource.RLIMIT_AS)
if rank: resource.setrlimit(resource.RLIMIT_AS, (int(open("/proc/self/statm").read().split()[0]) * 4096 + (48 << 20), usual[1]))
tell(exe, big)
resource.setrlimit(resource.RLIMIT_AS, usual)
assert compiled()(x)[0] == 28
""", seconds=60)
    assert all(code == 0 for code, _, _ in said), said
    assert "memory" in said[1][1] and "rank 1 (process" in said[0][1] and "memory" in said[0][1], said


def test_a_call_that_one_rank_can_not_make_fails_on_all():
    said = ends(2, PROGRAM + """
exe, shards = compiled(), compiled(results="sharded")
for f in exe, shards:
    tell(f, x[:3] if rank else x)
    f(x)
    tell(f, *([x, x] if rank else [x]))
assert exe(x)[0] == 28
""")
    assert all(code == 0 for code, _, _ in said), said
    for one, other in zip(said[1][1].splitlines(), said[0][1].splitlines(), strict=True):
        assert one.startswith("ArgumentError") and "rank 1 (process" in other and one.split("Error ")[1][:30] in other, said


def test_devices_and_meshes_that_do_not_fit_are_refused_on_every_rank():
    said = ends(2, PROGRAM + """
tell(xlac.compile, xlac.parse(TEXT, format="mlir"), devices=6)
tell(xlac.compile, xlac.parse(TEXT, format="mlir"), devices=1 << 20)
mesh = xlac.sharding.Mesh({"a": 2})
tell(compiled(), xlac.ShardedBuffer.of(x, xlac.sharding.Sharding(mesh, ["a"])))
assert compiled()(x)[0] == 28
""")
    assert all(code == 0 for code, _, _ in said), said
    assert said[0][1].splitlines() == said[1][1].splitlines() and "no error" not in said[0][1] and len(said[0][1].splitlines()) == 3, said


def test_a_rank_that_raises_ends_the_others_with_what_it_says():
    said = ends(2, PROGRAM + "exe = compiled()\nexe(x)\nif rank == 1: raise ValueError('the data is gone')\ntell(exe, x)")
    assert said[1][0] == 1 and "the data is gone" in said[1][2]
    assert "rank 1 (process" in said[0][1] and "has ended: ValueError: the data is gone" in said[0][1]


def test_an_exception_in_one_device_ends_all_ranks():
    said = ends(2, PROGRAM + """
def fails(v):
    if v[0] == 4:
        raise ValueError("not this one")
    return v
xlac.register_custom_call("fails", fails)
call = TEXT.replace("%1 =", "%y = stablehlo.custom_call @fails(%x) {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}, custom>} : (tensor<8xf32>) -> tensor<8xf32>\\n %1 =").replace("reduce(%x", "reduce(%y")
exe = compiled(call)
tell(exe, x)
tell(exe, x)
xlac.register_custom_call("fails", lambda v: v)
assert exe(x)[0] == 28
""")
    assert all(code == 0 for code, _, _ in said), said
    assert all("not this one" in line for line in said[1][1].splitlines())
    assert [line.count("rank 1 (process") for line in said[0][1].splitlines()] == [1, 1]
    assert all("): device 2: " in line and "not this one" in line for line in said[0][1].splitlines()), said


def test_what_was_compiled_for_one_of_several_processes_joins_them_before_it_is_called():
    module = xlac.parse('sdy.mesh @mesh = <["a"=4]>\nfunc.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) '
                        '-> tensor<8xf32> {\n %y = stablehlo.add %x, %x : tensor<8xf32>\n return %y : tensor<8xf32> }', format="mlir")
    exe = xlac._core.compile(module, devices=4, process=1, processes=2)
    with pytest.raises(xlac.Error, match="the program has 2 of 4 devices in this process, and no network"):
        exe(np.ones(8, np.float32))


def test_programs_that_differ_are_found_before_they_run():
    said = ends(2, PROGRAM + """
tell(compiled(TEXT.replace("8xf32", "8xf32" if rank else "16xf32")), x if rank else np.zeros(16, np.float32))
tell(compiled(fuse=rank == 0), x)
f, g = compiled(), compiled(TEXT.replace("dense<0.0>", "dense<1.0>"))
f(x), g(x)
tell(f if rank else g, x)
assert f(x)[0] == 28
""")
    assert all(code == 0 for code, _, _ in said), said
    for rank, other in ((0, 1), (1, 0)):
        lines = said[rank][1].splitlines()
        assert len(lines) == 3 and all(f"rank {other} (process" in line and "runs" in line for line in lines), said


def test_seeds_that_differ():
    said = ends(2, PROGRAM + "exe = compiled()\ntell(exe, x, seed=rank)")
    assert all("seed 0" in out and "seed 1" in out for _, out, _ in said), said


def test_ctrl_c_on_one_rank_ends_all():
    started = processes.start(2, PROGRAM + LOOP + TELL + "exe = compiled(LOOP)\nprint('begins', flush=True)\ntell(exe, x)")
    for process in started:
        assert process.stdout.readline() == "begins\n"
    time.sleep(0.5)
    started[0].send_signal(signal.SIGINT)
    said = processes.finish(started)
    assert said[0][1].startswith("KeyboardInterrupt")
    assert "rank 0 (process" in said[1][1] and "was interrupted" in said[1][1]


def test_calls_from_two_threads():
    said = ends(2, PROGRAM + LOOP + """
import threading
exe = compiled(LOOP)
threads = [threading.Thread(target=tell, args=(exe, x)) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
""")
    assert all(code == 0 for code, _, _ in said), said
    assert "another call is under way" in said[0][1] + said[1][1]


def test_a_rank_that_goes_on_without_a_collective():
    said = ends(2, """
exe = xlac.compile(xlac.parse('''func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %id = stablehlo.partition_id : tensor<ui32>
  %z = stablehlo.constant dense<0> : tensor<ui32>
  %p = stablehlo.compare EQ, %id, %z : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
  %r = "stablehlo.if"(%p) ({
    %s = "stablehlo.all_reduce"(%x) ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32> }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids} : (tensor<2xf32>) -> tensor<2xf32>
    stablehlo.return %s : tensor<2xf32>
  }, { stablehlo.return %x : tensor<2xf32> }) : (tensor<i1>) -> tensor<2xf32>
  return %r : tensor<2xf32> }''', format="mlir"), devices=2)
tell(exe, np.ones(2, np.float32))
if rank: tell(exe, np.ones(2, np.float32))
""")
    assert "has finished call 1 without coming to" in said[0][1] and "rank 1 (process" in said[0][1], said


def test_a_rank_that_is_missing_at_init():
    said = processes.finish(processes.start([0, 1, 3], "", among=4, XLAC_TEST_TIMEOUT="2"))
    assert all(code == 1 and "rank 2 is missing: of 4 processes 3 have called xlac.distributed.init within 2 s" in err for code, _, err in said), said
    said = processes.finish(processes.start([1], "", among=2, XLAC_TEST_TIMEOUT="1"))
    assert "rank 0 is missing: nobody has listened on 127.0.0.1:" in said[0][2]


def test_ranks_that_disagree_about_who_they_are():
    said = processes.finish(processes.start([0, 1, 1], "", among=3, XLAC_TEST_TIMEOUT="5"))
    assert all("says that it is rank 1, which is process" in err for _, _, err in said if "rank 0 has ended" not in err), said
    assert "says that it is rank 1" in said[0][2]


@pytest.mark.parametrize("env, why", [({"XLAC_RANK": "2"}, "rank 2 of 2"), ({"XLAC_RANK": "x"}, "must be a number"), ({"XLAC_COORDINATOR": "here"}, "host:port"),
                                      ({"XLAC_COORDINATOR": ""}, "nothing says which processes there are"), ({"XLAC_PROCESSES": "0"}, "rank 0 of 0")])
def test_what_init_refuses(env, why):
    code, _, err = processes.finish(processes.start([0], "", among=2, **env))[0]
    assert code == 1 and why in err


def test_devices_that_ranks_do_not_share_evenly():
    said = ends(3, PROGRAM + "tell(compiled)")
    assert all("4 devices can't be shared evenly by 3 processes" in out for _, out, _ in said), said


def test_a_forked_child_and_a_rank_that_has_left():
    said = ends(2, PROGRAM + """
exe = compiled()
exe(x)
if (child := os.fork()) == 0:
    tell(exe, x)
    os._exit(0)
os.waitpid(child, 0)
assert exe(x)[0] == 28
xlac.distributed.barrier()
xlac.distributed.close()
tell(exe, x)
tell(xlac.distributed.init)
""")
    assert all(code == 0 for code, _, _ in said), said
    for _, out, _ in said:
        lines = out.splitlines()
        assert "forked" in lines[0] and "left the other ranks" in lines[1], said


def test_without_init_nothing_changes():
    assert xlac.distributed.size() == 1 and xlac.distributed.rank() == 0 and xlac.distributed.gather([1]) == [[1]] and not xlac.distributed.is_initialized()
    xlac.distributed.barrier()
