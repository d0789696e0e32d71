"""Ctrl-C in a loop that never ends, and graphs run by the command line."""
import signal
import subprocess
import sys

import numpy as np
import pytest
from graphs import add, assign, const, node, placeholder, variable
from test_control_flow import ONE, increment, loop

import xlac


def interrupt(number, frame):
    raise KeyboardInterrupt


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer")
def test_ctrl_c_leaves_variables_as_they_were():
    text = (variable("v") + placeholder("x") + assign("w", "v", "x") + placeholder("n", "DT_INT32") + const("z", "DT_INT32", "^w", value="int_val: 0")
            + loop("l", "z", "n", ONE + increment("l", "one")))
    exe = xlac.cluster(text, global_jit_level=-1).executable(["x", "n"], "l")
    assert exe(1.0, 3) == 3 and exe.variables["v"] == 1
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            exe(2.0, 2**31 - 1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert exe.variables["v"] == 1 and exe(5.0, 2) == 2


def test_the_command_line_runs_graphs(tmp_path):
    graph = tmp_path / "graph.pbtxt"
    graph.write_text(placeholder("x") + variable("v") + const("k", value="float_val: 2") + assign("init", "v", "k")
                     + node("r", "ReadVariableOp", "v", dtype="DT_FLOAT") + add("a", "x", "r") + add("b", "a", "a"))
    np.save(tmp_path / "x.npy", np.float32([1, 2]))

    def xlac_cluster(*args):
        return subprocess.run([sys.executable, "-m", "xlac", "cluster", str(graph), *args], capture_output=True, text=True)

    done = xlac_cluster("--first", "init", "--feed", f"x={tmp_path / 'x.npy'}", "--run", "b", "--run", "a:0", "--flag", "min_cluster_size=2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("b float32[2] [6.0, 8.0]\na:0 float32[2] [3.0, 4.0]\n") and "cluster_0 (" in done.stdout
    assert xlac_cluster("--feed", "x=[1]", "--run", "b").returncode == 1  # v has no value
    assert "neither" in xlac_cluster("--feed", "x=?", "--run", "b").stderr
    whole = tmp_path / "whole.pbtxt"
    assert xlac_cluster("--encapsulated", "-o", str(whole), "--flag", "min_cluster_size=2").returncode == 0
    assert "_XlaCompiledKernel" in whole.read_text()
