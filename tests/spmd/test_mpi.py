"""Ranks that mpiexec has started: the values of one process, and an end for what goes wrong."""
# ruff: noqa: E501
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import time

import collectives_of_ranks
import gpt
import numpy as np
import processes
import pytest
from test_distributed import PROGRAM, TELL

pytestmark = pytest.mark.skipif(not shutil.which("mpiexec") or not importlib.util.find_spec("mpi4py"), reason="MPI is not installed: xlac[mpi]")
SECONDS = 60  # for what takes some two


def mpi(ranks, script, begin=processes.BEGIN, **env):
    """(exit status, what all print, errors), of ranks that have all ended. What a rank prints is held until it flushes, so that no line is cut by another rank's."""
    path = os.pathsep.join([os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(["mpiexec", "-n", str(ranks), sys.executable, "-c", begin + TELL + script], capture_output=True, text=True, timeout=SECONDS,
                          env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": ""} | env)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("ranks", [2, 4])
def test_collectives_have_the_bits_of_one_process(ranks):
    names = ["sum", "large", "ragged"]
    code, out, err = mpi(ranks, f"import collectives_of_ranks as c\nprint(''.join(f'{{at}} {{v}}\\n' for at, v in c.digests({names}).items()), end='', flush=True)")
    assert code == 0, err
    assert dict(line.split() for line in out.splitlines()) == collectives_of_ranks.digests(names)


@pytest.mark.parametrize("ranks", [2, 4])
def test_sharded_programs_of_jax_have_the_values_of_one_device(ranks):
    """A share; jax_programs_of_ranks.py by itself runs all."""
    pytest.importorskip("ml_dtypes")
    code, out, err = mpi(ranks, f"import jax_programs_of_ranks as all\nsys.exit(all.main({ranks} % 3, 3))", begin="import sys, time\n")
    assert code == 0, (out, err)
    assert out.count(": right\n") == 20 * (3 if ranks == 2 else 2) and " 0 wrong" in out


def test_a_small_gpt_on_four_ranks_learns_as_on_one_device():
    """gpt.py by itself trains for 200 steps."""
    one, _ = gpt.train(1, 4)
    code, out, err = mpi(4, "import gpt\ncurve = gpt.train(8, 4)[0]\nif rank == 0: print(*curve)")
    assert code == 0, err
    np.testing.assert_allclose([float(v) for v in out.split()], one, rtol=1e-4)


def test_the_page_of_the_documentation():
    """docs/distributed.md's example, to the letter."""
    page = (pathlib.Path(__file__).parents[2] / "docs/distributed.md").read_text()
    code, out, err = mpi(2, page.split("```python\n")[1].split("```")[0], begin="import sys, time\n")
    assert code == 0, err
    words = out.split()  # lines of two ranks may be mixed
    assert words.count("devices") == 2 and words.count("sum") == 2 and all(out.count(f"rank {rank} of 2 ") == 1 for rank in (0, 1)), out


def test_a_rank_that_raises():
    code, out, err = mpi(2, PROGRAM + "exe = compiled()\nexe(x)\nif rank == 1: raise ValueError('the data is gone')\ntell(exe, x)")
    assert code != 0 and "ValueError: the data is gone" in err
    assert "rank 1 (process" in out and "has ended: ValueError: the data is gone" in out


def test_a_rank_that_is_killed():
    """MPI ends all then; whether the others come to say why before is chance."""
    code, out, err = mpi(4, PROGRAM + "import signal\nexe = compiled()\nexe(x)\nif rank == 2: os.kill(os.getpid(), signal.SIGKILL)\ntell(exe, x)\nprint('on')")
    assert code != 0 and "no error" not in out, (out, err)


def test_programs_that_differ():
    code, out, err = mpi(2, PROGRAM + "tell(compiled(TEXT if rank else TEXT.replace('8xf32', '16xf32')), x if rank else np.zeros(16, np.float32))")
    assert code == 0, err
    assert "rank 1 (process" in out and "rank 0 (process" in out and out.count("runs") == 4


def test_a_rank_that_never_calls_init():
    began = time.monotonic()
    code, out, err = mpi(2, "print('in')", begin="import os, sys, time, xlac\nif int(os.environ['PMI_RANK']) == 1: time.sleep(1000)\nxlac.distributed.init(timeout=1)\n")
    assert code != 0 and "in\n" not in out
    assert "MPI has not started within 1 s: some process of mpiexec has not called init" in err
    assert time.monotonic() - began < SECONDS
