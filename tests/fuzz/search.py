"""A long search with the fuzzers that go through all stages: python tests/fuzz/search.py BUILD COUNT [SEED [FUZZER...]].

BUILD is the folder of fuzzers that `XLAC_FUZZ_BUILD=BUILD tests/fuzz/run 0` leaves. Unlike `run` it goes on after
a finding, puts findings of the same kind together, and keeps the shortest input of each in BUILD/findings/FUZZER. The inputs to
begin with are the repository's cases and, where XLAC_CONFORMANCE names a folder of recorded ones, a share of those."""
import collections
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FUZZERS = ["hlo", "mlir", "bytecode", "proto", "verify"]
CASES = ["fuzz/corpus/*", "stablehlo/cases/*", "text/cases_mlir/*", "text/cases/*.hlo"]
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


def search(build, name, count, seed, files):
    folder = build / "findings" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    environment = {**os.environ, "FUZZ_FINDINGS": str(folder), "FUZZ_COUNT": str(count)}
    run = subprocess.run([build / f"fuzz_{name}", str(seed), str(10**8), *files], env=environment, cwd=folder, capture_output=True, text=True)
    places = dict(re.findall(r"finding (\d+) after (\d+) inputs", run.stdout))
    kinds = collections.defaultdict(list)
    for number, place in places.items():
        kinds[kind_of((folder / f"{number}.log").read_text("latin1"))].append((int(place), number))
    print(f"{name}: " + " ".join(line for line in run.stdout.splitlines() if not line.startswith("finding")))
    for kind, found in sorted(kinds.items(), key=lambda k: -len(k[1])):
        shortest = min(found, key=lambda f: (folder / f"{f[1]}.input").stat().st_size)[1]
        print(f"  {len(found)} times, first after {min(found)[0]} inputs, {shortest}.input: {kind}")
        for _, number in found:
            if number != shortest:
                (folder / f"{number}.input").unlink()
                (folder / f"{number}.log").unlink()
    return len(kinds)


def main(build, count, seed="1", *names):
    build = pathlib.Path(build).resolve()
    files = [str(f) for pattern in CASES for f in sorted((ROOT / "tests").glob(pattern))]
    if os.environ.get("XLAC_CONFORMANCE"):
        files += recorded(os.environ["XLAC_CONFORMANCE"], 3, build / "seeds")
    return sum(search(build, name, count, seed, files) for name in names or FUZZERS)


if __name__ == "__main__":
    sys.exit(1 if main(*sys.argv[1:]) else 0)
