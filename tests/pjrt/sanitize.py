"""The plugin under a sanitizer, driven from many threads (driver.c):

    python tests/pjrt/sanitize.py thread [THREADS [TURNS]]
    python tests/pjrt/sanitize.py address

The sanitizer watches the rooms pjrt, runtime and api, which are compiled for it; what they call comes from the objects of the build in place
(XLAC_DEV=1 python setup.py build_ext --inplace), which must be there, file by file. Needs clang, or $SANITIZE_CC."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WATCHED = ("pjrt", "runtime", "api")
FLAGS = {"thread": ["-fsanitize=thread"], "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]}


def compile_one(compiler, flags, source, out):
    target = out / (source.relative_to(ROOT).as_posix().replace("/", "_") + ".o")
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        subprocess.run([*compiler, *flags, "-std=gnu11", "-O1", "-g", "-UNDEBUG", "-fno-omit-frame-pointer", "-fvisibility=hidden", "-DPJRT_LINKED", "-I",
                        ROOT / "csrc/include", "-c", source, "-o", target], check=True)
    return target


def main():
    which = sys.argv[1] if len(sys.argv) > 1 else ""
    if which not in FLAGS:
        sys.exit(__doc__)
    threads, turns = (sys.argv[2:] + ["8", "40"][len(sys.argv[2:]):])[:2]
    compiler, out = os.environ.get("SANITIZE_CC", "clang").split(), ROOT / "build" / f"pjrt-{which}"
    out.mkdir(parents=True, exist_ok=True)
    own = [path for room in WATCHED for path in sorted((ROOT / "csrc" / room).glob("**/*.c"))] + [ROOT / "tests/pjrt/driver.c"]
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("XLAC_JOBS", os.cpu_count() or 1))) as pool:
        objects = list(pool.map(lambda path: compile_one(compiler, FLAGS[which], path, out), own))
    built = next((ROOT / "build").glob("temp.*"), None)
    others = [built / path.relative_to(ROOT).with_suffix(".o") for path in sorted((ROOT / "csrc").glob("*/**/*.c"))
              if path.relative_to(ROOT / "csrc").parts[0] not in (*WATCHED, "py")] if built else []
    missing = [str(path) for path in others if not path.exists()]
    if missing or not others:
        sys.exit(f"build first, in place: XLAC_DEV=1 python setup.py build_ext --inplace ({missing[:3]} are not there)")
    driver = out / "driver"
    subprocess.run([*compiler, *FLAGS[which], *objects, *others, "-o", driver, "-lm", "-lpthread", "-ldl"], check=True)
    env = {**os.environ, "TSAN_OPTIONS": "halt_on_error=0 exitcode=66", "ASAN_OPTIONS": "detect_leaks=1"}
    sys.exit(subprocess.run([driver, "-", threads, turns], env=env, check=False).returncode)


if __name__ == "__main__":
    main()
