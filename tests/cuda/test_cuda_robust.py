"""What happens to a process: it forks, ends with work on the GPU, uses one executable from many threads while calls of the driver fail, and
meets an error after which the driver takes nothing more. Each in a process of its own."""
import os
import subprocess
import sys

import pytest

from simulator import library_path

BEGIN = """
import ctypes, os, signal, sys, threading, time
import numpy as np
import xlac
TEXT = '''HloModule m
ENTRY e { x = f32[64] parameter(0)
 y = f32[64] add(x, x)
 ROOT z = f32[64] multiply(y, x) }'''
LONG = '''HloModule m
body { s = (s32[], s32[], f32[64]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 n = s32[] get-tuple-element(s), index=1
 x = f32[64] get-tuple-element(s), index=2
 one = s32[] constant(1)
 j = s32[] add(i, one)
 y = f32[64] negate(x)
 ROOT r = (s32[], s32[], f32[64]) tuple(j, n, y) }
condition { s = (s32[], s32[], f32[64]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 n = s32[] get-tuple-element(s), index=1
 ROOT p = pred[] compare(i, n), direction=LT }
ENTRY e { n = s32[] parameter(0)
 x = f32[64] parameter(1)
 zero = s32[] constant(0)
 start = (s32[], s32[], f32[64]) tuple(zero, n, x)
 loop = (s32[], s32[], f32[64]) while(start), condition=condition, body=body
 ROOT y = f32[64] get-tuple-element(loop), index=2 }'''
X = np.arange(64, dtype=np.float32)
WANT = (X + X) * X
driver = ctypes.CDLL(os.environ["XLAC_CUDA_DRIVER"])
def right(exe):
    np.testing.assert_array_equal(np.asarray(exe(X)), WANT)
exe = xlac.compile(TEXT, device="cuda")
"""


def run(body, timeout=120):
    """What a process prints that begins so and goes on with `body`; it must end by itself, and well."""
    env = {**os.environ, "XLAC_CUDA_DRIVER": library_path(), "XLAC_CUDA_SIM_LOG": "-"}
    done = subprocess.run([sys.executable, "-c", BEGIN + body], capture_output=True, text=True, timeout=timeout, env=env)
    assert done.returncode == 0, (done.returncode, done.stdout[-2000:], done.stderr[-3000:])
    return done.stdout, done.stderr


def test_a_child_that_was_forked_is_told_so_and_the_parent_goes_on():
    out, log = run("""
right(exe)
kept = xlac.asarray(X, device="cuda:0")
child = os.fork()
if child == 0:
    said = []
    for action in (lambda: exe(X), lambda: xlac.compile(TEXT, device="cuda"), lambda: np.asarray(kept), lambda: xlac.asarray(X, device="cuda:0")):
        try:
            action()
        except xlac.Error as e:
            said.append(str(e))
    del kept, exe
    print(len(said), all("fork" in s for s in said), flush=True)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
right(exe)
np.testing.assert_array_equal(np.asarray(kept), X)
""")
    assert out.split() == ["4", "True"] and "cuda driver:" not in log


ENDS = {
    "a call on another thread": "threading.Thread(target=lambda: xlac.compile(LONG, device='cuda')(np.int32(1 << 28), X), daemon=True).start()\ntime.sleep(0.3)\n",
    "a call that was not waited for": "long = xlac.compile(LONG, device='cuda')\npending = long.run_async(np.int32(300), X)\n",
    "buffers and executables": "kept = xlac.compile(TEXT, device='cuda', results='buffer')(X)\nsys.kept = (kept, exe)\n",
}


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("how", ["", "os._exit(0)", "sys.exit(0)"])
def test_a_process_ends_with_work_on_the_gpu(name, how):
    run(ENDS[name] + how)


def test_an_interrupt_ends_a_long_call_and_the_next_one_is_right():
    run("""
long = xlac.compile(LONG, device="cuda")
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    long(np.int32(1 << 28), X)
    print("not interrupted")
    os._exit(1)
except KeyboardInterrupt:
    pass
np.testing.assert_array_equal(long(np.int32(3), X), -X)
right(exe)
""")


def test_threads_call_and_compile_while_calls_of_the_driver_fail():
    """Each result is right, or an error of the device; at the end everything is as if none had failed, but for memory whose release did."""
    _, log = run("""
wrong, refused = [], []
def work(number):
    for i in range(12):
        driver.cudasim_fail(b"*:%d" % (3 + (number * 12 + i) % 30))  # of all threads' calls from now on
        try:
            own = exe if number % 2 else xlac.compile(TEXT, device="cuda", results="buffer" if i % 2 else "numpy")
            if not np.array_equal(np.asarray(own(X)), WANT):
                wrong.append((number, i))
        except xlac.Error as e:
            refused.append(str(e))
threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
for t in threads: t.start()
for t in threads: t.join()
driver.cudasim_fail(None)
right(exe)
right(xlac.compile(TEXT, device="cuda"))
assert wrong == [], wrong
assert refused and all("CUDA" in r or "NVRTC" in r for r in refused), refused
""")
    assert [line for line in log.splitlines() if line.startswith("cuda driver:") and "leak" not in line] == []


def test_after_an_error_that_stays_calls_say_so_and_the_other_gpu_goes_on():
    """A kernel that goes out of bounds breaks its context: nothing hangs, nothing is lost that another device has, and the process ends well."""
    run("""
kept = xlac.asarray(X, device="cuda:0")
driver.cudasim_mutate(ctypes.c_uint32(1), ctypes.c_uint32(1))
text = TEXT.replace("f32[64]", "f32[63]")
bad = xlac.compile(text, device="cuda")
driver.cudasim_mutate(ctypes.c_uint32(0), ctypes.c_uint32(0))
said = []
for action in (lambda: bad(X[:63]), lambda: exe(X), lambda: np.asarray(kept), lambda: xlac.asarray(X, device="cuda:0"), lambda: bad.profile(X[:63])):
    try:
        action()
        print("no error")
        os._exit(1)
    except xlac.Error as e:
        said.append(str(e))
assert all("XLAC-E" in s for s in said), said
assert "out of bounds" in said[0] and "XLAC_CUDA_CHECK" in said[0], said[0]
del kept, bad
right(xlac.compile(TEXT))
right(xlac.compile(TEXT, device="cuda:1"))
""")
