"""HLO text beside real XLA (jaxlib) in the same process: parse, print, verify, memory, import time.

  python benchmarks/hlo_text.py [--rounds 7] [--json out.json]

Needs the `test` extra. The modules are the ten largest of the conformance data (XLAC_CONFORMANCE, by default
../shared/conformance), else HLO that JAX lowers on the spot. Every round times both sides in turn; minimum and median of the
rounds are printed, and the ratio of the minima (xlac MB/s over XLA MB/s)."""
import argparse
import json
import lzma
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = pathlib.Path(os.environ.get("XLAC_CONFORMANCE", ROOT.parent / "shared" / "conformance"))


def large_modules(count=10):
    """(name, text) of the largest round-trip cases."""
    with lzma.open(DATA / "hlo/corpus.jsonl.xz", "rt") as f:
        rows = [json.loads(line) for line in f]
    rows = [r for r in rows if r["kind"] == "roundtrip"]
    rows.sort(key=lambda r: -len(r["input"]))
    return [(r["name"], r["input"]) for r in rows[:count]]


def seconds(call, least=0.02):
    """Seconds per call, over enough calls to fill `least` seconds."""
    start, n = time.perf_counter(), 0
    while True:
        call()
        n += 1
        taken = time.perf_counter() - start
        if taken >= least:
            return taken / n


def rounds_of(pairs, rounds):
    """{name: [seconds per round]} with all the candidates timed in turn in every round."""
    times = {name: [] for name in pairs}
    for _ in range(rounds):
        for name, call in pairs.items():
            times[name].append(seconds(call))
    return times


def row(name, size, times):
    best = {k: min(v) for k, v in times.items()}
    mid = {k: statistics.median(v) for k, v in times.items()}
    return dict(name=name, bytes=size,
                parse_mb_s=size / best["parse"] / 1e6, parse_median_mb_s=size / mid["parse"] / 1e6,
                xla_parse_mb_s=size / best["xla parse"] / 1e6, parse_ratio=best["xla parse"] / best["parse"],
                parse_ratio_median=mid["xla parse"] / mid["parse"],
                print_ratio=best["xla print"] / best["print"], print_ratio_median=mid["xla print"] / mid["print"],
                print_mb_s=size / best["print"] / 1e6, xla_print_mb_s=size / best["xla print"] / 1e6,
                parse_verify_ms=best["parse verify"] * 1e3)


def bench_module(name, text, rounds):
    import jaxlib._hlo as hlo
    import xlac

    ours, theirs = xlac.parse(text), hlo.hlo_module_from_text(text)
    options = hlo.HloPrintOptions()
    options.print_large_constants = True
    calls = {
        "parse": lambda: xlac.parse(text), "xla parse": lambda: hlo.hlo_module_from_text(text),
        "print": lambda: ours.to_text(), "xla print": lambda: theirs.to_string(options),
        "parse verify": lambda: xlac.parse(text).verify(xla_compat=True),
    }
    return row(name, len(text), rounds_of(calls, rounds))


IMPORT = "import sys,time; import numpy; t=time.perf_counter(); import xlac; print(time.perf_counter()-t)"
MEMORY = """
import sys, xlac
text = open(sys.argv[1]).read()
def rss():
    return int(next(l for l in open('/proc/self/status') if l.startswith('VmRSS')).split()[1]) * 1024
xlac.parse("HloModule m\\nENTRY e {\\n  ROOT c = f32[] constant(0)\\n}\\n")
before = rss()
kept = [xlac.parse(text) for _ in range(8)]
print((rss() - before) / 8 / len(text))
"""


def import_seconds(rounds):
    """Seconds that `import xlac` adds to a process that has NumPy."""
    runs = [float(subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True).stdout)
            for _ in range(rounds)]
    return min(runs), statistics.median(runs)


def memory_factor(text, tmp):
    """Resident bytes of a parsed module per byte of its text."""
    tmp.write_text(text)
    done = subprocess.run([sys.executable, "-c", MEMORY, str(tmp)], capture_output=True, text=True, check=True)
    tmp.unlink()
    return float(done.stdout)


def report(rows, imports, memory):
    print(f"{'module':34} {'KB':>5} {'parse':>7} {'XLA':>6} {'ratio':>6} {'print':>7} {'XLA':>6} {'ratio':>6} {'p+v ms':>7}")
    for r in rows:
        print(f"{r['name']:34} {r['bytes'] // 1000:5} {r['parse_mb_s']:7.0f} {r['xla_parse_mb_s']:6.0f} {r['parse_ratio']:6.1f} "
              f"{r['print_mb_s']:7.0f} {r['xla_print_mb_s']:6.0f} {r['print_ratio']:6.1f} {r['parse_verify_ms']:7.2f}")
    print(f"least ratios: parse {min(r['parse_ratio'] for r in rows):.1f}, print {min(r['print_ratio'] for r in rows):.1f} "
          f"(medians {min(r['parse_ratio_median'] for r in rows):.1f}, {min(r['print_ratio_median'] for r in rows):.1f})")
    print(f"import over numpy: {imports[0] * 1e3:.1f} ms (median {imports[1] * 1e3:.1f}); "
          f"memory of the largest module: {memory:.1f} times its text")


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--rounds", type=int, default=7)
    args.add_argument("--json", type=pathlib.Path)
    options = args.parse_args()
    modules = large_modules()
    rows = [bench_module(name, text, options.rounds) for name, text in modules]
    imports = import_seconds(max(5, options.rounds))
    memory = memory_factor(modules[0][1], pathlib.Path("bench_memory.hlo"))
    report(rows, imports, memory)
    if options.json:
        options.json.write_text(json.dumps(dict(rows=rows, import_s=imports, memory_factor=memory), indent=1))


if __name__ == "__main__":
    main()
