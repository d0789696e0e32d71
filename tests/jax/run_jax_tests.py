"""JAX's own tests on xlac's plugin and on XLA, and where they differ. Nothing of JAX is kept here: fetch its tests yourself,

    git clone --depth 1 --branch jax-v0.10.2 https://github.com/jax-ml/jax
    pip install absl-py hypothesis pytest
    python tests/jax/run_jax_tests.py jax/tests lax_test.py api_test.py [-k EXPRESSION] [--as xlac] [--out FOLDER]

For each file: what passes with both, what with XLA alone (with the first line of its error), what with xlac alone. `--as cpu` (the default)
has the plugin take the place of XLA's CPU, as JAX's tests want it; `--as xlac` runs them under its own name. `--quick` has XLA run only what
fails with xlac. The exit status is 0 where all
that passes with XLA passes with xlac, but for what needs several devices, which is counted apart."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEVERAL_DEVICES = re.compile(r"UNIMPLEMENTED: a program for \d+ devices")


def environment(which, name, cases):
    env = {**os.environ, "JAX_NUM_GENERATED_CASES": str(cases), "JAX_SKIP_SLOW_TESTS": "1", "JAX_PLATFORMS": "cpu"}
    env.pop("XLAC_JAX_AS_CPU", None)
    if which == "xlac":
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "python"), env.get("PYTHONPATH")]))
        env["JAX_PLATFORMS"] = "cpu" if name == "cpu" else "xlac,cpu"
        if name == "cpu":
            env["XLAC_JAX_AS_CPU"] = "1"
    return env


def outcomes(report):
    """{test: (outcome, first line of its message)}"""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        bad = next((child for child in case if child.tag in ("failure", "error")), None)
        skipped = case.find("skipped") is not None
        text = (bad.get("message") or "").splitlines()[0] if bad is not None and bad.get("message") else ""
        found[f"{case.get('classname')}.{case.get('name')}"] = ("failed" if bad is not None else "skipped" if skipped else "passed", text)
    return found


def run(folder, file, which, args, out, names=()):
    """The outcomes, the seconds it took, and its exit status; of some tests by their names, or of all."""
    report = (out / f"{file}.{which}.xml").resolve()
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-p", "no:warnings", f"--junitxml={report}"]
    command += [node(file, name) for name in names] or [file]
    command += ["-k", args.k] * bool(args.k)
    start = time.perf_counter()
    with open(out / f"{file}.{which}.log", "w") as log:
        try:
            status = subprocess.run(command, cwd=folder, env=environment(which, args.name, args.cases), stdout=log, stderr=subprocess.STDOUT,
                                    timeout=args.timeout, check=False).returncode
        except subprocess.TimeoutExpired:
            status = "timeout"
    return outcomes(report) if report.exists() else None, time.perf_counter() - start, status


def node(file, name):
    """What pytest calls the test that its report calls `name`, "tests.lax_test.LaxTest.testAdd"."""
    stem = file.removesuffix(".py") + "."
    return f"{file}::{name[name.index(stem) + len(stem):].replace('.', '::', 1)}"


def failures(found):
    return [name for name, (outcome, _) in found.items() if outcome == "failed"]


def compare(file, ours, theirs):
    """Prints the differences; how many tests XLA alone passes, several devices apart. Of what XLA has not run, nothing differs."""
    passed = [name for name, (outcome, _) in theirs.items() if outcome == "passed"]
    lost = [(name, ours.get(name, ("missing", ""))[1]) for name in passed if ours.get(name, ("missing", ""))[0] != "passed"]
    several = [name for name, text in lost if SEVERAL_DEVICES.search(text)]
    gained = [name for name, (outcome, _) in ours.items() if outcome == "passed" and theirs.get(name, ("", ""))[0] == "failed"]
    print(f"{file}: XLA passes {len(passed)}, xlac {len(passed) - len(lost)} of them; {len(several)} need several devices; {len(gained)} pass with xlac alone")
    for name, text in lost:
        if name not in several:
            print(f"  {name}: {text[:200]}")
    return len(lost) - len(several)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="jax/tests of a checkout")
    parser.add_argument("files", nargs="+")
    parser.add_argument("-k", help="as pytest's -k")
    parser.add_argument("--as", dest="name", choices=["cpu", "xlac"], default="cpu")
    parser.add_argument("--cases", type=int, default=3, help="JAX_NUM_GENERATED_CASES")
    parser.add_argument("--quick", action="store_true", help="XLA runs only what fails with xlac")
    parser.add_argument("--timeout", type=int, default=3600, help="seconds for a file")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/jax"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    worse = 0
    for file in args.files:
        found = {}
        for which in ("xlac", "xla"):
            names = failures(found["xlac"]) if args.quick and found.get("xlac") else []
            if which == "xla" and args.quick and found.get("xlac") and not names:
                found[which] = found["xlac"]
                break
            found[which], seconds, status = run(args.folder, file, which, args, args.out, names)
            ended = "" if found[which] is not None else f" and ended with status {status}: see {args.out}"
            print(f"{file}: {which} took {seconds:.0f} s{ended}", flush=True)
        if args.quick and None not in found.values():
            found["xla"] = {**{name: got for name, got in found["xlac"].items() if got[0] != "failed"}, **found["xla"]}
        if None in found.values():
            worse += 1
        else:
            worse += compare(file, found["xlac"], found["xla"])
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
