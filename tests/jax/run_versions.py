"""The tests of an unchanged JAX on the plugin (tests/pjrt/test_jax*.py) with several versions of jaxlib, each in a virtual environment of its own.

    python tests/jax/run_versions.py                 # the newest of each minor version that the plugin knows
    python tests/jax/run_versions.py 0.9.0 0.10.1    # these

The environments stay in build/jax-versions (--folder) for the next time. The exit status is 0 where all tests pass with all versions."""
import argparse
import os
import pathlib
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "tests/pjrt").glob("test_jax*.py"))


def python_with(version, folder):
    """A Python that has jax of this version."""
    where = folder / version
    python = where / "bin/python"
    if not python.exists():
        venv.create(where, with_pip=True, clear=True)
    wanted = [f"jax=={version}", f"jaxlib=={version}", "numpy", "pytest", "scipy-openblas32"]
    subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True)
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", default=["0.9.*", "0.10.*", "0.11.*", "0.12.*"])
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/jax-versions")
    args = parser.parse_args()
    failed = []
    for version in args.versions:
        try:
            python = python_with(version, args.folder.resolve())
        except subprocess.CalledProcessError:
            print(f"jax {version}: NOT INSTALLED; it may need another Python than {sys.version.split()[0]}", flush=True)
            failed.append(version)
            continue
        env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        done = subprocess.run([python, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", "tests", "-p", "no:cacheprovider", *TESTS], cwd=ROOT, env=env,
                              check=False)
        print(f"jax {version}: {'passes' if done.returncode == 0 else 'FAILS'}", flush=True)
        failed += [version] * (done.returncode != 0)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
