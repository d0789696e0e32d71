"""Libraries on JAX, unchanged, on xlac and on XLA side by side: what they compute, and how long it takes.

    python tests/jax/run_clients.py             # all of tests/jax/clients
    python tests/jax/run_clients.py gpt resnet  # some

Each program of the folder has a main() that gives numbers by name, and TOLERANCE, how far these may be apart, as a
fraction of the largest one of a name. It is run in a process of its own with each backend. Programs whose libraries are not installed are
left out. Needs jax and, for all of them, flax optax equinox diffrax numpyro blackjax distrax jaxopt dm-haiku penzai
orbax-checkpoint e3nn-jax jax-md optimistix lineax jaxtyping brax mctx rlax ott-jax tinygp jraph flowjax dynamax chex evosax tfp-nightly.
"""
import argparse
import importlib.util
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import time

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent / "clients"
PYTHON = FOLDER.parents[2] / "python"
MISSING = 77  # exit status of a program whose library is not there


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def work(name, out):
    """In the process of one program."""
    try:
        module = load(name)
    except ImportError as e:
        print(e)
        sys.exit(MISSING)
    start = time.perf_counter(), time.process_time()
    found = {key: np.asarray(value) for key, value in module.main().items()}
    took = time.perf_counter() - start[0], time.process_time() - start[1]
    pathlib.Path(out).write_bytes(pickle.dumps((found, took, module.TOLERANCE)))


def run(name, platform, timeout):
    """Numbers by name, (seconds, CPU seconds) and tolerance; or the text of what went wrong; or None for what is not installed."""
    env = {**os.environ, "JAX_PLATFORMS": platform, "PYTHONPATH": os.pathsep.join([str(PYTHON), os.environ.get("PYTHONPATH", "")])}
    with tempfile.NamedTemporaryFile() as out:
        try:
            done = subprocess.run([sys.executable, __file__, "--work", name, "--out", out.name], env=env, capture_output=True, text=True,
                                  timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            return f"did not end within {timeout} s"
        if done.returncode == MISSING:
            return None
        if done.returncode:
            return f"status {done.returncode}: {done.stderr.strip()[-3000:]}"
        return pickle.loads(pathlib.Path(out.name).read_bytes())


def differences(ours, theirs, tolerance):
    """(name, what is different) of each."""
    for key in sorted(set(ours) | set(theirs)):
        if key not in ours or key not in theirs or ours[key].shape != theirs[key].shape:
            yield key, "is not there, or of another shape"
            continue
        x, y = (np.asarray(v, np.float64) for v in (ours[key], theirs[key]))
        if not np.array_equal(np.isfinite(x), np.isfinite(y)):
            yield key, "is not finite at the same places"
            continue
        largest = np.max(np.abs(y), initial=1e-30, where=np.isfinite(y))
        apart = np.max(np.abs(x - y), initial=0, where=np.isfinite(y)) / largest
        if apart > tolerance:
            yield key, f"{apart:.2g} apart, as a fraction of {largest:.3g}; at most {tolerance:g} is expected"


def compare(name, timeout):
    """True where both give the same."""
    ours = run(name, "xlac", timeout)
    if ours is None:
        print(f"{name}: left out, for its libraries are not installed")
        return True
    theirs = run(name, "cpu", timeout)
    for which, got in (("xlac", ours), ("XLA", theirs)):
        if isinstance(got, str):
            print(f"{name}: {which}: {got}")
            return False
    wrong = list(differences(ours[0], theirs[0], ours[2]))
    print(f"{name}: {'differs' if wrong else 'the same'}; xlac took {ours[1][0]:.1f} s ({ours[1][1]:.1f} of CPUs), XLA {theirs[1][0]:.1f} s "
          f"({theirs[1][1]:.1f})", flush=True)
    for key, text in wrong:
        print(f"  {key}: {text}")
    return not wrong


def main():
    names = sorted(p.stem for p in FOLDER.glob("*.py"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(names)}")
    parser.add_argument("--timeout", type=int, default=1200, help="seconds for a program on one backend")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    args = parser.parse_args()
    unknown = set(args.names) - set(names)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if args.work:
        return work(args.work, args.out)
    return 1 if sum(not compare(name, args.timeout) for name in args.names or names) else 0


if __name__ == "__main__":
    sys.exit(main())
