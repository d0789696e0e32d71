"""Commands of the command line that came later: bench, reduce, completion."""
import json
import shlex
import subprocess
import sys
import tempfile

from . import cli
from .codes import Code
from .errors import ArgumentError


def bench(args):
    from .benchmark import measure

    module = cli.opened(args, args.file)
    arguments = cli.gather_arguments(args, module.entry.parameters, args.seed)
    options = {name: getattr(args, name) for name in ("threads", "device") if getattr(args, name) is not None}
    ways = [way for some in args.way or ["compiled"] for way in some.split(",")]
    with cli.progress(f"timing {module.name}"):
        found = measure(module, *arguments, ways=ways, repeat=args.repeat, seconds=args.seconds, **options)
    print(json.dumps({"program": args.program.path, "ways": found}) if args.json else found)
    if all("error" in row for row in found.values()):
        raise cli.Failure


def by_command(command):
    """A predicate: the command, with the program's file for {} or at its end, does not exit with 0."""
    words = shlex.split(command)
    if not words:
        raise ArgumentError("--command is empty", Code.BAD_ARGUMENT)

    def fails(module):
        with tempfile.NamedTemporaryFile("w", suffix=".hlo", errors="surrogateescape") as file:
            file.write(module.to_text("hlo"))
            file.flush()
            line = [word.replace("{}", file.name) for word in words] if "{}" in command else [*words, file.name]
            return subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=None).returncode != 0

    return fails


def reduce(args):
    from .reduction import differs, reduce as run

    module = cli.opened(args, args.file)
    fails = by_command(args.command_line) if args.command_line else differs(*args.differ, args.rel_error_bound, args.abs_error_bound, args.seed)
    live = sys.stderr.isatty() and not args.json
    counted = [0]

    def progress(tried, ops):
        counted[0] = tried
        if live:
            sys.stderr.write(f"\rtried {tried} programs, {ops} ops  ")
            sys.stderr.flush()

    before = module.stats()["ops"]
    smaller = run(module, fails, limit=args.limit, progress=progress)
    if live:
        sys.stderr.write("\r" + " " * 60 + "\r")
    after = smaller.stats()["ops"]
    if args.json:
        text = {} if args.output else {"text": smaller.to_text()}
        cli.print_json({"program": args.program.path, "before": before, "after": after, "tried": counted[0], **text})
    else:
        cli.say(f"{before} ops -> {after}, after {counted[0]} programs")
    if args.output or not args.json:
        cli.write(smaller.to_text(), args.output)


def diff_programs(args):
    """Two programs: what of the one is not in the other, what each costs, and whether their results are the same on random arguments."""
    from . import changes

    old, new = cli.opened(args, args.file), cli.opened(args, args.a)
    found = changes(old, new)
    said = None if found.signature else other_results(args, found)
    if args.json:
        cli.print_json({"programs": [args.file, args.a], "differs": bool(found or said), "signature": found.signature, "results": said,
                        "costs": found.costs,
                        "changes": [dict(zip(("change", "op", "type", "op_name", "source"), row)) for row in found.rows()]})
    else:
        print(found)
        if found:
            print(found.cost_text())
        if not found.signature:
            print(f"other results: {said}" if said else "the same results on random arguments, within the tolerances of their element types")
    if found or said:
        raise cli.Failure


def other_results(args, found):
    """None, or where the results differ."""
    from .testing import assert_close

    arguments = cli.gather_arguments(args, found.old.entry.parameters, args.seed)
    try:
        assert_close(*(run_compiled(module, arguments) for module in (found.new, found.old)))
    except AssertionError as error:
        return str(error)
    return None


def run_compiled(module, arguments):
    from . import compile

    return compile(module)(*arguments)


def cache(args):
    from . import cache as found

    if args.folder or not found.folder():
        found.enable(args.folder)
    if args.clear:
        said = {"removed": found.clear()}
    elif args.file:
        said = {"program": args.file, "miss": found.explain_miss(cli.opened(args, args.file)) or None}
    else:
        said = {**found.stats(), "programs": found.entries()}
    if args.json:
        return cli.print_json(said)
    if args.file and not args.clear:
        return print(said["miss"] or "the cache has it")
    for entry in said.pop("programs", []):
        print(f"{entry['name']:40s} {entry['bytes']:>10} bytes  {entry['isa']} {entry['numerics']}")
    print(", ".join(f"{key} {value}" for key, value in said.items()))


# --- completion ---

BASH = """# xlac: completion for bash; in zsh after `autoload -U +X bashcompinit && bashcompinit`
_xlac() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" options
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{commands}" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$options" -- "$word") $(compgen -f -- "$word"))
}}
complete -o filenames -F _xlac xlac
"""


def subparsers(parser):
    """{command: (its parser, help)}"""
    action = next(a for a in parser._subparsers._group_actions)
    helps = {choice.dest: choice.help for choice in action._choices_actions}
    return {name: (one, helps.get(name, "")) for name, one in action.choices.items()}


def flags_of(parser):
    """Flags with dashes that help shows, with their words."""
    return {flag: action for action in parser._actions if action.help is not None and action.help != "==SUPPRESS=="
            for flag in action.option_strings if flag.startswith("--") and "_" not in flag}


def choices_of(parser):
    """{flag: its words, or None}"""
    return {flag: action.choices and list(action.choices) for flag, action in flags_of(parser).items()}


def completion(args):
    commands = subparsers(cli.make_parser())
    if args.json:
        return cli.print_json({name: {"help": text, "flags": choices_of(parser)} for name, (parser, text) in commands.items()})
    if args.shell == "fish":
        lines = [f"complete -c xlac -n __fish_use_subcommand -f -a {name} -d {shlex.quote(text)}" for name, (_, text) in commands.items()]
        for name, (parser, _) in commands.items():
            for flag, action in flags_of(parser).items():
                choices = f" -x -a {shlex.quote(' '.join(map(str, action.choices)))}" if action.choices else ""
                lines.append(f"complete -c xlac -n '__fish_seen_subcommand_from {name}' -l {flag[2:]}{choices}")
        return print("\n".join(lines))
    cases = "\n".join(f'    {name}) options="{" ".join(flags_of(parser))}" ;;' for name, (parser, _) in commands.items())
    print(BASH.format(commands=" ".join(commands), cases=cases), end="")


# --- the command line ---

def add_bench(commands):
    p = commands.add_parser("bench", help="time a program", description="""Times compiling and running a program, alone or beside other ways
        to run it, whose samples take turns.""")
    p.add_argument("file", help="the program; - is standard input")
    cli.flag(p, "--way", action="append", metavar="WAY", help="compiled (default), fast, unfused, one-thread, interpreter, xla (jaxlib's), "
             "iree (of iree-base-compiler); may be repeated, or several with commas between")
    cli.flag(p, "--repeat", type=cli.count, default=20, help="samples of each (default 20); each of as many calls as fill 2 ms")
    cli.flag(p, "--seconds", type=cli.amount, help="stop taking samples after so long")
    cli.flag(p, "--threads", type=cli.natural, metavar="N", help="of the compiled program, at most")
    cli.flag(p, "--device", help="what to compile for (default: cpu)")
    cli.add_read_flags(p)
    cli.add_inputs(p)
    cli.add_json(p)
    p.set_defaults(command=bench)


def add_reduce(commands):
    p = commands.add_parser("reduce", help="find the smallest part of a program that still fails", description="""Makes a program smaller as long as
        it fails: two ways of running it differ, or a command does not succeed.""")
    p.add_argument("file", help="the program; - is standard input")
    cli.flag(p, "--differ", nargs=2, default=("interpreter", "compiled"), metavar=("A", "B"),
             help="it fails where these differ, as for diff (default: interpreter compiled)")
    p.add_argument("--command", dest="command_line", metavar="LINE",
                   help="it fails where this command does not exit with 0; {} stands for the program's file")
    cli.flag(p, "--limit", type=cli.count, default=2000, help="the most programs to try (default 2000)")
    cli.flag(p, "--rel-error-bound", type=cli.amount, default=1e-5, help="relative difference allowed (default 1e-5)")
    cli.flag(p, "--abs-error-bound", type=cli.amount, default=1e-6, help="absolute difference allowed (default 1e-6)")
    cli.flag(p, "--seed", "--random_seed", type=cli.natural, default=0, help="of random inputs")
    cli.add_read_flags(p)
    cli.add_json(p)
    cli.add_output(p, "the file for the smaller program; - is standard output")
    p.set_defaults(command=reduce)


def add_completion(commands):
    p = commands.add_parser("completion", help="print completions for a shell")
    p.add_argument("shell", nargs="?", choices=("bash", "zsh", "fish"), default="bash", help="default: bash")
    cli.add_json(p)
    p.set_defaults(command=completion)


def add_cache(commands):
    p = commands.add_parser("cache", help="look at compiled programs on disk, or remove them", description="""Without a program, the folder
        and what is in it; with one, whether the cache has it, and if not, which part of its key differs from the nearest entry
        (docs/cache.md).""")
    p.add_argument("file", nargs="?", help="a program; - is standard input")
    cli.flag(p, "--clear", action="store_true", help="remove all entries")
    cli.flag(p, "--folder", metavar="FOLDER", help="the cache (default: what XLAC_CACHE names, else the user's own)")
    cli.add_read_flags(p)
    cli.add_json(p)
    p.set_defaults(command=cache)


def add_to(commands):
    for add in (add_bench, add_cache, add_reduce, add_completion):
        add(commands)
