"""Several participants in lock step: collectives in every group mode, messages, queues, deadlocks."""
import threading

import numpy as np
import pytest

import xlac

ADD = "add { a = s64[] parameter(0) b = s64[] parameter(1) ROOT r = s64[] add(a, b) }\n"


def module(body, header=""):
    return xlac.parse("HloModule m" + header + "\n\n" + body)


def one(op, operand="s64[2,4]", result=None, before="", header=", replica_count=2"):
    return module(f"{before}ENTRY e {{ x = {operand} parameter(0) ROOT r = {result or operand} {op} }}", header)


X = np.arange(1, 9).reshape(2, 4)
Y = X + 8


def check(results, *expected):
    assert len(results) == len(expected)
    for got, want in zip(results, expected):
        np.testing.assert_array_equal(got, want)


def test_all_reduce():
    m = one("all-reduce(x), replica_groups={{0,1}}, to_apply=add", before=ADD)
    check(xlac.run_parallel(m, [[X], [Y]]), X + Y, X + Y)


def test_ragged_groups():
    m = one("all-reduce(x), replica_groups={{0,1},{2}}, to_apply=add", before=ADD, header=", replica_count=3")
    check(xlac.run_parallel(m, [[X], [Y], [X]]), X + Y, X + Y, X)


def test_iota_groups():
    m = one("all-reduce(x), replica_groups=[2,2]<=[2,2]T(1,0), to_apply=add", before=ADD, header=", replica_count=4")
    check(xlac.run_parallel(m, [[X], [2 * X], [4 * X], [8 * X]]), 5 * X, 10 * X, 5 * X, 10 * X)


def test_all_reduce_of_all_partitions_and_flat_ids():
    both = one("all-reduce(x), channel_id=1, replica_groups={{0,1}}, to_apply=add", before=ADD,
               header=", replica_count=2, num_partitions=2")
    args = [[X], [2 * X], [4 * X], [8 * X]]
    check(xlac.run_parallel(both, args, partitions=2), 15 * X, 15 * X, 15 * X, 15 * X)
    flat = one("all-reduce(x), channel_id=1, replica_groups={{0,3},{1,2}}, use_global_device_ids=true, to_apply=add",
               before=ADD, header=", replica_count=2, num_partitions=2")
    check(xlac.run_parallel(flat, args, partitions=2), 9 * X, 6 * X, 6 * X, 9 * X)


def test_all_gather_and_reduce_scatter():
    m = one("all-gather(x), replica_groups={{1,0}}, dimensions={0}", result="s64[4,4]")
    want = np.concatenate([Y, X])
    check(xlac.run_parallel(m, [[X], [Y]]), want, want)
    m = one("reduce-scatter(x), replica_groups={{0,1}}, dimensions={1}, to_apply=add", result="s64[2,2]", before=ADD)
    check(xlac.run_parallel(m, [[X], [Y]]), (X + Y)[:, :2], (X + Y)[:, 2:])


def test_all_to_all():
    m = one("all-to-all(x), replica_groups={{0,1}}, dimensions={1}")
    check(xlac.run_parallel(m, [[X], [Y]]), np.concatenate([X[:, :2], Y[:, :2]], 1),
          np.concatenate([X[:, 2:], Y[:, 2:]], 1))
    m = module("ENTRY e { x = s64[2] parameter(0) y = s64[2] parameter(1) "
               "ROOT r = (s64[2], s64[2]) all-to-all(x, y), replica_groups={{0,1}} }", ", replica_count=2")
    a, b, c, d = (np.full(2, i) for i in range(4))
    (r0, r1), (r2, r3) = xlac.run_parallel(m, [[a, b], [c, d]])
    check([r0, r1, r2, r3], a, c, b, d)


def test_broadcast_and_permute():
    m = one("collective-broadcast(x), replica_groups={{2,1}}", header=", replica_count=3")
    check(xlac.run_parallel(m, [[X], [Y], [X + Y]]), 0 * X, X + Y, X + Y)
    m = one("collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2}}", header=", num_partitions=3")
    check(xlac.run_parallel(m, [[X], [Y], [X + Y]], replicas=1, partitions=3), 0 * X, X, Y)


def test_ids():
    m = module("ENTRY e { p = u32[] partition-id() r = u32[] replica-id() ROOT t = (u32[], u32[]) tuple(r, p) }")
    results = xlac.run_parallel(m, [()] * 6, replicas=2, partitions=3)
    assert [tuple(map(int, r)) for r in results] == [(i, j) for i in range(2) for j in range(3)]


SEND = """
sender { x = s64[2] parameter(0) t = token[] after-all()
  s = (s64[2], u32[], token[]) send(x, t), channel_id=7 ROOT d = token[] send-done(s), channel_id=7 }
receiver { t = token[] after-all()
  s = (s64[2], u32[], token[]) recv(t), channel_id=7 ROOT d = (s64[2], token[]) recv-done(s), channel_id=7 }
ENTRY e { ROOT z = s64[] constant(0) }
"""


def test_send_and_receive():
    m = module(SEND)
    results = xlac.run_parallel(m, [[], [np.array([4, 5])]], programs=[["receiver"], ["sender"]])
    np.testing.assert_array_equal(results[0][0], [4, 5])
    assert results[1] is None


def test_a_message_that_nobody_sends():
    with pytest.raises(xlac.Error, match=r"\(replica 0, partition 0\) waits in recv-done d.* for a message on channel 7"):
        xlac.run_parallel(module(SEND), [[], []], programs=["receiver", "e"])


def test_infeed_and_outfeed():
    m = module("ENTRY e { t = token[] after-all() i = (s64[2], token[]) infeed(t) x = s64[2] get-tuple-element(i), index=0 "
               "u = token[] get-tuple-element(i), index=1 j = (s64[2], token[]) infeed(u) "
               "y = s64[2] get-tuple-element(j), index=0 v = token[] get-tuple-element(j), index=1 "
               "s = s64[2] subtract(y, x) ROOT o = token[] outfeed(s, v), outfeed_shape=s64[2]{0} }")
    out = []
    xlac.run_parallel(m, [()], infeed=[(np.array([1, 2]), np.array([10, 20]))], outfeed=out)
    assert len(out) == 1 and len(out[0]) == 1
    np.testing.assert_array_equal(out[0][0], [9, 18])
    with pytest.raises(xlac.Error, match="no value queued"):
        xlac.run_parallel(m, [()])


def test_deadlock_says_who_waits():
    m = module(ADD + "first { x = s64[] parameter(0) ROOT r = s64[] all-reduce(x), replica_groups={{0,1}}, to_apply=add }\n"
               "ENTRY e { ROOT x = s64[] parameter(0) }", ", replica_count=2")
    with pytest.raises(xlac.Error, match=r"\(replica 0, partition 0\) waits in all-reduce r\.1 for \(replica 1, partition 0\), "
                                         "which has finished"):
        xlac.run_parallel(m, [[1], [2]], programs=["first", "e"])


def test_a_failure_stops_all():
    m = module(ADD + "first { x = s64[] parameter(0) ROOT r = s64[] all-reduce(x), replica_groups={{0,1}}, to_apply=add }\n"
               "ENTRY e { x = s64[] parameter(0) ROOT c = s64[] custom-call(x), custom_call_target=\"nobody\" }",
               ", replica_count=2")
    with pytest.raises(xlac.Error, match="in replica 1, partition 0: .*nobody"):
        xlac.run_parallel(m, [[1], [2]], programs=["first", None])


def test_in_loops_many_times():
    m = module(ADD + """
cond { p = (s64[], s64[]) parameter(0) i = s64[] get-tuple-element(p), index=0 n = s64[] constant(200)
  ROOT c = pred[] compare(i, n), direction=LT }
body { p = (s64[], s64[]) parameter(0) i = s64[] get-tuple-element(p), index=0 x = s64[] get-tuple-element(p), index=1
  one = s64[] constant(1) j = s64[] add(i, one)
  y = s64[] all-reduce(x), replica_groups={{0,1,2,3}}, to_apply=add
  three = s64[] constant(3) z = s64[] divide(y, three) ROOT r = (s64[], s64[]) tuple(j, z) }
ENTRY e { x = s64[] parameter(0) o = s64[] constant(0) t = (s64[], s64[]) tuple(o, x)
  w = (s64[], s64[]) while(t), condition=cond, body=body ROOT r = s64[] get-tuple-element(w), index=1 }""",
               ", replica_count=4")
    results = xlac.run_parallel(m, [[i] for i in (1, 2, 3, 4)])
    assert len({int(r) for r in results}) == 1


def test_bad_grids():
    m = one("all-reduce(x), replica_groups={}, to_apply=add", before=ADD)
    with pytest.raises(ValueError):
        xlac.run_parallel(m, [[X]], replicas=2)
    with pytest.raises(xlac.Error, match="not a computation"):
        xlac.run_parallel(m, [[X]], programs=["nothing"])
    with pytest.raises(xlac.Error, match="expected 1 argument"):
        xlac.run_parallel(m, [[X, X]])


def test_independent_runs_at_once():
    m = one("all-reduce(x), replica_groups={{0,1}}, to_apply=add", before=ADD)
    found = []

    def run():
        for _ in range(20):
            found.append(xlac.run_parallel(m, [[X], [Y]])[1])

    threads = [threading.Thread(target=run) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 60
    for r in found:
        np.testing.assert_array_equal(r, X + Y)


STABLEHLO = """
func.func @f(%x: tensor<2x2xi64>) -> tensor<2x8xi64> {
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
    channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>} : (tensor<2x2xi64>) -> tensor<2x8xi64>
  return %0 : tensor<2x8xi64>
}
func.func @main() { return }
"""


def test_stablehlo_counts_partition_by_partition():
    args = [np.full((2, 2), i) for i in range(4)]
    results = xlac.run_parallel(xlac.parse(STABLEHLO), [[a] for a in args], partitions=2, programs=[["f", "f"]] * 2)
    want = np.concatenate([args[i] for i in (0, 2, 1, 3)], 1)
    check(results, want, want, want, want)
