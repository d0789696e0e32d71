"""Many calls of groups of 8 devices: memory and buffers, threads and open files are as many after them as before.

  python tests/spmd/calls_without_growth.py [CALLS]     # 10,000, of each of the kinds below; exits 1 where something grew

Kinds: collectives of large and of small arrays, a loop whose body meets, products and what devices compute alike, shards that go in and out, donated
shards, and calls that end in errors: of an argument's shape, of a custom call on some devices, and by a signal."""

import gc
import itertools
import os
import signal
import sys

import numpy as np
import test_spmd_drivers as drivers

import xlac
from xlac.sharding import Mesh, Sharding

TARGET = "raises_on_some_devices"
SHARD = 'sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>'
# The state of a training loop: a shard in, a shard out, and a sum of all.
STEP = (
    drivers.MESH
    + f"""func.func @main(%x: tensor<4096xf32> {{{SHARD}}}) -> (tensor<4096xf32> {{{SHARD}}}, tensor<f32>) {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4096xf32>, tensor<f32>) -> tensor<f32>
  %b = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<4096xf32>
  %t = stablehlo.tanh %b : tensor<4096xf32>
  %o = stablehlo.add %x, %t : tensor<4096xf32>
  return %o, %s : tensor<4096xf32>, tensor<f32> }}"""
)
FAILS = drivers.manual(64, f'"stablehlo.all_reduce"(%c) {drivers.ADD} {drivers.ALL}}}', "tensor<64xf32>", 64).replace(
    "%r0 =", f"%c = stablehlo.custom_call @{TARGET}(%b) {{api_version = 4 : i32}} : (tensor<64xf32>) -> tensor<64xf32>\n%r0 ="
)


def refused(call, *errors):
    try:
        call()
    except errors:
        return
    raise AssertionError("a call that has to fail has a result")


def plain(name):
    def make():
        exe = xlac.compile(xlac.parse(drivers.PROGRAMS[name], format="mlir"), devices=8)
        arguments = [np.ones(p.shape, np.float32) for p in exe.inputs]
        return lambda i: exe(*arguments)

    return make


def state(donated):
    def make():
        exe = xlac.compile(xlac.parse(STEP, format="mlir"), devices=8, results="sharded", donate=[0] if donated else [])
        held = [xlac.ShardedBuffer.of(np.zeros(4096, np.float32), Sharding(Mesh({"x": 4, "y": 2}), [("x", "y")]))]

        def call(i):
            held[0], total = exe(xlac.donate(held[0]) if donated else held[0])
            assert float(total.numpy()) == 0

        return call

    return make


def a_custom_call_that_raises():
    made = itertools.count()

    def target(x):
        if next(made) % 3 == 2:
            raise ValueError("the data is gone")
        return x

    xlac.register_custom_call(TARGET, target)
    exe = xlac.compile(xlac.parse(FAILS, format="mlir"), devices=8)
    x = np.ones(512, np.float32)
    return lambda i: refused(lambda: exe(x), ValueError, xlac.Error)


def arguments_that_do_not_fit():
    exe = xlac.compile(xlac.parse(drivers.PROGRAMS["all_reduce of few"], format="mlir"), devices=8)
    good, bad = np.ones(128, np.float32), np.ones(120, np.float32)

    def call(i):
        refused(lambda: exe(bad), xlac.Error)
        exe(good)

    return call


def interrupted():
    """A loop that would go on for hours, which a signal's handler ends."""
    exe = xlac.compile(xlac.parse(drivers.PROGRAMS["loop"].replace("dense<9>", "dense<2000000000>"), format="mlir"), devices=8)
    arguments = [np.ones(p.shape, np.float32) for p in exe.inputs]

    def end(signal, frame):
        raise TimeoutError

    def call(i):
        before = signal.signal(signal.SIGALRM, end)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            refused(lambda: exe(*arguments), TimeoutError)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    return call


def compiled_anew():
    module, x = xlac.parse(drivers.PROGRAMS["all_reduce of few"], format="mlir"), np.ones(128, np.float32)
    return lambda i: xlac.compile(module, devices=8)(x)


# By kind: what makes a call, and how many of CALLS it takes.
KINDS = {
    **{name: (plain(name), 1) for name in ("all_reduce", "all_reduce of few", "all_gather", "product", "turns", "loop")},
    "alike": (plain("alike"), 4),
    "shards in and out": (state(False), 1),
    "donated shards": (state(True), 1),
    "a custom call that raises": (a_custom_call_that_raises, 1),
    "arguments that do not fit": (arguments_that_do_not_fit, 1),
    "interrupted": (interrupted, 40),
    "compiled anew": (compiled_anew, 10),
}


def held():
    """What a process has: kB of memory, bytes of live buffers, threads, open files, Python's objects."""
    gc.collect()
    return {
        "kB": int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024,
        "bytes of buffers": xlac.memory_stats()["live_bytes"],
        "threads": len(os.listdir("/proc/self/task")),
        "open files": len(os.listdir("/proc/self/fd")),
        "objects": len(gc.get_objects()),
    }


def grown(name, calls, kilobytes):
    """What has grown over so many calls, after a tenth as many that may make what is kept from then on. Memory may by `kilobytes`."""
    make, less = KINDS[name]
    call = make()
    calls = max(2, calls // less)
    for i in range(max(2, calls // 10)):
        call(i)
    before = held()
    for i in range(calls):
        call(i)
    after = held()
    over = {what: after[what] - before[what] for what in after}
    return calls, over, {what: n for what, n in over.items() if n > {"kB": kilobytes, "objects": 50}.get(what, 0)}


def main(calls):
    failed = False
    for name in KINDS:
        made, over, bad = grown(name, calls, 512)
        failed |= bool(bad)
        print(f"{name:<28}{made:>7} calls: {', '.join(f'{n:+} {what}' for what, n in over.items())}{'   GROWN' if bad else ''}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10000))
