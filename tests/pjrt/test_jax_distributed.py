"""An unchanged JAX in several processes of this machine, by jax.distributed: programs over the devices of all of them."""
import os
import pathlib
import socket
import subprocess
import sys
import textwrap
import time

import pytest

import xlac

pytest.importorskip("jax")

HEAD = """
import fcntl, os, sys, signal, time
rank, processes, port = (int(word) for word in sys.argv[1:])
import jax
jax.distributed.initialize(f"127.0.0.1:{port}", processes, rank, initialization_timeout=120, shutdown_timeout_seconds=60)
import jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P, Mesh
from jax.experimental import multihost_utils
a = np.arange(64, dtype=np.float32).reshape(8, 8)
def mesh_of(devices, *names, shape=None):
    return Mesh(np.array(devices).reshape(shape or [len(devices)]), names)
def put(value, mesh, *spec):
    return jax.make_array_from_callback(value.shape, NamedSharding(mesh, P(*spec)), lambda index: value[index])
def whole(value):
    return multihost_utils.process_allgather(value, tiled=True)
def tell(f, *args):
    try:
        jax.block_until_ready(f(*args))
        print("no error", flush=True)
    except Exception as why:
        print(type(why).__name__, str(why).replace(chr(10), " "), flush=True)
"""


def start(processes, script, devices=2):
    """The processes, and a socket that keeps their port from all others until they have ended: the coordinator may share it, for both ask to."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind(("127.0.0.1", 0))
    port = held.getsockname()[1]
    where = str(pathlib.Path(xlac.__file__).resolve().parents[1])  # the package that is tested, installed or in place
    env = os.environ | {"PYTHONPATH": os.pathsep.join([where, os.environ.get("PYTHONPATH", "")]), "JAX_PLATFORMS": "xlac", "OMP_NUM_THREADS": "1"}
    counts = devices if isinstance(devices, tuple) else (devices,) * processes
    return [subprocess.Popen([sys.executable, "-c", HEAD + textwrap.dedent(script), str(rank), str(processes), str(port)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env=env | {"XLAC_JAX_DEVICES": str(counts[rank])}) for rank in range(processes)], held


def finish(started, held, seconds=240):
    """[(what it printed, errors, exit status)]; where one hangs, all are ended and the test fails with what they said."""
    until, said, late = time.monotonic() + seconds, [], []
    for rank, process in enumerate(started):
        try:
            said.append((*process.communicate(timeout=max(0.1, until - time.monotonic())), process.returncode))
        except subprocess.TimeoutExpired:
            late.append(rank)
            process.kill()
            said.append((*process.communicate(), process.returncode))
    held.close()
    assert not late, f"processes {late} hang: {said}"
    return said


def run(processes, script, **options):
    said = finish(*start(processes, script, **options))
    assert all(code == 0 for _, _, code in said), said
    return [out.splitlines() for out, _, _ in said]


def test_programs_over_two_processes_of_one_and_three_devices():
    said = run(2, """
    print(jax.process_index(), jax.process_count(), len(jax.devices()), [d.id for d in jax.local_devices()], [d.process_index for d in jax.devices()])
    mesh = mesh_of(jax.devices(), "x")
    x = put(a, mesh, "x")
    y = jax.jit(lambda v: jnp.tanh(v / 50) @ v.T, out_shardings=NamedSharding(mesh, P()))(x)
    print(np.allclose(y, np.tanh(a / 50) @ a.T, rtol=1e-5), y.is_fully_replicated)
    z = jax.jit(lambda v: v * 2, donate_argnums=0)(x)
    print(x.is_deleted(), [s.index[0].start for s in z.addressable_shards], np.array_equal(whole(z), a * 2))
    other = mesh_of(np.array(jax.devices())[[2, 0, 3, 1]], "p", "q", shape=[2, 2])  # in another order
    w = jax.jit(lambda v: jnp.flip(v, 0) + v.sum(1), out_shardings=NamedSharding(other, P("q", "p")))(put(a, other, "p", "q"))
    print(np.array_equal(whole(w), a[::-1] + a.sum(1)))
    f = jax.shard_map(lambda v: jax.lax.ppermute(jax.lax.psum(v, "q"), "p", [(0, 1), (1, 0)]), mesh=other, in_specs=P("p", "q"), out_specs=P("p"))
    print(np.array_equal(whole(jax.jit(f)(put(a, other, "p", "q"))), np.roll(a[:, :4] + a[:, 4:], 4, 0)))
    own = jax.jit(lambda v: v.sum() + rank)(jnp.ones(3))  # of this process alone
    print(float(own) == 3 + rank)
    """, devices=(1, 3))
    assert [out[0] for out in said] == ["0 2 4 [0] [0, 1, 1, 1]", "1 2 4 [1, 2, 3] [0, 1, 1, 1]"]
    assert [out[1:] for out in said] == [["True True", f"True {starts} True", "True", "True", "True"] for starts in ("[0]", "[2, 4, 6]")]


def test_data_of_each_process_trains_one_model():
    said = run(2, """
    mesh = mesh_of(jax.devices(), "data", "model", shape=[2, 2])
    rows = np.random.default_rng(rank).standard_normal((4, 8), np.float32)  # others in each process
    everything = np.concatenate([np.random.default_rng(r).standard_normal((4, 8), np.float32) for r in range(2)])
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    print(x.shape, np.array_equal(whole(x), everything))
    w = jax.device_put(np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4), NamedSharding(mesh, P(None, "model")))
    def step(w, x):
        loss, grad = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
        return w - 0.5 * grad, loss
    v, losses, wants, jitted = np.array(whole(w)), [], [], jax.jit(step)
    for _ in range(5):
        w, loss = jitted(w, x)
        losses.append(float(loss))
        v, want = jax.jit(step)(v, everything)
        wants.append(float(want))
    print(np.allclose(losses, wants, rtol=1e-5), losses[-1] < losses[0])
    print(multihost_utils.broadcast_one_to_all(np.float32(rank + 5)), multihost_utils.process_allgather(np.int32(rank)).tolist())
    multihost_utils.sync_global_devices("here")
    multihost_utils.assert_equal(np.arange(3), "the same")
    jax.jit(lambda v: jax.debug.print("largest {m}", m=v.max()))(jnp.arange(4.))
    jax.effects_barrier()
    """)
    assert said == [["(8, 8) True", "True True", "5.0 [0, 1]", "largest 3.0"]] * 2


def test_what_goes_wrong_is_an_error_that_names_the_process(tmp_path):
    started, held = start(3, """
    here = FOLDER
    mesh = mesh_of(jax.devices(), "x")
    x = put(np.ones(6, np.float32), mesh, "x")
    print(float(jax.jit(lambda v: v.sum())(x)), flush=True)
    tell(jax.jit(lambda v: v.sum() + 1) if rank == 1 else jax.jit(lambda v: v.sum() * 3), x)  # not the same program
    print(float(jax.jit(lambda v: v.sum() - 1)(x)), flush=True)
    if rank != 1:  # some of the processes
        few = mesh_of([d for d in jax.devices() if d.process_index != 1], "x")
        print(float(jax.jit(lambda v: v.sum() / 2)(put(np.ones(4, np.float32), few, "x"))), flush=True)
    tell(jax.device_put, np.ones(3), jax.devices()[2 * (rank + 1) % 6])
    multihost_utils.sync_global_devices("all are here")
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    tell(jax.jit(lambda v: v.sum() * 7), x)
    # Who leaves first would be the one that the other finds dead, and jaxlib ends a process whose coordinator has left:
    # 1 stays until 0 is here, and 0 until 1 has left, which gives its lock back.
    own = open(os.path.join(here, str(rank) + " comes"), "w")
    fcntl.flock(own, fcntl.LOCK_EX)
    os.rename(own.name, os.path.join(here, str(rank)))
    until = time.monotonic() + 60
    while len([name for name in os.listdir(here) if "comes" not in name]) < 2 and time.monotonic() < until:
        time.sleep(.01)
    if rank == 0:
        fcntl.flock(open(os.path.join(here, "1")), fcntl.LOCK_EX)
    os._exit(0)  # jax.distributed waits for the dead one otherwise
    """.replace("FOLDER", repr(str(tmp_path))))
    said = finish(started, held)
    assert [code for _, _, code in said] == [0, 0, -9], said
    for rank, (out, _, _) in enumerate(said):
        lines = out.splitlines()
        assert lines[0] == "6.0" and lines[2] == "5.0" and (rank == 1 or lines[3] == "2.0"), said
        assert "JaxRuntimeError" in lines[1] and "runs jit" in lines[1] and "process " in lines[1], said
        if rank < 2:
            assert "JaxRuntimeError" in lines[-1] and f"process 2 (pid {started[2].pid} on " in lines[-1] and "has died" in lines[-1], said
