"""Commands of the command line that run passes over programs and graphs: opt, shard, cluster."""
import difflib
import math
import pathlib
import re
import sys
import time

from . import _core, cli, diagnostics
from .codes import Code
from .errors import ArgumentError, Error


def list_passes(args):
    if args.json:
        return cli.print_json(_core.pass_table())
    for name, row in _core.pass_table().items():
        print(f"{name:<20} {row['doc']}")
        for option, doc in row["options"].items():
            print(f"{'':<20}   {option}: {doc}")


def devices_of(module):
    """As many as the program is for: replicas times partitions, where it says so, else times the devices of its mesh."""
    text = module.to_text() if module.form == "mlir" else module.to_text().partition("\n")[0]
    asked = {name: int(n) for name, n in re.findall(r"\b(num_partitions|num_replicas|replica_count) ?= ?(\d+)", text)}
    meshes = [math.prod(map(int, re.findall(r'"=(\d+)', axes))) for axes in re.findall(r"(?m)^\s*sdy\.mesh @\S+ = <\[(.*?)\]", text)]
    partitions = asked.get("num_partitions", 1)
    return max(asked.get("num_replicas", 1), asked.get("replica_count", 1)) * (partitions if partitions > 1 else max(meshes, default=1))


class Watch:
    """What opt's flags ask about each pass: its state is printed, or what it changed, or how long it took."""

    def __init__(self, args, module):
        self.args, self.rows = args, []
        self.text, self.ops = self.text_of(module), module.stats()["ops"]
        self.started = time.perf_counter()

    def text_of(self, module):
        return module.to_text(**cli.print_options(self.args))

    def __call__(self, name, state):
        seconds = time.perf_counter() - self.started
        text, ops = self.text_of(state), state.stats()["ops"]
        self.rows.append({"pass": name, "seconds": seconds, "changed": text != self.text, "ops_before": self.ops, "ops": ops})
        if name in self.args.print_before:
            cli.say(f"// -----// HLO before {name} //----- //\n{self.text}")
        if self.args.print_after_all or name in self.args.print_after:
            cli.say(f"// -----// HLO after {name} //----- //\n{text}")
        if self.args.print_changed:
            cli.say(changed_text(name, self.text, text))
        self.text, self.ops = text, ops
        self.started = time.perf_counter()  # what is printed between passes is not theirs

    def timing(self):
        from .report import seconds_text, table

        rows = [(row["pass"], seconds_text(row["seconds"]), f"{row['ops_before']} -> {row['ops']}", "" if row["changed"] else "no change")
                for row in self.rows]
        return table(("pass", "time", "ops", ""), rows, right=(1,))


def changed_text(name, before, after):
    """The lines that a pass took away and put in, in colours on a terminal."""
    if before == after:
        return f"// -----// {name} changes nothing //----- //"
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]
    if diagnostics.wants_colour(sys.stderr):
        colours = {"+": "32", "-": "31", "@": "36"}
        lines = [f"\x1b[{colours[line[0]]}m{line}\x1b[0m" if line[0] in colours else line for line in lines]
    return "\n".join([f"// -----// changed by {name} //----- //", *lines])


def opt(args):
    if args.list_passes:
        return list_passes(args)
    if args.file is None:
        raise ArgumentError("opt needs a file: xlac opt FILE --passes=LIST", Code.BAD_ARGUMENT, hint="- is standard input")
    if args.passes is None:
        raise ArgumentError("opt needs passes: xlac opt FILE --passes=LIST", Code.BAD_ARGUMENT, hint="xlac opt --list-passes shows the passes")
    check_passes(args.print_before + args.print_after)
    cli.write_all(args, cli.for_each(args, opt_one))


def check_passes(names):
    """Those of --print-before and --print-after: one that there is not would print nothing, without a word."""
    table = _core.pass_table()
    for name in names:
        if name not in table:
            near = difflib.get_close_matches(name, table, 1)
            raise ArgumentError(f"there is no pass {name!r} to print a program before or after", Code.BAD_ARGUMENT,
                                hint=f"did you mean {near[0]}?" if near else "xlac opt --list-passes shows the passes")


def run_watched(args, module, result):
    """The Watch, or None where nothing asks for one. What --print-before shows of a pass that fails comes before the error."""
    asked = args.print_after_all or args.print_changed or args.timing or args.json or args.print_before or args.print_after
    watch = Watch(args, module) if asked else None
    if watch:
        watch.started = time.perf_counter()
    try:
        result.run(args.passes, after=watch, verify_each=args.verify_each, in_place=True)
    except Error:
        if args.print_before:
            cli.say(f"// -----// HLO before the pass that failed //----- //\n{watch.text}")
        raise
    return watch


def opt_one(args, module):
    """What to write of one program; None for nothing."""
    result = module.clone()  # beforehand, so that copying is not a pass's time
    watch = run_watched(args, module, result)
    before, after = module.stats(), result.stats()
    if args.timing:
        cli.say(watch.timing())
    if args.stats:
        said = f"{cli.counted(before['ops'], 'op')} in {cli.counted(before['computations'], 'computation')}"
        cli.say(f"{said} -> {after['ops']} in {after['computations']}")
    if args.json:
        cli.print_json({"program": args.program.path, "before": before, "after": after, "passes": watch.rows,
                        **({} if args.output else {"text": watch.text_of(result)})})
    return cli.written(args, result) if args.output or not args.json else None


def value_and_dim(question):
    value, colon, dim = question.rpartition(":")
    if not colon or not dim.isdigit():
        raise ArgumentError(f"--explain {question} names no dimension", Code.BAD_ARGUMENT, hint='such as --explain %arg0:1 or --explain "line 12:0"')
    return value, int(dim)


def shard(args):
    from . import sharding

    if args.simulate or args.plan is not None:
        return rehearse(args, cli.opened(args, args.file))
    for flag, needs in (("mesh", "--simulate"), ("memory", "--plan"), ("perfetto", "--simulate or --plan")):
        if getattr(args, flag) is not None:
            raise ArgumentError(f"--{flag} does nothing without {needs}", Code.BAD_ARGUMENT, hint=f"add {needs}")
    module = cli.opened(args, args.file)
    with cli.progress(f"propagating the shardings of {module.name}"):
        result = sharding.propagate(module)
    if "sharding" not in result.module.to_text():
        cli.say(f"note: {args.program.path} has no shardings, so nothing is propagated; --plan N proposes some")
    questions = [value_and_dim(question) for question in args.explain]
    if args.svg:
        cli.write(result.to_svg(), args.svg)
    if args.json:
        return cli.print_json(shard_facts(args, result, questions))
    trace = result.trace
    for value, dim in questions:
        print(trace.explain(value, dim))
        print(trace.picture(value))
    for reshard in trace.reshards if args.reshards or args.remedies else ():
        print(reshard)
        if args.remedies:
            print(f"  removed by {trace.remedy(reshard) or 'no single annotation that was tried'}")
    for suspicion in trace.suspicions if args.warnings else ():
        print(suspicion)
    if not (args.explain or args.reshards or args.remedies or args.svg or args.warnings):
        cli.write_module(args, result.module)


def rehearse(args, module):
    """A simulated step, or a plan with one."""
    from . import sharding

    hardware = json_or_name(args.hardware)
    if args.plan is not None:
        progress = (lambda done, most: cli.say(f"{done} of at most {most} simulations")) if sys.stderr.isatty() else None
        found = sharding.plan(module, args.plan, args.memory, hardware, progress=progress)
        picture, facts = found.simulation, found.data
    else:
        found = picture = sharding.simulate(module, mesh_flag(args.mesh), hardware)
        facts = found.data
    if args.svg:
        cli.write(picture.svg(), args.svg)
    if args.perfetto:
        cli.write(picture.to_perfetto(), args.perfetto)
    if args.json:
        return cli.print_json({"program": args.program.path, **facts})
    print(found)
    if args.plan is not None:
        print(f"\n{found.code}", end="")
        if args.output:
            cli.write(found.module.to_text(), args.output)


def json_or_name(text):
    """h100x8-ib, or a dict as JSON."""
    import json

    try:
        return json.loads(text) if text.lstrip().startswith("{") else text
    except ValueError as error:
        raise ArgumentError(f"--hardware {text!r} is not a JSON: {error}", Code.BAD_ARGUMENT) from None


def mesh_flag(text):
    """data=256,model=2"""
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name and size.isdigit() for name, _, size in pairs):
        raise ArgumentError(f"--mesh {text!r} is not a mesh", Code.BAD_ARGUMENT, hint="such as --mesh data=256,model=2")
    return [(name.strip(), int(size)) for name, _, size in pairs]


def shard_facts(args, result, questions):
    """All that was propagated, as --json prints it; remedies only if asked for, since each is found by propagating again."""
    from dataclasses import asdict

    from . import sharding

    trace = result.trace
    facts = {"program": args.program.path, "shardings": {name: str(found) for name, found in sharding.shardings(result.module).items()},
             "reshards": [asdict(reshard) for reshard in trace.reshards], "warnings": [asdict(suspicion) for suspicion in trace.suspicions],
             "explained": [{"value": value, "dim": dim, "text": str(trace.explain(value, dim))} for value, dim in questions]}
    if args.remedies:
        for row, reshard in zip(facts["reshards"], trace.reshards):
            remedy = trace.remedy(reshard)
            row["remedy"] = remedy and {"value": remedy.value, "sharding": remedy.sharding, "was": remedy.was, "saves": remedy.saves}
    if not args.svg and not args.output:
        facts["text"] = result.module.to_text()
    return facts


def cluster(args):
    from .clusters import cluster as run
    from .clusters import read_graph

    if args.list_ops:
        for line in _core.cluster_op_list().splitlines():
            print(line, "lowered" if _core.has_lowering(line.partition("\t")[0]) else "", sep="\t")
        print("\ndevices (device.c; XlaOpRegistry of TensorFlow 2.21, with tf_xla_cpu_global_jit)")
        for name, row in _core.cluster_devices().items():
            print(name, row["compilation_device"], row["autoclustering_policy"], *(k for k, v in row.items() if v is True), sep="\t")
        return
    if args.file is None:
        raise ArgumentError("a file with a GraphDef is missing", Code.BAD_ARGUMENT, hint="xlac cluster graph.pb, or --list-ops")
    data = read_graph(sys.stdin.buffer if args.file == "-" else pathlib.Path(args.file))
    args.program = cli.Held(args.file, data)
    with cli.progress(f"clustering {args.file}"):
        result = run(data, format=args.format, **dict(map(cluster_flag, args.flag)))
    if not args.json:
        for node in args.explain:
            print(result.why(node))
        for pair in args.why_not:
            print(result.why_not(*pair))
    if args.output:
        text = args.output.endswith((".pbtxt", ".txt"))
        with open(args.output, "wb") as file:
            file.write(result.to_dot().encode() if args.output.endswith(".dot") else
                       result.to_text(encapsulated=args.encapsulated).encode() if text else result.to_graphdef(encapsulated=args.encapsulated))
    dumped = result.dump(args.dump) if args.dump else []
    if args.json:
        return cli.print_json({"program": args.file, "nodes": result.assignment, "clusters": result.clusters, "files": dumped,
                               "why": {node: str(result.why(node)) for node in args.explain},
                               "why_not": [{"nodes": pair, "text": str(result.why_not(*pair))} for pair in args.why_not],
                               "values": run_graph(args, result) if args.run or args.first else {}})
    if dumped:
        print("\n".join(dumped))
    if args.run or args.first:
        run_graph(args, result)
    if not (args.explain or args.why_not or args.output or args.dump or args.run or args.first):
        print(repr(result)[6:-1])
        for name, nodes in result.clusters.items():
            print(f"{name}: {len(nodes)} nodes: {', '.join(nodes[:6])}{', ...' if len(nodes) > 6 else ''}")


def run_graph(args, clusters):
    for node in args.first:
        clusters.executable([], [], [node])()
    feeds = dict(map(graph_feed, args.feed))
    step = clusters.executable(list(feeds), args.run)
    found = dict(zip(args.run, step(feeds)))
    if args.json:
        return found
    for name, value in found.items():
        print(f"{name} {value.dtype}{list(value.shape)} {value.tolist()}")
    print(step.explain())


def graph_feed(text):
    """x=FILE.npy, x=1.5, x=[[1, 2]]."""
    import json

    import numpy as np

    name, equals, value = text.partition("=")
    if not equals:
        raise ArgumentError(f"--feed {text!r} is not NAME=VALUE", Code.BAD_ARGUMENT)
    try:
        return name, np.load(value, allow_pickle=False) if value.endswith(".npy") else json.loads(value)
    except ValueError as error:
        raise ArgumentError(f"--feed {text!r}: the value is neither a .npy file nor JSON: {error}", Code.BAD_ARGUMENT) from None


def cluster_flag(text):
    """min_cluster_size=2, also with TensorFlow's tf_xla_ before it."""
    name, equals, value = text.partition("=")
    name = name.removeprefix("--").removeprefix("tf_xla_")
    if not equals or value.lower() == "true":
        return name, True
    return name, False if value.lower() == "false" else int(value) if value.lstrip("-").isdigit() else value


def add_opt(commands):
    p = commands.add_parser("opt", help="run passes", description="Runs a pipeline of passes and prints the program.")
    p.add_argument("file", nargs="?", help="HLO text; - is standard input")
    cli.flag(p, "--passes", metavar="LIST", help="such as dce,constant-folding{max-elements=1000}")
    cli.flag(p, "--print-after-all", action="store_true", help="print the program to stderr after each pass")
    cli.flag(p, "--print-before", action="append", default=[], metavar="PASS",
             help="print the program to stderr before each run of this pass; may be repeated")
    cli.flag(p, "--print-after", action="append", default=[], metavar="PASS", help="the same after it")
    cli.flag(p, "--print-changed", action="store_true", help="print to stderr which lines each pass takes away and puts in")
    cli.flag(p, "--timing", action="store_true", help="print to stderr how long each pass took, and what it left")
    cli.flag(p, "--verify-each", action="store_true", help="verify after each pass")
    cli.flag(p, "--list-passes", action="store_true", help="print the passes and their options")
    cli.flag(p, "--stats", action="store_true", help="print the number of ops before and after")
    cli.add_read_flags(p)
    cli.add_split(p)
    cli.add_print_flags(p)
    p.set_defaults(command=opt)


def add_shard(commands):
    p = commands.add_parser("shard", help="propagate shardings", description="Propagates the shardings of a StableHLO program.")
    p.add_argument("file", help="StableHLO text; - is standard input")
    cli.flag(p, "--explain", action="append", default=[], metavar="VALUE:DIM",
         help='say why that dimension is sharded as it is: %%arg0:1, %%3:0, "line 12:0"')
    cli.flag(p, "--reshards", action="store_true", help="print the collectives that the shardings imply, with their bytes")
    cli.flag(p, "--remedies", action="store_true", help="with each the single annotation that would remove it, found by trying")
    cli.flag(p, "--warnings", action="store_true", help="warn about shardings that are probably mistakes")
    cli.flag(p, "--simulate", action="store_true", help="rehearse a step: its time, memory and collectives on each device, without running it")
    cli.flag(p, "--plan", type=cli.natural, metavar="N", help="propose a mesh of N devices and shardings of the arguments")
    cli.flag(p, "--mesh", metavar="AXES", help="with --simulate: other sizes of the mesh's axes, such as data=256,model=2")
    cli.flag(p, "--hardware", default="h100x8-ib", metavar="NAME",
             help="of what machine: a name, or a dict as JSON (docs/simulation.md; default: h100x8-ib)")
    cli.flag(p, "--memory", metavar="BYTES", help="with --plan: what a device may use, such as 80GB (default: what the hardware has)")
    cli.flag(p, "--perfetto", metavar="FILE", help="write the simulated timeline for ui.perfetto.dev")
    cli.flag(p, "--svg", metavar="FILE",
             help="draw the program with its collectives, coloured by axis, or the simulated step; - is standard output")
    cli.add_read_flags(p)
    cli.add_print_flags(p)
    p.set_defaults(command=shard)


def add_cluster(commands):
    p = commands.add_parser("cluster", help="cluster a TensorFlow graph",
                            description="Says which nodes of a GraphDef TensorFlow would compile together with XLA.")
    p.add_argument("file", nargs="?", help="a GraphDef, binary or text, or a SavedModel's folder; - is standard input")
    cli.flag(p, "--format", choices=("auto", "proto", "text"), default="auto", help="of the file (default: auto)")
    cli.flag(p, "--flag", action="append", default=[], metavar="NAME=VALUE", help="a flag of xlac.cluster, such as min_cluster_size=2")
    cli.flag(p, "--explain", action="append", default=[], metavar="NODE", help="say why the node is in its cluster, or in none")
    cli.flag(p, "--why-not", nargs=2, action="append", default=[], metavar=("A", "B"), help="say why two nodes are not in one cluster")
    cli.flag(p, "--dump", metavar="DIR", help="write the graph before and after, annotated, and its picture")
    cli.flag(p, "--list-ops", action="store_true", help="list the ops that XLA compiles, with their types and categories")
    cli.add_output(p, "where the marked graph goes: .pb, .pbtxt or .dot")
    cli.flag(p, "--encapsulated", action="store_true", help="write clusters as functions of the library, and nodes that call them")
    cli.flag(p, "--run", action="append", default=[], metavar="VALUE",
             help="run the graph, print this value (node or node:output) and what was compiled")
    cli.flag(p, "--feed", action="append", default=[], metavar="NAME=VALUE", help="a value to run with: a .npy file or JSON")
    cli.flag(p, "--first", action="append", default=[], metavar="NODE", help="a node to run before, such as an initialiser")
    p.set_defaults(command=cluster)


def add_to(commands):
    for add in (add_opt, add_shard, add_cluster):
        add(commands)
    for name in ("opt", "shard", "cluster"):
        cli.add_json(commands.choices[name])
