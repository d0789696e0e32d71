"""benchmarks/peers_tables.py: docs/performance.md has a place for each table, and tables say what rows say."""
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
import peers_tables  # noqa: E402

PEAK = {"bytes": {4 * n: 1e10 for n in peers_tables.SIZES}, "flops": 1e11}


def row(engine, name, least, **more):
    return {"kind": "programs", "name": name, "n": 0, "engine": engine, "round": 0, "load": 1.0, "compile": least, "compile_cpu": least, "first": 1.0,
            "least": least, "median": least, "cpu": least, "memory": 10**8, "flops": 10.0, "bytes": 1000, "off": 0.0} | more


@pytest.fixture
def kinds():
    rows = [row("xlac", "gelu_64k", 2e-6), row("xla", "gelu_64k", 6e-6), row("iree", "gelu_64k", 1e-6), row("xlac", "mm_64", 1e-6),
            row("xla", "mm_64", 4e-6, memory=10**7), row("iree", "mm_64", 3e-6, error="no such op")]
    return {"sizes": [], "programs": rows, "compile": []}


def cells(lines, first):
    return next(line.strip("| ").split(" | ") for line in lines if line.startswith(f"| {first} |"))


def test_a_program_is_compared_with_xla_and_with_the_best_peer(kinds):
    lines = peers_tables.programs_table(kinds["programs"], PEAK)
    assert cells(lines, "gelu_64k")[-3:] == ["3.00", "0.50", "0.50"]
    assert cells(lines, "mm_64")[-3:] == ["4.00", "4.00", "4.00"], "what an engine could not run is no peer"


def test_targets_are_held_against_the_rows(kinds):
    lines = peers_tables.targets_table(kinds, [], [{"op": "add", "type": "f32", "to": "f32", "ratio": 1.5}])
    assert cells(lines, "2 programs beside XLA: geometric mean")[1:] == ["2.8", "3.46", "yes"]
    assert cells(lines, "2 programs beside the best peer: geometric mean")[1:] == ["1.35", "1.41", "yes"]
    assert cells(lines, "of them at 0.95 or more")[1:] == ["90 %", "50%", "no"]
    assert cells(lines, "ops on types that XLA compiles, 1: slower than XLA on")[1:] == ["0", "0", "yes"]
    assert cells(lines, "peak memory: programs on which a peer's process was smaller")[1:] == ["0", "1 of 2", "no"]


def test_what_is_behind_is_named_with_cause_and_idea(kinds):
    unseen = [{"name": "physics.springs", "held": False, "call": {"xla": [1.0, 0.8], "xlac": [1.0, 2.0]}}]
    sweep = [{"op": "convert", "type": "f32", "to": "c128", "ratio": 0.5}, {"op": "add", "type": "f32", "to": "f32", "ratio": 2.0}]
    lines = peers_tables.misses_table(kinds, unseen, sweep)
    assert [line.split(" | ")[0] for line in lines[2:-1]] == ["| gelu_64k", "| op convert", "| physics.springs"]
    assert cells(lines, "gelu_64k")[1] == "0.50 of iree, 0.50 by CPU time"
    assert cells(lines, "op convert")[1] == "f32 to c128 0.50"
    assert all(len(line.split(" | ")) == 4 for line in lines[2:-1])


def test_the_page_has_a_place_for_each_table():
    text = (ROOT / "docs" / "performance.md").read_text()
    for name in ("machine", "targets", "sizes", "programs", "costs", "named", "unseen", "sweep", "compile", "misses"):
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        assert text.count(begin) == 1 and text.count(end) == 1 and text.index(begin) < text.index(end), name
