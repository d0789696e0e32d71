"""Builds xlac._core: one shared object of every C file under csrc/. Metadata is in pyproject.toml.

Switches, by environment: XLAC_DEBUG=1 (-O0 with asserts), XLAC_SANITIZE=1 (address and undefined-behaviour sanitizers),
XLAC_COVERAGE=1 (gcov), XLAC_WERROR=1 (warnings are errors), XLAC_JOBS=n (compilations at a time)."""
import os
import pathlib
import shutil
from concurrent.futures import ThreadPoolExecutor

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent
FOLDERS = ("base", "ir", "interp", "text", "stablehlo", "opt", "async", "shard", "cluster", "lower", "kernel", "plan", "cpu",
           "session", "api", "py")
HEADERS = ("xlac.h", "xlac_ffi.h")


def switch(name):
    return os.environ.get(f"XLAC_{name}", "") not in ("", "0")


def cpus():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sources():
    found = [path for folder in FOLDERS for path in sorted((ROOT / "csrc" / folder).glob("*.c"))]
    return [str(path.relative_to(ROOT)) for path in found]


def compile_flags():
    flags = ["-std=gnu11", "-fvisibility=hidden", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-ffp-contract=off", "-Wall",
             "-Wextra"]
    flags += ["-O0", "-g", "-UNDEBUG"] if switch("DEBUG") or switch("COVERAGE") else ["-O3", "-g1"]
    if switch("SANITIZE"):
        flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g",
                  "-UNDEBUG"]
    if switch("COVERAGE"):
        flags += ["--coverage"]
    if switch("WERROR"):
        flags += ["-Werror"]
    if switch("PARTIAL"):
        flags += ["-DXLAC_PARTIAL"]
    return flags


def link_flags():
    flags = ["-lm", "-lpthread", "-ldl"]
    if switch("SANITIZE"):
        flags += ["-fsanitize=address,undefined"]
    if switch("COVERAGE"):
        flags += ["--coverage"]
    return flags


def numpy_include():
    import numpy

    return numpy.get_include()


class BuildExt(build_ext):
    """Compiles the files of an extension at the same time, then links what it finds compiled."""

    def build_extension(self, ext):
        compile_one, jobs = self.compiler.compile, int(os.environ.get("XLAC_JOBS", 0)) or cpus()

        def compile_all(files, *args, **kwargs):
            with ThreadPoolExecutor(jobs) as pool:
                parts = list(pool.map(lambda file: compile_one([file], *args, **kwargs), files))
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
            include_dirs=["csrc/include", numpy_include()],
            extra_compile_args=compile_flags(),
            extra_link_args=link_flags(),
        )
    ],
)
