"""The extension under several threads and several interpreters."""
import subprocess
import sys
import threading

import numpy as np
import pytest

import xlac

TEXT = """HloModule m
ENTRY e {
  x = f32[64,64] parameter(0)
  y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[64,64] tanh(y)
}"""


def test_threads_share_a_module():
    """Readers, runs and one editor at the same time: no crash, right numbers, edits refused only while a run goes on."""
    module, x = xlac.parse(TEXT), np.eye(64, dtype=np.float32)
    expected, wrong = np.tanh(np.eye(64)), []

    def read():
        for _ in range(200):
            if [op.opcode for op in module.walk()] != ["parameter", "dot", "tanh"]:
                wrong.append("walk")
            xlac.parse(module.to_text()).verify()

    def run():
        for _ in range(50):
            if not np.allclose(xlac.interpret(module, x), expected, atol=1e-6):
                wrong.append("numbers")

    def edit():
        for i in range(200):
            try:
                module.find("y").metadata = f'{{op_name="{i}"}}'
            except xlac.Error as error:
                if "run by another thread" not in error.message:
                    wrong.append(error)

    threads = [threading.Thread(target=f) for f in (read, read, run, run, edit)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_module_dies_in_another_thread():
    modules = [xlac.parse(TEXT) for _ in range(20)]
    thread = threading.Thread(target=modules.clear)
    thread.start()
    thread.join()
    assert not modules


SUBINTERPRETER = """
import sys
sys.path[:] = {path!r}
import xlac
module = xlac.parse({text!r})
module.verify()
assert [op.name for op in module.entry] == ["x", "y", "r"]
assert "tanh" in module.to_text()
try:
    xlac.parse("HloModule")
except xlac.ParseError as error:
    assert error.line == 1
else:
    raise AssertionError
"""


def test_subinterpreters_have_their_own_state():
    """Parsing, verifying, printing and errors work in a subinterpreter; NumPy itself does not load in one."""
    interpreters = pytest.importorskip("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    code = SUBINTERPRETER.format(path=sys.path, text=TEXT)
    for _ in range(2):
        interpreter = interpreters.create()
        try:
            failure = interpreters.exec(interpreter, code) if sys.version_info >= (3, 13) else (
                interpreters.run_string(interpreter, code))
            assert failure is None, failure
        finally:
            interpreters.destroy(interpreter)
    assert isinstance(xlac.parse(TEXT), xlac.Module)


def test_numpy_is_loaded_late():
    """Importing xlac does not import NumPy, nor anything heavy."""
    code = ("import sys, xlac; heavy = {'numpy', 'ml_dtypes', 'typing', 'dataclasses', 'enum', 'json', 'ctypes', 'cffi', 'argparse'};"
            "print(sorted(heavy & (set(sys.modules) - before)))")
    done = subprocess.run([sys.executable, "-c", "import sys; before = set(sys.modules)\n" + code],
                          capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
