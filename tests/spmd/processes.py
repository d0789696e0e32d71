"""Starts the ranks of a program on this machine and collects what they print: no MPI, a port of 127.0.0.1."""
import contextlib
import os
import random
import socket
import subprocess
import sys
import time

BEGIN = "import sys, os, time, numpy as np, xlac\nxlac.distributed.init(timeout=float(os.environ.get('XLAC_TEST_TIMEOUT', 30)))\nrank = xlac.distributed.rank()\n"


def free_port():
    """One that is free, and below those that the kernel gives to connections of other tests before the rank that listens has started."""
    for port in random.SystemRandom().sample(range(10000, 32000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise OSError("no port is free")


def start(ranks, script, among=None, begin=BEGIN, **env):
    """Processes of those ranks of `among`."""
    port, started = free_port(), []
    for rank in range(ranks) if isinstance(ranks, int) else ranks:
        said = {"XLAC_COORDINATOR": f"127.0.0.1:{port}", "XLAC_PROCESSES": str(among or ranks), "XLAC_RANK": str(rank), "OMP_NUM_THREADS": "1"}
        path = os.pathsep.join([os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])])
        started.append(subprocess.Popen([sys.executable, "-c", begin + script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=os.environ | said | {"PYTHONPATH": path} | env))
    return started


def finish(started, seconds=60):
    """[(exit status, what it printed, errors)]; a rank that goes on for longer is ended, and fails the test."""
    until, said, late = time.monotonic() + seconds, [], []
    for rank, process in enumerate(started):
        try:
            out, err = process.communicate(timeout=max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            late.append(rank)
        said.append((process.returncode, out, err))
    assert not late, f"ranks {late} hang: {said}"
    return said


def run(ranks, script, seconds=60, **options):
    """What each printed; all have ended well."""
    said = finish(start(ranks, script, **options), seconds)
    assert all(code == 0 for code, _, _ in said), said
    return [out for _, out, _ in said]
