"""`xlac bench` and xlac.benchmark.measure: how long a program takes to compile and to run, beside others that are installed."""
import re
import statistics
import time

from .report import seconds_text, table

LEAST_SECONDS = 2e-3  # what is timed together is at least so long: a clock's own time then counts little


def times(call, repeat, seconds=None):
    """[seconds a call] of `repeat` samples, each of as many calls as fill LEAST_SECONDS."""
    call()
    started = time.perf_counter()
    call()
    number = max(1, int(LEAST_SECONDS / max(time.perf_counter() - started, 1e-9)))
    out, until = [], None if seconds is None else time.perf_counter() + seconds
    while len(out) < repeat and (until is None or not out or time.perf_counter() < until):
        started = time.perf_counter()
        for _ in range(number):
            call()
        out.append((time.perf_counter() - started) / number)
    return out


def xlac_way(options):
    def make(module, arguments):
        from . import compile

        executable = compile(module, **options)
        return lambda: executable(*arguments)
    return make


def interpreter(module, arguments):
    from . import _core

    return lambda: _core.interpret(module, *arguments)


ALIAS = r"(tf\.aliasing_output = \d+ : i32|jax\.buffer_donor = true)"


def stablehlo(module):
    """Its text without aliases: arguments stay ours, as with xlac's ways."""
    text = module.to_stablehlo().to_text() if module.form == "hlo" else module.to_text()
    for around in (r" \{%s\}", r", %s", r"%s, "):
        text = re.sub(around % ALIAS, "", text)
    return text


def xla(module, arguments):
    """XLA's CPU compiler, by jaxlib. ImportError where there is none."""
    import jax
    import jax.extend as jex
    import numpy as np
    from jaxlib import _jax

    backend = jex.backend.get_backend("cpu")
    devices = _jax.DeviceList(tuple(backend.local_devices()[:1]))
    loaded = backend.compile_and_load(stablehlo(module).encode(), devices, _jax.CompileOptions())
    placed = [jax.device_put(np.asarray(argument), backend.local_devices()[0]) for argument in arguments]

    def call():
        for result in loaded.execute_sharded(placed).disassemble_into_single_device_arrays():
            result[0].block_until_ready()
    return call


IREE_FLAGS = ("--iree-input-type=stablehlo", "--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
              "--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3")


def iree(module, arguments):
    """IREE's CPU compiler and runtime, by iree-base-compiler and iree-base-runtime. ImportError where they are not."""
    import numpy as np
    from iree import runtime
    from iree.compiler.api import Output, Session, Source

    session = Session()
    session.set_flags(*IREE_FLAGS)
    invocation, output = session.invocation(), Output.open_membuffer()
    invocation.enable_console_diagnostics()
    if not invocation.parse_source(Source.wrap_buffer(session, stablehlo(module).encode() + b"\0")) or not invocation.execute():
        raise RuntimeError("IREE does not compile this program")
    invocation.output_vm_bytecode(output)
    config = runtime.Config("local-task")
    context = runtime.SystemContext(config=config)
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, bytes(output.map_memory())))
    function = context.modules[list(context.modules)[-1]]["main"]
    placed = [runtime.asdevicearray(config.device, np.asarray(argument)) for argument in arguments]
    return lambda: function(*placed)


TRIVIAL = "HloModule m\nENTRY e {\n  ROOT x = f32[] constant(0)\n}"

WAYS = {"compiled": xlac_way({}), "fast": xlac_way({"numerics": "fast"}), "unfused": xlac_way({"fuse": False}),
        "one-thread": xlac_way({"threads": 1}),
        "interpreter": interpreter, "xla": xla, "iree": iree}


PACKAGES = {"xla": "jax", "iree": "iree-base-compiler iree-base-runtime"}


def why_not(way, error):
    """In one line, with what to install where that is all."""
    if isinstance(error, ModuleNotFoundError) and way in PACKAGES:
        return f"not installed: pip install {PACKAGES[way]}"
    return f"{type(error).__name__}: {error}".split("\n")[0]


class Measurement(dict):
    """{way: {"compile_seconds", "median_seconds", "min_seconds", "samples"}}; what could not be done has "error" alone."""

    def __repr__(self):
        rows = [(way, row["error"], "", "") if "error" in row
                else (way, *(seconds_text(row[key]) for key in ("compile_seconds", "median_seconds", "min_seconds")))
                for way, row in self.items()]
        return table(("way", "compile", "median", "least"), rows, right=(1, 2, 3))


def measure(program, *arguments, ways=("compiled",), repeat=20, seconds=None, seed=0, **options):
    """Times a program: a Measurement. `ways` are "compiled", "fast", "unfused", "one-thread", "interpreter", "iree" and "xla" (jaxlib's, where it is
    installed). Samples of the ways take turns, so that a busy machine treats them alike. `repeat` samples each, or as many as `seconds` allow.
    Without arguments they are drawn at random, with `seed`. Other options are those of xlac.compile, for "compiled"."""
    from . import parse
    from .codes import Code
    from .errors import ArgumentError, Error
    from .values import draw_inputs

    module = parse(program)
    arguments = arguments or draw_inputs(module.entry.parameters, seed)
    found, calls = Measurement(), {}
    for way in ways:
        if way not in WAYS:
            raise ArgumentError(f"there is no way {way!r} to run a program", Code.BAD_ARGUMENT, hint=f"ways are {', '.join(WAYS)}")
        make = xlac_way(options) if way == "compiled" else WAYS[way]
        try:
            if way == "xla":
                import jax.extend  # noqa: F401 - what importing takes is not compiling

                WAYS[way](parse(TRIVIAL), ())
            started = time.perf_counter()
            calls[way] = make(module, arguments)
            found[way] = {"compile_seconds": time.perf_counter() - started}
            calls[way]()
        except (Error, ImportError, AttributeError, TypeError, ValueError, RuntimeError) as error:
            if way not in ("xla", "iree", "interpreter"):
                raise
            found[way] = {"error": why_not(way, error)}
            calls.pop(way, None)
    samples = {way: [] for way in calls}
    until = None if seconds is None else time.perf_counter() + seconds
    for turn in range(repeat):
        if turn and until is not None and time.perf_counter() > until:
            break
        for way, call in calls.items():
            samples[way] += times(call, 1)
    for way, taken in samples.items():
        found[way].update(median_seconds=statistics.median(taken), min_seconds=min(taken), samples=len(taken))
    return found
