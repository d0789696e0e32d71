"""JAX's own tests on xlac's plugin and on XLA, and where they differ. Nothing of JAX is kept here: fetch its tests yourself,

    git clone --depth 1 --branch jax-v0.10.2 https://github.com/jax-ml/jax
    pip install absl-py hypothesis pytest
    python tests/jax/run_jax_tests.py jax/tests lax_test.py api_test.py [-k EXPRESSION] [--as xlac] [--out FOLDER] [--table FILE]

Modules of the checkout's `jax` that wheels lack (helpers of tests, as `jax/_src/hypothesis_test_util.py`) are found in the checkout.

For each file: what passes with both, what with XLA alone (with the first line of its error), what with xlac alone. `--as cpu` (the default)
has the plugin take the place of XLA's CPU, as JAX's tests want it; `--as xlac` runs them under its own name. `--quick` has XLA run only what
fails with xlac. `--devices 8` gives both eight virtual devices. `--table FILE` writes the counts, and what fails and why, as a page of Markdown;
with `--reports` it does so from the reports of earlier runs in `--out`. The exit status is 0 where all that passes with XLA passes with xlac."""
import argparse
import collections
import os
import pathlib
import re
import resource
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]


# Read by pytest before the tests: the wheel's packages are asked first, the checkout's after them.
LENT = """
import os, pathlib
import jax._src.pallas
for package in (jax._src, jax._src.pallas):
    package.__path__.append(str(pathlib.Path(os.environ["JAX_CHECKOUT"], *package.__name__.split("."))))
"""


def checkout_of(folder):
    """The root of the checkout that a folder of tests is in."""
    tests = next((path for path in (folder, *folder.parents) if path.name == "tests"), folder)
    return tests.parent


def environment(which, name, cases, devices):
    """Of a process of the tests."""
    several = {"JAX_NUM_CPU_DEVICES": str(devices)} if devices > 1 else {}
    env = {**os.environ, **several, "JAX_NUM_GENERATED_CASES": str(cases), "JAX_SKIP_SLOW_TESTS": "1", "JAX_PLATFORMS": "cpu"}
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


def children_seconds():
    """On a CPU, of all threads of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(folder, file, which, args, out, names=()):
    """The outcomes, the seconds it took by the clock and on a CPU, and its exit status; of some tests by their names, or of all."""
    report = (out / f"{file}.{which}.xml").resolve()
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-p", "no:warnings", "-p", "lent_modules"]
    command += [f"--junitxml={report}"]
    command += [node(file, name) for name in names] or [file]
    command += ["-k", args.k] * bool(args.k)
    env = environment(which, args.name, args.cases, args.devices)
    env["JAX_CHECKOUT"] = str(checkout_of(pathlib.Path(folder).resolve()))
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(out.resolve()), env.get("PYTHONPATH")]))
    (out / "lent_modules.py").write_text(LENT)
    start, before = time.perf_counter(), children_seconds()
    with open(out / f"{file}.{which}.log", "w") as log:
        try:
            status = subprocess.run(command, cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT, timeout=args.timeout, check=False).returncode
        except subprocess.TimeoutExpired:
            status = "timeout"
    return outcomes(report) if report.exists() else None, time.perf_counter() - start, children_seconds() - before, status


def node(file, name):
    """What pytest calls the test that its report calls `name`, "tests.lax_test.LaxTest.testAdd"."""
    stem = file.removesuffix(".py") + "."
    if stem not in name:  # the file itself, which could not be read
        return file
    return f"{file}::{name[name.index(stem) + len(stem):].replace('.', '::', 1)}"


def failures(found):
    return [name for name, (outcome, _) in found.items() if outcome == "failed"]


REASONS = 8  # of a file, on the page
Row = collections.namedtuple("Row", "file passed lost gained ours theirs")  # numbers, {test: why}, and seconds (NaN: not known)


def compare(file, ours, theirs, seconds):
    """What XLA passes and xlac does not, with the first line of why. Of what XLA has not run, nothing differs."""
    passed = [name for name, (outcome, _) in theirs.items() if outcome == "passed"]
    lost = {name: ours.get(name, ("missing", ""))[1] for name in passed if ours.get(name, ("missing", ""))[0] != "passed"}
    gained = [name for name, (outcome, _) in ours.items() if outcome == "passed" and theirs.get(name, ("", ""))[0] == "failed"]
    print(f"{file}: XLA passes {len(passed)}, xlac {len(passed) - len(lost)} of them; {len(gained)} pass with xlac alone")
    for name, text in lost.items():
        print(f"  {name}: {text[:200]}")
    return Row(file, len(passed), lost, len(gained), *seconds)


def write_table(path, rows):
    """A page: a row a file, then the tests that fail, by reasons."""
    total = sum(row.passed for row in rows), sum(len(row.lost) for row in rows)
    lines = ["| file | passes on XLA | passes on xlac | seconds on xlac |", "|---|---|---|---|"]
    lines += [f"| {row.file} | {row.passed} | {row.passed - len(row.lost)} | {row.ours:.0f} |" for row in rows]
    lines += [f"| all | {total[0]} | {total[0] - total[1]} ({(total[0] - total[1]) / max(total[0], 1):.2%}) | {sum(row.ours for row in rows):.0f} |", ""]
    for row in rows:
        reasons = collections.defaultdict(list)
        for name, text in row.lost.items():
            reasons[re.sub(r"\b(0x[0-9a-f]+|\d+)\b", "N", text)[:120].replace("|", "/").replace("`", "'")].append(name.rsplit(".", 1)[-1])
        if not reasons:
            continue
        often = sorted(reasons.items(), key=lambda item: -len(item[1]))
        lines += [f"**{row.file}**", ""]
        lines += [f"- {len(names)}: `{text or 'no message'}` ({', '.join(names[:3])}{', ...' * (len(names) > 3)})" for text, names in often[:REASONS]]
        lines += [f"- {sum(len(names) for _, names in often[REASONS:])} others"] * (len(often) > REASONS) + [""]
    path.write_text("\n".join(lines).rstrip() + "\n")


def run_both(file, args):
    """The outcomes of both, and their seconds; None where a process ended without a report."""
    found, took = {}, {"xlac": float("nan"), "xla": float("nan")}
    for which in ("xlac", "xla"):
        names = failures(found["xlac"]) if args.quick and found.get("xlac") else []
        if which == "xla" and args.quick and found.get("xlac") and not names:
            found[which] = found["xlac"]
            break
        found[which], took[which], busy, status = run(args.folder, file, which, args, args.out, names)
        ended = "" if found[which] is not None else f" and ended with status {status}: see {args.out}"
        print(f"{file}: {which} took {took[which]:.0f} s, {busy:.0f} s on a CPU{ended}", flush=True)
    return found, (took["xlac"], took["xla"])


def read_both(file, args):
    """The same of an earlier run. Without a report of XLA's, xlac has passed all."""
    reports = {which: args.out / f"{file}.{which}.xml" for which in ("xlac", "xla")}
    found = {which: outcomes(path) for which, path in reports.items() if path.exists()}
    took = float(next(ElementTree.parse(reports["xlac"]).iter("testsuite")).get("time"))
    return {"xlac": found["xlac"], "xla": found.get("xla", found["xlac"])}, (took, float("nan"))


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
    parser.add_argument("--devices", type=int, default=1, help="virtual devices")
    parser.add_argument("--table", type=pathlib.Path, help="a page of Markdown with the counts and what fails")
    parser.add_argument("--reports", action="store_true", help="nothing is run: what earlier runs have left in --out")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rows, broken = [], 0
    for file in args.files:
        found, seconds = read_both(file, args) if args.reports else run_both(file, args)
        if None in found.values():
            broken += 1
            continue
        if args.quick:
            found["xla"] = {**{name: got for name, got in found["xlac"].items() if got[0] != "failed"}, **found["xla"]}
        rows.append(compare(file, found["xlac"], found["xla"], seconds))
    if args.table:
        write_table(args.table, rows)
    return 1 if broken or any(row.lost for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
