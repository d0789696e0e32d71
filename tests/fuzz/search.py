"""A search with all fuzzers: python tests/fuzz/search.py [--inputs 1000000] [--seed 7] [--log FILE] [--build DIR] [FUZZER...].

Builds the fuzzers in DIR (build/fuzz), and shares the inputs out among them: two fifths go through all stages, interpreter against
compiled among them (hlo, mlir, verify, bytecode, proto), the rest to readers, graphs and shardings. They run in chunks, each from a
seed of its own, in turns; a chunk that FILE has is not run again, so that a search that was stopped goes on. Unlike `run` it goes on
after a finding, puts findings of the same kind together, and keeps the shortest input of each in DIR/findings. What the inputs are
made from are the repository's cases and, where XLAC_CONFORMANCE names a folder of recorded ones, a share of those. At the end come
the random modules of tests/oracle, one for every thousand inputs, where jaxlib is.

`--tree` builds the core of another checkout, such as an old one, where the generators must find what it had: see classes.py."""
import argparse
import collections
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARES = {"mlir": 140, "hlo": 120, "verify": 30, "bytecode": 55, "proto": 55, "reader": 250, "graph": 130, "shard": 120, "lower": 100}
CASES = ["fuzz/corpus/*", "stablehlo/cases/*", "text/cases_mlir/*", "text/cases/*.hlo"]
CHUNK = 10_000
MOST_BYTES = 12_000  # of a recorded case


def recorded(folder, share, to):
    """One in `share` of the recorded programs, as files of their own."""
    to.mkdir(parents=True, exist_ok=True)
    for path in sorted(pathlib.Path(folder).glob("*/*.jsonl.xz")):
        with lzma.open(path, "rt") as lines:
            for number, line in enumerate(lines):
                row = json.loads(line)
                text = next((row[k] for k in ("input", "text") if isinstance(row.get(k), str)), None)
                if number % share == 0 and text and len(text) < MOST_BYTES:
                    (to / f"{path.parent.name}-{path.name.split('.')[0]}-{number}").write_text(text)
    return sorted(map(str, to.iterdir()))


def seeds(build):
    files = [str(f) for pattern in CASES for f in sorted((ROOT / "tests").glob(pattern))]
    if os.environ.get("XLAC_CONFORMANCE"):
        files += recorded(os.environ["XLAC_CONFORMANCE"], 3, build / "seeds")
    return files


def kind_of(log):
    """What two findings of the same fault have in common: the message without numbers, or the first frames of ours."""
    found = re.search(r"finding: (.*)", log)
    if found:
        return re.sub(r"\w+\[[^]]*\]|tensor<[^ ]*|%\S+|'[^']*'|\d+|(?<=_:_ )[\w.]+: ", "_", found[1])[:120]
    error = re.search(r"ERROR: AddressSanitizer: ([\w-]+)|runtime error: ([^\n]*)|(Assertion `.*' failed)", log)
    frames = re.findall(r"#\d+ \S+ in (\w+) \S*?csrc/([\w/]+\.\w+:\d+)", log)
    what = next((g for g in error.groups() if g), "") if error else log.strip()[:100]
    at = re.search(r"csrc/([\w/]+\.\w+:\d+):\d+: runtime error", log)
    where = at[1] if at else " < ".join(f"{f} {p}" for f, p in frames[:2])
    return re.sub(r"0x\w+|-?\d{2,}", "_", what)[:90] + " @ " + where


def run_fuzzer(build, name, count, seed, files, folder, only_mutated=False, environment=None):
    """The inputs that were run, what the fuzzer counted, and by kind of finding (input's place, file)."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    environment = {**os.environ, **(environment or {}), "FUZZ_FINDINGS": str(folder), "FUZZ_COUNT": str(count), **({"FUZZ_MUTATED": "1"} if only_mutated else {})}
    run = subprocess.run([build / f"fuzz_{name}", str(seed), str(10**8), *files], env=environment, cwd=folder, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"fuzz_{name} ended with {run.returncode}: {run.stderr[-2000:]}")
    kinds = collections.defaultdict(list)
    for number, place in dict(re.findall(r"finding (\d+) after (\d+) inputs", run.stdout)).items():
        kinds[kind_of((folder / f"{number}.log").read_text("latin1"))].append((int(place), number))
    for found in kinds.values():
        shortest = min(found, key=lambda f: (folder / f"{f[1]}.input").stat().st_size)[1]
        for _, number in found:
            if number != shortest:
                (folder / f"{number}.input").unlink()
                (folder / f"{number}.log").unlink()
        found.sort(key=lambda f: f[1] != shortest)
    runs = re.search(r"^(\d+) runs$", run.stdout, re.M)
    return int(runs[1]), (run.stdout.splitlines()[-1] if "of them" in run.stdout else "").strip(), kinds


def plan(inputs, seed, names):
    """(fuzzer, seed, inputs) in turns, so that each has had its share at any time."""
    total = sum(SHARES[n] for n in names)
    chunks = []
    for name in names:
        left, number = -(-inputs * SHARES[name] // total), 0
        parts = -(-left // CHUNK)
        for number in range(parts):
            chunks.append(((number + 1) / parts, name, seed * 1000 + number, min(CHUNK, left - number * CHUNK)))
    return [(name, at, count) for _, name, at, count in sorted(chunks, key=lambda c: c[0])]


def done_before(log):
    if not log or not log.exists():
        return {}
    return {(name, int(seed)): (int(runs), int(found)) for name, seed, runs, found in
            re.findall(r"^(\w+) seed (\d+): (\d+) inputs, (\d+) kinds", log.read_text(), re.M)}


def random_modules(count, seed):
    environment = {**os.environ, "XLAC_RANDOM_MODULES": str(count), "XLAC_RANDOM_SEED": str(seed)}
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-o", "addopts=", "--timeout=0", "tests/oracle/test_random_modules.py"]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    return run.returncode, run.stdout.strip().splitlines()[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--keep-build", action="store_true", help="the fuzzers of DIR as they are")
    parser.add_argument("--log", type=pathlib.Path)
    parser.add_argument("fuzzers", nargs="*", default=[], metavar="FUZZER")
    options = parser.parse_args()
    build, names = options.build.resolve(), options.fuzzers or list(SHARES)

    def say(line):
        print(line, flush=True)
        if options.log:
            with options.log.open("a") as log:
                log.write(line + "\n")

    if not options.keep_build:
        subprocess.run([ROOT / "tests/fuzz/run", "0"], env={**os.environ, "XLAC_FUZZ_BUILD": str(build)}, check=True, stdout=subprocess.DEVNULL)
    before, files, totals, found = done_before(options.log), seeds(build), collections.Counter(), 0
    for name, seed, count in plan(options.inputs, options.seed, names):
        if (name, seed) in before:
            totals[name] += before[name, seed][0]
            continue
        start = time.monotonic()
        runs, counted, kinds = run_fuzzer(build, name, count, seed, files, build / "findings" / f"{name}-{seed}", seed % 1000 > 0)
        totals[name] += runs
        found += len(kinds)
        say(f"{name} seed {seed}: {runs} inputs, {len(kinds)} kinds of findings, {time.monotonic() - start:.0f} s {counted}")
        for kind, places in sorted(kinds.items(), key=lambda k: -len(k[1])):
            say(f"  {len(places)} times, first after {min(places)[0]} inputs, {name}-{seed}/{places[0][1]}.input: {kind}")
    say("inputs: " + ", ".join(f"{name} {n}" for name, n in totals.items()) + f"; in all {totals.total()}, {found} kinds of findings")
    if not options.fuzzers:
        status, line = random_modules(max(20, options.inputs // 1000), options.seed)
        say(f"random modules: {line}")
        found += status != 0
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
