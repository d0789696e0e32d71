"""Scripts with an unchanged JAX on the plugin, in processes of their own, since a process has its platforms for good."""
import os
import pathlib
import subprocess
import sys
import textwrap

import xlac


def run(script, **environment):
    """What the script prints."""
    where = str(pathlib.Path(xlac.__file__).resolve().parents[1])  # the package that is tested, installed or in place
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([where, os.environ.get("PYTHONPATH", "")]), "JAX_PLATFORMS": "xlac", **environment}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [line.replace("PartitionSpec(", "P(") for line in done.stdout.splitlines()]  # jax 0.9.0 prints its whole name
