"""Rules, propagation, debugging notes, explicit reshards and whole pipelines, byte for byte as Shardy's own answers.

What differs is in differences_shardy_propagation.json, with a reason each; the list is exact, so it can only shrink."""
import json
import pathlib

import pytest

import xlac

from .conftest import data_dir, rows

CROSS, CASES = "shardy/cross.jsonl.xz", "shardy/cases.jsonl.xz"
PIPELINES = ["rules", "rules_conservative", "basic", "basic_conservative", "aggressive", "op_priority", "user_priority", "pre_basic",
             "pre_user", "full", "reshards_min", "reshards_full", "full_reshards"]
KNOWN = json.loads((pathlib.Path(__file__).parent / "differences_shardy_propagation.json").read_text())


def answer(text, pipeline, unregistered):
    """The printed module, or None where xlac refuses."""
    try:
        module = xlac.parse(text, allow_unregistered=unregistered)
        return (module.run(pipeline, verify_each=True) if pipeline else module).to_text().rstrip("\n")
    except xlac.Error:
        return None


def different(found, known):
    """Fails where the differences found are not those that are known."""
    new, gone = sorted(set(found) - set(known)), sorted(set(known) - set(found))
    assert not new and not gone, f"{len(new)} new: {new[:10]}; {len(gone)} are the same now, so take them off the list: {gone[:10]}"


@pytest.mark.parametrize("name", PIPELINES)
def test_cross(name):
    if not rows(CROSS):
        pytest.skip(f"no conformance data: {CROSS}")
    passes = json.loads((data_dir() / "shardy" / "pipelines.json").read_text())[name]
    found = []
    for row in rows(CROSS):
        result = row["results"].get(name)
        if result is None:
            continue
        same = result.get("same_as_parse_print")
        want = row["results"]["parse_print"]["output"] if same else result.get("output")
        out = answer(row["input"], f"builtin.module({passes})", row["allow_unregistered"])
        if out != (want and want.rstrip("\n")):
            found.append(row["input_id"])
    different(found, KNOWN["cross"].get(name, {}))


@pytest.mark.parametrize("part", ["transforms/propagation/test", "propagation/debugging", "insert_explicit_reshards"])
def test_cases(part):
    if not rows(CASES):
        pytest.skip(f"no conformance data: {CASES}")
    found = []
    for row in rows(CASES):
        if part not in row["file"] or row["trust"] == "skew":
            continue
        want = row["real_output"]
        out = answer(row["input"], row["pipeline"], row["allow_unregistered"])
        if out != (want and want.rstrip("\n")):
            found.append(row["id"])
    different(found, KNOWN["cases"].get(part, {}))
