"""Builds xlac/libxlac.so, the core: every C file under csrc/ but those of csrc/py and csrc/pjrt; and two small libraries that load it from the
folder they lie in: xlac._core, Python's extension, and xlac/_pjrt.so, the PJRT plugin. Metadata is in pyproject.toml.

Switches, by environment: XLAC_DEBUG=1 (-O0 with asserts and symbols), XLAC_SANITIZE=1 (address and undefined-behaviour sanitizers),
XLAC_COVERAGE=1 (gcov), XLAC_WERROR=1 (warnings are errors), XLAC_JOBS=n (compilations at a time), XLAC_PORTABLE=1 (for older C
libraries than that here: wheels), XLAC_DEV=1 (file by file, as in place: what changed is compiled again by itself)."""
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor

import numpy
import setuptools
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent
HEADERS = ("xlac.h", "xlac_ffi.h", "xlac_network.h")
CORE, SHARED = "xlac.libxlac", sys.platform.startswith("linux")
# How hard the compiler tries, by the first path of csrc/ that a file's begins with; measured with benchmarks/build.py.
CLANG = "clang" in (os.environ.get("CC") or sysconfig.get_config_var("CC") or "")  # which has no switch for loops
LOOPS, FEW_COPIES, SMALL, PLAIN = "-O3", "-O2", "-Os", "-O2 -fno-align-functions"
VECTORS = FEW_COPIES + " -fvect-cost-model=dynamic" * (not CLANG)  # vectors as at -O3, but loops are not unrolled and copied
ONE_TAIL = " --param vect-epilogues-nomask=0" * (not CLANG)  # what a vector leaves goes one by one, not by half a vector first: a fifth less
ONE_COPY = LOOPS + " -fno-unswitch-loops -fno-split-loops -fno-version-loops-for-strides" * (not CLANG)
ONCE = LOOPS + " -fno-inline-functions" * (not CLANG)  # what is not said to be inlined and called from several places is there once
TEXT = PLAIN + " -fno-align-loops" * (not CLANG)
if not CLANG:  # what is small or called once is inlined all the same
    PLAIN = TEXT + " -fno-align-jumps -fno-align-labels -fno-inline-functions"
# Structs of a call are cleared by the C library: gcc's own "rep stos" takes four times as long for some hundred bytes.
CALLS = LOOPS + " -mmemset-strategy=libcall:-1:noalign" * (not CLANG and sysconfig.get_platform().endswith("x86_64"))  # of what is built for
LEVELS = {
    "cpu/call.c": CALLS,
    "tf/graph/tf_text": PLAIN,  # what people look at
    "text/hlo/print": LOOPS,  # what prints strings and names is inlined: 4 % less instructions for a text
    **dict.fromkeys(("text/proto/wire", "tf/graph/", "tf/cluster/"), LOOPS),  # the small loops of clustering
    **dict.fromkeys(("text/hlo/", "ir/verify", "ir/module", "ir/names"), FEW_COPIES),  # what every op of a text goes through
    **dict.fromkeys(("cpu/conv/conv_direct", "cpu/conv/conv_pad"), FEW_COPIES),  # loops that matter are spelled out
    "cpu/reduce/arg_loops": FEW_COPIES,  # a third of the size, and no slower; FFTs at -O2 are, by a third
    # Each turn waits for the one before: a loop of 20 bytes over two lines of 64 takes half as long again (measured).
    **dict.fromkeys(("cpu/window/window_scan", "cpu/vm/vm_scan"), LOOPS + " -falign-loops=32"),
    "cpu/fft/fft_lanes": ONE_COPY,
    "cpu/vm/vm_fast": ONCE,  # the ends of folds, and loops that are the same
    **dict.fromkeys(("cpu/native/cycle", "cpu/native/emit_spread", "cpu/native/flatten"), SMALL),
    **dict.fromkeys([f"cpu/native/{part}" for part in
                     ("body", "emit", "loop", "lower", "masks", "saved", "store", "x86")], PLAIN),  # a compiler
    "cpu/threaded/list.c": PLAIN,  # what it writes is run by others
    # Of a compilation, or a step's choice of what to do, not its loops.
    **dict.fromkeys([f"cpu/{part}" for part in ("collective", "conv/conv.c", "eval", "executable", "profile", "turns")], PLAIN),
    "cpu/loop/": SMALL,
    **dict.fromkeys(("cpu/linalg/lapack", "cpu/linalg/factor"), SMALL),  # calls of a library
    "cpu/linalg/small": PLAIN,
    "cpu/vm/vm_fold.c": PLAIN,  # for CPUs without AVX2
    # A third to a half of the size of -O3, and within 3 % of its speed.
    **dict.fromkeys(("cpu/tridiagonal", "cpu/window/window_rows", "cpu/window/window_select", "cpu/gemm/dot_pack", "cpu/vm/vm_block"), VECTORS),
    # Functions that are called: machine code and loops have those that matter inlined. Pairs of registers made one go through memory.
    "base/math/math.c": PLAIN + " -fno-tree-slp-vectorize",
    "base/number/convert.c": VECTORS + ONE_TAIL,
    # Where there are such vectors, machine code has most of these ops.
    **dict.fromkeys((f"scalar/loops/loops_{part}_avx" for part in ("float", "int")), LOOPS + ONE_TAIL),
    **dict.fromkeys(("cpu/", "interp/algorithm/"), LOOPS),  # loops over elements, and what calls them
    **dict.fromkeys(("interp/parallel/", "interp/custom_call/", "kernel/", "pipeline/", "convert/", "text/proto/", "tf/session/",
                     "tf/encapsulate/"), SMALL),
    "interp/": PLAIN,
    "runtime/net/": SMALL,
    "base/file": PLAIN,
    **dict.fromkeys(("driver/cache", "driver/compile", "runtime/communicator", "runtime/device"), SMALL),  # locks, lists, calls
    **dict.fromkeys(("scalar/", "runtime/", "base/"), LOOPS),  # functions and conversions of elements are inlined into loops
    "tf/lower/": SMALL,  # TensorFlow's ops, lowered once a compilation
    **dict.fromkeys((f"passes/{part}/" for part in ("async", "chlo", "loops", "quant", "refine", "stablehlo")), SMALL),
    **dict.fromkeys((f"shard/{part}/" for part in ("explain", "export", "import", "local", "round_trip")), SMALL),
    **dict.fromkeys((f"ir/{part}/" for part in ("check", "verify", "stablehlo", "sdy")), SMALL),
    **dict.fromkeys(("api/", "pjrt/", "cuda/", "spmd/", "text/bytecode/"), SMALL),
    "shard/": FEW_COPIES,  # propagation is 5 % slower without copies and alignment
    **dict.fromkeys(("text/mlir/", "ir/"), TEXT),  # -O1 costs MLIR text 15 %, fewer copies 7 %
    **dict.fromkeys((f"py/{part}" for part in ("arrays", "buffer", "call", "dlpack", "executable", "lanes", "work")), PLAIN),
    "py/": SMALL,
    "": PLAIN,  # passes, plans, what is left: as fast as at -O3
}
GROUP_LINES = 4000  # of what one run of the compiler takes: headers are read once for all of it


def switch(name):
    return os.environ.get(f"XLAC_{name}", "") not in ("", "0")


def unoptimised():
    return switch("DEBUG") or switch("COVERAGE")


def cpus():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sources(*rooms, without=()):
    """The C files of those rooms, or of all but those in `without`."""
    files = {path.relative_to(ROOT).as_posix(): path.relative_to(ROOT / "csrc").parts[0] for path in (ROOT / "csrc").glob("*/**/*.c")}
    return sorted(file for file, room in files.items() if room not in without and (not rooms or room in rooms))


def level(file):
    return [] if unoptimised() else next(LEVELS[prefix] for prefix in LEVELS if file.startswith("csrc/" + prefix)).split()


def groups(files):
    """Neighbours of one room and one level, which one run of the compiler can take together: names that are local to a file are unique
    across the tree (tests/test_unity.py)."""
    found, lines = [], 0
    for file in sorted(files, key=lambda file: (file.split("/")[1], level(file), file)):
        here = len((ROOT / file).read_text().splitlines())
        fits = found and file.split("/")[1] == found[-1][-1].split("/")[1] and level(file) == level(found[-1][-1])
        if fits and lines + here <= GROUP_LINES:
            found[-1].append(file)
            lines += here
        else:
            found.append([file])
            lines = here
    return found


def write_group(folder, files):
    """One file that includes those of a group: (its path, the flags of its level)."""
    path = pathlib.Path(folder, "_".join(files[0].removesuffix(".c").split("/")) + f"_and_{len(files) - 1}.c")
    path.parent.mkdir(parents=True, exist_ok=True)
    here = path.parent.resolve()  # what is compiled is the same text in any folder, for any Python: compilers' caches know it again
    path.write_text("".join(f'#include "{pathlib.PurePath(os.path.relpath(ROOT / file, here)).as_posix()}"\n' for file in files))
    return str(path), level(files[0])


def compile_flags():
    flags = ["-std=gnu11", "-fvisibility=hidden", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-ffp-contract=off", "-Wall",
             "-Wextra"]
    flags += ["-O0", "-g", "-UNDEBUG"] if unoptimised() else ["-g0", "-fno-asynchronous-unwind-tables"]
    if switch("SANITIZE"):
        flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g1",
                  "-fasynchronous-unwind-tables", "-UNDEBUG"]
    flags += ["--coverage"] * switch("COVERAGE") + ["-Werror"] * switch("WERROR") + ["-DXLAC_PARTIAL"] * switch("PARTIAL")
    return flags


def packed_relocations():
    """Tables of pointers take 24 bytes a pointer to relocate, or one bit: where the linker can, and the C library here reads it."""
    libc, version = (platform.libc_ver() + ("", ""))[:2]
    if libc != "glibc" or tuple(map(int, version.split(".")[:2])) < (2, 36):
        return []
    linker = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[-1]
    known = subprocess.run([linker, "-Wl,--help"], capture_output=True, text=True, check=False)
    return ["-Wl,-z,pack-relative-relocs"] * ("pack-relative-relocs" in known.stdout)


def link_flags():
    flags = ["-lm", "-lpthread", "-ldl"]
    if switch("SANITIZE"):
        flags += ["-fsanitize=address,undefined"]
    elif not unoptimised():
        flags += ["-Wl,-S" if sys.platform == "darwin" else "-Wl,-s"]  # no symbols but the exported ones
        if sys.platform.startswith("linux"):
            flags += ["-Wl,-Bsymbolic", "-Wl,--build-id", "-Wl,-z,noseparate-code", *([] if switch("PORTABLE") else packed_relocations())]
    return flags + ["--coverage"] * switch("COVERAGE")


def only_symbol(name):
    """The library exports this and nothing else."""
    if sys.platform == "darwin":
        return [f"-Wl,-exported_symbol,_{name}"]
    return [f"-Wl,--version-script={ROOT / 'csrc/pjrt/exports.map'}"]


class BuildExt(build_ext):
    """Compiles the files of an extension at the same time, in groups or one by one, then links what it finds compiled. What an extension
    before it has compiled is not compiled again."""

    def initialize_options(self):
        super().initialize_options()
        self.compiled = {}

    def finalize_options(self):
        super().finalize_options()
        self.in_place = bool(self.inplace)  # setuptools says no to that while it builds, and copies afterwards
        self.parallel = None  # -j: the files of one library at a time, whatever it says, and the core first, which the others link with

    def get_ext_filename(self, fullname):
        """The core and the plugin are not extensions of Python's: they are loaded by their paths."""
        name, last = super().get_ext_filename(fullname), fullname.split(".")[-1]
        return name if last == "_core" else os.path.join(os.path.dirname(name), last + ".so")

    def pieces(self, files):
        """(what to compile, flags of its own)"""
        if self.in_place or unoptimised() or switch("SANITIZE") or switch("DEV"):
            return [(file, level(file)) for file in files]
        folder = os.path.join(self.get_finalized_command("build").build_base, "groups")
        return [write_group(folder, group) for group in groups(files)]

    def build_extension(self, ext):
        compile_one, jobs = self.compiler.compile, int(os.environ.get("XLAC_JOBS", 0)) or cpus()

        def compile_all(files, *, extra_postargs, **kwargs):
            pieces = self.pieces(files)
            new = [piece for piece in pieces if piece[0] not in self.compiled]
            with ThreadPoolExecutor(jobs) as pool:
                parts = pool.map(lambda piece: compile_one([piece[0]], extra_postargs=extra_postargs + piece[1], **kwargs), new)
                self.compiled.update(zip((piece[0] for piece in new), parts))
            return [obj for piece in pieces for obj in self.compiled[piece[0]]]

        if SHARED and ext.name != CORE:
            ext.extra_link_args.append(self.get_ext_fullpath(CORE))
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
            pc = target / "xlac.pc"  # a checkout's headers lie elsewhere
            pc.write_text(re.sub(r"^includedir=.*$", "includedir=${pcfiledir}", pc.read_text(), flags=re.M))


def extension(name, files, link=()):
    return Extension(
        name,
        files,
        depends=["setup.py", *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "csrc").rglob("*.*")) if p.suffix in (".h", ".def", ".map"))],
        include_dirs=["csrc/include", numpy.get_include()],
        extra_compile_args=compile_flags(),
        extra_link_args=[*link_flags(), *link],
    )


def extensions():
    """Elsewhere than on Linux each of the two has a core of its own."""
    if not SHARED:
        return [extension("xlac._core", sources(without=["pjrt"])),
                extension("xlac._pjrt", sources(without=["py"]), only_symbol("GetPjrtApi"))]
    beside = ["-Wl,-rpath,$ORIGIN"]
    return [extension(CORE, sources(without=["py", "pjrt"]), ["-Wl,-soname,libxlac.so"]), extension("xlac._core", sources("py"), beside),
            extension("xlac._pjrt", sources("pjrt"), [*beside, *only_symbol("GetPjrtApi"), *["-Wl,-z,defs"] * (not switch("SANITIZE"))])]


# The SPDX expression of PEP 639, which setuptools knows from 77 on; an older one, without build isolation, takes it for a name.
LICENSE_FIELD = "license_expression" if int(setuptools.__version__.split(".")[0]) >= 77 else "license"
setup(
    **{LICENSE_FIELD: "Apache-2.0"},
    cmdclass={"build_ext": BuildExt, "build_py": BuildPy},
    ext_modules=extensions(),
)
