"""Programs that JAX's own tests compile, captured and compared with XLA: interpreted and compiled, on seeded arguments.

  python tests/oracle/capture_jax.py capture TESTS OUT.jsonl.xz [FILE_test.py ...] [--per-test 2] [--limit 60]
  python tests/oracle/capture_jax.py compare PROGRAMS.jsonl.xz [--report REPORT.jsonl]
  python tests/oracle/capture_jax.py sample PROGRAMS.jsonl.xz OUT.jsonl.xz --report REPORT.jsonl [--most 40] [--of-kind 2] [--bytes 6000]

TESTS is the folder `tests` of JAX's repository at the tag of the jax that is installed; absl-py is needed too. `capture` runs the files with
pytest and stores the StableHLO of what is compiled, at most `per-test` programs of a test function and `limit` of a file. Without files it
captures every kind of KINDS, where it adds what jax_kinds.py makes: kinds that JAX tests on other devices only. `compare` runs each in a
process of its own where one crashes, and counts by kind. `sample` picks small programs that agree: some of each kind, then those with ops
that none picked before has: tests/oracle/jax_programs.jsonl.xz is one."""
import argparse
import collections
import hashlib
import json
import lzma
import os
import re
import subprocess
import sys

SIGNS = {"pallas, interpreted": "stablehlo.while", "approximate top-k": "@ApproxTopK"}  # of programs that are what their kind is about
# What tests make their arguments with: neither stored nor counted.
PLUMBING = {"jit_" + name for name in ("iota", "broadcast_in_dim", "reshape", "convert_element_type", "_threefry_seed", "swapaxes", "equal", "not_equal",
                                       "_reduce_sum", "_linspace", "multiply", "add", "sub", "_uniform", "_normal", "_normal_real", "_randint")}
SECONDS = 60  # for one program in both engines and XLA
TOLERANCE = {"float64": 1e-9, "complex128": 1e-9, "float32": 2e-4, "complex64": 2e-4, "float16": 2e-2, "bfloat16": 5e-2}


# Kinds of programs: files, and which of their tests (as for pytest -k).
KINDS = {
    "typed keys": (("random_test.py", "key_reuse_test.py"), "KeyArray or Key"),
    "random": (("random_lax_test.py", "random_test.py", "stateful_rng_test.py"), "not KeyArray"),
    "dropout": (("stax_test.py", "experimental_rnn_test.py"), "Dropout"),
    "nn": (("nn_test.py",), ""),
    "tridiagonal": (("linalg_test.py", "eigh_test.py"), "ridiag"),
    "sparse": (("sparse_bcoo_bcsr_test.py", "sparsify_test.py", "sparse_test.py"), ""),
    "pallas, interpreted": (("pallas/pallas_test.py", "pallas/ops_test.py", "pallas/indexing_test.py", "pallas/pallas_vmap_test.py"), "Interpret"),
    "pallas, simulated devices": (("pallas/tpu_pallas_interpret_test.py",), ""),
    "loops": (("lax_control_flow_test.py",), ""),
    "linear algebra": (("linalg_test.py",), "not ridiag"),
    "numpy": (("lax_numpy_test.py", "lax_numpy_reducers_test.py", "lax_numpy_indexing_test.py"), ""),
    "approximate top-k": (("ann_test.py",), ""),
    "callbacks": (("python_callback_test.py", "debugging_primitives_test.py"), ""),
    "several devices": (("shard_map_test.py", "multi_device_test.py"), ""),
}


def read_programs(path):
    with lzma.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def write_programs(path, programs):
    with lzma.open(path, "wt", preset=9) as file:
        for p in programs:
            file.write(json.dumps(p) + "\n")


# --- capturing: this file as a plugin of pytest, told by environment variables ---

def base_name(item):
    """The test function, without the numbers of its cases."""
    return item.nodeid.split("::")[-2] + "." + re.sub(r"\d+( .*|\[.*)?$", "", item.name)


class Capture:
    def __init__(self, per_test, limit, out):
        self.per_test, self.limit, self.out = per_test, limit, out
        self.seen, self.of_test, self.now = set(), collections.Counter(), None

    def pytest_collection_modifyitems(self, items):
        kept = collections.Counter()
        for item in list(items):
            kept[base_name(item)] += 1
            if kept[base_name(item)] > 3:
                items.remove(item)

    def pytest_runtest_setup(self, item):
        self.now = base_name(item)

    def pytest_runtest_teardown(self, item):
        if len(self.seen) >= self.limit:
            item.session.shouldstop = "enough programs"

    def take(self, module):
        import pytest
        text = module.operation.get_asm()
        if re.search(r"module @(\w*)", text).group(1) in PLUMBING:
            return
        key = hashlib.sha256(re.sub(r"module @\S+", "", text).encode()).hexdigest()
        if self.of_test[self.now] >= self.per_test and key not in self.seen:
            pytest.skip("enough programs of this test")  # the rest of it, compiled and run, would give nothing
        if key in self.seen or len(self.seen) >= self.limit or len(text) > 200_000:
            return
        self.seen.add(key)
        self.of_test[self.now] += 1
        self.out.write(json.dumps({"test": self.now, "key": key[:12], "text": text}) + "\n")


def pytest_configure(config):
    if "XLAC_CAPTURE" not in os.environ:
        return
    import jax._src.pallas
    from jax._src import compiler
    for package in (jax._src, jax._src.pallas):  # the repository's helpers of tests, which are not installed
        package.__path__.append(os.path.join(os.environ["XLAC_JAX_SOURCE"], *package.__name__.split(".")))
    capture = Capture(int(os.environ["XLAC_PER_TEST"]), int(os.environ["XLAC_LIMIT"]), open(os.environ["XLAC_CAPTURE"], "w"))
    compile_it = compiler.backend_compile_and_load

    def compile_and_take(backend, module, *args, **kwargs):
        capture.take(module)
        return compile_it(backend, module, *args, **kwargs)

    compiler.backend_compile_and_load = compile_and_take
    config.pluginmanager.register(capture, "xlac-capture")


def capture_file(args, name, tests):
    """The programs that a file's tests compile, those alone whose names fit `tests`."""
    part = f"{args.out}.{os.path.basename(name)}.part"
    here = os.path.dirname(os.path.abspath(__file__))
    env = dict(os.environ, XLAC_CAPTURE=part, XLAC_PER_TEST=str(args.per_test), XLAC_LIMIT=str(args.limit), JAX_PLATFORMS="cpu",
               JAX_NUM_GENERATED_CASES="1", JAX_DISABLE_MOST_OPTIMIZATIONS="1", XLAC_JAX_SOURCE=os.path.dirname(os.path.abspath(args.tests)),
               PYTHONPATH=os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
    try:
        subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "capture_jax", "-p", "no:cacheprovider", "--rootdir", args.tests,
                        "-c", os.devnull, "-k", tests, os.path.join(args.tests, name)], env=env, timeout=args.seconds,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        pass  # what it has written counts
    found = []
    if os.path.exists(part):
        for line in open(part):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue  # cut off by the time limit
        os.remove(part)
    return found


def wanted(args):
    """(kind, file, which tests) of what is to be captured."""
    if args.files:
        return [("", name, "") for name in args.files]
    return [(kind, name, tests) for kind, (files, tests) in KINDS.items() if not args.kinds or kind in args.kinds for name in files]


def capture_files(args):
    programs = {}
    for kind, name, tests in wanted(args):
        before = len(programs)
        for p in capture_file(args, name, tests):
            programs.setdefault(p["key"], dict(p, file=name, kind=kind))
        print(f"{kind or 'files'}: {name}: {len(programs) - before} programs", flush=True)
    if not args.files:
        import jax_kinds
        for kind, name, text in jax_kinds.programs():
            if not args.kinds or kind in args.kinds:
                key = hashlib.sha256(text.encode()).hexdigest()
                programs.setdefault(key, dict(test=name, key=key[:12], text=text, file="jax_kinds.py", kind=kind))
    write_programs(args.out, programs.values())
    print(f"{len(programs)} programs")


# --- comparing ---

def numpy_dtype(name):
    import ml_dtypes
    import numpy as np
    if name == "pred":
        return np.dtype(bool)
    if re.fullmatch(r"[su](8|16|32|64)|f(16|32|64)|c(64|128)", name):
        kind, bits = name[0], int(name[1:])
        return np.dtype(f"{'i' if kind == 's' else kind}{bits // 8}")
    return np.dtype(getattr(ml_dtypes, {"bf16": "bfloat16"}.get(name) or re.sub(r"^f", "float", re.sub(r"^(f\d)", r"\1_", name)).replace(
        "s", "int", name[0] == "s").replace("u", "uint", name[0] == "u")))


def arguments(module, seed):
    """Seeded arguments: normal numbers, small integers, all bits of unsigned 32-bit ones, which are keys of random numbers."""
    import numpy as np
    rng = np.random.default_rng(seed)
    made = []
    for p in module.entry.parameters:
        if p.dtype == "token":
            made.append(None)
            continue
        dtype, shape = numpy_dtype(p.dtype), p.shape
        if dtype.kind == "b":
            a = rng.integers(0, 2, shape).astype(bool)
        elif dtype == np.uint32:
            a = rng.integers(0, 2**32, shape, dtype=np.uint32)
        elif dtype.kind in "iu" or dtype.name.startswith(("int", "uint")):
            a = rng.integers(0, 3, shape).astype(dtype)
        elif dtype.kind == "c":
            a = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
        else:
            a = rng.normal(size=shape).astype(dtype)
        made.append(np.asarray(a, dtype))
    return made


def largest(results):
    """The largest finite magnitude of any of them: what a residual that ought to be zero is measured by."""
    import numpy as np
    wide = [abs(a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)) for a in results if a.dtype.kind in "fc" or "float" in a.dtype.name]
    return max((np.max(a[np.isfinite(a)], initial=0) for a in wide), default=0)


def differs(got, want, most):
    """What is wrong with a leaf, or None."""
    import numpy as np
    if got.shape != want.shape or got.dtype.name != want.dtype.name:
        return f"{got.dtype}{got.shape} for {want.dtype}{want.shape}"
    name = got.dtype.name
    if got.dtype.kind not in "fc" and "float" not in name:
        return None if np.array_equal(got, want) else f"{np.mean(got != want):.2g} of the integers differ"
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    g, w = got.astype(wide), want.astype(wide)
    fine = np.isfinite(w)
    if not np.array_equal(np.isfinite(g), fine) or not np.array_equal(np.isnan(g), np.isnan(w)):
        return "NaNs or infinities elsewhere"
    scale = max(np.max(abs(w[fine]), initial=0), 1e-3 * most) or 1
    error = np.max(abs(g[fine] - w[fine]), initial=0) / scale
    return None if error <= TOLERANCE.get(name, 0.3) else f"off by {error:.2g}"


def run_xla(text, args):
    import jax
    import jaxlib._jax as lib
    import numpy as np
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    device = jax.devices("cpu")[0]
    options = lib.CompileOptions()
    options.executable_build_options.use_shardy_partitioner = True
    if os.environ.get("XLAC_QUICK"):  # the same ops, compiled with less effort
        options.executable_build_options.debug_options.xla_backend_optimization_level = 0
        options.executable_build_options.debug_options.xla_llvm_disable_expensive_passes = True
    with mlir.make_ir_context():
        executable = device.client.compile_and_load(ir.Module.parse(text), lib.DeviceList((device,)), options)
    results = executable.execute_sharded([jax.device_put(a) for a in args]).disassemble_into_single_device_arrays()
    return [np.asarray(r[0]) for r in results]


def leaves(value):
    import numpy as np
    if value is None:
        return []
    return [a for v in value for a in leaves(v)] if isinstance(value, tuple) else [np.asarray(value)]


def is_for_several(text):
    """Several devices or processes take part: one device can't say what is right."""
    counts = re.findall(r"mhlo\.num_(?:partitions|replicas) = (\d+)", text.split("\n", 1)[0])
    return any(int(n) > 1 for n in counts)


def compare_one(program):
    """("agree" or "differ" or "refused" or "no reference", why)"""
    import xlac
    text = program["text"]
    try:
        module = xlac.parse(text)
        module.verify()
        args = arguments(module, 0)
        executable = xlac.compile(module, threads=1)
        ours = {"interpreted": leaves(xlac.interpret(module, *args)), "compiled": leaves(executable(*args))}
    except xlac.Error as error:
        return "refused", str(error).split("\n")[0][:300]
    if is_for_several(text):
        return "no reference", "several devices"
    if any(a is None for a in args):
        return "no reference", "tokens can't be given to XLA"
    try:
        want = run_xla(text, args)
    except Exception as error:
        return "no reference", str(error).split("\n")[0][:200]
    for how, got in ours.items():
        if len(got) != len(want):
            return "differ", f"{how}: {len(got)} results for {len(want)}"
        for i, (g, w) in enumerate(zip(got, want)):
            if why := differs(g, w, largest(want)):
                return "differ", f"{how}: result {i}: {why}"
    return "agree", ""


def worker(path):
    """Answers the numbers that it reads with verdicts."""
    import signal
    programs = read_programs(path)

    def too_long(*_):
        raise TimeoutError(f"over {SECONDS} s")

    signal.signal(signal.SIGALRM, too_long)
    import jax
    from jaxlib import cpu_sparse, lapack
    jax.config.update("jax_enable_x64", True)
    lapack._lapack.initialize()  # jaxlib's routines of LAPACK are SciPy's, found here
    for name, value, version in cpu_sparse.registrations()["cpu"]:
        jax.ffi.register_ffi_target(name, value, platform="cpu", api_version=version)
    for line in sys.stdin:
        signal.alarm(SECONDS)
        try:
            verdict = compare_one(programs[int(line)])
        except Exception as error:
            verdict = ("failed", f"{type(error).__name__}: {str(error)[:200]}")
        signal.alarm(0)
        print("@@" + json.dumps(verdict), flush=True)


def compare_file(args):
    programs = read_programs(args.programs)
    env = dict(os.environ, XLAC_QUICK="1" if args.quick else "", JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
    process, verdicts = None, []
    report = open(args.report, "w") if args.report else None
    for i, program in enumerate(programs):
        if process is None or process.poll() is not None:
            process = subprocess.Popen([sys.executable, __file__, "worker", args.programs], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True, env=env)
        process.stdin.write(f"{i}\n")
        process.stdin.flush()
        answer = next((l for l in process.stdout if l.startswith("@@")), None)
        verdict = json.loads(answer[2:]) if answer else ("crash", f"exit {process.wait()}")
        verdicts.append(dict(kind=program.get("kind", ""), file=program["file"], test=program["test"], key=program["key"], verdict=verdict[0],
                             why=verdict[1]))
        if report:
            report.write(json.dumps(verdicts[-1]) + "\n")
            report.flush()
        if verdict[0] != "agree":
            print(f"{verdict[0]:12} {program['file']} {program['test']} {program['key']}: {verdict[1]}", flush=True)
    process.stdin.close()
    if report:
        report.close()
    counts = collections.Counter(v["verdict"] for v in verdicts)
    for kind in dict.fromkeys(v["kind"] for v in verdicts):
        of_kind = collections.Counter(v["verdict"] for v in verdicts if v["kind"] == kind)
        print(f"{kind or 'files'}: " + ", ".join(f"{n} {what}" for what, n in of_kind.most_common()))
    print(f"{len(verdicts)} programs: " + ", ".join(f"{n} {what}" for what, n in counts.most_common()))
    return 1 if counts["differ"] or counts["crash"] or counts["failed"] else 0


# --- a sample to keep ---

def sample(args):
    agree = {json.loads(line)["key"] for line in open(args.report) if json.loads(line)["verdict"] == "agree"}
    picked, known, of_kind = [], set(), collections.Counter()
    for p in sorted((p for p in read_programs(args.programs) if p["key"] in agree and len(p["text"]) <= args.bytes), key=lambda p: len(p["text"])):
        ops = set(re.findall(r"\b((?:stablehlo|chlo|sdy)\.\w+|custom_call @\w+)", p["text"]))
        kind = p.get("kind", "")
        rich = SIGNS[kind] in p["text"] if kind in SIGNS else len(ops) > 5
        few = rich and of_kind[kind] < args.of_kind
        if few or (len(ops - known) and len(picked) < args.most):
            known |= ops
            of_kind[kind] += rich
            picked.append(p)
    write_programs(args.out, picked)
    print(f"{len(picked)} programs with {len(known)} ops, {os.path.getsize(args.out)} bytes")


def main():
    if sys.argv[1:2] == ["worker"]:
        return worker(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    c = commands.add_parser("capture")
    for name in ("tests", "out"):
        c.add_argument(name)
    c.add_argument("files", nargs="*")
    c.add_argument("--kinds", type=lambda text: text.split(";"), help="of KINDS, between semicolons")
    c.add_argument("--per-test", type=int, default=2)
    c.add_argument("--limit", type=int, default=60)
    c.add_argument("--seconds", type=int, default=300, help="for a file")
    c.set_defaults(run=capture_files)
    c = commands.add_parser("compare")
    c.add_argument("programs")
    c.add_argument("--report")
    c.add_argument("--quick", action="store_true", help="XLA compiles without LLVM's costly passes")
    c.set_defaults(run=compare_file)
    c = commands.add_parser("sample")
    for name in ("programs", "out"):
        c.add_argument(name)
    c.add_argument("--report", required=True)
    c.add_argument("--most", type=int, default=40)
    c.add_argument("--of-kind", type=int, default=2)
    c.add_argument("--bytes", type=int, default=6000)
    c.set_defaults(run=sample)
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
