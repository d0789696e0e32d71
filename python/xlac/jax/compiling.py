"""Programs go to the plugin as text where that says the same, for it takes a third of the time.

jaxlib writes a program for a plugin in StableHLO's portable form, through six pipelines of MLIR's, each of which makes its tables of rewrites
anew: 0.7 ms for the smallest program, ten times what xlac takes to compile it. What the pipelines rewrite is CHLO's ops, complex functions
and Shardy's attributes; a program that has none of these is in the portable form already, but for its encoding. A few of CHLO's ops the plugin
rewrites itself, to the same bits. Its text takes 0.05 ms to print, and
a saved executable may be one (csrc/pjrt/compile.c: the kind that is compiled when it is loaded). So it is loaded, behind the head
that jaxlib puts before executables it saves. The head is jaxlib's own and changes with its versions: head() is compared
with what jaxlib writes of a program with every type, before it is used. Where they differ, and for any other program, all is as it was.

XLAC_JAX_PORTABLE=1 leaves it to jaxlib always.
"""
import functools
import os
import re
import threading

from ..wire import field, varint

AFTER = 2  # programs that go jaxlib's way, before the comparison, which takes as long as two of them, is worth it
# Ops and types that jaxlib rewrites, and attributes that its head has a place for.
WORDS = (b"sdy.", b"shape.", b"mhlo.layout_mode", b"mhlo.memory_kind", b"mhlo.sharding", b"tensor<?")
# CHLO's ops that csrc/pjrt/compile.c expands to what jaxlib's pipelines make of them, to the bit: those of jnp.var, jax.random.normal, jax.lax.top_k.
CHLO = re.compile(rb"chlo\.(\w+)")
# Of complex numbers it expands the same functions, but for bits of these at -0 and at bounds.
COMPLEX_OTHER = re.compile(rb"stablehlo\.(exponential|sqrt|log_plus_one) .*complex<")
CHLO_SAME = {b"square", b"erf_inv", b"lgamma", b"next_after", b"top_k"}
TYPE = re.compile(r"tensor<((?:\d+x)*)(\w+|complex<f\d+>)>")
KINDS = {"i1": 1, "i8": 2, "i16": 3, "i32": 4, "i64": 5, "ui8": 6, "ui16": 7, "ui32": 8, "ui64": 9, "f16": 10, "f32": 11, "f64": 12, "bf16": 16,
         "complex<f32>": 15, "complex<f64>": 18}
VERSIONS = [field(1, i) for i in range(1, 16)]  # of heads: jaxlib 0.10.0 has 1, 0.10.2 has 3. What 0.9 loads it warns of, each time
MAGIC, HEAD = b"xlac-pjrt-source-1", 64  # csrc/pjrt/compile.c


# --- the head: what results and arguments are, as a message of protobuf's behind its length ---


def packed(numbers):
    return field(1, b"".join(map(varint, numbers))) if numbers else b""


def dims_of(text):
    return [int(d) for d in text.split("x")[:-1]]


@functools.lru_cache(1024)
def result(dims, kind):
    shape = packed(dims_of(dims))
    return field(5, field(1, shape) + field(2, field(1, KINDS[kind])) + field(4, b"device") + field(5, b"") + field(6, shape))


@functools.lru_cache(1024)
def argument(dims):
    layout = packed(range(len(dims_of(dims)) - 1, -1, -1)) + b"\x80\x01\x01"
    return field(6, field(1, field(1, field(1, b"xla::ifrt::PjRtLayout") + field(2, field(1, layout)))) + field(2, b""))


def head(name, signature, version=b""):
    """Of the function type `signature`; None where it has other types than arrays of numbers. `version`: a field with the form's, which is new."""
    arguments, _, results = signature.partition(" -> ")
    if TYPE.sub("", signature).strip("(), ->") or any(kind not in KINDS for _, kind in TYPE.findall(signature)):
        return None
    content = b"".join([version, field(2, b"pjrt_ifrt"), *(result(*t) for t in TYPE.findall(results)),
                        *(argument(dims) for dims, _ in TYPE.findall(arguments)), field(7, name), field(9, b"")])
    return varint(len(content)) + content


# --- the two ways ---


class Compiler:
    """In the place of jaxlib's Client.compile_and_load."""

    def __init__(self, portable):
        self.portable = portable  # jaxlib's
        self.lock = threading.Lock()
        self.seen, self.same, self.version = 0, None, None  # programs until heads were compared, whether they are the same, and of which version

    def compare(self, client, devices, options, ir):
        """The version of jaxlib's heads; None where they are not as head() writes them."""
        types = [f"tensor<{'2x' * (i % 4)}{kind}>" for i, kind in enumerate(KINDS)]
        values, listed = [f"%a{i}" for i in range(len(types))], ", ".join(types)
        arguments = ", ".join(map(": ".join, zip(values, types)))
        text = f"""module @xlac_types {{
          func.func public @main({arguments}) -> ({listed}) {{
            return {', '.join(values)} : {listed}
          }}
        }}"""
        saved = client.serialize_executable(self.portable(client, ir.Module.parse(text), devices, options))
        wanted = [head(b"xlac_types", f"({listed}) -> ({listed})", version) for version in VERSIONS]
        return next((version for version, front in zip(VERSIONS, wanted) if saved.startswith(front + b"xlac-pjrt-")), None)

    def ready(self, client, devices, options, ir):
        with self.lock:
            self.seen += 1
            if self.same is None and self.seen > AFTER:
                try:
                    self.version = self.compare(client, devices, options, ir)
                    self.same = self.version is not None
                except Exception:  # jaxlib's, of a version that does all this another way
                    self.same = False
        return self.same

    def saved(self, client, module, devices, options):
        """The program as an executable that was saved; None where it has to go jaxlib's way."""
        from jaxlib.mlir import ir

        if self.same is False or options.num_replicas != 1 or options.num_partitions != 1 or not getattr(client, "xlac_loads_text", False):
            return None
        with module.context:
            operation = module.operation
            if not self.ready(client, devices, options, ir):
                return None
            signature = str(ir.SymbolTable(operation)["main"].type)
            front = head(operation.attributes["sym_name"].value.encode(), signature, self.version)
            text = operation.get_asm(binary=True, enable_debug_info=True) if front else b""
            if not front or any(word in text for word in WORDS) or COMPLEX_OTHER.search(text) or not CHLO_SAME.issuperset(CHLO.findall(text)):
                return None
        return front + (MAGIC + b" 0 %d" % len(text)).ljust(HEAD, b"\0") + text

    def __call__(self, client, module, executable_devices=None, compile_options=None, host_callbacks=None, **others):
        if not (host_callbacks or others or executable_devices is None or compile_options is None):
            try:
                saved = self.saved(client, module, executable_devices, compile_options)
                if saved:
                    return client.deserialize_executable(saved, executable_devices, compile_options)
            except Exception:  # what is wrong with the program jaxlib's way tells as it always did
                pass
        given = {"executable_devices": executable_devices, "compile_options": compile_options, "host_callbacks": host_callbacks, **others}
        return self.portable(client, module, **{name: value for name, value in given.items() if value is not None})


def install():
    if os.environ.get("XLAC_JAX_PORTABLE", "") not in ("", "0"):
        return
    from jaxlib import xla_client
    client = xla_client.Client
    portable = getattr(client, "compile_and_load", None)
    if portable is None or isinstance(getattr(portable, "compiler", None), Compiler):
        return
    compiler = Compiler(portable)

    @functools.wraps(portable)
    def compile_and_load(self, *args, **kwargs):
        return compiler(self, *args, **kwargs)

    compile_and_load.compiler = compiler
    client.compile_and_load = compile_and_load
