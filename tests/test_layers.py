"""Dependencies between the folders of csrc point down one list; only csrc/py sees Python."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
LAYERS = ["include", "base", "ir", "interp", "text", "stablehlo", "opt", "async", "shard", "cluster", "lower", "kernel",
          "plan", "cpu", "session", "api", "py"]
RANK = {name: i for i, name in enumerate(LAYERS)}


def sources():
    return [p for p in sorted((ROOT / "csrc").glob("*/*")) if p.suffix in (".c", ".h", ".def")]


def test_every_folder_has_a_place():
    assert {p.parent.name for p in sources()} <= set(LAYERS)


def test_no_file_includes_upward():
    wrong = []
    for path in sources():
        mine = RANK[path.parent.name]
        for target in re.findall(r'^\s*#\s*include\s+"\.\./([^/"]+)/', path.read_text(), re.M):
            if RANK[target] > mine:
                wrong.append(f"{path.relative_to(ROOT)} includes {target}")
    assert not wrong


def test_only_the_extension_sees_python():
    wrong = [str(p.relative_to(ROOT)) for p in sources()
             if p.parent.name != "py" and re.search(r"#\s*include\s*<(Python\.h|numpy/)", p.read_text())]
    assert not wrong


def test_files_and_functions_stay_small():
    long_files = [str(p) for p in sources() if p.suffix == ".c" and len(p.read_text().split("\n")) > 1000]
    assert not long_files
