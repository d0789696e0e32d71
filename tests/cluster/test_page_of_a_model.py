"""docs/clustering-a-model.md says what xlac answers."""
import doctest
import json
import lzma
import pathlib
from importlib.resources import files

import xlac

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs/pictures/lstm-clusters.svg"


def graphs():
    return {"cnn": files("xlac.demos") / "convolutions.pb", "lstm": files("xlac.demos") / "lstm.pb", "xlac": xlac}


def test_the_packages_graphs_are_those_that_are_compared_with_tensorflow():
    with lzma.open(ROOT / "tests/session/graphs.jsonl.xz", "rt", encoding="utf-8") as lines:
        cases = {case["name"]: case["graph"].encode("latin-1") for case in map(json.loads, lines)}
    assert graphs()["cnn"].read_bytes() == cases["cnn_momentum"] and graphs()["lstm"].read_bytes() == cases["lstm_carried_v1"]


def test_every_answer_is_xlacs():
    page = (ROOT / "docs/clustering-a-model.md").read_text().replace("```", "")
    examples = doctest.DocTestParser().get_doctest(page, graphs(), "page", "clustering-a-model.md", 0)
    assert len(examples.examples) > 10
    report = []
    assert doctest.DocTestRunner().run(examples, out=report.append).failed == 0, "".join(report)


def test_the_picture_is_current():
    assert PICTURE.read_text() == xlac.cluster(graphs()["lstm"]).svg() + "\n"
