"""Peak memory of compiling and running each benchmark program, beside XLA:CPU, each in a process of its own.

  python benchmarks/memory.py [--only NAME ...] [--rounds 2] [--json out.json]

A process makes its arguments, imports its engine, notes how much memory it has, then compiles the program from text and calls it a few
times, holding one result at a time. Printed is what the peak is above that note, in MB, least of the rounds: of compiling alone, and of all;
`planned` is what the plans of both say that a call needs beside arguments and constants (frame and results; XLA counts no copies of arguments,
code, or scratch memory of its libraries). A `+` marks programs where xlac's peak is above XLA's."""
import argparse
import ctypes
import gc
import json
import subprocess
import sys

from compiled import PROGRAMS, Xla, inputs


def status(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key + ":")) / 1024


def forget_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


class Ours:
    def __init__(self):
        import xlac

        self.xlac = xlac

    def compile(self, text):
        return self.xlac.compile(self.xlac.parse(text))

    def put(self, arrays):
        return arrays

    def call(self, exe, args):
        return exe(*args)


def measure(engine, name):
    spec = json.loads((PROGRAMS / f"{name}.json").read_text())
    text = (PROGRAMS / f"{name}.stablehlo.mlir").read_text()
    arrays = inputs(spec)
    side = Xla() if engine == "xla" else Ours()
    small = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  %b = stablehlo.sine %a : tensor<4xf32>\n  return %b : tensor<4xf32>\n}\n"
    side.compile(small)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = status("VmRSS")
    forget_peak()
    exe = side.compile(text)
    compiled = status("VmHWM") - before
    for _ in range(3):
        args = side.put([a.copy() for a in arrays] if spec["donated"] else arrays)
        out = side.call(exe, args)
        del out, args
    row = {"compile": compiled, "all": status("VmHWM") - before}
    if engine == "xlac":
        row["planned"] = (exe.memory["frame_bytes"] + exe.memory["result_bytes"]) / 1048576
    else:
        stats = exe.get_compiled_memory_stats()
        row["planned"] = (stats.temp_size_in_bytes + stats.output_size_in_bytes - stats.alias_size_in_bytes) / 1048576
    return row


def in_child(engine, name):
    done = subprocess.run([sys.executable, __file__, "--measure", engine, name], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{engine} {name}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def least(rounds):
    return {k: min(r[k] for r in rounds) for k in rounds[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--largest", type=int, default=1_000_000, help="skip programs of more bytes of text")
    parser.add_argument("--json")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    rows, above = {}, []
    for path in sorted(PROGRAMS.glob("*.json")):
        name = path.stem
        size = path.with_name(f"{name}.stablehlo.mlir").stat().st_size
        if json.loads(path.read_text()).get("n_devices", 1) != 1 or size > options.largest or (options.only and name not in options.only):
            continue
        rounds = [{e: in_child(e, name) for e in ("xlac", "xla")} for _ in range(options.rounds)]
        a, b = (least([r[e] for r in rounds]) for e in ("xlac", "xla"))
        rows[name] = {"xlac": a, "xla": b}
        if a["all"] > b["all"]:
            above.append(name)
        print(f"{name:20s} compile {a['compile']:7.1f} MB, XLA {b['compile']:7.1f}   all {a['all']:7.1f} MB, XLA {b['all']:7.1f}"
              f"   planned {a['planned']:7.1f} MB, XLA {b['planned']:7.1f} {'+' if name in above else ''}", flush=True)
    print(f"{len(above)} of {len(rows)} programs above XLA: {', '.join(above) or 'none'}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file)


if __name__ == "__main__":
    main()
