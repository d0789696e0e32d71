"""Shardy's own tests, and their inputs through many of its pipelines (conformance/shardy): the same text, or an error at the same
line. Differences are listed in differences_shardy.json, and must differ."""
import functools
import json
import pathlib

import pytest

import xlac

from .conftest import cases, data_dir, rows

CASES, CROSS = "shardy/cases.jsonl.xz", "shardy/cross.jsonl.xz"
DIFFERENCES = json.loads((pathlib.Path(__file__).parent / "differences_shardy.json").read_text())
# Passes that xlac does not have: what needs them is left out (docs/design/shard.md).
ABSENT = ["sdy-per-instruction-partitioning"]
PIPELINES = ["parse_print", "rules", "rules_conservative", "import", "basic", "basic_conservative", "aggressive", "op_priority",
             "user_priority", "pre_basic", "pre_user", "full", "reshards_min", "reshards_full", "full_reshards", "full_collectives",
             "collectives", "canonicalize", "close", "inline_meshes"]


def passes_of(row):
    """The case's pipeline without the module around it."""
    return row["pipeline"][len("builtin.module("):-1] if row["pipeline"] else ""


def attempted(row):
    return not any(name in passes_of(row) for name in ABSENT)


def wanted(keep):
    def named(row):
        row["name"] = row["id"]
        return attempted(row) and keep(row)
    return named


def known(case, suite, request):
    if case["id"] in DIFFERENCES[suite]:
        request.node.add_marker(pytest.mark.xfail(strict=True, reason=DIFFERENCES[suite][case["id"]]))


def read(row):
    module = xlac.parse(row["input"], format="mlir", allow_unregistered=row["allow_unregistered"])
    module.verify()
    return module


def is_text(row):
    return row["real_output"] is not None and row["trust"] != "skew"


def error_lines(row):
    """Where the errors are; where jaxlib's Shardy is older than the test, the test knows."""
    found = row["expected_errors"] if row["trust"] == "skew" else row["real_diags"]
    return {e["line"] for e in found if e["severity"] == "error"}


def is_error(row):
    return bool(error_lines(row)) and (row["trust"] == "skew" or row["real_output"] is None)


@pytest.mark.parametrize("case", cases(CASES, wanted(is_text), "shardy"))
def test_gives_the_same_text(case, request):
    known(case, "text", request)
    passes = passes_of(case)
    module = read(case)
    assert (module.run(passes) if passes else module).to_text() == case["real_output"]


@pytest.mark.parametrize("case", cases(CASES, wanted(is_error), "shardy"))
def test_refused_at_the_line(case, request):
    known(case, "error", request)
    with pytest.raises(xlac.Error) as caught:
        passes = passes_of(case)
        module = read(case)
        if passes:
            module.run(passes)
    assert caught.value.code != 700 and caught.value.line in error_lines(case), caught.value


@functools.lru_cache(maxsize=None)
def inputs():
    """Every input as a module, or None where it is refused."""
    found = []
    for row in rows(CROSS):
        try:
            found.append((row, read(row)))
        except xlac.Error:
            found.append((row, None))
    return found


def differs(row, module, name, passes):
    """Whether the pipeline gives something else than Shardy; errors need only be errors."""
    result = row["results"][name]
    if result.get("same_as_parse_print"):
        result = row["results"]["parse_print"]
    try:
        text = (module.run(passes) if passes else module).to_text() if module else None
    except xlac.Error as e:
        assert e.code != 700
        text = None
    return text != result.get("output")


@pytest.mark.parametrize("name", PIPELINES)
def test_pipeline(name):
    if not rows(CROSS):
        pytest.skip(f"no conformance data: {CROSS}")
    passes = json.loads((data_dir() / "shardy/pipelines.json").read_text())[name]
    found = [row["from"] for row, module in inputs() if name in row["results"] and differs(row, module, name, passes)]
    listed = {**DIFFERENCES["everywhere"], **DIFFERENCES["pipelines"].get(name, {})}
    assert sorted(found) == sorted(listed)


@pytest.mark.parametrize("name", ABSENT)
def test_absent(name):
    """What is left out is really not there."""
    with pytest.raises(xlac.Error) as caught:
        xlac.parse("module {}", format="mlir").run(name)
    assert caught.value.code == 700
