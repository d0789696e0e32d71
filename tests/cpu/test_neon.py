"""Machine code for AArch64, emitted and run under qemu-user: the bits of the reference, for elementwise kernels of f32, f64 and s32."""
import itertools
import shutil
import subprocess

import pytest

from .conftest import HERE

ROOT = HERE.parents[1]
NATIVE = [str(path) for name in ("body", "functions", "lower*", "masks", "neon", "x86") for path in sorted((ROOT / "csrc/cpu/native").glob(f"{name}.c"))]
PLACES = ("csrc/kernel", "csrc/base", "csrc/base/number", "csrc/base/isa", "csrc/base/math", "csrc/scalar", "csrc/scalar/loops")
FLOATS = ("abs", "negate", "sqrt", "rsqrt", "floor", "ceil", "round-nearest-even", "exponential", "exponential-minus-one", "log", "log-plus-one", "tanh", "logistic", "sign")
BINARY = {"f32": ("add", "subtract", "multiply", "divide", "maximum", "minimum"), "s32": ("add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor")}
BINARY["f64"] = BINARY["f32"]


def kernel(*lines):
    """Values by their numbers, one a line; the last is what is stored."""
    return "\n".join([*lines, f"store {len(lines) - 1}", ""])


def kernels():
    """{name: text}"""
    found = {}
    for t in ("f32", "f64"):
        found |= {f"{op} {t}": kernel(f"{t} load 0 1", f"{t} {op} 0") for op in FLOATS}
    found |= {f"{op} s32": kernel("s32 load 0 1", f"s32 {op} 0") for op in ("abs", "negate", "not", "sign")}
    for t, ops in BINARY.items():
        two = (f"{t} load 0 1", f"{t} load 1 1")
        found |= {f"{op} {t}": kernel(*two, f"{t} {op} 0 1") for op in ops}
        for direction in ("EQ", "NE", "LT", "LE", "GT", "GE"):
            found[f"select {direction} {t}"] = kernel(*two, f"pred compare {direction} 0 1", f"{t} select 2 1 0")
    for a, b in itertools.permutations(("f32", "f64", "s32"), 2):
        found[f"convert {a} {b}"] = kernel(f"{a} load 0 1", f"{b} convert 0")
    found["long chain f32"] = kernel("f32 load 0 1", "f32 load 1 1", *(f"f32 {'multiply' if i % 2 else 'add'} {i - 1} {i - 2}" for i in range(2, 60)))
    found["one element for all f32"] = kernel("f32 load 0 1", "f32 load 1 0", "f32 constant 0.3", "f32 multiply 0 1", "f32 add 3 2")
    found["shifts s32"] = kernel("s32 load 0 1", "s32 constant 7", "s32 shift-left 0 1", "s32 shift-right-arithmetic 2 1", "s32 shift-right-logical 3 1")
    found["gelu f64"] = kernel("f64 load 0 1", "f64 constant 0.044715", "f64 multiply 0 0", "f64 multiply 2 1", "f64 constant 1", "f64 add 3 4", "f64 multiply 5 0",
                               "f64 tanh 6", "f64 add 7 4", "f64 multiply 8 0")
    found["mixed widths"] = kernel("f64 load 0 1", "s32 load 1 1", "f64 convert 1", "f64 multiply 0 2", "pred compare GT 3 0", "s32 negate 1", "s32 select 4 1 5")
    found["too many values f32"] = kernel("f32 load 0 1", *(f"f32 add 0 {i - 1}" for i in range(1, 40)), *(f"f32 multiply {i + 38} {39 - i}" for i in range(1, 38)))
    found["backwards f32"] = kernel("f32 load 0 -1", "f32 negate 0")
    return found


# Registers run out, memory goes backwards: left to whatever else runs kernels there.
NOT_COVERED = {"too many values f32", "backwards f32"}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    cc = shutil.which("aarch64-linux-gnu-gcc") or pytest.skip("no compiler for AArch64")
    out = tmp_path_factory.mktemp("neon") / "neon"
    sources = [str(path) for place in PLACES for path in sorted((ROOT / place).glob("*.c"))]
    command = [cc, "-std=gnu11", "-O0", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-math-errno", "-ffunction-sections", "-fdata-sections",
               "-Wl,--gc-sections", "-static", "-DXLAC_TEST_NEON", "-Icsrc", "-Icsrc/include", "tests/cpu/neon.c", *NATIVE, *sources, "-lm", "-lpthread", "-o", str(out)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-3000:]
    return out


def test_kernels_have_the_references_bits(program):
    qemu = shutil.which("qemu-aarch64") or pytest.skip("no qemu-user for AArch64")
    texts = kernels()
    ran = subprocess.run([qemu, str(program)], input="".join(texts.values()), capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr
    said = dict(zip(texts, ran.stdout.splitlines(), strict=True))
    assert {name: line for name, line in said.items() if line not in ("same", "not covered")} == {}
    assert {name for name, line in said.items() if line == "not covered"} == NOT_COVERED
