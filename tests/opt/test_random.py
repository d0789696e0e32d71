"""Pipelines on random programs: valid, readable, the same results, and flat where they promise it."""
import re
import sys

import numpy as np
import pytest

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import programs  # noqa: E402
import xlac  # noqa: E402

PIPELINES = ["dce", "cse", "constant-folding", "flatten-tuples", "inline-calls", "flatten-tuples,cse,dce",
             "inline-calls,flatten-tuples,cse,constant-folding,dce", "flatten-tuples,inline-calls,flatten-tuples,dce"]


def leaves(value):
    return [x for part in value for x in leaves(part)] if isinstance(value, tuple) else [np.asarray(value)]


def not_flat(text):
    """Lines that break what flatten-tuples promises."""
    bad = []
    for body in re.findall(r"(?s)\{\n(.*?)\n\}", text):
        tuples = set(re.findall(r"%([\w.-]+) = \([^\n]*?\) tuple\(", body))
        for line in body.split("\n"):
            if any(f"get-tuple-element(%{t})" in line for t in tuples):
                bad.append(line)
            m = re.match(r"\s*(?:ROOT )?%[\w.-]+ = (\(.*?\)) (?:while|call|conditional)\(", line)
            if m and "(" in m[1][1:]:
                bad.append(line)
    return bad


@pytest.mark.parametrize("seed", range(150))
def test_pipelines_on_random_programs(seed):
    scheduled = seed % 3 == 0
    source = programs.Program(seed, scheduled).text
    m = xlac.parse(xlac.parse(source).to_text())  # the order that printing gives
    m.verify()
    args = [np.array([1, 2], np.float32), np.array([3, -4], np.float32)]
    want = leaves(xlac.interpret(m, *args))
    for pipeline in PIPELINES:
        out = m.run(pipeline)
        out.verify()
        text = out.to_text()
        again = xlac.parse(text)
        assert again.to_text() == text, pipeline
        for module in (out, again):
            got = leaves(xlac.interpret(module, *args))
            assert len(got) == len(want) and all(np.array_equal(g, w) for g, w in zip(got, want)), pipeline
        if pipeline.startswith("flatten") or "inline-calls,flatten" in pipeline:
            assert not not_flat(text), pipeline
