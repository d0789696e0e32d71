"""Which generator finds which class of faults: python tests/fuzz/classes.py TREE [CLASS...].

TREE is a checkout of the commit that had them (97b1403); its core is built with the sanitizers in build/fuzz-classes, today's fuzzers on
top of it. For each class its fuzzer runs from the files named here, none of which shows the fault by itself, until the fault is found.
Prints the class, the fuzzer, the seed and the number of inputs until then, and what was found."""
import collections
import os
import pathlib
import re
import subprocess
import sys

from search import ROOT, run_fuzzer

CORPUS = ROOT / "tests" / "fuzz" / "corpus"
CHUNK, MOST_CHUNKS = 400, 100
Generator = collections.namedtuple("Generator", "fuzzer files found environment", defaults=[{}])

OUT_OF_BOUNDS = r"heap-buffer-overflow|SEGV"
CLASSES = {
    "R1 a scalar operand of map": Generator("hlo", "map_two.hlo", OUT_OF_BOUNDS + r"|refuses what runs compiled"),
    "R2 reduce of unequal sizes": Generator("mlir", "reduce_two.mlir reduce_two_rows.mlir", OUT_OF_BOUNDS),
    "R2 sort of unequal sizes": Generator("mlir", "sort_two.mlir", OUT_OF_BOUNDS),
    "R2 reduce_window of unequal sizes": Generator("mlir", "reduce_window_two.mlir reduce_window_two_rows.mlir", OUT_OF_BOUNDS),
    "R2 scatter of unequal sizes": Generator("mlir", "scatter.mlir scatter_two.mlir", OUT_OF_BOUNDS),
    "R2 gather of unequal sizes": Generator("mlir", "gather.mlir", OUT_OF_BOUNDS + r"|Assertion"),
    "R2 bounded sizes": Generator("hlo", "sized_reduce.hlo sized_sort.hlo sized_scatter.hlo sized_reduce_window.hlo", OUT_OF_BOUNDS),
    "R3 to_hlo of an op without results": Generator("mlir", "check.mlir chlo_add.mlir", r"to_hlo_chlo|type\.h:\d+.*null pointer"),
    "R4 types that are not tensors": Generator("mlir", "reshape.mlir gather.mlir", r"kind that xlac\.h does not list"),
    "R5 chlo on quantised tensors": Generator("mlir", "chlo_quantised.mlir chlo_add.mlir chlo_maximum.mlir", r"interpreted and compiled differ"),
    "R7 a dynamic kernel of a convolution": Generator("mlir", "convolution.mlir", r"placement\.c|of size -92"),
    "R8 several results and unbounded sizes": Generator("mlir", "top_k.mlir while_two.mlir reduce_two.mlir", r"bounded dimensions only"),
    "R9 types that HLO lacks": Generator("mlir", "identity.mlir", r"print_type\.c|Assertion.*print", {"FUZZ_ANY_KIND": "1"}),
    "R10 computations called more than once": Generator("proto", "map_two.hlo sized_sort.hlo", r"verify_called|verify_collective|n_called"),
    "R11 names that text cannot hold": Generator("proto", "map_two.hlo", r"the print does not read back"),
    "R12 what no interrupt reaches": Generator("interrupt", "large.hlo", r"without being asked"),
    "R14 a max_depth without limit": Generator("hlo", "map_two.hlo", r"stack-overflow"),
    "R14 a max_depth without limit, MLIR": Generator("mlir", "identity.mlir", r"stack-overflow"),
    "L1 numbers cut to 32 bits": Generator("hlo", "reduce_precision.hlo", r"loops_other|shift exponent"),
    "L2 lengths of fft": Generator("hlo", "fft_lengths.hlo", r"refuses what runs compiled"),
    "L3 a count of elements that is wrong": Generator("mlir", "reshape.mlir", r"interp/value\.c|OUT_OF_MEMORY"),
    "L4 bytes of odd quantised types": Generator("mlir", "quant.mlir chlo_quantised.mlir", r"bytecode_write_type|read_quant\.c"),
    "L5 to_hlo of quantised programs": Generator("mlir", "quant.mlir chlo_quantised.mlir", r"a translated program is not verified.* is declared as (.*\]); .* give \1"),
    "L6 text that does not read back": Generator("mlir", "mesh_groups.mlir convolution.mlir quant.mlir", r"print does not read back|print, read, print differs"),
    "L7 bytes that do not read back": Generator("mlir", "identity.mlir", r"what was written does not read"),
}
# Not shown by an input: R13 (bytes that grow with the square of the computations that call one another: the 800 that an input of 64 KB
# holds take 0.6 MB, less than their ops do; tests/opt asks for 20,000), R6 (the conjugate bit of a torch tensor: tests/python/test_dlpack.py), L8 (NULL for a name in a call of the C API:
# tests/api), L9 (how many calls wait: tests/async).


def build(tree, to):
    """The core of the tree without Python's part, and the fuzzers of this checkout that stand on xlac.h alone."""
    to.mkdir(parents=True, exist_ok=True)
    flags = ("-std=gnu11 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer "
             f"-I{tree / 'csrc' / 'include'}").split()
    compiler = os.environ.get("CC", "gcc").split()
    older = ["-include", str(ROOT / "tests/fuzz/older.h")]
    sources = [(f, []) for f in sorted((tree / "csrc").rglob("*.c")) if f.parent != tree / "csrc" and "py" not in f.relative_to(tree).parts]
    sources += [(f, older) for f in sorted((ROOT / "tests/fuzz/common").glob("*.c"))]
    objects = []
    for source, more in sources:
        objects.append(to / (str(source.relative_to(tree if not more else ROOT)).replace("/", "_") + ".o"))
        if not objects[-1].exists() or objects[-1].stat().st_mtime < source.stat().st_mtime:
            subprocess.run([*compiler, *flags, *more, "-c", source, "-o", objects[-1]], check=True)
    for name in sorted({g.fuzzer for g in CLASSES.values()}):
        source = ROOT / "tests/fuzz" / f"fuzz_{name}.c"
        subprocess.run([*compiler, *flags, *older, "-DFUZZ_MAIN", source, *objects, "-lm", "-lpthread", "-ldl", "-o", to / f"fuzz_{name}"], check=True)


def find(built, name, generator):
    files = [str(CORPUS / f) for f in generator.files.split()]
    for seed in range(1, MOST_CHUNKS + 1):
        folder = built / "findings" / re.sub(r"\W+", "-", name)
        _, _, kinds = run_fuzzer(built, generator.fuzzer, CHUNK, seed, files, folder, environment=generator.environment)
        for places in kinds.values():
            log = (folder / f"{places[0][1]}.log").read_text("latin1")
            found = re.search(generator.found, log)
            if found:
                place = min(places)[0]
                line = next(x for x in log.splitlines() if re.search(r"finding:|ERROR: AddressSanitizer|runtime error|Assertion", x))
                return f"{name}: fuzz_{generator.fuzzer} seed {seed}, {(seed - 1) * CHUNK + place + 1} inputs: {line.strip()[:150]}"
    return f"{name}: NOT FOUND in {MOST_CHUNKS * CHUNK} inputs"


def main(tree, *wanted):
    built = ROOT / "build" / "fuzz-classes"
    build(pathlib.Path(tree).resolve(), built)
    missing = 0
    for name, generator in CLASSES.items():
        if not wanted or name.split()[0] in wanted:
            line = find(built, name, generator)
            missing += "NOT FOUND" in line
            print(line, flush=True)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
