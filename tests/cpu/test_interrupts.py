"""Ctrl-C in the midst of long steps, and the end of the interpreter."""
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import xlac

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
LONG_KERNEL = ADD + """ENTRY e {
  x = f32[] parameter(0)
  i = f32[4000000000] iota(), iota_dimension=0
  b = f32[4000000000] broadcast(x), dimensions={}
  p = f32[4000000000] power(i, b)
  t = f32[4000000000] tanh(p)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(t, z), dimensions={0}, to_apply=add
}"""
LONG_LOOP = """c { p = (s32[], f32[]) parameter(0)
  x = f32[] get-tuple-element(p), index=1
  z = f32[] constant(-1)
  ROOT r = pred[] compare(x, z), direction=GT }
b { p = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[]) tuple(j, x) }
ENTRY e {
  x = f32[] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[]) tuple(z, x)
  ROOT w = (s32[], f32[]) while(t), condition=c, body=b
}"""
LONG_DOT = """ENTRY e {
  x = f32[] parameter(0)
  a = f32[6000,6000] broadcast(x), dimensions={}
  b = f32[6000,6000] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[6000,6000] dot(b, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT d = f32[6000,6000] dot(c, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""

LONG_CONVOLUTION = """ENTRY e {
  x = f32[] parameter(0)
  a = f32[8,128,128,256] broadcast(x), dimensions={}
  k = f32[7,7,256,256] broadcast(x), dimensions={}
  ROOT c = f32[8,128,128,256] convolution(a, k), window={size=7x7 pad=3_3x3_3}, dim_labels=b01f_01io->b01f
}"""
LONG_SORT = """less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e {
  x = f32[] parameter(0)
  i = f32[30000000] iota(), iota_dimension=0
  b = f32[30000000] broadcast(x), dimensions={}
  m = f32[30000000] multiply(i, b)
  t = f32[30000000] sine(m)
  s = f32[30000000] sort(t), dimensions={0}, to_apply=less
  ROOT r = f32[1] slice(s), slice={[0:1]}
}"""

# Computations of several ops, in each op that calls one on 30 million elements.
WAVES = """  i = f32[30000000] iota(), iota_dimension=0
  b = f32[30000000] broadcast(x), dimensions={}
  m = f32[30000000] multiply(i, b)
  t = f32[30000000] sine(m)
"""
BODY = """body { a = f32[] parameter(0)
  b = f32[] parameter(1)
  h = f32[] constant(0.5)
  c = f32[] power(a, h)
  d = f32[] tanh(c)
  ROOT r = f32[] subtract(d, b) }
"""
LONG_SORT_BY_BODY = LONG_SORT.replace("ROOT r = pred[] compare(a, b)", "c = f32[] abs(a)\n  d = f32[] abs(b)\n  ROOT r = pred[] compare(c, d)", 1)
LONG_REDUCE = BODY + "ENTRY e {\n  x = f32[] parameter(0)\n" + WAVES + "  ROOT r = f32[] reduce(t, x), dimensions={0}, to_apply=body\n}"
LONG_SCATTER = BODY + """ENTRY e {
  x = f32[] parameter(0)
""" + WAVES + """  j = s32[30000000,1] iota(), iota_dimension=0
  k = s32[] constant(1000)
  l = s32[30000000,1] broadcast(k), dimensions={}
  n = s32[30000000,1] remainder(j, l)
  o = f32[1000] broadcast(x), dimensions={}
  ROOT r = f32[1000] scatter(o, n, t), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=body
}"""
LONG_WINDOWS = BODY + "ENTRY e {\n  x = f32[] parameter(0)\n" + WAVES + """  w = f32[29999901] reduce-window(t, x), window={size=100}, to_apply=body
  ROOT r = f32[1] slice(w), slice={[0:1]}
}"""
LONG_TOPK = "ENTRY e {\n  x = f32[] parameter(0)\n" + WAVES + """  y = f32[3,10000000] reshape(t)
  k = (f32[3,1000000], s32[3,1000000]) topk(y), k=1000000, largest=true
  v = f32[3,1000000] get-tuple-element(k), index=0
  ROOT r = f32[1,1] slice(v), slice={[0:1], [0:1]}
}"""
LONG_BATCH = """ENTRY e {
  x = f32[] parameter(0)
  i = f32[40,900,900] iota(), iota_dimension=1
  j = f32[40,900,900] iota(), iota_dimension=2
  q = pred[40,900,900] compare(i, j), direction=EQ
  b = f32[40,900,900] broadcast(x), dimensions={}
  z = f32[40,900,900] subtract(b, b)
  a = f32[40,900,900] select(q, b, z)
  c = f32[40,900,900] cholesky(a), lower=true
  d = f32[40,900,900] triangular-solve(c, b), left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE
  f = f32[40,900,900] cholesky(c), lower=true
  g = f32[40,900,900] cholesky(f), lower=true
  k = f32[40,900,900] cholesky(g), lower=true
  l = f32[40,900,900] cholesky(k), lower=true
  m = f32[40,900,900] add(d, l)
  ROOT r = f32[1,1,1] slice(m), slice={[0:1], [0:1], [0:1]}
}"""
LONG_FACTOR = """ENTRY e {
  x = f32[] parameter(0)
  i = f32[6000,6000]{0,1} iota(), iota_dimension=0
  j = f32[6000,6000]{0,1} iota(), iota_dimension=1
  q = pred[6000,6000]{0,1} compare(i, j), direction=EQ
  b = f32[6000,6000]{0,1} broadcast(x), dimensions={}
  z = f32[6000,6000]{0,1} subtract(b, b)
  a = f32[6000,6000]{0,1} select(q, b, z)
  c = (f32[6000,6000]{0,1}, s32[6000]{0}, s32[]) custom-call(a), custom_call_target="lapack_sgetrf_ffi", operand_layout_constraints={f32[6000,6000]{0,1}}, api_version=API_VERSION_TYPED_FFI, backend_config={}, output_to_operand_aliasing={{0}: (0, {})}
  m = f32[6000,6000]{0,1} get-tuple-element(c), index=0
  d = (f32[6000,6000]{0,1}, s32[]) custom-call(m), custom_call_target="lapack_spotrf_ffi", operand_layout_constraints={f32[6000,6000]{0,1}}, api_version=API_VERSION_TYPED_FFI, backend_config={uplo = 76 : ui8}, output_to_operand_aliasing={{0}: (0, {})}
  f = f32[6000,6000]{0,1} get-tuple-element(d), index=0
  ROOT r = f32[1,1] slice(f), slice={[0:1], [0:1]}
}"""


def apart(target, n, attributes, results, batch=""):
    """A call of LAPACK that takes seconds and is one piece of work to xlac."""
    whole, vector, info = f"f64[{n},{n}]{{0,1}}", f"f64[{n}]{{0}}", "s32[]"
    if batch:
        whole, vector, info = f"f64[{batch},{n},{n}]{{1,2,0}}", f"f64[{batch},{n}]{{1,0}}", f"s32[{batch}]{{0}}"
    types = ", ".join([whole, vector] + [info] * (results - 2))
    return f"""ENTRY e {{
  x = f64[] parameter(0)
  b = {whole} broadcast(x), dimensions={{}}
  i = {whole} iota(), iota_dimension={len(batch)}
  s = {whole} sine(i)
  a = {whole} add(b, s)
  c = ({types}) custom-call(a), custom_call_target="{target}", operand_layout_constraints={{{whole}}}, api_version=API_VERSION_TYPED_FFI, backend_config={{{attributes}}}, output_to_operand_aliasing={{{{0}}: (0, {{}})}}
  ROOT r = {vector} get-tuple-element(c), index=1
}}"""


LONG_QR = apart("lapack_dgeqrf_ffi", 2500, "", 2)
LONG_EIGEN = apart("lapack_dsyevd_ffi", 1500, "mode = 86 : ui8, uplo = 76 : ui8", 3)
LONG_EIGENS = apart("lapack_dsyevd_ffi", 1200, "mode = 86 : ui8, uplo = 76 : ui8", 3, batch="3")


class Alarm(Exception):
    pass


def ring(signum, frame):
    raise Alarm


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("text", [LONG_KERNEL, LONG_LOOP, LONG_DOT, LONG_SORT, LONG_CONVOLUTION, LONG_SORT_BY_BODY, LONG_REDUCE, LONG_SCATTER,
                                  LONG_WINDOWS, LONG_TOPK, LONG_BATCH, LONG_FACTOR, LONG_QR, LONG_EIGEN, LONG_EIGENS],
                         ids=["kernel", "loop", "dot", "sort", "convolution", "sort-by-body", "reduce-by-body", "scatter-by-body", "windows-by-body",
                              "topk", "batch", "factor", "qr", "eigen", "eigens"])
def test_a_signal_stops_a_run(text, threads):
    exe = xlac.compile(xlac.parse("HloModule m\n" + text), threads=threads)
    live, x, delay = xlac.memory_stats()["live"], (np.float64 if "lapack_d" in text else np.float32)(0.5), 0.15
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        with pytest.raises(Alarm):
            exe(x)
            while True:  # a machine that is done already
                time.sleep(1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert xlac.memory_stats()["live"] == live


def test_progress_may_stop_a_run_and_the_next_one_works():
    exe = xlac.compile(xlac.parse("HloModule m\n" + LONG_KERNEL), threads=2)

    def enough(seconds):
        raise Alarm

    for _ in range(2):
        with pytest.raises(Alarm):
            exe(np.float32(0.5), progress=enough)
    small = xlac.compile(xlac.parse("HloModule m\n" + LONG_KERNEL.replace("4000000000", "400000")), threads=2)
    assert small(np.float32(0.5)) > 0


def test_other_threads_run_on_when_one_is_stopped():
    exe = xlac.compile(xlac.parse("HloModule m\n" + LONG_KERNEL.replace("4000000000", "4000000")), threads=2)
    want, got = exe(np.float32(0.5)), []
    thread = threading.Thread(target=lambda: got.extend(exe(np.float32(0.5)) for _ in range(5)))
    thread.start()

    def enough(seconds):
        raise Alarm

    with pytest.raises(Alarm):
        xlac.compile(xlac.parse("HloModule m\n" + LONG_KERNEL), threads=2)(np.float32(0.5), progress=enough)
    thread.join()
    assert got == [want] * 5


def test_the_interpreter_may_end_while_a_daemon_runs():
    code = f"""if True:
        import threading, time, numpy as np, xlac
        exe = xlac.compile(xlac.parse({('HloModule m' + chr(10) + LONG_KERNEL)!r}), threads=2)
        threading.Thread(target=exe, args=(np.float32(0.5),), daemon=True).start()
        time.sleep(0.2)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_process_may_end_while_a_call_that_was_left_goes_on():
    code = f"""if True:
        import signal, numpy as np, xlac
        class Alarm(Exception): pass
        def ring(signum, frame): raise Alarm
        signal.signal(signal.SIGALRM, ring)
        exe = xlac.compile(xlac.parse({('HloModule m' + chr(10) + LONG_EIGEN)!r}), threads=2)
        signal.setitimer(signal.ITIMER_REAL, 0.15)
        try:
            exe(np.float64(0.5))
        except Alarm:
            pass
    """
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
