"""xlac beside its peers: the tables and pictures of docs/performance.md.

  python benchmarks/peers.py sizes    [--engines ...] [--rounds 2]            ten programs (peers_programs.py) over five decades of sizes
  python benchmarks/peers.py compile  [--engines xlac xla iree]               compile time against the number of ops, up to 100,000
  python benchmarks/peers.py programs --folder FOLDER [--only NAME ...]       programs of a folder: NAME.stablehlo.mlir with NAME.json, its inputs
  python benchmarks/peers.py unseen                                           the programs of benchmarks/programs (unseen.py), beside XLA
  python benchmarks/peers.py sweep                                            every op on every type (op_sweep.py), beside XLA
  python benchmarks/peers.py write                                            docs/performance.md and docs/img/performance-*.svg of what was measured
  python benchmarks/peers.py all --folder FOLDER [--minutes 24]               all of that; each part has its share of the minutes

Engines: xlac and xlac-fast (numerics), xla (jaxlib's), torch, torch-compile, iree, numpy. One that can't be imported is left out; --python torch=PATH
names another interpreter for one. What PyTorch runs for a program of the folder is in bench_torch.py beside the folder, a dictionary T by name.
Each engine has a process of its own for each program, engines take turns, and a round goes through all of them. Of a call the
least and the median time is taken, and the processor time of all of its threads, which other work on the machine disturbs less. Rows are added
to build/peers.jsonl as they come, so that a run that was stopped goes on with --keep. "first" is the time from the start of a process to its first
result, "memory" the most that its process ever had."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from peers_tables import ENGINES, OPS, ROOT, SIZES, flat, results, timed, write

RESULTS = ROOT / "build" / "peers.jsonl"
TOO_LONG = 5  # seconds of compiling, after which an engine is not asked for a larger program


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
        if name not in self.functions:
            import bench_torch  # beside the folder of programs

            self.functions = {**self.functions, **bench_torch.T}
        self.trains = "train" in name
        return self.torch.compile(self.functions[name]) if self.compiles else self.functions[name]

    def put(self, arrays):
        return [self.tensor(a) for a in arrays]

    def tensor(self, a):
        if a.dtype.name == "bfloat16":
            return self.torch.from_numpy(a.view("i2").copy()).view(self.torch.bfloat16)
        return self.torch.from_numpy(a.astype("i4") if a.dtype.name == "uint32" else a.copy())

    def call(self, function, arguments):
        with self.torch.set_grad_enabled(self.trains):
            return flat(function(*arguments))

    def get(self, results):
        return [(r.float() if r.dtype == self.torch.bfloat16 else r).numpy() for r in results]


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
    TYPES = {"float32": "FLOAT_32", "int32": "SINT_32", "float64": "FLOAT_64", "bfloat16": "BFLOAT_16", "int8": "SINT_8", "uint32": "UINT_32",
             "bool": "BOOL_8", "complex64": "COMPLEX_64"}
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
        return [self.device.allocator.allocate_buffer_copy(memory_type=self.rt.MemoryType.DEVICE_LOCAL, allowed_usage=usage, device=self.device,
                                                           buffer=a.view("u2") if a.dtype.name == "bfloat16" else a,
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


def work(job):
    """What the process of one engine does: a job's programs, each compiled, checked and timed. Prints rows."""
    import numpy as np
    from compiled import off_by

    sys.path.insert(0, str(ROOT / "benchmarks"))
    engine = MAKERS[job["engine"]](job["threads"])
    sys.path.append(next((p["common"] for p in job["programs"] if "common" in p), "."))
    for program in job["programs"]:
        row = {key: program[key] for key in ("kind", "name", "n", "flops", "bytes") if key in program} | {"engine": job["engine"]}
        try:
            what = program["name"] if job["engine"] in BY_NAME else pathlib.Path(program["text"]).read_text()
            wall, processor = time.perf_counter(), time.process_time()
            exe = engine.compile(what)
            row |= {"compile": time.perf_counter() - wall, "compile_cpu": time.process_time() - processor}
            if program["kind"] != "compile":
                arrays = arguments_of(program)
                given = engine.put(arrays)
                first = engine.call(exe, given)
                row["first"] = time.time() - job["begin"]
                if program.get("expected"):
                    expected = np.load(program["expected"])
                    row["off"] = off_by([np.asarray(r) for r in engine.get(first)], [expected[k] for k in expected.files])
                elif job["engine"] != "iree":  # what IREE gives has no type here
                    row["off"] = off_digest(program, [np.asarray(r) for r in engine.get(first)])
                del first
                row |= dict(zip(("least", "median", "cpu"), timed(lambda e=exe, g=given: engine.call(e, g), job["budget"])))
        except Exception as error:  # one program that an engine can't run is a row
            row["error"] = f"{type(error).__name__}: {error}"[:200]
        row["memory"] = peak_memory()
        print(json.dumps(row), flush=True)
        if row.get("compile", 0) > TOO_LONG:
            break


def peak_memory():
    """Bytes that the process had at most."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def spec_of(program):
    """The program's JSON and the module beside the folder that reads it."""
    import common

    return common, json.loads(pathlib.Path(program["spec"]).read_text())


def off_digest(program, got):
    """How far results are from the digests of right ones that the JSON has; None where it has none, or where numbers are random."""
    common, spec = spec_of(program)
    return None if spec["name"].startswith("rng") else common.compare(spec, got)


def arguments_of(program):
    if program["kind"] == "sizes":
        import peers_programs

        return peers_programs.arguments(program["name"], program["n"])
    common, spec = spec_of(program)
    return common.make_inputs(spec)


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


def keeping_bytecode():
    """This process's environment, in which modules of a checkout are compiled once, as those of installed packages are."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def environment(threads=2):
    paths = [str(ROOT / "python"), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    return {**keeping_bytecode(), "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}


def run_jobs(options, groups, engines=None, rounds=None):
    """groups: lists of programs that a process takes one after the other. Stops where options.until is past."""
    pythons = {e: p for e, p in options.pythons.items() if engines is None or e in engines}
    RESULTS.parent.mkdir(exist_ok=True)
    done = {(r["kind"], r["name"], r["n"], r["engine"], r["round"]) for r in results(RESULTS)} if options.keep else set()
    for round_ in rounds or range(options.rounds):
        for programs in groups:
            for engine, python in pythons.items():
                left = [p for p in programs if (p["kind"], p["name"], p["n"], engine, round_) not in done]
                job = {"engine": engine, "threads": options.threads, "budget": options.budget, "programs": left}
                if left and time.monotonic() < options.until:
                    run_job(python, job, round_, options)


def late(options):
    """Seconds after which a process is given up: a little past the end of its part."""
    return min(options.timeout, max(20, options.until - time.monotonic()))


def run_job(python, job, round_, options):
    job["begin"] = time.time()
    try:
        got = subprocess.run([python, str(pathlib.Path(__file__)), "work", json.dumps(job)], capture_output=True, text=True, timeout=late(options),
                             env=environment(options.threads), check=False)
        rows, said = got.stdout, got.stderr
    except subprocess.TimeoutExpired as error:
        rows, said = (error.stdout or b"").decode(), "took too long"
    rows = [json.loads(line) for line in rows.splitlines() if line.startswith("{")]
    if len(rows) < len(job["programs"]):
        print(f"{job['engine']}, {job['programs'][0]['name']}: {said[-300:]}", file=sys.stderr)
    with RESULTS.open("a") as file:
        for row in rows:
            file.write(json.dumps(row | {"round": round_, "load": os.getloadavg()[0]}) + "\n")


def sizes(options, folder, **which):
    import jax
    import numpy as np
    import peers_programs

    functions, plain, groups = peers_programs.of_jax(), peers_programs.of_numpy(), []
    for name, (_, _, _, most) in peers_programs.PROGRAMS.items():
        if options.only and name not in options.only:
            continue
        group = []
        for n in [n for n in SIZES if n <= most]:
            text, expected = folder / f"{name}-{n}.mlir", folder / f"{name}-{n}.npz"
            if not expected.exists():
                arrays = peers_programs.arguments(name, n)
                text.write_text(jax.jit(functions[name]).lower(*arrays).as_text())
                with np.errstate(all="ignore"):
                    wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]
                    np.savez(expected, *flat(plain[name](*wide)))
            group.append({"kind": "sizes", "name": name, "n": n, "text": str(text), "expected": str(expected)})
        groups.append(group)
    run_jobs(options, groups, **which)


def compiles(options, folder):
    from cache import chain

    import xlac

    group = []
    for n in OPS:
        text = folder / f"chain-{n}.mlir"
        text.write_text(xlac.parse(chain(n)).to_text("mlir"))
        group.append({"kind": "compile", "name": "chain", "n": n, "text": str(text)})
    run_jobs(options, [group], [e for e in options.engines if e not in (*BY_NAME, "xlac-fast")], range(1))


def programs(options, folder, engines=None, rounds=None):
    del folder
    if not options.folder:
        raise SystemExit("--folder FOLDER: where are the programs?")
    groups = []
    for spec in sorted(pathlib.Path(options.folder).resolve().glob("*.json")):
        text, about = spec.with_suffix(".stablehlo.mlir"), json.loads(spec.read_text())
        if text.exists() and about.get("n_devices", 1) == 1 and not about.get("donated") and (not options.only or spec.stem in options.only):
            groups.append([{"kind": "programs", "name": spec.stem, "n": 0, "text": str(text), "spec": str(spec), "common": str(spec.parents[1]),
                            "flops": about.get("flops", 0), "bytes": about.get("in_bytes", 0) + about.get("out_bytes", 0)}])
    run_jobs(options, groups, engines or [e for e in options.engines if e not in ("torch-compile", "numpy")], rounds)


def beside_xla(script, *words):
    """A step that another script of this folder makes, into build/, until options.until."""
    def step(options, folder):
        del folder
        out = RESULTS.with_name(f"peers-{pathlib.Path(script).stem}.json")
        left = options.until - time.monotonic()
        if left > 5:
            subprocess.run([sys.executable, str(ROOT / "benchmarks" / script), *words, "--rounds", str(options.rounds), "--json", str(out), "--seconds",
                            str(min(left, 1e6))], check=False, env=environment(options.threads), stdout=subprocess.DEVNULL)
    return step


STEPS = {"sizes": sizes, "compile": compiles, "programs": programs, "unseen": beside_xla("unseen.py", "--half", "all", "--cpu", "--calls"),
         "sweep": beside_xla("op_sweep.py")}


def everything(options, folder):
    """What matters most comes first, and each part ends with its share of the minutes, so that all tables have rows; what is left over is for second
    rounds and for the engines that compile long."""
    begin, main_engines, first = time.monotonic(), ["xlac", "xlac-fast", "xla", "torch"], {"rounds": range(1)}
    rest = [*main_engines, "numpy"]
    parts = [("compile", 0.04, {}), ("programs", 0.36, {"engines": main_engines} | first), ("sizes", 0.50, {"engines": rest} | first), ("unseen", 0.63, {}),
             ("sweep", 0.82, {}), ("sizes", 0.88, {"engines": ["iree"]} | first), ("programs", 0.96, {"engines": ["iree"]} | first),
             ("programs", 0.98, {"engines": main_engines} | first), ("sizes", 1.0, {"engines": [*rest, "torch-compile"]} | first)]
    options.keep = True  # what a part had no time for is done where a later one of its kind has
    options.timeout = min(options.timeout, 40)
    for name, share, which in parts:
        options.until = begin + share * options.minutes * 60
        if time.monotonic() < options.until:
            STEPS[name](options, folder, **which)
        print(f"{name} {' '.join(which.get('engines', ''))}: {(time.monotonic() - begin) / 60:.1f} minutes", file=sys.stderr, flush=True)


def main():
    if sys.argv[1:2] == ["work"]:
        return work(json.loads(sys.argv[2]))
    sys.path.append(str(ROOT / "python"))  # where no xlac is installed: one that is built in place
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=[*STEPS, "write", "all"])
    parser.add_argument("--engines", nargs="*", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--python", nargs="*", default=[], metavar="ENGINE=PATH")
    parser.add_argument("--folder")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budget", type=float, default=0.2, help="seconds of calls, for each program and engine")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of a process")
    parser.add_argument("--keep", action="store_true", help="go on with what was measured before")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="of everything together: what does not fit is left out")
    options = parser.parse_args()
    if options.what == "all" and options.minutes == float("inf"):
        options.minutes = 24
    options.until = time.monotonic() + options.minutes * 60
    if options.what != "write":
        options.pythons = interpreters(options)
        if not options.keep:
            for path in RESULTS.parent.glob("peers*.json*"):
                path.unlink()
        with tempfile.TemporaryDirectory() as folder:
            (everything if options.what == "all" else STEPS[options.what])(options, pathlib.Path(folder))
    if options.what in ("write", "all"):
        write(RESULTS, options.threads)


if __name__ == "__main__":
    main()
