"""The command line: xlac COMMAND ... Exit status 0 means success, 1 that xlac refused or found a difference, 2 a wrong command
line, 130 Ctrl-C."""
import argparse
import base64
import contextlib
import copy
import difflib
import functools
import os
import re
import sys
import textwrap
import threading
import time

from . import _core, diagnostics
from .codes import Code
from .diagnostics import counted
from .errors import ArgumentError, Error, ParseError, VerifyError

PROGRESS_AFTER = 1.0  # seconds


FORMATS = {"auto": "auto", "hlo": "hlo", "txt": "hlo", "hlo-proto": "hlo-proto", "pb": "hlo-proto", "mlir": "mlir",
           "stablehlo": "mlir", "bytecode": "mlir-bytecode", "mlir-bytecode": "mlir-bytecode"}
BINARY = ("hlo-proto", "mlir-bytecode")
FILES = (".hlo", ".mlir", ".txt", ".pb", ".bc", ".mlirbc", ".stablehlo")  # how names of programs end
SEPARATOR = re.compile(rb"//\s?-{5,}\s*")


class Held:
    """What was read from a file, for messages."""

    def __init__(self, path, source):
        self.path, self.source = "<stdin>" if path == "-" else path, source


class Program:
    """A file that holds a program, and the module in it."""

    def __init__(self, path, format="auto", strict=False):
        self.path = "<stdin>" if path == "-" else path
        self.format, self.strict = FORMATS[format], strict
        self.source = b""
        if path == "-":
            self.source = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                self.source = file.read()
        self.source = self.source.removeprefix(b"\xef\xbb\xbf")  # which some editors write
        self.module = None

    def parts(self):
        """The programs between lines of `// -----`, as mlir-opt and hlo-opt have them: each below as many empty lines as are before it, so that
        places in it are those in the file."""
        lines, start = self.source.split(b"\n"), 0
        for end in [*(i for i, line in enumerate(lines) if SEPARATOR.fullmatch(line)), len(lines)]:
            part = copy.copy(self)
            part.source = b"\n" * start + b"\n".join(lines[start:end])
            if part.source.strip():
                yield part
            start = end + 1

    def parse(self):
        try:
            self.module = _core.parse(self.source, format=self.format, strict=self.strict)
        except ParseError as error:
            from .program import with_hint

            raise with_hint(error, self.source)
        return self.module


class Failure(Exception):
    """Something was refused, and said why on stderr: exit with status 1."""


class Progress:
    """Seconds run so far, on the last line of a terminal."""

    def __init__(self, what):
        self.what, self.shown = what, False
        self.live = sys.stderr.isatty()

    def __call__(self, seconds):
        if self.live and seconds > PROGRESS_AFTER:
            self.shown = True
            sys.stderr.write(f"\r{self.what} ... {seconds:.1f} s")
            sys.stderr.flush()

    def done(self):
        if self.shown:
            sys.stderr.write("\r" + " " * 60 + "\r")
            sys.stderr.flush()


@contextlib.contextmanager
def progress(what):
    """Seconds run so far, on a terminal, of work that prints nothing itself and has no progress of its own."""
    shown, over = Progress(what), threading.Event()

    def show():
        started = time.perf_counter()
        wait = PROGRESS_AFTER
        while not over.wait(wait):
            wait = 0.2
            shown(max(time.perf_counter() - started, PROGRESS_AFTER + 1e-9))

    thread = threading.Thread(target=show, daemon=True)
    if shown.live:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if shown.live:
            thread.join()
        shown.done()


def say(text):
    print(text, file=sys.stderr)


def complain(error, program, args=None):
    """Says what is wrong and where: in the program, or in the pipeline."""
    colour = diagnostics.wants_colour(sys.stderr)
    path, source = (program.path, program.source) if program else ("xlac", b"")
    if error.code == Code.SYNTAX and args and not getattr(args, "split_input_file", True) and any(map(SEPARATOR.fullmatch, source.split(b"\n"))):
        error.hint = "the file has several programs, between lines of // -----: --split-input-file takes each by itself"
    if error.code == Code.BAD_PIPELINE and args is not None and args.passes:
        path, source = "--passes", args.passes.encode()
    say(diagnostics.describe(error, path, source, colour))


def complain_of_file(error):
    say(f"xlac: error: {error.filename or 'input or output'}: {error.strerror or error}")


def write(text, path):
    """To a file, or to standard output ("-"); bytes that are not UTF-8 go out as they came in."""
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    if path in (None, "-"):
        sys.stdout.flush()
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()
    else:
        with open(path, "wb") as file:
            file.write(raw)


# --- commands: each takes the parsed arguments; a Program is kept in `args.program` for messages ---

def read(args, path):
    """The programs of a file: one, without --split-input-file."""
    args.program = None
    if args.documented_forms:
        say("warning: --documented-forms is deprecated: these forms are read unless --strict is given")
    program = Program(path, args.input_format, args.strict)
    return list(program.parts()) if getattr(args, "split_input_file", False) else [program]


def opened(args, path):
    (args.program,) = read(args, path)
    return args.program.parse()


def for_each(args, work):
    """`work(args, module)` for each program of the file; with --split-input-file, one that is refused does not keep the others from it. Gives what
    it gave, as a list."""
    found, refused = [], False
    for program in read(args, args.file):
        args.program = program
        try:
            found.append(work(args, program.parse()))
        except Error as error:
            if not args.split_input_file:
                raise
            complain(error, program, args)
            refused = True
    return found, refused


def write_all(args, found):
    """What for_each gave: texts, with the separator between them, and None for nothing; then the exit status says whether a program was refused."""
    texts, refused = [text for text in found[0] if text is not None], found[1]
    if texts:
        separator = "// -----\n"
        write(texts[0] if len(texts) == 1 else separator.join(text if text.endswith("\n") else text + "\n" for text in texts), args.output)
    if refused:
        raise Failure


def verify_file(args, path):
    """A row for each program of a file, or for the file where it can't be read."""
    try:
        programs = read(args, path)
    except OSError as error:
        if not args.json:
            complain_of_file(error)
        return [{"program": path, "ok": False, "error": {"message": error.strerror or str(error)}}]
    return [verify_one(args, path, program) for program in programs]


def verify_one(args, path, program):
    """What there is to say of one program, as a row of --json; in words, unless that is asked for."""
    started, row = time.perf_counter(), {"program": path, "ok": False}
    args.program = program
    try:
        module = program.parse()
        module.verify(xla_compat=args.xla_compat)
    except Error as error:
        if not args.json:
            complain(error, args.program, args)
        facts = {name: getattr(error, name) for name in ("message", "code", "line", "col", "op", "hint")}
        return {**row, "error": facts}
    stats = module.stats()
    if not args.quiet and not args.json:
        print(f"{args.program.path}: ok: {counted(stats['ops'], 'op')} in {counted(stats['computations'], 'computation')}, "
              f"{1e3 * (time.perf_counter() - started):.1f} ms")
    return {**row, "ok": True, "ops": stats["ops"], "computations": stats["computations"]}


def verify(args):
    rows = [row for path in args.files for row in verify_file(args, path)]
    if args.json:
        print_json(rows)
    if not all(row["ok"] for row in rows):
        raise Failure


def print_json(data):
    print(as_json(data))


def as_json(data):
    import json

    return json.dumps(data, default=plain_json)


def plain_json(value):
    """Arrays as lists; types that JSON lacks as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def print_options(args):
    return {"mode": args.mode, "elide_large_constants": args.elide, "operand_shapes": args.operand_shapes,
            "metadata": not args.no_metadata, "ids": not args.no_ids}


def written(args, module):
    """As text, or as asked for: str, or bytes."""
    format = FORMATS[args.output_format]
    if format in ("hlo", "hlo-proto") and module.form == "mlir":
        module = module.to_hlo()
    if format in ("mlir", "mlir-bytecode") and module.form == "hlo":
        module = module.to_stablehlo()
    if format in BINARY:
        if args.output in (None, "-") and sys.stdout.isatty() and not args.json:
            raise ArgumentError("a serialized module is not text to show on a terminal", Code.BAD_ARGUMENT, hint="give a file with -o")
        if getattr(args, "split_input_file", False):
            raise ArgumentError(f"--split-input-file writes texts, and {format} is not text", Code.BAD_ARGUMENT, hint="split the file first")
        return module.to_bytes(format)
    return module.to_text(format, **print_options(args))


def write_module(args, module):
    write(written(args, module), args.output)


def translate(args):
    write_all(args, for_each(args, translated))


def translated(args, module):
    """The program as asked for; with --json, that goes into a row, but where there is a file for it. None where nothing is left to write."""
    made = written(args, module)
    if not args.json:
        return made
    stats, format = module.stats(), FORMATS[args.output_format]
    row = {"program": args.program.path, "name": module.name, "format": module.form if format == "auto" else format, "ops": stats["ops"],
           "computations": stats["computations"]}
    if args.output:
        print_json({**row, "output": args.output})
        return made
    key, value = ("base64", base64.b64encode(made).decode()) if isinstance(made, bytes) else ("text", made)
    return print_json({**row, key: value})


def gather_arguments(args, parameters, seed):
    from . import values

    if args.input:
        return values.read_inputs(args.input, parameters)
    if parameters and not args.random_init_input_literals:
        say(f"note: no --input given; drawing {counted(len(parameters), 'random input')} with --seed={seed}")
    return values.draw_inputs(parameters, seed)


def runner(args, module):
    """How `run` runs the program: a function of its arguments that takes seed= and progress=."""
    from . import interpret

    where = {"replica": args.replica, "partition": args.partition}
    if args.device.split(":")[0] == "interp":
        for option in ("threads", "numerics"):
            if getattr(args, option) is not None:
                raise ArgumentError(f"--{option} needs the compiler", Code.BAD_ARGUMENT, hint="leave out --device=interp")
        return functools.partial(interpret, module, probes=args.probes, **where)
    if args.probes is not None:
        raise ArgumentError("--probes needs the interpreter", Code.BAD_ARGUMENT, hint="add --device=interp")
    return functools.partial(compiled(args, module), **where)


def stage_text(args, module):
    from . import compile_stage

    text = compile_stage(module, args.dump, device=args.device, threads=args.threads, numerics=args.numerics or "strict")
    return text if text.endswith("\n") or not text else text + "\n"


def compiled(args, module):
    from . import compile

    started = time.perf_counter()
    try:
        executable = compile(module, device=args.device, threads=args.threads, numerics=args.numerics or "strict")
    except Error as error:
        if not error.hint and not isinstance(error, VerifyError):
            error.hint = "--device=interp runs it in the interpreter"
        raise
    if args.time:
        say(f"compile: {1e3 * (time.perf_counter() - started):.3f} ms")
    why = executable.steps["why_interpreted"]
    if why:
        say(f"note: the interpreter runs this program, since {why}")
    return executable


def run_once(args, module, execute, seed):
    from . import values

    arguments = gather_arguments(args, module.entry.parameters, seed)
    if args.print_literals:
        print(values.as_text(tuple(arguments), whole=True).replace("result_", "argument_"))
    progress = Progress(f"running {module.name}")
    started = time.perf_counter()
    try:
        result = execute(*arguments, seed=seed, progress=progress)
    finally:
        progress.done()
    if args.time:
        say(f"run: {1e3 * (time.perf_counter() - started):.3f} ms")
    return result


def check_expected(args, result):
    from . import values

    if args.expected is None:
        return
    wanted = values.load(args.expected.removeprefix("@"))
    found = values.compare(result, wanted, args.rel_error_bound, args.abs_error_bound)
    for sentence in found:
        say(f"{args.program.path}: mismatch: {sentence}")
    if found:
        raise Failure
    say(f"{args.program.path}: the result is as expected")


def run(args):
    from . import values

    module = opened(args, args.file)
    if args.passes:
        module = module.run(args.passes)
    if args.iterations < 1:
        raise ArgumentError(f"--iterations must be 1 or more, found {args.iterations}", Code.BAD_ARGUMENT)
    if args.dump:
        print(stage_text(args, module), end="")
        return
    if args.output not in (None, "-"):
        values.check_path(args.output.removeprefix("@"))
    execute = runner(args, module)
    for iteration in range(args.iterations):
        result = run_once(args, module, execute, args.seed + iteration)
        check_expected(args, result)
    kept = args.output not in (None, "-")
    if kept:
        values.save(args.output.removeprefix("@"), result)
    if args.json:
        print_json({"program": args.program.path, **({"output": args.output} if kept else {}), "results": results_of(result, not kept)})
    elif kept:
        return
    elif args.expected is None or args.output == "-" or args.print_literals:
        print(values.as_text(result, whole=args.print_literals))


def results_of(result, whole):
    """A row for each array, for --json."""
    from . import values

    return [{"name": name, "type": values.type_text(array), **({"data": array} if whole else {})} for name, array in values.leaves(result)
            if array is not None]


def diff(args):
    from .difference import WAYS
    from .difference import diff as find

    if args.a not in WAYS and (os.path.exists(args.a) or os.path.splitext(args.a)[1] in FILES or "/" in args.a):
        if args.b != "compiled":
            raise ArgumentError(f"two programs are compared at a time; {args.b!r} is one more", Code.BAD_ARGUMENT,
                                hint="xlac diff OLD NEW, or xlac diff PROGRAM WAY WAY")
        from .commands import diff_programs

        return diff_programs(args)
    module = opened(args, args.file)
    arguments = gather_arguments(args, module.entry.parameters, args.seed)
    with progress(f"comparing {args.a} and {args.b}"):
        found = find(module, *arguments, a=args.a, b=args.b, rtol=args.rel_error_bound, atol=args.abs_error_bound)
    if args.json:
        facts = vars(found) if found else {}
        print_json({"program": args.program.path, "differs": bool(found), **facts})
        if found:
            raise Failure
        return
    if found:
        print(found)
        raise Failure
    print(f"{args.program.path}: no op differs between {args.a} and {args.b}")


def draw(args):
    ending = os.path.splitext(str(args.output))[1]
    if args.format is None and ending.lower() in (".png", ".pdf", ".jpg", ".jpeg", ".svg", ".gif"):
        raise ArgumentError(f"draw writes HTML, or Graphviz's language, not {ending}", Code.BAD_ARGUMENT,
                            hint=f"-o program.html, or -o program.dot and then dot -T{ending[1:].lower()} program.dot")
    from .draw import graph, page

    module = opened(args, args.file)
    if args.json:
        print_json({"program": args.program.path, "output": args.output, **graph(module)})
        if args.output is None:
            return
    if args.format == "dot" or (args.format is None and str(args.output).endswith((".dot", ".gv"))):
        return write(module.to_dot(), args.output)
    with progress(f"drawing {module.name}"):
        made = page(module)
    write(made, args.output)


def explore(args):
    from .explorer import page_of
    from .explorer.gather import of_program

    module = opened(args, args.file)
    arrays = gather_arguments(args, module.entry.parameters, args.seed) if args.profile or args.input else ()
    if args.output is None and sys.stdout.isatty() and not args.json:
        args.output = os.path.splitext(os.path.basename("program" if args.file == "-" else args.file))[0] + ".html"
        say(f"note: a page is not text to show on a terminal: it is in {args.output} (-o names another file)")
    with progress(f"exploring {module.name}"):
        parts, title = of_program(module, arrays, None, args.device, not args.no_passes)
        made = None if args.json and args.output is None else page_of(parts, title)
    if args.json:
        print_json({"program": args.program.path, "output": args.output, **parts})
    if made is not None:
        write(made, args.output)


def explained(args, module, executable):
    """(text, its data for --json) of a topic of compiled programs."""
    if args.topic == "profile":
        text = executable.profile(*gather_arguments(args, module.entry.parameters, args.seed), repeat=args.repeat, warmup=1)
        return text, {"seconds": text.seconds, "min_seconds": text.min_seconds, "steps": text.steps}
    text = executable.explain(args.topic)
    data = {"memory": executable.memory, "donation": executable.donations, "schedule": executable.steps,
            "cost": {**executable.cost, "by_op": executable.cost.by_op}}
    return text, data.get(args.topic, getattr(text, "data", None))


def explain(args):
    module = opened(args, args.file)
    if args.passes:
        module = module.run(args.passes)
    if args.topic == "async":
        model = {name: getattr(args, name) for name in ("gigaflops", "memory_gigabytes", "link_gigabytes")}
        text, data = module.explain("async", **model), None
    else:
        from . import compile

        if args.topic == "sharding" and args.devices is None:
            from .commands_passes import devices_of

            args.devices = devices_of(module)
        with progress(f"compiling {module.name}"):
            executable = compile(module, devices=args.devices)
        text, data = explained(args, module, executable)
    if args.json:
        text = as_json({"program": args.program.path, "topic": args.topic, "text": str(text), "data": data})
    write(f"{text}\n", args.output)


def demo(args):
    from .demo import measured, show

    found = measured()
    if args.json:
        print_json({key: value for key, value in found.items() if key not in ("text", "arrays", "numbers", "wanted")})
    else:
        show(found)
    if not found["agrees"]:
        raise Failure


def ops(args):
    if args.json:
        return print_json([{**row, "traits": sorted(row["traits"])} for row in _core.opcode_table() if args.name in (None, row["name"])])
    for row in _core.opcode_table():
        if args.name in (None, row["name"]):
            arity = "any" if row["arity"] < 0 else row["arity"]
            print(f"{row['name']:<28} {arity!s:>3}  {row['doc']}")
            for key, kind, required in row["attrs"] if args.name else ():
                print(f"    {key}: {kind}{', required' if required else ''}")
    if args.name and args.name not in {row["name"] for row in _core.opcode_table()}:
        raise Error(f"there is no op {args.name!r}", Code.UNKNOWN_OPCODE, hint=op_hint(args.name))


def op_hint(name):
    """What NumPy and others call so, else what begins or is spelt nearly so."""
    from .builder import elsewhere

    names = [row["name"] for row in _core.opcode_table()]
    known = elsewhere(name, str)
    near = [known] if known else [n for n in names if n.startswith(name)][:2] or difflib.get_close_matches(name, names, 2)
    return f"did you mean {' or '.join(near)}?" if near else "`xlac ops` lists the ops"


def errors(args):
    table = _core.error_table()
    wanted = args.code and int("".join(c for c in args.code if c.isdigit()) or 0)
    if args.code and wanted not in table:
        raise ArgumentError(f"there is no error code {args.code!r}", Code.BAD_ARGUMENT, hint="`xlac errors` lists the codes")
    if args.json:
        return print_json([{"code": code, "name": name, "title": title} for code, (name, title) in table.items() if wanted in (None, code)])
    for code, (name, title) in table.items():
        if wanted in (None, code):
            print(f"XLAC-E{code:04d} {name:<20} {title}")


# --- the command line itself ---

def flag(parser, name, *more, **kwargs):
    """A flag that is known with dashes, as in hlo-opt, and with underscores, as in run_hlo_module; help shows those with dashes alone."""
    dest = name[2:].replace("-", "_")
    spellings = {word for one in (name, *more) for word in (one, one.replace("_", "-"), one[:2] + one[2:].replace("-", "_"))}
    shown = sorted((word for word in spellings if "_" not in word), key=lambda word: (word.startswith("--"), word != name, word))
    parser.add_argument(*shown, dest=dest, **kwargs)
    if hidden := sorted(spellings - set(shown)):
        parser.add_argument(*hidden, dest=dest, **{**kwargs, "help": argparse.SUPPRESS, "default": argparse.SUPPRESS})


def add_read_flags(parser):
    flag(parser, "--input-format", "--from", choices=tuple(FORMATS), default="auto", metavar="FORMAT",
         help=f"of the program: {', '.join(FORMATS)}; stablehlo (mlir) is MLIR text, "
              f"bytecode a portable artifact, hlo-proto (pb) a serialized module")
    parser.add_argument("--strict", action="store_true", help="refuse what XLA 0.10.2 refuses, though XLA documents it")
    flag(parser, "--documented-forms", action="store_true", help=argparse.SUPPRESS)


def add_split(parser):
    flag(parser, "--split-input-file", action="store_true", help="the file has several programs, between lines of // -----: each by itself")


def add_print_flags(parser):
    flag(parser, "--output-format", "--to", choices=tuple(FORMATS), default="auto", metavar="FORMAT",
         help="of the output (default: the program's own); hlo-proto (pb) and bytecode are binary")
    flag(parser, "--mode", choices=("default", "short", "canonical", "fingerprint"), default="default",
         help="how to print, as XLA's HloPrintOptions of these names")
    flag(parser, "--elide", action="store_true", help="print {...} for large constants")
    flag(parser, "--operand-shapes", action="store_true", help="print the operands' shapes too")
    flag(parser, "--no-metadata", action="store_true", help="leave metadata out")
    flag(parser, "--no-ids", action="store_true", help="leave the numbers out of names")
    add_output(parser, "the output file; - is standard output")


def add_output(parser, text):
    parser.add_argument("-o", "--o", "--output", "--output-file", dest="output", metavar="FILE", help=text)


def add_json(parser):
    parser.add_argument("--json", action="store_true", help="print JSON, for programs to read")


EXAMPLES = {
    "run": ("xlac run step.hlo --input=x.npy --input='f32[4]=1 2 3 4' -o result.npz",
            "xlac run step.hlo --device=interp --seed=1 --expected=result.npz"),
    "diff": ("xlac diff old.mlir new.mlir", "xlac diff step.hlo", "xlac diff step.hlo interpreter fast --rel-error-bound=1e-4"),
    "opt": ("xlac opt step.hlo --passes=inline-calls,cse,dce --stats -o smaller.hlo",
            "xlac opt step.hlo --passes=cse,dce --print-after=cse",
            "xlac opt --list-passes"),
    "explain": ("xlac explain memory step.hlo", "xlac explain profile step.hlo --input=x.npy",
                "xlac explain donation step.hlo --json", "xlac explain sharding step.mlir"),
    "explore": ("xlac explore step.hlo --profile -o step.html",),
    "shard": ("xlac shard step.mlir --reshards --remedies", "xlac shard step.mlir --simulate --mesh data=256,model=2",
              "xlac shard step.mlir --plan 64 --memory 80GB", "xlac shard step.mlir --explain=%arg0:1 --svg=step.svg"),
    "cluster": ("xlac cluster graph.pb --explain=dense/MatMul", "xlac cluster graph.pb --why-not a b --dump=out"),
    "verify": ("xlac verify *.hlo", "xlac verify step.hlo --json"),
    "translate": ("xlac translate step.mlir --to=hlo -o step.hlo", "xlac translate step.mlir --to=hlo --json",
                  "cat step.hlo | xlac translate - --mode=canonical --elide"),
    "draw": ("xlac draw step.hlo -o step.html", "xlac draw step.hlo --json"),
    "ops": ("xlac ops dot",),
    "errors": ("xlac errors XLAC-E0201",),
    "bench": ("xlac bench step.hlo", "xlac bench step.hlo --way compiled --way xla --json"),
    "reduce": ("xlac reduce step.hlo --differ interpreter fast -o small.hlo", "xlac reduce step.hlo --command './check.sh {}'"),
    "completion": ("source <(xlac completion bash)", "xlac completion fish | source"),
    "cache": ("xlac cache", "xlac cache step.hlo", "xlac cache --clear"),
}
FIRST = ("xlac demo", "xlac run step.hlo --input=x.npy", "xlac explore step.hlo --profile -o step.html", "xlac COMMAND --help")


def show_examples(parser, lines):
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = parser.description and "\n".join(textwrap.wrap(" ".join(parser.description.split()), 79))
    parser.epilog = "examples:\n" + "\n".join(f"  {line}" for line in lines)


def add_examples(commands):
    for name, lines in EXAMPLES.items():
        show_examples(commands.choices[name], lines)


def add_inputs(p):
    p.add_argument("-i", "--input", "--input_literals_file", action="append", default=[], metavar="X", help="as for run")
    flag(p, "--random-init-input-literals", action="store_true", help="draw the inputs at random, without a note")
    flag(p, "--seed", "--random_seed", type=natural, default=0, help="of random inputs")


def add_run(commands):
    p = commands.add_parser("run", help="compile and run a program", description="""Compiles the program for this machine's CPUs, or
        interprets it, and runs its entry computation. Inputs come from --input, one or more per program, or are drawn at random.""")
    p.add_argument("file", help="the program; - is standard input")
    flag(p, "--device", default="cpu", help="cpu: compile it (default); cpu:1: in a second context; interp: the reference interpreter")
    flag(p, "--dump", metavar="STAGE", help="""run nothing; print what a stage of compiling leaves: translated, prepared, optimised (the
        program), fused (which ops are one kernel, and why), kernels, plan, or executable (what the device runs)""")
    flag(p, "--threads", type=natural, metavar="N", help="of the compiled program, at most (default: as many as there are CPUs)")
    flag(p, "--numerics", choices=("strict", "fast"), help="of the compiled program (default: strict)")
    flag(p, "--probes", metavar="DIR", help="where interpreter.probe puts what it sees, with --device=interp")
    add_read_flags(p)
    p.add_argument("-i", "--input", "--input_literals_file", action="append", default=[], metavar="X", help="""the next
        arguments: a .npy or .npz file, JSON such as [[1,2],[3,4]], or a type and numbers such as f32[2,2]=1 2 3 4 or 2x2xf32=1 2 3 4""")
    flag(p, "--random-init-input-literals", action="store_true", help="draw the inputs at random, without a note")
    flag(p, "--seed", "--random_seed", type=natural, default=0, help="of random inputs and of rng")
    add_output(p, "a .npz or .npy file for the result; - prints it")
    p.add_argument("--expected", "--expected_output", metavar="FILE", help="a .npz or .npy file to compare the result with")
    flag(p, "--rel-error-bound", type=amount, default=1e-5, help="relative difference allowed (default 1e-5)")
    flag(p, "--abs-error-bound", type=amount, default=1e-6, help="absolute difference allowed (default 1e-6)")
    flag(p, "--print-literals", action="store_true", help="print inputs and results, all of their elements")
    flag(p, "--iterations", type=count, default=1, help="run so many times, each with other random inputs")
    flag(p, "--passes", help="run these passes first")
    flag(p, "--replica", type=natural, default=0, help="what replica-id gives")
    flag(p, "--partition", type=natural, default=0, help="what partition-id gives")
    flag(p, "--time", action="store_true", help="print how long compiling and running took")
    p.set_defaults(command=run)


def add_diff(commands):
    ways = "interpreter, compiled, unfused (a kernel for each op), unoptimised (no passes), blasless or fast (numerics)"
    p = commands.add_parser("diff", help="find where two programs, or two executors of one, differ", description="""Runs every op of a
        program by two ways, and shows the first one whose values differ: where, by how much, and from what inputs. With a second program:
        the ops that went, came, or read other values, with their source lines, what they cost, and whether the results differ.""")
    p.add_argument("file", help="the program; - is standard input")
    p.add_argument("a", nargs="?", default="interpreter", metavar="A", help=f"another program, or a way: {ways}; default: interpreter")
    p.add_argument("b", nargs="?", default="compiled", metavar="B", help="the same; default: compiled")
    add_read_flags(p)
    add_inputs(p)
    flag(p, "--rel-error-bound", type=amount, default=1e-5, help="relative difference allowed (default 1e-5)")
    flag(p, "--abs-error-bound", type=amount, default=1e-6, help="absolute difference allowed (default 1e-6)")
    p.set_defaults(command=diff)


def add_explain(commands):
    p = commands.add_parser("explain", help="say why a program runs as it does", description="""async: chains of async ops, what they
        hide and what an earlier start would need, by a model of time (docs/async.md). fusion, kernels, schedule, cost, memory and donation: what the
        compiled program is made of. profile: what a call runs, and how long each step takes. sharding: of a program for several
        devices, what moves between them, what each computes whole, and why (docs/sharding.md).""")
    p.add_argument("topic", choices=("async", "fusion", "kernels", "schedule", "cost", "memory", "donation", "profile", "sharding"))
    p.add_argument("file", help="the program; - is standard input")
    add_read_flags(p)
    add_inputs(p)
    flag(p, "--repeat", type=count, default=20, help="profile: calls that are timed, after one that is not (default 20)")
    flag(p, "--passes", metavar="LIST", help="run these passes first, such as async-wrap,latency-hiding-scheduler")
    flag(p, "--devices", type=natural, metavar="N", help="compile for so many devices (default: one; for sharding as many as the program is for)")
    for name, what in (("--gigaflops", "operations"), ("--memory-gigabytes", "bytes that ops read and write"),
                       ("--link-gigabytes", "bytes that copies and collectives move")):
        flag(p, name, type=amount, default=0, help=f"async's model: billions of {what} a second")
    add_output(p, "the output file; - is standard output")
    p.set_defaults(command=explain)


def add_explore(commands):
    p = commands.add_parser("explore", help="look into a program in a browser", description="""Writes one HTML page that loads nothing: the
        ops by name scopes, calls and kernels, what each pass changed, memory over time, machine code, shardings, donation.""")
    p.add_argument("file", help="the program; - is standard input")
    add_read_flags(p)
    flag(p, "--profile", action="store_true", help="run it, with random inputs where none are given, and colour the page by time")
    p.add_argument("-i", "--input", "--input_literals_file", action="append", default=[], metavar="X", help="as for run; implies --profile")
    flag(p, "--random-init-input-literals", action="store_true", help="draw the inputs at random, without a note")
    flag(p, "--seed", "--random_seed", type=natural, default=0, help="of random inputs")
    flag(p, "--device", default="cpu", help="what to compile for (default: cpu)")
    flag(p, "--no-passes", action="store_true", help="leave the states between passes out, which makes a smaller page")
    add_output(p, "the HTML file; - is standard output")
    p.set_defaults(command=explore)


def add_simple(commands):
    p = commands.add_parser("verify", help="check programs", description="Parses and verifies HLO programs.")
    p.add_argument("files", nargs="+", metavar="file", help="HLO text; - is standard input")
    add_read_flags(p)
    add_split(p)
    flag(p, "--xla-compat", action="store_true", help="accept what XLA accepts against its own documentation")
    p.add_argument("-q", "--quiet", action="store_true", help="print nothing for programs that are fine")
    p.set_defaults(command=verify)
    p = commands.add_parser("translate", help="parse and print", description="Parses a program and prints it.")
    p.add_argument("file", help="HLO text; - is standard input")
    add_read_flags(p)
    add_split(p)
    add_print_flags(p)
    p.set_defaults(command=translate)
    p = commands.add_parser("draw", help="draw a program", description="Draws a program as HTML with SVG, or for Graphviz.")
    p.add_argument("file", help="HLO text; - is standard input")
    add_read_flags(p)
    flag(p, "--format", choices=("html", "dot"), help="default: by the output's name, else html")
    add_output(p, "the output file; - is standard output")
    p.set_defaults(command=draw)
    p = commands.add_parser("demo", help="show a real program at work")
    p.set_defaults(command=demo)
    p = commands.add_parser("ops", help="list the ops, or show one")
    p.add_argument("name", nargs="?", help="such as dot")
    p.set_defaults(command=ops)
    p = commands.add_parser("errors", help="list the error codes, or show one")
    p.add_argument("code", nargs="?", help="such as XLAC-E0201")
    p.set_defaults(command=errors)


# What other tools call it: a word that isn't a command here.
ELSEWHERE = {"convert": "translate", "print": "translate", "parse": "translate", "profile": "bench", "time": "bench", "compile": "run --dump",
             "optimize": "opt",
             "check": "verify", "lint": "verify", "bisect": "reduce", "minimize": "reduce", "view": "explore", "show": "explore", "help": "--help",
             "version": "--version"}


class Parser(argparse.ArgumentParser):
    """One that suggests what was meant."""

    def error(self, message):
        found = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if found:
            choices = [choice.strip(" '") for choice in found[2].split(",")]
            near = [ELSEWHERE[found[1]]] if "run" in choices and found[1] in ELSEWHERE else difflib.get_close_matches(found[1], choices, 2)
            if "run" in choices and os.path.exists(found[1]):
                message += f"\n  hint: the command comes first: xlac run {found[1]}, xlac verify {found[1]}, ..."
            elif os.path.exists(found[1]) and "fusion" in choices:
                message += f"\n  hint: the topic comes before the file: xlac explain memory {found[1]}"
            else:
                message += f"\n  hint: did you mean {' or '.join(near)}?" if near else ""
        super().error(message)

    def parse_args(self, args=None, namespace=None):
        """Words that nobody takes are an error of the command, with its usage, and not of `xlac`."""
        args = sys.argv[1:] if args is None else args
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            commands = next(action for action in self._actions if isinstance(action, argparse._SubParsersAction)).choices
            name = next(word for word in args if word in commands)
            commands[name].error(f"unrecognized arguments: {' '.join(rest)}" + hint_of_rest(name, commands[name], rest[0], args))
        return found


def hint_of_rest(name, parser, word, args):
    """What was probably meant by a word that the command doesn't take."""
    options = [option for option in parser._option_string_actions if option.startswith("--") and "_" not in option]
    bare, takes = word.partition("=")[0], f"\n  hint: see xlac {name} --help"
    if args.index(word) < args.index(name):
        return f"\n  hint: what belongs to a command comes after it: xlac {name} ... {word}"
    if not word.startswith("-"):
        if "--input" in options and name != "diff":
            return f"\n  hint: arguments of the program are given by --input={word}"
        if "--passes" in options:
            return f"\n  hint: passes are given by --passes={word}"
        return "\n  hint: it takes one program at a time" if os.path.exists(word) else takes
    if "--passes" in options and bare.lstrip("-") in _core.pass_table():
        return f"\n  hint: passes are given by --passes={bare.lstrip('-')}"
    near = difflib.get_close_matches("--" + bare.lstrip("-"), options, 2)
    return f"\n  hint: did you mean {' or '.join(near)}?" if near else takes


def bounded(kind, least, words):
    """A type of arguments: a number from `least`."""
    def read(text):
        try:
            number = kind(text)
        except ValueError:
            number = None
        if number is None or not number >= least or (kind is int and number >= 2 ** 63):
            raise argparse.ArgumentTypeError(f"expected {words}, found {text!r}")
        return number
    return read


count = bounded(int, 1, "a whole number, at least 1")
natural = bounded(int, 0, "a whole number, at least 0")
amount = bounded(float, 0, "a number, at least 0")


def make_parser():
    parser = Parser(prog="xlac", description="""Reads, verifies, prints, optimises, compiles and runs XLA programs: HLO, StableHLO and what JAX
        saves of a step by jax.jit(f).lower(...).as_text().""")
    parser.add_argument("--version", action="version", version=f"xlac {_core.version()}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add_run(commands)
    add_diff(commands)
    add_explain(commands)
    add_explore(commands)
    add_simple(commands)
    for name in ("run", "diff", "explain", "explore", "verify", "translate", "draw", "demo", "ops", "errors"):
        add_json(commands.choices[name])
    from . import commands as more
    from . import commands_passes

    commands_passes.add_to(commands)
    more.add_to(commands)
    add_examples(commands)
    show_examples(parser, FIRST)
    return parser


def attempt(args):
    args.program = None
    try:
        args.command(args)
        sys.stdout.flush()
        return 0
    except Failure:
        return 1
    except Error as error:
        complain(error, args.program, args)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read our output has left
        return 1
    except OSError as error:
        complain_of_file(error)
        return 1


def main(argv=None):
    """Runs the command line `argv` (by default the process's) and returns the exit status."""
    parser = make_parser()
    if not (sys.argv[1:] if argv is None else argv):
        parser.print_help(sys.stderr)
        return 2
    args = parser.parse_args(argv)
    try:
        return attempt(args)
    except KeyboardInterrupt:
        say("\nxlac: interrupted")
        return 130
