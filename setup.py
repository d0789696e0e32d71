"""Builds xlac._core: one shared object of every C file under csrc/. Metadata is in pyproject.toml.

Switches, by environment: XLAC_DEBUG=1 (-O0 with asserts and symbols), XLAC_SANITIZE=1 (address and undefined-behaviour sanitizers),
XLAC_COVERAGE=1 (gcov), XLAC_WERROR=1 (warnings are errors), XLAC_JOBS=n (compilations at a time)."""
import os
import pathlib
import shutil
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent
HEADERS = ("xlac.h", "xlac_ffi.h")
# How hard the compiler tries, by the first path of csrc/ that a file's begins with; measured with benchmarks/build.py.
CLANG = "clang" in (os.environ.get("CC") or sysconfig.get_config_var("CC") or "")  # which has no switch for loops
LOOPS, FEW_COPIES, SMALL, QUICK, PLAIN = "-O3", "-O2", "-Os", "-O1", "-O2 -fno-align-functions" + " -fno-align-loops" * (not CLANG)
LEVELS = {
    "cpu/reduce/arg_loops": FEW_COPIES,  # a third of the size, and no slower; FFTs at -O2 are, by a third
    **dict.fromkeys(("cpu/", "interp/algorithm/"), LOOPS),  # loops over elements, and what calls them
    **dict.fromkeys(("interp/parallel/", "interp/custom_call/", "kernel/", "pipeline/", "convert/", "text/proto/", "tf/session/",
                     "tf/encapsulate/"), SMALL),
    "interp/": PLAIN,
    **dict.fromkeys(("scalar/", "runtime/", "base/"), LOOPS),  # functions and conversions of elements are inlined into loops
    "tf/lower/": QUICK,  # TensorFlow's ops, lowered once a compilation: two thirds of the time to build
    **dict.fromkeys((f"passes/{part}/" for part in ("async", "chlo", "loops", "quant", "refine", "stablehlo")), SMALL),
    **dict.fromkeys((f"shard/{part}/" for part in ("explain", "export", "import", "local", "round_trip")), SMALL),
    **dict.fromkeys((f"py/{part}" for part in ("arrays", "buffer", "call", "dlpack", "executable", "lanes", "work")), PLAIN),
    "py/": SMALL,
    "": PLAIN,  # readers, printers, verifiers, passes: as fast as at -O3; -O1 costs MLIR text 15 %
}


def switch(name):
    return os.environ.get(f"XLAC_{name}", "") not in ("", "0")


def unoptimised():
    return switch("DEBUG") or switch("COVERAGE")


def cpus():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sources():
    return [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "csrc").glob("*/**/*.c"))]


def level(file):
    return [] if unoptimised() else next(LEVELS[prefix] for prefix in LEVELS if file.startswith("csrc/" + prefix)).split()


def compile_flags():
    flags = ["-std=gnu11", "-fvisibility=hidden", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-ffp-contract=off", "-Wall",
             "-Wextra"]
    flags += ["-O0", "-g", "-UNDEBUG"] if unoptimised() else ["-g0", "-fno-asynchronous-unwind-tables"]
    if switch("SANITIZE"):
        flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g1",
                  "-fasynchronous-unwind-tables", "-UNDEBUG"]
    flags += ["--coverage"] * switch("COVERAGE") + ["-Werror"] * switch("WERROR") + ["-DXLAC_PARTIAL"] * switch("PARTIAL")
    return flags


def link_flags():
    flags = ["-lm", "-lpthread", "-ldl"]
    if switch("SANITIZE"):
        flags += ["-fsanitize=address,undefined"]
    elif not unoptimised():
        flags += ["-Wl,-S" if sys.platform == "darwin" else "-Wl,-s"]  # no symbols but the exported ones
    return flags + ["--coverage"] * switch("COVERAGE")


class BuildExt(build_ext):
    """Compiles the files of an extension at the same time, then links what it finds compiled."""

    def build_extension(self, ext):
        compile_one, jobs = self.compiler.compile, int(os.environ.get("XLAC_JOBS", 0)) or cpus()

        def compile_all(files, *, extra_postargs, **kwargs):
            with ThreadPoolExecutor(jobs) as pool:
                parts = list(pool.map(lambda f: compile_one([f], extra_postargs=extra_postargs + level(f), **kwargs), files))
            return [obj for part in parts for obj in part]

        self.compiler.compile = compile_all
        try:
            super().build_extension(ext)
        finally:
            self.compiler.compile = compile_one


class BuildPy(build_py):
    """Ships the public headers inside the package."""

    def run(self):
        super().run()
        target = pathlib.Path(self.build_lib, "xlac", "include")
        if not self.editable_mode:
            target.mkdir(parents=True, exist_ok=True)
            for name in HEADERS:
                shutil.copyfile(ROOT / "csrc" / "include" / name, target / name)


setup(
    cmdclass={"build_ext": BuildExt, "build_py": BuildPy},
    ext_modules=[
        Extension(
            "xlac._core",
            sources(),
            depends=[str(p.relative_to(ROOT)) for p in sorted((ROOT / "csrc").rglob("*.*")) if p.suffix in (".h", ".def")],
            include_dirs=["csrc/include", numpy.get_include()],
            extra_compile_args=compile_flags(),
            extra_link_args=link_flags(),
        )
    ],
)
