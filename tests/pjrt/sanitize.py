"""The plugin under a sanitizer, driven from many threads (driver.c):

    python tests/pjrt/sanitize.py thread [THREADS [TURNS [DEVICES]]]
    python tests/pjrt/sanitize.py address

The sanitizer watches the rooms pjrt, runtime, api and spmd, which are compiled for it; the others are taken from the objects of the build in place,
and compiled without it where there are none, or older ones. With several DEVICES, programs of all of them run, too. Needs clang, or $SANITIZE_CC."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WATCHED = ("pjrt", "runtime", "api", "spmd")
HEADERS = max(path.stat().st_mtime for path in (ROOT / "csrc").glob("**/*.[hd]*"))  # what any source may include
FLAGS = {"thread": ["-fsanitize=thread"], "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]}


def compile_one(compiler, flags, source, out):
    target = out / (source.relative_to(ROOT).as_posix().replace("/", "_") + ".o")
    if not target.exists() or target.stat().st_mtime < max(source.stat().st_mtime, HEADERS):
        subprocess.run([*compiler, *flags, "-std=gnu11", "-O1", "-g", "-UNDEBUG", "-fno-omit-frame-pointer", "-fvisibility=hidden", "-DPJRT_LINKED", "-I",
                        ROOT / "csrc/include", "-c", source, "-o", target], check=True)
    return target


def built_object(source):
    """Of the build in place; None where it has none of this source."""
    found = (folder / source.relative_to(ROOT).with_suffix(".o") for folder in (ROOT / "build").glob("temp.*"))
    return next((path for path in found if path.exists() and path.stat().st_mtime >= source.stat().st_mtime), None)


def main():
    which = sys.argv[1] if len(sys.argv) > 1 else ""
    if which not in FLAGS:
        sys.exit(__doc__)
    threads, turns, devices = (sys.argv[2:] + ["8", "40", "1"][len(sys.argv[2:]):])[:3]
    compiler, out = os.environ.get("SANITIZE_CC", "clang").split(), ROOT / "build" / f"pjrt-{which}"
    out.mkdir(parents=True, exist_ok=True)
    rest = [path for path in sorted((ROOT / "csrc").glob("*/**/*.c")) if path.relative_to(ROOT / "csrc").parts[0] not in (*WATCHED, "py")]
    own = [path for room in WATCHED for path in sorted((ROOT / "csrc" / room).glob("**/*.c"))] + [ROOT / "tests/pjrt/driver.c"]
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("XLAC_JOBS", os.cpu_count() or 1))) as pool:
        objects = list(pool.map(lambda path: compile_one(compiler, FLAGS[which], path, out), own))
        objects += pool.map(lambda path: built_object(path) or compile_one(compiler, [], path, out), rest)
    driver = out / "driver"
    subprocess.run([*compiler, *FLAGS[which], *objects, "-o", driver, "-lm", "-lpthread", "-ldl"], check=True)
    env = {**os.environ, "TSAN_OPTIONS": "halt_on_error=0 exitcode=66", "ASAN_OPTIONS": "detect_leaks=1"}
    sys.exit(subprocess.run([driver, "-", threads, turns, devices], env=env, check=False).returncode)


if __name__ == "__main__":
    main()
