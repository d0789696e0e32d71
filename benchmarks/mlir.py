"""StableHLO beside jaxlib's MLIR in the same process: parse, print, bytecode, and the exec suite interpreted.

  python benchmarks/mlir.py [--rounds 5] [--suite] [--json out.json]

Needs the `test` extra. The programs are the largest *.stablehlo.mlir of XLAC_PROGRAMS (by default ../shared/bench/programs). Every
round times both sides in turn; minimum and median over the rounds are printed with the ratios. --suite also interprets
conformance/stablehlo/exec with both, jaxlib's reference interpreter in a process of its own because some ops abort it."""
import argparse
import importlib.util
import json
import lzma
import os
import pathlib
import statistics
import subprocess
import sys
import time

from hlo_text import DATA, ROOT, rounds_of

PROGRAMS = pathlib.Path(os.environ.get("XLAC_PROGRAMS", ROOT.parent / "shared" / "bench" / "programs"))


def context():
    """An MLIR context with the dialects that JAX prints."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, stablehlo
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    made = ir.Context()
    made.append_dialect_registry(registry)
    made.load_all_available_dialects()
    stablehlo.register_dialect(made)
    chlo.register_dialect(made)
    stablehlo.register_interpreter_dialect(made)
    made.enable_multithreading(False)
    return made


def large_programs(count=8):
    found = sorted(PROGRAMS.glob("*.stablehlo.mlir"), key=lambda p: -p.stat().st_size)
    return [(p.name.split(".")[0], p.read_text()) for p in found[:count]]


def bench_program(mlir, name, text, rounds):
    import xlac
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo
    with mlir:
        theirs, ours = ir.Module.parse(text), xlac.parse(text)
        artifact = stablehlo.serialize_portable_artifact(ir.Module.parse(text), "1.17.0")
        times = rounds_of({
            "parse": lambda: xlac.parse(text), "mlir parse": lambda: ir.Module.parse(text),
            "print": lambda: ours.to_text(), "mlir print": lambda: str(theirs),
            "bytecode": lambda: xlac.parse(artifact),
            "mlir bytecode": lambda: stablehlo.deserialize_portable_artifact(mlir, artifact),
            "verify": lambda: xlac.parse(text).verify(),
        }, rounds)
    return dict(name=name, bytes=len(text), artifact=len(artifact), times=times)


def ten_megabytes(n=130_000):
    """The text of a program of 10 MB, and no constants: what reading its bytecode takes is all beyond their copy."""
    forms = ["multiply %{0}, %{1}", "add %{0}, %{1}", "transpose %{0}, dims = [1, 0]", "tanh %{0}",
             "dot_general %{0}, %{1}, contracting_dims = [1] x [0]", "subtract %{0}, %{1}"]
    t = "tensor<16x16xf32>"
    types = [t, t, f"({t}) -> {t}", t, f"({t}, {t}) -> {t}", t]
    names = ["a", "b"] + [str(i) for i in range(n)]
    ops = [f"%{i} = stablehlo.{forms[i % 6].format(names[i + 1], names[i])} : {types[i % 6]}" for i in range(n)]
    return "\n".join([f"func.func @main(%a: {t}, %b: {t}) -> {t} {{", *ops, f"return %{n - 1} : {t}", "}"])


def bench_large_bytecode(mlir, rounds):
    import xlac
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo
    text = ten_megabytes()
    with mlir:
        artifact = stablehlo.serialize_portable_artifact(ir.Module.parse(text), "1.17.0")
        times = rounds_of({"bytecode": lambda: xlac.parse(artifact),
                           "mlir bytecode": lambda: stablehlo.deserialize_portable_artifact(mlir, artifact)}, rounds)
    row = dict(name="ten_megabytes", bytes=len(text), artifact=len(artifact), times=times)
    ours = times["bytecode"]
    print(f"bytecode of a program of {len(text) / 1e6:.1f} MB ({len(artifact) / 1e6:.1f} MB of bytecode): {min(ours) * 1e3:.0f} ms "
          f"(median {statistics.median(ours) * 1e3:.0f}), ratio {ratio(row, 'bytecode', min):.0f}")
    return row


def ratio(row, what, of):
    return of(row["times"]["mlir " + what]) / of(row["times"][what])


def report(rows):
    print(f"{'program':28} {'KB':>6} {'MB/s':>6} {'parse':>6} {'print':>6} {'bytecode':>8} {'ms':>8} {'p+v ms':>7}   (ratios: MLIR's time over ours)")
    for r in rows:
        t = {k: min(v) for k, v in r["times"].items()}
        print(f"{r['name']:28} {r['bytes'] // 1000:6} {r['bytes'] / t['parse'] / 1e6:6.0f} {ratio(r, 'parse', min):6.1f} "
              f"{ratio(r, 'print', min):6.1f} {ratio(r, 'bytecode', min):8.1f} {t['bytecode'] * 1e3:8.2f} {t['verify'] * 1e3:7.2f}")
    for what in ("parse", "print", "bytecode"):
        print(f"least {what} ratio {min(ratio(r, what, min) for r in rows):.1f} "
              f"(least of medians {min(ratio(r, what, statistics.median) for r in rows):.1f})")


# --- the exec suite ---


def suite_cases():
    """(id, text) of the cases that become plain functions."""
    spec = importlib.util.spec_from_file_location("caselib", DATA / "stablehlo/caselib.py")
    caselib = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(caselib)
    with lzma.open(DATA / "stablehlo/exec.jsonl.xz", "rt") as f:
        cases = [json.loads(line) for line in f]
    pure = [(c["id"], caselib.purify(c["text"], c["entry"])) for c in cases if "programs" not in c and "!quant" not in c["text"]]
    return [(name, p[0]) for name, p in pure if p]


WORKER = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
made = mlir.context()
for line in sys.stdin:
    text = json.loads(line)
    start = time.perf_counter()
    try:
        with made:
            stablehlo.eval_module(ir.Module.parse(text), [])
        answer = time.perf_counter() - start
    except Exception:
        answer = None
    print(json.dumps(answer), flush=True)
"""


class ReferenceInterpreter:
    """jaxlib's, in a process that may die."""

    def __init__(self):
        self.process = None

    def seconds(self, text):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen([sys.executable, "-c", WORKER, str(pathlib.Path(__file__).parent)], text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            self.process.stdin.write(json.dumps(text) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else None


def bench_suite():
    """Both interpreters over the cases that both run, case by case in turn; parsing is part of the time of both."""
    import xlac
    peer, ours, theirs, n = ReferenceInterpreter(), 0.0, 0.0, 0
    for _, text in suite_cases():
        start = time.perf_counter()
        try:
            xlac.interpret(xlac.parse(text, allow_unregistered=True))
        except xlac.Error:
            continue
        mine, other = time.perf_counter() - start, peer.seconds(text)
        if other is not None:
            ours, theirs, n = ours + mine, theirs + other, n + 1
    print(f"exec suite, {n} cases that both run: {ours:.1f} s, reference interpreter {theirs:.1f} s, ratio {theirs / ours:.1f}")
    return dict(cases=n, seconds=ours, reference_seconds=theirs)


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--rounds", type=int, default=5)
    args.add_argument("--suite", action="store_true")
    args.add_argument("--json", type=pathlib.Path)
    options = args.parse_args()
    made = context()
    rows = [bench_program(made, name, text, options.rounds) for name, text in large_programs()]
    report(rows)
    rows.append(bench_large_bytecode(made, options.rounds))
    suite = bench_suite() if options.suite else None
    if options.json:
        options.json.write_text(json.dumps(dict(rows=rows, suite=suite), indent=1))


if __name__ == "__main__":
    main()
