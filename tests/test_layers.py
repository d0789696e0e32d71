"""Rooms of csrc depend on rooms below them alone, by what they include and by what they call; only csrc/py sees Python."""
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
CSRC = ROOT / "csrc"
ROOMS = [line.split()[0] for line in (CSRC / "LAYERS").read_text().splitlines() if line and not line.startswith("#")]
RANK = {room: i for i, room in enumerate(reversed(ROOMS))}
MOST_FILES = 45
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
DEFINITION = re.compile(r"^(?!static|typedef|extern|else|struct \w+ \{)\w[\w\s*]*?\b(\w+)\([^;{}]*\)\s*\{", re.M)
TABLE = re.compile(r"^(?!static|typedef|extern)(?:BASE_EXPORT )?const [\w\s*]*?\b(\w+)(?:\[[^\]]*\])?\s*=", re.M)


def sources():
    return [p for p in sorted(CSRC.rglob("*")) if p.suffix in (".c", ".h", ".def") and p.parent != CSRC]


def room_of(path):
    return path.relative_to(CSRC).parts[0]


def code_of(path):
    """The text without comments and strings."""
    return COMMENT_OR_STRING.sub(" ", path.read_text())


def test_every_folder_is_a_room_and_every_room_a_folder():
    assert {room_of(p) for p in sources()} == set(ROOMS)


def test_no_folder_is_crowded():
    folders = {}
    for path in sources():
        folders.setdefault(path.parent, []).append(path)
    assert {str(f.relative_to(ROOT)): len(files) for f, files in folders.items() if len(files) > MOST_FILES} == {}


def test_no_file_includes_upward():
    wrong = []
    for path in sources():
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M):
            target = pathlib.Path(os.path.normpath(path.parent / name))
            if not target.exists():
                continue  # found by -Icsrc/include
            if RANK[room_of(target)] > RANK[room_of(path)]:
                wrong.append(f"{path.relative_to(ROOT)} includes {target.relative_to(ROOT)}")
    assert wrong == []


def definitions():
    """Functions and tables that other files can name: where each is. File-local names are unique across the tree, so a name tells."""
    found = {}
    for path in sources():
        if path.suffix == ".c":
            text = code_of(path)
            for name in DEFINITION.findall(text) + TABLE.findall(text):
                found[name] = path
    return found


def test_definitions_are_found():
    found = definitions()
    assert len(found) > 2500
    assert room_of(found["ir_op_new"]) == "ir" and room_of(found["pipeline_passes"]) == "pipeline"


def test_no_file_names_what_a_room_above_defines():
    found, wrong = definitions(), []
    for path in sources():
        for name in sorted(set(re.findall(r"\b[a-z]\w+\b", code_of(path))) & found.keys()):
            if room_of(path) != "include" and RANK[room_of(found[name])] > RANK[room_of(path)] and path.suffix != ".def":
                wrong.append(f"{path.relative_to(ROOT)} names {name}, which {found[name].relative_to(ROOT)} defines")
    assert wrong == []


# What names that other files can use begin with, and the rooms they live in.
PREFIXES = {"py": "py", "dl": "py", "PyInit": "py", "xlac": "api", "api": "api", "tf": "tf", "tfl": "tf", "tfs": "tf", "driver": "driver",
            "pjrt": "pjrt", "GetPjrtApi": "pjrt", "spmd": "spmd", "cuda": "cuda", "cu": "cuda", "cpu": "cpu", "x86": "cpu", "nat": "cpu", "emit": "cpu", "vm": "cpu", "fft": "cpu", "lapack": "cpu", "plan": "plan", "fusion": "fuse", "lower": "fuse", "kernel": "kernel",
            "pipeline": "pipeline", "shard": "shard", "local": "shard", "explicit": "shard", "shc": "shard", "rtc": "shard", "trip": "shard",
            "opt": "passes", "async": "passes", "mq": "passes", "hlo": "passes", "hs": "passes", "while": "passes", "same": "passes",
            "from": "convert", "to": "convert", "attr": "convert", "convert": "convert", "interp": "interp", "native": "interp",
            "text": "text", "bc": "text", "mlir": "text", "proto": "text", "mprint": "text", "scalar": "scalar", "rt": "runtime",
            "ir": "ir", "sv": "ir", "sdy": "ir", "sdyv": "ir", "stablehlo": "ir", "base": "base", "math": "base"}


def test_prefixes_agree_with_rooms():
    assert [f"{path.relative_to(ROOT)} defines {name}" for name, path in definitions().items()
            if PREFIXES.get(name.split("_")[0]) != room_of(path)] == []


def part_of(path):
    return "/".join(path.relative_to(CSRC).parts[:2]) if len(path.relative_to(CSRC).parts) > 2 else None


def reached(graph, start):
    seen, pending = set(), [start]
    while pending:
        for part in graph.get(pending.pop(), ()):
            if part not in seen:
                seen.add(part)
                pending.append(part)
    return seen


def test_no_parts_of_a_room_form_a_circle():
    graph = {}
    for path in sources():
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M):
            target = pathlib.Path(os.path.normpath(path.parent / name))
            if target.suffix == ".h" and target.exists() and room_of(target) == room_of(path) and part_of(target) and part_of(path):
                graph.setdefault(part_of(path), set()).add(part_of(target))
    for part, targets in graph.items():
        targets.discard(part)
    circles = {tuple(sorted({part} | {p for p in reached(graph, part) if part in reached(graph, p)})) for part in graph}
    assert {c for c in circles if len(c) > 1} == set()


def test_only_the_extension_sees_python():
    wrong = [str(p.relative_to(ROOT)) for p in sources()
             if room_of(p) != "py" and re.search(r"#\s*include\s*<(Python\.h|numpy/)", p.read_text())]
    assert wrong == []


def test_who_stands_above_devices_knows_none_of_them():
    """The library, the extension and sessions see the compile line and runtime/device.h."""
    wrong = []
    for path in sources():
        if room_of(path) in ("py", "api", "tf"):
            wrong += [f"{path.relative_to(ROOT)} includes {name}" for name in re.findall(r'#\s*include\s+"([^"]*)"', path.read_text())
                      if room_of(pathlib.Path(os.path.normpath(path.parent / name)) if "/" in name else path) == "cpu"]
    assert wrong == []


# Fields of modules, computations and ops that mean something: ir.h has a function to set each, which counts the edit.
IR_FIELD = (r"->(mlir|return_mlir|result_mlir|called(\[[^]]*\])?(->\w+)?|n_called|u\.\w+|opcode|entry|execution_thread|function_type|owner"
            r"|config(\.\w+)?(\[[^]]*\])?|results\[[^]]*\]|params\[[^]]*\]|n_params|control_preds|n_control_preds|verified(_at)?|edits)")
NO_IR = {"x->results[i] = info.data;"}  # a caller's arrays
# Readers and converters fill in modules that nobody has verified; what lies below the ir has no modules.
MAY_WRITE = {"ir", "text", "convert", "tf", "base", "include"}


def test_modules_are_edited_through_the_ir_alone():
    """What changes a module counts as an edit, and so has it verified anew, without anybody remembering it."""
    wrong = []
    for path in sources():
        if room_of(path) in ("passes", "shard", "pipeline", "api", "driver", "plan", "fuse"):
            wrong += [f"{path.relative_to(ROOT)}: {line.strip()}" for line in code_of(path).split("\n")
                      if re.search(r"\w" + IR_FIELD + r"(\+\+|--| *[-+|]?= )", line) and line.strip() not in NO_IR]
        elif room_of(path) not in MAY_WRITE and re.search(r"\bir_edited\(", code_of(path)):
            wrong.append(f"{path.relative_to(ROOT)} counts edits itself")
    assert wrong == []


def test_files_stay_small():
    assert [str(p) for p in sources() if p.suffix == ".c" and len(p.read_text().split("\n")) > 1000] == []
