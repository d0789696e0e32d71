"""Programs of many kinds on device="cuda" with the driver that simulates, beside the interpreter: what the driver finds, results that
differ, and what is left alive are failures. `python tests/cuda/sweep.py SUITE... [--count N] [--seed S] [--order S]`; suites:
random (modules of arrays), programs (small ones, with loops), hlo and exec (of the conformance data), ops (every opcode on every element
type), bench (the benchmarks' programs with small arrays). tests/cuda/run runs all of them. With XLAC_CUDA_ON_GPU=1 they run on the machine's GPU.
With --log FILE what is found is in that file too, and a sweep that was stopped goes on from there when it is run again."""
import argparse
import importlib.util
import mmap
import os
import pathlib
import sys
import time
import traceback

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path[:0] = [str(HERE), str(TESTS / "opt"), str(TESTS)]
ON_GPU = bool(os.environ.get("XLAC_CUDA_ON_GPU"))
# Sums in another order than the interpreter's: how near they are, by the bits of a float's mantissa.
NEAR = {"bfloat16": 2e-2, "float16": 2e-3, "float64": 1e-12, "complex128": 1e-12}
SUMS = ("dot", "convolution", "reduce", "cholesky", "triangular", "fft", "batch", "scan", "norm")


def leaves(value):
    return [x for part in value for x in leaves(part)] if isinstance(value, (tuple, list)) else [np.asarray(value)]


def wide(x):
    return x.astype(np.complex128) if x.dtype.kind in "fcV" else x


def differs(text, got, want):
    """None, or where the two differ: to the bit but for the payload of NaNs; sums nearly."""
    if len(got) != len(want):
        return f"{len(got)} results, expected {len(want)}"
    for i, (a, b) in enumerate(zip(got, want)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"result {i}: {a.dtype}{a.shape}, expected {b.dtype}{b.shape}"
        if a.tobytes() == b.tobytes() or np.array_equal(wide(a), wide(b), equal_nan=a.dtype.kind in "fcV"):
            continue
        scale = np.max(np.abs(wide(b)[np.isfinite(wide(b))]), initial=0.0) if b.dtype.kind in "fcV" else 0
        near = NEAR.get(b.dtype.name, 1e-5)
        loose = any(word in text for word in SUMS) or b.dtype.name == "complex128" or (ON_GPU and b.dtype.name == "float64")  # its own
        if b.dtype.kind in "fcV" and loose and np.allclose(wide(a), wide(b), rtol=near, atol=near * scale, equal_nan=True):
            continue
        at = np.argwhere(~((wide(a) == wide(b)) | ((wide(a) != wide(a)) & (wide(b) != wide(b)))))
        place = tuple(at[0])
        return f"result {i}: {len(at)} of {a.size} elements differ, the first at {place}: {a[place]!r}, expected {b[place]!r}"
    return None


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem + "_of_sweep", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def random_suite(count, seed):
    made = load(TESTS / "cpu" / "random_modules.py")
    for s in range(seed, seed + count):
        module = made.Module(s)
        yield f"random {s}", module.text, "hlo", module.args


def programs_suite(count, seed):
    made = load(TESTS / "opt" / "programs.py")
    for s in range(seed, seed + count):
        yield f"program {s}", made.Program(s, s % 3 == 0).text, "hlo", [np.array([1, 2], np.float32), np.array([3, -4], np.float32)]


def every(rows, count, seed):
    """`count` of them, evenly spread from the `seed`-th on."""
    step = max(1, len(rows) // max(1, count))
    return rows[seed % step::step][:count] if count < len(rows) else rows


def hlo_suite(count, seed):
    from conformance import conftest, test_hlo
    for case in every([r for r in conftest.rows(test_hlo.DATA) if "run" in r], count, seed):
        yield case["name"], case["input"], "hlo", [test_hlo.unpack(a) for a in case["run"]["args"]]


def exec_suite(count, seed):
    from conformance import conftest, test_stablehlo
    caselib = load(conftest.data_dir() / "stablehlo" / "caselib.py")
    for case in every(conftest.rows(test_stablehlo.EXEC), count, seed):
        pure = caselib.purify(case["text"], case["entry"])
        if pure is not None:
            yield case["id"], pure[0], "mlir", []


def runs(matrix, program):
    """Whether the verifier allows a program of the matrix and the interpreter has values for it."""
    import xlac

    batch = matrix.Batch([program])
    try:
        xlac.interpret(matrix.read(batch.text()), *batch.args)
        return True
    except xlac.Error:
        return False


def ops_suite(count, seed):
    sys.path.insert(0, str(TESTS / "oracle"))
    import matrix
    import matrix_programs

    for opcode, t in every([(o, t) for t in matrix_programs.TYPES for o in matrix.OPCODES], count, seed):
        allowed = [p for p in matrix_programs.programs(opcode, t) if runs(matrix, p)]
        if allowed:  # one module, so that there is one compilation
            batch = matrix.Batch(allowed)
            yield f"{opcode} {t}", batch.text(), "hlo", batch.args


def bench_suite(count, seed):
    import reduced

    for name, text, args in reduced.programs(lambda names: every(names, count, seed)):
        yield name, text, "mlir", args


SUITES = {"random": (random_suite, 10000), "programs": (programs_suite, 1000), "hlo": (hlo_suite, 100000), "exec": (exec_suite, 100000),
          "ops": (ops_suite, 100000), "bench": (bench_suite, 100000)}


def parsed(text, form):
    import xlac

    return xlac.parse(text, allow_unregistered=True, format="mlir") if form == "mlir" else xlac.parse(text)


def is_as_near(text, form, args, got, want):
    """Whether f32 results are at most twice as far as the interpreter's from what the program gives in f64: sums that cancel have few right bits
    in any order."""
    import xlac

    if "f32" not in text or any(g.dtype != np.float32 or g.shape != w.shape for g, w in zip(got, want)):
        return False
    try:
        wide64 = [a.astype(np.float64) if a.dtype == np.float32 else a for a in map(np.asarray, args)]
        exact = leaves(xlac.interpret(parsed(text.replace("f32", "f64"), form), *wide64))
    except xlac.Error:
        return False
    return all(np.all(np.abs(g - e) <= 2 * np.max(np.abs(w - e), initial=0) + 1e-7 * np.max(np.abs(e), initial=0)) for g, w, e in zip(got, want, exact))


def check(text, form, args, passes=True):
    """None, or why the program is not right on the GPU; without passes nothing is folded."""
    import xlac

    module = parsed(text, form)
    try:
        want = leaves(xlac.interpret(module, *args))
    except xlac.Error:
        return None  # what the interpreter refuses is not for a device
    try:
        exe = xlac.compile(module, device="cuda", passes=passes)
        for _ in range(3):  # again: what calls leave must not matter
            got = leaves(exe(*args))
            why = differs(text, got, want)
            if why and not (any(word in text for word in SUMS) and is_as_near(text, form, args, got, want)):
                return why
    except xlac.Error as e:
        return f"{type(e).__name__}: {str(e)[:600]}"
    return None


def run_suite(driver, name, count, seed, show, begin=0, note=lambda number: None):
    """What failed of a suite from its case number `begin` on; `note` is told the number of each before it is run."""
    done, failed, start = 0, [], time.monotonic()
    for number, (case, text, form, args) in enumerate(SUITES[name][0](count or SUITES[name][1], seed)):
        if number < begin:
            continue
        note(number)
        try:
            why = check(text, form, args) or (check(text, form, args, False) if name == "exec" else None)
        except Exception:
            why = traceback.format_exc()
        found = driver.reports()
        driver.clear()
        done += 1
        if why or found:
            failed.append(case)
            show(f"{name}: {case}: {why or ''} {'; '.join(found[:2])}")
    show(f"{name}: {done} programs, {len(failed)} failed, {time.monotonic() - start:.0f} s; alive: {driver.alive()[:300] or 'nothing'}")
    return failed


class Log:
    """What a sweep says, printed and in a file, whose lines "at SUITE SEED NUMBER" say how far it had come."""

    def __init__(self, path):
        self.path = path

    def lines(self):
        return self.path.read_text().splitlines() if self.path and self.path.exists() else []

    def show(self, line):
        print(line, flush=True)
        self.put(line)

    def put(self, line):
        if self.path:
            with self.path.open("a") as f:
                f.write(line + "\n")

    def note(self, suite, seed, number):
        if number % 20 == 0:
            self.put(f"at {suite} {seed} {number}")

    def begin(self, suite, seed):
        return max([int(line.split()[-1]) for line in self.lines() if line.startswith(f"at {suite} {seed} ")], default=0)


def run_in_processes(name, count, seed, log):
    """A suite in a process of its own; one that is killed is a finding, and another goes on behind its case. True where all is well."""
    show, at, begin, well = log.show, mmap.mmap(-1, 8), log.begin(name, seed), True

    def note(number):
        at[0:8] = number.to_bytes(8, "little")
        log.note(name, seed, number)

    while True:
        child = os.fork()
        if child == 0:
            from simulator import xlac_driver
            failed = run_suite(xlac_driver(), name, count, seed, show, begin, note)
            os._exit(1 if failed else 0)
        status = os.waitpid(child, 0)[1]
        well = well and status == 0
        if not os.WIFSIGNALED(status):
            return well
        begin = int.from_bytes(at[:8], "little") + 1
        show(f"{name}: case number {begin - 1}: killed by signal {os.WTERMSIG(status)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", default=list(SUITES), choices=list(SUITES), metavar="SUITE")
    parser.add_argument("--count", type=int, help="programs of each suite")
    parser.add_argument("--seed", type=int, default=1, help="the first random module")
    parser.add_argument("--order", type=int, default=0, help="blocks, threads and streams in another order")
    parser.add_argument("--log", type=pathlib.Path)
    options = parser.parse_args()
    log = Log(options.log)
    os.environ["XLAC_CUDA_SIM_SEED"] = str(options.order)
    sys.exit(0 if all([run_in_processes(s, options.count, options.seed, log) for s in options.suites]) else 1)


if __name__ == "__main__":
    main()
