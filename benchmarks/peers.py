"""xlac beside its peers: the tables and pictures of docs/performance.md.

  python benchmarks/peers.py sizes    [--engines ...] [--rounds 2]            ten programs (peers_programs.py) over five decades of sizes
  python benchmarks/peers.py compile  [--engines xlac xla iree]               compile time against the number of ops, up to 100,000
  python benchmarks/peers.py programs --folder FOLDER [--only NAME ...]       programs of a folder: NAME.stablehlo.mlir with NAME.json, its inputs
  python benchmarks/peers.py write                                            docs/performance.md and docs/img/performance-*.svg from what was measured
  python benchmarks/peers.py all --folder FOLDER                              all of that, in this order

Engines: xlac and xlac-fast (numerics), xla (jaxlib's), torch, torch-compile, iree, numpy. One that can't be imported is left out; --python torch=PATH
names another interpreter for one. Each engine has a process of its own for each program, engines take turns, and a round goes through all of them. Of a call the
least and the median time is taken, and the processor time of all of its threads, which other work on the machine disturbs less. Rows are added
to build/peers.jsonl as they come, so that a run that was stopped goes on with --keep."""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "build" / "peers.jsonl"
ENGINES = ("xlac", "xlac-fast", "xla", "torch", "torch-compile", "iree", "numpy")
SIZES = (100, 1000, 10_000, 100_000, 1_000_000, 10_000_000)
OPS = (10, 100, 1000, 10_000, 100_000)
TOO_LONG = 20  # seconds of compiling, after which an engine is not asked for a larger program


# --- a process of one engine ---

class Xlac:
    def __init__(self, threads, numerics="strict"):
        import xlac

        self.xlac, self.options = xlac, {"threads": threads, "numerics": numerics}

    def compile(self, text):
        return self.xlac.compile(text, **self.options)

    def put(self, arrays):
        return arrays

    def call(self, exe, arguments):
        return flat(exe(*arguments))

    def get(self, results):
        return results


class Xla:
    def __init__(self, threads):
        del threads
        import compiled

        self.xla = compiled.Xla()
        self.compile, self.put, self.call = self.xla.compile, self.xla.put, self.xla.call

    def get(self, results):
        import numpy as np

        return [np.asarray(r) for r in results]


class Torch:
    """The program as people write it for PyTorch: `compile` takes its name."""

    def __init__(self, threads, compiles=False):
        import peers_programs
        import torch

        torch.set_num_threads(threads)
        self.torch, self.functions, self.compiles = torch, peers_programs.of_torch(), compiles

    def compile(self, name):
        return self.torch.compile(self.functions[name]) if self.compiles else self.functions[name]

    def put(self, arrays):
        return [self.torch.from_numpy(a) for a in arrays]

    def call(self, function, arguments):
        with self.torch.no_grad():
            return flat(function(*arguments))

    def get(self, results):
        return [r.numpy() for r in results]


class NumPy:
    def __init__(self, threads):
        del threads
        import peers_programs

        self.functions = peers_programs.of_numpy()

    def compile(self, name):
        return self.functions[name]

    def put(self, arrays):
        return arrays

    def call(self, function, arguments):
        return flat(function(*arguments))

    get = Xlac.get


class Iree:
    TYPES = {"float32": "FLOAT_32", "int32": "SINT_32", "float64": "FLOAT_64", "bfloat16": "BFLOAT_16", "int8": "SINT_8", "uint32": "UINT_32", "bool": "BOOL_8"}
    FLAGS = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host",
             "--iree-input-type=stablehlo", "--iree-opt-level=O3")

    def __init__(self, threads):
        import iree.compiler
        import iree.runtime

        self.compiler, self.rt = iree.compiler, iree.runtime
        if threads > 1:
            self.rt.flags.parse_flags(f"--task_topology_group_count={threads}")
        self.device = self.rt.get_device("local-task" if threads > 1 else "local-sync")

    def compile(self, text):
        code = self.compiler.compile_str(text, input_type="stablehlo", extra_args=list(self.FLAGS[:3] + self.FLAGS[4:]))
        instance = self.rt.VmInstance()
        module = self.rt.VmModule.copy_buffer(instance, code)
        self.context = self.rt.VmContext(instance, [self.rt.create_hal_module(instance, self.device), module])
        return module.lookup_function("main")

    def put(self, arrays):
        usage = self.rt.BufferUsage.DEFAULT | self.rt.BufferUsage.MAPPING
        return [self.device.allocator.allocate_buffer_copy(memory_type=self.rt.MemoryType.DEVICE_LOCAL, allowed_usage=usage, device=self.device, buffer=a,
                                                           element_type=getattr(self.rt.HalElementType, self.TYPES[str(a.dtype)])) for a in arrays]

    def call(self, function, arguments):
        given, results = self.rt.VmVariantList(len(arguments)), self.rt.VmVariantList(1)
        for a in arguments:
            given.push_ref(a)
        self.context.invoke(function, given, results)
        return [results.get_as_object(i, self.rt.HalBufferView) for i in range(results.size)]

    def get(self, results):
        import numpy as np

        return [np.array(r.map().asarray(list(r.shape), np.dtype(np.float32))) for r in results]


MAKERS = {"xlac": Xlac, "xlac-fast": lambda threads: Xlac(threads, "fast"), "xla": Xla, "torch": Torch,
          "torch-compile": lambda threads: Torch(threads, True), "iree": Iree, "numpy": NumPy}
BY_NAME = ("torch", "torch-compile", "numpy")  # run functions, not StableHLO


def flat(value):
    return [x for part in value for x in flat(part)] if isinstance(value, (tuple, list)) else [value]


def timed(call, budget):
    """Seconds: least and median of the wall, and processor seconds a call. Calls under 200 us are timed some at a time."""
    call()
    start = time.perf_counter()
    call()
    some = max(1, int(2e-4 / max(1e-7, time.perf_counter() - start)))
    times, processor, start = [], time.process_time(), time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - start < budget and len(times) < 2000):
        begin = time.perf_counter()
        for _ in range(some):
            call()
        times.append((time.perf_counter() - begin) / some)
    return min(times), statistics.median(times), (time.process_time() - processor) / (len(times) * some)


def work(job):
    """What the process of one engine does: a job's programs, each compiled, checked and timed. Prints rows."""
    import numpy as np
    from compiled import off_by

    sys.path.insert(0, str(ROOT / "benchmarks"))
    engine = MAKERS[job["engine"]](job["threads"])
    for program in job["programs"]:
        row = {key: program[key] for key in ("kind", "name", "n")} | {"engine": job["engine"]}
        try:
            what = program["name"] if job["engine"] in BY_NAME else pathlib.Path(program["text"]).read_text()
            wall, processor = time.perf_counter(), time.process_time()
            exe = engine.compile(what)
            row |= {"compile": time.perf_counter() - wall, "compile_cpu": time.process_time() - processor}
            if program["kind"] != "compile":
                arrays = arguments_of(program)
                given = engine.put(arrays)
                got = [np.asarray(r) for r in engine.get(engine.call(exe, given))]
                if program.get("expected"):
                    expected = np.load(program["expected"])
                    row["off"] = off_by(got, [expected[k] for k in expected.files])
                row |= dict(zip(("least", "median", "cpu"), timed(lambda e=exe, g=given: engine.call(e, g), job["budget"])))
        except Exception as error:  # one program that an engine can't run is a row
            row["error"] = f"{type(error).__name__}: {error}"[:200]
        print(json.dumps(row), flush=True)
        if row.get("compile", 0) > TOO_LONG:
            break


def arguments_of(program):
    if program["kind"] == "sizes":
        import peers_programs

        return peers_programs.arguments(program["name"], program["n"])
    sys.path.insert(0, program["common"])
    import common

    return common.make_inputs(json.loads(pathlib.Path(program["spec"]).read_text()))


# --- all of them ---

def interpreters(options):
    """{engine: the Python that has it}"""
    given = dict(pair.split("=", 1) for pair in options.python)
    modules = {"xlac": "xlac", "xlac-fast": "xlac", "xla": "jaxlib", "torch": "torch", "torch-compile": "torch", "iree": "iree.compiler", "numpy": "numpy"}
    found = {}
    for engine in options.engines:
        python = given.get(engine.split("-")[0], sys.executable)
        if subprocess.run([python, "-c", f"import {modules[engine]}"], capture_output=True, check=False, env=environment()).returncode == 0:
            found[engine] = python
        else:
            print(f"{engine}: {python} does not import {modules[engine]}, left out", file=sys.stderr)
    return found


def environment(threads=2):
    paths = [str(ROOT / "python"), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}


def run_jobs(options, groups):
    """groups: lists of programs that a process takes one after the other."""
    pythons = interpreters(options)
    RESULTS.parent.mkdir(exist_ok=True)
    done = {(r["kind"], r["name"], r["n"], r["engine"], r["round"]) for r in results()} if options.keep else set()
    for round_ in range(options.rounds):
        for programs in groups:
            for engine, python in pythons.items():
                left = [p for p in programs if (p["kind"], p["name"], p["n"], engine, round_) not in done]
                job = {"engine": engine, "threads": options.threads, "budget": options.budget, "programs": left}
                if left:
                    run_job(python, job, round_, options)


def run_job(python, job, round_, options):
    try:
        got = subprocess.run([python, str(pathlib.Path(__file__)), "work", json.dumps(job)], capture_output=True, text=True, timeout=options.timeout,
                             env=environment(options.threads), check=False)
        rows, said = got.stdout, got.stderr
    except subprocess.TimeoutExpired as late:
        rows, said = (late.stdout or b"").decode(), f"more than {options.timeout} s"
    rows = [json.loads(line) for line in rows.splitlines() if line.startswith("{")]
    if len(rows) < len(job["programs"]):
        print(f"{job['engine']}, {job['programs'][0]['name']}: {said[-300:]}", file=sys.stderr)
    with RESULTS.open("a") as file:
        for row in rows:
            file.write(json.dumps(row | {"round": round_, "load": os.getloadavg()[0]}) + "\n")


def results():
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def sizes(options, folder):
    import jax
    import numpy as np
    import peers_programs

    functions, plain, groups = peers_programs.of_jax(), peers_programs.of_numpy(), []
    for name, (_, _, _, most) in peers_programs.PROGRAMS.items():
        if options.only and name not in options.only:
            continue
        group = []
        for n in [n for n in SIZES if n <= most]:
            text, expected, arrays = folder / f"{name}-{n}.mlir", folder / f"{name}-{n}.npz", peers_programs.arguments(name, n)
            text.write_text(jax.jit(functions[name]).lower(*arrays).as_text())
            with np.errstate(all="ignore"):
                wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]
                np.savez(expected, *flat(plain[name](*wide)))
            group.append({"kind": "sizes", "name": name, "n": n, "text": str(text), "expected": str(expected)})
        groups.append(group)
    run_jobs(options, groups)


def compiles(options, folder):
    from cache import chain

    import xlac

    group = []
    for n in OPS:
        text = folder / f"chain-{n}.mlir"
        text.write_text(xlac.parse(chain(n)).to_text("mlir"))
        group.append({"kind": "compile", "name": "chain", "n": n, "text": str(text)})
    run_jobs(argparse.Namespace(**vars(options) | {"engines": [e for e in options.engines if e not in (*BY_NAME, "xlac-fast")]}), [group])


def programs(options, folder):
    del folder
    if not options.folder:
        raise SystemExit("--folder FOLDER: where are the programs?")
    groups = []
    for spec in sorted(pathlib.Path(options.folder).resolve().glob("*.json")):
        text, about = spec.with_suffix(".stablehlo.mlir"), json.loads(spec.read_text())
        if text.exists() and about.get("n_devices", 1) == 1 and not about.get("carry") and (not options.only or spec.stem in options.only):
            groups.append([{"kind": "programs", "name": spec.stem, "n": 0, "text": str(text), "spec": str(spec), "common": str(spec.parents[1])}])
    run_jobs(argparse.Namespace(**vars(options) | {"engines": [e for e in options.engines if e not in BY_NAME]}), groups)


# --- tables and pictures ---

def peaks(threads):
    """{"bytes": {size of an array: bytes a second of NumPy's copy}, "flops": a second of OpenBLAS's product}: what this machine does now, for distances."""
    import numpy as np

    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(threads))
    found = {}
    for size in (4 * n for n in SIZES):
        a, b = np.ones(size // 4, np.float32), np.zeros(size // 4, np.float32)
        found[size] = 2 * size / timed(lambda x=a, y=b: np.copyto(y, x), 0.2)[0]
    a = np.ones((1024, 1024), np.float32)
    return {"bytes": found, "flops": 2 * 1024**3 / timed(lambda: a @ a, 0.5)[0]}


def least_limit(name, n, peak):
    """Seconds: bytes at a copy's speed, or flops at a product's."""
    import peers_programs

    speed = peak["bytes"][4 * n]
    return max(4 * n * peers_programs.PROGRAMS[name][2] / speed, peers_programs.flops(name, n) / peak["flops"])


def best(rows, *key):
    """{(engine, *key): the row whose `what` is least over the rounds}"""
    found = {}
    for row in rows:
        at = (row["engine"], *(row[k] for k in key))
        if "error" not in row and ("least" in row or row["kind"] == "compile"):
            measure = "compile_cpu" if row["kind"] == "compile" else "least"
            if at not in found or row[measure] < found[at][measure]:
                found[at] = row
    return found


def shown(seconds):
    return f"{seconds * 1e6:,.1f}" if seconds < 1e-4 else f"{seconds * 1e6:,.0f}"


def geomean(values):
    return statistics.geometric_mean(values) if values else float("nan")


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(row) + " |" for row in rows), ""]


def sizes_table(rows, peak):
    found = best(rows, "name", "n")
    engines = [e for e in ENGINES if any(key[0] == e for key in found)]
    lines = []
    for name in dict.fromkeys(key[1] for key in found):
        for n in [n for n in SIZES if ("xlac", name, n) in found and n in (1000, 100_000, 10_000_000, 1_000_000)]:
            cells = [found.get((e, name, n)) for e in engines]
            ours = found["xlac", name, n]
            peers = [c["least"] for e, c in zip(engines, cells) if c and not e.startswith("xlac")]
            cpu = [c["cpu"] for e, c in zip(engines, cells) if c and not e.startswith("xlac")]
            lines.append([name, f"{n:,}", *(f"{shown(c['least'])} / {shown(c['median'])}" if c else "-" for c in cells), f"{ours.get('off', 0):.0e}",
                          f"{ours['least'] / least_limit(name, n, peak):.1f}", f"{min(peers) / ours['least']:.2f}" if peers else "-",
                          f"{min(cpu) / max(ours['cpu'], 1e-9):.2f}" if cpu else "-"])
    return table(["program", "elements", *engines, "off", "xlac / limit", "best peer / xlac", "the same, CPU"], lines)


def summary(rows, *key):
    """Ratios to each peer over all that both ran: geometric mean, and on how many xlac is slower. Wall and processor time."""
    found, lines = best(rows, *key), []
    for engine in ENGINES[1:]:
        pairs = [(found["xlac", *at[1:]], row) for at, row in found.items() if at[0] == engine and ("xlac", *at[1:]) in found]
        if pairs:
            wall, cpu = ([theirs[k] / max(ours[k], 1e-9) for ours, theirs in pairs] for k in ("least", "cpu"))
            lines.append([engine, str(len(pairs)), f"{geomean(wall):.2f}", str(sum(r < 0.97 for r in wall)), f"{geomean(cpu):.2f}", str(sum(r < 0.97 for r in cpu))])
    return table(["peer", "programs", "its time / xlac's", "xlac slower on", "its CPU time / xlac's", "slower by CPU time on"], lines)


def programs_table(rows):
    found = best(rows, "name")
    engines = [e for e in ENGINES if any(key[0] == e for key in found)]
    lines = []
    for name in sorted({key[1] for key in found}):
        cells = [found.get((e, name)) for e in engines]
        xla, ours = found.get(("xla", name)), found.get(("xlac", name))
        lines.append([name, *(f"{shown(c['least'])} / {shown(c['median'])}" if c else "-" for c in cells),
                      f"{xla['least'] / ours['least']:.2f}" if xla and ours else "-", f"{xla['cpu'] / max(ours['cpu'], 1e-9):.2f}" if xla and ours else "-"])
    return table(["program", *engines, "XLA / xlac", "the same, CPU"], lines)


def compile_table(rows):
    found = best(rows, "n")
    engines = [e for e in ENGINES if any(key[0] == e for key in found)]
    return table(["ops", *engines], [[f"{n:,}", *(f"{found[e, n]['compile_cpu'] * 1e3:,.2f}" if (e, n) in found else "-" for e in engines)] for n in OPS])


def pictures(rows):
    import plot

    panels, names = {}, []
    for (engine, name, n), row in sorted(best([r for r in rows if r["kind"] == "sizes"], "name", "n").items(), key=lambda item: ENGINES.index(item[0][0])):
        panels.setdefault(name, {}).setdefault(engine, []).append((n, row["least"]))
        names += [engine] * (engine not in names)
    if panels:
        (ROOT / "docs/img/performance-sizes.svg").write_text(plot.svg(panels, names, "elements", "Time of a call against the number of elements, ten programs"))
    curves = {}
    for (engine, n), row in best([r for r in rows if r["kind"] == "compile"], "n").items():
        curves.setdefault(engine, []).append((n, row["compile_cpu"]))
    if curves:
        names = [e for e in ENGINES if e in curves]
        text = plot.svg({"compile": curves}, names, "ops", "CPU time of compiling against the number of ops", 1, (420, 220))
        (ROOT / "docs/img/performance-compile.svg").write_text(text)


def write(options):
    """Puts the tables between the marks of docs/performance.md."""
    rows, path = results(), ROOT / "docs/performance.md"
    kinds = {kind: [r for r in rows if r["kind"] == kind] for kind in ("sizes", "programs", "compile")}
    loads = sorted(r["load"] for r in rows)
    model = next((line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), platform.machine())
    parts = {"machine": [f"{os.cpu_count()} CPUs ({model}), {options.threads} threads; the load of the machine was {statistics.median(loads):.1f} in the median, "
                         f"from {loads[0]:.1f} to {loads[-1]:.1f}" + (": it was busy, so wall times are disturbed." if loads[len(loads) // 2] > 1.5 else "."), ""]}
    if kinds["sizes"]:
        parts["sizes"] = summary(kinds["sizes"], "name", "n") + sizes_table(kinds["sizes"], peaks(options.threads))
    if kinds["programs"]:
        parts["programs"] = summary(kinds["programs"], "name") + programs_table(kinds["programs"])
    if kinds["compile"]:
        parts["compile"] = compile_table(kinds["compile"])
    text = path.read_text()
    for name, lines in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        at, until = text.index(begin) + len(begin), text.index(end)
        text = text[:at] + "\n".join(lines) + "\n" + text[until:]
    path.write_text(text)
    pictures(rows)


def main():
    if sys.argv[1:2] == ["work"]:
        return work(json.loads(sys.argv[2]))
    sys.path.append(str(ROOT / "python"))  # where no xlac is installed: one that is built in place
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["sizes", "compile", "programs", "write", "all"])
    parser.add_argument("--engines", nargs="*", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--python", nargs="*", default=[], metavar="ENGINE=PATH")
    parser.add_argument("--folder")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budget", type=float, default=0.3, help="seconds of calls, for each program and engine")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of a process")
    parser.add_argument("--keep", action="store_true", help="go on with what was measured before")
    options = parser.parse_args()
    if options.what != "write" and not options.keep:
        RESULTS.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, step in (("sizes", sizes), ("compile", compiles), ("programs", programs)):
            if options.what in (name, "all"):
                step(options, pathlib.Path(folder))
    if options.what in ("write", "all"):
        write(options)


if __name__ == "__main__":
    main()
