"""What building costs: CPU seconds of the compiler by folder of csrc/, the files that take longest, and sizes.

  python benchmarks/build.py [--jobs 2] [--groups] [--only text/ cpu/fft] [--flags "-O1"] [--top 12]

Each file is compiled as setup.py compiles it in place (or with --flags instead of its optimisation level), with gcc unless CC says otherwise,
without ccache; with --groups, several together, as setup.py compiles them for an installation. Seconds are user and system time of the compiler, which other work on the machine changes less than it does the clock's. KB are code and
data of the object files."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sysconfig
import tempfile
from unittest import mock

import numpy
import setuptools

ROOT = pathlib.Path(__file__).resolve().parents[1]
os.chdir(ROOT)


def read_setup():
    """The names of setup.py, which sets nothing up."""
    names = {"__file__": str(ROOT / "setup.py"), "__name__": "setup"}
    with mock.patch.object(setuptools, "setup"):
        exec(compile((ROOT / "setup.py").read_text(), "setup.py", "exec"), names)
    return names


def compile_one(file, flags, folder):
    output = pathlib.Path(folder, file.strip("/").replace("/", "_") + ".o")
    includes = ["-Icsrc/include", "-I" + numpy.get_include(), "-I" + sysconfig.get_paths()["include"]]
    child = subprocess.Popen([*shlex.split(os.environ.get("CC", "gcc")), "-fPIC", "-DNDEBUG", *flags, *includes, "-c", file, "-o", output])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        raise SystemExit(f"{file} doesn't compile")
    text, data = subprocess.run(["size", output], capture_output=True, text=True, check=True).stdout.split("\n")[1].split()[:2]
    output.unlink()
    return str(file), usage.ru_utime + usage.ru_stime, int(text) + int(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--groups", action="store_true")
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("--flags")
    parser.add_argument("--top", type=int, default=12)
    options = parser.parse_args()
    names = read_setup()
    files = [f for f in names["sources"]() if any(f.startswith("csrc/" + only) for only in options.only)]
    common = names["compile_flags"]()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        flags = [common + (shlex.split(options.flags) if options.flags else names["level"](f)) for f in files]
        if options.groups:
            groups = [names["write_group"](folder, group) for group in names["groups"](files)]
            files, flags = [file for file, _ in groups], [common + own for _, own in groups]
        rows = list(pool.map(lambda f, own: compile_one(f, own, folder), files, flags))
    rooms = {}
    for file, seconds, size in rooms_of(rows):
        total = rooms.setdefault(file, [0, 0, 0])
        total[0], total[1], total[2] = total[0] + 1, total[1] + seconds, total[2] + size
    print(f"{'folder':12} {'files':>5} {'CPU s':>7} {'KB':>7}")
    for room, (n, seconds, size) in sorted(rooms.items(), key=lambda item: -item[1][1]):
        print(f"{room:12} {n:5} {seconds:7.1f} {size / 1000:7.0f}")
    print(f"{'all':12} {len(rows):5} {sum(r[1] for r in rows):7.1f} {sum(r[2] for r in rows) / 1000:7.0f}")
    for file, seconds, size in sorted(rows, key=lambda row: -row[1])[:options.top]:
        print(f"  {file:40} {seconds:6.2f} {size / 1000:7.0f}")
    for library in sorted((ROOT / "python/xlac").glob("*.so")):
        print(f"{library.name}: {library.stat().st_size / 1e6:.2f} MB")


def rooms_of(rows):
    return [(re.search(r"csrc[/_]([^/_]+)", file).group(1), seconds, size) for file, seconds, size in rows]


if __name__ == "__main__":
    main()
